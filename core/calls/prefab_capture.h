/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_CALLS_PREFAB_CAPTURE_H
#define QUERN_CORE_CALLS_PREFAB_CAPTURE_H

/* State of making a prefab. prefab_capture.c compiles members and their values, prefab_links.c their links. Members have
 * one of two sources: entities of a tree (prefab_capture.c), or a description (prefab_describe.c). */

#include "core/prefabs/prefab_internal.h"
#include "core/world/world_internal.h"

/* The components of a member, ascending. */
typedef struct quern__prefab_set {
    const uint16_t *indices;
    uint32_t count;
} quern__prefab_set;

/* By member: the index of its link in the current relation, or QUERN_NO_MEMBER. */
typedef QUERN__ARRAY(uint32_t) quern__prefab_link_indices;

struct quern__prefab_source;

/* A prefab under construction. */
typedef struct quern__prefab_capture {
    quern_world *world;
    const quern_allocator *allocator;
    quern__prefab *prefab;
    const struct quern__prefab_source *source;
    QUERN__ARRAY(uint32_t) depths;        /* levels below the root, by member */
    QUERN__ARRAY(quern__prefab_set) sets; /* by member */
    /* common to all members of a group, by group: */
    QUERN__ARRAY(quern__prefab_set) group_sets;
    QUERN__ARRAY(uint32_t) previous_groups; /* the group of the same depth before it, or QUERN_NO_MEMBER */
    QUERN__ARRAY(uint32_t) last_groups;     /* by depth: its last group */
    /* of captured trees: */
    QUERN__ARRAY(quern_entity) entities; /* by member */
    quern__map members;                  /* handle -> member */
    /* of descriptions: */
    const quern_prefab_member_def *described;
    QUERN__ARRAY(uint16_t) set_indices; /* the sets of all members, one after another */
    QUERN__ARRAY(quern_entity) parts;   /* the handles that stand for members, by member */
} quern__prefab_capture;

/* Where members are from. */
typedef struct quern__prefab_source {
    /* Returns the value of a component of a member, or NULL if the type constructs it. */
    const void *(*value)(const quern__prefab_capture *it, uint32_t member, uint32_t component_index);
    const char *(*name)(const quern__prefab_capture *it, uint32_t member); /* NULL if it has none */
    /* Finds the member that a handle in a field stands for, or QUERN_NO_MEMBER. Fails if the handle must not be in a
     * prefab. */
    quern_result (*find_member)(const quern__prefab_capture *it, quern_entity entity,
                                const quern__type *type, const quern_field *field, uint32_t *out_member);
    quern_result (*list_toggles)(quern__prefab_capture *it);
    /* Lists the links of one relation by quern__prefab_capture_add_link. */
    quern_result (*list_links)(quern__prefab_capture *it, quern__relation *relation,
                               quern__prefab_link_indices *links);
} quern__prefab_source;

static inline quern_result quern__prefab_capture_fail_memory(void)
{
    return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory for a prefab");
}

/* Returns the member number of an entity, or QUERN_NO_MEMBER. */
static inline uint32_t quern__prefab_capture_find_member(const quern__prefab_capture *it,
                                                         quern_entity entity)
{
    const uint64_t *member = entity.bits != 0 ? quern__map_find(&it->members, entity.bits) : NULL;
    return member != NULL ? (uint32_t)*member : QUERN_NO_MEMBER;
}

/* Adds a link to the prefab. target: member, or QUERN_NO_MEMBER if it is `outside` of the tree. In a relation with
 * levels, the link of the target must have been added before. Returns false if out of memory. */
bool quern__prefab_capture_add_link(quern__prefab_capture *it, quern__relation *relation,
                                    quern__prefab_link_indices *links, uint32_t source, uint32_t target,
                                    quern_entity outside);

/* Lists the links of a captured tree; the function of its source. */
quern_result quern__prefab_capture_list_links(quern__prefab_capture *it, quern__relation *relation,
                                              quern__prefab_link_indices *links);

/* Adds the links of a prefab that has its members and groups: all links, the nodes of the hierarchy by member,
 * and the links that decide the levels of each group. Errors: OUT_OF_MEMORY, and those of the source. */
quern_result quern__prefab_capture_add_links(quern__prefab_capture *it);

/* Compiles members that have their depths and sets into it->prefab, and registers it. Releases `it`, and on failure
 * also the prefab. */
quern_result quern__prefab_capture_finish(quern__prefab_capture *it, quern_result result,
                                          quern_prefab *out_prefab);

/* Fails with INVALID_ARGUMENT if the component does not have the layout of a slot, or is none of the world. */
quern_result quern__prefab_check_slot(const quern_world *world, quern_component slot);

#endif
