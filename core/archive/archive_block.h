/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_ARCHIVE_ARCHIVE_BLOCK_H
#define QUERN_CORE_ARCHIVE_ARCHIVE_BLOCK_H

/* Sections on their way to a sink, in blocks, and from a source back. Who writes sections need not ask
 * whether the sink took them: closing says so. What is read has been checked as a whole before the first
 * section is looked at; only memory for blocks that are there is ever asked for. */

#include "core/archive/archive_format.h"
#include "core/base/array.h"
#include "core/base/sink_internal.h"
#include "core/base/source_internal.h"

/* ----------------------------------------------------------------------------------------- writing */

typedef struct quern__archive_writer {
    quern__sink_writer sink;
    quern_allocator allocator;
    quern__byte_writer block; /* fixed memory: the head of a block, and its sections */
    size_t section_at;        /* where the open section begins in the block */
    char *compressed;         /* NULL: blocks are not compressed */
    uint32_t number;
} quern__archive_writer;

/* Whether the library can compress blocks, and read those that are. */
bool quern__archive_can_compress(void);

/* Errors: OUT_OF_MEMORY; UNAVAILABLE, without zstd. */
quern_result quern__archive_writer_open(quern__archive_writer *writer, quern_sink sink,
                                        const quern_allocator *allocator, bool compresses);

/* Begins a section of at most max_bytes, which is at most QUERN__SECTION_BYTES. Returns the writer for its payload,
 * until the section ends or is dropped. */
quern__byte_writer *quern__section_begin(quern__archive_writer *writer, quern__section_kind kind,
                                         size_t max_bytes);

void quern__section_end(quern__archive_writer *writer);

/* Takes the open section back. */
void quern__section_cancel(quern__archive_writer *writer);

/* How many bytes the payload of the open section has so far. */
static inline size_t quern__section_bytes(const quern__archive_writer *writer)
{
    return writer->block.count - writer->section_at - sizeof(quern__section_head);
}

/* Writes the last block, and releases all memory. Errors: FILE. */
quern_result quern__archive_writer_close(quern__archive_writer *writer);

/* Releases all memory, in place of closing. */
void quern__archive_writer_abort(quern__archive_writer *writer);

/* ----------------------------------------------------------------------------------------- reading */

typedef struct quern__archive_block {
    const char *sections;
    char *owned; /* the same, or NULL: they are in the source's memory */
    uint32_t bytes;
} quern__archive_block;

typedef struct quern__archive_blocks {
    QUERN__ARRAY(quern__archive_block) list;
} quern__archive_blocks;

/* Reads all blocks of an archive. Errors: BAD_ARCHIVE, OUT_OF_MEMORY, UNAVAILABLE (compressed, without
 * zstd); then there are none. */
quern_result quern__archive_blocks_read(quern__archive_blocks *blocks, quern_source source,
                                        const quern_allocator *allocator);
void quern__archive_blocks_release(quern__archive_blocks *blocks, const quern_allocator *allocator);

/* One section after the other. */
typedef struct quern__section_iterator {
    const quern__archive_blocks *blocks;
    uint32_t next_block;
    quern__byte_reader block; /* what is left of the block before that */
} quern__section_iterator;

typedef struct quern__archive_section {
    quern__section_kind kind;
    quern__byte_reader payload;
} quern__archive_section;

/* False at the end. */
bool quern__section_next(quern__section_iterator *walk, quern__archive_section *out_section);

#endif
