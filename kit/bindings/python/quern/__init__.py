# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The Quern authors
"""Quern for Python: worlds whose columns are numpy arrays without copies.

    import quern

    world = quern.World()
    Position = world.component("Position", x="f4", y="f4")
    Velocity = world.component("Velocity", x="f4", y="f4")
    schedule = quern.Schedule(world)

    @schedule.system(quern.write(Position), quern.read(Velocity))
    def move(context, view):
        position, velocity = view[Position], view[Velocity]
        position["x"] += velocity["x"] * context.delta_seconds

    world.create(Position(0, 0), Velocity(1, 0))
    schedule.run(1 / 64)

An entity is an int: the 64 bits of its handle. A failed call raises quern.Error with the message of the library.
quern.call.NAME calls any function quern_NAME of the C headers in the same way, and quern.lib and quern.ffi are cffi's
library and declarations.

Arrays of a view show the memory of the world. They are valid until the system function returns, or the loop over the
query moves on: copy what you keep. A system that keeps one, or a part of one, raises an error, and a world cannot be
closed while one lives. Systems of Python run one at a time on the thread that calls Schedule.run, while systems of
libraries in C run beside them on other threads.
"""

import os
import sys
import weakref

import numpy as np

from ._api import CONSTANTS, ffi


def _open_library():
    folder = os.path.dirname(os.path.abspath(__file__))
    names = {"win32": ["quern_bindings.dll", "libquern_bindings.dll"], "darwin": ["libquern_bindings.dylib"]}
    for name in names.get(sys.platform, ["libquern_bindings.so"]):
        for place in (folder, os.path.join(folder, "..", "..")):
            path = os.path.join(place, name)
            if os.path.exists(path):
                return ffi.dlopen(path)
    raise ImportError("quern: there is no library %s in %s: build it by ./run bindings python, or install the package again" % (name, folder))


lib = _open_library()
ENTITY = "entity"  # the type of a field that holds an entity
NULL = ffi.NULL


class Error(Exception):
    """A call of Quern that failed: `result` is its name, such as QUERN_ERROR_STALE_ENTITY."""

    def __init__(self, message, result="QUERN_ERROR_INVALID_ARGUMENT"):
        super().__init__(message)
        self.result = result


def _message():
    return ffi.string(lib.quern_error_message()).decode()


def check(result):
    """Raises an Error unless a quern_result is QUERN_OK."""
    if result != 0:
        raise Error(_message(), ffi.string(lib.quern_result_string(result)).decode())


def _fill(array, values, what):
    """Stores the values of a list in an array of a definition, which ends at its first zero."""
    values = list(values)
    if len(values) > len(array):
        raise Error("%s: %d are given, and the limit is %d" % (what, len(values), len(array)), "QUERN_ERROR_LIMIT")
    for i, value in enumerate(values):
        array[i] = value


def _entity(value):
    return ffi.new("quern_entity *", {"bits": int(value)})[0]


class _Calls:
    """The functions of the headers by their names without quern_, with objects of this module as arguments."""

    def __getattr__(self, name):
        function = getattr(lib, "quern_" + name)
        kind = ffi.typeof(function)
        is_result = kind.result is ffi.typeof("quern_result")
        is_entity = kind.result is ffi.typeof("quern_entity")

        def convert(value, wanted):
            if wanted is ffi.typeof("quern_entity") and not isinstance(value, ffi.CData):
                return _entity(value)
            if isinstance(value, str):
                return value.encode()
            if value is None:
                return NULL
            if wanted is ffi.typeof("quern_relation"):
                return getattr(value, "relation", value)
            return getattr(value, "handle", value)

        def call_function(*arguments):
            if len(arguments) != len(kind.args) and not kind.ellipsis:
                raise Error("%s has %d arguments, and %d are given" % (name, len(kind.args), len(arguments)))
            keep = [convert(value, wanted) for value, wanted in zip(arguments, kind.args)]
            for i, (value, wanted) in enumerate(zip(keep, kind.args)):
                if isinstance(value, bytes) and wanted.kind == "pointer":
                    keep[i] = ffi.new("char[]", value)
            value = function(*keep)
            if is_result:
                return check(value)
            return value.bits if is_entity else value

        setattr(self, name, call_function)
        return call_function


call = _Calls()


# ---------------------------------------------------------------------------------------------- types of values

_FIELD_TYPES = {
    "?": "BOOL", "i1": "I8", "u1": "U8", "i2": "I16", "u2": "U16", "i4": "I32", "u4": "U32", "i8": "I64", "u8": "U64",
    "f4": "F32", "f8": "F64",
}
_DTYPES = {CONSTANTS["QUERN_FIELD_" + word]: np.dtype(code) for code, word in _FIELD_TYPES.items()}
_DTYPES[CONSTANTS["QUERN_FIELD_ENTITY"]] = np.dtype("u8")


