/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Saves and restores entity slots. A saved slot contains the generation, and either that the slot is
 * alive or the next free slot. The rows of alive entities are not saved here: restore.c finds them in
 * the chunks. */

#include "core/history/history_internal.h"

typedef struct saved_slot {
    uint32_t handle_high;
    uint32_t next; /* next free slot, as in the record of a free slot, or ALIVE */
} saved_slot;

/* Value of `next` for an alive slot. No slot has this number. */
#define ALIVE (QUERN__SLOT_NONE - 1)
_Static_assert(QUERN_MAX_ENTITIES < ALIVE, "no slot has this number");

static uint32_t group_count(uint32_t slot_count)
{
    return (uint32_t)(((uint64_t)slot_count + QUERN__SLOT_GROUP - 1) / QUERN__SLOT_GROUP);
}

static bool is_touched(const quern__entities *entities, uint32_t group)
{
    return (entities->modified.items[group / 64] >> group % 64 & 1) != 0;
}

/* Returns how many slots of the group have ever been used. */
static uint32_t slots_in(uint32_t slot_count, uint32_t group)
{
    const uint32_t left = slot_count - group * QUERN__SLOT_GROUP;
    return left < QUERN__SLOT_GROUP ? left : (uint32_t)QUERN__SLOT_GROUP;
}

/* ------------------------------------------------------------------------------------------ saving */

static void copy_group(const quern__entities *entities, uint32_t group, saved_slot *slots)
{
    const uint32_t count = slots_in(entities->slot_count, group);
    const quern__record *records = quern__entities_record(entities, group * QUERN__SLOT_GROUP);
    for (uint32_t i = 0; i < count; i++)
        slots[i] = (saved_slot){records[i].handle_high,
                                records[i].location != 0 ? ALIVE : records[i].archetype_number};
}

/* Whether the page equals the slots of the group in the world. For builds with checks. */
static inline bool page_equals_group(const quern__history *history, uint32_t group, quern__page page)
{
    const quern__entities *entities = &history->world->storage.entities;
    saved_slot now[QUERN__SLOT_GROUP];
    copy_group(entities, group, now);
    return memcmp(now, quern__page_memory(&history->store, page),
                  slots_in(entities->slot_count, group) * sizeof *now) == 0;
}

static quern_result build_group(quern__history *history, uint32_t group, quern__page *out_page)
{
    const quern__entities *entities = &history->world->storage.entities;
    const quern__saved_slots *base = &history->base.slots;
    const uint32_t page = group >> (QUERN__PAGE_RECORDS_LOG2 - QUERN__SLOT_GROUP_LOG2);
    if (quern__entities_is_absent(entities, page)) return QUERN_OK;
    if (base->groups != 0 && group < base->group_count && !is_touched(entities, group)) {
        assert(page_equals_group(history, group, quern__pages_in(history, base->groups)[group]));
        *out_page = quern__page_acquire(&history->store, quern__pages_in(history, base->groups)[group]);
        return QUERN_OK;
    }
    *out_page = quern__page_allocate(&history->store, QUERN__SLOT_GROUP * sizeof(saved_slot));
    if (*out_page == 0) return quern__history_fail_memory("slots of entities");
    copy_group(entities, group, (saved_slot *)(void *)quern__page_memory(&history->store, *out_page));
    return QUERN_OK;
}

quern_result quern__build_slots(quern__history *history, quern__snapshot *snapshot)
{
    const quern__entities *entities = &history->world->storage.entities;
    quern__saved_slots *slots = &snapshot->slots;
    *slots = (quern__saved_slots){.slot_count = entities->slot_count,
                                  .first_free = entities->first_free,
                                  .free_count = entities->free_count,
                                  .absent_count = entities->absent_count,
                                  .retired_count = entities->retired_count,
                                  .page_count = entities->pages.count,
                                  .group_count = group_count(entities->slot_count)};
    slots->absent_highs = quern__page_allocate(&history->store, slots->page_count * sizeof(uint32_t));
    slots->groups = quern__page_allocate(&history->store, slots->group_count * sizeof(quern__page));
    if (slots->groups != 0)
        memset(quern__pages_in(history, slots->groups), 0, slots->group_count * sizeof(quern__page));
    if (slots->absent_highs == 0 || slots->groups == 0)
        return quern__history_fail_memory("a list of slots");
    if (slots->page_count > 0)
        memcpy(quern__page_memory(&history->store, slots->absent_highs), entities->absent_highs.items,
               slots->page_count * sizeof(uint32_t));
    quern_result result = QUERN_OK;
    for (uint32_t i = 0; i < slots->group_count && result == QUERN_OK; i++) {
        quern__page page = 0;
        result = build_group(history, i, &page);
        quern__pages_in(history, slots->groups)[i] = page;
    }
    return result;
}

