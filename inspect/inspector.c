/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* The inspector on the main thread, between two frames: requests, messages, pauses and steps, and what it keeps of
 * frames. */
#include "inspect/inspect_internal.h"

#include <quern/kit/json.h>

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { BUDGET_NS = 200000, PAUSED_BUDGET_NS = 10000000, TOKEN_BYTES_MIN = 16 };

#define ANSWER_LIMIT_NS     10000000000u
#define CONNECTION_LIMIT_NS 5000000000u

_Static_assert((int)QUERN__INSPECT_CHANNELS == (int)QUERN_INSPECT_MAX_CLIENTS &&
                   (int)QUERN__INSPECT_WAITING_MAX == (int)QUERN_INSPECT_MAX_WAITING &&
                   (int)QUERN__INSPECT_REQUEST_BYTES_MAX == (int)QUERN_INSPECT_MAX_BODY_BYTES,
               "the server has the limits of the public header");

static uint64_t clock_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
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
    quern__inspect_count_reason(&inspector->exchange, has_moved);
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

/* Adds a frame to the aggregate of its second. */
static void add_to_second(quern_inspector *inspector, const quern__inspect_sample *sample)
{
    const quern_frame_stats *stats = &sample->stats;
    const uint64_t now = (clock_ns() - inspector->created_ns) / 1000000000u;
    uint64_t at = inspector->second_count - 1; /* of no use while none is kept */
    if (inspector->second_count == 0 || inspector->seconds[at % QUERN__INSPECT_SECONDS].second != now) {
        at = inspector->second_count++;
        inspector->seconds[at % QUERN__INSPECT_SECONDS] =
            (quern__inspect_second){.second = now, .first_frame = sample->frame};
    }
    quern__inspect_second *second = &inspector->seconds[at % QUERN__INSPECT_SECONDS];
    if (stats->time_ns >= second->worst_ns) second->worst_frame = sample->frame;
    if (stats->time_ns >= second->worst_ns) second->worst_ns = stats->time_ns;
    second->frame_count++;
    second->time_ns += stats->time_ns;
    second->sync_ns += stats->sync_ns;
    second->command_count += stats->command_count;
    second->dropped_count += stats->dropped_count;
    second->created_count += stats->created_count;
    second->destroyed_count += stats->destroyed_count;
    second->event_count += stats->event_count;
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
        quern__inspect_count_reason(&inspector->exchange, false);
    }
    for (uint32_t i = 0; i < inspector->reader_count; i++) {
        quern_event_block block;
        while (quern_event_reader_next(inspector->readers[i], &block))
            keep_events(inspector, i, &block, &room);
    }
    if (schedule == NULL || quern_schedule_get_frame_stats(schedule, &sample->stats) != QUERN_OK) return;
    sample->frame = inspector->frame > 0 ? inspector->frame - 1 : 0;
    inspector->sample_count++;
    add_to_second(inspector, sample);
    quern__inspect_pass_commands(inspector, sample->frame);
    if (inspector->probe_count > 0) quern__inspect_pass_probes(inspector, sample->frame);
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

/* Whether a step of a message is due. Copies new arguments. */
static bool is_due(quern_inspector *inspector, uint32_t i, uint64_t now_ns)
{
    quern__inspect_client *client = &inspector->clients[i];
    quern__inspect_channel *channel = &inspector->exchange.channels[i];
    char text[QUERN__INSPECT_ARGUMENT_BYTES];
    pthread_mutex_lock(&inspector->exchange.mutex);
    const bool is_open = channel->is_open, is_new = channel->is_new, is_ready = channel->is_ready;
    bool has_arguments = false;
    if (is_open && is_new) client->is_building = false;
    if (is_open && !client->is_building && !is_ready) {
        has_arguments = channel->has_arguments;
        channel->has_arguments = false;
        if (has_arguments) memcpy(text, channel->arguments, strlen(channel->arguments) + 1);
    }
    channel->is_new = false;
    pthread_mutex_unlock(&inspector->exchange.mutex);
    if (!is_open) client->wants_events = false;
    if (!is_open) return false;
    if (is_new) {
        client->wants_events = false;
        client->sample_count = inspector->sample_count;
        client->event_count = inspector->event_count;
    }
    if (client->is_building) return true;
    if (is_ready && now_ns >= client->due_ns) {
        inspector->skipped_count++;
        client->due_ns = now_ns + client->interval_ns;
    }
    if (is_ready || (now_ns < client->due_ns && !has_arguments)) return false;
    if (client->answer == NULL) client->answer = quern__inspect_answer_create(inspector);
    if (client->answer == NULL) return false;
    client->answer->is_done = false;
    client->answer->status = 200;
    client->answer->text.bytes.size_bytes = 0;
    if (has_arguments) quern__inspect_answer_open(client->answer, "GET", "watch", text);
    return true;
}

