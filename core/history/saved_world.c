/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Saves and restores entity slots. A saved slot contains the generation, and either that the slot is
 * alive or the next free slot. The rows of alive entities are not saved here: restore.c finds them in
 * the chunks. */
#include "core/history/history_internal.h"

#include "core/events/event_internal.h"
#include "core/query/query_internal.h"
#include "core/relations/relation_internal.h"

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

static bool is_slot_group_touched(const quern__entities *entities, uint32_t group)
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
static inline bool page_equals_slots(const quern__history *history, uint32_t group, quern__page page)
{
    const quern__entities *entities = &history->world->storage.entities;
    saved_slot now[QUERN__SLOT_GROUP];
    copy_group(entities, group, now);
    return memcmp(now, quern__page_memory(&history->store, page),
                  slots_in(entities->slot_count, group) * sizeof *now) == 0;
}

static quern_result build_slot_group(quern__history *history, uint32_t group, quern__page *out_page)
{
    const quern__entities *entities = &history->world->storage.entities;
    const quern__saved_slots *base = &history->base.slots;
    const uint32_t page = group >> (QUERN__PAGE_RECORDS_LOG2 - QUERN__SLOT_GROUP_LOG2);
    if (quern__entities_is_absent(entities, page)) return QUERN_OK;
    if (base->groups != 0 && group < base->group_count && !is_slot_group_touched(entities, group)) {
        assert(page_equals_slots(history, group, quern__pages_in(history, base->groups)[group]));
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
        result = build_slot_group(history, i, &page);
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
static void restore_slot_group(quern__entities *entities, uint32_t group, uint32_t slot_count,
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
        if (i < base->group_count && base_groups[i] == groups[i] && !is_slot_group_touched(entities, i))
            continue;
        restore_slot_group(entities, i, slots->slot_count,
                           (const saved_slot *)(void *)quern__page_memory(&history->store, groups[i]));
    }
    quern__entities_restore_pages(entities, &storage->allocator, slots->page_count, absent_highs);
    entities->slot_count = slots->slot_count;
    entities->first_free = slots->first_free;
    entities->free_count = slots->free_count;
    entities->absent_count = slots->absent_count;
    entities->retired_count = slots->retired_count;
}

/* --------------------------------------------------------------------------------------- archetypes */

/* Saves the archetypes of a world: copies what was written to their chunks since the base, and shares
 * all other pages with the base. */

/* ----------------------------------------------------------------------------------- one archetype */

/* An archetype that is being saved. */
typedef struct archetype_save {
    quern__history *history;
    const quern__archetype *archetype;
    const quern__saved_archetype *base; /* the archetype in the base; NULL: the base lacks it */
    quern__saved_archetype *saved;
} archetype_save;

/* Whether nothing in the archetype has changed since the base. Row bits of reactions update no version,
 * so an archetype with row bits always counts as changed. Its columns may still be shared. */
static bool is_unchanged(const quern__history *history, const quern__archetype *archetype,
                         const quern__saved_archetype *base)
{
    if (base == NULL || archetype->row_bits != NULL || base->bit_column_count > 0 ||
        base->chunk_count != archetype->chunk_count || base->empty_since != archetype->empty_since ||
        base->row_count != quern__archetype_row_count(archetype))
        return false;
    const size_t count = (size_t)archetype->chunk_count * archetype->versions.stride;
    return quern__versions_find_later(archetype->versions.items, 0, count, history->base_version) == count;
}

/* Returns the index, among the versions of a chunk, of the version of a column or lane. */
static uint32_t version_of(const quern__archetype *archetype, uint32_t page_index)
{
    if (page_index < archetype->column_count) return 1 + page_index;
    return archetype->row_versions->lanes[page_index - archetype->column_count - 1].version_index;
}

/* Finds the memory to save in a page of a chunk: a column, the handles or a lane. Returns its address,
 * its size in bytes for the rows in use, and the type if its values have hooks, otherwise NULL. */
static const char *find_source(const quern__archetype *archetype, uint32_t slot, uint32_t page_index,
                               size_t *out_bytes, const quern__type **out_type)
{
    const quern__chunk *chunk = quern__slot_chunk(&archetype->slots[slot]);
    const uint32_t rows = archetype->slots[slot].row_count;
    *out_type = NULL;
    *out_bytes = rows * sizeof(uint64_t);
    if (page_index == archetype->column_count)
        return (const char *)quern__archetype_entities(archetype, chunk);
    if (page_index > archetype->column_count)
        return (const char *)quern__row_versions_lane(archetype->row_versions,
                                                      page_index - archetype->column_count - 1, slot);
    const quern__column *it = &archetype->columns[page_index];
    *out_bytes = (size_t)rows * it->size_bytes;
    if (quern__hooks_exist(&it->type->hooks)) *out_type = it->type;
    return quern__column_value(it, chunk, 0);
}

/* Saves one page of a chunk. Values with hooks are copied immediately by the calling thread; other
 * values are copied by a transfer. */
static quern_result save_page(archetype_save *it, uint32_t slot, uint32_t column, quern__page *out_page)
{
    quern__history *history = it->history;
    size_t bytes;
    const quern__type *type;
    const char *source = find_source(it->archetype, slot, column, &bytes, &type);
    if (type != NULL && type->hooks.copy == NULL &&
        (type->hooks.move != NULL || type->hooks.destroy != NULL))
        return quern__fail(
            QUERN_ERROR_INVALID_ARGUMENT,
            "component '%s' has a move or destroy hook and no copy hook, so a snapshot cannot "
            "copy its values: add a copy hook, or store such values outside of the world",
            type->name);
    const size_t value_bytes =
        column < it->archetype->column_count ? it->archetype->columns[column].size_bytes : sizeof(uint64_t);
    *out_page = quern__page_allocate(&history->store, value_bytes * it->archetype->shape.row_capacity);
    if (*out_page == 0) return quern__history_fail_memory("a column of a chunk");
    history->copied_bytes += bytes;
    history->copied_count++;
    char *target = quern__page_memory(&history->store, *out_page);
    if (type == NULL)
        return quern__history_add_transfer(history, target, source, bytes)
                   ? QUERN_OK
                   : quern__history_fail_memory("a list of columns");
    quern__page_entry *entry = &history->store.pages.items[*out_page];
    entry->type = type;
    entry->value_count = it->archetype->slots[slot].row_count;
    quern__type_copy(type, target, source, entry->value_count);
    return QUERN_OK;
}

/* Returns whether values of a type with lists are equal. Those of other types with hooks cannot be compared. */
static bool are_same_values(const quern__type *type, const char *a, const char *b, size_t bytes)
{
    bool are_same = true;
    for (size_t at = 0; type->lists != NULL && at < bytes && are_same; at += type->size_bytes)
        are_same = quern__type_same_value(type, a + at, b + at);
    return are_same;
}

/* Checks, in builds with checks, that a shared page has the values of the world. It fails if values were
 * written without updating a version. */
static quern_result check_unchanged(const archetype_save *it, uint32_t slot, uint32_t column,
                                    quern__page page)
{
    size_t bytes;
    const quern__type *type;
    const char *source = find_source(it->archetype, slot, column, &bytes, &type);
    const char *saved = quern__page_memory(&it->history->store, page);
    if (type != NULL ? are_same_values(type, saved, source, bytes) : memcmp(saved, source, bytes) == 0)
        return QUERN_OK;
    const char *name = column < it->archetype->column_count ? it->archetype->columns[column].type->name
                                                            : "handle or version";
    return quern__fail(
        QUERN_ERROR_INVALID_ARGUMENT,
        "values of '%s' were written through a pointer from before the last save or restore, so the change "
        "was not recorded: get the pointer again after each save and restore",
        name);
}

static quern_result save_slot(archetype_save *it, uint32_t slot)
{
    const quern__archetype *archetype = it->archetype;
    const uint64_t *versions = quern__versions_of(&archetype->versions, slot);
    const uint64_t base = it->history->base_version;
    const bool is_known = it->base != NULL && slot < it->base->chunk_count && versions[0] <= base;
    quern__page *pages = quern__saved_pages(it->saved, slot);
    const quern__page *base_pages = is_known ? quern__saved_pages(it->base, slot) : NULL;
    quern_result result = QUERN_OK;
    for (uint32_t i = 0; i < it->saved->slot_page_count && result == QUERN_OK; i++) {
        const bool is_shared =
            is_known && (i == archetype->column_count || versions[version_of(archetype, i)] <= base);
        if (is_shared)
            pages[i] = quern__page_acquire(&it->history->store, base_pages[i]);
        else
            result = save_page(it, slot, i, &pages[i]);
        if (QUERN_CHECKS && is_shared) result = check_unchanged(it, slot, i, pages[i]);
    }
    return result;
}

/* Shares all pages of the chunks from `begin` to `end` - 1, in which nothing has changed. */
static void share_slots(const archetype_save *it, uint32_t begin, uint32_t end)
{
    quern__page *pages = quern__saved_pages(it->saved, begin);
    const quern__page *base_pages = quern__saved_pages(it->base, begin);
    const size_t count = (size_t)(end - begin) * it->saved->slot_page_count;
    for (size_t i = 0; i < count; i++)
        pages[i] = quern__page_acquire(&it->history->store, base_pages[i]);
}

/* Saves all chunks. Builds with checks compare every shared page, so they skip no chunk. */
static quern_result save_slots(archetype_save *it)
{
    const uint32_t count = it->archetype->chunk_count;
    uint32_t known_count = QUERN_CHECKS || it->base == NULL ? 0 : it->base->chunk_count;
    if (known_count > count) known_count = count;
    quern_result result = QUERN_OK;
    for (uint32_t slot = 0; slot < count && result == QUERN_OK; slot++) {
        if (slot < known_count) {
            const quern__versions *versions = &it->archetype->versions;
            const uint32_t noted =
                (uint32_t)(quern__versions_find_later(versions->items, (size_t)slot * versions->stride,
                                                      (size_t)known_count * versions->stride,
                                                      it->history->base_version) /
                           versions->stride);
            share_slots(it, slot, noted);
            slot = noted;
        }
        if (slot < count) result = save_slot(it, slot);
    }
    return result;
}

static void copy_bit_columns(const archetype_save *it)
{
    const quern__row_bits *row_bits = it->archetype->row_bits;
    if (row_bits == NULL) return;
    memcpy(quern__saved_bit_columns(it->saved), row_bits->list, row_bits->count * sizeof *row_bits->list);
    memcpy(quern__saved_words(it->saved), row_bits->words,
           (size_t)it->saved->chunk_count * row_bits->slot_words * sizeof(uint64_t));
}

static quern_result build_one(quern__history *history, const quern__archetype *archetype,
                              const quern__saved_archetype *base, quern__page *out_page)
{
    quern__saved_archetype described = {
        .identity = archetype->identity,
        .empty_since = archetype->empty_since,
        .row_count = quern__archetype_row_count(archetype),
        .layout_index = archetype->layout_index,
        .row_capacity = archetype->shape.row_capacity,
        .chunk_count = archetype->chunk_count,
        .column_count = archetype->column_count,
        .component_count = archetype->component_count,
        .version_count = archetype->versions.stride,
        .slot_page_count = archetype->column_count + 1 +
                           (archetype->row_versions != NULL ? archetype->row_versions->lane_count : 0),
        .bit_column_count = archetype->row_bits != NULL ? archetype->row_bits->count : 0,
        .bit_column_words = archetype->row_bits != NULL ? archetype->row_bits->bit_column_words : 0,
    };
    /* offsets of the arrays in the page */
    size_t offset = quern__align_up(sizeof described +
                                        archetype->component_count * sizeof described.component_indices[0],
                                    sizeof(uint64_t));
    described.versions_offset = (uint32_t)offset;
    offset += (size_t)described.chunk_count * described.version_count * sizeof(uint64_t);
    described.words_offset = (uint32_t)offset;
    offset += (size_t)described.chunk_count * described.bit_column_count * described.bit_column_words *
              sizeof(uint64_t);
    described.bit_columns_offset = (uint32_t)offset;
    offset += described.bit_column_count * sizeof(quern__bit_column);
    described.pages_offset = (uint32_t)offset;
    const size_t bytes =
        offset + (size_t)described.chunk_count * described.slot_page_count * sizeof(quern__page);
    if (bytes > UINT32_MAX)
        return quern__history_fail_memory("an archetype with more than 4 GiB of chunk data");
    *out_page = quern__page_allocate(&history->store, bytes);
    if (*out_page == 0) return quern__history_fail_memory("an archetype");
    archetype_save it = {history, archetype, base, (void *)quern__page_memory(&history->store, *out_page)};
    *it.saved = described;
    memcpy(it.saved->component_indices, archetype->component_indices,
           archetype->component_count * sizeof archetype->component_indices[0]);
    if (archetype->chunk_count > 0) {
        memcpy(quern__saved_versions(it.saved), archetype->versions.items,
               (size_t)archetype->chunk_count * it.saved->version_count * sizeof(uint64_t));
        memset(quern__saved_pages(it.saved, 0), 0,
               (size_t)archetype->chunk_count * it.saved->slot_page_count * sizeof(quern__page));
    }
    copy_bit_columns(&it);
    return save_slots(&it);
}

/* ---------------------------------------------------------------------------------- all archetypes */

quern_result quern__build_archetypes(quern__history *history, quern__snapshot *snapshot)
{
    const quern__storage *storage = &history->world->storage;
    const uint32_t count = storage->archetypes.count;
    snapshot->archetypes = quern__page_allocate(&history->store, count * sizeof(quern__page));
    if (snapshot->archetypes == 0) return quern__history_fail_memory("a list of archetypes");
    snapshot->archetype_count = count;
    memset(quern__pages_in(history, snapshot->archetypes), 0, count * sizeof(quern__page));
    quern_result result = QUERN_OK;
    uint32_t cursor = 0;
    for (uint32_t i = 0; i < count && result == QUERN_OK; i++) {
        const quern__archetype *archetype = storage->archetypes.items[i];
        const quern__saved_archetype *base = quern__find_base_archetype(history, archetype, &cursor);
        quern__page page = 0;
        if (!QUERN_CHECKS && is_unchanged(history, archetype, base))
            page = quern__page_acquire(&history->store,
                                       quern__pages_in(history, history->base.archetypes)[cursor - 1]);
        else
            result = build_one(history, archetype, base, &page);
        quern__pages_in(history, snapshot->archetypes)[i] = page;
    }
    return result;
}

static void release_one(quern__history *history, quern__page page)
{
    const quern__saved_archetype *saved = (void *)quern__page_memory(&history->store, page);
    if (history->store.reference_counts.items[page] == 1) {
        const size_t count = (size_t)saved->chunk_count * saved->slot_page_count;
        const quern__page *pages = quern__saved_pages(saved, 0);
        for (size_t i = count; i-- > 0;) /* in reverse order: see history_internal.h */
            quern__page_release(&history->store, pages[i]);
    }
    quern__page_release(&history->store, page);
}

void quern__release_saved_archetypes(quern__history *history, const quern__snapshot *snapshot)
{
    const quern__page *pages = quern__pages_in(history, snapshot->archetypes);
    for (uint32_t i = snapshot->archetype_count; i-- > 0;)
        if (pages[i] != 0) release_one(history, pages[i]);
}

/* ---------------------------------------------------------------------------------- links and edges */

/* Saves and restores the links and edges of all relations, in groups of slots. A relation that is newer than
 * the snapshot has no links and edges after a restore. */

enum {
    GROUPS_IN_PAGE = QUERN__LINK_PAGE_SLOTS / QUERN__LINK_GROUP,
    GROUP_BYTES = QUERN__LINK_GROUP * sizeof(quern__link_node)
};

_Static_assert((int)QUERN__EDGE_GROUP == (int)QUERN__LINK_GROUP &&
                   (int)QUERN__EDGE_PAGE_SLOTS == (int)QUERN__LINK_PAGE_SLOTS,
               "links and edges have the same groups");

static quern__saved_links *saved_links(const quern__history *history, const quern__snapshot *snapshot)
{
    return (quern__saved_links *)(void *)quern__page_memory(&history->store, snapshot->relations);
}

/* Returns the saved links of the i-th relation; none if the relation is newer than the snapshot. */
static quern__saved_links links_of(const quern__history *history, const quern__snapshot *snapshot,
                                   uint32_t i)
{
    return i < snapshot->relation_count ? saved_links(history, snapshot)[i] : (quern__saved_links){0};
}

static quern__page group_of(const quern__history *history, const quern__saved_links *saved, uint32_t group)
{
    return group < saved->page_count * GROUPS_IN_PAGE ? quern__pages_in(history, saved->groups)[group] : 0;
}

quern__page quern__saved_group(const quern__history *history, const quern__snapshot *snapshot,
                               uint32_t relation_index, uint32_t group)
{
    const quern__saved_links saved = links_of(history, snapshot, relation_index);
    return group_of(history, &saved, group);
}

uint32_t quern__saved_group_count(const quern__history *history, const quern__snapshot *a,
                                  const quern__snapshot *b, uint32_t relation_index)
{
    const uint32_t pages_in_a = links_of(history, a, relation_index).page_count,
                   pages_in_b = links_of(history, b, relation_index).page_count;
    return (pages_in_a > pages_in_b ? pages_in_a : pages_in_b) * GROUPS_IN_PAGE;
}

static bool is_link_group_touched(const quern__links *links, uint32_t group)
{
    return (links->touched.items[group / GROUPS_IN_PAGE] >> group % GROUPS_IN_PAGE & 1) != 0;
}

static quern__link_node *group_at(const quern__links *links, uint32_t group)
{
    return quern__links_at(links, group * QUERN__LINK_GROUP);
}

/* ------------------------------------------------------------------------------------------ saving */

static quern_result build_link_group(quern__history *history, const quern__links *links,
                                     const quern__saved_links *base, uint32_t group, quern__page *out_page)
{
    if (links->pages.items[group / GROUPS_IN_PAGE] == NULL) return QUERN_OK;
    const quern__page known = group_of(history, base, group);
    if (known != 0 && !is_link_group_touched(links, group)) {
        const void *now = group_at(links, group);
        assert(memcmp(quern__page_memory(&history->store, known), now, GROUP_BYTES) == 0);
        (void)now;
        *out_page = quern__page_acquire(&history->store, known);
        return QUERN_OK;
    }
    *out_page = quern__page_allocate(&history->store, GROUP_BYTES);
    if (*out_page == 0) return quern__history_fail_memory("links of entities");
    memcpy(quern__page_memory(&history->store, *out_page), group_at(links, group), GROUP_BYTES);
    return QUERN_OK;
}

static bool are_edges_touched(const quern__edges *edges, uint32_t group)
{
    return (edges->touched.items[group / GROUPS_IN_PAGE] >> group % GROUPS_IN_PAGE & 1) != 0;
}

static const quern__edge_list *list_at(const quern__edges *edges, uint32_t group, uint32_t set)
{
    const uint32_t slot = group * QUERN__EDGE_GROUP + set % QUERN__EDGE_GROUP;
    return set < QUERN__EDGE_GROUP ? quern__edges_targets(edges, slot) : quern__edges_sources(edges, slot);
}

/* Fills the head of a page. Returns the number of members of all sets. */
static uint32_t fill_head(const quern__edges *edges, uint32_t group, quern__saved_edges *head)
{
    uint32_t count = 0;
    for (uint32_t set = 0; set < QUERN__SAVED_EDGE_SETS; set++) {
        head->first[set] = count;
        count += list_at(edges, group, set)->count;
    }
    head->first[QUERN__SAVED_EDGE_SETS] = count;
    return count;
}

/* Saves a group. *out_page remains 0 if the group has no edges. Errors: OUT_OF_MEMORY. */
static quern_result build_edge_group(quern__history *history, const quern__edges *edges, uint32_t group,
                                     quern__page *out_page)
{
    quern__saved_edges head;
    const uint32_t count = fill_head(edges, group, &head);
    if (count == 0) return QUERN_OK;
    *out_page = quern__page_allocate(&history->store, sizeof head + count * sizeof(uint32_t));
    if (*out_page == 0) return quern__history_fail_memory("edges of entities");
    char *memory = quern__page_memory(&history->store, *out_page);
    memcpy(memory, &head, sizeof head);
    uint32_t *slots = (uint32_t *)(void *)(memory + sizeof head);
    for (uint32_t set = 0; set < QUERN__SAVED_EDGE_SETS; set++)
        quern__edge_list_copy(list_at(edges, group, set), slots + head.first[set]);
    return QUERN_OK;
}

static bool is_equal(const quern__edge_list *list, quern__edge_range saved)
{
    uint32_t count = 0;
    if (list->count != saved.count) return false;
    for (uint32_t i = 0; i < quern__edge_list_ranges(list); i++) {
        const quern__edge_range range = quern__edge_list_range(list, i);
        for (uint32_t k = 0; k < range.count; k++)
            /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): both have as many slots */
            if (range.slots[k] != saved.slots[count++]) return false;
    }
    return true;
}

