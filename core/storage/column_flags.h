/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_STORAGE_COLUMN_FLAGS_H
#define QUERN_CORE_STORAGE_COLUMN_FLAGS_H

/* The flags of component types. The tables QUERN__ROW_FLAGS and QUERN__COLUMN_FLAGS are the only place that lists
 * them: registration, archetypes, reflection, hashes, archives, replays and the kit's JSON iterate over their
 * entries. docs/internals.md lists the steps to add a flag. */

#include "core/platform/compiler.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct quern__column_flag {
    const char *name;    /* name of the member in quern_component_def and quern_type_info */
    const char *with;    /* predicate of "component 'x' ..." in messages, for components with the flag */
    const char *without; /* the same for components without the flag */
    uint16_t def_offset_bytes;  /* offset of the member in quern_component_def */
    uint16_t info_offset_bytes; /* offset of the member in quern_type_info */
    uint8_t bit;                /* bit in quern__type.flags */
    uint8_t replay_bit;         /* bit in the flags of a recorded type; 0: replays ignore the flag */
    bool is_layout; /* registering the component again with another value fails with LAYOUT_MISMATCH */
    /* only row flags: */
    uint8_t archive_bit; /* bit in quern__type_section.flags; equal in all versions of the archive format */
    const char *list_name; /* JSON key, in an entity, of the list of components with a set row bit */
} quern__column_flag;

/* Each entry of the tables has the end of the bit's name (QUERN__FLAG_...), the name of a bool member of
 * quern_component_def and quern_type_info, and initialisers of quern__column_flag.
 *
 * A row flag means that each row has a state of its own. Archetypes keep a bit column for each component with such a
 * flag; the kind of the bit column is the number of the flag (row_bits.h). Archives save these bits after the
 * columns, hashes include them, and two functions list them for the JSON of an entity
 * (core/calls/calls_internal.h). */
#define QUERN__ROW_FLAGS(FLAG)                                                           \
    FLAG(CAN_DISABLE, can_disable, .is_layout = true, .replay_bit = 1, .archive_bit = 1, \
         .list_name = "disabled", .with = "can be disabled", .without = "cannot be disabled")

#define QUERN__COLUMN_FLAGS(FLAG)                                                   \
    QUERN__ROW_FLAGS(FLAG)                                                          \
    FLAG(ROW_CHANGES, row_changes, .is_layout = true, .with = "has changes by row", \
         .without = "has changes by chunk")                                         \
    FLAG(IS_HIDDEN, is_hidden, .with = "is not to be shown by tools", .without = "may be shown by tools")

/* Index of a flag in quern__column_flags. */
#define QUERN__FLAG_NUMBER(flag, ...) QUERN__FLAG_NUMBER_##flag,
enum { QUERN__COLUMN_FLAGS(QUERN__FLAG_NUMBER) QUERN__COLUMN_FLAG_COUNT };

#define QUERN__ROW_FLAG_NUMBER(flag, ...) QUERN__ROW_FLAG_NUMBER_##flag,
enum { QUERN__ROW_FLAGS(QUERN__ROW_FLAG_NUMBER) QUERN__ROW_FLAG_COUNT };
enum { QUERN__ROW_FLAG_BITS = (1 << QUERN__ROW_FLAG_COUNT) - 1 };

#define QUERN__FLAG_BIT(flag, ...) QUERN__FLAG_##flag = 1 << QUERN__FLAG_NUMBER_##flag,
enum { QUERN__COLUMN_FLAGS(QUERN__FLAG_BIT) QUERN__FLAG_NONE = 0 };

/* Descriptions of all flags, by flag number. Row flags precede all others. */
extern const quern__column_flag quern__column_flags[QUERN__COLUMN_FLAG_COUNT];

/* Returns the number of bit columns that archetypes keep for a component with these flags. */
static inline uint32_t quern__column_flags_bit_column_count(uint32_t flags)
{
    return quern__count_bits_32(flags & QUERN__ROW_FLAG_BITS);
}

/* Translate the flags of a type to the bits that represent them in an archive or a replay. */
uint32_t quern__column_flags_to_archive(uint32_t flags);
uint32_t quern__column_flags_to_replay(uint32_t flags);

/* Returns the flags that bits of an archive represent. Unknown bits are ignored. */
uint8_t quern__column_flags_from_archive(uint32_t archive_bits);

#endif
