/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_TESTS_CORE_QUERY_ROW_CHANGES_SCENE_H
#define QUERN_TESTS_CORE_QUERY_ROW_CHANGES_SCENE_H

/* A world with row_changes components, for tests of change filters. */

#include "tests/support/fixture.h"

#include <string.h>

enum { ROWS = 1500, MAX_ROWS = 3 * ROWS };

static quern_component number, other, flag; /* with row_changes; the first and the last can be disabled */
static quern_component plain, tag;          /* components without row_changes */
static quern_entity entities[ROWS];
static captured_reports reports;

static inline quern_component component_by_row(const char *name, uint32_t size_bytes, bool can_disable)
{
    quern_component component = make_component(world, .name = name, .size_bytes = size_bytes,
                                               .alignment_bytes = size_bytes > 0 ? 8 : 1,
                                               .can_disable = can_disable, .row_changes = true);
    return component;
}

static inline void register_components(void)
{
    number = component_by_row("number", 8, true);
    other = component_by_row("other", 8, false);
    flag = component_by_row("flag", 0, true);
    plain = setup_component(world, "plain", 8, 8);
    tag = setup_tag(world, "tag");
}

/* Creates the world and its entities, in several chunks and in list order. */
static inline void open_world(void)
{
    world = setup_world();
    register_components();
    const quern_component set[] = {number, other, plain};
    for (uint32_t i = 0; i < ROWS; i++)
        entities[i] = setup_entity_with(world, set, 3);
    capture_reports(&reports);
}

/* Iterates over the query. Returns the number of visited rows. shown: gets their handles in order, or NULL. */
static inline uint32_t list_shown(quern_query *query, quern_entity *shown)
{
    uint32_t count = 0;
    quern_query_iterator it = quern_query_iterate(query);
    while (quern_query_next(&it)) {
        quern_row_range run = {0};
        for (; quern_view_next_range(&it.view, &run); count += run.count)
            if (shown != NULL)
                memcpy(shown + count, it.view.entities + run.first, run.count * sizeof *shown);
    }
    must(it.result);
    return count;
}

static inline uint32_t look(quern_query *query)
{
    return list_shown(query, NULL);
}

#endif