/* Whether the page equals the edges of the group in the world. For builds with checks. */
static inline bool saved_edges_equal(const quern__history *history, const quern__edges *edges,
                                     uint32_t group, quern__page page)
{
    for (uint32_t set = 0; set < QUERN__SAVED_EDGE_SETS; set++)
        if (!is_equal(list_at(edges, group, set), quern__saved_edge_set(history, page, set))) return false;
    return true;
}

/* Performs build_link_group for a relation with several targets per source. */
static quern_result build_edges(quern__history *history, const quern__edges *edges,
                                const quern__saved_links *base, uint32_t group, quern__page *out_page)
{
    if (edges->pages.items[group / GROUPS_IN_PAGE] == NULL) return QUERN_OK;
    const quern__page known = group_of(history, base, group);
    if (known == 0 || are_edges_touched(edges, group))
        return build_edge_group(history, edges, group, out_page);
    assert(saved_edges_equal(history, edges, group, known));
    *out_page = quern__page_acquire(&history->store, known);
    return QUERN_OK;
}

/* Returns the number of pages of the relation's links or edges. */
static uint32_t count_pages(const quern__relation *relation)
{
    return relation->is_many ? relation->edges.pages.count : relation->links.pages.count;
}

static quern_result build_relation(quern__history *history, uint32_t i, quern__snapshot *snapshot)
{
    const quern__relation *relation = history->world->storage.relations->list.items[i];
    const quern__links *links = &relation->links;
    const quern__saved_links base = links_of(history, &history->base, i);
    const uint32_t count = count_pages(relation) * GROUPS_IN_PAGE;
    const quern__page groups = quern__page_allocate(&history->store, count * sizeof(quern__page));
    if (groups == 0) return quern__history_fail_memory("a list of links");
    memset(quern__pages_in(history, groups), 0, count * sizeof(quern__page));
    saved_links(history, snapshot)[i] = (quern__saved_links){count_pages(relation), groups};
    quern_result result = QUERN_OK;
    for (uint32_t group = 0; group < count && result == QUERN_OK; group++) {
        quern__page page = 0;
        result = relation->is_many ? build_edges(history, &relation->edges, &base, group, &page)
                                   : build_link_group(history, links, &base, group, &page);
        quern__pages_in(history, groups)[group] = page;
    }
    return result;
}

