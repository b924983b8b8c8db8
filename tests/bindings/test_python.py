#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The Quern authors
"""Tests of the Python binding: what it does, and what it says about wrong use."""

import gc
import unittest
import urllib.request
import weakref

import numpy as np

import quern


class Scene(unittest.TestCase):
    def setUp(self):
        self.world = quern.World()
        self.Position = self.world.component("Position", x="f4", y="f4")
        self.Velocity = self.world.component("Velocity", x="f4", y="f4")
        self.Frozen = self.world.component("Frozen")
        self.schedule = quern.Schedule(self.world)

    def tearDown(self):
        self.world._lent = []
        self.world.close()

    def assertSays(self, text, call, *arguments, kind=quern.Error):
        with self.assertRaisesRegex(kind, text):
            call(*arguments)


class Values(Scene):
    def test_a_value_is_read_as_it_was_set(self):
        entity = self.world.create(self.Position(1, 2), self.Frozen)
        self.assertEqual(self.world.get(entity, self.Position).tolist(), (1, 2))
        self.world.set(entity, self.Velocity(y=3))
        self.assertEqual(self.world.get(entity, self.Velocity)["y"], 3)
        self.assertTrue(self.world.has(entity, self.Frozen))
        self.world.remove(entity, self.Frozen)
        self.assertFalse(self.world.has(entity, self.Frozen))
        self.assertIsNone(self.world.get(self.world.create(), self.Position))

    def test_fields_of_all_types_are_described(self):
        fields = {"flag": "?", "small": "i1", "count": "u2", "big": "u8", "exact": "f8", "title": "S16", "place": ("f4", 3), "target": quern.ENTITY}
        made = self.world.component("Everything", **fields)
        other = self.world.create()
        entity = self.world.create(made(True, -1, 2, 2**63, 0.5, b"guard", (1, 2, 3), other))
        found = quern._Type.of_info(self.info("Everything"))
        self.assertEqual([found.dtype.fields[name] for name in fields], [made.dtype.fields[name] for name in fields])
        value = self.world.get(entity, made)
        self.assertEqual((value["title"], value["place"].tolist(), value["target"]), (b"guard", [1, 2, 3], other))

    def info(self, name):
        info = quern.ffi.new("quern_type_info *")
        quern.check(quern.lib.quern_component_get_info(self.world.handle, self.world[name].handle, info))
        return info

    def test_many_entities_are_created_from_arrays(self):
        places = np.arange(2000, dtype="f4").reshape(1000, 2)
        handles = self.world.create_many(1000, {self.Position: places, self.Velocity: None, self.Frozen: None})
        self.assertEqual(self.world.get(handles[7], self.Position).tolist(), (14, 15))
        self.world.destroy(handles[:600])
        self.assertEqual(len(self.world.query(self.Position)), 400)
        self.assertFalse(self.world.is_alive(handles[0]))

    def test_entities_of_arrays_with_strides_are_destroyed(self):
        entities = self.world.create_many(8, {self.Position: None})
        self.world.destroy(entities[::2])
        self.assertEqual([self.world.is_alive(entity) for entity in entities], [False, True] * 4)
        table = np.zeros(2, [("frame", "u8"), ("entity", "u8")])
        table["entity"] = entities[1::4]
        self.world.destroy(table["entity"])
        self.assertEqual([self.world.is_alive(entity) for entity in entities[1::2]], [False, True] * 2)
        self.world.destroy(entities[3::4].reshape(1, 2))
        self.assertEqual(len(self.world.query(self.Position)), 0)

    def test_resources_are_seen_by_the_world(self):
        clock = self.world.resource("Clock", seconds="f8")
        before = self.world.hash()
        clock.value["seconds"] = 2
        self.assertEqual(clock.value["seconds"], 2)
        self.assertNotEqual(self.world.hash(), before)

    def test_the_library_has_every_function_of_the_headers(self):
        names = [name for name in dir(quern.lib) if name.startswith("quern_")]
        self.assertGreater(len(names), 500)
        self.assertEqual([name for name in names if not hasattr(quern.lib, name)], [])
        for name in ("quern_term_read", "quern_random_unit", "quern_grid_create", "quern_world_load"):
            self.assertIn(name, names)

    def test_any_function_of_the_headers_can_be_called(self):
        mother, child = self.world.create(), self.world.create()
        parent = quern.lib.quern_world_parent(self.world.handle)
        quern.call.entity_relate(self.world, child, parent, mother)
        self.assertEqual(quern.call.entity_target(self.world, child, parent), mother)
        quern.call.entity_set_name(self.world, mother, "mother")
        self.assertEqual(quern.call.entity_find(self.world, "mother"), mother)
        self.assertSays("cycle|below", quern.call.entity_relate, self.world, mother, parent, child)
        quern.call.entity_set_enabled(self.world, child, False)
        self.assertFalse(quern.call.entity_is_enabled(self.world, child))


