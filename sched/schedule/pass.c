/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "core/query/query_internal.h"
#include "sched/schedule/compile.h"
#include "sched/schedule/schedule_plan.h"

/* The tables of a pass, their order by levels, and its preparation for a frame: counts, stages and prefetching
 * (schedule_plan.h). */

void quern__pass_destroy(quern__pass *pass)
{
    const quern_allocator *allocator = quern__plan_allocator(pass->plan);
    quern__array_release(allocator, &pass->systems);
    quern__array_release(allocator, &pass->tables);
    quern__array_release(allocator, &pass->calls);
    quern__array_release(allocator, &pass->columns);
    quern__array_release(allocator, &pass->table_words);
    quern__array_release(allocator, &pass->filled_tables);
    quern__array_release(allocator, &pass->tables_by_level);
    quern__array_release(allocator, &pass->deep_ranges);
    quern__array_release(allocator, &pass->deep_slots);
    quern__array_release(allocator, &pass->deep_rows);
    quern__array_release(allocator, &pass->sort_scratch);
    quern__array_release(allocator, &pass->reaction_copies);
    quern__array_release(allocator, &pass->reaction_chunks);
    quern__array_release(allocator, &pass->reaction_calls);
    quern__array_release(allocator, &pass->reaction_handles);
    quern__array_release(allocator, &pass->waits_for);
    quern__release(allocator, pass, sizeof *pass, _Alignof(quern__pass));
}

/* ------------------------------------------------------------------------------------------- tables */

static void add_columns(quern__pass *pass, const quern__pass_table *table)
{
    for (uint32_t c = 0; c < table->archetype->column_count; c++) {
        const quern__column *column = &table->archetype->columns[c];
        bool is_used = false;
        for (uint32_t i = table->first_call; i < table->end_call && !is_used; i++)
            is_used = quern__bitset_has(pass->calls.items[i].system->access.reads, column->component_index);
        if (is_used)
            pass->columns.items[pass->columns.count++] = (quern__pass_column){
                .offset_bytes = column->offset_bytes, .size_bytes = column->size_bytes};
    }
}

static quern_result fail_memory(const quern__pass *pass)
{
    return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory for the chunks of system '%s'",
                       pass->systems.items[0]->name);
}

/* Adds tables for the listed matches: by archetype, then by system. */
static bool add_tables(quern__pass *pass, const quern__sort_item *matches, uint32_t count)
{
    const quern_allocator *allocator = quern__plan_allocator(pass->plan);
    for (uint32_t i = 0; i < count;) {
        quern__system *system = matches[i].pointer;
        quern__archetype *archetype = system->query.matches.items[system->table_match_count].archetype;
        if (!quern__array_reserve(allocator, &pass->tables, pass->tables.count + 1) ||
            !quern__array_reserve(allocator, &pass->filled_tables, pass->tables.count + 1) ||
            !quern__array_reserve(allocator, &pass->columns, pass->columns.count + archetype->column_count))
            return false;
        quern__pass_table *table = &pass->tables.items[pass->tables.count++];
        *table = (quern__pass_table){
            .archetype = archetype,
            .first_call = pass->calls.count,
            .first_column = pass->columns.count,
            .level = pass->levels != NULL ? quern__relation_level(pass->levels, archetype) : 0};
        for (const uint64_t key = matches[i].key; i < count && matches[i].key == key; i++) {
            system = matches[i].pointer;
            const quern__query_match *match = &system->query.matches.items[system->table_match_count++];
            const bool selects_rows = system->query.selects_rows;
            pass->calls.items[pass->calls.count++] = (quern__pass_call){
                .system = system,
                .run = selects_rows ? pass->plan->functions->call_selected_rows : system->run,
                .columns = match->columns,
                .query = &system->query,
                .term_count = system->query.term_count};
        }
        table->end_call = pass->calls.count;
        add_columns(pass, table);
        table->end_column = pass->columns.count;
    }
    return true;
}

