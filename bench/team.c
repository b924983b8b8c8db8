/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "bench/team.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

#include "bench/harness.h"

enum { CACHE_LINE_BYTES = 64, SPIN_LIMIT = 1000 };

typedef struct member {
    raw_team *team;
    uint32_t part;
    pthread_t thread;
} member;

/* The caller writes function, argument and quit before it increments `round` (release). Members read them
 * after they have seen the new `round` (acquire). Members publish their writes by incrementing `done`
 * (release), on which the caller waits (acquire). */
struct raw_team {
    raw_team_function *function;
    void *argument;
    bool quit;
    bool is_pinned;
    uint32_t part_count;
    member *members; /* part_count elements; element 0, the caller's, is unused */
#if defined(__linux__)
    cpu_set_t allowed; /* processors that the caller may use without pinning */
#endif
    _Alignas(CACHE_LINE_BYTES) atomic_uint round;
    _Alignas(CACHE_LINE_BYTES) atomic_uint done; /* number of members that finished this round */
};

/* ---------------------------------------------------------------------------------------- processors */

#if defined(__linux__)

/* Pins the calling thread to the processor of a part. Otherwise the system often leaves a new member on the
 * caller's processor for a whole sample, and the two threads alternate. */
static void pin_self(const raw_team *team, uint32_t part)
{
    size_t processor = 0;
    for (uint32_t left = part; left > 0 || !CPU_ISSET(processor, &team->allowed); processor++)
        if (CPU_ISSET(processor, &team->allowed)) left--;
    cpu_set_t chosen;
    CPU_ZERO(&chosen);
    CPU_SET(processor, &chosen);
    pthread_setaffinity_np(pthread_self(), sizeof chosen, &chosen);
}

/* Pins the caller, and thereby all members, unless there are more parts than processors: the system
 * schedules those better. */
static void pin_caller(raw_team *team)
{
    if (pthread_getaffinity_np(pthread_self(), sizeof team->allowed, &team->allowed) != 0) return;
    team->is_pinned = team->part_count > 1 && team->part_count <= (uint32_t)CPU_COUNT(&team->allowed);
    if (team->is_pinned) pin_self(team, 0);
}

static void unpin_caller(const raw_team *team)
{
    if (team->is_pinned) pthread_setaffinity_np(pthread_self(), sizeof team->allowed, &team->allowed);
}

#else

static void pin_self(const raw_team *team, uint32_t part) {}

static void pin_caller(raw_team *team) {}

static void unpin_caller(const raw_team *team) {}

#endif

/* --------------------------------------------------------------------------------------------- team */

static void relax(uint32_t *spin_count)
{
    if (++*spin_count > SPIN_LIMIT) {
        sched_yield();
        return;
    }
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

static void *member_main(void *argument)
{
    const member *self = argument;
    raw_team *team = self->team;
    if (team->is_pinned) pin_self(team, self->part);
    for (uint32_t seen = 0;; seen++) {
        uint32_t spin_count = 0;
        while (atomic_load_explicit(&team->round, memory_order_acquire) == seen)
            relax(&spin_count);
        if (team->quit) return NULL;
        team->function(team->argument, self->part, team->part_count);
        atomic_fetch_add_explicit(&team->done, 1, memory_order_release);
    }
}

static void do_nothing(void *argument, uint32_t part, uint32_t part_count) {}

raw_team *raw_team_start(uint32_t part_count)
{
    raw_team *team = aligned_alloc(_Alignof(raw_team), sizeof *team);
    if (team == NULL) bench_die("out of memory");
    *team = (raw_team){.part_count = part_count};
    team->members = bench_allocate(part_count, sizeof *team->members);
    pin_caller(team);
    for (uint32_t part = 1; part < part_count; part++) {
        member *self = &team->members[part];
        *self = (member){.team = team, .part = part};
        if (pthread_create(&self->thread, NULL, member_main, self) != 0)
            bench_die("cannot start thread %u of %u", part + 1, part_count);
    }
    raw_team_run(team, do_nothing, NULL);
    return team;
}

static void begin_round(raw_team *team)
{
    atomic_store_explicit(&team->done, 0, memory_order_relaxed);
    atomic_fetch_add_explicit(&team->round, 1, memory_order_release);
}

void raw_team_run(raw_team *team, raw_team_function *function, void *argument)
{
    team->function = function;
    team->argument = argument;
    begin_round(team);
    function(argument, 0, team->part_count);
    uint32_t spin_count = 0;
    while (atomic_load_explicit(&team->done, memory_order_acquire) != team->part_count - 1)
        relax(&spin_count);
}

void raw_team_stop(raw_team *team)
{
    team->quit = true;
    begin_round(team);
    for (uint32_t part = 1; part < team->part_count; part++)
        pthread_join(team->members[part].thread, NULL);
    unpin_caller(team);
    free(team->members);
    free(team);
}
