/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* End points about frames: pauses and steps, kept frames and what differs between two of them, events, systems, traces
 * and forecasts; and the messages of WebSockets, which repeat some of it for each frame. */
#include "inspect/inspect_internal.h"

#include <quern/kit/json.h>

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* ------------------------------------------------------------------------------------------- pauses */

void quern__inspect_set_paused(quern_inspector *inspector, bool is_paused)
{
    if (inspector->is_paused == is_paused) return;
    inspector->is_paused = is_paused;
    inspector->step_count = 0;
    quern__inspect_count_reason(&inspector->exchange, is_paused);
}

static void begin_pause(quern__inspect_answer *answer)
{
    if (!answer->inspector->is_paused) quern__inspect_note(answer->inspector, "pause");
    quern__inspect_set_paused(answer->inspector, true);
    quern__inspect_finish_change(answer, QUERN_OK);
}

/* Answers a request after which the program runs a frame. If it went back before, it saves that frame over kept ones, so
 * the later ones end: the answer warns of that, and the time line gets a mark. */
static void finish_going_on(quern__inspect_answer *answer)
{
    quern_inspector *inspector = answer->inspector;
    const quern_history *history = inspector->def.history;
    char warning[160];
    uint64_t newest;
    if (history == NULL || !quern_history_get_frames(history, NULL, &newest) ||
        newest <= inspector->frame) {
        quern__inspect_finish_change(answer, QUERN_OK);
        return;
    }
    snprintf(warning, sizeof warning,
             "%s: the frames %" PRIu64 " to %" PRIu64
             " are dropped, since the program goes on from frame %" PRIu64,
             answer->route->path, inspector->frame + 1, newest, inspector->frame);
    quern__inspect_note(inspector, "goes on from here, drops frames up to %" PRIu64, newest);
    quern__inspect_open(&answer->text, NULL, '{');
    quern__inspect_put_flag(&answer->text, "done", true);
    quern__inspect_put_text(&answer->text, "warning", warning);
    quern__inspect_close(&answer->text, '}');
}

static void begin_resume(quern__inspect_answer *answer)
{
    quern__inspect_set_paused(answer->inspector, false);
    finish_going_on(answer);
}

static void begin_step(quern__inspect_answer *answer)
{
    uint64_t count;
    if (!quern__inspect_read_count(answer, "count", 1, 100000, &count)) return;
    quern__inspect_set_paused(answer->inspector, true);
    answer->inspector->step_count = (uint32_t)count;
    if (count > 0)
        finish_going_on(answer);
    else
        quern__inspect_finish_change(answer, QUERN_OK);
}

/* ------------------------------------------------------------------------------------------- history */

