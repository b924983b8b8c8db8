/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_TESTS_FUZZ_H
#define QUERN_TESTS_FUZZ_H

/* What fuzz targets share. A target is one function, which libFuzzer calls with bytes that it makes up, and
 * fuzz_main.c with those of files. */

#include <quern/base.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Bytes to begin with, 0 and more. Returns 0. */
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

/* A fault is found: says what, and ends. */
#define require(condition)                                                          \
    do {                                                                            \
        if (condition) break;                                                       \
        fprintf(stderr, "%s:%d: not so: %s (%s)\n", __FILE__, __LINE__, #condition, \
                quern_error_message());                                             \
        abort();                                                                    \
    } while (0)

/* A call that must succeed. */
#define must(...) require((__VA_ARGS__) == QUERN_OK)

/* Of its own size, so that a sanitizer sees who reads on, and writes. */
static inline char *fuzz_copy(const uint8_t *bytes, size_t size)
{
    char *copy = malloc(size > 0 ? size : 1);
    require(copy != NULL);
    if (size > 0) memcpy(copy, bytes, size);
    return copy;
}

#endif
