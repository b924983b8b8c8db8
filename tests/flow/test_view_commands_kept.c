/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Test labels: threaded */
#include "tests/flow/view_scene.h"
#include "tests/support/effort.h"

/* Commands for views that are applied later than recorded, to rows that have moved, or not at all: kept for lack of
 * memory, waiting between frames, saved in a history, refused. The single commands that they stand for define the
 * expected results. */

static uint64_t salt;

static void act(quern_context *context, const quern_view *view)
{
    act_on_view(quern_context_commands(context), view,
                salt * 1000003 + quern_entity_index(view->entities[0]), 20);
}

/* ------------------------------------------------------------------------------- between recording and sync */

/* Records commands for all views of the entities that have a component. */
static void record_waiting(uint32_t component)
{
    const quern_term term = quern_term_with(components[component]);
    quern_query *query = setup_query(world, &term, 1);
    quern_commands *commands = quern_world_commands(world);
    quern_query_iterator it = quern_query_iterate(query);
    while (quern_query_next(&it))
        act_on_view(commands, &it.view, salt * 77 + quern_entity_index(it.view.entities[0]), 20);
    must(it.result);
    quern_query_destroy(query);
}

/* Moves many rows, and destroys some entities that commands wait for. */
static void change_world(void)
{
    random_source random = {salt};
    for (uint32_t i = 0; i < ENTITIES; i++) {
        const uint32_t way = random_below(&random, 8);
        if (!quern_entity_is_alive(world, known[i])) continue;
        if (way == 0) must(quern_entity_destroy(world, known[i]));
        if (way == 1) must(quern_entity_set(world, known[i], components[TAG], NULL));
        if (way == 2 && quern_entity_has(world, known[i], components[NUMBER]))
            must(quern_entity_remove(world, known[i], components[NUMBER]));
    }
}

static uint64_t flush_after_changes(bool views, bool saves)
{
    quern_flush_stats stats;
    uses_views = views;
    open_scene(NULL);
    quern_history *history = NULL;
    if (saves) must(quern_history_create(world, &(quern_history_def){.frame_count = 2}, &history));
    record_waiting(NUMBER);
    record_waiting(TAG);
    if (saves) must(quern_history_save(history, 1, NULL));
    change_world();
    if (saves) must(quern_history_restore(history, 1, NULL));
    if (!saves) record_waiting(PLACE); /* on views of the changed world */
    must(quern_world_flush(world));
    must(quern_world_get_flush_stats(world, &stats));
    cr_assert(saves || stats.dropped_count > 0);
    assert_valid(world);
    const uint64_t hash = quern_world_hash(world) ^ stats.command_count << 20 ^ stats.dropped_count << 40;
    if (history != NULL) quern_history_destroy(history);
    close_scene();
    return hash;
}

Test(view_commands, follow_entities_that_have_moved, .timeout = 600)
{
    for (salt = 1; salt <= 12; salt++)
        cr_assert_eq(flush_after_changes(true, false), flush_after_changes(false, false), "salt %llu",
                     (unsigned long long)salt);
}

Test(view_commands, waiting_in_a_history_are_restored, .timeout = 600)
{
    for (salt = 1; salt <= 6; salt++)
        cr_assert_eq(flush_after_changes(true, true), flush_after_changes(false, true), "salt %llu",
                     (unsigned long long)salt);
}

static uint64_t run_parallel(bool views, uint32_t threads)
{
    quern_jobs *jobs = setup_jobs(threads);
    uses_views = views;
    open_scene(NULL);
    const quern_term term = quern_term_with(components[NUMBER]);
    quern_query *query = setup_query(world, &term, 1);
    must(quern_query_parallel_for(query, jobs, act, NULL));
    assert_valid(world);
    const uint64_t hash = quern_world_hash(world);
    quern_query_destroy(query);
    close_scene();
    quern_jobs_destroy(jobs);
    return hash;
}

Test(view_commands, of_parallel_queries_equal_single_commands)
{
    salt = 5;
    const uint64_t expected = run_parallel(false, 0);
    for (uint32_t i = 0; i < POOL_COUNT; i++)
        cr_assert_eq(run_parallel(true, pool_threads[i]), expected);
}

