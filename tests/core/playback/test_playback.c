/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Test labels: threaded */
#include "core/world/world_internal.h"
#include "tests/flow/flow_setup.h"
#include "tests/support/tracked.h"

#include <stdio.h>
#include <string.h>

/* The effect of commands at the sync point, and that nothing is visible before it. */

static quern_world *world;
static quern_component position, number, links, tracked_component;
static tracked_counts counts;
static uint64_t expected_dropped_count;
static bool entity_by_entity, on_new_entity;
/* alive; the first has the number 1000 and the tracked value 1000 */
static quern_entity first, second;

static void give(quern_entity entity, uint64_t payload)
{
    tracked value;
    tracked_construct(&value, payload, &counts);
    must(quern_entity_set(world, entity, tracked_component, &value));
    must(quern_entity_set(world, entity, number, &payload));
    tracked_destroy(&value, &counts);
}

static void open_world(void)
{
    memset((void *)&counts, 0, sizeof counts);
    expected_dropped_count = 0;
    entity_by_entity = false;
    on_new_entity = false;
    world = setup_world();
    position = setup_component(world, "position", sizeof(vec3), 4);
    number = setup_component(world, "number", 8, 8);
    links = setup_links(world, "links");
    tracked_component = tracked_register(world, "tracked", &counts);
    first = setup_entity(world);
    second = setup_entity(world);
    give(first, 1000);
}

static void close_world(void)
{
    quern_world_destroy(world);
    cr_assert_eq(tracked_live_count(&counts), 0u, "values were not destroyed");
    cr_assert_eq(counts.broken_count, 0u, "hooks were called on dead values");
}

TestSuite(playback, .init = open_world, .fini = close_world);

static uint64_t number_of(quern_entity entity)
{
    const uint64_t *value = quern_entity_get(world, entity, number);
    cr_assert_not_null(value, "entity %u has no number", quern_entity_index(entity));
    return *value;
}

/* --------------------------------------------------------------------- all sequences of four commands */

/* a: add without a value, A: add with one, s: set, r: remove, d: destroy. */
static const char operations[] = "aAsrd";

/* starts: with the components, without, and created */
enum { STEPS = 4, SEQUENCES = 625, STARTS = 3 };

typedef struct subject {
    quern_entity entity;
    bool exists, has;
    uint64_t value; /* 0: constructed */
} subject;

static subject subjects[STARTS][SEQUENCES];

static char operation_of(uint32_t sequence, uint32_t step)
{
    for (; step > 0; step--)
        sequence /= 5;
    return operations[sequence % 5];
}

/* Applies the rules of commands.h to one command. */
static void expect(subject *it, char operation, uint64_t value)
{
    if (!it->exists) {
        expected_dropped_count++;
    } else if (operation == 'd') {
        it->exists = false;
    } else if (operation == 'r') {
        it->has = false;
    } else if (operation != 'a') {
        it->has = true;
        it->value = value;
    } else if (!it->has) {
        it->has = true;
        it->value = 0;
    }
}

static void record(quern_commands *commands, quern_entity entity, char operation, uint64_t value)
{
    tracked given;
    tracked_construct(&given, value, &counts);
    switch (operation) {
    case 'd':
        must(quern_commands_destroy(commands, entity));
        break;
    case 'r':
        must(quern_commands_remove(commands, entity, number));
        must(quern_commands_remove(commands, entity, tracked_component));
        break;
    case 's':
        must(quern_commands_set(commands, entity, number, &value));
        must(quern_commands_set(commands, entity, tracked_component, &given));
        break;
    default:
        must(quern_commands_add(commands, entity, number, operation == 'A' ? &value : NULL));
        must(quern_commands_add(commands, entity, tracked_component, operation == 'A' ? &given : NULL));
        break;
    }
    tracked_destroy(&given, &counts);
}

static void record_step(quern_commands *commands, uint32_t sequence, uint32_t start, uint32_t step)
{
    subject *it = &subjects[start][sequence];
    char operation = operation_of(sequence, step);
    record(commands, it->entity, operation, step + 1);
    /* an add and a set count as one command each */
    if (!it->exists && operation != 'd') expected_dropped_count++;
    expect(it, operation, step + 1);
}

