/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Creation of queries, and their matches. core/query/query_iterate.c iterates over the matches. */

#include "core/query/query_internal.h"

#include "core/world/world_internal.h"

/* ------------------------------------------------------------------------------------- definition */

bool quern__term_is_empty(const void *list, uint32_t i)
{
    const quern_term *term = &((const quern_term *)list)[i];
    return quern_component_is_null(term->component) && term->match == 0 &&
           term->access == QUERN_ACCESS_NONE && !term->changed && !term->old &&
           term->enabled == QUERN_TERM_ENABLED && term->path == QUERN_PATH_ROW &&
           term->relation.bits == 0 && !term->by_target;
}

quern_result quern__terms_count(const quern_term *terms, uint32_t *out_count)
{
    return quern__list_count(terms, QUERN_MAX_TERMS, quern__term_is_empty, "term", NULL, out_count);
}

static quern_result check_enabled(const quern__storage *storage, const quern_term *term, uint32_t i)
{
    const uint32_t index = quern__component_index(term->component);
    const char *name = quern__components_type(&storage->components, index)->name;
    if ((unsigned)term->enabled > QUERN_TERM_EITHER)
        return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                           "term %u ('%s') has enabled %d, which is none of quern_term_enabled", i, name,
                           (int)term->enabled);
    if (term->enabled != QUERN_TERM_DISABLED) return QUERN_OK;
    if (!quern__components_has_flag(&storage->components, index, QUERN__FLAG_CAN_DISABLE))
        return quern__fail(
            QUERN_ERROR_INVALID_ARGUMENT,
            "term %u selects rows with '%s' disabled, but it cannot be disabled: register it with "
            "can_disable",
            i, name);
    if (term->path == QUERN_PATH_ROW && (term->match == 0 || term->match == QUERN_MATCH_ALL))
        return QUERN_OK;
    return quern__fail(
        QUERN_ERROR_INVALID_ARGUMENT,
        "term %u selects rows with '%s' disabled: it must be QUERN_MATCH_ALL, on the row itself", i, name);
}

static quern_result check_old(const quern__storage *storage, const quern_term *term, uint32_t i)
{
    const quern__type *type =
        quern__components_type(&storage->components, quern__component_index(term->component));
    if (!term->old) return QUERN_OK;
    if ((term->match != 0 && term->match != QUERN_MATCH_ALL) || term->access != QUERN_ACCESS_NONE ||
        term->changed || term->by_target || term->path != QUERN_PATH_ROW)
        return quern__fail(
            QUERN_ERROR_INVALID_ARGUMENT,
            "term %u reads old values of '%s' and has another match, access, filter or path: "
            "make it by quern_term_old, and give it nothing more",
            i, type->name);
    if (type->size_bytes == 0)
        return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                           "term %u reads old values of '%s', a tag, which has none: use quern_term_with",
                           i, type->name);
    if (!quern__hooks_own_resources(&type->hooks)) return QUERN_OK;
    return quern__fail(
        QUERN_ERROR_INVALID_ARGUMENT,
        "term %u reads old values of '%s', but its type has a copy, move or destroy hook: keep "
        "what the reaction needs in a component of plain bytes",
        i, type->name);
}

