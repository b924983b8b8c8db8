/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_TESTS_CORE_REACTIONS_REACTION_SCENE_H
#define QUERN_TESTS_CORE_REACTIONS_REACTION_SCENE_H

/* A world with one reaction and a list of the changes reported to it, for tests of reactions. */

#include "tests/support/failing_allocator.h"
#include "tests/support/reacting.h"
#include "tests/support/setup.h"
#include "tests/support/tracked.h"

#include <string.h>

enum {
    ALL_KINDS = QUERN_REACT_ADDED | QUERN_REACT_SET | QUERN_REACT_REMOVED,
    MANY = 700, /* number of entities that fill several chunks */
    WIDE_BYTES = 120
};

static failing_allocator *memory;
static quern_world *world;
static quern_component number, other, tag, big, tracked_component;
static tracked_counts counts;
static reacting told; /* reaction to numbers, with all kinds */

static inline reacting react(uint32_t kinds, quern_term term)
{
    return reacting_begin(world, kinds, &term, 1);
}

static inline void open_world(void)
{
    memory = failing_allocator_create();
    world = make_world(.allocator = failing_allocator_interface(memory));
    memset((void *)&counts, 0, sizeof counts);
    number = setup_component(world, "number", 8, 8);
    other = setup_component(world, "other", 8, 8);
    big = setup_component(world, "big", WIDE_BYTES, 8);
    tag = setup_tag(world, "tag");
    tracked_component = tracked_register(world, "tracked", &counts);
    told = react(ALL_KINDS, quern_term_read(number));
}

/* Ends a test: destroys the world and checks that all memory was released. */
static inline void close_world(void)
{
    if (told.reaction != NULL) reacting_end(&told);
    assert_at_end(quern_world_validate(world) == QUERN_OK);
    quern_world_destroy(world);
    assert_at_end(tracked_live_count(&counts) == 0u);
    assert_at_end(counts.broken_count == 0u);
    failing_allocator_close(memory);
}

static inline quern_entity create(uint64_t value)
{
    quern_entity entity;
    must(quern_entity_create_with(world, &number, (const void *[]){&value}, 1, &entity));
    return entity;
}

/* Creates an entity, and reports it to the reaction. */
static inline quern_entity create_old(uint64_t value)
{
    const quern_entity entity = create(value);
    reacting_look(&told);
    reacting_done(&told);
    return entity;
}

/* Runs the reaction, and checks the number of reported rows. */
static inline void expect(uint32_t count)
{
    reacting_look(&told);
    cr_assert_eq(told.count, count, "%u rows, expected %u", told.count, count);
}

static inline void expect_one(quern_reaction_kind kind, quern_entity entity)
{
    expect(1);
    cr_assert_eq(told.rows[0].kind, kind);
    cr_assert(quern_entity_equal(told.rows[0].entity, entity));
}

/* Runs the reaction, and checks that only the removal of this entity, with this number, is reported. */
static inline void expect_gone(quern_entity entity, uint64_t value)
{
    expect_one(QUERN_REACT_REMOVED, entity);
    cr_assert_eq(*(const uint64_t *)told.rows[0].values[0], value);
    reacting_done(&told);
}

/* Returns the recorder of commands outside of frames. */
static inline quern_commands *commands(void)
{
    return quern_world_commands(world);
}

static inline void flush(void)
{
    must(quern_world_flush(world));
}

static inline void create_many_old(quern_entity *entities, uint32_t count)
{
    uint64_t numbers[MANY];
    for (uint32_t i = 0; i < count; i++)
        numbers[i] = i;
    must(quern_entity_create_many(world, (const quern_component[]){number, big},
                                  (const void *[]){numbers, NULL}, 2, count, entities));
    expect(count);
}

#endif
