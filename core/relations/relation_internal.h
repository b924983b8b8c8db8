/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_RELATIONS_RELATION_INTERNAL_H
#define QUERN_CORE_RELATIONS_RELATION_INTERNAL_H

/* The set of entities that are destroyed together. A cascade begins empty. The caller adds the slots of the entities
 * to destroy and closes the cascade. A closed cascade lists all entities to destroy, and the surviving sources that
 * lose their target.
 *
 *   slots[0 .. requested_count)   the entities that the caller added, once each, in this order
 *   slots[requested_count .. )    the entities destroyed because their target is. A breadth-first search from the
 *                                 requested entities appends them: entity by entity, relation by relation, source by
 *                                 source, each when it is first seen. The search ends on cycles, and it does not
 *                                 recurse, so the depth of a tree is not limited by the call stack
 *   detached                      surviving sources with a target in slots, in a relation that unrelates them; if
 *                                 sources may have several targets, once for each such target
 *
 * Adding and closing only read links. */

#include "core/base/containers.h"
#include "core/names/name_internal.h"
#include "core/relations/links.h"
#include "core/storage/archetype.h"
#include "core/storage/storage.h"

#include <quern/base.h>
#include <quern/relation.h>

#include <stdbool.h>

struct quern__relation;
struct quern__storage;

typedef struct quern__detached_source {
    struct quern__relation *relation;
    uint32_t source;
    uint32_t target; /* the lost target; QUERN__SLOT_NONE: all targets */
} quern__detached_source;

typedef struct quern__cascade {
    QUERN__ARRAY(uint32_t) slots;
    uint32_t requested_count;
    QUERN__ARRAY(quern__detached_source) detached;
    /* One bit per slot of the storage, set if `slots` contains it; all zero between cascades. */
    QUERN__ARRAY(uint64_t) marks;
} quern__cascade;

void quern__cascade_release(quern__cascade *cascade, const quern_allocator *allocator);

/* Reserves a mark for every slot of the storage. Errors: OUT_OF_MEMORY. */
quern_result quern__cascade_begin(quern__cascade *cascade, const struct quern__storage *storage);

/* Adds an entity to destroy. Adding it again has no effect. Errors: OUT_OF_MEMORY; the caller then ends the
 * cascade. */
quern_result quern__cascade_add(quern__cascade *cascade, const struct quern__storage *storage,
                                uint32_t slot);

/* Appends all entities that are destroyed with the requested ones, and lists the detached sources. Errors:
 * TARGET_IN_USE, OUT_OF_MEMORY; the caller then ends the cascade. */
quern_result quern__cascade_close(quern__cascade *cascade, const struct quern__storage *storage);

/* Empties the cascade and clears its marks. */
void quern__cascade_end(quern__cascade *cascade);

/* Lists a source that survives and loses this target (QUERN__SLOT_NONE: all its targets). Callers outside of cascade.c
 * use it for cascades that destroy no entity. If they also add all sources that lose their target to `slots`, detaching one of these sources updates only
 * the entities below it that are not in `slots`. Errors: OUT_OF_MEMORY; the caller then ends the cascade. */
quern_result quern__cascade_list_detached(quern__cascade *cascade, const struct quern__storage *storage,
                                          struct quern__relation *relation, uint32_t source,
                                          uint32_t target);

static inline bool quern__cascade_has(const quern__cascade *cascade, uint32_t slot)
{
    return (cascade->marks.items[slot / 64] >> slot % 64 & 1) != 0;
}

/* Removes the target of every detached source of a closed cascade. Moves the rows of these sources and of all
 * entities below them with a changed level. Precondition: the caller has called quern__leaving_begin. On failure
 * nothing has changed. Errors: SIBLING_NAME_TAKEN, OUT_OF_MEMORY, and those of quern__storage_ensure_archetype. */
quern_result quern__cascade_detach(const quern__cascade *cascade, struct quern__storage *storage);

/* Removes the links and names of all entities in `slots`. Precondition: quern__cascade_detach has succeeded. The
 * caller removes the rows. */
