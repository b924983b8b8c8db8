/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Answers: their JSON text, the arguments of a request, the way from a request to its end point, and what all end
 * points share. */
#include "inspect/inspect_internal.h"
#include "kit/json_internal.h"

#include <quern/name.h>

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --------------------------------------------------------------------------------------------- text */

static size_t most_bytes(const quern__inspect_text *text)
{
    return text->is_binary ? QUERN_INSPECT_MAX_ARCHIVE_BYTES : QUERN_INSPECT_MAX_ANSWER_BYTES;
}

static bool append(void *user_data, const char *bytes, size_t size)
{
    quern__inspect_text *text = user_data;
    if (size > most_bytes(text) - text->bytes.size_bytes) text->is_too_long = true;
    if (text->is_too_long || text->is_out_of_memory) return false;
    if (size <= text->bytes.capacity_bytes - text->bytes.size_bytes) { /* nearly always */
        if (size > 0) memcpy((char *)text->bytes.bytes + text->bytes.size_bytes, bytes, size);
        text->bytes.size_bytes += size;
        return true;
    }
    const quern_sink sink = quern_sink_bytes(&text->bytes);
    text->is_out_of_memory = !sink.write(sink.user_data, bytes, size);
    return !text->is_out_of_memory;
}

static void print(quern__inspect_text *text, const char *bytes)
{
    append(text, bytes, strlen(bytes));
}

/* Returns the size of the UTF-8 character at the begin of a text, or 0 if there is none. *out_cut: the number of bytes of
 * a character that lacks its end, or 0. */
static size_t character_bytes(const char *text, size_t *out_cut)
{
    const unsigned char *at = (const unsigned char *)text;
    const unsigned first = at[0];
    const size_t bytes = first < 0x80                   ? 1
                         : first < 0xC2 || first > 0xF4 ? 0
                         : first < 0xE0                 ? 2
                         : first < 0xF0                 ? 3
                                                        : 4;
    *out_cut = 0;
    for (size_t i = 1; i < bytes; i++) {
        if ((at[i] & 0xC0) == 0x80) continue;
        *out_cut = i;
        return 0;
    }
    if ((first == 0xE0 && at[1] < 0xA0) || (first == 0xF0 && at[1] < 0x90) ||
        (first == 0xED && at[1] > 0x9F) || (first == 0xF4 && at[1] > 0x8F))
        return 0;
    return bytes;
}

/* JSON is UTF-8. A character that was cut, at the end of a text or by a precision, is left out; other bytes that are no
 * UTF-8, which names of types may have, are replaced by U+FFFD. */
static void print_string(quern__inspect_text *text, const char *value)
{
    size_t cut;
    append(text, "\"", 1);
    while (*value != '\0') {
        const char *begin = value;
        for (size_t bytes; (unsigned char)*value >= ' ' && *value != '"' && *value != '\\';
             value += bytes) {
            bytes = (unsigned char)*value < 0x80 ? 1 : character_bytes(value, &cut);
            if (bytes == 0) break;
        }
        append(text, begin, (size_t)(value - begin));
        if (*value == '\0') break;
        if ((unsigned char)*value >= 0x80) {
            character_bytes(value, &cut);
            if (cut == 0) print(text, "\xEF\xBF\xBD");
            value += cut > 0 ? cut : 1;
            continue;
        }
        const unsigned char byte = (unsigned char)*value++;
        char escape[8];
        snprintf(escape, sizeof escape, byte == '"' || byte == '\\' ? "\\%c" : "\\u%04x", byte);
        print(text, escape);
    }
    append(text, "\"", 1);
}

/* A value follows another one unless the text is empty or ends with an opening bracket. */
static void begin_value(quern__inspect_text *text, const char *key)
{
    const char *bytes = text->bytes.bytes;
    const size_t size = text->bytes.size_bytes;
    if (size > 0 && bytes[size - 1] != '{' && bytes[size - 1] != '[') append(text, ",", 1);
    if (key == NULL) return;
    print_string(text, key);
    append(text, ":", 1);
}

void quern__inspect_open(quern__inspect_text *text, const char *key, char bracket)
{
    begin_value(text, key);
    append(text, &bracket, 1);
}

void quern__inspect_close(quern__inspect_text *text, char bracket)
{
    append(text, &bracket, 1);
}

void quern__inspect_put_text(quern__inspect_text *text, const char *key, const char *value)
{
    begin_value(text, key);
    if (value != NULL)
        print_string(text, value);
    else
        print(text, "null");
}

