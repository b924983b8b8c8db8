/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_PLAYBACK_DESTROY_AND_CREATE_H
#define QUERN_CORE_PLAYBACK_DESTROY_AND_CREATE_H

/* Fast path of a sync point, tried right after gathering. It applies if commands only destroy existing
 * entities, in the order of their rows and without destroy hooks, create entities from types without hooks,
 * and spawn compact instances of prefabs (spawned.h). Each entity then has exactly one command, so merging is
 * not needed. Systems destroy entities in the order of rows, and this order rules out that an entity is
 * destroyed twice. Commands in another order go through all stages: sorting them was measured to be slower.
 * The resulting rows, handles and values are those of all stages (resolve.h). */

#include "core/playback/resolve.h"
#include "core/playback/sequence.h"

/* A create span: creates of one stream with the same operation, with only destroys between them. Spawned
 * instances (spawned.h) end a span, since their members have handles in between. */
typedef struct quern__create_span {
    quern__command_batch *batch; /* first batch */
    uint32_t first_item;         /* index of the first item in that batch */
    uint32_t count;              /* may extend over several batches */
    const quern__operation *operation;
    uint32_t sequence; /* index in `sequences` of the sequence with only this operation, on a new entity */
    uint32_t first_created; /* index of the first create, among the creates of all streams */
    uint32_t stream_first;  /* index of the stream's first create, among the creates of all streams */
    uint32_t rank;          /* rank of the first create, among all creates in the same archetype */
} quern__create_span;

typedef struct quern__destroy_and_create {
    quern__sequences sequences;
    QUERN__ARRAY(quern__create_span) spans; /* in the order of streams */
} quern__destroy_and_create;

void quern__destroy_and_create_release(quern__destroy_and_create *lists, const quern_allocator *allocator);

/* Checks whether the fast path applies to the commands, which must have QUERN__TRAIT_DESTROY_OR_CREATE.
 * `resolved` must have been cleared. If the path applies, fills in its deltas and gaps and reserves memory;
 * otherwise clears it again. On failure, nothing stays reserved except empty archetypes and new entity records.
 * Errors: OUT_OF_MEMORY, LIMIT. */
quern_result quern__destroy_and_create_prepare(quern__destroy_and_create *lists, quern__resolved *resolved,
                                               const quern__gathered *gathered, quern__storage *storage,
                                               bool *out_is_applicable);

/* Applies all commands. Precondition: quern__destroy_and_create_prepare set *out_is_applicable. executor NULL:
 * runs on the calling thread. */
void quern__destroy_and_create_apply(const quern__destroy_and_create *lists, quern__resolved *resolved,
                                     const quern__gathered *gathered, quern__storage *storage,
                                     const quern__executor *executor);

#endif
