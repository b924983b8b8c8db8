/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_LOADER_H
#define QUERN_LOADER_H

/** @file
 * For libraries that load code into a living world, such as quern::quern_live: a loader receives what set-up code registers
 * and adds, instead of the world and the schedule. The set-up code need not know of it. */

#include <quern/component.h>
#include <quern/reflect.h>
#include <quern/schedule.h>
#include <quern/world.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Functions that answer calls of set-up code. They may call the same functions, after removing themselves by
 * quern_world_set_loader(world, NULL). All must be set. */
typedef struct quern_loader {
    /** Answers quern_component_register, quern_resource_register and quern_event_register, also for a name that is
     * registered. def: a quern_component_def, quern_resource_def or quern_event_def, not NULL, as `kind` says.
     * *out_bits: the bits of the handle. */
    quern_result (*register_type)(void *user_data, quern_type_kind kind, const void *def,
                                  uint32_t *out_bits);
    /** Answers whether set-up code may use values of a registered type by a C or C++ type. bits: the handle. type: the
     * C++ type, its fields and hooks; if !has_fields, a C type of which only name, size and alignment are known. */
    quern_result (*use_type)(void *user_data, quern_type_kind kind, uint32_t bits,
                             const quern_component_def *type, bool has_fields);
    /** Answers quern_schedule_add_system. Neither pointer is NULL. */
    quern_result (*add_system)(void *user_data, quern_schedule *schedule, const quern_system_def *def,
                               quern_system *out_system);
    void *user_data; /**< Passed to all functions. */
} quern_loader;

/** Sets the loader of a world, which must stay at its address until another one, or NULL, is set. Errors: NULL_ARGUMENT
 * (world, or a function), WORLD_LOCKED. Threads: main, between frames. */
QUERN_API quern_result quern_world_set_loader(quern_world *world, const quern_loader *loader);

/** Returns the loader of a world; NULL if there is none. Threads: main. */
QUERN_API const quern_loader *quern_world_loader(const quern_world *world);

#ifdef __cplusplus
}
#endif

#endif
