/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_STORAGE_TYPE_INTERNAL_H
#define QUERN_CORE_STORAGE_TYPE_INTERNAL_H

/* The flags of component types. The tables QUERN__ROW_FLAGS and QUERN__COLUMN_FLAGS are the only place that lists
 * them: registration, archetypes, reflection, hashes, archives, replays and the kit's JSON iterate over their
 * entries. docs/internals.md lists the steps to add a flag. */

#include "core/base/base_internal.h"
#include "core/base/containers.h"
#include "core/base/handle.h"
#include "core/platform/compiler.h"

#include <quern/component.h>

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct quern__column_flag {
    const char *name;    /* name of the member in quern_component_def and quern_type_info */
    const char *with;    /* predicate of "component 'x' ..." in messages, for components with the flag */
    const char *without; /* the same for components without the flag */
    uint16_t def_offset_bytes;  /* offset of the member in quern_component_def */
    uint16_t info_offset_bytes; /* offset of the member in quern_type_info */
    uint8_t bit;                /* bit in quern__type.flags */
    uint8_t replay_bit;         /* bit in the flags of a recorded type; 0: replays ignore the flag */
    bool is_layout; /* registering the component again with another value fails with LAYOUT_MISMATCH */
    /* only row flags: */
    uint8_t archive_bit; /* bit in quern__type_section.flags; equal in all versions of the archive format */
    const char *list_name; /* JSON key, in an entity, of the list of components with a set row bit */
} quern__column_flag;

/* Each entry of the tables has the end of the bit's name (QUERN__FLAG_...), the name of a bool member of
 * quern_component_def and quern_type_info, and initialisers of quern__column_flag.
 *
 * A row flag means that each row has a state of its own. Archetypes keep a bit column for each component with such a
 * flag; the kind of the bit column is the number of the flag (row_bits.h). Archives save these bits after the
 * columns, hashes include them, and two functions list them for the JSON of an entity
 * (core/entities/entities_internal.h). */
#define QUERN__ROW_FLAGS(FLAG)                                                           \
    FLAG(CAN_DISABLE, can_disable, .is_layout = true, .replay_bit = 1, .archive_bit = 1, \
         .list_name = "disabled", .with = "can be disabled", .without = "cannot be disabled")

#define QUERN__COLUMN_FLAGS(FLAG)                                                   \
    QUERN__ROW_FLAGS(FLAG)                                                          \
    FLAG(ROW_CHANGES, row_changes, .is_layout = true, .with = "has changes by row", \
         .without = "has changes by chunk")                                         \
    FLAG(IS_HIDDEN, is_hidden, .with = "is not to be shown by tools", .without = "may be shown by tools")

/* Index of a flag in quern__column_flags. */
#define QUERN__FLAG_NUMBER(flag, ...) QUERN__FLAG_NUMBER_##flag,
enum { QUERN__COLUMN_FLAGS(QUERN__FLAG_NUMBER) QUERN__COLUMN_FLAG_COUNT };

#define QUERN__ROW_FLAG_NUMBER(flag, ...) QUERN__ROW_FLAG_NUMBER_##flag,
enum { QUERN__ROW_FLAGS(QUERN__ROW_FLAG_NUMBER) QUERN__ROW_FLAG_COUNT };
enum { QUERN__ROW_FLAG_BITS = (1 << QUERN__ROW_FLAG_COUNT) - 1 };

#define QUERN__FLAG_BIT(flag, ...) QUERN__FLAG_##flag = 1 << QUERN__FLAG_NUMBER_##flag,
enum { QUERN__COLUMN_FLAGS(QUERN__FLAG_BIT) QUERN__FLAG_NONE = 0 };

/* Descriptions of all flags, by flag number. Row flags precede all others. */
extern const quern__column_flag quern__column_flags[QUERN__COLUMN_FLAG_COUNT];

/* Returns the number of bit columns that archetypes keep for a component with these flags. */
static inline uint32_t quern__column_flags_bit_column_count(uint32_t flags)
{
    return quern__count_bits_32(flags & QUERN__ROW_FLAG_BITS);
}

/* Translate the flags of a type to the bits that represent them in an archive or a replay. */
uint32_t quern__column_flags_to_archive(uint32_t flags);
uint32_t quern__column_flags_to_replay(uint32_t flags);

/* Returns the flags that bits of an archive represent. Unknown bits are ignored. */
uint8_t quern__column_flags_from_archive(uint32_t archive_bits);

/* Types of values, for components, resources and events: layout, hooks and described fields. Values are constructed,
 * copied, moved, destroyed, hashed and compared only by the functions below. They handle types with and without
 * hooks. */

