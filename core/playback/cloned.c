/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Clones at a sync point (stages.h): what each command copies, found after gathering, before anything changes. From then on
 * a clone is an instance like those of prefabs (spawned.c). */
#include "core/playback/stages.h"

#include "core/reactions/hook.h"

/* Number of latest clones among which a captured tree is searched: systems often copy one entity many times. */
enum { SEARCHED_CLONES = 8 };

/* Returns the tree of an entity that a clone shortly before has captured, with a reference for the caller, or NULL. */
static quern__prefab *find_captured(const quern__resolved *resolved, quern_entity entity)
{
    const uint32_t count = resolved->clones.count;
    for (uint32_t i = count; i-- > 0 && count - i <= SEARCHED_CLONES;)
        if (quern_entity_equal(resolved->clones.items[i].entity, entity) &&
            resolved->clones.items[i].prefab != NULL) {
            quern__prefab_retain(resolved->clones.items[i].prefab);
            return resolved->clones.items[i].prefab;
        }
    return NULL;
}

/* Finds what the clone copies. Leaves of worlds with entity hooks are captured, too: hooks run before rows are copied, and
 * may write to the rows. Errors: OUT_OF_MEMORY; those of a tree that cannot be copied. */
static quern_result find_source(const quern__resolved *resolved, quern__storage *storage,
                                quern__clone *clone)
{
    if (!quern__hooks_are_used(storage) && quern__leaf_find(storage, clone->entity, &clone->archetype))
        return QUERN_OK;
    clone->prefab = find_captured(resolved, clone->entity);
    return clone->prefab != NULL ? QUERN_OK : quern__prefab_capture(storage, clone->entity, &clone->prefab);
}

/* Logs why an entity is not copied, for the first such clone of each system. */
static void log_failure(const quern__resolved *resolved, const quern__stream *stream, quern_entity entity)
{
    const char *name = stream->origin.name;
    for (uint32_t i = resolved->clones.count; i-- > 0;)
        if (resolved->clones.items[i].is_not_copied && !resolved->clones.items[i].is_dead &&
            resolved->clones.items[i].system_number == stream->origin.system_number)
            return;
    quern__log(QUERN_LOG_ERROR, "%s%s%s: quern_commands_clone: entity %u:%u is not copied: %s",
               name != NULL ? "system '" : "", name != NULL ? name : "a command", name != NULL ? "'" : "",
               quern_entity_index(entity), quern_entity_generation(entity), quern_error_message());
}

/* Gives the stream the handles of the copies, the traits of what they need, and notes what it had before. */
static bool extend_stream(quern__resolved *resolved, quern__gathered *gathered, quern__stream *stream,
                          const quern__storage *storage, quern__clone *clone)
{
    const uint32_t member_count = clone->prefab != NULL ? clone->prefab->members.count : 1;
    const uint32_t count = resolved->cloned_streams.count;
    if (count == 0 || resolved->cloned_streams.items[count - 1].stream != stream) {
        if (!quern__array_reserve(&storage->allocator, &resolved->cloned_streams, count + 1)) return false;
        resolved->cloned_streams.items[resolved->cloned_streams.count++] =
            (quern__cloned_stream){.stream = stream,
                                   .create_count = stream->create_count,
                                   .member_count = stream->member_count,
                                   .traits = stream->traits};
    }
    clone->first_other = stream->create_count;
    stream->create_count += member_count - 1;
    stream->member_count += member_count;
    gathered->create_count += member_count - 1;
    if (clone->prefab != NULL || clone->parent.bits != 0) {
        stream->traits &= (uint8_t)~QUERN__TRAIT_NO_RELATES;
        gathered->traits &= (uint8_t)~QUERN__TRAIT_NO_RELATES;
    }
    /* only merging counts commands that are dropped */
    if (clone->is_not_copied) gathered->traits &= (uint8_t)~QUERN__TRAIT_DESTROY_OR_CREATE;
    return true;
}

