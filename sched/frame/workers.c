/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "sched/frame/workers.h"

#include "core/world/up.h"
#include "sched/frame/context_internal.h"

/* Recorders and contexts of all workers lie in one block of memory, and addresses where systems have
 * up-terms. */

enum { WORKER_ALIGNMENT_BYTES = 128 };

static size_t contexts_offset(uint32_t worker_count)
{
    return quern__align_up(worker_count * sizeof(quern_commands), WORKER_ALIGNMENT_BYTES);
}

static size_t addresses_offset(uint32_t worker_count)
{
    return contexts_offset(worker_count) + worker_count * sizeof(quern_context);
}

static size_t block_bytes(uint32_t worker_count, uint32_t up_count)
{
    return addresses_offset(worker_count) +
           worker_count * quern__ups_address_count(up_count) * sizeof(void *);
}

static void release_block(const quern_schedule *schedule)
{
    quern__release(quern__plan_allocator(&schedule->plan), schedule->recorders,
                   block_bytes(schedule->worker_count, schedule->up_count), WORKER_ALIGNMENT_BYTES);
}

void quern__workers_release(quern_schedule *schedule)
{
    for (uint32_t i = 0; i < schedule->worker_count; i++)
        quern__commands_release(&schedule->recorders[i]);
    release_block(schedule);
    schedule->recorders = NULL;
    schedule->worker_count = 0;
    schedule->up_count = 0;
}

quern_result quern__workers_reserve(quern_schedule *schedule, uint32_t worker_count)
{
    const uint32_t up_count = schedule->plan.up_count;
    if (worker_count <= schedule->worker_count && up_count <= schedule->up_count) return QUERN_OK;
    if (worker_count < schedule->worker_count) worker_count = schedule->worker_count;
    const size_t bytes = block_bytes(worker_count, up_count);
    char *memory = quern__allocate(quern__plan_allocator(&schedule->plan), bytes, WORKER_ALIGNMENT_BYTES);
    if (memory == NULL)
        return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory for the recorders of %u workers",
                           worker_count);
    memset(memory, 0, addresses_offset(worker_count));
    quern_commands *recorders = (quern_commands *)(void *)memory;
    quern_context *contexts = (quern_context *)(void *)(memory + contexts_offset(worker_count));
    const void **addresses = (const void **)(void *)(memory + addresses_offset(worker_count));
    if (schedule->worker_count > 0)
        memcpy((void *)recorders, schedule->recorders, schedule->worker_count * sizeof *recorders);
    for (uint32_t i = schedule->worker_count; i < worker_count; i++)
        quern__commands_init(&recorders[i], &schedule->plan.world->storage);
    for (uint32_t i = 0; i < worker_count; i++)
        contexts[i] = (quern_context){.schedule = schedule,
                                      .commands = &recorders[i],
                                      .addresses = addresses + i * quern__ups_address_count(up_count),
                                      .worker_index = i};
    release_block(schedule);
    schedule->recorders = recorders;
    schedule->contexts = contexts;
    schedule->worker_count = worker_count;
    schedule->up_count = up_count;
    return QUERN_OK;
}