void quern__inspect_put_count(quern__inspect_text *text, const char *key, uint64_t value)
{
    char digits[20];
    size_t at = sizeof digits;
    begin_value(text, key);
    do {
        digits[--at] = (char)('0' + value % 10);
        value /= 10;
    } while (value > 0);
    append(text, digits + at, sizeof digits - at);
}

void quern__inspect_put_integer(quern__inspect_text *text, const char *key, int64_t value)
{
    char digits[24];
    begin_value(text, key);
    snprintf(digits, sizeof digits, "%" PRId64, value);
    print(text, digits);
}

/* The locale of the program may have a comma as its decimal point. */
void quern__inspect_put_real(quern__inspect_text *text, const char *key, double value)
{
    char digits[40];
    begin_value(text, key);
    if (!isfinite(value)) {
        print(text, "null");
        return;
    }
    const uint64_t billionths = value >= 0.1 && value < 1 ? (uint64_t)(value * 1e9 + 0.5) : 0;
    if (billionths > 0 &&
        billionths < 1000000000) { /* shares are many: nine digits, without zeros at the end */
        uint64_t rest = billionths;
        size_t count = 9;
        for (; rest % 10 == 0; count--)
            rest /= 10;
        for (size_t at = count; at > 0; at--, rest /= 10)
            digits[1 + at] = (char)('0' + rest % 10);
        digits[0] = '0';
        digits[1] = '.';
        append(text, digits, 2 + count);
        return;
    }
    snprintf(digits, sizeof digits, "%.9g", value);
    for (char *at = digits; *at != '\0'; at++)
        if (*at == ',') *at = '.';
    print(text, digits);
}

void quern__inspect_put_flag(quern__inspect_text *text, const char *key, bool value)
{
    begin_value(text, key);
    print(text, value ? "true" : "false");
}

void quern__inspect_put_hash(quern__inspect_text *text, const char *key, uint64_t value)
{
    char digits[24];
    snprintf(digits, sizeof digits, "0x%016" PRIx64, value);
    quern__inspect_put_text(text, key, digits);
}

quern_sink quern__inspect_put_json(quern__inspect_text *text, const char *key)
{
    begin_value(text, key);
    return (quern_sink){append, text};
}

void quern__inspect_mend_text(quern__inspect_text *text, size_t begin_bytes)
{
    char *bytes = text->bytes.bytes;
    const size_t end_bytes = text->bytes.size_bytes;
    size_t to = begin_bytes;
    for (size_t at = begin_bytes; at < end_bytes;) {
        char next[5] = {0};
        size_t cut = 0;
        memcpy(next, bytes + at, end_bytes - at < 4 ? end_bytes - at : 4);
        const size_t size = next[0] != '\0' ? character_bytes(next, &cut) : 0;
        if (size == 0 && cut == 0) next[0] = '?';
        const size_t kept = size > 0 ? size : cut == 0;
        memcpy(bytes + to, next, kept);
        to += kept;
        at += size > 0 ? size : cut > 0 ? cut : 1;
    }
    text->bytes.size_bytes = to;
}

quern_sink quern__inspect_put_bytes(quern__inspect_text *text)
{
    return (quern_sink){append, text};
}

void quern__inspect_put_value(quern__inspect_text *text, const char *key, const quern_world *world,
                              const quern_type_info *type, const void *value)
{
    const size_t size_bytes = text->bytes.size_bytes;
    if (value != NULL &&
        quern_json_write_value(world, type, value, quern__inspect_put_json(text, key)) == QUERN_OK)
        return;
    text->bytes.size_bytes = size_bytes;
    quern__inspect_put_text(text, key, NULL);
}

void quern__inspect_put_entity(quern__inspect_text *text, const char *key, quern_entity entity)
{
    char handle[32];
    if (quern_entity_is_null(entity)) {
        quern__inspect_put_text(text, key, NULL);
        return;
    }
    snprintf(handle, sizeof handle, "%" PRIu32 ":%" PRIu32, quern_entity_index(entity),
             quern_entity_generation(entity));
    quern__inspect_put_text(text, key, handle);
}

