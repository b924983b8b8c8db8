/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_PLAYBACK_STAGES_H
#define QUERN_CORE_PLAYBACK_STAGES_H

/* The stages of a sync point, in the order in which they run, and what each hands to the next; playback.h has their
 * list. After the stages: accumulated values, and the fast paths, which replace some of the stages. Last, the
 * functions of each kind of command in the stages. */

#include "core/base/base_internal.h"
#include "core/base/containers.h"
#include "core/prefabs/prefab_internal.h"
#include "core/record/accumulator.h"
#include "core/record/operation.h"
#include "core/record/record.h"
#include "core/relations/relation_internal.h"
#include "core/storage/storage.h"

#include <quern/commands.h>

/* ---------------------------------------------------------------------------------------------- drops */

/* Counts of dropped commands by system and reason. Each merging thread has its own list. The lists are then
 * merged into one, which does not depend on how the threads shared the work. */

/* Commands of one system that were dropped for one reason. */
typedef struct quern__drop {
    uint32_t system_number;
    quern_drop_reason reason;
    uint64_t count;
    uint64_t first_key;         /* key of the stream of the first dropped command */
    uint64_t first_item_number; /* number of its item in the stream */
    quern_entity first_entity;
} quern__drop;

typedef QUERN__ARRAY(quern__drop) quern__drops;

/* Adds to the entry with the same system and reason, or appends an entry. Entries before `first` belong to
 * earlier sync points: their counts may grow, but their first command stays. Returns false if out of memory. */
bool quern__drops_add(quern__drops *drops, const quern_allocator *allocator, uint32_t first,
                      const quern__drop *drop);

/* ------------------------------------------------------------------------------------------ gathering */

/* Gathering, the first stage of a sync point: lists the streams of all recorders in the order of their keys.
 * Later stages do not depend on which recorder a stream is from. */

typedef struct quern__gathered_stream {
    quern__stream *stream;
    bool is_located; /* the locations in its items are valid: no row has moved since recording */
} quern__gathered_stream;

typedef struct quern__gathered {
    QUERN__ARRAY(quern__gathered_stream) streams;
    QUERN__ARRAY(quern__sort_item) order, order_scratch;
    uint64_t item_count;    /* number of items in all streams */
    uint64_t create_count;  /* number of creates in all streams */
    uint64_t command_count; /* number of commands as users count them: see quern__operation */
    uint64_t last_key;      /* key of the last listed stream */
    uint8_t traits;         /* quern__trait shared by all commands */
    bool is_sorted;         /* the streams were listed with ascending keys */
} quern__gathered;

void quern__gathered_release(quern__gathered *gathered, const quern_allocator *allocator);

/* Closes the recorders and lists their streams in the order of keys. accumulated: lists the streams of
 * accumulated values instead of commands. Errors: OUT_OF_MEMORY. */
quern_result quern__commands_gather(quern__gathered *gathered, const quern__storage *storage,
                                    quern__recorders recorders, bool accumulated);

/* For loops over streams in order: prefetches the archetype of the first location of a stream a few positions ahead. */
static inline void quern__gathered_fetch_ahead(const quern__gathered *gathered, uint32_t i)
{
    enum { STREAMS_AHEAD = 4 };
    if (i + STREAMS_AHEAD >= gathered->streams.count) return;
    const quern__gathered_stream *ahead = &gathered->streams.items[i + STREAMS_AHEAD];
    quern__command_batch *batch = ahead->stream->first;
    const uintptr_t location =
        batch->is_view ? quern__view_of(batch)->location : quern__batch_item(batch, 0)->location;
    if (location != 0 && ahead->is_located)
        QUERN__PREFETCH(&quern__slab_tables_of(location)->archetypes[quern__location_in_slab(location)]);
}

/* -------------------------------------------------------------------------- listing of single commands */

/* A listener hears of each command of a sync point and of each drop; sched/frame/command_log.c is one. A sync point
 * calls `list` after gathering, `drop` in its stages, and `end` at its end. Without a listener, a sync point pays one
 * branch, and each drop another one. No function may fail.
 *
 * An item is identified by the key of its stream and its number in the stream. Items of follow-up commands and of
 * copied streams have other keys or greater numbers than those that were listed, so a listener does not find them. */

/* Added to the keys of streams of accumulated values, which follow the commands. The streams of callbacks have keys
 * without this bit. */
#define QUERN__KEY_AFTER_COMMANDS (1ull << 63)

/* Consecutive items of a stream that were dropped for one reason. */
typedef struct quern__dropped_items {
    uint64_t key;
    uint64_t first_number;
    uint64_t count;
    uint64_t command_count; /* number of dropped commands of each item */
    quern_drop_reason reason;
} quern__dropped_items;

typedef struct quern__command_listener quern__command_listener;

struct quern__command_listener {
    /* A frame begins. */
    void (*begin_frame)(quern__command_listener *listener);
    /* Streams of commands were gathered, or, after those, streams of accumulated values. key_bits: added to their keys.
     * The first call of a sync point has key_bits 0. */
    void (*list)(quern__command_listener *listener, const quern__gathered *gathered, uint64_t key_bits);
    /* Items were dropped. Threads: several at the same time, for different items. */
    void (*drop)(const quern__command_listener *listener, const quern__dropped_items *items);
    /* The stages repeat, so the drops of the sync point so far do not count. */
    void (*forget_drops)(const quern__command_listener *listener);
    /* The sync point ends. has_succeeded false: all commands are kept, and listed again later. created: the handles of
     * creates, in the order of streams; NULL if there are none. */
    void (*end)(quern__command_listener *listener, const quern__gathered *gathered,
                const quern_entity *created, bool has_succeeded);
    /* Events were gathered and are about to be published, after commands if has_commands is true. Called by schedules. */
    void (*list_events)(quern__command_listener *listener, bool has_commands);
    /* The schedule ends. */
    void (*detach)(quern__command_listener *listener);
};

static inline void quern__listener_drop(const quern__storage *storage, const quern__dropped_items *items)
{
    const quern__command_listener *listener = storage->command_listener;
    if (QUERN__UNLIKELY(listener != NULL)) listener->drop(listener, items);
}

/* ------------------------------------------------------------------------------------------- relating */

/* Relating, a stage between gathering and merging, for sync points with commands that relate or name
 * entities, or may destroy related ones. Merging handles each entity separately, but relations connect
 * several entities. So this stage iterates all commands in order and plays those that relate, unrelate, name
 * or destroy on the links and names: each command finds the state that the previous commands left. Nothing
 * else in the world changes. The results:
 *
 *   - Links are as after the sync point, except those between entities that end.
 *   - Changes of rows (targets, tags of levels, destroys by cascade) become follow-up commands. Merging,
 *     resolving and applying handle them like other commands and do not know relations.
 *   - Merging skips commands that relate, and commands dropped by this stage: a destroy that a relation refuses
 *     has a null entity.
 *
 * Every change of a link is logged. If this or a later stage fails, the log is reverted and the streams are
 * restored. After success, the log is cleared, and entities that have ended lose their links.
 *
 * Creates get their handles when everything is applied, in the order of recording, so this stage can predict
 * them. */

typedef struct quern__relating quern__relating;
typedef struct quern__merged quern__merged;
typedef struct quern__resolved quern__resolved;

/* Creates the state of the stage, for all sync points. Returns NULL if out of memory. */
quern__relating *quern__relating_create(quern__storage *storage);
void quern__relating_destroy(quern__relating *relating);

