/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* The answers of docs/how.md on tools, messages and worlds that follow each other, as one program. */
#include <quern/quern.h>

#include <stdio.h>

typedef struct Place {
    float x, y;
} Place;

typedef struct Weather {
    float wind;
} Weather;

typedef struct Hit {
    int32_t damage;
} Hit;

QUERN_SYSTEM(blow, (Place, place))
{
    QUERN_ROWS(i) place[i].x += QUERN_RESOURCE(context, const Weather)->wind;
}

QUERN_SYSTEM(fall, (Place, place))
{
    (void)context;
    QUERN_ROWS(i) place[i].y -= 1;
}

/* Completes what a user types in a console, such as "/camp/g". */
static void complete(const quern_world *world, const char *typed)
{
    quern_entity found[8];
    const uint32_t count = quern_world_list_named(world, typed, found, 8);
    for (uint32_t i = 0; i < count && i < 8; i++)
        printf("%s? ", quern_entity_name(world, found[i]));
    printf("(%u)\n", count);
}

/* Prints a field of a resource, and the size of an event, by their names. */
static void show_types(const quern_world *world)
{
    quern_type_info info;
    QUERN_MUST(quern_resource_get_text(world, "Weather.wind", quern_sink_file(stdout)));
    QUERN_MUST(quern_event_get_info(world, quern_event_find(world, "Hit"), &info));
    printf(" is the wind; a %s has %u bytes\n", info.name, info.size_bytes);
}

/* Tells apart the reasons for which a handle leads to no entity. */
static const char *judge(const quern_world *world, quern_entity entity)
{
    quern_entity own;
    if (quern_entity_is_null(entity)) return "null";
    if (quern_entity_is_provisional(entity)) return "made by a command that is not applied yet";
    if (quern_entity_is_alive(world, entity)) return "alive";
    if (quern_world_list_entities(world, &own, 1) > 0 &&
        quern_entity_world_tag(entity) != quern_entity_world_tag(own))
        return "of another world";
    return "destroyed";
}

/* Returns whether a look-up found nothing because it was wrong: then it has set a message. */
static bool is_wrong_name(const quern_world *world, const char *path)
{
    quern_error_clear();
    return quern_entity_is_null(quern_entity_find(world, path)) && quern_error_message()[0] != '\0';
}

/* Checks that an optimisation of the schedule still holds, for example in a test of the game. */
static void check_plan(const quern_world *world)
{
    quern_schedule *schedules[4];
    const uint32_t count = quern_world_list_schedules(world, schedules, 4);
    for (uint32_t i = 0; i < count && i < 4; i++) {
        const quern_system first = quern_schedule_find_system(schedules[i], "blow");
        const quern_system second = quern_schedule_find_system(schedules[i], "fall");
        printf("one pass: %s, one waits for the other: %s\n",
               quern_schedule_are_fused(schedules[i], first, second) ? "yes" : "no",
               quern_schedule_has_edge(schedules[i], first, second) ? "yes" : "no");
    }
}

/* Counts cache misses of a system, where the machine allows it. */
static void show_misses(quern_schedule *schedule)
{
    double counts[QUERN_HARDWARE_EVENT_COUNT];
    const quern_hardware_source source = quern_hardware_source_default();
    QUERN_MUST(quern_schedule_set_profiling(schedule, true));
    if (quern_schedule_set_counting(schedule, &source) != QUERN_OK) return; /* no counters here */
    for (int frame = 0; frame < 4; frame++)
        QUERN_MUST(quern_schedule_run(schedule, NULL, 1));
    const quern_system blowing = quern_schedule_find_system(schedule, "blow");
    QUERN_MUST(quern_schedule_get_system_counts(schedule, blowing, counts));
    fprintf(stderr, "L2 misses of a frame: %g\n", counts[QUERN_HARDWARE_L2_MISSES]); /* NAN: not counted */
}

