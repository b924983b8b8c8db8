// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The Quern authors

// Quern for JavaScript: columns are typed arrays over the memory of the WebAssembly module, without copies. quern.d.mts
// describes each call.

import {constants, structs} from "./api.mjs";
import createQuern from "./module.cjs";

export {constants, structs};

const module = await createQuern();

/** The functions of the headers, with a _ before their names. */
export const lib = module;

/** A call of Quern that failed. */
export class QuernError extends Error {
  constructor(message, result = "QUERN_ERROR_INVALID_ARGUMENT") {
    super(message);
    this.name = "QuernError";
    this.result = result;
  }
}

const lastMessage = () => module.UTF8ToString(module._quern_error_message());

export function check(result) {
  if (result !== 0) throw new QuernError(lastMessage(), module.UTF8ToString(module._quern_result_string(result)));
}

// ---------------------------------------------------------------------------------------------------------- memory

// The views of the memory change when it grows, so each access asks for them.
const READERS = {
  i8: [Int8Array, 1], u8: [Uint8Array, 1], i16: [Int16Array, 2], u16: [Uint16Array, 2], i32: [Int32Array, 4], u32: [Uint32Array, 4],
  i64: [BigInt64Array, 8], u64: [BigUint64Array, 8], f32: [Float32Array, 4], f64: [Float64Array, 8], pointer: [Uint32Array, 4],
};

const arrayAt = (type, address, count) => new READERS[type][0](module.HEAPU8.buffer, address, count);

/** Memory that lives until release(): structs, arrays and texts for one call. */
class Arena {
  blocks = [];

  allocate(bytes) {
    const address = module._malloc(Math.max(bytes, 1));
    if (address === 0) throw new QuernError("the memory of the module is exhausted", "QUERN_ERROR_OUT_OF_MEMORY");
    module.HEAPU8.fill(0, address, address + bytes);
    this.blocks.push(address);
    return address;
  }

  text(value) {
    const bytes = module.lengthBytesUTF8(value) + 1;
    const address = this.allocate(bytes);
    module.stringToUTF8(value, address, bytes);
    return address;
  }

  struct(name, members = {}) {
    const address = this.allocate(structs[name].size);
    for (const [key, value] of Object.entries(members)) setMember(name, address, key, value);
    return address;
  }

  release() {
    for (const address of this.blocks) module._free(address);
    this.blocks = [];
  }
}

function memberOf(struct, name) {
  const member = structs[struct].fields[name];
  if (member === undefined) throw new QuernError(`${struct} has no member '${name}'`);
  return member;
}

/** The address of a member of a struct, or of an element of an array in it. */
export function addressOf(struct, address, name, index = 0) {
  const [offset, type] = memberOf(struct, name);
  return address + offset + index * (READERS[type]?.[1] ?? structs[type].size);
}

export function setMember(struct, address, name, value, index = 0) {
  const type = memberOf(struct, name)[1];
  arrayAt(type, addressOf(struct, address, name, index), 1)[0] = type.endsWith("64") && type[0] !== "f" ? BigInt(value) : Number(value);
}

export function getMember(struct, address, name, index = 0) {
  return arrayAt(memberOf(struct, name)[1], addressOf(struct, address, name, index), 1)[0];
}

function withArena(use) {
  const arena = new Arena();
  try {
    return use(arena);
  } finally {
    arena.release();
  }
}

/** What a caller gave, for messages. */
function given(value) {
  if (value instanceof Type) return `'${value.name}'`;
  if (typeof value === "string") return `"${value}"`;
  return typeof value === "object" && value !== null ? "an object" : String(value);
}

function requireArray(items, what) {
  if (!Array.isArray(items)) throw new QuernError(`${what}: give an array, and not ${given(items)}`);
}

/** Refuses options that a call does not have. unknown: those that it has not named. */
function refuseOptions(unknown, what) {
  for (const name of Object.keys(unknown)) throw new QuernError(`${what}: there is no option '${name}'`);
}

/** Calls store with the address of each element of an array of a definition, which ends at its first zero. Nothing else checks
 * its bounds. */
function fill(struct, definition, name, items, what, store) {
  requireArray(items, what);
  const limit = memberOf(struct, name)[2];
  if (items.length > limit) throw new QuernError(`${what}: ${items.length} are given, and the limit is ${limit}`, "QUERN_ERROR_LIMIT");
  items.forEach((item, index) => store(item, addressOf(struct, definition, name, index), index));
}

