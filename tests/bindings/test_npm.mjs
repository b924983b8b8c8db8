// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The Quern authors

// Tests of the package for npm: what it does, and what it says about wrong use.

import assert from "node:assert/strict";
import test from "node:test";

import {check, constants, getMember, having, lib, optional, QuernError, Schedule, structs, without, World, write} from "quern";

function scene() {
  const world = new World();
  return {
    world,
    schedule: new Schedule(world),
    Position: world.component("Position", {x: "f32", y: "f32"}),
    Velocity: world.component("Velocity", {x: "f32", y: "f32"}),
    Frozen: world.component("Frozen"),
  };
}

const says = (pattern, call) => assert.throws(call, (error) => error instanceof QuernError && pattern.test(error.message), String(pattern));

test("a value is read as it was set", () => {
  const {world, Position, Velocity, Frozen} = scene();
  const entity = world.create(Position.with({x: 1, y: 2}), Frozen);
  assert.deepEqual(world.get(entity, Position), {x: 1, y: 2});
  world.set(entity, Velocity.with({y: 3}));
  assert.deepEqual(world.get(entity, Velocity), {x: 0, y: 3});
  assert.equal(world.has(entity, Frozen), true);
  world.remove(entity, Frozen);
  assert.equal(world.has(entity, Frozen), false);
  assert.equal(world.get(world.create(), Position), null);
  world.close();
});

test("fields of all types", () => {
  const {world} = scene();
  const All = world.component("All", {flag: "bool", small: "i8", count: "u16", big: "u64", exact: "f64", target: "entity"});
  const other = world.create();
  const value = {flag: 1, small: -1, count: 2, big: 2n ** 63n, exact: 0.5, target: other};
  assert.deepEqual(world.get(world.create(All.with(value)), All), value);
  world.close();
});

test("columns are the memory of the world", () => {
  const {world, schedule, Position, Velocity, Frozen} = scene();
  const entities = Array.from({length: 100}, (_, i) => world.create(Position.with({x: i}), Velocity.with({x: 1, y: 2})));
  const frozen = world.create(Position, Velocity.with({x: 1}), Frozen);
  schedule.add("move", [write(Position), Velocity, without(Frozen)], (context, view) => {
    const position = view.columns(Position), velocity = view.columns(Velocity);
    assert.equal(position.x.stride, 2);
    assert.equal(view.entities.length, view.count);
    for (let i = 0; i < 2 * view.count; i += 2) position.x[i] += velocity.x[i] * context.deltaSeconds;
  });
  schedule.run(0.5);
  assert.equal(world.get(entities[9], Position).x, 9.5);
  assert.equal(world.get(frozen, Position).x, 0);
  world.close();
});

test("commands and resources", () => {
  const {world, schedule, Position, Frozen} = scene();
  const count = world.resource("Count", {value: "u32"});
  world.create(Position.with({x: 5}));
  schedule.add("split", [Position], (context, view) => {
    context.setResource(count, {value: context.resource(count).value + view.count});
    for (const entity of view.entities) {
      context.create(Position.with({x: 1}), Frozen);
      context.destroy(entity);
    }
  }, {resources: [write(count)]});
  for (let i = 0; i < 3; i++) schedule.run(0);
  assert.equal(count.value.value, 3);
  const query = world.query(Position, Frozen);
  assert.equal(query.count, 1);
  for (const view of query) assert.equal(view.columns(Position).x[0], 1);
  world.close();
});

test("exclusive systems change the world at once", () => {
  const {world, schedule, Position} = scene();
  schedule.add("fill", [], (context) => context.world.create(Position.with({x: context.frame})), {exclusive: true});
  for (let i = 0; i < 4; i++) schedule.run(0);
  assert.equal(world.query(Position).count, 4);
  world.close();
});

test("an archive is the same world", () => {
  const {world, Position} = scene(), other = scene().world;
  world.create(Position.with({x: 1}));
  const archive = world.save();
  other.load(archive);
  assert.equal(other.hash(), world.hash());
  archive[archive.length - 1] ^= 1;
  assert.throws(() => scene().world.load(archive), {result: "QUERN_ERROR_BAD_ARCHIVE"});
  world.close();
  other.close();
});

