/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "tests/support/program.h"

#include "tests/support/setup.h"

enum { DEFAULT_TARGET_COUNT = 300, PERCENT_BAD_ENTITY = 8, PERCENT_BAD_COMPONENT = 3 };

void program_init(program *run, uint64_t seed, failing_allocator *allocator, uint32_t percent)
{
    quern_world_def def = {0};
    if (allocator != NULL) def.allocator = failing_allocator_interface(allocator);
    quern_world *world = NULL;
    quern_result result = quern_world_create(&def, &world);
    cr_assert_eq(result, QUERN_OK, "%s", quern_error_message());
    model_init(&run->model, world);
    run->random.state = seed;
    run->target_count = DEFAULT_TARGET_COUNT;
    run->allocator = allocator;
    run->out_of_memory_count = 0;
    if (allocator != NULL) failing_allocator_fail_often(allocator, percent, seed);
}

void program_release(program *run)
{
    program_check(run);
    model_release(&run->model);
}

/* ----------------------------------------------------------------------------------------- arguments */

/* An entity for a call, and the result that the call must have because of the entity. */
typedef struct target {
    quern_entity handle;
    uint32_t number; /* its number in the model; valid if expected is QUERN_OK */
    quern_result expected;
} target;

static target pick_bad_entity(program *run)
{
    uint32_t known = random_below(&run->random, run->model.entity_count);
    quern_entity handle = run->model.entities[known].handle;
    switch (random_below(&run->random, 5)) {
    case 0:
        return (target){.expected = QUERN_ERROR_NULL_ENTITY};
    case 1:
        return (target){entity_provisional(known), 0, QUERN_ERROR_PROVISIONAL_ENTITY};
    case 2:
        return (target){entity_of_other_world(handle), 0, QUERN_ERROR_FOREIGN_ENTITY};
    case 3:
        return (target){{handle.bits | 0xFFFFFF00u}, 0, QUERN_ERROR_STALE_ENTITY};
    default:
        return (target){{handle.bits ^ (uint64_t)0x400000 << 32}, 0, QUERN_ERROR_STALE_ENTITY};
    }
}

/* Picks an entity that exists or has existed; mostly a living one. */
static target pick_entity(program *run)
{
    const model_world *model = &run->model;
    if (random_chance(&run->random, PERCENT_BAD_ENTITY)) return pick_bad_entity(run);
    uint32_t number = random_below(&run->random, model->entity_count);
    for (uint32_t tries = 0; tries < 20 && !model->entities[number].is_alive; tries++)
        number = random_below(&run->random, model->entity_count);
    quern_result expected = model->entities[number].is_alive ? QUERN_OK : QUERN_ERROR_STALE_ENTITY;
    return (target){model->entities[number].handle, number, expected};
}

typedef struct chosen_type {
    quern_component component;
    uint32_t type;
    quern_result expected;
} chosen_type;

static chosen_type pick_type(program *run)
{
    uint32_t type = random_below(&run->random, MODEL_TYPE_COUNT);
    quern_component component = run->model.components[type];
    if (!random_chance(&run->random, PERCENT_BAD_COMPONENT))
        return (chosen_type){component, type, QUERN_OK};
    quern_component wrong[] = {{0}, component_unregistered(component), component_of_other_world(component)};
    return (chosen_type){wrong[random_below(&run->random, 3)], type, QUERN_ERROR_UNKNOWN_COMPONENT};
}

static uint32_t pick_seed(program *run)
{
    return 1 + random_below(&run->random, 1000000);
}

/* --------------------------------------------------------------------------------------------- calls */

/* Returns whether a call ran out of memory and must be repeated. Asserts that such a call left the world
 * unchanged. */
static bool must_retry(program *run, quern_result actual, uint64_t hash_before)
{
    if (run->allocator == NULL || actual != QUERN_ERROR_OUT_OF_MEMORY) return false;
    run->out_of_memory_count++;
    cr_assert_eq(quern_world_hash(run->model.world), hash_before,
                 "a call without memory changed the world");
    assert_valid(run->model.world);
    return true;
}

static uint64_t hash_if_failing(const program *run)
{
    return run->allocator != NULL ? quern_world_hash(run->model.world) : 0;
}

/* Evaluates the call until it does not run out of memory. */
#define RETRIED(run, result, call)                         \
    do {                                                   \
        uint64_t retried_hash = hash_if_failing(run);      \
        do                                                 \
            (result) = (call);                             \
        while (must_retry((run), (result), retried_hash)); \
    } while (0)

static void assert_code(const char *call, quern_result actual, quern_result expected)
{
    cr_assert_eq(actual, expected, "%s gave %s (%s), not %s", call, quern_result_string(actual),
                 quern_error_message(), quern_result_string(expected));
}

static void step_create(program *run)
{
    quern_entity handle;
    quern_result result;
    RETRIED(run, result, quern_entity_create(run->model.world, &handle));
    assert_code("create", result, QUERN_OK);
    model_create(&run->model, handle);
}

