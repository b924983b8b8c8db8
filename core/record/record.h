/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_RECORD_RECORD_H
#define QUERN_CORE_RECORD_RECORD_H

/* Recording commands. Each worker has its own recorder with its own memory blocks, so recording needs no lock.
 * The commands of one callback form a *stream*, identified by its key. At the sync point, playback (core/playback/stages.h) sorts the
 * streams of all recorders by key; from then on, the recording threads are irrelevant.
 *
 * A stream is a list of *command batches*. Consecutive commands with the same operation (operation.h) share one
 * batch and its header:
 *
 *   | batch header, 16 bytes | item | item | ... | batch header | item | ... | jump to the next block |
 *
 * All items of a batch have the same size, so a loop over a batch is a loop over an array. A command for the
 * rows of a view is a batch of its own, without items; the number of its rows counts as the
 * number of items. */

#include "core/base/containers.h"
#include "core/record/operation.h"
#include "core/storage/row_bits.h"
#include "core/storage/storage.h"

#include <quern/commands.h>

enum { QUERN__RECORDER_ALIGNMENT_BYTES = 128 };

typedef struct quern__command_batch {
    /* NULL: a jump. The alignment makes the header 16 bytes on every platform, so that items, which contain
     * 64-bit values, follow it aligned. */
    _Alignas(8) const quern__operation *operation;
    union {
        struct quern__command_batch *next; /* jump: where the stream continues, in another block */
        struct {
            uint32_t item_count;
            uint16_t first_item_bytes; /* offset of the first item from the header */
            bool is_view;              /* one command for many rows instead of items */
        };
    };
} quern__command_batch;

/* The callback that recorded a stream. */
typedef struct quern__origin {
    uint64_t key;           /* position of the stream in the order of application; unique */
    uint32_t serial;        /* generation of the stream's provisional handles */
    uint32_t system_number; /* number of the system in reports of dropped commands */
    const char *name;       /* name of the system, for messages; must outlive the stream. NULL: no system */
} quern__origin;

typedef struct quern__stream {
    quern__origin origin;
    quern__command_batch *first;
    uint32_t batch_count;
    uint32_t create_count;
    uint32_t member_count;  /* number of those creates that are members of prefab instances */
    uint64_t command_count; /* valid once the stream is closed */
    uint32_t item_count;    /* valid once the stream is closed */
    /* structure version of the storage at the first command. Locations in the items are valid while the
     * storage's version is unchanged. */
    uint64_t structure_version;
    uint8_t traits; /* quern__trait shared by all commands of the stream */
} quern__stream;

typedef struct quern__block {
    char *memory;
} quern__block;

/* A recorder. Aligned so that the recorders of different workers share no cache line. Its address never
 * changes: user code may keep a pointer beyond the callback, and commands recorded through it must fail. */
struct quern_commands {
    /* Free space in the current block, and the open batch, which the next command may join. */
    _Alignas(QUERN__RECORDER_ALIGNMENT_BYTES) char *next;
    char *end;                         /* end of the space for items; a jump fits after it */
    const quern__operation *operation; /* operation of the open batch; NULL: no batch is open */
    quern__command_batch *batch;
    uint64_t join_key; /* join_key of the operation of the open batch; 0: no batch is open */
    quern__storage *storage;
    quern__origin origin; /* origin of the running callback */
    /* Functions that apply the commands at a sync point: playback.h. NULL until a callback may record. */
    const struct quern__playback_calls *playback_calls;
    const void *callback_thread; /* thread of the running callback; NULL: no callback is running */
    /* stream of the running callback, always the last of streams; NULL: it has no commands yet */
    quern__stream *open;
    /* QUERN_OK, or OUT_OF_MEMORY if a command could not be recorded for lack of memory */
    quern_result failed;
    uint32_t failed_count; /* failed calls since the owner of the recorder last reset the number */
    /* Whether a failed call of the running callback's system or query has been logged. All threads that run its
     * callbacks share the flag. NULL: failures are not logged. */
    _Atomic bool *has_logged_failure;
    uint32_t block_index; /* index of the current block; later blocks are unused and kept for reuse */
    QUERN__ARRAY(quern__block) blocks;
    QUERN__ARRAY(quern__stream) streams; /* each with at least one command */
    quern__operations operations;
    /* NULL until the first accumulated value; see accumulator.h */
    struct quern__accumulator *accumulator;
    /* State for spawning; see spawn.h. */
    QUERN__ARRAY(struct quern__spawn_cache *) spawns; /* indexed by the prefab's index */
    /* caches of destroyed prefabs that pending commands may refer to */
    struct quern__spawn_cache *old_spawn_caches;
    bool retains_prefabs;
    /* Links of the storage's list of recorders; NULL if the recorder is not in it. */
    quern_commands *next_recorder, **place_recorder;
};

