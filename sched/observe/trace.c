/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "core/platform/platform.h"

#include "core/base/base_internal.h"
#include "core/base/bytes.h"
#include "core/base/text.h"
#include "sched/observe/profile_internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

/* Traces: names, rings of events, zones, and the trace file (profile_internal.h). */

/* --------------------------------------------------------------------------------------- events of pools */

/* Events of pools. Named work is reported with its text, which may be freed when the work ends, so the
 * trace keeps a copy. The same names are reported often, so each track caches the numbers of some of
 * them. */

/* Returns the number of a name, or the number of names if it is new. The caller holds the mutex. */
static uint32_t find_name(const quern_trace *trace, const char *name)
{
    uint32_t number = 0;
    while (number < trace->names.count && strcmp(trace->names.items[number].text, name) != 0)
        number++;
    return number;
}

/* Does not fail if there is no room, because it is called for work that is being recorded. */
static uint32_t trace_number_of(quern_trace *trace, const char *name)
{
    quern__mutex_lock(&trace->mutex);
    uint32_t number = find_name(trace, name);
    if (number == trace->names.count) {
        const bool has_room = number < QUERN_MAX_TRACE_NAMES &&
                              quern__array_reserve(&trace->allocator, &trace->names, number + 1);
        if (has_room)
            memcpy(trace->names.items[trace->names.count++].text, name, strlen(name) + 1);
        else
            number = QUERN__TRACE_NO_NAME;
    }
    quern__mutex_unlock(&trace->mutex);
    return number;
}

/* Returns the number of a name. An empty name counts as none. */
static uint32_t number_of(quern_trace *trace, quern__trace_track *track, const char *name)
{
    char text[QUERN_MAX_NAME_BYTES + 1];
    size_t length = 0;
    while (length <= QUERN_MAX_NAME_BYTES && name[length] != '\0')
        length++;
    if (length > QUERN_MAX_NAME_BYTES) { /* truncated between two characters (UTF-8) */
        length = QUERN_MAX_NAME_BYTES;
        while (length > 0 && ((unsigned char)name[length] & 0xC0) == 0x80)
            length--;
    }
    memcpy(text, name, length);
    text[length] = '\0';
    if (text[0] == '\0') return QUERN__TRACE_NO_NAME;
    uint32_t hash = 2166136261u;
    for (const char *byte = text; *byte != '\0'; byte++)
        hash = (hash ^ (unsigned char)*byte) * 16777619u;
    quern__trace_cached_name *seen =
        &track->cached_names[(hash >> 16) & (QUERN__TRACE_CACHED_NAME_COUNT - 1)];
    if (strcmp(seen->text, text) == 0) return seen->number;
    const uint32_t number = trace_number_of(trace, text);
    if (number == QUERN__TRACE_NO_NAME) return number;
    memcpy(seen->text, text, strlen(text) + 1);
    seen->number = number;
    return number;
}

