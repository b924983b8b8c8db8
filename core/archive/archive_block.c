/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "core/archive/archive_internal.h"

#include "core/base/containers.h"

#include <errno.h>

enum { LANES = 8, STRIPE_BYTES = LANES * sizeof(uint64_t) };

/* 2^64 divided by the golden ratio: odd, with set bits spread over the whole word. */
#define FACTOR 0x9E3779B97F4A7C15ull

static inline void mix_stripe(uint64_t *lanes, const char *stripe)
{
    uint64_t words[LANES];
    memcpy(words, stripe, sizeof words);
    for (uint32_t i = 0; i < LANES; i++) {
        uint64_t lane = lanes[i];
        lane = (lane ^ words[i]) * FACTOR;
        lanes[i] = lane << 29 | lane >> 35;
    }
}

uint64_t quern__checksum(uint64_t seed, const void *bytes, size_t count)
{
    const char *at = bytes;
    uint64_t lanes[LANES], hash = quern__hash_word(seed, count);
    for (uint32_t i = 0; i < LANES; i++)
        lanes[i] = seed + i * FACTOR;
    for (; count >= STRIPE_BYTES; at += STRIPE_BYTES, count -= STRIPE_BYTES)
        mix_stripe(lanes, at);
    if (count > 0) {
        char rest[STRIPE_BYTES] = {0};
        memcpy(rest, at, count);
        mix_stripe(lanes, rest);
    }
    for (uint32_t i = 0; i < LANES; i++)
        hash = quern__hash_word(hash, lanes[i]);
    return hash;
}

#ifndef QUERN_WITH_ZSTD
#define QUERN_WITH_ZSTD 0
#endif

#if QUERN_WITH_ZSTD
#include <zstd.h>
#endif

enum {
    ARCHIVE_ALIGNMENT_BYTES = 64,
    HEAD_BYTES = sizeof(quern__archive_block_head),
    BLOCK_MEMORY_BYTES = HEAD_BYTES + QUERN__ARCHIVE_BLOCK_BYTES,
    ZSTD_LEVEL = 1
};

_Static_assert(HEAD_BYTES % QUERN__SECTION_ALIGNMENT_BYTES == 0 &&
                   sizeof(quern__archive_head) % QUERN__SECTION_ALIGNMENT_BYTES == 0,
               "sections are aligned in the archive");

/* ----------------------------------------------------------------------------------------- compressing */

bool quern__archive_can_compress(void)
{
#if QUERN_WITH_ZSTD
    return true;
#else
    return false;
#endif
}

static quern_result fail_without_zstd(const char *what)
{
    return quern__fail(QUERN_ERROR_UNAVAILABLE,
                       "%s, but this library was built without zstd: configure it with QUERN_WITH_ZSTD=ON, "
                       "or save without compress",
                       what);
}

/* Compresses the sections of a block. Returns the number of compressed bytes, or 0 if compression does
 * not make them fewer. */
static uint32_t compress_block(char *target, const char *sections, uint32_t bytes)
{
#if QUERN_WITH_ZSTD
    const size_t result = ZSTD_compress(target, bytes, sections, bytes, ZSTD_LEVEL);
    return ZSTD_isError(result) || result >= bytes ? 0 : (uint32_t)result;
#else
    (void)target, (void)sections, (void)bytes;
    return 0;
#endif
}

static bool decompress_block(char *sections, uint32_t bytes, const char *stored, uint32_t stored_bytes)
{
#if QUERN_WITH_ZSTD
    return ZSTD_decompress(sections, bytes, stored, stored_bytes) == bytes;
#else
    (void)sections, (void)bytes, (void)stored, (void)stored_bytes;
    return false;
#endif
}

/* ----------------------------------------------------------------------------------------- writing */

quern_result quern__archive_writer_init(quern__archive_writer *writer, const quern_allocator *allocator,
                                        bool compresses)
{
    *writer = (quern__archive_writer){.allocator = *allocator};
    if (!QUERN__ARCHIVE_IS_NATIVE)
        return quern__fail(
            QUERN_ERROR_UNAVAILABLE,
            "archives are little-endian, but this machine is big-endian: save on a little-endian machine");
    if (compresses && !quern__archive_can_compress()) return fail_without_zstd("compress is set");
    writer->block = (quern__byte_writer){
        .bytes = quern__allocate(allocator, BLOCK_MEMORY_BYTES, ARCHIVE_ALIGNMENT_BYTES),
        .count = HEAD_BYTES,
        .capacity = BLOCK_MEMORY_BYTES};
    if (compresses)
        writer->compressed =
            quern__allocate(allocator, QUERN__ARCHIVE_BLOCK_BYTES, ARCHIVE_ALIGNMENT_BYTES);
    if (writer->block.bytes != NULL && (!compresses || writer->compressed != NULL)) return QUERN_OK;
    quern__archive_writer_release(writer);
    return quern__fail(QUERN_ERROR_OUT_OF_MEMORY,
                       "out of memory for the block buffer of an archive; nothing was written");
}

