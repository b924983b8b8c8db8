/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "tests/support/fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Redefinition of types with the same layout: everything of the old definition is gone afterwards. The old definitions
 * here are modules: a block of memory with all texts, which is freed, and counted hooks, which must not be called any
 * more. */

typedef struct Name {
    uint32_t *text; /* allocated; its first number is that of the module that allocated it */
    int32_t kind;
} Name;

typedef struct module {
    uint32_t number, construct_count, copy_count, move_count, destroy_count;
    bool is_unloaded;
} module;

static module modules[2];

static module *enter(void *user_data)
{
    module *it = user_data;
    cr_assert_not(it->is_unloaded, "a hook of module %u is called after its end", it->number);
    return it;
}

static uint32_t *allocate_text(uint32_t number)
{
    uint32_t *text = malloc(sizeof *text);
    *text = number;
    return text;
}

static void construct(void *values, uint32_t count, void *user_data)
{
    Name *names = values;
    enter(user_data)->construct_count += count;
    for (uint32_t i = 0; i < count; i++)
        names[i] = (Name){allocate_text(((module *)user_data)->number), 7};
}

static void copy(void *targets, const void *sources, uint32_t count, void *user_data)
{
    Name *to = targets;
    const Name *from = sources;
    enter(user_data)->copy_count += count;
    for (uint32_t i = 0; i < count; i++)
        to[i] = (Name){allocate_text(((module *)user_data)->number), from[i].kind};
}

static void move(void *targets, void *sources, uint32_t count, void *user_data)
{
    enter(user_data)->move_count += count;
    memcpy(targets, sources, count * sizeof(Name));
}

static void destroy(void *values, uint32_t count, void *user_data)
{
    const Name *names = values;
    enter(user_data)->destroy_count += count;
    for (uint32_t i = 0; i < count; i++)
        free(names[i].text);
}

static quern_hooks hooks_of(module *it)
{
    return (quern_hooks){construct, copy, move, destroy, it};
}

/* The texts and values of a module in memory that ends with it. */
typedef struct statics {
    char name[8], type_name[8], field[8], unit[8], value_name[8];
    quern_named_value values[2];
    Name value;
} statics;

static statics *load_statics(const char *unit, module *it)
{
    statics *of = malloc(sizeof *of);
    *of = (statics){.name = "Name", .type_name = "Name", .field = "kind", .value_name = "orc"};
    memcpy(of->unit, unit, strlen(unit) + 1);
    of->values[0] = (quern_named_value){of->value_name, (int64_t)it->number};
    of->value = (Name){allocate_text(it->number), 40};
    return of;
}

static void unload(statics *of, module *it)
{
    free(of->value.text);
    memset(of, 0xDD, sizeof *of);
    free(of);
    it->is_unloaded = true;
}

static quern_field field_of(const statics *of)
{
    return (quern_field){.name = of->field,
                         .type = QUERN_FIELD_I32,
                         .offset_bytes = offsetof(Name, kind),
                         .values = of->values,
                         .unit = of->unit};
}

static quern_component_def component_def(const statics *of, module *it)
{
    quern_component_def def = {.name = of->name,
                               .size_bytes = sizeof(Name),
                               .alignment_bytes = _Alignof(Name),
                               .type_name = of->type_name,
                               .hooks = hooks_of(it),
                               .default_value = &of->value};
    def.fields[0] = field_of(of);
    return def;
}

static quern_resource_def resource_def(const statics *of, module *it)
{
    quern_resource_def def = {.name = of->name,
                              .size_bytes = sizeof(Name),
                              .alignment_bytes = _Alignof(Name),
                              .type_name = of->type_name,
                              .hooks = hooks_of(it)};
    def.fields[0] = field_of(of);
    return def;
}

static quern_event_def event_def(const statics *of, module *it)
{
    quern_event_def def = {.name = of->name,
                           .size_bytes = sizeof(Name),
                           .alignment_bytes = _Alignof(Name),
                           .type_name = of->type_name,
                           .hooks = hooks_of(it)};
    def.fields[0] = field_of(of);
    return def;
}

