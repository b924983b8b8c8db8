/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Sync tests: a game on one machine that runs frames again, and names what differs. */

#include "tests/kit/netplay_machines.h"
#include "tests/support/failing_allocator.h"

#include <stdio.h>
#include <string.h>

/* Sync tests: a game on one machine that runs frames again, and names what differs. */

/* Writes the inputs of all players for a frame. */
static void give_inputs(void *user_data, uint64_t frame, void *inputs)
{
    const game *played = user_data;
    for (uint32_t i = 0; i < played->player_count; i++)
        ((Input *)inputs)[i] = input_of(i, (uint32_t)frame);
}

static quern_netplay_sync_def sync_def_of(game *played)
{
    return (quern_netplay_sync_def){.world = played->world,
                                    .schedule = played->schedule,
                                    .inputs = played->inputs,
                                    .step_seconds = 1.0 / 60,
                                    .frame_count = 60,
                                    .give_inputs = give_inputs,
                                    .user_data = played};
}

Test(netplay, a_sync_test_gives_the_world_of_a_plain_run)
{
    uint64_t *hashes = run_alone(3, 0, 60);
    for (uint32_t count = 0; count <= QUERN_MAX_NETPLAY_ROLLBACK; count += 4) {
        game played = {0};
        quern_replay_report report;
        failing_allocator *counting = failing_allocator_create();
        open_game(&played, 3, true);
        quern_netplay_sync_def def = sync_def_of(&played);
        def.rollback_frames = count == 4 ? 1 : count;
        def.allocator = failing_allocator_interface(counting);
        cr_assert_eq(quern_netplay_sync_test(&def, NULL, &report), QUERN_OK, "%s", quern_error_message());
        cr_assert_eq(report.frame_count, 60);
        cr_assert_eq(report.difference, QUERN_REPLAY_NONE);
        cr_assert_eq(quern_world_hash(played.world), hashes[60]);
        close_game(&played);
        failing_allocator_close(counting);
    }
    free(hashes);
}

/* Counts runs outside of the world, and lets one of them change a ship. */
typedef struct outside {
    quern_component ship;
    uint32_t run_count, wrong_run;
} outside;

static void drift(quern_context *context, const quern_view *view)
{
    outside *counted = quern_context_user_data(context);
    Ship *ships = QUERN_COLUMN(view, 0, Ship);
    if (++counted->run_count == counted->wrong_run) ships[1].x++;
}

Test(netplay, a_sync_test_names_frame_component_and_entity)
{
    enum { BACK = 4 };
    /* Frame 0 runs first, frames 1 to 3 as well, then 0 to 3 again, then 4, 1 to 4, 5, 2 to 5 and so on. */
    static const struct {
        uint32_t run, frame, frame_count;
    } wrong[] = {{1, 0, 60}, {4, 3, 60},  {5, 0, 60},  {8, 3, 60},
                 {9, 4, 60}, {10, 1, 60}, {13, 4, 60}, {4, 1, 2} /* frames 0 and 1, and again */};
    for (uint32_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        game played = {0};
        quern_replay_report report;
        char start[64];
        open_game(&played, 3, true);
        outside counted = {.ship = played.ship, .wrong_run = wrong[i].run};
        const quern_system_def system = {
            .name = "drift", .run = drift, .terms = {quern_term_write(played.ship)}, .user_data = &counted};
        cr_assert_eq(quern_schedule_add_system(played.schedule, &system, NULL), QUERN_OK);
        quern_netplay_sync_def def = sync_def_of(&played);
        def.rollback_frames = BACK;
        def.frame_count = wrong[i].frame_count;
        cr_assert_eq(quern_netplay_sync_test(&def, NULL, &report), QUERN_ERROR_DIVERGED);
        cr_assert_eq(report.difference, QUERN_REPLAY_VALUE, "%s", report.text);
        cr_assert_eq(report.frame, wrong[i].frame, "run %u: %s", wrong[i].run, report.text);
        cr_assert_eq(report.component.bits, played.ship.bits);
        cr_assert_eq(((const Ship *)quern_entity_get(played.world, report.entity, played.ship))->player, 1);
        snprintf(start, sizeof start, "quern_netplay_sync_test: in frame %u: component 'Ship' of entity",
                 wrong[i].frame);
        cr_assert_eq(strncmp(quern_error_message(), start, strlen(start)), 0, "%s", quern_error_message());
        close_game(&played);
    }
}

