/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "sched/schedule/compile.h"
#include "sched/schedule/schedule_plan.h"

/* Sets of systems: their definitions, their members, and what they enable; and the turns of systems that run in every
 * n-th frame. */

/* --------------------------------------------------------------------------------------- definitions */

static void never_called(quern_context *context)
{
    (void)context;
}

/* A callback needs a system that declares what it accesses: the condition of a set belongs to one that is in no phase. */
static quern_result create_asker(quern_world *world, const quern_set_def *def, quern__set *set)
{
    quern_system_def asker = {
        .name = set->name, .begin = never_called, .condition = def->condition, .user_data = def->user_data};
    if (def->condition == NULL) return QUERN_OK;
    memcpy(asker.resources, def->resources, sizeof asker.resources);
    for (uint32_t i = 0; i < QUERN_MAX_ACCESS; i++)
        if (asker.resources[i].resource.bits != 0 && asker.resources[i].access != QUERN_ACCESS_READ)
            return quern__fail(
                QUERN_ERROR_INVALID_ARGUMENT,
                "resource %u of the set's condition has another access than QUERN_ACCESS_READ: a "
                "condition only reads",
                i);
    return quern__system_create(world, &asker, 1, NULL, &set->asker);
}

quern_result quern__set_create(quern_world *world, const quern_set_def *def, quern__set **out_set)
{
    const quern_allocator *allocator = &world->storage.allocator;
    quern__set *set = quern__allocate(allocator, sizeof *set, _Alignof(quern__set));
    if (set == NULL) return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory for set '%s'", def->name);
    *set = (quern__set){.is_enabled = true, .is_open = true};
    memcpy(set->name, def->name, strlen(def->name) + 1);
    quern_result result = create_asker(world, def, set);
    if (result == QUERN_OK) result = quern__rules_add(&set->rules, allocator, def->before, QUERN__BEFORE);
    if (result == QUERN_OK) result = quern__rules_add(&set->rules, allocator, def->after, QUERN__AFTER);
    if (result == QUERN_OK)
        result = quern__rules_add(&set->rules, allocator, def->after_commands_of, QUERN__AFTER_COMMANDS_OF);
    if (result == QUERN_OK)
        *out_set = set;
    else
        quern__set_destroy(set, allocator);
    return result;
}

void quern__set_destroy(quern__set *set, const quern_allocator *allocator)
{
    if (set->asker != NULL) quern__system_destroy(set->asker);
    quern__array_release(allocator, &set->rules);
    quern__array_release(allocator, &set->members);
    quern__release(allocator, set, sizeof *set, _Alignof(quern__set));
}

quern__set *quern__plan_find_set(const quern__plan *plan, const char *name)
{
    for (uint32_t i = 0; i < plan->sets.count; i++)
        if (strcmp(plan->sets.items[i]->name, name) == 0) return plan->sets.items[i];
    return NULL;
}

bool quern__plan_allows(const quern__plan *plan, const quern__system *system)
{
    for (uint32_t i = 0; i < system->set_names.count; i++) {
        const quern__set *set = quern__plan_find_set(plan, system->set_names.items[i].text);
        if (set != NULL && !set->is_enabled) return false;
    }
    return system->wants_enabled;
}

/* ------------------------------------------------------------------------------------------- members */

static quern_result join_set(quern__plan *plan, quern__system *system, const char *name)
{
    quern__set *set = quern__plan_find_set(plan, name);
    if (set == NULL)
        return quern__fail(QUERN_ERROR_UNKNOWN_SYSTEM,
                           "system '%s' is in the set '%s', which the schedule does not have: add that set "
                           "(quern_schedule_add_set), or leave it out",
                           system->name, name);
    if (set->asker != NULL && system->reacts_to != 0)
        return quern__fail(QUERN_ERROR_SCHEDULE_CONFLICT,
                           "reaction '%s' is in the set '%s', which has a condition: a reaction runs at "
                           "sync points, and the "
                           "condition is asked before phases; give the reaction a condition of its own",
                           system->name, name);
    if (!quern__array_reserve(quern__plan_allocator(plan), &set->members, set->members.count + 1))
        return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory for the systems of set '%s'", name);
    set->members.items[set->members.count++] = system;
    if (set->asker != NULL) {
        system->gate_sets[system->gate_set_count++] = set;
        plan->asked_phases |= 1u << system->phase;
    }
    return QUERN_OK;
}

quern_result quern__sets_resolve(quern__plan *plan)
{
    quern_result result = QUERN_OK;
    plan->asked_phases = 0;
    for (uint32_t i = 0; i < plan->sets.count; i++)
        plan->sets.items[i]->members.count = 0;
    for (uint32_t i = 0; i < plan->systems.count && result == QUERN_OK; i++) {
        quern__system *system = plan->systems.items[i];
        system->gate_set_count = 0;
        for (uint32_t k = 0; k < system->set_names.count && result == QUERN_OK; k++)
            result = join_set(plan, system, system->set_names.items[k].text);
    }
    return result;
}

bool quern__set_is_in_phase(const quern__set *set, uint32_t phase)
{
    for (uint32_t i = 0; i < set->members.count; i++)
        if (set->members.items[i]->phase == phase) return true;
    return false;
}

/* --------------------------------------------------------------------------------------------- turns */

/* Systems that run in every n-th frame are spread over frames. Two of them, of n and m frames, meet if their turns are
 * equal modulo gcd(n, m), and then once in lcm(n, m) frames. In the order of registration, each system without a turn of
 * its own gets the one in which it meets those before it least often; of several, the first. So the turns depend on the
 * list of systems alone. */

static uint64_t greatest_divisor(uint64_t a, uint64_t b)
{
    while (b != 0) {
        const uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* Adds how often a system of `every` frames would meet the other one, for each of its turns. */
static void add_meetings(uint64_t *meetings, uint32_t every, const quern__system *other)
{
    const uint64_t whole = UINT64_C(1) << 48; /* once in each frame; far more than rounding loses */
    const uint64_t step = greatest_divisor(every, other->every);
    const uint64_t frames = every / step * other->every;
    for (uint64_t turn = other->turn % step; turn < every; turn += step)
        meetings[turn] += whole / frames;
}

quern_result quern__spread_systems(quern__plan *plan)
{
    const quern_allocator *allocator = quern__plan_allocator(plan);
    uint32_t most = 0;
    for (uint32_t i = 0; i < plan->systems.count; i++)
        if (plan->systems.items[i]->every > most) most = plan->systems.items[i]->every;
    if (most < 2) return QUERN_OK;
    const size_t bytes = most * sizeof(uint64_t);
    uint64_t *meetings = quern__allocate(allocator, bytes, _Alignof(uint64_t));
    if (meetings == NULL)
        return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory to spread systems over %u frames", most);
    for (uint32_t i = 0; i < plan->systems.count; i++) {
        quern__system *system = plan->systems.items[i];
        if (system->every < 2) continue;
        if (system->offset > 0) {
            system->turn = system->offset - 1;
            continue;
        }
        memset(meetings, 0, system->every * sizeof *meetings);
        for (uint32_t k = 0; k < i; k++)
            if (plan->systems.items[k]->every > 1)
                add_meetings(meetings, system->every, plan->systems.items[k]);
        system->turn = 0;
        for (uint32_t turn = 1; turn < system->every; turn++)
            if (meetings[turn] < meetings[system->turn]) system->turn = turn;
    }
    quern__release(allocator, meetings, bytes, _Alignof(uint64_t));
    return QUERN_OK;
}
