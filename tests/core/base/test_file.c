/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "core/base/bytes.h"

#include <criterion/criterion.h>

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/quern_file_XXXXXX", path[64], temporary_path[80];

typedef struct text {
    const char *text;
    int error;
} text;

static int write_text(void *user_data, quern_sink sink)
{
    const text *of = user_data;
    if (!sink.write(sink.user_data, of->text, strlen(of->text))) return EIO;
    return of->error;
}

static void open_folder(void)
{
    cr_assert(mkdtemp(folder) != NULL);
    snprintf(path, sizeof path, "%s/file", folder);
}

static void remove_folder(void)
{
    remove(path);
    cr_assert_eq(rmdir(folder), 0, "nothing else is left beside the file");
}

static void assert_holds(const char *expected)
{
    char found[32] = "";
    FILE *file = fopen(path, "r");
    cr_assert(file != NULL);
    cr_assert(fgets(found, sizeof found, file) != NULL);
    fclose(file);
    cr_assert_str_eq(found, expected);
}

TestSuite(file, .init = open_folder, .fini = remove_folder);

Test(file, replaces_an_existing_file)
{
    cr_assert_eq(quern__file_write(path, temporary_path, write_text, &(text){"first text", 0}), 0);
    assert_holds("first text");
    cr_assert_eq(quern__file_write(path, temporary_path, write_text, &(text){"second", 0}), 0);
    assert_holds("second");
}

static void *read_pipe(void *unused)
{
    (void)unused;
    assert_holds("through the pipe");
    return NULL;
}

Test(file, a_pipe_gets_the_bytes_and_stays)
{
    pthread_t reader;
    cr_assert_eq(mkfifo(path, 0600), 0);
    cr_assert_eq(pthread_create(&reader, NULL, read_pipe, NULL), 0);
    cr_assert_eq(quern__file_write(path, temporary_path, write_text, &(text){"through the pipe", 0}), 0);
    cr_assert_eq(pthread_join(reader, NULL), 0);
    struct stat status;
    cr_assert(stat(path, &status) == 0 && S_ISFIFO(status.st_mode));
}

Test(file, keeps_the_existing_file_when_writing_fails)
{
    cr_assert_eq(quern__file_write(path, temporary_path, write_text, &(text){"first", 0}), 0);
    cr_assert_eq(quern__file_write(path, temporary_path, write_text, &(text){"half of", ENOSPC}), ENOSPC);
    cr_assert_neq(access(temporary_path, F_OK), 0);
    assert_holds("first");
}

Test(file, returns_the_errno_of_the_failure)
{
    cr_assert_eq(quern__file_write("/nowhere/at/all", temporary_path, write_text, &(text){"", 0}), ENOENT);
}
