/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_PREFABS_PREFAB_INTERNAL_H
#define QUERN_CORE_PREFABS_PREFAB_INTERNAL_H

/* Prefabs: trees of entities in a compiled form, outside of chunks, and the registry that knows them by
 * handle. Capturing makes them (core/calls/prefab_capture.c), spawning reads them (prefab_instances.h).
 *
 * Members that go to one archetype form a *group*, in the order of members: the group's `width` rows per
 * instance. Their values stand column by column, as in a chunk:
 *
 *   group:  components | column: width values | column: width values | ... | fields
 *
 * so that n instances are filled with n copies of each column. A *field* is a described handle in these
 * values that named a member: it is written anew for each instance. */

#include "core/names/name_internal.h"
#include "core/relations/relation_internal.h"
#include "core/storage/storage.h"

#include <quern/prefab.h>

typedef struct quern__prefab_column {
    const quern__type *type;
    char *values;        /* one for each row of the group */
    uint32_t live_count; /* of these, those that have been copied: all, once it is captured */
    uint16_t component_index;
    uint16_t size_bytes;
    bool is_plain;        /* values are copied as bytes */
    bool is_other_target; /* of another relation than that of parents: commands relate by it in the end */
} quern__prefab_column;

typedef struct quern__prefab_field {
    uint32_t column; /* in the group */
    uint32_t row;
    uint32_t offset_bytes; /* in the value */
    uint32_t member;       /* whose handle it is */
} quern__prefab_field;

typedef struct quern__prefab_group {
    uint32_t first_component, component_count; /* in component_indices */
    uint32_t first_column, column_count;
    uint32_t first_field, field_count;
    uint32_t first_row, width;       /* in row_members */
    uint32_t first_tied, tied_count; /* in ties: which decide about the levels of its members */
    bool is_plain;                   /* all columns are */
} quern__prefab_group;

/* A member that has a target. Those of one relation stand together, and in a relation with levels a target
 * comes before its sources. */
typedef struct quern__prefab_link {
    quern__relation *relation;
    uint32_t source;      /* member */
    uint32_t target;      /* member, or QUERN_NO_MEMBER: it is outside of the tree */
    uint32_t target_link; /* of the target as a source of the same relation, or QUERN_NO_MEMBER */
    uint32_t level;       /* of the source, as the plan in use has it; 0 in relations without levels */
    quern_entity outside;
} quern__prefab_link;

typedef struct quern__prefab_member {
    uint32_t group;
    uint32_t row; /* in the group */
    uint32_t first_field, field_count;
    uint32_t name; /* in names; QUERN_NO_MEMBER: it has none */
} quern__prefab_member;

/* A component that a member has disabled. */
typedef struct quern__prefab_toggle {
    uint32_t member;
    uint32_t component_index;
} quern__prefab_toggle;

#define QUERN__PLAN_NONE UINT64_MAX

/* How the values of a column come to the rows of its group, in the archetype of a plan. */
typedef struct quern__prefab_copy {
    const char *values;
    uint32_t bytes;        /* of an instance */
    uint16_t size_bytes;   /* of a value */
    uint16_t offset_bytes; /* of the column in a chunk */
} quern__prefab_copy;

/* Where the groups go when the root comes to a level, and the links that members have then. The lists stand
 * behind it. */
typedef struct quern__prefab_plan {
    _Alignas(quern__kin) uint64_t
        archetypes_version;        /* of the storage, for which it holds; or QUERN__PLAN_NONE */
    bool shares_archetypes;        /* several groups go to the same one */
    quern__archetype **archetypes; /* by group */
    quern__kin *kin, *kin_bases;   /* by member, for quern__links_put_trees */
    quern__prefab_copy *copies;    /* by column of the prefab */
} quern__prefab_plan;

typedef struct quern__prefab {
    QUERN__ARRAY(quern__prefab_member) members;
    QUERN__ARRAY(quern__prefab_group) groups;
    QUERN__ARRAY(quern__prefab_column) columns;
    QUERN__ARRAY(quern__prefab_field) fields;
    QUERN__ARRAY(quern__prefab_link) links;
    QUERN__ARRAY(quern__kin)
    kin;                      /* by member: its links of the hierarchy, with members for slots, and
                                   * levels counted from the root */
    QUERN__ARRAY(char) names; /* each ends with a zero; the root has none */
    uint32_t name_count;
    QUERN__ARRAY(quern__prefab_toggle) toggles;
    QUERN__ARRAY(uint32_t) ties;              /* links, group after group */
    QUERN__ARRAY(uint32_t) row_members;       /* the member of each row, group after group */
    QUERN__ARRAY(uint16_t) component_indices; /* sorted within a group; tags too */
    char *values;
    size_t values_bytes;
    _Atomic uint32_t holder_count; /* the registry, and recorders whose commands spawn it */
    bool has_children;             /* some link is one of the hierarchy */
    bool has_other_links;          /* some link is not */
    bool has_outside;              /* some target is no member */
    bool has_outside_levels; /* levels follow from targets outside of the tree: no plan holds for long */
    quern__prefab_plan *plans[QUERN__LEVEL_COUNT]; /* by the level of the root; NULL until there is one */
} quern__prefab;

