/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "sched/frame/schedule_internal.h"

#include "core/base/containers.h"
#include "core/platform/platform.h"
#include "core/query/query_internal.h"

/* Runs the jobs of a pass: its items, and the callbacks before and after them. Each callback gets the
 * context of the worker that calls it. No other callback has that context at the same time: while a
 * callback waits, its worker runs no other part of a pass (closed scopes, deque.h), and an external thread
 * that joins the pool is another worker.
 *
 * Whether the job is observed is checked once, when it begins. The functions that make calls are compiled
 * twice, for the two values of the constant `is_reported`: one copy reports each call to the observer, the
 * other contains no code for it. `prefetches` selects between copies in the same way, so that passes over
 * little data do not pay for prefetching. */

#define SPECIALIZED QUERN__ALWAYS_INLINE

/* ----------------------------------------------------------------------------------------- contexts */

/* Ends the stream and the emitters of the last callback. Code that has kept a recorder or an emitter is
 * refused from now on. */
static inline void end_output(quern_context *context)
{
    if (!context->has_output) return;
    if (context->has_stream) quern__commands_end(context->commands);
    if (context->open_emitters != NULL) quern__context_close_emitters(context);
    context->has_stream = false;
    context->has_output = false;
}

static quern_context *enter_pass(const quern__plan *plan, quern__callback_kind callback,
                                 uint32_t worker_index)
{
    quern_context *context = plan->schedule->contexts.items[worker_index];
    const quern_world *world = plan->world;
    context->is_busy = true;
    context->callback = callback;
    context->outer_world = quern__world_of_callback;
    quern__world_of_callback = world->locked ? world : NULL; /* exclusive callbacks may make any call */
    if (QUERN_CHECKS) context->thread = quern__this_thread();
    return context;
}

/* Ends the callbacks of a job. Code that has kept the context is refused from now on. */
static void leave_pass(quern_context *context)
{
    if (QUERN_CHECKS) context->thread = NULL;
    end_output(context);
    quern__world_of_callback = context->outer_world;
    context->is_busy = false;
}

static void enter_call(quern_context *context, const quern__system *system, uint32_t call_index)
{
    context->scope.accessor = (quern__accessor *)(uintptr_t)&system->accessor;
    context->system = system;
    context->call_index = call_index;
    end_output(context);
}

/* ------------------------------------------------------------------------------------------ observer */

static quern__observed_job make_job(const quern_context *context, const quern__pass_stage *stage,
                                    uint32_t begin, uint32_t end)
{
    return (quern__observed_job){.pass = stage->pass,
                                 .stage = stage,
                                 .callback = context->callback,
                                 .worker_index = context->worker_index,
                                 .begin = begin,
                                 .end = end};
}

static void begin_calls(const quern_context *context)
{
    quern__frame_observer *observer = context->schedule->observer;
    observer->calls->begin_calls(observer, context->worker_index);
}

static void report_call(const quern_context *context, uint32_t ordinal, uint32_t row_count)
{
    quern__frame_observer *observer = context->schedule->observer;
    const quern__observed_call call = {.system = context->system,
                                       .callback = context->callback,
                                       .worker_index = context->worker_index,
                                       .ordinal = ordinal,
                                       .row_count = row_count};
    observer->calls->end_call(observer, &call);
}

/* ------------------------------------------------------------------------------- before and after items */

/* Returns whether the conditions of all sets of the system have let it run. */
static bool sets_are_open(const quern__system *system)
{
    for (uint32_t i = 0; i < system->gate_set_count; i++)
        if (!system->gate_sets[i]->is_open) return false;
    return true;
}

/* Returns whether the system runs in this frame. Multiples of the interval are due times. A run covers all due
 * times that were reached; due_seconds is the time since the last covered one. While the condition returns
 * false, due_seconds continues to grow, so the system remains due. A closed set leaves an interval due, too, and costs a turn
 * of `every`. */