typedef struct quern__list_slots quern__list_slots;

typedef struct quern__type {
    char name[QUERN_MAX_NAME_BYTES + 1];
    uint32_t size_bytes; /* 0 for tags */
    uint32_t alignment_bytes;
    quern_hooks hooks;
    quern_entity_hooks entity_hooks; /* of components */
    uint64_t type_id;                /* identity of the type in its language; 0: none */
    quern_field *
        fields; /* NULL if none; counts are at least 1; the allocation also holds names, units and values */
    uint32_t field_count;
    size_t fields_bytes;    /* size of the allocation of `fields` */
    bool has_entity_fields; /* also if elements of a list are or have handles */
    /* Where lists and strings are in a value, in the allocation of `fields`; NULL: nowhere. */
    const struct quern__list_slots *lists;
    /* Whether values own nothing but their described lists, although the type has hooks. */
    bool owns_only_lists;
    void *default_value; /* value of a newly constructed component; NULL: see quern__type_construct */
    uint8_t flags;       /* QUERN__FLAG_ bits; resources and events have only IS_HIDDEN */
    char type_name[QUERN_MAX_NAME_BYTES + 1]; /* name of the C type; "": unknown */
} quern__type;

/* Checks and copies the members that all definitions of types have. `what`: "component", "resource" or "event", for
 * messages. `fields`: as in a definition.
 * Errors: INVALID_ARGUMENT, BAD_ALIGNMENT, OUT_OF_MEMORY. After an error the type holds no memory. */
quern_result quern__type_init(quern__type *type, const quern_allocator *allocator, const char *what,
                              const char *name, const char *type_name, uint32_t size_bytes,
                              uint32_t alignment_bytes, const quern_hooks *hooks,
                              const quern_field *fields);

void quern__type_release(quern__type *type, const quern_allocator *allocator);

/* Returns whether the type has hooks. Without hooks its values are plain bytes. */
static inline bool quern__hooks_exist(const quern_hooks *hooks)
{
    return hooks->construct != NULL || hooks->copy != NULL || hooks->move != NULL || hooks->destroy != NULL;
}

/* Returns whether changes of entities call functions of the type: see core/reactions/hook.h. */
static inline bool quern__entity_hooks_exist(const quern_entity_hooks *hooks)
{
    return hooks->on_add != NULL || hooks->on_set != NULL || hooks->on_remove != NULL;
}

/* Returns whether values may own resources, such as memory. Such values are never copied byte by byte. */
static inline bool quern__hooks_own_resources(const quern_hooks *hooks)
{
    return hooks->copy != NULL || hooks->move != NULL || hooks->destroy != NULL;
}

/* Returns whether values have parts that described fields do not cover, such as memory that hooks know. Only of other types
 * can values be made from fields. */
static inline bool quern__type_owns_unknown(const quern__type *type)
{
    return quern__hooks_own_resources(&type->hooks) && !type->owns_only_lists;
}

/* Returns whether the type was registered for the C type of this name, or for an unknown one. Ignores const, struct
 * and similar keywords, and leading namespaces. "A = B" is a type with two names. */
bool quern__type_has_c_name(const quern__type *type, const char *type_name);

/* Returns the size of one element of a field of this type in bytes, or 0 if the type is invalid. */
uint32_t quern__field_bytes(quern_field_type type);

/* Returns whether a field type is an integer, and its range. The range of other types is 0 to 0. The greatest value
 * of U64 is returned as -1, which has the same bits. */
bool quern__field_integer_range(quern_field_type type, int64_t *out_least, int64_t *out_greatest);

/* Compares the type's fields with `fields`, an array of field_count fields, by name, type, offset and count. Returns
 * the index of the first difference, or field_count if there is none. */
uint32_t quern__type_different_field(const quern__type *type, const quern_field *fields);

/* Checks a type that is registered again under a known name. Fails with LAYOUT_MISMATCH unless size, alignment,
 * hooks, and the names, types, offsets and counts of fields are equal. `what`: as in quern__type_init. */
quern_result quern__type_check_same_layout(const quern__type *known, const quern__type *type,
                                           const char *what);

bool quern__type_same_layout(const quern__type *a, const quern__type *b);

/* Returns whether values of one type are values of the other one as they are: sizes, alignments and described fields are
 * equal, and either both types have a hook or none of them. Everything that rooms derive from a type is then equal. */
bool quern__type_same_values(const quern__type *a, const quern__type *b);