static quern_result check_term(const quern__storage *storage, const quern_term *terms, uint32_t i)
{
    const quern_term *term = &terms[i];
    if (quern_component_is_null(term->component))
        return quern__fail(QUERN_ERROR_UNKNOWN_COMPONENT, "term %u names no component: was it registered?",
                           i);
    quern_result result = quern__components_check(&storage->components, term->component);
    if (result != QUERN_OK) return quern__message_add_element(result, "term", i);
    const char *name =
        quern__components_type(&storage->components, quern__component_index(term->component))->name;
    if ((unsigned)term->match > QUERN_MATCH_ANY)
        return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                           "term %u ('%s') has match %d, which is none of quern_match", i, name,
                           (int)term->match);
    if ((unsigned)term->access > QUERN_ACCESS_WRITE)
        return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                           "term %u ('%s') has access %d; for components there are QUERN_ACCESS_NONE, "
                           "QUERN_ACCESS_READ and QUERN_ACCESS_WRITE",
                           i, name, (int)term->access);
    if (term->access == QUERN_ACCESS_WRITE &&
        quern__components_is_managed(&storage->components, quern__component_index(term->component)))
        return quern__fail(
            QUERN_ERROR_INVALID_ARGUMENT,
            "term %u writes '%s', a relation, which only the library writes: read it, and change "
            "it by quern_commands_relate or quern_entity_relate",
            i, name);
    if (term->match == QUERN_MATCH_NONE && term->access != QUERN_ACCESS_NONE)
        return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                           "term %u excludes '%s' and declares an access to it: use QUERN_ACCESS_NONE", i,
                           name);
    if (term->match == QUERN_MATCH_NONE && term->changed)
        return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                           "term %u excludes '%s' and is a change filter: do not set `changed`", i, name);
    result = check_enabled(storage, term, i);
    if (result == QUERN_OK) result = check_old(storage, term, i);
    if (result != QUERN_OK) return result;
    for (uint32_t k = 0; k < i; k++)
        if (quern_component_equal(terms[k].component, term->component) && terms[k].path == term->path &&
            terms[k].old == term->old && terms[k].relation.bits == term->relation.bits)
            return quern__fail(QUERN_ERROR_DUPLICATE_COMPONENT,
                               "'%s' is in term %u and again in term %u: keep one of them", name, k, i);
    if (term->by_target) return quern__target_check(storage, terms, i);
    if (term->path != QUERN_PATH_ROW) return quern__up_check(storage, term, i);
    if (term->relation.bits == 0) return QUERN_OK;
    return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                       "term %u ('%s') names a relation but is no up-term: set its path (quern_term_up)", i,
                       name);
}

/* Returns the component that fewest archetypes have, so that a refresh checks as few archetypes as possible. */
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

static void end_filters(quern__storage *storage, const quern_term *terms, uint32_t term_count)
{
    for (uint32_t i = 0; i < term_count; i++)
        if (terms[i].changed)
            quern__storage_remove_change_filter(storage, quern__component_index(terms[i].component));
}

quern_result quern__query_watch(quern__storage *storage, uint32_t component_index)
{
    const quern_result result = quern__storage_add_change_filter(storage, component_index);
    for (quern__query *query = storage->first_query; query != NULL; query = query->next)
        quern__query_relist(query); /* some archetypes may keep versions now */
    return result;
}

static quern_result begin_filters(quern__storage *storage, const quern_term *terms, uint32_t term_count,
                                  uint32_t *out_filter_count)
{
    *out_filter_count = 0;
    for (uint32_t i = 0; i < term_count; i++) {
        if (!terms[i].changed) continue;
        quern_result result = quern__query_watch(storage, quern__component_index(terms[i].component));
        if (result != QUERN_OK) {
            end_filters(storage, terms, i);
            return result;
        }
        ++*out_filter_count;
    }
    return QUERN_OK;
}

/* Numbers all queries anew, from 0 for the oldest. Returns how many there are. */
static uint32_t renumber(const quern__storage *storage)
{
    uint32_t count = 0, number;
    for (const quern__query *query = storage->first_query; query != NULL; query = query->next)
        count++;
    number = count;
    for (quern__query *query = storage->first_query; query != NULL; query = query->next)
        query->number = --number;
    return count;
}

