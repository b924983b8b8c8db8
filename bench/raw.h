/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_BENCH_RAW_H
#define QUERN_BENCH_RAW_H

/* The control: the code that a programmer would write by hand if all component sets were known in advance.
 * Each component has a growing array. Entities are identified by index and generation. The last row is
 * moved into the gap of a removed row. Every call has the component set as a constant mask, so that the
 * compiler unrolls the copying. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "bench/data.h"

#define RAW_INLINE static inline __attribute__((always_inline))

enum {
    RAW_POSITION,
    RAW_VELOCITY,
    RAW_ROTATION,
    RAW_HEALTH,
    RAW_DAMAGE,
    RAW_BRAIN,
    RAW_LIFE,
    RAW_COMPONENT_COUNT
};

#define RAW_BIT(component) (1u << (component))

enum {
    RAW_MOVING = RAW_BIT(RAW_POSITION) | RAW_BIT(RAW_VELOCITY),
    RAW_MOVING_HEALTH = RAW_MOVING | RAW_BIT(RAW_HEALTH),
    RAW_MOVING_HEALTH_DAMAGE = RAW_MOVING_HEALTH | RAW_BIT(RAW_DAMAGE),
    RAW_MOVING_LIFE = RAW_MOVING | RAW_BIT(RAW_LIFE),
    RAW_WIDE = RAW_MOVING_HEALTH | RAW_BIT(RAW_ROTATION) | RAW_BIT(RAW_DAMAGE) | RAW_BIT(RAW_BRAIN)
};

/* Entities are created in the main table. Entities with a Health are in the second table, entities with a
 * Health and a Damage in the third. */
enum { RAW_MAIN, RAW_WITH_HEALTH, RAW_WITH_HEALTH_DAMAGE, RAW_TABLE_COUNT };

typedef uint64_t raw_entity; /* index in the low 32 bits, generation in the high 32 bits */

typedef struct raw_table {
    raw_entity *entities;
    char *columns[RAW_COMPONENT_COUNT]; /* NULL where the mask has no bit */
    uint32_t count;
    uint32_t capacity;
    uint32_t mask;
} raw_table;

typedef struct raw_record {
    uint32_t row;
    uint32_t generation : 28;
    uint32_t table : 4;
} raw_record;

typedef struct raw_store {
    raw_table tables[RAW_TABLE_COUNT];
    raw_record *records;
    uint32_t record_count;
    uint32_t record_capacity;
    uint32_t *free_indices;
    uint32_t free_count;
    uint32_t free_capacity;
} raw_store;

void raw_store_open(raw_store *store, uint32_t main_mask);
void raw_store_close(raw_store *store);

/* Returns the main table, which the caller then owns, and replaces it with an empty one. */
raw_table raw_store_take_main(raw_store *store);
void raw_table_close(raw_table *table);

/* Make room for at least one more element. */
void raw_table_grow(raw_table *table);
void raw_records_grow(raw_store *store);
void raw_free_indices_grow(raw_store *store);

/* ------------------------------------------------------------------------------------------ columns */

RAW_INLINE size_t raw_component_bytes(int component)
{
    static const size_t sizes[RAW_COMPONENT_COUNT] = {
        [RAW_POSITION] = sizeof(Position), [RAW_VELOCITY] = sizeof(Velocity),
        [RAW_ROTATION] = sizeof(Rotation), [RAW_HEALTH] = sizeof(Health),
        [RAW_DAMAGE] = sizeof(Damage),     [RAW_BRAIN] = sizeof(Brain),
        [RAW_LIFE] = sizeof(Life),
    };
    return sizes[component];
}

RAW_INLINE void *raw_column(const raw_table *table, int component)
{
    return table->columns[component];
}

/* Copies the components of the mask from one row to another, in the same or in another table. */
RAW_INLINE void raw_copy_row(raw_table *to, uint32_t to_row, const raw_table *from, uint32_t from_row,
                             uint32_t mask)
{
    for (int i = 0; i < RAW_COMPONENT_COUNT; i++) {
        if ((mask & RAW_BIT(i)) == 0) continue;
        const size_t size = raw_component_bytes(i);
        memcpy(to->columns[i] + to_row * size, from->columns[i] + from_row * size, size);
    }
}

