/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Test labels: threaded */
#include "tests/support/fixture.h"
#include "tests/support/random.h"

#include <string.h>

/* Up-terms: values of the targets of rows, in loops and in parallel queries. */

enum { TARGETS = 300, SOURCES = 3000, CHAIN = 40, WALKS = 8 };

typedef struct wide {
    uint64_t words[3];
} wide;

static quern_relation parent, friend_of; /* may contain cycles */
static quern_component number, other, tag;
static quern_entity targets[TARGETS]; /* every third lacks the number */
static quern_entity sources[SOURCES];
static uint32_t target_of[SOURCES]; /* consecutive sources often share a target */
static captured_reports reports;

static void relate(quern_entity source, quern_relation relation, quern_entity target)
{
    must(quern_entity_relate(world, source, relation, target));
}

static bool has_number(uint32_t target)
{
    return target % 3 != 2;
}

static bool stays(uint32_t source)
{
    return has_number(target_of[source]);
}

static void register_types(void)
{
    parent = make_relation(world, .name = "belongs to", .levels = true);
    friend_of = make_relation(world, .name = "friend", .on_target_destroyed = QUERN_TARGET_UNRELATES);
    number = setup_component(world, "number", 8, 8);
    other = setup_component(world, "other", sizeof(wide), 8);
    tag = setup_tag(world, "tag");
}

/* Target i has the number i. Source i has i in `other`; sources are in two archetypes of several chunks. */
static void make_entities(void)
{
    random_source random = {7};
    for (uint32_t i = 0; i < TARGETS; i++) {
        const uint64_t value = i;
        targets[i] = setup_entity_with(world, (quern_component[]){tag, other}, 1 + i % 2);
        if (has_number(i)) must(quern_entity_add(world, targets[i], number, &value));
    }
    for (uint32_t i = 0; i < SOURCES; i++) {
        const wide value = {{i, 0, 0}};
        target_of[i] = i % 50 < 30 && i > 0 ? target_of[i - 1] : random_below(&random, TARGETS);
        sources[i] = setup_entity_with(world, (quern_component[]){other, number}, 1 + i / 7 % 2);
        must(quern_entity_set(world, sources[i], other, &value));
        relate(sources[i], parent, targets[target_of[i]]);
    }
}

static void open_world(void)
{
    world = setup_world();
    register_types();
    make_entities();
    capture_reports(&reports);
}

TestSuite(up, .init = open_world, .fini = close_world);
TestSuite(up_nearest, .init = open_world, .fini = close_world);
TestSuite(up_refused, .init = open_world, .fini = close_world);

/* ------------------------------------------------------------------------------------------------ up */

/* Checks a view of the terms read(other), up(number), and marks its sources in `seen`. Returns the number of rows. */
static uint32_t check_views(const quern_view *view, bool *seen)
{
    const wide *own = QUERN_COLUMN(view, 0, const wide);
    const uint64_t *const *up = QUERN_UP(view, 1, uint64_t);
    for (uint32_t i = 0; i < view->count; i++) {
        const uint32_t source = (uint32_t)own[i].words[0];
        cr_assert(quern_entity_equal(view->entities[i], sources[source]));
        cr_assert_not(seen[source], "a row came twice");
        seen[source] = true;
        cr_assert_eq((const void *)up[i], quern_entity_get(world, targets[target_of[source]], number));
    }
    return view->count;
}

Test(up, the_addresses_are_those_of_the_targets_values)
{
    quern_query *query =
        setup_query(world, (quern_term[]){quern_term_read(other), quern_term_up(number, parent)}, 2);
    bool seen[SOURCES] = {false};
    uint32_t row_count = 0;
    quern_query_iterator it = quern_query_iterate(query);
    while (quern_query_next(&it))
        row_count += check_views(&it.view, seen);
    must(it.result);
    uint32_t expected = 0;
    for (uint32_t i = 0; i < SOURCES; i++) {
        cr_assert_eq(seen[i], stays(i), "rows whose target lacks the component are left out, no others");
        expected += stays(i);
    }
    cr_assert_eq(row_count, expected);
    cr_assert_eq(quern_query_count(query), expected);
    assert_matches(query, sources, SOURCES);
}

