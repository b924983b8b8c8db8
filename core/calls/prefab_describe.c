/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Makes prefabs from lists of members. Each member gets the set of components that an entity with its values and
 * targets would have; prefab_capture.c compiles the sets and values like those of a captured tree. */

#include "core/base/hash.h"
#include "core/calls/calls_internal.h"
#include "core/calls/prefab_capture.h"
#include "core/relations/naming.h"
#include "core/storage/required.h"

/* A sorted set of component indices, with room for required components. */
typedef struct member_set {
    uint16_t indices[QUERN_MAX_COMPONENTS];
    uint32_t count;
    uint32_t level_count; /* number of relations with levels in the set; each adds a tag to the entity */
} member_set;

/* ---------------------------------------------------------------------------------------------- sets */

/* Returns false if the set has the component already. */
static bool insert(member_set *set, uint32_t index)
{
    uint32_t i = set->count;
    while (i > 0 && set->indices[i - 1] > index)
        i--;
    if (i > 0 && set->indices[i - 1] == index) return false;
    memmove(&set->indices[i + 1], &set->indices[i], (set->count - i) * sizeof set->indices[0]);
    set->indices[i] = (uint16_t)index;
    set->count++;
    return true;
}

static quern_result fail_duplicate(const quern_world *world, uint32_t index)
{
    return quern__fail(QUERN_ERROR_DUPLICATE_COMPONENT, "it has '%s' twice: list each component once",
                       quern__components_type(&world->storage.components, index)->name);
}

static quern_result add_value(const quern_world *world, const quern_prefab_value *value, member_set *set)
{
    const quern__components *components = &world->storage.components;
    const quern_result result = quern__components_check(components, value->component);
    if (result != QUERN_OK) return result;
    const uint32_t index = quern__component_index(value->component);
    const quern__type *type = quern__components_type(components, index);
    if (quern__components_is_managed(components, index))
        return quern__fail(
            QUERN_ERROR_INVALID_ARGUMENT,
            "'%s' is maintained by Quern, so it has no value here: list targets of relations "
            "in 'targets', and the hierarchy in 'parent'",
            type->name);
    if (type->size_bytes == 0 && value->value != NULL)
        return quern__fail(QUERN_ERROR_INVALID_ARGUMENT, "'%s' is a tag and has a value: set it to NULL",
                           type->name);
    if (value->is_disabled && !quern__components_has_flag(components, index, QUERN__FLAG_CAN_DISABLE))
        return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                           "'%s' cannot be disabled: register it with can_disable, or clear is_disabled",
                           type->name);
    return insert(set, index) ? QUERN_OK : fail_duplicate(world, index);
}

/* Checks the entity of a target: a member of the list, or a living entity. */
static quern_result check_target_entity(const quern__prefab_capture *it, quern_entity target)
{
    const quern__entities *entities = &it->world->storage.entities;
    if (!quern_entity_is_provisional(target)) return quern__entities_check(entities, target);
    const uint32_t index = quern_entity_index(target);
    if (!quern_entity_equal(target, quern_prefab_member_handle(index)))
        return quern__fail(QUERN_ERROR_PROVISIONAL_ENTITY,
                           "the handle is provisional, which is valid only in its callback: use "
                           "quern_prefab_member_handle");
    if (index >= it->parts.count)
        return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                           "there is no member %u, since the list has %u: pass a lower index", index,
                           it->parts.count);
    return QUERN_OK;
}

/* Whether an earlier target of the member is the same one of the same relation. */
static bool has_target_before(const quern_prefab_member_def *member, uint32_t i)
{
    for (uint32_t k = 0; k < i; k++)
        if (member->targets[k].relation.bits == member->targets[i].relation.bits &&
            quern_entity_equal(member->targets[k].target, member->targets[i].target))
            return true;
    return false;
}

static quern_result add_target(const quern__prefab_capture *it, const quern_prefab_member_def *member,
                               uint32_t i, member_set *set)
{
    const quern__storage *storage = &it->world->storage;
    quern__relation *relation;
    quern_result result = quern__relation_check(storage, member->targets[i].relation, &relation);
    if (result != QUERN_OK) return result;
    const char *name = quern__relation_name(storage, relation);
    if (relation == storage->relations->parent)
        return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                           "the relation is '%s', the hierarchy: set 'parent' of the member", name);
    result = check_target_entity(it, member->targets[i].target);
    if (result == QUERN_OK &&
        quern_entity_equal(member->targets[i].target,
                           quern_prefab_member_handle((uint32_t)(member - it->described))))
        result = quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                             "the member cannot be its own target: remove the target");
    if (result != QUERN_OK) return quern__message_add_call(result, name, NULL);
    const bool is_new = insert(set, relation->component_index);
    if (is_new) set->level_count += relation->has_levels;
    if (is_new || (relation->is_many && !has_target_before(member, i))) return QUERN_OK;
    return quern__fail(QUERN_ERROR_DUPLICATE_COMPONENT,
                       relation->is_many ? "it has a target in '%s' twice: list it once"
                                         : "it has two targets in '%s': keep one, or register the relation "
                                           "with .many",
                       name);
}

