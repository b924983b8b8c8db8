/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Snapshots of a world, part by part: slots, archetypes with their rows, links and edges, names, resources. Each part is
 * saved, released, and restored by functions that stand together:
 *
 *   build     saves the part, and shares pages with the base. What was built before an error is in the snapshot, which the
 *             caller releases
 *   release   releases the pages that a page of the snapshot lists, before that page itself, and only for the last reference
 *   prepare   reserves what restoring needs, and may fail
 *   restore   restores the part, and cannot fail
 *
 * saved_pending.c has the functions of what waits in the world. */

#include "core/entities/entities_internal.h"
#include "core/history/history_internal.h"
#include "core/platform/platform.h"
#include "core/query/query_internal.h"
#include "core/reactions/hook.h"
#include "core/relations/relation_internal.h"
#include "core/storage/change.h"

/* ---------------------------------------------------------------------------------------- transfers */

/* Performs the listed transfers, divided among threads in batches of similar size.
 *
 * A store fetches its cache line from memory unless the line is cached. The pages of a save were last
 * used some frames ago and are read some frames later, if ever. So with many pages, each line is fetched
 * only to be overwritten, and evicts a line that the next frame needs. Therefore a large save stores
 * past the caches where the processor can, which about halves the time. A small save uses ordinary
 * stores, because its pages may be cached: the pages freed last are reused first. A restore uses
 * ordinary stores too, because the next frame reads what it writes. docs/history.md has figures. */

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

enum {
    TRANSFER_BATCH_BYTES = 64 * 1024, /* bytes that a thread copies per batch */
    STREAM_BYTES =
        512 * 1024 /* a save of at least so many bytes stores past the caches; the size of an L2 cache */
};

/* Copies past the caches. Precondition: `target` is aligned to a cache line. */
static void stream(char *target, const char *source, size_t bytes)
{
#if defined(__SSE2__)
    const size_t line_bytes = QUERN__CACHE_LINE_BYTES;
    for (; bytes >= line_bytes; bytes -= line_bytes, target += line_bytes, source += line_bytes) {
        const __m128i *from = (const void *)source;
        __m128i *to = (void *)target;
        const __m128i a = _mm_loadu_si128(from), b = _mm_loadu_si128(from + 1);
        const __m128i c = _mm_loadu_si128(from + 2), d = _mm_loadu_si128(from + 3);
        _mm_stream_si128(to, a);
        _mm_stream_si128(to + 1, b);
        _mm_stream_si128(to + 2, c);
        _mm_stream_si128(to + 3, d);
    }
#endif
    memcpy(target, source, bytes);
}

static void stream_some(void *argument, uint32_t begin, uint32_t end, uint32_t worker_index)
{
    (void)worker_index;
    const quern__transfer *transfers = argument;
    for (uint32_t i = begin; i < end; i++)
        stream(transfers[i].target, transfers[i].source, transfers[i].bytes);
#if defined(__SSE2__)
    /* Orders stores past the caches before later stores. No other operation orders them, not even the release store that
     * reports a batch as done. */
    _mm_sfence();
#endif
}

static void copy_some(void *argument, uint32_t begin, uint32_t end, uint32_t worker_index)
{
    (void)worker_index;
    const quern__transfer *transfers = argument;
    for (uint32_t i = begin; i < end; i++)
        memcpy(transfers[i].target, transfers[i].source, transfers[i].bytes);
}

/* Performs all listed transfers, in parallel if there is an executor, and clears the list. into_pages:
 * the targets are pages, which no code reads soon, so large transfers may bypass the caches. */
static void run_transfers(quern__history *history, bool into_pages)
{
    const uint32_t count = history->transfers.count;
    const uint64_t bytes = history->copied_bytes;
    const uint64_t batches = bytes / TRANSFER_BATCH_BYTES + 1;
    const uint32_t at_once = (uint32_t)((count + batches - 1) / batches);
    quern__executor_run(history->executor, count, at_once,
                        into_pages && bytes >= STREAM_BYTES ? stream_some : copy_some,
                        history->transfers.items);
    history->transfers.count = 0;
}

/* Adds a transfer to the list. Returns false if out of memory. A transfer that continues the previous one is merged with
 * it. is_padded: the targets of both have nothing up to the next cache line that must stay, so they may be that far apart.
 * So whole chunks that are runs of their own are copied at once, which is faster than column by column. In a run of
 * several chunks, the rows of the next one may follow within the cache line. */
static inline bool add_transfer(quern__history *history, char *target, const char *source, size_t bytes,
                                bool is_padded)
{
    if (history->transfers.count > 0) {
        quern__transfer *last = &history->transfers.items[history->transfers.count - 1];
        const size_t whole_bytes =
            is_padded ? quern__align_up(last->bytes, QUERN__CACHE_LINE_BYTES) : last->bytes;
        if (last->target + whole_bytes == target && last->source + whole_bytes == source &&
            whole_bytes + bytes <= QUERN__CHUNK_BYTES) {
            last->bytes = (uint32_t)(whole_bytes + bytes);
            return true;
        }
    }
    if (!quern__array_reserve(&history->store.allocator, &history->transfers, history->transfers.count + 1))
        return false;
    history->transfers.items[history->transfers.count++] =
        (quern__transfer){target, source, (uint32_t)bytes};
    return true;
}

/* ------------------------------------------------------------------------------------------------ slots */

/* Whether the group was modified since the base. marks: of entities, links or edges. */
static bool is_touched(const uint64_t *marks, uint32_t group)
{
    return (marks[group / 64] >> group % 64 & 1) != 0;
}

/* Returns how many slots of the group have ever been used. */
static uint32_t slots_in(uint32_t slot_count, uint32_t group)
{
    const uint32_t left = slot_count - group * QUERN__SLOT_GROUP;
    return left < QUERN__SLOT_GROUP ? left : (uint32_t)QUERN__SLOT_GROUP;
}

static void copy_group(const quern__entities *entities, uint32_t group, quern__saved_slot *slots)
{
    const uint32_t count = slots_in(entities->slot_count, group);
    const quern__record *records = quern__entities_record(entities, group * QUERN__SLOT_GROUP);
    for (uint32_t i = 0; i < count; i++)
        slots[i] = (quern__saved_slot){records[i].handle_high, records[i].location != 0
                                                                   ? QUERN__SAVED_ALIVE
                                                                   : records[i].archetype_number};
}

