/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Test labels: threaded */
#include "tests/support/random.h"
#include "tests/support/setup.h"

#include <pthread.h>
#include <string.h>

/* One thread at a time may use a world; several threads may use different worlds. */

enum { THREAD_COUNT = 4, ROUND_COUNT = 60, ENTITY_COUNT = 500 };

typedef struct worker {
    pthread_t thread;
    uint64_t hashes[ROUND_COUNT];
    const char *failure; /* checked by the main thread, the only one that may assert */
} worker;

#define WORKER_REQUIRE(condition) \
    if (!(condition)) return #condition

static const char *churn(quern_world *world, uint64_t seed)
{
    quern_component number;
    random_source random = {.state = seed};
    WORKER_REQUIRE(QUERN_COMPONENT_REGISTER(world, &number, uint64_t) == QUERN_OK);
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

Test(threads, each_thread_can_use_its_own_worlds)
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

static void *make_world_on_thread(void *argument)
{
    return quern_world_create(NULL, argument) == QUERN_OK ? NULL : argument;
}

Test(threads, world_can_be_created_on_one_thread_and_used_on_another)
{
    quern_world *world = NULL;
    pthread_t thread;
    void *failed;
    cr_assert_eq(pthread_create(&thread, NULL, make_world_on_thread, &world), 0);
    cr_assert_eq(pthread_join(thread, &failed), 0);
    cr_assert_null(failed);
    setup_entity(world);
    assert_valid(world);
    quern_world_destroy(world);
}

static void *fail_there(void *argument)
{
    return quern_world_create(NULL, NULL) == QUERN_ERROR_NULL_ARGUMENT ? NULL : argument;
}

Test(threads, error_message_is_thread_local)
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

/* ------------------------------------------------------------------------- two threads in one world */

/* A second thread uses the world while the first one is in a call. A hook of a component starts the second thread. */
static quern_world *shared;
static quern_component hooked, plain;
static quern_entity living;
static quern_query *everybody;
static captured_reports reports;

/* Calls that modify the world immediately. */
static quern_result call_create(void)
{
    quern_entity entity;
    return quern_entity_create(shared, &entity);
}

static quern_result call_create_with(void)
{
    return quern_entity_create_with(shared, &plain, NULL, 1, NULL);
}

static quern_result call_destroy(void)
{
    return quern_entity_destroy(shared, living);
}

static quern_result call_add(void)
{
    return quern_entity_add(shared, living, plain, NULL);
}

static quern_result call_remove(void)
{
    return quern_entity_remove(shared, living, plain);
}

static quern_result call_set(void)
{
    return quern_entity_set(shared, living, plain, &(uint64_t){1});
}

static quern_result call_mark_changed(void)
{
    return quern_entity_mark_changed(shared, living, plain);
}

static quern_result call_create_many(void)
{
    return quern_entity_create_many(shared, &plain, NULL, 1, 3, NULL);
}

static void fill_nothing(quern_context *context, const quern_view *view) {}

static quern_result call_create_filled(void)
{
    return quern_entity_create_filled(shared, &plain, 1, 3, fill_nothing, NULL, NULL);
}

static quern_result call_destroy_many(void)
{
    return quern_entity_destroy_many(shared, &living, 1);
}

static quern_result call_destroy_matching(void)
{
    return quern_entity_destroy_matching(everybody, NULL);
}

static quern_result call_enable_many(void)
{
    return quern_entity_set_component_enabled_many(shared, &living, 1, plain, false);
}

static quern_result call_add_matching(void)
{
    return quern_entity_add_matching(everybody, hooked, NULL, NULL);
}

static quern_result call_remove_matching(void)
{
    return quern_entity_remove_matching(everybody, plain, NULL);
}

static quern_result call_register_component(void)
{
    quern_component component;
    return quern_component_register(shared, &(quern_component_def){.name = "late", .size_bytes = 8},
                                    &component);
}

static quern_result call_register_resource(void)
{
    quern_resource_def def = {.name = "late", .size_bytes = 4};
    quern_resource resource;
    return quern_resource_register(shared, &def, &resource);
}

static quern_result call_create_query(void)
{
    quern_query_def def = {.terms = {quern_term_read(plain)}};
    quern_query *query;
    return quern_query_create(shared, &def, &query);
}

static quern_result call_trim(void)
{
    return quern_world_trim(shared);
}

static quern_result call_remove_empty(void)
{
    return quern_world_remove_empty_archetypes(shared, NULL);
}

typedef struct intrusion {
    const char *function;
    quern_result (*call)(void);
} intrusion;

static const intrusion intrusions[] = {
    {"quern_entity_create", call_create},
    {"quern_entity_create_with", call_create_with},
    {"quern_entity_destroy", call_destroy},
    {"quern_entity_add", call_add},
    {"quern_entity_remove", call_remove},
    {"quern_entity_set", call_set},
    {"quern_entity_mark_changed", call_mark_changed},
    {"quern_entity_create_many", call_create_many},
    {"quern_entity_create_filled", call_create_filled},
    {"quern_entity_destroy_many", call_destroy_many},
    {"quern_entity_set_component_enabled_many", call_enable_many},
    {"quern_entity_destroy_matching", call_destroy_matching},
    {"quern_entity_add_matching", call_add_matching},
    {"quern_entity_remove_matching", call_remove_matching},
    {"quern_component_register", call_register_component},
    {"quern_resource_register", call_register_resource},
    {"quern_query_create", call_create_query},
    {"quern_world_trim", call_trim},
    {"quern_world_remove_empty_archetypes", call_remove_empty},
};

static const intrusion *intruder;
static quern_result intruder_result;

static void *intrude(void *argument)
{
    intruder_result = intruder->call();
    return NULL;
}

/* The construct hook, which runs within the first thread's call. */
static void let_in(void *values, uint32_t count, void *user_data)
{
    memset(values, 0, count * sizeof(uint64_t));
    pthread_t thread;
    if (intruder == NULL || pthread_create(&thread, NULL, intrude, NULL) != 0) return;
    pthread_join(thread, NULL);
}

static void open_shared(void)
{
    shared = setup_world();
    quern_component_def def = {.name = "hooked"};
    def.size_bytes = def.alignment_bytes = 8;
    def.hooks.construct = let_in;
    intruder = NULL;
    must(quern_component_register(shared, &def, &hooked));
    plain = setup_component(shared, "plain", 8, 8);
    living = setup_entity_with(shared, &plain, 1);
    everybody = setup_query(shared, (quern_term[]){quern_term_read(plain)}, 1);
    capture_reports(&reports);
}

static void close_shared(void)
{
    quern_log_set_handler(NULL, NULL);
    quern_assert_set_handler(NULL, NULL);
    quern_query_destroy(everybody);
    quern_world_destroy(shared);
}

TestSuite(intruders, .init = open_shared, .fini = close_shared);

Test(intruders, second_thread_in_a_world_is_reported_and_refused, .timeout = 300)
{
    if (!quern_has_checks()) cr_skip_test("needs a build with QUERN_CHECKS");
    for (uint32_t i = 0; i < sizeof intrusions / sizeof intrusions[0]; i++) {
        intruder = &intrusions[i];
        intruder_result = QUERN_OK;
        capture_reports(&reports);
        setup_entity_with(shared, &hooked, 1);
        cr_assert_eq(reports.assert_count, 1u, "%s: %u reports", intruder->function, reports.assert_count);
        cr_assert_eq(strncmp(reports.last, intruder->function, strlen(intruder->function)), 0, "%s: %s",
                     intruder->function, reports.last);
        cr_assert_not_null(strstr(reports.last, "quern_entity_create_with, world "), "%s", reports.last);
        cr_assert_eq(intruder_result, QUERN_ERROR_WORLD_LOCKED, "%s", intruder->function);
        assert_valid(shared);
        cr_assert(quern_entity_is_alive(shared, living));
    }
}

Test(intruders, threads_that_take_turns_are_not_reported, .timeout = 300)
{
    for (uint32_t i = 0; i < 20; i++) {
        pthread_t thread;
        intruder = &intrusions[i % 2];
        cr_assert_eq(pthread_create(&thread, NULL, intrude, NULL), 0);
        pthread_join(thread, NULL);
        cr_assert_eq(intruder_result, QUERN_OK);
        cr_assert_eq(intrusions[i % 2].call(), QUERN_OK);
    }
    cr_assert_eq(reports.log_count, 0u);
}

/* A hook must not call the library, but such a call is not one of another thread. */
static quern_result nested_result;

static void call_in(void *values, uint32_t count, void *user_data)
{
    memset(values, 0, count * sizeof(uint64_t));
    nested_result = quern_entity_mark_changed(shared, living, plain);
}

Test(intruders, hook_that_calls_the_library_is_not_reported_as_another_thread)
{
    quern_component_def def = {.name = "nested"};
    def.size_bytes = def.alignment_bytes = 8;
    def.hooks.construct = call_in;
    quern_component nested;
    nested_result = QUERN_ERROR_CORRUPT;
    must(quern_component_register(shared, &def, &nested));
    setup_entity_with(shared, &nested, 1);
    cr_assert_eq(nested_result, QUERN_OK);
    cr_assert_eq(reports.log_count, 0u);
    intruder = &intrusions[0];
    intrude(NULL);
    cr_assert_eq(intruder_result, QUERN_OK, "the world is free again");
}