/* Adds the slots in which the root has members as its parts. */
static quern_result add_slots(const quern__prefab_capture *it, member_set *set)
{
    for (uint32_t i = 0; i < it->parts.count; i++) {
        const quern_component slot = it->described[i].slot;
        if (quern_component_is_null(slot)) continue;
        quern_result result = i > 0 ? quern__prefab_check_slot(it->world, slot)
                                    : quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                                                  "the root is no part of itself: clear its slot");
        if (result == QUERN_OK && !insert(set, quern__component_index(slot)))
            result = fail_duplicate(it->world, quern__component_index(slot));
        if (result != QUERN_OK) return quern__message_add_element(result, "the slot of member", i);
    }
    return QUERN_OK;
}

static quern_result list_values(const quern__prefab_capture *it, uint32_t i, member_set *set)
{
    const quern_prefab_member_def *member = &it->described[i];
    if (member->value_count > 0 && member->values == NULL)
        return quern__fail(QUERN_ERROR_NULL_ARGUMENT, "'values' is NULL, and value_count is %u: set both",
                           member->value_count);
    if (member->target_count > 0 && member->targets == NULL)
        return quern__fail(QUERN_ERROR_NULL_ARGUMENT, "'targets' is NULL, and target_count is %u: set both",
                           member->target_count);
    for (uint32_t k = 0; k < member->value_count; k++) {
        const quern_result result = add_value(it->world, &member->values[k], set);
        if (result != QUERN_OK) return quern__message_add_element(result, "value", k);
    }
    for (uint32_t k = 0; k < member->target_count; k++) {
        const quern_result result = add_target(it, member, k, set);
        if (result != QUERN_OK) return quern__message_add_element(result, "target", k);
    }
    return QUERN_OK;
}

static quern_result append_set(quern__prefab_capture *it, uint32_t i)
{
    const quern__storage *storage = &it->world->storage;
    member_set set = {.count = 0};
    quern_result result = list_values(it, i, &set);
    if (i > 0 && result == QUERN_OK) {
        insert(&set, storage->relations->parent->component_index);
        set.level_count++;
    }
    if (result == QUERN_OK && i == 0) result = add_slots(it, &set);
    if (result != QUERN_OK) return result;
    set.count = quern__components_complete(&storage->components, set.indices, set.count);
    if (set.count + set.level_count > QUERN_MAX_ENTITY_COMPONENTS)
        return quern__fail(
            QUERN_ERROR_TOO_MANY_COMPONENTS,
            "it would have %u components; the limit is %d (QUERN_MAX_ENTITY_COMPONENTS): list fewer",
            set.count + set.level_count, QUERN_MAX_ENTITY_COMPONENTS);
    if (!quern__array_reserve(it->allocator, &it->set_indices, it->set_indices.count + set.count))
        return quern__prefab_capture_fail_memory();
    if (set.count > 0)
        memcpy(it->set_indices.items + it->set_indices.count, set.indices, set.count * sizeof *set.indices);
    it->set_indices.count += set.count;
    it->sets.items[it->sets.count++].count = set.count;
    return QUERN_OK;
}

/* ------------------------------------------------------------------------------- parents and names */

static quern_result check_parent(const quern_prefab_member_def *members, uint32_t i)
{
    const char *name = members[i].name;
    if (i == 0 && (members[0].parent != 0 || (name != NULL && name[0] != '\0')))
        return quern__fail(
            QUERN_ERROR_INVALID_ARGUMENT,
            members[0].parent != 0
                ? "the root has member %u as its parent: set it to 0, and pass the parent of "
                  "an instance when spawning"
                : "the root has a name, and each instance has its own: set it to NULL, and name "
                  "instances by quern_entity_set_name",
            members[0].parent);
    if (i > 0 && members[i].parent >= i)
        return quern__fail(
            QUERN_ERROR_INVALID_ARGUMENT,
            "its parent is member %u, which does not precede it: list parents before their children",
            members[i].parent);
    return name != NULL ? quern__entity_check_name(name) : QUERN_OK;
}

