/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "simulation.h"

#include "agent.h"
#include "check.h"
#include "systems.h"

#include <quern/kit/random.h>

enum { AGENTS_PER_HUNTER = 32 }; /* agents per hunter at the start */

const double simulation_frame_seconds = 1.0 / 60.0;

/* --------------------------------------------------------------------------------------- resources */

static void register_rules(Types *types, quern_world *world, const Rules *rules)
{
    quern_resource_def def = {.name = "Rules", .size_bytes = sizeof *rules, .value = rules};
    check(quern_resource_register(world, &def, &types->rules));
}

/* Described, so that the hash of the world includes it. */
static void register_census(Types *types, quern_world *world)
{
    check(QUERN_RESOURCE_REGISTER_FIELDS(world, &types->census, Census, prey_count, hunter_count,
                                         prey_energy, hunter_energy));
}

/* -------------------------------------------------------------------------------------------- grid */

/* The grid of all agents, with velocities as payload. Phase "sense" builds it. */
static void create_grid(Simulation *simulation, const Rules *rules)
{
    Types *types = &simulation->types;
    const quern_grid_def def = {.position = types->position,
                                .planar = true,
                                .cell_size = 1,
                                .max = {rules->width, rules->height},
                                .marks = {types->hunter},
                                .payload = types->velocity};
    check(quern_grid_create(simulation->world, &def, &simulation->grid));
    types->grid = quern_grid_resource(simulation->grid);
}

/* ------------------------------------------------------------------------------------------- world */

static void populate(Simulation *simulation, const Rules *rules, uint32_t agent_count)
{
    Census *census = quern_resource_get(simulation->world, simulation->types.census);
    for (uint32_t i = 0; i < agent_count; i++) {
        bool is_hunter = i % AGENTS_PER_HUNTER == 0;
        Agent agent = agent_make(rules, quern_random(rules->seed, i), is_hunter);
        agent_create(simulation->world, &simulation->types, &agent);
        census->hunter_count += is_hunter;
        census->prey_count += !is_hunter;
    }
}

static void create_schedule(Simulation *simulation, quern_trace *trace)
{
    const quern_schedule_def def = {.phases = {[PHASE_SENSE] = "sense",
                                               [PHASE_THINK] = "think",
                                               [PHASE_MOVE] = "move",
                                               [PHASE_LIFE] = "life",
                                               [PHASE_OBSERVE] = "observe"},
                                    .timing = true,
                                    .trace = trace};
    check(quern_schedule_create(simulation->world, &def, &simulation->schedule));
    check(quern_grid_add_systems(simulation->grid, simulation->schedule, PHASE_SENSE));
    systems_add_flock(simulation->schedule, &simulation->types);
    systems_add_hunt(simulation->schedule, &simulation->types);
    systems_add_motion(simulation->schedule, &simulation->types);
    systems_add_life(simulation->schedule, &simulation->types);
    systems_add_population(simulation->schedule, &simulation->types);
    check(quern_schedule_compile(simulation->schedule));
}

void simulation_create(Simulation *simulation, uint64_t seed, uint32_t agent_count, quern_trace *trace)
{
    Rules rules = rules_make(seed, agent_count);
    check(quern_world_create(NULL, &simulation->world));
    types_register_components(&simulation->types, simulation->world);
    register_rules(&simulation->types, simulation->world, &rules);
    register_census(&simulation->types, simulation->world);
    populate(simulation, &rules, agent_count);
    create_grid(simulation, &rules);
    create_schedule(simulation, trace);
}

void simulation_destroy(Simulation *simulation)
{
    quern_schedule_destroy(simulation->schedule);
    quern_grid_destroy(simulation->grid);
    quern_world_destroy(simulation->world);
}

void simulation_step(Simulation *simulation, quern_jobs *jobs)
{
    check(quern_schedule_run(simulation->schedule, jobs, simulation_frame_seconds));
}

void simulation_capture(Simulation *simulation, quern_jobs *jobs, quern_frame_capture *capture)
{
    check(quern_schedule_run_captured(simulation->schedule, jobs, simulation_frame_seconds, capture));
}

const Census *simulation_census(Simulation *simulation)
{
    return quern_resource_get(simulation->world, simulation->types.census);
}
