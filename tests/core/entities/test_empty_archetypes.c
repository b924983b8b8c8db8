/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */

#include "core/world/world_internal.h"
#include "tests/core/entities/archetypes_scene.h"
#include "tests/support/effort.h"
#include "tests/support/program.h"
#include "tests/support/random.h"

/* Trimming memory and removing empty archetypes must change nothing else. Also tests the statistics of archetypes. */

TestSuite(empty_archetypes, .init = open_bare, .fini = close_valid_world);

/* ----------------------------------------------------------------------------- archetypes without rows */

Test(empty_archetypes, removes_empty_ones_and_keeps_the_order)
{
    create_row_of_sets(TAG_COUNT);
    for (uint32_t i = 0; i < TAG_COUNT; i++)
        if (i % 3 != 1) must_stay_valid(quern_entity_destroy(world, entities[i]));
    cr_assert_eq(remove_empty(), TAG_COUNT * 2u / 3);
    cr_assert_eq(stats().archetype_count, 1 + TAG_COUNT / 3u);
    for (uint32_t i = 1; i < TAG_COUNT; i += 3) {
        cr_assert(has_exactly(1 + i / 3, (quern_component[]){number, tags[i]}, 2));
        cr_assert_eq(number_of(entities[i]), i);
        cr_assert(quern_entity_has(world, entities[i], tags[i]));
    }
}

Test(empty_archetypes, keeps_the_archetype_without_components)
{
    cr_assert_eq(remove_empty(), 0u);
    create_row_of_sets(3);
    must_stay_valid(quern_entity_destroy_many(world, entities, 3));
    cr_assert_eq(remove_empty(), 3u);
    cr_assert_eq(stats().archetype_count, 1u);
    must_stay_valid(quern_entity_add(world, setup_entity(world), number, NULL));
    must_stay_valid(quern_world_remove_empty_archetypes(world, NULL));
    cr_assert_eq(stats().archetype_count, 2u);
}

Test(empty_archetypes, records_keep_their_rows)
{
    create_crowd();
    for (uint32_t i = 0; i < CROWD; i++)
        must(quern_entity_add(world, entities[i], tags[i % TAG_COUNT], NULL));
    for (uint32_t i = 0; i < CROWD; i++)
        if (i % TAG_COUNT % 2 == 0) must(quern_entity_remove(world, entities[i], tags[i % TAG_COUNT]));
    cr_assert_eq(remove_empty(), TAG_COUNT / 2u);
    for (uint32_t i = 0; i < CROWD; i++) {
        cr_assert_eq(number_of(entities[i]), i);
        cr_assert_eq(quern_entity_has(world, entities[i], tags[i % TAG_COUNT]), i % TAG_COUNT % 2 == 1);
    }
    for (uint32_t i = 0; i < CROWD; i += 7)
        must(quern_entity_destroy(world, entities[i]));
}

static void change_sets(uint32_t round)
{
    for (uint32_t i = 0; i < 4; i++)
        if (quern_entity_is_alive(world, entities[i]))
            must_stay_valid(quern_entity_destroy(world, entities[i]));
    for (uint32_t i = 0; i < 4; i++)
        if ((round >> i & 1) != 0) entities[i] = create_with(tags[i], i % 2 ? tags[i + 1] : none, i);
}

Test(empty_archetypes, queries_stay_correct)
{
    quern_query *before[QUERY_COUNT], *between[QUERY_COUNT], *unused[QUERY_COUNT];
    open_queries(before);
    open_queries(unused);
    change_sets(5);
    open_queries(between);
    for (uint32_t round = 0; round < 32; round++) {
        change_sets(round * 7 % 16);
        if (round % 4 != 3) check_queries(before);
        remove_empty();
        check_queries(before);
        check_queries(between);
    }
    check_queries(unused);
    close_queries(before);
    close_queries(between);
    close_queries(unused);
}

