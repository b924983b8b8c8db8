/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* The answers of docs/how.md on worlds, entities and values, as one program. */
#include <quern/quern.h>

#include <stdatomic.h>
#include <stdio.h>

typedef struct Place {
    float x, y;
} Place;

typedef struct Health {
    int32_t points;
} Health;

typedef struct Score {
    int32_t points;
} Score;

static void create_entities(quern_world *world)
{
    quern_entity tree, knight;
    QUERN_MUST(QUERN_REGISTER(world, Place, x, y));
    QUERN_MUST(QUERN_CREATE(world, &tree, QUERN_VALUE(Place, 3, 4)));
    QUERN_MUST(QUERN_CREATE(world, &knight, QUERN_VALUE(Place, 1, 1), QUERN_VALUE(Health, 100)));
    QUERN_MUST(QUERN_REGISTER_TAGS(world, Burning, Frozen));
    QUERN_MUST(QUERN_ADD(world, tree, Burning));
    Health *health = QUERN_GET(world, knight, Health); /* valid until entities or components change */
    health->points -= 10;
    QUERN_MUST(QUERN_SET(world, knight, Place, .x = 2, .y = 1));
    QUERN_MUST(quern_entity_set_name(world, knight, "knight"));
    const quern_entity found = quern_entity_find(world, "knight");
    printf("knight: %s, %d points\n", quern_entity_equal(found, knight) ? "found" : "lost", health->points);
}

typedef struct Bag {
    QUERN_LIST(uint32_t) items;
    quern_string label;
} Bag;

/* Appends the items of one bag to another one. Called at sync points, in the order of commands. */
static void append_items(void *value, const void *accumulated, void *user_data)
{
    Bag *bag = value;
    const Bag *sent = accumulated;
    (void)user_data;
    for (uint32_t i = 0; i < sent->items.list.count; i++)
        QUERN_MUST(QUERN_LIST_PUSH(&bag->items, uint32_t, sent->items.items[i]));
}

static void send_items(quern_world *world, quern_component bag_id)
{
    quern_combine append; /* register it once */
    const quern_combine_def def = {.name = "append items", .function = append_items};
    QUERN_MUST(quern_combine_register(world, &def, &append));
    quern_commands *commands = quern_world_commands(world); /* or those of a parallel system */
    for (uint32_t i = 0; i < 3; i++) {
        Bag sent = {.items.list.count = 0};
        QUERN_MUST(QUERN_LIST_PUSH(&sent.items, uint32_t, 100 + i));
        QUERN_MUST(
            quern_commands_accumulate(commands, quern_entity_find(world, "knight"), bag_id, &sent, append));
        quern_list_free(&sent.items.list);
    }
    QUERN_MUST(quern_world_flush(world));
    printf("%u items\n", QUERN_GET(world, quern_entity_find(world, "knight"), Bag)->items.list.count);
}

static void use_lists(quern_world *world)
{
    quern_component bag_id;
    const quern_component_def def = {
        QUERN_TYPE(Bag), .fields = {QUERN_LIST_FIELD(Bag, items, uint32_t), QUERN_FIELD(Bag, label)}};
    const quern_entity knight = quern_entity_find(world, "knight");
    QUERN_MUST(quern_component_register(world, &def, &bag_id));
    QUERN_MUST(quern_entity_add(world, knight, bag_id, NULL));
    Bag *bag = QUERN_GET(world, knight, Bag);
    QUERN_MUST(QUERN_LIST_PUSH(&bag->items, uint32_t, 12, 7));
    QUERN_MUST(quern_string_print(&bag->label, "%u things", bag->items.list.count));
    printf("%s, the first is %u\n", quern_string_text(&bag->label), bag->items.items[0]);
    send_items(world, bag_id);
}

static void create_many(quern_world *world)
{
    enum { COUNT = 1000 };
    static Place places[COUNT]; /* one array per component */
    for (int i = 0; i < COUNT; i++)
        places[i] = (Place){(float)i, 0};
    const quern_component place = QUERN_ID(world, Place);
    QUERN_MUST(quern_entity_create_many(world, &place, (const void *[]){places}, 1, COUNT, NULL));
}

static void use_resource(quern_world *world)
{
    quern_resource score;
    QUERN_MUST(QUERN_RESOURCE_REGISTER(world, &score, Score));
    Score *value = quern_resource_get(world, score); /* systems use QUERN_RESOURCE instead */
    value->points = 7;
    printf("score: %d\n", value->points);
}