/* The components for a create_with call; at most one of them is invalid. */
typedef struct creation {
    quern_component components[MODEL_TYPE_COUNT + 1];
    const void *pointers[MODEL_TYPE_COUNT + 1];
    uint32_t types[MODEL_TYPE_COUNT + 1];
    uint32_t seeds[MODEL_TYPE_COUNT + 1];
    model_value values[MODEL_TYPE_COUNT + 1];
    uint32_t count;
    quern_result expected;
} creation;

static void creation_add(program *run, creation *list, uint32_t type)
{
    uint32_t i = list->count++;
    bool has_value = model_types[type].size_bytes > 0 && random_chance(&run->random, 80);
    list->components[i] = run->model.components[type];
    list->types[i] = type;
    list->seeds[i] = has_value ? pick_seed(run) : MODEL_CONSTRUCTED;
    list->pointers[i] = NULL;
    if (!has_value) return;
    model_value_make(&run->model, type, list->seeds[i], &list->values[i]);
    list->pointers[i] = list->values[i].bytes;
}

static void creation_make(program *run, creation *list)
{
    uint32_t first = random_below(&run->random, MODEL_TYPE_COUNT);
    uint32_t count = random_below(&run->random, 6);
    list->count = 0;
    list->expected = QUERN_OK;
    for (uint32_t i = 0; i < count; i++)
        creation_add(run, list, (first + i * 5) % MODEL_TYPE_COUNT);
    if (count > 0 && random_chance(&run->random, 3)) {
        creation_add(run, list, first);
        list->expected = QUERN_ERROR_DUPLICATE_COMPONENT;
    } else if (count > 0 && random_chance(&run->random, PERCENT_BAD_COMPONENT)) {
        list->components[count - 1] = component_unregistered(list->components[0]);
        list->expected = QUERN_ERROR_UNKNOWN_COMPONENT;
    }
}

static void step_create_with(program *run)
{
    static creation list;
    creation_make(run, &list);
    quern_entity handle;
    quern_result result;
    RETRIED(
        run, result,
        quern_entity_create_with(run->model.world, list.components, list.pointers, list.count, &handle));
    assert_code("create_with", result, list.expected);
    if (result == QUERN_OK) {
        uint32_t number = model_create(&run->model, handle);
        for (uint32_t i = 0; i < list.count; i++)
            model_set(&run->model, number, list.types[i], list.seeds[i]);
    }
    for (uint32_t i = 0; i < list.count; i++)
        if (list.pointers[i] != NULL) model_value_drop(&run->model, &list.values[i], result == QUERN_OK);
}

static void step_destroy(program *run)
{
    target entity = pick_entity(run);
    quern_result result;
    RETRIED(run, result, quern_entity_destroy(run->model.world, entity.handle));
    assert_code("destroy", result, entity.expected);
    if (result == QUERN_OK) model_destroy(&run->model, entity.number);
}

static bool model_has(const program *run, const target *entity, const chosen_type *chosen)
{
    return run->model.entities[entity->number].has[chosen->type];
}

/* Returns the expected result of a call that depends on whether the entity has the component. */
static quern_result expect(const program *run, const target *entity, const chosen_type *chosen,
                           quern_result when_present, quern_result when_absent)
{
    if (entity->expected != QUERN_OK) return entity->expected;
    if (chosen->expected != QUERN_OK) return chosen->expected;
    return model_has(run, entity, chosen) ? when_present : when_absent;
}

/* Picks a component. It is valid if the entity is invalid, so that only one error can be expected. */
static chosen_type pick_type_for(program *run, const target *entity)
{
    chosen_type chosen = pick_type(run);
    if (entity->expected != QUERN_OK) {
        chosen.component = run->model.components[chosen.type];
        chosen.expected = QUERN_OK;
    }
    return chosen;
}

static void step_add_or_set(program *run, bool is_set)
{
    target entity = pick_entity(run);
    chosen_type chosen = pick_type_for(run, &entity);
    bool is_tag = model_types[chosen.type].size_bytes == 0;
    bool constructs = is_tag || (!is_set && random_chance(&run->random, 20));
    uint32_t seed = constructs ? MODEL_CONSTRUCTED : pick_seed(run);
    static model_value value;
    if (!constructs) model_value_make(&run->model, chosen.type, seed, &value);
    const void *pointer = constructs ? NULL : value.bytes;

    quern_world *world = run->model.world;
    quern_result result, when_present = is_set ? QUERN_OK : QUERN_ERROR_COMPONENT_PRESENT;
    RETRIED(run, result,
            is_set ? quern_entity_set(world, entity.handle, chosen.component, pointer)
                   : quern_entity_add(world, entity.handle, chosen.component, pointer));
    assert_code(is_set ? "set" : "add", result, expect(run, &entity, &chosen, when_present, QUERN_OK));
    if (result == QUERN_OK) model_set(&run->model, entity.number, chosen.type, seed);
    if (!constructs) model_value_drop(&run->model, &value, result == QUERN_OK);
}

