/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* What a game shows of a session of netplay: connections and events. Predictions by a function, and sessions with a key. */

#include "tests/kit/netplay_machines.h"

#include <stddef.h>
#include <string.h>

TestSuite(netplay_watch, .timeout = 60);

static quern_netplay_player_status connection(const machine *from, uint32_t player)
{
    quern_netplay_player_status status;
    must(quern_netplay_get_player_status(from->netplay, player, &status));
    return status;
}

static void step_all(machine *machines, uint32_t count, network *net, uint32_t ticks)
{
    for (uint32_t i = 0; i < ticks; i++, net->tick++)
        for (uint32_t k = 0; k < count; k++)
            step_machine(&machines[k], NULL);
}

/* ----------------------------------------------------------------------------------------- connections */

Test(netplay_watch, the_ping_is_that_of_the_network)
{
    static const uint32_t latencies[] = {0, 20, 60};
    for (uint32_t i = 0; i < 3; i++) {
        network net;
        machine machines[2];
        open_network(&net, 1);
        net.latency = latencies[i];
        open_machines(machines, 2, &net, &(quern_netplay_def){.player_count = 2, .max_rollback = 32});
        cr_assert_eq(connection(&machines[0], 1).ping_seconds, 0);
        step_all(machines, 2, &net, 600);
        for (uint32_t k = 0; k < 2; k++) {
            const quern_netplay_player_status status = connection(&machines[k], 1 - k);
            cr_assert_geq(status.ping_seconds, 2 * latencies[i] / 1e3);
            cr_assert_leq(status.ping_seconds, (2 * latencies[i] + 6) / 1e3);
            cr_assert_lt(status.jitter_seconds, .003);
            cr_assert_lt(status.loss, .02);
            cr_assert(status.is_present);
            cr_assert_not(status.is_interrupted);
        }
        close_machines(machines, 2, &net);
    }
}

Test(netplay_watch, lost_packets_are_counted_as_lost)
{
    for (uint32_t count = 2; count <= 4; count++) {
        network net;
        machine machines[4];
        open_network(&net, count);
        net.lost_percent = 30;
        open_machines(machines, count, &net,
                      &(quern_netplay_def){.player_count = count, .max_rollback = 30});
        step_all(machines, count, &net, 3000);
        for (uint32_t i = 1; i < count; i++) {
            cr_assert_gt(connection(&machines[0], i).loss, .15);
            cr_assert_lt(connection(&machines[0], i).loss, .45);
        }
        close_machines(machines, count, &net);
    }
}

Test(netplay_watch, bytes_are_those_of_the_session)
{
    network net;
    machine machines[3];
    open_network(&net, 4);
    net.max_delay = 5;
    open_machines(machines, 3, &net, &(quern_netplay_def){.player_count = 3});
    step_all(machines, 3, &net, 400);
    for (uint32_t i = 0; i < 3; i++) {
        uint64_t sent_bytes = 0, received_bytes = 0;
        for (uint32_t k = 0; k < 3; k++) {
            const quern_netplay_player_status status = connection(&machines[i], k);
            sent_bytes += status.sent_bytes;
            received_bytes += status.received_bytes;
            cr_assert(k == i ? status.sent_packets == 0 : status.sent_packets > 300);
            cr_assert(k == i ? status.received_packets == 0 : status.received_packets > 300);
            cr_assert_lt(status.unacknowledged_frames, 40);
        }
        cr_assert_eq(sent_bytes, status_of(&machines[i]).sent_bytes);
        cr_assert_eq(received_bytes, status_of(&machines[i]).received_bytes);
    }
    close_machines(machines, 3, &net);
}

/* ---------------------------------------------------------------------------------------------- events */

