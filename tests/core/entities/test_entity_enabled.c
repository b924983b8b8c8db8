/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "tests/support/fixture.h"
#include "tests/support/random.h"

#include <stdlib.h>

static quern_relation parent;
static quern_component number;

static void open_world(void)
{
    world = setup_world();
    parent = quern_world_parent(world);
    number = setup_component(world, "number", sizeof(uint64_t), 8);
}

TestSuite(entity_enabled, .init = open_world, .fini = close_world);

static quern_entity root(void)
{
    return setup_entity_with(world, &number, 1);
}

static quern_entity child(quern_entity target)
{
    const quern_entity entity = root();
    must(quern_entity_relate(world, entity, parent, target));
    return entity;
}

static bool is_on(quern_entity entity)
{
    const bool is_active = quern_entity_is_enabled(world, entity);
    cr_assert_eq(is_active, !quern_entity_has(world, entity, quern_world_disabled_tag(world)));
    return is_active;
}

static void set(quern_entity entity, bool active)
{
    must(quern_entity_set_enabled(world, entity, active));
    assert_valid(world);
}

Test(entity_enabled, one_entity_is_disabled_and_enabled)
{
    const quern_entity entity = root(), other = root();
    *(uint64_t *)quern_entity_get(world, entity, number) = 5;
    cr_assert(is_on(entity));
    set(entity, false);
    cr_assert_not(is_on(entity));
    cr_assert(is_on(other));
    set(entity, false);
    set(entity, true);
    set(entity, true);
    cr_assert(is_on(entity));
    cr_assert_eq(*(uint64_t *)quern_entity_get(world, entity, number), 5u);
}

Test(entity_enabled, tree_changes_as_a_whole)
{
    const quern_entity a = root(), b = child(a), c = child(b), d = child(a), other = root();
    set(a, false);
    cr_assert(!is_on(a) && !is_on(b) && !is_on(c) && !is_on(d) && is_on(other));
    set(a, true);
    cr_assert(is_on(a) && is_on(b) && is_on(c) && is_on(d));
    set(b, false);
    cr_assert(is_on(a) && !is_on(b) && !is_on(c) && is_on(d));
}

Test(entity_enabled, entity_disabled_before_its_parent_stays_disabled)
{
    const quern_entity a = root(), b = child(a), c = child(b), d = child(a);
    set(b, false);
    set(a, false);
    set(a, true);
    cr_assert(is_on(a) && !is_on(b) && !is_on(c) && is_on(d));
    set(b, true);
    cr_assert(is_on(b) && is_on(c));
}

Test(entity_enabled, enabled_entity_waits_for_disabled_parent)
{
    const quern_entity a = root(), b = child(a), c = child(b);
    set(b, false);
    set(a, false);
    set(b, true);
    cr_assert(!is_on(b) && !is_on(c));
    set(a, true);
    cr_assert(is_on(a) && is_on(b) && is_on(c));
}

Test(entity_enabled, entity_disabled_under_disabled_parent_stays_disabled)
{
    const quern_entity a = root(), b = child(a), c = child(b);
    set(a, false);
    set(b, false);
    set(a, true);
    cr_assert(is_on(a) && !is_on(b) && !is_on(c));
}

Test(entity_enabled, related_entity_keeps_its_state_until_its_tree_changes)
{
    const quern_entity a = root(), late = root();
    set(a, false);
    must(quern_entity_relate(world, late, parent, a));
    cr_assert(is_on(late));
    const quern_entity below = child(a);
    set(a, false); /* again: the call now also reaches them */
    cr_assert(!is_on(late) && !is_on(below));
    set(a, true);
    cr_assert(is_on(late) && is_on(below));
}

Test(entity_enabled, enabling_under_disabled_parent_disables_descendants)
{
    const quern_entity a = root(), late = root(), below = child(late), lowest = child(below);
    set(below, false);
    set(a, false);
    must(quern_entity_relate(world, late, parent, a));
    const quern_entity beside = child(late);
    set(late, true);
    cr_assert(!is_on(late) && !is_on(beside) && !is_on(below) && !is_on(lowest));
    set(a, true);
    cr_assert(is_on(late) && is_on(beside) && !is_on(below) && !is_on(lowest));
}

