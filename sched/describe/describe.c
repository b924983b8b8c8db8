/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "sched/describe/describe.h"

#include "core/base/utf8.h"

/* ----------------------------------------------------------------------------------------- writing */

/* Names may contain any bytes; the output is valid UTF-8. */
void quern__write_name(quern__printer *printer, const char *name)
{
    while (*name != '\0') {
        uint32_t bytes = quern__utf8_bytes(name);
        if (bytes == 0)
            quern__print(printer, QUERN__UTF8_REPLACEMENT);
        else if (bytes == 1 && ((unsigned char)*name < 0x20 || *name == 0x7F))
            quern__print(printer, "\\x%02X", (unsigned)*name);
        else
            quern__print_bytes(printer, name, bytes);
        name += bytes > 0 ? bytes : 1;
    }
}

void quern__write_quoted(quern__printer *printer, const char *before, const char *name)
{
    quern__print(printer, "%s'", before);
    quern__write_name(printer, name);
    quern__print(printer, "'");
}

const quern__reaction_name quern__reaction_names[QUERN__REACTION_WORDS] = {
    {QUERN_REACT_ADDED, "added"},
    {QUERN_REACT_SET, "set"},
    {QUERN_REACT_REMOVED, "removed"},
    {QUERN_REACT_PRESENT, "present"}};

uint64_t quern__seconds_to_ns(double seconds)
{
    return (uint64_t)((seconds < 1e9 ? seconds : 1e9) * 1e9 + 0.5);
}

const quern__type *quern__conflict_type(const quern_schedule *schedule, quern__conflict conflict)
{
    switch ((quern__conflict_kind)conflict.kind) {
    case QUERN__CONFLICT_COMPONENT:
    case QUERN__CONFLICT_LEVEL:
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

/* Whether the writer's views write a component that the reader reads from entities outside its own views. */
static bool writes_for_reader(const quern__system *writer, const quern__system *reader, uint32_t index)
{
    return quern__bitset_has(writer->access.writes, index) &&
           quern__access_lookup_conflict(&writer->access, &reader->access, index, true, NULL) !=
               QUERN__NO_CONFLICT;
}

static void write_lookup_cause(quern__printer *printer, const quern__system *earlier,
                               const quern__system *later, uint32_t index, const char *component)
{
    const bool earlier_writes = writes_for_reader(earlier, later, index);
    if (earlier_writes || writes_for_reader(later, earlier, index)) {
        const quern__lookups *lookups = earlier_writes ? &later->access.lookups : &earlier->access.lookups;
        const bool is_lookup = quern__lookups_include(lookups, index, NULL);
        quern__write_quoted(printer, is_lookup ? "lookup of " : "up-term on ", component);
        quern__write_quoted(printer, " written by ", earlier_writes ? earlier->name : later->name);
        return;
    }
    quern__write_quoted(printer, "write lookup of ", component);
    const bool is_earlier = quern__bitset_has(earlier->access.lookups.written, index);
    quern__write_quoted(printer, " by ", is_earlier ? earlier->name : later->name);
}

void quern__write_cause(quern__printer *printer, const quern__system *earlier, const quern__system *later,
                        quern__conflict conflict)
{
    const quern__type *type = quern__conflict_type(earlier->plan->schedule, conflict);
    if (conflict.kind == QUERN__NO_CONFLICT)
        quern__print(printer, "exclusive");
    else if (type == NULL)
        quern__print(printer, "before/after");
    else if (conflict.kind == QUERN__CONFLICT_RESOURCE)
        quern__write_quoted(printer, "resource ", type->name);
    else if (conflict.kind == QUERN__CONFLICT_COMPONENT)
        quern__write_quoted(printer, "component ", type->name);
    else
        write_lookup_cause(printer, earlier, later, conflict.index, type->name);
}

/* --------------------------------------------------------------------------------------------- all */

quern_result quern_schedule_describe(quern_schedule *schedule, quern_describe_format format,
                                     quern_sink sink)
{
    if (schedule == NULL) return quern__fail_null("quern_schedule_describe", "schedule");
    quern_result result = quern__check_sink(sink, "quern_schedule_describe");
    if (result != QUERN_OK) return result;
    if (format != QUERN_DESCRIBE_TEXT && format != QUERN_DESCRIBE_JSON)
        return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                           "quern_schedule_describe: format %d is not a value of quern_describe_format",
                           (int)format);
    result = quern__schedule_compile(schedule, "quern_schedule_describe");
    if (result != QUERN_OK) return result;
    quern__facts facts;
    result = quern__facts_gather(&facts, schedule);
    if (result != QUERN_OK) return result;
    quern__printer printer;
    quern__printer_open(&printer, sink);
    if (format == QUERN_DESCRIBE_TEXT)
        quern__describe_text(&printer, &facts);
    else
        quern__describe_json(&printer, &facts);
    quern__facts_release(&facts);
    return quern__printer_close(&printer, "quern_schedule_describe");
}
