/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "tests/support/model.h"

#include "tests/support/random.h"
#include "tests/support/setup.h"

#include <stdlib.h>
#include <string.h>

const model_type model_types[MODEL_TYPE_COUNT] = {
    {"position", MODEL_PLAIN, 12, 4, false},
    {"velocity", MODEL_PLAIN, 8, 4, true},
    {"frozen", MODEL_PLAIN, 0, 1, true},
    {"byte", MODEL_PLAIN, 1, 1, false},
    {"tracked", MODEL_TRACKED, sizeof(tracked), 8, false},
    {"owned", MODEL_OWNED, sizeof(owned), 8, false},
    {"matrix", MODEL_PLAIN, 64, 64, false},
    {"quaternion", MODEL_PLAIN, 16, 16, false},
    {"inventory", MODEL_PLAIN, 3000, 8, false},
    {"selected", MODEL_PLAIN, 0, 1, false},
    {"odd", MODEL_PLAIN, 7, 1, true},
    {"bounds", MODEL_PLAIN, 96, 32, false},
};

/* ------------------------------------------------------------------------------------------ values */

static void fill_plain(uint32_t type, uint32_t seed, unsigned char *bytes)
{
    uint32_t size_bytes = model_types[type].size_bytes;
    random_source random = {.state = seed};
    for (uint32_t i = 0; i < size_bytes; i++)
        bytes[i] = seed == MODEL_CONSTRUCTED ? 0 : (unsigned char)random_next(&random);
}

static uint64_t payload_of(uint32_t type, uint32_t seed)
{
    if (seed != MODEL_CONSTRUCTED) return (uint64_t)seed << 8 | type;
    return model_types[type].kind == MODEL_TRACKED ? TRACKED_DEFAULT : 0;
}

void model_value_make(model_world *model, uint32_t type, uint32_t seed, model_value *value)
{
    value->type = type;
    switch (model_types[type].kind) {
    case MODEL_PLAIN:
        fill_plain(type, seed, value->bytes);
        break;
    case MODEL_TRACKED:
        tracked_construct((tracked *)(void *)value->bytes, payload_of(type, seed), &model->tracked);
        break;
    case MODEL_OWNED:
        owned_construct((owned *)(void *)value->bytes, payload_of(type, seed), &model->owned_count);
        break;
    }
}

void model_value_drop(model_world *model, model_value *value, bool taken)
{
    model_kind kind = model_types[value->type].kind;
    if (kind == MODEL_TRACKED) tracked_destroy((tracked *)(void *)value->bytes, &model->tracked);
    if (kind == MODEL_OWNED && !taken) owned_destroy((owned *)(void *)value->bytes, &model->owned_count);
}

void model_value_overwrite(uint32_t type, uint32_t seed, void *value)
{
    switch (model_types[type].kind) {
    case MODEL_PLAIN:
        fill_plain(type, seed, value);
        break;
    case MODEL_TRACKED:
        ((tracked *)value)->payload = payload_of(type, seed);
        break;
    case MODEL_OWNED: {
        owned *target = value;
        if (target->box == NULL) break;
        *target->box = target->payload = payload_of(type, seed);
    }
    }
}

bool model_value_matches(uint32_t type, uint32_t seed, const void *value)
{
    unsigned char expected[MODEL_VALUE_BYTES];
    switch (model_types[type].kind) {
    case MODEL_PLAIN:
        fill_plain(type, seed, expected);
        return memcmp(expected, value, model_types[type].size_bytes) == 0;
    case MODEL_TRACKED:
        return tracked_is_live(value) && ((const tracked *)value)->payload == payload_of(type, seed);
    case MODEL_OWNED:
        return owned_is_intact(value) && ((const owned *)value)->payload == payload_of(type, seed);
    }
    return false;
}

/* ---------------------------------------------------------------------------------------- entities */

static quern_component register_type(model_world *model, uint32_t type)
{
    const model_type *description = &model_types[type];
    switch (description->kind) {
    case MODEL_TRACKED:
        return tracked_register(model->world, description->name, &model->tracked);
    case MODEL_OWNED:
        return owned_register(model->world, description->name, &model->owned_count);
    case MODEL_PLAIN:
        break;
    }
    const quern_component_def def = {.name = description->name,
                                     .size_bytes = description->size_bytes,
                                     .alignment_bytes = description->alignment_bytes,
                                     .can_disable = description->can_disable};
    quern_component component = {0};
    cr_assert_eq(quern_component_register(model->world, &def, &component), QUERN_OK, "%s",
                 quern_error_message());
    return component;
}