const storeWord = (value, address) => {
  arrayAt("u32", address, 1)[0] = value;
};

/** Calls a function that stores an id or an address, and returns what it stored. */
const stored = (call, type = "u64") => withArena((arena) => {
  const out = arena.allocate(8);
  check(call(out, arena));
  return arrayAt(type, out, 1)[0];
});

// ----------------------------------------------------------------------------------------------------------- types

const FIELD_TYPES = {bool: "BOOL", i8: "I8", u8: "U8", i16: "I16", u16: "U16", i32: "I32", u32: "U32", i64: "I64", u64: "U64", f32: "F32", f64: "F64", entity: "ENTITY"};
const readerOf = (type) => (type === "bool" ? "u8" : type === "entity" ? "u64" : type);

/** Lays out fields as C does. */
function layOut(owner, fields) {
  const members = [];
  let size = 0, alignment = 1;
  for (const [name, type] of Object.entries(fields)) {
    if (FIELD_TYPES[type] === undefined)
      throw new QuernError(`'${name}' of '${owner}' has the type '${type}'; a field is one of ${Object.keys(FIELD_TYPES).join(", ")}`);
    const bytes = READERS[readerOf(type)][1];
    size = Math.ceil(size / bytes) * bytes;
    members.push({name, type, offset: size, bytes});
    size += bytes;
    alignment = Math.max(alignment, bytes);
  }
  return {members, alignment, size: Math.ceil(size / alignment) * alignment};
}

class Type {
  constructor(world, name, fields) {
    Object.assign(this, {world, name, layout: layOut(name, fields)});
  }

  describe(arena, struct) {
    const definition = arena.struct(struct, {name: arena.text(this.name), size_bytes: this.layout.size, alignment_bytes: this.layout.alignment});
    this.layout.members.forEach(({name, type, offset}, index) => {
      if (index >= constants.QUERN_MAX_FIELDS) throw new QuernError(`'${this.name}' has more than ${index} fields`);
      const field = addressOf(struct, definition, "fields", index);
      for (const [key, value] of Object.entries({name: arena.text(name), type: constants[`QUERN_FIELD_${FIELD_TYPES[type]}`], offset_bytes: offset, count: 1}))
        setMember("quern_field", field, key, value);
    });
    return definition;
  }

  /** Writes a value: fields by name, those that are missing are zero. */
  store(address, value) {
    if (typeof value !== "object" || value === null) throw new QuernError(`'${this.name}': give the fields of a value by name, in an object, and not ${given(value)}`);
    for (const key of Object.keys(value))
      if (!this.layout.members.some(({name}) => name === key))
        throw new QuernError(`'${this.name}' has no field '${key}'; it has ${this.layout.members.map(({name}) => name).join(", ")}`);
    for (const {name, type, offset} of this.layout.members)
      if (value[name] !== undefined) arrayAt(readerOf(type), address + offset, 1)[0] = readerOf(type).endsWith("64") && type !== "f64" ? BigInt(value[name]) : value[name];
  }

  load(address) {
    return Object.fromEntries(this.layout.members.map(({name, type, offset}) => [name, arrayAt(readerOf(type), address + offset, 1)[0]]));
  }

  /** Returns the typed arrays of `count` values: one by field, `stride` elements from one row to the next. */
  columns(address, count) {
    const columns = {};
    for (const {name, type, offset, bytes} of this.layout.members) {
      columns[name] = arrayAt(readerOf(type), address + offset, count === 0 ? 0 : ((count - 1) * this.layout.size) / bytes + 1);
      columns[name].stride = this.layout.size / bytes;
    }
    return columns;
  }
}

export class Component extends Type {
  constructor(world, name, fields, handle) {
    super(world, name, fields);
    this.handle = handle ?? stored((out, arena) => module._quern_component_register(world.handle, this.describe(arena, "quern_component_def"), out), "u32");
  }

  /** A value of the component, for World.create and World.set. */
  with(value) {
    return {component: this, value};
  }
}

export class Resource extends Type {
  constructor(world, name, fields) {
    super(world, name, fields);
    this.handle = stored((out, arena) => module._quern_resource_register(world.handle, this.describe(arena, "quern_resource_def"), out), "u32");
  }

