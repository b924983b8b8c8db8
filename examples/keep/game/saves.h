/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef KEEP_SAVES_H
#define KEEP_SAVES_H

/* Saved games. A file has three parts: a line of text that names the level, the actions of the player so far, as
 * inputs.h describes them, and an archive of the world. The game goes on from the archive; the actions are for --record,
 * whose file then replays the game from its first step.
 *
 * A file may come from anywhere. The library checks that the archive is whole, and game_create_saved that the game can
 * go on with its values. */

#include "inputs.h"

/* The contents of a file. */
typedef struct Save {
    const char *path;             /* for messages */
    uint64_t level;               /* Level.hash of the level in which the game was saved */
    char title[LEVEL_NAME_BYTES]; /* of that level */
    Inputs inputs;
    quern_byte_buffer world; /* the archive */
} Save;

/* Writes a game between two steps. The last saved game remains until the new one is complete: the function writes a new file
 * with the suffix ".part" and a number, and renames it. It replaces only plain files, no links, folders and devices. No
 * effects may wait for the next step: after an action, run a step first, because an archive of a world has no waiting
 * events. Returns false on failure, with the file and the fault in message. */
bool save_write(Game *game, const Inputs *inputs, const char *path, char *message, size_t message_bytes);

/* Reads a file, without checking its archive. path must remain valid as long as the save. Returns false on failure, with
 * the file and the fault in message; nothing needs to be freed then. */
bool save_read(Save *save, const char *path, char *message, size_t message_bytes);

void save_free(Save *save);

/* Creates the saved game, like game_create. Returns false on failure, with the file and the fault in message: another
 * level, a damaged archive, or values with which the game cannot go on. */
bool game_create_saved(Game *game, const Level *level, const Save *save, char *message,
                       size_t message_bytes);

#endif
