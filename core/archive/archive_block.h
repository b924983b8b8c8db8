/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_ARCHIVE_ARCHIVE_BLOCK_H
#define QUERN_CORE_ARCHIVE_ARCHIVE_BLOCK_H

/* Writes the sections of an archive to a sink in blocks, and reads the blocks from a source.
 *
 * Code that writes sections need not check for errors of the sink: quern__archive_writer_close reports
 * the first one. Reading checks all blocks before it returns the first section. It allocates memory only
 * for blocks that exist in the source, so a forged size cannot cause a large allocation. */

#include "core/archive/archive_format.h"
#include "core/base/array.h"
#include "core/base/sink_internal.h"
#include "core/base/source_internal.h"

/* ----------------------------------------------------------------------------------------- writing */

typedef struct quern__archive_writer {
    quern__sink_writer sink;
    quern_allocator allocator;
    quern__byte_writer block; /* in memory of fixed size: head of the block, then its sections */
    size_t section_at;        /* offset of the open section in the block */
    char *compressed;         /* memory for compressed blocks; NULL: blocks are not compressed */
    uint32_t number;
    bool has_head; /* whether the head of the archive has reached the sink */
    quern__archive_head head;
    uint64_t checksum; /* of the checksums of the head and of all blocks so far */
} quern__archive_writer;

/* Whether the library was built with zstd, so that it can write and read compressed blocks. */
bool quern__archive_can_compress(void);

/* Allocates the memory of a writer. Errors: OUT_OF_MEMORY; UNAVAILABLE (compression without zstd, or a big-endian
 * machine). */
quern_result quern__archive_writer_init(quern__archive_writer *writer, const quern_allocator *allocator,
                                        bool compresses);
void quern__archive_writer_release(quern__archive_writer *writer);

/* Starts an archive. Nothing reaches the sink before a block is full, or the archive is finished. A writer can write
 * several archives, one after another; an unfinished one is abandoned. previous: the messages before this one; NULL for
 * an archive that is no message. */
void quern__archive_writer_start(quern__archive_writer *writer, quern_sink sink,
                                 const quern__archive_position *previous);

/* Begins a section with a payload of at most max_bytes bytes (at most QUERN__SECTION_BYTES). Returns the
 * writer for the payload, valid until the section is ended. */
quern__byte_writer *quern__section_begin(quern__archive_writer *writer, quern__section_kind kind,
                                         size_t max_bytes);

void quern__section_end(quern__archive_writer *writer);

/* Returns the current size of the open section's payload in bytes. */
static inline size_t quern__section_bytes(const quern__archive_writer *writer)
{
    return writer->block.count - writer->section_at - sizeof(quern__section_head);
}

/* Writes the last block. Errors: IO (the sink failed). */
quern_result quern__archive_writer_finish(quern__archive_writer *writer);

/* ----------------------------------------------------------------------------------------- reading */

typedef struct quern__archive_block {
    const char *sections;
    char *owned; /* memory of `sections`; NULL: it belongs to the source */
    uint32_t bytes;
} quern__archive_block;

typedef struct quern__archive_blocks {
    quern__archive_head head;
    uint64_t checksum; /* of the checksums of the head and of all blocks */
    QUERN__ARRAY(quern__archive_block) list;
} quern__archive_blocks;

/* Reads and checks all blocks of an archive. Errors: BAD_ARCHIVE, OUT_OF_MEMORY, UNAVAILABLE (compressed
 * archive without zstd, or a big-endian machine); then `blocks` is empty. */
quern_result quern__archive_blocks_read(quern__archive_blocks *blocks, quern_source source,
                                        const quern_allocator *allocator);
void quern__archive_blocks_release(quern__archive_blocks *blocks, const quern_allocator *allocator);

/* Iterates over the sections of all blocks. Initialise it with `blocks` alone. */
typedef struct quern__section_iterator {
    const quern__archive_blocks *blocks;
    uint32_t next_block;
    quern__byte_reader block; /* unread rest of the current block */
} quern__section_iterator;

typedef struct quern__archive_section {
    quern__section_kind kind;
    quern__byte_reader payload;
} quern__archive_section;

/* Stores the next section. Returns false if there is none. */
bool quern__section_next(quern__section_iterator *walk, quern__archive_section *out_section);

#endif