quern_result quern__build_links(quern__history *history, quern__snapshot *snapshot)
{
    const uint32_t count = history->world->storage.relations->list.count;
    if (count == 0) return QUERN_OK;
    snapshot->relations = quern__page_allocate(&history->store, count * sizeof(quern__saved_links));
    if (snapshot->relations == 0) return quern__history_fail_memory("a list of relations");
    memset(saved_links(history, snapshot), 0, count * sizeof(quern__saved_links));
    snapshot->relation_count = count;
    quern_result result = QUERN_OK;
    for (uint32_t i = 0; i < count && result == QUERN_OK; i++)
        result = build_relation(history, i, snapshot);
    return result;
}

void quern__release_saved_links(quern__history *history, const quern__snapshot *snapshot)
{
    for (uint32_t i = 0; i < snapshot->relation_count; i++) {
        const quern__saved_links saved = saved_links(history, snapshot)[i];
        for (uint32_t group = 0; group < saved.page_count * GROUPS_IN_PAGE; group++)
            quern__page_release(&history->store, quern__pages_in(history, saved.groups)[group]);
        quern__page_release(&history->store, saved.groups);
    }
}

bool quern__saved_has_children(const quern__history *history, const quern__snapshot *snapshot,
                               uint32_t relation_index, uint32_t slot)
{
    const quern__saved_links saved = links_of(history, snapshot, relation_index);
    const quern__page page = group_of(history, &saved, slot / QUERN__LINK_GROUP);
    if (page == 0) return false;
    const quern__link_node *node =
        (const quern__link_node *)(const void *)quern__page_memory(&history->store, page);
    return node[slot % QUERN__LINK_GROUP].count > 0;
}