/* Whether the page equals the slots of the group in the world. For builds with checks. */
static inline bool page_equals_slots(const quern__history *history, uint32_t group, quern__page page)
{
    const quern__entities *entities = &history->world->storage.entities;
    quern__saved_slot now[QUERN__SLOT_GROUP];
    copy_group(entities, group, now);
    return memcmp(now, quern__page_memory(&history->store, page),
                  slots_in(entities->slot_count, group) * sizeof *now) == 0;
}

/* Adds a reference. Page 0, which means no page, is accepted. */
static inline quern__page page_acquire(const quern__page_store *store, quern__page page)
{
    store->reference_counts.items[page]++;
    return page;
}

static quern_result build_slots(quern__history *history, quern__snapshot *snapshot)
{
    const quern__entities *entities = &history->world->storage.entities;
    quern__saved_slots *slots = &snapshot->slots;
    *slots = (quern__saved_slots){
        .slot_count = entities->slot_count,
        .first_free = entities->first_free,
        .free_count = entities->free_count,
        .absent_count = entities->absent_count,
        .retired_count = entities->retired_count,
        .page_count = entities->pages.count,
        .group_count =
            (uint32_t)(((uint64_t)entities->slot_count + QUERN__SLOT_GROUP - 1) / QUERN__SLOT_GROUP)};
    slots->absent_highs = quern__page_allocate(&history->store, slots->page_count * sizeof(uint32_t));
    slots->groups = quern__page_allocate_zeros(&history->store, slots->group_count * sizeof(quern__page));
    if (slots->absent_highs == 0 || slots->groups == 0)
        return quern__history_fail_memory("a list of slots");
    if (slots->page_count > 0)
        memcpy(quern__page_memory(&history->store, slots->absent_highs), entities->absent_highs.items,
               slots->page_count * sizeof(uint32_t));
    const quern__saved_slots *base = &history->base.slots;
    for (uint32_t i = 0; i < slots->group_count; i++) {
        if (quern__entities_is_absent(entities, i >> (QUERN__PAGE_RECORDS_LOG2 - QUERN__SLOT_GROUP_LOG2)))
            continue;
        quern__page page;
        if (base->groups != 0 && i < base->group_count && !is_touched(entities->modified.items, i)) {
            page = page_acquire(&history->store, quern__pages_in(history, base->groups)[i]);
            assert(page_equals_slots(history, i, page));
        } else {
            page = quern__page_allocate(&history->store, QUERN__SLOT_GROUP * sizeof(quern__saved_slot));
            if (page == 0) return quern__history_fail_memory("slots of entities");
            copy_group(entities, i, (quern__saved_slot *)(void *)quern__page_memory(&history->store, page));
        }
        quern__pages_in(history, slots->groups)[i] = page;
    }
    return QUERN_OK;
}

static void release_slots(quern__history *history, const quern__snapshot *snapshot)
{
    const quern__page *groups = quern__pages_in(history, snapshot->slots.groups);
    for (uint32_t i = 0; i < snapshot->slots.group_count; i++)
        quern__page_release(&history->store, groups[i]);
}

static quern_result prepare_slots(quern__history *history, const quern__snapshot *snapshot)
{
    quern__storage *storage = &history->world->storage;
    const uint32_t *absent_highs =
        (void *)quern__page_memory(&history->store, snapshot->slots.absent_highs);
    if (quern__entities_prepare_pages(&storage->entities, &storage->allocator, snapshot->slots.page_count,
                                      absent_highs))
        return QUERN_OK;
    return quern__history_fail_memory("the records of entities");
}

static void restore_slots(quern__history *history, const quern__snapshot *snapshot)
{
    quern__storage *storage = &history->world->storage;
    quern__entities *entities = &storage->entities;
    const quern__saved_slots *slots = &snapshot->slots, *base = &history->base.slots;
    const uint32_t *absent_highs = (void *)quern__page_memory(&history->store, slots->absent_highs);
    const quern__page *groups = quern__pages_in(history, slots->groups);
    const quern__page *base_groups = quern__pages_in(history, base->groups);
    for (uint32_t i = 0; i < slots->group_count; i++) {
        if (groups[i] == 0) continue;
        if (i < base->group_count && base_groups[i] == groups[i] &&
            !is_touched(entities->modified.items, i))
            continue;
        const quern__saved_slot *saved =
            (const quern__saved_slot *)(void *)quern__page_memory(&history->store, groups[i]);
        quern__record *records = quern__entities_record(entities, i * QUERN__SLOT_GROUP);
        const uint32_t count = slots_in(slots->slot_count, i);
        /* An alive entity keeps the location in its record; restoring rows changes it if the row is different. */
        for (uint32_t k = 0; k < count; k++)
            if (saved[k].next == QUERN__SAVED_ALIVE)
                records[k].handle_high = saved[k].handle_high;
            else
                records[k] =
                    (quern__record){.handle_high = saved[k].handle_high, .archetype_number = saved[k].next};
    }
    quern__entities_restore_pages(entities, &storage->allocator, slots->page_count, absent_highs);
    entities->slot_count = slots->slot_count;
    entities->first_free = slots->first_free;
    entities->free_count = slots->free_count;
    entities->absent_count = slots->absent_count;
    entities->retired_count = slots->retired_count;
}

/* ------------------------------------------------------------------------------------ saving archetypes */

/* Returns what the base contains of an archetype of the world, or NULL. Call it for the archetypes of
 * the world in their order, with *index = 0 at first. If an archetype is returned, *index becomes 1 +
 * its index in the base; otherwise *index is unchanged. Archetypes of the base that the world no longer
 * has are skipped. */
static quern__saved_archetype *find_base_archetype(const quern__history *history,
                                                   const quern__archetype *archetype, uint32_t *index)
{
    for (uint32_t i = *index; history->base.archetypes != 0 && i < history->base.archetype_count; i++) {
        quern__saved_archetype *saved = quern__saved_archetype_at(history, &history->base, i);
        if (saved->identity != archetype->identity) continue;
        *index = i + 1;
        return saved;
    }
    return NULL;
}

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
        return add_transfer(history, target, source, bytes, true)
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
        uint32_t version = 1 + i; /* index among the versions of a chunk */
        if (i > archetype->column_count)
            version = archetype->row_versions->lanes[i - archetype->column_count - 1].version_index;
        const bool is_shared = is_known && (i == archetype->column_count || versions[version] <= base);
        if (is_shared)
            pages[i] = page_acquire(&it->history->store, base_pages[i]);
        else
            result = save_page(it, slot, i, &pages[i]);
        if (QUERN_CHECKS && is_shared) result = check_unchanged(it, slot, i, pages[i]);
    }
    return result;
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
            /* nothing has changed in the chunks before that one */
            quern__page *pages = quern__saved_pages(it->saved, slot);
            const quern__page *base_pages = quern__saved_pages(it->base, slot);
            const size_t page_count = (size_t)(noted - slot) * it->saved->slot_page_count;
            for (size_t i = 0; i < page_count; i++)
                pages[i] = page_acquire(&it->history->store, base_pages[i]);
            slot = noted;
        }
        if (slot < count) result = save_slot(it, slot);
    }
    return result;
}

