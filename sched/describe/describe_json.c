/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "sched/describe/describe.h"

/* The schedule as one JSON object; docs/passes.md says what its keys mean. */

enum { FORMAT_VERSION = 1 };

typedef struct json {
    quern__writer *writer;
    uint32_t depth;
    bool has_items; /* in what was opened last */
} json;

/* ------------------------------------------------------------------------------------------ syntax */

/* What stands in front of a value: key NULL in an array. */
static void start_value(json *out, const char *key)
{
    if (out->depth > 0)
        quern__write(out->writer, "%s\n%*s", out->has_items ? "," : "", (int)(2 * out->depth), "");
    if (key != NULL) quern__write(out->writer, "\"%s\": ", key);
    out->has_items = true;
}

static void open_value(json *out, const char *key, const char *bracket)
{
    start_value(out, key);
    quern__write(out->writer, "%s", bracket);
    out->depth++;
    out->has_items = false;
}

static void close_value(json *out, const char *bracket)
{
    out->depth--;
    if (out->has_items) quern__write(out->writer, "\n%*s", (int)(2 * out->depth), "");
    quern__write(out->writer, "%s", bracket);
    out->has_items = true;
}

static void put_text(json *out, const char *key, const char *text)
{
    start_value(out, key);
    quern__write(out->writer, "\"");
    quern__write_name(out->writer, text);
    quern__write(out->writer, "\"");
}

static void put_count(json *out, const char *key, uint64_t count)
{
    start_value(out, key);
    quern__write(out->writer, "%llu", (unsigned long long)count);
}

static void put_flag(json *out, const char *key, bool flag)
{
    start_value(out, key);
    quern__write(out->writer, flag ? "true" : "false");
}

static void put_null(json *out, const char *key)
{
    start_value(out, key);
    quern__write(out->writer, "null");
}

static void put_seconds(json *out, const char *key, double seconds)
{
    start_value(out, key);
    quern__write_seconds(out->writer, seconds);
}

static void put_load(json *out, const char *key, quern__load load)
{
    open_value(out, key, "{");
    put_count(out, "work", load.work);
    put_count(out, "critical_path", load.path);
    if (load.path == 0)
        put_null(out, "parallelism");
    else {
        uint64_t thousandths = (load.work * 1000 + load.path / 2) / load.path;
        start_value(out, "parallelism");
        quern__write(out->writer, "%llu.%03llu", (unsigned long long)(thousandths / 1000),
                     (unsigned long long)(thousandths % 1000));
    }
    close_value(out, "}");
}

/* ------------------------------------------------------------------------------------------ causes */

static void put_cause(json *out, const quern_schedule *schedule, quern__conflict conflict)
{
    static const char *const words[] = {
        [QUERN__NO_CONFLICT] = "exclusive",        [QUERN__CONFLICT_ORDER] = "before_after",
        [QUERN__CONFLICT_COMPONENT] = "component", [QUERN__CONFLICT_LOOKUP] = "lookup",
        [QUERN__CONFLICT_RESOURCE] = "resource",   [QUERN__CONFLICT_DECLARED] = "before_after"};
    const quern__type *type = quern__conflict_type(schedule, conflict);
    put_text(out, "cause", words[conflict.kind]);
    if (type != NULL)
        put_text(out, "name", type->name);
    else
        put_null(out, "name");
}

static void put_alone(json *out, const quern__pass *pass)
{
    static const char *const words[] = {
        [QUERN__ALONE_EXCLUSIVE] = "exclusive", [QUERN__ALONE_MAIN_THREAD] = "main_thread",
        [QUERN__ALONE_RESOURCE] = "resource",   [QUERN__ALONE_SERIAL] = "serial",
        [QUERN__ALONE_NO_TERMS] = "no_terms",   [QUERN__ALONE_FUSING_OFF] = "fusing_off"};
    uint32_t resource;
    quern__alone alone = quern__facts_alone(pass, &resource);
    if (alone == QUERN__NOT_ALONE) {
        put_null(out, "alone");
        return;
    }
    open_value(out, "alone", "{");
    put_text(out, "reason", words[alone]);
    if (alone == QUERN__ALONE_RESOURCE)
        put_text(out, "name", pass->plan->world->resources.list.items[resource].type.name);
    else
        put_null(out, "name");
    close_value(out, "}");
}

static void put_apart(json *out, const quern_schedule *schedule, uint32_t number, const quern__apart *apart)
{
    static const char *const words[] = {[QUERN__APART_CONFLICT] = "conflict",
                                        [QUERN__APART_ORDER] = "order",
                                        [QUERN__APART_CHOICE] = "choice"};
    open_value(out, NULL, "{");
    put_count(out, "pass", number + 1);
    put_text(out, "reason", words[apart->kind]);
    if (apart->kind != QUERN__APART_CHOICE) {
        put_text(out, "system", apart->other->name);
        put_cause(out, schedule, apart->conflict);
    }
    close_value(out, "}");
}

