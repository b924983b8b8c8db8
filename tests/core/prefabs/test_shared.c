/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Test labels: threaded */
/* Values that instances share: reading, changing, own values of single instances, refusals, failed allocations, and what
 * histories, archives and clones carry. */
#include "tests/flow/flow_setup.h"
#include "tests/support/fixture.h"
#include "tests/support/random.h"

#include <string.h>

typedef struct Stats {
    uint64_t speed;
} Stats;

static quern_component stats, mesh, place;
static quern_relation shared;
static failing_allocator *memory;

static void register_types(quern_world *in)
{
    must(QUERN_COMPONENT_REGISTER_FIELDS(in, &stats, Stats, speed));
    mesh = setup_component(in, "mesh", 8, 8);
    place = setup_component(in, "place", 8, 8);
    shared = quern_world_shared(in);
    (void)quern_world_parent(in);
}

static void open_world(void)
{
    memory = open_failing_world();
    register_types(world);
}

static quern_entity make_shared(uint64_t speed)
{
    quern_entity made;
    const quern_prefab_value values[] = {{.component = stats, .value = &(Stats){speed}},
                                         {.component = mesh, .value = &(uint64_t){speed + 100}}};
    must(quern_shared_create(world, values, 2, &made));
    return made;
}

static quern_prefab make_prefab(quern_entity of)
{
    quern_prefab prefab;
    const quern_prefab_value own[] = {{.component = place, .value = &(uint64_t){3}}};
    const quern_prefab_member_def members[] = {{.values = own, .value_count = 1, .shared = of}};
    must(quern_prefab_create(world, members, 1, &prefab));
    return prefab;
}

static quern_entity spawn(quern_prefab prefab)
{
    quern_entity made;
    must(quern_prefab_spawn(world, prefab, NULL, &made));
    return made;
}

static uint64_t speed_of(quern_world *in, quern_entity entity)
{
    const Stats *value = quern_entity_get_shared(in, entity, stats);
    return value != NULL ? value->speed : 0;
}

TestSuite(shared, .init = open_world, .fini = close_valid_world);

Test(shared, instances_read_one_value_and_see_its_changes)
{
    const quern_entity values = make_shared(5);
    const quern_prefab prefab = make_prefab(values);
    const quern_entity a = spawn(prefab), b = spawn(prefab);
    cr_assert_not(quern_entity_has(world, a, stats));
    cr_assert_eq(quern_entity_get_shared(world, a, stats), quern_entity_get_shared(world, b, stats));
    quern_query *query = setup_query(
        world, (const quern_term[]){quern_term_read(place), quern_term_shared(world, stats)}, 2);
    quern_query *plain = setup_query(world, (const quern_term[]){quern_term_read(stats)}, 1);
    quern_query *changed =
        setup_query(world,
                    (const quern_term[]){quern_term_changed(quern_term_read(stats)),
                                         quern_term_with(quern_world_disabled_tag(world))},
                    2);
    cr_assert_eq(quern_query_count(plain), 0u, "the shared values match no query");
    for (uint64_t speed = 5; speed < 8; speed++) {
        uint32_t rows = 0, changes = 0;
        if (speed > 5) must(quern_entity_set(world, values, stats, &(Stats){speed}));
        for (quern_query_iterator it = quern_query_iterate(query); quern_query_next(&it);)
            for (uint32_t i = 0; i < it.view.count; i++, rows++)
                cr_assert_eq(QUERN_UP(&it.view, 1, Stats)[i]->speed, speed);
        for (quern_query_iterator it = quern_query_iterate(changed); quern_query_next(&it);)
            changes += it.view.count;
        cr_assert_eq(rows, 2u);
        cr_assert_eq(changes, 1u);
        changes = 0;
        for (quern_query_iterator it = quern_query_iterate(changed); quern_query_next(&it);)
            changes += it.view.count;
        cr_assert_eq(changes, 0u);
    }
    must(quern_prefab_destroy(world, prefab));
    must(quern_entity_destroy(world, values));
    cr_assert_null(quern_entity_get_shared(world, a, stats));
}

