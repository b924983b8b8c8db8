/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "inspect/inspect_internal.h"

#include <quern/prefab.h>

#include <quern/kit/json.h>

/* End points about the world as a whole: figures, types, resources, archetypes. */

static void write_history(quern_inspector *inspector, quern__inspect_text *text)
{
    quern_history_stats stats;
    uint64_t oldest = 0, newest = 0;
    if (inspector->def.history == NULL ||
        quern_history_get_stats(inspector->def.history, &stats) != QUERN_OK) {
        quern__inspect_put_text(text, "history", NULL);
        return;
    }
    quern__inspect_open(text, "history", '{');
    quern__inspect_put_count(text, "frame_count", stats.frame_count);
    if (quern_history_get_frames(inspector->def.history, &oldest, &newest)) {
        quern__inspect_put_count(text, "oldest", oldest);
        quern__inspect_put_count(text, "newest", newest);
    }
    quern__inspect_put_count(text, "used_bytes", stats.used_bytes);
    quern__inspect_put_count(text, "held_bytes", stats.held_bytes);
    quern__inspect_close(text, '}');
}

static void write_inspector(quern_inspector *inspector, quern__inspect_text *text)
{
    quern__inspect_open(text, "inspector", '{');
    quern__inspect_put_count(text, "budget_ns", inspector->def.budget_ns);
    quern__inspect_put_count(text, "request_count", inspector->request_count);
    quern__inspect_put_count(text, "spent_ns", inspector->spent_ns);
    quern__inspect_put_count(text, "longest_ns", inspector->longest_ns);
    quern__inspect_put_flag(text, "read_only", inspector->def.is_read_only);
    quern__inspect_put_flag(text, "has_schedule", inspector->def.schedule != NULL);
    quern__inspect_put_flag(text, "has_trace", inspector->def.trace != NULL);
    quern__inspect_close(text, '}');
}

static void begin_world(quern__inspect_answer *answer)
{
    quern_inspector *inspector = answer->inspector;
    quern__inspect_text *text = &answer->text;
    quern_world_stats stats;
    const quern_result result = quern_world_get_stats(inspector->def.world, &stats);
    if (result != QUERN_OK) {
        quern__inspect_fail_result(answer, result);
        return;
    }
    quern__inspect_open(text, NULL, '{');
    quern__inspect_put_text(text, "title", inspector->def.title);
    quern__inspect_put_count(text, "frame", inspector->frame);
    quern__inspect_put_flag(text, "paused", inspector->is_paused);
    quern__inspect_put_count(text, "entity_count", stats.entity_count);
    quern__inspect_put_count(text, "archetype_count", stats.archetype_count);
    quern__inspect_put_count(text, "component_count", stats.component_count);
    quern__inspect_put_count(text, "relation_count", stats.relation_count);
    quern__inspect_put_count(text, "resource_count", quern_resource_count(inspector->def.world));
    quern__inspect_put_count(text, "event_type_count", quern_event_count(inspector->def.world));
    quern__inspect_put_count(text, "name_count", stats.name_count);
    quern__inspect_put_count(text, "prefab_count", stats.prefab_count);
    quern__inspect_put_count(text, "edge_count", stats.edge_count);
    quern__inspect_put_count(text, "chunk_count", stats.chunk_count);
    quern__inspect_put_count(text, "chunk_free_count", stats.chunk_free_count);
    quern__inspect_put_count(text, "held_bytes", stats.held_bytes);
    quern__inspect_put_count(text, "used_bytes", stats.used_bytes);
    quern__inspect_put_count(text, "link_bytes", stats.link_bytes);
    quern__inspect_put_count(text, "event_bytes", stats.event_bytes);
    write_history(inspector, text);
    write_inspector(inspector, text);
    quern__inspect_close(text, '}');
}

static void begin_hash(quern__inspect_answer *answer)
{
    quern__inspect_open(&answer->text, NULL, '{');
    quern__inspect_put_count(&answer->text, "frame", answer->inspector->frame);
    quern__inspect_put_hash(&answer->text, "hash", quern_world_hash(answer->inspector->def.world));
    quern__inspect_close(&answer->text, '}');
}