/* The recorders of all workers. */
typedef struct quern__recorders {
    quern_commands *const *items;
    uint32_t count;
} quern__recorders;

/* Largest serial. Serials start at 1. A provisional handle has the serial of its stream as generation, so a
 * serial must fit there. */
#define QUERN__MAX_SERIAL ((uint32_t)QUERN__MAX_GENERATION)

static inline uint32_t quern__serial_of(uint64_t stream_number)
{
    return (uint32_t)(stream_number % QUERN__MAX_SERIAL) + 1;
}

void quern__commands_init(quern_commands *commands, quern__storage *storage);

/* Adds the recorder to the list of its storage, until it is released. */
void quern__commands_list(quern_commands *commands);

void quern__commands_release(quern_commands *commands);

/* Redefinition of a component with another layout, in all recorders of the storage. The first function checks that no
 * waiting command has a value of the component. The second one gives the operations the layout that the component has by
 * now. Errors of the first: INVALID_ARGUMENT. */
quern_result quern__recorders_check_layout_change(const quern__storage *storage, uint32_t component_index);
void quern__recorders_change_layout(const quern__storage *storage, uint32_t component_index);

/* Begins a callback: the following commands go to a new stream with this origin. */
void quern__commands_begin(quern_commands *commands, const quern__origin *origin);

/* Ends the callback: further commands fail until quern__commands_begin. A batch is never open between
 * callbacks, so a command must first reserve space, and reserving checks for a running callback. Commands that
 * join an open batch skip that check. */
void quern__commands_end(quern_commands *commands);

/* Closes the open stream; afterwards the command counts of all streams are valid. quern__commands_close skips
 * the call if there is nothing to close. */
void quern__commands_close_stream(quern_commands *commands);

static inline void quern__commands_close(quern_commands *commands)
{
    if (commands->open != NULL || QUERN__UNLIKELY(commands->accumulator != NULL))
        quern__commands_close_stream(commands);
}

/* Destroys the values that items of the stream still own. quern__stream_destroy_values skips the call if no
 * value has a destroy hook. */
void quern__stream_destroy_owned(const quern__stream *stream);

static inline void quern__stream_destroy_values(const quern__stream *stream)
{
    if (QUERN__UNLIKELY(QUERN__MAY(stream->traits, OWNED))) quern__stream_destroy_owned(stream);
}

/* Removes all streams, destroys the values that their items still own, and keeps the memory for reuse. */
void quern__commands_reset(quern_commands *commands);

/* ------------------------------------------------------------------------------------ iterating streams */

/* Returns the batch at this address, or the batch that the jumps at this address lead to. */
static inline quern__command_batch *quern__batch_skip_jumps(quern__command_batch *batch)
{
    while (batch->operation == NULL)
        batch = batch->next;
    return batch;
}

static inline char *quern__batch_items(quern__command_batch *batch)
{
    return (char *)batch + batch->first_item_bytes;
}

/* A command for rows of one chunk, stored at the position of the first item. */
typedef struct quern__view_batch {
    uintptr_t location;       /* location of the first row when the command was recorded */
    uint32_t first_row;       /* index of the first row in the chunk */
    uint32_t last_row;        /* index of the last one */
    uint32_t bytes;           /* size of this struct and of the three lists that follow it */
    uint32_t mask_word_count; /* 0: the rows are consecutive */
    uint32_t value_bytes;     /* distance between the values of two rows; 0: one value, or none, for all */
    bool has_skipped;         /* some handles are null: the relate stage has dropped these rows */
    _Alignas(8) char entities[]; /* a handle per row; then the mask; then the values */
} quern__view_batch;

/* Returns the address after the batch. */
static inline char *quern__batch_end(quern__command_batch *batch)
{
    char *items = quern__batch_items(batch);
    if (QUERN__UNLIKELY(batch->is_view))
        return items + ((const quern__view_batch *)(const void *)items)->bytes;
    return items + (size_t)batch->operation->item_bytes * batch->item_count;
}

/* Returns the next batch. The batch must not be the last of its stream. */
static inline quern__command_batch *quern__batch_next(quern__command_batch *batch)
{
    return quern__batch_skip_jumps((quern__command_batch *)(void *)quern__batch_end(batch));
}

