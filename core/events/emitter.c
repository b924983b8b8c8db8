/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Emitters and the pool of their blocks (event_internal.h): blocks, batches, the life of an emitter, and the calls that
 * emit. */
#include "core/events/event_internal.h"
#include "core/storage/list_values.h"

/* Relaxed: as in quern__pool_forget_taken. */
static void release_block(quern__event_pool *pool, const quern_allocator *allocator,
                          quern__event_block *block)
{
    quern__release(allocator, block, QUERN__EVENT_BLOCK_BYTES, QUERN__EVENT_BLOCK_ALIGNMENT_BYTES);
    atomic_fetch_sub_explicit(&pool->block_count, 1, memory_order_relaxed);
}

void quern__packing_undo(quern_world *world, quern__event_block **blocks)
{
    while (*blocks != NULL) {
        quern__event_block *block = *blocks;
        *blocks = block->next;
        release_block(&world->events->pool, &world->storage.allocator, block);
    }
}

/* --------------------------------------------------------------------------------------------- blocks */

/* Both operations are relaxed: the blocks that workers claim were listed before the workers were woken, and no block is
 * returned before the thread that returns it has waited for all workers. */
static quern__event_block *take_block(quern__event_pool *pool, const quern_allocator *allocator)
{
    const uint32_t taken = atomic_fetch_add_explicit(&pool->taken_count, 1, memory_order_relaxed);
    if (taken < pool->free.count) return pool->free.items[taken];
    quern__event_block *block =
        quern__allocate(allocator, QUERN__EVENT_BLOCK_BYTES, QUERN__EVENT_BLOCK_ALIGNMENT_BYTES);
    if (block != NULL) atomic_fetch_add_explicit(&pool->block_count, 1, memory_order_relaxed);
    return block;
}

/* Relaxed: no callback emits, and the caller has waited for those that did. */
void quern__pool_forget_taken(quern__event_pool *pool)
{
    const uint32_t taken = atomic_load_explicit(&pool->taken_count, memory_order_relaxed);
    const uint32_t left = taken < pool->free.count ? pool->free.count - taken : 0;
    if (taken > 0 && left > 0)
        memmove(pool->free.items, pool->free.items + taken, left * sizeof *pool->free.items);
    pool->free.count = left;
    atomic_store_explicit(&pool->taken_count, 0, memory_order_relaxed);
}

/* Relaxed: as in quern__pool_forget_taken. */
bool quern__pool_reserve(quern__event_pool *pool, const quern_allocator *allocator)
{
    return quern__array_reserve(allocator, &pool->free,
                                atomic_load_explicit(&pool->block_count, memory_order_relaxed));
}

/* Returns a block without batches to the list of free ones. */
static void pool_put_back(quern__event_pool *pool, quern__event_block *block)
{
    assert(pool->free.count < pool->free.capacity);
    pool->free.items[pool->free.count++] = block;
}

bool quern__pool_get_block(quern__event_pool *pool, const quern_allocator *allocator,
                           quern__event_block **list)
{
    quern__pool_forget_taken(pool);
    quern__event_block *block =
        pool->free.count > 0 ? pool->free.items[--pool->free.count] : take_block(pool, allocator);
    quern__pool_forget_taken(pool);
    if (block == NULL) return false;
    block->next = *list;
    block->use_count = 0;
    *list = block;
    return true;
}

void quern__pool_drop_batch(quern__event_pool *pool, const quern__event_batch *batch)
{
    if (--batch->block->use_count == 0) pool_put_back(pool, batch->block);
}

static quern__event_pool *pool_of(const quern__emitter *emitter)
{
    return &emitter->channel->world->events->pool;
}

static const quern_allocator *allocator_of(const quern__emitter *emitter)
{
    return &emitter->channel->world->storage.allocator;
}

/* ----------------------------------------------------------------------------------------------- batches */

static char *next_place(const quern__emitter *emitter)
{
    return emitter->channel->needs_checks ? emitter->cursor : emitter->public_part.next;
}

/* Sets the address of the next value. Emitting without a call is possible up to the end of the batch, or not at all if
 * the channel needs_checks. */
