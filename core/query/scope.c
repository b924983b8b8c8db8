/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "core/query/scope.h"

#include "core/query/query_internal.h"

/* ----------------------------------------------------------------------------------------- refusals */

/* Counts a refusal. Returns whether it is the accessor's first. Relaxed: the count orders no other access. */
static bool count_refusal(quern__scope *scope)
{
    return atomic_fetch_add_explicit(&scope->accessor->refusal_count, 1, memory_order_relaxed) == 0;
}

/* Relaxed: see quern__scope_refused. */
quern_result quern__scope_refuse(quern__scope *scope, quern_result code)
{
    if (scope == NULL || count_refusal(scope)) quern__report_failure();
    if (scope != NULL) atomic_store_explicit(&scope->refused, code, memory_order_relaxed);
    return code;
}

bool quern__scope_count_repeated(quern__scope *scope)
{
    if (quern__scope_refused(scope) == QUERN_OK) return false;
    (void)count_refusal(scope);
    return true;
}

void quern__scope_describe(const quern__scope *scope, char *text, size_t text_bytes)
{
    static const char *const names[] = {[QUERN__CALLER_PARALLEL] = "a parallel query",
                                        [QUERN__CALLER_FILL] = "a fill callback",
                                        [QUERN__CALLER_ITERATION] = "an iteration"};
    if (scope != NULL && scope->caller == QUERN__CALLER_SYSTEM)
        quern__append(text, text_bytes, "system '%s'", scope->accessor->name);
    else
        quern__append(text, text_bytes, "%s",
                      names[scope != NULL ? scope->caller : QUERN__CALLER_ITERATION]);
}

/* ------------------------------------------------------------------------------------ scratch memory */

enum { SCRATCH_BLOCK_HEAD = 64, SCRATCH_BLOCK_ALIGNMENT = 64 };

/* Head of a block of scratch memory; its values follow at offset SCRATCH_BLOCK_HEAD. is_block lists the members
 * that identify a block. */
typedef struct quern__scratch_block {
    struct quern__scratch_block *next;
    size_t size_bytes;      /* size of the values */
    const quern_view *view; /* view of the iteration; NULL in callbacks, because they may copy their view */
    const void *rows;       /* address of the rows' handles, which identifies the rows; NULL for lookups */
    uint32_t term;
    /* Only for an up-term: the values begin with this number of addresses, all of the one value that follows
     * them. 0 for a column or a lookup. */
    uint32_t address_count;
} quern__scratch_block;

_Static_assert(sizeof(quern__scratch_block) <= SCRATCH_BLOCK_HEAD, "room for the head of a block");
_Static_assert(SCRATCH_BLOCK_ALIGNMENT >= QUERN_MAX_ALIGNMENT_BYTES, "values are aligned");

static void *values_of(quern__scratch_block *block)
{
    return (char *)block + SCRATCH_BLOCK_HEAD;
}

static size_t addresses_bytes(uint32_t address_count)
{
    return quern__align_up(address_count * sizeof(void *), SCRATCH_BLOCK_ALIGNMENT);
}

/* Zeroes the values, and sets the addresses of an up-term again. */
static void clear(quern__scratch_block *block)
{
    const void **addresses = values_of(block);
    memset(values_of(block), 0, block->size_bytes);
    for (uint32_t i = 0; i < block->address_count; i++)
        addresses[i] = (const char *)values_of(block) + addresses_bytes(block->address_count);
}

static void free_block(const quern__scope *scope, quern__scratch_block *block)
{
    quern__release(&scope->storage->allocator, block, SCRATCH_BLOCK_HEAD + block->size_bytes,
                   SCRATCH_BLOCK_ALIGNMENT);
}

/* Relaxed: the callback has returned, so the jobs of its parallel loops have ended. */
void quern__scratch_release(quern__scope *scope)
{
    quern__scratch_block *block = atomic_exchange_explicit(&scope->scratch, NULL, memory_order_relaxed);
    while (block != NULL) {
        quern__scratch_block *next = block->next;
        free_block(scope, block);
        block = next;
    }
}

static bool is_block(const quern__scratch_block *block, const quern__scratch_block *wanted)
{
    return block->view == wanted->view && block->rows == wanted->rows && block->term == wanted->term &&
           block->address_count == wanted->address_count && block->size_bytes == wanted->size_bytes;
}

