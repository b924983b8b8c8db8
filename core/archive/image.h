/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_ARCHIVE_IMAGE_H
#define QUERN_CORE_ARCHIVE_IMAGE_H

/* An *image* is an archive that has been read and checked completely. It contains everything except the
 * values of components, which remain in the blocks.
 *
 * Each section is checked when it is parsed (image.c, image_types.c, image.c). Consistency between
 * sections is checked at the end (image_check_consistency). So code that uses an image needs no
 * further checks. Memory is allocated in proportion to bytes that exist in the archive, never for a
 * count alone. */

#include "core/archive/archive_format.h"
#include "core/base/bytes.h"
#include "core/base/containers.h"
#include "core/names/name_internal.h"
#include "core/relations/relation_internal.h"
#include "core/storage/conversion.h"
#include "core/storage/list_values.h"
#include "core/world/world_internal.h"

#include <quern/archive.h>

/* A component type of the archive and its counterpart in the world. */
typedef struct quern__archived_type {
    quern__type type;
    quern__archived_role role;
    uint32_t flags;
    uint32_t relation_number; /* role LEVEL: type number of the relation */
    uint32_t level;
    quern_target_policy policy;
    uint32_t component_index;  /* in the world; QUERN__NO_COMPONENT: values of the type are not loaded */
    quern__relation *relation; /* relation of the world that the type is loaded as; NULL: none */
    const quern_migration *migration;
    quern__conversion conversion;
    /* Role RELATION; NULL: the archive has no links of it, or they are not loaded. */
    struct quern__archived_links *links;
} quern__archived_type;

/* The links of one relation, by slots of the archive, or its edges if sources may have several targets. */
typedef struct quern__archived_links {
    quern__relation *relation; /* relation of the world */
    /* By slot; QUERN__SLOT_NONE: no target; from the slot count on: slot count + index in `outside` of the image. NULL:
     * the relation has edges. */
    uint32_t *targets;
    uint8_t *
        levels; /* by slot: level that the archetype of the row says; of edges: quern__archived_edge_mark */
    uint32_t link_count, source_count; /* number of sources in LINKS sections, and of rows with a target */
    uint32_t outside_count;            /* number of sources that have targets outside of the list */
    /* The edges: source << 32 | target as keys; ascending once the image is checked. */
    QUERN__ARRAY(quern__sort_item) edges, scratch;
    /* Edges to entities outside of the list: source << 32 | index in `outside` of the image. Loading replaces those that
     * it adds, from the first one on, by slots of the world. */
    QUERN__ARRAY(uint64_t) outside_edges;
    uint32_t outside_added_count;
} quern__archived_links;

/* What `levels` says of the source of edges. */
enum {
    QUERN__EDGES_HAVE_TAG = 1,    /* the row has the tag of the relation */
    QUERN__EDGES_LEAD_OUTSIDE = 2 /* the source has a target outside of the list */
};

typedef struct quern__archived_archetype {
    uint32_t first_type, type_count; /* range in type_numbers */
    uint32_t row_count;
    uint32_t parsed_row_count; /* rows of the ROWS sections parsed so far */
    uint64_t empty_since;
    uint32_t layout_index;
    uint32_t values_bytes;     /* bytes of one row: handle and values */
    uint32_t bit_column_count; /* number of bit columns in its ROWS sections */
    /* In the world, ascending; including extra components of the load. */
    uint16_t component_indices[QUERN_MAX_ENTITY_COMPONENTS + QUERN_MAX_EXTRA_COMPONENTS + 1];
    uint32_t component_count;
    quern__archetype *archetype; /* archetype of the world, set when rows are reserved */
} quern__archived_archetype;

/* A resource of the archive and its counterpart in the world. */
typedef struct quern__archived_resource {
    quern__type type;
    quern__resource *resource; /* resource of the world; NULL: the value is not loaded */
    quern__conversion conversion;
    char *value;          /* memory of type.size_bytes bytes; NULL unless `resource` is set */
    uint32_t value_bytes; /* bytes of the VALUE sections parsed so far */
    bool has_lists;       /* the lists in the value were read, and belong to it */
} quern__archived_resource;

typedef QUERN__ARRAY(quern__archived_type *) quern__archived_types;

typedef struct quern__image {
    const quern_load_def *def;
    quern_load_report *report;
    quern_world *world;
    quern_allocator allocator; /* of everything that quern__image_release releases */
    quern__archive_blocks blocks;
    quern__world_section head;
    bool has_end_section; /* whether the END section was parsed */
    bool keeps_handles;
    /* The messages of a session that were read; `types` has their types at first. A loaded message is added. NULL: an
     * archive is loaded that is no message. */
    quern__archive_position *session;
    uint32_t extra_count; /* number of extra components in the definition */
    quern__section_kind last_kind;
    quern__archived_types types;
    QUERN__ARRAY(quern__archived_resource *) resources;
    QUERN__ARRAY(quern__archived_archetype) archetypes;
    uint32_t archetype_count_with_types; /* number of archetypes parsed so far that have types */
    QUERN__ARRAY(uint32_t) type_numbers;
    QUERN__ARRAY(uint32_t) free_slots; /* in the order in which the world reuses them */
    /* By slot: use count of the current or next entity; undefined while the state is UNKNOWN. */
    QUERN__ARRAY(uint32_t) use_counts;
    QUERN__ARRAY(uint8_t) states; /* by slot: quern__archived_slot_state */
    uint32_t retired_count;
    quern__names names; /* by slot of the archive */
    /* Names of entities with a parent outside of the list, by slot of the archive, and by slot of the parent in the
     * world. */
    quern__names outside_names;
    /* Entities of the world with the ids of the archive; null if not alive. Empty if the definition has no callback. */
    QUERN__ARRAY(quern_entity) outside;
    /* The lists of the archive's rows, in the order in which LISTS sections have them; empty where they were loaded. */
    QUERN__ARRAY(quern_list) lists;
    uint32_t
        lists_row_count; /* rows of the last ROWS section, of which the lists were not read yet; 0: none */
    bool last_was_lists; /* the last section was LISTS, which last_kind leaves out */
    quern__byte_writer
        lists_bytes; /* payloads of the LISTS sections since the last section of another kind */
    bool reads_run;  /* whether the bytes of RUN sections are collected in `run` */
    quern__byte_writer run;
} quern__image;

