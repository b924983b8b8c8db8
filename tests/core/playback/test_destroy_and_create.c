/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Test labels: threaded */
#include "core/world/world_internal.h"
#include "sched/frame/schedule_internal.h"
#include "tests/flow/flow_setup.h"
#include "tests/support/failing_allocator.h"
#include "tests/support/tracked.h"

#include <stdio.h>
#include <string.h>

/* Sync points that only destroy and create entities. Each program runs twice in equal worlds: with the fast
 * path, if it applies, and through all stages. The results must be equal. */

enum { ENTITY_COUNT = 3000, KIND_COUNT = 4, WIDE_COUNT = 70 };

static quern_world *world;
static quern_component position, number, links, tag, tracked_component;
static quern_component wide[WIDE_COUNT]; /* every fifth is a tag */
static quern_component sized[9];
static tracked_counts counts;
static quern_entity entities[ENTITY_COUNT];
static quern_prefab prefab;
static failing_allocator *memory;

/* The components of entities of each kind. */
static uint32_t list_of(uint32_t kind, quern_component list[3])
{
    list[0] = number;
    list[1] = kind % 2 == 1 ? position : tag;
    list[2] = links;
    return kind == 3 ? 3 : kind;
}

static quern_entity create_kind(quern_commands *commands, uint32_t kind, uint64_t value, quern_entity link)
{
    quern_component list[3];
    const vec3 place = {(float)value, 1, 2};
    const link3 linked = {.targets = {link}, .number = value};
    const void *const values[] = {&value, kind % 2 == 1 ? (const void *)&place : NULL, &linked};
    const quern_entity created = record_entity_with(commands, list, values, list_of(kind, list));
    cr_assert_not(quern_entity_is_null(created), "%s", quern_error_message());
    return created;
}

static void register_wide(void)
{
    for (uint32_t i = 0; i < WIDE_COUNT; i++) {
        char name[16];
        snprintf(name, sizeof name, "wide %u", i);
        wide[i] = setup_component(world, name, i % 5 == 0 ? 0 : 4, i % 5 == 0 ? 1 : 4);
    }
}

static void open_world(bool tracks)
{
    quern_world_def def = {.allocator = failing_allocator_interface(memory)};
    memset((void *)&counts, 0, sizeof counts);
    must(quern_world_create(&def, &world));
    position = setup_component(world, "position", sizeof(vec3), 4);
    number = setup_component(world, "number", 8, 8);
    links = setup_links(world, "links");
    tag = setup_tag(world, "tag");
    tracked_component = tracked_register(world, "tracked", &counts);
    register_wide();
    for (uint32_t i = 0; i < COUNT_OF(sized); i++) {
        static const uint32_t sizes[COUNT_OF(sized)] = {1, 2, 4, 8, 12, 16, 20, 24, 64};
        char name[16];
        snprintf(name, sizeof name, "sized %u", sizes[i]);
        sized[i] = setup_component(world, name, sizes[i], i < 2 ? 1 : 4);
    }
    for (uint32_t i = 0; i < ENTITY_COUNT; i++) {
        quern_component list[3];
        const uint32_t count = list_of(i / (ENTITY_COUNT / KIND_COUNT), list);
        entities[i] = setup_entity_with(world, list, count);
        if (count > 0) must(quern_entity_set(world, entities[i], number, &(uint64_t){i}));
        if (tracks && i % 50 == 0) must(quern_entity_add(world, entities[i], tracked_component, NULL));
    }
}

/* The state after a frame that must not depend on the path. The next handle shows the order of freed slots. */
typedef struct outcome {
    uint64_t hash;
    uint64_t command_count, dropped_count, created_count, destroyed_count;
    uint32_t drop_count;
    quern_dropped_command drops[4];
    uint64_t next;
} outcome;

static outcome outcome_of(quern_schedule *schedule)
{
    const quern_frame_stats stats = stats_of_frame(schedule);
    outcome it = {.hash = quern_world_hash(world),
                  .command_count = stats.command_count,
                  .dropped_count = stats.dropped_count,
                  .created_count = stats.created_count,
                  .destroyed_count = stats.destroyed_count,
                  .drop_count = quern_schedule_dropped_command_count(schedule)};
    for (uint32_t i = 0; i < it.drop_count; i++) {
        must(quern_schedule_get_dropped_command(schedule, i, &it.drops[i]));
        it.drops[i].first.bits &= UINT32_MAX;
        it.drops[i].system.bits = 0;
        it.drops[i].system_name = NULL;
    }
    assert_valid(world);
    it.next = quern_entity_index(setup_entity(world));
    return it;
}

