/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "tests/flow/flow_setup.h"
#include "tests/support/failing_allocator.h"
#include "tests/support/random.h"
#include "tests/support/setup.h"
#include "tests/support/tracked.h"

#include <string.h>

/* Spawns by command (core/record/spawn.h): instances are put into the world first, and together. The result must not
 * depend on what else the callback records, nor on which members later commands concern. */

enum { TOWERS = 600, FREE_SLOTS = 4 };

typedef struct knows {
    quern_entity entity;
} knows;

typedef struct scene {
    quern_world *world;
    quern_component number, other, knows, value, marked;
    quern_relation parent;
    quern_prefab tower, stone;
    tracked_counts counts;
} scene;

static quern_entity make(const scene *in, uint64_t number)
{
    quern_entity entity;
    must(quern_entity_create_with(in->world, &in->number, (const void *[]){&number}, 1, &entity));
    return entity;
}

/* Creates a world with two prefabs. The tower has a base (number 1) with two parts: the first contains a
 * handle of the base; the second is named "lamp" and has a value with hooks. The stone (number 9) has
 * one member. */
static void open_scene(scene *in, const quern_world_def *def)
{
    *in = (scene){0};
    must(quern_world_create(def, &in->world));
    in->number = setup_component(in->world, "number", 8, 8);
    in->other = setup_component(in->world, "other", 8, 8);
    in->marked = setup_tag(in->world, "marked");
    in->value = tracked_register(in->world, "value", &in->counts);
    in->knows =
        make_component(in->world, .name = "knows", .size_bytes = sizeof(knows), .alignment_bytes = 8,
                       .fields = {{"entity", QUERN_FIELD_ENTITY, 0, .count = 1}});
    in->parent = quern_world_parent(in->world);
    const quern_entity base = make(in, 1), part = make(in, 2), lamp = make(in, 3), stone = make(in, 9);
    must(quern_entity_relate(in->world, part, in->parent, base));
    must(quern_entity_relate(in->world, lamp, in->parent, base));
    must(quern_entity_set(in->world, part, in->knows, &(knows){base}));
    must(quern_entity_set_name(in->world, lamp, "lamp"));
    tracked value;
    tracked_construct(&value, 5, &in->counts);
    must(quern_entity_set(in->world, lamp, in->value, &value));
    tracked_destroy(&value, &in->counts);
    must(quern_prefab_capture(in->world, base, &in->tower));
    must(quern_prefab_capture(in->world, stone, &in->stone));
    must(quern_entity_destroy(in->world, base));
    must(quern_entity_destroy(in->world, stone));
}

static void close_scene(scene *of)
{
    assert_valid(of->world);
    quern_world_destroy(of->world);
    cr_assert_eq(of->counts.broken_count, 0u, "hooks were called on what was no live value");
    cr_assert_eq(tracked_live_count(&of->counts), 0u, "values were not destroyed, or twice");
}

static uint64_t number_of(const scene *in, quern_entity entity)
{
    const uint64_t *number = quern_entity_get(in->world, entity, in->number);
    cr_assert_not_null(number, "%s", quern_error_message());
    return *number;
}

static void expect_tower(const scene *in, quern_entity root, uint64_t number)
{
    cr_assert_eq(number_of(in, root), number);
    cr_assert_eq(quern_entity_source_count(in->world, root, in->parent), 2u);
    const quern_entity part = quern_entity_first_source(in->world, root, in->parent);
    const quern_entity lamp = quern_entity_find_child(in->world, root, "lamp");
    cr_assert_eq(number_of(in, part), 2u);
    const knows *known = quern_entity_get(in->world, part, in->knows);
    cr_assert_eq(known->entity.bits, root.bits);
    cr_assert_eq(number_of(in, lamp), 3u);
    const tracked *value = quern_entity_get(in->world, lamp, in->value);
    cr_assert(tracked_is_live(value));
    cr_assert_eq(value->payload, 5u);
}

/* Lists the entities without a parent in the order of their slots. */
static uint32_t list_roots(const scene *in, quern_entity *out_roots, uint32_t capacity)
{
    const quern_term terms[] = {quern_term_with(in->number),
                                quern_term_without(quern_relation_component(in->parent))};
    quern_query *query = setup_query(in->world, terms, 2);
    uint32_t count = 0;
    for (quern_query_iterator it = quern_query_iterate(query); quern_query_next(&it);)
        for (uint32_t i = 0; i < it.view.count; i++) {
            cr_assert_lt(count, capacity);
            uint32_t k = count++;
            for (; k > 0 && quern_entity_index(out_roots[k - 1]) > quern_entity_index(it.view.entities[i]);
                 k--)
                out_roots[k] = out_roots[k - 1];
            out_roots[k] = it.view.entities[i];
        }
    quern_query_destroy(query);
    return count;
}

/* Uses up the free slots, so that later entities get new slots in ascending order. */
static void use_free_slots(const scene *in)
{
    quern_entity ignored;
    for (uint32_t i = 0; i < FREE_SLOTS; i++)
        must(quern_entity_create(in->world, &ignored));
}

/* ------------------------------------------------------------------------------------------- together */

