/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* The difference between two snapshots, as batches.
 *
 * The order of the batches makes each batch applicable by the public calls. Names are cleared, and
 * components and entities are removed, before any are added. So the world contains a subset of `from`
 * first and a subset of `to` afterwards. A subset of a valid world is valid: names are unique among
 * siblings, levels have no cycle, no entity has too many components, and no destroyed entity is still a
 * target.
 *
 * Two kinds of changes keep their value of `from` until they are replaced in one step, because one batch
 * with the old and the new value says more than a removal and an addition:
 *
 *   a name that changes, if no other entity has the old name in `to`
 *   a target that changes, if the old target is alive in `to`; in a relation with levels only if the source
 *   has no sources of its own in `to`. Then the path from a new target up to its root contains no source
 *   that still has its old target, because every entity on that path has sources in `to`. So the path
 *   equals the one in `to` and closes no cycle. */

#include "core/history/history_internal.h"
#include "core/query/query_internal.h"
#include "core/relations/relation_internal.h"

enum { FIRST_BATCHES = 64 };

/* Appends a batch. Returns false if out of memory. */
static bool append(quern_delta *delta, const quern_delta_batch *batch)
{
    quern__page_store *store = &delta->history->store;
    if (delta->count == delta->capacity) {
        const uint32_t capacity = delta->capacity > 0 ? delta->capacity * 2 : FIRST_BATCHES;
        const quern__page page = quern__page_allocate(store, capacity * sizeof *batch);
        if (page == 0) return false;
        quern_delta_batch *batches = (quern_delta_batch *)(void *)quern__page_memory(store, page);
        if (delta->count > 0) memcpy(batches, delta->batches, delta->count * sizeof *batches);
        quern__page_release(store, delta->batches_page);
        delta->batches_page = page;
        delta->batches = batches;
        delta->capacity = capacity;
    }
    delta->batches[delta->count++] = *batch;
    return true;
}

/* Returns the handle of the entity that occupies the slot in the snapshot. Precondition: the slot is
 * alive. */
quern_entity quern__saved_entity(const quern__history *history, const quern__snapshot *snapshot,
                                 uint32_t slot);

static quern_entity saved_entity(const quern__history *history, const quern__snapshot *snapshot,
                                 uint32_t slot)
{
    const quern__page group = quern__pages_in(history, snapshot->slots.groups)[slot / QUERN__SLOT_GROUP];
    const quern__saved_slot *slots =
        (const quern__saved_slot *)(const void *)quern__page_memory(&history->store, group);
    return (quern_entity){(uint64_t)slots[slot % QUERN__SLOT_GROUP].handle_high << 32 | slot};
}

/* Whether the entity is alive in the snapshot. */
static bool is_alive_in(const quern__history *history, const quern__snapshot *snapshot, quern_entity entity)
{
    const uint32_t slot = quern_entity_index(entity);
    if (slot >= snapshot->slots.slot_count) return false;
    const quern__page group = quern__pages_in(history, snapshot->slots.groups)[slot / QUERN__SLOT_GROUP];
    if (group == 0) return false;
    const quern__saved_slot *slots =
        (const quern__saved_slot *)(const void *)quern__page_memory(&history->store, group);
    const quern__saved_slot *saved = &slots[slot % QUERN__SLOT_GROUP];
    return saved->next == QUERN__SAVED_ALIVE && saved->handle_high == entity.bits >> 32;
}

/* Whether the entity in the slot is a target of the relation with this index. */
static bool has_children_in(const quern__history *history, const quern__snapshot *snapshot,
                            uint32_t relation_index, uint32_t slot)
{
    const quern__saved_links saved = quern__saved_links_of(history, snapshot, relation_index);
    const quern__page page = quern__saved_group(history, &saved, slot / QUERN__LINK_GROUP);
    if (page == 0) return false;
    const quern__link_node *node =
        (const quern__link_node *)(const void *)quern__page_memory(&history->store, page);
    return node[slot % QUERN__LINK_GROUP].count > 0;
}

/* -------------------------------------------------------------------------------------------- limit */

/* The part of two snapshots that a delta compares. A *member* of a snapshot is an entity that the query of the limit
 * matches there. A limited delta leads from the members of `from` to those of `to`, so an entity that begins to match
 * is created, and one that no longer matches is destroyed.
 *
 * Membership follows from the archetype. So rows of archetypes that do not match are left out. A target, or a parent of
 * a name, may be a member or not, whatever the archetype of the source: these are looked up in sets of members by slot.
 * A link exists for the delta only if both its ends are members, and a name only if the parent is.
 *
 * A target can become a member, or stop being one, while the row of its source stays as it is. If any entity that is
 * alive in both snapshots does that (`crosses`), links and names are compared even where both snapshots share pages. */

typedef struct delta_limit {
    const quern_delta_def *def;
    const quern__relations *relations;
    quern__page members_page; /* contains the sets; 0: there are none */
    const uint64_t *from_members,
        *to_members; /* by slot; NULL: not needed, every entity counts as a member */
    bool crosses;
} delta_limit;

/* Whether the rows of an archetype are members. */
static inline bool limit_matches(const delta_limit *limit, const quern__saved_archetype *saved)
{
    return limit->def->query == NULL ||
           quern__query_matches_set(limit->def->query, saved->component_indices, saved->component_count);
}

static uint64_t name_count(quern__history *history, const quern__snapshot *snapshot)
{
    quern__byte_reader reader = quern__page_reader(&history->store, snapshot->names);
    return quern__read_u64(&reader);
}

static void add_members(const delta_limit *limit, const quern__history *history,
                        const quern__snapshot *snapshot, uint64_t *members)
{
    for (uint32_t i = 0; i < snapshot->archetype_count; i++) {
        const quern__saved_archetype *saved = quern__saved_archetype_at(history, snapshot, i);
        if (!limit_matches(limit, saved)) continue;
        for (uint32_t slot = 0; slot < saved->chunk_count; slot++) {
            const quern__page page = quern__saved_pages(saved, slot)[saved->column_count];
            const quern_entity *handles =
                (const quern_entity *)(const void *)quern__page_memory(&history->store, page);
            for (uint32_t row = 0; row < quern__saved_row_count(saved, slot); row++)
                quern__bitset_add(members, quern_entity_index(handles[row]));
        }
    }
}