static void step_remove(program *run)
{
    target entity = pick_entity(run);
    chosen_type chosen = pick_type_for(run, &entity);
    quern_result result;
    RETRIED(run, result, quern_entity_remove(run->model.world, entity.handle, chosen.component));
    assert_code("remove", result, expect(run, &entity, &chosen, QUERN_OK, QUERN_ERROR_COMPONENT_ABSENT));
    if (result == QUERN_OK) model_remove(&run->model, entity.number, chosen.type);
}

static void step_enable(program *run)
{
    target entity = pick_entity(run);
    chosen_type chosen = pick_type_for(run, &entity);
    const bool enabled = random_chance(&run->random, 40);
    const bool can = model_types[chosen.type].can_disable;
    quern_result result;
    RETRIED(run, result,
            quern_entity_set_component_enabled(run->model.world, entity.handle, chosen.component, enabled));
    assert_code("enable", result,
                expect(run, &entity, &chosen, can ? QUERN_OK : QUERN_ERROR_INVALID_ARGUMENT,
                       can ? QUERN_ERROR_COMPONENT_ABSENT : QUERN_ERROR_INVALID_ARGUMENT));
    if (result == QUERN_OK) model_enable(&run->model, entity.number, chosen.type, enabled);
}

static void step_write(program *run)
{
    target entity = pick_entity(run);
    chosen_type chosen = pick_type_for(run, &entity);
    bool is_right = entity.expected == QUERN_OK && chosen.expected == QUERN_OK;
    bool present = is_right && model_has(run, &entity, &chosen);
    refusal before = refusal_begin(NULL);
    cr_assert_eq(quern_entity_has(run->model.world, entity.handle, chosen.component), present);
    void *value = quern_entity_get(run->model.world, entity.handle, chosen.component);
    cr_assert_eq(value != NULL, present && model_types[chosen.type].size_bytes > 0);
    bool is_wrong = !is_right || model_types[chosen.type].size_bytes == 0;
    cr_assert_eq(refusal_has_message(&before), is_wrong, "a message where none is due, or the reverse");
    if (value == NULL) return;
    uint32_t *seed = &run->model.entities[entity.number].seeds[chosen.type];
    cr_assert(model_value_matches(chosen.type, *seed, value), "get");
    if (model_types[chosen.type].kind == MODEL_OWNED && *seed == MODEL_CONSTRUCTED) return;
    *seed = pick_seed(run);
    model_value_overwrite(chosen.type, *seed, value);
}

/* -------------------------------------------------------------------------------------------- program */

void program_grow(program *run)
{
    if (random_chance(&run->random, 30))
        step_create(run);
    else
        step_create_with(run);
}

void program_change(program *run)
{
    const uint32_t kind = random_below(&run->random, 5);
    if (kind == 0)
        step_remove(run);
    else if (kind == 4)
        step_enable(run);
    else if (kind == 1)
        step_write(run);
    else
        step_add_or_set(run, kind == 2);
}

void program_step(program *run)
{
    uint32_t kind = random_below(&run->random, 100);
    bool grows = run->model.alive_count < run->target_count;
    if (random_chance(&run->random, 1))
        run->target_count = random_below(&run->random, 2 * DEFAULT_TARGET_COUNT);
    if (run->model.entity_count == 0 || kind < (grows ? 10u : 2u))
        step_create(run);
    else if (kind < (grows ? 25u : 5u))
        step_create_with(run);
    else if (kind < 30)
        step_destroy(run);
    else if (kind < 50)
        step_add_or_set(run, false);
    else if (kind < 65)
        step_add_or_set(run, true);
    else if (kind < 80)
        step_remove(run);
    else if (kind < 90)
        step_enable(run);
    else
        step_write(run);
}

static void check_random_query(program *run)
{
    model_term terms[4];
    uint32_t count = 1 + random_below(&run->random, 4);
    uint32_t first = random_below(&run->random, MODEL_TYPE_COUNT);
    for (uint32_t i = 0; i < count; i++)
        terms[i] = (model_term){.type = (first + i) % MODEL_TYPE_COUNT,
                                .match = (quern_match)(QUERN_MATCH_ALL + random_below(&run->random, 4)),
                                .either = random_chance(&run->random, 30)};
    model_check_query(&run->model, terms, count);
}

/* Allocations do not fail while the check itself creates queries. */
void program_check(program *run)
{
    if (run->allocator != NULL) failing_allocator_pause(run->allocator, true);
    model_check(&run->model);
    for (uint32_t i = 0; i < 8; i++)
        check_random_query(run);
    if (run->allocator != NULL) failing_allocator_pause(run->allocator, false);
}
