/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include <quern/parallel.h>

#include "core/playback/playback.h"
#include "core/query/query_internal.h"
#include "sched/jobs/jobs_internal.h"
#include "sched/jobs/loop.h"

/* Parallel iteration of a query outside of frames: one call on all views, and the commands that it records. */

static const char function_name[] = "quern_query_parallel_for";

typedef struct parallel_call {
    const quern__query *query;
    quern_view_callback *callback;
    quern__world_commands *commands;
    quern__flush_report report;
    /* Versions for change filters and for writes (core/storage/chunk.h). */
    uint64_t seen_version, version;
} parallel_call;

/* ------------------------------------------------------------------------------------------- views */

/* Ends the call on a view: closes its recorder, so that later commands are reported, and frees the scratch
 * memory of refused accesses. */
static void end_view(quern__plain_context *context)
{
    if (QUERN__UNLIKELY(quern__scope_refused(&context->scope) != QUERN_OK))
        quern__scratch_release(&context->scope);
    if (!context->has_stream) return;
    quern__commands_end(context->commands);
    context->has_stream = false;
}

/* Calls the function on the selected rows, as several views of one chunk. */
static void call_selected_rows(const parallel_call *call, const quern_view *chunk_view,
                               uint32_t worker_index)
{
    const quern__ups *ups = call->query->ups;
    const void **addresses = NULL;
    if (ups != NULL)
        addresses = ups->worker_addresses + worker_index * quern__ups_address_count(call->query->up_count);
    quern__rows_call(chunk_view, call->seen_version, addresses, call->callback);
}

static uint32_t count_views(const quern__query *query)
{
    return query->target != NULL ? query->target->ranges.count : query->entries.count;
}

/* Calls the function on the views of a query with a target term, which are row ranges. */
static void call_target_views(const parallel_call *call, uint32_t begin, uint32_t end,
                              quern__plain_context *context)
{
    quern_view view = {.query = call->query,
                       .version = call->version,
                       .context = (quern_context *)context,
                       .structure = (uint32_t)call->query->storage->structure_version,
                       .is_shared = true};
    for (uint32_t i = begin; i < end; i++) {
        quern__target_get_view(call->query, i, &view);
        if (!quern__query_passes(call->query, view.columns, view.versions, call->seen_version)) continue;
        view.ordinal = context->ordinal = i;
        if (call->query->selects_rows)
            call_selected_rows(call, &view, context->worker_index);
        else
            call->callback(view.context, &view);
        end_view(context);
    }
}

static void call_views(const parallel_call *call, uint32_t begin, uint32_t end,
                       quern__plain_context *context)
{
    quern_view view = {.query = call->query,
                       .term_count = call->query->term_count,
                       .version = call->version,
                       .context = (quern_context *)context,
                       .structure = (uint32_t)call->query->storage->structure_version};
    for (uint32_t i = begin; i < end; i++) {
        const quern__chunk_entry *entry = &call->query->entries.items[i];
        quern__view_set_change_data(&view, entry->tracking_archetype, entry->slot);
        if (!quern__query_passes(call->query, entry->columns, view.versions, call->seen_version)) continue;
        if (entry->fetches_next) quern__query_prefetch_next(call->query, entry);
        view.ordinal = context->ordinal = i;
        view.count = entry->count;
        view.run_shift = entry->run_shift;
        view.chunk_row = entry->chunk_row;
        view.memory = entry->memory;
        view.chunk = entry->chunk;
        view.columns = entry->columns;
        view.entities = entry->entities;
        if (QUERN__UNLIKELY(call->query->selects_rows))
            call_selected_rows(call, &view, context->worker_index);
        else
            call->callback(view.context, &view);
        end_view(context);
    }
}

static void run_views(void *user_data, uint32_t begin, uint32_t end, uint32_t worker_index)
{
    const parallel_call *call = user_data;
    quern__plain_context *context = call->commands->worker_contexts.items[worker_index];
    const quern_world *outer_world = quern__world_of_callback;
    quern__world_of_callback = call->query->world;
    context->thread = quern__this_thread();
    if (call->query->target != NULL)
        call_target_views(call, begin, end, context);
    else
        call_views(call, begin, end, context);
    context->thread = NULL;
    quern__world_of_callback = outer_world;
}

/* -------------------------------------------------------------------------------------------- calls */

static quern_result prepare(quern_query *query, const char *function)
{
    if (query == NULL) return quern__fail_null(function, "query");
    quern_result result = quern__world_check_unlocked(query->world, function);
    if (result == QUERN_OK && query->order != NULL)
        result = quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                             "the query has an order, which several threads could not keep: iterate it, or "
                             "use a query without order_by");
    if (result == QUERN_OK) result = quern__query_refresh(query);
    if (result == QUERN_OK) result = quern__query_list(query);
    return quern__in_call(result, function);
}

/* Resets what was refused and logged, and sets up one context per worker for this call. Relaxed: the next
 * increments are in callbacks, and the start of the loop orders the store before them. */
