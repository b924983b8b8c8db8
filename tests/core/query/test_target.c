/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Test labels: threaded */
#include "core/query/query_internal.h"
#include "tests/flow/flow_setup.h"
#include "tests/support/fixture.h"
#include "tests/support/random.h"

#include <string.h>

/* Target terms in queries and systems, compared with a scan over all entities. */

enum { TARGETS = 5, COUNT = 3000 };

static quern_relation owner;
static quern_component number, tag, wide;
static quern_entity targets[TARGETS], all[COUNT];

/* Creates entities in several archetypes. Entity i has target i * i % (TARGETS + 1), or none if that is TARGETS. */
static void open_world_as(const quern_world_def *def)
{
    must(quern_world_create(def, &world));
    owner = make_relation(world, .name = "owner");
    number = setup_component(world, "number", sizeof(uint64_t), 8);
    tag = setup_tag(world, "tag");
    wide = setup_component(world, "wide", 256, 8);
    for (uint32_t i = 0; i < TARGETS; i++)
        targets[i] = setup_entity(world);
    const quern_component list[] = {number, tag, wide};
    for (uint32_t i = 0; i < COUNT; i++) {
        all[i] = setup_entity_with(world, list, 1 + i % 7 % 3);
        *(uint64_t *)quern_entity_get(world, all[i], number) = i;
        if (i * i % (TARGETS + 1) < TARGETS)
            must(quern_entity_relate(world, all[i], owner, targets[i * i % (TARGETS + 1)]));
    }
}

static void open_world(void)
{
    open_world_as(NULL);
}

TestSuite(target, .init = open_world, .fini = close_world);

static quern_query *children_of(quern_entity target)
{
    return setup_query(world, (quern_term[]){quern_term_target(owner, target), quern_term_read(number)}, 2);
}

/* Lists the sources of a target in the order of an iteration over all entities with a target. */
static uint32_t list_children(quern_entity target, uint64_t *out_numbers)
{
    const quern_term terms[] = {quern_term_read(quern_relation_component(owner)), quern_term_read(number)};
    quern_query *query = setup_query(world, terms, 2);
    quern_query_iterator it = quern_query_iterate(query);
    uint32_t count = 0;
    while (quern_query_next(&it)) {
        const quern_entity *owners = QUERN_COLUMN(&it.view, 0, const quern_entity);
        const uint64_t *numbers = QUERN_COLUMN(&it.view, 1, const uint64_t);
        for (uint32_t i = 0; i < it.view.count; i++)
            if (quern_entity_equal(owners[i], target)) out_numbers[count++] = numbers[i];
    }
    quern_query_destroy(query);
    return count;
}

static void assert_walk(quern_query *query, quern_entity target)
{
    static uint64_t expected[COUNT + 1];
    const uint32_t count = list_children(target, expected);
    uint32_t seen = 0, ordinal = 0;
    const quern_entity *next = NULL;
    const void *chunk = NULL;
    cr_assert_eq(quern_query_count(query), count);
    assert_matches(query, all, COUNT);
    quern_query_iterator it = quern_query_iterate(query);
    while (quern_query_next(&it)) {
        const uint64_t *numbers = QUERN_COLUMN(&it.view, 1, const uint64_t);
        cr_assert_eq(it.view.ordinal, ordinal++);
        cr_assert(it.view.entities != next || it.view.chunk != chunk,
                  "neighbours of one chunk come as one view");
        chunk = it.view.chunk;
        next = it.view.entities + it.view.count;
        for (uint32_t i = 0; i < it.view.count; i++, seen++) {
            cr_assert_lt(seen, count);
            cr_assert_eq(numbers[i], expected[seen]);
            cr_assert(quern_entity_equal(it.view.entities[i], all[numbers[i]]));
        }
    }
    must(it.result);
    cr_assert_eq(seen, count);
    cr_assert_eq(quern_query_view_count(query), ordinal);
}

/* ------------------------------------------------------------------------------------------- queries */

