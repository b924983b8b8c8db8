/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Test labels: threaded */
#include "core/world/world_internal.h"
#include "tests/support/effort.h"
#include "tests/support/failing_allocator.h"
#include "tests/support/random.h"
#include "tests/support/setup.h"

#include <pthread.h>
#include <string.h>

/* Refs cache the address of a value. After any change of the world they must return what quern_entity_get returns. As
 * long as no row leaves the chunk, the cached address must stay valid. */

enum { ENTITY_COUNT = 4000, THREAD_COUNT = 4 };

static quern_world *world;
static quern_component number, other;
static quern_getter *getter;
static quern_entity entities[ENTITY_COUNT];
static quern_ref refs[ENTITY_COUNT];

static quern_getter *make_getter(quern_component component)
{
    quern_getter *made = NULL;
    const quern_getter_def def = {.component = component, .refs = true};
    must(quern_getter_create(world, &def, &made));
    return made;
}

static void open_world(void)
{
    world = setup_world();
    number = setup_component(world, "number", 8, 8);
    other = setup_component(world, "other", 8, 8);
    getter = make_getter(number);
    for (uint32_t i = 0; i < ENTITY_COUNT; i++) {
        const uint64_t value = i;
        const void *pointer = &value;
        must(quern_entity_create_with(world, &number, &pointer, 1, &entities[i]));
        refs[i] = (quern_ref){.entity = entities[i]};
    }
}

static void close_world(void)
{
    quern_getter_destroy(getter);
    quern_world_destroy(world);
}

TestSuite(ref, .init = open_world, .fini = close_world);

/* Checks that all refs return what the world returns, for reading and for writing. */
static void assert_refs_agree(void)
{
    for (uint32_t i = 0; i < ENTITY_COUNT; i++) {
        const void *expected =
            quern_entity_is_alive(world, entities[i]) ? quern_entity_get(world, entities[i], number) : NULL;
        cr_assert_eq(quern_ref_get(getter, &refs[i]), expected, "entity %u", i);
        cr_assert_eq(quern_ref_get_write(getter, &refs[i]), expected, "entity %u", i);
    }
}

/* Returns the number of refs with a valid cached address. */
static uint32_t count_valid_refs(void)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < ENTITY_COUNT; i++)
        count += quern__ref_is_good(getter, &refs[i]);
    return count;
}

/* ---------------------------------------------------------------------------------- what is remembered */

Test(ref, first_get_caches_the_address)
{
    cr_assert_eq(count_valid_refs(), 0u);
    assert_refs_agree();
    cr_assert_eq(count_valid_refs(), (uint32_t)ENTITY_COUNT);
    assert_refs_agree();
    cr_assert_eq(*(const uint64_t *)quern_ref_get(getter, &refs[7]), 7u);
    refs[7] = (quern_ref){.entity = entities[7]};
    cr_assert_eq(*(uint64_t *)quern_ref_get_write(getter, &refs[7]), 7u);
    cr_assert_eq(count_valid_refs(), (uint32_t)ENTITY_COUNT);
}

Test(ref, arrivals_invalidate_nothing)
{
    assert_refs_agree();
    quern_entity created[ENTITY_COUNT];
    must(quern_entity_create_many(world, &number, NULL, 1, ENTITY_COUNT, created));
    cr_assert_eq(count_valid_refs(), (uint32_t)ENTITY_COUNT);
    assert_refs_agree();
}

Test(ref, changes_of_values_and_other_archetypes_invalidate_nothing)
{
    const uint64_t value = 5;
    const quern_entity elsewhere = setup_entity_with(world, &other, 1);
    assert_refs_agree();
    must(quern_entity_set(world, entities[3], number, &value));
    must(quern_entity_destroy(world, elsewhere));
    must(quern_world_trim(world));
    cr_assert_eq(count_valid_refs(), (uint32_t)ENTITY_COUNT);
    cr_assert_eq(*(const uint64_t *)quern_ref_get(getter, &refs[3]), 5u);
}

