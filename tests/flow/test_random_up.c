/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Test labels: threaded, optimised */
#include "tests/flow/flow_setup.h"
#include "tests/support/effort.h"
#include "tests/support/fixture.h"
#include "tests/support/random.h"

#include <stdio.h>
#include <string.h>

/* Random systems with up-terms that change the world by commands. Before each frame the test reads the
 * world by handles. From that a naive model computes row by row the values that each system must
 * produce. The results must be equal at every thread count, with passes fused or not. */

enum {
    TYPES = 4,
    RELATIONS = 2, /* a forest with levels, and a relation without levels that may have cycles */
    ENTITIES = 500,
    SLOTS = 4096,
    SYSTEMS = 9,
    MAX_UPS = 2,
    FRAMES = 5,
    PROGRAMS = effort(25, 12, 4)
};

typedef struct random_up {
    uint32_t type, relation;
    quern_term_path path;
    bool is_optional;
} random_up;

typedef struct random_system {
    char name[8];
    uint32_t index, written; /* type that it writes in its rows */
    uint64_t salt;
    random_up ups[MAX_UPS];
    uint32_t up_count;
    uint32_t barred;    /* a type that its rows must lack; TYPES: none */
    bool goes_by_level; /* runs by level, so it may read upward the type that it writes */
} random_system;

/* The state of an entity in the model. */
typedef struct naive_row {
    quern_entity entity;
    bool is_there, has[TYPES];
    uint64_t values[TYPES];
    quern_entity targets[RELATIONS];
    uint32_t depth;
} naive_row;

static uint64_t seed;
static random_system systems[SYSTEMS];
static quern_schedule *schedule;
static quern_component types[TYPES], wide, everyone;
static quern_relation relations[RELATIONS];
static quern_entity hubs[ENTITIES];
static naive_row rows[SLOTS];
/* slots of the living entities, targets before their sources */
static uint32_t by_depth[SLOTS], row_count;
/* over all programs; they show that the cases under test occur */
static uint64_t run_count, shown_count, deep_count;

static uint64_t mix(uint64_t a, uint64_t b)
{
    random_source source = {a * 31 + b};
    return random_next(&source);
}

/* -------------------------------------------------------------------------------------- the program */

static void choose_up(random_system *system, random_source *random)
{
    random_up *up = &system->ups[system->up_count];
    *up = (random_up){.type = random_below(random, TYPES),
                      .relation = random_below(random, RELATIONS),
                      .path = random_chance(random, 60) ? QUERN_PATH_TARGET : QUERN_PATH_NEAREST,
                      .is_optional = random_chance(random, 40)};
    if (system->goes_by_level) up->relation = 0;
    if (up->type == system->written && !system->goes_by_level) return;
    for (uint32_t i = 0; i < system->up_count; i++)
        if (up->type == system->ups[i].type && up->relation == system->ups[i].relation &&
            up->path == system->ups[i].path)
            return;
    system->up_count++;
}

static void choose_systems(void)
{
    random_source random = {seed};
    for (uint32_t i = 0; i < SYSTEMS; i++) {
        random_system *system = &systems[i];
        *system = (random_system){.index = i,
                                  .written = random_below(&random, TYPES),
                                  .salt = random_next(&random),
                                  .barred = TYPES,
                                  .goes_by_level = random_chance(&random, 30)};
        snprintf(system->name, sizeof system->name, "s%u", i);
        for (uint32_t k = random_below(&random, MAX_UPS + 1); k > 0; k--)
            choose_up(system, &random);
        if (random_chance(&random, 30)) system->barred = random_below(&random, TYPES);
        if (system->barred == system->written) system->barred = TYPES;
    }
}

static quern_term term_of(const random_up *up)
{
    return quern_term_up_make(types[up->type], relations[up->relation],
                              up->is_optional ? QUERN_MATCH_OPTIONAL : QUERN_MATCH_ALL, up->path);
}

static void list_terms(const random_system *system, quern_access access, quern_term *terms)
{
    terms[0] = quern_term_make(types[system->written], QUERN_MATCH_ALL, access);
    for (uint32_t i = 0; i < system->up_count; i++)
        terms[1 + i] = term_of(&system->ups[i]);
    if (system->barred < TYPES) terms[1 + system->up_count] = quern_term_without(types[system->barred]);
}

