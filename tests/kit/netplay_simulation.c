/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* The game has ships that inputs steer, shots, and entities that only make the world larger. Machines call
 * quern_netplay_advance 60 times per second of their own clocks; packets arrive by a heap of arrival times.
 *
 * Spectators open, watch a player at random, may be closed once, and open again when they are told to.
 *
 * A game fails if a call returns another error than a player may get, if a hash of a confirmed frame changes or differs
 * between machines that play together at the end, if the players do not play together some time after the last
 * disturbance with the spectators close behind, or if a session needs more memory or packets than its definition explains. */
#include "tests/kit/netplay_simulation.h"

#include "kit/netplay_internal.h"
#include "tests/support/random.h"
#include "tests/support/setup.h"

#include <quern/quern.h>

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    PLAYERS = SIMULATION_PLAYERS,
    MACHINES = PLAYERS + SIMULATION_SPECTATORS, /* the transport knows spectator i as PLAYERS + i */
    MS = 1000000,
    STEP_NS = 16666667,
    QUEUE_PACKETS = 4096, /* per receiver; a full one loses packets, as a socket does */
    PACKET_KIND_AT = 2,
    OLD_PACKETS = 32, /* kept for repeats, per receiver */
    HASH_INTERVAL = 4,
    HASHES = 4096, /* noted for each player, by frame */
    TABLES = 1024, /* noted, by epoch */
    COMPARED_FRAMES = 60
};

/* ------------------------------------------------------------------------------------------ the game */

typedef struct ship_input {
    int16_t steer;
    uint8_t fires, padding;
} ship_input;

typedef struct sim_ship {
    int32_t player, x;
} sim_ship;

typedef struct sim_shot {
    int32_t x, left;
} sim_shot;

/* A component that no system writes. */
typedef struct sim_rock {
    uint32_t kinds[4];
} sim_rock;

typedef struct sim_game {
    quern_world *world;
    quern_schedule *schedule;
    quern_component ship, shot, rock;
    quern_resource inputs;
} sim_game;

static void steer(quern_context *context, const quern_view *view)
{
    const sim_game *game = quern_context_user_data(context);
    const ship_input *inputs = quern_context_resource(context, game->inputs);
    sim_ship *ships = QUERN_COLUMN(view, 0, sim_ship);
    for (uint32_t end = view->count, i = 0; i < end; i++) {
        const ship_input *input = &inputs[ships[i].player];
        ships[i].x = (int32_t)((uint32_t)ships[i].x * 5 + (uint32_t)input->steer);
        if (!input->fires) continue;
        const sim_shot shot = {ships[i].x, 7};
        QUERN_MUST(quern_commands_create_with(quern_context_commands(context), &game->shot,
                                              (const void *const[]){&shot}, 1, NULL));
    }
}

static void fly(quern_context *context, const quern_view *view)
{
    sim_shot *shots = QUERN_COLUMN(view, 0, sim_shot);
    for (uint32_t end = view->count, i = 0; i < end; i++) {
        shots[i].x ^= (int32_t)view->entities[i].bits;
        if (--shots[i].left == 0)
            quern_commands_destroy(quern_context_commands(context), view->entities[i]);
    }
}

static void open_game(sim_game *game, const simulation_plan *plan, bool has_entities)
{
    const quern_resource_def inputs = {.name = "inputs",
                                       .size_bytes = plan->player_count * (uint32_t)sizeof(ship_input),
                                       .alignment_bytes = 2};
    QUERN_MUST(quern_world_create(NULL, &game->world));
    QUERN_MUST(QUERN_COMPONENT_REGISTER(game->world, &game->ship, sim_ship));
    QUERN_MUST(QUERN_COMPONENT_REGISTER(game->world, &game->shot, sim_shot));
    QUERN_MUST(QUERN_COMPONENT_REGISTER(game->world, &game->rock, sim_rock));
    QUERN_MUST(quern_resource_register(game->world, &inputs, &game->inputs));
    QUERN_MUST(quern_schedule_create(game->world, NULL, &game->schedule));
    const quern_system_def systems[] = {
        {.name = "steer",
         .run = steer,
         .terms = {quern_term_write(game->ship)},
         .resources = {{game->inputs, QUERN_ACCESS_READ}},
         .user_data = game},
        {.name = "fly", .run = fly, .terms = {quern_term_write(game->shot)}}};
    for (int i = 0; i < 2; i++)
        QUERN_MUST(quern_schedule_add_system(game->schedule, &systems[i], NULL));
    for (uint32_t i = 0; i < plan->player_count && has_entities; i++) {
        const sim_ship ship = {(int32_t)i, (int32_t)i};
        QUERN_MUST(
            quern_entity_create_with(game->world, &game->ship, (const void *const[]){&ship}, 1, NULL));
    }
    for (uint32_t i = 0; i < plan->entity_count && has_entities; i++) {
        const sim_shot shot = {(int32_t)(i * 2654435761u), INT32_MAX};
        const sim_rock rock = {{i, i / 7, i * 2246822519u, 1}};
        /* some of them are still */
        const quern_component types[] = {game->rock, game->shot};
        QUERN_MUST(quern_entity_create_with(game->world, types, (const void *const[]){&rock, &shot},
                                            1 + (i % 4 == 0), NULL));
    }
}

/* The input that a player gives while `frame` is its next frame. It stays the same for some frames. */
static ship_input input_of(uint32_t player, uint32_t frame)
{
    random_source random = {(frame / 6 + 1) * 977u + player * 31u};
    return (ship_input){.steer = (int16_t)(1 + random_below(&random, 3)),
                        .fires = random_below(&random, 4) == 0};
}

/* -------------------------------------------------------------------------------------- the machines */

typedef struct sim_packet {
    uint64_t arrival_ns, number; /* number: in the order of sending, so that equal arrivals keep it */
    uint32_t from, size;
    unsigned char bytes[QUERN_NETPLAY_PACKET_BYTES];
} sim_packet;

typedef struct noted_hash {
    uint32_t frame; /* + 1; 0: none */
    uint64_t hash;
} noted_hash;

typedef struct simulation simulation;

typedef struct sim_machine {
    simulation *in;
    uint32_t player;
    bool is_open, is_waiting_for_majority;
    sim_game game;
    quern_netplay *netplay;
    uint64_t next_ns, opens_at_ns; /* next call; when a closed machine joins, UINT64_MAX: never */
    uint64_t clock_ns;             /* added to the clock of the machine */
    uint64_t bytes, sent_in_call;
    noted_hash *hashes;        /* of this life, HASHES */
    uint32_t loaded_frame;     /* of the last life */
    quern_byte_buffer earlier; /* the world that an earlier machine of the player had; empty: none */
    bool has_counted_load;
    sim_packet *queue[QUEUE_PACKETS];
    uint32_t queue_count;
    sim_packet *old[OLD_PACKETS];
    uint64_t old_count;
    uint32_t dies_after_calls; /* calls of others' joins; 0: no */
} sim_machine;

