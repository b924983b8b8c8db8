/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_KIT_BACKGROUND_H
#define QUERN_KIT_BACKGROUND_H

/** @file
 * Work that takes longer than a frame: finding paths, generating terrain, loading. Link quern::quern_background, and after
 * it quern::quern.
 *
 * An entity asks for work by a component, the *request*, and gets another component, the *result*, a fixed number of frames
 * later. Meanwhile low-priority jobs compute it beside the frames:
 *
 *     const quern_background_def def = {
 *         .name = "paths", .jobs = jobs, .request = path_request, .result = path, .step = search, .frames = 10};
 *     quern_background_create(world, &def, &paths);
 *     quern_background_add_systems(paths, schedule, phase);
 *     ...
 *     QUERN_SET(world, wolf, QUERN_VALUE(PathRequest, .goal = den)); // ten frames later the wolf has a Path
 *
 * The step function computes the result from the request alone. So the world stores the requests and the frames that are
 * left, and jobs in progress are no part of it: hashes are equal at every number of threads and at every speed, histories
 * and archives keep pending work, and what a restored or loaded world still lacks is computed again. If the result is not
 * ready in its frame, the frame waits for it; quern_background_get_stats tells how often.
 *
 * In the frame in which the result is due, the entity gets the result and loses the request. If the request was set again
 * in between, the result is that of the new value, in the same frame. Removing the request, or destroying the entity, ends
 * the work. Copies of an entity with a request have pending work of their own. A disabled entity waits. A request that is
 * disabled by itself (can_disable) is not begun; work that has begun goes on.
 *
 * Threads: main, between frames, unless a comment says otherwise. */

#include <quern/quern.h>

