/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "tests/flow/flow_setup.h"
#include "tests/support/random.h"
#include "tests/support/tracked.h"

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
    must(quern_component_register(
        it->world,
        &(quern_component_def){.name = "link",
                               .size_bytes = 8,
                               .alignment_bytes = 8,
                               .fields = {{"entity", QUERN_FIELD_ENTITY, 0, .count = 1}}},
        &it->kinds[1]));
    it->kinds[2] = setup_tag(it->world, "tag");
    must(quern_component_register(it->world,
                                  &(quern_component_def){.name = "toggle",
                                                         .size_bytes = 4,
                                                         .alignment_bytes = 4,
                                                         .can_disable = true,
                                                         .row_changes = true},
                                  &it->kinds[3]));
    it->kinds[4] = tracked_register(it->world, "hooked", &it->counts);
    must(quern_component_register(
        it->world,
        &(quern_component_def){
            .name = "needs", .size_bytes = 4, .alignment_bytes = 4, .required = {it->kinds[0]}},
        &it->kinds[5]));
    it->parent = quern_world_parent(it->world);
    must(quern_relation_register(it->world, &(quern_relation_def){.name = "likes", .many = true},
                                 &it->likes));
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
            quern_entity first;
            open_twin(&twins[t]);
            must(quern_entity_create(twins[t].world, &first));
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