/* --------------------------------------------------------------------------------------- callbacks */

/* Returns the new value of a row. An element of ups is NULL if there is no value. */
static uint64_t next_value(const random_system *system, uint64_t value, const uint64_t *const *ups)
{
    for (uint32_t i = 0; i < system->up_count; i++)
        value = mix(value, ups[i] != NULL ? *ups[i] : 77);
    return mix(value, system->salt);
}

/* Returns the random number that selects the command for an entity in a frame. */
static uint64_t lot_of(quern_entity entity, uint64_t frame)
{
    return mix(mix(seed, frame), quern_entity_index(entity));
}

/* Records the command that `lot` selects. Commands that fail at once because their target is dead, or
 * that are dropped later, are part of the test. */
static void record(quern_commands *commands, quern_entity entity, uint64_t lot)
{
    const uint32_t pick = (uint32_t)(lot >> 32);
    const quern_relation relation = relations[pick / 7 % RELATIONS];
    const quern_component set[] = {everyone, types[pick % TYPES], wide};
    quern_entity created;
    switch (lot / SYSTEMS % 8) {
    case 0:
        must(quern_commands_add(commands, entity, types[pick % TYPES], NULL));
        break;
    case 1:
        must(quern_commands_remove(commands, entity, types[pick % TYPES]));
        break;
    case 2:
    case 3:
        (void)quern_commands_relate(commands, entity, relation, hubs[pick % ENTITIES]);
        break;
    case 4:
        (void)quern_commands_unrelate(commands, entity, relation);
        break;
    case 5:
        created = record_entity_with(commands, set, NULL, 2 + pick % 2);
        must(quern_commands_relate(commands, created, relation, entity));
        break;
    case 6:
        if (pick % 4 == 0) must(quern_commands_destroy(commands, entity));
        break;
    default:
        break;
    }
}

static void run(quern_context *context, const quern_view *view)
{
    const random_system *system = quern_context_user_data(context);
    const uint64_t frame = quern_context_frame_index(context);
    uint64_t *own = QUERN_COLUMN(view, 0, uint64_t);
    const uint64_t *const *ups[MAX_UPS] = {NULL};
    for (uint32_t i = 0; i < system->up_count; i++)
        ups[i] = QUERN_UP(view, 1 + i, uint64_t);
    for (uint32_t row = 0; row < view->count; row++) {
        const uint64_t *found[MAX_UPS] = {NULL};
        for (uint32_t i = 0; i < system->up_count; i++)
            found[i] = ups[i][row];
        own[row] = next_value(system, own[row], found);
        const uint64_t lot = lot_of(view->entities[row], frame);
        if (lot % SYSTEMS == system->index)
            record(quern_context_commands(context), view->entities[row], lot);
    }
}

/* ------------------------------------------------------------------------------------------- the world */

static void make_entities(void)
{
    random_source random = {seed};
    for (uint32_t i = 0; i < ENTITIES; i++) {
        const quern_component all[] = {everyone, wide};
        hubs[i] = setup_entity_with(world, all, 1 + i % 2);
        for (uint32_t type = 0; type < TYPES; type++)
            if (random_chance(&random, 60))
                must(quern_entity_add(world, hubs[i], types[type], &(uint64_t){i * 10 + type}));
        const uint32_t near = i > 0 ? i - 1 : 0; /* some chains are deeper than the limit of levels */
        const uint32_t above = random_chance(&random, 50) ? near : random_below(&random, i + 1);
        if (i % 40 != 0 && above != i) must(quern_entity_relate(world, hubs[i], relations[0], hubs[above]));
    }
    for (uint32_t i = 0; i < ENTITIES; i++) {
        const uint32_t other = random_below(&random, ENTITIES);
        if (other != i && i % 3 != 0) must(quern_entity_relate(world, hubs[i], relations[1], hubs[other]));
    }
}

