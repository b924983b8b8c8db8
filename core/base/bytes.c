/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "core/base/bytes.h"

#include "core/base/containers.h"
#include "core/base/text.h"
#include "core/platform/platform.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>

static size_t read_from_file(void *user_data, void *bytes, size_t capacity_bytes)
{
    return fread(bytes, 1, capacity_bytes, user_data);
}

quern_source quern_source_file(FILE *file)
{
    return file != NULL ? (quern_source){.read = read_from_file, .user_data = file} : (quern_source){0};
}

quern_source quern_source_bytes(const void *bytes, size_t size_bytes)
{
    return (quern_source){.memory = bytes, .memory_bytes = size_bytes};
}

const void *quern__source_borrow(quern__source_reader *reader, size_t count)
{
    if (count > reader->source.memory_bytes - reader->offset_bytes) return NULL;
    const void *bytes = (const char *)reader->source.memory + reader->offset_bytes;
    reader->offset_bytes += count;
    return bytes;
}

bool quern__source_read(quern__source_reader *reader, void *bytes, size_t count)
{
    if (reader->source.memory != NULL) {
        const void *lent = quern__source_borrow(reader, count);
        if (lent != NULL && count > 0) memcpy(bytes, lent, count);
        return lent != NULL;
    }
    for (size_t done = 0; done < count;) {
        errno = 0;
        const size_t got =
            reader->source.read(reader->source.user_data, (char *)bytes + done, count - done);
        if (got == 0 || got > count - done) {
            reader->error = errno;
            return false;
        }
        done += got;
        reader->offset_bytes += got;
    }
    return true;
}

enum { LEAST_MEMORY_BYTES = 4096 };

/* ------------------------------------------------------------------------------------------- sinks */

static bool write_to_file(void *user_data, const char *text, size_t bytes)
{
    FILE *file = user_data;
    if (bytes == 0) return fflush(file) == 0 && ferror(file) == 0;
    return fwrite(text, 1, bytes, file) == bytes;
}

quern_sink quern_sink_file(FILE *file)
{
    return file != NULL ? (quern_sink){.write = write_to_file, .user_data = file} : (quern_sink){0};
}

static bool write_to_buffer(void *user_data, const char *text, size_t bytes)
{
    quern_text_buffer *buffer = user_data;
    const size_t capacity_bytes = buffer->text != NULL ? buffer->capacity_bytes : 0;
    if (buffer->length_bytes < capacity_bytes) {
        const size_t room_bytes = capacity_bytes - buffer->length_bytes - 1;
        const size_t fitting_bytes = bytes < room_bytes ? bytes : room_bytes;
        memcpy(buffer->text + buffer->length_bytes, text, fitting_bytes);
        buffer->text[buffer->length_bytes + fitting_bytes] = '\0';
    }
    buffer->length_bytes += bytes;
    return true;
}

quern_sink quern_sink_text(quern_text_buffer *buffer)
{
    if (buffer == NULL) return (quern_sink){0};
    buffer->length_bytes = 0;
    if (buffer->text != NULL && buffer->capacity_bytes > 0) buffer->text[0] = '\0';
    return (quern_sink){.write = write_to_buffer, .user_data = buffer};
}

static bool grow_memory(quern_byte_buffer *memory, size_t wanted_bytes)
{
    quern_allocator allocator;
    return quern__choose_allocator(&memory->allocator, "quern_sink_bytes", &allocator) == QUERN_OK &&
           quern__bytes_grow(&allocator, &memory->bytes, &memory->capacity_bytes, memory->size_bytes,
                             wanted_bytes, LEAST_MEMORY_BYTES);
}

static bool write_to_memory(void *user_data, const char *text, size_t bytes)
{
    quern_byte_buffer *memory = user_data;
    if (bytes == 0) return true;
    if (bytes > SIZE_MAX / 4 - memory->size_bytes) return false;
    const size_t end_bytes = memory->size_bytes + bytes;
    if (end_bytes > memory->capacity_bytes && !grow_memory(memory, end_bytes)) {
        errno = ENOMEM;
        return false;
    }
    memcpy((char *)memory->bytes + memory->size_bytes, text, bytes);
    memory->size_bytes = end_bytes;
    return true;
}

quern_sink quern_sink_bytes(quern_byte_buffer *memory)
{
    return memory != NULL ? (quern_sink){.write = write_to_memory, .user_data = memory} : (quern_sink){0};
}