typedef enum path { FAST_PATH, ALL_STAGES } path;

/* The changes of a program: by one call, or for each view of entities with a number. */
typedef struct changes {
    quern_system_callback *begin;
    quern_view_callback *run;
    uint32_t flags;
    bool tracks, spawns, reacts;
} changes;

/* The numbers of destroyed entities in the order in which the reaction received them. */
static uint64_t removed_numbers[2 * ENTITY_COUNT];
static uint32_t removed_count;

static void note_removed(quern_context *context, const quern_view *view)
{
    memcpy(removed_numbers + removed_count, quern_view_read(view, 0), view->count * sizeof(uint64_t));
    removed_count += view->count;
}

static void add_reaction(quern_schedule *schedule)
{
    quern_system_def def = system_def("reacts", note_removed);
    def.terms[0] = quern_term_read(number);
    def.terms[1] = quern_term_with(position);
    def.reacts_to = QUERN_REACT_REMOVED;
    def.flags = QUERN_SYSTEM_EXCLUSIVE; /* views run one after the other */
    setup_system(schedule, &def);
}

/* Runs a frame of a system with these changes, then an idle frame. */
static quern_schedule *open_schedule(const changes *what, path which)
{
    quern_schedule *schedule = setup_schedule(world);
    quern_system_def def = system_def("changes", what->run);
    def.begin = what->begin;
    def.flags = what->flags;
    if (what->run != NULL) def.terms[0] = quern_term_with(number);
    setup_system(schedule, &def);
    if (what->reacts) add_reaction(schedule);
    schedule->playback.disable_fast_paths = which == ALL_STAGES;
    schedule->playback.parallel_command_count = 1;
    return schedule;
}

static outcome play(const changes *what, uint32_t thread_count, path which,
                    uint32_t *out_destroy_and_create_count)
{
    open_world(what->tracks);
    if (what->spawns) must(quern_prefab_capture(world, entities[ENTITY_COUNT - 1], &prefab));
    removed_count = 0;
    quern_jobs *jobs = setup_jobs(thread_count);
    quern_schedule *schedule = open_schedule(what, which);
    must_run(schedule, jobs);
    const outcome it = outcome_of(schedule);
    *out_destroy_and_create_count = schedule->playback.destroy_and_create_count;
    quern_schedule_destroy(schedule);
    quern_jobs_destroy(jobs);
    quern_world_destroy(world);
    cr_assert_eq(tracked_live_count(&counts), 0u);
    return it;
}

static void assert_changes(const changes *what, bool uses_fast_path)
{
    static uint64_t expected_numbers[2 * ENTITY_COUNT];
    memory = failing_allocator_create();
    uint32_t destroy_and_create_count;
    const outcome expected = play(what, 0, ALL_STAGES, &destroy_and_create_count);
    const uint32_t expected_count = removed_count;
    memcpy(expected_numbers, removed_numbers, sizeof removed_numbers);
    cr_assert_eq(destroy_and_create_count, 0u);
    for (uint32_t i = 0; i < POOL_COUNT; i++) {
        const outcome actual = play(what, pool_threads[i], FAST_PATH, &destroy_and_create_count);
        cr_assert_eq(destroy_and_create_count, uses_fast_path ? 1u : 0u, "%u threads", pool_threads[i]);
        cr_assert_eq(memcmp(&actual, &expected, sizeof actual), 0, "%u threads", pool_threads[i]);
        cr_assert_eq(removed_count, expected_count, "%u threads", pool_threads[i]);
        cr_assert_eq(memcmp(removed_numbers, expected_numbers, expected_count * sizeof(uint64_t)), 0);
    }
    failing_allocator_close(memory);
}

static void assert_both_ways(quern_system_callback *callback, uint32_t flags, bool tracks,
                             bool uses_fast_path)
{
    const changes what = {.begin = callback, .flags = flags, .tracks = tracks};
    assert_changes(&what, uses_fast_path);
}

/* ------------------------------------------------------------------------------------- what takes it */

static void destroy_in_order(quern_context *context)
{
    quern_commands *commands = quern_context_commands(context);
    for (uint32_t i = 0; i < ENTITY_COUNT; i += 3)
        must(quern_commands_destroy(commands, entities[i]));
}

