/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "sched/schedule/access.h"

/* The events that a system emits and reads (access.h). */

static quern_result fail_duplicate(const quern_system_def *def, const quern__channel *channel,
                                   const char *what)
{
    return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                       "system '%s' declares that it %s event '%s' twice; once "
                       "is enough",
                       def->name, what, channel->type.name);
}

static quern_result add_emits(quern__event_use *use, const quern_world *world, const quern_system_def *def)
{
    uint32_t count = 0;
    quern_result result = quern__list_count(def->emits, QUERN_MAX_ACCESS, quern__is_end_of_handles,
                                            "emitted event", NULL, &count);
    if (result == QUERN_OK && !quern__array_reserve(&world->storage.allocator, &use->emits, count))
        result = quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory for %u events", count);
    for (uint32_t i = 0; i < count && result == QUERN_OK; i++) {
        quern__channel *channel;
        result = quern__events_check(world, def->emits[i], &channel);
        if (result != QUERN_OK) return quern__message_add_element(result, "emitted event", i);
        if (quern__event_use_emits(use, channel)) return fail_duplicate(def, channel, "emits");
        use->emits.items[use->emits.count++] = channel;
    }
    return result;
}

/* Precondition: use->readers has capacity for one more reader. */
static quern_result add_reader(quern__event_use *use, const quern_world *world, const quern_system_def *def,
                               quern_event event)
{
    quern__channel *channel;
    quern_result result = quern__events_check(world, event, &channel);
    if (result != QUERN_OK) return result;
    if (quern__event_use_reader(use, channel) != NULL) return fail_duplicate(def, channel, "reads");
    quern_event_reader *reader = quern__reader_create(channel, def->name);
    if (reader == NULL)
        return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory for a reader of event '%s'",
                           channel->type.name);
    use->readers.items[use->readers.count++] = reader;
    return QUERN_OK;
}

static quern_result add_readers(quern__event_use *use, const quern_world *world,
                                const quern_system_def *def)
{
    uint32_t count = 0;
    quern_result result = quern__list_count(def->reads_events, QUERN_MAX_ACCESS, quern__is_end_of_handles,
                                            "read event", NULL, &count);
    if (result == QUERN_OK && !quern__array_reserve(&world->storage.allocator, &use->readers, count + 1))
        result = quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory for %u events", count);
    for (uint32_t i = 0; i < count && result == QUERN_OK; i++) {
        result = add_reader(use, world, def, def->reads_events[i]);
        if (result != QUERN_OK) return quern__message_add_element(result, "read event", i);
    }
    if (result != QUERN_OK || def->items.bits == 0) return result;
    result = add_reader(use, world, def, def->items);
    if (result == QUERN_OK) use->items = use->readers.items[count];
    return result;
}

quern_result quern__event_use_init(quern__event_use *use, const quern_world *world,
                                   const quern_system_def *def, uint32_t term_count)
{
    *use = (quern__event_use){.items = NULL};
    const bool has_items = def->items.bits != 0;
    if (has_items && (term_count > 0 || (def->flags & QUERN_SYSTEM_EXCLUSIVE) != 0))
        return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                           "system '%s' has events as its items and %s: its views are batches of events",
                           def->name, term_count > 0 ? "terms" : "is exclusive");
    if (has_items && def->run == NULL)
        return quern__fail(QUERN_ERROR_NULL_ARGUMENT, "system '%s' has items, but run is NULL; set it",
                           def->name);
    const quern_result result = add_emits(use, world, def);
    return result == QUERN_OK ? add_readers(use, world, def) : result;
}

void quern__event_use_release(quern__event_use *use, const quern_allocator *allocator)
{
    for (uint32_t i = 0; i < use->readers.count; i++)
        quern__reader_destroy(use->readers.items[i]);
    quern__array_release(allocator, &use->readers);
    quern__array_release(allocator, &use->emits);
}

/* ---------------------------------------------------------------------------------------------- lists */

static void list_add(char *text, size_t text_bytes, const quern__channel *channel)
{
    quern__append(text, text_bytes, "%s'%s'", text[0] != '\0' ? ", " : "", channel->type.name);
}

void quern__event_use_list_emits(const quern__event_use *use, char *text, size_t text_bytes)
{
    text[0] = '\0';
    for (uint32_t i = 0; i < use->emits.count; i++)
        list_add(text, text_bytes, use->emits.items[i]);
    if (text[0] == '\0') quern__append(text, text_bytes, "none");
}

void quern__event_use_list_reads(const quern__event_use *use, char *text, size_t text_bytes)
{
    text[0] = '\0';
    for (uint32_t i = 0; i < use->readers.count; i++)
        list_add(text, text_bytes, use->readers.items[i]->channel);
    if (text[0] == '\0') quern__append(text, text_bytes, "none");
}