/* The chunk with the gap, and the last chunk, from which the gap is filled. */
Test(ref, a_departing_row_invalidates_refs_into_its_chunk_and_the_last_only)
{
    assert_refs_agree();
    must(quern_entity_destroy(world, entities[0]));
    const uint32_t good = count_valid_refs();
    cr_assert_lt(good, (uint32_t)ENTITY_COUNT);
    cr_assert_gt(good, 0u);
    cr_assert_not(quern__ref_is_good(getter, &refs[0]));
    cr_assert_not(quern__ref_is_good(getter, &refs[ENTITY_COUNT - 1]));
    assert_refs_agree();
    cr_assert_eq(count_valid_refs(), (uint32_t)ENTITY_COUNT - 1, "all but the dead one");
}

Test(ref, follows_its_entity_from_archetype_to_archetype)
{
    assert_refs_agree();
    const void *before = quern_ref_get(getter, &refs[10]);
    must(quern_entity_add(world, entities[10], other, NULL));
    const uint64_t *after = quern_ref_get(getter, &refs[10]);
    cr_assert_neq((const void *)after, before);
    cr_assert_eq(*after, 10u);
    assert_refs_agree();
    must(quern_entity_remove(world, entities[10], other));
    assert_refs_agree();
}

Test(ref, is_null_without_the_component_and_valid_with_it)
{
    quern_error_clear();
    must(quern_entity_remove(world, entities[4], number));
    cr_assert_null(quern_ref_get(getter, &refs[4]));
    const uint64_t value = 44;
    must(quern_entity_add(world, entities[4], number, &value));
    cr_assert_eq(*(const uint64_t *)quern_ref_get(getter, &refs[4]), 44u);
    must(quern_entity_destroy(world, entities[4]));
    cr_assert_null(quern_ref_get(getter, &refs[4]));
    cr_assert_null(quern_ref_get_write(getter, &refs[4]));
    setup_entity_with(world, &number, 1);
    cr_assert_null(quern_ref_get(getter, &refs[4]), "another one lives in the slot");
    cr_assert_str_eq(quern_error_message(), "");
}

/* ------------------------------------------------------------------------------------------ chunks reused */

/* Releases all chunks and allocates them again, with the same numbers, for the same archetype or another one. */
static void assert_reuse_invalidates_refs(const quern_component *set, uint32_t count, bool trims)
{
    assert_refs_agree();
    must(quern_entity_destroy_many(world, entities, ENTITY_COUNT));
    if (trims) {
        must(quern_world_remove_empty_archetypes(world, NULL));
        must(quern_world_trim(world));
    }
    for (uint32_t i = 0; i < 2 * ENTITY_COUNT; i++)
        setup_entity_with(world, set, count);
    cr_assert_eq(count_valid_refs(), 0u);
    assert_refs_agree();
}

Test(ref, chunk_of_dead_entity_may_be_reused)
{
    assert_reuse_invalidates_refs(&number, 1, false);
}

Test(ref, chunk_may_be_reused_by_another_archetype)
{
    assert_reuse_invalidates_refs((quern_component[]){other, number}, 2, true);
}

Test(ref, chunk_may_be_reused_by_an_archetype_without_refs)
{
    assert_reuse_invalidates_refs(&other, 1, true);
}

/* More slabs are allocated while refs exist, so that the table of move counts grows. */
Test(ref, refs_stay_valid_when_the_world_grows)
{
    const quern_component large = setup_component(world, "large", 8000, 8);
    assert_refs_agree();
    for (uint32_t i = 0; i < 1000; i++)
        must(quern_entity_add(world, entities[i], large, NULL));
    assert_refs_agree();
    cr_assert_eq(count_valid_refs(), (uint32_t)ENTITY_COUNT);
    assert_valid(world);
}

/* ---------------------------------------------------------------------------------------------- getters */

Test(ref, refs_are_not_shared_between_getters)
{
    quern_getter *same = make_getter(number), *others = make_getter(other);
    must(quern_entity_add(world, entities[9], other, NULL));
    quern_ref ref = {.entity = entities[9]};
    const void *value = quern_ref_get(getter, &ref);
    cr_assert_eq(quern_ref_get(same, &ref), value);
    cr_assert_eq(quern_ref_get(others, &ref), quern_entity_get(world, entities[9], other));
    cr_assert_eq(quern_ref_get(getter, &ref), value);
    must(quern_entity_remove(world, entities[9], other));
    value = quern_ref_get(getter, &ref);
    cr_assert_eq(value, quern_entity_get(world, entities[9], number));
    cr_assert_null(quern_ref_get(others, &ref));
    cr_assert_eq(quern_ref_get(getter, &ref), value,
                 "the getter that found nothing has left nothing in the ref");
    quern_getter_destroy(others);
    quern_getter_destroy(same);
}

