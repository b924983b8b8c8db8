/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "tests/support/model_relations.h"

#include <criterion/criterion.h>

#include <stdlib.h>
#include <string.h>

const quern_relation_def model_relation_defs[MODEL_RELATION_COUNT] = {
    {.name = "parent", .levels = true, .ordered = true},
    {.name = "ring"},
    {.name = "friend", .on_target_destroyed = QUERN_TARGET_UNRELATES, .ordered = true},
    {.name = "home", .on_target_destroyed = QUERN_TARGET_UNRELATES, .levels = true},
    {.name = "keeper", .on_target_destroyed = QUERN_TARGET_REFUSES},
};

void model_relations_init(model_relations *relations, model_world *model)
{
    memset(relations, 0, sizeof *relations);
    relations->model = model;
    for (uint32_t i = 0; i < MODEL_RELATION_COUNT; i++)
        cr_assert_eq(
            quern_relation_register(model->world, &model_relation_defs[i], &relations->relations[i]),
            QUERN_OK, "%s", quern_error_message());
    model_relations_grow(relations);
}

void model_relations_release(model_relations *relations)
{
    for (uint32_t i = 0; i < MODEL_RELATION_COUNT; i++)
        free(relations->ties[i]);
    free(relations->is_dying);
}

static void *grow(void *items, uint32_t old_count, uint32_t count, size_t item_bytes)
{
    char *grown = realloc(items, count * item_bytes);
    cr_assert_not_null(grown);
    memset(grown + old_count * item_bytes, 0, (count - old_count) * item_bytes);
    return grown;
}

void model_relations_grow(model_relations *relations)
{
    const uint32_t wanted = relations->model->entity_count, old = relations->capacity;
    if (wanted <= old && old > 0) return;
    const uint32_t capacity = 2 * wanted + 64;
    for (uint32_t i = 0; i < MODEL_RELATION_COUNT; i++)
        relations->ties[i] = grow(relations->ties[i], old, capacity, sizeof *relations->ties[i]);
    relations->is_dying = grow(relations->is_dying, old, capacity, sizeof *relations->is_dying);
    relations->capacity = capacity;
}

bool model_target(const model_relations *relations, uint32_t relation, uint32_t source,
                  uint32_t *out_target)
{
    const uint32_t target = relations->ties[relation][source].target;
    *out_target = target - 1;
    return target != 0;
}

/* ------------------------------------------------------------------------------------------ relating */

quern_result model_expect_relate(const model_relations *relations, uint32_t relation, uint32_t source,
                                 uint32_t target)
{
    if (source == target) return QUERN_ERROR_INVALID_ARGUMENT;
    if (!model_relation_defs[relation].levels) return QUERN_OK;
    for (uint32_t above = target; above != source;)
        if (!model_target(relations, relation, above, &above)) return QUERN_OK;
    return QUERN_ERROR_CYCLE;
}

void model_relate(model_relations *relations, uint32_t relation, uint32_t source, uint32_t target)
{
    model_tie *tie = &relations->ties[relation][source];
    if (tie->target == target + 1) return;
    tie->target = target + 1;
    tie->order = model_relation_defs[relation].ordered ? ++relations->last : --relations->first;
}

void model_unrelate(model_relations *relations, uint32_t relation, uint32_t source)
{
    relations->ties[relation][source] = (model_tie){0};
}

void model_place(model_relations *relations, uint32_t relation, uint32_t source, uint32_t before)
{
    model_tie *ties = relations->ties[relation];
    const int64_t order = ties[before].order;
    if (before == source) {
        ties[source].order = ++relations->last;
        return;
    }
    for (uint32_t i = 0; i < relations->model->entity_count; i++)
        if (ties[i].target == ties[source].target && ties[i].order >= order) ties[i].order += 2;
    ties[source].order = order + 1;
    relations->last += 2; /* the shift raised orders by 2 at most, so `last` remains the highest one */
}

/* --------------------------------------------------------------------------------------- destroying */

static bool is_doomed(const model_relations *relations, uint32_t entity)
{
    uint32_t target;
    for (uint32_t r = 0; r < MODEL_RELATION_COUNT; r++)
        if (model_relation_defs[r].on_target_destroyed == QUERN_TARGET_DESTROYS_SOURCE &&
            model_target(relations, r, entity, &target) && relations->is_dying[target])
            return true;
    return false;
}

