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

/* Writes a file to the disk and drops it from the cache of the system, so that later reads access the
 * disk. */
static bool write_file(const char *path, const uint8_t *bytes, uint32_t byte_count)
{
    const int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (file < 0) return false;
    bool is_written = write(file, bytes, byte_count) == (ssize_t)byte_count && fsync(file) == 0;
#ifdef POSIX_FADV_DONTNEED
    posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
#endif
    return close(file) == 0 && is_written;
}

bool level_write_piece(const char *folder, uint32_t number, uint32_t byte_count_kept, bool is_damaged)
{
    static uint8_t bytes[sizeof(PieceHead) + BODY_BYTES_MAX];
    char path[sizeof(((Piece *)NULL)->path)];
    uint32_t byte_count = piece_encode(number, bytes);
    if (byte_count > byte_count_kept) byte_count = byte_count_kept;
    if (is_damaged) bytes[byte_count / 2] ^= 0x10;
    level_piece_path(folder, number, path, sizeof path);
    return write_file(path, bytes, byte_count);
}

/* -------------------------------------------------------------------------------------------- stages */

typedef struct BlockJob {
    Piece *piece;
    uint32_t block;
} BlockJob;

static bool is_complete(const ReadRequest *request)
{
    return request->error == 0 && request->read_count == request->byte_count;
}

/* Ends the program if a job cannot be submitted, because a piece needs all of its jobs. */
static void check(quern_result result)
{
    if (result == QUERN_OK) return;
    fprintf(stderr, "%s: %s\n", quern_result_string(result), quern_error_message());
    exit(EXIT_FAILURE);
}

static quern_result submit_after(const Level *level, quern_counter *after, quern_job_function *function,
                                 const BlockJob *payload, quern_counter *counter)
{
    const quern_job_def def = {.function = function,
                               .payload = payload,
                               .payload_bytes = sizeof *payload,
                               .priority = QUERN_PRIORITY_LOW,
                               .counter = counter};
    return quern_jobs_submit_after(level->jobs, &def, after);
}

static void decode(void *argument, uint32_t worker_index)
{
    const BlockJob *job = argument;
    Piece *piece = job->piece;
    const uint32_t first = job->block * BLOCK_ROWS;
    (void)worker_index;
    piece->is_block_sound[job->block] =
        is_complete(&piece->body_request) &&
        piece_decode_block(&piece->head, piece->body, job->block, &piece->placements[first]);
    if (!piece->is_block_sound[job->block]) return;
    for (uint32_t i = first; i < first + BLOCK_ROWS; i++)
        piece->sways[i] = (Sway){.lean = (float)(piece->placements[i].x & 0xFF) / 256,
                                 .stiffness = 1 + (float)piece->placements[i].kind / 64};
}

static void finish(void *argument, uint32_t worker_index)
{
    Piece *piece = ((const BlockJob *)argument)->piece;
    (void)worker_index;
    if (!is_complete(&piece->body_request)) {
        piece->failure = PIECE_BODY_NOT_READ;
        return;
    }
    for (uint32_t block = PIECE_BLOCKS; block-- > 0;) {
        if (piece->is_block_sound[block]) continue;
        piece->failure = PIECE_BLOCK_DAMAGED;
        piece->damaged_block = block;
    }
}

/* Checks the head and requests the body. The jobs of the later stages are submitted before the read is
 * requested, so neither of their counters can reach zero before it counts all of its jobs. */
static void open_piece(void *argument, uint32_t worker_index)
{
    const BlockJob *job = argument;
    Piece *piece = job->piece;
    (void)worker_index;
    if (!is_complete(&piece->head_request))
        piece->failure = PIECE_HEAD_NOT_READ;
    else if (!piece_head_is_sound(&piece->head, piece->number))
        piece->failure = PIECE_HEAD_DAMAGED;
    if (piece->failure != PIECE_IS_SOUND) return;

    quern_counter_hold(&piece->body_read);
    for (uint32_t block = 0; block < PIECE_BLOCKS; block++)
        check(submit_after(piece->level, &piece->body_read, decode, &(BlockJob){piece, block},
                           &piece->decoded));
    check(submit_after(piece->level, &piece->decoded, finish, job, &piece->ready));
    piece->body_request = (ReadRequest){.path = piece->path,
                                        .offset = sizeof piece->head,
                                        .bytes = piece->body,
                                        .byte_count = piece->head.block_ends[PIECE_BLOCKS - 1],
                                        .arrived = &piece->body_read};
    reader_submit(piece->level->files, &piece->body_request);
}

quern_result level_request(Level *level, uint32_t number, Piece *piece)
{
    piece->level = level;
    piece->number = number;
    piece->failure = PIECE_IS_SOUND;
    level_piece_path(level->folder, number, piece->path, sizeof piece->path);

    quern_counter_hold(&piece->head_read);
    const quern_result result =
        submit_after(level, &piece->head_read, open_piece, &(BlockJob){piece, 0}, &piece->ready);
    if (result != QUERN_OK) {
        quern_counter_release(level->jobs, &piece->head_read);
        return result;
    }
    piece->head_request = (ReadRequest){.path = piece->path,
                                        .bytes = &piece->head,
                                        .byte_count = sizeof piece->head,
                                        .arrived = &piece->head_read};
    reader_submit(level->files, &piece->head_request);
    return QUERN_OK;
}

/* ------------------------------------------------------------------------------------------- reports */

static void report_read(const ReadRequest *request, FILE *to)
{
    if (request->error != 0)
        fprintf(to, "cannot be read: %s\n", strerror(request->error));
    else
        fprintf(to, "ends after %llu bytes\n", (unsigned long long)(request->offset + request->read_count));
}

void level_report(const Piece *failed, FILE *to)
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
