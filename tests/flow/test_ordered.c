/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Test labels: threaded, optimised */
#include "tests/flow/flow_setup.h"
#include "tests/support/effort.h"
#include "tests/support/fixture.h"
#include "tests/support/random.h"

#include <stdlib.h>
#include <string.h>

/* Systems whose rows have an order (quern_system_def.order_by): what they see, and the order of their partial results and
 * commands, against a naive sort, at every thread count. */

enum { MOST = 6000, BEGIN = 2200, FRAMES = effort(12, 12, 5), SEEDS = effort(4, 3, 1) };

typedef struct sprite {
    float depth;
    uint32_t number;
} sprite;

typedef struct drawn {
    uint64_t sum; /* in the order of rows, so that it depends on the order */
    uint32_t count;
} drawn;

static struct {
    quern_world *world;
    quern_schedule *schedule;
    quern_jobs *jobs;
    quern_component sprite, small, large, shadow, flag;
    uint64_t frame, seed, sum;
    quern_entity seen[MOST];
    uint32_t counts[MOST / QUERN_ORDER_PIECE_ROWS + 2]; /* by piece */
    uint32_t seen_count;
} scene;

TestSuite(ordered, .timeout = 240);

static uint64_t add(uint64_t sum, uint32_t number)
{
    return sum * 1000003 + number;
}

/* Notes the rows by piece, adds them up, and records commands. */
static void draw(quern_context *context, const quern_view *view)
{
    quern_commands *commands = quern_context_commands(context);
    const sprite *sprites = quern_view_read(view, 0);
    drawn *part = quern_context_partial(context);
    const uint32_t count = view->count;
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t at = scene.counts[view->ordinal]++;
        scene.seen[view->ordinal * QUERN_ORDER_PIECE_ROWS + at] = view->entities[i];
        part->sum = add(part->sum, sprites[i].number);
        part->count++;
        if (sprites[i].number % 9 == scene.frame % 9) {
            quern_entity made;
            must(quern_commands_create_with(commands, &scene.shadow,
                                            (const void *[]){&(uint64_t){sprites[i].number}}, 1, &made));
        }
    }
}

static void end_draw(quern_context *context)
{
    scene.sum = scene.seen_count = 0;
    for (uint32_t i = 0; i < quern_context_partial_count(context); i++) {
        const drawn *part = quern_context_partial_at(context, i);
        cr_assert_eq(part->count, scene.counts[i]);
        for (uint32_t k = 0; k < part->count; k++)
            scene.sum *= 1000003;
        scene.sum += part->sum;
        scene.seen_count += part->count;
    }
}

static void move(quern_context *context, const quern_view *view)
{
    sprite *sprites = quern_view_write(view, 0);
    (void)context;
    for (uint32_t i = 0; i < view->count; i++) {
        random_source random = {sprites[i].number * 31 + scene.frame * 7919 + scene.seed};
        if (random_chance(&random, scene.frame % 3 == 0 ? 60 : 2))
            sprites[i].depth = (float)random_below(&random, 300) - 150;
    }
}

static void make(uint32_t number)
{
    random_source random = {number + scene.seed * 77};
    const sprite made = {(float)random_below(&random, 300), number};
    quern_component components[3] = {scene.sprite};
    uint32_t count = 1;
    if (random_chance(&random, 50)) components[count++] = scene.large;
    if (random_chance(&random, 30)) components[count++] = scene.flag;
    quern_entity entity;
    must(quern_entity_create_with(scene.world, components, (const void *[]){&made, NULL, NULL}, count,
                                  &entity));
}

static void open_scene(uint64_t seed, uint32_t thread_count, quern_schedule_def style)
{
    memset(&scene, 0, sizeof scene);
    scene.seed = seed;
    scene.world = setup_world();
    must(QUERN_COMPONENT_REGISTER_FIELDS(scene.world, &scene.sprite, sprite, depth, number));
    scene.small = setup_component(scene.world, "small", 4, 4);
    scene.large = setup_component(scene.world, "large", 40, 8);
    scene.shadow = setup_component(scene.world, "shadow", 8, 8);
    scene.flag = setup_tag(scene.world, "flag");
    scene.jobs = setup_jobs(thread_count);
    scene.schedule = setup_schedule_as(scene.world, style, 1);
    for (uint32_t i = 0; i < BEGIN; i++)
        make(i);
}

