/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Machines that save every n-th frame (quern_netplay_def.save_interval). */
#include "tests/kit/netplay_machines.h"
#include "tests/support/effort.h"
#include "tests/support/failing_allocator.h"

#include <quern/archive.h>
#include <quern/history.h>

enum { PLAYERS = 3, FRAMES = 240 };

/* A session over a bad network, in which machine i saves every intervals[i]-th frame. */
typedef struct session {
    network net;
    machine machines[PLAYERS];
    uint64_t *hashes; /* of a world that runs alone */
} session;

static void open_session(session *it, uint64_t seed, const uint32_t *intervals, quern_netplay_def like)
{
    open_network(&it->net, seed);
    it->net.max_delay = 6;
    it->net.lost_percent = 10;
    like.player_count = PLAYERS;
    like.input_delay = 1;
    for (uint32_t i = 0; i < PLAYERS; i++) {
        like.save_interval = intervals[i];
        open_machine(&it->machines[i], &it->net, i, &like);
    }
    it->hashes = run_alone(PLAYERS, like.input_delay, FRAMES);
}

static void close_session(session *it)
{
    close_machines(it->machines, PLAYERS, &it->net);
    free(it->hashes);
}

/* Runs a tick. Returns whether all machines have confirmed all frames. `alone`: whether their worlds are that of one that
 * runs alone; a machine that has fallen behind gives one input for several frames. */
static bool run_tick(session *it, quern_jobs *jobs, bool alone)
{
    bool is_done = true;
    cr_assert_lt(it->net.tick, 20ull * FRAMES, "the machines wait for each other");
    for (uint32_t i = 0; i < PLAYERS; i++) {
        step_machine(&it->machines[i], jobs);
        if (alone) (void)compare_hashes(&it->machines[i], it->hashes, FRAMES);
        is_done = is_done && it->machines[i].netplay->verified >= FRAMES;
    }
    it->net.tick++;
    return is_done;
}

Test(netplay_saves, machines_that_save_fewer_frames_agree, .timeout = 300)
{
    static const uint32_t intervals[][PLAYERS] = {
        {2, 3, 4}, {1, 7, 32}, {0, 8, 16}, {32, 32, 32}, {5, 31, 2}};
    static const uint32_t threads[] = {1, 2, 3, 8};
    for (uint32_t i = 0; i < effort(5, 2, 1); i++)
        for (uint32_t k = 0; k < 4; k++) {
            session it;
            quern_jobs *jobs;
            const quern_jobs_def def = {.thread_count = threads[k]};
            cr_assert_eq(quern_jobs_create(&def, &jobs), QUERN_OK);
            open_session(&it, 10 * i + k, intervals[i], (quern_netplay_def){.max_rollback = 4 + 3 * k});
            while (!run_tick(&it, jobs, true))
                continue;
            for (uint32_t m = 0; m < PLAYERS; m++)
                cr_assert_eq(it.machines[m].result, QUERN_OK);
            close_session(&it);
            quern_jobs_destroy(jobs);
        }
}

/* Machines with the same packets, of which the last one saves each frame. */
Test(netplay_saves, fewer_frames_are_kept_and_more_run_again)
{
    session it;
    uint64_t rollback_count[PLAYERS], rerun_count[PLAYERS];
    open_session(&it, 3, (const uint32_t[]){8, 2, 1}, (quern_netplay_def){.max_rollback = 10});
    while (!run_tick(&it, NULL, true)) {
        /* 2 * (10 + 1) + 4 frames may be needed */
        cr_assert_leq(quern_history_list_frames(it.machines[0].netplay->history, NULL, 0), 26 / 8 + 3);
        cr_assert_leq(quern_history_list_frames(it.machines[1].netplay->history, NULL, 0), 26 / 2 + 3);
        cr_assert_leq(quern_history_list_frames(it.machines[2].netplay->history, NULL, 0), 26);
    }
    for (uint32_t i = 0; i < PLAYERS; i++) {
        const quern_netplay_status status = status_of(&it.machines[i]);
        rollback_count[i] = status.rollback_count;
        rerun_count[i] = status.rerun_count;
        cr_assert_gt(status.rollback_count, 20);
    }
    cr_assert_gt((double)rerun_count[0] / (double)rollback_count[0],
                 (double)rerun_count[2] / (double)rollback_count[2] + 1);
    close_session(&it);
}

