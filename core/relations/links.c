/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Links: the pages of link nodes, the log of changes of links, edges and names that a failure reverts, and the
 * memory of pages. */
#include "core/relations/links.h"

#include "core/platform/platform.h"
#include "core/relations/relation_internal.h"

/* --------------------------------------------------------------------------------------------- pages */

static void release_page(quern__links *links, const quern_allocator *allocator, uint32_t page)
{
    quern__link_pages_give(links->memory, allocator, links->pages.items[page]);
    links->pages.items[page] = NULL;
    links->held_count--;
}

void quern__links_release(quern__links *links, const quern_allocator *allocator)
{
    for (uint32_t i = 0; i < links->pages.count; i++)
        if (links->pages.items[i] != NULL) release_page(links, allocator, i);
    quern__array_release(allocator, &links->pages);
    quern__marks_release(&links->touched, allocator);
    *links = (quern__links){0};
}

bool quern__links_add_page(quern__links *links, const quern_allocator *allocator, uint32_t slot)
{
    const uint32_t page = slot >> QUERN__LINK_PAGE_LOG2;
    if (!quern__array_reserve(allocator, &links->pages, page + 1) ||
        (links->touched.items != NULL && !quern__marks_extend(&links->touched, allocator, page + 1)))
        return false;
    quern__link_node *added = quern__link_pages_take(links->memory, allocator);
    if (added == NULL) return false;
    for (uint32_t i = 0; i < QUERN__LINK_PAGE_SLOTS; i++)
        added[i] = quern__empty_link_node;
    while (links->pages.count <= page)
        links->pages.items[links->pages.count++] = NULL;
    links->pages.items[page] = added;
    if (links->touched.items != NULL) links->touched.items[page] = ~UINT64_C(0);
    links->held_count++;
    return true;
}

/* Returns whether the entities have consecutive slots. */
static bool have_consecutive_slots(const quern_entity *entities, uint32_t count)
{
    const uint32_t first = quern_entity_index(entities[0]);
    for (uint32_t i = 1; i < count; i++)
        if (quern_entity_index(entities[i]) != first + i) return false;
    return true;
}

_Static_assert(sizeof(quern__link_node) == 4 * sizeof(uint64_t), "links are words in pairs");

/* Writes the links of a tree with consecutive slots. A slot is the number of its entity in the tree plus the first
 * slot. Each 64-bit addition adds to two members at once; every sum fits in 32 bits, so no carry crosses over. */
static inline void put_consecutive(quern__link_node *restrict links, const quern__link_node *restrict node,
                                   const quern__link_node *restrict bases, uint32_t count, uint32_t first)
{
    const uint64_t both = (uint64_t)first << 32 | first;
    for (uint32_t i = 0; i < count; i++) {
        uint64_t words[4], adds[4];
        memcpy(words, &node[i], sizeof words);
        memcpy(adds, &bases[i], sizeof adds);
        for (uint32_t k = 0; k < 4; k++)
            words[k] += adds[k] & both;
        memcpy(&links[i], words, sizeof words);
    }
}

static inline uint32_t slot_of(const quern_entity *entities, uint32_t number)
{
    return number != QUERN__SLOT_NONE ? quern_entity_index(entities[number]) : QUERN__SLOT_NONE;
}

/* Writes the links of a tree without consecutive slots. */
static void put_scattered(const quern__links *links, const quern__link_node *node, uint32_t count,
                          const quern_entity *entities)
{
    for (uint32_t i = 0; i < count; i++)
        *quern__links_at(links, quern_entity_index(entities[i])) =
            (quern__link_node){.target = slot_of(entities, node[i].target),
                               .first = slot_of(entities, node[i].first),
                               .last = slot_of(entities, node[i].last),
                               .next = slot_of(entities, node[i].next),
                               .previous = slot_of(entities, node[i].previous),
                               .count = node[i].count,
                               .level = node[i].level};
}