quern_result quern__pass_extend(quern__pass *pass)
{
    const quern_allocator *allocator = quern__plan_allocator(pass->plan);
    bool any_removed = false;
    for (uint32_t i = 0; i < pass->systems.count; i++)
        any_removed |=
            pass->systems.items[i]->table_removed_count != pass->systems.items[i]->query.removed_count;
    if (any_removed) {
        pass->tables.count = pass->calls.count = pass->columns.count = 0;
        pass->table_words.count = pass->worded_count = 0;
        for (uint32_t i = 0; i < pass->systems.count; i++) {
            quern__system *system = pass->systems.items[i];
            system->table_match_count = 0;
            system->table_removed_count = system->query.removed_count;
        }
    }
    uint32_t count = 0;
    for (uint32_t i = 0; i < pass->systems.count; i++)
        count += pass->systems.items[i]->query.matches.count - pass->systems.items[i]->table_match_count;
    if (count == 0) return QUERN_OK;
    const size_t bytes = 2 * (size_t)count * sizeof(quern__sort_item);
    quern__sort_item *items = quern__allocate(allocator, bytes, _Alignof(quern__sort_item));
    bool has_memory =
        items != NULL && quern__array_reserve(allocator, &pass->calls, pass->calls.count + count);
    if (has_memory) {
        /* The new matches, system by system, in ascending order of archetype for each; then sorted by archetype. */
        quern__sort_item *next = items;
        for (uint32_t i = 0; i < pass->systems.count; i++) {
            quern__system *system = pass->systems.items[i];
            const quern__query_match *matches = system->query.matches.items;
            for (uint32_t k = system->table_match_count; k < system->query.matches.count; k++)
                *next++ = (quern__sort_item){.key = matches[k].archetype->index, .pointer = system};
        }
        quern__sort(items, items + count, count);
        has_memory = add_tables(pass, items, count);
    }
    quern__release(allocator, items, bytes, _Alignof(quern__sort_item));
    return has_memory ? QUERN_OK : fail_memory(pass);
}

/* ------------------------------------------------------------------------------------------------ levels */

/* Level-by-level execution of a pass.
 *
 * All entities of an archetype are on one level of a relation (core/relations/relation_internal.h). So the
 * pass iterates its tables in ascending order of level, and the tables of one level in ascending order of
 * archetype. Each level that has chunks is a stage: a node of the graph, after the node of the previous
 * level. A table on which the pass calls no level-ordered system belongs to the first stage, whatever its
 * level.
 *
 * The last level also holds all deeper entities, so its entities may be targets of each other. The pass
 * iterates these entities last, in the order of their true depth, as one item. Each level-ordered system is
 * called for all of them before the next system starts, exactly as if it ran alone. The other systems are
 * called on their chunks, in between. A view of the last level holds adjacent rows of one chunk that have
 * the same depth, often a single row. Views of equal depth are ordered by archetype, chunk and row.
 *
 * Ordinals: the views of all other levels are numbered first, by archetype and chunk as in every pass. The
 * views of the last level follow in the order of iteration. Stages, views and ordinals depend on the world
 * alone.
 *
 * The result is the same at any thread count. The target of a row is on a lower level or at a smaller
 * depth, so it is already processed when a system reads it, as if the system ran alone on one thread. */

static quern_result fail_memory_for_levels(const quern__pass *pass)
{
    return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory to order the views of system '%s' by level",
                       pass->systems.items[0]->name);
}

/* ------------------------------------------------------------------------------------ order of tables */

static bool is_level_ordered(const quern__pass_call *call)
{
    return call->system->levels != NULL && call->system->is_enabled;
}

/* Returns the level of the table's stage: 0 if no enabled call is level-ordered. */
static uint32_t level_of(const quern__pass_table *table)
{
    for (const quern__pass_call *call = table->calls; call < table->calls_end; call++)
        if (is_level_ordered(call)) return table->level;
    return 0;
}

/* Makes a stage of the chunks from first_chunk on. */
static void stage_chunks_from(quern__pass *pass, uint32_t first_chunk, bool is_deep)
{
    pass->stages[pass->stage_count++] = (quern__pass_stage){.pass = pass,
                                                            .first_chunk = first_chunk,
                                                            .chunk_count = pass->chunk_count - first_chunk,
                                                            .is_deep = is_deep};
}

/* --------------------------------------------------------------------------------------- the last level */