SPECIALIZED bool advance_gates(quern__system *system, quern_context *context, const bool is_reported)
{
    double interval = system->interval_seconds;
    if (interval > 0) {
        system->due_seconds += context->schedule->delta_seconds;
        system->elapsed_seconds += context->schedule->delta_seconds;
        if (system->due_seconds < interval) return false;
    } else if (system->every > 1) {
        system->elapsed_seconds += context->schedule->delta_seconds;
        if (context->schedule->turn % system->every != system->turn) return false;
    }
    if (!sets_are_open(system)) return false;
    if (system->has_refreshes && !quern__system_refresh(system)) return false;
    const uint64_t resources = system->access.watches_resources ? quern__system_hash_resources(system) : 0;
    if (resources != 0 && resources == system->seen_resources) return false;
    system->delta_seconds = system->elapsed_seconds;
    if (system->condition != NULL) {
        const bool is_wanted = system->condition(context);
        if (is_reported) report_call(context, 0, 0);
        if (!is_wanted) return false;
    }
    system->seen_resources = resources;
    system->elapsed_seconds = 0;
    system->due_seconds -= interval;
    if (system->due_seconds >= interval)
        system->due_seconds = quern__time_rest(system->due_seconds, interval);
    return true;
}

/* Notes the system if the callback was refused an access, and prepares the scope for the next callback.
 * Must be called after each callback. */
static inline void context_note_refusal(quern_context *context)
{
    if (QUERN__LIKELY(quern__scope_refused(&context->scope) == QUERN_OK)) return;
    context->refused_system = context->system->name;
    quern__scope_reset(&context->scope);
}

SPECIALIZED void begin_systems(const quern__pass *pass, quern_context *context, const bool is_reported)
{
    for (uint32_t i = 0; i < pass->systems.count; i++) {
        quern__system *system = pass->systems.items[i];
        if (!system->is_enabled || (system->reaction != NULL && system->view_count == 0)) continue;
        enter_call(context, system, QUERN__CALL_BEGIN);
        if (quern__system_is_gated(system)) system->is_active = advance_gates(system, context, is_reported);
        if (system->is_active && system->begin != NULL) {
            system->begin(context);
            if (is_reported) report_call(context, 0, 0);
        }
        if (QUERN_CHECKS) quern__guards_renew_open(context);
        context_note_refusal(context);
    }
}

SPECIALIZED void end_systems(const quern__pass *pass, quern_context *context, const bool is_reported)
{
    for (uint32_t i = 0; i < pass->systems.count; i++) {
        const quern__system *system = pass->systems.items[i];
        if (!system->is_active || system->end == NULL) continue;
        enter_call(context, system, QUERN__CALL_FIRST_VIEW + system->view_count);
        system->end(context);
        if (QUERN_CHECKS) quern__guards_renew_open(context);
        if (is_reported) report_call(context, 0, 0);
        context_note_refusal(context);
    }
}

void quern__pass_ask_set(const quern__plan *plan, quern__set *set, uint32_t worker_index)
{
    quern_context *context = enter_pass(plan, QUERN__CALLBACK_BEGIN, worker_index);
    quern_commands *commands = context->commands;
    enter_call(context, set->asker, QUERN__CALL_BEGIN);
    context->commands = NULL; /* calls that record fail */
    context->has_stream = true;
    set->is_open = set->asker->condition(context);
    context->commands = commands;
    context->has_stream = false;
    if (QUERN_CHECKS) quern__guards_renew_open(context);
    context_note_refusal(context);
    leave_pass(context);
}

typedef void run_systems_function(const quern__pass *pass, quern_context *context);

static void run_observed_systems(quern__pass *pass, quern_context *context, run_systems_function *run)
{
    quern__frame_observer *observer = context->schedule->observer;
    const quern__observed_job job = make_job(context, pass->stages, 0, 0);
    observer->calls->begin_job(observer, &job);
    run(pass, context);
    observer->calls->end_job(observer, &job);
}

static void begin_reported_systems(const quern__pass *pass, quern_context *context)
{
    begin_systems(pass, context, true);
}

static void end_reported_systems(const quern__pass *pass, quern_context *context)
{
    end_systems(pass, context, true);
}

void quern__pass_begin(void *argument, uint32_t begin, uint32_t end, uint32_t worker_index)
{
    quern__pass *pass = argument;
    (void)begin;
    (void)end;
    quern_context *context = enter_pass(pass->plan, QUERN__CALLBACK_BEGIN, worker_index);
    if (QUERN__UNLIKELY(context->schedule->is_observed))
        run_observed_systems(pass, context, begin_reported_systems);
    else
        begin_systems(pass, context, false);
    leave_pass(context);
}

