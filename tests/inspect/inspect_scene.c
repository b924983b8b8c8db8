/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "tests/inspect/inspect_scene.h"
#include "tests/support/setup.h"

static void move_bodies(quern_context *context, const quern_view *view)
{
    Body *bodies = QUERN_COLUMN(view, 0, Body);
    const inspect_scene *scene = quern_context_user_data(context);
    const Rules *rules = quern_context_resource(context, scene->rules);
    for (uint32_t i = 0; i < view->count; i++)
        bodies[i].x += bodies[i].speed * rules->step;
}

static void bump_bodies(quern_context *context, const quern_view *view)
{
    const inspect_scene *scene = quern_context_user_data(context);
    quern_emitter *emitter = quern_context_emitter(context, scene->bump);
    if (scene->destroys) quern_commands_destroy(quern_context_commands(context), view->entities[0]);
    for (uint32_t i = 0; i < view->count; i++)
        quern_emit(emitter, &(Bump){.body = view->entities[i], .frame = 1});
    for (uint32_t i = 0; i < view->count; i++)
        quern_commands_set(quern_context_commands(context), view->entities[i], scene->body,
                           &(Body){.x = 1});
}

static void add_systems(inspect_scene *scene)
{
    const quern_schedule_def schedule_def = {.user_data = scene, .trace = scene->trace};
    must(quern_schedule_create(scene->world, &schedule_def, &scene->schedule));
    const quern_system_def move = {.name = "move \"bodies\"",
                                   .run = move_bodies,
                                   .terms = {quern_term_write(scene->body)},
                                   .resources = {{scene->rules, QUERN_ACCESS_READ}}};
    const quern_system_def bump = {.name = "bump",
                                   .run = bump_bodies,
                                   .terms = {quern_term_with(scene->body), quern_term_with(scene->marker)},
                                   .emits = {scene->bump}};
    must(quern_schedule_add_system(scene->schedule, &move, NULL));
    must(quern_schedule_add_system(scene->schedule, &bump, NULL));
    must(quern_schedule_compile(scene->schedule));
}

static void add_types(inspect_scene *scene)
{
    static const quern_named_value levels[] = {{"low", 0}, {"high", 7}, {NULL, 0}};
    const quern_component_def body = {
        QUERN_TYPE(Body),
        .fields = {QUERN_FIELD_WITH(Body, x, .unit = "m"),
                   QUERN_FIELD_WITH(Body, speed, .unit = "m/s", .minimum = -10, .maximum = 10),
                   QUERN_FIELD_WITH(Body, level, .values = levels)}};
    must(quern_component_register(scene->world, &body, &scene->body));
    must(quern_component_register(scene->world, &(quern_component_def){.name = "Marker"}, &scene->marker));
    must(QUERN_EVENT_REGISTER_FIELDS(scene->world, &scene->bump, Bump, body, frame));
    const quern_resource_def rules = {QUERN_TYPE(Rules), .fields = QUERN_FIELDS(Rules, step)};
    must(quern_resource_register(scene->world, &rules, &scene->rules));
    ((Rules *)quern_resource_get(scene->world, scene->rules))->step = 0.5f;
    scene->parent = quern_world_parent(scene->world);
    quern_world_disabled_tag(scene->world);
}

static void add_entities(inspect_scene *scene, uint32_t count)
{
    must(quern_entity_create(scene->world, &scene->root));
    must(quern_entity_create(scene->world, &scene->child));
    must(quern_entity_set_name(scene->world, scene->root, "arena"));
    must(quern_entity_set_name(scene->world, scene->child, "gun"));
    must(quern_entity_relate(scene->world, scene->child, scene->parent, scene->root));
    must(
        quern_entity_add(scene->world, scene->child, scene->body, &(Body){.x = 1, .speed = 2, .level = 7}));
    must(quern_entity_add(scene->world, scene->child, scene->marker, NULL));
    for (uint32_t i = 0; i < count; i++) {
        const Body value = {.x = (float)i, .speed = 1};
        const void *values[] = {&value};
        must(quern_entity_create_with(scene->world, &scene->body, values, 1, NULL));
    }
}

void inspect_scene_open_empty(inspect_scene *scene)
{
    *scene = (inspect_scene){.frame = 0};
    must(quern_world_create(NULL, &scene->world));
    add_types(scene);
    add_systems(scene);
}

void inspect_scene_close_empty(inspect_scene *scene)
{
    quern_schedule_destroy(scene->schedule);
    quern_world_destroy(scene->world);
    *scene = (inspect_scene){.world = NULL};
}

void inspect_scene_open(inspect_scene *scene, uint32_t count, const quern_allocator *allocator)
{
    *scene = (inspect_scene){.frame = 0};
    must(quern_world_create(NULL, &scene->world));
    must(quern_trace_create(&(quern_trace_def){.events_per_track = 256}, &scene->trace));
    add_types(scene);
    add_entities(scene, count);
    add_systems(scene);
    must(quern_history_create(scene->world,
                              &(quern_history_def){.schedules = {scene->schedule}, .frame_count = 32},
                              &scene->history));
    /* No clock decides in which frame an answer is done: tests of budgets set theirs. */
    quern_inspector_def def = {.world = scene->world,
                               .schedule = scene->schedule,
                               .history = scene->history,
                               .trace = scene->trace,
                               .budget_ns = UINT64_MAX / 4};
    if (allocator != NULL) def.allocator = *allocator;
    must(quern_inspector_create(&def, &scene->inspector));
}

void inspect_scene_close(inspect_scene *scene)
{
    quern_inspector_destroy(scene->inspector);
    quern_history_destroy(scene->history);
    quern_schedule_destroy(scene->schedule);
    quern_world_destroy(scene->world);
    quern_trace_destroy(scene->trace);
    *scene = (inspect_scene){.world = NULL};
    inspect_scene_release_text();
}

bool inspect_scene_turn(inspect_scene *scene)
{
    if (!quern_inspector_update(scene->inspector, &scene->frame)) return false;
    must(quern_history_save(scene->history, scene->frame, NULL));
    must(quern_inspector_run(scene->inspector, 0.1));
    scene->frame++;
    return true;
}

static quern_byte_buffer answer;

void inspect_scene_release_text(void)
{
    quern_byte_buffer_release(&answer);
    answer = (quern_byte_buffer){.bytes = NULL};
}

const char *inspect_scene_ask(inspect_scene *scene, const char *method, const char *path,
                              const char *arguments, uint32_t *out_status)
{
    const quern_inspect_call call = {.method = method, .path = path, .arguments = arguments};
    answer.size_bytes = 0;
    const quern_sink sink = quern_sink_bytes(&answer);
    must(quern_inspect_request(scene->inspector, &call, sink, out_status));
    sink.write(sink.user_data, "", 1);
    return answer.bytes;
}

const char *inspect_get(inspect_scene *scene, const char *path, const char *arguments)
{
    uint32_t status;
    const char *text = inspect_scene_ask(scene, "GET", path, arguments, &status);
    cr_assert(status == 200, "%s?%s: %u %s", path, arguments != NULL ? arguments : "", status, text);
    return text;
}

void inspect_post(inspect_scene *scene, const char *path, const char *arguments)
{
    uint32_t status;
    const char *text = inspect_scene_ask(scene, "POST", path, arguments, &status);
    cr_assert(status == 200, "%s?%s: %u %s", path, arguments != NULL ? arguments : "", status, text);
}