static inline uint64_t *saved_versions(const quern__saved_archetype *saved)
{
    return (uint64_t *)(void *)((char *)(uintptr_t)saved + saved->versions_offset);
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
        memcpy(saved_versions(it.saved), archetype->versions.items,
               (size_t)archetype->chunk_count * it.saved->version_count * sizeof(uint64_t));
        memset(quern__saved_pages(it.saved, 0), 0,
               (size_t)archetype->chunk_count * it.saved->slot_page_count * sizeof(quern__page));
    }
    const quern__row_bits *row_bits = archetype->row_bits;
    if (row_bits != NULL) {
        memcpy(quern__saved_bit_columns(it.saved), row_bits->list,
               row_bits->count * sizeof *row_bits->list);
        memcpy(quern__saved_words(it.saved), row_bits->words,
               (size_t)archetype->chunk_count * row_bits->slot_words * sizeof(uint64_t));
    }
    return save_slots(&it);
}

static quern_result build_archetypes(quern__history *history, quern__snapshot *snapshot)
{
    const quern__storage *storage = &history->world->storage;
    const uint32_t count = storage->archetypes.count;
    snapshot->archetypes = quern__page_allocate_zeros(&history->store, count * sizeof(quern__page));
    if (snapshot->archetypes == 0) return quern__history_fail_memory("a list of archetypes");
    snapshot->archetype_count = count;
    quern_result result = QUERN_OK;
    uint32_t cursor = 0;
    for (uint32_t i = 0; i < count && result == QUERN_OK; i++) {
        const quern__archetype *archetype = storage->archetypes.items[i];
        const quern__saved_archetype *base = find_base_archetype(history, archetype, &cursor);
        quern__page page = 0;
        if (!QUERN_CHECKS && is_unchanged(history, archetype, base))
            page = page_acquire(&history->store,
                                quern__pages_in(history, history->base.archetypes)[cursor - 1]);
        else
            result = build_one(history, archetype, base, &page);
        quern__pages_in(history, snapshot->archetypes)[i] = page;
    }
    return result;
}

static bool has_single_reference(const quern__history *history, quern__page page)
{
    return page != 0 && history->store.reference_counts.items[page] == 1;
}

static void release_archetypes(quern__history *history, const quern__snapshot *snapshot)
{
    const quern__page *pages = quern__pages_in(history, snapshot->archetypes);
    for (uint32_t i = snapshot->archetype_count; i-- > 0;) { /* in reverse order: see history_internal.h */
        if (has_single_reference(history, pages[i])) {
            const quern__saved_archetype *saved = (void *)quern__page_memory(&history->store, pages[i]);
            for (size_t k = (size_t)saved->chunk_count * saved->slot_page_count; k-- > 0;)
                quern__page_release(&history->store, quern__saved_pages(saved, 0)[k]);
        }
        quern__page_release(&history->store, pages[i]);
    }
}

/* --------------------------------------------------------------------------------- restoring archetypes */

/* An archetype of the world that will be restored to the i-th archetype of the snapshot. */
typedef struct restore_target {
    quern__archetype *archetype;
    const quern__saved_archetype *saved;
    const quern__saved_archetype *base; /* the archetype in the base; NULL: the base lacks it */
    bool is_made;                       /* whether this call made the archetype */
} restore_target;

typedef struct restore {
    quern__history *history;
    quern__storage *storage;
    const quern__snapshot *snapshot;
    /* Scratch memory: `targets`, base_list() and list_archetypes(). */
    quern__page targets_page, base_page, list_page;
    restore_target *targets;
    uint32_t count;     /* targets found or made so far */
    bool order_differs; /* whether archetypes must be made, removed or reordered */
} restore;

/* Returns the list of archetypes in the base, by the index that the archetype has in the world before
 * the restore. */
static const quern__saved_archetype **base_list(const restore *it)
{
    return (const quern__saved_archetype **)(void *)quern__page_memory(&it->history->store, it->base_page);
}

/* Finds the archetypes of the world with the saved components and layouts, and makes those that it lacks. An archetype
 * usually has the same index as in the snapshot. */
static quern_result find_targets(restore *it)
{
    quern__storage *storage = it->storage;
    const uint32_t count = it->snapshot->archetype_count;
    uint32_t index = 0;
    it->order_differs = storage->archetypes.count != count;
    for (uint32_t i = 0; i < storage->archetypes.count; i++)
        base_list(it)[i] = find_base_archetype(it->history, storage->archetypes.items[i], &index);
    for (uint32_t i = 0; i < count; i++) {
        const quern__saved_archetype *saved = quern__saved_archetype_at(it->history, it->snapshot, i);
        quern__archetype *archetype = i < storage->archetypes.count ? storage->archetypes.items[i] : NULL;
        if (archetype == NULL || archetype->identity != saved->identity)
            archetype =
                quern__storage_find_archetype(storage, saved->component_indices, saved->component_count);
        const bool is_made = archetype == NULL || archetype->layout_index != saved->layout_index;
        if (is_made) {
            const quern_result result = quern__storage_create_archetype(
                storage, saved->component_indices, saved->component_count, saved->layout_index, &archetype);
            if (result != QUERN_OK) return result;
        }
        it->order_differs |= is_made || archetype->index != i;
        it->targets[it->count++] =
            (restore_target){.archetype = archetype,
                             .saved = saved,
                             .base = is_made ? NULL : base_list(it)[archetype->index],
                             .is_made = is_made};
        assert(archetype->shape.row_capacity == saved->row_capacity);
    }
    if (it->order_differs && !quern__storage_reserve_archetypes(storage, count))
        return quern__history_fail_memory("archetypes");
    return QUERN_OK;
}

