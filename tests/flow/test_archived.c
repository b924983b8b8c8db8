/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Test labels: threaded, optimised */
#include "core/world/world_internal.h"
#include "tests/flow/flow_setup.h"
#include "tests/flow/flow_subject.h"
#include "tests/support/effort.h"

/* Saves and loads random worlds. The loaded world must have the hash of the saved one, and its further
 * frames must be equal at every thread count. For worlds saved before their first frame, or with the state
 * of their schedule, they must also equal the frames of the saved world. */

enum { FRAME_COUNT = effort(5, 4, 4), SEED_COUNT = effort(5, 2, 2), ENTITY_COUNT = effort(900, 300, 300) };

static flow_plan plan;
static uint64_t expected[FRAME_COUNT];

/* Creates entities with random sets of components, destroys most of them and removes the empty
 * archetypes. The indices of the remaining archetypes change, but their chunk layouts are those of the
 * old indices, which matters if an archetype has several chunks. */
static void replace_archetypes(const flow_subject *subject, random_source *random)
{
    for (uint32_t i = 0; i < 300; i++) {
        const uint64_t set = random_next(random);
        quern_component list[FLOW_TYPE_COUNT];
        uint32_t count = 0;
        for (uint32_t type = 0; type < FLOW_TYPE_COUNT; type++)
            if ((set >> type & 1) != 0) list[count++] = subject->components[type];
        must(quern_entity_destroy(subject->world, setup_entity_with(subject->world, list, count)));
        if (random_chance(random, 4))
            must(quern_entity_create_many(subject->world, list, NULL, count, 40, NULL));
    }
    must(quern_world_remove_empty_archetypes(subject->world, NULL));
}

/* Writes handles of other worlds and provisional handles to links. The library does not check values
 * that systems write. */
static void write_foreign_handles(const flow_subject *subject, random_source *random)
{
    quern_query *query = flow_subject_query_all(subject);
    for (quern_query_iterator it = quern_query_iterate(query); quern_query_next(&it);)
        for (uint32_t i = random_below(random, 9); i < it.view.count; i += 9)
            for (uint32_t type = 0; type < FLOW_TYPE_COUNT; type++) {
                if (flow_types[type].link_count == 0) continue;
                uint64_t *words =
                    quern_entity_get(subject->world, it.view.entities[i], subject->components[type]);
                const uint64_t other_tag = (uint64_t)(1 + random_below(random, 255)) << 56;
                if (words != NULL)
                    *words = random_chance(random, 50) ? UINT64_C(3) << 32 | i : *words ^ other_tag;
            }
    quern_query_destroy(query);
}

static quern_byte_buffer save(const flow_subject *subject)
{
    quern_byte_buffer memory = {0};
    must(quern_world_save(subject->world, quern_sink_bytes(&memory), NULL));
    return memory;
}

/* Opens a subject without entities and loads the archive into its world. */
static void open_from(flow_subject *subject, const quern_byte_buffer *memory, uint64_t frame, uint64_t hash)
{
    const uint32_t entity_count = plan.entity_count;
    quern_load_report report;
    plan.entity_count = 0;
    flow_subject_open(subject, &plan, NULL);
    plan.entity_count = entity_count;
    must(quern_world_load(subject->world, quern_source_bytes(memory->bytes, memory->size_bytes), NULL,
                          &report));
    cr_assert(report.keeps_handles);
    cr_assert_eq(quern_world_hash(subject->world), hash, "seed %llu", (unsigned long long)plan.seed);
    assert_valid(subject->world);
    subject->first = (quern_entity){(uint64_t)subject->world->storage.entities.first_handle_high << 32};
    subject->frame_index = frame;
}

static void play(flow_subject *subject, uint32_t thread_count, bool notes)
{
    quern_jobs *jobs = setup_jobs(thread_count);
    for (uint32_t frame = 0; frame < FRAME_COUNT; frame++) {
        flow_subject_call(subject, jobs);
        flow_subject_must_run(subject, jobs);
        const uint64_t hash = quern_world_hash(subject->world);
        if (notes) expected[frame] = hash;
        cr_assert_eq(hash, expected[frame], "seed %llu, frame %u, %u threads",
                     (unsigned long long)plan.seed, frame, thread_count);
    }
    assert_valid(subject->world);
    flow_subject_close(subject);
    quern_jobs_destroy(jobs);
}

Test(archived, loaded_world_plays_the_same_frames_as_the_saved_one, .timeout = 600)
{
    for (uint64_t seed = 701; seed <= 700 + SEED_COUNT; seed++) {
        flow_plan_make(&plan, seed, seed % 2 == 0 ? 40 : ENTITY_COUNT);
        flow_subject subject, loaded;
        random_source random = {seed};
        flow_subject_open(&subject, &plan, NULL);
        replace_archetypes(&subject, &random);
        quern_byte_buffer memory = save(&subject);
        const uint64_t hash = quern_world_hash(subject.world);
        play(&subject, 0, true);
        for (uint32_t i = 0; i < POOL_COUNT; i++) {
            open_from(&loaded, &memory, 0, hash);
            play(&loaded, pool_threads[i], false);
        }
        quern_byte_buffer_release(&memory);
    }
}

/* The loaded world gets a new schedule. So the frames of the saved world after saving are no reference;
 * the first loaded world is. */