static void close_scene(void)
{
    assert_valid(scene.world);
    quern_schedule_destroy(scene.schedule);
    quern_jobs_destroy(scene.jobs);
    quern_world_destroy(scene.world);
}

typedef struct listed {
    sprite value;
    uint32_t at; /* in the order without order_by */
    quern_entity entity;
} listed;

static int by_depth(const void *a, const void *b)
{
    const listed *left = a, *right = b;
    if (left->value.depth != right->value.depth) return left->value.depth < right->value.depth ? -1 : 1;
    return (left->at > right->at) - (left->at < right->at);
}

static uint32_t list_sorted(listed *rows)
{
    uint32_t count = 0;
    quern_query *query = setup_query(scene.world, (quern_term[]){quern_term_read(scene.sprite)}, 1);
    quern_query_iterator it = quern_query_iterate(query);
    while (quern_query_next(&it))
        for (uint32_t i = 0, end = it.view.count; i < end; i++, count++)
            rows[count] = (listed){QUERN_COLUMN(&it.view, 0, const sprite)[i], count, it.view.entities[i]};
    quern_query_destroy(query);
    qsort(rows, count, sizeof *rows, by_depth);
    return count;
}

/* Runs a frame and compares what the system has seen with the rows as they are before its commands, sorted. */
static void run_frame(uint64_t frame)
{
    static listed rows[MOST];
    scene.frame = frame;
    memset(scene.counts, 0, sizeof scene.counts);
    must_run(scene.schedule, scene.jobs);
    const uint32_t count = list_sorted(rows);
    cr_assert_eq(scene.seen_count, count);
    uint64_t sum = 0;
    for (uint32_t i = 0; i < count; i++) {
        cr_assert(quern_entity_equal(rows[i].entity, scene.seen[i]), "seed %llu, frame %llu, row %u",
                  (unsigned long long)scene.seed, (unsigned long long)frame, i);
        sum = add(sum, rows[i].value.number);
    }
    cr_assert_eq(scene.sum, sum);
}

Test(ordered, rows_partials_and_commands_have_the_order_at_every_thread_count)
{
    static uint64_t hashes[FRAMES];
    for (uint64_t seed = 1; seed <= SEEDS; seed++)
        for (uint32_t i = 0; i < SETTING_COUNT; i++) {
            const frame_setting setting = frame_setting_at(i, (uint32_t)seed);
            open_scene(seed, setting.thread_count, schedule_style(setting.style));
            make_system(scene.schedule, "move", move, .terms = {quern_term_write(scene.sprite)});
            make_system(scene.schedule, "draw", draw, .end = end_draw, .partial_bytes = sizeof(drawn),
                        .terms = {quern_term_read(scene.sprite)},
                        .order_by = {.component = scene.sprite, .field = "depth"});
            for (uint64_t frame = 0; frame < FRAMES; frame++) {
                run_frame(frame);
                if (i == 0) hashes[frame] = quern_world_hash(scene.world);
                cr_assert_eq(quern_world_hash(scene.world), hashes[frame], "seed %llu, frame %llu",
                             (unsigned long long)seed, (unsigned long long)frame);
                for (uint32_t k = 0; k < 40; k++)
                    make(BEGIN + (uint32_t)frame * 40 + k);
            }
            close_scene();
        }
}

/* A system with a term to write gets the pieces one after another. What it writes moves no row of the same frame. */
static void sink(quern_context *context, const quern_view *view)
{
    sprite *sprites = quern_view_write(view, 0);
    for (uint32_t i = 0; i < view->count; i++) {
        scene.seen[scene.seen_count++] = view->entities[i];
        sprites[i].depth = -sprites[i].depth;
    }
    (void)context;
}