/* ----------------------------------------------------------------------------------- missing memory */

static void add_act(void)
{
    quern_system_def def = system_def("numbers", act);
    def.terms[0] = quern_term_with(components[NUMBER]);
    setup_system(schedule, &def);
    def.name = "tags";
    def.terms[0] = quern_term_with(components[TAG]);
    setup_system(schedule, &def);
}

static void open_failing(uint32_t threads)
{
    memory = failing_allocator_create();
    open_scene(NULL);
    add_act();
    if (threads > 0) schedule->playback.parallel_command_count = 1;
}

static void close_failing(void)
{
    close_scene();
    failing_allocator_close(memory);
    memory = NULL;
}

/* Lets one allocation of a frame fail. Returns whether the frame did not need it. */
static bool refuse(quern_jobs *jobs, uint64_t call, uint64_t expected, uint32_t *kept_count)
{
    open_failing(jobs != NULL ? 2 : 0);
    const uint64_t before = quern_world_hash(world);
    failing_allocator_fail_at(memory, call);
    const quern_result result = quern_schedule_run(schedule, jobs, 0);
    const bool is_done = failing_allocator_failed_count(memory) == 0;
    failing_allocator_heal(memory);
    assert_valid(world);
    if (is_done) must(result);
    if (!is_done && refused_count == 0 && quern_schedule_kept_command_count(schedule) > 0) {
        ++*kept_count;
        cr_assert_eq(quern_world_hash(world), before, "call %llu", (unsigned long long)call);
        for (uint32_t i = 1; i <= quern_schedule_system_count(schedule); i++)
            must(quern_schedule_set_system_enabled(schedule, (quern_system){i}, false));
        must_run(schedule, jobs);
        cr_assert_eq(quern_world_hash(world), expected, "call %llu", (unsigned long long)call);
    }
    close_failing();
    return is_done;
}

static void refuse_each(uint32_t threads, uint64_t step)
{
    quern_jobs *jobs = setup_jobs(threads);
    uses_views = true;
    salt = 3;
    open_failing(threads);
    must_run(schedule, jobs);
    const uint64_t expected = quern_world_hash(world);
    close_failing();
    uint32_t kept_count = 0;
    uint64_t call = 1;
    while (!refuse(jobs, call, expected, &kept_count))
        call += step;
    cr_assert_gt(kept_count, 10u, "the test meets few refusals at the sync point");
    quern_jobs_destroy(jobs);
}

Test(view_commands, are_kept_when_out_of_memory, .timeout = 600)
{
    runs_on_one_thread();
    refuse_each(0, 1);
}

Test(view_commands, are_kept_on_several_threads, .timeout = 600)
{
    refuse_each(3, 3);
}

/* Each command is recorded whole, or not at all. */
Test(view_commands, record_nothing_when_out_of_memory, .timeout = 600)
{
    static uint8_t values[ENTITIES][600];
    memory = failing_allocator_create();
    open_scene(NULL);
    const quern_term term = quern_term_with(components[NUMBER]);
    quern_query *query = setup_query(world, &term, 1);
    uint32_t failed_count = 0;
    for (uint64_t call = 1;; call++) {
        quern_commands *commands = quern_world_commands(world);
        quern_query_iterator it = quern_query_iterate(query);
        cr_assert(quern_query_next(&it));
        failing_allocator_fail_at(memory, call);
        const quern_result result =
            quern_commands_set_view_values(commands, &it.view, NULL, components[LARGE], values);
        const bool is_done = failing_allocator_failed_count(memory) == failed_count;
        failing_allocator_heal(memory);
        cr_assert_eq(result, is_done ? QUERN_OK : QUERN_ERROR_OUT_OF_MEMORY);
        quern_query_iterator_end(&it);
        if (is_done) break;
        failed_count++;
        quern_flush_stats stats;
        cr_assert_eq(quern_world_flush(world), QUERN_ERROR_OUT_OF_MEMORY);
        must(quern_world_get_flush_stats(world, &stats));
        cr_assert_eq(stats.command_count, 0u, "call %llu", (unsigned long long)call);
    }
    cr_assert_geq(failed_count, 3u);
    must(quern_world_discard_commands(world));
    quern_query_destroy(query);
    close_failing();
}