void quern__links_put_trees(quern__links *links, const quern__link_node *node,
                            const quern__link_node *bases, uint32_t node_count,
                            const quern_entity *entities, uint32_t tree_count)
{
    const bool are_consecutive = have_consecutive_slots(entities, node_count * tree_count);
    for (uint32_t i = 0; i < tree_count; i++, entities += node_count) {
        const uint32_t first = quern_entity_index(entities[0]), last = first + node_count - 1;
        if (are_consecutive && first >> QUERN__LINK_PAGE_LOG2 == last >> QUERN__LINK_PAGE_LOG2)
            put_consecutive(quern__links_at(links, first), node, bases, node_count, first);
        else
            put_scattered(links, node, node_count, entities);
        for (uint32_t k = 0; links->touched.items != NULL && k < node_count; k++)
            quern__links_touch(links, quern_entity_index(entities[k]));
    }
    links->version++;
}

void quern__links_move_before(quern__links *links, uint32_t source, uint32_t before)
{
    const uint32_t target = quern__links_at(links, source)->target;
    if (before == source) return;
    quern__links_unlink(links, source);
    quern__links_link(links, source, target, before);
}

uint32_t quern__links_next_below(const quern__links *links, uint32_t root, uint32_t slot)
{
    const uint32_t child = quern__links_first(links, slot);
    if (child != QUERN__SLOT_NONE) return child;
    while (slot != root && quern__links_at(links, slot)->next == QUERN__SLOT_NONE)
        slot = quern__links_at(links, slot)->target;
    return slot != root ? quern__links_at(links, slot)->next : QUERN__SLOT_NONE;
}

bool quern__links_is_at_or_above(const quern__links *links, uint32_t slot, uint32_t below)
{
    const uint32_t level = quern__links_level(links, slot);
    while (below != slot && below != QUERN__SLOT_NONE) {
        const quern__link_node *node = quern__links_find(links, below);
        /* the maximal level covers several depths */
        if (node == NULL || (node->level <= level && node->level < QUERN_MAX_RELATION_LEVEL)) return false;
        below = node->target;
    }
    return below == slot;
}

static bool is_page_unused(const quern__link_node *page)
{
    for (uint32_t i = 0; i < QUERN__LINK_PAGE_SLOTS; i++)
        if (page[i].target != QUERN__SLOT_NONE || page[i].count > 0) return false;
    return true;
}

void quern__links_trim(quern__links *links, const quern_allocator *allocator)
{
    for (uint32_t i = 0; i < links->pages.count; i++) {
        if (links->pages.items[i] == NULL || !is_page_unused(links->pages.items[i])) continue;
        release_page(links, allocator, i);
    }
}

/* ------------------------------------------------------------------------------------ the log: links */

void quern__link_log_release(quern__link_log *log, const quern_allocator *allocator)
{
    quern__array_release(allocator, &log->changes);
    quern__array_release(allocator, &log->saved_names);
    *log = (quern__link_log){0};
}

QUERN__SLOW_PATH quern_result quern__link_log_fail(const quern__storage *storage)
{
    return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory to log %u changes of links and names",
                       storage->relations->log.changes.count + 1);
}

/* Sets the levels of a slot's sources to that slot's level plus one, and logs each change. Sources in the cascade
 * `ending` keep their levels. Returns false if out of memory. */
static inline bool set_source_levels(quern__storage *storage, quern__relation *relation, uint32_t slot,
                                     const quern__cascade *ending)
{
    quern__link_log *log = &storage->relations->log;
    const quern__links *links = &relation->links;
    const quern__link_node *above = quern__links_at(links, slot);
    if (above->count == 0) return true;
    const uint32_t level =
        above->level < QUERN_MAX_RELATION_LEVEL ? above->level + 1 : QUERN_MAX_RELATION_LEVEL;
    if (!quern__array_reserve(&storage->allocator, &log->changes, log->changes.count + above->count))
        return false;
    quern__link_change *entry = log->changes.items + log->changes.count;
    for (uint32_t source = above->first; source != QUERN__SLOT_NONE;) {
        quern__link_node *node = quern__links_at(links, source);
        QUERN__PREFETCH_WRITE(quern__entities_record(&storage->entities, source));
        quern__links_fetch_or(links, node->first, source); /* the breadth-first walk reads them soon */
        if (node->level != level && (ending == NULL || !quern__cascade_has(ending, source))) {
            quern__link_change_fill(entry, relation, source, node, QUERN__CHANGE_LEVEL);
            entry++->row_tier = level + 1;
            node->level = level;
            quern__links_touch(links, source);
        }
        source = node->next;
    }
    log->changes.count = (uint32_t)(entry - log->changes.items);
    return true;
}

