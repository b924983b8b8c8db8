/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Reports of netplay: machines whose worlds differ learn in which frame, component and entity. */

#include "tests/kit/netplay_machines.h"

#include <stdio.h>
#include <string.h>

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
