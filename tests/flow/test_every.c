/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Test labels: threaded */
/* One random program that draws everything together: calls, commands for entities and whole views, prefabs, relations
 * of all kinds, names, required components, toggles, disabled trees, accumulated values, events, reactions with old
 * values, hooks, entity hooks, change filters, up-terms, levels and target terms; before frames, systems and reactions that are
 * replaced, or removed and added again, and components, resources, events and values of edges that get other definitions
 * (every_redefine.c); and after frames histories, deltas, archives, sessions and JSON. One run is compared with a serial model
 * (every_model.c), the others with that run, at every thread count and in every style, in a recording and its replay, and after
 * failed allocations. A table counts the pairs of features that were drawn together.
 *
 * QUERN_EVERY_SEED=N in the environment plays that seed alone. */

#include "core/playback/playback.h"
#include "core/storage/change.h"
#include "core/world/world_internal.h"
#include "sched/frame/schedule_internal.h"
#include "tests/flow/every.h"
#include "tests/flow/flow_setup.h"
#include "tests/support/effort.h"

#include <kit/json.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SEEDS = effort(100, 14, 5), FRAMES = 10 };

/* ------------------------------------------------------------------------------------------- playing */

typedef struct outcome {
    uint64_t hash, observed;
} outcome;

static outcome expected[FRAMES];
static uint64_t change_count;   /* of all seeds, in one run of each */
enum { RUNS = POOL_COUNT + 2 }; /* of each seed */

/* The single commands that a frame lists add up to its statistics. Those before the first system are of code between
 * frames, which has statistics of its own. */
static void check_listed(const quern_command_log *log)
{
    quern_command_log_stats stats;
    uint64_t command_count = 0, dropped_count = 0, event_count = 0;
    must(quern_command_log_get_stats(log, &stats));
    cr_assert_eq(stats.left_out_count, 0u);
    for (uint32_t s = 0; s < stats.sync_count; s++) {
        quern_logged_sync sync;
        must(quern_command_log_get_sync(log, s, &sync));
        for (uint32_t i = sync.first; i < sync.first + sync.count && sync.place != QUERN_SYNC_FRAME_START;
             i++) {
            quern_logged_command command;
            must(quern_command_log_get(log, i, &command));
            *(command.kind == QUERN_COMMAND_EMIT ? &event_count : &command_count) += command.command_count;
            dropped_count += command.dropped_count;
        }
    }
    const quern_frame_stats frame = stats_of_frame(every.schedule);
    cr_assert_eq(command_count, frame.command_count);
    cr_assert_eq(dropped_count, frame.dropped_count);
    cr_assert_eq(event_count, frame.event_count);
}

/* Plays a frame whose types have been changed. */
static outcome play_rest(quern_jobs *jobs)
{
    quern_command_log *log = NULL;
    every_play_between(jobs);
    if (every.is_modelled) every_model_begin_frame();
    if (every.seed % 2 == 0) {
        must(quern_command_log_create(NULL, &log));
        must(quern_schedule_set_command_log(every.schedule, log));
    }
    must_run(every.schedule, jobs);
    if (log != NULL) check_listed(log);
    quern_command_log_destroy(log);
    if (every.is_modelled) every_model_end_frame();
    every_check_outside(every.world);
    every_check_refs();
    return (outcome){quern_world_hash(every.world), every.observed};
}

static outcome play_frame(quern_jobs *jobs)
{
    every_change_before();
    every_change_types();
    return play_rest(jobs);
}

/* ------------------------------------------------------------------------------------- other worlds */

static quern_byte_buffer bytes;

static void load_archive(quern_world *other)
{
    const quern_save_def def = {.leave_out = {every_leave_out()}};
    bytes.size_bytes = 0;
    must(quern_world_save(every.world, quern_sink_bytes(&bytes), &def));
    must(quern_world_load(other, quern_source_bytes(bytes.bytes, bytes.size_bytes), NULL, NULL));
}

static void check_archive(void)
{
    quern_world *other = every_open_other();
    load_archive(other);
    every_compare_other(other, true);
    if (!every.has_hooks) cr_assert_eq(quern_world_hash(other), quern_world_hash(every.world));
    quern_world_destroy(other);
}

