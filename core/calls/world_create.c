/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Creates and destroys worlds. */

#include "core/calls/world_commands.h"
#include "core/events/event_internal.h"
#include "core/prefabs/prefab_internal.h"
#include "core/query/query_internal.h"
#include "core/relations/relate.h"
#include "core/world/world_internal.h"

#include <quern/bulk.h>

/* ----------------------------------------------------------------------------------------- world tags */

/* Bits of the tags in use. Worlds may be created on any thread. Tag 0 marks provisional handles. */
static _Atomic uint64_t tags_used[4];

/* The tag that was assigned last. The next search starts after it, so that tags are reused as late as
 * possible. */
static _Atomic uint32_t tag_start;

/* Number of worlds that have had each tag. */
static _Atomic uint32_t tag_uses[QUERN_MAX_WORLDS + 1];

/* Returns a free tag, 1 to 255, or 0 if all are in use. The start is relaxed, since it is only a hint. */
static uint32_t tag_take(void)
{
    uint32_t start = atomic_load_explicit(&tag_start, memory_order_relaxed);
    for (uint32_t i = 0; i < QUERN_MAX_WORLDS; i++) {
        uint32_t tag = 1 + (start + i) % QUERN_MAX_WORLDS;
        uint64_t bit = 1ull << tag % 64;
        /* acquire: pairs with the release in tag_release, the last action of the previous world with this tag */
        if ((atomic_fetch_or_explicit(&tags_used[tag / 64], bit, memory_order_acquire) & bit) == 0) {
            atomic_store_explicit(&tag_start, tag, memory_order_relaxed);
            return tag;
        }
    }
    return 0;
}

/* Release: pairs with the acquire in tag_take. */
static void tag_release(uint32_t tag)
{
    atomic_fetch_and_explicit(&tags_used[tag / 64], ~(1ull << tag % 64), memory_order_release);
}

/* ----------------------------------------------------------------------------------------- life cycle */

static void attach_rooms(quern_world *world)
{
    quern__storage *storage = &world->storage;
    storage->names = &world->names;
    storage->combines = &world->combines;
    quern__relations_init(&world->relations, storage);
    quern__reactions_init(&world->reactions, storage);
}

/* Archetypes at which sync points begin to remove empty ones, if a world has no other setting. */
enum { LEAST_REMOVAL_ARCHETYPES = 256 };

/* The use count is relaxed: only the thread that holds the tag accesses it, and taking the tag orders the accesses. */
static quern_result world_init(const quern_world_def *def, const quern_allocator *allocator, uint32_t tag,
                               quern_world **out_world)
{
    const uint32_t uses = atomic_fetch_add_explicit(&tag_uses[tag], 1, memory_order_relaxed);
    quern_world *world = quern__allocate(allocator, sizeof *world, _Alignof(quern_world));
    if (world == NULL)
        return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "quern_world_create: no memory for a world");
    const bool has_checks = def->empty_archetype_checks_per_sync > 0;
    *world = (quern_world){.resources = {.world_tag = tag},
                           .next_serial = (uint64_t)tag << 16,
                           .removal_count = def->disable_empty_archetype_removal ? UINT32_MAX
                                            : has_checks                         ? 0
                                                                                 : LEAST_REMOVAL_ARCHETYPES,
                           .empty_archetype_checks_per_sync = def->empty_archetype_checks_per_sync};
    quern_result result =
        quern__storage_init(&world->storage, allocator, quern__first_handle_high(tag, uses));
    if (result == QUERN_OK) {
        attach_rooms(world);
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
        return quern__fail(
            QUERN_ERROR_LIMIT,
            "quern_world_create: %d worlds are alive already (QUERN_MAX_WORLDS): destroy one first",
            QUERN_MAX_WORLDS);
    result = world_init(def, &allocator, tag, out_world);
    if (result != QUERN_OK) tag_release(tag);
    return quern__in_call(result, "quern_world_create");
}

/* ------------------------------------------------------------------------------------------ values
 *
 * Values with destroy hooks are destroyed before anything of the world is released, as by calls on entities: children
 * before their parents, and in a world that still answers. Hooks may therefore destroy the queries, getters and readers
 * that values own. */

static bool have_values_hooks(const quern__storage *storage)
{
    for (uint32_t i = 0; i < storage->archetypes.count; i++)
        if (storage->archetypes.items[i]->has_destroy &&
            quern__archetype_row_count(storage->archetypes.items[i]) > 0)
            return true;
    return false;
}

typedef QUERN__ARRAY(quern_entity) entity_list;

static bool append_entity(const quern__storage *storage, entity_list *list, quern_entity entity)
{
    if (!quern__array_reserve(&storage->allocator, list, list->count + 1)) return false;
    list->items[list->count++] = entity;
    return true;
}

