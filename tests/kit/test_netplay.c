/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Test labels: threaded */

/* Netplay between machines in one process: inputs, silence, clocks and groups. */

#include "tests/kit/netplay_machines.h"
#include "tests/support/effort.h"

#include <string.h>

Test(netplay, inputs_that_arrive_in_time_need_no_rollback)
{
    runs_on_one_thread();
    const plan played = {.player_count = 2, .frame_count = 100, .max_delay = 1, .input_delay = 3};
    network net;
    machine machines[2];
    const quern_netplay_def def = {.player_count = 2, .input_delay = played.input_delay};
    open_network(&net, 1);
    open_machines(machines, 2, &net, &def);
    for (net.tick = 0; net.tick < 100; net.tick++)
        for (uint32_t i = 0; i < 2; i++)
            step_machine(&machines[i], NULL);
    for (uint32_t i = 0; i < 2; i++) {
        const quern_netplay_status status = status_of(&machines[i]);
        cr_assert_eq(status.frame, 100);
        cr_assert_eq(status.rollback_count, 0);
        cr_assert_eq(status.wait_count, 0);
        cr_assert_geq(status.confirmed_frame, 98);
        close_machine(&machines[i]);
    }
    free(net.packets);
    cr_assert_lt(play_plan(&played, 1), 110);
}

Test(netplay, machines_agree_whatever_the_network_does)
{
    const plan plans[] = {
        {.player_count = 2, .frame_count = 300, .thread_count = 1, .max_delay = 4, .max_rollback = 8},
        {.player_count = 2,
         .frame_count = 300,
         .thread_count = 2,
         .max_delay = 6,
         .lost_percent = 20,
         .input_delay = 2},
        {.player_count = 2,
         .frame_count = 300,
         .thread_count = 1,
         .max_delay = 12,
         .lost_percent = 40,
         .repeated_percent = 20},
        {.player_count = 4,
         .frame_count = 200,
         .thread_count = 1,
         .max_delay = 5,
         .lost_percent = 10,
         .repeated_percent = 10},
        {.player_count = 4,
         .frame_count = 200,
         .thread_count = 2,
         .max_delay = 8,
         .lost_percent = 30,
         .input_delay = 1},
        {.player_count = 3,
         .frame_count = 200,
         .thread_count = 1,
         .max_delay = 3,
         .damaged_percent = 30,
         .max_rollback = 3},
        {.player_count = 2, .frame_count = 200, .thread_count = 1, .max_delay = 2, .max_rollback = 1},
        {.player_count = 4,
         .frame_count = 200,
         .thread_count = 1,
         .max_delay = 20,
         .lost_percent = 50,
         .max_rollback = 32,
         .input_delay = 32},
    };
    for (uint32_t i = 0; i < sizeof plans / sizeof plans[0]; i++)
        if (!LOOKS_FOR_RACES_ALONE || plans[i].thread_count > 1) play_plan(&plans[i], 100 + i);
}

Test(netplay, a_silent_player_is_dropped_and_the_others_agree)
{
    runs_on_one_thread();
    for (uint32_t silent = 0; silent < 3; silent++) {
        network net;
        machine machines[3];
        const quern_netplay_def def = {.player_count = 3, .timeout_seconds = 0.05, .max_rollback = 6};
        uint64_t last[3] = {0};
        open_network(&net, silent + 5);
        net.max_delay = 4;
        open_machines(machines, 3, &net, &def);
        for (net.tick = 0; net.tick < 600; net.tick++) {
            if (net.tick == 100) net.silent = 1u << silent;
            for (uint32_t i = 0; i < 3; i++)
                if (net.tick < 100 || i != silent) {
                    step_machine(&machines[i], NULL);
                    cr_assert_eq(machines[i].result, QUERN_OK, "%s", quern_error_message());
                }
        }
        for (uint32_t i = 0; i < 3; i++) {
            const quern_netplay_status status = status_of(&machines[i]);
            if (i != silent) {
                cr_assert_eq(status.present, 7u & ~(1u << silent));
                cr_assert_gt(status.confirmed_frame, 400);
                last[i] = machines[i].netplay->table.members[silent].dropped_from;
            }
        }
        const uint32_t first = silent == 0 ? 1 : 0, second = silent == 2 ? 1 : 2;
        cr_assert_eq(last[first], last[second]);
        close_machines(machines, 3, &net);
    }
}