void quern__archive_writer_release(quern__archive_writer *writer)
{
    quern__release(&writer->allocator, writer->block.bytes, BLOCK_MEMORY_BYTES, ARCHIVE_ALIGNMENT_BYTES);
    quern__release(&writer->allocator, writer->compressed, QUERN__ARCHIVE_BLOCK_BYTES,
                   ARCHIVE_ALIGNMENT_BYTES);
    writer->block.bytes = writer->compressed = NULL;
}

/* Adds the checksum of the head or of the next block to that of the archive. */
static void add_checksum(uint64_t *checksum, uint64_t of_part)
{
    *checksum = quern__checksum(*checksum, &of_part, sizeof of_part);
}

void quern__archive_writer_start(quern__archive_writer *writer, quern_sink sink,
                                 const quern__archive_position *previous)
{
    quern__archive_head *head = &writer->head;
    *head =
        (quern__archive_head){.version = QUERN__ARCHIVE_VERSION,
                              .message_number = previous != NULL ? quern__archive_next_number(previous) : 0,
                              .previous_checksum = previous != NULL ? previous->checksum : 0};
    memcpy(head->magic, QUERN__ARCHIVE_MAGIC, sizeof head->magic);
    head->checksum = quern__checksum(0, head, offsetof(quern__archive_head, checksum));
    writer->checksum = 0;
    add_checksum(&writer->checksum, head->checksum);
    writer->sink = (quern__sink_writer){.sink = sink};
    writer->has_head = false;
    writer->number = 0;
    writer->block.count = HEAD_BYTES;
}

static void flush(quern__archive_writer *writer, bool is_last)
{
    quern__byte_writer *block = &writer->block;
    const uint32_t bytes = (uint32_t)(block->count - HEAD_BYTES);
    const char *sections = block->bytes + HEAD_BYTES;
    quern__archive_block_head head = {.mark = QUERN__ARCHIVE_BLOCK_MARK,
                                      .number = writer->number++,
                                      .stored_bytes = bytes,
                                      .sections_bytes = bytes,
                                      .flags = is_last ? QUERN__ARCHIVE_BLOCK_IS_LAST : 0};
    const uint32_t compressed_bytes =
        writer->compressed != NULL ? compress_block(writer->compressed, sections, bytes) : 0;
    if (compressed_bytes > 0) {
        head.stored_bytes = compressed_bytes;
        head.flags |= QUERN__ARCHIVE_BLOCK_IS_COMPRESSED;
        sections = writer->compressed;
    }
    head.checksum = quern__checksum(0, &head, offsetof(quern__archive_block_head, checksum));
    head.checksum = quern__checksum(head.checksum, sections, head.stored_bytes);
    add_checksum(&writer->checksum, head.checksum);
    quern__write_back(block, 0, &head, sizeof head);
    if (!writer->has_head) quern__sink_write(&writer->sink, &writer->head, sizeof writer->head);
    writer->has_head = true;
    quern__sink_write(&writer->sink, block->bytes, compressed_bytes > 0 ? HEAD_BYTES : block->count);
    if (compressed_bytes > 0) quern__sink_write(&writer->sink, sections, compressed_bytes);
    block->count = HEAD_BYTES;
}

quern__byte_writer *quern__section_begin(quern__archive_writer *writer, quern__section_kind kind,
                                         size_t max_bytes)
{
    const quern__section_head head = {.kind = kind};
    assert(max_bytes <= QUERN__SECTION_BYTES);
    const size_t wanted_bytes = sizeof head + quern__align_up(max_bytes, QUERN__SECTION_ALIGNMENT_BYTES);
    quern__byte_writer *block = &writer->block;
    if (block->count + wanted_bytes > BLOCK_MEMORY_BYTES) flush(writer, false);
    writer->section_at = block->count;
    memcpy(block->bytes + block->count, &head,
           sizeof head); /* fits: max_bytes and the padding at the end fit too */
    block->count += sizeof head;
    return block;
}

void quern__section_end(quern__archive_writer *writer)
{
    quern__byte_writer *block = &writer->block;
    const uint32_t bytes = (uint32_t)quern__section_bytes(writer);
    const size_t zeros = quern__align_up(bytes, QUERN__SECTION_ALIGNMENT_BYTES) - bytes;
    assert(!block->has_failed && bytes <= QUERN__SECTION_BYTES && zeros <= block->capacity - block->count);
    memcpy(block->bytes + writer->section_at + offsetof(quern__section_head, bytes), &bytes, sizeof bytes);
    memset(block->bytes + block->count, 0, zeros);
    block->count += zeros;
}

