/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Rollback: a game of two players on two machines (peers), here in one process. A peer does not wait for
 * the input of the other player: it guesses that the input has not changed, and runs the frame. After a
 * wrong guess, it restores that frame and runs the frames since then again. The channel between the peers
 * loses, delays and reorders packets. docs/replays.md explains it.
 *
 * usage: rollback [THREADS] */
#include <quern/quern.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { PLAYERS = 2, FRAMES = 300, FRAMES_AHEAD = 8, DELAY = 6, LOST_PERCENT = 25, BULLET_FRAMES = 40 };

static const double frame_seconds = 1.0 / 60.0;

static void check(quern_result result)
{
    if (result == QUERN_OK) return;
    fprintf(stderr, "%s: %s\n", quern_result_string(result), quern_error_message());
    exit(EXIT_FAILURE);
}

/* ---------------------------------------------------------------------------------------- the game */

typedef struct Input {
    int32_t steer; /* -1, 0 or 1 */
    bool fires;
} Input;

/* The inputs of all players in one frame: a resource that systems read. */
typedef struct Inputs {
    int32_t steer[PLAYERS];
    bool fires[PLAYERS];
} Inputs;

typedef struct Place {
    float x, y;
} Place;

typedef struct Motion {
    float x, y;
} Motion;

typedef struct Ship {
    int32_t player;
} Ship;

typedef struct Bullet {
    int32_t frames_left;
} Bullet;

typedef struct Game {
    quern_world *world;
    quern_schedule *schedule;
    quern_component place, motion, ship, bullet;
    quern_resource inputs;
} Game;

static void steer(quern_context *context, const quern_view *view)
{
    const Game *game = quern_context_user_data(context);
    const Inputs *inputs = quern_context_resource(context, game->inputs);
    const Ship *ships = QUERN_COLUMN(view, 0, const Ship);
    Motion *motions = QUERN_COLUMN(view, 1, Motion);
    const uint32_t count = view->count;
    for (uint32_t i = 0; i < count; i++)
        motions[i].x += 0.1f * (float)inputs->steer[ships[i].player];
}

static void fire(quern_context *context, const quern_view *view)
{
    const Game *game = quern_context_user_data(context);
    const Inputs *inputs = quern_context_resource(context, game->inputs);
    const Ship *ships = QUERN_COLUMN(view, 0, const Ship);
    const Place *places = QUERN_COLUMN(view, 1, const Place);
    const uint32_t count = view->count;
    for (uint32_t i = 0; i < count; i++) {
        const Motion motion = {0, ships[i].player == 0 ? 2 : -2};
        const Bullet bullet = {BULLET_FRAMES};
        if (!inputs->fires[ships[i].player]) continue;
        const quern_component components[] = {game->place, game->motion, game->bullet};
        const void *values[] = {&places[i], &motion, &bullet};
        QUERN_MUST(
            quern_commands_create_with(quern_context_commands(context), components, values, 3, NULL));
    }
}

static void move(quern_context *context, const quern_view *view)
{
    const float seconds = (float)quern_context_delta_seconds(context);
    Place *places = QUERN_COLUMN(view, 0, Place);
    const Motion *motions = QUERN_COLUMN(view, 1, const Motion);
    const uint32_t count = view->count;
    for (uint32_t i = 0; i < count; i++) {
        places[i].x += motions[i].x * seconds;
        places[i].y += motions[i].y * seconds;
    }
}

static void fade(quern_context *context, const quern_view *view)
{
    Bullet *bullets = QUERN_COLUMN(view, 0, Bullet);
    const uint32_t count = view->count;
    for (uint32_t i = 0; i < count; i++)
        if (--bullets[i].frames_left == 0)
            check(quern_commands_destroy(quern_context_commands(context), view->entities[i]));
}

static void add_systems(Game *game)
{
    const quern_schedule_def def = {.phases = {"act", "move"}};
    const quern_system_def systems[] = {
        {.name = "steer",
         .run = steer,
         .terms = {quern_term_read(game->ship), quern_term_write(game->motion)},
         .resources = {{game->inputs, QUERN_ACCESS_READ}},
         .user_data = game},
        {.name = "fire",
         .run = fire,
         .terms = {quern_term_read(game->ship), quern_term_read(game->place)},
         .resources = {{game->inputs, QUERN_ACCESS_READ}},
         .user_data = game},
        {.name = "move",
         .phase = 1,
         .run = move,
         .terms = {quern_term_write(game->place), quern_term_read(game->motion)}},
        {.name = "fade", .phase = 1, .run = fade, .terms = {quern_term_write(game->bullet)}},
    };
    check(quern_schedule_create(game->world, &def, &game->schedule));
    for (uint32_t i = 0; i < sizeof systems / sizeof systems[0]; i++)
        check(quern_schedule_add_system(game->schedule, &systems[i], NULL));
}