class Relations(Scene):
    def test_a_relation_leads_to_its_target_and_back(self):
        likes = self.world.relation("likes")
        ann, bob, eve = (self.world.create() for _ in range(3))
        self.world.relate(ann, likes, eve)
        self.world.relate(bob, likes, eve)
        self.assertEqual(self.world.target(ann, likes), eve)
        self.assertEqual(sorted(self.world.sources(eve, likes)), [ann, bob])
        self.assertTrue(self.world.has(ann, likes))
        self.assertEqual(self.world.query(quern.with_(likes)).copy().tolist(), [ann, bob])
        self.world.unrelate(bob, likes)
        self.assertIsNone(self.world.target(bob, likes))
        self.assertEqual(len(self.world.sources(ann, likes)), 0)
        quern.call.entity_relate(self.world, bob, likes, ann)
        self.assertEqual(self.world.target(bob, likes), ann)

    def test_a_relation_with_several_targets(self):
        owns = self.world.relation("owns", many=True)
        ann, hat, bag = (self.world.create() for _ in range(3))
        self.world.relate(ann, owns, hat)
        self.world.relate(ann, owns, bag)
        self.world.unrelate(ann, owns, hat)
        self.assertEqual((self.world.sources(hat, owns).tolist(), self.world.sources(bag, owns).tolist()), ([], [ann]))

    def test_systems_relate_by_commands(self):
        mother, child, parent = self.world.create(), self.world.create(self.Position(0, 0)), self.world.parent

        @self.schedule.system(self.Position)
        def adopt(context, view):
            if context.frame == 0:
                context.relate(view.entities[0], parent, mother)
            else:
                context.unrelate(view.entities[0], parent)

        self.schedule.run(0)
        self.assertEqual(self.world.sources(mother, self.world.parent).tolist(), [child])
        self.schedule.run(0)
        self.assertIsNone(self.world.target(child, self.world.parent))

    def test_wrong_relations(self):
        mother, child = self.world.create(), self.world.create()
        self.world.relate(child, self.world.parent, mother)
        self.assertSays("quern_entity_relate: .*below", self.world.relate, mother, self.world.parent, child)
        self.world.destroy(mother)
        self.assertSays("quern_entity_target: .*destroyed", self.world.target, mother, self.world.parent)
        self.assertSays("quern_entity_source_count: .*destroyed", self.world.sources, mother, self.world.parent)