/* Lists the slots of the entities on the last level that have a target on another level. */
static void list_top_slots(quern__pass *pass, const quern__storage *storage, const quern__component *tag)
{
    const quern__links *links = &pass->levels->links;
    for (uint32_t i = 0; i < tag->archetypes.count; i++) {
        const quern__archetype *archetype = storage->archetypes.items[tag->archetypes.items[i]];
        for (uint32_t chunk = 0; chunk < archetype->chunk_count; chunk++) {
            const quern__chunk_slot *slot = &archetype->slots[chunk];
            const quern_entity *entities = quern__archetype_entities(archetype, quern__slot_chunk(slot));
            for (uint32_t row = 0; row < slot->row_count; row++) {
                const uint32_t index = quern_entity_index(entities[row]);
                if (quern__links_level(links, quern__links_target(links, index)) < QUERN_MAX_RELATION_LEVEL)
                    pass->deep_slots.items[pass->deep_slots.count++] = index;
            }
        }
    }
}

/* Returns the index in tables_by_level of the archetype's table on the last level, or UINT32_MAX. Binary
 * search: the tables of a level are sorted by archetype. */
static uint32_t find_deep_table(const quern__pass *pass, const quern__archetype *archetype)
{
    uint32_t low = pass->ordered_table_count, high = pass->tables_by_level.count;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (pass->tables_by_level.items[middle]->archetype->index < archetype->index)
            low = middle + 1;
        else
            high = middle;
    }
    const bool is_there =
        low < pass->tables_by_level.count && pass->tables_by_level.items[low]->archetype == archetype;
    return is_there ? low : UINT32_MAX;
}

/* Lists the location of the slot's entity as a key: table, chunk, row. Omits an entity if its archetype has
 * no table. */
static void list_row(quern__pass *pass, const quern__storage *storage, uint32_t slot)
{
    const quern__record *record = quern__entities_record(&storage->entities, slot);
    const quern__archetype *archetype = quern__storage_archetype_of(storage, record);
    const uint32_t table = find_deep_table(pass, archetype);
    if (table == UINT32_MAX) return;
    const uint32_t chunk = quern__chunk_index_at(&archetype->shape, record->location);
    const uint32_t row = quern__location_row(&archetype->shape, record->location);
    pass->deep_rows.items[pass->deep_rows.count++].key =
        (uint64_t)table << 48 | (uint64_t)chunk << 16 | row; /* fit: 65,536 archetypes, 16 KiB chunks */
}

/* Converts the listed rows, which have the same depth, to row ranges, and empties the list. */
static void add_ranges(quern__pass *pass)
{
    const quern__sort_item *rows = pass->deep_rows.items;
    quern__sort(pass->deep_rows.items, pass->sort_scratch.items, pass->deep_rows.count);
    for (uint32_t i = 0; i < pass->deep_rows.count; i++)
        if (i > 0 && rows[i].key == rows[i - 1].key + 1)
            pass->deep_ranges.items[pass->deep_ranges.count - 1].count++;
        else {
            const quern__deep_range range = {.table = (uint32_t)(rows[i].key >> 48),
                                             .chunk_index = (uint32_t)(rows[i].key >> 16),
                                             .first_row = (uint16_t)rows[i].key,
                                             .count = 1};
            pass->deep_ranges.items[pass->deep_ranges.count++] = range;
            pass->tables_by_level.items[range.table]->deep_range_count++;
        }
    pass->deep_rows.count = 0;
}

