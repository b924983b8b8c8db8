/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* End points about what a world holds: figures, types, resources, archetypes, prefabs and entities; and those that
 * change entities and resources.
 *
 * A list of entities first stores the handles of its page, then writes entry by entry. The search by name visits all
 * entities, some in each step, and keeps the first matches by name. A change makes one call, and marks the frame. */
#include "inspect/inspect_internal.h"
#include "kit/json_internal.h"

#include <quern/enabled.h>
#include <quern/name.h>
#include <quern/prefab.h>

#include <string.h>

/* -------------------------------------------------------------------------------------------- world */

static void begin_world(quern__inspect_answer *answer)
{
    quern_inspector *inspector = answer->inspector;
    quern_history *history = inspector->def.history;
    quern__inspect_text *text = &answer->text;
    quern_world_stats stats;
    quern_history_stats kept;
    uint64_t oldest, newest;
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
    quern__inspect_put_count(text, "resource_count",
                             quern_type_count(inspector->def.world, QUERN_TYPE_RESOURCE));
    quern__inspect_put_count(text, "event_type_count",
                             quern_type_count(inspector->def.world, QUERN_TYPE_EVENT));
    quern__inspect_put_count(text, "name_count", stats.name_count);
    quern__inspect_put_count(text, "prefab_count", stats.prefab_count);
    quern__inspect_put_count(text, "edge_count", stats.edge_count);
    quern__inspect_put_count(text, "chunk_count", stats.chunk_count);
    quern__inspect_put_count(text, "chunk_free_count", stats.chunk_free_count);
    quern__inspect_put_count(text, "held_bytes", stats.held_bytes);
    quern__inspect_put_count(text, "used_bytes", stats.used_bytes);
    quern__inspect_put_count(text, "link_bytes", stats.link_bytes);
    quern__inspect_put_count(text, "event_bytes", stats.event_bytes);
    if (history != NULL && quern_history_get_stats(history, &kept) == QUERN_OK) {
        quern__inspect_open(text, "history", '{');
        quern__inspect_put_count(text, "frame_count", kept.frame_count);
        if (quern_history_get_frames(history, &oldest, &newest)) {
            quern__inspect_put_count(text, "oldest", oldest);
            quern__inspect_put_count(text, "newest", newest);
        }
        quern__inspect_put_count(text, "used_bytes", kept.used_bytes);
        quern__inspect_put_count(text, "held_bytes", kept.held_bytes);
        quern__inspect_close(text, '}');
    } else {
        quern__inspect_put_text(text, "history", NULL);
    }
    quern__inspect_open(text, "inspector", '{');
    quern__inspect_put_count(text, "budget_ns", inspector->def.budget_ns);
    quern__inspect_put_count(text, "request_count", inspector->request_count);
    quern__inspect_put_count(text, "spent_ns", inspector->spent_ns);
    quern__inspect_put_count(text, "longest_ns", inspector->longest_ns);
    quern__inspect_put_count(text, "skipped_count", inspector->skipped_count);
    pthread_mutex_lock(&inspector->exchange.mutex);
    const uint64_t dropped_count = inspector->exchange.dropped_client_count;
    pthread_mutex_unlock(&inspector->exchange.mutex);
    quern__inspect_put_count(text, "dropped_client_count", dropped_count);
    quern__inspect_put_flag(text, "read_only", inspector->def.is_read_only);
    quern__inspect_put_flag(text, "has_schedule", inspector->def.schedule != NULL);
    quern__inspect_put_flag(text, "has_trace", inspector->def.trace != NULL);
    quern__inspect_open(text, "panels", '[');
    for (uint32_t i = 0; i < QUERN_INSPECT_MAX_PANELS && inspector->def.panels[i].title != NULL; i++)
        quern__inspect_put_text(text, NULL, inspector->def.panels[i].title);
    quern__inspect_close(text, ']');
    quern__inspect_close(text, '}');
    quern__inspect_close(text, '}');
}