class Events(Scene):
    def test_events_reach_the_systems_that_read_them(self):
        hit, tick, found = self.world.event("Hit", damage="f4"), self.world.event("Tick"), []

        @self.schedule.system(exclusive=True, emits=[hit, tick])
        def strike(context):
            context.emit(hit(1), hit(2))
            context.emit(hit, np.array([(3,)], hit.dtype))
            context.emit(tick)

        @self.schedule.system(exclusive=True, events=[hit, tick], after="strike")
        def suffer(context):
            found.append((context.events(hit)["damage"].tolist(), context.events(tick)))

        self.world.emit(hit(7))
        self.schedule.run(0)
        self.schedule.run(0)
        self.assertEqual(sorted(sum((damage for damage, _ in found), [])), [1, 1, 2, 2, 3, 3, 7])
        self.assertEqual(sum(ticks for _, ticks in found), 2)

    def test_types_that_are_registered_twice(self):
        hit, count = self.world.event("Twice", damage="f4"), self.world.resource("Twice", sum="f4")
        hit_again, count_again = self.world.event("Twice", damage="f4"), self.world.resource("Twice", sum="f4")

        @self.schedule.system(exclusive=True, events=[hit], emits=[hit], resources=[quern.write(count)])
        def strike(context):
            context.emit(hit_again(2))
            context.resource(count_again)["sum"] += context.events(hit_again)["damage"].sum()

        self.schedule.run(0)
        self.schedule.run(0)
        self.assertEqual(count.value["sum"], 2)

    def test_undeclared_events(self):
        hit = self.world.event("Hit", damage="f4")

        @self.schedule.system(exclusive=True)
        def wrong(context):
            self.assertSays("system 'wrong' does not declare that it emits the event 'Hit'", context.emit, hit(1))
            self.assertSays("system 'wrong' does not declare that it reads the event 'Hit'", context.events, hit)
            self.assertSays("give values of one event", context.emit, self.Position(1, 2))

        self.schedule.run(0)
        self.assertSays("World.emit: give values of one event", self.world.emit)
        self.assertSays("'Hit' has the fields damage; it has no 'dammage'", lambda: hit(dammage=1))


class Prefabs(Scene):
    def tower(self):
        base, gun = self.world.create(self.Position(1, 2)), self.world.create(self.Velocity(3, 4))
        self.world.relate(gun, self.world.parent, base)
        return self.world.prefab(base)

    def test_an_instance_is_the_tree_with_other_values(self):
        tower = self.tower()
        same, other = self.world.spawn(tower), self.world.spawn(tower, self.Position(5, 6))
        self.assertEqual([self.world.get(root, self.Position).tolist() for root in (same, other)], [(1, 2), (5, 6)])
        gun, = self.world.sources(other, self.world.parent)
        self.assertEqual(self.world.get(gun, self.Velocity).tolist(), (3, 4))

    def test_many_instances_from_arrays(self):
        roots = self.world.spawn_many(self.tower(), 100, {self.Position: np.arange(200, dtype="f4").reshape(100, 2)})
        self.assertEqual(self.world.get(roots[9], self.Position).tolist(), (18, 19))
        self.assertEqual(len(self.world.query(self.Velocity)), 101)

    def test_systems_spawn_by_commands(self):
        tower = self.tower()

        @self.schedule.system(exclusive=True)
        def build(context):
            context.spawn(tower, self.Position(7, 8))

        self.schedule.run(0)
        self.assertEqual(self.world.query(self.Position).copy(self.Position)["x"].tolist(), [1, 7])

    def test_wrong_prefabs(self):
        tower = self.tower()
        self.assertSays("quern_prefab_spawn: .*Velocity", self.world.spawn, tower, self.Velocity(0, 0))
        self.assertSays("spawn: values of the root: 17 are given, and the limit is 16", self.world.spawn, tower, *[self.Position(0, 0)] * 17)
        tower.close()
        self.assertSays("quern_prefab_spawn: ", self.world.spawn, tower)


class Limits(Scene):
    def test_lists_that_are_too_long_are_errors_of_the_library(self):
        add = self.schedule.system
        for text, call in {
            "Schedule: phases: 33 are given, and the limit is 32": lambda: quern.Schedule(self.world, ["p%d" % i for i in range(33)]),
            "system 'a': queries: 5 are given": lambda: add(self.Position, name="a", queries=[[self.Position]] * 5)(print),
            "system 'a': lookups: 33 are given": lambda: add(self.Position, name="a", lookups=[self.Position] * 33)(print),
            "system 'a': before: 33 are given": lambda: add(self.Position, name="a", before=["b"] * 33)(print),
            "system 'a' has 33 terms": lambda: add(*[self.Position] * 33, name="a")(print),
            "History: schedules: [0-9]+ are given": lambda: quern.History(self.world, [self.schedule] * 100),
            "World.save: schedules: 9 are given": lambda: self.world.save([self.schedule] * 9),
            "World.load: schedules: 9 are given": lambda: self.world.load(self.world.save(), [self.schedule] * 9),
        }.items():
            with self.assertRaisesRegex(quern.Error, text) as found:
                call()
            self.assertEqual(found.exception.result, "QUERN_ERROR_LIMIT")