void quern__release_saved_slots(quern__history *history, const quern__snapshot *snapshot)
{
    const quern__page *groups = quern__pages_in(history, snapshot->slots.groups);
    for (uint32_t i = 0; i < snapshot->slots.group_count; i++)
        quern__page_release(&history->store, groups[i]);
}

quern_entity quern__saved_entity(const quern__history *history, const quern__snapshot *snapshot,
                                 uint32_t slot)
{
    const quern__page group = quern__pages_in(history, snapshot->slots.groups)[slot / QUERN__SLOT_GROUP];
    const saved_slot *slots = (const saved_slot *)(const void *)quern__page_memory(&history->store, group);
    return (quern_entity){(uint64_t)slots[slot % QUERN__SLOT_GROUP].handle_high << 32 | slot};
}

bool quern__saved_is_alive(const quern__history *history, const quern__snapshot *snapshot,
                           quern_entity entity)
{
    const uint32_t slot = quern_entity_index(entity);
    if (slot >= snapshot->slots.slot_count) return false;
    const quern__page group = quern__pages_in(history, snapshot->slots.groups)[slot / QUERN__SLOT_GROUP];
    if (group == 0) return false;
    const saved_slot *slots = (const saved_slot *)(const void *)quern__page_memory(&history->store, group);
    const saved_slot *saved = &slots[slot % QUERN__SLOT_GROUP];
    return saved->next == ALIVE && saved->handle_high == entity.bits >> 32;
}

/* ------------------------------------------------------------------------------------------ restoring */

quern_result quern__prepare_slots(quern__history *history, const quern__snapshot *snapshot)
{
    quern__storage *storage = &history->world->storage;
    const uint32_t *absent_highs =
        (void *)quern__page_memory(&history->store, snapshot->slots.absent_highs);
    if (quern__entities_prepare_pages(&storage->entities, &storage->allocator, snapshot->slots.page_count,
                                      absent_highs))
        return QUERN_OK;
    return quern__history_fail_memory("the records of entities");
}

/* Restores the records of a group. An alive entity keeps the location in its record; restoring rows
 * changes it if the row is different. */
static void restore_group(quern__entities *entities, uint32_t group, uint32_t slot_count,
                          const saved_slot *slots)
{
    quern__record *records = quern__entities_record(entities, group * QUERN__SLOT_GROUP);
    const uint32_t count = slots_in(slot_count, group);
    for (uint32_t i = 0; i < count; i++)
        if (slots[i].next == ALIVE)
            records[i].handle_high = slots[i].handle_high;
        else
            records[i] =
                (quern__record){.handle_high = slots[i].handle_high, .archetype_number = slots[i].next};
}

void quern__restore_slots(quern__history *history, const quern__snapshot *snapshot)
{
    quern__storage *storage = &history->world->storage;
    quern__entities *entities = &storage->entities;
    const quern__saved_slots *slots = &snapshot->slots, *base = &history->base.slots;
    const uint32_t *absent_highs = (void *)quern__page_memory(&history->store, slots->absent_highs);
    const quern__page *groups = quern__pages_in(history, slots->groups);
    const quern__page *base_groups = quern__pages_in(history, base->groups);
    for (uint32_t i = 0; i < slots->group_count; i++) {
        if (groups[i] == 0) continue;
        if (i < base->group_count && base_groups[i] == groups[i] && !is_touched(entities, i)) continue;
        restore_group(entities, i, slots->slot_count,
                      (const saved_slot *)(void *)quern__page_memory(&history->store, groups[i]));
    }
    quern__entities_restore_pages(entities, &storage->allocator, slots->page_count, absent_highs);
    entities->slot_count = slots->slot_count;
    entities->first_free = slots->first_free;
    entities->free_count = slots->free_count;
    entities->absent_count = slots->absent_count;
    entities->retired_count = slots->retired_count;
}
