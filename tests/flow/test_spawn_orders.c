/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Test labels: threaded */
#include "sched/frame/schedule_internal.h"
#include "tests/flow/flow_setup.h"
#include "tests/support/tracked.h"

#include <string.h>

/* Spawns of a root with one child, each followed by some of six commands in some order, all at one sync point. The model
 * applies the commands of a case to a few numbers, one by one. After the frame, the world and what reactions saw must
 * equal the model, and the hash must be the same at every thread count and without fast paths. */

typedef enum action { SET, REMOVE, DISABLE, RELATE, DESTROY, END_PARENT, ACTION_COUNT } action;

/* The parent given to the spawn. ENDED: an earlier command destroys it. */
typedef enum given_parent { NO_PARENT, PARENT, ENDED, GIVEN_COUNT } given_parent;

enum {
    ORDER_COUNT = 1957, /* orders of all subsets of six: the sum of 6! / k! for k from 0 to 6 */
    CASE_COUNT = ORDER_COUNT * GIVEN_COUNT,
    MEMBER_COUNT = 2
};

/* A case, and what the model says about its instance. */
typedef struct instance {
    given_parent given;
    uint32_t action_count;
    action actions[ACTION_COUNT];
    bool is_alive, has_extra, is_off;
    enum { NOWHERE, AT_NEST, AT_HOME } parent;
    uint64_t values[MEMBER_COUNT], tracked;
} instance;

static instance instances[CASE_COUNT];

/* The reactions: one for each kind alone, and one for all. They react to `value`; and the same for `extra`. */
typedef enum observer { ADDED, REMOVED, CHANGED, EVERYTHING, OBSERVER_COUNT } observer;
static const uint32_t kinds_of[OBSERVER_COUNT] = {QUERN_REACT_ADDED, QUERN_REACT_REMOVED, QUERN_REACT_SET,
                                                  QUERN_REACT_ADDED | QUERN_REACT_REMOVED |
                                                      QUERN_REACT_SET};

typedef struct scene {
    quern_world *world;
    quern_component driver, number, value, extra, tracked, lamp;
    quern_relation parent;
    quern_prefab prefab;
    quern_entity home, nests[CASE_COUNT];
    tracked_counts counts;
    /* number of rows that a reaction to value (0) or extra (1) saw, by member */
    uint32_t seen[2][OBSERVER_COUNT][CASE_COUNT * MEMBER_COUNT];
} scene;

static scene it;

/* ------------------------------------------------------------------------------------------- the model */

static void apply(instance *to, action next)
{
    const bool ends_parent = next == END_PARENT && to->parent == AT_NEST;
    if (!to->is_alive) return;
    if (next == DESTROY || ends_parent) to->is_alive = false;
    if (next == RELATE) to->parent = AT_HOME;
    if (next == REMOVE) to->has_extra = false;
    if (next == DISABLE) to->is_off = true;
    if (next != SET) return;
    to->values[0] = 9;
    to->values[1] = 8;
    to->tracked = 6;
}

/* Appends each action that the case does not have yet, and so on. */
static void list_orders(const instance *from, uint32_t *count)
{
    instances[(*count)++] = *from;
    for (uint32_t i = 0; i < ACTION_COUNT; i++) {
        instance next = *from;
        bool has = false;
        for (uint32_t k = 0; k < from->action_count; k++)
            has |= from->actions[k] == (action)i;
        if (has) continue;
        next.actions[next.action_count++] = (action)i;
        apply(&next, (action)i);
        list_orders(&next, count);
    }
}

static void list_cases(void)
{
    uint32_t count = 0;
    for (uint32_t given = 0; given < GIVEN_COUNT; given++)
        list_orders(&(instance){.given = (given_parent)given,
                                .is_alive = true,
                                .has_extra = true,
                                .parent = given == PARENT ? AT_NEST : NOWHERE,
                                .values = {1, 2},
                                .tracked = 5},
                    &count);
    cr_assert_eq(count, (uint32_t)CASE_COUNT);
}

/* ------------------------------------------------------------------------------------------- the world */