class Systems(Scene):
    def test_columns_are_the_memory_of_the_world(self):
        entities = [self.world.create(self.Position(i, 0), self.Velocity(1, 2)) for i in range(100)]
        frozen = self.world.create(self.Position(0, 0), self.Velocity(1, 1), self.Frozen)

        @self.schedule.system(quern.write(self.Position), self.Velocity, quern.without(self.Frozen))
        def move(context, view):
            position, velocity = view[self.Position], view[self.Velocity]
            position["x"] += velocity["x"] * context.delta_seconds
            position["y"] += velocity["y"] * context.delta_seconds

        self.schedule.run(0.5)
        self.assertEqual(self.world.get(entities[9], self.Position).tolist(), (9.5, 1))
        self.assertEqual(self.world.get(frozen, self.Position).tolist(), (0, 0))

    def test_commands_and_resources(self):
        self.world.create(self.Position(5, 0))
        count = self.world.resource("Count", value="u4")

        @self.schedule.system(self.Position, resources=[quern.write(count)])
        def split(context, view):
            context.resource(count)["value"] += view.count
            for entity in view.entities:
                context.create(self.Position(1, 0), self.Frozen)
                context.destroy(entity)

        for _ in range(3):
            self.schedule.run(0)
        self.assertEqual(count.value["value"], 3)
        self.assertEqual(self.world.query(self.Position, self.Frozen).copy(self.Position)["x"].tolist(), [1])

    def test_exclusive_systems_change_the_world_at_once(self):
        @self.schedule.system(exclusive=True)
        def fill(context):
            context.world.create(self.Position(context.frame, 0))

        for _ in range(4):
            self.schedule.run(0)
        self.assertEqual(self.world.query(self.Position).copy(self.Position)["x"].tolist(), [0, 1, 2, 3])

    def test_further_queries_and_lookups(self):
        sun = self.world.create(self.Position(3, 4))
        Planet = self.world.component("Planet", star=quern.ENTITY)
        self.world.create(Planet(sun))
        seen = []

        @self.schedule.system(Planet, queries=[[self.Position]], lookups=[self.Position])
        def look(context, view):
            for others in context.query(0):
                seen.append(others.count)
            seen.append(context.lookup(view[Planet]["star"][0], self.Position).tolist())

        self.schedule.run(0)
        self.assertEqual(seen, [1, (3, 4)])

    def test_threads_run_systems_of_c_beside_those_of_python(self):
        self.world.create_many(1000, {self.Position: np.zeros((1000, 2), "f4")})
        definition, out = quern.ffi.new("quern_grid_def *"), quern.ffi.new("quern_grid **")
        name = quern.ffi.new("char[]", b"near")
        definition.name, definition.position, definition.planar, definition.cell_size = name, self.Position.handle, True, 1
        quern.call.grid_create(self.world, definition, out)
        quern.call.grid_add_systems(out[0], self.schedule, 0)
        sums = []

        @self.schedule.system(self.Position)
        def add(context, view):
            sums.append(view.count)

        with quern.Jobs(3) as jobs:
            self.schedule.run(0, jobs)
        self.assertEqual(sum(sums), 1000)
        self.schedule.close()
        quern.lib.quern_grid_destroy(out[0])

    def test_callbacks_survive_a_collection_of_garbage(self):
        def add():
            @self.schedule.system(quern.write(self.Position))
            def move(context, view):
                view[self.Position]["x"] += 1

        entity = self.world.create(self.Position(0, 0))
        add()
        gc.collect()
        self.schedule.run(0)
        self.assertEqual(self.world.get(entity, self.Position)["x"], 1)