/* Whether any of the members of a snapshot is alive in the other one, of which it is no member. */
static bool any_crosses(const quern__history *history, const quern__snapshot *snapshot,
                        const quern__snapshot *other, const uint64_t *members,
                        const uint64_t *other_members, size_t word_count)
{
    for (size_t i = 0; i < word_count; i++)
        for (uint64_t left = members[i] & ~other_members[i]; left != 0;) {
            const uint32_t slot = (uint32_t)i * 64 + quern__bitset_pop_lowest(&left);
            if (is_alive_in(history, other, saved_entity(history, snapshot, slot))) return true;
        }
    return false;
}

/* Builds the sets if links or names may need them; the caller releases their page in any case. Returns false if out of
 * memory. */
static bool delta_limit_init(delta_limit *limit, quern__history *history, const quern_delta_def *def,
                             const quern__snapshot *from, const quern__snapshot *to)
{
    const quern__relations *relations = history->world->storage.relations;
    *limit = (delta_limit){.def = def, .relations = relations};
    const bool has_names =
        !def->skip_names && (name_count(history, from) > 0 || name_count(history, to) > 0);
    if (def->query == NULL || (relations->list.count == 0 && !has_names)) return true;
    const uint32_t slot_count =
        from->slots.slot_count > to->slots.slot_count ? from->slots.slot_count : to->slots.slot_count;
    const size_t word_count = QUERN__BITSET_WORDS((size_t)slot_count);
    limit->members_page = quern__page_allocate(&history->store, 2 * word_count * sizeof(uint64_t));
    if (limit->members_page == 0) return false;
    uint64_t *members = (uint64_t *)(void *)quern__page_memory(&history->store, limit->members_page);
    memset(members, 0, 2 * word_count * sizeof *members);
    add_members(limit, history, from, members);
    add_members(limit, history, to, members + word_count);
    limit->from_members = members;
    limit->to_members = members + word_count;
    limit->crosses = any_crosses(history, from, to, members, members + word_count, word_count) ||
                     any_crosses(history, to, from, members + word_count, members, word_count);
    return true;
}

/* --------------------------------------------------------------------------------------------- rows */

/* Compares the rows of two snapshots.
 *
 * Archetypes are paired by their identity. Identities ascend in every snapshot, because new archetypes
 * are last and restoring restores a saved order. A row is *paired* if the row with the same slot and
 * index in the paired archetype has the same handle; other rows are *unpaired*. An entity that is alive
 * in both snapshots is either paired in both or unpaired in both. So a map of the unpaired rows of
 * `from` finds where those of `to` were. Chunks that share their page of handles have only paired rows,
 * as far as both have rows, and are not searched. */
typedef quern__saved_row saved_row;
typedef quern__delta_row_range row_range;

/* A chunk of an archetype, and the chunk of the same slot in the paired archetype. `other` is NULL if
 * there is no paired archetype. */
typedef struct chunk_pair {
    const quern__saved_archetype *archetype, *other;
    uint32_t slot, row_count, other_row_count;
    const quern_entity *handles, *other_handles;
    bool is_shared; /* both chunks have the same page of handles */
} chunk_pair;

static quern__page handle_page(const quern__saved_archetype *archetype, uint32_t slot)
{
    return quern__saved_pages(archetype, slot)[archetype->column_count];
}

static const quern_entity *handles_at(const quern__history *history,
                                      const quern__saved_archetype *archetype, uint32_t slot)
{
    return (const quern_entity *)(const void *)quern__page_memory(&history->store,
                                                                  handle_page(archetype, slot));
}

static chunk_pair pair_chunks(const quern__history *history, const quern__saved_archetype *archetype,
                              const quern__saved_archetype *other, uint32_t slot)
{
    chunk_pair pair = {.archetype = archetype,
                       .other = other,
                       .slot = slot,
                       .row_count = quern__saved_row_count(archetype, slot),
                       .handles = handles_at(history, archetype, slot)};
    if (other == NULL || slot >= other->chunk_count) return pair;
    pair.other_row_count = quern__saved_row_count(other, slot);
    pair.other_handles = handles_at(history, other, slot);
    pair.is_shared = handle_page(archetype, slot) == handle_page(other, slot);
    return pair;
}

static bool is_paired(const chunk_pair *pair, uint32_t row)
{
    return row < pair->other_row_count &&
           (pair->is_shared || pair->handles[row].bits == pair->other_handles[row].bits);
}

/* Returns the archetype of the snapshot with this identity, or NULL. Call it with ascending identities,
 * and with *cursor = 0 at first. */
static const quern__saved_archetype *find_pair(const quern__history *history,
                                               const quern__snapshot *snapshot, uint64_t identity,
                                               uint32_t *cursor)
{
    for (; *cursor < snapshot->archetype_count; (*cursor)++) {
        const quern__saved_archetype *saved = quern__saved_archetype_at(history, snapshot, *cursor);
        if (saved->identity >= identity) return saved->identity == identity ? saved : NULL;
    }
    return NULL;
}

/* --------------------------------------------------------------------------------------- unpaired rows */

/* Lists the unpaired rows of `from`, and fills the map that finds an unpaired row by its handle. */
static bool list_unpaired(const quern_delta *delta)
{
    quern__history *history = delta->history;
    quern__delta_scratch *scratch = &history->delta_scratch;
    scratch->unpaired.count = 0;
    uint32_t cursor = 0;
    for (uint32_t i = 0; i < delta->from.archetype_count; i++) {
        const quern__saved_archetype *from = quern__saved_archetype_at(history, &delta->from, i);
        const quern__saved_archetype *to = find_pair(history, &delta->to, from->identity, &cursor);
        if (to == from || !limit_matches(delta->limit, from)) continue;
        for (uint32_t slot = 0; slot < from->chunk_count; slot++) {
            const chunk_pair pair = pair_chunks(history, from, to, slot);
            for (uint32_t row = pair.is_shared ? pair.other_row_count : 0; row < pair.row_count; row++) {
                if (is_paired(&pair, row)) continue;
                if (!quern__array_reserve(&history->store.allocator, &scratch->unpaired,
                                          scratch->unpaired.count + 1))
                    return false;
                scratch->unpaired.items[scratch->unpaired.count++] =
                    (quern__unpaired_row){.handle = pair.handles[row], .at = {from, slot, row}};
            }
        }
    }
    quern__map_clear(&scratch->unpaired_by_handle);
    if (!quern__map_reserve(&scratch->unpaired_by_handle, &history->store.allocator,
                            scratch->unpaired.count))
        return false;
    for (uint32_t i = 0; i < scratch->unpaired.count; i++)
        quern__map_put(&scratch->unpaired_by_handle, scratch->unpaired.items[i].handle.bits, i);
    return true;
}