Test(shared, one_instance_may_have_its_own_value)
{
    const quern_entity values = make_shared(5);
    const quern_prefab prefab = make_prefab(values);
    const quern_entity a = spawn(prefab), b = spawn(prefab);
    quern_entity copy;
    must(quern_entity_override_shared(world, a, stats, &(Stats){9}));
    cr_assert(speed_of(world, a) == 9 && speed_of(world, b) == 5);
    cr_assert_eq(*(const uint64_t *)quern_entity_get_shared(world, a, mesh), 105u);
    const uint64_t entity_count = stats_of_world(world).entity_count;
    must(quern_entity_override_shared(world, a, stats, &(Stats){10}));
    cr_assert_eq(stats_of_world(world).entity_count, entity_count, "the copy is changed again");
    must(quern_entity_clone(world, a, NULL, &copy));
    must(quern_entity_override_shared(world, copy, stats, &(Stats){11}));
    cr_assert(speed_of(world, a) == 10 && speed_of(world, copy) == 11);
    must(quern_entity_destroy(world, a));
    must(quern_entity_destroy(world, copy));
    cr_assert_eq(stats_of_world(world).entity_count, entity_count - 2,
                 "the copies end with their entities");
    must(quern_entity_relate(world, b, shared, make_shared(6)));
    cr_assert_eq(speed_of(world, b), 6u);
}

static uint32_t added_count, set_count;

static void count_add(quern_world *in, quern_entity entity, void *value, void *user_data)
{
    added_count++;
}

static void count_set(quern_world *in, quern_entity entity, void *value, void *user_data)
{
    set_count++;
    cr_assert_eq(*(const uint64_t *)value, 5);
}

Test(shared, an_own_value_is_one_change_for_entity_hooks)
{
    quern_entity of;
    quern_component hooked = make_component(world, .name = "hooked", .size_bytes = 8, .alignment_bytes = 8,
                                            .entity_hooks = {.on_add = count_add, .on_set = count_set});
    must(quern_shared_create(world, &(quern_prefab_value){.component = hooked, .value = &(uint64_t){5}}, 1,
                             &of));
    const quern_entity entity = setup_entity(world);
    must(quern_entity_relate(world, entity, shared, of));
    added_count = set_count = 0;
    must(quern_entity_override_shared(world, entity, hooked, &(uint64_t){5}));
    cr_assert_eq(added_count, 1);
    cr_assert_eq(set_count, 1);
}

typedef struct Like {
    quern_entity target;
    uint64_t strength;
} Like;

typedef struct Likes {
    QUERN_LIST(Like) edges;
} Likes;

/* The shared entity is a source with several targets, so no call replaces its list of values. */
Test(shared, a_refused_value_leaves_the_shared_ones)
{
    quern_relation likes;
    quern_component likings = make_component(
        world, QUERN_TYPE(Likes), .fields = {QUERN_LIST_FIELD(Likes, edges, Like, target, strength)});
    likes = make_relation(world, .name = "likes", .many = true, .value = likings);
    const quern_entity of = make_shared(1), entity = setup_entity(world);
    must(quern_entity_relate(world, of, likes, entity));
    must(quern_entity_relate(world, entity, shared, of));
    cr_assert_eq(quern_entity_override_shared(world, entity, likings, &(Likes){.edges.list.count = 0}),
                 QUERN_ERROR_INVALID_ARGUMENT);
    cr_assert(quern_entity_equal(quern_entity_target(world, entity, shared), of));
    cr_assert_eq(quern_entity_source_count(world, entity, quern_world_parent(world)), 0);
}

/* A program may have a relation of its own with the name. */
Test(shared, another_relation_of_that_name_shares_nothing)
{
    quern_world *other;
    quern_relation relation;
    must(quern_world_create(NULL, &other));
    must(
        quern_relation_register(other, &(quern_relation_def){.name = "shared", .levels = true}, &relation));
    const quern_component component = setup_component(other, "value", 8, 8);
    const quern_entity of = setup_entity(other), entity = setup_entity(other);
    must(quern_entity_add(other, of, component, &(uint64_t){1}));
    must(quern_entity_relate(other, entity, relation, of));
    cr_assert_null(quern_entity_get_shared(other, entity, component));
    cr_assert_eq(quern_entity_override_shared(other, entity, component, &(uint64_t){2}),
                 QUERN_ERROR_COMPONENT_ABSENT);
    quern_world_destroy(other);
}

