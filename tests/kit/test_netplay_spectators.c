/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Spectators of netplay: what they see is what the players have confirmed, and players do not notice them. */

#include "tests/kit/netplay_machines.h"
#include "tests/support/failing_allocator.h"

#include <string.h>

enum { PLAYERS = 2, SPECTATORS = 2, FRAMES = 400 };

/* Players 0 and 1, and spectators of them. */
typedef struct stage {
    network net;
    machine players[PLAYERS], spectators[SPECTATORS];
    uint32_t open_count;         /* spectators */
    quern_netplay_def def, like; /* of the players, and of spectators */
    uint64_t *hashes;            /* before each frame of a world that runs alone */
    bool plays_otherwise;        /* whether a player is dropped, so that frames are others */
} stage;

static void open_stage(stage *opened, uint64_t seed, const quern_netplay_def *like)
{
    *opened = (stage){.def = *like};
    opened->def.player_count = PLAYERS;
    opened->def.max_rollback = 6;
    opened->def.frame_count = FRAMES;
    opened->like = opened->def;
    opened->like.spectates = true;
    opened->like.spectator_count = 0;
    opened->hashes = run_alone(PLAYERS, opened->def.input_delay, FRAMES);
    open_network(&opened->net, seed);
    open_machines(opened->players, PLAYERS, &opened->net, &opened->def);
}

static machine *add_spectator(stage *opened)
{
    const uint32_t index = opened->open_count++;
    open_machine(&opened->spectators[index], &opened->net, index, &opened->like);
    return &opened->spectators[index];
}

static void close_stage(stage *closed)
{
    for (uint32_t i = 0; i < closed->open_count; i++)
        close_machine(&closed->spectators[i]);
    free(closed->hashes);
    close_machines(closed->players, PLAYERS, &closed->net);
}

/* Steps all machines for a number of ticks. No spectator may be nearer to a player than the delay, or have other worlds
 * than players have. Players whose packets are not cut must go on. Returns the number of hashes of spectators. */
static uint32_t play(stage *played, uint32_t ticks)
{
    uint32_t compared = 0;
    for (const uint64_t end = played->net.tick + ticks; played->net.tick < end; played->net.tick++) {
        uint64_t most = 0;
        for (uint32_t i = 0; i < PLAYERS; i++) {
            step_machine(&played->players[i], NULL);
            if ((played->net.cut >> i & 1) == 0)
                cr_assert_eq(played->players[i].result, QUERN_OK, "%s", quern_error_message());
            if (status_of(&played->players[i]).confirmed_frame > most)
                most = status_of(&played->players[i]).confirmed_frame;
        }
        for (uint32_t i = 0; i < played->open_count; i++) {
            machine *spectator = &played->spectators[i];
            if (spectator->result != QUERN_OK && spectator->result != QUERN_ERROR_UNAVAILABLE) continue;
            spectator->result = quern_netplay_advance(spectator->netplay, NULL, NULL, NULL);
            const quern_netplay_status status = status_of(spectator);
            if (!played->plays_otherwise) compared += compare_hashes(spectator, played->hashes, FRAMES);
            if (status.is_joining) continue;
            cr_assert_leq(status.frame, status.confirmed_frame);
            if (most < FRAMES)
                cr_assert_leq(status.confirmed_frame + played->def.spectator_delay, most,
                              "spectator %u knows more than it may", i);
        }
    }
    return compared;
}

Test(netplay_spectators, they_see_the_frames_that_players_confirm)
{
    for (uint64_t seed = 1; seed <= 8; seed++) {
        stage it;
        const uint32_t delay = seed % 2 == 0 ? 40 : 0;
        open_stage(&it, seed,
                   &(quern_netplay_def){.input_delay = (uint32_t)(seed % 3),
                                        .spectator_count = 2,
                                        .spectator_delay = delay,
                                        .key = {(uint8_t)(seed / 4)}});
        it.net.max_delay = 5;
        it.net.lost_percent = seed % 4 == 3 ? 30 : 0;
        it.net.repeated_percent = seed % 4 == 3 ? 20 : 0;
        machine *early = add_spectator(&it);
        (void)play(&it, 150);
        it.like.watches = 1;
        machine *late = add_spectator(&it);
        cr_assert_gt(play(&it, 900), 20);
        cr_assert_eq(status_of(early).frame, FRAMES);
        cr_assert_eq(status_of(late).frame, FRAMES);
        cr_assert_eq(status_of(late).watched, 1);
        cr_assert_eq(quern_world_hash(early->played.world), it.hashes[FRAMES]);
        cr_assert_eq(quern_world_hash(late->played.world), it.hashes[FRAMES]);
        cr_assert_eq(status_of(&it.players[0]).spectators, 1);
        cr_assert_eq(status_of(&it.players[1]).spectators, 2);
        close_stage(&it);
    }
}

