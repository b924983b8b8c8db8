/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Test labels: threaded, optimised */
#include "tests/flow/flow_setup.h"
#include "tests/support/effort.h"
#include "tests/support/fixture.h"
#include "tests/support/random.h"

/* Tests change filters in frames: a filter must see each change by a system or command in the same frame
 * or the next, at every thread count. The component `seen` of each entity holds the value that the
 * filter saw last. */

enum { ROWS = 4000, FRAMES = 40 };

typedef struct state {
    uint64_t value;  /* changed at random; the filter is on this component */
    uint64_t number; /* number of the entity, from 0 */
} state;

static quern_component state_type, seen_type, tag;
static uint64_t seed;
static _Atomic uint64_t shown_count;

static void create_one(uint64_t number)
{
    state start = {.value = 0, .number = number};
    uint64_t seen = UINT64_MAX;
    must(quern_entity_create_with(world, (quern_component[]){state_type, seen_type},
                                  (const void *const[]){&start, &seen}, 2, NULL));
}

static void open_world(void)
{
    world = setup_world();
    state_type = setup_component(world, "state", sizeof(state), 8);
    seen_type = setup_component(world, "seen", 8, 8);
    tag = setup_tag(world, "tag");
    shown_count = 0;
    for (uint64_t i = 0; i < ROWS; i++)
        create_one(i);
}

/* Returns a random number that depends on entity and frame, not on the thread. */
static uint64_t roll(uint64_t number, uint64_t frame, uint32_t salt)
{
    random_source random = {seed ^ number * 977 ^ frame * 7919 ^ (uint64_t)salt << 40};
    return random_next(&random);
}

/* Writes a value in one of 8 views on average, and requests no write access in the others. */
static void change(quern_context *context, const quern_view *view)
{
    uint64_t frame = quern_context_frame_index(context);
    const state *states = quern_view_read(view, 0);
    uint64_t first = states[0].number;
    if (roll(first, frame, 1) % 8 != 0) return;
    state *written = quern_view_write(view, 0);
    written[view->count / 2].value++;
}

/* Records changes of every kind for the next sync point. */
static void command(quern_context *context, const quern_view *view)
{
    uint64_t frame = quern_context_frame_index(context);
    const state *states = quern_view_read(view, 0);
    quern_commands *commands = quern_context_commands(context);
    for (uint32_t i = 0; i < view->count; i++) {
        state next = {.value = states[i].value + 1, .number = states[i].number};
        uint64_t fresh = UINT64_MAX;
        switch (roll(states[i].number, frame, 2) % 20000) {
        case 0:
            must(quern_commands_set(commands, view->entities[i], state_type, &next));
            break;
        case 1:
            must(quern_commands_add(commands, view->entities[i], tag, NULL));
            break;
        case 2:
            must(quern_commands_remove(commands, view->entities[i], tag));
            break;
        case 3:
            must(quern_commands_destroy(commands, view->entities[i]));
            cr_assert_neq(record_entity_with(commands, (quern_component[]){state_type, seen_type},
                                             (const void *const[]){&next, &fresh}, 2)
                              .bits,
                          0u);
            break;
        default:
            break;
        }
    }
}

/* Stores the values of rows that the filter selects in `seen`. */
static void watch(quern_context *context, const quern_view *view)
{
    const state *states = quern_view_read(view, 0);
    uint64_t *seen = quern_view_write(view, 1);
    for (uint32_t i = 0; i < view->count; i++)
        seen[i] = states[i].value;
    shown_count += view->count;
}

static bool in_even_frames(quern_context *context)
{
    return quern_context_frame_index(context) % 2 == 0;
}

static void add_systems(quern_schedule *schedule, bool watches_every_frame)
{
    quern_system_def def = system_def("command", command);
    def.terms[0] = quern_term_read(state_type);
    setup_system(schedule, &def);
    def = system_def("change", change);
    def.terms[0] = quern_term_write(state_type);
    def.phase = 1;
    setup_system(schedule, &def);
    def = system_def("watch", watch);
    def.terms[0] = quern_term_changed(quern_term_read(state_type));
    def.terms[1] = quern_term_write(seen_type);
    def.phase = 1;
    if (!watches_every_frame) def.condition = in_even_frames;
    setup_system(schedule, &def);
}

static void assert_seen(uint64_t frame)
{
    quern_term terms[] = {quern_term_read(state_type), quern_term_read(seen_type)};
    quern_query *query = setup_query(world, terms, 2);
    for (quern_query_iterator it = quern_query_iterate(query); quern_query_next(&it);) {
        const state *states = quern_view_read(&it.view, 0);
        const uint64_t *seen = quern_view_read(&it.view, 1);
        for (uint32_t i = 0; i < it.view.count; i++)
            cr_assert_eq(seen[i], states[i].value, "frame %llu: entity %llu has changed and was not shown",
                         (unsigned long long)frame, (unsigned long long)states[i].number);
    }
    quern_query_destroy(query);
}

/* The world's hash after the last frame, and the number of rows that the filter selected. */
typedef struct outcome {
    uint64_t hash, shown_count;
} outcome;