/* Appends the events of a machine to a text, each as a letter and a player. */
static void read_events(const machine *of, char *text, size_t bytes)
{
    quern_netplay_event event;
    while (quern_netplay_next_event(of->netplay, &event)) {
        cr_assert_leq(event.frame, of->netplay->frame);
        if (event.kind == QUERN_NETPLAY_PROGRESS) {
            cr_assert(event.progress > 0 && event.progress <= 1);
            continue;
        }
        cr_assert_eq(event.progress, 0);
        const size_t size = strlen(text);
        cr_assert_lt(size + 3, bytes);
        snprintf(text + size, bytes - size, "%c%u", " cirdj.x"[event.kind], (unsigned)event.player);
    }
}

Test(netplay_watch, a_silent_player_is_interrupted_and_resumed)
{
    network net;
    machine machines[2];
    char text[64] = "";
    open_network(&net, 2);
    open_machines(machines, 2, &net, &(quern_netplay_def){.player_count = 2, .timeout_seconds = .2});
    step_all(machines, 2, &net, 100);
    read_events(&machines[0], text, sizeof text);
    cr_assert_str_eq(text, "c1");
    net.silent = 2;
    step_all(machines, 2, &net, 45);
    read_events(&machines[0], text, sizeof text);
    cr_assert_str_eq(text, "c1");
    step_all(machines, 2, &net, 30);
    read_events(&machines[0], text, sizeof text);
    cr_assert_str_eq(text, "c1i1");
    cr_assert(connection(&machines[0], 1).is_interrupted);
    cr_assert_gt(connection(&machines[0], 1).silent_seconds, .05);
    net.silent = 0;
    step_all(machines, 2, &net, 60);
    read_events(&machines[0], text, sizeof text);
    cr_assert_str_eq(text, "c1i1r1");
    cr_assert_not(connection(&machines[0], 1).is_interrupted);
    close_machines(machines, 2, &net);
}

Test(netplay_watch, a_player_that_leaves_and_returns_is_dropped_and_joins)
{
    network net;
    machine machines[3];
    char first[128] = "", third[128] = "", own[128] = "";
    quern_netplay_def def = {.player_count = 3, .timeout_seconds = .03, .max_rollback = 6};
    open_network(&net, 8);
    open_machines(machines, 3, &net, &def);
    step_all(machines, 3, &net, 150);
    net.silent = 2;
    step_all(machines, 3, &net, 150);
    quern_netplay_player_status gone;
    cr_assert_eq(quern_netplay_get_player_status(machines[0].netplay, 1, &gone), QUERN_OK);
    cr_assert_not(gone.is_present);
    cr_assert_eq(gone.unacknowledged_frames, 0);
    close_machine(&machines[1]);
    def.joins = true;
    open_machine(&machines[1], &net, 1, &def);
    net.silent = 0;
    step_all(machines, 3, &net, 300);
    read_events(&machines[0], first, sizeof first);
    read_events(&machines[1], own, sizeof own);
    read_events(&machines[2], third, sizeof third);
    cr_assert_str_eq(first, "c1c2i1d1c1j1");
    cr_assert_str_eq(third, "c0c1i1d1c1j1");
    cr_assert_not_null(strstr(own, "c0"));
    cr_assert_not_null(strstr(own, "j0"));
    cr_assert_not_null(strstr(own, "j1"));
    close_machines(machines, 3, &net);
}

Test(netplay_watch, both_sides_see_how_the_world_of_a_joining_player_arrives)
{
    network net;
    machine machines[2];
    quern_netplay_def def = {.player_count = 2, .absent = 2, .max_rollback = 6, .timeout_seconds = 1};
    open_network(&net, 3);
    open_machine(&machines[0], &net, 0, &def);
    for (int32_t i = 0; i < 30000; i++)
        must(quern_entity_create_with(machines[0].played.world, &machines[0].played.shot,
                                      (const void *const[]){&(Shot){i * 7919, INT32_MAX}}, 1, NULL));
    step_all(machines, 1, &net, 20);
    def.joins = true;
    open_machine(&machines[1], &net, 1, &def);
    step_all(machines, 2, &net, 600);
    for (uint32_t i = 0; i < 2; i++) {
        quern_netplay_event event;
        float last = 0;
        uint32_t count = 0;
        bool has_joined = false;
        while (quern_netplay_next_event(machines[i].netplay, &event)) {
            has_joined = has_joined || (event.kind == QUERN_NETPLAY_JOINED && event.player == 1);
            if (event.kind != QUERN_NETPLAY_PROGRESS) continue;
            cr_assert_eq(event.player, 1);
            cr_assert_gt(event.progress, last);
            cr_assert_not(has_joined);
            last = event.progress;
            count++;
        }
        cr_assert_geq(count, 5);
        cr_assert_leq(count, 20);
        cr_assert(has_joined);
        cr_assert_eq(connection(&machines[i], 1).progress, 0);
    }
    close_machines(machines, 2, &net);
}

