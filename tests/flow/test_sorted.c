/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Test labels: threaded, optimised */
#include "tests/flow/flow_setup.h"
#include "tests/flow/sorted_scene.h"
#include "tests/support/effort.h"
#include "tests/support/failing_allocator.h"

/* Random programs with ordered queries and indexes, compared with a naive model after each step and in systems of frames. */

enum { ENTITIES = 300, STEPS = effort(160, 60, 30), SEEDS = effort(12, 4, 2), KEPT_FRAMES = 4 };

typedef struct program {
    random_source random;
    sorted_scene scene;
    quern_jobs *jobs;
    quern_schedule *schedule;
    quern_history *history;
    quern_entity entities[ENTITIES]; /* some are dead */
    uint32_t entity_count;
    uint64_t frame, saved_frame;
    bool can_disable;
    _Atomic uint32_t mismatch_count; /* in systems */
    uint32_t look_count;
} program;

static program it;

TestSuite(sorted, .timeout = 300);

/* --------------------------------------------------------------------------------------------- systems */

static uint32_t mix(quern_entity entity, uint64_t frame)
{
    random_source random = {quern_entity_index(entity) * 7919u + frame};
    return (uint32_t)random_next(&random);
}

static void write_some(quern_context *context, const quern_view *view)
{
    unit *units = QUERN_COLUMN(view, 0, unit);
    const uint64_t frame = quern_context_frame_index(context);
    for (uint32_t i = 0; i < view->count; i++) {
        random_source random = {mix(view->entities[i], frame)};
        if (random_chance(&random, 20)) units[i] = scene_unit(&random, &view->entities[i], 1);
    }
}

static void note(bool is_right)
{
    if (!is_right) atomic_fetch_add(&it.mismatch_count, 1);
}

/* Compares what the system finds with what it lists by a query without an order. */
static void look(quern_context *context, const quern_view *view)
{
    (void)view;
    scene_rows *expected = malloc(sizeof *expected), *found = malloc(sizeof *found);
    quern_query_iterator rows = quern_context_query(context, 0);
    rows_list(expected, &rows, 0);
    rows_sort_by_slot(expected);
    for (uint32_t i = 0; i < SCENE_INDEXES; i++)
        for (uint32_t k = 0; k < expected->count; k++) {
            const quern_entity *entities;
            const uint64_t value = scene_value(i, &expected->units[k]);
            const uint32_t count = quern_context_find(context, it.scene.indexes[i], value, &entities);
            note(rows_have(expected, i, value, entities, count));
        }
    rows = quern_context_query(context, 0);
    rows_list(expected, &rows, 0);
    rows_sort(expected, 0);
    rows = quern_context_query(context, 1);
    rows_list(found, &rows, 0);
    note(rows_equal(expected, found));
    rows = quern_context_query(context, 3);
    rows_list(expected, &rows, 0);
    rows_sort(expected, 2);
    rows = quern_context_query(context, 2);
    rows_list(found, &rows, 0);
    note(rows_equal(expected, found));
    it.look_count++;
    free(expected);
    free(found);
}

/* Reads an index and an ordered query in callbacks that run at the same time, and writes another component. */
static void look_together(quern_context *context, const quern_view *view)
{
    uint64_t *others = quern_view_write(view, 0);
    uint64_t team_count = 0;
    int32_t last = INT32_MAX;
    for (int64_t team = -128; team < 128; team++) {
        const quern_entity *entities;
        const uint32_t count = quern_context_find(context, it.scene.indexes[0], (uint64_t)team, &entities);
        for (uint32_t i = 0; i < count; i++) {
            const unit *found = quern_context_lookup(context, entities[i], it.scene.unit);
            note(found != NULL && found->team == team);
        }
        team_count += count;
    }
    quern_query_iterator rows = quern_context_query(context, 0);
    while (quern_query_next(&rows)) {
        const unit *units = quern_view_read(&rows.view, 1);
        for (uint32_t i = 0; i < rows.view.count; i++) {
            note(units[i].layer <= last);
            last = units[i].layer;
        }
    }
    for (uint32_t i = 0; i < view->count; i++)
        others[i] = team_count;
}

