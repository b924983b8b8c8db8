/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */

/* Phase "life": agents gain and lose energy, hunters eat, and all agents breed and die. Births and
 * deaths are commands, applied at the end of the phase: until then every system sees the same agents. */

#include "agent.h"
#include "check.h"
#include "rules.h"
#include "systems.h"

#include <quern/kit/random.h>

static const float catch_distance = 0.3f; /* distance at which a hunter catches its prey */
static const float meal = 0.45f;          /* energy */
static const float child_seconds = 2.0f;  /* age of the last child before the next birth */

static const Rules *rules_of(quern_context *context)
{
    const Types *types = quern_context_user_data(context);
    return quern_context_resource(context, types->rules);
}

static const Species *species_of(const Rules *rules, bool is_hunter)
{
    return is_hunter ? &rules->hunter : &rules->prey;
}

/* -------------------------------------------------------------------------------------- metabolise */

enum { METABOLISE_CROWD, METABOLISE_ENERGY, METABOLISE_HUNTER };

static void metabolise(quern_context *context, const quern_view *view)
{
    const Species *species = species_of(rules_of(context), quern_view_has(view, METABOLISE_HUNTER));
    const Crowd *crowd = QUERN_COLUMN(view, METABOLISE_CROWD, const Crowd);
    Energy *energy = QUERN_COLUMN(view, METABOLISE_ENERGY, Energy);
    float dt = (float)quern_context_delta_seconds(context);
    const uint32_t count = view->count;
    for (uint32_t i = 0; i < count; i++)
        energy[i].value += dt * (species->income - species->crowding * crowd[i].weight);
}

static void add_metabolise(quern_schedule *schedule, Types *types)
{
    const quern_system_def def = {
        .name = "metabolise",
        .phase = PHASE_LIFE,
        .run = metabolise,
        .user_data = types,
        .terms = {[METABOLISE_CROWD] = quern_term_read(types->crowd),
                  [METABOLISE_ENERGY] = quern_term_write(types->energy),
                  [METABOLISE_HUNTER] = quern_term_optional(types->hunter, QUERN_ACCESS_NONE)},
        .resources = {{types->rules, QUERN_ACCESS_READ}}};
    check(quern_schedule_add_system(schedule, &def, NULL));
}

/* --------------------------------------------------------------------------------------------- eat */

enum { EAT_POSITION, EAT_ENERGY, EAT_TARGET };

/* Lets hunters eat the prey within reach. Two hunters may catch the same prey in one frame: both eat,
 * and the runtime drops the second command to destroy it. */
static void eat(quern_context *context, const quern_view *view)
{
    const Types *types = quern_context_user_data(context);
    const Position *position = QUERN_COLUMN(view, EAT_POSITION, const Position);
    Energy *energy = QUERN_COLUMN(view, EAT_ENERGY, Energy);
    Target *target = QUERN_COLUMN(view, EAT_TARGET, Target);
    const uint32_t count = view->count;
    for (uint32_t i = 0; i < count; i++) {
        if (quern_entity_is_null(target[i].prey)) continue;
        const Position *prey = quern_context_lookup(context, target[i].prey, types->position);
        float dx = prey->x - position[i].x, dy = prey->y - position[i].y;
        if (dx * dx + dy * dy > catch_distance * catch_distance) continue;
        check(quern_commands_destroy(quern_context_commands(context), target[i].prey));
        energy[i].value += meal;
        target[i].prey = quern_entity_null();
    }
}

static void add_eat(quern_schedule *schedule, Types *types)
{
    const quern_system_def def = {.name = "eat",
                                  .phase = PHASE_LIFE,
                                  .run = eat,
                                  .user_data = types,
                                  .terms = {[EAT_POSITION] = quern_term_read(types->position),
                                            [EAT_ENERGY] = quern_term_write(types->energy),
                                            [EAT_TARGET] = quern_term_write(types->target)},
                                  .lookups = {{.component = types->position}}};
    check(quern_schedule_add_system(schedule, &def, NULL));
}

/* ------------------------------------------------------------------------------------------- breed */

enum { BREED_ENERGY, BREED_LINEAGE, BREED_POSITION, BREED_VELOCITY, BREED_GENES, BREED_HUNTER };

/* Returns whether the last child is alive and not grown up: a mother has one child at a time. */
static bool has_small_child(quern_context *context, const Lineage *lineage)
{
    const Types *types = quern_context_user_data(context);
    if (quern_entity_is_null(lineage->last_child)) return false;
    const Age *age = quern_context_lookup(context, lineage->last_child, types->age);
    return age != NULL && age->seconds < child_seconds;
}