/* Starts a sync point. Call it before any of the functions below. resolved: gets the instances of prefabs, which this
 * stage lists and links. */
void quern__relating_begin(quern__relating *relating, quern__resolved *resolved);

/* Plays the commands and adds follow-up commands. On failure, everything is unchanged. Errors: OUT_OF_MEMORY;
 * LIMIT if there would be too many entities. */
quern_result quern__commands_relate(quern__relating *relating, quern__gathered *gathered);

/* Adds the commands dropped by this stage to the drops of merging. Call it after merging. Errors:
 * OUT_OF_MEMORY. */
quern_result quern__relating_count_drops(const quern__relating *relating, const quern__merged *merged);

/* Handles entities that resolving has refused (quern__resolved). All commands on a refused entity are dropped,
 * including those that relate it, which may change the effect of other commands. If this stage has changed any
 * of these entities, sets *out_is_again: the caller must then call quern__relating_undo and repeat the stages,
 * in which this stage drops the commands on these entities. Errors: OUT_OF_MEMORY; LIMIT if an entity cannot
 * have the components that follow from commands on other entities. */
quern_result quern__relating_refuse(quern__relating *relating, const quern__gathered *gathered,
                                    const quern__merged *merged, const quern__resolved *resolved,
                                    bool *out_is_again);

/* Reverts all changes of this stage. */
void quern__relating_undo(quern__relating *relating, quern__gathered *gathered);

/* Ends a successful sync point. Adds the number of entities refused in earlier passes through the stages to
 * `resolved`. */
void quern__relating_finish(quern__relating *relating, quern__resolved *resolved);

/* --------------------------------------------------------------------------------- follow-up commands */

/* Follow-up commands: commands that result from those of callbacks. They are appended to the
 * gathered streams, so that later stages apply them like any other command. A provisional handle is valid only
 * in its own stream. Commands on entities that a stream creates are therefore chained to that stream by a jump;
 * commands on living entities form one additional stream after all others.
 *
 * A private recorder records them, with operations that may use components managed by the world. */

/* A stream with appended follow-up commands, and its number of batches without them. */
typedef struct quern__extended_stream {
    quern__stream *stream;
    uint32_t batch_count;
} quern__extended_stream;

typedef struct quern__follow_ups {
    quern_commands recorder;
    QUERN__ARRAY(quern__extended_stream) extended;
    uint8_t recorded_traits;        /* traits of the gathered streams without follow-up commands */
    uint64_t item_count;            /* item count of the gathered streams without follow-up commands */
    uint32_t recorded_stream_count; /* number of gathered streams without the one of follow-up commands */
    bool has_extra_stream;
} quern__follow_ups;

/* Removes the follow-up commands of the previous pass through the stages, and notes the traits and item count
 * of the gathered streams. */
void quern__follow_ups_begin(quern__follow_ups *follow_ups, const quern__gathered *gathered);

/* ---------------------------------------------------------------------------------- notes of relating */

/* State of the relate stage: a note for each entity that commands have changed, with the
 * targets and levels that its row still has. The functions change only links and names, in one transaction of
 * core/relations/relation_internal.h. Each may run out of memory and then sets is_out_of_memory.
 *
 * An entity *ends* at this sync point if a command or a cascade destroys it. */

#define QUERN__NOTE_NONE UINT32_MAX

/* A note: state of an entity that commands have changed. */
typedef struct quern__note {
    uint32_t slot;
    /* index of the stream that creates the entity; QUERN__NOTE_NONE: the entity already exists */
    uint32_t stream;
    uint32_t number; /* number of the create in the stream */
    uint32_t next;   /* next note of the same stream */
    uint32_t first_difference;
    bool has_ended;
    bool is_destroyed; /* destroyed by its own command, so no follow-up destroy is needed */
    bool is_refused;
    bool is_not_copied; /* the copy of an entity that was not copied; has ended */
    bool
        is_switched; /* a command disabled or enabled a tree with the entity, so follow-up commands set its tags */
    uint8_t tags; /* tags of disabled entities after the commands played so far: see play.c */
} quern__note;

/* A value of quern__difference.row_target that is no slot and no valid target: the entity's row will have a target that
 * was refused, so a follow-up command must replace or remove it. */
#define QUERN__WRONG_TARGET (QUERN__SLOT_NONE - 1)

/* The target and level of one relation in an entity's row, which follow-up commands correct if they differ from
 * the link. */
typedef struct quern__difference {
    uint32_t relation;
    /* With several targets per source, row_target is QUERN__SLOT_NONE if the row has no tag, otherwise any slot. */
    uint32_t row_target, row_level;
    uint32_t next; /* next difference of the same entity */
} quern__difference;

/* An item that merging skips, and its original head; or the handle of a row of a command for a view. */
typedef struct quern__dropped_item {
    union {
        quern__item *item;
        quern_entity *handle;
    };
    quern__item head;
    bool is_of_view;
} quern__dropped_item;

/* State of the stage for one gathered stream. */
typedef struct quern__walked_stream {
    quern__command_batch *last_batch;
    uint32_t first_created;         /* number of its first create among the creates of all streams */
    uint32_t first_note, last_note; /* notes of the entities it creates */
} quern__walked_stream;

struct quern__relating {
    quern__storage *storage;
    quern__resolved *resolved;
    quern__follow_ups follow_ups;
    /* State of the current pass through the stages: */
    /* Index of the slot's note + 1. 0: no note. With QUERN__MEMBER_MARK, no note, and the rest is the number of the
     * slot's entity, a member of an instance, among all creates. */
    QUERN__ARRAY(uint32_t) note_of_slot;
    QUERN__ARRAY(quern__note) notes;
    QUERN__ARRAY(quern__difference) differences;
    uint32_t noted_count; /* number of entries of the link log that have been noted */
    QUERN__ARRAY(quern__dropped_item) dropped;
    QUERN__ARRAY(quern_entity) created; /* predicted handles, in the order of creates */
    QUERN__ARRAY(quern__walked_stream) streams;
    QUERN__ARRAY(uint32_t)
    ending_slots; /* slots of the entities that end, while quern__relating_end runs */
    quern__drops drops;
    bool marks_members; /* some slot has a QUERN__MEMBER_MARK */
    /* State of the sync point: */
    QUERN__ARRAY(uint32_t) refused; /* slots of refused entities */
    quern_result refused_result;
    bool is_out_of_memory;
};

/* Reserves space for one more item. Returns false and sets is_out_of_memory if out of memory. */
#define quern__relating_reserve_one(relating, array)                                       \
    (quern__array_reserve(&(relating)->storage->allocator, (array), (array)->count + 1) || \
     !((relating)->is_out_of_memory = true))

#define QUERN__MEMBER_MARK 0x80000000u

static inline quern__note *quern__relating_find(const quern__relating *relating, uint32_t slot)
{
    const uint32_t number = relating->note_of_slot.items[slot];
    return number - 1 < QUERN__MEMBER_MARK - 1 ? &relating->notes.items[number - 1] : NULL;
}

/* Performs quern__relating_mark_member for a member that an earlier pass through the stages has refused. */
void quern__relating_mark_refused(quern__relating *relating, uint32_t slot, uint32_t created);

/* Records that the entity of the slot is a member of an instance, and the entity with this number among all creates. If
 * it gets a note, its follow-up commands go to the stream that creates it. */
static inline void quern__relating_mark_member(quern__relating *relating, uint32_t slot, uint32_t created)
{
    if (QUERN__LIKELY(relating->note_of_slot.items[slot] == 0))
        relating->note_of_slot.items[slot] = QUERN__MEMBER_MARK | created;
    else
        quern__relating_mark_refused(relating, slot, created);
}

