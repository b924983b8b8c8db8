/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_HISTORY_DELTA_H
#define QUERN_CORE_HISTORY_DELTA_H

/* The part of two snapshots that a delta compares. A *member* of a snapshot is an entity that the query of the limit
 * matches there. A limited delta leads from the members of `from` to those of `to`, so an entity that begins to match
 * is created, and one that no longer matches is destroyed.
 *
 * Membership follows from the archetype. So rows of archetypes that do not match are left out. A target, or a parent of
 * a name, may be a member or not, whatever the archetype of the source: these are looked up in sets of members by slot.
 * A link exists for the delta only if both its ends are members, and a name only if the parent is.
 *
 * A target can become a member, or stop being one, while the row of its source stays as it is. If any entity that is
 * alive in both snapshots does that (`crosses`), links and names are compared even where both snapshots share pages. */

#include "core/base/bytes.h"
#include "core/base/containers.h"
#include "core/history/history_internal.h"
#include "core/query/query_internal.h"
#include "core/storage/list_values.h"
#include "core/storage/type_internal.h"

#include <quern/history.h>

typedef struct quern__delta_limit {
    const quern_delta_def *def;
    const quern__relations *relations;
    quern__page members_page; /* contains the sets; 0: there are none */
    const uint64_t *from_members,
        *to_members; /* by slot; NULL: not needed, every entity counts as a member */
    bool crosses;
} quern__delta_limit;

/* Whether the rows of an archetype are members. */
static inline bool quern__limit_matches(const quern__delta_limit *limit,
                                        const quern__saved_archetype *saved)
{
    return limit->def->query == NULL ||
           quern__query_matches_set(limit->def->query, saved->component_indices, saved->component_count);
}

/* The difference between two snapshots. A delta holds both snapshots, because its batches point into
 * their pages. The delta itself is stored in pages too: after a history has made a delta of some size,
 * another one of that size allocates no memory.
 *
 * The order of the batches makes each batch applicable by the public calls. Names are cleared, and
 * components and entities are removed, before any are added. So the world contains a subset of `from`
 * first and a subset of `to` afterwards. A subset of a valid world is valid: names are unique among
 * siblings, levels have no cycle, no entity has too many components, and no destroyed entity is still a
 * target.
 *
 * Two kinds of changes keep their value of `from` until they are replaced in one step, because one batch
 * with the old and the new value says more than a removal and an addition:
 *
 *   a name that changes, if no other entity has the old name in `to` (delta_compare.c)
 *   a target that changes, if the old target is alive in `to`; in a relation with levels only if the source
 *   has no sources of its own in `to`. Then the path from a new target up to its root contains no source
 *   that still has its old target, because every entity on that path has sources in `to`. So the path
 *   equals the one in `to` and closes no cycle. */

struct quern_delta {
    quern__history *history;
    quern__page page;         /* contains the delta itself */
    quern__snapshot from, to; /* the delta holds one reference to each page of them */
    quern_delta_batch *batches;
    quern__page batches_page;
    quern__page handles_page; /* entity handles of the NAMED batches */
    quern__page edge_pages;   /* array of the pages of RELATED and UNRELATED batches; 0: none */
    uint32_t edge_page_count;
    uint32_t count, capacity; /* number of batches, and room for batches */
    quern_delta_stats stats;
    const quern__delta_limit *limit; /* valid while the delta is built */
};

/* Builds the delta from `from` to `to`. Errors: OUT_OF_MEMORY. */
quern_result quern__delta_make(quern__history *history, const quern__snapshot *from,
                               const quern__snapshot *to, const quern_delta_def *def,
                               quern_delta **out_delta);
void quern__delta_release(quern_delta *delta);

/* Appends a batch. Returns false if out of memory. */
bool quern__delta_append(quern_delta *delta, const quern_delta_batch *batch);

/* quern__delta_list_rows lists the rows that differ. quern__delta_append_removed appends the batches of
 * removed components, quern__delta_append_destroyed those of destroyed entities. quern__delta_append_added appends the
 * batches of created entities and added or changed components, CREATED first. Each function returns
 * false if out of memory. */
bool quern__delta_list_rows(quern_delta *delta);
bool quern__delta_append_removed(quern_delta *delta);
bool quern__delta_append_destroyed(quern_delta *delta);
bool quern__delta_append_added(quern_delta *delta);

/* Appends the batches of edges that exist only in `from` (UNRELATED) or only in `to` (RELATED), by relation. Returns
 * false if out of memory. */
bool quern__delta_append_edges(quern_delta *delta, quern_delta_kind kind);