static void make_prefab(void)
{
    const quern_component list[] = {it.number, it.value, it.extra};
    const void *of_root[] = {&(uint64_t){0}, &(uint64_t){1}, &(uint64_t){3}},
               *of_child[] = {&(uint64_t){0}, &(uint64_t){2}};
    quern_entity root, child;
    tracked value;
    must(quern_entity_create_with(it.world, list, of_root, 3, &root));
    must(quern_entity_create_with(it.world, list, of_child, 2, &child));
    must(quern_entity_relate(it.world, child, it.parent, root));
    must(quern_entity_add(it.world, child, it.lamp, NULL));
    tracked_construct(&value, 5, &it.counts);
    must(quern_entity_set(it.world, root, it.tracked, &value));
    tracked_destroy(&value, &it.counts);
    must(quern_prefab_capture(it.world, root, &it.prefab));
    must(quern_entity_destroy(it.world, root));
}

static void open_world(void)
{
    memset(&it, 0, sizeof it);
    it.world = setup_world();
    it.driver = setup_component(it.world, "driver", 8, 8);
    it.number = setup_component(it.world, "number", 8, 8);
    it.value = setup_component(it.world, "value", 8, 8);
    it.extra = setup_component(it.world, "extra", 8, 8);
    it.tracked = tracked_register(it.world, "tracked", &it.counts);
    it.lamp = make_component(it.world, .name = "lamp", .can_disable = true);
    it.parent = quern_world_parent(it.world);
    (void)quern_world_disabled_tag(it.world);
    make_prefab();
    it.home = setup_entity(it.world);
    for (uint64_t i = 0; i < CASE_COUNT; i++) {
        quern_entity driver;
        must(quern_entity_create_with(it.world, &it.driver, (const void *[]){&i}, 1, &driver));
        it.nests[i] = setup_entity(it.world);
    }
}

/* ------------------------------------------------------------------------------------------- recording */

static void record_action(quern_commands *commands, uint64_t i, quern_entity root, action next)
{
    const quern_entity child = quern_commands_spawned_member(commands, it.prefab, root, 1);
    tracked value;
    switch (next) {
    case SET:
        tracked_construct(&value, 6, &it.counts);
        must(quern_commands_set(commands, root, it.value, &(uint64_t){9}));
        must(quern_commands_set(commands, root, it.tracked, &value));
        must(quern_commands_set(commands, child, it.value, &(uint64_t){8}));
        tracked_destroy(&value, &it.counts);
        break;
    case REMOVE:
        must(quern_commands_remove(commands, root, it.extra));
        break;
    case DISABLE:
        must(quern_commands_set_enabled(commands, root, false));
        must(quern_commands_set_component_enabled(commands, child, it.lamp, false));
        break;
    case RELATE:
        must(quern_commands_relate(commands, root, it.parent, it.home));
        break;
    case DESTROY:
        must(quern_commands_destroy(commands, root));
        break;
    default:
        must(quern_commands_destroy(commands, it.nests[i]));
        break;
    }
}

static void record_cases(quern_context *context, const quern_view *view)
{
    quern_commands *commands = quern_context_commands(context);
    const uint64_t *drivers = quern_view_read(view, 0);
    for (uint32_t row = 0; row < view->count; row++) {
        const uint64_t i = drivers[row], numbers[MEMBER_COUNT] = {2 * i, 2 * i + 1};
        const instance *of = &instances[i];
        quern_spawn_def def = {.parent = of->given != NO_PARENT ? it.nests[i] : quern_entity_null(),
                               .overrides = {{it.number, 0, &numbers[0]}, {it.number, 1, &numbers[1]}}};
        quern_entity root;
        if (of->given == ENDED) must(quern_commands_destroy(commands, it.nests[i]));
        must(quern_commands_spawn(commands, it.prefab, &def, &root));
        for (uint32_t k = 0; k < of->action_count; k++)
            record_action(commands, i, root, of->actions[k]);
    }
}

static void note(const quern_context *context, const quern_view *view)
{
    uint32_t *seen = quern_context_user_data(context);
    const uint64_t *numbers = quern_view_read(view, 1);
    for (uint32_t i = 0; i < view->count; i++)
        seen[numbers[i]]++;
}

static void note_rows(quern_context *context, const quern_view *view)
{
    note(context, view);
}

