/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* A program of the size of a large game, for the page of the inspector: 200 systems in five phases and twenty sets, 1,000
 * archetypes, 100,000 entities, and a tree that is 1,000 deep. usage: large_program [entities]. Without main, it has what the
 * program of a recorded test case needs: set_up. */
#include "inspect/inspect.h"

#include <quern/quern.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    SYSTEMS = 200,
    SETS = 20,
    PARTS = 40,
    ARCHETYPES = 1000,
    TREE_DEPTH = 1000,
    PHASES = 5,
    KEPT_FRAMES = 60
};

typedef struct Position {
    float x, y;
} Position;

typedef struct Energy {
    float value;
    uint32_t level;
} Energy;

typedef struct Part {
    float amount, rate;
} Part;

typedef struct Link {
    quern_entity other;
    char note[16];
} Link;

typedef struct Spot {
    int32_t x, y;
} Spot;

/* One field for each editor of the page. */
typedef struct Paint {
    float colour[3], place[3];
    uint32_t traits;
    QUERN_LIST(Spot) spots;
} Paint;

typedef struct Weather {
    float wind;
    int32_t season;
} Weather;

typedef struct Tired {
    quern_entity entity;
    float energy;
} Tired;

typedef struct Program {
    quern_world *world;
    quern_schedule *schedule;
    quern_history *history;
    quern_trace *trace;
    quern_component position, energy, link, asleep, paint, parts[PARTS];
    quern_resource weather;
    quern_event tired;
} Program;

static void must(quern_result result)
{
    if (result == QUERN_OK) return;
    fprintf(stderr, "large_program: %s\n", quern_error_message());
    exit(1);
}

static void add_types(Program *program)
{
    static const quern_named_value seasons[] = {{"winter", 0}, {"summer", 1}, {NULL, 0}};
    must(QUERN_COMPONENT_REGISTER_FIELDS(program->world, &program->position, Position, x, y));
    const quern_component_def energy = {
        QUERN_TYPE(Energy),
        .fields = {QUERN_FIELD_WITH(Energy, value, .unit = "J", .minimum = 0, .maximum = 1000),
                   QUERN_FIELD_WITH(Energy, level)}};
    must(quern_component_register(program->world, &energy, &program->energy));
    const quern_component_def link = {QUERN_TYPE(Link),
                                      .fields = {QUERN_FIELD(Link, other), QUERN_TEXT(Link, note)}};
    must(quern_component_register(program->world, &link, &program->link));
    static const quern_named_value traits[] = {{"glossy", 1}, {"wet", 2}, {"old", 4}, {NULL, 0}};
    const quern_component_def paint = {
        QUERN_TYPE(Paint),
        .fields = {QUERN_FIELD_WITH(Paint, colour, .unit = "rgb"), QUERN_FIELD(Paint, place),
                   QUERN_FIELD_WITH(Paint, traits, .unit = "flags", .values = traits),
                   QUERN_LIST_FIELD(Paint, spots, Spot, x, y)}};
    must(quern_component_register(program->world, &paint, &program->paint));
    must(quern_component_register(program->world, &(quern_component_def){.name = "Asleep"},
                                  &program->asleep));
    for (uint32_t i = 0; i < PARTS; i++) {
        char name[24];
        snprintf(name, sizeof name, "Part%02u", i);
        const quern_component_def part = {.name = name,
                                          .size_bytes = sizeof(Part),
                                          .alignment_bytes = _Alignof(Part),
                                          .can_disable = i % 10 == 9,
                                          .fields = QUERN_FIELDS(Part, amount, rate)};
        must(quern_component_register(program->world, &part, &program->parts[i]));
    }
    const quern_resource_def weather = {QUERN_TYPE(Weather),
                                        .fields = {QUERN_FIELD_WITH(Weather, wind, .unit = "m/s"),
                                                   QUERN_FIELD_WITH(Weather, season, .values = seasons)}};
    must(quern_resource_register(program->world, &weather, &program->weather));
    must(QUERN_EVENT_REGISTER_FIELDS(program->world, &program->tired, Tired, entity, energy));
    quern_world_parent(program->world);
    quern_world_disabled_tag(program->world);
}

static void grow(quern_context *context, const quern_view *view)
{
    (void)context;
    Part *parts = quern_view_write(view, 0);
    for (uint32_t i = 0; i < view->count; i++)
        parts[i].amount += parts[i].rate;
}

static void spend(quern_context *context, const quern_view *view)
{
    Energy *energies = quern_view_write(view, 0);
    const Program *program = quern_context_user_data(context);
    quern_emitter *emitter = quern_context_emitter(context, program->tired);
    for (uint32_t i = 0; i < view->count; i++) {
        energies[i].value -= 0.25f;
        if (energies[i].value > 0) continue;
        if (view->entities[i].bits % 64 == 0)
            quern_emit(emitter, &(Tired){.entity = view->entities[i], .energy = energies[i].value});
        energies[i].value = 100;
        energies[i].level++;
        must(quern_commands_set(quern_context_commands(context), view->entities[i], program->position,
                                &(Position){.y = (float)energies[i].level}));
    }
}

