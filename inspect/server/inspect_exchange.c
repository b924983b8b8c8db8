/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "inspect/server/inspect_exchange.h"

#include <string.h>
#include <time.h>
#include <unistd.h>

void quern__inspect_exchange_open(quern__inspect_exchange *exchange, const quern_allocator *allocator)
{
    memset(exchange, 0, sizeof *exchange);
    exchange->allocator = *allocator;
    exchange->wake_file = -1;
    atomic_init(&exchange->attention, 0);
    pthread_mutex_init(&exchange->mutex, NULL);
    pthread_cond_init(&exchange->arrived, NULL);
    for (uint32_t i = 0; i < QUERN__INSPECT_CHANNELS; i++)
        exchange->channels[i].message.allocator = *allocator;
}

void quern__inspect_count_reason(quern__inspect_exchange *exchange, bool is_new)
{
    if (is_new)
        atomic_fetch_add_explicit(&exchange->attention, 1,
                                  memory_order_relaxed); /* relaxed: see the member */
    else
        atomic_fetch_sub_explicit(&exchange->attention, 1,
                                  memory_order_relaxed); /* relaxed: see the member */
}

static void append(quern__inspect_exchange *exchange, quern__inspect_request *request)
{
    if (exchange->last != NULL)
        exchange->last->next = request;
    else
        exchange->first = request;
    exchange->last = request;
    request->next = NULL;
    request->is_waiting = true;
    exchange->waiting_count++;
}

static void take_out(quern__inspect_exchange *exchange, quern__inspect_request *request)
{
    quern__inspect_request **link = &exchange->first, *previous = NULL;
    while (*link != request) {
        previous = *link;
        link = &previous->next;
    }
    *link = request->next;
    if (exchange->last == request) exchange->last = previous;
    request->is_waiting = false;
    exchange->waiting_count--;
}

/* Called with the mutex. */
static void release(quern__inspect_exchange *exchange, quern__inspect_request *request)
{
    const quern_allocator *allocator = &exchange->allocator;
    if (--request->reference_count > 0) return;
    quern_byte_buffer_release(&request->answer);
    allocator->release(allocator->user_data, request, request->size_bytes,
                       _Alignof(quern__inspect_request));
}

void quern__inspect_exchange_release(quern__inspect_exchange *exchange)
{
    while (exchange->first != NULL) {
        quern__inspect_request *request = exchange->first;
        take_out(exchange, request);
        release(exchange, request);
    }
    for (uint32_t i = 0; i < QUERN__INSPECT_CHANNELS; i++)
        quern_byte_buffer_release(&exchange->channels[i].message);
    pthread_cond_destroy(&exchange->arrived);
    pthread_mutex_destroy(&exchange->mutex);
}

/* Called with the mutex. A full pipe wakes the server, too. */
static void wake(quern__inspect_exchange *exchange)
{
    if (exchange->wake_file < 0) return;
    const ssize_t written = write(exchange->wake_file, "", 1);
    (void)written;
}

/* -------------------------------------------------------------------------- the server's side */

static char *copy(char **place, const char *bytes, size_t size)
{
    char *begin = *place;
    memcpy(begin, bytes, size);
    begin[size] = '\0';
    *place = begin + size + 1;
    return begin;
}

quern__inspect_request *quern__inspect_request_create(quern__inspect_exchange *exchange,
                                                      const quern__inspect_parts *parts)
{
    const quern_allocator *allocator = &exchange->allocator;
    const char *arguments = parts->arguments != NULL ? parts->arguments : "",
               *body = parts->body != NULL ? parts->body : "";
    const size_t size_bytes = sizeof(quern__inspect_request) + strlen(parts->method) + strlen(parts->path) +
                              strlen(arguments) + parts->body_bytes + 4;
    quern__inspect_request *request =
        allocator->allocate(allocator->user_data, size_bytes, _Alignof(quern__inspect_request));
    if (request == NULL) return NULL;
    memset(request, 0, sizeof *request);
    char *place = request->bytes;
    request->size_bytes = size_bytes;
    request->method = copy(&place, parts->method, strlen(parts->method));
    request->path = copy(&place, parts->path, strlen(parts->path));
    request->arguments = copy(&place, arguments, strlen(arguments));
    request->body = copy(&place, body, parts->body_bytes);
    request->body_bytes = parts->body_bytes;
    request->answer.allocator = *allocator;
    request->reference_count = 1;
    return request;
}

bool quern__inspect_request_queue(quern__inspect_exchange *exchange, quern__inspect_request *request)
{
    pthread_mutex_lock(&exchange->mutex);
    const bool is_queued = !exchange->is_closing && exchange->waiting_count < QUERN__INSPECT_WAITING_MAX;
    if (is_queued) {
        append(exchange, request);
        request->reference_count++;
        quern__inspect_count_reason(exchange, true);
        pthread_cond_signal(&exchange->arrived);
    }
    pthread_mutex_unlock(&exchange->mutex);
    return is_queued;
}

