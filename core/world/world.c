/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "core/world/world_internal.h"

#include "core/world/event_internal.h"
#include "core/world/world_commands.h"

/* ----------------------------------------------------------------------------------------- world tags */

/* One bit per tag that is in use. Worlds may be created on any thread. Tag 0 stands for provisional
 * handles. */
static _Atomic uint64_t tags_used[4];

/* Where the next search starts: after the tag given last, so that a tag comes back as late as possible. */
static _Atomic uint32_t tag_start;

/* How many worlds have had each tag. */
static _Atomic uint32_t tag_uses[QUERN_MAX_WORLDS + 1];

/* 1 to 255, or 0 when all are in use. The start is relaxed: it is a hint where to look. */
static uint32_t tag_take(void)
{
    uint32_t start = atomic_load_explicit(&tag_start, memory_order_relaxed);
    for (uint32_t i = 0; i < QUERN_MAX_WORLDS; i++) {
        uint32_t tag = 1 + (start + i) % QUERN_MAX_WORLDS;
        uint64_t bit = 1ull << tag % 64;
        /* acquire: pairs with the release in tag_give, the last act of the world that had the tag */
        if ((atomic_fetch_or_explicit(&tags_used[tag / 64], bit, memory_order_acquire) & bit) == 0) {
            atomic_store_explicit(&tag_start, tag, memory_order_relaxed);
            return tag;
        }
    }
    return 0;
}

/* Release: pairs with the acquire in tag_take. */
static void tag_give(uint32_t tag)
{
    atomic_fetch_and_explicit(&tags_used[tag / 64], ~(1ull << tag % 64), memory_order_release);
}

/* ----------------------------------------------------------------------------------------- life cycle */

/* The use count is relaxed: whoever has the tag is the only one to touch it, and the tag carries the
 * order. */
static quern_result world_init(const quern_world_def *def, const quern_allocator *allocator, uint32_t tag,
                               quern_world **out_world)
{
    const uint32_t uses = atomic_fetch_add_explicit(&tag_uses[tag], 1, memory_order_relaxed);
    quern_world *world = quern__allocate(allocator, sizeof *world, _Alignof(quern_world));
    if (world == NULL)
        return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "quern_world_create: no memory for a world");
    *world = (quern_world){.resources = {.world_tag = tag},
                           .next_serial = (uint64_t)tag << 16,
                           .empty_archetype_checks_per_sync = def->empty_archetype_checks_per_sync};
    quern_result result =
        quern__storage_init(&world->storage, allocator, quern__handle_high_first(tag, uses));
    if (result == QUERN_OK) {
        *out_world = world;
        return QUERN_OK;
    }
    quern__storage_release(&world->storage);
    quern__release(allocator, world, sizeof *world, _Alignof(quern_world));
    return result;
}

quern_result quern_world_create(const quern_world_def *def, quern_world **out_world)
{
    static const quern_world_def zero;
    if (def == NULL) def = &zero;
    if (out_world == NULL) return quern__fail_null("quern_world_create", "out_world");
    quern_allocator allocator;
    quern_result result = quern__choose_allocator(&def->allocator, "quern_world_create", &allocator);
    if (result != QUERN_OK) return result;

    uint32_t tag = tag_take();
    if (tag == 0)
        return quern__fail(QUERN_ERROR_LIMIT,
                           "quern_world_create: %d worlds are alive already (QUERN_MAX_WORLDS)",
                           QUERN_MAX_WORLDS);
    result = world_init(def, &allocator, tag, out_world);
    if (result != QUERN_OK) tag_give(tag);
    return quern__in_call(result, "quern_world_create");
}

void quern_world_destroy(quern_world *world)
{
    if (world == NULL) return;
    if (world->locked) {
        quern__violation(QUERN_ERROR_WORLD_LOCKED,
                         "quern_world_destroy: " QUERN__WORLD_LOCKERS " is running on this world");
        return;
    }
    if (world->user_count > 0) {
        quern__violation(
            QUERN_ERROR_INVALID_ARGUMENT,
            "quern_world_destroy: %u queries, getters, readers and schedules still use the world; "
            "destroy them first",
            world->user_count);
        return;
    }
    quern_allocator allocator = world->storage.allocator;
    uint32_t tag = world->resources.world_tag;
    quern__world_release_commands(world);
    quern__events_release(world);
    quern__storage_release(&world->storage); /* first: hooks of components may use resources */
    quern__resources_release(&world->resources, &allocator);
    quern__release(&allocator, world, sizeof *world, _Alignof(quern_world));
    tag_give(tag);
}

