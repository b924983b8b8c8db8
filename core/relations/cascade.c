/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* What follows from links for many rows at once: the entities that are destroyed with their targets (cascades), and the
 * rows that move to other tiers after links have changed (tier moves). */
#include "core/relations/relation_internal.h"

#include "core/base/containers.h"
#include "core/storage/change.h"
#include "core/storage/storage.h"

void quern__cascade_release(quern__cascade *cascade, const quern_allocator *allocator)
{
    quern__array_release(allocator, &cascade->slots);
    quern__array_release(allocator, &cascade->detached);
    quern__array_release(allocator, &cascade->marks);
    *cascade = (quern__cascade){0};
}

/* ---------------------------------------------------------------------- collecting destroyed entities */

static quern_result fail_memory(const quern__cascade *cascade)
{
    return quern__fail(QUERN_ERROR_OUT_OF_MEMORY,
                       "no memory to list the entities that are destroyed together, %u so far",
                       cascade->slots.count);
}

quern_result quern__cascade_begin(quern__cascade *cascade, const quern__storage *storage)
{
    const uint32_t words = storage->entities.slot_count / 64 + 1;
    if (!quern__array_reserve(&storage->allocator, &cascade->marks, words)) return fail_memory(cascade);
    if (cascade->marks.count < words)
        memset(cascade->marks.items + cascade->marks.count, 0,
               (words - cascade->marks.count) * sizeof *cascade->marks.items);
    if (cascade->marks.count < words) cascade->marks.count = words;
    return QUERN_OK;
}

/* Appends the slot unless the cascade has it. Returns false if out of memory. */
static inline bool append(quern__cascade *cascade, const quern_allocator *allocator, uint32_t slot)
{
    if (quern__cascade_has(cascade, slot)) return true;
    if (!quern__array_reserve(allocator, &cascade->slots, cascade->slots.count + 1)) return false;
    cascade->marks.items[slot / 64] |= 1ull << slot % 64;
    cascade->slots.items[cascade->slots.count++] = slot;
    return true;
}

quern_result quern__cascade_add(quern__cascade *cascade, const quern__storage *storage, uint32_t slot)
{
    if (!append(cascade, &storage->allocator, slot)) return fail_memory(cascade);
    cascade->requested_count = cascade->slots.count;
    return QUERN_OK;
}

void quern__cascade_end(quern__cascade *cascade)
{
    for (uint32_t i = 0; i < cascade->slots.count; i++)
        cascade->marks.items[cascade->slots.items[i] / 64] = 0;
    cascade->slots.count = 0;
    cascade->requested_count = 0;
    cascade->detached.count = 0;
}

static bool append_sources(quern__cascade *cascade, const quern_allocator *allocator,
                           const quern__relation *relation, uint32_t slot)
{
    for (uint32_t source = quern__links_first(&relation->links, slot); source != QUERN__SLOT_NONE;
         source = quern__links_at(&relation->links, source)->next)
        if (!append(cascade, allocator, source)) return false;
    return true;
}

/* Performs append_sources for a relation with several targets per source. */
static bool append_edge_sources(quern__cascade *cascade, const quern_allocator *allocator,
                                const quern__relation *relation, uint32_t slot)
{
    const quern__edge_list *sources = quern__edges_sources(&relation->edges, slot);
    for (uint32_t i = 0; i < quern__edge_list_ranges(sources); i++) {
        const quern__edge_range range = quern__edge_list_range(sources, i);
        for (uint32_t k = 0; k < range.count; k++)
            if (!append(cascade, allocator, range.slots[k])) return false;
    }
    return true;
}

static bool append_dependents(quern__cascade *cascade, const quern__storage *storage)
{
    const quern__relations *relations = storage->relations;
    for (uint32_t i = 0; i < cascade->slots.count; i++)
        for (uint32_t k = 0; k < relations->list.count; k++) {
            const quern__relation *relation = relations->list.items[k];
            if (relation->policy == QUERN_TARGET_DESTROYS_SOURCE &&
                !append_sources(cascade, &storage->allocator, relation, cascade->slots.items[i]))
                return false;
            if (relations->many_count > 0 && relation->policy == QUERN_TARGET_DESTROYS_SOURCE &&
                !append_edge_sources(cascade, &storage->allocator, relation, cascade->slots.items[i]))
                return false;
        }
    return true;
}