Test(shared, wrong_calls_are_refused)
{
    quern_entity made;
    quern_prefab prefab;
    const quern_entity values = make_shared(5), a = spawn(make_prefab(values)), dead = setup_entity(world);
    const quern_component tag = setup_tag(world, "tag"), off = quern_world_disabled_tag(world);
    must(quern_entity_destroy(world, dead));
    const quern_prefab_value twice[] = {{.component = stats, .value = &(Stats){1}}, {.component = stats}};
    const quern_prefab_value disabled = {.component = stats, .is_disabled = true},
                             is_off = {.component = off};
    const quern_prefab_value unknown = {.component = component_unregistered(stats)};
    const quern_prefab_member_def of_dead = {.shared = dead};
    const quern_prefab_target target = {shared, values};
    const quern_prefab_member_def both = {.targets = &target, .target_count = 1, .shared = values};
    must_refuse(NULL_ARGUMENT, world, quern_shared_create(NULL, twice, 1, &made));
    must_refuse(NULL_ARGUMENT, world, quern_shared_create(world, NULL, 1, &made));
    must_refuse(NULL_ARGUMENT, world, quern_shared_create(world, twice, 1, NULL));
    must_refuse(INVALID_ARGUMENT, world, quern_shared_create(world, twice, 0, &made));
    must_refuse(INVALID_ARGUMENT, world, quern_shared_create(world, &disabled, 1, &made));
    must_refuse(INVALID_ARGUMENT, world, quern_shared_create(world, &is_off, 1, &made));
    must_refuse(DUPLICATE_COMPONENT, world, quern_shared_create(world, twice, 2, &made));
    must_refuse(UNKNOWN_COMPONENT, world, quern_shared_create(world, &unknown, 1, &made));
    must_refuse(STALE_ENTITY, world, quern_prefab_create(world, &of_dead, 1, &prefab));
    must_refuse(DUPLICATE_COMPONENT, world, quern_prefab_create(world, &both, 1, &prefab));
    must_refuse(STALE_ENTITY, world, quern_entity_override_shared(world, dead, stats, &(Stats){1}));
    must_refuse(NULL_ARGUMENT, world, quern_entity_override_shared(world, a, stats, NULL));
    must_refuse(COMPONENT_ABSENT, world, quern_entity_override_shared(world, a, place, &(uint64_t){1}));
    must_refuse(COMPONENT_ABSENT, world, quern_entity_override_shared(world, values, stats, &(Stats){1}));
    must_refuse(INVALID_ARGUMENT, world, quern_entity_override_shared(world, a, tag, &(uint64_t){1}));
    must_refuse(UNKNOWN_COMPONENT, world,
                quern_entity_override_shared(world, a, component_unregistered(stats), &(Stats){1}));
    assert_refused_value(world, quern_entity_get_shared(world, dead, stats) != NULL);
    quern_world *other = setup_world();
    make_relation(other, .name = "shared", .levels = true);
    assert_refused_value(other, !quern_relation_is_null(quern_world_shared(other)));
    quern_world_destroy(other);
    cr_assert_null(quern_entity_get_shared(world, a, place));
}

static void read_in_a_system(quern_context *context, const quern_view *view)
{
    (void)view;
    const quern_entity *entity = quern_context_user_data(context);
    assert_refused_value(world, quern_entity_get_shared(world, *entity, stats) != NULL);
}

/* A system reads by a term, so that the schedule knows what it reads. */
Test(shared, systems_do_not_read_them_by_the_world)
{
    quern_schedule *schedule;
    quern_entity entity = spawn(make_prefab(make_shared(5)));
    const quern_system_def reading = {.name = "read", .run = read_in_a_system, .user_data = &entity};
    must(quern_schedule_create(world, NULL, &schedule));
    must(quern_schedule_add_system(schedule, &reading, NULL));
    must(quern_schedule_run(schedule, NULL, 0));
    quern_schedule_destroy(schedule);
    cr_assert_eq(speed_of(world, entity), 5u);
}

typedef struct Ally {
    quern_entity entity;
} Ally;

Test(shared, a_provisional_handle_is_no_value_of_an_instance)
{
    quern_component ally;
    quern_entity of;
    must(QUERN_COMPONENT_REGISTER_FIELDS(world, &ally, Ally, entity));
    must(quern_shared_create(world, &(quern_prefab_value){.component = ally}, 1, &of));
    const quern_entity entity = setup_entity(world);
    must(quern_entity_relate(world, entity, shared, of));
    for (uint32_t has_own = 0; has_own < 2; has_own++) {
        must_refuse(PROVISIONAL_ENTITY, world,
                    quern_entity_override_shared(world, entity, ally, &(Ally){entity_provisional(3)}));
        cr_assert_eq(quern_entity_source_count(world, entity, quern_world_parent(world)), has_own);
        must(quern_entity_override_shared(world, entity, ally, &(Ally){entity}));
    }
}

