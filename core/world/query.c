/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "core/world/query.h"

#include "core/world/target.h"
#include "core/world/up.h"
#include "core/world/world.h"

enum {
    PREFETCH_MATCHES = 4,
    /* Walks over less find it all in L2, where fetching ahead gains nothing. Who comes to few rows in each
     * chunk is through before what is fetched has come. */
    CACHED_BYTES = 256 * 1024,
    CACHED_CHUNKS = CACHED_BYTES / QUERN__CHUNK_BYTES,
    FEW_ROWS = 64
};

/* ------------------------------------------------------------------------------------- definition */

static bool is_end_of_terms(const void *list, uint32_t i)
{
    const quern_term *term = &((const quern_term *)list)[i];
    return quern_component_is_null(term->component) && term->match == 0 &&
           term->access == QUERN_NO_ACCESS && !term->changed && term->reach == QUERN_REACH_ROW &&
           term->relation.bits == 0 && !term->by_target;
}

quern_result quern__terms_count(const quern_term *terms, uint32_t *out_count)
{
    return quern__list_count(terms, QUERN_MAX_TERMS, is_end_of_terms, "term", NULL, out_count);
}

/* Whether both are about the same component of the same entity. */
static bool are_alike(const quern_term *a, const quern_term *b)
{
    return quern_component_equal(a->component, b->component) && a->reach == b->reach &&
           a->relation.bits == b->relation.bits;
}

static quern_result check_term(const quern__storage *storage, const quern_term *terms, uint32_t i)
{
    const quern_term *term = &terms[i];
    if (quern_component_is_null(term->component))
        return quern__fail(QUERN_ERROR_UNKNOWN_COMPONENT, "term %u names no component: was it registered?",
                           i);
    quern_result result = quern__components_check(&storage->components, term->component);
    if (result != QUERN_OK) return quern__name_element(result, "term", i);
    const char *name =
        quern__components_type(&storage->components, quern__component_index(term->component))->name;
    if ((unsigned)term->match > QUERN_MATCH_ANY)
        return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                           "term %u ('%s') has match %d, which is none of quern_match", i, name,
                           (int)term->match);
    if ((unsigned)term->access > QUERN_WRITE)
        return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                           "term %u ('%s') has access %d; for components there are QUERN_NO_ACCESS, "
                           "QUERN_READ and QUERN_WRITE",
                           i, name, (int)term->access);
    if (term->access == QUERN_WRITE &&
        quern__components_is_managed(&storage->components, quern__component_index(term->component)))
        return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                           "term %u writes '%s', which is a relation and kept by the world: read it, and "
                           "relate by quern_commands_relate or quern_entity_relate",
                           i, name);
    if (term->match == QUERN_MATCH_NONE && term->access != QUERN_NO_ACCESS)
        return quern__fail(
            QUERN_ERROR_INVALID_ARGUMENT,
            "term %u excludes '%s' and asks for access to it: what is not there cannot be touched", i,
            name);
    if (term->match == QUERN_MATCH_NONE && term->changed)
        return quern__fail(
            QUERN_ERROR_INVALID_ARGUMENT,
            "term %u excludes '%s' and asks whether it has changed: what is not there cannot "
            "change",
            i, name);
    for (uint32_t k = 0; k < i; k++)
        if (are_alike(&terms[k], term))
            return quern__fail(QUERN_ERROR_DUPLICATE_COMPONENT, "'%s' stands in term %u and in term %u",
                               name, k, i);
    if (term->by_target) return quern__target_check(storage, terms, i);
    if (term->reach != QUERN_REACH_ROW) return quern__up_check(storage, term, i);
    if (term->relation.bits == 0) return QUERN_OK;
    return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                       "term %u ('%s') names a relation and is no up-term: set its reach (quern_term_up)",
                       i, name);
}

/* Few archetypes have the rarest component: looking only at those spares the others. */
static uint32_t find_driver(const quern__storage *storage, const quern_term *terms, uint32_t term_count)
{
    uint32_t driver = QUERN__NO_DRIVER, fewest = UINT32_MAX;
    for (uint32_t i = 0; i < term_count; i++) {
        if (terms[i].match != QUERN_MATCH_ALL) continue;
        uint32_t index = quern__term_index(&terms[i]);
        uint32_t count = storage->components.list.items[index]->archetypes.count;
        if (count < fewest) {
            fewest = count;
            driver = index;
        }
    }
    return driver;
}

static void unfilter(quern__storage *storage, const quern_term *terms, uint32_t term_count)
{
    for (uint32_t i = 0; i < term_count; i++)
        if (terms[i].changed) quern__storage_unfilter(storage, quern__component_index(terms[i].component));
}

