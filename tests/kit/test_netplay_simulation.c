/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Whole games of netplay in virtual time (netplay_simulation.h): those of the first seeds, and those that have failed. */
#include "tests/kit/netplay_simulation.h"
#include "tests/support/effort.h"
#include "tests/support/stress.h"

#include <criterion/criterion.h>

enum { SEEDS = effort(400, 20, 1), KIND_SEEDS = effort(40, 1, 1) };

/* Plays the game of a seed with some of its events. Adds what happened to the sums. */
static void play_seed(uint64_t seed, uint32_t kinds, uint32_t events, simulation_result *sums)
{
    simulation_plan plan;
    simulation_result result;
    simulation_draw(seed, kinds, &plan);
    simulation_run(&plan, events, &result);
    cr_assert_not(result.has_failed, "./run netplay --simulate 1 --seed %llu --kinds %u: %s",
                  (unsigned long long)seed, kinds, result.failure);
    sums->death_count += result.death_count;
    sums->join_count += result.join_count;
    sums->cancelled_count += result.cancelled_count;
    sums->compared_count += result.compared_count;
    sums->watched_count += result.watched_count;
}

Test(netplay_simulation, games_go_on_whatever_networks_and_players_do, .timeout = 600)
{
    simulation_result sums = {0};
    const uint64_t first = stress_seed(1); /* QUERN_STRESS_SEED=N: begins with seed N */
    for (uint64_t seed = first; seed < first + SEEDS; seed++)
        play_seed(seed, 0, UINT32_MAX, &sums);
    if (SEEDS >= 24) { /* under sanitizers, few seeds are played */
        cr_assert_gt(sums.death_count, SEEDS);
        cr_assert_gt(sums.join_count, SEEDS);
        cr_assert_gt(sums.cancelled_count, SEEDS / 10);
        cr_assert_gt(sums.compared_count, 100 * SEEDS);
    }
}

/* Pairs of kinds of events, without the others. */
Test(netplay_simulation, games_go_on_after_each_pair_of_events, .timeout = 600)
{
    simulation_result sums = {0};
    for (uint32_t a = 0; a < SIMULATION_ABSURD; a++)
        for (uint32_t b = 0; b <= a; b++)
            for (uint64_t seed = 1; seed <= KIND_SEEDS / 4 + 1; seed++)
                play_seed(seed, 1u << a | 1u << b, UINT32_MAX, &sums);
}

Test(netplay_simulation, spectators_see_what_players_confirm, .timeout = 600)
{
    simulation_result sums = {0};
    for (uint64_t seed = 1; seed <= SEEDS / 2 + 1; seed++)
        play_seed(seed, SIMULATION_WATCHED, UINT32_MAX, &sums);
    if (SEEDS >= 40) cr_assert_gt(sums.watched_count, 20 * SEEDS);
}

/* Games that have failed, with the events that they needed for it. What a network does to a game changes with the packets,
 * so that later versions of the protocol may play them otherwise. */
