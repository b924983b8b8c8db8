/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* The checks of quern_world_validate on reactions: each is subscribed to exactly the archetypes that it matches, and no
 * row is pending as ADDED and as SET. */

#include "core/check/validate.h"

/* Checks the bits of pending rows in one chunk. */
static quern_result validate_bits(const quern__subscription *subscription, uint32_t added, uint32_t set,
                                  uint32_t slot)
{
    const quern__row_bits *row_bits = subscription->archetype->row_bits;
    const uint32_t index = subscription->archetype->index, number = subscription->reaction->number;
    uint32_t count = 0;
    if (added != QUERN__NO_BIT_COLUMN) count += quern__bit_column_count(row_bits, added, slot);
    if (set != QUERN__NO_BIT_COLUMN) count += quern__bit_column_count(row_bits, set, slot);
    REQUIRE(count == 0 || (subscription->is_pending && subscription->reaction->is_pending),
            "%u rows of chunk %u of archetype %u are pending for reaction %u, whose flag is not set", count,
            slot, index, number);
    if (added == QUERN__NO_BIT_COLUMN || set == QUERN__NO_BIT_COLUMN) return QUERN_OK;
    for (uint32_t i = 0; i + 1 < row_bits->bit_column_words; i++)
        REQUIRE((quern__bit_column_words(row_bits, added, slot)[i] &
                 quern__bit_column_words(row_bits, set, slot)[i]) == 0,
                "a row of chunk %u of archetype %u is pending for reaction %u as added and as set", slot,
                index, number);
    return QUERN_OK;
}

static quern_result validate_subscription(const quern__subscription *subscription)
{
    const quern__archetype *archetype = subscription->archetype;
    const quern__removed *removed = &subscription->removed;
    const uint32_t kinds = subscription->reaction->kinds, number = subscription->reaction->number;
    const uint32_t added =
        quern__row_bits_find_column(archetype->row_bits, QUERN__BIT_COLUMN_ADDED, number);
    const uint32_t set = quern__row_bits_find_column(archetype->row_bits, QUERN__BIT_COLUMN_SET, number);
    REQUIRE((added != QUERN__NO_BIT_COLUMN) == ((kinds & QUERN_REACT_ADDED) != 0) &&
                (set != QUERN__NO_BIT_COLUMN) == ((kinds & QUERN_REACT_SET) != 0),
            "reaction %u has bit columns in archetype %u for other kinds than it asks for", number,
            archetype->index);
    REQUIRE(archetype->tracks_changes && !(archetype->has_fast_leave && (kinds & QUERN_REACT_REMOVED) != 0),
            "rows may leave archetype %u without a call of reaction %u", archetype->index, number);
    REQUIRE(removed->count <= (uint64_t)removed->blocks.count * removed->block_rows,
            "reaction %u has %u copies of rows of archetype %u, more than its %u blocks hold", number,
            removed->count, archetype->index, removed->blocks.count);
    REQUIRE(removed->count == 0 || subscription->reaction->is_pending,
            "%u copies of rows of archetype %u are pending for reaction %u, whose flag is not set",
            removed->count, archetype->index, number);
    REQUIRE(subscription->old.column_count == 0 || subscription->old.blocks.count >= archetype->held_count,
            "reaction %u has old values for %u of the %u chunks of archetype %u", number,
            subscription->old.blocks.count, archetype->held_count, archetype->index);
    quern_result result = QUERN_OK;
    for (uint32_t slot = 0; slot < archetype->chunk_count && result == QUERN_OK; slot++)
        result = validate_bits(subscription, added, set, slot);
    return result;
}

/* Checks that the reaction's list has the subscriptions of all archetypes that it matches, in their order. */
static quern_result validate_reaction(const quern__storage *storage, const quern__reaction *reaction)
{
    uint32_t count = 0;
    REQUIRE(!reaction->is_pending || storage->reactions->is_pending,
            "reaction %u is pending, but the registry's flag is not set", reaction->number);
    for (uint32_t i = 0; i < storage->archetypes.count; i++) {
        const quern__archetype *archetype = storage->archetypes.items[i];
        const quern__subscription *subscription = quern__find_subscription(archetype, reaction);
        REQUIRE((subscription != NULL) == reaction->matches(reaction->query, archetype),
                "reaction %u must be subscribed to archetype %u exactly if it matches it", reaction->number,
                i);
        if (subscription == NULL) continue;
        REQUIRE(count < reaction->subscriptions.count &&
                    reaction->subscriptions.items[count] == subscription &&
                    subscription->archetype == archetype,
                "the subscription of reaction %u to archetype %u is not number %u of its list",
                reaction->number, i, count);
        const quern_result result = validate_subscription(subscription);
        if (result != QUERN_OK) return result;
        count++;
    }
    REQUIRE(count == reaction->subscriptions.count,
            "reaction %u matches %u archetypes, but its list has %u", reaction->number, count,
            reaction->subscriptions.count);
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
