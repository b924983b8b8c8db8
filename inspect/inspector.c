/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* The inspector on the main thread, between two frames: requests, messages, pauses and steps, and what it keeps of
 * frames; and the queue by which the threads of the server hand requests over.
 *
 * `attention` counts what the main thread has to do. It changes under the mutex and is read without it: a count that is
 * read too late only delays an answer by a frame. */
#include "inspect/inspect_internal.h"

#include <quern/kit/json.h>

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { BUDGET_NS = 200000, PAUSED_WAIT_NS = 10000000, ANSWER_LIMIT_MS = 10000 };

/* -------------------------------------------------------------------------------------------- queue */

static uint64_t clock_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static struct timespec deadline_of(uint64_t ns)
{
    struct timespec end;
    clock_gettime(CLOCK_REALTIME, &end);
    ns += (uint64_t)end.tv_nsec;
    end.tv_sec += (time_t)(ns / 1000000000u);
    end.tv_nsec = (long)(ns % 1000000000u);
    return end;
}

static void append(quern__inspect_queue *queue, quern__inspect_answer *answer)
{
    if (queue->last != NULL)
        queue->last->next = answer;
    else
        queue->first = answer;
    queue->last = answer;
    answer->next = NULL;
    queue->count++;
}

static bool unlink_answer(quern__inspect_queue *queue, quern__inspect_answer *answer)
{
    quern__inspect_answer *previous = NULL;
    for (quern__inspect_answer *at = queue->first; at != NULL; previous = at, at = at->next) {
        if (at != answer) continue;
        if (previous != NULL)
            previous->next = at->next;
        else
            queue->first = at->next;
        if (queue->last == at) queue->last = previous;
        queue->count--;
        return true;
    }
    return false;
}

/* The wait ends when the main thread has finished the answer (quern__inspect_give_back), when the queue closes, or at
 * the deadline; all three signal or time out under the mutex, so none is missed. */
bool quern__inspect_ask(quern_inspector *inspector, quern__inspect_answer *answer, uint32_t limit_ms)
{
    quern__inspect_queue *queue = &inspector->queue;
    const struct timespec end = deadline_of((uint64_t)limit_ms * 1000000u);
    bool has_time = true, is_queued = false, is_finished;
    pthread_mutex_lock(&queue->mutex);
    if (!queue->is_closing && queue->count < QUERN_INSPECT_MAX_WAITING) {
        append(queue, answer);
        is_queued = true;
        quern__inspect_count_reason(inspector, true);
        pthread_cond_signal(&queue->arrived);
    }
    while (is_queued && !answer->is_given_back && !queue->is_closing && has_time)
        has_time = pthread_cond_timedwait(&queue->done, &queue->mutex, &end) != ETIMEDOUT;
    is_finished = is_queued && answer->is_given_back;
    if (!is_finished) {
        if (is_queued && !unlink_answer(queue, answer)) {
            answer->is_abandoned = true; /* the main thread works on it, and destroys it */
        } else {
            if (is_queued) quern__inspect_count_reason(inspector, false);
            pthread_mutex_unlock(&queue->mutex);
            quern__inspect_answer_destroy(answer);
            return false;
        }
    }
    pthread_mutex_unlock(&queue->mutex);
    return is_finished;
}

quern__inspect_answer *quern__inspect_take(quern_inspector *inspector)
{
    quern__inspect_queue *queue = &inspector->queue;
    pthread_mutex_lock(&queue->mutex);
    quern__inspect_answer *answer = queue->first;
    if (answer != NULL) unlink_answer(queue, answer);
    pthread_mutex_unlock(&queue->mutex);
    return answer;
}

void quern__inspect_give_back(quern_inspector *inspector, quern__inspect_answer *answer)
{
    quern__inspect_queue *queue = &inspector->queue;
    quern_delta_destroy(answer->delta); /* here, as only this thread may */
    answer->delta = NULL;
    pthread_mutex_lock(&queue->mutex);
    const bool is_abandoned = answer->is_abandoned;
    answer->is_given_back = true;
    quern__inspect_count_reason(inspector, false);
    pthread_cond_broadcast(&queue->done);
    pthread_mutex_unlock(&queue->mutex);
    if (is_abandoned) quern__inspect_answer_destroy(answer);
}