  get value() {
    const address = module._quern_resource_get(this.world.handle, this.handle);
    if (address === 0) throw new QuernError(lastMessage());
    return this.load(address);
  }

  set value(value) {
    const address = module._quern_resource_get(this.world.handle, this.handle);
    if (address === 0) throw new QuernError(lastMessage());
    this.store(address, value);
  }
}

/** A relation. In terms it is a tag: having(likes) matches entities that like another one. */
export class Relation extends Component {
  constructor(world, name, relation) {
    super(world, name, {}, module._quern_relation_component(relation));
    this.relation = relation;
  }
}

export class Event extends Type {
  constructor(world, name, fields) {
    super(world, name, fields);
    this.handle = stored((out, arena) => module._quern_event_register(world.handle, this.describe(arena, "quern_event_def"), out), "u32");
  }

  /** A value of the event, for emit. */
  with(value) {
    return {event: this, value};
  }
}

/** Calls emit(event, address) for each value of an event. */
function emitEach(arena, values, caller, emit) {
  if (values.length === 0) throw new QuernError(`${caller}: give at least one event`);
  for (const item of values) {
    const {event, value} = item instanceof Event ? {event: item, value: {}} : item ?? {};
    if (!(event instanceof Event)) throw new QuernError(`${caller}: give an event, or event.with({...}), and not ${given(item)}`);
    const address = arena.allocate(event.layout.size);
    event.store(address, value);
    emit(event, address);
  }
}

/** A captured tree, which World.spawn makes instances of. */
export class Prefab {
  constructor(world, handle) {
    Object.assign(this, {world, handle});
  }

  /** Destroys the prefab. Its instances stay. */
  close() {
    check(module._quern_prefab_destroy(this.world.handle, this.handle));
  }
}

/** Returns the handle of a relation. */
function relationOf(relation, caller) {
  if (!(relation instanceof Relation)) throw new QuernError(`${caller}: ${given(relation)} is no relation: give what world.relation returns, or world.parent`);
  return relation.relation;
}

/** Returns the handle of a prefab. */
function prefabOf(prefab) {
  if (!(prefab instanceof Prefab)) throw new QuernError(`spawn: ${given(prefab)} is no prefab: give what world.prefab returns`);
  return prefab.handle;
}

/** Stores the definition of a spawn that overrides values of the root. */
function storeSpawn(arena, values) {
  const definition = arena.struct("quern_spawn_def");
  fill("quern_spawn_def", definition, "overrides", values, "spawn: values of the root", (item, address) => {
    const {component, value} = item ?? {};
    if (!(component instanceof Component)) throw new QuernError(`spawn: a value is component.with({...}), and ${given(item)} is none`);
    const column = arena.allocate(component.layout.size);
    component.store(column, value);
    setMember("quern_spawn_override", address, "component", component.handle);
    setMember("quern_spawn_override", address, "column", column);
  });
  return definition;
}

const term = (component, match, access) => {
  if (!(component instanceof Component)) throw new QuernError("a term needs a component");
  return {component, match: constants[`QUERN_MATCH_${match}`], access: component.layout.size === 0 ? 0 : constants[`QUERN_ACCESS_${access}`]};
};
export const read = (component) => term(component, "ALL", "READ");
export const write = (component) => (component instanceof Resource ? {resource: component, access: constants.QUERN_ACCESS_WRITE} : term(component, "ALL", "WRITE"));
export const having = (component) => term(component, "ALL", "NONE");
export const without = (component) => term(component, "NONE", "NONE");
export const optional = (component) => term(component, "OPTIONAL", "READ");

function storeTerms(struct, definition, items, owner) {
  requireArray(items, `${owner}: terms`);
  if (items.length > constants.QUERN_MAX_TERMS)
    throw new QuernError(`${owner} has ${items.length} terms; the limit is ${constants.QUERN_MAX_TERMS}`, "QUERN_ERROR_LIMIT");
  return items.map((item, index) => {
    const made = item instanceof Component ? read(item) : item;
    if (made?.component === undefined) throw new QuernError(`${owner}: term ${index} is neither a component nor a term`);
    const address = addressOf(struct, definition, "terms", index);
    setMember("quern_term", address, "component", made.component.handle);
    setMember("quern_term", address, "match", made.match);
    setMember("quern_term", address, "access", made.access);
    return made;
  });
}

