/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_PREFABS_PREFAB_INTERNAL_H
#define QUERN_CORE_PREFABS_PREFAB_INTERNAL_H

/* Prefabs: trees of entities in a compiled form, outside of chunks, and the registry that finds them by handle.
 * Trees and lists of members are compiled into them (prefab_make.c); spawning reads them.
 *
 * Members with the same archetype and depth form a *group*; a member with a level in a relation other than
 * the hierarchy is a group of its own. Each instance gets `width` rows of the group, in the order of members.
 * A group stores its values by column, as a chunk does:
 *
 *   group:  components | column: width values | column: width values | ... | fields
 *
 * The rows of n instances are therefore n copies of each column. A *field* is an entity handle in these values
 * that names a member. Each instance gets the handle of its own member there. */

#include "core/names/name_internal.h"
#include "core/relations/relation_internal.h"
#include "core/storage/conversion.h"
#include "core/storage/storage.h"

#include <quern/prefab.h>

typedef struct quern__prefab_column {
    const quern__type *type;
    char *values;               /* one value per row of the group */
    uint32_t constructed_count; /* number of values that exist; the group's width after the capture */
    uint16_t component_index;
    uint16_t size_bytes;
    bool is_plain; /* whether values are copied as bytes, without a hook */
} quern__prefab_column;

typedef struct quern__prefab_field {
    uint32_t column;            /* index of the column in the group */
    uint32_t row;               /* index of the row in the group */
    uint32_t offset_bytes;      /* offset in the value: of the handle, or of the list that has it */
    uint32_t member;            /* the field holds the handle of this member */
    uint32_t element;           /* of the list (list.h); 0: the handle is in no list */
    uint32_t list_offset_bytes; /* offset of the handle in the elements of the list */
} quern__prefab_field;

typedef struct quern__prefab_group {
    uint32_t first_component, component_count; /* range of component_indices */
    uint32_t first_column, column_count;
    uint32_t first_field, field_count;
    uint32_t first_row, width;                   /* range of row_members; width: rows per instance */
    uint32_t first_level_link, level_link_count; /* range of level_links */
    bool is_plain;                               /* whether all columns are plain */
} quern__prefab_group;

/* The target of a member in a relation, or one of its targets if there may be several. The links of one relation are
 * consecutive. In a relation with levels, the link of a target precedes those of its sources. */
typedef struct quern__prefab_link {
    quern__relation *relation;
    uint32_t source;      /* member */
    uint32_t target;      /* member, or QUERN_NO_MEMBER if the target is outside of the tree */
    uint32_t target_link; /* index of the target's own link in the relation, or QUERN_NO_MEMBER */
    uint32_t level;       /* level of the source in the latest plan; 0 in relations without levels */
    quern_entity outside; /* the target, if it is outside of the tree */
} quern__prefab_link;

typedef struct quern__prefab_member {
    uint32_t group;
    uint32_t row; /* index of the row in the group */
    uint32_t first_field, field_count;
    uint32_t name; /* offset in names; QUERN_NO_MEMBER if the member has no name */
} quern__prefab_member;

/* A disabled component of a member. */
typedef struct quern__prefab_toggle {
    uint32_t member;
    uint32_t component_index;
} quern__prefab_toggle;

#define QUERN__PLAN_NONE UINT64_MAX

/* How the values of a column are copied to the rows of its group, in the archetype of a plan. */
typedef struct quern__prefab_copy {
    const char *values;
    const quern__column *column; /* of the archetype */
    uint32_t bytes;              /* size of one instance's values */
} quern__prefab_copy;

/* The archetypes of the groups, and the links of the members, for a root at one level. The arrays follow the
 * struct in one allocation. */
typedef struct quern__prefab_plan {
    _Alignas(quern__link_node) uint64_t
        archetypes_version;        /* storage's version for which the plan is valid, or QUERN__PLAN_NONE */
    bool shares_archetypes;        /* whether several groups have one archetype */
    quern__archetype **archetypes; /* archetype of each group */
    quern__link_node *nodes, *node_bases; /* arguments of quern__links_put_trees, by member */
    quern__prefab_copy *copies;           /* one per column of the prefab */
} quern__prefab_plan;

typedef struct quern__prefab {
    QUERN__ARRAY(quern__prefab_member) members;
    QUERN__ARRAY(quern__prefab_group) groups;
    QUERN__ARRAY(quern__prefab_column) columns;
    QUERN__ARRAY(quern__prefab_field) fields;
    QUERN__ARRAY(quern__prefab_link) links;
    /* Links of the hierarchy by member: they name members instead of slots, and levels count from the root. */
    QUERN__ARRAY(quern__link_node) nodes;
    QUERN__ARRAY(char) names; /* zero-terminated names of members; the root has none */
    uint32_t name_count;
    QUERN__ARRAY(quern__prefab_toggle) toggles;
    /* Indices of links, group after group: the links of the group's first member in relations with levels. They
     * decide the levels of all members of the group, which share one archetype. */
    QUERN__ARRAY(uint32_t) level_links;
    QUERN__ARRAY(uint32_t) row_members;       /* member of each row, group after group */
    QUERN__ARRAY(uint16_t) component_indices; /* sorted within each group; includes tags */
    char *values;
    size_t values_bytes;
    _Atomic uint32_t reference_count; /* the registry's, and at most one per recorder */
    bool has_children;                /* whether a link belongs to the hierarchy */
    bool has_other_links;             /* whether a link belongs to another relation */
    bool has_edges;   /* whether a link belongs to a relation with several targets per source */
    bool has_outside; /* whether a target is outside of the tree */
    /* Whether levels depend on targets outside of the tree. These levels can change, so plans are not reused. */
    bool has_outside_levels;
    quern__prefab_plan *plans[QUERN__LEVEL_COUNT]; /* plan for each level of the root; NULL until needed */
} quern__prefab;

