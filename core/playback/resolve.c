/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* The resolve stage. Input: edits and groups. Output: target, plan and values of each sequence; ranks of each
 * group's rows among the arriving rows; numbers of leaving and arriving rows in each archetype delta; reserved
 * memory. Can fail: memory, and the limits of the world. If an entity cannot have its components, or the world
 * cannot have the archetype for them, the commands on this entity are refused and resolving succeeds. Parts: the
 * effect of a sequence, sequences, archetype deltas, room, refusals. */
#include "core/playback/stages.h"

#include "core/storage/change.h"
#include "core/storage/type_internal.h"

#include <quern/world.h>

/* --------------------------------------------------------------------------------------------- effects */

/* The effect of a sequence of commands on each component of an entity. The sequence is read backwards, so the first
 * command read that decides about a component is the last one recorded. The function `read` of each kind in
 * QUERN__COMMAND_KINDS reads one operand.
 *
 * Required components are decided at the end, by the components that are present then. A remove of a component that
 * one of these requires has no effect, whether or not a later command adds the component again: if there is such a
 * remove, the sequence is read once more without these removes. What is then still missing is added and
 * constructed. */

struct quern__effect {
    /* components with a command that decides whether they are present */
    uint64_t decided[QUERN__BITSET_WORDS(QUERN_MAX_COMPONENTS)];
    /* of the decided components: present at the end */
    uint64_t present[QUERN__BITSET_WORDS(QUERN_MAX_COMPONENTS)];
    /* of the present components: with a new value */
    uint64_t fresh[QUERN__BITSET_WORDS(QUERN_MAX_COMPONENTS)];
    /* Present because of an add without a value. An earlier operation, read later, decides about the value. */
    uint64_t pending[QUERN__BITSET_WORDS(QUERN_MAX_COMPONENTS)];
    /* Indexed by row flag, such as CAN_DISABLE. The last command that changes a component's bit counts only if
     * the component is present at that point. So a change is first recorded in `toggled`. An earlier command
     * that adds or sets the component makes it final (`final`); an earlier remove replaces it by a final
     * clear. */
    uint64_t toggled[QUERN__ROW_FLAG_COUNT][QUERN__BITSET_WORDS(QUERN_MAX_COMPONENTS)];
    /* of the toggled bits: set at the end, otherwise clear */
    uint64_t sets[QUERN__ROW_FLAG_COUNT][QUERN__BITSET_WORDS(QUERN_MAX_COMPONENTS)];
    uint64_t final[QUERN__ROW_FLAG_COUNT][QUERN__BITSET_WORDS(QUERN_MAX_COMPONENTS)];
    bool has_toggles;
    /* of all components, NULL if none requires another */
    const quern__components *components;
    /* components that some command removes; valid if `components` is set */
    uint64_t removed[QUERN__BITSET_WORDS(QUERN_MAX_COMPONENTS)];
    /* components of which removes have no effect, because others require them */
    uint64_t kept[QUERN__BITSET_WORDS(QUERN_MAX_COMPONENTS)];
    uint32_t present_count;
    bool removes;           /* some component of the source is removed */
    bool equals_source_set; /* the target has exactly the components of the source */
    /* sources of the values of fresh components; list_fills sets the remaining members */
    quern__fill fills[QUERN_MAX_COMPONENTS];
};

static void decide(quern__effect *it, uint32_t component_index, bool is_present)
{
    quern__bitset_add(it->decided, component_index);
    if (!is_present) return;
    quern__bitset_add(it->present, component_index);
    it->present_count++;
}

/* Decides that the component is present at the end, with the operand's value, or
 * constructed if the operand has none. No later command may have decided about the component. */
static void give(quern__effect *effect, const quern__operation *operation, uint32_t i, uint32_t hop)
{
    const quern__operand *operand = &operation->operands[i];
    decide(effect, operand->component_index, true);
    quern__bitset_add(effect->fresh, operand->component_index);
    bool owns = operand->offset_bytes != 0 && operand->type->hooks.destroy != NULL;
    effect->fills[operand->component_index] = (quern__fill){
        .type = operand->type,
        .size_bytes = operand->size_bytes,
        .value_offset_bytes = operand->offset_bytes,
        .owned_offset_bytes = (uint16_t)(owns ? operation->owned_offset_bytes + i : 0),
        .hop = hop,
        .is_plain = operand->is_plain,
    };
}

