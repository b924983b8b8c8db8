/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "tests/core/lists/bag.h"
#include "tests/support/failing_allocator.h"
#include "tests/support/fixture.h"

#include <string.h>

/* Lists as text, and in prefabs. */

static failing_allocator *memory;
static quern_component bag_id;

static void open_world(void)
{
    memory = failing_allocator_create();
    const quern_allocator allocator = failing_allocator_interface(memory);
    must(quern_lists_set_allocator(&allocator));
    world = setup_world();
    bag_id = bag_register(world);
}

static void close_all(void)
{
    close_valid_world();
    failing_allocator_close(memory);
    assert_at_end(quern_lists_set_allocator(NULL) == QUERN_OK);
}

TestSuite(list_text, .init = open_world, .fini = close_all);

static bag *bag_of(quern_entity entity)
{
    return quern_entity_get(world, entity, bag_id);
}

static quern_entity filled_entity(void)
{
    quern_string name = {{{0}, 0, 0}};
    const quern_entity entity = setup_entity(world);
    must(quern_entity_add(world, entity, bag_id, NULL));
    bag *it = bag_of(entity);
    must(QUERN_LIST_PUSH(&it->items, bag_item, {.kind = 1, .count = 2}, {.kind = 3, .owner = entity}));
    must(QUERN_LIST_PUSH(&it->scores, float, 1, 2.5f));
    must(QUERN_LIST_PUSH(&it->friends, quern_entity, entity, {0}));
    must(quern_string_set(&it->label, "a \"label\""));
    must(quern_string_set(&name, "Ann"));
    must(QUERN_LIST_PUSH(&it->names, quern_string, name));
    quern_string_free(&name);
    return entity;
}

static const char *text_of(quern_entity entity, const char *path)
{
    static char written[256];
    quern_text_buffer buffer = {written, sizeof written, 0};
    must(quern_entity_get_text(world, entity, path, quern_sink_text(&buffer)));
    return written;
}

#define assert_text(entity, path, expected) cr_assert_str_eq(text_of((entity), (path)), (expected))

Test(list_text, lists_are_read_by_path)
{
    const quern_entity entity = filled_entity();
    assert_text(entity, "bag.label", "a \"label\"");
    assert_text(entity, "bag.scores", "[1, 2.5]");
    assert_text(entity, "bag.scores[1]", "2.5");
    assert_text(entity, "bag.items", "2 elements");
    assert_text(entity, "bag.items[0].count", "2");
    assert_text(entity, "bag.items[1].kind", "3");
    assert_text(entity, "bag.items[0].owner", "none");
    assert_text(entity, "bag.names", "1 string");
    assert_text(entity, "bag.names[0]", "Ann");
    assert_text(entity, "bag.friends[1]", "none");
}

Test(list_text, lists_are_set_by_path)
{
    const quern_entity entity = filled_entity();
    must(quern_entity_set_text(world, entity, "bag.label", "new"));
    must(quern_entity_set_text(world, entity, "bag.items[1].count", "77"));
    must(quern_entity_set_text(world, entity, "bag.names[0]", "Bob"));
    must(quern_entity_set_text(world, entity, "bag.scores[0]", "-3"));
    cr_assert_str_eq(quern_string_text(&bag_of(entity)->label), "new");
    cr_assert_str_eq(quern_string_text(&bag_of(entity)->names.items[0]), "Bob");
    cr_assert_eq(bag_of(entity)->items.items[1].count, 77u);
    cr_assert_eq(bag_of(entity)->scores.items[0], -3.0f);
    must(quern_entity_set_text(world, entity, "bag.scores", "[5, 6 , 7]"));
    assert_text(entity, "bag.scores", "[5, 6, 7]");
    must(quern_entity_set_text(world, entity, "bag.scores", " [ ] "));
    assert_text(entity, "bag.scores", "[]");
    must(quern_entity_set_text(world, entity, "bag.friends", "[none, none, none]"));
    cr_assert_eq(bag_of(entity)->friends.list.count, 3u);
}

Test(list_text, setting_an_element_changes_no_copy)
{
    const quern_entity entity = filled_entity(), other = setup_entity(world);
    must(quern_entity_add(world, other, bag_id, bag_of(entity)));
    must(quern_entity_set_text(world, entity, "bag.items[1].count", "77"));
    cr_assert_eq(bag_of(other)->items.items[1].count, 0u);
}