/* Destroys queries in an order that unlinks the first, the last and one in the middle of the list of queries. */
Test(empty_archetypes, destroyed_queries_are_not_updated)
{
    quern_query *first[QUERY_COUNT], *second[QUERY_COUNT], *third[QUERY_COUNT];
    open_queries(first);
    open_queries(second);
    open_queries(third);
    change_sets(15);
    close_queries(second);
    change_sets(2);
    remove_empty();
    check_queries(first);
    close_queries(third);
    change_sets(9);
    remove_empty();
    check_queries(first);
    close_queries(first);
    change_sets(4);
    remove_empty();
}

Test(empty_archetypes, iterators_become_invalid_or_find_all)
{
    create_row_of_sets(TAG_COUNT);
    for (uint32_t i = 0; i < TAG_COUNT; i += 2)
        must_stay_valid(quern_entity_destroy(world, entities[i]));
    quern_query *query = setup_query(world, (quern_term[]){quern_term_read(number)}, 1);
    uint64_t found = 0;
    quern_query_iterator it = quern_query_iterate(query);
    while (quern_query_next(&it)) {
        found += it.view.count;
        must_stay_valid(quern_world_remove_empty_archetypes(world, NULL));
    }
    if (it.result == QUERN_OK)
        cr_assert_eq(found, TAG_COUNT / 2u);
    else
        cr_assert_eq(it.result, QUERN_ERROR_STRUCTURE_CHANGED);
    quern_query_destroy(query);
}

/* Queries that have not checked the newest archetypes, some of which are removed: one with a rarest component, and one
 * that checks all archetypes. Each is compared with a query that is created afterwards. */
Test(empty_archetypes, removing_needs_no_memory)
{
    const quern_term terms[2] = {quern_term_read(number), quern_term_without(tags[1])};
    create_row_of_sets(4);
    quern_query *queries[2] = {setup_query(world, &terms[0], 1), setup_query(world, &terms[1], 1)};
    for (uint32_t i = 0; i < 4; i += 2)
        must_stay_valid(quern_entity_destroy(world, entities[i]));
    for (uint32_t i = 0; i < 64; i++) {
        const quern_entity entity = create_with(tags[i % 3], tags[i % 4 == 0 ? 10 : 3 + i % 7], i);
        if (i % 4 != 0) must_stay_valid(quern_entity_destroy(world, entity));
    }
    failing_allocator_fail_from(allocator, 1);
    uint32_t removed_count = 0;
    must_stay_valid(quern_world_remove_empty_archetypes(world, &removed_count));
    cr_assert_eq(removed_count, 2u + 21);
    cr_assert_eq(failing_allocator_failed_count(allocator), 0u);
    failing_allocator_heal(allocator);
    (void)create_with(tags[11], tags[0], 5);
    for (uint32_t i = 0; i < 2; i++) {
        quern_query *fresh = setup_query(world, &terms[i], 1);
        cr_assert_eq(quern_query_count(queries[i]), quern_query_count(fresh));
        quern_query_destroy(fresh);
        quern_query_destroy(queries[i]);
    }
}

/* Move plans are cached by source and listed by target. Each of the two archetypes may be removed. */
Test(empty_archetypes, moves_find_new_plans)
{
    for (uint32_t round = 0; round < 6; round++) {
        quern_entity one = create_with(none, none, round),
                     other = create_with(tags[0], tags[1], round + 50);
        must_stay_valid(quern_entity_add(world, one, tags[0], NULL));
        must_stay_valid(quern_entity_add(world, one, tags[1], NULL));
        must_stay_valid(quern_entity_add(world, one, point, NULL));
        if (round % 2 == 0) remove_empty();
        must_stay_valid(quern_entity_remove(world, one, tags[1]));
        must_stay_valid(quern_entity_remove(world, one, tags[0]));
        must_stay_valid(quern_entity_remove(world, other, tags[1]));
        remove_empty();
        must_stay_valid(quern_entity_add(world, other, tags[1], NULL));
        must_stay_valid(quern_entity_set(world, one, tags[2], NULL));
        remove_empty();
        cr_assert_eq(number_of(one), round);
        cr_assert_eq(number_of(other), round + 50);
        cr_assert(quern_entity_has(world, one, point) && quern_entity_has(world, one, tags[2]));
        must_stay_valid(quern_entity_destroy(world, one));
        must_stay_valid(quern_entity_destroy(world, other));
        if (round % 3 == 0) remove_empty();
    }
}