struct simulation {
    const simulation_plan *plan;
    simulation_result *result;
    uint64_t now_ns, next_number;
    random_source random;
    random_source keeping; /* so that games with and without earlier worlds have the same network */
    sim_machine machines[MACHINES];
    uint64_t event_ends_ns[SIMULATION_EVENTS]; /* 0: not begun */
    bool is_done[SIMULATION_EVENTS], are_closed[SIMULATION_SPECTATORS];
    uint32_t enabled;
    uint64_t last_trouble_ns; /* end of the last disturbance */
    bool has_lost_player;     /* whether a player is gone for ever */
    bool is_healthy;
    uint32_t broken;    /* players that send absurd fields, now or before: bit i for player i */
    bool has_been_told; /* whether a player has been told which player errs, or that two differ too early */
    bool
        has_lost_frames; /* whether confirmed frames may be gone: with the last machine that had them, or with half of the players */
    bool has_lost_world;     /* whether the last machine with a world was one that erred, and ended */
    uint32_t tables[TABLES]; /* ids by epoch; 0: none yet */
};

__attribute__((format(printf, 2, 3))) static void fail(simulation *it, const char *format, ...)
{
    char text[SIMULATION_TEXT_BYTES - 32];
    va_list arguments;
    va_start(arguments, format);
    /* NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized): clang-tidy 14 loses va_start here */
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (it->result->has_failed) return; /* the first failure counts */
    it->result->has_failed = true;
    snprintf(it->result->failure, sizeof it->result->failure, "%llu ms: %s",
             (unsigned long long)(it->now_ns / MS), text);
}

static void *count_allocate(void *user_data, size_t size, size_t alignment)
{
    sim_machine *machine = user_data;
    (void)alignment;
    machine->bytes += size;
    if (machine->bytes > machine->in->result->most_bytes) machine->in->result->most_bytes = machine->bytes;
    return malloc(size);
}

static void count_release(void *user_data, void *pointer, size_t size, size_t alignment)
{
    sim_machine *machine = user_data;
    (void)alignment;
    machine->bytes -= size;
    free(pointer);
}

/* ----------------------------------------------------------------------------------------- the network */

static bool comes_before(const sim_packet *a, const sim_packet *b)
{
    return a->arrival_ns != b->arrival_ns ? a->arrival_ns < b->arrival_ns : a->number < b->number;
}

