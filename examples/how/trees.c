/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* The answers of docs/how.md on entities that are related to each other, as one program. */
#include <quern/quern.h>

#include <stdio.h>

typedef struct Weight {
    float kilograms;
} Weight;

typedef struct Space {
    float share;
} Space;

/* What the systems of this program need to know of the world. */
typedef struct Party {
    quern_component weight, burning;
    quern_relation parent, likes;
    quern_prefab cart;
    uint32_t wheel; /* number of the wheel among the members of the cart */
} Party;

/* Adds up the weights of an entity and of all that it carries. */
static float weigh(quern_context *context, const Party *party, quern_entity entity)
{
    const Weight *weight = quern_context_lookup(context, entity, party->weight);
    float sum = weight != NULL ? weight->kilograms : 0;
    for (quern_entity item = quern_context_first_source(context, entity, party->parent);
         !quern_entity_is_null(item); item = quern_context_next_sibling(context, item, party->parent))
        sum += weigh(context, party, item);
    return sum;
}

static void show_load(quern_context *context, const quern_view *view)
{
    const Party *party = quern_context_user_data(context);
    for (uint32_t end = view->count, i = 0; i < end; i++) {
        const quern_entity carrier = view->entities[i];
        if (!quern_entity_is_null(quern_context_target(context, carrier, party->parent))) continue;
        printf("%u items, %g kg in all\n", quern_context_source_count(context, carrier, party->parent),
               (double)weigh(context, party, carrier));
    }
}

static void add_load(quern_schedule *schedule, Party *party)
{
    const quern_system_def def = {.name = "show load",
                                  .run = show_load,
                                  .terms = {quern_term_with(party->weight)},
                                  .lookups = {{.component = party->weight}},
                                  .relations = {party->parent}, /* what the callback may walk */
                                  .flags = QUERN_SYSTEM_SERIAL,
                                  .user_data = party};
    QUERN_MUST(quern_schedule_add_system(schedule, &def, NULL));
}

/* Each entity that likes a burning one stops liking it, and likes a new one if it has no other. */
static void lose_friends(quern_context *context, const quern_view *view)
{
    const Party *party = quern_context_user_data(context);
    quern_commands *commands = quern_context_commands(context);
    for (uint32_t end = view->count, i = 0; i < end; i++) {
        quern_entity fans[8], friend_of[8], other;
        const uint32_t fan_count =
            quern_context_list_sources(context, view->entities[i], party->likes, fans, 8);
        for (uint32_t k = 0; k < fan_count && k < 8; k++) {
            if (quern_context_has(context, fans[k], party->burning) &&
                quern_context_is_component_enabled(context, fans[k], party->burning))
                continue;
            const uint32_t count = quern_context_list_targets(context, fans[k], party->likes, friend_of, 8);
            printf("a fan of %u leaves one, which likes back: %s\n", count,
                   quern_context_has_target(context, view->entities[i], party->likes, fans[k]) ? "yes"
                                                                                               : "no");
            QUERN_MUST(quern_commands_unrelate_from(commands, fans[k], party->likes, view->entities[i]));
            if (quern_context_target_count(context, fans[k], party->likes) > 1) continue;
            QUERN_MUST(quern_commands_create(commands, &other)); /* provisional, but commands may use it */
            QUERN_MUST(quern_commands_relate(commands, fans[k], party->likes, other));
        }
        QUERN_MUST(quern_commands_set_enabled(commands, view->entities[i], false)); /* with all below it */
    }
}

static void add_loss(quern_world *world, quern_schedule *schedule, Party *party)
{
    (void)quern_world_disabled_tag(world); /* registered before a system disables entities */
    const quern_system_def def = {.name = "lose friends",
                                  .run = lose_friends,
                                  .terms = {quern_term_with(party->burning)},
                                  .lookups = {{.component = party->burning}},
                                  .relations = {party->likes},
                                  .flags = QUERN_SYSTEM_SERIAL,
                                  .user_data = party};
    QUERN_MUST(quern_schedule_add_system(schedule, &def, NULL));
}

static void sort_bag(quern_world *world, quern_entity bag, quern_entity sword)
{
    const quern_relation parent = quern_world_parent(world); /* ordered; others by .ordered */
    QUERN_MUST(
        quern_entity_move_before(world, sword, parent, quern_entity_first_source(world, bag, parent)));
    printf("the sword is at %u, ", quern_entity_sibling_index(world, sword, parent));
    QUERN_MUST(quern_entity_move_before(world, sword, parent, quern_entity_null())); /* to the end */
    const quern_entity before = quern_entity_previous_sibling(world, sword, parent);
    printf("then behind '%s'\n", quern_entity_name(world, before));
}

