/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */

#include "tests/core/lists/bag.h"
#include "tests/support/fixture.h"

#include <stdio.h>
#include <string.h>

/* Components with lists in a world: what copies, destroys, compares and hashes them. */

static failing_allocator *memory;
static quern_component bag_id;

static void open_world(void)
{
    memory = open_bag_world(&bag_id);
}

static void close_all(void)
{
    close_bag_world(memory);
}

TestSuite(list_world, .init = open_world, .fini = close_all);

static bag *bag_of(quern_entity entity)
{
    return quern_entity_get(world, entity, bag_id);
}

static quern_entity entity_with(const bag *value)
{
    quern_entity entity = setup_entity(world);
    must(quern_entity_add(world, entity, bag_id, value));
    return entity;
}

/* Returns a bag with two items, and a label. */
static bag filled(const char *label)
{
    bag it = {0};
    must(QUERN_LIST_PUSH(&it.items, bag_item, {.kind = 1, .count = 2}, {.kind = 3, .count = 4}));
    must(quern_string_set(&it.label, label));
    return it;
}

Test(list_world, values_are_copied_and_the_variable_keeps_its_own)
{
    bag it = filled("mine");
    const quern_entity entity = entity_with(&it);
    must(quern_string_append(&it.label, "!"));
    must(QUERN_LIST_PUSH(&it.items, bag_item, {.kind = 9}));
    cr_assert_str_eq(quern_string_text(&bag_of(entity)->label), "mine");
    cr_assert_eq(bag_of(entity)->items.list.count, 2u);
    must(quern_entity_set(world, entity, bag_id, &it));
    bag_free(&it);
    cr_assert_eq(bag_of(entity)->items.items[2].kind, 9u);
    cr_assert_str_eq(quern_string_text(&bag_of(entity)->label), "mine!");
}

Test(list_world, values_move_and_end_with_their_rows)
{
    const quern_component tag = setup_tag(world, "tag");
    quern_entity entities[50];
    for (uint32_t i = 0; i < 50; i++) {
        char label[16];
        snprintf(label, sizeof label, "bag %u", i);
        bag it = filled(label);
        entities[i] = entity_with(&it);
        bag_free(&it);
    }
    for (uint32_t i = 0; i < 50; i++)
        if (i % 3 == 0)
            must(quern_entity_destroy(world, entities[i]));
        else if (i % 3 == 1)
            must(quern_entity_add(world, entities[i], tag, NULL));
        else
            must(quern_entity_remove(world, entities[i], bag_id));
    for (uint32_t i = 1; i < 50; i += 3) {
        char label[16];
        snprintf(label, sizeof label, "bag %u", i);
        cr_assert_str_eq(quern_string_text(&bag_of(entities[i])->label), label);
    }
}

Test(list_world, a_new_component_has_empty_lists)
{
    const quern_entity entity = entity_with(NULL);
    cr_assert_eq(bag_of(entity)->items.list.count, 0u);
    cr_assert_str_eq(quern_string_text(&bag_of(entity)->label), "");
}

Test(list_world, hashes_depend_on_content_alone)
{
    bag a = filled("text"), b = {0};
    const quern_entity entity = entity_with(&a);
    const uint64_t hash = quern_world_hash(world);
    /* the same content by other steps, in other memory, with another capacity */
    must(QUERN_LIST_RESERVE(&b.items, 100));
    must(QUERN_LIST_PUSH(&b.items, bag_item, {.kind = 1, .count = 2}));
    must(QUERN_LIST_PUSH(&b.items, bag_item, {.kind = 3, .count = 4}));
    must(quern_string_print(&b.label, "%s", "te"));
    must(quern_string_append(&b.label, "xt"));
    must(quern_entity_set(world, entity, bag_id, &b));
    cr_assert_eq(quern_world_hash(world), hash);
    QUERN_LIST_WRITE(&bag_of(entity)->items, bag_item)[1].count++;
    cr_assert_neq(quern_world_hash(world), hash);
    QUERN_LIST_WRITE(&bag_of(entity)->items, bag_item)[1].count--;
    cr_assert_eq(quern_world_hash(world), hash);
    must(quern_string_append(&bag_of(entity)->label, "s"));
    cr_assert_neq(quern_world_hash(world), hash);
    bag_free(&a);
    bag_free(&b);
}