/* Returns the i-th item. Precondition: the batch is no command for a view. */
static inline quern__item *quern__batch_item(quern__command_batch *batch, uint32_t i)
{
    return (quern__item *)(void *)(quern__batch_items(batch) + (size_t)i * batch->operation->item_bytes);
}

/* Returns the address of the next item of a batch. */
static inline quern__item *quern__item_next(const quern__item *item, const quern__operation *operation)
{
    return (quern__item *)(void *)((char *)(uintptr_t)item + operation->item_bytes);
}

/* Space for items in a recorder's blocks. Every command finds space and appends an item, inline. If the block
 * has no space left, space is reserved first; only that may allocate memory and fail. */

/* Closes the open batch. Counts its commands now, so that recording a command only updates item_count. */
static inline void quern__batch_close(quern_commands *commands)
{
    if (commands->operation == NULL) return;
    quern__stream *stream = commands->open;
    stream->command_count += (uint64_t)commands->batch->item_count * commands->operation->command_count;
    stream->item_count += commands->batch->item_count;
    commands->operation = NULL;
    commands->join_key = 0;
}

/* Largest size of a batch with one item, at an address aligned to 8 bytes. */
static inline uint32_t quern__batch_max_bytes(const quern__operation *operation)
{
    return (uint32_t)sizeof(quern__command_batch) + operation->alignment_bytes - 8 + operation->item_bytes;
}

/* Number of padding bytes between the address and an item there. */
static inline size_t quern__item_padding(const quern__operation *operation, const char *address)
{
    return (size_t) - (uintptr_t)address & (operation->alignment_bytes - 1);
}

/* Returns the space for one more item: in the open batch, or after the header of a new batch in the current
 * block. Returns NULL if the callback has no stream yet or the block is full; then call quern__item_space_reserve
 * and quern__item_space_open. An open stream always belongs to the running callback. */
static inline char *quern__item_space_find(const quern_commands *commands,
                                           const quern__operation *operation)
{
    char *next = commands->next;
    const size_t left = (size_t)(commands->end - next);
    if (commands->operation == operation && left >= operation->item_bytes) return next;
    if (commands->open == NULL || left < quern__batch_max_bytes(operation)) return NULL;
    return next + sizeof(quern__command_batch) +
           quern__item_padding(operation, next + sizeof(quern__command_batch));
}

static inline void quern__batch_begin(quern_commands *commands, const quern__operation *operation,
                                      const char *first_item)
{
    quern__batch_close(commands);
    quern__command_batch *batch = (quern__command_batch *)(void *)commands->next;
    batch->operation = operation;
    batch->item_count = 0;
    batch->first_item_bytes = (uint16_t)(first_item - commands->next);
    batch->is_view = false;
    commands->open->batch_count++;
    commands->open->traits &= operation->traits;
    commands->batch = batch;
    commands->operation = operation;
    commands->join_key = operation->join_key;
}

/* Appends an item to the space that quern__item_space_find returned. The caller fills the item. */
static inline quern__item *quern__item_append(quern_commands *commands, const quern__operation *operation,
                                              char *space)
{
    if (space != commands->next) quern__batch_begin(commands, operation, space);
    commands->next = space + operation->item_bytes;
    assert(commands->next <= commands->end);
    commands->batch->item_count++;
    return (quern__item *)(void *)space;
}

/* Adds the names of the call and the system to the message of a failed call, and counts the call. The first one of a
 * system or query is logged, unless the entity was destroyed (STALE_ENTITY), the frame reports the failure
 * (OUT_OF_MEMORY), or it has been logged. Returns `result`. */
QUERN__SLOW_PATH quern_result quern__commands_fail(quern_commands *commands, quern_result result,
                                                   const char *function);

/* Reserves memory for `count` more items, so that recording them cannot fail. Errors: OUT_OF_MEMORY;
 * INVALID_ARGUMENT if no callback is running. */
quern_result quern__item_space_reserve(quern_commands *commands, const quern__operation *operation,
                                       uint32_t count, const char *function);

/* Reserves memory for items of several operations, each in its own batch. bytes: total size of the batches.
 * largest_bytes: size of the largest. Errors: like quern__item_space_reserve. */
quern_result quern__item_space_reserve_mixed(quern_commands *commands, uint64_t bytes,
                                             uint32_t largest_bytes, const char *function);