Test(spawn_commands, instances_among_creates_take_handles_in_order)
{
    static quern_entity roots[4 * TOWERS];
    scene it;
    open_scene(&it, NULL);
    use_free_slots(&it);
    quern_commands *commands = quern_world_commands(it.world);
    for (uint64_t i = 0; i < TOWERS; i++) {
        const uint64_t number = 100 + i;
        must(quern_commands_spawn(commands, it.tower,
                                  &(quern_spawn_def){.overrides = {{it.number, 0, &number}}}, NULL));
        if (i % 7 == 0) record_entity_with(commands, &it.number, (const void *[]){&number}, 1);
        if (i % 5 == 0) must(quern_commands_spawn(commands, it.stone, NULL, NULL));
    }
    must(quern_world_flush(it.world));
    const uint32_t count = list_roots(&it, roots, 4 * TOWERS);
    uint32_t at = 0;
    for (uint64_t i = 0; i < TOWERS; i++) {
        expect_tower(&it, roots[at++], 100 + i);
        if (i % 7 == 0) cr_assert_eq(number_of(&it, roots[at++]), 100 + i);
        if (i % 5 == 0) cr_assert_eq(number_of(&it, roots[at++]), 9u);
    }
    cr_assert_eq(at, count);
    close_scene(&it);
}

/* Spawns eight towers and two stones. Later commands name those towers that the bits of `named` select,
 * or members of them. */
static void spawn_some(const scene *in, uint32_t named)
{
    quern_commands *commands = quern_world_commands(in->world);
    quern_entity towers[8];
    random_source random = {named + 1};
    for (uint32_t i = 0; i < 8; i++) {
        const uint64_t number = 50 + i;
        const quern_spawn_def def = {.overrides = {{in->number, i % 2, &number}}};
        must(quern_commands_spawn(commands, in->tower, i % 3 == 0 ? NULL : &def, &towers[i]));
        if (i % 4 == 1) must(quern_commands_spawn(commands, in->stone, NULL, NULL));
    }
    for (uint32_t i = 0; i < 8; i++) {
        if ((named >> i & 1) == 0) continue;
        const uint32_t member = random_below(&random, 3);
        const quern_entity entity = quern_commands_spawned_member(commands, in->tower, towers[i], member);
        must(quern_commands_add(commands, entity, in->marked, NULL));
        must(quern_commands_remove(commands, entity, in->marked));
    }
    must(quern_world_flush(in->world));
}

/* The commands on members add and remove a tag, which leaves no other effect. */
Test(spawn_commands, naming_members_does_not_change_the_result)
{
    static quern_entity expected[32], roots[32];
    for (uint32_t named = 0; named < 256; named += 5) {
        scene it;
        open_scene(&it, NULL);
        use_free_slots(&it);
        spawn_some(&it, named);
        const uint32_t count = list_roots(&it, roots, 32);
        cr_assert_eq(count, 10u);
        for (uint32_t i = 0; i < count; i++) {
            if (named == 0) expected[i] = roots[i];
            cr_assert_eq(quern_entity_index(roots[i]), quern_entity_index(expected[i]), "root %u, named %x",
                         i, named);
        }
        cr_assert_eq(stats_of_world(it.world).entity_count, FREE_SLOTS + 8u * 3u + 2u);
        for (uint32_t i = 0, tower = 0; i < count; i++) {
            if (number_of(&it, roots[i]) == 9) continue;
            const quern_entity part = quern_entity_first_source(it.world, roots[i], it.parent);
            const uint64_t number = tower % 3 == 0 ? 0 : 50 + tower;
            cr_assert_eq(number_of(&it, roots[i]), number != 0 && tower % 2 == 0 ? number : 1u);
            cr_assert_eq(number_of(&it, part), number != 0 && tower % 2 == 1 ? number : 2u);
            tower++;
        }
        close_scene(&it);
    }
}

/* Instances are spawned into archetypes that lose rows at the same sync point. */
Test(spawn_commands, instances_are_spawned_among_destroyed_entities)
{
    static quern_entity roots[2 * TOWERS];
    for (uint32_t rounds = 0; rounds < 3; rounds++) {
        scene it;
        open_scene(&it, NULL);
        must(quern_prefab_spawn_many(it.world, it.stone, 100, NULL, roots, NULL));
        quern_commands *commands = quern_world_commands(it.world);
        const uint32_t gone = rounds == 0 ? 100 : 30, come = rounds == 1 ? 10 : 60;
        for (uint32_t i = 0; i < gone; i++)
            must(quern_commands_destroy(commands, roots[i]));
        for (uint32_t i = 0; i < come; i++)
            must(quern_commands_spawn(commands, it.stone, NULL, NULL));
        if (rounds == 2) must(quern_commands_set(commands, roots[99], it.other, &(uint64_t){4}));
        must(quern_world_flush(it.world));
        assert_valid(it.world);
        cr_assert_eq(stats_of_world(it.world).entity_count, 100u - gone + come);
        for (uint32_t i = gone; i < 100; i++)
            cr_assert_eq(number_of(&it, roots[i]), 9u);
        close_scene(&it);
    }
}

Test(spawn_commands, values_accumulate_in_what_was_just_spawned)
{
    scene it;
    open_scene(&it, NULL);
    use_free_slots(&it);
    quern_component points =
        make_component(it.world, .name = "points", .size_bytes = 8, .alignment_bytes = 8,
                       .fields = {{"points", QUERN_FIELD_U64, 0, .count = 1}});
    const uint64_t captured = 10;
    quern_entity first, root;
    must(quern_entity_create_with(it.world, &points, (const void *[]){&captured}, 1, &first));
    quern_prefab prefab;
    must(quern_prefab_capture(it.world, first, &prefab));
    quern_commands *commands = quern_world_commands(it.world);
    for (uint64_t i = 0; i < 20; i++) {
        must(quern_commands_spawn(commands, prefab, NULL, &root));
        must(quern_commands_accumulate(commands, root, points, &i, QUERN_SUM));
    }
    must(quern_world_flush(it.world));
    const quern_term terms[] = {quern_term_read(points)};
    quern_query *query = setup_query(it.world, terms, 1);
    uint64_t sum = 0;
    for (quern_query_iterator walk = quern_query_iterate(query); quern_query_next(&walk);) {
        const uint64_t *values = quern_view_read(&walk.view, 0);
        for (uint32_t i = 0; i < walk.view.count; i++) {
            cr_assert_eq(values[i], quern_entity_index(walk.view.entities[i]) - quern_entity_index(first) +
                                        (walk.view.entities[i].bits == first.bits ? 10 : 9));
            sum += values[i];
        }
    }
    cr_assert_eq(sum, 21 * 10 + 190u);
    quern_query_destroy(query);
    close_scene(&it);
}

