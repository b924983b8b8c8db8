/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Test labels: threaded, optimised */
#include "tests/flow/flow_setup.h"
#include "tests/support/effort.h"
#include "tests/support/fixture.h"
#include "tests/support/random.h"

#include <stdlib.h>
#include <string.h>

/* Random systems with further queries against nested loops: a second world runs the same program by plain queries outside of
 * systems, one system after another, one view after another, and a query inside the other. Both worlds must be equal after
 * each frame, at all numbers of threads, with passes fused or not. Every value depends on the order in which a query shows
 * rows. Programs with change filters have no such model; their results must be equal at all settings. */

enum { VALUES = 5, TAGS = 2, TYPES = VALUES + TAGS, SYSTEMS = 9, QUERIES = 3, ENTITIES = 700, FRAMES = 5 };
enum { CAN_DISABLE = 3, BY_ROW = 4 }; /* values with a flag */

typedef struct drawn_query {
    quern_match matches[TYPES]; /* 0: no term */
    quern_access accesses[TYPES];
    bool changed[TYPES];
    bool either; /* CAN_DISABLE: enabled or not */
    uint32_t up; /* value that an up-term reads; VALUES: none */
    quern_match up_match;
    bool up_nearest, by_target, whole_chunks;
} drawn_query;

typedef struct drawn_system {
    drawn_query own, queries[QUERIES];
    uint32_t query_count, flags;
} drawn_system;

typedef struct program {
    uint64_t seed;
    random_source random;
    bool has_filters;
    drawn_system systems[SYSTEMS];
    uint32_t system_count;
} program;

/* A world and what its frames need. */
typedef struct run {
    const program *drawn;
    random_source random; /* of changes between frames */
    quern_world *world;
    quern_component types[TYPES];
    quern_relation owner;
    quern_entity entities[ENTITIES];
    quern_schedule *schedule; /* NULL: nested loops */
    quern_system systems[SYSTEMS];
    quern_query *queries[SYSTEMS][1 + QUERIES]; /* of nested loops: own terms, then the further queries */
} run;

/* ------------------------------------------------------------------------------------------------ draw */

static drawn_query draw_query(program *drawn, bool is_own)
{
    drawn_query query = {.up = VALUES, .up_match = QUERN_MATCH_OPTIONAL};
    random_source *random = &drawn->random;
    for (uint32_t count = 0; count == 0 || random_chance(random, 65); count++) {
        const uint32_t type = random_below(random, TYPES);
        query.matches[type] = (quern_match)(1 + random_below(random, type < VALUES ? 4 : 2));
        query.accesses[type] = QUERN_ACCESS_NONE;
        if (type < VALUES && query.matches[type] != QUERN_MATCH_NONE)
            query.accesses[type] =
                random_chance(random, is_own ? 45 : 12) ? QUERN_ACCESS_WRITE : QUERN_ACCESS_READ;
        query.changed[type] = drawn->has_filters && type < VALUES &&
                              query.matches[type] != QUERN_MATCH_NONE && random_chance(random, 30);
    }
    query.either = random_chance(random, 30);
    query.whole_chunks = random_chance(random, 30);
    if (is_own) return query;
    query.by_target = random_chance(random, 12);
    if (!random_chance(random, 25)) return query;
    query.up = random_below(random, VALUES);
    query.up_nearest = random_chance(random, 30);
    if (random_chance(random, 40)) query.up_match = QUERN_MATCH_ALL;
    return query;
}

static drawn_system draw_system(program *drawn)
{
    drawn_system system = {.own = draw_query(drawn, true)};
    bool has_target = false;
    if (random_chance(&drawn->random, 15)) system.flags = QUERN_SYSTEM_SERIAL;
    if (system.own.whole_chunks) system.flags |= QUERN_SYSTEM_WHOLE_CHUNKS;
    system.query_count = random_below(&drawn->random, QUERIES + 1);
    for (uint32_t i = 0; i < system.query_count; i++) {
        system.queries[i] = draw_query(drawn, false);
        if (has_target) system.queries[i].by_target = false;
        has_target |= system.queries[i].by_target;
    }
    return system;
}

