/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Test labels: threaded */
#include "tests/sched/replay/scene.h"
#include "tests/support/failing_allocator.h"

#include <string.h>

/* A resource that no recording has. */
typedef struct more_input {
    int64_t points;
} more_input;

enum { FRAMES = 12 };

static const uint32_t thread_counts[] = {0, 1, 2, 3, 8}; /* 0: without a pool */

static quern_jobs *open_jobs(uint32_t thread_count)
{
    quern_jobs *jobs = NULL;
    if (thread_count > 0) must(quern_jobs_create(&(quern_jobs_def){.thread_count = thread_count}, &jobs));
    return jobs;
}

/* Records a run with the given inputs. Returns the hash of the world at its end. */
static uint64_t record(quern_byte_buffer *memory, quern_replay_detail detail, uint32_t interval,
                       uint32_t thread_count)
{
    scene it;
    quern_replay_recorder *recorder;
    quern_jobs *jobs = open_jobs(thread_count);
    replay_scene_open(&it, NULL);
    const quern_replay_recorder_def def = {
        .inputs = {it.input, it.raw}, .detail = detail, .entity_interval = interval};
    must(quern_replay_recorder_create(it.schedule, quern_sink_bytes(memory), &def, &recorder));
    for (uint32_t i = 0; i < FRAMES; i++) {
        replay_scene_set_input(&it, i);
        must(quern_replay_record(recorder, jobs, 0.25 + i));
    }
    must(quern_replay_finish(recorder));
    const uint64_t hash = quern_world_hash(it.world);
    replay_scene_close(&it);
    quern_jobs_destroy(jobs);
    return hash;
}

static quern_source source_of(const quern_byte_buffer *memory)
{
    return quern_source_bytes(memory->bytes, memory->size_bytes);
}

Test(replay, a_recording_runs_again_on_any_number_of_threads)
{
    static const quern_replay_detail details[] = {QUERN_REPLAY_PARTS, QUERN_REPLAY_WHOLE,
                                                  QUERN_REPLAY_ENTITIES};
    for (uint32_t d = 0; d < 3; d++) {
        quern_byte_buffer memory = {0}, other = {0};
        const uint64_t hash = record(&memory, details[d], d, 2);
        record(&other, details[d], d, 3);
        cr_assert_eq(memory.size_bytes, other.size_bytes);
        cr_assert(memcmp(memory.bytes, other.bytes, memory.size_bytes) == 0, "bytes follow from the world");
        for (uint32_t i = 0; i < sizeof thread_counts / sizeof thread_counts[0]; i++) {
            scene it;
            quern_replay_report report;
            quern_jobs *jobs = open_jobs(thread_counts[i]);
            replay_scene_open(&it, NULL);
            must(quern_replay_run(it.schedule, jobs, source_of(&memory), NULL, &report));
            cr_assert_eq(report.frame_count, FRAMES);
            cr_assert_eq(report.difference, QUERN_REPLAY_NONE);
            cr_assert_eq(report.actual_hash, hash);
            cr_assert_eq(quern_world_hash(it.world), hash);
            replay_scene_close(&it);
            quern_jobs_destroy(jobs);
        }
        quern_byte_buffer_release(&memory);
        quern_byte_buffer_release(&other);
    }
}

Test(replay, a_recording_without_frames_runs_none)
{
    scene it;
    quern_byte_buffer memory = {0};
    quern_replay_recorder *recorder;
    quern_replay_report report;
    replay_scene_open(&it, NULL);
    must(quern_replay_recorder_create(it.schedule, quern_sink_bytes(&memory), NULL, &recorder));
    must(quern_replay_finish(recorder));
    must(quern_replay_finish(NULL));
    must(quern_replay_run(it.schedule, NULL, source_of(&memory), NULL, &report));
    cr_assert_eq(report.frame_count, 0);
    quern_byte_buffer_release(&memory);
    replay_scene_close(&it);
}

/* A source that returns the smallest possible pieces, and keeps none of them in memory. */
static size_t read_one(void *user_data, void *bytes, size_t capacity_bytes)
{
    quern_byte_buffer *rest = user_data;
    const size_t count = capacity_bytes < 7 ? capacity_bytes : 7;
    const size_t given = count < rest->size_bytes ? count : rest->size_bytes;
    memcpy(bytes, rest->bytes, given);
    rest->bytes = (char *)rest->bytes + given;
    rest->size_bytes -= given;
    return given;
}

Test(replay, sources_may_return_small_pieces)
{
    scene it;
    quern_byte_buffer memory = {0};
    record(&memory, QUERN_REPLAY_ENTITIES, 0, 0);
    quern_byte_buffer rest = memory;
    replay_scene_open(&it, NULL);
    must(quern_replay_run(it.schedule, NULL, (quern_source){.read = read_one, .user_data = &rest}, NULL,
                          NULL));
    replay_scene_close(&it);
    quern_byte_buffer_release(&memory);
}