/* Loads the last archive into a world that learns all types from it. */
static void check_bare_archive(void)
{
    quern_world *other;
    must(quern_world_create(NULL, &other));
    const quern_source source = quern_source_bytes(bytes.bytes, bytes.size_bytes);
    must(quern_world_register_archived(other, source, NULL));
    must(quern_world_load(other, source, NULL, NULL));
    assert_valid(other);
    if (!every.has_hooks) cr_assert_eq(quern_world_hash(other), quern_world_hash(every.world));
    quern_world_destroy(other);
}

static void check_json(void)
{
    quern_world *other = every_open_other();
    bytes.size_bytes = 0;
    must(quern_json_write_world(every.world, quern_sink_bytes(&bytes)));
    must(quern_json_read_world(other, bytes.bytes, bytes.size_bytes, NULL));
    every_compare_other(other, false);
    quern_world_destroy(other);
}

static uint64_t outside_id(void *user_data, quern_entity entity)
{
    return every_model_at(every_model_find(entity))->id;
}

/* The entities of the first message, by id. */
static struct {
    uint64_t ids[EVERY_MOST_KNOWN];
    quern_entity entities[EVERY_MOST_KNOWN];
    uint32_t count;
} arrived;

static void learn_arrived(quern_world *other)
{
    every_handles in;
    every_register(other, &in);
    quern_query *all =
        setup_query(other,
                    (const quern_term[]){quern_term_read(in.types[EVERY_ID]),
                                         quern_term_optional(in.types[EVERY_OFF], QUERN_ACCESS_NONE)},
                    2);
    quern_query_iterator walk = quern_query_iterate(all);
    arrived.count = 0;
    while (quern_query_next(&walk)) {
        const uint64_t *ids = quern_view_read(&walk.view, 0);
        for (uint32_t i = 0; i < walk.view.count; i++) {
            arrived.ids[arrived.count] = ids[i];
            arrived.entities[arrived.count++] = walk.view.entities[i];
        }
    }
    quern_query_destroy(all);
}

static quern_entity outside_entity(void *user_data, uint64_t id)
{
    for (uint32_t i = 0; i < arrived.count; i++)
        if (arrived.ids[i] == id) return arrived.entities[i];
    return quern_entity_null();
}

/* Sends the trees of the world in two messages of a session, in another process so to speak. Targets and handles that
 * lead from the first message to the second are lost. */
static void check_session(void)
{
    quern_world *other = every_open_other();
    quern_archive *lists[2];
    quern_save_session *writer;
    quern_load_session *loader;
    must(quern_save_session_create(
        every.world, &(quern_save_def){.leave_out = {every_leave_out()}, .outside_id = outside_id},
        &writer));
    must(quern_load_session_create(other, &(quern_load_def){.outside_entity = outside_entity}, &loader));
    for (uint32_t l = 0; l < 2; l++)
        must(quern_archive_create(every.world, &lists[l]));
    static quern_entity first_roots[EVERY_MOST_KNOWN];
    uint32_t first_count = 0;
    every_learn_known();
    for (uint32_t i = 0; i < every.known_count; i++) {
        if (!quern_entity_is_null(
                quern_entity_target(every.world, every.known[i], every.types.relations[0])))
            continue;
        const uint32_t list = every_mix(every.seed + i) % 2;
        if (list == 0) first_roots[first_count++] = every.known[i];
        must(quern_archive_append_tree(lists[list], every.known[i]));
    }
    every_model_save(0);
    every_model_cut(first_roots, first_count);
    for (uint32_t l = 0; l < 2; l++) {
        bytes.size_bytes = 0;
        learn_arrived(other);
        must(quern_save_session_write(writer, lists[l], quern_sink_bytes(&bytes)));
        must(quern_load_session_read(loader, quern_source_bytes(bytes.bytes, bytes.size_bytes), NULL, 0,
                                     NULL));
        quern_archive_destroy(lists[l]);
    }
    const every_comparison comparison = {.ignored_types = every.has_hooks ? (uint32_t)1 << EVERY_HOOKED : 0,
                                         .ignores_order = true,
                                         .ignores_resources = true,
                                         .ignores_dead_handles = true};
    every_model_compare(other, false, &comparison);
    every_model_restore(0);
    quern_save_session_destroy(writer);
    quern_load_session_destroy(loader);
    quern_world_destroy(other);
}

