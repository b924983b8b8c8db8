/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "inspect/inspect_internal.h"

#include <stdlib.h>
#include <string.h>

/* End points about frames: pause, step, kept frames; and the messages of WebSockets. */

static void set_paused(quern_inspector *inspector, bool is_paused)
{
    if (inspector->is_paused == is_paused) return;
    inspector->is_paused = is_paused;
    inspector->step_count = 0;
    /* Relaxed, as in quern_inspector_update: only the main thread depends on it. */
    if (is_paused)
        atomic_fetch_add_explicit(&inspector->attention, 1, memory_order_relaxed);
    else
        atomic_fetch_sub_explicit(&inspector->attention, 1, memory_order_relaxed); /* relaxed: as above */
}

static void begin_pause(quern__inspect_answer *answer)
{
    if (!answer->inspector->is_paused) quern__inspect_note(answer->inspector, "pause");
    set_paused(answer->inspector, true);
    quern__inspect_finish_change(answer, QUERN_OK);
}

static void begin_resume(quern__inspect_answer *answer)
{
    set_paused(answer->inspector, false);
    quern__inspect_finish_change(answer, QUERN_OK);
}

static void begin_step(quern__inspect_answer *answer)
{
    uint64_t count;
    if (!quern__inspect_read_count(answer, "count", 1, 100000, &count)) return;
    set_paused(answer->inspector, true);
    answer->inspector->step_count = (uint32_t)count;
    quern__inspect_finish_change(answer, QUERN_OK);
}

/* ------------------------------------------------------------------------------------------- history */

static bool has_history(quern__inspect_answer *answer)
{
    if (answer->inspector->def.history != NULL) return true;
    quern__inspect_fail(answer, 404,
                        "%s: the inspector has no history: the program must set it in the definition",
                        answer->route->path);
    return false;
}

static void begin_history(quern__inspect_answer *answer)
{
    quern_inspector *inspector = answer->inspector;
    quern__inspect_text *text = &answer->text;
    quern_history_stats stats;
    if (!has_history(answer)) return;
    quern_history_get_stats(inspector->def.history, &stats);
    quern__inspect_open(text, NULL, '{');
    quern__inspect_put_count(text, "frame", inspector->frame);
    quern__inspect_put_flag(text, "paused", inspector->is_paused);
    quern__inspect_put_count(text, "used_bytes", stats.used_bytes);
    quern__inspect_put_count(text, "held_bytes", stats.held_bytes);
    quern__inspect_put_count(text, "copied_bytes", stats.copied_bytes);
    uint64_t frames[4096];
    const uint32_t count = quern_history_list_frames(inspector->def.history, frames, 4096);
    quern__inspect_put_count(text, "frame_count", count);
    quern__inspect_open(text, "frames", '[');
    for (uint32_t i = 0; i < count && i < 4096; i++)
        quern__inspect_put_count(text, NULL, frames[i]);
    quern__inspect_close(text, ']');
    quern__inspect_open(text, "marks", '[');
    const uint64_t mark_count = inspector->mark_count;
    for (uint64_t i = mark_count > QUERN__INSPECT_MARKS ? mark_count - QUERN__INSPECT_MARKS : 0;
         i < mark_count; i++) {
        const quern__inspect_mark *mark = &inspector->marks[i % QUERN__INSPECT_MARKS];
        quern__inspect_open(text, NULL, '{');
        quern__inspect_put_count(text, "frame", mark->frame);
        quern__inspect_put_text(text, "text", mark->text);
        quern__inspect_close(text, '}');
    }
    quern__inspect_close(text, ']');
    quern__inspect_close(text, '}');
}

/* An earlier frame is not saved again: that would drop the frames after it. */
quern_result quern__inspect_save_present(quern_inspector *inspector)
{
    uint64_t newest;
    const bool has_frames = quern_history_get_frames(inspector->def.history, NULL, &newest);
    if (inspector->is_saved || (has_frames && newest > inspector->frame)) return QUERN_OK;
    const quern_result result =
        quern_history_save(inspector->def.history, inspector->frame, inspector->def.jobs);
    inspector->is_saved = result == QUERN_OK;
    return result;
}