void quern__inspect_put_path(quern__inspect_text *text, const quern_world *world, quern_entity entity)
{
    char path[QUERN__INSPECT_PATH_BYTES], error[160];
    quern_text_buffer buffer = {path, sizeof path, 0};
    const bool has_path = quern_entity_is_alive(world, entity) &&
                          quern_entity_get_path(world, entity, quern_sink_text(&buffer)) == QUERN_OK;
    const bool is_whole = has_path && buffer.length_bytes < sizeof path;
    quern__inspect_put_text(text, "path", is_whole ? path : NULL);
    if (!has_path || is_whole) return;
    snprintf(error, sizeof error, "the path has %zu bytes, and requests take at most %d: use the handle",
             buffer.length_bytes, QUERN__INSPECT_PATH_BYTES - 1);
    quern__inspect_put_text(text, "path_error", error);
}

/* ----------------------------------------------------------------------------------------- arguments */

/* Decodes the bytes up to one of `ends` or the end of the text, and advances *text to it. Returns the decoded byte
 * count, or -1 if the encoding is wrong or the result does not fit `room`. */
static int decode(const char **text, const char *ends, char *target, size_t room)
{
    const char *at = *text;
    size_t count = 0;
    while (*at != '\0' && strchr(ends, *at) == NULL) {
        char byte = *at++;
        if (byte == '+') byte = ' ';
        if (byte == '%') {
            const int high = quern__json_hexadecimal(at[0]),
                      low = high < 0 ? -1 : quern__json_hexadecimal(at[1]);
            if (low < 0 || (high == 0 && low == 0)) return -1;
            byte = (char)(high * 16 + low);
            at += 2;
        }
        if (count + 1 >= room) return -1;
        target[count++] = byte;
    }
    target[count] = '\0';
    for (size_t i = 0, bytes, cut; i < count; i += bytes)
        if ((bytes = character_bytes(target + i, &cut)) == 0) return -1;
    *text = at;
    return (int)count;
}

bool quern__inspect_arguments_read(quern__inspect_arguments *arguments, const char *text)
{
    size_t used = 0;
    arguments->count = 0;
    while (text != NULL && *text != '\0') {
        const uint32_t i = arguments->count;
        if (i == QUERN__INSPECT_ARGUMENTS) return false;
        for (int part = 0; part < 2; part++) {
            char *target = arguments->text + used;
            if (used == sizeof arguments->text) return false;
            const int count = decode(&text, part == 0 ? "=&" : "&", target, sizeof arguments->text - used);
            if (count < 0) return false;
            used += (size_t)count + 1;
            (part == 0 ? arguments->names : arguments->values)[i] = target;
            if (part == 0 && *text == '=') text++;
        }
        arguments->count++;
        if (*text == '&') text++;
    }
    return true;
}

const char *quern__inspect_argument(const quern__inspect_arguments *arguments, const char *name)
{
    for (uint32_t i = 0; i < arguments->count; i++)
        if (strcmp(arguments->names[i], name) == 0) return arguments->values[i];
    return NULL;
}

/* ------------------------------------------------------------------------------------------ answers */

quern__inspect_answer *quern__inspect_answer_create(quern_inspector *inspector)
{
    const quern_allocator *allocator = &inspector->def.allocator;
    quern__inspect_answer *answer =
        allocator->allocate(allocator->user_data, sizeof *answer, _Alignof(quern__inspect_answer));
    if (answer == NULL) return NULL;
    memset(answer, 0, sizeof *answer);
    answer->inspector = inspector;
    answer->status = 200;
    answer->text.bytes.allocator = *allocator;
    return answer;
}

static void release_page(quern__inspect_answer *answer)
{
    const quern_allocator *allocator = &answer->inspector->def.allocator;
    if (answer->entities != NULL)
        allocator->release(allocator->user_data, answer->entities,
                           answer->entity_capacity * sizeof *answer->entities, _Alignof(quern_entity));
    answer->entities = NULL;
    answer->entity_capacity = 0;
}

void quern__inspect_answer_destroy(quern__inspect_answer *answer)
{
    if (answer == NULL) return;
    const quern_allocator allocator = answer->inspector->def.allocator;
    quern__inspect_delta_destroy(answer);
    quern__inspect_table_destroy(answer);
    quern__inspect_leave_commands(answer);
    release_page(answer);
    quern_byte_buffer_release(&answer->text.bytes);
    allocator.release(allocator.user_data, answer, sizeof *answer, _Alignof(quern__inspect_answer));
}

