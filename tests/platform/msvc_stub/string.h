/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Stands in for the header of Microsoft's SDK, for the tests headers_msvc and sources_msvc. */
#pragma once
#include <stddef.h>
void *memcpy(void *to, const void *from, size_t bytes);
void *memmove(void *to, const void *from, size_t bytes);
void *memset(void *to, int value, size_t bytes);
void *memchr(const void *in, int value, size_t bytes);
int memcmp(const void *a, const void *b, size_t bytes);
size_t strlen(const char *text);
int strcmp(const char *a, const char *b);
int strncmp(const char *a, const char *b, size_t bytes);
char *strchr(const char *text, int character);
char *strpbrk(const char *text, const char *characters);
size_t strcspn(const char *text, const char *characters);
char *strrchr(const char *text, int character);
char *strstr(const char *text, const char *part);
char *strncpy(char *to, const char *from, size_t bytes);
char *strcpy(char *to, const char *from);
size_t strspn(const char *text, const char *set);
size_t strcspn(const char *text, const char *set);
char *strerror(int error);
