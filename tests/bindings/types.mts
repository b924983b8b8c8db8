// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The Quern authors

// What the types of the package for npm accept and refuse. It is checked and never run.

import {check, constants, lib, Schedule, structs, World, write} from "quern";

const world: World = new World();
const Unit = world.component("Unit", {health: "f32", target: "entity"});
const Frozen = world.component("Frozen");
const Count = world.resource("Count", {value: "u64"});

new Schedule(world, ["think"]).add("hurt", [write(Unit), Frozen], (context, view) => {
  const unit = view.columns(Unit);
  unit.health[0] -= context.deltaSeconds;
  const target: bigint = unit.target[0];
  const stride: number = unit.health.stride;
  context.setResource(Count, {value: 1n});
  context.destroy(target);
  // @ts-expect-error: there is no such field
  console.log(unit.speed, stride);
}, {resources: [write(Count)], phase: "think"});

const entity: bigint = world.create(Unit.with({health: 1}), Frozen);
const value = world.get(entity, Unit);
if (value !== null) console.log(value.health + 1, value.target + 1n);
for (const view of world.query(Unit)) console.log(view.count);
check(lib._quern_entity_relate(world.handle, entity, lib._quern_world_parent(world.handle), entity));
const limit: 32 = constants.QUERN_MAX_TERMS;
console.log(limit, structs.quern_view.size);

const Hit = world.event("Hit", {damage: "f32"}), likes = world.relation("likes", {many: true});
world.emit(Hit.with({damage: 1}));
world.relate(entity, likes, entity);
const liked: bigint | null = world.target(entity, likes);
const root: bigint = world.spawn(world.prefab(entity), Unit.with({health: 2}));
new Schedule(world).add("suffer", [], (context) => {
  for (const {damage} of context.events(Hit)) console.log(damage + 1, liked, root);
}, {events: [Hit], exclusive: true});

// @ts-expect-error: there is no such field
Hit.with({dammage: 1});
// @ts-expect-error: not a relation
world.relate(entity, Unit, entity);
// @ts-expect-error: the type of a field
world.component("Bad", {x: "short"});
// @ts-expect-error: there is no such field
Unit.with({speed: 1});
// @ts-expect-error: a bigint
Unit.with({target: 1});
// @ts-expect-error: a component
world.create("Unit");
// @ts-expect-error: there is no such function
lib._quern_no_such_call();
