/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "tests/support/setup.h"

#include <string.h>

/* Relates many entities in one call, and in a twin world by single calls. test_random_relations compares random lists
 * with a naive model, also with memory failures. */

enum { TREES = 40, TREE_NODES = 40, NODES = TREES * TREE_NODES, MOVES = 700 };

typedef struct forest {
    quern_world *world;
    quern_component number;
    quern_relation parent;
    quern_entity nodes[NODES];
} forest;

static forest many, single;
static quern_entity sources[MOVES], targets[MOVES];

static void plant(forest *f)
{
    f->world = setup_world();
    f->number = setup_component(f->world, "number", 4, 4);
    f->parent = quern_world_parent(f->world);
    for (uint32_t i = 0; i < NODES; i++) {
        f->nodes[i] = setup_entity_with(f->world, &f->number, 1);
        must(quern_entity_set(f->world, f->nodes[i], f->number, &i));
        if (i % TREE_NODES == 0) continue;
        const uint32_t above = i - i % TREE_NODES + (i % TREE_NODES - 1) / 3;
        must(quern_entity_relate(f->world, f->nodes[i], f->parent, f->nodes[above]));
    }
}

static void open_worlds(void)
{
    plant(&many);
    plant(&single);
}

static void close_worlds(void)
{
    assert_at_end(quern_world_validate(many.world) == QUERN_OK);
    quern_world_destroy(many.world);
    quern_world_destroy(single.world);
}

TestSuite(relate_many, .init = open_worlds, .fini = close_worlds);

/* Identifies an entity by its number, since handles of two worlds differ. */
static uint32_t number_of(const forest *f, quern_entity entity)
{
    return quern_entity_is_null(entity) ? UINT32_MAX
                                        : *(const uint32_t *)quern_entity_get(f->world, entity, f->number);
}

static void assert_worlds_agree(void)
{
    for (uint32_t i = 0; i < NODES; i++) {
        const quern_entity a = many.nodes[i], b = single.nodes[i];
        cr_assert_eq(number_of(&many, a), i);
        cr_assert_eq(number_of(&many, quern_entity_target(many.world, a, many.parent)),
                     number_of(&single, quern_entity_target(single.world, b, single.parent)));
        cr_assert_eq(number_of(&many, quern_entity_next_sibling(many.world, a, many.parent)),
                     number_of(&single, quern_entity_next_sibling(single.world, b, single.parent)));
        const quern_entity *target = quern_entity_get(many.world, a, quern_relation_component(many.parent));
        const quern_entity linked = quern_entity_target(many.world, a, many.parent);
        cr_assert(target == NULL ? quern_entity_is_null(linked) : quern_entity_equal(*target, linked));
    }
}

/* The list is long enough for prefetching and for moves of consecutive rows. A third of the moves relate whole
 * trees, or parts of trees that an earlier move has related. */
Test(relate_many, agrees_with_single_calls)
{
    uint32_t count = 0, seed = 7;
    while (count < MOVES) {
        seed = seed * 1664525 + 1013904223;
        const uint32_t source = (seed >> 8) % NODES, target = (seed >> 4) % NODES;
        if (source == target) continue;
        if (quern_entity_relate(single.world, single.nodes[source], single.parent, single.nodes[target]) !=
            QUERN_OK)
            continue;
        sources[count] = many.nodes[source];
        targets[count++] = many.nodes[target];
    }
    must(quern_entity_relate_many(many.world, sources, many.parent, targets, count));
    assert_worlds_agree();
}

Test(relate_many, count_zero_changes_nothing)
{
    const uint64_t hash = quern_world_hash(many.world);
    must(quern_entity_relate_many(many.world, NULL, many.parent, NULL, 0));
    for (uint32_t i = 1; i < TREE_NODES; i++) {
        sources[i - 1] = many.nodes[i];
        targets[i - 1] = quern_entity_target(many.world, many.nodes[i], many.parent);
    }
    must(quern_entity_relate_many(many.world, sources, many.parent, targets, TREE_NODES - 1));
    cr_assert_eq(quern_world_hash(many.world), hash);
}