Test(ref, ref_of_a_destroyed_getter_is_found_again)
{
    assert_refs_agree();
    quern_getter_destroy(getter);
    for (uint32_t i = 0; i < ENTITY_COUNT; i += 2)
        must(quern_entity_add(world, entities[i], other,
                              NULL)); /* no getter with refs exists, so moves are not counted */
    getter = make_getter(number);
    cr_assert_eq(count_valid_refs(), 0u);
    assert_refs_agree();
}

Test(ref, moves_are_counted_only_for_components_with_refs)
{
    const quern__move_counts *move_counts = &world->storage.slabs.move_counts;
    const quern_entity elsewhere = setup_entity_with(world, &other, 1);
    const quern__storage *storage = &world->storage;
    const quern__archetype *of_number =
        quern__storage_archetype_of(storage, quern__entities_find(&storage->entities, entities[0]));
    const quern__archetype *of_other =
        quern__storage_archetype_of(storage, quern__entities_find(&storage->entities, elsewhere));
    cr_assert_not_null(of_number->move_counts);
    cr_assert_null(of_other->move_counts);
    quern_getter *second = make_getter(number);
    quern_getter_destroy(getter);
    cr_assert_not_null(of_number->move_counts);
    quern_getter_destroy(second);
    cr_assert_null(of_number->move_counts);
    cr_assert_null(move_counts->counts);
    getter = make_getter(number);
}

Test(ref, getter_without_refs_is_refused)
{
    quern_getter *plain = NULL;
    must(quern_getter_create(world, &(quern_getter_def){.component = number}, &plain));
    quern_error_clear();
    cr_assert_null(quern_ref_get(plain, &refs[1]));
    cr_assert_not_null(
        strstr(quern_error_message(), "quern_ref_get: the getter of 'number' was created without"), "%s",
        quern_error_message());
    cr_assert_not_null(quern_ref_get(getter, &refs[1]));
    cr_assert_null(quern_ref_get_write(plain, &refs[1]));
    cr_assert_not_null(strstr(quern_error_message(), "quern_ref_get_write"), "%s", quern_error_message());
    quern_getter_destroy(plain);
}

static void get_from_kernel(quern_context *context, const quern_view *view)
{
    quern_error_clear();
    cr_assert_null(quern_ref_get(getter, &refs[1]), "systems declare lookups");
    cr_assert_not_null(strstr(quern_error_message(), "quern_ref_get: "), "%s", quern_error_message());
    cr_assert_null(quern_ref_get_write(getter, &refs[1]));
}

Test(ref, refs_fail_while_the_world_is_locked)
{
    const quern_term term = quern_term_read(number);
    quern_query *query = setup_query(world, &term, 1);
    assert_refs_agree();
    must(quern_query_parallel_for(query, NULL, get_from_kernel, NULL));
    assert_refs_agree();
    cr_assert_eq(count_valid_refs(), (uint32_t)ENTITY_COUNT);
    quern_query_destroy(query);
}

/* ---------------------------------------------------------------------------------------------- filters */

Test(ref, each_get_for_writing_is_a_change)
{
    const quern_term term = quern_term_changed(quern_term_read(number));
    assert_refs_agree();
    quern_query *query = setup_query(world, &term, 1);
    iterate_rows(query);
    quern_ref_get(getter, &refs[1]);
    cr_assert_eq(iterate_rows(query), 0u);
    for (uint32_t i = 0; i < 3; i++) {
        quern_ref_get_write(getter, &refs[1]);
        cr_assert_gt(iterate_rows(query), 0u);
        cr_assert_eq(iterate_rows(query), 0u);
    }
    quern_query_destroy(query);
}

