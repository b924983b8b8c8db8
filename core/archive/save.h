/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_ARCHIVE_SAVE_H
#define QUERN_CORE_ARCHIVE_SAVE_H

/* Functions shared by saving a world (save.c) and saving selected entities (select.c). The two differ in
 * how they write the rows. */

#include "core/archive/archive_format.h"
#include "core/names/name_internal.h"
#include "core/relations/relation_internal.h"
#include "core/world/world_internal.h"

#include <quern/archive.h>

#define QUERN__NO_TYPE UINT32_MAX /* no archive of the session has used the component */
#define QUERN__NEW_TYPE \
    (UINT32_MAX - 1) /* the present archive is the first that uses it; it has no number yet */

typedef struct quern__saving {
    quern_world *world;
    const quern_save_def *def;
    quern_allocator allocator; /* of memory that is needed until the archive is finished */
    quern__archive_writer writer;
    uint32_t *numbers; /* type number, by component index; or one of the values above */
    uint32_t number_count;
    bool is_session; /* several archives are written as messages, which number types together */
    quern__archive_position position; /* of a session: the finished messages */
    uint32_t type_count;              /* types with a number */
    uint32_t known_type_count;        /* those of finished archives */
    const quern__map *selected; /* slot + 1 -> slot in the archive; NULL: all slots are saved unchanged */
    uint32_t selected_count;    /* number of slots in the archive, if `selected` is set */
    quern__byte_writer lists;   /* elements of the lists in the rows of a section */
} quern__saving;

/* The components of one archetype in the archive. */
typedef struct quern__saved_components {
    uint32_t component_count;
    uint32_t values_bytes; /* bytes of one row: handle and values */
    uint32_t bit_column_count;
    bool has_lists;
    uint16_t component_indices[QUERN_MAX_ENTITY_COMPONENTS];
} quern__saved_components;

/* Checks the definition and allocates memory. Errors: INVALID_ARGUMENT, UNKNOWN_COMPONENT, OUT_OF_MEMORY, UNAVAILABLE;
 * then nothing is allocated. */
quern_result quern__saving_init(quern__saving *saving, quern_world *world, const quern_save_def *def);
void quern__saving_release(quern__saving *saving);

/* Starts an archive. Errors: INVALID_ARGUMENT (commands are waiting), OUT_OF_MEMORY. */
quern_result quern__saving_start(quern__saving *saving, quern_sink sink);

/* Completes the archive if `result` is OK, otherwise abandons it. Then its types are new to the next archive, too.
 * Returns `result` or the error of the sink (IO). */
quern_result quern__saving_finish(quern__saving *saving, quern_result result);

/* Whether the definition excludes the component from the archive. */
bool quern__saving_leaves_out(const quern__saving *saving, uint32_t component_index);

/* Adds a component to the list and marks its type as used. Errors: INVALID_ARGUMENT if has_rows and
 * values of the component own resources (hooks). */
quern_result quern__saving_add_component(quern__saving *saving, quern__saved_components *set,
                                         uint32_t component_index, bool has_rows);

/* Writes the WORLD section, then a TYPE section for each component that is new. */
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

/* Writes the collected elements of lists in LISTS sections, after the section of their rows or resource was ended. */
void quern__saving_write_lists(quern__saving *saving);

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

/* Entities outside of a list that is saved: their ids, and which entities of the list have them as targets. */

#define QUERN__OUTSIDE_NONE UINT32_MAX /* number of an entity without id */

/* A target outside of the list. */
typedef struct quern__outside_link {
    uint32_t relation; /* component index of the relation */
    uint32_t source;   /* slot of the source in the archive */
    uint32_t number;   /* index of the target in `ids` */
} quern__outside_link;

typedef struct quern__saved_outside {
    QUERN__ARRAY(uint64_t) ids;
    quern__map numbers;                      /* handle of an entity -> index in ids */
    QUERN__ARRAY(quern__outside_link) links; /* by source, then by relation */
    bool lacks_memory;                       /* whether an id or a link could not be added */
} quern__saved_outside;

void quern__saved_outside_release(quern__saved_outside *outside, const quern_allocator *allocator);

/* Returns the index of the entity's id, or QUERN__OUTSIDE_NONE if the program gives it none or memory is exhausted.
 * Preconditions: the entity is alive and not in the list; outside_id is set. */
uint32_t quern__outside_number(const quern__saving *saving, quern__saved_outside *outside,
                               quern_entity entity);

/* Adds the links from an entity of the list to its targets outside of the list, as far as these have an id, and marks
 * the relation's type as used. slot: slot of the entity in the world. */
void quern__outside_add_links(quern__saving *saving, quern__saved_outside *outside,
                              const quern__relation *relation, uint32_t slot);

/* Write the links as LINKS sections, and the ids as OUTSIDE sections. */
void quern__outside_write_links(quern__saving *saving, const quern__saved_outside *outside);
void quern__outside_write_ids(quern__saving *saving, const quern__saved_outside *outside);

/* A list of entities to save together, and saving it. */

struct quern_archive {
    quern_world *world;
    QUERN__ARRAY(quern_entity) entities;
    quern__map slots; /* slot + 1 -> index in `entities` */
};

/* Refuses a definition with schedules, whose state a list of entities does not have. def may be NULL. Errors:
 * INVALID_ARGUMENT. */
quern_result quern__archive_refuse_schedules(const quern_save_def *def);

/* Saves the list as one archive. Errors: as quern_archive_save, except those of the definition. Preconditions: the
 * world is locked, and `saving` is initialised for it. */
quern_result quern__archive_write(const quern_archive *archive, quern__saving *saving, quern_sink sink);

#endif
