/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Test labels: optimised */
/* Random programs of immediate calls on relations with several targets per source, beside one with a single target,
 * compared with a naive matrix, also when out of memory. */

#include "tests/support/failing_allocator.h"
#include "tests/support/random.h"
#include "tests/support/setup.h"

#include <string.h>

enum { STEPS = 2500, CHECK_EVERY = 50, MOST = 40, RELATIONS = 4, SINGLE = 3, MAX_PAIRS = 60 };

static const quern_relation_def defs[RELATIONS] = {
    {.name = "owns", .many = true},
    {.name = "likes", .on_target_destroyed = QUERN_TARGET_UNRELATES, .many = true},
    {.name = "needs", .on_target_destroyed = QUERN_TARGET_REFUSES, .many = true},
    {.name = "follows", .on_target_destroyed = QUERN_TARGET_UNRELATES}};

static quern_world *world;
static quern_relation relations[RELATIONS];
static quern_component tag;
static failing_allocator *memory;
static random_source dice;
static uint32_t failure_count;

/* The model: entities by number, which is reused, and whether each is related to each. */
typedef struct naive_edges {
    bool is_alive[MOST];
    bool has[RELATIONS][MOST][MOST]; /* by source and target */
} naive_edges;

static naive_edges naive;
static quern_entity handles[MOST];

/* ------------------------------------------------------------------------------------------- calls */

static bool must_retry(quern_result result, uint64_t hash)
{
    if (memory == NULL || result != QUERN_ERROR_OUT_OF_MEMORY) return false;
    cr_assert_eq(quern_world_hash(world), hash, "a call without memory changed the world");
    assert_valid(world);
    failure_count++;
    return true;
}

/* Checks that the call returns this code unless it is out of memory; an error changes nothing. */
#define ASSERT_RESULT(expected, call)                                                           \
    do {                                                                                        \
        const uint64_t hash_before = quern_world_hash(world);                                   \
        quern_result asserted;                                                                  \
        do                                                                                      \
            asserted = (call);                                                                  \
        while (must_retry(asserted, hash_before));                                              \
        cr_assert_eq(asserted, (expected), "%s: %s (%s)", #call, quern_result_string(asserted), \
                     quern_error_message());                                                    \
        if (asserted != QUERN_OK) cr_assert_eq(quern_world_hash(world), hash_before);           \
    } while (0)

static uint32_t pick(void)
{
    uint32_t number;
    do
        number = random_below(&dice, MOST);
    while (!naive.is_alive[number]);
    return number;
}

static uint32_t alive_count(void)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < MOST; i++)
        count += naive.is_alive[i];
    return count;
}

static void step_create(void)
{
    uint32_t number = 0;
    while (number < MOST && naive.is_alive[number])
        number++;
    if (number == MOST) return;
    ASSERT_RESULT(QUERN_OK,
                  quern_entity_create_with(world, &tag, NULL, random_chance(&dice, 50), &handles[number]));
    naive.is_alive[number] = true;
}

static void naive_relate(naive_edges *model, uint32_t r, uint32_t source, uint32_t target)
{
    for (uint32_t i = 0; i < MOST && r == SINGLE; i++)
        model->has[r][source][i] = false;
    model->has[r][source][target] = true;
}

static void step_relate(uint32_t r)
{
    const uint32_t source = pick(), target = pick();
    const quern_result expected = source != target ? QUERN_OK : QUERN_ERROR_INVALID_ARGUMENT;
    ASSERT_RESULT(expected, quern_entity_relate(world, handles[source], relations[r], handles[target]));
    if (expected == QUERN_OK) naive_relate(&naive, r, source, target);
}

