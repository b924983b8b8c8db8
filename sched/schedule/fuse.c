/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "sched/schedule/fuse.h"

bool quern__fuse_allows_system(const quern__system *system)
{
    return system->query.term_count > 0 && !quern__system_has_flag(system, QUERN_SYSTEM_SERIAL);
}

bool quern__fuse_levels_agree(const quern__pass *pass, const quern__system *system)
{
    return pass->levels == NULL || system->levels == NULL || pass->levels == system->levels;
}

static quern__conflict_kind kind_between(const quern__system *earlier, const quern__system *later)
{
    return (quern__conflict_kind)quern__plan_conflict(earlier->plan, earlier->position, later->position)
        ->kind;
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

/* Returns the index of the first pass that the system may join without violating the order. */
static uint32_t first_allowed_pass(const quern__segment *segment, const quern__system *system)
{
    const quern__plan *plan = system->plan;
    uint32_t first = 0;
    for (uint32_t i = segment->first; i < system->position; i++) {
        const quern__system *earlier = plan->order.items[i];
        quern__conflict_kind kind = kind_between(earlier, system);
        if (kind == QUERN__NO_CONFLICT) continue;
        uint32_t bound = earlier->pass->index + !quern__conflict_is_local(kind);
        if (bound > first) first = bound;
    }
    return first;
}

static uint32_t shared_count(const quern__pass *pass, const quern__system *system)
{
    uint32_t count = 0;
    for (uint32_t word = 0; word < QUERN__COMPONENT_WORDS; word++)
        count += quern__count_bits_64(pass->touched[word] & system->access.reads[word]);
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

/* Returns the pass that the system joins, or NULL to start a new one. `random`: if not NULL, chooses any
 * eligible pass, for tests. */
static quern__pass *choose_pass(const quern__segment *segment, const quern__system *system,
                                uint64_t *random)
{
    if (!system->plan->fuses_systems || !quern__fuse_allows_system(system)) return NULL;
    quern__pass *best = NULL;
    uint32_t best_count = 0;
    for (uint32_t i = first_allowed_pass(segment, system); i < segment->passes.count; i++) {
        quern__pass *pass = segment->passes.items[i];
        if (pass->kind != QUERN__PASS_CHUNKS || !quern__fuse_levels_agree(pass, system)) continue;
        uint32_t count =
            random != NULL ? (uint32_t)(next_random(random) >> 40) : shared_count(pass, system);
        if (best != NULL && count < best_count) continue;
        best = pass;
        best_count = count;
    }
    return best;
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
    if (add_to_pass(pass, system)) return QUERN_OK;
    return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory for a pass of %u systems",
                       pass->systems.count + 1);
}

/* -------------------------------------------------------------------------------------------- lanes */

static void merge_lanes(quern__pass *pass, uint32_t kept, uint32_t merged)
{
    for (uint32_t i = 0; i < pass->systems.count; i++)
        if (pass->systems.items[i]->lane == merged) pass->systems.items[i]->lane = kept;
}

/* Renumbers the lanes from 0 on, without gaps. Until then, the number of a lane is the index of its first
 * system. */
static void renumber_lanes(quern__pass *pass)
{
    pass->lane_count = 0;
    for (uint32_t i = 0; i < pass->systems.count; i++) {
        if (pass->systems.items[i]->lane < i) {
            pass->systems.items[i]->lane = pass->systems.items[pass->systems.items[i]->lane]->lane;
            continue;
        }
        pass->systems.items[i]->lane = pass->lane_count++;
    }
}

static void find_lanes(quern__pass *pass)
{
    for (uint32_t i = 0; i < pass->systems.count; i++) {
        quern__system *system = pass->systems.items[i];
        system->lane = i;
        for (uint32_t k = 0; k < i; k++) {
            const quern__system *earlier = pass->systems.items[k];
            if (earlier->lane == system->lane || kind_between(earlier, system) == QUERN__NO_CONFLICT)
                continue;
            bool is_lower = earlier->lane < system->lane;
            merge_lanes(pass, is_lower ? earlier->lane : system->lane,
                        is_lower ? system->lane : earlier->lane);
        }
    }
    renumber_lanes(pass);
}

/* ------------------------------------------------------------------------------ passes of a segment */

quern__conflict quern__fuse_conflict(const quern__pass *earlier, const quern__pass *later)
{
    const quern__plan *plan = earlier->plan;
    quern__conflict strongest = {.kind = QUERN__NO_CONFLICT};
    for (uint32_t i = 0; i < earlier->systems.count; i++)
        for (uint32_t k = 0; k < later->systems.count; k++) {
            uint32_t a = earlier->systems.items[i]->position, b = later->systems.items[k]->position;
            const quern__conflict *conflict = quern__plan_conflict(plan, a < b ? a : b, a < b ? b : a);
            if (conflict->kind > strongest.kind) strongest = *conflict;
        }
    return strongest;
}

/* Returns whether all passes that must precede `pass` are among the first `placed_count` passes. The
 * positions of these are final. */
static bool is_ready(const quern__segment *segment, uint32_t placed_count, const quern__pass *pass)
{
    for (uint32_t i = placed_count; i < segment->passes.count; i++) {
        const quern__pass *other = segment->passes.items[i];
        if (other->index < pass->index && quern__fuse_conflict(other, pass).kind != QUERN__NO_CONFLICT)
            return false;
    }
    return true;
}

/* For tests: chooses one of the orders that respect the edges, at random. */
static void shuffle_passes(quern__segment *segment, uint64_t *random)
{
    for (uint32_t placed = 0; placed < segment->passes.count; placed++) {
        uint32_t left = segment->passes.count - placed;
        uint32_t chosen = placed + (uint32_t)((next_random(random) >> 32) % left);
        while (!is_ready(
            segment, placed,
            segment->passes.items[chosen])) /* the unplaced pass with the smallest index is always ready */
            chosen = placed + (chosen - placed + 1) % left;
        quern__pass *pass = segment->passes.items[chosen];
        segment->passes.items[chosen] = segment->passes.items[placed];
        segment->passes.items[placed] = pass;
    }
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
    for (uint32_t i = 0; i < segment->passes.count; i++)
        find_lanes(segment->passes.items[i]);
    if (random != NULL) shuffle_passes(segment, random);
    return QUERN_OK;
}
