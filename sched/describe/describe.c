/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Writes a described schedule (describe.h): as text for people, then as JSON. */

#include "sched/describe/describe.h"

#include "core/base/text.h"
#include "core/query/query_internal.h"

/* ----------------------------------------------------------------------------------------- names */

/* Writes `before`, then the name in single quotation marks. */
static void write_quoted(quern__printer *printer, const char *before, const char *name)
{
    quern__print(printer, "%s'", before);
    /* Names may contain any bytes; the output is valid UTF-8. */
    while (*name != '\0') {
        uint32_t bytes = quern__utf8_bytes(name);
        if (bytes == 0)
            quern__print(printer, QUERN__UTF8_REPLACEMENT);
        else if (bytes == 1 && ((unsigned char)*name < 0x20 || *name == 0x7F))
            quern__print(printer, "\\x%02X", (unsigned)*name);
        else
            quern__print_bytes(printer, name, bytes);
        name += bytes > 0 ? bytes : 1;
    }
    quern__print(printer, "'");
}

/* The names of the kinds of reactions. */
enum { REACTION_WORDS = 4 };
typedef struct reaction_name {
    quern_reaction_kind kind;
    const char *word;
} reaction_name;

static const reaction_name reaction_names[REACTION_WORDS] = {{QUERN_REACT_ADDED, "added"},
                                                             {QUERN_REACT_SET, "set"},
                                                             {QUERN_REACT_REMOVED, "removed"},
                                                             {QUERN_REACT_PRESENT, "present"}};

/* Converts seconds to whole nanoseconds; at most 1e9 seconds. */
static uint64_t seconds_to_ns(double seconds)
{
    return (uint64_t)((seconds < 1e9 ? seconds : 1e9) * 1e9 + 0.5);
}

/* Returns the type that causes a conflict, or NULL. */
static const quern__type *conflict_type(const quern_schedule *schedule, quern__conflict conflict)
{
    switch ((quern__conflict_kind)conflict.kind) {
    case QUERN__CONFLICT_COMPONENT:
    case QUERN__CONFLICT_LEVEL:
    case QUERN__CONFLICT_LOOKUP:
        return quern__components_type(&schedule->plan.world->storage.components, conflict.index);
    case QUERN__CONFLICT_RESOURCE:
        return &schedule->plan.world->resources.list.items[conflict.index].type;
    case QUERN__CONFLICT_ORDER:
    case QUERN__CONFLICT_DECLARED:
    case QUERN__NO_CONFLICT:
        break;
    }
    return NULL;
}

/* Whether the writer's views write a component that the reader reads from entities outside its own views. */
static bool writes_for_reader(const quern__system *writer, const quern__system *reader, uint32_t index)
{
    return quern__bitset_has(writer->access.writes, index) &&
           quern__access_lookup_conflict(&writer->access, &reader->access, index, true, NULL) !=
               QUERN__NO_CONFLICT;
}

static void write_lookup_cause(quern__printer *printer, const quern__system *earlier,
                               const quern__system *later, uint32_t index, const char *component)
{
    const bool earlier_writes = writes_for_reader(earlier, later, index);
    if (earlier_writes || writes_for_reader(later, earlier, index)) {
        const quern__access *reader = earlier_writes ? &later->access : &earlier->access;
        const bool is_lookup = quern__lookups_include(&reader->lookups, index, NULL);
        const bool is_query = quern__access_queries_reach(reader, index, false, NULL);
        write_quoted(printer, is_lookup ? "lookup of " : is_query ? "query of " : "up-term on ", component);
        write_quoted(printer, " written by ", earlier_writes ? earlier->name : later->name);
        return;
    }
    const bool by_lookup = quern__bitset_has(earlier->access.lookups.written, index) ||
                           quern__bitset_has(later->access.lookups.written, index);
    write_quoted(printer, by_lookup ? "write lookup of " : "query that writes ", component);
    const bool is_earlier = by_lookup ? quern__bitset_has(earlier->access.lookups.written, index)
                                      : quern__bitset_has(earlier->access.query_writes, index);
    write_quoted(printer, " by ", is_earlier ? earlier->name : later->name);
}

/* Writes a cause such as "component 'position'". The systems must be those of the conflict, in their order. */
static void write_cause(quern__printer *printer, const quern__system *earlier, const quern__system *later,
                        quern__conflict conflict)
{
    const quern__type *type = conflict_type(earlier->plan->schedule, conflict);
    if (conflict.kind == QUERN__NO_CONFLICT)
        quern__print(printer, "exclusive");
    else if (type == NULL)
        quern__print(printer, "before/after");
    else if (conflict.kind == QUERN__CONFLICT_RESOURCE)
        write_quoted(printer, "resource ", type->name);
    else if (conflict.kind == QUERN__CONFLICT_COMPONENT)
        write_quoted(printer, "component ", type->name);
    else
        write_lookup_cause(printer, earlier, later, conflict.index, type->name);
}

/* --------------------------------------------------------------------------------------------- text */

/* Writes the schedule as text for people, one line per item, indented under the item that it belongs to. */

/* Writes "1 chunk", "2 chunks". */
static void write_count(quern__printer *printer, uint64_t count, const char *what)
{
    quern__print(printer, "%llu %s%s", (unsigned long long)count, what, count == 1 ? "" : "s");
}

static void write_load(quern__printer *printer, const quern__facts *facts, quern__load load)
{
    if (load.path == 0) {
        quern__print(printer, "nothing to do");
        return;
    }
    uint64_t tenths = (load.work * 10 + load.path / 2) / load.path;
    quern__print(printer, "parallelism %llu.%llu (", (unsigned long long)(tenths / 10),
                 (unsigned long long)(tenths % 10));
    const char *unit = facts->is_timed ? " us" : "";
    uint64_t scale = facts->is_timed ? 1000 : 1;
    quern__print(printer, "work %llu%s, critical path %llu%s%s)",
                 (unsigned long long)((load.work + scale / 2) / scale), unit,
                 (unsigned long long)((load.path + scale / 2) / scale), unit,
                 facts->is_timed ? "" : ", in calls");
}

/* ----------------------------------------------------------------------------------------- systems */

static const char *const access_verbs[] = {[QUERN_ACCESS_READ] = "read",
                                           [QUERN_ACCESS_WRITE] = "write",
                                           [QUERN_ACCESS_WRITE_CONCURRENT] = "write"};