static void list_terms(const run *it, const drawn_query *query, quern_term *terms)
{
    for (uint32_t i = 0; i < TYPES; i++) {
        if (query->matches[i] == 0) continue;
        *terms = quern_term_make(it->types[i], query->matches[i], query->accesses[i]);
        terms->changed = query->changed[i];
        if (i == CAN_DISABLE && query->either) *terms = quern_term_either(*terms);
        terms++;
    }
    if (query->up < VALUES)
        *terms++ = quern_term_up_make(it->types[query->up], it->owner, query->up_match,
                                      query->up_nearest ? QUERN_PATH_NEAREST : QUERN_PATH_TARGET);
    if (query->by_target) *terms = quern_term_target(it->owner, it->entities[0]);
}

/* ---------------------------------------------------------------------------------------------- callbacks */

static uint64_t mix(uint64_t sum, uint64_t value)
{
    return (sum ^ value) * 0x9E3779B97F4A7C15u + (sum >> 29);
}

/* Mixes the values that a row has in the terms of a query that read. */
static uint64_t mix_row(const quern_term *terms, const quern_view *view, uint32_t row, uint64_t sum)
{
    for (uint32_t i = 0; i < view->term_count; i++) {
        if (terms[i].path != QUERN_PATH_ROW) {
            const void *value = quern_view_up(view, i)[row];
            sum = mix(sum, value != NULL ? *(const uint64_t *)value : 7);
        } else if (terms[i].access != QUERN_ACCESS_NONE) {
            const uint64_t *values = quern_view_read(view, i);
            sum = mix(sum, values != NULL ? values[row] : i);
        }
    }
    return sum;
}

static void write_row(const quern_term *terms, const quern_view *view, uint32_t row, uint64_t sum)
{
    for (uint32_t i = 0; i < view->term_count; i++) {
        if (terms[i].access != QUERN_ACCESS_WRITE || !quern_view_has(view, i)) continue;
        uint64_t *values = quern_view_write_rows(view, i);
        values[row] = mix(values[row], sum);
        (void)quern_view_mark_row(view, i, row);
    }
}

/* A view of the own terms, with what a system has for it: a context, or the queries of nested loops. */
typedef struct call {
    const run *it;
    const drawn_system *system;
    quern_context *context;
    quern_query *const *queries;
    quern_term own[QUERN_MAX_TERMS], terms[QUERIES][QUERN_MAX_TERMS];
} call;

static call begin_call(const run *it, uint32_t number, quern_context *context)
{
    call made = {.it = it, .system = &it->drawn->systems[number], .context = context};
    made.queries = it->queries[number] + 1;
    list_terms(it, &made.system->own, made.own);
    for (uint32_t i = 0; i < made.system->query_count; i++)
        list_terms(it, &made.system->queries[i], made.terms[i]);
    return made;
}

static quern_query_iterator iterate(const call *of, uint32_t i)
{
    return of->context != NULL ? quern_context_query(of->context, i) : quern_query_iterate(of->queries[i]);
}

/* Reads the rows of all further queries, nested in each other, and writes those that they write. */
static uint64_t visit_queries(const call *of, uint32_t i, uint64_t sum)
{
    if (i == of->system->query_count) return sum;
    quern_query_iterator it = iterate(of, i);
    uint32_t view_count = 0;
    while (quern_query_next(&it)) {
        quern_row_iterator rows = quern_view_iterate_rows(&it.view);
        uint32_t row;
        while (quern_view_next_row(&rows, &row)) {
            sum = mix_row(of->terms[i], &it.view, row, sum);
            write_row(of->terms[i], &it.view, row, sum);
        }
        /* an inner query for few views, so that the work stays small */
        if (view_count++ == 0) sum = visit_queries(of, i + 1, sum);
    }
    cr_assert_eq(it.result, QUERN_OK);
    return sum;
}