Test(list_world, elements_do_not_wander_between_lists_in_hashes)
{
    /* ["a", "b"] and "" against ["a"] and "b" */
    bag a = {0}, b = {0};
    quern_string text = {{{0}, 0, 0}};
    must(quern_string_set(&text, "a"));
    must(QUERN_LIST_PUSH(&a.names, quern_string, text));
    must(QUERN_LIST_PUSH(&b.names, quern_string, text));
    must(quern_string_set(&text, "b"));
    must(QUERN_LIST_PUSH(&a.names, quern_string, text));
    must(quern_string_set(&b.label, "b"));
    quern_string_free(&text);
    const quern_entity entity = entity_with(&a);
    const uint64_t hash = quern_world_hash(world);
    must(quern_entity_set(world, entity, bag_id, &b));
    cr_assert_neq(quern_world_hash(world), hash);
    bag_free(&a);
    bag_free(&b);
}

typedef struct two_lists {
    QUERN_LIST(uint32_t) first;
    QUERN_LIST(uint32_t) second;
} two_lists;

Test(list_world, hashes_tell_which_list_has_an_element)
{
    quern_component id = make_component(world, QUERN_TYPE(two_lists),
                                        .fields = {QUERN_LIST_FIELD(two_lists, first, uint32_t),
                                                   QUERN_LIST_FIELD(two_lists, second, uint32_t)});
    const quern_entity entity = setup_entity(world);
    must(quern_entity_add(world, entity, id, NULL));
    two_lists *it = quern_entity_get(world, entity, id);
    must(QUERN_LIST_PUSH(&it->first, uint32_t, 1, 2));
    must(QUERN_LIST_PUSH(&it->second, uint32_t, 3));
    const uint64_t hash = quern_world_hash(world);
    must(QUERN_LIST_POP(&it->first, NULL));
    must(QUERN_LIST_INSERT(&it->second, 0, uint32_t, 2));
    cr_assert_neq(quern_world_hash(world), hash);
}

Test(list_world, a_copied_value_changes_alone)
{
    bag it = filled("first");
    const quern_entity one = entity_with(&it), two = entity_with(&it);
    bag_free(&it);
    must(quern_string_set(&bag_of(two)->label, "second"));
    QUERN_LIST_WRITE(&bag_of(two)->items, bag_item)[0].kind = 77;
    cr_assert_str_eq(quern_string_text(&bag_of(one)->label), "first");
    cr_assert_eq(bag_of(one)->items.items[0].kind, 1u);
    must(quern_entity_destroy(world, one));
    cr_assert_str_eq(quern_string_text(&bag_of(two)->label), "second");
}

Test(list_world, a_type_is_known_again_by_its_elements)
{
    quern_component again;
    must(quern_component_register(world, &bag_def, &again));
    cr_assert_eq(again.bits, bag_id.bits);
    quern_component_def other = bag_def;
    quern_element element = *bag_def.fields[1].element;
    element.field_count--;
    other.fields[1].element = &element;
    must_refuse(LAYOUT_MISMATCH, world, quern_component_register(world, &other, &again));
}

Test(list_world, wrong_descriptions_are_refused)
{
    const quern_element number = {.type = QUERN_FIELD_U32}, text = {.type = QUERN_FIELD_TEXT},
                        list = {.type = QUERN_FIELD_LIST}, nothing = {.size_bytes = 4};
    const quern_field plain = {.name = "x", .type = QUERN_FIELD_U32, .count = 1},
                      string = {.name = "s", .type = QUERN_FIELD_STRING, .count = 1};
    const quern_element small = {.size_bytes = 2, .alignment_bytes = 2, .fields = &plain, .field_count = 1},
                        odd = {.size_bytes = 4, .alignment_bytes = 3, .fields = &plain, .field_count = 1},
                        deep = {
                            .size_bytes = 16, .alignment_bytes = 8, .fields = &string, .field_count = 1};
    const quern_field wrong[][2] = {
        {{.name = "a", .type = QUERN_FIELD_LIST, .count = 1}},
        {{.name = "a", .type = QUERN_FIELD_U32, .count = 1, .element = &number}},
        {{.name = "a", .type = QUERN_FIELD_LIST, .count = 1, .element = &text}},
        {{.name = "a", .type = QUERN_FIELD_LIST, .count = 1, .element = &list}},
        {{.name = "a", .type = QUERN_FIELD_LIST, .count = 1, .element = &nothing}},
        {{.name = "a", .type = QUERN_FIELD_LIST, .count = 1, .element = &small}},
        {{.name = "a", .type = QUERN_FIELD_LIST, .count = 1, .element = &odd}},
        {{.name = "a", .type = QUERN_FIELD_LIST, .count = 1, .element = &deep}},
        {{.name = "a", .type = QUERN_FIELD_LIST, .count = 3, .element = &number}},
        {{.name = "a", .type = QUERN_FIELD_STRING, .count = 1},
         {.name = "b", .type = QUERN_FIELD_U32, .offset_bytes = 8, .count = 1}},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        quern_component_def def = {.name = "wrong", .size_bytes = 32, .alignment_bytes = 8};
        memcpy(def.fields, wrong[i], sizeof wrong[i]);
        quern_component ignored;
        must_refuse(INVALID_ARGUMENT, world, quern_component_register(world, &def, &ignored));
    }
}