/* --------------------------------------------------------------------------------------------- rows */

/* Adds a row and returns it. The caller fills its components. */
RAW_INLINE uint32_t raw_push(raw_store *store, uint32_t table_index, uint32_t entity_index)
{
    raw_table *table = &store->tables[table_index];
    if (table->count == table->capacity) raw_table_grow(table);
    const uint32_t row = table->count++;
    raw_record *record = &store->records[entity_index];
    table->entities[row] = entity_index | (raw_entity)record->generation << 32;
    record->row = row;
    record->table = table_index & 15u;
    return row;
}

RAW_INLINE void raw_pop(raw_store *store, uint32_t table_index, uint32_t row, uint32_t mask)
{
    raw_table *table = &store->tables[table_index];
    const uint32_t last = --table->count;
    if (row == last) return;
    const raw_entity moved = table->entities[last];
    table->entities[row] = moved;
    store->records[(uint32_t)moved].row = row;
    raw_copy_row(table, row, table, last, mask);
}

/* Moves an entity to another table and returns its row there. The caller fills the components that only the
 * new table has. */
RAW_INLINE uint32_t raw_migrate(raw_store *store, uint32_t entity_index, uint32_t to, uint32_t from_mask,
                                uint32_t to_mask)
{
    const raw_record old = store->records[entity_index];
    const uint32_t row = raw_push(store, to, entity_index);
    raw_copy_row(&store->tables[to], row, &store->tables[old.table], old.row, from_mask & to_mask);
    raw_pop(store, old.table, old.row, from_mask);
    return row;
}

/* ----------------------------------------------------------------------------------------- entities */

RAW_INLINE uint32_t raw_index_allocate(raw_store *store)
{
    if (store->free_count > 0) return store->free_indices[--store->free_count];
    if (store->record_count == store->record_capacity) raw_records_grow(store);
    store->records[store->record_count].generation = 1;
    return store->record_count++;
}

RAW_INLINE void raw_index_free(raw_store *store, uint32_t index)
{
    raw_record *record = &store->records[index];
    record->generation = (record->generation + 1u) & 0xFFFFFFFu;
    if (store->free_count == store->free_capacity) raw_free_indices_grow(store);
    store->free_indices[store->free_count++] = index;
}

RAW_INLINE bool raw_is_alive(const raw_store *store, raw_entity entity)
{
    return store->records[(uint32_t)entity].generation == (uint32_t)(entity >> 32);
}

/* Creates an entity in the main table and returns its row. The caller fills its components. */
RAW_INLINE uint32_t raw_create(raw_store *store)
{
    return raw_push(store, RAW_MAIN, raw_index_allocate(store));
}

RAW_INLINE void raw_destroy(raw_store *store, raw_entity entity, uint32_t mask)
{
    if (!raw_is_alive(store, entity)) return;
    const raw_record record = store->records[(uint32_t)entity];
    raw_pop(store, record.table, record.row, mask);
    raw_index_free(store, (uint32_t)entity);
}

/* ----------------------------------------------------------- entities with Position and Velocity */

/* Sets Position and Velocity of a row in the main table to their start values. */
RAW_INLINE void raw_set_moving(raw_store *store, uint32_t row, uint32_t seed)
{
    const raw_table *table = &store->tables[RAW_MAIN];
    ((Position *)raw_column(table, RAW_POSITION))[row] = start_position(seed);
    ((Velocity *)raw_column(table, RAW_VELOCITY))[row] = start_velocity(seed);
}

RAW_INLINE raw_entity raw_create_moving(raw_store *store, uint32_t seed)
{
    const uint32_t row = raw_create(store);
    raw_set_moving(store, row, seed);
    return store->tables[RAW_MAIN].entities[row];
}

/* Creates entities from arrays of values. The store must never have had an entity. */
void raw_create_many_moving(raw_store *store, const Position *positions, const Velocity *velocities,
                            uint32_t count);

uint64_t raw_checksum_moving(const raw_table *table);

#endif
