/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Test labels: threaded */
#include "tests/support/effort.h"
#include "tests/support/random.h"
#include "tests/support/setup.h"

#include <string.h>

/* Row commands of all kinds, single and for views, in any order, on entities that exist and on those that the callback
 * creates, against a naive model in serial order. Runs on several threads must give the same worlds. */

enum {
    FRAMES = 12,
    SEEDS = effort(600, 100, 30),
    KINDS = 4,
    FIRST_ROWS = 60,
    MOST_ROWS = 3000,
    MOST_MADE = 16,
    MOST_COMMANDS = 12
};

typedef struct row {
    uint64_t id;
    quern_entity entity; /* of a new row: null until the end of the frame */
    bool is_alive, has[KINDS];
    uint64_t values[KINDS];
} row;

static quern_world *world;
static quern_component id_type, kinds[KINDS];
static row rows[MOST_ROWS];
static uint32_t row_count, start_count; /* rows in all, and those at the begin of the frame */
static bool starts_alive[MOST_ROWS];
static bool is_modelled;
static uint64_t seed, frame, hashes[FRAMES];

/* ---------------------------------------------------------------------------------------------- model */

static row *find_row(quern_entity entity)
{
    uint32_t i = 0;
    while (i < start_count && (!starts_alive[i] || !quern_entity_equal(rows[i].entity, entity)))
        i++;
    cr_assert_lt(i, start_count, "seed %llu, frame %llu: no row has the entity", (unsigned long long)seed,
                 (unsigned long long)frame);
    return &rows[i];
}

static void model_set(row *of, uint32_t kind, uint64_t value)
{
    of->has[kind] |= of->is_alive;
    if (of->is_alive) of->values[kind] = value;
}

/* ------------------------------------------------------------------------------------------- commands */

/* What a callback draws: the same in each run. */
typedef struct recording {
    quern_commands *commands;
    const quern_view *view;
    random_source random;
    quern_entity made[MOST_MADE];
    row *made_rows[MOST_MADE]; /* NULL: not modelled */
    uint32_t made_count;
} recording;

static void make(recording *of, uint64_t id)
{
    quern_entity *made = &of->made[of->made_count];
    if (random_chance(&of->random, 50)) {
        must(quern_commands_create_with(of->commands, &id_type, (const void *[]){&id}, 1, made));
    } else {
        must(quern_commands_create(of->commands, made));
        must(quern_commands_set(of->commands, *made, id_type, &id));
    }
    if (is_modelled) {
        cr_assert_lt(row_count, (uint32_t)MOST_ROWS);
        of->made_rows[of->made_count] = &rows[row_count];
        rows[row_count++] = (row){.id = id, .is_alive = true};
    }
    of->made_count++;
}

static void change_view(recording *of, uint32_t way, uint32_t kind, uint64_t value)
{
    const quern_view *view = of->view;
    if (way == 0) must(quern_commands_set_view(of->commands, view, NULL, kinds[kind], &value));
    if (way == 1) must(quern_commands_add_view(of->commands, view, NULL, kinds[kind], &value));
    if (way == 2) must(quern_commands_remove_view(of->commands, view, NULL, kinds[kind]));
    if (way == 3) must(quern_commands_destroy_view(of->commands, view, NULL));
    const uint32_t count = is_modelled ? view->count : 0;
    for (uint32_t i = 0; i < count; i++) {
        row *at = find_row(view->entities[i]);
        if (way < 2) model_set(at, kind, value);
        if (way == 2) at->has[kind] = false;
        if (way == 3) at->is_alive = false;
    }
}

static void change_row(recording *of, uint32_t way, uint32_t kind, uint64_t value)
{
    const uint32_t from = random_below(&of->random, 3), number = random_below(&of->random, 1u << 16);
    quern_entity entity = of->view->entities[number % of->view->count];
    row *at = NULL;
    if (from == 0 && of->made_count > 0) {
        entity = of->made[number % of->made_count];
        at = of->made_rows[number % of->made_count];
    } else if (from == 1) {
        if (!starts_alive[number % start_count]) return;
        entity = rows[number % start_count].entity;
    }
    if (way < 3) must(quern_commands_set(of->commands, entity, kinds[kind], &value));
    if (way == 3) must(quern_commands_add(of->commands, entity, kinds[kind], NULL));
    if (way == 4) must(quern_commands_remove(of->commands, entity, kinds[kind]));
    if (way == 5) must(quern_commands_destroy(of->commands, entity));
    if (!is_modelled) return;
    if (at == NULL) at = find_row(entity);
    if (way < 3) model_set(at, kind, value);
    if (way == 3 && !at->has[kind]) model_set(at, kind, 0);
    if (way == 4) at->has[kind] = false;
    if (way == 5) at->is_alive = false;
}

static void record(quern_context *context, const quern_view *view)
{
    const uint64_t first = *(const uint64_t *)quern_view_read(view, 0);
    recording of = {.commands = quern_context_commands(context),
                    .view = view,
                    .random = {seed * 1000003 + frame * 7919 + first}};
    const uint32_t count = random_below(&of.random, MOST_COMMANDS);
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t what = random_below(&of.random, 100), kind = random_below(&of.random, KINDS);
        const uint64_t value = random_below(&of.random, 1000), id = random_next(&of.random);
        if (what < 15 && of.made_count < MOST_MADE)
            make(&of, id);
        else if (what < 32)
            change_view(&of, what % 3, kind, value);
        else if (what == 32 && random_chance(&of.random, 10))
            change_view(&of, 3, kind, value);
        else
            change_row(&of, what % 7 < 6 ? what % 6 : 5 * (uint32_t)random_chance(&of.random, 20), kind,
                       value);
    }
}

