/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* The calls on a world as a whole: everything here concerns what all rooms below keep for it.
 *
 * In order: tags, creating a world, destroying it with its values; reserving memory; trimming it; removal of archetypes
 * without rows, by a call and at sync points. */
#include "core/entities/entities_internal.h"

#include "core/events/event_internal.h"
#include "core/names/name_internal.h"
#include "core/playback/playback.h"
#include "core/prefabs/prefab_internal.h"
#include "core/query/query_internal.h"
#include "core/reactions/hook.h"
#include "core/record/accumulator.h"
#include "core/relations/relation_internal.h"
#include "core/storage/change.h"

#include <quern/bulk.h>

#include <stdio.h>

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

/* Archetypes at which sync points begin to remove empty ones, if a world has no other setting. */
enum { LEAST_REMOVAL_ARCHETYPES = 256 };

/* A world with what rooms above core/world keep for it by pointers of its storage, in one block of memory. */
typedef struct whole_world {
    quern_world world;
    quern__names names;
    quern__relations relations;
    quern__reactions reactions;
    quern__combines combines;
} whole_world;

_Static_assert(offsetof(whole_world, world) == 0, "the address of a world is that of the whole");

/* The use count is relaxed: only the thread that holds the tag accesses it, and taking the tag orders the accesses. */
static quern_result world_init(const quern_world_def *def, const quern_allocator *allocator, uint32_t tag,
                               quern_world **out_world)
{
    const uint32_t uses = atomic_fetch_add_explicit(&tag_uses[tag], 1, memory_order_relaxed);
    whole_world *whole = quern__allocate(allocator, sizeof *whole, _Alignof(whole_world));
    if (whole == NULL)
        return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "quern_world_create: no memory for a world");
    const bool has_checks = def->empty_archetype_checks_per_sync > 0;
    *whole =
        (whole_world){.world = {.resources = {.world_tag = tag},
                                .next_serial = (uint64_t)tag << 16,
                                .removal_count = def->disable_empty_archetype_removal ? UINT32_MAX
                                                 : has_checks                         ? 0
                                                              : LEAST_REMOVAL_ARCHETYPES,
                                .empty_archetype_checks_per_sync = def->empty_archetype_checks_per_sync}};
    quern_world *world = &whole->world;
    quern_result result =
        quern__storage_init(&world->storage, allocator, quern__first_handle_high(tag, uses));
    if (result == QUERN_OK) {
        world->storage.names = &whole->names;
        world->storage.combines = &whole->combines;
        quern__relations_init(&whole->relations, &world->storage);
        quern__reactions_init(&whole->reactions, &world->storage);
        *out_world = world;
        return QUERN_OK;
    }
    quern__storage_release(&world->storage);
    quern__release(allocator, whole, sizeof *whole, _Alignof(whole_world));
    return result;
}

