/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_KIT_LIVE_INTERNAL_H
#define QUERN_KIT_LIVE_INTERNAL_H

/* Shared libraries and their files, as the operating system has them: live_posix.c and live_windows.c. Calls that
 * can fail set the error message (quern_error_set) and return its code. */

#include <quern/base.h>

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum { QUERN__LIVE_PATH_BYTES = 1024 };

/* What changes when a file is written or replaced. */
typedef struct quern__live_stamp {
    uint64_t size_bytes;
    uint64_t time_ns; /* of the last change; its zero is the system's */
    uint64_t id;      /* number of the file in its file system */
} quern__live_stamp;

/* Reads the stamp of a file. Returns false if the file does not exist or is not readable. */
bool quern__live_read_stamp(const char *path, quern__live_stamp *out_stamp);

/* Creates an empty folder that only this user can read, with a unique name, in `parent` or, if that is NULL, in the
 * system's folder for temporary files. */
quern_result quern__live_create_folder(const char *parent, char out_path[QUERN__LIVE_PATH_BYTES]);
void quern__live_remove_folder(const char *path);
void quern__live_remove_file(const char *path);

/* fopen with a path in UTF-8. */
FILE *quern__live_open_file(const char *path, const char *mode);

/* Loads a shared library with all its symbols. */
quern_result quern__live_open_library(const char *path, void **out_library);
/* Returns the address of a function, or NULL if the library has none of that name. */
void (*quern__live_function(void *library, const char *name))(void);
/* Unloads a library. Returns false if the system keeps its code loaded nevertheless. */
bool quern__live_close_library(void *library, const char *path);

#endif