Test(shared, histories_and_archives_carry_them)
{
    quern_history *history;
    quern_byte_buffer bytes = {0};
    const quern_entity values = make_shared(5);
    const quern_prefab prefab = make_prefab(values);
    const quern_entity a = spawn(prefab), b = spawn(prefab);
    must(quern_entity_override_shared(world, a, stats, &(Stats){9}));
    must(quern_history_create(world, NULL, &history));
    must(quern_history_save(history, 1, NULL));
    must(quern_entity_set(world, values, stats, &(Stats){6}));
    must(quern_entity_override_shared(world, b, stats, &(Stats){7}));
    must(quern_entity_destroy(world, a));
    must(quern_history_restore(history, 1, NULL));
    cr_assert(speed_of(world, a) == 9 && speed_of(world, b) == 5);
    must(quern_world_save(world, quern_sink_bytes(&bytes), NULL));
    quern_world *other = setup_world();
    quern_entity loaded[64];
    register_types(other);
    must(quern_world_load(other, quern_source_bytes(bytes.bytes, bytes.size_bytes),
                          &(quern_load_def){.entities = loaded, .entity_capacity = 64}, NULL));
    uint64_t sum = 0;
    for (uint32_t i = 0; i < stats_of_world(other).entity_count; i++)
        if (quern_entity_has(other, loaded[i], place)) sum += speed_of(other, loaded[i]);
    cr_assert_eq(sum, 14u);
    quern_world_destroy(other);
    quern_byte_buffer_release(&bytes);
    quern_history_destroy(history);
}

/* Each allocation fails in turn; a call that fails leaves all values as they were. */
Test(shared, failed_allocations_change_no_value)
{
    const quern_entity values = make_shared(5);
    const quern_entity a = spawn(make_prefab(values)), b = spawn(make_prefab(values));
    for (uint64_t call = 1, speed = 5;; call++) {
        quern_entity made;
        const quern_prefab_value value = {.component = stats, .value = &(Stats){1}};
        failing_allocator_fail_at(memory, call);
        const uint64_t failed = failing_allocator_failed_count(memory);
        if (quern_entity_override_shared(world, a, stats, &(Stats){speed + 1}) == QUERN_OK) speed++;
        (void)quern_shared_create(world, &value, 1, &made);
        const bool has_failed = failing_allocator_failed_count(memory) > failed;
        failing_allocator_heal(memory);
        cr_assert(speed_of(world, a) == speed && speed_of(world, b) == 5, "call %u: %u, not %u: %s",
                  (unsigned)call, (unsigned)speed_of(world, a), (unsigned)speed, quern_error_message());
        assert_valid(world);
        if (!has_failed) break;
        must(quern_entity_relate(world, a, shared, values));
        speed = 5;
        quern_world_trim(world);
    }
}

/* The first shared entity of a world registers the tag of disabled entities. */
Test(shared, without_the_tag_of_disabled_entities_none_is_created)
{
    quern_entity made;
    const quern_prefab_value value = {.component = stats, .value = &(Stats){1}};
    quern_result result = QUERN_ERROR_OUT_OF_MEMORY;
    for (uint64_t call = 1; result != QUERN_OK; call++) {
        failing_allocator_fail_at(memory, call);
        result = quern_shared_create(world, &value, 1, &made);
        failing_allocator_heal(memory);
        if (result != QUERN_OK)
            cr_assert_eq(result, QUERN_ERROR_OUT_OF_MEMORY, "%s", quern_error_message());
    }
    quern_world *other = setup_world();
    const quern_prefab_value of_other = {.component = setup_tag(other, "disabled")};
    must_refuse(DUPLICATE_NAME, other, quern_shared_create(other, &of_other, 1, &made));
    quern_world_destroy(other);
}

/* The copy gets the first slot of a page of links, for which the call may need memory. Relations take pages from blocks:
 * the third one has an odd number of them, so that a block ends between the two of the call. */