Test(empty_archetypes, bulk_calls_find_new_plans)
{
    quern_query *query = setup_query(world, (quern_term[]){quern_term_read(number)}, 1);
    create_row_of_sets(TAG_COUNT);
    for (uint32_t round = 0; round < 4; round++) {
        uint64_t count = 0;
        must_stay_valid(quern_entity_add_matching(query, point, NULL, &count));
        cr_assert_eq(count, (uint64_t)TAG_COUNT);
        cr_assert_eq(remove_empty(), (uint32_t)TAG_COUNT);
        must_stay_valid(quern_entity_remove_matching(query, point, &count));
        cr_assert_eq(count, (uint64_t)TAG_COUNT);
        if (round % 2 == 0) cr_assert_eq(remove_empty(), (uint32_t)TAG_COUNT);
    }
    for (uint32_t i = 0; i < TAG_COUNT; i++)
        cr_assert_eq(number_of(entities[i]), i);
    quern_query_destroy(query);
}

/* create_with caches its latest list of components with the archetype. */
Test(empty_archetypes, create_with_finds_a_new_archetype)
{
    create_row_of_sets(4);
    for (uint32_t round = 0; round < 8; round++) {
        quern_entity entity = create_with(tags[5], tags[6], 1);
        if (round % 2 == 0) must_stay_valid(quern_entity_destroy(world, entity));
        if (round == 4) must_stay_valid(quern_entity_destroy(world, entities[1]));
        remove_empty();
        quern_entity again = create_with(tags[5], tags[6], 2);
        cr_assert_eq(number_of(again), 2u);
        cr_assert(quern_entity_has(world, again, tags[5]) && quern_entity_has(world, again, tags[6]));
        assert_valid(world);
        must_stay_valid(quern_entity_destroy(world, again));
        if (round % 2 == 1) must_stay_valid(quern_entity_destroy(world, entity));
        remove_empty();
        create_with(tags[5], none, 3);
    }
}

Test(empty_archetypes, memory_of_archetypes_is_released)
{
    uint64_t after_first = 0;
    for (uint32_t round = 0; round < 4; round++) {
        for (uint32_t set = 0; set < SET_COUNT; set++) {
            quern_component chosen[TAG_COUNT];
            uint32_t count = 0;
            for (uint32_t t = 0; t < TAG_COUNT; t++)
                if (set >> t & 1) chosen[count++] = tags[t];
            entities[set] = setup_entity_with(world, chosen, count);
        }
        must_stay_valid(quern_entity_destroy_many(world, entities, SET_COUNT));
        uint64_t full = failing_allocator_outstanding_bytes(allocator);
        cr_assert_eq(remove_empty(), SET_COUNT - 1u);
        trim();
        uint64_t left = failing_allocator_outstanding_bytes(allocator);
        cr_assert_lt(left + SET_COUNT * 100u, full, "archetypes were not given back");
        if (round == 0) after_first = left;
        cr_assert_leq(left, after_first, "memory grows from round to round");
    }
}

/* Creates more different sets than a world may have at a time. */
Test(empty_archetypes, archetype_limit_counts_existing_ones)
{
    quern_component more[17];
    for (uint32_t i = 0; i < 17; i++) {
        char name[16];
        snprintf(name, sizeof name, "more%u", i);
        more[i] = setup_tag(world, name);
    }
    for (uint32_t set = 1; set < 1u << 17; set++) {
        quern_component chosen[17];
        uint32_t count = 0;
        for (uint32_t t = 0; t < 17; t++)
            if (set >> t & 1) chosen[count++] = more[t];
        quern_entity entity = setup_entity_with(world, chosen, count);
        must(quern_entity_destroy(world, entity));
        if (set % 60000 == 0) remove_empty();
    }
}