/* ---------------------------------------------------------------------------------- where they part */

/* Replays the recording in a world that is changed before frame 5. */
static quern_replay_report run_astray(const quern_byte_buffer *memory, scene *it,
                                      void (*stray)(void *scene, uint64_t frame))
{
    quern_replay_report report;
    replay_scene_open(it, NULL);
    const quern_replay_run_def def = {.before_frame = stray, .user_data = it};
    const quern_result result = quern_replay_run(it->schedule, NULL, source_of(memory), &def, &report);
    cr_assert_eq(result, QUERN_ERROR_DIVERGED, "%s", quern_error_message());
    cr_assert(strstr(quern_error_message(), report.text) != NULL);
    cr_assert_eq(report.frame, 5, "%s", report.text);
    cr_assert_eq(report.frame_count, 5);
    cr_assert(!report.is_before_first);
    cr_assert_neq(report.expected_hash, report.actual_hash);
    cr_assert_eq(report.actual_hash, quern_world_hash(it->world));
    return report;
}

static void spoil_value(void *user_data, uint64_t frame)
{
    scene *it = user_data;
    if (frame != 5) return;
    health value = {.points = -1000};
    must(quern_entity_set(it->world, it->entities[SCENE_STILL], it->health, &value));
    must(quern_entity_set(it->world, it->entities[SCENE_STILL + 1], it->health, &value));
}

Test(replay, a_value_that_differs_is_named)
{
    scene it;
    quern_byte_buffer memory = {0};
    record(&memory, QUERN_REPLAY_ENTITIES, 5, 0);
    quern_replay_report report = run_astray(&memory, &it, spoil_value);
    cr_assert_eq(report.difference, QUERN_REPLAY_VALUE, "%s", report.text);
    cr_assert_eq(report.component.bits, it.health.bits);
    cr_assert_eq(report.entity.bits, it.entities[SCENE_STILL].bits);
    cr_assert_eq(report.entity_index, quern_entity_index(it.entities[SCENE_STILL]));
    cr_assert_eq(report.entity_use_count, 1);
    cr_assert_eq(report.entity_count, 2);
    cr_assert_str_eq(report.archetype, "health");
    cr_assert(strstr(report.text, "frame 5: component 'health' of entity ") == report.text, "%s",
              report.text);
    replay_scene_close(&it);
    quern_byte_buffer_release(&memory);
}

/* ----------------------------------------------------------------------------- rows of several components */

static void spoil_health(const scene *it, uint32_t i)
{
    must(quern_entity_set(it->world, it->entities[i], it->health, &(health){-1000}));
}

static void spoil_rich_health(void *user_data, uint64_t frame)
{
    if (frame != 5) return;
    spoil_health(user_data, SCENE_RICH + 1);
    spoil_health(user_data, SCENE_RICH + 2);
}

/* The first differing component is reported, and later ones are not. */
static void spoil_rich_health_and_leader(void *user_data, uint64_t frame)
{
    scene *it = user_data;
    if (frame != 5) return;
    spoil_health(it, SCENE_RICH + 2);
    must(quern_entity_relate(it->world, it->entities[SCENE_RICH], it->leader, it->entities[SCENE_STILL]));
}

static void spoil_rich_leader(void *user_data, uint64_t frame)
{
    scene *it = user_data;
    if (frame == 5)
        must(quern_entity_relate(it->world, it->entities[SCENE_RICH + 2], it->leader,
                                 it->entities[SCENE_STILL]));
}

/* The first differing archetype is reported. */
static void spoil_health_twice(void *user_data, uint64_t frame)
{
    if (frame != 5) return;
    spoil_health(user_data, SCENE_RICH);
    spoil_health(user_data, SCENE_STILL + 1);
}

static void disable_rich(void *user_data, uint64_t frame)
{
    const scene *it = user_data;
    if (frame == 5)
        must(
            quern_entity_set_component_enabled(it->world, it->entities[SCENE_RICH + 1], it->health, false));
}

/* The value of a later component differs as well. */
static void disable_rich_and_spoil_leader(void *user_data, uint64_t frame)
{
    disable_rich(user_data, frame);
    spoil_rich_leader(user_data, frame);
}

typedef struct rich_case {
    void (*stray)(void *scene, uint64_t frame);
    quern_replay_difference difference;
    bool is_leader; /* the component that differs: leader, otherwise health */
    uint32_t entity, entity_count;
    const char *archetype;
} rich_case;

