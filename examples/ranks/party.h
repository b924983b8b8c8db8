/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef RANKS_PARTY_H
#define RANKS_PARTY_H

#include "link.h"
#include "options.h"

enum {
    EXIT_LOST = 3 /* exit status after a rank was lost */
};

/* Runs all frames of the ranks of this process, and prints the result. Returns the exit status. EXIT_LOST: another rank
 * does not answer, so the link cannot be closed in order. */
int party_run(Link *link, const Options *options);

#endif
