/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "components.h"

#include "check.h"

/* The fields of these are described, so that a handle which a command makes becomes a real one inside
 * the value too. */
static void register_handles(Types *types, quern_world *world)
{
    const quern_component_def lineage = {
        .name = "Lineage",
        .size_bytes = sizeof(Lineage),
        .alignment_bytes = _Alignof(Lineage),
        .fields = {{"mother", QUERN_FIELD_ENTITY, offsetof(Lineage, mother), 1},
                   {"last_child", QUERN_FIELD_ENTITY, offsetof(Lineage, last_child), 1}}};
    const quern_component_def target = {
        .name = "Target",
        .size_bytes = sizeof(Target),
        .alignment_bytes = _Alignof(Target),
        .fields = {{"prey", QUERN_FIELD_ENTITY, offsetof(Target, prey), 1}}};
    check(quern_component_register(world, &lineage, &types->lineage));
    check(quern_component_register(world, &target, &types->target));
}

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
    check(QUERN_COMPONENT_REGISTER(world, &types->cell, Cell));
    check(QUERN_COMPONENT_REGISTER(world, &types->energy, Energy));
    check(QUERN_COMPONENT_REGISTER(world, &types->age, Age));
    check(QUERN_COMPONENT_REGISTER(world, &types->crowd, Crowd));
    check(QUERN_COMPONENT_REGISTER(world, &types->genes, Genes));
    register_handles(types, world);
    types->prey = register_tag(world, "Prey");
    types->hunter = register_tag(world, "Hunter");
}
