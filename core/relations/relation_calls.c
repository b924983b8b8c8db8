/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* The calls of relation.h: relations, targets and siblings. */
#include "core/relations/relation_internal.h"

#include "core/reactions/hook.h"
#include "core/world/world_internal.h"

#include <quern/prefab.h>
#include <quern/relation.h>

/* Records of list elements are scattered in memory and prefetched this many elements ahead. */
enum { CHECK_RECORDS_AHEAD = 16 };

/* ------------------------------------------------------------------------------------- registering */

quern_result quern_relation_register(quern_world *world, const quern_relation_def *def,
                                     quern_relation *out_relation)
{
    QUERN__ENTER_UNLOCKED(world);
    QUERN__NEED(def);
    QUERN__NEED(out_relation);
    quern__relation *relation;
    quern_result result = quern__relation_register(&world->storage, def, &relation);
    if (result != QUERN_OK) return quern__in_call(result, __func__);
    *out_relation = quern__relation_handle(&world->storage, relation);
    return QUERN_OK;
}

quern_relation quern_relation_find(const quern_world *world, const char *name)
{
    QUERN__NEED_OR(world, (quern_relation){0});
    QUERN__NEED_OR(name, (quern_relation){0});
    const quern__relation *relation = quern__relation_find(&world->storage, name);
    return relation != NULL ? quern__relation_handle(&world->storage, relation) : (quern_relation){0};
}

static quern_result register_parent(quern_world *world)
{
    QUERN__ENTER_AS(world, "quern_world_parent");
    if (quern__world_check_unlocked(world, "quern_world_parent") != QUERN_OK)
        return quern__fail(QUERN_ERROR_WORLD_LOCKED,
                           "quern_world_parent: the world has no hierarchy yet, and a callback cannot "
                           "register it: call quern_world_parent once before the frame");
    return quern__in_call(
        quern__relation_register(&world->storage, &quern__parent_def, &world->storage.relations->parent),
        "quern_world_parent");
}

quern_relation quern_world_parent(quern_world *world)
{
    QUERN__NEED_OR(world, (quern_relation){0});
    if (world->storage.relations->parent == NULL && register_parent(world) != QUERN_OK)
        return (quern_relation){0};
    return quern__relation_handle(&world->storage, world->storage.relations->parent);
}

static quern_result register_shared(quern_world *world, quern__relation **out_relation)
{
    QUERN__ENTER_AS(world, "quern_world_shared");
    *out_relation = quern__relation_find(&world->storage, quern__shared_def.name);
    if (world->locked && *out_relation != NULL) return QUERN_OK;
    if (quern__world_check_unlocked(world, "quern_world_shared") != QUERN_OK)
        return quern__fail(
            QUERN_ERROR_WORLD_LOCKED,
            "quern_world_shared: the world has no relation for shared values yet, and a callback cannot "
            "register it: call quern_world_shared once before the frame");
    return quern__in_call(quern__relation_register(&world->storage, &quern__shared_def, out_relation),
                          "quern_world_shared");
}

quern_relation quern_world_shared(quern_world *world)
{
    QUERN__NEED_OR(world, (quern_relation){0});
    quern__relation *relation;
    if (register_shared(world, &relation) != QUERN_OK) return (quern_relation){0};
    return quern__relation_handle(&world->storage, relation);
}

quern_component quern_relation_value(const quern_world *world, quern_relation relation)
{
    quern__relation *known;
    QUERN__NEED_OR(world, (quern_component){0});
    if (quern__in_call(quern__relation_check(&world->storage, relation, &known), __func__) != QUERN_OK ||
        !quern__relation_has_values(known))
        return (quern_component){0};
    return quern__component_handle(&world->storage.components, known->value_index);
}

/* ------------------------------------------------------------------------------------------ changing */

/* Checks that the entity is alive, and finds the relation. */
static quern_result check_ids(const quern_world *world, quern_entity entity, quern_relation relation,
                              quern__relation **out_relation)
{
    const quern_result result = quern__relation_check(&world->storage, relation, out_relation);
    if (QUERN__UNLIKELY(result != QUERN_OK)) return result;
    if (QUERN__LIKELY(quern__entities_find(&world->storage.entities, entity) != NULL)) return QUERN_OK;
    return quern__entities_check(&world->storage.entities, entity);
}

