/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "core/query/query_internal.h"
#include "tests/core/reactions/reaction_scene.h"

/* Old values (quern_term_old), for each way to set a value, and while rows move. */

static reacting old;

static void open_old(void)
{
    open_world();
    old = react(QUERN_REACT_ADDED | QUERN_REACT_SET, quern_term_old(number));
}

static void close_old(void)
{
    reacting_end(&old);
    close_world();
}

TestSuite(old_values, .init = open_old, .fini = close_old);

/* Runs the reaction, which must be shown one set row with this old value. */
static void expect_old(quern_entity entity, uint64_t value)
{
    reacting_look(&old);
    cr_assert_eq(old.count, 1u, "%u rows", old.count);
    cr_assert_eq(old.rows[0].kind, QUERN_REACT_SET);
    cr_assert(quern_entity_equal(old.rows[0].entity, entity));
    cr_assert_not_null(old.rows[0].old[0]);
    cr_assert_eq(*(const uint64_t *)old.rows[0].old[0], value, "%llu",
                 (unsigned long long)*(const uint64_t *)old.rows[0].old[0]);
    reacting_done(&old);
}

static quern_entity create_shown(uint64_t value)
{
    const quern_entity entity = create(value);
    reacting_look(&old);
    reacting_done(&old);
    return entity;
}

static void set(quern_entity entity, uint64_t value)
{
    must(quern_entity_set(world, entity, number, &value));
}

Test(old_values, the_first_of_several_sets_counts)
{
    const quern_entity entity = create_shown(1);
    set(entity, 2);
    set(entity, 3);
    must(quern_commands_set(commands(), entity, number, &(uint64_t){4}));
    flush();
    expect_old(entity, 1);
    set(entity, 5);
    expect_old(entity, 4);
}

Test(old_values, added_rows_have_none_unless_added_is_not_asked_for)
{
    reacting set_only = react(QUERN_REACT_SET, quern_term_old(number));
    const quern_entity entity = create(1);
    set(entity, 2);
    reacting_look(&old);
    cr_assert_eq(old.count, 1u);
    cr_assert_eq(old.rows[0].kind, QUERN_REACT_ADDED);
    cr_assert_null(old.rows[0].old[0]);
    reacting_look(&set_only);
    cr_assert_eq(set_only.count, 1u);
    cr_assert(quern_entity_equal(set_only.rows[0].entity, entity));
    cr_assert_eq(*(const uint64_t *)set_only.rows[0].old[0], 1u);
    reacting_end(&set_only);
}

Test(old_values, commands_in_place_and_in_stages)
{
    quern_entity entities[MANY];
    uint64_t numbers[MANY];
    for (uint32_t turn = 0; turn < 2; turn++) {
        for (uint64_t i = 0; i < MANY; i++)
            numbers[i] = i;
        must(quern_entity_create_many(world, &number, (const void *[]){numbers}, 1, MANY, entities));
        reacting_look(&old);
        reacting_done(&old);
        for (uint64_t i = 0; i < MANY; i++)
            must(quern_commands_set(commands(), entities[i], number, &(uint64_t){i + 1000}));
        for (uint64_t i = 0; i < MANY && turn == 1; i++)
            must(i % 3 == 0 ? quern_commands_add(commands(), entities[i], other, NULL)
                            : quern_commands_set(commands(), entities[i], number, &(uint64_t){i + 2000}));
        flush();
        reacting_look(&old);
        cr_assert_eq(old.count, (uint32_t)MANY);
        for (uint32_t i = 0; i < MANY; i++) {
            const uint64_t *now = quern_entity_get(world, old.rows[i].entity, number);
            cr_assert_eq(*now % 1000, *(const uint64_t *)old.rows[i].old[0]);
        }
        reacting_done(&old);
    }
}

Test(old_values, a_command_that_also_moves_the_entity)
{
    const quern_entity entity = create_shown(7);
    must(quern_commands_set(commands(), entity, number, &(uint64_t){8}));
    must(quern_commands_add(commands(), entity, other, NULL));
    flush();
    expect_old(entity, 7);
    must(quern_commands_remove(commands(), entity, number));
    must(quern_commands_add(commands(), entity, number, &(uint64_t){9}));
    flush();
    expect_old(entity, 8);
}

