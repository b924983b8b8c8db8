/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* In place of core/reactions, if QUERN_WITHOUT names it: no system can react, so nothing is ever pending, and no entity can
 * have a component with entity hooks. */

#include "core/reactions/hook.h"
#include "core/reactions/reaction.h"

#include "core/base/base_internal.h"
#include "core/storage/storage.h"
#include "sched/frame/schedule_internal.h"
#include "sched/schedule/schedule_plan.h"

const quern__row_events quern__subscription_events;

/* Refuses archetypes whose components have entity hooks, which nothing would call. */
static quern_result refuse_hooks(quern__storage *storage, quern__archetype *archetype)
{
    for (uint32_t i = 0; i < archetype->component_count; i++) {
        const quern__type *type =
            quern__components_type(&storage->components, archetype->component_indices[i]);
        if (quern__entity_hooks_exist(&type->entity_hooks))
            return quern__fail(
                QUERN_ERROR_UNAVAILABLE,
                "component '%s' has entity hooks, which are missing: this library was built with "
                "QUERN_WITHOUT=reactions; link a library with that room",
                type->name);
    }
    return QUERN_OK;
}

void quern__reactions_init(quern__reactions *reactions, quern__storage *storage)
{
    *reactions = (quern__reactions){.listener = {.created = refuse_hooks}};
    storage->reactions = reactions;
    quern__storage_listen(storage, &reactions->listener);
}

quern_result quern__hooks_attach(quern_world *world, uint32_t component_index)
{
    return quern__fail(
        QUERN_ERROR_UNAVAILABLE,
        "component '%s' cannot get entity hooks, which are missing: this library was built with "
        "QUERN_WITHOUT=reactions; link a library with that room",
        quern__components_type(&world->storage.components, component_index)->name);
}

void quern__hooks_call_remove(quern__storage *storage, const quern__archetype *archetype,
                              const quern__archetype *target, uintptr_t first, uint32_t count)
{
    (void)storage, (void)archetype, (void)target, (void)first, (void)count;
}

void quern__hooks_before_all_leave(quern__storage *storage, const quern__archetype *archetype,
                                   const quern__archetype *target)
{
    (void)storage, (void)archetype, (void)target;
}

void quern__hooks_before_end(quern__storage *storage)
{
    (void)storage;
}

uint32_t quern__hooks_level(const quern__storage *storage, const quern__archetype *archetype)
{
    (void)storage, (void)archetype;
    return 0;
}

void quern__hooks_call_after(quern__storage *storage)
{
    (void)storage;
}

void quern__reactions_release(quern__storage *storage)
{
    (void)storage;
}

quern_result quern__reaction_add(quern__storage *storage, const quern__reaction_def *def,
                                 quern__reaction **out_reaction)
{
    (void)storage, (void)def, (void)out_reaction;
    return quern__fail(QUERN_ERROR_UNAVAILABLE,
                       "reactions are missing: this library was built with QUERN_WITHOUT=reactions; link a "
                       "library with that room");
}

void quern__reaction_remove(quern__storage *storage, quern__reaction *reaction)
{
    (void)storage, (void)reaction;
}

void quern__reaction_add_present(quern__reaction *reaction, const quern__reaction *replaced)
{
    (void)reaction, (void)replaced;
}

bool quern__reactions_miss(const quern__reactions *reactions, uint32_t component_index,
                           const quern__archetype *archetype)
{
    (void)reactions, (void)component_index, (void)archetype;
    return false;
}

void quern__reaction_drop(quern__storage *storage, quern__reaction *reaction)
{
    (void)storage, (void)reaction;
}

void quern__reactions_forget_removed(quern__storage *storage)
{
    (void)storage;
}

void quern__reactions_sort_subscriptions(quern__storage *storage)
{
    (void)storage;
}

quern_result quern__reactions_check_hooks(const quern__storage *storage, uint32_t component_index,
                                          const quern__type *type)
{
    (void)storage, (void)component_index, (void)type;
    return QUERN_OK;
}

quern_result quern__reactions_prepare_conversion(const quern__storage *storage,
                                                 const quern__archetype *source,
                                                 const quern__archetype *target, quern__type_change *change)
{
    (void)storage, (void)source, (void)target, (void)change;
    return QUERN_OK;
}

void quern__reactions_convert(const quern__archetype *source, const quern__archetype *target,
                              const quern__type_change *change)
{
    (void)source, (void)target, (void)change;
}

void quern__reactions_trim(quern__storage *storage)
{
    (void)storage;
}

bool quern__archetype_has_removed_copies(const quern__archetype *archetype)
{
    (void)archetype;
    return false;
}

bool quern__reaction_pass_is_due(const quern__plan *plan, const quern__segment *segment)
{
    (void)plan, (void)segment;
    return false;
}

quern_result quern__reaction_pass_prepare(quern__pass *pass)
{
    (void)pass;
    return QUERN_OK;
}

void quern__reaction_pass_finish(const quern__plan *plan, const quern__segment *segment, bool has_run)
{
    (void)plan, (void)segment, (void)has_run;
}

void quern__pass_run_reactions(const quern__pass_stage *stage, uint32_t begin, uint32_t end,
                               quern_context *context, bool reports)
{
    (void)stage, (void)begin, (void)end, (void)context, (void)reports;
}

quern_result quern__reaction_rounds_run(quern_schedule *schedule, quern__flush_report *report)
{
    (void)schedule, (void)report;
    return QUERN_OK;
}

void quern__reaction_rounds_clear_frame(quern_schedule *schedule)
{
    (void)schedule;
}

bool quern__reaction_rounds_are_due(const quern_schedule *schedule)
{
    (void)schedule;
    return false;
}