/* ------------------------------------------------------------------------------------------ restoring */

/* Whether the edges of a group in the world differ from the saved ones, or may do so. */
static bool has_other_edges(const quern__history *history, const quern__edges *edges,
                            const quern__saved_links *saved, const quern__saved_links *base, uint32_t group)
{
    const quern__page page = group_of(history, saved, group);
    if (!quern__edges_has_page(edges, group * QUERN__EDGE_GROUP)) return page != 0;
    return page != group_of(history, base, group) || are_edges_touched(edges, group);
}

static bool build_set(quern__history *history, quern__edge_pool *pool, quern__page page, uint32_t set,
                      quern__edge_list *out_list)
{
    const quern__edge_range saved = quern__saved_edge_set(history, page, set);
    return quern__edge_list_build(pool, &history->world->storage.allocator, saved.slots, saved.count,
                                  out_list);
}

/* Builds the sets of a group. quern__undo_edges or quern__restore_links ends the list of built sets. Errors:
 * OUT_OF_MEMORY. */
static quern_result prepare_edge_group(quern__history *history, quern__edges *edges, uint32_t group,
                                       quern__page page)
{
    const quern_allocator *allocator = &history->world->storage.allocator;
    const uint32_t slot = group * QUERN__EDGE_GROUP;
    bool is_done = page == 0 || quern__edges_reserve_page(edges, allocator, slot);
    for (uint32_t i = 0; page != 0 && is_done && i < QUERN__EDGE_GROUP; i++) {
        quern__edge_node node;
        is_done = quern__array_reserve(&history->store.allocator, &history->edge_restores,
                                       history->edge_restores.count + 1);
        is_done = is_done && build_set(history, edges->pool, page, i, &node.targets);
        if (!is_done) break;
        is_done = build_set(history, edges->pool, page, QUERN__EDGE_GROUP + i, &node.sources);
        history->edge_restores.items[history->edge_restores.count++] =
            (quern__edge_restore){edges, slot + i, node};
    }
    return is_done ? QUERN_OK : quern__history_fail_memory("the edges of entities");
}