/* The track index is the worker index. */
static void trace_record_job(quern__observer *observer, uint32_t worker_index, quern__job_event event,
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

enum { DEFAULT_TRACK_EVENTS = 65536, SLOTS_ALIGNMENT_BYTES = 64 };

/* -------------------------------------------------------------------------------------- life cycle */

/* Fills in the defaults of a definition and checks it. */
static quern_result fill_def(quern_trace_def *def)
{
    const quern_result result =
        quern__choose_allocator(&def->allocator, "quern_trace_create", &def->allocator);
    if (result != QUERN_OK) return result;
    if (def->track_count == 0) def->track_count = 1;
    if (def->events_per_track == 0) def->events_per_track = DEFAULT_TRACK_EVENTS;
    if (def->track_count > QUERN_MAX_TRACKS)
        return quern__fail(
            QUERN_ERROR_INVALID_ARGUMENT,
            "quern_trace_create: def->track_count is %u; the maximum is %d (QUERN_MAX_TRACKS)",
            def->track_count, QUERN_MAX_TRACKS);
    if (def->events_per_track < 2 || def->events_per_track > QUERN_MAX_TRACK_EVENTS)
        return quern__fail(
            QUERN_ERROR_INVALID_ARGUMENT,
            "quern_trace_create: def->events_per_track is %u; pass 2 to %u (QUERN_MAX_TRACK_EVENTS)",
            def->events_per_track, QUERN_MAX_TRACK_EVENTS);
    return QUERN_OK;
}

static size_t slots_bytes(const quern_trace *trace)
{
    return trace->capacity * sizeof(quern__trace_slot);
}

static size_t tracks_bytes(const quern_trace *trace)
{
    return trace->track_count * sizeof(quern__trace_track);
}

static bool open_track(const quern_trace *trace, quern__trace_track *track)
{
    quern__trace_slot *slots =
        quern__allocate(&trace->allocator, slots_bytes(trace), SLOTS_ALIGNMENT_BYTES);
    if (slots == NULL) return false;
    for (uint32_t i = 0; i < trace->capacity; i++)
        for (uint32_t w = 0; w < QUERN__TRACE_EVENT_WORDS; w++)
            atomic_init(&slots[i].words[w], 0);
    atomic_init(&track->head, 0);
    atomic_init(&track->start_head, 0);
    atomic_init(&track->depth, 0);
    track->slots = slots;
    track->name[0] = '\0';
    memset(track->cached_names, 0, sizeof track->cached_names);
    return true;
}

static void close_tracks(const quern_trace *trace, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        quern__release(&trace->allocator, trace->tracks[i].slots, slots_bytes(trace),
                       SLOTS_ALIGNMENT_BYTES);
    quern__release(&trace->allocator, trace->tracks, tracks_bytes(trace), _Alignof(quern__trace_track));
}

/* Returns false if there is no memory; then nothing is allocated. */
static bool open_tracks(quern_trace *trace)
{
    trace->tracks = quern__allocate(&trace->allocator, tracks_bytes(trace), _Alignof(quern__trace_track));
    if (trace->tracks == NULL) return false;
    for (uint32_t i = 0; i < trace->track_count; i++) {
        if (open_track(trace, &trace->tracks[i])) continue;
        close_tracks(trace, i);
        return false;
    }
    return true;
}

static void release_trace(quern_trace *trace)
{
    const quern_allocator allocator = trace->allocator;
    quern__release(&allocator, trace, sizeof *trace, _Alignof(quern_trace));
}

quern_result quern_trace_create(const quern_trace_def *def, quern_trace **out_trace)
{
    quern_trace_def filled = {0};
    if (def != NULL) filled = *def;
    if (out_trace == NULL) return quern__fail_null("quern_trace_create", "out_trace");
    const quern_result result = fill_def(&filled);
    if (result != QUERN_OK) return result;
    quern_trace *trace = quern__allocate(&filled.allocator, sizeof *trace, _Alignof(quern_trace));
    if (trace == NULL)
        return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "quern_trace_create: out of memory for the trace");
    uint32_t capacity = 1; /* a power of two */
    while (capacity < filled.events_per_track)
        capacity *= 2;
    *trace = (quern_trace){.observer.report = trace_record_job,
                           .track_count = filled.track_count,
                           .capacity = capacity,
                           .allocator = filled.allocator};
    if (!open_tracks(trace)) {
        release_trace(trace);
        return quern__fail(QUERN_ERROR_OUT_OF_MEMORY,
                           "quern_trace_create: out of memory for %u tracks of %u events",
                           filled.track_count, filled.events_per_track);
    }
    if (!quern__mutex_init(&trace->mutex)) {
        close_tracks(trace, trace->track_count);
        release_trace(trace);
        return quern__fail(QUERN_ERROR_OUT_OF_MEMORY,
                           "quern_trace_create: the system could not create a mutex");
    }
    *out_trace = trace;
    return QUERN_OK;
}

/* Relaxed: callers only need different numbers. */
uint32_t quern__trace_add_schedule(quern_trace *trace)
{
    if (trace == NULL) return 0;
    quern__observer_add_user(&trace->observer);
    return atomic_fetch_add_explicit(&trace->schedule_count, 1, memory_order_relaxed);
}

void quern__trace_remove_schedule(quern_trace *trace)
{
    if (trace != NULL) quern__observer_remove_user(&trace->observer);
}

