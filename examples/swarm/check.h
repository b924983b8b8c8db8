/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef SWARM_CHECK_H
#define SWARM_CHECK_H

#include <quern/quern.h>

/* Ends the program with quern_error_message() when a call failed. Any thread. */
void check(quern_result result);

/* The same for calls that return a handle: null means failure. */
quern_entity check_entity(quern_entity entity);

/* Ends the program when memory is missing. Any thread. */
void *check_memory(void *memory);

#endif