Test(netplay_spectators, one_that_watches_late_catches_up)
{
    stage it;
    open_stage(&it, 3, &(quern_netplay_def){.spectator_count = 1, .spectator_delay = 100});
    machine *spectator = add_spectator(&it);
    (void)play(&it, 180);
    it.net.cut = 1u << spectator->player; /* while the players play on */
    (void)play(&it, 120);
    cr_assert_lt(status_of(spectator).confirmed_frame + 100,
                 status_of(&it.players[0]).confirmed_frame - 100);
    it.net.cut = 0;
    (void)play(&it, 40);
    cr_assert_gt(status_of(spectator).frame + 120, status_of(&it.players[0]).confirmed_frame);
    close_stage(&it);
}

Test(netplay_spectators, they_share_one_saved_world)
{
    stage it;
    open_stage(&it, 4, &(quern_netplay_def){.spectator_count = 2, .spectator_delay = 50});
    machine *first = add_spectator(&it);
    (void)play(&it, 20);
    machine *second = add_spectator(&it);
    (void)play(&it, 60);
    cr_assert_eq(first->netplay->loaded_frame, second->netplay->loaded_frame);
    cr_assert_eq(it.players[0].netplay->stands.world.size_bytes, 0,
                 "no spectator asks for the world any more");
    close_stage(&it);
}

Test(netplay_spectators, one_goes_on_with_the_next_player_where_it_was)
{
    stage it;
    open_stage(&it, 5, &(quern_netplay_def){.spectator_count = 1, .timeout_seconds = 0.03});
    machine *spectator = add_spectator(&it);
    (void)play(&it, 100);
    const uint32_t loaded_frame = spectator->netplay->loaded_frame;
    const uint64_t frame = status_of(spectator).frame;
    it.net.cut = 1; /* player 0 */
    it.plays_otherwise = true;
    (void)play(&it, 200);
    cr_assert_eq(spectator->result, QUERN_OK);
    cr_assert_eq(status_of(spectator).watched, 1);
    cr_assert_gt(status_of(spectator).frame, frame + 20);
    cr_assert_eq(spectator->netplay->loaded_frame, loaded_frame, "it has not loaded another world");
    const uint32_t interval = spectator->netplay->def.hash_interval;
    uint32_t compared = 0;
    for (uint32_t i = 0; i < QUERN__NETPLAY_HASHES; i++)
        for (uint32_t k = 0; k < QUERN__NETPLAY_HASHES; k++) {
            const quern__netplay_hash *a = &spectator->netplay->hashes[i];
            const quern__netplay_hash *b = &it.players[1].netplay->hashes[k];
            if (a->frame != b->frame || a->frame % interval != 0) continue;
            compared++;
            cr_assert_eq(a->hash, b->hash);
        }
    cr_assert_gt(compared, 2);
    close_stage(&it);
}

Test(netplay_spectators, one_that_was_away_for_too_long_is_told)
{
    stage it;
    open_stage(&it, 6, &(quern_netplay_def){.spectator_count = 1, .spectator_window = 30});
    machine *spectator = add_spectator(&it);
    (void)play(&it, 50);
    it.net.cut = 1u << spectator->player;
    (void)play(&it, 100);
    it.net.cut = 0;
    for (uint32_t i = 0; i < 200 && spectator->result == QUERN_OK; i++)
        (void)play(&it, 1);
    cr_assert_eq(spectator->result, QUERN_ERROR_CANCELLED);
    cr_assert_eq(quern_netplay_advance(spectator->netplay, NULL, NULL, NULL), QUERN_ERROR_CANCELLED);
    cr_assert_not_null(
        strstr(quern_error_message(), "spectator 0 cannot go on: no player keeps the inputs"));
    cr_assert_not_null(strstr(quern_error_message(), "watch again"));
    close_stage(&it);
}

