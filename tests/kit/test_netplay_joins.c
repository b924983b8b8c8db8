/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */

/* Players of netplay that join, come and go: all machines agree, with each other and with a world that runs alone. */

#include "tests/kit/netplay_machines.h"
#include "tests/support/effort.h"
#include "tests/support/stress.h"

#include <string.h>

Test(netplay, an_absent_player_joins_and_all_agree)
{
    for (uint64_t seed = 1; seed <= 6; seed++) {
        network net;
        machine machines[3];
        quern_netplay_def def = {
            .player_count = 3, .absent = 4, .max_rollback = 6, .input_delay = (uint32_t)(seed % 3)};
        bool joined = false;
        open_network(&net, seed);
        net.max_delay = 5;
        net.lost_percent = seed % 2 == 0 ? 25 : 0;
        open_machines(machines, 2, &net, &def);
        for (net.tick = 0; net.tick < 900; net.tick++) {
            if (net.tick == 150) {
                def.joins = true;
                open_machine(&machines[2], &net, 2, &def);
                joined = true;
            }
            for (uint32_t i = 0; i < (joined ? 3u : 2u); i++) {
                step_machine(&machines[i], NULL);
                cr_assert_eq(machines[i].result, QUERN_OK, "%s", quern_error_message());
            }
        }
        for (uint32_t i = 0; i < 3; i++) {
            const quern_netplay_status status = status_of(&machines[i]);
            cr_assert_eq(status.present, 7u);
            cr_assert_not(status.is_joining);
            cr_assert_gt(status.confirmed_frame, 300);
            /* the last compared hashes of all machines are equal, or advancing had failed; some must have been compared */
            uint32_t common = 0;
            for (uint32_t k = 0; k < QUERN__NETPLAY_HASHES; k++)
                for (uint32_t other = 0; other < 3; other++)
                    common += other != i && machines[i].netplay->players[other].hashes[k].frame ==
                                                machines[i].netplay->hashes[k].frame;
            cr_assert_gt(common, 0);
            close_machine(&machines[i]);
        }
        free(net.packets);
    }
}

Test(netplay, a_dropped_player_joins_again)
{
    network net;
    machine machines[3];
    quern_netplay_def def = {.player_count = 3, .timeout_seconds = 0.03, .max_rollback = 6};
    open_network(&net, 8);
    net.max_delay = 4;
    open_machines(machines, 3, &net, &def);
    for (net.tick = 0; net.tick < 900; net.tick++) {
        if (net.tick == 150) net.silent = 2;
        if (net.tick == 300) {
            close_machine(&machines[1]);
            def.joins = true;
            open_machine(&machines[1], &net, 1, &def);
            net.silent = 0;
        }
        for (uint32_t i = 0; i < 3; i++) {
            step_machine(&machines[i], NULL);
            if (i != 1 || net.tick > 300)
                cr_assert_eq(machines[i].result, QUERN_OK, "%s", quern_error_message());
        }
    }
    for (uint32_t i = 0; i < 3; i++) {
        cr_assert_eq(status_of(&machines[i]).present, 7u);
        cr_assert_gt(status_of(&machines[i]).confirmed_frame, 400);
        close_machine(&machines[i]);
    }
    free(net.packets);
}

/* Plays with two machines of which the second one is gone from one tick to another, then joins. */
static void play_with_return(quern_netplay_def def, uint32_t latency, uint64_t gone_at, uint64_t back_at,
                             uint32_t shot_count)
{
    network net;
    machine machines[2];
    bool is_open[2] = {true, gone_at > 0};
    open_network(&net, 1);
    net.latency = latency;
    open_machine(&machines[0], &net, 0, &def);
    if (is_open[1]) open_machine(&machines[1], &net, 1, &def);
    for (uint32_t i = 0; i < shot_count; i++) {
        const Shot shot = {(int32_t)(i * 2654435761u), INT32_MAX};
        const void *values[] = {&shot};
        cr_assert_eq(
            quern_entity_create_with(machines[0].played.world, &machines[0].played.shot, values, 1, NULL),
            QUERN_OK);
    }
    for (net.tick = 0; net.tick < back_at + 800; net.tick++) {
        if (net.tick == gone_at && is_open[1]) {
            close_machine(&machines[1]);
            is_open[1] = false;
        }
        if (net.tick == back_at) {
            def.joins = true;
            net.count = 0;
            open_machine(&machines[1], &net, 1, &def);
            is_open[1] = true;
        }
        for (uint32_t i = 0; i < 2; i++) {
            if (!is_open[i]) continue;
            step_machine(&machines[i], NULL);
            cr_assert_eq(machines[i].result, QUERN_OK, "%s", quern_error_message());
        }
    }
    for (uint32_t i = 0; i < 2; i++) {
        cr_assert_eq(status_of(&machines[i]).present, 3u);
        cr_assert_gt(machines[i].netplay->verified, machines[1].netplay->loaded_frame + 200);
        close_machine(&machines[i]);
    }
    free(net.packets);
}