Test(ordered, a_writing_system_visits_the_rows_one_after_another)
{
    static listed rows[MOST];
    open_scene(5, 3, (quern_schedule_def){0});
    make_system(scene.schedule, "sink", sink, .terms = {quern_term_write(scene.sprite)},
                .order_by = {.component = scene.sprite, .field = "depth"});
    for (uint64_t frame = 0; frame < 3; frame++) {
        const uint32_t count = list_sorted(rows);
        scene.seen_count = 0;
        must_run(scene.schedule, scene.jobs);
        cr_assert_eq(scene.seen_count, count);
        for (uint32_t i = 0; i < count; i++)
            cr_assert(quern_entity_equal(rows[i].entity, scene.seen[i]), "frame %u, row %u",
                      (unsigned)frame, i);
    }
    close_scene();
}

static void count_rows(quern_context *context, const quern_view *view)
{
    drawn *part = quern_context_partial(context);
    for (uint32_t i = 0; i < view->count; i++)
        part->sum = add(part->sum, quern_entity_index(view->entities[i]));
    part->count += view->count;
}

static void end_count(quern_context *context)
{
    scene.seen_count = 0;
    for (uint32_t i = 0; i < quern_context_partial_count(context); i++)
        scene.seen_count += ((const drawn *)quern_context_partial_at(context, i))->count;
}

Test(ordered, rows_with_a_disabled_component_are_left_out)
{
    open_scene(6, 2, (quern_schedule_def){0});
    quern_component lamp = make_component(scene.world, .name = "lamp", .size_bytes = 4,
                                          .alignment_bytes = 4, .can_disable = true);
    static listed rows[MOST];
    const uint32_t count = list_sorted(rows);
    for (uint32_t i = 0; i < count; i++) {
        must(quern_entity_add(scene.world, rows[i].entity, lamp, NULL));
        must(quern_entity_set_component_enabled(scene.world, rows[i].entity, lamp, i % 3 != 0));
    }
    make_system(scene.schedule, "count", count_rows, .end = end_count, .partial_bytes = sizeof(drawn),
                .terms = {quern_term_read(scene.sprite), quern_term_read(lamp)},
                .order_by = {.component = scene.sprite, .field = "depth", .descending = true});
    must_run(scene.schedule, scene.jobs);
    cr_assert_eq(scene.seen_count, count - (count + 2) / 3);
    close_scene();
}

Test(ordered, descriptions_name_the_order_and_definitions_return_it)
{
    open_scene(7, 0, (quern_schedule_def){0});
    const quern_system system =
        make_system(scene.schedule, "count", count_rows, .partial_bytes = sizeof(drawn),
                    .terms = {quern_term_read(scene.sprite)},
                    .order_by = {.component = scene.sprite, .field = "depth"});
    quern_query_def ordered = {
        .terms = {quern_term_read(scene.sprite)},
        .order_by = {.component = scene.sprite, .field = "number", .descending = true}};
    quern_index *numbers;
    must(quern_index_create(
        scene.world, &(quern_index_def){.name = "numbers", .component = scene.sprite, .field = "number"},
        &numbers));
    make_system(scene.schedule, "look", NULL, .begin = idle_callback, .queries = {ordered},
                .indexes = {numbers});
    must_run(scene.schedule, scene.jobs);
    const char *text = described(scene.schedule);
    const char *expected[] = {
        "alone, in an order",
        "in the order of 'sprite' by 'depth': 2200 rows, sorted 1 time, last 2200 rows",
        "in the order of 'sprite' by 'number', descending: 2200 rows, sorted 1 time, last 2200 rows",
        "index 'numbers' of 'sprite' by 'number' (2200 values in 2200 rows)"};
    for (uint32_t i = 0; i < COUNT_OF(expected); i++)
        cr_assert(strstr(text, expected[i]) != NULL, "%s", text);
    quern_query_def def;
    must(quern_schedule_get_system_query(scene.schedule, system, &def));
    cr_assert_str_eq(def.order_by.field, "depth");
    quern_order_stats stats;
    quern_query *query;
    must(quern_query_create(scene.world, &ordered, &query));
    must(quern_query_get_order_stats(query, &stats));
    cr_assert_eq(stats.sort_count, 0u);
    for (uint32_t turn = 0; turn < 2; turn++) { /* the second one finds nothing to sort */
        quern_query_iterator rows = quern_query_iterate(query);
        while (quern_query_next(&rows))
            ;
    }
    must(quern_query_get_order_stats(query, &stats));
    cr_assert(stats.row_count == BEGIN && stats.sorted_row_count == BEGIN && stats.sort_count == 1 &&
              stats.all_sorted_count == 1);
    quern_query_destroy(query);
    quern_index_destroy(numbers);
    close_scene();
}