/* Waits until a request arrives, or for the time. A request that arrived before the lock is in the queue; one that
 * arrives later signals `arrived`. */
static void wait_for_request(quern_inspector *inspector, uint64_t ns)
{
    quern__inspect_queue *queue = &inspector->queue;
    const struct timespec end = deadline_of(ns);
    pthread_mutex_lock(&queue->mutex);
    if (queue->first == NULL) pthread_cond_timedwait(&queue->arrived, &queue->mutex, &end);
    pthread_mutex_unlock(&queue->mutex);
}

/* Makes all waiting threads return. */
static void close_queue(quern_inspector *inspector)
{
    quern__inspect_queue *queue = &inspector->queue;
    pthread_mutex_lock(&queue->mutex);
    queue->is_closing = true;
    pthread_cond_broadcast(&queue->arrived);
    pthread_cond_broadcast(&queue->done);
    pthread_cond_broadcast(&queue->ready);
    pthread_mutex_unlock(&queue->mutex);
}

/* -------------------------------------------------------------------------------------------- frames */

void quern__inspect_note(quern_inspector *inspector, const char *format, ...)
{
    quern__inspect_mark *mark = &inspector->marks[inspector->mark_count++ % QUERN__INSPECT_MARKS];
    va_list arguments;
    mark->frame = inspector->frame;
    va_start(arguments, format);
    vsnprintf(mark->text, sizeof mark->text, format, arguments);
    va_end(arguments);
}

void quern__inspect_set_moved(quern_inspector *inspector, bool has_moved)
{
    if (inspector->has_moved == has_moved) return;
    inspector->has_moved = has_moved;
    quern__inspect_count_reason(inspector, has_moved);
}

/* Writes the newest events of a block in the ring. reader: its number, which is that of the event type. */
static void keep_events(quern_inspector *inspector, uint32_t reader, const quern_event_block *block,
                        uint32_t *room)
{
    quern_type_info type;
    if (quern_type_at(inspector->def.world, QUERN_TYPE_EVENT, reader, &type) != QUERN_OK) return;
    const uint32_t count = block->count < *room ? block->count : *room;
    *room -= count;
    for (uint32_t i = block->count - count; i < block->count; i++) {
        quern__inspect_event *kept = &inspector->events[inspector->event_count++ % QUERN__INSPECT_EVENTS];
        quern_text_buffer buffer = {kept->json, sizeof kept->json, 0};
        const void *value = (const char *)block->values + (size_t)i * type.size_bytes;
        kept->frame = inspector->frame;
        kept->event = type.event;
        kept->json[0] = '\0';
        if (type.field_count == 0) continue;
        const quern_result result =
            quern_json_write_value(inspector->def.world, &type, value, quern_sink_text(&buffer));
        if (result != QUERN_OK || buffer.length_bytes >= sizeof kept->json) kept->json[0] = '\0';
    }
}