/* ------------------------------------------------------------------------------------------ refusals */

static quern_component wide[2];

/* Gives the entities of views with a number more than they can have, and to other entities a parent. */
static void ask_for_too_much(quern_context *context, const quern_view *view)
{
    quern_commands *commands = quern_context_commands(context);
    static const uint64_t third[] = {0x9249249249249249u, 0x4924924924924924u, 0x2492492492492492u};
    uint64_t mask[MAX_ROWS / 64];
    for (uint32_t i = 0; i < COUNT_OF(mask); i++)
        mask[i] = third[i % 3];
    const quern_view_rows rows = {.mask = mask};
    for (uint32_t i = 0; i < 2; i++) {
        if (uses_views) expect(quern_commands_add_view(commands, view, &rows, wide[i], NULL));
        for (uint32_t row = 0; row < view->count && !uses_views; row++)
            if ((mask[row / 64] >> row % 64 & 1) != 0)
                expect(quern_commands_add(commands, view->entities[row], wide[i], NULL));
    }
    if (parent.bits == 0) return;
    for (uint32_t row = 1; row < view->count; row += 5)
        expect(quern_commands_relate(commands, view->entities[row], parent, view->entities[0]));
}

static uint64_t run_refused(bool views, const quern_target_policy *policy, uint32_t threads)
{
    quern_jobs *jobs = setup_jobs(threads);
    uses_views = views;
    open_scene(policy);
    wide[0] = setup_component(world, "wide0", 9000, 8);
    wide[1] = setup_component(world, "wide1", 9000, 8);
    make_system(schedule, "greedy", ask_for_too_much, .terms = {quern_term_with(components[NUMBER])});
    make_system(schedule, "numbers", act, .terms = {quern_term_with(components[NUMBER])});
    if (threads > 0) schedule->playback.parallel_command_count = 1;
    must_not_run(schedule, jobs, QUERN_ERROR_COMPONENT_TOO_LARGE);
    assert_valid(world);
    uint64_t hash = quern_world_hash(world);
    cr_assert_gt(quern_schedule_dropped_command_count(schedule), 0u);
    for (uint32_t i = 0; i < quern_schedule_dropped_command_count(schedule); i++) {
        quern_dropped_command dropped;
        must(quern_schedule_get_dropped_command(schedule, i, &dropped));
        hash = hash * 31 + dropped.count * 64 + (uint64_t)dropped.reason;
        hash = hash * 31 + quern_entity_index(dropped.first);
    }
    close_scene();
    quern_jobs_destroy(jobs);
    return hash;
}

Test(view_commands, beyond_limits_are_refused_like_single_commands)
{
    static const quern_target_policy policy = QUERN_TARGET_DESTROYS_SOURCE;
    for (salt = 1; salt <= 4; salt++)
        for (uint32_t i = 0; i < 4; i++) {
            const quern_target_policy *of = i % 2 == 0 ? NULL : &policy;
            cr_assert_eq(run_refused(true, of, i < 2 ? 0 : 3), run_refused(false, of, 0));
        }
}

static quern_result check_calls(quern_commands *commands, const quern_view *view,
                                const quern_view_rows *rows)
{
    const quern_component tag = components[TAG], number = components[NUMBER];
    const uint64_t values[8] = {0};
    const quern_result results[] = {
        quern_commands_add_view(commands, view, rows, tag, NULL),
        quern_commands_set_view(commands, view, rows, number, values),
        quern_commands_set_view_values(commands, view, rows, number, values),
        quern_commands_remove_view(commands, view, rows, tag),
        quern_commands_destroy_view(commands, view, rows),
    };
    for (uint32_t i = 1; i < COUNT_OF(results); i++)
        cr_assert_eq(results[i], results[0]);
    return results[0];
}