static quern_result begin_clone(quern__resolved *resolved, quern__gathered *gathered, quern__stream *stream,
                                quern__storage *storage, quern__clone_item *item)
{
    quern__clone clone = {
        .entity = item->entity, .parent = item->parent, .system_number = stream->origin.system_number};
    quern_result result = QUERN_OK;
    clone.is_dead = clone.is_not_copied = quern__entities_find(&storage->entities, item->entity) == NULL;
    if (!clone.is_dead) result = find_source(resolved, storage, &clone);
    if (result == QUERN_ERROR_OUT_OF_MEMORY) return result;
    if (result != QUERN_OK) log_failure(resolved, stream, item->entity);
    clone.is_not_copied |= result != QUERN_OK;
    if (item->has_parent == 0 && !clone.is_not_copied)
        clone.parent =
            quern__entity_of_link(storage, quern__parent_slot(storage, quern_entity_index(item->entity)));
    const uint32_t member_count = clone.prefab != NULL ? clone.prefab->members.count : 1;
    result = quern__created_check((uint64_t)stream->create_count + member_count);
    if (result == QUERN_OK &&
        (!quern__array_reserve(&storage->allocator, &resolved->clones, resolved->clones.count + 1) ||
         !extend_stream(resolved, gathered, stream, storage, &clone)))
        result = quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory to list clones");
    if (result != QUERN_OK) {
        quern__prefab_release(clone.prefab, &storage->allocator);
        return result;
    }
    item->index = resolved->clones.count;
    resolved->clones.items[resolved->clones.count++] = clone;
    return QUERN_OK;
}

quern_result quern__clones_begin(quern__resolved *resolved, quern__gathered *gathered,
                                 quern__storage *storage)
{
    quern_result result = QUERN_OK;
    for (uint32_t i = 0; i < gathered->streams.count; i++) {
        quern__stream *stream = gathered->streams.items[i].stream;
        if (!QUERN__MAY(stream->traits, SPAWNS)) continue;
        quern__command_batch *batch = stream->first;
        for (uint32_t k = 0; k < stream->batch_count; k++) {
            if (k > 0) batch = quern__batch_next(batch);
            if (batch->operation != &quern__operation_clone) continue;
            for (uint32_t m = 0; m < batch->item_count && result == QUERN_OK; m++)
                result = begin_clone(resolved, gathered, stream, storage,
                                     (quern__clone_item *)(void *)quern__batch_item(batch, m));
            if (result != QUERN_OK) return result;
        }
    }
    return QUERN_OK;
}

void quern__clones_end(quern__resolved *resolved, const quern__storage *storage)
{
    for (uint32_t i = 0; i < resolved->clones.count; i++)
        quern__prefab_release(resolved->clones.items[i].prefab, &storage->allocator);
    for (uint32_t i = 0; i < resolved->cloned_streams.count; i++) {
        const quern__cloned_stream *before = &resolved->cloned_streams.items[i];
        before->stream->create_count = before->create_count;
        before->stream->member_count = before->member_count;
        before->stream->traits = before->traits;
    }
    resolved->clones.count = resolved->cloned_streams.count = 0;
}

quern_result quern__leaf_plan_find(quern__resolved *resolved, quern__storage *storage,
                                   quern__archetype *archetype, uint32_t parent_slot,
                                   const quern__prefab_plan **out_plan)
{
    quern__archetype *target;
    quern_result result = quern__leaf_find_target(storage, archetype, parent_slot, &target);
    if (result != QUERN_OK) return result;
    const uint32_t count = resolved->leaf_plan_count;
    for (uint32_t i = count; i-- > 0 && count - i <= SEARCHED_CLONES;)
        if (resolved->leaf_plans.items[i]->archetype == target) {
            *out_plan = &resolved->leaf_plans.items[i]->plan;
            return QUERN_OK;
        }
    if (count == resolved->leaf_plans.count) {
        const quern_allocator *allocator = &storage->allocator;
        quern__leaf_plan *made = NULL;
        if (quern__array_reserve(allocator, &resolved->leaf_plans, count + 1))
            made = quern__allocate(allocator, sizeof *made, _Alignof(quern__leaf_plan));
        if (made == NULL) return QUERN_ERROR_OUT_OF_MEMORY;
        resolved->leaf_plans.items[resolved->leaf_plans.count++] = made;
    }
    quern__leaf_plan_init(resolved->leaf_plans.items[count], target);
    *out_plan = &resolved->leaf_plans.items[resolved->leaf_plan_count++]->plan;
    return QUERN_OK;
}

void quern__clones_release(quern__resolved *resolved, const quern_allocator *allocator)
{
    for (uint32_t i = 0; i < resolved->leaf_plans.count; i++)
        quern__release(allocator, resolved->leaf_plans.items[i], sizeof(quern__leaf_plan),
                       _Alignof(quern__leaf_plan));
    quern__array_release(allocator, &resolved->leaf_plans);
    quern__array_release(allocator, &resolved->clones);
    quern__array_release(allocator, &resolved->cloned_streams);
    quern__array_release(allocator, &resolved->others);
    quern__array_release(allocator, &resolved->handles);
}
