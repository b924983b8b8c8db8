/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_ARCHIVE_SAVE_H
#define QUERN_CORE_ARCHIVE_SAVE_H

/* Functions shared by saving a world (save.c) and saving selected entities (select.c). The two differ in
 * how they write the rows. */

#include "core/archive/archive_block.h"
#include "core/world/world_internal.h"

#include <quern/archive.h>

#define QUERN__NO_TYPE UINT32_MAX

typedef struct quern__saving {
    quern_world *world;
    const quern_save_def *def;
    quern__archive_writer writer;
    uint32_t *numbers; /* type number in the archive, by component index; QUERN__NO_TYPE: not used so far */
    const quern__map *selected; /* slot + 1 -> slot in the archive; NULL: all slots are saved unchanged */
} quern__saving;

/* The components of one archetype in the archive. */
typedef struct quern__saved_components {
    uint32_t component_count;
    uint32_t values_bytes; /* bytes of one row: handle and values */
    uint32_t bit_column_count;
    uint16_t component_indices[QUERN_MAX_ENTITY_COMPONENTS];
} quern__saved_components;

/* Starts saving. Checks the definition and that no commands are waiting, then opens the writer. Errors:
 * INVALID_ARGUMENT, UNKNOWN_COMPONENT, OUT_OF_MEMORY, UNAVAILABLE; then nothing is open. */
quern_result quern__saving_open(quern__saving *saving, quern_world *world, quern_sink sink,
                                const quern_save_def *def);

/* Ends saving: completes the archive if `result` is OK, otherwise abandons it. Returns `result` or the
 * error of the sink (IO). */
quern_result quern__saving_close(quern__saving *saving, quern_result result);

/* Whether the definition excludes the component from the archive. */
bool quern__saving_leaves_out(const quern__saving *saving, uint32_t component_index);

/* Adds a component to the list and marks its type as used. Errors: INVALID_ARGUMENT if has_rows and
 * values of the component own resources (hooks). */
quern_result quern__saving_add_component(quern__saving *saving, quern__saved_components *set,
                                         uint32_t component_index, bool has_rows);

/* Writes the WORLD section, then a TYPE section for each used component. */
void quern__saving_write_types(quern__saving *saving, const quern__world_section *section);

/* Writes the sources of a target in LINKS sections, in order, without those that are not saved. Does
 * nothing if the target is not saved. */
void quern__saving_write_children(quern__saving *saving, const quern__relation *relation, uint32_t target);

/* Writes an ARCHETYPE section. `section` is complete except for type_count. */
void quern__saving_write_archetype(quern__saving *saving, const quern__saved_components *set,
                                   quern__archetype_section section);

/* Begins a ROWS section for row_count rows. Returns the writer for handles, columns and row bits. */
quern__byte_writer *quern__saving_begin_rows(quern__saving *saving, const quern__saved_components *set,
                                             uint32_t row_count);

/* Writes one bit column for row_count rows: the number of set bits and, unless it is 0, the words. */
void quern__saving_write_row_bits(quern__byte_writer *writer, const uint64_t *words, uint32_t row_count);

/* Returns how many rows fit into one ROWS section, at least 1. */
uint32_t quern__saving_max_rows(const quern__saved_components *set);

/* Writes the name of the slot, if it has one. */
void quern__saving_write_name(quern__saving *saving, uint32_t slot);

/* Returns the slot in the archive of a slot of the world, or QUERN__SLOT_NONE if it is not saved. */
static inline uint32_t quern__saving_find_slot(const quern__saving *saving, uint32_t slot)
{
    if (saving->selected == NULL) return slot;
    const uint64_t *found = quern__map_find(saving->selected, (uint64_t)slot + 1);
    return found != NULL ? (uint32_t)*found : QUERN__SLOT_NONE;
}

#endif