/* The last pair is wrong, in each possible way. */
Test(relate_many, wrong_pair_changes_nothing)
{
    const quern_entity gone = setup_entity(many.world);
    must(quern_entity_destroy(many.world, gone));
    for (uint32_t i = 0; i < 10; i++) {
        sources[i] = many.nodes[TREE_NODES * (i + 1)];
        targets[i] = many.nodes[TREE_NODES * i + i];
    }
    const struct {
        quern_entity source, target;
        quern_result result;
    } wrong[] = {
        {many.nodes[0], many.nodes[TREE_NODES * 10 + 5],
         QUERN_ERROR_CYCLE}, /* a cycle because of earlier pairs */
        {many.nodes[7], many.nodes[7], QUERN_ERROR_INVALID_ARGUMENT},
        {gone, many.nodes[7], QUERN_ERROR_STALE_ENTITY},
        {many.nodes[7], gone, QUERN_ERROR_STALE_ENTITY},
        {many.nodes[7], quern_entity_null(), QUERN_ERROR_NULL_ENTITY},
        {many.nodes[7], entity_of_other_world(many.nodes[8]), QUERN_ERROR_FOREIGN_ENTITY},
    };
    for (uint32_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        sources[10] = wrong[i].source;
        targets[10] = wrong[i].target;
        assert_refused(many.world, wrong[i].result,
                       quern_entity_relate_many(many.world, sources, many.parent, targets, 11));
        cr_assert_not_null(strstr(quern_error_message(), "pair 10"), "%s", quern_error_message());
    }
    assert_worlds_agree();
}

/* Names follow their entities to other parents, and back if a later name is taken. */
Test(relate_many, taken_name_restores_all_names)
{
    const quern_entity a = many.nodes[1], b = many.nodes[2], other = many.nodes[TREE_NODES];
    must(quern_entity_set_name(many.world, a, "arm"));
    must(quern_entity_set_name(many.world, b, "hand"));
    must(quern_entity_set_name(many.world, other, "body"));
    const quern_entity twin = many.nodes[TREE_NODES + 1];
    must(quern_entity_set_name(many.world, twin, "hand"));
    const quern_entity pair_sources[] = {a, b}, pair_targets[] = {other, other};
    must_refuse(SIBLING_NAME_TAKEN, many.world,
                quern_entity_relate_many(many.world, pair_sources, many.parent, pair_targets, 2));
    cr_assert(quern_entity_equal(quern_entity_find_child(many.world, many.nodes[0], "arm"), a));
    cr_assert(quern_entity_is_null(quern_entity_find_child(many.world, other, "arm")));
    must(quern_entity_set_name(many.world, twin, NULL));
    must(quern_entity_relate_many(many.world, pair_sources, many.parent, pair_targets, 2));
    cr_assert(quern_entity_equal(quern_entity_find(many.world, "body/arm"), a));
    cr_assert(quern_entity_equal(quern_entity_find(many.world, "body/hand"), b));
}

/* An entity that gets another target at the same level does not move, but change filters must report it. */
Test(relate_many, passes_change_filters)
{
    const quern_term term = quern_term_changed(quern_term_read(quern_relation_component(many.parent)));
    quern_query *changed = setup_query(many.world, &term, 1);
    uint32_t seen_count = 0;
    for (quern_query_iterator it = quern_query_iterate(changed); quern_query_next(&it);)
        seen_count += it.view.count;
    cr_assert_gt(seen_count, 0u);
    seen_count = 0;
    for (quern_query_iterator it = quern_query_iterate(changed); quern_query_next(&it);)
        seen_count += it.view.count;
    cr_assert_eq(seen_count, 0u);
    must(quern_entity_relate_many(many.world, &many.nodes[2], many.parent, &many.nodes[TREE_NODES], 1));
    for (quern_query_iterator it = quern_query_iterate(changed); quern_query_next(&it);)
        seen_count += it.view.count;
    cr_assert_gt(seen_count, 0u);
    quern_query_destroy(changed);
}

Test(relate_many, wrong_arguments_are_refused)
{
    must_refuse(NULL_ARGUMENT, NULL, quern_entity_relate_many(NULL, sources, many.parent, targets, 1));
    must_refuse(NULL_ARGUMENT, many.world,
                quern_entity_relate_many(many.world, NULL, many.parent, targets, 1));
    must_refuse(NULL_ARGUMENT, many.world,
                quern_entity_relate_many(many.world, sources, many.parent, NULL, 1));
    assert_refused(
        many.world, QUERN_ERROR_INVALID_ARGUMENT,
        quern_entity_relate_many(many.world, many.nodes, (quern_relation){0}, many.nodes + 1, 1));
}