static quern_result arrange_deep(quern__pass *pass)
{
    const quern__storage *storage = &pass->plan->world->storage;
    const uint32_t tag_index = quern__relation_tag(pass->levels, QUERN_MAX_RELATION_LEVEL);
    const quern__component *tag = storage->components.list.items[tag_index];
    /* The entities on the last level of the relation, in all archetypes. */
    uint64_t count = 0;
    for (uint32_t i = 0; i < tag->archetypes.count; i++)
        count += quern__archetype_row_count(storage->archetypes.items[tag->archetypes.items[i]]);
    /* fits 32 bits: a world has fewer than 2^32 slots */
    const quern_allocator *allocator = quern__plan_allocator(pass->plan);
    if (!quern__array_reserve(allocator, &pass->deep_slots, (uint32_t)count) ||
        !quern__array_reserve(allocator, &pass->deep_rows, (uint32_t)count) ||
        !quern__array_reserve(allocator, &pass->sort_scratch, (uint32_t)count) ||
        !quern__array_reserve(allocator, &pass->deep_ranges, (uint32_t)count))
        return fail_memory_for_levels(pass);
    pass->deep_slots.count = pass->deep_rows.count = pass->deep_ranges.count = 0;
    list_top_slots(pass, storage, tag);
    /* Build deep_ranges depth by depth: the sources of the entities at one depth are the entities at the next. */
    const quern__links *links = &pass->levels->links;
    for (uint32_t next = 0; next < pass->deep_slots.count;) {
        const uint32_t end = pass->deep_slots.count;
        for (; next < end; next++) {
            const uint32_t slot = pass->deep_slots.items[next];
            list_row(pass, storage, slot);
            for (uint32_t child = quern__links_first(links, slot); child != QUERN__SLOT_NONE;
                 child = quern__links_at(links, child)->next)
                pass->deep_slots.items[pass->deep_slots.count++] = child;
        }
        add_ranges(pass);
    }
    /* Number the views that level-ordered systems have on the last level, after their other views. */
    for (uint32_t i = 0; i < pass->systems.count; i++)
        pass->systems.items[i]->first_deep_ordinal = pass->systems.items[i]->view_count;
    for (uint32_t i = pass->ordered_table_count; i < pass->tables_by_level.count; i++) {
        const quern__pass_table *table = pass->tables_by_level.items[i];
        for (const quern__pass_call *call = table->calls; call < table->calls_end; call++)
            if (is_level_ordered(call)) call->system->view_count += table->deep_range_count;
    }
    stage_chunks_from(pass, pass->chunk_count, true);
    pass->links_version = pass->levels->links.version;
    return QUERN_OK;
}

/* Arranges a pass: the order of its tables, the stages, and the views of the last level. Precondition: the tables have
 * been counted. Errors: OUT_OF_MEMORY. */
static quern_result levels_arrange(quern__pass *pass)
{
    uint32_t ends[QUERN__LEVEL_COUNT];
    if (!quern__array_reserve(quern__plan_allocator(pass->plan), &pass->tables_by_level,
                              pass->filled_tables.count))
        return fail_memory_for_levels(pass);
    /* Sort the tables that have chunks by level. ends[level]: index after the last table of the level. */
    uint32_t places[QUERN__LEVEL_COUNT + 1] = {0};
    for (uint32_t i = 0; i < pass->filled_tables.count; i++)
        places[level_of(pass->filled_tables.items[i]) + 1]++;
    for (uint32_t level = 0; level < QUERN__LEVEL_COUNT; level++)
        ends[level] = places[level + 1] += places[level];
    for (uint32_t i = 0; i < pass->filled_tables.count; i++) {
        quern__pass_table *table = pass->filled_tables.items[i];
        pass->tables_by_level.items[places[level_of(table)]++] = table;
    }
    pass->tables_by_level.count = ends[QUERN_MAX_RELATION_LEVEL];
    /* Number the chunks in iteration order, and add one stage per level. In a serial pass, one job runs all
     * levels but the last, as one stage. */
    uint32_t table = 0;
    pass->stage_count = 0;
    pass->chunk_count = 0;
    for (uint32_t level = 0; level < QUERN_MAX_RELATION_LEVEL; level++) {
        const uint32_t first_chunk = pass->chunk_count;
        for (; table < ends[level]; table++) {
            pass->tables_by_level.items[table]->first_chunk = pass->chunk_count;
            pass->chunk_count += pass->tables_by_level.items[table]->chunk_count;
        }
        if (pass->kind == QUERN__PASS_CHUNKS && pass->chunk_count > first_chunk)
            stage_chunks_from(pass, first_chunk, false);
    }
    if (pass->stage_count == 0) stage_chunks_from(pass, 0, false);
    pass->ordered_tables = pass->tables_by_level.items;
    pass->ordered_table_count = table;
    return pass->tables_by_level.count > pass->ordered_table_count ? arrange_deep(pass) : QUERN_OK;
}

/* ------------------------------------------------------------------------------------------ prepare */