static void finalize_bits_of(quern__effect *it, uint32_t index, uint32_t row_flags)
{
    for (uint32_t left = row_flags; left != 0; left &= left - 1) {
        const uint32_t flag = quern__lowest_bit_32(left);
        it->has_toggles = true;
        if (quern__bitset_has(it->toggled[flag], index)) quern__bitset_add(it->final[flag], index);
    }
}

/* Makes later changes of the component's bits final: the component is present from this command on, and so are
 * those that it requires, unless a later command removes the component. */
static void finalize_bits(quern__effect *it, const quern__operand *operand)
{
    finalize_bits_of(it, operand->component_index, operand->row_flags);
    if (QUERN__LIKELY(it->components == NULL)) return;
    if (quern__bitset_has(it->decided, operand->component_index) &&
        !quern__bitset_has(it->present, operand->component_index))
        return;
    const quern__component *component = it->components->list.items[operand->component_index];
    for (uint32_t i = 0; i < component->required.count; i++) {
        const uint32_t index = component->required.items[i];
        finalize_bits_of(it, index,
                         quern__components_type(it->components, index)->flags & QUERN__ROW_FLAG_BITS);
    }
}

/* Records the bit at the end, unless a later command decides it. */
static void change_bit(quern__effect *it, const quern__operand *operand, bool sets)
{
    const uint32_t index = operand->component_index, flag = operand->row_flag;
    it->has_toggles = true;
    if (quern__bitset_has(it->final[flag], index) || quern__bitset_has(it->toggled[flag], index)) return;
    quern__bitset_add(it->toggled[flag], index);
    if (sets) quern__bitset_add(it->sets[flag], index);
}

void quern__read_add(quern__effect *effect, const quern__operation *operation, uint32_t i, uint32_t hop)
{
    const quern__operand *operand = &operation->operands[i];
    (void)hop;
    finalize_bits(effect, operand);
    if (!quern__bitset_has(effect->decided, operand->component_index))
        quern__bitset_add(effect->pending, operand->component_index);
}

void quern__read_value(quern__effect *effect, const quern__operation *operation, uint32_t i, uint32_t hop)
{
    const quern__operand *operand = &operation->operands[i];
    finalize_bits(effect, operand);
    if (!quern__bitset_has(effect->decided, operand->component_index)) give(effect, operation, i, hop);
}

/* If the command before an add without a value is a remove that has an effect, the component is constructed anew. */
void quern__read_remove(quern__effect *effect, const quern__operation *operation, uint32_t i, uint32_t hop)
{
    const quern__operand *operand = &operation->operands[i];
    const uint32_t index = operand->component_index;
    if (QUERN__UNLIKELY(effect->components != NULL)) {
        if (quern__bitset_has(effect->kept, index)) return;
        quern__bitset_add(effect->removed, index);
    }
    /* if a later command adds the component again, its bits are clear */
    for (uint32_t left = operand->row_flags; left != 0; left &= left - 1) {
        const uint32_t flag = quern__lowest_bit_32(left);
        effect->has_toggles = true;
        if (quern__bitset_has(effect->final[flag], index)) continue;
        quern__bitset_add(effect->toggled[flag], index);
        quern__bitset_remove(effect->sets[flag], index);
        quern__bitset_add(effect->final[flag], index);
    }
    if (quern__bitset_has(effect->decided, index)) return;
    if (quern__bitset_has(effect->pending, index))
        give(effect, operation, i, hop);
    else
        decide(effect, index, false);
}

void quern__read_clear_bit(quern__effect *effect, const quern__operation *operation, uint32_t i,
                           uint32_t hop)
{
    (void)hop;
    change_bit(effect, &operation->operands[i], false);
}

void quern__read_set_bit(quern__effect *effect, const quern__operation *operation, uint32_t i, uint32_t hop)
{
    (void)hop;
    change_bit(effect, &operation->operands[i], true);
}

/* Adds the undecided components of a bitset, with constructed values. */
static void add_constructed(quern__effect *it, const quern__storage *storage, const uint64_t *components)
{
    for (uint32_t word = 0; word < QUERN__COUNT_OF(it->decided); word++) {
        uint64_t left = components[word] & ~it->decided[word];
        while (left != 0) {
            uint32_t index = word * 64 + quern__bitset_pop_lowest(&left);
            const quern__type *type = quern__components_type(&storage->components, index);
            decide(it, index, true);
            quern__bitset_add(it->fresh, index);
            it->fills[index] = (quern__fill){.type = type,
                                             .size_bytes = (uint16_t)type->size_bytes,
                                             .is_plain = !quern__hooks_exist(&type->hooks)};
        }
    }
}

