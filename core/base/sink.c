/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "core/base/array.h"
#include "core/base/printer.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>

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
