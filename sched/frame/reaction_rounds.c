/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "sched/frame/reaction_rounds.h"

#include "sched/frame/frame.h"
#include "sched/schedule/reaction_pass.h"

enum { NAMED_ROUNDS = 4 }; /* rounds of a cycle that the message names */

void quern__reaction_rounds_clear_frame(quern_schedule *schedule)
{
    schedule->has_reacted = false;
    for (uint32_t i = 0; i < schedule->plan.systems.count; i++) {
        quern__system *system = schedule->plan.systems.items[i];
        if (system->reaction == NULL) continue;
        system->step_view_count = 0;
        system->step_entity_count = 0;
    }
}

bool quern__reaction_rounds_are_due(const quern_schedule *schedule)
{
    for (uint32_t i = 0; i < schedule->plan.systems.count; i++) {
        const quern__system *system = schedule->plan.systems.items[i];
        if (system->reaction != NULL && system->reaction->is_pending) return true;
    }
    return false;
}

/* --------------------------------------------------------------------------------------------- trail */

typedef bool reaction_choice(const quern__system *system);

static bool has_run(const quern__system *system)
{
    return system->is_active;
}

static bool is_due(const quern__system *system)
{
    return system->reaction->is_pending;
}

/* Appends the selected reactions of a round to the trail: "'a', 'b' -> 'c'". */
static void append_round(quern_schedule *schedule, reaction_choice *is_selected)
{
    const quern__plan *plan = &schedule->plan;
    char *trail = schedule->reaction_trail;
    const char *separator = trail[0] != '\0' ? " -> " : "";
    const uint32_t first = plan->order.count - plan->reaction_count;
    for (uint32_t i = first; i < plan->order.count; i++) {
        const quern__system *system = plan->order.items[i];
        if (!is_selected(system)) continue;
        quern__append(trail, sizeof schedule->reaction_trail, "%s'%s'", separator, system->name);
        separator = ", ";
    }
}

/* -------------------------------------------------------------------------------------------- rounds */

/* Begins a round: marks all reactions as inactive. A segment without pending changes does not run, so it would
 * keep the marks of the previous round. */
static void start_round(quern_schedule *schedule)
{
    schedule->has_reacted = true;
    for (uint32_t i = 0; i < schedule->plan.systems.count; i++)
        if (schedule->plan.systems.items[i]->reaction != NULL)
            schedule->plan.systems.items[i]->is_active = false;
}

quern_result quern__reaction_rounds_run(quern_schedule *schedule, quern__flush_report *report)
{
    const uint32_t round_limit = schedule->plan.max_reaction_rounds;
    if (!schedule->has_reached_round_limit) schedule->reaction_trail[0] = '\0';
    for (uint32_t round = 0; quern__reaction_rounds_are_due(schedule); round++) {
        if (round == round_limit) {
            if (!schedule->has_reached_round_limit) append_round(schedule, is_due);
            schedule->has_reached_round_limit = true;
            quern__reaction_pass_drop_changes(&schedule->plan);
            return QUERN_OK;
        }
        start_round(schedule);
        const quern_result result = quern__frame_run_round(schedule, report);
        if (result != QUERN_OK) return result;
        if (round + NAMED_ROUNDS >= round_limit && !schedule->has_reached_round_limit)
            append_round(schedule, has_run);
    }
    return QUERN_OK;
}

/* -------------------------------------------------------------------------------------- between frames */

static const char function_name[] = "quern_world_react";

static quern_result check_schedules(const quern_world *world, uint32_t *out_round_limit)
{
    *out_round_limit = 0;
    for (const quern_schedule *it = world->first_schedule; it != NULL; it = it->next_schedule) {
        const quern_result result = quern__schedule_check_idle(it, function_name);
        if (result != QUERN_OK) return result;
        if (it->plan.max_reaction_rounds > *out_round_limit)
            *out_round_limit = it->plan.max_reaction_rounds;
    }
    return QUERN_OK;
}

/* Runs the reactions of each schedule until it has no pending changes. A schedule may cause changes for
 * schedules before it. */
static quern_result react_all(const quern_world *world, quern_jobs *jobs, bool *out_any)
{
    quern_result result = QUERN_OK;
    *out_any = false;
    for (quern_schedule *it = world->first_schedule; it != NULL && result == QUERN_OK;
         it = it->next_schedule) {
        if (!quern__reaction_rounds_are_due(it)) continue;
        *out_any = true;
        result = quern__frame_run_reactions(it, jobs, function_name);
    }
    return result;
}

static quern_result fail_between(const quern_world *world, uint32_t round_limit)
{
    char names[384] = "";
    for (const quern_schedule *it = world->first_schedule; it != NULL; it = it->next_schedule)
        for (uint32_t i = 0; i < it->plan.systems.count; i++) {
            const quern__system *system = it->plan.systems.items[i];
            if (system->reaction == NULL || !system->reaction->is_pending) continue;
            quern__append(names, sizeof names, "%s'%s'", names[0] != '\0' ? ", " : "", system->name);
        }
    for (const quern_schedule *it = world->first_schedule; it != NULL; it = it->next_schedule)
        quern__reaction_pass_drop_changes(&it->plan);
    return quern__fail(
        QUERN_ERROR_LIMIT,
        "reactions of several schedules caused each other %u times, and the pending changes were "
        "dropped: %s. Break the cycle, or raise max_reaction_rounds of a schedule",
        round_limit, names);
}

static quern_result react_until_quiet(const quern_world *world, quern_jobs *jobs)
{
    uint32_t round_limit;
    bool has_reacted_again = true;
    quern_result result = check_schedules(world, &round_limit);
    for (uint32_t turn = 0; has_reacted_again && result == QUERN_OK; turn++) {
        if (turn == round_limit + 1) return fail_between(world, round_limit);
        result = react_all(world, jobs, &has_reacted_again);
    }
    return result;
}

quern_result quern_world_react(quern_world *world, quern_jobs *jobs)
{
    if (world == NULL) return quern__fail_null(function_name, "world");
    if (!quern__world_claim(world, function_name)) return QUERN_ERROR_WORLD_LOCKED;
    quern_result result = quern__world_check_unlocked(world, function_name);
    if (result == QUERN_OK) result = quern__in_call(react_until_quiet(world, jobs), function_name);
    quern__world_unclaim(world);
    return result;
}