static void record_sequences(quern_context *context)
{
    quern_commands *commands = quern_context_commands(context);
    for (uint32_t i = 0; i < SEQUENCES; i++)
        subjects[2][i].entity = record_entity(commands);
    uint32_t outer_count = entity_by_entity ? SEQUENCES * STARTS : STEPS;
    uint32_t inner_count = entity_by_entity ? STEPS : SEQUENCES * STARTS;
    for (uint32_t outer = 0; outer < outer_count; outer++)
        for (uint32_t inner = 0; inner < inner_count; inner++) {
            uint32_t which = entity_by_entity ? outer : inner;
            record_step(commands, which / STARTS, which % STARTS, entity_by_entity ? inner : outer);
        }
}

static void assert_subject(const subject *it, quern_entity entity, uint32_t sequence, uint32_t start)
{
    cr_assert_eq(quern_entity_is_alive(world, entity), it->exists, "sequence %u of start %u", sequence,
                 start);
    if (!it->exists) return;
    const uint64_t *plain = quern_entity_get(world, entity, number);
    const tracked *given = quern_entity_get(world, entity, tracked_component);
    cr_assert_eq(plain != NULL, it->has, "sequence %u of start %u", sequence, start);
    cr_assert_eq(given != NULL, it->has, "sequence %u of start %u", sequence, start);
    if (!it->has) return;
    cr_assert_eq(*plain, it->value, "sequence %u of start %u", sequence, start);
    cr_assert_eq(given->payload, it->value ? it->value : TRACKED_DEFAULT, "sequence %u of start %u",
                 sequence, start);
    cr_assert(tracked_is_live(given));
}

static void run_sequences(void)
{
    static quern_entity created[SEQUENCES];
    for (uint32_t i = 0; i < SEQUENCES; i++) {
        subjects[0][i] = (subject){setup_entity(world), true, true, 1000};
        give(subjects[0][i].entity, 1000);
        subjects[1][i] = (subject){setup_entity(world), true, false, 0};
        subjects[2][i] = (subject){.exists = true};
    }
    /* Creates take slots in order; no slot is free. */
    quern_entity last = subjects[1][SEQUENCES - 1].entity;
    for (uint32_t i = 0; i < SEQUENCES; i++)
        created[i] = (quern_entity){last.bits + 1 + i};
    quern_frame_stats stats = run_once(world, record_sequences);
    cr_assert_eq(stats.dropped_count, expected_dropped_count);
    uint32_t having_count = 1; /* `first` */
    for (uint32_t start = 0; start < STARTS; start++)
        for (uint32_t i = 0; i < SEQUENCES; i++) {
            const subject *it = &subjects[start][i];
            assert_subject(it, start == 2 ? created[i] : it->entity, i, start);
            having_count += it->exists && it->has;
        }
    cr_assert_eq(tracked_live_count(&counts), having_count);
}

Test(playback, every_sequence_of_four_commands_follows_the_rules)
{
    run_sequences();
}

Test(playback, interleaving_of_commands_on_different_entities_has_no_effect)
{
    entity_by_entity = true;
    run_sequences();
}

/* ------------------------------------------------------------------------------------------- handles */

typedef struct stamp {
    uint32_t system, view, record, padding;
} stamp;

static quern_component stamped;

static void create_stamped(quern_context *context, uint32_t view)
{
    uintptr_t system = (uintptr_t)quern_context_user_data(context);
    for (uint32_t i = 0; i < 3; i++) {
        stamp value = {(uint32_t)system, view, i, 0};
        const void *values[] = {&value};
        record_entity_with(quern_context_commands(context), &stamped, values, 1);
    }
}

static void stamp_begin(quern_context *context)
{
    create_stamped(context, 0);
}

static void stamp_run(quern_context *context, const quern_view *view)
{
    create_stamped(context, 1 + view->ordinal);
}

static void stamp_end(quern_context *context)
{
    create_stamped(context, UINT32_MAX);
}

static int compare_stamps(const stamp *a, const stamp *b)
{
    if (a->system != b->system) return a->system < b->system ? -1 : 1;
    if (a->view != b->view) return a->view < b->view ? -1 : 1;
    return a->record < b->record ? -1 : a->record > b->record;
}

/* Independent systems, whose views may run at the same time in any order. */
static void add_stamping_systems(quern_schedule *schedule, const quern_term *term)
{
    static const char *const names[] = {"s0", "s1", "s2", "s3", "s4"};
    static const uint32_t flags[] = {0, QUERN_SYSTEM_SERIAL, 0, QUERN_SYSTEM_MAIN_THREAD, 0};
    for (uint32_t i = 0; i < COUNT_OF(names); i++) {
        make_system(schedule, names[i], stamp_run, .terms = {term[0]}, .begin = stamp_begin,
                    .end = stamp_end, .flags = flags[i], .user_data = (void *)(uintptr_t)i);
    }
}