static void open_program(quern_schedule_def style)
{
    static const char *const names[TYPES] = {"a", "b", "c", "d"};
    world = setup_world();
    for (uint32_t i = 0; i < TYPES; i++)
        types[i] = setup_component(world, names[i], 8, 8);
    wide = setup_component(world, "wide", 512, 8);
    everyone = setup_tag(world, "everyone");
    relations[0] = make_relation(world, .name = "in", .levels = true, .ordered = true);
    relations[1] = make_relation(world, .name = "likes", .on_target_destroyed = QUERN_TARGET_UNRELATES);
    make_entities();
    schedule = setup_schedule_as(world, style, 1);
    for (uint32_t i = 0; i < SYSTEMS; i++) {
        quern_system_def def = system_def(systems[i].name, run);
        list_terms(&systems[i], QUERN_ACCESS_WRITE, def.terms);
        def.user_data = &systems[i];
        if (systems[i].goes_by_level) def.levels = relations[0];
        setup_system(schedule, &def);
    }
}

/* ------------------------------------------------------------------------------------------- the model */

static naive_row *row_of(quern_entity entity)
{
    return quern_entity_is_null(entity) ? NULL : &rows[quern_entity_index(entity)];
}

static uint32_t depth_of(const naive_row *row)
{
    uint32_t depth = 0;
    while ((row = row_of(row->targets[0])) != NULL)
        depth++;
    return depth;
}

static void read_world(void)
{
    memset((void *)rows, 0, sizeof rows);
    row_count = 0;
    quern_query *query = setup_query(world, (quern_term[]){quern_term_with(everyone)}, 1);
    quern_query_iterator it = quern_query_iterate(query);
    while (quern_query_next(&it))
        for (uint32_t i = 0; i < it.view.count; i++) {
            const quern_entity entity = it.view.entities[i];
            cr_assert_lt(quern_entity_index(entity), (uint32_t)SLOTS);
            naive_row *row = row_of(entity);
            *row = (naive_row){.entity = entity, .is_there = true};
            for (uint32_t type = 0; type < TYPES; type++) {
                const uint64_t *value = quern_entity_get(world, entity, types[type]);
                row->has[type] = value != NULL;
                if (value != NULL) row->values[type] = *value;
            }
            for (uint32_t k = 0; k < RELATIONS; k++)
                row->targets[k] = quern_entity_target(world, entity, relations[k]);
            by_depth[row_count++] = quern_entity_index(entity);
        }
    must(it.result);
    quern_query_destroy(query);
    for (uint32_t i = 0; i < row_count; i++)
        rows[by_depth[i]].depth = depth_of(&rows[by_depth[i]]);
    for (uint32_t i = 1; i < row_count; i++)
        for (uint32_t k = i; k > 0 && rows[by_depth[k]].depth < rows[by_depth[k - 1]].depth; k--) {
            const uint32_t slot = by_depth[k];
            by_depth[k] = by_depth[k - 1];
            by_depth[k - 1] = slot;
        }
}

static const uint64_t *naive_up(const naive_row *row, const random_up *up)
{
    const naive_row *at = row_of(row->targets[up->relation]);
    if (up->path == QUERN_PATH_TARGET)
        return at != NULL && at->has[up->type] ? &at->values[up->type] : NULL;
    for (uint32_t steps = 0; at != NULL && steps < SLOTS; steps++) {
        if (at->has[up->type]) return &at->values[up->type];
        at = row_of(at->targets[up->relation]);
    }
    return NULL;
}

/* Whether the row matches the system. Sets the values that its up-terms show. */
static bool naive_matches(const random_system *system, const naive_row *row, const uint64_t **out_ups)
{
    if (!row->has[system->written]) return false;
    if (system->barred < TYPES && row->has[system->barred]) return false;
    for (uint32_t i = 0; i < system->up_count; i++) {
        out_ups[i] = naive_up(row, &system->ups[i]);
        if (out_ups[i] == NULL && !system->ups[i].is_optional) return false;
    }
    return true;
}

static void play_naively(void)
{
    for (uint32_t s = 0; s < SYSTEMS; s++)
        for (uint32_t i = 0; i < row_count; i++) {
            naive_row *row = &rows[by_depth[i]];
            const uint64_t *ups[MAX_UPS] = {NULL};
            if (!naive_matches(&systems[s], row, ups)) continue;
            uint64_t *value = &row->values[systems[s].written];
            *value = next_value(&systems[s], *value, ups);
        }
}