void quern__pass_end(void *argument, uint32_t begin, uint32_t end, uint32_t worker_index)
{
    quern__pass *pass = argument;
    (void)begin;
    (void)end;
    quern_context *context = enter_pass(pass->plan, QUERN__CALLBACK_END, worker_index);
    if (QUERN__UNLIKELY(context->schedule->is_observed))
        run_observed_systems(pass, context, end_reported_systems);
    else
        end_systems(pass, context, false);
    leave_pass(context);
}

/* --------------------------------------------------------------------------------------- calls on views */

/* Returns the hash of a column that was declared for reading. Builds with checks compare it to detect that
 * code cast const away and wrote to the column: no callback may write the column while the view is in use.
 * Returns 0 if the system itself may write the column by lookups or further queries. */
static uint64_t hash_read_column(const quern_context *context, const quern_view *view, uint32_t term)
{
    const quern_view_column *column = &view->columns[term];
    const uint32_t index = quern__component_index(view->query->terms[term].component);
    const quern__access *access = &context->system->access;
    const bool may_change =
        quern__bitset_has(access->lookups.written, index) || quern__bitset_has(access->query_writes, index);
    if (column->access != QUERN_ACCESS_READ || column->offset_bytes == 0 || may_change) return 0;
    return quern__hash_bytes(0, quern__view_column_at(view, term),
                             (size_t)view->count * column->size_bytes);
}

static void report_write(quern_context *context, uint32_t term)
{
    const quern__query *query = &context->system->query;
    char declared[256];
    quern__query_describe(query, declared, sizeof declared);
    quern__refuse(&context->scope, QUERN_ERROR_UNDECLARED_ACCESS, "system '%s' wrote '%s' (declared: %s)",
                  context->system->name,
                  quern_component_name(context->schedule->plan.world, query->terms[term].component),
                  declared);
}

static void call_checked(quern_context *context, quern_view_callback *run, const quern_view *view)
{
    const uint32_t term_count = view->term_count;
    uint64_t before[QUERN_MAX_TERMS];
    for (uint32_t i = 0; i < term_count; i++)
        before[i] = hash_read_column(context, view, i);
    run(context, view);
    for (uint32_t i = 0; i < term_count; i++)
        if (before[i] != hash_read_column(context, view, i)) report_write(context, i);
}

/* Calls the system's function on the selected rows of the chunk. Builds with checks compare the hashes
 * of read columns once, over the whole chunk, before and after all these calls. */
static void call_selected_rows(quern_context *context, const quern_view *chunk_view)
{
    quern__rows_call(chunk_view, context->system->query.seen_version, context->addresses,
                     context->system->run);
}

/* Calls the function on the view. Returns true if the call was refused an access. */
SPECIALIZED bool call_run(quern_context *context, quern_view_callback *run, const quern_view *view,
                          const bool is_reported)
{
    if (QUERN_CHECKS)
        call_checked(context, run, view);
    else
        run(context, view);
    if (is_reported) report_call(context, view->ordinal, view->count);
    if (QUERN__LIKELY(quern__scope_refused(&context->scope) == QUERN_OK)) return false;
    context_note_refusal(context);
    return true;
}

/* Functions for reaction_rounds.c, which builds the views of reactions itself; see schedule_internal.h. */

void quern__pass_enter_call(quern_context *context, const quern__system *system, uint32_t call_index)
{
    enter_call(context, system, call_index);
}

void quern__pass_begin_calls(const quern_context *context)
{
    begin_calls(context);
}

void quern__pass_call_view(quern_context *context, quern_view_callback *run, const quern_view *view,
                           bool is_reported)
{
    call_run(context, run, view, is_reported);
    if (QUERN_CHECKS) quern__guards_renew_open(context);
}

void quern__pass_call_rows(quern_context *context, const quern__archetype *archetype,
                           quern_view_callback *run, const quern_view *view, bool is_reported)
{
    if (QUERN_CHECKS) quern__guards_begin_view(context, archetype, view);
    const bool was_refused = call_run(context, run, view, is_reported);
    if (QUERN_CHECKS) quern__guards_renew_view(context, archetype, view, was_refused);
    if (QUERN_CHECKS) quern__guards_renew_open(context);
}

#define ALL_LANES UINT32_MAX