/* Checks that the world is unlocked and the entity alive, and finds the relation. */
static quern_result check(const quern_world *world, quern_entity entity, quern_relation relation,
                          const char *function, quern__relation **out_relation)
{
    if (world == NULL) return quern__fail_null(function, "world");
    quern_result result = quern__world_check_unlocked(world, function);
    if (result != QUERN_OK) return result;
    return quern__in_call(check_ids(world, entity, relation, out_relation), function);
}

/* Checks that another entity of the call is alive. what: its role, for the message. */
static inline quern_result check_alive(const quern_world *world, quern_entity entity, const char *what)
{
    if (QUERN__LIKELY(quern__entities_find(&world->storage.entities, entity) != NULL)) return QUERN_OK;
    quern_result result = quern__entities_check(&world->storage.entities, entity);
    return result != QUERN_OK ? quern__message_add_call(result, what, NULL) : QUERN_OK;
}

static QUERN__SLOW_PATH quern_result fail_self(quern_entity source)
{
    return quern__fail(QUERN_ERROR_INVALID_ARGUMENT, "entity %u:%u cannot be its own target",
                       quern_entity_index(source), quern_entity_generation(source));
}

static quern_result fail_without_target(const quern__storage *storage, const quern__relation *relation,
                                        quern_entity source)
{
    return quern__fail(QUERN_ERROR_COMPONENT_ABSENT, "entity %u:%u has no target in '%s'",
                       quern_entity_index(source), quern_entity_generation(source),
                       quern__relation_name(storage, relation));
}

/* Fails with the first reason that refuses a call of quern__world_relate. Precondition: there is one. */
static QUERN__SLOW_PATH quern_result fail_relate(const quern_world *world, quern_entity source,
                                                 quern_relation relation, quern_entity target,
                                                 const char *function)
{
    quern__relation *known;
    quern_result result = check(world, source, relation, function, &known);
    if (result != QUERN_OK) return result;
    result = check_alive(world, target, "the target");
    return quern__in_call(result == QUERN_OK ? fail_self(source) : result, function);
}

quern_result quern__world_relate(quern_world *world, quern_entity source, quern_relation relation,
                                 quern_entity target, const char *function)
{
    if (QUERN__UNLIKELY(world == NULL || world->locked))
        return fail_relate(world, source, relation, target, function);
    quern__storage *storage = &world->storage;
    quern__relation *known = quern__relation_of(storage, relation);
    if (QUERN__UNLIKELY(known == NULL || quern__entities_find(&storage->entities, source) == NULL ||
                        quern__entities_find(&storage->entities, target) == NULL ||
                        quern_entity_equal(source, target)))
        return fail_relate(world, source, relation, target, function);
    const quern_result result = quern__relate(storage, known, source, target);
    if (QUERN__LIKELY(result == QUERN_OK)) quern__hooks_after(storage);
    return quern__in_call(result, function);
}

quern_result quern_entity_relate(quern_world *world, quern_entity source, quern_relation relation,
                                 quern_entity target)
{
    QUERN__ENTER(world);
    return quern__world_relate(world, source, relation, target, __func__);
}

quern_result quern__edge_value_check(const quern__storage *storage, const quern__relation *relation)
{
    if (quern__relation_has_values(relation)) return QUERN_OK;
    return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                       "edges of relation '%s' have no values: register it with a component as 'value', or "
                       "call quern_entity_relate",
                       quern__relation_name(storage, relation));
}

/* Checks what the calls with the value of an edge share, and finds the relation. */
static quern_result check_edge(const quern_world *world, quern_entity source, quern_relation relation,
                               quern_entity target, const void *value, const char *function,
                               quern__relation **out_relation)
{
    quern_result result = check(world, source, relation, function, out_relation);
    if (result != QUERN_OK) return result;
    if (value == NULL) return quern__fail_null(function, "value");
    const quern__relation *known = *out_relation;
    const quern__storage *storage = &world->storage;
    result = check_alive(world, target, "the target");
    if (result == QUERN_OK) result = quern__edge_value_check(storage, known);
    if (result != QUERN_OK) return quern__in_call(result, function);
    if (!known->is_many)
        result =
            quern__type_check_provisional(quern__components_type(&storage->components, known->value_index),
                                          value, 1, "quern_commands_relate_with");
    /* the target of an element is ignored, so it may be anything */
    for (uint32_t i = 0; known->is_many && i < known->element.field_count && result == QUERN_OK; i++) {
        const quern_field *field = &known->element.fields[i];
        if (field->offset_bytes == 0 || field->type != QUERN_FIELD_ENTITY) continue;
        const quern__type part = {.name = "value",
                                  .fields = (quern_field *)(uintptr_t)field,
                                  .field_count = 1,
                                  .has_entity_fields = true};
        result = quern__type_check_provisional(&part, value, 1, "quern_commands_relate_with");
    }
    return quern__in_call(result, function);
}

