/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "bench/wide.h"
#include "bench/workloads.h"

/* ----------------------------------------------------------------------------------------- systems */

/* Wrap kernels of data.h into functions for wide_system.run: a kernel that writes one component and reads
 * another, one that only writes a component, and one that sums a component. */
#define WRITES_BY(system)                                             \
    static void system(void *written, const void *read, size_t count) \
    {                                                                 \
        kernel_##system(written, read, count);                        \
    }
#define WRITES(system)                                                \
    static void system(void *written, const void *read, size_t count) \
    {                                                                 \
        (void)read;                                                   \
        kernel_##system(written, count);                              \
    }
#define SUMS(system)                                       \
    static uint32_t system(const void *read, size_t count) \
    {                                                      \
        return kernel_##system(read, count);               \
    }

WRITES_BY(move)
WRITES_BY(damage)
WRITES(regenerate)
WRITES_BY(rotate)
WRITES(think)
WRITES(bound)
WRITES(drag)
WRITES_BY(steer)
WRITES_BY(tire)
WRITES_BY(rage)
WRITES(fall)
WRITES_BY(bounce)
WRITES_BY(tilt)
WRITES_BY(shield)
WRITES_BY(poison)
WRITES_BY(wander)
SUMS(sum_bits)
SUMS(sum_points)

/* clang-format off */
#define WRITE(system, component, read) {#system, WIDE_WRITE, (component), (read), {.write = (system)}}
#define SUM(system, component)         {#system, WIDE_SUM, (component), WIDE_NOTHING, {.sum = (system)}}
/* clang-format on */

static const wide_system seven_systems[] = {
    WRITE(move, RAW_POSITION, RAW_VELOCITY),
    WRITE(damage, RAW_HEALTH, RAW_DAMAGE),
    WRITE(regenerate, RAW_HEALTH, WIDE_NOTHING),
    WRITE(rotate, RAW_ROTATION, RAW_VELOCITY),
    WRITE(think, RAW_BRAIN, WIDE_NOTHING),
    WRITE(bound, RAW_POSITION, WIDE_NOTHING),
    SUM(sum_bits, RAW_POSITION),
};

static const wide_system twenty_systems[] = {
    WRITE(move, RAW_POSITION, RAW_VELOCITY),
    WRITE(damage, RAW_HEALTH, RAW_DAMAGE),
    WRITE(regenerate, RAW_HEALTH, WIDE_NOTHING),
    WRITE(rotate, RAW_ROTATION, RAW_VELOCITY),
    WRITE(think, RAW_BRAIN, WIDE_NOTHING),
    WRITE(bound, RAW_POSITION, WIDE_NOTHING),
    WRITE(drag, RAW_VELOCITY, WIDE_NOTHING),
    WRITE(steer, RAW_VELOCITY, RAW_BRAIN),
    WRITE(tire, RAW_BRAIN, RAW_HEALTH),
    WRITE(rage, RAW_DAMAGE, RAW_BRAIN),
    WRITE(fall, RAW_VELOCITY, WIDE_NOTHING),
    WRITE(bounce, RAW_VELOCITY, RAW_POSITION),
    WRITE(tilt, RAW_ROTATION, RAW_POSITION),
    WRITE(shield, RAW_DAMAGE, RAW_HEALTH),
    WRITE(poison, RAW_HEALTH, RAW_BRAIN),
    WRITE(wander, RAW_POSITION, RAW_BRAIN),
    {"think_again", WIDE_WRITE, RAW_BRAIN, WIDE_NOTHING, {.write = think}},
    {"bound_again", WIDE_WRITE, RAW_POSITION, WIDE_NOTHING, {.write = bound}},
    SUM(sum_bits, RAW_POSITION),
    SUM(sum_points, RAW_HEALTH),
};

static const wide_list seven = {seven_systems, sizeof seven_systems / sizeof seven_systems[0]};
static const wide_list twenty = {twenty_systems, sizeof twenty_systems / sizeof twenty_systems[0]};

/* --------------------------------------------------------------------------------------- workloads */

/* Functions that open a list of systems: its control, and its schedule in one variant. */
#define OPENS_RAW(list)                              \
    static void *list##_raw(const bench_case *scene) \
    {                                                \
        return wide_open_raw(&(list), scene);        \
    }
#define OPENS(list, name, variant)                         \
    static void *list##_##name(const bench_case *scene)    \
    {                                                      \
        return wide_open_quern(&(list), scene, (variant)); \
    }

OPENS_RAW(seven)
OPENS(seven, quern, WIDE_PLAIN)
OPENS(seven, unfused, WIDE_UNFUSED)
OPENS(seven, pairs, WIDE_PAIRS)
OPENS(seven, pairs_unfused, WIDE_PAIRS_UNFUSED)
OPENS(seven, profiled, WIDE_PROFILED)
OPENS(seven, traced, WIDE_TRACED)
OPENS(seven, with_history, WIDE_WITH_HISTORY)
OPENS_RAW(twenty)
OPENS(twenty, quern, WIDE_PLAIN)
OPENS(twenty, unfused, WIDE_UNFUSED)
OPENS(twenty, pairs, WIDE_PAIRS)
OPENS(twenty, pairs_unfused, WIDE_PAIRS_UNFUSED)

