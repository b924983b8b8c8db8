/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */

#include "kit/live_internal.h"

#if !defined(_WIN32)

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool quern__live_read_stamp(const char *path, quern__live_stamp *out_stamp)
{
    struct stat status;
    if (stat(path, &status) != 0 || !S_ISREG(status.st_mode)) return false;
#ifdef __APPLE__
    const struct timespec time = status.st_mtimespec;
#else
    const struct timespec time = status.st_mtim;
#endif
    out_stamp->size_bytes = (uint64_t)status.st_size;
    out_stamp->time_ns = (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
    out_stamp->id = (uint64_t)status.st_ino;
    return true;
}

quern_result quern__live_create_folder(const char *parent, char out_path[QUERN__LIVE_PATH_BYTES])
{
    if (parent == NULL) parent = getenv("TMPDIR");
    if (parent == NULL || *parent == 0) parent = "/tmp";
    if (snprintf(out_path, QUERN__LIVE_PATH_BYTES, "%s/quern-live-XXXXXX", parent) >=
        QUERN__LIVE_PATH_BYTES)
        return quern_error_set(
            QUERN_ERROR_INVALID_ARGUMENT,
            "the path of the folder '%.40s...' is longer than %d bytes: set `folder` to a shorter one",
            parent, QUERN__LIVE_PATH_BYTES - 20);
    if (mkdtemp(out_path) == NULL)
        return quern_error_set(
            QUERN_ERROR_IO, "no folder could be created in '%s' (%s): set `folder` to one that is writable",
            parent, strerror(errno));
    return QUERN_OK;
}

void quern__live_remove_folder(const char *path)
{
    (void)rmdir(path);
}

void quern__live_remove_file(const char *path)
{
    (void)unlink(path);
}

FILE *quern__live_open_file(const char *path, const char *mode)
{
    return fopen(path, mode);
}

quern_result quern__live_open_library(const char *path, void **out_library)
{
    /* All symbols now: one that is missing must fail here, and not in the middle of a frame. */
    *out_library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (*out_library != NULL) return QUERN_OK;
    const char *const why = dlerror();
    const bool lacks_quern = why != NULL && strstr(why, "quern_") != NULL && strstr(why, "symbol") != NULL;
    return quern_error_set(
        QUERN_ERROR_UNAVAILABLE, "the system cannot load it: %s%s", why != NULL ? why : "no reason given",
        lacks_quern ? "; modules find Quern in the program, so link it with quern::quern_shared, before "
                      "libraries of the kit"
                    : "");
}

void (*quern__live_function(void *library, const char *name))(void)
{
    void *const address = dlsym(library, name);
    void (*function)(void) = NULL;
    memcpy(&function, &address, sizeof function); /* C has no cast from an object to a function */
    return function;
}

bool quern__live_close_library(void *library, const char *path)
{
    (void)dlclose(library);
    void *const still_there = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
    if (still_there == NULL) return true;
    (void)dlclose(still_there);
    return false;
}

#endif
