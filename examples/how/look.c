/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* The answers of docs/how.md on the inspector, as one program. */
#include <quern/inspect.h>
#include <quern/quern.h>

#include <stdio.h>

typedef struct Place {
    float x, y;
} Place;

QUERN_SYSTEM(fall, (Place, place))
{
    (void)context;
    QUERN_ROWS(i) place[i].y -= 1;
}

/* Asks the inspector what a page would ask, and writes the answer. */
static void ask(quern_inspector *inspector, const char *method, const char *path, const char *arguments,
                FILE *file)
{
    uint32_t status;
    const quern_inspect_call call = {.method = method, .path = path, .arguments = arguments};
    QUERN_MUST(quern_inspect_request(inspector, &call, quern_sink_file(file), &status));
    if (status != 200) fprintf(stderr, "%s: status %u\n", path, (unsigned)status);
}

/* Frames at a steady pace. The rest of each frame's time goes to the inspector, which answers meanwhile. */
static void run_frames(quern_inspector *inspector, quern_history *history, uint64_t *frame, uint32_t count)
{
    const uint64_t pace_ns = 4000000; /* a game would have 1000000000 / 60 */
    uint64_t due_ns = quern_clock_ns();
    while (count > 0) {
        if (!quern_inspector_update(inspector, frame)) { /* paused from the page */
            due_ns = quern_clock_ns();
            continue;
        }
        QUERN_MUST(quern_history_save(history, *frame, NULL));
        QUERN_MUST(quern_inspector_run(inspector, 1.0 / 60));
        (*frame)++;
        count--;
        due_ns += pace_ns;
        const uint64_t now_ns = quern_clock_ns();
        if (now_ns < due_ns) quern_inspector_wait(inspector, frame, due_ns - now_ns);
    }
}

static void save_answer(quern_inspector *inspector, const char *path, const char *name)
{
    FILE *file = fopen(name, "wb");
    if (file == NULL) return;
    ask(inspector, "GET", path, NULL, file);
    fclose(file);
}

/* Keeps the world and the next 30 frames as a test case, for example when a tester presses a key. */
static void keep_case(quern_inspector *inspector, quern_history *history, uint64_t *frame)
{
    ask(inspector, "POST", "record_case", "frames=30", stdout);
    run_frames(inspector, history, frame, 30);
    save_answer(inspector, "case_archive", "fall.archive");
    save_answer(inspector, "case_replay", "fall.replay");
}

/* Prints the last seconds, one list of figures for each: docs/inspector.md names them. Seconds are summed up while a page is
 * open, or a value or a condition is watched, as here. */
static void print_seconds(quern_inspector *inspector, quern_history *history, uint64_t *frame)
{
    ask(inspector, "POST", "break", "query=Place&where=Place.y<-1000", stdout);
    run_frames(inspector, history, frame, 20);
    ask(inspector, "GET", "statistics", "limit=600", stdout);
}

/* Prints the systems that took longer in the last frame than they may. Profiling measures them. */
static void print_slow(const quern_schedule *schedule, uint64_t budget_ns)
{
    for (uint32_t i = 0; i < quern_schedule_system_count(schedule); i++) {
        quern_system_stats stats;
        QUERN_MUST(
            quern_schedule_get_system_stats(schedule, quern_schedule_system_at(schedule, i), &stats));
        if (stats.time_ns > budget_ns) printf("%s: %.3f ms\n", stats.name, (double)stats.time_ns / 1e6);
    }
}

int main(void)
{
    quern_world *world;
    quern_schedule *schedule;
    quern_history *history;
    quern_inspector *inspector;
    quern_component place;
    uint64_t frame = 0;
    QUERN_MUST(quern_world_create(NULL, &world));
    QUERN_MUST(QUERN_COMPONENT_REGISTER_FIELDS(world, &place, Place, x, y));
    QUERN_MUST(QUERN_CREATE(world, NULL, QUERN_VALUE(Place, 1, 2)));
    QUERN_MUST(quern_schedule_create(world, NULL, &schedule));
    QUERN_MUST(QUERN_ADD_SYSTEM(schedule, fall));
    QUERN_MUST(quern_schedule_set_profiling(schedule, true));
    QUERN_MUST(quern_history_create(world, &(quern_history_def){.schedules = {schedule}, .frame_count = 60},
                                    &history));
    const quern_inspector_def def = {.world = world, .schedule = schedule, .history = history};
    QUERN_MUST(quern_inspector_create(&def, &inspector));
    keep_case(inspector, history, &frame);
    print_seconds(inspector, history, &frame);
    print_slow(schedule, 0);
    quern_inspector_destroy(inspector);
    quern_history_destroy(history);
    quern_schedule_destroy(schedule);
    quern_world_destroy(world);
    return remove("fall.archive") != 0 || remove("fall.replay") != 0;
}
