/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_RELATIONS_RELATION_INTERNAL_H
#define QUERN_CORE_RELATIONS_RELATION_INTERNAL_H

/* The registry of a world's relations. A relation consists of a component with the target as value, and of links
 * (links.h), which also list the sources of each target. A relation with levels has a hidden tag component for each
 * level except 0, so all entities of an archetype have the same level. A relation with several targets per source has
 * edges (edges.h) instead of links, and its component is a tag. Invariants, checked by quern_world_validate, for each
 * living entity:
 *
 *   it has the component         if and only if its link has a target; the value is then that entity, which is alive
 *   it has the tag of a level    if and only if its link has that level, from 1 on
 *   it has the tag of edges      if and only if it has a target
 *
 * The components of a relation are managed: they are added to rows and removed from rows only together with links
 * (relate.h and core/playback). A move plan that adds or removes them is never cached as an edge (move_plan.h), so
 * moving a row along an edge changes no link.
 *
 * storage->has_attachments is false until a relation is registered or an entity is named. Destroying an entity checks
 * it first, and skips links and names while it is false. */

#include "core/base/array.h"
#include "core/base/map.h"
#include "core/names/name_internal.h"
#include "core/relations/cascade.h"
#include "core/relations/edges.h"
#include "core/relations/links.h"
#include "core/relations/tier_moves.h"
#include "core/storage/archetype.h"

#include <quern/relation.h>

struct quern__storage;
struct quern__move_plan;

enum { QUERN__LEVEL_COUNT = QUERN_MAX_RELATION_LEVEL + 1, QUERN__RELATION_PLANS = 128 };

/* A cached move plan: from an archetype to the one that differs only in the tier of one relation. */
typedef struct quern__cached_plan {
    const struct quern__move_plan *plan;
    uint64_t key; /* quern__plan_key(), or 0 if the entry is unused */
} quern__cached_plan;

typedef struct quern__relation {
    uint32_t index; /* index in the registry */
    /* Index of the component that stores the target; the tags of levels 1, 2, ... have the next indices. */
    uint32_t component_index;
    quern_target_policy policy;
    bool has_levels;
    bool is_ordered;
    bool is_many;       /* whether sources may have several targets; `links` then has no pages */
    quern__links links; /* links.version also counts changes of edges */
    quern__edges edges; /* empty unless is_many */
    quern__cached_plan plans[QUERN__RELATION_PLANS]; /* cache; index: key % QUERN__RELATION_PLANS */
} quern__relation;

/* The kinds of entries of the undo log (link_log.h). */
typedef enum quern__link_change_kind {
    QUERN__CHANGE_TARGET, /* the target and the level of a source */
    QUERN__CHANGE_LEVEL,  /* only the level */
    QUERN__CHANGE_NAME,
    QUERN__CHANGE_EDGE_ADDED,
    QUERN__CHANGE_EDGE_REMOVED
} quern__link_change_kind;

/* The row_tier of an entry that moves no row. */
#define QUERN__ROW_STAYS UINT32_MAX

/* The state of a link or name before a change. */
typedef struct quern__link_change {
    quern__relation *relation;           /* NULL for names */
    const struct quern__move_plan *plan; /* plan of the row's move; scratch memory of relate.c */
    uint32_t slot;
    /* Slot, or QUERN__SLOT_NONE: none. Of names, an index in saved_names; of edges, the target of the edge. */
    uint32_t old_target;
    uint32_t old_next;  /* next sibling before the change; only for QUERN__CHANGE_TARGET */
    uint32_t old_level; /* of edges, whether the source had a target: its old tier */
    uint32_t row_tier;  /* quern__link_tier() that the row moves to, or QUERN__ROW_STAYS */
    quern__link_change_kind kind;
} quern__link_change;

/* The undo log of a transaction (link_log.h). */
typedef struct quern__link_log {
    QUERN__ARRAY(quern__link_change) changes;
    QUERN__ARRAY(quern__name) saved_names;
} quern__link_log;

typedef struct quern__relations {
    QUERN__ARRAY(quern__relation *) list; /* relations by index; their addresses do not change */
    quern__link_pages link_pages;
    quern__edge_pool edge_pool;
    uint32_t many_count;       /* number of relations with several targets per source */
    bool marks_touched_groups; /* whether new relations start with quern__links_start_touching */
    quern__relation *parent;   /* relation of quern_world_parent; NULL until it is registered */
    quern__link_log log;       /* empty between transactions */
    QUERN__ARRAY(uint64_t)
    added_pairs; /* scratch of relate_edges.c: a bit per pair; all zero between calls */
    quern__tier_moves tier_moves;
    /* Scratch of relate.c: slot + 1 -> archetype after the moves that are reserved so far, for entities that may move
     * more than once. Empty between calls. */
    quern__map moved;
    quern__cascade cascade;             /* scratch memory of immediate calls */
    quern__archetype_listener listener; /* clears the plan caches when an archetype is removed */
} quern__relations;

