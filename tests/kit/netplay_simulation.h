/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_TESTS_NETPLAY_SIMULATION_H
#define QUERN_TESTS_NETPLAY_SIMULATION_H

/* Whole games of netplay in one process, in virtual time. A seed decides everything: players, network, clocks, and the
 * events that disturb the game. The same seed and events give the same game, so that a failing game can be replayed,
 * and shrunk to fewer events. */

#include <stdbool.h>
#include <stdint.h>

enum {
    SIMULATION_EVENTS = 32,
    SIMULATION_PLAYERS = 8,
    SIMULATION_SPECTATORS = 2,
    SIMULATION_TEXT_BYTES = 512,
    SIMULATION_WATCHED = 256, /* with the kinds of events: the game has spectators */
    SIMULATION_BIG = 512      /* the same: the world has 10 to 50 MB */
};

typedef enum simulation_event_kind {
    SIMULATION_DIE,    /* the machine of a player is gone, without a word, and joins after the duration */
    SIMULATION_PAUSE,  /* the machine makes no call, as in a debugger */
    SIMULATION_CUT,    /* packets from one player to another one are lost */
    SIMULATION_SPLIT,  /* packets between two groups of players are lost; `mask`: one of the groups */
    SIMULATION_BURST,  /* most packets are lost */
    SIMULATION_SLOW,   /* all packets take longer, by the number of milliseconds in `mask` */
    SIMULATION_JUMP,   /* the clock of a player jumps ahead by the duration */
    SIMULATION_ABSURD, /* the machine of a player sends packets with wrong fields and right checksums */
    SIMULATION_KINDS
} simulation_event_kind;

typedef struct simulation_event {
    simulation_event_kind kind;
    uint32_t player, other, mask;
    uint32_t at_ms, duration_ms; /* UINT32_MAX: for ever */
    uint32_t join_calls;         /* DIE: calls after the next join begins anywhere; 0: at the time alone */
} simulation_event;

typedef struct simulation_plan {
    uint64_t seed;
    uint32_t player_count, absent;
    uint32_t input_delay, max_rollback;
    uint32_t latency_ms, jitter_ms, timeout_ms;
    uint32_t lost_permille, repeated_permille, damaged_permille, old_permille;
    uint32_t entity_count; /* beyond one for each player */
    uint32_t save_intervals[SIMULATION_PLAYERS];
    /* chances that a machine that is closed keeps its world for its next join, and that this is damaged */
    uint32_t kept_permille, kept_damaged_permille;
    int32_t drift_ppm[SIMULATION_PLAYERS + SIMULATION_SPECTATORS];
    uint32_t spectator_count, spectator_delay, spectator_window;
    uint32_t spectator_opens_ms[SIMULATION_SPECTATORS], spectator_dies_ms[SIMULATION_SPECTATORS];
    uint32_t event_count;
    simulation_event events[SIMULATION_EVENTS];
} simulation_plan;

typedef struct simulation_result {
    bool has_failed;
    char failure[SIMULATION_TEXT_BYTES];
    uint32_t told_count; /* 1 if the game ended because a player was told which other one errs */
    uint32_t cancelled_count, join_count, death_count;
    uint64_t watched_count; /* hashes of spectators that were compared */
    uint64_t loaded_bytes,
        reused_bytes; /* of worlds that machines have loaded, and what came from earlier ones */
    uint64_t call_count, packet_count, sent_bytes, compared_count, rerun_count;
    uint64_t settle_ms;  /* time from the end of all disturbances until all players played together again */
    uint64_t most_bytes; /* most memory that one session had from its allocator */
} simulation_result;

/* Draws a game of a seed. `kinds`: bit i for events of kind i; 0: all but ABSURD; SIMULATION_WATCHED,
 * SIMULATION_BIG. */
void simulation_draw(uint64_t seed, uint32_t kinds, simulation_plan *out_plan);

/* What a game may have: first the kinds of events. */
enum {
    SIMULATION_HAS_SPECTATORS = SIMULATION_KINDS,
    SIMULATION_HAS_FEWER_SAVES, /* machines that do not save each frame */
    SIMULATION_HAS_EARLIER,     /* machines that return with an earlier world */
    SIMULATION_HAS_BIG_WORLD,
    SIMULATION_TRAITS
};

/* Returns what a game has with the events whose bits are set: bit i for trait i. */
uint32_t simulation_traits(const simulation_plan *plan, uint32_t events);

/* Returns the name of a trait. */
const char *simulation_trait_name(uint32_t trait);

/* Runs a game with the events whose bits are set. */
void simulation_run(const simulation_plan *plan, uint32_t events, simulation_result *out_result);

/* Returns a set of events with which a failing game still fails, and fails no more without any of them. */
uint32_t simulation_shrink(const simulation_plan *plan, uint32_t events);

/* Prints the game and its events to standard output. */
void simulation_print(const simulation_plan *plan, uint32_t events);

#endif
