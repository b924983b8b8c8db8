/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "bench/harness/base.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { FIRST_CAPACITY = 16, READ_BYTES = 1 << 16 };

static const char *program_name = "bench";

void quern__bench_set_program(const char *name)
{
    program_name = name;
}

const char *quern__bench_program(void)
{
    return program_name;
}

static void print_message(const char *format, va_list arguments)
{
    fprintf(stderr, "%s: ", program_name);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
}

void quern__bench_note(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    print_message(format, arguments);
    va_end(arguments);
}

void quern_bench_die(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    print_message(format, arguments);
    va_end(arguments);
    exit(QUERN_BENCH_EXIT_FAILED);
}

void *quern_bench_allocate(size_t count, size_t size_bytes)
{
    void *memory = calloc(count > 0 ? count : 1, size_bytes);
    if (memory == NULL) quern_bench_die("out of memory (%zu times %zu bytes)", count, size_bytes);
    return memory;
}

uint64_t quern_bench_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

char *quern__bench_copy_text(const char *text)
{
    if (text == NULL) return NULL;
    const size_t size_bytes = strlen(text) + 1;
    return memcpy(quern_bench_allocate(1, size_bytes), text, size_bytes);
}

void *quern__bench_grow(void *elements, size_t count, size_t *capacity, size_t element_bytes)
{
    if (count < *capacity) return elements;
    const size_t wanted = *capacity > 0 ? *capacity * 2 : FIRST_CAPACITY;
    void *grown = realloc(elements, wanted * element_bytes);
    if (grown == NULL) quern_bench_die("out of memory (%zu times %zu bytes)", wanted, element_bytes);
    *capacity = wanted;
    return grown;
}

static char *read_all(FILE *file)
{
    char *text = NULL;
    size_t length = 0;
    for (;;) {
        char *grown = realloc(text, length + READ_BYTES + 1);
        if (grown == NULL) quern_bench_die("out of memory (%zu bytes)", length + READ_BYTES + 1);
        text = grown;
        const size_t count = fread(text + length, 1, READ_BYTES, file);
        length += count;
        if (count < READ_BYTES) break;
    }
    text[length] = '\0';
    return text;
}

char *quern__bench_read_file(const char *path)
{
    FILE *file = fopen(path, "r");
    if (file == NULL) return NULL;
    char *text = read_all(file);
    const int failed = ferror(file);
    fclose(file);
    if (failed == 0) return text;
    free(text);
    return NULL;
}