/* Writes a term: "read", "optional write", "with", "without", "any", "read old"; "read 'world' upward by 'parent'", "with 'parent'
 * of one target". */
static void write_term(quern__printer *printer, const quern_world *world, const quern__query *query,
                       uint32_t i)
{
    const quern_term *term = &query->terms[i];
    static const char *const matches[] = {
        [QUERN_MATCH_NONE] = "without", [QUERN_MATCH_OPTIONAL] = "optional", [QUERN_MATCH_ANY] = "any"};
    bool is_plain = term->match == QUERN_MATCH_ALL;
    const char *verb = term->old                           ? "read old"
                       : term->access == QUERN_ACCESS_NONE ? "with"
                                                           : access_verbs[term->access];
    if (!is_plain) quern__print(printer, "%s", matches[term->match]);
    if (is_plain || term->access != QUERN_ACCESS_NONE)
        quern__print(printer, "%s%s", is_plain ? "" : " ", verb);
    write_quoted(printer, " ", quern_component_name(world, term->component));
    if (term->by_target) quern__print(printer, " of one target");
    if (term->changed)
        quern__print(printer, (query->row_filters >> i & 1) != 0 ? " if changed, by row" : " if changed");
    if (term->enabled == QUERN_TERM_DISABLED) quern__print(printer, " if disabled");
    if (term->enabled == QUERN_TERM_EITHER) quern__print(printer, " enabled or not");
    if (term->path == QUERN_PATH_ROW) return;
    quern__print(printer, term->path == QUERN_PATH_TARGET ? " upward" : " of the nearest ancestor");
    write_quoted(printer, " by ",
                 quern__components_type(&world->storage.components, quern__term_index(term))->name);
}

/* Returns the separator before the next element of a list. */
static const char *next_separator(const char **separator)
{
    const char *now = *separator;
    *separator = ", ";
    return now;
}

static const char *relation_name(const quern_world *world, const quern__relation *relation)
{
    return quern__relation_name(&world->storage, relation);
}

/* Writes "'Sprite' by 'depth', descending: 100000 rows, sorted 3 times, last 2500 rows", if the query has an order. */
static void write_order(quern__printer *printer, const quern_world *world, const quern__query *query,
                        const char *before)
{
    if (query->order == NULL) return;
    const quern_order def = quern__order_get_def(query);
    const quern_order_stats stats = quern__order_get_stats(query);
    write_quoted(printer, before, quern_component_name(world, def.component));
    if (def.compare != NULL)
        quern__print(printer, " by a comparison");
    else if (def.field != NULL)
        write_quoted(printer, " by ", def.field);
    else
        quern__print(printer, " by byte %u", def.offset_bytes);
    if (def.descending) quern__print(printer, ", descending");
    quern__print(printer, ": ");
    write_count(printer, stats.row_count, "row");
    quern__print(printer, ", sorted ");
    write_count(printer, stats.sort_count, "time");
    quern__print(printer, ", last ");
    write_count(printer, stats.sorted_row_count, "row");
}

static void write_traits(quern__printer *printer, const quern__system *system)
{
    if (system->reaction != NULL) {
        /* Writes "; reacts to added, removed". */
        const char *separator = "; reacts to ";
        for (uint32_t i = 0; i < REACTION_WORDS; i++)
            if ((system->reacts_to & reaction_names[i].kind) != 0)
                quern__print(printer, "%s%s", next_separator(&separator), reaction_names[i].word);
        write_quoted(printer, "; of phase ", system->plan->phases[system->phase].name);
    }
    if (system->pass->lane_count > 1) quern__print(printer, "; lane %u", system->lane + 1);
    if (system->levels != NULL)
        write_quoted(printer, "; levels of ", relation_name(system->plan->world, system->levels));
    write_order(printer, system->plan->world, &system->query, "; in the order of ");
    if (system->condition != NULL) quern__print(printer, "; condition");
    if (system->access.watches_resources) {
        const char *separator = "; if changed: ";
        for (uint32_t i = 0; i < system->access.resource_count; i++)
            if (system->access.resources[i].is_watched)
                quern__print(
                    printer, "%s%s", next_separator(&separator),
                    system->plan->world->resources.list.items[system->access.resources[i].index].type.name);
    }
    if (system->interval_seconds > 0) {
        quern__print(printer, "; every ");
        quern__print_decimal(printer, seconds_to_ns(system->interval_seconds), 9);
        quern__print(printer, " s");
    }
    if (system->every > 1)
        quern__print(printer, "; in frame %u of every %u%s", system->turn + 1, system->every,
                     system->offset == 0 ? ", chosen" : "");
    for (uint32_t i = 0; i < system->set_names.count; i++)
        write_quoted(printer, i == 0 ? "; in set " : ", ", system->set_names.items[i].text);
    if (system->begin != NULL) quern__print(printer, "; begin");
    if (system->end != NULL) quern__print(printer, "; end");
    if (system->partial_bytes > 0) {
        quern__print(printer, "; partial results of ");
        write_count(printer, system->partial_bytes, "byte");
    }
    if (!system->is_enabled) quern__print(printer, "; disabled");
}

/* ------------------------------------------------------------------------------------------- edges */

static void write_edge(quern__printer *printer, const quern__facts *facts,
                       const quern__segment_facts *segment, const quern__system *earlier,
                       const quern__system *later)
{
    quern__causes causes;
    quern__facts_causes(earlier, later, &causes);
    if (causes.count == 0) return;
    quern__route route = quern__facts_route(facts, segment, earlier, later);
    write_quoted(printer, "        after ", earlier->name);
    if (route != QUERN__ROUTE_PASS)
        quern__print(printer, " of pass %u", quern__facts_number(segment, earlier->pass) + 1);
    const char *separator = ": ";
    for (uint32_t i = 0; i < causes.count; i++) {
        quern__print(printer, "%s", next_separator(&separator));
        write_cause(printer, earlier, later, causes.items[i]);
    }
    const quern__conflict_kind kind = (quern__conflict_kind)causes.items[0].kind;
    quern__print(printer, " (%s%s)\n",
                 kind == QUERN__CONFLICT_LEVEL    ? "level by level"
                 : quern__conflict_is_local(kind) ? "chunk-local"
                                                  : "whole",
                 route == QUERN__ROUTE_IMPLIED ? "; follows from other edges" : "");
}