test("any function of the headers can be called", () => {
  const {world} = scene();
  const mother = world.create(), child = world.create();
  const parent = lib._quern_world_parent(world.handle);
  check(lib._quern_entity_relate(world.handle, child, parent, mother));
  assert.equal(BigInt.asUintN(64, lib._quern_entity_target(world.handle, child, parent)), mother);
  says(/below/, () => check(lib._quern_entity_relate(world.handle, mother, parent, child)));
  check(lib._quern_entity_set_enabled(world.handle, child, false));
  assert.equal(lib._quern_entity_is_enabled(world.handle, child), 0);
  world.close();
});

// Sizes and offsets of the generator against what the library stores.
test("layouts are those of the compiler", () => {
  const {world, Position} = scene();
  world.create(Position);
  const stats = lib._malloc(structs.quern_world_stats.size);
  check(lib._quern_world_get_stats(world.handle, stats));
  assert.equal(getMember("quern_world_stats", stats, "entity_count"), 1n);
  assert.equal(getMember("quern_world_stats", stats, "component_count") >= 3, true);
  assert.equal(structs.quern_entity.size, 8);
  assert.equal(constants.QUERN_MAX_TERMS, 32);
  lib._free(stats);
  world.close();
});

test("wrong components and fields", () => {
  const {world, Position, Frozen} = scene(), other = scene();
  says(/has no field 'z'; it has x, y/, () => world.create(Position.with({z: 1})));
  says(/'x' of 'Bad' has the type 'short'; a field is one of bool, i8/, () => world.component("Bad", {x: "short"}));
  says(/quern_component_register: .*Position/, () => world.component("Position", {x: "f64"}));
  says(/a term needs a component/, () => write("Position"));
  says(/term 0 is neither a component nor a term/, () => world.query("Position"));
  says(/not of this world/, () => other.world.query(Position));
  says(/a value is a component/, () => world.create("Position"));
  assert.equal(optional(Frozen).access, 0);
});

test("a dead entity", () => {
  const {world, Position} = scene();
  const entity = world.create();
  world.destroy(entity);
  assert.throws(() => world.set(entity, Position.with({})), {result: "QUERN_ERROR_STALE_ENTITY"});
});

test("undeclared access", () => {
  const {world, schedule, Position, Velocity, Frozen} = scene();
  let ran = false;
  world.create(Position, Velocity);
  schedule.add("wrong", [Position, having(Velocity)], (context, view) => {
    says(/system 'wrong': no term names 'Frozen'; the terms name 'Position', 'Velocity'/, () => view.columns(Frozen));
    says(/'Velocity' declares no access/, () => view.columns(Velocity));
    says(/only an exclusive system has the world/, () => context.world);
    says(/has 0 further queries/, () => context.query());
    says(/is running on this world/, () => world.create());
    ran = true;
  });
  schedule.run(0);
  assert.equal(ran, true);
});

test("an exception in a system", () => {
  const {world, schedule, Position} = scene();
  let fails = true, runs = 0;
  world.create(Position);
  schedule.add("first", [Position], () => {
    if (fails) throw new RangeError("lost");
  });
  schedule.add("second", [Position], () => runs++);
  assert.throws(() => schedule.run(0), RangeError);
  assert.equal(runs, 0);
  fails = false;
  schedule.run(0);
  assert.equal(runs, 1);
  world.close();
});

test("kept views, and loops that change the world", () => {
  const {world, schedule, Position} = scene();
  let kept = null;
  world.create(Position);
  schedule.add("keeps", [Position], (context, view) => (kept = {context, view}));
  schedule.run(0);
  says(/the view is used after/, () => kept.view.columns(Position));
  says(/the context is used after/, () => kept.context.deltaSeconds);
  const query = world.query(Position);
  says(/the query is used after/, () => {
    for (const view of query) query.close();
  });
  says(/changed its structure/, () => {
    for (const view of world.query(Position)) world.create(Position);
  });
});

test("a closed world", () => {
  const {world, schedule, Position} = scene();
  const query = world.query(Position);
  world.close();
  world.close();
  says(/the world is used after it was closed/, () => world.create());
  says(/the query is used after it was closed/, () => [...query]);
  says(/the schedule is used after it was closed/, () => schedule.run(0));
  says(/has no phase 'draw'; it has update/, () => scene().schedule.add("a", [Position], () => {}, {phase: "draw"}));
});

