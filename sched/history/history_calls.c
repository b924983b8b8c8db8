/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Public calls on histories and deltas (quern/history.h): a world is saved and restored together with its schedules. */

#include "core/history/history_internal.h"
#include "core/query/query_internal.h"
#include "sched/frame/schedule_internal.h"
#include "sched/history/saved_schedule.h"
#include "sched/jobs/jobs_internal.h"

enum { DEFAULT_FRAMES = 16 };

struct quern_history {
    quern__history core;
    quern_schedule *schedules[QUERN_MAX_HISTORY_SCHEDULES];
    uint32_t schedule_count;
};

/* ----------------------------------------------------------------------------------------- life cycle */

static quern_result create_history(quern_world *world, const quern_history_def *def,
                                   quern_history **out_history)
{
    static const quern_history_def zero;
    if (def == NULL) def = &zero;
    uint32_t schedule_count = 0;
    quern_allocator allocator;
    quern_result result = quern__choose_allocator(&def->allocator, "quern_history_create", &allocator);
    if (result == QUERN_OK) result = quern__world_check_unlocked(world, "quern_history_create");
    if (result == QUERN_OK && def->frame_count > QUERN_MAX_HISTORY_FRAMES)
        result = quern__fail(QUERN_ERROR_LIMIT,
                             "frame_count is %u, and a history keeps at most %d frames "
                             "(QUERN_MAX_HISTORY_FRAMES): keep fewer, or save less often",
                             def->frame_count, QUERN_MAX_HISTORY_FRAMES);
    if (result == QUERN_OK)
        result =
            quern__schedules_check(world, def->schedules, QUERN_MAX_HISTORY_SCHEDULES, &schedule_count);
    if (result != QUERN_OK) return result;
    quern_history *history = quern__allocate(&allocator, sizeof *history, _Alignof(quern_history));
    if (history == NULL) return quern__history_fail_memory("a history");
    *history = (quern_history){.schedule_count = schedule_count};
    memcpy(history->schedules, def->schedules, schedule_count * sizeof(quern_schedule *));
    result = quern__history_init(&history->core, world, &allocator,
                                 def->frame_count > 0 ? def->frame_count : DEFAULT_FRAMES);
    if (result != QUERN_OK) {
        quern__release(&allocator, history, sizeof *history, _Alignof(quern_history));
        return result;
    }
    for (uint32_t i = 0; i < schedule_count; i++)
        history->schedules[i]->has_history = true;
    *out_history = history;
    return QUERN_OK;
}

quern_result quern_history_create(quern_world *world, const quern_history_def *def,
                                  quern_history **out_history)
{
    QUERN__NEED(world);
    QUERN__NEED(out_history);
    QUERN__ENTER(world);
    return quern__in_call(create_history(world, def, out_history), __func__);
}

void quern_history_destroy(quern_history *history)
{
    if (history == NULL) return;
    if (history->core.world->locked) {
        quern__report_violation(QUERN_ERROR_WORLD_LOCKED,
                                "quern_history_destroy: " QUERN__WORLD_LOCKERS
                                " is running on the history's world; destroy the history afterwards");
        return;
    }
    if (history->core.delta_count > 0) {
        quern__report_violation(
            QUERN_ERROR_INVALID_ARGUMENT,
            "quern_history_destroy: %u deltas still hold frames of the history: destroy them "
            "first (quern_delta_destroy)",
            history->core.delta_count);
        return;
    }
    for (const quern_world_user *user = history->core.world->first_user; user != NULL; user = user->next) {
        if (user->history != history) continue;
        quern__report_violation(
            QUERN_ERROR_INVALID_ARGUMENT,
            "quern_history_destroy: %s still refers to the history; destroy it first, or "
            "remove it (quern_world_remove_user)",
            user->name);
        return;
    }
    const quern_allocator allocator = history->core.store.allocator;
    for (uint32_t i = 0; i < history->schedule_count; i++)
        history->schedules[i]->has_history = false;
    quern__history_release(&history->core);
    quern__release(&allocator, history, sizeof *history, _Alignof(quern_history));
}

/* --------------------------------------------------------------------------------- saving, restoring */

static void save_schedules(const quern_history *history, quern__byte_writer *writer)
{
    for (uint32_t i = 0; i < history->schedule_count; i++) {
        quern__schedule_save_members(history->schedules[i], writer);
        quern__schedule_save(history->schedules[i], writer);
    }
}

static bool is_in_history(const quern_history *history, const quern_schedule *schedule)
{
    for (uint32_t i = 0; i < history->schedule_count; i++)
        if (history->schedules[i] == schedule) return true;
    return false;
}