static uint64_t create_in_order(uint32_t thread_count)
{
    open_world();
    stamped = setup_component(world, "stamped", sizeof(stamp), 4);
    for (uint32_t i = 0; i < 10000; i++)
        setup_entity_with(world, &position, 1);
    quern_jobs *jobs = setup_jobs(thread_count);
    quern_schedule *schedule = setup_schedule(world);
    quern_term term = quern_term_read(position), of_stamped = quern_term_read(stamped);
    add_stamping_systems(schedule, &term);
    must_run(schedule, jobs);
    quern_query *query = setup_query(world, &of_stamped, 1);
    quern_query_iterator it = quern_query_iterate(query);
    stamp before = {0};
    uint32_t index = 0;
    while (quern_query_next(&it)) {
        const stamp *stamps = quern_view_read(&it.view, 0);
        for (uint32_t i = 0; i < it.view.count; i++, index++) {
            cr_assert(index == 0 || compare_stamps(&before, &stamps[i]) < 0, "row %u", index);
            cr_assert_eq(quern_entity_index(it.view.entities[i]), 10002 + index);
            before = stamps[i];
        }
    }
    cr_assert_gt(index, 5u * 9, "the test needs several views");
    uint64_t hash = quern_world_hash(world);
    quern_query_destroy(query);
    quern_schedule_destroy(schedule);
    quern_jobs_destroy(jobs);
    close_world();
    return hash;
}

Test(playback_order, creates_get_handles_in_the_order_of_system_view_and_record)
{
    uint64_t hash = create_in_order(0);
    for (uint32_t i = 1; i < POOL_COUNT; i++)
        cr_assert_eq(create_in_order(pool_threads[i]), hash, "%u threads", pool_threads[i]);
}

static void destroy_and_create(quern_context *context)
{
    quern_commands *commands = quern_context_commands(context);
    must(quern_commands_destroy(commands, first));
    cr_assert(record_entity_with(commands, &number, NULL, 1).bits);
}

static quern_entity only_match(quern_component component)
{
    quern_term term = quern_term_read(component);
    quern_query *query = setup_query(world, &term, 1);
    quern_query_iterator it = quern_query_iterate(query);
    cr_assert(quern_query_next(&it));
    cr_assert_eq(it.view.count, 1u);
    quern_entity entity = it.view.entities[0];
    quern_query_destroy(query);
    return entity;
}

Test(playback, slot_freed_at_a_sync_point_is_not_reused_by_it)
{
    run_once(world, destroy_and_create);
    quern_entity created = only_match(number);
    cr_assert_eq(quern_entity_index(created), quern_entity_index(second) + 1);
    first = second;
    second = quern_entity_null();
    run_once(world, destroy_and_create);
    quern_entity reused = setup_entity(world);
    cr_assert_eq(quern_entity_index(reused), 1u, "but by the next: the slot freed last first");
}

static void create_and_destroy(quern_context *context)
{
    quern_commands *commands = quern_context_commands(context);
    quern_entity entity = record_entity_with(commands, &tracked_component, NULL, 1);
    link3 value = {.targets = {entity}};
    must(quern_commands_set(commands, second, links, &value));
    must(quern_commands_destroy(commands, entity));
    must(quern_commands_add(commands, entity, position, NULL));
}

Test(playback, entity_created_and_destroyed_at_one_sync_point_leaves_a_stale_handle)
{
    quern_frame_stats stats = run_once(world, create_and_destroy);
    cr_assert_eq(stats.created_count, 1u);
    cr_assert_eq(stats.destroyed_count, 1u);
    cr_assert_eq(stats.dropped_count, 1u);
    const link3 *value = quern_entity_get(world, second, links);
    cr_assert_not(quern_entity_is_provisional(value->targets[0]));
    cr_assert_not(quern_entity_is_alive(world, value->targets[0]));
    cr_assert_eq(quern_entity_has(world, value->targets[0], links), false);
    assert_message_has("is not alive");
}

