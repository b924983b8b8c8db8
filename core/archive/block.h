/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_ARCHIVE_BLOCK_H
#define QUERN_CORE_ARCHIVE_BLOCK_H

/* Sections on their way to a sink, in blocks, and from a source back. Who writes sections need not ask
 * whether the sink took them: closing says so. What is read has been checked as a whole before the first
 * section is looked at; only memory for blocks that are there is ever asked for. */

#include "core/archive/archive_format.h"
#include "core/base/array.h"
#include "core/base/source_internal.h"

#include <quern/sink.h>

/* ----------------------------------------------------------------------------------------- writing */

typedef struct quern__block_writer {
    quern_sink sink;
    quern_allocator allocator;
    char *memory;        /* the head of a block, and its sections */
    char *compressed;    /* NULL: blocks are not */
    uint32_t used_bytes; /* of sections */
    uint32_t number;
    bool has_failed;
    int error; /* errno when the sink failed; 0: it set none */
} quern__block_writer;

/* Whether the library can compress blocks, and read those that are. */
bool quern__blocks_can_compress(void);

/* Errors: OUT_OF_MEMORY; UNAVAILABLE, without zstd. */
quern_result quern__block_writer_open(quern__block_writer *writer, quern_sink sink,
                                      const quern_allocator *allocator, bool compresses);

/* Room for the payload of a section, at most QUERN__SECTION_BYTES; what it is used for is told at the end.
 * */
char *quern__section_begin(quern__block_writer *writer, quern__section_kind kind, size_t max_bytes);

/* end: behind the last byte that was written. */
void quern__section_end(quern__block_writer *writer, const char *end);

/* Writes the last block, and releases all memory. Errors: FILE. */
quern_result quern__block_writer_close(quern__block_writer *writer);

/* Releases all memory, in place of closing. */
void quern__block_writer_drop(quern__block_writer *writer);

static inline char *quern__put(char *at, const void *bytes, size_t count)
{
    memcpy(at, bytes, count);
    return at + count;
}

static inline char *quern__put_u32(char *at, uint32_t value)
{
    return quern__put(at, &value, sizeof value);
}

static inline char *quern__put_name(char *at, const char *name)
{
    const uint8_t bytes = (uint8_t)strlen(name);
    *at = (char)bytes;
    return quern__put(at + 1, name, bytes);
}

/* ----------------------------------------------------------------------------------------- reading */

typedef struct quern__read_block {
    const char *sections;
    char *owned; /* the same, or NULL: they are in the source's memory */
    uint32_t bytes;
} quern__read_block;

typedef struct quern__blocks {
    QUERN__ARRAY(quern__read_block) list;
} quern__blocks;

/* Reads all blocks of an archive. Errors: BAD_ARCHIVE, OUT_OF_MEMORY, UNAVAILABLE (compressed, without
 * zstd); then there are none. */
quern_result quern__blocks_read(quern__blocks *blocks, quern_source source,
                                const quern_allocator *allocator);
void quern__blocks_release(quern__blocks *blocks, const quern_allocator *allocator);

/* One section after the other. */
typedef struct quern__section_walk {
    const quern__blocks *blocks;
    uint32_t block;
    uint32_t offset_bytes; /* in the block */
} quern__section_walk;

typedef struct quern__archive_section {
    quern__section_kind kind;
    quern__parser payload;
} quern__archive_section;

/* False at the end. */
bool quern__section_next(quern__section_walk *walk, quern__archive_section *out_section);

#endif