class _Type:
    """A registered type with fields: its dtype, and which of the fields hold entities."""

    def __init__(self, name, fields):
        self.name = name
        self.entities = {field for field, kind in fields.items() if self._base(kind) == ENTITY}
        members = [(field, *self._dtype(kind)) for field, kind in fields.items()]
        self.dtype = np.dtype(members, align=True) if fields else None

    @staticmethod
    def _base(kind):
        return kind[0] if isinstance(kind, tuple) else kind

    @classmethod
    def _dtype(cls, kind):
        base = cls._base(kind)
        base = np.dtype("u8" if isinstance(base, str) and base == ENTITY else base)
        return (base, kind[1]) if isinstance(kind, tuple) else (base,)

    def describe(self, keep):
        """Returns descriptions of the fields for a definition; appends to `keep` what must live as long."""
        described = []
        for field in self.dtype.names if self.dtype is not None else ():
            kind, offset = self.dtype.fields[field][:2]
            base, shape = kind.subdtype or (kind, ())
            if len(shape) > 1:
                raise Error("'%s' of '%s' has %d dimensions: a field is a value or an array of one dimension" % (field, self.name, len(shape)))
            count = shape[0] if shape else 1
            if field in self.entities:
                word = "ENTITY"
            elif base.kind == "S" and not shape:
                word, count = "TEXT", base.itemsize
            else:
                word = _FIELD_TYPES.get("?" if base.kind == "b" else base.str[1:])
            if word is None or not base.isnative:
                raise Error("'%s' of '%s' is a %s: a field is a bool, an integer or a float of 1 to 8 bytes, text (S16), "
                            "quern.ENTITY, or an array such as ('f4', 3)" % (field, self.name, base))
            keep.append(ffi.new("char[]", field.encode()))
            described.append({"name": keep[-1], "type": CONSTANTS["QUERN_FIELD_" + word], "offset_bytes": offset, "count": count})
        if len(described) > CONSTANTS["QUERN_MAX_FIELDS"]:
            raise Error("'%s' has %d fields; a type has at most %d" % (self.name, len(described), CONSTANTS["QUERN_MAX_FIELDS"]))
        return described

    @classmethod
    def of_info(cls, info):
        """Makes the type of a description by the library; fields that have no dtype, such as lists, are left out."""
        found = cls(ffi.string(info.name).decode(), {})
        names, formats, offsets = [], [], []
        for i in range(info.field_count):
            field = info.fields[i]
            if field.type == CONSTANTS["QUERN_FIELD_TEXT"]:
                kind = np.dtype("S%d" % field.count)
            elif field.type in _DTYPES:
                kind = np.dtype((_DTYPES[field.type], (field.count,))) if field.count > 1 else _DTYPES[field.type]
            else:
                continue
            names.append(ffi.string(field.name).decode())
            formats.append(kind)
            offsets.append(field.offset_bytes)
            if field.type == CONSTANTS["QUERN_FIELD_ENTITY"]:
                found.entities.add(names[-1])
        if info.size_bytes > 0:
            found.dtype = np.dtype({"names": names, "formats": formats, "offsets": offsets, "itemsize": info.size_bytes})
        return found

    def record(self, values, named):
        """Returns an array with one value."""
        if self.dtype is None:
            if values or named:
                raise Error("'%s' is a tag: it has no value" % self.name)
            return None
        record = np.zeros(1, self.dtype)
        unknown = [name for name in named if name not in self.dtype.names]
        if unknown or len(values) > len(self.dtype.names):
            raise Error("'%s' has the fields %s%s" % (self.name, ", ".join(self.dtype.names), "; it has no '%s'" % unknown[0] if unknown else ""))
        for name, value in [*zip(self.dtype.names, values), *named.items()]:
            record[name] = value
        return record

    def rows(self, array, count, caller):
        """Returns an array of values as contiguous rows of the type. Plain arrays (rows, fields) of the same number type count."""
        array = np.asarray(array)
        if array.dtype != self.dtype:
            kinds = {self.dtype.fields[name][0] for name in self.dtype.names}
            width = len(self.dtype.names)
            is_plain = kinds == {array.dtype} and self.dtype.itemsize == width * array.dtype.itemsize
            if not is_plain or array.shape not in ((count, width), (count,) if width == 1 else None):
                raise Error("%s: '%s' has values of the dtype %s, and the array has %s and the shape %s: convert it by astype, or give "
                            "it the shape (%d, %d)" % (caller, self.name, self.dtype, array.dtype, array.shape, count, width))
        elif array.shape != (count,):
            raise Error("%s: '%s' needs %d values, and the array has the shape %s" % (caller, self.name, count, array.shape))
        return np.ascontiguousarray(array)


def _address(array):
    return ffi.cast("void *", array.ctypes.data) if array is not None else NULL


def _array_at(address, count, dtype, is_writable):
    array = np.frombuffer(ffi.buffer(address, count * dtype.itemsize), dtype)
    array.flags.writeable = is_writable
    return array


class Component:
    """A component of a world. Called with values of its fields, it is a value of itself."""

    def __init__(self, world, handle, kind):
        self.world, self.handle, self.type = world, handle, kind
        self.name, self.dtype = kind.name, kind.dtype

    def __call__(self, *values, **named):
        return self, self.type.record(values, named)

    def __repr__(self):
        return "Component(%r, %s)" % (self.name, self.dtype)


class Relation(Component):
    """A relation of a world. It is a tag in terms, and of World.has: with_(Likes) matches entities that like another one."""

    def __init__(self, world, relation, kind):
        super().__init__(world, lib.quern_relation_component(relation), kind)
        self.relation = relation


class Event:
    """An event of a world. Called with values of its fields, it is a value of itself."""

    def __init__(self, world, handle, kind):
        self.world, self.handle, self.type = world, handle, kind
        self.name, self.dtype = kind.name, kind.dtype

    def __call__(self, *values, **named):
        return self, self.type.record(values, named)


def _events(values, caller):
    """Returns an event, its values as one array, and their number. values: one event; values of one event, such as
    Hit(1), Hit(2); or an event and an array."""
    if len(values) == 2 and isinstance(values[0], Event) and isinstance(values[1], np.ndarray):
        return values[0], values[0].type.rows(values[1], len(values[1]), caller), len(values[1])
    pairs = [(value, None) if isinstance(value, Event) else value for value in values]
    if not pairs or not all(isinstance(pair, tuple) and len(pair) == 2 and pair[0] is pairs[0][0] for pair in pairs) or not isinstance(pairs[0][0], Event):
        raise Error("%s: give values of one event, such as Hit(1), or an event and an array of its values" % caller)
    event = pairs[0][0]
    if event.dtype is None:
        return event, None, len(pairs)
    return event, np.concatenate([event.type.record((), {}) if record is None else record for _, record in pairs]), len(pairs)


