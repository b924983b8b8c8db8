/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_TESTS_FLOW_VIEW_SCENE_H
#define QUERN_TESTS_FLOW_VIEW_SCENE_H

/* A world with entities in several archetypes, and random commands for the rows of a view. A command is issued in
 * one of two ways: as the command for the view, or, as its documentation defines it, as one single command per
 * row. Both must have the same result. */

#include "core/world/world_internal.h"
#include "sched/frame/schedule_internal.h"
#include "tests/flow/flow_setup.h"
#include "tests/support/failing_allocator.h"
#include "tests/support/random.h"
#include "tests/support/tracked.h"

#include <stdlib.h>
#include <string.h>

enum { ENTITIES = 3000, KINDS = 8, MAX_ROWS = 2048 };

/* The components that commands change, by index. */
enum { NUMBER, LINKS, TAG, TRACKED, PLACE, LARGE, TOGGLED, PARENT, COMPONENTS };

static const uint32_t component_bytes[COMPONENTS] = {8, sizeof(link3), 0, sizeof(tracked), 12, 600, 4, 8};

static quern_world *world;
static quern_schedule *schedule;
static quern_component components[COMPONENTS];
static quern_relation parent;
static quern_entity known[ENTITIES];
static tracked_counts counts;
static failing_allocator *memory; /* NULL: allocations do not fail */
static bool uses_views;           /* commands are issued for views, otherwise for single rows */
static _Atomic uint32_t refused_count;

static inline quern_component register_with(const char *name, uint32_t size_bytes, bool can_disable,
                                            bool row_changes)
{
    quern_component_def def = {
        .name = name, .size_bytes = size_bytes, .alignment_bytes = 4, .can_disable = can_disable};
    def.row_changes = row_changes;
    quern_component component;
    must(quern_component_register(world, &def, &component));
    return component;
}

/* policy: NULL: no relation */
static inline void open_components(const quern_target_policy *policy)
{
    components[NUMBER] = setup_component(world, "number", 8, 8);
    components[LINKS] = setup_links(world, "links");
    components[TAG] = setup_tag(world, "tag");
    components[TRACKED] = tracked_register(world, "tracked", &counts);
    components[PLACE] = register_with("place", 12, false, true);
    components[LARGE] = register_with("large", 600, false, false);
    components[TOGGLED] = register_with("toggled", 4, true, false);
    parent = (quern_relation){0};
    if (policy == NULL) return;
    parent = make_relation(world, .name = "parent", .on_target_destroyed = *policy);
    components[PARENT] = quern_relation_component(parent);
}

static inline void open_scene(const quern_target_policy *policy)
{
    memset((void *)&counts, 0, sizeof counts);
    refused_count = 0;
    quern_world_def def = {0};
    if (memory != NULL) def.allocator = failing_allocator_interface(memory);
    must(quern_world_create(&def, &world));
    open_components(policy);
    for (uint32_t i = 0; i < ENTITIES; i++) {
        const quern_component sets[KINDS][3] = {
            {components[NUMBER]},
            {components[NUMBER], components[PLACE]},
            {components[NUMBER], components[TAG], components[LINKS]},
            {components[PLACE], components[TOGGLED], components[NUMBER]},
            {components[TRACKED], components[NUMBER]},
            {components[TAG]},
            {components[LARGE], components[TAG]},
            {components[TOGGLED], components[TRACKED], components[PLACE]},
        };
        static const uint32_t set_counts[KINDS] = {1, 2, 3, 3, 2, 1, 2, 3};
        known[i] = setup_entity_with(world, sets[i * KINDS / ENTITIES], set_counts[i * KINDS / ENTITIES]);
    }
    schedule = setup_phases(world, 2);
}

static inline void close_scene(void)
{
    quern_schedule_destroy(schedule);
    quern_world_destroy(world);
    cr_assert_eq(tracked_live_count(&counts), 0u, "values were not destroyed");
    cr_assert_eq(counts.broken_count, 0u, "hooks were called on dead values");
}

/* Recording may run out of memory in tests with failing allocations. */
static inline void expect(quern_result result)
{
    cr_assert(result == QUERN_OK || (memory != NULL && result == QUERN_ERROR_OUT_OF_MEMORY), "%s",
              quern_error_message());
    refused_count += result != QUERN_OK;
}