Test(netplay, wrong_sync_tests_are_refused)
{
    game played = {0};
    open_game(&played, 2, true);
    const uint64_t hash = quern_world_hash(played.world);
    const quern_netplay_sync_def right = sync_def_of(&played);
    quern_netplay_sync_def wrong[6];
    for (int i = 0; i < 6; i++)
        wrong[i] = right;
    wrong[0].world = NULL;
    wrong[1].schedule = NULL;
    wrong[2].frame_count = 0;
    wrong[3].rollback_frames = QUERN_MAX_NETPLAY_ROLLBACK + 1;
    wrong[4].step_seconds = 0;
    wrong[5].inputs = (quern_resource){0};
    cr_assert_eq(quern_netplay_sync_test(NULL, NULL, NULL), QUERN_ERROR_NULL_ARGUMENT);
    for (int i = 0; i < 6; i++)
        cr_assert_eq(quern_netplay_sync_test(&wrong[i], NULL, NULL),
                     i < 2   ? QUERN_ERROR_NULL_ARGUMENT
                     : i < 5 ? QUERN_ERROR_INVALID_ARGUMENT
                             : QUERN_ERROR_UNKNOWN_RESOURCE,
                     "%d: %s", i, quern_error_message());
    cr_assert_eq(quern_world_hash(played.world), hash);
    close_game(&played);
}

/* --------------------------------------------------------------------------------------------- reports */

/* Reports of netplay: machines whose worlds differ learn in which frame, component and entity. */

/* Plays until the worlds differ, and on until all machines that see a difference have a report. `wrong`: the machine
 * whose world differs, as `fault` says; UINT32_MAX: none. */
static void play_until_reports(const quern_netplay_def *def, network *net, machine *machines,
                               uint32_t wrong, const game *fault)
{
    open_machines(machines, def->player_count, net, def);
    if (wrong < def->player_count) {
        machines[wrong].played.netplay = machines[wrong].netplay;
        machines[wrong].played.wrong_frame = fault->wrong_frame;
        machines[wrong].played.is_wrong_once = fault->is_wrong_once;
    } else {
        cr_assert_eq(quern_entity_create(machines[1].played.world, &(quern_entity){0}), QUERN_OK);
    }
    for (net->tick = 0; net->tick < 600; net->tick++)
        for (uint32_t i = 0; i < def->player_count; i++)
            step_machine(&machines[i], NULL);
    for (uint32_t i = 0; i < def->player_count; i++)
        cr_assert_eq(machines[i].result, QUERN_ERROR_DIVERGED);
}

static quern_netplay_report report_of(const machine *asked)
{
    quern_netplay_report report;
    cr_assert_eq(quern_netplay_get_report(asked->netplay, &report), QUERN_OK);
    cr_assert(report.is_complete, "player %u", asked->player);
    return report;
}

Test(netplay, worlds_that_differ_are_reported)
{
    network net;
    machine machines[2];
    quern_netplay_report report;
    const quern_netplay_def def = {.player_count = 2, .max_rollback = 4};
    open_network(&net, 1);
    play_until_reports(&def, &net, machines, UINT32_MAX, NULL);
    cr_assert_eq(quern_netplay_get_report(machines[0].netplay, &report), QUERN_ERROR_UNAVAILABLE);
    close_machines(machines, 2, &net);
}