/* Acquire: pairs with the release in add_block, so that the cleared block is visible. */
static quern__scratch_block *find_block(quern__scope *scope, const quern__scratch_block *wanted)
{
    quern__scratch_block *block = atomic_load_explicit(&scope->scratch, memory_order_acquire);
    while (block != NULL && !is_block(block, wanted))
        block = block->next;
    return block;
}

/* Two threads that need the same block at the same time may each add one. The release of the exchange pairs with
 * the acquire in find_block. The first load is relaxed, because the exchange fails if the head is stale. */
static quern__scratch_block *add_block(quern__scope *scope, const quern__scratch_block *wanted)
{
    quern__scratch_block *block = quern__allocate(
        &scope->storage->allocator, SCRATCH_BLOCK_HEAD + wanted->size_bytes, SCRATCH_BLOCK_ALIGNMENT);
    if (block == NULL) return NULL;
    *block = *wanted;
    clear(block);
    block->next = atomic_load_explicit(&scope->scratch, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(&scope->scratch, &block->next, block,
                                                  memory_order_release, memory_order_relaxed)) {
    }
    return block;
}

/* Returns the values of the block that `wanted` identifies, and adds the block if it is missing. Returns NULL if
 * out of memory. */
static void *get_values(quern__scope *scope, quern__scratch_block wanted)
{
    quern__scratch_block *block = find_block(scope, &wanted);
    const bool is_reused = block != NULL && (wanted.rows == NULL || wanted.view != NULL);
    if (is_reused) clear(block); /* blocks of lookups and iterations belong to one thread */
    if (block == NULL) block = add_block(scope, &wanted);
    return block != NULL ? values_of(block) : NULL;
}

/* Frees the blocks that a view of an iteration got for other rows: they are invalid since the iterator moved on.
 * Relaxed: an iteration belongs to one thread. */
static void free_passed(quern__scope *scope, const quern_view *view)
{
    quern__scratch_block *kept = NULL, *next;
    for (quern__scratch_block *block =
             atomic_exchange_explicit(&scope->scratch, NULL, memory_order_relaxed);
         block != NULL; block = next) {
        next = block->next;
        if (block->view == view && block->rows != view->entities) {
            free_block(scope, block);
            continue;
        }
        block->next = kept;
        kept = block;
    }
    atomic_store_explicit(&scope->scratch, kept, memory_order_relaxed);
}

static void *get_view_values(const quern_view *view, uint32_t term, uint32_t address_count,
                             size_t size_bytes)
{
    quern__scope *scope = quern__scope_of(view);
    if (scope == NULL) return NULL;
    const bool is_iteration = scope->caller == QUERN__CALLER_ITERATION;
    if (is_iteration) free_passed(scope, view);
    /* a view without handles is identified by its values, or by the scope if it has none */
    const void *rows = view->entities != NULL ? (const void *)view->entities : view->chunk;
    return get_values(scope, (quern__scratch_block){.size_bytes = size_bytes,
                                                    .view = is_iteration ? view : NULL,
                                                    .rows = rows != NULL ? rows : scope,
                                                    .term = term,
                                                    .address_count = address_count});
}

static size_t size_or_largest(const quern_view *view, size_t size_bytes)
{
    const quern__scope *scope = quern__scope_of(view);
    if (size_bytes > 0 || scope == NULL) return size_bytes;
    const uint32_t largest_bytes = scope->storage->components.largest_bytes;
    return largest_bytes > 0 ? largest_bytes : 1;
}

/* Returns the number of rows for which memory is needed; 1 for a view without rows. */
static uint32_t row_count(const quern_view *view)
{
    return view->count > 0 ? view->count : 1;
}

void *quern__scratch_column(const quern_view *view, uint32_t term, size_t size_bytes)
{
    return get_view_values(view, term, 0, (size_t)row_count(view) * size_or_largest(view, size_bytes));
}

const void *const *quern__scratch_up(const quern_view *view, uint32_t term, size_t size_bytes)
{
    const uint32_t count = row_count(view);
    return get_view_values(view, term, count, addresses_bytes(count) + size_or_largest(view, size_bytes));
}

void *quern__scratch_value(quern__scope *scope, size_t size_bytes)
{
    return get_values(scope, (quern__scratch_block){.size_bytes = size_bytes});
}
