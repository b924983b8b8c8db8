/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "components.h"

#include "check.h"

static void register_enemies(Types *types, quern_world *world)
{
    const quern_component_def chill = {QUERN_TYPE(Chill), .fields = QUERN_FIELDS(Chill, seconds),
                                       .can_disable = true};
    check(quern_component_register(world, &chill, &types->chill));
    check(QUERN_COMPONENT_REGISTER_FIELDS(world, &types->health, Health, points));
    check(QUERN_COMPONENT_REGISTER_FIELDS(world, &types->enemy, Enemy, kind, road, along, lane, pace,
                                          drift_x, drift_y));
    check(QUERN_COMPONENT_REGISTER_FIELDS(world, &types->spawner, Spawner, kind, road, left, wait_seconds,
                                          every_seconds));
    check(QUERN_COMPONENT_REGISTER_FIELDS(world, &types->road_number, RoadNumber, number));
}

static void register_tower_states(Types *types, quern_world *world)
{
    const quern_component_def turret = {QUERN_TYPE(Turret),
                                        .fields =
                                            QUERN_FIELDS(Turret, target, range, least_range, shot_speed,
                                                         turn_speed, aim_x, aim_y, is_locked),
                                        .can_disable = true};
    const quern_component_def loaded = {
        QUERN_TYPE(Loaded), .fields = QUERN_FIELDS(Loaded, seconds, load_seconds), .can_disable = true};
    const quern_component_def beam = {
        QUERN_TYPE(Beam), .fields = QUERN_FIELDS(Beam, from_x, from_y, to_x, to_y), .can_disable = true};
    check(quern_component_register(world, &turret, &types->turret));
    check(quern_component_register(world, &loaded, &types->loaded));
    check(quern_component_register(world, &beam, &types->beam));
}

static void register_towers(Types *types, quern_world *world)
{
    check(QUERN_COMPONENT_REGISTER_FIELDS(world, &types->tower, Tower, kind, cost));
    check(QUERN_COMPONENT_REGISTER_FIELDS(world, &types->stun, Stun, seconds));
    check(QUERN_COMPONENT_REGISTER_FIELDS(world, &types->barrel, Barrel, rest, length, recoil));
    check(QUERN_COMPONENT_REGISTER_FIELDS(world, &types->gun, Gun, damage, speed, spread, range));
    check(QUERN_COMPONENT_REGISTER_FIELDS(world, &types->mortar, Mortar, damage, radius, speed));
    check(QUERN_COMPONENT_REGISTER_FIELDS(world, &types->prism, Prism, damage_per_second));
    check(QUERN_COMPONENT_REGISTER_FIELDS(world, &types->bell, Bell, damage, radius, chill_seconds));
    check(
        QUERN_COMPONENT_REGISTER_FIELDS(world, &types->shape, Shape, sprite, layer, width, height, color));
    register_tower_states(types, world);
}

static void register_movers(Types *types, quern_world *world)
{
    check(QUERN_COMPONENT_REGISTER_FIELDS(world, &types->place, Place, x, y));
    check(QUERN_COMPONENT_REGISTER_FIELDS(world, &types->velocity, Velocity, x, y));
    check(QUERN_COMPONENT_REGISTER_FIELDS(world, &types->bullet, Bullet, damage, seconds));
    check(QUERN_COMPONENT_REGISTER_FIELDS(world, &types->shell, Shell, from_x, from_y, to_x, to_y, seconds,
                                          span, damage, radius));
    check(QUERN_COMPONENT_REGISTER_FIELDS(world, &types->particle, Particle, seconds, span, size, color,
                                          kind));
    check(QUERN_COMPONENT_REGISTER_FIELDS(world, &types->firefly, Firefly, phase));
}

static void register_events(Types *types, quern_world *world)
{
    check(QUERN_EVENT_REGISTER_FIELDS(world, &types->burst, Burst, x, y, push_x, push_y, speed, span, size,
                                      count, color, kind));
    check(QUERN_EVENT_REGISTER_FIELDS(world, &types->kill, Kill, kind));
    check(QUERN_EVENT_REGISTER_FIELDS(world, &types->leak, Leak, kind));
    check(QUERN_EVENT_REGISTER_FIELDS(world, &types->curse, Curse, x, y));
    check(QUERN_EVENT_REGISTER_FIELDS(world, &types->cue, Cue, kind, x));
}

void types_register(Types *types, quern_world *world, quern_transform *transform)
{
    types->local = quern_transform_local(transform);
    types->spot = quern_transform_world(transform);
    types->parent = quern_world_parent(world);
    register_movers(types, world);
    register_enemies(types, world);
    register_towers(types, world);
    register_events(types, world);
    check(QUERN_RESOURCE_REGISTER_FIELDS(world, &types->keep, Keep, step, gold, lives, score, kills, wave,
                                         state, enemy_count, is_called, rest_seconds));
}
