# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The Quern authors
"""Summaries of Quern for LLDB: entities with their components, worlds, queries, views and components.

    (lldb) command script import scripts/quern_lldb.py

They read memory and call no function, and need the debug information of the library (-g); without it, an entity is
shown as the numbers in its handle. GDB's script, quern_gdb.py, shows more.
"""

import lldb

MOST_FRAMES = 64
ACCESS = {0: "with ", 1: "", 2: "mut "}
MATCH = {0: "", 1: "", 2: "!", 3: "?", 4: "| "}


def at(value, *path):
    """Returns a member of a member, or an element of what a pointer points to."""
    for step in path:
        value = value.GetNonSyntheticValue()
        if isinstance(step, str):
            value = value.GetChildMemberWithName(step)
        elif value.GetType().IsPointerType():
            kind = value.GetType().GetPointeeType()
            value = value.CreateValueFromAddress(str(step), value.GetValueAsUnsigned(0) + step * kind.GetByteSize(), kind)
        else:
            value = value.GetChildAtIndex(step)
    return value


def number(value, *path):
    return at(value, *path).GetValueAsUnsigned(0)


def text(value, *path):
    value = at(value, *path)
    address = value.GetValueAsUnsigned(0) if value.GetType().IsPointerType() else value.GetLoadAddress()
    return value.GetProcess().ReadCStringFromMemory(address, 256, lldb.SBError()) or ""


def worlds_in(value, depth=2):
    """Yields pointers to worlds that a variable is or leads to."""
    kind = value.GetType().GetCanonicalType()
    target = kind.GetPointeeType() if kind.IsPointerType() else kind
    name = target.GetUnqualifiedType().GetName() or ""
    if name.replace("struct ", "") == "quern_world":
        yield value if kind.IsPointerType() else value.AddressOf()
        return
    if depth == 0 or not value.IsValid() or (kind.IsPointerType() and value.GetValueAsUnsigned(0) == 0):
        return
    for member in ("world", "schedule", "context", "query"):
        found = at(value, member)
        if found.IsValid():
            yield from worlds_in(found, depth - 1)
    if name.replace("struct ", "") == "quern_query":  # the storage is the first member of its world
        world = value.GetTarget().FindFirstType("quern_world")
        if world.IsValid():
            yield at(value, "storage").Cast(world.GetPointerType())


def tag_of_world(world):
    return number(world, "storage", "entities", "first_handle_high") >> 24


def find_world(value, tag):
    """Returns the world with a tag that a variable of the stack leads to, or None."""
    thread = value.GetProcess().GetSelectedThread()
    for i in range(min(thread.GetNumFrames(), MOST_FRAMES)):
        for variable in thread.GetFrameAtIndex(i).GetVariables(True, True, True, True):
            for world in worlds_in(variable):
                if world.GetValueAsUnsigned(0) != 0 and tag_of_world(world) == tag:
                    return world
    return None


def component_at(world, index):
    return at(world, "storage", "components", "list", "items", index, "type")


def names_of(world, archetype):
    indices = at(archetype, "component_indices")
    count = number(archetype, "component_count")
    return "[" + ", ".join(text(component_at(world, number(indices, i)), "name") for i in range(count)) + "]"


def place_of(world, slot, high):
    """Returns the record and the archetype of a living entity, or None."""
    if slot >= number(world, "storage", "entities", "slot_count"):
        return None
    record = at(world, "storage", "entities", "pages", "items", slot >> 17, slot & 0x1FFFF)
    if number(record, "handle_high") != high or number(record, "location") == 0:
        return None
    return record, at(world, "storage", "numbered", "items", number(record, "archetype_number"))


def name_of(world, slot):
    names = at(world, "storage", "names")
    if names.GetValueAsUnsigned(0) == 0 or slot >> 12 >= number(names, "pages", "count"):
        return None
    page = at(names, "pages", "items", slot >> 12)
    index = number(page, slot & 4095) if page.GetValueAsUnsigned(0) != 0 else 0xFFFFFFFF
    return text(names, "blocks", "items", index >> 6, index & 63, "text") if index != 0xFFFFFFFF else None


def entity_summary(value, _):
    bits = number(value, "bits")
    slot, high = bits & 0xFFFFFFFF, bits >> 32
    handle = f"entity {slot}:{high & 0xFFFFFF}"
    if bits == 0:
        return "null entity"
    if high >> 24 == 0:
        return f"provisional entity {slot}"
    world = find_world(value, high >> 24)
    if world is None:
        return f"{handle} of world {high >> 24}"
    place = place_of(world, slot, high)
    if place is None:
        return f"{handle}, not alive"
    name = name_of(world, slot)
    return f"{handle}{' ' + chr(34) + name + chr(34) if name else ''} {names_of(world, place[1])}"


class EntityComponents:
    """The children of an entity: its components with a C type that the program has debug information of."""

    def __init__(self, value, _):
        self.value, self.components = value, []

    def update(self):
        self.components = []
        bits = number(self.value, "bits")
        world = find_world(self.value, bits >> 56) if bits >> 56 != 0 else None
        place = place_of(world, bits & 0xFFFFFFFF, bits >> 32) if world is not None else None
        if place is None:
            return
        location, mask = number(place[0], "location"), number(place[1], "shape", "row_mask")
        for i in range(number(place[1], "column_count")):
            column = at(place[1], "columns", i)
            kind = self.value.GetTarget().FindFirstType(text(column, "type", "type_name"))
            size = number(column, "size_bytes")
            if kind.IsValid() and kind.GetByteSize() == size:
                offset = number(column, "offset_bytes") << number(place[1], "shape", "shift")
                address = location - (location & mask) + offset + (location & mask) * size
                self.components.append((text(column, "type", "name"), address, kind))

    def num_children(self):
        return len(self.components)

    def get_child_at_index(self, index):
        name, address, kind = self.components[index]
        return self.value.CreateValueFromAddress(name, address, kind)

    def get_child_index(self, name):
        return [component[0] for component in self.components].index(name)


def world_summary(value, _):
    value = value.GetNonSyntheticValue()
    parts = [number(value, "storage", "entities", part) for part in ("slot_count", "free_count", "absent_count", "retired_count")]
    return f"world {tag_of_world(value)} of {parts[0] - sum(parts[1:])} entities"


def component_summary(value, _):
    bits = number(value, "bits")
    world = find_world(value, bits >> 24) if bits != 0 else None
    index = (bits & 0xFFFF) - 1
    return f'component "{text(component_at(world, index), "name")}"' if world is not None else f"component {index}"


def query_summary(value, _):
    value = value.GetNonSyntheticValue()
    world = next(iter(worlds_in(at(value, "storage").Cast(value.GetTarget().FindFirstType("quern_world").GetPointerType()))))
    terms = []
    for i in range(number(value, "term_count")):
        term = at(value, "terms", i)
        match = number(term, "match")
        before = MATCH[match] + ("" if match == 2 else ACCESS[number(term, "access")])
        terms.append(before + text(component_at(world, (number(term, "component", "bits") & 0xFFFF) - 1), "name"))
    return f"query: {', '.join(terms)}"


def view_summary(value, _):
    return f"view of {number(value, 'count')} rows"


def __lldb_init_module(debugger, _):
    for kind in ("entity", "world", "component", "query", "view"):
        children = "-e " if kind == "entity" else ""
        debugger.HandleCommand(f"type summary add {children}-F {__name__}.{kind}_summary quern_{kind}")
    debugger.HandleCommand(f"type synthetic add -l {__name__}.EntityComponents quern_entity")