static void expect_case(const quern_byte_buffer *memory, const rich_case *expected, bool has_entities)
{
    scene it;
    const quern_replay_report report = run_astray(memory, &it, expected->stray);
    const quern_component component = expected->is_leader ? quern_relation_component(it.leader) : it.health;
    cr_assert_eq(report.difference, expected->difference, "%s", report.text);
    cr_assert_eq(report.component.bits, component.bits, "%s", report.text);
    cr_assert_str_eq(report.archetype, expected->archetype);
    const bool is_reported = has_entities && expected->entity_count > 0;
    cr_assert_eq(report.entity_count, is_reported ? expected->entity_count : 0, "%s", report.text);
    cr_assert_eq(report.entity.bits, is_reported ? it.entities[expected->entity].bits : 0, "%s",
                 report.text);
    char others[64];
    snprintf(others, sizeof others, "and of %u others", expected->entity_count - 1u);
    cr_assert_eq(strstr(report.text, others) != NULL, is_reported, "%s", report.text);
    replay_scene_close(&it);
}

Test(replay, each_of_several_components_is_distinguished)
{
    static const char rich[] = "vec3, health, tag, leader";
    static const rich_case cases[] = {
        {spoil_rich_health, QUERN_REPLAY_VALUE, false, SCENE_RICH + 1, 2, rich},
        {spoil_rich_health_and_leader, QUERN_REPLAY_VALUE, false, SCENE_RICH + 2, 1, rich},
        {spoil_rich_leader, QUERN_REPLAY_VALUE, true, SCENE_RICH + 2, 1, rich},
        {spoil_health_twice, QUERN_REPLAY_VALUE, false, SCENE_STILL + 1, 1, "health"},
        {disable_rich, QUERN_REPLAY_DISABLED, false, 0, 0, rich},
        {disable_rich_and_spoil_leader, QUERN_REPLAY_DISABLED, false, 0, 0, rich},
    };
    quern_byte_buffer memory = {0}, coarse = {0};
    record(&memory, QUERN_REPLAY_ENTITIES, 1, 0);
    record(&coarse, QUERN_REPLAY_PARTS, 1, 0);
    for (uint32_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        expect_case(&memory, &cases[i], true);
        expect_case(&coarse, &cases[i], false);
    }
    quern_byte_buffer_release(&memory);
    quern_byte_buffer_release(&coarse);
}

Test(replay, without_entities_component_and_archetype_are_named)
{
    scene it;
    quern_byte_buffer memory = {0};
    record(&memory, QUERN_REPLAY_ENTITIES, 4,
           0); /* frames 4 and 8 have hashes of entities, frame 5 has none */
    quern_replay_report report = run_astray(&memory, &it, spoil_value);
    cr_assert_eq(report.difference, QUERN_REPLAY_VALUE, "%s", report.text);
    cr_assert_eq(report.component.bits, it.health.bits);
    cr_assert_eq(report.entity.bits, 0);
    cr_assert_eq(report.entity_use_count, 0);
    cr_assert_str_eq(report.text, "frame 5: values of component 'health' differ; archetype: health");
    replay_scene_close(&it);
    quern_byte_buffer_release(&memory);
}

Test(replay, hashes_alone_name_the_frame)
{
    scene it;
    quern_byte_buffer memory = {0};
    record(&memory, QUERN_REPLAY_WHOLE, 0, 0);
    quern_replay_report report = run_astray(&memory, &it, spoil_value);
    cr_assert_eq(report.difference, QUERN_REPLAY_WORLD);
    replay_scene_close(&it);
    quern_byte_buffer_release(&memory);
}

static void destroy_one(void *user_data, uint64_t frame)
{
    scene *it = user_data;
    if (frame == 5) must(quern_entity_destroy(it->world, it->entities[SCENE_STILL]));
}

static void create_one(void *user_data, uint64_t frame)
{
    scene *it = user_data;
    if (frame == 5) it->entities[0] = setup_entity_with(it->world, &it->health, 1);
}

static void move_one(void *user_data, uint64_t frame)
{
    scene *it = user_data;
    if (frame == 5) must(quern_entity_add(it->world, it->entities[SCENE_STILL], it->tag, NULL));
}

static void swap_two(void *user_data, uint64_t frame)
{
    scene *it = user_data;
    if (frame != 5) return;
    must(quern_entity_add(it->world, it->entities[SCENE_STILL], it->tag, NULL));
    must(quern_entity_remove(it->world, it->entities[SCENE_STILL], it->tag));
}