/* Takes a sample of the last frame, and reads events, if anything watches. */
static void pass_frame(quern_inspector *inspector)
{
    const quern_schedule *schedule = inspector->def.schedule;
    quern__inspect_sample *sample = &inspector->samples[inspector->sample_count % QUERN__INSPECT_SAMPLES];
    uint32_t room = QUERN__INSPECT_EVENTS_PER_FRAME;
    if (inspector->trace_count > 0 && --inspector->trace_count == 0) {
        quern_trace_stop(inspector->def.trace);
        inspector->has_trace = true;
        quern__inspect_count_reason(inspector, false);
    }
    for (uint32_t i = 0; i < inspector->reader_count; i++) {
        quern_event_block block;
        while (quern_event_reader_next(inspector->readers[i], &block))
            keep_events(inspector, i, &block, &room);
    }
    if (schedule == NULL || quern_schedule_get_frame_stats(schedule, &sample->stats) != QUERN_OK) return;
    sample->frame = inspector->frame > 0 ? inspector->frame - 1 : 0;
    inspector->sample_count++;
    if (sample->stats.dropped_count == 0) return;
    /* The schedule has the report of the last frame only. */
    const uint32_t count = quern_schedule_dropped_command_count(schedule);
    for (uint32_t i = 0; i < count && i < QUERN__INSPECT_DROPS; i++) {
        quern__inspect_drop *drop = &inspector->drops[inspector->drop_count % QUERN__INSPECT_DROPS];
        if (quern_schedule_get_dropped_command(schedule, i, &drop->what) != QUERN_OK) break;
        drop->frame = sample->frame;
        inspector->drop_count++;
    }
    /* A program that drops commands in every frame gets one mark, not one for each frame. */
    const quern__inspect_sample *before =
        &inspector->samples[(inspector->sample_count - 2) % QUERN__INSPECT_SAMPLES];
    if (inspector->sample_count > 1 && before->stats.dropped_count > 0) return;
    quern__inspect_note(inspector, "%llu commands dropped",
                        (unsigned long long)sample->stats.dropped_count);
}

static void release_listeners(quern_inspector *inspector, uint32_t capacity)
{
    const quern_allocator *allocator = &inspector->def.allocator;
    for (uint32_t i = 0; i < inspector->reader_count; i++)
        quern_event_reader_destroy(inspector->readers[i]);
    if (inspector->readers != NULL)
        allocator->release(allocator->user_data, inspector->readers, capacity * sizeof *inspector->readers,
                           _Alignof(quern_event_reader *));
    if (inspector->events != NULL)
        allocator->release(allocator->user_data, inspector->events,
                           QUERN__INSPECT_EVENTS * sizeof *inspector->events,
                           _Alignof(quern__inspect_event));
    inspector->readers = NULL;
    inspector->events = NULL;
    inspector->reader_count = 0;
}

/* Event types that are registered later are listened to when the readers are created again. */
quern_result quern__inspect_set_listening(quern_inspector *inspector, bool is_on)
{
    const quern_allocator *allocator = &inspector->def.allocator;
    const uint32_t count = quern_type_count(inspector->def.world, QUERN_TYPE_EVENT);
    quern_result result = QUERN_OK;
    if (is_on == (inspector->readers != NULL) || (is_on && count == 0)) return QUERN_OK;
    if (!is_on) {
        release_listeners(inspector, inspector->reader_count);
        return QUERN_OK;
    }
    inspector->readers = allocator->allocate(allocator->user_data, count * sizeof *inspector->readers,
                                             _Alignof(quern_event_reader *));
    inspector->events =
        allocator->allocate(allocator->user_data, QUERN__INSPECT_EVENTS * sizeof *inspector->events,
                            _Alignof(quern__inspect_event));
    inspector->first_event = inspector->event_count;
    if (inspector->readers == NULL || inspector->events == NULL) result = QUERN_ERROR_OUT_OF_MEMORY;
    while (result == QUERN_OK && inspector->reader_count < count) {
        quern_type_info type;
        result = quern_type_at(inspector->def.world, QUERN_TYPE_EVENT, inspector->reader_count, &type);
        if (result != QUERN_OK) break;
        const quern_event_reader_def def = {.event = type.event, .name = "inspector"};
        result = quern_event_reader_create(inspector->def.world, &def,
                                           &inspector->readers[inspector->reader_count]);
        if (result == QUERN_OK) inspector->reader_count++;
    }
    if (result != QUERN_OK) release_listeners(inspector, count);
    return result;
}

/* -------------------------------------------------------------------------------------------- clients */

enum { RATE = 10, RATE_MAX = 60 }; /* messages per second */

