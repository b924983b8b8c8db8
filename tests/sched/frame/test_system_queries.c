/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Test labels: threaded */
#include "tests/flow/flow_setup.h"
#include "tests/support/fixture.h"

#include <string.h>

/* Further queries of systems: what their iterations show, what they refuse, and which systems wait for each other because
 * of them. */

enum { PLAYERS = 40, GHOSTS = 3000 };

static quern_component place, score, player, ghost, frozen, weak;
static quern_relation owner;
static quern_schedule *schedule;
static captured_reports reports;
static quern_entity players[PLAYERS], ghosts[GHOSTS];

static quern_entity make(quern_component kind, int64_t at)
{
    const int64_t zero = 0;
    const quern_component all[] = {place, score, kind};
    const void *const values[] = {&at, &zero, NULL};
    quern_entity entity;
    must(quern_entity_create_with(world, all, values, 3, &entity));
    return entity;
}

static void open_world(void)
{
    world = setup_world();
    place = setup_component(world, "place", 8, 8);
    score = setup_component(world, "score", 8, 8);
    player = setup_tag(world, "player");
    ghost = setup_tag(world, "ghost");
    frozen = setup_tag(world, "frozen");
    const quern_component_def weak_def = {
        .name = "weak", .size_bytes = 8, .alignment_bytes = 8, .can_disable = true};
    must(quern_component_register(world, &weak_def, &weak));
    must(quern_relation_register(world, &(quern_relation_def){.name = "owner"}, &owner));
    for (uint32_t i = 0; i < PLAYERS; i++)
        players[i] = make(player, i);
    for (uint32_t i = 0; i < GHOSTS; i++)
        ghosts[i] = make(ghost, 1000 + i);
    schedule = setup_schedule(world);
    capture_reports(&reports);
}

TestSuite(system_queries, .init = open_world, .fini = close_world);

static int64_t value_of(quern_entity entity, quern_component component)
{
    return *(const int64_t *)quern_entity_get(world, entity, component);
}

/* The sum of the first column of query 0, and the number of its rows. */
static int64_t sum_of_query(quern_context *context, uint64_t *out_count)
{
    uint64_t sum = 0, total = 0; /* values may be large: sums wrap around */
    quern_query_iterator it = quern_context_query(context, 0);
    while (quern_query_next(&it)) {
        const int64_t *values = quern_view_read(&it.view, 0);
        const uint32_t count = it.view.count;
        for (uint32_t i = 0; i < count && values != NULL; i++)
            sum += (uint64_t)values[i];
        total += count;
    }
    cr_assert_eq(it.result, QUERN_OK);
    *out_count = total;
    return (int64_t)sum;
}

static void add_sums(quern_context *context, const quern_view *view)
{
    uint64_t count;
    int64_t *scores = quern_view_write(view, 1);
    for (uint32_t i = 0; i < view->count; i++)
        scores[i] += sum_of_query(context, &count);
}

#define GHOST_SUM (GHOSTS * INT64_C(1000) + GHOSTS * (GHOSTS - INT64_C(1)) / 2)

#define PLAYER_TERMS                                                              \
    {                                                                             \
        quern_term_read(place), quern_term_write(score), quern_term_with(player), \
            quern_term_without(ghost)                                             \
    }
#define GHOST_PLACES                                                \
    {                                                               \
        .terms = { quern_term_read(place), quern_term_with(ghost) } \
    }

/* ------------------------------------------------------------------------------------------- iterations */

Test(system_queries, callback_iterates_the_entities_of_a_further_query)
{
    make_system(schedule, "sum", add_sums, .terms = PLAYER_TERMS, .queries = {GHOST_PLACES});
    for (uint32_t i = 0; i < POOL_COUNT; i++) {
        quern_jobs *jobs = setup_jobs(pool_threads[i]);
        must_run(schedule, jobs);
        quern_jobs_destroy(jobs);
        for (uint32_t k = 0; k < PLAYERS; k++)
            cr_assert_eq(value_of(players[k], score), (i + 1) * GHOST_SUM);
    }
    cr_assert_eq(reports.log_count, 0u, "%s", reports.last);
}

static uint64_t seen_count;

static void count_rows(quern_context *context)
{
    (void)sum_of_query(context, &seen_count);
}