Test(list_text, wrong_paths_and_texts_are_refused)
{
    const quern_entity entity = filled_entity();
    static const char *const wrong[][2] = {{"bag.items[2].count", "1"},
                                           {"bag.items[0]", "1"},
                                           {"bag.items[0].cuont", "1"},
                                           {"bag.items[x].count", "1"},
                                           {"bag.items[0.count", "1"},
                                           {"bag.items", "[]"},
                                           {"bag.names", "[]"},
                                           {"bag.scores[2]", "1"},
                                           {"bag.scores[0].x", "1"},
                                           {"bag.scores", "1, 2"},
                                           {"bag.scores", "[1, x]"},
                                           {"bag.scores", "[1,]"},
                                           {"bag.items[0].count", "70000"},
                                           {"bag.label", "\xFF"},
                                           {"bag.names[1]", "x"},
                                           {"bag.scores[]", "1"},
                                           {"bag.label[0]", "1"}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        must_refuse(INVALID_ARGUMENT, world,
                    quern_entity_set_text(world, entity, wrong[i][0], wrong[i][1]));
}

Test(list_text, elements_of_a_list_that_is_read_only_cannot_be_set)
{
    quern_component_def def = bag_def;
    quern_component id;
    def.name = "shown";
    for (uint32_t i = 0; i < 6; i++)
        def.fields[i].is_read_only = true;
    must(quern_component_register(world, &def, &id));
    const quern_entity entity = filled_entity();
    must(quern_entity_add(world, entity, id, bag_of(entity)));
    static const char *const paths[] = {"shown.items[1].count", "shown.scores[0]", "shown.scores",
                                        "shown.names[0]",       "shown.label",     "shown.friends[0]"};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
        must_refuse(INVALID_ARGUMENT, world, quern_entity_set_text(world, entity, paths[i], "[]"));
    must_refuse(INVALID_ARGUMENT, world, quern_entity_set_text(world, entity, "shown.scores[0]", "1"));
    must_refuse(INVALID_ARGUMENT, world, quern_entity_set_text(world, entity, "shown.names[0]", "x"));
    assert_text(entity, "shown.scores", "[1, 2.5]");
    assert_text(entity, "shown.names[0]", "Ann");
}

Test(list_text, without_memory_nothing_is_set)
{
    const quern_entity entity = filled_entity(), other = setup_entity(world);
    must(quern_entity_add(world, other, bag_id, bag_of(entity)));
    failing_allocator_fail_from(memory, 1);
    must_refuse(OUT_OF_MEMORY, world, quern_entity_set_text(world, entity, "bag.scores[0]", "1"));
    must_refuse(OUT_OF_MEMORY, world, quern_entity_set_text(world, entity, "bag.label", "x"));
    must_refuse(OUT_OF_MEMORY, world, quern_entity_set_text(world, entity, "bag.scores", "[8, 9]"));
    failing_allocator_heal(memory);
}

Test(list_text, instances_of_a_prefab_have_lists_of_their_own)
{
    const quern_relation parent = quern_world_parent(world);
    const quern_entity root = filled_entity(), part = setup_entity(world), outside = setup_entity(world);
    must(quern_entity_relate(world, part, parent, root));
    must(quern_entity_add(world, part, bag_id, NULL));
    quern_list_clear(&bag_of(root)->friends.list);
    must(QUERN_LIST_PUSH(&bag_of(root)->friends, quern_entity, part, outside, root));
    QUERN_LIST_WRITE(&bag_of(root)->items, bag_item)[0].owner = part;
    quern_prefab prefab;
    must(quern_prefab_capture(world, root, &prefab));
    quern_entity made[5];
    for (uint32_t i = 0; i < 5; i++) {
        must(quern_prefab_spawn(world, prefab, NULL, &made[i]));
        const bag *it = bag_of(made[i]);
        cr_assert_eq(it->friends.items[1].bits, outside.bits);
        cr_assert_eq(it->friends.items[2].bits, made[i].bits);
        cr_assert_eq(it->items.items[1].owner.bits, made[i].bits);
        cr_assert_eq(it->items.items[0].owner.bits, it->friends.items[0].bits);
        cr_assert_eq(quern_entity_target(world, it->friends.items[0], parent).bits, made[i].bits);
        cr_assert_str_eq(quern_string_text(&it->names.items[0]), "Ann");
    }
    must(quern_string_set(&bag_of(made[0])->label, "changed"));
    cr_assert_str_eq(quern_string_text(&bag_of(made[1])->label), "a \"label\"");
    cr_assert_eq(bag_of(root)->friends.items[0].bits, part.bits);
    must(quern_prefab_destroy(world, prefab));
}