quern_result quern_world_create(const quern_world_def *def, quern_world **out_world)
{
    static const quern_world_def zero;
    if (def == NULL) def = &zero;
    QUERN__NEED(out_world);
    quern_allocator allocator;
    quern_result result = quern__choose_allocator(&def->allocator, __func__, &allocator);
    if (result != QUERN_OK) return result;

    uint32_t tag = tag_take();
    if (tag == 0)
        return quern__fail(
            QUERN_ERROR_LIMIT,
            "quern_world_create: %d worlds are alive already (QUERN_MAX_WORLDS): destroy one first",
            QUERN_MAX_WORLDS);
    result = world_init(def, &allocator, tag, out_world);
    if (result != QUERN_OK) tag_release(tag);
    return quern__in_call(result, __func__);
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
            const quern_entity *handles =
                quern__archetype_entities(archetype, quern__slot_chunk(&archetype->slots[c]));
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

/* Reports that objects still refer to the world, and names one. */
static void refuse_destroy(const quern_world *world, const char *state)
{
    char user[2 * QUERN_MAX_NAME_BYTES + 64] = "";
    const quern__storage *storage = &world->storage;
    const quern__query *query = storage->first_query;
    if (world->first_user != NULL)
        (void)snprintf(user, sizeof user, "%s", world->first_user->name);
    else if (world->history != NULL)
        (void)snprintf(user, sizeof user, "a history");
    else if (world->first_schedule != NULL)
        (void)snprintf(user, sizeof user, "a schedule (quern_world_list_schedules lists them)");
    else if (query != NULL)
        (void)snprintf(user, sizeof user, "query %u, '%s'", query->number,
                       query->name != NULL ? query->name : "");
    else if (storage->first_position_table != NULL)
        (void)snprintf(
            user, sizeof user, "a getter of component '%s'",
            quern__components_type(&storage->components, storage->first_position_table->component_index)
                ->name);
    else
        quern__events_name_reader(world, user, sizeof user);
    quern__report_violation(
        QUERN_ERROR_INVALID_ARGUMENT,
        "quern_world_destroy: %s still refers to the world, %u objects in all; %s: destroy "
        "users, queries, getters, event readers, schedules and histories first",
        user, world->user_count, state);
}

/* Destroys the values that may own queries, getters and readers. Returns false, with a message, if the world has other
 * users. */
static bool end_users(quern_world *world)
{
    if (world->first_user != NULL || world->history != NULL || world->first_schedule != NULL) {
        refuse_destroy(world, "nothing was changed");
        return false;
    }
    const bool has_hooks = quern__hooks_are_used(&world->storage);
    const bool ends = has_hooks || have_values_hooks(&world->storage);
    const bool has_memory = !ends || destroy_entities(world) == QUERN_OK;
    if (!has_memory && has_hooks) quern__hooks_before_end(&world->storage);
    if (!has_memory && world->user_count > 0) {
        refuse_destroy(world, "there is no memory to destroy the entities, which may own objects");
        return false;
    }
    if (world->user_count > 0) {
        /* Waiting commands and events may have values with destroy hooks, and so may resources, which get their first
         * values. */
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
    if (world->user_count == 0) return true;
    refuse_destroy(world, "values with destroy hooks were destroyed, since they may own objects");
    return false;
}

quern_result quern_world_add_user(quern_world *world, quern_world_user *user)
{
    QUERN__ENTER_UNLOCKED(world);
    QUERN__NEED(user);
    if (user->name == NULL)
        return quern__fail(QUERN_ERROR_NULL_ARGUMENT, "%s: the user has no name: set it, for messages",
                           __func__);
    if (user->world != NULL)
        return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                           "%s: '%s' is registered already, %s: remove it first (quern_world_remove_user), "
                           "or register a user of its own",
                           __func__, user->name,
                           user->world == world ? "in this world" : "in another world");
    user->world = world;
    user->next = world->first_user;
    world->first_user = user;
    world->user_count++;
    return QUERN_OK;
}

void quern_world_remove_user(quern_world *world, quern_world_user *user)
{
    if (world == NULL || user == NULL) return;
    quern_world_user **link = &world->first_user;
    while (*link != NULL && *link != user)
        link = &(*link)->next;
    if (*link == NULL) {
        quern__report_violation(
            QUERN_ERROR_INVALID_ARGUMENT,
            "quern_world_remove_user: '%s' is not registered in this world: remove a user "
            "once, from the world that quern_world_add_user registered it in",
            user->name != NULL ? user->name : "");
        return;
    }
    *link = user->next;
    user->next = NULL;
    user->world = NULL;
    world->user_count--;
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
    whole_world *whole = (whole_world *)world;
    quern__relations_release(&whole->relations, &allocator);
    quern__names_release(&whole->names, &allocator);
    quern__array_release(&allocator, &whole->combines.list);
    quern__resources_release(&world->resources, &allocator);
    quern__release(&allocator, whole, sizeof *whole, _Alignof(whole_world));
    tag_release(tag);
}

/* ------------------------------------------------------------------------------------------ reserving */

/* Reserves and touches the records of entities. *out_slot_end: the number of slots that then have records. */
static quern_result reserve_records(quern__storage *storage, uint32_t count, uint32_t *out_slot_end)
{
    quern__entities *entities = &storage->entities;
    const quern_result result = quern__entities_reserve(entities, &storage->allocator, count);
    const uint32_t free_count = entities->free_count + entities->absent_count;
    *out_slot_end = entities->slot_count + (count > free_count ? count - free_count : 0);
    if (result != QUERN_OK) return result;
    for (uint32_t slot = entities->slot_count, step; slot < *out_slot_end; slot += step) {
        step = QUERN__PAGE_RECORDS - slot % QUERN__PAGE_RECORDS;
        if (step > *out_slot_end - slot) step = *out_slot_end - slot;
        quern__touch_pages(quern__entities_record(entities, slot), step * sizeof(quern__record));
    }
    return QUERN_OK;
}

_Static_assert((int)QUERN__LINK_PAGE_SLOTS == (int)QUERN__EDGE_PAGE_SLOTS,
               "one step for both kinds of pages");

/* Reserves pages of edges for relations with several targets per source, and pages of links for the others. */
static quern_result reserve_links(quern__storage *storage, const quern_relation *relations, uint32_t count,
                                  uint32_t slot_end)
{
    for (uint32_t i = 0; i < count; i++) {
        quern__relation *relation;
        const quern_result result = quern__relation_check(storage, relations[i], &relation);
        if (result != QUERN_OK) return result;
        for (uint32_t slot = 0; slot < slot_end; slot += QUERN__LINK_PAGE_SLOTS)
            if (!(relation->is_many ? quern__edges_reserve_page(&relation->edges, &storage->allocator, slot)
                                    : quern__links_reserve(&relation->links, &storage->allocator, slot)))
                return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory for the links of %u entities",
                                   slot_end);
    }
    return QUERN_OK;
}

