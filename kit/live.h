/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_KIT_LIVE_H
#define QUERN_KIT_LIVE_H

/** @file
 * Living code: shared libraries with types and systems, which are reloaded when their files change, while the world
 * lives. Link quern::quern_live, and quern::quern_shared: the program and its modules must use one copy of Quern.
 *
 * The program:
 *
 *     quern_live_create(&(quern_live_def){.world = world, .schedule = schedule}, &live);
 *     quern_live_add(live, "libgame.so", NULL);
 *     for (;;) {
 *         quern_live_update(live, NULL); // reloads the module if its file has changed
 *         quern_schedule_run(schedule, jobs, delta_seconds);
 *     }
 *
 * The module:
 *
 *     QUERN_SYSTEM(move, (Position, p), (const Velocity, v)) { ... }
 *
 *     static quern_result load(quern_live_module *module)
 *     {
 *         QUERN_TRY(QUERN_REGISTER(module->world, Position, x, y));
 *         QUERN_TRY(QUERN_REGISTER(module->world, Velocity, x, y));
 *         return QUERN_ADD_SYSTEM(module->schedule, move);
 *     }
 *     QUERN_LIVE_MODULE(load, NULL)
 *
 * The load function is ordinary set-up code: it registers components, resources and events and adds systems, by any
 * functions and macros of Quern, of the kit or of <quern/quern.hpp>. While it runs, these calls are answered by the kit
 * (<quern/loader.h>): what the module had before is replaced instead of refused.
 *
 * What a reload does, between two frames. The new library is loaded beside the old one, and load is called. Systems of a
 * name that the module had are replaced, and keep their place and state; new ones are added behind the one that load added
 * before; those that load does not add any more are removed. Then all types that load registers get their new definitions,
 * and their values are converted if the layout differs (<quern/redefine.h>). At last leave of the old version is called, and
 * the old library is unloaded: no address of it is left in the world and the schedule.
 *
 * If anything of that fails, nothing changes: the old code goes on, and quern_live_update returns the error. The file is
 * read again when it changes again.
 *
 * Several modules that have changed are reloaded together. Several modules may register a type, with the same definition.
 * If its layout changes, all of them must be reloaded together. A type that the program registered itself keeps its
 * definition.
 *
 * A definition may point to memory of the module, such as names and default values: it must be static. State that should
 * outlive a reload belongs into components and resources; global variables of the module start anew. Whatever else points
 * into the module is the module's affair: function pointers in components, threads, handlers, jobs that are not done. Its
 * leave function must release them.
 *
 * Threads: main, between frames. */

#include <quern/component.h>
#include <quern/event.h>
#include <quern/schedule.h>
#include <quern/sink.h>
#include <quern/world.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The modules of a world and a schedule; see quern_live_create. */
typedef struct quern_live quern_live;

/** A version of a module, for its functions. */
typedef struct quern_live_module {
    quern_world
        *world; /**< The world. Leave its entities to systems: what load does to them stays done if the
                               * module is refused. */
    quern_schedule *schedule;              /**< The schedule. */
    const char *name;                      /**< Name of the module. */
    uint32_t version;                      /**< Number of the version, from 1. */
    const struct quern__live_calls *calls; /**< Internal: functions of the program's kit. */
    struct quern__live_version *internal;  /**< Internal. */
} quern_live_module;

/** Registers the types and adds the systems of a module. An error refuses the version. */
typedef quern_result quern_live_load(quern_live_module *module);

/** Releases what a version of a module holds outside of the world and the schedule. Called when another version has
 * taken over, or the module was removed: the types of this version may have other layouts already. */
typedef void quern_live_leave(quern_live_module *module);

/** What a module exports; see QUERN_LIVE_MODULE. */
typedef struct quern_live_entry {
    uint32_t abi;             /**< Internal: QUERN__LIVE_ABI. */
    uint32_t system_bytes;    /**< Internal: size of quern_system_def. */
    uint32_t component_bytes; /**< Internal: size of quern_component_def. */
    quern_live_load *load;    /**< Registers the module's types and adds its systems. */
    quern_live_leave *leave;  /**< NULL: the module holds nothing. */
} quern_live_entry;

