/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_ARCHIVE_IMAGE_H
#define QUERN_CORE_ARCHIVE_IMAGE_H

/* An archive that was read: all that it says, checked, but values, which are looked at where they lie. What
 * one section says is checked when it is taken (image.c, image_types.c, image_rows.c), what several say
 * together at the end (quern__image_check_whole). Nobody else has to doubt an archive. Memory follows from bytes that
 * are there, never from a number alone. */

#include "core/archive/archive_block.h"
#include "core/archive/convert.h"
#include "core/world/world_internal.h"

#include <quern/archive.h>

/* A component of the archive, and what it is in the world. */
typedef struct quern__archived_type {
    quern__type type;
    quern__archived_role role;
    uint32_t flags;
    uint32_t relation_number; /* of a level: its relation's number among the types */
    uint32_t level;
    quern_target_policy policy;
    uint32_t component_index;  /* in the world, or QUERN__NO_COMPONENT: it is left out */
    quern__relation *relation; /* the world's, if the type is a relation that goes on as one; or NULL */
    const quern_migration *migration;
    quern__conversion conversion;
    struct quern__archived_links *links; /* of a type with a relation; NULL: the archive has none */
} quern__archived_type;

/* Who is whose child in one relation, by slots. */
typedef struct quern__archived_links {
    quern__relation *relation;         /* the world's */
    uint32_t *targets;                 /* by slot; QUERN__SLOT_NONE: none */
    uint8_t *levels;                   /* by slot, as rows have them */
    uint32_t link_count, source_count; /* by LINKS, and by rows */
} quern__archived_links;

typedef struct quern__archived_archetype {
    uint32_t first_type, type_count; /* in type_numbers */
    uint32_t row_count;
    uint32_t parsed_row_count; /* by ROWS so far */
    uint64_t empty_since;
    uint32_t layout_index;
    uint32_t values_bytes;                                       /* of a row: handle and values */
    uint32_t bit_column_count;                                   /* types that can be disabled */
    uint16_t component_indices[QUERN_MAX_ENTITY_COMPONENTS + 1]; /* in the world, ascending */
    uint32_t component_count;
    quern__archetype *archetype; /* found when it is loaded */
} quern__archived_archetype;

/* A resource of the archive, and its value, for one that the world has. */
typedef struct quern__archived_resource {
    quern__type type;
    quern__resource *resource; /* the world's, or NULL */
    quern__conversion conversion;
    char *value;          /* size_bytes of the type, NULL unless the world has it */
    uint32_t value_bytes; /* that have been taken */
} quern__archived_resource;

typedef struct quern__image {
    const quern_load_def *def;
    quern_load_report *report;
    quern_world *world;
    quern_allocator allocator;
    quern__archive_blocks blocks;
    quern__world_section head;
    bool is_whole; /* the section END was there */
    bool keeps_handles;
    quern__section_kind last_kind;
    QUERN__ARRAY(quern__archived_type *) types;
    QUERN__ARRAY(quern__archived_resource *) resources;
    QUERN__ARRAY(quern__archived_archetype) archetypes;
    uint32_t archetype_count_with_types; /* how many of them have types */
    QUERN__ARRAY(uint32_t) type_numbers;
    QUERN__ARRAY(uint32_t) free_slots; /* in the order in which they are taken */
    QUERN__ARRAY(uint32_t) use_counts; /* by slot; 0: no section has said anything of it yet */
    QUERN__ARRAY(uint8_t) states;      /* by slot: quern__archived_state */
    uint32_t retired_count;
    quern__names names; /* by slots of the archive */
} quern__image;

typedef enum quern__archived_state {
    QUERN__STATE_UNKNOWN,
    QUERN__STATE_ALIVE,
    QUERN__STATE_FREE,
    QUERN__STATE_RETIRED
} quern__archived_state;

/* Reads an archive for a world, in which nothing changes, but that built-in components may be registered.
 * Errors: as of quern_world_load. It is to be released in any case. */
quern_result quern__image_read(quern__image *image, quern_source source);
void quern__image_release(quern__image *image);

/* Parts of the reading: sections of some kinds, and what is checked at the end. */
quern_result quern__image_parse_type(quern__image *image, quern__byte_reader *payload);
quern_result quern__image_parse_resource(quern__image *image, quern__byte_reader *payload);
quern_result quern__image_parse_value(quern__image *image, quern__byte_reader *payload);
quern_result quern__image_parse_links(quern__image *image, quern__byte_reader *payload);
quern_result quern__image_parse_archetype(quern__image *image, quern__byte_reader *payload);
quern_result quern__image_parse_rows(quern__image *image, quern__byte_reader *payload);
quern_result quern__image_parse_free(quern__image *image, quern__byte_reader *payload);
quern_result quern__image_parse_retired(quern__image *image, quern__byte_reader *payload);
quern_result quern__image_parse_names(quern__image *image, quern__byte_reader *payload);
quern_result quern__image_check_whole(const quern__image *image);

/* BAD_ARCHIVE: a section says what no section says. */
quern_result quern__image_fail(const char *what);

quern_result quern__image_fail_memory(void);

static inline const quern__archived_type *
quern__image_type(const quern__image *image, const quern__archived_archetype *archived, uint32_t i)
{
    return image->types.items[image->type_numbers.items[archived->first_type + i]];
}

/* The life of a handle of the archive; 0: it is none of its world. */
static inline uint32_t quern__image_use_count(const quern__image *image, quern_entity entity)
{
    if (quern_entity_world_tag(entity) != image->head.first_handle_high >> 24) return 0;
    return quern__generation_use_count(image->head.first_handle_high, quern_entity_generation(entity));
}

static inline bool quern__image_is_alive(const quern__image *image, uint32_t slot)
{
    return slot < image->head.slot_count && image->states.items[slot] == QUERN__STATE_ALIVE;
}

#endif
