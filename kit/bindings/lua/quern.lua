-- SPDX-License-Identifier: MIT
-- Copyright (c) 2026 The Quern authors

-- Quern for LuaJIT: columns are C arrays, which the compiler of LuaJIT reads and writes without calls.
--
--     local quern = require "quern"
--     local world = quern.world()
--     local Position = world:component("Position", "float x, y;")
--     local Velocity = world:component("Velocity", "float x, y;")
--     local schedule = quern.schedule(world)
--     schedule:system("move", {quern.write(Position), Velocity}, function(context, view)
--       local position, velocity = view:column(Position), view:column(Velocity)
--       for i = 0, view.count - 1 do position[i].x = position[i].x + velocity[i].x * context:delta_seconds() end
--     end)
--     world:create(Position(0, 0), Velocity(1, 0))
--     schedule:run(1 / 64)
--
-- A failed call is an error with the message of the library. quern.call.NAME calls any function quern_NAME of the headers in
-- the same way; quern.lib has them as they are.
--
-- A column is valid until the function of the system returns or the loop over the query moves on; LuaJIT does not check
-- pointers. A row is counted from 0. Systems of Lua run one at a time on the thread that calls schedule:run, as LuaJIT
-- requires, while systems of libraries in C run beside them on other threads.

local ffi = require "ffi"
local api = require "quern_api"

ffi.cdef(api.cdef)

local quern = {constants = api.constants}
local constants = api.constants