quern_result quern__link_log_set_levels_below(quern__storage *storage, quern__relation *relation,
                                              uint32_t first, const quern__cascade *ending)
{
    const quern__link_log *log = &storage->relations->log;
    for (uint32_t i = first; i < log->changes.count; i++)
        if (!set_source_levels(storage, relation, log->changes.items[i].slot, ending))
            return quern__link_log_fail(storage);
    return QUERN_OK;
}

quern_result quern__link_log_unlink(quern__storage *storage, quern__relation *relation, uint32_t source)
{
    const quern__link_node *node = quern__links_at(&relation->links, source);
    if (quern__link_log_add(storage, relation, source, node) == NULL) return quern__link_log_fail(storage);
    quern__links_unlink(&relation->links, source);
    return QUERN_OK;
}

/* ------------------------------------------------------------------------------------ the log: edges */

/* Logs a change of an edge. Returns false if out of memory. */
static bool log_edge(quern__storage *storage, quern__link_change change)
{
    quern__link_log *log = &storage->relations->log;
    if (!quern__array_reserve(&storage->allocator, &log->changes, log->changes.count + 1)) return false;
    log->changes.items[log->changes.count++] = change;
    return true;
}

quern_result quern__link_log_add_edge(quern__storage *storage, quern__relation *relation, uint32_t source,
                                      uint32_t target)
{
    if (!quern__edges_reserve(&relation->edges, &storage->allocator, source, target))
        return quern__link_log_fail(storage);
    const bool is_first = quern__edges_at(&relation->edges, source)->targets.count == 0;
    const quern__link_change change = {.kind = QUERN__CHANGE_EDGE_ADDED,
                                       .relation = relation,
                                       .slot = source,
                                       .old_target = target,
                                       .old_level = !is_first,
                                       .row_tier = is_first ? 1 : QUERN__ROW_STAYS};
    if (QUERN__UNLIKELY(quern__relation_has_values(relation))) {
        const quern_result result = quern__pending_put(storage, relation, source, target, NULL);
        if (result != QUERN_OK) return result;
    }
    if (!log_edge(storage, change)) return quern__link_log_fail(storage);
    quern__edges_add(&relation->edges, source, target);
    relation->links.version++;
    return QUERN_OK;
}

quern_result quern__link_log_remove_edge(quern__storage *storage, quern__relation *relation,
                                         uint32_t source, uint32_t target)
{
    const bool is_last = quern__edges_at(&relation->edges, source)->targets.count == 1;
    const quern__link_change change = {.kind = QUERN__CHANGE_EDGE_REMOVED,
                                       .relation = relation,
                                       .slot = source,
                                       .old_target = target,
                                       .old_level = true,
                                       .row_tier = is_last ? 0 : QUERN__ROW_STAYS};
    if (!log_edge(storage, change)) return quern__link_log_fail(storage);
    quern__edges_remove(&relation->edges, source, target);
    relation->links.version++;
    if (QUERN__UNLIKELY(quern__relation_has_values(relation)))
        return quern__pending_remove(storage, relation, source, target);
    return QUERN_OK;
}

/* ------------------------------------------------------------------------------------ the log: names */

