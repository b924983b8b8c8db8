/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "inspect/inspect_internal.h"

#include <stdlib.h>

/* End points about the schedule: systems, profile, commands, description, trace and forecast. */

static bool has_schedule(quern__inspect_answer *answer)
{
    if (answer->inspector->def.schedule != NULL) return true;
    quern__inspect_fail(answer, 404,
                        "%s: the inspector has no schedule: the program must set it in the definition",
                        answer->route->path);
    return false;
}

void quern__inspect_write_systems(quern_inspector *inspector, quern__inspect_text *text)
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

static void write_worker(quern__inspect_text *text, const char *key, const quern_worker_profile *worker)
{
    quern__inspect_open(text, key, '{');
    quern__inspect_put_count(text, "busy_ns", worker->busy_ns);
    quern__inspect_put_count(text, "stealing_ns", worker->stealing_ns);
    quern__inspect_put_count(text, "idle_ns", worker->idle_ns);
    quern__inspect_put_count(text, "sync_ns", worker->sync_ns);
    quern__inspect_close(text, '}');
}

void quern__inspect_write_profile(quern_inspector *inspector, quern__inspect_text *text)
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
        if (quern_schedule_get_worker_profile(schedule, i, &worker) == QUERN_OK)
            write_worker(text, NULL, &worker);
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

/* What watched frames dropped, the newest first. */
static void write_recent_drops(quern_inspector *inspector, quern__inspect_text *text)
{
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
}

void quern__inspect_write_commands(quern_inspector *inspector, quern__inspect_text *text)
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
    write_recent_drops(inspector, text);
    quern__inspect_close(text, '}');
}

static void begin_systems(quern__inspect_answer *answer)
{
    quern_frame_stats stats;
    if (!has_schedule(answer)) return;
    quern__inspect_text *text = &answer->text;
    quern_schedule_get_frame_stats(answer->inspector->def.schedule, &stats);
    quern__inspect_open(text, NULL, '{');
    quern__inspect_put_count(text, "frame", answer->inspector->frame);
    quern__inspect_put_count(text, "time_ns", stats.time_ns);
    quern__inspect_put_count(text, "sync_ns", stats.sync_ns);
    quern__inspect_put_count(text, "command_count", stats.command_count);
    quern__inspect_put_count(text, "dropped_count", stats.dropped_count);
    quern__inspect_put_count(text, "event_count", stats.event_count);
    quern__inspect_write_systems(answer->inspector, text);
    quern__inspect_write_profile(answer->inspector, text);
    quern__inspect_write_commands(answer->inspector, text);
    quern__inspect_close(text, '}');
}

static void begin_schedule(quern__inspect_answer *answer)
{
    if (!has_schedule(answer)) return;
    const quern_result result = quern_schedule_describe(
        answer->inspector->def.schedule, QUERN_DESCRIBE_JSON, quern__inspect_put_json(&answer->text, NULL));
    if (result != QUERN_OK && result != QUERN_ERROR_IO) quern__inspect_fail_result(answer, result);
}

static void begin_system(quern__inspect_answer *answer)
{
    const char *name;
    bool is_on;
    if (!has_schedule(answer) || !quern__inspect_read_text(answer, "name", &name) ||
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
    if (has_schedule(answer) && quern__inspect_read_flag(answer, "on", &is_on))
        quern__inspect_finish_change(answer,
                                     quern_schedule_set_profiling(answer->inspector->def.schedule, is_on));
}

/* ------------------------------------------------------------------------------------------- trace */

static bool has_trace(quern__inspect_answer *answer)
{
    if (answer->inspector->def.trace != NULL) return true;
    quern__inspect_fail(answer, 404,
                        "%s: the inspector has no trace: the program must set it in the definition",
                        answer->route->path);
    return false;
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
    /* Relaxed, as in quern_inspector_update: only the main thread depends on it. */
    if (inspector->trace_count == 0)
        atomic_fetch_add_explicit(&inspector->attention, 1, memory_order_relaxed);
    inspector->trace_count = (uint32_t)count;
    quern__inspect_finish_change(answer, QUERN_OK);
}

/* Any thread may write a trace at any time, so the server does it without the main thread. */
static void begin_trace(quern__inspect_answer *answer)
{
    if (!has_trace(answer)) return;
    if (quern_trace_is_running(answer->inspector->def.trace)) {
        quern__inspect_fail(answer, 409, "trace: the frames are still being recorded: ask again");
        return;
    }
    const quern_result result =
        quern_trace_write(answer->inspector->def.trace, quern__inspect_put_json(&answer->text, NULL));
    if (result != QUERN_OK && result != QUERN_ERROR_IO) quern__inspect_fail_result(answer, result);
}

/* ------------------------------------------------------------------------------------------ forecast */

static void begin_capture(quern__inspect_answer *answer)
{
    quern_inspector *inspector = answer->inspector;
    quern_result result = QUERN_OK;
    if (!has_schedule(answer)) return;
    if (inspector->capture == NULL)
        result = quern_frame_capture_create(&inspector->def.allocator, &inspector->capture);
    inspector->is_capture_requested = result == QUERN_OK;
    quern__inspect_finish_change(answer, result);
}

static void begin_forecast(quern__inspect_answer *answer)
{
    uint64_t most;
    if (!has_schedule(answer) || !quern__inspect_read_count(answer, "threads", 32, 128, &most)) return;
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

const quern__inspect_route quern__inspect_schedule_routes[] = {
    {"systems", false, false, begin_systems, NULL},
    {"schedule", false, false, begin_schedule, NULL},
    {"system", true, false, begin_system, NULL},
    {"profiling", true, false, begin_profiling, NULL},
    {"record", true, false, begin_record, NULL},
    {"trace", false, true, begin_trace, NULL},
    {"capture", true, false, begin_capture, NULL},
    {"forecast", false, false, begin_forecast, step_forecast},
    {NULL, false, false, NULL, NULL},
};