/* Reads the operations. At the end, adds without a value add their components if the source lacks them and no earlier
 * command decides about them. */
static void read_operations(quern__effect *effect, const quern__storage *storage,
                            const quern__sequences *sequences, const quern__sequence *sequence)
{
    const quern__archetype *source = sequence->source;
    uint32_t hop = 0;
    for (const quern__sequence *at = sequence; at->operation != NULL;
         at = &sequences->list.items[at->parent], hop++)
        for (uint32_t i = 0; i < at->operation->operand_count; i++)
            quern__kind_calls_of[at->operation->kind].read(effect, at->operation, i, hop);
    for (uint32_t i = 0; source != NULL && i < source->component_count; i++) {
        const uint32_t index = source->component_indices[i];
        if (!quern__bitset_has(effect->decided, index))
            decide(effect, index, true);
        else if (!quern__bitset_has(effect->present, index))
            effect->removes = true;
    }
    add_constructed(effect, storage, effect->pending);
}

/* Keeps and adds what the present components require. */
static void read_required(quern__effect *effect, const quern__storage *storage,
                          const quern__sequences *sequences, const quern__sequence *sequence)
{
    uint64_t required[QUERN__COUNT_OF(effect->present)] = {0};
    uint64_t any_removed = 0;
    quern__components_add_required(&storage->components, effect->present, required);
    for (uint32_t word = 0; word < QUERN__COUNT_OF(required); word++)
        any_removed |= required[word] & effect->removed[word];
    if (any_removed != 0) {
        memset(effect, 0, offsetof(quern__effect, fills));
        effect->components = &storage->components;
        memcpy(effect->kept, required, sizeof required);
        read_operations(effect, storage, sequences, sequence);
    }
    add_constructed(effect, storage, required);
}

typedef struct resolving {
    quern__resolved *resolved;
    quern__merged *merged;
    const quern__gathered *gathered;
    quern__storage *storage;
    quern__drops *drops;
} resolving;

void quern__resolved_release(quern__resolved *resolved, const quern_allocator *allocator)
{
    quern__array_release(allocator, &resolved->deltas);
    quern__array_release(allocator, &resolved->delta_of_archetype);
    quern__array_release(allocator, &resolved->gaps);
    quern__array_release(allocator, &resolved->tails);
    quern__array_release(allocator, &resolved->destroyed);
    quern__array_release(allocator, &resolved->freed);
    quern__array_release(allocator, &resolved->created);
    quern__array_release(allocator, &resolved->spawned);
    quern__array_release(allocator, &resolved->spawned_rows);
    quern__clones_release(resolved, allocator);
}

/* ------------------------------------------------------------------------------------------- sequences */

static bool list_fills(const quern__effect *it, quern__sequences *sequences, quern__sequence *sequence)
{
    const quern__archetype *target = sequence->target;
    uint32_t first = sequences->fills.count;
    if (!quern__array_reserve(sequences->allocator, &sequences->fills, first + target->column_count))
        return false;
    for (uint32_t i = 0; i < target->column_count; i++) {
        const quern__column *column = &target->columns[i];
        if (!quern__bitset_has(it->fresh, column->component_index)) continue;
        quern__fill fill = it->fills[column->component_index];
        fill.target_offset_bytes = column->offset_bytes;
        fill.replaces =
            sequence->source != NULL && quern__archetype_has(sequence->source, column->component_index);
        /* in the order of hops, so that one iteration over an edit's earlier items reaches all of them */
        uint32_t place = sequences->fills.count++;
        for (; place > first && sequences->fills.items[place - 1].hop > fill.hop; place--)
            sequences->fills.items[place] = sequences->fills.items[place - 1];
        sequences->fills.items[place] = fill;
        sequence->is_hooked |= !fill.is_plain;
    }
    sequence->first_fill = first;
    sequence->fill_count = sequences->fills.count - first;
    return true;
}

/* Lists the row bits that the sequence changes. If the source has the component, its bit is set or cleared.
 * If the source lacks it, the bit is clear when the row arrives, so only setting it is listed. A change that
 * is not final (quern__effect) was then recorded before the component was added, and has no effect. */
