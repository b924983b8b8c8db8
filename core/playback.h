/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_PLAYBACK_H
#define QUERN_CORE_PLAYBACK_H

/* Applying recorded commands at a sync point. In five steps, of which the first three may fail and change
 * nothing, and the fourth cannot fail:
 *
 *   gather   the streams of all recorders, sorted by key
 *   fold     all commands on one entity into one *edit*, in the order of their first commands
 *   settle   each edit: final archetype, plan, room for its row; and records for the new entities
 *   commit   handles for all creates first, in order; then the edits, in order
 *   reset    the recorders, destroying values that nobody wanted */

#include "core/command.h"

/* What the commands of this sync point make of one entity. */
typedef struct quern__edit {
    quern_entity entity;          /* of a create: null until its handle has been taken */
    quern__archetype *source;     /* NULL: created at this sync point */
    quern__archetype *target;     /* after settling */
    const quern__move_plan *plan; /* from source to target, where they differ */
    uint32_t first_change, last_change;
    bool destroyed;
} quern__edit;

/* A command that adds, sets or removes a component, in the list of its edit. */
typedef struct quern__change {
    quern__command *command;
    const quern__stream *stream;
    uint32_t next; /* or QUERN__CHANGE_NONE */
    bool restarts; /* the entity lacked the component just before: an old value must not show through */
} quern__change;

#define QUERN__CHANGE_NONE UINT32_MAX

typedef struct quern__playback {
    quern__storage *storage;
    /* scratch, kept from one sync point to the next */
    QUERN__ARRAY(quern__stream *) streams;
    QUERN__ARRAY(quern__edit) edits;
    QUERN__ARRAY(quern__change) changes;
    QUERN__ARRAY(uint32_t) created; /* edit of each create, in order */
    quern__map edit_of_slot;        /* entity index + 1 -> edit */
} quern__playback;

typedef struct quern__playback_stats {
    uint64_t command_count;
    uint64_t dropped_count; /* their entity did not live any more, or was refused */
    uint64_t created_count;
    uint64_t destroyed_count;
    uint64_t refused_count;      /* entities whose commands ask for more than an entity can have; dropped */
    quern_result refused_result; /* of the first of them, or QUERN_OK */
} quern__playback_stats;

void quern__playback_init(quern__playback *playback, quern__storage *storage);

void quern__playback_release(quern__playback *playback);

/* Applies everything recorded in `count` recorders, resets them, and adds to stats. On failure the world is as
 * before and the commands are dropped. Errors: OUT_OF_MEMORY, LIMIT. */
quern_result quern__playback_run(quern__playback *playback, quern_commands *recorders, uint32_t count,
                                 quern__playback_stats *stats);

#endif
