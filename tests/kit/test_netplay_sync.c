/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Sync tests: a game on one machine that runs frames again, and names what differs. */

#include "tests/kit/netplay_machines.h"
#include "tests/support/failing_allocator.h"

#include <stdio.h>
#include <string.h>

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