/* Adds the work of another thread, such as a decoder of sound, to the trace of the frames. */
static void trace_sound(quern_world *world)
{
    enum { SOUND_TRACK = 1 }; /* after the tracks of the workers */
    quern_schedule *schedule;
    quern_trace *trace;
    uint32_t decode;
    quern_byte_buffer text = {0};
    QUERN_MUST(quern_trace_create(&(quern_trace_def){.track_count = 2}, &trace));
    QUERN_MUST(quern_trace_set_track_name(trace, SOUND_TRACK, "sound"));
    QUERN_MUST(quern_trace_add_name(trace, "decode", &decode));
    QUERN_MUST(quern_schedule_create(world, &(quern_schedule_def){.trace = trace}, &schedule));
    quern_trace_start(trace);
    const quern_trace_zone zone = quern_trace_zone_begin(trace, SOUND_TRACK, decode); /* on its thread */
    QUERN_MUST(quern_schedule_run(schedule, NULL, 1));
    quern_trace_zone_end(&zone);
    quern_trace_stop(trace);
    QUERN_MUST(quern_trace_write(trace, quern_sink_bytes(&text)));
    printf("%s in the trace\n", text.size_bytes > 0 ? "sound" : "nothing");
    quern_byte_buffer_release(&text);
    quern_schedule_destroy(schedule);
    quern_trace_destroy(trace);
}

/* A server and its client began with worlds of their own; both know the same player by a number of the game. */
static void follow(quern_world *server, quern_entity player, quern_world *client, quern_entity avatar)
{
    quern_history *history;
    quern_delta_applier *applier;
    quern_delta *delta;
    quern_delta_stats stats;
    quern_byte_buffer bytes = {0};
    const uint64_t key = quern_entity_key(server, player); /* the server sends it once */
    QUERN_MUST(quern_delta_applier_create(client, &applier));
    QUERN_MUST(quern_delta_applier_map(applier, key, avatar));

    QUERN_MUST(quern_history_create(server, NULL, &history));
    QUERN_MUST(quern_history_save(history, 0, NULL));
    QUERN_MUST(QUERN_SET(server, player, Place, 3, 4));
    QUERN_MUST(quern_history_save(history, 1, NULL));
    QUERN_MUST(quern_delta_create(history, 0, 1, &delta));
    QUERN_MUST(quern_delta_write(delta, NULL, quern_sink_bytes(&bytes)));
    QUERN_MUST(quern_delta_get_stats(delta, &stats));
    QUERN_MUST(quern_delta_apply(applier, quern_source_bytes(bytes.bytes, bytes.size_bytes)));

    const quern_entity same = quern_delta_applier_find(applier, key); /* from here on, by its key */
    printf("the avatar is at %g; %d bytes were compared\n", (double)QUERN_GET(client, same, Place)->x,
           (int)stats.compared_bytes);
    quern_delta_destroy(delta);
    quern_byte_buffer_release(&bytes);
    quern_history_destroy(history);
    quern_delta_applier_destroy(applier);
}

/* Called with the message of a failed check of the library, in builds with QUERN_CHECKS. */
static void report_crash(void *user_data, const char *message)
{
    fprintf(user_data, "quern: %s\n", message); /* into the crash report, before the game aborts */
}

static quern_world *create_world(quern_entity *player)
{
    quern_world *world;
    quern_resource weather;
    quern_event hit;
    QUERN_MUST(quern_world_create(NULL, &world));
    QUERN_MUST(QUERN_REGISTER(world, Place, x, y));
    QUERN_MUST(QUERN_RESOURCE_REGISTER_FIELDS(world, &weather, Weather, wind));
    QUERN_MUST(QUERN_EVENT_REGISTER_FIELDS(world, &hit, Hit, damage));
    QUERN_MUST(QUERN_CREATE(world, player, QUERN_VALUE(Place, 1, 2)));
    QUERN_MUST(quern_entity_set_name(world, *player, "goblin"));
    return world;
}

int main(void)
{
    quern_schedule *schedule;
    quern_entity player, avatar, made;
    quern_assert_set_handler(report_crash, stderr);
    quern_world *world = create_world(&player), *other = create_world(&avatar);
    const quern_resource weather = quern_resource_find(world, "Weather");
    QUERN_MUST(quern_schedule_create(world, NULL, &schedule));
    QUERN_MUST(QUERN_ADD_SYSTEM(schedule, blow, .resources = {{weather, QUERN_ACCESS_READ}}));
    QUERN_MUST(QUERN_ADD_SYSTEM(schedule, fall));
    QUERN_MUST(quern_schedule_run(schedule, NULL, 1));
    complete(world, "gob");
    show_types(world);
    QUERN_MUST(quern_commands_create(quern_world_commands(world), &made));
    printf("%s; %s; %s\n", judge(world, player), judge(world, avatar), judge(world, made));
    printf("%d %d\n", is_wrong_name(world, "nobody"), is_wrong_name(world, NULL));
    check_plan(world);
    show_misses(schedule);
    trace_sound(world);
    follow(world, player, other, avatar);
    quern_schedule_destroy(schedule);
    quern_world_destroy(world);
    quern_world_destroy(other);
}