Test(archived, world_loaded_after_frames_plays_the_same_at_every_thread_count, .timeout = 600)
{
    for (uint64_t seed = 801; seed <= 800 + SEED_COUNT; seed++) {
        flow_plan_make(&plan, seed, seed % 2 == 0 ? 40 : ENTITY_COUNT);
        flow_subject subject, loaded;
        flow_subject_open(&subject, &plan, NULL);
        random_source random = {seed};
        for (uint32_t frame = 0; frame < FRAME_COUNT; frame++) {
            flow_subject_call(&subject, NULL);
            flow_subject_must_run(&subject, NULL);
            replace_archetypes(&subject, &random);
        }
        write_foreign_handles(&subject, &random);
        /* applies what exclusive systems have recorded on the world */
        must(quern_world_flush(subject.world));
        quern_byte_buffer memory = save(&subject);
        const uint64_t hash = quern_world_hash(subject.world);
        flow_subject_close(&subject);
        for (uint32_t i = 0; i < POOL_COUNT; i++) {
            open_from(&loaded, &memory, FRAME_COUNT, hash);
            play(&loaded, pool_threads[i], i == 0);
        }
        quern_byte_buffer_release(&memory);
    }
}

/* The results of a frame. `seen` and `conditions` are the test program's own state, which an archive lacks. */
typedef struct outcome {
    uint64_t hash, seen, conditions;
} outcome;

static outcome look(const flow_subject *subject)
{
    outcome it = {.hash = quern_world_hash(subject->world), .seen = subject->seen};
    for (uint32_t i = 0; i < plan.system_count; i++)
        it.conditions += subject->players[i].condition_count;
    return it;
}

static bool is_same(const outcome *a, const outcome *b)
{
    return a->hash == b->hash && a->seen == b->seen && a->conditions == b->conditions;
}

/* The state outside of the world before a frame, and the world with its schedule. */
typedef struct saved_point {
    quern_byte_buffer memory;
    uint64_t seen, condition_counts[FLOW_MAX_SYSTEMS];
} saved_point;

static saved_point points[FRAME_COUNT];
static outcome outcomes[FRAME_COUNT + 1];

static void replace_before(const flow_subject *subject, uint64_t frame)
{
    random_source random = {plan.seed * FRAME_COUNT + frame};
    if (frame % 2 == 1) replace_archetypes(subject, &random);
}

/* Runs a frame. Commands that exclusive systems have recorded on the world are applied at once, because an
 * archive cannot contain them. */
static outcome run_frame(flow_subject *subject, quern_jobs *jobs)
{
    flow_subject_call(subject, jobs);
    flow_subject_must_run(subject, jobs);
    must(quern_world_flush(subject->world));
    return look(subject);
}

static void save_point(const flow_subject *subject, saved_point *out)
{
    *out = (saved_point){.seen = subject->seen};
    for (uint32_t i = 0; i < plan.system_count; i++)
        out->condition_counts[i] = subject->players[i].condition_count;
    must(quern_world_save(subject->world, quern_sink_bytes(&out->memory),
                          &(quern_save_def){.schedules = {subject->schedule}}));
}

/* Loads the point before a frame into a new world, and runs the frames from there. */
static void go_on(uint64_t first_frame, uint32_t thread_count)
{
    const saved_point *point = &points[first_frame];
    const uint32_t entity_count = plan.entity_count;
    quern_jobs *jobs = setup_jobs(thread_count);
    flow_subject subject;
    plan.entity_count = 0;
    flow_subject_open(&subject, &plan, NULL);
    plan.entity_count = entity_count;
    must(quern_world_load(subject.world, quern_source_bytes(point->memory.bytes, point->memory.size_bytes),
                          &(quern_load_def){.schedules = {subject.schedule}}, NULL));
    assert_valid(subject.world);
    subject.first = (quern_entity){(uint64_t)subject.world->storage.entities.first_handle_high << 32};
    subject.frame_index = first_frame;
    subject.seen = point->seen;
    for (uint32_t i = 0; i < plan.system_count; i++)
        subject.players[i].condition_count = point->condition_counts[i];
    for (uint64_t frame = first_frame; frame < FRAME_COUNT; frame++) {
        if (frame > first_frame) replace_before(&subject, frame);
        const outcome it = run_frame(&subject, jobs);
        cr_assert(is_same(&it, &outcomes[frame + 1]), "seed %llu, from frame %llu, frame %llu, %u threads",
                  (unsigned long long)plan.seed, (unsigned long long)first_frame, (unsigned long long)frame,
                  thread_count);
        assert_valid(subject.world);
    }
    flow_subject_close(&subject);
    quern_jobs_destroy(jobs);
}

Test(archived, world_with_schedule_goes_on_as_the_saved_one, .timeout = 600)
{
    for (uint64_t seed = 901; seed <= 900 + 2 * SEED_COUNT; seed++) {
        flow_plan_make(&plan, seed, seed % 2 == 0 ? 40 : ENTITY_COUNT);
        if (seed % 3 == 0) flow_plan_add_filters(&plan);
        if (seed % 3 == 1) flow_plan_add_row_filters(&plan);
        if (seed % 3 < 2) plan.call_count = 0; /* the filters of calls see everything again */
        flow_subject subject;
        flow_subject_open(&subject, &plan, NULL);
        for (uint32_t frame = 0; frame < FRAME_COUNT; frame++) {
            replace_before(&subject, frame);
            save_point(&subject, &points[frame]);
            outcomes[frame + 1] = run_frame(&subject, NULL);
        }
        flow_subject_close(&subject);
        for (uint32_t i = 0; i < POOL_COUNT; i++)
            go_on(1 + (seed + i) % (FRAME_COUNT - 1), pool_threads[i]);
        for (uint32_t frame = 0; frame < FRAME_COUNT; frame++)
            quern_byte_buffer_release(&points[frame].memory);
    }
}
