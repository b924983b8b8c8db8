/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_ARCHIVE_SAVE_OUTSIDE_H
#define QUERN_CORE_ARCHIVE_SAVE_OUTSIDE_H

/* Entities outside of a list that is saved: their ids, and which entities of the list have them as targets. */

#include "core/archive/save.h"

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

#endif