void quern_trace_destroy(quern_trace *trace)
{
    if (trace == NULL) return;
    /* Acquire: pairs with the release in quern__observer_remove_user. */
    const uint32_t user_count = atomic_load_explicit(&trace->observer.user_count, memory_order_acquire);
    if (user_count > 0) {
        quern__report_violation(
            QUERN_ERROR_INVALID_ARGUMENT,
            "quern_trace_destroy: %u pools and schedules still record on the trace; destroy them first",
            user_count);
        return;
    }
    quern__mutex_deinit(&trace->mutex);
    quern__array_release(&trace->allocator, &trace->names);
    close_tracks(trace, trace->track_count);
    release_trace(trace);
}

/* ------------------------------------------------------------------------------------------- names */

quern_result quern_trace_add_name(quern_trace *trace, const char *name, uint32_t *out_name)
{
    if (trace == NULL) return quern__fail_null("quern_trace_add_name", "trace");
    if (name == NULL) return quern__fail_null("quern_trace_add_name", "name");
    if (out_name == NULL) return quern__fail_null("quern_trace_add_name", "out_name");
    quern_result result = quern__in_call(quern__check_name(name, "zone"), "quern_trace_add_name");
    if (result != QUERN_OK) return result;
    quern__mutex_lock(&trace->mutex);
    const uint32_t number = find_name(trace, name);
    if (number == QUERN_MAX_TRACE_NAMES)
        result = quern__fail(QUERN_ERROR_LIMIT,
                             "quern_trace_add_name: '%s' exceeds the limit of %d names "
                             "(QUERN_MAX_TRACE_NAMES): use fewer names",
                             name, QUERN_MAX_TRACE_NAMES);
    else if (!quern__array_reserve(&trace->allocator, &trace->names, number + 1))
        result = quern__fail(QUERN_ERROR_OUT_OF_MEMORY,
                             "quern_trace_add_name: out of memory for the name '%s'", name);
    else if (number == trace->names.count)
        memcpy(trace->names.items[trace->names.count++].text, name, strlen(name) + 1);
    quern__mutex_unlock(&trace->mutex);
    if (result == QUERN_OK) *out_name = number;
    return result;
}

quern_result quern_trace_set_track_name(quern_trace *trace, uint32_t track, const char *name)
{
    if (trace == NULL) return quern__fail_null("quern_trace_set_track_name", "trace");
    if (name == NULL) return quern__fail_null("quern_trace_set_track_name", "name");
    if (track >= trace->track_count)
        return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                           "quern_trace_set_track_name: no track %u; the trace has %u", track,
                           trace->track_count);
    const quern_result result =
        quern__in_call(quern__check_name(name, "track"), "quern_trace_set_track_name");
    if (result != QUERN_OK) return result;
    quern__mutex_lock(&trace->mutex);
    memcpy(trace->tracks[track].name, name, strlen(name) + 1);
    quern__mutex_unlock(&trace->mutex);
    return QUERN_OK;
}

/* Copy a name, because names may be added at any time. A number without a name gives "?"; a track without a
 * name gives an empty text. */
static void trace_copy_name(quern_trace *trace, uint32_t name, char text[QUERN_MAX_NAME_BYTES + 1])
{
    quern__mutex_lock(&trace->mutex);
    const char *found = name < trace->names.count ? trace->names.items[name].text : "?";
    memcpy(text, found, strlen(found) + 1);
    quern__mutex_unlock(&trace->mutex);
}

/* --------------------------------------------------------------------------------------- recording */

/* The stores after the loop are relaxed: a worker that sees is_recording late, or an old start_ns, records a few
 * events too many or too few, which does no harm. */
void quern_trace_start(quern_trace *trace)
{
    if (trace == NULL) return;
    for (uint32_t i = 0; i < trace->track_count; i++) {
        quern__trace_track *track = &trace->tracks[i];
        const uint64_t head = atomic_load_explicit(&track->head, memory_order_relaxed);
        /* Release: pairs with the acquire in start_of. */
        atomic_store_explicit(&track->start_head, head, memory_order_release);
    }
    atomic_store_explicit(&trace->start_ns, quern__clock_ns(), memory_order_relaxed);
    atomic_store_explicit(&trace->reported_messages, 0, memory_order_relaxed);
    atomic_store_explicit(&trace->observer.is_recording, true, memory_order_relaxed);
}