Test(up, chunk_is_visited_as_row_ranges_with_one_ordinal)
{
    quern_query *query = setup_query(
        world,
        (quern_term[]){quern_term_read(other), quern_term_without(number), quern_term_up(number, parent)},
        3);
    quern_query_iterator it = quern_query_iterate(query);
    const quern_entity *end = NULL;
    uint32_t ordinal = 0, runs_of_a_chunk = 0, view_count = 0;
    while (quern_query_next(&it)) {
        cr_assert_geq(it.view.ordinal, ordinal);
        if (it.view.ordinal == ordinal && end != NULL) {
            cr_assert_gt(it.view.entities, end, "between two runs some row is left out");
            runs_of_a_chunk++;
        }
        ordinal = it.view.ordinal;
        end = it.view.entities + it.view.count;
        view_count++;
    }
    must(it.result);
    cr_assert_gt(runs_of_a_chunk, 0u);
    cr_assert_gt(ordinal, 0u);
    cr_assert_lt(ordinal + 1, view_count);
}

Test(up, chunk_without_excluded_rows_is_one_view)
{
    for (uint32_t i = 0; i < TARGETS; i++)
        if (!has_number(i)) must(quern_entity_add(world, targets[i], number, &(uint64_t){i}));
    quern_query *query =
        setup_query(world, (quern_term[]){quern_term_read(other), quern_term_up(number, parent)}, 2);
    uint32_t view_count = 0, row_count = 0;
    for (quern_query_iterator it = quern_query_iterate(query); quern_query_next(&it);) {
        cr_assert_eq(it.view.ordinal, view_count++);
        row_count += it.view.count;
    }
    cr_assert_eq(row_count, (uint32_t)SOURCES);
    cr_assert_eq(view_count, quern_query_view_count(query));
}

Test(up, optional_up_term_excludes_no_row)
{
    quern_query *query = setup_query(
        world, (quern_term[]){quern_term_read(other), quern_term_up_optional(number, parent)}, 2);
    uint32_t row_count = 0, null_count = 0, without_target = 0;
    quern_query_iterator it = quern_query_iterate(query);
    while (quern_query_next(&it)) {
        const uint64_t *const *up = QUERN_UP(&it.view, 1, uint64_t);
        const wide *own = QUERN_COLUMN(&it.view, 0, const wide);
        row_count += it.view.count;
        for (uint32_t i = 0; i < it.view.count; i++) {
            const void *expected = NULL;
            if (quern_view_has(&it.view, 1))
                expected = quern_entity_get(world, targets[target_of[own[i].words[0]]], number);
            else
                without_target++;
            cr_assert_eq((const void *)up[i], expected);
            null_count += up[i] == NULL;
        }
    }
    must(it.result);
    cr_assert_eq(without_target, (uint32_t)TARGETS / 2, "those with `other` and no target");
    cr_assert_gt(null_count, without_target);
    cr_assert_eq(row_count, (uint32_t)SOURCES + TARGETS / 2);
    cr_assert_eq(quern_query_count(query), row_count);
    assert_matches(query, sources, SOURCES);
}

Test(up, one_component_can_be_read_from_the_row_and_its_target)
{
    quern_query *query = setup_query(world,
                                     (quern_term[]){quern_term_write(number), quern_term_up(number, parent),
                                                    quern_term_up_optional(other, parent)},
                                     3);
    quern_query_iterator it = quern_query_iterate(query);
    uint32_t row_count = 0;
    while (quern_query_next(&it)) {
        uint64_t *own = QUERN_COLUMN(&it.view, 0, uint64_t);
        const uint64_t *const *up = QUERN_UP(&it.view, 1, uint64_t);
        const wide *const *others = QUERN_UP(&it.view, 2, wide);
        for (uint32_t i = 0; i < it.view.count; i++, row_count++) {
            own[i] = *up[i] + 1;
            cr_assert_eq(others[i] != NULL, *up[i] % 2 == 1, "odd targets have the other");
        }
    }
    must(it.result);
    cr_assert_gt(row_count, 0u);
    for (uint32_t i = 0; i < SOURCES; i++) {
        const uint64_t *own = quern_entity_get(world, sources[i], number);
        if (own != NULL) cr_assert_eq(*own, stays(i) ? target_of[i] + 1u : 0u);
    }
}