/** Defines what the library of a module exports. leave may be NULL. Once per library, outside of functions. */
#define QUERN_LIVE_MODULE(load, leave)                                                                  \
    QUERN__LIVE_EXPORT const quern_live_entry *quern_live_module_entry(void)                            \
    {                                                                                                   \
        static const quern_live_entry entry = {QUERN__LIVE_ABI, (uint32_t)sizeof(quern_system_def),     \
                                               (uint32_t)sizeof(quern_component_def), (load), (leave)}; \
        return &entry;                                                                                  \
    }

/** Gives an object to this version of the module: `release` is called with it before the library is unloaded. If the call
 * fails, release is called at once. Errors: NULL_ARGUMENT, OUT_OF_MEMORY. */
static inline quern_result quern_live_own(quern_live_module *module, void *object,
                                          void (*release)(void *object));

/* ---------------------------------------------------------------------------------------- the program */

/** Receives a message about modules. level: its severity. */
typedef void quern_live_handler(void *user_data, quern_log_level level, const char *message);

/** Definition of the modules of a world. */
typedef struct quern_live_def {
    quern_world *world QUERN__ZERO; /**< The world. Required. */
    quern_schedule *schedule
        QUERN__ZERO; /**< A schedule of the world, to which systems are added. Required. */
    /** Folder in which copies of libraries are made, each in a folder of its own that is removed at the end; NULL: the
     * system's folder for temporary files. */
    const char *folder QUERN__ZERO;
    /** Allocator of the object. All zero means quern_allocator_default(). */
    quern_allocator allocator QUERN__ZERO;
    /** Milliseconds for which a file must not have changed before it is loaded, as linkers write in several steps; 0 means
     * 100. */
    uint32_t settle_ms QUERN__ZERO;
    /** Whether changed files are loaded at once. For files that are replaced as a whole, by renaming. */
    bool disable_settling QUERN__ZERO;
    /** Receives a line for each reload, and for each one that fails. NULL: stderr. */
    quern_live_handler *handler QUERN__ZERO;
    void *user_data QUERN__ZERO; /**< Passed to the handler. */
} quern_live_def;

/** Starts living code for a world and a schedule. Neither can be destroyed before the object. Errors: NULL_ARGUMENT,
 * INVALID_ARGUMENT (only one function of the allocator is set), IO (the folder), WORLD_LOCKED, OUT_OF_MEMORY. */
quern_result quern_live_create(const quern_live_def *def, quern_live **out_live);

/** Removes the systems of all modules, calls their leave functions, and unloads them. The types remain. A library whose
 * types have hooks remains loaded until the program ends, as the world still calls them; a message says so. Systems of the
 * program that are ordered by systems of modules make the next frame fail until they are replaced. NULL is allowed. The
 * call is refused, with a message, while a frame runs on the world. */
void quern_live_destroy(quern_live *live);

/** Loads a module. name: 1 to QUERN_MAX_NAME_BYTES bytes; NULL: the file's name without "lib" and what follows the first
 * dot. Errors: NULL_ARGUMENT, INVALID_ARGUMENT (the name), DUPLICATE_NAME, IO (the file cannot be read or copied),
 * UNAVAILABLE (not a library, or not a module of this version of Quern), those of the module's load function and of
 * quern_schedule_add_system, WORLD_LOCKED, OUT_OF_MEMORY. Nothing changes on failure, except
 * that types which did not exist before stay registered. */
quern_result quern_live_add(quern_live *live, const char *path, const char *name);

/** Removes a module: its systems are removed, leave is called, and the library is unloaded, as by quern_live_destroy.
 * Errors: NULL_ARGUMENT, INVALID_ARGUMENT (no module has the name), WORLD_LOCKED, SCHEDULE_CONFLICT or UNKNOWN_SYSTEM (a
 * system of another module is ordered by one of this module). */
quern_result quern_live_remove(quern_live *live, const char *name);