static quern_result fail_in_use(const quern__storage *storage, const quern__relation *relation,
                                uint32_t target, uint32_t source)
{
    const quern_entity used = quern__entity_of_slot(storage, target),
                       user = quern__entity_of_slot(storage, source);
    return quern__fail(QUERN_ERROR_TARGET_IN_USE,
                       "entity %u:%u cannot be destroyed while it is the target of %u:%u in relation '%s' "
                       "(QUERN_TARGET_REFUSES): unrelate or destroy that source first",
                       quern_entity_index(used), quern_entity_generation(used), quern_entity_index(user),
                       quern_entity_generation(user), quern__relation_name(storage, relation));
}

quern_result quern__cascade_list_detached(quern__cascade *cascade, const quern__storage *storage,
                                          quern__relation *relation, uint32_t source, uint32_t target)
{
    if (!quern__array_reserve(&storage->allocator, &cascade->detached, cascade->detached.count + 1))
        return fail_memory(cascade);
    cascade->detached.items[cascade->detached.count++] = (quern__detached_source){relation, source, target};
    return QUERN_OK;
}

/* Applies the relation's policy to the surviving sources of a destroyed target: lists them as detached, or fails with
 * TARGET_IN_USE. */
static quern_result apply_policy(quern__cascade *cascade, const quern__storage *storage,
                                 quern__relation *relation, uint32_t slot)
{
    for (uint32_t source = quern__links_first(&relation->links, slot); source != QUERN__SLOT_NONE;
         source = quern__links_at(&relation->links, source)->next) {
        if (quern__cascade_has(cascade, source)) continue;
        if (relation->policy == QUERN_TARGET_REFUSES) return fail_in_use(storage, relation, slot, source);
        quern_result result = quern__cascade_list_detached(cascade, storage, relation, source, slot);
        if (result != QUERN_OK) return result;
    }
    return QUERN_OK;
}

/* Performs apply_policy for a relation with several targets per source. */
static quern_result apply_edge_policy(quern__cascade *cascade, const quern__storage *storage,
                                      quern__relation *relation, uint32_t slot)
{
    const quern__edge_list *sources = quern__edges_sources(&relation->edges, slot);
    for (uint32_t i = 0; i < quern__edge_list_ranges(sources); i++) {
        const quern__edge_range range = quern__edge_list_range(sources, i);
        for (uint32_t k = 0; k < range.count; k++) {
            if (quern__cascade_has(cascade, range.slots[k])) continue;
            if (relation->policy == QUERN_TARGET_REFUSES)
                return fail_in_use(storage, relation, slot, range.slots[k]);
            quern_result result =
                quern__cascade_list_detached(cascade, storage, relation, range.slots[k], slot);
            if (result != QUERN_OK) return result;
        }
    }
    return QUERN_OK;
}

quern_result quern__cascade_close(quern__cascade *cascade, const quern__storage *storage)
{
    const quern__relations *relations = storage->relations;
    if (!append_dependents(cascade, storage)) return fail_memory(cascade);
    quern_result result = QUERN_OK;
    for (uint32_t k = 0; k < relations->list.count; k++) {
        quern__relation *relation = relations->list.items[k];
        if (relation->policy == QUERN_TARGET_DESTROYS_SOURCE) continue;
        for (uint32_t i = 0; i < cascade->slots.count && result == QUERN_OK; i++)
            result = relation->is_many
                         ? apply_edge_policy(cascade, storage, relation, cascade->slots.items[i])
                         : apply_policy(cascade, storage, relation, cascade->slots.items[i]);
    }
    return result;
}

/* ------------------------------------------------------------------------------------- removing links */

/* Removes the edge to the lost target, or all edges of the source. */
static quern_result detach_edges(quern__storage *storage, const quern__detached_source *detached)
{
    const quern__edge_list *targets = quern__edges_targets(&detached->relation->edges, detached->source);
    if (detached->target != QUERN__SLOT_NONE)
        return quern__link_log_remove_edge(storage, detached->relation, detached->source, detached->target);
    quern_result result = QUERN_OK;
    while (targets->count > 0 && result == QUERN_OK)
        result = quern__link_log_remove_edge(storage, detached->relation, detached->source,
                                             quern__edge_list_next(targets, QUERN__SLOT_NONE));
    return result;
}