/* Checks that values of the C or C++ type of a definition can be values of a known type. If either has no identity, as in
 * C, the definition of the known type counts: it may have another name of its C type, a greater alignment, and hooks that
 * the other one lacks. Fails with LAYOUT_MISMATCH. `what`: as in quern__type_init. */
quern_result quern__type_check_usable(const quern__type *known, const quern_component_def *def,
                                      const char *what);

/* A hash table from the identities of types, which are hashes, to the bits of their handles. Open addressing with linear
 * probing, at most half full; entries are never removed. A table with all members zero is empty.
 *
 * Callbacks search it in each call by type, so it hashes nothing again: quern__map, which does, would need 93
 * instructions instead of 81 for a lookup by type (callgrind, gcc 12, -O2). */
typedef struct quern__type_id {
    uint64_t type_id; /* 0: empty */
    uint32_t bits;
} quern__type_id;

typedef struct quern__type_ids {
    quern__type_id *slots;
    uint32_t capacity; /* 0 or a power of two */
    uint32_t count;
} quern__type_ids;

/* Makes room for one more entry. Returns false, with the table unchanged, if out of memory. */
bool quern__type_ids_reserve(quern__type_ids *ids, const quern_allocator *allocator);

void quern__type_ids_release(quern__type_ids *ids, const quern_allocator *allocator);

/* Returns the bits of the handle, or 0 if the table lacks the identity. */
static inline uint32_t quern__type_ids_find(const quern__type_ids *ids, uint64_t type_id)
{
    if (ids->capacity == 0) return 0;
    for (uint32_t i = (uint32_t)(type_id >> 32);; i++) {
        const quern__type_id *slot = &ids->slots[i & (ids->capacity - 1)];
        if (QUERN__LIKELY(slot->type_id == type_id)) return slot->bits;
        if (slot->type_id == 0) return 0;
    }
}

/* Makes room for the identity of the redefined type with a handle. Fails with LAYOUT_MISMATCH if the identity is that of
 * another type, and with OUT_OF_MEMORY. `what`: as in quern__type_init. */
quern_result quern__type_ids_reserve_for(quern__type_ids *ids, const quern_allocator *allocator,
                                         const quern__type *type, uint32_t handle_bits, const char *what);

/* Makes the table lack all identities of a type, whose layout has changed: types with these identities have the old one. */
void quern__type_ids_forget(quern__type_ids *ids, uint32_t handle_bits);

/* Gives the type an identity, if it has none, and adds the identity to a table with room for one more. */
void quern__type_identify(quern__type *type, quern__type_ids *ids, uint64_t type_id, uint32_t handle_bits);

/* Constructs `count` consecutive values in uninitialised memory: copies of the default value, or values of the hook, or
 * zero bytes. */
void quern__type_construct(const quern__type *type, void *values, uint32_t count);

/* Copies `count` consecutive values to uninitialised memory. */
void quern__type_copy(const quern__type *type, void *targets, const void *sources, uint32_t count);

/* Stores `count` consecutive values of a caller in uninitialised memory. Copies them if the type has a copy hook;
 * otherwise the caller gives them away, and they are moved. */
void quern__type_accept(const quern__type *type, void *targets, const void *sources, uint32_t count);

/* Moves `count` consecutive values to uninitialised memory. The sources become uninitialised. */
void quern__type_move(const quern__type *type, void *targets, void *sources, uint32_t count);

/* Destroys `count` consecutive values. Their memory becomes uninitialised. */
void quern__type_destroy(const quern__type *type, void *values, uint32_t count);

/* Continues a hash with a value: with its described fields, or with all bytes if none is described. Entity handles in
 * described fields are hashed as quern__entity_to_relative. */
uint64_t quern__type_hash(const quern__type *type, uint64_t hash, const void *value,
                          uint32_t first_handle_high);

/* Returns whether two values are equal in their described fields, or in all bytes if no field is described. */
bool quern__type_same_value(const quern__type *type, const void *a, const void *b);

/* Returns whether a described field overlaps these bytes of a value. */
bool quern__type_has_field_in(const quern__type *type, uint32_t offset_bytes, uint32_t size_bytes);

typedef quern_entity quern__remap_function(void *argument, quern_entity entity);

/* Calls `remap` for each handle in described fields and ignores the results. */
void quern__type_visit_entities(const quern__type *type, const void *value, quern__remap_function *remap,
                                void *argument);

/* Returns a provisional handle from the described fields of `count` values, or the null handle if there is none. */
quern_entity quern__type_find_provisional(const quern__type *type, const void *values, uint32_t count);

