/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "sched/frame/schedule_internal.h"

#include <stdio.h>

/* Events in frames: emitters, emitting, reading, and publishing at sync points (schedule_internal.h). */

enum { EMITTER_ALIGNMENT_BYTES = 128 };

_Static_assert(_Alignof(quern__emitter) <= EMITTER_ALIGNMENT_BYTES, "emitters are aligned enough");

/* ------------------------------------------------------------------------------------------- emitters */

static quern__emitter_rows rows_of(const quern_schedule *schedule)
{
    return (quern__emitter_rows){.emitters = schedule->emitters,
                                 .row_count = schedule->emitter_row_count,
                                 .channel_count = schedule->emitter_channel_count};
}

static uint32_t emitter_count(const quern__emitter_rows *rows)
{
    return rows->row_count * rows->channel_count;
}

static void release_list(const quern_allocator *allocator, const quern__emitter_rows *rows)
{
    quern__release(allocator, rows->emitters, emitter_count(rows) * sizeof(quern__emitter *),
                   EMITTER_ALIGNMENT_BYTES);
}

/* Frees an emitter without its values. emitter may be NULL. */
static void release_emitter(const quern_allocator *allocator, quern__emitter *emitter)
{
    quern__release(allocator, emitter, sizeof *emitter, EMITTER_ALIGNMENT_BYTES);
}

/* Returns the emitter at this position of the old table, or NULL if the old table lacks the position. */
static quern__emitter *old_emitter(const quern__emitter_rows *old, uint32_t row, uint32_t channel)
{
    const bool is_there = row < old->row_count && channel < old->channel_count;
    return is_there ? old->emitters[row * old->channel_count + channel] : NULL;
}

/* Fills the table with the emitters of the old one, and creates the missing ones. Returns false if out of
 * memory; the created emitters are freed then. */
static bool fill_rows(const quern_allocator *allocator, const quern__emitter_rows *rows,
                      const quern__emitter_rows *old)
{
    const uint32_t count = emitter_count(rows);
    bool has_memory = true;
    for (uint32_t i = 0; i < count; i++) {
        quern__emitter *emitter = old_emitter(old, i / rows->channel_count, i % rows->channel_count);
        if (emitter == NULL && has_memory) {
            emitter = quern__allocate(allocator, sizeof *emitter, EMITTER_ALIGNMENT_BYTES);
            if (emitter != NULL) *emitter = (quern__emitter){.first = NULL};
        }
        has_memory &= emitter != NULL;
        rows->emitters[i] = emitter;
    }
    for (uint32_t i = 0; i < count && !has_memory; i++)
        if (old_emitter(old, i / rows->channel_count, i % rows->channel_count) == NULL)
            release_emitter(allocator, rows->emitters[i]);
    return has_memory;
}

/* Emitters keep their addresses: user code may keep a pointer to one beyond its callback, and emitting
 * through it must be refused. */
quern_result quern__emitters_extend(quern_schedule *schedule)
{
    const quern__emitter_rows old = rows_of(schedule);
    const quern_allocator *allocator = quern__plan_allocator(&schedule->plan);
    quern__emitter_rows rows = {.row_count = schedule->worker_count,
                                .channel_count = schedule->plan.emitted_channel_count};
    rows.emitters = quern__allocate(allocator, emitter_count(&rows) * sizeof(quern__emitter *),
                                    EMITTER_ALIGNMENT_BYTES);
    if (rows.emitters == NULL || !fill_rows(allocator, &rows, &old)) {
        release_list(allocator, &rows);
        return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory for the emitters of %u workers",
                           rows.row_count);
    }
    release_list(allocator, &old);
    schedule->emitters = rows.emitters;
    schedule->emitter_row_count = rows.row_count;
    schedule->emitter_channel_count = rows.channel_count;
    return QUERN_OK;
}