static void begin_panel(quern__inspect_answer *answer)
{
    const quern_inspect_panel *panels = answer->inspector->def.panels;
    quern__inspect_text *text = &answer->text;
    const char *title;
    uint32_t i = 0;
    if (!quern__inspect_read_text(answer, "title", &title)) return;
    while (i < QUERN_INSPECT_MAX_PANELS && panels[i].title != NULL && strcmp(panels[i].title, title) != 0)
        i++;
    if (i == QUERN_INSPECT_MAX_PANELS || panels[i].title == NULL) {
        quern__inspect_fail(answer, 404, "panel: the program has no panel '%.80s'", title);
        return;
    }
    quern__inspect_open(text, NULL, '{');
    quern__inspect_put_text(text, "title", title);
    const size_t size_bytes = text->bytes.size_bytes;
    const quern_sink sink = quern__inspect_put_json(text, "value");
    const size_t begin_bytes = text->bytes.size_bytes;
    const quern_result result = panels[i].write(panels[i].user_data, sink);
    if (text->is_out_of_memory || text->is_too_long) return; /* the sink failed: see check_text */
    if (result != QUERN_OK) {
        quern__inspect_fail_result(answer, result);
        return;
    }
    quern__inspect_mend_text(text, begin_bytes);
    if (text->bytes.size_bytes == begin_bytes) {
        text->bytes.size_bytes = size_bytes;
        quern__inspect_put_text(text, "value", NULL);
    }
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
    quern__inspect_open(text, NULL, '{');
    quern__inspect_put_text(text, "name", field->name);
    quern__inspect_put_text(text, "type", quern__json_field_type(field->type));
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
        quern__inspect_open(text, "numbers", '[');
        for (const quern_named_value *value = field->values; value->name != NULL; value++)
            quern__inspect_put_integer(text, NULL, value->value);
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

static void write_relation(const quern_world *world, quern__inspect_text *text, quern_relation relation)
{
    static const char *const policies[] = {"destroy", "unrelate", "refuse"};
    quern_relation_def def;
    if (quern_relation_get_def(world, relation, &def) != QUERN_OK) return;
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

/* The lists of the answer, by quern_type_kind. */
static const char *const lists[] = {"components", "resources", "events", "relations"};

enum { LIST_COUNT = sizeof lists / sizeof lists[0] };

static void begin_types(quern__inspect_answer *answer)
{
    quern__inspect_open(&answer->text, NULL, '{');
    quern__inspect_open(&answer->text, lists[0], '[');
}

static bool step_types(quern__inspect_answer *answer)
{
    const quern_world *world = answer->inspector->def.world;
    quern_type_info type;
    const quern_type_kind kind = (quern_type_kind)answer->list;
    if (answer->at < quern_type_count(world, kind)) {
        if (quern_type_at(world, kind, answer->at++, &type) != QUERN_OK) return false;
        if (kind == QUERN_TYPE_RELATION)
            write_relation(world, &answer->text, type.relation);
        else
            write_type(world, &answer->text, &type);
        return false;
    }
    quern__inspect_close(&answer->text, ']');
    answer->at = 0;
    if (++answer->list < LIST_COUNT) {
        quern__inspect_open(&answer->text, lists[answer->list], '[');
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
    if (answer->at >= quern_type_count(world, QUERN_TYPE_RESOURCE)) {
        quern__inspect_close(text, ']');
        quern__inspect_close(text, '}');
        return true;
    }
    if (quern_type_at(world, QUERN_TYPE_RESOURCE, answer->at++, &type) != QUERN_OK) return false;
    quern__inspect_open(text, NULL, '{');
    quern__inspect_put_text(text, "name", type.name);
    quern__inspect_put_count(text, "size_bytes", type.size_bytes);
    const void *value = type.field_count > 0 ? quern_resource_get(world, type.resource) : NULL;
    quern__inspect_put_value(text, "value", world, &type, value);
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

/* All chunks of an archetype but the last one are full, so the counts describe each of them. Returns false if the archetype
 * has been removed since the answer began: others have its number then. */
static bool write_archetype(const quern_world *world, quern__inspect_text *text, uint32_t index)
{
    quern_archetype_stats stats;
    quern_component components[QUERN_MAX_ENTITY_COMPONENTS];
    if (quern_world_get_archetype_stats(world, index, &stats) != QUERN_OK) return false;
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
    return true;
}

static bool step_archetypes(quern__inspect_answer *answer)
{
    const quern_world *world = answer->inspector->def.world;
    if (answer->at >= answer->inner || answer->left == 0) {
        quern__inspect_close(&answer->text, ']');
        quern__inspect_close(&answer->text, '}');
        return true;
    }
    for (uint32_t i = 0; i < 16 && answer->left > 0 && answer->at < answer->inner; i++, answer->left--)
        if (!write_archetype(world, &answer->text, answer->at++)) answer->left = 1;
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

/* ---------------------------------------------------------------------------------------- an entity */

static void write_values(quern__inspect_answer *answer, quern_entity entity)
{
    quern__inspect_text *text = &answer->text;
    const size_t size_bytes = text->bytes.size_bytes;
    const quern_result result = quern_json_write_entity(answer->inspector->def.world, entity,
                                                        quern__inspect_put_json(text, "values"));
    if (result == QUERN_OK) return;
    text->bytes.size_bytes = size_bytes;
    quern__inspect_put_text(text, "values", NULL);
    quern__inspect_put_text(text, "values_error", quern_error_message());
}

static quern_relation hierarchy_of(const quern_world *world)
{
    return quern_relation_find(world, "parent");
}

void quern__inspect_write_entry(quern__inspect_answer *answer, quern_entity entity, bool has_values)
{
    const quern_world *world = answer->inspector->def.world;
    quern__inspect_text *text = &answer->text;
    const bool is_alive = quern_entity_is_alive(world, entity);
    quern__inspect_open(text, NULL, '{');
    quern__inspect_put_entity(text, "entity", entity);
    quern__inspect_put_flag(text, "alive", is_alive);
    if (is_alive) {
        const quern_relation parent = hierarchy_of(world);
        quern__inspect_put_text(text, "name", quern_entity_name(world, entity));
        quern__inspect_put_flag(text, "enabled", quern_entity_is_enabled(world, entity));
        quern__inspect_put_count(
            text, "child_count",
            quern_relation_is_null(parent) ? 0 : quern_entity_source_count(world, entity, parent));
        if (has_values) write_values(answer, entity);
    }
    quern__inspect_close(text, '}');
}

static void write_targets(quern__inspect_text *text, const quern_world *world, quern_entity entity,
                          quern_relation relation, bool is_many)
{
    quern_entity targets[64];
    uint32_t count = is_many ? quern_entity_list_targets(world, entity, relation, targets, 64) : 1;
    if (!is_many) targets[0] = quern_entity_target(world, entity, relation);
    quern__inspect_put_count(text, "target_count", is_many ? count : !quern_entity_is_null(targets[0]));
    quern__inspect_open(text, "targets", '[');
    for (uint32_t i = 0; i < count && i < 64; i++) {
        if (quern_entity_is_null(targets[i])) continue;
        quern__inspect_open(text, NULL, '{');
        quern__inspect_put_entity(text, "entity", targets[i]);
        quern__inspect_put_path(text, world, targets[i]);
        quern__inspect_close(text, '}');
    }
    quern__inspect_close(text, ']');
}

static void write_relations(quern__inspect_text *text, const quern_world *world, quern_entity entity)
{
    quern__inspect_open(text, "relations", '[');
    for (uint32_t i = 0; i < quern_type_count(world, QUERN_TYPE_RELATION); i++) {
        quern_type_info type;
        quern_relation_def def;
        if (quern_type_at(world, QUERN_TYPE_RELATION, i, &type) != QUERN_OK ||
            quern_relation_get_def(world, type.relation, &def) != QUERN_OK)
            continue;
        const quern_relation relation = type.relation;
        const uint32_t source_count = quern_entity_source_count(world, entity, relation);
        if (source_count == 0 && quern_entity_target_count(world, entity, relation) == 0) continue;
        quern__inspect_open(text, NULL, '{');
        quern__inspect_put_text(text, "relation", def.name);
        quern__inspect_put_count(text, "source_count", source_count);
        write_targets(text, world, entity, relation, def.many);
        quern__inspect_close(text, '}');
    }
    quern__inspect_close(text, ']');
}

static void begin_entity(quern__inspect_answer *answer)
{
    const quern_world *world = answer->inspector->def.world;
    quern__inspect_text *text = &answer->text;
    quern_entity entity;
    if (!quern__inspect_read_entity(answer, "entity", &entity)) return;
    quern__inspect_open(text, NULL, '{');
    quern__inspect_put_entity(text, "entity", entity);
    quern__inspect_put_count(text, "index", quern_entity_index(entity));
    quern__inspect_put_count(text, "use_count", quern_entity_use_count(world, entity));
    quern__inspect_put_text(text, "name", quern_entity_name(world, entity));
    quern__inspect_put_path(text, world, entity);
    quern__inspect_put_flag(text, "enabled", quern_entity_is_enabled(world, entity));
    quern__inspect_put_count(text, "frame", answer->inspector->frame);
    /* Components that the world maintains itself, and disabled ones, are in this list, but not among the values. */
    quern_component components[QUERN_MAX_ENTITY_COMPONENTS];
    const uint32_t count =
        quern_entity_list_components(world, entity, components, QUERN_MAX_ENTITY_COMPONENTS);
    quern__inspect_open(text, "components", '[');
    for (uint32_t i = 0; i < count && i < QUERN_MAX_ENTITY_COMPONENTS; i++) {
        quern__inspect_open(text, NULL, '{');
        quern__inspect_put_text(text, "name", quern_component_name(world, components[i]));
        quern__inspect_put_flag(text, "enabled",
                                quern_entity_is_component_enabled(world, entity, components[i]));
        quern__inspect_close(text, '}');
    }
    quern__inspect_close(text, ']');
    write_values(answer, entity);
    write_relations(text, world, entity);
    quern__inspect_close(text, '}');
}

/* -------------------------------------------------------------------------------- lists of entities */

enum { LIST_ENTRIES_PER_STEP = 8, LIST_PAGE = 50, LIST_CALLS = 4 };

/* What `list` of an answer says while it writes a list. */
enum { LIST_WRITES = 0, LIST_SEARCHES = 1 };

static bool read_page(quern__inspect_answer *answer, uint64_t *out_offset)
{
    uint64_t limit;
    if (!quern__inspect_read_count(answer, "offset", 0, UINT32_MAX, out_offset) ||
        !quern__inspect_read_count(answer, "limit", LIST_PAGE, QUERN_INSPECT_MAX_LIST, &limit))
        return false;
    answer->left = (uint32_t)limit;
    return quern__inspect_reserve_page(answer, limit > 0 ? (uint32_t)limit : 1);
}

static void begin_list(quern__inspect_answer *answer, uint64_t count, uint64_t offset)
{
    quern__inspect_open(&answer->text, NULL, '{');
    if (count == UINT64_MAX)
        quern__inspect_put_text(&answer->text, "count", NULL);
    else
        quern__inspect_put_count(&answer->text, "count", count);
    quern__inspect_put_count(&answer->text, "offset", offset);
    quern__inspect_open(&answer->text, "entities", '[');
}

/* Limits the query to handles: a term with write access would mark what it shows as changed. Without a term on the tag
 * of disabled entities, queries leave these out. Tools show them, unless the text names the tag. */
static void show_only_handles(const quern_world *world, quern_query_def *def)
{
    const quern_component disabled = quern_component_find(world, "disabled");
    uint32_t count = 0;
    bool is_named = quern_component_is_null(disabled);
    for (; count < QUERN_MAX_TERMS && def->terms[count].match != 0; count++) {
        def->terms[count].access = QUERN_ACCESS_NONE;
        is_named = is_named || quern_component_equal(def->terms[count].component, disabled);
    }
    if (is_named) return;
    if (count < QUERN_MAX_TERMS) def->terms[count] = quern_term_optional(disabled, QUERN_ACCESS_NONE);
}

quern_result quern__inspect_query_create(quern_world *world, const char *text, quern_query **out_query)
{
    quern_query_def def = {0};
    const quern_result result = quern_query_parse(world, text, &def);
    if (result != QUERN_OK)
        return result == QUERN_ERROR_UNKNOWN_COMPONENT ? QUERN_ERROR_INVALID_ARGUMENT : result;
    show_only_handles(world, &def);
    return quern_query_create(world, &def, out_query);
}

static void list_matching(quern__inspect_answer *answer, const char *query_text)
{
    quern_query *query;
    uint64_t offset, passed = 0;
    if (!read_page(answer, &offset)) return;
    const quern_result result =
        quern__inspect_query_create(answer->inspector->def.world, query_text, &query);
    if (result != QUERN_OK) {
        quern__inspect_fail_result(answer, result);
        return;
    }
    begin_list(answer, quern_query_count(query), offset);
    quern_query_iterator iterator = quern_query_iterate(query);
    while (answer->entity_count < answer->left && quern_query_next(&iterator)) {
        const uint32_t count = iterator.view.count;
        uint32_t row = passed + count <= offset ? count : passed < offset ? (uint32_t)(offset - passed) : 0;
        for (; row < count && answer->entity_count < answer->left; row++)
            answer->entities[answer->entity_count++] = iterator.view.entities[row];
        passed += count;
    }
    quern_query_iterator_end(&iterator);
    quern_query_destroy(query);
}

/* A prefix with '/' is the beginning of a path: the children of the path before the last '/' match. With the argument
 * `anywhere`, names match that have the text in any place, and '/' means nothing. */
static void list_named(quern__inspect_answer *answer, const char *prefix)
{
    const quern_world *world = answer->inspector->def.world;
    quern__inspect_search *search = &answer->search;
    uint64_t offset;
    char path[QUERN__INSPECT_ARGUMENT_BYTES];
    uint64_t anywhere;
    if (!read_page(answer, &offset) || !quern__inspect_read_count(answer, "anywhere", 0, 1, &anywhere))
        return;
    const char *last = anywhere == 0 ? strrchr(prefix, '/') : NULL;
    *search = (quern__inspect_search){.prefix = last != NULL ? last + 1 : prefix,
                                      .is_anywhere = anywhere != 0,
                                      .has_parent = last != NULL};
    answer->list = LIST_SEARCHES;
    if (last == NULL) return;
    memcpy(path, prefix, (size_t)(last - prefix));
    path[last - prefix] = '\0';
    if (last == prefix) return; /* roots */
    if (prefix[0] != '/' || quern_entity_from_text(world, path, &search->parent) != QUERN_OK ||
        !quern_entity_is_alive(world, search->parent))
        search->cursor = QUERN_LIST_END; /* nothing matches */
}

static char lower(char byte)
{
    if (byte < 'A' || byte > 'Z') return byte;
    return (char)(byte + 'a' - 'A');
}

/* Without regard to the case of ASCII letters. */
static bool contains(const char *text, const char *part)
{
    for (; *text != '\0'; text++) {
        size_t i = 0;
        while (part[i] != '\0' && lower(text[i]) == lower(part[i]))
            i++;
        if (part[i] == '\0') return true;
    }
    return part[0] == '\0';
}

static bool is_found(const quern_world *world, const quern__inspect_search *search, const char *name,
                     quern_entity entity)
{
    if (name == NULL) return false;
    if (search->is_anywhere) return contains(name, search->prefix);
    if (strncmp(name, search->prefix, strlen(search->prefix)) != 0) return false;
    if (!search->has_parent) return true;
    const quern_relation relation = hierarchy_of(world);
    const quern_entity parent = quern_relation_is_null(relation)
                                    ? quern_entity_null()
                                    : quern_entity_target(world, entity, relation);
    return quern_entity_equal(parent, search->parent);
}

/* Returns whether a name precedes that of a kept entity. An entity that has lost its name meanwhile is last. */
static bool precedes(const quern_world *world, const char *name, quern_entity kept)
{
    const char *other = quern_entity_is_alive(world, kept) ? quern_entity_name(world, kept) : NULL;
    return other == NULL || strcmp(name, other) < 0;
}

/* Inserts a match in the order of names; entities arrive in the order of their slots. Drops the last one if the page is
 * full. */
static void keep_match(quern__inspect_answer *answer, const char *name, quern_entity entity)
{
    const quern_world *world = answer->inspector->def.world;
    uint32_t low = 0, high = answer->entity_count;
    answer->search.match_count++;
    if (answer->entity_count == answer->left &&
        (answer->left == 0 || !precedes(world, name, answer->entities[answer->left - 1])))
        return;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (precedes(world, name, answer->entities[middle]))
            high = middle;
        else
            low = middle + 1;
    }
    if (answer->entity_count < answer->left) answer->entity_count++;
    memmove(answer->entities + low + 1, answer->entities + low,
            (answer->entity_count - 1 - low) * sizeof *answer->entities);
    answer->entities[low] = entity;
}

/* Visits some entities. The names stay where they are during a step. */
static void search_names(quern__inspect_answer *answer)
{
    const quern_world *world = answer->inspector->def.world;
    quern__inspect_search *search = &answer->search;
    quern_entity visited[QUERN__INSPECT_SEARCHED_PER_STEP];
    const uint32_t count = search->cursor == QUERN_LIST_END
                               ? 0
                               : quern_world_list_entities_from(world, &search->cursor, visited,
                                                                QUERN__INSPECT_SEARCHED_PER_STEP);
    for (uint32_t i = 0; i < count; i++) {
        const char *name = quern_entity_name(world, visited[i]);
        if (is_found(world, search, name, visited[i])) keep_match(answer, name, visited[i]);
    }
    if (search->cursor != QUERN_LIST_END) return;
    answer->list = LIST_WRITES;
    begin_list(answer, search->match_count, 0);
}

static bool step_list(quern__inspect_answer *answer)
{
    const char *values = quern__inspect_argument(&answer->arguments, "values");
    const bool has_values = values != NULL && strcmp(values, "1") == 0;
    if (answer->list == LIST_SEARCHES) {
        search_names(answer);
        return false;
    }
    for (uint32_t i = 0; i < LIST_ENTRIES_PER_STEP && answer->at < answer->entity_count; i++)
        quern__inspect_write_entry(answer, answer->entities[answer->at++], has_values);
    if (answer->at < answer->entity_count) return false;
    quern__inspect_close(&answer->text, ']');
    quern__inspect_close(&answer->text, '}');
    return true;
}

/* All entities, from the slot `cursor` on. Where many slots are empty, the page has fewer entries than it could. */
static void list_all(quern__inspect_answer *answer)
{
    uint64_t offset, cursor;
    if (!read_page(answer, &offset) || !quern__inspect_read_count(answer, "cursor", 0, UINT32_MAX, &cursor))
        return;
    uint32_t slot = (uint32_t)cursor;
    for (int i = 0; i < LIST_CALLS && slot != QUERN_LIST_END && answer->entity_count < answer->left; i++) {
        const uint32_t room = answer->left - answer->entity_count;
        answer->entity_count += quern_world_list_entities_from(
            answer->inspector->def.world, &slot, answer->entities + answer->entity_count, room);
    }
    quern__inspect_open(&answer->text, NULL, '{');
    if (slot == QUERN_LIST_END)
        quern__inspect_put_text(&answer->text, "next_cursor", NULL);
    else
        quern__inspect_put_count(&answer->text, "next_cursor", slot);
    quern__inspect_open(&answer->text, "entities", '[');
}

static void begin_entities(quern__inspect_answer *answer)
{
    const char *query = quern__inspect_argument(&answer->arguments, "query");
    const char *prefix = quern__inspect_argument(&answer->arguments, "name");
    if (query != NULL && prefix != NULL)
        quern__inspect_fail(answer, 400, "entities: both 'query' and 'name' are set: use one of them");
    else if (query != NULL)
        list_matching(answer, query);
    else if (prefix != NULL)
        list_named(answer, prefix);
    else
        list_all(answer);
}

/* Sources of an entity, from the one after `after` on. So a page costs the same wherever it is. */
static void begin_sources(quern__inspect_answer *answer)
{
    const quern_world *world = answer->inspector->def.world;
    const char *name = quern__inspect_argument(&answer->arguments, "relation");
    quern_entity target, at;
    uint64_t offset;
    if (name == NULL) name = "parent";
    const quern_relation relation = quern_relation_find(world, name);
    if (quern_relation_is_null(relation)) {
        quern__inspect_fail(answer, 404, "sources: the world has no relation '%.80s'", name);
        return;
    }
    if (!quern__inspect_read_entity(answer, "entity", &target) || !read_page(answer, &offset)) return;
    if (quern__inspect_argument(&answer->arguments, "after") != NULL) {
        if (!quern__inspect_read_entity(answer, "after", &at)) return;
        if (!quern_entity_has_target(world, at, relation, target)) {
            quern__inspect_fail(answer, 404,
                                "sources: 'after' is no source of the entity any more: begin again");
            return;
        }
        at = quern_entity_next_source(world, target, relation, at);
    } else {
        at = quern_entity_first_source(world, target, relation);
    }
    for (; !quern_entity_is_null(at) && answer->entity_count < answer->left;
         at = quern_entity_next_source(world, target, relation, at))
        answer->entities[answer->entity_count++] = at;
    begin_list(answer, quern_entity_source_count(world, target, relation), 0);
}

/* Entities without a parent. Without the relation, all entities are roots. */
static void begin_roots(quern__inspect_answer *answer)
{
    if (quern_relation_is_null(hierarchy_of(answer->inspector->def.world)))
        list_all(answer);
    else
        list_matching(answer, "!parent");
}

/* ------------------------------------------------------------------------------------------ changes */

/* Answers a change, and notes it on the time line with its subject. */
static void finish(quern__inspect_answer *answer, quern_result result, const char *subject)
{
    if (result == QUERN_OK) {
        const char *entity = quern__inspect_argument(&answer->arguments, "entity");
        answer->inspector->is_saved = false;
        quern__inspect_note(answer->inspector, "%s %.24s %.40s", answer->route->path,
                            entity != NULL ? entity : "", subject);
    }
    quern__inspect_finish_change(answer, result);
}

/* Whether a path, such as "Weapon.target" or "Squad.members[2]", leads to a field of entities. */
static bool is_entity_field(const quern_world *world, quern_type_kind kind, const char *path)
{
    for (uint32_t i = 0; i < quern_type_count(world, kind); i++) {
        quern_type_info type;
        if (quern_type_at(world, kind, i, &type) != QUERN_OK) continue;
        const size_t bytes = strlen(type.name);
        if (strncmp(path, type.name, bytes) != 0 || path[bytes] != '.') continue;
        for (uint32_t k = 0; k < type.field_count; k++) {
            const quern_field *field = &type.fields[k];
            const char *name = path + bytes + 1;
            const size_t name_bytes = strlen(field->name);
            if (field->type == QUERN_FIELD_ENTITY && strncmp(name, field->name, name_bytes) == 0 &&
                (name[name_bytes] == '\0' || name[name_bytes] == '['))
                return true;
        }
    }
    return false;
}

/* Fails the answer if a value for a field of entities names one that does not live: a link to it would lead nowhere. The
 * value is an entity, or a list of them. A value that is neither is refused by the call that sets it. */
static bool are_entities_alive(quern__inspect_answer *answer, quern_type_kind kind, const char *path,
                               const char *value)
{
    const quern_world *world = answer->inspector->def.world;
    char handle[64];
    quern_entity entity;
    if (!is_entity_field(world, kind, path)) return true;
    for (const char *at = value + strspn(value, " ["); *at != '\0'; at += strspn(at, " ,]")) {
        const size_t bytes = value[0] == '/' ? strlen(at) : strcspn(at, " ,]");
        if (bytes < sizeof handle) {
            memcpy(handle, at, bytes);
            handle[bytes] = '\0';
            if (quern_entity_from_text(world, handle, &entity) == QUERN_OK &&
                !quern_entity_is_null(entity) && !quern_entity_is_alive(world, entity)) {
                quern__inspect_fail(answer, 404,
                                    "%s: '%s' is no living entity: it may have been destroyed since",
                                    answer->route->path, handle);
                return false;
            }
        }
        at += bytes;
    }
    return true;
}

static void begin_set(quern__inspect_answer *answer)
{
    quern_entity entity;
    const char *path, *value;
    if (quern__inspect_read_entity(answer, "entity", &entity) &&
        quern__inspect_read_text(answer, "path", &path) &&
        quern__inspect_read_text(answer, "value", &value) &&
        are_entities_alive(answer, QUERN_TYPE_COMPONENT, path, value))
        finish(answer, quern_entity_set_text(answer->inspector->def.world, entity, path, value), path);
}

static void begin_set_resource(quern__inspect_answer *answer)
{
    const char *path, *value;
    if (quern__inspect_read_text(answer, "path", &path) &&
        quern__inspect_read_text(answer, "value", &value) &&
        are_entities_alive(answer, QUERN_TYPE_RESOURCE, path, value))
        finish(answer, quern_resource_set_text(answer->inspector->def.world, path, value), path);
}

/* Calls a function with an entity and the text of an argument. */
static void change_by_text(quern__inspect_answer *answer, const char *argument,
                           quern_result change(quern_world *world, quern_entity entity, const char *text))
{
    quern_entity entity;
    const char *text;
    if (quern__inspect_read_entity(answer, "entity", &entity) &&
        quern__inspect_read_text(answer, argument, &text))
        finish(answer, change(answer->inspector->def.world, entity, text), text);
}

static void begin_add(quern__inspect_answer *answer)
{
    change_by_text(answer, "component", quern_entity_add_by_name);
}

static void begin_remove(quern__inspect_answer *answer)
{
    change_by_text(answer, "component", quern_entity_remove_by_name);
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
    change_by_text(answer, "name", quern_entity_set_name);
}

/* An empty target unrelates, from the target `from` alone if it is set. */
static void begin_relate(quern__inspect_answer *answer)
{
    quern_world *world = answer->inspector->def.world;
    const char *name, *text;
    quern_entity entity, target;
    const bool has_from = quern__inspect_argument(&answer->arguments, "from") != NULL;
    if (!quern__inspect_read_entity(answer, "entity", &entity) ||
        !quern__inspect_read_text(answer, "relation", &name) ||
        !quern__inspect_read_text(answer, "target", &text))
        return;
    const quern_relation relation = quern_relation_find(world, name);
    if (quern_relation_is_null(relation)) {
        quern__inspect_fail(answer, 404, "relate: the world has no relation '%.80s'", name);
        return;
    }
    if (text[0] == '\0' && has_from) {
        if (quern__inspect_read_entity(answer, "from", &target))
            finish(answer, quern_entity_unrelate_from(world, entity, relation, target), name);
    } else if (text[0] == '\0')
        finish(answer, quern_entity_unrelate(world, entity, relation), name);
    else if (quern__inspect_read_entity(answer, "target", &target))
        finish(answer, quern_entity_relate(world, entity, relation, target), name);
}

static bool find_prefab(quern__inspect_answer *answer, quern_prefab *out_prefab)
{
    const quern_world *world = answer->inspector->def.world;
    quern_prefab prefabs[QUERN_INSPECT_MAX_LIST];
    uint64_t index;
    if (!quern__inspect_read_count(answer, "prefab", 0, UINT32_MAX, &index)) return false;
    const uint32_t count = quern_world_list_prefabs(world, prefabs, QUERN_INSPECT_MAX_LIST);
    for (uint32_t i = 0; i < count && i < QUERN_INSPECT_MAX_LIST; i++) {
        if ((uint32_t)prefabs[i].bits != index) continue;
        *out_prefab = prefabs[i];
        return true;
    }
    quern__inspect_fail(answer, 404, "create: the world has no prefab with the number %u", (uint32_t)index);
    return false;
}

/* Creates an empty entity, an instance of a prefab, or a copy of an entity. */
static void begin_create(quern__inspect_answer *answer)
{
    quern_world *world = answer->inspector->def.world;
    const bool has_prefab = quern__inspect_argument(&answer->arguments, "prefab") != NULL,
               has_copy = quern__inspect_argument(&answer->arguments, "copy") != NULL;
    quern_entity entity, source;
    quern_prefab prefab;
    quern_result result;
    if (has_prefab && has_copy) {
        quern__inspect_fail(answer, 400, "create: both 'prefab' and 'copy' are set: use one of them");
        return;
    }
    if ((has_prefab && !find_prefab(answer, &prefab)) ||
        (has_copy && !quern__inspect_read_entity(answer, "copy", &source)))
        return;
    if (has_prefab)
        result = quern_prefab_spawn(world, prefab, NULL, &entity);
    else
        result = has_copy ? quern_entity_clone(world, source, NULL, &entity)
                          : quern_entity_create(world, &entity);
    if (result != QUERN_OK) {
        quern__inspect_fail_result(answer, result);
        return;
    }
    answer->inspector->is_saved = false;
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

/* ------------------------------------------------------------------------------------------- routes */

const quern__inspect_route quern__inspect_world_routes[] = {
    {"world", false, false, begin_world, NULL, ""},
    {"hash", false, false, begin_hash, NULL, ""},
    {"panel", false, false, begin_panel, NULL, "title"},
    {"types", false, false, begin_types, step_types, ""},
    {"resources", false, false, begin_resources, step_resources, ""},
    {"archetypes", false, false, begin_archetypes, step_archetypes, "offset limit"},
    {"prefabs", false, false, begin_prefabs, NULL, ""},
    {"entity", false, false, begin_entity, NULL, "entity"},
    {"entities", false, false, begin_entities, step_list, "query name anywhere cursor offset limit values"},
    {"sources", false, false, begin_sources, step_list, "entity relation after offset limit values"},
    {"roots", false, false, begin_roots, step_list, "offset cursor limit values"},
    {"set", true, true, begin_set, NULL, "entity path value"},
    {"set_resource", true, true, begin_set_resource, NULL, "path value"},
    {"add", true, true, begin_add, NULL, "entity component"},
    {"remove", true, true, begin_remove, NULL, "entity component"},
    {"merge", true, true, begin_merge, NULL, "entity"},
    {"enable", true, true, begin_enable, NULL, "entity on component"},
    {"name", true, true, begin_name, NULL, "entity name"},
    {"relate", true, true, begin_relate, NULL, "entity relation target from"},
    {"create", true, true, begin_create, NULL, "prefab copy"},
    {"destroy", true, true, begin_destroy, NULL, "entity"},
    {NULL, false, false, NULL, NULL, NULL},
};
