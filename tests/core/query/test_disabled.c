/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Test labels: threaded */
#include "tests/flow/flow_setup.h"
#include "tests/support/fixture.h"

#include <stdatomic.h>

/* Disabled entities: they exist, but queries skip them unless a term names the tag. */

static quern_component number, disabled;

static void open_world(void)
{
    world = setup_world();
    number = setup_component(world, "number", sizeof(uint64_t), 8);
    disabled = quern_world_disabled_tag(world);
    cr_assert_neq(disabled.bits, 0u, "%s", quern_error_message());
}

TestSuite(disabled, .init = open_world, .fini = close_world);

/* Creates `on` enabled entities and then `off` disabled ones. */
static void create(uint32_t on, uint32_t off)
{
    const quern_component both[] = {number, disabled};
    must(quern_entity_create_many(world, both, NULL, 1, on, NULL));
    must(quern_entity_create_many(world, both, NULL, 2, off, NULL));
}

static uint64_t count(const quern_term *terms, uint32_t term_count)
{
    quern_query *query = setup_query(world, terms, term_count);
    const uint64_t counted = quern_query_count(query);
    cr_assert_eq(iterate_rows(query), counted);
    quern_query_destroy(query);
    return counted;
}

#define COUNT(...) count((quern_term[]){__VA_ARGS__}, COUNT_OF(((quern_term[]){__VA_ARGS__})))

/* ------------------------------------------------------------------------------------------ the tag */

Test(disabled, tag_is_registered_once_per_world_with_a_name)
{
    cr_assert(quern_world_disabled_tag(world).bits == disabled.bits);
    cr_assert_str_eq(quern_component_name(world, disabled), "disabled");
    cr_assert(quern_component_find(world, "disabled").bits == disabled.bits);
    cr_assert(setup_tag(world, "disabled").bits == disabled.bits);
}

Test(disabled, user_component_with_the_same_name_is_not_the_tag)
{
    quern_world *other = setup_world();
    const quern_component own = setup_tag(other, "disabled");
    assert_refused_value(other, quern_world_disabled_tag(other).bits != 0);
    assert_message_has("'disabled'");
    setup_entity_with(other, &own, 1);
    quern_query *query = setup_query(other, (quern_term[]){quern_term_optional(own, QUERN_ACCESS_NONE)}, 1);
    cr_assert_eq(quern_query_count(query), 1u);
    quern_query_destroy(query);
    quern_world_destroy(other);
    assert_refused_value(NULL, quern_world_disabled_tag(NULL).bits != 0);
}

Test(disabled, tag_is_not_registered_when_out_of_memory)
{
    failing_allocator *allocator = failing_allocator_create();
    const quern_world_def def = {.allocator = failing_allocator_interface(allocator)};
    quern_world *other = NULL;
    must(quern_world_create(&def, &other));
    uint32_t refused = 0;
    quern_component tag = {0};
    for (; tag.bits == 0; refused++) {
        failing_allocator_fail_at(allocator, 1 + refused);
        tag = quern_world_disabled_tag(other);
        cr_assert_lt(refused, 10u);
        assert_valid(other);
    }
    cr_assert_gt(refused, 1u);
    failing_allocator_heal(allocator);
    cr_assert(quern_world_disabled_tag(other).bits == tag.bits);
    quern_world_destroy(other);
    failing_allocator_close(allocator);
}

static quern_component asked_in_frame;

static void ask(quern_context *context)
{
    asked_in_frame = quern_world_disabled_tag(*(quern_world **)quern_context_user_data(context));
}

