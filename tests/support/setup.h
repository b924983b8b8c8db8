/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_TESTS_SETUP_H
#define QUERN_TESTS_SETUP_H

/* Setup of worlds and component types in one call each, and checks of calls that must fail. A test that
 * includes this header needs no header of the library or of the framework besides. */

#include <criterion/criterion.h>
#include <quern/quern.h>

typedef struct vec3 {
    float x, y, z;
} vec3;

/* The test fails if one of these calls fails. */
quern_world *setup_world(void);
quern_component setup_component(quern_world *world, const char *name, uint32_t size_bytes,
                                uint32_t alignment_bytes);
quern_component setup_tag(quern_world *world, const char *name);
quern_entity setup_entity(quern_world *world);
quern_entity setup_entity_with(quern_world *world, const quern_component *components, uint32_t count);
quern_query *setup_query(quern_world *world, const quern_term *terms, uint32_t term_count);

/* Create an object or register a type by members of its definition:
 *     toggle = make_component(world, .name = "toggle", .can_disable = true);
 * The test fails if the call fails. */
#define make_world(...)               make_world_of(&(quern_world_def){__VA_ARGS__})
#define make_query(in_world, ...)     make_query_of(in_world, &(quern_query_def){__VA_ARGS__})
#define make_component(in_world, ...) make_component_of(in_world, &(quern_component_def){__VA_ARGS__})
#define make_relation(in_world, ...)  make_relation_of(in_world, &(quern_relation_def){__VA_ARGS__})
#define make_event(in_world, ...)     make_event_of(in_world, &(quern_event_def){__VA_ARGS__})
#define make_resource(in_world, ...)  make_resource_of(in_world, &(quern_resource_def){__VA_ARGS__})

quern_world *make_world_of(const quern_world_def *def);
quern_query *make_query_of(quern_world *world, const quern_query_def *def);
quern_component make_component_of(quern_world *world, const quern_component_def *def);
quern_relation make_relation_of(quern_world *world, const quern_relation_def *def);
quern_event make_event_of(quern_world *world, const quern_event_def *def);
quern_resource make_resource_of(quern_world *world, const quern_resource_def *def);

/* Record the creation of an entity and return its provisional handle, for use in expressions; null if the call fails. */
quern_entity record_entity(quern_commands *commands);
quern_entity record_entity_with(quern_commands *commands, const quern_component *components,
                                const void *const *values, uint32_t count);

/* Return the results of getters, for use in expressions. The test fails if the getter fails. */
quern_world_stats stats_of_world(const quern_world *world);
quern_frame_stats stats_of_frame(const quern_schedule *schedule);
quern_frame_profile profile_of_frame(const quern_schedule *schedule);
quern_trace_stats stats_of_trace(const quern_trace *trace);

void assert_valid(const quern_world *world);

/* Iterates over a query, which change filters note, and returns the number of rows. */
uint64_t iterate_rows(quern_query *query);

/* Asserts that quern_query_matches agrees with an iteration over the query, for each of these entities that is alive. The
 * iteration must not leave out rows by change filters. */
void assert_matches(quern_query *query, const quern_entity *entities, uint32_t count);

/* Asserts that a call succeeds; otherwise the test fails with the call's error message. */
#define must(...)                                                                           \
    do {                                                                                    \
        const quern_result must_result = (__VA_ARGS__);                                     \
        cr_assert_eq(must_result, QUERN_OK, "%s: %s", #__VA_ARGS__, quern_error_message()); \
    } while (0)

/* Assertion in a function that ends tests, the .fini of a suite: an assertion of the framework would not
 * fail the test there, but an abort does. */
#define assert_at_end(condition) ((condition) ? (void)0 : fail_at_end(__FILE__, __LINE__, #condition))

_Noreturn void fail_at_end(const char *file, int line, const char *condition);

/* Return handles that are invalid for one reason each. */
quern_entity entity_of_other_world(quern_entity entity);
quern_entity entity_provisional(uint32_t index);
quern_component component_unregistered(quern_component registered);
quern_component component_of_other_world(quern_component component);

/* Asserts that a call fails with this result, sets a message of its own and leaves the world unchanged:
 *     assert_refused(world, QUERN_ERROR_STALE_ENTITY, quern_entity_destroy(world, entity));
 * `world` may be NULL, or a world that the call does not concern. */
#define assert_refused(world, expected, call)                                   \
    do {                                                                        \
        refusal refusal_before = refusal_begin(world);                          \
        refusal_end_code(&refusal_before, (call), (expected), __LINE__, #call); \
    } while (0)

/* assert_refused for an error that is known: a test lists refusals as a table,
 *     must_refuse(STALE_ENTITY, world, quern_entity_destroy(world, entity)); */
#define must_refuse(code, world, call) assert_refused(world, QUERN_ERROR_##code, call)

/* Like assert_refused, for calls that return a pointer, a bool or a count. */
#define assert_refused_value(world, call)                             \
    do {                                                              \
        refusal refusal_before = refusal_begin(world);                \
        refusal_end_value(&refusal_before, !(call), __LINE__, #call); \
    } while (0)

typedef struct refusal {
    const quern_world *world;
    uint64_t hash;
    char message[512];
} refusal;

refusal refusal_begin(const quern_world *world);
void refusal_end_code(const refusal *before, quern_result actual, quern_result expected, int line,
                      const char *call);
void refusal_end_value(const refusal *before, bool refused, int line, const char *call);

/* Returns whether a call since refusal_begin has set a message. */
bool refusal_has_message(const refusal *before);

/* Returns whether a pointer is to scratch memory, which failing accesses return: size_bytes zero bytes,
 * which this call overwrites. */
bool is_scratch(const void *memory, size_t size_bytes);

/* Counts the messages to the log, and to the assert handler in builds with checks. While it is active
 * they neither print nor stop the program. */
typedef struct captured_reports {
    uint32_t log_count;
    uint32_t assert_count;
    char last[512];
} captured_reports;

void capture_reports(captured_reports *reports);

#endif