/* Relaxed: one event more or less does no harm. */
void quern_trace_stop(quern_trace *trace)
{
    if (trace != NULL) atomic_store_explicit(&trace->observer.is_recording, false, memory_order_relaxed);
}

bool quern_trace_is_running(const quern_trace *trace)
{
    return quern__trace_is_recording(trace);
}

/* Release: pairs with the reader's acquire of the word, see profile_internal.h. */
static void store_word(quern__trace_slot *slot, uint32_t index, uint64_t word)
{
    atomic_store_explicit(&slot->words[index], word, memory_order_release);
}

void quern__trace_record(quern_trace *trace, uint32_t track_index, const quern__trace_event *event)
{
    quern__trace_track *track = &trace->tracks[track_index];
    /* Relaxed: only this thread writes it. */
    const uint64_t head = atomic_load_explicit(&track->head, memory_order_relaxed);
    quern__trace_slot *slot = &track->slots[head & (trace->capacity - 1)];
    store_word(slot, 0, event->begin_ns);
    store_word(slot, 1, event->duration_ns);
    store_word(slot, 2, (uint64_t)event->name << QUERN__TRACE_KIND_BITS | event->kind);
    store_word(slot, 3, (uint64_t)event->ordinal << 32 | event->count);
    /* Release: pairs with the acquire in end_of. */
    atomic_store_explicit(&track->head, head + 1, memory_order_release);
}

/* Relaxed: see quern__trace_is_recording. */
static bool is_of_start(const quern_trace *trace, uint64_t begin_ns)
{
    return begin_ns >= atomic_load_explicit(&trace->start_ns, memory_order_relaxed);
}

void quern__trace_record_if_running(quern_trace *trace, uint32_t track, const quern__trace_event *event)
{
    if (!quern__trace_is_recording(trace) || track >= trace->track_count) return;
    if (is_of_start(trace, event->begin_ns)) quern__trace_record(trace, track, event);
}

/* ------------------------------------------------------------------------------------------- zones */

/* Relaxed: one message more or less does no harm. */
static bool was_reported(const quern_trace *trace, uint32_t what)
{
    return (atomic_load_explicit(&trace->reported_messages, memory_order_relaxed) & what) != 0;
}

/* Returns true for the first report since the start. Relaxed: only one caller may be the first, and no data
 * is published with it. */
static bool begin_report(quern_trace *trace, uint32_t what)
{
    return (atomic_fetch_or_explicit(&trace->reported_messages, what, memory_order_relaxed) & what) == 0;
}

static QUERN__SLOW_PATH void report_track(quern_trace *trace, uint32_t track)
{
    if (was_reported(trace, QUERN__REPORTED_TRACK) || !begin_report(trace, QUERN__REPORTED_TRACK)) return;
    (void)quern__report_violation(
        QUERN_ERROR_INVALID_ARGUMENT,
        "quern_trace_zone_begin: no track %u; the trace has %u; raise track_count in its "
        "definition (reported once per start of the trace)",
        track, trace->track_count);
}

static QUERN__SLOW_PATH void report_crossing(quern_trace *trace, const quern_trace_zone *zone)
{
    if (was_reported(trace, QUERN__REPORTED_CROSSING) || !begin_report(trace, QUERN__REPORTED_CROSSING))
        return;
    char name[QUERN_MAX_NAME_BYTES + 1];
    trace_copy_name(trace, zone->name, name);
    (void)quern__report_violation(
        QUERN_ERROR_INVALID_ARGUMENT,
        "quern_trace_zone_end: zone '%s' on track %u has ended already, or one that began "
        "in it has not; end each zone once, the last begun first (reported once per start of the "
        "trace)",
        name, zone->track);
}