static quern_result save(quern_history *history, uint64_t frame)
{
    /* Commands that the history's schedules keep are saved. Commands of other schedules, and events that
     * are not published, cannot be saved. */
    quern_result result = QUERN_OK;
    for (const quern_schedule *schedule = history->core.world->first_schedule;
         schedule != NULL && result == QUERN_OK; schedule = schedule->next_schedule)
        result = is_in_history(history, schedule) ? quern__schedule_check_published(schedule)
                                                  : quern__schedule_check_unsaved(schedule);
    if (result != QUERN_OK) return result;
    quern__byte_writer measure = {.capacity = SIZE_MAX};
    save_schedules(history, &measure);
    quern__snapshot snapshot;
    result = quern__history_build(&history->core, frame, measure.count, &snapshot);
    if (result != QUERN_OK) return result;
    quern__byte_writer writer = quern__page_writer(&history->core.store, snapshot.caller_state);
    save_schedules(history, &writer);
    quern__history_add_frame(&history->core, &snapshot);
    return QUERN_OK;
}

/* Returns INVALID_ARGUMENT, with a message that the history does not contain the frame. */
static quern_result history_fail_frame(const quern_history *history, uint64_t frame)
{
    uint64_t oldest = 0, newest = 0;
    if (!quern_history_get_frames(history, &oldest, &newest))
        return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                           "frame %llu is not kept: no frame was saved (quern_history_save)",
                           (unsigned long long)frame);
    return quern__fail(
        QUERN_ERROR_INVALID_ARGUMENT,
        "frame %llu is not kept: the history has frames %llu to %llu, at most %u: raise frame_count",
        (unsigned long long)frame, (unsigned long long)oldest, (unsigned long long)newest,
        history->core.frame_capacity);
}

static void restore_schedules(const quern_history *history, const quern__snapshot *snapshot)
{
    quern__byte_reader reader = quern__page_reader(&history->core.store, snapshot->caller_state);
    for (uint32_t i = 0; i < history->schedule_count; i++)
        quern__schedule_restore_members(history->schedules[i], &reader);
    for (quern_schedule *schedule = history->core.world->first_schedule; schedule != NULL;
         schedule = schedule->next_schedule) {
        /* Discards the events, and for a schedule outside of the history also the commands, that a
         * failed frame has left. They belong to a frame that the restore undoes: no frame is saved
         * while they exist (save). The commands of schedules in the history were
         * already exchanged with those in the snapshot. */
        if (!is_in_history(history, schedule)) quern__schedule_discard_kept(schedule);
        quern__events_discard(schedule);
        if (QUERN_CHECKS) quern__guards_invalidate(schedule);
    }
}

static quern_result restore(quern_history *history, uint64_t frame)
{
    const quern__snapshot *snapshot = quern__history_find(&history->core, frame);
    if (snapshot == NULL) return history_fail_frame(history, frame);
    const quern_result result = quern__history_restore(&history->core, snapshot);
    if (result == QUERN_OK) restore_schedules(history, snapshot);
    return result;
}

_Static_assert(QUERN_MAX_HISTORY_SCHEDULES <= QUERN__MAX_RECORDER_LISTS, "each schedule has a list");

typedef quern_result history_call(quern_history *history, uint64_t frame);

static quern_result run_call(quern_history *history, uint64_t frame, quern_jobs *jobs, history_call *call,
                             const char *function)
{
    if (history == NULL) return quern__fail_null(function, "history");
    const bool enters_pool = jobs != NULL && quern__jobs_current_worker(jobs) == NULL;
    quern_result result = quern__world_check_unlocked(history->core.world, function);
    /* an exclusive system of a running frame has commands, events and rows that belong to no saved state */
    for (const quern_schedule *schedule = history->core.world->first_schedule;
         schedule != NULL && result == QUERN_OK; schedule = schedule->next_schedule)
        result = quern__schedule_check_idle(schedule, function);
    if (result == QUERN_OK && enters_pool) result = quern__jobs_enter(jobs, function);
    if (result != QUERN_OK) return result;
    quern__executor executor;
    history->core.executor = quern__jobs_executor(jobs, &executor);
    /* Lists the command recorders of the schedules. Their number may have grown since the last call. */
    history->core.caller_recorder_count = history->schedule_count;
    for (uint32_t i = 0; i < history->schedule_count; i++)
        history->core.caller_recorders[i] = quern__schedule_recorders(history->schedules[i]);
    result = quern__in_call(call(history, frame), function);
    history->core.executor = NULL;
    if (enters_pool) quern__jobs_leave(jobs);
    return result;
}

quern_result quern_history_save(quern_history *history, uint64_t frame, quern_jobs *jobs)
{
    return run_call(history, frame, jobs, save, __func__);
}

quern_result quern_history_restore(quern_history *history, uint64_t frame, quern_jobs *jobs)
{
    return run_call(history, frame, jobs, restore, __func__);
}

/* ------------------------------------------------------------------------------ frames and statistics */

bool quern_history_get_frames(const quern_history *history, uint64_t *out_oldest, uint64_t *out_newest)
{
    QUERN__NEED_OR(history, false);
    const uint32_t count = history->core.frame_count;
    if (count == 0) return false;
    if (out_oldest != NULL) *out_oldest = quern__history_frame(&history->core, 0)->frame;
    if (out_newest != NULL) *out_newest = quern__history_frame(&history->core, count - 1)->frame;
    return true;
}