/* ---------------------------------------------------------------- instances that later commands relate */

/* Records the spawn of a stone with this number. */
static quern_entity spawn_stone(const scene *in, quern_commands *commands, uint64_t number)
{
    quern_entity root;
    must(quern_commands_spawn(commands, in->stone,
                              &(quern_spawn_def){.overrides = {{in->number, 0, &number}}}, &root));
    return root;
}

/* Returns the only entity with this number, or null. */
static quern_entity find_number(const scene *in, uint64_t number)
{
    const quern_term terms[] = {quern_term_read(in->number)};
    quern_query *query = setup_query(in->world, terms, 1);
    quern_entity found = quern_entity_null();
    for (quern_query_iterator it = quern_query_iterate(query); quern_query_next(&it);) {
        const uint64_t *numbers = quern_view_read(&it.view, 0);
        for (uint32_t i = 0; i < it.view.count; i++) {
            if (numbers[i] != number) continue;
            cr_assert(quern_entity_is_null(found), "number %llu twice", (unsigned long long)number);
            found = it.view.entities[i];
        }
    }
    quern_query_destroy(query);
    return found;
}

Test(spawn_commands, instances_may_be_related_in_any_order)
{
    enum { STONES = 4 };
    for (uint32_t way = 0; way < STONES * STONES * 2; way++) {
        const uint32_t source = way % STONES, target = way / STONES % STONES;
        const bool creates_between = way / STONES / STONES == 1;
        if (source == target) continue;
        scene it;
        open_scene(&it, NULL);
        quern_entity stones[STONES];
        quern_commands *commands = quern_world_commands(it.world);
        for (uint32_t i = 0; i < STONES; i++) {
            stones[i] = spawn_stone(&it, commands, 100 + i);
            if (creates_between)
                record_entity_with(commands, &it.number, (const void *[]){&(uint64_t){200 + i}}, 1);
        }
        must(quern_commands_relate(commands, stones[source], it.parent, stones[target]));
        must(quern_world_flush(it.world));
        for (uint32_t i = 0; i < STONES; i++) {
            const quern_entity stone = find_number(&it, 100 + i);
            const quern_entity expected =
                i == source ? find_number(&it, 100 + target) : quern_entity_null();
            cr_assert(quern_entity_is_alive(it.world, stone));
            cr_assert_eq(quern_entity_target(it.world, stone, it.parent).bits, expected.bits, "way %u",
                         way);
            cr_assert_eq(quern_entity_is_null(find_number(&it, 200 + i)), !creates_between);
        }
        close_scene(&it);
    }
}

Test(spawn_commands, created_entity_may_get_an_instance_as_parent)
{
    scene it;
    open_scene(&it, NULL);
    quern_commands *commands = quern_world_commands(it.world);
    const quern_entity stone = spawn_stone(&it, commands, 100);
    const quern_entity made =
        record_entity_with(commands, &it.number, (const void *[]){&(uint64_t){200}}, 1);
    must(quern_commands_relate(commands, made, it.parent, stone));
    must(quern_world_flush(it.world));
    const quern_entity parent = quern_entity_target(it.world, find_number(&it, 200), it.parent);
    cr_assert_eq(parent.bits, find_number(&it, 100).bits);
    close_scene(&it);
}

/* An override with a handle is recorded as a set after the instance. */
Test(spawn_commands, instances_may_know_each_other_by_override_and_set)
{
    scene it;
    open_scene(&it, NULL);
    quern_prefab prefab;
    quern_entity root, first, second;
    const quern_entity known = make(&it, 7);
    must(quern_entity_create_with(it.world, &it.knows, (const void *[]){&(knows){known}}, 1, &root));
    must(quern_prefab_capture(it.world, root, &prefab));
    quern_commands *commands = quern_world_commands(it.world);
    must(quern_commands_spawn(commands, prefab, NULL, &first));
    must(quern_commands_spawn(commands, prefab,
                              &(quern_spawn_def){.overrides = {{it.knows, 0, &(knows){first}}}}, &second));
    must(quern_commands_set(commands, first, it.knows, &(knows){second}));
    must(quern_world_flush(it.world));
    const quern_term terms[] = {quern_term_read(it.knows)};
    quern_query *query = setup_query(it.world, terms, 1);
    cr_assert_eq(quern_query_count(query), 3u);
    for (quern_query_iterator walk = quern_query_iterate(query); quern_query_next(&walk);)
        for (uint32_t i = 0; i < walk.view.count; i++) {
            const quern_entity entity = walk.view.entities[i];
            const knows *own = quern_entity_get(it.world, entity, it.knows);
            if (entity.bits == root.bits) {
                cr_assert_eq(own->entity.bits, known.bits);
                continue;
            }
            const knows *other = quern_entity_get(it.world, own->entity, it.knows);
            cr_assert_neq(own->entity.bits, entity.bits);
            cr_assert_eq(other->entity.bits, entity.bits, "each of the two knows the other one");
        }
    quern_query_destroy(query);
    close_scene(&it);
}

