/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_BENCH_HARNESS_GATE_H
#define QUERN_BENCH_HARNESS_GATE_H

/* --fail-slower: an exit status by which a script accepts or rejects a change. */

#include "bench/harness/compare.h"

/* Returns QUERN_BENCH_EXIT_SLOWER if a subject is slower than before, otherwise QUERN_BENCH_EXIT_OK.
 * Returns QUERN_BENCH_EXIT_FAILED if nothing was compared, because a check without results must not
 * succeed. Prints a note for each result that could not be compared or that only the earlier run has.
 * comparisons: one for each record of `now`. */
int quern__bench_gate(const quern__bench_comparison *comparisons, const quern__bench_results *before,
                      const quern__bench_results *now);

#endif
