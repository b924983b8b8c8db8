/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef RANKS_PING_H
#define RANKS_PING_H

#include <stdbool.h>

/* Sends messages of growing size from rank 0 to rank 1 and back, and prints half the time of each way and back. Returns
 * the exit status. Precondition: MPI is initialised. */
int ping_run(bool json);

#endif
