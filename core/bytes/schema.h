/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_BYTES_SCHEMA_H
#define QUERN_CORE_BYTES_SCHEMA_H

/* The schema of a value type as archives and recordings hold it: its name and its described fields. Both formats have
 * the same parts in the same order; they differ in how they count a name and on which side of a field's numbers its
 * name is, which quern__schema_form says. A format keeps size, alignment and flags of a type in a head of its own. */

#include "core/bytes/byte_reader.h"
#include "core/bytes/byte_writer.h"

#include <quern/type.h>

/* How a format encodes a schema. */
typedef struct quern__schema_form {
    uint8_t name_length_bytes; /* of the length before each name: 1 or 4 */
    bool has_field_names_last; /* the name of a field follows its type, offset and count */
} quern__schema_form;

/* A schema that was read. Field names point into field_names, so it cannot be copied. */
typedef struct quern__schema {
    char name[QUERN_MAX_NAME_BYTES + 1];
    quern_field fields[QUERN_MAX_FIELDS]; /* ended by zero, or full */
    char field_names[QUERN_MAX_FIELDS][QUERN_MAX_NAME_BYTES + 1];
} quern__schema;

/* The most bytes of a schema in this form. */
static inline size_t quern__schema_max_bytes(quern__schema_form form)
{
    const size_t name_bytes = form.name_length_bytes + (size_t)QUERN_MAX_NAME_BYTES;
    return name_bytes + QUERN_MAX_FIELDS * (name_bytes + 3 * sizeof(uint32_t));
}

void quern__write_schema(quern__byte_writer *writer, quern__schema_form form, const char *name,
                         const quern_field *fields, uint32_t field_count);

/* The reader fails if the bytes do not hold such a schema. Types, offsets and counts of fields are not checked. */
void quern__read_schema(quern__byte_reader *reader, quern__schema_form form, uint32_t field_count,
                        quern__schema *out_schema);

/* Writes the length of a name, in length_bytes (1 or 4) bytes, and its characters. */
void quern__write_text(quern__byte_writer *writer, uint32_t length_bytes, const char *name);

/* Reads such a name and ends it with 0. The reader fails, with "" in out_name, if the name is empty, contains a 0, or
 * is longer than max_bytes; out_name has room for one byte more. */
void quern__read_text(quern__byte_reader *reader, uint32_t length_bytes, uint32_t max_bytes,
                      char *out_name);

#endif