void quern__trace_check_worker_count(quern_trace *trace, uint32_t worker_count)
{
    if (trace == NULL || worker_count <= trace->track_count || was_reported(trace, QUERN__REPORTED_WORKERS))
        return;
    if (!begin_report(trace, QUERN__REPORTED_WORKERS)) return;
    quern__log(
        QUERN_LOG_WARNING,
        "a frame runs on %u threads, but the trace has %u tracks: events of the other threads are dropped; "
        "raise track_count in its definition (reported once per start of the trace)",
        worker_count, trace->track_count);
}

quern_trace_zone quern_trace_zone_begin(quern_trace *trace, uint32_t track, uint32_t name)
{
    if (!quern__trace_is_recording(trace)) return (quern_trace_zone){0};
    if (track >= trace->track_count) {
        report_track(trace, track);
        return (quern_trace_zone){0};
    }
    uint32_t depth = 0;
    if (QUERN_CHECKS) {
        /* When a zone ends, the depth is the same again if all zones inside of it have ended. Relaxed: only the
         * track's thread writes it. */
        depth = atomic_load_explicit(&trace->tracks[track].depth, memory_order_relaxed) + 1;
        atomic_store_explicit(&trace->tracks[track].depth, depth, memory_order_relaxed);
    }
    return (quern_trace_zone){
        .trace = trace, .begin_ns = quern__clock_ns(), .track = track, .name = name, .depth = depth};
}

void quern_trace_zone_end(const quern_trace_zone *zone)
{
    if (zone == NULL || !quern__trace_is_recording(zone->trace)) return;
    const quern__trace_event event = {.begin_ns = zone->begin_ns,
                                      .duration_ns = quern__clock_ns() - zone->begin_ns,
                                      .kind = QUERN__TRACE_ZONE,
                                      .name = zone->name};
    if (QUERN_CHECKS && is_of_start(zone->trace, zone->begin_ns)) {
        /* Relaxed: the depth is written by the thread of the track alone. */
        quern__trace_track *track = &zone->trace->tracks[zone->track];
        if (atomic_load_explicit(&track->depth, memory_order_relaxed) != zone->depth)
            report_crossing(zone->trace, zone);
        atomic_store_explicit(&track->depth, zone->depth - 1, memory_order_relaxed);
    }
    quern__trace_record_if_running(zone->trace, zone->track, &event);
}

/* ----------------------------------------------------------------------------------------- reading */

/* Acquire: pairs with the release of the same word. */
static uint64_t load_word(const quern__trace_slot *slot, uint32_t index)
{
    return atomic_load_explicit(&slot->words[index], memory_order_acquire);
}

static quern__trace_event load_event(const quern__trace_slot *slot)
{
    const uint64_t what = load_word(slot, 2);
    const uint64_t numbers = load_word(slot, 3);
    return (quern__trace_event){
        .begin_ns = load_word(slot, 0),
        .duration_ns = load_word(slot, 1),
        .kind = (quern__trace_kind)(what & ((1u << QUERN__TRACE_KIND_BITS) - 1)),
        .name = (uint32_t)(what >> QUERN__TRACE_KIND_BITS),
        .ordinal = (uint32_t)(numbers >> 32),
        .count = (uint32_t)numbers,
    };
}

/* Acquire: pairs with the release in quern__trace_record. */
static uint64_t end_of(const quern__trace_track *track)
{
    return atomic_load_explicit(&track->head, memory_order_acquire);
}

/* Acquire: pairs with the release in quern_trace_start, which has read this value of head, so later loads
 * of head do not return an older value. */
static uint64_t start_of(const quern__trace_track *track)
{
    return atomic_load_explicit(&track->start_head, memory_order_acquire);
}

/* Returns the number of the oldest event that can be read completely for this value of head. */
static inline uint64_t trace_oldest_whole(const quern_trace *trace, uint64_t head)
{
    return head + 1 > trace->capacity ? head + 1 - trace->capacity : 0;
}