/* Replays a recording in another world, which gets the world of the report. */
static quern_result replay_elsewhere(const machine *reported, const void *recording, size_t bytes,
                                     quern_replay_report *out_report)
{
    game elsewhere = {0};
    quern_byte_buffer world = {0};
    open_game(&elsewhere, reported->played.player_count, false);
    cr_assert_eq(quern_world_save(reported->played.world, quern_sink_bytes(&world),
                                  &(quern_save_def){.schedules = {reported->played.schedule}}),
                 QUERN_OK);
    cr_assert_eq(quern_world_load(elsewhere.world, quern_source_bytes(world.bytes, world.size_bytes),
                                  &(quern_load_def){.schedules = {elsewhere.schedule}}, NULL),
                 QUERN_OK, "%s", quern_error_message());
    const quern_result result =
        quern_replay_run(elsewhere.schedule, NULL, quern_source_bytes(recording, bytes), NULL, out_report);
    quern_byte_buffer_release(&world);
    close_game(&elsewhere);
    return result;
}

Test(netplay, a_report_names_frame_component_and_entity)
{
    for (uint32_t round = 0; round < 8; round++) {
        network net;
        machine machines[3];
        quern_replay_report replayed;
        const uint32_t wrong = round % 3, frame = 40 + round * 7;
        const quern_netplay_def def = {
            .player_count = 3, .reports = true, .input_delay = round % 4, .max_rollback = 3 + round};
        open_network(&net, round);
        net.max_delay = 1 + round % 5;
        net.lost_percent = round % 2 * 20;
        net.damaged_percent = round % 3 * 5;
        play_until_reports(&def, &net, machines, wrong, &(game){.wrong_frame = frame});
        for (uint32_t i = 0; i < 3; i++) {
            const quern_netplay_report report = report_of(&machines[i]);
            cr_assert_eq(report.player == wrong, i != wrong);
            cr_assert_eq(report.frame, frame, "%s", report.text);
            cr_assert_eq(report.difference.difference, QUERN_REPLAY_VALUE);
            cr_assert_eq(report.difference.frame, frame);
            cr_assert_eq(report.difference.component.bits, machines[i].played.ship.bits);
            const Ship *ship = quern_entity_get(machines[i].played.world, report.difference.entity,
                                                machines[i].played.ship);
            cr_assert_eq(ship->player, 1);
            cr_assert_eq(report.difference.entity_count, 1);
            char start[64];
            snprintf(start, sizeof start, "in frame %u, other than on the machine of player %u: ", frame,
                     report.player);
            cr_assert_eq(strncmp(report.text, start, strlen(start)), 0, "%s", report.text);
            cr_assert_not_null(strstr(report.text, "component 'Ship' of entity"), "%s", report.text);
            /* the world is that before the frame: one recording replays there, the other one differs */
            const bool own_is_right = i != wrong;
            cr_assert_eq(
                replay_elsewhere(&machines[i], report.own_recording, report.own_recording_bytes, &replayed),
                own_is_right ? QUERN_OK : QUERN_ERROR_DIVERGED);
            cr_assert_eq(replay_elsewhere(&machines[i], report.other_recording,
                                          report.other_recording_bytes, &replayed),
                         own_is_right ? QUERN_ERROR_DIVERGED : QUERN_OK);
        }
        close_machines(machines, 3, &net);
    }
}

Test(netplay, a_report_names_what_differs_before_the_first_frame)
{
    network net;
    machine machines[2];
    const quern_netplay_def def = {.player_count = 2, .reports = true};
    open_network(&net, 1);
    play_until_reports(&def, &net, machines, UINT32_MAX, NULL);
    for (uint32_t i = 0; i < 2; i++) {
        const quern_netplay_report report = report_of(&machines[i]);
        cr_assert_eq(report.frame, 0);
        cr_assert(report.difference.is_before_first);
        cr_assert_eq(report.difference.difference,
                     i == 0 ? QUERN_REPLAY_ENTITY_MISSING : QUERN_REPLAY_ENTITY_EXTRA);
        cr_assert_eq(strncmp(report.text, "before frame 0, other", 21), 0, "%s", report.text);
    }
    close_machines(machines, 2, &net);
}

