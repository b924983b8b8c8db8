# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The Quern authors
"""Pretty printers of Quern for GDB: entities with their components, worlds, queries, views and handles.

    gdb -x scripts/quern_gdb.py PROGRAM

GDB loads this file by itself with an installed shared library (docs/debugging.md). The printers read memory and call no
function, so they also work on a core file. They need the debug information of the library (-g); without it, an entity is
printed as the numbers in its handle.
"""

import gdb
import gdb.printing
import gdb.types

MOST_COMPONENTS = 24  # of an archetype in one line
MOST_FRAMES = 64
ACCESS = {0: "with ", 1: "", 2: "mut "}
MATCH = {0: "", 1: "", 2: "!", 3: "?", 4: "| "}
NO_NAME = 0xFFFFFFFF


# -------------------------------------------------------------------------------------------- worlds


def tag_of_world(world):
    return int(world["storage"]["entities"]["first_handle_high"]) >> 24


def is_pointer_to(kind, name):
    kind = kind.strip_typedefs()
    return kind.code == gdb.TYPE_CODE_PTR and kind.target().strip_typedefs().tag == name


def worlds_in(value, depth=2):
    """Yields pointers to worlds that a variable is or leads to: a member `world` of a struct, or the query of a view."""
    kind = value.type.strip_typedefs()
    if is_pointer_to(kind, "quern_world"):
        yield value
        return
    if kind.code == gdb.TYPE_CODE_PTR and kind.target().strip_typedefs().code == gdb.TYPE_CODE_STRUCT:
        value = value.dereference()
        kind = value.type.strip_typedefs()
    if kind.code != gdb.TYPE_CODE_STRUCT or depth == 0:
        return
    for field in kind.fields():
        if field.name in ("world", "schedule", "context", "query"):
            yield from worlds_in(value[field.name], depth - 1)
        elif field.name == "storage" and kind.tag == "quern_query":  # the first member of its world
            yield value["storage"].cast(gdb.lookup_type("quern_world").pointer())


def variables():
    """Yields the variables of the selected frame, of its callers, and of their files."""
    try:
        frame = gdb.selected_frame()
    except gdb.error:
        return
    for _ in range(MOST_FRAMES):
        if frame is None:
            return
        try:
            block = frame.block()
        except RuntimeError:
            block = None
        while block is not None:
            for symbol in block:
                if symbol.is_variable or symbol.is_argument:
                    try:
                        yield symbol.value(frame)
                    except (gdb.error, TypeError):
                        pass
            block = block.superblock
        frame = frame.older()


def find_world(tag):
    """Returns the world with a tag that a variable of the stack leads to, or None. No world is listed anywhere else."""
    for value in variables():
        try:
            for world in worlds_in(value):
                if int(world) != 0 and tag_of_world(world) == tag:
                    return world
        except (gdb.error, ValueError):
            pass
    return None


def component_at(world, index):
    """Returns the type of a component by its index."""
    return world["storage"]["components"]["list"]["items"][index]["type"]


def name_of(world, slot):
    """Returns the name of the entity in a slot, or None."""
    names = world["storage"]["names"]
    if int(names) == 0 or slot >> 12 >= int(names["pages"]["count"]):
        return None
    page = names["pages"]["items"][slot >> 12]
    number = int(page[slot & 4095]) if int(page) != 0 else NO_NAME
    return names["blocks"]["items"][number >> 6][number & 63]["text"].string() if number != NO_NAME else None


def archetype_of(world, slot, handle_high):
    """Returns the record and the archetype of a living entity, or None."""
    entities = world["storage"]["entities"]
    if slot >= int(entities["slot_count"]):
        return None
    record = entities["pages"]["items"][slot >> 17][slot & 0x1FFFF]
    if int(record["handle_high"]) != handle_high or int(record["location"]) == 0:
        return None
    return record, world["storage"]["numbered"]["items"][int(record["archetype_number"])].dereference()


def components_of(world, archetype):
    """Returns the names of the components of an archetype, in one text."""
    count = int(archetype["component_count"])
    names = [component_at(world, int(archetype["component_indices"][i]))["name"].string() for i in range(min(count, MOST_COMPONENTS))]
    return "[" + ", ".join(names + ["..."] * (count > MOST_COMPONENTS)) + "]"


