/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_REACTIONS_REACTION_H
#define QUERN_CORE_REACTIONS_REACTION_H

/* Reactions: who wants to know which entities came to the archetypes that it matches, which were given
 * values there, and which went. A reaction has a *watch* in each of these archetypes, from their beginning:
 *
 *   plane ADDED   a bit for each row: the entity came, and the reaction has not been told yet
 *   plane SET     the entity was given a value that the reaction looks at; never where ADDED is set
 *   copies        of rows that went: handle, and values of the terms with access (core/reactions/removed.h)
 *
 * each of them if the reaction asks for that kind. Bits follow their rows (core/storage/planes.h), so what
 * is pending for an entity is known wherever it goes, and an archetype's rows are in order without sorting.
 *
 * What counts is what a change adds up to. A row that moves between two archetypes with a watch of the
 * reaction keeps its bits; one that comes from elsewhere gets ADDED; one that goes elsewhere is copied, or,
 * where ADDED is set, forgotten: nobody was told that it came. A sync point moves each entity at most once,
 * so what its commands undo again is not seen.
 *
 * Threads. The listeners bear those of core/storage/change.h. All else belongs to one thread that has the
 * storage to itself. Flags that several threads raise are written relaxed: whoever looks has waited for
 * them.
 *
 * Failure. A listener must not fail, so memory for copies is reserved before a change begins, for each
 * archetype that rows are going to leave (quern__leaving_reserve in core/storage/change.h).
 *
 * A watch is a row listener of its archetype (core/storage/listener.h): storage calls it, and knows nothing of
 * reactions. */

#include "core/base/array.h"
#include "core/reactions/removed.h"
#include "core/storage/archetype.h"
#include "core/storage/listener.h"

#include <quern/query.h>

struct quern__storage;

/* What a reaction has in one archetype that it matches. */
typedef struct quern__watch {
    quern__row_listener listener; /* first; its position is the reaction's number */
    struct quern__reaction *reaction;
    quern__archetype *archetype; /* the listener's */
    bool is_pending;             /* some bit may be set */
    uint32_t handed_count;       /* blocks that were taken and are not done with */
    quern__removed removed;      /* what went, if the reaction asks for that */
    quern_view_column *columns;  /* of a view of a block: one for each term */
} quern__watch;

/* Rows of one chunk to which the same happened. */
typedef struct quern__taken_rows {
    quern__archetype *archetype;
    uint32_t slot;            /* the chunk's, in the archetype */
    uint32_t first_word;      /* in quern__taken.words: a bit for each row that the chunk may have */
    uint32_t count;           /* of bits that are set, at least 1 */
    quern_reaction_kind kind; /* ADDED or SET */
} quern__taken_rows;

/* Copies of rows that went from one archetype. A view of them has its entities, columns and values from
 * here; it has no versions. */
typedef struct quern__taken_block {
    quern__watch *watch;
    char *memory;                     /* a view's chunk */
    const quern_entity *entities;     /* stale handles of those that were destroyed */
    const quern_view_column *columns; /* one for each term */
    uint32_t count;                   /* of rows, at least 1 */
} quern__taken_block;

/* What a reaction is told at a time. */
typedef struct quern__taken {
    QUERN__ARRAY(quern__taken_block) removed; /* by archetype; within one, see removed.h */
    QUERN__ARRAY(quern__taken_rows) rows;     /* by archetype, chunk and kind: ADDED before SET */
    QUERN__ARRAY(uint64_t) words;
} quern__taken;

typedef bool quern__matches_function(const struct quern_query *query, const quern__archetype *archetype);

typedef struct quern__reaction_def {
    uint32_t kinds;          /* quern_reaction_kind, or-ed */
    const quern_term *terms; /* checked; they tell which values are looked at. Not kept */
    uint32_t term_count;
    quern__matches_function *matches; /* whether an archetype matches: always the same for one archetype */
    const struct quern_query *query;  /* its argument, which must outlive the reaction */
} quern__reaction_def;

