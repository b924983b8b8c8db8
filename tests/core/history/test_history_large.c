/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Test labels: threaded */
#include "tests/support/effort.h"
#include "tests/support/random.h"
#include "tests/support/setup.h"

/* A world of many chunks. Its saves are large enough to be divided among threads and to store past the
 * caches; the memory between the copied columns must not change. */

enum { ENTITIES = 20000, FRAMES = 12, KEPT = 6, TURNS = effort(30, 30, 12), PARTS = 3 };

static const uint32_t part_bytes[PARTS] = {12, 20, 36};

typedef struct large {
    quern_world *world;
    quern_history *history;
    quern_jobs *jobs;
    quern_component parts[PARTS];
    quern_query *queries[PARTS]; /* query i writes component i */
    quern_query *all;
} large;

static large it;
static quern_entity entities[2 * ENTITIES];
static uint64_t hashes[FRAMES + 1];

static void open_world(uint32_t thread_count)
{
    static const char *const names[PARTS] = {"a", "b", "c"};
    it = (large){.world = setup_world()};
    for (uint32_t i = 0; i < PARTS; i++) {
        it.parts[i] = make_component(it.world, .name = names[i], .size_bytes = part_bytes[i],
                                     .alignment_bytes = 4, .row_changes = i == 1);
        it.queries[i] = setup_query(it.world, (quern_term[]){quern_term_write(it.parts[i])}, 1);
    }
    it.all = setup_query(it.world, (quern_term[]){quern_term_read(it.parts[0])}, 1);
    for (uint32_t i = 0; i < ENTITIES; i++)
        must(quern_entity_create_with(it.world, it.parts, NULL, PARTS, NULL));
    must(quern_jobs_create(&(quern_jobs_def){.thread_count = thread_count}, &it.jobs));
    must(quern_history_create(it.world, &(quern_history_def){.frame_count = KEPT}, &it.history));
}

static void close_world(void)
{
    quern_history_destroy(it.history);
    for (uint32_t i = 0; i < PARTS; i++)
        quern_query_destroy(it.queries[i]);
    quern_query_destroy(it.all);
    quern_jobs_destroy(it.jobs);
    quern_world_destroy(it.world);
}

/* Writes one component in some chunks. */
static void write_part(random_source *random, uint32_t part, uint32_t percent)
{
    quern_query_iterator walk = quern_query_iterate(it.queries[part]);
    while (quern_query_next(&walk)) {
        if (!random_chance(random, percent)) continue;
        uint32_t *words = quern_view_write(&walk.view, 0);
        for (uint32_t i = 0; i < walk.view.count * part_bytes[part] / 4; i++)
            words[i] = words[i] * 31 + (uint32_t)random->state + i;
    }
    must(walk.result);
}

/* Destroys and creates entities, so that archetypes lose and get chunks at the end. */
static void turn_over(random_source *random)
{
    uint32_t count = 0;
    quern_query_iterator walk = quern_query_iterate(it.all);
    while (quern_query_next(&walk))
        for (uint32_t i = 0; i < walk.view.count; i++)
            entities[count++] = walk.view.entities[i];
    must(walk.result);
    const uint32_t gone = random_below(random, 400), come = random_below(random, 400);
    for (uint32_t i = 0; i < gone; i++)
        quern_entity_destroy(it.world, entities[random_below(random, count)]);
    for (uint32_t i = 0; i < come; i++)
        must(quern_entity_create_with(it.world, it.parts, NULL, PARTS, NULL));
}

/* Makes the changes of one frame. Equal worlds get equal changes. */
static void run_frame(uint64_t frame)
{
    static const uint32_t percents[] = {0, 3, 40, 100};
    random_source random = {frame};
    for (uint32_t part = 0; part < PARTS; part++)
        write_part(&random, part, percents[random_below(&random, 4)]);
    if (random_chance(&random, 50)) turn_over(&random);
}

static void expect(uint64_t frame)
{
    must(quern_world_validate(it.world));
    const uint64_t hash = quern_world_hash(it.world);
    cr_assert_eq(hash, hashes[frame], "frame %llu: hash %llx, not %llx", (unsigned long long)frame,
                 (unsigned long long)hash, (unsigned long long)hashes[frame]);
}

static void save_all(void)
{
    bool has_copied_much = false, has_copied_little = false;
    for (uint64_t frame = 0; frame <= FRAMES; frame++) {
        if (frame > 0) run_frame(frame);
        hashes[frame] = quern_world_hash(it.world);
        must(quern_history_save(it.history, frame, it.jobs));
        quern_history_stats stats;
        must(quern_history_get_stats(it.history, &stats));
        has_copied_much |= frame > 0 && stats.copied_bytes > 1024 * 1024;
        has_copied_little |= stats.copied_bytes < 400 * 1024;
    }
    cr_assert(has_copied_much && has_copied_little, "saves both ways");
}

/* Restores random frames, from worlds that have continued or not. */
static void go_about(void)
{
    random_source random = {7};
    for (uint32_t turn = 0; turn < TURNS; turn++) {
        uint64_t oldest = 0, newest = 0;
        cr_assert(quern_history_get_frames(it.history, &oldest, &newest));
        uint64_t frame = oldest + random_below(&random, (uint32_t)(newest - oldest + 1));
        must(quern_history_restore(it.history, frame, it.jobs));
        expect(frame);
        for (uint32_t left = random_below(&random, 3); left > 0 && frame < FRAMES; left--) {
            run_frame(++frame);
            if (random_chance(&random, 60)) must(quern_history_save(it.history, frame, it.jobs));
            expect(frame);
        }
    }
}

Test(history_large, each_frame_is_restored_at_any_thread_count)
{
    static const uint32_t thread_counts[] = {1, 2, 3, 8};
    for (uint32_t i = 0; i < sizeof thread_counts / sizeof thread_counts[0]; i++) {
        open_world(thread_counts[i]);
        save_all();
        go_about();
        close_world();
    }
}