/* Appends the entities without parent, then, level by level, those with one. Returns false if out of memory. */
static bool list_entities(const quern__storage *storage, entity_list *list)
{
    const quern__relation *parent = storage->relations->parent;
    for (uint32_t i = 0; i < storage->archetypes.count; i++) {
        const quern__archetype *archetype = storage->archetypes.items[i];
        for (uint32_t c = 0; c < archetype->chunk_count; c++) {
            const quern_entity *handles = quern__archetype_entities(archetype, archetype->slots[c].chunk);
            for (uint32_t row = 0; row < archetype->slots[c].row_count; row++) {
                const uint32_t slot = quern_entity_index(handles[row]);
                const bool is_root =
                    parent == NULL || quern__links_target(&parent->links, slot) == QUERN__SLOT_NONE;
                if (is_root && !append_entity(storage, list, handles[row])) return false;
            }
        }
    }
    for (uint32_t i = 0; parent != NULL && i < list->count; i++) {
        uint32_t child = quern__links_first(&parent->links, quern_entity_index(list->items[i]));
        for (; child != QUERN__SLOT_NONE; child = quern__links_at(&parent->links, child)->next)
            if (!append_entity(storage, list, quern__entity_of_slot(storage, child))) return false;
    }
    return true;
}

/* Destroys all entities, children before their parents. Errors, with nothing changed: OUT_OF_MEMORY. */
static quern_result destroy_entities(quern_world *world)
{
    quern__storage *storage = &world->storage;
    entity_list list = {0};
    quern_result result = QUERN_ERROR_OUT_OF_MEMORY;
    if (list_entities(storage, &list)) {
        for (uint32_t i = 0; i < list.count / 2; i++) {
            const quern_entity other = list.items[list.count - 1 - i];
            list.items[list.count - 1 - i] = list.items[i];
            list.items[i] = other;
        }
        result = quern_entity_destroy_many(world, list.items, list.count);
    }
    quern__array_release(&storage->allocator, &list);
    return result;
}

/* Drops the waiting commands and events that may have values with destroy hooks, and gives resources with such hooks
 * their first values. */
static void destroy_other_values(quern_world *world)
{
    const quern__components *components = &world->storage.components;
    for (uint32_t i = 0; i < components->list.count; i++)
        if (components->list.items[i]->type.hooks.destroy != NULL) quern__world_release_commands(world);
    for (uint32_t i = 0; i < world->resources.list.count; i++) {
        quern__resource *resource = &world->resources.list.items[i];
        if (resource->type.hooks.destroy == NULL) continue;
        quern__type_destroy(&resource->type, resource->value, 1);
        quern__type_construct(&resource->type, resource->value, 1);
    }
    quern__events_drop_hooked(world);
}

/* Names an object that refers to the world. */
static void name_user(const quern_world *world, char *text, size_t bytes)
{
    const quern__storage *storage = &world->storage;
    const quern__query *query = storage->first_query;
    if (world->has_history)
        (void)snprintf(text, bytes, "a history");
    else if (world->first_schedule != NULL)
        (void)snprintf(text, bytes, "a schedule (quern_world_list_schedules lists them)");
    else if (query != NULL)
        (void)snprintf(text, bytes, "query %u, '%s'", query->number,
                       query->name != NULL ? query->name : "");
    else if (storage->first_position_table != NULL)
        (void)snprintf(
            text, bytes, "a getter of component '%s'",
            quern__components_type(&storage->components, storage->first_position_table->component_index)
                ->name);
    else
        quern__events_name_reader(world, text, bytes);
}

static void refuse_destroy(const quern_world *world, const char *state)
{
    char user[2 * QUERN_MAX_NAME_BYTES + 64] = "";
    name_user(world, user, sizeof user);
    quern__report_violation(
        QUERN_ERROR_INVALID_ARGUMENT,
        "quern_world_destroy: %s still refers to the world, %u objects in all; %s: destroy "
        "queries, getters, event readers, schedules and histories first",
        user, world->user_count, state);
}

/* Destroys the values that may own queries, getters and readers. Returns false, with a message, if the world has other
 * users. */
static bool end_users(quern_world *world)
{
    if (world->user_count > 0 && (world->has_history || world->first_schedule != NULL)) {
        refuse_destroy(world, "nothing was changed");
        return false;
    }
    if (have_values_hooks(&world->storage) && destroy_entities(world) != QUERN_OK &&
        world->user_count > 0) {
        refuse_destroy(world, "there is no memory to destroy the entities, which may own objects");
        return false;
    }
    if (world->user_count > 0) destroy_other_values(world);
    if (world->user_count == 0) return true;
    refuse_destroy(world, "values with destroy hooks were destroyed, since they may own objects");
    return false;
}

void quern_world_destroy(quern_world *world)
{
    if (world == NULL) return;
    if (world->locked) {
        quern__report_violation(QUERN_ERROR_WORLD_LOCKED,
                                "quern_world_destroy: " QUERN__WORLD_LOCKERS
                                " is running on this world; destroy the world afterwards");
        return;
    }
    if (!end_users(world)) return;
    quern_allocator allocator = world->storage.allocator;
    uint32_t tag = world->resources.world_tag;
    quern__world_release_commands(world);
    quern__events_release(world);
    quern__prefabs_release(&world->storage);
    quern__reactions_release(&world->storage);
    quern__storage_release(&world->storage); /* before resources, which hooks of components may use */
    quern__relations_release(&world->relations, &allocator);
    quern__names_release(&world->names, &allocator);
    quern__array_release(&allocator, &world->combines.list);
    quern__resources_release(&world->resources, &allocator);
    quern__release(&allocator, world, sizeof *world, _Alignof(quern_world));
    tag_release(tag);
}