static void copy_nothing(void *targets, const void *sources, uint32_t count, void *user_data)
{
    (void)targets, (void)sources, (void)count, (void)user_data;
}

Test(list_world, hooks_beside_lists_must_copy_and_destroy)
{
    quern_component_def def = bag_def;
    quern_component ignored;
    def.name = "other";
    def.hooks.copy = copy_nothing;
    must_refuse(INVALID_ARGUMENT, world, quern_component_register(world, &def, &ignored));
}

Test(list_world, a_default_value_is_copied)
{
    bag it = filled("default");
    quern_component_def def = bag_def;
    def.name = "bag with default";
    def.default_value = &it;
    quern_component id;
    must(quern_component_register(world, &def, &id));
    bag_free(&it);
    quern_entity one = setup_entity(world), two = setup_entity(world);
    must(quern_entity_add(world, one, id, NULL));
    must(quern_entity_add(world, two, id, NULL));
    must(quern_string_set(&((bag *)quern_entity_get(world, one, id))->label, "changed"));
    cr_assert_str_eq(quern_string_text(&((const bag *)quern_entity_get(world, two, id))->label), "default");
}

Test(list_world, commands_carry_copies)
{
    bag it = filled("sent");
    const quern_entity target = entity_with(NULL), dead = setup_entity(world);
    quern_commands *commands = quern_world_commands(world);
    must(quern_commands_set(commands, target, bag_id, &it));
    must(quern_commands_add(commands, dead, bag_id, &it));
    must(quern_string_set(&it.label, "changed since"));
    quern_entity made = record_entity_with(commands, &bag_id, (const void *const[]){&it}, 1);
    (void)made;
    bag_free(&it);
    must(quern_world_flush(world));
    cr_assert_str_eq(quern_string_text(&bag_of(target)->label), "sent");
    cr_assert_str_eq(quern_string_text(&bag_of(dead)->label), "sent");
    /* commands that are dropped give their copies back */
    it = filled("dropped");
    must(quern_commands_set(quern_world_commands(world), target, bag_id, &it));
    bag_free(&it);
    must(quern_world_discard_commands(world));
}

Test(list_world, provisional_handles_in_lists_are_replaced)
{
    bag it = {0};
    const quern_entity target = entity_with(NULL);
    quern_commands *commands = quern_world_commands(world);
    const quern_entity made = record_entity(commands);
    must(QUERN_LIST_PUSH(&it.friends, quern_entity, target, made));
    must(QUERN_LIST_PUSH(&it.items, bag_item, {.owner = made}));
    must(quern_commands_set(commands, target, bag_id, &it));
    must(quern_world_flush(world));
    cr_assert(quern_entity_is_provisional(it.friends.items[1]), "the variable has a copy of its own");
    bag_free(&it);
    const bag *found = bag_of(target);
    cr_assert(quern_entity_is_alive(world, found->friends.items[1]));
    cr_assert_eq(found->items.items[0].owner.bits, found->friends.items[1].bits);
    cr_assert_eq(found->friends.items[0].bits, target.bits);
}

Test(list_world, replacing_provisional_handles_needs_no_memory)
{
    bag it = {0};
    const quern_entity target = entity_with(NULL);
    quern_commands *commands = quern_world_commands(world);
    const quern_entity made = record_entity(commands);
    must(QUERN_LIST_PUSH(&it.friends, quern_entity, target, made));
    must(QUERN_LIST_PUSH(&it.items, bag_item, {.owner = made}));
    must(quern_commands_set(commands, target, bag_id, &it));
    failing_allocator_fail_from(memory, 1);
    must(quern_world_flush(world));
    failing_allocator_heal(memory);
    bag_free(&it);
    const bag *found = bag_of(target);
    cr_assert(quern_entity_is_alive(world, found->friends.items[1]));
    cr_assert_eq(found->items.items[0].owner.bits, found->friends.items[1].bits);
}