/* Logs the current name of a slot, or that it has none. Returns false if out of memory. */
static bool log_name(quern__storage *storage, uint32_t slot)
{
    const quern_allocator *allocator = &storage->allocator;
    quern__link_log *log = &storage->relations->log;
    const quern__name *name = quern__names_of(storage->names, slot);
    if (!quern__array_reserve(allocator, &log->changes, log->changes.count + 1) ||
        !quern__array_reserve(allocator, &log->saved_names, log->saved_names.count + 1))
        return false;
    log->changes.items[log->changes.count++] = (quern__link_change){
        .kind = QUERN__CHANGE_NAME,
        .slot = slot,
        .old_target = name != NULL ? log->saved_names.count : QUERN__SLOT_NONE,
    };
    if (name != NULL) log->saved_names.items[log->saved_names.count++] = *name;
    return true;
}

quern_result quern__link_log_drop_name(quern__storage *storage, uint32_t slot)
{
    if (quern__names_number(storage->names, slot) == QUERN__NAME_NONE) return QUERN_OK;
    if (!log_name(storage, slot)) return quern__link_log_fail(storage);
    quern__names_drop(storage->names, slot);
    return QUERN_OK;
}

quern_result quern__link_log_put_name(quern__storage *storage, uint32_t slot, uint32_t parent,
                                      const char *text, uint32_t text_bytes)
{
    if (!quern__names_reserve(storage->names, &storage->allocator, slot) || !log_name(storage, slot))
        return quern__link_log_fail(storage);
    quern__names_drop(storage->names, slot);
    quern__names_put(storage->names, slot, parent, text, text_bytes);
    storage->has_attachments = true;
    return QUERN_OK;
}

/* ------------------------------------------------------------------------------------- the log: trees */

quern_result quern__link_log_put_tree(quern__storage *storage, quern__relation *relation,
                                      const quern__link_node *node, const quern__link_node *bases,
                                      uint32_t node_count, const quern_entity *entities)
{
    quern__link_log *log = &storage->relations->log;
    if (!quern__array_reserve(&storage->allocator, &log->changes, log->changes.count + 1))
        return quern__link_log_fail(storage);
    log->changes.items[log->changes.count++] = (quern__link_change){.relation = relation,
                                                                    .slot = quern_entity_index(entities[0]),
                                                                    .old_target = QUERN__SLOT_NONE,
                                                                    .row_tier = QUERN__ROW_STAYS,
                                                                    .kind = QUERN__CHANGE_TREE};
    quern__links_put_trees(&relation->links, node, bases, node_count, entities, 1);
    return QUERN_OK;
}

/* Clears the links of a root without target and of all entities below it. */
static void clear_tree(const quern__links *links, uint32_t root)
{
    uint32_t slot = root;
    while (slot != QUERN__SLOT_NONE) {
        const quern__link_node node = *quern__links_at(links, slot);
        if (node.first != QUERN__SLOT_NONE) {
            slot = node.first;
            continue;
        }
        /* A leaf: its parent's list begins with it, since its earlier siblings are gone. */
        const uint32_t target = node.target;
        if (target != QUERN__SLOT_NONE) quern__links_at(links, target)->first = node.next;
        quern__links_clear(links, slot);
        slot = node.next != QUERN__SLOT_NONE ? node.next : target;
    }
}

/* ------------------------------------------------------------------------------------- the log: undo */

void quern__link_log_revert(quern__storage *storage)
{
    const quern__link_log *log = &storage->relations->log;
    quern__pending_cancel(storage);
    for (uint32_t i = log->changes.count; i-- > 0;) {
        const quern__link_change *change = &log->changes.items[i];
        const uint32_t slot = change->slot;
        if (change->kind == QUERN__CHANGE_NAME) {
            quern__names_drop(storage->names, slot);
            if (change->old_target == QUERN__SLOT_NONE) continue;
            /* the table has room for the name, because the name was in it before */
            const quern__name *saved = &log->saved_names.items[change->old_target];
            quern__names_put(storage->names, slot, saved->parent, saved->text,
                             (uint32_t)strlen(saved->text));
            continue;
        }
        if (change->kind == QUERN__CHANGE_EDGE_ADDED)
            quern__edges_remove(&change->relation->edges, slot, change->old_target);
        else if (change->kind == QUERN__CHANGE_EDGE_REMOVED)
            quern__edges_add(&change->relation->edges, slot, change->old_target);
        if (change->relation->is_many) continue; /* it has only edges */
        quern__links *links = &change->relation->links;
        if (change->kind == QUERN__CHANGE_TREE) {
            clear_tree(links, slot);
            continue;
        }
        quern__links_set_level(links, slot, change->old_level);
        if (change->kind == QUERN__CHANGE_LEVEL) continue;
        if (quern__links_at(links, slot)->target != QUERN__SLOT_NONE) quern__links_unlink(links, slot);
        if (change->old_target != QUERN__SLOT_NONE)
            quern__links_link(links, slot, change->old_target, change->old_next);
        quern__naming_update_parent(storage, change->relation, slot, change->old_target);
    }
}

