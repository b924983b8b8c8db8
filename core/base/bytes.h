/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_BASE_BYTES_H
#define QUERN_CORE_BASE_BYTES_H

/* Sequential reading from a source. The bytes of a source in memory can be read in place. */

#include "core/base/base_internal.h"

#include <quern/sink.h>
#include <quern/source.h>
#include <quern/type.h>

typedef struct quern__source_reader {
    quern_source source;
    uint64_t offset_bytes; /* number of bytes read so far */
    int error;             /* errno of a failed read; 0 if the source has set none */
} quern__source_reader;

/* Checks the source that was passed to a public function. Errors: NULL_ARGUMENT. */
static inline quern_result quern__check_source(quern_source source, const char *function)
{
    return source.read != NULL || source.memory != NULL
               ? QUERN_OK
               : quern__fail(
                     QUERN_ERROR_NULL_ARGUMENT,
                     "%s: the source has no function to read and no memory: the file or memory that "
                     "it was made from is NULL",
                     function);
}

static inline void quern__source_reader_open(quern__source_reader *reader, quern_source source)
{
    *reader = (quern__source_reader){.source = source};
}

/* Reads exactly `count` bytes. Returns false if the source has fewer, or fails. */
bool quern__source_read(quern__source_reader *reader, void *bytes, size_t count);

/* Returns the address of the next `count` bytes and skips them, or returns NULL if there are fewer. The bytes stay
 * in the memory of the source. Precondition: the source is in memory. */
const void *quern__source_borrow(quern__source_reader *reader, size_t count);

/* Writing to a sink without checking each write. The writer records the first failed write and skips all later ones. */

typedef struct quern__sink_writer {
    quern_sink sink;
    bool has_failed;
    int error; /* errno of the failed write; 0 if the sink has set none */
} quern__sink_writer;

/* Checks the sink that was passed to a public function. Errors: NULL_ARGUMENT. */
static inline quern_result quern__check_sink(quern_sink sink, const char *function)
{
    return sink.write != NULL
               ? QUERN_OK
               : quern__fail(
                     QUERN_ERROR_NULL_ARGUMENT,
                     "%s: the sink has no function to write: 'write', or the file or buffer that it "
                     "was made from, is NULL",
                     function);
}

/* Passes bytes to the sink, unless an earlier write has failed. A count of 0 flushes the sink. */
void quern__sink_write(quern__sink_writer *writer, const void *bytes, size_t count);

/* Reports a failed write. what: the written text or file, for the message. Errors: IO. */
quern_result quern__sink_check(const quern__sink_writer *writer, const char *what);

/* Atomic replacement of files. The text is written to a temporary file in the same folder, which then replaces the
 * named file. A failure leaves the named file as it was. */

/* Added to a path to get the path of the temporary file. */
#define QUERN__TEMPORARY_SUFFIX ".part"

/* Calls `write` with a sink, and replaces the file at `path` by the text that `write` passes to the sink. Devices and
 * pipes are written to directly. temporary_path: scratch memory for the path, the suffix and a final 0. `write` returns 0
 * or an errno. Returns 0, or the errno of the step that failed. */
int quern__file_write(const char *path, char *temporary_path,
                      int (*write)(void *user_data, quern_sink sink), void *user_data);

/* Reads values in order from bytes in memory. The bytes may be truncated or forged; a reader never reads
 * past their end. Values need no alignment; numbers are in the byte order of the machine.
 *
 * Invariant: a reader that has failed is at its end. So a loop until the end terminates, and every later
 * read of at least one byte fails too. A caller can check has_failed once after several reads. */

typedef struct quern__byte_reader {
    const char *at, *end;
    bool has_failed;
} quern__byte_reader;

/* bytes may be NULL if count is 0. */
static inline quern__byte_reader quern__byte_reader_open(const void *bytes, size_t count)
{
    const char *at = bytes != NULL ? bytes : "";
    return (quern__byte_reader){.at = at, .end = at + count};
}