uint32_t quern__trace_read(const quern_trace *trace, uint32_t track_index, quern__trace_event *events)
{
    const quern__trace_track *track = &trace->tracks[track_index];
    const uint64_t end = end_of(track);
    const uint64_t first = trace_oldest_whole(trace, end);
    for (uint64_t i = first; i < end; i++)
        events[i - first] = load_event(&track->slots[i & (trace->capacity - 1)]);
    /* Remove events that may have been overwritten during the copy, and those recorded before the start. */
    const uint64_t start = start_of(track);
    /* Relaxed: the words were copied with acquire loads. If a copied word is of a newer event, this load
     * therefore returns at least the number of that event. */
    const uint64_t now = atomic_load_explicit(&track->head, memory_order_relaxed);
    const uint64_t whole = trace_oldest_whole(trace, now);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < end - first; i++)
        if (first + i >= whole && first + i >= start) events[kept++] = events[i];
    return kept;
}

quern_result quern_trace_get_stats(const quern_trace *trace, quern_trace_stats *out_stats)
{
    if (trace == NULL) return quern__fail_null("quern_trace_get_stats", "trace");
    if (out_stats == NULL) return quern__fail_null("quern_trace_get_stats", "out_stats");
    *out_stats = (quern_trace_stats){0};
    for (uint32_t i = 0; i < trace->track_count; i++) {
        const uint64_t start = start_of(&trace->tracks[i]), end = end_of(&trace->tracks[i]);
        const uint64_t whole = trace_oldest_whole(trace, end);
        const uint64_t first = whole > start ? whole : start;
        out_stats->event_count += end - first;
        out_stats->dropped_count += first - start;
    }
    return QUERN_OK;
}

/* ------------------------------------------------------------------------------------ trace event format */

/* The trace event format: an object with an array of events. "X" is an event with a begin and a duration in
 * microseconds; "M" names processes and threads. Viewers nest the events of a thread by time, and events
 * with the same begin by their order in the file. So events are sorted by begin, and longer ones first. */

enum { EVENTS_ALIGNMENT_BYTES = 64, LINE_DEPTH = 2 }; /* one event per line */

/* Category of each kind of event in the file, and the names of its arguments. */
static const struct {
    const char *category;
    const char *ordinal, *count; /* NULL if events of the kind have no such argument */
} kinds[QUERN__TRACE_KIND_COUNT] = {
    [QUERN__TRACE_ZONE] = {"zone", NULL, NULL},
    [QUERN__TRACE_FRAME] = {"frame", "frame", "schedule"},
    [QUERN__TRACE_PASS] = {"pass", "first_chunk", "chunks"},
    [QUERN__TRACE_SYSTEM] = {"system", "view", "rows"},
    [QUERN__TRACE_BEGIN] = {"begin", NULL, NULL},
    [QUERN__TRACE_END] = {"end", NULL, NULL},
    [QUERN__TRACE_SYNC] = {"sync", NULL, "commands"},
    [QUERN__TRACE_STEAL] = {"steal", NULL, "items"},
    [QUERN__TRACE_SLEEP] = {"sleep", NULL, NULL},
    [QUERN__TRACE_LOOP] = {"loop", NULL, NULL},
    [QUERN__TRACE_JOB] = {"job", NULL, NULL},
};

static const char *const stages[] = {
    [QUERN__STAGE_SYNC] = "sync",       [QUERN__STAGE_GATHER] = "gather", [QUERN__STAGE_MERGE] = "merge",
    [QUERN__STAGE_RESOLVE] = "resolve", [QUERN__STAGE_APPLY] = "apply",
};

typedef struct trace_writer {
    quern_trace *trace;
    quern__json json;
    quern__trace_event *events; /* room for a whole ring */
} trace_writer;

/* ------------------------------------------------------------------------------------------ sorting */

static bool comes_before(const quern__trace_event *a, const quern__trace_event *b)
{
    if (a->begin_ns != b->begin_ns) return a->begin_ns < b->begin_ns;
    return a->duration_ns > b->duration_ns;
}

static void swap_events(quern__trace_event *a, quern__trace_event *b)
{
    const quern__trace_event kept = *a;
    *a = *b;
    *b = kept;
}

