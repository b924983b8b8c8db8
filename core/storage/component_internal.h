/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_STORAGE_COMPONENT_INTERNAL_H
#define QUERN_CORE_STORAGE_COMPONENT_INTERNAL_H

/* The registry of a world's component types, with the list of archetypes that have each component. */

#include "core/base/array.h"
#include "core/base/handle.h"
#include "core/storage/type_internal.h"

#include <stdatomic.h>

/* Legitimate writes of a component outside of system views, in builds with QUERN_CHECKS. The guards of
 * sched/frame/guard.h detect other writes, which use pointers that are no longer valid. Atomic, because several
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
    quern__outside_writes outside_writes;
} quern__component;

typedef struct quern__components {
    QUERN__ARRAY(quern__component *) list; /* by index; components never move in memory */
    uint32_t first_bits;         /* bits of the handle of index 0; those of index i are i larger */
    uint32_t first_filter_count; /* filter_count of a newly registered component */
    uint32_t largest_bytes;      /* size of the largest type registered so far */
    bool has_requirements;       /* whether some component requires others */
} quern__components;

void quern__components_release(quern__components *components, const quern_allocator *allocator);

quern_result quern__components_register(quern__components *components, const quern_allocator *allocator,
                                        const quern_component_def *def, quern_component *out_component);

/* Registers a managed component. Its name need not be unique. Errors: those of quern__components_register, except
 * LAYOUT_MISMATCH. */
quern_result quern__components_add_managed(quern__components *components, const quern_allocator *allocator,
                                           const quern_component_def *def, const quern__managed *managed);

/* Unregisters the components registered last, until `count` remain. Precondition: no archetype has them. */
void quern__components_drop_last(quern__components *components, const quern_allocator *allocator,
                                 uint32_t count);

/* Returns the component with a name, or the null handle. Skips hidden components. */
quern_component quern__components_find(const quern__components *components, const char *name);

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

static inline bool quern__components_is_managed(const quern__components *components, uint32_t index)
{
    return components->list.items[index]->is_managed;
}

#endif