static void step_relate_many(uint32_t r)
{
    quern_entity sources[MAX_PAIRS], targets[MAX_PAIRS];
    const uint32_t count = random_below(&dice, MAX_PAIRS);
    quern_result expected = QUERN_OK;
    naive_edges after = naive;
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t source = pick();
        uint32_t target = pick();
        while (target == source && !random_chance(&dice, 1))
            target = pick();
        sources[i] = handles[source];
        targets[i] = handles[target];
        if (source == target) expected = QUERN_ERROR_INVALID_ARGUMENT;
        if (source != target) naive_relate(&after, r, source, target);
    }
    ASSERT_RESULT(expected, quern_entity_relate_many(world, sources, relations[r], targets, count));
    if (expected == QUERN_OK) naive = after;
}

static uint32_t naive_count(uint32_t r, uint32_t source)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < MOST; i++)
        count += naive.has[r][source][i];
    return count;
}

static void step_unrelate(uint32_t r)
{
    const uint32_t source = pick(), target = pick();
    const quern_entity s = handles[source], t = handles[target];
    if (random_chance(&dice, 70)) {
        const bool has = naive.has[r][source][target];
        ASSERT_RESULT(has ? QUERN_OK : QUERN_ERROR_COMPONENT_ABSENT,
                      quern_entity_unrelate_from(world, s, relations[r], t));
        naive.has[r][source][target] = false;
        return;
    }
    const quern_result expected = naive_count(r, source) > 0 ? QUERN_OK : QUERN_ERROR_COMPONENT_ABSENT;
    if (random_chance(&dice, 50))
        ASSERT_RESULT(expected, quern_entity_unrelate(world, s, relations[r]));
    else
        ASSERT_RESULT(expected, quern_entity_remove(world, s, quern_relation_component(relations[r])));
    memset(naive.has[r][source], 0, sizeof naive.has[r][source]);
}

/* --------------------------------------------------------------------------------------- destroying */

/* Whether a relation with this policy makes a marked entity a target of an entity that is not marked; the first such
 * source is *out_source. */
static bool find_unmarked(const bool *marks, quern_target_policy policy, uint32_t *out_source)
{
    for (uint32_t r = 0; r < RELATIONS; r++)
        for (uint32_t source = 0; source < MOST && defs[r].on_target_destroyed == policy; source++)
            for (uint32_t target = 0; target < MOST; target++)
                if (naive.has[r][source][target] && marks[target] && !marks[source]) {
                    *out_source = source;
                    return true;
                }
    return false;
}

/* Marks all that is destroyed with the marked entities. Returns the expected result. */
static quern_result mark_cascade(bool *marks)
{
    uint32_t source;
    while (find_unmarked(marks, QUERN_TARGET_DESTROYS_SOURCE, &source))
        marks[source] = true;
    return find_unmarked(marks, QUERN_TARGET_REFUSES, &source) ? QUERN_ERROR_TARGET_IN_USE : QUERN_OK;
}

static void destroy_marked(const bool *marks)
{
    for (uint32_t i = 0; i < MOST; i++) {
        if (!marks[i]) continue;
        naive.is_alive[i] = false;
        for (uint32_t r = 0; r < RELATIONS; r++)
            for (uint32_t k = 0; k < MOST; k++)
                naive.has[r][i][k] = naive.has[r][k][i] = false;
    }
}

static void step_destroy(void)
{
    quern_entity list[4];
    bool marks[MOST] = {false};
    const uint32_t count = 1 + random_below(&dice, 4);
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t number = pick();
        marks[number] = true;
        list[i] = handles[number];
    }
    const quern_result expected = mark_cascade(marks);
    if (count == 1)
        ASSERT_RESULT(expected, quern_entity_destroy(world, list[0]));
    else
        ASSERT_RESULT(expected, quern_entity_destroy_many(world, list, count));
    if (expected == QUERN_OK) destroy_marked(marks);
}