def row_count(archetype):
    chunks = int(archetype["chunk_count"])
    return (chunks - 1) * int(archetype["shape"]["row_capacity"]) + int(archetype["slots"][chunks - 1]["row_count"]) if chunks else 0


# -------------------------------------------------------------------------------------------- values


def c_type_of(component):
    """Returns the C type that a component was registered with, if the program has debug information of it."""
    name = component["type_name"].string()
    for candidate in (name, name.split(" = ")[0], name.split(" = ")[-1]):
        for spelling in (candidate, "struct " + candidate):
            try:
                kind = gdb.lookup_type(spelling)
            except gdb.error:
                continue
            if kind.sizeof == int(component["size_bytes"]):
                return kind
    return None


FIELD_TYPES = {"BOOL": "_Bool", "I8": "signed char", "U8": "unsigned char", "I16": "short", "U16": "unsigned short",
               "I32": "int", "U32": "unsigned int", "I64": "long long", "U64": "unsigned long long", "F32": "float",
               "F64": "double", "ENTITY": "quern_entity", "TEXT": "char"}


def described(component, address):
    """Returns the text of a value by the described fields of its type, or by its bytes."""
    fields = []
    for i in range(int(component["field_count"])):
        field = component["fields"][i]
        kind = gdb.lookup_type(FIELD_TYPES[str(field["type"]).rpartition("_")[2]])
        count = int(field["count"])
        if count > 1:
            kind = kind.array(count - 1)
        value = gdb.Value(address + int(field["offset_bytes"])).cast(kind.pointer()).dereference()
        fields.append(f"{field['name'].string()} = {value.format_string()}")
    if fields:
        return "{" + ", ".join(fields) + "}"
    size = int(component["size_bytes"])
    return f"{size} bytes: " + bytes(gdb.selected_inferior().read_memory(address, min(size, 32))).hex(" ")


def value_at(component, address):
    kind = c_type_of(component)
    if kind is None:
        return described(component, address)
    return gdb.Value(address).cast(kind.pointer()).dereference()


# ------------------------------------------------------------------------------------------ printers


class Entity:
    """An entity with its components. Entities inside of it, and in views, are one line each: they may form a circle."""

    outer_count = 0  # printers that are writing their children

    def __init__(self, value):
        bits = int(value["bits"])
        self.slot, self.high = bits & 0xFFFFFFFF, bits >> 32
        self.tag, self.generation = self.high >> 24, self.high & 0xFFFFFF
        self.is_null = bits == 0
        self.world, self.place = None, None
        try:
            world = find_world(self.tag) if self.tag != 0 else None
            if world is not None:
                self.place = archetype_of(world, self.slot, self.high)
                self.world = world
        except gdb.error:  # the variable outlives its world
            pass

    def to_string(self):
        if self.is_null:
            return "null entity"
        if self.tag == 0:
            return f"provisional entity {self.slot}"
        handle = f"entity {self.slot}:{self.generation}"
        if self.world is None:
            return f"{handle} of world {self.tag}"
        if self.place is None:
            return f"{handle}, not alive"
        name = name_of(self.world, self.slot)
        return f"{handle}{' ' + chr(34) + name + chr(34) if name else ''} {components_of(self.world, self.place[1])}"

    def children(self):
        if self.place is None or Entity.outer_count > 0:
            return
        record, archetype = self.place
        location, mask = int(record["location"]), int(archetype["shape"]["row_mask"])
        for i in range(int(archetype["column_count"])):
            column = archetype["columns"][i]
            component = column["type"].dereference()
            offset = int(column["offset_bytes"]) << int(archetype["shape"]["shift"])
            address = location - (location & mask) + offset + (location & mask) * int(column["size_bytes"])
            yield from as_inner(component["name"].string(), lambda: value_at(component, address))


def as_inner(name, value):
    """Yields a child that GDB writes before it asks for the next one, so entities in it know that they are inside."""
    Entity.outer_count += 1
    try:
        yield name, value()
    finally:
        Entity.outer_count -= 1