quern_result quern_entity_relate_with(quern_world *world, quern_entity source, quern_relation relation,
                                      quern_entity target, const void *value)
{
    QUERN__ENTER(world);
    quern__relation *known;
    quern_result result = check_edge(world, source, relation, target, value, __func__, &known);
    if (result != QUERN_OK) return result;
    if (quern_entity_equal(source, target)) return quern__in_call(fail_self(source), __func__);
    result = quern__relate_with(&world->storage, known, source, target, value);
    if (result == QUERN_OK) quern__hooks_after(&world->storage);
    return quern__in_call(result, __func__);
}

static quern_result fail_other_target(const quern__storage *storage, const quern__relation *relation,
                                      quern_entity source, quern_entity target)
{
    return quern__fail(
        QUERN_ERROR_COMPONENT_ABSENT,
        "entity %u:%u does not have target %u:%u in '%s': check with quern_entity_has_target",
        quern_entity_index(source), quern_entity_generation(source), quern_entity_index(target),
        quern_entity_generation(target), quern__relation_name(storage, relation));
}

/* Checks that all entities are alive and that no entity is its own target. */
static quern_result check_pairs(const quern_world *world, const quern_entity *sources,
                                const quern_entity *targets, uint32_t count)
{
    const quern__entities *entities = &world->storage.entities;
    for (uint32_t i = 0; i < count; i++) {
        if (count - i > CHECK_RECORDS_AHEAD) {
            quern__prefetch_records(entities, sources + i + CHECK_RECORDS_AHEAD, 1);
            quern__prefetch_records(entities, targets + i + CHECK_RECORDS_AHEAD, 1);
        }
        quern_result result = QUERN_OK;
        if (QUERN__UNLIKELY(quern__entities_find(entities, sources[i]) == NULL))
            result = quern__entities_check(entities, sources[i]);
        if (result == QUERN_OK) result = check_alive(world, targets[i], "the target");
        if (result == QUERN_OK && quern_entity_equal(sources[i], targets[i]))
            result = fail_self(sources[i]);
        if (result != QUERN_OK) return quern__message_add_element(result, "pair", i);
    }
    return QUERN_OK;
}

quern_result quern_entity_relate_many(quern_world *world, const quern_entity *sources,
                                      quern_relation relation, const quern_entity *targets, uint32_t count)
{
    QUERN__ENTER_UNLOCKED(world);
    QUERN__NEED_LIST(sources, count);
    QUERN__NEED_LIST(targets, count);
    quern__relation *known;
    quern_result result = quern__relation_check(&world->storage, relation, &known);
    if (result == QUERN_OK) result = check_pairs(world, sources, targets, count);
    if (result != QUERN_OK) return quern__in_call(result, __func__);
    uint32_t failed;
    result = quern__relate_many(&world->storage, known, sources, targets, count, &failed);
    if (result != QUERN_OK && failed < count) quern__message_add_element(result, "pair", failed);
    if (result == QUERN_OK) quern__hooks_after(&world->storage);
    return quern__in_call(result, __func__);
}

quern_result quern_entity_set_edge_value(quern_world *world, quern_entity source, quern_relation relation,
                                         quern_entity target, const void *value)
{
    QUERN__ENTER(world);
    quern__relation *known;
    quern_result result = check_edge(world, source, relation, target, value, __func__, &known);
    if (result != QUERN_OK) return result;
    if (!quern__relation_has_target(known, quern_entity_index(source), quern_entity_index(target)))
        result = fail_other_target(&world->storage, known, source, target);
    else
        result = quern__edge_value_set(&world->storage, known, source, target, value);
    if (result == QUERN_OK) quern__hooks_after(&world->storage);
    return quern__in_call(result, __func__);
}

quern_result quern__world_unrelate(quern_world *world, quern_entity source, quern_relation relation,
                                   const char *function)
{
    quern__relation *known;
    quern_result result = check(world, source, relation, function, &known);
    if (result != QUERN_OK) return result;
    const uint32_t slot = quern_entity_index(source);
    if (quern__links_target(&known->links, slot) != QUERN__SLOT_NONE)
        result = quern__unrelate(&world->storage, known, source);
    else if (quern__edges_targets(&known->edges, slot)->count > 0)
        result = quern__unrelate_all_edges(&world->storage, known, slot);
    else
        result = fail_without_target(&world->storage, known, source);
    if (result == QUERN_OK) quern__hooks_after(&world->storage);
    return quern__in_call(result, function);
}