static uint64_t count_in_frame(void)
{
    seen_count = UINT64_MAX;
    must_run(schedule, NULL);
    return seen_count;
}

Test(system_queries, begin_end_and_systems_without_terms_iterate)
{
    make_system(schedule, "end", NULL, .end = count_rows, .queries = {GHOST_PLACES});
    cr_assert_eq(count_in_frame(), GHOSTS);
    must(quern_entity_destroy(world, ghosts[0]));
    cr_assert_eq(count_in_frame(), GHOSTS - 1u);
    make_system(schedule, "begin", NULL, .begin = count_rows,
                .queries = {{.terms = {quern_term_read(place)}}});
    cr_assert_eq(count_in_frame(), PLAYERS + GHOSTS - 1u);
}

Test(system_queries, queries_leave_out_disabled_entities)
{
    make_system(schedule, "count", NULL, .begin = count_rows, .queries = {GHOST_PLACES});
    must(quern_entity_set_enabled(world, ghosts[7], false));
    cr_assert_eq(count_in_frame(), GHOSTS - 1u);
}

Test(system_queries, tags_and_optional_terms_select_as_in_other_queries)
{
    make_system(schedule, "count", NULL, .begin = count_rows,
                .queries = {{.terms = {quern_term_optional(weak, QUERN_ACCESS_READ), quern_term_with(ghost),
                                       quern_term_without(frozen)}}});
    for (uint32_t i = 0; i < 5; i++)
        must(quern_entity_add(world, ghosts[i], frozen, NULL));
    must(quern_entity_add(world, ghosts[9], weak, NULL));
    cr_assert_eq(count_in_frame(), GHOSTS - 5u);
}

Test(system_queries, rows_with_disabled_component_are_left_out)
{
    make_system(schedule, "count", NULL, .begin = count_rows,
                .queries = {{.terms = {quern_term_read(weak)}}});
    for (uint32_t i = 0; i < 10; i++)
        must(quern_entity_add(world, ghosts[i], weak, NULL));
    for (uint32_t i = 0; i < 10; i += 3)
        must(quern_entity_set_component_enabled(world, ghosts[i], weak, false));
    cr_assert_eq(count_in_frame(), 6u);
}

static void check_ups(quern_context *context, const quern_view *view)
{
    (void)view;
    for (uint32_t round = 0; round < 10; round++) { /* more than there are buffers, each left early */
        quern_query_iterator it = quern_context_query(context, 0);
        cr_assert(quern_query_next(&it));
    }
    quern_query_iterator outer = quern_context_query(context, 0);
    uint64_t pairs = 0;
    while (quern_query_next(&outer)) {
        const void *const *values = quern_view_up(&outer.view, 1);
        quern_query_iterator inner = quern_context_query(context, 0);
        for (uint32_t i = 0; i < outer.view.count; i++)
            cr_assert_eq(*(const int64_t *)values[i], 3);
        while (quern_query_next(&inner))
            pairs += (uint64_t)inner.view.count * outer.view.count;
    }
    cr_assert_eq(outer.result, QUERN_OK);
    *(uint64_t *)quern_context_partial(context) = pairs;
}

static void check_pairs(quern_context *context)
{
    for (uint32_t i = 0; i < quern_context_partial_count(context); i++)
        cr_assert_eq(*(const uint64_t *)quern_context_partial_at(context, i), 25u);
}

Test(system_queries, up_terms_are_found_on_all_workers_and_nested)
{
    for (uint32_t i = 0; i < 5; i++)
        must(quern_entity_relate(world, ghosts[100 * i], owner, players[3]));
    make_system(schedule, "up", check_ups, .end = check_pairs, .partial_bytes = 8,
                .terms = {quern_term_read(score)},
                .queries = {{.terms = {quern_term_with(ghost), quern_term_up(place, owner)}}});
    for (uint32_t i = 0; i < POOL_COUNT; i++) {
        quern_jobs *jobs = setup_jobs(pool_threads[i]);
        must_run(schedule, jobs);
        quern_jobs_destroy(jobs);
    }
    cr_assert_eq(reports.log_count, 0u, "%s", reports.last);
}