static quern_result filter(quern__storage *storage, const quern_term *terms, uint32_t term_count,
                           uint32_t *out_filter_count)
{
    *out_filter_count = 0;
    for (uint32_t i = 0; i < term_count; i++) {
        if (!terms[i].changed) continue;
        quern_result result = quern__storage_filter(storage, quern__component_index(terms[i].component));
        for (quern__query *query = storage->first_query; query != NULL; query = query->next)
            quern__query_list_again(query); /* some archetypes may have begun to keep versions */
        if (result != QUERN_OK) {
            unfilter(storage, terms, i);
            return result;
        }
        ++*out_filter_count;
    }
    return QUERN_OK;
}

quern_result quern__query_init(quern__query *query, quern__storage *storage, const quern_term *terms,
                               uint32_t term_count)
{
    for (uint32_t i = 0; i < term_count; i++) {
        quern_result result = check_term(storage, terms, i);
        if (result != QUERN_OK) return result;
    }
    uint32_t filter_count;
    quern_result result = filter(storage, terms, term_count, &filter_count);
    if (result != QUERN_OK) return result;
    *query = (quern__query){.storage = storage,
                            .term_count = term_count,
                            .filter_count = filter_count,
                            .entries_version = QUERN__NO_VERSION,
                            .walked_version = QUERN__NO_VERSION};
    for (uint32_t i = 0; i < term_count; i++) {
        query->terms[i] = terms[i];
        query->names_disabled |= quern__component_index(terms[i].component) == storage->disabled_index;
        query->up_count += terms[i].reach != QUERN_REACH_ROW;
        if (terms[i].match == 0) query->terms[i].match = QUERN_MATCH_ALL;
    }
    result = quern__target_create(query);
    if (result == QUERN_OK && query->up_count > 0) result = quern__ups_create(query);
    if (result != QUERN_OK) {
        if (query->target != NULL) quern__target_destroy(query);
        unfilter(storage, terms, term_count);
        *query = (quern__query){.storage = storage};
        return result;
    }
    query->driver = find_driver(storage, query->terms, term_count);
    query->next = storage->first_query;
    if (query->next != NULL) query->next->previous = query;
    storage->first_query = query;
    return QUERN_OK;
}

static size_t block_bytes(const quern__query *query)
{
    return (size_t)QUERN__QUERY_BLOCK_MATCHES * query->term_count * sizeof(quern_view_column);
}

/* Where the columns of the i-th match are. */
static quern_view_column *columns_at(const quern__query *query, uint32_t i)
{
    size_t first = (size_t)(i % QUERN__QUERY_BLOCK_MATCHES) * query->term_count;
    return query->blocks.items[i / QUERN__QUERY_BLOCK_MATCHES] + first;
}

void quern__query_release(quern__query *query)
{
    const quern_allocator *allocator = &query->storage->allocator;
    unfilter(query->storage, query->terms, query->term_count);
    if (query->ups != NULL) quern__ups_destroy(query);
    if (query->target != NULL) quern__target_destroy(query);
    for (uint32_t i = 0; i < query->blocks.count; i++)
        quern__release(allocator, query->blocks.items[i], block_bytes(query), _Alignof(max_align_t));
    quern__array_release(allocator, &query->blocks);
    quern__array_release(allocator, &query->matches);
    quern__array_release(allocator, &query->entries);
    if (query->next != NULL) query->next->previous = query->previous;
    if (query->previous != NULL) query->previous->next = query->next;
    if (query->storage->first_query == query) query->storage->first_query = query->next;
}

void quern__query_forget_removed(quern__query *query, uint32_t first)
{
    uint32_t kept = query->matches.count;
    while (kept > 0 && query->matches.items[kept - 1].archetype->index >= first)
        kept--;
    const uint32_t count = query->matches.count;
    query->matches.count = kept;
    for (uint32_t i = kept; i < count; i++) {
        const quern__query_match *match = &query->matches.items[i];
        if (match->archetype->is_removed) continue;
        quern_view_column *columns = columns_at(query, query->matches.count);
        memmove(columns, match->columns, query->term_count * sizeof *columns);
        query->matches.items[query->matches.count++] =
            (quern__query_match){.archetype = match->archetype, .columns = columns};
    }
    if (query->matches.count < count) query->removed_count++;
}

/* --------------------------------------------------------------------------------------- matching */