/* A second world that follows the first one by deltas, with an index and an ordered query of its own. */
static quern_history *history;
static quern_delta_applier *applier;
static uint64_t replica_number;
static quern_index *replica_index;
static quern_query *replica_order, *replica_ups;

static void open_replica(uint64_t number)
{
    every_handles in;
    every.replica = every_open_other();
    every_register(every.replica, &in);
    must(quern_index_create(every.replica,
                            &(quern_index_def){.component = in.types[EVERY_NUMBER], .field = "word0"},
                            &replica_index));
    replica_order = make_query(every.replica, .terms = {quern_term_read(in.types[EVERY_NUMBER])},
                               .order_by = {.component = in.types[EVERY_NUMBER], .field = "word0"});
    const quern_term ups[] = {quern_term_read(in.types[EVERY_ID]),
                              quern_term_up_make(in.types[EVERY_NUMBER], in.relations[EVERY_SHARED],
                                                 QUERN_MATCH_OPTIONAL, QUERN_PATH_TARGET),
                              quern_term_up_make(in.types[EVERY_NUMBER], in.relations[EVERY_PARENT],
                                                 QUERN_MATCH_OPTIONAL, QUERN_PATH_NEAREST)};
    replica_ups = setup_query(every.replica, ups, 3);
    load_archive(every.replica);
    must(quern_delta_applier_create(every.replica, &applier));
    replica_number = number;
}

static void close_replica(void)
{
    quern_delta_applier_destroy(applier);
    quern_index_destroy(replica_index);
    quern_query_destroy(replica_order);
    quern_query_destroy(replica_ups);
    quern_world_destroy(every.replica);
    every.replica = NULL;
}

/* The query has the rows in order, and the index as many entities for each value as the query. */
static void check_order(void)
{
    uint64_t value = 0;
    uint32_t count = 0, found = 0;
    quern_query_iterator it = quern_query_iterate(replica_order);
    while (quern_query_next(&it)) {
        const char *numbers = quern_view_read(&it.view, 0);
        for (uint32_t i = 0; i < it.view.count; i++, count++) {
            uint64_t words[EVERY_WORDS];
            every_read(EVERY_NUMBER, numbers + (size_t)every_value_bytes(EVERY_NUMBER) * i, words);
            const uint64_t number = words[every_types[EVERY_NUMBER].first_word];
            cr_assert_geq(number, value);
            if (number != value) {
                cr_assert_eq(count, found);
                count = 0;
            }
            value = number;
            must(quern_index_find(replica_index, value, NULL, &found));
        }
    }
    cr_assert_eq(it.result, QUERN_OK);
    cr_assert_eq(count, found);
}

/* Up-terms read what single calls find. */
static void check_ups(void)
{
    every_handles in;
    every_register(every.replica, &in);
    const quern_component number = in.types[EVERY_NUMBER];
    for (quern_query_iterator it = quern_query_iterate(replica_ups); quern_query_next(&it);)
        for (uint32_t i = 0; i < it.view.count; i++) {
            const quern_entity entity = it.view.entities[i];
            quern_entity above = entity;
            const void *nearest = NULL, *shared = quern_entity_get_shared(every.replica, entity, number);
            while (nearest == NULL && !quern_entity_is_null(above)) {
                above = quern_entity_target(every.replica, above, in.relations[EVERY_PARENT]);
                if (!quern_entity_is_null(above)) nearest = quern_entity_get(every.replica, above, number);
            }
            cr_assert_eq(quern_view_up(&it.view, 1)[i], shared);
            cr_assert_eq(quern_view_up(&it.view, 2)[i], nearest);
        }
}

static void follow(uint64_t number)
{
    quern_delta *delta;
    must(quern_delta_create(history, replica_number, number, &delta));
    bytes.size_bytes = 0;
    must(quern_delta_write(delta, NULL, quern_sink_bytes(&bytes)));
    must(quern_delta_apply(applier, quern_source_bytes(bytes.bytes, bytes.size_bytes)));
    quern_delta_destroy(delta);
    replica_number = number;
    every_compare_other(every.replica, false);
    every_check_outside(every.replica);
    check_order();
    check_ups();
}