static bool list_toggles(const quern__effect *it, quern__sequences *sequences, quern__sequence *sequence)
{
    const quern__row_bits *row_bits = sequence->target->row_bits;
    const quern__archetype *source = sequence->source;
    if (!it->has_toggles || row_bits == NULL) return true;
    sequence->first_toggle = sequences->toggles.count;
    if (!quern__array_reserve(sequences->allocator, &sequences->toggles,
                              sequence->first_toggle + row_bits->count))
        return false;
    for (uint32_t i = 0; i < row_bits->count && quern__bit_column_is_of_component(row_bits->list[i].kind);
         i++) {
        const uint32_t index = row_bits->list[i].id, flag = row_bits->list[i].kind;
        const bool is_in_source = source != NULL && quern__archetype_has(source, index);
        const bool clears = !quern__bitset_has(it->sets[flag], index);
        if (!quern__bitset_has(it->toggled[flag], index)) continue;
        if (is_in_source || (!clears && quern__bitset_has(it->final[flag], index)))
            sequences->toggles.items[sequences->toggles.count++] =
                (quern__toggle){.bit_column = i, .clears = clears};
    }
    sequence->toggle_count = sequences->toggles.count - sequence->first_toggle;
    return true;
}

static quern_result find_target(quern__storage *storage, const quern__effect *it, quern__sequence *sequence)
{
    if (it->equals_source_set) {
        sequence->target = sequence->source;
        return QUERN_OK;
    }
    uint16_t set[QUERN_MAX_COMPONENTS];
    const uint32_t count = quern__bitset_list(it->present, QUERN__COUNT_OF(it->present), set);
    quern_result result = quern__storage_ensure_archetype(storage, set, count, &sequence->target);
    if (result != QUERN_OK || sequence->source == NULL) return result;
    result = quern__plan_between(storage, sequence->source, sequence->target, &sequence->plan);
    if (result != QUERN_OK) return result;
    const quern__move_plan *plan = sequence->plan;
    const uint32_t step_count = plan->shared_count + plan->added_count + plan->removed_count;
    sequence->is_hooked = false;
    for (uint32_t i = 0; i < step_count; i++)
        sequence->is_hooked |= plan->steps[i].type != NULL;
    return QUERN_OK;
}

/* An entity that exceeds a limit must not stop all others: it stays unchanged, or ends at once if it is new. */
quern_result quern__sequence_resolve(quern__resolved *resolved, quern__storage *storage,
                                     quern__sequences *sequences, quern__sequence *sequence)
{
    /* Never is_resolved, since listeners of an archetype change without invalidating the tree. */
    if (sequence->is_destroyed) {
        sequence->is_hooked = sequence->source != NULL &&
                              (sequence->source->has_destroy ||
                               (!sequence->is_member && quern__row_listeners_call_hooks(sequence->source)));
        return QUERN_OK;
    }
    sequence->is_resolved = true;
    /* components without a deciding command remain as in the source */
    quern__effect found;
    const quern__archetype *source = sequence->source;
    memset(&found, 0, offsetof(quern__effect, fills));
    if (storage->components.has_requirements) found.components = &storage->components;
    read_operations(&found, storage, sequences, sequence);
    if (found.components != NULL) read_required(&found, storage, sequences, sequence);
    found.equals_source_set =
        source != NULL && !found.removes && found.present_count == source->component_count;
    quern_result result = find_target(storage, &found, sequence);
    if (result == QUERN_OK &&
        (!list_fills(&found, sequences, sequence) || !list_toggles(&found, sequences, sequence)))
        result =
            quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory to list the new values of an edit sequence");
    if (result == QUERN_OK || result == QUERN_ERROR_OUT_OF_MEMORY) return result;
    sequence->is_refused = true;
    sequence->target = sequence->source;
    sequence->is_destroyed = sequence->source == NULL;
    if (resolved->refused_result == QUERN_OK) resolved->refused_result = result;
    return QUERN_OK;
}

/* -------------------------------------------------------------------------------- archetype deltas */

QUERN__SLOW_PATH static bool grow_deltas(quern__resolved *resolved, const quern__storage *storage)
{
    const uint32_t archetype_count = storage->archetypes.count;
    if (!quern__array_reserve(&storage->allocator, &resolved->delta_of_archetype, archetype_count) ||
        !quern__array_reserve(&storage->allocator, &resolved->deltas, resolved->deltas.count + 1))
        return false;
    while (resolved->delta_of_archetype.count < archetype_count)
        resolved->delta_of_archetype.items[resolved->delta_of_archetype.count++] = 0;
    return true;
}