Test(target, iteration_visits_the_sources_of_a_target_in_row_order)
{
    for (uint32_t i = 0; i < TARGETS; i++) {
        quern_query *query = children_of(targets[i]);
        assert_walk(query, targets[i]);
        assert_walk(query, targets[i]);
        quern_query_destroy(query);
    }
}

Test(target, the_target_can_be_set_and_unset)
{
    quern_query *query = children_of(quern_entity_null());
    cr_assert_eq(quern_query_count(query), 0u);
    for (uint32_t i = 0; i < TARGETS; i++) {
        must(quern_query_set_target(query, targets[i]));
        assert_walk(query, targets[i]);
    }
    must(quern_query_set_target(query, all[0])); /* all[0] has no sources */
    cr_assert_eq(quern_query_count(query), 0u);
    must(quern_query_set_target(query, quern_entity_null()));
    cr_assert_eq(quern_query_count(query), 0u);
}

Test(target, list_of_sources_is_updated_after_every_change)
{
    random_source random = {7};
    quern_query *query = children_of(targets[1]);
    for (uint32_t step = 0; step < 300; step++) {
        const quern_entity entity = all[random_below(&random, COUNT)];
        const uint32_t kind = random_below(&random, 8);
        if (!quern_entity_is_alive(world, entity)) continue;
        if (kind < 4)
            must(quern_entity_relate(world, entity, owner, targets[random_below(&random, TARGETS)]));
        else if (kind < 5 && quern_entity_has(world, entity, quern_relation_component(owner)))
            must(quern_entity_unrelate(world, entity, owner));
        else if (kind < 7 && !quern_entity_has(world, entity, tag))
            must(quern_entity_add(world, entity, tag, NULL));
        else if (kind < 8)
            must(quern_entity_destroy(world, entity));
        assert_walk(query, targets[1]);
    }
    must(quern_world_remove_empty_archetypes(world, NULL));
    assert_walk(query, targets[1]);
    must(quern_entity_destroy(world, targets[1])); /* destroying the target destroys its sources */
    cr_assert_eq(quern_query_count(query), 0u);
    const quern_entity successor = setup_entity(world); /* the new entity may reuse the target's slot */
    must(quern_entity_relate(world, setup_entity(world), owner, successor));
    cr_assert_eq(quern_query_count(query), 0u);
}

Test(target, other_terms_narrow_the_selection)
{
    static uint64_t expected[COUNT];
    const uint32_t count = list_children(targets[3], expected);
    uint32_t with_tag = 0;
    for (uint32_t i = 0; i < count; i++)
        with_tag += quern_entity_has(world, all[expected[i]], tag);
    const quern_term terms[] = {quern_term_target(owner, targets[3]), quern_term_with(tag)};
    quern_query *query = setup_query(world, terms, 2);
    cr_assert_eq(quern_query_count(query), with_tag);
    cr_assert(with_tag > 0 && with_tag < count);
}

Test(target, iterations_work_after_empty_archetypes_are_removed)
{
    quern_query *query = children_of(targets[3]);
    for (uint32_t i = 0; i < COUNT; i++)
        if (!quern_entity_has(world, all[i], tag)) must(quern_entity_destroy(world, all[i]));
    assert_walk(query, targets[3]);
    const uint64_t count = quern_query_count(query);
    cr_assert_gt(count, 0u);
    uint32_t removed_count;
    must(quern_world_remove_empty_archetypes(world, &removed_count));
    cr_assert_gt(removed_count, 0u);
    cr_assert_eq(quern_query_count(query), count);
    assert_walk(query, targets[3]);
}