static void begin_restore(quern__inspect_answer *answer)
{
    quern_inspector *inspector = answer->inspector;
    uint64_t frame;
    const char *text;
    if (!has_history(answer) || !quern__inspect_read_text(answer, "frame", &text) ||
        !quern__inspect_read_count(answer, "frame", 0, UINT64_MAX, &frame))
        return;
    quern_result result = quern__inspect_save_present(inspector);
    if (result == QUERN_OK)
        result = quern_history_restore(inspector->def.history, frame, inspector->def.jobs);
    if (result == QUERN_OK) {
        inspector->frame = frame;
        quern__inspect_set_moved(inspector, true);
        inspector->is_saved = true;
        inspector->has_run = false;
        set_paused(inspector, true);
        inspector->step_count = 0;
    }
    quern__inspect_finish_change(answer, result);
}

/* -------------------------------------------------------------------------------------------- events */

void quern__inspect_write_events(quern_inspector *inspector, quern__inspect_text *text, uint64_t after)
{
    const uint64_t count = inspector->event_count;
    uint64_t i = count > QUERN__INSPECT_EVENTS ? count - QUERN__INSPECT_EVENTS : 0;
    if (i < inspector->first_event) i = inspector->first_event;
    if (i < after) i = after;
    quern__inspect_open(text, "events", '[');
    for (; inspector->events != NULL && i < count; i++) {
        const quern__inspect_event *event = &inspector->events[i % QUERN__INSPECT_EVENTS];
        quern__inspect_open(text, NULL, '{');
        quern__inspect_put_count(text, "frame", event->frame);
        quern__inspect_put_text(text, "event", quern_event_name(inspector->def.world, event->event));
        if (event->json[0] != '\0') {
            const quern_sink sink = quern__inspect_put_json(text, "value");
            sink.write(sink.user_data, event->json, strlen(event->json));
        } else {
            quern__inspect_put_text(text, "value", NULL);
        }
        quern__inspect_close(text, '}');
    }
    quern__inspect_close(text, ']');
}

static void write_event_types(quern_inspector *inspector, quern__inspect_text *text)
{
    const quern_world *world = inspector->def.world;
    quern__inspect_open(text, "types", '[');
    for (uint32_t i = 0; i < quern_event_count(world); i++) {
        quern_event_stats stats;
        const quern_event event = quern_event_at(world, i);
        if (quern_event_get_stats(world, event, &stats) != QUERN_OK) continue;
        quern__inspect_open(text, NULL, '{');
        quern__inspect_put_text(text, "name", quern_event_name(world, event));
        quern__inspect_put_count(text, "waiting_count", stats.waiting_count);
        quern__inspect_put_count(text, "waiting_bytes", stats.waiting_bytes);
        quern__inspect_put_count(text, "reader_count", stats.reader_count);
        quern__inspect_put_count(text, "lost_count", stats.lost_count);
        quern__inspect_close(text, '}');
    }
    quern__inspect_close(text, ']');
}

static void begin_events(quern__inspect_answer *answer)
{
    quern__inspect_open(&answer->text, NULL, '{');
    quern__inspect_put_flag(&answer->text, "listening", answer->inspector->readers != NULL);
    write_event_types(answer->inspector, &answer->text);
    quern__inspect_write_events(answer->inspector, &answer->text, 0);
    quern__inspect_close(&answer->text, '}');
}

const quern__inspect_route quern__inspect_frame_routes[] = {
    {"pause", true, false, begin_pause, NULL},
    {"resume", true, false, begin_resume, NULL},
    {"step", true, false, begin_step, NULL},
    {"restore", true, false, begin_restore, NULL},
    {"history", false, false, begin_history, NULL},
    {"events", false, false, begin_events, NULL},
    {NULL, false, false, NULL, NULL},
};

/* ------------------------------------------------------------------------------------------- watches */

enum { WATCHED_PER_STEP = 4, WATCHED_MAX = 256 };

static bool has_part(const quern__inspect_answer *answer, const char *part)
{
    const char *parts = quern__inspect_argument(&answer->arguments, "parts");
    const size_t bytes = strlen(part);
    for (const char *at = parts; at != NULL; at = strchr(at, ',')) {
        if (*at == ',') at++;
        if (strncmp(at, part, bytes) == 0 && (at[bytes] == ',' || at[bytes] == '\0')) return true;
    }
    return false;
}