uint32_t quern_history_list_frames(const quern_history *history, uint64_t *out_frames, uint32_t capacity)
{
    QUERN__NEED_OR(history, 0);
    QUERN__NEED_LIST_OR(out_frames, capacity, 0);
    const uint32_t count = history->core.frame_count;
    for (uint32_t i = 0; i < count && i < capacity; i++)
        out_frames[i] = quern__history_frame(&history->core, i)->frame;
    return count;
}

quern_result quern_history_get_stats(const quern_history *history, quern_history_stats *out_stats)
{
    QUERN__NEED(history);
    QUERN__NEED(out_stats);
    const quern__history *core = &history->core;
    *out_stats = (quern_history_stats){.frame_count = core->frame_count,
                                       .page_count = core->store.used_count,
                                       .used_bytes = core->store.used_bytes,
                                       .held_bytes = core->store.held_bytes,
                                       .copied_bytes = core->copied_bytes,
                                       .copied_count = core->copied_count};
    return QUERN_OK;
}

uint64_t quern_world_restore_count(const quern_world *world)
{
    QUERN__NEED_OR(world, 0);
    return world->restore_count;
}

/* ------------------------------------------------------------------------------------------- deltas */

static quern_result create_delta(quern_history *history, uint64_t from, uint64_t to,
                                 const quern_delta_def *def, quern_delta **out_delta)
{
    const quern__snapshot *older = quern__history_find(&history->core, from);
    const quern__snapshot *newer = quern__history_find(&history->core, to);
    if (older == NULL) return history_fail_frame(history, from);
    if (newer == NULL) return history_fail_frame(history, to);
    if (older == newer)
        return quern__fail(
            QUERN_ERROR_INVALID_ARGUMENT,
            "from and to are both frame %llu: nothing differs from itself; save the world under "
            "another number to compare it as it is now",
            (unsigned long long)from);
    return quern__delta_make(&history->core, older, newer, def, out_delta);
}

quern_result quern_delta_create(quern_history *history, uint64_t from, uint64_t to, quern_delta **out_delta)
{
    static const quern_delta_def zero;
    QUERN__NEED(history);
    QUERN__NEED(out_delta);
    quern_result result = quern__world_check_unlocked(history->core.world, __func__);
    if (result == QUERN_OK) result = create_delta(history, from, to, &zero, out_delta);
    return quern__in_call(result, __func__);
}

quern_result quern_delta_create_limited(quern_history *history, uint64_t from, uint64_t to,
                                        const quern_delta_def *def, quern_delta **out_delta)
{
    QUERN__NEED(history);
    QUERN__NEED(def);
    QUERN__NEED(out_delta);
    const quern_world *world = history->core.world;
    quern_result result = quern__world_check_unlocked(world, __func__);
    if (result == QUERN_OK) result = quern__delta_check_components(world, def->components);
    if (result == QUERN_OK && def->query != NULL) {
        /* Checks that the query depends on the components of an entity alone, so that it can be asked
         * about earlier frames. */
        quern_query *query = def->query;
        if (query->world != world)
            return quern__fail(
                QUERN_ERROR_INVALID_ARGUMENT,
                "%s: the query belongs to another world than the history: create it in the world of "
                "the history",
                __func__);
        if (query->filter_count > 0)
            return quern__fail(
                QUERN_ERROR_INVALID_ARGUMENT,
                "%s: the query has change filters, but a delta finds by itself what has changed: use a "
                "query without them",
                __func__);
        if (query->up_count > 0 || query->target != NULL)
            return quern__fail(
                QUERN_ERROR_INVALID_ARGUMENT,
                "%s: the query has a target term or up-terms, which select single rows: use a query "
                "without them, or mark the entities by a tag",
                __func__);
        result = quern__query_prepare(query, __func__);
        if (result != QUERN_OK) return result;
    }
    if (result == QUERN_OK) result = create_delta(history, from, to, def, out_delta);
    return quern__in_call(result, __func__);
}

void quern_delta_destroy(quern_delta *delta)
{
    if (delta == NULL) return;
    if (delta->history->world->locked) {
        quern__report_violation(QUERN_ERROR_WORLD_LOCKED,
                                "quern_delta_destroy: " QUERN__WORLD_LOCKERS
                                " is running on the world of the delta; destroy the delta afterwards");
        return;
    }
    quern__delta_release(delta);
}

const quern_delta_batch *quern_delta_batches(const quern_delta *delta, uint32_t *out_count)
{
    if (out_count != NULL) *out_count = delta != NULL ? delta->count : 0;
    if (delta == NULL) quern__fail_null(__func__, "delta");
    if (out_count == NULL) quern__fail_null(__func__, "out_count");
    return delta != NULL && out_count != NULL ? delta->batches : NULL;
}

quern_result quern_delta_get_stats(const quern_delta *delta, quern_delta_stats *out_stats)
{
    QUERN__NEED(delta);
    QUERN__NEED(out_stats);
    *out_stats = delta->stats;
    return QUERN_OK;
}