static void link_in_circle(quern_context *context)
{
    quern_commands *commands = quern_context_commands(context);
    quern_entity a = record_entity(commands), b = record_entity(commands);
    link3 of_a = {.targets = {b, a, first}, .number = 1}, of_b = {.targets = {a, b, b}, .number = 2};
    const void *values[] = {&of_b};
    must(quern_commands_add(commands, a, links, &of_a));
    must(quern_commands_set(commands, b, links, &of_b));
    record_entity_with(commands, &links, values, 1);
    must(quern_commands_set(commands, first, links, &of_a));
}

static void assert_link(quern_entity holder, quern_entity a, quern_entity b, quern_entity c)
{
    const link3 *value = quern_entity_get(world, holder, links);
    cr_assert(quern_entity_equal(value->targets[0], a));
    cr_assert(quern_entity_equal(value->targets[1], b));
    cr_assert(quern_entity_equal(value->targets[2], c));
}

Test(playback, provisional_handles_in_described_fields_are_replaced)
{
    run_once(world, link_in_circle);
    quern_entity a = {second.bits + 1}, b = {second.bits + 2}, c = {second.bits + 3};
    assert_link(a, b, a, first);
    assert_link(b, a, b, b);
    assert_link(c, a, b, b);
    assert_link(first, b, a, first);
}

/* ------------------------------------------------------------------------------------ two recorders */

/* One system of each kind sets the same value; the later one in the order wins. */
static void set_number(quern_context *context)
{
    uint64_t value = (uint64_t)(uintptr_t)quern_context_user_data(context);
    must(quern_commands_set(quern_context_commands(context), first, number, &value));
}

static void set_number_of_view(quern_context *context, const quern_view *view)
{
    uint64_t value = view->ordinal;
    must(quern_commands_set(quern_context_commands(context), first, number, &value));
}

Test(playback, the_later_system_wins_whatever_its_kind)
{
    static const uint32_t flags[] = {0, QUERN_SYSTEM_MAIN_THREAD, QUERN_SYSTEM_SERIAL,
                                     QUERN_SYSTEM_EXCLUSIVE};
    static const char *const names[] = {"plain", "main", "serial", "exclusive"};
    quern_jobs *jobs = setup_jobs(3);
    for (uint32_t winner = 0; winner < COUNT_OF(flags); winner++) {
        quern_schedule *schedule = setup_schedule(world);
        for (uint32_t i = 1; i <= COUNT_OF(flags); i++) {
            uint32_t kind = (winner + i) % (uint32_t)COUNT_OF(flags);
            make_system(schedule, names[kind], NULL, .begin = set_number, .flags = flags[kind],
                        .user_data = (void *)(uintptr_t)kind);
        }
        must_run(schedule, jobs);
        cr_assert_eq(number_of(first), winner);
        quern_schedule_destroy(schedule);
    }
    quern_jobs_destroy(jobs);
}

/* Runs a system whose views, begin and end all set the number of the same entity. */
static void run_voters(quern_jobs *jobs, quern_system_callback *begin, quern_system_callback *end,
                       uint32_t *out_view_count)
{
    quern_schedule *schedule = setup_schedule(world);
    quern_system system =
        make_system(schedule, "voters", set_number_of_view, .terms = {quern_term_read(position)},
                    .begin = begin, .end = end, .user_data = (void *)(uintptr_t)777);
    must_run(schedule, jobs);
    quern_system_stats stats;
    must(quern_schedule_get_system_stats(schedule, system, &stats));
    *out_view_count = stats.view_count;
    quern_schedule_destroy(schedule);
}

Test(playback, begin_is_applied_before_the_views_in_order_and_end_after_them)
{
    quern_jobs *jobs = setup_jobs(4);
    uint32_t view_count;
    for (uint32_t i = 0; i < 10000; i++)
        setup_entity_with(world, &position, 1);
    run_voters(jobs, set_number, NULL, &view_count);
    cr_assert_gt(view_count, 4u);
    cr_assert_eq(number_of(first), view_count - 1);
    run_voters(jobs, set_number, set_number, &view_count);
    cr_assert_eq(number_of(first), 777u);
    quern_jobs_destroy(jobs);
}

/* -------------------------------------------------------------------------------- moves and row order */

static void move_three(quern_context *context)
{
    quern_commands *commands = quern_context_commands(context);
    quern_entity created = record_entity(commands);
    must(quern_commands_set(commands, second, position, &(vec3){2, 2, 2}));
    must(quern_commands_set(commands, first, position, &(vec3){1, 1, 1}));
    must(quern_commands_add(commands, second, number, NULL));
    must(quern_commands_remove(commands, first, number));
    must(quern_commands_remove(commands, first, tracked_component));
    must(quern_commands_add(commands, first, number, NULL));
    must(quern_commands_add(commands, created, position, &(vec3){3, 3, 3}));
    must(quern_commands_add(commands, created, number, NULL));
}

