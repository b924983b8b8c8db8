/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */

#include "kit/live_internal.h"

#if defined(_WIN32)

#include <windows.h>

#include <stdio.h>
#include <string.h>

bool quern__live_read_stamp(const char *path, quern__live_stamp *out_stamp)
{
    WIN32_FILE_ATTRIBUTE_DATA data;
    if (!GetFileAttributesExA(path, GetFileExInfoStandard, &data)) return false;
    if ((data.dwFileAttributes & FILE_ATTRIBUTE_DIRECTORY) != 0) return false;
    out_stamp->size_bytes = (uint64_t)data.nFileSizeHigh << 32 | data.nFileSizeLow;
    out_stamp->time_ns =
        ((uint64_t)data.ftLastWriteTime.dwHighDateTime << 32 | data.ftLastWriteTime.dwLowDateTime) * 100;
    out_stamp->id =
        0; /* the time of creation stays when a file is written again; nothing else is cheap to read */
    return true;
}

quern_result quern__live_create_folder(const char *parent, char out_path[QUERN__LIVE_PATH_BYTES])
{
    char temporary[MAX_PATH + 1];
    if (parent == NULL) parent = GetTempPathA(sizeof temporary, temporary) > 0 ? temporary : ".";
    for (uint32_t attempt = 0; attempt < 1000; attempt++) {
        const int length = snprintf(out_path, QUERN__LIVE_PATH_BYTES, "%s\\quern-live-%lu-%u", parent,
                                    (unsigned long)GetCurrentProcessId(), (unsigned)attempt);
        if (length >= QUERN__LIVE_PATH_BYTES)
            return quern_error_set(
                QUERN_ERROR_INVALID_ARGUMENT,
                "the path of the folder '%.40s...' is longer than %d bytes: set `folder` to a shorter one",
                parent, QUERN__LIVE_PATH_BYTES - 40);
        if (CreateDirectoryA(out_path, NULL)) return QUERN_OK;
        if (GetLastError() != ERROR_ALREADY_EXISTS) break;
    }
    return quern_error_set(
        QUERN_ERROR_IO,
        "no folder could be created in '%s' (error %lu of the system): set `folder` to one "
        "that is writable",
        parent, (unsigned long)GetLastError());
}

void quern__live_remove_folder(const char *path)
{
    (void)RemoveDirectoryA(path);
}

void quern__live_remove_file(const char *path)
{
    (void)DeleteFileA(path);
}

quern_result quern__live_open_library(const char *path, void **out_library)
{
    HMODULE module = LoadLibraryA(path);
    *out_library = (void *)module;
    if (module != NULL) return QUERN_OK;
    return quern_error_set(
        QUERN_ERROR_UNAVAILABLE,
        "the system cannot load it: error %lu of LoadLibrary; 126 means that a library that it "
        "needs was not found",
        (unsigned long)GetLastError());
}

void (*quern__live_function(void *library, const char *name))(void)
{
    const FARPROC address = GetProcAddress((HMODULE)library, name);
    void (*function)(void) = NULL;
    memcpy(&function, &address, sizeof function);
    return function;
}

bool quern__live_close_library(void *library, const char *path)
{
    (void)FreeLibrary((HMODULE)library);
    return GetModuleHandleA(path) == NULL;
}

uint64_t quern__live_now(void)
{
    LARGE_INTEGER frequency, now;
    QueryPerformanceFrequency(&frequency);
    QueryPerformanceCounter(&now);
    const uint64_t whole = (uint64_t)now.QuadPart / (uint64_t)frequency.QuadPart;
    const uint64_t rest = (uint64_t)now.QuadPart % (uint64_t)frequency.QuadPart;
    return whole * 1000000000u + rest * 1000000000u / (uint64_t)frequency.QuadPart;
}

#endif