static quern_result prepare_edges(quern__history *history, const quern__snapshot *snapshot, uint32_t i)
{
    quern__edges *edges = &history->world->storage.relations->list.items[i]->edges;
    const quern__saved_links saved = links_of(history, snapshot, i);
    const quern__saved_links base = links_of(history, &history->base, i);
    quern_result result = QUERN_OK;
    for (uint32_t group = 0; group < saved.page_count * GROUPS_IN_PAGE && result == QUERN_OK; group++)
        if (has_other_edges(history, edges, &saved, &base, group))
            result = prepare_edge_group(history, edges, group, group_of(history, &saved, group));
    return result;
}

quern_result quern__prepare_links(quern__history *history, const quern__snapshot *snapshot)
{
    quern__storage *storage = &history->world->storage;
    for (uint32_t i = 0; i < snapshot->relation_count; i++) {
        if (storage->relations->list.items[i]->is_many) {
            const quern_result result = prepare_edges(history, snapshot, i);
            if (result != QUERN_OK) return result;
            continue;
        }
        const quern__saved_links saved = saved_links(history, snapshot)[i];
        for (uint32_t group = 0; group < saved.page_count * GROUPS_IN_PAGE; group += GROUPS_IN_PAGE)
            if (group_of(history, &saved, group) != 0 &&
                !quern__links_reserve(&storage->relations->list.items[i]->links, &storage->allocator,
                                      group * QUERN__LINK_GROUP))
                return quern__history_fail_memory("the links of entities");
    }
    return QUERN_OK;
}