quern_result quern__cascade_detach(const quern__cascade *cascade, quern__storage *storage)
{
    quern_result result = QUERN_OK;
    if (cascade->detached.count == 0) return QUERN_OK;
    for (uint32_t i = 0; i < cascade->detached.count && result == QUERN_OK; i++) {
        quern__relation *relation = cascade->detached.items[i].relation;
        const uint32_t source = cascade->detached.items[i].source;
        if (relation->is_many)
            result = detach_edges(storage, &cascade->detached.items[i]);
        else if (quern__naming_allows_target(storage, relation, source, QUERN__SLOT_NONE))
            result = quern__link_log_set_target(storage, relation, source, QUERN__SLOT_NONE, cascade);
        else
            result =
                quern__naming_fail_taken(storage, quern__entity_of_slot(storage, source), QUERN__SLOT_NONE);
    }
    return quern__relate_rows(storage, result);
}

/* Clears the edges of all destroyed entities, after removing them from the sources of surviving targets. */
static void unlink_edges(const quern__cascade *cascade, const quern__storage *storage,
                         quern__relation *relation)
{
    quern__edges *edges = &relation->edges;
    for (uint32_t i = 0; i < cascade->slots.count; i++) {
        const uint32_t slot = cascade->slots.items[i];
        const quern__edge_list *targets = quern__edges_targets(edges, slot);
        for (uint32_t r = 0; r < quern__edge_list_ranges(targets); r++) {
            const quern__edge_range range = quern__edge_list_range(targets, r);
            for (uint32_t k = 0; k < range.count; k++)
                if (!quern__cascade_has(cascade, range.slots[k]))
                    quern__edges_forget_source(edges, slot, range.slots[k]);
        }
        quern__edges_clear(edges, &storage->allocator, slot);
    }
    relation->links.version++;
}

/* Unlinks destroyed entities from surviving targets only: the links of destroyed targets are cleared as a whole. */
void quern__cascade_unlink(const quern__cascade *cascade, quern__storage *storage)
{
    const quern__relations *relations = storage->relations;
    for (uint32_t k = 0; k < relations->list.count; k++) {
        const quern__links *links = &relations->list.items[k]->links;
        for (uint32_t i = 0; i < cascade->slots.count; i++) {
            const uint32_t slot = cascade->slots.items[i];
            if (!quern__links_has_page(links, slot)) continue;
            const uint32_t target = quern__links_at(links, slot)->target;
            if (target != QUERN__SLOT_NONE && !quern__cascade_has(cascade, target))
                quern__links_unlink(links, slot);
            quern__links_clear(links, slot);
        }
    }
    for (uint32_t k = 0; k < relations->list.count && relations->many_count > 0; k++)
        if (relations->list.items[k]->is_many) unlink_edges(cascade, storage, relations->list.items[k]);
    for (uint32_t i = 0; i < cascade->slots.count && storage->names->count > 0; i++)
        quern__names_drop(storage->names, cascade->slots.items[i]);
}

/* ------------------------------------------------------------------------------------------ tier moves */

enum {
    TIER_COUNT = QUERN__LEVEL_COUNT + 1,
    MAX_ROWS = QUERN__BIT_COLUMN_MAX_ROWS, /* no chunk has more rows */
    RECORDS_AHEAD = 24                     /* prefetch distance, in entries of the log */
};

void quern__tier_moves_release(quern__tier_moves *moves, const quern_allocator *allocator)
{
    quern__array_release(allocator, &moves->sources);
    quern__array_release(allocator, &moves->source_of_number);
    quern__array_release(allocator, &moves->words);
    quern__array_release(allocator, &moves->departures);
    quern__array_release(allocator, &moves->rows);
    quern__array_release(allocator, &moves->chunks);
    quern__array_release(allocator, &moves->gaps);
    quern__array_release(allocator, &moves->tails);
    *moves = (quern__tier_moves){0};
}

/* -------------------------------------------------------------------------------------------- marking */

/* Takes `count` zeroed words. Returns the index of the first, or UINT32_MAX if out of memory. */
static uint32_t take_words(quern__tier_moves *moves, const quern_allocator *allocator, uint32_t count)
{
    const uint32_t first = moves->used_word_count, end = first + count;
    if (!quern__array_reserve(allocator, &moves->words, end)) return UINT32_MAX;
    while (moves->words.count < end)
        moves->words.items[moves->words.count++] = 0;
    moves->used_word_count = end;
    return first;
}

