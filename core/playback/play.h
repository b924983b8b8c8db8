/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_PLAYBACK_PLAY_H
#define QUERN_CORE_PLAYBACK_PLAY_H

/* Playing commands: applying their changes of links and names, in order and before merging (relate_stage.h).
 * The column `play` of QUERN__COMMAND_KINDS lists the functions. */

#include "core/playback/relating.h"

/* State of iterating a stream. */
typedef struct quern__play_walk {
    quern__relating *relating;
    const quern__gathered_stream *gathered;
    uint32_t stream;             /* index of the stream */
    const quern_entity *created; /* handles of the entities that the stream creates */
    quern__command_batch *batch;
    uint64_t number; /* number of the batch's first item in the stream */
    bool relates;    /* some command of the sync point relates; otherwise only existing links matter */
    bool switches;   /* some command of the sync point disables or enables a tree */
} quern__play_walk;

/* Plays the commands of walk->batch. Sets walk->relating->is_out_of_memory if memory runs out. */
typedef void quern__play_function(const quern__play_walk *walk);

quern__play_function quern__play_destroys, quern__play_creates, quern__play_relates, quern__play_unrelates,
    quern__play_adds_edges, quern__play_unrelates_from, quern__play_names, quern__play_switches;

/* Notes commands of walk->batch that add or remove the tags of disabled entities. Called if some command of the sync
 * point disables or enables a tree. */
void quern__play_tags(const quern__play_walk *walk);

typedef void quern__play_item_function(const quern__play_walk *walk, quern__item *item, uint32_t i);

/* Calls play_item for each row of a command for a view, with an item that lasts for the call. */
void quern__play_view(const quern__play_walk *walk, quern__play_item_function *play_item);

/* Calls play_item for each item of the batch; stops if out of memory. */
static inline void quern__play_each(const quern__play_walk *walk, quern__play_item_function *play_item)
{
    if (QUERN__UNLIKELY(walk->batch->is_view)) {
        quern__play_view(walk, play_item);
        return;
    }
    quern__item *item = quern__batch_item(walk->batch, 0);
    for (uint32_t i = 0; i < walk->batch->item_count && !walk->relating->is_out_of_memory; i++) {
        play_item(walk, item, i);
        item = quern__item_next(item, walk->batch->operation);
    }
}

/* Counts the i-th item of the batch as `count` dropped commands. */
void quern__play_drop(const quern__play_walk *walk, const quern__item *item, uint32_t i,
                      quern_drop_reason reason, uint64_t count);

/* Drops the i-th item and makes merging skip it. For commands that merging would otherwise apply. */
void quern__play_drop_and_skip(const quern__play_walk *walk, quern__item *item, uint32_t i,
                               quern_drop_reason reason);

/* Returns the slot of the entity that the handle refers to, or QUERN__NOTE_NONE if the entity is dead. */
uint32_t quern__play_find_slot(const quern__play_walk *walk, quern_entity entity);

/* Returns the note of the entity that the i-th item, of a kind that only this stage plays, is on. Returns NULL if the
 * command is dropped, or if out of memory. */
quern__note *quern__play_find_note(const quern__play_walk *it, const quern__item *item, uint32_t i);

/* Returns the note of the item's entity, which has this slot, and adds one if there is none. Returns NULL if
 * out of memory. */
quern__note *quern__play_note(const quern__play_walk *walk, const quern__item *item, uint32_t slot);

#endif
