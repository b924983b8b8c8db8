/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_BENCH_HARNESS_GATE_H
#define QUERN_BENCH_HARNESS_GATE_H

/* --fail-slower: the exit status that lets a change through or stops it. */

#include "bench/harness/compare.h"

/* Returns QUERN_BENCH_EXIT_SLOWER if something is slower. Notes list results that could not be compared,
 * and those that only the earlier run has. Returns QUERN_BENCH_EXIT_FAILED if nothing at all was
 * compared, because a check without results must not succeed. comparisons: one per current record. */
int quern__bench_gate(const quern__bench_comparison *comparisons, const quern__bench_results *before,
                      const quern__bench_results *now);

#endif