/* Clears all groups of edges that differ; quern__restore_links then sets those of the snapshot. */
static bool clear_edges(const quern__history *history, quern__edges *edges, const quern__saved_links *saved,
                        const quern__saved_links *base)
{
    bool is_other = false;
    for (uint32_t group = 0; group < edges->pages.count * GROUPS_IN_PAGE; group++) {
        if (!quern__edges_has_page(edges, group * QUERN__EDGE_GROUP) ||
            !has_other_edges(history, edges, saved, base, group))
            continue;
        for (uint32_t i = 0; i < QUERN__EDGE_GROUP; i++)
            quern__edges_clear(edges, &history->world->storage.allocator, group * QUERN__EDGE_GROUP + i);
        is_other = true;
    }
    return is_other;
}

void quern__restore_links(quern__history *history, const quern__snapshot *snapshot)
{
    const quern__relations *relations = history->world->storage.relations;
    for (uint32_t i = 0; i < relations->list.count; i++) {
        quern__links *links = &relations->list.items[i]->links;
        const quern__saved_links saved = links_of(history, snapshot, i);
        const quern__saved_links base = links_of(history, &history->base, i);
        bool is_other = false;
        for (uint32_t group = 0; group < links->pages.count * GROUPS_IN_PAGE; group++) {
            if (links->pages.items[group / GROUPS_IN_PAGE] == NULL) continue;
            const quern__page page = group_of(history, &saved, group);
            if (page == group_of(history, &base, group) && !is_link_group_touched(links, group)) continue;
            quern__link_node *node = group_at(links, group);
            if (page != 0) memcpy(node, quern__page_memory(&history->store, page), GROUP_BYTES);
            for (uint32_t k = 0; page == 0 && k < QUERN__LINK_GROUP; k++)
                node[k] = quern__empty_link_node;
            is_other = true;
        }
        if (is_other) links->version++;
        if (clear_edges(history, &relations->list.items[i]->edges, &saved, &base)) links->version++;
    }
    const quern_allocator *allocator = &history->world->storage.allocator;
    for (uint32_t i = 0; i < history->edge_restores.count; i++) {
        const quern__edge_restore *built = &history->edge_restores.items[i];
        quern__edges_put_targets(built->edges, allocator, built->slot, &built->node.targets);
        quern__edges_put_sources(built->edges, allocator, built->slot, &built->node.sources);
    }
    history->edge_restores.count = 0;
}