/* ---------------------------------------------------------------------------------------------- threads */

static void *get_through_refs(void *argument)
{
    uint64_t *sum = argument;
    quern_ref own[ENTITY_COUNT];
    for (uint32_t i = 0; i < ENTITY_COUNT; i++)
        own[i] = (quern_ref){.entity = entities[i]};
    for (uint32_t round = 0; round < 20; round++)
        for (uint32_t i = 0; i < ENTITY_COUNT; i++)
            *sum += *(const uint64_t *)quern_ref_get(getter, &own[i]);
    return NULL;
}

Test(ref, threads_use_own_refs_concurrently)
{
    pthread_t threads[THREAD_COUNT];
    uint64_t sums[THREAD_COUNT] = {0};
    for (uint32_t i = 0; i < THREAD_COUNT; i++)
        cr_assert_eq(pthread_create(&threads[i], NULL, get_through_refs, &sums[i]), 0);
    for (uint32_t i = 0; i < THREAD_COUNT; i++)
        cr_assert_eq(pthread_join(threads[i], NULL), 0);
    for (uint32_t i = 0; i < THREAD_COUNT; i++)
        cr_assert_eq(sums[i], 20ull * ENTITY_COUNT * (ENTITY_COUNT - 1) / 2);
}

/* -------------------------------------------------------------------------------------- random programs */

enum { TYPE_COUNT = 5, POOL_COUNT = 1500, STEP_COUNT = 4000, STEPS_PER_CHECK = 8 };

/* Random calls of all kinds on a pool of entities, with getters and refs for two components. */
typedef struct churn {
    random_source random;
    quern_component types[TYPE_COUNT];
    quern_entity pool[POOL_COUNT];
    quern_getter *getters[2];
    quern_ref refs[2][POOL_COUNT];
    quern_query *query;
    uint64_t count_valid_refs, checked_count;
} churn;

static churn it;

static quern_entity random_entity(void)
{
    return it.pool[random_below(&it.random, POOL_COUNT)];
}

static quern_component random_type(void)
{
    return it.types[random_below(&it.random, TYPE_COUNT)];
}

static uint32_t random_set(quern_component *set)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < TYPE_COUNT; i++)
        if (random_chance(&it.random, 50)) set[count++] = it.types[i];
    return count;
}

static void create_some(void)
{
    quern_component set[TYPE_COUNT];
    const uint32_t count = random_set(set);
    for (uint32_t i = 0; i < POOL_COUNT; i++)
        if (!quern_entity_is_alive(world, it.pool[i]) && random_chance(&it.random, 60)) {
            it.pool[i] = setup_entity_with(world, set, count);
            for (uint32_t k = 0; k < 2; k++) /* some entities reuse the refs of dead ones */
                if (random_chance(&it.random, 80)) it.refs[k][i] = (quern_ref){.entity = it.pool[i]};
        }
}

static void destroy_some(void)
{
    quern_entity doomed[POOL_COUNT];
    uint32_t count = 0;
    const uint32_t percent = random_chance(&it.random, 10) ? 90 : 5;
    for (uint32_t i = 0; i < POOL_COUNT; i++)
        if (quern_entity_is_alive(world, it.pool[i]) && random_chance(&it.random, percent))
            doomed[count++] = it.pool[i];
    must(quern_entity_destroy_many(world, doomed, count));
}

static void change_matching(void)
{
    const quern_component type = random_type();
    if (random_chance(&it.random, 5))
        must(quern_entity_destroy_matching(it.query, NULL));
    else if (random_chance(&it.random, 50))
        must(quern_entity_add_matching(it.query, type, NULL, NULL));
    else
        must(quern_entity_remove_matching(it.query, type, NULL));
}

static void change_by_commands(void)
{
    quern_commands *commands = quern_world_commands(world);
    const uint32_t count = random_chance(&it.random, 20) ? 1200 : 30;
    for (uint32_t i = 0; i < count; i++) {
        const quern_entity entity = random_entity();
        if (!quern_entity_is_alive(world, entity)) continue; /* commands on it would fail */
        switch (random_below(&it.random, 5)) {
        case 0:
            must(quern_commands_destroy(commands, entity));
            break;
        case 1:
            must(quern_commands_remove(commands, entity, random_type()));
            break;
        case 2:
            record_entity(commands);
            break;
        default:
            must(quern_commands_add(commands, entity, random_type(), NULL));
            break;
        }
    }
    must(quern_world_flush(world));
}