/* Whether the rows of the chunk have the saved handles. Only in that case can its columns be unchanged. */
static bool has_same_rows(const restore *it, const restore_target *target, uint32_t slot)
{
    const quern__archetype *archetype = target->archetype;
    const uint32_t last = target->saved->column_count;
    const uint32_t rows = slot < archetype->chunk_count ? archetype->slots[slot].row_count : 0;
    return target->base != NULL && slot < target->base->chunk_count && slot < target->saved->chunk_count &&
           rows == quern__saved_row_count(target->saved, slot) &&
           rows == quern__saved_row_count(target->base, slot) &&
           quern__versions_of(&archetype->versions, slot)[0] <= it->history->base_version &&
           quern__saved_pages(target->base, slot)[last] == quern__saved_pages(target->saved, slot)[last];
}

static bool has_same_column(const restore *it, const restore_target *target, uint32_t slot, uint32_t column)
{
    return quern__versions_of(&target->archetype->versions, slot)[1 + column] <=
               it->history->base_version &&
           quern__saved_pages(target->base, slot)[column] ==
               quern__saved_pages(target->saved, slot)[column];
}

static bool add_column_restore(quern__history *history, quern__column_restore item)
{
    if (!quern__array_reserve(&history->store.allocator, &history->column_restores,
                              history->column_restores.count + 1))
        return false;
    history->column_restores.items[history->column_restores.count++] = item;
    return true;
}

/* Lists what differs in a chunk: columns without hooks and row versions as transfers, columns with hooks and handles as
 * column restores. Returns false if out of memory. */
static bool list_chunk(const restore *it, uint32_t i, uint32_t slot)
{
    quern__history *history = it->history;
    const restore_target *target = &it->targets[i];
    const quern__archetype *archetype = target->archetype;
    const quern__saved_archetype *saved = target->saved;
    const quern__page *pages = quern__saved_pages(saved, slot);
    const uint32_t rows = quern__saved_row_count(saved, slot);
    const bool has_rows = has_same_rows(it, target, slot);
    if (!has_rows && !add_column_restore(history, (quern__column_restore){i, slot, QUERN__RESTORE_HANDLES}))
        return false;
    for (uint32_t c = 0; c < saved->column_count; c++) {
        const quern__column *column = &archetype->columns[c];
        if (has_rows && has_same_column(it, target, slot, c)) continue;
        history->copied_bytes += (uint64_t)rows * column->size_bytes;
        history->copied_count++;
        const bool is_listed =
            quern__hooks_exist(&column->type->hooks)
                ? add_column_restore(history, (quern__column_restore){i, slot, c})
                : add_transfer(history,
                               quern__column_value(column, quern__slot_chunk(&archetype->slots[slot]), 0),
                               quern__page_memory(&history->store, pages[c]),
                               (size_t)rows * column->size_bytes, archetype->shape.shift == 0);
        if (!is_listed) return false;
    }
    for (uint32_t lane = 0, page = saved->column_count + 1; page < saved->slot_page_count; lane++, page++) {
        const uint32_t version_index = archetype->row_versions->lanes[lane].version_index;
        if (has_rows &&
            quern__versions_of(&archetype->versions, slot)[version_index] <= history->base_version &&
            quern__saved_pages(target->base, slot)[page] == pages[page])
            continue;
        uint64_t *versions = quern__row_versions_lane(archetype->row_versions, lane, slot);
        const void *memory = quern__page_memory(&history->store, pages[page]);
        history->copied_bytes += rows * sizeof(uint64_t);
        history->copied_count++;
        quern__row_groups_raise_to(versions, memory, rows);
        if (!add_transfer(history, (char *)versions, memory, rows * sizeof(uint64_t), false)) return false;
    }
    return true;
}

/* Reserves rows of an archetype and lists what differs in its chunks. Most chunks are full, have unchanged versions, and
 * share all pages between base and snapshot: these are skipped without checking each column. */
static quern_result prepare_target(const restore *it, uint32_t i)
{
    const restore_target *target = &it->targets[i];
    const quern__versions *versions = &target->archetype->versions;
    const uint64_t rows = quern__archetype_row_count(target->archetype);
    if (target->saved->row_count > rows) {
        const quern_result result = quern__rows_reserve(it->storage, target->archetype,
                                                        (uint32_t)(target->saved->row_count - rows));
        if (result != QUERN_OK) return result;
    }
    /* number of chunks, counted from the first, that are full in the world, in the base and in the snapshot */
    uint32_t count = target->base != NULL ? target->archetype->chunk_count : 0;
    if (count > 0 && count > target->base->chunk_count) count = target->base->chunk_count;
    if (count > target->saved->chunk_count) count = target->saved->chunk_count;
    if (count > 0) count--;
    /* index in versions->items of the first changed version after the chunks checked so far */
    size_t first_changed = 0;
    for (uint32_t slot = 0; slot < target->saved->chunk_count; slot++) {
        const size_t first = (size_t)slot * versions->stride;
        if (slot < count && first_changed <= first)
            first_changed = quern__versions_find_later(
                versions->items, first, (size_t)count * versions->stride, it->history->base_version);
        const bool is_same =
            slot < count && first_changed >= first + versions->stride &&
            (target->base == target->saved ||
             memcmp(quern__saved_pages(target->base, slot), quern__saved_pages(target->saved, slot),
                    target->saved->slot_page_count * sizeof(quern__page)) == 0);
        if (!is_same && !list_chunk(it, i, slot)) return quern__history_fail_memory("a list of columns");
    }
    return QUERN_OK;
}

/* Destroys values with hooks in columns that will be replaced or removed. */
static void destroy_values(const restore *it, const restore_target *target)
{
    const quern__archetype *archetype = target->archetype;
    if (!archetype->has_destroy) return;
    for (uint32_t slot = 0; slot < archetype->chunk_count; slot++) {
        const bool has_rows = has_same_rows(it, target, slot);
        for (uint32_t i = 0; i < archetype->column_count; i++) {
            const quern__column *column = &archetype->columns[i];
            if (column->type->hooks.destroy == NULL) continue;
            if (has_rows && has_same_column(it, target, slot, i)) continue;
            quern__type_destroy(column->type,
                                quern__column_value(column, quern__slot_chunk(&archetype->slots[slot]), 0),
                                archetype->slots[slot].row_count);
        }
    }
}