/* Initialises the registry of a storage, and sets storage->relations. */
void quern__relations_init(quern__relations *relations, struct quern__storage *storage);

void quern__relations_release(quern__relations *relations, const quern_allocator *allocator);

/* The definition of the built-in hierarchy, quern_world_parent(). */
extern const quern_relation_def quern__parent_def;

/* Registers a relation and its components. If the name is registered already with the same definition, returns that
 * relation. Errors: INVALID_ARGUMENT, DUPLICATE_NAME, LIMIT, OUT_OF_MEMORY; then nothing has changed. */
quern_result quern__relation_register(struct quern__storage *storage, const quern_relation_def *def,
                                      quern__relation **out_relation);

/* Returns the relation with this name, or NULL. */
quern__relation *quern__relation_find(const struct quern__storage *storage, const char *name);

/* Returns the relation of a handle, or NULL if the handle is no relation of this world. */
quern__relation *quern__relation_of(const struct quern__storage *storage, quern_relation relation);

/* Finds the relation of a handle. Errors: INVALID_ARGUMENT. */
quern_result quern__relation_check(const struct quern__storage *storage, quern_relation relation,
                                   quern__relation **out_relation);

quern_relation quern__relation_handle(const struct quern__storage *storage,
                                      const quern__relation *relation);

const char *quern__relation_name(const struct quern__storage *storage, const quern__relation *relation);

/* Starts marking changed groups of links and edges; all groups begin as touched. Returns false if out of memory. */
bool quern__relation_start_touching(quern__relation *relation, const quern_allocator *allocator);
void quern__relation_stop_touching(quern__relation *relation, const quern_allocator *allocator);
void quern__relation_clear_touched(const quern__relation *relation);

/* Returns the component index of the tag of a level. Precondition: level > 0. */
static inline uint32_t quern__relation_tag(const quern__relation *relation, uint32_t level)
{
    return relation->component_index + level;
}

/* Returns the level of the entities of an archetype; 0 if the relation has no levels. */
uint32_t quern__relation_level(const quern__relation *relation, const quern__archetype *archetype);

/* Returns the level of the sources of a target. */
static inline uint32_t quern__relation_source_level(const quern__relation *relation, uint32_t target_slot)
{
    if (!relation->has_levels) return 0;
    const uint32_t level = quern__links_level(&relation->links, target_slot);
    return level < QUERN_MAX_RELATION_LEVEL ? level + 1 : QUERN_MAX_RELATION_LEVEL;
}

/* Returns the tier of an entity: 0 if it has no target, otherwise its level + 1. The tier determines which
 * components of the relation the entity has. Sources of edges have tier 1. */
static inline uint32_t quern__link_tier(const quern__link_node *node)
{
    return node->target != QUERN__SLOT_NONE ? node->level + 1 : 0;
}

/* Returns the key of a cached plan: from this archetype to this tier. Never 0. */
static inline uint64_t quern__plan_key(const quern__archetype *source, uint32_t tier)
{
    return (uint64_t)source->number * (QUERN__LEVEL_COUNT + 1) + tier + 1;
}

/* The slow path of quern__relation_plan: finds a plan that is not in the cache, and caches it. */
quern_result quern__relation_find_plan(struct quern__storage *storage, quern__relation *relation,
                                       quern__archetype *source, uint32_t tier,
                                       const struct quern__move_plan **out_plan);

/* Finds the move plan from an archetype to the one that differs only in the tier of the relation. Errors: those of
 * quern__plan_between and quern__storage_ensure_archetype. */
static inline quern_result quern__relation_plan(struct quern__storage *storage, quern__relation *relation,
                                                quern__archetype *source, uint32_t tier,
                                                const struct quern__move_plan **out_plan)
{
    const uint64_t key = quern__plan_key(source, tier);
    const quern__cached_plan *known = &relation->plans[key % QUERN__RELATION_PLANS];
    if (QUERN__UNLIKELY(known->key != key))
        return quern__relation_find_plan(storage, relation, source, tier, out_plan);
    *out_plan = known->plan;
    return QUERN_OK;
}

/* Releases link pages without links, and scratch memory that is kept between calls. */
void quern__relations_trim(struct quern__storage *storage);

/* Returns whether the entity in a slot is a source or a target of an edge in any relation. */
bool quern__relations_has_edges(const quern__relations *relations, uint32_t slot);

/* Returns whether the entity in a slot is a source or a target in any relation. */
static inline bool quern__relations_has_links(const quern__relations *relations, uint32_t slot)
{
    for (uint32_t i = 0; i < relations->list.count; i++) {
        const quern__link_node *link = quern__links_find(&relations->list.items[i]->links, slot);
        if (link != NULL && (link->target != QUERN__SLOT_NONE || link->count > 0)) return true;
    }
    return relations->many_count > 0 && quern__relations_has_edges(relations, slot);
}

#endif