quern__archetype_delta *quern__resolved_add(quern__resolved *resolved, const quern__storage *storage,
                                            quern__archetype *archetype)
{
    const uint32_t count = resolved->deltas.count;
    if ((archetype->index >= resolved->delta_of_archetype.count || count == resolved->deltas.capacity) &&
        !grow_deltas(resolved, storage))
        return NULL;
    uint32_t *place = &resolved->delta_of_archetype.items[archetype->index];
    if (*place < count && resolved->deltas.items[*place].archetype == archetype)
        return &resolved->deltas.items[*place];
    *place = count;
    quern__archetype_delta *delta = &resolved->deltas.items[resolved->deltas.count++];
    *delta = (quern__archetype_delta){.archetype = archetype,
                                      .row_count = (uint32_t)quern__archetype_row_count(archetype),
                                      .led_edits = UINT32_MAX};
    return delta;
}

/* Resolves one group of the edits, and assigns ranks to its rows that arrive in another archetype. Rows of several
 * groups of the same edits share one counter, in the leader: the first of these groups. number: index of the edits.
 * source_delta: index of the delta of the chunk's archetype. */
static quern_result resolve_group(const resolving *it, quern__chunk_edits *edits, uint32_t number,
                                  uint32_t group_index, uint32_t source_delta)
{
    quern__sequences *sequences = &edits->scratch->sequences;
    quern__edit_group *group = &edits->scratch->groups.items[group_index];
    quern__sequence *sequence = &sequences->list.items[group->sequence];
    if (sequence->operation == NULL) return QUERN_OK; /* members of instances, which have edits by row */
    if (!sequence->is_resolved) {
        quern_result result = quern__sequence_resolve(it->resolved, it->storage, sequences, sequence);
        if (result != QUERN_OK) return result;
    }
    edits->is_hooked |= sequence->is_hooked;
    if (sequence->is_refused) it->resolved->refused_count += group->count;
    if (sequence->is_destroyed) it->resolved->destroyed_count += group->count;
    quern__archetype *target = sequence->is_destroyed ? NULL : sequence->target;
    if (target == sequence->source) return QUERN_OK;
    if (sequence->source != NULL) {
        it->resolved->deltas.items[source_delta].leaving_count += group->count;
        const quern_result result =
            sequence->is_member
                ? QUERN_OK
                : quern__leaving_reserve(it->storage, sequence->source, target, group->count);
        if (result != QUERN_OK) return result;
    }
    if (target == NULL) return QUERN_OK;
    quern__archetype_delta *delta = quern__resolved_add(it->resolved, it->storage, target);
    if (delta == NULL) return QUERN_ERROR_OUT_OF_MEMORY;
    uint32_t *arriving = edits->chunk != NULL ? &delta->arriving_count : &delta->created_count;
    if (delta->led_edits != number) {
        delta->led_edits = number;
        delta->leader = group_index;
        group->arrival = *arriving;
    }
    group->leader = delta->leader;
    *arriving += group->count;
    return QUERN_OK;
}

static quern_result resolve_edits(const resolving *it, quern__chunk_edits *edits)
{
    uint32_t source_delta = 0;
    edits->first_destroyed = it->resolved->destroyed_count;
    if (edits->chunk != NULL) {
        const quern__archetype_delta *delta =
            quern__resolved_add(it->resolved, it->storage, edits->archetype);
        if (delta == NULL) return QUERN_ERROR_OUT_OF_MEMORY;
        source_delta = (uint32_t)(delta - it->resolved->deltas.items);
        edits->first_gap = delta->leaving_count; /* relative to the archetype's first gap */
    }
    const uint32_t number = (uint32_t)(edits - it->merged->edits.items);
    quern_result result = QUERN_OK;
    for (uint32_t i = 0; i < edits->group_count && result == QUERN_OK; i++)
        result = resolve_group(it, edits, number, edits->first_group + i, source_delta);
    return result;
}

/* ----------------------------------------------------------------------------------------------- room */