Test(replay, misplaced_entities_are_named)
{
    static const struct {
        void (*stray)(void *scene, uint64_t frame);
        quern_replay_difference difference, without_entities;
        const char *words;
    } cases[] = {
        {destroy_one, QUERN_REPLAY_ENTITY_MISSING, QUERN_REPLAY_ENTITIES_OTHER,
         "is alive in the recording, and not here"},
        {create_one, QUERN_REPLAY_ENTITY_EXTRA, QUERN_REPLAY_ENTITIES_OTHER,
         "is alive here, and not in the recording"},
        {move_one, QUERN_REPLAY_ENTITY_MOVED, QUERN_REPLAY_ENTITIES_OTHER, "has other components"},
        {swap_two, QUERN_REPLAY_ENTITIES_OTHER, QUERN_REPLAY_ENTITIES_OTHER, "or in another order"},
    };
    quern_byte_buffer memory = {0}, coarse = {0};
    record(&memory, QUERN_REPLAY_ENTITIES, 1, 0);
    record(&coarse, QUERN_REPLAY_PARTS, 1, 0);
    for (uint32_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        scene it;
        quern_replay_report report = run_astray(&memory, &it, cases[i].stray);
        cr_assert_eq(report.difference, cases[i].difference, "%s", report.text);
        cr_assert(strstr(report.text, cases[i].words) != NULL, "%s", report.text);
        cr_assert_str_eq(report.archetype, "health");
        const quern_entity entity = it.entities[i == 1 ? 0 : SCENE_STILL];
        if (i < 3) {
            cr_assert_eq(report.entity_index, quern_entity_index(entity));
            cr_assert_eq(report.entity_use_count, quern_entity_use_count(it.world, entity));
            cr_assert_eq(report.entity.bits, i == 0 ? 0 : entity.bits);
        }
        replay_scene_close(&it);
        report = run_astray(&coarse, &it, cases[i].stray);
        cr_assert_eq(report.difference, cases[i].without_entities, "%s", report.text);
        cr_assert_str_eq(report.archetype, "health");
        replay_scene_close(&it);
    }
    quern_byte_buffer_release(&memory);
    quern_byte_buffer_release(&coarse);
}

static void spoil_score(void *user_data, uint64_t frame)
{
    scene *it = user_data;
    if (frame == 5) ((score *)quern_resource_get(it->world, it->score))->points += 1;
}

static void disable_one(void *user_data, uint64_t frame)
{
    scene *it = user_data;
    if (frame == 5)
        must(quern_entity_set_component_enabled(it->world, it->entities[SCENE_STILL], it->health, false));
}

static void relate_one(void *user_data, uint64_t frame)
{
    scene *it = user_data;
    if (frame == 5)
        must(
            quern_entity_relate(it->world, it->entities[SCENE_LED], it->leader, it->entities[SCENE_STILL]));
}

static void like_another(void *user_data, uint64_t frame)
{
    scene *it = user_data;
    if (frame == 5)
        must(quern_entity_relate(it->world, it->entities[2], it->likes, it->entities[SCENE_STILL]));
}

static void reorder_children(void *user_data, uint64_t frame)
{
    scene *it = user_data;
    if (frame != 5) return;
    must(quern_entity_relate(it->world, it->entities[SCENE_LED], it->leader, it->entities[SCENE_STILL]));
    must(quern_entity_relate(it->world, it->entities[SCENE_LED], it->leader, it->entities[SCENE_LEADER]));
}

static void name_one(void *user_data, uint64_t frame)
{
    scene *it = user_data;
    if (frame == 5) must(quern_entity_set_name(it->world, it->entities[SCENE_STILL], "other"));
}

static void waste_a_handle(void *user_data, uint64_t frame)
{
    scene *it = user_data;
    if (frame == 5) must(quern_entity_destroy(it->world, setup_entity(it->world)));
}

Test(replay, differences_outside_of_rows_are_named)
{
    static const struct {
        void (*stray)(void *scene, uint64_t frame);
        quern_replay_difference difference;
        const char *text;
    } cases[] = {
        {spoil_score, QUERN_REPLAY_RESOURCE_VALUE, "frame 5: the value of resource 'score' differs"},
        {disable_one, QUERN_REPLAY_DISABLED,
         "frame 5: component 'health' is disabled for other entities; archetype: health"},
        {relate_one, QUERN_REPLAY_VALUE, NULL}, /* the target is a value of the component */
        {reorder_children, QUERN_REPLAY_RELATION,
         "frame 5: targets of relation 'leader' differ, or the order of siblings"},
        {like_another, QUERN_REPLAY_RELATION,
         "frame 5: targets of relation 'likes' differ, or the order of siblings"},
        {name_one, QUERN_REPLAY_NAMES, "frame 5: names of entities differ"},
        {waste_a_handle, QUERN_REPLAY_HANDLES,
         "frame 5: the next handles differ, or the order of archetypes"},
    };
    quern_byte_buffer memory = {0};
    record(&memory, QUERN_REPLAY_ENTITIES, 1, 0);
    for (uint32_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        scene it;
        const quern_replay_report report = run_astray(&memory, &it, cases[i].stray);
        cr_assert_eq(report.difference, cases[i].difference, "%u: %s", i, report.text);
        if (cases[i].text != NULL) cr_assert_str_eq(report.text, cases[i].text);
        if (i == 0) cr_assert_eq(report.resource.bits, it.score.bits);
        if (i == 2 || i == 3) cr_assert_eq(report.component.bits, quern_relation_component(it.leader).bits);
        if (i == 4) cr_assert_eq(report.component.bits, quern_relation_component(it.likes).bits);
        replay_scene_close(&it);
    }
    quern_byte_buffer_release(&memory);
}

