/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_STORAGE_COLUMN_FLAGS_H
#define QUERN_CORE_STORAGE_COLUMN_FLAGS_H

/* The flags of component types. The tables QUERN__ROW_FLAGS and QUERN__COLUMN_FLAGS are the only place that lists
 * them: registration, archetypes, reflection, hashes, archives, replays and the kit's JSON iterate over their rows.
 * docs/internals.md goes through the steps of a new flag. */

#include <stdbool.h>
#include <stdint.h>

typedef struct quern__column_flag {
    const char *name; /* of the member */
    const char *with; /* completes "component 'x' ..." for a component with the flag */
    const char *without;
    uint16_t def_offset_bytes;  /* of the member in quern_component_def */
    uint16_t info_offset_bytes; /* and in quern_type_info */
    uint8_t bit;                /* in quern__type.flags */
    uint8_t replay_bit;         /* in the flags of a recorded type; 0: replays ignore the flag */
    bool is_layout; /* registering the component again with another value fails (LAYOUT_MISMATCH) */
    /* of row flags */
    uint8_t archive_bit;   /* in quern__type_section.flags, the same in every version of the format */
    const char *list_name; /* in the JSON of an entity: the components whose bit is set */
} quern__column_flag;

/* A row is the end of the bit's name (QUERN__FLAG_...); the member, a bool of this name in quern_component_def and
 * in quern_type_info; and members of quern__column_flag.
 *
 * Row flags are those that each row has a state of. Archetypes keep a bit column for each component with such a flag: the
 * kind of the bit column is the number of the flag (row_bits.h). Archives save the bits behind the columns, hashes include
 * them, and two functions tell them to the JSON of an entity (core/calls/calls_internal.h). */
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

/* The row flags are the first ones. */
extern const quern__column_flag quern__column_flags[QUERN__COLUMN_FLAG_COUNT];

/* Number of bit columns that archetypes keep for a component with these flags. */
static inline uint32_t quern__column_flags_bit_column_count(uint32_t flags)
{
    return (uint32_t)__builtin_popcount(flags & QUERN__ROW_FLAG_BITS);
}

/* Translates the flags of a type to the bits that an archive or a replay has for them. */
uint32_t quern__column_flags_to_archive(uint32_t flags);
uint32_t quern__column_flags_to_replay(uint32_t flags);

/* Returns the flags that these bits of an archive stand for; other bits are ignored. */
uint8_t quern__column_flags_from_archive(uint32_t archive_bits);

#endif
