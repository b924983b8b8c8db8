/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "core/base/hash.h"
#include "sched/frame/context.h"
#include "sched/frame/frame.h"
#include "sched/frame/profile.h"
#include "sched/jobs/thread.h"

/* Running a pass: the calls of callbacks, each with the context of the worker that makes it. */

/* ---------------------------------------------------------------------------------------- interruptions */

/* A callback that waits, in a loop or for a counter, may find that parts of passes have run on its stack
 * meanwhile, with the same context. The pool here lets no worker do that (closed scopes, deque.h), but a
 * user's own scheduler may. The callback finds its context, and its stream of commands, as it left them. */
typedef struct interruption {
    quern_context context;
    quern__suspension commands;
} interruption;

static void interrupt(quern_context *context, interruption *outer)
{
    outer->context = *context;
    outer->commands = quern__commands_suspend(context->commands);
    context->scope.refused = QUERN_OK;
    context->is_timed = context->schedule->timing;
    context->is_shown = context->is_counted = false;
}

/* What is counted over the frame goes on. */
static void go_on(quern_context *context, const interruption *outer)
{
    context->scope = outer->context.scope;
    context->system = outer->context.system;
    context->callback = outer->context.callback;
    context->thread = outer->context.thread;
    context->part = outer->context.part;
    context->has_stream = outer->context.has_stream;
    context->is_busy = outer->context.is_busy;
    context->is_timed = outer->context.is_timed;
    context->is_shown = outer->context.is_shown;
    context->is_counted = false; /* what was counted meanwhile is not the outer call's */
    context->lap_start_ns = outer->context.lap_start_ns;
    context->span = outer->context.span;
    quern__commands_resume(context->commands, &outer->commands);
}

/* Whoever keeps the recorder of a callback is noticed from now on. */
static void end_stream(quern_context *context)
{
    if (!context->has_stream) return;
    quern__commands_end(context->commands);
    context->has_stream = false;
}

typedef void pass_part(quern__pass *pass, uint32_t begin, uint32_t end, quern_context *context);

static void run_part(quern__pass *pass, quern__callback_kind callback, pass_part *part, uint32_t begin,
                     uint32_t end, uint32_t worker_index)
{
    quern_context *context = &pass->plan->schedule->contexts[worker_index];
    const bool was_busy = context->is_busy;
    interruption outer;
    if (QUERN__UNLIKELY(was_busy)) interrupt(context, &outer);
    context->is_busy = true;
    context->callback = callback;
    if (QUERN_CHECKS) context->thread = quern__this_thread();
    part(pass, begin, end, context);
    if (QUERN_CHECKS) context->thread = NULL;
    end_stream(context);
    context->is_busy = false; /* whoever keeps the context is noticed from now on */
    if (QUERN__UNLIKELY(was_busy)) go_on(context, &outer);
}

/* ---------------------------------------------------------------------------------------- callbacks */

static void enter(quern_context *context, const quern__system *system, uint32_t part)
{
    context->scope.system_name = system->name;
    context->system = system;
    context->part = part;
    end_stream(context);
}

/* Where calls are timed: before a row of them, and after each. */
static void start_laps(quern_context *context)
{
    if (QUERN__UNLIKELY(context->is_timed)) quern__profile_start_laps(context);
}

static void end_lap(quern_context *context, uint32_t row_count)
{
    if (QUERN__UNLIKELY(context->is_timed)) quern__profile_end_lap(context, row_count);
}

/* A build with checks notices a write through a column declared read, const cast away: nobody may write
 * those while the view is worked on, so their bytes must be the same afterwards. */
static uint64_t hash_read_column(const quern_view *view, uint32_t term)
{
    const quern_view_column *column = &view->columns[term];
    if (column->access != QUERN_READ || column->offset_bytes == 0) return 0;
    return quern__hash_bytes(0, quern__view_column_at(view, term),
                             (size_t)view->count * column->size_bytes);
}

static void report_write(quern_context *context, uint32_t term)
{
    const quern__query *query = &context->system->query;
    char declared[256];
    quern__query_declared(query, declared, sizeof declared);
    context->scope.refused = quern__violation(
        QUERN_ERROR_UNDECLARED_ACCESS, "system '%s' wrote '%s' (declared: %s)", context->system->name,
        quern_component_name(context->schedule->plan.world, query->terms[term].component), declared);
}