Test(replay, a_different_start_diverges_before_the_first_frame)
{
    scene it;
    quern_byte_buffer memory = {0};
    quern_replay_report report;
    record(&memory, QUERN_REPLAY_PARTS, 0, 0);
    replay_scene_open(&it, NULL);
    setup_entity_with(it.world, &it.health, 1);
    cr_assert_eq(quern_replay_run(it.schedule, NULL, source_of(&memory), NULL, &report),
                 QUERN_ERROR_DIVERGED);
    cr_assert(report.is_before_first);
    cr_assert_eq(report.frame_count, 0);
    cr_assert(strstr(report.text, "before the first frame: other entities: ") == report.text, "%s",
              report.text);
    replay_scene_close(&it);
    quern_byte_buffer_release(&memory);
}

Test(replay, types_that_the_recording_lacks_are_no_difference)
{
    for (uint32_t is_astray = 0; is_astray < 2; is_astray++) {
        scene it;
        quern_byte_buffer memory = {0};
        quern_replay_report report;
        const uint64_t hash = record(&memory, QUERN_REPLAY_ENTITIES, 5, 0);
        replay_scene_open(&it, NULL);
        quern_resource more;
        must(QUERN_RESOURCE_REGISTER_FIELDS(it.world, &more, more_input, points));
        make_relation(it.world, .name = "more likes", .many = true);
        const quern_component more_component = setup_component(it.world, "more", 4, 4);
        const quern_replay_run_def def = {.before_frame = is_astray ? spoil_value : NULL, .user_data = &it};
        const quern_result result = quern_replay_run(it.schedule, NULL, source_of(&memory), &def, &report);
        cr_assert_eq(result, is_astray ? QUERN_ERROR_DIVERGED : QUERN_OK, "%s", quern_error_message());
        cr_assert_eq(report.difference, is_astray ? QUERN_REPLAY_VALUE : QUERN_REPLAY_NONE);
        cr_assert_eq(report.actual_hash == hash, !is_astray);
        setup_entity_with(it.world, &more_component, 1);
        cr_assert_eq(quern_replay_run(it.schedule, NULL, source_of(&memory), NULL, &report),
                     QUERN_ERROR_DIVERGED, "%s", quern_error_message());
        cr_assert(report.is_before_first);
        replay_scene_close(&it);
        quern_byte_buffer_release(&memory);
    }
}

/* ------------------------------------------------------------------------------ errors and callbacks */

static bool stop_after_three(void *user_data, uint64_t frame)
{
    *(uint64_t *)user_data = frame;
    return frame < 2;
}

/* Redefines an input in the middle of a replay. */
static bool widen_input(void *user_data, uint64_t frame)
{
    scene *it = user_data;
    const quern_resource_def wide = {
        .size_bytes = 4096,
        .alignment_bytes = 8,
        .fields = {{.name = "push", .type = QUERN_FIELD_F32},
                   {.name = "spawn_count", .type = QUERN_FIELD_I32, .offset_bytes = 4},
                   {.name = "victim", .type = QUERN_FIELD_ENTITY, .offset_bytes = 8},
                   {.name = "asks_too_much", .type = QUERN_FIELD_BOOL, .offset_bytes = 16},
                   {.name = "rest", .type = QUERN_FIELD_U64, .offset_bytes = 24, .count = 509}}};
    if (frame == 4) must(quern_resource_redefine(it->world, it->input, &wide, NULL, NULL));
    return true;
}

Test(replay, a_replay_ends_when_an_input_gets_another_layout)
{
    scene it;
    quern_byte_buffer memory = {0};
    quern_replay_report report;
    record(&memory, QUERN_REPLAY_WHOLE, 0, 0);
    replay_scene_open(&it, NULL);
    const quern_replay_run_def def = {.after_frame = widen_input, .user_data = &it};
    cr_assert_eq(quern_replay_run(it.schedule, NULL, source_of(&memory), &def, &report),
                 QUERN_ERROR_INVALID_ARGUMENT, "%s", quern_error_message());
    cr_assert_eq(report.frame_count, 5u);
    replay_scene_close(&it);
    quern_byte_buffer_release(&memory);
}

