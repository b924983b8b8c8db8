/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */

#include "tests/flow/flow_setup.h"
#include "tests/support/random.h"
#include "tests/support/tracked.h"

#include <string.h>

/* Clearing and cloning, compared in random worlds with what they stand for: removing each component, and a prefab that is
 * captured, spawned once and destroyed. Both of a pair of worlds get the same calls otherwise. */

enum { STEPS = 400, MOST = 600, KINDS = 6 };

typedef struct twin {
    quern_world *world;
    quern_component id,
        kinds
            [KINDS]; /* a number, a described handle, a tag, a toggle, hooks, one that requires the number */
    quern_relation parent, likes;
    quern_history *history;
    tracked_counts counts;
    quern_entity entities[MOST];
    uint32_t count;
} twin;

static twin twins[2];

static void open_twin(twin *it)
{
    *it = (twin){.world = setup_world()};
    it->id = setup_component(it->world, "id", 8, 8);
    it->kinds[0] = setup_component(it->world, "number", 8, 8);
    it->kinds[1] = make_component(it->world, .name = "link", .size_bytes = 8, .alignment_bytes = 8,
                                  .fields = {{"entity", QUERN_FIELD_ENTITY, 0, .count = 1}});
    it->kinds[2] = setup_tag(it->world, "tag");
    it->kinds[3] = make_component(it->world, .name = "toggle", .size_bytes = 4, .alignment_bytes = 4,
                                  .can_disable = true, .row_changes = true);
    it->kinds[4] = tracked_register(it->world, "hooked", &it->counts);
    it->kinds[5] = make_component(it->world, .name = "needs", .size_bytes = 4, .alignment_bytes = 4,
                                  .required = {it->kinds[0]});
    it->parent = quern_world_parent(it->world);
    it->likes = make_relation(it->world, .name = "likes", .many = true);
    must(quern_history_create(it->world, &(quern_history_def){.frame_count = 4}, &it->history));
}

static void close_twin(twin *it)
{
    assert_valid(it->world);
    quern_history_destroy(it->history);
    quern_world_destroy(it->world);
    cr_assert_eq(it->counts.broken_count, 0u);
    cr_assert_eq(tracked_live_count(&it->counts), 0u);
}

static quern_entity pick(const twin *it, random_source *random)
{
    return it->entities[random_below(random, it->count)];
}

static void add(twin *it, random_source *random, quern_entity entity)
{
    const uint32_t kind = random_below(random, KINDS);
    uint64_t words[8] = {random_below(random, 100)};
    if (kind == 1) words[0] = pick(it, random).bits;
    if (kind == 4) {
        tracked value;
        tracked_construct(&value, words[0], &it->counts);
        must(quern_entity_set(it->world, entity, it->kinds[4], &value));
        tracked_destroy(&value, &it->counts);
    } else {
        must(quern_entity_set(it->world, entity, it->kinds[kind], words));
    }
    if (kind == 3 && random_chance(random, 50))
        must(quern_entity_set_component_enabled(it->world, entity, it->kinds[3], false));
}

static void note(twin *it, random_source *random, quern_entity entity)
{
    const uint64_t id = random_next(random) | 1;
    must(quern_entity_set(it->world, entity, it->id, &id));
    if (it->count < MOST) it->entities[it->count++] = entity;
}

/* Changes that are the same in both worlds. Some fail, for example because of a circle, and then in both. */
static void change(twin *it, random_source *random)
{
    char name[16];
    const quern_entity entity = pick(it, random);
    quern_entity made;
    switch (random_below(random, 8)) {
    case 0:
        must(quern_entity_create(it->world, &made));
        note(it, random, made);
        break;
    case 1:
        (void)quern_entity_relate(it->world, entity, it->parent, pick(it, random));
        break;
    case 2:
        (void)quern_entity_relate(it->world, entity, it->likes, pick(it, random));
        break;
    case 3:
        snprintf(name, sizeof name, "n%u", random_below(random, 20));
        (void)quern_entity_set_name(it->world, entity, name);
        break;
    case 4:
        must(quern_entity_set_enabled(it->world, entity, random_chance(random, 60)));
        break;
    default:
        add(it, random, entity);
    }
}

/* Gives the entities of a copied tree other ids, in the order of siblings, so that both worlds can be compared. */
static void rename_tree(twin *it, random_source *random, quern_entity root)
{
    note(it, random, root);
    for (quern_entity child = quern_entity_first_source(it->world, root, it->parent);
         !quern_entity_is_null(child); child = quern_entity_next_sibling(it->world, child, it->parent))
        rename_tree(it, random, child);
}

static quern_entity clone_by_call(const twin *it, quern_entity entity)
{
    quern_entity root;
    must(quern_entity_clone(it->world, entity, NULL, &root));
    return root;
}