static void call_checked(quern_context *context, const quern_view *view)
{
    const uint32_t term_count = view->term_count;
    uint64_t before[QUERN_MAX_TERMS];
    for (uint32_t i = 0; i < term_count; i++)
        before[i] = hash_read_column(view, i);
    context->system->run(context, view);
    for (uint32_t i = 0; i < term_count; i++)
        if (before[i] != hash_read_column(view, i)) report_write(context, i);
}

/* True when the call was refused something. */
static bool call_run(quern_context *context, const quern_view *view)
{
    if (QUERN_CHECKS)
        call_checked(context, view);
    else
        context->system->run(context, view);
    end_lap(context, view->count);
    if (context->scope.refused == QUERN_OK) return false;
    quern__context_note_refusal(context);
    return true;
}

/* -------------------------------------------------------------------------------------------- hooks */

static bool is_wanted(const quern__system *system, quern_context *context)
{
    if (system->condition == NULL) return true;
    bool is_wanted = system->condition(context);
    end_lap(context, 0);
    return is_wanted;
}

/* The time of an interval goes on while the condition says no: the system is due until it runs. What it is
 * late by counts for the next time, so that it runs as often as asked; but whole intervals that were missed
 * are not made up for. */
static bool opens(quern__system *system, quern_context *context)
{
    double interval = system->interval_seconds;
    if (interval > 0) {
        system->due_seconds += context->schedule->delta_seconds;
        system->elapsed_seconds += context->schedule->delta_seconds;
        if (system->due_seconds < interval) return false;
    }
    system->delta_seconds = system->elapsed_seconds;
    if (!is_wanted(system, context)) return false;
    system->elapsed_seconds = 0;
    system->due_seconds -= interval;
    if (system->due_seconds >= interval) system->due_seconds = 0;
    return true;
}

static void begin_systems(quern__pass *pass, uint32_t begin, uint32_t end, quern_context *context)
{
    (void)begin;
    (void)end;
    uint64_t start_ns = quern__profile_start_hooks(context);
    for (uint32_t i = 0; i < pass->systems.count; i++) {
        quern__system *system = pass->systems.items[i];
        if (!system->enabled) continue;
        enter(context, system, QUERN__PART_BEGIN);
        if (quern__system_is_gated(system)) system->is_active = opens(system, context);
        if (system->is_active && system->begin != NULL) {
            system->begin(context);
            end_lap(context, 0);
        }
        quern__context_note_refusal(context);
    }
    quern__profile_finish_hooks(pass, context, start_ns);
}

void quern__pass_begin(void *argument, uint32_t begin, uint32_t end, uint32_t worker_index)
{
    run_part(argument, QUERN__CALLBACK_BEGIN, begin_systems, begin, end, worker_index);
}

static void end_systems(quern__pass *pass, uint32_t begin, uint32_t end, quern_context *context)
{
    (void)begin;
    (void)end;
    uint64_t start_ns = quern__profile_start_hooks(context);
    for (uint32_t i = 0; i < pass->systems.count; i++) {
        const quern__system *system = pass->systems.items[i];
        if (!system->is_active || system->end == NULL) continue;
        enter(context, system, QUERN__PART_FIRST_VIEW + system->view_count);
        system->end(context);
        end_lap(context, 0);
        quern__context_note_refusal(context);
    }
    quern__profile_finish_hooks(pass, context, start_ns);
}

void quern__pass_end(void *argument, uint32_t begin, uint32_t end, uint32_t worker_index)
{
    run_part(argument, QUERN__CALLBACK_END, end_systems, begin, end, worker_index);
}

/* -------------------------------------------------------------------------------------------- items */

/* The chunk that the walk comes to next is fetched into L2 meanwhile, a share of it before each call: plain
 * 16 KiB chunks defeat the prefetchers of the hardware, and all at once would have to wait for itself. */
typedef struct fetch {
    const quern__pass_column *column, *end_column;
    const char *chunk;
    uint32_t row_count;
    uint32_t offset_bytes; /* in the column */
    uint32_t share_bytes;  /* per call */
} fetch;

