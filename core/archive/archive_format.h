/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_ARCHIVE_ARCHIVE_FORMAT_H
#define QUERN_CORE_ARCHIVE_ARCHIVE_FORMAT_H

/* What an archive is, byte by byte. All numbers are little-endian.
 *
 *   archive:  | head | block | block | ... | last block |
 *   block:    | block head | sections, perhaps compressed |           each with a checksum
 *   section:   | kind, bytes | payload | 0 to 7 bytes of zero |       never in two blocks
 *
 * Sections, in this order:
 *
 *   WORLD      1     how many slots, rows, free slots; the first generation
 *   TYPE       n     a component: name, size, fields, what the world does with it. Numbered from 0
 *   RESOURCE   n     name, size, fields; then its VALUE sections, pieces of one value
 *   LINKS      n     children of targets in their order, by slots
 *   ARCHETYPE  n     a set of types, its layout and how many rows; then its ROWS sections
 *   ROWS             handles | column | column | ... | disabled bits
 *   FREE       n     free slots with the life that comes next, in the order in which they are taken
 *   RETIRED    n     slots that are free for ever
 *   NAMES      n     slots and names
 *   END        1
 *
 * An archive is whole in itself: each slot below the count is in one row, or free, or retired; targets are
 * in rows, and levels follow from targets. The archive of a few entities is one in which these have the
 * slots 0, 1, 2 ... and nothing is free. Handles stand as they were in the world, whose first generation
 * and tag the section WORLD knows: so columns need not be touched when they are written.
 *
 * Links come before rows, since what rows say of targets is compared with them. */

#include "core/bytes/schema.h"

#define QUERN__ARCHIVE_MAGIC "QUERNARC"
enum {
    QUERN__ARCHIVE_VERSION = 2,
    QUERN__ARCHIVE_BLOCK_MARK = 0x4B4C4251,  /* "QBLK" */
    QUERN__ARCHIVE_BLOCK_BYTES = 128 * 1024, /* the most a block's sections have */
    QUERN__SECTION_BYTES = 64 * 1024,        /* the most a section has */
    QUERN__SECTION_ALIGNMENT_BYTES = 8
};

#define QUERN__ARCHIVE_IS_NATIVE (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__)

typedef struct quern__archive_head {
    char magic[8];
    uint32_t version;
    uint32_t zero[3];
    uint64_t checksum; /* of what is before it */
} quern__archive_head;

typedef enum quern__archive_block_flag {
    QUERN__ARCHIVE_BLOCK_IS_LAST = 1,
    QUERN__ARCHIVE_BLOCK_IS_COMPRESSED = 2 /* by zstd */
} quern__archive_block_flag;

typedef struct quern__archive_block_head {
    uint32_t mark;
    uint32_t number;         /* from 0 */
    uint32_t stored_bytes;   /* in the archive */
    uint32_t sections_bytes; /* the same, unless it is compressed */
    uint32_t flags;
    uint32_t zero;
    uint64_t checksum; /* of what is before it, and of what is stored */
} quern__archive_block_head;

typedef enum quern__section_kind {
    QUERN__SECTION_WORLD = 1,
    QUERN__SECTION_TYPE,
    QUERN__SECTION_RESOURCE,
    QUERN__SECTION_VALUE,
    QUERN__SECTION_LINKS,
    QUERN__SECTION_ARCHETYPE,
    QUERN__SECTION_ROWS,
    QUERN__SECTION_FREE,
    QUERN__SECTION_RETIRED,
    QUERN__SECTION_NAMES,
    QUERN__SECTION_END
} quern__section_kind;

typedef struct quern__section_head {
    uint32_t kind;
    uint32_t bytes; /* of the payload */
} quern__section_head;

typedef struct quern__world_section {
    uint32_t first_handle_high;
    uint32_t slot_count;
    uint32_t row_count;
    uint32_t free_count;
    uint32_t retired_count;
    uint32_t next_visit; /* of archetypes without rows: see core/calls/reclaim.c */
    uint64_t visit_count;
} quern__world_section;

/* What the world does with a component. */
typedef enum quern__archived_role {
    QUERN__ROLE_VALUE,         /* nothing */
    QUERN__ROLE_RELATION,      /* it is a relation; levels follow right after it, if it has them */
    QUERN__ROLE_LEVEL,         /* the tag of a level, of the relation before it */
    QUERN__ROLE_DISABLED,      /* the built-in tag of entities that are off */
    QUERN__ROLE_OFF_BY_PARENT, /* the hidden one after it */
    QUERN__ROLE_COUNT
} quern__archived_role;

/* What is true of a component by its role. The other bits are its flags: archive_bit of QUERN__COLUMN_FLAGS. */
typedef enum quern__archived_flag {
    QUERN__ARCHIVED_HAS_LEVELS = 2,
    QUERN__ARCHIVED_IS_ORDERED = 4,
    QUERN__ARCHIVED_HAS_HOOKS = 8 /* a VALUE whose values own something: only in archetypes without rows */
} quern__archived_flag;

typedef struct quern__type_section {
    uint32_t size_bytes;
    uint32_t alignment_bytes;
    uint32_t role;
    uint32_t flags;
    uint32_t relation; /* type number, of a LEVEL */
    uint32_t level;    /* of a LEVEL */
    uint32_t policy;   /* of a RELATION */
    uint32_t field_count;
    /* follows: the schema, in the form quern__archive_schema */
} quern__type_section;

enum { QUERN__ARCHIVE_NAME_LENGTH_BYTES = 1 };

static const quern__schema_form quern__archive_schema = {.name_length_bytes =
                                                             QUERN__ARCHIVE_NAME_LENGTH_BYTES};

typedef struct quern__archetype_section {
    uint64_t empty_since;
    uint32_t
        layout_index; /* decides the layout of its chunks; not below quern__archived_least_layout_index */
    uint32_t row_count;
    uint32_t type_count;
    uint32_t zero;
    /* follows: type numbers, 32 bits each */
} quern__archetype_section;

typedef struct quern__rows_section {
    uint32_t row_count;
    uint32_t zero;
    /* follows: handles; a column for each type with a size; for each flag with a bit column (QUERN__COLUMN_FLAGS), and
     * each type with the flag, a 64-bit count of rows with the bit, and, unless that is 0, a bit for each row in
     * 64-bit words */
} quern__rows_section;

typedef struct quern__links_section {
    uint32_t relation; /* type number */
    uint32_t zero;
    /* follows: target, count of children, children; again and again */
} quern__links_section;

typedef struct quern__free_section {
    uint32_t slot;
    uint32_t use_count; /* of the entity that comes next there */
} quern__free_section;

/* A NAMES section is slot, 32 bits, and name, whose length has one byte; again and again. */

/* The least layout_index that an archetype of an archive can have, by how many archetypes with components
 * come before it. The archetype without components is the first of every world. */
static inline uint32_t quern__archived_least_layout_index(uint32_t type_count, uint32_t count_before)
{
    return type_count > 0 ? count_before + 1 : 0;
}

/* The bytes of an array of rows in a section. */
static inline size_t quern__archived_row_bits_bytes(uint32_t row_count)
{
    return ((size_t)row_count + 63) / 64 * sizeof(uint64_t);
}

#endif
