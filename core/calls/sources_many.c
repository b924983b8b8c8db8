/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Lists the sources of many targets in one call, with or without their values. Code that descends a tree level by
 * level calls this once per level. Arguments are checked once per call, and the record of each source is read once,
 * for its handle and the locations of all its values. */

#include "core/calls/getter_internal.h"
#include "core/relations/relate.h"

#include <quern/relation.h>

/* A requested component: where its column is in each archetype, and the output array for addresses of values. */
typedef struct listed_column {
    const quern__column_position *positions; /* by number of the archetype */
    void **values;
} listed_column;

/* Arguments of one call. */
typedef struct listing {
    const quern__storage *storage;
    const quern__links *links;
    const quern__edges *edges; /* NULL unless the relation has several targets per source */
    listed_column columns[QUERN_MAX_GETTER_COLUMNS];
    quern_entity *sources;
    uint32_t capacity;
    uint32_t *counts; /* may be NULL */
} listing;

/* Returns the links of a living target, or NULL if it has no sources. */
static inline const quern__link_node *find_links(const quern__storage *storage, const quern__links *links,
                                                 quern_entity target)
{
    const quern__link_node *link = quern__links_find(links, quern_entity_index(target));
    if (link == NULL || link->first == QUERN__SLOT_NONE) return NULL;
    return quern__entities_find(&storage->entities, target) != NULL ? link : NULL;
}

/* Stores the source in a slot as the k-th one, with the addresses of its values. */
static void list_source(const listing *list, uint32_t column_count, uint64_t k, uint32_t source)
{
    const quern__record *record = quern__entities_record(&list->storage->entities, source);
    list->sources[k] = (quern_entity){(uint64_t)record->handle_high << 32 | source};
    for (uint32_t c = 0; c < column_count; c++) {
        const quern__column_position position = list->columns[c].positions[record->archetype_number];
        list->columns[c].values[k] =
            position.offset_bytes != 0 ? quern__position_value(position, record->location) : NULL;
    }
}

/* Performs list_sources for a relation with several targets per source. */
static uint64_t list_edge_sources(const listing *list, uint32_t column_count, const quern_entity *targets,
                                  uint32_t count)
{
    uint64_t total = 0;
    for (uint32_t i = 0; i < count; i++) {
        const quern__edge_list *sources =
            quern__entities_find(&list->storage->entities, targets[i]) != NULL
                ? quern__edges_sources(list->edges, quern_entity_index(targets[i]))
                : &quern__no_edges;
        uint64_t k = total;
        for (uint32_t r = 0; r < quern__edge_list_ranges(sources); r++) {
            const quern__edge_range range = quern__edge_list_range(sources, r);
            for (uint32_t s = 0; s < range.count && k < list->capacity; s++, k++)
                list_source(list, column_count, k, range.slots[s]);
        }
        if (list->counts != NULL) list->counts[i] = sources->count;
        total += sources->count;
    }
    return total;
}

/* Lists the sources of all targets. Returns their number, which may exceed the capacity. column_count is a constant
 * for the common numbers of columns. Links are not prefetched: the links of targets that a previous call listed as
 * sources are still cached, and the processor overlaps the other misses. */
QUERN__ALWAYS_INLINE uint64_t list_sources(const listing *list, uint32_t column_count,
                                           const quern_entity *targets, uint32_t count)
{
    const quern__links *links = list->links;
    const quern__storage *storage = list->storage;
    quern_entity *sources = list->sources;
    uint32_t *counts = list->counts;
    const uint64_t capacity = list->capacity;
    uint64_t total = 0;
    for (uint32_t i = 0; i < count; i++) {
        const quern__link_node *link = find_links(storage, links, targets[i]);
        if (counts != NULL) counts[i] = link != NULL ? link->count : 0;
        if (link == NULL) continue;
        uint32_t source = link->first;
        for (uint64_t k = total; k < capacity && source != QUERN__SLOT_NONE; k++) {
            const quern__record *record = quern__entities_record(&storage->entities, source);
            sources[k] = (quern_entity){(uint64_t)record->handle_high << 32 | source};
            source = quern__links_at(links, source)->next;
            const uintptr_t location = record->location;
            for (uint32_t c = 0; c < column_count; c++) {
                const quern__column_position position =
                    list->columns[c].positions[record->archetype_number];
                void *value = position.offset_bytes != 0 ? quern__position_value(position, location) : NULL;
                QUERN__PREFETCH(value);
                list->columns[c].values[k] = value;
            }
        }
        total += link->count;
    }
    return total;
}