Test(replay, a_callback_may_end_a_replay)
{
    scene it;
    quern_byte_buffer memory = {0};
    quern_replay_report report;
    uint64_t last = 0;
    record(&memory, QUERN_REPLAY_PARTS, 0, 0);
    replay_scene_open(&it, NULL);
    const quern_replay_run_def def = {.after_frame = stop_after_three, .user_data = &last};
    cr_assert_eq(quern_replay_run(it.schedule, NULL, source_of(&memory), &def, &report),
                 QUERN_ERROR_CANCELLED);
    cr_assert_eq(report.frame_count, 3);
    cr_assert_eq(last, 2);
    replay_scene_close(&it);
    quern_byte_buffer_release(&memory);
}

Test(replay, frames_that_did_not_begin_are_skipped)
{
    scene it;
    quern_byte_buffer memory = {0};
    quern_replay_recorder *recorder;
    quern_replay_report report;
    replay_scene_open(&it, NULL);
    must(quern_replay_recorder_create(it.schedule, quern_sink_bytes(&memory), NULL, &recorder));
    cr_assert_eq(quern_replay_record(recorder, NULL, -1), QUERN_ERROR_INVALID_ARGUMENT);
    must(quern_replay_record(recorder, NULL, 1));
    cr_assert_eq(quern_replay_record(recorder, NULL, -1), QUERN_ERROR_INVALID_ARGUMENT);
    must(quern_replay_record(recorder, NULL, 1));
    cr_assert_eq(quern_replay_record(recorder, NULL, -1), QUERN_ERROR_INVALID_ARGUMENT);
    must(quern_replay_finish(recorder));
    replay_scene_close(&it);
    replay_scene_open(&it, NULL);
    must(quern_replay_run(it.schedule, NULL, source_of(&memory), NULL, &report));
    cr_assert_eq(report.frame_count, 2);
    replay_scene_close(&it);
    quern_byte_buffer_release(&memory);
}

Test(replay, a_frame_with_an_error_is_recorded_with_it)
{
    scene it;
    quern_byte_buffer memory = {0};
    quern_replay_recorder *recorder;
    quern_replay_report report;
    replay_scene_open(&it, NULL);
    must(quern_replay_recorder_create(it.schedule, quern_sink_bytes(&memory),
                                      &(quern_replay_recorder_def){.inputs = {it.input, it.raw}},
                                      &recorder));
    replay_scene_set_input(&it, 0);
    ((input *)quern_resource_get(it.world, it.input))->asks_too_much = true;
    cr_assert_eq(quern_replay_record(recorder, NULL, 1), QUERN_ERROR_COMPONENT_TOO_LARGE);
    replay_scene_set_input(&it, 1);
    must(quern_replay_record(recorder, NULL, 1));
    must(quern_replay_finish(recorder));
    replay_scene_close(&it);
    replay_scene_open(&it, NULL);
    must(quern_replay_run(it.schedule, NULL, source_of(&memory), NULL, &report));
    cr_assert_eq(report.frame_count, 2);
    replay_scene_close(&it);
    replay_scene_open(&it, NULL);
    it.types.never_asks = true;
    cr_assert_eq(quern_replay_run(it.schedule, NULL, source_of(&memory), NULL, &report),
                 QUERN_ERROR_DIVERGED);
    cr_assert_eq(report.difference, QUERN_REPLAY_RESULT);
    cr_assert_str_eq(report.text,
                     "frame 0: it ended with QUERN_ERROR_COMPONENT_TOO_LARGE in the recording, "
                     "and with QUERN_OK here");
    replay_scene_close(&it);
    quern_byte_buffer_release(&memory);
}

typedef struct narrow_sink {
    size_t left;
    uint32_t flush_count; /* calls with 0 bytes */
} narrow_sink;

static bool write_narrow(void *user_data, const char *text, size_t bytes)
{
    narrow_sink *sink = user_data;
    if (bytes > sink->left) return false;
    sink->left -= bytes;
    if (bytes == 0) sink->flush_count++;
    return true;
}

Test(replay, each_frame_flushes_the_sink)
{
    scene it;
    narrow_sink wide = {.left = SIZE_MAX};
    quern_replay_recorder *recorder;
    replay_scene_open(&it, NULL);
    must(quern_replay_recorder_create(it.schedule, (quern_sink){.write = write_narrow, .user_data = &wide},
                                      NULL, &recorder));
    for (uint32_t frame = 1; frame < 4; frame++) {
        must(quern_replay_record(recorder, NULL, 1));
        cr_assert_eq(wide.flush_count, frame);
    }
    must(quern_replay_finish(recorder));
    cr_assert_eq(wide.flush_count, 4u);
    replay_scene_close(&it);
}