Test(ordered, refuses_what_does_not_go_with_an_order)
{
    open_scene(8, 0, (quern_schedule_def){0});
    const quern_order order = {.component = scene.sprite, .field = "depth"};
    const quern_system_def cases[] = {
        {.name = "a",
         .run = count_rows,
         .terms = {quern_term_read(scene.sprite)},
         .order_by = order,
         .reacts_to = QUERN_REACT_ADDED},
        {.name = "b",
         .run = count_rows,
         .terms = {quern_term_read(scene.sprite)},
         .order_by = order,
         .levels = quern_world_parent(scene.world)},
        {.name = "c", .begin = idle_callback, .order_by = order},
        {.name = "d", .run = count_rows, .terms = {quern_term_read(scene.small)}, .order_by = order},
        {.name = "e",
         .run = count_rows,
         .terms = {quern_term_changed(quern_term_read(scene.sprite))},
         .order_by = order},
        {.name = "f",
         .run = count_rows,
         .terms = {quern_term_read(scene.sprite)},
         .order_by = order,
         .flags = QUERN_SYSTEM_WHOLE_CHUNKS},
        {.name = "g",
         .run = count_rows,
         .terms = {quern_term_read(scene.sprite)},
         .order_by = {.component = scene.sprite, .field = "none"}}};
    for (uint32_t i = 0; i < COUNT_OF(cases); i++) {
        quern_system system;
        const quern_result result = quern_schedule_add_system(scene.schedule, &cases[i], &system);
        cr_assert_neq(result, QUERN_OK, "case %u", i);
        assert_message_has("order_by");
    }
    close_scene();
}

Test(ordered, a_system_is_not_called_without_memory_to_sort)
{
    uint32_t failed_count = 0;
    for (uint64_t n = 1, is_done = 0; is_done == 0; n++) {
        failing_allocator *memory = open_failing_world();
        memset(&scene, 0, sizeof scene);
        scene.world = world;
        must(QUERN_COMPONENT_REGISTER_FIELDS(world, &scene.sprite, sprite, depth, number));
        scene.large = setup_component(world, "large", 40, 8);
        scene.flag = setup_tag(world, "flag");
        for (uint32_t i = 0; i < 300; i++)
            make(i);
        scene.schedule = setup_schedule(world);
        make_system(scene.schedule, "count", count_rows, .end = end_count, .partial_bytes = sizeof(drawn),
                    .terms = {quern_term_read(scene.sprite)},
                    .order_by = {.component = scene.sprite, .field = "depth"});
        failing_allocator_fail_at(memory, n);
        const quern_result result = quern_schedule_run(scene.schedule, NULL, 0);
        failing_allocator_fail_at(memory, 0);
        is_done = result == QUERN_OK;
        failed_count += !is_done;
        if (!is_done) cr_assert_eq(result, QUERN_ERROR_OUT_OF_MEMORY, "%s", quern_error_message());
        if (!is_done) cr_assert_eq(scene.seen_count, 0u);
        must_run(scene.schedule, NULL);
        cr_assert_eq(scene.seen_count, 300u);
        quern_schedule_destroy(scene.schedule);
        close_valid_world();
    }
    cr_assert_gt(failed_count, 3u);
}
