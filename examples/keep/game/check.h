/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef KEEP_CHECK_H
#define KEEP_CHECK_H

/* Ends the program with a message on errors that only lack of memory or a fault of the game can cause. */

#include <quern/quern.h>

void check(quern_result result);

/* Ends the program if memory is NULL. */
void *check_memory(void *memory);

#endif
