/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */

/* "immigrate" (phase "life") prevents the extinction of a species, "take census" (phase "observe")
 * counts agents. */

#include "agent.h"
#include "check.h"
#include "rules.h"
#include "systems.h"

#include <quern/kit/random.h>

/* --------------------------------------------------------------------------------------- immigrate */

/* Returns the number of immigrants of a frame: they restore the floor of a species in about a second. */
static uint32_t immigrant_count(uint64_t alive_count, uint32_t floor_count)
{
    return alive_count >= floor_count ? 0 : 1 + floor_count / 60;
}

static void immigrate_species(quern_context *context, uint32_t count, bool is_hunter)
{
    const Types *types = quern_context_user_data(context);
    const Rules *rules = quern_context_resource(context, types->rules);
    uint64_t key = quern_random(rules->seed + is_hunter, quern_context_frame_index(context));
    for (uint32_t i = 0; i < count; i++) {
        Agent agent = agent_make(rules, quern_random(key, i), is_hunter);
        agent.position.x = 0.0f;
        agent_create_deferred(quern_context_commands(context), types, &agent);
    }
}

static void immigrate(quern_context *context, const quern_view *view)
{
    (void)view;
    const Types *types = quern_context_user_data(context);
    const Rules *rules = quern_context_resource(context, types->rules);
    const Census *census = quern_context_resource(context, types->census);
    immigrate_species(context, immigrant_count(census->prey_count, rules->prey.floor_count), false);
    immigrate_species(context, immigrant_count(census->hunter_count, rules->hunter.floor_count), true);
}

static void add_immigrate(quern_schedule *schedule, Types *types)
{
    const quern_system_def def = {
        .name = "immigrate",
        .phase = PHASE_LIFE,
        .run = immigrate,
        .user_data = types,
        .resources = {{types->rules, QUERN_ACCESS_READ}, {types->census, QUERN_ACCESS_READ}}};
    check(quern_schedule_add_system(schedule, &def, NULL));
}

/* ----------------------------------------------------------------------------------------- census */

enum { CENSUS_ENERGY, CENSUS_HUNTER };

typedef struct Tally {
    uint64_t count;
    double energy;
} Tally;

typedef struct Tallies {
    Tally prey, hunter;
} Tallies;

static void tally_view(quern_context *context, const quern_view *view)
{
    Tallies *tallies = quern_context_partial(context);
    Tally *tally = quern_view_has(view, CENSUS_HUNTER) ? &tallies->hunter : &tallies->prey;
    const Energy *energy = QUERN_COLUMN(view, CENSUS_ENERGY, const Energy);
    tally->count += view->count;
    const uint32_t count = view->count;
    for (uint32_t i = 0; i < count; i++)
        tally->energy += (double)energy[i].value;
}

static double mean_energy(Tally tally)
{
    return tally.count == 0 ? 0.0 : tally.energy / (double)tally.count;
}

/* Adds up the partial results. Floating-point sums depend on their order. Partial results are in the
 * order of views, which depends on the world and not on threads, so the mean has the same bits at every
 * number of threads. */
static void take_census(quern_context *context)
{
    const Types *types = quern_context_user_data(context);
    Tallies total = {.prey = {0}};
    uint32_t count = quern_context_partial_count(context);
    for (uint32_t i = 0; i < count; i++) {
        const Tallies *partial = quern_context_partial_at(context, i);
        total.prey.count += partial->prey.count;
        total.prey.energy += partial->prey.energy;
        total.hunter.count += partial->hunter.count;
        total.hunter.energy += partial->hunter.energy;
    }
    Census *census = quern_context_resource_write(context, types->census);
    census->prey_count = total.prey.count;
    census->prey_energy = mean_energy(total.prey);
    census->hunter_count = total.hunter.count;
    census->hunter_energy = mean_energy(total.hunter);
}

static void add_census(quern_schedule *schedule, Types *types)
{
    /* Only take_census writes the resource, so its views may run at the same time. */
    const quern_system_def def = {
        .name = "take census",
        .phase = PHASE_OBSERVE,
        .run = tally_view,
        .end = take_census,
        .partial_bytes = sizeof(Tallies),
        .user_data = types,
        .terms = {[CENSUS_ENERGY] = quern_term_read(types->energy),
                  [CENSUS_HUNTER] = quern_term_optional(types->hunter, QUERN_ACCESS_NONE)},
        .resources = {{types->census, QUERN_ACCESS_WRITE_CONCURRENT}}};
    check(quern_schedule_add_system(schedule, &def, NULL));
}

void systems_add_population(quern_schedule *schedule, Types *types)
{
    add_immigrate(schedule, types);
    add_census(schedule, types);
}
