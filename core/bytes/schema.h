/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_BYTES_SCHEMA_H
#define QUERN_CORE_BYTES_SCHEMA_H

/* The schema of a value type in archives and recordings: its name and its described fields. Both formats
 * have the same elements. They differ in the size of a name's length, and in whether the name of a field
 * precedes or follows its numbers: see quern__schema_form. Each format stores size, alignment and flags
 * of the type itself. */

#include "core/bytes/byte_reader.h"
#include "core/bytes/byte_writer.h"

#include <quern/type.h>

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
} quern__schema;

/* Returns the maximum size of a schema in this form, in bytes. */
static inline size_t quern__schema_max_bytes(quern__schema_form form)
{
    const size_t name_bytes = form.name_length_bytes + (size_t)QUERN_MAX_NAME_BYTES;
    return name_bytes + QUERN_MAX_FIELDS * (name_bytes + 3 * sizeof(uint32_t));
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
