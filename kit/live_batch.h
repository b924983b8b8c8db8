/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_KIT_LIVE_BATCH_H
#define QUERN_KIT_LIVE_BATCH_H

/* Modules (live.c), their versions, and how a batch of versions is loaded and takes over (live_batch.c). */

#include "kit/live.h"
#include "kit/live_internal.h"

#include <quern/loader.h>

enum { LIVE_REPORT_BYTES = 2048, LIVE_ERROR_BYTES = 1024 };

typedef struct live_library {
    void *handle;
    uint32_t
        user_count; /* versions that run or are being loaded, and types whose hooks are in the library */
    bool is_kept;   /* whether the file stays when the library is unloaded, for quern_live_revert */
    char path[QUERN__LIVE_PATH_BYTES];
} live_library;

/* A type that a module has brought into the world. */
typedef struct live_known {
    quern_type_kind kind;
    uint32_t bits; /* the handle */
    struct quern__live_version
        *owner;         /* version whose definition the type has; NULL: the version is gone */
    live_library *code; /* library with the type's hooks; NULL if it has none */
    char name[QUERN_MAX_NAME_BYTES + 1];
} live_known;

typedef struct live_definition {
    union {
        quern_component_def component;
        quern_resource_def resource;
        quern_event_def event;
    };
    /* Copies of the descriptions of elements of lists, which may be on the stack of the load function. */
    quern_element elements[QUERN_MAX_FIELDS];
    quern_field element_fields[QUERN_MAX_FIELDS];
} live_definition;

/* A type that the load function of a version has registered. */
typedef struct live_type {
    live_known *known;
    live_definition *def;
    bool is_used_only; /* used by a C type of the definition's size, and not registered */
} live_type;

/* A system that the load function of a version has added. */
typedef struct live_system {
    quern_system_def *def;
    quern_system handle;
    bool is_stopped; /* disabled, because the schedule has the code of a version that was refused */
} live_system;

typedef struct live_object {
    void *object;
    void (*release)(void *object);
} live_object;

/* An array in memory of the live object. */
typedef struct live_array {
    void *items;
    uint32_t count, capacity;
} live_array;

typedef struct quern__live_version {
    struct live_module *module;
    live_library *library;
    const quern_live_entry *entry;
    quern_live_module face;                 /* what the module's functions receive */
    live_array types;                       /* of live_type */
    live_array systems;                     /* of live_system */
    live_array objects;                     /* of live_object */
    struct quern__live_version *next_stuck; /* see live_module.stuck */
} live_version;

typedef struct live_module {
    struct quern_live *live;
    live_version *running; /* NULL only while the module is added */
    live_version *next;    /* in a batch: the version that is to run */
    live_library *before;  /* library of the version before, of which the file is kept; NULL: none */
    /* Versions that were refused and that the schedule still calls, because their systems could not be taken back for lack
     * of memory. The next version that runs ends them. */
    live_version *stuck;
    uint32_t version_count;
    quern__live_stamp loaded, seen,
        refused;             /* stamps of the file: of what runs, as last looked at, and of what failed */
    uint64_t seen_ns;        /* when the stamp `seen` was read first */
    quern_live_info info;    /* counts and times of the last reload */
    quern_live_info pending; /* those of the batch */
    char name[QUERN_MAX_NAME_BYTES + 1];
    char path[QUERN__LIVE_PATH_BYTES];
    char report[LIVE_REPORT_BYTES];
    char error[LIVE_ERROR_BYTES];
} live_module;

/* A change of the definition of a type, to be made at the end of a batch. */
typedef struct live_change {
    live_known *known;
    live_version *by; /* version whose definition the type gets */
    const live_definition *def;
} live_change;

/* A change of the schedule that a batch has made. */
typedef struct live_step {
    const quern_system_def *replaced; /* definition before; NULL: the system was added */
    quern_system system;              /* null: it was removed */
    quern_system
        previous;      /* of a removed system: the one before it in the order of registration; null: none */
    bool was_disabled; /* of a removed system */
} live_step;

struct quern_live {
    quern_world *world;
    quern_schedule *schedule;
    quern_allocator allocator;
    quern_live_def def;
    quern_world_user user;
    live_array modules;   /* of live_module * */
    live_array known;     /* of live_known * */
    live_array changes;   /* of live_change; empty outside of a batch */
    live_array steps;     /* of live_step; empty outside of a batch */
    bool has_stuck_types; /* in a batch that failed: a type could not get its old definition again */
    quern_loader loader;
    live_version *loading; /* the version whose load function runs */
    char folder[QUERN__LIVE_PATH_BYTES];
    uint32_t copy_count; /* copies made so far, for the names of their files */
};

#define LIVE_ITEM(array, type, i) (((type *)(array).items)[i])
/* NOLINTBEGIN(bugprone-macro-parentheses): the arguments are a type and a declarator */
#define LIVE_FOR_EACH(type, item, array) \
    for (type *item = (array).items; item != NULL && item < (type *)(array).items + (array).count; item++)
/* NOLINTEND(bugprone-macro-parentheses) */

extern const char *const quern__live_kind_names[]; /* by quern_type_kind */

void *quern__live_allocate(const quern_live *live, size_t bytes);

void quern__live_release(const quern_live *live, void *memory, size_t bytes);

/* Appends a zeroed item. Returns NULL, with the error set, if there is no memory. */
void *quern__live_append(const quern_live *live, live_array *array, size_t item_bytes);

void quern__live_release_array(const quern_live *live, live_array *array, size_t item_bytes);

void quern__live_say(const quern_live *live, quern_log_level level, const char *format, ...)
    QUERN__FORMAT(3, 4);

void quern__live_free_library(const quern_live *live, live_library *library);

/* Ends keeping the file of a version that has been replaced. */
void quern__live_forget_library(const quern_live *live, live_library *library);

/* Returns whether a system is in the schedule: the program may have removed it, or an undo have failed. */
bool quern__live_is_present(const quern_live *live, const live_system *system);

/* Releases a version that does not run, or no longer. */
void quern__live_release_version(quern_live *live, live_version *version);

/* Ends the versions of a module that were refused and that the schedule still called. */
void quern__live_end_stuck(quern_live *live, live_module *module);

/* Makes chosen modules change: loads their files, or `from`, or removes them. On failure nothing has changed; the message
 * names `call` and the module. */
quern_result quern__live_run_batch(quern_live *live, live_module *const *chosen, uint32_t chosen_count,
                                   bool removes, const char *from, const char *call);

/* Sets live->loader, which receives what load functions register. */
void quern__live_init_loader(quern_live *live);

#endif
