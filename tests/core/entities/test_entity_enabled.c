/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */

#include "tests/support/fixture.h"
#include "tests/support/random.h"

#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------------------------------ one entity */

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
        must(quern_entity_set_enabled(world, all[i].handle, kind == 1));
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
            if (!runs_out_of_memory(allocator, call, quern_entity_set_enabled(world, top, active))) break;
            assert_valid(world);
            cr_assert_eq(quern_world_hash(world), hash);
        }
    assert_valid(world);
    cr_assert_gt(refused_count, 5u);
    quern_world_destroy(world);
    world = kept;
    failing_allocator_close(allocator);
}

/* --------------------------------------------------------------------------------------- many entities */

/* One call enables or disables a component of all listed entities, or of none. */

enum { ENTITIES = 3000, LONG_LIST = 20000 /* long enough that the call allocates memory */ };

static failing_allocator *allocator;
static quern_component size, other, tag, solid; /* all but the last can be disabled */
static quern_entity entities[ENTITIES];
static quern_entity list[LONG_LIST];
static captured_reports reports;

static quern_component register_component(const char *name, uint32_t size_bytes, bool can_disable)
{
    quern_component component =
        make_component(world, .name = name, .size_bytes = size_bytes,
                       .alignment_bytes = size_bytes > 0 ? 8 : 1, .can_disable = can_disable);
    return component;
}

/* Every second entity also has `other`, every third one the tag. The four archetypes have one to three bit columns. */
static void open_crowd(void)
{
    allocator = open_failing_world();
    other = register_component("other", 24, true);
    size = register_component("number", 8, true);
    tag = register_component("tag", 0, true);
    solid = register_component("solid", 8, false);
    for (uint32_t i = 0; i < ENTITIES; i++) {
        entities[i] = setup_entity_with(world, (quern_component[]){size, other}, 1 + i % 2);
        if (i % 3 == 0) must(quern_entity_add(world, entities[i], tag, NULL));
    }
    capture_reports(&reports);
}

TestSuite(enable_many, .init = open_crowd, .fini = close_world);

static void fill_list(random_source *random, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        list[i] = entities[random_below(random, ENTITIES)];
}

/* Performs the single calls on the model. */
static void set_model(bool *is_disabled, uint32_t count, bool enabled)
{
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t k = 0; k < ENTITIES; k++)
            if (quern_entity_equal(list[i], entities[k])) is_disabled[k] = !enabled;
}

static void check_model(const bool *is_disabled, quern_component component)
{
    for (uint32_t i = 0; i < ENTITIES; i++)
        cr_assert_eq(quern_entity_is_component_enabled(world, entities[i], component), !is_disabled[i],
                     "entity %u", i);
    assert_valid(world);
}

Test(enable_many, agrees_with_single_calls)
{
    static bool is_disabled[ENTITIES];
    static const uint32_t counts[] = {1, 2, 63, 64, 65, 128, 129, 700, 0};
    random_source random = {17};
    for (uint32_t round = 0; round < 36; round++) {
        const uint32_t count = counts[round % 9];
        const bool enabled = random_chance(&random, 50);
        fill_list(&random, count);
        must(quern_entity_set_component_enabled_many(world, list, count, size, enabled));
        set_model(is_disabled, count, enabled);
        check_model(is_disabled, size);
    }
}

Test(enable_many, long_list_may_contain_entities_repeatedly)
{
    bool every[ENTITIES], none[ENTITIES] = {false};
    memset(every, true, sizeof every);
    for (uint32_t i = 0; i < LONG_LIST; i++)
        list[i] = entities[i % ENTITIES];
    must(quern_entity_set_component_enabled_many(world, list, LONG_LIST, size, false));
    check_model(every, size);
    must(quern_entity_set_component_enabled_many(world, list, LONG_LIST, size, true));
    check_model(none, size);
    must(quern_entity_set_component_enabled_many(world, NULL, 0, size, false));
    check_model(none, size);
}

Test(enable_many, switches_tags_and_keeps_other_components)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < ENTITIES; i += 3)
        list[count++] = entities[i];
    must(quern_entity_set_component_enabled_many(world, list, count, tag, false));
    for (uint32_t i = 0; i < ENTITIES; i++) {
        cr_assert_not(quern_entity_is_component_enabled(world, entities[i], tag));
        cr_assert(quern_entity_is_component_enabled(world, entities[i], size));
    }
    assert_valid(world);
}

/* Returns whether a query with a change filter on the number has any view. */
static bool has_changed(quern_query *changed)
{
    bool any = false;
    quern_query_iterator it = quern_query_iterate(changed);
    while (quern_query_next(&it))
        any = true;
    must(it.result);
    return any;
}