void quern__emitters_release(quern_schedule *schedule)
{
    const quern__emitter_rows rows = rows_of(schedule);
    const quern_allocator *allocator = quern__plan_allocator(&schedule->plan);
    for (uint32_t i = 0; i < emitter_count(&rows); i++) {
        quern__emitter_release(rows.emitters[i]);
        release_emitter(allocator, rows.emitters[i]);
    }
    release_list(allocator, &rows);
    schedule->emitters = NULL;
}

void quern__context_close_emitters(quern_context *context)
{
    for (quern__emitter *emitter = context->open_emitters; emitter != NULL; emitter = emitter->next_open)
        quern__emitter_close(emitter);
    context->open_emitters = NULL;
}

/* ------------------------------------------------------------------------------------------- refusals */

static void refuse(quern_context *context, const quern__channel *channel, const char *function, bool emits)
{
    char declared[256];
    if (quern__scope_count_repeated(&context->scope)) return;
    (emits ? quern__event_use_list_emits : quern__event_use_list_reads)(&context->system->events, declared,
                                                                        sizeof declared);
    quern__refuse(&context->scope, QUERN_ERROR_UNDECLARED_ACCESS,
                  "%s: system '%s' asked to %s event '%s' without declaring it (%s: %s); declare it in %s",
                  function, context->system->name, emits ? "emit" : "read", channel->type.name,
                  emits ? "its emits" : "what it reads", declared, emits ? "emits" : "reads_events");
}

/* Returns the channel of the event. If the handle is invalid, or the caller is not a system, reports the
 * error and returns NULL. */
static quern__channel *find_channel(quern_context *context, quern_event event, const char *function)
{
    quern__channel *channel;
    if (!quern__context_is_system(context, function, "events")) return NULL;
    if (quern__events_check(context->schedule->plan.world, event, &channel) == QUERN_OK) return channel;
    quern__context_refuse_handle(context, "event", function);
    return NULL;
}

/* ------------------------------------------------------------------------------------------- emitting */

/* Sets has_emitted. Load and store are relaxed: they pair with the load in sync (frame.c) and
 * the store in quern__events_end_sync. A segment's end orders them before the sync point, and a segment's
 * start after it; the flag protects no other data. */
static void note_emitted(quern_schedule *schedule)
{
    if (!atomic_load_explicit(&schedule->has_emitted, memory_order_relaxed))
        atomic_store_explicit(&schedule->has_emitted, true, memory_order_relaxed);
}

static quern__emitter *find_emitter(quern_context *context, quern_event event, const char *function)
{
    quern__channel *channel = find_channel(context, event, function);
    if (channel == NULL) return NULL;
    if (!quern__event_use_emits(&context->system->events, channel)) {
        refuse(context, channel, function, true);
        return NULL;
    }
    quern_schedule *schedule = context->schedule;
    quern__emitter *emitter =
        schedule->emitters[context->worker_index * schedule->emitter_channel_count + channel->index];
    if (emitter->is_open) return emitter;
    quern__emitter_open(emitter, channel, (uint64_t)context->system->position << 32 | context->call_index,
                        context->system->name, &context->scope);
    emitter->next_open = context->open_emitters;
    context->open_emitters = emitter;
    context->has_output = true;
    note_emitted(schedule);
    return emitter;
}

quern_emitter *quern_context_emitter(quern_context *context, quern_event event)
{
    quern__emitter *emitter = find_emitter(context, event, __func__);
    return emitter != NULL ? &emitter->public_part : NULL;
}

bool quern_context_emit(quern_context *context, quern_event event, const void *values, uint32_t count)
{
    quern__emitter *emitter = find_emitter(context, event, __func__);
    if (emitter == NULL) return false;
    const quern__type *type = &emitter->channel->type;
    if (values == NULL && type->size_bytes > 0 && count > 0) {
        quern__refuse(&context->scope, QUERN_ERROR_NULL_ARGUMENT,
                      "%s: system '%s' emitted %u events '%s'; 'values' is NULL", __func__,
                      context->system->name, count, type->name);
        return false;
    }
    if (!quern__emitter_reserve(emitter, count)) {
        emitter->failed =
            quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "%s: system '%s': no memory for %u events '%s'",
                        __func__, context->system->name, count, type->name);
        return false;
    }
    quern__emitter_put(emitter, values, count);
    return true;
}