static inline size_t quern__bytes_left(const quern__byte_reader *reader)
{
    return (size_t)(reader->end - reader->at);
}

/* Whether all bytes were read and no read has failed. */
static inline bool quern__is_fully_read(const quern__byte_reader *reader)
{
    return !reader->has_failed && reader->at == reader->end;
}

static inline void quern__fail_read(quern__byte_reader *reader)
{
    reader->has_failed = true;
    reader->at = reader->end;
}

/* Returns the next `count` bytes in place, without a copy. Returns NULL and fails if fewer are left. */
static inline const char *quern__read_in_place(quern__byte_reader *reader, size_t count)
{
    const char *bytes = reader->at;
    if (QUERN__UNLIKELY(count > quern__bytes_left(reader))) {
        quern__fail_read(reader);
        return NULL;
    }
    reader->at += count;
    return bytes;
}

/* Returns the next `count` items in place. Returns NULL and fails if fewer are left. The product count
 * * item_bytes may exceed SIZE_MAX; then the reader fails. */
static inline const char *quern__read_items(quern__byte_reader *reader, uint64_t count, size_t item_bytes)
{
    if (item_bytes > 0 && count > quern__bytes_left(reader) / item_bytes) {
        quern__fail_read(reader);
        return NULL;
    }
    return quern__read_in_place(reader, (size_t)count * item_bytes);
}

/* Copies the next `count` bytes to `out`. Fails if fewer are left, and then fills `out` with zeros. */
static inline void quern__read(quern__byte_reader *reader, void *out, size_t count)
{
    const char *bytes = quern__read_in_place(reader, count);
    if (count == 0) return;
    if (bytes != NULL)
        memcpy(out, bytes, count);
    else
        memset(out, 0, count);
}

static inline uint32_t quern__read_u32(quern__byte_reader *reader)
{
    uint32_t value;
    quern__read(reader, &value, sizeof value);
    return value;
}

static inline uint64_t quern__read_u64(quern__byte_reader *reader)
{
    uint64_t value;
    quern__read(reader, &value, sizeof value);
    return value;
}

/* Returns the number at `index` in an array that was read in place. */
static inline uint32_t quern__load_u32(const char *array, uint64_t index)
{
    uint32_t value;
    memcpy(&value, array + index * sizeof value, sizeof value);
    return value;
}

static inline uint64_t quern__load_u64(const char *array, uint64_t index)
{
    uint64_t value;
    memcpy(&value, array + index * sizeof value, sizeof value);
    return value;
}

/* Appends values to bytes in memory, without padding; numbers are in the byte order of the machine. A
 * writer is of one of three kinds:
 *
 *   growing    {.allocator = allocator}: memory grows by doubling; quern__byte_writer_release() frees it
 *   fixed      {.bytes = memory, .capacity = bytes}: memory of the caller, which never moves
 *   measuring  {.capacity = SIZE_MAX}: counts the bytes and stores none
 *
 * Invariant: a writer that has failed, because memory or capacity is exhausted, is full. So every later
 * write of at least one byte fails too. A caller can check has_failed once after several writes. */

typedef struct quern__byte_writer {
    const quern_allocator *allocator; /* NULL: the writer is fixed or measuring */
    char *bytes;
    size_t count, capacity;
    bool has_failed;
} quern__byte_writer;

/* Frees the memory of a growing writer, which is empty afterwards. */
void quern__byte_writer_release(quern__byte_writer *writer);

/* Removes all bytes, clears has_failed and keeps the memory. */
static inline void quern__byte_writer_clear(quern__byte_writer *writer)
{
    writer->count = 0;
    writer->has_failed = false;
}

/* Makes room for `count` more bytes. Returns false and fails if there is none. */
QUERN__SLOW_PATH bool quern__byte_writer_grow(quern__byte_writer *writer, size_t count);

/* Appends `count` uninitialised bytes and returns their address. Returns NULL if the writer fails or
 * measures. */