Test(up, archetypes_created_after_the_query_are_found)
{
    quern_query *query =
        setup_query(world, (quern_term[]){quern_term_with(tag), quern_term_up(number, parent)}, 2);
    cr_assert_eq(quern_query_count(query), 0u);
    const quern_component fresh = setup_component(world, "fresh", 4, 4);
    const quern_entity target = setup_entity_with(world, (quern_component[]){fresh, number}, 2);
    const quern_entity source = setup_entity_with(world, (quern_component[]){fresh, tag}, 2);
    must(quern_entity_set(world, target, number, &(uint64_t){4711}));
    relate(source, parent, target);
    cr_assert_eq(quern_query_count(query), 1u);
    quern_query_iterator it = quern_query_iterate(query);
    cr_assert(quern_query_next(&it));
    cr_assert_eq(*QUERN_UP(&it.view, 1, uint64_t)[0], 4711u);
    cr_assert_not(quern_query_next(&it));
    cr_assert_not(quern_query_next(&it), "a walk that has ended stays so");
    must(it.result);
}

/* ------------------------------------------------------------------------------------------- iterations */

/* The iterator is static, so that all calls use one object even if a sanitizer moves local variables. */
static uint64_t sum_of_targets(quern_query *query, bool leaves_early)
{
    static quern_query_iterator it;
    uint64_t sum = 0;
    it = quern_query_iterate(query);
    while (quern_query_next(&it)) {
        const uint64_t *const *up = QUERN_UP(&it.view, 0, uint64_t);
        for (uint32_t i = 0; i < it.view.count; i++)
            sum += *up[i];
        if (leaves_early) return sum;
    }
    must(it.result);
    return sum;
}

Test(up, loops_over_one_query_may_be_nested)
{
    quern_query *query = setup_query(world, (quern_term[]){quern_term_up(number, parent)}, 1);
    const uint64_t expected = sum_of_targets(query, false);
    uint64_t sum = 0;
    uint32_t view_count = 0;
    quern_query_iterator it = quern_query_iterate(query);
    while (quern_query_next(&it)) {
        const uint64_t *const *up = QUERN_UP(&it.view, 0, uint64_t);
        if (view_count++ < 20) cr_assert_eq(sum_of_targets(query, false), expected);
        if (view_count < WALKS - 2) sum_of_targets(query, true);
        for (uint32_t i = 0; i < it.view.count; i++)
            sum += *up[i];
    }
    must(it.result);
    cr_assert_eq(sum, expected);
}

Test(up, buffers_of_loops_left_early_are_reused)
{
    quern_query *query = setup_query(world, (quern_term[]){quern_term_up(number, parent)}, 1);
    const uint64_t expected = sum_of_targets(query, false), first = sum_of_targets(query, true);
    for (uint32_t i = 0; i < 100; i++)
        cr_assert_eq(sum_of_targets(query, true), first);
    quern_query_iterator outer = quern_query_iterate(query), oldest = quern_query_iterate(query);
    cr_assert(quern_query_next(&oldest));
    for (uint32_t i = 0; i < 3 * WALKS; i++) {
        cr_assert(quern_query_next(&outer), "it moves all the while");
        sum_of_targets(query, true);
    }
    cr_assert(quern_query_next(&oldest), "loops with one iterator object take each other's place");
    quern_query_iterator others[WALKS];
    for (uint32_t i = 0; i < WALKS; i++) {
        others[i] = quern_query_iterate(query);
        cr_assert(quern_query_next(&others[i]));
    }
    captured_reports lost;
    capture_reports(&lost);
    cr_assert_not(quern_query_next(&oldest), "there are eight that moved later");
    cr_assert_eq(oldest.result, QUERN_ERROR_INVALID_ARGUMENT);
    cr_assert_not_null(strstr(lost.last, "8 unfinished iterations"), "%s", lost.last);
    cr_assert_eq(lost.log_count, 1u, "not only in the result");
    cr_assert_not(quern_query_next(&oldest));
    cr_assert_eq(lost.log_count, 1u, "once");
    cr_assert_eq(sum_of_targets(query, false), expected);
}