static void destroy_backwards(quern_context *context)
{
    quern_commands *commands = quern_context_commands(context);
    for (uint32_t i = ENTITY_COUNT; i-- > 0;)
        if (i * 2654435761u % 5 < 2) must(quern_commands_destroy(commands, entities[i]));
}

static void destroy_all(quern_context *context)
{
    quern_commands *commands = quern_context_commands(context);
    for (uint32_t i = 0; i < ENTITY_COUNT; i++)
        must(quern_commands_destroy(commands, entities[i]));
}

static void create_alone(quern_context *context)
{
    for (uint32_t i = 0; i < 2000; i++)
        create_kind(quern_context_commands(context), i / 5 % KIND_COUNT, i, entities[i]);
}

/* Of some kinds, more entities are destroyed than created; of others, fewer. */
static void replace_some(quern_context *context)
{
    quern_commands *commands = quern_context_commands(context);
    for (uint32_t i = 0; i < ENTITY_COUNT; i += 2) {
        must(quern_commands_destroy(commands, entities[i]));
        create_kind(commands, i % KIND_COUNT, i, entities[i + 1]);
        if (i % 3 == 0) create_kind(commands, 3, i, entities[i]);
    }
}

static void replace_by_an_archetype_of_its_own(quern_context *context)
{
    quern_commands *commands = quern_context_commands(context);
    const quern_component list[] = {position, links};
    for (uint32_t i = 0; i < 700; i++) {
        must(quern_commands_destroy(commands, entities[i]));
        cr_assert_not(quern_entity_is_null(record_entity_with(commands, list, NULL, 2)));
    }
}

/* Longer than one block of commands, and than one span. */
static void create_many(quern_context *context)
{
    enum { COUNT = 5000 };
    static uint64_t numbers[COUNT];
    static vec3 places[COUNT];
    quern_commands *commands = quern_context_commands(context);
    for (uint32_t i = 0; i < COUNT; i++) {
        numbers[i] = i;
        places[i] = (vec3){(float)i, 0, 0};
    }
    for (uint32_t i = 0; i < 100; i++)
        must(quern_commands_destroy(commands, entities[i * 9]));
    const quern_component list[] = {number, position};
    const void *const columns[] = {numbers, places};
    must(quern_commands_create_many(commands, list, columns, 2, COUNT, NULL));
}

/* A chain: each entity links to the previous one. */
static void create_linked(quern_context *context)
{
    quern_commands *commands = quern_context_commands(context);
    quern_entity last = entities[1];
    for (uint32_t i = 0; i < 900; i++) {
        last = create_kind(commands, 3, i, last);
        if (i % 4 == 0) must(quern_commands_destroy(commands, entities[i]));
    }
}

/* Lists with all components of the archetype, in another order, with and without values. */
static void create_wide(quern_context *context)
{
    for (uint32_t i = 0; i < 300; i++) {
        quern_component list[WIDE_COUNT];
        uint32_t numbers[WIDE_COUNT];
        const void *values[WIDE_COUNT];
        for (uint32_t k = 0; k < WIDE_COUNT; k++) {
            list[k] = wide[(k * 37 + 5) % WIDE_COUNT];
            numbers[k] = i * WIDE_COUNT + k;
            values[k] = (k + i % 3) % 3 == 0 ? NULL : &numbers[k];
        }
        quern_commands *commands = quern_context_commands(context);
        cr_assert_not(quern_entity_is_null(record_entity_with(commands, list, values, WIDE_COUNT)));
    }
}

/* Rows without values, so that lists of values have no memory. */
static void create_without_values(quern_context *context)
{
    quern_commands *commands = quern_context_commands(context);
    for (uint32_t i = 0; i < 100; i++) {
        cr_assert_not(quern_entity_is_null(record_entity(commands)));
        cr_assert_not(quern_entity_is_null(record_entity_with(commands, &tag, NULL, 1)));
    }
}

Test(destroy_and_create, rows_handles_and_values_equal_those_of_all_stages, .timeout = 600)
{
    assert_both_ways(destroy_in_order, 0, false, true);
    assert_both_ways(destroy_all, 0, false, true);
    assert_both_ways(create_alone, 0, false, true);
    assert_both_ways(replace_some, 0, false, true);
    assert_both_ways(replace_by_an_archetype_of_its_own, 0, false, true);
    assert_both_ways(create_many, 0, false, true);
    assert_both_ways(create_linked, 0, false, true);
    assert_both_ways(create_wide, 0, false, true);
    assert_both_ways(create_without_values, 0, false, true);
}