/* A call may fail in the middle of the frames that run again, also of those that are verified. The machines themselves
 * compare their worlds. */
Test(netplay_saves, a_machine_goes_on_after_failed_allocations)
{
    for (uint32_t first = 1; first < effort(60, 10, 3); first++) {
        session it;
        failing_allocator *memory = failing_allocator_create();
        uint32_t failed = 0;
        open_session(&it, first, (const uint32_t[]){7, 1, 2 + first % 4},
                     (quern_netplay_def){.allocator = failing_allocator_interface(memory)});
        failing_allocator_fail_at(memory, first);
        for (bool is_done = false; !is_done;) {
            is_done = run_tick(&it, NULL, false);
            for (uint32_t i = 0; i < PLAYERS; i++) {
                cr_assert(it.machines[i].result == QUERN_OK ||
                          it.machines[i].result == QUERN_ERROR_OUT_OF_MEMORY);
                failed += it.machines[i].result != QUERN_OK;
            }
            if (it.net.tick % 10 == 0) failing_allocator_fail_at(memory, first % 7 + 1);
        }
        if (first == 1) cr_assert_gt(failed, 0);
        close_session(&it);
        cr_assert_eq(failing_allocator_outstanding_bytes(memory), 0);
        failing_allocator_close(memory);
    }
}

/* A machine that joins has no frames from before the world that it loads: its first frame is saved whatever its number. */
Test(netplay_saves, a_machine_that_joins_saves_its_first_frame)
{
    for (uint64_t seed = 0; seed < 8; seed++) {
        network net;
        machine machines[2];
        const quern_netplay_def def = {.player_count = 2, .absent = 2, .save_interval = 13};
        quern_netplay_def joining = def;
        joining.joins = true;
        open_network(&net, seed);
        net.max_delay = 4;
        open_machine(&machines[0], &net, 0, &def);
        for (net.tick = 0; net.tick < 60 + seed; net.tick++)
            step_machine(&machines[0], NULL);
        open_machine(&machines[1], &net, 1, &joining);
        for (uint32_t i = 0; i < 200; i++, net.tick++)
            for (uint32_t k = 0; k < 2; k++) {
                step_machine(&machines[k], NULL);
                cr_assert_eq(machines[k].result, QUERN_OK, "%s", quern_error_message());
            }
        cr_assert_eq(status_of(&machines[1]).present, 3);
        cr_assert_gt(status_of(&machines[1]).rollback_count, 0);
        close_machines(machines, 2, &net);
    }
}

/* A report goes back to frames that were not saved. */
Test(netplay_saves, a_report_finds_the_frame_that_differs)
{
    for (uint32_t interval = 2; interval <= 32; interval += 6) {
        session it;
        const uint32_t wrong_frame = 40 + interval;
        quern_netplay_report report;
        open_session(&it, interval, (const uint32_t[]){interval, 1, interval},
                     (quern_netplay_def){.reports = true, .hash_interval = 10});
        it.machines[2].played.netplay = it.machines[2].netplay;
        it.machines[2].played.wrong_frame = wrong_frame;
        for (it.net.tick = 0; it.net.tick < 600; it.net.tick++)
            for (uint32_t i = 0; i < PLAYERS; i++)
                step_machine(&it.machines[i], NULL);
        for (uint32_t i = 0; i < PLAYERS; i++) {
            cr_assert_eq(it.machines[i].result, QUERN_ERROR_DIVERGED);
            cr_assert_eq(quern_netplay_get_report(it.machines[i].netplay, &report), QUERN_OK);
            cr_assert(report.is_complete);
            cr_assert_eq(report.frame, wrong_frame, "%s", report.text);
            cr_assert_eq(report.difference.difference, QUERN_REPLAY_VALUE, "%s", report.text);
        }
        close_session(&it);
    }
}