static void open_contexts(const parallel_call *call, quern_jobs *jobs, uint32_t worker_count,
                          void *user_data)
{
    quern_world *world = call->query->world;
    atomic_store_explicit(&call->commands->accessor.refusal_count, 0, memory_order_relaxed);
    atomic_store_explicit(&call->commands->has_logged_failed_command, false, memory_order_relaxed);
    for (uint32_t i = 0; i < worker_count; i++)
        *call->commands->worker_contexts.items[i] =
            (quern__plain_context){.scope = {.accessor = &call->commands->accessor,
                                             .storage = &world->storage,
                                             .caller = QUERN__CALLER_PARALLEL},
                                   .world = world,
                                   .user_data = user_data,
                                   .jobs = jobs,
                                   .commands = call->commands->worker_recorders.items[i],
                                   .worker_index = i,
                                   .first_serial = world->next_serial};
    world->next_serial += count_views(call->query);
}

/* Applies the recorded commands after all callbacks have returned. Relaxed: pairs with the increments in
 * callbacks, and waiting for the loop has ordered these before the load. */
static quern_result apply_recorded(parallel_call *call, quern_jobs *jobs)
{
    quern__executor executor;
    const uint32_t refusal_count =
        atomic_load_explicit(&call->commands->accessor.refusal_count, memory_order_relaxed);
    quern_result result = quern__world_apply_worker_commands(
        call->query->world, quern__jobs_executor(jobs, &executor), &call->report);
    if (result == QUERN_OK) result = quern__flush_result(&call->report, function_name);
    if (result != QUERN_OK || refusal_count == 0) return result;
    return quern__fail(QUERN_ERROR_UNDECLARED_ACCESS,
                       "%s: the callback was refused an access (%u in all): it worked on scratch memory "
                       "instead (see the log)",
                       function_name, refusal_count);
}

/* Calls the function on all views. The loop is closed: while a callback waits, its worker runs no other
 * part of the loop, so its context and stream remain unchanged. */
static quern_result call_all_views(parallel_call *call, quern_query *query, quern_jobs *jobs)
{
    quern_result result = QUERN_OK;
    const uint64_t seen_version = query->seen_version;
    /* If the query has change filters, its next iteration does not see the writes of this one as changes. */
    call->seen_version = query->seen_version;
    call->version = query->storage->clock;
    if (query->filter_count > 0) query->seen_version = query->storage->clock++;
    for (uint32_t i = 0; i < query->term_count && QUERN_CHECKS; i++)
        if (query->terms[i].access == QUERN_ACCESS_WRITE)
            quern__storage_note_written(query->storage, quern__component_index(query->terms[i].component));
    quern__world_set_locked(query->world, true);
    if (jobs == NULL)
        run_views(call, 0, count_views(query), 0);
    else
        result = quern__jobs_parallel_for(
            jobs,
            &(quern__range){
                .function = run_views, .user_data = call, .count = count_views(query), .is_closed = true},
            function_name);
    quern__world_set_locked(query->world, false);
    if (result != QUERN_OK)
        query->seen_version = seen_version; /* the failed call counts as if the query had seen no changes */
    return result;
}

static quern_result run_parallel(quern_query *query, quern_jobs *jobs, quern_view_callback *callback,
                                 void *user_data)
{
    const uint32_t worker_count = jobs != NULL ? jobs->worker_count : 1;
    parallel_call call = {.query = query, .callback = callback};
    /* The recorders of the workers must be empty: commands that the last parallel query could not apply are
     * applied first, which may change the query's views. */
    quern_result result = quern__world_check_unlocked(query->world, function_name);
    if (result == QUERN_OK) result = quern__world_reserve_commands(query->world, worker_count);
    if (result == QUERN_OK) result = quern__world_apply_worker_commands(query->world, NULL, &call.report);
    call.commands = query->world->commands;
    if (result == QUERN_OK) result = prepare(query, function_name);
    if (result == QUERN_OK && query->up_count > 0) {
        const uint32_t term = quern__query_up_conflict(query, (quern_relation){0});
        if (term == query->term_count)
            result = quern__ups_reserve_workers(query, worker_count);
        else /* the callback would write what other rows read at the same time */
            result = quern__fail(
                QUERN_ERROR_SCHEDULE_CONFLICT,
                "term %u reads '%s' upward, which the callback writes at the same time: iterate the "
                "query on one thread, or write to another component",
                term, quern_component_name(query->world, query->terms[term].component));
    }
    if (result != QUERN_OK) return quern__in_call(result, function_name);
    open_contexts(&call, jobs, worker_count, user_data);
    result = call_all_views(&call, query, jobs);
    if (result == QUERN_OK) result = apply_recorded(&call, jobs);
    return quern__in_call(result, function_name);
}

/* Enters the pool once for all loops: between two entries another thread could use the pool, and commands
 * would remain half applied. */
quern_result quern_query_parallel_for(quern_query *query, quern_jobs *jobs, quern_view_callback *callback,
                                      void *user_data)
{
    QUERN__NEED(callback);
    QUERN__NEED(query);
    QUERN__ENTER(query->world);
    const bool is_outside = jobs != NULL && quern__jobs_current_worker(jobs) == NULL;
    quern_result result = is_outside ? quern__jobs_enter(jobs, __func__) : QUERN_OK;
    if (result != QUERN_OK) return result;
    result = run_parallel(query, jobs, callback, user_data);
    if (is_outside) quern__jobs_leave(jobs);
    return result;
}

uint32_t quern_query_view_count(quern_query *query)
{
    return prepare(query, __func__) == QUERN_OK ? count_views(query) : 0;
}
