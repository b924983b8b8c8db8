/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "inspect/inspect_internal.h"

#include <quern/enabled.h>
#include <quern/name.h>

#include <quern/kit/json.h>

#include <string.h>

/* End points about entities. A list first stores the handles of its page, then writes entry by entry. The search by
 * name visits all entities, some in each step, and keeps the first matches by name. */

enum { LIST_ENTRIES_PER_STEP = 8, LIST_PAGE = 50, LIST_CALLS = 4 };

/* What `list` of an answer says while it writes a list. */
enum { LIST_WRITES = 0, LIST_SEARCHES = 1 };

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

/* ----------------------------------------------------------------------------------------- one entity */

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
        quern__inspect_put_path(text, "path", world, targets[i]);
        quern__inspect_close(text, '}');
    }
    quern__inspect_close(text, ']');
}

static void write_relations(quern__inspect_text *text, const quern_world *world, quern_entity entity)
{
    quern__inspect_open(text, "relations", '[');
    for (uint32_t i = 0; i < quern_relation_count(world); i++) {
        quern_relation_def def;
        const quern_relation relation = quern_relation_at(world, i);
        const uint32_t source_count = quern_entity_source_count(world, entity, relation);
        if (quern_relation_get_def(world, relation, &def) != QUERN_OK) continue;
        if (source_count == 0 && quern_entity_target_count(world, entity, relation) == 0) continue;
        quern__inspect_open(text, NULL, '{');
        quern__inspect_put_text(text, "relation", def.name);
        quern__inspect_put_count(text, "source_count", source_count);
        write_targets(text, world, entity, relation, def.many);
        quern__inspect_close(text, '}');
    }
    quern__inspect_close(text, ']');
}

/* Components that the world maintains itself, and disabled ones, are part of the list, but not of the values. */
static void write_components(quern__inspect_text *text, const quern_world *world, quern_entity entity)
{
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
    quern__inspect_put_path(text, "path", world, entity);
    quern__inspect_put_flag(text, "enabled", quern_entity_is_enabled(world, entity));
    quern__inspect_put_count(text, "frame", answer->inspector->frame);
    write_components(text, world, entity);
    write_values(answer, entity);
    write_relations(text, world, entity);
    quern__inspect_close(text, '}');
}

/* ----------------------------------------------------------------------------------------------- lists */

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

static void list_matching(quern__inspect_answer *answer, const char *query_text)
{
    quern_world *world = answer->inspector->def.world;
    quern_query_def def = {0};
    quern_query *query;
    uint64_t offset, passed = 0;
    if (!read_page(answer, &offset)) return;
    quern_result result = quern_query_parse(world, query_text, &def);
    if (result == QUERN_OK) show_only_handles(world, &def);
    if (result == QUERN_OK) result = quern_query_create(world, &def, &query);
    if (result != QUERN_OK) {
        quern__inspect_fail_result(
            answer, result == QUERN_ERROR_UNKNOWN_COMPONENT ? QUERN_ERROR_INVALID_ARGUMENT : result);
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

/* A prefix with '/' is the beginning of a path: the children of the path before the last '/' match. */
static void list_named(quern__inspect_answer *answer, const char *prefix)
{
    const quern_world *world = answer->inspector->def.world;
    quern__inspect_search *search = &answer->search;
    uint64_t offset;
    char path[QUERN__INSPECT_ARGUMENT_BYTES];
    if (!read_page(answer, &offset)) return;
    const char *last = strrchr(prefix, '/');
    *search =
        (quern__inspect_search){.prefix = last != NULL ? last + 1 : prefix, .has_parent = last != NULL};
    answer->list = LIST_SEARCHES;
    if (last == NULL) return;
    memcpy(path, prefix, (size_t)(last - prefix));
    path[last - prefix] = '\0';
    if (last == prefix) return; /* roots */
    if (prefix[0] != '/' || quern_entity_from_text(world, path, &search->parent) != QUERN_OK ||
        !quern_entity_is_alive(world, search->parent))
        search->cursor = QUERN_LIST_END; /* nothing matches */
}

static bool is_found(const quern_world *world, const quern__inspect_search *search, const char *name,
                     quern_entity entity)
{
    if (name == NULL || strncmp(name, search->prefix, strlen(search->prefix)) != 0) return false;
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

const quern__inspect_route quern__inspect_entity_routes[] = {
    {"entity", false, false, begin_entity, NULL},
    {"entities", false, false, begin_entities, step_list},
    {"sources", false, false, begin_sources, step_list},
    {"roots", false, false, begin_roots, step_list},
    {NULL, false, false, NULL, NULL},
};