/* -------------------------------------------------------------------------------------- one command */

typedef enum view_kind { ADD, SET, SET_VALUES, REMOVE, DESTROY, VIEW_KINDS } view_kind;

typedef struct view_act {
    view_kind kind;
    uint32_t component;
    const void *values; /* or NULL */
    const quern_view_rows *rows;
    const bool *chosen; /* by row: what `rows` chooses */
} view_act;

static inline quern_result issue_for_view(quern_commands *commands, const quern_view *view,
                                          const view_act *act)
{
    const quern_component component = components[act->component];
    switch (act->kind) {
    case ADD:
        return quern_commands_add_view(commands, view, act->rows, component, act->values);
    case SET:
        return quern_commands_set_view(commands, view, act->rows, component, act->values);
    case SET_VALUES:
        return quern_commands_set_view_values(commands, view, act->rows, component, act->values);
    case REMOVE:
        return quern_commands_remove_view(commands, view, act->rows, component);
    default:
        return quern_commands_destroy_view(commands, view, act->rows);
    }
}

static inline quern_result issue_for_row(quern_commands *commands, const quern_view *view,
                                         const view_act *act, uint32_t row)
{
    const quern_component component = components[act->component];
    const quern_entity entity = view->entities[row];
    const char *value = act->values;
    if (act->kind == SET_VALUES && value != NULL) value += (size_t)row * component_bytes[act->component];
    switch (act->kind) {
    case ADD:
        return quern_commands_add(commands, entity, component, value);
    case SET:
    case SET_VALUES:
        return quern_commands_set(commands, entity, component, value);
    case REMOVE:
        return quern_commands_remove(commands, entity, component);
    default:
        return quern_commands_destroy(commands, entity);
    }
}

static inline void issue(quern_commands *commands, const quern_view *view, const view_act *act)
{
    if (uses_views) {
        expect(issue_for_view(commands, view, act));
        return;
    }
    for (uint32_t row = 0; row < view->count; row++)
        if (act->chosen[row]) expect(issue_for_row(commands, view, act, row));
}

/* ----------------------------------------------------------------------------------- random commands */

/* Memory of one random command. */
typedef struct drawn_act {
    view_act act;
    quern_view_rows rows;
    uint64_t mask[MAX_ROWS / 64];
    uint32_t list[MAX_ROWS];
    bool chosen[MAX_ROWS];
    _Alignas(8) char values[600 * (ENTITIES / KINDS + 1)];
} drawn_act;

static inline bool is_chosen(random_source *random, uint32_t way, uint32_t row, uint32_t count)
{
    switch (way) {
    case 0:
        return row % 2 == 0;
    case 1:
        return random_chance(random, 10);
    case 2:
        return row < count / 3;
    case 3:
        return row >= count / 2;
    case 4:
        return random_chance(random, 90);
    default:
        return false;
    }
}

static inline void draw_rows(random_source *random, const quern_view *view, drawn_act *it)
{
    const uint32_t way = random_below(random, 12), count = view->count;
    memset(it->mask, 0, sizeof it->mask);
    it->rows = (quern_view_rows){0};
    it->act.chosen = it->chosen;
    it->act.rows = way == 7 ? NULL : &it->rows;
    memset(it->chosen, 0, sizeof it->chosen);
    quern_row_range range = {0};
    while (way > 6 && quern_view_next_range(view, &range)) /* NULL, or a zeroed selection */
        memset(it->chosen + range.first, true, range.count);
    if (way > 6) return;
    for (uint32_t row = 0; row < count; row++) {
        it->chosen[row] = is_chosen(random, way, row, count);
        if (!it->chosen[row]) continue;
        it->mask[row / 64] |= UINT64_C(1) << row % 64;
        it->list[it->rows.list_count++] = row;
    }
    if (random_chance(random, 50))
        it->rows.mask = it->mask;
    else
        it->rows.list = it->list;
    /* bits after the last row are ignored */
    if (count % 64 != 0) it->mask[count / 64] |= ~UINT64_C(0) << count % 64;
}

