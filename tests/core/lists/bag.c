/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "tests/core/lists/bag.h"
#include "tests/support/fixture.h"

#include <stdio.h>
#include <string.h>

const quern_component_def bag_def = {
    QUERN_TYPE(bag),
    .fields = {QUERN_FIELD(bag, gold), QUERN_LIST_FIELD(bag, items, bag_item, kind, count, owner, mark),
               QUERN_FIELD(bag, label), QUERN_LIST_FIELD(bag, scores, float),
               QUERN_LIST_FIELD(bag, names, quern_string), QUERN_LIST_FIELD(bag, friends, quern_entity)}};

quern_component bag_register(quern_world *in_world)
{
    quern_component component = {0};
    must(quern_component_register(in_world, &bag_def, &component));
    return component;
}

failing_allocator *open_bag_world(quern_component *out_bag)
{
    failing_allocator *memory = failing_allocator_create();
    const quern_allocator allocator = failing_allocator_interface(memory);
    must(quern_lists_set_allocator(&allocator));
    world = setup_world();
    *out_bag = bag_register(world);
    return memory;
}

void close_bag_world(failing_allocator *memory)
{
    close_valid_world();
    failing_allocator_close(memory);
    assert_at_end(quern_lists_set_allocator(NULL) == QUERN_OK);
}

quern_entity bag_create_filled(quern_component bag_id)
{
    quern_string name = {{{0}, 0, 0}};
    const quern_entity entity = setup_entity(world);
    must(quern_entity_add(world, entity, bag_id, NULL));
    bag *it = quern_entity_get(world, entity, bag_id);
    must(QUERN_LIST_PUSH(&it->items, bag_item, {.kind = 1, .count = 2}, {.kind = 3, .owner = entity}));
    must(QUERN_LIST_PUSH(&it->scores, float, 1, 2.5f));
    must(QUERN_LIST_PUSH(&it->friends, quern_entity, entity, {0}));
    must(quern_string_set(&it->label, "a \"label\""));
    must(quern_string_set(&name, "Ann"));
    must(QUERN_LIST_PUSH(&it->names, quern_string, name));
    quern_string_free(&name);
    return entity;
}

static bag_item draw_item(random_source *random, const quern_entity *entities, uint32_t entity_count)
{
    bag_item item;
    memset(&item, 0xA5, sizeof item); /* the padding must not matter */
    item.kind = (uint32_t)random_below(random, 1000);
    item.count = (uint16_t)random_below(random, 9);
    item.owner = entity_count > 0 ? entities[random_below(random, entity_count)] : (quern_entity){0};
    memset(item.mark, (int)random_below(random, 3), sizeof item.mark);
    return item;
}

static uint32_t change_items(bag *it, bag_model *model, random_source *random, const quern_entity *entities,
                             uint32_t entity_count)
{
    const bag_item item = draw_item(random, entities, entity_count);
    const uint32_t count = model->item_count;
    const uint32_t at = (uint32_t)random_below(random, count + 1u);
    bag_item *written;
    switch (random_below(random, 7)) {
    case 0:
    case 1:
        if (count == BAG_MOST) break;
        if (QUERN_LIST_PUSH(&it->items, bag_item, item) != QUERN_OK) return 1;
        model->items[model->item_count++] = item;
        break;
    case 2:
        if (count == BAG_MOST) break;
        if (QUERN_LIST_INSERT(&it->items, at, bag_item, item) != QUERN_OK) return 1;
        memmove(model->items + at + 1, model->items + at, (count - at) * sizeof item);
        model->items[at] = item;
        model->item_count++;
        break;
    case 3:
        if (at == count) break;
        if (QUERN_LIST_REMOVE(&it->items, at, 1) != QUERN_OK) return 1;
        memmove(model->items + at, model->items + at + 1, (count - at - 1) * sizeof item);
        model->item_count--;
        break;
    case 4:
        if (at == count) break;
        if (QUERN_LIST_REMOVE_SWAP(&it->items, at) != QUERN_OK) return 1;
        model->items[at] = model->items[--model->item_count];
        break;
    case 5:
        if (at == count) break;
        written = QUERN_LIST_WRITE(&it->items, bag_item);
        if (written == NULL) return 1;
        written[at].kind = model->items[at].kind = item.kind;
        break;
    default:
        if (random_below(random, 8) == 0) {
            quern_list_clear(&it->items.list);
            model->item_count = 0;
        }
        break;
    }
    return 0;
}

static uint32_t change_scores(bag *it, bag_model *model, random_source *random)
{
    const float score = (float)random_below(random, 100);
    const uint32_t count = (uint32_t)random_below(random, BAG_MOST);
    float popped = -1;
    switch (random_below(random, 4)) {
    case 0:
        if (QUERN_LIST_RESIZE(&it->scores, count) != QUERN_OK) return 1;
        for (uint32_t i = model->score_count; i < count; i++)
            model->scores[i] = 0;
        model->score_count = count;
        break;
    case 1:
        if (model->score_count == 0) break;
        if (QUERN_LIST_POP(&it->scores, &popped) != QUERN_OK) return 1;
        cr_assert_eq(popped, model->scores[--model->score_count]);
        break;
    case 2:
        return QUERN_LIST_RESERVE(&it->scores, count) != QUERN_OK;
    default:
        if (model->score_count == BAG_MOST) break;
        if (QUERN_LIST_PUSH(&it->scores, float, score) != QUERN_OK) return 1;
        model->scores[model->score_count++] = score;
        break;
    }
    return 0;
}