/* Spawns one tower, names its root if is_named, and returns the command count of the flush. */
static uint64_t count_of_spawn(const scene *in, const quern_spawn_def *def, bool is_named)
{
    quern_entity root;
    quern_flush_stats stats;
    quern_commands *commands = quern_world_commands(in->world);
    must(quern_commands_spawn(commands, in->tower, def, &root));
    if (is_named) must(quern_commands_add(commands, root, in->marked, NULL));
    must(quern_world_flush(in->world));
    must(quern_world_get_flush_stats(in->world, &stats));
    return stats.command_count;
}

/* Counts three creates; values of number (three times), knows and value; the parents of two members; and
 * a name. */
Test(spawn_commands, instance_counts_as_the_commands_that_would_create_its_members)
{
    enum { PLAIN = 3 + (3 + 1 + 1) + 2 + 1 };
    const uint64_t number = 100;
    scene it;
    open_scene(&it, NULL);
    const quern_entity parent = make(&it, 0);
    for (uint32_t i = 0; i < 3; i++) { /* no override, then one override for each of two members */
        quern_spawn_def def = {.parent = quern_entity_null()};
        if (i > 0) def.overrides[0] = (quern_spawn_override){it.number, i - 1, &number};
        cr_assert_eq(count_of_spawn(&it, &def, false), (uint64_t)PLAIN, "overrides: %u", i);
        cr_assert_eq(count_of_spawn(&it, &def, true), (uint64_t)PLAIN + 1, "overrides: %u", i);
        def.parent = parent;
        cr_assert_eq(count_of_spawn(&it, &def, false), (uint64_t)PLAIN + 1, "overrides: %u", i);
    }
    const quern_spawn_def knowing = {.overrides = {{it.knows, 1, &(knows){parent}}}};
    cr_assert_eq(count_of_spawn(&it, &knowing, false), (uint64_t)PLAIN + 1, "an override that is a set");
    close_scene(&it);
}

/* ------------------------------------------------------------------------------------------ cascades */

/* Spawns two towers and destroys the first. */
static void spawn_and_destroy(quern_context *context, const quern_view *view)
{
    const scene *in = quern_context_user_data(context);
    quern_commands *commands = quern_context_commands(context);
    quern_entity root;
    for (uint64_t i = 0; i < 2; i++) {
        const uint64_t number = 100 + 10 * view->ordinal + i;
        must(quern_commands_spawn(commands, in->tower,
                                  &(quern_spawn_def){.overrides = {{in->number, 0, &number}}},
                                  i == 0 ? &root : NULL));
    }
    must(quern_commands_destroy(commands, root));
}

/* The parts end with their base by commands that the sync point adds to each stream. They must not overwrite the stream
 * that follows in the memory of the same worker. */
Test(spawn_commands, parts_end_with_the_base_of_the_same_callback)
{
    enum { VIEWS = 3 };
    quern_entity roots[2 * VIEWS];
    scene it;
    open_scene(&it, NULL);
    for (uint32_t i = 0; i < VIEWS; i++) {
        const quern_entity entity = setup_entity_with(it.world, &it.other, 1);
        if (i % 2 == 1) must(quern_entity_add(it.world, entity, it.marked, NULL));
        if (i / 2 == 1) must(quern_entity_add(it.world, entity, it.knows, NULL));
    }
    quern_schedule *schedule = setup_schedule(it.world);
    make_system(schedule, "spawns", spawn_and_destroy, .terms = {quern_term_with(it.other)},
                .user_data = &it);
    must_run(schedule, NULL);
    quern_schedule_destroy(schedule);
    cr_assert_eq(list_roots(&it, roots, 2 * VIEWS), (uint32_t)VIEWS);
    for (uint32_t i = 0; i < VIEWS; i++)
        expect_tower(&it, roots[i], 101 + 10 * i);
    cr_assert_eq(stats_of_world(it.world).entity_count, VIEWS + 3u * VIEWS);
    close_scene(&it);
}

/* ------------------------------------------------------------------------------------------- parents */

Test(spawn_commands, parent_that_has_ended_counts_as_dropped)
{
    scene it;
    open_scene(&it, NULL);
    quern_entity roots[4];
    quern_flush_stats stats;
    const quern_entity home = make(&it, 8);
    quern_commands *commands = quern_world_commands(it.world);
    must(quern_commands_destroy(commands, home));
    must(quern_commands_spawn(commands, it.tower, &(quern_spawn_def){.parent = home}, NULL));
    must(quern_world_flush(it.world));
    must(quern_world_get_flush_stats(it.world, &stats));
    cr_assert_eq(stats.dropped_count, 1u);
    cr_assert_eq(list_roots(&it, roots, 4), 1u);
    expect_tower(&it, roots[0], 1);
    close_scene(&it);
}