/* Returns whether the system does not run in this frame, is in another lane, or has already seen the
 * chunk's changes. */
static bool is_skipped(const quern__pass_call *call, const quern_view *view, uint32_t lane)
{
    const quern__system *system = call->system;
    return !system->is_active || (lane != ALL_LANES && lane != system->lane) ||
           !quern__query_passes(call->query, call->columns, view->versions, call->query->seen_version);
}

/* Sets the members of the view that differ from chunk to chunk. */
SPECIALIZED void point_view_at_chunk(const quern__pass_table *table, uint32_t chunk_index, quern_view *view)
{
    const quern__chunk_slot *slot =
        chunk_index == 0 ? &table->first_slot : &table->archetype->slots[chunk_index];
    view->count = slot->row_count;
    quern__view_set_chunk(view, table->archetype, slot);
    quern__view_set_change_data(view, table->archetype->tracks_changes ? table->archetype : NULL,
                                chunk_index);
}

/* Calls one system on the rows that the view shows. */
SPECIALIZED void call_system(const quern__pass_table *table, const quern__pass_call *call, uint32_t ordinal,
                             quern_context *context, quern_view *view, const bool is_reported)
{
    view->ordinal = ordinal;
    view->term_count = call->term_count;
    view->columns = call->columns;
    view->query = call->query;
    if (QUERN__UNLIKELY(view->versions != NULL))
        view->version = context->schedule->version_base + call->system->position;
    enter_call(context, call->system, QUERN__CALL_FIRST_VIEW + ordinal);
    if (QUERN_CHECKS) quern__guards_begin_view(context, table->archetype, view);
    bool was_refused = call_run(context, call->run, view, is_reported);
    if (QUERN_CHECKS) quern__guards_renew_view(context, table->archetype, view, was_refused);
    if (QUERN_CHECKS) quern__guards_renew_open(context);
}

/* Starts prefetching chunk `chunk_index` of the table. A system that is alone with the table needs that only for the first
 * chunk of a run: within a run its columns continue, and hardware prefetchers follow them. Several systems read other
 * columns before they return to one, so that hardware loses it after each chunk. Fetches nothing if the table has no
 * such chunk. */
static inline quern__prefetch prefetch_start(const quern__pass *pass, const quern__pass_table *table,
                                             uint32_t chunk_index)
{
    const quern__pass_column *columns = pass->columns.items;
    if (table->fetch_share_bytes == 0 || chunk_index >= table->archetype->chunk_count)
        return (quern__prefetch){.column = columns, .end_column = columns};
    const quern__chunk_slot *slot = &table->archetype->slots[chunk_index];
    if (table->fetches_ends && slot->first_row != 0)
        return (quern__prefetch){.column = columns, .end_column = columns};
    return (quern__prefetch){
        .column = columns + table->first_column,
        .end_column = columns + table->end_column,
        .place = {.memory = slot->run, .shift = table->archetype->shape.shift, .row = slot->first_row},
        .row_count = slot->row_count,
        .fetch_limit_bytes = table->fetch_limit_bytes,
        .fetch_share_bytes = table->fetch_share_bytes,
        .fetches_ends = table->fetches_ends};
}

static inline void prefetch_share(quern__prefetch *next)
{
    if (next->fetches_ends) {
        for (; next->column < next->end_column; next->column++)
            quern__prefetch_ends(
                quern__run_value(next->place, next->column->offset_bytes, next->column->size_bytes),
                next->column->size_bytes * next->row_count);
        return;
    }
    uint32_t left_bytes = next->fetch_share_bytes;
    while (next->column < next->end_column && left_bytes > 0) {
        uint32_t column_bytes = next->column->size_bytes * next->row_count;
        if (column_bytes > next->fetch_limit_bytes) column_bytes = next->fetch_limit_bytes;
        uint32_t end =
            column_bytes - next->offset_bytes > left_bytes ? next->offset_bytes + left_bytes : column_bytes;
        const char *column =
            quern__run_value(next->place, next->column->offset_bytes, next->column->size_bytes);
        quern__prefetch_range(column + next->offset_bytes, column + end);
        left_bytes -= end - next->offset_bytes;
        next->offset_bytes = end;
        if (end < column_bytes) return;
        next->column++;
        next->offset_bytes = 0;
    }
}