/* Builds messages that are due, until the time. The first client always advances by a step, and each update begins with
 * another one. */
static void push_messages(quern_inspector *inspector, uint64_t until_ns)
{
    const uint32_t first = inspector->next_client++;
    for (uint32_t k = 0; k < QUERN_INSPECT_MAX_CLIENTS; k++) {
        const uint32_t i = (first + k) % QUERN_INSPECT_MAX_CLIENTS;
        quern__inspect_client *client = &inspector->clients[i];
        const uint64_t now_ns = clock_ns();
        if (k > 0 && now_ns >= until_ns) break;
        if (is_due(inspector, i, now_ns)) {
            if (!client->is_building) {
                quern__inspect_answer *answer = client->answer;
                uint64_t rate = RATE;
                answer->client = client;
                if (!answer->is_done &&
                    (!quern__inspect_read_count(answer, "rate", RATE, RATE_MAX, &rate) || rate == 0))
                    rate = RATE;
                client->interval_ns = 1000000000u / rate;
                client->due_ns = now_ns + client->interval_ns;
                quern__inspect_answer_begin(answer);
                client->is_building = true;
            }
            do
                quern__inspect_answer_step(client->answer);
            while (!client->answer->is_done && clock_ns() < until_ns);
        }
        if (!client->is_building || !client->answer->is_done) continue;
        client->is_building = false;
        quern__inspect_channel_send(&inspector->exchange, i, &client->answer->text.bytes);
    }
    bool are_wanted = false;
    for (uint32_t i = 0; i < QUERN_INSPECT_MAX_CLIENTS; i++)
        are_wanted = are_wanted || inspector->clients[i].wants_events;
    quern__inspect_set_listening(inspector, are_wanted);
}

/* ------------------------------------------------------------------------------------------ requests */

/* Begins the answer of the next request that waits. Returns false if none waits. */
static bool begin_answer(quern_inspector *inspector)
{
    quern__inspect_request *request = quern__inspect_request_take(&inspector->exchange);
    if (request == NULL) return false;
    quern__inspect_answer *answer = quern__inspect_answer_create(inspector);
    if (answer == NULL) {
        quern__inspect_request_finish(&inspector->exchange,
                                      request); /* the server answers without memory */
        return true;
    }
    answer->request = request;
    answer->body = request->body;
    answer->body_bytes = request->body_bytes;
    quern__inspect_answer_open(answer, request->method, request->path, request->arguments);
    quern__inspect_answer_begin(answer);
    inspector->current = answer;
    return true;
}