/* Plays with one machine that is not heard for a while. Stores the results of the last calls. */
static void play_with_silence(const quern_netplay_def *def, uint32_t silent, uint32_t first, uint32_t end,
                              quern_result *out_results)
{
    network net;
    machine machines[3];
    open_network(&net, 3);
    open_machines(machines, 3, &net, def);
    for (net.tick = 0; net.tick < 300; net.tick++) {
        net.silent = net.tick >= first && net.tick < end ? 1u << silent : 0;
        for (uint32_t i = 0; i < 3; i++)
            step_machine(&machines[i], NULL);
    }
    for (uint32_t i = 0; i < 3; i++) {
        out_results[i] = machines[i].result;
        if (i != silent) {
            cr_assert_eq(status_of(&machines[i]).present, 7u & ~(1u << silent));
            cr_assert_gt(status_of(&machines[i]).frame, 200);
        }
        close_machine(&machines[i]);
    }
    free(net.packets);
}

Test(netplay, a_dropped_player_is_told_when_it_is_heard_again)
{
    runs_on_one_thread();
    /* The silent machine hears the others until they drop it; then it drops them, and is a group of its own. */
    for (uint32_t silent = 0; silent < 3; silent++) {
        quern_result results[3];
        const quern_netplay_def def = {.player_count = 3, .timeout_seconds = 0.02};
        play_with_silence(&def, silent, 20, 100, results);
        for (uint32_t i = 0; i < 3; i++)
            cr_assert_eq(results[i], i == silent ? QUERN_ERROR_CANCELLED : QUERN_OK, "%u of %u", i, silent);
    }
}

Test(netplay, a_player_is_told_before_it_drops_the_others)
{
    runs_on_one_thread();
    quern_result results[3];
    const quern_netplay_def def = {.player_count = 3, .timeout_seconds = 0.02};
    play_with_silence(&def, 1, 20, 45, results);
    cr_assert_eq(results[1], QUERN_ERROR_CANCELLED);
}

/* Machines whose clocks differ by one percent. */
Test(netplay, a_faster_clock_does_not_run_ahead)
{
    runs_on_one_thread();
    network net;
    machine machines[2];
    const quern_netplay_def def = {.player_count = 2, .max_rollback = 32};
    open_network(&net, 1);
    net.latency = 3;
    open_machines(machines, 2, &net, &def);
    for (net.tick = 0; net.tick < 4000; net.tick++) {
        step_machine(&machines[0], NULL);
        if (net.tick % 100 != 0) step_machine(&machines[1], NULL);
        cr_assert_leq(machines[0].netplay->frame, machines[1].netplay->frame + 4);
    }
    const uint64_t fast = status_of(&machines[0]).rerun_count, slow = status_of(&machines[1]).rerun_count;
    cr_assert_leq(fast, 2 * slow, "the faster machine ran %u frames again, the slower one %u",
                  (uint32_t)fast, (uint32_t)slow);
    close_machines(machines, 2, &net);
}

/* A player whose packets arrive, and that gives no more inputs: the others would wait for ever. */
Test(netplay, a_player_without_inputs_is_dropped)
{
    runs_on_one_thread();
    network net;
    machine machines[3];
    const quern_netplay_def def = {.player_count = 3, .timeout_seconds = 0.03};
    open_network(&net, 1);
    open_machines(machines, 3, &net, &def);
    for (net.tick = 0; net.tick < 600; net.tick++) {
        if (net.tick == 100) machines[1].netplay->def.frame_count = machines[1].netplay->frame;
        for (uint32_t i = 0; i < 3; i++)
            step_machine(&machines[i], NULL);
    }
    cr_assert_eq(machines[1].result, QUERN_ERROR_CANCELLED);
    for (uint32_t i = 0; i < 3; i++) {
        if (i != 1) cr_assert_gt(machines[i].netplay->verified, 300);
        close_machine(&machines[i]);
    }
    free(net.packets);
}