/* Writes why the system is not in the pass. */
static void write_apart(quern__printer *printer, const quern__segment_facts *segment,
                        const quern__system *system, const quern__pass *pass,
                        const quern__apart_reason *apart)
{
    uint32_t number = quern__facts_number(segment, pass) + 1;
    switch (apart->kind) {
    case QUERN__APART_CONFLICT:
        write_quoted(printer, "        not with ", apart->other->name);
        quern__print(printer, " in pass %u: ", number);
        write_cause(printer, apart->other, system, apart->conflict);
        break;
    case QUERN__APART_ORDER:
        quern__print(printer, "        not in pass %u:", number);
        write_quoted(printer, " ", apart->other->name);
        quern__print(printer,
                     " of pass %u must come first: ", quern__facts_number(segment, apart->other->pass) + 1);
        write_cause(printer, apart->other, system, apart->conflict);
        break;
    case QUERN__APART_LEVELS:
        quern__print(printer, "        not in pass %u: that goes by the levels of", number);
        write_quoted(printer, " ", relation_name(system->plan->world, pass->levels));
        break;
    case QUERN__APART_CHOICE:
        quern__print(printer, "        not in pass %u: %s", number,
                     system->plan->shuffle_seed != 0 ? "chosen by the shuffle"
                                                     : "it shares as many components or more here");
        break;
    }
    quern__print(printer, "\n");
}

static void write_system(quern__printer *printer, const quern__facts *facts, uint32_t segment_index,
                         const quern__system *system)
{
    const quern__segment *segment = &facts->schedule->plan.segments.items[segment_index];
    const quern__segment_facts *segment_facts = &facts->segments.items[segment_index];
    write_quoted(printer, "      ", system->name);
    const quern_world *world = system->plan->world;
    const char *separator = ": ";
    for (uint32_t k = 0; k < system->query.term_count; k++) {
        quern__print(printer, "%s", next_separator(&separator));
        write_term(printer, world, &system->query, k);
    }
    for (uint32_t k = 0; k < system->access.lookups.count; k++) {
        quern__print(printer, "%s", next_separator(&separator));
        const quern__lookup *lookup = &system->access.lookups.list[k];
        const quern__components *components = &world->storage.components;
        const quern__archetype_filter limit = lookup->limit;
        write_quoted(printer, lookup->writes ? "look up and write " : "look up ",
                     quern__components_type(components, lookup->index)->name);
        if (limit.with != QUERN__FILTER_NONE)
            write_quoted(printer, " with ", quern__components_type(components, limit.with)->name);
        if (limit.without != QUERN__FILTER_NONE)
            write_quoted(printer, " without ", quern__components_type(components, limit.without)->name);
    }
    for (uint32_t i = 0; i < system->query_count; i++) {
        const quern__query *query = &system->queries[i];
        quern__print(printer, "%squery %u", next_separator(&separator), i);
        if (query->name != NULL) write_quoted(printer, " ", query->name);
        const char *inner = " (";
        for (uint32_t k = 0; k < query->term_count; k++) {
            quern__print(printer, "%s", next_separator(&inner));
            write_term(printer, world, query, k);
        }
        write_order(printer, world, query, "; in the order of ");
        quern__print(printer, ")");
    }
    for (uint32_t i = 0; i < system->index_count; i++) {
        quern_index_def def;
        quern_index_stats stats;
        (void)quern_index_get_def(system->indexes[i], &def);
        (void)quern_index_get_stats(system->indexes[i], &stats);
        quern__print(printer, "%sindex", next_separator(&separator));
        if (def.name != NULL) write_quoted(printer, " ", def.name);
        write_quoted(printer, " of ", quern_component_name(world, def.component));
        if (def.field != NULL) write_quoted(printer, " by ", def.field);
        quern__print(printer, " (");
        write_count(printer, stats.value_count, "value");
        quern__print(printer, " in ");
        write_count(printer, stats.entity_count, "row");
        quern__print(printer, ")");
    }
    for (uint32_t k = 0; k < system->access.resource_count; k++) {
        const quern__resource_use *use = &system->access.resources[k];
        quern__print(printer, "%s%s resource", next_separator(&separator), access_verbs[use->access]);
        write_quoted(printer, " ", world->resources.list.items[use->index].type.name);
        if (use->access == QUERN_ACCESS_WRITE_CONCURRENT) quern__print(printer, " concurrently");
    }
    const quern__event_use *use = &system->events;
    for (uint32_t k = 0; k < use->readers.count; k++) {
        const bool is_items = use->readers.items[k] == use->items;
        quern__print(printer, "%s%s", next_separator(&separator),
                     is_items ? "go over events" : "read events");
        write_quoted(printer, " ", use->readers.items[k]->channel->type.name);
    }
    for (uint32_t k = 0; k < use->emits.count; k++) {
        quern__print(printer, "%semit", next_separator(&separator));
        write_quoted(printer, " ", use->emits.items[k]->type.name);
    }
    write_traits(printer, system);
    quern__print(printer, "\n");
    for (uint32_t i = segment_facts->first_pass; i < segment_facts->end_pass; i++) {
        quern__apart_reason apart;
        if (quern__facts_find_apart_reason(segment, system, facts->passes.items[i].pass, &apart))
            write_apart(printer, segment_facts, system, facts->passes.items[i].pass, &apart);
    }
    quern__facts_load_orders(facts, system);
    for (uint32_t i = segment->first; i < system->position; i++)
        if (quern__bitset_has(facts->kept_orders.items, i))
            write_edge(printer, facts, segment_facts, facts->schedule->plan.order.items[i], system);
}

/* ------------------------------------------------------------------------------------------ passes */