static quern_result reserve_rows(quern__resolved *resolved, quern__storage *storage, bool has_gaps,
                                 uint64_t *out_gap_count, uint32_t *out_most_left_over)
{
    uint64_t gap_count = 0;
    uint32_t most_left_over = 0;
    for (uint32_t i = 0; i < resolved->deltas.count; i++) {
        quern__archetype_delta *delta = &resolved->deltas.items[i];
        const uint32_t leaving = delta->leaving_count, created = delta->created_count;
        if (!has_gaps) delta->first_gap = gap_count;
        gap_count += leaving;
        if (leaving > created) delta->left_over_count = leaving - created;
        if (delta->left_over_count > most_left_over) most_left_over = delta->left_over_count;
        delta->appended_count = delta->arriving_count + (created > leaving ? created - leaving : 0);
        delta->is_emptied =
            leaving == quern__delta_row_count(delta) && (delta->appended_count | created) == 0;
        if (delta->appended_count == 0) continue;
        const quern_result result = quern__rows_reserve(storage, delta->archetype, delta->appended_count);
        if (result != QUERN_OK) return result;
        delta->is_reserved = true;
    }
    *out_gap_count = gap_count;
    *out_most_left_over = most_left_over;
    return QUERN_OK;
}

quern_result quern__created_check(uint64_t count)
{
    if (count <= QUERN_MAX_ENTITIES) return QUERN_OK;
    return quern__fail(QUERN_ERROR_LIMIT,
                       "one sync point cannot create %llu entities; the limit is %u (QUERN_MAX_ENTITIES)",
                       (unsigned long long)count, QUERN_MAX_ENTITIES);
}

static quern_result reserve_room(quern__resolved *resolved, const quern__gathered *gathered,
                                 quern__storage *storage, bool has_gaps)
{
    const quern_allocator *allocator = &storage->allocator;
    const bool spawns = QUERN__MAY(gathered->traits, SPAWNS);
    quern_result result = quern__created_check(resolved->created_count);
    if (result != QUERN_OK) return result;
    const uint32_t created = (uint32_t)resolved->created_count;
    uint64_t gap_count;
    uint32_t most_left_over;
    if (created > 0) result = quern__entities_reserve(&storage->entities, allocator, created);
    if (QUERN__UNLIKELY(spawns) && result == QUERN_OK) result = quern__spawned_reserve(resolved, storage);
    const uint32_t destroyed = (uint32_t)resolved->destroyed_count;
    if (result == QUERN_OK) result = reserve_rows(resolved, storage, has_gaps, &gap_count, &most_left_over);
    if (result != QUERN_OK) return result;
    if (!quern__array_reserve(allocator, &resolved->gaps, (uint32_t)gap_count) ||
        !quern__array_reserve(allocator, &resolved->tails, most_left_over) ||
        !quern__array_reserve(allocator, &resolved->destroyed, destroyed) ||
        !quern__array_reserve(allocator, &resolved->created, created))
        return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory to list the rows that arrive and leave");
    resolved->destroyed.count = destroyed;
    return QUERN_OK;
}

void quern__resolved_unreserve(quern__resolved *resolved, quern__storage *storage)
{
    for (uint32_t i = 0; i < resolved->deltas.count; i++)
        if (resolved->deltas.items[i].is_reserved) {
            quern__rows_unreserve(storage, resolved->deltas.items[i].archetype);
            resolved->deltas.items[i].is_reserved = false;
        }
}

quern_result quern__resolved_reserve(quern__resolved *resolved, const quern__gathered *gathered,
                                     quern__storage *storage, bool has_gaps)
{
    const quern_result result = reserve_room(resolved, gathered, storage, has_gaps);
    if (result == QUERN_OK) return QUERN_OK;
    quern__resolved_unreserve(resolved, storage);
    quern__entities_trim(&storage->entities, &storage->allocator);
    return result;
}

/* ------------------------------------------------------------------------------------------- refusals */

/* Returns the sequence of all commands on an entity, or NULL if the entity is dead. stream_index: the stream in
 * which a provisional handle is valid. */
