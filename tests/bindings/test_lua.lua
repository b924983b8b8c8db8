-- SPDX-License-Identifier: MIT
-- Copyright (c) 2026 The Quern authors

-- Tests of the binding for LuaJIT: what it does, and what it says about wrong use.

local ffi = require "ffi"
local quern = require "quern"

local tests, failures, count = {}, 0, 0

local function equal(found, wanted)
  if found ~= wanted then error("found " .. tostring(found) .. ", wanted " .. tostring(wanted), 2) end
end

local function says(pattern, call, ...)
  local is_good, message = pcall(call, ...)
  if is_good then error("no error; wanted " .. pattern, 2) end
  if not tostring(message):find(pattern) then error("the error is " .. tostring(message) .. ", wanted " .. pattern, 2) end
end

local function scene()
  local world = quern.world()
  local made = {world = world, schedule = quern.schedule(world)}
  made.Position = world:component("Position", "float x, y;")
  made.Velocity = world:component("Velocity", "float x, y;")
  made.Frozen = world:component("Frozen")
  return made
end

function tests.a_value_is_read_as_it_was_set(s)
  local entity = s.world:create(s.Position(1, 2), s.Frozen)
  local position = s.world:get(entity, s.Position)
  equal(position.x, 1)
  equal(position.y, 2)
  s.world:set(entity, s.Velocity(0, 3))
  equal(s.world:get(entity, s.Velocity).y, 3)
  equal(s.world:has(entity, s.Frozen), true)
  s.world:remove(entity, s.Frozen)
  equal(s.world:has(entity, s.Frozen), false)
  equal(s.world:get(s.world:create(), s.Position), nil)
end

function tests.fields_of_all_types_are_described(s)
  local all = s.world:component("Everything", "bool flag; int8_t small; uint16_t count; uint64_t big; double exact; char title[16]; float place[3]; quern_entity target;")
  local info = ffi.new("quern_type_info")
  quern.call.component_get_info(s.world.handle, all.handle, info)
  equal(info.field_count, 8)
  equal(ffi.string(info.fields[5].name), "title")
  equal(info.fields[5].type, ffi.cast("quern_field_type", quern.constants.QUERN_FIELD_TEXT))
  equal(info.fields[5].count, 16)
  equal(info.fields[6].count, 3)
  equal(info.fields[7].offset_bytes, ffi.offsetof(all.ctype, "target"))
end

function tests.columns_are_the_memory_of_the_world(s)
  local last
  for i = 1, 100 do last = s.world:create(s.Position(i, 0), s.Velocity(1, 2)) end
  local frozen = s.world:create(s.Position(0, 0), s.Velocity(1, 2), s.Frozen)
  s.schedule:system("move", {quern.write(s.Position), s.Velocity, quern.without(s.Frozen)}, function(context, view)
    local position, velocity = view:column(s.Position), view:column(s.Velocity)
    for i = 0, view.count - 1 do
      position[i].x = position[i].x + velocity[i].x * context:delta_seconds()
    end
  end)
  for _ = 1, 100 do s.schedule:run(0.5) end -- often enough for the compiler of LuaJIT
  equal(s.world:get(last, s.Position).x, 150)
  equal(s.world:get(frozen, s.Position).x, 0)
end

function tests.commands_and_resources(s)
  s.world:create(s.Position(5, 0))
  local count = s.world:resource("Count", "uint32_t value;")
  s.schedule:system("split", {s.Position}, function(context, view)
    local total = context:resource(count)
    total.value = total.value + view.count
    for i = 0, view.count - 1 do
      context:create(s.Position(1, 0), s.Frozen)
      context:destroy(view.entities[i])
    end
  end, {resources = {{count, true}}})
  for _ = 1, 3 do s.schedule:run(0) end
  equal(s.world:value(count).value, 3)
  local query = s.world:query {s.Position, s.Frozen}
  equal(query:count(), 1)
  for view in query:views() do equal(view:column(s.Position)[0].x, 1) end
end