quern_result quern_entity_unrelate(quern_world *world, quern_entity source, quern_relation relation)
{
    QUERN__ENTER(world);
    return quern__world_unrelate(world, source, relation, __func__);
}

quern_result quern_entity_unrelate_from(quern_world *world, quern_entity source, quern_relation relation,
                                        quern_entity target)
{
    QUERN__ENTER(world);
    quern__relation *known;
    quern_result result = check(world, source, relation, __func__, &known);
    if (result != QUERN_OK) return result;
    result = check_alive(world, target, "the target");
    if (result == QUERN_OK &&
        !quern__relation_has_target(known, quern_entity_index(source), quern_entity_index(target)))
        result = fail_other_target(&world->storage, known, source, target);
    if (result != QUERN_OK) return quern__in_call(result, __func__);
    if (known->is_many)
        result = quern__unrelate_edge(&world->storage, known, quern_entity_index(source),
                                      quern_entity_index(target));
    else
        result = quern__unrelate(&world->storage, known, source);
    if (result == QUERN_OK) quern__hooks_after(&world->storage);
    return quern__in_call(result, __func__);
}

static quern_result check_move_before(const quern_world *world, const quern__relation *relation,
                                      quern_entity source, quern_entity before)
{
    const uint32_t target = quern__links_target(&relation->links, quern_entity_index(source));
    if (target == QUERN__SLOT_NONE) return fail_without_target(&world->storage, relation, source);
    if (!relation->is_ordered)
        return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                           "relation '%s' is not ordered; set ordered in its quern_relation_def",
                           quern__relation_name(&world->storage, relation));
    if (quern_entity_is_null(before)) return QUERN_OK;
    quern_result result = check_alive(world, before, "the sibling");
    if (result != QUERN_OK) return result;
    if (quern__links_target(&relation->links, quern_entity_index(before)) == target) return QUERN_OK;
    return quern__fail(
        QUERN_ERROR_INVALID_ARGUMENT,
        "entity %u:%u is not a sibling of %u:%u; pass an entity with the same target, or null",
        quern_entity_index(before), quern_entity_generation(before), quern_entity_index(source),
        quern_entity_generation(source));
}

quern_result quern_entity_move_before(quern_world *world, quern_entity source, quern_relation relation,
                                      quern_entity before)
{
    QUERN__ENTER(world);
    quern__relation *known;
    quern_result result = check(world, source, relation, __func__, &known);
    if (result != QUERN_OK) return result;
    result = check_move_before(world, known, source, before);
    if (result != QUERN_OK) return quern__in_call(result, __func__);
    quern__links_move_before(&known->links, quern_entity_index(source),
                             quern_entity_is_null(before) ? QUERN__SLOT_NONE : quern_entity_index(before));
    return QUERN_OK;
}

/* ------------------------------------------------------------------------------------------- reading */

/* Returns the member of a set after a slot, or the first one after QUERN__SLOT_NONE. */
static quern_entity entity_after(const quern__storage *storage, const quern__edge_list *list, uint32_t slot)
{
    return quern__entity_of_link(storage, quern__edge_list_next(list, slot));
}

/* Stores entities of a set. Returns their number, or 0 with a message if the array is missing. */
static uint32_t list_entities(const quern__storage *storage, const quern__edge_list *list,
                              quern_entity *out_entities, uint32_t capacity, const char *function,
                              const char *argument)
{
    if (capacity > 0 && out_entities == NULL) {
        quern__fail_null(function, argument);
        return 0;
    }
    quern__list_edge_entities(storage, list, out_entities, capacity);
    return list->count;
}

quern_entity quern__read_target(quern__related of)
{
    if (of.relation == NULL) return (quern_entity){0};
    if (!of.relation->is_many)
        return quern__entity_of_link(of.storage, quern__links_target(&of.relation->links, of.slot));
    return entity_after(of.storage, quern__edges_targets(&of.relation->edges, of.slot), QUERN__SLOT_NONE);
}