static void command_some(quern_context *context, const quern_view *view)
{
    const uint64_t frame = quern_context_frame_index(context);
    for (uint32_t i = 0; i < view->count; i++) {
        random_source random = {mix(view->entities[i], frame + 77)};
        const quern_entity entity = view->entities[i];
        quern_commands *commands = quern_context_commands(context);
        const unit value = scene_unit(&random, &entity, 1);
        const quern_component components[2] = {it.scene.unit, it.scene.other};
        quern_entity made;
        switch (random_below(&random, 30)) {
        case 0:
            (void)quern_commands_destroy(commands, entity);
            break;
        case 1:
            (void)quern_commands_create_with(commands, components, (const void *[]){&value, NULL},
                                             1 + random_below(&random, 2), &made);
            break;
        case 2:
            (void)quern_commands_set(commands, entity, it.scene.unit, &value);
            break;
        case 3:
            (void)quern_commands_remove(commands, entity, it.scene.unit);
            break;
        case 4:
            (void)quern_commands_set(commands, entity, it.scene.tag, NULL);
            break;
        case 5:
            (void)quern_commands_remove(commands, entity, it.scene.tag);
            break;
        default:
            break;
        }
    }
}

static void write_by_lookup(quern_context *context, const quern_view *view)
{
    for (uint32_t i = 0; i < view->count; i++) {
        if (mix(view->entities[i], quern_context_frame_index(context)) % 9 != 0) continue;
        unit *found = quern_context_lookup_write(context, view->entities[i], it.scene.unit);
        if (found != NULL) found->team = (int8_t)(found->team + 1);
    }
}

static void add_looks(const char *name, uint32_t phase, quern_query_def plain,
                      quern_query_def plain_compared)
{
    plain.terms[0].access = QUERN_ACCESS_READ;
    quern_query_def ordered = it.scene.orders[0];
    ordered.terms[0].access = QUERN_ACCESS_READ;
    const quern_system_def def = {
        .name = name,
        .phase = phase,
        .run = look,
        .queries = {plain, ordered, it.scene.orders[2], plain_compared},
        .indexes = {it.scene.indexes[0], it.scene.indexes[1], it.scene.indexes[2]}};
    must(quern_schedule_add_system(it.schedule, &def, NULL));
}

static void open_schedule(void)
{
    must(quern_schedule_create(
        it.scene.world,
        &(quern_schedule_def){.phases = {"first", "second"}, .shuffle_seed = random_below(&it.random, 3)},
        &it.schedule));
    quern_query_def plain = it.scene.orders[0], compared = it.scene.orders[2];
    plain.order_by = compared.order_by = (quern_order){.field = NULL};
    add_looks("before all", 0, plain, compared);
    must(quern_schedule_add_system(
        it.schedule,
        &(quern_system_def){.name = "write", .run = write_some, .terms = {quern_term_write(it.scene.unit)}},
        NULL));
    add_looks("after writes", 0, plain, compared);
    must(quern_schedule_add_system(it.schedule,
                                   &(quern_system_def){.name = "together",
                                                       .run = look_together,
                                                       .terms = {quern_term_write(it.scene.other)},
                                                       .queries = {it.scene.orders[1]},
                                                       .indexes = {it.scene.indexes[0]}},
                                   NULL));
    must(quern_schedule_add_system(
        it.schedule,
        &(quern_system_def){.name = "commands",
                            .run = command_some,
                            .terms = {quern_term_optional(it.scene.unit, QUERN_ACCESS_NONE)}},
        NULL));
    must(quern_schedule_add_system(it.schedule,
                                   &(quern_system_def){.name = "lookups",
                                                       .phase = 1,
                                                       .run = write_by_lookup,
                                                       .terms = {quern_term_read(it.scene.other)},
                                                       .write_lookups = {{.component = it.scene.unit}}},
                                   NULL));
    add_looks("after lookups", 1, plain, compared);
    must(quern_schedule_add_system(it.schedule,
                                   &(quern_system_def){.name = "write again",
                                                       .phase = 1,
                                                       .run = write_some,
                                                       .terms = {quern_term_write(it.scene.unit)}},
                                   NULL));
    add_looks("after all", 1, plain, compared);
}

