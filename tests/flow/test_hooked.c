/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Test labels: threaded */
/* A random program with entity hooks: calls, commands of systems and of the world, prefabs, trees, histories, deltas and
 * archives. After each step, exactly the entities with a component must have an object outside of the world, with the last
 * value. The calls of hooks, and their order, must be the same at every thread count. */
#include "sched/frame/schedule_internal.h"
#include "tests/flow/hooked_scene.h"
#include "tests/support/effort.h"
#include "tests/support/failing_allocator.h"
#include "tests/support/random.h"

#include <string.h>

enum { SEEDS = effort(40, 8, 4), FRAMES = 14, MOST = 600 };

typedef struct program {
    hooked_scene scene;
    random_source random;
    quern_schedule *schedule;
    quern_history *history;
    quern_prefab prefab;
    quern_query *marked, *plains;
    quern_entity known[HOOKED_SLOTS];
    uint32_t known_count;
    uint64_t frame, saved_frame;
    bool has_saved;
} program;

static program it; /* with the objects; too large for a stack */

/* Lists the living entities. */
static void learn(void)
{
    it.known_count = 0;
    const quern_component off = quern_world_disabled_tag(it.scene.world);
    quern_query *all =
        setup_query(it.scene.world, (const quern_term[]){quern_term_optional(off, QUERN_ACCESS_NONE)}, 1);
    for (quern_query_iterator walk = quern_query_iterate(all); quern_query_next(&walk);)
        for (uint32_t i = 0; i < walk.view.count; i++)
            it.known[it.known_count++] = walk.view.entities[i];
    quern_query_destroy(all);
}

static quern_entity any(void)
{
    return it.known_count > 0 ? it.known[random_below(&it.random, it.known_count)] : quern_entity_null();
}

static quern_component component_at(uint32_t i)
{
    return i < HOOKED_KINDS ? it.scene.kinds[i].component : it.scene.plain;
}

/* A new value of a component in `memory`, or NULL. end_value releases it. */
static const void *make_value(uint32_t i, uint64_t number, tracked *memory)
{
    if (i == 1) return NULL;
    if (i == 2) {
        tracked_construct(memory, number, &it.scene.counts);
        return memory;
    }
    memcpy(memory, &number, sizeof number);
    return memory;
}

static void end_value(uint32_t i, tracked *memory)
{
    if (i == 2) tracked_destroy(memory, &it.scene.counts);
}

/* A change of one entity, by a call. Calls that are refused change nothing. */
static void change_one(uint32_t kind, quern_entity entity, uint32_t i, uint64_t number)
{
    quern_world *world = it.scene.world;
    tracked memory = {0};
    bool ignored;
    void *value;
    const void *given = make_value(i, number, &memory);
    if (kind == 0) (void)quern_entity_add(world, entity, component_at(i), number % 3 == 0 ? NULL : given);
    if (kind == 1) (void)quern_entity_set(world, entity, component_at(i), given);
    if (kind == 2) (void)quern_entity_remove(world, entity, component_at(i));
    if (kind == 3) (void)quern_entity_destroy(world, entity);
    if (kind == 4) (void)quern_entity_ensure(world, entity, component_at(i), &value, &ignored);
    if (kind == 5) (void)quern_entity_clear(world, entity);
    if (kind == 6) (void)quern_entity_clone(world, entity, NULL, NULL);
    if (kind == 7 && i != 1)
        (void)quern_entity_set_if_different(world, entity, component_at(i), given, &ignored);
    if (kind == 8) (void)quern_entity_relate(world, entity, it.scene.parent, any());
    if (kind == 9) (void)quern_entity_unrelate(world, entity, it.scene.parent);
    if (kind == 10) (void)quern_entity_set_enabled(world, entity, number % 2 == 0);
    if (kind == 11 && i == 0) (void)quern_entity_set_text(world, entity, "body.value", "77");
    end_value(i, &memory);
}

/* A change of many entities, by a call. */
static void change_many(uint32_t kind)
{
    quern_world *world = it.scene.world;
    const quern_component list[] = {component_at(0), component_at(1), component_at(3), component_at(2)};
    const uint32_t count = 1 + random_below(&it.random, 20);
    uint64_t numbers[20];
    quern_entity entities[20];
    for (uint32_t i = 0; i < count; i++) {
        numbers[i] = random_below(&it.random, 1000);
        entities[i] = any();
    }
    const void *columns[] = {numbers, NULL, numbers, NULL};
    if (kind == 0)
        must(quern_entity_create_many(world, list, columns, 1 + random_below(&it.random, 4), count, NULL));
    if (kind == 1) (void)quern_entity_destroy_many(world, entities, count / 4 + 1);
    if (kind == 2) must(quern_entity_add_matching(it.plains, component_at(0), numbers, NULL));
    if (kind == 3) must(quern_entity_remove_matching(it.marked, component_at(count % 3), NULL));
    if (kind == 4 && count < 4) must(quern_entity_destroy_matching(it.marked, NULL));
    if (kind == 5) must(quern_prefab_spawn_many(world, it.prefab, count / 4 + 1, NULL, NULL, NULL));
    for (uint32_t i = 0; i < count && kind == 6; i++) {
        const void *values[] = {&numbers[i], NULL, &numbers[i], &entities[i]};
        const quern_component related[] = {list[0], list[1], list[2], it.scene.parent_component};
        (void)quern_entity_create_with(world, related, values,
                                       quern_entity_is_alive(world, entities[i]) ? 4 : 1 + count % 3, NULL);
    }
}