/* Plays a frame that may be played again. */
static outcome play_again(quern_jobs *jobs)
{
    return every_changes_layouts() ? play_rest(jobs) : play_frame(jobs);
}

/* Goes back to a frame and runs the next ones again, which must be as before. */
static void repeat_frames(quern_jobs *jobs, uint64_t number, uint64_t first, uint64_t count)
{
    outcome before[FRAMES];
    for (uint64_t i = 0; i < count; i++) {
        every.frame = first + i;
        before[i] = play_again(jobs);
    }
    must(quern_history_restore(history, number, jobs));
    if (every.is_modelled) every_model_restore(1);
    if (every.is_modelled) every_model_compare(every.world, true, NULL);
    for (uint64_t i = 0; i < count; i++) {
        every.frame = first + i;
        const outcome again = play_again(jobs);
        cr_assert_eq(again.hash, before[i].hash, "seed %llu: frame %llu, again",
                     (unsigned long long)every.seed, (unsigned long long)every.frame);
    }
}

/* Copies the world. The original and the copy go on, without prefabs, and remain the same. Then the original is as before;
 * `history` has its frame. */
static void check_copy(uint64_t number, uint64_t first, uint64_t count)
{
    outcome in_copy[FRAMES];
    const uint64_t seen = every.observed;
    quern_jobs *jobs = setup_jobs(pool_threads[every.seed / 2 % POOL_COUNT]);
    every.is_modelled = false;
    every.has_no_prefabs = true;
    quern_world *original = every.world,
                *copy = every_open_copy(schedule_style((uint32_t)every.seed % STYLE_COUNT));
    cr_assert_eq(quern_world_hash(copy), quern_world_hash(original));
    assert_valid(copy);
    every.is_modelled = true;
    const every_comparison comparison = {.ignores_dead_handles = true};
    every_model_compare(copy, false, &comparison);
    every.is_modelled = false;
    for (uint64_t i = 0; i < count; i++) {
        every.frame = first + i;
        in_copy[i] = play_again(jobs);
    }
    every_close_copy();
    every.observed = seen;
    for (uint64_t i = 0; i < count; i++) {
        every.frame = first + i;
        const outcome in_original = play_again(NULL);
        cr_assert_eq(in_original.hash, in_copy[i].hash, "seed %llu, frame %llu: the hash in a copy",
                     (unsigned long long)every.seed, (unsigned long long)every.frame);
        cr_assert_eq(in_original.observed, in_copy[i].observed,
                     "seed %llu, frame %llu: what was seen in a copy", (unsigned long long)every.seed,
                     (unsigned long long)every.frame);
    }
    must(quern_history_restore(history, number, NULL));
    every.observed = seen;
    every.has_no_prefabs = false;
    every.is_modelled = true;
    quern_jobs_destroy(jobs);
}

/* The number of a frame in the history, before its types are changed, and the numbers after it. */
static uint64_t number_of(uint64_t frame)
{
    return 4 * frame;
}

/* Plays frames from one that the history has, back and forth. Returns the features. */
static uint64_t play_back_and_forth(uint64_t number, uint64_t first, uint64_t count)
{
    const uint64_t seen = every.observed;
    every_model_save(1);
    repeat_frames(NULL, number, first, count);
    must(quern_history_restore(history, number, NULL));
    every_model_restore(1);
    every.observed = seen;
    if (every.has_hooks) return every_bit(EVERY_USES_HISTORY);
    check_copy(number, first, count);
    return every_bit(EVERY_USES_HISTORY) | every_bit(EVERY_USES_COPY);
}

static quern_world *old_replica; /* which has not got the layouts of the world */
static bool is_behind;           /* nor the changes before them */

/* A delta between frames of the new layouts does not fit a world with the old ones, which is then made again. */
static void renew_replica(uint64_t from, uint64_t to)
{
    const uint64_t hash = quern_world_hash(old_replica);
    quern_delta *delta;
    every.replica = old_replica;
    if (!is_behind && quern_delta_create(history, from, to, &delta) == QUERN_OK) {
        bytes.size_bytes = 0;
        must(quern_delta_write(delta, NULL, quern_sink_bytes(&bytes)));
        quern_delta_destroy(delta);
        const quern_result result =
            quern_delta_apply(applier, quern_source_bytes(bytes.bytes, bytes.size_bytes));
        if (result != QUERN_OK) {
            cr_assert_eq(result, QUERN_ERROR_LAYOUT_MISMATCH, "seed %llu, frame %llu: %s",
                         (unsigned long long)every.seed, (unsigned long long)every.frame,
                         quern_error_message());
            cr_assert_eq(quern_world_hash(old_replica), hash);
        }
    }
    close_replica();
    open_replica(to);
}

