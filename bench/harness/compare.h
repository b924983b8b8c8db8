/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_BENCH_HARNESS_COMPARE_H
#define QUERN_BENCH_HARNESS_COMPARE_H

/* Compares results with those of an earlier run. Two runs of one program differ with the state of the
 * machine, which the control shares. So the ratio of a subject to its control is compared, sample by
 * sample; of a control, or without one, the time itself. */

#include <stdio.h>

#include "bench/harness/results.h"

/* Both the chance of error that a verdict may have, and 1 less the confidence of the interval. */
#define QUERN__BENCH_ALPHA 0.01

typedef enum quern__bench_verdict {
    QUERN__BENCH_WITHIN_NOISE,
    QUERN__BENCH_FASTER,         /* or, of bytes, smaller */
    QUERN__BENCH_SLOWER,         /* or, of bytes, larger */
    QUERN__BENCH_TOO_FEW,        /* samples: no difference whatever could be shown */
    QUERN__BENCH_NOT_COMPARABLE, /* the comparison's reason says why */
    QUERN__BENCH_NEW,            /* was not measured before */
} quern__bench_verdict;

/* "faster", "within noise" … ; of bytes, "smaller" and "larger". */
const char *quern__bench_verdict_text(quern__bench_verdict verdict, bool is_bytes);

typedef struct quern__bench_comparison {
    const quern__bench_record *before; /* NULL: new */
    const quern__bench_record *now;
    bool by_ratio;        /* to the control; otherwise by time */
    const char *reason;   /* why it is not comparable; NULL when it is, or is new */
    bool is_tested;       /* difference was filled in; false: bytes, new or not comparable */
    double before_figure; /* medians of what was compared */
    double now_figure;
    quern__bench_difference difference;
    quern__bench_verdict verdict;
} quern__bench_comparison;

/* The comparison of one current record. A verdict of faster or slower says that, with the confidence of
 * the interval, the change is greater than noise, such as 0.05. Two runs of one program differ by some
 * percent because their data have other addresses, which samples of one run cannot show. */
quern__bench_comparison quern__bench_compare(const quern__bench_results *before,
                                             const quern__bench_results *now,
                                             const quern__bench_record *record, double noise);

/* Of all records of now, in their order; to be freed. What has no control is judged by time, and then
 * controls of the same run must bear the verdict out: faster or slower than before by more than any of
 * them, or unchanged also by what they have changed in the median. Where they do not, it is not
 * comparable. */
quern__bench_comparison *quern__bench_compare_all(const quern__bench_results *before,
                                                  const quern__bench_results *now, double noise);

/* How the machine has changed, by the times of the controls that were compared: now / before. */
typedef struct quern__bench_drift {
    size_t control_count; /* 0: nothing is known, and the rest is 1 */
    double least;
    double median;
    double greatest;
} quern__bench_drift;

/* Returns the drift of the controls on that number of threads, if there are any; otherwise, and for 0
 * threads, of all controls. */
quern__bench_drift quern__bench_find_drift(const quern__bench_comparison *comparisons,
                                           const quern__bench_results *now, uint32_t thread_count);

/* How many subjects that are no control (controls, where nothing is judged by them) have the verdict. */
size_t quern__bench_count_verdicts(const quern__bench_comparison *comparisons,
                                   const quern__bench_results *now, quern__bench_verdict verdict);

/* A table, below it what was measured before only, and warnings when machine, compiler or flags are others.
 * path: where the earlier results were read from. */
void quern__bench_write_comparisons(FILE *file, const quern__bench_comparison *comparisons,
                                    const quern__bench_results *before, const quern__bench_results *now,
                                    const char *path, double noise);

#endif
