/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_KIT_RANKS_INTERNAL_H
#define QUERN_KIT_RANKS_INTERNAL_H

/* One rank of a world on several ranks.
 *
 * All ranks go through the same stages (ranks.c). Between stages are *exchanges*: a rank sends packets and expects packets of
 * some ranks, and the stage after it begins when all of them are there. Which exchanges follow depends only on numbers that all
 * ranks have in common, so each packet carries the number of its exchange, and one that is early waits. Sums over all ranks
 * are exchanges along a binary tree of ranks.
 *
 * Nothing here waits: an exchange that is not complete returns to quern_ranks_run, which asks the transport again. So one
 * thread can run many ranks, and tests do. */

#include <quern/kit/ranks.h>

#include <stdio.h>
#include <string.h>

enum {
    RANKS_UNITS = 16,            /* of length, per radius */
    RANKS_LIMIT_UNITS = 1 << 28, /* coordinates are between its negative and itself */
    RANKS_BINS = 256,            /* of the histogram of a bisection */
    RANKS_LISTED = 7,            /* numbers of a rank in the list of all */
    RANKS_PATH_BYTES = 1024
};

/* ----------------------------------------------------------------------------------------------- space */

/* A box of whole units of length: from min to max - 1. Those at the edges of space are unlimited. */
typedef struct ranks_box {
    int64_t min[3], max[3];
} ranks_box;

/* A box of lengths, in which most positions are found without whole units. */
typedef struct ranks_lengths {
    double min[3], max[3];
} ranks_lengths;

/* A node of the bisection. Ranks first_rank to first_rank + rank_count - 1 are below it. */
typedef struct ranks_node {
    ranks_box box;
    int64_t cut;   /* the first unit of the right child */
    uint32_t axis; /* of the cut */
    uint32_t left; /* index of the left child; the right one follows. 0: a leaf, or not divided yet */
    uint32_t first_rank, rank_count;
} ranks_node;

/* ---------------------------------------------------------------------------------------------- packets */

/* Head of each packet. */
typedef struct ranks_head {
    uint32_t magic, kind;
    uint64_t exchange; /* number */
    uint64_t frame;
    uint64_t size_bytes; /* after the head */
    uint64_t checksum;   /* of what follows the head */
} ranks_head;

typedef enum ranks_kind {
    RANKS_DATA = 1,
    RANKS_FAILED, /* the sender ends; the text is its error */
    RANKS_PARTING /* the sender misses a rank, and tells each other one that it is there */
} ranks_kind;

typedef struct ranks_early ranks_early;

/* What a rank has of another one. */
typedef struct ranks_peer {
    bool is_neighbour, is_expected, has_arrived;
    bool is_parting;                /* has sent RANKS_PARTING */
    uint32_t node;                  /* its leaf in the tree */
    quern_byte_buffer in;           /* the packet of the present exchange, without head */
    quern_byte_buffer out;          /* what is sent next: of ghosts, the counts and the empty slots */
    quern_byte_buffer leaving;      /* quern_entity: roots that move to the rank; of ghosts, the changes */
    quern_byte_buffer added;        /* of ghosts, the new ones */
    quern_save_session *save;       /* of entities that move there; NULL until the first */
    quern_load_session *load;       /* of entities that come from there */
    quern_byte_buffer shown;        /* ranks_shown by slot: what the rank has as ghosts */
    quern_byte_buffer shown_table;  /* uint32_t: slot + 1 by hash of the id */
    quern_byte_buffer free_slots;   /* uint32_t */
    quern_byte_buffer values;       /* last values by slot, ghost_bytes each */
    quern_byte_buffer ghosts;       /* ranks_held by slot: the ghosts that this rank has of it */
    quern_byte_buffer ghost_values; /* their values, if they are checked */
} ranks_peer;

/* An entity that another rank has as ghost. */
typedef struct ranks_shown {
    uint64_t id;
    uint32_t present; /* bit i: the entity has component i of ghosts */
    uint32_t round;   /* in which it was last near the border; 0: the slot is free */
} ranks_shown;