/* How to run chunks of a pass: all its systems or those of one lane, on which worker, and what is compiled in. */
typedef struct chunk_run {
    const quern__pass *pass;
    uint32_t lane; /* or ALL_LANES */
    quern_context *context;
    bool is_reported, prefetches; /* constants where a chunk_run is made */
} chunk_run;

/* Calls the table's systems on one chunk. */
SPECIALIZED void run_chunk(const chunk_run run, const quern__pass_table *table, uint32_t chunk_index,
                           quern_view *view)
{
    quern__prefetch next;
    if (run.is_reported) begin_calls(run.context);
    if (run.prefetches) next = prefetch_start(run.pass, table, chunk_index + 1);
    point_view_at_chunk(table, chunk_index, view);
    const quern__pass_call *const end_call = table->calls_end;
    for (const quern__pass_call *call = table->calls; call < end_call; call++) {
        if ((call->is_conditional || run.lane != ALL_LANES) && is_skipped(call, view, run.lane)) continue;
        if (run.prefetches) prefetch_share(&next);
        call_system(table, call, call->first_ordinal + chunk_index, run.context, view, run.is_reported);
    }
}

/* Returns the place in ordered_tables of the table that has the chunk: the last table that begins at or before it. */
static quern__pass_table *const *find_table(const quern__pass *pass, uint32_t chunk)
{
    uint32_t low = 0, high = pass->ordered_table_count - 1;
    while (low < high) {
        uint32_t middle = low + (high - low + 1) / 2;
        if (pass->ordered_tables[middle]->first_chunk <= chunk)
            low = middle;
        else
            high = middle - 1;
    }
    return &pass->ordered_tables[low];
}

/* Archetypes and their chunks lie anywhere in memory, and a table of few rows is processed sooner than a cache miss is over:
 * what the first chunk of a table needs is fetched a few tables ahead. Fewer than MANY_TABLES stay in the own caches. */
enum { TABLES_AHEAD = 4, MANY_TABLES = 256 };

static inline void prefetch_table(const quern__pass *pass, const quern__pass_table *table)
{
    const quern__pass_column *end = pass->columns.items + table->end_column;
    QUERN__PREFETCH(&table->archetype->shape.shift);
    for (const quern__pass_column *column = pass->columns.items + table->first_column; column < end;
         column++)
        QUERN__PREFETCH(table->first_slot.run + ((size_t)column->offset_bytes << table->shift));
}

/* Begins the views of some calls: commands refuse their rows once rows may have moved. */
static inline quern_view begin_view(quern_context *context)
{
    return (quern_view){.context = context,
                        .structure = (uint32_t)context->scope.storage->structure_version};
}

SPECIALIZED void run_chunk_range(const chunk_run run, uint32_t begin, uint32_t end)
{
    quern_view view = begin_view(run.context);
    quern__pass_table *const *next = find_table(run.pass, begin);
    const uint32_t table_count = run.pass->ordered_table_count;
    quern__pass_table *const *const end_fetch =
        run.pass->ordered_tables + (table_count >= MANY_TABLES ? table_count - TABLES_AHEAD : 0);
    uint32_t chunk_index = begin - (*next)->first_chunk;
    for (uint32_t left = end - begin; left > 0; next++, chunk_index = 0) {
        const quern__pass_table *table = *next;
        if (next < end_fetch) prefetch_table(run.pass, next[TABLES_AHEAD]);
        for (; chunk_index < table->chunk_count && left > 0; chunk_index++, left--)
            run_chunk(run, table, chunk_index, &view);
    }
}

static void run_chunks(const quern__pass *pass, uint32_t begin, uint32_t end, uint32_t lane,
                       quern_context *context)
{
    if (pass->prefetches)
        run_chunk_range((chunk_run){pass, lane, context, false, true}, begin, end);
    else
        run_chunk_range((chunk_run){pass, lane, context, false, false}, begin, end);
}

static void run_reported_chunks(const quern__pass *pass, uint32_t begin, uint32_t end, uint32_t lane,
                                quern_context *context)
{
    run_chunk_range((chunk_run){pass, lane, context, true, pass->prefetches}, begin, end);
}

/* --------------------------------------------------------------------------------------- the last level */