static bool mark_doomed(model_relations *relations)
{
    bool is_any = false;
    for (uint32_t i = 0; i < relations->model->entity_count; i++) {
        if (relations->is_dying[i] || !is_doomed(relations, i)) continue;
        relations->is_dying[i] = is_any = true;
    }
    return is_any;
}

quern_result model_expect_destroy(model_relations *relations, const uint32_t *entities, uint32_t count)
{
    memset(relations->is_dying, 0, relations->capacity * sizeof *relations->is_dying);
    for (uint32_t i = 0; i < count; i++)
        relations->is_dying[entities[i]] = true;
    while (mark_doomed(relations)) {
    }
    for (uint32_t r = 0; r < MODEL_RELATION_COUNT; r++)
        for (uint32_t i = 0, target; i < relations->model->entity_count; i++)
            if (model_relation_defs[r].on_target_destroyed == QUERN_TARGET_REFUSES &&
                !relations->is_dying[i] && model_target(relations, r, i, &target) &&
                relations->is_dying[target])
                return QUERN_ERROR_TARGET_IN_USE;
    return QUERN_OK;
}

void model_destroy_marked(model_relations *relations)
{
    for (uint32_t r = 0; r < MODEL_RELATION_COUNT; r++)
        for (uint32_t i = 0, target; i < relations->model->entity_count; i++)
            if (relations->is_dying[i] ||
                (model_target(relations, r, i, &target) && relations->is_dying[target]))
                model_unrelate(relations, r, i);
    for (uint32_t i = 0; i < relations->model->entity_count; i++)
        if (relations->is_dying[i]) model_destroy(relations->model, i);
}

/* ----------------------------------------------------------------------------------------- checking */

/* Returns the number + 1 of the source of `target` with the lowest order above *after, or with the
 * lowest order if `after` is NULL. Returns 0 if there is none. */
static uint32_t find_next(const model_relations *relations, uint32_t relation, uint32_t target,
                          const int64_t *after)
{
    const model_tie *ties = relations->ties[relation];
    uint32_t found = 0;
    for (uint32_t i = 0; i < relations->model->entity_count; i++)
        if (ties[i].target == target + 1 && (after == NULL || ties[i].order > *after) &&
            (found == 0 || ties[i].order < ties[found - 1].order))
            found = i + 1;
    return found;
}

static quern_entity handle_of(const model_relations *relations, uint32_t number_plus_1)
{
    return number_plus_1 == 0 ? quern_entity_null() : relations->model->entities[number_plus_1 - 1].handle;
}

static void check_children(const model_relations *relations, uint32_t relation, uint32_t target)
{
    const quern_world *world = relations->model->world;
    const quern_relation r = relations->relations[relation];
    quern_entity child = quern_entity_first_source(world, relations->model->entities[target].handle, r);
    uint32_t count = 0;
    for (uint32_t next = find_next(relations, relation, target, NULL); next != 0; count++) {
        cr_assert_eq(child.bits, handle_of(relations, next).bits, "child %u of %u in '%s'", count, target,
                     model_relation_defs[relation].name);
        child = quern_entity_next_sibling(world, child, r);
        next = find_next(relations, relation, target, &relations->ties[relation][next - 1].order);
    }
    cr_assert(quern_entity_is_null(child));
    cr_assert_eq(quern_entity_source_count(world, relations->model->entities[target].handle, r), count);
}

static bool has_children(const model_relations *relations, uint32_t relation, uint32_t target)
{
    return find_next(relations, relation, target, NULL) != 0;
}

void model_check_relations(const model_relations *relations)
{
    const model_world *model = relations->model;
    for (uint32_t r = 0; r < MODEL_RELATION_COUNT; r++)
        for (uint32_t i = 0; i < model->entity_count; i++) {
            if (!model->entities[i].is_alive) continue;
            const quern_entity entity = model->entities[i].handle;
            const uint32_t target = relations->ties[r][i].target;
            cr_assert_eq(quern_entity_target(model->world, entity, relations->relations[r]).bits,
                         handle_of(relations, target).bits);
            cr_assert_eq(
                quern_entity_has(model->world, entity, quern_relation_component(relations->relations[r])),
                target != 0);
            if (has_children(relations, r, i))
                check_children(relations, r, i);
            else
                cr_assert_eq(quern_entity_source_count(model->world, entity, relations->relations[r]), 0u);
        }
}