/* ------------------------------------------------------------------------------------------- reading */

static const quern_event_reader *find_reader(quern_context *context, quern_event event,
                                             const char *function)
{
    const quern__channel *channel = find_channel(context, event, function);
    if (channel == NULL) return NULL;
    const quern_event_reader *reader = quern__event_use_reader(&context->system->events, channel);
    if (reader == NULL) refuse(context, channel, function, false);
    return reader;
}

/* Reports that a system asked for events by another C type than they have. */
static void refuse_type(quern_context *context, const char *macro, const quern__type *type,
                        const char *type_name, size_t size_bytes)
{
    quern__refuse(&context->scope, QUERN_ERROR_LAYOUT_MISMATCH,
                  "%s: system '%s' asked for events '%s', of %u bytes (%s), as '%s', of %zu: use "
                  "the type with which the event was registered",
                  macro, context->system->name, type->name, type->size_bytes,
                  type->type_name[0] != '\0' ? type->type_name : "no C type known", type_name, size_bytes);
}

bool quern_context_events(quern_context *context, quern_event event, quern_event_iterator *out_iterator)
{
    const quern_event_reader *reader = find_reader(context, event, __func__);
    *out_iterator = (quern_event_iterator){.number = 0};
    if (reader == NULL) return false;
    out_iterator->channel = reader->channel;
    out_iterator->number = reader->cursor;
    out_iterator->end = reader->end;
    return true;
}

quern__event_loop quern__events_start(quern_context *context, quern_event event, size_t size_bytes,
                                      const char *type_name)
{
    static const char macro[] = "QUERN_EACH_EVENT";
    quern__event_loop loop = {.size_bytes = (uint32_t)size_bytes, .is_running = false};
    const quern_event_reader *reader = find_reader(context, event, macro);
    if (reader == NULL) return loop;
    const quern__type *type = &reader->channel->type;
    loop.is_running =
        size_bytes == type->size_bytes && (!QUERN_CHECKS || quern__type_has_c_name(type, type_name));
    if (loop.is_running)
        loop.blocks = (quern_event_iterator){
            .channel = reader->channel, .number = reader->cursor, .end = reader->end};
    else
        refuse_type(context, macro, type, type_name, size_bytes);
    return loop;
}

uint64_t quern_context_event_count(quern_context *context, quern_event event)
{
    const quern_event_reader *reader = find_reader(context, event, __func__);
    return reader != NULL ? quern__channel_count(reader->channel, reader->cursor, reader->end) : 0;
}

/* Returns the type of the events of a view. Reports and returns NULL if the view has none. */
static const quern__type *find_items(const quern_view *view, const char *function)
{
    quern_context *context = view->context;
    if (context == NULL) {
        quern__refuse(quern__scope_of(view), QUERN_ERROR_UNDECLARED_ACCESS,
                      "%s: an iteration asked for the events of a view; only systems with items have such "
                      "views",
                      function);
        return NULL;
    }
    if (!quern__context_is_system(context, function, "events")) return NULL;
    const quern_event_reader *items = context->system->events.items;
    if (items != NULL) return &items->channel->type;
    if (!quern__scope_count_repeated(&context->scope))
        quern__refuse(
            &context->scope, QUERN_ERROR_UNDECLARED_ACCESS,
            "%s: system '%s' asked for the events of a view without declaring items: declare items",
            function, context->system->name);
    return NULL;
}

