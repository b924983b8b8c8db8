/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_ARCHIVE_RUN_RESTORER_H
#define QUERN_CORE_ARCHIVE_RUN_RESTORER_H

/* Saving and loading a world with the state of its schedules: everything that the next frame depends on, apart
 * from the world's contents. To this room the state is a sequence of bytes in RUN sections. The caller writes
 * them, and restores them by functions that it passes. */

#include "core/archive/image.h"
#include "core/bytes/byte_writer.h"

/* Saves a world. run: state of its schedules; empty if none is saved. Errors: as quern_world_save, except
 * NULL_ARGUMENT and WORLD_LOCKED. Precondition: the world is not locked. */
quern_result quern__world_save(quern_world *world, quern_sink sink, const quern_save_def *def,
                               const quern__byte_writer *run);

/* Restores the state of schedules. All functions get `argument` and the image, of which image->run holds the
 * bytes. They are called only if the archive has a state, and its types and their order are those of the world. */
typedef struct quern__run_restorer {
    void *argument;
    /* Checks the bytes and reserves memory, as the last step that may fail. Then nothing is reserved. */
    quern_result (*prepare)(void *argument, const quern__image *image);
    /* Restores the state, after everything else was loaded. Cannot fail. `remap` maps handles of the archive. */
    void (*restore)(void *argument, const quern__image *image, quern__remap_function *remap,
                    void *remap_argument);
} quern__run_restorer;

/* Loads an archive. restorer: NULL to load without the state of schedules. Errors: as quern_world_load, except
 * NULL_ARGUMENT and WORLD_LOCKED, and the errors of the restorer. Precondition: the world is not locked. */
quern_result quern__world_load(quern_world *world, quern_source source, const quern_load_def *def,
                               const quern__run_restorer *restorer, quern_load_report *report);

/* Reads an archive into an image and loads it. The caller has set the definition, report, world, allocator and flags of
 * the image, and owns its types, also afterwards; all other members are released. Errors: as quern__world_load. */
quern_result quern__image_load(quern__image *image, quern_source source,
                               const quern__run_restorer *restorer);

#endif
