/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "core/base/source_internal.h"

#include <errno.h>

static size_t read_from_file(void *user_data, void *bytes, size_t capacity_bytes)
{
    return fread(bytes, 1, capacity_bytes, user_data);
}

quern_source quern_source_file(FILE *file)
{
    return file != NULL ? (quern_source){.read = read_from_file, .user_data = file} : (quern_source){0};
}

quern_source quern_source_bytes(const void *bytes, size_t size_bytes)
{
    return (quern_source){.memory = bytes, .memory_bytes = size_bytes};
}

const void *quern__source_borrow(quern__source_reader *reader, size_t count)
{
    if (count > reader->source.memory_bytes - reader->offset_bytes) return NULL;
    const void *bytes = (const char *)reader->source.memory + reader->offset_bytes;
    reader->offset_bytes += count;
    return bytes;
}

bool quern__source_read(quern__source_reader *reader, void *bytes, size_t count)
{
    if (reader->source.memory != NULL) {
        const void *lent = quern__source_borrow(reader, count);
        if (lent != NULL && count > 0) memcpy(bytes, lent, count);
        return lent != NULL;
    }
    for (size_t done = 0; done < count;) {
        errno = 0;
        const size_t got =
            reader->source.read(reader->source.user_data, (char *)bytes + done, count - done);
        if (got == 0 || got > count - done) {
            reader->error = errno;
            return false;
        }
        done += got;
        reader->offset_bytes += got;
    }
    return true;
}