/* Each view is a stream: some only destroy, some only create. Provisional handles are valid in their own
 * stream. */
static void replace_in_view(quern_context *context, const quern_view *view)
{
    quern_commands *commands = quern_context_commands(context);
    quern_entity last = view->entities[0];
    for (uint32_t i = 0; i < view->count; i++) {
        if (view->ordinal % 4 != 1 && i % 3 == 1) must(quern_commands_destroy(commands, view->entities[i]));
        if (view->ordinal % 4 != 2 && i % 5 < 2)
            last = create_kind(commands, (view->ordinal + i) % KIND_COUNT, i, last);
    }
}

static void create_in_view(quern_context *context, const quern_view *view)
{
    quern_commands *commands = quern_context_commands(context);
    quern_entity last = quern_entity_null();
    for (uint32_t i = 0; i < 1 + view->ordinal % 3; i++)
        last = create_kind(commands, 3, i, last);
}

Test(destroy_and_create, callbacks_that_replace_entities_use_the_fast_path, .timeout = 600)
{
    assert_changes(&(changes){.run = replace_in_view}, true);
    assert_changes(&(changes){.run = create_in_view}, true);
    assert_changes(&(changes){.run = replace_in_view, .begin = create_alone}, true);
}

/* Members of instances have handles among the creates, also within a batch of creates. */
static void spawn_among_creates(quern_context *context, const quern_view *view)
{
    quern_commands *commands = quern_context_commands(context);
    quern_entity last = view->entities[0];
    for (uint32_t i = 0; i < view->count; i++) {
        if (i % 4 == 0) must(quern_commands_destroy(commands, view->entities[i]));
        if (i % 3 == 0) last = create_kind(commands, 3, i, last);
        if (i % 7 == 1) must(quern_commands_spawn(commands, prefab, NULL, NULL));
        if (i % 7 == 3) last = create_kind(commands, 1, i, last);
    }
}

Test(destroy_and_create, instances_may_be_spawned_between_creates, .timeout = 600)
{
    assert_changes(&(changes){.run = spawn_among_creates, .spawns = true}, true);
}

Test(destroy_and_create, reactions_receive_destroyed_rows, .timeout = 600)
{
    assert_changes(&(changes){.run = replace_in_view, .reacts = true}, true);
    cr_assert_gt(removed_count, 100u);
    assert_changes(&(changes){.begin = destroy_all, .reacts = true}, true);
    cr_assert_eq(removed_count, (uint32_t)ENTITY_COUNT / KIND_COUNT);
}

/* Values of sizes with their own copy loop, and of others; with and without values. */
static void create_sizes(quern_context *context)
{
    static const uint32_t sizes[] = {1, 2, 4, 8, 12, 16, 20, 24, 64};
    unsigned char bytes[COUNT_OF(sizes)][64];
    quern_commands *commands = quern_context_commands(context);
    for (uint32_t i = 0; i < 500; i++) {
        const void *values[COUNT_OF(sizes)];
        for (uint32_t k = 0; k < COUNT_OF(sizes); k++) {
            memset(bytes[k], (int)(i * 7 + k), sizeof bytes[k]);
            values[k] = (i / 60 + k) % 4 == 0 ? NULL : bytes[k];
        }
        if (i % 2 == 0) must(quern_commands_destroy(commands, entities[i]));
        cr_assert_not(quern_entity_is_null(record_entity_with(commands, sized, values, COUNT_OF(sizes))));
    }
}

Test(destroy_and_create, values_of_all_sizes_are_copied, .timeout = 600)
{
    assert_both_ways(create_sizes, 0, false, true);
}

/* The recorded entities move before the sync point, so their locations must be found again. */
static void replace_and_move(quern_context *context)
{
    replace_some(context);
    for (uint32_t i = 0; i < ENTITY_COUNT; i += 10)
        if (!quern_entity_has(quern_context_world(context), entities[i], tag))
            must(quern_entity_add(quern_context_world(context), entities[i], tag, NULL));
}

/* The structure changes after recording, but not the order of rows. */
static void replace_and_create(quern_context *context)
{
    replace_some(context);
    setup_entity(quern_context_world(context));
}