/* Records a random command on an entity of a view, or a create. */
static void record(quern_commands *commands, quern_entity entity, uint64_t word)
{
    const uint32_t i = word % 4;
    tracked memory = {0};
    quern_entity made = entity;
    const void *given = make_value(i, word % 1000, &memory);
    switch (word / 8 % 16) {
    case 0:
        (void)quern_commands_destroy(commands, entity);
        break;
    case 1:
    case 2:
        must(quern_commands_remove(commands, entity, component_at(i)));
        break;
    case 3:
    case 4:
        must(quern_commands_add(commands, entity, component_at(i), NULL));
        break;
    case 5:
        must(quern_commands_spawn(commands, it.prefab, NULL, &made));
        if (word % 3 == 0)
            must(quern_commands_set(commands, made, component_at(0), &(uint64_t){word % 77}));
        if (word % 5 == 0) must(quern_commands_remove(commands, made, component_at(0)));
        if (word % 7 == 0) must(quern_commands_destroy(commands, made));
        break;
    case 6: {
        const quern_component both[] = {component_at(0), component_at(1)};
        must(quern_commands_create_with(commands, both, (const void *[]){&(uint64_t){word % 99}, NULL}, 2,
                                        &made));
        if (word % 3 == 0) must(quern_commands_relate(commands, made, it.scene.parent, entity));
        if (word % 5 == 0) must(quern_commands_remove(commands, made, component_at(0)));
        if (word % 7 == 0) must(quern_commands_destroy(commands, made));
        break;
    }
    case 7:
        must(quern_commands_unrelate(commands, entity, it.scene.parent));
        break;
    case 8: /* both: the object stays */
        must(quern_commands_remove(commands, entity, component_at(i)));
        must(quern_commands_add(commands, entity, component_at(i), NULL));
        break;
    default:
        must(quern_commands_set(commands, entity, component_at(i), given));
        break;
    }
    end_value(i, &memory);
}

static uint64_t word_of(quern_entity entity, uint64_t salt)
{
    random_source random = {(uint64_t)quern_entity_index(entity) << 32 | (it.frame << 8) | salt};
    return random_next(&random) >> 8;
}

/* In some frames only sets, only destroys, or one command: the fast paths of sync points. */
static void act(quern_context *context, const quern_view *view)
{
    quern_commands *commands = quern_context_commands(context);
    const uint32_t style = (uint32_t)(it.frame % 5);
    for (uint32_t i = 0; i < view->count; i++) {
        const quern_entity entity = view->entities[i];
        const uint64_t word = word_of(entity, 1);
        if (style == 0 && word % 3 == 0 && view->columns[0].present)
            must(quern_commands_set(commands, entity, component_at(0), &(uint64_t){word % 50}));
        if (style == 1 && word % 5 == 0) must(quern_commands_destroy(commands, entity));
        if (style == 1 && word % 7 == 0) record(commands, entity, 8 * 6);
        if (style == 2 && word % 40 == 0) record(commands, entity, word);
        if (style >= 3 && word % 3 == 0) record(commands, entity, word);
    }
    if (style == 4 && view->columns[0].present && word_of(view->entities[0], 2) % 4 == 0)
        must(quern_commands_remove_view(commands, view, NULL, component_at(0)));
}

static void open_program(uint64_t seed, uint32_t threads, const quern_allocator *allocator)
{
    memset(&it, 0, sizeof it);
    it.random = (random_source){seed};
    hooked_open(&it.scene, allocator);
    quern_world *world = it.scene.world;
    it.schedule = setup_phases(world, 2);
    const quern_system_def def = {
        .name = "act", .run = act, .terms = {quern_term_optional(component_at(0), QUERN_ACCESS_READ)}};
    setup_system(it.schedule, &def);
    if (threads > 0) it.schedule->playback.parallel_command_count = 1;
    it.marked = setup_query(world, (const quern_term[]){quern_term_with(component_at(1))}, 1);
    it.plains = setup_query(world, (const quern_term[]){quern_term_with(component_at(3))}, 1);
    const quern_component both[] = {component_at(0), component_at(1)};
    quern_entity root, part;
    must(quern_entity_create_with(world, both, (const void *[]){&(uint64_t){5}, NULL}, 2, &root));
    must(quern_entity_create_with(world, &both[0], NULL, 1, &part));
    must(quern_entity_relate(world, part, it.scene.parent, root));
    must(quern_prefab_capture(world, root, &it.prefab));
    must(quern_history_create(world, &(quern_history_def){.schedules = {it.schedule}}, &it.history));
}