static void drift(quern_context *context, const quern_view *view)
{
    (void)context;
    Position *positions = quern_view_write(view, 0);
    for (uint32_t i = 0; i < view->count; i++)
        positions[i].x += 0.01f;
}

static void add_systems(Program *program)
{
    static const char *const phases[PHASES] = {"input", "plan", "update", "late", "present"};
    static const char *const areas[SETS] = {"animals", "plants", "weather", "roads",  "trade",
                                            "housing", "water",  "energy",  "health", "schools",
                                            "police",  "fire",   "parks",   "rail",   "harbour",
                                            "tourism", "mail",   "power",   "waste",  "culture"};
    static const char *const verbs[] = {"gather", "sort",  "move",   "count",  "spread",
                                        "decay",  "price", "settle", "notify", "draw"};
    must(quern_schedule_create(program->world,
                               &(quern_schedule_def){.user_data = program, .trace = program->trace},
                               &program->schedule));
    must(quern_schedule_set_phases(program->schedule, phases, PHASES));
    for (uint32_t i = 0; i < SETS; i++)
        must(quern_schedule_add_set(program->schedule, &(quern_set_def){.name = areas[i]}));
    for (uint32_t i = 0; i < SYSTEMS; i++) {
        char name[64];
        quern_system_def def = {.name = name, .phase = i * PHASES / SYSTEMS, .sets = {areas[i % SETS]}};
        snprintf(name, sizeof name, "%s %s", verbs[i / SETS], areas[i % SETS]);
        if (i % 7 == 3) def.every = 4;
        if (i % 7 == 5) {
            def.every = 2;
            def.offset = 1;
        }
        if (i % 50 == 20) {
            def.run = spend;
            def.terms[0] = quern_term_write(program->energy);
            def.terms[1] = quern_term_without(program->asleep);
            def.emits[0] = program->tired;
        } else if (i % 50 == 30) {
            def.run = drift;
            def.terms[0] = quern_term_write(program->position);
            def.terms[1] = quern_term_read(program->energy);
            def.queries[0] = (quern_query_def){
                .name = "sleepers",
                .terms = {quern_term_read(program->energy), quern_term_with(program->asleep)}};
        } else {
            def.run = grow;
            def.terms[0] = quern_term_write(program->parts[i * 3 % 17]);
            def.terms[1] = quern_term_read(program->parts[17 + i % 23]);
            if (i % 11 == 0) def.terms[2] = quern_term_without(program->parts[17 + (i + 5) % 23]);
            if (i % 4 == 1) def.lookups[0].component = program->parts[(i * 3 + 5) % 17];
        }
        if (i % 13 == 0)
            def.resources[0] = (quern_resource_access){program->weather, i % 26 == 0 ? QUERN_ACCESS_READ
                                                                                     : QUERN_ACCESS_WRITE};
        if (i == 75) def.after_commands_of[0] = "move animals";
        if (i == 115 || i == 155) def.flags = QUERN_SYSTEM_MAIN_THREAD;
        must(quern_schedule_add_system(program->schedule, &def, NULL));
    }
    must(quern_schedule_compile(program->schedule));
}

/* For the program of a test case. */
quern_result set_up(quern_world *world, quern_schedule **out_schedule);

quern_result set_up(quern_world *world, quern_schedule **out_schedule)
{
    static Program program;
    program.world = world;
    add_types(&program);
    add_systems(&program);
    *out_schedule = program.schedule;
    return QUERN_OK;
}

#ifndef LARGE_WITHOUT_MAIN
static void add_paint(Program *program, quern_entity entity)
{
    Paint paint = {.colour = {1, 0.5f, 0}, .place = {1, 2, 3}, .traits = 5};
    must(QUERN_LIST_PUSH(&paint.spots, Spot, {.x = 1, .y = 2}));
    must(QUERN_LIST_PUSH(&paint.spots, Spot, {.x = 3, .y = 4}));
    must(quern_entity_add(program->world, entity, program->paint, &paint));
    quern_list_free(&paint.spots.list);
}