/* Adds an archetype to the sources. Returns NULL if out of memory. */
static QUERN__NO_INLINE quern__tier_source *
add_source(quern__storage *storage, const quern__relation *relation, quern__archetype *archetype)
{
    quern__tier_moves *moves = &storage->relations->tier_moves;
    const quern_allocator *allocator = &storage->allocator;
    const uint32_t words_per_chunk = QUERN__BITSET_WORDS(archetype->shape.row_capacity);
    if (!quern__array_reserve(allocator, &moves->sources, moves->sources.count + 1)) return NULL;
    const uint32_t first = take_words(moves, allocator, archetype->chunk_count * words_per_chunk);
    const uint32_t first_chunk = take_words(moves, allocator, QUERN__BITSET_WORDS(archetype->chunk_count));
    if (first == UINT32_MAX || first_chunk == UINT32_MAX) return NULL;
    uint32_t tier = 0;
    if (quern__archetype_has(archetype, relation->component_index))
        tier = quern__relation_level(relation, archetype) + 1;
    quern__tier_source *source = &moves->sources.items[moves->sources.count++];
    *source = (quern__tier_source){.archetype = archetype,
                                   .tier = tier,
                                   .words_per_chunk = words_per_chunk,
                                   .first_word = first,
                                   .first_chunk_word = first_chunk};
    moves->source_of_number.items[archetype->number] = moves->sources.count;
    moves->is_observed |= archetype->first_listener != NULL;
    return source;
}

/* Marks the row of the entity in a slot. Returns false if out of memory. */
static inline bool mark_row(quern__storage *storage, const quern__relation *relation, uint32_t slot)
{
    quern__tier_moves *moves = &storage->relations->tier_moves;
    const quern__record *record = quern__entities_record(&storage->entities, slot);
    const uint32_t number = moves->source_of_number.items[record->archetype_number];
    const quern__tier_source *source =
        number != 0 ? &moves->sources.items[number - 1]
                    : add_source(storage, relation, quern__storage_archetype_of(storage, record));
    if (QUERN__UNLIKELY(source == NULL)) return false;
    const quern__run_shape *shape = &source->archetype->shape;
    const uint32_t chunk = quern__chunk_index_at(shape, record->location);
    quern__bitset_add(moves->words.items + source->first_word + (size_t)chunk * source->words_per_chunk,
                      quern__location_row(shape, record->location));
    quern__bitset_add(moves->words.items + source->first_chunk_word, chunk);
    return true;
}

/* Reserves room for lists that have at most one entry per entry of the log. */
static bool reserve_lists(quern__storage *storage, uint32_t count)
{
    quern__tier_moves *moves = &storage->relations->tier_moves;
    const quern_allocator *allocator = &storage->allocator;
    if (!quern__array_reserve(allocator, &moves->source_of_number, storage->numbered.count) ||
        !quern__array_reserve(allocator, &moves->rows, count) ||
        !quern__array_reserve(allocator, &moves->chunks, count) ||
        !quern__array_reserve(allocator, &moves->gaps, count) ||
        !quern__array_reserve(allocator, &moves->tails, count))
        return false;
    while (moves->source_of_number.count < storage->numbered.count)
        moves->source_of_number.items[moves->source_of_number.count++] = 0;
    return true;
}

static bool mark_rows(quern__storage *storage, const quern__relation *relation)
{
    const quern__link_change *change = storage->relations->log.changes.items;
    const uint32_t count = storage->relations->log.changes.count;
    if (!reserve_lists(storage, count)) return false;
    for (uint32_t i = 0; i < count; i++, change++) {
        if (count - i > RECORDS_AHEAD)
            QUERN__PREFETCH(quern__entities_record(&storage->entities, change[RECORDS_AHEAD].slot));
        if (!mark_row(storage, relation, change->slot)) return false;
    }
    return true;
}

/* Sorts the sources by archetype. They are few, and often sorted. */
static void sort_sources(quern__tier_moves *moves)
{
    quern__tier_source *sources = moves->sources.items;
    for (uint32_t i = 1; i < moves->sources.count; i++) {
        const quern__tier_source source = sources[i];
        uint32_t at = i;
        for (; at > 0 && sources[at - 1].archetype->index > source.archetype->index; at--)
            sources[at] = sources[at - 1];
        sources[at] = source;
    }
}