/* Returns the bytes of one row that the table's calls read or write. */
static uint64_t touched_bytes(const quern__pass *pass, const quern__pass_table *table)
{
    uint64_t bytes = 0;
    for (uint32_t i = table->first_column; i < table->end_column; i++)
        bytes += pass->columns.items[i].size_bytes;
    return bytes;
}

/* Returns whether the system's views of the table are views of the last level, which levels_arrange
 * numbers. */
static bool is_deep(const quern__pass_table *table, const quern__system *system)
{
    return table->level == QUERN_MAX_RELATION_LEVEL && system->levels != NULL;
}

/* Numbers the chunks and views of the table, counts the bytes that its calls read or write, and lists it. Does nothing if
 * its archetype has no rows. */
static void count_table(quern__pass *pass, quern__pass_table *table)
{
    const quern__archetype *archetype = table->archetype;
    if (archetype->chunk_count == 0) return;
    uint64_t row_count = quern__archetype_row_count(archetype);
    bool is_used = false;
    table->first_chunk = pass->chunk_count;
    table->calls = pass->calls.items + table->first_call;
    table->calls_end = pass->calls.items + table->end_call;
    table->first_slot = archetype->slots[0];
    table->shift = archetype->shape.shift;
    table->fetch_share_bytes = 0;
    table->deep_range_count = 0;
    for (uint32_t i = table->first_call; i < table->end_call; i++) {
        quern__pass_call *call = &pass->calls.items[i];
        quern__system *system = call->system;
        call->is_conditional =
            !system->is_enabled || quern__system_is_gated(system) || system->query.filter_count > 0;
        if (!system->is_enabled) continue;
        call->first_ordinal = system->view_count;
        if (!is_deep(table, system)) system->view_count += archetype->chunk_count;
        system->entity_count += row_count;
        is_used = true;
    }
    if (!is_used) return;
    table->chunk_count = archetype->chunk_count;
    pass->filled_tables.items[pass->filled_tables.count++] = table;
    pass->chunk_count += table->chunk_count;
    pass->touched_bytes += row_count * touched_bytes(pass, table);
}

/* Adds the tables that are new since the last call to table_words; all tables if archetypes have other indices now.
 * Returns false if out of memory. */
static bool add_words(quern__pass *pass)
{
    const quern__storage *storage = &pass->plan->world->storage;
    if (pass->order_version != storage->order_version) pass->table_words.count = pass->worded_count = 0;
    pass->order_version = storage->order_version;
    if (pass->worded_count == pass->tables.count) return true;
    const uint32_t last = pass->tables.items[pass->tables.count - 1].archetype->index;
    if (!quern__array_reserve(&storage->allocator, &pass->table_words, last / 64 + 1)) return false;
    for (; pass->worded_count < pass->tables.count; pass->worded_count++) {
        const uint32_t index = pass->tables.items[pass->worded_count].archetype->index;
        while (pass->table_words.count <= index / 64)
            pass->table_words.items[pass->table_words.count++] =
                (quern__table_word){.first_table = pass->worded_count};
        pass->table_words.items[index / 64].tables |= UINT64_C(1) << index % 64;
    }
    return true;
}

static uint32_t count_stage(const quern__pass *pass, const quern__pass_stage *stage)
{
    const quern__system *first = pass->systems.items[0];
    if (pass->kind == QUERN__PASS_ONCE) return first->is_enabled && first->run != NULL;
    if (pass->kind == QUERN__PASS_SERIAL || stage->is_deep) return stage->is_deep || stage->chunk_count > 0;
    return pass->splits_lanes ? stage->chunk_count * pass->lane_count : stage->chunk_count;
}

/* Counts the views of a system with a target term. They are row ranges of the pass's tables, which are the
 * matches of the query. */
static quern_result count_target_views(quern__pass *pass)
{
    quern__system *system = pass->systems.items[0];
    if (!system->is_enabled) return QUERN_OK;
    const quern_result result = quern__target_list(&system->query);
    if (result != QUERN_OK) return quern__message_add_call(result, system->name, NULL);
    system->view_count = pass->chunk_count = system->query.target->ranges.count;
    system->entity_count = system->query.target->rows.count;
    pass->touched_bytes = 0;
    return QUERN_OK;
}