/* At the deepest level, members of different depth share an archetype. */
Test(spawn_commands, members_of_one_archetype_have_rows_of_their_own)
{
    enum { INSTANCES = 3, DEPTH = QUERN_MAX_RELATION_LEVEL + 2 };
    scene it;
    open_scene(&it, NULL);
    quern_entity home = make(&it, 8), base = make(&it, 1);
    for (uint32_t i = 0; i < DEPTH; i++) {
        const quern_entity below = make(&it, 8);
        must(quern_entity_relate(it.world, below, it.parent, home));
        home = below;
    }
    for (uint64_t i = 0; i < 2; i++) { /* a chain of three without other differences */
        const quern_entity below = make(&it, 2 + i);
        must(quern_entity_relate(it.world, below, it.parent,
                                 i == 0 ? base : quern_entity_first_source(it.world, base, it.parent)));
    }
    quern_prefab chain;
    must(quern_prefab_capture(it.world, base, &chain));
    quern_commands *commands = quern_world_commands(it.world);
    for (uint64_t i = 0; i < INSTANCES; i++) {
        quern_entity root;
        must(quern_commands_spawn(commands, chain, &(quern_spawn_def){.parent = home}, &root));
        for (uint32_t k = 0; k < 3; k++)
            must(quern_commands_set(commands, quern_commands_spawned_member(commands, chain, root, k),
                                    it.number, &(uint64_t){100 + 10 * i + k}));
    }
    must(quern_world_flush(it.world));
    quern_entity root = quern_entity_first_source(it.world, home, it.parent);
    for (uint64_t i = 0; i < INSTANCES; i++) {
        quern_entity member = root;
        for (uint32_t k = 0; k < 3; k++) {
            cr_assert_eq(number_of(&it, member), 100 + 10 * i + k);
            member = quern_entity_first_source(it.world, member, it.parent);
        }
        root = quern_entity_next_sibling(it.world, root, it.parent);
    }
    cr_assert(quern_entity_is_null(root));
    close_scene(&it);
}

/* --------------------------------------------------------------------------------- pending commands */

Test(spawn_commands, prefabs_are_retained_while_commands_are_pending)
{
    quern_entity roots[4];
    scene it;
    failing_allocator *allocator = failing_allocator_create();
    const quern_world_def def = {.allocator = failing_allocator_interface(allocator)};
    open_scene(&it, &def);
    quern_commands *commands = quern_world_commands(it.world);
    const quern_entity base = make(&it, 7);
    must(quern_commands_spawn(commands, it.tower, NULL, NULL));
    must(quern_prefab_destroy(it.world, it.tower));
    quern_prefab second; /* replaces the first one */
    must(quern_prefab_capture(it.world, base, &second));
    must(quern_commands_spawn(commands, second, NULL, NULL));
    must(quern_prefab_destroy(it.world, second));
    must(quern_world_flush(it.world));
    cr_assert_eq(list_roots(&it, roots, 4), 3u);
    expect_tower(&it, roots[0], 1);
    cr_assert_eq(number_of(&it, roots[2]) + number_of(&it, roots[1]), 14u);
    close_scene(&it);
    failing_allocator_close(allocator);
}

Test(spawn_commands, pending_commands_are_released_with_the_world)
{
    scene it;
    open_scene(&it, NULL);
    quern_commands *commands = quern_world_commands(it.world);
    quern_entity root;
    must(quern_commands_spawn(commands, it.tower, NULL, &root));
    must(quern_commands_spawn(commands, it.tower, NULL, NULL));
    must(quern_prefab_destroy(it.world, it.tower));
    must(quern_commands_add(commands, root, it.marked, NULL));
    close_scene(&it);
}

/* Overrides that do not fit into one command block together are recorded as sets. */
Test(spawn_commands, overrides_may_be_larger_than_a_block_of_commands)
{
    enum { WIDE_BYTES = 8000, MEMBERS = QUERN_MAX_SPAWN_OVERRIDES };
    static unsigned char values[MEMBERS][WIDE_BYTES];
    scene it;
    open_scene(&it, NULL);
    const quern_component wide = setup_component(it.world, "wide", WIDE_BYTES, 8);
    quern_entity members[MEMBERS];
    quern_prefab prefab;
    quern_spawn_def def = {.parent = quern_entity_null()};
    for (uint32_t i = 0; i < MEMBERS; i++) {
        must(quern_entity_create_with(it.world, &wide, NULL, 1, &members[i]));
        if (i > 0) must(quern_entity_relate(it.world, members[i], it.parent, members[0]));
        memset(values[i], (int)i + 1, WIDE_BYTES);
        def.overrides[i] = (quern_spawn_override){wide, i, values[i]};
    }
    must(quern_prefab_capture(it.world, members[0], &prefab));
    must(quern_entity_destroy(it.world, members[0]));
    quern_commands *commands = quern_world_commands(it.world);
    for (uint32_t i = 0; i < 3; i++)
        must(quern_commands_spawn(commands, prefab, &def, NULL));
    must(quern_world_flush(it.world));
    const quern_term terms[] = {quern_term_read(wide)};
    quern_query *query = setup_query(it.world, terms, 1);
    uint32_t counts[MEMBERS] = {0};
    for (quern_query_iterator walk = quern_query_iterate(query); quern_query_next(&walk);) {
        const unsigned char *bytes = quern_view_read(&walk.view, 0);
        for (uint32_t i = 0; i < walk.view.count; i++, bytes += WIDE_BYTES) {
            cr_assert(bytes[0] > 0 && bytes[0] <= MEMBERS);
            cr_assert_eq(memcmp(bytes, values[bytes[0] - 1], WIDE_BYTES), 0);
            counts[bytes[0] - 1]++;
        }
    }
    for (uint32_t i = 0; i < MEMBERS; i++)
        cr_assert_eq(counts[i], 3u);
    quern_query_destroy(query);
    close_scene(&it);
}

/* ------------------------------------------------------------------------------------- failed memory */

