/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "tests/support/failing_allocator.h"
#include "tests/support/random.h"
#include "tests/support/setup.h"
#include "tests/support/tracked.h"

#include <string.h>

/* Compact instances are spawned together at the sync point (core/record/spawn.h). The result must not
 * depend on which instances are compact and which are expanded. */

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
    must(quern_component_register(
        in->world,
        &(quern_component_def){.name = "knows",
                               .size_bytes = sizeof(knows),
                               .alignment_bytes = 8,
                               .fields = {{"entity", QUERN_FIELD_ENTITY, 0, .count = 1}}},
        &in->knows));
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

Test(prefab_compact, instances_among_creates_take_handles_in_order)
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
        if (i % 7 == 0) quern_commands_create_with(commands, &it.number, (const void *[]){&number}, 1);
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

/* Naming a member expands its instance. The commands add and remove a tag, which leaves no other effect. */
Test(prefab_compact, naming_members_does_not_change_the_result)
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
Test(prefab_compact, instances_are_spawned_among_destroyed_entities)
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

Test(prefab_compact, values_accumulate_in_what_was_just_spawned)
{
    scene it;
    open_scene(&it, NULL);
    use_free_slots(&it);
    quern_component points;
    must(quern_component_register(
        it.world,
        &(quern_component_def){.name = "points",
                               .size_bytes = 8,
                               .alignment_bytes = 8,
                               .fields = {{"points", QUERN_FIELD_U64, 0, .count = 1}}},
        &points));
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

/* ------------------------------------------------------- expanded instances of a prefab with one member */

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

/* Relating expands both instances, the source first. Their creates are consecutive in the stream, in the
 * order of expansion, not of spawning; the instances between them stay compact. */
Test(prefab_compact, instances_may_be_expanded_in_any_order)
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
                quern_commands_create_with(commands, &it.number, (const void *[]){&(uint64_t){200 + i}}, 1);
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

/* The create joins the open batch, which ends with the creates of an instance spawned before it. */
Test(prefab_compact, create_may_precede_an_instance_expanded_later)
{
    scene it;
    open_scene(&it, NULL);
    quern_commands *commands = quern_world_commands(it.world);
    const quern_entity stone = spawn_stone(&it, commands, 100);
    const quern_entity made =
        quern_commands_create_with(commands, &it.number, (const void *[]){&(uint64_t){200}}, 1);
    must(quern_commands_relate(commands, made, it.parent, stone));
    must(quern_world_flush(it.world));
    const quern_entity parent = quern_entity_target(it.world, find_number(&it, 200), it.parent);
    cr_assert_eq(parent.bits, find_number(&it, 100).bits);
    close_scene(&it);
}

/* An instance with an override that contains a handle is expanded when it is spawned. The instance
 * before it is expanded later. */
Test(prefab_compact, instance_may_be_expanded_after_one_expanded_from_the_start)
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
Test(prefab_compact, instance_counts_as_the_same_number_of_commands_in_both_forms)
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
    close_scene(&it);
}

/* --------------------------------------------------------------------------------- pending commands */

Test(prefab_compact, prefabs_are_retained_while_commands_are_pending)
{
    quern_entity roots[4];
    scene it;
    open_scene(&it, NULL);
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
}

Test(prefab_compact, pending_commands_are_released_with_the_world)
{
    scene it;
    open_scene(&it, NULL);
    quern_commands *commands = quern_world_commands(it.world);
    quern_entity root;
    must(quern_commands_spawn(commands, it.tower, NULL, &root));
    must(quern_commands_spawn(commands, it.tower, NULL, NULL));
    must(quern_prefab_destroy(it.world, it.tower));
    /* expands the instance, which copies the prefab's values */
    must(quern_commands_add(commands, root, it.marked, NULL));
    close_scene(&it);
}

/* Overrides that do not fit into one command block together are recorded member by member. */
Test(prefab_compact, overrides_may_be_larger_than_a_block_of_commands)
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

/* If memory for expanding an instance runs out, the instance stays compact. */
Test(prefab_compact, instance_that_cannot_be_expanded_is_still_spawned)
{
    static quern_entity roots[TOWERS];
    failing_allocator *allocator = failing_allocator_create();
    const quern_world_def def = {.allocator = failing_allocator_interface(allocator)};
    scene it;
    open_scene(&it, &def);
    quern_commands *commands = quern_world_commands(it.world);
    for (uint32_t i = 0; i < TOWERS; i++)
        must(quern_commands_spawn(commands, it.tower, NULL, &roots[i]));
    must(quern_commands_add(commands, roots[0], it.marked, NULL));
    failing_allocator_fail_from(allocator, failing_allocator_call_count(allocator) + 1);
    uint32_t expanded = 1;
    while (expanded < TOWERS && quern_commands_add(commands, roots[expanded], it.marked, NULL) == QUERN_OK)
        expanded++;
    cr_assert_lt(expanded, (uint32_t)TOWERS);
    failing_allocator_heal(allocator);
    cr_assert_eq(quern_world_flush(it.world), QUERN_ERROR_OUT_OF_MEMORY, "the add is lost");
    cr_assert_eq(stats_of_world(it.world).entity_count, 3u * TOWERS);
    const quern_term terms[] = {quern_term_with(it.marked)};
    quern_query *query = setup_query(it.world, terms, 1);
    cr_assert_eq(quern_query_count(query), expanded);
    quern_query_destroy(query);
    close_scene(&it);
    failing_allocator_close(allocator);
}

Test(prefab_compact, failed_allocations_lose_nothing)
{
    static quern_entity roots[2 * TOWERS];
    for (uint32_t nth = 1, is_done = 0; !is_done; nth++) {
        failing_allocator *allocator = failing_allocator_create();
        const quern_world_def def = {.allocator = failing_allocator_interface(allocator)};
        scene it;
        open_scene(&it, &def);
        quern_commands *commands = quern_world_commands(it.world);
        failing_allocator_fail_at(allocator, failing_allocator_call_count(allocator) + nth);
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
