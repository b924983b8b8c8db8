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

/* function, argument and quit are written before `round` is raised (release) and read after a member
 * has seen it raised (acquire). What members wrote is published by raising `done` (release), which the
 * caller waits for (acquire). */
struct raw_team {
    raw_team_function *function;
    void *argument;
    bool quit;
    uint32_t part_count;
    member *members; /* part_count; the caller's is not used */
    _Alignas(CACHE_LINE_BYTES) atomic_uint round;
    _Alignas(CACHE_LINE_BYTES) atomic_uint done; /* members that finished this round */
};

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
    for (uint32_t seen = 0;; seen++) {
        uint32_t spin_count = 0;
        while (atomic_load_explicit(&team->round, memory_order_acquire) == seen)
            relax(&spin_count);
        if (team->quit) return NULL;
        team->function(team->argument, self->part, team->part_count);
        atomic_fetch_add_explicit(&team->done, 1, memory_order_release);
    }
}

static void do_nothing(void *argument, uint32_t part, uint32_t part_count)
{
    (void)argument;
    (void)part;
    (void)part_count;
}

raw_team *raw_team_start(uint32_t part_count)
{
    raw_team *team = aligned_alloc(_Alignof(raw_team), sizeof *team);
    if (team == NULL) bench_die("out of memory");
    *team = (raw_team){.part_count = part_count};
    team->members = bench_allocate(part_count, sizeof *team->members);
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
    free(team->members);
    free(team);
}