Test(entity_enabled, change_reaches_below_entities_disabled_themselves)
{
    const quern_entity a = root(), b = child(a), after = child(a);
    set(b, false);
    const quern_entity late = child(b);
    cr_assert(is_on(late));
    set(a, true);
    cr_assert(is_on(a) && !is_on(b) && !is_on(late) && is_on(after));
    set(b, true);
    cr_assert(is_on(b) && is_on(late));
}

Test(entity_enabled, tag_may_be_added_and_removed_directly)
{
    const quern_component disabled = quern_world_disabled_tag(world);
    const quern_entity a = root(), b = child(a), c = child(a);
    must(quern_entity_add(world, b, disabled, NULL));
    set(a, false);
    must(quern_entity_remove(world, c, disabled));
    cr_assert(is_on(c));
    set(a, true);
    cr_assert(is_on(a) && !is_on(b) && is_on(c));
    must(quern_entity_add(world, c, disabled, NULL)); /* the state from before is gone */
    set(a, false);
    set(a, true);
    cr_assert(!is_on(b) && !is_on(c));
}

Test(entity_enabled, chain_of_ten_thousand_changes)
{
    enum { DEPTH = 10000 };
    quern_entity *chain = calloc(DEPTH, sizeof *chain);
    chain[0] = root();
    for (uint32_t i = 1; i < DEPTH; i++)
        chain[i] = child(chain[i - 1]);
    set(chain[0], false);
    for (uint32_t i = 0; i < DEPTH; i++)
        cr_assert_not(quern_entity_is_enabled(world, chain[i]));
    set(chain[DEPTH / 2], false);
    set(chain[0], true);
    for (uint32_t i = 0; i < DEPTH; i++)
        cr_assert_eq(quern_entity_is_enabled(world, chain[i]), i < DEPTH / 2);
    free(chain);
}

Test(entity_enabled, wrong_calls_are_refused)
{
    const quern_entity entity = root(), dead = root();
    must(quern_entity_destroy(world, dead));
    must_refuse(NULL_ARGUMENT, NULL, quern_entity_set_enabled(NULL, entity, false));
    must_refuse(STALE_ENTITY, world, quern_entity_set_enabled(world, dead, false));
    must_refuse(NULL_ENTITY, world, quern_entity_set_enabled(world, quern_entity_null(), true));
    assert_refused_value(world, quern_entity_is_enabled(world, dead));
    assert_refused_value(NULL, quern_entity_is_enabled(NULL, entity));
    quern_world *other = setup_world();
    const quern_entity there = setup_entity(other);
    setup_tag(other, "disabled");
    must_refuse(DUPLICATE_NAME, other, quern_entity_set_enabled(other, there, false));
    must(quern_entity_set_enabled(other, there, true));
    quern_world_destroy(other);
}

Test(entity_enabled, hidden_tag_is_not_found_by_name)
{
    const quern_component disabled = quern_world_disabled_tag(world);
    const quern_component hidden = {disabled.bits + 1};
    const quern_entity entity = root();
    cr_assert_eq(quern_component_find(world, quern_component_name(world, hidden)).bits, 0u);
    must_refuse(INVALID_ARGUMENT, world, quern_entity_add(world, entity, hidden, NULL));
    setup_tag(world, "disabled by parent"); /* the hidden tag does not occupy its name */
}

/* ---------------------------------------------------------------------------------- random programs */

enum { COUNT = 60 };

/* Model of the rules of enabled.h, by entity. */
typedef struct naive {
    quern_entity handle;
    uint32_t parent;       /* COUNT: none */
    bool has_tag;          /* whether the entity is off */
    bool is_off_by_parent; /* whether its parent is the reason; other calls on the tag do not change it */
} naive;

static naive all[COUNT];

static bool naive_is_on(uint32_t i)
{
    return i == COUNT || !all[i].has_tag;
}

static void naive_follow_parent(uint32_t i)
{
    all[i].has_tag = all[i].is_off_by_parent = !naive_is_on(all[i].parent);
}

static void naive_follow_below(uint32_t i)
{
    for (uint32_t k = 0; k < COUNT; k++) {
        if (all[k].parent != i) continue;
        if (!all[k].has_tag || all[k].is_off_by_parent) naive_follow_parent(k);
        naive_follow_below(k);
    }
}

static void naive_set(uint32_t i, bool active)
{
    if (active)
        naive_follow_parent(i);
    else
        all[i].has_tag = true, all[i].is_off_by_parent = false;
    naive_follow_below(i);
}