void quern__cascade_unlink(const quern__cascade *cascade, struct quern__storage *storage);

/* Makes many rows agree with their links, after links of one relation have changed. The row of each entity in the link
 * log moves to the archetype for the tier that its link has now, and receives the target that its link has
 * now. It moves at most once, no matter how many entries of the log are about it.
 *
 * Rows are processed in the order of archetypes and rows, and the resulting order is the one that a sync point
 * produces: first, rows from other archetypes are appended, in the order of their source archetype and row; then the
 * last rows of each archetype fill its gaps, in order. Rows are marked in a bit set per archetype, which needs no
 * sorting, and neighbours move together.
 *
 *   quern__tier_moves_prepare   determines all moves and reserves rows; may fail
 *   quern__tier_moves_apply     moves the rows; cannot fail
 *   quern__tier_moves_cancel    cancels the reservations instead */

struct quern__archetype;
struct quern__move_plan;
struct quern__relation;
struct quern__storage;

/* An archetype that has marked rows. */
typedef struct quern__tier_source {
    struct quern__archetype *archetype;
    uint32_t tier; /* the tier of its entities before the change */
    uint32_t words_per_chunk;
    uint32_t first_word;       /* of its marks; words_per_chunk for each chunk */
    uint32_t first_chunk_word; /* of a bit set of the chunks that have marked rows */
    uint32_t first_departure, departure_count;
    uint32_t leaving_count; /* rows that leave for another archetype */
} quern__tier_source;

/* Rows that leave one archetype for one tier. */
typedef struct quern__tier_departure {
    const struct quern__move_plan *plan;
    uint32_t tier;
    uint32_t count;
} quern__tier_departure;

/* A marked row, and the tier of its entity after the change. */
typedef struct quern__tier_row {
    uint16_t row;
    uint16_t tier;
} quern__tier_row;

/* The marked rows of one chunk: consecutive entries of the list of rows. */
typedef struct quern__tier_chunk {
    uint32_t index; /* index of the chunk in its archetype */
    uint32_t source;
    uint32_t row_count;
} quern__tier_chunk;

/* Scratch memory, kept between calls. */
typedef struct quern__tier_moves {
    QUERN__ARRAY(quern__tier_source) sources; /* prepared: in the order of archetypes */
    QUERN__ARRAY(uint32_t) source_of_number; /* by archetype number: index + 1, or 0; all 0 between calls */
    QUERN__ARRAY(uint64_t) words;            /* marks of rows and of chunks; all 0 between calls */
    uint32_t used_word_count;
    QUERN__ARRAY(quern__tier_departure) departures;
    QUERN__ARRAY(quern__tier_row) rows;
    QUERN__ARRAY(quern__tier_chunk) chunks;
    QUERN__ARRAY(uintptr_t) gaps, tails;
    /* Whether a move or a write would call hooks or listeners. */
    bool is_observed;
} quern__tier_moves;

void quern__tier_moves_release(quern__tier_moves *moves, const quern_allocator *allocator);

/* Determines the moves of all entities in the log, and reserves rows. Precondition: all entries of the log are of this
 * relation, which has a single target per source. On failure nothing is reserved. Errors: OUT_OF_MEMORY, and those of
 * quern__storage_ensure_archetype. */
quern_result quern__tier_moves_prepare(struct quern__storage *storage, struct quern__relation *relation);

void quern__tier_moves_apply(struct quern__storage *storage, const struct quern__relation *relation);

void quern__tier_moves_cancel(struct quern__storage *storage);