/* ---------------------------------------------------------------------------------------- row ranges */

static bool continues(const saved_row *first, uint32_t count, const saved_row *next)
{
    if (first->archetype != next->archetype || first->archetype == NULL)
        return first->archetype == next->archetype;
    return first->slot == next->slot && first->row + count == next->row;
}

/* Adds one row: extends the last range if the row continues it, otherwise begins a new range. */
static bool add_row(quern__history *history, saved_row from, saved_row to)
{
    quern__delta_scratch *scratch = &history->delta_scratch;
    if (scratch->ranges.count > 0) {
        row_range *last = &scratch->ranges.items[scratch->ranges.count - 1];
        if (continues(&last->from, last->count, &from) && continues(&last->to, last->count, &to)) {
            last->count++;
            return true;
        }
    }
    if (!quern__array_reserve(&history->store.allocator, &scratch->ranges, scratch->ranges.count + 1))
        return false;
    scratch->ranges.items[scratch->ranges.count++] = (row_range){from, to, 1};
    return true;
}

/* Whether both chunks share all columns and have equal row bits. If not, single values may be equal
 * nevertheless. */
static bool has_same_values(const chunk_pair *pair)
{
    const quern__saved_archetype *a = pair->archetype, *b = pair->other;
    if (pair->other_row_count == 0 || a->bit_column_count != b->bit_column_count ||
        memcmp(quern__saved_pages(a, pair->slot), quern__saved_pages(b, pair->slot),
               a->column_count * sizeof(quern__page)) != 0)
        return false;
    const size_t words = (size_t)a->bit_column_count * a->bit_column_words;
    return words == 0 ||
           (memcmp(quern__saved_bit_columns(a), quern__saved_bit_columns(b),
                   a->bit_column_count * sizeof(quern__bit_column)) == 0 &&
            memcmp(quern__saved_words(a) + pair->slot * words, quern__saved_words(b) + pair->slot * words,
                   words * sizeof(uint64_t)) == 0);
}

/* Whether targets of the rows may become members, or stop being members, without a change of the rows. */
static bool may_lose_targets(const quern_delta *delta, const quern__saved_archetype *archetype)
{
    const quern__components *components = &delta->history->world->storage.components;
    for (uint32_t i = 0; delta->limit->crosses && i < archetype->component_count; i++)
        if (components->list.items[archetype->component_indices[i]]->managed.relation != NULL) return true;
    return false;
}

static bool list_chunk(quern_delta *delta, const chunk_pair *pair)
{
    quern__history *history = delta->history;
    const bool is_same = has_same_values(pair) && !may_lose_targets(delta, pair->archetype);
    if (!pair->is_shared) {
        delta->stats.compared_count++;
        delta->stats.compared_bytes += pair->row_count * sizeof(quern_entity);
    }
    for (uint32_t row = pair->is_shared && is_same ? pair->other_row_count : 0; row < pair->row_count;
         row++) {
        const bool has_pair = is_paired(pair, row);
        if (has_pair && is_same) continue;
        saved_row from = {0}; /* no archetype: the entity is not in `from` */
        if (has_pair) {
            from = (saved_row){pair->other, pair->slot, row};
        } else {
            const quern__delta_scratch *scratch = &history->delta_scratch;
            const uint64_t *number = quern__map_find(&scratch->unpaired_by_handle, pair->handles[row].bits);
            if (number != NULL) {
                from = scratch->unpaired.items[*number].at;
                scratch->unpaired.items[*number].is_in_to = true;
            }
        }
        if (!add_row(history, from, (saved_row){pair->archetype, pair->slot, row})) return false;
    }
    return true;
}

static bool list_rows(quern_delta *delta)
{
    quern__history *history = delta->history;
    history->delta_scratch.ranges.count = 0;
    if (!list_unpaired(delta)) return false;
    uint32_t cursor = 0;
    for (uint32_t i = 0; i < delta->to.archetype_count; i++) {
        const quern__saved_archetype *to = quern__saved_archetype_at(history, &delta->to, i);
        const quern__saved_archetype *from = find_pair(history, &delta->from, to->identity, &cursor);
        if ((to == from && !may_lose_targets(delta, to)) || !limit_matches(delta->limit, to)) continue;
        for (uint32_t slot = 0; slot < to->chunk_count; slot++) {
            const chunk_pair pair = pair_chunks(history, to, from, slot);
            if (!list_chunk(delta, &pair)) return false;
        }
    }
    /* Appends the rows of the entities in `from` that are not alive in `to`. */
    quern__delta_scratch *scratch = &history->delta_scratch;
    bool has_room = true;
    scratch->first_destroyed = scratch->ranges.count;
    for (uint32_t i = 0; i < scratch->unpaired.count && has_room; i++)
        if (!scratch->unpaired.items[i].is_in_to)
            has_room = add_row(history, scratch->unpaired.items[i].at, (saved_row){0});
    return has_room;
}

/* --------------------------------------------------------------------------------------- components */

/* Iterates over the components of the rows of a range in one snapshot. */
typedef struct component_iterator {
    saved_row at;
    uint32_t next, column;
} component_iterator;

/* A component of the rows in one snapshot: absent, a tag, or with values. */
typedef struct component_values {
    bool exists;
    const char *values;
    const uint64_t *disabled; /* bits of the chunk's rows; NULL: no row is disabled */
    uint32_t row;
} component_values;

static uint32_t next_component(const component_iterator *it)
{
    const quern__saved_archetype *archetype = it->at.archetype;
    return archetype != NULL && it->next < archetype->component_count
               ? archetype->component_indices[it->next]
               : UINT32_MAX;
}