static void reclaim(void)
{
    if (random_chance(&it.random, 50)) must(quern_world_remove_empty_archetypes(world, NULL));
    if (random_chance(&it.random, 50)) must(quern_world_trim(world));
}

static void replace_getter(void)
{
    const uint32_t k = random_below(&it.random, 2);
    quern_getter_destroy(it.getters[k]);
    it.getters[k] = make_getter(it.types[k]);
}

static void step(void)
{
    const quern_entity entity = random_entity();
    switch (random_below(&it.random, 20)) {
    case 0:
        create_some();
        break;
    case 1:
        destroy_some();
        break;
    case 2:
        change_matching();
        break;
    case 3:
        change_by_commands();
        break;
    case 4:
        reclaim();
        break;
    case 5:
        if (random_chance(&it.random, 10)) replace_getter();
        break;
    case 6:
    case 7:
    case 8:
        quern_entity_destroy(world, entity);
        break;
    case 9:
    case 10:
    case 11:
    case 12:
    case 13:
        quern_entity_remove(world, entity, random_type());
        break;
    default:
        quern_entity_add(world, entity, random_type(), NULL);
        break;
    }
}

static void check_ref(uint32_t k, uint32_t i)
{
    quern_ref *ref = &it.refs[k][i];
    const bool is_alive = quern_entity_is_alive(world, ref->entity);
    const void *expected = is_alive ? quern_entity_get(world, ref->entity, it.types[k]) : NULL;
    it.checked_count++;
    it.count_valid_refs += quern__ref_is_good(it.getters[k], ref);
    cr_assert_eq(quern_ref_get(it.getters[k], ref), expected);
    cr_assert_eq(quern_getter_get(it.getters[k], ref->entity), expected);
}

/* Uses only some refs at a time, so that others keep an old address for longer. */
static void check(void)
{
    for (uint32_t k = 0; k < 2; k++) {
        for (uint32_t i = random_below(&it.random, 3); i < POOL_COUNT; i += 3)
            check_ref(k, i);
        const void *values[POOL_COUNT];
        quern_getter_get_many(it.getters[k], it.pool, POOL_COUNT, values);
        for (uint32_t i = 0; i < POOL_COUNT; i++)
            cr_assert_eq(values[i], quern_getter_get(it.getters[k], it.pool[i]));
    }
}

static void run_churn(uint64_t seed)
{
    static const uint32_t sizes[TYPE_COUNT] = {8, 24, 0, 64, 600};
    static const char *const names[TYPE_COUNT] = {"a", "b", "tag", "wide", "wider"};
    it = (churn){.random = {.state = seed}};
    for (uint32_t i = 0; i < TYPE_COUNT; i++)
        it.types[i] = setup_component(world, names[i], sizes[i], sizes[i] > 0 ? 8 : 1);
    for (uint32_t k = 0; k < 2; k++)
        it.getters[k] = make_getter(it.types[k]);
    const quern_term terms[] = {quern_term_with(it.types[0]), quern_term_without(it.types[3])};
    it.query = setup_query(world, terms, 2);
    for (uint32_t i = 0; i < STEP_COUNT; i++) {
        step();
        if (i % STEPS_PER_CHECK == 0) check();
        if (i % 500 == 0) assert_valid(world);
    }
    quern_query_destroy(it.query);
    for (uint32_t k = 0; k < 2; k++)
        quern_getter_destroy(it.getters[k]);
}

Test(ref, random_programs_agree_with_entity_get, .timeout = 300)
{
    runs_on_one_thread();
    for (uint64_t seed = 1; seed <= 4; seed++) {
        run_churn(seed);
        cr_assert_gt(it.count_valid_refs, it.checked_count / 100, "seed %u: refs hardly remember",
                     (unsigned)seed);
        cr_assert_lt(it.count_valid_refs, it.checked_count, "seed %u", (unsigned)seed);
    }
}
