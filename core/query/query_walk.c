/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Walks over a query: along the list of its chunks, or, where nobody has asked for one yet or terms choose
 * among the rows, from match to match. */

#include "core/query/query_internal.h"
#include "core/query/rows.h"
#include "core/query/target.h"
#include "core/world/world_internal.h"

enum {
    PREFETCH_MATCHES = 4,
    /* Walks over less find it all in L2, where fetching ahead gains nothing. Who comes to few rows in each
     * chunk is through before what is fetched has come. */
    CACHED_BYTES = 256 * 1024,
    CACHED_CHUNKS = CACHED_BYTES / QUERN__CHUNK_BYTES,
    FEW_ROWS = 64
};

/* -------------------------------------------------------------------------------------- the list */

static uint64_t count_stops(const quern__query *query)
{
    uint64_t count = 0;
    for (uint32_t i = 0; i < query->matches.count; i++)
        count += query->matches.items[i].archetype->chunk_count;
    return count;
}

/* The bytes of a row that a walk may touch. */
static uint32_t touched_bytes(const quern__query *query, const quern__query_match *match)
{
    uint32_t bytes = 0;
    for (uint32_t i = 0; i < query->term_count; i++)
        if (match->columns[i].access != QUERN_NO_ACCESS) bytes += match->columns[i].size_bytes;
    return bytes;
}

/* Each entry is fetched from the one before. */
static void plan_fetching(quern__query *query, uint64_t bytes)
{
    if (bytes <= CACHED_BYTES) return;
    for (uint32_t i = 1; i < query->entries.count; i++) {
        if (query->entries.items[i].count < FEW_ROWS) continue;
        query->entries.items[i - 1].fetches_next = true;
        query->entries.items[i - 1].is_plain = false;
    }
}

/* Without memory there is no list, and walks go from match to match as the first one does. */
static void list_entries(quern__query *query)
{
    const uint64_t count = count_stops(query);
    query->entries_version = QUERN__NO_VERSION;
    query->entries.count = 0;
    if (count > UINT32_MAX - QUERN__PREFETCH_ENTRIES ||
        !quern__array_reserve(&query->storage->allocator, &query->entries,
                              (uint32_t)count + QUERN__PREFETCH_ENTRIES))
        return;
    uint64_t bytes = 0;
    bool is_watched = false;
    for (uint32_t i = 0; i < query->matches.count; i++) {
        const quern__query_match *match = &query->matches.items[i];
        bytes += quern__archetype_row_count(match->archetype) * touched_bytes(query, match);
        for (uint32_t k = 0; k < match->archetype->chunk_count; k++) {
            const quern__chunk_slot *slot = &match->archetype->slots[k];
            query->entries.items[query->entries.count] = (quern__chunk_entry){
                .count = slot->row_count,
                .ordinal = query->entries.count,
                .entities = quern__archetype_entities(match->archetype, slot->chunk),
                .chunk = (char *)slot->chunk,
                .columns = match->columns,
                .watched = match->archetype->is_watched ? match->archetype : NULL,
                .slot = k,
                .is_plain = true,
            };
            is_watched |= query->entries.items[query->entries.count++].watched != NULL;
        }
    }
    for (uint32_t i = 0; i < query->entries.count && is_watched; i++)
        query->entries.items[i].is_plain = false;
    for (uint32_t i = 0; i < QUERN__PREFETCH_ENTRIES && count > 0; i++)
        query->entries.items[count + i] = query->entries.items[count - 1];
    plan_fetching(query, bytes);
    query->entries_version = query->storage->structure_version;
}

void quern__query_attend(quern_query_iterator *iterator, const quern__chunk_entry *entry)
{
    quern__view_set_listeners(&iterator->view, entry->watched, entry->slot);
    if (entry->fetches_next) quern__query_fetch_next(iterator->query, entry);
}

quern_result quern__query_list(quern__query *query)
{
    if (query->target != NULL) return quern__target_list(query);
    if (query->entries_version != query->storage->structure_version) list_entries(query);
    if (query->entries_version == query->storage->structure_version) return QUERN_OK;
    return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory to list the %llu chunks of a query",
                       (unsigned long long)count_stops(query));
}

/* There is room: the list is as long as it was. So walks under way go on. */
void quern__query_list_again(quern__query *query)
{
    if (query->entries_version == query->storage->structure_version) list_entries(query);
}

/* --------------------------------------------------------------------------------------- filters */

bool quern__query_passes_filters(const quern__query *query, const quern_view_column *columns,
                                 const uint64_t *versions, uint64_t seen_version)
{
    if (versions == NULL) return false;
    for (uint32_t i = 0; i < query->term_count; i++)
        if (query->terms[i].changed && columns[i].present &&
            (versions[0] > seen_version || versions[columns[i].version_index] > seen_version))
            return true;
    return false;
}

/* What a loop over a query with filters writes has the version of the query's own look, and so is not new
 * to it, unless somebody has looked since, inside the loop: then it is new to all, for better once too
 * often than never. */
