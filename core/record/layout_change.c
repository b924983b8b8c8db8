/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* What recorders keep about the layout of a component that is redefined: operations of commands, of spawns and of
 * accumulated values. */
#include "core/record/accumulator.h"
#include "core/record/spawn.h"

/* Returns whether a waiting command of the recorder has a value of the component. */
static bool has_value(const quern_commands *commands, uint32_t component_index)
{
    for (uint32_t i = 0; i < commands->streams.count; i++) {
        quern__command_batch *batch = commands->streams.items[i].first;
        for (uint32_t k = 0; k < commands->streams.items[i].batch_count; k++) {
            if (k > 0) batch = quern__batch_next(batch);
            if (quern__operation_has_value(batch->operation, component_index)) return true;
        }
    }
    return false;
}

quern_result quern__recorders_check_layout_change(const quern__storage *storage, uint32_t component_index)
{
    for (const quern_commands *it = storage->first_recorder; it != NULL; it = it->next_recorder) {
        if (it->old_spawn_caches == NULL && !has_value(it, component_index) &&
            (it->accumulator == NULL || !has_value(&it->accumulator->recorder, component_index)))
            continue;
        return quern__fail(
            QUERN_ERROR_INVALID_ARGUMENT,
            "commands with values of '%s' are waiting, or commands that spawn a destroyed prefab: "
            "apply them first (quern_world_flush, or run a frame)",
            quern__components_type(&storage->components, component_index)->name);
    }
    return QUERN_OK;
}

/* Forgets how values of the component are accumulated. */
static void forget_accumulations(quern_commands *commands, uint32_t component_index)
{
    quern__accumulator *accumulator = commands->accumulator;
    const quern_allocator *allocator = &commands->storage->allocator;
    uint32_t kept_count = 0;
    for (uint32_t i = 0; i < accumulator->list.count; i++) {
        quern__accumulation *it = accumulator->list.items[i];
        if (it->component_index != component_index) {
            accumulator->list.items[kept_count++] = it;
            continue;
        }
        quern__accumulator_forget_last(accumulator);
        quern__operation_release(it->operation, allocator);
        quern__release(allocator, it, sizeof *it, _Alignof(quern__accumulation));
    }
    accumulator->list.count = kept_count;
}

void quern__recorders_change_layout(const quern__storage *storage, uint32_t component_index)
{
    const quern__components *components = &storage->components;
    for (quern_commands *it = storage->first_recorder; it != NULL; it = it->next_recorder) {
        quern__operations *operations = &it->operations;
        for (uint32_t i = 0; i < operations->singles.count; i++)
            if (operations->singles.items[i] != NULL)
                quern__operation_change_layout(operations->singles.items[i], components, component_index);
        for (uint32_t i = 0; i < operations->creates.capacity; i++) {
            if (operations->creates.slots[i].key == 0) continue;
            quern__operation *operation = (void *)(uintptr_t)operations->creates.slots[i].value;
            for (; operation != NULL; operation = operation->next_same_key)
                quern__operation_change_layout(operation, components, component_index);
        }
        for (uint32_t i = 0; i < it->spawns.count; i++) {
            if (it->spawns.items[i] == NULL) continue;
            quern__spawn_variant *variant = it->spawns.items[i]->variants;
            for (; variant != NULL; variant = variant->next)
                quern__operation_change_layout(variant->operation, components, component_index);
        }
        if (it->accumulator != NULL) forget_accumulations(it, component_index);
    }
}
