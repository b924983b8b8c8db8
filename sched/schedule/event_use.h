/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_SCHED_SCHEDULE_EVENT_USE_H
#define QUERN_SCHED_SCHEDULE_EVENT_USE_H

/* The events that a system emits and reads. Events create no conflicts between systems: an emitted event is readable
 * only from the next sync point on. */

#include "core/events/event_internal.h"

#include <quern/schedule.h>

typedef struct quern__event_use {
    QUERN__ARRAY(quern__channel *) emits; /* channels of the declared emits, in their order */
    /* Readers of reads_events in their order, then `items` if not NULL. */
    QUERN__ARRAY(quern_event_reader *) readers;
    quern_event_reader *items; /* reader of the event that the views show, or NULL */
    /* Range of batches of `items` that was counted as the system's views. */
    uint64_t prepared_begin, prepared_end;
} quern__event_use;

/* Checks the declared events and creates the readers. Errors: UNKNOWN_EVENT, INVALID_ARGUMENT, NULL_ARGUMENT,
 * OUT_OF_MEMORY; after an error, `use` must still be released. */
quern_result quern__event_use_init(quern__event_use *use, const quern_world *world,
                                   const quern_system_def *def, uint32_t term_count);

void quern__event_use_release(quern__event_use *use, const quern_allocator *allocator);

static inline bool quern__event_use_emits(const quern__event_use *use, const quern__channel *channel)
{
    for (uint32_t i = 0; i < use->emits.count; i++)
        if (use->emits.items[i] == channel) return true;
    return false;
}

/* Returns the system's reader of the event, or NULL if the system does not declare that it reads the event. */
static inline quern_event_reader *quern__event_use_reader(const quern__event_use *use,
                                                          const quern__channel *channel)
{
    for (uint32_t i = 0; i < use->readers.count; i++)
        if (use->readers.items[i]->channel == channel) return use->readers.items[i];
    return NULL;
}

/* Returns whether the waiting batches of `items` differ from those that were counted as views. */
static inline bool quern__event_use_has_new_items(const quern__event_use *use)
{
    return use->items != NULL && (use->prepared_begin != use->items->cursor ||
                                  use->prepared_end != quern__channel_end(use->items->channel));
}

/* Write the declared events into `text`, for messages: "'hit', 'spark'", or "none". */
void quern__event_use_list_emits(const quern__event_use *use, char *text, size_t text_bytes);
void quern__event_use_list_reads(const quern__event_use *use, char *text, size_t text_bytes);

#endif