quern_entity quern__read_nearest(quern__related of, uint32_t component_index,
                                 const quern__archetype_filter *filter)
{
    for (uint32_t slot = of.slot; slot != QUERN__SLOT_NONE;
         slot = quern__links_target(&of.relation->links, slot)) {
        const quern__record *record = quern__entities_record(&of.storage->entities, slot);
        if (record->location == 0)
            continue; /* an entity hook reads, and the sync point will create the entity */
        const quern__archetype *archetype = quern__storage_archetype_of(of.storage, record);
        if (quern__archetype_has(archetype, component_index) &&
            (filter == NULL || quern__archetype_filter_passes(*filter, archetype)))
            return quern__entity_of_slot(of.storage, slot);
    }
    return (quern_entity){0};
}

bool quern__read_has_target(quern__related of, quern_entity target)
{
    return of.relation != NULL && quern__entities_find(&of.storage->entities, target) != NULL &&
           quern__relation_has_target(of.relation, of.slot, quern_entity_index(target));
}

uint32_t quern__read_target_count(quern__related of)
{
    if (of.relation == NULL) return 0;
    return of.relation->is_many ? quern__edges_targets(&of.relation->edges, of.slot)->count
                                : quern__links_target(&of.relation->links, of.slot) != QUERN__SLOT_NONE;
}

uint32_t quern__read_targets(quern__related of, quern_entity *out_targets, uint32_t capacity,
                             const char *function)
{
    if (of.relation == NULL) return 0;
    const quern__edge_list *list = quern__edges_targets(&of.relation->edges, of.slot);
    uint32_t target = quern__links_target(&of.relation->links, of.slot);
    const quern__edge_list one = {.slots = &target, .count = target != QUERN__SLOT_NONE, .capacity = 1};
    return list_entities(of.storage, of.relation->is_many ? list : &one, out_targets, capacity, function,
                         "out_targets");
}

quern_entity quern__read_first_source(quern__related of)
{
    if (of.relation == NULL) return (quern_entity){0};
    if (!of.relation->is_many)
        return quern__entity_of_link(of.storage, quern__links_first(&of.relation->links, of.slot));
    return entity_after(of.storage, quern__edges_sources(&of.relation->edges, of.slot), QUERN__SLOT_NONE);
}

quern_entity quern__read_next_sibling(quern__related of)
{
    const quern__link_node *link =
        of.relation != NULL ? quern__links_find(&of.relation->links, of.slot) : NULL;
    return link != NULL ? quern__entity_of_link(of.storage, link->next) : (quern_entity){0};
}

uint32_t quern__read_source_count(quern__related of)
{
    if (of.relation == NULL) return 0;
    if (of.relation->is_many) return quern__edges_sources(&of.relation->edges, of.slot)->count;
    const quern__link_node *link = quern__links_find(&of.relation->links, of.slot);
    return link != NULL ? link->count : 0;
}

uint32_t quern__read_sources(quern__related of, quern_entity *out_sources, uint32_t capacity,
                             const char *function)
{
    if (of.relation == NULL) return 0;
    if (of.relation->is_many)
        return list_entities(of.storage, quern__edges_sources(&of.relation->edges, of.slot), out_sources,
                             capacity, function, "out_sources");
    if (capacity > 0 && out_sources == NULL) {
        quern__fail_null(function, "out_sources");
        return 0;
    }
    const quern__links *links = &of.relation->links;
    uint32_t source = quern__links_first(links, of.slot);
    for (uint32_t i = 0; i < capacity && source != QUERN__SLOT_NONE; i++) {
        out_sources[i] = quern__entity_of_slot(of.storage, source);
        source = quern__links_at(links, source)->next;
    }
    return quern__read_source_count(of);
}

/* -------------------------------------------------------------------------- reading outside of callbacks */

/* What a call from outside of a frame may read: everything in an unlocked world. Fails with a message. */
static quern__related outside(const quern_world *world, quern_entity entity, quern_relation relation,
                              const char *function)
{
    quern__relation *known;
    quern_result result = QUERN_OK;
    if (QUERN__LIKELY(world == NULL || !world->runs_hook))
        result = check(world, entity, relation, function, &known);
    else
        result = quern__in_call(check_ids(world, entity, relation, &known), function);
    if (result != QUERN_OK) return (quern__related){.relation = NULL};
    return (quern__related){&world->storage, known, quern_entity_index(entity)};
}

quern_entity quern_entity_target(const quern_world *world, quern_entity source, quern_relation relation)
{
    return quern__read_target(outside(world, source, relation, __func__));
}

