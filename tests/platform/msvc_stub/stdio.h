/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Stands in for the header of Microsoft's SDK, for the tests headers_msvc and sources_msvc. */
#pragma once
#include <stdarg.h>
#include <stddef.h>
typedef struct _iobuf FILE;
typedef long fpos_t;
#define SEEK_SET 0
#define SEEK_END 2
#define EOF      (-1)
#define stderr   quern_stub_stderr()
#define stdout   quern_stub_stderr()
FILE *quern_stub_stderr(void);
int snprintf(char *text, size_t bytes, const char *format, ...);
int vsnprintf(char *text, size_t bytes, const char *format, va_list arguments);
int sscanf(const char *text, const char *format, ...);
int fprintf(FILE *file, const char *format, ...);
int vfprintf(FILE *file, const char *format, va_list arguments);
int printf(const char *format, ...);
int fputs(const char *text, FILE *file);
int fputc(int character, FILE *file);
int fgetc(FILE *file);
int fscanf(FILE *file, const char *format, ...);
int _fileno(FILE *file);
FILE *fopen(const char *path, const char *mode);
int fclose(FILE *file);
int fflush(FILE *file);
int fseek(FILE *file, long offset, int origin);
long ftell(FILE *file);
int ferror(FILE *file);
int feof(FILE *file);
char *fgets(char *text, int bytes, FILE *file);
size_t fread(void *to, size_t bytes, size_t count, FILE *file);
size_t fwrite(const void *from, size_t bytes, size_t count, FILE *file);
int remove(const char *path);
int rename(const char *from, const char *to);
FILE *_wfopen(const wchar_t *path, const wchar_t *mode);
int _wremove(const wchar_t *path);