/* For each row of an outer loop, an inner loop over the same query is left at its first view. */
Test(up, inner_loops_left_early_do_not_end_the_outer_loop)
{
    quern_query *query = setup_query(world, (quern_term[]){quern_term_up(number, parent)}, 1);
    const uint64_t expected = sum_of_targets(query, false);
    uint64_t sum = 0;
    quern_query_iterator outer = quern_query_iterate(query);
    while (quern_query_next(&outer)) {
        const uint64_t *const *up = QUERN_UP(&outer.view, 0, uint64_t);
        for (uint32_t i = 0; i < outer.view.count; i++) {
            quern_query_iterator inner = quern_query_iterate(query);
            cr_assert(quern_query_next(&inner));
            sum += *up[i];
        }
    }
    must(outer.result);
    cr_assert_eq(sum, expected);
}

Test(up, loops_that_reach_their_end_do_not_count_as_unfinished)
{
    quern_query *query = setup_query(world, (quern_term[]){quern_term_up(number, parent)}, 1);
    quern_query_iterator oldest = quern_query_iterate(query);
    cr_assert(quern_query_next(&oldest));
    quern_query_iterator others[2 * WALKS];
    for (uint32_t i = 0; i < 2 * WALKS; i++) {
        others[i] = quern_query_iterate(query);
        while (quern_query_next(&others[i]))
            ;
        must(others[i].result);
    }
    cr_assert(quern_query_next(&oldest));
    must(oldest.result);
}

Test(up, loops_left_early_can_be_ended)
{
    quern_query *query = setup_query(world, (quern_term[]){quern_term_up(number, parent)}, 1);
    const uint64_t expected = sum_of_targets(query, false);
    quern_query_iterator outer = quern_query_iterate(query);
    cr_assert(quern_query_next(&outer));
    for (uint32_t i = 0; i < 3 * WALKS; i++) {
        quern_query_iterator left = quern_query_iterate(query);
        cr_assert(quern_query_next(&left));
        quern_query_iterator_end(&left);
        quern_query_iterator_end(&left);
        cr_assert_not(quern_query_next(&left));
        must(left.result);
    }
    cr_assert(quern_query_next(&outer), "it has not moved, and keeps its place");
    quern_query_iterator others[WALKS];
    for (uint32_t i = 0; i < WALKS; i++) {
        others[i] = quern_query_iterate(query);
        cr_assert(quern_query_next(&others[i]));
    }
    quern_query_iterator_end(&outer); /* other iterations reuse its address buffer and continue */
    quern_query_iterator last = quern_query_iterate(query);
    cr_assert(quern_query_next(&last), "takes the place of the first of them");
    captured_reports lost;
    capture_reports(&lost);
    cr_assert_not(quern_query_next(&others[0]));
    for (uint32_t i = 1; i < WALKS; i++)
        cr_assert(quern_query_next(&others[i]));
    cr_assert_eq(sum_of_targets(query, false), expected);
}

/* --------------------------------------------------------------------------------------------- nearest */

/* Makes a chain with element 0 as root. Each element divisible by 7 has its index as number. */
static void make_chain(quern_entity *chain, quern_relation relation)
{
    for (uint32_t i = 0; i < CHAIN; i++) {
        chain[i] = setup_entity_with(world, (quern_component[]){tag, number}, i % 7 == 0 ? 2 : 1);
        if (i % 7 == 0) must(quern_entity_set(world, chain[i], number, &(uint64_t){i}));
        if (i > 0) relate(chain[i], relation, chain[i - 1]);
    }
}

Test(up_nearest, value_of_the_nearest_ancestor_is_used_and_not_that_of_the_row)
{
    quern_entity chain[CHAIN];
    make_chain(chain, friend_of);
    quern_query *query = setup_query(
        world, (quern_term[]){quern_term_with(tag), quern_term_up_nearest(number, friend_of)}, 2);
    uint32_t row_count = 0;
    quern_query_iterator it = quern_query_iterate(query);
    while (quern_query_next(&it)) {
        const uint64_t *const *up = QUERN_UP(&it.view, 1, uint64_t);
        for (uint32_t i = 0; i < it.view.count; i++, row_count++) {
            uint32_t place = 0;
            while (!quern_entity_equal(chain[place], it.view.entities[i]))
                place++;
            cr_assert_eq(*up[i], (place - 1) / 7 * 7);
        }
    }
    must(it.result);
    cr_assert_eq(row_count, (uint32_t)CHAIN - 1);
    must(quern_entity_remove(world, chain[0], number));
    cr_assert_eq(quern_query_count(query), (uint64_t)CHAIN - 8, "seven have no such ancestor any more");
}