static bool has_history(quern__inspect_answer *answer)
{
    return quern__inspect_has(answer, answer->inspector->def.history, "history");
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

/* Keeps the present state as frame inspector->frame, so that a restore can be taken back, and it can be compared. An
 * earlier frame is not saved again: that would drop the frames after it. */
static quern_result save_present(quern_inspector *inspector)
{
    uint64_t newest;
    const bool has_frames = quern_history_get_frames(inspector->def.history, NULL, &newest);
    if (inspector->is_saved || (has_frames && newest > inspector->frame)) return QUERN_OK;
    const quern_result result =
        quern_history_save(inspector->def.history, inspector->frame, inspector->def.jobs);
    inspector->is_saved = result == QUERN_OK;
    /* The frame has the edits now, so undo has to go further back. */
    if (inspector->edit_count > 0 && inspector->frame == inspector->edit_frame)
        inspector->is_edit_saved = false;
    return result;
}

static quern_result go_to(quern_inspector *inspector, uint64_t frame)
{
    const quern_result result = quern_history_restore(inspector->def.history, frame, inspector->def.jobs);
    if (result != QUERN_OK) return result;
    quern__inspect_case_spoil(inspector, "restore");
    inspector->frame = frame;
    quern__inspect_set_moved(inspector, true);
    inspector->is_saved = true;
    inspector->has_run = false;
    inspector->edit_count = 0;
    quern__inspect_set_paused(inspector, true);
    inspector->step_count = 0;
    quern__inspect_judge_probes(inspector);
    return QUERN_OK;
}

static void begin_restore(quern__inspect_answer *answer)
{
    quern_inspector *inspector = answer->inspector;
    uint64_t frame;
    const char *text;
    if (!has_history(answer) || !quern__inspect_read_text(answer, "frame", &text) ||
        !quern__inspect_read_count(answer, "frame", 0, UINT64_MAX, &frame))
        return;
    quern_result result = save_present(inspector);
    if (result == QUERN_OK) result = go_to(inspector, frame);
    quern__inspect_finish_change(answer, result);
}

/* --------------------------------------------------------------------------------------------- edits */

/* A running program keeps its own frames. The state before the frame of the edit is then the newest one without it. */
void quern__inspect_begin_edit(quern_inspector *inspector)
{
    if (inspector->edit_count > 0 && inspector->edit_frame == inspector->frame) return;
    inspector->edit_count = 0;
    inspector->edit_frame = inspector->frame;
    inspector->is_edit_saved = inspector->def.history != NULL && inspector->is_paused &&
                               inspector->step_count == 0 && save_present(inspector) == QUERN_OK;
}

void quern__inspect_end_edit(quern_inspector *inspector, const char *name)
{
    quern__inspect_case_spoil(inspector, name);
    inspector->edit_count++;
    inspector->is_saved = false;
}

/* Finds the kept frame to which undo goes back: a program need not keep each frame. Returns false if there is no edit, or
 * no frame before it is kept. */
static bool find_undo_frame(const quern_inspector *inspector, uint64_t *out_frame, bool *out_has_run)
{
    *out_has_run = inspector->frame != inspector->edit_frame || !inspector->is_edit_saved;
    if (inspector->edit_count == 0 || inspector->def.history == NULL) return false;
    uint64_t frames[4096]; /* ascending */
    uint32_t count = quern_history_list_frames(inspector->def.history, frames, 4096);
    if (count > 4096) count = 4096;
    while (count > 0 && frames[count - 1] + *out_has_run > inspector->edit_frame)
        count--;
    if (count > 0) *out_frame = frames[count - 1];
    return count > 0;
}

static void begin_undo(quern__inspect_answer *answer)
{
    quern_inspector *inspector = answer->inspector;
    char warning[160];
    uint64_t frame;
    bool has_run;
    const uint32_t edit_count = inspector->edit_count;
    if (!has_history(answer)) return;
    if (!find_undo_frame(inspector, &frame, &has_run)) {
        quern__inspect_fail(
            answer, 409,
            "undo: there is no edit to take back, or the frame before it is not kept any more");
        return;
    }
    const quern_result result = go_to(inspector, frame);
    if (result != QUERN_OK) {
        quern__inspect_fail_result(answer, result);
        return;
    }
    snprintf(warning, sizeof warning,
             "undo: the program is back before frame %" PRIu64 ", the last one without the edit", frame);
    quern__inspect_open(&answer->text, NULL, '{');
    quern__inspect_put_flag(&answer->text, "done", true);
    quern__inspect_put_count(&answer->text, "undone", edit_count);
    if (has_run) quern__inspect_put_text(&answer->text, "warning", warning);
    quern__inspect_close(&answer->text, '}');
}

/* -------------------------------------------------------------------------------------------- delta */

enum { DELTA_KIND_COUNT = QUERN_DELTA_UNRELATED + 1, DELTA_ENTRIES_PER_STEP = 16 };

static const char *const kinds[DELTA_KIND_COUNT] = {
    [QUERN_DELTA_CREATED] = "created",    [QUERN_DELTA_ADDED] = "added",
    [QUERN_DELTA_CHANGED] = "changed",    [QUERN_DELTA_REMOVED] = "removed",
    [QUERN_DELTA_ENABLED] = "enabled",    [QUERN_DELTA_DISABLED] = "disabled",
    [QUERN_DELTA_NAMED] = "named",        [QUERN_DELTA_DESTROYED] = "destroyed",
    [QUERN_DELTA_RESOURCE] = "resource",  [QUERN_DELTA_RELATED] = "related",
    [QUERN_DELTA_UNRELATED] = "unrelated"};

void quern__inspect_delta_destroy(quern__inspect_answer *answer)
{
    quern__inspect_answer **link = &answer->inspector->deltas;
    if (answer->delta == NULL) return;
    while (*link != answer)
        link = &(*link)->next_delta;
    *link = answer->next_delta;
    quern_delta_destroy(answer->delta);
    answer->delta = NULL;
}

/* A comparison does not keep the program from redefining a type. */
void quern__inspect_release_deltas(quern_world_user *user)
{
    quern_inspector *inspector = (quern_inspector *)((char *)user - offsetof(quern_inspector, user));
    while (inspector->deltas != NULL)
        quern__inspect_delta_destroy(inspector->deltas);
}

static void begin_delta(quern__inspect_answer *answer)
{
    quern_inspector *inspector = answer->inspector;
    uint64_t from, to, limit;
    uint32_t count;
    if (!has_history(answer) || !quern__inspect_read_count(answer, "from", 0, UINT64_MAX, &from) ||
        !quern__inspect_read_count(answer, "to", inspector->frame, UINT64_MAX, &to) ||
        !quern__inspect_read_count(answer, "limit", 100, 5000, &limit) ||
        !quern__inspect_reserve_page(answer, 1))
        return;
    answer->entities[0] = quern_entity_null();
    const char *text = quern__inspect_argument(&answer->arguments, "entity");
    if (text != NULL &&
        quern_entity_from_text(inspector->def.world, text, &answer->entities[0]) != QUERN_OK) {
        quern__inspect_fail_result(answer, QUERN_ERROR_INVALID_ARGUMENT);
        return;
    }
    quern_result result =
        from == inspector->frame || to == inspector->frame ? save_present(inspector) : QUERN_OK;
    if (result == QUERN_OK) result = quern_delta_create(inspector->def.history, from, to, &answer->delta);
    if (result != QUERN_OK) {
        quern__inspect_fail_result(answer, result);
        return;
    }
    answer->next_delta = inspector->deltas;
    inspector->deltas = answer;
    answer->left = (uint32_t)limit;
    const quern_delta_batch *batches = quern_delta_batches(answer->delta, &count);
    quern__inspect_open(&answer->text, NULL, '{');
    quern__inspect_put_count(&answer->text, "from", from);
    quern__inspect_put_count(&answer->text, "to", to);
    uint64_t counts[DELTA_KIND_COUNT] = {0};
    for (uint32_t i = 0; i < count; i++)
        counts[batches[i].kind] += batches[i].kind == QUERN_DELTA_RESOURCE ? 1 : batches[i].count;
    quern__inspect_open(&answer->text, "counts", '{');
    for (uint32_t i = 1; i < DELTA_KIND_COUNT; i++)
        quern__inspect_put_count(&answer->text, kinds[i], counts[i]);
    quern__inspect_close(&answer->text, '}');
    quern__inspect_open(&answer->text, "entries", '[');
}

static const char *value_at(const void *values, const quern_delta_batch *batch, uint32_t i)
{
    return values != NULL ? (const char *)values + (size_t)i * batch->value_bytes : NULL;
}

static void write_entry(quern__inspect_answer *answer, const quern_delta_batch *batch, uint32_t i)
{
    const quern_world *world = answer->inspector->def.world;
    quern__inspect_text *text = &answer->text;
    quern_type_info type;
    quern_result result = QUERN_ERROR_UNAVAILABLE;
    if (batch->kind == QUERN_DELTA_RESOURCE)
        result = quern_resource_get_info(world, batch->resource, &type);
    else if (!quern_component_is_null(batch->component))
        result = quern_component_get_info(world, batch->component, &type);
    quern__inspect_open(text, NULL, '{');
    quern__inspect_put_text(text, "kind", kinds[batch->kind]);
    if (batch->count > 0) quern__inspect_put_entity(text, "entity", batch->entities[i]);
    if (result == QUERN_OK)
        quern__inspect_put_text(text, batch->kind == QUERN_DELTA_RESOURCE ? "resource" : "component",
                                type.name);
    if (batch->kind == QUERN_DELTA_NAMED) {
        quern__inspect_put_text(text, "old", batch->old_name);
        quern__inspect_put_text(text, "new", batch->name);
    } else if (batch->kind == QUERN_DELTA_RELATED) {
        quern__inspect_put_entity(text, "new", ((const quern_entity *)batch->values)[i]);
    } else if (batch->kind == QUERN_DELTA_UNRELATED) {
        quern__inspect_put_entity(text, "old", ((const quern_entity *)batch->old_values)[i]);
    } else if (result == QUERN_OK) {
        if (batch->old_values != NULL)
            quern__inspect_put_value(text, "old", world, &type, value_at(batch->old_values, batch, i));
        if (batch->values != NULL)
            quern__inspect_put_value(text, "new", world, &type, value_at(batch->values, batch, i));
    }
    quern__inspect_close(text, '}');
}

/* Writes up to DELTA_ENTRIES_PER_STEP entries; answer->at is the batch, answer->inner the entity in it. Searching the
 * batches for one entity is part of one step: it compares some hundred million handles per second. */
static bool step_delta(quern__inspect_answer *answer)
{
    uint32_t count, room = DELTA_ENTRIES_PER_STEP;
    if (answer->delta == NULL) {
        quern__inspect_fail(
            answer, 409, "delta: a type of the world got another layout meanwhile: compare newer frames");
        return true;
    }
    const quern_delta_batch *batches = quern_delta_batches(answer->delta, &count);
    const quern_entity only = answer->entities[0];
    while (answer->at < count && answer->left > 0 && room > 0) {
        const quern_delta_batch *batch = &batches[answer->at];
        const uint32_t entries = batch->count > 0 ? batch->count : 1, i = answer->inner++;
        if (i == entries) {
            answer->at++;
            answer->inner = 0;
            continue;
        }
        if (!quern_entity_is_null(only) &&
            (batch->count == 0 || !quern_entity_equal(batch->entities[i], only)))
            continue;
        write_entry(answer, batch, i);
        answer->left--;
        room--;
    }
    if (answer->at < count && answer->left > 0) return false;
    quern__inspect_close(&answer->text, ']');
    quern__inspect_close(&answer->text, '}');
    return true;
}

/* -------------------------------------------------------------------------------------------- events */

static void write_events(quern_inspector *inspector, quern__inspect_text *text, uint64_t after)
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
    for (uint32_t i = 0; i < quern_type_count(world, QUERN_TYPE_EVENT); i++) {
        quern_type_info type;
        quern_event_stats stats;
        if (quern_type_at(world, QUERN_TYPE_EVENT, i, &type) != QUERN_OK ||
            quern_event_get_stats(world, type.event, &stats) != QUERN_OK)
            continue;
        quern__inspect_open(text, NULL, '{');
        quern__inspect_put_text(text, "name", type.name);
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
    write_events(answer->inspector, &answer->text, 0);
    quern__inspect_close(&answer->text, '}');
}

/* ----------------------------------------------------------------------------------------- schedule */

static void write_systems(quern_inspector *inspector, quern__inspect_text *text)
{
    const quern_schedule *schedule = inspector->def.schedule;
    quern__inspect_open(text, "systems", '[');
    for (uint32_t i = 0; i < quern_schedule_system_count(schedule); i++) {
        quern_system_stats stats;
        const quern_system system = quern_schedule_system_at(schedule, i);
        if (quern_schedule_get_system_stats(schedule, system, &stats) != QUERN_OK) continue;
        quern__inspect_open(text, NULL, '{');
        quern__inspect_put_text(text, "name", stats.name);
        quern__inspect_put_count(text, "phase", stats.phase);
        quern__inspect_put_flag(text, "enabled", quern_schedule_is_system_enabled(schedule, system));
        quern__inspect_put_count(text, "time_ns", stats.time_ns);
        quern__inspect_put_count(text, "view_count", stats.view_count);
        quern__inspect_put_count(text, "entity_count", stats.entity_count);
        quern__inspect_put_count(text, "command_count", stats.command_count);
        quern__inspect_close(text, '}');
    }
    quern__inspect_close(text, ']');
}

static void write_profile(quern_inspector *inspector, quern__inspect_text *text)
{
    const quern_schedule *schedule = inspector->def.schedule;
    quern_frame_profile profile;
    if (quern_schedule_get_frame_profile(schedule, &profile) != QUERN_OK || profile.thread_count == 0) {
        quern__inspect_put_text(text, "profile", NULL);
        return;
    }
    quern__inspect_open(text, "profile", '{');
    quern__inspect_put_count(text, "thread_count", profile.thread_count);
    quern__inspect_put_count(text, "time_ns", profile.time_ns);
    quern__inspect_put_count(text, "critical_path_ns", profile.critical_path_ns);
    quern__inspect_put_count(text, "sync_ns", profile.sync_ns);
    quern__inspect_put_count(text, "gather_ns", profile.gather_ns);
    quern__inspect_put_count(text, "merge_ns", profile.merge_ns);
    quern__inspect_put_count(text, "resolve_ns", profile.resolve_ns);
    quern__inspect_put_count(text, "apply_ns", profile.apply_ns);
    quern__inspect_put_real(text, "efficiency", profile.efficiency);
    quern__inspect_open(text, "workers", '[');
    for (uint32_t i = 0; i < profile.thread_count; i++) {
        quern_worker_profile worker;
        if (quern_schedule_get_worker_profile(schedule, i, &worker) != QUERN_OK) continue;
        quern__inspect_open(text, NULL, '{');
        quern__inspect_put_count(text, "busy_ns", worker.busy_ns);
        quern__inspect_put_count(text, "stealing_ns", worker.stealing_ns);
        quern__inspect_put_count(text, "idle_ns", worker.idle_ns);
        quern__inspect_put_count(text, "sync_ns", worker.sync_ns);
        quern__inspect_close(text, '}');
    }
    quern__inspect_close(text, ']');
    quern__inspect_close(text, '}');
}

static void write_drop(quern__inspect_text *text, const quern_dropped_command *drop)
{
    quern__inspect_put_text(text, "system", drop->system_name);
    quern__inspect_put_text(text, "reason", quern_drop_reason_string(drop->reason));
    quern__inspect_put_count(text, "count", drop->count);
    quern__inspect_put_entity(text, "first", drop->first);
}

static void write_commands(quern_inspector *inspector, quern__inspect_text *text)
{
    const quern_schedule *schedule = inspector->def.schedule;
    quern__inspect_open(text, "commands", '{');
    quern__inspect_put_count(text, "kept_count", quern_schedule_kept_command_count(schedule));
    quern__inspect_open(text, "dropped", '[');
    for (uint32_t i = 0; i < quern_schedule_dropped_command_count(schedule); i++) {
        quern_dropped_command drop;
        if (quern_schedule_get_dropped_command(schedule, i, &drop) != QUERN_OK) continue;
        quern__inspect_open(text, NULL, '{');
        write_drop(text, &drop);
        quern__inspect_close(text, '}');
    }
    quern__inspect_close(text, ']');
    /* What watched frames dropped, the newest first. */
    quern__inspect_open(text, "recent", '[');
    for (uint64_t i = inspector->drop_count; i > 0 && i + QUERN__INSPECT_DROPS > inspector->drop_count;
         i--) {
        const quern__inspect_drop *drop = &inspector->drops[(i - 1) % QUERN__INSPECT_DROPS];
        quern__inspect_open(text, NULL, '{');
        quern__inspect_put_count(text, "frame", drop->frame);
        write_drop(text, &drop->what);
        quern__inspect_close(text, '}');
    }
    quern__inspect_close(text, ']');
    quern__inspect_close(text, '}');
}

static void begin_systems(quern__inspect_answer *answer)
{
    quern_frame_stats stats;
    if (!quern__inspect_has_schedule(answer)) return;
    quern__inspect_text *text = &answer->text;
    quern_schedule_get_frame_stats(answer->inspector->def.schedule, &stats);
    quern__inspect_open(text, NULL, '{');
    quern__inspect_put_count(text, "frame", answer->inspector->frame);
    quern__inspect_put_count(text, "time_ns", stats.time_ns);
    quern__inspect_put_count(text, "sync_ns", stats.sync_ns);
    quern__inspect_put_count(text, "command_count", stats.command_count);
    quern__inspect_put_count(text, "dropped_count", stats.dropped_count);
    quern__inspect_put_count(text, "event_count", stats.event_count);
    write_systems(answer->inspector, text);
    write_profile(answer->inspector, text);
    write_commands(answer->inspector, text);
    quern__inspect_close(text, '}');
}

/* The passes are one step, then the edges of each system are another one. The schedule may be compiled anew between two
 * steps. Then the edges are those of their step, by name, and a client leaves out names that it does not find. */
static void begin_schedule(quern__inspect_answer *answer)
{
    if (!quern__inspect_has_schedule(answer)) return;
    quern__inspect_open(&answer->text, NULL, '{');
    const quern_result result =
        quern_schedule_describe(answer->inspector->def.schedule, QUERN_DESCRIBE_PASSES,
                                quern__inspect_put_json(&answer->text, "schedule"));
    if (result != QUERN_OK && result != QUERN_ERROR_IO) {
        quern__inspect_fail_result(answer, result);
        return;
    }
    quern__inspect_open(&answer->text, "edges", '[');
}

static bool step_schedule(quern__inspect_answer *answer)
{
    quern__inspect_text *text = &answer->text;
    quern_schedule *schedule = answer->inspector->def.schedule;
    if (answer->at >= quern_schedule_system_count(schedule)) {
        quern__inspect_close(text, ']');
        quern__inspect_close(text, '}');
        return true;
    }
    const quern_system system = quern_schedule_system_at(schedule, answer->at++);
    const quern_result result =
        quern_schedule_describe_edges(schedule, system, true, quern__inspect_put_json(text, NULL));
    if (result == QUERN_OK || result == QUERN_ERROR_IO) return false;
    quern__inspect_fail_result(answer, result);
    return true;
}

/* All edges to one system, also those that follow from others. */
static void begin_edges(quern__inspect_answer *answer)
{
    const char *name;
    quern_schedule *schedule = answer->inspector->def.schedule;
    if (!quern__inspect_has_schedule(answer) || !quern__inspect_read_text(answer, "system", &name)) return;
    const quern_system system = quern_schedule_find_system(schedule, name);
    if (system.bits == 0) {
        quern__inspect_fail(answer, 404, "edges: the schedule has no system '%.80s'", name);
        return;
    }
    quern__inspect_open(&answer->text, NULL, '{');
    quern__inspect_put_text(&answer->text, "system", name);
    const quern_result result = quern_schedule_describe_edges(
        schedule, system, false, quern__inspect_put_json(&answer->text, "edges"));
    quern__inspect_close(&answer->text, '}');
    if (result != QUERN_OK && result != QUERN_ERROR_IO) quern__inspect_fail_result(answer, result);
}

static void begin_system(quern__inspect_answer *answer)
{
    const char *name;
    bool is_on;
    if (!quern__inspect_has_schedule(answer) || !quern__inspect_read_text(answer, "name", &name) ||
        !quern__inspect_read_flag(answer, "on", &is_on))
        return;
    quern_schedule *schedule = answer->inspector->def.schedule;
    const quern_system system = quern_schedule_find_system(schedule, name);
    if (system.bits == 0) {
        quern__inspect_fail(answer, 404, "system: the schedule has no system '%.80s'", name);
        return;
    }
    const quern_result result = quern_schedule_set_system_enabled(schedule, system, is_on);
    if (result == QUERN_OK)
        quern__inspect_note(answer->inspector, "system %.60s %s", name, is_on ? "on" : "off");
    quern__inspect_finish_change(answer, result);
}

static void begin_profiling(quern__inspect_answer *answer)
{
    bool is_on;
    if (quern__inspect_has_schedule(answer) && quern__inspect_read_flag(answer, "on", &is_on))
        quern__inspect_finish_change(answer,
                                     quern_schedule_set_profiling(answer->inspector->def.schedule, is_on));
}

/* ------------------------------------------------------------------------------------------- trace */

static bool has_trace(quern__inspect_answer *answer)
{
    return quern__inspect_has(answer, answer->inspector->def.trace, "trace");
}

static void begin_record(quern__inspect_answer *answer)
{
    uint64_t count;
    quern_inspector *inspector = answer->inspector;
    if (!has_trace(answer) || !quern__inspect_read_count(answer, "frames", 3, 60, &count)) return;
    if (count == 0) {
        quern__inspect_fail(answer, 400, "record: 'frames' is 0: it must be 1 to 60");
        return;
    }
    quern_trace_start(inspector->def.trace);
    if (inspector->trace_count == 0) quern__inspect_count_reason(&inspector->exchange, true);
    inspector->trace_count = (uint32_t)count;
    quern__inspect_finish_change(answer, QUERN_OK);
}

/* A trace may be long, and any thread may write it at any time. So the thread of the server does it, if there is one. */
static void begin_trace(quern__inspect_answer *answer)
{
    if (!has_trace(answer)) return;
    if (quern_trace_is_running(answer->inspector->def.trace)) {
        quern__inspect_fail(answer, 409, "trace: the frames are still being recorded: ask again");
        return;
    }
    if (answer->request != NULL) {
        answer->request->is_trace = true;
        return;
    }
    const quern_result result =
        quern_trace_write(answer->inspector->def.trace, quern__inspect_put_json(&answer->text, NULL));
    if (result != QUERN_OK && result != QUERN_ERROR_IO) quern__inspect_fail_result(answer, result);
}

bool quern__inspect_write_trace(void *trace, quern_byte_buffer *bytes)
{
    quern__inspect_text text = {.bytes = *bytes};
    const quern_result result = quern_trace_write(trace, quern__inspect_put_json(&text, NULL));
    *bytes = text.bytes;
    return result == QUERN_OK;
}

/* ------------------------------------------------------------------------------------------ forecast */

static void begin_capture(quern__inspect_answer *answer)
{
    quern_inspector *inspector = answer->inspector;
    quern_result result = QUERN_OK;
    if (!quern__inspect_has_schedule(answer)) return;
    if (inspector->capture == NULL)
        result = quern_frame_capture_create(&inspector->def.allocator, &inspector->capture);
    inspector->is_capture_requested = result == QUERN_OK;
    inspector->has_capture = false; /* so that a forecast waits for the new one */
    quern__inspect_finish_change(answer, result);
}

static void begin_forecast(quern__inspect_answer *answer)
{
    uint64_t most;
    if (!quern__inspect_has_schedule(answer) ||
        !quern__inspect_read_count(answer, "threads", 32, 128, &most))
        return;
    if (!answer->inspector->has_capture) {
        quern__inspect_fail(answer, 404,
                            "forecast: no frame was captured: send capture, and let the program run a "
                            "frame by quern_inspector_run");
        return;
    }
    answer->left = (uint32_t)most;
    quern__inspect_open(&answer->text, NULL, '{');
    quern__inspect_put_count(&answer->text, "frame", answer->inspector->captured_frame);
    quern__inspect_open(&answer->text, "forecasts", '[');
}

/* One number of threads, which is a simulation of the frame. */
static bool step_forecast(quern__inspect_answer *answer)
{
    quern_forecast forecast;
    quern__inspect_text *text = &answer->text;
    const uint32_t thread_count = answer->at + 1;
    if (thread_count > answer->left) {
        quern__inspect_close(text, ']');
        quern__inspect_close(text, '}');
        return true;
    }
    const quern_result result =
        quern_frame_capture_forecast(answer->inspector->capture, NULL, thread_count, &forecast);
    if (result != QUERN_OK) {
        quern__inspect_fail_result(answer, result);
        return true;
    }
    quern__inspect_open(text, NULL, '{');
    quern__inspect_put_count(text, "threads", thread_count);
    quern__inspect_put_real(text, "frame_ns", forecast.frame_ns);
    quern__inspect_put_real(text, "speedup", forecast.speedup);
    quern__inspect_put_real(text, "critical_path_ns", forecast.critical_path_ns);
    quern__inspect_put_text(text, "bottleneck", quern_forecast_bottleneck_string(forecast.bottleneck));
    quern__inspect_put_real(text, "without_limit_ns", forecast.without_limit_ns);
    quern__inspect_put_text(text, "system", forecast.bottleneck_system);
    quern__inspect_close(text, '}');
    /* Above eight threads, every fourth number is enough. */
    answer->at += thread_count < 8 ? 1 : 4;
    return false;
}

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

/* Frame, duration, duration of sync points, commands, dropped commands, created and destroyed entities, events. Returns the
 * number of the first sample that was written. */
static uint64_t write_samples(quern__inspect_answer *answer)
{
    quern_inspector *inspector = answer->inspector;
    quern__inspect_text *text = &answer->text;
    const uint64_t count = inspector->sample_count;
    uint64_t i = answer->client != NULL ? answer->client->sample_count : 0;
    if (i + QUERN__INSPECT_SAMPLES < count) i = count - QUERN__INSPECT_SAMPLES;
    const uint64_t first = i;
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
    return first;
}

/* ----------------------------------------------------------------------------------------- statistics */

enum { SECONDS_PER_STEP = 64 };

/* The last seconds in which frames ran while something watched, the oldest first. */
static void begin_statistics(quern__inspect_answer *answer)
{
    const uint64_t count = answer->inspector->second_count;
    uint64_t most;
    if (!quern__inspect_has_schedule(answer) ||
        !quern__inspect_read_count(answer, "limit", QUERN__INSPECT_SECONDS, QUERN__INSPECT_SECONDS, &most))
        return;
    answer->inner = (uint32_t)count; /* end */
    answer->at = (uint32_t)(count < most ? 0 : count - most);
    quern__inspect_open(&answer->text, NULL, '{');
    quern__inspect_put_count(&answer->text, "frame", answer->inspector->frame);
    quern__inspect_open(&answer->text, "seconds", '[');
}

/* Second, first frame, number of frames, mean and longest duration, the frame with the longest one, mean duration of sync
 * points, commands, dropped commands, created and destroyed entities, events. */
static bool step_statistics(quern__inspect_answer *answer)
{
    const quern_inspector *inspector = answer->inspector;
    quern__inspect_text *text = &answer->text;
    for (uint32_t i = 0; i < SECONDS_PER_STEP && answer->at < answer->inner; i++) {
        const quern__inspect_second *second = &inspector->seconds[answer->at++ % QUERN__INSPECT_SECONDS];
        const uint64_t figures[] = {second->second,
                                    second->first_frame,
                                    second->frame_count,
                                    second->time_ns / second->frame_count,
                                    second->worst_ns,
                                    second->worst_frame,
                                    second->sync_ns / second->frame_count,
                                    second->command_count,
                                    second->dropped_count,
                                    second->created_count,
                                    second->destroyed_count,
                                    second->event_count};
        quern__inspect_open(text, NULL, '[');
        for (size_t k = 0; k < sizeof figures / sizeof figures[0]; k++)
            quern__inspect_put_count(text, NULL, figures[k]);
        quern__inspect_close(text, ']');
    }
    if (answer->at < answer->inner) return false;
    quern__inspect_close(text, ']');
    quern__inspect_close(text, '}');
    return true;
}

static void begin_watch(quern__inspect_answer *answer)
{
    quern_inspector *inspector = answer->inspector;
    quern__inspect_text *text = &answer->text;
    const bool has_systems = inspector->def.schedule != NULL;
    uint64_t oldest, newest, undo_frame;
    bool has_run;
    quern__inspect_open(text, NULL, '{');
    quern__inspect_put_count(text, "frame", inspector->frame);
    quern__inspect_put_flag(text, "paused", inspector->is_paused);
    quern__inspect_put_count(text, "restore_count", quern_world_restore_count(inspector->def.world));
    quern__inspect_put_count(text, "mark_count", inspector->mark_count);
    if (inspector->def.history != NULL &&
        quern_history_get_frames(inspector->def.history, &oldest, &newest)) {
        quern__inspect_put_count(text, "oldest", oldest);
        quern__inspect_put_count(text, "newest", newest);
    }
    quern__inspect_put_count(text, "edit_count",
                             find_undo_frame(inspector, &undo_frame, &has_run) ? inspector->edit_count : 0);
    const uint64_t first_sample = write_samples(answer);
    if (has_part(answer, "probes")) quern__inspect_write_probes(inspector, text, first_sample);
    if (has_systems && has_part(answer, "systems")) write_systems(inspector, text);
    if (has_systems && has_part(answer, "profile")) write_profile(inspector, text);
    if (has_systems && has_part(answer, "commands")) write_commands(inspector, text);
    if (answer->client != NULL) answer->client->wants_events = has_part(answer, "events");
    if (has_part(answer, "events")) {
        write_event_types(inspector, text);
        write_events(inspector, text, answer->client != NULL ? answer->client->event_count : 0);
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

/* ------------------------------------------------------------------------------------------- routes */

const quern__inspect_route quern__inspect_frame_routes[] = {
    {"pause", true, false, begin_pause, NULL, ""},
    {"resume", true, false, begin_resume, NULL, ""},
    {"step", true, false, begin_step, NULL, "count"},
    {"restore", true, false, begin_restore, NULL, "frame"},
    {"undo", true, false, begin_undo, NULL, ""},
    {"history", false, false, begin_history, NULL, ""},
    {"events", false, false, begin_events, NULL, ""},
    {"watch", false, false, begin_watch, step_watch, "rate parts entities"},
    {"statistics", false, false, begin_statistics, step_statistics, "limit"},
    {"systems", false, false, begin_systems, NULL, ""},
    {"schedule", false, false, begin_schedule, step_schedule, ""},
    {"edges", false, false, begin_edges, NULL, "system"},
    {"system", true, true, begin_system, NULL, "name on"},
    {"profiling", true, false, begin_profiling, NULL, "on"},
    {"record", true, false, begin_record, NULL, "frames"},
    {"trace", false, false, begin_trace, NULL, ""},
    {"capture", true, false, begin_capture, NULL, ""},
    {"forecast", false, false, begin_forecast, step_forecast, "threads"},
    {"delta", false, false, begin_delta, step_delta, "from to limit entity"},
    {NULL, false, false, NULL, NULL, NULL},
};