static outcome play(uint32_t thread_count, bool fuse, bool watches_every_frame)
{
    open_world();
    quern_schedule_def def = {.phases = {"first", "second"}, .disable_fusing = !fuse};
    quern_schedule *schedule;
    must(quern_schedule_create(world, &def, &schedule));
    add_systems(schedule, watches_every_frame);
    quern_jobs *jobs = thread_count > 0 ? setup_jobs(thread_count) : NULL;
    for (uint64_t frame = 0; frame < FRAMES; frame++) {
        must_run(schedule, jobs);
        if (watches_every_frame || frame % 2 == 0) assert_seen(frame);
    }
    outcome end = {.hash = quern_world_hash(world), .shown_count = shown_count};
    quern_jobs_destroy(jobs);
    quern_schedule_destroy(schedule);
    close_world();
    return end;
}

static void play_everywhere(bool watches_every_frame)
{
    for (seed = 1; seed <= effort(3, 3, 1); seed++) {
        outcome expected = play(0, true, watches_every_frame);
        cr_assert_lt(expected.shown_count, (uint64_t)ROWS * FRAMES / 2, "the filter let nearly all pass");
        for (uint32_t i = 0; i < POOL_COUNT; i++)
            for (uint32_t fuse = 0; fuse < 2; fuse++) {
                outcome actual = play(pool_threads[i], fuse, watches_every_frame);
                cr_assert_eq(actual.hash, expected.hash);
                cr_assert_eq(actual.shown_count, expected.shown_count);
            }
    }
}

Test(changed_frames, earlier_changes_are_seen_in_the_same_frame, .timeout = 600)
{
    play_everywhere(true);
}

Test(changed_frames, skipped_system_sees_the_changes_it_missed, .timeout = 600)
{
    play_everywhere(false);
}

/* Destroys the entity with the highest number, which is in the last row, in every frame. */
static void destroy_last(quern_context *context, const quern_view *view)
{
    const state *states = quern_view_read(view, 0);
    for (uint32_t i = 0; i < view->count; i++)
        if (states[i].number == ROWS - 1 - quern_context_frame_index(context))
            must(quern_commands_destroy(quern_context_commands(context), view->entities[i]));
}

static void count_shown(quern_context *context, const quern_view *view)
{
    shown_count += view->count;
}

Test(changed_frames, removing_the_last_row_does_not_change_its_chunk)
{
    open_world();
    quern_schedule_def def = {.phases = {"first", "second"}};
    quern_schedule *schedule;
    must(quern_schedule_create(world, &def, &schedule));
    make_system(schedule, "destroy last", destroy_last, .terms = {quern_term_read(state_type)});
    make_system(schedule, "count shown", count_shown,
                .terms = {quern_term_changed(quern_term_read(state_type))}, .phase = 1);
    for (uint32_t frame = 0; frame < 4; frame++)
        must_run(schedule, NULL);
    cr_assert_eq(shown_count, ROWS - 1u, "all at the first look, and nothing after it");
    quern_schedule_destroy(schedule);
    close_world();
}

/* ------------------------------------------------------------------------------- a system's own changes */

enum { BY_VIEW, BY_LOOKUP, BY_COMMAND, WAY_COUNT };

static uint32_t own_write;
static _Atomic uint64_t own_seen;

/* Changes the state of each entity that it sees; the world has one. */
static void change_own(quern_context *context, const quern_view *view)
{
    const state value = {.value = 9, .number = 9};
    own_seen += view->count;
    if (own_write == BY_VIEW) ((state *)quern_view_write(view, 0))->value++;
    if (own_write == BY_LOOKUP)
        ((state *)quern_context_lookup_write(context, view->entities[0], state_type))->value++;
    if (own_write == BY_COMMAND)
        must(quern_commands_set(quern_context_commands(context), view->entities[0], state_type, &value));
}

/* A system's own writes by views and lookups are not new to its filter. Changes by its commands are. */
Test(changed_frames, own_commands_are_new_to_a_filter_but_own_writes_are_not)
{
    static const uint64_t shown_in_frames[WAY_COUNT][3] = {{1, 0, 0}, {1, 0, 0}, {1, 1, 1}};
    for (own_write = 0; own_write < WAY_COUNT; own_write++) {
        world = setup_world();
        state_type = setup_component(world, "state", sizeof(state), 8);
        setup_entity_with(world, &state_type, 1);
        quern_schedule *schedule = setup_schedule(world);
        quern_system_def def = system_def("own", change_own);
        def.terms[0] = quern_term_changed(own_write == BY_VIEW ? quern_term_write(state_type)
                                                               : quern_term_read(state_type));
        if (own_write == BY_LOOKUP) def.write_lookups[0].component = state_type;
        setup_system(schedule, &def);
        for (uint32_t frame = 0; frame < 3; frame++) {
            own_seen = 0;
            must_run(schedule, NULL);
            cr_assert_eq(own_seen, shown_in_frames[own_write][frame], "way %u, frame %u: %llu", own_write,
                         frame, (unsigned long long)own_seen);
        }
        quern_schedule_destroy(schedule);
        quern_world_destroy(world);
    }
}