/* Returns space in reserved memory after quern__item_space_find returned NULL: continues in the next block, or
 * begins the stream of the callback. */
char *quern__item_space_open(quern_commands *commands, const quern__operation *operation);

/* Closes the open batch and returns space for a batch of this size in reserved memory, as
 * quern__item_space_open does for an item. bytes: a multiple of 8. */
char *quern__item_space_open_bytes(quern_commands *commands, uint32_t bytes);

/* Returns space for one more item, and reserves it first if necessary. Errors: like quern__item_space_reserve. */
static inline quern_result quern__item_space_get(quern_commands *commands,
                                                 const quern__operation *operation, const char *function,
                                                 char **out_space)
{
    quern_result result = QUERN_OK;
    *out_space = quern__item_space_find(commands, operation);
    if (QUERN__LIKELY(*out_space != NULL)) return QUERN_OK;
    result = quern__item_space_reserve(commands, operation, 1, function);
    if (result == QUERN_OK) *out_space = quern__item_space_open(commands, operation);
    return result;
}

/* Reports that a command could not be recorded for lack of memory. The next sync point applies the others and
 * reports the loss. */
quern_result quern__commands_fail_memory(quern_commands *commands);

/* Reports that code outside of the running callback uses the recorder. */
QUERN__SLOW_PATH quern_result quern__commands_fail_foreign_use(const quern_commands *commands,
                                                               const char *function);

/* Adds blocks for `bytes` bytes of commands after the current block, and touches their memory. Returns false, with
 * nothing changed, if out of memory. */
bool quern__blocks_reserve_bytes(quern_commands *commands, uint64_t bytes);

/* Filling the space of recorded items, and the checks before it. */

/* Whether the calling thread runs the callback that owns the recorder. Always true without QUERN_CHECKS; then
 * quern__item_space_reserve detects that no callback is running. */
static inline bool quern__commands_can_record(const quern_commands *commands)
{
    return !QUERN_CHECKS || commands->callback_thread == quern__this_thread();
}

/* Stores a value of the caller in the item, for the i-th operand. */
static inline void quern__item_write_value(const quern__operation *operation, char *item, uint32_t i,
                                           const void *value)
{
    const quern__operand *operand = &operation->operands[i];
    char *target = item + operand->offset_bytes;
    if (operand->is_plain) {
        quern__copy_new_value(target, value, operand->size_bytes);
        return;
    }
    quern__type_accept(operand->type, target, value, 1);
    if (operation->has_destroy)
        item[operation->owned_offset_bytes + i] = operand->type->hooks.destroy != NULL ? '\1' : '\0';
}

static inline void quern__item_clear_owned(const quern__operation *operation, char *item)
{
    if (operation->has_destroy) memset(item + operation->owned_offset_bytes, 0, operation->operand_count);
}

/* Checks a value before it is recorded. Fails if it contains provisional handles of other streams, or if it is
 * the value of a relation's component and no valid target for the entity. entity: null for a create. value may
 * be NULL. */
quern_result quern__commands_check_value(quern_commands *commands, const quern__operand *operand,
                                         quern_entity entity, const void *value, const char *function);

/* Records quern_commands_set_edge_value for whatever target the source then has, or for the target of the element. The
 * command has no effect if there is no such edge. */
quern_result quern__commands_set_target_value(quern_commands *commands, quern_entity source,
                                              quern_relation relation, const void *value,
                                              const char *function);

/* Checks an entity that is not alive. Succeeds only for a provisional handle from the running callback. */
quern_result quern__commands_check_entity(const quern_commands *commands, quern_entity entity,
                                          const char *function);

/* Whether the handle is provisional and from a create that the running callback has recorded. */
bool quern__commands_have_created(const quern_commands *commands, quern_entity entity);

/* Commands for rows of a view. Such a command is a batch with is_view set, which has a quern__view_batch instead
 * of items:
 *
 *   | batch header | quern__view_batch | handle of each row | mask | values |
 *
 * It means the same as one single command on the entity of each row, in the order of rows, and has the operation
 * of these commands. item_count is the number of rows.
 *
 * As long as no row has moved since recording, the rows are found by location and mask, many at a time. Otherwise
 * they are found by their handles. The handles are copied when the command is recorded: a later sync point may
 * retry commands after the world has changed.
 *
 * Later stages address values like those of items: quern__view_items returns an address to which the operand's
 * offset_bytes can be added. There is no item at the address. */

/* Maximum size of a batch. Larger commands are split into several batches. */
#define QUERN__VIEW_BATCH_MAX_BYTES ((size_t)48 * 1024)