static void close_program(void)
{
    quern_history_destroy(it.history);
    quern_schedule_destroy(it.schedule);
    quern_query_destroy(it.marked);
    quern_query_destroy(it.plains);
    hooked_close(&it.scene);
}

static void play_calls(void)
{
    quern_world *world = it.scene.world;
    for (uint32_t i = 0; i < 12; i++) {
        learn();
        if (random_chance(&it.random, 25) && it.known_count < MOST)
            change_many(random_below(&it.random, 7));
        else if (it.known_count < 2 * MOST || random_chance(&it.random, 50))
            change_one(random_below(&it.random, 12), any(), random_below(&it.random, 4),
                       random_below(&it.random, 1000));
        hooked_check(&it.scene);
    }
    learn();
    for (uint32_t i = 0; i < 3 && it.known_count > 0 && random_chance(&it.random, 60); i++)
        record(quern_world_commands(world), any(), random_next(&it.random) >> 8);
    if (random_chance(&it.random, 50)) {
        must(quern_world_flush(world));
        hooked_check(&it.scene);
    }
}

static void play_history(quern_jobs *jobs)
{
    if (it.has_saved && random_chance(&it.random, 30)) {
        must(quern_history_restore(it.history, it.saved_frame, jobs));
        hooked_check(&it.scene);
    } else if (random_chance(&it.random, 50)) {
        it.saved_frame = ++it.frame;
        it.has_saved = true;
        must(quern_history_save(it.history, it.saved_frame, jobs));
    }
}

static hooked_scene copy; /* another world, which reads what the program writes */

static void load_copy(bool is_trees)
{
    quern_byte_buffer bytes = {0};
    const quern_save_def def = {.leave_out = {component_at(2)}};
    must(quern_world_save(it.scene.world, quern_sink_bytes(&bytes), &def));
    hooked_open(&copy, NULL);
    for (uint32_t i = 0; i <= (uint32_t)is_trees; i++) {
        must(quern_world_load(copy.world, quern_source_bytes(bytes.bytes, bytes.size_bytes), NULL, NULL));
        hooked_check(&copy);
        cr_assert_eq(copy.kinds[0].count, (i + 1) * it.scene.kinds[0].count);
    }
    quern_byte_buffer_release(&bytes);
    hooked_close(&copy);
}

static uint64_t play(uint64_t seed, uint32_t threads)
{
    quern_jobs *jobs = setup_jobs(threads);
    open_program(seed, threads, NULL);
    for (uint32_t i = 0; i < FRAMES; i++) {
        play_calls();
        it.frame++;
        must_run(it.schedule, jobs);
        hooked_check(&it.scene);
        play_history(jobs);
    }
    if (threads == 0) load_copy(seed % 2 == 0);
    const uint64_t log = it.scene.log;
    cr_assert_gt(it.scene.calls, 100u);
    close_program();
    quern_jobs_destroy(jobs);
    return log;
}

Test(hooked, each_entity_has_one_object_at_every_thread_count)
{
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        const uint64_t expected = play(seed, 0);
        for (uint32_t i = 1; i < POOL_COUNT; i++)
            cr_assert_eq(play(seed, pool_threads[i]), expected, "seed %llu: other calls on %u threads",
                         (unsigned long long)seed, pool_threads[i]);
    }
}

/* Repeats what failed until it succeeds. Nothing may happen outside of the world when a call fails. */
Test(hooked, failed_calls_call_no_hooks)
{
    runs_on_one_thread();
    for (uint64_t seed = 1; seed <= effort(20, 4, 1); seed++) {
        failing_allocator *failing = failing_allocator_create();
        const quern_allocator allocator = failing_allocator_interface(failing);
        open_program(seed, 0, &allocator);
        for (uint32_t i = 0; i < FRAMES; i++) {
            play_calls();
            it.frame++;
            failing_allocator_fail_often(failing, 30, seed + i);
            (void)quern_schedule_run(it.schedule, NULL, 0); /* if it fails, commands wait */
            failing_allocator_heal(failing);
            hooked_check(&it.scene);
            must(quern_world_flush(it.scene.world));
            hooked_check(&it.scene);
            uint64_t calls = it.scene.calls;
            failing_allocator_fail_often(failing, 60, seed + i);
            const quern_entity entity = any();
            const quern_result result = quern_entity_is_alive(it.scene.world, entity)
                                            ? quern_entity_destroy(it.scene.world, entity)
                                            : QUERN_OK;
            failing_allocator_heal(failing);
            if (result != QUERN_OK) cr_assert_eq(it.scene.calls, calls);
            hooked_check(&it.scene);
            if (it.has_saved) {
                calls = it.scene.calls;
                failing_allocator_fail_often(failing, 20, seed + i);
                if (quern_history_restore(it.history, it.saved_frame, NULL) != QUERN_OK)
                    cr_assert_eq(it.scene.calls, calls);
                failing_allocator_heal(failing);
                hooked_check(&it.scene);
            }
            it.saved_frame = ++it.frame;
            it.has_saved = quern_history_save(it.history, it.saved_frame, NULL) == QUERN_OK;
        }
        close_program();
        failing_allocator_close(failing);
    }
}
