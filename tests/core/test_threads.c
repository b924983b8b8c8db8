/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "tests/support/random.h"
#include "tests/support/setup.h"

#include <criterion/criterion.h>

#include <pthread.h>
#include <string.h>

/* A world belongs to one thread at a time; several worlds may live on several threads. */

enum { THREAD_COUNT = 4, ROUND_COUNT = 60, ENTITY_COUNT = 500 };

typedef struct worker {
    pthread_t thread;
    uint64_t hashes[ROUND_COUNT];
    const char *failure; /* assertions are for the main thread alone */
} worker;

#define WORKER_REQUIRE(condition) \
    if (!(condition)) return #condition

static const char *churn(quern_world *world, uint64_t seed)
{
    quern_component number;
    random_source random = {.state = seed};
    WORKER_REQUIRE(quern__component_register_plain(world, "number", 8, 8, &number) == QUERN_OK);
    quern_entity entities[ENTITY_COUNT];
    for (uint32_t i = 0; i < ENTITY_COUNT; i++) {
        uint64_t value = random_next(&random);
        const void *pointer = &value;
        WORKER_REQUIRE(quern_entity_create_with(world, &number, &pointer, 1, &entities[i]) == QUERN_OK);
    }
    for (uint32_t i = 0; i < ENTITY_COUNT; i += 1 + random_below(&random, 5)) {
        WORKER_REQUIRE(quern_entity_destroy(world, entities[i]) == QUERN_OK);
        WORKER_REQUIRE(quern_entity_destroy(world, entities[i]) == QUERN_ERROR_STALE_ENTITY);
        WORKER_REQUIRE(strstr(quern_error_message(), "entity") != NULL);
    }
    WORKER_REQUIRE(quern_world_validate(world) == QUERN_OK);
    return NULL;
}

static const char *work(worker *self)
{
    for (uint32_t round = 0; round < ROUND_COUNT; round++) {
        quern_world *world = NULL;
        WORKER_REQUIRE(quern_world_create(NULL, &world) == QUERN_OK);
        const char *failure = churn(world, round);
        self->hashes[round] = quern_world_hash(world);
        quern_world_destroy(world);
        if (failure != NULL) return failure;
    }
    return NULL;
}

static void *start(void *argument)
{
    worker *self = argument;
    self->failure = work(self);
    return NULL;
}

Test(threads, each_has_worlds_of_its_own)
{
    static worker workers[THREAD_COUNT];
    for (uint32_t i = 0; i < THREAD_COUNT; i++)
        cr_assert_eq(pthread_create(&workers[i].thread, NULL, start, &workers[i]), 0);
    for (uint32_t i = 0; i < THREAD_COUNT; i++)
        pthread_join(workers[i].thread, NULL);
    for (uint32_t i = 0; i < THREAD_COUNT; i++) {
        cr_assert_null(workers[i].failure, "thread %u: %s", i, workers[i].failure);
        for (uint32_t round = 0; round < ROUND_COUNT; round++)
            cr_assert_eq(workers[i].hashes[round], workers[0].hashes[round], "round %u", round);
    }
}

static void *make_world(void *argument)
{
    return quern_world_create(NULL, argument) == QUERN_OK ? NULL : argument;
}

Test(threads, a_world_may_be_made_on_one_and_used_on_another)
{
    quern_world *world = NULL;
    pthread_t thread;
    void *failed;
    cr_assert_eq(pthread_create(&thread, NULL, make_world, &world), 0);
    cr_assert_eq(pthread_join(thread, &failed), 0);
    cr_assert_null(failed);
    setup_entity(world);
    assert_valid(world);
    quern_world_destroy(world);
}

static void *fail_there(void *argument)
{
    (void)argument;
    return quern_world_create(NULL, NULL) == QUERN_ERROR_NULL_ARGUMENT ? NULL : argument;
}

Test(threads, the_error_message_is_the_threads_own)
{
    cr_assert_eq(quern_entity_destroy(NULL, quern_entity_null()), QUERN_ERROR_NULL_ARGUMENT);
    char before[512];
    strncpy(before, quern_error_message(), sizeof before - 1);
    before[sizeof before - 1] = '\0';
    pthread_t thread;
    cr_assert_eq(pthread_create(&thread, NULL, fail_there, NULL), 0);
    pthread_join(thread, NULL);
    cr_assert_str_eq(quern_error_message(), before);
}
