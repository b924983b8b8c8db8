/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "tests/support/failing_allocator.h"

#include "tests/support/random.h"
#include "tests/support/setup.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { BUCKET_COUNT = 4096, FILL_BYTE = 0xA5, MIN_ALIGNMENT_BYTES = 8, MAX_ALIGNMENT_BYTES = 2 << 20 };

typedef struct block {
    struct block *next;
    void *pointer;
    size_t size_bytes;
    size_t alignment_bytes;
} block;

struct failing_allocator {
    pthread_mutex_t mutex;
    block *buckets[BUCKET_COUNT];
    uint64_t call_count;
    uint64_t first_failing_call; /* calls in [first, last] fail */
    uint64_t last_failing_call;
    uint32_t fail_percent;
    _Atomic bool is_paused; /* callbacks on several threads pause, too */
    random_source random;
    uint64_t failed_count;
    uint64_t failed_before; /* failed_count when a call was last made to fail */
    uint64_t outstanding_bytes;
    uint64_t misuse_count;
};

failing_allocator *failing_allocator_create(void)
{
    failing_allocator *allocator = calloc(1, sizeof *allocator);
    if (allocator == NULL) abort();
    pthread_mutex_init(&allocator->mutex, NULL);
    return allocator;
}

void failing_allocator_destroy(failing_allocator *allocator)
{
    for (size_t i = 0; i < BUCKET_COUNT; i++) {
        while (allocator->buckets[i] != NULL) {
            block *entry = allocator->buckets[i];
            allocator->buckets[i] = entry->next;
            free(entry->pointer);
            free(entry);
        }
    }
    pthread_mutex_destroy(&allocator->mutex);
    free(allocator);
}

/* ------------------------------------------------------------------------------------------ blocks */

static block **bucket_of(failing_allocator *allocator, const void *pointer)
{
    uint64_t hash = ((uint64_t)(uintptr_t)pointer >> 3) * 0x9E3779B97F4A7C15u;
    return &allocator->buckets[hash >> 52];
}

static void *block_create(failing_allocator *allocator, size_t size_bytes, size_t alignment_bytes)
{
    block *entry = malloc(sizeof *entry);
    size_t padded_bytes = (size_bytes + alignment_bytes - 1) & ~(alignment_bytes - 1);
    void *pointer = aligned_alloc(alignment_bytes, padded_bytes);
    if (entry == NULL || pointer == NULL) abort();
    memset(pointer, FILL_BYTE, padded_bytes);
    block **bucket = bucket_of(allocator, pointer);
    *entry = (block){*bucket, pointer, size_bytes, alignment_bytes};
    *bucket = entry;
    allocator->outstanding_bytes += size_bytes;
    return pointer;
}

static block *block_unlink(failing_allocator *allocator, const void *pointer)
{
    block **link = bucket_of(allocator, pointer);
    while (*link != NULL && (*link)->pointer != pointer)
        link = &(*link)->next;
    block *entry = *link;
    if (entry != NULL) *link = entry->next;
    return entry;
}

/* --------------------------------------------------------------------------------------- interface */

static bool must_fail(failing_allocator *allocator)
{
    uint64_t call = ++allocator->call_count;
    if (atomic_load_explicit(&allocator->is_paused, memory_order_relaxed)) return false;
    if (call >= allocator->first_failing_call && call <= allocator->last_failing_call) return true;
    return allocator->fail_percent > 0 && random_chance(&allocator->random, allocator->fail_percent);
}

static bool in_contract(size_t size_bytes, size_t alignment_bytes)
{
    return size_bytes > 0 && alignment_bytes >= MIN_ALIGNMENT_BYTES &&
           alignment_bytes <= MAX_ALIGNMENT_BYTES && (alignment_bytes & (alignment_bytes - 1)) == 0;
}