static inline size_t quern__prefab_plan_bytes(const quern__prefab *prefab)
{
    return sizeof(quern__prefab_plan) + prefab->groups.count * sizeof(quern__archetype *) +
           prefab->columns.count * sizeof(quern__prefab_copy) +
           2 * (size_t)prefab->members.count * sizeof(quern__kin);
}

typedef struct quern__prefab_slot {
    quern__prefab *prefab; /* NULL: free */
    uint32_t generation;   /* of the prefab, or of the next one here */
    uint32_t next_free;
} quern__prefab_slot;

/* Of one world. */
typedef struct quern__prefabs {
    QUERN__ARRAY(quern__prefab_slot) slots;
    uint32_t first_free; /* QUERN__SLOT_NONE: no slot is free */
    uint32_t count;
    QUERN__ARRAY(quern_entity) handles; /* scratch of spawning at once */
} quern__prefabs;

/* NULL is allowed. */
void quern__prefabs_release(quern__storage *storage);

/* An empty prefab; NULL: no memory. */
quern__prefab *quern__prefab_create(const quern_allocator *allocator);

/* Releases it, with its values. NULL is allowed. */
void quern__prefab_release(quern__prefab *prefab, const quern_allocator *allocator);

/* Commands that wait spawn it: it stays until they let it go, also when it is destroyed meanwhile. Threads:
 * any to hold, as long as nothing destroys; main to let go. */
void quern__prefab_hold(quern__prefab *prefab);
void quern__prefab_let_go(quern__prefab *prefab, const quern_allocator *allocator);

/* Enters a prefab, which belongs to the storage from now on. Errors: OUT_OF_MEMORY, LIMIT; it then still is
 * the caller's. */
quern_result quern__prefabs_enter(quern__storage *storage, quern__prefab *prefab, quern_prefab *out_handle);

/* Takes out a prefab, whose handle is good, and lets it go. */
void quern__prefabs_remove(quern__storage *storage, quern_prefab handle);

/* Says what is wrong with a handle that names no prefab. */
quern_result quern__prefabs_fail(const quern__storage *storage, quern_prefab handle);

/* The memory that prefabs hold. */
uint64_t quern__prefabs_held_bytes(const quern__storage *storage);

/* The prefab of a handle, or NULL. */
static inline quern__prefab *quern__prefabs_find(const quern__storage *storage, quern_prefab handle)
{
    const quern__prefabs *prefabs = storage->prefabs;
    const uint32_t index = (uint32_t)handle.bits;
    if (prefabs == NULL || index >= prefabs->slots.count) return NULL;
    const quern__prefab_slot *slot = &prefabs->slots.items[index];
    const uint32_t high = storage->entities.first_handle_high >> 24 << 24 | slot->generation;
    return high == handle.bits >> 32 ? slot->prefab : NULL;
}

/* ------------------------------------------------------------------------------------------ overrides */

/* Values that one row of a group gets in the place of those that were captured. */
typedef struct quern__prefab_override {
    uint32_t group;
    uint32_t row;
    uint32_t column;     /* in the group */
    const char *values;  /* one per instance, */
    size_t stride_bytes; /* each so far behind the one before */
} quern__prefab_override;

/* The column, in the member's group, of a component with values that users may write. Errors:
 * UNKNOWN_COMPONENT, COMPONENT_ABSENT, INVALID_ARGUMENT. */
quern_result quern__prefab_find_column(const quern__storage *storage, const quern__prefab *prefab,
                                       uint32_t member, quern_component component, uint32_t *out_column);

/* Those of a definition; out_overrides has room for QUERN_MAX_SPAWN_OVERRIDES. Errors: as above, and
 * DUPLICATE_COMPONENT. */
quern_result quern__prefab_resolve(const quern__storage *storage, const quern__prefab *prefab,
                                   const quern_spawn_def *def, quern__prefab_override *out_overrides,
                                   uint32_t *out_count);

/* ----------------------------------------------------------------------------------------------- plans */

/* Where the groups go when the root gets a parent, or where that is QUERN__SLOT_NONE none. Errors: those of
 * quern__storage_archetype; STALE_ENTITY where a target outside of the tree is dead. */
quern_result quern__prefab_plan_find(quern__storage *storage, quern__prefab *prefab, uint32_t parent_slot,
                                     const quern__prefab_plan **out_plan);

#endif