Test(empty_archetypes, fails_without_a_world_or_in_a_frame)
{
    uint32_t count = 77;
    create_row_of_sets(3);
    must_stay_valid(quern_entity_destroy_many(world, entities, 2));
    must_refuse(NULL_ARGUMENT, world, quern_world_remove_empty_archetypes(NULL, &count));
    world->locked = true;
    must_refuse(WORLD_LOCKED, world, quern_world_remove_empty_archetypes(world, &count));
    world->locked = false;
    cr_assert_eq(count, 77u);
    cr_assert_eq(remove_empty(), 2u);
}

/* Queries that have not matched all archetypes yet need memory for that. */
Test(empty_archetypes, failure_changes_nothing)
{
    for (uint64_t spared = 0; spared < 20; spared++) {
        quern_query *queries[QUERY_COUNT];
        open_queries(queries);
        create_row_of_sets(TAG_COUNT);
        must_stay_valid(quern_entity_destroy_many(world, entities, TAG_COUNT / 2));
        uint32_t archetype_count = stats().archetype_count, count = 77;
        uint64_t hash = quern_world_hash(world);
        failing_allocator_fail_from(allocator, 1 + spared);
        quern_result result = quern_world_remove_empty_archetypes(world, &count);
        failing_allocator_heal(allocator);
        if (result != QUERN_OK) {
            cr_assert_eq(result, QUERN_ERROR_OUT_OF_MEMORY);
            cr_assert_eq(count, 77u);
            cr_assert_eq(stats().archetype_count, archetype_count);
        }
        cr_assert_eq(quern_world_hash(world), hash);
        remove_empty();
        check_queries(queries);
        close_queries(queries);
        must_stay_valid(quern_entity_destroy_many(world, entities + TAG_COUNT / 2, TAG_COUNT / 2));
        remove_empty();
    }
}

/* ---------------------------------------------------------------------------------- random programs */

enum { SEED_COUNT = effort(4, 2, 2), STEP_COUNT = 6000 };

static program run;

static void tidy_program(void)
{
    if (run.allocator != NULL) failing_allocator_pause(run.allocator, random_chance(&run.random, 50));
    uint64_t before = quern_world_hash(run.model.world);
    quern_result result = random_chance(&run.random, 50)
                              ? quern_world_trim(run.model.world)
                              : quern_world_remove_empty_archetypes(run.model.world, NULL);
    if (run.allocator == NULL) must(result);
    cr_assert(result == QUERN_OK || result == QUERN_ERROR_OUT_OF_MEMORY);
    if (stats_of_world(run.model.world).entity_count > 0)
        cr_assert_eq(quern_world_hash(run.model.world), before);
    assert_valid(run.model.world);
    if (run.allocator != NULL) failing_allocator_pause(run.allocator, false);
}

static void run_program(uint64_t seed, failing_allocator *failing)
{
    program_init(&run, seed, failing, 40);
    for (uint32_t step = 0; step < STEP_COUNT; step++) {
        program_step(&run);
        if (step % 60 == 0) tidy_program();
        if (step % 500 == 0) program_check(&run);
    }
    program_release(&run);
}

Test(empty_archetypes, random_programs_agree_with_the_model)
{
    close_valid_world();
    for (uint64_t seed = 1; seed <= SEED_COUNT; seed++)
        run_program(seed, NULL);
}

Test(empty_archetypes, failing_random_programs_agree_with_the_model, .timeout = 300)
{
    close_valid_world();
    for (uint64_t seed = 50; seed < 52; seed++) {
        failing_allocator *failing = failing_allocator_create();
        run_program(seed, failing);
        failing_allocator_close(failing);
    }
}