static void write_pass(quern__printer *printer, const quern__facts *facts, uint32_t segment_index,
                       const quern__pass *pass)
{
    const quern__segment_facts *segment = &facts->segments.items[segment_index];
    uint32_t number = quern__facts_number(segment, pass);
    const quern__pass_facts *pass_facts = &facts->passes.items[number];
    quern__print(printer, "    pass %u: ", number + 1);
    static const char *const words[] = {[QUERN__ALONE_EXCLUSIVE] = "exclusive",
                                        [QUERN__ALONE_MAIN_THREAD] = "main thread",
                                        [QUERN__ALONE_RESOURCE] = "serial: writes resource",
                                        [QUERN__ALONE_LOOKUP] = "serial: looks up and writes",
                                        [QUERN__ALONE_QUERY] = "serial: writes by a query",
                                        [QUERN__ALONE_SERIAL] = "serial",
                                        [QUERN__ALONE_EVENTS] = "goes over events",
                                        [QUERN__ALONE_ORDER] = "in an order",
                                        [QUERN__ALONE_NO_TERMS] = "no terms",
                                        [QUERN__ALONE_FUSING_OFF] = "fusing is off"};
    uint32_t index;
    quern__alone_reason alone = quern__facts_alone_reason(pass, &index);
    if (alone == QUERN__NOT_ALONE) {
        write_count(printer, pass->systems.count, "system");
        if (pass->systems.count > 1) quern__print(printer, " fused");
    } else
        quern__print(printer, "alone, %s", words[alone]);
    if (alone == QUERN__ALONE_RESOURCE)
        write_quoted(printer, " ", pass->plan->world->resources.list.items[index].type.name);
    if (alone == QUERN__ALONE_LOOKUP || alone == QUERN__ALONE_QUERY)
        write_quoted(printer, " ",
                     quern__components_type(&pass->plan->world->storage.components, index)->name);
    if (pass->lane_count > 1) quern__print(printer, ", %u lanes", pass->lane_count);
    if (pass->kind != QUERN__PASS_ONCE && pass->systems.items[0]->events.items == NULL) {
        quern__print(printer, "; ");
        write_count(printer, pass_facts->archetype_count, "archetype");
        quern__print(printer, ", ");
        write_count(printer, pass_facts->chunk_count, "chunk");
    }
    if (pass->levels != NULL)
        write_quoted(printer, "; levels of ", relation_name(pass->plan->world, pass->levels));
    const char *separator = "; waits for pass ";
    for (uint32_t k = pass_facts->first_wait; k < pass_facts->end_wait; k++)
        quern__print(printer, "%s%u", next_separator(&separator), facts->waits.items[k] + 1);
    quern__print(printer, "\n");
    for (uint32_t i = 0; i < pass->systems.count; i++)
        write_system(printer, facts, segment_index, pass->systems.items[i]);
}

static void write_segment(quern__printer *printer, const quern__facts *facts, uint32_t segment_index)
{
    static const char *const names[] = {[QUERN__SEGMENT_RUN] = "run",
                                        [QUERN__SEGMENT_EXCLUSIVE] = "exclusive",
                                        [QUERN__SEGMENT_SYNC] = "sync"};
    const quern__segment *segment = &facts->schedule->plan.segments.items[segment_index];
    quern__print(printer, "  %s", names[segment->kind]);
    if (segment->kind == QUERN__SEGMENT_RUN) {
        quern__print(printer, ": ");
        write_load(printer, facts, facts->segments.items[segment_index].load);
    }
    if (segment->sync_before != UINT32_MAX) {
        quern__system *const *order = facts->schedule->plan.order.items;
        const quern__system *system = order[segment->sync_before];
        write_quoted(printer, ": ", system->name);
        write_quoted(printer, " sees the commands of ", order[system->sync_after - 1]->name);
    }
    quern__print(printer, "\n");
    for (uint32_t i = 0; i < segment->passes.count; i++)
        write_pass(printer, facts, segment_index, segment->passes.items[i]);
}

/* --------------------------------------------------------------------------------------------- all */

static void write_reactions(quern__printer *printer, const quern__facts *facts)
{
    const quern__plan *plan = &facts->schedule->plan;
    if (plan->reaction_count == 0) return;
    quern__print(printer, "reactions, in at most ");
    write_count(printer, plan->max_reaction_rounds, "round");
    quern__print(printer, " after each sync point\n");
    for (uint32_t i = plan->first_reaction_segment; i < plan->segments.count; i++)
        write_segment(printer, facts, i);
}

static void describe_text(quern__printer *printer, const quern__facts *facts)
{
    const quern_schedule *schedule = facts->schedule;
    for (uint32_t i = 0; i < schedule->plan.phase_count; i++) {
        const quern__phase *phase = &schedule->plan.phases[i];
        write_quoted(printer, "phase ", phase->name);
        if (phase->step_seconds > 0) {
            quern__print(printer, ", in steps of ");
            quern__print_decimal(printer, seconds_to_ns(phase->step_seconds), 9);
            quern__print(printer, " s, at most %u per frame", phase->max_step_count);
        }
        quern__print(printer, "\n");
        for (uint32_t k = phase->first_segment; k < phase->end_segment; k++)
            write_segment(printer, facts, k);
    }
    write_reactions(printer, facts);
    const char *heading = "order by registration alone\n";
    const quern__plan *plan = &facts->schedule->plan;
    for (uint32_t later = 1; later < plan->order.count; later++) {
        const quern__system *second = plan->order.items[later];
        quern__facts_load_orders(facts, second);
        for (uint32_t earlier = second->group_first; earlier < later; earlier++) {
            const quern__system *first = plan->order.items[earlier];
            if (!quern__facts_has_accidental_order(facts, first, second)) continue;
            quern__print(printer, "%s", heading);
            heading = "";
            write_quoted(printer, "  ", first->name);
            write_quoted(printer, " before ", second->name);
            quern__print(printer, ": ");
            write_cause(printer, first, second, quern__conflict_between(first, second));
            quern__print(printer, "\n");
        }
    }
    quern__print(printer, "frame: ");
    write_load(printer, facts, facts->load);
    quern__print(printer, "\n");
}

/* --------------------------------------------------------------------------------------------- JSON */

/* Writes the schedule as one JSON object; docs/passes.md explains its keys. */

enum { FORMAT_VERSION = 1 };

static void put_load(quern__json *out, const char *key, quern__load load)
{
    quern__json_open(out, key, '{');
    quern__json_integer(out, "work", load.work);
    quern__json_integer(out, "critical_path", load.path);
    if (load.path == 0)
        quern__json_null(out, "parallelism");
    else {
        quern__json_decimal(out, "parallelism", (load.work * 1000 + load.path / 2) / load.path, 3);
    }
    quern__json_close(out, '}');
}

/* ------------------------------------------------------------------------------------------ causes */

static void put_cause(quern__json *out, const quern_schedule *schedule, quern__conflict conflict)
{
    static const char *const words[] = {
        [QUERN__NO_CONFLICT] = "exclusive",         [QUERN__CONFLICT_ORDER] = "before_after",
        [QUERN__CONFLICT_COMPONENT] = "component",  [QUERN__CONFLICT_LEVEL] = "level",
        [QUERN__CONFLICT_LOOKUP] = "lookup",        [QUERN__CONFLICT_RESOURCE] = "resource",
        [QUERN__CONFLICT_DECLARED] = "before_after"};
    const quern__type *type = conflict_type(schedule, conflict);
    quern__json_text(out, "cause", words[conflict.kind]);
    if (type != NULL)
        quern__json_text(out, "name", type->name);
    else
        quern__json_null(out, "name");
}