Test(spawn_commands, instances_are_spawned_if_a_later_command_is_lost)
{
    enum { MOST_SETS = 100 * TOWERS };
    static quern_entity roots[TOWERS];
    failing_allocator *allocator = failing_allocator_create();
    const quern_world_def def = {.allocator = failing_allocator_interface(allocator)};
    scene it;
    open_scene(&it, &def);
    quern_commands *commands = quern_world_commands(it.world);
    for (uint32_t i = 0; i < TOWERS; i++)
        must(quern_commands_spawn(commands, it.tower, NULL, &roots[i]));
    must(quern_commands_set(commands, roots[0], it.other, &(uint64_t){0}));
    failing_allocator_fail_from(allocator, 1);
    uint64_t set = 1;
    while (set < MOST_SETS && quern_commands_set(commands, roots[set % TOWERS], it.other, &set) == QUERN_OK)
        set++;
    cr_assert_lt(set, (uint64_t)MOST_SETS, "the block of commands is full");
    failing_allocator_heal(allocator);
    cr_assert_eq(quern_world_flush(it.world), QUERN_ERROR_OUT_OF_MEMORY, "the last set is lost");
    cr_assert_eq(stats_of_world(it.world).entity_count, 3u * TOWERS);
    const quern_term terms[] = {quern_term_with(it.other)};
    quern_query *query = setup_query(it.world, terms, 1);
    cr_assert_eq(quern_query_count(query), set < TOWERS ? set : TOWERS);
    quern_query_destroy(query);
    close_scene(&it);
    failing_allocator_close(allocator);
}

Test(spawn_commands, failed_allocations_lose_nothing)
{
    static quern_entity roots[2 * TOWERS];
    for (uint32_t nth = 1, is_done = 0; !is_done; nth++) {
        failing_allocator *allocator = failing_allocator_create();
        const quern_world_def def = {.allocator = failing_allocator_interface(allocator)};
        scene it;
        open_scene(&it, &def);
        quern_commands *commands = quern_world_commands(it.world);
        failing_allocator_fail_at(allocator, nth);
        uint32_t spawned_count = 0;
        bool is_lost = false;
        for (uint64_t i = 0; i < 40; i++) {
            quern_entity root;
            const quern_spawn_def spawn = {.overrides = {{it.number, 0, &i}}};
            const quern_result result =
                quern_commands_spawn(commands, it.tower, i % 2 == 0 ? NULL : &spawn, &root);
            spawned_count += result == QUERN_OK;
            if (result == QUERN_OK && i % 9 == 0)
                is_lost |= quern_commands_add(commands, root, it.marked, NULL) != QUERN_OK;
            is_lost |= result != QUERN_OK;
        }
        const quern_result result = quern_world_flush(it.world);
        is_done = failing_allocator_failed_count(allocator) == 0;
        failing_allocator_heal(allocator);
        if (result != QUERN_OK) {
            cr_assert_eq(result, QUERN_ERROR_OUT_OF_MEMORY);
            assert_valid(it.world);
            const uint64_t count = stats_of_world(it.world).entity_count;
            cr_assert(count == 0 || count == 3 * spawned_count, "nothing is half done");
            const quern_result again = quern_world_flush(it.world);
            cr_assert(again == QUERN_OK || is_lost, "%s", quern_error_message());
        }
        cr_assert_eq(stats_of_world(it.world).entity_count, 3 * spawned_count);
        const uint32_t count = list_roots(&it, roots, 2 * TOWERS);
        for (uint32_t i = 0; i < count; i++)
            expect_tower(&it, roots[i], number_of(&it, roots[i]));
        close_scene(&it);
        failing_allocator_close(allocator);
    }
}

/* Records spawns of towers of which all is changed afterwards, in several ways. */
static void record_changes(const scene *in, quern_commands *commands, quern_entity home)
{
    quern_entity roots[6];
    for (uint32_t i = 0; i < 6; i++) {
        const quern_spawn_def def = {.parent = i % 2 == 0 ? home : quern_entity_null()};
        must(quern_commands_spawn(commands, in->tower, &def, &roots[i]));
    }
    must(quern_commands_set_name(commands, roots[0], "first"));
    must(quern_commands_set(commands, roots[1], in->other, &(uint64_t){3}));
    must(quern_commands_relate(commands, roots[1], in->parent, roots[0]));
    must(quern_commands_set_enabled(commands, roots[2], false));
    must(quern_commands_destroy(commands, quern_commands_spawned_member(commands, in->tower, roots[3], 1)));
    must(quern_commands_destroy(commands, roots[4]));
    must(quern_commands_remove(commands, roots[5], in->number));
}

/* A flush that fails changes nothing, and the next one has the result of one that does not fail. */
Test(spawn_commands, failed_sync_point_is_undone)
{
    uint64_t expected = 0;
    for (uint32_t nth = 0, is_done = 0; !is_done; nth++) {
        failing_allocator *allocator = failing_allocator_create();
        const quern_world_def def = {.allocator = failing_allocator_interface(allocator)};
        scene it;
        open_scene(&it, &def);
        (void)quern_world_disabled_tag(it.world);
        const quern_entity home = make(&it, 8);
        record_changes(&it, quern_world_commands(it.world), home);
        const uint64_t before = quern_world_hash(it.world);
        if (nth > 0) failing_allocator_fail_at(allocator, nth);
        const quern_result result = quern_world_flush(it.world);
        is_done = nth > 0 && failing_allocator_failed_count(allocator) == 0;
        failing_allocator_heal(allocator);
        if (result != QUERN_OK) {
            cr_assert_eq(result, QUERN_ERROR_OUT_OF_MEMORY);
            cr_assert_eq(quern_world_hash(it.world), before, "allocation %u", nth);
            cr_assert_eq(quern_entity_source_count(it.world, home, it.parent), 0u);
            assert_valid(it.world);
            must(quern_world_flush(it.world));
        }
        if (nth == 0) expected = quern_world_hash(it.world);
        cr_assert_eq(quern_world_hash(it.world), expected, "allocation %u", nth);
        cr_assert_eq(quern_entity_source_count(it.world, home, it.parent), 2u);
        cr_assert_eq(stats_of_world(it.world).entity_count, FREE_SLOTS + 0u + 6u * 3u - 1u - 3u - 3u);
        close_scene(&it);
        failing_allocator_close(allocator);
    }
}

