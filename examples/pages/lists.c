/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include <quern/quern.h>

#include <stdio.h>
#include <stdlib.h>

typedef struct Item {
    uint32_t kind, count;
} Item;

typedef struct Bag {
    QUERN_LIST(Item) items;
    quern_string label;
} Bag;

static void check(quern_result result)
{
    if (result == QUERN_OK) return;
    fprintf(stderr, "%s\n", quern_error_message());
    exit(EXIT_FAILURE);
}

/* A system: each row finds another item. */
static void gather(quern_context *context, const quern_view *view)
{
    Bag *bags = QUERN_COLUMN(view, 0, Bag);
    const uint32_t count = view->count;
    (void)context;
    for (uint32_t i = 0; i < count; i++) {
        check(QUERN_LIST_PUSH(&bags[i].items, Item, {.kind = 7, .count = i + 1}));
        check(quern_string_print(&bags[i].label, "%u items", bags[i].items.list.count));
    }
}

int main(void)
{
    quern_world *world;
    quern_schedule *schedule;
    quern_component bag_id;
    quern_entity chest, copy;
    const quern_component_def def = {
        QUERN_TYPE(Bag),
        .fields = {QUERN_LIST_FIELD(Bag, items, Item, kind, count), QUERN_FIELD(Bag, label)}};
    check(quern_world_create(NULL, &world));
    check(quern_component_register(world, &def, &bag_id));
    check(quern_entity_create(world, &chest));
    check(quern_entity_add(world, chest, bag_id, NULL)); /* the lists are empty */
    check(quern_schedule_create(world, NULL, &schedule));
    check(quern_schedule_add_system(
        schedule, &(quern_system_def){.name = "gather", .run = gather, .terms = {quern_term_write(bag_id)}},
        NULL));
    for (int frame = 0; frame < 3; frame++)
        check(quern_schedule_run(schedule, NULL, 0));

    /* A copy shares the items until one of both changes. */
    check(quern_entity_create(world, &copy));
    check(quern_entity_add(world, copy, bag_id, quern_entity_get(world, chest, bag_id)));
    Bag *bag = quern_entity_get(world, copy, bag_id);
    QUERN_LIST_WRITE(&bag->items, Item)[0].count = 100;

    /* By path, as a console or the inspector does. */
    check(quern_entity_set_text(world, chest, "Bag.items[1].kind", "9"));
    check(quern_entity_get_text(world, chest, "Bag.label", quern_sink_file(stdout)));
    const Bag *first = quern_entity_get(world, chest, bag_id);
    for (uint32_t i = 0; i < first->items.list.count; i++)
        printf("; %u of kind %u", first->items.items[i].count, first->items.items[i].kind);
    printf("\nthe copy has %u of the first\n", bag->items.items[0].count);

    quern_schedule_destroy(schedule);
    quern_world_destroy(world);
    return EXIT_SUCCESS;
}