/* Appends a batch for this many rows in reserved memory. The caller fills the quern__view_batch, of which
 * view_bytes is the whole size. */
quern__command_batch *quern__view_batch_append(quern_commands *commands, const quern__operation *operation,
                                               uint32_t row_count, uint32_t view_bytes);

static inline quern__view_batch *quern__view_of(quern__command_batch *batch)
{
    assert(batch->is_view);
    return (quern__view_batch *)(void *)quern__batch_items(batch);
}

/* Returns the handles of the rows. */
static inline quern_entity *quern__view_entities(quern__command_batch *batch)
{
    return (quern_entity *)(void *)quern__view_of(batch)->entities;
}

/* Returns the bits of the rows in the chunk. There are mask_word_count words. */
static inline uint64_t *quern__view_mask(quern__command_batch *batch)
{
    return (uint64_t *)(void *)(quern__view_of(batch)->entities + batch->item_count * sizeof(quern_entity));
}

/* Returns the value of the first row. Precondition: the operation gives a value. */
static inline char *quern__view_values(quern__command_batch *batch)
{
    return (char *)(quern__view_mask(batch) + quern__view_of(batch)->mask_word_count);
}

/* Whether the rows of the batch are where they were when it was recorded, so that location and mask may be used.
 * is_located: see quern__gathered_stream. */
static inline bool quern__view_is_located(quern__command_batch *batch, bool is_located)
{
    return is_located && !quern__view_of(batch)->has_skipped;
}

/* Addresses of the values of a batch: the one of the i-th row is an operand's offset after
 * first + i * stride_bytes. */
typedef struct quern__view_items {
    char *first;
    uint32_t stride_bytes; /* 0: all rows have the same value, or none */
} quern__view_items;

static inline quern__view_items quern__view_items_of(quern__command_batch *batch)
{
    const quern__operation *operation = batch->operation;
    if (operation->operand_count == 0 || operation->operands[0].offset_bytes == 0)
        return (quern__view_items){.first = (char *)batch};
    return (quern__view_items){.first = quern__view_values(batch) - operation->operands[0].offset_bytes,
                               .stride_bytes = quern__view_of(batch)->value_bytes};
}

static inline char *quern__view_item(quern__view_items items, uint32_t i)
{
    return items.first + (size_t)i * items.stride_bytes;
}

/* Copies the values of `count` rows, from the index-th on, to adjacent memory. offset_bytes: offset of the operand's
 * value. */
static inline void quern__view_copy_values(char *to, quern__view_items items, uint32_t index,
                                           uint32_t count, uint32_t offset_bytes, uint32_t size_bytes)
{
    const char *values = quern__view_item(items, index) + offset_bytes;
    if (items.stride_bytes == 0)
        quern__copy_to_many(to, values, size_bytes, count);
    else
        memcpy(to, values, (size_t)size_bytes * count);
}

/* Consecutive rows of a batch. Zeroed before the first call of quern__view_next_range. */
typedef struct quern__view_range {
    quern__bit_range rows; /* in the chunk */
    uint32_t index;        /* index of the first row among those of the batch */
} quern__view_range;

/* Advances *range to the next consecutive rows. Returns false if there are no more. */
static inline bool quern__view_next_range(quern__command_batch *batch, quern__view_range *range)
{
    const quern__view_batch *view = quern__view_of(batch);
    range->index += range->rows.count;
    if (view->mask_word_count > 0)
        return quern__bitset_next_range(quern__view_mask(batch), view->mask_word_count, &range->rows);
    if (range->rows.count > 0) return false;
    range->rows = (quern__bit_range){view->first_row, batch->item_count};
    return true;
}

/* Lists the rows of a batch with a mask, which are item_count. out_rows has room for QUERN__BIT_COLUMN_MAX_ROWS. */
static inline void quern__view_list_rows(quern__command_batch *batch, uint16_t *out_rows)
{
    quern__bitset_list(quern__view_mask(batch), quern__view_of(batch)->mask_word_count, out_rows);
}

/* Returns the chunk of the rows. Precondition: the batch is located. */
static inline quern__chunk *quern__view_chunk(quern__command_batch *batch)
{
    const quern__view_batch *view = quern__view_of(batch);
    return (quern__chunk *)(view->location - view->first_row);
}

static inline uint32_t quern__view_first_row(quern__command_batch *batch)
{
    return quern__view_of(batch)->first_row;
}

#endif