static void change_tag(uint32_t i, bool has_tag)
{
    const quern_component disabled = quern_world_disabled_tag(world);
    if (all[i].has_tag == has_tag) return;
    must(has_tag ? quern_entity_add(world, all[i].handle, disabled, NULL)
                 : quern_entity_remove(world, all[i].handle, disabled));
    all[i].has_tag = has_tag;
}

/* Changes tags and parents by commands that one flush applies. */
static void run_commands(random_source *random)
{
    const quern_component disabled = quern_world_disabled_tag(world);
    quern_commands *commands = quern_world_commands(world);
    for (uint32_t n = random_below(random, 6); n > 0; n--) {
        const uint32_t i = random_below(random, COUNT);
        const bool has_tag = random_chance(random, 50);
        must(has_tag ? quern_commands_add(commands, all[i].handle, disabled, NULL)
                     : quern_commands_remove(commands, all[i].handle, disabled));
        all[i].has_tag = has_tag;
        if (all[i].parent == COUNT || random_chance(random, 70)) continue;
        must(quern_commands_unrelate(commands, all[i].handle, parent));
        all[i].parent = COUNT;
    }
    must(quern_world_flush(world));
}

static void step(random_source *random)
{
    const uint32_t i = random_below(random, COUNT), k = random_below(random, COUNT);
    const uint32_t kind = random_below(random, 6);
    if (kind < 2) {
        const quern_result result = quern_entity_set_enabled(world, all[i].handle, kind == 1);
        must(result);
        naive_set(i, kind == 1);
    } else if (kind == 2) {
        if (i != k && quern_entity_relate(world, all[i].handle, parent, all[k].handle) == QUERN_OK)
            all[i].parent = k;
    } else if (kind == 3) {
        change_tag(i, random_chance(random, 50));
    } else if (kind == 4) {
        run_commands(random);
    } else if (all[i].parent != COUNT && random_chance(random, 50)) {
        must(quern_entity_unrelate(world, all[i].handle, parent));
        all[i].parent = COUNT;
    }
}

static void run_program(uint64_t seed)
{
    random_source random = {seed};
    for (uint32_t i = 0; i < COUNT; i++) {
        all[i] = (naive){.handle = root(), .parent = COUNT};
        *(uint64_t *)quern_entity_get(world, all[i].handle, number) = i;
    }
    for (uint32_t n = 0; n < 2000; n++) {
        step(&random);
        for (uint32_t i = 0; i < COUNT; i++) {
            cr_assert_eq(quern_entity_is_enabled(world, all[i].handle), naive_is_on(i),
                         "seed %llu, step %u", (unsigned long long)seed, n);
            cr_assert_eq(*(uint64_t *)quern_entity_get(world, all[i].handle, number), i);
        }
        if (n % 100 == 0) assert_valid(world);
    }
}

Test(entity_enabled, random_programs_agree_with_the_rules)
{
    for (uint64_t seed = 1; seed < 4; seed++) {
        if (seed > 1) close_world();
        if (seed > 1) open_world();
        run_program(seed);
    }
}

/* --------------------------------------------------------------------------------------- out of memory */

Test(entity_enabled, missing_memory_changes_nothing)
{
    failing_allocator *allocator = failing_allocator_create();
    const quern_world_def def = {.allocator = failing_allocator_interface(allocator)};
    quern_world *kept = world;
    must(quern_world_create(&def, &world));
    parent = quern_world_parent(world);
    number = setup_component(world, "number", sizeof(uint64_t), 8);
    quern_entity top = root();
    for (uint32_t i = 0; i < 200; i++)
        child(i % 3 == 0 ? top : child(top));
    uint32_t refused_count = 0;
    bool active = false;
    for (uint32_t round = 0; round < 4; round++, active = !active)
        for (uint32_t call = 1;; call++, refused_count++) {
            const uint64_t hash = quern_world_hash(world);
            failing_allocator_fail_at(allocator, failing_allocator_call_count(allocator) + call);
            const quern_result result = quern_entity_set_enabled(world, top, active);
            failing_allocator_heal(allocator);
            assert_valid(world);
            if (result == QUERN_OK) break;
            cr_assert_eq(result, QUERN_ERROR_OUT_OF_MEMORY);
            cr_assert_eq(quern_world_hash(world), hash);
        }
    cr_assert_gt(refused_count, 5u);
    quern_world_destroy(world);
    world = kept;
    failing_allocator_close(allocator);
}