/* Checks values for calls that change a world immediately. Fails with PROVISIONAL_ENTITY if a described field of one
 * of `count` values has a provisional handle: no later step would replace it. `commands`: the deferred call that
 * replaces provisional handles, for the message. */
quern_result quern__type_check_provisional(const quern__type *type, const void *values, uint32_t count,
                                           const char *commands);

/* Replaces each handle in described fields by the result of `remap`. Of lists: see quern__field_visit_lists. */
void quern__type_remap(const quern__type *type, void *value, quern__remap_function *remap, void *argument);

/* The same without lists, for copies of values as bytes. */
void quern__type_remap_fields(const quern__type *type, void *value, quern__remap_function *remap,
                              void *argument);

/* Field elements of any type as 64 bits: unsigned integers are zero-extended, signed integers are sign-extended. F32
 * and F64 are stored as their bit patterns, which preserves the payload of a NaN. A bool is its byte. */

/* Load and store one element at `at`, which need not be aligned. */
uint64_t quern__field_load(quern_field_type type, const char *at);
void quern__field_store(quern_field_type type, char *at, uint64_t bits);

/* Returns an element as a double. Integers beyond the precision of a double are rounded. */
double quern__field_real(quern_field_type type, uint64_t bits);

/* Converts a number from one field type to another. To F32 or F64: rounds to nearest. To an integer: truncates the
 * fraction. To bool: true unless the number is 0. Returns false if the number is out of the target's range. */
bool quern__field_convert(quern_field_type from, uint64_t bits, quern_field_type to, uint64_t *out_bits);

/* The registry of a world's component types, with the list of archetypes that have each component. */

/* Legitimate writes of a component outside of system views, in builds with QUERN_CHECKS. The guards of
 * sched/frame/schedule_internal.h detect other writes, which use pointers that are no longer valid. Atomic, because several
 * threads may get values at the same time. */
typedef struct quern__outside_writes {
    /* 1 + structure_version of the storage when a pointer for writing was last given out; 0: never */
    _Atomic uint64_t pointer_structure;
    /* 1 + guard_period of the storage when a call last wrote values; 0: never */
    _Atomic uint64_t written_in_period;
} quern__outside_writes;

/* Owner of a managed component: one that the world adds and removes itself, because it belongs to a relation or is
 * internal. Users must not add or remove it. */
typedef struct quern__managed {
    struct quern__relation *relation; /* relation that has this component or level tag; NULL: none */
    uint32_t level;                   /* level of a level tag; 0: the component is no level tag */
    bool is_hidden;                   /* quern__components_find skips it */
} quern__managed;

typedef struct quern__component {
    quern__type type;
    /* Indices of the archetypes with this component, ascending because archetypes are appended when created. */
    QUERN__ARRAY(uint32_t) archetypes;
    /* The required components, as listed, and the indices of these and of all that they require, ascending. Both are
     * fixed when the component is registered. */
    QUERN__ARRAY(quern_component) listed_required;
    QUERN__ARRAY(uint16_t) required;
    uint32_t filter_count; /* number of queries with a change filter on it, plus 1 for a history */
    uint32_t ref_count;    /* number of getters with refs */
    bool is_managed;
    quern__managed managed; /* zero unless is_managed */
    /* 1 + index of the relation's component if this one holds the values of its edges, which requires it; otherwise 0.
     * Rows get and lose it only with their targets. */
    uint32_t edge_owner;
    quern__outside_writes outside_writes;
} quern__component;

enum { QUERN__NAME_HINTS = 64 };

typedef struct quern__components {
    QUERN__ARRAY(quern__component *) list; /* by index; components never move in memory */
    uint32_t first_bits;         /* bits of the handle of index 0; those of index i are i larger */
    uint32_t first_filter_count; /* filter_count of a newly registered component */
    uint32_t largest_bytes;      /* size of the largest type registered so far */
    bool has_requirements;       /* whether some component requires others */
    quern__type_ids type_ids;    /* identities of components */
    /* By the address of a name, the index of the component that it led to last, plus one: most names are literals. */
    _Atomic uint16_t hints[QUERN__NAME_HINTS];
} quern__components;

void quern__components_release(quern__components *components, const quern_allocator *allocator);

quern_result quern__components_register(quern__components *components, const quern_allocator *allocator,
                                        const quern_component_def *def, quern_component *out_component);

/* Creates the type that a definition would give a component, with all checks of its registration. Errors: those of
 * quern__components_register, and LAYOUT_MISMATCH also for another name, other flags or required components.
 * quern__type_release releases it. */
quern_result quern__components_redefine(const quern__components *components,
                                        const quern_allocator *allocator, uint32_t component_index,
                                        const quern_component_def *def, quern__type *out_type);