Test(system_queries, target_term_follows_links_and_set_target)
{
    const quern_system counter =
        make_system(schedule, "count", NULL, .begin = count_rows,
                    .queries = {{.terms = {quern_term_read(place), quern_term_target(owner, players[0])}}});
    cr_assert_eq(count_in_frame(), 0u);
    must(quern_entity_relate(world, ghosts[1], owner, players[0]));
    must(quern_entity_relate(world, ghosts[2], owner, players[1]));
    must(quern_entity_relate(world, ghosts[3], owner, players[1]));
    cr_assert_eq(count_in_frame(), 1u);
    must(quern_schedule_set_target(schedule, counter, players[1]));
    cr_assert_eq(count_in_frame(), 2u);
    must(quern_entity_unrelate(world, ghosts[3], owner));
    cr_assert_eq(count_in_frame(), 1u);
}

Test(system_queries, change_filter_selects_what_changed_since_the_last_run)
{
    const quern_query_def changed = {
        .terms = {quern_term_changed(quern_term_read(place)), quern_term_with(player)}};
    const quern_system counter =
        make_system(schedule, "count", NULL, .begin = count_rows, .queries = {changed});
    cr_assert_eq(count_in_frame(), PLAYERS, "at first, all is new");
    cr_assert_eq(count_in_frame(), 0u);
    int64_t at = 5;
    must(quern_entity_set(world, players[0], place, &at));
    must(quern_schedule_set_system_enabled(schedule, counter, false));
    must_run(schedule, NULL);
    must(quern_schedule_set_system_enabled(schedule, counter, true));
    cr_assert_eq(count_in_frame(), PLAYERS, "the chunk of the changed player");
    cr_assert_eq(count_in_frame(), 0u);
}

static uint64_t shown_count;

static void count_view(quern_context *context, const quern_view *view)
{
    (void)context;
    shown_count += view->count;
}

static uint64_t count_shown(void)
{
    shown_count = 0;
    must_run(schedule, NULL);
    return shown_count;
}

/* Rows that enter an archetype did not change, however long the filter had nothing to look at. */
Test(system_queries, a_frame_without_views_counts_as_a_run)
{
    quern_component watched;
    const quern_component_def def = {
        .name = "watched", .size_bytes = 8, .alignment_bytes = 8, .row_changes = true};
    must(quern_component_register(world, &def, &watched));
    make_system(schedule, "count", count_view, .flags = QUERN_SYSTEM_SERIAL,
                .terms = {quern_term_changed(quern_term_read(watched)), quern_term_with(frozen)});
    must(quern_entity_add(world, players[0], watched, &(int64_t){1}));
    must(quern_entity_add(world, players[0], frozen, NULL));
    cr_assert_eq(count_shown(), 1u);
    must(quern_entity_remove(world, players[0], frozen));
    must(quern_entity_add(world, players[1], watched, &(int64_t){1}));
    cr_assert_eq(count_shown(), 0u);
    must(quern_entity_add(world, players[1], frozen, NULL));
    cr_assert_eq(count_shown(), 0u);
}

Test(system_queries, replaced_system_has_seen_what_the_old_one_saw)
{
    quern_system_def def = system_def("count", NULL);
    def.begin = count_rows;
    def.queries[0] =
        (quern_query_def){.terms = {quern_term_changed(quern_term_read(place)), quern_term_with(player)}};
    const quern_system counter = setup_system(schedule, &def);
    must_run(schedule, NULL);
    must(quern_schedule_replace_system(schedule, counter, &def));
    cr_assert_eq(count_in_frame(), 0u);
    def.queries[0].terms[1] = quern_term_with(ghost);
    must(quern_schedule_replace_system(schedule, counter, &def));
    cr_assert_eq(count_in_frame(), 0u);
    int64_t at = 5;
    must(quern_entity_set(world, ghosts[0], place, &at));
    cr_assert_gt(count_in_frame(), 0u);
}

Test(system_queries, history_restores_what_filters_have_seen_and_the_target)
{
    quern_history *history;
    must(quern_history_create(world, &(quern_history_def){.schedules = {schedule}}, &history));
    const quern_system counter =
        make_system(schedule, "count", NULL, .begin = count_rows,
                    .queries = {{.terms = {quern_term_changed(quern_term_read(place)),
                                           quern_term_target(owner, players[0])}}});
    must(quern_entity_relate(world, ghosts[1], owner, players[0]));
    must(quern_entity_relate(world, ghosts[2], owner, players[1]));
    must(quern_history_save(history, 1, NULL));
    const uint64_t first = count_in_frame();
    cr_assert_eq(first, 1u);
    cr_assert_eq(count_in_frame(), 0u);
    must(quern_schedule_set_target(schedule, counter, players[1]));
    cr_assert_eq(count_in_frame(), 0u, "seen already");
    must(quern_history_restore(history, 1, NULL));
    cr_assert_eq(count_in_frame(), first);
    quern_history_destroy(history);
}