class Keeping(Scene):
    def test_an_archive_is_the_same_world(self):
        self.world.create_many(10, {self.Position: np.ones((10, 2), "f4")})
        other = quern.World()
        other.component("Position", x="f4", y="f4")
        self.assertEqual(other.load(self.world.save(), leave_out_missing=True), 10)
        self.assertEqual(other["Position"].dtype, self.Position.dtype)
        other.close()

    def test_a_world_is_made_of_an_archive_alone(self):
        Guard = self.world.component("Guard", name="S8", aims=(quern.ENTITY, 2), seen="u8")
        entity = self.world.create(self.Position(1, 2), Guard(b"ann", (0, 0), 7), self.Frozen)
        other = quern.World.of_archive(self.world.save())
        self.assertEqual(other.components(), ["Position", "Frozen", "Guard"])
        self.assertEqual(other["Guard"].dtype, Guard.dtype)
        found = other.query(other["Guard"], other["Frozen"]).copy(other["Guard"])
        self.assertEqual((found["name"].tolist(), found["seen"].tolist()), ([b"ann"], [7]))
        self.assertIsNone(other["Frozen"].dtype)
        self.assertEqual(other.hash(), self.world.hash())
        self.assertTrue(self.world.is_alive(entity))

    def test_a_damaged_archive_is_refused(self):
        archive = bytearray(self.world.save())
        archive[-1] ^= 1
        with self.assertRaises(quern.Error) as caught:
            quern.World().load(bytes(archive))
        self.assertEqual(caught.exception.result, "QUERN_ERROR_BAD_ARCHIVE")

    def test_a_history_is_a_table(self):
        @self.schedule.system(quern.write(self.Position))
        def move(context, view):
            view[self.Position]["x"] += 1

        entities = [self.world.create(self.Position(10 * i, 0)) for i in range(2)]
        history = quern.History(self.world, [self.schedule], frames=8)
        for frame in range(5):
            self.schedule.run(0)
            history.save(frame)
        table = history.table(self.Position)
        self.assertEqual(table.dtype.names, ("frame", "entity", "Position.x", "Position.y"))
        self.assertEqual(table[table["entity"] == entities[1]]["Position.x"].tolist(), [11, 12, 13, 14, 15])
        history.restore(2)
        self.assertEqual(self.world.get(entities[0], self.Position)["x"], 3)


    @unittest.skipUnless(hasattr(quern.lib, "quern_inspector_create"), "this build has no inspector")
    def test_the_inspector_serves_its_page(self):
        self.schedule.system(self.Position, name="idle")(lambda context, view: None)
        history = quern.History(self.world, [self.schedule])
        inspector = quern.Inspector(self.world, self.schedule, history)
        for _ in range(3):
            self.assertTrue(inspector.update())
            history.save(inspector.frame)
            inspector.run(0)
        self.assertEqual((inspector.frame, history.frames), (3, [0, 1, 2]))
        with urllib.request.urlopen(inspector.url) as page:
            self.assertIn(b"<html", page.read(1000))