/* Begins a message if one is due and the last one was sent. Called with the mutex. */
static bool is_due(quern_inspector *inspector, quern__inspect_client *client, uint64_t now_ns)
{
    if (!client->is_open) return false;
    if (client->is_new) {
        client->is_new = client->is_building = client->wants_events = false;
        client->sample_count = inspector->sample_count;
        client->event_count = inspector->event_count;
    }
    if (client->is_building) return true;
    if (client->is_ready || (now_ns < client->due_ns && !client->has_arguments)) return false;
    if (client->answer == NULL) {
        client->answer = quern__inspect_answer_create(inspector);
        if (client->answer == NULL) return false;
        quern__inspect_answer_open(client->answer, "GET", "watch", NULL);
    }
    if (client->has_arguments) client->answer->arguments = client->arguments;
    client->has_arguments = false;
    return true;
}

static void begin_message(quern__inspect_client *client, uint64_t now_ns)
{
    quern__inspect_answer *answer = client->answer;
    uint64_t rate;
    answer->client = client;
    answer->status = 200;
    answer->is_done = false;
    answer->text.bytes.size_bytes = 0;
    if (!quern__inspect_read_count(answer, "rate", RATE, RATE_MAX, &rate) || rate == 0) rate = RATE;
    client->interval_ns = 1000000000u / rate;
    client->due_ns = now_ns + client->interval_ns;
    quern__inspect_answer_begin(answer);
    client->is_building = true;
}

static void hand_over(quern_inspector *inspector, quern__inspect_client *client)
{
    quern__inspect_queue *queue = &inspector->queue;
    client->is_building = false;
    pthread_mutex_lock(&queue->mutex);
    const quern__inspect_text text = client->ready;
    client->ready = client->answer->text;
    client->answer->text = text;
    client->is_ready = client->ready.bytes.size_bytes > 0;
    pthread_cond_signal(&queue->ready);
    pthread_mutex_unlock(&queue->mutex);
}

/* Builds messages that are due, until the time; UINT64_MAX: no limit. */
static void push_messages(quern_inspector *inspector, uint64_t until_ns)
{
    quern__inspect_queue *queue = &inspector->queue;
    for (uint32_t i = 0; i < QUERN_INSPECT_MAX_CLIENTS; i++) {
        quern__inspect_client *client = &queue->clients[i];
        const uint64_t now_ns = clock_ns();
        if (i > 0 && now_ns >= until_ns) return; /* the first one always advances by a step */
        pthread_mutex_lock(&queue->mutex);
        const bool is_next = is_due(inspector, client, now_ns);
        pthread_mutex_unlock(&queue->mutex);
        if (!is_next) continue;
        if (!client->is_building) begin_message(client, now_ns);
        do
            quern__inspect_answer_step(client->answer);
        while (!client->answer->is_done && clock_ns() < until_ns);
        if (client->answer->is_done) hand_over(inspector, client);
    }
    bool is_wanted = false;
    pthread_mutex_lock(&queue->mutex);
    for (uint32_t i = 0; i < QUERN_INSPECT_MAX_CLIENTS; i++)
        is_wanted |= queue->clients[i].is_open && queue->clients[i].wants_events;
    pthread_mutex_unlock(&queue->mutex);
    quern__inspect_set_listening(inspector, is_wanted);
}

/* ---------------------------------------------------------------------------------------- inspector */

