/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_KIT_STATES_H
#define QUERN_KIT_STATES_H

/** @file
 * States of a program, such as menu, playing and paused: systems that run on entering, in and on leaving one, and entities
 * that live as long as a state. Link quern::quern_states, and after it quern::quern.
 *
 *     enum { MENU, PLAYING };
 *     const quern_states_def def = {.name = "game", .states = {"menu", "playing"}};
 *     quern_states_create(world, &def, &states);
 *     quern_states_add_systems(states, schedule, update);
 *     ...
 *     .name = "build level", .sets = {"enter playing"}
 *     .name = "move", .sets = {"playing"}
 *     .name = "draw menu", .sets = {"menu"}
 *
 * quern_states_add_systems adds three sets for each state X: "X" runs while the program is in it, "enter X" in the first frame
 * of it, "leave X" in the first frame of the next one. A change of state takes effect between two frames: all systems of
 * a frame see one state. In the first frame of a state, the order is: systems of "leave ...", then the entities of the old
 * state are destroyed, then "enter ...", and then the systems of the new state see what those have recorded. The first frame
 * of all enters the first state.
 *
 * The state is a value of a resource, quern_state. A system changes it by quern_context_set_state if it declares the resource
 * with QUERN_ACCESS_WRITE; a program does between frames with quern_states_set. Histories, archives, replays, hashes, JSON and the
 * inspector treat it as any other resource.
 *
 * Threads: main, between frames, unless a comment says otherwise. */

#include <quern/quern.h>

#ifdef __cplusplus
extern "C" {
#endif

#define QUERN_MAX_STATES 16          /**< Largest number of states. */
#define QUERN_NO_STATE   0xFFFFFFFFu /**< `left` or `entered` in a frame without such a change. */

/** States of one kind; see quern_states_create. */
typedef struct quern_states quern_states;

/** Describes states. */
typedef struct quern_states_def {
    /** Name of 1 to 24 bytes: the name of the resource, and part of the names of systems. Required. */
    const char *name QUERN__ZERO;
    /** Names of the states, 1 to 24 bytes each; the list ends at the first NULL. They are names of sets, so no other set or
     * system of the schedule may have them. At least one. */
    const char *states[QUERN_MAX_STATES] QUERN__ZERO;
    uint32_t first QUERN__ZERO;            /**< Index of the first state. */
    quern_allocator allocator QUERN__ZERO; /**< All zero: quern_allocator_default(). */
} quern_states_def;

/** The value of the resource: indices of states. */
typedef struct quern_state {
    uint32_t current; /**< State of this frame. */
    uint32_t next;    /**< State of the next frame; an index that does not exist changes nothing. */
    uint32_t left;    /**< State that ended with the frame before, or QUERN_NO_STATE. */
    uint32_t entered; /**< State that begins with this frame, or QUERN_NO_STATE. */
    bool is_again;    /**< The next frame enters its state also if that is the current one. */
} quern_state;

/** Creates states and their resource, which is in the first state. A world that has the resource already, such as one that
 * was loaded, keeps its value. The resource, and the tags, stay in the world when the states are destroyed. Until
 * quern_states_destroy the world is not destroyed. Errors: NULL_ARGUMENT, INVALID_ARGUMENT (a name, no states, or first),
 * DUPLICATE_NAME (two states have one name; a resource or component of such a name has another type; see also
 * quern_world_disabled_tag), LIMIT, WORLD_LOCKED,
 * OUT_OF_MEMORY. */
QUERN_API quern_result quern_states_create(quern_world *world, const quern_states_def *def,
                                           quern_states **out_states);

/** Destroys states. Call it after the schedules with their systems are destroyed, or after quern_states_remove_systems. NULL is
 * allowed. */
QUERN_API void quern_states_destroy(quern_states *states);

/** Adds the sets, the systems "NAME clear STATE", which destroy the entities of a state that was left, and the system
 * "NAME change", which changes the state at the end of the frame. The former are in this phase, the latter in a phase of
 * its own, "NAME change", which is added behind all others. Systems of "leave ..." must be in this phase or an earlier one,
 * those of "enter ..." in this or a later one. Systems behind the phase "NAME change" would see the next state one phase
 * early: keep that phase behind those of the program. None of these phases may have a fixed step: in a frame without a step their
 * systems would miss the change. The call refuses a phase that has one; do not give it one later.
 *
 * Errors, with nothing added: NULL_ARGUMENT, INVALID_ARGUMENT (no such phase, or one with a fixed step), DUPLICATE_NAME (the schedule has a set, system or phase of such a
 * name), LIMIT, WORLD_LOCKED, OUT_OF_MEMORY. */
QUERN_API quern_result quern_states_add_systems(quern_states *states, quern_schedule *schedule,
                                                uint32_t phase);

/** In a callback of a system that declares the resource with QUERN_ACCESS_WRITE: makes the next frame one of the state with this
 * index. The last call of a frame decides. Nothing changes if that is the current state, unless `restarts` is true: then the
 * next frame leaves the state and enters it again. If the system does not declare the resource so, the call changes nothing and
 * is refused like quern_context_resource_write. Errors: NULL_ARGUMENT, INVALID_ARGUMENT (index). Threads: the callback's. */
QUERN_API quern_result quern_context_set_state(quern_context *context, const quern_states *states,
                                               uint32_t next, bool restarts);

/** Removes the sets, the systems and the phase that quern_states_add_systems has added. Systems of the program that are in the sets
 * remain, and frames are refused until they are removed or replaced. Errors, with nothing removed: NULL_ARGUMENT,
 * INVALID_ARGUMENT (the schedule has none of them; the phase has a system of the program), WORLD_LOCKED. */
QUERN_API quern_result quern_states_remove_systems(quern_states *states, quern_schedule *schedule);

/** Makes the next frame the first one of the state with this index, also if the state is the current one. Systems call
 * quern_context_set_state instead, also exclusive ones. Errors: NULL_ARGUMENT, INVALID_ARGUMENT (index), WORLD_LOCKED (also in
 * exclusive systems). */
QUERN_API quern_result quern_states_set(quern_states *states, uint32_t next);

/** Returns the index of the state of the next frame; QUERN_NO_STATE, with a message, for NULL and while a frame runs. */
QUERN_API uint32_t quern_states_get(const quern_states *states);

/** Returns the resource, or a null handle for NULL. Thread-safe. */
QUERN_API quern_resource quern_states_resource(const quern_states *states);

/** Returns the tag "only in STATE". Entities with it, also disabled ones, are destroyed when that state is left, with the entities that are
 * related to them by the policies of relations. Returns a null handle if states is NULL or there is no such index.
 * Thread-safe. */
QUERN_API quern_component quern_states_tag(const quern_states *states, uint32_t index);

#ifdef __cplusplus
}
#endif

#endif
