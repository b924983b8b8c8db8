/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef RANKS_RANK_H
#define RANKS_RANK_H

/* One rank: a stripe of the field with its agents, and what it sends to the adjacent ranks. In each frame a rank
 * exchanges two messages with each neighbour:
 *
 *   1. agents that are now in the neighbour's stripe, as a message of an archive session;
 *   2. agents near the border, without what only their owner needs, as a message of another session. They get the tag
 *      "Ghost" where they arrive.
 *
 * The second message needs the first: an agent that has just arrived may be near the border. After the frame the ghosts
 * are destroyed. */

#include "flock.h"
#include "stripes.h"

enum { SIDE_LEFT, SIDE_RIGHT, SIDE_COUNT };

/* The bytes of one exchange, by side. Empty: there is no neighbour, or nothing to send. */
typedef struct Mail {
    quern_byte_buffer out[SIDE_COUNT], in[SIDE_COUNT];
} Mail;

typedef struct Neighbour {
    quern_save_session *agents_out, *ghosts_out;
    quern_load_session *agents_in, *ghosts_in;
} Neighbour;

/* What each rank tells all others after a frame. */
typedef struct Report {
    uint64_t frame;       /* number of frames that it has run */
    uint64_t step_ns;     /* processor time of the frame, which the balance goes by */
    uint64_t agent_count; /* at present */
    uint64_t ghost_count, crossed_count, sent_bytes;  /* totals of all frames */
    uint64_t birth_count, death_count, total_step_ns; /* totals of all frames */
    uint64_t hash;                                    /* of the agents; only if asked for */
} Report;

typedef struct Rank {
    uint32_t index;
    Stripes stripes;
    Flock flock;
    quern_archive *list; /* entities of the next message */
    Neighbour sides[SIDE_COUNT];
    Mail mail;
    Report report;
    quern_entity *leaving[SIDE_COUNT];
    uint32_t leaving_count[SIDE_COUNT], leaving_capacity;
} Rank;

/* Opens a rank without agents. */
void rank_open(Rank *rank, uint32_t index, const Stripes *stripes, const Field *field);

void rank_close(Rank *rank);

/* Creates those of the agents of the beginning that are in the stripe. */
void rank_populate(Rank *rank, uint32_t agent_count);

/* The steps of a frame, in this order. Between sending and receiving, the mail is exchanged. */
void rank_send_agents(Rank *rank);
void rank_receive_agents(Rank *rank);
void rank_send_ghosts(Rank *rank);
void rank_receive_ghosts(Rank *rank);
void rank_step(Rank *rank, quern_jobs *jobs);

#endif