// ----------------------------------------------------------------------------------------------------------- views

class View {
  constructor(address, terms, owner) {
    Object.assign(this, {address, terms, owner, count: getMember("quern_view", address, "count")});
  }

  require() {
    if (this.address === 0) throw new QuernError(`${this.owner}: the view is used after its function has returned or its loop has moved on`);
    return this.address;
  }

  get entities() {
    return arrayAt("u64", getMember("quern_view", this.require(), "entities"), this.count);
  }

  columns(component) {
    const index = this.terms.findIndex((one) => one.component === component);
    if (index < 0)
      throw new QuernError(`${this.owner}: no term names '${component?.name}'; the terms name ${this.terms.map((one) => `'${one.component.name}'`).join(", ")}`,
                           "QUERN_ERROR_UNDECLARED_ACCESS");
    const {access} = this.terms[index];
    if (access === constants.QUERN_ACCESS_NONE) throw new QuernError(`${this.owner}: the term of '${component.name}' declares no access to values`, "QUERN_ERROR_UNDECLARED_ACCESS");
    const address = (access === constants.QUERN_ACCESS_WRITE ? module._quern_view_write : module._quern_view_read)(this.require(), index);
    return address === 0 ? null : component.columns(address, this.count);
  }
}

/** source: the query or context that the iteration belongs to. */
function* walk(start, terms, owner, source) {
  const arena = new Arena();
  const iterator = arena.struct("quern_query_iterator");
  let view = null;
  try {
    start(iterator);
    while (source.require() && module._quern_query_next(iterator)) {
      if (view !== null) view.address = 0;
      view = new View(addressOf("quern_query_iterator", iterator, "view"), terms, owner);
      yield view;
    }
    check(getMember("quern_query_iterator", iterator, "result"));
  } finally {
    if (view !== null) view.address = 0;
    if (source.isOpen) module._quern_query_iterator_end(iterator);
    arena.release();
  }
}

export class Query {
  constructor(world, terms) {
    this.world = world;
    this.handle = stored((out, arena) => {
      const definition = arena.struct("quern_query_def");
      this.terms = storeTerms("quern_query_def", definition, terms, "a query");
      return module._quern_query_create(world.handle, definition, out);
    }, "pointer");
    world.children.push(this);
  }

  get isOpen() {
    return this.handle !== 0;
  }

  require() {
    if (!this.isOpen) throw new QuernError("the query is used after it was closed");
    return this.handle;
  }

  [Symbol.iterator]() {
    return walk((iterator) => module._quern_query_iterate(iterator, this.require()), this.terms, "a query", this);
  }

  get count() {
    return Number(module._quern_query_count(this.require()));
  }

  close() {
    module._quern_query_destroy(this.handle);
    this.handle = 0;
  }
}

// ----------------------------------------------------------------------------------------------------------- world

function storeValues(arena, values) {
  const components = arena.allocate(4 * values.length), addresses = arena.allocate(4 * values.length);
  values.forEach((item, index) => {
    const {component, value} = item instanceof Component ? {component: item, value: null} : item ?? {};
    if (!(component instanceof Component)) throw new QuernError(`a value is a component, or component.with({...}), and ${given(item)} is neither`);
    arrayAt("u32", components, values.length)[index] = component.handle;
    if (value === null) return;
    const address = arena.allocate(component.layout.size);
    component.store(address, value);
    arrayAt("u32", addresses, values.length)[index] = address;
  });
  return [components, addresses];
}

export class World {
  children = [];
  #types = new Map();
  #handle = stored((out) => module._quern_world_create(0, out), "pointer");