void quern_byte_buffer_release(quern_byte_buffer *memory)
{
    quern_allocator allocator;
    if (memory == NULL || memory->bytes == NULL) return;
    if (quern__choose_allocator(&memory->allocator, "quern_byte_buffer_release", &allocator) != QUERN_OK)
        return;
    quern__release(&allocator, memory->bytes, memory->capacity_bytes, QUERN__ARRAY_ALIGNMENT_BYTES);
    memory->bytes = NULL;
    memory->size_bytes = memory->capacity_bytes = 0;
}

/* ------------------------------------------------------------------------------------------ writing */

void quern__sink_write(quern__sink_writer *writer, const void *bytes, size_t count)
{
    if (writer->has_failed) return;
    errno = 0;
    if (writer->sink.write(writer->sink.user_data, bytes, count)) return;
    writer->has_failed = true;
    writer->error = errno;
}

quern_result quern__sink_check(const quern__sink_writer *writer, const char *what)
{
    if (!writer->has_failed) return QUERN_OK;
    return quern__fail(QUERN_ERROR_IO, "the sink could not write %s: %s", what,
                       writer->error != 0 ? strerror(writer->error) : "it has not set errno");
}

/* ----------------------------------------------------------------------------------------- printer */

void quern__printer_open(quern__printer *printer, quern_sink sink)
{
    printer->sink = (quern__sink_writer){.sink = sink};
    printer->used_bytes = 0;
}

static void flush(quern__printer *printer)
{
    if (printer->used_bytes > 0) quern__sink_write(&printer->sink, printer->text, printer->used_bytes);
    printer->used_bytes = 0;
}

void quern__print(quern__printer *printer, const char *format, ...)
{
    for (;;) {
        const size_t room_bytes = sizeof printer->text - printer->used_bytes;
        va_list arguments;
        va_start(arguments, format);
        const int length = vsnprintf(printer->text + printer->used_bytes, room_bytes, format, arguments);
        va_end(arguments);
        if (length < 0) return;
        const bool fits = (size_t)length < room_bytes;
        if (fits || printer->used_bytes == 0) {
            printer->used_bytes += fits ? (uint32_t)length : (uint32_t)room_bytes - 1;
            return;
        }
        flush(printer);
    }
}

void quern__print_bytes(quern__printer *printer, const char *text, size_t bytes)
{
    if (bytes > sizeof printer->text - printer->used_bytes) flush(printer);
    if (bytes > sizeof printer->text) {
        quern__sink_write(&printer->sink, text, bytes);
        return;
    }
    memcpy(printer->text + printer->used_bytes, text, bytes);
    printer->used_bytes += (uint32_t)bytes;
}

void quern__print_decimal(quern__printer *printer, uint64_t units, uint32_t digits)
{
    uint64_t one = 1;
    for (uint32_t i = 0; i < digits; i++)
        one *= 10;
    uint64_t fraction = units % one;
    while (fraction > 0 && fraction % 10 == 0) {
        fraction /= 10;
        digits--;
    }
    quern__print(printer, "%" PRIu64, units / one);
    if (fraction > 0) quern__print(printer, ".%0*" PRIu64, (int)digits, fraction);
}

quern_result quern__printer_close(quern__printer *printer, const char *function)
{
    flush(printer);
    quern__sink_write(&printer->sink, "", 0);
    return quern__in_call(quern__sink_check(&printer->sink, "the text"), function);
}

static int error_or(int otherwise)
{
    return errno != 0 ? errno : otherwise;
}

static int write_at(const char *path, int (*write)(void *user_data, quern_sink sink), void *user_data)
{
    errno = 0;
    FILE *file = quern__file_open(path, "wb");
    if (file == NULL) return error_or(EIO);
    const int error = write(user_data, quern_sink_file(file));
    errno = 0;
    const bool is_closed = fclose(file) == 0;
    if (error != 0) return error;
    return is_closed ? 0 : error_or(EIO);
}

int quern__file_write(const char *path, char *temporary_path,
                      int (*write)(void *user_data, quern_sink sink), void *user_data)
{
    if (quern__file_is_device_or_pipe(path)) return write_at(path, write, user_data);
    snprintf(temporary_path, strlen(path) + sizeof QUERN__TEMPORARY_SUFFIX, "%s" QUERN__TEMPORARY_SUFFIX,
             path);
    int error = write_at(temporary_path, write, user_data);
    if (error == 0) error = quern__file_replace(temporary_path, path);
    if (error != 0) quern__file_remove(temporary_path);
    return error;
}

enum { LEAST_BYTES = 1024 };