Test(list_world, replacing_provisional_handles_in_overrides_needs_no_memory)
{
    bag it = {0};
    quern_prefab prefab;
    const quern_entity captured = entity_with(NULL);
    uint32_t spawned_count = 0;
    must(quern_prefab_capture(world, captured, &prefab));
    quern_commands *commands = quern_world_commands(world);
    const quern_entity made = record_entity(commands);
    must(QUERN_LIST_PUSH(&it.friends, quern_entity, captured, made));
    const quern_spawn_def def = {.overrides = {{bag_id, 0, &it}}};
    must(quern_commands_spawn(commands, prefab, &def, NULL));
    failing_allocator_fail_from(memory, 1);
    must(quern_world_flush(world));
    failing_allocator_heal(memory);
    bag_free(&it);
    quern_query *query = setup_query(world, (const quern_term[]){quern_term_read(bag_id)}, 1);
    for (quern_query_iterator walk = quern_query_iterate(query); quern_query_next(&walk);)
        for (uint32_t i = 0; i < walk.view.count; i++) {
            const bag *found = (const bag *)quern_view_read(&walk.view, 0) + i;
            if (quern_entity_equal(walk.view.entities[i], captured)) continue;
            spawned_count++;
            cr_assert_eq(found->friends.items[0].bits, captured.bits);
            cr_assert(quern_entity_is_alive(world, found->friends.items[1]));
        }
    cr_assert_eq(spawned_count, 1u);
    quern_query_destroy(query);
}

/* A frame and its waiting commands share no list with provisional handles: a flush after the save, or after a restore,
 * replaces them without memory, and the frame keeps its own. */
Test(list_world, replacing_provisional_handles_of_a_saved_frame_needs_no_memory)
{
    bag it = {0};
    quern_history *history;
    const quern_entity target = entity_with(NULL);
    must(quern_history_create(world, NULL, &history));
    quern_commands *commands = quern_world_commands(world);
    const quern_entity made = record_entity(commands);
    must(QUERN_LIST_PUSH(&it.friends, quern_entity, target, made));
    must(quern_commands_set(commands, target, bag_id, &it));
    bag_free(&it);
    must(quern_history_save(history, 0, NULL));
    for (uint32_t turn = 0; turn < 3; turn++) {
        for (uint32_t i = 0; i < turn; i++)
            setup_entity(world); /* so that the commands create another entity in each turn */
        failing_allocator_fail_from(memory, 1);
        must(quern_world_flush(world));
        failing_allocator_heal(memory);
        cr_assert(quern_entity_is_alive(world, bag_of(target)->friends.items[1]));
        cr_assert_eq(quern_entity_index(bag_of(target)->friends.items[1]), 1 + turn);
        for (uint64_t n = 1; runs_out_of_memory(memory, n, quern_history_restore(history, 0, NULL)); n++)
            continue;
    }
    quern_history_destroy(history);
}

static void take_friends(void *accumulated, const void *value, void *user_data)
{
    quern_list_copy(&((bag *)accumulated)->friends.list, &((const bag *)value)->friends.list);
}

Test(list_world, replacing_provisional_handles_of_accumulated_lists_needs_no_memory)
{
    bag it = {0};
    quern_combine take;
    const quern_entity target = entity_with(NULL);
    must(quern_combine_register(world, &(quern_combine_def){.name = "take", .function = take_friends},
                                &take));
    quern_commands *commands = quern_world_commands(world);
    const quern_entity made = record_entity(commands);
    must(QUERN_LIST_PUSH(&it.friends, quern_entity, target, made));
    failing_allocator_fail_from(memory, 1);
    must_refuse(OUT_OF_MEMORY, NULL, quern_commands_accumulate(commands, target, bag_id, &it, take));
    failing_allocator_heal(memory);
    must(quern_commands_accumulate(commands, target, bag_id, &it, take));
    failing_allocator_fail_from(memory, 1);
    cr_assert_eq(quern_world_flush(world), QUERN_ERROR_OUT_OF_MEMORY); /* of the call that was refused */
    failing_allocator_heal(memory);
    bag_free(&it);
    cr_assert(quern_entity_is_alive(world, bag_of(target)->friends.items[1]));
}