const void *quern_view_events(const quern_view *view)
{
    if (find_items(view, __func__) != NULL) return view->memory;
    return quern__scratch_column(view, UINT32_MAX, QUERN_MAX_COMPONENT_BYTES);
}

const void *quern__view_events_typed(const quern_view *view, size_t size_bytes, const char *type_name)
{
    const quern__type *type = find_items(view, "QUERN_EVENTS");
    if (type == NULL) return quern__scratch_column(view, UINT32_MAX, size_bytes);
    if (size_bytes == type->size_bytes && (!QUERN_CHECKS || quern__type_has_c_name(type, type_name)))
        return view->memory;
    refuse_type(view->context, "QUERN_EVENTS", type, type_name, size_bytes);
    return quern__scratch_column(view, UINT32_MAX, size_bytes);
}

void quern__events_start_segment(const quern_schedule *schedule, const quern__segment *segment)
{
    for (uint32_t i = segment->first; i < segment->end; i++) {
        const quern__event_use *use = &schedule->plan.order.items[i]->events;
        for (uint32_t k = 0; k < use->readers.count; k++) {
            quern_event_reader *reader = use->readers.items[k];
            reader->end = quern__channel_end(reader->channel);
            reader->is_running = true;
        }
    }
}

void quern__events_finish_segment(const quern_schedule *schedule, const quern__segment *segment,
                                  bool has_run)
{
    for (uint32_t i = segment->first; i < segment->end; i++) {
        const quern__system *system = schedule->plan.order.items[i];
        for (uint32_t k = 0; k < system->events.readers.count; k++) {
            quern_event_reader *reader = system->events.readers.items[k];
            if (has_run && system->is_active) reader->cursor = reader->end;
            reader->is_running = false;
        }
    }
}

/* ---------------------------------------------------------------------------------------- sync points */

void quern__events_collect_failures(quern_schedule *schedule)
{
    const quern__emitter_rows rows = rows_of(schedule);
    for (uint32_t i = 0; i < emitter_count(&rows); i++) {
        if (rows.emitters[i]->failed == QUERN_OK) continue;
        schedule->emit_result = rows.emitters[i]->failed;
        rows.emitters[i]->failed = QUERN_OK;
    }
}

quern_result quern__events_begin_sync(quern_schedule *schedule)
{
    const quern__emitter_rows rows = rows_of(schedule);
    quern__events_collect_failures(schedule);
    return quern__events_gather(schedule->plan.world, &rows);
}

/* In builds with checks: reports handles in emitted events that are still provisional after playback, and
 * would remain provisional. */
static void report_provisional(void *argument, const quern__type *type, const quern__keyed_batch *keyed)
{
    const quern_schedule *schedule = argument;
    const quern_entity found = quern__type_find_provisional(type, keyed->batch.values, keyed->batch.count);
    if (found.bits == 0) return;
    const uint64_t position = keyed->key >> 32;
    quern__report_violation(
        QUERN_ERROR_PROVISIONAL_ENTITY,
        "system '%s' emitted '%s' with the provisional handle of a deferred create (number %u) "
        "that the same callback did not record, so it would remain provisional; emit handles only from "
        "the callback that creates the entity",
        position < schedule->plan.order.count ? schedule->plan.order.items[position]->name
                                              : "(removed)", /* the events of a failed frame */
        type->name, quern_entity_index(found));
}

static quern_entity clear_handle(void *argument, quern_entity entity)
{
    (void)argument;
    return quern_entity_is_provisional(entity) ? (quern_entity){0} : entity;
}

void quern__events_clear_handles(const quern_schedule *schedule)
{
    const quern__emitter_rows rows = rows_of(schedule);
    for (uint32_t i = 0; i < emitter_count(&rows); i++)
        for (uint32_t k = 0; k < rows.emitters[i]->batches.count; k++) {
            const quern__type *type = &rows.emitters[i]->channel->type;
            const quern__event_batch *batch = &rows.emitters[i]->batches.items[k].batch;
            for (uint32_t n = 0; n < batch->count; n++)
                quern__type_remap(type, batch->values + (size_t)n * type->size_bytes, clear_handle, NULL);
        }
}