Test(playback, moved_rows_arrive_in_source_order_before_new_ones)
{
    run_once(world, move_three);
    quern_term terms[] = {quern_term_read(position), quern_term_read(number)};
    quern_query *query = setup_query(world, terms, 2);
    quern_query_iterator it = quern_query_iterate(query);
    cr_assert(quern_query_next(&it));
    cr_assert_eq(it.view.count, 3u, "all of them end in the same set of components");
    const vec3 *positions = quern_view_read(&it.view, 0);
    const uint64_t *numbers = quern_view_read(&it.view, 1);
    static const float expected[] = {2, 1, 3};
    for (uint32_t i = 0; i < 3; i++) {
        cr_assert_float_eq(positions[i].x, expected[i], 0);
        cr_assert_eq(numbers[i], 0u, "a component removed and added again starts anew");
    }
    quern_query_destroy(query);
}

static quern_component aligned;

static void add_aligned(quern_context *context, const quern_view *view)
{
    const uint64_t *numbers = quern_view_read(view, 0);
    for (uint32_t i = 0; i < view->count; i++) {
        _Alignas(64) uint64_t value[24];
        for (uint32_t k = 0; k < COUNT_OF(value); k++)
            value[k] = numbers[i] * 100 + k;
        must(quern_commands_add(quern_context_commands(context), view->entities[i], aligned, value));
    }
}

static void assert_aligned_values(void)
{
    quern_term terms[] = {quern_term_read(number), quern_term_read(aligned), quern_term_read(links)};
    quern_query *query = setup_query(world, terms, 3);
    cr_assert_eq(quern_query_count(query), 3000u);
    for (quern_query_iterator it = quern_query_iterate(query); quern_query_next(&it);) {
        const uint64_t *numbers = quern_view_read(&it.view, 0), *values = quern_view_read(&it.view, 1);
        const link3 *others = quern_view_read(&it.view, 2);
        cr_assert_eq((uintptr_t)values % 64, 0u);
        for (uint32_t i = 0; i < it.view.count; i++) {
            cr_assert_eq(others[i].number, numbers[i], "a column that stays came along");
            for (uint32_t k = 0; k < 24; k++)
                cr_assert_eq(values[i * 24 + k], numbers[i] * 100 + k);
        }
    }
    quern_query_destroy(query);
}

Test(playback, aligned_values_and_other_columns_are_moved)
{
    aligned = setup_component(world, "aligned", 192, 64);
    quern_component both[] = {number, links};
    for (uint64_t i = 0; i < 3000; i++) {
        link3 other = {.number = i};
        const void *values[] = {&i, &other};
        must(quern_entity_create_with(world, both, values, 2, NULL));
    }
    quern_jobs *jobs = setup_jobs(3);
    quern_schedule *schedule = setup_schedule(world);
    make_system(schedule, "align", add_aligned, .terms = {quern_term_read(number), quern_term_with(links)});
    must_run(schedule, jobs);
    quern_schedule_destroy(schedule);
    quern_jobs_destroy(jobs);
    assert_valid(world);
    assert_aligned_values();
}

/* ------------------------------------------------------------------------------ before the sync point */

static _Atomic uint32_t saw_change_count, checked_count;

static void change_everything(quern_context *context, const quern_view *view)
{
    quern_commands *commands = quern_context_commands(context);
    for (uint32_t i = 0; i < view->count; i++) {
        uint64_t value = 5;
        quern_entity entity = view->entities[i];
        if (i % 3 == 0) must(quern_commands_destroy(commands, entity));
        if (i % 3 == 1) must(quern_commands_remove(commands, entity, number));
        if (i % 3 == 2) must(quern_commands_set(commands, entity, number, &value));
        must(record_entity_with(commands, &number, NULL, 1).bits ? QUERN_OK : QUERN_ERROR_OUT_OF_MEMORY);
    }
}

static void count_visible_changes(quern_context *context, const quern_view *view)
{
    for (uint32_t i = 0; i < view->count; i++) {
        const uint64_t *value = quern_context_lookup(context, view->entities[i], number);
        bool unchanged = value != NULL && *value == 9 && quern_context_is_alive(context, view->entities[i]);
        if (!unchanged) saw_change_count++;
        checked_count++;
    }
}

