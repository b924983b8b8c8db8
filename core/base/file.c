/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "core/base/file.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>

#if defined(_WIN32)
#define WIN32_LEAN_AND_MEAN
#include <windows.h>
#endif

static int error_or(int otherwise)
{
    return errno != 0 ? errno : otherwise;
}

static int write_at(const char *path, int (*write)(void *user_data, quern_sink sink), void *user_data)
{
    errno = 0;
    FILE *file = fopen(path, "wb");
    if (file == NULL) return error_or(EIO);
    const int error = write(user_data, quern_sink_file(file));
    errno = 0;
    const bool is_closed = fclose(file) == 0;
    if (error != 0) return error;
    return is_closed ? 0 : error_or(EIO);
}

/* On Windows, rename() fails if the path exists. */
static int replace(const char *temporary_path, const char *path)
{
#if defined(_WIN32)
    return MoveFileExA(temporary_path, path, MOVEFILE_REPLACE_EXISTING | MOVEFILE_WRITE_THROUGH) ? 0
                                                                                                 : EACCES;
#else
    errno = 0;
    return rename(temporary_path, path) == 0 ? 0 : error_or(EIO);
#endif
}

static bool is_device_or_pipe(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && !S_ISREG(status.st_mode);
}

int quern__file_write(const char *path, char *temporary_path,
                      int (*write)(void *user_data, quern_sink sink), void *user_data)
{
    if (is_device_or_pipe(path)) return write_at(path, write, user_data);
    snprintf(temporary_path, strlen(path) + sizeof QUERN__TEMPORARY_SUFFIX, "%s" QUERN__TEMPORARY_SUFFIX,
             path);
    int error = write_at(temporary_path, write, user_data);
    if (error == 0) error = replace(temporary_path, path);
    if (error != 0) remove(temporary_path);
    return error;
}