static component_values next_values(const quern__history *history, component_iterator *it,
                                    uint32_t component_index, uint32_t size_bytes)
{
    if (it->at.archetype == NULL || next_component(it) != component_index)
        return (component_values){.exists = false};
    const quern__saved_archetype *archetype = it->at.archetype;
    const quern__bit_column *bit_columns = quern__saved_bit_columns(archetype);
    component_values found = {.exists = true, .row = it->at.row};
    for (uint32_t i = 0; i < archetype->bit_column_count; i++)
        if (bit_columns[i].kind == QUERN__BIT_COLUMN_CAN_DISABLE && bit_columns[i].id == component_index)
            found.disabled =
                quern__saved_words(archetype) + 1 +
                ((size_t)it->at.slot * archetype->bit_column_count + i) * archetype->bit_column_words;
    it->next++;
    if (size_bytes == 0) return found;
    const quern__page page = quern__saved_pages(archetype, it->at.slot)[it->column++];
    found.values = quern__page_memory(&history->store, page) + (size_t)it->at.row * size_bytes;
    return found;
}

static bool is_disabled(const component_values *it, uint32_t i)
{
    const uint32_t row = it->row + i;
    return it->disabled != NULL && (it->disabled[row / 64] >> row % 64 & 1) != 0;
}

/* One component of a range of rows in both snapshots. */
typedef struct component_diff {
    quern_delta *delta;
    const quern_entity *handles;
    uint32_t count;
    const quern__type *type;
    quern_component component;
    const quern__relation *relation; /* relation that the component belongs to; NULL: none */
    component_values from, to;
    /* For the values of edges to one target per source, if both snapshots have them and the delta has the targets: the
     * targets of the rows. An edge to another target is another edge, which begins with its initial value. */
    component_values from_targets, to_targets;
} component_diff;

static bool append_component_rows(const component_diff *it, quern_delta_kind kind, uint32_t first,
                                  uint32_t end)
{
    const bool has_value = kind == QUERN_DELTA_ADDED || kind == QUERN_DELTA_CHANGED;
    const bool has_old = kind == QUERN_DELTA_REMOVED || kind == QUERN_DELTA_CHANGED;
    const size_t offset = (size_t)first * it->type->size_bytes;
    const bool is_tag = it->type->size_bytes == 0;
    return append(it->delta,
                  &(quern_delta_batch){.kind = kind,
                                       .count = end - first,
                                       .entities = it->handles + first,
                                       .component = it->component,
                                       .value_bytes = it->type->size_bytes,
                                       .values = has_value && !is_tag ? it->to.values + offset : NULL,
                                       .old_values = has_old && !is_tag ? it->from.values + offset : NULL});
}

/* Whether the row has another edge, whose value must be given even if it is the same. */
static bool has_other_edge(const component_diff *it, uint32_t i)
{
    const size_t offset = (size_t)i * sizeof(quern_entity);
    return it->to_targets.exists && memcmp(it->from_targets.values + offset, it->to_targets.values + offset,
                                           sizeof(quern_entity)) != 0;
}

static bool is_changed(const component_diff *it, uint32_t i)
{
    const size_t offset = (size_t)i * it->type->size_bytes;
    if (has_other_edge(it, i)) return true;
    if (it->type->field_count == 0 && quern__hooks_exist(&it->type->hooks)) return true;
    return !quern__type_same_value(it->type, it->from.values + offset, it->to.values + offset);
}

/* Whether a batch contains the i-th row. */
typedef bool row_test(const component_diff *it, uint32_t i);

/* Appends one batch for each group of consecutive rows that pass the test. */
static bool append_rows(const component_diff *it, quern_delta_kind kind, row_test *test)
{
    uint32_t first = 0;
    for (uint32_t i = 0; i <= it->count; i++) {
        if (i < it->count && test(it, i)) continue;
        if (first < i && !append_component_rows(it, kind, first, i)) return false;
        first = i + 1;
    }
    return true;
}

/* Whether the living entity in a slot of the snapshot of `members` is a member. */
static inline bool limit_has(const uint64_t *members, uint32_t slot)
{
    return members == NULL || quern__bitset_has(members, slot);
}

/* Whether the source can be related to its new target in one step, without removing the old target
 * first: see the top of this file. */
static bool may_be_retargeted(const component_diff *it, uint32_t i)
{
    const quern_delta *delta = it->delta;
    quern_entity target;
    memcpy(&target, it->from.values + (size_t)i * sizeof target, sizeof target);
    return is_alive_in(delta->history, &delta->to, target) &&
           limit_has(delta->limit->to_members, quern_entity_index(target)) &&
           !(it->relation->has_levels && has_children_in(delta->history, &delta->to, it->relation->index,
                                                         quern_entity_index(it->handles[i])));
}

static bool is_changed_in_one_step(const component_diff *it, uint32_t i)
{
    return is_changed(it, i) && (it->relation == NULL || may_be_retargeted(it, i));
}

static bool is_changed_in_two_steps(const component_diff *it, uint32_t i)
{
    return is_changed(it, i) && !may_be_retargeted(it, i);
}

/* Whether the source has a target that is a member. members: those of the snapshot of `values`. */
static bool has_member_as_target(const component_values *values, const uint64_t *members, uint32_t i)
{
    quern_entity target;
    if (!values->exists) return false;
    memcpy(&target, values->values + (size_t)i * sizeof target, sizeof target);
    return limit_has(members, quern_entity_index(target));
}

static bool had_target(const component_diff *it, uint32_t i)
{
    return has_member_as_target(&it->from, it->delta->limit->from_members, i);
}

static bool has_target_now(const component_diff *it, uint32_t i)
{
    return has_member_as_target(&it->to, it->delta->limit->to_members, i);
}

static bool is_target_removed(const component_diff *it, uint32_t i)
{
    return had_target(it, i) && (!has_target_now(it, i) || is_changed_in_two_steps(it, i));
}

static bool is_target_changed(const component_diff *it, uint32_t i)
{
    return had_target(it, i) && has_target_now(it, i) && is_changed_in_one_step(it, i);
}

static bool is_target_added(const component_diff *it, uint32_t i)
{
    return has_target_now(it, i) && (!had_target(it, i) || is_changed_in_two_steps(it, i));
}

/* Whether targets that are no members have to be left out. */
static bool limits_targets(const component_diff *it)
{
    return it->relation != NULL && it->delta->limit->to_members != NULL;
}

static bool is_enabled_again(const component_diff *it, uint32_t i)
{
    return !is_disabled(&it->to, i) && is_disabled(&it->from, i);
}

