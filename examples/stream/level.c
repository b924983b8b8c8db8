/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "level.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* --------------------------------------------------------------------------------------------- files */

void level_piece_path(const char *folder, uint32_t number, char *out_path, size_t path_bytes)
{
    snprintf(out_path, path_bytes, "%s/piece-%u", folder, number);
}

/* Writes a file to the disk and drops it from the cache of the system, so that reading is real. */
static bool write_file(const char *path, const uint8_t *bytes, uint32_t byte_count)
{
    const int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (file < 0) return false;
    bool is_fine = write(file, bytes, byte_count) == (ssize_t)byte_count && fsync(file) == 0;
#ifdef POSIX_FADV_DONTNEED
    posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
#endif
    return close(file) == 0 && is_fine;
}

bool level_write_piece(const char *folder, uint32_t number, uint32_t byte_count_kept, bool is_damaged)
{
    static uint8_t bytes[sizeof(piece_head) + BODY_BYTES_MAX];
    char path[sizeof(((piece *)NULL)->path)];
    uint32_t byte_count = piece_encode(number, bytes);
    if (byte_count > byte_count_kept) byte_count = byte_count_kept;
    if (is_damaged) bytes[byte_count / 2] ^= 0x10;
    level_piece_path(folder, number, path, sizeof path);
    return write_file(path, bytes, byte_count);
}

/* -------------------------------------------------------------------------------------------- stages */

typedef struct block_job {
    piece *of;
    uint32_t block;
} block_job;

static bool is_read(const read_request *request)
{
    return request->error == 0 && request->read_count == request->byte_count;
}

/* Ends the program if a job cannot be submitted: the level needs all of them. */
static void check(quern_result result)
{
    if (result == QUERN_OK) return;
    fprintf(stderr, "%s: %s\n", quern_result_string(result), quern_error_message());
    exit(EXIT_FAILURE);
}

static quern_result submit_after(const level *of, quern_counter *after, quern_job_function *function,
                                 const block_job *payload, quern_counter *counter)
{
    const quern_job_def def = {.function = function,
                               .payload = payload,
                               .payload_bytes = sizeof *payload,
                               .priority = QUERN_PRIORITY_LOW,
                               .counter = counter};
    return quern_jobs_submit_after(of->jobs, &def, after);
}

static void decode(void *argument, uint32_t worker_index)
{
    const block_job *mine = argument;
    piece *of = mine->of;
    const uint32_t first = mine->block * BLOCK_ROWS;
    (void)worker_index;
    of->is_block_sound[mine->block] =
        is_read(&of->body_request) &&
        piece_decode_block(&of->head, of->body, mine->block, &of->placements[first]);
    if (!of->is_block_sound[mine->block]) return;
    for (uint32_t i = first; i < first + BLOCK_ROWS; i++)
        of->sways[i] = (Sway){.lean = (float)(of->placements[i].x & 0xFF) / 256,
                              .stiffness = 1 + (float)of->placements[i].kind / 64};
}

static void finish(void *argument, uint32_t worker_index)
{
    piece *of = ((const block_job *)argument)->of;
    (void)worker_index;
    if (!is_read(&of->body_request)) {
        of->failure = PIECE_BODY_NOT_READ;
        return;
    }
    for (uint32_t block = PIECE_BLOCKS; block-- > 0;) {
        if (of->is_block_sound[block]) continue;
        of->failure = PIECE_BLOCK_DAMAGED;
        of->damaged_block = block;
    }
}

/* Reads the head and requests the body. The following stages are submitted before the read, so neither
 * counter can reach zero before all of them are known. */
static void open_piece(void *argument, uint32_t worker_index)
{
    const block_job *mine = argument;
    piece *of = mine->of;
    (void)worker_index;
    if (!is_read(&of->head_request))
        of->failure = PIECE_HEAD_NOT_READ;
    else if (!piece_head_is_sound(&of->head, of->number))
        of->failure = PIECE_HEAD_DAMAGED;
    if (of->failure != PIECE_IS_SOUND) return;

    quern_counter_hold(&of->body_read);
    for (uint32_t block = 0; block < PIECE_BLOCKS; block++)
        check(submit_after(of->of, &of->body_read, decode, &(block_job){of, block}, &of->decoded));
    check(submit_after(of->of, &of->decoded, finish, mine, &of->ready));
    of->body_request = (read_request){.path = of->path,
                                      .offset = sizeof of->head,
                                      .bytes = of->body,
                                      .byte_count = of->head.block_ends[PIECE_BLOCKS - 1],
                                      .arrived = &of->body_read};
    reader_ask(of->of->files, &of->body_request);
}

quern_result level_ask(level *of, uint32_t number, piece *asked)
{
    asked->of = of;
    asked->number = number;
    asked->failure = PIECE_IS_SOUND;
    level_piece_path(of->folder, number, asked->path, sizeof asked->path);

    quern_counter_hold(&asked->head_read);
    const quern_result result =
        submit_after(of, &asked->head_read, open_piece, &(block_job){asked, 0}, &asked->ready);
    if (result != QUERN_OK) {
        quern_counter_release(of->jobs, &asked->head_read);
        return result;
    }
    asked->head_request = (read_request){.path = asked->path,
                                         .bytes = &asked->head,
                                         .byte_count = sizeof asked->head,
                                         .arrived = &asked->head_read};
    reader_ask(of->files, &asked->head_request);
    return QUERN_OK;
}

/* ------------------------------------------------------------------------------------------- reports */

static void report_read(const read_request *request, FILE *to)
{
    if (request->error != 0)
        fprintf(to, "cannot be read: %s\n", strerror(request->error));
    else
        fprintf(to, "ends after %llu bytes\n", (unsigned long long)(request->offset + request->read_count));
}

void level_report(const piece *failed, FILE *to)
{
    fprintf(to, "piece %u is left out: ", failed->number);
    switch (failed->failure) {
    case PIECE_HEAD_NOT_READ:
        report_read(&failed->head_request, to);
        break;
    case PIECE_HEAD_DAMAGED:
        fprintf(to, "its head is damaged\n");
        break;
    case PIECE_BODY_NOT_READ:
        report_read(&failed->body_request, to);
        break;
    case PIECE_BLOCK_DAMAGED:
        fprintf(to, "block %u is damaged\n", failed->damaged_block);
        break;
    default:
        fprintf(to, "nothing is wrong with it\n");
        break;
    }
}