static void add_witnesses(quern_schedule *schedule, const quern_term *term)
{
    quern_system_def change = system_def("change", change_everything);
    change.terms[0] = term[0];
    setup_system(schedule, &change);
    quern_system_def witness = system_def("witness", count_visible_changes);
    witness.terms[0] = term[0];
    witness.lookups[0].component = number;
    setup_system(schedule, &witness);
    witness.name = "later";
    witness.after[0] = "change";
    setup_system(schedule, &witness);
}

static void assert_nothing_seen_early(uint32_t thread_count)
{
    enum { COUNT = 6000 };
    open_world();
    for (uint32_t i = 0; i < COUNT; i++)
        must(quern_entity_create_with(world, &number, (const void *[]){&(uint64_t){9}}, 1, NULL));
    must(quern_entity_remove(world, first, number));
    saw_change_count = checked_count = 0;
    quern_jobs *jobs = setup_jobs(thread_count);
    quern_schedule *schedule = setup_schedule(world);
    quern_term term = quern_term_read(number);
    add_witnesses(schedule, &term);
    must_run(schedule, jobs);
    cr_assert_eq(checked_count, 2u * COUNT, "the created ones are not seen either");
    cr_assert_eq(saw_change_count, 0u);
    checked_count = 0;
    must_run(schedule, jobs);
    cr_assert_gt(saw_change_count, 0u, "in the next frame all is different");
    quern_schedule_destroy(schedule);
    quern_jobs_destroy(jobs);
    close_world();
}

Test(playback_visibility, no_change_is_visible_before_the_sync_point_at_any_thread_count)
{
    for (uint32_t i = 0; i < POOL_COUNT; i++)
        assert_nothing_seen_early(pool_threads[i]);
}

static void expect_number_five(quern_context *context)
{
    const uint64_t *value = quern_context_lookup(context, first, number);
    cr_assert(value != NULL && *value == (uintptr_t)quern_context_user_data(context));
}

Test(playback, the_next_phase_sees_the_changes)
{
    quern_schedule *schedule = setup_phases(world, 2);
    quern_system_def set = system_def("set", NULL), see = system_def("see", NULL),
                     not_yet = system_def("not_yet", NULL);
    set.begin = set_number;
    see.begin = not_yet.begin = expect_number_five;
    set.user_data = see.user_data = (void *)(uintptr_t)5;
    not_yet.user_data = (void *)(uintptr_t)1000;
    see.phase = 1;
    see.lookups[0].component = not_yet.lookups[0].component = number;
    setup_system(schedule, &set);
    setup_system(schedule, &not_yet);
    setup_system(schedule, &see);
    must_run(schedule, NULL);
    quern_schedule_destroy(schedule);
}

/* ------------------------------------------------------------------ entities that ask for too much */

static quern_component wide[2];

static void add_too_many_bytes(quern_context *context)
{
    quern_commands *commands = quern_context_commands(context);
    tracked value;
    tracked_construct(&value, 1, &counts);
    must(quern_commands_set(commands, second, tracked_component, &value));
    tracked_destroy(&value, &counts);
    must(quern_commands_add(commands, second, wide[0], NULL));
    must(quern_commands_add(commands, second, wide[1], NULL));
    must(quern_commands_set(commands, first, number, &(uint64_t){3}));
}

/* Runs the callback in the first of two phases; the second phase shows that the frame continues. */
static void assert_refused_at_sync_point(quern_system_callback *callback, quern_result expected)
{
    quern_schedule *schedule = setup_phases(world, 2);
    quern_system_def def = system_def("greedy", NULL), later = system_def("later", NULL);
    def.begin = callback;
    later.begin = set_number;
    later.phase = 1;
    later.user_data = (void *)(uintptr_t)4;
    quern_system system = setup_system(schedule, &def);
    setup_system(schedule, &later);
    must_not_run(schedule, NULL, expected);
    cr_assert_eq(number_of(first), 4u, "the rest of the frame was not done");
    assert_valid(world);
    must(quern_schedule_set_system_enabled(schedule, system, false));
    must_run(schedule, NULL);
    quern_schedule_destroy(schedule);
}

