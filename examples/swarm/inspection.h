/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef SWARM_INSPECTION_H
#define SWARM_INSPECTION_H

#include "options.h"

#include <signal.h>

/* Runs frames, 60 per second, until interrupted or until --frames, with an inspector whose address it prints. Without
 * the library of the inspector it ends the program with exit status 2. */
void inspection_run(const Options *options, const volatile sig_atomic_t *is_interrupted);

#endif