Test(disabled, frames_find_the_tag_but_cannot_register_it)
{
    quern_world *other = setup_world();
    for (uint32_t round = 0; round < 2; round++) {
        quern_schedule *schedule = setup_schedule(other);
        make_system(schedule, "ask", NULL, .begin = ask, .user_data = &other);
        asked_in_frame = disabled;
        must_run(schedule, NULL);
        quern_schedule_destroy(schedule);
        if (round == 0) cr_assert_eq(asked_in_frame.bits, 0u, "registered while a frame ran");
        if (round == 0) cr_assert_neq(quern_world_disabled_tag(other).bits, 0u);
    }
    cr_assert(asked_in_frame.bits == quern_world_disabled_tag(other).bits);
    quern_world_destroy(other);
}

/* ------------------------------------------------------------------------------------------- queries */

Test(disabled, query_skips_disabled_entities_unless_a_term_names_the_tag)
{
    create(5, 3);
    cr_assert_eq(COUNT(quern_term_read(number)), 5u);
    cr_assert_eq(COUNT(quern_term_optional(number, QUERN_ACCESS_READ)), 5u);
    cr_assert_eq(COUNT(quern_term_any(number, QUERN_ACCESS_READ)), 5u);
    cr_assert_eq(COUNT(quern_term_read(number), quern_term_with(disabled)), 3u);
    cr_assert_eq(COUNT(quern_term_with(disabled)), 3u);
    cr_assert_eq(COUNT(quern_term_read(number), quern_term_without(disabled)), 5u);
    cr_assert_eq(COUNT(quern_term_read(number), quern_term_optional(disabled, QUERN_ACCESS_NONE)), 8u);
    cr_assert_eq(
        COUNT(quern_term_any(number, QUERN_ACCESS_READ), quern_term_any(disabled, QUERN_ACCESS_NONE)), 8u);
}

Test(disabled, query_created_before_the_tag_skips_disabled_entities)
{
    quern_world *other = setup_world();
    const quern_component here = setup_tag(other, "here");
    const quern_entity entity = setup_entity_with(other, &here, 1);
    setup_entity_with(other, &here, 1);
    quern_query *query = setup_query(other, (quern_term[]){quern_term_with(here)}, 1);
    cr_assert_eq(quern_query_count(query), 2u);
    must(quern_entity_add(other, entity, quern_world_disabled_tag(other), NULL));
    cr_assert_eq(quern_query_count(query), 1u);
    must(quern_entity_remove(other, entity, quern_world_disabled_tag(other)));
    cr_assert_eq(quern_query_count(query), 2u);
    quern_query_destroy(query);
    quern_world_destroy(other);
}

Test(disabled, handles_of_disabled_entities_work)
{
    create(0, 0);
    quern_entity entity = setup_entity_with(world, (quern_component[]){number, disabled}, 2);
    *(uint64_t *)quern_entity_get(world, entity, number) = 7;
    quern_getter *getter = NULL;
    must(quern_getter_create(world, &(quern_getter_def){.component = number}, &getter));
    cr_assert_eq(*(uint64_t *)quern_getter_get(getter, entity), 7u);
    quern_getter_destroy(getter);
    cr_assert(quern_entity_is_alive(world, entity));
}

Test(disabled, bulk_calls_skip_disabled_entities)
{
    quern_query *all = setup_query(world, (quern_term[]){quern_term_with(number)}, 1);
    const quern_component mark = setup_tag(world, "mark");
    uint64_t changed = 0;
    create(400, 300);
    must(quern_entity_add_matching(all, mark, NULL, &changed));
    cr_assert_eq(changed, 400u);
    must(quern_entity_remove_matching(all, number, &changed));
    cr_assert_eq(changed, 400u);
    cr_assert_eq(COUNT(quern_term_with(number)), 0u);
    create(200, 0);
    must(quern_entity_destroy_matching(all, &changed));
    cr_assert_eq(changed, 200u);
    cr_assert_eq(COUNT(quern_term_with(number), quern_term_with(disabled)), 300u);
    assert_valid(world);
}