/* -------------------------------------------------------------------------------------------- trimming */

/* Memory that quern_world_trim releases, and statistics of archetypes. */

TestSuite(trim, .init = open_bare, .fini = close_valid_world);
TestSuite(archetype_stats, .init = open_bare, .fini = close_valid_world);

/* -------------------------------------------------------------------------------------------- trim */

Test(trim, releases_unused_memory)
{
    uint64_t at_first = failing_allocator_outstanding_bytes(allocator);
    create_crowd();
    must_stay_valid(quern_entity_destroy_many(world, entities, CROWD));
    trim();
    cr_assert_eq(stats().chunk_free_count, 0u);
    cr_assert_eq(stats().chunk_count, 0u);
    cr_assert_eq(stats().held_bytes, 0u);
    uint64_t kept = failing_allocator_outstanding_bytes(allocator) - at_first;
    cr_assert_lt(kept, 64u << 10, "%llu bytes are held without entities", (unsigned long long)kept);
    create_crowd();
    cr_assert_eq(number_of(entities[CROWD - 1]), CROWD - 1u);
}

Test(trim, keeps_rows_in_place)
{
    create_crowd();
    for (uint32_t i = 0; i < CROWD; i += 2)
        must(quern_entity_destroy(world, entities[i]));
    const uint64_t *value = quern_entity_get(world, entities[1], number);
    uint64_t held = stats().held_bytes;
    trim();
    cr_assert_eq(value, quern_entity_get(world, entities[1], number));
    cr_assert_lt(stats().held_bytes, held);
    for (uint32_t i = 1; i < CROWD; i += 2)
        cr_assert_eq(number_of(entities[i]), i);
}

/* Small archetypes each retain a chunk for the next row. */
Test(trim, releases_spare_chunks_of_small_archetypes)
{
    for (uint32_t round = 0; round < 3; round++) {
        for (uint32_t i = 0; i < TAG_COUNT * (TAG_COUNT - 1); i++) {
            uint32_t first = i % TAG_COUNT, second = (first + 1 + i / TAG_COUNT) % TAG_COUNT;
            entities[i] = create_with(tags[first], tags[second], i);
        }
        for (uint32_t i = 0; i < TAG_COUNT * (TAG_COUNT - 1); i++)
            if (i % 5 != 0) must_stay_valid(quern_entity_destroy(world, entities[i]));
        trim();
        trim();
    }
}

Test(trim, of_an_empty_world_does_nothing)
{
    trim();
    setup_entity(world);
    trim();
    cr_assert_eq(stats().chunk_count, 1u);
}

Test(trim, keeps_iterators_valid)
{
    create_crowd();
    quern_query *query = setup_query(world, (quern_term[]){quern_term_read(number)}, 1);
    must_stay_valid(quern_entity_destroy_many(world, entities, CROWD / 2));
    uint64_t found = 0;
    quern_query_iterator it = quern_query_iterate(query);
    while (quern_query_next(&it)) {
        found += it.view.count;
        trim();
    }
    cr_assert_eq(it.result, QUERN_OK);
    cr_assert_eq(found, CROWD / 2u);
    quern_query_destroy(query);
}

Test(trim, fails_without_a_world_or_in_a_frame)
{
    must_refuse(NULL_ARGUMENT, world, quern_world_trim(NULL));
    world->locked = true;
    must_refuse(WORLD_LOCKED, world, quern_world_trim(world));
    world->locked = false;
}

/* ------------------------------------------------------------------------------------------- stats */