quern_result quern__query_init(quern__query *query, quern__storage *storage, const quern_term *terms,
                               uint32_t term_count)
{
    for (uint32_t i = 0; i < term_count; i++) {
        quern_result result = check_term(storage, terms, i);
        if (result != QUERN_OK) return result;
    }
    uint32_t filter_count;
    quern_result result = begin_filters(storage, terms, term_count, &filter_count);
    if (result != QUERN_OK) return result;
    *query = (quern__query){
        .storage = storage,
        .term_count = term_count,
        .filter_count = filter_count,
        .entries_version = QUERN__NO_VERSION,
        .iterated_version = QUERN__NO_VERSION,
        .scope = {.accessor = &query->accessor, .storage = storage, .caller = QUERN__CALLER_ITERATION}};
    for (uint32_t i = 0; i < term_count; i++) {
        const uint32_t index = quern__component_index(terms[i].component);
        quern_term *term = &query->terms[i];
        *term = terms[i];
        query->names_disabled |= index == storage->disabled_index;
        query->up_count += term->path != QUERN_PATH_ROW;
        if (term->match == 0) term->match = QUERN_MATCH_ALL;
        if (term->changed &&
            quern__components_has_flag(&storage->components, index, QUERN__FLAG_ROW_CHANGES))
            query->row_filters |= UINT64_C(1) << i;
        /* the term selects single rows of an archetype that has the component */
        if (term->match == QUERN_MATCH_ALL && term->path == QUERN_PATH_ROW &&
            term->enabled != QUERN_TERM_EITHER &&
            quern__components_has_flag(&storage->components, index, QUERN__FLAG_CAN_DISABLE))
            query->row_terms[query->row_term_count++] = (uint8_t)i;
    }
    query->selects_rows = query->up_count > 0 || query->row_term_count > 0 || query->row_filters != 0;
    result = quern__target_create(query);
    if (result == QUERN_OK && query->up_count > 0) result = quern__ups_create(query);
    if (result != QUERN_OK) {
        if (query->target != NULL) quern__target_destroy(query);
        end_filters(storage, terms, term_count);
        *query = (quern__query){.storage = storage};
        return result;
    }
    query->driver = find_driver(storage, query->terms, term_count);
    /* the list begins with the newest query, which has the greatest number */
    if (storage->first_query != NULL) query->number = storage->first_query->number + 1;
    if (QUERN__UNLIKELY(query->number == QUERN_LIST_END)) query->number = renumber(storage);
    query->next = storage->first_query;
    if (query->next != NULL) query->next->previous = query;
    storage->first_query = query;
    return QUERN_OK;
}

static size_t block_bytes(const quern__query *query)
{
    return (size_t)QUERN__QUERY_BLOCK_MATCHES * query->term_count * sizeof(quern_view_column);
}

/* Returns the address of the columns of the i-th match. */
static quern_view_column *columns_at(const quern__query *query, uint32_t i)
{
    size_t first = (size_t)(i % QUERN__QUERY_BLOCK_MATCHES) * query->term_count;
    return query->blocks.items[i / QUERN__QUERY_BLOCK_MATCHES] + first;
}

void quern__query_release(quern__query *query)
{
    const quern_allocator *allocator = &query->storage->allocator;
    end_filters(query->storage, query->terms, query->term_count);
    if (query->ups != NULL) quern__ups_destroy(query);
    if (query->target != NULL) quern__target_destroy(query);
    quern__order_destroy(query);
    for (uint32_t i = 0; i < query->blocks.count; i++)
        quern__release(allocator, query->blocks.items[i], block_bytes(query), _Alignof(max_align_t));
    quern__array_release(allocator, &query->blocks);
    quern__array_release(allocator, &query->matches);
    quern__array_release(allocator, &query->entries);
    quern__scratch_release(&query->scope);
    if (query->next != NULL) query->next->previous = query->previous;
    if (query->previous != NULL) query->previous->next = query->next;
    if (query->storage->first_query == query) query->storage->first_query = query->next;
}

void quern__query_forget_removed(quern__query *query, uint32_t first)
{
    uint32_t kept_count = query->matches.count;
    while (kept_count > 0 && query->matches.items[kept_count - 1].archetype->index >= first)
        kept_count--;
    const uint32_t count = query->matches.count;
    query->matches.count = kept_count;
    for (uint32_t i = kept_count; i < count; i++) {
        const quern__query_match *match = &query->matches.items[i];
        if (match->archetype->is_removed) continue;
        quern_view_column *columns = columns_at(query, query->matches.count);
        memmove(columns, match->columns, query->term_count * sizeof *columns);
        query->matches.items[query->matches.count++] =
            (quern__query_match){.archetype = match->archetype, .columns = columns};
    }
    if (query->matches.count < count) query->removed_count++;
}

void quern__query_forget_all(quern__query *query)
{
    query->matches.count = query->scanned_count = 0;
    query->removed_count++;
}

/* --------------------------------------------------------------------------------------- matching */

/* Whether a set of components has the component with the index. */
typedef bool has_function(const void *set, uint32_t component_index);