static bool is_disabled_now(const component_diff *it, uint32_t i)
{
    return is_disabled(&it->to, i) && !is_disabled(&it->from, i);
}

/* Appends batches like append_rows, but skips rows that have no bits in either snapshot, which is the
 * usual case. */
static bool append_bits(const component_diff *it, quern_delta_kind kind, row_test *test)
{
    return (it->from.disabled == NULL && it->to.disabled == NULL) || append_rows(it, kind, test);
}

/* Whether no value of the rows differs: the component is a tag, or both snapshots share the page. */
static bool has_same_page(const component_diff *it)
{
    return it->to.values == it->from.values && it->to_targets.values == it->from_targets.values;
}

static bool append_removed(const component_diff *it)
{
    if (limits_targets(it)) return append_rows(it, QUERN_DELTA_REMOVED, is_target_removed);
    if (!it->from.exists) return true;
    if (!it->to.exists)
        return append_bits(it, QUERN_DELTA_ENABLED, is_enabled_again) &&
               append_component_rows(it, QUERN_DELTA_REMOVED, 0, it->count);
    return it->relation == NULL || has_same_page(it) ||
           append_rows(it, QUERN_DELTA_REMOVED, is_changed_in_two_steps);
}

static bool append_added(const component_diff *it)
{
    if (limits_targets(it))
        return append_rows(it, QUERN_DELTA_CHANGED, is_target_changed) &&
               append_rows(it, QUERN_DELTA_ADDED, is_target_added);
    if (!it->to.exists) return true;
    bool has_room = true;
    if (!it->from.exists) {
        has_room = append_component_rows(it, QUERN_DELTA_ADDED, 0, it->count);
    } else if (it->delta->lists_edge_values && it->delta->limit->crosses) {
        /* a target may have become a member, of which the receiver has no value */
        has_room = append_component_rows(it, QUERN_DELTA_CHANGED, 0, it->count);
    } else if (!has_same_page(it)) {
        it->delta->stats.compared_count++;
        it->delta->stats.compared_bytes += (uint64_t)it->count * it->type->size_bytes;
        has_room = append_rows(it, QUERN_DELTA_CHANGED, is_changed_in_one_step) &&
                   (it->relation == NULL || append_rows(it, QUERN_DELTA_ADDED, is_changed_in_two_steps));
    }
    return has_room && append_bits(it, QUERN_DELTA_ENABLED, is_enabled_again) &&
           append_bits(it, QUERN_DELTA_DISABLED, is_disabled_now);
}

static const quern_entity *handles_of(const quern__history *history, const saved_row *at)
{
    return handles_at(history, at->archetype, at->slot) + at->row;
}

/* Returns what the rows have of a component. */
static component_values find_values(const quern__history *history, saved_row at, uint32_t component_index)
{
    const quern__components *components = &history->world->storage.components;
    component_iterator it = {.at = at};
    uint32_t index;
    while ((index = next_component(&it)) < component_index)
        (void)next_values(history, &it, index, components->list.items[index]->type.size_bytes);
    return next_values(history, &it, component_index,
                       components->list.items[component_index]->type.size_bytes);
}

/* Calls append_one for each component that the rows have in either snapshot, in ascending order of
 * indices, except internal components. */
static bool append_components(quern_delta *delta, const row_range *rows,
                              bool (*append_one)(const component_diff *it))
{
    const quern__history *history = delta->history;
    const quern__components *components = &history->world->storage.components;
    component_iterator from = {.at = rows->from}, to = {.at = rows->to};
    component_diff it = {.delta = delta,
                         .handles = handles_of(history, to.at.archetype != NULL ? &to.at : &from.at),
                         .count = rows->count};
    for (;;) {
        const uint32_t a = next_component(&from), b = next_component(&to), index = a < b ? a : b;
        if (index == UINT32_MAX) return true;
        const quern__component *component = components->list.items[index];
        it.type = &component->type;
        it.component = quern__component_handle(components, index);
        it.relation = component->managed.relation;
        it.from = next_values(history, &from, index, it.type->size_bytes);
        it.to = next_values(history, &to, index, it.type->size_bytes);
        /* Programs can neither add nor remove components that the world manages alone, such as the tag of a
         * level; those that follow from edges have batches of their own. */
        const quern__managed *managed = &component->managed;
        if ((component->edge_owner != 0) != delta->lists_edge_values && append_one == append_added)
            continue;
        it.from_targets = it.to_targets = (component_values){.exists = false};
        if (component->edge_owner != 0 && it.from.exists && it.to.exists &&
            components->list.items[component->edge_owner - 1]->type.size_bytes > 0 &&
            quern__delta_lists(delta->limit->def->components,
                               quern__component_handle(components, component->edge_owner - 1))) {
            it.from_targets = find_values(history, rows->from, component->edge_owner - 1);
            it.to_targets = find_values(history, rows->to, component->edge_owner - 1);
        }
        if (!(component->is_managed &&
              (managed->relation == NULL || managed->level > 0 || managed->relation->is_many)) &&
            quern__delta_lists(delta->limit->def->components, it.component) && !append_one(&it))
            return false;
    }
}

/* -------------------------------------------------------------------------------------- batches of rows */

static bool append_entities(quern_delta *delta, const saved_row *at, uint32_t count, quern_delta_kind kind)
{
    return append(delta, &(quern_delta_batch){
                             .kind = kind, .count = count, .entities = handles_of(delta->history, at)});
}

static bool append_all_removed(quern_delta *delta)
{
    const quern__delta_scratch *scratch = &delta->history->delta_scratch;
    bool has_room = true;
    for (uint32_t i = 0; i < scratch->ranges.count && has_room; i++)
        has_room = append_components(delta, &scratch->ranges.items[i], append_removed);
    return has_room;
}

static bool append_all_destroyed(quern_delta *delta)
{
    const quern__delta_scratch *scratch = &delta->history->delta_scratch;
    bool has_room = true;
    for (uint32_t i = scratch->first_destroyed; i < scratch->ranges.count && has_room; i++) {
        const row_range *rows = &scratch->ranges.items[i];
        has_room = append_entities(delta, &rows->from, rows->count, QUERN_DELTA_DESTROYED);
    }
    return has_room;
}