void model_init(model_world *model, quern_world *world)
{
    memset(model, 0, sizeof *model);
    model->world = world;
    for (uint32_t type = 0; type < MODEL_TYPE_COUNT; type++)
        model->components[type] = register_type(model, type);
}

void model_release(model_world *model)
{
    quern_world_destroy(model->world);
    free(model->entities);
    cr_assert_eq(model->owned_count, 0, "owned values live on");
    cr_assert_eq(tracked_live_count(&model->tracked), 0, "tracked values live on");
    cr_assert_eq(model->tracked.broken_count, 0, "hooks were called on what was no live value");
}

uint32_t model_create(model_world *model, quern_entity handle)
{
    if (model->entity_count == model->entity_capacity) {
        model->entity_capacity = model->entity_capacity == 0 ? 64 : model->entity_capacity * 2;
        model->entities = realloc(model->entities, model->entity_capacity * sizeof *model->entities);
        if (model->entities == NULL) abort();
    }
    model->entities[model->entity_count] = (model_entity){.handle = handle, .is_alive = true};
    model->alive_count++;
    return model->entity_count++;
}

void model_destroy(model_world *model, uint32_t entity)
{
    model->entities[entity].is_alive = false;
    model->alive_count--;
}

void model_set(model_world *model, uint32_t entity, uint32_t type, uint32_t seed)
{
    model->entities[entity].has[type] = true;
    model->entities[entity].seeds[type] = seed;
}

void model_remove(model_world *model, uint32_t entity, uint32_t type)
{
    model->entities[entity].has[type] = model->entities[entity].is_disabled[type] = false;
}

void model_enable(model_world *model, uint32_t entity, uint32_t type, bool enabled)
{
    model->entities[entity].is_disabled[type] = !enabled;
}

/* ----------------------------------------------------------------------------------------- queries */

bool model_matches(const model_entity *entity, const model_term *terms, uint32_t count)
{
    bool wants_any = false, has_any = false;
    for (uint32_t i = 0; i < count; i++) {
        bool has = entity->has[terms[i].type];
        if (terms[i].match == QUERN_MATCH_ALL &&
            (!has || (entity->is_disabled[terms[i].type] && !terms[i].either)))
            return false;
        if (terms[i].match == QUERN_MATCH_NONE && has) return false;
        if (terms[i].match == QUERN_MATCH_ANY) {
            wants_any = true;
            has_any |= has;
        }
    }
    return entity->is_alive && (has_any || !wants_any);
}

uint32_t model_count(const model_world *model, const model_term *terms, uint32_t count)
{
    uint32_t matching = 0;
    for (uint32_t i = 0; i < model->entity_count; i++)
        matching += model_matches(&model->entities[i], terms, count);
    return matching;
}

quern_query *model_query(const model_world *model, const model_term *terms, uint32_t count)
{
    quern_term real[MODEL_TYPE_COUNT];
    for (uint32_t i = 0; i < count; i++)
        real[i] =
            quern_term_make(model->components[terms[i].type], terms[i].match,
                            terms[i].match == QUERN_MATCH_NONE ? QUERN_ACCESS_NONE : QUERN_ACCESS_READ);
    for (uint32_t i = 0; i < count; i++)
        if (terms[i].either) real[i] = quern_term_either(real[i]);
    return setup_query(model->world, real, count);
}

/* Returns an array that maps slots to entities of the model, so that the entity of a handle in a view is
 * found in O(1). */
static uint32_t *entities_by_slot(const model_world *model)
{
    uint32_t *entity_of = calloc(model->entity_count + 1, sizeof *entity_of);
    if (entity_of == NULL) abort();
    for (uint32_t i = 0; i < model->entity_count; i++)
        if (model->entities[i].is_alive) {
            uint32_t slot = quern_entity_index(model->entities[i].handle);
            cr_assert_leq(slot, model->entity_count, "slots must be reused before new ones are taken");
            entity_of[slot] = i;
        }
    return entity_of;
}