static const quern__sequence *sequence_of(const resolving *it, uint32_t stream_index, quern_entity entity)
{
    const quern__chunk_edits *edits = NULL;
    uint32_t row = quern_entity_index(entity);
    uintptr_t location = 0;
    uint32_t hint = 0;
    if (!quern_entity_is_provisional(entity)) {
        const quern__record *record = quern__entities_find(&it->storage->entities, entity);
        if (record == NULL) return NULL;
        location = record->location;
    } else if (it->merged->spawned != NULL &&
               quern__spawned_find(it->resolved,
                                   it->merged->streams.items[stream_index].first_created + row, &hint,
                                   &location) &&
               location == 0) {
        return NULL; /* merging has dropped commands on members of refused instances */
    }
    if (location == 0) {
        edits = &it->merged->edits.items[it->merged->streams.items[stream_index].create_edits];
    } else {
        const quern__chunk *chunk = quern__chunk_at(location);
        edits = quern__merged_find(it->merged, chunk);
        row = (uint32_t)(location - (uintptr_t)chunk);
    }
    const uint32_t index =
        edits->view_count > 0 ? quern__view_edits_sequence(edits, row) : edits->rows[row].sequence;
    return &edits->scratch->sequences.list.items[index];
}

/* Drops the commands of a batch on refused entities. Refusals are rare, so all commands are searched again.
 * Returns false if out of memory. */
static bool drop_refused_of_batch(const resolving *it, uint32_t stream_index, quern__command_batch *batch,
                                  uint64_t number)
{
    quern__scratch *scratch = it->merged->scratches.items[0];
    const quern__stream *stream = it->gathered->streams.items[stream_index].stream;
    const quern__operation *operation = batch->operation;
    const uint8_t merge_kind = quern__command_kinds[operation->kind].merge_kind;
    const bool creates = merge_kind == QUERN__MERGE_CREATE;
    /* the relate stage has dropped other commands, and spawned.c counts refused instances */
    if (!creates && merge_kind != QUERN__MERGE_ROW) return true;
    for (uint32_t i = 0; i < batch->item_count; i++) {
        quern_entity entity =
            batch->is_view ? quern__view_entities(batch)[i] : quern__batch_item(batch, i)->entity;
        const quern__sequence *sequence = sequence_of(it, stream_index, entity);
        if (sequence == NULL || !sequence->is_refused || operation->command_count <= creates) continue;
        quern__scratch_drop(scratch, stream, number + i, entity, operation->command_count - creates,
                            QUERN_DROP_REFUSED);
        quern__listener_drop(it->storage,
                             &(quern__dropped_items){.key = stream->origin.key,
                                                     .first_number = number + i,
                                                     .count = 1,
                                                     .command_count = operation->command_count - creates,
                                                     .reason = QUERN_DROP_REFUSED});
    }
    return !scratch->is_out_of_memory;
}

static bool drop_refused(const resolving *it)
{
    for (uint32_t i = 0; i < it->gathered->streams.count; i++) {
        const quern__stream *stream = it->gathered->streams.items[i].stream;
        quern__command_batch *batch = stream->first;
        uint64_t number = 0;
        for (uint32_t k = 0; k < stream->batch_count; k++) {
            if (k > 0) {
                number += batch->item_count;
                batch = quern__batch_next(batch);
            }
            if (!drop_refused_of_batch(it, i, batch, number)) return false;
        }
    }
    return true;
}

/* ------------------------------------------------------------------------------------------- resolve */

quern_result quern__commands_resolve(quern__resolved *resolved, quern__merged *merged,
                                     const quern__gathered *gathered, quern__storage *storage,
                                     quern__drops *drops)
{
    const resolving it = {
        .resolved = resolved, .merged = merged, .gathered = gathered, .storage = storage, .drops = drops};
    quern_result result = QUERN_OK;
    quern__leaving_begin(storage);
    resolved->created_count = gathered->create_count;
    for (uint32_t i = 0; i < merged->chunk_edits.count && result == QUERN_OK; i++)
        result = resolve_edits(&it, merged->chunk_edits.items[i]);
    for (uint32_t i = 0; i < merged->create_edits_count && result == QUERN_OK; i++)
        result = resolve_edits(&it, &merged->edits.items[i]);
    if (result == QUERN_OK && resolved->refused_count > 0 && !drop_refused(&it))
        result = QUERN_ERROR_OUT_OF_MEMORY;
    uint32_t drop_count = drops->count + resolved->further_drop_count;
    for (uint32_t i = 0; i < merged->used_scratch_count; i++)
        drop_count += merged->scratches.items[i]->drops.count;
    if (result == QUERN_OK && !quern__array_reserve(&storage->allocator, drops, drop_count))
        result = QUERN_ERROR_OUT_OF_MEMORY;
    if (result == QUERN_ERROR_OUT_OF_MEMORY)
        return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory to resolve commands");
    return result;
}