/* Player 0 keeps few frames, and player 1 many. */
Test(netplay_spectators, one_that_was_away_asks_all_players_before_it_gives_up)
{
    stage it;
    open_stage(&it, 13, &(quern_netplay_def){.spectator_count = 1, .spectator_window = 30});
    close_machine(&it.players[1]);
    it.def.spectator_window = 1000;
    open_machine(&it.players[1], &it.net, 1, &it.def);
    machine *spectator = add_spectator(&it);
    (void)play(&it, 50);
    it.net.cut = 1u << spectator->player;
    (void)play(&it, 100);
    it.net.cut = 0;
    (void)play(&it, 100);
    cr_assert_eq(spectator->result, QUERN_OK, "%s", quern_error_message());
    cr_assert_eq(status_of(spectator).watched, 1);
    cr_assert_gt(status_of(spectator).frame, 200);
    close_stage(&it);
}

Test(netplay_spectators, one_that_no_player_lets_watch_is_told_and_may_go_on_asking)
{
    stage it;
    open_stage(&it, 7, &(quern_netplay_def){.spectator_count = 1, .timeout_seconds = 0.02});
    machine *spectator = add_spectator(&it);
    it.net.cut = 1u << spectator->player;
    (void)play(&it, 100);
    cr_assert_eq(spectator->result, QUERN_ERROR_UNAVAILABLE);
    cr_assert_not_null(strstr(quern_error_message(), "spectator 0 hears no machine"));
    it.net.cut = 0;
    (void)play(&it, 100);
    cr_assert_eq(spectator->result, QUERN_OK);
    cr_assert_gt(status_of(spectator).frame, 0);
    close_stage(&it);
}

Test(netplay_spectators, a_world_that_differs_is_found)
{
    stage it;
    open_stage(&it, 8, &(quern_netplay_def){.spectator_count = 1, .reports = true});
    machine *spectator = add_spectator(&it);
    (void)play(&it, 60);
    spectator->played.netplay = spectator->netplay;
    spectator->played.wrong_frame = (uint32_t)status_of(spectator).frame + 3;
    for (uint32_t i = 0; i < 60 && spectator->result == QUERN_OK; i++) {
        for (uint32_t k = 0; k < PLAYERS; k++)
            step_machine(&it.players[k], NULL);
        spectator->result = quern_netplay_advance(spectator->netplay, NULL, NULL, NULL);
        it.net.tick++;
    }
    quern_netplay_report report;
    cr_assert_eq(spectator->result, QUERN_ERROR_DIVERGED);
    cr_assert_not_null(strstr(quern_error_message(), "on the machine of player 0"));
    cr_assert_eq(quern_netplay_advance(spectator->netplay, NULL, NULL, NULL), QUERN_ERROR_DIVERGED);
    cr_assert_eq(quern_netplay_get_report(spectator->netplay, &report), QUERN_ERROR_UNAVAILABLE);
    cr_assert_eq(it.players[0].result, QUERN_OK, "players do not notice");
    close_stage(&it);
}

/* -------------------------------------------------------------------------------------------- shown */

Test(netplay_spectators, status_and_events_show_them)
{
    stage it;
    uint32_t joined = 0, dropped = 0, own = 0;
    quern_netplay_event event;
    quern_netplay_player_status status;
    open_stage(&it, 9, &(quern_netplay_def){.spectator_count = 2, .timeout_seconds = 0.05});
    (void)add_spectator(&it);
    machine *spectator = add_spectator(&it);
    (void)play(&it, 60);
    cr_assert_eq(
        quern_netplay_get_player_status(it.players[0].netplay, QUERN_NETPLAY_SPECTATOR + 1, &status),
        QUERN_OK);
    cr_assert(status.is_present);
    cr_assert_gt(status.sent_bytes, 0);
    cr_assert_gt(status.received_packets, 20);
    cr_assert_lt(status.unacknowledged_frames, 5);
    cr_assert_eq(quern_netplay_get_player_status(spectator->netplay, 0, &status), QUERN_OK);
    cr_assert_gt(status.ping_seconds, 0);
    cr_assert_eq(status.loss, 0);
    it.net.cut = 1u << spectator->player;
    (void)play(&it, 100);
    while (quern_netplay_next_event(it.players[0].netplay, &event)) {
        joined += event.kind == QUERN_NETPLAY_JOINED && event.player == QUERN_NETPLAY_SPECTATOR + 1;
        dropped += event.kind == QUERN_NETPLAY_DROPPED && event.player == QUERN_NETPLAY_SPECTATOR + 1;
    }
    while (quern_netplay_next_event(spectator->netplay, &event))
        own += event.kind == QUERN_NETPLAY_JOINED && event.player == QUERN_NETPLAY_SPECTATOR + 1;
    cr_assert_eq(joined, 1);
    cr_assert_eq(dropped, 1);
    cr_assert_eq(own, 1);
    cr_assert_eq(status_of(&it.players[0]).spectators, 1);
    cr_assert_eq(
        quern_netplay_get_player_status(it.players[0].netplay, QUERN_NETPLAY_SPECTATOR + 2, &status),
        QUERN_ERROR_INVALID_ARGUMENT);
    cr_assert_not_null(strstr(quern_error_message(), "2 spectators"));
    close_stage(&it);
}