static const quern__inspect_route *find_route(const char *path)
{
    const quern__inspect_route *const tables[] = {quern__inspect_world_routes,  quern__inspect_frame_routes,
                                                  quern__inspect_system_routes, quern__inspect_table_routes,
                                                  quern__inspect_probe_routes,  quern__inspect_case_routes,
                                                  quern__inspect_command_routes};
    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++)
        for (const quern__inspect_route *route = tables[i]; route->path != NULL; route++)
            if (strcmp(route->path, path) == 0) return route;
    return NULL;
}

/* Returns the first argument that the end point does not know, or NULL. */
static const char *unknown_argument(const quern__inspect_answer *answer)
{
    for (uint32_t i = 0; i < answer->arguments.count; i++) {
        const char *name = answer->arguments.names[i];
        const size_t bytes = strlen(name);
        const char *at = answer->route->arguments;
        while (*at != '\0' && (strncmp(at, name, bytes) != 0 || (at[bytes] != ' ' && at[bytes] != '\0'))) {
            at += strcspn(at, " ");
            at += strspn(at, " ");
        }
        if (*at == '\0') return name;
    }
    return NULL;
}

static void check_arguments(quern__inspect_answer *answer)
{
    const char *unknown = unknown_argument(answer), *known = answer->route->arguments;
    if (unknown != NULL)
        quern__inspect_fail(answer, 400, "%s: there is no argument '%.40s': it has %s%s",
                            answer->route->path, unknown, known[0] != '\0' ? known : "none",
                            known[0] != '\0' ? " (docs/inspector.md)" : "");
}

void quern__inspect_answer_open(quern__inspect_answer *answer, const char *method, const char *path,
                                const char *arguments)
{
    const quern__inspect_route *route = answer->route = find_route(path);
    if (route == NULL)
        quern__inspect_fail(answer, 404, "there is no end point '%.40s': docs/inspector.md lists them",
                            path);
    else if (strcmp(method, route->has_changes ? "POST" : "GET") != 0)
        quern__inspect_fail(answer, 405, "%s: the method must be %s, not '%.10s'", path,
                            route->has_changes ? "POST" : "GET", method);
    else if (route->has_changes && answer->inspector->def.is_read_only)
        quern__inspect_fail(answer, 403, "%s: the program allows no changes: its inspector is read-only",
                            path);
    else if (!quern__inspect_arguments_read(&answer->arguments, arguments))
        quern__inspect_fail(
            answer, 400,
            "%s: the arguments are wrong: at most %d names and values, percent-encoded, of %d bytes", path,
            QUERN__INSPECT_ARGUMENTS, QUERN__INSPECT_ARGUMENT_BYTES);
    else
        check_arguments(answer);
}

static void check_text(quern__inspect_answer *answer)
{
    if (answer->text.is_out_of_memory)
        quern__inspect_fail(answer, 503, "%s: no memory for the answer", answer->route->path);
    else if (answer->text.is_too_long)
        quern__inspect_fail(answer, 507, "%s: the answer exceeds %zu bytes: ask for less",
                            answer->route->path, most_bytes(&answer->text));
}

void quern__inspect_answer_begin(quern__inspect_answer *answer)
{
    if (answer->is_done) return;
    if (answer->route->is_edit) quern__inspect_begin_edit(answer->inspector);
    answer->route->begin(answer);
    if (answer->route->is_edit && answer->status == 200)
        quern__inspect_end_edit(answer->inspector, answer->route->path);
    if (answer->route->step == NULL) answer->is_done = true;
    check_text(answer);
}

void quern__inspect_answer_step(quern__inspect_answer *answer)
{
    if (answer->is_done) return;
    if (answer->route->step(answer)) answer->is_done = true;
    check_text(answer);
}

/* The message fits the memory that the text had before, or 512 bytes; without any memory the answer stays empty. */
void quern__inspect_fail(quern__inspect_answer *answer, uint32_t status, const char *format, ...)
{
    char message[400];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    answer->status = status;
    answer->is_done = true;
    answer->text.bytes.size_bytes = 0;
    answer->text.is_out_of_memory = answer->text.is_too_long = answer->text.is_binary = false;
    quern__inspect_open(&answer->text, NULL, '{');
    quern__inspect_put_text(&answer->text, "error", message);
    quern__inspect_close(&answer->text, '}');
    if (answer->text.is_out_of_memory) answer->text.bytes.size_bytes = 0;
    answer->text.is_out_of_memory = false;
}