Test(up_nearest, optional_value_is_null_without_an_ancestor_that_has_it)
{
    quern_entity chain[CHAIN];
    make_chain(chain, friend_of);
    must(quern_entity_remove(world, chain[0], number));
    quern_query *query = setup_query(
        world,
        (quern_term[]){quern_term_with(tag),
                       quern_term_up_make(number, friend_of, QUERN_MATCH_OPTIONAL, QUERN_PATH_NEAREST)},
        2);
    uint32_t null_count = 0, row_count = 0;
    quern_query_iterator it = quern_query_iterate(query);
    while (quern_query_next(&it)) {
        const void *const *up = quern_view_up(&it.view, 1);
        for (uint32_t i = 0; i < it.view.count; i++)
            null_count += up[i] == NULL;
        row_count += it.view.count;
    }
    must(it.result);
    cr_assert_eq(row_count, (uint32_t)CHAIN + TARGETS);
    cr_assert_eq(null_count, (uint32_t)TARGETS + 8);
}

/* Cycles of every length up to 20, with tails of every length up to 5. */
Test(up_nearest, search_in_a_cycle_ends)
{
    for (uint32_t length = 2; length <= 20; length++)
        for (uint32_t tail = 0; tail <= 5; tail++) {
            quern_entity ring[25];
            for (uint32_t i = 0; i < length + tail; i++)
                ring[i] = setup_entity_with(world, &tag, 1);
            for (uint32_t i = 0; i < length + tail; i++)
                relate(ring[i], friend_of, ring[i < length ? (i + 1) % length : i - 1]);
            quern_query *query =
                setup_query(world, (quern_term[]){quern_term_up_nearest(number, friend_of)}, 1);
            cr_assert_eq(quern_query_count(query), 0u);
            must(quern_entity_add(world, ring[length / 2], number, NULL));
            cr_assert_eq(quern_query_count(query), length + tail, "it is everybody's ancestor");
            quern_query_destroy(query);
            for (uint32_t i = 0; i < length + tail; i++)
                must(quern_entity_unrelate(world, ring[i], friend_of));
        }
}

/* ----------------------------------------------------------------------------------------- definitions */

static quern_result try_terms(const quern_term *terms, uint32_t count)
{
    quern_query_def def = {0};
    memcpy(def.terms, terms, count * sizeof *terms);
    quern_query *query = NULL;
    const quern_result result = quern_query_create(world, &def, &query);
    cr_assert_eq(query != NULL, result == QUERN_OK);
    quern_query_destroy(query);
    return result;
}