/* Forgets all sources and lists. The marks of listed rows are 0 already. */
static void clear(quern__tier_moves *moves)
{
    for (uint32_t i = 0; i < moves->sources.count; i++)
        moves->source_of_number.items[moves->sources.items[i].archetype->number] = 0;
    moves->sources.count = 0;
    moves->used_word_count = 0;
    moves->departures.count = 0;
    moves->rows.count = 0;
    moves->chunks.count = 0;
    moves->is_observed = false;
}

/* ---------------------------------------------------------------------------------------- determining */

/* The departures of the source that is being determined, by tier. */
typedef struct departing {
    quern__storage *storage;
    quern__relation *relation;
    quern__tier_source *source;
    uint32_t count_of_tier[TIER_COUNT];
} departing;

/* Finds the plan for the first row that leaves for a tier. */
static QUERN__NO_INLINE quern_result add_departure(const departing *it, uint32_t tier)
{
    quern__tier_moves *moves = &it->storage->relations->tier_moves;
    const quern__move_plan *plan;
    const quern_result result =
        quern__relation_plan(it->storage, it->relation, it->source->archetype, tier, &plan);
    if (result != QUERN_OK) return result;
    if (!quern__array_reserve(&it->storage->allocator, &moves->departures, moves->departures.count + 1))
        return QUERN_ERROR_OUT_OF_MEMORY;
    moves->departures.items[moves->departures.count++] =
        (quern__tier_departure){.plan = plan, .tier = tier};
    it->source->departure_count++;
    moves->is_observed |= !plan->is_plain || plan->target->first_listener != NULL;
    return QUERN_OK;
}

/* Lists the marked rows of a chunk with their new tiers, and clears the marks. */
static quern_result list_chunk(departing *it, uint32_t chunk_index)
{
    quern__tier_moves *moves = &it->storage->relations->tier_moves;
    const quern__links *links = &it->relation->links;
    const quern__tier_source *source = it->source;
    const quern__archetype *archetype = source->archetype;
    uint64_t *words =
        moves->words.items + source->first_word + (size_t)chunk_index * source->words_per_chunk;
    uint16_t rows[MAX_ROWS];
    const uint32_t count = quern__bitset_list(words, source->words_per_chunk, rows);
    memset(words, 0, source->words_per_chunk * sizeof *words);
    const quern_entity *handles =
        quern__archetype_entities(archetype, quern__slot_chunk(&archetype->slots[chunk_index]));
    for (uint32_t i = 0; i < count; i++)
        QUERN__PREFETCH(quern__links_at(links, quern_entity_index(handles[rows[i]])));
    quern__tier_row *entry = moves->rows.items + moves->rows.count;
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t slot = quern_entity_index(handles[rows[i]]);
        const uint32_t tier = quern__link_tier(quern__links_at(links, slot));
        entry[i] = (quern__tier_row){.row = rows[i], .tier = (uint16_t)tier};
        if (tier == source->tier || it->count_of_tier[tier]++ > 0) continue;
        const quern_result result = add_departure(it, tier);
        if (result != QUERN_OK) return result;
    }
    moves->rows.count += count;
    moves->chunks.items[moves->chunks.count++] = (quern__tier_chunk){
        .index = chunk_index, .source = (uint32_t)(source - moves->sources.items), .row_count = count};
    return QUERN_OK;
}

/* Lists the marked rows of an archetype, and reserves rows where they arrive. */
static quern_result prepare_source(quern__storage *storage, quern__relation *relation,
                                   quern__tier_source *source)
{
    quern__tier_moves *moves = &storage->relations->tier_moves;
    departing it = {.storage = storage, .relation = relation, .source = source};
    const uint32_t chunk_words = QUERN__BITSET_WORDS(source->archetype->chunk_count);
    quern_result result = QUERN_OK;
    source->first_departure = moves->departures.count;
    for (uint32_t i = 0; i < chunk_words && result == QUERN_OK; i++) {
        uint64_t left = moves->words.items[source->first_chunk_word + i];
        moves->words.items[source->first_chunk_word + i] = 0;
        while (left != 0 && result == QUERN_OK)
            result = list_chunk(&it, i * 64 + quern__bitset_pop_lowest(&left));
    }
    for (uint32_t i = 0; i < source->departure_count && result == QUERN_OK; i++) {
        quern__tier_departure *departure = &moves->departures.items[source->first_departure + i];
        const uint32_t count = it.count_of_tier[departure->tier];
        result = quern__leaving_reserve(storage, source->archetype, departure->plan->target, count);
        if (result == QUERN_OK) result = quern__rows_reserve(storage, departure->plan->target, count);
        if (result != QUERN_OK) break;
        departure->count = count;
        source->leaving_count += count;
    }
    return result;
}