static failing_allocator *memory;
static statics *data[2];
static quern_component component;
static quern_resource resource;
static quern_event event;

static void open_world(void)
{
    memory = open_failing_world();
    for (uint32_t i = 0; i < 2; i++) {
        modules[i] = (module){.number = i};
        data[i] = load_statics(i == 0 ? "m" : "ft", &modules[i]);
    }
    const quern_component_def components = component_def(data[0], &modules[0]);
    const quern_resource_def resources = resource_def(data[0], &modules[0]);
    const quern_event_def events = event_def(data[0], &modules[0]);
    must(quern_component_register(world, &components, &component));
    must(quern_resource_register(world, &resources, &resource));
    must(quern_event_register(world, &events, &event));
}

static quern_result redefine_component(void)
{
    const quern_component_def def = component_def(data[1], &modules[1]);
    return quern_component_redefine(world, component, &def, NULL, NULL);
}

static quern_result redefine_resource(void)
{
    const quern_resource_def def = resource_def(data[1], &modules[1]);
    return quern_resource_redefine(world, resource, &def, NULL, NULL);
}

static quern_result redefine_event(void)
{
    const quern_event_def def = event_def(data[1], &modules[1]);
    return quern_event_redefine(world, event, &def, NULL, NULL);
}

/* Gives all types the definitions of the second module, and ends the first one. */
static void reload(void)
{
    must(redefine_component());
    must(redefine_resource());
    must(redefine_event());
    unload(data[0], &modules[0]);
    data[0] = NULL;
}

static void close_redefined(void)
{
    close_world();
    assert_at_end(data[0] == NULL || !modules[0].is_unloaded);
    for (uint32_t i = 0; i < 2; i++)
        if (data[i] != NULL) unload(data[i], &modules[i]);
}

TestSuite(redefine, .init = open_world, .fini = close_redefined);

static Name *get(quern_entity entity)
{
    Name *name = quern_entity_get(world, entity, component);
    cr_assert_not_null(name);
    return name;
}

Test(redefine, the_description_is_that_of_the_new_definition)
{
    reload();
    quern_type_info infos[3];
    must(quern_component_get_info(world, component, &infos[0]));
    must(quern_resource_get_info(world, resource, &infos[1]));
    must(quern_event_get_info(world, event, &infos[2]));
    for (uint32_t i = 0; i < 3; i++) {
        cr_assert_str_eq(infos[i].name, "Name");
        cr_assert_str_eq(infos[i].type_name, "Name");
        cr_assert_str_eq(infos[i].fields[0].unit, "ft");
        cr_assert_str_eq(infos[i].fields[0].values[0].name, "orc");
        cr_assert_eq(infos[i].fields[0].values[0].value, 1);
        cr_assert_eq(infos[i].hooks.user_data, &modules[1]);
    }
    cr_assert_neq(infos[0].default_value, (void *)&data[1]->value);
}

Test(redefine, new_values_are_made_by_the_new_hooks)
{
    const quern_entity before = setup_entity_with(world, &component, 1);
    const uint32_t destroyed_count = modules[0].destroy_count;
    cr_assert_eq(*get(before)->text, 0);
    reload();
    cr_assert_eq(modules[0].destroy_count, destroyed_count + 1, "the old default value was not destroyed");
    const quern_entity after = setup_entity_with(world, &component, 1);
    cr_assert_eq(*get(after)->text, 1);
    cr_assert_eq(get(after)->kind, 40);
    cr_assert_eq(*get(before)->text, 0, "values of entities stay as they are");
    must(quern_entity_destroy(world, before));
    must(quern_entity_destroy(world, after));
    cr_assert_eq(modules[1].destroy_count, 2);
}

