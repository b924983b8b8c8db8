/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_EXAMPLES_LIVE_HOST_H
#define QUERN_EXAMPLES_LIVE_HOST_H

/* The program around a module: a world, a schedule, the module's source file and its compiler. */

#include <quern/kit/live.h>
#include <quern/quern.h>

#include <stdbool.h>

enum { PATH_BYTES = 512, COMMAND_BYTES = 8192 };

typedef struct Host {
    quern_world *world;
    quern_schedule *schedule;
    quern_jobs *jobs;
    quern_live *live;
    char folder[PATH_BYTES];  /* of the library */
    char source[PATH_BYTES];  /* of the module */
    char library[PATH_BYTES]; /* that the compiler makes of it */
    bool is_cpp;
} Host;

/* Creates a world without types, a schedule without systems, and the pool. Ends the program on failure. */
void host_open(Host *host, uint32_t thread_count);
void host_close(Host *host);

/* Chooses the library's path, in a new folder. source: that of the module; NULL: a copy in that folder. */
void host_choose_paths(Host *host, const char *source);
/* Removes what host_choose_paths and the compiler made. */
void host_remove_paths(const Host *host);

/* Writes the command that compiles the source to the library. The library appears as a whole, by renaming. */
void host_compile_command(const Host *host, char command[COMMAND_BYTES]);

/* Edits copies of the module, reloads them, and compares each step with a program that always had the new code. Prints
 * JSON. Returns the exit status. */
int host_check(const char *source, bool is_cpp, uint32_t thread_count);

/* Measures reloads of a module with many types and systems. Prints JSON. Returns the exit status. */
int host_measure(const char *source);

#endif
