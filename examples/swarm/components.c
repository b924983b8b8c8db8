/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "components.h"

#include "check.h"

static quern_component register_tag(quern_world *world, const char *name)
{
    quern_component component;
    quern_component_def def = {.name = name};
    check(quern_component_register(world, &def, &component));
    return component;
}

void types_register_components(Types *types, quern_world *world)
{
    check(QUERN_COMPONENT_REGISTER(world, &types->position, Position));
    check(QUERN_COMPONENT_REGISTER(world, &types->velocity, Velocity));
    check(QUERN_COMPONENT_REGISTER(world, &types->steering, Steering));
    check(QUERN_COMPONENT_REGISTER(world, &types->energy, Energy));
    check(QUERN_COMPONENT_REGISTER(world, &types->age, Age));
    check(QUERN_COMPONENT_REGISTER(world, &types->crowd, Crowd));
    check(QUERN_COMPONENT_REGISTER(world, &types->genes, Genes));
    /* Described, so that a provisional handle inside the value is replaced by the real one. */
    check(QUERN_COMPONENT_REGISTER_FIELDS(world, &types->lineage, Lineage, mother, last_child));
    check(QUERN_COMPONENT_REGISTER_FIELDS(world, &types->target, Target, prey));
    types->prey = register_tag(world, "Prey");
    types->hunter = register_tag(world, "Hunter");
}