quern_result quern__world_fail_locked(const char *function)
{
    return quern__fail(QUERN_ERROR_WORLD_LOCKED,
                       "%s: " QUERN__WORLD_LOCKERS " is running on this world; call it afterwards, or in a "
                       "system use views, lookups, resources and commands, or make the system exclusive",
                       function);
}

/* ---------------------------------------------------------------------------- one thread at a time */

QUERN__FAST_THREAD_LOCAL const quern_world *quern__world_of_callback;

/* Relaxed: a thread that reads its own mark needs no order with itself. */
bool quern__world_is_claimed(const quern_world *world)
{
    return atomic_load_explicit(&world->owner, memory_order_relaxed) == quern__this_thread();
}

static QUERN__SLOW_PATH void report_claimed(const quern_world *world, const char *function)
{
    /* Relaxed: the name is for the message alone. */
    const char *other = atomic_load_explicit(&world->owner_function, memory_order_relaxed);
    quern__violation(QUERN_ERROR_WORLD_LOCKED,
                     "%s: another thread is in a call on the same world (%s, world %u); a world is "
                     "used by one thread at a time",
                     function, other != NULL ? other : "another call", world->resources.world_tag);
}

/* `locked` is not read here: while another thread holds the claim, that would be a race. */
bool quern__world_claim(quern_world *world, const char *function)
{
    const void *no_owner = NULL, *me = quern__this_thread();
    /* Relaxed: a thread that reads its own mark needs no order with itself. */
    if (atomic_load_explicit(&world->owner, memory_order_relaxed) != me) {
        /* Acquire: pairs with the release of the thread that gave the claim up last. */
        if (!atomic_compare_exchange_strong_explicit(&world->owner, &no_owner, me, memory_order_acquire,
                                                     memory_order_relaxed)) {
            if (quern__world_of_callback == world) return true;
            report_claimed(world, function);
            return false;
        }
        atomic_store_explicit(&world->owner_function, function, memory_order_relaxed);
    }
    world->claim_depth++;
    return true;
}

/* Release: pairs with the acquire of the next thread that claims the world. */
void quern__world_unclaim(quern_world *world)
{
    if (!quern__world_is_claimed(world)) return;
    if (--world->claim_depth == 0) atomic_store_explicit(&world->owner, NULL, memory_order_release);
}

/* Relaxed: the owner reads its own mark. Release: pairs with the acquire of the next thread that claims the world. */
quern__world_claim_state quern__world_suspend_claim(quern_world *world)
{
    const quern__world_claim_state state = {
        .function = atomic_load_explicit(&world->owner_function, memory_order_relaxed),
        .depth = world->claim_depth};
    world->claim_depth = 0;
    atomic_store_explicit(&world->owner, NULL, memory_order_release);
    return state;
}

bool quern__world_resume_claim(quern_world *world, const quern__world_claim_state *state)
{
    if (!quern__world_claim(world, state->function)) return false;
    world->claim_depth = state->depth;
    return true;
}

/* ------------------------------------------------------------------------------------- components */

static quern_result register_component(quern_world *world, const quern_component_def *def,
                                       quern_component *out_component)
{
    if (world == NULL) return quern__fail_null("quern_component_register", "world");
    if (def == NULL) return quern__fail_null("quern_component_register", "def");
    if (out_component == NULL) return quern__fail_null("quern_component_register", "out_component");
    quern_result result = quern__world_check_unlocked(world, "quern_component_register");
    if (result != QUERN_OK) return result;
    result = quern__components_register(&world->storage.components, &world->storage.allocator, def,
                                        out_component);
    return quern__in_call(result, "quern_component_register");
}

quern_result quern_component_register(quern_world *world, const quern_component_def *def,
                                      quern_component *out_component)
{
    if (!quern__world_enter(world, "quern_component_register")) return QUERN_ERROR_WORLD_LOCKED;
    return quern__world_left(world, register_component(world, def, out_component));
}

quern_component quern_component_find(const quern_world *world, const char *name)
{
    if (world == NULL || name == NULL) {
        quern__fail_null("quern_component_find", world ? "name" : "world");
        return (quern_component){0};
    }
    return quern__components_find(&world->storage.components, name);
}

const char *quern_component_name(const quern_world *world, quern_component component)
{
    if (world == NULL) {
        quern__fail_null("quern_component_name", "world");
        return NULL;
    }
    const quern_result result = quern__components_check(&world->storage.components, component);
    if (quern__in_call(result, "quern_component_name") != QUERN_OK) return NULL;
    return quern__components_type(&world->storage.components, quern__component_index(component))->name;
}