static void put_component(quern__json *out, const quern__system *system, const char *key, uint32_t index)
{
    if (index == QUERN__FILTER_NONE)
        quern__json_null(out, key);
    else
        quern__json_text(out, key,
                         quern__components_type(&system->plan->world->storage.components, index)->name);
}

static void put_alone(quern__json *out, const quern__pass *pass)
{
    static const char *const words[] = {
        [QUERN__ALONE_EXCLUSIVE] = "exclusive", [QUERN__ALONE_MAIN_THREAD] = "main_thread",
        [QUERN__ALONE_RESOURCE] = "resource",   [QUERN__ALONE_SERIAL] = "serial",
        [QUERN__ALONE_NO_TERMS] = "no_terms",   [QUERN__ALONE_FUSING_OFF] = "fusing_off",
        [QUERN__ALONE_LOOKUP] = "write_lookup", [QUERN__ALONE_QUERY] = "query",
        [QUERN__ALONE_EVENTS] = "events",       [QUERN__ALONE_ORDER] = "order"};
    uint32_t index;
    quern__alone_reason alone = quern__facts_alone_reason(pass, &index);
    if (alone == QUERN__NOT_ALONE) {
        quern__json_null(out, "alone");
        return;
    }
    quern__json_open(out, "alone", '{');
    quern__json_text(out, "reason", words[alone]);
    if (alone == QUERN__ALONE_RESOURCE)
        quern__json_text(out, "name", pass->plan->world->resources.list.items[index].type.name);
    else if (alone == QUERN__ALONE_LOOKUP || alone == QUERN__ALONE_QUERY)
        put_component(out, pass->systems.items[0], "name", index);
    else
        quern__json_null(out, "name");
    quern__json_close(out, '}');
}

static void put_edge(quern__json *out, const quern__facts *facts, const quern__segment_facts *segment,
                     const quern__system *earlier, const quern__system *later)
{
    static const char *const routes[] = {
        [QUERN__ROUTE_PASS] = "pass", [QUERN__ROUTE_GRAPH] = "graph", [QUERN__ROUTE_IMPLIED] = "implied"};
    quern__causes causes;
    quern__facts_causes(earlier, later, &causes);
    if (causes.count == 0) return;
    quern__json_open(out, NULL, '{');
    quern__json_text(out, "before", earlier->name);
    quern__json_text(out, "after", later->name);
    quern__json_open(out, "causes", '[');
    for (uint32_t i = 0; i < causes.count; i++) {
        quern__json_open(out, NULL, '{');
        put_cause(out, facts->schedule, causes.items[i]);
        quern__json_close(out, '}');
    }
    quern__json_close(out, ']');
    quern__json_bool(out, "chunk_local",
                     quern__conflict_is_local((quern__conflict_kind)causes.items[0].kind));
    quern__json_text(out, "kept_by", routes[quern__facts_route(facts, segment, earlier, later)]);
    quern__json_bool(out, "by_registration_alone",
                     quern__facts_has_accidental_order(facts, earlier, later));
    quern__json_close(out, '}');
}

/* Writes the edges from the earlier systems of a segment to one of its systems. */
static void put_edges_to(quern__json *out, const quern__facts *facts, uint32_t segment_index,
                         const quern__system *later, bool direct_only)
{
    const quern__segment *segment = &facts->schedule->plan.segments.items[segment_index];
    const quern__segment_facts *segment_facts = &facts->segments.items[segment_index];
    quern__system *const *order = facts->schedule->plan.order.items;
    quern__facts_load_orders(facts, later);
    for (uint32_t i = segment->first; i < later->position; i++) {
        if (!quern__bitset_has(facts->kept_orders.items, i)) continue;
        if (direct_only &&
            quern__facts_route(facts, segment_facts, order[i], later) == QUERN__ROUTE_IMPLIED)
            continue;
        put_edge(out, facts, segment_facts, order[i], later);
    }
}

/* ----------------------------------------------------------------------------------------- systems */

static const char *const access_words[] = {[QUERN_ACCESS_NONE] = "none",
                                           [QUERN_ACCESS_READ] = "read",
                                           [QUERN_ACCESS_WRITE] = "write",
                                           [QUERN_ACCESS_WRITE_CONCURRENT] = "write_concurrent"};

static void put_lookup_names(quern__json *out, const char *key, const quern__system *system, bool writes)
{
    const quern__lookups *lookups = &system->access.lookups;
    quern__json_open(out, key, '[');
    for (uint32_t i = 0; i < lookups->count; i++)
        if (lookups->list[i].writes == writes) put_component(out, system, NULL, lookups->list[i].index);
    quern__json_close(out, ']');
}

static void put_terms(quern__json *out, const quern_world *world, const quern__query *query)
{
    static const char *const matches[] = {[QUERN_MATCH_ALL] = "all",
                                          [QUERN_MATCH_NONE] = "none",
                                          [QUERN_MATCH_OPTIONAL] = "optional",
                                          [QUERN_MATCH_ANY] = "any"};
    static const char *const enabled_words[] = {
        [QUERN_TERM_ENABLED] = "yes", [QUERN_TERM_DISABLED] = "no", [QUERN_TERM_EITHER] = "either"};
    static const char *const paths[] = {
        [QUERN_PATH_ROW] = "row", [QUERN_PATH_TARGET] = "target", [QUERN_PATH_NEAREST] = "nearest"};
    const quern__components *components = &world->storage.components;
    quern__json_open(out, "terms", '[');
    for (uint32_t k = 0; k < query->term_count; k++) {
        const quern_term *term = &query->terms[k];
        quern__json_open(out, NULL, '{');
        quern__json_text(out, "component", quern_component_name(world, term->component));
        quern__json_text(out, "match", matches[term->match]);
        quern__json_text(out, "access", access_words[term->access]);
        quern__json_bool(out, "changed", term->changed);
        quern__json_bool(out, "old", term->old);
        quern__json_bool(out, "changed_by_row", (query->row_filters >> k & 1) != 0);
        quern__json_text(out, "enabled", enabled_words[term->enabled]);
        quern__json_bool(out, "by_target", term->by_target);
        quern__json_text(out, "path", paths[term->path]);
        if (term->path == QUERN_PATH_ROW)
            quern__json_null(out, "relation");
        else
            quern__json_text(out, "relation",
                             quern__components_type(components, quern__term_index(term))->name);
        quern__json_close(out, '}');
    }
    quern__json_close(out, ']');
}