#ifdef __cplusplus
extern "C" {
#endif

#define QUERN_BACKGROUND_MAX_FRAMES      65536   /**< Largest number of frames from request to result. */
#define QUERN_BACKGROUND_MAX_READY       64      /**< Results that quern_background_poll lists at most. */
#define QUERN_BACKGROUND_MAX_STATE_BYTES 1048576 /**< Largest size of the state of one computation. */

/** Work of one kind; see quern_background_create. */
typedef struct quern_background quern_background;

/** A computation in progress, for the step function. */
typedef struct quern_background_step {
    const void *request; /**< A copy of the request. */
    void *result;        /**< The result: constructed, or zero bytes, at the first step. */
    void *
        state; /**< state_bytes of memory that stays from step to step, zero at the first one. NULL if 0. */
    uint64_t index; /**< Number of the step, from 0. */
} quern_background_step;

/** Does a part of a computation, best some microseconds to a millisecond of it. Returns whether the result is complete.
 *
 * The result may depend only on the request, and on data that does not change while there is pending work: not on the world,
 * times, addresses, or other computations. Called on any thread, also while frames run; never by two threads at a time for
 * one computation. A computation that was cancelled gets no further call, and a new one begins at step 0. */
typedef bool quern_background_function(void *user_data, quern_background_step *step);

/** Describes background work. */
typedef struct quern_background_def {
    /** Name of 1 to 32 bytes. The kit registers a resource of this name, a component "NAME due", and systems "NAME apply" and
     * "NAME begin". Required. */
    const char *name QUERN__ZERO;
    /** Pool whose workers compute with low priority. It must outlive the object. NULL, or a pool of one thread: the system
     * "NAME apply" computes on its own thread for budget_us in each frame. */
    quern_jobs *jobs QUERN__ZERO;
    quern_component request QUERN__ZERO; /**< Component that asks for work. Required; not a tag. */
    quern_component result
        QUERN__ZERO; /**< Component that is set when the work is done. Required; not a tag. */
    quern_background_function *step QUERN__ZERO; /**< The step function. Required. */
    /** Called once for each state after its last step, to free what it refers to, on the thread of the system "NAME apply" or
     * that of quern_background_destroy. May be NULL. */
    void (*end)(void *user_data, void *state) QUERN__ZERO;
    void *user_data QUERN__ZERO; /**< A pointer for step, end and is_equal. */
    /** Frames from the one in which the system "NAME begin" sees the request to the one in which the result is set, up to
     * QUERN_BACKGROUND_MAX_FRAMES. 0: results are set after quern_background_poll has listed them. */
    uint32_t frames QUERN__ZERO;
    /** Processor time in microseconds that all computations may take per frame. The last step may exceed it, and results that
     * are due are computed all the same. 0: no limit on workers; on one thread nothing is computed before it is due. */
    uint32_t budget_us QUERN__ZERO;
    uint32_t state_bytes QUERN__ZERO; /**< Size of the state, up to QUERN_BACKGROUND_MAX_STATE_BYTES. */
    /** Returns whether two requests have the same result. Required for requests with a copy hook. NULL: all bytes are
     * compared. */
    bool (*is_equal)(void *user_data, const void *first, const void *second) QUERN__ZERO;
    /** Number of frames for which results are kept after they were set, or after their request was removed. A history that
     * restores a frame within this distance repeats without computing them again. 0: 16. */
    uint32_t keep_frames QUERN__ZERO;
    quern_allocator allocator QUERN__ZERO; /**< All zero: quern_allocator_default(). */
} quern_background_def;

/** The value of the resource: results that the next frame sets, if `frames` is 0. Record it as an input of replays. */
typedef struct quern_background_ready {
    uint32_t count;                                    /**< Number of entities. */
    quern_entity entities[QUERN_BACKGROUND_MAX_READY]; /**< Entities whose result is set. */
} quern_background_ready;

/** Creates background work without systems, and registers its resource and its component "NAME due". Both stay in the world
 * when it is destroyed; a later object of the same name uses them. Until quern_background_destroy the world is not destroyed.
 * Errors: NULL_ARGUMENT, INVALID_ARGUMENT (name, frames, state_bytes; request and result are the same; one is a tag or is
 * maintained by the world; a request with a copy hook without is_equal; one with a move or destroy hook and no copy hook),
 * UNKNOWN_COMPONENT, DUPLICATE_NAME (a component or resource of that name has another type), LIMIT, WORLD_LOCKED,
 * OUT_OF_MEMORY. */
QUERN_API quern_result quern_background_create(quern_world *world, const quern_background_def *def,
                                               quern_background **out_background);

/** Cancels all computations, waits for the steps in progress, and frees the object. Pending requests stay in the world. Values
 * in memory are destroyed by the hooks that their types had before the layout was last changed, so the code of those must
 * still be there. Call it after the schedules with its systems are destroyed, or the systems are removed. NULL is allowed. */
QUERN_API void quern_background_destroy(quern_background *background);

/** Adds the systems. "NAME apply" counts frames and sets results that are due; "NAME begin" begins what is new. Results
 * can be read after the next sync point. Errors: those of quern_schedule_add_system, with no system added. */
QUERN_API quern_result quern_background_add_systems(quern_background *background, quern_schedule *schedule,
                                                    uint32_t phase);

/** Lists up to QUERN_BACKGROUND_MAX_READY entities whose results are ready in the resource, so that the next frame sets
 * them. What is ready depends on the speed of the machine: a replay repeats it if the resource is one of its inputs, and does
 * not call this. Not for netplay, whose players list different results. Errors: NULL_ARGUMENT, INVALID_ARGUMENT (`frames` is
 * not 0), WORLD_LOCKED. */
QUERN_API quern_result quern_background_poll(quern_background *background);

/** Returns the resource, or a null handle for NULL. Thread-safe. */
QUERN_API quern_resource quern_background_resource(const quern_background *background);

/** Returns the component of entities with pending work, with one U32 field `frames_left`, or a null handle for NULL.
 * Thread-safe. */
QUERN_API quern_component quern_background_due(const quern_background *background);

/** Statistics since the object was created. */
typedef struct quern_background_stats {
    uint32_t pending_count; /**< Requests in the last frame whose result was not due yet. */
    uint32_t kept_count;    /**< Computations in memory: in progress, complete or kept. */
    uint64_t started_count; /**< Computations begun, also after a restore or a changed request. */
    uint64_t applied_count; /**< Results set. */
    uint64_t waited_count;  /**< Results that were due before they were ready, so that the frame waited. */
    uint64_t cancelled_count; /**< Computations that were dropped before they were complete. */
    uint64_t waited_ns;       /**< Time that frames waited, in nanoseconds. */
    uint64_t longest_wait_ns; /**< Longest time that a frame waited for one result. */
    quern_result
        last_result; /**< Error of the last frame: OUT_OF_MEMORY if results are late; LAYOUT_MISMATCH if a type was redefined
                          with another layout, so that no results are set any more; otherwise QUERN_OK. */
} quern_background_stats;

/** Returns statistics. Errors: NULL_ARGUMENT. */
QUERN_API quern_result quern_background_get_stats(const quern_background *background,
                                                  quern_background_stats *out_stats);

#ifdef __cplusplus
}
#endif

#endif