/* Hands the text of the current answer over to the server. All else that the answer holds ends here. */
static void finish_answer(quern_inspector *inspector)
{
    quern__inspect_answer *answer = inspector->current;
    quern__inspect_request *request = answer->request;
    inspector->current = NULL;
    inspector->request_count++;
    request->status = answer->status;
    request->is_binary = answer->text.is_binary;
    const quern_byte_buffer kept = request->answer;
    request->answer = answer->text.bytes;
    answer->text.bytes = kept;
    quern__inspect_answer_destroy(answer);
    quern__inspect_request_finish(&inspector->exchange, request);
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
    for (uint32_t i = 0; i < QUERN_INSPECT_MAX_PANELS && def->panels[i].title != NULL; i++)
        if (def->panels[i].write == NULL)
            return quern_error_set(QUERN_ERROR_INVALID_ARGUMENT,
                                   "quern_inspector_create: the panel '%.80s' has no function: set 'write'",
                                   def->panels[i].title);
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
    inspector->user = (quern_world_user){.name = "the inspector",
                                         .schedule = def->schedule,
                                         .history = def->history,
                                         .release_deltas = quern__inspect_release_deltas};
    const quern_result result = quern_world_add_user(def->world, &inspector->user);
    if (result != QUERN_OK) {
        allocator.release(allocator.user_data, inspector, sizeof *inspector, _Alignof(quern_inspector));
        return quern_error_set(result, "quern_inspector_create: the world takes no inspector: %s",
                               quern_error_message());
    }
    inspector->created_ns = clock_ns();
    inspector->def = *def;
    inspector->def.allocator = allocator;
    if (inspector->def.budget_ns == 0) inspector->def.budget_ns = BUDGET_NS;
    if (inspector->def.title == NULL) inspector->def.title = "Quern";
    quern__inspect_exchange_open(&inspector->exchange, &allocator);
    inspector->paused_budget_ns = PAUSED_BUDGET_NS;
    inspector->exchange.answer_limit_ns = ANSWER_LIMIT_NS;
    inspector->exchange.read_limit_ns = inspector->exchange.write_limit_ns = CONNECTION_LIMIT_NS;
    inspector->exchange.write_trace = quern__inspect_write_trace;
    inspector->exchange.trace = def->trace;
    *out_inspector = inspector;
    return QUERN_OK;
}

void quern_inspector_destroy(quern_inspector *inspector)
{
    if (inspector == NULL) return;
    const quern_allocator allocator = inspector->def.allocator;
    quern_world_remove_user(inspector->def.world, &inspector->user);
    quern__inspect_server_stop(inspector->server);
    if (inspector->current != NULL) finish_answer(inspector);
    for (uint32_t i = 0; i < QUERN_INSPECT_MAX_CLIENTS; i++)
        quern__inspect_answer_destroy(inspector->clients[i].answer);
    quern__inspect_exchange_release(&inspector->exchange);
    quern__inspect_set_listening(inspector, false);
    quern__inspect_release_commands(inspector);
    quern__inspect_release_probes(inspector);
    quern__inspect_case_release(inspector);
    if (inspector->trace_count > 0) quern_trace_stop(inspector->def.trace);
    quern_frame_capture_destroy(inspector->capture);
    allocator.release(allocator.user_data, inspector, sizeof *inspector, _Alignof(quern_inspector));
}

/* ------------------------------------------------------------------------------------------- updates */

/* Answers requests until none waits, or until the time. One step is always done, so that an answer goes on even if the
 * time was spent before. */
static void answer_requests(quern_inspector *inspector, uint64_t until_ns)
{
    bool is_first = true;
    for (; is_first || clock_ns() < until_ns; is_first = false) {
        if (inspector->current != NULL)
            quern__inspect_answer_step(inspector->current);
        else if (!begin_answer(inspector))
            return;
        if (inspector->current != NULL && inspector->current->is_done) finish_answer(inspector);
    }
}