/* The recording ends in blocks of several kinds, by the size of the sink. */
static void fill_sink(size_t left)
{
    scene it;
    narrow_sink narrow = {.left = left};
    char end[32];
    quern_replay_recorder *recorder;
    replay_scene_open(&it, NULL);
    must(quern_replay_recorder_create(
        it.schedule, (quern_sink){.write = write_narrow, .user_data = &narrow}, NULL, &recorder));
    uint32_t recorded = 0;
    quern_result result = QUERN_OK;
    for (; result == QUERN_OK && recorded < 1000; recorded++)
        result = quern_replay_record(recorder, NULL, 1);
    cr_assert_eq(result, QUERN_ERROR_IO);
    cr_assert_gt(recorded, 1);
    snprintf(end, sizeof end, "ends in frame %u:", recorded - 1);
    cr_assert(strstr(quern_error_message(), end) != NULL, "'%s': %s", end, quern_error_message());
    cr_assert_eq(quern_replay_record(recorder, NULL, 1), QUERN_ERROR_IO);
    cr_assert(strstr(quern_error_message(), end) != NULL, "'%s': %s", end, quern_error_message());
    cr_assert_eq(stats_of_frame(it.schedule).frame_index, recorded, "all frames ran");
    cr_assert_eq(quern_replay_finish(recorder), QUERN_ERROR_IO);
    replay_scene_close(&it);
}

Test(replay, a_full_sink_stops_no_frame)
{
    for (size_t left = 2500; left < 3500; left += 37)
        fill_sink(left);
}

static void copy_nothing(void *targets, const void *sources, uint32_t count, void *user_data) {}

Test(replay, misuse_is_refused)
{
    scene it;
    quern_byte_buffer memory = {0};
    quern_replay_recorder *recorder = NULL;
    replay_scene_open(&it, NULL);
    quern_resource hooked =
        make_resource(it.world, .name = "hooked", .size_bytes = 8, .hooks = {.copy = copy_nothing});
    const quern_sink sink = quern_sink_bytes(&memory);
    must_refuse(NULL_ARGUMENT, it.world, quern_replay_recorder_create(NULL, sink, NULL, &recorder));
    must_refuse(NULL_ARGUMENT, it.world,
                quern_replay_recorder_create(it.schedule, quern_sink_file(NULL), NULL, &recorder));
    must_refuse(NULL_ARGUMENT, it.world, quern_replay_recorder_create(it.schedule, sink, NULL, NULL));
    must_refuse(INVALID_ARGUMENT, it.world,
                quern_replay_recorder_create(it.schedule, sink,
                                             &(quern_replay_recorder_def){.inputs = {hooked}}, &recorder));
    cr_assert(strstr(quern_error_message(), "'hooked'") != NULL, "%s", quern_error_message());
    assert_refused(
        it.world, QUERN_ERROR_INVALID_ARGUMENT,
        quern_replay_recorder_create(
            it.schedule, sink, &(quern_replay_recorder_def){.inputs = {it.input, it.input}}, &recorder));
    must_refuse(UNKNOWN_RESOURCE, it.world,
                quern_replay_recorder_create(
                    it.schedule, sink, &(quern_replay_recorder_def){.inputs = {{0xABCDEF}}}, &recorder));
    must_refuse(INVALID_ARGUMENT, it.world,
                quern_replay_recorder_create(it.schedule, sink, &(quern_replay_recorder_def){.detail = 7},
                                             &recorder));
    must_refuse(NULL_ARGUMENT, it.world, quern_replay_record(NULL, NULL, 1));
    must_refuse(NULL_ARGUMENT, it.world,
                quern_replay_run(NULL, NULL, quern_source_bytes("", 0), NULL, NULL));
    must_refuse(NULL_ARGUMENT, it.world,
                quern_replay_run(it.schedule, NULL, quern_source_file(NULL), NULL, NULL));
    cr_assert(recorder == NULL);
    replay_scene_close(&it);
}

static quern_replay_recorder *busy; /* records the frame that runs */

static void record_inside(quern_context *context, const quern_view *view)
{
    (void)context;
    (void)view;
    if (busy == NULL) return;
    cr_assert_eq(quern_replay_record(busy, NULL, 99), QUERN_ERROR_WORLD_LOCKED);
    cr_assert_eq(quern_replay_finish(busy), QUERN_ERROR_WORLD_LOCKED);
}

static void open_with_exclusive(scene *it)
{
    replay_scene_open(it, NULL);
    must(quern_schedule_add_system(
        it->schedule,
        &(quern_system_def){.name = "inside", .run = record_inside, .flags = QUERN_SYSTEM_EXCLUSIVE},
        NULL));
}

Test(replay, an_exclusive_system_of_a_recorded_frame_ends_no_recording)
{
    scene it;
    quern_byte_buffer memory = {0};
    quern_replay_report report;
    open_with_exclusive(&it);
    must(quern_replay_recorder_create(it.schedule, quern_sink_bytes(&memory), NULL, &busy));
    for (uint32_t i = 0; i < 2; i++)
        must(quern_replay_record(busy, NULL, 1));
    must(quern_replay_finish(busy));
    busy = NULL;
    replay_scene_close(&it);
    open_with_exclusive(&it);
    must(quern_replay_run(it.schedule, NULL, source_of(&memory), NULL, &report));
    cr_assert_eq(report.frame_count, 2);
    replay_scene_close(&it);
    quern_byte_buffer_release(&memory);
}

