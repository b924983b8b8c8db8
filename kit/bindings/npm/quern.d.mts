// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The Quern authors

import {Calls, Pointer, constants, structs} from "./api.mjs";

export {constants, structs};

/** The functions of the headers, with a _ before their names, and the memory of the module. */
export declare const lib: Calls & {
  HEAPU8: Uint8Array;
  _malloc(bytes: number): Pointer;
  _free(address: Pointer): void;
  UTF8ToString(address: Pointer): string;
  addFunction(call: (...values: any[]) => any, signature: string): Pointer;
  removeFunction(address: Pointer): void;
};

/** A call of Quern that failed: `message` is that of the library, `result` its name, such as QUERN_ERROR_STALE_ENTITY. */
export declare class QuernError extends Error {
  constructor(message: string, result?: string);
  result: string;
}

/** Throws a QuernError unless a quern_result is QUERN_OK. */
export declare function check(result: number): void;

/** The address of a member of a struct, or of an element of an array in it. */
export declare function addressOf(struct: string, address: Pointer, name: string, index?: number): Pointer;
export declare function getMember(struct: string, address: Pointer, name: string, index?: number): number | bigint;
export declare function setMember(struct: string, address: Pointer, name: string, value: number | bigint | boolean, index?: number): void;

/** Type of a field. 64-bit integers and entities are bigints, all others numbers. */
export type FieldType = "bool" | "i8" | "u8" | "i16" | "u16" | "i32" | "u32" | "i64" | "u64" | "f32" | "f64" | "entity";
export type Fields = Record<string, FieldType>;
type ValueOf<T extends FieldType> = T extends "i64" | "u64" | "entity" ? bigint : number;
export type Value<F extends Fields> = {[K in keyof F]: ValueOf<F[K]>};

interface Arrays {
  bool: Uint8Array; i8: Int8Array; u8: Uint8Array; i16: Int16Array; u16: Uint16Array; i32: Int32Array; u32: Uint32Array;
  i64: BigInt64Array; u64: BigUint64Array; f32: Float32Array; f64: Float64Array; entity: BigUint64Array;
}

/** The values of a view: an array for each field. The value of row i is at i * stride. */
export type Columns<F extends Fields> = {readonly [K in keyof F]: Arrays[F[K]] & {readonly stride: number}};

/** An entity: the 64 bits of its handle. */
export type Entity = bigint;

export declare class Component<F extends Fields = Fields> {
  readonly name: string;
  readonly handle: number;
  /** A value of the component; fields that are left out are 0. */
  with(value: Partial<Value<F>>): ComponentValue;
}

export interface ComponentValue {
  component: Component<any>;
  value: Record<string, number | bigint>;
}

/** A resource. Between frames, `value` reads a copy and sets fields. */
export declare class Resource<F extends Fields = Fields> {
  readonly name: string;
  readonly handle: number;
  get value(): Value<F>;
  set value(value: Partial<Value<F>>);
}

/** A relation. In terms it is a tag: having(likes) matches entities that like another one. */
export declare class Relation extends Component<{}> {
  readonly relation: number;
}

export interface RelationOptions {
  levels?: boolean;
  ordered?: boolean;
  many?: boolean;
}

export declare class Event<F extends Fields = Fields> {
  readonly name: string;
  readonly handle: number;
  /** A value of the event; fields that are left out are 0. */
  with(value: Partial<Value<F>>): EventValue;
}

export interface EventValue {
  event: Event<any>;
  value: Record<string, number | bigint>;
}

/** A captured tree, which World.spawn makes instances of. */
export declare class Prefab {
  readonly handle: bigint;
  /** Destroys the prefab. Its instances stay. */
  close(): void;
}

export interface Term {
  component: Component<any>;
  match: number;
  access: number;
}

export interface ResourceAccess {
  resource: Resource<any>;
  access: number;
}

/** A term that reads. A component alone, where a term is expected, means the same. */
export declare function read(component: Component<any>): Term;
/** A term that writes, or for a resource an access that writes. */
export declare function write(component: Component<any>): Term;
export declare function write(resource: Resource<any>): ResourceAccess;
/** A term that requires a component without access to its values. */
export declare function having(component: Component<any>): Term;
export declare function without(component: Component<any>): Term;
export declare function optional(component: Component<any>): Term;

/** A range of rows. It is valid until the function of the system returns or the loop moves on. Its arrays are over the memory
 * of the module: they lose their contents (their length becomes 0) when the memory grows. */