static inline bool quern__relating_has_ended(const quern__relating *relating, uint32_t slot)
{
    const quern__note *known = quern__relating_find(relating, slot);
    return known != NULL && known->has_ended;
}

/* Returns the note of an entity, and adds one for an existing entity or a marked member if there is none. Invalidates
 * pointers to notes. Returns NULL if out of memory. */
quern__note *quern__relating_note(quern__relating *relating, uint32_t slot);

/* Records that the noted entity is created by the stream, as its number-th create. */
void quern__relating_note_created(quern__relating *relating, quern__note *entity, uint32_t stream,
                                  uint32_t number);

/* Records the target and level of a relation in the entity's row, unless already recorded. Returns false if out
 * of memory. */
bool quern__relating_note_row(quern__relating *relating, quern__note *entity, uint32_t relation,
                              uint32_t row_target, uint32_t row_level);

/* Replaces the source's target (QUERN__SLOT_NONE: removes it) and updates the levels of the entities below.
 * Notes all of them. Returns false if out of memory. */
bool quern__relating_set_target(quern__relating *relating, quern__relation *relation, uint32_t source,
                                uint32_t target);

/* Adds or removes an edge of a relation with several targets per source, and notes the source. Precondition: the edge
 * does not exist, or exists. Returns false if out of memory. */
bool quern__relating_add_edge(quern__relating *relating, quern__relation *relation, uint32_t source,
                              uint32_t target);
bool quern__relating_remove_edge(quern__relating *relating, quern__relation *relation, uint32_t source,
                                 uint32_t target);

/* Gives an edge, which exists, a copy of a value, or (NULL) the initial one, and notes the source. Returns false if out of
 * memory. */
bool quern__relating_put_value(quern__relating *relating, quern__relation *relation, uint32_t source,
                               uint32_t target, const void *value);

/* Names an entity that does not end; "" removes the name. Sets *out_is_taken and changes nothing if a sibling
 * has the name. Returns false if out of memory. */
bool quern__relating_set_name(quern__relating *relating, uint32_t slot, const char *name,
                              bool *out_is_taken);

/* Ends a noted entity and all entities that end with it by cascade. Removes links between them and entities
 * that do not end; links among them stay. Returns false and changes nothing if a relation refuses the end. */
bool quern__relating_end(quern__relating *relating, uint32_t slot);

/* -------------------------------------------------------------------------------------------- playing */

/* Playing commands: applying their changes of links and names, in order and before merging. The column `play` of
 * QUERN__COMMAND_KINDS lists the functions. */

/* State of iterating a stream. */
typedef struct quern__play_walk {
    quern__relating *relating;
    const quern__gathered_stream *gathered;
    uint32_t stream;             /* index of the stream */
    const quern_entity *created; /* handles of the entities that the stream creates */
    quern__command_batch *batch;
    uint64_t number; /* number of the batch's first item in the stream */
    bool relates;    /* some command of the sync point relates; otherwise only existing links matter */
    bool switches;   /* some command of the sync point disables or enables a tree */
} quern__play_walk;

/* Plays the commands of walk->batch. Sets walk->relating->is_out_of_memory if memory runs out. */
typedef void quern__play_function(const quern__play_walk *walk);

quern__play_function quern__play_edge_values, quern__play_destroys, quern__play_creates,
    quern__play_relates, quern__play_unrelates, quern__play_adds_edges, quern__play_unrelates_from,
    quern__play_names, quern__play_switches, quern__play_spawns, quern__play_clones;

/* Notes commands of walk->batch that add or remove the tags of disabled entities. Called if some command of the sync
 * point disables or enables a tree. */
void quern__play_tags(const quern__play_walk *walk);

typedef void quern__play_item_function(const quern__play_walk *walk, quern__item *item, uint32_t i);

/* Calls play_item for each row of a command for a view, with an item that lasts for the call. */
void quern__play_view(const quern__play_walk *walk, quern__play_item_function *play_item);

/* Calls play_item for each item of the batch; stops if out of memory. */
static inline void quern__play_each(const quern__play_walk *walk, quern__play_item_function *play_item)
{
    if (QUERN__UNLIKELY(walk->batch->is_view)) {
        quern__play_view(walk, play_item);
        return;
    }
    quern__item *item = quern__batch_item(walk->batch, 0);
    for (uint32_t i = 0; i < walk->batch->item_count && !walk->relating->is_out_of_memory; i++) {
        play_item(walk, item, i);
        item = quern__item_next(item, walk->batch->operation);
    }
}

/* Counts the i-th item of the batch as `count` dropped commands. */
void quern__play_drop(const quern__play_walk *walk, const quern__item *item, uint32_t i,
                      quern_drop_reason reason, uint64_t count);

/* Drops the i-th item and makes merging skip it. For commands that merging would otherwise apply. */
void quern__play_drop_and_skip(const quern__play_walk *walk, quern__item *item, uint32_t i,
                               quern_drop_reason reason);

/* Returns the slot of the entity that the handle refers to, or QUERN__NOTE_NONE if the entity is dead. */
uint32_t quern__play_find_slot(const quern__play_walk *walk, quern_entity entity);

/* --------------------------------------------------------------------------------- merging: sequences */

/* Edit sequences: the operations that one sync point applies to an entity, in order. Many entities share a
 * sequence, so sequences form a tree. It has a root for each source archetype, and the children of a sequence
 * extend it by one operation. Resolving a sequence finds its target archetype, its move plan and the source of
 * each new value, once for all its entities.
 *
 * The tree is kept between sync points, since most sync points repeat the sequences of earlier ones; a short
 * sync point then neither adds nor resolves sequences. A resolved sequence is valid until archetypes are added
 * or removed; this covers plans, columns and row bits of components. The operations belong to recorders, which
 * live as long as the playback. quern__sequences_begin clears an invalid or large tree. A tree with refused or
 * partly resolved sequences is cleared at the end of the sync point.
 *
 * Each merging thread has its own tree. Nodes of different trees may represent the same sequence. */

#define QUERN__SEQUENCE_NONE UINT32_MAX

enum {
    QUERN__EDGE_CACHE_LOG2 = 6,
    QUERN__MAX_RETAINED_SEQUENCES = 1024 /* maximum number that a tree keeps for later sync points */
};

/* A value that a row gets at the end of the sequence: from the item of one of its operations, or constructed. */
typedef struct quern__fill {
    const quern__type *type;
    uint16_t size_bytes;
    uint16_t target_offset_bytes; /* offset of the component's column in a run of one chunk */
    uint16_t value_offset_bytes;  /* offset of the value in the item; 0: no value, construct one */
    /* offset of the byte to clear once the value is moved out; 0: none */
    uint16_t owned_offset_bytes;
    uint32_t hop; /* position of the item, counted backwards from the sequence's last item */
    bool is_plain;
    bool replaces; /* the row has an old value, which must be destroyed */
} quern__fill;

/* Writes a plain value to a row. size_bytes: fill->size_bytes, as a constant if the caller
 * knows it. */
static inline void quern__fill_plain(const quern__fill *fill, uint32_t size_bytes, char *target,
                                     const char *item)
{
    if (fill->value_offset_bytes != 0)
        quern__copy_value(target, item + fill->value_offset_bytes, size_bytes);
    else if (fill->type->default_value != NULL)
        quern__copy_value(target, fill->type->default_value, size_bytes);
    else
        memset(target, 0, size_bytes);
}

