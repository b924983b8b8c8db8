/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "sched/frame/workers.h"

#include "core/query/up.h"
#include "sched/frame/context_internal.h"

enum { WORKER_ALIGNMENT_BYTES = 128 };

typedef struct frame_worker {
    quern_commands recorder; /* first member: has the address of the worker */
    quern_context context;
} frame_worker;

_Static_assert(_Alignof(frame_worker) <= WORKER_ALIGNMENT_BYTES, "workers are aligned enough");

/* ----------------------------------------------------------------------------------------- addresses */

static size_t addresses_bytes(uint32_t worker_count, uint32_t up_count)
{
    return worker_count * quern__ups_address_count(up_count) * sizeof(void *);
}

static void release_addresses(const quern_schedule *schedule)
{
    quern__release(quern__plan_allocator(&schedule->plan), schedule->addresses,
                   addresses_bytes(schedule->addressed_worker_count, schedule->up_count),
                   WORKER_ALIGNMENT_BYTES);
}

/* Reserves addresses for all workers and all up-terms of the plan. They are not used between frames, so old
 * addresses are not copied. Returns false if out of memory. */
static bool reserve_addresses(quern_schedule *schedule)
{
    const uint32_t worker_count = schedule->worker_count, up_count = schedule->plan.up_count;
    const size_t bytes = addresses_bytes(worker_count, up_count);
    const void **made = NULL;
    if (bytes > 0) {
        made = quern__allocate(quern__plan_allocator(&schedule->plan), bytes, WORKER_ALIGNMENT_BYTES);
        if (made == NULL) return false;
    }
    release_addresses(schedule);
    schedule->addresses = made;
    schedule->addressed_worker_count = worker_count;
    schedule->up_count = up_count;
    for (uint32_t i = 0; i < worker_count && made != NULL; i++)
        schedule->contexts.items[i]->addresses = made + i * quern__ups_address_count(up_count);
    return true;
}

/* ------------------------------------------------------------------------------------------- workers */

void quern__workers_release(quern_schedule *schedule)
{
    const quern_allocator *allocator = quern__plan_allocator(&schedule->plan);
    for (uint32_t i = 0; i < schedule->worker_count; i++) {
        quern__commands_release(schedule->recorders.items[i]);
        quern__scratch_release(&schedule->contexts.items[i]->scope);
        quern__release(allocator, schedule->recorders.items[i], sizeof(frame_worker),
                       WORKER_ALIGNMENT_BYTES);
    }
    quern__array_release(allocator, &schedule->recorders);
    quern__array_release(allocator, &schedule->contexts);
    release_addresses(schedule);
}

/* Returns false if out of memory. */
static bool add_worker(quern_schedule *schedule)
{
    const quern_allocator *allocator = quern__plan_allocator(&schedule->plan);
    const uint32_t count = schedule->worker_count;
    if (!quern__array_reserve(allocator, &schedule->recorders, count + 1) ||
        !quern__array_reserve(allocator, &schedule->contexts, count + 1))
        return false;
    frame_worker *made = quern__allocate(allocator, sizeof *made, WORKER_ALIGNMENT_BYTES);
    if (made == NULL) return false;
    quern__commands_init(&made->recorder, &schedule->plan.world->storage);
    made->context = (quern_context){.scope.storage = &schedule->plan.world->storage,
                                    .schedule = schedule,
                                    .commands = &made->recorder,
                                    .worker_index = count};
    schedule->recorders.items[schedule->recorders.count++] = &made->recorder;
    schedule->contexts.items[schedule->contexts.count++] = &made->context;
    schedule->worker_count++;
    return true;
}

quern_result quern__workers_reserve(quern_schedule *schedule, uint32_t worker_count)
{
    if (worker_count <= schedule->addressed_worker_count && schedule->plan.up_count <= schedule->up_count)
        return QUERN_OK;
    bool has_memory = true;
    while (schedule->worker_count < worker_count && has_memory)
        has_memory = add_worker(schedule);
    if (has_memory && reserve_addresses(schedule)) return QUERN_OK;
    return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory for the recorders of %u workers",
                       worker_count);
}
