/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Test labels: optimised */
/* Random programs of immediate calls that relate, unrelate, reorder, create and destroy entities, compared with a naive
 * model, also when out of memory. */

#include "tests/support/model_relations.h"
#include "tests/support/program.h"
#include "tests/support/setup.h"

#include <stdlib.h>
#include <string.h>

enum { STEPS = 3000, CHECK_EVERY = 300, MOST_ALIVE = 150, MAX_LIST = 6 };

static program run;
static model_relations relations;
static uint64_t hash_before;

static bool must_retry(quern_result result)
{
    if (run.allocator == NULL || result != QUERN_ERROR_OUT_OF_MEMORY) return false;
    cr_assert_eq(quern_world_hash(run.model.world), hash_before, "a call without memory changed the world");
    assert_valid(run.model.world);
    run.out_of_memory_count++;
    return true;
}

/* Checks that the call returns this code unless it is out of memory. */
#define ASSERT_RESULT(expected, call)                                                           \
    do {                                                                                        \
        quern_result asserted;                                                                  \
        hash_before = run.allocator != NULL ? quern_world_hash(run.model.world) : 0;            \
        do                                                                                      \
            asserted = (call);                                                                  \
        while (must_retry(asserted));                                                           \
        cr_assert_eq(asserted, (expected), "%s: %s (%s)", #call, quern_result_string(asserted), \
                     quern_error_message());                                                    \
    } while (0)

static uint32_t pick_living(void)
{
    uint32_t number;
    do
        number = random_below(&run.random, run.model.entity_count);
    while (!run.model.entities[number].is_alive);
    return number;
}

static quern_entity handle(uint32_t number)
{
    return run.model.entities[number].handle;
}

static void step_relate(uint32_t r)
{
    const uint32_t source = pick_living(), target = pick_living();
    const quern_result expected = model_expect_relate(&relations, r, source, target);
    ASSERT_RESULT(expected, quern_entity_relate(run.model.world, handle(source), relations.relations[r],
                                                handle(target)));
    if (expected == QUERN_OK) model_relate(&relations, r, source, target);
}

/* Relates all pairs in the model, in order. Returns the result of the whole; an error changes nothing. */
static quern_result model_relate_many(uint32_t r, const uint32_t *sources, const uint32_t *targets,
                                      uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (sources[i] == targets[i]) return QUERN_ERROR_INVALID_ARGUMENT;
    const model_relations before = relations;
    const size_t bytes = relations.capacity * sizeof *relations.ties[r];
    model_tie *ties = malloc(bytes);
    cr_assert_not_null(ties);
    memcpy(ties, relations.ties[r], bytes);
    quern_result result = QUERN_OK;
    for (uint32_t i = 0; i < count && result == QUERN_OK; i++) {
        result = model_expect_relate(&relations, r, sources[i], targets[i]);
        if (result == QUERN_OK) model_relate(&relations, r, sources[i], targets[i]);
    }
    if (result != QUERN_OK) {
        relations = before;
        memcpy(relations.ties[r], ties, bytes);
    }
    free(ties);
    return result;
}

/* Relates a random list of pairs. In some lists one source, or one whole tree, appears repeatedly. */
static void step_relate_many(uint32_t r)
{
    enum { MAX_PAIRS = 80 };
    uint32_t sources[MAX_PAIRS], targets[MAX_PAIRS];
    quern_entity source_handles[MAX_PAIRS], target_handles[MAX_PAIRS];
    const uint32_t count = random_below(&run.random, random_chance(&run.random, 20) ? MAX_PAIRS : 8);
    for (uint32_t i = 0; i < count; i++) {
        sources[i] = pick_living();
        do
            targets[i] = pick_living();
        while (targets[i] == sources[i] && !random_chance(&run.random, 1));
        source_handles[i] = handle(sources[i]);
        target_handles[i] = handle(targets[i]);
    }
    const uint64_t hash = quern_world_hash(run.model.world);
    const quern_result expected = model_relate_many(r, sources, targets, count);
    ASSERT_RESULT(expected, quern_entity_relate_many(run.model.world, source_handles,
                                                     relations.relations[r], target_handles, count));
    if (expected == QUERN_OK) return;
    cr_assert_eq(quern_world_hash(run.model.world), hash, "a refused call changed the world");
    assert_valid(run.model.world);
}

static void step_unrelate(uint32_t r)
{
    const uint32_t source = pick_living();
    uint32_t target;
    const bool has_target = model_target(&relations, r, source, &target);
    ASSERT_RESULT(has_target ? QUERN_OK : QUERN_ERROR_COMPONENT_ABSENT,
                  quern_entity_unrelate(run.model.world, handle(source), relations.relations[r]));
    model_unrelate(&relations, r, source);
}

static void step_place(uint32_t r)
{
    const uint32_t source = pick_living(), before = pick_living();
    uint32_t target, other;
    quern_result expected = QUERN_OK;
    if (!model_target(&relations, r, source, &target))
        expected = QUERN_ERROR_COMPONENT_ABSENT;
    else if (!model_relation_defs[r].ordered ||
             (before != source && (!model_target(&relations, r, before, &other) || other != target)))
        expected = QUERN_ERROR_INVALID_ARGUMENT;
    const quern_entity sibling = before == source ? quern_entity_null() : handle(before);
    ASSERT_RESULT(expected, quern_entity_move_before(run.model.world, handle(source),
                                                     relations.relations[r], sibling));
    if (expected == QUERN_OK) model_place(&relations, r, source, before);
}