static inline char *quern__write_room(quern__byte_writer *writer, size_t count)
{
    if (QUERN__UNLIKELY(count > writer->capacity - writer->count) &&
        !quern__byte_writer_grow(writer, count))
        return NULL;
    char *room = writer->bytes != NULL ? writer->bytes + writer->count : NULL;
    writer->count += count;
    return room;
}

static inline void quern__write(quern__byte_writer *writer, const void *bytes, size_t count)
{
    char *room = quern__write_room(writer, count);
    if (room != NULL && count > 0) memcpy(room, bytes, count);
}

static inline void quern__write_u32(quern__byte_writer *writer, uint32_t value)
{
    quern__write(writer, &value, sizeof value);
}

static inline void quern__write_u64(quern__byte_writer *writer, uint64_t value)
{
    quern__write(writer, &value, sizeof value);
}

/* Overwrites `count` written bytes, from offset `at` on. Does nothing if the writer has failed or
 * measures. */
static inline void quern__write_back(const quern__byte_writer *writer, size_t at, const void *bytes,
                                     size_t count)
{
    if (writer->bytes == NULL || writer->has_failed) return;
    assert(at <= writer->count && count <= writer->count - at);
    memcpy(writer->bytes + at, bytes, count);
}

/* The schema of a value type in archives and recordings: its name and its described fields. Both formats
 * have the same elements. They differ in the size of a name's length, and in whether the name of a field
 * precedes or follows its numbers: see quern__schema_form. After a list follows the type of its elements and, if they are
 * structs, size, alignment and number of fields, and the fields. Each format stores size, alignment and flags
 * of the type itself. */

/* How a format encodes a schema. */
typedef struct quern__schema_form {
    uint8_t name_length_bytes; /* size of the length that precedes each name: 1 or 4 */
    bool has_field_names_last; /* a field's name follows its numbers */
} quern__schema_form;

/* A schema that was read. Field names point into field_names, so the struct must not be copied. */
typedef struct quern__schema {
    char name[QUERN_MAX_NAME_BYTES + 1];
    quern_field fields[QUERN_MAX_FIELDS]; /* terminated by an entry of zeros, unless the array is full */
    char field_names[QUERN_MAX_FIELDS][QUERN_MAX_NAME_BYTES + 1];
    /* Of the lists among the fields, and of the structs in them. */
    quern_element elements[QUERN_MAX_FIELDS];
    quern_field element_fields[QUERN_MAX_FIELDS];
    char element_field_names[QUERN_MAX_FIELDS][QUERN_MAX_NAME_BYTES + 1];
    uint32_t element_count, element_field_count;
} quern__schema;

/* Returns the maximum size of a schema in this form, in bytes. */
static inline size_t quern__schema_max_bytes(quern__schema_form form)
{
    const size_t name_bytes = form.name_length_bytes + (size_t)QUERN_MAX_NAME_BYTES;
    const size_t field_bytes = name_bytes + 3 * sizeof(uint32_t);
    return name_bytes + QUERN_MAX_FIELDS * (field_bytes + 4 * sizeof(uint32_t) + field_bytes);
}

void quern__write_schema(quern__byte_writer *writer, quern__schema_form form, const char *name,
                         const quern_field *fields, uint32_t field_count);

/* Reads a schema. The reader fails if the bytes are not a schema. Types, offsets and counts of fields
 * are not checked. */
void quern__read_schema(quern__byte_reader *reader, quern__schema_form form, uint32_t field_count,
                        quern__schema *out_schema);

/* Writes the length of a name, in length_bytes (1 or 4) bytes, then its characters without a terminating
 * 0. */
void quern__write_text(quern__byte_writer *writer, uint32_t length_bytes, const char *name);

/* Reads a name that quern__write_text wrote, and terminates it with 0. If the name is empty, contains a
 * 0, or is longer than max_bytes, the reader fails and out_name becomes "". out_name must have room for
 * max_bytes + 1 bytes. */
void quern__read_text(quern__byte_reader *reader, uint32_t length_bytes, uint32_t max_bytes,
                      char *out_name);

#endif