static bool append_all_added(quern_delta *delta)
{
    const quern__delta_scratch *scratch = &delta->history->delta_scratch;
    bool has_room = true;
    for (uint32_t i = 0; i < scratch->first_destroyed && has_room; i++) {
        const row_range *rows = &scratch->ranges.items[i];
        if (rows->from.archetype == NULL)
            has_room = append_entities(delta, &rows->to, rows->count, QUERN_DELTA_CREATED);
    }
    for (uint32_t i = 0; i < scratch->first_destroyed && has_room; i++)
        has_room = append_components(delta, &scratch->ranges.items[i], append_added);
    return has_room;
}

/* Values of edges follow all targets. */
static bool append_all_edge_values(quern_delta *delta)
{
    const quern__delta_scratch *scratch = &delta->history->delta_scratch;
    const quern__relations *relations = delta->history->world->storage.relations;
    bool has_room = true, has_values = false;
    for (uint32_t i = 0; i < relations->list.count; i++)
        has_values |= quern__relation_has_values(relations->list.items[i]);
    delta->lists_edge_values = true;
    for (uint32_t i = 0; i < scratch->first_destroyed && has_room && has_values; i++)
        has_room = append_components(delta, &scratch->ranges.items[i], append_added);
    delta->lists_edge_values = false;
    return has_room;
}

/* -------------------------------------------------------------------------------------------- edges */

/* The edges in a delta: two batches per relation with several targets per source, of the edges that exist only in
 * `from`, and only in `to`. Groups of slots that both snapshots share are skipped. An edge in both snapshots
 * counts as removed and added if its source or target is another entity with the same slot. */

/* Arrays of a batch, by position of the edge. */
typedef struct edge_list {
    quern_entity *sources, *targets; /* NULL while edges are only counted */
    uint32_t count;
} edge_list;

typedef struct edge_diff {
    const quern__history *history;
    const delta_limit *limit;
    const quern__snapshot *from, *to;
    edge_list removed, added;
} edge_diff;

static void append_edge(const edge_diff *it, edge_list *list, const quern__snapshot *snapshot,
                        uint32_t source, uint32_t target)
{
    if (list->sources != NULL) {
        list->sources[list->count] = saved_entity(it->history, snapshot, source);
        list->targets[list->count] = saved_entity(it->history, snapshot, target);
    }
    list->count++;
}

/* Whether the slot, which is alive in both snapshots, has the same entity in both. */
static bool is_same_entity(const edge_diff *it, uint32_t slot)
{
    return quern_entity_equal(saved_entity(it->history, it->from, slot),
                              saved_entity(it->history, it->to, slot));
}

/* Whether both ends of an edge of a snapshot are members of it. */
static bool has_edge(const uint64_t *members, uint32_t source, uint32_t target)
{
    return limit_has(members, source) && limit_has(members, target);
}

/* Compares two ascending sets of targets of a slot. */
static void compare_targets(edge_diff *it, uint32_t source, quern__edge_range from, quern__edge_range to)
{
    const bool is_same_source = from.count > 0 && to.count > 0 && is_same_entity(it, source);
    uint32_t i = 0, k = 0;
    while (i < from.count || k < to.count) {
        const uint32_t a = i < from.count ? from.slots[i] : QUERN__SLOT_NONE;
        const uint32_t b = k < to.count ? to.slots[k] : QUERN__SLOT_NONE;
        const bool was = a <= b && has_edge(it->limit->from_members, source, a);
        const bool is = b <= a && has_edge(it->limit->to_members, source, b);
        const bool is_unchanged = was && is && is_same_source && is_same_entity(it, a);
        if (was && !is_unchanged) append_edge(it, &it->removed, it->from, source, a);
        if (is && !is_unchanged) append_edge(it, &it->added, it->to, source, b);
        i += a <= b;
        k += b <= a;
    }
}

static void compare_relation(edge_diff *it, uint32_t index)
{
    it->removed.count = it->added.count = 0;
    const quern__saved_links from_links = quern__saved_links_of(it->history, it->from, index),
                             to_links = quern__saved_links_of(it->history, it->to, index);
    const uint32_t page_count =
        from_links.page_count > to_links.page_count ? from_links.page_count : to_links.page_count;
    for (uint32_t group = 0; group < page_count * QUERN__GROUPS_IN_PAGE; group++) {
        const quern__page from = quern__saved_group(it->history, &from_links, group),
                          to = quern__saved_group(it->history, &to_links, group);
        for (uint32_t i = 0; (from != to || it->limit->crosses) && i < QUERN__EDGE_GROUP; i++)
            compare_targets(it, group * QUERN__EDGE_GROUP + i, quern__saved_edge_set(it->history, from, i),
                            quern__saved_edge_set(it->history, to, i));
    }
}

/* Appends the batch of one relation, if any edge was removed or added. */
static bool append_relation(quern_delta *delta, quern_delta_kind kind, uint32_t index)
{
    const quern__storage *storage = &delta->history->world->storage;
    edge_diff it = {
        .history = delta->history, .limit = delta->limit, .from = &delta->from, .to = &delta->to};
    edge_list *list = kind == QUERN_DELTA_RELATED ? &it.added : &it.removed;
    compare_relation(&it, index);
    if (list->count == 0) return true;
    /* Allocates the arrays of a batch, in a page that the delta releases. */
    quern__history *history = delta->history;
    const uint32_t capacity = 2 * history->world->storage.relations->list.count;
    if (delta->edge_pages == 0) {
        delta->edge_pages = quern__page_allocate(&history->store, capacity * sizeof(quern__page));
        if (delta->edge_pages == 0) return false;
    }
    const quern__page page =
        quern__page_allocate(&history->store, (size_t)list->count * 2 * sizeof(quern_entity));
    if (page == 0) return false;
    quern__pages_in(history, delta->edge_pages)[delta->edge_page_count++] = page;
    list->sources = (quern_entity *)(void *)quern__page_memory(&history->store, page);
    list->targets = list->sources + list->count;
    compare_relation(&it, index);
    const uint32_t component = storage->relations->list.items[index]->component_index;
    return append(
        delta, &(quern_delta_batch){.kind = kind,
                                    .count = list->count,
                                    .entities = list->sources,
                                    .component = quern__component_handle(&storage->components, component),
                                    .value_bytes = sizeof *list->targets,
                                    .values = kind == QUERN_DELTA_RELATED ? list->targets : NULL,
                                    .old_values = kind == QUERN_DELTA_UNRELATED ? list->targets : NULL});
}

