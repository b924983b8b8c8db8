/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "sched/schedule/levels.h"

#include "sched/schedule/schedule_plan.h"

static quern_result fail_memory(const quern__pass *pass)
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

/* Lists the tables that have chunks in tables_by_level, sorted by level. ends[level]: index after the
 * last table of the level. */
static void sort_tables(quern__pass *pass, uint32_t *ends)
{
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
}

static void add_stage(quern__pass *pass, uint32_t first_chunk, bool is_deep)
{
    pass->stages[pass->stage_count++] = (quern__pass_stage){.pass = pass,
                                                            .first_chunk = first_chunk,
                                                            .chunk_count = pass->chunk_count - first_chunk,
                                                            .is_deep = is_deep};
}

/* Numbers the chunks in iteration order, and adds one stage per level. In a serial pass, one job runs all
 * levels but the last, as one stage. */
static void make_stages(quern__pass *pass, const uint32_t *ends)
{
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
            add_stage(pass, first_chunk, false);
    }
    if (pass->stage_count == 0) add_stage(pass, 0, false);
    pass->ordered_tables = pass->tables_by_level.items;
    pass->ordered_table_count = table;
}

/* --------------------------------------------------------------------------------------- the last level */

/* Returns the number of entities on the last level of the relation, in all archetypes. */
static uint32_t count_deep(const quern__storage *storage, const quern__component *tag)
{
    uint64_t count = 0;
    for (uint32_t i = 0; i < tag->archetypes.count; i++)
        count += quern__archetype_row_count(storage->archetypes.items[tag->archetypes.items[i]]);
    return (uint32_t)count; /* fits: a world has fewer than 2^32 slots */
}

static bool reserve_deep(quern__pass *pass, uint32_t count)
{
    const quern_allocator *allocator = quern__plan_allocator(pass->plan);
    return quern__array_reserve(allocator, &pass->deep_slots, count) &&
           quern__array_reserve(allocator, &pass->deep_rows, count) &&
           quern__array_reserve(allocator, &pass->sort_scratch, count) &&
           quern__array_reserve(allocator, &pass->deep_ranges, count);
}

/* Lists the slots of the entities on the last level that have a target on another level. */
static void list_top_slots(quern__pass *pass, const quern__storage *storage, const quern__component *tag)
{
    const quern__links *links = &pass->levels->links;
    for (uint32_t i = 0; i < tag->archetypes.count; i++) {
        const quern__archetype *archetype = storage->archetypes.items[tag->archetypes.items[i]];
        for (uint32_t chunk = 0; chunk < archetype->chunk_count; chunk++) {
            const quern__chunk_slot *slot = &archetype->slots[chunk];
            const quern_entity *entities = quern__archetype_entities(archetype, slot->chunk);
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
    const uint32_t table = find_deep_table(pass, quern__storage_archetype_of(storage, record));
    if (table == UINT32_MAX) return;
    const uint32_t chunk = quern__chunk_of(record->location)->index;
    const uint32_t row = record->location & (QUERN__CHUNK_BYTES - 1);
    pass->deep_rows.items[pass->deep_rows.count++].key =
        (uint64_t)table << 48 | (uint64_t)chunk << 16 | row; /* fit: 65,536 archetypes, 16 KiB chunks */
}

static void add_row(quern__pass *pass, uint64_t key)
{
    const quern__deep_range range = {.table = (uint32_t)(key >> 48),
                                     .chunk_index = (uint32_t)(key >> 16),
                                     .first_row = (uint16_t)key,
                                     .count = 1};
    pass->deep_ranges.items[pass->deep_ranges.count++] = range;
    pass->tables_by_level.items[range.table]->deep_range_count++;
}

/* Converts the listed rows, which have the same depth, to row ranges, and empties the list. */
static void add_ranges(quern__pass *pass)
{
    const quern__sort_item *rows = pass->deep_rows.items;
    quern__sort(pass->deep_rows.items, pass->sort_scratch.items, pass->deep_rows.count);
    for (uint32_t i = 0; i < pass->deep_rows.count; i++)
        if (i > 0 && rows[i].key == rows[i - 1].key + 1)
            pass->deep_ranges.items[pass->deep_ranges.count - 1].count++;
        else
            add_row(pass, rows[i].key);
    pass->deep_rows.count = 0;
}

/* Builds deep_ranges depth by depth: the sources of the entities at one depth are the entities at the next
 * depth. */
static void order_deep(quern__pass *pass, const quern__storage *storage)
{
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
}

/* Numbers the views that level-ordered systems have on the last level, after their other views. */
static void number_deep(quern__pass *pass)
{
    for (uint32_t i = 0; i < pass->systems.count; i++)
        pass->systems.items[i]->first_deep_ordinal = pass->systems.items[i]->view_count;
    for (uint32_t i = pass->ordered_table_count; i < pass->tables_by_level.count; i++) {
        const quern__pass_table *table = pass->tables_by_level.items[i];
        for (const quern__pass_call *call = table->calls; call < table->calls_end; call++)
            if (is_level_ordered(call)) call->system->view_count += table->deep_range_count;
    }
}

static quern_result arrange_deep(quern__pass *pass)
{
    const quern__storage *storage = &pass->plan->world->storage;
    const uint32_t tag_index = quern__relation_tag(pass->levels, QUERN_MAX_RELATION_LEVEL);
    const quern__component *tag = storage->components.list.items[tag_index];
    if (!reserve_deep(pass, count_deep(storage, tag))) return fail_memory(pass);
    pass->deep_slots.count = pass->deep_rows.count = pass->deep_ranges.count = 0;
    list_top_slots(pass, storage, tag);
    order_deep(pass, storage);
    number_deep(pass);
    add_stage(pass, pass->chunk_count, true);
    pass->links_version = pass->levels->links.version;
    return QUERN_OK;
}

quern_result quern__levels_arrange(quern__pass *pass)
{
    uint32_t ends[QUERN__LEVEL_COUNT];
    if (!quern__array_reserve(quern__plan_allocator(pass->plan), &pass->tables_by_level,
                              pass->filled_tables.count))
        return fail_memory(pass);
    sort_tables(pass, ends);
    make_stages(pass, ends);
    return pass->tables_by_level.count > pass->ordered_table_count ? arrange_deep(pass) : QUERN_OK;
}
