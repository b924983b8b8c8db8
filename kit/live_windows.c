/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */

#include "kit/live_internal.h"

#if defined(_WIN32)

#include <windows.h>

#include <stdio.h>
#include <string.h>

/* Converts a path. Returns false if it is no UTF-8, or too long. */
static bool widen(const char *path, wchar_t wide[QUERN__LIVE_PATH_BYTES])
{
    return MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, path, -1, wide, QUERN__LIVE_PATH_BYTES) > 0;
}

bool quern__live_read_stamp(const char *path, quern__live_stamp *out_stamp)
{
    WIN32_FILE_ATTRIBUTE_DATA data;
    wchar_t wide[QUERN__LIVE_PATH_BYTES];
    if (!widen(path, wide) || !GetFileAttributesExW(wide, GetFileExInfoStandard, &data)) return false;
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
    wchar_t wide[QUERN__LIVE_PATH_BYTES];
    char temporary[QUERN__LIVE_PATH_BYTES];
    if (parent == NULL) {
        const bool is_known =
            GetTempPathW(QUERN__LIVE_PATH_BYTES, wide) > 0 &&
            WideCharToMultiByte(CP_UTF8, 0, wide, -1, temporary, sizeof temporary, NULL, NULL) > 0;
        parent = is_known ? temporary : ".";
    }
    for (uint32_t attempt = 0; attempt < 1000; attempt++) {
        const int length = snprintf(out_path, QUERN__LIVE_PATH_BYTES, "%s\\quern-live-%lu-%u", parent,
                                    (unsigned long)GetCurrentProcessId(), (unsigned)attempt);
        if (length >= QUERN__LIVE_PATH_BYTES)
            return quern_error_set(
                QUERN_ERROR_INVALID_ARGUMENT,
                "the path of the folder '%.40s...' is longer than %d bytes: set `folder` to a shorter one",
                parent, QUERN__LIVE_PATH_BYTES - 40);
        if (!widen(out_path, wide))
            return quern_error_set(
                QUERN_ERROR_INVALID_ARGUMENT,
                "the path of the folder '%.40s...' is not UTF-8: set `folder` to one that is", parent);
        if (CreateDirectoryW(wide, NULL)) return QUERN_OK;
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
    wchar_t wide[QUERN__LIVE_PATH_BYTES];
    if (widen(path, wide)) (void)RemoveDirectoryW(wide);
}

void quern__live_remove_file(const char *path)
{
    wchar_t wide[QUERN__LIVE_PATH_BYTES];
    if (widen(path, wide)) (void)DeleteFileW(wide);
}

FILE *quern__live_open_file(const char *path, const char *mode)
{
    wchar_t wide[QUERN__LIVE_PATH_BYTES];
    const wchar_t wide_mode[] = {(wchar_t)mode[0], (wchar_t)mode[1], L'\0'};
    return widen(path, wide) ? _wfopen(wide, wide_mode) : NULL;
}

quern_result quern__live_open_library(const char *path, void **out_library)
{
    wchar_t wide[QUERN__LIVE_PATH_BYTES];
    HMODULE module = widen(path, wide) ? LoadLibraryW(wide) : NULL;
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
    wchar_t wide[QUERN__LIVE_PATH_BYTES];
    (void)FreeLibrary((HMODULE)library);
    return !widen(path, wide) || GetModuleHandleW(wide) == NULL;
}

#endif