/* Creates a game. The game must not move, because systems have its address as user data. */
static void game_open(Game *game)
{
    check(quern_world_create(NULL, &game->world));
    check(QUERN_COMPONENT_REGISTER_FIELDS(game->world, &game->place, Place, x, y));
    check(QUERN_COMPONENT_REGISTER_FIELDS(game->world, &game->motion, Motion, x, y));
    check(QUERN_COMPONENT_REGISTER_FIELDS(game->world, &game->ship, Ship, player));
    check(QUERN_COMPONENT_REGISTER_FIELDS(game->world, &game->bullet, Bullet, frames_left));
    check(QUERN_RESOURCE_REGISTER_FIELDS(game->world, &game->inputs, Inputs, steer, fires));
    for (int32_t player = 0; player < PLAYERS; player++) {
        const Place place = {0, player == 0 ? -10 : 10};
        const Motion motion = {0, 0};
        const Ship ship = {player};
        const quern_component components[] = {game->place, game->motion, game->ship};
        const void *values[] = {&place, &motion, &ship};
        check(quern_entity_create_with(game->world, components, values, 3, NULL));
    }
    add_systems(game);
}

static void game_close(Game *game)
{
    quern_schedule_destroy(game->schedule);
    quern_world_destroy(game->world);
}

static void game_step(Game *game, quern_jobs *jobs, const Input *players)
{
    Inputs *inputs = quern_resource_get(game->world, game->inputs);
    for (uint32_t player = 0; player < PLAYERS; player++) {
        inputs->steer[player] = players[player].steer;
        inputs->fires[player] = players[player].fires;
    }
    check(quern_schedule_run(game->schedule, jobs, frame_seconds));
}

static uint32_t random_below(uint64_t seed, uint32_t limit)
{
    seed = (seed ^ seed >> 30) * 0xBF58476D1CE4E5B9ull;
    seed = (seed ^ seed >> 27) * 0x94D049BB133111EBull;
    return (uint32_t)(seed >> 33) % limit;
}

/* Returns what a player does in a frame: a function of both, which changes every few frames. */
static Input player_input(uint32_t player, uint32_t frame)
{
    const uint64_t seed = (uint64_t)(frame / 7 + 1) * PLAYERS + player;
    return (Input){.steer = (int32_t)random_below(seed, 3) - 1,
                   .fires = random_below(seed + 1000, 3) == 0 && frame % 7 == 0};
}

/* ------------------------------------------------------------------------------------- the channel */

/* The latest inputs of a player. Packets repeat inputs until they are acknowledged, so a lost packet
 * does not matter. Ranges of frames exclude their end. */
typedef struct Packet {
    uint32_t to, arrival; /* receiving peer, and tick of arrival */
    uint32_t end;         /* end of the frames in this packet */
    uint32_t known_end;   /* acknowledgement: the sender has the receiver's inputs up to this frame */
    Input inputs[2 * FRAMES_AHEAD]; /* inputs of the frames from end - count to end */
    uint32_t count;
} Packet;

typedef struct Channel {
    Packet packets[2 * DELAY * PLAYERS];
    uint32_t count;
    uint32_t sent_count, lost_count;
} Channel;

static void channel_send(Channel *channel, const Packet *packet)
{
    const uint32_t number = channel->sent_count++;
    if (random_below(number * 977u + 5, 100) < LOST_PERCENT) {
        channel->lost_count++;
        return;
    }
    Packet *sent = &channel->packets[channel->count++];
    *sent = *packet;
    sent->arrival += 1 + random_below(number * 131u + 7, DELAY);
}

/* Takes a packet for the peer that has arrived by this tick, in no particular order. Returns false if
 * there is none. */
static bool channel_receive(Channel *channel, uint32_t to, uint32_t tick, Packet *out_packet)
{
    for (uint32_t i = 0; i < channel->count; i++) {
        if (channel->packets[i].to != to || channel->packets[i].arrival > tick) continue;
        *out_packet = channel->packets[i];
        channel->packets[i] = channel->packets[--channel->count];
        return true;
    }
    return false;
}

/* ---------------------------------------------------------------------------------------- the peer */

typedef struct Peer {
    Game game;
    quern_history *history;
    uint32_t player;
    uint32_t frame;                /* the next frame to run */
    uint32_t known_end;            /* first frame for which the other player's input is guessed */
    uint32_t acknowledged_end;     /* the other peer has this player's inputs up to this frame */
    Input inputs[FRAMES][PLAYERS]; /* inputs of the frames, known or guessed */
    uint32_t rollback_count, rerun_count;
} Peer;

static void peer_open(Peer *peer, uint32_t player)
{
    *peer = (Peer){.player = player};
    game_open(&peer->game);
    const quern_history_def def = {.schedules = {peer->game.schedule}, .frame_count = FRAMES_AHEAD + 1};
    check(quern_history_create(peer->game.world, &def, &peer->history));
}

static void peer_close(Peer *peer)
{
    quern_history_destroy(peer->history);
    game_close(&peer->game);
}