-- The library is in the folder of this file, in the folder above, among the modules in C, or where the system finds libraries.
local function open_library()
  local folder = (package.searchpath("quern", package.path) or "./quern.lua"):match("^(.*)[/\\]") or "."
  local name = ffi.os == "Windows" and "quern_bindings.dll" or ffi.os == "OSX" and "libquern_bindings.dylib" or "libquern_bindings.so"
  local installed = package.searchpath(name:match("^[^.]*"), package.cpath)
  local messages, tried = {}, {}
  for _, path in ipairs {folder .. "/" .. name, folder .. "/../" .. name, installed or name, name} do
    local is_loaded, library
    if not tried[path] then is_loaded, library = pcall(ffi.load, path) end
    if is_loaded then return library end
    messages[#messages + 1] = library and tostring(library)
    tried[path] = true
  end
  error("quern: the library was not found: build it by ./run bindings lua, or install the package again\n" .. table.concat(messages, "\n"))
end

local lib = open_library()
quern.lib = lib

-- Entities compare by their bits; LuaJIT compares structs by their addresses.
local entity_type, entity_pointer = ffi.typeof("quern_entity"), ffi.typeof("quern_entity *")
local function is_entity(value) return ffi.istype(entity_type, value) and not ffi.istype(entity_pointer, value) end

ffi.metatype(entity_type, {__eq = function(one, other) return is_entity(one) and is_entity(other) and one.bits == other.bits end})

-- Raises an error unless a quern_result is QUERN_OK. level: as for error(), counted from the caller.
local function check(result, level)
  if result ~= 0 then error(ffi.string(lib.quern_error_message()), (level or 1) + 1) end
end

-- Ends the use of an object whose handle was destroyed: closing it again does nothing, and all else is an error.
local function forget(object, kind, reason)
  object.handle = nil
  setmetatable(object, {__index = function(_, key)
    if key == "close" then return function() end end
    error("the " .. kind .. " is used after " .. (reason or "it was closed"), 2)
  end})
end

-- The functions of the headers by their names without quern_: a quern_result that is an error is raised.
quern.call = setmetatable({}, {
  __index = function(calls, name)
    local call = lib["quern_" .. name]
    local returns_result = api.results["quern_" .. name]
    local function checked(...)
      local result = call(...)
      if not returns_result then return result end
      check(result, 2)
    end
    jit.off(checked, true) -- the call may call back into Lua
    calls[name] = checked
    return checked
  end,
})

------------------------------------------------------------------------------------------------------------ types

-- Raises an error at the line of the caller, which is the first function outside this file.
local function refuse(...)
  local level, here = 2, debug.getinfo(1, "S").source
  while (debug.getinfo(level, "S") or {source = ""}).source == here do level = level + 1 end
  error(string.format(...), level)
end

-- What a caller gave, for messages.
local function given(value)
  if type(value) == "table" then return value.name and "'" .. value.name .. "'" or "a table" end
  return type(value) == "string" and '"' .. value .. '"' or tostring(value)
end

-- An object of this module has a handle or a term, and ipairs would find it an empty list.
local function require_list(values, what)
  if type(values) ~= "table" or rawget(values, "handle") or values.term then refuse("%s: give a list, and not %s", what, given(values)) end
end

-- Stores the values of a list in an array of a definition, which ends at its first zero. LuaJIT does not check bounds.
local function fill(array, values, what, store)
  require_list(values, what)
  local limit = ffi.sizeof(array) / ffi.sizeof(array[0])
  if #values > limit then refuse("%s: %d are given, and the limit is %d", what, #values, limit) end
  for i, value in ipairs(values) do
    if store then store(array[i - 1], value) else array[i - 1] = value end
  end
end

-- The types of fields, by the C types that they are declared with.
local field_types = {
  bool = "BOOL", int8_t = "I8", uint8_t = "U8", int16_t = "I16", uint16_t = "U16", int32_t = "I32", int = "I32", uint32_t = "U32",
  int64_t = "I64", uint64_t = "U64", float = "F32", double = "F64", quern_entity = "ENTITY", char = "TEXT",
}

-- Fills the fields of a definition from declarations such as "float x, y; quern_entity target; char name[16];".
local function describe(definition, name, ctype, declarations, keep)
  local count = 0
  for declaration in declarations:gmatch("[^;]+") do
    local kind, names = declaration:match("^%s*([%w_]+)%s+(.-)%s*$")
    if kind == nil then
      if declaration:match("%S") then refuse("component '%s': '%s' is no declaration of fields", name, declaration) end
    elseif field_types[kind] == nil then
      refuse("component '%s': a field cannot have the type '%s'; a field is a bool, an int8_t to uint64_t, a float, a double, "
        .. "a quern_entity, or text (char name[16])", name, kind)
    else
      for field in names:gmatch("[^,]+") do
        local word, size = field:match("^%s*([%w_]+)%s*%[?(%d*)%]?%s*$")
        if word == nil then refuse("component '%s': '%s' is no name of a field", name, field) end
        if count == constants.QUERN_MAX_FIELDS then refuse("component '%s' has more than %d fields", name, count) end
        keep[#keep + 1] = word
        local out = definition.fields[count]
        out.name, out.type = word, constants["QUERN_FIELD_" .. field_types[kind]]
        out.offset_bytes, out.count = ffi.offsetof(ctype, word), tonumber(size) or 1
        count = count + 1
      end
    end
  end
end

local Component = {}
Component.__index = Component

-- A component that is called with values of its fields is a value of itself.
function Component:__call(...)
  if self.ctype == nil then error("'" .. self.name .. "' is a tag: it has no value", 2) end
  return {component = self, value = self.one(1, {self.ctype(...)})}
end

local function is_component(value)
  return type(value) == "table" and getmetatable(value) == Component
end

local function make_term(component, match, access)
  if not is_component(component) then refuse("a term needs a component, and a %s is none", type(component)) end
  if component.ctype == nil then access = constants.QUERN_ACCESS_NONE end
  return {component = component, access = access, term = lib.quern_term_make(component.handle, match, access)}
end

function quern.read(component) return make_term(component, constants.QUERN_MATCH_ALL, constants.QUERN_ACCESS_READ) end
function quern.write(component) return make_term(component, constants.QUERN_MATCH_ALL, constants.QUERN_ACCESS_WRITE) end
function quern.with(component) return make_term(component, constants.QUERN_MATCH_ALL, constants.QUERN_ACCESS_NONE) end
function quern.without(component) return make_term(component, constants.QUERN_MATCH_NONE, constants.QUERN_ACCESS_NONE) end

function quern.optional(component, writes)
  return make_term(component, constants.QUERN_MATCH_OPTIONAL, writes and constants.QUERN_ACCESS_WRITE or constants.QUERN_ACCESS_READ)
end

function quern.changed(term)
  term = term.term and term or quern.read(term)
  term.term.changed = true
  return term
end

-- Stores terms in an array of a definition, and returns them as a list.
local function fill_terms(target, items, owner)
  local terms = {}
  require_list(items, owner .. ": terms")
  for i, item in ipairs(items) do
    if i > constants.QUERN_MAX_TERMS then refuse("a query or system has at most %d terms", constants.QUERN_MAX_TERMS) end
    terms[i] = type(item) == "table" and item.term and item or quern.read(item)
    target[i - 1] = terms[i].term
  end
  return terms
end

------------------------------------------------------------------------------------------------------------ views

local View = {}
View.__index = View

-- Returns the array of the values of a component, to write if the term writes; nil if an optional one is missing.
function View:column(component)
  if self.view == nil then error(self.owner .. ": the view is used after its function has returned or its loop has moved on", 2) end
  for i, term in ipairs(self.terms) do
    if term.component == component then
      if term.access == constants.QUERN_ACCESS_NONE then
        refuse("%s: the term of '%s' declares no access to values", self.owner, component.name)
      end
      local is_writable = term.access == constants.QUERN_ACCESS_WRITE
      local address = (is_writable and lib.quern_view_write or lib.quern_view_read)(self.view, i - 1)
      if address == nil then return nil end
      return ffi.cast(is_writable and component.pointer or component.const_pointer, address)
    end
  end
  local names = {}
  for i, term in ipairs(self.terms) do names[i] = "'" .. term.component.name .. "'" end
  refuse("%s: no term names '%s'; the terms name %s", self.owner, is_component(component) and component.name or tostring(component),
    table.concat(names, ", "))
end

local function new_view(view, terms, owner)
  return setmetatable({view = view, terms = terms, owner = owner, count = view.count, entities = view.entities}, View)
end

-- Returns an iterator of the views of a query, for a loop with `for`. source: the query or context that it belongs to.
local function walk(iterator, terms, owner, source)
  local cell, view = ffi.new("quern_query_iterator[1]", iterator), nil
  return function()
    if view then view.view = nil end
    if rawget(source, "handle") == nil then error(owner .. ": it was closed, or its function has returned, during the loop", 2) end
    if not lib.quern_query_next(cell) then
      check(cell[0].result, 2)
      return nil
    end
    view = new_view(cell[0].view, terms, owner)
    view.cell = cell -- the view is a part of it
    return view
  end
end

local Query = {}
Query.__index = Query

function Query:views() return walk(lib.quern_query_iterate(self.handle), self.terms, "a query", self) end
function Query:count() return tonumber(lib.quern_query_count(self.handle)) end

function Query:close()
  lib.quern_query_destroy(self.handle)
  forget(self, "query")
end

------------------------------------------------------------------------------------------------------------ world

local World = {}
World.__index = World

function quern.world()
  local out = ffi.new("quern_world *[1]")
  check(lib.quern_world_create(nil, out))
  return setmetatable({handle = out[0], types = {}, children = {}}, World)
end

-- Destroys the world, and before it the schedules, queries and histories that were made for it. Columns are invalid then.
function World:close()
  for _, child in ipairs(self.children) do
    if rawget(child, "is_running") then refuse("World:close: a frame of the world is running: close the world afterwards") end
  end
  for i = #self.children, 1, -1 do self.children[i]:close() end
  lib.quern_world_destroy(self.handle)
  forget(self, "world")
end

-- Registers a type. A name that is registered again gives the same table, as the library gives the same handle.
local function register(world, name, declarations, definition_type, handle_type, call)
  local definition, keep = ffi.new(definition_type), {name}
  definition.name = name
  local ctype
  if declarations and declarations:match("%S") then
    local is_good
    is_good, ctype = pcall(ffi.typeof, "struct { " .. declarations .. " }")
    if not is_good then refuse("'%s': %s", name, ctype) end
    definition.size_bytes, definition.alignment_bytes = ffi.sizeof(ctype), ffi.alignof(ctype)
    describe(definition, name, ctype, declarations, keep)
  end
  local out = ffi.new(handle_type .. "[1]")
  check(call(world.handle, definition, out), 3)
  local key = handle_type .. " " .. name
  world.types[key] = world.types[key] or {
    handle = ffi.new(handle_type, out[0]), name = name, ctype = ctype, one = ctype and ffi.typeof("$[?]", ctype),
    pointer = ctype and ffi.typeof("$ *", ctype), const_pointer = ctype and ffi.typeof("const $ *", ctype),
  }
  return world.types[key]
end

-- Registers a component: its fields are declared as in C. Without fields it is a tag.
function World:component(name, declarations)
  return setmetatable(register(self, name, declarations, "quern_component_def", "quern_component", lib.quern_component_register), Component)
end

local Resource = {}

-- Registers a resource of zero bytes. Its value is an array with one element.
function World:resource(name, declarations)
  return setmetatable(register(self, name, declarations, "quern_resource_def", "quern_resource", lib.quern_resource_register), Resource)
end

-- Returns the value of a resource between frames, to read and to write.
function World:value(resource)
  local address = lib.quern_resource_get(self.handle, resource.handle)
  if address == nil then error(ffi.string(lib.quern_error_message()), 2) end
  return ffi.cast(resource.pointer, address)
end

-- An event that is called with values of its fields is a value of itself.
local Event = {}
Event.__index = Event

function Event:__call(...)
  if self.ctype == nil then error("'" .. self.name .. "' has no fields", 2) end
  return {event = self, value = self.one(1, {self.ctype(...)})}
end

-- Returns the event of a value such as Hit(1), or of an event alone, and the address of the value.
local function split_event(caller, value)
  local event = type(value) == "table" and (value.event or value)
  if type(event) ~= "table" or getmetatable(event) ~= Event then
    refuse("%s: give an event, or an event that is called with the values of its fields, and not %s", caller, given(value))
  end
  return event, value.value or event.one and event.one(1)
end

-- Registers an event: its fields are declared as in C.
function World:event(name, declarations)
  return setmetatable(register(self, name, declarations, "quern_event_def", "quern_event", lib.quern_event_register), Event)
end

-- Emits events between frames: world:emit(Hit(1), Hit(2)).
function World:emit(...)
  for i = 1, math.max(select("#", ...), 1) do
    local event, address = split_event("World:emit", (select(i, ...)))
    check(lib.quern_world_emit(self.handle, event.handle, address, 1), 2)
  end
end

local function as_relation(name, relation)
  return setmetatable({handle = lib.quern_relation_component(relation), relation = relation, name = name}, Component)
end

-- Registers a relation; options: members of quern_relation_def, such as {levels = true, many = true}. In terms it is a tag:
-- quern.with(Likes) matches entities that like another one.
function World:relation(name, options)
  local definition, out = ffi.new("quern_relation_def"), ffi.new("quern_relation[1]")
  definition.name = name
  for key, value in pairs(options or {}) do definition[key] = value end
  check(lib.quern_relation_register(self.handle, definition, out), 2)
  return as_relation(name, ffi.new("quern_relation", out[0]))
end

-- Returns the built-in relation of the hierarchy.
function World:parent() return as_relation("parent", lib.quern_world_parent(self.handle)) end

function World:relate(source, relation, target)
  check(lib.quern_entity_relate(self.handle, source, relation.relation, target), 2)
end

-- Removes the target of a source, or one of several.
function World:unrelate(source, relation, target)
  if target == nil then
    check(lib.quern_entity_unrelate(self.handle, source, relation.relation), 2)
  else
    check(lib.quern_entity_unrelate_from(self.handle, source, relation.relation, target), 2)
  end
end

-- Raises the error of a call that has returned nothing, if there was one.
local function check_absent()
  local message = ffi.string(lib.quern_error_message())
  if message ~= "" then error(message, 3) end
end

-- Returns the target of a source; nil if it has none.
function World:target(source, relation)
  lib.quern_error_clear()
  local target = lib.quern_entity_target(self.handle, source, relation.relation)
  if target.bits ~= 0 then return target end
  check_absent()
  return nil
end

-- Returns a list of the sources of a target, such as the children of a parent.
function World:sources(target, relation)
  lib.quern_error_clear()
  local count, list = lib.quern_entity_source_count(self.handle, target, relation.relation), {}
  if count == 0 then check_absent() end
  local found = ffi.new("quern_entity[?]", count)
  lib.quern_entity_list_sources(self.handle, target, relation.relation, found, count)
  for i = 1, count do list[i] = ffi.new("quern_entity", found[i - 1]) end
  return list
end

-- Returns the definition of a spawn that overrides values of the root. The values must live as long.
local function spawn_definition(values)
  local definition = ffi.new("quern_spawn_def")
  fill(definition.overrides, values, "spawn: values of the root", function(override, value)
    if type(value) ~= "table" or not is_component(value.component) then refuse("spawn: a value is a component that is called with the values of its fields") end
    override.component, override.column = value.component.handle, value.value
  end)
  return definition
end

-- Captures an entity and everything below it as a prefab, which quern.call.prefab_destroy destroys.
function World:prefab(root)
  local out = ffi.new("quern_prefab[1]")
  check(lib.quern_prefab_capture(self.handle, root, out), 2)
  return ffi.new("quern_prefab", out[0])
end

-- Spawns an instance of a prefab, and returns its root; the values replace those of the root.
function World:spawn(prefab, ...)
  local values, out = {...}, ffi.new("quern_entity[1]")
  local result = lib.quern_prefab_spawn(self.handle, prefab, spawn_definition(values), out)
  values[1] = nil -- lived until here
  check(result, 2)
  return ffi.new("quern_entity", out[0])
end

-- Splits values such as Position(1, 2), or components, into arrays for a call.
local function split(values)
  local components, addresses = ffi.new("quern_component[?]", #values), ffi.new("const void *[?]", #values)
  for i, value in ipairs(values) do
    local component = type(value) == "table" and (value.component or value)
    if not is_component(component) then
      refuse("a value is a component, or a component that is called with the values of its fields, and a %s is neither", type(value))
    end
    components[i - 1], addresses[i - 1] = component.handle, value.value
  end
  return components, addresses
end

function World:create(...)
  local values, out = {...}, ffi.new("quern_entity[1]")
  local components, addresses = split(values)
  check(lib.quern_entity_create_with(self.handle, components, addresses, #values, out), 2)
  return ffi.new("quern_entity", out[0])
end

function World:destroy(entity) check(lib.quern_entity_destroy(self.handle, entity), 2) end
function World:is_alive(entity) return lib.quern_entity_is_alive(self.handle, entity) end
function World:has(entity, component) return lib.quern_entity_has(self.handle, entity, component.handle) end
function World:remove(entity, component) check(lib.quern_entity_remove(self.handle, entity, component.handle), 2) end
function World:hash() return lib.quern_world_hash(self.handle) end

-- Returns a pointer to a value, valid until the next structural change; nil if the entity lacks the component.
function World:get(entity, component)
  lib.quern_error_clear()
  local address = lib.quern_entity_get(self.handle, entity, component.handle)
  if address ~= nil then return ffi.cast(component.pointer, address) end
  local message = ffi.string(lib.quern_error_message())
  if message ~= "" then error(message, 2) end
  return nil
end

function World:set(entity, ...)
  for _, value in ipairs {...} do
    check(lib.quern_entity_set(self.handle, entity, (value.component or value).handle, value.value), 2)
  end
end

function World:query(terms)
  local definition, out = ffi.new("quern_query_def"), ffi.new("quern_query *[1]")
  terms = fill_terms(definition.terms, terms, "a query")
  check(lib.quern_query_create(self.handle, definition, out), 2)
  local query = setmetatable({handle = out[0], terms = terms}, Query)
  self.children[#self.children + 1] = query
  return query
end

-- Returns an archive of the world as a string.
function World:save()
  local buffer = ffi.new("quern_byte_buffer[1]")
  local result = lib.quern_world_save(self.handle, lib.quern_sink_bytes(buffer), nil)
  local bytes = ffi.string(buffer[0].bytes, buffer[0].size_bytes)
  lib.quern_byte_buffer_release(buffer)
  check(result, 2)
  return bytes
end

-- Loads an archive from a string. The world has registered the types of the archive.
function World:load(bytes)
  check(lib.quern_world_load(self.handle, lib.quern_source_bytes(bytes, #bytes), nil, nil), 2)
end

------------------------------------------------------------------------------------------------------------ systems

local Context = {}
Context.__index = Context

function Context:delta_seconds() return lib.quern_context_delta_seconds(self.handle) end
function Context:frame() return tonumber(lib.quern_context_frame_index(self.handle)) end

-- Returns an iterator of the views of a further query of the system, counted from 1.
function Context:query(number)
  local terms = self.system.queries[number or 1]
  if terms == nil then refuse("system '%s' has %d further queries, and no number %d", self.system.name, #self.system.queries, number or 1) end
  return walk(lib.quern_context_query(self.handle, (number or 1) - 1), terms, "system '" .. self.system.name .. "'", self)
end

-- The world, in exclusive systems.
function Context:world()
  if not self.system.is_exclusive then
    refuse("system '%s': only an exclusive system has the world; record commands instead", self.system.name)
  end
  return self.system.world
end

-- Returns the value of a resource that the system declares.
function Context:resource(resource)
  local access = self.system.resources[resource]
  if access == nil then refuse("system '%s' does not declare the resource '%s'", self.system.name, resource.name) end
  if access == constants.QUERN_ACCESS_WRITE then return ffi.cast(resource.pointer, lib.quern_context_resource_write(self.handle, resource.handle)) end
  return ffi.cast(resource.const_pointer, lib.quern_context_resource(self.handle, resource.handle))
end

local function declared(context, event, events, verb)
  if not events[event] then
    refuse("system '%s' does not declare that it %ss the event '%s'", context.system.name, verb, event.name)
  end
end

-- Returns an iterator of the events since the system last ran, which it reads (events = {...}): pointers that are valid until
-- the function returns, or true for an event without fields.
function Context:events(event)
  declared(self, event, self.system.events, "read")
  local iterator, index, count, values = ffi.new("quern_event_iterator[1]"), 0, 0, nil
  lib.quern_context_events(self.handle, event.handle, iterator)
  return function()
    if rawget(self, "handle") == nil then error("the events are read after the function of the system has returned", 2) end
    if index == count then
      if not lib.quern_event_next(iterator) then return nil end
      index, count = 0, iterator[0].block.count
      values = event.const_pointer and ffi.cast(event.const_pointer, iterator[0].block.values)
    end
    index = index + 1
    return values == nil or values + (index - 1)
  end
end

-- Emits events, which the system declares (emits = {...}): context:emit(Hit(1), Hit(2)).
function Context:emit(...)
  for i = 1, math.max(select("#", ...), 1) do
    local event, address = split_event("Context:emit", (select(i, ...)))
    declared(self, event, self.system.emits, "emit")
    if not lib.quern_context_emit(self.handle, event.handle, address, 1) then error(ffi.string(lib.quern_error_message()), 2) end
  end
end

-- Commands: changes that the next sync point makes.
function Context:relate(source, relation, target)
  check(lib.quern_commands_relate(lib.quern_context_commands(self.handle), source, relation.relation, target), 2)
end

function Context:unrelate(source, relation, target)
  local commands = lib.quern_context_commands(self.handle)
  if target == nil then
    check(lib.quern_commands_unrelate(commands, source, relation.relation), 2)
  else
    check(lib.quern_commands_unrelate_from(commands, source, relation.relation, target), 2)
  end
end

function Context:spawn(prefab, ...)
  local values, out = {...}, ffi.new("quern_entity[1]")
  local result = lib.quern_commands_spawn(lib.quern_context_commands(self.handle), prefab, spawn_definition(values), out)
  values[1] = nil -- lived until here
  check(result, 2)
  return ffi.new("quern_entity", out[0])
end

function Context:create(...)
  local values = {...}
  local components, addresses = split(values)
  local out = ffi.new("quern_entity[1]")
  check(lib.quern_commands_create_with(lib.quern_context_commands(self.handle), components, addresses, #values, out), 2)
  return ffi.new("quern_entity", out[0])
end

function Context:destroy(entity) check(lib.quern_commands_destroy(lib.quern_context_commands(self.handle), entity), 2) end

function Context:set(entity, ...)
  for _, value in ipairs {...} do
    check(lib.quern_commands_set(lib.quern_context_commands(self.handle), entity, (value.component or value).handle, value.value), 2)
  end
end

function Context:remove(entity, component)
  check(lib.quern_commands_remove(lib.quern_context_commands(self.handle), entity, component.handle), 2)
end

local Schedule = {}
Schedule.__index = Schedule

-- Creates a schedule; phases: a list of names, or nil for one phase.
function quern.schedule(world, phases)
  local definition, out = ffi.new("quern_schedule_def"), ffi.new("quern_schedule *[1]")
  fill(definition.phases, phases or {}, "quern.schedule: phases")
  check(lib.quern_schedule_create(world.handle, definition, out), 2)
  local schedule = setmetatable({handle = out[0], world = world, phases = phases or {"update"}, systems = {}}, Schedule)
  world.children[#world.children + 1] = schedule
  return schedule
end

-- Adds a system: run(context, view), or run(context) without terms. options: phase, queries (lists of terms), resources (a list
-- of resources to read, or {resource, true} to write), events and emits (lists of events that it reads and emits), exclusive,
-- before, after (lists of names), and members of quern_system_def.
function Schedule:system(name, terms, run, options)
  local definition, system = ffi.new("quern_system_def"), {name = name, world = self.world, queries = {}, resources = {}, events = {}, emits = {}}
  local schedule, rest = self, {}
  for key, value in pairs(options or {}) do rest[key] = value end
  definition.name = name
  local owner = "system '" .. name .. "'"
  system.terms = fill_terms(definition.terms, terms, owner)
  system.is_exclusive, rest.exclusive = rest.exclusive or false, nil
  definition.flags = system.is_exclusive and constants.QUERN_SYSTEM_EXCLUSIVE or constants.QUERN_SYSTEM_MAIN_THREAD
  local function fill_from(key, member, store)
    fill(definition[member or key], rest[key] or {}, owner .. ": " .. key, store)
  end
  fill_from("queries", nil, function(target, query) system.queries[#system.queries + 1] = fill_terms(target.terms, query, owner .. ": a query") end)
  fill_from("resources", nil, function(target, item)
    local is_pair = type(item) == "table" and getmetatable(item) == nil
    local resource, writes = is_pair and item[1] or item, is_pair and item[2]
    if getmetatable(resource) ~= Resource then refuse("%s: resources: %s is no resource: list what world:resource returns", owner, given(resource)) end
    local access = writes and constants.QUERN_ACCESS_WRITE or constants.QUERN_ACCESS_READ
    system.resources[resource] = access
    target.resource, target.access = resource.handle, access
  end)
  for key, member in pairs {events = "reads_events", emits = "emits"} do
    fill_from(key, member, function(target, event)
      if getmetatable(event) ~= Event then refuse("%s: %s: %s is no event: list what world:event returns", owner, key, given(event)) end
      target.bits = event.handle.bits
      system[key][event] = true
    end)
    rest[key] = nil
  end
  for i, phase in ipairs(self.phases) do
    if phase == rest.phase then definition.phase = i - 1 elseif i == #self.phases and rest.phase and definition.phase == 0 and self.phases[1] ~= rest.phase then
      refuse("system '%s': the schedule has no phase '%s'; it has %s", name, rest.phase, table.concat(self.phases, ", "))
    end
  end
  for _, key in ipairs {"before", "after"} do
    fill_from(key)
    rest[key] = nil
  end
  rest.queries, rest.resources, rest.phase = nil, nil, nil
  for key, value in pairs(rest) do definition[key] = value end
  local has_terms = #system.terms > 0
  local function guarded(context, view)
    if schedule.failure ~= nil then return end -- the rest of a frame that has failed does nothing
    local shown = has_terms and new_view(view[0], system.terms, owner) or nil
    local used = setmetatable({handle = context, system = system}, Context)
    local is_good, message = xpcall(run, function(message)
      return type(message) == "string" and debug.traceback(owner .. ": " .. message, 2) or message
    end, used, shown)
    forget(used, "context", "its function has returned")
    if shown then shown.view = nil end
    if not is_good then schedule.failure = message == nil and owner .. " has failed" or message end
  end
  system.callback = ffi.cast("quern_view_callback *", guarded) -- lives until the schedule frees it
  definition.run = system.callback
  local result = lib.quern_schedule_add_system(self.handle, definition, nil)
  if result ~= 0 then system.callback:free() end
  check(result, 2)
  self.systems[#self.systems + 1] = system
end

-- Runs a frame. An error in a system skips the rest of the frame's Lua, and is raised here.
function Schedule:run(delta_seconds, jobs)
  if self.is_running then refuse("Schedule:run: this schedule is running a frame; call it between frames") end
  self.failure, self.is_running = nil, true
  local result = lib.quern_schedule_run(self.handle, jobs, delta_seconds)
  self.is_running = nil
  local failure = self.failure
  if failure ~= nil then
    self.failure = nil
    error(failure, 0)
  end
  check(result, 2)
end
jit.off(Schedule.run, true) -- a call that the compiler has translated must not call back into Lua

function Schedule:close()
  if self.is_running then refuse("Schedule:close: this schedule is running a frame; close it afterwards") end
  lib.quern_schedule_destroy(self.handle)
  for _, system in ipairs(self.systems) do system.callback:free() end
  forget(self, "schedule")
end

local History = {}
History.__index = History

-- Creates a history of a world and schedules; frames: how many it keeps.
function quern.history(world, schedules, frames)
  local definition, out = ffi.new("quern_history_def"), ffi.new("quern_history *[1]")
  definition.frame_count = frames or 16
  local handles = {}
  for i, schedule in ipairs(schedules or {}) do handles[i] = schedule.handle end
  fill(definition.schedules, handles, "quern.history: schedules")
  check(lib.quern_history_create(world.handle, definition, out), 2)
  local history = setmetatable({handle = out[0]}, History)
  world.children[#world.children + 1] = history
  return history
end

function History:save(frame, jobs) check(lib.quern_history_save(self.handle, frame, jobs), 2) end
function History:restore(frame, jobs) check(lib.quern_history_restore(self.handle, frame, jobs), 2) end

function History:close()
  lib.quern_history_destroy(self.handle)
  forget(self, "history")
end

-- Creates a pool of threads for systems that are written in C; threads: 0 for one per processor. Close it by
-- quern.lib.quern_jobs_destroy.
function quern.jobs(threads)
  local definition, out = ffi.new("quern_jobs_def"), ffi.new("quern_jobs *[1]")
  definition.thread_count = threads or 0
  check(lib.quern_jobs_create(definition, out), 2)
  return out[0]
end

return quern