/* The registry of a world's relations. A relation consists of a component with the target as value, and of links
 * (links.h), which also list the sources of each target. A relation with levels has a hidden tag component for each
 * level except 0, so all entities of an archetype have the same level. A relation with several targets per source has
 * edges (links.h) instead of links, and its component is a tag. Invariants, checked by quern_world_validate, for each
 * living entity:
 *
 *   it has the component         if and only if its link has a target; the value is then that entity, which is alive
 *   it has the tag of a level    if and only if its link has that level, from 1 on
 *   it has the tag of edges      if and only if it has a target
 *
 * The components of a relation are managed: they are added to rows and removed from rows only together with links
 * (quern__relate and core/playback). A move plan that adds or removes them is never cached as an edge (storage.h), so
 * moving a row along an edge changes no link.
 *
 * storage->has_attachments is false until a relation is registered or an entity is named. Destroying an entity checks
 * it first, and skips links and names while it is false. */

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
    bool is_many;         /* whether sources may have several targets; `links` then has no pages */
    uint32_t value_index; /* component with the values of edges, or QUERN__NO_COMPONENT */
    quern__type element;  /* of the list in that component, if is_many; otherwise zero */
    quern__links links;   /* links.version also counts changes of edges */
    quern__edges edges;   /* empty unless is_many */
    quern__cached_plan plans[QUERN__RELATION_PLANS]; /* cache; index: key % QUERN__RELATION_PLANS */
} quern__relation;

