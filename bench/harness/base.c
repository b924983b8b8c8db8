/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Messages, memory, and files that stay intact until all results have been written. */
#include "bench/harness/base.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

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

char *quern__bench_read_file(const char *path)
{
    FILE *file = fopen(path, "r");
    if (file == NULL) return NULL;
    char *text = NULL;
    size_t length = 0, count = READ_BYTES;
    while (count == READ_BYTES) {
        char *grown = realloc(text, length + READ_BYTES + 1);
        if (grown == NULL) quern_bench_die("out of memory (%zu bytes)", length + READ_BYTES + 1);
        text = grown;
        count = fread(text + length, 1, READ_BYTES, file);
        length += count;
    }
    text[length] = '\0';
    const int failed = ferror(file);
    fclose(file);
    if (failed == 0) return text;
    free(text);
    return NULL;
}

static const char partial_suffix[] = ".partial";

/* ------------------------------------------------------------------------------------ outputs that end early */

enum { MAX_OPEN = 8 };

/* A partial file that is open. The message is formatted in advance, because signal handlers must not
 * allocate or format. */
typedef struct open_partial {
    const quern__bench_output *output; /* NULL: the entry is free */
    char *message; /* printed if the program ends early; NULL: the partial file is removed instead */
    size_t message_bytes;
} open_partial;

static open_partial open_partials[MAX_OPEN];
static pid_t owner; /* process that opened the files; forked processes leave them alone */

static const int deadly_signals[] = {SIGHUP, SIGINT, SIGTERM};
enum { SIGNAL_COUNT = sizeof deadly_signals / sizeof deadly_signals[0] };
static struct sigaction old_actions[SIGNAL_COUNT];

/* Removes partial files, or prints where they are. Calls only functions that are safe in signal handlers. */
static void abandon_partials(void)
{
    if (getpid() != owner) return;
    for (int i = 0; i < MAX_OPEN; i++) {
        const open_partial *item = &open_partials[i];
        if (item->output == NULL) continue;
        if (item->message == NULL)
            unlink(item->output->partial);
        else if (write(STDERR_FILENO, item->message, item->message_bytes) < 0)
            continue; /* stderr is closed */
    }
}

/* SA_RESETHAND restores the default action before the handler runs, so that raise() ends the program. */
static void handle_signal(int number)
{
    abandon_partials();
    raise(number);
}

static bool is_any_open(void)
{
    for (int i = 0; i < MAX_OPEN; i++)
        if (open_partials[i].output != NULL) return true;
    return false;
}

static void remember(const quern__bench_output *output)
{
    static bool registered;
    if (!registered) registered = atexit(abandon_partials) == 0;
    owner = getpid();
    if (!is_any_open()) {
        struct sigaction action = {.sa_handler = handle_signal, .sa_flags = (int)SA_RESETHAND};
        for (int i = 0; i < SIGNAL_COUNT; i++) {
            sigaction(deadly_signals[i], NULL, &old_actions[i]);
            if (old_actions[i].sa_handler == SIG_DFL) sigaction(deadly_signals[i], &action, NULL);
        }
    }
    open_partial *item = open_partials;
    while (item->output != NULL)
        if (++item == open_partials + MAX_OPEN)
            quern_bench_die("more than %d output files are open", MAX_OPEN);
    item->message_bytes = 0;
    item->message = NULL;
    if (output->has_lines) {
        const char *format = "%s: the program ended early; the results until then are in %s\n";
        const int length = snprintf(NULL, 0, format, quern__bench_program(), output->partial);
        item->message_bytes = (size_t)length;
        item->message = quern_bench_allocate(item->message_bytes + 1, 1);
        snprintf(item->message, item->message_bytes + 1, format, quern__bench_program(), output->partial);
    }
    item->output = output;
}