uint64_t quern__query_write_version(const quern_query *query)
{
    const uint64_t clock = query->storage->clock;
    const bool is_last_look = query->filter_count > 0 && query->seen_version + 1 == clock;
    return is_last_look ? query->seen_version : clock;
}

/* -------------------------------------------------------------------------------------- the walk */

/* Lists the entries when that pays: for the second walk over a structure, since another may follow. */
static void take_entries(quern__query *query, quern_query_iterator *iterator)
{
    const uint64_t version = query->storage->structure_version;
    if (query->filter_count > 0 || query->picks_rows || query->target != NULL) return;
    if (query->walked_version == version && query->entries_version != version) list_entries(query);
    query->walked_version = version;
    if (query->entries_version != version || query->entries.count == 0) return;
    iterator->next_entry = query->entries.items;
    iterator->end_entry = query->entries.items + query->entries.count;
}

/* For builds with QUERN_CHECKS: the views of a walk stay good while frames run. */
static void note_lent(const quern__query *query)
{
    for (uint32_t i = 0; i < query->term_count; i++)
        if (query->terms[i].access == QUERN_WRITE)
            quern__storage_note_lent(query->storage, quern__component_index(query->terms[i].component));
}

/* The store is relaxed: an iteration belongs to one thread. */
quern_query_iterator quern_query_iterate(quern_query *query)
{
    quern_query_iterator iterator;
    memset(&iterator, 0, offsetof(quern_query_iterator, next_row));
    iterator.query = query;
    iterator.view.query = query;
    iterator.next_row = UINT32_MAX;
    if (query == NULL) {
        iterator.result = quern__fail_null("quern_query_iterate", "query");
        return iterator;
    }
    atomic_store_explicit(&query->accessor.refusal_count, 0, memory_order_relaxed);
    iterator.current_version = &query->storage->structure_version;
    iterator.expected_version = query->storage->structure_version;
    iterator.is_locked = &query->world->locked;
    iterator.view.term_count = query->term_count;
    iterator.result = quern__world_check_unlocked(query->world, "quern_query_iterate");
    if (iterator.result == QUERN_OK)
        iterator.result = quern__in_call(quern__query_refresh(query), "quern_query_iterate");
    if (iterator.result == QUERN_OK && query->target != NULL)
        iterator.result = quern__in_call(quern__target_begin(&iterator), "quern_query_iterate");
    if (iterator.result == QUERN_OK && query->up_count > 0)
        iterator.result = quern__in_call(quern__ups_begin_walk(&iterator), "quern_query_iterate");
    if (iterator.result == QUERN_OK) take_entries(query, &iterator);
    if (QUERN_CHECKS && iterator.result == QUERN_OK) note_lent(query);
    iterator.seen_version = query->seen_version;
    if (iterator.result == QUERN_OK && query->filter_count > 0)
        query->seen_version = query->storage->clock++;
    return iterator;
}

/* Asks for what the walk will touch a few matches later: with many small archetypes each of them costs a
 * trip to memory otherwise, for there is no order in which a prefetcher could foresee them. */
static void prefetch_ahead(const quern__query *query, uint32_t match_index)
{
    if (match_index + 2 * PREFETCH_MATCHES >= query->matches.count) return;
    __builtin_prefetch(query->matches.items[match_index + 2 * PREFETCH_MATCHES].archetype);
    const quern__query_match *match = &query->matches.items[match_index + PREFETCH_MATCHES];
    if (match->archetype->chunk_count == 0) return;
    const char *chunk = (const char *)match->archetype->slots[0].chunk;
    for (uint32_t i = 0; i < query->term_count; i++)
        if (match->columns[i].access != QUERN_NO_ACCESS)
            __builtin_prefetch(chunk + match->columns[i].offset_bytes);
}

/* The first chunk of a match from the given one on that filters let pass. Most walks over few changes leave
 * most chunks out, so this touches nothing but versions. */
static uint32_t find_changed(const quern__query *query, const quern__query_match *match, uint32_t chunk,
                             uint64_t seen_version)
{
    const uint32_t chunk_count = match->archetype->chunk_count;
    const quern__versions *kept = &match->archetype->versions;
    uint32_t indices[QUERN_MAX_TERMS] = {0}, index_count = 0; /* 0: that of the rows */
    for (uint32_t i = 0; i < query->term_count; i++)
        if (query->terms[i].changed && match->columns[i].present)
            indices[index_count++] = match->columns[i].version_index;
    if (kept->items == NULL || index_count == 0) return chunk_count;
    const uint64_t *versions = quern__versions_of(kept, chunk);
    const uint32_t first = indices[0], second = indices[1];
    for (; chunk < chunk_count; chunk++, versions += kept->stride) {
        bool is_new = (versions[0] > seen_version) | (versions[first] > seen_version) |
                      (versions[second] > seen_version);
        for (uint32_t i = 2; i < index_count; i++)
            is_new |= versions[indices[i]] > seen_version;
        if (is_new) break;
    }
    return chunk;
}