class Prefab:
    """A captured tree, which World.spawn makes instances of."""

    def __init__(self, world, handle):
        self.world, self.handle = world, handle

    def close(self):
        """Destroys the prefab. Its instances stay."""
        check(lib.quern_prefab_destroy(self.world.handle, self.handle))


def _spawn_def(columns):
    """Returns the definition of a spawn that overrides values of the roots, and what must live as long."""
    definition = ffi.new("quern_spawn_def *")
    _fill(definition.overrides, [{"component": component.handle, "column": _address(array)} for component, array in columns],
          "spawn: values of the root")
    return definition, columns


class Resource:
    """A resource of a world."""

    def __init__(self, world, handle, kind):
        self.world, self.handle, self.type = world, handle, kind
        self.name, self.dtype = kind.name, kind.dtype

    @property
    def value(self):
        """The value as a record that shows the memory of the world, which cannot be closed while the record lives. Not for systems,
        which use Context.resource."""
        address = lib.quern_resource_get(self.world.handle, self.handle)
        if address == NULL:
            raise Error(_message())
        array = _array_at(address, 1, self.dtype, True)
        self.world._lend(array)  # the record refers to the array
        return array[0]


class Term:
    """A term of a query: made by read, write, with_, without, optional, any_, and changed."""

    def __init__(self, component, match, access):
        if not isinstance(component, Component):
            raise Error("a term needs a component, and %r is none" % (component,))
        access = 0 if component.dtype is None else access
        self.component, self.access = component, access
        self.term = lib.quern_term_make(component.handle, match, access)


def read(component):
    return Term(component, CONSTANTS["QUERN_MATCH_ALL"], CONSTANTS["QUERN_ACCESS_READ"])


def write(component):
    if isinstance(component, Resource):
        return component, CONSTANTS["QUERN_ACCESS_WRITE"]
    return Term(component, CONSTANTS["QUERN_MATCH_ALL"], CONSTANTS["QUERN_ACCESS_WRITE"])


def with_(component):
    return Term(component, CONSTANTS["QUERN_MATCH_ALL"], CONSTANTS["QUERN_ACCESS_NONE"])


def without(component):
    return Term(component, CONSTANTS["QUERN_MATCH_NONE"], CONSTANTS["QUERN_ACCESS_NONE"])


def optional(component, writes=False):
    return Term(component, CONSTANTS["QUERN_MATCH_OPTIONAL"], CONSTANTS["QUERN_ACCESS_WRITE" if writes else "QUERN_ACCESS_READ"])


def any_(component, writes=False):
    return Term(component, CONSTANTS["QUERN_MATCH_ANY"], CONSTANTS["QUERN_ACCESS_WRITE" if writes else "QUERN_ACCESS_READ"])


def changed(term):
    term = term if isinstance(term, Term) else read(term)
    term.term.changed = True
    return term


def _terms(items, owner):
    terms = [item if isinstance(item, Term) else read(item) for item in items]
    if len(terms) > CONSTANTS["QUERN_MAX_TERMS"]:
        raise Error("%s has %d terms; the limit is %d" % (owner, len(terms), CONSTANTS["QUERN_MAX_TERMS"]), "QUERN_ERROR_LIMIT")
    return terms


# ---------------------------------------------------------------------------------------------- views


class View:
    """A range of rows: view[component] is the array of its values. Valid until the function returns or the loop moves on."""

    def __init__(self, view, terms, owner, world):
        self._view, self._terms, self._owner, self._world = view, terms, owner, world
        self._arrays = []
        self.count = view.count

    def _check(self):
        if self._view is None:
            raise Error("%s: the view is used after its function has returned or its loop has moved on" % self._owner)
        return self._view

    def _lend(self, array):
        self._arrays.append(weakref.ref(array))
        return array

    @property
    def entities(self):
        """The handles of the rows, as an array of uint64 to read."""
        return self._lend(_array_at(self._check().entities, self.count, np.dtype("u8"), False))

    def __getitem__(self, component):
        for index, term in enumerate(self._terms):
            if term.component is component:
                break
        else:
            known = ", ".join("'%s'" % term.component.name for term in self._terms)
            raise Error("%s: no term names %r; the terms name %s" % (self._owner, getattr(component, "name", component), known),
                        "QUERN_ERROR_UNDECLARED_ACCESS")
        if term.access == 0:
            raise Error("%s: the term of '%s' declares no access to values" % (self._owner, component.name), "QUERN_ERROR_UNDECLARED_ACCESS")
        is_writable = term.access == CONSTANTS["QUERN_ACCESS_WRITE"]
        address = (lib.quern_view_write if is_writable else lib.quern_view_read)(self._check(), index)
        if address == NULL:
            return None  # of an optional term
        return self._lend(_array_at(address, self.count, component.dtype, is_writable))

    def has(self, component):
        """Whether the entities have the component of an optional term."""
        return any(lib.quern_view_has(self._check(), i) for i, term in enumerate(self._terms) if term.component is component)

    def _end(self):
        """Ends the validity. Returns whether an array of the view lives on."""
        self._view = None
        living = [array for array in (one() for one in self._arrays) if array is not None]
        for array in living:
            array.flags.writeable = False
        self._world._lend(*living)
        return len(living) > 0


def _walk(iterator, terms, owner, world, source):
    """Yields the views of an iteration. source: the query or context that it belongs to, which must live on."""
    view = None
    try:
        while source.handle and lib.quern_query_next(iterator):
            if view is not None:
                view._end()
            view = View(ffi.addressof(iterator, "view"), terms, owner, world)
            yield view
        check(iterator.result)
    finally:
        if view is not None:
            view._end()
        if source.is_open:
            lib.quern_query_iterator_end(iterator)