/* ------------------------------------------------------------------------------------ memory of pages */

#define ALL_FREE ((uint32_t)((1ull << QUERN__LINK_BLOCK_PAGES) - 1))

void quern__link_pages_release(quern__link_pages *pages, const quern_allocator *allocator)
{
    assert(pages->block_count == 0);
    quern__array_release(allocator, &pages->blocks);
    *pages = (quern__link_pages){0};
}

/* Returns the index of the first entry with a free page, otherwise of the first unused entry, otherwise the index
 * after the last entry. */
static uint32_t find_entry(const quern__link_pages *pages)
{
    uint32_t unused = pages->blocks.count;
    for (uint32_t i = pages->blocks.count; i-- > 0;)
        if (pages->blocks.items[i].memory == NULL) unused = i;
    for (uint32_t i = 0; i < pages->blocks.count; i++)
        if (pages->blocks.items[i].free_mask != 0) return i;
    return unused;
}

static bool add_block(quern__link_pages *pages, const quern_allocator *allocator, uint32_t index)
{
    if (!quern__array_reserve(allocator, &pages->blocks, index + 1)) return false;
    char *memory = quern__allocate(allocator, QUERN__LINK_BLOCK_BYTES, QUERN__LINK_BLOCK_BYTES);
    if (memory == NULL) return false;
    const bool is_huge = pages->block_count > 0;
    if (is_huge) quern__advise_huge_pages(memory, QUERN__LINK_BLOCK_BYTES);
    pages->blocks.items[index] =
        (quern__link_block){.memory = memory, .free_mask = ALL_FREE, .is_huge = is_huge};
    if (index == pages->blocks.count) pages->blocks.count++;
    pages->block_count++;
    return true;
}

void *quern__link_pages_take(quern__link_pages *pages, const quern_allocator *allocator)
{
    const uint32_t index = find_entry(pages);
    const bool has_page = index < pages->blocks.count && pages->blocks.items[index].free_mask != 0;
    if (!has_page && !add_block(pages, allocator, index)) return NULL;
    quern__link_block *block = &pages->blocks.items[index];
    const uint32_t page = quern__lowest_bit_32(block->free_mask);
    block->free_mask &= block->free_mask - 1;
    if (!block->is_huge && quern__count_bits_32(block->free_mask) <= QUERN__LINK_BLOCK_PAGES / 4 * 3) {
        block->is_huge = true;
        quern__collapse_huge_page(block->memory, QUERN__LINK_BLOCK_BYTES);
    }
    return block->memory + (size_t)page * QUERN__LINK_PAGE_BYTES;
}

void quern__link_pages_give(quern__link_pages *pages, const quern_allocator *allocator, void *page)
{
    /* blocks are aligned to their size, so masking finds the start of the block */
    char *memory = (char *)((uintptr_t)page & ~(uintptr_t)(QUERN__LINK_BLOCK_BYTES - 1));
    quern__link_block *block = pages->blocks.items;
    while (block->memory != memory)
        block++;
    block->free_mask |= 1u << ((size_t)((char *)page - memory) / QUERN__LINK_PAGE_BYTES);
    if (block->free_mask != ALL_FREE) return;
    quern__release(allocator, memory, QUERN__LINK_BLOCK_BYTES, QUERN__LINK_BLOCK_BYTES);
    *block = (quern__link_block){0};
    pages->block_count--;
}
