/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_BENCH_HARNESS_GATE_H
#define QUERN_BENCH_HARNESS_GATE_H

/* --fail-slower: the exit status that lets a change through or stops it. */

#include "bench/harness/compare.h"

/* QUERN_BENCH_EXIT_SLOWER when something is slower. What is judged but could not be compared, and what
 * was measured before only, is listed in notes; QUERN_BENCH_EXIT_FAILED when nothing at all was compared,
 * since a gate that looked at nothing must not let anything through. comparisons: one for each record of
 * now. */
int quern__bench_gate(const quern__bench_comparison *comparisons, const quern__bench_results *before,
                      const quern__bench_results *now);

#endif