static bool append_all_edges(quern_delta *delta, quern_delta_kind kind)
{
    const quern__relations *relations = delta->history->world->storage.relations;
    bool has_room = true;
    for (uint32_t i = 0; i < relations->list.count && relations->many_count > 0 && has_room; i++) {
        const quern__relation *relation = relations->list.items[i];
        if (relation->is_many &&
            quern__delta_lists(delta->limit->def->components,
                               quern__component_handle(&delta->history->world->storage.components,
                                                       relation->component_index)))
            has_room = append_relation(delta, kind, i);
    }
    return has_room;
}

/* -------------------------------------------------------------------------------------------- names */

/* Names in a delta.
 *
 * A name is unique among the children of a parent, so entities that exchange names or parents collide in
 * any order of single steps. Therefore colliding names are cleared before parents change, and set
 * afterwards. A name is cleared if its entity is destroyed, has no name in `to`, or has another parent
 * in `to`, or if another entity has the same parent and name in `to`. The other names that change are
 * replaced in one step. */

/* The names of one snapshot, sorted by slot. Each item points to its name in the snapshot's page of
 * names. */
typedef struct delta_name_list {
    quern__page page; /* scratch memory of `items` */
    quern__sort_item *items;
    uint32_t count;
} delta_name_list;

typedef struct delta_names {
    delta_name_list from, to;  /* empty if both snapshots share their page of names */
    quern_entity *next_handle; /* next free handle in the delta's handles_page */
} delta_names;

/* A name in one of the snapshots. */
typedef struct owned_name {
    quern_entity entity; /* entity that has the name; null: there is no such name */
    quern_entity parent; /* null: the entity has no parent */
    const char *text;
} owned_name;

/* ------------------------------------------------------------------------------------------ listing */

static bool list_snapshot(quern__history *history, const quern__snapshot *snapshot,
                          delta_name_list *out_list)
{
    quern__byte_reader reader = quern__page_reader(&history->store, snapshot->names);
    const uint32_t count = (uint32_t)quern__read_u64(&reader);
    out_list->page = quern__page_allocate(&history->store, (size_t)count * 2 * sizeof(quern__sort_item));
    if (out_list->page == 0) return false;
    out_list->items = (quern__sort_item *)(void *)quern__page_memory(&history->store, out_list->page);
    for (; out_list->count < count; out_list->count++) {
        char *cursor = (char *)(uintptr_t)reader.at;
        out_list->items[out_list->count] =
            (quern__sort_item){.key = quern__read_saved_name(&reader).slot, .pointer = cursor};
    }
    quern__sort(out_list->items, out_list->items + count, count);
    return true;
}

/* Whether the limit of the delta leaves a name out: the entity is no member, or its parent is not part of the delta, so
 * that the name might not be unique. */
static bool is_left_out(const quern_delta *delta, const quern__snapshot *snapshot, uint32_t slot,
                        uint32_t parent)
{
    const quern__storage *storage = &delta->history->world->storage;
    const uint64_t *members =
        snapshot == &delta->from ? delta->limit->from_members : delta->limit->to_members;
    if (!limit_has(members, slot)) return true;
    if (parent == QUERN__SLOT_NONE) return false;
    return !limit_has(members, parent) ||
           !quern__delta_lists(
               delta->limit->def->components,
               quern__component_handle(&storage->components, storage->relations->parent->component_index));
}

/* Returns a name without text if it is left out. */
static owned_name name_at(const quern_delta *delta, const quern__snapshot *snapshot,
                          const quern__sort_item *item)
{
    const quern__history *history = delta->history;
    quern__byte_reader reader = quern__page_reader(&history->store, snapshot->names);
    reader.at = item->pointer;
    const quern__saved_name name = quern__read_saved_name(&reader);
    return (owned_name){.entity = saved_entity(history, snapshot, name.slot),
                        .parent = name.parent != QUERN__SLOT_NONE
                                      ? saved_entity(history, snapshot, name.parent)
                                      : quern_entity_null(),
                        .text = is_left_out(delta, snapshot, name.slot, name.parent) ? NULL : name.text};
}

/* Returns the name that the entity has in the snapshot of the list. Call it for entities in ascending
 * order of slots, with *cursor = 0 at first. */
static owned_name name_of(const quern_delta *delta, const quern__snapshot *snapshot,
                          const delta_name_list *list, uint32_t *cursor, quern_entity entity)
{
    const owned_name none = {.text = NULL};
    while (*cursor < list->count && list->items[*cursor].key < quern_entity_index(entity))
        ++*cursor;
    if (*cursor == list->count || list->items[*cursor].key != quern_entity_index(entity)) return none;
    const owned_name found = name_at(delta, snapshot, &list->items[*cursor]);
    return quern_entity_equal(found.entity, entity) ? found : none;
}

/* ---------------------------------------------------------------------------------- names used in `to` */

/* Returns the key of a name in the set of used names. Equal names have equal keys. If different names
 * have equal keys, the delta has one batch more than necessary. */
static uint64_t key_of(const owned_name *name)
{
    const uint64_t hash =
        quern__hash_word(quern__hash_bytes(0, name->text, strlen(name->text)), name->parent.bits);
    return hash != 0 ? hash : 1;
}

static bool is_same(const owned_name *from, const owned_name *to)
{
    return from->text != NULL && quern_entity_equal(from->parent, to->parent) &&
           strcmp(from->text, to->text) == 0;
}

/* Whether the name is cleared before it is set again. `from` and `to` are the names of one entity in
 * both snapshots. */
static bool is_cleared(const quern_delta *delta, const owned_name *from, const owned_name *to)
{
    if (to->text == NULL || !quern_entity_equal(from->parent, to->parent)) return true;
    return !is_same(from, to) &&
           quern__map_find(&delta->history->delta_scratch.used_names, key_of(from)) != NULL;
}

/* ------------------------------------------------------------------------------------------- batches */

static bool append_name(quern_delta *delta, delta_names *names, quern_entity entity, const char *old_name,
                        const char *name)
{
    quern_entity *handle = names->next_handle++;
    *handle = entity;
    return append(
        delta,
        &(quern_delta_batch){
            .kind = QUERN_DELTA_NAMED, .count = 1, .entities = handle, .name = name, .old_name = old_name});
}