test("relations", () => {
  const {world} = scene(), likes = world.relation("likes"), owns = world.relation("owns", {many: true});
  const [ann, bob, eve] = [world.create(), world.create(), world.create()];
  world.relate(ann, likes, eve);
  world.relate(bob, likes, eve);
  assert.equal(world.target(ann, likes), eve);
  assert.deepEqual(world.sources(eve, likes).sort(), [ann, bob].sort());
  assert.equal(world.query(having(likes)).count, 2);
  world.unrelate(bob, likes);
  assert.equal(world.target(bob, likes), null);
  world.relate(ann, owns, bob);
  world.relate(ann, owns, eve);
  world.unrelate(ann, owns, bob);
  assert.deepEqual([world.sources(bob, owns), world.sources(eve, owns)], [[], [ann]]);
  world.relate(ann, world.parent, eve);
  says(/quern_entity_relate: .*below/, () => world.relate(eve, world.parent, ann));
  world.destroy(eve);
  says(/quern_entity_source_count: .*destroyed/, () => world.sources(eve, likes));
  says(/quern_entity_target: .*destroyed/, () => world.target(eve, likes));
  world.close();
});

test("systems relate and spawn by commands", () => {
  const {world, schedule, Position, Velocity} = scene(), {parent} = world;
  const mother = world.create(), child = world.create(Velocity), prefab = world.prefab(world.create(Position.with({x: 1})));
  schedule.add("adopt", [Velocity], (context, view) => {
    if (context.frame === 0) context.relate(view.entities[0], parent, mother);
    else context.unrelate(view.entities[0], parent);
    context.spawn(prefab, Position.with({x: 5}));
  });
  schedule.run(0);
  assert.deepEqual(world.sources(mother, parent), [child]);
  schedule.run(0);
  assert.equal(world.target(child, parent), null);
  assert.equal(world.query(Position).count, 3);
  world.close();
});

test("events", () => {
  const {world, schedule} = scene(), hit = world.event("Hit", {damage: "f32"}), tick = world.event("Tick");
  let sum = 0, ticks = 0;
  schedule.add("strike", [], (context) => context.emit(hit.with({damage: 1}), hit.with({damage: 2}), tick), {exclusive: true, emits: [hit, tick]});
  schedule.add("suffer", [], (context) => {
    for (const {damage} of context.events(hit)) sum += damage;
    ticks += [...context.events(tick)].length;
  }, {exclusive: true, events: [hit, tick], after: ["strike"]});
  world.emit(hit.with({damage: 7}));
  schedule.run(0);
  schedule.run(0);
  assert.deepEqual([sum, ticks], [13, 2]);
  says(/World.emit: give an event/, () => world.emit(7));
  world.close();
});

test("types that are registered twice", () => {
  const {world, schedule} = scene();
  const register = () => [world.event("Twice", {damage: "f32"}), world.resource("Twice", {sum: "f32"}), world.component("Twice", {x: "f32"})];
  const [hit, count, place] = register(), [hitAgain, countAgain, placeAgain] = register();
  world.create(place);
  schedule.add("strike", [place], (context, view) => {
    context.emit(hitAgain.with({damage: 2}));
    for (const {damage} of context.events(hitAgain)) context.setResource(countAgain, {sum: context.resource(countAgain).sum + damage});
    assert.equal(view.columns(placeAgain).x[0], 0);
  }, {events: [hit], emits: [hit], resources: [write(count)]});
  schedule.run(0);
  schedule.run(0);
  assert.equal(count.value.sum, 2);
  world.close();
});

test("undeclared events", () => {
  const {world, schedule} = scene(), hit = world.event("Hit", {damage: "f32"});
  let ran = false;
  schedule.add("wrong", [], (context) => {
    says(/does not declare that it emits the event 'Hit'/, () => context.emit(hit));
    says(/does not declare that it reads the event 'Hit'/, () => [...context.events(hit)]);
    ran = true;
  }, {exclusive: true});
  schedule.run(0);
  assert.equal(ran, true);
  world.close();
});

test("prefabs", () => {
  const {world, Position, Velocity} = scene(), base = world.create(Position.with({x: 1, y: 2})), gun = world.create(Velocity.with({x: 3}));
  world.relate(gun, world.parent, base);
  const tower = world.prefab(base);
  const same = world.spawn(tower), other = world.spawn(tower, Position.with({x: 5, y: 6}));
  assert.deepEqual([world.get(same, Position), world.get(other, Position)], [{x: 1, y: 2}, {x: 5, y: 6}]);
  assert.equal(world.get(world.sources(other, world.parent)[0], Velocity).x, 3);
  says(/quern_prefab_spawn: .*Velocity/, () => world.spawn(tower, Velocity.with({})));
  says(/spawn: a value is/, () => world.spawn(tower, 7));
  tower.close();
  says(/quern_prefab_spawn: /, () => world.spawn(tower));
  world.close();
});