static quern_entity clone_by_prefab(const twin *it, quern_entity entity)
{
    quern_entity root;
    quern_prefab prefab;
    must(quern_prefab_capture(it->world, entity, &prefab));
    must(quern_prefab_spawn(
        it->world, prefab, &(quern_spawn_def){.parent = quern_entity_target(it->world, entity, it->parent)},
        &root));
    must(quern_prefab_destroy(it->world, prefab));
    return root;
}

static uint32_t size_of_tree(const twin *it, quern_entity root)
{
    uint32_t count = 1;
    for (quern_entity child = quern_entity_first_source(it->world, root, it->parent);
         !quern_entity_is_null(child); child = quern_entity_next_sibling(it->world, child, it->parent))
        count += size_of_tree(it, child);
    return count;
}

/* Components that others require are refused until these are gone. */
static void remove_one_by_one(const twin *it, quern_entity entity)
{
    for (uint32_t turn = 0; turn < 2; turn++)
        for (uint32_t k = 0; k < KINDS; k++)
            if (quern_entity_has(it->world, entity, it->kinds[k]))
                (void)quern_entity_remove(it->world, entity, it->kinds[k]);
}

static void clear_but_id(const twin *it, quern_entity entity)
{
    const uint64_t id = *(const uint64_t *)quern_entity_get(it->world, entity, it->id);
    must(quern_entity_clear(it->world, entity));
    must(quern_entity_set(it->world, entity, it->id, &id));
}

Test(clear_and_clone, agree_with_what_they_stand_for, .timeout = 120)
{
    for (uint64_t seed = 1; seed <= 10; seed++) {
        random_source randoms[2] = {{seed}, {seed}};
        uint32_t clone_count = 0, clear_count = 0;
        for (uint32_t t = 0; t < 2; t++) {
            open_twin(&twins[t]);
            const quern_entity first = setup_entity(twins[t].world);
            note(&twins[t], &randoms[t], first);
        }
        for (uint32_t step = 0; step < STEPS; step++) {
            for (uint32_t t = 0; t < 2; t++) {
                twin *it = &twins[t];
                random_source *random = &randoms[t];
                change(it, random);
                const uint32_t kind = random_below(random, 10);
                const quern_entity entity = pick(it, random);
                if (kind == 0 && size_of_tree(it, entity) < 20) {
                    rename_tree(it, random,
                                t == 0 ? clone_by_call(it, entity) : clone_by_prefab(it, entity));
                    clone_count++;
                } else if (kind == 1) {
                    (t == 0 ? clear_but_id : remove_one_by_one)(it, entity);
                    clear_count++;
                } else if (kind == 2) {
                    must(quern_history_save(it->history, step, NULL));
                    must(quern_history_restore(it->history, step, NULL));
                }
            }
            cr_assert_eq(quern_world_hash_by(twins[0].world, twins[0].id),
                         quern_world_hash_by(twins[1].world, twins[1].id), "seed %llu, step %u",
                         (unsigned long long)seed, step);
        }
        cr_assert_gt(clone_count, 20u);
        cr_assert_gt(clear_count, 20u);
        for (uint32_t t = 0; t < 2; t++)
            close_twin(&twins[t]);
    }
}

/* ---------------------------------------------------------------------------------------- moved values */

/* Values of a type with a move hook and no copy hook: a call moves them from the caller. Each value refers to itself, so
 * that one moved as bytes shows. */

typedef struct pinned {
    const struct pinned *self;
    uint64_t number;
} pinned;

static int living, misplaced;
static quern_world *world;
static quern_component type;

static void construct(void *values, uint32_t count, void *user_data)
{
    pinned *made = values;
    for (uint32_t i = 0; i < count; i++)
        made[i] = (pinned){.self = &made[i]};
    living += (int)count;
}

static void move(void *targets, void *sources, uint32_t count, void *user_data)
{
    pinned *to = targets, *from = sources;
    for (uint32_t i = 0; i < count; i++) {
        misplaced += from[i].self != &from[i];
        to[i] = (pinned){.self = &to[i], .number = from[i].number};
        from[i].self = NULL;
    }
}

static void destroy(void *values, uint32_t count, void *user_data)
{
    const pinned *gone = values;
    for (uint32_t i = 0; i < count; i++)
        misplaced += gone[i].self != &gone[i];
    living -= (int)count;
}

static const quern_hooks hooks = {.construct = construct, .move = move, .destroy = destroy};

static void open_world(void)
{
    world = setup_world();
    type = make_component(world, .name = "pinned", .size_bytes = sizeof(pinned),
                          .alignment_bytes = _Alignof(pinned), .hooks = hooks);
}