static void set_next_value(quern__emitter *emitter, char *place)
{
    emitter->cursor = place;
    emitter->public_part.end = emitter->batch_end;
    emitter->public_part.next = emitter->channel->needs_checks ? emitter->batch_end : place;
}

/* Ends the open batch, if any. The list has room for it. The next batch begins where this one ends. */
static void close_batch(quern__emitter *emitter)
{
    if (emitter->first == NULL) return;
    emitter->cursor = next_place(emitter);
    const uint32_t count = (uint32_t)(emitter->cursor - emitter->first) / emitter->channel->stride_bytes;
    if (count > 0) {
        emitter->batches.items[emitter->batches.count++] = (quern__keyed_batch){
            .key = emitter->key,
            .batch = {.values = emitter->first, .count = count, .block = emitter->block}};
        emitter->block->use_count++;
    }
    emitter->first = NULL;
    emitter->batch_end = emitter->cursor;
    set_next_value(emitter, emitter->cursor);
}

/* Returns a place for a batch at or after an address: a redefinition may have given the values another alignment. */
static char *align_place(const quern__emitter *emitter, char *place)
{
    const uintptr_t mask = emitter->channel->type.alignment_bytes - 1;
    return place + (-(uintptr_t)place & mask);
}

/* Ends the open batch and begins a new one. Precondition: room was reserved. */
static void begin_batch(quern__emitter *emitter)
{
    close_batch(emitter);
    if (emitter->block != NULL) emitter->cursor = align_place(emitter, emitter->cursor);
    const size_t bytes = emitter->channel->batch_bytes;
    if (emitter->block == NULL || (size_t)(emitter->block_end - emitter->cursor) < bytes) {
        /* the emitter's own block again if all its batches were dropped meanwhile, otherwise a spare */
        if (emitter->block == NULL || emitter->block->use_count > 1) {
            if (emitter->block != NULL) emitter->block->use_count--;
            emitter->block = emitter->spares;
            emitter->spares = emitter->block->next;
            emitter->block->use_count = 1;
        }
        emitter->cursor = (char *)emitter->block + QUERN__EVENT_BLOCK_ALIGNMENT_BYTES;
        emitter->block_end = (char *)emitter->block + QUERN__EVENT_BLOCK_BYTES;
    }
    emitter->first = emitter->cursor;
    emitter->batch_end = emitter->first + bytes;
    set_next_value(emitter, emitter->first);
}

static uint32_t room_left(const quern__emitter *emitter)
{
    if (emitter->first == NULL) return 0;
    return (uint32_t)(emitter->batch_end - next_place(emitter)) / emitter->channel->stride_bytes;
}

/* Counts the batches and blocks that `count` more values need, cut in the same way as begin_batch does. */
static void count_needed(const quern__emitter *emitter, uint32_t count, uint32_t *out_batches,
                         uint32_t *out_blocks)
{
    const uint32_t stride = emitter->channel->stride_bytes, batch_bytes = emitter->channel->batch_bytes;
    char *place = emitter->first != NULL ? emitter->batch_end : emitter->cursor;
    size_t left_bytes =
        emitter->block != NULL ? (size_t)(emitter->block_end - align_place(emitter, place)) : 0;
    uint32_t room = room_left(emitter), batches = 0, blocks = 0;
    while (count > room) {
        count -= room;
        room = batch_bytes / stride;
        batches++;
        if (left_bytes < batch_bytes) {
            blocks++;
            left_bytes = QUERN__EVENT_VALUES_BYTES;
        }
        left_bytes -= batch_bytes;
    }
    *out_batches = batches;
    *out_blocks = blocks;
}

bool quern__emitter_reserve(quern__emitter *emitter, uint32_t count)
{
    uint32_t batches, blocks;
    count_needed(emitter, count, &batches, &blocks);
    if (!quern__array_reserve(allocator_of(emitter), &emitter->batches,
                              emitter->batches.count + batches + 1))
        return false;
    for (const quern__event_block *spare = emitter->spares; spare != NULL && blocks > 0;
         spare = spare->next)
        blocks--;
    for (; blocks > 0; blocks--) {
        quern__event_block *block = take_block(pool_of(emitter), allocator_of(emitter));
        if (block == NULL) return false;
        block->next = emitter->spares;
        emitter->spares = block;
    }
    return true;
}