static void set_row_count(const restore *it, const restore_target *target)
{
    quern__archetype *archetype = target->archetype;
    const uint64_t rows = quern__archetype_row_count(archetype), wanted = target->saved->row_count;
    if (rows < wanted) quern__rows_append_many(it->storage, archetype, (uint32_t)(wanted - rows));
    if (rows <= wanted) return;
    for (uint32_t slot = target->saved->chunk_count; slot < archetype->chunk_count; slot++)
        quern__count_move(archetype, quern__location_make(quern__slot_chunk(&archetype->slots[slot]), 0));
    quern__rows_cut(it->storage, archetype, (uint32_t)(rows - wanted));
}

static void restore_versions(const restore_target *target)
{
    quern__archetype *archetype = target->archetype;
    const quern__saved_archetype *saved = target->saved;
    archetype->identity = saved->identity;
    archetype->empty_since = saved->empty_since;
    if (saved->chunk_count > 0)
        memcpy(archetype->versions.items, saved_versions(saved),
               (size_t)saved->chunk_count * saved->version_count * sizeof(uint64_t));
    for (uint32_t i = 0; archetype->row_bits != NULL && i < archetype->row_bits->count; i++) {
        /* if the snapshot lacks the bit column or the chunk, all bits become 0 */
        const quern__row_bits *row_bits = archetype->row_bits;
        const quern__bit_column *list = quern__saved_bit_columns(saved);
        uint32_t index = 0;
        while (index < saved->bit_column_count &&
               (list[index].kind != row_bits->list[i].kind || list[index].id != row_bits->list[i].id))
            index++;
        const size_t bytes = row_bits->bit_column_words * sizeof(uint64_t);
        for (uint32_t slot = 0; slot < row_bits->slot_capacity; slot++) {
            uint64_t *words = quern__bit_column_words(row_bits, i, slot) - 1;
            const size_t first =
                ((size_t)slot * saved->bit_column_count + index) * row_bits->bit_column_words;
            if (index < saved->bit_column_count && slot < saved->chunk_count)
                memcpy(words, quern__saved_words(saved) + first, bytes);
            else
                memset(words, 0, bytes);
        }
    }
}

static void restore_rows(const restore *it)
{
    quern__history *history = it->history;
    for (uint32_t i = 0; i < it->count; i++)
        destroy_values(it, &it->targets[i]);
    for (uint32_t i = 0; i < it->count; i++)
        set_row_count(it, &it->targets[i]);
    run_transfers(history, false);
    for (uint32_t i = 0; i < history->column_restores.count; i++) {
        const quern__column_restore *item = &history->column_restores.items[i];
        const restore_target *target = &it->targets[item->archetype];
        const quern__archetype *archetype = target->archetype;
        const bool is_rows = item->column == QUERN__RESTORE_HANDLES;
        const uint32_t column = is_rows ? target->saved->column_count : item->column;
        const uint32_t rows = quern__saved_row_count(target->saved, item->slot);
        const quern__page page = quern__saved_pages(target->saved, item->slot)[column];
        const char *memory = quern__page_memory(&it->history->store, page);
        quern__chunk *chunk = quern__slot_chunk(&archetype->slots[item->slot]);
        if (is_rows)
            quern__rows_restore(it->storage, archetype, quern__location_make(chunk, 0),
                                (const quern_entity *)(const void *)memory, rows);
        else
            quern__type_copy(archetype->columns[column].type,
                             quern__column_value(&archetype->columns[column], chunk, 0), memory, rows);
    }
    for (uint32_t i = 0; i < it->count; i++)
        restore_versions(&it->targets[i]);
    if (history->column_restores.count > 0) quern__structure_changed(it->storage);
}

/* -------------------------------------------------------------------------------------- links and edges */

/* Saves and restores the links and edges of all relations, in groups of slots. A relation that is newer than
 * the snapshot has no links and edges after a restore. */

enum { GROUP_BYTES = QUERN__LINK_GROUP * sizeof(quern__link_node) };

_Static_assert(QUERN__GROUPS_IN_PAGE == 64, "a word has the marks of a page");
_Static_assert((int)QUERN__EDGE_GROUP == (int)QUERN__LINK_GROUP &&
                   (int)QUERN__EDGE_PAGE_SLOTS == (int)QUERN__LINK_PAGE_SLOTS,
               "links and edges have the same groups");

static quern__link_node *group_at(const quern__links *links, uint32_t group)
{
    return quern__links_at(links, group * QUERN__LINK_GROUP);
}

static const quern__edge_list *list_at(const quern__edges *edges, uint32_t group, uint32_t set)
{
    const uint32_t slot = group * QUERN__EDGE_GROUP + set % QUERN__EDGE_GROUP;
    return set < QUERN__EDGE_GROUP ? quern__edges_targets(edges, slot) : quern__edges_sources(edges, slot);
}

/* Whether the page equals the links or edges of the group in the world. For builds with checks. */
static inline bool has_saved_group(const quern__history *history, const quern__relation *relation,
                                   uint32_t group, quern__page page)
{
    if (!relation->is_many) {
        const void *now = group_at(&relation->links, group);
        return memcmp(quern__page_memory(&history->store, page), now, GROUP_BYTES) == 0;
    }
    for (uint32_t set = 0; set < QUERN__SAVED_EDGE_SETS; set++) {
        const quern__edge_list *list = list_at(&relation->edges, group, set);
        const quern__edge_range saved = quern__saved_edge_set(history, page, set);
        uint32_t count = 0;
        if (list->count != saved.count) return false;
        for (uint32_t i = 0; list->count > 0 && i < quern__edge_list_ranges(list); i++) {
            const quern__edge_range range = quern__edge_list_range(list, i);
            /* NOLINTNEXTLINE(clang-analyzer-core.NonNullParamChecker): both have members, and as many */
            if (memcmp(range.slots, saved.slots + count, range.count * sizeof *range.slots) != 0)
                return false;
            count += range.count;
        }
    }
    return true;
}

