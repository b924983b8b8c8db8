/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef SWARM_CHECK_H
#define SWARM_CHECK_H

#include <quern/quern.h>

/* Ends the program with quern_error_message() if a call failed. Threads: any. */
void check(quern_result result);

/* Ends the program if an allocation failed. Threads: any. */
void *check_memory(void *memory);

#endif