Test(list_world, a_value_with_provisional_handles_is_recorded_if_there_is_memory)
{
    bag it = filled("not recorded");
    const quern_entity target = entity_with(NULL);
    quern_commands *commands = quern_world_commands(world);
    const quern_entity made = record_entity(commands);
    must(QUERN_LIST_PUSH(&it.friends, quern_entity, target, made));
    failing_allocator_fail_from(memory, 1);
    must_refuse(OUT_OF_MEMORY, NULL, quern_commands_set(commands, target, bag_id, &it));
    failing_allocator_heal(memory);
    bag_free(&it);
    cr_assert_eq(quern_world_flush(world), QUERN_ERROR_OUT_OF_MEMORY);
    cr_assert_eq(bag_of(target)->friends.list.count, 0u);
}

Test(list_world, a_handle_that_stays_provisional_is_reported)
{
    captured_reports reports;
    bag it = {0};
    quern_commands *commands = quern_world_commands(world);
    const quern_entity made = record_entity(commands);
    must(QUERN_LIST_PUSH(&it.friends, quern_entity, made));
    (void)record_entity_with(commands, &bag_id, (const void *const[]){&it}, 1);
    capture_reports(&reports);
    failing_allocator_fail_from(memory, 1);
    must(quern_world_flush(world));
    failing_allocator_heal(memory);
    quern_log_set_handler(NULL, NULL);
    quern_assert_set_handler(NULL, NULL);
    bag_free(&it);
    cr_assert_eq(reports.log_count, 1u);
    if (quern_has_checks()) cr_assert_eq(reports.assert_count, 1u);
}

Test(list_world, provisional_handles_outside_of_commands_are_refused)
{
    bag it = {0};
    must(QUERN_LIST_PUSH(&it.friends, quern_entity, entity_provisional(3)));
    const quern_entity target = entity_with(NULL);
    must_refuse(PROVISIONAL_ENTITY, world, quern_entity_set(world, target, bag_id, &it));
    bag_free(&it);
}

Test(list_world, resources_have_lists)
{
    quern_resource_def def = {.name = "chest", .size_bytes = sizeof(bag), .alignment_bytes = 8};
    memcpy(def.fields, bag_def.fields, sizeof def.fields);
    quern_resource chest;
    must(quern_resource_register(world, &def, &chest));
    const uint64_t hash = quern_world_hash(world);
    bag *it = quern_resource_get(world, chest);
    must(quern_string_set(&it->label, "treasure"));
    cr_assert_neq(quern_world_hash(world), hash);
}

Test(list_world, events_carry_copies)
{
    quern_event_def def = {.name = "found", .size_bytes = sizeof(bag), .alignment_bytes = 8};
    memcpy(def.fields, bag_def.fields, sizeof def.fields);
    quern_event found;
    quern_event_reader *reader;
    must(quern_event_register(world, &def, &found));
    must(quern_event_reader_create(world, &(quern_event_reader_def){.event = found, .name = "r"}, &reader));
    bag it = filled("event");
    must(quern_world_emit(world, found, &it, 1));
    bag_free(&it);
    quern_event_block block;
    uint32_t count = 0;
    while (quern_event_reader_next(reader, &block)) {
        cr_assert_str_eq(quern_string_text(&((const bag *)block.values)->label), "event");
        count += block.count;
    }
    cr_assert_eq(count, 1u);
    quern_event_reader_destroy(reader);
}

Test(list_world, a_history_restores_lists)
{
    quern_history *history;
    must(quern_history_create(world, &(quern_history_def){.frame_count = 8}, &history));
    bag it = filled("frame 0");
    const quern_entity entity = entity_with(&it);
    bag_free(&it);
    uint64_t hashes[5];
    for (uint64_t frame = 0; frame < 5; frame++) {
        must(quern_string_print(&bag_of(entity)->label, "frame %d", (int)frame));
        if (frame == 2) QUERN_LIST_WRITE(&bag_of(entity)->items, bag_item)[0].kind = 1000;
        if (quern_has_checks() && frame > 0) /* the write was not reported */
            must_refuse(INVALID_ARGUMENT, world, quern_history_save(history, frame, NULL));
        must(quern_entity_mark_changed(world, entity, bag_id));
        must(quern_history_save(history, frame, NULL));
        hashes[frame] = quern_world_hash(world);
    }
    must(quern_entity_destroy(world, entity));
    for (uint64_t frame = 5; frame-- > 0;) {
        must(quern_history_restore(history, frame, NULL));
        cr_assert_eq(quern_world_hash(world), hashes[frame]);
        char label[16];
        snprintf(label, sizeof label, "frame %d", (int)frame);
        cr_assert_str_eq(quern_string_text(&bag_of(entity)->label), label);
        cr_assert_eq(bag_of(entity)->items.items[0].kind, frame < 2 ? 1u : 1000u);
    }
    quern_history_destroy(history);
}

