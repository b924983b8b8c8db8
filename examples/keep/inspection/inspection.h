/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef KEEP_INSPECTION_H
#define KEEP_INSPECTION_H

/* Shows the game in a browser (docs/inspector.md). Without --inspect, every call does what the game does without this
 * file. A program that was built without the inspector ends with a message when it is asked for one. */

#include "../game/rewind.h"

typedef struct Inspection {
    bool is_on;
    uint16_t
        port; /* 0 until the server has chosen a free one; a new game keeps port and token, so that the page
                     * of the last game goes on */
    char token[80]; /* secret in the address; empty before the first game */
    struct quern_trace *trace;
    struct quern_inspector *inspector; /* NULL between games */
} Inspection;

/* Switches the inspection on, on a port of the loopback interface; 0: a free one. Creates a trace for thread_count
 * threads (0: one per processor): set it for the pool and for the game before they are created. */
void inspection_create(Inspection *inspection, uint16_t port, uint32_t thread_count);

/* Begins to show a game, and prints the address of the page for the first one. */
void inspection_open(Inspection *inspection, Game *game, Rewind *rewind, quern_jobs *jobs);

/* Call it before the game and its history are destroyed. */
void inspection_close(Inspection *inspection);

/* Call it after the schedule and the pool were destroyed. */
void inspection_destroy(Inspection *inspection);

/* Answers requests between two steps, and returns whether the next step should run: not while the page has paused the
 * game. A request may restore another step. Pausing takes up to ten milliseconds per call. */
bool inspection_update(Inspection *inspection, Game *game);

/* Waits until the next step is due, and answers requests meanwhile, which may restore another step. */
void inspection_wait(Inspection *inspection, Game *game, uint64_t nanoseconds);

/* Runs a step like game_step. */
void inspection_step(Inspection *inspection, Game *game, quern_jobs *jobs);

/* Creates the history of the game: every step of the last seconds for a page to scrub in, or what the game itself needs
 * to rewind. */
void inspection_create_history(const Inspection *inspection, Rewind *rewind, Game *game);

#endif
