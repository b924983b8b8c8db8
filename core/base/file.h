/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_BASE_FILE_H
#define QUERN_CORE_BASE_FILE_H

/* Files that are written as a whole. The text goes to a file beside the one named, which takes its place when all
 * of it has arrived: a failure leaves the file that was there. */

#include <quern/sink.h>

/* The room for a path with the name of the file beside it. */
#define QUERN__PART_SUFFIX ".part"

/* Writes a text by `write` into the file at `path`, replacing it. part_path: memory for the path, the suffix and
 * the final 0. A device or pipe is written to and not replaced. Returns 0, or the errno of what failed; `write`
 * returns one, too. */
int quern__file_write(const char *path, char *part_path, int (*write)(void *user_data, quern_sink sink),
                      void *user_data);

#endif
