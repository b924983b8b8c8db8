/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "bench/raw.h"

#include <stdlib.h>

#include "bench/harness.h"

enum { FIRST_ROWS = 64, FIRST_RECORDS = 1024 };

void raw_store_open(raw_store *store, uint32_t main_mask)
{
    *store = (raw_store){0};
    store->tables[RAW_MAIN].mask = main_mask;
    store->tables[RAW_WITH_HEALTH].mask = main_mask | RAW_BIT(RAW_HEALTH);
    store->tables[RAW_WITH_HEALTH_DAMAGE].mask = main_mask | RAW_BIT(RAW_HEALTH) | RAW_BIT(RAW_DAMAGE);
}

void raw_table_close(raw_table *table)
{
    free(table->entities);
    for (int i = 0; i < RAW_COMPONENT_COUNT; i++)
        free(table->columns[i]);
}

void raw_store_close(raw_store *store)
{
    for (int t = 0; t < RAW_TABLE_COUNT; t++)
        raw_table_close(&store->tables[t]);
    free(store->records);
    free(store->free_indices);
}

raw_table raw_store_take_main(raw_store *store)
{
    const raw_table table = store->tables[RAW_MAIN];
    store->tables[RAW_MAIN] = (raw_table){.mask = table.mask};
    return table;
}

static void *regrown(void *old, size_t old_bytes, size_t new_bytes)
{
    void *grown = bench_allocate_fresh(new_bytes);
    if (old_bytes > 0) memcpy(grown, old, old_bytes);
    free(old);
    return grown;
}

static void set_table_capacity(raw_table *table, uint32_t capacity)
{
    const size_t count = table->count;
    table->entities = regrown(table->entities, count * sizeof(raw_entity), capacity * sizeof(raw_entity));
    for (int i = 0; i < RAW_COMPONENT_COUNT; i++) {
        if ((table->mask & RAW_BIT(i)) == 0) continue;
        const size_t size = raw_component_bytes(i);
        table->columns[i] = regrown(table->columns[i], count * size, capacity * size);
    }
    table->capacity = capacity;
}

void raw_table_grow(raw_table *table)
{
    set_table_capacity(table, table->capacity > 0 ? table->capacity * 2 : FIRST_ROWS);
}

static void set_record_capacity(raw_store *store, uint32_t capacity)
{
    store->records = regrown(store->records, store->record_count * sizeof *store->records,
                             capacity * sizeof *store->records);
    store->record_capacity = capacity;
}

void raw_records_grow(raw_store *store)
{
    set_record_capacity(store, store->record_capacity > 0 ? store->record_capacity * 2 : FIRST_RECORDS);
}

void raw_free_indices_grow(raw_store *store)
{
    const uint32_t capacity = store->free_capacity > 0 ? store->free_capacity * 2 : FIRST_RECORDS;
    store->free_indices = regrown(store->free_indices, store->free_count * sizeof *store->free_indices,
                                  capacity * sizeof *store->free_indices);
    store->free_capacity = capacity;
}

void raw_create_many_moving(raw_store *store, const Position *positions, const Velocity *velocities,
                            uint32_t count)
{
    raw_table *table = &store->tables[RAW_MAIN];
    set_record_capacity(store, count);
    set_table_capacity(table, count);
    memcpy(raw_column(table, RAW_POSITION), positions, count * sizeof *positions);
    memcpy(raw_column(table, RAW_VELOCITY), velocities, count * sizeof *velocities);
    for (uint32_t i = 0; i < count; i++) {
        store->records[i] = (raw_record){.row = i, .generation = 1, .table = RAW_MAIN};
        table->entities[i] = i | (raw_entity)1 << 32;
    }
    store->record_count = count;
    table->count = count;
}

uint64_t raw_checksum_moving(const raw_table *table)
{
    return checksum_moving(raw_column(table, RAW_POSITION), raw_column(table, RAW_VELOCITY), table->count);
}