Test(old_values, accumulated_values)
{
    quern_component sum_type;
    const quern_field fields[] = {{.name = "sum", .type = QUERN_FIELD_U64}};
    quern_component_def def = {.name = "sum", .size_bytes = 8, .alignment_bytes = 8};
    memcpy(def.fields, fields, sizeof fields);
    must(quern_component_register(world, &def, &sum_type));
    reacting sums = react(QUERN_REACT_SET, quern_term_old(sum_type));
    quern_entity entity;
    must(quern_entity_create_with(world, &sum_type, (const void *[]){&(uint64_t){40}}, 1, &entity));
    for (int i = 0; i < 2; i++)
        must(quern_commands_accumulate(commands(), entity, sum_type, &(uint64_t){1}, QUERN_SUM));
    flush();
    cr_assert_eq(*(const uint64_t *)quern_entity_get(world, entity, sum_type), 42u);
    reacting_look(&sums);
    cr_assert_eq(sums.count, 1u);
    cr_assert_eq(*(const uint64_t *)sums.rows[0].old[0], 40u);
    reacting_done(&sums);
    must(quern_entity_set_text(world, entity, "sum.sum", "5"));
    reacting_look(&sums);
    cr_assert_eq(sums.count, 1u);
    cr_assert_eq(*(const uint64_t *)sums.rows[0].old[0], 42u);
    reacting_end(&sums);
}

static quern_component register_sum(const char *name)
{
    quern_component component = make_component(world, .name = name, .size_bytes = 8, .alignment_bytes = 8,
                                               .fields = {{.name = "sum", .type = QUERN_FIELD_U64}});
    return component;
}

static void accumulate(quern_entity entity, quern_component component)
{
    must(quern_commands_accumulate(commands(), entity, component, &(uint64_t){2}, QUERN_SUM));
}

/* Records values accumulated on new entities, on one that gets the component, and on one that has it and moves because it
 * gets another one. */
static void accumulate_on_all(quern_component sum, quern_component late, quern_entity bare,
                              quern_entity has_sum, uint32_t count)
{
    must(quern_commands_set(commands(), bare, sum, &(uint64_t){2}));
    must(quern_commands_set(commands(), has_sum, late, &(uint64_t){2}));
    accumulate(has_sum, sum);
    accumulate(has_sum, late);
    for (uint32_t i = 0; i < count; i++)
        accumulate(i % 2 == 0 ? bare : record_entity_with(commands(), &sum, NULL, 1), sum);
}

Test(old_values, accumulated_values_of_entities_that_did_not_match)
{
    const quern_component sum = register_sum("sum"), late = register_sum("late");
    quern_result result = QUERN_ERROR_OUT_OF_MEMORY;
    uint32_t count = 16; /* doubles, so that each round needs more memory than the one before */
    for (uint64_t call = 0; result != QUERN_OK; call++, count *= 2) {
        reacting sums = react(QUERN_REACT_SET | QUERN_REACT_REMOVED, quern_term_old(sum)),
                 lates = react(QUERN_REACT_SET, quern_term_read(late));
        const quern_entity bare = create(1);
        quern_entity has_sum;
        must(quern_entity_create_with(world, &sum, (const void *[]){&(uint64_t){40}}, 1, &has_sum));
        accumulate_on_all(sum, late, bare, has_sum, count);
        failing_allocator_fail_at(memory, 1 + call);
        result = quern_world_flush(world);
        failing_allocator_heal(memory);
        if (result != QUERN_OK) must(quern_world_flush(world));
        assert_valid(world);
        cr_assert_eq(*(const uint64_t *)quern_entity_get(world, bare, sum), 2 + count);
        reacting_look(&sums);
        cr_assert_eq(sums.count, 1u);
        cr_assert(quern_entity_equal(sums.rows[0].entity, has_sum));
        cr_assert_eq(*(const uint64_t *)sums.rows[0].old[0], 40u);
        reacting_done(&sums);
        reacting_look(&lates);
        cr_assert_eq(lates.count, 0u);
        accumulate(bare, sum); /* both match by now */
        accumulate(has_sum, late);
        must(quern_commands_add(commands(), bare, tag, NULL));
        flush();
        reacting_look(&sums);
        reacting_look(&lates);
        cr_assert_eq(sums.count, 1u);
        cr_assert_eq(lates.count, 1u);
        reacting_done(&sums);
        reacting_done(&lates);
        reacting_end(&sums);
        reacting_end(&lates);
    }
}

Test(old_values, of_a_mark_after_the_write)
{
    const quern_entity entity = create_shown(3);
    *(uint64_t *)quern_entity_get(world, entity, number) = 4;
    must(quern_entity_mark_changed(world, entity, number));
    set(entity, 5);
    expect_old(entity, 4);
}