Test(archetype_stats, describe_an_archetype)
{
    quern_component components[] = {point, number, tags[3]};
    must_stay_valid(quern_entity_create_many(world, components, NULL, 3, MANY, NULL));
    setup_entity(world);
    cr_assert(has_exactly(0, NULL, 0));
    cr_assert_eq(stats_of(0).entity_count, 1u);
    cr_assert_eq(stats_of(0).row_bytes, 8u);
    quern_archetype_stats found = stats_of(index_of(components, 3));
    cr_assert_eq(found.component_count, 3u);
    cr_assert_eq(found.row_bytes, 8u + 12u + 8u);
    cr_assert_eq(found.entity_count, (uint64_t)MANY);
    cr_assert_gt(found.row_capacity, 16384u * 8 / 10 / 28);
    cr_assert_leq(found.row_capacity, 16384u / 28);
    cr_assert_eq(found.chunk_count, (MANY + found.row_capacity - 1) / found.row_capacity);
    cr_assert_geq(found.held_count, found.chunk_count);
    cr_assert_float_eq(found.occupancy, MANY * 28.0 / (found.held_count * 16384.0), 1e-9);
}

Test(archetype_stats, of_an_archetype_without_rows_are_zero)
{
    quern_entity entity = create_with(tags[0], none, 1);
    must_stay_valid(quern_entity_destroy(world, entity));
    must_stay_valid(quern_world_trim(world));
    quern_archetype_stats found = stats_of(index_of((quern_component[]){number, tags[0]}, 2));
    cr_assert_eq(found.entity_count, 0u);
    cr_assert_eq(found.chunk_count, 0u);
    cr_assert_eq(found.held_count, 0u);
    cr_assert_eq(found.occupancy, 0.0);
    cr_assert_gt(found.row_capacity, 0u);
}

Test(archetype_stats, sum_to_those_of_the_world)
{
    uint64_t entity_count = 0, chunk_count = 0, used_bytes = 0;
    create_crowd();
    for (uint32_t i = 0; i < MANY; i++)
        create_with(tags[i % TAG_COUNT], none, i);
    for (uint32_t i = 0; i < stats().archetype_count; i++) {
        quern_archetype_stats found = stats_of(i);
        entity_count += found.entity_count;
        chunk_count += found.chunk_count;
        used_bytes += found.entity_count * (found.row_bytes + sizeof(quern__record));
    }
    cr_assert_eq(entity_count, stats().entity_count);
    cr_assert_eq(chunk_count, stats().chunk_count);
    cr_assert_eq(used_bytes, stats().used_bytes);
}

Test(archetype_stats, writes_at_most_the_capacity_of_components)
{
    create_with(tags[0], tags[1], 1);
    uint32_t index = index_of((quern_component[]){number, tags[0], tags[1]}, 3);
    quern_component found[4] = {{1}, {1}, {1}, {1}};
    cr_assert_eq(quern_world_list_archetype_components(world, index, NULL, 0), 3u);
    cr_assert_eq(quern_world_list_archetype_components(world, index, found, 2), 3u);
    cr_assert_eq(found[2].bits, 1u, "more were written than there is room for");
    cr_assert_eq(quern_world_list_archetype_components(world, index, found, 4), 3u);
    cr_assert_neq(found[2].bits, 1u);
    cr_assert_eq(found[3].bits, 1u);
}

Test(archetype_stats, out_of_range_are_refused)
{
    quern_archetype_stats found;
    quern_component component;
    uint32_t count = stats().archetype_count;
    must_refuse(INVALID_ARGUMENT, world, quern_world_get_archetype_stats(world, count, &found));
    must_refuse(INVALID_ARGUMENT, world, quern_world_get_archetype_stats(world, UINT32_MAX, &found));
    must_refuse(NULL_ARGUMENT, world, quern_world_get_archetype_stats(NULL, 0, &found));
    must_refuse(NULL_ARGUMENT, world, quern_world_get_archetype_stats(world, 0, NULL));
    assert_refused_value(world, quern_world_list_archetype_components(world, count, &component, 1));
    assert_refused_value(world, quern_world_list_archetype_components(NULL, 0, &component, 1));
    refusal before = refusal_begin(world);
    cr_assert_eq(quern_world_list_archetype_components(world, 0, NULL, 0), 0u);
    cr_assert_not(refusal_has_message(&before), "an answer is no error");
}
