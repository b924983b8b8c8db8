/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "bench/raw.h"

#include <stdlib.h>

#include "bench/harness.h"

enum { FIRST_ROWS = 64, FIRST_RECORDS = 1024, COLUMN_ALIGNMENT_BYTES = 64 };

void raw_store_open(raw_store *store, uint32_t main_mask)
{
    *store = (raw_store){0};
    store->tables[RAW_MAIN].mask = main_mask;
    store->tables[RAW_WITH_HEALTH].mask = main_mask | RAW_BIT(RAW_HEALTH);
}

void raw_store_close(raw_store *store)
{
    for (int t = 0; t < RAW_TABLE_COUNT; t++) {
        free(store->tables[t].entities);
        for (int i = 0; i < RAW_COMPONENT_COUNT; i++)
            free(store->tables[t].columns[i]);
    }
    free(store->records);
    free(store->free_indices);
}

static void *regrown(void *old, size_t old_bytes, size_t new_bytes)
{
    const size_t alignment = COLUMN_ALIGNMENT_BYTES;
    void *grown = aligned_alloc(alignment, (new_bytes + alignment - 1) & ~(alignment - 1));
    if (grown == NULL) bench_die("out of memory (%zu bytes)", new_bytes);
    if (old_bytes > 0) memcpy(grown, old, old_bytes);
    free(old);
    return grown;
}

void raw_table_grow(raw_table *table)
{
    const size_t count = table->count;
    const uint32_t capacity = table->capacity > 0 ? table->capacity * 2 : FIRST_ROWS;
    table->entities = regrown(table->entities, count * sizeof(raw_entity), capacity * sizeof(raw_entity));
    for (int i = 0; i < RAW_COMPONENT_COUNT; i++) {
        if ((table->mask & RAW_BIT(i)) == 0) continue;
        const size_t size = raw_component_bytes(i);
        table->columns[i] = regrown(table->columns[i], count * size, capacity * size);
    }
    table->capacity = capacity;
}

static void *reallocated(void *old, size_t bytes)
{
    void *grown = realloc(old, bytes);
    if (grown == NULL) bench_die("out of memory (%zu bytes)", bytes);
    return grown;
}

void raw_records_grow(raw_store *store)
{
    store->record_capacity = store->record_capacity > 0 ? store->record_capacity * 2 : FIRST_RECORDS;
    store->records = reallocated(store->records, store->record_capacity * sizeof *store->records);
}

void raw_free_indices_grow(raw_store *store)
{
    store->free_capacity = store->free_capacity > 0 ? store->free_capacity * 2 : FIRST_RECORDS;
    store->free_indices =
        reallocated(store->free_indices, store->free_capacity * sizeof *store->free_indices);
}

uint64_t raw_checksum_moving(const raw_store *store)
{
    const raw_table *table = &store->tables[RAW_MAIN];
    return checksum_moving(raw_column(table, RAW_POSITION), raw_column(table, RAW_VELOCITY), table->count);
}