/* Restores the order of a heap in which only the root may violate it. The root is the last event in order. */
static void sift_down(quern__trace_event *events, uint32_t root, uint32_t count)
{
    for (;;) {
        uint32_t child = 2 * root + 1;
        if (child >= count) return;
        if (child + 1 < count && comes_before(&events[child], &events[child + 1])) child++;
        if (!comes_before(&events[root], &events[child])) return;
        swap_events(&events[root], &events[child]);
        root = child;
    }
}

/* A heap sort, because it needs no memory; qsort may allocate outside of the trace's allocator. */
static void sort_events(quern__trace_event *events, uint32_t count)
{
    for (uint32_t root = count / 2; root > 0; root--)
        sift_down(events, root - 1, count);
    for (uint32_t end = count; end > 1; end--) {
        swap_events(&events[0], &events[end - 1]);
        sift_down(events, 0, end - 1);
    }
}

/* ------------------------------------------------------------------------------------------ writing */

static void open_event(quern__json *json, const char *phase, uint32_t track)
{
    quern__json_open(json, NULL, '{');
    quern__json_text(json, "ph", phase);
    quern__json_integer(json, "pid", 1);
    quern__json_integer(json, "tid", track + 1);
}

static void write_track_name(trace_writer *writer, uint32_t index)
{
    quern__json *json = &writer->json;
    char name[QUERN_MAX_NAME_BYTES + 1];
    quern_trace *trace = writer->trace;
    quern__mutex_lock(&trace->mutex);
    memcpy(name, trace->tracks[index].name, sizeof trace->tracks[index].name);
    quern__mutex_unlock(&trace->mutex);
    if (name[0] == '\0') snprintf(name, sizeof name, "worker %" PRIu32, index);
    open_event(json, "M", index);
    quern__json_text(json, "name", "thread_name");
    quern__json_open(json, "args", '{');
    quern__json_text(json, "name", name);
    quern__json_close(json, '}');
    quern__json_close(json, '}');
    open_event(json, "M", index);
    quern__json_text(json, "name", "thread_sort_index");
    quern__json_open(json, "args", '{');
    quern__json_integer(json, "sort_index", index);
    quern__json_close(json, '}');
    quern__json_close(json, '}');
}

static void write_args(quern__json *json, const quern__trace_event *event)
{
    /* Of the events of a sync point, only the whole sync point has a count. */
    if (event->kind == QUERN__TRACE_SYNC && event->ordinal != QUERN__STAGE_SYNC) return;
    if (kinds[event->kind].count == NULL) return;
    quern__json_open(json, "args", '{');
    const char *ordinal = kinds[event->kind].ordinal;
    if (ordinal != NULL) quern__json_integer(json, ordinal, event->ordinal);
    quern__json_integer(json, kinds[event->kind].count, event->count);
    quern__json_close(json, '}');
}

/* Writes an event; times are in microseconds with three decimals. The start is read with relaxed order: it
 * changes only while the trace does not run. */
static void write_event(trace_writer *writer, uint32_t track, const quern__trace_event *event)
{
    quern__json *json = &writer->json;
    const quern_trace *trace = writer->trace;
    const uint64_t start_ns = atomic_load_explicit(&trace->start_ns, memory_order_relaxed);
    open_event(json, "X", track);
    quern__json_text(json, "cat", kinds[event->kind].category);
    char own[QUERN_MAX_NAME_BYTES + 1];
    const char *name = kinds[event->kind].category;
    if (event->name != QUERN__TRACE_NO_NAME) {
        trace_copy_name(writer->trace, event->name, own);
        name = own;
    } else if (event->kind == QUERN__TRACE_SYNC) {
        name = event->ordinal < QUERN__COUNT_OF(stages) ? stages[event->ordinal] : "?";
    }
    quern__json_text(json, "name", name);
    quern__json_decimal(json, "ts", event->begin_ns > start_ns ? event->begin_ns - start_ns : 0, 3);
    quern__json_decimal(json, "dur", event->duration_ns, 3);
    write_args(json, event);
    quern__json_close(json, '}');
}

/* Allocates memory in which the events of one track are sorted. */
static quern__trace_event *allocate_events(const quern_trace *trace, const char *function)
{
    quern__trace_event *events = quern__allocate(
        &trace->allocator, trace->capacity * sizeof(quern__trace_event), EVENTS_ALIGNMENT_BYTES);
    if (events == NULL)
        quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "%s: out of memory for %u events per track", function,
                    trace->capacity);
    return events;
}