static void check_row(const model_entity *entity, const quern_view *view, uint32_t row,
                      const model_term *terms, uint32_t count)
{
    cr_assert(quern_entity_equal(entity->handle, view->entities[row]), "row holds a stranger");
    cr_assert(model_matches(entity, terms, count), "a query found what does not match it");
    for (uint32_t i = 0; i < count; i++) {
        uint32_t type = terms[i].type;
        cr_assert_eq(quern_view_has(view, i), entity->has[type], "has '%s'", model_types[type].name);
        cr_assert_eq(quern_view_is_enabled(view, i, row), entity->has[type] && !entity->is_disabled[type],
                     "'%s' enabled", model_types[type].name);
        if (!entity->has[type] || model_types[type].size_bytes == 0) continue;
        const char *column = quern_view_read(view, i);
        cr_assert_not_null(column, "'%s' has no column", model_types[type].name);
        cr_assert(model_value_matches(type, entity->seeds[type],
                                      column + (size_t)row * model_types[type].size_bytes),
                  "a view shows another '%s'", model_types[type].name);
    }
}

void model_check_query(const model_world *model, const model_term *terms, uint32_t count)
{
    quern_query *query = model_query(model, terms, count);
    uint32_t *entity_of = entities_by_slot(model);
    bool *seen = calloc(model->entity_count + 1, sizeof *seen);
    uint32_t found = 0, expected = model_count(model, terms, count);
    quern_query_iterator it = quern_query_iterate(query);
    while (quern_query_next(&it)) {
        cr_assert_gt(it.view.count, 0u, "an empty view");
        for (uint32_t row = 0; row < it.view.count; row++, found++) {
            uint32_t entity = entity_of[quern_entity_index(it.view.entities[row])];
            check_row(&model->entities[entity], &it.view, row, terms, count);
            cr_assert_not(seen[entity], "a query found an entity twice");
            seen[entity] = true;
        }
    }
    cr_assert_eq(it.result, QUERN_OK, "%s", quern_error_message());
    cr_assert_eq(found, expected, "a query found %u of %u", found, expected);
    cr_assert_eq(quern_query_count(query), expected, "quern_query_count");
    free(seen);
    free(entity_of);
    quern_query_destroy(query);
}

/* ------------------------------------------------------------------------------------------ checks */

void model_check_entity(const model_world *model, uint32_t entity)
{
    const model_entity *expected = &model->entities[entity];
    quern_entity handle = expected->handle;
    cr_assert_eq(quern_entity_is_alive(model->world, handle), expected->is_alive, "entity %u", entity);
    if (!expected->is_alive) return;
    for (uint32_t type = 0; type < MODEL_TYPE_COUNT; type++) {
        quern_component component = model->components[type];
        cr_assert_eq(quern_entity_has(model->world, handle, component), expected->has[type],
                     "entity %u, '%s'", entity, model_types[type].name);
        cr_assert_eq(quern_entity_is_component_enabled(model->world, handle, component),
                     expected->has[type] && !expected->is_disabled[type], "entity %u, '%s'", entity,
                     model_types[type].name);
        if (model_types[type].size_bytes == 0) continue;
        void *value = quern_entity_get(model->world, handle, component);
        cr_assert_eq(value != NULL, expected->has[type], "entity %u, '%s'", entity, model_types[type].name);
        if (value == NULL) continue;
        cr_assert_eq((uintptr_t)value % model_types[type].alignment_bytes, 0u, "misaligned '%s'",
                     model_types[type].name);
        cr_assert(model_value_matches(type, expected->seeds[type], value), "entity %u has another '%s'",
                  entity, model_types[type].name);
    }
}

void model_check(const model_world *model)
{
    assert_valid(model->world);
    cr_assert_eq(stats_of_world(model->world).entity_count, model->alive_count, "entities alive");
    for (uint32_t i = 0; i < model->entity_count; i++)
        model_check_entity(model, i);
    for (uint32_t type = 0; type < MODEL_TYPE_COUNT; type++)
        model_check_query(model, &(model_term){.type = type, .match = QUERN_MATCH_ALL}, 1);
}