/* Changes types before a frame, and plays the frame in several ways. Kept frames go, and objects that know the layouts from
 * before refuse to go on. Returns the features. */
static uint64_t change_layouts(void)
{
    const uint64_t number = number_of(every.frame);
    bool follows = every_mix(every.seed + every.frame) % 3 != 0;
    quern_save_session *session;
    quern_archive *nothing;
    quern_delta *delta;
    every_change_before();
    if (every.replica != NULL) {
        const quern_result saved = quern_history_save(history, number + 1, NULL);
        cr_assert(saved == QUERN_OK || saved == QUERN_ERROR_INVALID_ARGUMENT, "%s", quern_error_message());
        is_behind = saved != QUERN_OK; /* a removed value with lists waits for a reaction */
        if (is_behind) follows = false;
        if (!is_behind) follow(number + 1);
    }
    must(quern_archive_create(every.world, &nothing));
    must(quern_save_session_create(every.world, NULL, &session));
    if (!follows) {
        old_replica = every.replica;
        every.replica = NULL;
    }
    every_change_types();
    bytes.size_bytes = 0;
    const quern_result written = quern_save_session_write(session, nothing, quern_sink_bytes(&bytes));
    if (every.converted_count > 0 || every.seed % 2 == 0) /* in other seeds, commands may wait */
        cr_assert_eq(written, every.converted_count > 0 ? QUERN_ERROR_INVALID_ARGUMENT : QUERN_OK);
    quern_save_session_destroy(session);
    quern_archive_destroy(nothing);
    if (history == NULL) return 0;
    const quern_result saved = quern_history_save(history, number + 2, NULL);
    if (every.replica != NULL) replica_number = number + 2;
    cr_assert(saved == QUERN_OK || saved == QUERN_ERROR_INVALID_ARGUMENT, "%s", quern_error_message());
    if (saved != QUERN_OK) return 0; /* a removed value with hooks waits for a reaction */
    if (every.converted_count > 0) {
        const uint64_t hash = quern_world_hash(every.world);
        cr_assert_eq(quern_history_restore(history, number, NULL), QUERN_ERROR_INVALID_ARGUMENT);
        cr_assert_eq(quern_delta_create(history, number, number + 2, &delta), QUERN_ERROR_INVALID_ARGUMENT);
        cr_assert_eq(quern_world_hash(every.world), hash);
    }
    return play_back_and_forth(number + 2, every.frame, 1);
}

/* Carries the frame that has just run elsewhere. Returns the features. */
static uint64_t check_elsewhere(void)
{
    const uint64_t chosen = every_mix(every.seed * 31 + every.frame);
    uint64_t features = 0;
    if (chosen % 3 == 0) {
        check_archive();
        check_bare_archive();
        features |= every_bit(EVERY_USES_ARCHIVE);
    }
    if (chosen / 3 % 3 == 0) {
        check_json();
        features |= every_bit(EVERY_USES_JSON);
    }
    if (chosen / 9 % 3 == 0) {
        check_session();
        features |= every_bit(EVERY_USES_SESSION);
    }
    if (chosen / 27 % 3 != 0 && every.replica != NULL && replica_number < number_of(every.frame + 1)) {
        follow(number_of(every.frame + 1));
        features |= every_bit(EVERY_USES_DELTA);
    }
    return features;
}

/* ------------------------------------------------------------------------------------------- styles */

/* Lets archetypes have runs of many chunks as soon as they have a row, or only when they are large. In every second seed
 * chunks have few rows, so that commands, reactions and snapshots cross the borders of chunks. */