Test(netplay_spectators, loading_shows_its_progress_on_both_machines)
{
    stage it;
    uint32_t progress_count = 0;
    float last = 0;
    bool is_shown = false; /* by the player's machine */
    quern_netplay_event event;
    open_stage(&it, 12, &(quern_netplay_def){.spectator_count = 1});
    it.plays_otherwise = true;
    for (uint32_t i = 0; i < 2000 * PLAYERS; i++) { /* for a world of some chunks */
        const game *played = &it.players[i % PLAYERS].played;
        const Shot shot = {.x = (int32_t)(i / PLAYERS * 2654435761u), .left = 10000};
        must(quern_entity_create_with(played->world, &played->shot, (const void *const[]){&shot}, 1, NULL));
    }
    (void)play(&it, 20);
    machine *spectator = add_spectator(&it);
    it.net.lost_percent = 70;
    for (uint32_t i = 0; i < 150 && status_of(spectator).is_joining; i++) {
        quern_netplay_player_status status;
        (void)play(&it, 1);
        cr_assert_eq(
            quern_netplay_get_player_status(it.players[0].netplay, QUERN_NETPLAY_SPECTATOR, &status),
            QUERN_OK);
        cr_assert(status.progress >= 0 && status.progress <= 1);
        is_shown = is_shown || status.progress > 0;
        while (quern_netplay_next_event(spectator->netplay, &event))
            if (event.kind == QUERN_NETPLAY_PROGRESS) {
                progress_count++;
                cr_assert_eq(event.player, QUERN_NETPLAY_SPECTATOR);
                cr_assert_gt(event.progress, last);
                last = event.progress;
            }
    }
    cr_assert_not(status_of(spectator).is_joining);
    cr_assert_gt(progress_count, 0);
    cr_assert(is_shown);
    close_stage(&it);
}

/* ------------------------------------------------------------------------------------- hostile and wrong */

/* A stranger that sends in the name of a spectator, and does not hear the answers, gets small answers only. */
Test(netplay_spectators, a_request_that_hears_nothing_gets_no_world)
{
    stage it;
    quern_netplay_player_status status;
    open_stage(&it, 10, &(quern_netplay_def){.spectator_count = 1});
    machine *spectator = add_spectator(&it);
    for (uint32_t i = 0; i < 200; i++) {
        for (uint32_t k = 0; k < PLAYERS; k++)
            step_machine(&it.players[k], NULL);
        spectator->result = quern_netplay_advance(spectator->netplay, NULL, NULL, NULL);
        for (uint32_t k = 0; k < it.net.count; k++)
            if (it.net.packets[k].to == spectator->player)
                it.net.packets[k] = it.net.packets[--it.net.count];
        it.net.tick++;
    }
    cr_assert_eq(quern_netplay_get_player_status(it.players[0].netplay, QUERN_NETPLAY_SPECTATOR, &status),
                 QUERN_OK);
    cr_assert_gt(status.sent_packets, 0);
    cr_assert_lt(status.sent_bytes, 64 * status.sent_packets);
    cr_assert_lt(status.sent_bytes, 2 * 60 * 200);
    cr_assert_eq(it.players[0].netplay->stands.world_id, 0, "no world was saved");
    close_stage(&it);
}

/* One that says in turn that it has the world and that it lacks it costs the players little. */
Test(netplay_spectators, a_spectator_that_asks_on_and_off_gets_few_worlds)
{
    stage it;
    uint32_t saved = 0, last = 0;
    open_stage(&it, 14, &(quern_netplay_def){.spectator_count = 1});
    machine *spectator = add_spectator(&it);
    (void)play(&it, 100);
    for (uint32_t i = 0; i < 240; i++, it.net.tick++) {
        for (uint32_t k = 0; k < PLAYERS; k++)
            step_machine(&it.players[k], NULL);
        spectator->netplay->counts.is_joining = i % 4 < 2;
        (void)quern_netplay_advance(spectator->netplay, NULL, NULL, NULL);
        const uint32_t id = it.players[0].netplay->stands.world_id;
        saved += id != last && id != 0;
        last = id;
    }
    cr_assert_geq(saved, 1);
    cr_assert_leq(saved, 5);
    close_stage(&it);
}