static void put_edge(json *out, const quern__facts *facts, const quern__segment_facts *segment,
                     const quern__system *earlier, const quern__system *later)
{
    static const char *const routes[] = {
        [QUERN__ROUTE_PASS] = "pass", [QUERN__ROUTE_GRAPH] = "graph", [QUERN__ROUTE_IMPLIED] = "implied"};
    quern__causes causes;
    quern__facts_causes(earlier, later, &causes);
    if (causes.count == 0) return;
    open_value(out, NULL, "{");
    put_text(out, "before", earlier->name);
    put_text(out, "after", later->name);
    open_value(out, "causes", "[");
    for (uint32_t i = 0; i < causes.count; i++) {
        open_value(out, NULL, "{");
        put_cause(out, facts->schedule, causes.items[i]);
        close_value(out, "}");
    }
    close_value(out, "]");
    put_flag(out, "chunk_local", quern__conflict_is_local((quern__conflict_kind)causes.items[0].kind));
    put_text(out, "kept_by", routes[quern__facts_route(facts, segment, earlier, later)]);
    put_flag(out, "by_registration_alone", quern__facts_is_accidental(facts, earlier, later));
    close_value(out, "}");
}

/* ----------------------------------------------------------------------------------------- systems */

static const char *const access_words[] = {[QUERN_NO_ACCESS] = "none",
                                           [QUERN_READ] = "read",
                                           [QUERN_WRITE] = "write",
                                           [QUERN_WRITE_CONCURRENT] = "write_concurrent"};

static void put_terms(json *out, const quern__system *system)
{
    static const char *const matches[] = {[QUERN_MATCH_ALL] = "all",
                                          [QUERN_MATCH_NONE] = "none",
                                          [QUERN_MATCH_OPTIONAL] = "optional",
                                          [QUERN_MATCH_ANY] = "any"};
    open_value(out, "terms", "[");
    for (uint32_t i = 0; i < system->query.term_count; i++) {
        const quern_term *term = &system->query.terms[i];
        open_value(out, NULL, "{");
        put_text(out, "component", quern_component_name(system->plan->world, term->component));
        put_text(out, "match", matches[term->match]);
        put_text(out, "access", access_words[term->access]);
        put_flag(out, "changed", term->changed);
        close_value(out, "}");
    }
    close_value(out, "]");
}

static void put_access(json *out, const quern__system *system)
{
    const quern_world *world = system->plan->world;
    put_terms(out, system);
    open_value(out, "lookups", "[");
    for (uint32_t i = 0; i < QUERN_MAX_COMPONENTS; i++)
        if (quern__bitset_has(system->access.lookups, i))
            put_text(out, NULL, quern__components_type(&world->storage.components, i)->name);
    close_value(out, "]");
    open_value(out, "resources", "[");
    for (uint32_t i = 0; i < system->access.resource_count; i++) {
        const quern__resource_use *use = &system->access.resources[i];
        open_value(out, NULL, "{");
        put_text(out, "resource", world->resources.list.items[use->index].type.name);
        put_text(out, "access", access_words[use->access]);
        close_value(out, "}");
    }
    close_value(out, "]");
}

static void put_traits(json *out, const quern__system *system)
{
    put_count(out, "lane", system->lane + 1);
    put_flag(out, "enabled", system->enabled);
    put_flag(out, "serial", quern__system_is(system, QUERN_SYSTEM_SERIAL));
    put_flag(out, "main_thread", quern__system_is(system, QUERN_SYSTEM_MAIN_THREAD));
    put_flag(out, "exclusive", quern__system_is(system, QUERN_SYSTEM_EXCLUSIVE));
    put_flag(out, "condition", system->condition != NULL);
    put_seconds(out, "interval_seconds", system->interval_seconds);
    put_flag(out, "begin", system->begin != NULL);
    put_flag(out, "end", system->end != NULL);
    put_count(out, "partial_bytes", system->partial_bytes);
    put_count(out, "archetypes", system->query.matches.count);
    put_count(out, "chunks", quern__facts_chunk_count(system));
}

static void put_system(json *out, const quern__facts *facts, uint32_t segment_index,
                       const quern__system *system)
{
    const quern__segment_facts *segment = &facts->segments.items[segment_index];
    open_value(out, NULL, "{");
    put_text(out, "name", system->name);
    put_traits(out, system);
    put_access(out, system);
    open_value(out, "not_in", "[");
    for (uint32_t i = segment->first_pass; i < segment->end_pass; i++) {
        quern__apart apart;
        if (quern__facts_is_apart(&facts->schedule->plan.segments.items[segment_index], system,
                                  facts->passes.items[i].pass, &apart))
            put_apart(out, facts->schedule, i, &apart);
    }
    close_value(out, "]");
    close_value(out, "}");
}

/* ------------------------------------------------------------------------------ passes and segments */