Test(redefine, a_definition_without_default_value_has_none)
{
    quern_component_def def = component_def(data[1], &modules[1]);
    def.default_value = NULL;
    def.name = NULL; /* keeps the name */
    must(quern_component_redefine(world, component, &def, NULL, NULL));
    cr_assert_eq(get(setup_entity_with(world, &component, 1))->kind, 7);
}

Test(redefine, moves_between_archetypes_call_the_new_hooks)
{
    const quern_component tag = setup_tag(world, "tag");
    const quern_entity first = setup_entity_with(world, &component, 1),
                       second = setup_entity_with(world, &component, 1);
    must(quern_entity_add(world, first, tag, NULL)); /* compiles the plan of the move */
    must(quern_entity_remove(world, first, tag));
    reload();
    const uint32_t moved_count = modules[1].move_count;
    must(quern_entity_add(world, second, tag, NULL));
    must(quern_entity_remove(world, first, component));
    cr_assert_gt(modules[1].move_count, moved_count);
}

Test(redefine, waiting_commands_and_events_are_those_of_the_new_definition)
{
    quern_event_reader *reader;
    must(quern_event_reader_create(world, &(quern_event_reader_def){.event = event}, &reader));
    const quern_entity entity = setup_entity(world);
    quern_commands *commands = quern_world_commands(world);
    must(quern_commands_set(commands, entity, component, &data[0]->value));
    must(quern_world_emit(world, event, &data[0]->value, 1));
    reload();
    must(quern_world_flush(world));
    cr_assert_eq(get(entity)->kind, 40);
    quern_event_block block;
    cr_assert(quern_event_reader_next(reader, &block));
    cr_assert_eq(((const Name *)block.values)->kind, 40);
    cr_assert_not(quern_event_reader_next(reader, &block));
    must(quern_world_emit(world, event, &data[1]->value, 1));
    cr_assert(quern_event_reader_next(reader, &block));
    cr_assert_eq(*((const Name *)block.values)->text, 1);
    quern_event_reader_destroy(reader);
}

Test(redefine, prefabs_and_frames_of_a_history_are_copied_by_the_new_hooks)
{
    const quern_entity entity = setup_entity_with(world, &component, 1);
    quern_prefab prefab;
    must(quern_prefab_capture(world, entity, &prefab));
    quern_history *history;
    must(quern_history_create(world, NULL, &history));
    must(quern_history_save(history, 1, NULL));
    reload();
    quern_entity instance;
    must(quern_prefab_spawn(world, prefab, NULL, &instance));
    cr_assert_eq(*get(instance)->text, 1);
    must(quern_history_restore(history, 1, NULL));
    cr_assert_eq(*get(entity)->text, 1);
    cr_assert_not(quern_entity_is_alive(world, instance));
    quern_history_destroy(history);
}

Test(redefine, saved_resources_are_destroyed_by_their_hooks_after_resources_have_moved)
{
    quern_history *history;
    must(quern_history_create(world, NULL, &history));
    must(quern_history_save(history, 1, NULL));
    const uint32_t copied_count = modules[0].copy_count, destroyed_count = modules[0].destroy_count;
    cr_assert_gt(copied_count, 0);
    for (uint32_t i = 0; i < 64; i++) { /* the array of resources grows */
        char name[16];
        quern_resource ignored;
        snprintf(name, sizeof name, "number %u", i);
        must(
            quern_resource_register(world, &(quern_resource_def){.name = name, .size_bytes = 4}, &ignored));
    }
    quern_history_destroy(history);
    cr_assert_eq(modules[0].destroy_count, destroyed_count + 1);
}

static uint32_t removed_kind;

static void see_removed(quern_context *context, const quern_view *view)
{
    (void)context;
    const Name *names = quern_view_read(view, 0);
    for (uint32_t i = 0; i < view->count; i++)
        removed_kind += (uint32_t)names[i].kind;
}