/* ---------------------------------------------------------------------------------------------- frames */

static void open_rows(void)
{
    random_source random = {seed};
    row_count = 0;
    world = setup_world();
    id_type = setup_component(world, "id", 8, 8);
    for (uint32_t k = 0; k < KINDS; k++)
        kinds[k] = setup_component(world, (const char *[]){"a", "b", "c", "d"}[k], 8, 8);
    while (row_count < FIRST_ROWS) {
        row *made = &rows[row_count];
        *made = (row){.id = random_next(&random), .entity = setup_entity(world), .is_alive = true};
        row_count++;
        must(quern_entity_set(world, made->entity, id_type, &made->id));
        for (uint32_t k = 0; k < KINDS; k++)
            if (random_chance(&random, 50)) {
                model_set(made, k, random_below(&random, 50));
                must(quern_entity_set(world, made->entity, kinds[k], &made->values[k]));
            }
    }
}

/* Finds the handles of the rows that the frame has created. */
static void find_handles(void)
{
    quern_query *query = setup_query(world, (quern_term[]){quern_term_read(id_type)}, 1);
    quern_query_iterator it = quern_query_iterate(query);
    while (quern_query_next(&it)) {
        const uint64_t *ids = quern_view_read(&it.view, 0);
        const uint32_t count = it.view.count;
        for (uint32_t i = 0; i < count; i++)
            for (uint32_t r = start_count; r < row_count; r++)
                if (rows[r].id == ids[i]) rows[r].entity = it.view.entities[i];
    }
    quern_query_destroy(query);
}

static void compare(void)
{
    for (uint32_t r = 0; r < row_count; r++) {
        const bool is_alive =
            !quern_entity_is_null(rows[r].entity) && quern_entity_is_alive(world, rows[r].entity);
        cr_assert_eq(is_alive, rows[r].is_alive, "seed %llu, frame %llu, row %u%s",
                     (unsigned long long)seed, (unsigned long long)frame, r,
                     r >= start_count ? ", which is new" : "");
        for (uint32_t k = 0; k < KINDS && is_alive; k++) {
            const uint64_t *value = quern_entity_get(world, rows[r].entity, kinds[k]);
            cr_assert_eq(value != NULL, rows[r].has[k], "seed %llu, frame %llu, row %u, component %u",
                         (unsigned long long)seed, (unsigned long long)frame, r, k);
            if (value != NULL)
                cr_assert_eq(*value, rows[r].values[k], "seed %llu, frame %llu, row %u, component %u",
                             (unsigned long long)seed, (unsigned long long)frame, r, k);
        }
    }
    assert_valid(world);
}

/* Runs all frames without threads and compares them with the model, or on some threads with the hashes of the run before. */
static void run_frames(uint32_t thread_count)
{
    static row modelled[FRAMES][MOST_ROWS]; /* the rows at the begin of each frame */
    static uint32_t counts[FRAMES + 1];
    quern_jobs *jobs = NULL;
    quern_schedule *schedule;
    const quern_system_def def = {
        .name = "record", .run = record, .terms = {quern_term_read(id_type)}, .user_data = NULL};
    is_modelled = thread_count == 0;
    if (!is_modelled) must(quern_jobs_create(&(quern_jobs_def){.thread_count = thread_count}, &jobs));
    must(quern_schedule_create(world, NULL, &schedule));
    must(quern_schedule_add_system(schedule, &def, NULL));
    for (frame = 0; frame < FRAMES; frame++) {
        start_count = row_count;
        if (is_modelled) {
            memcpy(modelled[frame], rows, row_count * sizeof *rows);
            counts[frame] = row_count;
        }
        for (uint32_t r = 0; r < start_count; r++)
            starts_alive[r] = modelled[frame][r].is_alive;
        must(quern_schedule_run(schedule, jobs, 0));
        const uint64_t hash = quern_world_hash(world);
        if (!is_modelled) {
            cr_assert_eq(hash, hashes[frame], "seed %llu, frame %llu, %u threads", (unsigned long long)seed,
                         (unsigned long long)frame, thread_count);
            if (frame + 1 == FRAMES) break;
            row_count = counts[frame + 1];
            for (uint32_t r = start_count; r < row_count; r++)
                rows[r] = (row){.id = modelled[frame + 1][r].id};
        }
        hashes[frame] = hash;
        find_handles();
        if (is_modelled) compare();
    }
    quern_schedule_destroy(schedule);
    quern_jobs_destroy(jobs);
    quern_world_destroy(world);
}

Test(row_commands, have_the_effect_of_their_serial_order, .timeout = 300)
{
    for (seed = 1; seed <= SEEDS; seed++) {
        open_rows();
        run_frames(0);
        if (seed % 5 != 0) continue;
        open_rows();
        run_frames(1 + (uint32_t)(seed / 5 % 4));
    }
}