class _Owned:
    """An object of the library that belongs to a world: it is destroyed when it is closed, when nothing refers to it, or with
    its world, and then cannot be used any more. The world has no reference to this object, only to its box."""

    _box = None
    _word = None  # for messages, if it is not the name of the class

    def _own(self, world, pointer, destroy, uses=()):
        self._box = {"pointer": pointer, "destroy": destroy, "users": [], "owner": world._owner}
        for other in uses:
            other._box["users"].append(self._box)  # destroyed before it
        world._owner.boxes[id(self._box)] = self._box

    @property
    def is_open(self):
        return self._box["pointer"] is not None

    @property
    def handle(self):
        if not self.is_open:
            raise Error("the %s is used after it was closed" % (self._word or type(self).__name__.lower()))
        return self._box["pointer"]

    def close(self):
        if self._box is not None:
            _destroy(self._box)

    __del__ = close


class _Owner:
    """The boxes of a world. While a frame of it runs, which is also when garbage may be collected, nothing is destroyed: the end
    of the frame does that."""

    def __init__(self):
        self.boxes, self.frames, self._late = {}, 0, []

    def destroy(self, function, pointer):
        if self.frames > 0:
            self._late.append((function, pointer))
        else:
            function(pointer)

    def __enter__(self):
        self.frames += 1

    def __exit__(self, *_):
        self.frames -= 1
        while self.frames == 0 and self._late:
            function, pointer = self._late.pop(0)
            function(pointer)


def _destroy(box):
    if box["pointer"] is None:
        return
    for user in box["users"]:
        _destroy(user)
    pointer, box["pointer"] = box["pointer"], None
    del box["owner"].boxes[id(box)]
    box["owner"].destroy(box["destroy"], pointer)


class Query(_Owned):
    """A query of a world. A loop over it yields views."""

    def __init__(self, world, terms, name=None):
        self.world = world
        self.terms = _terms(terms, "a query")
        definition = ffi.new("quern_query_def *")
        keep = ffi.new("char[]", name.encode()) if name else NULL
        definition.name = keep
        for i, term in enumerate(self.terms):
            definition.terms[i] = term.term
        out = ffi.new("quern_query **")
        check(lib.quern_query_create(world.handle, definition, out))
        self._own(world, out[0], lib.quern_query_destroy)

    def __iter__(self):
        return _walk(ffi.new("quern_query_iterator *", lib.quern_query_iterate(self.handle)), self.terms, "a query", self.world, self)

    def __len__(self):
        return lib.quern_query_count(self.handle)

    def copy(self, component=None):
        """Returns copies of all values of a component, or without one the handles, as one array."""
        parts = [(view.entities if component is None else view[component]).copy() for view in self]
        dtype = np.dtype("u8") if component is None else component.dtype
        return np.concatenate(parts) if parts else np.zeros(0, dtype)


# ---------------------------------------------------------------------------------------------- world