Test(target, failed_list_is_not_mistaken_for_that_of_the_previous_target)
{
    quern_world *const own = world;
    failing_allocator *memory = failing_allocator_create();
    open_world_as(&(quern_world_def){.allocator = failing_allocator_interface(memory)});
    quern_query *query = children_of(targets[0]);
    assert_walk(query, targets[0]);
    must(quern_query_set_target(query, targets[1])); /* targets[1] has more sources than targets[0] */
    failing_allocator_fail_from(memory, 1);
    quern_query_iterator it = quern_query_iterate(query);
    cr_assert_eq(it.result, QUERN_ERROR_OUT_OF_MEMORY);
    failing_allocator_heal(memory);
    must(quern_query_set_target(query, targets[0]));
    assert_walk(query, targets[0]);
    quern_query_destroy(query);
    quern_world_destroy(world);
    failing_allocator_close(memory);
    world = own;
}

Test(target, structural_change_ends_the_iteration)
{
    quern_query *query = children_of(targets[1]);
    for (uint32_t kind = 0; kind < 3; kind++) {
        quern_query_iterator it = quern_query_iterate(query);
        cr_assert(quern_query_next(&it));
        if (kind == 0) must(quern_query_set_target(query, targets[3]));
        if (kind == 1) must(quern_entity_relate(world, it.view.entities[0], owner, targets[0]));
        if (kind == 2) setup_entity(world);
        cr_assert_not(quern_query_next(&it));
        cr_assert_eq(it.result, QUERN_ERROR_STRUCTURE_CHANGED);
    }
    quern_query_iterator outer = quern_query_iterate(query);
    cr_assert(quern_query_next(&outer));
    assert_walk(query, targets[3]); /* a complete second iteration does not end the outer one */
    cr_assert(quern_query_next(&outer));
    quern_query_iterator_end(&outer);
    cr_assert_not(quern_query_next(&outer));
}

Test(target, invalid_target_terms_are_refused)
{
    quern_query *query = NULL;
    const quern_entity dead = setup_entity(world);
    must(quern_entity_destroy(world, dead));
    quern_query_def def = {.terms = {quern_term_target(owner, dead)}};
    must_refuse(STALE_ENTITY, world, quern_query_create(world, &def, &query));
    def.terms[0] = quern_term_target(owner, entity_of_other_world(targets[0]));
    must_refuse(FOREIGN_ENTITY, world, quern_query_create(world, &def, &query));
    def.terms[0] = quern_term_target((quern_relation){0}, targets[0]);
    must_refuse(UNKNOWN_COMPONENT, world, quern_query_create(world, &def, &query));
    def.terms[0] = quern_term_target((quern_relation){number.bits}, targets[0]);
    must_refuse(INVALID_ARGUMENT, world, quern_query_create(world, &def, &query));
    def.terms[0] = quern_term_target(owner, targets[0]);
    def.terms[0].match = QUERN_MATCH_OPTIONAL;
    must_refuse(INVALID_ARGUMENT, world, quern_query_create(world, &def, &query));
    quern_relation other = make_relation(world, .name = "other");
    def.terms[0] = quern_term_target(owner, targets[0]);
    def.terms[1] = quern_term_target(other, targets[0]);
    must_refuse(INVALID_ARGUMENT, world, quern_query_create(world, &def, &query));
    query = setup_query(world, (quern_term[]){quern_term_read(number)}, 1);
    must_refuse(INVALID_ARGUMENT, world, quern_query_set_target(query, targets[0]));
    quern_query_destroy(query);
    query = children_of(targets[0]);
    must_refuse(STALE_ENTITY, world, quern_query_set_target(query, dead));
    must_refuse(INVALID_ARGUMENT, world, quern_entity_destroy_matching(query, NULL));
    must_refuse(INVALID_ARGUMENT, world, quern_entity_add_matching(query, tag, NULL, NULL));
    quern_query_destroy(query);
    must_refuse(NULL_ARGUMENT, NULL, quern_query_set_target(NULL, targets[0]));
}