static void put_order(quern__json *out, const quern_world *world, const quern__query *query)
{
    if (query->order == NULL) {
        quern__json_null(out, "order_by");
        return;
    }
    const quern_order def = quern__order_get_def(query);
    const quern_order_stats stats = quern__order_get_stats(query);
    quern__json_open(out, "order_by", '{');
    quern__json_text(out, "component", quern_component_name(world, def.component));
    if (def.field != NULL)
        quern__json_text(out, "field", def.field);
    else
        quern__json_null(out, "field");
    quern__json_bool(out, "comparison", def.compare != NULL);
    quern__json_bool(out, "descending", def.descending);
    quern__json_integer(out, "rows", stats.row_count);
    quern__json_integer(out, "sorted_rows", stats.sorted_row_count);
    quern__json_integer(out, "sorts", stats.sort_count);
    quern__json_integer(out, "sorts_of_all", stats.all_sorted_count);
    quern__json_close(out, '}');
}

static void put_indexes(quern__json *out, const quern__system *system)
{
    const quern_world *world = system->plan->world;
    quern__json_open(out, "indexes", '[');
    for (uint32_t i = 0; i < system->index_count; i++) {
        quern_index_def def;
        quern_index_stats stats;
        (void)quern_index_get_def(system->indexes[i], &def);
        (void)quern_index_get_stats(system->indexes[i], &stats);
        quern__json_open(out, NULL, '{');
        if (def.name != NULL)
            quern__json_text(out, "name", def.name);
        else
            quern__json_null(out, "name");
        quern__json_text(out, "component", quern_component_name(world, def.component));
        if (def.field != NULL)
            quern__json_text(out, "field", def.field);
        else
            quern__json_null(out, "field");
        quern__json_bool(out, "unique", def.is_unique);
        quern__json_integer(out, "entities", stats.entity_count);
        quern__json_integer(out, "values", stats.value_count);
        quern__json_integer(out, "bytes", stats.bytes);
        quern__json_close(out, '}');
    }
    quern__json_close(out, ']');
}

static void put_access(quern__json *out, const quern__system *system)
{
    const quern_world *world = system->plan->world;
    put_terms(out, world, &system->query);
    put_order(out, world, &system->query);
    put_indexes(out, system);
    quern__json_open(out, "queries", '[');
    for (uint32_t i = 0; i < system->query_count; i++) {
        const quern__query *query = &system->queries[i];
        quern__json_open(out, NULL, '{');
        if (query->name != NULL)
            quern__json_text(out, "name", query->name);
        else
            quern__json_null(out, "name");
        quern__json_bool(out, "whole_chunks", query->whole_chunks);
        put_terms(out, world, query);
        put_order(out, world, query);
        quern__json_close(out, '}');
    }
    quern__json_close(out, ']');
    put_lookup_names(out, "lookups", system, false);
    put_lookup_names(out, "write_lookups", system, true);
    const quern__lookups *lookups = &system->access.lookups;
    quern__json_open(out, "lookup_limits", '[');
    for (uint32_t n = 0; n < lookups->count; n++) {
        const quern__lookup *lookup = &lookups->list[n];
        if (!quern__bitset_has(lookups->limited, lookup->index)) continue;
        quern__json_open(out, NULL, '{');
        put_component(out, system, "component", lookup->index);
        put_component(out, system, "with", lookup->limit.with);
        put_component(out, system, "without", lookup->limit.without);
        quern__json_close(out, '}');
    }
    quern__json_close(out, ']');
    quern__json_open(out, "resources", '[');
    for (uint32_t i = 0; i < system->access.resource_count; i++) {
        const quern__resource_use *use = &system->access.resources[i];
        quern__json_open(out, NULL, '{');
        quern__json_text(out, "resource", world->resources.list.items[use->index].type.name);
        quern__json_text(out, "access", access_words[use->access]);
        quern__json_close(out, '}');
    }
    quern__json_close(out, ']');
}

static void put_levels(quern__json *out, const quern__plan *plan, const quern__relation *relation)
{
    if (relation != NULL)
        quern__json_text(out, "levels", quern__relation_name(&plan->world->storage, relation));
    else
        quern__json_null(out, "levels");
}

static void put_reaction(quern__json *out, const quern__system *system)
{
    if (system->reaction == NULL) {
        quern__json_null(out, "reacts_to");
        return;
    }
    quern__json_open(out, "reacts_to", '[');
    for (uint32_t i = 0; i < REACTION_WORDS; i++)
        if ((system->reacts_to & reaction_names[i].kind) != 0)
            quern__json_text(out, NULL, reaction_names[i].word);
    quern__json_close(out, ']');
}

/* Writes the members of a system that need no facts. */
static void put_system_members(quern__json *out, const quern__system *system)
{
    quern__json_text(out, "name", system->name);
    put_reaction(out, system);
    quern__json_integer(out, "lane", system->lane + 1);
    quern__json_bool(out, "enabled", system->is_enabled);
    quern__json_bool(out, "serial", quern__system_has_flag(system, QUERN_SYSTEM_SERIAL));
    quern__json_bool(out, "whole_chunks", system->query.whole_chunks);
    quern__json_bool(out, "main_thread", quern__system_has_flag(system, QUERN_SYSTEM_MAIN_THREAD));
    quern__json_bool(out, "exclusive", quern__system_has_flag(system, QUERN_SYSTEM_EXCLUSIVE));
    put_levels(out, system->plan, system->levels);
    quern__json_bool(out, "condition", system->condition != NULL);
    quern__json_open(out, "if_changed", '[');
    for (uint32_t k = 0; k < system->access.resource_count; k++)
        if (system->access.resources[k].is_watched)
            quern__json_text(
                out, NULL,
                system->plan->world->resources.list.items[system->access.resources[k].index].type.name);
    quern__json_close(out, ']');
    quern__json_decimal(out, "interval_seconds", seconds_to_ns(system->interval_seconds), 9);
    quern__json_integer(out, "every", system->every);
    quern__json_integer(out, "turn", system->turn);
    quern__json_open(out, "sets", '[');
    for (uint32_t k = 0; k < system->set_names.count; k++)
        quern__json_text(out, NULL, system->set_names.items[k].text);
    quern__json_close(out, ']');
    quern__json_bool(out, "begin", system->begin != NULL);
    quern__json_bool(out, "end", system->end != NULL);
    quern__json_integer(out, "partial_bytes", system->partial_bytes);
    quern__json_integer(out, "archetypes", system->query.matches.count);
    quern__json_integer(out, "chunks", quern__facts_chunk_count(system));
    put_access(out, system);
    const quern__event_use *use = &system->events;
    quern__json_open(out, "emits", '[');
    for (uint32_t k = 0; k < use->emits.count; k++)
        quern__json_text(out, NULL, use->emits.items[k]->type.name);
    quern__json_close(out, ']');
    quern__json_open(out, "reads_events", '[');
    for (uint32_t k = 0; k < use->readers.count; k++)
        if (use->readers.items[k] != use->items)
            quern__json_text(out, NULL, use->readers.items[k]->channel->type.name);
    quern__json_close(out, ']');
    if (use->items != NULL)
        quern__json_text(out, "items", use->items->channel->type.name);
    else
        quern__json_null(out, "items");
}