/* A stranger that sends in the name of the watched player does not know the numbers of the packets of the spectator. */
Test(netplay_spectators, packets_that_return_no_number_do_not_count)
{
    enum { MAGIC = 0x51, WATCHED = 7, GONE = 2 };
    stage it;
    open_stage(&it, 14, &(quern_netplay_def){.spectator_count = 1});
    machine *spectator = add_spectator(&it);
    (void)play(&it, 50);
    for (uint32_t i = 0; i < 40; i++) {
        const quern__netplay_player *player = &spectator->netplay->players[0];
        const uint32_t numbers[] = {player->life, player->sequence + 1, spectator->netplay->life, 0};
        sent_packet *packet = &it.net.packets[it.net.count++];
        unsigned char *bytes = packet->bytes;
        *packet = (sent_packet){.from = 0, .to = spectator->player, .arrival = it.net.tick};
        *bytes++ = MAGIC;
        *bytes++ = QUERN__NETPLAY_VERSION;
        *bytes++ = WATCHED;
        for (uint32_t k = 0; k < 4; k++)
            for (uint32_t b = 0; b < 5; b++)
                *bytes++ = (unsigned char)((numbers[k] >> b * 7 & 0x7f) | (b < 4 ? 0x80u : 0));
        *bytes++ = GONE;
        *bytes++ = 0;
        *bytes++ = 0;
        packet->size = (uint32_t)(bytes - packet->bytes);
        const uint32_t sum = quern__netplay_checksum(99, packet->bytes, packet->size);
        for (uint32_t k = 0; k < 4; k++)
            packet->bytes[packet->size++] = (unsigned char)(sum >> (8 * k));
        (void)play(&it, 1);
    }
    cr_assert_eq(status_of(spectator).watched, 0);
    cr_assert_eq(status_of(spectator).ignored_count, 0, "the packets have the form of a player's");
    close_stage(&it);
}

Test(netplay_spectators, damaged_and_random_packets_do_no_harm)
{
    for (uint64_t seed = 1; seed <= 4; seed++) {
        stage it;
        open_stage(&it, seed, &(quern_netplay_def){.spectator_count = 2, .spectator_delay = 10});
        it.net.damaged_percent = 40;
        it.net.max_delay = 3;
        (void)add_spectator(&it);
        (void)add_spectator(&it);
        cr_assert_gt(play(&it, 900), 20);
        for (uint32_t i = 0; i < 2; i++)
            cr_assert_gt(status_of(&it.spectators[i]).ignored_count, 20);
        close_stage(&it);
    }
}

/* Players and spectators that send random fields with right checksums. */
Test(netplay_spectators, forged_packets_do_not_crash)
{
    random_source random = {78};
    for (uint64_t seed = 1; seed <= 20; seed++) {
        stage it;
        open_stage(&it, seed, &(quern_netplay_def){.spectator_count = 2});
        (void)add_spectator(&it);
        (void)add_spectator(&it);
        (void)play(&it, (uint32_t)seed % 4);
        for (uint32_t i = 0; i < 80; i++, it.net.tick++) {
            for (uint32_t k = 0; k < PLAYERS; k++)
                step_machine(&it.players[k], NULL);
            for (uint32_t k = 0; k < SPECTATORS; k++)
                (void)quern_netplay_advance(it.spectators[k].netplay, NULL, NULL, NULL);
            sent_packet *forged = &it.net.packets[random_below(&random, it.net.count + 1)];
            if (it.net.count == 0 || forged == it.net.packets + it.net.count || forged->size < 20) continue;
            const uint32_t end = forged->size - 4;
            for (uint32_t k = 0; k < 3; k++)
                forged->bytes[2 + random_below(&random, end - 2)] = (unsigned char)random_next(&random);
            forged->bytes[2] = (unsigned char)((forged->bytes[2] & 15) | forged->from << 4);
            const uint32_t sum = quern__netplay_checksum(99, forged->bytes, end);
            for (uint32_t k = 0; k < 4; k++)
                forged->bytes[end + k] = (unsigned char)(sum >> (8 * k));
        }
        close_stage(&it);
    }
}