static void put_pass(json *out, const quern__facts *facts, uint32_t segment_index, uint32_t number)
{
    static const char *const kinds[] = {
        [QUERN__PASS_CHUNKS] = "chunks", [QUERN__PASS_SERIAL] = "serial", [QUERN__PASS_ONCE] = "once"};
    const quern__segment_facts *segment = &facts->segments.items[segment_index];
    const quern__pass_facts *pass_facts = &facts->passes.items[number];
    const quern__pass *pass = pass_facts->pass;
    open_value(out, NULL, "{");
    put_count(out, "pass", number + 1);
    put_text(out, "kind", kinds[pass->kind]);
    put_alone(out, pass);
    put_count(out, "lanes", pass->lane_count);
    put_count(out, "archetypes", pass_facts->archetype_count);
    put_count(out, "chunks", pass_facts->chunk_count);
    put_count(out, "entities", pass_facts->entity_count);
    open_value(out, "waits_for", "[");
    for (uint32_t i = segment->first_pass; i < number; i++)
        if (quern__facts_waits(facts, number, i)) put_count(out, NULL, i + 1);
    close_value(out, "]");
    open_value(out, "systems", "[");
    for (uint32_t i = 0; i < pass->systems.count; i++)
        put_system(out, facts, segment_index, pass->systems.items[i]);
    close_value(out, "]");
    close_value(out, "}");
}

static void put_segment(json *out, const quern__facts *facts, uint32_t index)
{
    static const char *const kinds[] = {[QUERN__SEGMENT_RUN] = "run",
                                        [QUERN__SEGMENT_EXCLUSIVE] = "exclusive",
                                        [QUERN__SEGMENT_SYNC] = "sync"};
    const quern__segment *segment = &facts->schedule->plan.segments.items[index];
    const quern__segment_facts *segment_facts = &facts->segments.items[index];
    open_value(out, NULL, "{");
    put_text(out, "kind", kinds[segment->kind]);
    if (segment->kind != QUERN__SEGMENT_SYNC) {
        put_load(out, "load", segment_facts->load);
        open_value(out, "passes", "[");
        for (uint32_t i = 0; i < segment->passes.count; i++)
            put_pass(out, facts, index, quern__facts_number(segment_facts, segment->passes.items[i]));
        close_value(out, "]");
        open_value(out, "edges", "[");
        for (uint32_t later = segment->first; later < segment->end; later++)
            for (uint32_t earlier = segment->first; earlier < later; earlier++)
                put_edge(out, facts, segment_facts, facts->schedule->plan.order.items[earlier],
                         facts->schedule->plan.order.items[later]);
        close_value(out, "]");
    }
    close_value(out, "}");
}

/* --------------------------------------------------------------------------------------------- all */

static void put_phase(json *out, const quern__facts *facts, const quern__phase *phase)
{
    open_value(out, NULL, "{");
    put_text(out, "name", phase->name);
    if (phase->step_seconds > 0) {
        open_value(out, "fixed_step", "{");
        put_seconds(out, "seconds", phase->step_seconds);
        put_count(out, "max_count", phase->max_step_count);
        close_value(out, "}");
    } else
        put_null(out, "fixed_step");
    open_value(out, "segments", "[");
    for (uint32_t i = phase->first_segment; i < phase->end_segment; i++)
        put_segment(out, facts, i);
    close_value(out, "]");
    close_value(out, "}");
}

static void put_accidents(json *out, const quern__facts *facts)
{
    const quern_schedule *schedule = facts->schedule;
    open_value(out, "by_registration_alone", "[");
    for (uint32_t later = 1; later < schedule->plan.order.count; later++)
        for (uint32_t earlier = 0; earlier < later; earlier++) {
            const quern__system *first = schedule->plan.order.items[earlier];
            const quern__system *second = schedule->plan.order.items[later];
            if (!quern__facts_is_accidental(facts, first, second)) continue;
            open_value(out, NULL, "{");
            put_text(out, "before", first->name);
            put_text(out, "after", second->name);
            put_cause(out, schedule, *quern__plan_conflict(&schedule->plan, earlier, later));
            close_value(out, "}");
        }
    close_value(out, "]");
}

void quern__describe_json(quern__writer *writer, const quern__facts *facts)
{
    const quern_schedule *schedule = facts->schedule;
    json out = {.writer = writer};
    open_value(&out, NULL, "{");
    put_count(&out, "version", FORMAT_VERSION);
    put_flag(&out, "fuse", schedule->plan.fuse);
    put_count(&out, "shuffle_seed", schedule->plan.shuffle_seed);
    put_text(&out, "unit", facts->is_timed ? "ns" : "calls");
    put_load(&out, "load", facts->load);
    open_value(&out, "phases", "[");
    for (uint32_t i = 0; i < schedule->plan.phase_count; i++)
        put_phase(&out, facts, &schedule->plan.phases[i]);
    close_value(&out, "]");
    put_accidents(&out, facts);
    close_value(&out, "}");
    quern__write(writer, "\n");
}