/* Checks the arguments that both calls have. Returns false with a message if one is wrong. */
static bool check_arguments(const quern_world *world, const quern_entity *targets, uint32_t count,
                            quern_relation relation, const char *function, listing *list)
{
    quern__relation *known;
    quern_result result = QUERN_OK;
    if (count > 0 && targets == NULL) result = quern__fail_null(function, "targets");
    if (result == QUERN_OK) result = quern__world_check_unlocked(world, function);
    if (result == QUERN_OK) {
        result = quern__in_call(quern__relation_check(&world->storage, relation, &known), function);
        if (result == QUERN_OK) list->links = &known->links;
        if (result == QUERN_OK) list->edges = known->is_many ? &known->edges : NULL;
    }
    list->storage = &world->storage;
    return result == QUERN_OK;
}

uint64_t quern_entity_list_sources_many(const quern_world *world, const quern_entity *targets,
                                        uint32_t count, quern_relation relation, quern_entity *out_sources,
                                        uint32_t capacity, uint32_t *out_counts)
{
    static const char function[] = "quern_entity_list_sources_many";
    listing list;
    if (out_counts != NULL && count > 0) memset(out_counts, 0, count * sizeof *out_counts);
    if (world == NULL) {
        quern__fail_null(function, "world");
        return 0;
    }
    if (!check_arguments(world, targets, count, relation, function, &list)) return 0;
    list.sources = out_sources;
    list.capacity = out_sources != NULL ? capacity : 0;
    list.counts = out_counts;
    return list.edges != NULL ? list_edge_sources(&list, 0, targets, count)
                              : list_sources(&list, 0, targets, count);
}

/* -------------------------------------------------------------------------------------- with values */

/* Copies the columns to the listing. Returns their world, or NULL with a message if a column is wrong. */
static const quern_world *check_columns(const quern_getter_column *columns, uint32_t column_count,
                                        uint32_t capacity, const char *function, listing *list)
{
    const quern_world *world = NULL;
    if (columns == NULL) quern__fail_null(function, "columns");
    if (columns == NULL) return NULL;
    if (column_count == 0 || column_count > QUERN_MAX_GETTER_COLUMNS) {
        quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                    "%s: %u columns; there may be 1 to %u (QUERN_MAX_GETTER_COLUMNS)", function,
                    column_count, QUERN_MAX_GETTER_COLUMNS);
        return NULL;
    }
    for (uint32_t i = 0; i < column_count; i++) {
        const quern__getter *getter = (const quern__getter *)columns[i].getter;
        if (getter == NULL || (columns[i].values == NULL && capacity > 0)) {
            quern__fail_null(function, getter == NULL ? "columns[].getter" : "columns[].values");
            return NULL;
        }
        if (world != NULL && getter->world != world) {
            quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                        "%s: the getter of column %u belongs to another world than the columns before it: "
                        "create all getters for one world",
                        function, i);
            return NULL;
        }
        world = getter->world;
        list->columns[i] =
            (listed_column){.positions = getter->table.positions, .values = columns[i].values};
    }
    return world;
}

/* Notes that the caller is about to write the listed values of a column. */
static void note_written(const quern_getter_column *column, const quern_entity *sources, uint64_t count)
{
    const quern__getter *getter = (const quern__getter *)column->getter;
    if (!column->writes || !quern__getter_notes_writes(getter)) return;
    for (uint64_t i = 0; i < count; i++)
        if (column->values[i] != NULL)
            quern__getter_note_written(
                getter, quern__entities_find(&getter->world->storage.entities, sources[i])->location);
}

uint64_t quern_getter_list_sources_many(const quern_getter_column *columns, uint32_t column_count,
                                        const quern_entity *targets, uint32_t count,
                                        quern_relation relation, quern_entity *out_sources,
                                        uint32_t capacity, uint32_t *out_counts)
{
    static const char function[] = "quern_getter_list_sources_many";
    listing list;
    if (out_counts != NULL && count > 0) memset(out_counts, 0, count * sizeof *out_counts);
    if (out_sources == NULL) capacity = 0;
    const quern_world *world = check_columns(columns, column_count, capacity, function, &list);
    if (world == NULL || !check_arguments(world, targets, count, relation, function, &list)) return 0;
    list.sources = out_sources;
    list.capacity = capacity;
    list.counts = out_counts;
    uint64_t source_count;
    if (list.edges != NULL)
        source_count = list_edge_sources(&list, column_count, targets, count);
    else
        source_count = column_count == 2 ? list_sources(&list, 2, targets, count)
                                         : list_sources(&list, column_count, targets, count);
    for (uint32_t i = 0; i < column_count; i++)
        note_written(&columns[i], out_sources, source_count < capacity ? source_count : capacity);
    return source_count;
}