Test(destroy_and_create, entities_are_destroyed_in_their_current_rows)
{
    assert_both_ways(replace_and_create, QUERN_SYSTEM_EXCLUSIVE, false, true);
}

/* -------------------------------------------------------------------------------------- what does not */

static void destroy_some_twice(quern_context *context)
{
    destroy_in_order(context);
    destroy_backwards(context);
}

static void destroy_each_twice(quern_context *context)
{
    quern_commands *commands = quern_context_commands(context);
    for (uint32_t i = 0; i < ENTITY_COUNT; i++)
        must(quern_commands_destroy(commands, entities[i / 2]));
}

static void destroy_dead_entities(quern_context *context)
{
    replace_some(context);
    must(quern_entity_destroy(quern_context_world(context), entities[4]));
    must(quern_entity_destroy(quern_context_world(context), entities[8]));
}

static void destroy_new_entities(quern_context *context)
{
    quern_commands *commands = quern_context_commands(context);
    replace_some(context);
    for (uint32_t i = 0; i < 5; i++)
        must(quern_commands_destroy(commands, create_kind(commands, 2, i, entities[i])));
}

static void set_after_a_create(quern_context *context)
{
    quern_commands *commands = quern_context_commands(context);
    replace_some(context);
    must(quern_commands_set(commands, create_kind(commands, 1, 5, entities[1]), number, &(uint64_t){6}));
}

/* The entities of a recorded view move before the sync point, and others take their rows. */
static void replace_views_and_move(quern_context *context)
{
    quern_commands *commands = quern_context_commands(context);
    const quern_term terms[] = {quern_term_with(number), quern_term_with(position)};
    quern_query *query = setup_query(world, terms, 2);
    for (quern_query_iterator walk = quern_query_iterate(query); quern_query_next(&walk);) {
        must(quern_commands_destroy_view(commands, &walk.view, NULL));
        create_kind(commands, 2, 7, entities[1]);
    }
    quern_query_destroy(query);
    for (uint32_t i = 0; i < ENTITY_COUNT; i += 10)
        if (!quern_entity_has(world, entities[i], tag))
            must(quern_entity_add(world, entities[i], tag, NULL));
}

static void create_tracked(quern_context *context)
{
    replace_some(context);
    for (uint32_t i = 0; i < 5; i++)
        record_entity_with(quern_context_commands(context), &tracked_component, NULL, 1);
}

Test(destroy_and_create, other_commands_go_through_all_stages, .timeout = 600)
{
    assert_both_ways(destroy_backwards, 0, false, false);
    assert_both_ways(destroy_some_twice, 0, false, false);
    assert_both_ways(destroy_each_twice, 0, false, false);
    assert_both_ways(replace_and_move, QUERN_SYSTEM_EXCLUSIVE, false, false);
    assert_both_ways(replace_views_and_move, QUERN_SYSTEM_EXCLUSIVE, false, false);
    assert_both_ways(destroy_dead_entities, QUERN_SYSTEM_EXCLUSIVE, false, false);
    assert_both_ways(destroy_new_entities, 0, false, false);
    assert_both_ways(set_after_a_create, 0, false, false);
    assert_both_ways(create_tracked, 0, false, false);
    assert_both_ways(replace_some, 0, true, false); /* some values have destroy hooks */
}

static void destroy_some_of_them_twice(quern_context *context)
{
    quern_commands *commands = quern_context_commands(context);
    for (uint32_t i = 0; i < 10; i++)
        must(quern_commands_destroy(commands, entities[i % 6]));
}

Test(destroy_and_create, second_destroy_of_an_entity_is_reported_as_dropped)
{
    memory = failing_allocator_create();
    uint32_t destroy_and_create_count;
    const changes what = {.begin = destroy_some_of_them_twice};
    const outcome it = play(&what, 0, FAST_PATH, &destroy_and_create_count);
    cr_assert_eq(it.destroyed_count, 6u);
    cr_assert_eq(it.dropped_count, 4u);
    cr_assert_eq(it.drop_count, 1u);
    cr_assert_eq(it.drops[0].reason, QUERN_DROP_DESTROYED);
    cr_assert_eq(quern_entity_index(it.drops[0].first), quern_entity_index(entities[0]));
    failing_allocator_close(memory);
}

/* ----------------------------------------------------------------------------------------- the order */

