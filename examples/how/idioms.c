/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Quern's side of the pages docs/coming-from-*.md, as one program. */
#include <quern/quern.h>

#include <stdio.h>
#include <stdlib.h>

typedef struct Position {
    float x, y;
} Position;

typedef struct Velocity {
    float x, y;
} Velocity;

typedef struct Health {
    int32_t points;
} Health;

typedef struct Gravity {
    float y;
} Gravity;

typedef struct Hit {
    quern_entity victim;
} Hit;

typedef struct Types {
    quern_resource gravity;
    quern_event hit;
    quern_relation likes;
} Types;

QUERN_SYSTEM(move, (Position, position), (const Velocity, velocity))
{
    const float dt = (float)quern_context_delta_seconds(context);
    QUERN_ROWS(i)
    {
        position[i].x += velocity[i].x * dt;
        position[i].y += velocity[i].y * dt;
    }
}

QUERN_SYSTEM(fall, (Velocity, velocity))
{
    const Gravity *gravity = QUERN_RESOURCE(context, const Gravity);
    QUERN_ROWS(i) velocity[i].y += gravity->y * (float)quern_context_delta_seconds(context);
}

QUERN_SYSTEM(die, (const Health, health))
{
    quern_commands *commands = quern_context_commands(context);
    QUERN_ROWS(i)
    if (health[i].points <= 0) {
        QUERN_MUST(QUERN_CREATE(commands, NULL, QUERN_VALUE(Position, 0, 0), QUERN_TAG(Ghost)));
        QUERN_MUST(quern_commands_destroy(commands, view->entities[i]));
    }
}

static void welcome(quern_context *context, const quern_view *view)
{
    (void)context;
    for (uint32_t end = view->count, i = 0; i < end; i++)
        printf("entity %u has got a health\n", quern_entity_index(view->entities[i]));
}

static void add_welcome(quern_world *world, quern_schedule *schedule)
{
    const quern_system_def def = {.name = "welcome",
                                  .run = welcome,
                                  .terms = {quern_term_read(QUERN_ID(world, Health))},
                                  .reacts_to = QUERN_REACT_ADDED,
                                  .flags = QUERN_SYSTEM_SERIAL};
    QUERN_MUST(quern_schedule_add_system(schedule, &def, NULL));
}

static void count_hits(quern_context *context, const quern_view *view)
{
    (void)context;
    printf("%u hits\n", view->count); /* QUERN_EVENTS(view, Hit) is the array */
}

static void add_hits(quern_world *world, quern_schedule *schedule, quern_event *hit)
{
    QUERN_MUST(QUERN_EVENT_REGISTER_FIELDS(world, hit, Hit, victim));
    const quern_system_def def = {
        .name = "count hits", .run = count_hits, .items = *hit, .flags = QUERN_SYSTEM_SERIAL};
    QUERN_MUST(quern_schedule_add_system(schedule, &def, NULL));
    QUERN_MUST(quern_world_emit(world, *hit, &(Hit){0}, 1)); /* in a system: quern_emit */
}

static void draw_moved(quern_context *context, const quern_view *view)
{
    (void)context;
    printf("%u positions to draw\n", view->count);
}

static void add_drawing(quern_world *world, quern_schedule *schedule)
{
    const quern_term moved = quern_term_changed(quern_term_read(QUERN_ID(world, Position)));
    const quern_system_def def = {.name = "draw moved", .phase = 1, .run = draw_moved, .terms = {moved}};
    QUERN_MUST(quern_schedule_add_system(schedule, &def, NULL));
}

static void use_world(quern_world *world)
{
    quern_entity knight;
    QUERN_MUST(QUERN_REGISTER(world, Position, x, y)); /* fields for archives, JSON and tools */
    QUERN_MUST(QUERN_CREATE(world, &knight, QUERN_VALUE(Position, 1, 2), QUERN_VALUE(Velocity, 3, 4)));
    QUERN_MUST(QUERN_REGISTER_TAGS(world, Knight, Ghost));
    QUERN_MUST(QUERN_ADD(world, knight, Knight));
    QUERN_MUST(QUERN_SET(world, knight, Health, 100));
    Health *health = QUERN_GET(world, knight, Health);
    health->points -= 10;
    quern_query *query;
    const quern_query_def def = {.terms = {quern_term_read(QUERN_ID(world, Position)),
                                           quern_term_optional(QUERN_ID(world, Health), QUERN_ACCESS_READ),
                                           quern_term_without(quern_component_find(world, "Ghost"))}};
    QUERN_MUST(quern_query_create(world, &def, &query));
    quern_query_iterator it = quern_query_iterate(query);
    while (quern_query_next(&it)) {
        const Position *positions = QUERN_COLUMN(&it.view, 0, const Position);
        for (uint32_t end = it.view.count, i = 0; i < end; i++)
            printf("at %g, %s\n", (double)positions[i].x,
                   quern_view_has(&it.view, 1) ? "mortal" : "immortal");
    }
    quern_query_destroy(query);
    QUERN_MUST(quern_entity_set_enabled(world, knight, false)); /* with all its descendants */
    QUERN_MUST(quern_entity_set_enabled(world, knight, true));
}

typedef struct Bag {
    QUERN_LIST(uint32_t) items;
} Bag;