/** Reloads the modules whose files have changed, and compiles the schedule. Reads the size and time of each file, and no content of files that have
 * not changed. *out_count, if not NULL: number of modules that were reloaded. Errors: those of quern_live_add; also
 * LAYOUT_MISMATCH (several modules register a type differently), and those of quern_schedule_compile and of redefinition. On failure the code before
 * goes on, with all its state. */
quern_result quern_live_update(quern_live *live, uint32_t *out_count);

/** Loads the file of a module again, although it has not changed. Errors: as quern_live_update; INVALID_ARGUMENT (no
 * module has the name). */
quern_result quern_live_reload(quern_live *live, const char *name);

/** Loads the version of a module again that the last reload replaced: for a program that goes back to a frame before the
 * reload because the new code is wrong. The file is not looked at until it changes again. Errors: as quern_live_reload;
 * UNAVAILABLE (there is no version before). */
quern_result quern_live_revert(quern_live *live, const char *name);

/** A module. All texts are valid until the next call of this header. */
typedef struct quern_live_info {
    const char *name;         /**< Name of the module. */
    const char *path;         /**< Path of its file, as given. */
    uint32_t version;         /**< Number of the version that runs, from 1. */
    uint32_t system_count;    /**< Number of its systems. */
    uint32_t type_count;      /**< Number of types that it registers. */
    uint32_t added_count;     /**< Systems that the last reload added, */
    uint32_t replaced_count;  /**< replaced, */
    uint32_t removed_count;   /**< and removed. */
    uint32_t renewed_count;   /**< Types that the last reload renewed without a change of their layout. */
    uint32_t converted_count; /**< Types of which it converted all values to another layout. */
    uint64_t load_ns;         /**< Time of the last reload for copying and loading the library. */
    uint64_t change_ns;       /**< Time of the last reload for types and systems. */
    const char *report;       /**< What conversions lost, one line each; "" if nothing. */
    const char *error;        /**< Why the file as it is now was refused; "" if it was not. */
} quern_live_info;

/** Returns the number of modules. 0, with a message, if live is NULL. */
uint32_t quern_live_count(const quern_live *live);

/** Returns module i, from 0, in the order of addition. Errors: NULL_ARGUMENT, INVALID_ARGUMENT (i). */
quern_result quern_live_get_info(const quern_live *live, uint32_t i, quern_live_info *out_info);

/** Returns the name of system i of module `module`, from 0; NULL, with a message, if there is none. */
const char *quern_live_system_name(const quern_live *live, uint32_t module, uint32_t i);

/** Writes the modules as a JSON list of objects, for a panel of the inspector (quern_inspect_panel) or another tool: `module`,
 * `version`, `state` ("runs", or "refused" if the file as it is now was refused), `systems` (names), `types` (number),
 * `last reload` (what it did, and how long it took), `report`, `error` and `path`. Errors: NULL_ARGUMENT, IO. */
quern_result quern_live_write_json(const quern_live *live, quern_sink sink);

/* ---------------------------------------------------------------------------------------- internal */

/* Changes whenever a module compiled before would not understand the structs of this header. */
#define QUERN__LIVE_ABI 1u

#ifdef __cplusplus
#define QUERN__LIVE_LINKAGE extern "C"
#else
#define QUERN__LIVE_LINKAGE
#endif
#if defined(_MSC_VER) || defined(__MINGW32__)
#define QUERN__LIVE_EXPORT QUERN__LIVE_LINKAGE __declspec(dllexport)
#elif defined(__GNUC__) || defined(__clang__)
#define QUERN__LIVE_EXPORT QUERN__LIVE_LINKAGE __attribute__((visibility("default")))
#else
#define QUERN__LIVE_EXPORT QUERN__LIVE_LINKAGE
#endif

/* The functions of the program's kit, which a module calls by pointer: it does not link the kit. */
typedef struct quern__live_calls {
    quern_result (*own)(quern_live_module *module, void *object, void (*release)(void *object));
} quern__live_calls;

static inline quern_result quern_live_own(quern_live_module *module, void *object,
                                          void (*release)(void *object))
{
    return module->calls->own(module, object, release);
}

#ifdef __cplusplus
}
#endif

#endif