function tests.exclusive_systems_change_the_world_at_once(s)
  s.schedule:system("fill", {}, function(context) context:world():create(s.Position(context:frame(), 0)) end, {exclusive = true})
  for _ = 1, 4 do s.schedule:run(0) end
  equal(s.world:query {s.Position}:count(), 4)
end

function tests.any_function_of_the_headers_can_be_called(s)
  local mother, child, parent = s.world:create(), s.world:create(), quern.lib.quern_world_parent(s.world.handle)
  quern.call.entity_relate(s.world.handle, child, parent, mother)
  equal(quern.call.entity_target(s.world.handle, child, parent).bits, mother.bits)
  says("below", quern.call.entity_relate, s.world.handle, mother, parent, child)
  quern.call.entity_set_enabled(s.world.handle, child, false)
  equal(quern.lib.quern_entity_is_enabled(s.world.handle, child), false)
end

function tests.relations(s)
  local likes, world = s.world:relation("likes"), s.world
  local ann, bob, eve = world:create(), world:create(), world:create()
  world:relate(ann, likes, eve)
  world:relate(bob, likes, eve)
  equal(world:target(ann, likes).bits, eve.bits)
  equal(#world:sources(eve, likes), 2)
  equal(world:query({quern.with(likes)}):count(), 2)
  world:unrelate(bob, likes)
  equal(world:target(bob, likes), nil)
  equal(world:sources(eve, likes)[1].bits, ann.bits)
  world:relate(ann, world:parent(), eve)
  says("quern_entity_relate: .*below", world.relate, world, eve, world:parent(), ann)
  world:destroy(eve)
  says("quern_entity_source_count: .*destroyed", world.sources, world, eve, likes)
  says("quern_entity_target: .*destroyed", world.target, world, eve, likes)
end

function tests.entities_compare_by_value(s)
  local likes, ann, bob = s.world:relation("likes"), s.world:create(), s.world:create()
  s.world:relate(ann, likes, bob)
  equal(s.world:target(ann, likes) == bob, true)
  equal(s.world:target(ann, likes) ~= ann, true)
  equal(s.world:sources(bob, likes)[1] == ann, true)
  equal(bob == nil or bob == "bob" or bob == 1 or bob == bob.bits or bob == ffi.cast("quern_entity *", nil), false)
  s.world:destroy(bob)
  equal(s.world:create() == bob, false) -- the same place, a newer generation
end

function tests.a_relation_with_several_targets(s)
  local owns, ann, hat, bag = s.world:relation("owns", {many = true}), s.world:create(), s.world:create(), s.world:create()
  s.world:relate(ann, owns, hat)
  s.world:relate(ann, owns, bag)
  s.world:unrelate(ann, owns, hat)
  equal(#s.world:sources(hat, owns), 0)
  equal(#s.world:sources(bag, owns), 1)
end

function tests.systems_relate_and_spawn_by_commands(s)
  local mother, child, parent = s.world:create(), s.world:create(s.Velocity(0, 0)), s.world:parent()
  local prefab = s.world:prefab(s.world:create(s.Position(1, 2)))
  s.schedule:system("adopt", {s.Velocity}, function(context, view)
    if context:frame() == 0 then context:relate(view.entities[0], parent, mother) else context:unrelate(view.entities[0], parent) end
    context:spawn(prefab, s.Position(5, 6))
  end)
  s.schedule:run(0)
  equal(s.world:sources(mother, parent)[1].bits, child.bits)
  s.schedule:run(0)
  equal(s.world:target(child, parent), nil)
  equal(s.world:query({s.Position}):count(), 3)
end

function tests.events(s)
  local hit, tick, sum, ticks = s.world:event("Hit", "float damage;"), s.world:event("Tick"), 0, 0
  s.schedule:system("strike", {}, function(context) context:emit(hit(1), hit(2), tick) end, {exclusive = true, emits = {hit, tick}})
  s.schedule:system("suffer", {}, function(context)
    for event in context:events(hit) do sum = sum + event.damage end
    for _ in context:events(tick) do ticks = ticks + 1 end
  end, {exclusive = true, events = {hit, tick}, after = {"strike"}})
  s.world:emit(hit(7))
  s.schedule:run(0)
  s.schedule:run(0)
  equal(sum, 13)
  equal(ticks, 2)
end

function tests.types_that_are_registered_twice(s)
  local hit, count, sum = s.world:event("Twice", "float damage;"), s.world:resource("Twice", "float sum;"), 0
  s.schedule:system("strike", {}, function(context)
    local hit_again, count_again = s.world:event("Twice", "float damage;"), s.world:resource("Twice", "float sum;")
    context:emit(hit_again(2))
    for event in context:events(hit_again) do context:resource(count_again).sum = context:resource(count).sum + event.damage end
    sum = context:resource(count).sum
  end, {exclusive = true, events = {hit}, emits = {hit}, resources = {{count, true}}})
  s.schedule:run(0)
  s.schedule:run(0)
  equal(sum, 2)
end

function tests.undeclared_events(s)
  local hit, ran = s.world:event("Hit", "float damage;"), false
  s.schedule:system("wrong", {}, function(context)
    says("does not declare that it emits the event 'Hit'", context.emit, context, hit(1))
    says("does not declare that it reads the event 'Hit'", context.events, context, hit)
    says("Context:emit: give an event, .* not nil", context.emit, context)
    ran = true
  end, {exclusive = true})
  s.schedule:run(0)
  equal(ran, true)
  says("World:emit: give an event", s.world.emit, s.world, s.Position(1, 2))
  says("World:emit: give an event, .* not nil", s.world.emit, s.world)
  says("World:emit: give an event, .* not nil", s.world.emit, s.world, hit(1), nil, hit(2))
end

function tests.prefabs(s)
  local base, gun, parent = s.world:create(s.Position(1, 2)), s.world:create(s.Velocity(3, 4)), s.world:parent()
  s.world:relate(gun, parent, base)
  local tower = s.world:prefab(base)
  local same, other = s.world:spawn(tower), s.world:spawn(tower, s.Position(5, 6))
  equal(s.world:get(same, s.Position).x, 1)
  equal(s.world:get(other, s.Position).y, 6)
  equal(s.world:get(s.world:sources(other, parent)[1], s.Velocity).x, 3)
  says("quern_prefab_spawn: .*Velocity", s.world.spawn, s.world, tower, s.Velocity(0, 0))
  says("spawn: a value is a component", s.world.spawn, s.world, tower, 7)
  quern.call.prefab_destroy(s.world.handle, tower)
  says("quern_prefab_spawn: ", s.world.spawn, s.world, tower)
end

function tests.lists_that_are_too_long(s)
  local function many(count, value)
    local list = {}
    for i = 1, count do list[i] = value end
    return list
  end
  local function add(options) s.schedule:system("a", {s.Position}, print, options) end
  says("phases: 33 are given, and the limit is 32", quern.schedule, s.world, many(33, "p"))
  says("system 'a': queries: 5 are given", add, {queries = many(5, {s.Position})})
  says("system 'a': before: 33 are given", add, {before = many(33, "b")})
  says("system 'a': emits: 33 are given", add, {emits = many(33, s.world:event("Tick"))})
  says("at most 32 terms", s.world.query, s.world, many(33, s.Position))
  says("schedules: 100 are given", quern.history, s.world, many(100, s.schedule))
  says("spawn: values of the root: 17 are given", s.world.spawn, s.world, s.world:prefab(s.world:create(s.Position(0, 0))), unpack(many(17, s.Position(0, 0))))
end

function tests.lists_with_wrong_members(s)
  local hit = s.world:event("Hit")
  local function add(options) s.schedule:system("a", {s.Position}, print, options) end
  says("system 'a': events: 'Position' is no event", add, {events = {s.Position}})
  says("system 'a': emits: 3 is no event", add, {emits = {hit, 3}})
  says("system 'a': resources: 'Hit' is no resource", add, {resources = {hit}})
  says("system 'a': resources: a table is no resource", add, {resources = {{}}})
  says("system 'a': events: give a list, and not 'Hit'", add, {events = hit})
  says("system 'a': before: give a list, and not \"x\"", add, {before = "x"})
  says("system 'a': a query: terms: give a list, and not 'Position'", add, {queries = {s.Position}})
  says("system 'a': terms: give a list, and not a table", s.schedule.system, s.schedule, "a", quern.write(s.Position), print)
  says("quern.schedule: phases: give a list, and not \"draw\"", quern.schedule, s.world, "draw")
end

function tests.an_archive_and_a_history_are_the_same_world(s)
  s.world:create(s.Position(1, 2))
  local other = scene()
  other.world:load(s.world:save())
  equal(other.world:hash(), s.world:hash())
  local history = quern.history(s.world, {s.schedule})
  local hash = s.world:hash()
  history:save(0)
  s.world:create()
  history:restore(0)
  equal(s.world:hash(), hash)
  other.world:close()
  says("quern_world_load: ", s.world.load, s.world, "not an archive")
end

function tests.callbacks_survive_a_collection_of_garbage(s)
  local entity = s.world:create(s.Position(0, 0))
  do
    s.schedule:system("move", {quern.write(s.Position)}, function(_, view) view:column(s.Position)[0].x = 7 end)
  end
  collectgarbage()
  collectgarbage()
  s.schedule:run(0)
  equal(s.world:get(entity, s.Position).x, 7)
end

function tests.wrong_components(s)
  says("'Frozen' is a tag", s.Frozen, 1)
  says("a term needs a component, and a string is none", s.world.query, s.world, {"Position"})
  says("a field cannot have the type 'short'", s.world.component, s.world, "Bad", "short x;")
  says("'Bad': ", s.world.component, s.world, "Bad", "flaot x;")
  says("quern_component_register: .*Position", s.world.component, s.world, "Position", "double x;")
  local other = scene()
  says("quern_query_create: .*not of this world", other.world.query, other.world, {s.Position})
  other.world:close()
end

function tests.a_dead_entity(s)
  local entity = s.world:create()
  s.world:destroy(entity)
  says("quern_entity_set: .*destroyed", s.world.set, s.world, entity, s.Position(0, 0))
end

function tests.undeclared_access(s)
  s.world:create(s.Position(0, 0), s.Velocity(0, 0))
  local ran = false
  s.schedule:system("wrong", {s.Position, quern.with(s.Velocity)}, function(context, view)
    says("system 'wrong': no term names 'Frozen'; the terms name 'Position', 'Velocity'", view.column, view, s.Frozen)
    says("'Velocity' declares no access", view.column, view, s.Velocity)
    says("only an exclusive system has the world", context.world, context)
    says("has 0 further queries", context.query, context)
    says("constant", function() view:column(s.Position)[0].x = 1 end)
    says("is running on this world", s.world.create, s.world)
    ran = true
  end)
  s.schedule:run(0)
  equal(ran, true)
end

function tests.an_error_in_a_system(s)
  s.world:create(s.Position(0, 0))
  local ran = 0
  s.schedule:system("first", {s.Position}, function() if ran == 0 then error("lost") end end)
  s.schedule:system("second", {s.Position}, function() ran = ran + 1 end)
  says("system 'first': .*lost", s.schedule.run, s.schedule, 0)
  equal(ran, 0)
  ran = 1
  s.schedule:run(0)
  equal(ran, 2)
end

function tests.a_kept_view(s)
  s.world:create(s.Position(0, 0))
  local kept, kept_context
  s.schedule:system("keeps", {s.Position}, function(context, view) kept_context, kept = context, view end)
  s.schedule:run(0)
  says("the context is used after its function has returned", function() kept_context:delta_seconds() end)
  says("the view is used after", kept.column, kept, s.Position)
end

function tests.a_query_that_is_closed_in_its_loop(s)
  s.world:create(s.Position(0, 0))
  local query = s.world:query {s.Position}
  says("a query: it was closed", function()
    for _ in query:views() do query:close() end
  end)
end

function tests.a_change_of_the_structure_in_a_loop(s)
  s.world:create(s.Position(0, 0))
  says("changed its structure", function()
    for _ in s.world:query({s.Position}):views() do s.world:create(s.Position(0, 0)) end
  end)
end

function tests.a_closed_world(s)
  local other = scene()
  local query = other.world:query {other.Position}
  other.world:close()
  other.world:close()
  says("the world is used after it was closed", function() other.world:create() end)
  says("the schedule is used after it was closed", function() other.schedule:run(0) end)
  says("the query is used after it was closed", function() query:count() end)
end

function tests.a_world_that_is_closed_in_its_frame(s)
  local calls = {function() s.world:close() end, function() s.schedule:close() end, function() s.schedule:run(0) end}
  s.schedule:system("stops", {}, function() table.remove(calls, 1)() end, {exclusive = true})
  says("World:close: a frame of the world is running", s.schedule.run, s.schedule, 0)
  says("Schedule:close: this schedule is running a frame", s.schedule.run, s.schedule, 0)
  says("Schedule:run: this schedule is running a frame", s.schedule.run, s.schedule, 0)
end

function tests.an_error_without_a_message(s)
  s.schedule:system("fails", {}, function() error() end, {exclusive = true})
  says("system 'fails' has failed", s.schedule.run, s.schedule, 0)
end

function tests.a_value_that_is_missing(s)
  equal(select("#", s.world:get(s.world:create(), s.Position)), 1)
end

function tests.an_unknown_phase(s)
  says("has no phase 'draw'; it has update", s.schedule.system, s.schedule, "a", {s.Position}, print, {phase = "draw"})
end

function tests.a_missing_library()
  local load, tried = loadfile(package.searchpath("quern", package.path)), {}
  local missing = {os = ffi.os, cdef = function() end, load = function(path) error("no " .. path, 0) end}
  setfenv(load, setmetatable({require = function(name) return name == "ffi" and missing or require(name) end}, {__index = _G}))
  local _, message = pcall(load)
  equal(message:find("build it by ./run bindings lua, or install the package again\n", 1, true) ~= nil, true)
  for path in message:gmatch("\nno ([^\n]+)") do
    equal(tried[path], nil)
    tried[path] = true
  end
  equal(next(tried) ~= nil, true)
end

function tests.errors_name_the_line_of_the_caller(s)
  local world, hit = s.world, s.world:event("Hit", "float damage;")
  local function add(options) s.schedule:system("a", {s.Position}, print, options) end
  local calls = {
    function() add({events = {3}}) end,
    function() add({queries = {{3}}}) end,
    function() add({before = 1}) end,
    function() world:query({3}) end,
    function() world:query({(quern.write(3))}) end,
    function() world:create(3) end,
    function() world:emit(hit(1), 3) end,
    function() world:spawn(world:prefab(world:create()), 3) end,
    function() world:component("Bad", "short x;") end,
    function() world:resource("Bad", "flaot x;") end,
    function() quern.schedule(world, 3) end,
    function() quern.write(3) end,
  }
  for i, call in ipairs(calls) do
    local _, message = pcall(call)
    local line = tonumber(tostring(message):match("test_lua%.lua:(%d+): "))
    local first = debug.getinfo(i <= 3 and add or call, "S").linedefined
    if line ~= first then error(("call %d: wanted line %d: %s"):format(i, first, message)) end
  end
end

local names = {}
for name in pairs(tests) do names[#names + 1] = name end
table.sort(names)
for _, name in ipairs(names) do
  local made = scene()
  local is_good, message = xpcall(tests[name], debug.traceback, made)
  made.world:close()
  count = count + 1
  if not is_good then
    failures = failures + 1
    print(name .. ": " .. message)
  end
end
print(("%d tests, %d failed"):format(count, failures))
os.exit(failures == 0 and 0 or 1)
