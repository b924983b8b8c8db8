/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef KEEP_CHECK_H
#define KEEP_CHECK_H

/* What only fails for want of memory, or by a fault of the game itself, ends the program with a message. */

#include <quern/quern.h>

void check(quern_result result);

/* Ends the program when memory is NULL. */
void *check_memory(void *memory);

#endif