static void use_lists(quern_world *world)
{
    quern_component bag_id;
    quern_entity entity;
    const quern_component_def def = {QUERN_TYPE(Bag), .fields = {QUERN_LIST_FIELD(Bag, items, uint32_t)}};
    QUERN_MUST(quern_component_register(world, &def, &bag_id));
    QUERN_MUST(quern_entity_create(world, &entity));
    QUERN_MUST(quern_entity_add(world, entity, bag_id, NULL));
    Bag *bag = QUERN_GET(world, entity, Bag);
    QUERN_MUST(QUERN_LIST_PUSH(&bag->items, uint32_t, 12));
}

static void use_trees(quern_world *world)
{
    quern_entity horse, saddle;
    QUERN_MUST(QUERN_CREATE(world, &horse, QUERN_VALUE(Position, 0, 0)));
    QUERN_MUST(quern_entity_create(world, &saddle));
    const quern_relation parent = quern_world_parent(world);
    QUERN_MUST(quern_entity_relate(world, saddle, parent, horse));
    for (quern_entity child = quern_entity_first_source(world, horse, parent); !quern_entity_is_null(child);
         child = quern_entity_next_sibling(world, child, parent))
        printf("child %u\n", quern_entity_index(child));
    QUERN_MUST(quern_entity_set_name(world, horse, "horse"));
    const quern_entity found = quern_entity_find(world, "horse");
    quern_prefab prefab;
    quern_entity copies[10];
    QUERN_MUST(quern_prefab_capture(world, found, &prefab)); /* the entity and all its descendants */
    QUERN_MUST(quern_prefab_spawn_many(world, prefab, 10, NULL, copies, NULL));
}

static void use_relation(quern_world *world, Types *types)
{
    quern_entity alice, bob;
    QUERN_MUST(quern_entity_create(world, &alice));
    QUERN_MUST(quern_entity_create(world, &bob));
    QUERN_MUST(quern_relation_register(world, &(quern_relation_def){.name = "likes"}, &types->likes));
    QUERN_MUST(quern_entity_relate(world, alice, types->likes, bob));
    const quern_query_def liked_by = {
        .terms = {quern_term_target(types->likes, bob)}}; /* all that like bob */
    quern_query *query;
    QUERN_MUST(quern_query_create(world, &liked_by, &query));
    printf("bob is liked by %d\n", (int)quern_query_count(query));
    quern_query_destroy(query);
}

static void copy_world(quern_world *from, quern_world *to)
{
    quern_byte_buffer bytes = {0};
    QUERN_MUST(quern_world_save(from, quern_sink_bytes(&bytes), NULL)); /* or quern_sink_file */
    QUERN_MUST(quern_world_load(to, quern_source_bytes(bytes.bytes, bytes.size_bytes), NULL, NULL));
    quern_byte_buffer_release(&bytes);
}

static void copy_ghost(void)
{
    quern_world *worlds[2];
    for (int i = 0; i < 2; i++) {
        QUERN_MUST(quern_world_create(NULL, &worlds[i]));
        QUERN_MUST(QUERN_REGISTER_TAGS(worlds[i], Ghost)); /* both worlds have the same types */
    }
    QUERN_MUST(QUERN_CREATE(worlds[0], NULL, QUERN_TAG(Ghost)));
    copy_world(worlds[0], worlds[1]);
    printf("the copy is %s\n",
           quern_world_hash(worlds[0]) == quern_world_hash(worlds[1]) ? "the same" : "different");
    for (int i = 0; i < 2; i++)
        quern_world_destroy(worlds[i]);
}

static void change_systems(quern_schedule *schedule, const quern_system_def *other)
{
    const quern_system fall_system = quern_schedule_find_system(schedule, "fall");
    QUERN_MUST(quern_schedule_replace_system(schedule, fall_system, other)); /* keeps its place and state */
    QUERN_MUST(quern_schedule_remove_system(schedule, fall_system));
}

int main(void)
{
    Types types;
    quern_world *world;
    quern_schedule *schedule;
    quern_jobs *jobs;
    QUERN_MUST(quern_world_create(NULL, &world));
    QUERN_MUST(quern_jobs_create(NULL, &jobs)); /* one thread per processor */
    /* registers types before systems name them */
    use_world(world);
    const quern_schedule_def def = {.phases = {"simulation", "display"}};
    QUERN_MUST(quern_schedule_create(world, &def, &schedule));
    QUERN_MUST(quern_schedule_set_fixed_step(schedule, 0, 1.0 / 60, 8));
    QUERN_MUST(QUERN_ADD_SYSTEM(schedule, move, .after = {"fall"}));
    QUERN_MUST(QUERN_RESOURCE_REGISTER(world, &types.gravity, Gravity));
    QUERN_MUST(QUERN_ADD_SYSTEM(schedule, fall, .resources = {{types.gravity, QUERN_ACCESS_READ}}));
    QUERN_MUST(QUERN_ADD_SYSTEM(schedule, die));
    add_welcome(world, schedule);
    add_drawing(world, schedule);
    add_hits(world, schedule, &types.hit);
    use_lists(world);
    use_trees(world);
    use_relation(world, &types);
    QUERN_MUST(QUERN_CREATE(world, NULL, QUERN_VALUE(Health, 5)));
    for (int frame = 0; frame < 3; frame++)
        QUERN_MUST(quern_schedule_run(schedule, jobs, 1.0 / 60));
    copy_ghost();
    const quern_system_def other = {.run = draw_moved,
                                    .terms = {quern_term_read(QUERN_ID(world, Position))}};
    change_systems(schedule, &other);
    quern_schedule_destroy(schedule);
    quern_jobs_destroy(jobs);
    quern_world_destroy(world);
}