/* Publishes the events and clears has_emitted. The store is relaxed: it pairs with the load in
 * note_emitted, on workers of later segments. Starting a segment orders the store before that load. */
void quern__events_end_sync(quern_schedule *schedule)
{
    const quern__emitter_rows rows = rows_of(schedule);
    if (QUERN_CHECKS)
        quern__events_visit_entities(schedule->plan.world, &rows, report_provisional, schedule);
    schedule->stats.event_count +=
        quern__events_publish(schedule->plan.world, &rows, &schedule->event_loss);
    atomic_store_explicit(&schedule->has_emitted, false, memory_order_relaxed);
}

/* Loads has_emitted relaxed: it pairs with the store in note_emitted, and the end of the last frame ordered
 * that store before this load. */
void quern__events_discard(quern_schedule *schedule)
{
    const quern__emitter_rows rows = rows_of(schedule);
    if (!atomic_load_explicit(&schedule->has_emitted, memory_order_relaxed)) return;
    for (uint32_t i = 0; i < emitter_count(&rows); i++)
        quern__emitter_release(rows.emitters[i]);
    atomic_store_explicit(&schedule->has_emitted, false, memory_order_relaxed);
}

/* State of the search for the creates of the callback that emitted an event. */
typedef struct handle_search {
    const quern__gathered *gathered;
    const quern_entity *created; /* created entities of all streams, in order of streams */
    uint32_t stream;             /* position of the search in the streams; restarts for each channel */
    uint32_t first_created;      /* number of creates in the streams before that position */
    const quern__type *type;
    const quern__stream *own; /* stream with the provisional handles that are resolved */
} handle_search;

static quern_entity resolve_handle(void *argument, quern_entity entity)
{
    const handle_search *it = argument;
    if (!quern_entity_is_provisional(entity) || quern_entity_generation(entity) != it->own->origin.serial ||
        quern_entity_index(entity) >= it->own->create_count)
        return entity;
    return it->created[it->first_created + quern_entity_index(entity)];
}

/* Resolves the handles of one batch. Streams and the batches of a channel are visited in ascending order of
 * keys, so the search never moves back. */
static void remap_batch(void *argument, const quern__type *type, const quern__keyed_batch *keyed)
{
    handle_search *it = argument;
    if (it->type != type) {
        it->type = type;
        it->stream = it->first_created = 0;
    }
    for (; it->stream < it->gathered->streams.count; it->stream++) {
        it->own = it->gathered->streams.items[it->stream].stream;
        if (it->own->origin.key >= keyed->key) break;
        it->first_created += it->own->create_count;
    }
    if (it->stream == it->gathered->streams.count || it->own->origin.key != keyed->key ||
        it->own->create_count == 0)
        return;
    for (uint32_t i = 0; i < keyed->batch.count; i++)
        quern__type_remap(type, keyed->batch.values + (size_t)i * type->size_bytes, resolve_handle, it);
}

void quern__events_resolve_handles(void *argument, const quern__gathered *gathered,
                                   const quern_entity *created)
{
    const quern_schedule *schedule = argument;
    const quern__emitter_rows rows = rows_of(schedule);
    handle_search it = {.gathered = gathered, .created = created};
    quern__events_visit_entities(schedule->plan.world, &rows, remap_batch, &it);
}

quern_result quern__events_fail_frame(const quern_schedule *schedule)
{
    char frame[32];
    snprintf(frame, sizeof frame, "frame %llu", (unsigned long long)schedule->frame_index);
    if (schedule->emit_result != QUERN_OK)
        return quern__fail(schedule->emit_result,
                           "%s: no memory to emit an event; the others were published", frame);
    return quern__event_loss_fail(&schedule->event_loss, frame);
}