/* Saves and restores the edges of relations with several targets per source, in groups of slots. A page has the sets
 * of one group: the head of history_internal.h, then the members of all sets. Slots without edges need no page. */

/* ------------------------------------------------------------------------------------------ saving */

/* --------------------------------------------------------------------------------------- restoring */

void quern__undo_edges(quern__history *history)
{
    const quern_allocator *allocator = &history->world->storage.allocator;
    for (uint32_t i = 0; i < history->edge_restores.count; i++) {
        quern__edge_restore *built = &history->edge_restores.items[i];
        quern__edge_list_release(built->edges->pool, allocator, &built->node.targets);
        quern__edge_list_release(built->edges->pool, allocator, &built->node.sources);
    }
    history->edge_restores.count = 0;
}

/* ------------------------------------------------------------------------------ names and resources */

/* Saves and restores names and resources. All names are copied if any name has changed since the base.
 * Resources are always copied, each into a page of its own. */

/* ------------------------------------------------------------------------------------------- names */

/* Writes the number of names, then for each name its slot, its parent's slot, its length and its text
 * with the terminating 0. */
static void write_names(const quern__names *names, quern__byte_writer *writer)
{
    quern__write_u64(writer, names->count);
    for (uint32_t block = 0; block < names->blocks.count; block++)
        for (uint32_t i = 0; names->blocks.items[block] != NULL && i < QUERN__NAME_BLOCK_NAMES; i++) {
            const quern__name *name = &names->blocks.items[block][i];
            if (name->slot == QUERN__SLOT_NONE) continue;
            const uint32_t length = (uint32_t)strlen(name->text);
            quern__write_u64(writer, (uint64_t)name->parent << 32 | name->slot);
            quern__write_u64(writer, length);
            quern__write(writer, name->text, (size_t)length + 1);
        }
}

quern__saved_name quern__read_saved_name(quern__byte_reader *reader)
{
    const uint64_t slots = quern__read_u64(reader);
    const uint32_t length = (uint32_t)quern__read_u64(reader);
    const char *text = quern__read_in_place(reader, (size_t)length + 1);
    assert(text != NULL);
    return (quern__saved_name){(uint32_t)slots, (uint32_t)(slots >> 32), length, text};
}

quern_result quern__build_names(quern__history *history, quern__snapshot *snapshot)
{
    const quern__names *names = history->world->storage.names;
    snapshot->names_version = names->version;
    if (history->base.names != 0 && history->base.names_version == names->version) {
        snapshot->names = quern__page_acquire(&history->store, history->base.names);
        return QUERN_OK;
    }
    quern__byte_writer measure = {.capacity = SIZE_MAX};
    write_names(names, &measure);
    snapshot->names = quern__page_allocate(&history->store, measure.count);
    if (snapshot->names == 0) return quern__history_fail_memory("the names of entities");
    quern__byte_writer writer = quern__page_writer(&history->store, snapshot->names);
    write_names(names, &writer);
    return QUERN_OK;
}

static bool has_names(const quern__history *history, const quern__snapshot *snapshot)
{
    return snapshot->names == history->base.names &&
           history->world->storage.names->version == history->base.names_version;
}

quern_result quern__prepare_names(quern__history *history, const quern__snapshot *snapshot)
{
    if (has_names(history, snapshot)) return QUERN_OK;
    quern__storage *storage = &history->world->storage;
    quern__byte_reader reader = quern__page_reader(&history->store, snapshot->names);
    const uint32_t count = (uint32_t)quern__read_u64(&reader);
    bool has_room = quern__names_reserve_count(storage->names, &storage->allocator, count);
    for (uint32_t i = 0; i < count && has_room; i++)
        has_room = quern__names_reserve_page(storage->names, &storage->allocator,
                                             quern__read_saved_name(&reader).slot);
    return has_room ? QUERN_OK : quern__history_fail_memory("the names of entities");
}

void quern__restore_names(quern__history *history, const quern__snapshot *snapshot)
{
    if (has_names(history, snapshot)) return;
    quern__names *names = history->world->storage.names;
    for (uint32_t block = 0; block < names->blocks.count; block++)
        for (uint32_t i = 0; names->blocks.items[block] != NULL && i < QUERN__NAME_BLOCK_NAMES; i++)
            if (names->blocks.items[block][i].slot != QUERN__SLOT_NONE)
                quern__names_drop(names, names->blocks.items[block][i].slot);
    quern__byte_reader reader = quern__page_reader(&history->store, snapshot->names);
    for (uint64_t left = quern__read_u64(&reader); left > 0; left--) {
        const quern__saved_name name = quern__read_saved_name(&reader);
        quern__names_put(names, name.slot, name.parent, name.text, name.length);
    }
}

/* --------------------------------------------------------------------------------------- resources */