quern_result quern_component_get_size(const quern_world *world, quern_component component,
                                      uint32_t *out_size_bytes)
{
    if (world == NULL) return quern__fail_null("quern_component_get_size", "world");
    if (out_size_bytes == NULL) return quern__fail_null("quern_component_get_size", "out_size_bytes");
    const quern_result result = quern__components_check(&world->storage.components, component);
    if (result != QUERN_OK) return quern__in_call(result, "quern_component_get_size");
    *out_size_bytes =
        quern__components_type(&world->storage.components, quern__component_index(component))->size_bytes;
    return QUERN_OK;
}

/* -------------------------------------------------------------------------------------- resources */

static quern_result register_resource(quern_world *world, const quern_resource_def *def,
                                      quern_resource *out_resource)
{
    if (world == NULL) return quern__fail_null("quern_resource_register", "world");
    if (def == NULL) return quern__fail_null("quern_resource_register", "def");
    if (out_resource == NULL) return quern__fail_null("quern_resource_register", "out_resource");
    quern_result result = quern__world_check_unlocked(world, "quern_resource_register");
    if (result != QUERN_OK) return result;
    result = quern__resources_register(&world->resources, &world->storage.allocator, def, out_resource);
    return quern__in_call(result, "quern_resource_register");
}

quern_result quern_resource_register(quern_world *world, const quern_resource_def *def,
                                     quern_resource *out_resource)
{
    if (!quern__world_enter(world, "quern_resource_register")) return QUERN_ERROR_WORLD_LOCKED;
    return quern__world_left(world, register_resource(world, def, out_resource));
}

quern_resource quern_resource_find(const quern_world *world, const char *name)
{
    if (world == NULL || name == NULL) {
        quern__fail_null("quern_resource_find", world ? "name" : "world");
        return (quern_resource){0};
    }
    return quern__resources_find(&world->resources, name);
}

quern_result quern_resource_get_size(const quern_world *world, quern_resource resource,
                                     uint32_t *out_size_bytes)
{
    if (world == NULL) return quern__fail_null("quern_resource_get_size", "world");
    if (out_size_bytes == NULL) return quern__fail_null("quern_resource_get_size", "out_size_bytes");
    const quern_result result = quern__resources_check(&world->resources, resource);
    if (result != QUERN_OK) return quern__in_call(result, "quern_resource_get_size");
    *out_size_bytes = world->resources.list.items[quern__resource_index(resource)].type.size_bytes;
    return QUERN_OK;
}

void *quern_resource_get(quern_world *world, quern_resource resource)
{
    if (world == NULL) {
        quern__fail_null("quern_resource_get", "world");
        return NULL;
    }
    if (quern__world_check_unlocked(world, "quern_resource_get") != QUERN_OK) return NULL;
    const quern_result result = quern__resources_check(&world->resources, resource);
    if (quern__in_call(result, "quern_resource_get") != QUERN_OK) return NULL;
    return world->resources.list.items[quern__resource_index(resource)].value;
}

/* ------------------------------------------------------------------------------------------ combines */

static quern_result register_combine(quern_world *world, const quern_combine_def *def,
                                     quern_combine *out_combine)
{
    static const char function[] = "quern_combine_register";
    if (world == NULL) return quern__fail_null(function, "world");
    if (def == NULL) return quern__fail_null(function, "def");
    if (out_combine == NULL) return quern__fail_null(function, "out_combine");
    quern_result result = quern__world_check_unlocked(world, function);
    if (result != QUERN_OK) return result;
    result = quern__combines_register(&world->storage.combines, &world->storage.allocator,
                                      world->resources.world_tag, def, out_combine);
    return quern__in_call(result, function);
}

quern_result quern_combine_register(quern_world *world, const quern_combine_def *def,
                                    quern_combine *out_combine)
{
    if (!quern__world_enter(world, "quern_combine_register")) return QUERN_ERROR_WORLD_LOCKED;
    return quern__world_left(world, register_combine(world, def, out_combine));
}

/* ----------------------------------------------------------------------------- lists of components */

quern_result quern__world_fail_managed(const quern_world *world, quern_component component)
{
    const quern__component *managed =
        world->storage.components.list.items[quern__component_index(component)];
    if (managed->managed.relation != NULL && managed->managed.level == 0)
        return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                           "'%s' is a relation; relate entities one by one, by quern_entity_relate, "
                           "quern_entity_create_with or commands",
                           managed->type.name);
    return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                       "'%s' is kept by the world itself; it follows from other calls", managed->type.name);
}

quern_result quern__world_check_target(const quern_world *world, const quern__relation *relation,
                                       const quern_entity *value)
{
    const char *name = quern__relation_name(&world->storage, relation);
    if (value == NULL)
        return quern__fail(QUERN_ERROR_NULL_ARGUMENT,
                           "relation '%s' needs a value: the target, a quern_entity", name);
    quern_result result = quern__entities_check(&world->storage.entities, *value);
    return result != QUERN_OK ? quern__name_failure(result, name, NULL) : QUERN_OK;
}