class World:
    """A world of entities. Close it, or use it in a `with`; schedules, queries and histories are closed before it."""

    _handle = None

    def __init__(self):
        out = ffi.new("quern_world **")
        check(lib.quern_world_create(NULL, out))
        self._handle = out[0]
        self._owner = _Owner()
        self._lent = []  # arrays that live longer than their views, and values of resources
        self._types = {}

    @property
    def handle(self):
        if self._handle is None:
            raise Error("the world is used after it was closed")
        return self._handle

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        try:
            self.close()
        except Error:
            if kind is None:
                raise  # else the frames of an exception hold arrays: the world lives as long as they do

    def close(self):
        """Destroys the world. An error while an array of a view lives: it would show memory that was freed."""
        if self._handle is None:
            return
        if self._owner.frames > 0:
            raise Error("World.close: a frame of the world is running: close the world afterwards", "QUERN_ERROR_WORLD_LOCKED")
        self._lend()
        if self._lent:
            raise Error("World.close: %d array%s of a view or resource still live%s: delete them, or keep copies instead (array.copy())"
                        % (len(self._lent), "" if len(self._lent) == 1 else "s", "s" if len(self._lent) == 1 else ""))
        for box in list(self._owner.boxes.values()):
            _destroy(box)
        lib.quern_world_destroy(self._handle)
        self._handle = None

    def __del__(self):
        if self._handle is not None and not any(one() is not None for one in self._lent):
            self.close()

    def _lend(self, *arrays):
        """Counts arrays as living until they are gone."""
        self._lent = [one for one in self._lent if one() is not None] + [weakref.ref(array) for array in arrays]

    def _register(self, caller, definition_type, handle_type, function, name, fields, options):
        """Registers a type. A name that is registered again gives the same object, as the library gives the same handle."""
        kind = _Type(name, fields)
        definition, keep = ffi.new(definition_type), [ffi.new("char[]", name.encode())]
        definition.name = keep[0]
        if kind.dtype is not None:
            definition.size_bytes, definition.alignment_bytes = kind.dtype.itemsize, kind.dtype.alignment
        _fill(definition.fields, kind.describe(keep), "fields of '%s'" % name)
        for option, value in options.items():
            setattr(definition, option, value)
        out = ffi.new(handle_type)
        check(function(self.handle, definition, out))
        return self._types.setdefault((caller, name), caller(self, out[0], kind))

    def component(self, component_name, /, _options=None, **fields):
        """Registers a component: its name and fields, such as x="f4", place=("f4", 3), title="S16", target=quern.ENTITY.
        Without fields it is a tag. `_options` are further members of quern_component_def, such as {"can_disable": True}."""
        return self._register(Component, "quern_component_def *", "quern_component *", lib.quern_component_register,
                              component_name, fields, _options or {})

    def resource(self, resource_name, /, **fields):
        """Registers a resource of zero bytes with described fields."""
        return self._register(Resource, "quern_resource_def *", "quern_resource *", lib.quern_resource_register, resource_name, fields, {})

    def relation(self, relation_name, /, **options):
        """Registers a relation. The options are members of quern_relation_def, such as levels=True, ordered=True, many=True."""
        definition, keep = ffi.new("quern_relation_def *"), ffi.new("char[]", relation_name.encode())
        definition.name = keep
        for option, value in options.items():
            setattr(definition, option, value)
        out = ffi.new("quern_relation *")
        check(lib.quern_relation_register(self.handle, definition, out))
        return Relation(self, out[0], _Type(relation_name, {}))

    @property
    def parent(self):
        """The built-in relation of the hierarchy."""
        return Relation(self, lib.quern_world_parent(self.handle), _Type("parent", {}))

    def relate(self, source, relation, target):
        check(lib.quern_entity_relate(self.handle, _entity(source), relation.relation, _entity(target)))

    def unrelate(self, source, relation, target=None):
        """Removes the target of a source, or one of several."""
        if target is None:
            check(lib.quern_entity_unrelate(self.handle, _entity(source), relation.relation))
        else:
            check(lib.quern_entity_unrelate_from(self.handle, _entity(source), relation.relation, _entity(target)))

    def target(self, source, relation):
        """Returns the target of a source; None if it has none."""
        lib.quern_error_clear()
        target = lib.quern_entity_target(self.handle, _entity(source), relation.relation).bits
        if target == 0 and _message():
            raise Error(_message())
        return target or None

    def sources(self, target, relation):
        """Returns the sources of a target, such as the children of a parent, as an array of uint64."""
        lib.quern_error_clear()
        count = lib.quern_entity_source_count(self.handle, _entity(target), relation.relation)
        if count == 0 and _message():
            raise Error(_message())
        found = np.zeros(count, "u8")
        lib.quern_entity_list_sources(self.handle, _entity(target), relation.relation, ffi.cast("quern_entity *", found.ctypes.data), count)
        return found

    def event(self, event_name, /, **fields):
        """Registers an event with fields like those of a component, or with none."""
        return self._register(Event, "quern_event_def *", "quern_event *", lib.quern_event_register, event_name, fields, {})

    def emit(self, *values):
        """Emits events between frames: Hit(1), Hit(2), or Hit and an array of its dtype."""
        event, array, count = _events(values, "World.emit")
        check(lib.quern_world_emit(self.handle, event.handle, _address(array), count))

    def prefab(self, root):
        """Captures an entity and everything below it as a prefab."""
        out = ffi.new("quern_prefab *")
        check(lib.quern_prefab_capture(self.handle, _entity(root), out))
        return Prefab(self, out[0])

    def spawn(self, prefab, *values):
        """Spawns an instance of a prefab, and returns its root; the values replace those of the root."""
        definition, keep = _spawn_def(list(map(_split_value, values)))
        out = ffi.new("quern_entity *")
        check(lib.quern_prefab_spawn(self.handle, prefab.handle, definition, out))
        del keep
        return out.bits

    def spawn_many(self, prefab, count, columns={}):
        """Spawns instances. columns: values of the roots by component, as in create_many. Returns the roots as an array."""
        rows = [(component, component.type.rows(array, count, "World.spawn_many")) for component, array in columns.items()]
        definition, keep = _spawn_def(rows)
        roots = np.zeros(count, "u8")
        check(lib.quern_prefab_spawn_many(self.handle, prefab.handle, count, definition, ffi.cast("quern_entity *", roots.ctypes.data), NULL))
        del keep
        return roots

    def __getitem__(self, name):
        """Returns a component by name, also one that a library or an archive has registered: its dtype comes from its
        described fields."""
        if (Component, name) not in self._types:
            handle = lib.quern_component_find(self.handle, name.encode())
            info = ffi.new("quern_type_info *")
            if lib.quern_component_is_null(handle):
                raise Error("the world has no component '%s'; it has %s" % (name, ", ".join(self.components())), "QUERN_ERROR_UNKNOWN_COMPONENT")
            check(lib.quern_component_get_info(self.handle, handle, info))
            self._types[Component, name] = Component(self, handle, _Type.of_info(info))
        return self._types[Component, name]

    def components(self):
        """Returns the names of all components but those that tools hide."""
        info, names = ffi.new("quern_type_info *"), []
        for i in range(lib.quern_type_count(self.handle, CONSTANTS["QUERN_TYPE_COMPONENT"])):
            check(lib.quern_type_at(self.handle, CONSTANTS["QUERN_TYPE_COMPONENT"], i, info))
            if not info.is_hidden:
                names.append(ffi.string(info.name).decode())
        return names

    def create(self, *values):
        """Creates an entity with values such as Position(1, 2); a component stands for zero bytes, or for a tag."""
        components, addresses, keep = _split_values(values)
        out = ffi.new("quern_entity *")
        check(lib.quern_entity_create_with(self.handle, components, addresses, len(values), out))
        del keep
        return out.bits

    def create_many(self, count, columns):
        """Creates entities with the same components. columns: the values by component, as arrays of its dtype, or of the
        shape (count, fields) if all fields have one type; None stands for zero bytes. Returns the handles as an array."""
        components = ffi.new("quern_component[]", [component.handle for component in columns])
        keep = [None if array is None or component.dtype is None else component.type.rows(array, count, "World.create_many")
                for component, array in columns.items()]
        addresses = ffi.new("void *[]", [_address(array) for array in keep])
        entities = np.zeros(count, "u8")
        check(lib.quern_entity_create_many(self.handle, components, ffi.cast("const void *const *", addresses), len(keep), count,
                                           ffi.cast("quern_entity *", entities.ctypes.data)))
        return entities

    def destroy(self, entities):
        """Destroys an entity, or all of an array or list."""
        handles = np.ascontiguousarray(entities, "u8").ravel()  # columns of tables have a stride
        check(lib.quern_entity_destroy_many(self.handle, ffi.cast("quern_entity *", handles.ctypes.data), len(handles)))

    def is_alive(self, entity):
        return bool(lib.quern_entity_is_alive(self.handle, _entity(entity)))

    def has(self, entity, component):
        return bool(lib.quern_entity_has(self.handle, _entity(entity), component.handle))

    def get(self, entity, component):
        """Returns a copy of a value, as a record; None if the entity lacks the component."""
        lib.quern_error_clear()
        address = lib.quern_entity_get(self.handle, _entity(entity), component.handle)
        if address == NULL:
            if _message():
                raise Error(_message())
            return None
        return _array_at(address, 1, component.dtype, False).copy()[0]

    def set(self, entity, *values):
        """Sets values such as Position(1, 2), and adds the components that are missing."""
        for component, record in map(_split_value, values):
            check(lib.quern_entity_set(self.handle, _entity(entity), component.handle, _address(record)))

    def remove(self, entity, component):
        check(lib.quern_entity_remove(self.handle, _entity(entity), component.handle))

    def query(self, *terms, name=None):
        """Creates a query of terms; a component alone stands for read(component)."""
        return Query(self, terms, name)

    def hash(self):
        return lib.quern_world_hash(self.handle)

    def save(self, schedules=()):
        """Returns an archive of the world as bytes."""
        definition, buffer = ffi.new("quern_save_def *"), ffi.new("quern_byte_buffer *")
        _fill(definition.schedules, [schedule.handle for schedule in schedules], "World.save: schedules")
        try:
            check(lib.quern_world_save(self.handle, lib.quern_sink_bytes(buffer), definition))
            return bytes(ffi.buffer(buffer.bytes, buffer.size_bytes))
        finally:
            lib.quern_byte_buffer_release(buffer)

    def load(self, archive, schedules=(), leave_out_missing=False):
        """Loads an archive from bytes. Returns the number of entities. The world has the types of the archive, or leaves them
        out if asked to."""
        definition, report = ffi.new("quern_load_def *"), ffi.new("quern_load_report *")
        definition.leave_out_missing = leave_out_missing
        _fill(definition.schedules, [schedule.handle for schedule in schedules], "World.load: schedules")
        data = ffi.from_buffer(archive)
        check(lib.quern_world_load(self.handle, lib.quern_source_bytes(data, len(data)), definition, report))
        return report.entity_count


    @classmethod
    def of_archive(cls, archive):
        """Returns a new world with the contents of an archive, whose types it learns from the archive."""
        world = cls()
        data = ffi.from_buffer(archive)
        check(lib.quern_world_register_archived(world.handle, lib.quern_source_bytes(data, len(data)), NULL))
        world.load(archive)
        return world