quern_result quern_inspector_create(const quern_inspector_def *def, quern_inspector **out_inspector)
{
    if (def == NULL || out_inspector == NULL)
        return quern_error_set(QUERN_ERROR_NULL_ARGUMENT,
                               "quern_inspector_create: '%s' is NULL: pass its address",
                               def == NULL ? "def" : "out_inspector");
    if (def->world == NULL)
        return quern_error_set(QUERN_ERROR_NULL_ARGUMENT,
                               "quern_inspector_create: 'world' of the definition is NULL: set it");
    quern_allocator allocator = def->allocator;
    if ((allocator.allocate == NULL) != (allocator.release == NULL))
        return quern_error_set(QUERN_ERROR_INVALID_ARGUMENT,
                               "quern_inspector_create: the allocator has only one "
                               "function: set both or none");
    if (allocator.allocate == NULL) allocator = quern_allocator_default();
    quern_inspector *inspector =
        allocator.allocate(allocator.user_data, sizeof *inspector, _Alignof(quern_inspector));
    if (inspector == NULL)
        return quern_error_set(
            QUERN_ERROR_OUT_OF_MEMORY,
            "quern_inspector_create: out of memory: %zu bytes for the inspector; nothing was created",
            sizeof *inspector);
    memset(inspector, 0, sizeof *inspector);
    inspector->def = *def;
    inspector->def.allocator = allocator;
    if (inspector->def.budget_ns == 0) inspector->def.budget_ns = BUDGET_NS;
    if (inspector->def.title == NULL) inspector->def.title = "Quern";
    inspector->answer_limit_ms = ANSWER_LIMIT_MS;
    atomic_init(&inspector->attention, 0);
    pthread_mutex_init(&inspector->queue.mutex, NULL);
    pthread_cond_init(&inspector->queue.arrived, NULL);
    pthread_cond_init(&inspector->queue.done, NULL);
    pthread_cond_init(&inspector->queue.ready, NULL);
    for (uint32_t i = 0; i < QUERN_INSPECT_MAX_CLIENTS; i++)
        inspector->queue.clients[i].ready.bytes.allocator = allocator;
    *out_inspector = inspector;
    return QUERN_OK;
}

void quern_inspector_destroy(quern_inspector *inspector)
{
    if (inspector == NULL) return;
    const quern_allocator allocator = inspector->def.allocator;
    close_queue(inspector);
    quern__inspect_server_stop(inspector->server);
    quern__inspect_answer_destroy(inspector->current);
    for (uint32_t i = 0; i < QUERN_INSPECT_MAX_CLIENTS; i++) {
        quern__inspect_answer_destroy(inspector->queue.clients[i].answer);
        quern_byte_buffer_release(&inspector->queue.clients[i].ready.bytes);
    }
    quern__inspect_set_listening(inspector, false);
    if (inspector->trace_count > 0) quern_trace_stop(inspector->def.trace);
    quern_frame_capture_destroy(inspector->capture);
    pthread_cond_destroy(&inspector->queue.arrived);
    pthread_cond_destroy(&inspector->queue.done);
    pthread_cond_destroy(&inspector->queue.ready);
    pthread_mutex_destroy(&inspector->queue.mutex);
    allocator.release(allocator.user_data, inspector, sizeof *inspector, _Alignof(quern_inspector));
}

/* ------------------------------------------------------------------------------------------- updates */

/* Answers requests until none waits, or until the time. One step is always done, so that an answer goes on even if the
 * time was spent before. */
static void answer_requests(quern_inspector *inspector, uint64_t until_ns)
{
    bool is_first = true;
    for (; is_first || clock_ns() < until_ns; is_first = false) {
        quern__inspect_answer *answer = inspector->current;
        if (answer == NULL) {
            answer = inspector->current = quern__inspect_take(inspector);
            if (answer == NULL) return;
            quern__inspect_answer_begin(answer);
        } else {
            quern__inspect_answer_step(answer);
        }
        if (!answer->is_done) continue;
        inspector->current = NULL;
        inspector->request_count++;
        quern__inspect_give_back(inspector, answer);
    }
}

static bool attend(quern_inspector *inspector, uint64_t *frame)
{
    const uint64_t begin_ns = clock_ns();
    if (frame != NULL && !inspector->has_moved) inspector->frame = *frame;
    if (inspector->has_run) pass_frame(inspector);
    inspector->has_run = false;
    const uint64_t until_ns = inspector->is_paused ? UINT64_MAX : begin_ns + inspector->def.budget_ns;
    answer_requests(inspector, until_ns);
    push_messages(inspector, until_ns);
    const uint64_t spent_ns = clock_ns() - begin_ns;
    inspector->spent_ns += spent_ns;
    if (spent_ns > inspector->longest_ns) inspector->longest_ns = spent_ns;
    if (frame != NULL) *frame = inspector->frame;
    quern__inspect_set_moved(inspector, false);
    if (inspector->is_paused && inspector->step_count == 0) {
        wait_for_request(inspector, inspector->server != NULL ? PAUSED_WAIT_NS : 0);
        return false;
    }
    if (inspector->step_count > 0) inspector->step_count--;
    inspector->has_run = true;
    inspector->is_saved = false;
    return true;
}