/* --------------------------------------------------------------------------------------------- types */

static void write_field(quern__inspect_text *text, const quern_field *field)
{
    static const char *const names[] = {
        [QUERN_FIELD_BOOL] = "bool", [QUERN_FIELD_I8] = "i8",   [QUERN_FIELD_U8] = "u8",
        [QUERN_FIELD_I16] = "i16",   [QUERN_FIELD_U16] = "u16", [QUERN_FIELD_I32] = "i32",
        [QUERN_FIELD_U32] = "u32",   [QUERN_FIELD_I64] = "i64", [QUERN_FIELD_U64] = "u64",
        [QUERN_FIELD_F32] = "f32",   [QUERN_FIELD_F64] = "f64", [QUERN_FIELD_ENTITY] = "entity",
        [QUERN_FIELD_TEXT] = "text"};
    quern__inspect_open(text, NULL, '{');
    quern__inspect_put_text(text, "name", field->name);
    quern__inspect_put_text(text, "type", names[field->type]);
    quern__inspect_put_count(text, "count", field->count);
    if (field->unit != NULL) quern__inspect_put_text(text, "unit", field->unit);
    if (field->minimum != 0 || field->maximum != 0) {
        quern__inspect_put_real(text, "minimum", field->minimum);
        quern__inspect_put_real(text, "maximum", field->maximum);
    }
    if (field->is_hidden) quern__inspect_put_flag(text, "hidden", true);
    if (field->is_read_only) quern__inspect_put_flag(text, "read_only", true);
    if (field->values != NULL) {
        quern__inspect_open(text, "values", '[');
        for (const quern_named_value *value = field->values; value->name != NULL; value++)
            quern__inspect_put_text(text, NULL, value->name);
        quern__inspect_close(text, ']');
    }
    quern__inspect_close(text, '}');
}

static void write_type(const quern_world *world, quern__inspect_text *text, const quern_type_info *type)
{
    const quern_hooks *hooks = &type->hooks;
    quern_flag_info flag;
    quern__inspect_open(text, NULL, '{');
    quern__inspect_put_text(text, "name", type->name);
    quern__inspect_put_text(text, "type", type->type_name);
    quern__inspect_put_count(text, "size_bytes", type->size_bytes);
    quern__inspect_put_count(text, "alignment_bytes", type->alignment_bytes);
    quern__inspect_put_flag(text, "relation", type->is_relation);
    quern__inspect_put_flag(text, "managed", type->is_managed);
    quern__inspect_put_flag(text, "hidden", type->is_hidden);
    quern__inspect_put_flag(text, "hooks",
                            hooks->construct != NULL || hooks->copy != NULL || hooks->move != NULL ||
                                hooks->destroy != NULL);
    quern__inspect_open(text, "flags", '[');
    for (uint32_t i = 0; i < quern_component_flag_count(); i++)
        if (quern_component_flag_get_info(i, &flag) == QUERN_OK && quern_type_has_flag(type, &flag))
            quern__inspect_put_text(text, NULL, flag.name);
    quern__inspect_close(text, ']');
    quern__inspect_open(text, "required", '[');
    for (uint32_t i = 0; i < type->required_count; i++)
        quern__inspect_put_text(text, NULL, quern_component_name(world, type->required[i]));
    quern__inspect_close(text, ']');
    quern__inspect_open(text, "fields", '[');
    for (uint32_t i = 0; i < type->field_count; i++)
        write_field(text, &type->fields[i]);
    quern__inspect_close(text, ']');
    quern__inspect_close(text, '}');
}

static void write_relation(const quern_world *world, quern__inspect_text *text, uint32_t i)
{
    static const char *const policies[] = {"destroy", "unrelate", "refuse"};
    quern_relation_def def;
    if (quern_relation_get_def(world, quern_relation_at(world, i), &def) != QUERN_OK) return;
    quern__inspect_open(text, NULL, '{');
    quern__inspect_put_text(text, "name", def.name);
    quern__inspect_put_flag(text, "levels", def.levels);
    quern__inspect_put_flag(text, "ordered", def.ordered);
    quern__inspect_put_flag(text, "many", def.many);
    quern__inspect_put_text(text, "on_target_destroyed",
                            (uint32_t)def.on_target_destroyed < 3 ? policies[def.on_target_destroyed]
                                                                  : NULL);
    quern__inspect_close(text, '}');
}

