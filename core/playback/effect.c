/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "core/playback/effect.h"

#include "core/playback/kind_calls.h"
#include "core/storage/required.h"

static void decide(quern__effect *it, uint32_t component_index, bool is_present)
{
    quern__bitset_add(it->decided, component_index);
    if (!is_present) return;
    quern__bitset_add(it->present, component_index);
    it->present_count++;
}

void quern__effect_give(quern__effect *effect, const quern__operation *operation, uint32_t i, uint32_t hop)
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

void quern__effect_remove(quern__effect *effect, uint32_t component_index)
{
    decide(effect, component_index, false);
}

/* ---------------------------------------------------------------------------------------- the kinds */

static void finalize_bits_of(quern__effect *it, uint32_t index, uint32_t row_flags)
{
    for (uint32_t left = row_flags; left != 0; left &= left - 1) {
        const uint32_t flag = quern__lowest_bit_32(left);
        it->has_toggles = true;
        if (quern__bitset_has(it->toggled[flag], index)) quern__bitset_add(it->final[flag], index);
    }
}

/* Makes later changes of the component's bits final: the component is present from this command on, and so are those that
 * it requires, unless a later command removes the component. */
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

/* Clears the bits of a removed component. If a later command adds it again, its bits are clear. */
static void clear_bits(quern__effect *it, const quern__operand *operand)
{
    const uint32_t index = operand->component_index;
    for (uint32_t left = operand->row_flags; left != 0; left &= left - 1) {
        const uint32_t flag = quern__lowest_bit_32(left);
        it->has_toggles = true;
        if (quern__bitset_has(it->final[flag], index)) continue;
        quern__bitset_add(it->toggled[flag], index);
        quern__bitset_remove(it->sets[flag], index);
        quern__bitset_add(it->final[flag], index);
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
    if (!quern__bitset_has(effect->decided, operand->component_index))
        quern__effect_give(effect, operation, i, hop);
}

/* If the command before an add without a value is a remove that has an effect, the component is constructed anew. */
void quern__read_remove(quern__effect *effect, const quern__operation *operation, uint32_t i, uint32_t hop)
{
    const quern__operand *operand = &operation->operands[i];
    if (QUERN__UNLIKELY(effect->components != NULL)) {
        if (quern__bitset_has(effect->kept, operand->component_index)) return;
        quern__bitset_add(effect->removed, operand->component_index);
    }
    clear_bits(effect, operand);
    if (quern__bitset_has(effect->decided, operand->component_index)) return;
    if (quern__bitset_has(effect->pending, operand->component_index))
        quern__effect_give(effect, operation, i, hop);
    else
        quern__effect_remove(effect, operand->component_index);
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

/* ----------------------------------------------------------------------------------------- the whole */

/* Adds the undecided components of a bitset, with constructed values. */
static void construct_all(quern__effect *it, const quern__storage *storage, const uint64_t *components)
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
    construct_all(effect, storage, effect->pending);
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
    construct_all(effect, storage, required);
}

void quern__effect_read(quern__effect *effect, const quern__storage *storage,
                        const quern__sequences *sequences, const quern__sequence *sequence)
{
    const quern__archetype *source = sequence->source;
    memset(effect, 0, offsetof(quern__effect, fills));
    if (storage->components.has_requirements) effect->components = &storage->components;
    read_operations(effect, storage, sequences, sequence);
    if (effect->components != NULL) read_required(effect, storage, sequences, sequence);
    effect->equals_source_set =
        source != NULL && !effect->removes && effect->present_count == source->component_count;
}