Test(netplay_watch, a_world_that_differs_is_an_event)
{
    network net;
    machine machines[2];
    char text[64] = "";
    open_network(&net, 5);
    open_machines(machines, 2, &net, &(quern_netplay_def){.player_count = 2});
    machines[1].played.netplay = machines[1].netplay;
    machines[1].played.wrong_frame = 33;
    for (; net.tick < 400 && machines[0].result != QUERN_ERROR_DIVERGED; net.tick++)
        for (uint32_t k = 0; k < 2; k++)
            step_machine(&machines[k], NULL);
    step_machine(&machines[0], NULL);
    read_events(&machines[0], text, sizeof text);
    cr_assert_str_eq(text, "c1x1");
    close_machines(machines, 2, &net);
}

Test(netplay_watch, the_newest_events_are_kept)
{
    network net;
    machine machines[2];
    quern_netplay_event event;
    open_network(&net, 2);
    open_machines(machines, 2, &net, &(quern_netplay_def){.player_count = 2, .timeout_seconds = 2});
    step_all(machines, 2, &net, 20);
    for (uint32_t i = 0; i < QUERN_NETPLAY_EVENTS; i++) {
        machines[0].netplay->players[1].link.is_interrupted =
            true; /* the next call shows that it is resumed */
        step_all(machines, 2, &net, 1);
    }
    uint32_t count = 0;
    while (quern_netplay_next_event(machines[0].netplay, &event)) {
        cr_assert_eq(event.kind, QUERN_NETPLAY_RESUMED);
        count++;
    }
    cr_assert_eq(count, QUERN_NETPLAY_EVENTS);
    close_machines(machines, 2, &net);
}

/* ------------------------------------------------------------------------------------------ predictions */

static void add_distance(void *user_data, uint32_t player, const void *last, uint32_t distance,
                         void *out_input)
{
    uint32_t number;
    memcpy(&number, last, sizeof number);
    cr_assert_eq(*(const uint32_t *)user_data, player);
    cr_assert_geq(distance, 1);
    number += distance;
    memcpy(out_input, &number, sizeof number);
}

static void keep_last(void *user_data, uint32_t player, const void *last, uint32_t distance,
                      void *out_input)
{
    (void)user_data, (void)player, (void)distance;
    cr_assert_eq((uintptr_t)last % _Alignof(max_align_t), 0);
    cr_assert_eq((uintptr_t)out_input % _Alignof(max_align_t), 0);
    cr_assert_eq(memcmp(last, out_input, sizeof(uint32_t)), 0);
}

typedef void prediction(void *user_data, uint32_t player, const void *last, uint32_t distance,
                        void *out_input);

/* Plays with inputs that count frames. Returns how often machines have gone back. */
static uint64_t rollbacks(prediction *predict)
{
    network net;
    machine machines[2];
    uint32_t others[2] = {1, 0};
    open_network(&net, 6);
    net.latency = 5;
    for (uint32_t i = 0; i < 2; i++) {
        quern_netplay_def def = {.player_count = 2, .max_rollback = 30, .input_bytes = sizeof(uint32_t)};
        def.predict = predict;
        def.predict_user_data = &others[i];
        open_machine(&machines[i], &net, i, &def);
    }
    for (net.tick = 0; net.tick < 300; net.tick++)
        for (uint32_t k = 0; k < 2; k++) {
            const uint32_t input = machines[k].netplay->frame + 1;
            must(quern_netplay_advance(machines[k].netplay, NULL, &input, NULL));
        }
    cr_assert_gt(status_of(&machines[0]).confirmed_frame, 200);
    const uint64_t count = status_of(&machines[0]).rollback_count + status_of(&machines[1]).rollback_count;
    close_machines(machines, 2, &net);
    return count;
}