typedef struct quern__prefab_slot {
    quern__prefab *prefab; /* NULL if the slot is free */
    uint32_t generation;   /* generation of the prefab, or of the next one in a free slot */
    uint32_t next_free;
} quern__prefab_slot;

/* The prefabs of one world. */
typedef struct quern__prefabs {
    QUERN__ARRAY(quern__prefab_slot) slots;
    uint32_t first_free; /* QUERN__SLOT_NONE if no slot is free */
    uint32_t count;
    QUERN__ARRAY(quern_entity) handles; /* scratch memory of immediate spawns */
} quern__prefabs;

/* Releases all prefabs and the registry. Has no effect if there is no registry. */
void quern__prefabs_release(quern__storage *storage);

/* Adds and drops a reference. Dropping the last one destroys the prefab and its values. A recorder
 * with commands that spawn the prefab holds a reference, so that the prefab may be destroyed before the sync point.
 * Threads: any thread may retain while no thread destroys prefabs; only the main thread releases. Releasing NULL
 * has no effect. */
void quern__prefab_retain(quern__prefab *prefab);
void quern__prefab_release(quern__prefab *prefab, const quern_allocator *allocator);

/* Registers a prefab, and passes the caller's reference to the registry. Fails with OUT_OF_MEMORY; the caller
 * then keeps the reference. */
quern_result quern__prefabs_add(quern__storage *storage, quern__prefab *prefab, quern_prefab *out_handle);

/* Reports why a handle names no prefab. Returns UNKNOWN_PREFAB. */
quern_result quern__prefabs_fail(const quern__storage *storage, quern_prefab handle);

/* Conversion of a prefab's values of a component with another layout. The first function checks them, and returns the
 * size of the memory for all values of the prefab by then, or 0 if it has no values of the component. The second one
 * moves all values to that memory, which the prefab owns from then on, and releases the old one. Errors of the first:
 * INVALID_ARGUMENT. */
quern_result quern__prefab_check_conversion(const quern__prefab *prefab, quern__type_change *change,
                                            size_t *out_bytes);
void quern__prefab_convert(quern__prefab *prefab, const quern_allocator *allocator,
                           const quern__type_change *change, char *values, size_t values_bytes);

/* Returns the memory that the prefabs of a world use, in bytes. */
uint64_t quern__prefabs_held_bytes(const quern__storage *storage);

/* Returns the prefab of a handle, or NULL if the handle is invalid. */
static inline quern__prefab *quern__prefabs_find(const quern__storage *storage, quern_prefab handle)
{
    const quern__prefabs *prefabs = storage->prefabs;
    const uint32_t index = (uint32_t)handle.bits;
    if (prefabs == NULL || index >= prefabs->slots.count) return NULL;
    const quern__prefab_slot *slot = &prefabs->slots.items[index];
    const uint32_t high = storage->entities.first_handle_high >> 24 << 24 | slot->generation;
    return high == handle.bits >> 32 ? slot->prefab : NULL;
}

/* Returns whether the root was enabled when the prefab was captured. */
bool quern__prefab_is_enabled(const quern__prefab *prefab, const quern__storage *storage);

/* ------------------------------------------------------------------------------------------ overrides */

/* Values that one row of a group gets instead of the captured ones. */
typedef struct quern__prefab_override {
    uint32_t group;
    uint32_t row;        /* index of the row in the group */
    uint32_t column;     /* index of the column in the group */
    const char *values;  /* one value per instance */
    size_t stride_bytes; /* distance between the values of consecutive instances */
} quern__prefab_override;

/* A quern__is_end_function for arrays of quern_spawn_override. */
bool quern__is_end_of_overrides(const void *list, uint32_t i);

/* Checks and resolves the overrides of a definition. out_overrides: room for QUERN_MAX_SPAWN_OVERRIDES. Fails
 * with UNKNOWN_COMPONENT, COMPONENT_ABSENT, DUPLICATE_COMPONENT, or INVALID_ARGUMENT. */
quern_result quern__prefab_resolve_overrides(const quern__storage *storage, const quern__prefab *prefab,
                                             const quern_spawn_def *def,
                                             quern__prefab_override *out_overrides, uint32_t *out_count);

/* ----------------------------------------------------------------------------------------------- plans */