Test(playback, entity_with_too_many_bytes_stays_unchanged)
{
    wide[0] = setup_component(world, "wide0", 9000, 8);
    wide[1] = setup_component(world, "wide1", 9000, 8);
    assert_refused_at_sync_point(add_too_many_bytes, QUERN_ERROR_COMPONENT_TOO_LARGE);
    cr_assert(quern_entity_is_alive(world, second));
    cr_assert_not(quern_entity_has(world, second, wide[0]));
    cr_assert_not(quern_entity_has(world, second, tracked_component));
    cr_assert_eq(tracked_live_count(&counts), 1u, "the value that was recorded is gone");
}

static quern_component many[QUERN_MAX_ENTITY_COMPONENTS + 1];

static void add_too_many_components(quern_context *context)
{
    quern_commands *commands = quern_context_commands(context);
    quern_entity entity = on_new_entity ? record_entity(commands) : second;
    for (uint32_t i = 0; i < COUNT_OF(many); i++)
        must(quern_commands_add(commands, entity, many[i], NULL));
    must(quern_commands_set(commands, first, links, &(link3){.targets = {entity}}));
}

static void setup_many(void)
{
    for (uint32_t i = 0; i < COUNT_OF(many); i++) {
        char name[16];
        snprintf(name, sizeof name, "m%u", i);
        many[i] = setup_component(world, name, i % 2 ? 0 : 4, i % 2 ? 1 : 4);
    }
}

/* Creates the maximum number of archetypes, from tags only. */
static void use_up_archetypes(void)
{
    enum { TAGS = 16 };
    uint16_t tags[TAGS];
    for (uint32_t i = 0; i < TAGS; i++) {
        char name[16];
        snprintf(name, sizeof name, "t%u", i);
        tags[i] = (uint16_t)quern__component_index(setup_tag(world, name));
    }
    quern_result result = QUERN_OK;
    for (uint32_t mask = 1; mask < 1u << TAGS && result == QUERN_OK; mask++) {
        uint16_t set[TAGS];
        uint32_t count = 0;
        for (uint32_t i = 0; i < TAGS; i++)
            if (mask & 1u << i) set[count++] = tags[i];
        quern__archetype *archetype;
        result = quern__storage_ensure_archetype(&world->storage, set, count, &archetype);
    }
    cr_assert_eq(result, QUERN_ERROR_LIMIT);
}

static void use_another_archetype(quern_context *context)
{
    quern_commands *commands = quern_context_commands(context);
    must(quern_commands_add(commands, second, position, NULL));
    must(quern_commands_set(commands, first, number, &(uint64_t){3}));
}

Test(playback, entity_beyond_the_archetype_limit_stays_unchanged)
{
    use_up_archetypes();
    quern_schedule *schedule = setup_phases(world, 1);
    make_system(schedule, "greedy", NULL, .begin = use_another_archetype);
    must_not_run(schedule, NULL, QUERN_ERROR_LIMIT);
    cr_assert_not_null(strstr(quern_error_message(), "QUERN_MAX_ARCHETYPES"), "%s", quern_error_message());
    cr_assert_eq(number_of(first), 3u);
    cr_assert_not(quern_entity_has(world, second, position));
    cr_assert_eq(quern_schedule_kept_command_count(schedule), 0u);
    assert_valid(world);
    quern_schedule_destroy(schedule);
}

Test(playback, entity_with_too_many_components_stays_unchanged)
{
    setup_many();
    assert_refused_at_sync_point(add_too_many_components, QUERN_ERROR_TOO_MANY_COMPONENTS);
    cr_assert(quern_entity_is_alive(world, second));
    cr_assert_not(quern_entity_has(world, second, many[0]));
    assert_link(first, second, quern_entity_null(), quern_entity_null());
}

Test(playback, new_entity_with_too_many_components_is_dead)
{
    setup_many();
    on_new_entity = true;
    assert_refused_at_sync_point(add_too_many_components, QUERN_ERROR_TOO_MANY_COMPONENTS);
    cr_assert_eq(stats_of_world(world).entity_count, 2u);
    const link3 *value = quern_entity_get(world, first, links);
    cr_assert_not(quern_entity_is_provisional(value->targets[0]));
    cr_assert_not(quern_entity_is_alive(world, value->targets[0]));
}

/* -------------------------------------------------------------------- together with immediate calls */

static void record_on_both(quern_context *context)
{
    must(quern_commands_set(quern_context_commands(context), first, number, &(uint64_t){1}));
}