bool quern_inspector_update(quern_inspector *inspector, uint64_t *frame)
{
    if (inspector == NULL) return true;
    /* Relaxed is enough: a request that is noticed late waits for a frame more, and the mutex of the queue orders
     * everything else. */
    if (atomic_load_explicit(&inspector->attention, memory_order_relaxed) != 0)
        return attend(inspector, frame);
    if (frame != NULL) inspector->frame = *frame;
    inspector->is_saved = false;
    return true;
}

quern_result quern_inspector_run(quern_inspector *inspector, double delta_seconds)
{
    if (inspector == NULL || inspector->def.schedule == NULL)
        return quern_error_set(QUERN_ERROR_NULL_ARGUMENT, "quern_inspector_run: %s is NULL: %s",
                               inspector == NULL ? "'inspector'" : "'schedule' of the inspector",
                               inspector == NULL ? "pass an inspector"
                                                 : "set it when creating the inspector");
    const uint64_t frame = inspector->frame++; /* the program counts it, too, before its next update */
    inspector->is_saved = false;
    if (!inspector->is_capture_requested)
        return quern_schedule_run(inspector->def.schedule, inspector->def.jobs, delta_seconds);
    inspector->is_capture_requested = false;
    inspector->captured_frame = frame;
    const quern_result result =
        quern_schedule_run_captured(inspector->def.schedule, NULL, delta_seconds, inspector->capture);
    inspector->has_capture = result == QUERN_OK;
    return result;
}

quern_result quern_inspect_request(quern_inspector *inspector, const quern_inspect_call *call,
                                   quern_sink sink, uint32_t *out_status)
{
    const char *missing = inspector == NULL                            ? "inspector"
                          : call == NULL                               ? "call"
                          : call->method == NULL || call->path == NULL ? "method or path of the call"
                                                                       : NULL;
    if (missing != NULL)
        return quern_error_set(QUERN_ERROR_NULL_ARGUMENT,
                               "quern_inspect_request: '%s' is NULL: pass its address", missing);
    if (sink.write == NULL)
        return quern_error_set(
            QUERN_ERROR_NULL_ARGUMENT,
            "quern_inspect_request: the sink has no function to write: 'write', or the file or "
            "buffer that it was made from, is NULL");
    quern__inspect_answer *answer = quern__inspect_answer_create(inspector);
    if (answer == NULL)
        return quern_error_set(
            QUERN_ERROR_OUT_OF_MEMORY,
            "quern_inspect_request: out of memory: %zu bytes for the answer; nothing was changed",
            sizeof *answer);
    answer->body = call->body;
    answer->body_bytes = call->body_bytes;
    quern__inspect_answer_open(answer, call->method, call->path, call->arguments);
    quern__inspect_answer_begin(answer);
    while (!answer->is_done)
        quern__inspect_answer_step(answer);
    inspector->request_count++;
    if (out_status != NULL) *out_status = answer->status;
    const quern_byte_buffer *bytes = &answer->text.bytes;
    quern_result result = QUERN_OK;
    if (bytes->size_bytes == 0)
        result = quern_error_set(
            QUERN_ERROR_OUT_OF_MEMORY,
            "quern_inspect_request: out of memory: no answer could be written; free memory and ask "
            "again");
    else if (!sink.write(sink.user_data, bytes->bytes, bytes->size_bytes) ||
             !sink.write(sink.user_data, "", 0))
        result = quern_error_set(QUERN_ERROR_IO,
                                 "quern_inspect_request: the sink could not write the answer: %zu bytes",
                                 bytes->size_bytes);
    quern__inspect_answer_destroy(answer);
    return result;
}

const char *quern_inspector_url(const quern_inspector *inspector)
{
    return inspector != NULL ? quern__inspect_server_url(inspector->server) : NULL;
}