static bool matches(const quern__query *query, const quern__archetype *archetype)
{
    if (!query->names_disabled && quern__archetype_has(archetype, query->storage->disabled_index))
        return false;
    bool wants_any = false, has_any = false;
    for (uint32_t i = 0; i < query->term_count; i++) {
        const quern_term *term = &query->terms[i];
        bool has = quern__archetype_has(archetype, quern__term_index(term));
        if (term->match == QUERN_MATCH_ALL && !has) return false;
        if (term->match == QUERN_MATCH_NONE && has) return false;
        if (term->match == QUERN_MATCH_ANY) {
            wants_any = true;
            has_any |= has;
        }
    }
    return !wants_any || has_any;
}

/* up_index: how many up-terms stand before the term. */
static quern_view_column view_column(const quern__query *query, const quern__archetype *archetype,
                                     const quern_term *term, uint32_t up_index)
{
    uint32_t column = quern__archetype_column(archetype, quern__term_index(term));
    quern_view_column view = {.access = (uint8_t)term->access,
                              .present = column != QUERN__COLUMN_NONE,
                              .is_checked = QUERN_CHECKS};
    if (term->reach != QUERN_REACH_ROW) {
        const uint32_t index = quern__component_index(term->component);
        view.access = QUERN_NO_ACCESS;
        view.size_bytes = (uint16_t)quern__components_type(&query->storage->components, index)->size_bytes;
        view.version_index = (uint8_t)up_index;
        return view;
    }
    if (column < QUERN__COLUMN_TAG) {
        view.offset_bytes = archetype->columns[column].offset_bytes;
        view.size_bytes = archetype->columns[column].size_bytes;
        view.version_index = (uint8_t)(1 + column);
    }
    return view;
}

/* A block for the columns of the next match, if it is the first of a block. */
static bool reserve_block(quern__query *query)
{
    const quern_allocator *allocator = &query->storage->allocator;
    if (query->matches.count < query->blocks.count * QUERN__QUERY_BLOCK_MATCHES) return true;
    if (!quern__array_reserve(allocator, &query->blocks, query->blocks.count + 1)) return false;
    quern_view_column *block = quern__allocate(allocator, block_bytes(query), _Alignof(max_align_t));
    if (block == NULL) return false;
    query->blocks.items[query->blocks.count++] = block;
    return true;
}

static quern_result append_match(quern__query *query, quern__archetype *archetype)
{
    uint32_t count = query->matches.count;
    if (!quern__array_reserve(&query->storage->allocator, &query->matches, count + 1) ||
        !reserve_block(query))
        return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory for match number %u of a query", count);
    quern_view_column *columns = columns_at(query, count);
    for (uint32_t i = 0, up_index = 0; i < query->term_count; i++) {
        columns[i] = view_column(query, archetype, &query->terms[i], up_index);
        up_index += query->terms[i].reach != QUERN_REACH_ROW;
    }
    query->matches.items[query->matches.count++] =
        (quern__query_match){.archetype = archetype, .columns = columns};
    return QUERN_OK;
}

quern_result quern__query_refresh(quern__query *query)
{
    const quern__storage *storage = query->storage;
    bool driven = query->driver != QUERN__NO_DRIVER;
    const quern__component *driver = driven ? storage->components.list.items[query->driver] : NULL;
    uint32_t candidates = driven ? driver->archetypes.count : storage->archetypes.count;
    for (; query->scanned_count < candidates; query->scanned_count++) {
        uint32_t index = driven ? driver->archetypes.items[query->scanned_count] : query->scanned_count;
        quern__archetype *archetype = storage->archetypes.items[index];
        if (!matches(query, archetype)) continue;
        quern_result result = append_match(query, archetype);
        if (result != QUERN_OK) return result;
    }
    return QUERN_OK;
}

/* --------------------------------------------------------------------------------------- filters */

/* A component without values changes with the rows only: its version index is 0, that of the rows. */
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

/* -------------------------------------------------------------------------------------- public calls */

static quern_result create(quern_world *world, const quern_query_def *def, quern_query **out_query)
{
    if (world == NULL) return quern__fail_null("quern_query_create", "world");
    if (def == NULL) return quern__fail_null("quern_query_create", "def");
    if (out_query == NULL) return quern__fail_null("quern_query_create", "out_query");
    quern_result result = quern__world_check_unlocked(world, "quern_query_create");
    uint32_t term_count = 0;
    if (result == QUERN_OK) result = quern__terms_count(def->terms, &term_count);
    if (result != QUERN_OK) return quern__in_call(result, "quern_query_create");
    if (term_count == 0)
        return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                           "quern_query_create: a query needs at least one term");

    const quern_allocator *allocator = &world->storage.allocator;
    quern__query *query = quern__allocate(allocator, sizeof *query, _Alignof(quern__query));
    if (query == NULL)
        return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "quern_query_create: no memory for a query");
    result = quern__query_init(query, &world->storage, def->terms, term_count);
    if (result == QUERN_OK) {
        query->world = world;
        result = quern__query_refresh(query);
        if (result == QUERN_OK) {
            world->user_count++;
            *out_query = query;
            return QUERN_OK;
        }
        quern__query_release(query);
    }
    quern__release(allocator, query, sizeof *query, _Alignof(quern__query));
    return quern__in_call(result, "quern_query_create");
}