typedef struct quern__reaction {
    struct quern__reactions *registry;
    uint32_t number; /* of its planes; when it is gone, another's */
    uint32_t kinds;  /* quern_reaction_kind, or-ed */
    bool is_pending; /* there is something to take */
    uint32_t term_count;
    quern__matches_function *matches;
    const struct quern_query *query;
    QUERN__ARRAY(quern__watch *) watches; /* in the order of archetypes */
    quern__taken taken;
    quern_term terms[];
} quern__reaction;

/* All reactions of a storage. */
typedef struct quern__reactions {
    QUERN__ARRAY(quern__reaction *) list; /* by number; NULL: the number is free */
    uint32_t count;                       /* of reactions */
    uint32_t removed_count;               /* of those that ask for REMOVED */
    bool is_pending;                      /* for some reaction there may be something to take */
    bool orders_by_row;                   /* copies of the change under way, which is a sync point's */
    quern__archetype_listener listener;   /* gives new archetypes their watches */
} quern__reactions;

/* --------------------------------------------------------------------------------------- the registry */

/* Initialises the registry of a storage, which carries its address from now on. */
void quern__reactions_init(quern__reactions *reactions, struct quern__storage *storage);

/* Removes all reactions. */
void quern__reactions_release(struct quern__storage *storage);

/* From now on the reaction has a watch wherever it matches. With PRESENT, rows that are there count as
 * ADDED. Errors: INVALID_ARGUMENT (REMOVED, and a type that the terms have access to can be destroyed but
 * not copied), OUT_OF_MEMORY; then nothing has changed. */
quern_result quern__reaction_add(struct quern__storage *storage, const quern__reaction_def *def,
                                 quern__reaction **out_reaction);

/* Forgets all that is pending, too. NULL is allowed. */
void quern__reaction_remove(struct quern__storage *storage, quern__reaction *reaction);

/* Takes archetypes that are is_removed out of all lists. They have no copies. */
void quern__reactions_forget_removed(struct quern__storage *storage);

/* Archetypes have other places in the order: watches follow. */
void quern__reactions_order_watches(struct quern__storage *storage);

/* Gives back what is kept for copies to come. */
void quern__reactions_trim(struct quern__storage *storage);

/* Whether copies of the archetype's rows are still to be shown to somebody: then it must stay. */
bool quern__watches_have_copies(const quern__archetype *archetype);

/* The events of watches, by which they are told from listeners of other rooms. */
extern const quern__row_events quern__watch_events;

/* The first watch from this listener of an archetype on, or NULL. */
static inline quern__watch *quern__watch_from(quern__row_listener *listener)
{
    while (listener != NULL && listener->events != &quern__watch_events)
        listener = listener->next;
    return (quern__watch *)listener;
}

/* All watches of an archetype, by their reactions' numbers. */
static inline quern__watch *quern__first_watch(const quern__archetype *archetype)
{
    return quern__watch_from(archetype->first_listener);
}

static inline quern__watch *quern__next_watch(const quern__watch *watch)
{
    return quern__watch_from(watch->listener.next);
}

/* The watch of the reaction in an archetype, or NULL. */
static inline quern__watch *quern__watch_of(const quern__archetype *archetype,
                                            const quern__reaction *reaction)
{
    quern__watch *watch = quern__first_watch(archetype);
    while (watch != NULL && watch->reaction != reaction)
        watch = quern__next_watch(watch);
    return watch;
}

/* ------------------------------------------------------------------------------------- what is pending */

/* Whether quern__reaction_take may find something for some reaction of the storage: all that a sync point
 * asks where nothing happened. The reactions of one schedule have flags of their own. */
static inline bool quern__reactions_are_pending(const quern__reactions *reactions)
{
    return reactions->is_pending;
}

/* Moves what is pending for the reaction to reaction->taken, which is valid until the structure changes;
 * what was taken before is done with. Errors: OUT_OF_MEMORY; then all of it is still pending. */
quern_result quern__reaction_take(struct quern__storage *storage, quern__reaction *reaction);

/* What was taken has been seen: destroys the copies, and keeps their memory for others. */
void quern__reaction_done(struct quern__storage *storage, quern__reaction *reaction);

/* What was taken is pending again. The structure has not changed since. */
void quern__reaction_put_back(struct quern__storage *storage, quern__reaction *reaction);

/* Forgets what is pending for the reaction. */
void quern__reaction_drop(struct quern__storage *storage, quern__reaction *reaction);

#endif