/* Packets of a dead machine, again and again, do not count as heard. */
Test(netplay, repeats_of_old_packets_do_not_keep_a_player)
{
    runs_on_one_thread();
    network net;
    machine machines[3];
    sent_packet old = {.size = 0};
    const quern_netplay_def def = {.player_count = 3, .timeout_seconds = 0.03};
    open_network(&net, 1);
    open_machines(machines, 3, &net, &def);
    for (net.tick = 0; net.tick < 300; net.tick++) {
        for (uint32_t i = 0; i < net.count; i++)
            if (net.tick == 100 && net.packets[i].from == 2 && net.packets[i].to == 0) old = net.packets[i];
        if (net.tick > 100) {
            old.arrival = net.tick;
            net.packets[net.count++] = old;
        }
        for (uint32_t i = 0; i < (net.tick < 100 ? 3u : 2u); i++) {
            step_machine(&machines[i], NULL);
            cr_assert_eq(machines[i].result, QUERN_OK, "%s", quern_error_message());
        }
    }
    cr_assert_eq(old.from, 2);
    for (uint32_t i = 0; i < 3; i++) {
        if (i < 2) cr_assert_eq(status_of(&machines[i]).present, 3);
        close_machine(&machines[i]);
    }
    free(net.packets);
}

/* Returns how many packets of player 1 the machine of player 0 has accepted. repeats: whether packets of an earlier machine
 * of player 1 arrive late. */
static uint64_t accepted_packets(bool repeats)
{
    enum { LIFE = 3 }; /* place of the machine's number */
    network net;
    machine machines[2];
    sent_packet old = {.size = 0};
    const quern_netplay_def def = {.player_count = 2, .timeout_seconds = 0.03};
    quern_netplay_player_status status;
    open_network(&net, 1);
    open_machines(machines, 2, &net, &def);
    for (net.tick = 0; net.tick < 400; net.tick++) {
        for (uint32_t i = 0; i < net.count; i++)
            if (net.tick == 100 && net.packets[i].from == 1) old = net.packets[i];
        if (net.tick == 100) {
            old.bytes[LIFE] ^= 1;
            const uint32_t end = old.size - 4, sum = quern__netplay_checksum(99, old.bytes, end);
            for (uint32_t i = 0; i < 4; i++)
                old.bytes[end + i] = (unsigned char)(sum >> (8 * i));
        }
        if (net.tick > 300 && repeats) {
            old.arrival = net.tick;
            net.packets[net.count++] = old;
        }
        for (uint32_t i = 0; i < 2; i++) {
            step_machine(&machines[i], NULL);
            cr_assert_eq(machines[i].result, QUERN_OK, "%s", quern_error_message());
        }
    }
    must(quern_netplay_get_player_status(machines[0].netplay, 1, &status));
    close_machines(machines, 2, &net);
    return status.received_packets;
}

Test(netplay, packets_of_an_earlier_machine_are_not_accepted)
{
    runs_on_one_thread();
    const uint64_t count = accepted_packets(false);
    cr_assert_gt(count, 100u);
    cr_assert_eq(accepted_packets(true), count);
}

/* Of four players, 0 and 1 are gone at once, or 0 is cut off and heard again. */
Test(netplay, the_larger_group_goes_on)
{
    runs_on_one_thread();
    for (uint32_t heals = 0; heals < 2; heals++) {
        network net;
        machine machines[MAX_MACHINES];
        const quern_netplay_def def = {.player_count = 4, .timeout_seconds = 0.03};
        open_network(&net, 1);
        open_machines(machines, 4, &net, &def);
        for (net.tick = 0; net.tick < 500; net.tick++) {
            net.cut = net.tick >= 100 && (heals == 0 || net.tick < 250) ? (heals == 0 ? 3 : 1) : 0;
            for (uint32_t i = 0; i < 4; i++)
                step_machine(&machines[i], NULL);
        }
        for (uint32_t i = 0; i < 4; i++) {
            const bool goes_on = heals == 0 ? i >= 2 : i >= 1;
            if (goes_on) {
                cr_assert_eq(machines[i].result, QUERN_OK);
                cr_assert_eq(status_of(&machines[i]).present, heals == 0 ? 12 : 14);
                cr_assert_gt(machines[i].netplay->verified, 400);
            } else {
                cr_assert_eq(machines[i].result,
                             heals == 0 ? QUERN_ERROR_UNAVAILABLE : QUERN_ERROR_CANCELLED, "%u", i);
            }
            close_machine(&machines[i]);
        }
        free(net.packets);
    }
}

/* Two players have dropped each other, and have spectators. Whatever calls they send packets to each other in, one of them
 * learns of the other, although a timeout is shorter than the time between such packets. */
