/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* What quern_world_validate checks of reactions: that each is told of the archetypes that it matches, and
 * that what is pending there says one thing of each row. */

#include "core/check/validate.h"

/* The bits of one chunk. */
static quern_result validate_bits(const quern__watch *watch, uint32_t added, uint32_t set, uint32_t slot)
{
    const quern__planes *planes = watch->archetype->planes;
    const uint32_t index = watch->archetype->index, number = watch->reaction->number;
    uint32_t count = 0;
    if (added != QUERN__NO_PLANE) count += quern__plane_count(planes, added, slot);
    if (set != QUERN__NO_PLANE) count += quern__plane_count(planes, set, slot);
    REQUIRE(count == 0 || (watch->is_pending && watch->reaction->is_pending),
            "%u rows of chunk %u of archetype %u wait for reaction %u, which does not know", count, slot,
            index, number);
    if (added == QUERN__NO_PLANE || set == QUERN__NO_PLANE) return QUERN_OK;
    for (uint32_t i = 0; i + 1 < planes->plane_words; i++)
        REQUIRE((quern__plane_words(planes, added, slot)[i] & quern__plane_words(planes, set, slot)[i]) ==
                    0,
                "a row of chunk %u of archetype %u is to be told to reaction %u as added, and as set", slot,
                index, number);
    return QUERN_OK;
}

static quern_result validate_watch(const quern__watch *watch)
{
    const quern__archetype *archetype = watch->archetype;
    const quern__removed *removed = &watch->removed;
    const uint32_t kinds = watch->reaction->kinds, number = watch->reaction->number;
    const uint32_t added = quern__planes_find(archetype->planes, QUERN__PLANE_ADDED, number);
    const uint32_t set = quern__planes_find(archetype->planes, QUERN__PLANE_SET, number);
    REQUIRE((added != QUERN__NO_PLANE) == ((kinds & QUERN_ON_ADDED) != 0) &&
                (set != QUERN__NO_PLANE) == ((kinds & QUERN_ON_SET) != 0),
            "reaction %u has other planes in archetype %u than it asks for", number, archetype->index);
    REQUIRE(archetype->is_watched && !(archetype->is_quick && (kinds & QUERN_ON_REMOVED) != 0),
            "rows may leave archetype %u, and reaction %u does not hear of it", archetype->index, number);
    REQUIRE(removed->count <= (uint64_t)removed->blocks.count * removed->block_rows,
            "reaction %u has %u copies of rows of archetype %u, in %u blocks", number, removed->count,
            archetype->index, removed->blocks.count);
    REQUIRE(removed->count == 0 || watch->reaction->is_pending,
            "%u copies of rows of archetype %u wait for reaction %u, which does not know", removed->count,
            archetype->index, number);
    quern_result result = QUERN_OK;
    for (uint32_t slot = 0; slot < archetype->chunk_count && result == QUERN_OK; slot++)
        result = validate_bits(watch, added, set, slot);
    return result;
}

/* Its watches are those of the archetypes that it matches, in their order. */
static quern_result validate_reaction(const quern__storage *storage, const quern__reaction *reaction)
{
    uint32_t count = 0;
    REQUIRE(!reaction->is_pending || storage->reactions->is_pending,
            "something waits for reaction %u, and nobody knows", reaction->number);
    for (uint32_t i = 0; i < storage->archetypes.count; i++) {
        const quern__archetype *archetype = storage->archetypes.items[i];
        const quern__watch *watch = quern__watch_of(archetype, reaction);
        REQUIRE((watch != NULL) == reaction->matches(reaction->query, archetype),
                "reaction %u matches archetype %u, and is not told of it, or the other way round",
                reaction->number, i);
        if (watch == NULL) continue;
        REQUIRE(count < reaction->watches.count && reaction->watches.items[count] == watch &&
                    watch->archetype == archetype,
                "what reaction %u keeps of archetype %u is not number %u of its list", reaction->number, i,
                count);
        const quern_result result = validate_watch(watch);
        if (result != QUERN_OK) return result;
        count++;
    }
    REQUIRE(count == reaction->watches.count, "reaction %u knows %u archetypes, but lists %u",
            reaction->number, count, reaction->watches.count);
    return QUERN_OK;
}

quern_result quern__world_validate_reactions(const quern_world *world)
{
    const quern__reactions *reactions = world->storage.reactions;
    uint32_t count = 0;
    for (uint32_t i = 0; i < reactions->list.count; i++) {
        const quern__reaction *reaction = reactions->list.items[i];
        if (reaction == NULL) continue;
        REQUIRE(reaction->number == i, "reaction %u is listed as number %u", reaction->number, i);
        const quern_result result = validate_reaction(&world->storage, reaction);
        if (result != QUERN_OK) return result;
        count++;
    }
    REQUIRE(count == reactions->count, "%u reactions are listed, but %u are counted", count,
            reactions->count);
    return QUERN_OK;
}