def _split_value(value):
    if isinstance(value, Component):
        return value, None
    if isinstance(value, tuple) and len(value) == 2 and isinstance(value[0], Component):
        return value
    raise Error("a value is a component, or a component that is called with the values of its fields, and %r is neither" % (value,))


def _split_values(values):
    pairs = [_split_value(value) for value in values]
    components = ffi.new("quern_component[]", [component.handle for component, _ in pairs])
    addresses = ffi.new("void *[]", [_address(record) for _, record in pairs])
    return components, ffi.cast("const void *const *", addresses), (pairs, addresses)


# ---------------------------------------------------------------------------------------------- systems


class Jobs(_Owned):
    """A pool of threads, for systems that are written in C. 0 threads: one per processor. Inspectors that use it are closed
    with it."""

    _word = "pool of threads"

    def __init__(self, threads=0):
        self._owner = _Owner()
        out = ffi.new("quern_jobs **")
        definition = ffi.new("quern_jobs_def *")
        definition.thread_count = threads
        check(lib.quern_jobs_create(definition, out))
        self._own(self, out[0], lib.quern_jobs_destroy)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class Context:
    """What a system can use besides its view, while its function runs."""

    def __init__(self, context, system):
        self._context, self._system = context, system
        self._arrays = []  # of resources to write

    @property
    def handle(self):
        if self._context is None:
            raise Error("system '%s': the context is used after the function has returned" % self._system.name)
        return self._context

    @property
    def is_open(self):
        return self._context is not None

    @property
    def delta_seconds(self):
        return lib.quern_context_delta_seconds(self.handle)

    @property
    def frame(self):
        return lib.quern_context_frame_index(self.handle)

    @property
    def world(self):
        """The world, in exclusive systems."""
        if not self._system.is_exclusive:
            raise Error("system '%s': only an exclusive system has the world; record commands instead" % self._system.name,
                        "QUERN_ERROR_UNDECLARED_ACCESS")
        return self._system.schedule.world

    def query(self, index=0):
        """Yields the views of a further query of the system."""
        if index >= len(self._system.queries):
            raise Error("system '%s' has %d further queries, and no number %d" % (self._system.name, len(self._system.queries), index))
        iterator = ffi.new("quern_query_iterator *", lib.quern_context_query(self.handle, index))
        return _walk(iterator, self._system.queries[index], "system '%s'" % self._system.name, self._system.schedule.world, self)

    def lookup(self, entity, component):
        """Returns a copy of the value of another entity; None if it lacks the component or is not alive."""
        if component not in self._system.lookups:
            raise Error("system '%s' does not declare lookups of '%s'" % (self._system.name, component.name), "QUERN_ERROR_UNDECLARED_ACCESS")
        address = lib.quern_context_lookup(self.handle, _entity(entity), component.handle)
        return None if address == NULL else _array_at(address, 1, component.dtype, False).copy()[0]

    def resource(self, resource):
        """Returns the value of a resource as a record, to write if the system declares that, and else a copy."""
        if resource not in self._system.resources:
            raise Error("system '%s' does not declare the resource '%s'" % (self._system.name, resource.name), "QUERN_ERROR_UNDECLARED_ACCESS")
        if self._system.resources[resource] == CONSTANTS["QUERN_ACCESS_WRITE"]:
            array = _array_at(lib.quern_context_resource_write(self.handle, resource.handle), 1, resource.dtype, True)
            self._arrays.append(weakref.ref(array))
            return array[0]
        return _array_at(lib.quern_context_resource(self.handle, resource.handle), 1, resource.dtype, False).copy()[0]

    def events(self, event):
        """Returns the events since the system last ran, which it reads (events=[...]), as an array of copies, in order. Of an
        event without fields, the number of them."""
        self._declared(event, self._system.events, "read")
        iterator = ffi.new("quern_event_iterator *")
        lib.quern_context_events(self.handle, event.handle, iterator)
        if event.dtype is None:
            return lib.quern_context_event_count(self.handle, event.handle)
        blocks = []
        while lib.quern_event_next(iterator):
            blocks.append(_array_at(iterator.block.values, iterator.block.count, event.dtype, False).copy())
        return np.concatenate(blocks) if blocks else np.zeros(0, event.dtype)

    def emit(self, *values):
        """Emits events, which the system declares (emits=[...]): Hit(1), Hit(2), or Hit and an array of its dtype."""
        event, array, count = _events(values, "system '%s'" % self._system.name)
        self._declared(event, self._system.emits, "emit")
        if not lib.quern_context_emit(self.handle, event.handle, _address(array), count):
            raise Error(_message())

    def _declared(self, event, events, verb):
        if event not in events:
            raise Error("system '%s' does not declare that it %ss the event '%s'" % (self._system.name, verb, event.name), "QUERN_ERROR_UNDECLARED_ACCESS")

    # Commands: changes that the next sync point makes.

    def relate(self, source, relation, target):
        check(lib.quern_commands_relate(lib.quern_context_commands(self.handle), _entity(source), relation.relation, _entity(target)))

    def unrelate(self, source, relation, target=None):
        commands = lib.quern_context_commands(self.handle)
        if target is None:
            check(lib.quern_commands_unrelate(commands, _entity(source), relation.relation))
        else:
            check(lib.quern_commands_unrelate_from(commands, _entity(source), relation.relation, _entity(target)))

    def spawn(self, prefab, *values):
        definition, keep = _spawn_def(list(map(_split_value, values)))
        out = ffi.new("quern_entity *")
        check(lib.quern_commands_spawn(lib.quern_context_commands(self.handle), prefab.handle, definition, out))
        del keep
        return out.bits

    def create(self, *values):
        components, addresses, keep = _split_values(values)
        out = ffi.new("quern_entity *")
        check(lib.quern_commands_create_with(lib.quern_context_commands(self.handle), components, addresses, len(values), out))
        del keep
        return out.bits

    def destroy(self, entity):
        check(lib.quern_commands_destroy(lib.quern_context_commands(self.handle), _entity(entity)))

    def set(self, entity, *values):
        for component, record in map(_split_value, values):
            check(lib.quern_commands_set(lib.quern_context_commands(self.handle), _entity(entity), component.handle, _address(record)))

    def remove(self, entity, component):
        check(lib.quern_commands_remove(lib.quern_context_commands(self.handle), _entity(entity), component.handle))