void quern__emitter_put(quern__emitter *emitter, const void *values, uint32_t count)
{
    const quern__channel *channel = emitter->channel;
    const char *source = values;
    while (count > 0) {
        if (room_left(emitter) == 0) begin_batch(emitter);
        const uint32_t room = room_left(emitter), part = count < room ? count : room;
        char *place = next_place(emitter);
        if (channel->type.size_bytes > 0) {
            quern__type_accept(&channel->type, place, source, part);
            source += (size_t)part * channel->stride_bytes;
        } else
            memset(place, 0, part);
        set_next_value(emitter, place + (size_t)part * channel->stride_bytes);
        count -= part;
    }
}

/* ----------------------------------------------------------------------------------------- life cycle */

void quern__emitter_open(quern__emitter *emitter, quern__channel *channel, uint64_t key,
                         const char *system_name, quern__scope *scope)
{
    emitter->channel = channel;
    emitter->public_part.size_bytes = channel->type.size_bytes;
    emitter->key = key;
    emitter->is_open = true;
    emitter->thread = quern__this_thread();
    emitter->system_name = system_name;
    emitter->scope = scope;
}

void quern__emitter_close(quern__emitter *emitter)
{
    close_batch(emitter);
    emitter->is_open = false;
    emitter->thread = NULL;
    emitter->scope = NULL;
}

void quern__emitter_reclaim(quern__emitter *emitter)
{
    if (emitter->channel == NULL) return;
    quern__event_pool *pool = pool_of(emitter);
    for (quern__event_block *spare = emitter->spares; spare != NULL; spare = emitter->spares) {
        emitter->spares = spare->next;
        pool_put_back(pool, spare);
    }
    if (emitter->block == NULL || emitter->block->use_count > 1 || emitter->first != NULL) return;
    pool_put_back(pool, emitter->block);
    emitter->block = NULL;
    emitter->cursor = emitter->block_end = NULL;
    emitter->public_part.next = emitter->public_part.end = emitter->batch_end = NULL;
}

void quern__emitter_release(quern__emitter *emitter)
{
    if (emitter->channel == NULL) return;
    quern__event_pool *pool = pool_of(emitter);
    const quern_allocator *allocator = allocator_of(emitter);
    quern__emitter_close(emitter);
    for (uint32_t i = 0; i < emitter->batches.count; i++) {
        const quern__event_batch *batch = &emitter->batches.items[i].batch;
        quern__type_destroy(&emitter->channel->type, batch->values, batch->count);
        if (--batch->block->use_count == 0) release_block(pool, allocator, batch->block);
    }
    if (emitter->block != NULL && --emitter->block->use_count == 0)
        release_block(pool, allocator, emitter->block);
    for (quern__event_block *spare = emitter->spares; spare != NULL; spare = emitter->spares) {
        emitter->spares = spare->next;
        release_block(pool, allocator, spare);
    }
    quern__array_release(allocator, &emitter->batches);
    *emitter = (quern__emitter){.channel = NULL};
}

/* ------------------------------------------------------------------------------------------- the calls */

/* Counts a refusal in the callback's scope. result: error code that quern__fail has returned. Returns false. */
static QUERN__SLOW_PATH bool refuse(quern__emitter *emitter, quern_result result)
{
    quern__scope_refuse(emitter->scope, result);
    return false;
}

/* Returns whether the emitter is used by the callback for which it was opened; otherwise refuses the call. Without
 * QUERN_CHECKS, only use after the end of the callback is detected, not use by another thread. */
static bool is_usable(const quern__emitter *emitter, const char *function)
{
    if (QUERN__LIKELY(emitter->is_open) && (!QUERN_CHECKS || emitter->thread == quern__this_thread()))
        return true;
    quern__report_violation(
        QUERN_ERROR_INVALID_ARGUMENT,
        "%s: an emitter of '%s' was used outside of the callback for which it was opened, or "
        "on another thread, such as in the jobs of a parallel loop: emit in the callback "
        "itself",
        function, emitter->channel != NULL ? emitter->channel->type.name : "an event");
    return false;
}