static void forget(const quern__bench_output *output)
{
    for (int i = 0; i < MAX_OPEN; i++) {
        if (open_partials[i].output != output) continue;
        open_partials[i].output = NULL;
        free(open_partials[i].message);
    }
    for (int i = 0; i < SIGNAL_COUNT && !is_any_open(); i++) {
        struct sigaction action;
        sigaction(deadly_signals[i], NULL, &action);
        if (action.sa_handler == handle_signal) sigaction(deadly_signals[i], &old_actions[i], NULL);
    }
}

static bool is_file_of_other_output(const quern__bench_output *output)
{
    for (int i = 0; i < MAX_OPEN; i++) {
        const quern__bench_output *other = open_partials[i].output;
        if (other != NULL && other->device == output->device && other->inode == output->inode) return true;
    }
    return false;
}

/* -------------------------------------------------------------------------------- outputs */

static void release(quern__bench_output *output)
{
    free(output->target);
    free(output->partial);
    *output = (quern__bench_output){0};
}

static bool refuse(quern__bench_output *output, const char *reason)
{
    quern__bench_note("%s: %s", output->path, reason);
    if (output->file != NULL) fclose(output->file);
    release(output);
    return false;
}

/* Finds the file that a partial file is to replace, and follows symbolic links. For a special file, the
 * target stays NULL. old: status of the existing file; st_mode is 0 if there is none. Returns false, with
 * errno, if the file must not be written. */
static bool find_target(quern__bench_output *output, struct stat *old)
{
    if (stat(output->path, old) != 0) {
        old->st_mode = 0;
        output->target = quern__bench_copy_text(output->path);
        return true;
    }
    if (!S_ISREG(old->st_mode)) return true;
    if (access(output->path, W_OK) != 0) return false;
    output->target = realpath(output->path, NULL);
    return output->target != NULL;
}

static bool open_partial_file(quern__bench_output *output, const struct stat *old)
{
    const size_t path_bytes = strlen(output->target) + sizeof partial_suffix;
    output->partial = quern_bench_allocate(path_bytes, 1);
    snprintf(output->partial, path_bytes, "%s%s", output->target, partial_suffix);
    output->file = fopen(output->partial, "w");
    struct stat now;
    if (output->file == NULL || fstat(fileno(output->file), &now) != 0) return false;
    output->device = now.st_dev;
    output->inode = now.st_ino;
    return old->st_mode == 0 || fchmod(fileno(output->file), old->st_mode & 07777) == 0;
}

bool quern__bench_output_open(quern__bench_output *output, const char *path, bool has_lines)
{
    *output = (quern__bench_output){.path = path, .has_lines = has_lines};
    if (path == NULL) return true;
    if (strcmp(path, "-") == 0) {
        output->file = stdout;
        return true;
    }
    struct stat old;
    if (!find_target(output, &old)) return refuse(output, strerror(errno));
    if (output->target == NULL) {
        output->file = fopen(path, "w");
        return output->file != NULL || refuse(output, strerror(errno));
    }
    if (!open_partial_file(output, &old)) return refuse(output, strerror(errno));
    if (is_file_of_other_output(output))
        return refuse(output, "another option writes to the same file; give each its own");
    remember(output);
    return true;
}

const char *quern__bench_output_path(const quern__bench_output *output)
{
    return output->partial != NULL ? output->partial : output->path;
}

bool quern__bench_output_close(quern__bench_output *output, bool keep)
{
    if (output->file == NULL) return true;
    bool done = ferror(output->file) == 0;
    if (output->file != stdout) done = fclose(output->file) == 0 && done;
    if (output->target != NULL) {
        if (done && keep) done = rename(output->partial, output->target) == 0;
        if (!done || !keep) unlink(output->partial);
        forget(output);
    }
    if (!done && output->file != stdout)
        quern__bench_note("%s: the file could not be written%s", output->path,
                          output->target != NULL ? "; its earlier contents are unchanged" : "");
    release(output);
    return done;
}

bool quern__bench_stdout_check(void)
{
    const bool flushed = fflush(stdout) == 0;
    if (flushed && ferror(stdout) == 0) return true;
    quern__bench_note("standard output could not be written");
    return false;
}