static void put_system(quern__json *out, const quern__facts *facts, uint32_t segment_index,
                       const quern__system *system)
{
    const quern__segment_facts *segment = &facts->segments.items[segment_index];
    quern__json_open(out, NULL, '{');
    put_system_members(out, system);
    quern__json_open(out, "not_in", '[');
    for (uint32_t i = segment->first_pass; i < segment->end_pass; i++) {
        quern__apart_reason apart;
        if (quern__facts_find_apart_reason(&facts->schedule->plan.segments.items[segment_index], system,
                                           facts->passes.items[i].pass, &apart)) {
            static const char *const words[] = {[QUERN__APART_CONFLICT] = "conflict",
                                                [QUERN__APART_ORDER] = "order",
                                                [QUERN__APART_LEVELS] = "levels",
                                                [QUERN__APART_CHOICE] = "choice"};
            quern__json_open(out, NULL, '{');
            quern__json_integer(out, "pass", i + 1);
            quern__json_text(out, "reason", words[apart.kind]);
            if (apart.other != NULL) {
                quern__json_text(out, "system", apart.other->name);
                put_cause(out, facts->schedule, apart.conflict);
            }
            quern__json_close(out, '}');
        }
    }
    quern__json_close(out, ']');
    quern__json_close(out, '}');
}

/* ------------------------------------------------------------------------------ passes and segments */

static void put_pass(quern__json *out, const quern__facts *facts, uint32_t segment_index, uint32_t number,
                     bool with_edges)
{
    static const char *const kinds[] = {[QUERN__PASS_CHUNKS] = "chunks",
                                        [QUERN__PASS_SERIAL] = "serial",
                                        [QUERN__PASS_EVENTS] = "events",
                                        [QUERN__PASS_ORDERED] = "ordered",
                                        [QUERN__PASS_ONCE] = "once"};
    const quern__pass_facts *pass_facts = &facts->passes.items[number];
    const quern__pass *pass = pass_facts->pass;
    quern__json_open(out, NULL, '{');
    quern__json_integer(out, "pass", number + 1);
    quern__json_text(out, "kind", kinds[pass->kind]);
    put_alone(out, pass);
    quern__json_integer(out, "lanes", pass->lane_count);
    put_levels(out, pass->plan, pass->levels);
    quern__json_integer(out, "archetypes", pass_facts->archetype_count);
    quern__json_integer(out, "chunks", pass_facts->chunk_count);
    quern__json_integer(out, "entities", pass_facts->entity_count);
    quern__json_open(out, "waits_for", '[');
    for (uint32_t i = pass_facts->first_wait; i < pass_facts->end_wait; i++)
        quern__json_integer(out, NULL, facts->waits.items[i] + 1);
    quern__json_close(out, ']');
    quern__json_open(out, "systems", '[');
    for (uint32_t i = 0; i < pass->systems.count; i++) {
        const quern__system *system = pass->systems.items[i];
        if (with_edges) {
            put_system(out, facts, segment_index, system);
            continue;
        }
        quern__json_open(out, NULL, '{');
        quern__json_text(out, "name", system->name);
        quern__json_bool(out, "enabled", system->is_enabled);
        quern__json_close(out, '}');
    }
    quern__json_close(out, ']');
    quern__json_close(out, '}');
}

static void put_segment(quern__json *out, const quern__facts *facts, uint32_t index, bool with_edges)
{
    static const char *const kinds[] = {[QUERN__SEGMENT_RUN] = "run",
                                        [QUERN__SEGMENT_EXCLUSIVE] = "exclusive",
                                        [QUERN__SEGMENT_SYNC] = "sync"};
    const quern__segment *segment = &facts->schedule->plan.segments.items[index];
    const quern__segment_facts *segment_facts = &facts->segments.items[index];
    quern__json_open(out, NULL, '{');
    quern__json_text(out, "kind", kinds[segment->kind]);
    if (segment->kind != QUERN__SEGMENT_SYNC) {
        put_load(out, "load", segment_facts->load);
        quern__json_open(out, "passes", '[');
        for (uint32_t i = 0; i < segment->passes.count; i++)
            put_pass(out, facts, index, quern__facts_number(segment_facts, segment->passes.items[i]),
                     with_edges);
        quern__json_close(out, ']');
        if (with_edges) {
            quern__json_open(out, "edges", '[');
            for (uint32_t i = segment->first; i < segment->end; i++)
                put_edges_to(out, facts, index, facts->schedule->plan.order.items[i], false);
            quern__json_close(out, ']');
        }
    } else if (segment->sync_before != UINT32_MAX) {
        quern__system *const *order = facts->schedule->plan.order.items;
        const quern__system *system = order[segment->sync_before];
        quern__json_text(out, "system", system->name);
        quern__json_text(out, "after_commands_of", order[system->sync_after - 1]->name);
    }
    quern__json_close(out, '}');
}

/* --------------------------------------------------------------------------------------------- all */

/* Writes the segments of a round of reactions, or null without reactions. */
static void put_reactions(quern__json *out, const quern__facts *facts, bool with_edges)
{
    const quern__plan *plan = &facts->schedule->plan;
    if (plan->reaction_count == 0) {
        quern__json_null(out, "reactions");
        return;
    }
    quern__json_open(out, "reactions", '{');
    quern__json_integer(out, "max_rounds", plan->max_reaction_rounds);
    quern__json_open(out, "segments", '[');
    for (uint32_t i = plan->first_reaction_segment; i < plan->segments.count; i++)
        put_segment(out, facts, i, with_edges);
    quern__json_close(out, ']');
    quern__json_close(out, '}');
}