static quern_result build_resource(quern__history *history, const quern__resource *resource,
                                   quern__page *out_page)
{
    const quern__type *type = &resource->type;
    if (type->hooks.copy == NULL && (type->hooks.move != NULL || type->hooks.destroy != NULL))
        return quern__fail(
            QUERN_ERROR_INVALID_ARGUMENT,
            "resource '%s' has a move or destroy hook and no copy hook, so a snapshot cannot copy its "
            "value: add a copy hook, or store the value outside of the world",
            type->name);
    *out_page = quern__page_allocate(&history->store, type->size_bytes);
    if (*out_page == 0) return quern__history_fail_memory("a resource");
    quern__type_copy(type, quern__page_memory(&history->store, *out_page), resource->value, 1);
    return QUERN_OK;
}

quern_result quern__build_resources(quern__history *history, quern__snapshot *snapshot)
{
    const quern__resources *resources = &history->world->resources;
    const uint32_t count = resources->list.count;
    snapshot->resources = quern__page_allocate(&history->store, count * sizeof(quern__page));
    if (snapshot->resources == 0) return quern__history_fail_memory("a list of resources");
    memset(quern__pages_in(history, snapshot->resources), 0, count * sizeof(quern__page));
    snapshot->resource_count = count;
    quern_result result = QUERN_OK;
    for (uint32_t i = 0; i < count && result == QUERN_OK; i++) {
        quern__page page = 0;
        result = build_resource(history, &resources->list.items[i], &page);
        quern__pages_in(history, snapshot->resources)[i] = page;
    }
    return result;
}

/* Destroys the values with the types of the world: the entry of a page cannot name the type, because resources move in
 * memory when others are registered. Each page of a value is in one list only. */
void quern__release_saved_resources(quern__history *history, const quern__snapshot *snapshot)
{
    for (uint32_t i = 0; i < snapshot->resource_count; i++) {
        const quern__page page = quern__pages_in(history, snapshot->resources)[i];
        if (page == 0) continue; /* the snapshot was built only in part */
        assert(history->store.reference_counts.items[page] == 1);
        quern__type_destroy(&history->world->resources.list.items[i].type,
                            quern__page_memory(&history->store, page), 1);
        quern__page_release(&history->store, page);
    }
}

void quern__restore_resources(quern__history *history, const quern__snapshot *snapshot)
{
    const quern__resources *resources = &history->world->resources;
    for (uint32_t i = 0; i < snapshot->resource_count; i++) {
        const quern__resource *resource = &resources->list.items[i];
        const quern__page page = quern__pages_in(history, snapshot->resources)[i];
        quern__type_destroy(&resource->type, resource->value, 1);
        quern__type_copy(&resource->type, resource->value, quern__page_memory(&history->store, page), 1);
    }
}

/* -------------------------------------------------------------------------------------- other state */

/* Saves and restores the rest of a world, in one page: changes not yet reported to reactions, waiting
 * events, and some numbers. Waiting commands have a page of their own: see history_internal.h. */

/* ------------------------------------------------------------------------------------------- interface */

static void write_world_state(const quern_world *world, quern__byte_writer *writer)
{
    quern__reactions_write(&world->storage, writer);
    quern__events_write(world, writer);
    quern__write_u64(writer, world->next_serial);
    quern__write_u64(writer, world->next_visit);
    quern__write_u64(writer, world->visit_count);
}

quern_result quern__build_world_state(quern__history *history, quern__snapshot *snapshot)
{
    const quern_world *world = history->world;
    quern_result result = quern__reactions_check_savable(&world->storage);
    if (result == QUERN_OK) result = quern__events_save_values(history, &snapshot->event_values);
    if (result != QUERN_OK) return result;
    quern__byte_writer measure = {.capacity = SIZE_MAX};
    write_world_state(world, &measure);
    snapshot->world_state = quern__page_allocate(&history->store, measure.count);
    if (snapshot->world_state == 0) return quern__history_fail_memory("pending reactions and events");
    quern__byte_writer writer = quern__page_writer(&history->store, snapshot->world_state);
    write_world_state(world, &writer);
    assert(!writer.has_failed);
    return quern__build_commands(history, snapshot);
}

quern_result quern__prepare_world_state(quern__history *history, const quern__snapshot *snapshot,
                                        quern__archetype *const *archetypes)
{
    quern__byte_reader reader = quern__page_reader(&history->store, snapshot->world_state);
    quern_result result = quern__reactions_prepare(&history->world->storage, archetypes, &reader);
    if (result == QUERN_OK) result = quern__events_prepare(history->world, &history->event_blocks, &reader);
    return result == QUERN_OK ? quern__prepare_commands(history, snapshot) : result;
}

void quern__undo_world_state(quern__history *history)
{
    quern__packing_undo(history->world, &history->event_blocks);
    quern__undo_commands(history);
}

void quern__restore_world_state(quern__history *history, const quern__snapshot *snapshot)
{
    quern_world *world = history->world;
    quern__byte_reader reader = quern__page_reader(&history->store, snapshot->world_state);
    quern__reactions_restore(&world->storage, &reader);
    quern__events_restore(history, &snapshot->event_values, &reader);
    world->next_serial = quern__read_u64(&reader);
    world->next_visit = (uint32_t)quern__read_u64(&reader);
    world->visit_count = quern__read_u64(&reader);
    assert(!reader.has_failed);
    quern__restore_commands(history);
    world->restore_count++;
    for (quern__query *query = world->storage.first_query; query != NULL; query = query->next)
        if (query->world != NULL) query->seen_version = 0;
}
