/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Test labels: threaded */
#include "tests/support/failing_allocator.h"
#include "tests/support/random.h"
#include "tests/support/setup.h"
#include "tests/support/tracked.h"

#include <string.h>

/* Prefabs spawned by command must have the same result in frames at every thread count, and the same as
 * immediate spawns. */

enum { SPAWNERS = 400, FRAMES = 6, MEMBERS = 4 };

typedef struct links {
    quern_entity first, second;
} links;

typedef struct scene {
    quern_world *world;
    quern_component number, marked, pair, value, spawner, barrel, disabled;
    quern_relation parent, likes;
    quern_prefab tower;
    tracked_counts counts;
    uint32_t frame;
} scene;

static quern_entity make(const scene *in, uint64_t number)
{
    quern_entity entity;
    must(quern_entity_create_with(in->world, &in->number, (const void *[]){&number}, 1, &entity));
    return entity;
}

/* Captures a prefab: a base (number 1) with a gun (2) and a lamp (3); the gun has a muzzle (4). The base
 * likes the muzzle, which is its part in the slot `barrel`. The gun contains handles of muzzle and base. The lamp has a
 * value with hooks. */
static void capture_tower(scene *in)
{
    quern_entity members[MEMBERS];
    for (uint32_t i = 0; i < MEMBERS; i++)
        members[i] = make(in, 1 + i);
    must(quern_entity_relate(in->world, members[1], in->parent, members[0]));
    must(quern_entity_relate(in->world, members[2], in->parent, members[0]));
    must(quern_entity_relate(in->world, members[3], in->parent, members[1]));
    must(quern_entity_relate(in->world, members[0], in->likes, members[3]));
    must(quern_entity_set(in->world, members[0], in->barrel, &members[3]));
    must(quern_entity_set(in->world, members[1], in->pair, &(links){members[3], members[0]}));
    tracked value;
    tracked_construct(&value, 9, &in->counts);
    must(quern_entity_set(in->world, members[2], in->value, &value));
    tracked_destroy(&value, &in->counts);
    must(quern_prefab_capture(in->world, members[0], &in->tower));
    must(quern_entity_destroy(in->world, members[0]));
}

static void open_scene(scene *in, const quern_world_def *def)
{
    *in = (scene){0};
    must(quern_world_create(def, &in->world));
    in->number = setup_component(in->world, "number", 8, 8);
    in->spawner = setup_component(in->world, "spawner", 8, 8);
    in->marked = setup_tag(in->world, "marked");
    in->value = tracked_register(in->world, "value", &in->counts);
    in->pair = make_component(in->world, .name = "pair", .size_bytes = sizeof(links), .alignment_bytes = 8,
                              .fields = {{"first", QUERN_FIELD_ENTITY, 0, .count = 1},
                                         {"second", QUERN_FIELD_ENTITY, 8, .count = 1}});
    must(quern_prefab_slot_register(in->world, "barrel", &in->barrel));
    in->disabled = quern_world_disabled_tag(in->world);
    in->parent = quern_world_parent(in->world);
    in->likes = make_relation(in->world, .name = "likes", .on_target_destroyed = QUERN_TARGET_UNRELATES);
    capture_tower(in);
}

static void close_scene(scene *of)
{
    assert_valid(of->world);
    quern_world_destroy(of->world);
    cr_assert_eq(of->counts.broken_count, 0u, "hooks were called on what was no live value");
    cr_assert_eq(tracked_live_count(&of->counts), 0u, "values were not destroyed, or twice");
}

static void expect_same(quern_entity a, quern_entity b)
{
    cr_assert_eq(a.bits, b.bits, "%llx and %llx", (unsigned long long)a.bits, (unsigned long long)b.bits);
}

/* ----------------------------------------------------------------------------------- between frames */