quern_result quern__tier_moves_prepare(quern__storage *storage, quern__relation *relation)
{
    quern__tier_moves *moves = &storage->relations->tier_moves;
    assert(!relation->is_many && moves->sources.count == 0);
    quern__leaving_begin(storage);
    quern_result result = mark_rows(storage, relation) ? QUERN_OK : QUERN_ERROR_OUT_OF_MEMORY;
    if (result == QUERN_OK) sort_sources(moves);
    for (uint32_t i = 0; i < moves->sources.count && result == QUERN_OK; i++)
        result = prepare_source(storage, relation, &moves->sources.items[i]);
    if (result == QUERN_OK) return QUERN_OK;
    if (moves->used_word_count > 0)
        memset(moves->words.items, 0, moves->used_word_count * sizeof *moves->words.items);
    quern__tier_moves_cancel(storage);
    return result != QUERN_ERROR_OUT_OF_MEMORY
               ? result
               : quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory for the rows of related entities");
}

void quern__tier_moves_cancel(quern__storage *storage)
{
    quern__tier_moves *moves = &storage->relations->tier_moves;
    for (uint32_t i = 0; i < moves->departures.count; i++)
        if (moves->departures.items[i].count > 0)
            quern__rows_unreserve(storage, moves->departures.items[i].plan->target);
    clear(moves);
}

/* ------------------------------------------------------------------------------------------- applying */

/* Consecutive rows of an archetype in which all entities have a target. */
typedef struct targeted_rows {
    const quern__archetype *archetype, *source; /* now and before */
    uintptr_t first;
    uint32_t count;
    bool had_target; /* whether they had a target in `source`, which was carried along */
} targeted_rows;

/* Writes the targets of the rows. */
static void write_targets(const quern__storage *storage, const quern__relation *relation,
                          const targeted_rows *rows)
{
    const quern__archetype *archetype = rows->archetype;
    const uintptr_t first = rows->first;
    const quern__links *links = &relation->links;
    const uint32_t component = relation->component_index;
    const bool reports = rows->had_target && archetype->tracks_changes;
    const quern_entity *handles = quern__row_handle(archetype, quern__archetype_row(archetype, first));
    char *value = quern__storage_value(archetype, first, component);
    for (uint32_t i = 0; i < rows->count; i++, value += sizeof(quern_entity)) {
        const uint32_t slot = quern_entity_index(handles[i]);
        const quern_entity target = quern__entity_of_slot(storage, quern__links_at(links, slot)->target);
        if (QUERN__LIKELY(!reports)) {
            memcpy(value, &target, sizeof target);
        } else if (memcmp(value, &target, sizeof target) != 0) {
            quern__rows_before_write_from(archetype, rows->source, first + i, 1, component);
            memcpy(value, &target, sizeof target);
            quern__rows_written_from(archetype, rows->source, first + i, 1, component);
        }
    }
}

/* Rows of a chunk, ascending. */
typedef struct listed_rows {
    quern__chunk *chunk;
    const uint16_t *rows;
    uint32_t count;
} listed_rows;

/* Moves rows that leave for one tier. */
static void depart(quern__storage *storage, const quern__relation *relation,
                   const quern__tier_source *source, const quern__tier_departure *departure,
                   const listed_rows *leaving)
{
    const quern__move_plan *plan = departure->plan;
    quern__chunk *chunk = leaving->chunk;
    const uint16_t *rows = leaving->rows;
    for (uint32_t i = 0, fitting; i < leaving->count; i += fitting) {
        const uintptr_t to = quern__rows_append(storage, plan->target, leaving->count - i, &fitting);
        if (QUERN__LIKELY(plan->is_plain))
            quern__rows_move_picked(storage, plan, to, chunk, rows + i, fitting);
        else
            for (uint32_t k = 0; k < fitting; k++)
                quern__rows_move(storage, plan, to + k, quern__location_make(chunk, rows[i + k]), 1);
        if (QUERN__UNLIKELY(quern__relation_has_values(relation)) && departure->tier > 0)
            quern__fill_required(plan, relation->component_index, to, fitting);
        if (departure->tier > 0)
            write_targets(storage, relation,
                          &(targeted_rows){plan->target, source->archetype, to, fitting, source->tier > 0});
    }
}