/* Returns the system's call on the table, or NULL. */
static const quern__pass_call *find_call(const quern__pass_table *table, const quern__system *system)
{
    const quern__pass_call *call = table->calls;
    while (call < table->calls_end && call->system != system)
        call++;
    return call < table->calls_end ? call : NULL;
}

/* Calls a level-ordered system on its views of the last level. Its own writes do not change what its
 * filters select: it is called on all views of a chunk, or on none. */
SPECIALIZED void run_deep_ranges(const quern__pass *pass, const quern__system *system,
                                 quern_context *context, quern_view *view, const bool is_reported)
{
    const quern__pass_table *table = NULL;
    const quern__pass_call *call = NULL;
    uint32_t ordinal = system->first_deep_ordinal;
    for (uint32_t i = 0; i < pass->deep_ranges.count; i++) {
        const quern__deep_range *range = &pass->deep_ranges.items[i];
        if (table != pass->ordered_tables[range->table]) {
            table = pass->ordered_tables[range->table];
            call = find_call(table, system);
        }
        if (call == NULL) continue;
        point_view_at_chunk(table, range->chunk_index, view);
        view->first_row = range->first_row;
        view->entities += range->first_row;
        view->count = range->count;
        if (!is_skipped(call, view, ALL_LANES))
            call_system(table, call, ordinal, context, view, is_reported);
        ordinal++;
    }
    view->first_row = 0;
}

/* Calls a system that is not level-ordered on its chunks of the last level. */
SPECIALIZED void run_deep_chunks(const quern__pass *pass, const quern__system *system,
                                 quern_context *context, quern_view *view, const bool is_reported)
{
    for (uint32_t i = pass->ordered_table_count; i < pass->tables_by_level.count; i++) {
        const quern__pass_table *table = pass->ordered_tables[i];
        const quern__pass_call *call = find_call(table, system);
        for (uint32_t chunk = 0; call != NULL && chunk < table->chunk_count; chunk++) {
            point_view_at_chunk(table, chunk, view);
            if (!is_skipped(call, view, ALL_LANES))
                call_system(table, call, call->first_ordinal + chunk, context, view, is_reported);
        }
    }
}

SPECIALIZED void run_deep(const quern__pass *pass, quern_context *context, const bool is_reported)
{
    quern_view view = begin_view(context);
    if (is_reported) begin_calls(context);
    for (uint32_t i = 0; i < pass->systems.count; i++) {
        const quern__system *system = pass->systems.items[i];
        if (!system->is_active) continue;
        if (system->levels != NULL)
            run_deep_ranges(pass, system, context, &view, is_reported);
        else
            run_deep_chunks(pass, system, context, &view, is_reported);
    }
}

/* --------------------------------------------------------------------------------- rows of one target */

/* Calls a system with a target term on row ranges. It is alone in its pass, so the tables are its matches,
 * with one call each. */
SPECIALIZED void run_target(const quern__pass *pass, uint32_t begin, uint32_t end, quern_context *context,
                            const bool is_reported)
{
    quern_view view = begin_view(context);
    const quern__target *target = pass->systems.items[0]->query.target;
    for (uint32_t i = begin; i < end; i++) {
        const quern__pass_table *table = &pass->tables.items[target->ranges.items[i].match];
        if (is_reported) begin_calls(context);
        quern__target_get_view(table->calls->query, i, &view);
        if (!is_skipped(table->calls, &view, ALL_LANES))
            call_system(table, table->calls, i, context, &view, is_reported);
    }
}

/* --------------------------------------------------------------------------------------------- events */

/* Returns the hash of the view's events. Builds with checks compare it, because other systems read the same
 * events, so that none may write them. */
static uint64_t hash_events(const quern_view *view, const quern__channel *channel)
{
    return quern__hash_bytes(0, view->memory, (size_t)view->count * channel->stride_bytes);
}

static void check_events(quern_context *context, const quern_view *view, uint64_t before)
{
    const quern__channel *channel = context->system->events.items->channel;
    if (hash_events(view, channel) == before) return;
    quern__refuse(&context->scope, QUERN_ERROR_UNDECLARED_ACCESS,
                  "system '%s' wrote events '%s', which are read only: write to a copy",
                  context->system->name, channel->type.name);
    context_note_refusal(context);
}

/* Calls a system with items, which is alone in its pass, on batches of events. Ordinals count from the
 * first batch that the system has not read. */