/* Asserts that the members below the root are those of the tower. */
static void expect_tower(const scene *in, quern_entity root, uint64_t number)
{
    quern_entity children[3];
    cr_assert_eq(quern_entity_list_sources(in->world, root, in->parent, children, 3), 2u);
    const quern_entity muzzle = quern_entity_first_source(in->world, children[0], in->parent);
    const quern_entity members[] = {root, children[0], children[1], muzzle};
    for (uint32_t i = 0; i < MEMBERS; i++)
        cr_assert_eq(*(const uint64_t *)quern_entity_get(in->world, members[i], in->number),
                     i == 0 ? number : 1 + i);
    const links *pair = quern_entity_get(in->world, children[0], in->pair);
    expect_same(pair->first, muzzle);
    expect_same(pair->second, root);
    expect_same(quern_entity_target(in->world, root, in->likes), muzzle);
    const tracked *value = quern_entity_get(in->world, children[1], in->value);
    cr_assert(tracked_is_live(value));
    cr_assert_eq(value->payload, 9u);
}

static quern_entity only_root(const scene *in)
{
    const quern_term terms[] = {quern_term_with(in->number),
                                quern_term_without(quern_relation_component(in->parent))};
    quern_query *query = setup_query(in->world, terms, 2);
    quern_query_iterator it = quern_query_iterate(query);
    quern_entity found = quern_entity_null();
    while (quern_query_next(&it)) {
        cr_assert(it.view.count == 1 && found.bits == 0);
        found = it.view.entities[0];
    }
    quern_query_destroy(query);
    return found;
}

Test(prefab_frames, command_spawns_the_same_tree_as_the_call)
{
    scene it;
    open_scene(&it, NULL);
    quern_commands *commands = quern_world_commands(it.world);
    quern_entity root;
    must(quern_commands_spawn(commands, it.tower, NULL, &root));
    cr_assert(quern_entity_is_provisional(root));
    must(quern_prefab_destroy(it.world, it.tower)); /* recorded commands do not need the prefab any more */
    must(quern_world_flush(it.world));
    expect_tower(&it, only_root(&it), 1);
    close_scene(&it);
}

Test(prefab_frames, later_commands_reach_root_and_members)
{
    scene it;
    open_scene(&it, NULL);
    quern_commands *commands = quern_world_commands(it.world);
    quern_entity roots[4];
    const uint64_t number = 77;
    for (uint32_t i = 0; i < 4; i++)
        must(quern_commands_spawn(commands, it.tower,
                                  &(quern_spawn_def){.overrides = {{it.number, 0, &number}}}, &roots[i]));
    const quern_entity lamp = quern_commands_spawned_member(commands, it.tower, roots[0], 2);
    const quern_entity muzzle = quern_commands_spawned_member(commands, it.tower, roots[0], 3);
    must(quern_commands_destroy(commands, roots[1]));
    must(quern_commands_destroy(commands, quern_commands_spawned_member(commands, it.tower, roots[2], 1)));
    must(quern_commands_add(commands, muzzle, it.marked, NULL));
    must(quern_commands_relate(commands, roots[2], it.parent, lamp));
    must(quern_commands_relate(commands, roots[3], it.parent, muzzle));
    must(quern_commands_spawn(commands, it.tower, &(quern_spawn_def){.parent = roots[3]}, NULL));
    must(quern_world_flush(it.world));
    assert_valid(it.world);
    const quern_entity root = only_root(&it);
    expect_tower(&it, root, 77);
    cr_assert_eq(stats_of_world(it.world).entity_count, 4u + 2u + 4u + 4u);
    const quern_entity gun = quern_entity_first_source(it.world, root, it.parent);
    const quern_entity below = quern_entity_first_source(it.world, gun, it.parent);
    cr_assert(quern_entity_has(it.world, below, it.marked));
    const quern_entity third = quern_entity_first_source(it.world, below, it.parent);
    cr_assert_eq(*(const uint64_t *)quern_entity_get(it.world, third, it.number), 77u);
    cr_assert_eq(quern_entity_source_count(it.world, third, it.parent), 3u, "its own two, and one spawned");
    close_scene(&it);
}