bool quern__inspect_request_is_answered(quern__inspect_exchange *exchange, quern__inspect_request *request)
{
    pthread_mutex_lock(&exchange->mutex);
    const bool is_answered = request->is_answered;
    pthread_mutex_unlock(&exchange->mutex);
    return is_answered;
}

void quern__inspect_request_leave(quern__inspect_exchange *exchange, quern__inspect_request *request)
{
    pthread_mutex_lock(&exchange->mutex);
    if (request->is_waiting) {
        take_out(exchange, request);
        quern__inspect_count_reason(exchange, false);
        release(exchange, request);
    }
    release(exchange, request);
    pthread_mutex_unlock(&exchange->mutex);
}

uint32_t quern__inspect_channel_open(quern__inspect_exchange *exchange)
{
    uint32_t i = 0;
    pthread_mutex_lock(&exchange->mutex);
    while (i < QUERN__INSPECT_CHANNELS && exchange->channels[i].is_open)
        i++;
    if (i < QUERN__INSPECT_CHANNELS) {
        quern__inspect_channel *channel = &exchange->channels[i];
        channel->is_open = channel->is_new = channel->has_arguments = true;
        channel->is_ready = false;
        channel->arguments[0] = '\0';
        quern__inspect_count_reason(exchange, true);
    }
    pthread_mutex_unlock(&exchange->mutex);
    return i;
}

void quern__inspect_channel_close(quern__inspect_exchange *exchange, uint32_t channel, bool is_too_slow)
{
    pthread_mutex_lock(&exchange->mutex);
    exchange->channels[channel].is_open = exchange->channels[channel].is_ready = false;
    exchange->dropped_client_count += is_too_slow;
    quern__inspect_count_reason(exchange, false);
    pthread_mutex_unlock(&exchange->mutex);
}

void quern__inspect_channel_set(quern__inspect_exchange *exchange, uint32_t channel, const char *text,
                                size_t text_bytes)
{
    pthread_mutex_lock(&exchange->mutex);
    memcpy(exchange->channels[channel].arguments, text, text_bytes);
    exchange->channels[channel].arguments[text_bytes] = '\0';
    exchange->channels[channel].has_arguments = true;
    pthread_mutex_unlock(&exchange->mutex);
}

/* Exchanges the memory, so that both threads use theirs again. */
static void exchange_messages(quern_byte_buffer *a, quern_byte_buffer *b)
{
    const quern_byte_buffer kept = *a;
    *a = *b;
    *b = kept;
}

bool quern__inspect_channel_take(quern__inspect_exchange *exchange, uint32_t channel,
                                 quern_byte_buffer *message)
{
    pthread_mutex_lock(&exchange->mutex);
    quern__inspect_channel *from = &exchange->channels[channel];
    const bool is_ready = from->is_ready;
    if (is_ready) exchange_messages(&from->message, message);
    from->is_ready = false;
    pthread_mutex_unlock(&exchange->mutex);
    return is_ready;
}

/* -------------------------------------------------------------------------- the main thread's side */

quern__inspect_request *quern__inspect_request_take(quern__inspect_exchange *exchange)
{
    pthread_mutex_lock(&exchange->mutex);
    quern__inspect_request *request = exchange->first;
    if (request != NULL) take_out(exchange, request);
    pthread_mutex_unlock(&exchange->mutex);
    return request;
}

void quern__inspect_request_finish(quern__inspect_exchange *exchange, quern__inspect_request *request)
{
    pthread_mutex_lock(&exchange->mutex);
    request->is_answered = true;
    quern__inspect_count_reason(exchange, false);
    release(exchange, request);
    wake(exchange);
    pthread_mutex_unlock(&exchange->mutex);
}

/* A request that arrived before the lock is in the queue; one that arrives later signals `arrived`, so no wake is
 * lost. */
void quern__inspect_request_wait(quern__inspect_exchange *exchange, uint64_t ns)
{
    struct timespec end;
    clock_gettime(CLOCK_REALTIME, &end);
    ns += (uint64_t)end.tv_nsec;
    end.tv_sec += (time_t)(ns / 1000000000u);
    end.tv_nsec = (long)(ns % 1000000000u);
    pthread_mutex_lock(&exchange->mutex);
    if (exchange->first == NULL) pthread_cond_timedwait(&exchange->arrived, &exchange->mutex, &end);
    pthread_mutex_unlock(&exchange->mutex);
}

void quern__inspect_channel_send(quern__inspect_exchange *exchange, uint32_t channel,
                                 quern_byte_buffer *message)
{
    pthread_mutex_lock(&exchange->mutex);
    quern__inspect_channel *to = &exchange->channels[channel];
    exchange_messages(&to->message, message);
    /* A channel that was opened meanwhile gets no message that was built for the client before. */
    to->is_ready = to->is_open && !to->is_new && to->message.size_bytes > 0;
    wake(exchange);
    pthread_mutex_unlock(&exchange->mutex);
}

void quern__inspect_exchange_close(quern__inspect_exchange *exchange)
{
    pthread_mutex_lock(&exchange->mutex);
    exchange->is_closing = true;
    wake(exchange);
    pthread_mutex_unlock(&exchange->mutex);
}