/* A row bit that the sequence changes: sets it if the component is disabled at the end, and clears it if
 * enabled. */
typedef struct quern__toggle {
    uint32_t bit_column; /* index in the target's row bits */
    bool clears;
} quern__toggle;

typedef struct quern__sequence {
    const quern__operation *operation; /* last operation of the sequence; NULL for a root */
    uint32_t parent;
    uint32_t depth;         /* number of operations in the sequence */
    uint32_t next_same_key; /* next sequence with the same key in the tree's map */
    quern__archetype
        *source; /* archetype before the first operation; NULL: created by the first operation */
    /* The entity is a member of an instance that this sync point spawned before: listeners must not learn of its row in
     * `source`. */
    bool is_member;
    /* the last operation destroys the entity, or (set by resolving) the entity is new and refused */
    bool is_destroyed;

    /* set by resolving: */
    bool is_resolved;
    bool is_refused;
    bool is_hooked; /* applying the sequence calls hooks */
    quern__archetype *target;
    const quern__move_plan *plan; /* set if source and target differ and both exist */
    uint32_t first_fill, fill_count;
    uint32_t first_toggle, toggle_count;

    /* Set while edits are grouped: the stamp of the latest edits with this sequence (quern__merged), and the
     * sequence's group in them. */
    uint64_t grouped_stamp;
    uint32_t group;
} quern__sequence;

/* A cached edge of the tree: from a sequence to its extension by an operation, or from QUERN__SEQUENCE_NONE to
 * the root of an archetype. */
typedef struct quern__sequence_edge {
    const void *by; /* the operation or the archetype */
    uint32_t from, to;
} quern__sequence_edge;

typedef struct quern__sequences {
    const quern_allocator *allocator;
    QUERN__ARRAY(quern__sequence) list;
    QUERN__ARRAY(quern__fill) fills;
    QUERN__ARRAY(quern__toggle) toggles;
    quern__map map;              /* key of parent and operation -> first sequence */
    uint64_t archetypes_version; /* archetypes version of the storage when the sequences were resolved */
    quern__sequence_edge edges[1 << QUERN__EDGE_CACHE_LOG2];
} quern__sequences;

void quern__sequences_release(quern__sequences *sequences);

/* Removes all sequences and keeps the memory. */
void quern__sequences_clear(quern__sequences *sequences);

/* Starts a sync point: clears the tree if its sequences are no longer valid or too many. */
static inline void quern__sequences_begin(quern__sequences *sequences, uint64_t archetypes_version)
{
    if (sequences->archetypes_version != archetypes_version ||
        sequences->list.count > QUERN__MAX_RETAINED_SEQUENCES)
        quern__sequences_clear(sequences);
}

/* Slow paths of the two functions below: search the tree, add the sequence if necessary, and cache the edge. */
uint32_t quern__sequences_find_root(quern__sequences *sequences, quern__archetype *source, bool is_member);
uint32_t quern__sequences_find_extended(quern__sequences *sequences, uint32_t from,
                                        const quern__operation *operation);

static inline quern__sequence_edge *quern__sequences_edge(quern__sequences *sequences, uint32_t from,
                                                          const void *by)
{
    const uint64_t hash = ((uintptr_t)by + from) * 0x9E3779B97F4A7C15ull;
    return &sequences->edges[hash >> (64 - QUERN__EDGE_CACHE_LOG2)];
}

/* Returns the root for entities of an archetype, or for new entities (NULL). Returns QUERN__SEQUENCE_NONE if
 * out of memory. */
static inline uint32_t quern__sequences_root(quern__sequences *sequences, quern__archetype *source)
{
    const quern__sequence_edge *edge = quern__sequences_edge(sequences, QUERN__SEQUENCE_NONE, source);
    if (QUERN__LIKELY(edge->by == source && edge->from == QUERN__SEQUENCE_NONE)) return edge->to;
    return quern__sequences_find_root(sequences, source, false);
}

/* Returns the root for members of instances in an archetype, as quern__sequences_root. */
static inline uint32_t quern__sequences_member_root(quern__sequences *sequences, quern__archetype *source)
{
    const void *by = (const char *)source + 1;
    const quern__sequence_edge *edge = quern__sequences_edge(sequences, QUERN__SEQUENCE_NONE, by);
    if (QUERN__LIKELY(edge->by == by && edge->from == QUERN__SEQUENCE_NONE)) return edge->to;
    return quern__sequences_find_root(sequences, source, true);
}

/* Returns the sequence `from` extended by one operation. Returns QUERN__SEQUENCE_NONE if out of memory. */
static inline uint32_t quern__sequences_extend(quern__sequences *sequences, uint32_t from,
                                               const quern__operation *operation)
{
    const quern__sequence_edge *edge = quern__sequences_edge(sequences, from, operation);
    if (QUERN__LIKELY(edge->by == operation && edge->from == from)) return edge->to;
    return quern__sequences_find_extended(sequences, from, operation);
}

/* Whether a repetition of the operation with other values makes the earlier one ineffective. */
static inline bool quern__operation_replaces_itself(const quern__operation *operation)
{
    return quern__command_kinds[operation->kind].replaces_itself;
}

/* ------------------------------------------------------------------------------------- merging: edits */

/* Merging, the second stage of a sync point: all commands on one entity become one edit, and edits with the
 * same effect form groups.
 *
 * Edits are stored by chunk: each chunk with edited rows has *chunk edits*, an array of edits indexed by row.
 * As a result, edits are in the order of rows instead of commands, no edit is searched by entity, and threads
 * can share the chunks. */

/* The edit of one entity: all commands on it at this sync point. */
typedef struct quern__edit {
    char *item;        /* item of the last command */
    uint32_t sequence; /* index of the sequence of all its operations */
    /* index of the previous command's item in earlier_items, or QUERN__EARLIER_NONE */
    uint32_t earlier;
} quern__edit;

#define QUERN__EARLIER_NONE UINT32_MAX

/* The item of an earlier command on the same entity. */
typedef struct quern__earlier_item {
    char *item;
    uint32_t earlier;
} quern__earlier_item;

/* The edit of several rows of a chunk whose commands at this sync point are all commands for views, each for
 * exactly these rows. */
typedef struct quern__view_edit {
    quern__command_batch *batch; /* first command; has the rows */
    quern__view_items items;     /* of the last command */
    uint32_t sequence;           /* index of the sequence of all operations */
    uint32_t earlier; /* index of the previous command's items in earlier_views, or QUERN__EARLIER_NONE */
    uint32_t next;    /* index of the next view edit of the chunk; unused in the last one */
    uint32_t group;   /* set while edits are grouped */
} quern__view_edit;

/* The items of an earlier command of a view edit. */
typedef struct quern__earlier_view {
    quern__view_items items;
    uint32_t earlier;
} quern__earlier_view;

/* An edit group: the rows of a chunk that have the same sequence. */
typedef struct quern__edit_group {
    uint32_t sequence;
    uint32_t count;
    /* Set by resolving: */
    /* first group of these edits with the same target archetype; its next three members hold for all of them */
    uint32_t leader;
    /* rank of the next row among all rows that arrive in the target, or that are created there */
    uint32_t arrival;
    uint32_t left_count; /* number of rows that fit from `at` to the end of the chunk */
    uintptr_t at;        /* location of the next row */
} quern__edit_group;

/* Consecutive rows of one group. */
typedef struct quern__row_range {
    uint32_t row;
    uint32_t count;
    uint32_t group;
} quern__row_range;