static quern_schedule *make_schedule(bool disables_fast_paths)
{
    static const char *const names[2][OBSERVER_COUNT] = {
        {"value added", "value removed", "value set", "value"},
        {"extra added", "extra removed", "extra set", "extra"}};
    quern_schedule *schedule = setup_schedule(it.world);
    make_system(schedule, "cases", record_cases, .terms = {quern_term_read(it.driver)});
    for (uint32_t i = 0; i < 2; i++)
        for (uint32_t k = 0; k < OBSERVER_COUNT; k++)
            make_system(
                schedule, names[i][k], note_rows,
                .terms = {quern_term_read(i == 0 ? it.value : it.extra), quern_term_read(it.number)},
                .reacts_to = kinds_of[k], .flags = QUERN_SYSTEM_SERIAL, .user_data = it.seen[i][k]);
    schedule->playback.disable_fast_paths = disables_fast_paths;
    schedule->playback.parallel_command_count = 1;
    return schedule;
}

/* ------------------------------------------------------------------------------------------- comparing */

static void expect_root(const instance *of, uint64_t i, quern_entity root)
{
    const quern_entity target = quern_entity_target(it.world, root, it.parent);
    const quern_entity expected = of->parent == AT_HOME   ? it.home
                                  : of->parent == AT_NEST ? it.nests[i]
                                                          : quern_entity_null();
    const tracked *value = quern_entity_get(it.world, root, it.tracked);
    cr_assert_eq(target.bits, expected.bits, "case %u", (uint32_t)i);
    cr_assert_eq(quern_entity_has(it.world, root, it.extra), of->has_extra, "case %u", (uint32_t)i);
    cr_assert(tracked_is_live(value));
    cr_assert_eq(value->payload, of->tracked, "case %u", (uint32_t)i);
}

static void expect_child(const instance *of, uint64_t i, quern_entity child)
{
    const quern_entity root = quern_entity_target(it.world, child, it.parent);
    const uint64_t *number = quern_entity_get(it.world, root, it.number);
    cr_assert_not_null(number, "case %u", (uint32_t)i);
    cr_assert_eq(*number, 2 * i, "case %u", (uint32_t)i);
    cr_assert_eq(quern_entity_is_component_enabled(it.world, child, it.lamp), !of->is_off, "case %u",
                 (uint32_t)i);
}

/* Compares all members with the model, and counts the living instances. */
static uint32_t expect_members(void)
{
    static uint32_t found[CASE_COUNT * MEMBER_COUNT];
    const quern_term terms[] = {quern_term_read(it.number), quern_term_read(it.value),
                                quern_term_optional(quern_world_disabled_tag(it.world), QUERN_ACCESS_NONE)};
    quern_query *query = setup_query(it.world, terms, COUNT_OF(terms));
    uint32_t alive_count = 0;
    memset(found, 0, sizeof found);
    for (quern_query_iterator walk = quern_query_iterate(query); quern_query_next(&walk);) {
        const uint64_t *numbers = quern_view_read(&walk.view, 0), *values = quern_view_read(&walk.view, 1);
        for (uint32_t row = 0; row < walk.view.count; row++) {
            const uint64_t i = numbers[row] / MEMBER_COUNT, member = numbers[row] % MEMBER_COUNT;
            const instance *of = &instances[i];
            found[numbers[row]]++;
            cr_assert_eq(values[row], of->values[member], "case %u", (uint32_t)i);
            cr_assert_eq(quern_entity_is_enabled(it.world, walk.view.entities[row]), !of->is_off, "case %u",
                         (uint32_t)i);
            if (member == 0)
                expect_root(of, i, walk.view.entities[row]);
            else
                expect_child(of, i, walk.view.entities[row]);
        }
    }
    quern_query_destroy(query);
    for (uint32_t i = 0; i < CASE_COUNT; i++) {
        alive_count += instances[i].is_alive;
        for (uint32_t k = 0; k < MEMBER_COUNT; k++)
            cr_assert_eq(found[MEMBER_COUNT * i + k], (uint32_t)instances[i].is_alive, "case %u", i);
    }
    return alive_count;
}