Test(netplay, two_halves_meet_again)
{
    runs_on_one_thread();
    for (uint32_t shift = 0; shift < 16; shift++) {
        network net;
        machine machines[2];
        const quern_netplay_def def = {.player_count = 2, .timeout_seconds = 0.008};
        open_network(&net, 1);
        open_machines(machines, 2, &net, &def);
        for (net.tick = 0; net.tick < 400; net.tick++) {
            net.cut = net.tick >= 100 && net.tick < 200 ? 3 : 0;
            for (uint32_t i = 0; i < 2; i++) {
                machines[i].netplay->sequence++; /* of a packet to a spectator */
                if (i == 0 || net.tick < 150 || net.tick >= 150 + shift) step_machine(&machines[i], NULL);
            }
        }
        cr_assert_eq(machines[0].result, QUERN_OK, "%u", shift);
        cr_assert_eq(machines[1].result, QUERN_ERROR_CANCELLED, "%u", shift);
        close_machines(machines, 2, &net);
    }
}

/* The leader adopts a table that drops a silent player, and is gone before another machine learns of it. The others
 * have accepted that table and take it over, even if the player that it drops is heard again and leads. */
static void play_with_lost_leader(uint32_t player_count, uint32_t silent)
{
    network net;
    machine machines[MAX_MACHINES];
    const quern_netplay_def def = {.player_count = player_count, .timeout_seconds = 0.03};
    open_network(&net, silent);
    open_machines(machines, player_count, &net, &def);
    const quern__netplay_table *adopted = &machines[0].netplay->table;
    for (net.tick = 0; net.tick < 400; net.tick++) {
        if (net.tick == 100) net.cut = 1u << silent;
        for (uint32_t i = adopted->epoch == 0 ? 0 : 1; i < player_count; i++) {
            if (machines[i].result == QUERN_OK) step_machine(&machines[i], NULL);
            if (i > 0 || adopted->epoch == 0) continue;
            net.cut = 1;
            for (uint32_t k = net.count; k-- > 0;)
                if (net.packets[k].from == 0) net.packets[k] = net.packets[--net.count];
        }
    }
    cr_assert_eq(adopted->epoch, 1);
    for (uint32_t i = 1; i < player_count; i++) {
        cr_assert_eq(machines[i].result, i == silent ? QUERN_ERROR_CANCELLED : QUERN_OK, "%u of %u, %u", i,
                     player_count, silent);
        if (i == silent) continue;
        cr_assert_eq(machines[i].netplay->table.parent, adopted->id, "%u of %u, %u", i, player_count,
                     silent);
        cr_assert_eq(status_of(&machines[i]).present, ((1u << player_count) - 1) & ~(1u << silent | 1));
        cr_assert_gt(machines[i].netplay->verified, 200);
    }
    close_machines(machines, player_count, &net);
}

Test(netplay, an_accepted_table_outlives_its_leader)
{
    runs_on_one_thread();
    for (uint32_t silent = 1; silent < 4; silent++)
        play_with_lost_leader(4, silent);
    play_with_lost_leader(3, 2); /* the only other machine that has accepted the table leads next */
}

/* Writes an input of which some bytes change now and then: those of `changing` in each frame, others every 16 frames. */
static void make_input(unsigned char *input, uint32_t bytes, uint32_t player, uint32_t frame,
                       uint32_t changing)
{
    for (uint32_t i = 0; i < bytes; i++) {
        random_source random = {((i < changing ? frame : frame / 16) + 1) * 977u + player * 31u +
                                i * 7919u};
        input[i] = i >= changing && random_chance(&random, 70) ? 0 : (unsigned char)random_next(&random);
    }
}