static void replace_three_rows(quern_context *context)
{
    quern_commands *commands = quern_context_commands(context);
    const quern_component list[] = {number};
    must(quern_commands_destroy(commands, entities[1]));
    must(quern_commands_destroy(commands, entities[3]));
    for (uint64_t i = 100; i < 103; i++)
        record_entity_with(commands, list, (const void *[]){&i}, 1);
}

Test(destroy_and_create, new_entities_fill_gaps_and_are_then_appended)
{
    static const uint64_t expected[] = {0, 100, 2, 101, 4, 102};
    world = setup_world();
    number = setup_component(world, "number", 8, 8);
    for (uint64_t i = 0; i < 5; i++)
        must(quern_entity_create_with(world, &number, (const void *[]){&i}, 1, &entities[i]));
    run_once(world, replace_three_rows);
    quern_term term = quern_term_read(number);
    quern_query *query = setup_query(world, &term, 1);
    quern_query_iterator it = quern_query_iterate(query);
    cr_assert(quern_query_next(&it));
    cr_assert_eq(it.view.count, COUNT_OF(expected));
    cr_assert_eq(memcmp(quern_view_read(&it.view, 0), expected, sizeof expected), 0);
    quern_query_destroy(query);
    quern_world_destroy(world);
}

/* ---------------------------------------------------------------------------------------- no memory */

/* A new archetype, and slots, rows and lists that must grow. */
static void replace_all(quern_context *context)
{
    replace_by_an_archetype_of_its_own(context);
    quern_commands *commands = quern_context_commands(context);
    for (uint32_t i = 700; i < ENTITY_COUNT; i++)
        must(quern_commands_destroy(commands, entities[i]));
    for (uint32_t i = 0; i < 2 * ENTITY_COUNT; i++)
        create_kind(commands, i / 5 % KIND_COUNT, i, entities[0]);
}

/* Makes an allocation fail once the frame has recorded everything. */
static bool refuses;
static uint64_t refused_call;

static void replace_all_and_refuse(quern_context *context)
{
    replace_all(context);
    if (refuses) failing_allocator_fail_at(memory, refused_call);
    refuses = false;
}

static uint32_t retained_count; /* number of frames that retained their commands */

static bool play_refused(uint64_t call, const outcome *expected)
{
    open_world(false);
    const changes what = {.begin = replace_all_and_refuse};
    quern_schedule *schedule = open_schedule(&what, FAST_PATH);
    must(quern_schedule_compile(schedule));
    const uint64_t hash = quern_world_hash(world);
    const uint64_t failed_count = failing_allocator_failed_count(memory);
    refuses = true;
    refused_call = call;
    const quern_result result = quern_schedule_run(schedule, NULL, 0);
    failing_allocator_heal(memory);
    const bool is_met = failing_allocator_failed_count(memory) > failed_count;
    if (result != QUERN_OK) {
        cr_assert_eq(result, QUERN_ERROR_OUT_OF_MEMORY, "call %llu: %s", (unsigned long long)call,
                     quern_error_message());
        retained_count++;
        cr_assert_eq(quern_world_hash(world), hash, "call %llu", (unsigned long long)call);
        cr_assert_gt(quern_schedule_kept_command_count(schedule), 0u);
        assert_valid(world);
        must(quern_schedule_set_system_enabled(schedule, quern_schedule_find_system(schedule, "changes"),
                                               false));
        must_run(schedule, NULL);
    }
    cr_assert_eq(schedule->playback.destroy_and_create_count, 1u);
    const outcome actual = outcome_of(schedule);
    cr_assert_eq(actual.hash, expected->hash, "call %llu", (unsigned long long)call);
    cr_assert_eq(actual.next, expected->next, "call %llu", (unsigned long long)call);
    quern_schedule_destroy(schedule);
    quern_world_destroy(world);
    return is_met;
}

Test(destroy_and_create, sync_point_without_memory_changes_nothing_and_can_be_repeated, .timeout = 600)
{
    memory = failing_allocator_create();
    uint32_t destroy_and_create_count;
    const changes what = {.begin = replace_all};
    const outcome expected = play(&what, 0, ALL_STAGES, &destroy_and_create_count);
    uint64_t call = 1;
    while (play_refused(call, &expected))
        call++;
    cr_assert_gt(retained_count, 12u, "the frame asks for more");
    failing_allocator_close(memory);
}