/* Creates the child by command. Its handle is provisional until the end of the phase; the described
 * field in the mother's new Lineage then gets the real handle. */
static void give_birth(quern_context *context, quern_entity mother, Lineage lineage, const Agent *child)
{
    const Types *types = quern_context_user_data(context);
    quern_commands *commands = quern_context_commands(context);
    lineage.last_child = agent_create_deferred(commands, types, child);
    check(quern_commands_set(commands, mother, types->lineage, &lineage));
}

static void breed(quern_context *context, const quern_view *view)
{
    Energy *energy = QUERN_COLUMN(view, BREED_ENERGY, Energy);
    const Lineage *lineage = QUERN_COLUMN(view, BREED_LINEAGE, const Lineage);
    const Position *position = QUERN_COLUMN(view, BREED_POSITION, const Position);
    const Velocity *velocity = QUERN_COLUMN(view, BREED_VELOCITY, const Velocity);
    const Genes *genes = QUERN_COLUMN(view, BREED_GENES, const Genes);
    uint64_t frame = quern_context_frame_index(context);
    const uint32_t count = view->count;
    for (uint32_t i = 0; i < count; i++) {
        if (energy[i].value < 1.0f || has_small_child(context, &lineage[i])) continue;
        energy[i].value *= 0.5f;
        Agent child = {
            .is_hunter = quern_view_has(view, BREED_HUNTER),
            .position = position[i],
            .velocity = {.x = -velocity[i].y, .y = velocity[i].x},
            .energy = energy[i],
            .genes.seed = quern_random(genes[i].seed, frame),
            .lineage.mother = view->entities[i],
        };
        give_birth(context, view->entities[i], lineage[i], &child);
    }
}

static void add_breed(quern_schedule *schedule, Types *types)
{
    const quern_system_def def = {
        .name = "breed",
        .phase = PHASE_LIFE,
        .run = breed,
        .user_data = types,
        .terms = {[BREED_ENERGY] = quern_term_write(types->energy),
                  [BREED_LINEAGE] = quern_term_read(types->lineage),
                  [BREED_POSITION] = quern_term_read(types->position),
                  [BREED_VELOCITY] = quern_term_read(types->velocity),
                  [BREED_GENES] = quern_term_read(types->genes),
                  [BREED_HUNTER] = quern_term_optional(types->hunter, QUERN_ACCESS_NONE)},
        .lookups = {{.component = types->age}}};
    check(quern_schedule_add_system(schedule, &def, NULL));
}

/* --------------------------------------------------------------------------------------------- die */

enum { DIE_ENERGY, DIE_AGE, DIE_GENES, DIE_HUNTER };

/* Destroys all dead agents of a view by one command, with a bit per row. */
static void die(quern_context *context, const quern_view *view)
{
    const Species *species = species_of(rules_of(context), quern_view_has(view, DIE_HUNTER));
    const Energy *energy = QUERN_COLUMN(view, DIE_ENERGY, const Energy);
    const Age *age = QUERN_COLUMN(view, DIE_AGE, const Age);
    const Genes *genes = QUERN_COLUMN(view, DIE_GENES, const Genes);
    const uint32_t count = view->count;
    uint64_t dead[QUERN_MAX_VIEW_ROWS / 64] = {0}, any = 0;
    for (uint32_t i = 0; i < count; i++) {
        const bool is_old = age[i].seconds > lifetime_seconds(species, genes[i].seed);
        const uint64_t bit = (uint64_t)(is_old || !(energy[i].value > 0.0f)) << i % 64;
        dead[i / 64] |= bit;
        any |= bit;
    }
    if (any == 0) return;
    check(quern_commands_destroy_view(quern_context_commands(context), view,
                                      &(quern_view_rows){.mask = dead}));
}

static void add_die(quern_schedule *schedule, Types *types)
{
    const quern_system_def def = {
        .name = "die",
        .phase = PHASE_LIFE,
        .run = die,
        .user_data = types,
        .terms = {[DIE_ENERGY] = quern_term_read(types->energy),
                  [DIE_AGE] = quern_term_read(types->age),
                  [DIE_GENES] = quern_term_read(types->genes),
                  [DIE_HUNTER] = quern_term_optional(types->hunter, QUERN_ACCESS_NONE)},
        .resources = {{types->rules, QUERN_ACCESS_READ}}};
    check(quern_schedule_add_system(schedule, &def, NULL));
}

void systems_add_life(quern_schedule *schedule, Types *types)
{
    add_metabolise(schedule, types);
    add_eat(schedule, types);
    add_breed(schedule, types);
    add_die(schedule, types);
}