typedef struct quern__command_span quern__command_span;

/* Output lists of one merging thread. */
typedef struct quern__scratch {
    quern__sequences sequences;
    QUERN__ARRAY(quern__earlier_item) earlier_items;
    QUERN__ARRAY(quern__view_edit) view_edits;
    QUERN__ARRAY(quern__earlier_view) earlier_views;
    QUERN__ARRAY(quern__edit_group) groups;
    QUERN__ARRAY(quern__row_range) row_ranges;
    QUERN__ARRAY(quern__command_span) spans;
    quern__drops drops;
    bool is_out_of_memory;
} quern__scratch;

/* The edits of the rows of a chunk, or of the entities created by a stream. The edits of a chunk are view edits
 * as long as view_count is not 0, and edits of single rows otherwise. */
typedef struct quern__chunk_edits {
    quern__chunk *chunk; /* NULL: edits of creates */
    quern__archetype *archetype;
    /* Of a chunk: one bit per row, set if the row has an edit. touched[-1] has one bit per nonzero word. NULL
     * for creates, which all have an edit. */
    uint64_t *touched;
    quern__edit *rows;
    /* number of rows of the chunk, or of creates; the chunk's capacity if the sync point spawns */
    uint32_t row_count;
    uint32_t root;           /* sequence without commands */
    uint64_t first_created;  /* of creates: number of the first one among those of all streams */
    quern__scratch *scratch; /* owner of the sequences, earlier items, groups and row ranges */
    uint32_t first_group, group_count;
    uint32_t first_range, range_count;
    /* View edits, in the order of rows; no two of them overlap. */
    uint32_t view_count;
    uint32_t first_view, last_view;
    uint32_t current_view;                       /* the one that the latest command concerned */
    quern__command_span *first_span, *last_span; /* only if several threads merge */
    /* Set by resolving: */
    /* first indices in the lists of quern__resolved */
    uint64_t first_gap, first_destroyed;
    bool is_hooked; /* applying these edits calls hooks */
} quern__chunk_edits;

/* State of merging for one gathered stream. */
typedef struct quern__merged_stream {
    quern__scratch *scratch; /* scratch of the thread that iterated the stream */
    uint32_t first_span, span_count;
    /* index in quern__merged.edits, or QUERN__EDITS_NONE if it creates nothing but members of instances */
    uint32_t create_edits;
    uint32_t first_created; /* number of its first create among the creates of all streams */
} quern__merged_stream;

#define QUERN__EDITS_NONE UINT32_MAX

/* A block of memory for edits, reused at every sync point. */
typedef struct quern__arena_block {
    char *memory;
    size_t size_bytes;
} quern__arena_block;

struct quern__merged {
    /* edits of creates in the order of streams, then edits of chunks */
    QUERN__ARRAY(quern__chunk_edits) edits;
    uint32_t create_edits_count;
    /* has the instances of prefabs, whose members have edits by row; NULL: there are none */
    const quern__resolved *spawned;
    /* number of leading scratches that threads may have used at this sync point */
    uint32_t used_scratch_count;
    uint64_t first_stamp; /* stamp of the first edits; unique over all sync points, and never 0 */
    QUERN__ARRAY(quern__chunk_edits *) chunk_edits; /* sorted by archetype and chunk */
    /* Parallel to the gathered streams. Empty if no stream creates entities and one thread merges. */
    QUERN__ARRAY(quern__merged_stream) streams;
    QUERN__ARRAY(quern__scratch *) scratches; /* one per thread */
    /* Index in `edits` by quern__chunk_number. Never cleared: an entry is valid only if those edits belong to
     * the chunk. */
    QUERN__ARRAY(uint32_t) edits_of_chunk;
    QUERN__ARRAY(quern__sort_item) order, order_scratch;
    QUERN__ARRAY(quern__arena_block) arena;
    uint32_t arena_block;
    size_t arena_used_bytes;
};

void quern__merged_release(quern__merged *merged, const quern_allocator *allocator);

/* Merges all commands. `merged` must have been cleared. resolved: has the instances of prefabs. executor NULL: runs on
 * the calling thread. Errors: OUT_OF_MEMORY. */
quern_result quern__commands_merge(quern__merged *merged, const quern__resolved *resolved,
                                   const quern__gathered *gathered, const quern__storage *storage,
                                   const quern__executor *executor);

/* Ends the sync point: removes all edits and keeps the memory. holds_sequences: all sequences were resolved and
 * none was refused, so later sync points can reuse them. */
void quern__merged_clear_used(quern__merged *merged, const quern__storage *storage, bool holds_sequences);

static inline void quern__merged_clear(quern__merged *merged, const quern__storage *storage,
                                       bool holds_sequences)
{
    if (merged->used_scratch_count > 0) quern__merged_clear_used(merged, storage, holds_sequences);
}

/* Counts dropped commands: those of the item with this number in the stream. */
void quern__scratch_drop(quern__scratch *scratch, const quern__stream *stream, uint64_t item_number,
                         quern_entity entity, uint64_t command_count, quern_drop_reason reason);

/* Adds a later command to an edit. No earlier command may destroy the entity. If the command only replaces the
 * effect of the one before, its item replaces that item. Returns false if out of memory.
 *
 * Equal operations of different recorders count as the same operation. Otherwise sequences, and with them the
 * order of hooks, would depend on which recorder a command is from. */
static inline bool quern__edit_extend(quern__scratch *scratch, quern__edit *edit,
                                      const quern__operation *operation, char *item)
{
    const quern__operation *last = scratch->sequences.list.items[edit->sequence].operation;
    if (quern__operation_replaces_itself(operation) &&
        (last == operation || (last->key == operation->key && quern__operation_equal(last, operation)))) {
        edit->item = item;
        return true;
    }
    const uint32_t to = quern__sequences_extend(&scratch->sequences, edit->sequence, operation);
    const uint32_t count = scratch->earlier_items.count;
    if (to == QUERN__SEQUENCE_NONE ||
        !quern__array_reserve(scratch->sequences.allocator, &scratch->earlier_items, count + 1))
        return false;
    scratch->earlier_items.items[scratch->earlier_items.count++] =
        (quern__earlier_item){.item = edit->item, .earlier = edit->earlier};
    *edit = (quern__edit){.item = item, .sequence = to, .earlier = count};
    return true;
}

/* Returns the edits of a chunk, or NULL if it has none. The chunk must have existed when merging began. */
static inline quern__chunk_edits *quern__merged_find(const quern__merged *merged, const quern__chunk *chunk)
{
    const quern__run_shape *shape = &quern__chunk_archetype(chunk)->shape;
    const uint32_t guess = merged->edits_of_chunk.items[quern__chunk_number(shape, (uintptr_t)chunk)];
    if (guess >= merged->edits.count || merged->edits.items[guess].chunk != chunk) return NULL;
    return &merged->edits.items[guess];
}

/* ------------------------------------------------------------------------------------- merging: views */

/* View edits: edits of many rows at once, made by commands for views (record.h). A chunk has view edits as
 * long as all commands on it are commands for views whose rows, compared with those of each earlier one, are
 * either the same or all of them after it. Systems record such commands: each system visits a chunk as a whole,
 * or its ranges of rows in order. The first other command turns the view edits into edits of single rows. Both
 * lead to the same groups in the same order, and so to the same result. */

/* Returns the sequence of the row's commands. Precondition: some view edit has the row. */
uint32_t quern__view_edits_sequence(const quern__chunk_edits *edits, uint32_t row);

