/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_ARCHIVE_SAVE_H
#define QUERN_CORE_ARCHIVE_SAVE_H

/* What saving a world and saving some entities share: all but the bytes of rows. */

#include "core/archive/archive_block.h"
#include "core/world/world_internal.h"

#include <quern/archive.h>

#define QUERN__NO_TYPE UINT32_MAX

typedef struct quern__saving {
    quern_world *world;
    const quern_save_def *def;
    quern__archive_writer writer;
    uint32_t *numbers; /* of types in the archive, by component index; QUERN__NO_TYPE: it has not come */
    const quern__map *selected; /* slot + 1 -> slot in the archive; NULL: the same, for all */
} quern__saving;

/* Entities with the same components, as they are saved. */
typedef struct quern__saved_components {
    uint32_t component_count;
    uint32_t values_bytes; /* of a row: handle and values */
    uint32_t bit_column_count;
    uint16_t component_indices[QUERN_MAX_ENTITY_COMPONENTS];
} quern__saved_components;

/* Checks what the two calls share. Errors: NULL_ARGUMENT, WORLD_LOCKED, INVALID_ARGUMENT,
 * UNKNOWN_COMPONENT, OUT_OF_MEMORY, UNAVAILABLE; then nothing is open. */
quern_result quern__saving_open(quern__saving *saving, quern_world *world, quern_sink sink,
                                const quern_save_def *def);

/* What is open ends: well, or with the error given. Errors: that, and FILE. */
quern_result quern__saving_close(quern__saving *saving, quern_result result);

/* Whether entities are saved without the component. */
bool quern__saving_leaves_out(const quern__saving *saving, uint32_t component_index);

/* Adds a component to a set. Errors: INVALID_ARGUMENT if its values own something (hooks) and the set has
 * rows. */
quern_result quern__saving_add_component(quern__saving *saving, quern__saved_components *set,
                                         uint32_t component_index, bool has_rows);

/* The head, then all types that sets have. */
void quern__saving_write_types(quern__saving *saving, const quern__world_section *section);

/* Children of a target, as far as they are saved. */
void quern__saving_write_children(quern__saving *saving, const quern__relation *relation, uint32_t target);

/* Writes the head of an archetype; section has all but type_count. */
void quern__saving_write_archetype(quern__saving *saving, const quern__saved_components *set,
                                   quern__archetype_section section);

/* Begins a section with so many rows. */
quern__byte_writer *quern__saving_begin_rows(quern__saving *saving, const quern__saved_components *set,
                                             uint32_t row_count);

/* Writes which of row_count rows have a component disabled. */
void quern__saving_write_row_bits(quern__byte_writer *writer, const uint64_t *words, uint32_t row_count);

/* The most rows that a section may have, at least 1. */
uint32_t quern__saving_max_rows(const quern__saved_components *set);

/* If the slot has a name. */
void quern__saving_write_name(quern__saving *saving, uint32_t slot);

/* Where a slot of the world is in the archive, or QUERN__SLOT_NONE. */
static inline uint32_t quern__saving_find_slot(const quern__saving *saving, uint32_t slot)
{
    if (saving->selected == NULL) return slot;
    const uint64_t *found = quern__map_find(saving->selected, (uint64_t)slot + 1);
    return found != NULL ? (uint32_t)*found : QUERN__SLOT_NONE;
}

#endif