static const quern__chunk_slot *slot_of(const quern__pass_table *table, uint32_t chunk_index)
{
    return &table->archetype->slots[chunk_index];
}

static fetch fetch_start(const quern__pass *pass, const quern__pass_table *table, uint32_t chunk_index)
{
    const quern__pass_column *columns = pass->columns.items;
    if (!pass->prefetches || !table->scatters || chunk_index >= table->archetype->chunk_count)
        return (fetch){.column = columns, .end_column = columns};
    const quern__chunk_slot *slot = slot_of(table, chunk_index);
    fetch next = {.column = columns + table->first_column,
                  .end_column = columns + table->end_column,
                  .chunk = (const char *)slot->chunk,
                  .row_count = slot->row_count};
    uint32_t bytes = 0;
    for (const quern__pass_column *column = next.column; column < next.end_column; column++)
        bytes += column->size_bytes * slot->row_count;
    next.share_bytes = bytes / (table->end_call - table->first_call) + 1;
    return next;
}

static void fetch_share(fetch *next)
{
    uint32_t left_bytes = next->share_bytes;
    while (next->column < next->end_column && left_bytes > 0) {
        const char *values = next->chunk + next->column->offset_bytes;
        uint32_t column_bytes = next->column->size_bytes * next->row_count;
        uint32_t end =
            column_bytes - next->offset_bytes > left_bytes ? next->offset_bytes + left_bytes : column_bytes;
        for (uint32_t offset = next->offset_bytes; offset < end; offset += QUERN__CACHE_LINE_BYTES)
            __builtin_prefetch(values + offset, 0, 2);
        left_bytes -= end - next->offset_bytes;
        next->offset_bytes = end;
        if (end < column_bytes) return;
        next->column++;
        next->offset_bytes = 0;
    }
}

enum { ALL_LANES = UINT32_MAX };

static void run_chunk(const quern__pass *pass, const quern__pass_table *table, uint32_t chunk_index,
                      uint32_t lane, quern_context *context)
{
    const quern__chunk_slot *slot = slot_of(table, chunk_index);
    start_laps(context);
    fetch next = fetch_start(pass, table, chunk_index + 1);
    quern_view view = {.count = slot->row_count,
                       .entities = quern__archetype_entities(table->archetype, slot->chunk),
                       .chunk = (char *)slot->chunk,
                       .versions = quern__versions_of(&table->archetype->versions, chunk_index),
                       .context = context};
    for (uint32_t i = table->first_call; i < table->end_call; i++) {
        const quern__pass_call *call = &pass->calls.items[i];
        const quern__system *system = call->system;
        if (!system->is_active || (lane != ALL_LANES && lane != system->lane)) continue;
        if (!quern__query_passes(&system->query, call->columns, view.versions, system->query.seen_version))
            continue;
        fetch_share(&next);
        view.ordinal = call->first_ordinal + chunk_index;
        view.version = pass->plan->schedule->version_base + system->position;
        view.columns = call->columns;
        view.query = &system->query;
        view.term_count = system->query.term_count;
        enter(context, system, QUERN__PART_FIRST_VIEW + view.ordinal);
        if (QUERN_CHECKS) quern__guards_check(context, table->archetype, &view);
        bool was_refused = call_run(context, &view);
        if (QUERN_CHECKS) quern__guards_renew(context, table->archetype, &view, was_refused);
    }
}

/* The last table whose first item is not behind the item: it has the item, since tables without items have
 * the same first one as the table behind them. */