/* Destroys all sources of a relation, or removes all their targets, or both of those with the tag. */
static void step_matching(uint32_t r)
{
    const quern_component component = quern_relation_component(relations[r]);
    const bool destroys = random_chance(&dice, 50), needs_tag = random_chance(&dice, 50);
    const quern_term terms[] = {quern_term_with(component), quern_term_with(tag)};
    bool marks[MOST] = {false};
    if (memory != NULL) failing_allocator_pause(memory, true);
    for (uint32_t i = 0; i < MOST; i++)
        marks[i] = naive_count(r, i) > 0 && (!needs_tag || quern_entity_has(world, handles[i], tag));
    quern_query *query = setup_query(world, terms, needs_tag ? 2 : 1);
    if (memory != NULL) failing_allocator_pause(memory, false);
    if (destroys) {
        const quern_result expected = mark_cascade(marks);
        ASSERT_RESULT(expected, quern_entity_destroy_matching(query, NULL));
        if (expected == QUERN_OK) destroy_marked(marks);
    } else {
        ASSERT_RESULT(QUERN_OK, quern_entity_remove_matching(query, component, NULL));
        for (uint32_t i = 0; i < MOST; i++)
            if (marks[i]) memset(naive.has[r][i], 0, sizeof naive.has[r][i]);
    }
    quern_query_destroy(query);
}

/* -------------------------------------------------------------------------------------- comparing */

static bool is_listed(const quern_entity *list, uint32_t count, quern_entity entity)
{
    for (uint32_t i = 0; i < count; i++)
        if (quern_entity_equal(list[i], entity)) return true;
    return false;
}

/* Checks a list, that it ascends, and that the function that finds the next one visits the same entities. */
static void check_list(uint32_t r, uint32_t number, const quern_entity *list, uint32_t count,
                       quern_entity (*next)(const quern_world *, quern_entity, quern_relation,
                                            quern_entity))
{
    quern_entity entity = quern_entity_null();
    for (uint32_t i = 0; i < count; i++) {
        if (r != SINGLE && i > 0)
            cr_assert_lt(quern_entity_index(list[i - 1]), quern_entity_index(list[i]));
        entity = next(world, handles[number], relations[r], entity);
        cr_assert(quern_entity_equal(entity, list[i]));
    }
    cr_assert(quern_entity_is_null(next(world, handles[number], relations[r], entity)));
}

static void check_entity(uint32_t r, uint32_t number)
{
    quern_entity targets[MOST], sources[MOST], by_many[MOST];
    const quern_entity entity = handles[number];
    const uint32_t target_count = quern_entity_list_targets(world, entity, relations[r], targets, MOST);
    const uint32_t source_count = quern_entity_list_sources(world, entity, relations[r], sources, MOST);
    uint32_t expected_targets = 0, expected_sources = 0;
    for (uint32_t i = 0; i < MOST; i++) {
        if (!naive.is_alive[i]) continue;
        const bool has = naive.has[r][number][i], is_target = naive.has[r][i][number];
        expected_targets += has;
        expected_sources += is_target;
        cr_assert_eq(quern_entity_has_target(world, entity, relations[r], handles[i]), has);
        cr_assert_eq(is_listed(targets, target_count, handles[i]), has);
        cr_assert_eq(is_listed(sources, source_count, handles[i]), is_target);
    }
    cr_assert_eq(target_count, expected_targets);
    cr_assert_eq(source_count, expected_sources);
    cr_assert_eq(quern_entity_target_count(world, entity, relations[r]), target_count);
    cr_assert_eq(quern_entity_source_count(world, entity, relations[r]), source_count);
    cr_assert_eq(quern_entity_has(world, entity, quern_relation_component(relations[r])), target_count > 0);
    check_list(r, number, targets, target_count, quern_entity_next_target);
    check_list(r, number, sources, source_count, quern_entity_next_source);
    const quern_entity null = quern_entity_null();
    cr_assert(quern_entity_equal(quern_entity_target(world, entity, relations[r]),
                                 target_count > 0 ? targets[0] : null));
    cr_assert(quern_entity_equal(quern_entity_first_source(world, entity, relations[r]),
                                 source_count > 0 ? sources[0] : null));
    uint32_t many_count;
    cr_assert_eq(quern_entity_list_sources_many(world, &(quern_source_list){.relation = relations[r],
                                                                            .targets = &entity,
                                                                            .target_count = 1,
                                                                            .sources = by_many,
                                                                            .capacity = MOST,
                                                                            .counts = &many_count}),
                 source_count);
    cr_assert_eq(many_count, source_count);
    for (uint32_t i = 0; i < source_count; i++)
        cr_assert(quern_entity_equal(by_many[i], sources[i]));
}