/* Finds or makes the plan for roots. parent_slot: slot of their parent, or QUERN__SLOT_NONE if they have none.
 * keeps_outside_levels: the levels of targets outside of the tree count as in the latest plan, so that earlier results
 * stay as they are. Fails like quern__storage_ensure_archetype. */
quern_result quern__prefab_plan_find(quern__storage *storage, quern__prefab *prefab, uint32_t parent_slot,
                                     bool keeps_outside_levels, const quern__prefab_plan **out_plan);

/* Creation of a prefab's instances, immediately or at a sync point. The caller finds the plan, reserves slots,
 * rows, and the links and names declared here, and allocates the handles. Putting the instances into the world then
 * cannot fail. */

/* Instances of one prefab that are created together. */
typedef struct quern__instances {
    quern__storage *storage;
    const quern__prefab *prefab;
    const quern__prefab_plan *plan;
    quern__relation *parent_relation; /* NULL if the roots get no parent */
    quern_entity parent;
    const quern__prefab_override *overrides;
    uint32_t override_count;
    uint32_t count;
    bool is_linked; /* the members have their links and names already */
} quern__instances;

/* The slots that members will get: first those of `handles`, then consecutive slots that were never used, from
 * `first` on. */
typedef struct quern__new_slots {
    const quern_entity *handles;
    uint32_t handle_count;
    uint32_t first;
} quern__new_slots;

/* Number of members in a block. Their handles and records fit the L1 cache, and all groups of the block use them. */
enum { QUERN__INSTANCES_BLOCK = 1024 };

/* Returns the number of instances that are put into the world as one block. */
static inline uint32_t quern__instances_per_block(const quern__prefab *prefab)
{
    const uint32_t count = QUERN__INSTANCES_BLOCK / prefab->members.count;
    return count > 0 ? count : 1;
}

/* Reserves pages of links, and memory for names. *name_count is the number of names that are reserved already;
 * the names of these instances are added to it. Fails with OUT_OF_MEMORY. */
quern_result quern__instances_reserve_links(const quern__instances *it, const quern__new_slots *slots,
                                            uint32_t *name_count);

/* Links and names the members of one instance by the log of relations (quern__link_log_put_tree), and relates its root
 * to the parent, which must be a valid target. Leaves out the targets in relations other than the hierarchy. Errors:
 * OUT_OF_MEMORY; the caller then reverts the transaction. */
quern_result quern__instance_link(const quern__instances *it, const quern_entity *handles);

/* Relates two entities without links in the relation from the source, as the link of an instance, by the log. Errors:
 * OUT_OF_MEMORY; the caller then reverts the transaction. */
quern_result quern__instance_link_target(quern__storage *storage, quern__relation *relation,
                                         uint32_t source, uint32_t target);

/* Puts `count` instances into reserved rows. first: number of the first of them, by which overrides find their
 * values. handles: allocated handles of their members, instance after instance. */
void quern__instances_put(const quern__instances *it, uint32_t first, uint32_t count,
                          const quern_entity *handles);

/* Fails with INVALID_ARGUMENT if the component does not have the layout of a slot, or is none of the world. */
quern_result quern__prefab_check_slot(const quern__storage *storage, quern_component slot);

/* Captures a tree. The caller gets the reference, and registers or releases the prefab. Errors: those of
 * quern_prefab_capture. */
quern_result quern__prefab_capture(quern__storage *storage, quern_entity root, quern__prefab **out_prefab);

/* ---------------------------------------------------------------------------------------------- leaves */

/* A *leaf* is an entity with nothing below it and no relation but the hierarchy, whose values can be copied. It is copied
 * without capturing it (leaf.c). */

/* The prefab of a member without components, for the rows and links of copies of leaves. It is never released. */
extern const quern__prefab quern__leaf_prefab;

/* The plan of copies of leaves in one archetype. */
typedef struct quern__leaf_plan {
    quern__prefab_plan plan;
    quern__archetype *archetype; /* of the copies */
} quern__leaf_plan;

static inline void quern__leaf_plan_init(quern__leaf_plan *plan, quern__archetype *archetype)
{
    *plan = (quern__leaf_plan){.plan = {.archetypes = &plan->archetype}, .archetype = archetype};
}

/* Returns whether an entity, which must be alive, is a leaf, and its archetype. */
bool quern__leaf_find(const quern__storage *storage, quern_entity entity, quern__archetype **out_archetype);

/* Finds the archetype of the copies of leaves of an archetype below another parent. parent_slot: QUERN__SLOT_NONE for
 * none. Errors: those of quern__storage_ensure_archetype. */
quern_result quern__leaf_find_target(quern__storage *storage, quern__archetype *archetype,
                                     uint32_t parent_slot, quern__archetype **out_target);

/* Copies the values of a leaf, and which components are disabled, to a copy that has been put into the world as an instance
 * of quern__leaf_prefab. Handles of the leaf in described fields become those of the copy. */
void quern__leaf_fill(quern__storage *storage, quern_entity entity, quern_entity copy);

#endif