class WrongUse(Scene):
    def test_an_unknown_component(self):
        self.assertSays("no component 'Mass'; it has Position, Velocity, Frozen", lambda: self.world["Mass"])
        self.assertSays("a term needs a component, and 'Position' is none", self.world.query, "Position")
        other = quern.World()
        self.assertSays("quern_query_create: .*not of this world", other.query, self.Position)
        other.close()

    def test_wrong_fields_and_types(self):
        self.assertSays("'Position' has the fields x, y; it has no 'z'", lambda: self.Position(z=1))
        self.assertSays("'Frozen' is a tag", lambda: self.Frozen(1))
        self.assertSays("'name' of 'Bad' is a <U8", lambda: self.world.component("Bad", name="U8"))
        self.assertSays("'x' of 'Bad' is a float16", lambda: self.world.component("Bad", x="f2"))
        self.assertSays("2 dimensions", lambda: self.world.component("Bad", x=("f4", (2, 2))))
        self.assertSays("quern_component_register: .*Position", lambda: self.world.component("Position", x="f8"))

    def test_a_wrong_dtype(self):
        self.assertSays("'Position' has values of the dtype .*float64.*convert it by astype", self.world.create_many, 4, {self.Position: np.zeros((4, 2))})
        self.assertSays("needs 4 values", self.world.create_many, 4, {self.Position: np.zeros(3, self.Position.dtype)})
        self.assertSays("shape", self.world.create_many, 4, {self.Position: np.zeros((4, 3), "f4")})

    def test_a_dead_entity(self):
        entity = self.world.create()
        self.world.destroy(entity)
        with self.assertRaises(quern.Error) as caught:
            self.world.set(entity, self.Position(0, 0))
        self.assertEqual(caught.exception.result, "QUERN_ERROR_STALE_ENTITY")

    def test_an_undeclared_access(self):
        self.world.create(self.Position(0, 0), self.Velocity(0, 0))

        @self.schedule.system(self.Position, quern.with_(self.Velocity))
        def wrong(context, view):
            self.assertSays("system 'wrong': no term names 'Frozen'; the terms name 'Position', 'Velocity'", lambda: view[self.Frozen])
            self.assertSays("'Velocity' declares no access", lambda: view[self.Velocity])
            self.assertSays("read-only", lambda: view[self.Position]["x"].fill(1), kind=ValueError)
            self.assertSays("only an exclusive system has the world", lambda: context.world)
            self.assertSays("does not declare lookups", context.lookup, 0, self.Velocity)
            self.assertSays("has 0 further queries", context.query, 0)
            self.assertSays("is running on this world", self.world.create)

        self.schedule.run(0)

    def test_an_exception_in_a_system(self):
        self.world.create(self.Position(0, 0))
        ran = []

        @self.schedule.system(self.Position)
        def first(context, view):
            raise KeyError("lost")

        @self.schedule.system(self.Position)
        def second(context, view):
            ran.append(True)

        with self.assertRaises(KeyError) as caught:
            self.schedule.run(0)
        self.assertIn("system 'first'", getattr(caught.exception, "__notes__", ["system 'first'"])[0])
        self.assertEqual(ran, [])
        quern.call.schedule_set_system_enabled(self.schedule, quern.lib.quern_schedule_find_system(self.schedule.handle, b"first"), False)
        self.schedule.run(0)
        self.assertEqual(ran, [True])

    def test_a_kept_array(self):
        self.world.create(self.Position(0, 0))
        kept = []

        @self.schedule.system(quern.write(self.Position))
        def keeps(context, view):
            kept.append(view[self.Position]["x"])

        self.assertSays("system 'keeps' keeps an array of its view", self.schedule.run, 0)
        self.assertSays("World.close: 1 array of a view or resource still lives", self.world.close)
        kept.clear()

    def test_an_exception_that_holds_an_array(self):
        def fail():
            with quern.World() as world:
                world.create(world.component("Mass", value="f4")(3))
                for view in world.query(world["Mass"]):
                    mass = view[world["Mass"]]
                    raise KeyError(mass["value"])

        with self.assertRaises(KeyError) as caught:
            fail()
        self.assertEqual(caught.exception.args[0].tolist(), [3])

    def test_a_kept_view_and_a_kept_context(self):
        self.world.create(self.Position(0, 0))
        kept = []

        @self.schedule.system(self.Position)
        def keeps(context, view):
            kept.extend([context, view])

        self.schedule.run(0)
        self.assertSays("the context is used after", lambda: kept[0].delta_seconds)
        self.assertSays("the view is used after", lambda: kept[1][self.Position])

    def test_an_array_of_a_loop_becomes_read_only(self):
        self.world.create(self.Position(0, 0))
        query = self.world.query(quern.write(self.Position))
        for view in query:
            position = view[self.Position]
            position["x"] = 1
        self.assertSays("read-only", lambda: position.fill(0), kind=ValueError)
        self.assertSays("the view is used after", lambda: view.entities)
        self.assertSays("arrays? of a view or resource still live", self.world.close)
        del position

    def test_a_query_that_ends_in_its_loop(self):
        entity = self.world.create(self.Position(2, 0))
        for view in self.world.query(self.Position):  # the loop keeps the query
            gc.collect()
            self.assertEqual(view[self.Position]["x"][0], 2)
        query = self.world.query(self.Position)

        def close():
            for view in query:
                query.close()

        self.assertSays("the query is used after it was closed", close)
        self.assertTrue(self.world.is_alive(entity))

    def test_a_change_of_the_structure_in_a_loop(self):
        self.world.create(self.Position(0, 0))
        self.world.create(self.Position(0, 0), self.Velocity(0, 0))

        def change():
            for view in self.world.query(self.Position):
                self.world.create(self.Position(0, 0))

        self.assertSays("changed its structure", change)

    def test_a_kept_value_of_a_resource(self):
        clock, kept = self.world.resource("Clock", ticks="u8"), []
        kept.append(clock.value)
        self.assertSays("World.close: 1 array of a view or resource still lives", self.world.close)
        kept.clear()

        @self.schedule.system(resources=[quern.write(clock)])
        def keeps(context):
            kept.append(context.resource(clock))

        self.assertSays("system 'keeps' keeps an array of a resource", self.schedule.run, 0)
        kept.clear()

    def test_a_world_that_is_closed_in_its_frame(self):
        closes = [self.world.close, self.schedule.close]

        @self.schedule.system(exclusive=True)
        def stops(context):
            closes.pop(0)()

        self.assertSays("World.close: a frame of the world is running", self.schedule.run, 0)
        self.schedule.run(0)
        self.assertSays("the schedule is used after it was closed", self.schedule.run, 0)

    def test_garbage_that_is_collected_in_a_frame(self):
        def leave_garbage():
            garbage = [self.world.query(self.Position), quern.Schedule(self.world), quern.History(self.world), quern.Jobs(1)]
            garbage.append(garbage)

        @self.schedule.system(exclusive=True)
        def collects(context):
            gc.collect()

        gc.disable()
        leave_garbage()
        gc.enable()
        self.schedule.run(0)
        self.assertEqual(list(self.world._owner.boxes.values()), [self.schedule._box])

    def test_closed_threads(self):
        jobs = quern.Jobs(2)
        jobs.close()
        jobs.close()
        self.assertSays("the pool of threads is used after it was closed", self.schedule.run, 0, jobs)
        if hasattr(quern.lib, "quern_inspector_create"):
            jobs = quern.Jobs(2)
            inspector = quern.Inspector(self.world, self.schedule, jobs=jobs)
            jobs.close()
            self.assertSays("the inspector is used after it was closed", inspector.run, 0)

    def test_a_closed_world(self):
        world = quern.World()
        schedule, query = quern.Schedule(world), world.query(world.component("A"))
        world.close()
        world.close()
        self.assertSays("the world is used after it was closed", world.create)
        self.assertSays("the schedule is used after it was closed", schedule.run, 0)
        self.assertSays("the query is used after it was closed", lambda: list(query))

    def test_wrong_calls_of_functions(self):
        self.assertSays("entity_create has 2 arguments, and 1 are given", quern.call.entity_create, self.world)
        self.assertSays("", lambda: quern.call.no_such_call, kind=AttributeError)
        self.assertSays("has no phase 'draw'; it has update", lambda: self.schedule.system(self.Position, phase="draw")(print))

    def test_nothing_is_kept_alive(self):
        world = quern.World()
        schedule = quern.Schedule(world)
        schedule.system(name="idle")(lambda context: None)
        schedule.run(0)
        gone = weakref.ref(schedule)
        world.close()
        del schedule, world
        gc.collect()
        self.assertIsNone(gone())


if __name__ == "__main__":
    unittest.main()
