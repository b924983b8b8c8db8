/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_ARCHIVE_SELECT_H
#define QUERN_CORE_ARCHIVE_SELECT_H

/* A list of entities to save together, and saving it. */

#include "core/archive/save.h"

struct quern_archive {
    quern_world *world;
    QUERN__ARRAY(quern_entity) entities;
    quern__map slots; /* slot + 1 -> index in `entities` */
};

/* Checks the members of a definition that make no sense for a list. def may be NULL. Errors: INVALID_ARGUMENT. */
quern_result quern__archive_check_def(const quern_save_def *def);

/* Saves the list as one archive. Errors: as quern_archive_save, except those of the definition. Preconditions: the
 * world is locked, and `saving` is initialised for it. */
quern_result quern__archive_write(const quern_archive *archive, quern__saving *saving, quern_sink sink);

#endif
