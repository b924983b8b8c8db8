/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "core/base/file.h"

#include "core/platform/platform.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

static int error_or(int otherwise)
{
    return errno != 0 ? errno : otherwise;
}

static int write_at(const char *path, int (*write)(void *user_data, quern_sink sink), void *user_data)
{
    errno = 0;
    FILE *file = quern__file_open(path, "wb");
    if (file == NULL) return error_or(EIO);
    const int error = write(user_data, quern_sink_file(file));
    errno = 0;
    const bool is_closed = fclose(file) == 0;
    if (error != 0) return error;
    return is_closed ? 0 : error_or(EIO);
}

int quern__file_write(const char *path, char *temporary_path,
                      int (*write)(void *user_data, quern_sink sink), void *user_data)
{
    if (quern__file_is_device_or_pipe(path)) return write_at(path, write, user_data);
    snprintf(temporary_path, strlen(path) + sizeof QUERN__TEMPORARY_SUFFIX, "%s" QUERN__TEMPORARY_SUFFIX,
             path);
    int error = write_at(temporary_path, write, user_data);
    if (error == 0) error = quern__file_replace(temporary_path, path);
    if (error != 0) quern__file_remove(temporary_path);
    return error;
}