static void push(sim_machine *to, sim_packet *packet)
{
    uint32_t at = to->queue_count++;
    while (at > 0 && comes_before(packet, to->queue[(at - 1) / 2])) {
        to->queue[at] = to->queue[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    to->queue[at] = packet;
}

static sim_packet *pop(sim_machine *to)
{
    sim_packet *first = to->queue[0], *last = to->queue[--to->queue_count];
    uint32_t at = 0;
    for (;;) {
        uint32_t child = 2 * at + 1;
        if (child >= to->queue_count) break;
        if (child + 1 < to->queue_count && comes_before(to->queue[child + 1], to->queue[child])) child++;
        if (comes_before(last, to->queue[child])) break;
        to->queue[at] = to->queue[child];
        at = child;
    }
    if (to->queue_count > 0) to->queue[at] = last;
    return first;
}

static bool is_active(const simulation *it, uint32_t event)
{
    return it->event_ends_ns[event] > it->now_ns;
}

/* Returns what the events do to a packet: whether it is lost, and by how much it is late. */
static bool is_lost(simulation *it, uint32_t from, uint32_t to, uint64_t *out_late_ns)
{
    *out_late_ns = 0;
    for (uint32_t i = 0; i < it->plan->event_count; i++) {
        const simulation_event *event = &it->plan->events[i];
        if (!is_active(it, i)) continue;
        if (event->kind == SIMULATION_CUT && event->player == from && event->other == to) return true;
        if (event->kind == SIMULATION_SPLIT && (event->mask >> from & 1) != (event->mask >> to & 1))
            return true;
        if (event->kind == SIMULATION_BURST && random_chance(&it->random, 85)) return true;
        if (event->kind == SIMULATION_SLOW) *out_late_ns += (uint64_t)event->mask * MS;
    }
    return random_below(&it->random, 1000) < it->plan->lost_permille;
}

static void deliver(simulation *it, uint32_t from, uint32_t to, const void *bytes, uint32_t size,
                    uint64_t late_ns)
{
    sim_machine *receiver = &it->machines[to];
    if (receiver->queue_count == QUEUE_PACKETS) return;
    sim_packet *packet = malloc(sizeof *packet);
    packet->arrival_ns =
        it->now_ns + late_ns + (uint64_t)it->plan->latency_ms * MS + 100000 +
        (it->plan->jitter_ms > 0 ? random_below(&it->random, it->plan->jitter_ms * 1000) * 1000ull : 0);
    packet->number = it->next_number++;
    packet->from = from;
    packet->size = size;
    memcpy(packet->bytes, bytes, size);
    if (size > 1 && random_below(&it->random, 1000) < it->plan->damaged_permille) {
        if (random_chance(&it->random, 50))
            packet->size = 1 + random_below(&it->random, size - 1);
        else
            packet->bytes[random_below(&it->random, size)] ^=
                (unsigned char)(1u << random_below(&it->random, 8));
    }
    push(receiver, packet);
}

/* Keeps packets of all times, each with the same chance. */
static void keep_old(simulation *it, uint32_t from, uint32_t to, const void *bytes, uint32_t size)
{
    sim_machine *receiver = &it->machines[to];
    uint32_t at = (uint32_t)receiver->old_count++;
    if (receiver->old_count > OLD_PACKETS) {
        at = random_below(&it->random, (uint32_t)receiver->old_count / 4 + OLD_PACKETS);
        if (at >= OLD_PACKETS) return;
    }
    if (receiver->old[at] == NULL) receiver->old[at] = malloc(sizeof(sim_packet));
    receiver->old[at]->from = from;
    receiver->old[at]->size = size;
    memcpy(receiver->old[at]->bytes, bytes, size);
}

/* Changes some fields of a packet of a broken or malicious machine, and makes its checksum right. */
static void make_absurd(simulation *it, unsigned char *bytes, uint32_t size)
{
    static const uint32_t values[] = {0, 1, 255, 0x7fffffff, 0x80000000, 0xffffffff, 0x3fffffff};
    const uint32_t end = size - 4;
    for (uint32_t count = 1 + random_below(&it->random, 3); count > 0; count--) {
        const uint32_t at = PACKET_KIND_AT + 1 + random_below(&it->random, end - PACKET_KIND_AT - 1);
        if (random_chance(&it->random, 50) || at + 4 > end) {
            bytes[at] = (unsigned char)random_next(&it->random);
            continue;
        }
        memcpy(bytes + at, &values[random_below(&it->random, 7)], 4);
    }
    const uint32_t sum = quern__netplay_checksum(it->plan->seed, bytes, end);
    for (uint32_t k = 0; k < 4; k++)
        bytes[end + k] = (unsigned char)(sum >> (8 * k));
}

static void send_packet(void *user_data, uint32_t player, const void *bytes, uint32_t size)
{
    sim_machine *from = user_data;
    simulation *it = from->in;
    unsigned char changed[QUERN_NETPLAY_PACKET_BYTES];
    uint64_t late_ns;
    it->result->packet_count++;
    it->result->sent_bytes += size;
    from->sent_in_call++;
    const bool is_spectator = player >= PLAYERS && player < PLAYERS + it->plan->spectator_count;
    if ((player >= it->plan->player_count && !is_spectator) || size > QUERN_NETPLAY_PACKET_BYTES) {
        fail(it, "player %u sends %u bytes to player %u", from->player, size, player);
        return;
    }
    for (uint32_t i = 0; i < it->plan->event_count; i++)
        if (it->plan->events[i].kind == SIMULATION_ABSURD && it->plan->events[i].player == from->player &&
            is_active(it, i) && random_chance(&it->random, 5)) {
            memcpy(changed, bytes, size);
            make_absurd(it, changed, size);
            bytes = changed;
        }
    keep_old(it, from->player, player, bytes, size);
    if (is_lost(it, from->player, player, &late_ns)) return;
    deliver(it, from->player, player, bytes, size, late_ns);
    if (random_below(&it->random, 1000) < it->plan->repeated_permille)
        deliver(it, from->player, player, bytes, size, late_ns);
    const sim_machine *receiver = &it->machines[player];
    if (!it->is_healthy && random_below(&it->random, 1000) < it->plan->old_permille) {
        const sim_packet *old = receiver->old[random_below(&it->random, OLD_PACKETS)];
        if (old != NULL) deliver(it, old->from, player, old->bytes, old->size, late_ns);
    }
}

static uint32_t receive_packet(void *user_data, uint32_t *out_player, void *bytes, uint32_t capacity)
{
    sim_machine *to = user_data;
    if (to->queue_count == 0 || to->queue[0]->arrival_ns > to->in->now_ns) return 0;
    sim_packet *packet = pop(to);
    const uint32_t size = packet->size < capacity ? packet->size : capacity;
    *out_player = packet->from;
    memcpy(bytes, packet->bytes, size);
    free(packet);
    return size;
}

static uint64_t tell_time(void *user_data)
{
    const sim_machine *machine = user_data;
    const simulation *it = machine->in;
    const int64_t drift = (int64_t)(it->now_ns / 1000000) * it->plan->drift_ppm[machine->player];
    return (uint64_t)((int64_t)(it->now_ns + machine->clock_ns) + drift);
}

/* ------------------------------------------------------------------------------ machines come and go */

static void open_machine(simulation *it, uint32_t player, bool joins)
{
    sim_machine *machine = &it->machines[player];
    const bool spectates = player >= PLAYERS;
    open_game(&machine->game, it->plan, !joins);
    quern_netplay_def def = {
        .world = machine->game.world,
        .schedule = machine->game.schedule,
        .inputs = machine->game.inputs,
        .input_bytes = sizeof(ship_input),
        .player_count = it->plan->player_count,
        .player = spectates ? player - PLAYERS : player,
        .step_seconds = 1.0 / 60,
        .input_delay = it->plan->input_delay,
        .max_rollback = it->plan->max_rollback,
        .hash_interval = HASH_INTERVAL,
        .save_interval = spectates ? 0 : it->plan->save_intervals[player],
        .timeout_seconds = it->plan->timeout_ms / 1000.0,
        .session = it->plan->seed,
        .absent = it->plan->absent,
        .joins = joins && !spectates,
        .spectates = spectates,
        .earlier_world = joins && machine->earlier.size_bytes > 0 ? machine->earlier.bytes : NULL,
        .earlier_world_bytes = machine->earlier.size_bytes,
        .watches = spectates ? random_below(&it->random, it->plan->player_count) : 0,
        .spectator_count = spectates ? 0 : it->plan->spectator_count,
        .spectator_delay = it->plan->spectator_delay,
        .spectator_window = it->plan->spectator_window,
        .transport = {send_packet, receive_packet, tell_time, machine},
        .allocator = {.allocate = count_allocate, .release = count_release, .user_data = machine}};
    if (quern_netplay_create(&def, &machine->netplay) != QUERN_OK) {
        fail(it, "player %u: %s", player, quern_error_message());
        return;
    }
    machine->is_open = true;
    machine->has_counted_load = !joins;
    machine->is_waiting_for_majority = false;
    machine->next_ns = it->now_ns + 1 + random_below(&it->random, STEP_NS);
    memset(machine->hashes, 0, HASHES * sizeof *machine->hashes);
    it->result->join_count += joins && !spectates;
}

static bool plays(const simulation *it, uint32_t player)
{
    return it->machines[player].is_open && it->machines[player].netplay->is_admitted;
}

/* Notes whether no other player has verified what this one has. */
static void note_lost_frames(simulation *it, uint32_t player)
{
    uint32_t most = 0;
    for (uint32_t i = 0; i < it->plan->player_count && plays(it, player); i++)
        if (i != player && plays(it, i) && it->machines[i].netplay->verified > most)
            most = it->machines[i].netplay->verified;
    if (player < PLAYERS && plays(it, player) && it->machines[player].netplay->verified > most)
        it->has_lost_frames = true;
}

/* Keeps the world of a machine for the next one of the player, as a file does that a game writes now and then. */
static void keep_world(sim_machine *machine)
{
    simulation *it = machine->in;
    if (machine->netplay->counts.is_joining || random_below(&it->keeping, 1000) >= it->plan->kept_permille)
        return;
    machine->earlier.size_bytes = 0;
    QUERN_MUST(quern_world_save(machine->game.world, quern_sink_bytes(&machine->earlier),
                                &(quern_save_def){.schedules = {machine->game.schedule}}));
    if (random_below(&it->keeping, 1000) >= it->plan->kept_damaged_permille) return;
    for (uint32_t count = 1 + random_below(&it->keeping, 20); count > 0; count--)
        ((unsigned char *)
             machine->earlier.bytes)[random_below(&it->keeping, (uint32_t)machine->earlier.size_bytes)] ^=
            1;
    machine->earlier.size_bytes -= random_below(&it->keeping, (uint32_t)machine->earlier.size_bytes);
}

static void close_machine(simulation *it, uint32_t player, uint64_t opens_at_ns)
{
    sim_machine *machine = &it->machines[player];
    if (machine->is_open) {
        if (opens_at_ns != UINT64_MAX) keep_world(machine);
        quern_netplay_destroy(machine->netplay);
        quern_schedule_destroy(machine->game.schedule);
        quern_world_destroy(machine->game.world);
        if (machine->bytes != 0)
            fail(it, "player %u: %llu bytes were not released", player, (unsigned long long)machine->bytes);
    }
    machine->netplay = NULL;
    machine->is_open = false;
    machine->opens_at_ns = opens_at_ns;
}

static void die(simulation *it, const simulation_event *event)
{
    uint32_t others = 0;
    for (uint32_t i = 0; i < it->plan->player_count; i++)
        others += i != event->player && plays(it, i) && plays(it, event->player) &&
                  it->machines[i].netplay->table.id == it->machines[event->player].netplay->table.id;
    /* The last machine that has the world stays: there is nothing to find out about a game without any. */
    if (!it->machines[event->player].is_open || (plays(it, event->player) && others == 0)) return;
    const bool for_ever = event->duration_ms == UINT32_MAX;
    note_lost_frames(it, event->player);
    close_machine(it, event->player,
                  for_ever ? UINT64_MAX : it->now_ns + (uint64_t)event->duration_ms * MS + 1);
    it->has_lost_player = it->has_lost_player || for_ever;
    it->result->death_count++;
}

static void begin_event(simulation *it, uint32_t index)
{
    const simulation_event *event = &it->plan->events[index];
    sim_machine *machine = &it->machines[event->player];
    const uint64_t end = it->now_ns + (uint64_t)event->duration_ms * MS;
    it->is_done[index] = true;
    switch (event->kind) {
    case SIMULATION_DIE:
        if (event->join_calls == 0)
            die(it, event);
        else
            machine->dies_after_calls = event->join_calls;
        return;
    case SIMULATION_PAUSE:
        if (machine->is_open) machine->next_ns = end;
        break;
    case SIMULATION_JUMP:
        machine->clock_ns += (uint64_t)event->duration_ms * MS;
        return;
    default:
        it->event_ends_ns[index] = end;
    }
    if (event->kind == SIMULATION_ABSURD) it->broken |= 1u << event->player;
    if (end > it->last_trouble_ns) it->last_trouble_ns = end;
}

/* ------------------------------------------------------------------------------------------- checks */

/* Whether a table drops players before frames that a machine has verified with their inputs. */
static bool drops_verified(const quern__netplay_table *table, const quern_netplay *by)
{
    for (uint32_t k = 0; k < by->def.player_count; k++) {
        const quern__netplay_member *member = &table->members[k], *before = &by->table.members[k];
        if (quern__netplay_is_out(member) && member->dropped_from < by->verified &&
            !(quern__netplay_is_out(before) && before->dropped_from <= member->dropped_from))
            return true;
    }
    return false;
}

/* Notes the table of a machine. Two tables of one epoch are those of halves of the players that have lost each other: when
 * they meet, the frames of one half are gone. So they are if a half never had them, and goes on without the other half. */
static void note_table(simulation *it, const quern__netplay_table *table)
{
    if (it->broken != 0 || table->epoch >= TABLES) return;
    if (it->tables[table->epoch] != 0 && it->tables[table->epoch] != table->id) it->has_lost_frames = true;
    it->tables[table->epoch] = table->id;
    const uint8_t members = quern__netplay_members(table);
    for (uint32_t i = 0; i < it->plan->player_count; i++)
        if (plays(it, i) && (members >> i & 1) == 0 && drops_verified(table, it->machines[i].netplay))
            it->has_lost_frames = true;
}

static void note_hashes(simulation *it, const sim_machine *machine)
{
    const quern_netplay *netplay = machine->netplay;
    if (netplay->is_admitted) note_table(it, &netplay->table);
    for (uint32_t k = 0; k < QUERN__NETPLAY_HASHES; k++) {
        const quern__netplay_hash *hash = &netplay->hashes[k];
        if (hash->frame > netplay->verified) continue;
        if (netplay->table.fork_count > 0) machine->in->has_lost_frames = true;
        noted_hash *noted = &machine->hashes[hash->frame / HASH_INTERVAL % HASHES];
        if (noted->frame == hash->frame + 1 && noted->hash != hash->hash)
            fail(it, "player %u: the hash of the confirmed frame %u has changed", machine->player,
                 hash->frame);
        *noted = (noted_hash){hash->frame + 1, hash->hash};
    }
}

static const quern__netplay_hash *find_hash(const quern_netplay *netplay, uint32_t player, uint32_t frame)
{
    const quern__netplay_hash *hashes =
        player == netplay->def.player ? netplay->hashes : netplay->players[player].hashes;
    const quern__netplay_hash *hash = &hashes[frame / HASH_INTERVAL % QUERN__NETPLAY_HASHES];
    return hash->frame == frame ? hash : NULL;
}

static bool has_joined_lately(const sim_machine *machine, uint32_t frame, uint32_t span)
{
    return machine->loaded_frame != 0 && frame < machine->loaded_frame + span;
}

/* Whether honest machines differ before the frame that the message names, and of each two that do, one has joined so lately that
 * it need not know the inputs by which they differ. */
static bool is_too_early(const simulation *it, const sim_machine *machine, const char *message)
{
    const quern_netplay *netplay = machine->netplay;
    const uint32_t span = 2 * HASH_INTERVAL + netplay->def.max_rollback + netplay->def.max_input_delay;
    uint32_t frame = 0;
    bool differs = false;
    if (sscanf(message, "quern_netplay_advance: the world before frame %u", &frame) != 1) return false;
    for (uint32_t i = 0; i < it->plan->player_count; i++)
        for (uint32_t k = 0; k < i; k++) {
            const quern__netplay_hash *a = find_hash(netplay, i, frame), *b = find_hash(netplay, k, frame);
            if ((it->broken >> i & 1) != 0 || (it->broken >> k & 1) != 0 || a == NULL || b == NULL ||
                a->hash == b->hash)
                continue;
            if (!has_joined_lately(&it->machines[i], frame, span) &&
                !has_joined_lately(&it->machines[k], frame, span))
                return false;
            differs = true;
        }
    return differs;
}

/* No member has the inputs for which the machine has waited. */
static void check_left_behind(simulation *it, const quern_netplay *netplay)
{
    const uint32_t frame = netplay->confirmed;
    for (uint32_t i = 0; i < it->plan->player_count; i++) {
        const quern_netplay *other = it->machines[i].netplay;
        if (other == NULL || !other->is_admitted || other->table.id != netplay->table.id) continue;
        for (uint32_t k = 0; k < it->plan->player_count; k++)
            if (quern__netplay_is_out(&netplay->table.members[k]) &&
                quern__netplay_limit(netplay, k) == frame && other->loaded_frame <= frame &&
                other->players[k].known_end > frame)
                fail(it, "player %u ends for the input of player %u before frame %u, which player %u has",
                     netplay->def.player, k, frame, i);
    }
}

static void check_result(simulation *it, sim_machine *machine, quern_result result)
{
    const quern_netplay *netplay = machine->netplay;
    machine->loaded_frame = netplay->loaded_frame;
    const uint64_t transfers =
        2 + SIMULATION_SPECTATORS; /* to a player that joins or differs, and to each spectator */
    const uint64_t most_packets = 2ull * PLAYERS + 4 + QUERN__NETPLAY_CHUNKS_PER_CALL * transfers;
    if (machine->sent_in_call > most_packets)
        fail(it, "player %u sends %llu packets in one call", machine->player,
             (unsigned long long)machine->sent_in_call);
    machine->sent_in_call = 0;
    machine->is_waiting_for_majority = false;
    if (!machine->has_counted_load && !netplay->counts.is_joining) {
        machine->has_counted_load = true;
        it->result->loaded_bytes += netplay->counts.loaded_bytes;
        it->result->reused_bytes += netplay->counts.reused_bytes;
    }
    if (result == QUERN_OK) {
        if (netplay->is_admitted || netplay->def.spectates) note_hashes(it, machine);
        return;
    }
    const char *message = quern_error_message();
    if (strncmp(message, "quern_netplay_advance: ", 23) != 0)
        fail(it, "player %u: the message does not name the call: %s", machine->player, message);
    if (result == QUERN_ERROR_UNAVAILABLE) {
        machine->is_waiting_for_majority = true;
    } else if (netplay->def.spectates &&
               (result == QUERN_ERROR_CANCELLED ||
                (result == QUERN_ERROR_DIVERGED && (it->has_lost_frames || it->broken != 0)))) {
        close_machine(it, machine->player, it->now_ns + random_below(&it->random, 500) * (uint64_t)MS);
    } else if (result == QUERN_ERROR_CANCELLED) {
        if (it->broken == 0 && netplay->end == QUERN__NETPLAY_LEFT_BEHIND) check_left_behind(it, netplay);
        it->result->cancelled_count++;
        close_machine(it, machine->player,
                      it->now_ns + (50 + random_below(&it->random, 500)) * (uint64_t)MS);
    } else if (it->broken >> machine->player & 1) {
        close_machine(it, machine->player, it->now_ns + 500ull * MS);
        it->has_lost_world = true;
        for (uint32_t i = 0; i < it->plan->player_count; i++)
            it->has_lost_world = it->has_lost_world && !plays(it, i);
    } else if (result == QUERN_ERROR_DIVERGED && it->broken != 0) {
        char name[24];
        for (uint32_t i = 0; i < it->plan->player_count; i++) {
            snprintf(name, sizeof name, "player %u", i);
            if ((it->broken >> i & 1) != 0 && strstr(message, name) != NULL) it->has_been_told = true;
        }
        it->has_been_told = it->has_been_told || is_too_early(it, machine, message);
        if (!it->has_been_told)
            fail(it, "player %u is not told that player bits %#x err: %s", machine->player, it->broken,
                 message);
    } else {
        fail(it, "player %u: %s", machine->player, message);
    }
}

/* Returns whether all open machines play together, except broken ones, and the largest frame and the least confirmed
 * one. */
static bool play_together(const simulation *it, uint32_t *out_most, uint32_t *out_least)
{
    uint32_t open = 0;
    *out_most = 0;
    *out_least = UINT32_MAX;
    for (uint32_t i = 0; i < it->plan->player_count; i++) {
        if ((it->broken >> i & 1) != 0) continue;
        if (it->machines[i].is_open)
            open |= 1u << i;
        else if (it->machines[i].opens_at_ns != UINT64_MAX)
            return false;
    }
    for (uint32_t i = 0; i < it->plan->player_count; i++) {
        const quern_netplay *netplay = it->machines[i].netplay;
        quern_netplay_status status;
        if ((open >> i & 1) == 0) continue;
        if (!plays(it, i)) return false;
        QUERN_MUST(quern_netplay_get_status(netplay, &status));
        if ((status.present & ~it->broken) != open) return false;
        if (netplay->frame > *out_most) *out_most = netplay->frame;
        if (netplay->verified < *out_least) *out_least = netplay->verified;
    }
    return open != 0 || it->broken != 0;
}

/* Returns whether all spectators are as close behind the players as they may be. */
static bool keep_up(const simulation *it, uint32_t least)
{
    enum { MOST_BEHIND = 60 };
    if (least == UINT32_MAX) return true; /* all players are broken */
    for (uint32_t i = PLAYERS; i < PLAYERS + it->plan->spectator_count; i++) {
        const sim_machine *machine = &it->machines[i];
        if (!machine->is_open || machine->netplay->counts.is_joining ||
            machine->netplay->frame + it->plan->spectator_delay + MOST_BEHIND < least)
            return false;
    }
    return true;
}

/* Compares all hashes of confirmed frames of the machines that play together at the end. */
static void compare_all(simulation *it)
{
    for (uint32_t i = 0; i < it->plan->player_count; i++)
        for (uint32_t k = 0; k < i && ((it->broken >> i | it->broken >> k) & 1) == 0; k++)
            for (uint32_t at = 0; at < HASHES && plays(it, i) && plays(it, k); at++) {
                const noted_hash *a = &it->machines[i].hashes[at], *b = &it->machines[k].hashes[at];
                if (a->frame == 0 || a->frame != b->frame) continue;
                it->result->compared_count++;
                if (a->hash != b->hash)
                    fail(it, "frame %u differs between players %u and %u", a->frame - 1, k, i);
            }
}

/* Compares all hashes of spectators with those of a player that plays at the end. */
static void compare_spectators(simulation *it)
{
    for (uint32_t i = PLAYERS; i < PLAYERS + it->plan->spectator_count; i++)
        for (uint32_t k = 0; k < it->plan->player_count && ((it->broken >> k) & 1) == 0; k++)
            for (uint32_t at = 0; at < HASHES && plays(it, k) && it->machines[i].is_open; at++) {
                const noted_hash *a = &it->machines[i].hashes[at], *b = &it->machines[k].hashes[at];
                if (a->frame == 0 || a->frame != b->frame) continue;
                it->result->watched_count++;
                if (a->hash != b->hash && !it->has_lost_frames)
                    fail(it, "frame %u differs between spectator %u and player %u", a->frame - 1,
                         i - PLAYERS, k);
            }
}

static void fail_standing(simulation *it)
{
    char text[400] = "";
    for (uint32_t i = 0; i < it->plan->player_count; i++) {
        const sim_machine *machine = &it->machines[i];
        const size_t length = strlen(text);
        if (!machine->is_open) {
            snprintf(text + length, sizeof text - length, " %u: closed;", i);
            continue;
        }
        quern_netplay_status status;
        QUERN_MUST(quern_netplay_get_status(machine->netplay, &status));
        snprintf(text + length, sizeof text - length,
                 " %u: %s%s frame %u confirmed %u present %#x epoch %u;", i,
                 machine->netplay->is_admitted ? "plays" : "joins",
                 machine->is_waiting_for_majority ? " (no majority)" : "", machine->netplay->frame,
                 machine->netplay->verified, status.present, machine->netplay->table.epoch);
    }
    for (uint32_t i = PLAYERS; i < PLAYERS + it->plan->spectator_count; i++) {
        const quern_netplay *netplay = it->machines[i].netplay;
        const size_t length = strlen(text);
        if (netplay != NULL)
            snprintf(text + length, sizeof text - length, " spectator: %s of %u, frame %u of %u;",
                     netplay->counts.is_joining ? "loads" : "watches", netplay->stands.watched,
                     netplay->frame, netplay->stands.log.end);
    }
    fail(it, "the game does not go on:%s", text);
}

/* -------------------------------------------------------------------------------------------- running */

static void begin_events(simulation *it)
{
    for (uint32_t i = 0; i < it->plan->event_count; i++)
        if ((it->enabled >> i & 1) != 0 && !it->is_done[i] &&
            it->now_ns >= (uint64_t)it->plan->events[i].at_ms * MS)
            begin_event(it, i);
}

/* Kills the machines that die at a step of a join, of their own or of another player. */
static void count_joins(simulation *it, uint32_t called)
{
    for (uint32_t i = 0; i < it->plan->player_count; i++) {
        sim_machine *machine = &it->machines[i];
        if (machine->dies_after_calls == 0 || !machine->is_open) continue;
        if (called == i || !it->machines[called].is_open || plays(it, called)) continue;
        if (--machine->dies_after_calls > 0) continue;
        for (uint32_t k = 0; k < it->plan->event_count; k++)
            if (it->is_done[k] && it->plan->events[k].kind == SIMULATION_DIE &&
                it->plan->events[k].player == i && it->plan->events[k].join_calls > 0) {
                die(it, &it->plan->events[k]);
                break;
            }
    }
}

static void step_machine(simulation *it, uint32_t player)
{
    sim_machine *machine = &it->machines[player];
    const int64_t drift = (int64_t)STEP_NS * it->plan->drift_ppm[player] / 1000000;
    machine->next_ns += (uint64_t)(STEP_NS - drift);
    const ship_input input = input_of(player, machine->netplay->frame);
    const uint64_t reruns = machine->netplay->counts.rerun_count;
    const quern_result result = quern_netplay_advance(machine->netplay, NULL, &input, NULL);
    it->result->call_count++;
    it->result->rerun_count += machine->netplay->counts.rerun_count - reruns;
    check_result(it, machine, result);
    if (player < PLAYERS) count_joins(it, player);
}

/* Returns the machine with the next call; MACHINES if there is none. */
static uint32_t find_next(simulation *it)
{
    uint32_t next = MACHINES;
    uint64_t at = UINT64_MAX;
    for (uint32_t i = 0; i < PLAYERS + it->plan->spectator_count; i++) {
        if (i == it->plan->player_count) i = PLAYERS;
        if (i >= PLAYERS + it->plan->spectator_count) break;
        const uint64_t time =
            it->machines[i].is_open ? it->machines[i].next_ns : it->machines[i].opens_at_ns;
        if (time >= at) continue;
        at = time;
        next = i;
    }
    if (next < MACHINES && at > it->now_ns) it->now_ns = at;
    return next;
}

/* Closes the spectators whose time has come; they open again soon. */
static void close_spectators(simulation *it)
{
    for (uint32_t i = 0; i < it->plan->spectator_count; i++) {
        if (it->are_closed[i] || it->now_ns < (uint64_t)it->plan->spectator_dies_ms[i] * MS) continue;
        it->are_closed[i] = true;
        if (it->machines[PLAYERS + i].is_open)
            close_machine(it, PLAYERS + i, it->now_ns + random_below(&it->random, 1000) * (uint64_t)MS);
    }
}

/* Plays until `end_ns`, or until all play together and have confirmed frames. */
static bool play_on(simulation *it, uint64_t end_ns, bool until_together)
{
    uint32_t first = 0; /* first frame that all play; 0: they do not play together */
    while (it->now_ns < end_ns && !it->result->has_failed && !it->has_been_told) {
        const uint32_t next = find_next(it);
        uint32_t most, least;
        begin_events(it);
        close_spectators(it);
        if (next == MACHINES) return false;
        if (it->machines[next].is_open)
            step_machine(it, next);
        else if (it->now_ns >= it->machines[next].opens_at_ns)
            open_machine(it, next, true);
        if (!until_together) continue;
        if (!play_together(it, &most, &least))
            first = 0;
        else if (first == 0)
            first = most + 1;
        else if (least >= first + COMPARED_FRAMES && keep_up(it, least))
            return true;
    }
    return false;
}

static uint64_t last_event_ns(const simulation *it)
{
    uint64_t last = 500ull * MS;
    for (uint32_t i = 0; i < it->plan->event_count; i++)
        if ((it->enabled >> i & 1) != 0 && (uint64_t)it->plan->events[i].at_ms * MS > last)
            last = (uint64_t)it->plan->events[i].at_ms * MS;
    return last + MS;
}

/* The time in which healthy players must play together again: they notice silent players, agree on a table, are cancelled
 * and join one after the other. */
static uint64_t settle_limit_ns(const simulation *it)
{
    const uint64_t packets = it->plan->entity_count * 32ull / 1024 + 64;
    const uint64_t transfer_ms = packets * (16 + it->plan->latency_ms + it->plan->jitter_ms) / 4;
    uint64_t limit_ms = 12ull * it->plan->timeout_ms + 4000 + 2 * it->plan->player_count * transfer_ms;
    /* A spectator may ask each player in turn, is told that it is too late, and begins anew. */
    if (it->plan->spectator_count > 0)
        limit_ms += 3 * (2ull * it->plan->player_count * it->plan->timeout_ms + transfer_ms +
                         it->plan->spectator_delay * 17ull);
    return limit_ms * MS;
}

void simulation_run(const simulation_plan *plan, uint32_t events, simulation_result *out_result)
{
    simulation *it = calloc(1, sizeof *it);
    *out_result = (simulation_result){0};
    it->plan = plan;
    it->result = out_result;
    it->random.state = plan->seed * 77 + 5;
    it->keeping.state = plan->seed * 131 + 7;
    it->enabled = events;
    it->now_ns = 1000;
    for (uint32_t i = 0; i < plan->player_count; i++) {
        it->machines[i].in = it;
        it->machines[i].player = i;
        it->machines[i].hashes = calloc(HASHES, sizeof(noted_hash));
        it->machines[i].clock_ns = random_next(&it->random) >> 12;
        if ((plan->absent >> i & 1) == 0)
            open_machine(it, i, false);
        else
            it->machines[i].opens_at_ns = (300 + random_below(&it->random, 4000)) * (uint64_t)MS;
    }
    for (uint32_t i = PLAYERS; i < PLAYERS + plan->spectator_count; i++) {
        it->machines[i].in = it;
        it->machines[i].player = i;
        it->machines[i].hashes = calloc(HASHES, sizeof(noted_hash));
        it->machines[i].clock_ns = random_next(&it->random) >> 12;
        it->machines[i].opens_at_ns = (uint64_t)plan->spectator_opens_ms[i - PLAYERS] * MS;
    }
    (void)play_on(it, last_event_ns(it), false);
    /* Machines that return later, and events that begin at a join, may disturb further. */
    while (!out_result->has_failed && !it->has_been_told && it->last_trouble_ns > it->now_ns)
        (void)play_on(it, it->last_trouble_ns, false);
    for (uint32_t i = 0; i < plan->player_count; i++)
        it->machines[i].dies_after_calls = 0;
    uint64_t opens_ns = it->now_ns;
    for (uint32_t i = 0; i < plan->player_count; i++)
        if (!it->machines[i].is_open && it->machines[i].opens_at_ns != UINT64_MAX &&
            it->machines[i].opens_at_ns > opens_ns)
            opens_ns = it->machines[i].opens_at_ns;
    if (opens_ns > it->now_ns) (void)play_on(it, opens_ns, false);
    it->is_healthy = true;
    const uint64_t healthy_ns = it->now_ns;
    if (!out_result->has_failed && !play_on(it, it->now_ns + settle_limit_ns(it), true) &&
        !it->has_been_told) {
        /* With a player that is gone for ever, the others may be fewer than half, and without any world they
         * wait for one: they must say so. */
        bool all_say_so = it->has_lost_player || it->has_lost_world;
        for (uint32_t i = 0; i < plan->player_count; i++)
            if (it->machines[i].is_open && !it->machines[i].is_waiting_for_majority) all_say_so = false;
        if (!all_say_so) fail_standing(it);
    }
    out_result->settle_ms = (it->now_ns - healthy_ns) / MS;
    if (!it->has_been_told) {
        compare_all(it);
        compare_spectators(it);
    }
    out_result->told_count = it->has_been_told;
    for (uint32_t i = 0; i < MACHINES; i++) {
        sim_machine *machine = &it->machines[i];
        close_machine(it, i, UINT64_MAX);
        while (machine->queue_count > 0)
            free(machine->queue[--machine->queue_count]);
        for (uint32_t k = 0; k < OLD_PACKETS; k++)
            free(machine->old[k]);
        free(machine->hashes);
        quern_byte_buffer_release(&machine->earlier);
    }
    free(it);
}

/* ------------------------------------------------------------------------------------------- drawing */

/* A duration whose logarithm is uniform. */
static uint32_t draw_duration(random_source *random, uint32_t least, uint32_t most)
{
    uint32_t doublings = 0;
    while (least << (doublings + 1) <= most)
        doublings++;
    const uint32_t low = least << random_below(random, doublings + 1);
    return low + random_below(random, low);
}

static void draw_event(simulation_plan *plan, random_source *random, uint32_t kinds)
{
    simulation_event *event = &plan->events[plan->event_count];
    const uint32_t player_count = plan->player_count > 2 ? plan->player_count : 2;
    *event = (simulation_event){.player = random_below(random, player_count)};
    const uint32_t die_weight = 5; /* in ten: deaths and returns are the hard part */
    do {
        event->kind = random_chance(random, die_weight * 10)
                          ? SIMULATION_DIE
                          : (simulation_event_kind)random_below(random, SIMULATION_KINDS);
    } while ((kinds >> event->kind & 1) == 0);
    event->other = (event->player + 1 + random_below(random, player_count - 1)) % player_count;
    event->at_ms = 200 + random_below(random, 6000);
    /* in the same moment as the event before, or soon after */
    if (plan->event_count > 0 && random_chance(random, 40))
        event->at_ms = plan->events[plan->event_count - 1].at_ms +
                       (random_chance(random, 50) ? 0 : random_below(random, plan->timeout_ms * 2));
    event->duration_ms = draw_duration(random, 10, random_chance(random, 10) ? 60000 : 4000);
    event->mask = 1 + random_below(random, (1u << plan->player_count) - 2);
    if (event->kind == SIMULATION_ABSURD) event->player = (uint32_t)(plan->seed % player_count);
    if (event->kind == SIMULATION_SLOW) event->mask = random_below(random, plan->timeout_ms / 4);
    if (event->kind == SIMULATION_DIE && random_chance(random, 4)) event->duration_ms = UINT32_MAX;
    if (event->kind == SIMULATION_DIE && random_chance(random, 30))
        event->join_calls = 1 + random_below(random, 120);
    plan->event_count++;
}

/* Draws what machines have for themselves. It has numbers of its own, so that the games of known seeds stay as they are. */
static void draw_machines(simulation_plan *plan)
{
    random_source random = {plan->seed * 0xD1B54A32D192ED03u + 3};
    if (random_chance(&random, 60)) plan->kept_permille = random_below(&random, 1001);
    if (random_chance(&random, 30)) plan->kept_damaged_permille = random_below(&random, 1001);
    const bool saves_fewer = random_chance(&random, 40);
    for (uint32_t i = 0; i < plan->player_count && saves_fewer; i++)
        plan->save_intervals[i] =
            random_below(&random, random_chance(&random, 50) ? 4 : QUERN_MAX_NETPLAY_SAVE_INTERVAL + 1);
}

void simulation_draw(uint64_t seed, uint32_t kinds, simulation_plan *out_plan)
{
    static const uint32_t latencies[] = {0, 5, 20, 50, 100, 300};
    random_source random = {seed * 0x9E3779B97F4A7C15u + 1};
    simulation_plan *plan = out_plan;
    *plan = (simulation_plan){.seed = seed};
    const bool is_big = (kinds & SIMULATION_BIG) != 0;
    if ((kinds & ~(uint32_t)(SIMULATION_WATCHED | SIMULATION_BIG)) == 0)
        kinds |= ((1u << SIMULATION_KINDS) - 1) & ~(1u << SIMULATION_ABSURD);
    plan->player_count =
        random_chance(&random, 70) ? 2 + random_below(&random, 3) : 2 + random_below(&random, 7);
    if (is_big) plan->player_count = 2 + random_below(&random, 2);
    plan->input_delay = random_below(&random, 5);
    plan->max_rollback = 1 + random_below(&random, 12);
    if (random_chance(&random, 10)) plan->max_rollback = 32;
    plan->latency_ms = random_below(&random, latencies[random_below(&random, 6)] + 1);
    plan->jitter_ms = random_chance(&random, 50) ? random_below(&random, plan->latency_ms + 30) : 0;
    plan->timeout_ms = 200 + 6 * (plan->latency_ms + plan->jitter_ms) + random_below(&random, 600);
    if (random_chance(&random, 60)) plan->lost_permille = random_below(&random, 150);
    if (random_chance(&random, 40)) plan->repeated_permille = random_below(&random, 50);
    if (random_chance(&random, 30)) plan->damaged_permille = random_below(&random, 50);
    if (random_chance(&random, 40)) plan->old_permille = random_below(&random, 50);
    if (random_chance(&random, 5)) plan->entity_count = 1000 + random_below(&random, 20000);
    for (uint32_t i = 0; i < plan->player_count; i++)
        if (random_chance(&random, 40)) plan->drift_ppm[i] = (int32_t)random_below(&random, 20001) - 10000;
    if (random_chance(&random, 20)) plan->absent = random_below(&random, (1u << plan->player_count) - 1);
    uint32_t count = 1 + random_below(&random, random_chance(&random, 20) ? SIMULATION_EVENTS : 8);
    if (is_big) {
        plan->entity_count = 350000 + random_below(&random, 1400000);
        count = 1 + random_below(&random, 3);
    }
    while (plan->event_count < count)
        draw_event(plan, &random, kinds);
    draw_machines(plan);
    if ((kinds & SIMULATION_WATCHED) == 0) return;
    plan->spectator_count = 1 + random_below(&random, SIMULATION_SPECTATORS);
    plan->spectator_delay = random_chance(&random, 50) ? random_below(&random, 200) : 0;
    plan->spectator_window = random_chance(&random, 50) ? 0 : 300 + random_below(&random, 400);
    for (uint32_t i = 0; i < plan->spectator_count; i++) {
        plan->spectator_opens_ms[i] = random_below(&random, 5000);
        plan->spectator_dies_ms[i] = random_chance(&random, 50) ? random_below(&random, 8000) : UINT32_MAX;
        if (random_chance(&random, 40))
            plan->drift_ppm[PLAYERS + i] = (int32_t)random_below(&random, 20001) - 10000;
    }
}

/* ------------------------------------------------------------------------------ shrinking and printing */

uint32_t simulation_traits(const simulation_plan *plan, uint32_t events)
{
    uint32_t traits = 0;
    for (uint32_t i = 0; i < plan->event_count; i++)
        if ((events >> i & 1) != 0) traits |= 1u << plan->events[i].kind;
    for (uint32_t i = 0; i < plan->player_count; i++)
        if (plan->save_intervals[i] > 1) traits |= 1u << SIMULATION_HAS_FEWER_SAVES;
    if (plan->spectator_count > 0) traits |= 1u << SIMULATION_HAS_SPECTATORS;
    if (plan->kept_permille > 0) traits |= 1u << SIMULATION_HAS_EARLIER;
    if (plan->entity_count > 0) traits |= 1u << SIMULATION_HAS_BIG_WORLD;
    return traits;
}

const char *simulation_trait_name(uint32_t trait)
{
    static const char *const names[SIMULATION_TRAITS] = {
        "death", "pause",  "cut",        "split",       "burst",   "slow",
        "jump",  "absurd", "spectators", "fewer saves", "earlier", "big world"};
    return names[trait];
}

uint32_t simulation_shrink(const simulation_plan *plan, uint32_t events)
{
    simulation_result result;
    uint32_t left = events;
    for (bool has_shrunk = true; has_shrunk;) {
        has_shrunk = false;
        for (uint32_t i = 0; i < plan->event_count; i++) {
            if ((left >> i & 1) == 0) continue;
            simulation_run(plan, left & ~(1u << i), &result);
            if (!result.has_failed) continue;
            left &= ~(1u << i);
            has_shrunk = true;
        }
    }
    return left;
}

void simulation_print(const simulation_plan *plan, uint32_t events)
{
    static const char *const names[] = {"dies",  "pauses", "is cut from", "split",
                                        "burst", "slow",   "clock jumps", "sends absurd fields"};
    printf("  %u players (absent %#x), input delay %u, max rollback %u, latency %u ms + %u, timeout %u ms\n"
           "  permille lost %u, repeated %u, damaged %u, old %u; %u entities\n",
           plan->player_count, plan->absent, plan->input_delay, plan->max_rollback, plan->latency_ms,
           plan->jitter_ms, plan->timeout_ms, plan->lost_permille, plan->repeated_permille,
           plan->damaged_permille, plan->old_permille, plan->entity_count);
    if (plan->kept_permille > 0)
        printf("  permille of worlds that are kept for the next join %u, damaged %u\n", plan->kept_permille,
               plan->kept_damaged_permille);
    for (uint32_t i = 0; i < plan->player_count; i++)
        if (plan->save_intervals[i] > 1)
            printf("  player %u saves every %u frames\n", i, plan->save_intervals[i]);
    for (uint32_t i = 0; i < plan->spectator_count; i++)
        printf("  spectator %u, from %u ms to %u ms, delay %u, window %u\n", i, plan->spectator_opens_ms[i],
               plan->spectator_dies_ms[i], plan->spectator_delay, plan->spectator_window);
    for (uint32_t i = 0; i < plan->event_count; i++) {
        const simulation_event *event = &plan->events[i];
        if ((events >> i & 1) == 0) continue;
        printf("  event %2u, at %5u ms, for %u ms: player %u %s (other %u, mask %#x, calls %u)\n", i,
               event->at_ms, event->duration_ms, event->player, names[event->kind], event->other,
               event->mask, event->join_calls);
    }
}