Test(netplay_watch, a_function_predicts_what_the_last_input_does_not)
{
    cr_assert_gt(rollbacks(NULL), 100);
    /* Before the first input of the other player, zero is predicted. */
    cr_assert_leq(rollbacks(add_distance), 2);
}

Test(netplay_watch, a_function_that_writes_nothing_predicts_the_last_input)
{
    cr_assert_eq(rollbacks(keep_last), rollbacks(NULL));
}

/* ------------------------------------------------------------------------------------------------- keys */

Test(netplay_watch, the_keyed_hash_is_siphash)
{
    uint8_t key[QUERN_NETPLAY_KEY_BYTES], bytes[15];
    for (uint8_t i = 0; i < sizeof key; i++)
        key[i] = i;
    for (uint8_t i = 0; i < sizeof bytes; i++)
        bytes[i] = i;
    /* the example in the paper: the 15 bytes 00 to 0e, of which the first 8 are the number */
    cr_assert_eq(quern_netplay_keyed_hash(key, 0x0706050403020100u, bytes + 8, 7), 0xa129ca6149be45e5u);
}

/* Plays 300 ticks. Returns the least confirmed frame. */
static uint64_t play_with_keys(const char *first, const char *second, uint32_t damaged_percent)
{
    network net;
    machine machines[2];
    uint64_t least = UINT64_MAX;
    open_network(&net, 7);
    net.damaged_percent = damaged_percent;
    for (uint32_t i = 0; i < 2; i++) {
        quern_netplay_def def = {.player_count = 2, .max_rollback = 10};
        const char *key = i == 0 ? first : second;
        memcpy(def.key, key, strlen(key));
        open_machine(&machines[i], &net, i, &def);
    }
    step_all(machines, 2, &net, 300);
    for (uint32_t i = 0; i < 2; i++) {
        cr_assert_eq(machines[i].result, QUERN_OK);
        if (status_of(&machines[i]).confirmed_frame < least)
            least = status_of(&machines[i]).confirmed_frame;
    }
    const bool all_are_read = damaged_percent == 0 && strcmp(first, second) == 0;
    cr_assert_eq(status_of(&machines[0]).ignored_count == 0, all_are_read);
    close_machines(machines, 2, &net);
    return least;
}

Test(netplay_watch, machines_with_one_key_play_together)
{
    cr_assert_gt(play_with_keys("secret", "secret", 0), 200);
    cr_assert_gt(play_with_keys("secret", "secret", 20), 150);
    cr_assert_gt(play_with_keys("", "", 0), 200);
}

Test(netplay_watch, packets_of_another_key_are_ignored)
{
    cr_assert_eq(play_with_keys("secret", "secreT", 0), 0);
    cr_assert_eq(play_with_keys("secret", "", 0), 0);
}

/* --------------------------------------------------------------------------------------------- refusals */

Test(netplay_watch, wrong_arguments_are_refused)
{
    network net;
    machine machines[2];
    quern_netplay_player_status status;
    open_network(&net, 1);
    open_machines(machines, 2, &net, &(quern_netplay_def){.player_count = 2});
    quern_world *world = machines[0].played.world;
    must_refuse(NULL_ARGUMENT, world, quern_netplay_get_player_status(NULL, 0, &status));
    must_refuse(NULL_ARGUMENT, world, quern_netplay_get_player_status(machines[0].netplay, 0, NULL));
    must_refuse(INVALID_ARGUMENT, world, quern_netplay_get_player_status(machines[0].netplay, 2, &status));
    cr_assert_not(quern_netplay_next_event(NULL, &(quern_netplay_event){.frame = 0}));
    cr_assert_not(quern_netplay_next_event(machines[0].netplay, NULL));
    close_machines(machines, 2, &net);
}