Test(netplay_spectators, definitions_that_cannot_be_are_refused)
{
    static const struct {
        const char *text;
        quern_netplay_def def;
    } refused[] = {
        {"spectator_count is 9", {.spectator_count = 9}},
        {"spectator_delay is 70000", {.spectator_count = 1, .spectator_delay = 70000}},
        {"spectator_window is 70000", {.spectator_count = 1, .spectator_window = 70000}},
        {"hash_interval is 60 and spectator_window 60",
         {.spectator_count = 1, .hash_interval = 60, .spectator_window = 60}},
        {"hash_interval is 5000 and spectator_window 4096", {.spectator_count = 1, .hash_interval = 5000}},
        {"player of a spectator is 8", {.spectates = true, .player = 8}},
        {"watches is 2", {.spectates = true, .watches = 2}},
        {"has joins", {.spectates = true, .joins = true}},
        {"has a spectator_count", {.spectates = true, .spectator_count = 1}},
    };
    network net;
    machine player;
    open_network(&net, 1);
    open_machine(&player, &net, 0, &(quern_netplay_def){.player_count = 2});
    for (uint32_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        quern_netplay_def def = player.netplay->def;
        quern_netplay *netplay = NULL;
        def.spectator_count = refused[i].def.spectator_count;
        def.spectator_delay = refused[i].def.spectator_delay;
        def.spectator_window = refused[i].def.spectator_window;
        if (refused[i].def.hash_interval != 0) def.hash_interval = refused[i].def.hash_interval;
        def.spectates = refused[i].def.spectates;
        def.watches = refused[i].def.watches;
        def.joins = refused[i].def.joins;
        def.player = refused[i].def.player;
        cr_assert_eq(quern_netplay_create(&def, &netplay), QUERN_ERROR_INVALID_ARGUMENT);
        cr_assert_not_null(strstr(quern_error_message(), refused[i].text), "%s", quern_error_message());
    }
    cr_assert_eq(quern_netplay_advance(player.netplay, NULL, NULL, NULL), QUERN_ERROR_NULL_ARGUMENT);
    close_machines(&player, 1, &net);
}

/* A player that has no memory for the world of a spectator says so, and plays on. */
Test(netplay_spectators, players_go_on_without_memory_for_spectators)
{
    stage it;
    failing_allocator *memory = failing_allocator_create();
    open_stage(
        &it, 11,
        &(quern_netplay_def){.spectator_count = 1, .allocator = failing_allocator_interface(memory)});
    it.like.allocator = (quern_allocator){0};
    (void)play(&it, 200); /* then a history needs memory rarely */
    const uint64_t frame = status_of(&it.players[0]).frame;
    machine *spectator = add_spectator(&it);
    uint32_t refused = 0;
    failing_allocator_fail_from(memory, 1);
    for (uint32_t i = 0; i < 100; i++, it.net.tick++) {
        for (uint32_t k = 0; k < PLAYERS; k++) {
            step_machine(&it.players[k], NULL);
            refused += it.players[k].result != QUERN_OK &&
                       strstr(quern_error_message(), "quern_world_save") != NULL;
        }
        (void)quern_netplay_advance(spectator->netplay, NULL, NULL, NULL);
    }
    cr_assert_geq(refused, 1);
    cr_assert_leq(refused, 2);
    cr_assert_gt(status_of(&it.players[0]).frame, frame + 50);
    cr_assert(status_of(spectator).is_joining);
    failing_allocator_heal(memory);
    (void)play(&it, 100);
    cr_assert_not(status_of(spectator).is_joining);
    close_stage(&it);

    /* A session that cannot be created leaves nothing. */
    machine player;
    open_network(&it.net, 1);
    open_machine(&player, &it.net, 0, &(quern_netplay_def){.player_count = 2});
    quern_netplay *netplay = NULL;
    quern_netplay_def def = player.netplay->def;
    game other = {0};
    open_game(&other, 2, true);
    def.world = other.world;
    def.schedule = other.schedule;
    def.inputs = other.inputs;
    def.spectator_count = 1;
    def.allocator = failing_allocator_interface(memory);
    quern_result result = QUERN_ERROR_OUT_OF_MEMORY;
    for (uint64_t call = 1; result != QUERN_OK; call++) {
        cr_assert_lt(call, 100);
        failing_allocator_fail_at(memory, call);
        result = quern_netplay_create(&def, &netplay);
        if (result != QUERN_OK) cr_assert_eq(result, QUERN_ERROR_OUT_OF_MEMORY);
        if (result != QUERN_OK) cr_assert_eq(failing_allocator_outstanding_bytes(memory), 0);
    }
    quern_netplay_destroy(netplay);
    close_game(&other);
    close_machines(&player, 1, &it.net);
    failing_allocator_close(memory);
}