static void visit_view(const call *of, const quern_view *view)
{
    quern_row_iterator rows = quern_view_iterate_rows(view);
    uint32_t row, count = 0;
    uint64_t sum = 1;
    while (quern_view_next_row(&rows, &row)) {
        /* each view looks twice: some writes are between */
        if (count++ < 2) sum = visit_queries(of, 0, mix_row(of->own, view, row, sum));
        write_row(of->own, view, row, mix_row(of->own, view, row, sum));
    }
}

typedef struct system_data {
    const run *it;
    uint32_t number;
} system_data;

static system_data data_of_systems[SYSTEMS];

static void run_system(quern_context *context, const quern_view *view)
{
    const system_data *data = quern_context_user_data(context);
    const call of = begin_call(data->it, data->number, context);
    visit_view(&of, view);
}

/* -------------------------------------------------------------------------------------------------- worlds */

static void change_entity(run *it, uint32_t i)
{
    random_source *random = &it->random;
    quern_entity *entity = &it->entities[i];
    const bool is_new = i > 0 && random_chance(random, 10);
    if (is_new && quern_entity_is_alive(it->world, *entity)) must(quern_entity_destroy(it->world, *entity));
    /* it may have been destroyed with its owner */
    if (!quern_entity_is_alive(it->world, *entity)) must(quern_entity_create(it->world, entity));
    for (uint32_t type = 0; type < TYPES; type++) {
        const uint64_t value = random_next(random);
        if (random_chance(random, 25)) (void)quern_entity_remove(it->world, *entity, it->types[type]);
        if (!random_chance(random, 25)) continue;
        must(quern_entity_set(it->world, *entity, it->types[type], type < VALUES ? &value : NULL));
        if (type == CAN_DISABLE)
            must(quern_entity_set_component_enabled(it->world, *entity, it->types[type], value % 2 == 0));
    }
    const quern_entity target = it->entities[random_below(random, i + 1)];
    if (quern_entity_is_alive(it->world, target) && random_chance(random, 40))
        (void)quern_entity_relate(it->world, *entity, it->owner, target);
    if (i > 0 && random_chance(random, 10))
        must(quern_entity_set_enabled(it->world, *entity, random_chance(random, 50)));
}

static void change_world(run *it, uint32_t percent)
{
    for (uint32_t i = 0; i < ENTITIES; i++)
        if (random_chance(&it->random, percent)) change_entity(it, i);
}

static void open_run(run *it, const program *drawn)
{
    static const char *const names[] = {"a", "b", "c", "d", "e", "s", "t"};
    *it = (run){.drawn = drawn, .random = {drawn->seed}, .world = setup_world()};
    for (uint32_t i = 0; i < TYPES; i++) {
        it->types[i] = make_component(it->world, .name = names[i], .size_bytes = i < VALUES ? 8 : 0,
                                      .alignment_bytes = i < VALUES ? 8 : 0,
                                      .can_disable = i == CAN_DISABLE, .row_changes = i == BY_ROW);
    }
    it->owner = make_relation(it->world, .name = "owner");
    for (uint32_t i = 0; i < ENTITIES; i++)
        must(quern_entity_create(it->world, &it->entities[i]));
    change_world(it, 100);
}

static quern_result add_system(run *it, uint32_t number)
{
    static const char *const names[SYSTEMS] = {"s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7", "s8"};
    const drawn_system *system = &it->drawn->systems[number];
    quern_system_def def = system_def(names[number], run_system);
    def.flags = system->flags;
    data_of_systems[number] = (system_data){it, number};
    def.user_data = &data_of_systems[number];
    list_terms(it, &system->own, def.terms);
    for (uint32_t i = 0; i < system->query_count; i++) {
        list_terms(it, &system->queries[i], def.queries[i].terms);
        def.queries[i].whole_chunks = system->queries[i].whole_chunks;
    }
    return quern_schedule_add_system(it->schedule, &def, &it->systems[number]);
}

static void add_queries(run *it, uint32_t number)
{
    const drawn_system *system = &it->drawn->systems[number];
    for (uint32_t i = 0; i <= system->query_count; i++) {
        const drawn_query *query = i == 0 ? &system->own : &system->queries[i - 1];
        quern_query_def def = {.whole_chunks = query->whole_chunks};
        list_terms(it, query, def.terms);
        must(quern_query_create(it->world, &def, &it->queries[number][i]));
    }
}