/* The names of one snapshot, sorted by slot. Each item points to its name in the snapshot's page of
 * names. */
typedef struct quern__delta_name_list {
    quern__page page; /* scratch memory of `items` */
    quern__sort_item *items;
    uint32_t count;
} quern__delta_name_list;

typedef struct quern__delta_names {
    quern__delta_name_list from, to; /* empty if both snapshots share their page of names */
    quern_entity *next_handle;       /* next free handle in the delta's handles_page */
} quern__delta_names;

/* quern__delta_names_list lists the names of both snapshots. The other two functions append the batches
 * that clear names, and the batches that set names. Each function returns false if out of memory.
 * quern__delta_names_release must be called in any case. */
bool quern__delta_names_list(quern_delta *delta, quern__delta_names *out_names);
bool quern__delta_names_append_cleared(quern_delta *delta, quern__delta_names *names);
bool quern__delta_names_append_given(quern_delta *delta, quern__delta_names *names);
void quern__delta_names_release(quern_delta *delta, const quern__delta_names *names);

/* A delta as bytes. All numbers are little-endian.
 *
 *   | head | components | resources | batches |
 *
 *   component, resource   name with a length of one byte, size, hash of the layout. Numbered from 0
 *   batch                 head; keys of the entities; values in `to`, if the kind has any and the type a size; the
 *                         elements of the lists in them, value by value (list_values.h), where the values have zero
 *                         bytes; of RELATED and UNRELATED batches the keys of the targets; of a NAMED batch the length of the
 *                         name (0: none) and the name
 *
 * The *key* of an entity is its handle as quern__entity_to_relative gives it: use count and slot in the world of the
 * history. It is the same in all processes. Handles in described fields are keys, too. 0 is the null handle.
 *
 * Only values in `to` are written, so bytes cannot be applied backwards. */

#define QUERN__DELTA_MAGIC "QUERNDLT"
enum { QUERN__DELTA_VERSION = 1, QUERN__DELTA_NAME_LENGTH_BYTES = 1 };

#define QUERN__DELTA_IS_NATIVE (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__)

typedef struct quern__delta_head {
    char magic[8];
    uint32_t version;
    uint32_t component_count, resource_count, batch_count;
    uint64_t bytes;    /* bytes after the head */
    uint64_t checksum; /* of the preceding bytes of the head, then of the bytes after it */
} quern__delta_head;

typedef struct quern__delta_batch_head {
    uint32_t kind;   /* quern_delta_kind */
    uint32_t number; /* of the component or resource; 0 for other kinds */
    uint32_t count;  /* entities */
} quern__delta_batch_head;

static inline uint64_t quern__delta_checksum(const quern__delta_head *head, const void *bytes)
{
    const uint64_t hash = quern__hash_bytes(0, head, offsetof(quern__delta_head, checksum));
    return quern__hash_bytes(hash, bytes, (size_t)head->bytes);
}

/* Returns a hash of everything that both sides must agree on about a type. */
static inline uint64_t quern__delta_layout_hash(const quern__type *type)
{
    uint64_t hash = quern__hash_word(type->size_bytes, type->field_count);
    for (uint32_t i = 0; i < type->field_count; i++) {
        const quern_field *field = &type->fields[i];
        hash = quern__hash_word(hash, quern__hash_string(field->name));
        hash = quern__hash_word(hash, (uint64_t)field->type << 32 | field->offset_bytes);
        hash = quern__hash_word(hash, field->count);
        if (field->type != QUERN_FIELD_LIST) continue;
        const quern_element *element = field->element;
        const quern__type structs = {.size_bytes = element->size_bytes,
                                     .fields = (quern_field *)(uintptr_t)element->fields,
                                     .field_count = element->field_count};
        hash = quern__hash_word(hash, element->type);
        if (element->type == 0) hash = quern__hash_word(hash, quern__delta_layout_hash(&structs));
    }
    return hash;
}

/* Whether a batch of the kind has a target for each entity. */
static inline bool quern__delta_has_targets(quern_delta_kind kind)
{
    return kind == QUERN_DELTA_RELATED || kind == QUERN_DELTA_UNRELATED;
}

/* Whether a batch of the kind is about one component. */
static inline bool quern__delta_has_component(quern_delta_kind kind)
{
    return (kind >= QUERN_DELTA_ADDED && kind <= QUERN_DELTA_DISABLED) || quern__delta_has_targets(kind);
}

/* Whether a batch of the kind has values in `to`. */
static inline bool quern__delta_has_values(quern_delta_kind kind)
{
    return kind == QUERN_DELTA_ADDED || kind == QUERN_DELTA_CHANGED;
}

#endif