/* A message, as the event carries it and as packets do. */
typedef struct ranks_letter {
    uint64_t from, to;
    uint32_t order, sequence; /* sequence: among those of one rank and frame */
    uint32_t type;            /* number of the component or event, without the tag of the world */
    uint32_t combine;
    uint8_t verb;
    uint8_t size_bytes;
    uint8_t reserved[6];
    unsigned char value[QUERN_RANKS_MAX_MESSAGE_BYTES];
} ranks_letter;

/* ------------------------------------------------------------------------------------------------- rank */

typedef enum ranks_stage {
    RANKS_BEGIN, /* of quern_ranks_run */
    RANKS_SAME_PROGRAM,
    RANKS_FRAME,
    RANKS_LETTERS_COUNTED,
    RANKS_LETTERS_ARRIVED,
    RANKS_COUNTED,
    RANKS_EXTENT_KNOWN,
    RANKS_LEVEL_KNOWN,
    RANKS_LEAVING_COUNTED,
    RANKS_ARRIVED,
    RANKS_SAVED,
    RANKS_COMMITTED,
    RANKS_GHOSTS_ARRIVED,
    RANKS_TOTALS_KNOWN,
    RANKS_DONE
} ranks_stage;

struct quern_ranks {
    quern_ranks_def def;
    quern_allocator allocator;
    quern_world *world;
    quern_world_user user;
    quern_schedule *schedule;
    quern_schedule *inner; /* runs before it, while ghosts are on their way; may be NULL */
    bool inner_has_run;    /* in the frame that is next */
    quern_jobs *jobs;
    double delta_seconds;
    char folder[RANKS_PATH_BYTES];
    uint32_t rank, rank_count;

    quern_component ghost;
    quern_resource state_resource;
    quern_event letter_event;
    quern_event_reader *letter_reader;   /* NULL until the program asks for messages */
    quern_query *roots;                  /* id, position; without target in a relation that holds */
    quern_query *shown;                  /* id, position, components of ghosts */
    quern_query *nameless;               /* entities with a position that are neither owned nor ghosts */
    quern_query *all_owned, *all_ghosts; /* id, component of ghosts; also disabled entities */
    quern_query *changed_owned, *changed_ghosts;   /* the same in chunks that have changed */
    quern_query *globals[QUERN_RANKS_MAX_GLOBALS]; /* id and the component of a global */
    uint32_t tag_bits;                             /* of handles of the world */

    /* Components of ghosts: the position is number 0. */
    quern_component ghost_list[QUERN_RANKS_MAX_COMPONENTS + 1];
    uint32_t ghost_offsets[QUERN_RANKS_MAX_COMPONENTS + 1], ghost_sizes[QUERN_RANKS_MAX_COMPONENTS + 1];
    uint32_t ghost_count, ghost_bytes;
    bool checks_ghosts;

    /* Space. */
    uint32_t dimensions;
    double units_per_length;
    double sight_units;           /* how far an entity sees, and the entities below its root with it */
    int64_t margin_units;         /* farther from the box of a rank than this, none of its entities sees */
    quern_byte_buffer nodes;      /* ranks_node; the first is the root */
    uint32_t level_begin;         /* first node of the level that is being divided */
    ranks_box box;                /* of this rank */
    ranks_lengths surely_own;     /* the box without its edge */
    ranks_lengths surely_inner;   /* the part of it that no other rank sees */
    quern_byte_buffer neighbours; /* uint32_t, ascending */
    ranks_box extent;             /* of all roots when space was divided */
    bool is_divided;

    /* Exchange. */
    ranks_peer *peers; /* by rank */
    uint64_t exchange; /* number of the present one */
    uint32_t missing;  /* expected packets that have not arrived */
    bool is_exchanging;
    double deadline;    /* of the present exchange */
    ranks_early *early; /* packets of later exchanges */
    quern_byte_buffer packet, arrived;
    bool is_parting;
    bool is_ended;    /* no call can succeed any more */
    char ending[512]; /* why */

