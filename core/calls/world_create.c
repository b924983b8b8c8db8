/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Creates and destroys worlds. */

#include "core/calls/world_commands.h"
#include "core/events/event_internal.h"
#include "core/prefabs/prefab_internal.h"
#include "core/world/world_internal.h"

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

void quern_world_destroy(quern_world *world)
{
    if (world == NULL) return;
    if (world->locked) {
        quern__report_violation(QUERN_ERROR_WORLD_LOCKED,
                                "quern_world_destroy: " QUERN__WORLD_LOCKERS
                                " is running on this world; destroy the world afterwards");
        return;
    }
    if (world->user_count > 0) {
        quern__report_violation(
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