Test(prefab_frames, bad_commands_are_refused)
{
    scene it, other;
    open_scene(&it, NULL);
    open_scene(&other, NULL);
    captured_reports reports = {0};
    capture_reports(&reports);
    quern_commands *commands = quern_world_commands(it.world);
    quern_prefab gone;
    quern_entity root, dead = make(&it, 1), alive = make(&it, 2);
    must(quern_entity_destroy(it.world, dead));
    must(quern_prefab_capture(it.world, alive, &gone));
    must(quern_prefab_destroy(it.world, gone));
    const uint64_t number = 1;
    quern_spawn_def def = {.overrides = {{it.number, 4, &number}}};
    must_refuse(NULL_ARGUMENT, it.world, quern_commands_spawn(NULL, it.tower, NULL, NULL));
    must_refuse(UNKNOWN_PREFAB, it.world, quern_commands_spawn(commands, gone, NULL, NULL));
    must_refuse(UNKNOWN_PREFAB, it.world, quern_commands_spawn(commands, other.tower, NULL, NULL));
    must_refuse(INVALID_ARGUMENT, it.world, quern_commands_spawn(commands, it.tower, &def, NULL));
    def = (quern_spawn_def){.overrides = {{it.value, 1, &number}}};
    must_refuse(COMPONENT_ABSENT, it.world, quern_commands_spawn(commands, it.tower, &def, NULL));
    def = (quern_spawn_def){.parent = dead};
    must_refuse(STALE_ENTITY, it.world, quern_commands_spawn(commands, it.tower, &def, NULL));
    def = (quern_spawn_def){.fill_components = {it.number}};
    must_refuse(INVALID_ARGUMENT, it.world, quern_commands_spawn(commands, it.tower, &def, NULL));
    const links strange = {entity_provisional(5), alive};
    def = (quern_spawn_def){.overrides = {{it.pair, 1, &strange}}};
    must_refuse(PROVISIONAL_ENTITY, it.world, quern_commands_spawn(commands, it.tower, &def, NULL));
    must(quern_commands_spawn(commands, it.tower, NULL, &root));
    assert_refused_value(it.world, quern_commands_spawned_member(commands, it.tower, root, 4).bits);
    assert_refused_value(it.world, quern_commands_spawned_member(commands, gone, root, 0).bits);
    assert_refused_value(it.world, quern_commands_spawned_member(commands, it.tower, alive, 0).bits);
    must(quern_world_flush(it.world));
    cr_assert_eq(stats_of_world(it.world).entity_count, 5u, "nothing came of what was refused");
    close_scene(&it);
    close_scene(&other);
}

Test(prefab_frames, command_spawns_a_large_prefab)
{
    scene it;
    open_scene(&it, NULL);
    const quern_entity root = make(&it, 0);
    quern_entity made[1000] = {root};
    for (uint32_t i = 1; i < 1000; i++) {
        made[i] = make(&it, i);
        must(quern_entity_relate(it.world, made[i], it.parent, made[(i - 1) / 3]));
    }
    quern_prefab prefab;
    must(quern_prefab_capture(it.world, root, &prefab));
    must(quern_prefab_spawn(it.world, prefab, NULL, NULL));
    quern_commands *commands = quern_world_commands(it.world);
    for (uint32_t i = 0; i < 3; i++)
        must(quern_commands_spawn(commands, prefab, NULL, NULL));
    must(quern_world_flush(it.world));
    cr_assert_eq(stats_of_world(it.world).entity_count, 5000u);
    close_scene(&it);
}

/* ------------------------------------------------------------------------------------------- in frames */

/* The action of a spawner in a frame, which depends only on its number and the frame. */
typedef enum act {
    ACT_PLAIN,
    ACT_BELOW,
    ACT_DESTROY_ROOT,
    ACT_DESTROY_GUN,
    ACT_MARK,
    ACT_MOVE,
    ACT_DISABLE,        /* the tree */
    ACT_DISABLE_PARTLY, /* the tree, then the gun by itself; the tree is enabled again */
    ACT_ADOPT,          /* the muzzle is related to a disabled tree, which is enabled */
    ACT_COUNT
} act;

typedef struct decision {
    act act;
    uint64_t number; /* number of the root */
} decision;

static decision decide(uint64_t spawner, uint32_t frame)
{
    random_source random = {spawner * 1000 + frame};
    decision made = {.number = 1000 + spawner * FRAMES + frame};
    made.act = (act)random_below(&random, ACT_COUNT);
    return made;
}