Test(system_queries, rows_of_a_target_are_counted_for_the_statistics)
{
    const quern_system counter =
        make_system(schedule, "count", count_view,
                    .terms = {quern_term_read(place), quern_term_target(owner, players[0])});
    quern_system_stats stats;
    must(quern_entity_relate(world, ghosts[1], owner, players[0]));
    must(quern_entity_relate(world, ghosts[2], owner, players[0]));
    cr_assert_eq(count_shown(), 2u);
    must(quern_schedule_get_system_stats(schedule, counter, &stats));
    cr_assert_eq(stats.entity_count, 2u);
    must(quern_schedule_set_target(schedule, counter, players[1]));
    cr_assert_eq(count_shown(), 0u);
    must(quern_schedule_get_system_stats(schedule, counter, &stats));
    cr_assert_eq(stats.entity_count, 0u);
}

/* ------------------------------------------------------------------------------------------------ writing */

static void push_ghosts(quern_context *context, const quern_view *view)
{
    const int64_t *places = quern_view_read(view, 0);
    for (uint32_t i = 0; i < view->count; i++) {
        quern_query_iterator it = quern_context_query(context, 0);
        while (quern_query_next(&it)) {
            int64_t *values = quern_view_write(&it.view, 0);
            for (uint32_t k = 0; k < it.view.count; k++)
                values[k] = values[k] * 3 + places[i]; /* the order of the views matters */
        }
    }
}

Test(system_queries, query_that_writes_makes_the_system_serial_and_its_order_defined)
{
    int64_t expected = 0;
    for (uint32_t i = 0; i < PLAYERS; i++)
        expected = (int64_t)((uint64_t)expected * 3 + i);
    make_system(schedule, "push", push_ghosts, .terms = {quern_term_read(place), quern_term_with(player)},
                .queries = {{.terms = {quern_term_write(score), quern_term_with(ghost)}}});
    make_system(schedule, "read", idle_run, .terms = {quern_term_read(score)});
    cr_assert_not_null(strstr(described(schedule), "serial: writes by a query 'score'"), "%s",
                       described(schedule));
    quern_jobs *jobs = setup_jobs(4);
    must_run(schedule, jobs);
    quern_jobs_destroy(jobs);
    for (uint32_t i = 0; i < GHOSTS; i++)
        cr_assert_eq(value_of(ghosts[i], score), expected);
    cr_assert_eq(reports.log_count, 0u, "%s", reports.last);
}

static void write_own_rows_by_query(quern_context *context, const quern_view *view)
{
    int64_t *scores = quern_view_write(view, 0);
    scores[0]++;
    quern_query_iterator it = quern_context_query(context, 0);
    while (quern_query_next(&it))
        for (uint32_t i = 0; i < it.view.count; i++)
            ((int64_t *)quern_view_write(&it.view, 0))[i]++;
}

Test(system_queries, query_that_writes_may_reach_own_rows)
{
    make_system(schedule, "both", write_own_rows_by_query,
                .terms = {quern_term_write(score), quern_term_with(player)},
                .queries = {{.terms = {quern_term_write(score)}}});
    setup_writer(schedule, "later", score);
    must_run(schedule, NULL);
    must_run(schedule, NULL);
    cr_assert_eq(value_of(players[0], score), 4);
    cr_assert_eq(value_of(players[1], score), 2);
    cr_assert_eq(reports.log_count, 0u, "%s", reports.last);
}

Test(system_queries, writes_of_a_query_are_changes_for_other_filters_and_not_for_its_own)
{
    make_system(
        schedule, "push", push_ghosts, .terms = {quern_term_read(place), quern_term_with(player)},
        .queries = {{.terms = {quern_term_changed(quern_term_write(score)), quern_term_with(ghost)}}});
    make_system(
        schedule, "count", NULL, .begin = count_rows,
        .queries = {{.terms = {quern_term_changed(quern_term_read(score)), quern_term_with(ghost)}}});
    cr_assert_eq(count_in_frame(), GHOSTS);
    cr_assert_eq(count_in_frame(), 0u, "the writer saw no change, and so wrote nothing");
}