static inline quern__view_edit *quern__view_edit_at(const quern__chunk_edits *edits, uint32_t index)
{
    return &edits->scratch->view_edits.items[index];
}

/* ------------------------------------------------------------------------------------------ resolving */

/* Resolving, the third stage of a sync point and the last that may fail: determines the effect of each sequence
 * and the rows that leave and arrive in each archetype, and reserves memory for all changes.
 *
 * The final order of rows in each archetype is defined by these steps:
 *
 *   1. Members of prefab instances are appended, in the order of instances. From here on they are rows like others.
 *   2. Rows from other archetypes are appended, in the order of their source archetype and row.
 *   3. Rows that left are gaps. New entities fill the gaps in the order of their creates, first gap first. The
 *      remaining new entities are appended.
 *   4. If gaps remain, the archetype shrinks by their number. The rows after the new end, except gaps, fill the
 *      gaps before it in order. */

/* An archetype delta: the changes of the rows of one archetype. */
typedef struct quern__archetype_delta {
    quern__archetype *archetype;
    uint32_t row_count;      /* number of rows before the sync point */
    uint32_t leaving_count;  /* rows destroyed or moved to other archetypes */
    uint32_t arriving_count; /* rows moved from other archetypes */
    uint32_t created_count;
    uint32_t
        spawned_count; /* rows of members of prefab instances, reserved by quern__spawned_reserve_rows */
    uint32_t appended_count;  /* arriving and created rows that fill no gap */
    uint32_t left_over_count; /* gaps that no created row fills */
    uint64_t first_gap;
    /* index of the edits being resolved, and their first group with this target */
    uint32_t led_edits, leader;
    bool is_reserved;
    bool is_emptied; /* all rows leave and none arrives, so gaps are not listed */
} quern__archetype_delta;

typedef QUERN__ARRAY(uint32_t) quern__slot_list;

typedef struct quern__spawned quern__spawned;

/* The source of a command that clones. */
typedef struct quern__clone {
    quern_entity entity;
    quern_entity parent;         /* of the copy; may be null or provisional */
    quern__archetype *archetype; /* of the entity if it is a leaf, otherwise NULL */
    quern__prefab *prefab;       /* the captured tree, with a reference; NULL: a leaf, or not copied */
    uint32_t first_other;        /* number of the copy of member 1 among the creates of the stream */
    uint32_t system_number;      /* of the stream */
    bool is_not_copied;          /* the copy of the root is created and destroyed at once */
    bool is_dead;                /* not copied because the entity is dead */
} quern__clone;

/* A stream that clones, as it was recorded. */
typedef struct quern__cloned_stream {
    quern__stream *stream;
    uint32_t create_count, member_count;
    uint8_t traits;
} quern__cloned_stream;

/* The members of a copied tree other than the root. */
typedef struct quern__other_members {
    uint32_t first_created; /* number of member 1 among the creates of all streams */
    uint32_t count;
    uint32_t spawned; /* index in quern__resolved.spawned */
} quern__other_members;

/* Output of resolving, in addition to that in sequences, groups and edits. */
struct quern__resolved {
    QUERN__ARRAY(quern__archetype_delta) deltas;
    /* index of the delta by archetype index; valid only if that delta belongs to the archetype */
    QUERN__ARRAY(uint32_t) delta_of_archetype;
    uint64_t created_count, destroyed_count;
    uint64_t refused_count; /* entities with commands that exceed a limit of an entity or of the world */
    uint32_t further_drop_count; /* entries to reserve in drops for later stages */
    quern_result refused_result; /* error of the first refused entity, or QUERN_OK */
    /* Lists with capacity for the entries that applying appends: */
    QUERN__ARRAY(uintptr_t) gaps;         /* locations of gaps, ascending within each archetype */
    QUERN__ARRAY(uintptr_t) tails;        /* locations of the rows that fill the gaps of one archetype */
    quern__slot_list destroyed;           /* slots of destroyed entities, in the order of freeing */
    quern__slot_list freed;               /* slots freed by the previous sync point */
    QUERN__ARRAY(quern_entity) created;   /* handles of created entities, in the order of creates */
    QUERN__ARRAY(quern__spawned) spawned; /* in the order of streams */
    /* for each of `spawned`, the first row of each group in its archetype */
    QUERN__ARRAY(uint32_t) spawned_rows;
    bool spawned_are_linked;                     /* the relate stage has linked and named the members */
    QUERN__ARRAY(quern__other_members) others;   /* ascending */
    QUERN__ARRAY(quern__leaf_plan *) leaf_plans; /* the first leaf_plan_count are in use */
    uint32_t leaf_plan_count;
    QUERN__ARRAY(quern_entity) handles; /* scratch memory: the members of one copied tree */
    /* from quern__clones_begin to quern__clones_end: */
    QUERN__ARRAY(quern__clone) clones; /* in the order of streams */
    QUERN__ARRAY(quern__cloned_stream) cloned_streams;
};

void quern__resolved_release(quern__resolved *resolved, const quern_allocator *allocator);

/* Clears all results and keeps the memory. */
static inline void quern__resolved_clear(quern__resolved *resolved)
{
    resolved->deltas.count = 0;
    if (QUERN__UNLIKELY(resolved->spawned.count > 0)) {
        resolved->spawned.count = 0;
        resolved->spawned_rows.count = 0;
        resolved->others.count = 0;
        resolved->leaf_plan_count = 0;
        resolved->spawned_are_linked = false;
    }
    resolved->created.count = 0;
    resolved->created_count = 0;
    resolved->destroyed_count = 0;
    resolved->refused_count = 0;
    resolved->refused_result = QUERN_OK;
}

/* Resolves all edits. `resolved` must have been cleared. Also writes to `merged`. Reserves entries in drops for
 * the dropped commands, but no rows: see quern__resolved_reserve. On failure, nothing stays allocated except
 * empty archetypes. Errors: OUT_OF_MEMORY. */
quern_result quern__commands_resolve(quern__resolved *resolved, quern__merged *merged,
                                     const quern__gathered *gathered, quern__storage *storage,
                                     quern__drops *drops);

/* Finds the target, plan and values of an unresolved sequence. If the sequence exceeds a limit of an entity or
 * of the world, sets is_refused and succeeds. Errors: OUT_OF_MEMORY; the caller must then clear the tree. */
quern_result quern__sequence_resolve(quern__resolved *resolved, quern__storage *storage,
                                     quern__sequences *sequences, quern__sequence *sequence);

/* Returns the delta of an archetype, and adds one if there is none. Returns NULL if out of memory. */
quern__archetype_delta *quern__resolved_add(quern__resolved *resolved, const quern__storage *storage,
                                            quern__archetype *archetype);

/* Reserves rows, slots and lists according to the deltas and counts, and memory for spawned instances. has_gaps: all
 * gaps are listed already. On failure, nothing stays reserved except new entity records. Errors: OUT_OF_MEMORY, LIMIT. */
quern_result quern__resolved_reserve(quern__resolved *resolved, const quern__gathered *gathered,
                                     quern__storage *storage, bool has_gaps);

/* Returns the number of rows that edits find in the archetype: those from before the sync point, and the members of
 * instances. */
static inline uint32_t quern__delta_row_count(const quern__archetype_delta *delta)
{
    return delta->row_count + delta->spawned_count;
}

/* Returns an error if one sync point cannot create this number of entities: LIMIT. */
quern_result quern__created_check(uint64_t count);