quern_entity quern_entity_nearest(const quern_world *world, quern_entity entity, quern_relation relation,
                                  quern_component component)
{
    const quern__related of = outside(world, entity, relation, __func__);
    if (of.relation == NULL ||
        quern__in_call(quern__components_check(&world->storage.components, component), __func__) !=
            QUERN_OK)
        return (quern_entity){0};
    if (of.relation->has_levels) return quern__read_nearest(of, quern__component_index(component), NULL);
    quern__fail(
        QUERN_ERROR_INVALID_ARGUMENT,
        "%s: relation '%s' has no levels, so a way up could have no end: use a relation with levels",
        __func__, quern__relation_name(of.storage, of.relation));
    return (quern_entity){0};
}

bool quern_entity_has_target(const quern_world *world, quern_entity source, quern_relation relation,
                             quern_entity target)
{
    const quern__related of = outside(world, source, relation, __func__);
    return of.relation != NULL &&
           quern__in_call(check_alive(world, target, "the target"), __func__) == QUERN_OK &&
           quern__read_has_target(of, target);
}

const void *quern__read_edge_value(quern__related of, quern_entity target, const char *function)
{
    if (of.relation == NULL ||
        quern__in_call(quern__edge_value_check(of.storage, of.relation), function) != QUERN_OK)
        return NULL;
    const uint32_t slot = quern_entity_index(target);
    if (!quern__read_has_target(of, target)) return NULL;
    return quern__edge_value(of.storage, of.relation, of.slot, slot);
}

const void *quern_entity_edge_value(const quern_world *world, quern_entity source, quern_relation relation,
                                    quern_entity target)
{
    const quern__related of = outside(world, source, relation, __func__);
    if (of.relation == NULL ||
        quern__in_call(check_alive(world, target, "the target"), __func__) != QUERN_OK)
        return NULL;
    return quern__read_edge_value(of, target, __func__);
}

uint32_t quern_entity_target_count(const quern_world *world, quern_entity source, quern_relation relation)
{
    return quern__read_target_count(outside(world, source, relation, __func__));
}

quern_entity quern_entity_next_target(const quern_world *world, quern_entity source,
                                      quern_relation relation, quern_entity target)
{
    const quern__related of = outside(world, source, relation, __func__);
    if (of.relation == NULL || quern_entity_is_null(target)) return quern__read_target(of);
    return entity_after(of.storage, quern__edges_targets(&of.relation->edges, of.slot),
                        quern_entity_index(target));
}

uint32_t quern_entity_list_targets(const quern_world *world, quern_entity source, quern_relation relation,
                                   quern_entity *out_targets, uint32_t capacity)
{
    return quern__read_targets(outside(world, source, relation, __func__), out_targets, capacity, __func__);
}

quern_entity quern_entity_first_source(const quern_world *world, quern_entity target,
                                       quern_relation relation)
{
    return quern__read_first_source(outside(world, target, relation, __func__));
}

quern_entity quern_entity_next_source(const quern_world *world, quern_entity target,
                                      quern_relation relation, quern_entity source)
{
    const quern__related of = outside(world, target, relation, __func__);
    if (of.relation == NULL || quern_entity_is_null(source)) return quern__read_first_source(of);
    if (of.relation->is_many)
        return entity_after(of.storage, quern__edges_sources(&of.relation->edges, of.slot),
                            quern_entity_index(source));
    const quern__related other = outside(world, source, relation, __func__);
    if (!quern__read_has_target(other, target)) return (quern_entity){0};
    return quern__read_next_sibling(other);
}

/* What a call may read of the siblings of a source. Fails, with a message, for relations with several targets per source,
 * where a source has siblings for each of its targets. */
static quern__related outside_sibling(const quern_world *world, quern_entity source,
                                      quern_relation relation, const char *function)
{
    quern__related of = outside(world, source, relation, function);
    if (of.relation == NULL || !of.relation->is_many) return of;
    quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                "%s: relation '%s' is .many, so a source has siblings for each of its targets: use "
                "quern_entity_next_source",
                function, quern__relation_name(of.storage, of.relation));
    return (quern__related){.relation = NULL};
}

quern_entity quern_entity_next_sibling(const quern_world *world, quern_entity source,
                                       quern_relation relation)
{
    return quern__read_next_sibling(outside_sibling(world, source, relation, __func__));
}