class World:
    def __init__(self, value):
        self.world = value

    def to_string(self):
        entities = self.world["storage"]["entities"]
        alive = int(entities["slot_count"]) - sum(int(entities[free]) for free in ("free_count", "absent_count", "retired_count"))
        return f"world {tag_of_world(self.world)} of {alive} entities"

    def children(self):
        archetypes = self.world["storage"]["archetypes"]
        for i in range(int(archetypes["count"])):
            archetype = archetypes["items"][i].dereference()
            if row_count(archetype) > 0:
                yield components_of(self.world, archetype), f"{row_count(archetype)} entities"


class Handle:
    """A component or a resource: its name."""

    def __init__(self, value):
        self.bits, self.kind = int(value["bits"]), value.type.strip_typedefs().tag[len("quern_"):]

    def to_string(self):
        world = find_world(self.bits >> 24) if self.bits != 0 else None
        index = (self.bits & 0xFFFF) - 1
        types = None
        if world is not None:
            types = world["storage"]["components"]["list"] if self.kind == "component" else world["resources"]["list"]
        if types is None or index >= int(types["count"]):
            return f"{self.kind} {index}" if self.bits != 0 else f"null {self.kind}"
        return f'{self.kind} "{types["items"][index]["type"]["name"].string()}"'


def text_of_term(world, term):
    index = (int(term["component"]["bits"]) & 0xFFFF) - 1
    match, access = int(term["match"]), int(term["access"])
    before = MATCH[match] + ("" if match == 2 else ACCESS[access])
    return before + component_at(world, index)["name"].string() + (" changed" if term["changed"] else "")


def world_of_query(query):
    return query["storage"].cast(gdb.lookup_type("quern_world").pointer())


class Query:
    """The terms of a query, roughly as quern_query_parse reads them."""

    def __init__(self, value):
        self.query = value

    def to_string(self):
        world = world_of_query(self.query)
        terms = [text_of_term(world, self.query["terms"][i]) for i in range(int(self.query["term_count"]))]
        name = f' "{self.query["name"].string()}"' if int(self.query["name"]) != 0 else ""
        return f"query{name}: {', '.join(terms)}"


class View:
    """The columns of a view: each an array of its rows."""

    def __init__(self, value):
        self.view = value

    def to_string(self):
        return f"view of {int(self.view['count'])} rows"

    def children(self):
        count = int(self.view["count"])
        if count == 0:
            return
        handle = gdb.lookup_type("quern_entity").const()
        rows = gdb.Value(int(self.view["entities"])).cast(handle.array(count - 1).pointer()).dereference()
        yield from as_inner("entities", lambda: rows)
        query = self.view["query"]
        if int(query) == 0 or not query.dereference().type.fields():
            return
        world = world_of_query(query.dereference())
        for i in range(int(self.view["term_count"])):
            column = self.view["columns"][i]
            if int(column["offset_bytes"]) == 0:
                continue
            component = component_at(world, (int(query["terms"][i]["component"]["bits"]) & 0xFFFF) - 1)
            size = int(column["size_bytes"])
            address = int(self.view["memory"]) + (int(column["offset_bytes"]) << int(self.view["run_shift"]))
            address += (int(self.view["chunk_row"]) + int(self.view["first_row"])) * size
            kind = c_type_of(component) or gdb.lookup_type("unsigned char").array(size - 1)
            rows = gdb.Value(address).cast(kind.array(count - 1).pointer()).dereference()
            yield from as_inner(component["name"].string(), lambda: rows)


def with_debug_information(printer):
    """Returns a printer for structs that the library defines: without its debug information there is nothing to read."""
    return lambda value: printer(value) if value.type.fields() else None


def build():
    printers = gdb.printing.RegexpCollectionPrettyPrinter("quern")
    printers.add_printer("entity", "^quern_entity$", Entity)
    printers.add_printer("component", "^quern_component$", Handle)
    printers.add_printer("resource", "^quern_resource$", Handle)
    printers.add_printer("world", "^quern_world$", with_debug_information(World))
    printers.add_printer("query", "^quern_query$", with_debug_information(Query))
    printers.add_printer("view", "^quern_view$", View)
    return printers


gdb.printing.register_pretty_printer(gdb.current_objfile(), build(), replace=True)