static inline bool matches(const quern__query *query, const void *set, has_function *has_component)
{
    if (!query->names_disabled && has_component(set, query->storage->disabled_index)) return false;
    bool wants_any = false, has_any = false;
    for (uint32_t i = 0; i < query->term_count; i++) {
        const quern_term *term = &query->terms[i];
        bool has = has_component(set, quern__term_index(term));
        if (term->match == QUERN_MATCH_ALL && !has) return false;
        if (term->match == QUERN_MATCH_NONE && has) return false;
        if (term->match == QUERN_MATCH_ANY) {
            wants_any = true;
            has_any |= has;
        }
    }
    return !wants_any || has_any;
}

static inline bool archetype_has(const void *set, uint32_t component_index)
{
    return quern__archetype_has(set, component_index);
}

bool quern__query_matches(const quern__query *query, const quern__archetype *archetype)
{
    return matches(query, archetype, archetype_has);
}

/* Returns whether `a` requires a component that `b` excludes. */
static bool requires_excluded(const quern__query *a, const quern__query *b)
{
    for (uint32_t i = 0; i < a->term_count; i++) {
        const uint32_t index = quern__term_index(&a->terms[i]);
        if (a->terms[i].match != QUERN_MATCH_ALL) continue;
        if (index == a->storage->disabled_index && !b->names_disabled) return true;
        for (uint32_t k = 0; k < b->term_count; k++)
            if (b->terms[k].match == QUERN_MATCH_NONE && quern__term_index(&b->terms[k]) == index)
                return true;
    }
    return false;
}

bool quern__query_excludes(const quern__query *query, const quern__query *other)
{
    return requires_excluded(query, other) || requires_excluded(other, query);
}

typedef struct component_list {
    const uint16_t *indices;
    uint32_t count;
} component_list;

static bool list_has(const void *set, uint32_t component_index)
{
    const component_list *list = set;
    for (uint32_t i = 0; i < list->count && list->indices[i] <= component_index; i++)
        if (list->indices[i] == component_index) return true;
    return false;
}

bool quern__query_matches_set(const quern__query *query, const uint16_t *component_indices, uint32_t count)
{
    return matches(query, &(component_list){component_indices, count}, list_has);
}

/* Returns what a view needs to know about a term in an archetype: position and size of its values, access,
 * presence and version index. up_index: number of up-terms before the term; stored as the version index of an
 * up-term. */
static quern_view_column view_column(const quern__query *query, const quern__archetype *archetype,
                                     const quern_term *term, uint32_t up_index)
{
    uint32_t column = quern__archetype_column(archetype, quern__term_index(term));
    quern_view_column view = {.access = (uint8_t)term->access,
                              .present = column != QUERN__COLUMN_NONE,
                              .is_checked = QUERN_CHECKS};
    if (term->path != QUERN_PATH_ROW) {
        const uint32_t index = quern__component_index(term->component);
        view.access = QUERN_ACCESS_NONE;
        view.size_bytes = (uint16_t)quern__components_type(&query->storage->components, index)->size_bytes;
        view.version_index = (uint8_t)up_index;
        return view;
    }
    if (column < QUERN__COLUMN_TAG) {
        view.offset_bytes = archetype->columns[column].offset_bytes;
        view.size_bytes = archetype->columns[column].size_bytes;
    }
    if (column != QUERN__COLUMN_NONE)
        view.version_index = (uint8_t)quern__archetype_version_index(archetype, quern__term_index(term));
    const uint32_t bit_column = quern__row_bits_find_column(
        archetype->row_bits, QUERN__BIT_COLUMN_CAN_DISABLE, quern__component_index(term->component));
    if (bit_column != QUERN__NO_BIT_COLUMN) view.present = (uint8_t)(2 + bit_column);
    return view;
}

/* Reserves memory for the columns of the next match. Returns false if out of memory. */
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
        up_index += query->terms[i].path != QUERN_PATH_ROW;
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
    const uint32_t candidates = quern__query_candidate_count(query);
    for (; query->scanned_count < candidates; query->scanned_count++) {
        uint32_t index = driven ? driver->archetypes.items[query->scanned_count] : query->scanned_count;
        quern__archetype *archetype = storage->archetypes.items[index];
        if (!quern__query_matches(query, archetype)) continue;
        quern_result result = append_match(query, archetype);
        if (result != QUERN_OK) return result;
    }
    return QUERN_OK;
}

/* -------------------------------------------------------------------------------------- public calls */