    /* Numbers over all ranks. */
    quern_byte_buffer numbers; /* int64_t: sums, minima, maxima */
    uint32_t sum_count, minimum_count;
    uint32_t reduce_state; /* 0: none, 1: from children, 2: from the parent */

    /* Frames. */
    ranks_stage stage;
    quern_byte_buffer
        list_numbers;         /* RANKS_LISTED numbers for each rank, if the definition asks for them */
    quern_ranks_stats listed; /* `own` when they were collected */
    uint64_t frame, end_frame;
    uint64_t frame_ns; /* of the schedules in the last frame */
    bool wants_hash, was_started;
    bool is_after_frame;      /* a checkpoint may be due when entities have moved */
    bool has_lost_checkpoint; /* a rank could not write it; the call ends after the frame */
    char problem[512];        /* why */
    uint64_t hash;
    uint32_t round;          /* of ghosts, never 0 */
    quern_byte_buffer table; /* ranks_known by hash of id: owned entities and ghosts */
    uint32_t known_count;    /* places of the table that are taken */
    bool table_is_current;
    quern_byte_buffer letters; /* ranks_letter: those to apply here */
    quern_byte_buffer far;     /* ranks_letter: to all ranks */
    quern_byte_buffer pending; /* ranks_letter: events to emit before the next frame */
    quern_byte_buffer list;    /* quern_entity: a tree */
    uint64_t letter_count;     /* messages that this rank has sent */
    quern_archive *archive;
    quern_entity outside; /* an entity outside of the trees that move, to which one of them refers */
    uint32_t slot;        /* of the next checkpoint */
    uint64_t run_number;  /* tells apart checkpoints of several runs */
    uint64_t waiting_since_ns;
    uint32_t zone_name;    /* of exchanges, in the trace */
    quern_trace_zone zone; /* the present exchange */
    quern_ranks_stats own, all;
};

/* -------------------------------------------------------------------------------------------- memory */

/* Appends bytes, or room for them if `bytes` is NULL, and returns their address. NULL, with a message: there is no memory. */
void *quern__ranks_append(quern_byte_buffer *buffer, const void *bytes, size_t size_bytes);

/* Number of items of a type in a buffer, and the items. */
#define RANKS_COUNT(buffer, type) ((uint32_t)((buffer).size_bytes / sizeof(type)))

/* -------------------------------------------------------------------------------------- ranks_wire.c */

quern_result quern__ranks_fail_null(const char *call, const char *argument);

/* Begins an exchange without packets. */
void quern__ranks_begin(quern_ranks *ranks);
void quern__ranks_expect(quern_ranks *ranks, uint32_t from);
quern_result quern__ranks_send(quern_ranks *ranks, uint32_t to, const quern_byte_buffer *bytes);

/* Receives packets. Stores whether the exchange is complete. */
quern_result quern__ranks_receive(quern_ranks *ranks, bool *out_complete);

/* Begins to combine the numbers over all ranks. The exchanges of it are complete when quern__ranks_reduce stores true. */
quern_result quern__ranks_begin_reduce(quern_ranks *ranks, uint32_t sum_count, uint32_t minimum_count);
quern_result quern__ranks_reduce(quern_ranks *ranks, bool *out_complete);

/* Tells all other ranks that this one has failed, with the present message, and returns `result`. */
quern_result quern__ranks_fail(quern_ranks *ranks, quern_result result);

uint64_t quern__ranks_checksum(const void *bytes, size_t size_bytes);
double quern__ranks_now(const quern_ranks *ranks);
void quern__ranks_close_wire(quern_ranks *ranks);

/* ------------------------------------------------------------------------------------- ranks_space.c */

/* Returns the coordinates of a position in units. */
void quern__ranks_units(const quern_ranks *ranks, const float *position, int64_t units[3]);
uint32_t quern__ranks_find(const quern_ranks *ranks, const int64_t units[3]);
bool quern__ranks_is_near(const quern_ranks *ranks, const ranks_box *box, const int64_t units[3]);