/* Draws systems that the library does not refuse. */
static program draw_program(uint64_t seed)
{
    program drawn = {.seed = seed, .random = {seed * 7919 + 1}};
    run *it = malloc(sizeof *it);
    drawn.has_filters = seed % 3 == 0;
    open_run(it, &drawn);
    it->schedule = setup_schedule(it->world);
    while (drawn.system_count < SYSTEMS) {
        drawn.systems[drawn.system_count] = draw_system(&drawn);
        const quern_result result = add_system(it, drawn.system_count);
        cr_assert(result == QUERN_OK || result == QUERN_ERROR_SCHEDULE_CONFLICT, "%s",
                  quern_error_message());
        drawn.system_count += result == QUERN_OK;
    }
    quern_schedule_destroy(it->schedule);
    quern_world_destroy(it->world);
    free(it);
    return drawn;
}

static void run_loops(run *it)
{
    for (uint32_t number = 0; number < SYSTEMS; number++) {
        const call of = begin_call(it, number, NULL);
        quern_query_iterator own = quern_query_iterate(it->queries[number][0]);
        while (quern_query_next(&own))
            visit_view(&of, &own.view);
        cr_assert_eq(own.result, QUERN_OK);
    }
}

static void aim(run *it, quern_entity target)
{
    for (uint32_t number = 0; number < SYSTEMS; number++) {
        const drawn_system *system = &it->drawn->systems[number];
        for (uint32_t i = 0; i < system->query_count; i++) {
            if (!system->queries[i].by_target) continue;
            if (it->schedule != NULL)
                must(quern_schedule_set_target(it->schedule, it->systems[number], target));
            else
                must(quern_query_set_target(it->queries[number][1 + i], target));
        }
    }
}

/* Runs the program, and stores the hash of the world after each frame. style: that of a schedule; STYLE_COUNT: nested
 * loops. */
static void run_program(const program *drawn, uint32_t style, uint32_t thread_count, uint64_t *hashes)
{
    run *it = malloc(sizeof *it);
    quern_jobs *jobs = setup_jobs(thread_count);
    open_run(it, drawn);
    if (style < STYLE_COUNT) it->schedule = setup_schedule_as(it->world, schedule_style(style), 1);
    for (uint32_t i = 0; i < SYSTEMS; i++)
        if (it->schedule != NULL)
            must(add_system(it, i));
        else
            add_queries(it, i);
    for (uint32_t frame = 0; frame < FRAMES; frame++) {
        if (it->schedule != NULL)
            must_run(it->schedule, jobs);
        else
            run_loops(it);
        hashes[frame] = quern_world_hash(it->world);
        if (frame % 2 == 1) change_world(it, 5);
        if (quern_entity_is_alive(it->world, it->entities[frame % 3])) aim(it, it->entities[frame % 3]);
    }
    for (uint32_t i = 0; i < SYSTEMS; i++)
        for (uint32_t k = 0; k <= QUERIES; k++)
            quern_query_destroy(it->queries[i][k]);
    quern_schedule_destroy(it->schedule);
    assert_valid(it->world);
    quern_world_destroy(it->world);
    quern_jobs_destroy(jobs);
    free(it);
}

Test(queried, random_systems_agree_with_nested_loops)
{
    enum { SEEDS = effort(16, 4, 5) };
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        const program drawn = draw_program(seed);
        uint64_t expected[FRAMES], hashes[FRAMES];
        run_program(&drawn, drawn.has_filters ? 1 : STYLE_COUNT, 0, expected);
        for (uint32_t i = 0; i < SETTING_COUNT; i++) {
            const frame_setting setting = frame_setting_at(i, (uint32_t)seed);
            run_program(&drawn, setting.style, setting.thread_count, hashes);
            for (uint32_t frame = 0; frame < FRAMES; frame++)
                cr_assert_eq(hashes[frame], expected[frame], "seed %u, frame %u, style %u, %u threads",
                             (unsigned)seed, frame, setting.style, setting.thread_count);
        }
    }
}