/* ------------------------------------------------------------------------------------------- programs */

static quern_entity pick(void)
{
    return it.entities[random_below(&it.random, it.entity_count)];
}

static void create_some(void)
{
    const uint32_t count = 1 + random_below(&it.random, 40);
    for (uint32_t i = 0; i < count; i++) {
        const unit value = scene_unit(&it.random, it.entities, it.entity_count);
        const quern_component components[3] = {it.scene.unit, it.scene.other, it.scene.tag};
        const uint32_t first = random_chance(&it.random, 10), end = 1 + random_below(&it.random, 3);
        quern_entity entity;
        if (first >= end) continue;
        must(quern_entity_create_with(
            it.scene.world, components + first,
            (const void *[]){first == 0 ? (const void *)&value : NULL, NULL, NULL}, end - first, &entity));
        const uint32_t place =
            it.entity_count < ENTITIES ? it.entity_count++ : random_below(&it.random, ENTITIES);
        if (place + 1 != it.entity_count && quern_entity_is_alive(it.scene.world, it.entities[place]))
            must(quern_entity_destroy(it.scene.world, it.entities[place]));
        it.entities[place] = entity;
    }
}

static void change_one(void)
{
    const quern_entity entity = pick();
    quern_world *const in = it.scene.world;
    if (!quern_entity_is_alive(in, entity)) return;
    const unit value = scene_unit(&it.random, it.entities, it.entity_count);
    const bool has_unit = quern_entity_has(in, entity, it.scene.unit);
    unit *written;
    switch (random_below(&it.random, 9)) {
    case 0:
        must(quern_entity_destroy(in, entity));
        return;
    case 1:
        must(quern_entity_set(in, entity, it.scene.unit, &value));
        return;
    case 2:
        if (!has_unit) return;
        written = quern_entity_get(in, entity, it.scene.unit);
        *written = value;
        must(quern_entity_mark_changed(in, entity, it.scene.unit));
        return;
    case 3:
        if (has_unit) must(quern_entity_remove(in, entity, it.scene.unit));
        return;
    case 4:
        must(quern_entity_set(in, entity, it.scene.tag, NULL));
        return;
    case 5:
        if (quern_entity_has(in, entity, it.scene.tag)) must(quern_entity_remove(in, entity, it.scene.tag));
        return;
    case 6:
        must(quern_entity_set_enabled(in, entity, random_chance(&it.random, 50)));
        return;
    case 7:
        if (it.can_disable && has_unit)
            must(quern_entity_set_component_enabled(in, entity, it.scene.unit,
                                                    random_chance(&it.random, 50)));
        return;
    default:
        must(quern_entity_set(in, entity, it.scene.other, &(uint64_t){1}));
        return;
    }
}

static void write_view(quern_context *context, const quern_view *view)
{
    (void)context;
    unit *units = QUERN_COLUMN(view, 0, unit);
    for (uint32_t i = 0; i < view->count; i++)
        if (mix(view->entities[i], it.frame) % 4 == 0) units[i].layer ^= 1;
}

static void write_ordered(void)
{
    quern_query_iterator rows = quern_query_iterate(it.scene.ordered[0]);
    while (quern_query_next(&rows))
        if (random_chance(&it.random, 10)) {
            unit *units = QUERN_COLUMN(&rows.view, 0, unit);
            units[0] = scene_unit(&it.random, it.entities, it.entity_count);
        }
    must(rows.result);
}