/* Whether a position is in a box of lengths; false for NaN. */
static inline bool quern__ranks_contains(const ranks_lengths *box, const float *position,
                                         uint32_t dimensions)
{
    for (uint32_t i = 0; i < dimensions; i++)
        if (!((double)position[i] > box->min[i] && (double)position[i] < box->max[i])) return false;
    return true;
}

/* A bisection: the extent of all roots, then one histogram for each level of the tree. */
quern_result quern__ranks_measure_extent(quern_ranks *ranks);
quern_result quern__ranks_begin_division(quern_ranks *ranks);
quern_result quern__ranks_measure_level(quern_ranks *ranks, uint64_t weight, bool *out_complete);
quern_result quern__ranks_divide_level(quern_ranks *ranks);
quern_result quern__ranks_end_division(quern_ranks *ranks);

/* -------------------------------------------------------------------------------------- ranks_move.c */

/* Lists the roots that another rank has to own, by rank. Stores how many go to ranks that are no neighbours. */
quern_result quern__ranks_list_leaving(quern_ranks *ranks, int64_t *out_far_count);
/* Sends them, to neighbours or to all ranks, and expects those of the others. */
quern_result quern__ranks_send_leaving(quern_ranks *ranks, bool to_all);
quern_result quern__ranks_take_arriving(quern_ranks *ranks);
quern_result quern__ranks_send_ghosts(quern_ranks *ranks);
quern_result quern__ranks_take_ghosts(quern_ranks *ranks);
quern_result quern__ranks_check_ghosts(quern_ranks *ranks);

/* Lets processor time since the last run not count, if the transport simulates a network. */
void quern__ranks_skip_time(const quern_ranks_transport *transport);

/* Puts the numbers of this rank in its place among those of all ranks, which are 0. */
void quern__ranks_put_own(quern_ranks *ranks, int64_t *numbers);
/* Keeps the sums of these numbers. Errors: OUT_OF_MEMORY. */
quern_result quern__ranks_take_list(quern_ranks *ranks, const int64_t *numbers);
/* Destroys all ghosts, and forgets which of the own entities others have. */
quern_result quern__ranks_forget_ghosts(quern_ranks *ranks);

/* ----------------------------------------------------------------------------------- ranks_letters.c */

/* Returns the owned entity or ghost with an id; null if there is none, or, with an error, no memory. */
quern_result quern__ranks_find_entity(quern_ranks *ranks, uint64_t id, quern_entity *out_entity);
/* Takes the messages of the frame: to own entities into `letters`, to ghosts into `out` of their ranks, others into `far`. */
quern_result quern__ranks_sort_letters(quern_ranks *ranks);
quern_result quern__ranks_send_letters(quern_ranks *ranks, bool has_far);
quern_result quern__ranks_apply_letters(quern_ranks *ranks);
quern_result quern__ranks_emit_pending(quern_ranks *ranks);

/* Checks letters that come from outside. */
bool quern__ranks_letters_are_good(const quern_ranks *ranks, const void *bytes, size_t size_bytes);

/* ------------------------------------------------------------------------------------- ranks_store.c */

/* Checks that files can be written to the folder. */
quern_result quern__ranks_try_folder(quern_ranks *ranks);
/* Writes the file of this rank. */
quern_result quern__ranks_save(quern_ranks *ranks);
/* Makes the files of all ranks the last checkpoint. */
quern_result quern__ranks_commit(quern_ranks *ranks);
quern_result quern__ranks_load(quern_ranks *ranks);
/* Chooses the slot that a checkpoint of an earlier run does not use, so that it is whole until this run has one. */
void quern__ranks_spare_checkpoint(quern_ranks *ranks);

/* ------------------------------------------------------------------ ranks_posix.c, ranks_windows.c */

/* Forces a file to disk. */
bool quern__ranks_force(FILE *file);
/* Forces the names of files to disk, where a folder can be. */
void quern__ranks_force_folder(const char *path);
/* Gives a file the name of another one, which it replaces. */
bool quern__ranks_replace(const char *from, const char *to);
/* Returns the processor time of the process. */
uint64_t quern__ranks_processor_ns(void);

#endif
