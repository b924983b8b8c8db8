/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Test labels: threaded, optimised */
#include "core/storage/entity.h"
#include "tests/flow/flow_setup.h"
#include "tests/support/effort.h"

#include <string.h>

/* Trimming releases pages of entity records between frames; sync points allocate them again. The result
 * must be equal at every thread count. */

enum {
    LEVEL_COUNT = 3 * QUERN__PAGE_RECORDS / 2,
    MAX_COUNT = 6 * QUERN__PAGE_RECORDS,
    ROUND_COUNT = effort(4, 4, 2),
    COMMAND_COUNT = 300
};

typedef struct trimmed {
    quern_world *world;
    quern_component number;
    quern_query *query;
    quern_schedule *schedule;
    uint64_t given_back_bytes;
} trimmed;

static trimmed subject;
static quern_entity listed[MAX_COUNT], gone[MAX_COUNT];
static uint32_t gone_count;

/* Of 16 entities one is destroyed on average, and two create another entity. */
static void destroy_and_create(quern_context *context, const quern_view *view)
{
    const trimmed *it = quern_context_user_data(context);
    quern_commands *commands = quern_context_commands(context);
    for (uint32_t i = 0; i < view->count; i++) {
        const uint32_t chance = (uint32_t)(quern_entity_seed(it->world, view->entities[i]) % 16);
        if (chance == 0) must(quern_commands_destroy(commands, view->entities[i]));
        if (chance == 1 || chance == 2) record_entity_with(commands, &it->number, NULL, 1);
    }
}

static void open_trimmed(trimmed *it)
{
    it->world = setup_world();
    it->number = setup_component(it->world, "number", 4, 4);
    it->query = setup_query(it->world, (quern_term[]){quern_term_read(it->number)}, 1);
    it->schedule = setup_schedule(it->world);
    make_system(it->schedule, "breed", destroy_and_create, .terms = {quern_term_read(it->number)},
                .user_data = it);
    it->given_back_bytes = 0;
    gone_count = 0;
}

static void close_trimmed(trimmed *it)
{
    quern_schedule_destroy(it->schedule);
    quern_query_destroy(it->query);
    quern_world_destroy(it->world);
}

/* Lists all entities except those with slots in one page. */
static uint32_t list_others(const trimmed *it, uint32_t page)
{
    uint32_t count = 0;
    quern_query_iterator walk = quern_query_iterate(it->query);
    while (quern_query_next(&walk))
        for (uint32_t i = 0; i < walk.view.count; i++)
            if (quern_entity_index(walk.view.entities[i]) / QUERN__PAGE_RECORDS != page)
                listed[count++] = walk.view.entities[i];
    must(walk.result);
    return count;
}

/* Records commands that wait for the next frame. Meanwhile trimming releases slots of entities that they
 * name. */
static void record(const trimmed *it, const quern_entity *entities, uint32_t count)
{
    quern_commands *commands = quern_world_commands(it->world);
    cr_assert_not_null(commands);
    for (uint32_t i = 0; i < count; i++) {
        must(quern_commands_destroy(commands, entities[i]));
        cr_assert_not(quern_entity_is_null(record_entity_with(commands, &it->number, NULL, 1)));
    }
}

static void leave_all_but(trimmed *it, uint32_t page)
{
    const uint32_t count = list_others(it, page);
    record(it, listed, COMMAND_COUNT);
    must(quern_entity_destroy_many(it->world, listed, count));
    memcpy(gone, listed, count * sizeof *gone);
    gone_count = count;
    const uint64_t before = stats_of_world(it->world).held_bytes;
    must(quern_world_trim(it->world));
    it->given_back_bytes += before - stats_of_world(it->world).held_bytes;
}

static void play_frame(const trimmed *it, quern_jobs *jobs)
{
    must(quern_schedule_run(it->schedule, jobs, 0.1));
    assert_valid(it->world);
    for (uint32_t i = 0; i < gone_count; i++)
        cr_assert_not(quern_entity_is_alive(it->world, gone[i]));
}

static void play(uint32_t thread_count, uint64_t *out_hashes)
{
    trimmed *it = &subject;
    quern_jobs *jobs = setup_jobs(thread_count);
    open_trimmed(it);
    for (uint32_t round = 0; round < ROUND_COUNT; round++) {
        must(quern_entity_create_many(it->world, &it->number, NULL, 1, LEVEL_COUNT, NULL));
        play_frame(it, jobs);
        leave_all_but(it, round % 3);
        play_frame(it, jobs);
        out_hashes[round] = quern_world_hash(it->world);
    }
    cr_assert_gt(it->given_back_bytes, 0u);
    close_trimmed(it);
    quern_jobs_destroy(jobs);
}

Test(trimmed, trimmed_worlds_are_equal_at_every_thread_count, .timeout = 300)
{
    uint64_t expected[ROUND_COUNT], hashes[ROUND_COUNT];
    play(pool_threads[0], expected);
    for (uint32_t i = 1; i < POOL_COUNT; i++) {
        play(pool_threads[i], hashes);
        cr_assert_arr_eq(hashes, expected, sizeof expected, "%u threads", pool_threads[i]);
    }
}