/* Cancels the reservations of rows, after a failure. */
void quern__resolved_unreserve(quern__resolved *resolved, quern__storage *storage);

/* Returns the delta of an archetype, which must have one. */
static inline quern__archetype_delta *quern__resolved_delta(const quern__resolved *resolved,
                                                            const quern__archetype *archetype)
{
    return &resolved->deltas.items[resolved->delta_of_archetype.items[archetype->index]];
}

/* ------------------------------------------------------------------------------- instances of prefabs */

/* Spawning by command. Instances come first: before merging they are listed, with the rows that their members will
 * have, and when rows begin to change they are put into the world, by the same functions as immediate spawning
 * (core/prefabs/prefab_internal.h), consecutive ones together. In between, commands on a member are commands on its row,
 * which is reserved and has a location. If the relate stage runs, it lists each instance when it reaches its command,
 * and links its members, so that commands on relations find them. Its rows agree with these links: only later changes
 * need follow-up commands. */

/* A copy made by a clone is an instance of the tree that quern__clones_begin has captured, or of quern__leaf_prefab.
 * Provisional handles are numbered when commands are recorded, when only the root of the copy is known. The other members
 * therefore have the numbers after all creates of the stream. The relate stage always runs if there are such members. */

/* Consecutive instances of one prefab. */
struct quern__spawned {
    const quern__prefab *prefab;
    /* operation of the first instance; of all instances if it has overrides */
    const quern__operation *operation;
    const char *first_item;
    const quern__prefab_plan *plan; /* NULL: refused, since the world cannot have more archetypes */
    quern_entity parent;            /* of the roots, or null */
    uint32_t count;
    uint32_t first_created;      /* number of the first root among the creates of all streams */
    uint32_t first_row;          /* index of the first group in quern__resolved.spawned_rows */
    uint32_t first_destroyed;    /* index in the list of destroyed entities, if refused */
    quern_result refused_result; /* the error, if refused; QUERN_OK if a clone has nothing to copy */
    uint32_t first_clone;        /* index of the first instance's clone, or QUERN__CLONE_NONE */
    uint32_t first_other;        /* of a clone: number of member 1 among the creates of all streams */
};

#define QUERN__CLONE_NONE UINT32_MAX

/* Finds what clones copy, gives their streams the handles of all members, and the traits that follow. Nothing in the world
 * has changed yet. Call quern__clones_end afterwards also on failure. Errors: OUT_OF_MEMORY, LIMIT. */
quern_result quern__clones_begin(quern__resolved *resolved, quern__gathered *gathered,
                                 quern__storage *storage);

/* Ends the sync point: restores the streams, for another attempt after a failure, and releases captured trees. */
void quern__clones_end(quern__resolved *resolved, const quern__storage *storage);

/* Finds or makes the plan for the copy of a leaf. Errors: those of quern__leaf_find_target. */
quern_result quern__leaf_plan_find(quern__resolved *resolved, quern__storage *storage,
                                   quern__archetype *archetype, uint32_t parent_slot,
                                   const quern__prefab_plan **out_plan);

/* Frees the lists of clones. */
void quern__clones_release(quern__resolved *resolved, const quern_allocator *allocator);

/* Returns whether the entity with this number is the copy of an entity that was not copied. */
bool quern__spawned_is_not_copied(const quern__resolved *resolved, uint32_t created);

/* Lists all instances, and performs quern__spawned_reserve_rows. The relate stage lists them itself. Errors:
 * OUT_OF_MEMORY. */
quern_result quern__spawned_list(quern__resolved *resolved, const quern__gathered *gathered,
                                 quern__storage *storage);

/* Reserves the rows of all listed instances. Errors: OUT_OF_MEMORY. */
quern_result quern__spawned_reserve_rows(quern__resolved *resolved, quern__storage *storage);

/* Returns whether the entity that is created as number `created` is a member of an instance, and in *out_location the
 * location of its row; 0 if the instance is refused. *hint: 0 at first; consecutive calls usually find members of the
 * same or the next instances. Requires quern__spawned_reserve_rows, and some instance. */
bool quern__spawned_find(const quern__resolved *resolved, uint32_t created, uint32_t *hint,
                         uintptr_t *out_location);

/* Returns the archetype of that member, or NULL if the entity is none or its instance is refused. */
const quern__archetype *quern__spawned_archetype(const quern__resolved *resolved, uint32_t created);

/* Returns the number of the member whose row is at the location, or UINT32_MAX. Iterates over all instances. */
uint32_t quern__spawned_at(const quern__resolved *resolved, uintptr_t location);

/* Counts refused instances, and reserves links and names. Slots must have been reserved. Errors: OUT_OF_MEMORY. */
quern_result quern__spawned_reserve(quern__resolved *resolved, quern__storage *storage);

/* Puts all instances into the world. Creates must have their handles. */
void quern__spawned_put(quern__resolved *resolved, quern__storage *storage);

/* ------------------------------------------------------------------------------------------- applying */

/* Applying, the last stage of a sync point. It changes the world and cannot fail. */

/* Calls on_remove for all rows that commands destroy or take components from: rows with greater levels first, then in the
 * order of archetypes and rows. Precedes quern__commands_apply, after everything that may fail. Precondition: the world
 * has entity hooks. */
void quern__merged_call_hooks(const quern__merged *merged, quern__storage *storage);

/* Applies all edits. executor NULL: runs on the calling thread. */
void quern__commands_apply(quern__resolved *resolved, quern__merged *merged,
                           const quern__gathered *gathered, quern__storage *storage,
                           const quern__executor *executor);

/* Apply the edits of consecutive rows with the same sequence: of rows that stay in their archetype, or of rows that have
 * moved to the target archetype. rows: the edits of these rows. */
void quern__edits_write(const quern__scratch *scratch, const quern__sequence *sequence, uintptr_t location,
                        const quern__edit *rows, uint32_t count);
void quern__edits_fill(const quern__scratch *scratch, const quern__sequence *sequence, uintptr_t to,
                       const quern__edit *rows, uint32_t count);

/* The first and the last step of applying; the last stage and the fast path of destroys and creates share them.
 * quern__change_begin allocates the handles of creates, stores them in resolved->created, puts prefab instances into
 * the world, and appends all other reserved rows, uninitialised. */
void quern__change_begin(quern__resolved *resolved, const quern__gathered *gathered,
                         quern__storage *storage);

/* Fills the remaining gaps with the last rows of each archetype, removes these rows, and frees the slots of destroyed
 * entities. executor NULL: runs on the calling thread. */
void quern__change_end(quern__resolved *resolved, quern__storage *storage, const quern__executor *executor);

/* Replaces provisional handles in the values of an item. created: the handles of the creates of the item's
 * stream; recording has rejected provisional handles of other streams. */
void quern__item_remap(const quern__operation *operation, char *item, quern_entity *created);

/* The function with which quern__item_remap remaps the handles of a value. argument: created. */
quern_entity quern__remap_created(void *argument, quern_entity entity);

/* --------------------------------------------------------------------------------- accumulated values */

/* Applying accumulated values (core/record/accumulator.h): the sync point combines them with the values of
 * entities after it has applied all other commands.
 *
 * All items are processed in order. If several threads share the work, entities are partitioned by slot. Each
 * thread reads all items and combines those of its partition. Reading past the other items is cheap compared
 * with the random accesses to entities, and a list of the items of each thread would be as long as the items
 * themselves.
 *
 * All items of an entity are in one partition, so one thread combines them in the order of streams. Values are
 * therefore the same with every number of threads. */