/* Reserves rows, touches the memory of all rows without entities, and keeps the chunks until quern_world_trim. */
static quern_result reserve_rows(quern_world *world, const quern_component *components,
                                 uint32_t component_count, uint32_t row_count)
{
    quern__storage *storage = &world->storage;
    quern__archetype *archetype;
    quern_result result = quern__world_ensure_archetype(world, components, component_count, &archetype);
    if (result == QUERN_OK) result = quern__rows_reserve(storage, archetype, row_count);
    if (result != QUERN_OK) return result;
    archetype->asked_count = archetype->held_count;
    quern__rows_unreserve(storage, archetype);
    quern__rows_gather_if_large(storage); /* before pages are touched */
    const uint32_t run_length = 1u << archetype->shape.shift;
    for (uint32_t i = 0; i < archetype->held_count; i += run_length)
        if (i + run_length > archetype->chunk_count)
            quern__touch_pages(archetype->slots[i].run, (size_t)run_length * QUERN__CHUNK_BYTES);
    return QUERN_OK;
}

quern_result quern_world_reserve(quern_world *world, const quern_reserve_def *def)
{
    QUERN__ENTER_UNLOCKED(world);
    QUERN__NEED(def);
    uint32_t component_count, relation_count, slot_end;
    quern_result result = quern__list_count(def->components, QUERN_MAX_ENTITY_COMPONENTS,
                                            quern__is_end_of_handles, "component", NULL, &component_count);
    if (result == QUERN_OK)
        result = quern__list_count(def->relations, QUERN_MAX_RESERVED_RELATIONS, quern__is_end_of_handles,
                                   "relation", NULL, &relation_count);
    if (result == QUERN_OK && component_count > 0 && def->row_count == 0)
        return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                           "quern_world_reserve: there are components, but row_count is 0: set it to the "
                           "number of rows with these components");
    if (result == QUERN_OK) result = reserve_records(&world->storage, def->entity_count, &slot_end);
    if (result == QUERN_OK)
        result = reserve_links(&world->storage, def->relations, relation_count, slot_end);
    if (result == QUERN_OK && def->row_count > 0)
        result = reserve_rows(world, def->components, component_count, def->row_count);
    if (result != QUERN_OK || def->command_bytes == 0) return quern__in_call(result, __func__);
    quern_commands *commands = quern_world_commands(world);
    if (commands != NULL && quern__blocks_reserve_bytes(commands, def->command_bytes)) return QUERN_OK;
    return quern__fail(QUERN_ERROR_OUT_OF_MEMORY,
                       "quern_world_reserve: no memory for %llu bytes of commands",
                       (unsigned long long)def->command_bytes);
}

/* ------------------------------------------------------------------------------------------- trimming
 *
 * Visible effects of trimming and removing are only the number of archetypes and, if trim releases pages of records, the
 * handles of later entities. */

