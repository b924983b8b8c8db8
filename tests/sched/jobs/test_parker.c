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
