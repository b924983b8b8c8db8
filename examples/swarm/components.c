/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "components.h"

#include "check.h"

static quern_component register_described(quern_world *world, quern_component_def def,
                                          const quern_field *fields, uint32_t field_count)
{
    quern_component component;
    def.alignment_bytes = _Alignof(quern_entity);
    def.fields = fields;
    def.field_count = field_count;
    check(quern_component_register(world, &def, &component));
    return component;
}

/* The fields of these are described, so that a handle which a command makes becomes a real one inside
 * the value too. */
static void register_handles(Types *types, quern_world *world)
{
    static const quern_field lineage_fields[] = {
        {"mother", QUERN_FIELD_ENTITY, offsetof(Lineage, mother), 1},
        {"last_child", QUERN_FIELD_ENTITY, offsetof(Lineage, last_child), 1},
    };
    static const quern_field target_fields[] = {
        {"prey", QUERN_FIELD_ENTITY, offsetof(Target, prey), 1},
    };
    quern_component_def def = quern_component_def_default();
    def.name = "Lineage";
    def.size_bytes = sizeof(Lineage);
    types->lineage = register_described(world, def, lineage_fields, 2);
    def.name = "Target";
    def.size_bytes = sizeof(Target);
    types->target = register_described(world, def, target_fields, 1);
}

static quern_component register_tag(quern_world *world, const char *name)
{
    quern_component component;
    quern_component_def def = quern_component_def_default();
    def.name = name;
    check(quern_component_register(world, &def, &component));
    return component;
}

void types_register_components(Types *types, quern_world *world)
{
    check(QUERN_COMPONENT_REGISTER(world, Position, &types->position));
    check(QUERN_COMPONENT_REGISTER(world, Velocity, &types->velocity));
    check(QUERN_COMPONENT_REGISTER(world, Steering, &types->steering));
    check(QUERN_COMPONENT_REGISTER(world, Cell, &types->cell));
    check(QUERN_COMPONENT_REGISTER(world, Energy, &types->energy));
    check(QUERN_COMPONENT_REGISTER(world, Age, &types->age));
    check(QUERN_COMPONENT_REGISTER(world, Crowd, &types->crowd));
    check(QUERN_COMPONENT_REGISTER(world, Genes, &types->genes));
    register_handles(types, world);
    types->prey = register_tag(world, "Prey");
    types->hunter = register_tag(world, "Hunter");
}