/* Moves on to the next chunk that has rows, in this match or a later one. */
static bool advance(quern_query_iterator *iterator)
{
    const quern__query *query = iterator->query;
    if (query->target != NULL) return quern__target_next(iterator);
    for (; iterator->match_index < query->matches.count;
         iterator->match_index++, iterator->chunk_index = 0) {
        const quern__query_match *match = &query->matches.items[iterator->match_index];
        if (iterator->chunk_index == 0) prefetch_ahead(query, iterator->match_index);
        if (query->filter_count > 0)
            iterator->chunk_index =
                find_changed(query, match, iterator->chunk_index, iterator->seen_version);
        if (iterator->chunk_index < match->archetype->chunk_count) {
            const quern__chunk_slot *slot = &match->archetype->slots[iterator->chunk_index++];
            quern__view_set(&iterator->view, query, match, slot);
            if (match->archetype->chunk_count > CACHED_CHUNKS &&
                iterator->chunk_index < match->archetype->chunk_count)
                quern__query_fetch_heads(query, match->columns, slot[1].chunk, slot[1].row_count);
            iterator->view.ordinal = iterator->view_count++;
            return true;
        }
    }
    return false;
}

/* Others may have the place of the addresses by now. */
static void end_up_walk(quern_query_iterator *iterator)
{
    if (quern__ups_has_walk(iterator)) iterator->up_walk->number = 0;
    iterator->up_walk = NULL;
}

/* Moves on to the next rows that filters by row let pass, and that have enabled, or disabled, what terms
 * ask for, in this chunk or a later one. */
static bool advance_rows(quern_query_iterator *iterator)
{
    const quern__query *query = iterator->query;
    if (query->row_term_count == 0 && query->row_filters == 0) return advance(iterator);
    while (iterator->next_row == UINT32_MAX ||
           !quern__rows_next(query, &iterator->mask, &iterator->next_row, &iterator->view)) {
        if (!advance(iterator)) return false;
        const quern__pick pick =
            quern__rows_pick(query, &iterator->view, iterator->seen_version, &iterator->mask);
        iterator->next_row = pick == QUERN__PICK_SOME ? 0 : UINT32_MAX;
        if (pick == QUERN__PICK_ALL) return true;
    }
    return true;
}

/* Moves on to the next of these rows that up-terms let stay. */
static bool advance_up(quern_query_iterator *iterator)
{
    const quern__query *query = iterator->query;
    quern__up_walk *walk = iterator->up_walk;
    quern__ups_use_walk(iterator);
    walk->iterator = iterator;
    while (query->by_runs || !quern__up_next(query, &walk->rows, &iterator->view)) {
        if (!advance_rows(iterator)) {
            end_up_walk(iterator);
            return false;
        }
        walk->rows = quern__up_find(query, walk->addresses, &iterator->view);
        if (query->by_runs && quern__rows_leave_out(query, &walk->rows, &iterator->view, &iterator->mask))
            return true;
    }
    return true;
}

/* Whether the iterator may go on; if not, its result says why, and stays. */
static bool may_go_on(quern_query_iterator *iterator)
{
    if (iterator->result != QUERN_OK) return false;
    iterator->result = quern__world_check_unlocked(iterator->query->world, "quern_query_next");
    const bool has_changed = *iterator->current_version != iterator->expected_version ||
                             (iterator->query->target != NULL && !quern__target_holds(iterator));
    if (iterator->result == QUERN_OK && has_changed)
        iterator->result =
            quern__fail(QUERN_ERROR_STRUCTURE_CHANGED, "quern_query_next: the world changed its structure "
                                                       "while a query was iterated: collect the entities "
                                                       "first and change them after the loop");
    if (iterator->result == QUERN_OK && iterator->up_walk != NULL && !quern__ups_has_walk(iterator))
        iterator->result = quern__violation(
            QUERN_ERROR_INVALID_ARGUMENT,
            "quern_query_next: %d other iterations of the query have begun since, and were not walked to "
            "the end: a query with up-terms keeps addresses for so many (end those that are left early by "
            "quern_query_end, or create another query)",
            QUERN__UP_WALKS);
    return iterator->result == QUERN_OK;
}

bool quern__query_next(quern_query_iterator *iterator)
{
    if (iterator == NULL) {
        quern__fail_null("quern_query_next", "iterator");
        return false;
    }
    bool is_listed = iterator->end_entry != NULL;
    iterator->next_entry = iterator->end_entry; /* whatever comes, the list will not be looked at again */
    if (!may_go_on(iterator) || is_listed) return false;
    return iterator->up_walk == NULL ? advance_rows(iterator) : advance_up(iterator);
}

void quern_query_end(quern_query_iterator *iterator)
{
    if (iterator == NULL) return;
    if (iterator->up_walk != NULL) end_up_walk(iterator);
    iterator->next_entry = iterator->end_entry;
    iterator->match_index = UINT32_MAX; /* behind all matches, and all runs of rows */
    iterator->next_row = UINT32_MAX;
}