/* With room for the tags of levels that come with components of the list. */
typedef struct listed_components {
    uint16_t indices[2 * QUERN_MAX_ENTITY_COMPONENTS];
    uint32_t count;
} listed_components;

/* Keeps the set sorted; lists are short, so insertion it is. */
static quern_result set_insert(listed_components *set, const quern_world *world, quern_component component)
{
    uint16_t index = (uint16_t)quern__component_index(component);
    uint32_t i = set->count;
    for (; i > 0 && set->indices[i - 1] >= index; i--)
        if (set->indices[i - 1] == index)
            return quern__fail(QUERN_ERROR_DUPLICATE_COMPONENT,
                               "'%s' stands twice in the list of components",
                               quern__components_type(&world->storage.components, index)->name);
    memmove(&set->indices[i + 1], &set->indices[i], (set->count - i) * sizeof set->indices[0]);
    set->indices[i] = index;
    set->count++;
    return QUERN_OK;
}

/* The component of a relation, whose value is the target, and the tag of the level. */
static quern_result insert_relation(listed_components *set, const quern_world *world,
                                    quern_component component, const quern_entity *value)
{
    const quern__storage *storage = &world->storage;
    const quern__relation *relation = quern__relation_of(storage, (quern_relation){component.bits});
    if (relation == NULL) return quern__world_fail_managed(world, component);
    quern_entity target = {0};
    if (value != NULL) memcpy(&target, value, sizeof target); /* it need not be aligned */
    quern_result result = quern__world_check_target(world, relation, value != NULL ? &target : NULL);
    if (result == QUERN_OK) result = set_insert(set, world, component);
    if (result != QUERN_OK || !relation->has_levels) return result;
    const uint32_t level = quern__relation_child_level(relation, quern_entity_index(target));
    const uint32_t tag = quern__relation_tag(relation, level);
    return set_insert(set, world, quern__component_handle(&storage->components, tag));
}

/* values may be NULL, and its elements, too. */
static quern_result collect_set(const quern_world *world, const quern_component *components,
                                const void *const *values, bool takes_relations, uint32_t count,
                                listed_components *set)
{
    if (count > QUERN_MAX_ENTITY_COMPONENTS)
        return quern__fail(QUERN_ERROR_TOO_MANY_COMPONENTS,
                           "a list of %u components; the limit is %d "
                           "(QUERN_MAX_ENTITY_COMPONENTS)",
                           count, QUERN_MAX_ENTITY_COMPONENTS);
    set->count = 0;
    for (uint32_t i = 0; i < count; i++) {
        quern_result result = quern__components_check(&world->storage.components, components[i]);
        if (result != QUERN_OK) return quern__name_element(result, "component", i);
        if (!quern__components_is_managed(&world->storage.components,
                                          quern__component_index(components[i])))
            result = set_insert(set, world, components[i]);
        else if (takes_relations)
            result = insert_relation(set, world, components[i], values != NULL ? values[i] : NULL);
        else
            result = quern__world_fail_managed(world, components[i]);
        if (result != QUERN_OK) return result;
    }
    return QUERN_OK;
}

quern_result quern__world_archetype(quern_world *world, const quern_component *components, uint32_t count,
                                    quern__archetype **out_archetype)
{
    listed_components set;
    quern_result result = collect_set(world, components, NULL, false, count, &set);
    if (result != QUERN_OK) return result;
    return quern__storage_archetype(&world->storage, set.indices, set.count, out_archetype);
}

quern_result quern__world_archetype_related(quern_world *world, const quern_component *components,
                                            const void *const *values, uint32_t count,
                                            quern__archetype **out_archetype)
{
    listed_components set;
    quern_result result = collect_set(world, components, values, true, count, &set);
    if (result != QUERN_OK) return result;
    return quern__storage_archetype(&world->storage, set.indices, set.count, out_archetype);
}

quern_result quern__world_check_handles(const quern_world *world, const quern_component *components,
                                        const void *const *values, uint32_t component_count, uint32_t count,
                                        const char *commands)
{
    quern_result result = QUERN_OK;
    for (uint32_t i = 0; i < component_count && values != NULL && result == QUERN_OK; i++) {
        const uint32_t index = quern__component_index(components[i]);
        if (values[i] != NULL && !quern__components_is_managed(&world->storage.components, index))
            result = quern__type_check_provisional(
                quern__components_type(&world->storage.components, index), values[i], count, commands);
    }
    return result;
}
