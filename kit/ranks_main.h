/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_KIT_RANKS_MAIN_H
#define QUERN_KIT_RANKS_MAIN_H

/** @file
 * The main function of a program that runs one world on several ranks (<quern/kit/ranks.h>): options of the command line,
 * checkpoints and restarts, progress, results and exit status. examples/ranks has two complete programs.
 *
 *     int main(int argc, char **argv)
 *     {
 *         const quern_ranks_program program = {.name = "flock", .open = open, .populate = populate, .close = close};
 *         return quern_ranks_mpi_main(argc, argv, &program); // or quern_ranks_main(argc, argv, &program, NULL)
 *     } */

#include <quern/kit/ranks.h>

#ifdef __cplusplus
extern "C" {
#endif

#define QUERN_RANKS_MAX_OPTIONS 16 /**< Maximum number of options that a program adds. */
#define QUERN_RANKS_EXIT_LOST   3  /**< Exit status after another rank was lost or has failed. */

/** A whole number that the command line may set, as `--NAME N`. */
typedef struct quern_ranks_option {
    const char *name QUERN__ZERO; /**< Name without dashes. NULL ends the list. */
    uint64_t *value QUERN__ZERO;  /**< The number; before the call, the default. Required. */
    uint64_t least QUERN__ZERO, most QUERN__ZERO; /**< Limits of the number. */
    const char *help QUERN__ZERO;                 /**< What `--help` says of it. */
} quern_ranks_option;

/** One rank of a program. `def` and `jobs` are set before `open` is called, which sets the rest. */
typedef struct quern_ranks_setup {
    quern_ranks_def def;      /**< Transport and what the command line says; the program adds the rest. */
    quern_jobs *jobs;         /**< Pool for the frames of the rank. */
    quern_ranks *ranks;       /**< The rank. */
    quern_schedule *schedule; /**< Its schedule. */
    double delta_seconds;     /**< Time step of a frame. */
    quern_trace *
        trace; /**< With `--trace`, the trace of the rank, for the definition of its schedule; otherwise NULL. */
    void *user_data; /**< For the program. */
} quern_ranks_setup;

/** Describes a program. */
typedef struct quern_ranks_program {
    const char *name QUERN__ZERO;                                    /**< Name, for messages. Required. */
    const char *about QUERN__ZERO;                                   /**< First lines of `--help`. */
    quern_ranks_option options[QUERN_RANKS_MAX_OPTIONS] QUERN__ZERO; /**< Options besides the usual ones. */
    uint64_t frame_count QUERN__ZERO; /**< Number of frames without `--frames`; 0: 300. */
    /** Creates world, rank and schedule, without entities. Required. */
    quern_result (*open)(quern_ranks_setup *setup) QUERN__ZERO;
    /** Creates the share of the rank of the entities at the beginning (quern_ranks_creates). Not called after a restart.
     * Required. */
    quern_result (*populate)(quern_ranks_setup *setup) QUERN__ZERO;
    /** Destroys what `open` has created, also after it has failed. Required. */
    void (*close)(quern_ranks_setup *setup) QUERN__ZERO;
} quern_ranks_program;

/** Runs a program: parses options, opens the rank, runs all frames, and prints the result on rank 0. transport: that of this
 * process; NULL: this process has as many ranks as `--ranks` says. Returns the exit status: EXIT_SUCCESS; 2 if options are wrong;
 * QUERN_RANKS_EXIT_LOST; otherwise EXIT_FAILURE. Messages about options are printed by rank 0 alone. */
QUERN_API int quern_ranks_main(int argc, char **argv, const quern_ranks_program *program,
                               const quern_ranks_transport *transport);

#ifdef __cplusplus
}
#endif

#endif