/* Compares values. Only systems change them. */
static void compare_values(uint64_t frame)
{
    for (uint32_t i = 0; i < row_count; i++) {
        const naive_row *row = &rows[by_depth[i]];
        if (!quern_entity_is_alive(world, row->entity)) continue;
        for (uint32_t type = 0; type < TYPES; type++) {
            const uint64_t *value = quern_entity_get(world, row->entity, types[type]);
            if (value == NULL || !row->has[type]) continue;
            cr_assert_eq(*value, row->values[type], "program %llu, frame %llu: '%u' of slot %u",
                         (unsigned long long)seed, (unsigned long long)frame, type,
                         quern_entity_index(row->entity));
        }
    }
}

/* Asserts that a query with the terms of a system visits the same rows and shows the same values. */
static void compare_loop(const random_system *system)
{
    quern_term terms[2 + MAX_UPS] = {{.changed = false}};
    list_terms(system, QUERN_ACCESS_READ, terms);
    quern_query *query = setup_query(world, terms, 1 + system->up_count + (system->barred < TYPES));
    uint32_t seen_count = 0, expected_count = 0;
    quern_query_iterator it = quern_query_iterate(query);
    while (quern_query_next(&it))
        for (uint32_t i = 0; i < it.view.count; i++, seen_count++) {
            const uint64_t *ups[MAX_UPS] = {NULL};
            run_count += i == 0 && it.view.first_row > 0;
            cr_assert(naive_matches(system, row_of(it.view.entities[i]), ups));
            for (uint32_t k = 0; k < system->up_count; k++) {
                const uint64_t *shown = QUERN_UP(&it.view, 1 + k, uint64_t)[i];
                cr_assert_eq(shown != NULL, ups[k] != NULL);
                if (shown != NULL) cr_assert_eq(*shown, *ups[k]);
                shown_count += shown != NULL;
                deep_count += row_of(it.view.entities[i])->depth > QUERN_MAX_RELATION_LEVEL;
            }
        }
    must(it.result);
    for (uint32_t i = 0; i < row_count; i++) {
        const uint64_t *ups[MAX_UPS] = {NULL};
        expected_count += naive_matches(system, &rows[by_depth[i]], ups);
    }
    cr_assert_eq(seen_count, expected_count);
    cr_assert_eq(quern_query_count(query), expected_count);
    quern_query_destroy(query);
}

/* ------------------------------------------------------------------------------------------------ all */

static void play(quern_schedule_def style, uint32_t thread_count, uint64_t hashes[FRAMES], bool is_first)
{
    open_program(style);
    quern_jobs *jobs = setup_jobs(thread_count);
    for (uint64_t frame = 0; frame < FRAMES; frame++) {
        if (is_first) {
            read_world();
            for (uint32_t i = 0; i < SYSTEMS; i++)
                compare_loop(&systems[i]);
            play_naively();
        }
        must_run(schedule, jobs);
        must(quern_world_validate(world));
        if (is_first) {
            compare_values(frame);
            hashes[frame] = quern_world_hash(world);
        }
        cr_assert_eq(quern_world_hash(world), hashes[frame], "program %llu, frame %llu, on %u threads",
                     (unsigned long long)seed, (unsigned long long)frame, thread_count);
    }
    quern_jobs_destroy(jobs);
    close_world();
}

Test(random_up, systems_match_the_naive_model_on_any_number_of_threads)
{
    for (seed = 1; seed <= PROGRAMS; seed++) {
        uint64_t hashes[FRAMES];
        choose_systems();
        play(schedule_style((uint32_t)seed % STYLE_COUNT), 0, hashes, true);
        for (uint32_t i = 0; i < POOL_COUNT; i++)
            play(schedule_style((uint32_t)(seed + i) % STYLE_COUNT), pool_threads[i], hashes, false);
    }
    cr_assert_gt(shown_count, PROGRAMS * 400u);
    cr_assert_gt(deep_count, PROGRAMS * 4u, "below the deepest level");
    cr_assert_gt(run_count, PROGRAMS * 40u, "chunks came in runs");
}
