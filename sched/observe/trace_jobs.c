/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "core/platform/platform.h"
#include "sched/observe/trace.h"

/* Events of pools. Named work is reported with its text, which may be freed when the work ends, so the
 * trace keeps a copy. The same names are reported often, so each track caches the numbers of some of
 * them. */

/* Copies a name; truncates longer ones between two characters (UTF-8). */
static void copy_text(const char *name, char text[QUERN_MAX_NAME_BYTES + 1])
{
    size_t length = 0;
    while (length <= QUERN_MAX_NAME_BYTES && name[length] != '\0')
        length++;
    if (length > QUERN_MAX_NAME_BYTES) {
        length = QUERN_MAX_NAME_BYTES;
        while (length > 0 && ((unsigned char)name[length] & 0xC0) == 0x80)
            length--;
    }
    memcpy(text, name, length);
    text[length] = '\0';
}

static quern__trace_cached_name *cache_entry_of(quern__trace_track *track, const char *text)
{
    uint32_t hash = 2166136261u;
    for (const char *byte = text; *byte != '\0'; byte++)
        hash = (hash ^ (unsigned char)*byte) * 16777619u;
    return &track->cached_names[(hash >> 16) & (QUERN__TRACE_CACHED_NAME_COUNT - 1)];
}

/* Returns the number of a name. An empty name counts as none. */
static uint32_t number_of(quern_trace *trace, quern__trace_track *track, const char *name)
{
    char text[QUERN_MAX_NAME_BYTES + 1];
    copy_text(name, text);
    if (text[0] == '\0') return QUERN__TRACE_NO_NAME;
    quern__trace_cached_name *seen = cache_entry_of(track, text);
    if (strcmp(seen->text, text) == 0) return seen->number;
    const uint32_t number = quern__trace_number_of(trace, text);
    if (number == QUERN__TRACE_NO_NAME) return number;
    memcpy(seen->text, text, strlen(text) + 1);
    seen->number = number;
    return number;
}

/* The track index is the worker index. */
void quern__trace_record_job(quern__observer *observer, uint32_t worker_index, quern__job_event event,
                             const char *name, uint64_t begin_ns, uint32_t count)
{
    static const quern__trace_kind kinds[] = {[QUERN__JOB_EVENT_STEAL] = QUERN__TRACE_STEAL,
                                              [QUERN__JOB_EVENT_SLEEP] = QUERN__TRACE_SLEEP,
                                              [QUERN__JOB_EVENT_LOOP] = QUERN__TRACE_LOOP,
                                              [QUERN__JOB_EVENT_NAMED] = QUERN__TRACE_JOB};
    quern_trace *trace = (quern_trace *)(void *)observer;
    quern__trace_event shown = {.begin_ns = begin_ns,
                                .duration_ns = quern__clock_ns() - begin_ns,
                                .kind = kinds[event],
                                .name = QUERN__TRACE_NO_NAME,
                                .count = count};
    if (name != NULL && worker_index < trace->track_count)
        shown.name = number_of(trace, &trace->tracks[worker_index], name);
    quern__trace_record_if_running(trace, worker_index, &shown);
}
