/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Stands in for the header of Microsoft's SDK, for the tests headers_msvc and sources_msvc. */
#pragma once
#include <stddef.h>
#define EXIT_SUCCESS 0
#define EXIT_FAILURE 1
void *malloc(size_t bytes);
void *calloc(size_t count, size_t bytes);
void *realloc(void *memory, size_t bytes);
void free(void *memory);
_Noreturn void abort(void);
_Noreturn void exit(int status);
_Noreturn void _Exit(int status);
char *getenv(const char *name);
long strtol(const char *text, char **end, int base);
unsigned long strtoul(const char *text, char **end, int base);
unsigned long long strtoull(const char *text, char **end, int base);
long long strtoll(const char *text, char **end, int base);
double strtod(const char *text, char **end);
float strtof(const char *text, char **end);
void qsort(void *items, size_t count, size_t bytes, int (*compare)(const void *a, const void *b));
void *bsearch(const void *key, const void *items, size_t count, size_t bytes,
              int (*compare)(const void *a, const void *b));
int abs(int number);
