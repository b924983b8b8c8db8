/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef SWARM_WINDOW_H
#define SWARM_WINDOW_H

#include "options.h"

#include <signal.h>

/* Runs the simulation in a window, until the user closes it, or draws one frame to a file (--picture). Exits with a message
 * if the program was built without SDL, or there is no screen. */
void window_run(const Options *options, const volatile sig_atomic_t *is_interrupted);

#endif