Test(redefine, pending_removed_rows_are_those_of_the_new_definition)
{
    quern_schedule *schedule;
    must(quern_schedule_create(world, NULL, &schedule));
    must(quern_schedule_add_system(schedule,
                                   &(quern_system_def){.name = "see",
                                                       .run = see_removed,
                                                       .terms = {quern_term_read(component)},
                                                       .reacts_to = QUERN_REACT_REMOVED},
                                   NULL));
    const quern_entity entity = setup_entity_with(world, &component, 1);
    must(quern_schedule_run(schedule, NULL, 0));
    must(quern_entity_destroy(world, entity));
    reload();
    removed_kind = 0;
    must(quern_schedule_run(schedule, NULL, 0));
    cr_assert_eq(removed_kind, 40);
    quern_schedule_destroy(schedule);
}

static void combine_twice(void *value, const void *accumulated, void *user_data)
{
    *(int32_t *)value += 2 * *(const int32_t *)accumulated + *(const int32_t *)user_data;
}

static void refuse_combining(void *value, const void *accumulated, void *user_data)
{
    (void)value, (void)accumulated;
    enter(user_data);
}

Test(redefine, accumulated_values_are_combined_by_the_new_function)
{
    const quern_component points = setup_component(world, "points", 4, 4);
    quern_combine combine, again;
    const int32_t value = 5, extra = 100;
    must(quern_combine_register(
        world, &(quern_combine_def){.name = "mine", .function = refuse_combining, .user_data = &modules[0]},
        &combine));
    const quern_entity entity = setup_entity_with(world, &points, 1);
    must(quern_commands_accumulate(quern_world_commands(world), entity, points, &value, combine));
    must(quern_combine_redefine(world,
                                &(quern_combine_def){.name = "mine",
                                                     .function = combine_twice,
                                                     .user_data = (void *)(uintptr_t)&extra},
                                &again));
    cr_assert_eq(again.bits, combine.bits);
    modules[0].is_unloaded = true;
    must(quern_world_flush(world));
    cr_assert_eq(*(const int32_t *)quern_entity_get(world, entity, points), 110);
    modules[0].is_unloaded = false;
    must_refuse(INVALID_ARGUMENT, world,
                quern_combine_redefine(
                    world, &(quern_combine_def){.name = "yours", .function = combine_twice}, &again));
    must_refuse(NULL_ARGUMENT, world,
                quern_combine_redefine(world, &(quern_combine_def){.name = "mine"}, &again));
}

Test(redefine, an_identity_that_was_missing_is_found)
{
    quern_component_def def = component_def(data[1], &modules[1]);
    def.type_id = UINT64_C(0x123456789ABCDEF);
    must(quern_component_redefine(world, component, &def, NULL, NULL));
    quern_component found;
    must(quern_component_register(world, &def, &found));
    cr_assert_eq(found.bits, component.bits);
    def.type_id = 0; /* C: the identity stays */
    must(quern_component_redefine(world, component, &def, NULL, NULL));
    def.type_id = UINT64_C(0xFEDCBA987654321);
    must_refuse(LAYOUT_MISMATCH, world, quern_component_register(world, &def, &found));
    quern_component_def other = {.name = "other", .size_bytes = 4, .alignment_bytes = 4};
    quern_component second;
    must(quern_component_register(world, &other, &second));
    other.type_id = UINT64_C(0x123456789ABCDEF);
    must_refuse(LAYOUT_MISMATCH, world, quern_component_redefine(world, second, &other, NULL, NULL));
}