static void load_copy(void)
{
    quern_archive *archive;
    quern_byte_buffer bytes = {0};
    if (stats_of_world(it.scene.world).entity_count > 2 * ENTITIES) return;
    must(quern_archive_create(it.scene.world, &archive));
    for (uint32_t i = 0; i < 20; i++) {
        const quern_entity entity = pick();
        if (quern_entity_is_alive(it.scene.world, entity)) must(quern_archive_append(archive, &entity, 1));
    }
    must(quern_archive_save(archive, quern_sink_bytes(&bytes), NULL));
    must(quern_world_load(it.scene.world, quern_source_bytes(bytes.bytes, bytes.size_bytes), NULL, NULL));
    quern_byte_buffer_release(&bytes);
    quern_archive_destroy(archive);
}

static void run_frame(void)
{
    const uint32_t looks = it.look_count;
    must(quern_schedule_run(it.schedule, it.jobs, 0.1));
    cr_assert(it.look_count == looks + 4);
    cr_assert_eq(atomic_load(&it.mismatch_count), 0u, "systems found something else");
}

/* Returns what was done. */
static const char *step(void)
{
    switch (random_below(&it.random, 16)) {
    case 0:
    case 1:
        create_some();
        return "create";
    case 2:
    case 3:
    case 4:
        for (uint32_t i = random_below(&it.random, 12); i > 0; i--)
            change_one();
        return "change";
    case 5:
        write_ordered();
        return "write in order";
    case 6:
        must(quern_query_parallel_for(it.scene.plain[0], it.jobs, write_view, NULL));
        return "write in parallel";
    case 7:
        if (random_chance(&it.random, 30) && !it.can_disable)
            must(quern_entity_destroy_matching(it.scene.plain[1], NULL));
        return "destroy all";
    case 8:
        must(quern_world_trim(it.scene.world));
        return "trim";
    case 9:
        must(quern_world_remove_empty_archetypes(it.scene.world, NULL));
        return "remove archetypes";
    case 10:
        load_copy();
        return "load";
    case 11:
        it.saved_frame = ++it.frame;
        must(quern_history_save(it.history, it.frame, it.jobs));
        return "save";
    case 12:
        if (it.saved_frame == 0) return "nothing";
        must(quern_history_restore(it.history, it.saved_frame, it.jobs));
        return "restore";
    default:
        it.frame++;
        run_frame();
        return "frame";
    }
}

static uint64_t run_program(uint64_t seed, uint32_t thread_count)
{
    it = (program){.random = {seed}, .jobs = setup_jobs(thread_count), .can_disable = seed % 2 == 0};
    scene_open(&it.scene, setup_world(), it.can_disable);
    open_schedule();
    must(quern_history_create(it.scene.world,
                              &(quern_history_def){.schedules = {it.schedule}, .frame_count = KEPT_FRAMES},
                              &it.history));
    create_some();
    for (uint32_t i = 0; i < STEPS; i++) {
        char when[96];
        const char *what = step();
        snprintf(when, sizeof when, "seed %llu, %u threads, step %u, %s", (unsigned long long)seed,
                 thread_count, i, what);
        if (random_chance(&it.random, 70)) scene_check(&it.scene, when);
    }
    scene_check(&it.scene, "at the end");
    assert_valid(it.scene.world);
    const uint64_t hash = quern_world_hash(it.scene.world);
    quern_history_destroy(it.history);
    quern_schedule_destroy(it.schedule);
    scene_close(&it.scene);
    quern_world_destroy(it.scene.world);
    quern_jobs_destroy(it.jobs);
    return hash;
}

Test(sorted, random_programs_find_what_the_model_finds)
{
    static const uint32_t threads[] = {1, 2, 3, 8};
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        uint64_t first = 0;
        for (uint32_t i = 0; i < 4; i++) {
            const uint64_t hash = run_program(seed, threads[i]);
            if (i == 0) first = hash;
            cr_assert_eq(hash, first, "seed %llu: %u threads have another world", (unsigned long long)seed,
                         threads[i]);
        }
    }
}