static quern_result check_def(const quern_query_def *def, uint32_t *out_term_count)
{
    quern_result result = quern__terms_count(def->terms, out_term_count);
    for (uint32_t i = 0; result == QUERN_OK && i < *out_term_count; i++)
        if (def->terms[i].old)
            result = quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                                 "term %u reads old values, which only reactions to QUERN_REACT_SET have: "
                                 "use quern_term_read",
                                 i);
    if (result == QUERN_OK && *out_term_count == 0)
        return quern__fail(QUERN_ERROR_INVALID_ARGUMENT, "a query needs at least one term: set its terms");
    return result == QUERN_OK && def->name != NULL ? quern__check_name(def->name, "query") : result;
}

/* Returns the size of the allocation of a query and its name. */
static size_t query_bytes(const char *name)
{
    return sizeof(quern__query) + (name != NULL ? strlen(name) + 1 : 0);
}

quern_result quern_query_create(quern_world *world, const quern_query_def *def, quern_query **out_query)
{
    QUERN__ENTER_UNLOCKED(world);
    QUERN__NEED(def);
    QUERN__NEED(out_query);
    uint32_t term_count = 0;
    quern_result result = check_def(def, &term_count);
    if (result != QUERN_OK) return quern__in_call(result, __func__);

    const quern_allocator *allocator = &world->storage.allocator;
    const size_t bytes = query_bytes(def->name);
    quern__query *query = quern__allocate(allocator, bytes, _Alignof(quern__query));
    if (query == NULL)
        return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "quern_query_create: no memory for a query");
    result = quern__query_init(query, &world->storage, def->terms, term_count);
    if (result == QUERN_OK) {
        query->world = world;
        if (def->name != NULL) query->name = memcpy(query + 1, def->name, bytes - sizeof *query);
        query->whole_chunks = def->whole_chunks;
        result = quern__order_create(query, def);
        if (result == QUERN_OK) result = quern__query_refresh(query);
        if (result == QUERN_OK) {
            world->user_count++;
            *out_query = query;
            return QUERN_OK;
        }
        quern__query_release(query);
    }
    quern__release(allocator, query, bytes, _Alignof(quern__query));
    return quern__in_call(result, __func__);
}

void quern_query_destroy(quern_query *query)
{
    if (query == NULL) return;
    if (query->world->locked) {
        quern__report_violation(QUERN_ERROR_WORLD_LOCKED,
                                "quern_query_destroy: " QUERN__WORLD_LOCKERS
                                " is running on the query's world; destroy the query afterwards");
        return;
    }
    const size_t bytes = query_bytes(query->name);
    query->world->user_count--;
    quern__query_release(query);
    quern__release(&query->storage->allocator, query, bytes, _Alignof(quern__query));
}

quern_result quern_query_get_def(const quern_query *query, quern_query_def *out_def)
{
    QUERN__NEED(query);
    QUERN__NEED(out_def);
    *out_def = (quern_query_def){
        .name = query->name, .whole_chunks = query->whole_chunks, .order_by = quern__order_get_def(query)};
    for (uint32_t i = 0; i < query->term_count; i++) {
        out_def->terms[i] = query->terms[i];
        if (query->terms[i].by_target) out_def->terms[i].target = query->target->entity;
    }
    return QUERN_OK;
}

uint32_t quern_world_list_queries_from(const quern_world *world, uint32_t *cursor,
                                       quern_query **out_queries, uint32_t capacity)
{
    if (!quern__check_page(world, cursor, out_queries, "out_queries", capacity, __func__)) return 0;
    quern__query *query = world->storage.first_query; /* the newest one */
    while (query != NULL && query->next != NULL)
        query = query->next;
    uint32_t count = 0;
    for (; query != NULL; query = query->previous) {
        if (query->world == NULL || query->number < *cursor) continue;
        if (count == capacity) {
            *cursor = query->number;
            return count;
        }
        out_queries[count++] = query;
    }
    *cursor = QUERN_LIST_END;
    return count;
}

quern_result quern_query_get_order_stats(const quern_query *query, quern_order_stats *out_stats)
{
    QUERN__NEED(query);
    QUERN__NEED(out_stats);
    *out_stats = quern__order_get_stats(query);
    return QUERN_OK;
}