SPECIALIZED void run_events(const quern__pass_stage *stage, uint32_t begin, uint32_t end,
                            quern_context *context, const bool is_reported)
{
    const quern__system *system = stage->pass->systems.items[0];
    const quern_event_reader *reader = system->events.items;
    const uint64_t seed = stage->pass->kind == QUERN__PASS_EVENTS ? stage->pass->plan->shuffle_seed : 0;
    quern_view view = {.query = &system->query, .context = context};
    if (!system->is_active) return;
    for (uint32_t i = begin; i < end; i++) {
        const uint32_t ordinal =
            seed == 0 ? i : (uint32_t)((stage->chunk_count - 1 - i + seed) % stage->chunk_count);
        const quern__event_batch *batch = quern__channel_batch(reader->channel, reader->cursor + ordinal);
        view.ordinal = ordinal;
        view.count = batch->count;
        view.memory = batch->values;
        if (is_reported) begin_calls(context);
        enter_call(context, system, QUERN__CALL_FIRST_VIEW + ordinal);
        const uint64_t before = QUERN_CHECKS ? hash_events(&view, reader->channel) : 0;
        call_run(context, system->run, &view, is_reported);
        if (QUERN_CHECKS) check_events(context, &view, before);
        if (QUERN_CHECKS) quern__guards_renew_open(context);
    }
}

/* ------------------------------------------------------------------------------------ rows in an order */

/* Calls a system with an order, which is alone in its pass, on pieces of the order. All views of a piece are parts of one
 * call, as the ranges of a chunk are. */
SPECIALIZED void run_ordered(const quern__pass_stage *stage, uint32_t begin, uint32_t end,
                             quern_context *context, const bool is_reported)
{
    const quern__pass *pass = stage->pass;
    const quern__system *system = pass->systems.items[0];
    const quern__query *query = &system->query;
    const bool writes = quern__order_writes(query);
    const uint64_t seed = pass->kind == QUERN__PASS_ORDERED ? pass->plan->shuffle_seed : 0;
    quern_view_callback *run = query->selects_rows ? call_selected_rows : system->run;
    quern_view view = begin_view(context);
    if (!system->is_active) return;
    view.query = query;
    view.term_count = query->term_count;
    for (uint32_t i = begin; i < end; i++) {
        const uint32_t ordinal =
            seed == 0 ? i : (uint32_t)((stage->chunk_count - 1 - i + seed) % stage->chunk_count);
        const quern__archetype *archetype;
        uint32_t at = ordinal * QUERN_ORDER_PIECE_ROWS, row_count = 0;
        const uint32_t end_row = at + QUERN_ORDER_PIECE_ROWS;
        view.ordinal = ordinal;
        if (is_reported) begin_calls(context);
        enter_call(context, system, QUERN__CALL_FIRST_VIEW + ordinal);
        while (quern__order_next_of_piece(query, &at, end_row, &view, &archetype)) {
            view.version = context->schedule->version_base + system->position;
            if (QUERN_CHECKS && writes) quern__guards_begin_view(context, archetype, &view);
            if (QUERN_CHECKS)
                call_checked(context, run, &view);
            else
                run(context, &view);
            const bool was_refused = quern__scope_refused(&context->scope) != QUERN_OK;
            if (QUERN_CHECKS && writes) quern__guards_renew_view(context, archetype, &view, was_refused);
            if (QUERN__UNLIKELY(was_refused)) context_note_refusal(context);
            row_count += view.count;
        }
        if (is_reported) report_call(context, ordinal, row_count);
        if (QUERN_CHECKS) quern__guards_renew_open(context);
    }
}

/* --------------------------------------------------------------------------------------------- items */

typedef void run_chunks_function(const quern__pass *pass, uint32_t begin, uint32_t end, uint32_t lane,
                                 quern_context *context);

/* For tests: runs items that may run in any order in another order. */
static void run_shuffled(const quern__pass_stage *stage, uint32_t begin, uint32_t end,
                         quern_context *context, run_chunks_function *run)
{
    const quern__pass *pass = stage->pass;
    uint32_t turn = (uint32_t)(pass->plan->shuffle_seed % stage->chunk_count);
    for (uint32_t item = begin; item < end; item++) {
        uint32_t chunk = stage->first_chunk + (stage->item_count - 1 - item + turn) % stage->chunk_count;
        for (uint32_t lane = pass->lane_count; lane-- > 0;)
            if (!pass->splits_lanes || lane == item / stage->chunk_count)
                run(pass, chunk, chunk + 1, lane, context);
    }
}