export interface View {
  readonly count: number;
  readonly entities: BigUint64Array;
  /** The arrays of a component; null if an optional one is missing. */
  columns<F extends Fields>(component: Component<F>): Columns<F>;
}

export declare class Query implements Iterable<View> {
  [Symbol.iterator](): Generator<View>;
  /** Number of entities that match. */
  readonly count: number;
  close(): void;
}

export declare class World {
  readonly handle: Pointer;
  /** Registers a component. Without fields it is a tag. */
  component<F extends Fields>(name: string, fields?: F): Component<F>;
  /** Registers a resource of zero bytes. */
  resource<F extends Fields>(name: string, fields: F): Resource<F>;
  query(...terms: (Component<any> | Term)[]): Query;
  event<F extends Fields>(name: string, fields?: F): Event<F>;
  /** Emits events between frames. */
  emit(...values: (Event<any> | EventValue)[]): void;
  relation(name: string, options?: RelationOptions): Relation;
  /** The built-in relation of the hierarchy. */
  readonly parent: Relation;
  relate(source: Entity, relation: Relation, target: Entity): void;
  /** Removes the target of a source, or one of several. */
  unrelate(source: Entity, relation: Relation, target?: Entity): void;
  /** The target of a source; null if it has none. */
  target(source: Entity, relation: Relation): Entity | null;
  /** The sources of a target, such as the children of a parent. */
  sources(target: Entity, relation: Relation): Entity[];
  /** Captures an entity and everything below it. */
  prefab(root: Entity): Prefab;
  /** Spawns an instance, and returns its root; the values replace those of the root. */
  spawn(prefab: Prefab, ...values: ComponentValue[]): Entity;
  create(...values: (Component<any> | ComponentValue)[]): Entity;
  destroy(entity: Entity): void;
  isAlive(entity: Entity): boolean;
  has(entity: Entity, component: Component<any>): boolean;
  /** A copy of a value; null if the entity lacks the component. */
  get<F extends Fields>(entity: Entity, component: Component<F>): Value<F> | null;
  set(entity: Entity, ...values: ComponentValue[]): void;
  remove(entity: Entity, component: Component<any>): void;
  hash(): bigint;
  /** An archive of the world. */
  save(): Uint8Array;
  /** Loads an archive; the world has registered its types. */
  load(archive: Uint8Array): void;
  /** Destroys the world, and before it its schedules and queries. An error while a frame of the world runs. */
  close(): void;
}

/** What a system can use besides its view, while its function runs. */
export interface Context {
  readonly deltaSeconds: number;
  readonly frame: number;
  /** The world, in exclusive systems. */
  readonly world: World;
  /** The views of a further query of the system. */
  query(index?: number): Generator<View>;
  /** A copy of the value of a resource that the system declares. */
  resource<F extends Fields>(resource: Resource<F>): Value<F>;
  setResource<F extends Fields>(resource: Resource<F>, value: Partial<Value<F>>): void;
  /** Copies of the events since the system last ran, which it reads (`events`), in order. */
  events<F extends Fields>(event: Event<F>): Generator<Value<F>>;
  /** Emits events, which the system declares (`emits`). */
  emit(...values: (Event<any> | EventValue)[]): void;
  /** Commands: changes that the next sync point makes. */
  relate(source: Entity, relation: Relation, target: Entity): void;
  unrelate(source: Entity, relation: Relation, target?: Entity): void;
  spawn(prefab: Prefab, ...values: ComponentValue[]): Entity;
  create(...values: (Component<any> | ComponentValue)[]): Entity;
  destroy(entity: Entity): void;
}

export interface SystemOptions {
  phase?: string;
  /** Further queries, for Context.query. */
  queries?: (Component<any> | Term)[][];
  /** Resources that the system reads, or writes: write(resource). */
  resources?: (Resource<any> | ResourceAccess)[];
  /** Events that the system reads, and that it emits. */
  events?: Event<any>[];
  emits?: Event<any>[];
  before?: string[];
  after?: string[];
  /** Whether the system runs alone and may change Context.world at once; it has no terms. */
  exclusive?: boolean;
}

export declare class Schedule {
  constructor(world: World, phases?: string[]);
  /** Adds a system. Its function gets a view at a time, and none if there are no terms. */
  add(name: string, terms: (Component<any> | Term)[], run: (context: Context, view: View) => void, options?: SystemOptions): void;
  /** Runs a frame. An exception of a system skips the rest of the frame's functions, and is thrown here. */
  run(deltaSeconds: number): void;
  close(): void;
}