static uint32_t count_levels(quern_world *world, quern_entity root)
{
    quern_entity entities[64] = {root};
    uint32_t level_count = 0;
    for (uint32_t first = 0, end = 1; first < end; level_count++) {
        const quern_source_list below = {.relation = quern_world_parent(world),
                                         .targets = entities + first,
                                         .target_count = end - first,
                                         .sources = entities + end, /* the next level, behind this one */
                                         .capacity = 64 - end};
        const uint64_t count = quern_entity_list_sources_many(world, &below);
        first = end;
        end += count < below.capacity ? (uint32_t)count : below.capacity;
    }
    return level_count;
}

static void visit_sources(quern_world *world, quern_schedule *schedule, quern_entity bag, quern_entity belt)
{
    quern_query *query;
    const quern_relation parent = quern_world_parent(world);
    const quern_query_def def = {.terms = {quern_term_target(parent, bag)}};
    const quern_entity targets[] = {bag, belt};
    QUERN_MUST(quern_query_create(world, &def, &query));
    for (int i = 0; i < 2; i++) { /* one query for all targets, one after the other */
        QUERN_MUST(quern_query_set_target(query, targets[i]));
        printf("%d entities, ", (int)quern_query_count(query));
    }
    quern_query_destroy(query);
    const quern_system rattle = quern_schedule_find_system(schedule, "rattle");
    QUERN_MUST(quern_schedule_set_target(schedule, rattle, belt)); /* the same for a system */
    QUERN_MUST(quern_schedule_run(schedule, NULL, 0));
}

static void rattle(quern_context *context, const quern_view *view)
{
    const Weight *const *owners = QUERN_UP(view, 1, Weight); /* NULL: no ancestor has a weight */
    (void)context;
    for (uint32_t end = view->count, i = 0; i < end; i++)
        printf("rattling below %g kg\n", owners[i] != NULL ? (double)owners[i]->kilograms : 0);
}

static void add_rattle(quern_schedule *schedule, const Party *party)
{
    const quern_system_def def = {
        .name = "rattle",
        .run = rattle,
        .terms = {quern_term_target(party->parent, quern_entity_null()), /* none yet: no rows */
                  quern_term_up_nearest(party->weight, party->parent)},
        .flags = QUERN_SYSTEM_SERIAL};
    QUERN_MUST(quern_schedule_add_system(schedule, &def, NULL));
}

static void capture_cart(quern_world *world, Party *party, quern_entity cart, quern_entity wheel)
{
    quern_component slot;
    QUERN_MUST(quern_prefab_slot_register(world, "wheel", &slot));
    QUERN_MUST(quern_entity_set(world, cart, slot, &wheel));
    QUERN_MUST(quern_prefab_capture(world, cart, &party->cart));
    party->wheel = quern_prefab_find_slot(world, party->cart, slot); /* once, for all instances */
}

static void build_cart(quern_context *context)
{
    const Party *party = quern_context_user_data(context);
    quern_commands *commands = quern_context_commands(context);
    quern_entity cart;
    QUERN_MUST(quern_commands_spawn(commands, party->cart, NULL, &cart));
    const quern_entity wheel = quern_commands_spawned_member(commands, party->cart, cart, party->wheel);
    QUERN_MUST(quern_commands_add(commands, wheel, party->burning, NULL));
}

/* What is too heavy divides. */
static void divide(quern_context *context, const quern_view *view)
{
    quern_commands *commands = quern_context_commands(context);
    Weight *weights = quern_view_write(view, 0);
    for (uint32_t end = view->count, i = 0; i < end; i++) {
        quern_entity copy;
        if (weights[i].kilograms < 60) continue;
        weights[i].kilograms /= 2; /* the copy has this value, too, and copies of all that it carries */
        QUERN_MUST(quern_commands_clone(commands, view->entities[i], NULL, &copy));
        QUERN_MUST(quern_commands_set_name(commands, copy, "half"));
    }
}