/* Counts the views of a system with items. They are the batches that the system has not read. */
static void count_event_views(quern__pass *pass)
{
    quern__system *system = pass->systems.items[0];
    quern__event_use *use = &system->events;
    const quern__channel *channel = use->items->channel;
    use->prepared_begin = use->items->cursor;
    use->prepared_end = quern__channel_end(channel);
    use->prepared_last_count = quern__event_use_last_count(use);
    if (!system->is_enabled) return;
    system->view_count = pass->chunk_count = (uint32_t)(use->prepared_end - use->prepared_begin);
    system->entity_count = quern__channel_count(channel, use->prepared_begin, use->prepared_end);
    pass->touched_bytes = system->entity_count * channel->stride_bytes;
}

/* Prefetching for a table on which several systems are called: how many bytes of each column of the next
 * chunk to fetch.
 *
 *   own caches     Data that fits into the cores' own caches needs no prefetching.
 *   shared cache   The hardware prefetcher is fast enough, except for the head of a column, which it cannot
 *                  predict.
 *   memory         The hardware prefetcher is late for the whole column.
 *
 * docs/benchmarks/grid.md has the measurements behind the constants. */
enum { FUSED_HEAD_BYTES = 1024, OWN_CACHES = 4, SHARED_CACHE_PARTS = 3 };

static uint32_t choose_fetch_limit(const quern__pass *pass, uint32_t thread_count)
{
    const quern__plan *plan = pass->plan;
    if (plan->prefetch == QUERN_PREFETCH_NOTHING) return 0;
    if (plan->prefetch == QUERN_PREFETCH_HEADS) return FUSED_HEAD_BYTES;
    if (plan->prefetch == QUERN_PREFETCH_CHUNKS) return UINT32_MAX;
    if (pass->exceeds_own_caches && pass->touched_bytes > plan->shared_cache_bytes / SHARED_CACHE_PARTS)
        return UINT32_MAX;
    return pass->touched_bytes > plan->own_cache_bytes * OWN_CACHES * thread_count ? FUSED_HEAD_BYTES : 0;
}

/* Prefetching for a table on which one system is called. Its single call processes the whole chunk, and
 * fetching a whole chunk before that call would stall it. So only the ends of the columns are fetched, if the data
 * exceeds the cores' own caches. */
static uint32_t choose_lone_fetch_limit(const quern__pass *pass)
{
    const quern_prefetch prefetch = pass->plan->prefetch;
    if (prefetch == QUERN_PREFETCH_NOTHING) return 0;
    return pass->exceeds_own_caches || prefetch != QUERN_PREFETCH_AUTOMATIC ? 2 * QUERN__END_BYTES : 0;
}

/* Divides the bytes to prefetch equally among the table's calls, in whole cache lines. */
static void divide_fetch(const quern__pass *pass, quern__pass_table *table, uint32_t call_count)
{
    const uint32_t line_bytes = QUERN__CACHE_LINE_BYTES;
    uint32_t bytes = 0;
    for (uint32_t i = table->first_column; i < table->end_column; i++) {
        uint32_t column_bytes = pass->columns.items[i].size_bytes * table->archetype->shape.row_capacity;
        bytes += column_bytes < table->fetch_limit_bytes ? column_bytes : table->fetch_limit_bytes;
    }
    table->fetch_share_bytes = (bytes / call_count + line_bytes - 1) / line_bytes * line_bytes;
}

/* A table with one chunk has no next one to prefetch. If all have one chunk, the pass runs without the code for
 * prefetching. */
static void plan_prefetch(quern__pass *pass, uint32_t thread_count)
{
    const uint32_t fetch_limit_bytes = choose_fetch_limit(pass, thread_count),
                   lone_bytes = choose_lone_fetch_limit(pass);
    pass->prefetches = false;
    for (uint32_t i = 0; i < pass->filled_tables.count && (fetch_limit_bytes | lone_bytes) > 0; i++) {
        quern__pass_table *table = pass->filled_tables.items[i];
        uint32_t call_count = 0;
        for (uint32_t k = table->first_call; k < table->end_call; k++)
            call_count += pass->calls.items[k].system->is_enabled;
        table->fetch_limit_bytes = call_count == 1 ? lone_bytes : fetch_limit_bytes;
        table->fetches_ends = call_count == 1;
        if (call_count > 0 && table->chunk_count > 1) divide_fetch(pass, table, call_count);
        pass->prefetches |= table->fetch_share_bytes > 0;
    }
}