static uint32_t find_table(const quern__pass *pass, uint32_t item)
{
    uint32_t low = 0, high = pass->tables.count - 1;
    while (low < high) {
        uint32_t middle = low + (high - low + 1) / 2;
        if (pass->tables.items[middle].first_item <= item)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

static uint32_t end_item(const quern__pass *pass, uint32_t table)
{
    return table + 1 < pass->tables.count ? pass->tables.items[table + 1].first_item : pass->chunk_count;
}

static void run_chunks(const quern__pass *pass, uint32_t begin, uint32_t end, uint32_t lane,
                       quern_context *context)
{
    uint32_t table = find_table(pass, begin);
    for (uint32_t item = begin; item < end; item++) {
        while (item == end_item(pass, table))
            table++;
        uint32_t chunk_index = item - pass->tables.items[table].first_item;
        run_chunk(pass, &pass->tables.items[table], chunk_index, lane, context);
    }
}

static void run_lanes(const quern__pass *pass, uint32_t begin, uint32_t end, quern_context *context)
{
    for (uint32_t item = begin; item < end; item++) {
        uint32_t chunk = item % pass->chunk_count;
        run_chunks(pass, chunk, chunk + 1, item / pass->chunk_count, context);
    }
}

/* For tests: another order of what may be in any order. */
static void run_shuffled(const quern__pass *pass, uint32_t begin, uint32_t end, quern_context *context)
{
    uint32_t turn = (uint32_t)(pass->plan->shuffle_seed % pass->chunk_count);
    for (uint32_t item = begin; item < end; item++) {
        uint32_t chunk = (pass->item_count - 1 - item + turn) % pass->chunk_count;
        for (uint32_t lane = pass->lane_count; lane-- > 0;)
            if (!pass->is_split || lane == item / pass->chunk_count)
                run_chunks(pass, chunk, chunk + 1, lane, context);
    }
}

static void run_once(const quern__pass *pass, quern_context *context)
{
    const quern__system *system = pass->systems.items[0];
    if (!system->is_active || system->run == NULL) return;
    quern_view view = {.query = &system->query, .context = context};
    enter(context, system, QUERN__PART_FIRST_VIEW);
    start_laps(context);
    call_run(context, &view);
}

static void run_range(const quern__pass *pass, uint32_t begin, uint32_t end, quern_context *context)
{
    if (pass->kind == QUERN__PASS_ONCE)
        run_once(pass, context);
    else if (pass->kind == QUERN__PASS_CHUNKS && pass->plan->shuffle_seed != 0)
        run_shuffled(pass, begin, end, context);
    else if (pass->is_split)
        run_lanes(pass, begin, end, context);
    else
        run_chunks(pass, begin, end, ALL_LANES, context);
}

/* What is sampled runs by itself, so that the rest pays nothing for it. */
static void run_sampled(const quern__pass *pass, uint32_t begin, uint32_t end, quern_context *context)
{
    while (begin < end) {
        uint32_t sample = quern__profile_next_sample(context, begin, end);
        if (sample > begin) run_range(pass, begin, sample, context);
        if (sample == end) return;
        quern__profile_start_sample(pass, context);
        run_range(pass, sample, sample + 1, context);
        quern__profile_finish_sample(context);
        begin = sample + 1;
    }
}

/* The one item of a serial pass is all of its chunks. */
static void run_items(const quern__pass *pass, uint32_t begin, uint32_t end, quern_context *context)
{
    if (pass->kind == QUERN__PASS_SERIAL) begin = 0, end = pass->chunk_count;
    if (QUERN__UNLIKELY(context->sample_countdown != 0))
        run_sampled(pass, begin, end, context);
    else
        run_range(pass, begin, end, context);
}

static void run_captured(const quern__pass *pass, uint32_t begin, uint32_t end, quern_context *context)
{
    uint64_t start_ns = quern__clock_ns();
    for (uint32_t item = begin; item < end; item++) {
        run_items(pass, item, item + 1, context);
        uint64_t now_ns = quern__clock_ns();
        quern__profile_capture_item(pass, item, now_ns - start_ns);
        start_ns = now_ns;
    }
}

static void run_watched(const quern__pass *pass, uint32_t begin, uint32_t end, quern_context *context)
{
    quern__profile_start_job(pass, context);
    if (pass->plan->schedule->watch.capture != NULL)
        run_captured(pass, begin, end, context);
    else
        run_items(pass, begin, end, context);
    quern__profile_finish_job(pass, context, begin, end);
}

static void run_job(quern__pass *pass, uint32_t begin, uint32_t end, quern_context *context)
{
    if (begin == end) return;
    if (QUERN__UNLIKELY(pass->plan->schedule->watch.is_on))
        run_watched(pass, begin, end, context);
    else
        run_items(pass, begin, end, context);
}

void quern__pass_run(void *argument, uint32_t begin, uint32_t end, uint32_t worker_index)
{
    run_part(argument, QUERN__CALLBACK_RUN, run_job, begin, end, worker_index);
}