static bool attend(quern_inspector *inspector, uint64_t *frame)
{
    const uint64_t begin_ns = clock_ns();
    if (frame != NULL && !inspector->has_moved) inspector->frame = *frame;
    if (inspector->has_run) pass_frame(inspector);
    inspector->has_run = false;
    const uint64_t until_ns =
        begin_ns + (inspector->is_paused ? inspector->paused_budget_ns : inspector->def.budget_ns);
    answer_requests(inspector, until_ns);
    push_messages(inspector, until_ns);
    const uint64_t end_ns = clock_ns(), spent_ns = end_ns - begin_ns;
    inspector->spent_ns += spent_ns;
    if (spent_ns > inspector->longest_ns) inspector->longest_ns = spent_ns;
    if (frame != NULL) *frame = inspector->frame;
    quern__inspect_set_moved(inspector, false);
    if (inspector->is_paused && inspector->step_count == 0) {
        const uint64_t wait_until_ns = begin_ns + inspector->paused_budget_ns;
        if (inspector->server != NULL && inspector->current == NULL && end_ns < wait_until_ns)
            quern__inspect_request_wait(&inspector->exchange, wait_until_ns - end_ns);
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
    /* Relaxed is enough: a request that is noticed late waits for a frame more, and the mutex of the exchange orders
     * everything else. */
    if (atomic_load_explicit(&inspector->exchange.attention, memory_order_relaxed) != 0)
        return attend(inspector, frame);
    if (frame != NULL) inspector->frame = *frame;
    inspector->is_saved = false;
    return true;
}

static void sleep_for(uint64_t nanoseconds)
{
    struct timespec rest = {.tv_sec = (time_t)(nanoseconds / 1000000000u),
                            .tv_nsec = (long)(nanoseconds % 1000000000u)};
    while (nanosleep(&rest, &rest) != 0 && errno == EINTR) {
    }
}

/* The time is not the program's, so it counts neither as spent nor towards the budget. */
void quern_inspector_wait(quern_inspector *inspector, uint64_t *frame, uint64_t nanoseconds)
{
    if (inspector == NULL || inspector->server == NULL) {
        sleep_for(nanoseconds);
        return;
    }
    uint64_t now_ns = clock_ns();
    const uint64_t until_ns = now_ns + nanoseconds;
    if (frame != NULL && !inspector->has_moved) inspector->frame = *frame;
    /* Relaxed is enough, as in quern_inspector_update. */
    const bool is_attended =
        atomic_load_explicit(&inspector->exchange.attention, memory_order_relaxed) != 0;
    if (inspector->has_run && is_attended) {
        pass_frame(inspector);
        inspector->has_run = false;
    }
    for (; now_ns < until_ns; now_ns = clock_ns()) {
        /* Messages that are due later than this wait are built by the next one, or by the next update. */
        if (inspector->current == NULL)
            quern__inspect_request_wait(&inspector->exchange, until_ns - now_ns);
        answer_requests(inspector, until_ns);
        push_messages(inspector, until_ns);
    }
    if (frame != NULL) *frame = inspector->frame;
    if (frame != NULL) quern__inspect_set_moved(inspector, false);
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
    /* A capture waits until the recording of a test case has ended. */
    if (inspector->kept_case.recorder != NULL) return quern__inspect_case_run(inspector, delta_seconds);
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

static bool is_valid_token(const char *token)
{
    const size_t bytes = strlen(token);
    return bytes >= TOKEN_BYTES_MIN && bytes <= QUERN__INSPECT_TOKEN_BYTES_MAX &&
           strspn(token, "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") == bytes;
}

quern_result quern_inspector_serve(quern_inspector *inspector, const quern_inspect_server_def *def)
{
    const quern_inspect_server_def defaults = {0};
    if (def == NULL) def = &defaults;
    if (inspector == NULL)
        return quern_error_set(QUERN_ERROR_NULL_ARGUMENT,
                               "quern_inspector_serve: 'inspector' is NULL: create one first");
    if (inspector->server != NULL)
        return quern_error_set(
            QUERN_ERROR_INVALID_ARGUMENT,
            "quern_inspector_serve: the inspector is served already, at %s; create another one",
            quern__inspect_server_url(inspector->server));
    if (def->token != NULL && !is_valid_token(def->token))
        return quern_error_set(
            QUERN_ERROR_INVALID_ARGUMENT,
            "quern_inspector_serve: 'token' is not valid: use %d to %d letters and digits", TOKEN_BYTES_MIN,
            QUERN__INSPECT_TOKEN_BYTES_MAX);
    const quern__inspect_server_settings settings = {.port = def->port,
                                                     .token = def->token,
                                                     .page = quern__inspect_page,
                                                     .page_bytes = quern__inspect_page_bytes};
    const quern_result result =
        quern__inspect_server_start(&inspector->exchange, &settings, &inspector->server);
    if (result == QUERN_ERROR_OUT_OF_MEMORY)
        return quern_error_set(result,
                               "quern_inspector_serve: out of memory: the server could not be allocated; "
                               "nothing was started");
    if (result != QUERN_OK)
        return quern_error_set(
            result,
            "quern_inspector_serve: port %u of 127.0.0.1 cannot be served: it may be in use; choose "
            "another one, or 0 for a free one",
            def->port);
    return QUERN_OK;
}

const char *quern_inspector_url(const quern_inspector *inspector)
{
    return inspector != NULL ? quern__inspect_server_url(inspector->server) : NULL;
}