test("lists that are too long", () => {
  const {world, schedule, Position} = scene(), many = (count, value) => Array(count).fill(value);
  const limit = (pattern, call) => assert.throws(call, (error) => error.result === "QUERN_ERROR_LIMIT" && pattern.test(error.message), String(pattern));
  const add = (options) => schedule.add("a", [Position], () => {}, options);
  limit(/Schedule: phases: 33 are given, and the limit is 32/, () => new Schedule(world, many(33, "p")));
  limit(/system 'a': queries: 5 are given/, () => add({queries: many(5, [Position])}));
  limit(/system 'a': before: 33 are given/, () => add({before: many(33, "b")}));
  limit(/system 'a': emits: 33 are given/, () => add({emits: many(33, world.event("Tick"))}));
  limit(/has 33 terms/, () => world.query(...many(33, Position)));
  limit(/values of the root: 17 are given/, () => world.spawn(world.prefab(world.create(Position)), ...many(17, Position.with({}))));
  world.close();
});

test("lists with wrong members", () => {
  const {world, schedule, Position} = scene(), hit = world.event("Hit");
  const add = (options) => () => schedule.add("a", [Position], () => {}, options);
  says(/system 'a': events: 'Position' is no event/, add({events: [Position]}));
  says(/system 'a': emits: 'likes' is no event/, add({emits: [world.relation("likes")]}));
  says(/system 'a': events: 3 is no event/, add({events: [hit, 3]}));
  says(/system 'a': emits: undefined is no event/, add({emits: [undefined]}));
  says(/system 'a': resources: 'Hit' is no resource/, add({resources: [hit]}));
  says(/system 'a': resources: null is no resource/, add({resources: [null]}));
  says(/system 'a': events: give an array, and not 'Hit'/, add({events: hit}));
  says(/system 'a': before: give an array, and not "x"/, add({before: "x"}));
  says(/a': terms: give an array, and not 'Position'/, add({queries: [Position]}));
  says(/Schedule: phases: give an array, and not "draw"/, () => new Schedule(world, "draw"));
  world.close();
});

test("wrong arguments are named", () => {
  const {world, schedule, Position} = scene(), hit = world.event("Hit", {damage: "f32"}), ann = world.create(), base = world.prefab(ann);
  for (const call of ["relate", "unrelate", "target", "sources"]) says(new RegExp(`World.${call}: 'Position' is no relation`), () => world[call](ann, Position, ann));
  says(/World.relate: undefined is no relation/, () => world.relate(ann, undefined, ann));
  says(/World.relation: there is no option 'foo'/, () => world.relation("likes", {foo: 1}));
  says(/system 'a': there is no option 'emit'/, () => schedule.add("a", [], () => {}, {emit: [hit]}));
  says(/'Hit': give the fields of a value by name, in an object, and not undefined/, () => world.emit(hit.with()));
  says(/'Position': give the fields of a value by name, in an object, and not 3/, () => world.create(Position.with(3)));
  says(/World.emit: give an event, .* not null/, () => world.emit(null));
  says(/World.emit: give at least one event/, () => world.emit());
  says(/spawn: null is no prefab/, () => world.spawn(null));
  says(/spawn: a value is .* null is none/, () => world.spawn(base, null));
  says(/a value is a component, .* null is neither/, () => world.create(null));
  schedule.add("asks", [], (context) => {
    for (const call of ["relate", "unrelate"]) says(new RegExp(`Context.${call}: 'Position' is no relation`), () => context[call](ann, Position, ann));
    says(/system 'asks': give at least one event/, () => context.emit());
    says(/spawn: an object is no prefab/, () => context.spawn({}));
  });
  schedule.run(0);
  world.close();
});

test("a world that is closed in its frame", () => {
  const {world, schedule} = scene(), calls = [() => world.close(), () => schedule.close(), () => schedule.run(0)];
  schedule.add("stops", [], () => calls.shift()(), {exclusive: true});
  says(/World.close: a frame of the world is running/, () => schedule.run(0));
  says(/Schedule.close: this schedule is running a frame/, () => schedule.run(0));
  assert.throws(() => schedule.run(0), {result: "QUERN_ERROR_WORLD_LOCKED"});
  world.create();
  world.close();
});
