/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_PLAYBACK_FOLLOW_UP_H
#define QUERN_CORE_PLAYBACK_FOLLOW_UP_H

/* Follow-up commands: commands that result from those of callbacks (relate_stage.h). They are appended to the
 * gathered streams, so that later stages apply them like any other command. A provisional handle is valid only
 * in its own stream. Commands on entities that a stream creates are therefore chained to that stream by a jump;
 * commands on living entities form one additional stream after all others.
 *
 * A private recorder records them, with operations that may use components managed by the world. */

#include "core/playback/gather.h"

/* A stream with appended follow-up commands, and its number of batches without them. */
typedef struct quern__extended_stream {
    quern__stream *stream;
    uint32_t batch_count;
} quern__extended_stream;

typedef struct quern__follow_ups {
    quern_commands recorder;
    QUERN__ARRAY(quern__extended_stream) extended;
    uint8_t recorded_traits; /* traits of the gathered streams without follow-up commands */
    uint64_t item_count;     /* item count of the gathered streams without follow-up commands */
    bool has_extra_stream;
} quern__follow_ups;

void quern__follow_ups_init(quern__follow_ups *follow_ups, quern__storage *storage);
void quern__follow_ups_release(quern__follow_ups *follow_ups);

/* Removes the follow-up commands of the previous pass through the stages, and notes the traits and item count
 * of the gathered streams. */
void quern__follow_ups_begin(quern__follow_ups *follow_ups, const quern__gathered *gathered);

/* Starts a list of follow-up commands. quern__follow_ups_append_to_stream or quern__follow_ups_add_stream ends
 * it. */
void quern__follow_ups_start(quern__follow_ups *follow_ups);

/* Creates the operation on one component. Errors: OUT_OF_MEMORY. */
quern_result quern__follow_ups_create_operation(quern__follow_ups *follow_ups, uint32_t component_index,
                                                quern__operation_kind kind,
                                                const quern__operation **out_operation);

/* Finds or creates the operation on one component. Errors: OUT_OF_MEMORY. */
static inline quern_result quern__follow_ups_find_operation(quern__follow_ups *follow_ups,
                                                            uint32_t component_index,
                                                            quern__operation_kind kind,
                                                            const quern__operation **out_operation)
{
    const quern__operations *operations = &follow_ups->recorder.operations;
    const uint32_t index = component_index * QUERN__SINGLE_KIND_COUNT + (uint32_t)kind;
    *out_operation = index < operations->singles.count ? operations->singles.items[index] : NULL;
    if (QUERN__LIKELY(*out_operation != NULL)) return QUERN_OK;
    return quern__follow_ups_create_operation(follow_ups, component_index, kind, out_operation);
}

/* Adds a command to the list. The caller writes its value after the head of the item. Errors: OUT_OF_MEMORY. */
quern_result quern__follow_ups_add(quern__follow_ups *follow_ups, const quern__operation *operation,
                                   quern__item head, quern__item **out_item);

/* Ends the list and appends it to the stream. last_batch: last batch of the stream, which must have space for a
 * jump after it (leave_tail in record.c). Errors: OUT_OF_MEMORY. */
quern_result quern__follow_ups_append_to_stream(quern__follow_ups *follow_ups, quern__gathered *gathered,
                                                quern__stream *stream, quern__command_batch *last_batch);

/* Ends the list and adds it as one more stream after all others. Errors: OUT_OF_MEMORY. */
quern_result quern__follow_ups_add_stream(quern__follow_ups *follow_ups, quern__gathered *gathered);

/* Removes the follow-up commands from the gathered streams, which are then as they were recorded. */
void quern__follow_ups_remove(quern__follow_ups *follow_ups, quern__gathered *gathered);

#endif