/* Saves a group of links or edges. *out_page remains 0 if the group has no edges. Errors: OUT_OF_MEMORY. */
static quern_result save_group(quern__history *history, const quern__relation *relation, uint32_t group,
                               quern__page *out_page)
{
    const quern__links *links = &relation->links;
    const quern__edges *edges = &relation->edges;
    if (!relation->is_many) {
        *out_page = quern__page_allocate(&history->store, GROUP_BYTES);
        if (*out_page == 0) return quern__history_fail_memory("links of entities");
        memcpy(quern__page_memory(&history->store, *out_page), group_at(links, group), GROUP_BYTES);
        return QUERN_OK;
    }
    quern__saved_edges head;
    uint32_t count = 0;
    for (uint32_t set = 0; set < QUERN__SAVED_EDGE_SETS; set++) {
        head.first[set] = count;
        count += list_at(edges, group, set)->count;
    }
    head.first[QUERN__SAVED_EDGE_SETS] = count;
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

static quern_result build_links(quern__history *history, quern__snapshot *snapshot)
{
    const uint32_t relation_count = history->world->storage.relations->list.count;
    if (relation_count == 0) return QUERN_OK;
    snapshot->relations =
        quern__page_allocate_zeros(&history->store, relation_count * sizeof(quern__saved_links));
    if (snapshot->relations == 0) return quern__history_fail_memory("a list of relations");
    snapshot->relation_count = relation_count;
    quern_result result = QUERN_OK;
    for (uint32_t i = 0; i < relation_count && result == QUERN_OK; i++) {
        const quern__relation *relation = history->world->storage.relations->list.items[i];
        const quern__saved_links base = quern__saved_links_of(history, &history->base, i);
        const uint32_t page_count =
            relation->is_many ? relation->edges.pages.count : relation->links.pages.count;
        const uint32_t count = page_count * QUERN__GROUPS_IN_PAGE;
        const quern__page groups = quern__page_allocate_zeros(&history->store, count * sizeof(quern__page));
        if (groups == 0) return quern__history_fail_memory("a list of links");
        quern__saved_links_in(history, snapshot)[i] = (quern__saved_links){page_count, groups};
        const uint64_t *marks =
            relation->is_many ? relation->edges.touched.items : relation->links.touched.items;
        for (uint32_t group = 0; group < count && result == QUERN_OK; group++) {
            if (relation->is_many ? !quern__edges_has_page(&relation->edges, group * QUERN__EDGE_GROUP)
                                  : relation->links.pages.items[group / QUERN__GROUPS_IN_PAGE] == NULL)
                continue;
            /* a group without edges has no page in the base either */
            quern__page page = quern__saved_group(history, &base, group);
            const bool is_known =
                page != 0 || (relation->is_many && group < base.page_count * QUERN__GROUPS_IN_PAGE);
            if (is_known && !is_touched(marks, group)) {
                assert(has_saved_group(history, relation, group, page));
                page = page_acquire(&history->store, page);
            } else {
                page = 0;
                result = save_group(history, relation, group, &page);
            }
            quern__pages_in(history, groups)[group] = page;
        }
    }
    return result;
}

static void release_links(quern__history *history, const quern__snapshot *snapshot)
{
    for (uint32_t i = 0; i < snapshot->relation_count; i++) {
        const quern__saved_links saved = quern__saved_links_in(history, snapshot)[i];
        for (uint32_t group = 0; group < saved.page_count * QUERN__GROUPS_IN_PAGE; group++)
            quern__page_release(&history->store, quern__pages_in(history, saved.groups)[group]);
        quern__page_release(&history->store, saved.groups);
    }
}

/* Whether the edges of a group in the world differ from the saved ones, or may do so. */
static bool has_other_edges(const quern__history *history, const quern__edges *edges,
                            const quern__saved_links *saved, const quern__saved_links *base, uint32_t group)
{
    const quern__page page = quern__saved_group(history, saved, group);
    if (!quern__edges_has_page(edges, group * QUERN__EDGE_GROUP)) return page != 0;
    return page != quern__saved_group(history, base, group) || is_touched(edges->touched.items, group);
}

static bool build_set(quern__history *history, quern__edge_pool *pool, quern__page page, uint32_t set,
                      quern__edge_list *out_list)
{
    const quern__edge_range saved = quern__saved_edge_set(history, page, set);
    return quern__edge_list_build(pool, &history->world->storage.allocator, saved.slots, saved.count,
                                  out_list);
}

/* Builds the sets of a group. undo_edges or restore_links ends the list of built sets. Errors:
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

static quern_result prepare_links(quern__history *history, const quern__snapshot *snapshot)
{
    quern__storage *storage = &history->world->storage;
    quern_result result = QUERN_OK;
    for (uint32_t i = 0; i < snapshot->relation_count; i++) {
        quern__relation *relation = storage->relations->list.items[i];
        const quern__saved_links saved = quern__saved_links_of(history, snapshot, i);
        const quern__saved_links base = quern__saved_links_of(history, &history->base, i);
        const uint32_t step =
            relation->is_many ? 1 : QUERN__GROUPS_IN_PAGE; /* a page of links has all or no groups */
        for (uint32_t group = 0; group < saved.page_count * QUERN__GROUPS_IN_PAGE && result == QUERN_OK;
             group += step) {
            const quern__page page = quern__saved_group(history, &saved, group);
            if (relation->is_many) {
                if (has_other_edges(history, &relation->edges, &saved, &base, group))
                    result = prepare_edge_group(history, &relation->edges, group, page);
            } else if (page != 0 && !quern__links_reserve(&relation->links, &storage->allocator,
                                                          group * QUERN__LINK_GROUP)) {
                result = quern__history_fail_memory("the links of entities");
            }
        }
    }
    return result;
}

/* Clears all groups of edges that differ; restore_links then sets those of the snapshot. */
static bool clear_edges(const quern__history *history, quern__edges *edges, const quern__saved_links *saved,
                        const quern__saved_links *base)
{
    bool is_other = false;
    for (uint32_t group = 0; group < edges->pages.count * QUERN__GROUPS_IN_PAGE; group++) {
        if (!quern__edges_has_page(edges, group * QUERN__EDGE_GROUP) ||
            !has_other_edges(history, edges, saved, base, group))
            continue;
        for (uint32_t i = 0; i < QUERN__EDGE_GROUP; i++)
            quern__edges_clear(edges, &history->world->storage.allocator, group * QUERN__EDGE_GROUP + i);
        is_other = true;
    }
    return is_other;
}

