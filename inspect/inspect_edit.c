/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "inspect/inspect_internal.h"

#include <quern/enabled.h>
#include <quern/name.h>

#include <quern/kit/json.h>

#include <stdio.h>
#include <string.h>

/* End points that change entities and resources. Each makes one call, and marks the frame. */

/* Answers a change, and notes it on the time line with its subject. */
static void finish(quern__inspect_answer *answer, quern_result result, const char *subject)
{
    if (result == QUERN_OK) {
        const char *entity = quern__inspect_argument(&answer->arguments, "entity");
        quern__inspect_changed(answer->inspector);
        quern__inspect_note(answer->inspector, "%s %.24s %.40s", answer->route->path,
                            entity != NULL ? entity : "", subject);
    }
    quern__inspect_finish_change(answer, result);
}

static void begin_set(quern__inspect_answer *answer)
{
    quern_entity entity;
    const char *path, *value;
    if (quern__inspect_read_entity(answer, "entity", &entity) &&
        quern__inspect_read_text(answer, "path", &path) &&
        quern__inspect_read_text(answer, "value", &value))
        finish(answer, quern_entity_set_text(answer->inspector->def.world, entity, path, value), path);
}

static void begin_set_resource(quern__inspect_answer *answer)
{
    const char *path, *value;
    if (quern__inspect_read_text(answer, "path", &path) &&
        quern__inspect_read_text(answer, "value", &value))
        finish(answer, quern_resource_set_text(answer->inspector->def.world, path, value), path);
}

static void begin_add(quern__inspect_answer *answer)
{
    quern_entity entity;
    const char *name;
    if (quern__inspect_read_entity(answer, "entity", &entity) &&
        quern__inspect_read_text(answer, "component", &name))
        finish(answer, quern_entity_add_by_name(answer->inspector->def.world, entity, name), name);
}

static void begin_remove(quern__inspect_answer *answer)
{
    quern_entity entity;
    const char *name;
    if (quern__inspect_read_entity(answer, "entity", &entity) &&
        quern__inspect_read_text(answer, "component", &name))
        finish(answer, quern_entity_remove_by_name(answer->inspector->def.world, entity, name), name);
}

static void begin_merge(quern__inspect_answer *answer)
{
    const quern_json_options options = {.allocator = answer->inspector->def.allocator};
    quern_entity entity;
    if (!quern__inspect_read_entity(answer, "entity", &entity)) return;
    const char *body = answer->body != NULL ? answer->body : "";
    finish(answer,
           quern_json_read_entity(answer->inspector->def.world, entity, body, answer->body_bytes, &options),
           "");
}

/* Without a component, enables or disables the entity and its descendants. */
static void begin_enable(quern__inspect_answer *answer)
{
    quern_world *world = answer->inspector->def.world;
    const char *name = quern__inspect_argument(&answer->arguments, "component");
    quern_entity entity;
    bool is_on;
    if (!quern__inspect_read_entity(answer, "entity", &entity) ||
        !quern__inspect_read_flag(answer, "on", &is_on))
        return;
    if (name == NULL) {
        finish(answer, quern_entity_set_enabled(world, entity, is_on), is_on ? "on" : "off");
        return;
    }
    const quern_component component = quern_component_find(world, name);
    if (quern_component_is_null(component))
        quern__inspect_fail(answer, 404, "enable: the world has no component '%.80s'", name);
    else
        finish(answer, quern_entity_set_component_enabled(world, entity, component, is_on), name);
}

static void begin_name(quern__inspect_answer *answer)
{
    quern_entity entity;
    const char *name;
    if (quern__inspect_read_entity(answer, "entity", &entity) &&
        quern__inspect_read_text(answer, "name", &name))
        finish(answer, quern_entity_set_name(answer->inspector->def.world, entity, name), name);
}

/* An empty target unrelates. */
static void begin_relate(quern__inspect_answer *answer)
{
    quern_world *world = answer->inspector->def.world;
    const char *name, *text;
    quern_entity entity, target;
    if (!quern__inspect_read_entity(answer, "entity", &entity) ||
        !quern__inspect_read_text(answer, "relation", &name) ||
        !quern__inspect_read_text(answer, "target", &text))
        return;
    const quern_relation relation = quern_relation_find(world, name);
    if (quern_relation_is_null(relation)) {
        quern__inspect_fail(answer, 404, "relate: the world has no relation '%.80s'", name);
        return;
    }
    if (text[0] == '\0')
        finish(answer, quern_entity_unrelate(world, entity, relation), name);
    else if (quern__inspect_read_entity(answer, "target", &target))
        finish(answer, quern_entity_relate(world, entity, relation, target), name);
}

static void begin_create(quern__inspect_answer *answer)
{
    quern_entity entity;
    const quern_result result = quern_entity_create(answer->inspector->def.world, &entity);
    if (result != QUERN_OK) {
        quern__inspect_fail_result(answer, result);
        return;
    }
    quern__inspect_changed(answer->inspector);
    quern__inspect_note(answer->inspector, "create");
    quern__inspect_open(&answer->text, NULL, '{');
    quern__inspect_put_entity(&answer->text, "entity", entity);
    quern__inspect_close(&answer->text, '}');
}

static void begin_destroy(quern__inspect_answer *answer)
{
    quern_entity entity;
    if (quern__inspect_read_entity(answer, "entity", &entity))
        finish(answer, quern_entity_destroy(answer->inspector->def.world, entity), "");
}

const quern__inspect_route quern__inspect_edit_routes[] = {
    {"set", true, false, begin_set, NULL},
    {"set_resource", true, false, begin_set_resource, NULL},
    {"add", true, false, begin_add, NULL},
    {"remove", true, false, begin_remove, NULL},
    {"merge", true, false, begin_merge, NULL},
    {"enable", true, false, begin_enable, NULL},
    {"name", true, false, begin_name, NULL},
    {"relate", true, false, begin_relate, NULL},
    {"create", true, false, begin_create, NULL},
    {"destroy", true, false, begin_destroy, NULL},
    {NULL, false, false, NULL, NULL},
};