/* ------------------------------------------------------------------------------------ targets outside */

/* Members follow an entity outside of the prefab, which gets another level, and then ends. */
Test(spawn_commands, targets_outside_may_change_at_the_same_sync_point)
{
    enum { INSTANCES = 5 };
    scene it;
    open_scene(&it, NULL);
    quern_relation follows, knows_many;
    follows = make_relation(it.world, .name = "follows", .on_target_destroyed = QUERN_TARGET_UNRELATES,
                            .levels = true);
    knows_many = make_relation(it.world, .name = "knows many",
                               .on_target_destroyed = QUERN_TARGET_UNRELATES, .many = true);
    const quern_entity leader = make(&it, 20), chief = make(&it, 21), root = make(&it, 22),
                       child = make(&it, 23);
    must(quern_entity_relate(it.world, child, it.parent, root));
    must(quern_entity_relate(it.world, root, follows, leader));
    must(quern_entity_relate(it.world, child, follows, root));
    must(quern_entity_relate(it.world, root, knows_many, leader));
    must(quern_entity_relate(it.world, child, knows_many, root));
    must(quern_entity_relate(it.world, child, knows_many, leader));
    quern_prefab prefab;
    must(quern_prefab_capture(it.world, root, &prefab));
    must(quern_entity_destroy(it.world, root));
    for (uint32_t ends = 0; ends < 2; ends++) {
        quern_commands *commands = quern_world_commands(it.world);
        must(quern_commands_spawn(commands, prefab, NULL, NULL));
        must(quern_commands_spawn(commands, prefab, &(quern_spawn_def){.parent = chief}, NULL));
        must(quern_commands_relate(commands, leader, follows, chief));
        must(quern_commands_spawn(commands, prefab, NULL, NULL));
        if (ends == 1) must(quern_commands_destroy(commands, leader));
        must(quern_commands_spawn(commands, prefab, NULL, NULL));
        must(quern_commands_spawn(commands, prefab, &(quern_spawn_def){.parent = chief}, NULL));
        must(quern_world_flush(it.world));
        assert_valid(it.world); /* rows have the targets and levels of links */
        const quern_term terms[] = {quern_term_read(it.number)};
        quern_query *query = setup_query(it.world, terms, 1);
        uint32_t counts[2] = {0};
        for (quern_query_iterator walk = quern_query_iterate(query); quern_query_next(&walk);)
            for (uint32_t i = 0; i < walk.view.count; i++) {
                const quern_entity entity = walk.view.entities[i];
                const uint64_t number = number_of(&it, entity);
                if (number < 22) continue;
                counts[number - 22]++;
                const quern_entity target = quern_entity_target(it.world, entity, follows);
                const uint32_t known = quern_entity_target_count(it.world, entity, knows_many);
                if (number == 22) {
                    cr_assert_eq(target.bits, ends == 0 ? leader.bits : 0);
                    cr_assert_eq(known, 1u - ends);
                } else {
                    cr_assert_eq(number_of(&it, target), 22u);
                    cr_assert_eq(known, 2u - ends);
                }
                quern_entity above = target;
                uint32_t level = 0;
                for (; above.bits != 0; level++)
                    above = quern_entity_target(it.world, above, follows);
                cr_assert_eq(level, number - 22 + (ends == 0 ? 2u : 0u));
            }
        quern_query_destroy(query);
        cr_assert_eq(counts[0], (1 + ends) * (uint32_t)INSTANCES);
        cr_assert_eq(counts[1], (1 + ends) * (uint32_t)INSTANCES);
    }
    close_scene(&it);
}

/* -------------------------------------------------------------------------------------------- refusals */

/* A parent is one component too much for the root. The instance ends, and commands on it are dropped; an instance
 * without parent stays, and only commands that are too much for it are dropped. */