quern_result quern_query_create(quern_world *world, const quern_query_def *def, quern_query **out_query)
{
    if (!quern__world_enter(world, "quern_query_create")) return QUERN_ERROR_WORLD_LOCKED;
    return quern__world_left(world, create(world, def, out_query));
}

void quern_query_destroy(quern_query *query)
{
    if (query == NULL) return;
    if (query->world->locked) {
        quern__violation(QUERN_ERROR_WORLD_LOCKED,
                         "quern_query_destroy: " QUERN__WORLD_LOCKERS " is running on the query's world");
        return;
    }
    query->world->user_count--;
    quern__query_release(query);
    quern__release(&query->storage->allocator, query, sizeof *query, _Alignof(quern__query));
}

uint64_t quern_query_count(quern_query *query)
{
    if (query == NULL) {
        quern__fail_null("quern_query_count", "query");
        return 0;
    }
    if (quern__world_check_unlocked(query->world, "quern_query_count") != QUERN_OK ||
        quern__in_call(quern__query_refresh(query), "quern_query_count") != QUERN_OK)
        return 0;
    if (query->target != NULL) return quern__target_count(query);
    if (query->ups != NULL && query->ups->leaves_rows_out) return quern__up_count(query);
    uint64_t count = 0;
    for (uint32_t i = 0; i < query->matches.count; i++)
        count += quern__archetype_row_count(query->matches.items[i].archetype);
    return count;
}

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
    bool has_versions = false;
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
                .versions = match->archetype->versions.items != NULL ? &match->archetype->versions : NULL,
                .slot = k,
                .is_plain = true,
            };
            has_versions |= query->entries.items[query->entries.count++].versions != NULL;
        }
    }
    for (uint32_t i = 0; i < query->entries.count && has_versions; i++)
        query->entries.items[i].is_plain = false;
    for (uint32_t i = 0; i < QUERN__PREFETCH_ENTRIES && count > 0; i++)
        query->entries.items[count + i] = query->entries.items[count - 1];
    plan_fetching(query, bytes);
    query->entries_version = query->storage->structure_version;
}

void quern__query_attend(quern_query_iterator *iterator, const quern__chunk_entry *entry)
{
    iterator->view.versions =
        entry->versions != NULL ? quern__versions_of(entry->versions, entry->slot) : NULL;
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

/* Lists the entries when that pays: for the second walk over a structure, since another may follow. */
static void take_entries(quern__query *query, quern_query_iterator *iterator)
{
    const uint64_t version = query->storage->structure_version;
    if (query->filter_count > 0 || query->up_count > 0 || query->target != NULL) return;
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

quern_query_iterator quern_query_iterate(quern_query *query)
{
    quern_query_iterator iterator = {.query = query, .view = {.query = query}};
    if (query == NULL) {
        iterator.result = quern__fail_null("quern_query_iterate", "query");
        return iterator;
    }
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
    uint32_t indices[QUERN_MAX_TERMS], index_count = 0;
    for (uint32_t i = 0; i < query->term_count; i++)
        if (query->terms[i].changed && match->columns[i].present)
            indices[index_count++] = match->columns[i].version_index;
    if (kept->items == NULL || index_count == 0) return chunk_count;
    for (; chunk < chunk_count; chunk++) {
        const uint64_t *versions = quern__versions_of(kept, chunk);
        bool is_new = versions[0] > seen_version;
        for (uint32_t i = 0; i < index_count; i++)
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

/* Moves on to the next run of rows that up-terms let stay, in this chunk or a later one. */
static bool advance_up(quern_query_iterator *iterator)
{
    quern__up_walk *walk = iterator->up_walk;
    quern__ups_use_walk(iterator);
    while (!quern__up_next(iterator->query, &walk->rows, &iterator->view)) {
        if (!advance(iterator)) {
            iterator->up_walk->number = 0;
            iterator->up_walk = NULL;
            return false;
        }
        walk->rows = quern__up_find(iterator->query, walk->addresses, &iterator->view);
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
        iterator->result = quern__fail(
            QUERN_ERROR_INVALID_ARGUMENT,
            "quern_query_next: %d other iterations of the query have begun since, and were not walked to "
            "the end: a query with up-terms keeps addresses for so many (create another query)",
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
    return iterator->up_walk == NULL ? advance(iterator) : advance_up(iterator);
}
