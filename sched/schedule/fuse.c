/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "sched/schedule/fuse.h"

#include "sched/schedule/link.h"

bool quern__fuse_allows_system(const quern__system *system)
{
    return system->query.term_count > 0 && !quern__system_has_flag(system, QUERN_SYSTEM_SERIAL);
}

bool quern__fuse_levels_agree(const quern__pass *pass, const quern__system *system)
{
    return pass->levels == NULL || system->levels == NULL || pass->levels == system->levels;
}

/* ------------------------------------------------------------------------------------------- passes */

static quern__pass *create_pass(quern__plan *plan, const quern__system *first)
{
    quern__pass *pass = quern__allocate(quern__plan_allocator(plan), sizeof *pass, _Alignof(quern__pass));
    if (pass == NULL) return NULL;
    *pass = (quern__pass){.plan = plan, .kind = QUERN__PASS_CHUNKS, .run_node_count = 1};
    if (first->events.items != NULL) pass->kind = QUERN__PASS_EVENTS;
    if (quern__system_has_flag(first, QUERN_SYSTEM_SERIAL)) pass->kind = QUERN__PASS_SERIAL;
    if (first->query.term_count == 0 && first->events.items == NULL) pass->kind = QUERN__PASS_ONCE;
    return pass;
}

static bool add_to_pass(quern__pass *pass, quern__system *system)
{
    const quern_allocator *allocator = quern__plan_allocator(pass->plan);
    if (!quern__array_reserve(allocator, &pass->systems, pass->systems.count + 1)) return false;
    pass->systems.items[pass->systems.count++] = system;
    pass->has_begin |= system->begin != NULL || quern__system_is_gated(system);
    pass->has_end |= system->end != NULL;
    pass->has_partials |= system->partial_bytes > 0;
    pass->has_filters |= system->query.filter_count > 0;
    pass->runs_reactions |= system->reaction != NULL;
    if (system->levels != NULL) pass->levels = system->levels;
    for (uint32_t word = 0; word < QUERN__COMPONENT_WORDS; word++)
        pass->touched[word] |= system->access.reads[word];
    system->pass = pass;
    system->table_match_count = 0;
    system->table_removed_count = system->query.removed_count;
    return true;
}

/* Returns the index of the first pass that the system may join without violating the order. No bound exceeds the number
 * of passes, nor, if the system has only local conflicts, the index of the last pass. */
static uint32_t first_allowed_pass(const quern__segment *segment, const quern__system *system)
{
    const quern__plan *plan = system->plan;
    const uint32_t pass_count = segment->passes.count;
    uint32_t first = 0, earlier;
    quern__pair_walk walk = quern__pair_set_walk(&plan->conflicts.global, system->position);
    while (first < pass_count && quern__pair_walk_next(&walk, &earlier) && earlier >= segment->first)
        if (plan->pass_indices.items[earlier] >= first) first = plan->pass_indices.items[earlier] + 1;
    walk = quern__pair_set_walk(&plan->conflicts.all, system->position);
    while (first + 1 < pass_count && quern__pair_walk_next(&walk, &earlier) && earlier >= segment->first)
        if (plan->pass_indices.items[earlier] > first) first = plan->pass_indices.items[earlier];
    return first;
}

static uint32_t shared_count(const quern__pass *pass, const quern__system *system)
{
    uint32_t count = 0;
    for (uint32_t word = 0; word < QUERN__COMPONENT_WORDS; word++) {
        const uint64_t shared = pass->touched[word] & system->access.reads[word];
        if (shared != 0) count += quern__count_bits_64(shared);
    }
    return count;
}

/* xorshift64*, Vigna 2014. */
static uint64_t next_random(uint64_t *state)
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * 0x2545f4914f6cdd1dull;
}

static bool may_join(const quern__pass *pass, const quern__system *system)
{
    return pass->kind == QUERN__PASS_CHUNKS && quern__fuse_levels_agree(pass, system);
}