Test(netplay, a_player_joins_over_a_slow_line)
{
    for (uint32_t latency = 4; latency <= 10;
         latency += 3) /* 67 to 167 ms of a game with 60 frames per second */
        play_with_return((quern_netplay_def){.player_count = 2, .absent = 2}, latency, 0, 100, 0);
}

Test(netplay, a_player_returns_after_more_frames_than_are_kept)
{
    for (uint64_t away = 100; away <= 1000; away += 300)
        play_with_return((quern_netplay_def){.player_count = 2, .timeout_seconds = 0.03}, 1, 100,
                         100 + away, 0);
}

Test(netplay, a_join_may_last_longer_than_the_timeout)
{
    play_with_return((quern_netplay_def){.player_count = 2, .absent = 2, .timeout_seconds = 0.03}, 8, 0, 20,
                     20000);
}

enum {
    SEEDS = effort(20, 6, 1),
    AWAY_TICKS = 5000,
    REUNION_TICKS = 4000,
    COMPARED_FRAMES = 100,
    NOTED_HASHES = 64
};

/* A game in which machines leave, are cut off and come back at random. */
typedef struct gathering {
    network net;
    quern_netplay_def def;
    machine machines[MAX_MACHINES];
    bool is_open[MAX_MACHINES];
    uint64_t opens_at[MAX_MACHINES]; /* tick at which a machine that is closed joins */
    uint64_t heals_at[MAX_MACHINES]; /* tick at which a machine that is cut off is heard again */
    quern__netplay_hash hashes[MAX_MACHINES][NOTED_HASHES]; /* of frames that will not change, by frame */
    uint32_t leave_count, cut_count, cancelled_count, join_count;
} gathering;

static void leave(gathering *it, uint32_t player, uint32_t most_ticks)
{
    close_machine(&it->machines[player]);
    it->is_open[player] = false;
    it->opens_at[player] = it->net.tick + random_below(&it->net.random, most_ticks);
}

static void come_back(gathering *it, uint32_t player)
{
    quern_netplay_def def = it->def;
    def.joins = true;
    /* What was on its way to the old machine does not reach the new one. */
    for (uint32_t i = it->net.count; i-- > 0;)
        if (it->net.packets[i].to == player) it->net.packets[i] = it->net.packets[--it->net.count];
    open_machine(&it->machines[player], &it->net, player, &def);
    it->is_open[player] = true;
    it->join_count++;
}

static bool plays(const gathering *it, uint32_t player)
{
    return it->is_open[player] && it->machines[player].netplay->is_admitted;
}

/* Whether the game goes on without the player: another one that is heard plays with it. */
static bool can_do_without(const gathering *it, uint32_t player)
{
    const quern_netplay *with = it->machines[player].netplay;
    for (uint32_t i = 0; i < it->def.player_count; i++)
        if (i != player && plays(it, i) && (it->net.cut >> i & 1) == 0 &&
            it->machines[i].netplay->table.id == with->table.id)
            return true;
    return false;
}

static void disturb(gathering *it)
{
    random_source *random = &it->net.random;
    const uint32_t player = random_below(random, it->def.player_count);
    if (!it->is_open[player] || (plays(it, player) && !can_do_without(it, player))) return;
    if (random_chance(random, 50)) {
        leave(it, player, random_chance(random, 50) ? 40 : 700);
        it->leave_count++;
    } else if ((it->net.cut >> player & 1) == 0) {
        it->net.cut |= 1u << player;
        it->heals_at[player] = it->net.tick + 5 + random_below(random, 200);
        it->cut_count++;
    }
}

static void step_all(gathering *it)
{
    for (uint32_t i = 0; i < it->def.player_count; i++) {
        if (it->net.tick >= it->heals_at[i]) it->net.cut &= ~(1u << i);
        if (!it->is_open[i] && it->net.tick >= it->opens_at[i]) come_back(it, i);
        if (!it->is_open[i]) continue;
        step_machine(&it->machines[i], NULL);
        if (it->machines[i].result == QUERN_OK || it->machines[i].result == QUERN_ERROR_UNAVAILABLE)
            continue;
        cr_assert_eq(it->machines[i].result, QUERN_ERROR_CANCELLED, "tick %llu, player %u: %s",
                     (unsigned long long)it->net.tick, i, quern_error_message());
        it->cancelled_count++;
        leave(it, i, 60);
    }
    it->net.tick++;
}