Test(netplay, a_report_says_that_a_frame_depends_on_something_outside)
{
    network net;
    machine machines[2];
    const quern_netplay_def def = {.player_count = 2, .reports = true, .input_delay = 3};
    open_network(&net, 1); /* all inputs are in time, so the frame runs once before the report */
    play_until_reports(&def, &net, machines, 1, &(game){.wrong_frame = 33, .is_wrong_once = true});
    for (uint32_t i = 0; i < 2; i++) {
        const quern_netplay_report report = report_of(&machines[i]);
        cr_assert_eq(report.difference.difference, QUERN_REPLAY_NONE);
        cr_assert_null(report.own_recording);
        cr_assert_not_null(strstr(report.text, i == 1 ? "outside of the world, on this machine"
                                                      : ", on the other machine"),
                           "%s", report.text);
    }
    close_machines(machines, 2, &net);
}

Test(netplay, a_report_survives_a_forged_recording)
{
    network net;
    machine machines[2];
    const quern_netplay_def def = {.player_count = 2, .reports = true};
    open_network(&net, 1);
    play_until_reports(&def, &net, machines, 0, &(game){.wrong_frame = 33});
    quern_netplay *netplay = machines[0].netplay;
    /* what has arrived is not a recording */
    memset(netplay->transfer.bytes.bytes, 0x5a, netplay->transfer.total_bytes);
    netplay->divergence.report = (quern_netplay_report){.player = 1};
    step_machine(&machines[0], NULL);
    const quern_netplay_report report = report_of(&machines[0]);
    cr_assert_not_null(strstr(report.text, "the report failed"), "%s", report.text);
    close_machines(machines, 2, &net);
}

/* ---------------------------------------------------------------------------------------------- forged */

/* Packets of netplay that no honest machine sends: forged ones, ones of other versions, and inputs of other players. */

Test(netplay, forged_packets_do_not_crash)
{
    random_source random = {77};
    for (uint32_t round = 0; round < 60; round++) {
        network net;
        machine machines[2];
        const quern_netplay_def def = {.player_count = 2, .timeout_seconds = round % 2 == 0 ? 0 : 0.01};
        open_network(&net, round);
        open_machines(machines, 2, &net, &def);
        for (net.tick = 0; net.tick < 60; net.tick++) {
            for (uint32_t i = 0; i < 2; i++)
                step_machine(&machines[i], NULL);
            sent_packet *forged = &net.packets[0];
            if (net.tick < 10 || net.count == 0 || forged->size < 20) continue;
            const uint32_t end = forged->size - 4;
            for (uint32_t k = 0; k < 3; k++)
                forged->bytes[2 + random_below(&random, end - 2)] = (unsigned char)random_next(&random);
            forged->bytes[2] = (unsigned char)((forged->bytes[2] & 15) | forged->from << 4);
            const uint32_t sum = quern__netplay_checksum(99, forged->bytes, end);
            for (uint32_t k = 0; k < 4; k++)
                forged->bytes[end + k] = (unsigned char)(sum >> (8 * k));
        }
        close_machines(machines, 2, &net);
    }
}

enum { PACKET_MAGIC = 0x51, PACKET_HEAD_BYTES = 23, CHUNKS = 3 };

/* Writes a packet of a kind of player 2 to player 1, as if it had heard player 1. Returns its body. The four numbers of
 * its head have five bytes each, with seven bits of the number. */
static unsigned char *forge_packet(const machine *to, sent_packet *packet, uint8_t kind,
                                   uint32_t body_bytes)
{
    const uint32_t echo[] = {7, to->netplay->players[2].sequence + 1, to->netplay->life,
                             to->netplay->sequence};
    *packet = (sent_packet){.from = 2, .to = 1, .size = PACKET_HEAD_BYTES + body_bytes + 4};
    packet->bytes[0] = PACKET_MAGIC;
    packet->bytes[1] = QUERN__NETPLAY_VERSION;
    packet->bytes[2] = (unsigned char)(kind | 2u << 4);
    for (uint32_t i = 0; i < 20; i++)
        packet->bytes[3 + i] = (unsigned char)((echo[i / 5] >> i % 5 * 7 & 0x7f) | (i % 5 < 4 ? 0x80u : 0));
    return packet->bytes + PACKET_HEAD_BYTES;
}

static void sign_packet(sent_packet *packet)
{
    const uint32_t end = packet->size - 4, sum = quern__netplay_checksum(99, packet->bytes, end);
    for (uint32_t k = 0; k < 4; k++)
        packet->bytes[end + k] = (unsigned char)(sum >> (8 * k));
}