static bool list_names(quern_delta *delta, delta_names *out_names)
{
    quern__history *history = delta->history;
    *out_names = (delta_names){.next_handle = NULL};
    if (delta->limit->def->skip_names || (delta->from.names == delta->to.names && !delta->limit->crosses))
        return true;
    quern__map *used = &history->delta_scratch.used_names;
    if (!list_snapshot(history, &delta->from, &out_names->from) ||
        !list_snapshot(history, &delta->to, &out_names->to) ||
        !quern__map_reserve(used, &history->store.allocator, out_names->to.count))
        return false;
    quern__map_clear(used);
    uint32_t cursor = 0;
    for (uint32_t i = 0; i < out_names->to.count; i++) {
        const owned_name to = name_at(delta, &delta->to, &out_names->to.items[i]);
        const owned_name from = name_of(delta, &delta->from, &out_names->from, &cursor, to.entity);
        if (to.text != NULL && !is_same(&from, &to) && quern__map_find(used, key_of(&to)) == NULL)
            quern__map_put(used, key_of(&to), 1);
    }
    delta->handles_page = quern__page_allocate(
        &history->store, ((size_t)out_names->from.count + out_names->to.count) * sizeof(quern_entity));
    out_names->next_handle =
        (quern_entity *)(void *)quern__page_memory(&history->store, delta->handles_page);
    return delta->handles_page != 0;
}

static bool append_cleared_names(quern_delta *delta, delta_names *names)
{
    uint32_t cursor = 0;
    bool has_room = true;
    for (uint32_t i = 0; i < names->from.count && has_room; i++) {
        const owned_name from = name_at(delta, &delta->from, &names->from.items[i]);
        const owned_name to = name_of(delta, &delta->to, &names->to, &cursor, from.entity);
        if (from.text != NULL && is_cleared(delta, &from, &to))
            has_room = append_name(delta, names, from.entity, from.text, NULL);
    }
    return has_room;
}

static bool append_given_names(quern_delta *delta, delta_names *names)
{
    uint32_t cursor = 0;
    bool has_room = true;
    for (uint32_t i = 0; i < names->to.count && has_room; i++) {
        const owned_name to = name_at(delta, &delta->to, &names->to.items[i]);
        const owned_name from = name_of(delta, &delta->from, &names->from, &cursor, to.entity);
        if (to.text == NULL || is_same(&from, &to)) continue;
        const bool has_old = from.text != NULL && !is_cleared(delta, &from, &to);
        has_room = append_name(delta, names, to.entity, has_old ? from.text : NULL, to.text);
    }
    return has_room;
}

/* ----------------------------------------------------------------------------------------- resources */

/* Returns the value of the i-th resource in the snapshot, or NULL. */
static const char *resource_in(const quern__history *history, const quern__snapshot *snapshot, uint32_t i)
{
    if (i >= snapshot->resource_count) return NULL;
    return quern__page_memory(&history->store, quern__pages_in(history, snapshot->resources)[i]);
}

static bool append_resources(quern_delta *delta)
{
    const quern__resources *resources = &delta->history->world->resources;
    bool has_room = true;
    for (uint32_t i = 0; i < resources->list.count && has_room; i++) {
        const quern__type *type = &resources->list.items[i].type;
        const char *old_value = resource_in(delta->history, &delta->from, i);
        const char *new_value = resource_in(delta->history, &delta->to, i);
        if (old_value == new_value) continue;
        const bool is_known = type->field_count > 0 || !quern__hooks_exist(&type->hooks);
        if (old_value != NULL && new_value != NULL && is_known &&
            quern__type_same_value(type, old_value, new_value))
            continue;
        has_room =
            append(delta, &(quern_delta_batch){.kind = QUERN_DELTA_RESOURCE,
                                               .resource = {quern__handle_bits(resources->world_tag, i)},
                                               .value_bytes = type->size_bytes,
                                               .values = new_value,
                                               .old_values = old_value});
    }
    return has_room;
}

/* --------------------------------------------------------------------------------------- life cycle */

/* Appends all batches, in the order that the top of this file explains. */
static bool append_all(quern_delta *delta)
{
    delta_names names;
    const bool has_room = list_names(delta, &names) && list_rows(delta) &&
                          append_cleared_names(delta, &names) && append_all_removed(delta) &&
                          append_all_edges(delta, QUERN_DELTA_UNRELATED) && append_all_destroyed(delta) &&
                          append_all_added(delta) && append_all_edges(delta, QUERN_DELTA_RELATED) &&
                          append_all_edge_values(delta) && append_given_names(delta, &names) &&
                          (delta->limit->def->skip_resources || append_resources(delta));
    quern__page_release(&delta->history->store, names.from.page);
    quern__page_release(&delta->history->store, names.to.page);
    return has_room;
}

quern_result quern__delta_make(quern__history *history, const quern__snapshot *from,
                               const quern__snapshot *to, const quern_delta_def *def,
                               quern_delta **out_delta)
{
    delta_limit limit;
    const quern__page page = quern__page_allocate(&history->store, sizeof(quern_delta));
    if (page == 0) return quern__history_fail_memory("a delta");
    quern_delta *delta = (quern_delta *)(void *)quern__page_memory(&history->store, page);
    *delta = (quern_delta){.history = history, .page = page, .from = *from, .to = *to};
    quern__snapshot_acquire(history, from);
    quern__snapshot_acquire(history, to);
    history->delta_count++;
    delta->limit = &limit;
    const bool is_done = delta_limit_init(&limit, history, def, from, to) && append_all(delta);
    quern__page_release(&history->store, limit.members_page);
    delta->limit = NULL;
    if (is_done) {
        *out_delta = delta;
        return QUERN_OK;
    }
    quern__delta_release(delta);
    return quern__history_fail_memory("the differences between two frames");
}

void quern__delta_release(quern_delta *delta)
{
    quern__history *history = delta->history;
    quern__snapshot_release(history, &delta->from);
    quern__snapshot_release(history, &delta->to);
    quern__page_release(&history->store, delta->batches_page);
    quern__page_release(&history->store, delta->handles_page);
    for (uint32_t i = 0; i < delta->edge_page_count; i++)
        quern__page_release(&history->store, quern__pages_in(history, delta->edge_pages)[i]);
    quern__page_release(&history->store, delta->edge_pages);
    history->delta_count--;
    quern__page_release(&history->store, delta->page);
}