static void peer_step(Peer *peer, quern_jobs *jobs)
{
    const uint32_t frame = peer->frame++, other = 1 - peer->player;
    Input *inputs = peer->inputs[frame];
    if (frame >= peer->known_end) /* guess that the other player's input has not changed */
        inputs[other] = peer->known_end > 0 ? peer->inputs[peer->known_end - 1][other] : (Input){0, false};
    inputs[other].fires &= frame < peer->known_end;
    check(quern_history_save(peer->history, frame, jobs));
    game_step(&peer->game, jobs, inputs);
}

/* Restores the first frame with a wrong guess, and runs all frames since then again. */
static void peer_roll_back(Peer *peer, uint32_t first_wrong, quern_jobs *jobs)
{
    const uint32_t end = peer->frame;
    check(quern_history_restore(peer->history, first_wrong, jobs));
    peer->rollback_count++;
    peer->rerun_count += end - first_wrong;
    for (peer->frame = first_wrong; peer->frame < end;)
        peer_step(peer, jobs);
}

static void peer_send(const Peer *peer, uint32_t tick, Channel *channel)
{
    Packet packet = {.to = 1 - peer->player, .arrival = tick, .end = peer->frame};
    packet.known_end = peer->known_end;
    packet.count = peer->frame - peer->acknowledged_end;
    for (uint32_t i = 0; i < packet.count; i++)
        packet.inputs[i] = peer->inputs[peer->acknowledged_end + i][peer->player];
    channel_send(channel, &packet);
}

/* Stores the inputs of a packet. Returns the first frame that was run with a wrong guess; peer->frame if
 * there is none. */
static uint32_t peer_store_inputs(Peer *peer, const Packet *packet)
{
    const uint32_t other = 1 - peer->player;
    uint32_t first_wrong = peer->frame;
    if (packet->known_end > peer->acknowledged_end) peer->acknowledged_end = packet->known_end;
    for (uint32_t i = 0; i < packet->count; i++) {
        const uint32_t frame = packet->end - packet->count + i;
        if (frame != peer->known_end) continue; /* known already */
        const Input guess = peer->inputs[frame][other], real = packet->inputs[i];
        const bool is_wrong = guess.steer != real.steer || guess.fires != real.fires;
        peer->inputs[frame][other] = real;
        peer->known_end++;
        if (is_wrong && frame < first_wrong) first_wrong = frame;
    }
    return first_wrong;
}

static void peer_tick(Peer *peer, uint32_t tick, Channel *channel, quern_jobs *jobs)
{
    Packet packet;
    uint32_t first_wrong = peer->frame;
    while (channel_receive(channel, peer->player, tick, &packet)) {
        const uint32_t wrong = peer_store_inputs(peer, &packet);
        if (wrong < first_wrong) first_wrong = wrong;
    }
    if (first_wrong < peer->frame) peer_roll_back(peer, first_wrong, jobs);
    /* A peer that is too far ahead waits, because the history has no older frames to restore. */
    if (peer->frame < FRAMES && peer->frame < peer->known_end + FRAMES_AHEAD) {
        peer->inputs[peer->frame][peer->player] = player_input(peer->player, peer->frame);
        peer_step(peer, jobs);
    }
    peer_send(peer, tick, channel);
}

/* -------------------------------------------------------------------------------------------- main */

/* Runs the game with known inputs only, as if there were no delay. Returns the hash of its world. */
static uint64_t run_without_channel(quern_jobs *jobs)
{
    Game game;
    game_open(&game);
    for (uint32_t frame = 0; frame < FRAMES; frame++)
        game_step(&game, jobs, (Input[]){player_input(0, frame), player_input(1, frame)});
    const uint64_t hash = quern_world_hash(game.world);
    game_close(&game);
    return hash;
}

int main(int argc, char **argv)
{
    static Peer peers[PLAYERS];
    static Channel channel;
    quern_jobs *jobs;
    const uint32_t thread_count = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 1;
    check(quern_jobs_create(&(quern_jobs_def){.thread_count = thread_count}, &jobs));
    for (uint32_t player = 0; player < PLAYERS; player++)
        peer_open(&peers[player], player);
    for (uint32_t tick = 0; peers[0].known_end < FRAMES || peers[1].known_end < FRAMES; tick++)
        for (uint32_t player = 0; player < PLAYERS; player++)
            peer_tick(&peers[player], tick, &channel, jobs);
    const uint64_t expected = run_without_channel(jobs);
    bool agrees = true;
    printf("%u packets, %u of them lost\n", channel.sent_count, channel.lost_count);
    for (uint32_t player = 0; player < PLAYERS; player++) {
        const Peer *peer = &peers[player];
        const uint64_t hash = quern_world_hash(peer->game.world);
        printf("player %u: %u frames, %u times back, %u frames run again, world hash 0x%016" PRIx64 "\n",
               player, peer->frame, peer->rollback_count, peer->rerun_count, hash);
        agrees &= hash == expected;
    }
    printf("all inputs in time: world hash 0x%016" PRIx64 "\n", expected);
    for (uint32_t player = 0; player < PLAYERS; player++)
        peer_close(&peers[player]);
    quern_jobs_destroy(jobs);
    return agrees ? EXIT_SUCCESS : EXIT_FAILURE;
}