static void put_accidental_orders(quern__json *out, const quern__facts *facts)
{
    const quern_schedule *schedule = facts->schedule;
    quern__json_open(out, "by_registration_alone", '[');
    for (uint32_t later = 1; later < schedule->plan.order.count; later++) {
        const quern__system *second = schedule->plan.order.items[later];
        quern__facts_load_orders(facts, second);
        for (uint32_t earlier = second->group_first; earlier < later; earlier++) {
            const quern__system *first = schedule->plan.order.items[earlier];
            if (!quern__facts_has_accidental_order(facts, first, second)) continue;
            quern__json_open(out, NULL, '{');
            quern__json_text(out, "before", first->name);
            quern__json_text(out, "after", second->name);
            put_cause(out, schedule, quern__conflict_between(first, second));
            quern__json_close(out, '}');
        }
    }
    quern__json_close(out, ']');
}

/* with_edges: false for QUERN_DESCRIBE_PASSES. */
static void describe_json(quern__printer *printer, const quern__facts *facts, bool with_edges)
{
    const quern_schedule *schedule = facts->schedule;
    quern__json out = {.printer = printer, .line_depth = UINT32_MAX};
    quern__json_open(&out, NULL, '{');
    quern__json_integer(&out, "version", FORMAT_VERSION);
    if (schedule->name != NULL)
        quern__json_text(&out, "name", schedule->name);
    else
        quern__json_null(&out, "name");
    quern__json_bool(&out, "fuse", schedule->plan.fuses_systems);
    quern__json_integer(&out, "shuffle_seed", schedule->plan.shuffle_seed);
    quern__json_text(&out, "unit", facts->is_timed ? "ns" : "calls");
    put_load(&out, "load", facts->load);
    quern__json_open(&out, "phases", '[');
    for (uint32_t i = 0; i < schedule->plan.phase_count; i++) {
        const quern__phase *phase = &schedule->plan.phases[i];
        quern__json_open(&out, NULL, '{');
        quern__json_text(&out, "name", phase->name);
        if (phase->step_seconds > 0) {
            quern__json_open(&out, "fixed_step", '{');
            quern__json_decimal(&out, "seconds", seconds_to_ns(phase->step_seconds), 9);
            quern__json_integer(&out, "max_count", phase->max_step_count);
            quern__json_close(&out, '}');
        } else
            quern__json_null(&out, "fixed_step");
        quern__json_open(&out, "segments", '[');
        for (uint32_t k = phase->first_segment; k < phase->end_segment; k++)
            put_segment(&out, facts, k, with_edges);
        quern__json_close(&out, ']');
        quern__json_close(&out, '}');
    }
    quern__json_close(&out, ']');
    put_reactions(&out, facts, with_edges);
    if (with_edges) put_accidental_orders(&out, facts);
    quern__json_close(&out, '}');
}

/* -------------------------------------------------------------------------------------------- calls */

quern_result quern_schedule_describe(quern_schedule *schedule, quern_describe_format format,
                                     quern_sink sink)
{
    QUERN__NEED(schedule);
    quern_result result = quern__check_sink(sink, __func__);
    if (result != QUERN_OK) return result;
    if (format != QUERN_DESCRIBE_TEXT && format != QUERN_DESCRIBE_JSON && format != QUERN_DESCRIBE_PASSES)
        return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                           "quern_schedule_describe: format %d is not a value of quern_describe_format",
                           (int)format);
    result = quern__schedule_compile(schedule, __func__);
    if (result != QUERN_OK) return result;
    quern__facts facts;
    result = quern__facts_gather(&facts, schedule, __func__, true);
    if (result != QUERN_OK) return result;
    quern__printer printer;
    quern__printer_open(&printer, sink);
    if (format == QUERN_DESCRIBE_TEXT)
        describe_text(&printer, &facts);
    else
        describe_json(&printer, &facts, format == QUERN_DESCRIBE_JSON);
    quern__facts_release(&facts);
    return quern__printer_close(&printer, __func__);
}

/* Finds a system, and compiles the schedule. */
static quern_result find_compiled(quern_schedule *schedule, quern_system handle,
                                  const quern__system **out_system, const char *function)
{
    *out_system = quern__schedule_system(schedule, handle);
    if (*out_system == NULL)
        return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                           "%s: the schedule has no system with the handle %u: pass one of its %u systems",
                           function, handle.bits, schedule->plan.systems.count);
    return quern__schedule_compile(schedule, function);
}

quern_result quern_schedule_describe_system(quern_schedule *schedule, quern_system system, quern_sink sink)
{
    const quern__system *found;
    QUERN__NEED(schedule);
    quern_result result = quern__check_sink(sink, __func__);
    if (result == QUERN_OK) result = find_compiled(schedule, system, &found, __func__);
    if (result != QUERN_OK) return result;
    quern__printer printer;
    quern__printer_open(&printer, sink);
    quern__json out = {.printer = &printer};
    quern__json_open(&out, NULL, '{');
    put_system_members(&out, found);
    quern__json_close(&out, '}');
    return quern__printer_close(&printer, __func__);
}

quern_result quern_schedule_describe_edges(quern_schedule *schedule, quern_system system, bool direct_only,
                                           quern_sink sink)
{
    const quern__system *later;
    QUERN__NEED(schedule);
    quern_result result = quern__check_sink(sink, __func__);
    if (result == QUERN_OK) result = find_compiled(schedule, system, &later, __func__);
    if (result != QUERN_OK) return result;
    quern__facts facts;
    result = quern__facts_gather(&facts, schedule, __func__, false);
    if (result != QUERN_OK) return result;
    quern__printer printer;
    quern__printer_open(&printer, sink);
    const quern__plan *plan = &facts.schedule->plan;
    quern__json out = {.printer = &printer};
    uint32_t i = 0;
    quern__json_open(&out, NULL, '[');
    while (i < plan->segments.count && (plan->segments.items[i].kind == QUERN__SEGMENT_SYNC ||
                                        later->position < plan->segments.items[i].first ||
                                        later->position >= plan->segments.items[i].end))
        i++;
    if (i < plan->segments.count) put_edges_to(&out, &facts, i, later, direct_only);
    quern__json_close(&out, ']');
    quern__facts_release(&facts);
    return quern__printer_close(&printer, __func__);
}