static void choose_runs(uint64_t chooser)
{
    quern__chunk_policies = (quern__chunk_policy){
        .gathered_chunks = chooser % 2 == 0 ? 1 : QUERN__RUN_CHUNKS,
        .slab_chunks = chooser % 4 == 0 ? QUERN__RUN_CHUNKS + 1 : 2 * QUERN__SLAB_CHUNKS,
        .most_rows = every.seed % 2 == 0 ? UINT32_MAX : 1 + (uint32_t)(every_mix(every.seed) % 9)};
}

static void play_with_model(void)
{
    choose_runs(every.seed / 2);
    every.is_modelled = true;
    every.observed = 0;
    every_open((quern_schedule_def){.disable_fusing = true}, NULL);
    const bool has_history = every.seed % 2 == 0;
    if (has_history)
        must(quern_history_create(every.world, &(quern_history_def){.schedules = {every.schedule}},
                                  &history));
    if (has_history) must(quern_history_save(history, 0, NULL));
    if (has_history && !every.has_hooks) open_replica(0);
    every_model_compare(every.world, true, NULL);
    for (uint64_t at = 0; at < FRAMES; at++) {
        uint64_t features = 0;
        if (has_history && at > 0 && at % 3 == 0 && at + 1 < FRAMES)
            features |= play_back_and_forth(number_of(at), at, 2);
        every.frame = at;
        if (every_changes_layouts()) features |= change_layouts();
        every.frame = at;
        expected[at] = play_again(NULL);
        every_model_compare(every.world, true, NULL);
        if (has_history) must(quern_history_save(history, number_of(at + 1), NULL));
        if (old_replica != NULL) renew_replica(number_of(at) + 2, number_of(at + 1));
        old_replica = NULL;
        features |= check_elsewhere();
        every_model_count_pairs(features | every.schedule_features | every.type_features);
    }
    change_count += every_model_change_count();
    if (every.replica != NULL) close_replica();
    quern_history_destroy(history);
    history = NULL;
    every_close();
    every.is_modelled = false;
}

static void play_as_expected(quern_schedule_def style, uint32_t thread_count, bool disable_fast_paths)
{
    quern_jobs *jobs = setup_jobs(thread_count);
    choose_runs(every.seed / 2 + thread_count);
    every.observed = 0;
    every_open(style, NULL);
    every.schedule->playback.parallel_command_count = 1;
    must(quern__world_reserve_commands(every.world, 1));
    every.world->commands->playback.parallel_command_count = 1;
    every.schedule->playback.disable_fast_paths = disable_fast_paths;
    every.world->commands->playback.disable_fast_paths = disable_fast_paths;
    for (every.frame = 0; every.frame < FRAMES; every.frame++) {
        const outcome actual = play_frame(jobs);
        assert_valid(every.world);
        cr_assert_eq(actual.observed, expected[every.frame].observed,
                     "seed %llu, frame %llu, %u threads: what was seen", (unsigned long long)every.seed,
                     (unsigned long long)every.frame, thread_count);
        cr_assert_eq(actual.hash, expected[every.frame].hash, "seed %llu, frame %llu, %u threads: the hash",
                     (unsigned long long)every.seed, (unsigned long long)every.frame, thread_count);
    }
    every_close();
    quern_jobs_destroy(jobs);
}

/* A recording ends before a frame in which layouts change. */
static bool begins_recording(uint64_t frame)
{
    every.frame = frame;
    return frame == 0 || every_changes_layouts();
}

static uint64_t first_recorded; /* first frame of the recording that is replayed */

static bool compare_replayed(void *user_data, uint64_t frame)
{
    every_check_outside(every.world);
    cr_assert_eq(every.observed, expected[first_recorded + frame].observed,
                 "seed %llu, frame %llu: what was seen in a replay", (unsigned long long)every.seed,
                 (unsigned long long)every.frame);
    return true;
}

static void change_before_replayed(void *user_data, uint64_t frame)
{
    every.frame = first_recorded + frame;
    if (frame > 0) every_change_types(); /* before the first one it was done */
    every_play_between(user_data);
}

