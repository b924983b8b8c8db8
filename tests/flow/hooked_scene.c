/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "tests/flow/hooked_scene.h"

#include <string.h>

static uint64_t mix(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * 0x9E3779B97F4A7C15u;
    return hash ^ hash >> 29;
}

static void note(hooked_scene *scene, uint32_t kind, uint32_t call, quern_entity entity, uint64_t value)
{
    scene->calls++;
    const uint64_t words[] = {kind, call, quern_entity_index(entity),
                              quern_entity_use_count(scene->world, entity), value};
    for (uint32_t i = 0; i < COUNT_OF(words); i++)
        scene->log = mix(scene->log, words[i]);
}

static uint64_t word_of(const outside *of, const void *value)
{
    if (of->kind == 1) return 0;
    return of->kind == 0 ? *(const uint64_t *)value : ((const tracked *)value)->payload;
}

/* What all hooks may rely on: the entity lives and has the component, with this value. */
static void check_call(const outside *of, quern_world *world, quern_entity entity, const void *value)
{
    cr_assert_eq(world, of->scene->world);
    cr_assert(quern_entity_is_alive(world, entity));
    cr_assert(quern_entity_has(world, entity, of->component), "%s", quern_error_message());
    cr_assert_eq(value != NULL, of->kind != 1);
    if (value != NULL) cr_assert_eq(quern_entity_get(world, entity, of->component), value);
    if (of->kind == 2) cr_assert(tracked_is_live(value));
    cr_assert_eq(quern_entity_destroy(world, entity), QUERN_ERROR_WORLD_LOCKED);
}

static outside_object *object_of(outside *of, quern_entity entity)
{
    cr_assert_lt(quern_entity_index(entity), (uint32_t)HOOKED_SLOTS);
    return &of->objects[quern_entity_index(entity)];
}

static void on_add(quern_world *world, quern_entity entity, void *value, void *user_data)
{
    outside *of = user_data;
    outside_object *object = object_of(of, entity);
    check_call(of, world, entity, value);
    cr_assert(quern_entity_is_null(object->entity), "kind %u, slot %u: on_add twice", of->kind,
              quern_entity_index(entity));
    *object = (outside_object){entity, word_of(of, value)};
    of->count++;
    note(of->scene, of->kind, 1, entity, word_of(of, value));
}

static void on_set(quern_world *world, quern_entity entity, void *value, void *user_data)
{
    outside *of = user_data;
    outside_object *object = object_of(of, entity);
    check_call(of, world, entity, value);
    cr_assert_eq(object->entity.bits, entity.bits, "kind %u: on_set without on_add", of->kind);
    object->value = word_of(of, value);
    note(of->scene, of->kind, 2, entity, object->value);
}

static void on_remove(quern_world *world, quern_entity entity, void *value, void *user_data)
{
    outside *of = user_data;
    outside_object *object = object_of(of, entity);
    check_call(of, world, entity, value);
    cr_assert_eq(object->entity.bits, entity.bits, "kind %u: on_remove without on_add", of->kind);
    cr_assert_eq(object->value, word_of(of, value), "kind %u: on_remove with a value that was never set",
                 of->kind);
    *object = (outside_object){.value = 0};
    of->count--;
    note(of->scene, of->kind, 3, entity, word_of(of, value));
}

void hooked_register(hooked_scene *scene)
{
    static const char *const names[HOOKED_KINDS] = {"body", "mark", "sound"};
    scene->plain = setup_component(scene->world, "plain", 8, 8);
    for (uint32_t i = 0; i < HOOKED_KINDS; i++) {
        outside *of = &scene->kinds[i];
        const quern_entity_hooks hooks = {
            .on_add = on_add, .on_set = i != 1 ? on_set : NULL, .on_remove = on_remove, .user_data = of};
        quern_component_def def = {.name = names[i],
                                   .size_bytes = i == 1 ? 0 : 8,
                                   .alignment_bytes = i == 1 ? 1 : 8,
                                   .entity_hooks = hooks};
        if (i == 0) def.fields[0] = (quern_field){.name = "value", .type = QUERN_FIELD_U64, .count = 1};
        of->scene = scene;
        of->kind = i;
        if (i == 2) { /* registered first, then it gets its hooks */
            of->component = tracked_register(scene->world, names[i], &scene->counts);
            quern_type_info info;
            must(quern_component_get_info(scene->world, of->component, &info));
            def.size_bytes = info.size_bytes;
            def.alignment_bytes = info.alignment_bytes;
            def.fields[0] = info.fields[0];
            def.hooks = info.hooks;
        }
        must(quern_component_register(scene->world, &def, &of->component));
    }
    scene->parent = quern_world_parent(scene->world);
    scene->parent_component = quern_relation_component(scene->parent);
}

void hooked_open(hooked_scene *scene, const quern_allocator *allocator)
{
    memset(scene, 0, sizeof *scene);
    scene->world = make_world(.allocator = allocator != NULL ? *allocator : (quern_allocator){0});
    hooked_register(scene);
}

void hooked_check(hooked_scene *scene)
{
    const quern_component off = quern_world_disabled_tag(scene->world);
    for (uint32_t i = 0; i < HOOKED_KINDS; i++) {
        const outside *of = &scene->kinds[i];
        const quern_term terms[] = {i == 1 ? quern_term_with(of->component)
                                           : quern_term_read(of->component),
                                    quern_term_optional(off, QUERN_ACCESS_NONE)};
        quern_query *query = setup_query(scene->world, terms, 2);
        uint32_t count = 0;
        for (quern_query_iterator it = quern_query_iterate(query); quern_query_next(&it);)
            for (uint32_t row = 0; row < it.view.count; row++, count++) {
                const quern_entity entity = it.view.entities[row];
                const outside_object *object = &of->objects[quern_entity_index(entity)];
                cr_assert_eq(object->entity.bits, entity.bits, "kind %u: no object", i);
                if (i != 1)
                    cr_assert_eq(object->value,
                                 word_of(of, quern_entity_get(scene->world, entity, of->component)),
                                 "kind %u: another value", i);
            }
        cr_assert_eq(count, of->count, "kind %u: %u entities and %u objects", i, count, of->count);
        quern_query_destroy(query);
    }
}

void hooked_close(hooked_scene *scene)
{
    assert_valid(scene->world);
    quern_world_destroy(scene->world);
    for (uint32_t i = 0; i < HOOKED_KINDS; i++)
        cr_assert_eq(scene->kinds[i].count, 0u, "kind %u: objects remain", i);
    cr_assert_eq(scene->counts.broken_count, 0u);
    cr_assert_eq(tracked_live_count(&scene->counts), 0u);
}