static void release_events(const quern_trace *trace, quern__trace_event *events)
{
    quern__release(&trace->allocator, events, trace->capacity * sizeof(quern__trace_event),
                   EVENTS_ALIGNMENT_BYTES);
}

static quern_result write_trace(trace_writer *writer, const char *function)
{
    quern_trace_stats stats = {.dropped_count = 0};
    (void)quern_trace_get_stats(writer->trace, &stats);
    quern__json *json = &writer->json;
    quern__json_open(json, NULL, '{');
    quern__json_text(json, "displayTimeUnit", "ns");
    quern__json_open(json, "otherData", '{');
    quern__json_integer(json, "dropped", stats.dropped_count);
    quern__json_close(json, '}');
    quern__json_open(json, "traceEvents", '[');
    for (uint32_t track = 0; track < writer->trace->track_count; track++) {
        write_track_name(writer, track);
        const uint32_t count = quern__trace_read(writer->trace, track, writer->events);
        sort_events(writer->events, count);
        for (uint32_t i = 0; i < count; i++)
            write_event(writer, track, &writer->events[i]);
    }
    quern__json_close(json, ']');
    quern__json_close(json, '}');
    return quern__printer_close(json->printer, function);
}

quern_result quern_trace_write(quern_trace *trace, quern_sink sink)
{
    if (trace == NULL) return quern__fail_null("quern_trace_write", "trace");
    quern_result result = quern__check_sink(sink, "quern_trace_write");
    if (result != QUERN_OK) return result;
    quern__printer printer;
    quern__printer_open(&printer, sink);
    trace_writer writer = {.trace = trace,
                           .json = {.printer = &printer, .line_depth = LINE_DEPTH},
                           .events = allocate_events(trace, "quern_trace_write")};
    if (writer.events == NULL) return QUERN_ERROR_OUT_OF_MEMORY;
    result = write_trace(&writer, "quern_trace_write");
    release_events(trace, writer.events);
    return result;
}

/* ------------------------------------------------------------------------------------------- saving */

typedef struct trace_text {
    quern_trace *trace;
    quern__trace_event *events;
} trace_text;

static int write_text(void *user_data, quern_sink sink)
{
    const trace_text *text = user_data;
    quern__printer printer;
    quern__printer_open(&printer, sink);
    trace_writer writer = {.trace = text->trace,
                           .json = {.printer = &printer, .line_depth = LINE_DEPTH},
                           .events = text->events};
    if (write_trace(&writer, "quern_trace_save") == QUERN_OK) return 0;
    return printer.sink.error != 0 ? printer.sink.error : EIO;
}

quern_result quern_trace_save(quern_trace *trace, const char *path)
{
    if (trace == NULL) return quern__fail_null("quern_trace_save", "trace");
    if (path == NULL) return quern__fail_null("quern_trace_save", "path");
    trace_text text = {.trace = trace, .events = allocate_events(trace, "quern_trace_save")};
    if (text.events == NULL) return QUERN_ERROR_OUT_OF_MEMORY;
    const size_t path_bytes = strlen(path) + sizeof QUERN__TEMPORARY_SUFFIX;
    char *temporary_path = quern__allocate(&trace->allocator, path_bytes, EVENTS_ALIGNMENT_BYTES);
    quern_result result = QUERN_OK;
    if (temporary_path == NULL) {
        result = quern__fail(QUERN_ERROR_OUT_OF_MEMORY,
                             "quern_trace_save: out of memory for the name of the temporary file");
    } else {
        const int error = quern__file_write(path, temporary_path, write_text, &text);
        if (error != 0)
            result = quern__fail(QUERN_ERROR_IO, "quern_trace_save: cannot write the trace '%s': %s", path,
                                 strerror(error));
    }
    release_events(trace, text.events);
    quern__release(&trace->allocator, temporary_path, path_bytes, EVENTS_ALIGNMENT_BYTES);
    return result;
}
