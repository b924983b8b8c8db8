/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_PLAYBACK_RELATING_H
#define QUERN_CORE_PLAYBACK_RELATING_H

/* What relate_stage.h keeps while it walks commands: a note for each entity that they have touched, and what rows say of
 * links that have changed. The calls change links and names, and nothing else, in one transaction of
 * core/relations/link_log.h. All may run out of memory, which is noted in is_out_of_memory. */

#include "core/playback/relate_stage.h"
#include "core/relations/link_log.h"

#define QUERN__NOTE_NONE UINT32_MAX

/* A target that no slot is: what the row of a new entity says will not hold. */
#define QUERN__WRONG_TARGET (QUERN__SLOT_NONE - 1)

/* What is known of an entity that commands have touched. */
typedef struct quern__note {
    uint32_t slot;
    uint32_t stream; /* that creates it; QUERN__NOTE_NONE: it lives */
    uint32_t number; /* of the create */
    uint32_t next;   /* of the same stream */
    uint32_t first_difference;
    bool has_ended;
    bool is_destroyed; /* by a command of its own: no other has to follow */
    bool is_refused;
} quern__note;

/* An entity may have another target or level than its row says without further commands. */
typedef struct quern__difference {
    uint32_t relation;
    uint32_t row_target, row_level;
    uint32_t next; /* of the same entity */
} quern__difference;

/* An item that merging is to skip, and what it began with. */
typedef struct quern__dropped_item {
    quern__item *item;
    quern__item head;
} quern__dropped_item;

/* What is known of a gathered stream. */
typedef struct quern__walked_stream {
    quern__run *last_run;
    uint32_t first_created;         /* among the creates of all */
    uint32_t first_note, last_note; /* of what it creates */
} quern__walked_stream;

struct quern__relating {
    quern__storage *storage;
    quern__followers followers;
    /* of the run through the stages that is on its way */
    QUERN__ARRAY(uint32_t) note_of_slot; /* + 1; 0: none */
    QUERN__ARRAY(quern__note) notes;
    QUERN__ARRAY(quern__difference) differences;
    uint32_t noted_count; /* entries of the link log that are in notes */
    QUERN__ARRAY(quern__dropped_item) dropped;
    QUERN__ARRAY(quern_entity) created; /* handles, in the order of creates */
    QUERN__ARRAY(quern__walked_stream) streams;
    QUERN__ARRAY(uint32_t) list; /* slots that end */
    quern__drops drops;
    /* of the sync point */
    QUERN__ARRAY(uint32_t) refused; /* slots */
    quern_result refused_result;
    bool is_out_of_memory;
};

/* Room for one more item; false, noted, when there is no memory. */
#define quern__relating_reserve_one(relating, array)                                       \
    (quern__array_reserve(&(relating)->storage->allocator, (array), (array)->count + 1) || \
     !((relating)->is_out_of_memory = true))

static inline quern__note *quern__relating_find(const quern__relating *relating, uint32_t slot)
{
    const uint32_t number = relating->note_of_slot.items[slot];
    return number != 0 ? &relating->notes.items[number - 1] : NULL;
}

static inline bool quern__relating_has_ended(const quern__relating *relating, uint32_t slot)
{
    const quern__note *known = quern__relating_find(relating, slot);
    return known != NULL && known->has_ended;
}

/* The note of an entity, made where there is none: of one that lives, until it is said to be created. Notes
 * may move. NULL: no memory. */
quern__note *quern__relating_note(quern__relating *relating, uint32_t slot);

/* The entity of the note is the number-th that this stream creates. */
void quern__relating_note_created(quern__relating *relating, quern__note *entity, uint32_t stream,
                                  uint32_t number);

/* Notes what the row of an entity says of a relation, where nothing is noted yet. False: no memory. */
bool quern__relating_note_row(quern__relating *relating, quern__note *entity, uint32_t relation,
                              uint32_t row_target, uint32_t row_level);

/* Gives the source the target instead of the one that it has (QUERN__SLOT_NONE: none), and the entities below it their
 * levels. All of them are noted. False: no memory. */
bool quern__relating_set_target(quern__relating *relating, quern__relation *relation, uint32_t source,
                                uint32_t target);

/* The entity, which goes on, gets a name, or loses it where that is "". *out_is_taken: a sibling has it, and
 * nothing has changed. False: no memory. */
bool quern__relating_set_name(quern__relating *relating, uint32_t slot, const char *name,
                              bool *out_is_taken);

/* Ends the entity, which is noted, and all that end with it; what goes on has no links to these any more,
 * those among them stay. False, with nothing changed: a relation refuses that. */
bool quern__relating_end(quern__relating *relating, uint32_t slot);

/* Entities that have ended lose their links, when all is done. */
void quern__relating_clear_ended(const quern__relating *relating);

/* Puts what follows for rows behind the streams. Errors: OUT_OF_MEMORY. */
quern_result quern__relating_follow(quern__relating *relating, quern__gathered *gathered);

#endif
