/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef RANKS_STORE_H
#define RANKS_STORE_H

/* Archives of ranks, with the state of their schedules. Each rank has two files, which it writes in turn, under another
 * name first: a rank that dies while it saves leaves its older file. No rank is more than one frame ahead of another, so
 * the newer frame of the rank that is behind is in the files of all. A file is a line of text, then the archive. */

#include "rank.h"

enum { STORE_SLOTS = 2, PATH_MAX_BYTES = 4096 };

/* What the line says of one file. Ranks share it, so it is plain bytes. */
typedef struct Stored {
    uint64_t frame; /* frames that were run */
    uint64_t seed;
    uint32_t rank_count, agent_count; /* of the beginning */
    int32_t borders[RANKS_MAX + 1];
    uint32_t exists; /* 0: there is no such file */
} Stored;

/* Saves a rank in the slot. Returns false, with a message, if that failed. */
bool store_save(const Rank *rank, const char *folder, uint32_t slot, uint32_t agent_count);

/* Reads the line of a file. exists is 0 if there is none. */
Stored store_look(const char *folder, uint32_t rank, uint32_t slot);

/* Loads the archive into a rank without agents. Returns false, with a message, if that failed. */
bool store_load(Rank *rank, const char *folder, uint32_t slot);

#endif