/* Archetypes lie anywhere in memory: they are fetched a few tables before they are counted. */
enum { ARCHETYPES_AHEAD = 8 };

quern_result quern__pass_prepare(quern__pass *pass, uint32_t thread_count)
{
    for (uint32_t i = 0; i < pass->systems.count; i++) {
        quern__system *system = pass->systems.items[i];
        system->is_active = system->is_enabled;
        system->view_count = pass->kind == QUERN__PASS_ONCE && system->is_enabled;
        system->entity_count = 0;
    }
    pass->chunk_count = 0;
    pass->touched_bytes = 0;
    if (!add_words(pass)) return fail_memory(pass);
    /* Count the tables of the archetypes that hold chunks. */
    const uint64_t *holders = pass->plan->world->storage.slabs.holders.items;
    pass->filled_tables.count = 0;
    const quern__pass_table *const end_tables = pass->tables.items + pass->tables.count;
    for (uint32_t i = 0; i < pass->table_words.count; i++) {
        const quern__table_word *word = &pass->table_words.items[i];
        quern__pass_table *table = &pass->tables.items[word->first_table];
        for (uint64_t left = (word->tables & holders[i]) != 0 ? word->tables : 0; left != 0; table++) {
            if (end_tables - table > ARCHETYPES_AHEAD) {
                QUERN__PREFETCH(&table[ARCHETYPES_AHEAD].archetype->slots);
                QUERN__PREFETCH(&table[ARCHETYPES_AHEAD].archetype->shape.shift);
            }
            if (holders[i] >> quern__bitset_pop_lowest(&left) & 1) count_table(pass, table);
        }
    }
    if (pass->systems.items[0]->query.target != NULL) {
        const quern_result result = count_target_views(pass);
        if (result != QUERN_OK) return result;
    }
    if (pass->systems.items[0]->events.items != NULL) count_event_views(pass);
    if (pass->systems.items[0]->query.order != NULL) {
        /* A system with an order has pieces, which share the rows of its tables. */
        quern__system *system = pass->systems.items[0];
        const uint64_t pieces =
            (system->entity_count + QUERN_ORDER_PIECE_ROWS - 1) / QUERN_ORDER_PIECE_ROWS;
        system->view_count = pass->chunk_count = (uint32_t)pieces;
    }
    pass->exceeds_own_caches = pass->touched_bytes > pass->plan->own_cache_bytes * thread_count;
    plan_prefetch(pass, thread_count);
    /* The tables in their own order, as one stage. */
    pass->ordered_tables = pass->filled_tables.items;
    pass->ordered_table_count = pass->filled_tables.count;
    pass->stages[0] = (quern__pass_stage){.pass = pass, .chunk_count = pass->chunk_count};
    pass->stage_count = 1;
    if (pass->levels != NULL) {
        quern_result result = levels_arrange(pass);
        if (result != QUERN_OK) return result;
    }
    pass->splits_lanes = pass->chunk_count < thread_count && pass->lane_count > 1;
    pass->item_count = 0;
    for (uint32_t i = 0; i < pass->stage_count; i++) {
        pass->stages[i].item_count = count_stage(pass, &pass->stages[i]);
        pass->item_count += pass->stages[i].item_count;
    }
    for (uint32_t i = 0; i < pass->systems.count; i++) {
        quern_result result = quern__system_reserve_partials(pass->systems.items[i]);
        if (result != QUERN_OK) return result;
    }
    return QUERN_OK;
}

void quern__pass_start(quern__pass *pass)
{
    if (!pass->has_partials) return;
    for (uint32_t i = 0; i < pass->systems.count; i++) {
        const quern__system *system = pass->systems.items[i];
        size_t bytes = system->view_count * system->partial_stride_bytes;
        if (bytes > 0) memset(system->partials, 0, bytes);
    }
}

void quern__pass_finish(quern__pass *pass, uint64_t version_base)
{
    if (!pass->has_filters) return;
    for (uint32_t i = 0; i < pass->systems.count; i++) {
        quern__system *system = pass->systems.items[i];
        if (system->is_active) system->query.seen_version = version_base + system->position;
    }
}