static void *allocate(void *user_data, size_t size_bytes, size_t alignment_bytes)
{
    failing_allocator *allocator = user_data;
    void *pointer = NULL;
    pthread_mutex_lock(&allocator->mutex);
    if (!in_contract(size_bytes, alignment_bytes))
        allocator->misuse_count++;
    else if (must_fail(allocator))
        allocator->failed_count++;
    else
        pointer = block_create(allocator, size_bytes, alignment_bytes);
    pthread_mutex_unlock(&allocator->mutex);
    return pointer;
}

static void release(void *user_data, void *pointer, size_t size_bytes, size_t alignment_bytes)
{
    failing_allocator *allocator = user_data;
    pthread_mutex_lock(&allocator->mutex);
    block *entry = block_unlink(allocator, pointer);
    if (entry == NULL) {
        allocator->misuse_count++;
    } else {
        if (entry->size_bytes != size_bytes || entry->alignment_bytes != alignment_bytes)
            allocator->misuse_count++;
        allocator->outstanding_bytes -= entry->size_bytes;
        free(entry->pointer);
        free(entry);
    }
    pthread_mutex_unlock(&allocator->mutex);
}

quern_allocator failing_allocator_interface(failing_allocator *allocator)
{
    return (quern_allocator){.allocate = allocate, .release = release, .user_data = allocator};
}

/* ----------------------------------------------------------------------------------------- control */

static void fail_between(failing_allocator *allocator, uint64_t first, uint64_t last)
{
    pthread_mutex_lock(&allocator->mutex);
    allocator->failed_before = allocator->failed_count;
    allocator->first_failing_call = allocator->call_count + first;
    allocator->last_failing_call = last == UINT64_MAX ? last : allocator->call_count + last;
    pthread_mutex_unlock(&allocator->mutex);
}

void failing_allocator_fail_at(failing_allocator *allocator, uint64_t n)
{
    fail_between(allocator, n, n);
}

void failing_allocator_fail_from(failing_allocator *allocator, uint64_t n)
{
    fail_between(allocator, n, UINT64_MAX);
}

bool failing_allocator_has_run_out(failing_allocator *allocator, quern_result result, int line,
                                   const char *call)
{
    const uint64_t failed_count = allocator->failed_count - allocator->failed_before;
    failing_allocator_heal(allocator);
    if (result == QUERN_OK) return false;
    cr_assert_eq(result, QUERN_ERROR_OUT_OF_MEMORY, "line %d: %s gave %s (%s)", line, call,
                 quern_result_string(result), quern_error_message());
    cr_assert_gt(failed_count, 0u, "line %d: %s failed with enough memory", line, call);
    return true;
}

void failing_allocator_fail_often(failing_allocator *allocator, uint32_t percent, uint64_t seed)
{
    allocator->fail_percent = percent;
    allocator->random.state = seed;
}

void failing_allocator_heal(failing_allocator *allocator)
{
    allocator->first_failing_call = 0;
    allocator->last_failing_call = 0;
    allocator->fail_percent = 0;
}

void failing_allocator_pause(failing_allocator *allocator, bool is_paused)
{
    atomic_store_explicit(&allocator->is_paused, is_paused, memory_order_relaxed);
}

uint64_t failing_allocator_call_count(const failing_allocator *allocator)
{
    return allocator->call_count;
}

uint64_t failing_allocator_failed_count(const failing_allocator *allocator)
{
    return allocator->failed_count;
}

uint64_t failing_allocator_outstanding_bytes(failing_allocator *allocator)
{
    pthread_mutex_lock(&allocator->mutex);
    const uint64_t bytes = allocator->outstanding_bytes;
    pthread_mutex_unlock(&allocator->mutex);
    return bytes;
}

uint64_t failing_allocator_misuse_count(const failing_allocator *allocator)
{
    return allocator->misuse_count;
}

void failing_allocator_close(failing_allocator *allocator)
{
    assert_at_end(allocator->outstanding_bytes == 0);
    assert_at_end(allocator->misuse_count == 0);
    failing_allocator_destroy(allocator);
}
