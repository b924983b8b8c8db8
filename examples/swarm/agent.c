/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "agent.h"

#include "check.h"

#include <quern/kit/random.h>

enum { AGENT_COMPONENT_MAX = 12 };

typedef struct Recipe {
    quern_component components[AGENT_COMPONENT_MAX];
    const void *values[AGENT_COMPONENT_MAX];
    uint32_t count;
} Recipe;

/* Adds a component. value NULL: zero bytes, or a tag. */
static void recipe_add(Recipe *recipe, quern_component component, const void *value)
{
    recipe->components[recipe->count] = component;
    recipe->values[recipe->count] = value;
    recipe->count++;
}

static Recipe recipe_of(const Types *types, const Agent *agent)
{
    Recipe recipe = {.count = 0};
    recipe_add(&recipe, types->position, &agent->position);
    recipe_add(&recipe, types->velocity, &agent->velocity);
    recipe_add(&recipe, types->energy, &agent->energy);
    recipe_add(&recipe, types->age, &agent->age);
    recipe_add(&recipe, types->genes, &agent->genes);
    recipe_add(&recipe, types->lineage, &agent->lineage);
    recipe_add(&recipe, types->steering, NULL);
    recipe_add(&recipe, types->crowd, NULL);
    recipe_add(&recipe, agent->is_hunter ? types->hunter : types->prey, NULL);
    if (agent->is_hunter) recipe_add(&recipe, types->target, NULL);
    return recipe;
}

Agent agent_make(const Rules *rules, uint64_t seed, bool is_hunter)
{
    const Species *species = is_hunter ? &rules->hunter : &rules->prey;
    uint64_t place = quern_random(seed, 1), motion = quern_random(seed, 2), life = quern_random(seed, 3);
    Agent agent = {.is_hunter = is_hunter, .genes = {seed}};
    agent.position.x = quern_random_unit(place) * rules->width;
    agent.position.y = quern_random_unit(place << 32) * rules->height;
    agent.velocity.x = quern_random_signed(motion) * species->max_speed;
    agent.velocity.y = quern_random_signed(motion >> 32) * species->max_speed;
    agent.energy.value = 0.3f + 0.5f * quern_random_unit(life);
    agent.age.seconds = quern_random_unit(life << 32) * lifetime_seconds(species, seed);
    return agent;
}

void agent_create(quern_world *world, const Types *types, const Agent *agent)
{
    Recipe recipe = recipe_of(types, agent);
    check(quern_entity_create_with(world, recipe.components, recipe.values, recipe.count, NULL));
}

quern_entity agent_create_deferred(quern_commands *commands, const Types *types, const Agent *agent)
{
    Recipe recipe = recipe_of(types, agent);
    quern_entity child;
    check(quern_commands_create_with(commands, recipe.components, recipe.values, recipe.count, &child));
    return child;
}
