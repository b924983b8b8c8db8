/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Events: values that some systems emit and others read. docs/events.md explains it. */
#include <quern/quern.h>

#include <stdio.h>
#include <stdlib.h>

typedef struct Gun {
    quern_entity target;
    int32_t damage;
} Gun;

typedef struct Health {
    int32_t points;
} Health;

typedef struct Hit {
    quern_entity target;
    int32_t damage;
} Hit;

typedef struct Death {
    quern_entity entity;
} Death;

typedef struct Types {
    quern_component gun, health;
    quern_event hit, death;
} Types;

static void check(quern_result result)
{
    if (result == QUERN_OK) return;
    fprintf(stderr, "%s: %s\n", quern_result_string(result), quern_error_message());
    exit(EXIT_FAILURE);
}

/* Each gun hits its target. */
static void shoot(quern_context *context, const quern_view *view)
{
    const Types *types = quern_context_user_data(context);
    const Gun *guns = QUERN_COLUMN(view, 0, const Gun);
    quern_emitter *hits = quern_context_emitter(context, types->hit);
    const uint32_t count = view->count;
    for (uint32_t i = 0; i < count; i++)
        quern_emit(hits, &(Hit){.target = guns[i].target, .damage = guns[i].damage});
}

/* The views of this system are blocks of hits instead of rows of entities. It writes through lookups, so
 * it is serial. */
static void bleed(quern_context *context, const quern_view *view)
{
    const Types *types = quern_context_user_data(context);
    const Hit *hits = QUERN_EVENTS(view, Hit);
    quern_emitter *deaths = quern_context_emitter(context, types->death);
    const uint32_t count = view->count;
    for (uint32_t i = 0; i < count; i++) {
        Health *health = quern_context_lookup_write(context, hits[i].target, types->health);
        if (health == NULL || health->points <= 0) continue;
        health->points -= hits[i].damage;
        if (health->points <= 0) quern_emit(deaths, &(Death){.entity = hits[i].target});
    }
}

/* Has neither terms nor items, so it is called once per frame. Reads all events in that call. */
static void bury(quern_context *context, const quern_view *view)
{
    const Types *types = quern_context_user_data(context);
    (void)view;
    QUERN_EACH_EVENT(context, types->death, death, Death)
    {
        check(quern_commands_destroy(quern_context_commands(context), death->entity));
    }
}

/* Reads events between frames, as code for sounds, a display or statistics does. */
static uint32_t count_hits(quern_event_reader *reader)
{
    quern_event_block block;
    uint32_t count = 0;
    while (quern_event_reader_next(reader, &block))
        count += block.count;
    return count;
}

static void add_systems(quern_schedule *schedule, Types *types)
{
    const quern_system_def systems[] = {
        {.name = "shoot",
         .run = shoot,
         .terms = {quern_term_read(types->gun)},
         .emits = {types->hit},
         .user_data = types},
        {.name = "bleed",
         .phase = 1,
         .run = bleed,
         .items = types->hit,
         .emits = {types->death},
         .write_lookups = {{.component = types->health}},
         .flags = QUERN_SYSTEM_SERIAL,
         .user_data = types},
        {.name = "bury", .phase = 2, .run = bury, .reads_events = {types->death}, .user_data = types},
    };
    for (uint32_t i = 0; i < sizeof systems / sizeof systems[0]; i++)
        check(quern_schedule_add_system(schedule, &systems[i], NULL));
}

int main(void)
{
    quern_world *world;
    quern_schedule *schedule;
    quern_jobs *jobs;
    quern_event_reader *reader;
    Types types;
    check(quern_world_create(NULL, &world));
    check(quern_jobs_create(NULL, &jobs));
    check(QUERN_COMPONENT_REGISTER_FIELDS(world, &types.gun, Gun, target, damage));
    check(QUERN_COMPONENT_REGISTER_FIELDS(world, &types.health, Health, points));
    check(QUERN_EVENT_REGISTER_FIELDS(world, &types.hit, Hit, target, damage));
    check(QUERN_EVENT_REGISTER_FIELDS(world, &types.death, Death, entity));
    check(quern_schedule_create(world, &(quern_schedule_def){.phases = {"shots", "wounds", "graves"}},
                                &schedule));
    add_systems(schedule, &types);
    check(quern_event_reader_create(world, &(quern_event_reader_def){.event = types.hit, .name = "display"},
                                    &reader));
    for (int32_t i = 0; i < 10; i++) {
        quern_entity target;
        const Health health = {.points = 10 * (i + 1)};
        check(quern_entity_create_with(world, &types.health, (const void *const[]){&health}, 1, &target));
        const Gun gun = {.target = target, .damage = 10};
        check(quern_entity_create_with(world, &types.gun, (const void *const[]){&gun}, 1, NULL));
    }
    for (uint32_t frame = 1; frame <= 3; frame++) {
        quern_world_stats stats;
        check(quern_schedule_run(schedule, jobs, 1.0 / 60));
        check(quern_world_get_stats(world, &stats));
        printf("frame %u: %u hits, %u left\n", frame, count_hits(reader),
               (unsigned)stats.entity_count - 10);
    }
    quern_event_reader_destroy(reader);
    quern_schedule_destroy(schedule);
    quern_jobs_destroy(jobs);
    quern_world_destroy(world);
    return EXIT_SUCCESS;
}