quern_entity quern_entity_previous_sibling(const quern_world *world, quern_entity source,
                                           quern_relation relation)
{
    const quern__related of = outside_sibling(world, source, relation, __func__);
    if (quern__read_target_count(of) == 0) return (quern_entity){0};
    return quern__entity_of_link(of.storage, quern__links_at(&of.relation->links, of.slot)->previous);
}

uint32_t quern_entity_source_count(const quern_world *world, quern_entity target, quern_relation relation)
{
    return quern__read_source_count(outside(world, target, relation, __func__));
}

uint32_t quern_entity_list_sources(const quern_world *world, quern_entity target, quern_relation relation,
                                   quern_entity *out_sources, uint32_t capacity)
{
    return quern__read_sources(outside(world, target, relation, __func__), out_sources, capacity, __func__);
}

uint32_t quern_entity_sibling_index(const quern_world *world, quern_entity source, quern_relation relation)
{
    const quern__related of = outside_sibling(world, source, relation, __func__);
    if (quern__read_target_count(of) == 0) return QUERN_NO_SIBLING_INDEX;
    const quern__links *links = &of.relation->links;
    uint32_t index = 0;
    for (uint32_t i = quern__links_first(links, quern__links_target(links, of.slot)); i != of.slot;
         i = quern__links_at(links, i)->next)
        index++;
    return index;
}

/* --------------------------------------------------------------------------------- sources of many targets */

/* Lists the sources of many targets in one call, with or without their values. Code that descends a tree level by
 * level calls this once per level. Arguments are checked once per call, and the record of each source is read once,
 * for its handle and the locations of all its values. */

/* A requested component: where its column is in each archetype, and the output array for addresses of values. */
typedef struct listed_column {
    const quern__column_position *positions; /* by number of the archetype */
    void **values;
} listed_column;

/* Arguments of one call. */
typedef struct listing {
    const quern__storage *storage;
    const quern__links *links;
    const quern__edges *edges; /* NULL unless the relation has several targets per source */
    listed_column columns[QUERN_MAX_GETTER_COLUMNS];
    quern_entity *sources;
    uint32_t capacity;
    uint32_t *counts; /* may be NULL */
} listing;

/* Returns the links of a living target, or NULL if it has no sources. */
static inline const quern__link_node *find_links(const quern__storage *storage, const quern__links *links,
                                                 quern_entity target)
{
    const quern__link_node *link = quern__links_find(links, quern_entity_index(target));
    if (link == NULL || link->first == QUERN__SLOT_NONE) return NULL;
    return quern__entities_find(&storage->entities, target) != NULL ? link : NULL;
}

/* Stores the source in a slot as the k-th one, with the addresses of its values. */
static void list_source(const listing *list, uint32_t column_count, uint64_t k, uint32_t source)
{
    const quern__record *record = quern__entities_record(&list->storage->entities, source);
    list->sources[k] = (quern_entity){(uint64_t)record->handle_high << 32 | source};
    for (uint32_t c = 0; c < column_count; c++) {
        const quern__column_position position = list->columns[c].positions[record->archetype_number];
        list->columns[c].values[k] =
            position.offset_lines != 0 ? quern__position_value(position, record->location) : NULL;
    }
}

/* Performs list_sources for a relation with several targets per source. */
static uint64_t list_edge_sources(const listing *list, uint32_t column_count, const quern_entity *targets,
                                  uint32_t count)
{
    uint64_t total = 0;
    for (uint32_t i = 0; i < count; i++) {
        const quern__edge_list *sources =
            quern__entities_find(&list->storage->entities, targets[i]) != NULL
                ? quern__edges_sources(list->edges, quern_entity_index(targets[i]))
                : &quern__no_edges;
        uint64_t k = total;
        for (uint32_t r = 0; r < quern__edge_list_ranges(sources); r++) {
            const quern__edge_range range = quern__edge_list_range(sources, r);
            for (uint32_t s = 0; s < range.count && k < list->capacity; s++, k++)
                list_source(list, column_count, k, range.slots[s]);
        }
        if (list->counts != NULL) list->counts[i] = sources->count;
        total += sources->count;
    }
    return total;
}

/* Lists the sources of all targets. Returns their number, which may exceed the capacity. column_count is a constant
 * for the common numbers of columns. Links are not prefetched: the links of targets that a previous call listed as
 * sources are still cached, and the processor overlaps the other misses. */
