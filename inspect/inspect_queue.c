/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "inspect/inspect_internal.h"

#include <errno.h>
#include <string.h>
#include <time.h>

/* Hands requests from the server's threads to the main thread, and answers back.
 *
 * `attention` counts what the main thread has to do. It changes under the mutex and is read without it: a count that is
 * read too late only delays an answer by a frame. */

uint64_t quern__inspect_clock_ns(void)
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
        /* Relaxed is enough: the mutex orders the queue, and the count only makes the main thread look. */
        atomic_fetch_add_explicit(&inspector->attention, 1, memory_order_relaxed);
        pthread_cond_signal(&queue->arrived);
    }
    while (is_queued && !answer->is_given_back && !queue->is_closing && has_time)
        has_time = pthread_cond_timedwait(&queue->done, &queue->mutex, &end) != ETIMEDOUT;
    is_finished = is_queued && answer->is_given_back;
    if (!is_finished) {
        if (is_queued && !unlink_answer(queue, answer)) {
            answer->is_abandoned = true; /* the main thread works on it, and destroys it */
        } else {
            if (is_queued)
                atomic_fetch_sub_explicit(&inspector->attention, 1,
                                          memory_order_relaxed); /* relaxed: as above */
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
    atomic_fetch_sub_explicit(&inspector->attention, 1,
                              memory_order_relaxed); /* relaxed: as in quern__inspect_ask */
    pthread_cond_broadcast(&queue->done);
    pthread_mutex_unlock(&queue->mutex);
    if (is_abandoned) quern__inspect_answer_destroy(answer);
}

/* A request that arrived before the lock is in the queue; one that arrives later signals `arrived`. */
void quern__inspect_wait(quern_inspector *inspector, uint64_t ns)
{
    quern__inspect_queue *queue = &inspector->queue;
    const struct timespec end = deadline_of(ns);
    pthread_mutex_lock(&queue->mutex);
    if (queue->first == NULL) pthread_cond_timedwait(&queue->arrived, &queue->mutex, &end);
    pthread_mutex_unlock(&queue->mutex);
}

void quern__inspect_queue_close(quern_inspector *inspector)
{
    quern__inspect_queue *queue = &inspector->queue;
    pthread_mutex_lock(&queue->mutex);
    queue->is_closing = true;
    pthread_cond_broadcast(&queue->arrived);
    pthread_cond_broadcast(&queue->done);
    pthread_cond_broadcast(&queue->ready);
    pthread_mutex_unlock(&queue->mutex);
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
    if (client->answer == NULL) client->answer = quern__inspect_answer_create(inspector);
    if (client->answer == NULL) return false;
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
    answer->route = &quern__inspect_watch_routes[0];
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

static bool any_wants_events(quern_inspector *inspector)
{
    bool is_wanted = false;
    pthread_mutex_lock(&inspector->queue.mutex);
    for (uint32_t i = 0; i < QUERN_INSPECT_MAX_CLIENTS; i++)
        is_wanted =
            is_wanted || (inspector->queue.clients[i].is_open && inspector->queue.clients[i].wants_events);
    pthread_mutex_unlock(&inspector->queue.mutex);
    return is_wanted;
}

void quern__inspect_push(quern_inspector *inspector, uint64_t until_ns)
{
    quern__inspect_queue *queue = &inspector->queue;
    for (uint32_t i = 0; i < QUERN_INSPECT_MAX_CLIENTS; i++) {
        quern__inspect_client *client = &queue->clients[i];
        const uint64_t now_ns = quern__inspect_clock_ns();
        if (i > 0 && now_ns >= until_ns) return; /* the first one always advances by a step */
        pthread_mutex_lock(&queue->mutex);
        const bool is_next = is_due(inspector, client, now_ns);
        pthread_mutex_unlock(&queue->mutex);
        if (!is_next) continue;
        if (!client->is_building) begin_message(client, now_ns);
        do
            quern__inspect_answer_step(client->answer);
        while (!client->answer->is_done && quern__inspect_clock_ns() < until_ns);
        if (client->answer->is_done) hand_over(inspector, client);
    }
    if ((inspector->readers != NULL) != any_wants_events(inspector))
        quern__inspect_set_listening(inspector, inspector->readers == NULL);
}