Test(disabled, one_call_disables_and_enables_many_entities)
{
    create(1000, 0);
    uint64_t changed = 0;
    quern_query *on = setup_query(world, (quern_term[]){quern_term_with(number)}, 1);
    quern_query *off = setup_query(world, (quern_term[]){quern_term_with(disabled)}, 1);
    must(quern_entity_add_matching(on, disabled, NULL, &changed));
    cr_assert_eq(changed, 1000u);
    cr_assert_eq(quern_query_count(on), 0u);
    cr_assert_eq(quern_query_count(off), 1000u);
    must(quern_entity_remove_matching(on, disabled, &changed));
    cr_assert_eq(changed, 0u, "a query that does not name the tag finds no entity to enable");
    must(quern_entity_remove_matching(off, disabled, &changed));
    cr_assert_eq(changed, 1000u);
    cr_assert_eq(quern_query_count(on), 1000u);
}

/* ----------------------------------------------------------------------------- systems and callbacks */

static _Atomic uint64_t rows_seen;

static void count_rows(quern_context *context, const quern_view *view)
{
    atomic_fetch_add_explicit(&rows_seen, view->count, memory_order_relaxed);
}

/* Disables every entity whose number is odd, and enables the others. */
static void toggle(quern_context *context, const quern_view *view)
{
    const uint64_t *numbers = QUERN_COLUMN(view, 0, const uint64_t);
    quern_commands *commands = quern_context_commands(context);
    const quern_component tag = *(quern_component *)quern_context_user_data(context);
    for (uint32_t i = 0; i < view->count; i++) {
        if (numbers[i] % 2 == 1)
            quern_commands_add(commands, view->entities[i], tag, NULL);
        else
            quern_commands_remove(commands, view->entities[i], tag);
    }
}

static void number_them(quern_context *context, const quern_view *view)
{
    uint64_t *numbers = QUERN_COLUMN(view, 0, uint64_t);
    for (uint32_t i = 0; i < view->count; i++)
        numbers[i] = view->fill_index + i;
}

static void run_frames(uint32_t thread_count, uint64_t *out_hash)
{
    must(quern_entity_create_filled(world, &number, 1, 10000, number_them, NULL, NULL));
    quern_schedule *schedule = setup_phases(world, 2);
    make_system(schedule, "toggle", toggle, .user_data = &disabled,
                .terms = {quern_term_read(number), quern_term_optional(disabled, QUERN_ACCESS_NONE)});
    const quern_system counter =
        make_system(schedule, "count", count_rows, .terms = {quern_term_with(number)}, .phase = 1);
    quern_jobs *jobs = setup_jobs(thread_count);
    for (uint32_t frame = 0; frame < 2; frame++) {
        atomic_store(&rows_seen, 0);
        must_run(schedule, jobs);
        cr_assert_eq(atomic_load(&rows_seen), 5000u);
        quern_system_stats stats;
        must(quern_schedule_get_system_stats(schedule, counter, &stats));
        cr_assert_eq(stats.entity_count, 5000u);
    }
    *out_hash = quern_world_hash(world);
    quern_schedule_destroy(schedule);
    quern_jobs_destroy(jobs);
}

Test(disabled, systems_skip_disabled_entities_at_every_thread_count)
{
    uint64_t hashes[POOL_COUNT];
    for (uint32_t i = 0; i < POOL_COUNT; i++) {
        if (i > 0) close_world();
        if (i > 0) open_world();
        run_frames(pool_threads[i], &hashes[i]);
        cr_assert_eq(hashes[i], hashes[0], "with %u threads", pool_threads[i]);
    }
}

Test(disabled, parallel_query_skips_disabled_entities)
{
    create(3000, 2000);
    quern_query *query = setup_query(world, (quern_term[]){quern_term_with(number)}, 1);
    quern_jobs *jobs = setup_jobs(2);
    atomic_store(&rows_seen, 0);
    must(quern_query_parallel_for(query, jobs, count_rows, NULL));
    cr_assert_eq(atomic_load(&rows_seen), 3000u);
    quern_jobs_destroy(jobs);
}