/* Registers a managed component. Its name need not be unique. Errors: those of quern__components_register, except
 * LAYOUT_MISMATCH. */
quern_result quern__components_add_managed(quern__components *components, const quern_allocator *allocator,
                                           const quern_component_def *def, const quern__managed *managed);

/* Unregisters the components registered last, until `count` remain. Precondition: no archetype has them. */
void quern__components_drop_last(quern__components *components, const quern_allocator *allocator,
                                 uint32_t count);

/* Returns the component with a name, or the null handle. Skips hidden components. */
quern_component quern__components_find(const quern__components *components, const char *name);

/* Returns the component that a name of `bytes` bytes, which no component has, probably stands for. */
quern_suggestion quern__components_suggest(const quern__components *components, const char *name,
                                           size_t bytes);

/* Returns the handle of the component with an index. */
quern_component quern__component_handle(const quern__components *components, uint32_t index);

quern_result quern__components_fail_unknown(const quern__components *components, quern_component component);

/* Returns the index of a component. For handles that are not of this world, returns a number that is no index. */
static inline uint32_t quern__components_unchecked_index(const quern__components *components,
                                                         quern_component component)
{
    return component.bits - components->first_bits;
}

/* Fails with UNKNOWN_COMPONENT if the handle is not of this world. The message distinguishes null and foreign
 * handles. */
static inline quern_result quern__components_check(const quern__components *components,
                                                   quern_component component)
{
    if (quern__components_unchecked_index(components, component) < components->list.count) return QUERN_OK;
    return quern__components_fail_unknown(components, component);
}

/* Returns the index of a component. Precondition: quern__components_check succeeded for it. */
static inline uint32_t quern__component_index(quern_component component)
{
    return quern__handle_index(component.bits);
}

static inline const quern__type *quern__components_type(const quern__components *components, uint32_t index)
{
    return &components->list.items[index]->type;
}

/* Returns whether the component was registered with a flag (QUERN__FLAG_...). */
static inline bool quern__components_has_flag(const quern__components *components, uint32_t index,
                                              uint32_t flag)
{
    return (quern__components_type(components, index)->flags & flag) != 0;
}

/* Fails with INVALID_ARGUMENT if the component was registered without this flag (QUERN__FLAG_...). Flag 0 succeeds. */
quern_result quern__components_check_flag(const quern__components *components, uint32_t index,
                                          uint32_t flag);

/* Fails with INVALID_ARGUMENT: the component holds values of edges, and a call would add it by itself. */
quern_result quern__components_fail_edge_value(const quern__components *components, uint32_t index);

/* Fails with INVALID_ARGUMENT if the component holds a list of values of edges, one per target, which no call may replace
 * as a whole. */
quern_result quern__components_check_edge_list(const quern__components *components, uint32_t index);

/* Returns whether the component holds the values of a relation's edges. */
static inline bool quern__components_is_edge_value(const quern__components *components, uint32_t index)
{
    return components->list.items[index]->edge_owner != 0;
}

static inline bool quern__components_is_managed(const quern__components *components, uint32_t index)
{
    return components->list.items[index]->is_managed;
}

/* Required components (quern_component_def.required).
 *
 * Invariant: the set of each archetype with a component has all components that it requires. Sets are formed from
 * other sets or from lists, in four places: lists of a call (create.c), one component more or less
 * (storage.c), edit sequences (resolve.c), and archives (load.c). Each of them completes its set by the functions
 * here. All other sets differ from the set of an archetype only in components that the world manages, which no
 * component may require. */

/* Adds all components that those of a bitset require to another bitset, or to the same one. Precondition:
 * components->has_requirements. */
void quern__components_add_required(const quern__components *components, const uint64_t *set,
                                    uint64_t *required);

/* Inserts a component into a sorted set, which has room for it. Returns false if the set contains the component. */
bool quern__components_insert(uint16_t *set, uint32_t *count, uint32_t component_index);

/* Adds to a sorted set, which has room for QUERN_MAX_COMPONENTS, all that its components require. Returns the new
 * number of components. */
uint32_t quern__components_complete(const quern__components *components, uint16_t *set, uint32_t count);

/* Returns the first component of a set that requires the component, or QUERN__NO_COMPONENT. */
uint32_t quern__components_find_requiring(const quern__components *components, const uint16_t *set,
                                          uint32_t count, uint32_t component_index);

/* Returns a hash of the component's list, which is never 0 unless the list is empty. */
uint32_t quern__component_required_hash(const quern__component *component);

#endif
