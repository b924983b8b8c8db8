/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_PLAYBACK_RELATING_H
#define QUERN_CORE_PLAYBACK_RELATING_H

/* State of the relate stage (relate_stage.h): a note for each entity that commands have changed, with the
 * targets and levels that its row still has. The functions change only links and names, in one transaction of
 * core/relations/link_log.h. Each may run out of memory and then sets is_out_of_memory.
 *
 * An entity *ends* at this sync point if a command or a cascade destroys it. */

#include "core/playback/relate_stage.h"
#include "core/relations/link_log.h"

#define QUERN__NOTE_NONE UINT32_MAX

/* A value of quern__difference.row_target that is no slot and no valid target: the create of the entity gives
 * its row a target that was refused, so a follow-up command must replace or remove it. */
#define QUERN__WRONG_TARGET (QUERN__SLOT_NONE - 1)

/* A note: state of an entity that commands have changed. */
typedef struct quern__note {
    uint32_t slot;
    /* index of the stream that creates the entity; QUERN__NOTE_NONE: the entity already exists */
    uint32_t stream;
    uint32_t number; /* number of the create in the stream */
    uint32_t next;   /* next note of the same stream */
    uint32_t first_difference;
    bool has_ended;
    bool is_destroyed; /* destroyed by its own command, so no follow-up destroy is needed */
    bool is_refused;
    bool
        is_switched; /* a command disabled or enabled a tree with the entity, so follow-up commands set its tags */
    uint8_t tags; /* tags of disabled entities after the commands played so far: see play_switch.c */
} quern__note;

/* The target and level of one relation in an entity's row, which follow-up commands correct if they differ from
 * the link. */
typedef struct quern__difference {
    uint32_t relation;
    /* With several targets per source, row_target is QUERN__SLOT_NONE if the row has no tag, otherwise any slot. */
    uint32_t row_target, row_level;
    uint32_t next; /* next difference of the same entity */
} quern__difference;

/* An item that merging skips, and its original head; or the handle of a row of a command for a view. */
typedef struct quern__dropped_item {
    union {
        quern__item *item;
        quern_entity *handle;
    };
    quern__item head;
    bool is_of_view;
} quern__dropped_item;

/* State of the stage for one gathered stream. */
typedef struct quern__walked_stream {
    quern__command_batch *last_batch;
    uint32_t first_created;         /* number of its first create among the creates of all streams */
    uint32_t first_note, last_note; /* notes of the entities it creates */
} quern__walked_stream;

struct quern__relating {
    quern__storage *storage;
    quern__follow_ups follow_ups;
    /* State of the current pass through the stages: */
    QUERN__ARRAY(uint32_t) note_of_slot; /* index of the slot's note + 1; 0: no note */
    QUERN__ARRAY(quern__note) notes;
    QUERN__ARRAY(quern__difference) differences;
    uint32_t noted_count; /* number of entries of the link log that have been noted */
    QUERN__ARRAY(quern__dropped_item) dropped;
    QUERN__ARRAY(quern_entity) created; /* predicted handles, in the order of creates */
    QUERN__ARRAY(quern__walked_stream) streams;
    QUERN__ARRAY(uint32_t)
    ending_slots; /* slots of the entities that end, while quern__relating_end runs */
    quern__drops drops;
    /* State of the sync point: */
    QUERN__ARRAY(uint32_t) refused; /* slots of refused entities */
    quern_result refused_result;
    bool is_out_of_memory;
};

/* Reserves space for one more item. Returns false and sets is_out_of_memory if out of memory. */
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

/* Returns the note of an entity, and adds one for an existing entity if there is none. Invalidates pointers to
 * notes. Returns NULL if out of memory. */
quern__note *quern__relating_note(quern__relating *relating, uint32_t slot);

/* Records that the noted entity is created by the stream, as its number-th create. */
void quern__relating_note_created(quern__relating *relating, quern__note *entity, uint32_t stream,
                                  uint32_t number);

/* Records the target and level of a relation in the entity's row, unless already recorded. Returns false if out
 * of memory. */
bool quern__relating_note_row(quern__relating *relating, quern__note *entity, uint32_t relation,
                              uint32_t row_target, uint32_t row_level);

/* Replaces the source's target (QUERN__SLOT_NONE: removes it) and updates the levels of the entities below.
 * Notes all of them. Returns false if out of memory. */
bool quern__relating_set_target(quern__relating *relating, quern__relation *relation, uint32_t source,
                                uint32_t target);

/* Adds or removes an edge of a relation with several targets per source, and notes the source. Precondition: the edge
 * does not exist, or exists. Returns false if out of memory. */
bool quern__relating_add_edge(quern__relating *relating, quern__relation *relation, uint32_t source,
                              uint32_t target);
bool quern__relating_remove_edge(quern__relating *relating, quern__relation *relation, uint32_t source,
                                 uint32_t target);

/* Names an entity that does not end; "" removes the name. Sets *out_is_taken and changes nothing if a sibling
 * has the name. Returns false if out of memory. */
bool quern__relating_set_name(quern__relating *relating, uint32_t slot, const char *name,
                              bool *out_is_taken);

/* Ends a noted entity and all entities that end with it by cascade. Removes links between them and entities
 * that do not end; links among them stay. Returns false and changes nothing if a relation refuses the end. */
bool quern__relating_end(quern__relating *relating, uint32_t slot);

/* Clears the links that entities which have ended still have. Called only once the sync point has
 * succeeded. */
void quern__relating_clear_ended(const quern__relating *relating);

/* Adds the follow-up commands to the streams. Errors: OUT_OF_MEMORY. */
quern_result quern__relating_add_follow_ups(quern__relating *relating, quern__gathered *gathered);

#endif
