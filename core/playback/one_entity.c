/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Input: streams in order. Output: the changed entity. Everything that can fail is done before the world
 * changes, and a failure is left to the stages. */
#include "core/playback/one_entity.h"

#include "core/playback/apply.h"
#include "core/reactions/reaction.h"
#include "core/storage/change.h"

/* Maximum number of items for which the fast path is tried; more items rarely all concern one entity. */
enum { MOST_ITEMS = 16 };

/* Whether there are few commands, all on one entity, which only change its row. */
static bool are_on_one_entity(const quern__gathered *gathered)
{
    quern__command_batch *first = gathered->streams.items[0].stream->first;
    if (quern__command_kinds[first->operation->kind].merge_kind != QUERN__MERGE_ROW || first->is_view ||
        gathered->item_count > MOST_ITEMS)
        return false;
    if (gathered->item_count == 1) return true;
    const quern_entity entity = quern__batch_item(first, 0)->entity;
    for (uint32_t i = 0; i < gathered->streams.count; i++) {
        const quern__stream *stream = gathered->streams.items[i].stream;
        quern__command_batch *batch = stream->first;
        for (uint32_t k = 0; k < stream->batch_count; k++) {
            if (k > 0) batch = quern__batch_next(batch);
            if (quern__command_kinds[batch->operation->kind].merge_kind != QUERN__MERGE_ROW ||
                batch->is_view)
                return false;
            const quern__item *item = quern__batch_item(batch, 0);
            for (uint32_t n = 0; n < batch->item_count;
                 n++, item = quern__item_next(item, batch->operation))
                if (!quern_entity_equal(item->entity, entity)) return false;
        }
    }
    return true;
}

/* Adds the items of a batch to the edit. edit->item is NULL before the first command. Returns false if a
 * command follows a destroy, or if out of memory. */
static bool merge_batch(quern__scratch *scratch, quern__command_batch *batch, quern__edit *edit)
{
    const quern__operation *operation = batch->operation;
    quern__item *item = quern__batch_item(batch, 0);
    for (uint32_t i = 0; i < batch->item_count; i++, item = quern__item_next(item, operation)) {
        if (edit->item == NULL) {
            edit->item = (char *)item;
            edit->sequence = quern__sequences_extend(&scratch->sequences, edit->sequence, operation);
            if (edit->sequence == QUERN__SEQUENCE_NONE) return false;
        } else if (scratch->sequences.list.items[edit->sequence].is_destroyed ||
                   !quern__edit_extend(scratch, edit, operation, (char *)item)) {
            return false;
        }
    }
    return true;
}

static bool merge(quern__scratch *scratch, const quern__gathered *gathered, quern__edit *edit)
{
    for (uint32_t i = 0; i < gathered->streams.count; i++) {
        const quern__stream *stream = gathered->streams.items[i].stream;
        quern__command_batch *batch = stream->first;
        for (uint32_t k = 0; k < stream->batch_count; k++) {
            if (k > 0) batch = quern__batch_next(batch);
            if (!merge_batch(scratch, batch, edit)) return false;
        }
    }
    return true;
}

/* Does everything that can fail after merging. A sequence that is not completely resolved must not stay in the
 * tree. */
static bool resolve(quern__scratch *scratch, quern__resolved *resolved, quern__storage *storage,
                    quern__sequence *sequence)
{
    quern__archetype *source = sequence->source;
    if (!sequence->is_resolved &&
        quern__sequence_resolve(resolved, storage, &scratch->sequences, sequence) != QUERN_OK) {
        quern__sequences_clear(&scratch->sequences);
        return false;
    }
    if (sequence->is_refused) return false;
    quern__archetype *target = sequence->is_destroyed ? NULL : sequence->target;
    quern__leaving_begin(storage);
    return target == source || (quern__leaving_reserve(storage, source, target, 1) == QUERN_OK &&
                                (target == NULL || quern__rows_reserve(storage, target, 1) == QUERN_OK));
}

/* Fills the gap with the archetype's last row, unless it is the last row, and removes the last row. */
static void close_gap(quern__storage *storage, quern__archetype *archetype, uintptr_t gap)
{
    const quern__chunk_slot *slot = archetype->last_slot;
    const uintptr_t last = quern__location_make(slot->chunk, slot->row_count - 1);
    if (last != gap) quern__rows_relocate(storage, archetype, gap, last, 1);
    quern__rows_cut(storage, archetype, 1);
}

/* Applies the edit, in the order of the stages: the row arrives before the gap closes, and slots are freed
 * last. */
static void apply(const quern__scratch *scratch, quern__storage *storage, const quern__sequence *sequence,
                  uintptr_t location, const quern__edit *edit, uint32_t slot)
{
    storage->reactions->orders_by_row = true;
    if (sequence->is_destroyed) {
        quern__rows_leave(sequence->source, location, 1);
        close_gap(storage, sequence->source, location);
        quern__slots_free(storage, &slot, 1);
    } else if (sequence->target == sequence->source) {
        quern__edits_write(scratch, sequence, location, edit, 1);
    } else {
        uint32_t count;
        const uintptr_t to = quern__rows_append(storage, sequence->target, 1, &count);
        quern__edits_move(storage, scratch, sequence, to, location, edit, 1);
        close_gap(storage, sequence->source, location);
    }
    storage->reactions->orders_by_row = false;
    quern__structure_changed(storage);
}

static QUERN__NO_INLINE bool apply_to_one(quern__merged *merged, quern__resolved *resolved,
                                          const quern__gathered *gathered, quern__storage *storage,
                                          const quern__executor *observer)
{
    const quern_entity entity = quern__batch_item(gathered->streams.items[0].stream->first, 0)->entity;
    const quern__record *record = quern__entities_find(&storage->entities, entity);
    if (record == NULL || merged->scratches.count == 0) return false;
    const uintptr_t location = record->location;
    quern__scratch *scratch = merged->scratches.items[0];
    /* if a later step fails, the end of the sync point clears the scratch */
    merged->used_scratch_count = 1;
    quern__sequences_begin(&scratch->sequences, storage->archetypes_version);
    quern__edit edit = {.sequence = quern__sequences_root(&scratch->sequences,
                                                          quern__storage_archetype_of(storage, record)),
                        .earlier = QUERN__EARLIER_NONE};
    if (edit.sequence == QUERN__SEQUENCE_NONE || !merge(scratch, gathered, &edit)) return false;
    quern__sequence *sequence = &scratch->sequences.list.items[edit.sequence];
    if (!resolve(scratch, resolved, storage, sequence)) return false;
    quern__executor_begin_stage(observer, QUERN__STAGE_APPLY);
    apply(scratch, storage, sequence, location, &edit, quern_entity_index(entity));
    resolved->destroyed_count = sequence->is_destroyed;
    scratch->sequences.archetypes_version = storage->archetypes_version;
    scratch->earlier_items.count = 0;
    merged->used_scratch_count = 0;
    return true;
}

bool quern__commands_apply_to_one(quern__merged *merged, quern__resolved *resolved,
                                  const quern__gathered *gathered, quern__storage *storage,
                                  const quern__executor *observer)
{
    return are_on_one_entity(gathered) && apply_to_one(merged, resolved, gathered, storage, observer);
}
