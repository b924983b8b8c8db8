/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_PLAYBACK_PLAY_H
#define QUERN_CORE_PLAYBACK_PLAY_H

/* What commands do to links and names, in order and before merging (relate_stage.h): the column `play` of
 * QUERN__COMMAND_KINDS. */

#include "core/playback/relating.h"

/* A walk over a stream. */
typedef struct quern__play_walk {
    quern__relating *relating;
    const quern__gathered_stream *gathered;
    uint32_t stream;             /* which it is */
    const quern_entity *created; /* the handles of what it creates */
    quern__run *run;
    uint64_t number; /* of the run's first item */
    bool relates;    /* some command of the sync point does; else only the links that are there matter */
} quern__play_walk;

/* Plays the commands of the run that the walk is at. Out of memory is noted in `relating`. */
typedef void quern__play_function(const quern__play_walk *walk);

quern__play_function quern__play_destroys, quern__play_creates, quern__play_relates, quern__play_unrelates,
    quern__play_names;

/* Calls play_item for the items of the run until memory is missing. */
static inline void quern__play_each(const quern__play_walk *walk,
                                    void (*play_item)(const quern__play_walk *walk, quern__item *item,
                                                      uint32_t i))
{
    quern__item *item = quern__run_item(walk->run, 0);
    for (uint32_t i = 0; i < walk->run->item_count && !walk->relating->is_out_of_memory; i++) {
        play_item(walk, item, i);
        item = quern__item_next(item, walk->run->operation);
    }
}

/* Counts the i-th item of the run as `count` dropped commands. */
void quern__play_drop(const quern__play_walk *walk, const quern__item *item, uint32_t i,
                      quern_drop_reason reason, uint64_t count);

/* The same for a command that merging would do otherwise. */
void quern__play_drop_and_skip(const quern__play_walk *walk, quern__item *item, uint32_t i,
                               quern_drop_reason reason);

/* The slot of the entity that a handle names here; QUERN__NOTE_NONE: the entity does not live. */
uint32_t quern__play_find_slot(const quern__play_walk *walk, quern_entity entity);

/* The note of an item's entity in this slot, made where there is none. NULL: no memory. */
quern__note *quern__play_note(const quern__play_walk *walk, const quern__item *item, uint32_t slot);

#endif
