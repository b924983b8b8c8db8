/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_KIT_RANKS_H
#define QUERN_KIT_RANKS_H

/** @file
 * One world on several ranks, which are processes that exchange messages, such as those of MPI. Link quern::quern_ranks, and
 * after it quern::quern. <quern/kit/ranks_mpi.h> has the transport of MPI; docs/machines.md is the guide.
 *
 *     const quern_ranks_def def = {.world = world, .transport = transport, .id = number, .position = place,
 *                                  .planar = true, .radius = 1, .ghost = {motion}};
 *     quern_ranks_create(&def, &ranks);
 *     ... // systems and schedule
 *     quern_ranks_start(ranks, schedule, jobs, 1.0 / 60);
 *     if (quern_ranks_frame(ranks) == 0) populate(ranks); // each rank creates a share of the entities
 *     quern_ranks_run(ranks, 1000, &hash);
 *
 * Space is divided among the ranks by recursive bisection of measured time. Each entity is *owned* by the rank that has its
 * position, and moves there with its components, its relations, its name, and events that wait for it. Near borders, the other
 * ranks have *ghosts*: copies with the position and the components of `ghost`, without the id. Systems see ghosts like any
 * entity, and act on owned ones by a term on the id.
 *
 * The result by id (quern_world_hash_by) is the same for every number of ranks and threads if the program keeps five rules:
 *
 *   1. What an entity does depends on its values, on the *set* of entities within the radius, and on the globals: not on the
 *      order of entities, nor on handles. Sums over neighbours are therefore of whole numbers.
 *   2. Random numbers are functions of id and frame (<quern/kit/random.h>), and ids of new entities of the id of their
 *      parent (quern_ranks_child_id).
 *   3. Entities refer to entities outside of their tree by id, not by handle.
 *   4. A system changes other entities only by messages (quern_ranks_send), also if they are on the same rank.
 *   5. Ghosts have the values of the beginning of the frame. So systems that look at neighbours run before those that write
 *      positions and components of `ghost`, or look at copies from before, such as a grid.
 *
 * Reactions see an entity that arrives as created, and one that leaves as removed. Events of the world itself, which wait for
 * readers of a later frame, stay on their rank: use QUERN_RANKS_EMIT.
 *
 * Values of components are exchanged as they are in memory, so all ranks run the same program on the same kind of machine.
 *
 * Threads: main, between frames, unless a comment says otherwise. */

#include <quern/kit/random.h>
#include <quern/quern.h>