/* Writes one value. Links refer to `link`, which may be provisional. */
static inline void make_value(char *to, uint32_t component, uint64_t number, quern_entity link)
{
    if (component == PARENT) {
        memcpy(to, &link, sizeof link);
    } else if (component == LINKS) {
        const link3 links = {.targets = {link, known[number % ENTITIES]}, .number = number};
        memcpy(to, &links, sizeof links);
    } else if (component == TRACKED) {
        tracked_construct((tracked *)(void *)to, number, &counts);
    } else {
        for (uint32_t i = 0; i < component_bytes[component]; i++)
            to[i] = (char)(number >> i % 8 * 8);
    }
}

/* Draws a command for the rows of a view. create: an entity to which links may lead. Returns false if the command
 * cannot be issued. The caller must call release_values. */
static inline bool draw_act(random_source *random, const quern_view *view, quern_entity link, bool destroys,
                            drawn_act *it)
{
    static const uint32_t often[] = {NUMBER, TAG, PLACE, TOGGLED};
    it->act = (view_act){.kind = (view_kind)random_below(random, VIEW_KINDS)};
    it->act.component = random_chance(random, 50) ? often[random_below(random, COUNT_OF(often))]
                                                  : random_below(random, COMPONENTS);
    draw_rows(random, view, it);
    if (it->act.kind == DESTROY && !destroys) it->act.kind = REMOVE;
    if (it->act.component == PARENT && parent.bits == 0) it->act.component = LARGE;
    const uint32_t component = it->act.component, bytes = component_bytes[component];
    const bool is_related = component == PARENT;
    const uint64_t number = random_next(random);
    if (is_related && quern_entity_is_null(link)) return false;
    if (it->act.kind == REMOVE || it->act.kind == DESTROY) return true;
    if (it->act.kind == ADD && !is_related && random_chance(random, 50)) return true;
    if (it->act.kind != SET_VALUES) {
        if (is_related && !quern_entity_is_provisional(link)) return false; /* might be in the view */
        make_value(it->values, component, number, link);
        it->act.values = it->values;
        return true;
    }
    if (is_related || (size_t)view->count * bytes > sizeof it->values) return false;
    for (uint32_t row = 0; row < view->count; row++)
        make_value(it->values + (size_t)row * bytes, component, number + row, link);
    it->act.values = bytes > 0 ? it->values : NULL;
    return true;
}

static inline void release_values(drawn_act *it, const quern_view *view)
{
    if (it->act.component != TRACKED || it->act.values == NULL) return;
    const uint32_t count = it->act.kind == SET_VALUES ? view->count : 1;
    for (uint32_t i = 0; i < count; i++)
        tracked_destroy((tracked *)(void *)it->values + i, &counts);
}

/* Issues a few random commands for the rows of a view, between single commands and creates. */
static inline void act_on_view(quern_commands *commands, const quern_view *view, uint64_t seed,
                               uint32_t destroy_percent)
{
    drawn_act *drawn = malloc(sizeof *drawn);
    cr_assert_not_null(drawn);
    random_source random = {seed};
    quern_entity link = known[random_below(&random, ENTITIES)];
    const uint32_t act_count = random_below(&random, 4);
    if (random_chance(&random, 20)) {
        link = record_entity_with(commands, &components[NUMBER], NULL, 1);
        expect(quern_entity_is_null(link) ? QUERN_ERROR_OUT_OF_MEMORY : QUERN_OK);
    }
    for (uint32_t i = 0; i < act_count; i++) {
        const bool destroys = random_chance(&random, destroy_percent);
        if (draw_act(&random, view, link, destroys, drawn)) issue(commands, view, &drawn->act);
        release_values(drawn, view);
        if (random_chance(&random, 80)) continue;
        const quern_entity entity = view->entities[random_below(&random, view->count)];
        const uint64_t number = random_next(&random);
        if (number % 3 == 0) expect(quern_commands_set(commands, entity, components[NUMBER], &number));
        if (number % 3 == 1) expect(quern_commands_remove(commands, entity, components[NUMBER]));
        if (number % 3 == 2 && destroys) expect(quern_commands_destroy(commands, entity));
    }
    free(drawn);
}

#endif
