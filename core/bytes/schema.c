/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "core/bytes/schema.h"

/* ------------------------------------------------------------------------------------------- names */

void quern__write_text(quern__byte_writer *writer, uint32_t length_bytes, const char *name)
{
    const uint32_t length = (uint32_t)strlen(name);
    const uint8_t low_byte = (uint8_t)length;
    if (length_bytes == 1)
        quern__write(writer, &low_byte, 1);
    else
        quern__write_u32(writer, length);
    quern__write(writer, name, length);
}

void quern__read_text(quern__byte_reader *reader, uint32_t length_bytes, uint32_t max_bytes, char *out_name)
{
    uint8_t low_byte = 0;
    out_name[0] = '\0';
    if (length_bytes == 1) quern__read(reader, &low_byte, 1);
    const uint32_t length = length_bytes == 1 ? low_byte : quern__read_u32(reader);
    const char *text = length <= max_bytes ? quern__read_in_place(reader, length) : NULL;
    if (text == NULL || length == 0 || memchr(text, '\0', length) != NULL) {
        quern__fail_read(reader);
        return;
    }
    memcpy(out_name, text, length);
    out_name[length] = '\0';
}

/* ------------------------------------------------------------------------------------------ schemas */

void quern__write_schema(quern__byte_writer *writer, quern__schema_form form, const char *name,
                         const quern_field *fields, uint32_t field_count)
{
    quern__write_text(writer, form.name_length_bytes, name);
    for (uint32_t i = 0; i < field_count; i++) {
        const quern_field *field = &fields[i];
        if (!form.has_field_names_last) quern__write_text(writer, form.name_length_bytes, field->name);
        quern__write_u32(writer, (uint32_t)field->type);
        quern__write_u32(writer, field->offset_bytes);
        quern__write_u32(writer, field->count);
        if (form.has_field_names_last) quern__write_text(writer, form.name_length_bytes, field->name);
    }
}

void quern__read_schema(quern__byte_reader *reader, quern__schema_form form, uint32_t field_count,
                        quern__schema *out_schema)
{
    memset(out_schema->fields, 0, sizeof out_schema->fields);
    quern__read_text(reader, form.name_length_bytes, QUERN_MAX_NAME_BYTES, out_schema->name);
    if (field_count > QUERN_MAX_FIELDS) quern__fail_read(reader);
    for (uint32_t i = 0; i < field_count && !reader->has_failed; i++) {
        quern_field *field = &out_schema->fields[i];
        char *name = out_schema->field_names[i];
        if (!form.has_field_names_last)
            quern__read_text(reader, form.name_length_bytes, QUERN_MAX_NAME_BYTES, name);
        field->type = (quern_field_type)quern__read_u32(reader);
        field->offset_bytes = quern__read_u32(reader);
        field->count = quern__read_u32(reader);
        if (form.has_field_names_last)
            quern__read_text(reader, form.name_length_bytes, QUERN_MAX_NAME_BYTES, name);
        field->name = name;
    }
}