Test(view_commands, refuse_invalid_arguments)
{
    open_scene(NULL);
    const quern_term term = quern_term_with(components[NUMBER]);
    quern_query *query = setup_query(world, &term, 1);
    quern_commands *commands = quern_world_commands(world);
    quern_query_iterator it = quern_query_iterate(query);
    cr_assert(quern_query_next(&it));
    const quern_view *view = &it.view;
    const uint32_t count = view->count;
    const uint64_t mask = 1;
    must_refuse(NULL_ARGUMENT, world, check_calls(NULL, view, NULL));
    must_refuse(NULL_ARGUMENT, world, check_calls(commands, NULL, NULL));
    const quern_view_rows both = {.mask = &mask, .list = (uint32_t[]){0}, .list_count = 1};
    must_refuse(INVALID_ARGUMENT, world, check_calls(commands, view, &both));
    const quern_view_rows beyond = {.list = (uint32_t[]){0, count}, .list_count = 2};
    must_refuse(INVALID_ARGUMENT, world, check_calls(commands, view, &beyond));
    const quern_view_rows twice = {.list = (uint32_t[]){3, 3}, .list_count = 2};
    must_refuse(INVALID_ARGUMENT, world, check_calls(commands, view, &twice));
    const quern_view_rows descending = {.list = (uint32_t[]){5, 3}, .list_count = 2};
    must_refuse(INVALID_ARGUMENT, world, check_calls(commands, view, &descending));
    assert_message_has("element 1 of the list of rows is 3, after 5");
    quern_view other = *view;
    other.entities = &known[ENTITIES / KINDS]; /* in another archetype */
    must_refuse(INVALID_ARGUMENT, world, check_calls(commands, &other, NULL));
    const quern_entity foreign = entity_of_other_world(known[0]);
    other.entities = &foreign;
    must_refuse(INVALID_ARGUMENT, world, check_calls(commands, &other, NULL));
    other.count = 0;
    must_refuse(INVALID_ARGUMENT, world, check_calls(commands, &other, NULL));
    const quern_component number = components[NUMBER];
    must_refuse(NULL_ARGUMENT, world, quern_commands_set_view(commands, view, NULL, number, NULL));
    must_refuse(NULL_ARGUMENT, world, quern_commands_set_view_values(commands, view, NULL, number, NULL));
    must_refuse(UNKNOWN_COMPONENT, world,
                quern_commands_remove_view(commands, view, NULL, component_unregistered(number)));
    quern_query_iterator_end(&it);
    quern_flush_stats stats;
    must(quern_world_flush(world));
    must(quern_world_get_flush_stats(world, &stats));
    cr_assert_eq(stats.command_count, 0u);
    quern_query_destroy(query);
    close_scene();
}

/* -------------------------------------------------------------------------------------- whose views */

static uint32_t removed_count;

static void use_copies(quern_context *context, const quern_view *view)
{
    if (quern_context_reaction(context) != QUERN_REACT_REMOVED) return;
    removed_count += view->count;
    quern_commands *commands = quern_context_commands(context);
    cr_assert_eq(check_calls(commands, view, NULL), QUERN_ERROR_INVALID_ARGUMENT);
    assert_message_has("copies of removed rows");
    assert_message_has("'reaction'");
    must(quern_commands_add(commands, view->entities[0], components[TAG], NULL));
}

Test(view_commands, refuse_copies_of_removed_rows)
{
    open_scene(NULL);
    make_system(schedule, "reaction", use_copies, .terms = {quern_term_read(components[NUMBER])},
                .reacts_to = QUERN_REACT_REMOVED);
    must_run(schedule, NULL);
    must(quern_entity_remove(world, known[0], components[NUMBER]));
    must_run(schedule, NULL);
    cr_assert_eq(removed_count, 1u);
    cr_assert(quern_entity_has(world, known[0], components[TAG]));
    close_scene();
}

static quern_view kept_view;
static bool has_moved;
static uint32_t kept_uses;