static bool has_name_of(const quern_prefab_member_def *a, const quern_prefab_member_def *b)
{
    return a->parent == b->parent && a->name != NULL && strcmp(a->name, b->name) == 0;
}

/* Finds an earlier member with the name and parent of member i; QUERN_NO_MEMBER if there is none. `hashes` maps hashes
 * of both to the first member with the hash. Room for one more entry must be reserved. */
static uint32_t find_name_before(const quern_prefab_member_def *members, uint32_t i, quern__map *hashes)
{
    const uint64_t hash = quern__hash_word(quern__hash_string(members[i].name), members[i].parent) | 1;
    const uint64_t *first = quern__map_find(hashes, hash);
    if (first == NULL) {
        quern__map_put(hashes, hash, i);
        return QUERN_NO_MEMBER;
    }
    for (uint32_t k = (uint32_t)*first; k < i; k++)
        if (k > 0 && has_name_of(&members[k], &members[i])) return k;
    return QUERN_NO_MEMBER;
}

/* Lists the depths of the members, and checks parents and names. */
static quern_result list_depths(quern__prefab_capture *it)
{
    quern_result result = QUERN_OK;
    for (uint32_t i = 0; i < it->parts.count && result == QUERN_OK; i++) {
        const quern_prefab_member_def *member = &it->described[i];
        result = check_parent(it->described, i);
        if (result == QUERN_OK && i > 0 && member->name != NULL && member->name[0] != '\0') {
            const uint32_t other = find_name_before(it->described, i, &it->members);
            if (other != QUERN_NO_MEMBER)
                result = quern__fail(QUERN_ERROR_SIBLING_NAME_TAKEN,
                                     "member %u has the same parent and the name '%s', too: rename one",
                                     other, member->name);
        }
        if (result != QUERN_OK) return quern__message_add_element(result, "member", i);
        it->depths.items[it->depths.count++] = i > 0 ? it->depths.items[member->parent] + 1 : 0;
    }
    return result;
}

/* ------------------------------------------------------------------------------------------- source */

/* Returns the target of a member in a relation with one target, or NULL. */
static const quern_entity *target_of(const quern__prefab_capture *it, uint32_t i,
                                     const quern__relation *relation)
{
    const quern_prefab_member_def *member = &it->described[i];
    if (relation == it->world->storage.relations->parent)
        return i > 0 ? &it->parts.items[member->parent] : NULL;
    for (uint32_t k = 0; k < member->target_count; k++)
        if (quern__component_index((quern_component){member->targets[k].relation.bits}) ==
            relation->component_index)
            return &member->targets[k].target;
    return NULL;
}

static const void *described_value(const quern__prefab_capture *it, uint32_t i, uint32_t component_index)
{
    const quern__component *component = it->world->storage.components.list.items[component_index];
    const quern_prefab_member_def *member = &it->described[i];
    if (component->managed.relation != NULL) return target_of(it, i, component->managed.relation);
    for (uint32_t k = 0; k < member->value_count; k++)
        if (quern__component_index(member->values[k].component) == component_index)
            return member->values[k].value;
    for (uint32_t k = 1; i == 0 && k < it->parts.count; k++)
        if (!quern_component_is_null(it->described[k].slot) &&
            quern__component_index(it->described[k].slot) == component_index)
            return &it->parts.items[k];
    return NULL;
}

static const char *described_name(const quern__prefab_capture *it, uint32_t i)
{
    const char *name = it->described[i].name;
    return name != NULL && name[0] != '\0' ? name : NULL;
}

static quern_result find_described(const quern__prefab_capture *it, quern_entity entity,
                                   const quern__type *type, const quern_field *field, uint32_t *out_member)
{
    *out_member = QUERN_NO_MEMBER;
    if (!quern_entity_is_provisional(entity)) return QUERN_OK;
    const quern_result result = check_target_entity(it, entity);
    if (result == QUERN_OK) *out_member = quern_entity_index(entity);
    if (result == QUERN_OK) return QUERN_OK;
    char where[2 * QUERN_MAX_NAME_BYTES + 32];
    snprintf(where, sizeof where, "field '%s' of '%s'", field->name, type->name);
    return quern__message_add_call(result, where, NULL);
}

