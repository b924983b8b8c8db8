/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_BENCH_HARNESS_COMPARE_H
#define QUERN_BENCH_HARNESS_COMPARE_H

/* Compares results with those of an earlier run. A change of the machine's state affects subjects and their
 * controls alike. So a subject is compared by the ratios of its samples to the samples of its control.
 * Controls and subjects without a control are compared by their times. */

#include <stdio.h>

#include "bench/harness/results.h"

/* Significance level of verdicts, and 1 minus the confidence of the interval. */
#define QUERN__BENCH_ALPHA 0.01

typedef enum quern__bench_verdict {
    QUERN__BENCH_WITHIN_NOISE,
    QUERN__BENCH_FASTER,         /* for bytes: smaller */
    QUERN__BENCH_SLOWER,         /* for bytes: larger */
    QUERN__BENCH_TOO_FEW,        /* too few samples to show any difference */
    QUERN__BENCH_NOT_COMPARABLE, /* quern__bench_comparison.reason has the cause */
    QUERN__BENCH_NEW,            /* not measured in the earlier run */
} quern__bench_verdict;

/* Returns the text of a verdict, such as "faster" or "within noise"; for bytes, "smaller" and "larger"
 * instead of "faster" and "slower". */
const char *quern__bench_verdict_text(quern__bench_verdict verdict, bool is_bytes);

typedef struct quern__bench_comparison {
    const quern__bench_record *before; /* NULL: the record is new */
    const quern__bench_record *now;
    bool by_ratio;        /* whether ratios to the control are compared; otherwise times or bytes */
    const char *reason;   /* why the records cannot be compared; NULL: comparable or new */
    bool is_tested;       /* whether `difference` is valid; false for bytes, new and not comparable */
    double before_figure; /* median of the compared ratios, times or bytes */
    double now_figure;
    quern__bench_difference difference;
    quern__bench_verdict verdict;
} quern__bench_comparison;

/* Compares one current record with the earlier one. A verdict of faster or slower says that, with the
 * confidence of the interval, the change is greater than `noise`, a fraction such as 0.05. Two runs of one
 * program differ by some percent because their data have other addresses; the samples of one run cannot
 * show this. */
quern__bench_comparison quern__bench_compare(const quern__bench_results *before,
                                             const quern__bench_results *now,
                                             const quern__bench_record *record, double noise);

/* Compares all records of `now`. Returns the comparisons in the order of the records, to be released with
 * free().
 *
 * A record without a control is compared by time, and its verdict is checked against the drift of the
 * controls on the same number of threads. Faster or slower must also hold relative to the least and to the
 * greatest change of a control; "within noise" must also hold relative to their median change. Otherwise
 * the record is not comparable. */
quern__bench_comparison *quern__bench_compare_all(const quern__bench_results *before,
                                                  const quern__bench_results *now, double noise);

/* How the speed of the machine has changed: the changes of the times of the controls, now / before. */
typedef struct quern__bench_drift {
    size_t control_count; /* number of compared controls; 0: the other members are 1 */
    double least;
    double median;
    double greatest;
} quern__bench_drift;

/* Returns the drift of the controls on thread_count threads. If there are none, or if thread_count is 0,
 * returns the drift of all controls. */
quern__bench_drift quern__bench_find_drift(const quern__bench_comparison *comparisons,
                                           const quern__bench_results *now, uint32_t thread_count);

/* Returns how many records have the verdict, except records that are the control of another one. */
size_t quern__bench_count_verdicts(const quern__bench_comparison *comparisons,
                                   const quern__bench_results *now, quern__bench_verdict verdict);

/* Writes warnings if the machine, the compiler or the flags differ, a table of the comparisons, and the
 * records that only the earlier run has. path: file from which the earlier results were read. */
void quern__bench_write_comparisons(FILE *file, const quern__bench_comparison *comparisons,
                                    const quern__bench_results *before, const quern__bench_results *now,
                                    const char *path, double noise);

/* --------------------------------------------------------------------------------------------- gate */

/* --fail-slower: an exit status by which a script accepts or rejects a change. */

/* Returns QUERN_BENCH_EXIT_SLOWER if a subject is slower than before, otherwise QUERN_BENCH_EXIT_OK.
 * Returns QUERN_BENCH_EXIT_FAILED if nothing was compared, because a check without results must not
 * succeed. Prints a note for each result that could not be compared or that only the earlier run has.
 * comparisons: one for each record of `now`. */
int quern__bench_gate(const quern__bench_comparison *comparisons, const quern__bench_results *before,
                      const quern__bench_results *now);

#endif