Test(shared, a_call_without_memory_calls_no_hooks)
{
    enum { PAGE = 4096, PAGES = 9 };
    quern_component hooked;
    quern_relation third;
    quern_entity of, last;
    hooked = make_component(world, .name = "hooked", .size_bytes = 8, .alignment_bytes = 8,
                            .entity_hooks = {.on_add = count_add, .on_set = count_set});
    must(quern_shared_create(world, &(quern_prefab_value){.component = hooked, .value = &(uint64_t){5}}, 1,
                             &of));
    third = make_relation(world, .name = "third");
    must(quern_entity_relate(world, setup_entity(world), third, of));
    for (uint32_t page = 1; page <= PAGES; page++) {
        const quern_entity entity = setup_entity(world);
        must(quern_entity_relate(world, entity, shared, of));
        do
            last = setup_entity(world);
        while (quern_entity_index(last) != page * PAGE - 1);
        quern_result result = QUERN_ERROR_OUT_OF_MEMORY;
        for (uint64_t call = 1; result != QUERN_OK; call++) {
            added_count = set_count = 0;
            failing_allocator_fail_at(memory, call);
            result = quern_entity_override_shared(world, entity, hooked, &(uint64_t){5});
            failing_allocator_heal(memory);
            cr_assert_eq(added_count, result == QUERN_OK, "page %u, failed allocation %u", (unsigned)page,
                         (unsigned)call);
        }
    }
}

/* Copies the shared value to the row. */
static void copy_speed(quern_context *context, const quern_view *view)
{
    uint64_t *places = quern_view_write(view, 0);
    const Stats *const *speeds = QUERN_UP(view, 1, Stats);
    for (uint32_t i = 0; i < view->count; i++)
        places[i] = speeds[i]->speed;
}

/* A model has a number for each kind and each instance. */
Test(shared, random_programs_agree_with_a_model)
{
    enum { KINDS = 4, INSTANCES = 60 };
    for (uint64_t seed = 1; seed <= 30; seed++) {
        random_source random = {seed};
        uint64_t kinds[KINDS], own[INSTANCES] = {0}; /* own: 0: none */
        uint32_t kind_of[INSTANCES];
        quern_entity values[KINDS], instances[INSTANCES];
        quern_prefab prefabs[KINDS];
        quern_jobs *jobs = setup_jobs(pool_threads[seed % POOL_COUNT]);
        quern_schedule *schedule = setup_schedule(world);
        make_system(schedule, "copy", copy_speed,
                    .terms = {quern_term_write(place), quern_term_shared(world, stats)});
        for (uint32_t k = 0; k < KINDS; k++) {
            values[k] = make_shared(kinds[k] = 1 + k);
            prefabs[k] = make_prefab(values[k]);
        }
        for (uint32_t i = 0; i < INSTANCES; i++)
            instances[i] = spawn(prefabs[kind_of[i] = random_below(&random, KINDS)]);
        for (uint32_t step = 0; step < 200; step++) {
            const uint32_t i = random_below(&random, INSTANCES), k = random_below(&random, KINDS);
            const uint64_t number = 1 + random_below(&random, 1000);
            switch (random_below(&random, 5)) {
            case 0:
                must(quern_entity_set(world, values[k], stats, &(Stats){kinds[k] = number}));
                break;
            case 1:
                must(quern_entity_override_shared(world, instances[i], stats, &(Stats){number}));
                own[i] = number;
                break;
            case 2:
                must(quern_entity_relate(world, instances[i], shared, values[k]));
                kind_of[i] = k;
                own[i] = 0;
                break;
            case 3:
                must(quern_entity_destroy(world, instances[i]));
                instances[i] = spawn(prefabs[kind_of[i] = k]);
                own[i] = 0;
                break;
            default:
                must(quern_entity_add(world, instances[i], mesh, NULL));
                must(quern_entity_remove(world, instances[i], mesh));
            }
            if (step % 20 == 0) must_run(schedule, jobs);
            for (uint32_t n = 0; n < INSTANCES && step % 20 == 0; n++)
                cr_assert_eq(*(const uint64_t *)quern_entity_get(world, instances[n], place),
                             own[n] != 0 ? own[n] : kinds[kind_of[n]]);
            for (uint32_t n = 0; n < INSTANCES; n++)
                cr_assert_eq(speed_of(world, instances[n]), own[n] != 0 ? own[n] : kinds[kind_of[n]],
                             "seed %llu", (unsigned long long)seed);
        }
        for (uint32_t i = 0; i < INSTANCES; i++)
            must(quern_entity_destroy(world, instances[i]));
        quern_schedule_destroy(schedule);
        quern_jobs_destroy(jobs);
    }
}