/* --------------------------------------------------------------------------------- another schema */

static void refuse_schema(const quern_byte_buffer *memory, const scene_change *change,
                          quern_result expected, const char *words)
{
    scene it;
    replay_scene_open_changed(&it, NULL, change);
    assert_refused(it.world, expected, quern_replay_run(it.schedule, NULL, source_of(memory), NULL, NULL));
    cr_assert(strstr(quern_error_message(), words) != NULL, "%s", quern_error_message());
    replay_scene_close(&it);
}

Test(replay, another_schema_is_refused_naming_what_differs)
{
    quern_byte_buffer memory = {0};
    record(&memory, QUERN_REPLAY_PARTS, 0, 0);
    refuse_schema(&memory, &(scene_change){.health_is_wide = true}, QUERN_ERROR_LAYOUT_MISMATCH,
                  "component 'health'");
    refuse_schema(&memory, &(scene_change){.health_is_renamed = true}, QUERN_ERROR_LAYOUT_MISMATCH,
                  "was 'health' when it was recorded, and is 'wounds'");
    refuse_schema(&memory, &(scene_change){.huge_too_requires_tag = true}, QUERN_ERROR_LAYOUT_MISMATCH,
                  "component 'huge too' was registered differently");
    refuse_schema(&memory, &(scene_change){.input_field_is_renamed = true}, QUERN_ERROR_LAYOUT_MISMATCH,
                  "resource 'input' has other fields");
    refuse_schema(&memory, &(scene_change){.raw_is_absent = true}, QUERN_ERROR_UNKNOWN_RESOURCE, "'raw'");
    quern_byte_buffer_release(&memory);
}

/* ----------------------------------------------------------------------------------------- memory */

Test(replay, every_failing_allocation_is_reported_and_stops_no_frame)
{
    quern_byte_buffer expected = {0};
    const uint64_t hash = record(&expected, QUERN_REPLAY_ENTITIES, 0, 0);
    for (uint64_t call = 1, is_done = 0; !is_done; call++) {
        scene it;
        quern_byte_buffer memory = {0};
        quern_replay_recorder *recorder = NULL;
        failing_allocator *allocator = failing_allocator_create();
        const quern_allocator interface = failing_allocator_interface(allocator);
        replay_scene_open(&it, &interface);
        for (uint32_t i = 0; i < SCENE_WARM_FRAMES; i++)
            must(quern_schedule_run(it.schedule, NULL, 1));
        failing_allocator_fail_at(allocator, call);
        quern_result result = quern_replay_recorder_create(
            it.schedule, quern_sink_bytes(&memory),
            &(quern_replay_recorder_def){.detail = QUERN_REPLAY_ENTITIES}, &recorder);
        for (uint32_t i = 0; i < 3 && result == QUERN_OK; i++)
            result = quern_replay_record(recorder, NULL, 1);
        const quern_result finished = quern_replay_finish(recorder);
        is_done = failing_allocator_failed_count(allocator) == 0;
        cr_assert_eq(result == QUERN_OK, is_done);
        cr_assert(is_done || result == QUERN_ERROR_OUT_OF_MEMORY, "%s", quern_error_message());
        cr_assert(finished == QUERN_OK || finished == QUERN_ERROR_OUT_OF_MEMORY);
        failing_allocator_heal(allocator);
        replay_scene_close(&it);
        failing_allocator_close(allocator);
        quern_byte_buffer_release(&memory);
        cr_assert_lt(call, 1000);
    }
    for (uint64_t call = 1, is_done = 0; !is_done; call++) {
        scene it;
        failing_allocator *allocator = failing_allocator_create();
        const quern_allocator interface = failing_allocator_interface(allocator);
        replay_scene_open(&it, &interface);
        failing_allocator_fail_at(allocator, call);
        const quern_result result = quern_replay_run(it.schedule, NULL, source_of(&expected), NULL, NULL);
        is_done = failing_allocator_failed_count(allocator) == 0;
        if (result == QUERN_OK) cr_assert_eq(quern_world_hash(it.world), hash);
        cr_assert(!is_done || result == QUERN_OK);
        cr_assert(result == QUERN_OK || result == QUERN_ERROR_OUT_OF_MEMORY ||
                      result == QUERN_ERROR_DIVERGED,
                  "%s", quern_error_message());
        failing_allocator_heal(allocator);
        assert_valid(it.world);
        replay_scene_close(&it);
        failing_allocator_close(allocator);
        cr_assert_lt(call, 1000);
    }
    quern_byte_buffer_release(&expected);
}