Test(netplay_simulation, games_that_have_failed_go_on)
{
    static const struct {
        uint64_t seed;
        uint32_t events, kinds;
    } games[] = {
        {31, 0x110, 0},      /* a table changed frames that were confirmed */
        {48, 0x7a, 0},       /* the same, after a split */
        {70, 0x50000000, 0}, /* a hash of a dropped player, with inputs that it alone had, counted */
        /* a player was dropped at the frame from which it took part: all waited for its input */
        {332, 0xa4, 0},
        {11794, 0x80810, 0}, /* a joining machine waited without a word: too few players were left */
        {11925, 0x9000, 0}, /* the joining machine had given up the world, and the leader had not noticed */
        {11925, 0x12c484, 0}, /* the same, when parts of it were still on their way */
        {22416, 0x6b6020, 0}, /* the last machine accepted a table of players whose machines were gone */
        {100145, 0x5, 0},     /* a machine that had paused answered each of many messages in one call */
        /* a member had promised a higher ballot of its own, and the leader did not learn of it */
        {54105, 0x9, 0},
        {1894, 0x37, 255}, /* a false number of a packet hid all later packets of its sender */
        {3926, 0x209403,
         255}, /* a machine that had just joined did not name the player that had sent different inputs */
        {101772, 0x124, 255}, /* a machine had promised the highest ballot that there is */
        {105102, 0x1f,
         255}, /* a player that had sent different inputs was not named after a hash was late */
        {7, 0x6030008, SIMULATION_WATCHED}, /* a spectator was not told that its frames are gone */
        {1357, 0x2, SIMULATION_WATCHED},    /* a spectator saw frames that one player alone had verified */
        {1267, 0x809002, SIMULATION_WATCHED},
        /* inputs that a player sent to some differed more frames before the first hash that was compared */
        {1000771, 0x3f, 255},
        /* two players that had dropped each other never met, as the timeout was shorter than the time between probes */
        {2080, 0x1d53ca, SIMULATION_WATCHED},
        /* Two machines join with different worlds, and those that know the inputs between these are gone. */
        {10945, 0x1bb4c, 255},
        /* the machine that sent the world to a spectator started again, with smaller numbers of transfers */
        {22833, 0xe4, SIMULATION_WATCHED},
        {101879, 0x2, 255}, /* a player sent inputs of another one, which was then held to err */
        /* Machines ended for inputs that they had refused while a table was agreed on. */
        {30589, 0xff, SIMULATION_WATCHED},
        {33700, 0x37, 127},
        /* A player that had sent different inputs ended when the last other machine was gone: none had a world. */
        {44029, 0x1520000, 255},
        /* Two machines of four were left, lost each other, and went on alone: one of both had to give way. */
        {46127, 0x76, SIMULATION_WATCHED},
        /* Of the players that had verified frames, one was left, and cut off: the half without these frames went on. */
        {73562, 0xd, SIMULATION_WATCHED},
        /* A player that joined said falsely that it had the world: the last machine waited for it as the leader. */
        {211388, 0xf4fdb, 255},
    };
    simulation_result sums = {0};
    for (uint32_t i = 0; i < sizeof games / sizeof games[0]; i++)
        play_seed(games[i].seed, games[i].kinds, games[i].events, &sums);
}

/* The first games have each pair of kinds and traits, other than those that are asked for. */
Test(netplay_simulation, each_pair_of_traits_is_drawn)
{
    uint32_t with[SIMULATION_TRAITS] = {0};
    for (uint64_t seed = 1; seed <= 3000; seed++) {
        simulation_plan plan;
        const uint32_t kinds = seed % 3 == 0 ? 255 : seed % 3 == 1 ? SIMULATION_WATCHED : 0;
        simulation_draw(seed, kinds, &plan);
        const uint32_t traits = simulation_traits(&plan, UINT32_MAX);
        for (uint32_t i = 0; i < SIMULATION_TRAITS; i++)
            if ((traits >> i & 1) != 0) with[i] |= traits;
    }
    /* players send absurd fields in games without spectators */
    for (uint32_t i = 0; i < SIMULATION_TRAITS; i++) {
        uint32_t all = (1u << SIMULATION_TRAITS) - 1;
        if (i == SIMULATION_ABSURD) all &= ~(1u << SIMULATION_HAS_SPECTATORS);
        if (i == SIMULATION_HAS_SPECTATORS) all &= ~(1u << SIMULATION_ABSURD);
        cr_assert_eq(with[i], all, "%s: %#x", simulation_trait_name(i), with[i]);
    }
}

Test(netplay_simulation, a_game_replays_exactly)
{
    simulation_plan plan;
    simulation_result results[2];
    simulation_draw(7, 0, &plan);
    for (int i = 0; i < 2; i++)
        simulation_run(&plan, UINT32_MAX, &results[i]);
    cr_assert_eq(results[0].call_count, results[1].call_count);
    cr_assert_eq(results[0].packet_count, results[1].packet_count);
    cr_assert_eq(results[0].rerun_count, results[1].rerun_count);
    cr_assert_eq(results[0].settle_ms, results[1].settle_ms);
}