/* ----------------------------------------------------------------------------------------------- refusals */

static void refuse_write(quern_context *context)
{
    quern_query_iterator it = quern_context_query(context, 0);
    cr_assert(quern_query_next(&it));
    int64_t *scratch = quern_view_write(&it.view, 0);
    cr_assert(is_scratch(scratch, 8));
    *scratch = 77;
}

Test(system_queries, write_through_a_query_that_reads_is_refused)
{
    make_system(schedule, "wrong", NULL, .begin = refuse_write, .queries = {GHOST_PLACES});
    must_not_run(schedule, NULL, QUERN_ERROR_UNDECLARED_ACCESS);
    cr_assert_eq(value_of(ghosts[0], place), 1000);
    cr_assert_not_null(strstr(reports.last, "system 'wrong', query 0, asked to write 'place', term 0"),
                       "%s", reports.last);
}

/* Casts const away. */
static void smuggle(quern_context *context)
{
    quern_query_iterator it = quern_context_query(context, 0);
    cr_assert(quern_query_next(&it));
    ((int64_t *)(uintptr_t)quern_view_read(&it.view, 0))[0]++;
}

Test(system_queries, builds_with_checks_find_writes_to_what_a_query_only_reads)
{
    make_system(schedule, "wrong", NULL, .begin = smuggle, .queries = {GHOST_PLACES});
    if (!quern_has_checks()) cr_skip_test("only builds with QUERN_CHECKS have guards");
    must_not_run(schedule, NULL, QUERN_ERROR_UNDECLARED_ACCESS);
    cr_assert_not_null(strstr(reports.last, "'place' was changed in frame 0"), "%s", reports.last);
}

static void refuse_query(quern_context *context)
{
    quern_query_iterator it = quern_context_query(context, 1);
    cr_assert_eq(it.result, QUERN_ERROR_UNDECLARED_ACCESS);
    cr_assert_not(quern_query_next(&it));
    quern_query_iterator_end(&it);
}

Test(system_queries, query_that_is_not_declared_is_refused)
{
    make_system(schedule, "wrong", NULL, .begin = refuse_query, .queries = {GHOST_PLACES});
    must_not_run(schedule, NULL, QUERN_ERROR_UNDECLARED_ACCESS);
    cr_assert_not_null(strstr(reports.last, "system 'wrong' iterates query 1, and declares 1"), "%s",
                       reports.last);
}

static void refuse_in_parallel(quern_context *context, const quern_view *view)
{
    (void)view;
    cr_assert_eq(quern_context_query(context, 0).result, QUERN_ERROR_UNDECLARED_ACCESS);
}

Test(system_queries, parallel_query_has_no_further_queries)
{
    quern_query *query =
        setup_query(world, &(quern_term){.component = place, .access = QUERN_ACCESS_READ}, 1);
    must_refuse(UNDECLARED_ACCESS, NULL, quern_query_parallel_for(query, NULL, refuse_in_parallel, NULL));
}

#define REFUSED(code, text, ...)                                                                      \
    do {                                                                                              \
        must_refuse(                                                                                  \
            code, world,                                                                              \
            quern_schedule_add_system(                                                                \
                schedule, &(quern_system_def){.name = "wrong", .run = idle_run, __VA_ARGS__}, NULL)); \
        assert_message_has(text);                                                                     \
    } while (0)