#define RAW(open)                                                                                   \
    {                                                                                               \
        open, wide_enter_raw, wide_run_raw, wide_leave_raw, wide_checksum_raw, wide_close_raw, NULL \
    }
#define QUERN(open)                                                                          \
    {                                                                                        \
        open, wide_enter_quern, wide_run_quern, NULL, wide_checksum_quern, wide_close_quern, \
            wide_capture_quern                                                               \
    }

static void *seven_pieces(const bench_case *scene)
{
    return wide_open_pieces(&seven, scene);
}

#define PIECES(open)                                                                       \
    {                                                                                      \
        open, wide_enter_pieces, wide_run_pieces, wide_leave_pieces, wide_checksum_pieces, \
            wide_close_pieces, NULL                                                        \
    }

const bench_workload workload_frame7 = {
    .name = "frame7",
    .summary = "seven systems in a row over one archetype of six components",
    .unit = "entity",
    .entity_counts = {10000, 100000, 1000000},
    .frames = true,
    .bytes_per_entity = WIDE_ROW_BYTES,
    .pass_count = bench_passes_of_1m,
    .operation_count = bench_operations_per_entity,
    .subjects = {RAW(seven_raw), QUERN(seven_quern), QUERN(seven_unfused), PIECES(seven_pieces)},
    .subject_names = {NULL, NULL, "unfused", "raw16k"},
};

/* A subject of rollback8. It has no checksum, because the control runs on while the other subjects go back,
 * so that their worlds differ. */
#define ROLLBACK(open, run)                                             \
    {                                                                   \
        open, wide_enter_quern, run, NULL, NULL, wide_close_quern, NULL \
    }

const bench_workload workload_rollback8 = {
    .name = "rollback8",
    .summary = "frame7 with rollback: each pass goes back seven frames and runs eight",
    .unit = "entity",
    .entity_counts = {10000, 100000},
    .bytes_per_entity = WIDE_ROW_BYTES,
    .pass_count = bench_passes_of_1m,
    .operation_count = bench_operations_per_entity,
    .subjects = {ROLLBACK(seven_quern, wide_run_eight), ROLLBACK(seven_with_history, wide_run_rollback),
                 ROLLBACK(seven_with_history, wide_run_rollback_every)},
    .subject_names = {"frames", "one saved", "all saved"},
};

const bench_workload workload_frame20 = {
    .name = "frame20",
    .summary = "twenty systems in a row over one archetype of six components",
    .unit = "entity",
    .entity_counts = {1000000},
    .frames = true,
    .bytes_per_entity = WIDE_ROW_BYTES,
    .pass_count = bench_passes_of_1m,
    .operation_count = bench_operations_per_entity,
    .subjects = {RAW(twenty_raw), QUERN(twenty_quern), QUERN(twenty_unfused)},
    .subject_names = {NULL, NULL, "unfused"},
};

const bench_workload workload_frame7_pairs = {
    .name = "frame7_pairs",
    .summary = "frame7, of whose systems two at most share a pass",
    .unit = "entity",
    .entity_counts = {100000, 1000000},
    .frames = true,
    .bytes_per_entity = WIDE_ROW_BYTES,
    .pass_count = bench_passes_of_1m,
    .operation_count = bench_operations_per_entity,
    .subjects = {RAW(seven_raw), QUERN(seven_pairs), QUERN(seven_pairs_unfused)},
    .subject_names = {NULL, NULL, "unfused"},
};

const bench_workload workload_frame20_pairs = {
    .name = "frame20_pairs",
    .summary = "frame20, of whose systems two at most share a pass",
    .unit = "entity",
    .entity_counts = {1000000},
    .frames = true,
    .bytes_per_entity = WIDE_ROW_BYTES,
    .pass_count = bench_passes_of_1m,
    .operation_count = bench_operations_per_entity,
    .subjects = {RAW(twenty_raw), QUERN(twenty_pairs), QUERN(twenty_pairs_unfused)},
    .subject_names = {NULL, NULL, "unfused"},
};

const bench_workload workload_frame7_watched = {
    .name = "frame7_watched",
    .summary = "frame7 plain, with profiling, and with a running trace",
    .unit = "entity",
    .entity_counts = {100000},
    .bytes_per_entity = WIDE_ROW_BYTES,
    .pass_count = bench_passes_of_4m,
    .operation_count = bench_operations_per_entity,
    .subjects = {QUERN(seven_quern), QUERN(seven_profiled), QUERN(seven_traced)},
    .subject_names = {"quern", "profiled", "traced"},
};