static void spawn_by_command(const scene *in, quern_commands *commands, quern_entity self, uint64_t spawner)
{
    const decision what = decide(spawner, in->frame);
    const quern_spawn_def def = {.parent = what.act == ACT_BELOW ? self : quern_entity_null(),
                                 .overrides = {{in->number, 0, &what.number}}};
    quern_entity root;
    must(quern_commands_spawn(commands, in->tower, &def, &root));
    const quern_entity gun = quern_commands_spawned_member(commands, in->tower, root, 1);
    const quern_entity muzzle = quern_commands_spawned_member(
        commands, in->tower, root, quern_prefab_find_slot(in->world, in->tower, in->barrel));
    if (what.act == ACT_DESTROY_ROOT) must(quern_commands_destroy(commands, root));
    if (what.act == ACT_DESTROY_GUN) must(quern_commands_destroy(commands, gun));
    if (what.act == ACT_MARK) must(quern_commands_add(commands, muzzle, in->marked, NULL));
    if (what.act == ACT_MOVE) must(quern_commands_relate(commands, gun, in->parent, self));
    if (what.act >= ACT_DISABLE) must(quern_commands_set_enabled(commands, root, false));
    if (what.act == ACT_DISABLE_PARTLY) must(quern_commands_set_enabled(commands, gun, false));
    if (what.act == ACT_ADOPT) must(quern_commands_relate(commands, muzzle, in->parent, root));
    if (what.act > ACT_DISABLE) must(quern_commands_set_enabled(commands, root, true));
}

static void run_spawners(quern_context *context, const quern_view *view)
{
    const scene *in = quern_context_user_data(context);
    quern_commands *commands = quern_context_commands(context);
    const uint64_t *spawners = quern_view_read(view, 0);
    for (uint32_t i = 0; i < view->count; i++)
        spawn_by_command(in, commands, view->entities[i], spawners[i]);
}

/* Does the actions of a spawner by immediate calls. */
static void spawn_at_once(const scene *in, quern_entity self, uint64_t spawner)
{
    const decision what = decide(spawner, in->frame);
    const quern_spawn_def def = {.parent = what.act == ACT_BELOW ? self : quern_entity_null(),
                                 .overrides = {{in->number, 0, &what.number}}};
    quern_entity members[MEMBERS];
    must(quern_prefab_spawn_many(in->world, in->tower, 1, &def, NULL, members));
    cr_assert_eq(quern_prefab_part(in->world, members[0], in->barrel).bits, members[3].bits);
    if (what.act == ACT_DESTROY_ROOT) must(quern_entity_destroy(in->world, members[0]));
    if (what.act == ACT_DESTROY_GUN) must(quern_entity_destroy(in->world, members[1]));
    if (what.act == ACT_MARK) must(quern_entity_add(in->world, members[3], in->marked, NULL));
    if (what.act == ACT_MOVE) must(quern_entity_relate(in->world, members[1], in->parent, self));
    if (what.act >= ACT_DISABLE) must(quern_entity_set_enabled(in->world, members[0], false));
    if (what.act == ACT_DISABLE_PARTLY) must(quern_entity_set_enabled(in->world, members[1], false));
    if (what.act == ACT_ADOPT) must(quern_entity_relate(in->world, members[3], in->parent, members[0]));
    if (what.act > ACT_DISABLE) must(quern_entity_set_enabled(in->world, members[0], true));
}

static void make_spawners(const scene *in, quern_entity *out_spawners)
{
    for (uint64_t i = 0; i < SPAWNERS; i++) {
        out_spawners[i] = make(in, 500);
        must(quern_entity_set(in->world, out_spawners[i], in->spawner, &i));
    }
}

static uint64_t number_at(const scene *in, quern_entity entity)
{
    if (entity.bits == 0) return 0;
    const uint64_t *number = quern_entity_get(in->world, entity, in->number);
    return number != NULL ? *number : 1;
}

static uint64_t mix(uint64_t hash, uint64_t word)
{
    random_source random = {hash ^ word * 0x9E3779B97F4A7C15u};
    return random_next(&random);
}