static void exclusive_destroy(quern_context *context)
{
    cr_assert_eq(number_of(first), 1u, "commands recorded so far are applied first");
    must(quern_commands_add(quern_context_commands(context), first, position, NULL));
    must(quern_commands_add(quern_context_commands(context), second, position, NULL));
    must(quern_entity_destroy(quern_context_world(context), first));
    cr_assert_not(quern_entity_has(world, second, position));
    setup_entity(world); /* uses the slot of the destroyed entity */
}

Test(playback, commands_on_an_entity_destroyed_by_an_exclusive_system_are_dropped)
{
    quern_schedule *schedule = setup_schedule(world);
    quern_system_def def = system_def("record", NULL), exclusive = system_def("exclusive", NULL);
    def.begin = record_on_both;
    exclusive.begin = exclusive_destroy;
    exclusive.flags = QUERN_SYSTEM_EXCLUSIVE;
    setup_system(schedule, &def);
    setup_system(schedule, &exclusive);
    must_run(schedule, NULL);
    quern_frame_stats stats = stats_of_frame(schedule);
    cr_assert_eq(stats.command_count, 3u);
    cr_assert_eq(stats.dropped_count, 1u);
    cr_assert(quern_entity_has(world, second, position));
    cr_assert_not(quern_entity_is_alive(world, first));
    assert_valid(world);
    quern_schedule_destroy(schedule);
}

Test(playback, empty_sync_point_changes_nothing)
{
    uint64_t hash = quern_world_hash(world);
    quern_frame_stats stats = run_once(world, idle_callback);
    cr_assert_eq(stats.command_count, 0u);
    cr_assert_eq(quern_world_hash(world), hash);
}

/* ------------------------------------------------------------------------------------- values in place */

static void set_three_times(quern_context *context)
{
    quern_commands *commands = quern_context_commands(context);
    for (uint64_t i = 0; i < 3; i++)
        must(quern_commands_set(commands, i == 1 ? second : first, number, &i));
}

Test(playback, existing_values_are_set_without_a_structural_change)
{
    must(quern_entity_set(world, second, number, &(uint64_t){2000}));
    const uint64_t version = world->storage.structure_version;
    quern_frame_stats stats = run_once(world, set_three_times);
    cr_assert_eq(stats.command_count, 3u);
    cr_assert_eq(number_of(first), 2u, "the later one wins");
    cr_assert_eq(number_of(second), 1u);
    cr_assert_eq(world->storage.structure_version, version);
    assert_valid(world);
}

Test(playback, values_are_set_if_one_entity_lacks_the_component)
{
    cr_assert_not(quern_entity_has(world, second, number));
    const uint64_t version = world->storage.structure_version;
    run_once(world, set_three_times);
    cr_assert_eq(number_of(first), 2u);
    cr_assert_eq(number_of(second), 1u);
    cr_assert_neq(world->storage.structure_version, version);
    assert_valid(world);
}

static void set_and_destroy(quern_context *context)
{
    set_three_times(context);
    must(quern_entity_destroy(quern_context_world(context), first));
}

Test(playback, values_are_set_if_one_entity_is_dead)
{
    must(quern_entity_set(world, second, number, &(uint64_t){2000}));
    quern_schedule *schedule = setup_schedule(world);
    make_system(schedule, "exclusive", NULL, .begin = set_and_destroy, .flags = QUERN_SYSTEM_EXCLUSIVE);
    must_run(schedule, NULL);
    cr_assert_eq(stats_of_frame(schedule).dropped_count, 2u);
    cr_assert_eq(number_of(second), 1u);
    assert_valid(world);
    quern_schedule_destroy(schedule);
}

/* The exclusive system that recorded the commands moves the entities, so recorded locations are invalid. */
static void set_and_move(quern_context *context)
{
    set_three_times(context);
    must(quern_entity_add(quern_context_world(context), first, position, NULL));
}

Test(playback, values_are_set_in_the_current_rows_of_entities)
{
    must(quern_entity_set(world, second, number, &(uint64_t){2000}));
    quern_schedule *schedule = setup_schedule(world);
    make_system(schedule, "exclusive", NULL, .begin = set_and_move, .flags = QUERN_SYSTEM_EXCLUSIVE);
    must_run(schedule, NULL);
    cr_assert_eq(number_of(first), 2u);
    cr_assert_eq(number_of(second), 1u);
    assert_valid(world);
    quern_schedule_destroy(schedule);
}