Test(system_queries, wrong_definitions_are_refused)
{
    const quern_term own = quern_term_write(place);
    REFUSED(SCHEDULE_CONFLICT, "system 'wrong' reads 'place' by its query 0", .terms = {own},
            .queries = {GHOST_PLACES});
    REFUSED(SCHEDULE_CONFLICT, "query 0 ('others')", .terms = {own, quern_term_with(player)},
            .queries = {{.name = "others", .terms = {quern_term_read(place), quern_term_with(ghost)}}});
    REFUSED(SCHEDULE_CONFLICT, "by its query 1", .terms = {own, quern_term_without(ghost)},
            .queries = {GHOST_PLACES, {.terms = {quern_term_changed(quern_term_with(place))}}});
    REFUSED(SCHEDULE_CONFLICT, "by its query 0", .terms = {own, quern_term_without(ghost)},
            .queries = {{.terms = {quern_term_with(ghost), quern_term_up(place, owner)}}});
    REFUSED(SCHEDULE_CONFLICT, "'weak'", .terms = {quern_term_write(weak)},
            .queries = {{.terms = {quern_term_with(weak)}}});
    REFUSED(INVALID_ARGUMENT, "query 1: it has no terms", .queries = {GHOST_PLACES, {.name = "empty"}});
    REFUSED(INVALID_ARGUMENT, "query", .queries = {{.name = ""}, GHOST_PLACES});
    REFUSED(INVALID_ARGUMENT, "query 1 is zero, which ends the list, but query 2 is set",
            .queries = {GHOST_PLACES, {.name = NULL}, GHOST_PLACES});
    REFUSED(INVALID_ARGUMENT, "exclusive", .queries = {GHOST_PLACES}, .flags = QUERN_SYSTEM_EXCLUSIVE);
    REFUSED(INVALID_ARGUMENT, "query 0: term 0 reads old values",
            .queries = {{.terms = {quern_term_old(place)}}});
    REFUSED(INVALID_ARGUMENT, "query 1: term 0 is a target term, and the system has another one",
            .queries = {{.terms = {quern_term_target(owner, players[0])}},
                        {.terms = {quern_term_target(owner, players[1])}}});
    REFUSED(DUPLICATE_COMPONENT, "query 0: 'place' is in term 0 and again in term 1",
            .queries = {{.terms = {quern_term_read(place), quern_term_read(place)}}});
}

Test(system_queries, query_may_read_what_own_rows_write_if_terms_exclude_each_other_or_serial)
{
    const quern_term own = quern_term_write(place);
    make_system(schedule, "a", idle_run, .terms = {own, quern_term_without(ghost)},
                .queries = {GHOST_PLACES});
    make_system(schedule, "b", idle_run, .terms = {own, quern_term_with(player)},
                .queries = {{.terms = {quern_term_read(place), quern_term_without(player)}}});
    make_system(schedule, "c", idle_run, .terms = {own}, .queries = {GHOST_PLACES},
                .flags = QUERN_SYSTEM_SERIAL);
    make_system(
        schedule, "d", idle_run, .terms = {own},
        .queries = {{.terms = {quern_term_read(place), quern_term_with(quern_world_disabled_tag(world))}}});
    must_run(schedule, NULL);
}

/* -------------------------------------------------------------------------------------- order of systems */

static bool has_edge(quern_system before, quern_system after)
{
    must(quern_schedule_compile(schedule));
    return quern_schedule_has_edge(schedule, before, after);
}

Test(system_queries, reader_by_query_waits_for_writers_of_what_it_matches)
{
    const quern_system move =
        make_system(schedule, "move", idle_run, .terms = {quern_term_write(place), quern_term_with(ghost)});
    const quern_system catches =
        make_system(schedule, "catch", idle_run, .terms = PLAYER_TERMS, .queries = {GHOST_PLACES});
    cr_assert(has_edge(move, catches));
    const char *text = described(schedule);
    cr_assert_not_null(strstr(text, "query of 'place' written by 'move' (whole"), "%s", text);
    cr_assert_not_null(strstr(text, "query 0 (read 'place', with 'ghost')"), "%s", text);
}

Test(system_queries, pass_is_shared_until_a_writer_matches_what_the_query_reads)
{
    const quern_system move = make_system(schedule, "move", idle_run,
                                          .terms = {quern_term_write(place), quern_term_with(player)});
    const quern_system catches =
        make_system(schedule, "catch", idle_run, .terms = PLAYER_TERMS, .queries = {GHOST_PLACES});
    must(quern_schedule_compile(schedule));
    cr_assert(quern_schedule_are_fused(schedule, move, catches));
    must(quern_entity_add(world, players[0], ghost, NULL));
    cr_assert(has_edge(move, catches));
    cr_assert_not(quern_schedule_are_fused(schedule, move, catches));
}