#define REFUSED(code, words, ...)                                                                        \
    do {                                                                                                 \
        const quern_term refused[] = {__VA_ARGS__};                                                      \
        assert_refused(world, QUERN_ERROR_##code, try_terms(refused, sizeof refused / sizeof *refused)); \
        cr_assert_not_null(strstr(quern_error_message(), words), "%s", quern_error_message());           \
    } while (0)

static quern_term changed_up(quern_term term, quern_match match, quern_access access, int path)
{
    term.match = match;
    term.access = access;
    term.path = (quern_term_path)path;
    return term;
}

Test(up_refused, invalid_up_terms)
{
    const quern_relation none = {0}, component = {number.bits}, unknown = {parent.bits + 500};
    const quern_term up = quern_term_up(number, parent);
    REFUSED(INVALID_ARGUMENT, "names no relation", quern_term_up(number, none));
    REFUSED(INVALID_ARGUMENT, "term 0", quern_term_up(number, component));
    REFUSED(INVALID_ARGUMENT, "term 0", quern_term_up(number, unknown));
    REFUSED(INVALID_ARGUMENT, "tag", quern_term_up(tag, parent));
    REFUSED(UNKNOWN_COMPONENT, "term 0", quern_term_up((quern_component){0}, parent));
    REFUSED(INVALID_ARGUMENT, "changed", quern_term_changed(up));
    REFUSED(INVALID_ARGUMENT, "only be read",
            changed_up(up, QUERN_MATCH_ALL, QUERN_ACCESS_WRITE, QUERN_PATH_TARGET));
    REFUSED(INVALID_ARGUMENT, "only be read",
            changed_up(up, QUERN_MATCH_ALL, QUERN_ACCESS_NONE, QUERN_PATH_TARGET));
    REFUSED(INVALID_ARGUMENT, "QUERN_MATCH_ALL",
            changed_up(up, QUERN_MATCH_ANY, QUERN_ACCESS_READ, QUERN_PATH_TARGET));
    REFUSED(INVALID_ARGUMENT, "path 7", changed_up(up, QUERN_MATCH_ALL, QUERN_ACCESS_READ, 7));
    REFUSED(INVALID_ARGUMENT, "no up-term",
            changed_up(up, QUERN_MATCH_ALL, QUERN_ACCESS_READ, QUERN_PATH_ROW));
    REFUSED(DUPLICATE_COMPONENT, "term 0 and again in term 1", up, quern_term_up_optional(number, parent));
    must(try_terms((quern_term[]){up, quern_term_up_nearest(number, parent), quern_term_read(number),
                                  quern_term_up(number, friend_of)},
                   4));
}

Test(up_refused, relation_of_another_world)
{
    quern_world *stranger = setup_world();
    quern_relation foreign = make_relation(stranger, .name = "belongs to");
    REFUSED(INVALID_ARGUMENT, "term 0", quern_term_up(number, foreign));
    quern_world_destroy(stranger);
}

static void assert_says(const char *words)
{
    cr_assert_not_null(strstr(quern_error_message(), words), "%s", quern_error_message());
}

/* Checks that there is an address of zeroed memory for each row. */
static void assert_scratch_up(const void *const *addresses, uint32_t count)
{
    cr_assert(addresses != NULL && count > 0);
    for (uint32_t i = 0; i < count; i++)
        cr_assert_eq(*(const uint32_t *)addresses[i], 0u);
}

Test(up_refused, column_of_an_up_term_and_addresses_of_a_column)
{
    quern_query *query =
        setup_query(world, (quern_term[]){quern_term_read(other), quern_term_up(number, parent)}, 2);
    quern_query_iterator it = quern_query_iterate(query);
    cr_assert(quern_query_next(&it));
    const size_t column_bytes = it.view.count * sizeof(uint64_t);
    cr_assert(is_scratch(quern_view_read(&it.view, 1), column_bytes));
    cr_assert_not_null(strstr(reports.last, "QUERN_UP has the addresses"), "%s", reports.last);
    cr_assert_not_null(QUERN_COLUMN(&it.view, 1, const uint64_t), "the same scratch memory");
    cr_assert_not_null(quern_view_write(&it.view, 1));
    assert_scratch_up(quern_view_up(&it.view, 0), it.view.count);
    assert_says("'other', term 0, which is no up-term");
    assert_scratch_up((const void *const *)QUERN_UP(&it.view, 7, uint64_t), it.view.count);
    assert_says("term 7; there are 2");
    assert_scratch_up((const void *const *)QUERN_UP(&it.view, 1, uint32_t), it.view.count);
    assert_says("QUERN_UP: an iteration asked for 'number'");
    cr_assert_eq(reports.log_count, 1u, "the first refusal of the iteration");
}

Test(up_refused, bulk_calls_on_a_query_with_required_up_terms)
{
    quern_query *query = setup_query(world, (quern_term[]){quern_term_up(number, parent)}, 1);
    uint64_t count = 77;
    must_refuse(INVALID_ARGUMENT, world, quern_entity_destroy_matching(query, &count));
    must_refuse(INVALID_ARGUMENT, world, quern_entity_add_matching(query, tag, NULL, &count));
    cr_assert_eq(count, 77u);
    quern_query_destroy(query);
    query = setup_query(world,
                        (quern_term[]){quern_term_with(other), quern_term_up_optional(number, parent)}, 2);
    must(quern_entity_add_matching(query, tag, NULL, &count));
    cr_assert_eq(count, (uint64_t)SOURCES);
}

/* ------------------------------------------------------------------------------------- parallel queries */

typedef struct answers {
    uint64_t of[SOURCES]; /* number of the source's target; 0: the source was not visited */
} answers;

static void answer(quern_context *context, const quern_view *view)
{
    answers *out = quern_context_user_data(context);
    const wide *own = QUERN_COLUMN(view, 0, const wide);
    const uint64_t *const *up = QUERN_UP(view, 1, uint64_t);
    for (uint32_t i = 0; i < view->count; i++) {
        const uint64_t source = own[i].words[0];
        out->of[source] += 1 + *up[i];
        if (*up[i] % 10 == 0)
            must(quern_commands_add(quern_context_commands(context), view->entities[i], tag, NULL));
    }
}

Test(up, parallel_query_reads_up_terms_on_any_number_of_threads)
{
    static const uint32_t thread_counts[] = {0, 1, 2, 3, 8};
    quern_query *query =
        setup_query(world, (quern_term[]){quern_term_read(other), quern_term_up(number, parent)}, 2);
    uint64_t hash = 0;
    for (uint32_t k = 0; k < sizeof thread_counts / sizeof *thread_counts; k++) {
        quern_jobs *jobs = NULL;
        if (thread_counts[k] > 0)
            must(quern_jobs_create(&(quern_jobs_def){.thread_count = thread_counts[k]}, &jobs));
        static answers found;
        memset(&found, 0, sizeof found);
        must(quern_query_parallel_for(query, jobs, answer, &found));
        for (uint32_t i = 0; i < SOURCES; i++)
            cr_assert_eq(found.of[i], stays(i) ? target_of[i] + 1u : 0u);
        if (hash == 0) hash = quern_world_hash(world);
        cr_assert_eq(quern_world_hash(world), hash);
        quern_query *tagged =
            setup_query(world, (quern_term[]){quern_term_with(tag), quern_term_with(other)}, 2);
        uint64_t count;
        must(quern_entity_remove_matching(tagged, tag, &count));
        cr_assert_gt(count, 0u);
        quern_query_destroy(tagged);
        must(quern_world_validate(world));
        quern_jobs_destroy(jobs);
        if (k == 0) hash = 0; /* the order of rows is stable after the first removal */
    }
}

static void do_nothing(quern_context *context, const quern_view *view) {}

Test(up_refused, parallel_query_that_writes_a_component_read_upward)
{
    quern_query *query =
        setup_query(world, (quern_term[]){quern_term_write(number), quern_term_up(number, parent)}, 2);
    must_refuse(SCHEDULE_CONFLICT, world, quern_query_parallel_for(query, NULL, do_nothing, NULL));
    cr_assert_not_null(strstr(quern_error_message(), "term 1 reads 'number' upward"), "%s",
                       quern_error_message());
}

/* ----------------------------------------------------------------------------------------------- memory */

/* Operations that run out of memory change nothing, and succeed later. */
Test(up, every_allocation_may_fail)
{
    failing_allocator *memory = failing_allocator_create();
    quern_world_destroy(world);
    world = make_world(.allocator = failing_allocator_interface(memory));
    register_types();
    make_entities();
    quern_query_def def = {
        .terms = {quern_term_changed(quern_term_read(other)), quern_term_up(number, parent),
                  quern_term_up_make(number, friend_of, QUERN_MATCH_OPTIONAL, QUERN_PATH_NEAREST)}};
    quern_query *query = NULL;
    uint64_t call = 0;
    quern_result result;
    do {
        failing_allocator_fail_at(memory, ++call);
        result = quern_query_create(world, &def, &query);
        cr_assert(result == QUERN_OK || result == QUERN_ERROR_OUT_OF_MEMORY);
    } while (result != QUERN_OK);
    cr_assert_gt(call, 4u);
    failing_allocator_fail_from(memory, 1);
    quern_query_iterator it = quern_query_iterate(query);
    cr_assert_eq(it.result, QUERN_ERROR_OUT_OF_MEMORY);
    cr_assert_not(quern_query_next(&it));
    cr_assert_eq(quern_query_parallel_for(query, NULL, do_nothing, NULL), QUERN_ERROR_OUT_OF_MEMORY);
    failing_allocator_heal(memory);
    it = quern_query_iterate(query);
    cr_assert(quern_query_next(&it), "the walk that was refused was no look");
    must(quern_query_parallel_for(query, NULL, do_nothing, NULL));
    quern_query_destroy(query);
    close_world();
    world = NULL;
    failing_allocator_close(memory);
}