static void iterate(quern_world *world)
{
    quern_query *query;
    const quern_query_def def = {
        .terms = {quern_term_write(QUERN_ID(world, Place)), quern_term_read(QUERN_ID(world, Health))}};
    QUERN_MUST(quern_query_create(world, &def, &query));
    quern_query_iterator it = quern_query_iterate(query);
    while (quern_query_next(&it)) {
        Place *places = QUERN_COLUMN(&it.view, 0, Place);
        const uint32_t count = it.view.count;
        for (uint32_t i = 0; i < count; i++)
            places[i].x += 1;
    }
    quern_query_destroy(query); /* keep a query that you need again */
}

static void count_entities(quern_world *world)
{
    quern_query_def def;
    quern_query *query;
    QUERN_MUST(quern_query_parse(world, "Place, !Health", &def));
    QUERN_MUST(quern_query_create(world, &def, &query));
    printf("%d places without health\n", (int)quern_query_count(query));
    quern_query_destroy(query);
}

static void change_all(quern_world *world)
{
    quern_query_def def;
    quern_query *query;
    QUERN_MUST(quern_query_parse(world, "Place, !Health", &def));
    QUERN_MUST(quern_query_create(world, &def, &query));
    QUERN_MUST(quern_entity_add_matching(query, quern_component_find(world, "Frozen"), NULL, NULL));
    QUERN_MUST(quern_entity_destroy_matching(query, NULL));
    quern_query_destroy(query);
}

static void use_text(quern_world *world)
{
    const quern_entity knight = quern_entity_find(world, "knight");
    quern_byte_buffer text = {0};
    QUERN_MUST(quern_entity_set_text(world, knight, "Place.x", "12.5"));
    QUERN_MUST(quern_entity_get_text(world, knight, "Place.x", quern_sink_bytes(&text)));
    printf("the knight is at x = %.*s\n", (int)text.size_bytes, (const char *)text.bytes);
    quern_byte_buffer_release(&text);
}

static void log_message(void *user_data, quern_log_level level, const char *message)
{
    fprintf(user_data, "%s: %s\n", level == QUERN_LOG_ERROR ? "error" : "note", message);
}

/* Counts the bytes in use, and leaves the rest to the default allocator. Called from several threads. */
typedef struct Meter {
    quern_allocator next;
    atomic_size_t used_bytes;
} Meter;

static void *allocate(void *user_data, size_t size_bytes, size_t alignment_bytes)
{
    Meter *meter = user_data;
    void *memory = meter->next.allocate(meter->next.user_data, size_bytes, alignment_bytes);
    if (memory != NULL) atomic_fetch_add(&meter->used_bytes, size_bytes);
    return memory;
}

static void release(void *user_data, void *memory, size_t size_bytes, size_t alignment_bytes)
{
    Meter *meter = user_data;
    atomic_fetch_sub(&meter->used_bytes, size_bytes);
    meter->next.release(meter->next.user_data, memory, size_bytes, alignment_bytes);
}

static quern_world *create_world(Meter *meter)
{
    quern_world *world;
    const quern_world_def def = {
        .allocator = {.allocate = allocate, .release = release, .user_data = meter}};
    QUERN_MUST(quern_world_create(&def, &world));
    return world;
}

static void use_several_worlds(quern_world *world)
{
    Meter meter = {.next = quern_allocator_default()};
    quern_world *editor = create_world(&meter);
    QUERN_MUST(QUERN_CREATE(editor, NULL, QUERN_VALUE(Place, 0, 0)));
    printf("both worlds have Place: %s\n",
           quern_component_equal(QUERN_ID(world, Place), QUERN_ID(editor, Place)) ? "as one"
                                                                                  : "each its own");
    printf("the second world has asked for memory: %s\n",
           atomic_load(&meter.used_bytes) > 0 ? "yes" : "no");
    quern_world_destroy(editor);
    printf("bytes in use after it: %zu\n", atomic_load(&meter.used_bytes));
}

int main(void)
{
    quern_world *world;
    quern_log_set_handler(log_message, stderr);
    QUERN_MUST(quern_world_create(NULL, &world));
    create_entities(world);
    use_lists(world);
    create_many(world);
    use_resource(world);
    iterate(world);
    count_entities(world);
    change_all(world);
    use_text(world);
    use_several_worlds(world);
    quern_world_destroy(world);
}