static QUERN__SLOW_PATH bool fail_memory(quern__emitter *emitter, const char *function)
{
    emitter->failed =
        quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory for an event '%s'", emitter->channel->type.name);
    quern__message_add_call(emitter->failed, function, emitter->system_name);
    return false;
}

/* Returns whether a C type of this size and name is the event's type; otherwise refuses the call. */
static bool fits(quern__emitter *emitter, size_t size_bytes, const char *type_name, const char *function)
{
    const quern__type *type = &emitter->channel->type;
    if (size_bytes != type->size_bytes ||
        (QUERN_CHECKS && type_name != NULL && !quern__type_has_c_name(type, type_name)))
        return refuse(emitter, quern__fail(QUERN_ERROR_LAYOUT_MISMATCH,
                                           "%s: system '%s' emitted '%s', of %u bytes (%s), as %s of %zu: "
                                           "use the type with which the event was registered",
                                           function, emitter->system_name, type->name, type->size_bytes,
                                           type->type_name[0] != '\0' ? type->type_name : "no C type known",
                                           type_name != NULL ? type_name : "a value", size_bytes));
    if (type_name != NULL || type->hooks.copy == NULL) return true;
    return refuse(emitter, quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                                       "%s: system '%s' emitted '%s', which has a copy hook: use "
                                       "quern_context_emit to copy the value, or QUERN_EMIT to move it",
                                       function, emitter->system_name, type->name));
}

/* Returns the emitter with room for at least one value of a C type of this size. Returns NULL if public_part is
 * NULL, the emitter is not usable here, the type does not fit, or memory is exhausted. */
static quern__emitter *find_room(quern_emitter *public_part, size_t size_bytes, const char *type_name,
                                 const char *function)
{
    quern__emitter *emitter = (quern__emitter *)public_part;
    if (public_part == NULL || !is_usable(emitter, function) ||
        !fits(emitter, size_bytes, type_name, function))
        return NULL;
    if (room_left(emitter) > 0) return emitter;
    if (!quern__emitter_reserve(emitter, 1)) {
        (void)fail_memory(emitter, function);
        return NULL;
    }
    begin_batch(emitter);
    return emitter;
}

/* Empties the lists of places that the caller fills: the memory may be that of events that were destroyed, of which the
 * lists would be released once more. */
static void clear_places(const quern__channel *channel, char *places, uint32_t count)
{
    if (channel->type.hooks.copy == quern__lists_copy)
        memset(places, 0, (size_t)count * channel->stride_bytes);
}

void *quern__emit_place(quern_emitter *public_part, size_t size_bytes, const char *type_name)
{
    quern__emitter *emitter =
        find_room(public_part, size_bytes, type_name, type_name != NULL ? "QUERN_EMIT" : "quern_emit");
    if (emitter == NULL) return NULL;
    char *place = next_place(emitter);
    set_next_value(emitter, place + emitter->channel->stride_bytes);
    clear_places(emitter->channel, place, 1);
    return place;
}

static QUERN__SLOW_PATH void refuse_uncounted(quern__emitter *emitter, const char *function)
{
    if (emitter == NULL || !is_usable(emitter, function)) return;
    (void)refuse(emitter,
                 quern__fail(QUERN_ERROR_NULL_ARGUMENT,
                             "%s: system '%s' emitted '%s', and 'out_count' is NULL: pass its address",
                             function, emitter->system_name, emitter->channel->type.name));
}

void *quern__emit_some(quern_emitter *public_part, uint32_t most, uint32_t *out_count, size_t size_bytes,
                       const char *type_name)
{
    static const char function[] = "QUERN_EMIT_SOME";
    if (QUERN__UNLIKELY(out_count == NULL)) {
        refuse_uncounted((quern__emitter *)public_part, function);
        return NULL;
    }
    *out_count = 0;
    if (most == 0) return NULL;
    quern__emitter *emitter = find_room(public_part, size_bytes, type_name, function);
    if (emitter == NULL) return NULL;
    const uint32_t room = room_left(emitter), count = most < room ? most : room;
    char *place = next_place(emitter);
    set_next_value(emitter, place + (size_t)count * emitter->channel->stride_bytes);
    clear_places(emitter->channel, place, count);
    *out_count = count;
    return place;
}