/* Sorts the rows of a chunk by tier, ascending within each. first_of_tier[t + 1]: where those of tier t end. */
static void sort_by_tier(const quern__tier_row *entries, uint32_t count, uint16_t *out_rows,
                         uint32_t *out_first_of_tier)
{
    uint32_t next_of_tier[TIER_COUNT];
    memset(out_first_of_tier, 0, (TIER_COUNT + 1) * sizeof *out_first_of_tier);
    for (uint32_t i = 0; i < count; i++)
        out_first_of_tier[entries[i].tier + 1]++;
    for (uint32_t tier = 0; tier < TIER_COUNT; tier++) {
        next_of_tier[tier] = out_first_of_tier[tier];
        out_first_of_tier[tier + 1] += out_first_of_tier[tier];
    }
    for (uint32_t i = 0; i < count; i++)
        out_rows[next_of_tier[entries[i].tier]++] = entries[i].row;
}

/* Applies the changes of one chunk; entries: those of its rows. Returns the end of the list of gaps, to which it
 * appends. */
static uintptr_t *apply_chunk(quern__storage *storage, const quern__relation *relation,
                              const quern__tier_chunk *changed, const quern__tier_row *entries,
                              uintptr_t *gap)
{
    const quern__tier_moves *moves = &storage->relations->tier_moves;
    const quern__tier_source *source = &moves->sources.items[changed->source];
    const uint32_t count = changed->row_count;
    quern__chunk *chunk = quern__slot_chunk(&source->archetype->slots[changed->index]);
    const quern_entity *handles = quern__archetype_entities(source->archetype, chunk);
    uint16_t rows[MAX_ROWS];
    uint32_t first_of_tier[TIER_COUNT + 1];
    /* the records of the new targets have the upper halves of their handles */
    for (uint32_t i = 0; i < count; i++) {
        if (entries[i].tier == 0) continue;
        const uint32_t slot = quern_entity_index(handles[entries[i].row]);
        QUERN__PREFETCH(
            quern__entities_record(&storage->entities, quern__links_at(&relation->links, slot)->target));
    }
    sort_by_tier(entries, count, rows, first_of_tier);
    for (uint32_t i = 0; i < source->departure_count; i++) {
        const quern__tier_departure *departure = &moves->departures.items[source->first_departure + i];
        const uint32_t first = first_of_tier[departure->tier];
        depart(storage, relation, source, departure,
               &(listed_rows){chunk, rows + first, first_of_tier[departure->tier + 1] - first});
    }
    const uint32_t stay_first = first_of_tier[source->tier], stay_end = first_of_tier[source->tier + 1];
    for (uint32_t i = stay_first; i < stay_end && source->tier > 0; i++)
        write_targets(storage, relation,
                      &(targeted_rows){source->archetype, source->archetype,
                                       quern__location_make(chunk, rows[i]), 1, true});
    for (uint32_t i = 0; i < count; i++)
        if (entries[i].tier != source->tier) *gap++ = quern__location_make(chunk, entries[i].row);
    return gap;
}

void quern__tier_moves_apply(quern__storage *storage, const quern__relation *relation)
{
    quern__tier_moves *moves = &storage->relations->tier_moves;
    const quern__tier_row *entries = moves->rows.items;
    uintptr_t *gap = moves->gaps.items;
    for (uint32_t i = 0; i < moves->chunks.count; i++) {
        const quern__tier_chunk *chunk = &moves->chunks.items[i];
        gap = apply_chunk(storage, relation, chunk, entries, gap);
        entries += chunk->row_count;
    }
    const uintptr_t *first_gap = moves->gaps.items;
    for (uint32_t i = 0; i < moves->sources.count; i++) {
        const quern__tier_source *source = &moves->sources.items[i];
        if (source->leaving_count == 0) continue;
        quern__rows_close_gaps(storage, source->archetype, first_gap, source->leaving_count,
                               moves->tails.items, NULL);
        first_gap += source->leaving_count;
    }
    clear(moves);
}