Test(netplay_saves, an_interval_that_is_too_long_is_refused)
{
    network net;
    machine player;
    quern_netplay *other;
    open_network(&net, 1);
    open_machine(&player, &net, 0, &(quern_netplay_def){.player_count = 2});
    quern_netplay_def def = player.netplay->def;
    def.save_interval = QUERN_MAX_NETPLAY_SAVE_INTERVAL + 1;
    cr_assert_eq(quern_netplay_create(&def, &other), QUERN_ERROR_INVALID_ARGUMENT);
    cr_assert_not_null(strstr(quern_error_message(), "save_interval is 33"), "%s", quern_error_message());
    close_machines(&player, 1, &net);
}

/* A call that fails while verified frames run again leaves the session at an earlier one. */
Test(netplay_saves, the_world_that_is_sent_is_that_of_the_verified_frame)
{
    session it;
    quern_byte_buffer archive = {0};
    game other = {0};
    open_session(&it, 4, (const uint32_t[]){8, 8, 8}, (quern_netplay_def){.max_rollback = 10});
    quern_netplay *netplay = it.machines[0].netplay;
    while (netplay->verified < 40 || netplay->verified % 8 < 3)
        (void)run_tick(&it, NULL, true);
    const uint32_t verified = netplay->verified, saved = verified - verified % 8;
    must(quern_history_restore(netplay->history, saved, NULL));
    netplay->frame = saved;
    must(quern__netplay_save_world(netplay, NULL, &archive));
    open_game(&other, PLAYERS, false);
    must(quern_world_load(other.world, quern_source_bytes(archive.bytes, archive.size_bytes),
                          &(quern_load_def){.schedules = {other.schedule}}, NULL));
    cr_assert_eq(quern_world_hash(other.world), it.hashes[verified]);
    close_game(&other);
    quern_byte_buffer_release(&archive);
    close_session(&it);
}

static uint32_t loaded_count;

static void count_loaded(void *user_data)
{
    loaded_count++;
}

/* A player joins while the others go back. Each machine runs out of memory now and then, and calls again. */
Test(netplay_saves, a_player_joins_though_calls_fail, .timeout = 120)
{
    loaded_count = 0;
    const uint32_t seeds = effort(40, 12, 4);
    for (uint64_t seed = 1; seed <= seeds; seed++) {
        session it = {.hashes = NULL};
        failing_allocator *memory = failing_allocator_create();
        quern_netplay_def def = {.player_count = PLAYERS,
                                 .absent = 4,
                                 .input_delay = 1,
                                 .save_interval = 1 + (uint32_t)(seed % 2) * 7,
                                 .loaded = count_loaded,
                                 .allocator = failing_allocator_interface(memory)};
        uint32_t open = 2;
        open_network(&it.net, seed);
        it.net.max_delay = 6;
        for (uint32_t i = 0; i < 2; i++)
            open_machine(&it.machines[i], &it.net, i, &def);
        for (; it.net.tick < 600; it.net.tick++) {
            if (it.net.tick == 60) {
                def.joins = true;
                open_machine(&it.machines[open++], &it.net, 2, &def);
            }
            for (uint32_t i = 0; i < open; i++) {
                if (it.net.tick < 90 || (it.net.tick < 400 && random_below(&it.net.random, 3) == 0))
                    failing_allocator_fail_at(memory, random_below(&it.net.random, 40));
                step_machine(&it.machines[i], NULL);
                failing_allocator_heal(memory);
                cr_assert(it.machines[i].result == QUERN_OK ||
                              it.machines[i].result == QUERN_ERROR_OUT_OF_MEMORY ||
                              it.machines[i].result == QUERN_ERROR_IO, /* no memory for the archive */
                          "seed %u, tick %u, machine %u: %s", (unsigned)seed, (unsigned)it.net.tick, i,
                          quern_error_message());
            }
        }
        for (uint32_t i = 0; i < PLAYERS; i++) {
            const quern_netplay_status status = status_of(&it.machines[i]);
            cr_assert_eq(status.present, 7u, "seed %u", (unsigned)seed);
            cr_assert_not(status.is_joining);
            cr_assert_gt(status.confirmed_frame, 300u);
        }
        close_machines(it.machines, PLAYERS, &it.net);
        cr_assert_eq(failing_allocator_outstanding_bytes(memory), 0);
        failing_allocator_close(memory);
    }
    cr_assert_eq(loaded_count, seeds);
}