  get handle() {
    if (this.#handle === 0) throw new QuernError("the world is used after it was closed");
    return this.#handle;
  }

  close() {
    if (this.#handle === 0) return;
    if (this.children.some(({isRunning}) => isRunning))
      throw new QuernError("World.close: a frame of the world is running: close the world afterwards", "QUERN_ERROR_WORLD_LOCKED");
    for (const child of this.children.reverse()) if (child.handle !== 0) child.close();
    module._quern_world_destroy(this.#handle);
    this.#handle = 0;
  }

  // Registers a type. A name that is registered again gives the same object, as the library gives the same handle.
  #register(Kind, name, fields) {
    const made = new Kind(this, name, fields), types = this.#types.get(Kind) ?? new Map();
    this.#types.set(Kind, types);
    if (!types.has(name)) types.set(name, made);
    return types.get(name);
  }

  component(name, fields = {}) {
    return this.#register(Component, name, fields);
  }

  resource(name, fields) {
    return this.#register(Resource, name, fields);
  }

  query(...terms) {
    return new Query(this, terms);
  }

  event(name, fields = {}) {
    return this.#register(Event, name, fields);
  }

  emit(...values) {
    withArena((arena) => emitEach(arena, values, "World.emit", (event, address) => check(module._quern_world_emit(this.handle, event.handle, address, 1))));
  }

  relation(name, {levels = false, ordered = false, many = false, ...unknown} = {}) {
    refuseOptions(unknown, "World.relation");
    const relation = stored((out, arena) =>
      module._quern_relation_register(this.handle, arena.struct("quern_relation_def", {name: arena.text(name), levels, ordered, many}), out), "u32");
    return new Relation(this, name, relation);
  }

  get parent() {
    return new Relation(this, "parent", module._quern_world_parent(this.handle));
  }

  relate(source, relation, target) {
    check(module._quern_entity_relate(this.handle, source, relationOf(relation, "World.relate"), target));
  }

  unrelate(source, relation, target = null) {
    check(target === null ? module._quern_entity_unrelate(this.handle, source, relationOf(relation, "World.unrelate"))
                          : module._quern_entity_unrelate_from(this.handle, source, relationOf(relation, "World.unrelate"), target));
  }

  target(source, relation) {
    module._quern_error_clear();
    const target = BigInt.asUintN(64, module._quern_entity_target(this.handle, source, relationOf(relation, "World.target")));
    if (target === 0n && lastMessage() !== "") throw new QuernError(lastMessage());
    return target === 0n ? null : target;
  }

  sources(target, relation) {
    module._quern_error_clear();
    const count = module._quern_entity_source_count(this.handle, target, relationOf(relation, "World.sources"));
    if (count === 0 && lastMessage() !== "") throw new QuernError(lastMessage());
    return withArena((arena) => {
      const found = arena.allocate(8 * count);
      module._quern_entity_list_sources(this.handle, target, relation.relation, found, count);
      return [...arrayAt("u64", found, count)];
    });
  }

  prefab(root) {
    return new Prefab(this, stored((out) => module._quern_prefab_capture(this.handle, root, out)));
  }

  spawn(prefab, ...values) {
    return stored((out, arena) => module._quern_prefab_spawn(this.handle, prefabOf(prefab), storeSpawn(arena, values), out));
  }

  create(...values) {
    return stored((out, arena) => module._quern_entity_create_with(this.handle, ...storeValues(arena, values), values.length, out));
  }

  destroy(entity) {
    check(module._quern_entity_destroy(this.handle, entity));
  }

  isAlive(entity) {
    return Boolean(module._quern_entity_is_alive(this.handle, entity));
  }

  has(entity, component) {
    return Boolean(module._quern_entity_has(this.handle, entity, component.handle));
  }

  get(entity, component) {
    module._quern_error_clear();
    const address = module._quern_entity_get(this.handle, entity, component.handle);
    if (address !== 0) return component.load(address);
    if (lastMessage() !== "") throw new QuernError(lastMessage());
    return null;
  }

  set(entity, ...values) {
    withArena((arena) => {
      for (const {component, value} of values) {
        const address = arena.allocate(component.layout.size);
        component.store(address, value);
        check(module._quern_entity_set(this.handle, entity, component.handle, address));
      }
    });
  }

  remove(entity, component) {
    check(module._quern_entity_remove(this.handle, entity, component.handle));
  }

  hash() {
    return BigInt.asUintN(64, module._quern_world_hash(this.handle));
  }

  save() {
    return withArena((arena) => {
      const buffer = arena.struct("quern_byte_buffer"), sink = arena.struct("quern_sink");
      module._quern_sink_bytes(sink, buffer);
      try {
        check(module._quern_world_save(this.handle, sink, 0));
        return arrayAt("u8", getMember("quern_byte_buffer", buffer, "bytes"), getMember("quern_byte_buffer", buffer, "size_bytes")).slice();
      } finally {
        module._quern_byte_buffer_release(buffer);
      }
    });
  }

  load(archive) {
    withArena((arena) => {
      const bytes = arena.allocate(archive.length), source = arena.struct("quern_source");
      module.HEAPU8.set(archive, bytes);
      module._quern_source_bytes(source, bytes, archive.length);
      check(module._quern_world_load(this.handle, source, 0, 0));
    });
  }
}

// --------------------------------------------------------------------------------------------------------- systems

class Context {
  constructor(address, system) {
    Object.assign(this, {address, system});
  }

  get isOpen() {
    return this.address !== 0;
  }

  require() {
    if (!this.isOpen) throw new QuernError(`system '${this.system.name}': the context is used after the function has returned`);
    return this.address;
  }

  get deltaSeconds() {
    return module._quern_context_delta_seconds(this.require());
  }

  get frame() {
    return Number(module._quern_context_frame_index(this.require()));
  }

  get world() {
    if (!this.system.isExclusive) throw new QuernError(`system '${this.system.name}': only an exclusive system has the world; record commands instead`, "QUERN_ERROR_UNDECLARED_ACCESS");
    return this.system.world;
  }

  query(index = 0) {
    const terms = this.system.queries[index];
    if (terms === undefined) throw new QuernError(`system '${this.system.name}' has ${this.system.queries.length} further queries, and no number ${index}`);
    return walk((iterator) => module._quern_context_query(iterator, this.require(), index), terms, `system '${this.system.name}'`, this);
  }

  resource(resource) {
    if (!this.system.resources.has(resource)) throw new QuernError(`system '${this.system.name}' does not declare the resource '${resource.name}'`, "QUERN_ERROR_UNDECLARED_ACCESS");
    return resource.load(module._quern_context_resource(this.require(), resource.handle));
  }

  setResource(resource, value) {
    if (this.system.resources.get(resource) !== constants.QUERN_ACCESS_WRITE)
      throw new QuernError(`system '${this.system.name}' does not declare that it writes the resource '${resource.name}'`, "QUERN_ERROR_UNDECLARED_ACCESS");
    resource.store(module._quern_context_resource_write(this.require(), resource.handle), value);
  }

  *events(event) {
    this.requireEvent(event, "events", "read");
    const arena = new Arena();
    try {
      const iterator = arena.struct("quern_event_iterator");
      module._quern_context_events(this.require(), event.handle, iterator);
      while (this.require() && module._quern_event_next(iterator)) {
        const block = addressOf("quern_event_iterator", iterator, "block");
        const count = getMember("quern_event_block", block, "count"), values = getMember("quern_event_block", block, "values");
        for (let i = 0; i < count && this.require(); i++) yield event.load(values + i * event.layout.size);
      }
    } finally {
      arena.release();
    }
  }

  emit(...values) {
    withArena((arena) => emitEach(arena, values, `system '${this.system.name}'`, (event, address) => {
      this.requireEvent(event, "emits", "emit");
      if (!module._quern_context_emit(this.require(), event.handle, address, 1)) throw new QuernError(lastMessage());
    }));
  }

  requireEvent(event, list, verb) {
    if (!this.system[list].includes(event))
      throw new QuernError(`system '${this.system.name}' does not declare that it ${verb}s the event '${event.name}'`, "QUERN_ERROR_UNDECLARED_ACCESS");
  }

  relate(source, relation, target) {
    check(module._quern_commands_relate(module._quern_context_commands(this.require()), source, relationOf(relation, "Context.relate"), target));
  }

  unrelate(source, relation, target = null) {
    const commands = module._quern_context_commands(this.require());
    check(target === null ? module._quern_commands_unrelate(commands, source, relationOf(relation, "Context.unrelate"))
                          : module._quern_commands_unrelate_from(commands, source, relationOf(relation, "Context.unrelate"), target));
  }

  spawn(prefab, ...values) {
    return stored((out, arena) => module._quern_commands_spawn(module._quern_context_commands(this.require()), prefabOf(prefab), storeSpawn(arena, values), out));
  }

  create(...values) {
    return stored((out, arena) => module._quern_commands_create_with(module._quern_context_commands(this.require()), ...storeValues(arena, values), values.length, out));
  }

  destroy(entity) {
    check(module._quern_commands_destroy(module._quern_context_commands(this.require()), entity));
  }
}

export class Schedule {
  #failure = null;
  #systems = [];
  isRunning = false;

  constructor(world, phases = []) {
    this.world = world;
    this.phases = phases.length > 0 ? phases : ["update"];
    this.handle = stored((out, arena) => {
      const definition = arena.struct("quern_schedule_def");
      fill("quern_schedule_def", definition, "phases", phases, "Schedule: phases", (phase, address) => storeWord(arena.text(phase), address));
      return module._quern_schedule_create(world.handle, definition, out);
    }, "pointer");
    world.children.push(this);
  }

  add(name, terms, run, {phase = this.phases[0], queries = [], resources = [], events = [], emits = [], before = [], after = [], exclusive = false, ...unknown} = {}) {
    refuseOptions(unknown, `system '${name}'`);
    if (!this.phases.includes(phase)) throw new QuernError(`system '${name}': the schedule has no phase '${phase}'; it has ${this.phases.join(", ")}`);
    const system = {name, world: this.world, isExclusive: exclusive, resources: new Map(), events, emits, callback: 0};
    const owner = `system '${name}'`;
    withArena((arena) => {
      const struct = "quern_system_def";
      const definition = arena.struct(struct, {name: arena.text(name), phase: this.phases.indexOf(phase), flags: constants[exclusive ? "QUERN_SYSTEM_EXCLUSIVE" : "QUERN_SYSTEM_MAIN_THREAD"]});
      system.terms = storeTerms(struct, definition, terms, owner);
      const fillFrom = (name, items, what, store) => fill(struct, definition, name, items, `${owner}: ${what}`, store);
      system.queries = [];
      fillFrom("queries", queries, "queries", (query, address) => system.queries.push(storeTerms("quern_query_def", address, query, owner)));
      for (const [key, list, what] of [["reads_events", events, "events"], ["emits", emits, "emits"]])
        fillFrom(key, list, what, (event, address) => {
          if (!(event instanceof Event)) throw new QuernError(`${owner}: ${what}: ${given(event)} is no event: list what world.event returns`);
          storeWord(event.handle, address);
        });
      fillFrom("resources", resources, "resources", (item, address) => {
        const {resource, access} = item instanceof Resource ? {resource: item, access: constants.QUERN_ACCESS_READ} : item ?? {};
        if (!(resource instanceof Resource)) throw new QuernError(`${owner}: resources: ${given(item)} is no resource: list what world.resource returns`);
        system.resources.set(resource, access);
        setMember("quern_resource_access", address, "resource", resource.handle);
        setMember("quern_resource_access", address, "access", access);
      });
      for (const [key, names] of Object.entries({before, after}))
        fillFrom(key, names, key, (other, address) => storeWord(arena.text(other), address));
      system.callback = module.addFunction((context, view) => this.#call(system, run, context, view), "vii");
      setMember(struct, definition, "run", system.callback);
      const result = module._quern_schedule_add_system(this.handle, definition, 0);
      if (result !== 0) module.removeFunction(system.callback);
      check(result);
    });
    this.#systems.push(system);
  }

  // An exception must not pass the frames of the library: it is kept, and thrown when the frame has ended.
  #call(system, run, context, view) {
    if (this.#failure !== null) return;
    const shown = system.terms.length > 0 ? new View(view, system.terms, `system '${system.name}'`) : null;
    const used = new Context(context, system);
    try {
      run(used, shown);
    } catch (error) {
      this.#failure = {error};
    } finally {
      if (shown !== null) shown.address = 0;
      used.address = 0;
    }
  }

  run(deltaSeconds) {
    if (this.handle === 0) throw new QuernError("the schedule is used after it was closed");
    if (this.isRunning) throw new QuernError("Schedule.run: this schedule is running a frame: call it between frames", "QUERN_ERROR_WORLD_LOCKED");
    this.#failure = null;
    this.isRunning = true;
    let result;
    try {
      result = module._quern_schedule_run(this.handle, 0, deltaSeconds);
    } finally {
      this.isRunning = false;
    }
    if (this.#failure !== null) {
      const {error} = this.#failure;
      this.#failure = null;
      throw error;
    }
    check(result);
  }

  close() {
    if (this.isRunning) throw new QuernError("Schedule.close: this schedule is running a frame: close it afterwards", "QUERN_ERROR_WORLD_LOCKED");
    module._quern_schedule_destroy(this.handle);
    this.handle = 0;
    for (const {callback} of this.#systems) module.removeFunction(callback);
    this.#systems = [];
  }
}