/* Plays with inputs that no system reads. Returns the bytes that a machine sends to each other one per frame. */
static double play_with_inputs(uint32_t player_count, uint32_t input_bytes, uint32_t changing, bool is_idle,
                               uint32_t lost_percent)
{
    enum { FRAMES = 600 };
    network net;
    machine machines[QUERN_MAX_NETPLAY_PLAYERS];
    const quern_netplay_def def = {
        .player_count = player_count, .input_bytes = input_bytes, .max_rollback = 24, .hash_interval = 30};
    uint64_t sent_bytes = 0;
    open_network(&net, input_bytes);
    net.latency = 5; /* 100 to 150 ms */
    net.max_delay = 4;
    net.lost_percent = lost_percent;
    open_machines(machines, player_count, &net, &def);
    uint32_t least = 0;
    for (net.tick = 0; net.tick < 2 * FRAMES && least < FRAMES; net.tick++) {
        least = FRAMES;
        for (uint32_t i = 0; i < player_count; i++) {
            unsigned char input[QUERN_MAX_NETPLAY_INPUT_BYTES] = {0};
            quern_netplay *netplay = machines[i].netplay;
            if (!is_idle) make_input(input, input_bytes, i, netplay->frame, changing);
            cr_assert_eq(quern_netplay_advance(netplay, NULL, input, NULL), QUERN_OK, "%s",
                         quern_error_message());
            if (netplay->verified < least) least = netplay->verified;
            /* All inputs of the frame that was confirmed are those that the players gave. */
            const uint32_t frame = netplay->verified - 1;
            for (uint32_t k = 0; k < player_count && netplay->verified > 0; k++) {
                if (!is_idle) make_input(input, input_bytes, k, frame, changing);
                cr_assert_eq(memcmp(netplay->used[frame % QUERN__NETPLAY_WINDOW] + (size_t)k * input_bytes,
                                    input, input_bytes),
                             0, "player %u, input of player %u, frame %u", i, k, frame);
            }
        }
    }
    cr_assert_eq(least, FRAMES);
    for (uint32_t i = 0; i < player_count; i++)
        sent_bytes += status_of(&machines[i]).sent_bytes;
    const double frames = (double)net.tick;
    close_machines(machines, player_count, &net);
    return (double)sent_bytes / player_count / (player_count - 1) / frames;
}