quern_result quern__archive_writer_finish(quern__archive_writer *writer)
{
    flush(writer, true);
    quern__sink_write(&writer->sink, "", 0);
    return quern__sink_check(&writer->sink, "the archive");
}

/* ----------------------------------------------------------------------------------------- reading */

void quern__archive_blocks_release(quern__archive_blocks *blocks, const quern_allocator *allocator)
{
    for (uint32_t i = 0; i < blocks->list.count; i++)
        quern__release(allocator, blocks->list.items[i].owned, blocks->list.items[i].bytes,
                       ARCHIVE_ALIGNMENT_BYTES);
    quern__array_release(allocator, &blocks->list);
    *blocks = (quern__archive_blocks){0};
}

static quern_result fail_short(const quern__source_reader *reader, const char *what)
{
    return quern__fail(
        QUERN_ERROR_BAD_ARCHIVE,
        "the archive is truncated: it ends at or after byte %llu, within %s (%s); use a complete copy",
        (unsigned long long)reader->offset_bytes, what,
        reader->error != 0 ? strerror(reader->error) : "the source has no more bytes");
}

static quern_result read_archive_head(quern__source_reader *reader, quern__archive_head *out_head)
{
    quern__archive_head head;
    if (!QUERN__ARCHIVE_IS_NATIVE)
        return quern__fail(
            QUERN_ERROR_UNAVAILABLE,
            "archives are little-endian, but this machine is big-endian: load on a little-endian machine");
    if (!quern__source_read(reader, &head, sizeof head)) return fail_short(reader, "its head");
    if (memcmp(head.magic, QUERN__ARCHIVE_MAGIC, sizeof head.magic) != 0)
        return quern__fail(QUERN_ERROR_BAD_ARCHIVE,
                           "the source is not an archive: it does not begin with '%s'",
                           QUERN__ARCHIVE_MAGIC);
    if (head.checksum != quern__checksum(0, &head, offsetof(quern__archive_head, checksum)))
        return quern__fail(QUERN_ERROR_BAD_ARCHIVE,
                           "the archive is damaged: bytes 0 to %zu (the head) do not match their checksum; "
                           "use an intact copy",
                           sizeof head - 1);
    if (head.version != QUERN__ARCHIVE_VERSION)
        return quern__fail(
            QUERN_ERROR_BAD_ARCHIVE,
            "the archive has version %u, but this library reads version %d only: load it with a library "
            "that reads its version, and save it with a library that writes version %d",
            head.version, QUERN__ARCHIVE_VERSION, QUERN__ARCHIVE_VERSION);
    *out_head = head;
    return QUERN_OK;
}

static quern_result fail_block(uint32_t number, uint64_t offset_bytes, const char *why)
{
    return quern__fail(QUERN_ERROR_BAD_ARCHIVE,
                       "the archive is damaged: block %u at byte %llu %s; use an intact copy", number,
                       (unsigned long long)offset_bytes, why);
}

static quern_result check_block_head(const quern__archive_block_head *head, uint32_t number,
                                     uint64_t offset_bytes)
{
    const uint32_t flags = QUERN__ARCHIVE_BLOCK_IS_LAST | QUERN__ARCHIVE_BLOCK_IS_COMPRESSED;
    const bool is_compressed = (head->flags & QUERN__ARCHIVE_BLOCK_IS_COMPRESSED) != 0;
    if (head->mark != QUERN__ARCHIVE_BLOCK_MARK || head->number != number || head->zero != 0 ||
        (head->flags & ~flags) != 0)
        return fail_block(number, offset_bytes, "does not begin with the head of that block");
    if (head->sections_bytes > QUERN__ARCHIVE_BLOCK_BYTES || head->stored_bytes > head->sections_bytes ||
        (is_compressed ? head->stored_bytes == 0 : head->stored_bytes != head->sections_bytes))
        return fail_block(number, offset_bytes, "has an impossible size");
    return QUERN_OK;
}

/* Reads the stored bytes of a block: borrows them from a source in memory, or copies them into memory
 * that the block owns. */
static quern_result read_stored(quern__archive_block *block, quern__source_reader *reader, uint32_t bytes,
                                const quern_allocator *allocator, const char **out_stored)
{
    if (bytes == 0) {
        *out_stored = "";
        return QUERN_OK;
    }
    if (reader->source.memory != NULL) {
        *out_stored = quern__source_borrow(reader, bytes);
        return *out_stored != NULL ? QUERN_OK : fail_short(reader, "a block");
    }
    block->owned = quern__allocate(allocator, bytes, ARCHIVE_ALIGNMENT_BYTES);
    if (block->owned == NULL)
        return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "out of memory for a block of %u bytes", bytes);
    block->bytes = bytes;
    *out_stored = block->owned;
    return quern__source_read(reader, block->owned, bytes) ? QUERN_OK : fail_short(reader, "a block");
}