/* Hashes the contents of the world regardless of its handles. */
static uint64_t content_of(const scene *in)
{
    const quern_term terms[] = {quern_term_read(in->number),
                                quern_term_optional(in->disabled, QUERN_ACCESS_NONE)};
    quern_query *query = setup_query(in->world, terms, 2);
    quern_query_iterator it = quern_query_iterate(query);
    uint64_t sum = 0;
    while (quern_query_next(&it))
        for (uint32_t i = 0; i < it.view.count; i++) {
            const quern_entity entity = it.view.entities[i];
            uint64_t hash = number_at(in, entity);
            for (quern_entity above = entity; above.bits != 0;
                 above = quern_entity_target(in->world, above, in->parent))
                hash = mix(hash, number_at(in, above));
            hash = mix(hash, number_at(in, quern_entity_target(in->world, entity, in->likes)));
            hash = mix(hash, quern_entity_source_count(in->world, entity, in->parent));
            hash = mix(hash, quern_entity_has(in->world, entity, in->marked));
            hash = mix(hash, quern_entity_is_enabled(in->world, entity));
            hash = mix(hash, number_at(in, quern_prefab_part(in->world, entity, in->barrel)));
            sum += hash;
        }
    quern_query_destroy(query);
    return sum;
}

static uint64_t content_at_once(void)
{
    static quern_entity spawners[SPAWNERS];
    scene it;
    open_scene(&it, NULL);
    make_spawners(&it, spawners);
    for (; it.frame < FRAMES; it.frame++)
        for (uint64_t i = 0; i < SPAWNERS; i++)
            spawn_at_once(&it, spawners[i], i);
    const uint64_t content = content_of(&it);
    close_scene(&it);
    return content;
}

static void run_frames(uint32_t thread_count, uint64_t *out_hash, uint64_t *out_content)
{
    static quern_entity spawners[SPAWNERS];
    scene it;
    quern_schedule *schedule;
    quern_jobs *jobs;
    open_scene(&it, NULL);
    make_spawners(&it, spawners);
    must(quern_jobs_create(&(quern_jobs_def){.thread_count = thread_count}, &jobs));
    must(quern_schedule_create(it.world, NULL, &schedule));
    must(quern_schedule_add_system(
        schedule,
        &(quern_system_def){
            .name = "spawn", .run = run_spawners, .terms = {quern_term_read(it.spawner)}, .user_data = &it},
        NULL));
    for (; it.frame < FRAMES; it.frame++)
        must(quern_schedule_run(schedule, jobs, 0.01));
    *out_hash = quern_world_hash(it.world);
    *out_content = content_of(&it);
    quern_schedule_destroy(schedule);
    quern_jobs_destroy(jobs);
    close_scene(&it);
}

Test(prefab_frames, frames_match_immediate_calls_at_every_thread_count)
{
    const uint32_t thread_counts[] = {1, 2, 3, 8};
    const uint64_t expected = content_at_once();
    uint64_t first = 0;
    for (uint32_t i = 0; i < sizeof thread_counts / sizeof *thread_counts; i++) {
        uint64_t hash, content;
        run_frames(thread_counts[i], &hash, &content);
        if (i == 0) first = hash;
        cr_assert_eq(hash, first, "%u threads", thread_counts[i]);
        cr_assert_eq(content, expected, "%u threads", thread_counts[i]);
    }
}

/* ------------------------------------------------------------------------------------- failed memory */

Test(prefab_frames, failed_allocations_lose_nothing)
{
    for (uint32_t nth = 1, is_done = 0; !is_done; nth++) {
        failing_allocator *allocator = failing_allocator_create();
        const quern_world_def def = {.allocator = failing_allocator_interface(allocator)};
        scene it;
        open_scene(&it, &def);
        const quern_entity above = make(&it, 0);
        quern_commands *commands = quern_world_commands(it.world);
        failing_allocator_fail_at(allocator, nth);
        quern_result result = QUERN_OK;
        uint32_t spawned_count = 0;
        for (uint32_t i = 0; i < 600; i++) {
            const quern_spawn_def spawn = {.parent = i % 2 == 0 ? above : quern_entity_null()};
            result = quern_commands_spawn(commands, it.tower, &spawn, NULL);
            spawned_count += result == QUERN_OK;
        }
        result = quern_world_flush(it.world);
        is_done = failing_allocator_failed_count(allocator) == 0;
        failing_allocator_heal(allocator);
        if (result != QUERN_OK) {
            cr_assert_eq(result, QUERN_ERROR_OUT_OF_MEMORY);
            assert_valid(it.world);
            const quern_result again = quern_world_flush(it.world);
            cr_assert(again == QUERN_OK || spawned_count < 600, "%s", quern_error_message());
        }
        cr_assert_eq(stats_of_world(it.world).entity_count, 1 + 4 * spawned_count);
        close_scene(&it);
        failing_allocator_close(allocator);
    }
}
