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
    /* Described, so that tools can show and edit the values, and so that a provisional handle inside a value is replaced
     * by the real one. */
    const quern_component_def position = {QUERN_TYPE(Position),
                                          .fields = {QUERN_FIELD_WITH(Position, x, .unit = "cells"),
                                                     QUERN_FIELD_WITH(Position, y, .unit = "cells")}};
    const quern_component_def velocity = {QUERN_TYPE(Velocity),
                                          .fields = {QUERN_FIELD_WITH(Velocity, x, .unit = "cells/s"),
                                                     QUERN_FIELD_WITH(Velocity, y, .unit = "cells/s")}};
    const quern_component_def steering = {QUERN_TYPE(Steering),
                                          .fields = {QUERN_FIELD_WITH(Steering, x, .unit = "cells/s2"),
                                                     QUERN_FIELD_WITH(Steering, y, .unit = "cells/s2")}};
    const quern_component_def energy = {
        QUERN_TYPE(Energy), .fields = {QUERN_FIELD_WITH(Energy, value, .minimum = 0, .maximum = 2)}};
    const quern_component_def age = {QUERN_TYPE(Age),
                                     .fields = {QUERN_FIELD_WITH(Age, seconds, .unit = "s")}};
    check(quern_component_register(world, &position, &types->position));
    check(quern_component_register(world, &velocity, &types->velocity));
    check(quern_component_register(world, &steering, &types->steering));
    check(quern_component_register(world, &energy, &types->energy));
    check(quern_component_register(world, &age, &types->age));
    check(QUERN_COMPONENT_REGISTER_FIELDS(world, &types->crowd, Crowd, weight));
    check(QUERN_COMPONENT_REGISTER_FIELDS(world, &types->genes, Genes, seed));
    check(QUERN_COMPONENT_REGISTER_FIELDS(world, &types->lineage, Lineage, mother, last_child));
    check(QUERN_COMPONENT_REGISTER_FIELDS(world, &types->target, Target, prey));
    types->prey = register_tag(world, "Prey");
    types->hunter = register_tag(world, "Hunter");
}