Test(spawn_commands, refused_instance_takes_no_other_commands_along)
{
    scene it;
    open_scene(&it, NULL);
    const quern_component large = setup_component(it.world, "large", 16 * 1024 - 128, 8);
    const quern_entity home = make(&it, 20);
    quern_entity root, child, refused, kept, made;
    quern_prefab prefab;
    root = setup_entity_with(it.world, &large, 1);
    child = make(&it, 21);
    must(quern_entity_relate(it.world, child, it.parent, root));
    must(quern_prefab_capture(it.world, root, &prefab));
    must(quern_entity_destroy(it.world, root));
    const uint64_t before = stats_of_world(it.world).entity_count;
    for (uint32_t relates = 0; relates < 2; relates++) {
        quern_commands *commands = quern_world_commands(it.world);
        made = record_entity_with(commands, &it.number, (const void *[]){&(uint64_t){30}}, 1);
        must(quern_commands_spawn(commands, prefab, &(quern_spawn_def){.parent = home}, &refused));
        must(quern_commands_spawn(commands, prefab, NULL, &kept));
        const quern_entity lost = quern_commands_spawned_member(commands, prefab, refused, 1);
        must(quern_commands_set(commands, lost, it.number, &(uint64_t){31}));
        must(quern_commands_set(commands, quern_commands_spawned_member(commands, prefab, kept, 1),
                                it.number, &(uint64_t){32}));
        must(quern_commands_set(commands, kept, it.number, &(uint64_t){33}));
        must(quern_commands_add(commands, kept, it.knows, NULL));
        if (relates == 1) {
            must(quern_commands_relate(commands, made, it.parent, lost));
            must(quern_commands_set_name(commands, lost, "lost"));
            must(quern_commands_destroy(commands, refused));
            must(quern_commands_relate(commands, kept, it.parent, home));
        }
        cr_assert_neq(quern_world_flush(it.world), QUERN_OK);
        assert_valid(it.world);
        cr_assert_eq(stats_of_world(it.world).entity_count, before + 3 * (relates + 1u));
        cr_assert_eq(quern_entity_source_count(it.world, home, it.parent), 0u);
        const quern_term terms[] = {quern_term_read(it.number)};
        quern_query *query = setup_query(it.world, terms, 1);
        uint32_t counts[4] = {0};
        for (quern_query_iterator walk = quern_query_iterate(query); quern_query_next(&walk);)
            for (uint32_t i = 0; i < walk.view.count; i++) {
                const uint64_t number = number_of(&it, walk.view.entities[i]);
                if (number < 30) continue;
                counts[number - 30]++;
                if (number == 30) continue;
                root = quern_entity_target(it.world, walk.view.entities[i], it.parent);
                cr_assert(quern_entity_has(it.world, root, large));
            }
        quern_query_destroy(query);
        cr_assert_eq(counts[0], relates + 1);
        cr_assert_eq(counts[1], 0u);
        cr_assert_eq(counts[2], relates + 1);
        cr_assert_eq(counts[3], 0u);
    }
    close_scene(&it);
}

Test(spawn_commands, members_of_all_refused_instances_are_counted)
{
    scene it;
    open_scene(&it, NULL);
    const quern_component large = setup_component(it.world, "large", 16 * 1024 - 128, 8);
    const quern_entity home = make(&it, 20), child = make(&it, 21),
                       root = setup_entity_with(it.world, &large, 1);
    quern_prefab lone, pair;
    must(quern_prefab_capture(it.world, root, &lone));
    must(quern_entity_relate(it.world, child, it.parent, root));
    must(quern_prefab_capture(it.world, root, &pair));
    quern_commands *commands = quern_world_commands(it.world);
    must(quern_commands_spawn(commands, pair, &(quern_spawn_def){.parent = home}, NULL));
    must(quern_commands_spawn(commands, pair, &(quern_spawn_def){.parent = home}, NULL));
    must(quern_commands_spawn(commands, lone, &(quern_spawn_def){.parent = home}, NULL));
    cr_assert_neq(quern_world_flush(it.world), QUERN_OK);
    cr_assert(strstr(quern_error_message(), "commands on 5 entities") != NULL, "%s", quern_error_message());
    assert_valid(it.world);
    close_scene(&it);
}

/* --------------------------------------------------------------------------------------------- limits */

enum { WIDE = 65536, HALF = WIDE / 2 + 1 }; /* 2 * HALF instances have 2^32 + 2^17 members */

typedef struct wide {
    quern_prefab prefab;
    uint32_t spawned_count;
} wide;

static void spawn_half(quern_context *context, const quern_view *view)
{
    wide *it = quern_context_user_data(context);
    (void)view;
    for (uint32_t i = 0; i < HALF; i++)
        it->spawned_count +=
            quern_commands_spawn(quern_context_commands(context), it->prefab, NULL, NULL) == QUERN_OK;
}

/* The instances are listed before entities are counted in other ways. */
Test(spawn_commands, more_members_than_32_bits_count_are_refused)
{
    static const quern_prefab_member_def members[WIDE];
    wide it = {0};
    quern_world *world;
    quern_schedule *schedule;
    must(quern_world_create(NULL, &world));
    must(quern_prefab_create(world, members, WIDE, &it.prefab));
    schedule = setup_schedule(world);
    make_system(schedule, "first", spawn_half, .user_data = &it);
    make_system(schedule, "second", spawn_half, .user_data = &it);
    cr_assert_eq(quern_schedule_run(schedule, NULL, 0), QUERN_ERROR_LIMIT);
    cr_assert(strstr(quern_error_message(), "4295098368 entities") != NULL, "%s", quern_error_message());
    cr_assert_eq(it.spawned_count, 2u * HALF);
    cr_assert_eq(stats_of_world(world).entity_count, 0u);
    assert_valid(world);
    quern_schedule_destroy(schedule);
    quern_world_destroy(world);
}

/* The creates of one callback, members of instances among them, have numbers of 32 bits. */
Test(spawn_commands, clone_after_the_most_creates_of_a_callback_is_refused)
{
    static const quern_prefab_member_def members[WIDE];
    quern_world *world;
    quern_prefab prefab;
    must(quern_world_create(NULL, &world));
    must(quern_prefab_create(world, members, WIDE, &prefab));
    const quern_entity entity = setup_entity(world);
    quern_commands *commands = quern_world_commands(world);
    for (uint32_t i = 0; i < QUERN_MAX_ENTITIES / WIDE; i++)
        must(quern_commands_spawn(commands, prefab, NULL, NULL));
    must(quern_commands_create_many(commands, NULL, NULL, 0, QUERN_MAX_ENTITIES % WIDE - 1, NULL));
    must(quern_commands_clone(commands, entity, NULL, NULL));
    cr_assert_eq(quern_commands_clone(commands, entity, NULL, NULL), QUERN_ERROR_LIMIT, "%s",
                 quern_error_message());
    quern_world_discard_commands(world);
    quern_world_destroy(world);
}
