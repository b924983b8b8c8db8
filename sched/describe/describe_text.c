/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "sched/describe/describe.h"

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
    quern__write_quoted(printer, " ", quern_component_name(world, term->component));
    if (term->by_target) quern__print(printer, " of one target");
    if (term->changed)
        quern__print(printer, (query->row_filters >> i & 1) != 0 ? " if changed, by row" : " if changed");
    if (term->enabled == QUERN_TERM_DISABLED) quern__print(printer, " if disabled");
    if (term->enabled == QUERN_TERM_EITHER) quern__print(printer, " enabled or not");
    if (term->path == QUERN_PATH_ROW) return;
    quern__print(printer, term->path == QUERN_PATH_TARGET ? " upward" : " of the nearest ancestor");
    quern__write_quoted(printer, " by ",
                        quern__components_type(&world->storage.components, quern__term_index(term))->name);
}

/* Returns the separator before the next element of a list. */
static const char *next_separator(const char **separator)
{
    const char *now = *separator;
    *separator = ", ";
    return now;
}

static void write_lookup(quern__printer *printer, const quern_world *world, const quern__lookup *lookup)
{
    const quern__components *components = &world->storage.components;
    const quern__archetype_filter limit = lookup->limit;
    quern__write_quoted(printer, lookup->writes ? "look up and write " : "look up ",
                        quern__components_type(components, lookup->index)->name);
    if (limit.with != QUERN__FILTER_NONE)
        quern__write_quoted(printer, " with ", quern__components_type(components, limit.with)->name);
    if (limit.without != QUERN__FILTER_NONE)
        quern__write_quoted(printer, " without ", quern__components_type(components, limit.without)->name);
}

static void write_events(quern__printer *printer, const quern__event_use *use, const char **separator)
{
    for (uint32_t i = 0; i < use->readers.count; i++) {
        const bool is_items = use->readers.items[i] == use->items;
        quern__print(printer, "%s%s", next_separator(separator),
                     is_items ? "go over events" : "read events");
        quern__write_quoted(printer, " ", use->readers.items[i]->channel->type.name);
    }
    for (uint32_t i = 0; i < use->emits.count; i++) {
        quern__print(printer, "%semit", next_separator(separator));
        quern__write_quoted(printer, " ", use->emits.items[i]->type.name);
    }
}

static void write_access(quern__printer *printer, const quern__system *system)
{
    const quern_world *world = system->plan->world;
    const char *separator = ": ";
    for (uint32_t i = 0; i < system->query.term_count; i++) {
        quern__print(printer, "%s", next_separator(&separator));
        write_term(printer, world, &system->query, i);
    }
    for (uint32_t i = 0; i < system->access.lookups.count; i++) {
        quern__print(printer, "%s", next_separator(&separator));
        write_lookup(printer, world, &system->access.lookups.list[i]);
    }
    for (uint32_t i = 0; i < system->access.resource_count; i++) {
        const quern__resource_use *use = &system->access.resources[i];
        quern__print(printer, "%s%s resource", next_separator(&separator), access_verbs[use->access]);
        quern__write_quoted(printer, " ", world->resources.list.items[use->index].type.name);
        if (use->access == QUERN_ACCESS_WRITE_CONCURRENT) quern__print(printer, " concurrently");
    }
    write_events(printer, &system->events, &separator);
}

static const char *relation_name(const quern_world *world, const quern__relation *relation)
{
    return quern__relation_name(&world->storage, relation);
}

/* Writes "; reacts to added, removed". */
static void write_reaction(quern__printer *printer, const quern__system *system)
{
    const char *separator = "; reacts to ";
    for (uint32_t i = 0; i < QUERN__REACTION_WORDS; i++)
        if ((system->reacts_to & quern__reaction_names[i].kind) != 0)
            quern__print(printer, "%s%s", next_separator(&separator), quern__reaction_names[i].word);
    quern__write_quoted(printer, "; of phase ", system->plan->phases[system->phase].name);
}