typedef struct quern__accumulating {
    quern__storage *storage;
    quern__gathered gathered;
    bool destroys;      /* some command of the sync point destroys entities */
    uint32_t max_drops; /* upper bound on the entries of drops that the items may add */
    uint64_t dropped_count;
    /* Archetypes, before the commands, of entities that some reaction to sets did not match then
     * (quern__reactions_miss), by handle. 0: the entity is created at this sync point. */
    quern__map unmatched;
} quern__accumulating;

quern__accumulating *quern__accumulating_create(quern__storage *storage);

/* Frees the state. it may be NULL. */
void quern__accumulating_destroy(quern__accumulating *it);

/* Prepares the sync point before it changes anything: gathers the streams, of which there must be at least one,
 * and reserves entries of drops. commands: gathered streams of commands, which will be applied first. If some
 * command destroys entities, items of entities that are already dead are marked, to tell the two reasons
 * apart. Errors: OUT_OF_MEMORY. */
quern_result quern__accumulating_prepare(quern__accumulating *it, quern__recorders recorders,
                                         const quern__gathered *commands, quern__drops *drops);

/* Undoes a successful prepare if the commands could not be applied: removes the marks. */
void quern__accumulating_undo(const quern__accumulating *it);

/* Combines all values. Cannot fail. commands: the streams of commands that have been applied, or NULL. created:
 * the handles of their creates, in order. Adds dropped items to drops; entries from first_drop on belong
 * to this sync point. executor NULL: runs on the calling thread. */
void quern__accumulating_apply(quern__accumulating *it, const quern__gathered *commands,
                               const quern_entity *created, quern__drops *drops, uint32_t first_drop,
                               const quern__executor *executor);

/* ------------------------------------------------------------------------- fast path: values in place */

/* Fast path of a sync point, tried right after gathering. It applies if all commands only set values without
 * hooks, or enable or disable components, and their entities have these components. Rows then neither appear,
 * disappear nor move, and applying the commands in order makes the last one win. Merging and resolving are not
 * needed. */

/* Whether all entities are alive and have the components of the commands, all of which must have
 * QUERN__TRAIT_IN_PLACE. */
bool quern__gathered_is_in_place(const quern__gathered *gathered, const quern__storage *storage);

/* Applies all commands in order. Precondition: quern__gathered_is_in_place. */
void quern__gathered_apply_in_place(const quern__gathered *gathered, const quern__storage *storage);

/* ------------------------------------------------------------------------------ fast path: one entity */

/* Fast path of a sync point, tried right after gathering. It applies if there are only a few commands, all on
 * one living entity. At most one row leaves or arrives then, so no order of rows has to be determined: chunk
 * edits, groups, archetype deltas and lists of gaps are not needed. Merging and resolving the edit, and
 * changing rows, use the same functions as the stages, with the same result. */

/* Applies the commands. If they destroy the entity, counts it in `resolved`. Returns false without changes if
 * the fast path does not apply, if a command is refused or dropped, or if out of memory; the stages must then
 * run. observer: the executor that is notified when the stage APPLY begins; may be NULL. */
bool quern__commands_apply_to_one(quern__merged *merged, quern__resolved *resolved,
                                  const quern__gathered *gathered, quern__storage *storage,
                                  const quern__executor *observer);

/* -------------------------------------------------------------------- fast path: destroys and creates */

/* Fast path of a sync point, tried right after gathering. It applies if commands only destroy existing
 * entities, in the order of their rows and without destroy hooks, create entities from types without hooks,
 * and spawn prefabs. Each entity then has exactly one command, so merging is
 * not needed. Systems destroy entities in the order of rows, and this order rules out that an entity is
 * destroyed twice. Commands in another order go through all stages: sorting them was measured to be slower.
 * The resulting rows, handles and values are those of all stages. */

typedef struct quern__create_span quern__create_span;

typedef struct quern__destroy_and_create {
    quern__sequences sequences;
    QUERN__ARRAY(quern__create_span) spans; /* in the order of streams */
} quern__destroy_and_create;

void quern__destroy_and_create_release(quern__destroy_and_create *lists, const quern_allocator *allocator);

/* Checks whether the fast path applies to the commands, which must have QUERN__TRAIT_DESTROY_OR_CREATE.
 * `resolved` has only instances of prefabs. If the path applies, fills in its deltas and gaps and reserves memory;
 * otherwise restores it. On failure, nothing stays reserved except empty archetypes and new entity records.
 * Errors: OUT_OF_MEMORY, LIMIT. */
quern_result quern__destroy_and_create_prepare(quern__destroy_and_create *lists, quern__resolved *resolved,
                                               const quern__gathered *gathered, quern__storage *storage,
                                               bool *out_is_applicable);

/* Applies all commands. Precondition: quern__destroy_and_create_prepare set *out_is_applicable. executor NULL:
 * runs on the calling thread. */
void quern__destroy_and_create_apply(const quern__destroy_and_create *lists, quern__resolved *resolved,
                                     const quern__gathered *gathered, quern__storage *storage,
                                     const quern__executor *executor);

/* -------------------------------------------------------------------------------- fast path: relating */

/* A fast path for sync points whose commands all relate or unrelate existing entities, in one relation with a
 * single target per source. The commands change links one after the other, as the relate stage does. Then the rows
 * move as after quern_entity_relate_many (core/relations/relation_internal.h), instead of by follow-up commands
 * that go through all stages. The result is the same, including the order of rows.
 *
 * All stages run instead if the commands are of other kinds, if a row that changes has hooks or listeners, or if
 * something fails: then they report the error, or refuse the entity. */

/* Applies all commands and finishes the relate stage. Returns false if all stages must run; then nothing has changed.
 * Precondition: quern__relating_begin. drops: list to reserve entries in, for the drops that end up in `merged`. */
bool quern__commands_only_relate(quern__relating *relating, quern__gathered *gathered,
                                 quern__merged *merged, quern__resolved *resolved, quern__drops *drops,
                                 const quern__executor *observer);

/* ---------------------------------------------------------------------------------- kinds of commands */

/* State of reading a sequence of commands (resolve.c). */
typedef struct quern__effect quern__effect;

/* Reads the i-th operand of an operation. hop: distance from the last operation of the sequence. */
typedef void quern__read_function(quern__effect *effect, const quern__operation *operation, uint32_t i,
                                  uint32_t hop);

quern__read_function quern__read_add, quern__read_value, quern__read_remove;

/* Change the bit of the row flag that the kind needs (needed_flag). */
quern__read_function quern__read_clear_bit, quern__read_set_bit;

/* The column `set` of QUERN__COMMAND_KINDS. Applies the items of a batch if `writes` is true, otherwise only
 * checks them. Returns false if an entity is dead or lacks the component; the caller must have checked the
 * batch before it writes. */
typedef bool quern__set_function(const quern__storage *storage, quern__command_batch *batch,
                                 bool is_located, bool writes);

quern__set_function quern__set_values;

/* Change the bit of the row flag that the kind needs (needed_flag). */
quern__set_function quern__clear_bits, quern__set_bits;

/* The functions `read`, `set` and `play` of each kind in QUERN__COMMAND_KINDS. */

typedef struct quern__kind_calls {
    quern__read_function *read;
    quern__set_function *set;
    quern__play_function *play;
} quern__kind_calls;

/* Indexed by quern__operation_kind. */
extern const quern__kind_calls quern__kind_calls_of[QUERN__OPERATION_COUNT];

#endif