static void restore_links(quern__history *history, const quern__snapshot *snapshot)
{
    const quern__relations *relations = history->world->storage.relations;
    for (uint32_t i = 0; i < relations->list.count; i++) {
        quern__links *links = &relations->list.items[i]->links;
        const quern__saved_links saved = quern__saved_links_of(history, snapshot, i);
        const quern__saved_links base = quern__saved_links_of(history, &history->base, i);
        bool is_other = false;
        for (uint32_t group = 0; group < links->pages.count * QUERN__GROUPS_IN_PAGE; group++) {
            if (links->pages.items[group / QUERN__GROUPS_IN_PAGE] == NULL) continue;
            const quern__page page = quern__saved_group(history, &saved, group);
            if (page == quern__saved_group(history, &base, group) &&
                !is_touched(links->touched.items, group))
                continue;
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

static void undo_edges(quern__history *history)
{
    const quern_allocator *allocator = &history->world->storage.allocator;
    for (uint32_t i = 0; i < history->edge_restores.count; i++) {
        quern__edge_restore *built = &history->edge_restores.items[i];
        quern__edge_list_release(built->edges->pool, allocator, &built->node.targets);
        quern__edge_list_release(built->edges->pool, allocator, &built->node.sources);
    }
    history->edge_restores.count = 0;
}

/* ------------------------------------------------------------------------------------------------ names */

/* All names are copied if any name has changed since the base. */

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

static quern_result build_names(quern__history *history, quern__snapshot *snapshot)
{
    const quern__names *names = history->world->storage.names;
    snapshot->names_version = names->version;
    if (history->base.names != 0 && history->base.names_version == names->version) {
        snapshot->names = page_acquire(&history->store, history->base.names);
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

static quern_result prepare_names(quern__history *history, const quern__snapshot *snapshot)
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

static void restore_names(quern__history *history, const quern__snapshot *snapshot)
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

/* -------------------------------------------------------------------------------------------- resources */

/* Resources are always copied, each into a page of its own. */

static quern_result build_resources(quern__history *history, quern__snapshot *snapshot)
{
    const quern__resources *resources = &history->world->resources;
    const uint32_t count = resources->list.count;
    snapshot->resources = quern__page_allocate_zeros(&history->store, count * sizeof(quern__page));
    if (snapshot->resources == 0) return quern__history_fail_memory("a list of resources");
    snapshot->resource_count = count;
    for (uint32_t i = 0; i < count; i++) {
        const quern__resource *resource = &resources->list.items[i];
        const quern__type *type = &resource->type;
        if (type->hooks.copy == NULL && (type->hooks.move != NULL || type->hooks.destroy != NULL))
            return quern__fail(
                QUERN_ERROR_INVALID_ARGUMENT,
                "resource '%s' has a move or destroy hook and no copy hook, so a snapshot cannot copy its "
                "value: add a copy hook, or store the value outside of the world",
                type->name);
        const quern__page page = quern__page_allocate(&history->store, type->size_bytes);
        if (page == 0) return quern__history_fail_memory("a resource");
        quern__type_copy(type, quern__page_memory(&history->store, page), resource->value, 1);
        quern__pages_in(history, snapshot->resources)[i] = page;
    }
    return QUERN_OK;
}

/* Destroys the values with the types of the world: the entry of a page cannot name the type, because resources move in
 * memory when others are registered. Each page of a value is in one list only. */
static void release_resources(quern__history *history, const quern__snapshot *snapshot)
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

static void restore_resources(quern__history *history, const quern__snapshot *snapshot)
{
    const quern__resources *resources = &history->world->resources;
    for (uint32_t i = 0; i < snapshot->resource_count; i++) {
        const quern__resource *resource = &resources->list.items[i];
        const quern__page page = quern__pages_in(history, snapshot->resources)[i];
        quern__type_destroy(&resource->type, resource->value, 1);
        quern__type_copy(&resource->type, resource->value, quern__page_memory(&history->store, page), 1);
    }
}

/* -------------------------------------------------------------------------------------------- snapshots */

/* The number of pages that a snapshot refers to directly. */
enum { SNAPSHOT_PAGES = 11 };

static void list_pages(const quern__snapshot *snapshot, quern__page *pages)
{
    const quern__page list[SNAPSHOT_PAGES] = {snapshot->archetypes,         snapshot->relations,
                                              snapshot->resources,          snapshot->names,
                                              snapshot->world_state,        snapshot->caller_state,
                                              snapshot->slots.absent_highs, snapshot->slots.groups,
                                              snapshot->commands,           snapshot->command_values.list,
                                              snapshot->event_values.list};
    memcpy(pages, list, sizeof list);
}

void quern__snapshot_acquire(const quern__history *history, const quern__snapshot *snapshot)
{
    quern__page pages[SNAPSHOT_PAGES];
    list_pages(snapshot, pages);
    for (uint32_t i = 0; i < SNAPSHOT_PAGES; i++)
        page_acquire(&history->store, pages[i]);
}

/* Releases the listed pages if the caller holds the last reference to the list. The list itself is released with the
 * snapshot. */
static void value_pages_release(quern__history *history, const quern__value_pages *pages)
{
    if (!has_single_reference(history, pages->list)) return;
    for (uint32_t i = 0; i < pages->count; i++)
        quern__page_release(&history->store, quern__pages_in(history, pages->list)[i]);
}

void quern__snapshot_release(quern__history *history, const quern__snapshot *snapshot)
{
    if (has_single_reference(history, snapshot->archetypes)) release_archetypes(history, snapshot);
    if (has_single_reference(history, snapshot->relations)) release_links(history, snapshot);
    if (has_single_reference(history, snapshot->resources)) release_resources(history, snapshot);
    if (has_single_reference(history, snapshot->slots.groups)) release_slots(history, snapshot);
    value_pages_release(history, &snapshot->command_values);
    value_pages_release(history, &snapshot->event_values);
    quern__page pages[SNAPSHOT_PAGES];
    list_pages(snapshot, pages);
    for (uint32_t i = 0; i < SNAPSHOT_PAGES; i++)
        quern__page_release(&history->store, pages[i]);
}

quern_result quern__history_build(quern__history *history, uint64_t frame, size_t caller_state_bytes,
                                  quern__snapshot *out_snapshot)
{
    *out_snapshot = (quern__snapshot){.frame = frame};
    history->transfers.count = 0;
    history->copied_bytes = history->copied_count = 0;
    quern_result result = QUERN_OK;
    out_snapshot->caller_state = quern__page_allocate(&history->store, caller_state_bytes);
    if (out_snapshot->caller_state == 0) result = quern__history_fail_memory("the state of schedules");
    if (result == QUERN_OK) result = quern__build_world_state(history, out_snapshot);
    if (result == QUERN_OK) result = build_archetypes(history, out_snapshot);
    if (result == QUERN_OK) result = build_slots(history, out_snapshot);
    if (result == QUERN_OK) result = build_links(history, out_snapshot);
    if (result == QUERN_OK) result = build_names(history, out_snapshot);
    if (result == QUERN_OK) result = build_resources(history, out_snapshot);
    if (result != QUERN_OK)
        quern__snapshot_release(history, out_snapshot);
    else
        run_transfers(history, true);
    return result;
}

/* Returns the archetypes of the world in the order of the snapshot. */
static quern__archetype **list_archetypes(const restore *it)
{
    quern__archetype **list =
        (quern__archetype **)(void *)quern__page_memory(&it->history->store, it->list_page);
    for (uint32_t i = 0; i < it->count; i++)
        list[i] = it->targets[i].archetype;
    return list;
}

/* Restores a world to a snapshot, in two steps.
 *
 *   prepare   finds or makes an archetype of the world for each archetype of the snapshot; reserves rows,
 *             records, links and names; lists the columns that differ. May fail, and is undone then.
 *   restore   removes the rows of archetypes that the snapshot lacks; restores the slots; orders the
 *             archetypes; destroys values with hooks that are replaced; appends or removes rows; copies
 *             values and places handles; restores links, names, resources and the world state. Cannot
 *             fail. */

static quern_result prepare(restore *it)
{
    quern__page_store *store = &it->history->store;
    const uint32_t count = it->snapshot->archetype_count;
    it->targets_page = quern__page_allocate(store, count * sizeof(restore_target));
    it->base_page = quern__page_allocate(store, it->storage->archetypes.count * sizeof(void *));
    it->list_page = quern__page_allocate(store, count * sizeof(quern__archetype *));
    it->targets = (restore_target *)(void *)quern__page_memory(store, it->targets_page);
    if (it->targets_page == 0 || it->base_page == 0 || it->list_page == 0)
        return quern__history_fail_memory("a list of archetypes");
    quern_result result = find_targets(it);
    for (uint32_t i = 0; i < it->count && result == QUERN_OK; i++)
        result = prepare_target(it, i);
    if (result == QUERN_OK) result = prepare_slots(it->history, it->snapshot);
    if (result == QUERN_OK) result = prepare_links(it->history, it->snapshot);
    if (result == QUERN_OK) result = prepare_names(it->history, it->snapshot);
    if (result == QUERN_OK)
        result = quern__prepare_world_state(it->history, it->snapshot, list_archetypes(it));
    return result;
}

static void undo(const restore *it)
{
    const quern_allocator *allocator = &it->storage->allocator;
    for (uint32_t i = 0; i < it->count; i++)
        it->targets[i].archetype->is_removed = it->targets[i].is_made;
    quern__reactions_forget_removed(it->storage);
    for (uint32_t i = 0; i < it->count; i++) {
        quern__archetype *archetype = it->targets[i].archetype;
        if (!it->targets[i].is_made) {
            if (archetype->reserved_count > 0) quern__rows_unreserve(it->storage, archetype);
            continue;
        }
        quern__archetype_release_spare_chunks(archetype, &it->storage->slabs, allocator);
        quern__row_listeners_release(archetype, allocator);
        quern__archetype_release(archetype, allocator);
    }
    quern__entities_cancel_pages(&it->storage->entities, allocator);
    undo_edges(it->history);
    quern__undo_world_state(it->history);
}

static void restore_all(const restore *it)
{
    if (it->order_differs) {
        /* Marks the archetypes that the snapshot lacks as removed, destroys their values and removes
         * their rows. */
        quern__storage *storage = it->storage;
        for (uint32_t i = 0; i < storage->archetypes.count; i++)
            storage->archetypes.items[i]->is_removed = true;
        for (uint32_t i = 0; i < it->count; i++)
            it->targets[i].archetype->is_removed = false;
        for (uint32_t i = 0; i < storage->archetypes.count; i++) {
            quern__archetype *archetype = storage->archetypes.items[i];
            if (!archetype->is_removed) continue;
            quern__archetype_destroy_values(archetype);
            for (uint32_t slot = 0; slot < archetype->chunk_count; slot++)
                quern__count_move(archetype,
                                  quern__location_make(quern__slot_chunk(&archetype->slots[slot]), 0));
            if (archetype->chunk_count > 0) quern__rows_cut_all(storage, archetype);
        }
    }
    restore_slots(it->history, it->snapshot);
    if (it->order_differs) quern__world_set_archetypes(it->history->world, list_archetypes(it), it->count);
    restore_rows(it);
    restore_links(it->history, it->snapshot);
    restore_names(it->history, it->snapshot);
    restore_resources(it->history, it->snapshot);
    quern__restore_world_state(it->history, it->snapshot);
}

/* Calls on_remove for the values that the snapshot lacks. */
static void call_hooks(const restore *it, quern__hooked_frame *hooked)
{
    for (uint32_t i = 0; i < it->count; i++) {
        const restore_target *target = &it->targets[i];
        for (uint32_t slot = 0; slot < target->saved->chunk_count; slot++) {
            const quern__page page = quern__saved_pages(target->saved, slot)[target->saved->column_count];
            quern__hooked_frame_keep(
                hooked, target->archetype,
                (const quern_entity *)(const void *)quern__page_memory(&it->history->store, page),
                quern__saved_row_count(target->saved, slot));
        }
    }
    quern__hooked_frame_before(hooked);
}

quern_result quern__history_restore(quern__history *history, const quern__snapshot *snapshot)
{
    restore it = {.history = history, .storage = &history->world->storage, .snapshot = snapshot};
    history->transfers.count = history->column_restores.count = 0;
    history->copied_bytes = history->copied_count = 0;
    quern__hooked_frame hooked;
    quern_result result = quern__hooked_frame_begin(&hooked, it.storage, snapshot->slots.slot_count);
    if (result == QUERN_OK) {
        result = prepare(&it);
        if (result == QUERN_OK) {
            if (hooked.count > 0) call_hooks(&it, &hooked);
            restore_all(&it);
        } else {
            undo(&it);
        }
    }
    quern__page_release(&it.history->store, it.targets_page);
    quern__page_release(&it.history->store, it.base_page);
    quern__page_release(&it.history->store, it.list_page);
    if (result == QUERN_OK) {
        quern__history_set_base(history, snapshot);
        quern__hooked_frame_after(&hooked); /* what hooks write is newer than the frame */
    }
    quern__hooked_frame_release(&hooked);
    return result;
}