/* The lists of the answer, in order. */
typedef struct type_list {
    const char *key;
    uint32_t (*count)(const quern_world *world);
} type_list;

static const type_list lists[] = {{"components", quern_component_count},
                                  {"resources", quern_resource_count},
                                  {"events", quern_event_count},
                                  {"relations", quern_relation_count}};

enum { LIST_COUNT = sizeof lists / sizeof lists[0] };

static void begin_types(quern__inspect_answer *answer)
{
    quern__inspect_open(&answer->text, NULL, '{');
    quern__inspect_open(&answer->text, lists[0].key, '[');
}

static void write_listed(const quern_world *world, quern__inspect_text *text, uint32_t list, uint32_t i)
{
    quern_type_info type;
    quern_result result = QUERN_ERROR_UNAVAILABLE;
    if (list == 0) result = quern_component_get_info(world, quern_component_at(world, i), &type);
    if (list == 1) result = quern_resource_get_info(world, quern_resource_at(world, i), &type);
    if (list == 2) result = quern_event_get_info(world, quern_event_at(world, i), &type);
    if (list == 3) write_relation(world, text, i);
    if (result == QUERN_OK) write_type(world, text, &type);
}

static bool step_types(quern__inspect_answer *answer)
{
    const quern_world *world = answer->inspector->def.world;
    if (answer->at < lists[answer->list].count(world)) {
        write_listed(world, &answer->text, answer->list, answer->at++);
        return false;
    }
    quern__inspect_close(&answer->text, ']');
    answer->at = 0;
    if (++answer->list < LIST_COUNT) {
        quern__inspect_open(&answer->text, lists[answer->list].key, '[');
        return false;
    }
    quern__inspect_close(&answer->text, '}');
    return true;
}

/* ----------------------------------------------------------------------------------------- resources */

static void begin_resources(quern__inspect_answer *answer)
{
    quern__inspect_open(&answer->text, NULL, '{');
    quern__inspect_open(&answer->text, "resources", '[');
}

static bool step_resources(quern__inspect_answer *answer)
{
    quern_world *world = answer->inspector->def.world;
    quern__inspect_text *text = &answer->text;
    quern_type_info type;
    if (answer->at >= quern_resource_count(world)) {
        quern__inspect_close(text, ']');
        quern__inspect_close(text, '}');
        return true;
    }
    const quern_resource resource = quern_resource_at(world, answer->at++);
    if (quern_resource_get_info(world, resource, &type) != QUERN_OK) return false;
    quern__inspect_open(text, NULL, '{');
    quern__inspect_put_text(text, "name", type.name);
    quern__inspect_put_count(text, "size_bytes", type.size_bytes);
    const void *value = type.field_count > 0 ? quern_resource_get(world, resource) : NULL;
    const size_t size_bytes = text->bytes.size_bytes;
    if (value == NULL ||
        quern_json_write_value(world, &type, value, quern__inspect_put_json(text, "value")) != QUERN_OK) {
        text->bytes.size_bytes = size_bytes;
        quern__inspect_put_text(text, "value", NULL);
    }
    quern__inspect_close(text, '}');
    return false;
}

/* ---------------------------------------------------------------------------------------- archetypes */

static void begin_archetypes(quern__inspect_answer *answer)
{
    uint64_t first, limit;
    quern_world_stats stats;
    if (!quern__inspect_read_count(answer, "offset", 0, UINT32_MAX, &first) ||
        !quern__inspect_read_count(answer, "limit", 100, QUERN_INSPECT_MAX_LIST, &limit))
        return;
    const quern_result result = quern_world_get_stats(answer->inspector->def.world, &stats);
    if (result != QUERN_OK) {
        quern__inspect_fail_result(answer, result);
        return;
    }
    answer->at = (uint32_t)first;
    answer->left = (uint32_t)limit;
    quern__inspect_open(&answer->text, NULL, '{');
    quern__inspect_put_count(&answer->text, "count", stats.archetype_count);
    quern__inspect_put_count(&answer->text, "offset", first);
    quern__inspect_open(&answer->text, "archetypes", '[');
    answer->inner = stats.archetype_count;
}