QUERN__ALWAYS_INLINE uint64_t list_sources(const listing *list, uint32_t column_count,
                                           const quern_entity *targets, uint32_t count)
{
    const quern__links *links = list->links;
    const quern__storage *storage = list->storage;
    quern_entity *sources = list->sources;
    uint32_t *counts = list->counts;
    const uint64_t capacity = list->capacity;
    uint64_t total = 0;
    for (uint32_t i = 0; i < count; i++) {
        const quern__link_node *link = find_links(storage, links, targets[i]);
        if (counts != NULL) counts[i] = link != NULL ? link->count : 0;
        if (link == NULL) continue;
        uint32_t source = link->first;
        for (uint64_t k = total; k < capacity && source != QUERN__SLOT_NONE; k++) {
            const quern__record *record = quern__entities_record(&storage->entities, source);
            sources[k] = (quern_entity){(uint64_t)record->handle_high << 32 | source};
            source = quern__links_at(links, source)->next;
            const uintptr_t location = record->location;
            for (uint32_t c = 0; c < column_count; c++) {
                const quern__column_position position =
                    list->columns[c].positions[record->archetype_number];
                void *value = position.offset_lines != 0 ? quern__position_value(position, location) : NULL;
                QUERN__PREFETCH(value);
                list->columns[c].values[k] = value;
            }
        }
        total += link->count;
    }
    return total;
}

/* Copies the columns to the listing. Returns false with a message if a column is wrong. */
static bool read_columns(const quern_world *world, const quern_source_list *wanted, listing *list,
                         const char *function)
{
    if (wanted->column_count > 0 && wanted->columns == NULL) {
        quern__fail_null(function, "list->columns");
        return false;
    }
    if (wanted->column_count > QUERN_MAX_GETTER_COLUMNS) {
        quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                    "%s: %u columns; there may be at most %u (QUERN_MAX_GETTER_COLUMNS)", function,
                    wanted->column_count, QUERN_MAX_GETTER_COLUMNS);
        return false;
    }
    for (uint32_t i = 0; i < wanted->column_count; i++) {
        const quern_getter_column *column = &wanted->columns[i];
        const quern__getter *getter = (const quern__getter *)column->getter;
        if (getter == NULL || (column->values == NULL && list->capacity > 0)) {
            quern__fail_null(function,
                             getter == NULL ? "list->columns[].getter" : "list->columns[].values");
            return false;
        }
        if (getter->world != world) {
            quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                        "%s: the getter of column %u belongs to another world: create it for this one",
                        function, i);
            return false;
        }
        list->columns[i] = (listed_column){.positions = getter->table.positions, .values = column->values};
    }
    return true;
}

uint64_t quern_entity_list_sources_many(const quern_world *world, const quern_source_list *list)
{
    QUERN__NEED_OR(list, 0);
    if (list->counts != NULL && list->target_count > 0)
        memset(list->counts, 0, list->target_count * sizeof *list->counts);
    QUERN__NEED_OR(world, 0);
    if (list->target_count > 0 && list->targets == NULL) {
        quern__fail_null(__func__, "list->targets");
        return 0;
    }
    quern__relation *known;
    if (quern__world_check_unlocked(world, __func__) != QUERN_OK ||
        quern__in_call(quern__relation_check(&world->storage, list->relation, &known), __func__) !=
            QUERN_OK)
        return 0;
    listing found;
    found.storage = &world->storage;
    found.links = &known->links;
    found.edges = known->is_many ? &known->edges : NULL;
    found.sources = list->sources;
    found.capacity = list->sources != NULL ? list->capacity : 0;
    found.counts = list->counts;
    if (!read_columns(world, list, &found, __func__)) return 0;
    uint64_t source_count;
    if (found.edges != NULL)
        source_count = list_edge_sources(&found, list->column_count, list->targets, list->target_count);
    else if (list->column_count == 0)
        source_count = list_sources(&found, 0, list->targets, list->target_count);
    else if (list->column_count == 2)
        source_count = list_sources(&found, 2, list->targets, list->target_count);
    else
        source_count = list_sources(&found, list->column_count, list->targets, list->target_count);
    const uint64_t listed_count = source_count < found.capacity ? source_count : found.capacity;
    for (uint32_t i = 0; i < list->column_count; i++) {
        const quern__getter *getter = (const quern__getter *)list->columns[i].getter;
        if (!list->columns[i].writes || !quern__getter_notes_writes(getter)) continue;
        for (uint64_t k = 0; k < listed_count; k++)
            if (list->columns[i].values[k] != NULL)
                quern__getter_note_written(
                    getter, quern__entities_find(&world->storage.entities, list->sources[k])->location);
    }
    return source_count;
}
