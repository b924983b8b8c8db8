/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_BASE_FILE_H
#define QUERN_CORE_BASE_FILE_H

/* Atomic replacement of files. The text is written to a temporary file in the same folder, which then replaces the
 * named file. A failure leaves the named file as it was. */

#include <quern/sink.h>

/* Added to a path to get the path of the temporary file. */
#define QUERN__TEMPORARY_SUFFIX ".part"

/* Calls `write` with a sink, and replaces the file at `path` by the text that `write` passes to the sink. Devices and
 * pipes are written to directly. temporary_path: scratch memory for the path, the suffix and a final 0. `write` returns 0
 * or an errno. Returns 0, or the errno of the step that failed. */
int quern__file_write(const char *path, char *temporary_path,
                      int (*write)(void *user_data, quern_sink sink), void *user_data);

#endif