/* All chunks of an archetype but the last one are full, so the counts describe each of them. */
static void write_archetype(const quern_world *world, quern__inspect_text *text, uint32_t index)
{
    quern_archetype_stats stats;
    quern_component components[QUERN_MAX_ENTITY_COMPONENTS];
    if (quern_world_get_archetype_stats(world, index, &stats) != QUERN_OK) return;
    const uint32_t count =
        quern_world_list_archetype_components(world, index, components, QUERN_MAX_ENTITY_COMPONENTS);
    quern__inspect_open(text, NULL, '{');
    quern__inspect_put_count(text, "index", index);
    quern__inspect_open(text, "components", '[');
    for (uint32_t i = 0; i < count && i < QUERN_MAX_ENTITY_COMPONENTS; i++)
        quern__inspect_put_text(text, NULL, quern_component_name(world, components[i]));
    quern__inspect_close(text, ']');
    quern__inspect_put_count(text, "entity_count", stats.entity_count);
    quern__inspect_put_count(text, "row_bytes", stats.row_bytes);
    quern__inspect_put_count(text, "row_capacity", stats.row_capacity);
    quern__inspect_put_count(text, "chunk_count", stats.chunk_count);
    quern__inspect_put_count(text, "held_count", stats.held_count);
    quern__inspect_put_real(text, "occupancy", stats.occupancy);
    quern__inspect_close(text, '}');
}

static bool step_archetypes(quern__inspect_answer *answer)
{
    quern_world_stats stats;
    const quern_world *world = answer->inspector->def.world;
    if (answer->at >= answer->inner || answer->left == 0 ||
        quern_world_get_stats(world, &stats) != QUERN_OK || answer->at >= stats.archetype_count) {
        quern__inspect_close(&answer->text, ']');
        quern__inspect_close(&answer->text, '}');
        return true;
    }
    for (uint32_t i = 0; i < 16 && answer->left > 0 && answer->at < stats.archetype_count;
         i++, answer->left--)
        write_archetype(world, &answer->text, answer->at++);
    return false;
}

/* ------------------------------------------------------------------------------------------- prefabs */

static void begin_prefabs(quern__inspect_answer *answer)
{
    const quern_world *world = answer->inspector->def.world;
    quern_prefab prefabs[QUERN_INSPECT_MAX_LIST];
    const uint32_t count = quern_world_list_prefabs(world, prefabs, QUERN_INSPECT_MAX_LIST);
    quern__inspect_open(&answer->text, NULL, '{');
    quern__inspect_put_count(&answer->text, "count", count);
    quern__inspect_open(&answer->text, "prefabs", '[');
    for (uint32_t i = 0; i < count && i < QUERN_INSPECT_MAX_LIST; i++) {
        quern__inspect_open(&answer->text, NULL, '{');
        quern__inspect_put_count(&answer->text, "index", (uint32_t)prefabs[i].bits);
        quern__inspect_put_count(&answer->text, "member_count",
                                 quern_prefab_member_count(world, prefabs[i]));
        quern__inspect_put_flag(&answer->text, "enabled", quern_prefab_is_enabled(world, prefabs[i]));
        quern__inspect_close(&answer->text, '}');
    }
    quern__inspect_close(&answer->text, ']');
    quern__inspect_close(&answer->text, '}');
}

const quern__inspect_route quern__inspect_world_routes[] = {
    {"world", false, false, begin_world, NULL},
    {"hash", false, false, begin_hash, NULL},
    {"types", false, false, begin_types, step_types},
    {"resources", false, false, begin_resources, step_resources},
    {"archetypes", false, false, begin_archetypes, step_archetypes},
    {"prefabs", false, false, begin_prefabs, NULL},
    {NULL, false, false, NULL, NULL},
};