quern_result quern_world_trim(quern_world *world)
{
    QUERN__ENTER_UNLOCKED(world);
    quern__storage *storage = &world->storage;
    for (uint32_t i = 0; i < storage->archetypes.count; i++) {
        quern__archetype *archetype = storage->archetypes.items[i];
        archetype->may_retain_chunk = false;
        archetype->asked_count = 0;
        quern__rows_scatter(storage, archetype);
        quern__archetype_release_spare_chunks(archetype, &storage->slabs, &storage->allocator);
        quern__row_versions_trim(archetype->row_versions, &storage->allocator, archetype->held_count);
    }
    memset(storage->spares, 0, sizeof storage->spares);
    quern__relations_trim(storage);
    quern__reactions_trim(storage);
    quern__slabs_trim(&storage->slabs, &storage->allocator);
    quern__entities_drop_pages(&storage->entities, &storage->allocator);
    quern__names_trim(storage->names, &storage->allocator);
    quern__events_trim(world);
    return QUERN_OK;
}

/* ----------------------------------------------------------------------------- archetypes without rows */

/* Removes the marked archetypes from everything that has pointers to archetypes. The caller then gives other indices to
 * the archetypes from `first` on. */
static void forget_removed(quern_world *world, uint32_t first)
{
    quern__storage *storage = &world->storage;
    storage->order_version++;
    for (quern__query *query = storage->first_query; query != NULL; query = query->next)
        quern__query_forget_removed(query, first);
    quern__reactions_forget_removed(storage);
    for (uint32_t i = 0; i < QUERN__SPARE_ARCHETYPES; i++)
        if (storage->spares[i] != NULL && storage->spares[i]->is_removed) storage->spares[i] = NULL;
    world->create_lists = (quern__create_lists){0};
    /* plans from and to the archetypes; they are made again when needed */
    for (uint32_t i = first; i < storage->archetypes.count; i++) {
        quern__archetype *archetype = storage->archetypes.items[i];
        if (!archetype->is_removed) continue;
        while (archetype->incoming != NULL)
            quern__plans_release(storage, archetype->incoming->source);
        quern__plans_release(storage, archetype);
    }
}

/* Releases the marked archetypes and appends the others from `first` on again, in their order. No list has to grow,
 * since all lists contained these archetypes before. */
static void relink(quern__storage *storage, uint32_t first)
{
    const uint32_t count = storage->archetypes.count;
    for (uint32_t i = 0; i < storage->components.list.count; i++) {
        quern__component *component = storage->components.list.items[i];
        while (component->archetypes.count > 0 &&
               component->archetypes.items[component->archetypes.count - 1] >= first)
            component->archetypes.count--;
    }
    storage->archetypes.count = first;
    for (uint32_t i = first; i < count; i++) {
        quern__archetype *archetype = storage->archetypes.items[i];
        if (archetype->is_removed)
            quern__storage_remove_archetype(storage, archetype);
        else
            quern__storage_append_archetype(storage, archetype);
    }
}

/* Replaces scanned_count of each query by the number of archetypes that the query has not checked yet and that are not
 * marked; 0 for the query of a system without terms, which checks none. These are the last ones of the list that a
 * refresh checks, also after the marked ones have left it. So
 * removing needs no refresh, which could run out of memory: remove_marked counts back afterwards. */
static void count_unscanned(quern__storage *storage)
{
    for (quern__query *query = storage->first_query; query != NULL; query = query->next) {
        const uint32_t *driven = query->driver != QUERN__NO_DRIVER
                                     ? storage->components.list.items[query->driver]->archetypes.items
                                     : NULL;
        const uint32_t count = query->term_count > 0 ? quern__query_candidate_count(query) : 0;
        uint32_t unscanned_count = 0;
        for (uint32_t i = query->scanned_count; i < count; i++)
            unscanned_count += !storage->archetypes.items[driven != NULL ? driven[i] : i]->is_removed;
        query->scanned_count = unscanned_count;
    }
}

/* Removes the marked archetypes from the world. */
static void remove_marked(quern_world *world, uint32_t first)
{
    quern__storage *storage = &world->storage;
    forget_removed(world, first);
    count_unscanned(storage);
    relink(storage, first);
    for (quern__query *query = storage->first_query; query != NULL; query = query->next)
        query->scanned_count = quern__query_candidate_count(query) - query->scanned_count;
    if (storage->archetypes.count < QUERN__UNCROWDED_ARCHETYPES) storage->is_crowded = false;
    quern__structure_changed(storage); /* invalidates iterators, since matches have moved */
}

/* Removes all archetypes without rows and without copies of removed rows. Returns their number. The archetype without
 * components is never removed, since new entities start there. */