void quern__byte_writer_release(quern__byte_writer *writer)
{
    quern__release(writer->allocator, writer->bytes, writer->capacity, QUERN__ARRAY_ALIGNMENT_BYTES);
    writer->bytes = NULL;
    writer->count = writer->capacity = 0;
}

bool quern__byte_writer_grow(quern__byte_writer *writer, size_t count)
{
    if (writer->allocator != NULL && !writer->has_failed &&
        count <= SIZE_MAX / 4 - writer->count && /* doubling does not overflow */
        quern__bytes_grow(writer->allocator, &writer->bytes, &writer->capacity, writer->count,
                          writer->count + count, LEAST_BYTES))
        return true;
    writer->has_failed = true;
    writer->count = writer->capacity;
    return false;
}

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

static void write_fields(quern__byte_writer *writer, quern__schema_form form, const quern_field *fields,
                         uint32_t field_count)
{
    for (uint32_t i = 0; i < field_count; i++) {
        const quern_field *field = &fields[i];
        if (!form.has_field_names_last) quern__write_text(writer, form.name_length_bytes, field->name);
        quern__write_u32(writer, (uint32_t)field->type);
        quern__write_u32(writer, field->offset_bytes);
        quern__write_u32(writer, field->count);
        if (form.has_field_names_last) quern__write_text(writer, form.name_length_bytes, field->name);
        if (field->type != QUERN_FIELD_LIST) continue;
        const quern_element *element = field->element;
        quern__write_u32(writer, (uint32_t)element->type);
        if (element->type != 0) continue;
        quern__write_u32(writer, element->size_bytes);
        quern__write_u32(writer, element->alignment_bytes);
        quern__write_u32(writer, element->field_count);
        write_fields(writer, form, element->fields, element->field_count);
    }
}

void quern__write_schema(quern__byte_writer *writer, quern__schema_form form, const char *name,
                         const quern_field *fields, uint32_t field_count)
{
    quern__write_text(writer, form.name_length_bytes, name);
    write_fields(writer, form, fields, field_count);
}

/* Reads a field without its element. name: memory for its name. */
static void read_field(quern__byte_reader *reader, quern__schema_form form, quern_field *field, char *name)
{
    if (!form.has_field_names_last)
        quern__read_text(reader, form.name_length_bytes, QUERN_MAX_NAME_BYTES, name);
    field->type = (quern_field_type)quern__read_u32(reader);
    field->offset_bytes = quern__read_u32(reader);
    field->count = quern__read_u32(reader);
    if (form.has_field_names_last)
        quern__read_text(reader, form.name_length_bytes, QUERN_MAX_NAME_BYTES, name);
    field->name = name;
}

static const quern_element *read_element(quern__byte_reader *reader, quern__schema_form form,
                                         quern__schema *schema)
{
    quern_element *element = &schema->elements[schema->element_count++];
    *element = (quern_element){.type = (quern_field_type)quern__read_u32(reader)};
    if (element->type != 0) return element;
    element->size_bytes = quern__read_u32(reader);
    element->alignment_bytes = quern__read_u32(reader);
    element->field_count = quern__read_u32(reader);
    element->fields = &schema->element_fields[schema->element_field_count];
    if (element->field_count > QUERN_MAX_FIELDS - schema->element_field_count) quern__fail_read(reader);
    for (uint32_t i = 0; i < element->field_count && !reader->has_failed; i++) {
        const uint32_t k = schema->element_field_count++;
        read_field(reader, form, &schema->element_fields[k], schema->element_field_names[k]);
        if (schema->element_fields[k].type == QUERN_FIELD_LIST) quern__fail_read(reader);
    }
    return element;
}

void quern__read_schema(quern__byte_reader *reader, quern__schema_form form, uint32_t field_count,
                        quern__schema *out_schema)
{
    memset(out_schema->fields, 0, sizeof out_schema->fields);
    memset(out_schema->element_fields, 0, sizeof out_schema->element_fields);
    out_schema->element_count = out_schema->element_field_count = 0;
    quern__read_text(reader, form.name_length_bytes, QUERN_MAX_NAME_BYTES, out_schema->name);
    if (field_count > QUERN_MAX_FIELDS) quern__fail_read(reader);
    for (uint32_t i = 0; i < field_count && !reader->has_failed; i++) {
        quern_field *field = &out_schema->fields[i];
        read_field(reader, form, field, out_schema->field_names[i]);
        if (field->type == QUERN_FIELD_LIST && !reader->has_failed)
            field->element = read_element(reader, form, out_schema);
    }
}