void quern__inspect_fail_result(quern__inspect_answer *answer, quern_result result)
{
    uint32_t status = 400;
    switch (result) {
    case QUERN_ERROR_OUT_OF_MEMORY:
        status = 503;
        break;
    case QUERN_ERROR_WORLD_LOCKED:
    case QUERN_ERROR_POOL_BUSY:
        status = 409;
        break;
    case QUERN_ERROR_NULL_ENTITY:
    case QUERN_ERROR_STALE_ENTITY:
    case QUERN_ERROR_FOREIGN_ENTITY:
    case QUERN_ERROR_UNKNOWN_COMPONENT:
    case QUERN_ERROR_UNKNOWN_RESOURCE:
    case QUERN_ERROR_COMPONENT_ABSENT:
        status = 404;
        break;
    default:
        break;
    }
    quern__inspect_fail(answer, status, "%s: %s", answer->route->path, quern_error_message());
}

void quern__inspect_finish_change(quern__inspect_answer *answer, quern_result result)
{
    if (result != QUERN_OK) {
        quern__inspect_fail_result(answer, result);
        return;
    }
    quern__inspect_open(&answer->text, NULL, '{');
    quern__inspect_put_flag(&answer->text, "done", true);
    quern__inspect_close(&answer->text, '}');
}

/* ----------------------------------------------------------------------------------------- arguments of answers */

bool quern__inspect_has(quern__inspect_answer *answer, const void *part, const char *name)
{
    if (part == NULL)
        quern__inspect_fail(answer, 404,
                            "%s: the inspector has no %s: the program must set it in the definition",
                            answer->route->path, name);
    return part != NULL;
}

bool quern__inspect_has_schedule(quern__inspect_answer *answer)
{
    return quern__inspect_has(answer, answer->inspector->def.schedule, "schedule");
}

bool quern__inspect_read_text(quern__inspect_answer *answer, const char *name, const char **out_text)
{
    *out_text = quern__inspect_argument(&answer->arguments, name);
    if (*out_text == NULL)
        quern__inspect_fail(answer, 400, "%s: the argument '%s' is missing", answer->route->path, name);
    return *out_text != NULL;
}

bool quern__inspect_read_entity(quern__inspect_answer *answer, const char *name, quern_entity *out_entity)
{
    const quern_world *world = answer->inspector->def.world;
    const char *text;
    if (!quern__inspect_read_text(answer, name, &text)) return false;
    const quern_result result = quern_entity_from_text(world, text, out_entity);
    if (result == QUERN_OK && quern_entity_is_alive(world, *out_entity)) return true;
    quern__inspect_fail(answer, 404, "%s: '%.80s' is no living entity; it may have been destroyed since",
                        answer->route->path, text);
    return false;
}

bool quern__inspect_read_flag(quern__inspect_answer *answer, const char *name, bool *out_flag)
{
    const char *text;
    if (!quern__inspect_read_text(answer, name, &text)) return false;
    *out_flag = strcmp(text, "1") == 0;
    if (*out_flag || strcmp(text, "0") == 0) return true;
    quern__inspect_fail(answer, 400, "%s: the argument '%s' is '%.40s': it must be 0 or 1",
                        answer->route->path, name, text);
    return false;
}

bool quern__inspect_read_count(quern__inspect_answer *answer, const char *name, uint64_t otherwise,
                               uint64_t most, uint64_t *out_count)
{
    const char *text = quern__inspect_argument(&answer->arguments, name);
    char *end;
    *out_count = otherwise;
    if (text == NULL) return true;
    errno = 0;
    *out_count = strtoull(text, &end, 10);
    if (text[0] >= '0' && text[0] <= '9' && *end == '\0' && errno == 0 && *out_count <= most) return true;
    quern__inspect_fail(answer, 400,
                        "%s: the argument '%s' is '%.40s': it must be a whole number up to %llu",
                        answer->route->path, name, text, (unsigned long long)most);
    return false;
}

bool quern__inspect_reserve_page(quern__inspect_answer *answer, uint32_t capacity)
{
    const quern_allocator *allocator = &answer->inspector->def.allocator;
    if (capacity <= answer->entity_capacity) return true;
    release_page(answer);
    answer->entities = allocator->allocate(allocator->user_data, capacity * sizeof *answer->entities,
                                           _Alignof(quern_entity));
    if (answer->entities == NULL) {
        quern__inspect_fail(answer, 503, "%s: no memory for a list of %u entities", answer->route->path,
                            capacity);
        return false;
    }
    answer->entity_capacity = capacity;
    return true;
}