static uint32_t remove_empty_archetypes(quern_world *world)
{
    uint32_t first = 0, count = 0;
    for (uint32_t i = world->storage.archetypes.count; i-- > 1;) {
        quern__archetype *archetype = world->storage.archetypes.items[i];
        archetype->is_removed =
            archetype->chunk_count == 0 && !quern__archetype_has_removed_copies(archetype);
        if (!archetype->is_removed) continue;
        first = i;
        count++;
    }
    if (count > 0) remove_marked(world, first);
    if (world->empty_archetype_checks_per_sync == 0) world->visit_count = world->storage.archetypes.count;
    return count;
}

quern_result quern_world_remove_empty_archetypes(quern_world *world, uint32_t *out_count)
{
    QUERN__ENTER_UNLOCKED(world);
    const uint32_t count = remove_empty_archetypes(world);
    if (out_count != NULL) *out_count = count;
    return QUERN_OK;
}

/* ------------------------------------------------------------------------------- setting all archetypes */

void quern__world_set_archetypes(quern_world *world, quern__archetype *const *list, uint32_t count)
{
    quern__storage *storage = &world->storage;
    forget_removed(world, 0);
    for (quern__query *query = storage->first_query; query != NULL; query = query->next)
        quern__query_forget_all(
            query); /* queries match again later, since archetypes and their order change */
    for (uint32_t i = 0; i < storage->components.list.count; i++)
        storage->components.list.items[i]->archetypes.count = 0;
    for (uint32_t i = 0; i < storage->archetypes.count; i++)
        if (storage->archetypes.items[i]->is_removed)
            quern__storage_remove_archetype(storage, storage->archetypes.items[i]);
    storage->archetypes.count = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (storage->numbered.items[list[i]->number] != list[i])
            quern__storage_register_archetype(storage, list[i]);
        quern__storage_append_archetype(storage, list[i]);
    }
    quern__reactions_sort_subscriptions(storage);
    if (count < QUERN__UNCROWDED_ARCHETYPES) storage->is_crowded = false;
    quern__structure_changed(storage);
}

/* --------------------------------------------------------------------------------------- at sync points */

/* An archetype is removed if it has been empty at two visits, at least this number of sync points apart. It may
 * have had rows in between, and is created again when needed. */
enum { LEAST_EMPTY_SYNCS = 8 };

/* Notes since when the archetype has been empty. Returns whether it is to be removed. */
static bool visit(quern__archetype *archetype, uint64_t now)
{
    if (archetype->chunk_count > 0 || quern__archetype_has_removed_copies(archetype)) {
        archetype->empty_since = 0;
        return false;
    }
    if (archetype->empty_since == 0) archetype->empty_since = now;
    return now - archetype->empty_since >= LEAST_EMPTY_SYNCS;
}

/* With a number of checks per sync point, visits that many archetypes in turn. Otherwise removes all empty archetypes
 * once there are more than twice as many archetypes as the last removal has left, or more than half of those that were
 * then possible. A removal takes time for every archetype, so this is a constant for each one that was created in
 * between. A world that was restored or loaded may have fewer than were left: they count as left then. */
void quern__world_reclaim_archetypes(quern_world *world)
{
    const uint32_t archetype_count = world->storage.archetypes.count;
    if (world->empty_archetype_checks_per_sync == 0) {
        if (world->visit_count > archetype_count) world->visit_count = archetype_count;
        const uint32_t kept = (uint32_t)world->visit_count, half_free = (QUERN_MAX_ARCHETYPES - kept) / 2;
        if (archetype_count - kept > (kept < half_free ? kept : half_free))
            (void)remove_empty_archetypes(world);
        return;
    }
    world->visit_count++;
    /* A round ends at the last archetype. Archetypes that are appended later belong to the next round. */
    if (world->next_visit == 0 || world->next_visit >= archetype_count) world->next_visit = 1;
    const uint32_t left = archetype_count - world->next_visit;
    const bool is_last = world->empty_archetype_checks_per_sync >= left;
    const uint32_t end = world->next_visit + (is_last ? left : world->empty_archetype_checks_per_sync);
    uint32_t first = 0, count = 0;
    for (uint32_t i = end; i-- > world->next_visit;) {
        quern__archetype *archetype = world->storage.archetypes.items[i];
        archetype->is_removed = visit(archetype, world->visit_count);
        if (!archetype->is_removed) continue;
        first = i;
        count++;
    }
    if (count > 0) remove_marked(world, first);
    world->next_visit = is_last ? 0 : end - count;
}