SPECIALIZED void run_once(const quern__pass *pass, quern_context *context, const bool is_reported)
{
    const quern__system *system = pass->systems.items[0];
    if (!system->is_active || system->run == NULL) return;
    quern_view view = {.query = &system->query, .context = context};
    enter_call(context, system, QUERN__CALL_FIRST_VIEW);
    if (is_reported) begin_calls(context);
    call_run(context, system->run, &view, is_reported);
    if (QUERN_CHECKS) quern__guards_renew_open(context);
}

/* Runs items of a stage. In a serial pass, the range counts chunks. */
SPECIALIZED void run_items(const quern__pass_stage *stage, uint32_t begin, uint32_t end,
                           quern_context *context, const bool is_reported)
{
    const quern__pass *pass = stage->pass;
    run_chunks_function *const run = is_reported ? run_reported_chunks : run_chunks;
    if (pass->runs_reactions)
        quern__pass_run_reactions(stage, begin, end, context, is_reported);
    else if (pass->kind == QUERN__PASS_ONCE)
        run_once(pass, context, is_reported);
    else if (QUERN__UNLIKELY(pass->systems.items[0]->events.items != NULL))
        run_events(stage, begin, end, context, is_reported);
    else if (QUERN__UNLIKELY(pass->systems.items[0]->query.order != NULL))
        run_ordered(stage, begin, end, context, is_reported);
    else if (stage->is_deep)
        run_deep(pass, context, is_reported);
    else if (pass->kind == QUERN__PASS_SERIAL && pass->systems.items[0]->query.target != NULL)
        run_target(pass, begin, end, context, is_reported);
    else if (pass->kind == QUERN__PASS_CHUNKS && pass->plan->shuffle_seed != 0)
        run_shuffled(stage, begin, end, context, run);
    else if (pass->splits_lanes)
        for (uint32_t item = begin; item < end; item++) {
            uint32_t chunk = stage->first_chunk + item % stage->chunk_count;
            run(pass, chunk, chunk + 1, item / stage->chunk_count, context);
        }
    else
        run(pass, stage->first_chunk + begin, stage->first_chunk + end, ALL_LANES, context);
}

/* Converts the job of a serial pass, a single item, to the range of all chunks of the stage. */
static void spread_item(const quern__pass_stage *stage, uint32_t *begin, uint32_t *end)
{
    if (stage->pass->kind != QUERN__PASS_SERIAL || stage->is_deep) return;
    *begin = 0;
    *end = stage->chunk_count;
}

void quern__pass_run_observed(const quern__pass_stage *stage, uint32_t begin, uint32_t end,
                              quern_context *context)
{
    quern__frame_observer *observer = context->schedule->observer;
    const quern__observed_job job = make_job(context, stage, begin, end);
    observer->calls->begin_job(observer, &job);
    spread_item(stage, &begin, &end);
    while (begin < end) {
        const quern__job_range range = observer->calls->next_range(observer, &job, begin, end);
        if (range.is_reported)
            run_items(stage, begin, range.end, context, true);
        else
            run_items(stage, begin, range.end, context, false);
        begin = range.end;
    }
    observer->calls->end_job(observer, &job);
}

void quern__pass_run(void *argument, uint32_t begin, uint32_t end, uint32_t worker_index)
{
    const quern__pass_stage *stage = argument;
    if (begin == end) return;
    quern_context *context = enter_pass(stage->pass->plan, QUERN__CALLBACK_RUN, worker_index);
    if (QUERN__UNLIKELY(context->schedule->is_observed))
        context->schedule->observer->calls->run_job(stage, begin, end, context);
    else {
        spread_item(stage, &begin, &end);
        run_items(stage, begin, end, context, false);
    }
    leave_pass(context);
}

const quern__pass_functions quern__frame_pass_functions = {.begin = quern__pass_begin,
                                                           .run = quern__pass_run,
                                                           .end = quern__pass_end,
                                                           .call_selected_rows = call_selected_rows};