/* Keeps a view, and uses it when rows have moved. */
static void keep_view(quern_context *context, const quern_view *view)
{
    if (has_moved) {
        cr_assert(quern_entity_is_alive(world, kept_view.entities[0]));
        cr_assert_eq(check_calls(quern_context_commands(context), &kept_view, NULL),
                     QUERN_ERROR_INVALID_ARGUMENT);
        assert_message_has("older than the last structural change");
        kept_uses++;
    } else if (view->count > 2) {
        kept_view = *view;
    }
}

/* Moves another row into the place of the second one of the kept view, and gives reactions something to do. */
static void move_rows(void)
{
    cr_assert_gt(kept_view.count, 2u);
    must(quern_entity_destroy(world, kept_view.entities[1]));
    must(quern_entity_mark_changed(world, kept_view.entities[0], components[NUMBER]));
    has_moved = true;
}

static void keep_and_use(uint32_t reacts_to)
{
    kept_view.count = kept_uses = 0;
    has_moved = false;
    open_scene(NULL);
    make_system(schedule, "keep", keep_view, .terms = {quern_term_write(components[NUMBER])},
                .reacts_to = reacts_to);
    must_run(schedule, NULL);
    move_rows();
    must_run(schedule, NULL);
    cr_assert_gt(kept_uses, 0u);
    close_scene();
}

Test(view_commands, refuse_views_that_were_kept)
{
    keep_and_use(0);
    keep_and_use(QUERN_REACT_ADDED | QUERN_REACT_SET | QUERN_REACT_PRESENT);
    kept_view.count = kept_uses = 0;
    has_moved = false;
    open_scene(NULL);
    quern_query *query = setup_query(world, (const quern_term[]){quern_term_with(components[NUMBER])}, 1);
    must(quern_query_parallel_for(query, NULL, keep_view, NULL));
    move_rows();
    must(quern_query_parallel_for(query, NULL, keep_view, NULL));
    cr_assert_gt(kept_uses, 0u);
    quern_query_destroy(query);
    close_scene();
}

static quern_commands *kept_recorder;

static void keep_recorder(quern_context *context, const quern_view *view)
{
    kept_recorder = quern_context_commands(context);
    must(quern_commands_add_view(kept_recorder, view, NULL, components[TAG], NULL));
}

static void steal_recorder(quern_context *context, const quern_view *view)
{
    cr_assert_eq(quern_commands_add_view(kept_recorder, view, NULL, components[TAG], NULL),
                 QUERN_ERROR_INVALID_ARGUMENT);
    assert_message_has("outside of the callback");
}

Test(view_commands, refuse_the_recorder_of_another_callback)
{
    captured_reports reports;
    capture_reports(&reports);
    open_scene(NULL);
    make_system(schedule, "keep", keep_recorder, .terms = {quern_term_with(components[LARGE])});
    make_system(schedule, "steal", steal_recorder, .terms = {quern_term_with(components[LARGE])});
    must_run(schedule, NULL);
    close_scene();
}

/* ------------------------------------------------------------------------------------ few allocations */

static void alternate(quern_context *context, const quern_view *view)
{
    quern_commands *commands = quern_context_commands(context);
    const uint64_t mask[MAX_ROWS / 64] = {0x5555555555555555u, 0xFFFF0000FFFF0000u};
    if (quern_context_frame_index(context) % 2 == 0)
        must(quern_commands_add_view(commands, view, &(quern_view_rows){.mask = mask}, components[LARGE],
                                     NULL));
    else
        must(quern_commands_remove_view(commands, view, NULL, components[LARGE]));
}

Test(view_commands, do_not_allocate_in_warm_frames)
{
    memory = failing_allocator_create();
    open_scene(NULL);
    make_system(schedule, "alternate", alternate, .terms = {quern_term_with(components[NUMBER])});
    for (uint32_t frame = 0; frame < 24; frame++)
        must_run(schedule, NULL);
    const uint64_t call_count = failing_allocator_call_count(memory);
    for (uint32_t frame = 0; frame < 8; frame++)
        must_run(schedule, NULL);
    cr_assert_eq(failing_allocator_call_count(memory), call_count);
    close_failing();
}