static void close_world(void)
{
    quern_world_destroy(world);
    assert_at_end(living == 0);
    assert_at_end(misplaced == 0);
}

/* The first parent of a world registers the relation. */
Test(clone, may_be_the_first_child_of_its_world)
{
    quern_world *fresh = setup_world();
    const quern_entity entity = setup_entity(fresh), above = setup_entity(fresh);
    quern_entity copy;
    must(quern_entity_clone(fresh, entity, &(quern_spawn_def){.parent = above}, &copy));
    cr_assert(quern_entity_equal(quern_entity_target(fresh, copy, quern_world_parent(fresh)), above));
    assert_valid(fresh);
    quern_world_destroy(fresh);
}

TestSuite(moved_values, .init = open_world, .fini = close_world);

static pinned *make(pinned *value, uint64_t number)
{
    construct(value, 1, NULL);
    value->number = number;
    return value;
}

static void assert_holds(quern_entity entity, uint64_t number)
{
    const pinned *held = quern_entity_get(world, entity, type);
    cr_assert_not_null(held);
    cr_assert_eq(held->self, held);
    cr_assert_eq(held->number, number);
}

Test(moved_values, of_created_entities)
{
    pinned value, values[300];
    const void *given = make(&value, 1), *columns[] = {values};
    quern_entity entity, entities[300];
    must(quern_entity_create_with(world, &type, &given, 1, &entity));
    cr_assert_null(value.self);
    assert_holds(entity, 1);
    for (uint64_t i = 0; i < 300; i++)
        make(&values[i], i);
    must(quern_entity_create_many(world, &type, columns, 1, 300, entities));
    for (uint64_t i = 0; i < 300; i++)
        assert_holds(entities[i], i);
}

Test(moved_values, that_are_added_and_set)
{
    pinned first, second, third;
    quern_entity entity = setup_entity(world);
    must(quern_entity_add(world, entity, type, make(&first, 1)));
    assert_holds(entity, 1);
    must(quern_entity_set(world, entity, type, make(&second, 2)));
    assert_holds(entity, 2);
    must(quern_entity_create(world, &entity));
    must(quern_entity_set(world, entity, type, make(&third, 3)));
    assert_holds(entity, 3);
}

Test(moved_values, of_commands)
{
    pinned first, second, third;
    const void *given = make(&first, 1);
    quern_entity entity, gone;
    must(quern_entity_create(world, &entity));
    must(quern_entity_create(world, &gone));
    quern_commands *commands = quern_world_commands(world);
    record_entity_with(commands, &type, &given, 1);
    must(quern_commands_set(commands, entity, type, make(&second, 2)));
    must(quern_commands_set(commands, gone, type, make(&third, 3)));
    must(quern_entity_destroy(world, gone)); /* and the world destroys the value */
    must(quern_world_flush(world));
    assert_holds(entity, 2);
    cr_assert_eq(living, 2);
}

Test(moved_values, of_events)
{
    pinned value;
    quern_event event = make_event(world, .name = "pinned", .size_bytes = sizeof(pinned),
                                   .alignment_bytes = 8, .hooks = hooks);
    must(quern_world_emit(world, event, make(&value, 1), 1));
    cr_assert_null(value.self);
}

Test(moved_values, are_not_given_to_several_entities)
{
    pinned value;
    quern_entity entities[2];
    const quern_term term = quern_term_with(type);
    quern_query *query = setup_query(world, &term, 1);
    must(quern_entity_create_many(world, &type, NULL, 1, 2, entities));
    quern_query_iterator it = quern_query_iterate(query);
    cr_assert(quern_query_next(&it));
    quern_commands *commands = quern_world_commands(world);
    cr_assert_eq(quern_commands_set_view(commands, &it.view, NULL, type, make(&value, 1)),
                 QUERN_ERROR_INVALID_ARGUMENT);
    cr_assert_not_null(strstr(quern_error_message(), "quern_commands_set_view: "));
    cr_assert_not_null(
        strstr(quern_error_message(), "'pinned' has a move or destroy hook and no copy hook"));
    cr_assert_eq(quern_commands_add_view(commands, &it.view, NULL, type, &value),
                 QUERN_ERROR_INVALID_ARGUMENT);
    cr_assert_eq(value.self, &value);
    destroy(&value, 1, NULL);
    pinned values[2];
    for (int i = 0; i < 2; i++)
        make(&values[i], 4 + (uint64_t)i);
    must(quern_commands_set_view_values(commands, &it.view, NULL, type, values));
    quern_query_destroy(query);
    must(quern_world_flush(world));
    for (uint64_t i = 0; i < 2; i++)
        assert_holds(entities[i], 4 + i);
}