class _System:
    """A system whose function is in Python. The schedule keeps it, and so the callback that the library calls."""

    def __init__(self, schedule, function, name, terms, queries, lookups, resources, events, emits, flags):
        self.schedule, self.function, self.name, self.terms = schedule, function, name, terms
        self.events, self.emits = events, emits
        self.queries, self.lookups, self.resources = queries, lookups, resources
        self.is_exclusive = bool(flags & CONSTANTS["QUERN_SYSTEM_EXCLUSIVE"])
        self.callback = ffi.callback("quern_view_callback *", self.run, onerror=self.fail)

    def run(self, context, view):
        if self.schedule.error is not None:
            return  # the frame has failed: the rest of it does nothing
        context = Context(context, self)
        view = View(view, self.terms, "system '%s'" % self.name, self.schedule.world) if self.terms else None
        try:
            self.function(context, *([] if view is None else [view]))
        finally:
            context._context = None
            kept = [array for array in (one() for one in context._arrays) if array is not None]
            self.schedule.world._lend(*kept)
            keeps_rows = view is not None and view._end()
        if keeps_rows or kept:
            raise Error("system '%s' keeps an array of %s: it would show memory that changes and is freed; keep a copy "
                        "(array.copy())" % (self.name, "its view" if keeps_rows else "a resource"))

    def fail(self, kind, error, _):
        if hasattr(error, "add_note"):
            error.add_note("in system '%s' of Quern; the rest of the frame was skipped" % self.name)
        self.schedule.error = error