static void write_traits(quern__printer *printer, const quern__system *system)
{
    if (system->reaction != NULL) write_reaction(printer, system);
    if (system->pass->lane_count > 1) quern__print(printer, "; lane %u", system->lane + 1);
    if (system->levels != NULL)
        quern__write_quoted(printer, "; levels of ", relation_name(system->plan->world, system->levels));
    if (system->condition != NULL) quern__print(printer, "; condition");
    if (system->interval_seconds > 0) {
        quern__print(printer, "; every ");
        quern__print_decimal(printer, quern__seconds_to_ns(system->interval_seconds), 9);
        quern__print(printer, " s");
    }
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
    quern__write_quoted(printer, "        after ", earlier->name);
    if (route != QUERN__ROUTE_PASS)
        quern__print(printer, " of pass %u", quern__facts_number(segment, earlier->pass) + 1);
    const char *separator = ": ";
    for (uint32_t i = 0; i < causes.count; i++) {
        quern__print(printer, "%s", next_separator(&separator));
        quern__write_cause(printer, earlier, later, causes.items[i]);
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
        quern__write_quoted(printer, "        not with ", apart->other->name);
        quern__print(printer, " in pass %u: ", number);
        quern__write_cause(printer, apart->other, system, apart->conflict);
        break;
    case QUERN__APART_ORDER:
        quern__print(printer, "        not in pass %u:", number);
        quern__write_quoted(printer, " ", apart->other->name);
        quern__print(printer,
                     " of pass %u must come first: ", quern__facts_number(segment, apart->other->pass) + 1);
        quern__write_cause(printer, apart->other, system, apart->conflict);
        break;
    case QUERN__APART_LEVELS:
        quern__print(printer, "        not in pass %u: that goes by the levels of", number);
        quern__write_quoted(printer, " ", relation_name(system->plan->world, pass->levels));
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
    quern__write_quoted(printer, "      ", system->name);
    write_access(printer, system);
    write_traits(printer, system);
    quern__print(printer, "\n");
    for (uint32_t i = segment_facts->first_pass; i < segment_facts->end_pass; i++) {
        quern__apart_reason apart;
        if (quern__facts_find_apart_reason(segment, system, facts->passes.items[i].pass, &apart))
            write_apart(printer, segment_facts, system, facts->passes.items[i].pass, &apart);
    }
    quern__facts_load_row(facts, system);
    for (uint32_t i = segment->first; i < system->position; i++)
        if (quern__bitset_has(facts->kept_orders.items, i))
            write_edge(printer, facts, segment_facts, facts->schedule->plan.order.items[i], system);
}

/* ------------------------------------------------------------------------------------------ passes */

static void write_fusion(quern__printer *printer, const quern__pass *pass)
{
    static const char *const words[] = {[QUERN__ALONE_EXCLUSIVE] = "exclusive",
                                        [QUERN__ALONE_MAIN_THREAD] = "main thread",
                                        [QUERN__ALONE_RESOURCE] = "serial: writes resource",
                                        [QUERN__ALONE_LOOKUP] = "serial: looks up and writes",
                                        [QUERN__ALONE_SERIAL] = "serial",
                                        [QUERN__ALONE_EVENTS] = "goes over events",
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
        quern__write_quoted(printer, " ", pass->plan->world->resources.list.items[index].type.name);
    if (alone == QUERN__ALONE_LOOKUP)
        quern__write_quoted(printer, " ",
                            quern__components_type(&pass->plan->world->storage.components, index)->name);
    if (pass->lane_count > 1) quern__print(printer, ", %u lanes", pass->lane_count);
}

static void write_waits(quern__printer *printer, const quern__facts *facts, const quern__pass_facts *pass)
{
    const char *separator = "; waits for pass ";
    for (uint32_t i = pass->first_wait; i < pass->end_wait; i++)
        quern__print(printer, "%s%u", next_separator(&separator), facts->waits.items[i] + 1);
}

static void write_pass(quern__printer *printer, const quern__facts *facts, uint32_t segment_index,
                       const quern__pass *pass)
{
    const quern__segment_facts *segment = &facts->segments.items[segment_index];
    uint32_t number = quern__facts_number(segment, pass);
    const quern__pass_facts *pass_facts = &facts->passes.items[number];
    quern__print(printer, "    pass %u: ", number + 1);
    write_fusion(printer, pass);
    if (pass->kind != QUERN__PASS_ONCE && pass->systems.items[0]->events.items == NULL) {
        quern__print(printer, "; ");
        write_count(printer, pass_facts->archetype_count, "archetype");
        quern__print(printer, ", ");
        write_count(printer, pass_facts->chunk_count, "chunk");
    }
    if (pass->levels != NULL)
        quern__write_quoted(printer, "; levels of ", relation_name(pass->plan->world, pass->levels));
    write_waits(printer, facts, pass_facts);
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
    quern__print(printer, "\n");
    for (uint32_t i = 0; i < segment->passes.count; i++)
        write_pass(printer, facts, segment_index, segment->passes.items[i]);
}

/* --------------------------------------------------------------------------------------------- all */

static void write_phase(quern__printer *printer, const quern__facts *facts, const quern__phase *phase)
{
    quern__write_quoted(printer, "phase ", phase->name);
    if (phase->step_seconds > 0) {
        quern__print(printer, ", in steps of ");
        quern__print_decimal(printer, quern__seconds_to_ns(phase->step_seconds), 9);
        quern__print(printer, " s, at most %u per frame", phase->max_step_count);
    }
    quern__print(printer, "\n");
    for (uint32_t i = phase->first_segment; i < phase->end_segment; i++)
        write_segment(printer, facts, i);
}

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

static void write_accidental_orders(quern__printer *printer, const quern__facts *facts)
{
    const char *heading = "order by registration alone\n";
    const quern__plan *plan = &facts->schedule->plan;
    for (uint32_t later = 1; later < plan->order.count; later++) {
        const quern__system *second = plan->order.items[later];
        quern__facts_load_row(facts, second);
        for (uint32_t earlier = second->group_first; earlier < later; earlier++) {
            const quern__system *first = plan->order.items[earlier];
            if (!quern__facts_has_accidental_order(facts, first, second)) continue;
            quern__print(printer, "%s", heading);
            heading = "";
            quern__write_quoted(printer, "  ", first->name);
            quern__write_quoted(printer, " before ", second->name);
            quern__print(printer, ": ");
            quern__write_cause(printer, first, second, quern__conflict_between(first, second));
            quern__print(printer, "\n");
        }
    }
}

void quern__describe_text(quern__printer *printer, const quern__facts *facts)
{
    const quern_schedule *schedule = facts->schedule;
    for (uint32_t i = 0; i < schedule->plan.phase_count; i++)
        write_phase(printer, facts, &schedule->plan.phases[i]);
    write_reactions(printer, facts);
    write_accidental_orders(printer, facts);
    quern__print(printer, "frame: ");
    write_load(printer, facts, facts->load);
    quern__print(printer, "\n");
}