static quern_result list_disabled(quern__prefab_capture *it)
{
    quern__prefab *prefab = it->prefab;
    for (uint32_t i = 0; i < it->parts.count; i++)
        for (uint32_t k = 0; k < it->described[i].value_count; k++) {
            const quern_prefab_value *value = &it->described[i].values[k];
            if (!value->is_disabled) continue;
            if (!quern__array_reserve(it->allocator, &prefab->toggles, prefab->toggles.count + 1))
                return quern__prefab_capture_fail_memory();
            prefab->toggles.items[prefab->toggles.count++] = (quern__prefab_toggle){
                .member = i, .component_index = quern__component_index(value->component)};
        }
    return QUERN_OK;
}

/* -------------------------------------------------------------------------------------------- links */

static quern_result add_link(quern__prefab_capture *it, quern__relation *relation,
                             quern__prefab_link_indices *links, uint32_t source, quern_entity target)
{
    const bool is_member = quern_entity_is_provisional(target);
    const bool is_done = quern__prefab_capture_add_link(
        it, relation, links, source, is_member ? quern_entity_index(target) : QUERN_NO_MEMBER,
        is_member ? quern_entity_null() : target);
    return is_done ? QUERN_OK : quern__prefab_capture_fail_memory();
}

static quern_result add_edges(quern__prefab_capture *it, quern__relation *relation,
                              quern__prefab_link_indices *links, uint32_t i)
{
    const quern_prefab_member_def *member = &it->described[i];
    quern_result result = QUERN_OK;
    for (uint32_t k = 0; k < member->target_count && result == QUERN_OK; k++)
        if (quern__component_index((quern_component){member->targets[k].relation.bits}) ==
            relation->component_index)
            result = add_link(it, relation, links, i, member->targets[k].target);
    return result;
}

#define UNKNOWN_DEPTH UINT32_MAX

/* Finds the number of links from a member up to the end of its path in a relation, and stores it for all members of the
 * path. path: room for all members. Fails with CYCLE. */
static quern_result find_depth(const quern__prefab_capture *it, const quern__relation *relation, uint32_t i,
                               uint32_t *depths, uint32_t *path)
{
    uint32_t count = 0, at = i;
    while (depths[at] == UNKNOWN_DEPTH) {
        if (count == it->parts.count)
            return quern__fail(
                QUERN_ERROR_CYCLE,
                "member %u: its targets in relation '%s' lead into a cycle: remove one of them", i,
                quern__relation_name(&it->world->storage, relation));
        path[count++] = at;
        const quern_entity *target = target_of(it, at, relation);
        if (target == NULL || !quern_entity_is_provisional(*target)) {
            depths[at] = target != NULL;
            count--;
            break;
        }
        at = quern_entity_index(*target);
    }
    uint32_t depth = depths[at];
    while (count-- > 0)
        depths[path[count]] = ++depth;
    return QUERN_OK;
}

/* Adds the links of a relation with levels: targets before sources, and the sources of each target in the order of
 * members. scratch: room for 3 numbers per member, and 1 more. Fails with CYCLE, or OUT_OF_MEMORY. */
static quern_result add_by_depth(quern__prefab_capture *it, quern__relation *relation,
                                 quern__prefab_link_indices *links, uint32_t *scratch)
{
    const uint32_t count = it->parts.count;
    uint32_t *depths = scratch, *next = scratch + count, *firsts = scratch + 2 * (size_t)count;
    for (uint32_t i = 0; i < count; i++)
        depths[i] = UNKNOWN_DEPTH;
    for (uint32_t i = 0; i < count; i++) {
        const quern_result result = find_depth(it, relation, i, depths, firsts);
        if (result != QUERN_OK) return result;
    }
    /* lists of the members of each depth */
    for (uint32_t depth = 0; depth <= count; depth++)
        firsts[depth] = QUERN_NO_MEMBER;
    for (uint32_t i = count; i-- > 0;) {
        next[i] = firsts[depths[i]];
        firsts[depths[i]] = i;
    }
    for (uint32_t depth = 1; depth <= count; depth++)
        for (uint32_t i = firsts[depth]; i != QUERN_NO_MEMBER; i = next[i]) {
            const quern_result result = add_link(it, relation, links, i, *target_of(it, i, relation));
            if (result != QUERN_OK) return result;
        }
    return QUERN_OK;
}