/* A packet that announces a world of 4 GiB, of which it has nothing. */
static void announce_world(bool has_list)
{
    network net;
    machine joining;
    failing_allocator *counting = failing_allocator_create();
    const quern_netplay_def def = {
        .player_count = 3, .joins = true, .allocator = failing_allocator_interface(counting)};
    open_network(&net, 1);
    open_machine(&joining, &net, 1, &def);
    const uint64_t before = failing_allocator_outstanding_bytes(counting);
    step_machine(&joining, NULL);
    for (uint32_t i = 0; i < 3; i++) {
        sent_packet *packet = &net.packets[net.count++];
        const uint32_t chunk[] = {1, 5, UINT32_MAX,
                                  i == 0 ? 0 : 0xf0f0f0f0u}; /* transfer, frame, size, offset */
        unsigned char *body = forge_packet(&joining, packet, CHUNKS, 21 + sizeof chunk);
        body[0] = (unsigned char)has_list;
        memcpy(body + 1, chunk, sizeof chunk);
        sign_packet(packet);
        step_machine(&joining, NULL);
        cr_assert_eq(joining.result, QUERN_OK, "%s", quern_error_message());
        cr_assert_eq(status_of(&joining).ignored_count, 0);
    }
    cr_assert(joining.netplay->transfer.total_bytes == UINT32_MAX);
    cr_assert_leq(failing_allocator_outstanding_bytes(counting), before + 524288);
    close_machine(&joining);
    free(net.packets);
    failing_allocator_close(counting);
}

Test(netplay, an_announced_world_costs_no_memory)
{
    announce_world(false);
    announce_world(true);
}

/* Gives a machine a packet with a version of the protocol. */
static void step_with_version(machine *to, uint32_t from, uint32_t version)
{
    network *net = to->net;
    sent_packet *packet = &net->packets[net->count++];
    memset(forge_packet(to, packet, CHUNKS, 40), 0, 40);
    packet->from = from;
    packet->bytes[1] = (unsigned char)version;
    packet->bytes[2] = (unsigned char)(CHUNKS | from << 4);
    sign_packet(packet);
    step_machine(to, NULL);
}

Test(netplay, another_version_of_the_protocol_is_named)
{
    for (uint32_t joins = 0; joins < 2; joins++) {
        network net;
        machine own;
        const quern_netplay_def def = {.player_count = 3, .joins = joins == 1};
        open_network(&net, 1);
        open_machine(&own, &net, 1, &def);
        step_with_version(&own, 2, 2);
        cr_assert_eq(own.result, QUERN_ERROR_UNAVAILABLE);
        cr_assert_not_null(strstr(quern_error_message(), "the machine of player 2 has version 2"), "%s",
                           quern_error_message());
        /* A machine that joins needs one other machine with its version, and a player all of them. */
        step_with_version(&own, 0, QUERN__NETPLAY_VERSION);
        cr_assert_eq(own.result, joins == 1 ? QUERN_OK : QUERN_ERROR_UNAVAILABLE);
        step_with_version(&own, 2, QUERN__NETPLAY_VERSION);
        cr_assert_eq(own.result, QUERN_OK);
        step_with_version(&own, 2, 2); /* a packet of a stranger, after the right one */
        cr_assert_eq(own.result, QUERN_OK);
        close_machines(&own, 1, &net);
    }
}

/* Puts a packet on its way as if a machine that plays from the start had sent it. Returns its body. */
static unsigned char *forge_as_player(const machine *to, sent_packet *packet, uint32_t from, uint8_t kind,
                                      uint32_t body_bytes)
{
    unsigned char *body = forge_packet(to, packet, kind, body_bytes);
    const uint32_t sequence = to->netplay->players[from].sequence + 1;
    packet->from = from;
    packet->to = to->player;
    packet->bytes[2] = (unsigned char)(kind | from << 4);
    packet->bytes[3] = 0x81; /* the life of a machine that plays from the start */
    for (uint32_t i = 0; i < 5; i++) {
        if (i > 0) packet->bytes[3 + i] = i < 4 ? 0x80 : 0;
        packet->bytes[8 + i] = (unsigned char)((sequence >> i * 7 & 0x7f) | (i < 4 ? 0x80u : 0));
    }
    memset(body, 0, body_bytes);
    return body;
}