/* Records frames, of which two resources are the inputs. Returns the number of recordings. */
static uint32_t record_frames(quern_byte_buffer *recordings, uint64_t chosen)
{
    quern_replay_recorder *recorder = NULL;
    quern_jobs *jobs = setup_jobs(pool_threads[chosen % POOL_COUNT]);
    uint32_t count = 0;
    every.observed = 0;
    every_open(schedule_style((uint32_t)(every.seed + 1) % STYLE_COUNT), NULL);
    const quern_replay_recorder_def def = {.inputs = {every.types.resources[0], every.types.resources[1]},
                                           .detail = (quern_replay_detail)(chosen / 16 % 3),
                                           .entity_interval = (uint32_t)(chosen / 64 % 3)};
    for (uint64_t frame = 0; frame < FRAMES; frame++) {
        const bool begins = begins_recording(frame);
        if (begins && recorder != NULL) must(quern_replay_finish(recorder));
        every_change_before();
        every_change_types();
        every_play_between(jobs);
        if (begins)
            must(quern_replay_recorder_create(every.schedule, quern_sink_bytes(&recordings[count++]), &def,
                                              &recorder));
        must(quern_replay_record(recorder, jobs, 0));
        every_check_outside(every.world);
        cr_assert_eq(quern_world_hash(every.world), expected[frame].hash,
                     "seed %llu, frame %llu: the hash while recording", (unsigned long long)every.seed,
                     (unsigned long long)frame);
    }
    must(quern_replay_finish(recorder));
    every_close();
    quern_jobs_destroy(jobs);
    return count;
}

/* Records frames, and replays them in another style, on another number of threads. What the program does between frames is
 * done again. */
static void play_recorded(void)
{
    quern_byte_buffer recordings[FRAMES] = {{0}};
    const uint64_t chosen = every_mix(every.seed * 13);
    const uint32_t count = record_frames(recordings, chosen);
    quern_jobs *jobs = setup_jobs(pool_threads[chosen / POOL_COUNT % POOL_COUNT]);
    uint64_t frame_count = 0;
    every.observed = 0;
    every_open(schedule_style((uint32_t)(every.seed + 3) % STYLE_COUNT), NULL);
    for (uint32_t i = 0; i < count; i++) {
        quern_replay_report report;
        every.frame = first_recorded = frame_count;
        every_change_before();
        every_change_types();
        must(quern_replay_run(
            every.schedule, jobs, quern_source_bytes(recordings[i].bytes, recordings[i].size_bytes),
            &(quern_replay_run_def){
                .before_frame = change_before_replayed, .after_frame = compare_replayed, .user_data = jobs},
            &report));
        frame_count += report.frame_count;
        quern_byte_buffer_release(&recordings[i]);
    }
    cr_assert_eq(frame_count, FRAMES);
    assert_valid(every.world);
    every_close();
    quern_jobs_destroy(jobs);
}

/* Plays frames in which allocations fail: at random calls, and anywhere in the frame. A frame that fails is taken back
 * and runs again, with the outcome that it must have. */
static void play_without_memory(quern_schedule_def style, uint32_t thread_count)
{
    quern_jobs *jobs = setup_jobs(thread_count);
    choose_runs(every.seed / 3);
    every.failing = failing_allocator_create();
    const quern_allocator allocator = failing_allocator_interface(every.failing);
    every_open(style, &allocator);
    must(quern_history_create(every.world, &(quern_history_def){.schedules = {every.schedule}}, &history));
    for (every.frame = 0; every.frame < FRAMES; every.frame++) {
        every_change_before();
        failing_allocator_fail_often(every.failing,
                                     1 + (uint32_t)(every_mix(every.seed + every.frame) % 30),
                                     every.seed * 5 + every.frame);
        every_change_types();
        failing_allocator_heal(every.failing);
        failing_allocator_pause(every.failing, false);
        const quern_result saved = quern_history_save(history, every.frame, jobs);
        /* a removed value with hooks, or a command that spawns, may wait */
        cr_assert(saved == QUERN_OK || (saved == QUERN_ERROR_INVALID_ARGUMENT && every_changes_layouts()),
                  "%s", quern_error_message());
        failing_allocator_fail_often(every.failing, 20, every.seed + every.frame);
        every_play_between(jobs);
        failing_allocator_heal(every.failing);
        failing_allocator_pause(every.failing, false);
        if (saved == QUERN_OK)
            failing_allocator_fail_often(every.failing,
                                         1 + (uint32_t)(every_mix(every.seed + every.frame) % 40),
                                         every.seed * 3 + every.frame);
        const quern_result result = quern_schedule_run(every.schedule, jobs, 0);
        failing_allocator_heal(every.failing);
        assert_valid(every.world);
        if (result != QUERN_OK) {
            cr_assert_eq(result, QUERN_ERROR_OUT_OF_MEMORY, "seed %llu, frame %llu: %s",
                         (unsigned long long)every.seed, (unsigned long long)every.frame,
                         quern_error_message());
            every.failed_count++;
            must(quern_history_restore(history, every.frame, jobs));
            every_play_between(jobs);
            failing_allocator_pause(every.failing, false);
            must_run(every.schedule, jobs);
        }
        every_check_outside(every.world);
        cr_assert_eq(quern_world_hash(every.world), expected[every.frame].hash,
                     "seed %llu, frame %llu, %u threads: the hash after failed allocations",
                     (unsigned long long)every.seed, (unsigned long long)every.frame, thread_count);
    }
    quern_history_destroy(history);
    history = NULL;
    every_close();
    failing_allocator_close(every.failing);
    every.failing = NULL;
    quern_jobs_destroy(jobs);
}

