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
