/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_STORAGE_COLUMN_FLAGS_H
#define QUERN_CORE_STORAGE_COLUMN_FLAGS_H

/* The flags of component types. The table QUERN__COLUMN_FLAGS is the only place that lists them: registration,
 * reflection, archives, replays and the kit's JSON iterate over its rows, so a new flag changes none of them. */

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
    /* In quern__type_section.flags, the same in every version of the format; 0: rows have no state of the flag.
     * Otherwise archetypes keep a plane for each component with the flag, archives save its bits behind the
     * columns, and the JSON of an entity lists the components whose bit is set. */
    uint8_t archive_bit;
    uint8_t plane;         /* quern__plane_kind */
    const char *list_name; /* in the JSON of an entity */
    bool is_layout;        /* registering the component again with another value fails (LAYOUT_MISMATCH) */
} quern__column_flag;

/* A row is the end of the bit's name (QUERN__FLAG_...); the member, a bool of this name in quern_component_def and
 * in quern_type_info; and members of quern__column_flag. */
#define QUERN__COLUMN_FLAGS(FLAG)                                                                       \
    FLAG(CAN_DISABLE, can_disable, .is_layout = true, .archive_bit = 1, .plane = QUERN__PLANE_DISABLED, \
         .list_name = "disabled", .replay_bit = 1, .with = "can be disabled",                           \
         .without = "cannot be disabled")                                                               \
    FLAG(ROW_CHANGES, row_changes, .is_layout = true, .with = "has changes by row",                     \
         .without = "has changes by chunk")                                                             \
    FLAG(IS_HIDDEN, is_hidden, .with = "is not to be shown by tools", .without = "may be shown by tools")

/* Index of a flag in the table. */
#define QUERN__FLAG_NUMBER(flag, ...) QUERN__FLAG_NUMBER_##flag,
enum { QUERN__COLUMN_FLAGS(QUERN__FLAG_NUMBER) QUERN__COLUMN_FLAG_COUNT };

#define QUERN__FLAG_BIT(flag, ...) QUERN__FLAG_##flag = 1 << QUERN__FLAG_NUMBER_##flag,
enum { QUERN__COLUMN_FLAGS(QUERN__FLAG_BIT) QUERN__FLAG_NONE = 0 };

extern const quern__column_flag quern__column_flags[QUERN__COLUMN_FLAG_COUNT];

/* Returns the row after `flag` (NULL: the first one) whose flag has a plane, or NULL. */
const quern__column_flag *quern__column_flags_next_plane(const quern__column_flag *flag);

/* Number of planes that archetypes keep for a component with these flags. */
uint32_t quern__column_flags_plane_count(uint32_t flags);

/* Translates the flags of a type to the bits that an archive or a replay has for them. */
uint32_t quern__column_flags_to_archive(uint32_t flags);
uint32_t quern__column_flags_to_replay(uint32_t flags);

/* Returns the flags that these bits of an archive stand for; other bits are ignored. */
uint8_t quern__column_flags_from_archive(uint32_t archive_bits);

#endif