class Schedule(_Owned):
    """Systems in phases that run over a world, frame after frame."""

    def __init__(self, world, phases=(), fixed_step=None):
        self.world, self.error, self._systems = world, None, {}
        definition, keep = ffi.new("quern_schedule_def *"), [ffi.new("char[]", phase.encode()) for phase in phases]
        _fill(definition.phases, keep, "Schedule: phases")
        out = ffi.new("quern_schedule **")
        check(lib.quern_schedule_create(world.handle, definition, out))
        self.phases = list(phases) or ["update"]
        self._own(world, out[0], lib.quern_schedule_destroy)
        if fixed_step is not None:
            for phase in range(len(self.phases)):
                check(lib.quern_schedule_set_fixed_step(self.handle, phase, fixed_step, 4))

    def system(self, *terms, name=None, phase=None, before=(), after=(), queries=(), lookups=(), resources=(), events=(), emits=(),
               exclusive=False, **options):
        """Adds the decorated function as a system: function(context, view), or function(context) without terms.

        resources: a Resource is read, write(resource) is written. queries: lists of terms, for Context.query. events: those that
        Context.events reads; emits: those that Context.emit emits. exclusive: the
        system runs alone and may change Context.world at once. Further options are members of quern_system_def."""

        def add(function):
            self._add(function, name or function.__name__, terms, phase, {"before": before, "after": after}, queries, lookups, resources,
                      list(events), list(emits), exclusive, options)
            return function

        return add

    def _add(self, function, name, terms, phase, orders, queries, lookups, resources, events, emits, exclusive, options):
        if phase is not None and phase not in self.phases:
            raise Error("system '%s': the schedule has no phase '%s'; it has %s" % (name, phase, ", ".join(self.phases)))
        flags = CONSTANTS["QUERN_SYSTEM_EXCLUSIVE" if exclusive else "QUERN_SYSTEM_MAIN_THREAD"] | options.pop("flags", 0)
        access = dict(one if isinstance(one, tuple) else (one, CONSTANTS["QUERN_ACCESS_READ"]) for one in resources)
        system = _System(self, function, name, _terms(terms, "system '%s'" % name), [_terms(query, "system '%s'" % name) for query in queries],
                         list(lookups), access, events, emits, flags)
        definition, keep = ffi.new("quern_system_def *"), [ffi.new("char[]", name.encode())]
        definition.name, definition.run, definition.flags = keep[0], system.callback, flags
        definition.phase = self.phases.index(phase) if phase is not None else 0
        lists = {"terms": [term.term for term in system.terms], "queries": [{"terms": [term.term for term in query]} for query in system.queries],
                 "lookups": [{"component": component.handle} for component in system.lookups],
                 "resources": [{"resource": resource.handle, "access": how} for resource, how in access.items()],
                 "reads_events": [event.handle for event in events], "emits": [event.handle for event in emits]}
        for key, names in orders.items():
            lists[key] = [ffi.new("char[]", other.encode()) for other in ([names] if isinstance(names, str) else names)]
            keep += lists[key]
        for key, values in lists.items():
            _fill(getattr(definition, key), values, "system '%s': %s" % (name, key))
        for key, value in options.items():
            setattr(definition, key, value)
        check(lib.quern_schedule_add_system(self.handle, definition, NULL))
        self._systems[name] = system

    def run(self, delta_seconds, jobs=None):
        """Runs a frame. An exception in a system skips the rest of the frame's Python, and is raised here."""
        self._run(jobs, lib.quern_schedule_run, self.handle, jobs.handle if jobs is not None else NULL, delta_seconds)

    def _run(self, jobs, function, *arguments):
        """Calls a function that runs a frame. Raises the exception of a system, or the error of the frame."""
        self.error = None
        with self.world._owner, jobs._owner if jobs is not None else _Owner():
            result = function(*arguments)
        if self.error is not None:
            error, self.error = self.error, None
            raise error
        check(result)


class History(_Owned):
    """The last frames of a world and of its schedules."""

    def __init__(self, world, schedules=(), frames=16):
        self.world, self._schedules = world, list(schedules)
        definition, out = ffi.new("quern_history_def *"), ffi.new("quern_history **")
        definition.frame_count = frames
        _fill(definition.schedules, [schedule.handle for schedule in self._schedules], "History: schedules")
        check(lib.quern_history_create(world.handle, definition, out))
        self._own(world, out[0], lib.quern_history_destroy, self._schedules)

    def save(self, frame, jobs=None):
        check(lib.quern_history_save(self.handle, frame, jobs.handle if jobs is not None else NULL))

    def restore(self, frame, jobs=None):
        check(lib.quern_history_restore(self.handle, frame, jobs.handle if jobs is not None else NULL))

    @property
    def frames(self):
        """The numbers of the kept frames, in ascending order."""
        count = lib.quern_history_list_frames(self.handle, NULL, 0)
        out = ffi.new("uint64_t[]", max(count, 1))
        lib.quern_history_list_frames(self.handle, out, count)
        return list(out[0:count])

    def table(self, *components):
        """Returns a row for each frame and each entity that has the components, as an array with the columns frame, entity,
        and a column COMPONENT.FIELD for each field: for numpy, for pandas.DataFrame, and for plots. The world is in the newest
        frame afterwards."""
        columns = [("frame", "u8"), ("entity", "u8")]
        for component in components:
            columns += [("%s.%s" % (component.name, field), component.dtype.fields[field][0]) for field in component.dtype.names]
        query, parts = Query(self.world, components), []
        frames = self.frames
        for frame in frames:
            self.restore(frame)
            for view in query:
                part = np.zeros(view.count, columns)
                part["frame"], part["entity"] = frame, view.entities
                for component in components:
                    for field in component.dtype.names:
                        part["%s.%s" % (component.name, field)] = view[component][field]
                parts.append(part)
        query.close()
        return np.concatenate(parts) if parts else np.zeros(0, columns)


class Inspector(_Owned):
    """Shows a running world in a browser, at `url`. The loop of the program:

        while True:
            if inspector.update():  # False while the page has paused the program
                history.save(inspector.frame)  # with a history, the page can go back
                inspector.run(1 / 60)
    """

    def __init__(self, world, schedule, history=None, jobs=None, port=0):
        if not hasattr(lib, "quern_inspector_create"):
            raise Error("this build of Quern has no inspector, which needs POSIX", "QUERN_ERROR_UNAVAILABLE")
        self.frame, self._schedule, self._jobs = 0, schedule, jobs
        definition, out = ffi.new("quern_inspector_def *"), ffi.new("quern_inspector **")
        definition.world, definition.schedule = world.handle, schedule.handle
        if history is not None:
            definition.history = history.handle
        if jobs is not None:
            definition.jobs = jobs.handle
        check(lib.quern_inspector_create(definition, out))
        self._own(world, out[0], lib.quern_inspector_destroy, [used for used in (schedule, history, jobs) if used is not None])
        server = ffi.new("quern_inspect_server_def *")
        server.port = port
        check(lib.quern_inspector_serve(out[0], server))

    @property
    def url(self):
        return ffi.string(lib.quern_inspector_url(self.handle)).decode()

    def update(self):
        """Answers requests of the page. Returns whether to run a frame now, which has the number `frame`."""
        frame = ffi.new("uint64_t *", self.frame)
        runs = bool(lib.quern_inspector_update(self.handle, frame))
        self.frame = frame[0]
        return runs

    def run(self, delta_seconds):
        """Runs a frame, like Schedule.run."""
        self._schedule._run(self._jobs, lib.quern_inspector_run, self.handle, delta_seconds)
        self.frame += 1