/* Each archetype has Position, Energy, and two parts. */
static void add_entities(Program *program, uint32_t count)
{
    quern_entity above = quern_entity_null(), entity;
    const quern_relation parent = quern_world_parent(program->world);
    for (uint32_t i = 0; i < ARCHETYPES; i++) {
        /* Pairs of different parts: i / PARTS + 1 is at most 25, and pairs a and b, b and a differ by Asleep. */
        const uint32_t a = i % PARTS, b = (a + 1 + i / PARTS) % PARTS;
        const quern_component components[] = {program->position, program->energy, program->parts[a],
                                              program->parts[b], program->asleep};
        for (uint32_t k = 0; k < count / ARCHETYPES; k++) {
            const Position position = {.x = (float)i, .y = (float)k};
            const Energy energy = {.value = (float)((i * 37 + k * 11) % 1000) / 10};
            const Part part = {.amount = 1, .rate = 0.5f};
            const void *values[] = {&position, &energy, &part, &part, NULL};
            must(quern_entity_create_with(program->world, components, values, a < b ? 4 : 5, &entity));
            if (k > 0) continue;
            char name[24];
            snprintf(name, sizeof name, "house %u", i);
            must(quern_entity_set_name(program->world, entity, name));
        }
    }
    for (uint32_t i = 0; i < TREE_DEPTH; i++) {
        char name[24];
        snprintf(name, sizeof name, "branch%u", i);
        const Link link = {.other = above, .note = "part of a tree"};
        must(quern_entity_create(program->world, &entity));
        must(quern_entity_add(program->world, entity, program->link, &link));
        if (!quern_entity_is_null(above)) must(quern_entity_relate(program->world, entity, parent, above));
        must(quern_entity_set_name(program->world, entity, name));
        if (i == 5) add_paint(program, entity);
        above = entity;
    }
    quern_prefab prefab;
    must(quern_prefab_capture(program->world, above, &prefab));
}

/* What a kit for living code would show. */
static quern_result write_modules(void *user_data, quern_sink sink)
{
    (void)user_data;
    static const char text[] = "[{\"module\":\"rules\",\"version\":3,\"state\":\"runs\",\"systems\":["
                               "\"gather animals\",\"sort roads\"],"
                               "\"report\":\"Energy.level: 2 values did not fit\",\"error\":\"\"},"
                               "{\"module\":\"traffic\",\"version\":1,\"state\":\"refused\",\"systems\":["
                               "\"move rail\"],\"report\":\"\","
                               "\"error\":\"quern_live_update: the file 'traffic.so' is not whole\"}]";
    return sink.write(sink.user_data, text, sizeof text - 1) ? QUERN_OK : QUERN_ERROR_IO;
}

static volatile sig_atomic_t is_interrupted;

static void interrupt(int number)
{
    (void)number;
    is_interrupted = 1;
}

/* has_budget_only: the program sleeps instead of giving the inspector its spare time. */
static void pace(quern_inspector *inspector, uint64_t *frame, const struct timespec *begin,
                 bool has_budget_only)
{
    enum { FRAME_NS = 1000000000 / 60 };
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    const long spent_ns = (now.tv_sec - begin->tv_sec) * 1000000000 + (now.tv_nsec - begin->tv_nsec);
    if (spent_ns >= FRAME_NS) return;
    if (has_budget_only)
        nanosleep(&(struct timespec){.tv_nsec = FRAME_NS - spent_ns}, NULL);
    else
        quern_inspector_wait(inspector, frame, (uint64_t)(FRAME_NS - spent_ns));
}

int main(int argument_count, char **arguments)
{
    Program program = {0};
    quern_inspector *inspector;
    const uint32_t count = argument_count > 1 ? (uint32_t)strtoul(arguments[1], NULL, 10) : 100000;
    const bool has_budget_only = argument_count > 2 && strcmp(arguments[2], "budget") == 0;
    signal(SIGTERM, interrupt);
    signal(SIGINT, interrupt);
    must(quern_trace_create(&(quern_trace_def){.events_per_track = 8192}, &program.trace));
    must(quern_world_create(NULL, &program.world));
    add_types(&program);
    add_entities(&program, count);
    add_systems(&program);
    must(quern_history_create(
        program.world, &(quern_history_def){.schedules = {program.schedule}, .frame_count = KEPT_FRAMES},
        &program.history));
    const quern_inspector_def def = {.world = program.world,
                                     .schedule = program.schedule,
                                     .history = program.history,
                                     .trace = program.trace,
                                     .panels = {{.title = "Modules", .write = write_modules}},
                                     .title = "large program"};
    must(quern_inspector_create(&def, &inspector));
    must(quern_inspector_serve(inspector, NULL));
    printf("inspector: %s\n", quern_inspector_url(inspector));
    fflush(stdout);
    for (uint64_t frame = 0; !is_interrupted;) {
        struct timespec begin;
        clock_gettime(CLOCK_MONOTONIC, &begin);
        if (!quern_inspector_update(inspector, &frame)) continue;
        must(quern_history_save(program.history, frame, NULL));
        must(quern_inspector_run(inspector, 1.0 / 60));
        frame++;
        pace(inspector, &frame, &begin, has_budget_only);
    }
    quern_inspector_destroy(inspector);
    quern_history_destroy(program.history);
    quern_schedule_destroy(program.schedule);
    quern_world_destroy(program.world);
    quern_trace_destroy(program.trace);
    return 0;
}
#endif
