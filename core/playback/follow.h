/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_PLAYBACK_FOLLOW_H
#define QUERN_CORE_PLAYBACK_FOLLOW_H

/* Commands that follow from those of users (relate_stage.h), put behind the streams that were gathered, so that
 * the stages to come do them like any others. What is created now is known by its provisional handle in its
 * own stream alone: commands on it are written behind that stream, which is made longer by a jump; those on
 * entities that live are one more stream after all others.
 *
 * They are recorded by a recorder that nobody else has, with operations to which components that the world
 * keeps are like all others. */

#include "core/playback/gather.h"

/* A stream that has been made longer, and how many runs it has without that. */
typedef struct quern__longer_stream {
    quern__stream *stream;
    uint32_t run_count;
} quern__longer_stream;

typedef struct quern__followers {
    quern_commands recorder;
    QUERN__ARRAY(quern__longer_stream) longer;
    uint8_t gathered_traits; /* before, */
    uint64_t item_count;     /* as this is */
    bool has_own_stream;
} quern__followers;

void quern__followers_init(quern__followers *followers, quern__storage *storage);
void quern__followers_release(quern__followers *followers);

/* Forgets what followed at another sync point. */
void quern__followers_begin(quern__followers *followers, const quern__gathered *gathered);

/* What follows from now on is one part: behind a stream, or the stream behind all. */
void quern__followers_open(quern__followers *followers);

/* An operation on one component. Errors: OUT_OF_MEMORY. */
quern_result quern__followers_operation(quern__followers *followers, uint32_t component_index,
                                        quern__operation_kind kind, const quern__operation **out_operation);

/* One more command; what is given with it is for the caller to write behind the item. Errors:
 * OUT_OF_MEMORY. */
quern_result quern__followers_add(quern__followers *followers, const quern__operation *operation,
                                  quern__item head, quern__item **out_item);

/* The end of a part: it goes on the stream whose last run this is, and which has a tail (record.c). Errors:
 * OUT_OF_MEMORY. */
quern_result quern__followers_lengthen(quern__followers *followers, quern__gathered *gathered,
                                       quern__stream *stream, quern__run *last_run);

/* The end of a part: it is the stream behind all others. Errors: OUT_OF_MEMORY. */
quern_result quern__followers_close(quern__followers *followers, quern__gathered *gathered);

/* All streams are as users have recorded them. */
void quern__followers_cut(quern__followers *followers, quern__gathered *gathered);

#endif