#ifdef __cplusplus
extern "C" {
#endif

#define QUERN_RANKS_MAX               4096 /**< Maximum number of ranks. */
#define QUERN_RANKS_MAX_COMPONENTS    16 /**< Maximum number of components of ghosts, and of local ones. */
#define QUERN_RANKS_MAX_HOLDS         8  /**< Maximum number of relations that hold entities together. */
#define QUERN_RANKS_MAX_GLOBALS       16 /**< Maximum number of globals. */
#define QUERN_RANKS_MAX_MESSAGE_BYTES 64 /**< Largest value of a message. */

/** The part of one rank in a world on several ranks. */
typedef struct quern_ranks quern_ranks;

/* --------------------------------------------------------------------------------------- transport */

/** How a rank exchanges bytes with the others. Messages from one rank to another arrive in their order. All zero: there is
 * one rank. */
typedef struct quern_ranks_transport {
    uint32_t rank QUERN__ZERO;       /**< Index of this rank. */
    uint32_t rank_count QUERN__ZERO; /**< Number of ranks; 0 means 1. */
    /** Sends bytes to another rank, without waiting for it. The bytes are valid during the call. Returns false if they
     * cannot be sent. */
    bool (*send)(void *user_data, uint32_t to, const void *bytes, size_t size_bytes) QUERN__ZERO;
    /** Replaces the content of `bytes` by the next message that has arrived from any rank, and stores the rank. Returns
     * false, without waiting, if there is none. */
    bool (*receive)(void *user_data, quern_byte_buffer *bytes, uint32_t *out_from) QUERN__ZERO;
    /** Lets other processes run while this one waits for messages. NULL: the process goes on asking. */
    void (*wait)(void *user_data) QUERN__ZERO;
    /** Returns the seconds of a clock that never goes back. NULL: quern_clock_ns. */
    double (*now)(void *user_data) QUERN__ZERO;
    void *user_data QUERN__ZERO; /**< Passed to the functions. */
} quern_ranks_transport;

/** Ranks that are all in one process, for tests and for machines without MPI. */
typedef struct quern_ranks_alone quern_ranks_alone;

/** Creates the memory through which the ranks of one process exchange messages. allocator may be NULL. Errors:
 * NULL_ARGUMENT, INVALID_ARGUMENT (rank_count is 0 or above QUERN_RANKS_MAX), OUT_OF_MEMORY. */
QUERN_API quern_result quern_ranks_alone_create(uint32_t rank_count, const quern_allocator *allocator,
                                                quern_ranks_alone **out_alone);

/** A network between the ranks of one process, which is simulated. Each rank sends one message after another. */
typedef struct quern_ranks_network {
    double latency_seconds;  /**< Time from the last byte sent to the message received, 0 or more. */
    double bytes_per_second; /**< Bytes that a rank can send in a second, above 0. */
} quern_ranks_network;

/** Simulates a network, so that a run in one process predicts one on as many machines. Each rank gets a clock, which moves by
 * the processor time that the rank needs, and to the arrival of messages for which it waits. Ranks then do the same work, with
 * the same result. Run them on one thread, with all of them in one list of quern_ranks_run_all. Call it before
 * quern_ranks_alone_transport. Errors: NULL_ARGUMENT, INVALID_ARGUMENT (the network is impossible; a transport was given
 * out). */
QUERN_API quern_result quern_ranks_alone_set_network(quern_ranks_alone *alone,
                                                     const quern_ranks_network *network);

/** Returns the seconds that the ranks have needed, by the latest clock; 0 without a network and for NULL. Processor time since
 * the last run, such as that of creating entities, does not count. */
QUERN_API double quern_ranks_alone_seconds(quern_ranks_alone *alone);

/** Destroys the memory, after the ranks that use it. NULL is allowed. */
QUERN_API void quern_ranks_alone_destroy(quern_ranks_alone *alone);

/** Stores the transport of one of the ranks of one process. Errors: NULL_ARGUMENT, INVALID_ARGUMENT (there is no such rank). */
QUERN_API quern_result quern_ranks_alone_transport(quern_ranks_alone *alone, uint32_t rank,
                                                   quern_ranks_transport *out_transport);

/* ---------------------------------------------------------------------------------------- definition */

/** How the values of a global are combined. */
typedef enum quern_ranks_global_kind {
    QUERN_RANKS_SUM = 1, /**< The sum, which wraps around. */
    QUERN_RANKS_MINIMUM, /**< The least value; INT64_MAX if there is none. */
    QUERN_RANKS_MAXIMUM  /**< The greatest value; INT64_MIN if there is none. */
} quern_ranks_global_kind;

/** A value over all entities of all ranks. Whole numbers have one sum in every order, so the result does not depend on the
 * number of ranks: multiply fractions by a power of two and round them. */
typedef struct quern_ranks_global {
    quern_ranks_global_kind kind QUERN__ZERO; /**< How values are combined. 0 ends the list. */
    quern_component component QUERN__ZERO;    /**< The component of which values are combined. Required. */
    /** Returns the number for a value of the component. NULL: 1, so that a sum is the number of entities. */
    int64_t (*value)(const void *component) QUERN__ZERO;
} quern_ranks_global;

/** Value of the resource quern_ranks_resource, which systems may read: the same on all ranks. */
typedef struct quern_ranks_state {
    uint64_t frame;                           /**< Number of the frame, from 0. */
    int64_t globals[QUERN_RANKS_MAX_GLOBALS]; /**< Globals after the frame before; 0 in the first one. */
} quern_ranks_state;

/** Describes a world on several ranks. All ranks have the same definition, except for `transport`. */
typedef struct quern_ranks_def {
    quern_world *world QUERN__ZERO;              /**< The world. It must outlive the object. Required. */
    quern_ranks_transport transport QUERN__ZERO; /**< How ranks exchange bytes. All zero: one rank. */
    /** Component of 8 bytes, a uint64_t: the number of an entity, the same in every world and unique. Required. */
    quern_component id QUERN__ZERO;
    /** Component that begins with the coordinates, as 2 or 3 floats. Required. */
    quern_component position QUERN__ZERO;
    bool planar QUERN__ZERO;  /**< Whether there are two dimensions, without z. */
    float radius QUERN__ZERO; /**< Distance up to which an entity sees others, above 0. Required. */
    /** Largest distance of an entity from the root of its tree, if trees have positions below the root. */
    float reach QUERN__ZERO;
    /** Components that ghosts have besides the position: plain bytes without entity fields, or tags. They cannot be disabled. */
    quern_component ghost[QUERN_RANKS_MAX_COMPONENTS] QUERN__ZERO;
    /** Components that stay where they are: entities arrive without them. */
    quern_component local[QUERN_RANKS_MAX_COMPONENTS] QUERN__ZERO;
    /** Relations that hold entities together: sources move with their target, and the root decides where. */
    quern_relation holds[QUERN_RANKS_MAX_HOLDS] QUERN__ZERO;
    quern_ranks_global globals[QUERN_RANKS_MAX_GLOBALS] QUERN__ZERO; /**< Values over all ranks. */
    /** Frames after which the division may change, if the slowest rank needs a tenth more time than the average. 0: 16. */
    uint32_t balance_every QUERN__ZERO;
    bool disable_balance QUERN__ZERO; /**< Whether the division stays as it is at the beginning. */
    /** Folder of checkpoints, which exists and is the same for all ranks; NULL: none. Copied. */
    const char *folder QUERN__ZERO;
    uint32_t checkpoint_every QUERN__ZERO; /**< Frames from one checkpoint to the next. 0: only restarts. */
    bool restart QUERN__ZERO; /**< Whether quern_ranks_start loads the last checkpoint of the folder. */
    double timeout_seconds QUERN__ZERO; /**< Time after which a rank that is silent is lost. 0: 10. */
    /** Whether frames check that systems do not write to ghosts. It costs a comparison of all ghosts per frame, and is always
     * on in builds with QUERN_CHECKS. */
    bool check_ghosts QUERN__ZERO;
    /** Whether each quern_ranks_run ends with what quern_ranks_list tells: 56 bytes for each rank, in each of the packets of
     * two sums. */
    bool list_ranks QUERN__ZERO;
    /** A trace that records the exchanges of the rank on track 0, while it runs; NULL: none. It must outlive the object. */
    quern_trace *trace QUERN__ZERO;
    quern_allocator allocator QUERN__ZERO; /**< All zero: quern_allocator_default(). */
} quern_ranks_def;

/** Creates the part of this rank. Registers the component "ranks ghost", the resource "ranks", and the event "ranks
 * message"; they stay in the world. Errors: NULL_ARGUMENT, INVALID_ARGUMENT (id, position or a component of `ghost` has the
 * wrong size, fields or hooks; radius; transport; a global without component; the folder cannot be written),
 * UNKNOWN_COMPONENT, DUPLICATE_NAME, LIMIT, WORLD_LOCKED, OUT_OF_MEMORY. */
QUERN_API quern_result quern_ranks_create(const quern_ranks_def *def, quern_ranks **out_ranks);

/** Destroys the part of this rank. Its entities remain, and ghosts until another part is started (quern_ranks_start). Call it
 * before the world is destroyed. NULL is allowed. */
QUERN_API void quern_ranks_destroy(quern_ranks *ranks);

/* ------------------------------------------------------------------------------------------- frames */

/** Sets a schedule that runs first in each frame, while ghosts are on their way: what a rank does with its own entities hides
 * the latency of the network. Its rows are of owned entities: systems whose terms match ghosts are refused. It changes neither
 * which entities have a position nor positions and components of `ghost`, since ghosts have the values of the beginning of the
 * frame; with check_ghosts, that is an error of quern_ranks_run. All ranks call it, or none, before quern_ranks_start.
 *
 * Errors: NULL_ARGUMENT; INVALID_ARGUMENT (started or called before; the schedule belongs to another world; a system writes a
 * component of ghosts, or its terms match ghosts); those of quern_schedule_compile. */
QUERN_API quern_result quern_ranks_overlap(quern_ranks *ranks, quern_schedule *schedule);

/** Sets what frames run, destroys ghosts that an earlier part has left in the world, and loads the last checkpoint if `restart` is set: also one of another number of ranks. The world must
 * then never have had an entity. jobs may be NULL.
 *
 * Errors: NULL_ARGUMENT; INVALID_ARGUMENT (the schedule belongs to another world; a system writes a component of ghosts, and
 * its terms match ghosts; it was started before); IO (a file cannot be read); BAD_ARCHIVE (a file is damaged or truncated, or
 * belongs to another checkpoint: the message names file and frame); those of quern_world_load. */
QUERN_API quern_result quern_ranks_start(quern_ranks *ranks, quern_schedule *schedule, quern_jobs *jobs,
                                         double delta_seconds);

/** Runs frames on all ranks; each rank calls it with the same number. Before the first frame, entities move to their ranks:
 * each may have been created by any rank, but by one only. out_hash, which may be NULL on all ranks or on none, receives the hash
 * of all entities by id after the last frame.
 *
 * Errors: NULL_ARGUMENT; INVALID_ARGUMENT (not started; a ghost was written; an entity without an id has a position; two
 * entities near a border have one id; a handle or target
 * outside of the tree of an entity that moves); UNAVAILABLE (a rank did not answer for `timeout_seconds`: the message
 * names it, the last frame, and the checkpoint to go on from; every later call fails); CANCELLED (another rank has failed: the
 * message has that of the other); BAD_ARCHIVE (a rank has sent damaged bytes, or runs another program); IO
 * (a checkpoint could not be written: the older one remains, all ranks return this after the same frame, and the call can be repeated);
 * those of quern_schedule_run; OUT_OF_MEMORY. */
QUERN_API quern_result quern_ranks_run(quern_ranks *ranks, uint64_t frame_count, uint64_t *out_hash);

/** Runs frames of ranks that are all in this process, one after another. Errors: as quern_ranks_run, of the first rank that
 * fails. */
QUERN_API quern_result quern_ranks_run_all(quern_ranks *const *list, uint32_t count, uint64_t frame_count,
                                           uint64_t *out_hash);

/** Returns the number of frames that were run, also before a restart; 0 for NULL. */
QUERN_API uint64_t quern_ranks_frame(const quern_ranks *ranks);

/** Returns the index of this rank; 0 for NULL. Thread-safe. */
QUERN_API uint32_t quern_ranks_index(const quern_ranks *ranks);

/** Returns the number of ranks; 0 for NULL. Thread-safe. */
QUERN_API uint32_t quern_ranks_count(const quern_ranks *ranks);

/** Returns whether this rank is to create the entity with an index at the beginning: each index belongs to one rank. false for
 * NULL. */
static inline bool quern_ranks_creates(const quern_ranks *ranks, uint64_t index)
{
    const uint32_t count = quern_ranks_count(ranks);
    return count > 0 && index % count == quern_ranks_index(ranks);
}

/** Returns the resource with the value quern_ranks_state, or null for NULL. Thread-safe. */
QUERN_API quern_resource quern_ranks_resource(const quern_ranks *ranks);

/** Returns the value of the resource after the last frame; NULL for NULL. */
QUERN_API const quern_ranks_state *quern_ranks_get_state(const quern_ranks *ranks);

/** Value of the component of ghosts. */
typedef struct quern_ranks_ghost_info {
    uint64_t id;    /**< Number of the entity of which the ghost is a copy. */
    uint32_t owner; /**< Rank that owns the entity. */
    uint32_t slot;  /**< Internal. */
} quern_ranks_ghost_info;

/** Returns the component that only ghosts have, a quern_ranks_ghost_info, or null for NULL. Thread-safe. */
QUERN_API quern_component quern_ranks_ghost(const quern_ranks *ranks);

/** Returns the number for a new entity: a function of its parent's, the frame, and `index`, which tells apart several children
 * of one frame (below 65,536). Numbers are 64 random bits, so two of a million are equal with a probability of 3e-8.
 * Thread-safe. */
static inline uint64_t quern_ranks_child_id(uint64_t parent_id, uint64_t frame, uint32_t index)
{
    return quern_random(parent_id, frame ^ QUERN__RANDOM_CAST(uint64_t, 1) << 63 ^
                                       QUERN__RANDOM_CAST(uint64_t, index) << 40);
}

/* ----------------------------------------------------------------------------------------- messages */

/** What a message does to the entity that it is for. */
typedef enum quern_ranks_verb {
    QUERN_RANKS_SET = 1,    /**< Sets the component, as quern_commands_set. */
    QUERN_RANKS_REMOVE,     /**< Removes the component, as quern_commands_remove. */
    QUERN_RANKS_ACCUMULATE, /**< Combines the value with the component's, as quern_commands_accumulate. */
    QUERN_RANKS_DESTROY,    /**< Destroys the entity, as quern_commands_destroy. */
    /** Emits an event on the rank of the entity, before the next frame. The first described field of the event that is an
     * entity receives the handle of the entity. */
    QUERN_RANKS_EMIT
} quern_ranks_verb;

/** A message to an entity, on whatever rank it is. */
typedef struct quern_ranks_message {
    quern_ranks_verb verb QUERN__ZERO; /**< What it does. */
    /** Place of the system in the serial order, if several systems send messages to the same entities. */
    uint32_t order QUERN__ZERO;
    uint64_t from QUERN__ZERO;             /**< Id of the entity that sends it, which this rank owns. */
    uint64_t to QUERN__ZERO;               /**< Id of the entity that it is for. */
    quern_component component QUERN__ZERO; /**< Of SET, REMOVE and ACCUMULATE. */
    quern_combine combine QUERN__ZERO;     /**< Of ACCUMULATE. */
    quern_event event QUERN__ZERO;         /**< Of EMIT. */
    const void *value
        QUERN__ZERO; /**< Value of the component or event, copied by the call; NULL for a tag. */
} quern_ranks_message;

/** Returns the event that systems with quern_ranks_send declare in `emits`; null for NULL. Call it before quern_ranks_start on
 * all ranks or on none: frames of programs that never call it do not look for messages. */
QUERN_API quern_event quern_ranks_messages(quern_ranks *ranks);

/** Sends a message. After the frame, the ranks that own the receivers apply messages in their serial order: by `order`, then by
 * `from`, then as the callbacks of the sender have sent them, as the commands of one callback of a system. A message to
 * an entity that is not alive then is dropped, and counted. Returns false, with a message, if an argument is wrong
 * (INVALID_ARGUMENT: verb, a component or event above QUERN_RANKS_MAX_MESSAGE_BYTES or with hooks) or there is no memory.
 *
 * A message to an entity on this rank or a ghost goes to one rank. Others go to all ranks, as no rank knows where the
 * entity is. Thread-safe in systems that declare the event. */
QUERN_API bool quern_ranks_send(quern_context *context, const quern_ranks *ranks,
                                const quern_ranks_message *message);

/* --------------------------------------------------------------------------------------- statistics */

/** Statistics, of one rank or added up over all. Counts are those since the object was created. */
typedef struct quern_ranks_stats {
    uint64_t owned_count;   /**< Entities with id and position at present. */
    uint64_t ghost_count;   /**< Ghosts of all frames. */
    uint64_t moved_count;   /**< Entities that have left for another rank, without those below them. */
    uint64_t message_count; /**< Messages applied. */
    uint64_t far_count;     /**< Messages sent to all ranks. */
    /** Messages to entities that were not alive. Those of quern_ranks_send count in the sum over all ranks only, since the
     * rank that sends one does not know. */
    uint64_t dropped_count;
    uint64_t sent_bytes;      /**< Bytes sent. */
    uint64_t packet_count;    /**< Packets sent. */
    uint64_t run_ns;          /**< Processor time in quern_schedule_run, in nanoseconds. */
    uint64_t own_ns;          /**< Processor time in this library, without waiting for others. */
    uint64_t wait_ns;         /**< Time of waiting for others. */
    uint64_t slowest_ns;      /**< Sum over frames of run_ns of the slowest rank. */
    uint64_t bisection_count; /**< How often the division was computed. */
    uint64_t
        checkpoint_frame; /**< Frames that the last complete checkpoint has run; UINT64_MAX: there is none. */
    uint32_t neighbour_count; /**< Ranks with which ghosts are exchanged. */
} quern_ranks_stats;

/** Returns the statistics of this rank, and of all ranks as of the end of the last quern_ranks_run. Both may be NULL. Errors:
 * NULL_ARGUMENT (ranks). */
QUERN_API quern_result quern_ranks_get_stats(const quern_ranks *ranks, quern_ranks_stats *out_own,
                                             quern_ranks_stats *out_all);

/** An entry of the list that all ranks have of all ranks, if `list_ranks` of the definition is set. */
typedef struct quern_ranks_place {
    uint64_t owned_count,
        ghost_count; /**< Entities with an id, and ghosts, at the end of the last quern_ranks_run. */
    uint64_t run_ns, own_ns, wait_ns;  /**< Times of the last quern_ranks_run; see quern_ranks_stats. */
    uint64_t sent_bytes, packet_count; /**< Sent in the last quern_ranks_run. */
    float least[3], most[3];           /**< Its box; infinite at the edges of space. */
} quern_ranks_place;

/** Stores what is known of the first `capacity` ranks, and returns the number of ranks; 0 for NULL, without `list_ranks`, and
 * before the first quern_ranks_run has ended. out_places may be NULL if capacity is 0. */
QUERN_API uint32_t quern_ranks_list(const quern_ranks *ranks, quern_ranks_place *out_places,
                                    uint32_t capacity);

/** Writes what quern_ranks_list tells as a JSON list of objects, for a panel of the inspector (quern_inspect_panel) of any rank.
 * Errors: NULL_ARGUMENT; IO (the sink could not write). */
QUERN_API quern_result quern_ranks_write_json(const quern_ranks *ranks, quern_sink sink);

#define QUERN_RANKS_MAX_COLUMNS 1024 /**< Maximum width and height of a map. */

/** Writes a map of the division as lines of text: each place has the mark of its rank, 0 to 9, a to z, A to Z, and again. x
 * grows to the right and y upwards; with three dimensions, the plane through the middle. The map ends at the outermost roots of
 * when space was divided. Errors: NULL_ARGUMENT; INVALID_ARGUMENT (columns or rows are 0 or above QUERN_RANKS_MAX_COLUMNS);
 * IO (the sink could not write). */
QUERN_API quern_result quern_ranks_draw(const quern_ranks *ranks, uint32_t columns, uint32_t rows,
                                        quern_sink sink);

#ifdef __cplusplus
}
#endif

#endif