static uint32_t change_names(bag *it, bag_model *model, random_source *random)
{
    char text[24];
    quern_string name = {{{0}, 0, 0}};
    const uint32_t at = (uint32_t)random_below(random, model->name_count + 1u);
    uint32_t failed = 0;
    snprintf(text, sizeof text, "name %u", (unsigned)random_below(random, 100000));
    if (random_below(random, 3) > 0 && model->name_count < BAG_MOST) {
        if (quern_string_set(&name, text) != QUERN_OK) return 1;
        failed = QUERN_LIST_INSERT(&it->names, at, quern_string, name) != QUERN_OK;
        quern_string_free(&name);
        if (failed) return 1;
        memmove(model->names + at + 1, model->names + at, (model->name_count - at) * sizeof text);
        memcpy(model->names[at], text, sizeof text);
        model->name_count++;
    } else if (at < model->name_count && random_below(random, 2) == 0) {
        if (QUERN_LIST_REMOVE(&it->names, at, 1) != QUERN_OK) return 1;
        model->name_count--;
        memmove(model->names + at, model->names + at + 1, (model->name_count - at) * sizeof text);
    } else if (at < model->name_count) {
        quern_string *names = QUERN_LIST_WRITE(&it->names, quern_string);
        if (names == NULL || quern_string_set(&names[at], text) != QUERN_OK) return 1;
        memcpy(model->names[at], text, sizeof text);
    }
    return 0;
}

static uint32_t change_label(bag *it, bag_model *model, random_source *random)
{
    const uint32_t number = (uint32_t)random_below(random, 1000);
    const size_t bytes = strlen(model->label);
    if (random_below(random, 2) == 0 && bytes + 16 < BAG_TEXT_BYTES) {
        if (quern_string_append_print(&it->label, "+%u", number) != QUERN_OK) return 1;
        snprintf(model->label + bytes, BAG_TEXT_BYTES - bytes, "+%u", number);
    } else {
        if (quern_string_print(&it->label, "%s%u", number % 3 == 0 ? "" : "label ", number) != QUERN_OK)
            return 1;
        snprintf(model->label, BAG_TEXT_BYTES, "%s%u", number % 3 == 0 ? "" : "label ", number);
    }
    return 0;
}

uint32_t bag_change(bag *it, bag_model *model, random_source *random, const quern_entity *entities,
                    uint32_t entity_count)
{
    switch (random_below(random, 5)) {
    case 0:
        return change_scores(it, model, random);
    case 1:
        return change_names(it, model, random);
    case 2:
        return change_label(it, model, random);
    case 3:
        if (model->friend_count == BAG_MOST || entity_count == 0) return 0;
        model->friends[model->friend_count] = entities[random_below(random, entity_count)];
        if (QUERN_LIST_PUSH(&it->friends, quern_entity, model->friends[model->friend_count]) != QUERN_OK)
            return 1;
        model->friend_count++;
        return 0;
    default:
        return change_items(it, model, random, entities, entity_count);
    }
}

void bag_free(bag *it)
{
    quern_list_free(&it->items.list);
    quern_string_free(&it->label);
    quern_list_free(&it->scores.list);
    quern_list_free(&it->names.list);
    quern_list_free(&it->friends.list);
}

static uint64_t mapped(quern_entity entity, quern_entity (*map)(quern_entity entity))
{
    return map != NULL ? map(entity).bits : entity.bits;
}

void bag_assert(const bag *it, const bag_model *model, quern_entity (*map)(quern_entity entity))
{
    cr_assert_eq(it->items.list.count, model->item_count);
    for (uint32_t i = 0; i < model->item_count; i++) {
        cr_assert_eq(it->items.items[i].kind, model->items[i].kind);
        cr_assert_eq(it->items.items[i].count, model->items[i].count);
        cr_assert_eq(it->items.items[i].owner.bits, mapped(model->items[i].owner, map));
        cr_assert_eq(memcmp(it->items.items[i].mark, model->items[i].mark, 4), 0);
    }
    cr_assert_eq(it->scores.list.count, model->score_count);
    for (uint32_t i = 0; i < model->score_count; i++)
        cr_assert_eq(it->scores.items[i], model->scores[i]);
    cr_assert_eq(it->names.list.count, model->name_count);
    for (uint32_t i = 0; i < model->name_count; i++)
        cr_assert_eq(strcmp(quern_string_text(&it->names.items[i]), model->names[i]), 0);
    cr_assert_eq(it->friends.list.count, model->friend_count);
    for (uint32_t i = 0; i < model->friend_count; i++)
        cr_assert_eq(it->friends.items[i].bits, mapped(model->friends[i], map));
    cr_assert_eq(strcmp(quern_string_text(&it->label), model->label), 0);
}
