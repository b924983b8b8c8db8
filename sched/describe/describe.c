/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "sched/describe/describe.h"

#include "core/base/utf8.h"

#include <stdarg.h>

/* ----------------------------------------------------------------------------------------- writing */

void quern__write(quern__writer *writer, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    quern__print_list(&writer->printer, format, arguments);
    va_end(arguments);
}

/* What stands for a character that the format cannot hold as it is, or NULL. */
static const char *escape_of(quern_describe_format format, char character)
{
    if (format == QUERN_DESCRIBE_TEXT) return NULL;
    if (character == '"') return "\\\"";
    return character == '\\' ? "\\\\" : NULL;
}

static void write_control(quern__writer *writer, char character)
{
    static const char *const formats[] = {
        [QUERN_DESCRIBE_TEXT] = "\\x%02X", [QUERN_DESCRIBE_JSON] = "\\u%04X"};
    quern__write(writer, formats[writer->format], (unsigned)character);
}

/* Names may hold any bytes; what is written is UTF-8. */
void quern__write_name(quern__writer *writer, const char *name)
{
    while (*name != '\0') {
        uint32_t bytes = quern__utf8_bytes(name);
        const char *escape = escape_of(writer->format, *name);
        if (bytes == 0)
            quern__write(writer, QUERN__UTF8_REPLACEMENT);
        else if (bytes == 1 && ((unsigned char)*name < 0x20 || *name == 0x7F))
            write_control(writer, *name);
        else if (escape != NULL)
            quern__write(writer, "%s", escape);
        else
            quern__write(writer, "%.*s", (int)bytes, name);
        name += bytes > 0 ? bytes : 1;
    }
}

void quern__write_quoted(quern__writer *writer, const char *before, const char *name)
{
    quern__write(writer, "%s'", before);
    quern__write_name(writer, name);
    quern__write(writer, "'");
}

void quern__write_seconds(quern__writer *writer, double seconds)
{
    const uint64_t second_ns = 1000000000u;
    uint64_t ns = (uint64_t)((seconds < 1e9 ? seconds : 1e9) * 1e9 + 0.5);
    uint64_t fraction = ns % second_ns;
    int digits = 9;
    while (fraction > 0 && fraction % 10 == 0) {
        fraction /= 10;
        digits--;
    }
    quern__write(writer, "%llu", (unsigned long long)(ns / second_ns));
    if (fraction > 0) quern__write(writer, ".%0*llu", digits, (unsigned long long)fraction);
}

const quern__type *quern__conflict_type(const quern_schedule *schedule, quern__conflict conflict)
{
    switch ((quern__conflict_kind)conflict.kind) {
    case QUERN__CONFLICT_COMPONENT:
    case QUERN__CONFLICT_LOOKUP:
        return quern__components_type(&schedule->plan.world->storage.components, conflict.index);
    case QUERN__CONFLICT_RESOURCE:
        return &schedule->plan.world->resources.list.items[conflict.index].type;
    case QUERN__CONFLICT_ORDER:
    case QUERN__CONFLICT_DECLARED:
    case QUERN__NO_CONFLICT:
        break;
    }
    return NULL;
}

void quern__write_cause(quern__writer *writer, const quern__system *earlier, const quern__system *later,
                        quern__conflict conflict)
{
    const quern__type *type = quern__conflict_type(earlier->plan->schedule, conflict);
    if (conflict.kind == QUERN__NO_CONFLICT)
        quern__write(writer, "exclusive");
    else if (type == NULL)
        quern__write(writer, "before/after");
    else if (conflict.kind == QUERN__CONFLICT_RESOURCE)
        quern__write_quoted(writer, "resource ", type->name);
    else if (conflict.kind == QUERN__CONFLICT_COMPONENT)
        quern__write_quoted(writer, "component ", type->name);
    else {
        bool earlier_writes = quern__bitset_has(earlier->access.writes, conflict.index) &&
                              quern__bitset_has(later->access.lookups, conflict.index);
        quern__write_quoted(writer, "lookup of ", type->name);
        quern__write_quoted(writer, " written by ", earlier_writes ? earlier->name : later->name);
    }
}

/* --------------------------------------------------------------------------------------------- all */

static quern_result describe(const quern_schedule *schedule, quern__writer *writer)
{
    quern__facts facts;
    quern_result result = quern__facts_gather(&facts, schedule);
    if (result != QUERN_OK) return result;
    if (writer->format == QUERN_DESCRIBE_TEXT)
        quern__describe_text(writer, &facts);
    else
        quern__describe_json(writer, &facts);
    quern__facts_release(&facts);
    return quern__printer_close(&writer->printer, "quern_schedule_describe");
}

quern_result quern_schedule_describe(quern_schedule *schedule, quern_describe_format format,
                                     quern_sink sink)
{
    if (schedule == NULL) return quern__fail_null("quern_schedule_describe", "schedule");
    quern_result result = quern__check_sink(sink, "quern_schedule_describe");
    if (result != QUERN_OK) return result;
    if (format != QUERN_DESCRIBE_TEXT && format != QUERN_DESCRIBE_JSON)
        return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                           "quern_schedule_describe: format %d is none of quern_describe_format",
                           (int)format);
    result = quern__schedule_compile(schedule, "quern_schedule_describe");
    if (result != QUERN_OK) return result;
    quern__writer writer = {.format = format};
    quern__printer_open(&writer.printer, sink);
    return describe(schedule, &writer);
}