/* Frame, duration, duration of sync points, commands, dropped commands, created and destroyed entities, events. */
static void write_samples(quern__inspect_answer *answer)
{
    quern_inspector *inspector = answer->inspector;
    quern__inspect_text *text = &answer->text;
    const uint64_t count = inspector->sample_count;
    uint64_t i = answer->client != NULL ? answer->client->sample_count : 0;
    if (i + QUERN__INSPECT_SAMPLES < count) i = count - QUERN__INSPECT_SAMPLES;
    quern__inspect_open(text, "samples", '[');
    for (; i < count; i++) {
        const quern__inspect_sample *sample = &inspector->samples[i % QUERN__INSPECT_SAMPLES];
        const quern_frame_stats *stats = &sample->stats;
        const uint64_t figures[] = {sample->frame,          stats->time_ns,       stats->sync_ns,
                                    stats->command_count,   stats->dropped_count, stats->created_count,
                                    stats->destroyed_count, stats->event_count};
        quern__inspect_open(text, NULL, '[');
        for (size_t k = 0; k < sizeof figures / sizeof figures[0]; k++)
            quern__inspect_put_count(text, NULL, figures[k]);
        quern__inspect_close(text, ']');
    }
    quern__inspect_close(text, ']');
    if (answer->client != NULL) answer->client->sample_count = count;
}

static void write_range(quern_inspector *inspector, quern__inspect_text *text)
{
    uint64_t oldest, newest;
    if (inspector->def.history == NULL ||
        !quern_history_get_frames(inspector->def.history, &oldest, &newest))
        return;
    quern__inspect_put_count(text, "oldest", oldest);
    quern__inspect_put_count(text, "newest", newest);
}

static void begin_watch(quern__inspect_answer *answer)
{
    quern_inspector *inspector = answer->inspector;
    quern__inspect_text *text = &answer->text;
    const bool has_systems = inspector->def.schedule != NULL;
    quern__inspect_open(text, NULL, '{');
    quern__inspect_put_count(text, "frame", inspector->frame);
    quern__inspect_put_flag(text, "paused", inspector->is_paused);
    quern__inspect_put_count(text, "restore_count", quern_world_restore_count(inspector->def.world));
    quern__inspect_put_count(text, "mark_count", inspector->mark_count);
    write_range(inspector, text);
    write_samples(answer);
    if (has_systems && has_part(answer, "systems")) quern__inspect_write_systems(inspector, text);
    if (has_systems && has_part(answer, "profile")) quern__inspect_write_profile(inspector, text);
    if (has_systems && has_part(answer, "commands")) quern__inspect_write_commands(inspector, text);
    if (answer->client != NULL) answer->client->wants_events = has_part(answer, "events");
    if (has_part(answer, "events")) {
        write_event_types(inspector, text);
        quern__inspect_write_events(inspector, text,
                                    answer->client != NULL ? answer->client->event_count : 0);
        if (answer->client != NULL) answer->client->event_count = inspector->event_count;
    }
    quern__inspect_open(text, "entities", '[');
    answer->at = 0;    /* offset in the list of handles */
    answer->inner = 0; /* number of handles so far */
}

/* Writes the next handles of the argument, separated by commas. An entry that is no handle is left out. */
static bool step_watch(quern__inspect_answer *answer)
{
    const char *list = quern__inspect_argument(&answer->arguments, "entities");
    for (uint32_t i = 0; list != NULL && i < WATCHED_PER_STEP; i++) {
        const char *at = list + answer->at;
        const size_t bytes = strcspn(at, ",");
        char handle[32];
        quern_entity entity;
        if (*at == '\0' || answer->inner == WATCHED_MAX) break;
        answer->at += (uint32_t)bytes + (at[bytes] == ',');
        if (bytes >= sizeof handle) continue;
        memcpy(handle, at, bytes);
        handle[bytes] = '\0';
        if (quern_entity_from_text(answer->inspector->def.world, handle, &entity) != QUERN_OK) continue;
        answer->inner++;
        quern__inspect_write_entry(answer, entity, true);
    }
    if (list != NULL && list[answer->at] != '\0' && answer->inner < WATCHED_MAX) return false;
    quern__inspect_close(&answer->text, ']');
    quern__inspect_close(&answer->text, '}');
    return true;
}

const quern__inspect_route quern__inspect_watch_routes[] = {
    {"watch", false, false, begin_watch, step_watch},
    {NULL, false, false, NULL, NULL},
};
