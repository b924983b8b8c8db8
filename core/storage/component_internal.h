/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_STORAGE_COMPONENT_INTERNAL_H
#define QUERN_CORE_STORAGE_COMPONENT_INTERNAL_H

/* The registry of a world's component types, and for each the archetypes that have it. */

#include "core/base/array.h"
#include "core/base/handle.h"
#include "core/storage/type_internal.h"

#include <stdatomic.h>

/* Who may have written values of a component other than by a system's views: for builds with QUERN_CHECKS,
 * which look for kept pointers (sched/frame/guard.h). Atomic, since several threads may get values. */
typedef struct quern__outside_writes {
    _Atomic uint64_t
        pointer_structure; /* 1 + the structure's version when a pointer was given out; 0: never */
    _Atomic uint64_t
        written_in_period; /* 1 + look_count of the storage when values were written; 0: never */
} quern__outside_writes;

/* What keeps a component, where users may not put it in or take it out as they like. */
typedef struct quern__managed {
    struct quern__relation *relation; /* whose component, or tag of a level, it is; or NULL */
    uint32_t level;                   /* of the tag; 0: it is no tag of a level */
    bool is_hidden;                   /* not to be found by name */
} quern__managed;

typedef struct quern__component {
    quern__type type;
    /* Archetypes with this component, by index, ascending because archetypes are appended as they are
     * made. */
    QUERN__ARRAY(uint32_t) archetypes;
    uint32_t filter_count; /* queries that ask whether it has changed, and the history, which asks of all */
    uint32_t ref_count;    /* getters that serve refs */
    bool is_managed;
    quern__managed managed; /* zero, unless is_managed */
    quern__outside_writes outside_writes;
} quern__component;

typedef struct quern__components {
    QUERN__ARRAY(quern__component *) list; /* types never move */
    uint32_t first_bits;                   /* of the handle of index 0; the others follow */
    uint32_t first_filter_count;           /* of a new one */
    uint32_t largest_bytes;                /* size of the largest type so far */
} quern__components;

void quern__components_release(quern__components *components, const quern_allocator *allocator);

quern_result quern__components_register(quern__components *components, const quern_allocator *allocator,
                                        const quern_component_def *def, quern_component *out_component);

/* Appends a managed component, whatever the names of the others. Errors: as for any other. */
quern_result quern__components_add_managed(quern__components *components, const quern_allocator *allocator,
                                           const quern_component_def *def, const quern__managed *managed);

/* Takes the last ones out again, which no archetype has, until so many are left. */
void quern__components_drop_last(quern__components *components, const quern_allocator *allocator,
                                 uint32_t count);

/* Does not find hidden ones. */
quern_component quern__components_find(const quern__components *components, const char *name);

/* The handle of the index-th type. */
quern_component quern__component_handle(const quern__components *components, uint32_t index);

quern_result quern__components_fail_unknown(const quern__components *components, quern_component component);

/* The index of a component, unchecked: handles that are not of this world give a number beyond any
 * index. */
static inline uint32_t quern__components_unchecked_index(const quern__components *components,
                                                         quern_component component)
{
    return component.bits - components->first_bits;
}

/* UNKNOWN_COMPONENT, with a message that tells a foreign from a null handle, unless it is one of ours. */
static inline quern_result quern__components_check(const quern__components *components,
                                                   quern_component component)
{
    if (quern__components_unchecked_index(components, component) < components->list.count) return QUERN_OK;
    return quern__components_fail_unknown(components, component);
}

/* The index of a component that has been checked. */
static inline uint32_t quern__component_index(quern_component component)
{
    return quern__handle_index(component.bits);
}

static inline const quern__type *quern__components_type(const quern__components *components, uint32_t index)
{
    return &components->list.items[index]->type;
}

/* Whether a component that has been checked was registered with a flag (QUERN__FLAG_...). */
static inline bool quern__components_has_flag(const quern__components *components, uint32_t index,
                                              uint32_t flag)
{
    return (quern__components_type(components, index)->flags & flag) != 0;
}

/* INVALID_ARGUMENT if a component that has been checked was registered without this flag (QUERN__FLAG_...; 0: fine).
 */
quern_result quern__components_check_flag(const quern__components *components, uint32_t index,
                                          uint32_t flag);

/* For a component that has been checked. */
static inline bool quern__components_is_managed(const quern__components *components, uint32_t index)
{
    return components->list.items[index]->is_managed;
}

#endif
