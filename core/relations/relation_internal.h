/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_RELATIONS_RELATION_INTERNAL_H
#define QUERN_CORE_RELATIONS_RELATION_INTERNAL_H

/* The registry of a world's relations. A relation is a component, whose value is the target, and links
 * (links.h), which tell the children. Both say the same; a relation with levels has a hidden tag for each
 * level but 0 besides, so that an archetype holds one level. Invariants, checked by quern_world_validate,
 * for each living entity:
 *
 *   it has the component     exactly when its link has a target; then the value is that entity, which lives
 *   it has the tag of level  exactly when its link has that level, from 1 on
 *
 * The components of a relation are managed: rows come by them only with their links (relate.h, and
 * core/playback). Plans that put them in or take them out are never cached as edges (move_plan.h), so what moves
 * along an edge need not ask.
 *
 * Who asks whether there is anything to do when an entity ends looks at storage->has_attachments first. */

#include "core/base/array.h"
#include "core/base/map.h"
#include "core/names/name_internal.h"
#include "core/relations/cascade.h"
#include "core/relations/links.h"
#include "core/storage/archetype.h"

#include <quern/relation.h>

struct quern__storage;
struct quern__move_plan;

enum { QUERN__LEVEL_COUNT = QUERN_MAX_RELATION_LEVEL + 1, QUERN__RELATION_PLANS = 128 };

/* A plan found before: from an archetype to the one with the same components but another target or level.
 */
typedef struct quern__known_plan {
    const struct quern__move_plan *plan;
    uint64_t key; /* quern__plan_key; 0: none */
} quern__known_plan;

typedef struct quern__relation {
    uint32_t index;           /* in the registry */
    uint32_t component_index; /* the tags of levels 1, 2, ... follow right after it */
    quern_target_policy policy;
    bool has_levels;
    bool is_ordered;
    quern__links links;
    quern__known_plan plans[QUERN__RELATION_PLANS]; /* each has one place only */
} quern__relation;

/* What a link or a name was before a change: see link_log.h. */
typedef enum quern__link_change_kind {
    QUERN__CHANGE_TARGET, /* the target, and the level with it */
    QUERN__CHANGE_LEVEL,  /* the level alone */
    QUERN__CHANGE_NAME
} quern__link_change_kind;

#define QUERN__ROW_STAYS UINT32_MAX

typedef struct quern__link_change {
    quern__relation *relation;           /* of names: NULL */
    const struct quern__move_plan *plan; /* scratch of relate.c */
    uint32_t slot;
    uint32_t old_target; /* or QUERN__SLOT_NONE. Of names: index in saved_names, or QUERN__SLOT_NONE */
    uint32_t old_next;   /* the sibling after it; only of QUERN__CHANGE_TARGET */
    uint32_t old_level;
    uint32_t row_tier; /* quern__tier that the row moves to, or QUERN__ROW_STAYS */
    quern__link_change_kind kind;
} quern__link_change;

typedef struct quern__link_log {
    QUERN__ARRAY(quern__link_change) changes;
    QUERN__ARRAY(quern__name) saved_names;
} quern__link_log;

typedef struct quern__relations {
    QUERN__ARRAY(quern__relation *) list; /* they never move */
    quern__link_pages link_pages;
    bool touches;                   /* links of new relations mark what is touched, too */
    quern__relation *parent;        /* of quern_world_parent, or NULL: nobody has asked yet */
    quern__link_log log;            /* empty between transactions */
    QUERN__ARRAY(uint64_t) touched; /* scratch of relate.h: a set of slots, empty between calls */
    quern__map moved;       /* the same: slot + 1 -> archetype of an entity that moves more than once */
    quern__cascade cascade; /* of immediate calls */
    quern__archetype_listener listener; /* forgets the plans of archetypes that are removed */
} quern__relations;

/* Initialises the registry of a storage, which carries its address from now on. */
void quern__relations_init(quern__relations *relations, struct quern__storage *storage);

void quern__relations_release(quern__relations *relations, const quern_allocator *allocator);

/* The built-in hierarchy. */
extern const quern_relation_def quern__parent_def;

quern_result quern__relation_register(struct quern__storage *storage, const quern_relation_def *def,
                                      quern__relation **out_relation);

/* NULL where there is none of that name. */
quern__relation *quern__relation_find(const struct quern__storage *storage, const char *name);

/* NULL for handles that are no relation of this world. */
quern__relation *quern__relation_of(const struct quern__storage *storage, quern_relation relation);

/* INVALID_ARGUMENT, with a message, unless the handle is a relation of this world. */
quern_result quern__relation_check(const struct quern__storage *storage, quern_relation relation,
                                   quern__relation **out_relation);

quern_relation quern__relation_handle(const struct quern__storage *storage,
                                      const quern__relation *relation);

const char *quern__relation_name(const struct quern__storage *storage, const quern__relation *relation);

/* The component index of the tag of a level, from 1 on. */
static inline uint32_t quern__relation_tag(const quern__relation *relation, uint32_t level)
{
    return relation->component_index + level;
}

/* The level of all entities of an archetype; 0 where the relation has no levels. */
uint32_t quern__relation_level(const quern__relation *relation, const quern__archetype *archetype);

/* The level that a child of the target has. */
static inline uint32_t quern__relation_child_level(const quern__relation *relation, uint32_t target_slot)
{
    if (!relation->has_levels) return 0;
    const uint32_t level = quern__links_level(&relation->links, target_slot);
    return level < QUERN_MAX_RELATION_LEVEL ? level + 1 : QUERN_MAX_RELATION_LEVEL;
}

/* Which components of the relation an entity has: 0 without a target, otherwise its level + 1. */
static inline uint32_t quern__tier(const quern__kin *kin)
{
    return kin->target != QUERN__SLOT_NONE ? kin->level + 1 : 0;
}

/* By the archetype's number and the tier to come to. Never 0. */
static inline uint64_t quern__plan_key(const quern__archetype *source, uint32_t tier)
{
    return (uint64_t)source->number * (QUERN__LEVEL_COUNT + 1) + tier + 1;
}

/* The part of quern__relation_plan that finds one that is not known. */
quern_result quern__relation_find_plan(struct quern__storage *storage, quern__relation *relation,
                                       quern__archetype *source, uint32_t tier,
                                       const struct quern__move_plan **out_plan);

/* The plan from an archetype to the one with the same components but another tier of the relation. Errors: as
 * quern__plan_between and quern__storage_archetype. */
static inline quern_result quern__relation_plan(struct quern__storage *storage, quern__relation *relation,
                                                quern__archetype *source, uint32_t tier,
                                                const struct quern__move_plan **out_plan)
{
    const uint64_t key = quern__plan_key(source, tier);
    const quern__known_plan *known = &relation->plans[key % QUERN__RELATION_PLANS];
    if (QUERN__UNLIKELY(known->key != key))
        return quern__relation_find_plan(storage, relation, source, tier, out_plan);
    *out_plan = known->plan;
    return QUERN_OK;
}

/* Gives back pages of links without links, and what calls keep for the next ones. */
void quern__relations_trim(struct quern__storage *storage);

/* Whether an entity in this slot is somebody's source or target. */
static inline bool quern__relations_has_links(const quern__relations *relations, uint32_t slot)
{
    for (uint32_t i = 0; i < relations->list.count; i++) {
        const quern__kin *link = quern__links_find(&relations->list.items[i]->links, slot);
        if (link != NULL && (link->target != QUERN__SLOT_NONE || link->count > 0)) return true;
    }
    return false;
}

#endif