/* An entity that appears at a sync point was added. It was neither set nor removed, whatever commands did in between. */
static void expect_seen(void)
{
    for (uint32_t i = 0; i < CASE_COUNT; i++)
        for (uint32_t k = 0; k < 2 * MEMBER_COUNT; k++) {
            const instance *of = &instances[i];
            const uint32_t member = k % MEMBER_COUNT, is_extra = k / MEMBER_COUNT;
            const bool has = is_extra == 0 || (member == 0 && of->has_extra);
            const uint32_t expected = of->is_alive && !of->is_off && has;
            for (uint32_t n = 0; n < OBSERVER_COUNT; n++)
                cr_assert_eq(it.seen[is_extra][n][MEMBER_COUNT * i + member],
                             n == ADDED || n == EVERYTHING ? expected : 0,
                             "case %u, member %u, reaction %u to %s", i, member, n,
                             is_extra ? "extra" : "value");
        }
}

static uint64_t run_cases(uint32_t thread_count, bool disables_fast_paths)
{
    open_world();
    quern_jobs *jobs = setup_jobs(thread_count);
    quern_schedule *schedule = make_schedule(disables_fast_paths);
    must_run(schedule, jobs);
    assert_valid(it.world);
    const uint32_t alive_count = expect_members();
    expect_seen();
    cr_assert_eq(tracked_live_count(&it.counts), alive_count + 1u, "each root and the prefab");
    cr_assert_eq(it.counts.broken_count, 0u);
    const uint64_t hash = quern_world_hash(it.world);
    quern_schedule_destroy(schedule);
    quern_jobs_destroy(jobs);
    quern_world_destroy(it.world);
    cr_assert_eq(tracked_live_count(&it.counts), 0u);
    return hash;
}

Test(spawn_orders, commands_after_a_spawn_have_the_same_result_as_one_by_one, .timeout = 600)
{
    list_cases();
    const uint64_t hash = run_cases(0, false);
    for (uint32_t i = 0; i < POOL_COUNT; i++)
        cr_assert_eq(run_cases(pool_threads[i], i % 2 == 1), hash, "threads %u", pool_threads[i]);
}

/* ------------------------------------------------------------------------------ what a spawn costs */

enum { SPAWNS = 100 };

/* Returns the number of recorded items. */
static uint32_t item_count(const quern_commands *commands)
{
    return commands->open->item_count + commands->batch->item_count;
}

static void spawn_in_home(quern_context *context)
{
    quern_commands *commands = quern_context_commands(context);
    for (uint32_t i = 0; i < SPAWNS; i++)
        must(quern_commands_spawn(commands, it.prefab, &(quern_spawn_def){.parent = it.home}, NULL));
    cr_assert_eq(item_count(commands), (uint32_t)SPAWNS);
}

static void spawn_and_set(quern_context *context)
{
    quern_commands *commands = quern_context_commands(context);
    for (uint32_t i = 0; i < SPAWNS; i++) {
        quern_entity root;
        must(quern_commands_spawn(commands, it.prefab, NULL, &root));
        must(quern_commands_set(commands, root, it.value, &(uint64_t){i}));
    }
    cr_assert_eq(item_count(commands), 2u * SPAWNS);
}

static uint32_t
    fast_path_count; /* sync points of the last frame that used the path of destroys and creates */

/* Runs a frame with the callback, and returns how many values with hooks were copied and moved for each instance. */
static double hook_calls(quern_system_callback *callback)
{
    const uint64_t before = it.counts.copied_count + it.counts.moved_count;
    quern_schedule *schedule = setup_schedule(it.world);
    make_system(schedule, "spawns", NULL, .begin = callback);
    must_run(schedule, NULL);
    fast_path_count = schedule->playback.destroy_and_create_count;
    quern_schedule_destroy(schedule);
    assert_valid(it.world);
    return (double)(it.counts.copied_count + it.counts.moved_count - before) / SPAWNS;
}

/* A parent or a later command must not turn the instance into creates of single members: these would be recorded one by
 * one, with copies of all captured values, and move them to rows later. */
Test(spawn_orders, parent_or_set_adds_nothing_for_each_member)
{
    open_world();
    cr_assert_eq(hook_calls(spawn_in_home), 1.0, "the value goes from the prefab to its row");
    cr_assert_eq(fast_path_count, 1u, "rows agree with the links, so the stages have nothing to do");
    cr_assert_eq(quern_entity_source_count(it.world, it.home, it.parent), (uint32_t)SPAWNS);
    cr_assert_eq(hook_calls(spawn_and_set), 1.0, "the value of a member that no command concerns");
    quern_world_destroy(it.world);
}