static void note_hashes(gathering *it)
{
    for (uint32_t i = 0; i < it->def.player_count; i++) {
        const quern_netplay *netplay = it->machines[i].netplay;
        for (uint32_t k = 0; k < QUERN__NETPLAY_HASHES && it->is_open[i]; k++)
            if (netplay->hashes[k].frame <= netplay->verified)
                it->hashes[i][netplay->hashes[k].frame / HASH_INTERVAL % NOTED_HASHES] = netplay->hashes[k];
    }
}

/* Returns the first frame that a machine has not confirmed; 0 if a player does not take part. */
static uint32_t confirmed_by_all(const gathering *it)
{
    uint32_t frame = UINT32_MAX;
    for (uint32_t i = 0; i < it->def.player_count; i++) {
        if (!plays(it, i) || status_of(&it->machines[i]).present != (1u << it->def.player_count) - 1)
            return 0;
        if (it->machines[i].netplay->verified < frame) frame = it->machines[i].netplay->verified;
    }
    return frame;
}

/* Plays until all have played together for some frames, and compares all hashes of these frames. */
static void play_together(gathering *it, uint64_t seed)
{
    const uint64_t limit = it->net.tick + REUNION_TICKS;
    uint32_t first = 0; /* first frame that all play; 0: they do not play together */
    while (first == 0 || confirmed_by_all(it) < first + COMPARED_FRAMES) {
        cr_assert_lt(it->net.tick, limit, "seed %llu: the game does not go on", (unsigned long long)seed);
        step_all(it);
        note_hashes(it);
        if (confirmed_by_all(it) == 0)
            first = 0;
        else if (first == 0)
            for (uint32_t i = 0; i < it->def.player_count; i++)
                if (it->machines[i].netplay->frame > first) first = it->machines[i].netplay->frame;
    }
    for (uint32_t frame = first + HASH_INTERVAL - first % HASH_INTERVAL; frame < first + COMPARED_FRAMES;
         frame += HASH_INTERVAL)
        for (uint32_t i = 0; i < it->def.player_count; i++) {
            const quern__netplay_hash *hash = &it->hashes[i][frame / HASH_INTERVAL % NOTED_HASHES];
            cr_assert_eq(hash->frame, frame, "seed %llu, player %u", (unsigned long long)seed, i);
            cr_assert_eq(hash->hash, it->hashes[0][frame / HASH_INTERVAL % NOTED_HASHES].hash,
                         "seed %llu, player %u, frame %u", (unsigned long long)seed, i, frame);
        }
}

static void play_gathering(gathering *it, uint64_t seed)
{
    *it = (gathering){.def = {.player_count = 0}};
    open_network(&it->net, seed);
    random_source *random = &it->net.random;
    it->net.latency = random_below(random, 10);
    it->net.max_delay = 1 + random_below(random, 4);
    it->net.lost_percent = random_chance(random, 50) ? random_below(random, 20) : 0;
    it->net.repeated_percent = random_below(random, 10);
    it->def = (quern_netplay_def){.player_count = 2 + random_below(random, MAX_MACHINES - 1),
                                  .input_delay = random_below(random, 4),
                                  .max_rollback = 4 + random_below(random, 10),
                                  .timeout_seconds = 0.06 + 0.001 * random_below(random, 40)};
    for (uint32_t i = 0; i < it->def.player_count; i++) {
        open_machine(&it->machines[i], &it->net, i, &it->def);
        it->is_open[i] = true;
    }
    for (uint64_t next = 50; it->net.tick < AWAY_TICKS; step_all(it)) {
        if (it->net.tick < next) continue;
        disturb(it);
        next += random_below(random, 250);
    }
    for (uint32_t i = 0; i < it->def.player_count; i++)
        it->heals_at[i] = 0;
    play_together(it, seed);
    for (uint32_t i = 0; i < it->def.player_count; i++)
        close_machine(&it->machines[i]);
    free(it->net.packets);
}

Test(netplay, games_go_on_while_players_come_and_go, .timeout = 300)
{
    uint32_t leave_count = 0, cut_count = 0, cancelled_count = 0, join_count = 0;
    const uint64_t first = stress_seed(1); /* QUERN_STRESS_SEED=N: begins with seed N */
    for (uint64_t seed = first; seed < first + SEEDS; seed++) {
        gathering played;
        play_gathering(&played, seed);
        leave_count += played.leave_count;
        cut_count += played.cut_count;
        cancelled_count += played.cancelled_count;
        join_count += played.join_count;
    }
    cr_assert_gt(leave_count, 4 * SEEDS);
    cr_assert_gt(cut_count, 4 * SEEDS);
    cr_assert_gt(cancelled_count, SEEDS);
    cr_assert_gt(join_count, 5 * SEEDS);
}