/* Pairs that cannot occur: nothing is drawn together with a feature that excludes it. */
static const struct {
    every_feature first, second;
    const char *reason;
} impossible[] = {
    {EVERY_USES_HOOKS, EVERY_USES_DELTA, "values with hooks cannot be written as bytes of a delta"},
    {EVERY_USES_HOOKS, EVERY_USES_COPY, "values with hooks cannot be saved with the state of schedules"},
    {EVERY_USES_SPAWN, EVERY_USES_CREATE, "an entity is created once"},
    {EVERY_USES_SPAWN, EVERY_USES_CREATE_MANY, "an entity is created once"},
    {EVERY_USES_SPAWN_VALUE, EVERY_USES_CREATE, "an entity is created once"},
    {EVERY_USES_SPAWN_VALUE, EVERY_USES_CREATE_MANY, "an entity is created once"},
    {EVERY_USES_SPAWN_CHANGED, EVERY_USES_CREATE, "an entity is created once"},
    {EVERY_USES_SPAWN_CHANGED, EVERY_USES_CREATE_MANY, "an entity is created once"},
};

static bool is_impossible(uint32_t a, uint32_t b)
{
    for (uint32_t i = 0; i < COUNT_OF(impossible); i++)
        if ((impossible[i].first == a && impossible[i].second == b) ||
            (impossible[i].first == b && impossible[i].second == a))
            return true;
    return false;
}

/* Each pair of features must have been drawn together, by so many seeds. */
static void check_pairs(void)
{
    char missing[4096] = "";
    size_t length = 0;
    for (uint32_t a = 0; a < EVERY_FEATURES; a++)
        for (uint32_t b = 0; b <= a && length < sizeof missing; b++)
            if (every_pairs[a][b] == 0 && !is_impossible(a, b))
                length += (size_t)snprintf(missing + length, sizeof missing - length, " '%s' and '%s';",
                                           every_feature_names[a], every_feature_names[b]);
    cr_assert_eq(length, 0u, "never drawn together:%s", missing);
}

static void check_amounts(void)
{
    check_pairs();
    cr_assert_gt(every.failed_count, 1000u);
    cr_assert_gt(change_count * RUNS, 1000000u, "%llu changes in each run",
                 (unsigned long long)change_count);
}

Test(every, frames_match_the_model_in_every_style, .timeout = 600)
{
    const char *only = getenv("QUERN_EVERY_SEED");
    for (uint64_t i = 1; i <= SEEDS; i++) {
        every.seed = only != NULL ? strtoull(only, NULL, 10) : i;
        play_with_model();
        for (uint32_t k = 0; k < POOL_COUNT; k++) {
            every.is_harmless = k % 2 == 1;
            play_as_expected(schedule_style((uint32_t)(every.seed + k) % STYLE_COUNT), pool_threads[k],
                             k % 3 == 1);
        }
        every.is_harmless = false;
        play_recorded();
        play_without_memory(schedule_style((uint32_t)every.seed % STYLE_COUNT),
                            pool_threads[every.seed % POOL_COUNT]);
        if (only != NULL) break;
    }
    if (SEEDS >= 100 && only == NULL) check_amounts(); /* under sanitizers, a few seeds reach all code */
}