/* Each load of the cart takes up a part of it, which is the value of the edge. */
static void load_cart(quern_world *world, quern_entity cart, quern_entity crate, quern_entity barrel)
{
    quern_component space;
    quern_relation rides;
    QUERN_MUST(QUERN_COMPONENT_REGISTER_FIELDS(world, &space, Space, share));
    const quern_relation_def def = {
        .name = "rides", .on_target_destroyed = QUERN_TARGET_UNRELATES, .value = space};
    QUERN_MUST(quern_relation_register(world, &def, &rides));
    QUERN_MUST(quern_entity_relate_with(world, crate, rides, cart, &(Space){0.5f}));
    QUERN_MUST(quern_entity_relate_with(world, barrel, rides, cart, &(Space){0.25f}));
    QUERN_MUST(quern_entity_set_edge_value(world, crate, rides, cart, &(Space){0.375f}));
    const Space *share = quern_entity_edge_value(world, crate, rides, cart);
    printf("the crate takes %g of the cart\n", (double)share->share);
    QUERN_MUST(quern_entity_unrelate(world, crate, rides)); /* the value ends with the edge */
}

static bool is_hierarchy(quern_world *world, quern_relation relation)
{
    return quern_relation_equal(relation, quern_world_parent(world));
}

int main(void)
{
    quern_world *world;
    quern_schedule *schedule;
    Party party;
    quern_entity hero, bag, belt, sword, fan, cart, wheel;
    QUERN_MUST(quern_world_create(NULL, &world));
    QUERN_MUST(quern_schedule_create(world, NULL, &schedule));
    QUERN_MUST(QUERN_REGISTER(world, Weight, kilograms));
    QUERN_MUST(QUERN_REGISTER_TAGS(world, Burning));
    QUERN_MUST(
        quern_relation_register(world, &(quern_relation_def){.name = "likes", .many = true}, &party.likes));
    party.parent = quern_world_parent(world);
    party.weight = QUERN_ID(world, Weight);
    party.burning = quern_component_find(world, "Burning");
    QUERN_MUST(QUERN_CREATE(world, &hero, QUERN_VALUE(Weight, 70)));
    QUERN_MUST(QUERN_CREATE(world, &bag, QUERN_VALUE(Weight, 2)));
    QUERN_MUST(quern_entity_create(world, &belt));
    QUERN_MUST(QUERN_CREATE(world, &sword, QUERN_VALUE(Weight, 1.5f)));
    QUERN_MUST(QUERN_CREATE(world, &cart, QUERN_VALUE(Weight, 40)));
    QUERN_MUST(quern_entity_create(world, &wheel));
    QUERN_MUST(quern_entity_create(world, &fan));
    QUERN_MUST(quern_entity_set_name(world, belt, "belt"));
    QUERN_MUST(quern_entity_relate(world, belt, party.parent, bag));
    QUERN_MUST(quern_entity_relate(world, sword, party.parent, bag));
    QUERN_MUST(quern_entity_relate(world, bag, party.parent, hero));
    QUERN_MUST(quern_entity_relate(world, wheel, party.parent, cart));
    sort_bag(world, bag, sword);
    printf("levels below the hero: %u\n", count_levels(world, hero));

    add_load(schedule, &party);
    QUERN_MUST(quern_schedule_run(schedule, NULL, 0));
    add_rattle(schedule, &party);
    QUERN_MUST(quern_entity_relate(world, sword, party.parent, belt));
    visit_sources(world, schedule, bag, belt);

    capture_cart(world, &party, cart, wheel);
    const quern_system_def build = {.name = "build", .begin = build_cart, .user_data = &party};
    quern_system building;
    QUERN_MUST(quern_schedule_add_system(schedule, &build, &building));
    QUERN_MUST(quern_schedule_run(schedule, NULL, 0));
    QUERN_MUST(quern_schedule_set_system_enabled(schedule, building, false));
    QUERN_MUST(quern_entity_add(world, belt, party.burning, NULL));
    QUERN_MUST(quern_entity_relate(world, fan, party.likes, belt));
    QUERN_MUST(quern_entity_relate(world, belt, party.likes, fan));
    const quern_system_def dividing = {
        .name = "divide", .run = divide, .terms = {quern_term_write(party.weight)}};
    quern_system divides;
    QUERN_MUST(quern_schedule_add_system(schedule, &dividing, &divides));
    QUERN_MUST(quern_schedule_run(schedule, NULL, 0));
    QUERN_MUST(quern_schedule_set_system_enabled(schedule, divides, false));
    printf("the other half carries %u\n",
           quern_entity_source_count(world, quern_entity_find(world, "half"), party.parent));
    load_cart(world, cart, bag, sword);
    add_loss(world, schedule, &party);
    QUERN_MUST(quern_schedule_run(schedule, NULL, 0));
    printf("the fan likes %u, 'likes' is %s\n", quern_entity_target_count(world, fan, party.likes),
           is_hierarchy(world, party.likes) ? "the hierarchy" : "no hierarchy");
    quern_schedule_destroy(schedule);
    quern_world_destroy(world);
}