/* Returns the eligible pass that shares the most components with the system, the last of these on a tie, or NULL. */
static quern__pass *choose_best_pass(const quern__segment *segment, const quern__system *system,
                                     uint32_t first)
{
    uint32_t most = 0, best_count = 0;
    for (uint32_t word = 0; word < QUERN__COMPONENT_WORDS; word++)
        if (system->access.reads[word] != 0) most += quern__count_bits_64(system->access.reads[word]);
    quern__pass *best = NULL;
    for (uint32_t i = segment->passes.count; i-- > first && (best == NULL || best_count < most);) {
        quern__pass *pass = segment->passes.items[i];
        if (!may_join(pass, system)) continue;
        const uint32_t count = shared_count(pass, system);
        if (best != NULL && count <= best_count) continue;
        best = pass;
        best_count = count;
    }
    return best;
}

/* For tests: chooses an eligible pass at random. */
static quern__pass *choose_any_pass(const quern__segment *segment, const quern__system *system,
                                    uint32_t first, uint64_t *random)
{
    quern__pass *best = NULL;
    uint32_t best_number = 0;
    for (uint32_t i = first; i < segment->passes.count; i++) {
        quern__pass *pass = segment->passes.items[i];
        if (!may_join(pass, system)) continue;
        const uint32_t number = (uint32_t)(next_random(random) >> 40);
        if (best != NULL && number < best_number) continue;
        best = pass;
        best_number = number;
    }
    return best;
}

/* Returns the pass that the system joins, or NULL to start a new one. random: NULL, or for tests the state of a random
 * choice. */
static quern__pass *choose_pass(const quern__segment *segment, const quern__system *system,
                                uint64_t *random)
{
    if (!system->plan->fuses_systems || !quern__fuse_allows_system(system)) return NULL;
    const uint32_t first = first_allowed_pass(segment, system);
    return random != NULL ? choose_any_pass(segment, system, first, random)
                          : choose_best_pass(segment, system, first);
}

static quern_result assign_to_pass(quern__plan *plan, quern__segment *segment, quern__system *system,
                                   uint64_t *random)
{
    quern__pass *pass = choose_pass(segment, system, random);
    if (pass == NULL) {
        pass = create_pass(plan, system);
        if (pass == NULL) return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory for a pass");
        pass->index = segment->passes.count;
        segment->passes.items[segment->passes.count++] = pass;
    }
    plan->pass_indices.items[system->position] = pass->index;
    if (add_to_pass(pass, system)) return QUERN_OK;
    return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory for a pass of %u systems",
                       pass->systems.count + 1);
}

/* -------------------------------------------------------------------------------------------- lanes */

/* Returns the first system of the lane that has the system at index i of the pass. Until lanes are renumbered, the lane of
 * a system is the index of an earlier system of its lane, or of itself. Shortens the path for later calls. */
static uint32_t find_lane(const quern__pass *pass, uint32_t i)
{
    quern__system *const *systems = pass->systems.items;
    while (systems[i]->lane != i) {
        systems[i]->lane = systems[systems[i]->lane]->lane;
        i = systems[i]->lane;
    }
    return i;
}

/* Renumbers the lanes from 0 on, without gaps. */
static void renumber_lanes(quern__pass *pass)
{
    pass->lane_count = 0;
    for (uint32_t i = 0; i < pass->systems.count; i++) {
        quern__system *system = pass->systems.items[i];
        system->lane = system->lane < i ? pass->systems.items[system->lane]->lane : pass->lane_count++;
    }
}

/* Joins the lanes of systems with a conflict. numbers: scratch memory, by position; the caller has set those of the
 * pass's systems to their index in the pass. The walk over a row ends when all systems up to this one are in one lane. */
static void find_lanes(quern__pass *pass, const uint32_t *numbers)
{
    const quern__plan *plan = pass->plan;
    uint32_t lane_count = 0, earlier;
    for (uint32_t i = 0; i < pass->systems.count; i++) {
        quern__system *system = pass->systems.items[i];
        const uint32_t first_position = pass->systems.items[0]->position;
        quern__pair_walk walk = quern__pair_set_walk(&plan->conflicts.all, system->position);
        system->lane = i;
        lane_count++;
        while (lane_count > 1 && quern__pair_walk_next(&walk, &earlier) && earlier >= first_position) {
            if (plan->pass_indices.items[earlier] != pass->index) continue;
            const uint32_t one = find_lane(pass, i), other = find_lane(pass, numbers[earlier]);
            if (one == other) continue;
            pass->systems.items[one < other ? other : one]->lane = one < other ? one : other;
            lane_count--;
        }
    }
    for (uint32_t i = 0; i < pass->systems.count; i++)
        pass->systems.items[i]->lane = find_lane(pass, i);
    renumber_lanes(pass);
}