Test(target, iteration_fails_without_memory_and_works_later)
{
    failing_allocator *allocator = failing_allocator_create();
    quern_world *kept = world;
    open_world_as(&(quern_world_def){.allocator = failing_allocator_interface(allocator)});
    quern_query *query = children_of(targets[1]);
    uint32_t refused_count = 0;
    for (uint32_t call = 1;; call++, refused_count++) {
        failing_allocator_fail_at(allocator, 1);
        const quern_query_iterator it = quern_query_iterate(query);
        const bool is_full = it.result == QUERN_OK;
        failing_allocator_heal(allocator);
        if (is_full) break;
        cr_assert_eq(it.result, QUERN_ERROR_OUT_OF_MEMORY);
        must(quern_query_set_target(query, call % 2 == 0 ? targets[1] : targets[3]));
        if (call == 2) cr_assert_gt(quern_query_count(query), 0u);
    }
    cr_assert_gt(refused_count, 0u);
    must(quern_query_set_target(query, targets[1]));
    assert_walk(query, targets[1]);
    quern_query_destroy(query);
    quern_world_destroy(world);
    world = kept;
    failing_allocator_close(allocator);
}

/* ------------------------------------------------------------------------------ systems and callbacks */

static uint64_t seen_numbers[COUNT];
static uint32_t seen_count;

static void note(quern_context *context, const quern_view *view)
{
    uint64_t *numbers = QUERN_COLUMN(view, 1, uint64_t);
    for (uint32_t i = 0; i < view->count; i++) {
        seen_numbers[seen_count++] = numbers[i];
        if (numbers[i] % 3 == 0)
            quern_commands_relate(quern_context_commands(context), view->entities[i], owner,
                                  targets[numbers[i] % TARGETS]);
    }
}

static void run_frames(uint32_t thread_count, quern_schedule_def style, uint64_t *out_hash)
{
    static uint64_t expected[COUNT];
    quern_schedule *schedule = setup_schedule_as(world, style, 1);
    const quern_system system =
        make_system(schedule, "children", note,
                    .terms = {quern_term_target(owner, targets[4]), quern_term_write(number)});
    const quern_system writer = setup_writer(schedule, "other", number);
    (void)writer;
    cr_assert_not_null(strstr(described(schedule), "of one target"));
    quern_jobs *jobs = setup_jobs(thread_count);
    for (uint32_t frame = 0; frame < 8; frame++) {
        const quern_entity target = targets[frame % 4];
        if (frame != 5) must(quern_schedule_set_target(schedule, system, target));
        const quern_entity now = frame != 5 ? target : targets[0];
        const uint32_t count = list_children(now, expected);
        seen_count = 0;
        must_run(schedule, jobs);
        cr_assert_eq(seen_count, count);
        cr_assert_arr_eq(seen_numbers, expected, count * sizeof *expected);
        quern_system_stats stats;
        must(quern_schedule_get_system_stats(schedule, system, &stats));
        cr_assert_eq(stats.entity_count, count);
    }
    must(quern_schedule_set_target(schedule, system, quern_entity_null()));
    seen_count = 0;
    must_run(schedule, jobs);
    cr_assert_eq(seen_count, 0u);
    *out_hash = quern_world_hash(world);
    quern_schedule_destroy(schedule);
    quern_jobs_destroy(jobs);
}

Test(target, system_visits_the_same_rows_at_every_thread_count)
{
    uint64_t hashes[POOL_COUNT];
    for (uint32_t i = 0; i < POOL_COUNT; i++) {
        if (i > 0) close_world();
        if (i > 0) open_world();
        run_frames(pool_threads[i], schedule_style(i % STYLE_COUNT), &hashes[i]);
        cr_assert_eq(hashes[i], hashes[0], "with %u threads", pool_threads[i]);
    }
}

Test(target, systems_with_target_terms_have_restrictions)
{
    quern_schedule *schedule = setup_schedule(world);
    const quern_system plain = setup_writer(schedule, "plain", number);
    must_refuse(INVALID_ARGUMENT, world, quern_schedule_set_target(schedule, plain, targets[0]));
    assert_message_has("'plain'");
    quern_system_def def = system_def("children", idle_run);
    def.terms[0] = quern_term_target(quern_world_parent(world), targets[0]);
    def.levels = quern_world_parent(world);
    quern_system system;
    must_refuse(INVALID_ARGUMENT, world, quern_schedule_add_system(schedule, &def, &system));
    def.levels = (quern_relation){0};
    system = setup_system(schedule, &def);
    must_refuse(PROVISIONAL_ENTITY, world,
                quern_schedule_set_target(schedule, system, entity_provisional(1)));
}