/* Player 0 proposes with the highest ballot, and is gone: the others must be able to propose to drop it. */
Test(netplay, an_absurd_ballot_ends_no_agreement)
{
    network net;
    machine machines[3];
    const quern_netplay_def def = {.player_count = 3, .timeout_seconds = 0.03};
    open_network(&net, 1);
    open_machines(machines, 3, &net, &def);
    for (net.tick = 0; net.tick < 400; net.tick++) {
        for (uint32_t i = 1; i < 3 && net.tick == 100; i++) {
            sent_packet *packet = &net.packets[net.count++];
            unsigned char *body = forge_as_player(&machines[i], packet, 0, 5, 9);
            memcpy(body, &machines[i].netplay->table.id, 4);
            body[4] = QUERN__NETPLAY_PROPOSE;
            memset(body + 5, 0xff, 4);
            sign_packet(packet);
        }
        for (uint32_t i = net.tick < 100 ? 0 : 1; i < 3; i++)
            step_machine(&machines[i], NULL);
    }
    for (uint32_t i = 1; i < 3; i++) {
        cr_assert_eq(status_of(&machines[i]).present, 6);
        cr_assert_gt(machines[i].netplay->verified, 250);
    }
    close_machines(machines, 3, &net);
}

/* Player 2 sends an input of player 0, which takes part. */
Test(netplay, a_player_cannot_give_inputs_of_another)
{
    network net;
    machine machines[3];
    const quern_netplay_def def = {.player_count = 3};
    open_network(&net, 1);
    open_machines(machines, 3, &net, &def);
    for (net.tick = 0; net.tick < 50; net.tick++)
        for (uint32_t i = 0; i < 3; i++)
            step_machine(&machines[i], NULL);
    for (uint32_t player = 0; player <= 2; player += 2) {
        quern_netplay *netplay = machines[1].netplay;
        const uint32_t known = netplay->players[player].known_end;
        sent_packet *packet = &net.packets[net.count = 0];
        unsigned char *body = forge_as_player(&machines[1], packet, 2, 1, 13);
        memcpy(body + 1, &netplay->table.id, 4);
        body[5] = (unsigned char)known; /* next frame of the sender */
        body[6] = 128;
        body[7] = 0;
        body[8] = (unsigned char)(1u << 3 | player); /* one input, of that frame */
        body[9] = 0;
        body[10] = 2; /* the first byte differs from zero */
        body[11] = 2;
        packet->size -= 1;
        net.count = 1;
        sign_packet(packet);
        step_machine(&machines[1], NULL);
        cr_assert_eq(machines[1].result, QUERN_OK);
        cr_assert_eq(netplay->players[player].known_end, player == 2 ? known + 1 : known);
    }
    close_machines(machines, 3, &net);
}

/* The machine of player 1 sends other inputs to player 2 than to player 0. */
Test(netplay, a_player_that_sends_different_inputs_is_named)
{
    network net;
    machine machines[3];
    const quern_netplay_def def = {.player_count = 3};
    char messages[3][512] = {{0}};
    open_network(&net, 1);
    open_machines(machines, 3, &net, &def);
    for (net.tick = 0; net.tick < 100; net.tick++)
        for (uint32_t i = 0; i < 3; i++) {
            const bool lies = i == 1 && net.tick >= 50;
            net.liar = lies ? i + 1 : 0;
            step_machine(&machines[i], NULL);
            if (lies) change_inputs(&machines[i]);
            if (machines[i].result != QUERN_OK && messages[i][0] == '\0')
                snprintf(messages[i], sizeof messages[i], "%s", quern_error_message());
        }
    for (uint32_t i = 0; i < 3; i += 2)
        cr_assert_not_null(strstr(messages[i], "player 1 has sent other inputs"), "%u: %s", i, messages[i]);
    close_machines(machines, 3, &net);
}