typedef enum quern__archived_slot_state {
    QUERN__STATE_UNKNOWN,
    QUERN__STATE_ALIVE,
    QUERN__STATE_FREE,
    QUERN__STATE_RETIRED
} quern__archived_slot_state;

/* Reads and checks an archive. The world does not change, except that built-in components may be
 * registered. Errors: as quern_world_load. quern__image_release must be called in any case; it releases everything
 * except the types. */
quern_result quern__image_read(quern__image *image, quern_source source);
void quern__image_release(quern__image *image);

/* Releases the types except the first kept_count. */
void quern__archived_types_release(quern__archived_types *types, uint32_t kept_count,
                                   const quern_allocator *allocator);

/* quern__image_parse_* parses and checks one section. image_check_consistency compares all
 * sections with each other. */
quern_result quern__image_parse_type(quern__image *image, quern__byte_reader *payload);
quern_result quern__image_parse_resource(quern__image *image, quern__byte_reader *payload);
quern_result quern__image_parse_value(quern__image *image, quern__byte_reader *payload);

/* Checks that loading gives exactly the saved world, as restoring the state of schedules requires: the world never
 * had an entity, and has all types in the same order and with the same layouts. Errors: INVALID_ARGUMENT,
 * LAYOUT_MISMATCH. */
quern_result quern__image_check_exact(const quern__image *image);

/* Returns the number of lists in a value. */
static inline uint32_t quern__archived_list_count(const quern__archived_type *type)
{
    return type->type.lists != NULL ? type->type.lists->count : 0;
}

/* Fails with BAD_ARCHIVE. `what` says which rule of the format the archive violates. */
quern_result quern__image_fail(const char *what);

quern_result quern__image_fail_memory(void);

static inline const quern__archived_type *
quern__image_type(const quern__image *image, const quern__archived_archetype *archived, uint32_t i)
{
    return image->types.items[image->type_numbers.items[archived->first_type + i]];
}

/* Returns the use count of a handle in the archive (1 for the first entity in its slot), or 0 if the
 * handle is not from the saved world. */
static inline uint32_t quern__image_use_count(const quern__image *image, quern_entity entity)
{
    if (quern_entity_world_tag(entity) != image->head.first_handle_high >> 24) return 0;
    return quern__generation_use_count(image->head.first_handle_high, quern_entity_generation(entity));
}

/* Returns the entity of the world for a target outside of the list; null: there is none. target: slot count + index. */
static inline quern_entity quern__image_outside(const quern__image *image, uint32_t target)
{
    const uint32_t number = target - image->head.slot_count;
    return number < image->outside.count ? image->outside.items[number] : (quern_entity){0};
}

static inline bool quern__image_is_alive(const quern__image *image, uint32_t slot)
{
    return slot < image->head.slot_count && image->states.items[slot] == QUERN__STATE_ALIVE;
}

/* Loading the edges of relations with several targets per source. */

/* Loading entities that have targets outside of their list. The archive describes their rows as if they had no such
 * target; in the world they also have the component of the relation, and they and all entities below them have levels
 * that follow from the target's. So rows of one archived archetype may belong to several archetypes. */

/* Saving and loading a world with the state of its schedules: everything that the next frame depends on, apart
 * from the world's contents. To this room the state is a sequence of bytes in RUN sections. The caller writes
 * them, and restores them by functions that it passes. */

/* Saves a world. run: state of its schedules; empty if none is saved. Errors: as quern_world_save, except
 * NULL_ARGUMENT and WORLD_LOCKED. Precondition: the world is not locked. */
quern_result quern__world_save(quern_world *world, quern_sink sink, const quern_save_def *def,
                               const quern__byte_writer *run);

/* Restores the state of schedules. All functions get `argument` and the image, of which image->run holds the
 * bytes. They are called only if the archive has a state, and its types and their order are those of the world. */
typedef struct quern__run_restorer {
    void *argument;
    /* Checks the bytes and reserves memory, as the last step that may fail. Then nothing is reserved. */
    quern_result (*prepare)(void *argument, const quern__image *image);
    /* Restores the state, after everything else was loaded. Cannot fail. `remap` maps handles of the archive. */
    void (*restore)(void *argument, const quern__image *image, quern__remap_function *remap,
                    void *remap_argument);
} quern__run_restorer;

/* Loads an archive. restorer: NULL to load without the state of schedules. Errors: as quern_world_load, except
 * NULL_ARGUMENT and WORLD_LOCKED, and the errors of the restorer. Precondition: the world is not locked. */
quern_result quern__world_load(quern_world *world, quern_source source, const quern_load_def *def,
                               const quern__run_restorer *restorer, quern_load_report *report);

#endif