/* Appending in place must not reach the copies that a frame, a component and a command have. */
Test(list_world, copies_of_a_list_that_is_appended_to_stay)
{
    quern_history *history;
    bag it = {0};
    must(quern_history_create(world, &(quern_history_def){.frame_count = 8}, &history));
    must(QUERN_LIST_RESERVE(&it.scores, 20));
    must(QUERN_LIST_PUSH(&it.scores, float, 0));
    const quern_entity first = entity_with(&it), second = entity_with(&it);
    bag_free(&it);
    for (int frame = 1; frame <= 5; frame++) {
        must(QUERN_LIST_PUSH(&bag_of(first)->scores, float, (float)frame));
        must(QUERN_LIST_PUSH(&bag_of(second)->scores, float, (float)-frame));
        must(quern_entity_mark_changed(world, first, bag_id));
        must(quern_entity_mark_changed(world, second, bag_id));
        must(quern_history_save(history, (uint64_t)frame, NULL));
    }
    must(quern_entity_set(world, second, bag_id, bag_of(first)));
    must(QUERN_LIST_PUSH(&bag_of(first)->scores, float, 6));
    must(QUERN_LIST_PUSH(&bag_of(second)->scores, float, 7));
    cr_assert_eq(bag_of(first)->scores.items[6], 6);
    cr_assert_eq(bag_of(second)->scores.items[6], 7);
    for (int frame = 5; frame > 0; frame--) {
        must(quern_history_restore(history, (uint64_t)frame, NULL));
        must(QUERN_LIST_PUSH(&bag_of(first)->scores, float, 100));
        must(quern_entity_mark_changed(world, first, bag_id));
        must(quern_history_restore(history, (uint64_t)frame, NULL));
        const bag *a = bag_of(first), *b = bag_of(second);
        cr_assert_eq(a->scores.list.count, (uint32_t)frame + 1);
        cr_assert_eq(b->scores.list.count, (uint32_t)frame + 1);
        for (int i = 0; i <= frame; i++) {
            cr_assert_eq(a->scores.items[i], (float)i);
            cr_assert_eq(b->scores.items[i], (float)-i);
        }
    }
    quern_history_destroy(history);
}

Test(list_world, a_new_definition_keeps_lists)
{
    bag it = filled("kept");
    const quern_entity entity = entity_with(&it);
    bag_free(&it);
    quern_component_def def = bag_def; /* gold is last now, and scores are gone */
    static const uint32_t order[] = {1, 2, 4, 5};
    memset(def.fields, 0, sizeof def.fields);
    uint32_t offset = 0;
    for (uint32_t i = 0; i < 4; i++, offset += 16) {
        def.fields[i] = bag_def.fields[order[i]];
        def.fields[i].offset_bytes = offset;
    }
    def.fields[4] = bag_def.fields[0];
    def.fields[4].offset_bytes = offset;
    def.size_bytes = 72;
    must(QUERN_LIST_PUSH(&bag_of(entity)->scores, float, 1, 2, 3));
    must(quern_component_redefine(world, bag_id, &def, NULL, NULL));
    const char *value = quern_entity_get(world, entity, bag_id);
    quern_string label;
    quern_list items;
    memcpy(&items, value, sizeof items);
    memcpy(&label, value + 16, sizeof label);
    cr_assert_str_eq(quern_string_text(&label), "kept");
    cr_assert_eq(items.count, 2u);
}

/* ------------------------------------------------------------------------------------------------ text */

TestSuite(list_text, .init = open_world, .fini = close_all);

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
    const quern_entity entity = bag_create_filled(bag_id);
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
    const quern_entity entity = bag_create_filled(bag_id);
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
    const quern_entity entity = bag_create_filled(bag_id), other = setup_entity(world);
    must(quern_entity_add(world, other, bag_id, bag_of(entity)));
    must(quern_entity_set_text(world, entity, "bag.items[1].count", "77"));
    cr_assert_eq(bag_of(other)->items.items[1].count, 0u);
}

Test(list_text, wrong_paths_and_texts_are_refused)
{
    const quern_entity entity = bag_create_filled(bag_id);
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
    const quern_entity entity = bag_create_filled(bag_id);
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
    const quern_entity entity = bag_create_filled(bag_id), other = setup_entity(world);
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
    const quern_entity root = bag_create_filled(bag_id), part = setup_entity(world),
                       outside = setup_entity(world);
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