static void find_all_lanes(const quern__plan *plan, const quern__segment *segment)
{
    uint32_t *numbers = plan->pass_indices.items + plan->order.count;
    for (uint32_t i = 0; i < segment->passes.count; i++) {
        quern__pass *pass = segment->passes.items[i];
        for (uint32_t k = 0; k < pass->systems.count; k++)
            numbers[pass->systems.items[k]->position] = k;
        find_lanes(pass, numbers);
    }
}

/* ------------------------------------------------------------------------------ passes of a segment */

/* Returns whether all passes for which `pass` waits are placed. waits_for has indices of passes. */
static bool is_ready(const quern__pass *pass, const bool *placed)
{
    for (uint32_t i = 0; i < pass->waits_for.count; i++)
        if (!placed[pass->waits_for.items[i]]) return false;
    return true;
}

/* For tests: chooses one of the orders that respect the edges, at random. placed: zeroed scratch memory, by index of
 * pass. */
static void shuffle_passes(quern__segment *segment, uint64_t *random, bool *placed)
{
    for (uint32_t placed_count = 0; placed_count < segment->passes.count; placed_count++) {
        uint32_t left = segment->passes.count - placed_count;
        uint32_t chosen = placed_count + (uint32_t)((next_random(random) >> 32) % left);
        while (!is_ready(segment->passes.items[chosen], placed))
            /* the unplaced pass with the smallest index is always ready */
            chosen = placed_count + (chosen - placed_count + 1) % left;
        quern__pass *pass = segment->passes.items[chosen];
        placed[pass->index] = true;
        segment->passes.items[chosen] = segment->passes.items[placed_count];
        segment->passes.items[placed_count] = pass;
    }
}

/* Replaces the indices in waits_for by those in segment->passes, the greatest first. places: scratch memory, by index of
 * pass. */
static void number_waits(const quern__segment *segment, uint32_t *places)
{
    for (uint32_t i = 0; i < segment->passes.count; i++)
        places[segment->passes.items[i]->index] = i;
    for (uint32_t i = 0; i < segment->passes.count; i++) {
        quern__pass *pass = segment->passes.items[i];
        for (uint32_t k = 0; k < pass->waits_for.count; k++) {
            const uint32_t place = places[pass->waits_for.items[k]];
            uint32_t to = k;
            for (; to > 0 && pass->waits_for.items[to - 1] < place; to--)
                pass->waits_for.items[to] = pass->waits_for.items[to - 1];
            pass->waits_for.items[to] = place;
        }
    }
}

static quern_result shuffle(const quern__plan *plan, quern__segment *segment, uint64_t *random)
{
    const size_t bytes = segment->passes.count * (sizeof(uint32_t) + sizeof(bool));
    uint32_t *places = quern__allocate(quern__plan_allocator(plan), bytes, _Alignof(uint32_t));
    if (places == NULL) return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory to shuffle passes");
    memset(places, 0, bytes);
    shuffle_passes(segment, random, (bool *)(places + segment->passes.count));
    number_waits(segment, places);
    quern__release(quern__plan_allocator(plan), places, bytes, _Alignof(uint32_t));
    return QUERN_OK;
}

static void release_passes(quern__segment *segment)
{
    for (uint32_t i = 0; i < segment->passes.count; i++)
        quern__pass_destroy(segment->passes.items[i]);
    segment->passes.count = 0;
}

quern_result quern__fuse(quern__plan *plan, quern__segment *segment)
{
    uint32_t system_count = segment->end - segment->first;
    release_passes(segment);
    if (!quern__array_reserve(quern__plan_allocator(plan), &segment->passes, system_count))
        return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory for the passes of %u systems",
                           system_count);
    uint64_t seed = plan->shuffle_seed;
    uint64_t *random = seed != 0 ? &seed : NULL;
    for (uint32_t i = segment->first; i < segment->end; i++) {
        quern_result result = assign_to_pass(plan, segment, plan->order.items[i], random);
        if (result != QUERN_OK) return result;
    }
    find_all_lanes(plan, segment);
    quern_result result = quern__link_passes(plan, segment);
    if (result == QUERN_OK && random != NULL) result = shuffle(plan, segment, random);
    return result;
}