Test(redefine, a_refused_redefinition_changes_nothing)
{
    const quern_component_def good = component_def(data[1], &modules[1]);
    quern_component_def def = good;
    quern_resource_def resource_like = resource_def(data[1], &modules[1]);
    quern_event_def event_like = event_def(data[1], &modules[1]);
    const quern_component disabled = quern_relation_component(quern_world_parent(world));
    must_refuse(NULL_ARGUMENT, NULL, quern_component_redefine(NULL, component, &def, NULL, NULL));
    must_refuse(NULL_ARGUMENT, world, quern_component_redefine(world, component, NULL, NULL, NULL));
    must_refuse(UNKNOWN_COMPONENT, world,
                quern_component_redefine(world, component_unregistered(component), &def, NULL, NULL));
    must_refuse(UNKNOWN_RESOURCE, world,
                quern_resource_redefine(world, (quern_resource){0}, &resource_like, NULL, NULL));
    must_refuse(UNKNOWN_EVENT, world,
                quern_event_redefine(world, (quern_event){0}, &event_like, NULL, NULL));
    def.name = "Nam";
    must_refuse(INVALID_ARGUMENT, world, quern_component_redefine(world, component, &def, NULL, NULL));
    resource_like.name = event_like.name = "Nam";
    must_refuse(INVALID_ARGUMENT, world,
                quern_resource_redefine(world, resource, &resource_like, NULL, NULL));
    must_refuse(INVALID_ARGUMENT, world, quern_event_redefine(world, event, &event_like, NULL, NULL));
    def = good;
    def.name = NULL;
    must_refuse(INVALID_ARGUMENT, world, quern_component_redefine(world, disabled, &def, NULL, NULL));
    def.can_disable = true;
    must_refuse(LAYOUT_MISMATCH, world, quern_component_redefine(world, component, &def, NULL, NULL));
    def = good;
    def.required[0] = setup_tag(world, "tag");
    must_refuse(LAYOUT_MISMATCH, world, quern_component_redefine(world, component, &def, NULL, NULL));
    cr_assert_eq(modules[1].copy_count, modules[1].destroy_count, "a refused default value is released");
    quern_type_info info;
    must(quern_component_get_info(world, component, &info));
    cr_assert_eq(info.hooks.user_data, &modules[0]);
    cr_assert_str_eq(info.fields[0].unit, "m");
}

Test(redefine, without_memory_nothing_changes)
{
    quern_result (*const calls[])(void) = {redefine_component, redefine_resource, redefine_event};
    for (uint32_t i = 0; i < 3; i++)
        for (uint64_t n = 1;; n++) {
            const refusal before = refusal_begin(world);
            failing_allocator_fail_at(memory, n);
            const quern_result result = calls[i]();
            failing_allocator_heal(memory);
            quern_type_info info;
            must(quern_type_at(world,
                               i == 0   ? QUERN_TYPE_COMPONENT
                               : i == 1 ? QUERN_TYPE_RESOURCE
                                        : QUERN_TYPE_EVENT,
                               i == 0 ? quern_type_count(world, QUERN_TYPE_COMPONENT) - 1 : 0, &info));
            if (result == QUERN_OK) {
                cr_assert_eq(info.hooks.user_data, &modules[1]);
                cr_assert_gt(n, 1);
                break;
            }
            cr_assert_eq(result, QUERN_ERROR_OUT_OF_MEMORY);
            cr_assert(refusal_has_message(&before));
            cr_assert_eq(info.hooks.user_data, &modules[0]);
        }
}

static void redefine_in_system(quern_context *context, const quern_view *view)
{
    (void)context, (void)view;
    must_refuse(WORLD_LOCKED, NULL, redefine_component());
    must_refuse(WORLD_LOCKED, NULL, redefine_resource());
    must_refuse(WORLD_LOCKED, NULL, redefine_event());
}

Test(redefine, a_running_frame_refuses_it)
{
    for (uint32_t i = 0; i < 2; i++) {
        quern_schedule *schedule;
        must(quern_schedule_create(world, NULL, &schedule));
        must(quern_schedule_add_system(
            schedule,
            &(quern_system_def){.name = "redefine",
                                .run = redefine_in_system,
                                .flags = i == 0 ? QUERN_SYSTEM_EXCLUSIVE : QUERN_SYSTEM_MAIN_THREAD},
            NULL));
        must(quern_schedule_run(schedule, NULL, 0));
        quern_schedule_destroy(schedule);
    }
    reload();
}