Test(old_values, of_a_relation_are_old_targets)
{
    const quern_component parent = quern_relation_component(quern_world_parent(world));
    const quern_entity child = create(0), first = create(1), second = create(2);
    must(quern_entity_relate(world, first, quern_world_parent(world), second));
    must(quern_entity_relate(world, child, quern_world_parent(world), second));
    reacting parents = react(QUERN_REACT_SET, quern_term_old(parent));
    must(quern_entity_relate(world, child, quern_world_parent(world), first)); /* another level */
    reacting_look(&parents);
    cr_assert_eq(parents.count, 1u);
    cr_assert(quern_entity_equal(*(const quern_entity *)parents.rows[0].old[0], second));
    reacting_done(&parents);
    must(quern_commands_relate(commands(), child, quern_world_parent(world), second));
    flush();
    reacting_look(&parents);
    cr_assert_eq(parents.count, 1u);
    cr_assert(quern_entity_equal(*(const quern_entity *)parents.rows[0].old[0], first));
    reacting_end(&parents);
}

Test(old_values, setting_another_component_of_the_reaction_counts_too)
{
    const quern_term terms[] = {quern_term_old(number), quern_term_old(other),
                                quern_term_optional(big, QUERN_ACCESS_READ)};
    quern_entity entity;
    must(quern_entity_create_with(world, (const quern_component[]){number, other},
                                  (const void *[]){&(uint64_t){1}, &(uint64_t){2}}, 2, &entity));
    reacting both = reacting_begin(world, QUERN_REACT_SET, terms, 3);
    must(quern_entity_set(world, entity, other, &(uint64_t){20}));
    set(entity, 10);
    reacting_look(&both);
    cr_assert_eq(both.count, 1u);
    cr_assert_eq(*(const uint64_t *)both.rows[0].old[0], 1u);
    cr_assert_eq(*(const uint64_t *)both.rows[0].old[1], 2u);
    cr_assert_null(both.rows[0].old[2]);
    reacting_done(&both);
    must(quern_entity_add(world, entity, big, NULL)); /* gains a value that the reaction reads */
    set(entity, 11);
    reacting_look(&both);
    cr_assert_eq(both.count, 1u);
    cr_assert_eq(*(const uint64_t *)both.rows[0].old[0], 10u);
    cr_assert_eq(*(const uint64_t *)both.rows[0].old[1], 20u);
    reacting_end(&both);
}

Test(old_values, move_with_their_rows)
{
    quern_entity entities[MANY];
    create_many_old(entities, MANY);
    reacting_look(&old);
    reacting_done(&old);
    for (uint64_t i = 0; i < MANY; i += 2)
        set(entities[i], i + 1000);
    for (uint32_t i = 0; i < MANY; i++) /* gaps are filled with the last rows */
        if (i % 5 == 1)
            must(quern_entity_destroy(world, entities[i]));
        else if (i % 5 == 2)
            must(quern_entity_add(world, entities[i], tag, NULL));
        else if (i % 5 == 3)
            must(quern_commands_add(commands(), entities[i], other, NULL));
    flush();
    must(quern_entity_remove_matching(old.query, big, NULL));
    assert_valid(world);
    reacting_look(&old);
    uint32_t expected = 0;
    for (uint32_t i = 0; i < MANY; i += 2)
        expected += i % 5 != 1;
    cr_assert_eq(old.count, expected);
    for (uint32_t i = 0; i < old.count; i++) {
        const uint64_t *now = quern_entity_get(world, old.rows[i].entity, number);
        cr_assert_eq(*now, *(const uint64_t *)old.rows[i].old[0] + 1000);
    }
}

Test(old_values, put_back_rows_keep_them)
{
    const quern_entity entity = create_shown(1);
    set(entity, 2);
    reacting_look(&old);
    quern__reaction_put_back(&world->storage, old.reaction);
    set(entity, 3);
    expect_old(entity, 1);
    set(entity, 4);
    quern__reaction_drop(&world->storage, old.reaction);
    set(entity, 5);
    expect_old(entity, 4);
}

Test(old_values, memory_follows_the_chunks)
{
    quern_entity entities[MANY];
    create_many_old(entities, MANY);
    const quern__archetype *archetype = told.rows[0].archetype;
    const quern__old_values *values = &quern__find_subscription(archetype, old.reaction)->old;
    cr_assert_gt(archetype->held_count, 1u);
    cr_assert_geq(values->blocks.count, archetype->held_count);
    must(quern_entity_destroy_many(world, entities, MANY));
    reacting_look(&told);
    reacting_done(&told);
    must(quern_world_trim(world));
    cr_assert_eq(values->blocks.count, archetype->held_count);
    cr_assert_eq(quern__find_subscription(archetype, told.reaction)->old.blocks.count, 0u);
}