/* The kinds of entries of the undo log. */
typedef enum quern__link_change_kind {
    QUERN__CHANGE_TARGET, /* the target and the level of a source */
    QUERN__CHANGE_LEVEL,  /* only the level */
    QUERN__CHANGE_NAME,
    QUERN__CHANGE_EDGE_ADDED,
    QUERN__CHANGE_EDGE_REMOVED,
    QUERN__CHANGE_TREE /* a new tree below the slot, which had no links */
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

/* The undo log of a transaction. */
typedef struct quern__link_log {
    QUERN__ARRAY(quern__link_change) changes;
    QUERN__ARRAY(quern__name) saved_names;
} quern__link_log;

/* The value that a row will hold for a relation's edges, after the transaction. */
typedef struct quern__pending_value {
    quern__relation *relation;
    uint32_t source;
    bool is_in_row; /* the row had values before the transaction */
    void *value;    /* of the type of the component */
} quern__pending_value;

typedef struct quern__pending_values {
    QUERN__ARRAY(quern__pending_value) list;
    quern__map by_source; /* relation and slot -> index in the list */
} quern__pending_values;

typedef struct quern__relations {
    QUERN__ARRAY(quern__relation *) list; /* relations by index; their addresses do not change */
    quern__link_pages link_pages;
    quern__edge_pool edge_pool;
    uint32_t many_count;       /* number of relations with several targets per source */
    bool marks_touched_groups; /* whether new relations start with marking on */
    quern__relation *parent;   /* relation of quern_world_parent; NULL until it is registered */
    quern__link_log log;       /* empty between transactions */
    QUERN__ARRAY(uint64_t)
    added_pairs; /* scratch of relate.c: a bit per pair; all zero between calls */
    quern__tier_moves tier_moves;
    /* Scratch of relate.c: slot + 1 -> archetype after the moves that are reserved so far, for entities that may move
     * more than once. Empty between calls. */
    quern__map moved;
    quern__pending_values pending;      /* empty between transactions */
    quern__cascade cascade;             /* scratch memory of immediate calls */
    quern__archetype_listener listener; /* clears the plan caches when an archetype is removed */
} quern__relations;

/* Initialises the registry of a storage, and sets storage->relations. */
void quern__relations_init(quern__relations *relations, struct quern__storage *storage);

void quern__relations_release(quern__relations *relations, const quern_allocator *allocator);

/* The definition of the built-in hierarchy, quern_world_parent(). */
extern const quern_relation_def quern__parent_def;

/* The relation in which entities share values: see quern_world_shared. */
extern const quern_relation_def quern__shared_def;

/* Returns whether a relation is registered with the definition, apart from the name. */
bool quern__relation_has_definition(const quern__relation *relation, const quern_relation_def *def);

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

/* Returns the level of the sources of a target. node: the links of the target. */
static inline uint32_t quern__relation_source_level_of(const quern__relation *relation,
                                                       const quern__link_node *node)
{
    if (!relation->has_levels) return 0;
    return node->level < QUERN_MAX_RELATION_LEVEL ? node->level + 1 : QUERN_MAX_RELATION_LEVEL;
}

/* Returns the level of the sources of a target, which need not have a page of links. */
static inline uint32_t quern__relation_source_level(const quern__relation *relation, uint32_t target_slot)
{
    const quern__link_node *node = quern__links_find(&relation->links, target_slot);
    return quern__relation_source_level_of(relation, node != NULL ? node : &quern__empty_link_node);
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

/* Relating entities, in relations with one target and with several targets per source (edges). Links, the component's
 * value and the level tags change together, for the source and for all entities below it that change their level. Each
 * call is all or nothing. Links change first, with an undo log.
 * Then all rows to move are reserved; if this fails, the links are reverted. Then the rows move. */

/* Returns whether the source would be above itself with this target. A source without sources of its own cannot be.
 * Precondition: the source has a page of links. */
static inline bool quern__would_be_cycle(const quern__relation *relation, uint32_t source, uint32_t target)
{
    const quern__links *links = &relation->links;
    return quern__links_at(links, source)->count > 0 && relation->has_levels &&
           quern__links_is_at_or_above(links, source, target);
}

/* Sets the target of the source; with several targets per source, adds the edge unless it exists. Precondition: both
 * entities are alive and distinct. Errors: CYCLE, SIBLING_NAME_TAKEN, OUT_OF_MEMORY, and those of
 * quern__storage_ensure_archetype. */
quern_result quern__relate(quern__storage *storage, quern__relation *relation, quern_entity source,
                           quern_entity target);

/* Performs quern__relate, and gives the edge a copy of the value, also if it exists. Precondition: edges have values. */
quern_result quern__relate_with(quern__storage *storage, quern__relation *relation, quern_entity source,
                                quern_entity target, const void *value);

/* Sets the target of the i-th source to the i-th target, in order. Precondition: all entities are alive, and none is
 * its own target. The result equals `count` calls of quern__relate in order, except for the order of rows: all links
 * change first, and then each row moves at most once. All or nothing. Errors: those of
 * quern__relate; *out_failed is the index of the failed pair, or `count` if the error concerns no single pair. */
quern_result quern__relate_many(quern__storage *storage, quern__relation *relation,
                                const quern_entity *sources, const quern_entity *targets, uint32_t count,
                                uint32_t *out_failed);

/* Removes the target of the source. Precondition: the source is alive and has a target. Errors: those of
 * quern__relate, except CYCLE. */
quern_result quern__unrelate(quern__storage *storage, quern__relation *relation, quern_entity source);

/* Removes an edge, or all edges of a source with at least one. Precondition: the edge exists. Errors: those of
 * quern__unrelate. */
quern_result quern__unrelate_edge(quern__storage *storage, quern__relation *relation, uint32_t source,
                                  uint32_t target);
quern_result quern__unrelate_all_edges(quern__storage *storage, quern__relation *relation, uint32_t source);

/* Ends a transaction and clears the log: moves the rows of all entities in the log to the archetypes
 * of their new targets and levels. The caller writes the values of new targets. Preconditions: no link has changed
 * twice, though an entity may have changed links in several relations; the caller has called quern__leaving_begin
 * before. `result` is the result of the transaction so far. If it is an error, or if reserving rows fails, reverts
 * all links and names and returns the error. Errors: OUT_OF_MEMORY, and those of quern__storage_ensure_archetype. */
quern_result quern__relate_rows(quern__storage *storage, quern_result result);

/* Stores up to `capacity` entities of a set of edges, in its order. */
void quern__list_edge_entities(const quern__storage *storage, const quern__edge_list *list,
                               quern_entity *out_entities, uint32_t capacity);

/* Returns the entity in a slot. Precondition: the entity is alive. */
static inline quern_entity quern__entity_of_slot(const quern__storage *storage, uint32_t slot)
{
    return (quern_entity){(uint64_t)quern__entities_record(&storage->entities, slot)->handle_high << 32 |
                          slot};
}

/* Returns the entity in a slot, or the null handle for QUERN__SLOT_NONE. */
static inline quern_entity quern__entity_of_link(const quern__storage *storage, uint32_t slot)
{
    return slot != QUERN__SLOT_NONE ? quern__entity_of_slot(storage, slot) : (quern_entity){0};
}

/* Returns whether a slot is a target of another one. */
static inline bool quern__relation_has_target(const quern__relation *relation, uint32_t source,
                                              uint32_t target)
{
    return relation->is_many ? quern__edges_has(&relation->edges, source, target)
                             : quern__links_target(&relation->links, source) == target;
}

/* Values of edges. The relation's component requires the component that holds them (quern_component_def.required), so rows
 * get it with their first target, whatever adds it, and unrelating removes both. Everything that copies, saves, compares
 * or shows rows therefore has the values. With one target per source the component is the value of the edge. Otherwise
 * it is a list with one element per edge, in the order of the set of targets; elements begin with the target, so that
 * they can be remapped without the edges.
 *
 * Invariants, checked by quern_world_validate: a row has the component if and only if it has the relation's; the
 * list has exactly the targets of the source, ascending. */

enum { QUERN__EDGE_ELEMENT_BYTES = 1024 }; /* maximal size of an element */

static inline bool quern__relation_has_values(const quern__relation *relation)
{
    return relation->value_index != QUERN__NO_COMPONENT;
}

/* Checks `value` of a definition. Errors: INVALID_ARGUMENT, UNKNOWN_COMPONENT. */
quern_result quern__edge_values_check(const quern__storage *storage, const quern_relation_def *def);

/* Prepares another definition of the component with the values of edges. out_element: the new element of a list, if the
 * relation has several targets per source; otherwise unchanged. Errors: INVALID_ARGUMENT, LAYOUT_MISMATCH, OUT_OF_MEMORY. */
quern_result quern__edge_values_redefine(const quern__relation *relation, const quern_allocator *allocator,
                                         const quern__type *type, bool is_converted,
                                         quern__type *out_element);

/* Sets the members of a new relation. Errors: OUT_OF_MEMORY. */
quern_result quern__edge_values_init(const quern__storage *storage, quern__relation *relation,
                                     const quern_relation_def *def);

/* Returns the component's value in the row of a source, or NULL if the row lacks it. */
void *quern__edge_values_of(const quern__storage *storage, const quern__relation *relation,
                            uint32_t source);

/* Returns the value or the element of an edge; NULL if there is none. Precondition: with one target per source, the
 * source has this target. */
const void *quern__edge_value(const quern__storage *storage, const quern__relation *relation,
                              uint32_t source, uint32_t target);

/* Replaces the component's value in the row of a source by a copy of `value`, or by a constructed one. is_new: the row has
 * just received the component, so that no write is reported. */
void quern__edge_value_replace(quern__storage *storage, const quern__relation *relation, uint32_t source,
                               const void *value, bool is_new);

/* Sets the value of an edge, which exists. Errors: OUT_OF_MEMORY; then nothing has changed. */
quern_result quern__edge_value_set(quern__storage *storage, const quern__relation *relation,
                                   quern_entity source, quern_entity target, const void *value);

/* Add and remove the element of an edge in the row of a source that has the component. value: NULL for zero bytes.
 * Errors: OUT_OF_MEMORY; then nothing has changed. */
quern_result quern__edge_element_add(quern__storage *storage, const quern__relation *relation,
                                     uint32_t source, quern_entity target, const void *value);
quern_result quern__edge_element_remove(quern__storage *storage, const quern__relation *relation,
                                        uint32_t source, uint32_t target);

/* Adds an element to a list outside of a row, or replaces it. Errors: OUT_OF_MEMORY. */
quern_result quern__edge_list_put(const quern__relation *relation, quern_list *list, quern_entity target,
                                  const void *value);

/* Makes the list in a row have exactly the targets of the source, in their order, after handles were remapped or targets left
 * out: loading an archive, instances of prefabs. Without memory for missing elements, which only an archive without values
 * lacks, it is reported. */
void quern__edge_values_settle(const quern__storage *storage, const quern__relation *relation,
                               uint32_t source);

/* Pending values: those that rows will have after a transaction, which may still fail. They begin as the values in the
 * rows. quern__link_log_add_edge and quern__link_log_remove_edge change them along; the transaction ends with
 * quern__pending_apply or quern__pending_cancel. Sync points make follow-up commands of them instead. */

/* Returns the pending value of a source, or NULL. */
quern__pending_value *quern__pending_find(const quern__storage *storage, const quern__relation *relation,
                                          uint32_t source);

/* Gives an edge a copy of a value, or (NULL) the initial one. Errors: OUT_OF_MEMORY. */
quern_result quern__pending_put(quern__storage *storage, quern__relation *relation, uint32_t source,
                                uint32_t target, const void *value);

/* Removes the element of an edge. Errors: OUT_OF_MEMORY. */
quern_result quern__pending_remove(quern__storage *storage, quern__relation *relation, uint32_t source,
                                   uint32_t target);

/* Gives rows their pending values, or forgets these. */
void quern__pending_apply(quern__storage *storage);
void quern__pending_cancel(quern__storage *storage);

/* Names of living entities (name_internal.h), under their parents in the built-in hierarchy. */

/* Returns the slot of the parent, or QUERN__SLOT_NONE. */
static inline uint32_t quern__parent_slot(const quern__storage *storage, uint32_t slot)
{
    const quern__relation *parent = storage->relations->parent;
    return parent != NULL ? quern__links_target(&parent->links, slot) : QUERN__SLOT_NONE;
}

/* Checks that a text is valid as a name. Errors: INVALID_ARGUMENT. */
quern_result quern__entity_check_name(const char *name);

/* Sets the name of a living entity, or removes it if `name` is NULL or empty. Errors: INVALID_ARGUMENT, SIBLING_NAME_TAKEN,
 * OUT_OF_MEMORY. */
quern_result quern__entity_set_name(quern__storage *storage, quern_entity entity, const char *name);

/* Returns whether the source could get the target, or lose its target (QUERN__SLOT_NONE), without a name collision.
 * Names are unique among the children of one parent; for relations other than the hierarchy, returns true. */
static inline bool quern__naming_allows_target(const quern__storage *storage,
                                               const quern__relation *relation, uint32_t source,
                                               uint32_t target)
{
    if (QUERN__LIKELY(storage->names->count == 0 || relation != storage->relations->parent)) return true;
    const quern__name *name = quern__names_of(storage->names, source);
    if (name == NULL) return true;
    const uint32_t owner =
        quern__names_find(storage->names, target, name->text, (uint32_t)strlen(name->text));
    return owner == QUERN__SLOT_NONE || owner == source;
}

/* Fails with SIBLING_NAME_TAKEN, because the name of the source collides among the children of the target. */
quern_result quern__naming_fail_taken(const quern__storage *storage, quern_entity source, uint32_t target);

/* Moves the name of the source to its new parent, after a change of target in the built-in hierarchy. No effect for
 * other relations. */
static inline void quern__naming_update_parent(quern__storage *storage, const quern__relation *relation,
                                               uint32_t source, uint32_t target)
{
    if (QUERN__LIKELY(storage->names->count == 0 || relation != storage->relations->parent)) return;
    quern__names_move(storage->names, source, target);
}

/* Replaces the target of the source (QUERN__SLOT_NONE: no target), inserts the source where quern__links_insert does, and
 * moves its name to the new parent if the relation is the hierarchy. node: the links of the source, whose level does not
 * change. */
QUERN__ALWAYS_INLINE void quern__relink(quern__storage *storage, quern__relation *relation,
                                        quern__link_node *node, uint32_t source, uint32_t target)
{
    quern__links *links = &relation->links;
    if (node->target != QUERN__SLOT_NONE) quern__links_unlink(links, source);
    if (target != QUERN__SLOT_NONE)
        quern__links_insert(links, relation->is_ordered, node, source, quern__links_at(links, target),
                            target);
    quern__naming_update_parent(storage, relation, source, target);
}

/* Transactions over the links and the names of a storage, with one undo log: storage->relations->log, empty between
 * transactions. The calls below change links and names at once and log their previous state. If one of them or a
 * later step of the transaction fails, quern__link_log_revert reverts all changes. Every transaction ends with
 * quern__link_log_clear, also after a failure.
 *
 * Rows do not change here. An immediate call then moves the rows of all entities in the log. A sync
 * point keeps its transaction open until its commands are applied, and converts the log to commands on rows
 * (core/playback/stages.h).
 *
 * If the target of a link changes, an entry holds the link's complete previous state. Each entity
 * below it that changes its level as a result has its own entry; these entries directly follow in breadth-first order.
 * A slot may have several entries. Its first entry for a relation holds the state that the row still has. */

void quern__link_log_release(quern__link_log *log, const quern_allocator *allocator);

/* Fails with OUT_OF_MEMORY, and sets the message. */
quern_result quern__link_log_fail(const quern__storage *storage);

/* Fills an entry from the current links of a slot. Assigns single members, because copying a whole structure would
 * stall until earlier stores to its members have reached the cache. */
static inline void quern__link_change_fill(quern__link_change *entry, quern__relation *relation,
                                           uint32_t slot, const quern__link_node *node,
                                           quern__link_change_kind kind)
{
    entry->relation = relation;
    entry->slot = slot;
    entry->old_target = node->target;
    entry->old_level = node->level;
    entry->kind = kind;
}

/* Logs a link before a change of its target. Returns NULL if out of memory. */
static inline quern__link_change *quern__link_log_add(quern__storage *storage, quern__relation *relation,
                                                      uint32_t slot, const quern__link_node *node)
{
    quern__link_log *log = &storage->relations->log;
    if (!quern__array_reserve(&storage->allocator, &log->changes, log->changes.count + 1)) return NULL;
    quern__link_change *entry = &log->changes.items[log->changes.count++];
    quern__link_change_fill(entry, relation, slot, node, QUERN__CHANGE_TARGET);
    entry->old_next = node->next;
    return entry;
}

/* Sets the levels of all entities below those of the entries from `first` on. Errors: OUT_OF_MEMORY. */
quern_result quern__link_log_set_levels_below(quern__storage *storage, quern__relation *relation,
                                              uint32_t first, const quern__cascade *ending);

/* Replaces the target of the source (QUERN__SLOT_NONE: no target), and sets the levels of all entities below it. In the
 * hierarchy, also moves the source's name to the new parent. `ending` is a cascade or NULL: entities in the cascade, and
 * all below them, keep their levels. Preconditions: source and target have pages of links; quern__naming_allows_target();
 * the change makes no cycle. Errors: OUT_OF_MEMORY; the caller then reverts the transaction. */
QUERN__ALWAYS_INLINE quern_result quern__link_log_set_target(quern__storage *storage,
                                                             quern__relation *relation, uint32_t source,
                                                             uint32_t target, const quern__cascade *ending)
{
    const uint32_t level =
        target != QUERN__SLOT_NONE
            ? quern__relation_source_level_of(relation, quern__links_at(&relation->links, target))
            : 0;
    quern__link_node *node = quern__links_at(&relation->links, source);
    const uint32_t old_tier = quern__link_tier(node), old_level = node->level;
    const uint32_t first = storage->relations->log.changes.count;
    quern__link_change *entry = quern__link_log_add(storage, relation, source, node);
    if (QUERN__UNLIKELY(entry == NULL)) return quern__link_log_fail(storage);
    quern__relink(storage, relation, node, source, target);
    node->level = level;
    const uint32_t tier = quern__link_tier(node);
    entry->row_tier = tier != old_tier ? tier : QUERN__ROW_STAYS;
    if (level == old_level || node->count == 0) return QUERN_OK;
    return quern__link_log_set_levels_below(storage, relation, first, ending);
}

/* Removes the target of a source that is being destroyed. Its name and all levels are kept. Errors: OUT_OF_MEMORY; the
 * caller then reverts the transaction. */
quern_result quern__link_log_unlink(quern__storage *storage, quern__relation *relation, uint32_t source);

/* Adds or removes an edge of a relation with several targets per source. Preconditions: the edge does not exist, or
 * exists. Errors: OUT_OF_MEMORY; the caller then reverts the transaction. */
quern_result quern__link_log_add_edge(quern__storage *storage, quern__relation *relation, uint32_t source,
                                      uint32_t target);
quern_result quern__link_log_remove_edge(quern__storage *storage, quern__relation *relation,
                                         uint32_t source, uint32_t target);

/* Sets the name of the slot and drops its old name. Preconditions: `text` does not point into the old name; no other
 * child of the parent has the name. Errors: OUT_OF_MEMORY; the caller then reverts the transaction. */
quern_result quern__link_log_put_name(quern__storage *storage, uint32_t slot, uint32_t parent,
                                      const char *text, uint32_t text_bytes);

/* Drops the name of the slot, if it has one. Errors: OUT_OF_MEMORY; the caller then reverts the transaction. */
quern_result quern__link_log_drop_name(quern__storage *storage, uint32_t slot);

/* Performs quern__links_put_trees for one tree, of which entities[0] is the root. Errors: OUT_OF_MEMORY; the caller then
 * reverts the transaction. */
quern_result quern__link_log_put_tree(quern__storage *storage, quern__relation *relation,
                                      const quern__link_node *node, const quern__link_node *bases,
                                      uint32_t node_count, const quern_entity *entities);

/* Reverts all changes of the transaction, the last one first. The entries remain in the log. */
void quern__link_log_revert(quern__storage *storage);

/* Ends a transaction: empties the log. Its changes can no longer be reverted. */
static inline void quern__link_log_clear(quern__link_log *log)
{
    log->changes.count = 0;
    log->saved_names.count = 0;
}

/* Performs quern_entity_relate and quern_entity_unrelate, without the gate. function: the public function that messages
 * name. */
quern_result quern__world_relate(quern_world *world, quern_entity source, quern_relation relation,
                                 quern_entity target, const char *function);
quern_result quern__world_unrelate(quern_world *world, quern_entity source, quern_relation relation,
                                   const char *function);

/* ------------------------------------------------------------------------------------------- reading */

/* What a call may read: the targets and sources of an entity in a relation. Calls from outside of a frame and calls of
 * callbacks have checks of their own; both give this to the same reads. relation: NULL if the call is wrong or refused,
 * or if the entity is not alive; the reads then return null, false or 0. */
typedef struct quern__related {
    const quern__storage *storage;
    const quern__relation *relation;
    uint32_t slot; /* of the entity, which is alive */
} quern__related;

quern_entity quern__read_target(quern__related of);
quern_entity quern__read_first_source(quern__related of);
quern_entity
quern__read_next_sibling(quern__related of); /* null unless the relation has one target per source */
bool quern__read_has_target(quern__related of, quern_entity target);
uint32_t quern__read_target_count(quern__related of);
uint32_t quern__read_source_count(quern__related of);

/* Returns the entity, or its nearest ancestor, that has the component and passes the filter (NULL: all pass); null if
 * there is none. Precondition: the relation has levels. */
quern_entity quern__read_nearest(quern__related of, uint32_t component_index,
                                 const quern__archetype_filter *filter);

/* Returns the value of an edge. Returns NULL if there is no such edge, and with a message if edges have no values. */
const void *quern__read_edge_value(quern__related of, quern_entity target, const char *function);

/* Checks that edges of a relation have values. Errors: INVALID_ARGUMENT. */
quern_result quern__edge_value_check(const quern__storage *storage, const quern__relation *relation);

/* Store up to `capacity` targets or sources. Return their number, or 0 with a message if the array is missing. */
uint32_t quern__read_targets(quern__related of, quern_entity *out_targets, uint32_t capacity,
                             const char *function);
uint32_t quern__read_sources(quern__related of, quern_entity *out_sources, uint32_t capacity,
                             const char *function);

#endif