Test(enable_many, only_successful_call_passes_change_filters)
{
    quern_query *changed =
        setup_query(world, (quern_term[]){quern_term_changed(quern_term_either(quern_term_read(size)))}, 1);
    has_changed(changed);
    cr_assert_not(has_changed(changed));
    memcpy(list, entities, sizeof entities);
    list[ENTITIES - 1] = quern_entity_null();
    must_refuse(NULL_ENTITY, world,
                quern_entity_set_component_enabled_many(world, list, ENTITIES, size, false));
    cr_assert_not(has_changed(changed));
    must(quern_entity_set_component_enabled_many(world, list, ENTITIES - 1, size, false));
    cr_assert(has_changed(changed));
}

/* ------------------------------------------------------------------------------------------- refusals */

/* Checks that a list with a wrong entity at index `place` changes nothing, with some entities disabled before. */
static void refuse_at(uint32_t place, quern_entity wrong, quern_result expected)
{
    random_source random = {place};
    fill_list(&random, LONG_LIST);
    list[place] = wrong;
    const uint32_t count = place + 1 + random_below(&random, LONG_LIST - place);
    assert_refused(world, expected,
                   quern_entity_set_component_enabled_many(world, list, count, size, false));
    assert_refused(world, expected,
                   quern_entity_set_component_enabled_many(world, list, count, size, true));
    assert_valid(world);
}

Test(enable_many, wrong_entity_changes_nothing)
{
    static const uint32_t places[] = {0, 1, 63, 64, 100, 127, 128, 5000, LONG_LIST - 1};
    const quern_entity stale = setup_entity_with(world, &size, 1);
    const quern_entity lacking = setup_entity_with(world, &solid, 1);
    must(quern_entity_destroy(world, stale));
    must(quern_entity_set_component_enabled_many(world, entities, ENTITIES / 2, size, false));
    for (uint32_t i = 0; i < sizeof places / sizeof *places; i++) {
        refuse_at(places[i], stale, QUERN_ERROR_STALE_ENTITY);
        refuse_at(places[i], lacking, QUERN_ERROR_COMPONENT_ABSENT);
        refuse_at(places[i], quern_entity_null(), QUERN_ERROR_NULL_ENTITY);
        refuse_at(places[i], entity_provisional(3), QUERN_ERROR_PROVISIONAL_ENTITY);
        refuse_at(places[i], entity_of_other_world(entities[0]), QUERN_ERROR_FOREIGN_ENTITY);
    }
}

Test(enable_many, message_names_the_wrong_element)
{
    memcpy(list, entities, sizeof entities);
    list[77] = setup_entity_with(world, &solid, 1);
    cr_assert_eq(quern_entity_set_component_enabled_many(world, list, 100, size, false),
                 QUERN_ERROR_COMPONENT_ABSENT);
    cr_assert_not_null(strstr(quern_error_message(), "quern_entity_set_component_enabled_many: element 77: "
                                                     "entity 3000:1 does not have 'number'"),
                       "%s", quern_error_message());
    list[70] = quern_entity_null();
    cr_assert_eq(quern_entity_set_component_enabled_many(world, list, 100, size, false),
                 QUERN_ERROR_NULL_ENTITY);
    cr_assert_not_null(strstr(quern_error_message(), "element 70: "), "%s", quern_error_message());
}

static void enable_from_fill(quern_context *context, const quern_view *view)
{
    must_refuse(WORLD_LOCKED, NULL,
                quern_entity_set_component_enabled_many(world, entities, 2, size, false));
}

Test(enable_many, wrong_arguments_and_locked_world_are_refused)
{
    must_refuse(NULL_ARGUMENT, world,
                quern_entity_set_component_enabled_many(NULL, entities, 2, size, false));
    must_refuse(NULL_ARGUMENT, world, quern_entity_set_component_enabled_many(world, NULL, 2, size, false));
    assert_refused(
        world, QUERN_ERROR_UNKNOWN_COMPONENT,
        quern_entity_set_component_enabled_many(world, entities, 2, component_unregistered(size), false));
    must_refuse(INVALID_ARGUMENT, world,
                quern_entity_set_component_enabled_many(world, entities, 2, solid, false));
    must(quern_entity_create_filled(world, &solid, 1, 1, enable_from_fill, NULL, NULL));
}

Test(enable_many, missing_memory_changes_nothing)
{
    for (uint32_t i = 0; i < LONG_LIST; i++)
        list[i] = entities[i % ENTITIES];
    failing_allocator_fail_from(allocator, 1);
    must_refuse(OUT_OF_MEMORY, world,
                quern_entity_set_component_enabled_many(world, list, LONG_LIST, size, false));
    must(quern_entity_set_component_enabled_many(world, list, ENTITIES, size,
                                                 false)); /* a short list needs no memory */
    failing_allocator_heal(allocator);
    must(quern_entity_set_component_enabled_many(world, list, LONG_LIST, size, true));
    assert_valid(world);
}