Test(system_queries, writers_by_query_wait_for_readers_by_queries_lookups_and_up_terms)
{
    const quern_system writer =
        make_system(schedule, "writer", idle_run,
                    .queries = {{.terms = {quern_term_write(place), quern_term_with(ghost)}}});
    const quern_system by_query = make_system(schedule, "by_query", idle_run, .queries = {GHOST_PLACES});
    const quern_system other_query =
        make_system(schedule, "other_query", idle_run,
                    .queries = {{.terms = {quern_term_read(place), quern_term_without(ghost)}}});
    const quern_system by_lookup =
        make_system(schedule, "by_lookup", idle_run, .lookups = {{.component = place}});
    const quern_system other_lookup = make_system(schedule, "other_lookup", idle_run,
                                                  .lookups = {{.component = place, .without = ghost}});
    const quern_system upward =
        make_system(schedule, "upward", idle_run, .queries = {{.terms = {quern_term_up(place, owner)}}});
    const quern_system by_terms = setup_reader(schedule, "by_terms", place);
    const quern_system other_terms = make_system(
        schedule, "other_terms", idle_run, .terms = {quern_term_read(place), quern_term_without(ghost)});
    cr_assert(has_edge(writer, by_query));
    cr_assert(has_edge(writer, by_lookup));
    cr_assert(has_edge(writer, upward));
    cr_assert(has_edge(writer, by_terms));
    cr_assert_not(has_edge(writer, other_query));
    cr_assert_not(has_edge(writer, other_lookup));
    cr_assert_not(has_edge(writer, other_terms));
    cr_assert_not_null(strstr(described(schedule), "query that writes 'place' by 'writer'"), "%s",
                       described(schedule));
}

Test(system_queries, write_lookup_waits_for_query_that_it_can_reach)
{
    const quern_system near =
        make_system(schedule, "near", idle_run, .write_lookups = {{.component = place, .with = ghost}});
    const quern_system far =
        make_system(schedule, "far", idle_run, .write_lookups = {{.component = score, .without = ghost}});
    const quern_system reader = make_system(
        schedule, "reader", idle_run,
        .queries = {{.terms = {quern_term_read(place), quern_term_read(score), quern_term_with(ghost)}}});
    cr_assert(has_edge(near, reader));
    cr_assert_not(has_edge(far, reader));
}

/* ------------------------------------------------------------------------------------------------ memory */

Test(system_queries, failing_allocations_leave_nothing_changed)
{
    close_world();
    failing_allocator *memory = open_failing_world();
    const quern_component value = setup_component(world, "value", 8, 8), kind = setup_tag(world, "kind");
    quern_relation link;
    must(quern_relation_register(world, &(quern_relation_def){.name = "link"}, &link));
    const quern_entity root = setup_entity_with(world, &value, 1);
    const quern_component both[] = {value, kind};
    must(quern_entity_relate(world, setup_entity_with(world, both, 2), link, root));
    schedule = setup_schedule(world);
    quern_system_def def = system_def("reader", idle_run);
    def.queries[0] =
        (quern_query_def){.name = "ups", .terms = {quern_term_read(value), quern_term_up(value, link)}};
    def.queries[1] = (quern_query_def){.terms = {quern_term_read(value), quern_term_with(kind)}};
    def.queries[2] = (quern_query_def){.terms = {quern_term_read(value), quern_term_target(link, root)}};
    quern_result result = QUERN_ERROR_OUT_OF_MEMORY;
    for (uint64_t i = 1; result != QUERN_OK; i++) {
        failing_allocator_fail_at(memory, i);
        result = quern_schedule_add_system(schedule, &def, NULL);
        failing_allocator_heal(memory);
        cr_assert(result == QUERN_OK || result == QUERN_ERROR_OUT_OF_MEMORY);
        cr_assert_eq(quern_schedule_system_count(schedule), result == QUERN_OK ? 1u : 0u);
    }
    result = QUERN_ERROR_OUT_OF_MEMORY;
    for (uint64_t i = 1; result != QUERN_OK; i++) {
        must(quern_entity_destroy(world, setup_entity_with(world, both, 2))); /* lists are built anew */
        failing_allocator_fail_at(memory, i);
        result = quern_schedule_run(schedule, NULL, 0.1);
        failing_allocator_heal(memory);
        cr_assert(result == QUERN_OK || result == QUERN_ERROR_OUT_OF_MEMORY, "%s", quern_error_message());
    }
}