static void check_target_terms(uint32_t r)
{
    const uint32_t target = pick();
    const quern_term term = quern_term_target(relations[r], handles[target]);
    quern_query *query = setup_query(world, &term, 1);
    for (uint32_t round = 0; round < 2; round++) {
        uint32_t expected = 0, count = 0;
        for (uint32_t i = 0; i < MOST; i++)
            expected += naive.has[r][i][target];
        quern_query_iterator it = quern_query_iterate(query);
        while (quern_query_next(&it))
            for (uint32_t i = 0; i < it.view.count; i++, count++)
                cr_assert(
                    quern_entity_has_target(world, it.view.entities[i], relations[r], handles[target]));
        cr_assert_eq(count, expected);
        cr_assert_eq(quern_query_count(query), expected);
        if (round == 0) step_unrelate(r); /* the query must notice it */
    }
    quern_query_destroy(query);
}

static void check(void)
{
    if (memory != NULL) failing_allocator_pause(memory, true);
    assert_valid(world);
    uint64_t edge_count = 0;
    for (uint32_t r = 0; r < RELATIONS; r++)
        for (uint32_t i = 0; i < MOST; i++) {
            if (naive.is_alive[i]) check_entity(r, i);
            if (r != SINGLE) edge_count += naive_count(r, i);
        }
    cr_assert_eq(stats_of_world(world).entity_count, alive_count());
    cr_assert_eq(stats_of_world(world).edge_count, edge_count);
    for (uint32_t r = 0; r < RELATIONS && alive_count() > 2; r++)
        check_target_terms(r);
    if (memory != NULL) failing_allocator_pause(memory, false);
}

/* -------------------------------------------------------------------------------------------- programs */

static void step(void)
{
    const uint32_t r = random_below(&dice, RELATIONS), kind = random_below(&dice, 1000);
    if (alive_count() < 3 || kind < 250)
        step_create();
    else if (kind < 550)
        step_relate(r);
    else if (kind < 600)
        step_relate_many(r);
    else if (kind < 850)
        step_unrelate(r);
    else if (kind < 950)
        step_destroy();
    else if (kind < 970)
        step_matching(r);
    else
        must(quern_world_trim(world));
}

static void play(uint64_t seed, failing_allocator *allocator)
{
    quern_world_def def = {.allocator = {0}};
    memory = NULL;
    if (allocator != NULL) def.allocator = failing_allocator_interface(allocator);
    dice = (random_source){seed};
    memset(&naive, 0, sizeof naive);
    must(quern_world_create(&def, &world));
    tag = setup_tag(world, "tag");
    for (uint32_t r = 0; r < RELATIONS; r++)
        must(quern_relation_register(world, &defs[r], &relations[r]));
    memory = allocator;
    if (memory != NULL) failing_allocator_fail_often(memory, 25, seed);
    for (uint32_t i = 1; i <= STEPS; i++) {
        step();
        if (i % CHECK_EVERY == 0) check();
    }
    if (memory != NULL) failing_allocator_heal(memory);
    quern_world_destroy(world);
}

Test(random_many, random_programs_agree_with_a_matrix)
{
    for (uint64_t seed = 1; seed <= 8; seed++)
        play(seed, NULL);
}

Test(random_many, random_programs_survive_lack_of_memory)
{
    failure_count = 0;
    for (uint64_t seed = 21; seed <= 24; seed++) {
        failing_allocator *allocator = failing_allocator_create();
        play(seed, allocator);
        failing_allocator_close(allocator);
    }
    cr_assert_gt(failure_count, 50u);
}