static quern_result add_unordered(quern__prefab_capture *it, quern__relation *relation,
                                  quern__prefab_link_indices *links)
{
    quern_result result = QUERN_OK;
    for (uint32_t i = 0; i < it->parts.count && result == QUERN_OK; i++) {
        const quern_entity *target = relation->is_many ? NULL : target_of(it, i, relation);
        if (relation->is_many)
            result = add_edges(it, relation, links, i);
        else if (target != NULL)
            result = add_link(it, relation, links, i, *target);
    }
    return result;
}

static quern_result list_described_links(quern__prefab_capture *it, quern__relation *relation,
                                         quern__prefab_link_indices *links)
{
    if (relation->is_many || !relation->has_levels) return add_unordered(it, relation, links);
    const size_t bytes = (3 * (size_t)it->parts.count + 1) * sizeof(uint32_t);
    uint32_t *scratch = quern__allocate(it->allocator, bytes, _Alignof(uint32_t));
    if (scratch == NULL) return quern__prefab_capture_fail_memory();
    const quern_result result = add_by_depth(it, relation, links, scratch);
    quern__release(it->allocator, scratch, bytes, _Alignof(uint32_t));
    return result;
}

/* ---------------------------------------------------------------------------------------------- call */

static const quern__prefab_source description = {.value = described_value,
                                                 .name = described_name,
                                                 .find_member = find_described,
                                                 .list_toggles = list_disabled,
                                                 .list_links = list_described_links};

/* Lists depths and sets of all members. Precondition: the world has the hierarchy, unless there is one member. */
static quern_result list_members(quern__prefab_capture *it, uint32_t count)
{
    if (!quern__array_reserve(it->allocator, &it->depths, count) ||
        !quern__array_reserve(it->allocator, &it->sets, count) ||
        !quern__array_reserve(it->allocator, &it->parts, count) ||
        !quern__map_reserve(&it->members, it->allocator, count))
        return quern__prefab_capture_fail_memory();
    while (it->parts.count < count) {
        it->parts.items[it->parts.count] = quern_prefab_member_handle(it->parts.count);
        it->parts.count++;
    }
    quern_result result = list_depths(it);
    for (uint32_t i = 0; i < count && result == QUERN_OK; i++) {
        result = append_set(it, i);
        if (result != QUERN_OK) return quern__message_add_element(result, "member", i);
    }
    /* the list does not move any more, now that all sets are in it */
    for (uint32_t i = 0, first = 0; i < it->sets.count; first += it->sets.items[i++].count)
        it->sets.items[i].indices = it->sets.items[i].count > 0 ? &it->set_indices.items[first] : NULL;
    return result;
}

static quern_result create(quern_world *world, const quern_prefab_member_def *members, uint32_t count,
                           quern_prefab *out_prefab)
{
    static const char function[] = "quern_prefab_create";
    if (world == NULL) return quern__fail_null(function, "world");
    if (members == NULL) return quern__fail_null(function, "members");
    if (out_prefab == NULL) return quern__fail_null(function, "out_prefab");
    quern_result result = quern__world_check_unlocked(world, function);
    if (result == QUERN_OK && count == 0)
        result = quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                             "the list has no members: a prefab has at least a root");
    if (result == QUERN_OK && count > QUERN_MAX_PREFAB_MEMBERS)
        result = quern__fail(QUERN_ERROR_LIMIT,
                             "the list has %u members; the limit is %d (QUERN_MAX_PREFAB_MEMBERS): make "
                             "several prefabs",
                             count, QUERN_MAX_PREFAB_MEMBERS);
    if (result != QUERN_OK) return quern__in_call(result, function);
    if (count > 1 && world->storage.relations->parent == NULL)
        result = quern__relation_register(&world->storage, &quern__parent_def,
                                          &world->storage.relations->parent);
    if (result != QUERN_OK) return quern__in_call(result, function);
    const quern_allocator *allocator = &world->storage.allocator;
    quern__prefab_capture it = {.world = world,
                                .allocator = allocator,
                                .prefab = quern__prefab_create(allocator),
                                .source = &description,
                                .described = members};
    result = it.prefab != NULL ? list_members(&it, count) : quern__prefab_capture_fail_memory();
    return quern__in_call(quern__prefab_capture_finish(&it, result, out_prefab), function);
}

quern_result quern_prefab_create(quern_world *world, const quern_prefab_member_def *members,
                                 uint32_t member_count, quern_prefab *out_prefab)
{
    if (!quern__world_enter(world, "quern_prefab_create")) return QUERN_ERROR_WORLD_LOCKED;
    return quern__world_leave(world, create(world, members, member_count, out_prefab));
}