static _Atomic uint64_t sum;

static void add_up(quern_context *context, const quern_view *view)
{
    const uint64_t *numbers = QUERN_COLUMN(view, 1, const uint64_t);
    for (uint32_t i = 0; i < view->count; i++)
        atomic_fetch_add_explicit(&sum, numbers[i] + 1, memory_order_relaxed);
}

Test(target, parallel_query_visits_the_sources_of_a_target)
{
    static uint64_t expected[COUNT];
    uint64_t wanted = 0;
    const uint32_t count = list_children(targets[1], expected);
    for (uint32_t i = 0; i < count; i++)
        wanted += expected[i] + 1;
    quern_query *query = children_of(targets[1]);
    for (uint32_t i = 0; i < POOL_COUNT; i++) {
        quern_jobs *jobs = setup_jobs(pool_threads[i]);
        atomic_store(&sum, 0);
        must(quern_query_parallel_for(query, jobs, add_up, NULL));
        cr_assert_eq(atomic_load(&sum), wanted);
        quern_jobs_destroy(jobs);
    }
}

static void write_numbers(quern_context *context, const quern_view *view)
{
    uint64_t *numbers = quern_view_write(view, 1);
    for (uint32_t i = 0; i < view->count; i++)
        numbers[i]++;
}

/* Several threads get row ranges of one chunk, and each notes that the chunk was written. */
Test(target, parallel_query_notes_the_chunks_that_it_writes)
{
    quern_query *changed =
        setup_query(world, (quern_term[]){quern_term_changed(quern_term_read(number))}, 1);
    quern_query *query = setup_query(
        world, (quern_term[]){quern_term_target(owner, targets[1]), quern_term_write(number)}, 2);
    for (uint32_t i = 0; i < POOL_COUNT; i++) {
        for (quern_query_iterator it = quern_query_iterate(changed); quern_query_next(&it);) {
        }
        quern_jobs *jobs = setup_jobs(pool_threads[i]);
        must(quern_query_parallel_for(query, jobs, write_numbers, NULL));
        cr_assert_gt(iterate_rows(changed), 0u);
        quern_jobs_destroy(jobs);
    }
}

/* ------------------------------------------------------------------------------ filters and up-terms */

Test(target, filters_and_up_terms_combine_with_a_target_term)
{
    const quern_component rank = setup_component(world, "rank", sizeof(uint64_t), 8);
    for (uint32_t i = 0; i < TARGETS; i += 2)
        must(quern_entity_add(world, targets[i], rank, &(uint64_t){i}));
    const quern_term terms[] = {quern_term_target(owner, targets[4]),
                                quern_term_changed(quern_term_read(number)), quern_term_up(rank, owner)};
    quern_query *query = setup_query(world, terms, 3);
    const uint64_t count = quern_query_count(query);
    cr_assert_gt(count, 0u);
    for (uint32_t round = 0; round < 2; round++) {
        uint64_t seen = 0;
        quern_query_iterator it = quern_query_iterate(query);
        while (quern_query_next(&it)) {
            const uint64_t *const *ranks = QUERN_UP(&it.view, 2, uint64_t);
            for (uint32_t i = 0; i < it.view.count; i++, seen++)
                cr_assert_eq(*ranks[i], 4u);
        }
        cr_assert_eq(it.result, QUERN_OK);
        cr_assert_eq(seen, round == 0 ? count : 0u, "round %u", round);
    }
    must(quern_query_set_target(query, targets[3])); /* the new target has no rank */
    cr_assert_eq(quern_query_count(query), 0u);
}