/* With so much loss, inputs that are sent only some times are lost now and then. */
Test(netplay, inputs_of_all_sizes_arrive, .timeout = 120)
{
    runs_on_one_thread();
    static const uint32_t sizes[] = {1, 2, 6, 7, 8, 9, 15, 16, 31, 63, 64};
    for (uint32_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        for (uint32_t changing = 0; changing <= sizes[i]; changing += (sizes[i] + 1) / 2)
            (void)play_with_inputs(2, sizes[i], changing, false, 30);
}

/* Bytes of packets, without the headers of UDP and IP. */
Test(netplay, packets_are_small)
{
    runs_on_one_thread();
    const double most = 30000.0 / 60 / 7; /* 30 kB per second for each of eight players */
    const double idle = play_with_inputs(8, 8, 0, true, 5);
    const double pressing = play_with_inputs(8, 8, 0, false, 5);
    const double changing = play_with_inputs(8, 8, 8, false, 5);
    const double large = play_with_inputs(8, 64, 0, true, 5);
    cr_assert_lt(idle, 33, "%g bytes", idle);
    cr_assert_lt(large, idle + 1, "%g bytes", large);
    cr_assert_lt(pressing, 44, "%g bytes", pressing);
    cr_assert_lt(changing, most, "%g bytes", changing);
}

/* The bytes that machines send are those of their protocol version: machines of older programs with the same version read
 * them. If they change, the version changes, and the hash below with it. */
Test(netplay, packets_without_a_key_are_the_same_as_ever)
{
    network net;
    machine machines[3];
    uint64_t hash = 0xCBF29CE484222325;
    open_network(&net, 5);
    net.latency = 2; /* so that no packet is taken in the tick in which it is sent */
    net.max_delay = 3;
    open_machines(machines, 3, &net, &(quern_netplay_def){.player_count = 3, .input_delay = 1});
    for (net.tick = 0; net.tick < 120; net.tick++)
        for (uint32_t i = 0; i < 3; i++) {
            net.lost_percent = net.tick > 40 ? 10 : 0;
            step_machine(&machines[i], NULL);
            for (uint32_t p = 0; p < net.count; p++) {
                const sent_packet *packet = &net.packets[p];
                if (packet->from != i || packet->arrival <= net.tick + 2) continue;
                for (uint32_t b = 0; b < packet->size; b++)
                    hash = (hash ^ packet->bytes[b]) * 0x100000001B3;
            }
        }
    cr_assert_eq(status_of(&machines[0]).frame, 120);
    cr_assert_eq(hash, 0x34B311B2069D8509, "%llx", (unsigned long long)hash);
    close_machines(machines, 3, &net);
}

/* Over a line of five ticks, the machine of player 0 gives its inputs later, then earlier again. */
Test(netplay, the_input_delay_changes_while_playing)
{
    runs_on_one_thread();
    network net;
    machine machines[2];
    const quern_netplay_def def = {.player_count = 2, .max_input_delay = 8, .max_rollback = 8};
    uint64_t rollbacks[3] = {0}; /* of the other machine, with each delay */
    open_network(&net, 1);
    net.latency = 4;
    open_machines(machines, 2, &net, &def);
    quern_netplay *netplay = machines[0].netplay;
    for (net.tick = 0; net.tick < 600; net.tick++) {
        if (net.tick == 200) cr_assert_eq(quern_netplay_set_input_delay(netplay, 8), QUERN_OK);
        if (net.tick == 400) cr_assert_eq(quern_netplay_set_input_delay(netplay, 1), QUERN_OK);
        const uint64_t before = status_of(&machines[1]).rollback_count;
        for (uint32_t i = 0; i < 2; i++) {
            step_machine(&machines[i], NULL);
            cr_assert_eq(machines[i].result, QUERN_OK, "%s", quern_error_message());
        }
        if (net.tick % 200 >= 50) /* inputs that were given with the delay before are on their way */
            rollbacks[net.tick / 200] += status_of(&machines[1]).rollback_count - before;
        if (net.tick == 399) cr_assert_eq(netplay->players[0].known_end, netplay->frame + 8);
    }
    cr_assert_eq(netplay->players[0].known_end, netplay->frame + 1);
    cr_assert_gt(rollbacks[0], 10);
    cr_assert_eq(rollbacks[1], 0);
    cr_assert_gt(rollbacks[2], 10);
    cr_assert_gt(netplay->verified, 560); /* hashes of these frames were compared */
    cr_assert_eq(quern_netplay_set_input_delay(netplay, 9), QUERN_ERROR_INVALID_ARGUMENT);
    cr_assert_eq(quern_netplay_set_input_delay(NULL, 1), QUERN_ERROR_NULL_ARGUMENT);
    close_machines(machines, 2, &net);
}

Test(netplay, wrong_definitions_are_refused)
{
    runs_on_one_thread();
    network net;
    machine like;
    quern_netplay *netplay;
    const quern_netplay_def good = {.player_count = 2};
    open_network(&net, 1);
    open_machine(&like, &net, 0, &good);
    const quern_netplay_def right = like.netplay->def;
    quern_netplay_destroy(like.netplay);
    cr_assert_eq(quern_netplay_create(NULL, &netplay), QUERN_ERROR_NULL_ARGUMENT);
    cr_assert_eq(quern_netplay_create(&right, NULL), QUERN_ERROR_NULL_ARGUMENT);
    quern_netplay_def wrong[16];
    for (int i = 0; i < 16; i++)
        wrong[i] = right;
    wrong[0].player_count = 1;
    wrong[1].player_count = QUERN_MAX_NETPLAY_PLAYERS + 1;
    wrong[2].player = 2;
    wrong[3].input_bytes = 0;
    wrong[4].input_bytes = 5;
    wrong[5].input_delay = QUERN_MAX_NETPLAY_DELAY + 1;
    wrong[6].max_rollback = QUERN_MAX_NETPLAY_ROLLBACK + 1;
    wrong[7].step_seconds = 0;
    wrong[8].timeout_seconds = -1;
    wrong[9].absent = 4;
    wrong[10].absent = 3;
    wrong[11].absent = 1;
    wrong[12].reports = true;
    wrong[12].hash_interval = QUERN_MAX_NETPLAY_REPORT + 1;
    wrong[15].earlier_world = &like; /* and it joins nothing */
    wrong[13].max_input_delay = QUERN_MAX_NETPLAY_DELAY + 1;
    wrong[14].input_delay = 3;
    wrong[14].max_input_delay = 2;
    for (int i = 0; i < 16; i++)
        cr_assert_eq(quern_netplay_create(&wrong[i], &netplay), QUERN_ERROR_INVALID_ARGUMENT, "%d", i);
    cr_assert_eq(quern_netplay_advance(NULL, NULL, &(Input){0}, NULL), QUERN_ERROR_NULL_ARGUMENT);
    cr_assert_eq(quern_netplay_create(&right, &like.netplay), QUERN_OK);
    cr_assert_eq(quern_netplay_advance(like.netplay, NULL, NULL, NULL), QUERN_ERROR_NULL_ARGUMENT);
    cr_assert_eq(quern_netplay_get_status(like.netplay, NULL), QUERN_ERROR_NULL_ARGUMENT);
    cr_assert_eq(quern_netplay_get_report(like.netplay, NULL), QUERN_ERROR_NULL_ARGUMENT);
    cr_assert_eq(quern_netplay_get_report(like.netplay, &(quern_netplay_report){0}),
                 QUERN_ERROR_UNAVAILABLE);
    close_machine(&like);
    free(net.packets);
}