/* Replaces the stored bytes of a compressed block by its sections. */
static quern_result decompress(quern__archive_block *block, const quern__archive_block_head *head,
                               const char *stored, const quern_allocator *allocator, uint64_t offset_bytes)
{
    if (!quern__archive_can_compress()) return fail_without_zstd("the archive is compressed");
    char *sections = quern__allocate(allocator, head->sections_bytes, ARCHIVE_ALIGNMENT_BYTES);
    if (sections == NULL)
        return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "out of memory for a block of %u bytes",
                           head->sections_bytes);
    const bool is_decompressed =
        decompress_block(sections, head->sections_bytes, stored, head->stored_bytes);
    quern__release(allocator, block->owned, block->bytes, ARCHIVE_ALIGNMENT_BYTES);
    block->owned = sections;
    block->bytes = head->sections_bytes;
    block->sections = sections;
    return is_decompressed ? QUERN_OK : fail_block(head->number, offset_bytes, "cannot be decompressed");
}

/* Whether the block consists of complete sections of known kinds. */
static bool has_whole_sections(const quern__archive_block *block)
{
    quern__byte_reader reader = quern__byte_reader_open(block->sections, block->bytes);
    while (quern__bytes_left(&reader) > 0) {
        quern__section_head head;
        quern__read(&reader, &head, sizeof head);
        if (head.bytes > QUERN__SECTION_BYTES || head.kind < QUERN__SECTION_WORLD ||
            head.kind > QUERN__SECTION_LISTS)
            return false;
        quern__read_in_place(&reader, quern__align_up(head.bytes, QUERN__SECTION_ALIGNMENT_BYTES));
    }
    return !reader.has_failed;
}

static quern_result read_block(quern__archive_blocks *blocks, quern__source_reader *reader,
                               const quern_allocator *allocator, bool *out_is_last)
{
    const uint64_t offset_bytes = reader->offset_bytes;
    const uint32_t number = blocks->list.count;
    quern__archive_block_head head;
    if (!quern__source_read(reader, &head, sizeof head)) return fail_short(reader, "the head of a block");
    quern_result result = check_block_head(&head, number, offset_bytes);
    if (result != QUERN_OK) return result;
    if (!quern__array_reserve(allocator, &blocks->list, number + 1))
        return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "out of memory for the list of %u blocks",
                           number + 1);
    quern__archive_block *block = &blocks->list.items[blocks->list.count++];
    *block = (quern__archive_block){0};
    const char *stored;
    result = read_stored(block, reader, head.stored_bytes, allocator, &stored);
    if (result != QUERN_OK) return result;
    const uint64_t seed = quern__checksum(0, &head, offsetof(quern__archive_block_head, checksum));
    if (head.checksum != quern__checksum(seed, stored, head.stored_bytes))
        return fail_block(number, offset_bytes, "does not match its checksum");
    add_checksum(&blocks->checksum, head.checksum);
    block->sections = stored;
    block->bytes = head.stored_bytes;
    if ((head.flags & QUERN__ARCHIVE_BLOCK_IS_COMPRESSED) != 0)
        result = decompress(block, &head, stored, allocator, offset_bytes);
    if (result == QUERN_OK && !has_whole_sections(block))
        result = fail_block(number, offset_bytes, "does not consist of sections");
    *out_is_last = (head.flags & QUERN__ARCHIVE_BLOCK_IS_LAST) != 0;
    return result;
}

quern_result quern__archive_blocks_read(quern__archive_blocks *blocks, quern_source source,
                                        const quern_allocator *allocator)
{
    quern__source_reader reader;
    quern__source_reader_open(&reader, source);
    *blocks = (quern__archive_blocks){0};
    quern_result result = read_archive_head(&reader, &blocks->head);
    add_checksum(&blocks->checksum, blocks->head.checksum);
    for (bool is_last = false; result == QUERN_OK && !is_last;)
        result = read_block(blocks, &reader, allocator, &is_last);
    if (result != QUERN_OK) quern__archive_blocks_release(blocks, allocator);
    return result;
}

bool quern__section_next(quern__section_iterator *walk, quern__archive_section *out_section)
{
    while (quern__bytes_left(&walk->block) == 0) {
        if (walk->next_block == walk->blocks->list.count) return false;
        const quern__archive_block *block = &walk->blocks->list.items[walk->next_block++];
        walk->block = quern__byte_reader_open(block->sections, block->bytes);
    }
    quern__section_head head;
    quern__read(&walk->block, &head, sizeof head);
    out_section->kind = (quern__section_kind)head.kind;
    const char *payload =
        quern__read_in_place(&walk->block, quern__align_up(head.bytes, QUERN__SECTION_ALIGNMENT_BYTES));
    out_section->payload = quern__byte_reader_open(payload, head.bytes);
    return true;
}
