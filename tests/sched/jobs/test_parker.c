/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Test labels: threaded */
#include "core/platform/platform.h"

#include <criterion/criterion.h>

#include <pthread.h>

TestSuite(parker, .timeout = 120);

Test(parker, keeps_one_permit)
{
    quern__parker parker;
    cr_assert(quern__parker_init(&parker));
    cr_assert_not(quern__parker_has_permit(&parker));
    quern__parker_give(&parker);
    quern__parker_give(&parker);
    cr_assert(quern__parker_has_permit(&parker));
    quern__parker_take(&parker);
    cr_assert_not(quern__parker_has_permit(&parker));
    quern__parker_deinit(&parker);
}

static bool is_ready;
static quern__mutex ready_mutex = QUERN__MUTEX_INIT;
static quern__condition ready;

static void *get_ready(void *argument)
{
    quern__thread_sleep(20000000);
    quern__mutex_lock(&ready_mutex);
    is_ready = true;
    quern__condition_broadcast(&ready);
    quern__mutex_unlock(&ready_mutex);
    return argument;
}

/* Without a time, a wait of 20 ms may wake up early by itself a few times, but does not ask all the time. */
Test(parker, a_wait_for_a_condition_ends_at_its_time_or_when_woken)
{
    pthread_t thread;
    uint32_t wait_count = 0;
    cr_assert(quern__condition_init(&ready));
    quern__mutex_lock(&ready_mutex);
    const uint64_t until_ns = quern__clock_ns() + 10000000;
    while (quern__clock_ns() < until_ns)
        quern__condition_wait(&ready, &ready_mutex, until_ns);
    cr_assert_eq(pthread_create(&thread, NULL, get_ready, NULL), 0);
    for (; !is_ready; wait_count++)
        quern__condition_wait(&ready, &ready_mutex, 0);
    quern__mutex_unlock(&ready_mutex);
    pthread_join(thread, NULL);
    quern__condition_deinit(&ready);
    cr_assert_lt(wait_count, 100u);
}

typedef struct ping_pong {
    quern__parker parkers[2];
    uint32_t ball; /* plain: a permit publishes it */
} ping_pong;

static void *return_balls(void *argument)
{
    ping_pong *game = argument;
    for (uint32_t i = 0; i < 2000; i++) {
        quern__parker_take(&game->parkers[1]);
        game->ball++;
        quern__parker_give(&game->parkers[0]);
    }
    return NULL;
}

Test(parker, permit_publishes_memory)
{
    ping_pong game = {.ball = 0};
    cr_assert(quern__parker_init(&game.parkers[0]) && quern__parker_init(&game.parkers[1]));
    pthread_t thread;
    cr_assert_eq(pthread_create(&thread, NULL, return_balls, &game), 0);
    for (uint32_t i = 0; i < 2000; i++) {
        game.ball++;
        quern__parker_give(&game.parkers[1]);
        quern__parker_take(&game.parkers[0]);
        cr_assert_eq(game.ball, 2 * i + 2);
    }
    pthread_join(thread, NULL);
    quern__parker_deinit(&game.parkers[0]);
    quern__parker_deinit(&game.parkers[1]);
}
