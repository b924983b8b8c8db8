/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "sched/schedule/link.h"

/* The edges are the transitive reduction of the conflicts between passes. To find it, each pass has a set of the passes
 * that it *reaches*: it waits for them, directly or indirectly. A pass takes its conflicts from the nearest pass to the
 * farthest, skips those that it reaches already, and adds the sets of the others to its own.
 *
 * The sets of all passes together would be quadratic. So the passes that can be reached are divided into blocks, from the
 * last to the first, and there are sets for the passes of one block at a time. Edges to later blocks are then known:
 * they can lead to the block, but edges to earlier blocks cannot. */

enum { BLOCK_PASSES = 4096, BLOCK_WORDS = BLOCK_PASSES / 64 };

typedef struct pass_links {
    const quern__plan *plan;
    const quern__segment *segment;
    uint32_t first, end;    /* the block: passes by index */
    uint32_t words_per_set; /* words of a set of passes of a block */
    uint64_t *reached;      /* one set per pass */
    uint64_t *conflicting;  /* passes of the block with a conflict with the current pass */
    bool *are_chained;      /* per pass: whether it reaches all passes before it */
} pass_links;

static uint64_t *reached_by(const pass_links *links, uint32_t pass)
{
    return links->reached + (size_t)pass * links->words_per_set;
}

/* Adds `before`, a pass of the block, and all that it reaches. */
static void add_reached(const pass_links *links, uint64_t *reached, uint32_t before)
{
    const uint64_t *others = reached_by(links, before);
    if (before < links->end) quern__bitset_add(reached, before - links->first);
    for (uint32_t word = 0; word < links->words_per_set; word++)
        reached[word] |= others[word];
}

/* Finds the passes of the block that conflict with the pass. Returns false if there are none. */
static bool find_conflicting(const pass_links *links, const quern__pass *pass)
{
    const quern__plan *plan = links->plan;
    bool found = false;
    uint32_t earlier;
    memset(links->conflicting, 0, links->words_per_set * sizeof(uint64_t));
    for (uint32_t i = 0; i < pass->systems.count; i++) {
        quern__pair_walk walk =
            quern__pair_set_walk(&plan->conflicts.all, pass->systems.items[i]->position);
        while (quern__pair_walk_next(&walk, &earlier) && earlier >= links->segment->first) {
            const uint32_t before = plan->pass_indices.items[earlier];
            if (before == pass->index || before < links->first || before >= links->end) continue;
            quern__bitset_add(links->conflicting, before - links->first);
            found = true;
        }
    }
    return found;
}

static bool add_edge(const pass_links *links, quern__pass *pass, uint32_t before)
{
    if (!quern__array_reserve(quern__plan_allocator(links->plan), &pass->waits_for,
                              pass->waits_for.count + 1))
        return false;
    pass->waits_for.items[pass->waits_for.count++] = before;
    add_reached(links, reached_by(links, pass->index), before);
    return true;
}

/* Precondition: bits != 0. */
static uint32_t highest_bit(uint64_t bits)
{
    const uint32_t high = (uint32_t)(bits >> 32);
    return high != 0 ? 32 + quern__highest_bit_32(high) : quern__highest_bit_32((uint32_t)bits);
}

static bool add_edges(const pass_links *links, quern__pass *pass)
{
    uint64_t *reached = reached_by(links, pass->index);
    for (uint32_t word = links->words_per_set; word-- > 0;)
        for (uint64_t left; (left = links->conflicting[word] & ~reached[word]) != 0;) {
            const uint32_t bit = highest_bit(left);
            links->conflicting[word] &= (1ull << bit) - 1;
            if (!add_edge(links, pass, links->first + 64 * word + bit)) return false;
        }
    return true;
}

/* Returns whether the pass reaches all before it because it conflicts with the pass before, which reaches all others.
 * Looks only at the nearest conflict of a pass with one system: this keeps long chains from being quadratic. */
static bool is_chained(const pass_links *links, const quern__pass *pass)
{
    const quern__plan *plan = links->plan;
    uint32_t earlier;
    if (pass->index == 0) return true;
    if (pass->systems.count > 1 || !links->are_chained[pass->index - 1]) return false;
    quern__pair_walk walk = quern__pair_set_walk(&plan->conflicts.all, pass->systems.items[0]->position);
    return quern__pair_walk_next(&walk, &earlier) && earlier >= links->segment->first &&
           plan->pass_indices.items[earlier] == pass->index - 1;
}

/* Finds the edges from passes of the block to the pass. Returns false if out of memory. */
static bool link_pass(const pass_links *links, quern__pass *pass)
{
    uint64_t *reached = reached_by(links, pass->index);
    memset(reached, 0, links->words_per_set * sizeof *reached);
    for (uint32_t i = 0; i < pass->waits_for.count; i++)
        add_reached(links, reached, pass->waits_for.items[i]);
    if (links->are_chained[pass->index]) return true;
    if (pass->index > links->first && pass->index <= links->end && is_chained(links, pass)) {
        links->are_chained[pass->index] = true;
        return add_edge(links, pass, pass->index - 1);
    }
    return !find_conflicting(links, pass) || add_edges(links, pass);
}

static bool link_blocks(pass_links *links)
{
    const quern__segment *segment = links->segment;
    const uint32_t count = segment->passes.count, block_count = (count + BLOCK_PASSES - 1) / BLOCK_PASSES;
    links->are_chained[0] = true;
    for (uint32_t block = block_count; block-- > 0;) {
        links->first = block * BLOCK_PASSES;
        links->end = links->first + BLOCK_PASSES < count ? links->first + BLOCK_PASSES : count;
        for (uint32_t i = links->first; i < count; i++)
            if (!link_pass(links, segment->passes.items[i])) return false;
    }
    return true;
}

quern_result quern__link_passes(const quern__plan *plan, const quern__segment *segment)
{
    const quern_allocator *allocator = quern__plan_allocator(plan);
    const uint32_t count = segment->passes.count, all_words = QUERN__BITSET_WORDS(count);
    pass_links links = {.plan = plan, .segment = segment};
    if (count < 2) return QUERN_OK;
    links.words_per_set = all_words < BLOCK_WORDS ? all_words : BLOCK_WORDS;
    const size_t bytes = (count + (size_t)1) * links.words_per_set * sizeof(uint64_t) + count;
    links.reached = quern__allocate(allocator, bytes, _Alignof(uint64_t));
    bool has_memory = links.reached != NULL;
    if (has_memory) {
        links.conflicting = reached_by(&links, count);
        links.are_chained = (bool *)(links.conflicting + links.words_per_set);
        memset(links.are_chained, 0, count);
        has_memory = link_blocks(&links);
    }
    quern__release(allocator, links.reached, bytes, _Alignof(uint64_t));
    return has_memory ? QUERN_OK
                      : quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory to link %u passes", count);
}