static void step_create(uint32_t r)
{
    const uint32_t other = (r + 1) % MODEL_RELATION_COUNT, targets[] = {pick_living(), pick_living()};
    const quern_component components[] = {quern_relation_component(relations.relations[r]),
                                          quern_relation_component(relations.relations[other])};
    const quern_entity values[] = {handle(targets[0]), handle(targets[1])};
    const void *const pointers[] = {&values[0], &values[1]};
    const uint32_t count = random_chance(&run.random, 30) ? 2 : 1;
    quern_entity created = {0};
    ASSERT_RESULT(QUERN_OK,
                  quern_entity_create_with(run.model.world, components, pointers, count, &created));
    const uint32_t number = model_create(&run.model, created);
    model_relations_grow(&relations);
    model_relate(&relations, r, number, targets[0]);
    if (count == 2) model_relate(&relations, other, number, targets[1]);
}

/* Destroys one entity, or a list in which an entity may appear twice. */
static void step_destroy(void)
{
    uint32_t list[MAX_LIST];
    quern_entity handles[MAX_LIST];
    const uint32_t count = 1 + random_below(&run.random, MAX_LIST);
    for (uint32_t i = 0; i < count; i++) {
        list[i] = pick_living();
        handles[i] = handle(list[i]);
    }
    const quern_result expected = model_expect_destroy(&relations, list, count);
    if (count == 1)
        ASSERT_RESULT(expected, quern_entity_destroy(run.model.world, handles[0]));
    else
        ASSERT_RESULT(expected, quern_entity_destroy_many(run.model.world, handles, count));
    if (expected == QUERN_OK) model_destroy_marked(&relations);
}

/* Destroys all entities that have a target in the relation, or all that have none. */
static void step_destroy_matching(uint32_t r)
{
    static uint32_t list[1 << 16];
    uint32_t count = 0, target;
    const bool related = random_chance(&run.random, 50);
    for (uint32_t i = 0; i < run.model.entity_count; i++)
        if (run.model.entities[i].is_alive && model_target(&relations, r, i, &target) == related)
            list[count++] = i;
    const quern_component component = quern_relation_component(relations.relations[r]);
    const quern_term term = related ? quern_term_with(component) : quern_term_without(component);
    if (run.allocator != NULL) failing_allocator_pause(run.allocator, true);
    quern_query *query = setup_query(run.model.world, &term, 1);
    if (run.allocator != NULL) failing_allocator_pause(run.allocator, false);
    const quern_result expected = model_expect_destroy(&relations, list, count);
    ASSERT_RESULT(expected, quern_entity_destroy_matching(query, NULL));
    quern_query_destroy(query);
    if (expected == QUERN_OK) model_destroy_marked(&relations);
}

static void step_unrelate_matching(uint32_t r)
{
    const quern_component component = quern_relation_component(relations.relations[r]);
    if (run.allocator != NULL) failing_allocator_pause(run.allocator, true);
    const quern_term term = quern_term_with(component);
    quern_query *query = setup_query(run.model.world, &term, 1);
    if (run.allocator != NULL) failing_allocator_pause(run.allocator, false);
    ASSERT_RESULT(QUERN_OK, quern_entity_remove_matching(query, component, NULL));
    quern_query_destroy(query);
    for (uint32_t i = 0; i < run.model.entity_count; i++)
        model_unrelate(&relations, r, i);
}

static void step(void)
{
    const uint32_t r = random_below(&run.random, MODEL_RELATION_COUNT);
    const uint32_t kind = random_below(&run.random, 1000);
    if (run.model.alive_count < 2 || kind < 150)
        program_grow(&run);
    else if (kind < 300 && run.model.alive_count < MOST_ALIVE)
        step_create(r);
    else if (kind < 400)
        program_change(&run);
    else if (kind < 690)
        step_relate(r);
    else if (kind < 750)
        step_relate_many(r);
    else if (kind < 820)
        step_unrelate(r);
    else if (kind < 900)
        step_place(r);
    else if (kind < 994)
        step_destroy();
    else if (kind < 997)
        step_destroy_matching(r);
    else
        step_unrelate_matching(r);
    model_relations_grow(&relations);
}

static void check(void)
{
    program_check(&run);
    model_check_relations(&relations);
}

static void play(uint64_t seed, failing_allocator *allocator)
{
    program_init(&run, seed, allocator, 0);
    model_relations_init(&relations, &run.model);
    if (allocator != NULL) failing_allocator_fail_often(allocator, 25, seed);
    for (uint32_t i = 1; i <= STEPS; i++) {
        step();
        if (i % CHECK_EVERY == 0) check();
        if (i % (4 * CHECK_EVERY) == 0 && run.allocator == NULL) {
            cr_assert_eq(quern_world_trim(run.model.world), QUERN_OK);
            cr_assert_eq(quern_world_remove_empty_archetypes(run.model.world, NULL), QUERN_OK);
        }
    }
    check();
    model_relations_release(&relations);
    program_release(&run);
}

Test(random_relations, random_programs_agree_with_the_model)
{
    for (uint64_t seed = 1; seed <= 6; seed++)
        play(seed, NULL);
}

Test(random_relations, random_programs_survive_lack_of_memory)
{
    for (uint64_t seed = 21; seed <= 23; seed++) {
        failing_allocator *allocator = failing_allocator_create();
        play(seed, allocator);
        cr_assert_gt(run.out_of_memory_count, 50u);
        failing_allocator_close(allocator);
    }
}
