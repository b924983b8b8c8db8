/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Comparing a world with the model of the random program, and the values of its types. */

#include "tests/flow/every_parts.h"
#include "tests/support/setup.h"
#include "tests/support/tracked.h"

#include <stdlib.h>
#include <string.h>

static quern_entity handles[EVERY_MODEL_ENTITIES]; /* in the world that is compared; null: not found */

static void find_handles(quern_world *world, const every_handles *in, bool is_own)
{
    const quern_term terms[] = {quern_term_read(in->types[EVERY_ID]),
                                quern_term_optional(in->types[EVERY_OFF], QUERN_ACCESS_NONE)};
    quern_query *query = setup_query(world, terms, 2);
    quern_query_iterator walk = quern_query_iterate(query);
    memset(handles, 0, sizeof handles);
    while (quern_query_next(&walk)) {
        const uint64_t *ids = quern_view_read(&walk.view, 0);
        for (uint32_t i = 0; i < walk.view.count; i++) {
            const int entity = every_model_find_id(ids[i]);
            cr_assert(entity != EVERY_NONE && every_model_at(entity)->is_alive,
                      "the entity with id %llx is alive, but not in the model", (unsigned long long)ids[i]);
            cr_assert(quern_entity_is_null(handles[entity]), "two entities have the id %llx",
                      (unsigned long long)ids[i]);
            handles[entity] = walk.view.entities[i];
            if (is_own) every_model_learn(walk.view.entities[i], ids[i]);
        }
    }
    quern_query_destroy(query);
    for (int i = 0; i < (int)every_model_count(); i++) {
        cr_assert(!every_model_at(i)->is_alive || !quern_entity_is_null(handles[i]),
                  "the entity with id %llx is missing", (unsigned long long)every_model_at(i)->id);
        if (is_own && !every_model_at(i)->is_alive) handles[i] = every_model_at(i)->handle;
    }
}

static void compare_values(quern_world *world, const every_handles *in, int i,
                           const every_comparison *comparison)
{
    const every_entity *entity = every_model_at(i);
    const quern_entity handle = handles[i];
    for (uint32_t t = 0; t < EVERY_TYPES; t++) {
        uint64_t words[EVERY_WORDS];
        if (every_has(comparison->ignored_types, t)) continue;
        cr_assert_eq(quern_entity_has(world, handle, in->types[t]), every_has(entity->now.set, t),
                     "'%s' of the entity with id %llx", every_types[t].name,
                     (unsigned long long)entity->id);
        if (!every_has(entity->now.set, t)) continue;
        if (every_types[t].can_disable)
            cr_assert_eq(quern_entity_is_component_enabled(world, handle, in->types[t]),
                         !every_has(entity->now.disabled, t), "'%s' of the entity with id %llx, enabled",
                         every_types[t].name, (unsigned long long)entity->id);
        if (every_types[t].word_count == 0) continue;
        every_read(t, quern_entity_get(world, handle, in->types[t]), words);
        for (uint32_t w = 0; w < every_types[t].word_count; w++) {
            const uint32_t at = every_types[t].first_word + w;
            uint64_t expected = entity->now.words[at];
            if (t == EVERY_LINK && w == 0) {
                const int linked = (int)expected - 1;
                if (linked >= 0 && !every_model_at(linked)->is_alive &&
                    (comparison->ignores_dead_handles || quern_entity_is_null(handles[linked])))
                    continue;
                expected = linked < 0 ? 0 : handles[linked].bits;
            }
            cr_assert_eq(
                words[at], expected,
                "seed %llu, frame %llu: word %u of '%s' of the entity with id %llx is %llx, not %llx",
                (unsigned long long)every.seed, (unsigned long long)every.frame, w, every_types[t].name,
                (unsigned long long)entity->id, (unsigned long long)words[at],
                (unsigned long long)expected);
        }
    }
}

static void compare_siblings(const quern_world *world, quern_relation relation, uint32_t r, int target)
{
    quern_entity actual = quern_entity_first_source(world, handles[target], relation);
    int expected = every_model_next_sibling(r, target, true, 0);
    while (expected != EVERY_NONE) {
        cr_assert_eq(actual.bits, handles[expected].bits,
                     "the order of sources of the entity with id %llx in '%s'",
                     (unsigned long long)every_model_at(target)->id, every_relations[r].name);
        actual = quern_entity_next_sibling(world, actual, relation);
        expected = every_model_next_sibling(r, target, false, every_model_at(expected)->ranks[r]);
    }
    cr_assert(quern_entity_is_null(actual));
}

static void compare_edge_value(const quern_world *world, const every_handles *in, uint32_t i)
{
    const every_model_edge *expected = every_model_edge_at(i);
    const every_edge *found = quern_entity_edge_value(
        world, handles[expected->source], in->relations[expected->relation], handles[expected->target]);
    cr_assert_not_null(found);
    cr_assert_eq(found->target.bits, handles[expected->target].bits);
    cr_assert_eq(found->value, expected->value, "value of an edge of the entity with id %llx in '%s'",
                 (unsigned long long)every_model_at(expected->source)->id,
                 every_relations[expected->relation].name);
}

static void compare_relations(const quern_world *world, const every_handles *in,
                              const every_comparison *comparison)
{
    static uint32_t source_counts[EVERY_MODEL_ENTITIES];
    for (uint32_t r = 0; r < EVERY_RELATIONS; r++) {
        memset(source_counts, 0, sizeof source_counts);
        for (int i = 0; i < (int)every_model_count(); i++)
            if (r < EVERY_SINGLES && every_model_at(i)->is_alive &&
                every_model_at(i)->targets[r] != EVERY_NONE)
                source_counts[every_model_at(i)->targets[r]]++;
        for (uint32_t i = 0; i < every_model_edge_count(); i++)
            if (every_model_edge_at(i)->relation == r) {
                const every_model_edge *edge = every_model_edge_at(i);
                source_counts[edge->target]++;
                cr_assert(quern_entity_has_target(world, handles[edge->source], in->relations[r],
                                                  handles[edge->target]));
                if (every_has_values(r)) compare_edge_value(world, in, i);
            }
        for (int i = 0; i < (int)every_model_count(); i++) {
            const every_entity *entity = every_model_at(i);
            if (!entity->is_alive) continue;
            cr_assert_eq(quern_entity_source_count(world, handles[i], in->relations[r]), source_counts[i],
                         "sources of the entity with id %llx in '%s'", (unsigned long long)entity->id,
                         every_relations[r].name);
            cr_assert_eq(quern_entity_has(world, handles[i], quern_relation_component(in->relations[r])),
                         every_model_has_target(r, i), "'%s' of the entity with id %llx",
                         every_relations[r].name, (unsigned long long)entity->id);
            if (r >= EVERY_SINGLES) continue;
            const quern_entity expected =
                entity->targets[r] == EVERY_NONE ? quern_entity_null() : handles[entity->targets[r]];
            cr_assert_eq(quern_entity_target(world, handles[i], in->relations[r]).bits, expected.bits,
                         "target of the entity with id %llx in '%s'", (unsigned long long)entity->id,
                         every_relations[r].name);
            if (every_has_values(r) && entity->targets[r] != EVERY_NONE)
                cr_assert_eq(
                    every_home_read(quern_entity_edge_value(world, handles[i], in->relations[r], expected)),
                    entity->edge_values[r], "value of the edge of the entity with id %llx in '%s'",
                    (unsigned long long)entity->id, every_relations[r].name);
            if (source_counts[i] > 0 && !comparison->ignores_order)
                compare_siblings(world, in->relations[r], r, i);
        }
    }
}

static void compare_resource(quern_world *world, const every_handles *in, uint32_t r,
                             const every_comparison *comparison)
{
    const every_resource expected = every_resource_at(r);
    const every_resource found = every_resource_read(r, quern_resource_get(world, in->resources[r]));
    cr_assert_eq(found.value, expected.value, "resource %u is %llu, not %llu", r,
                 (unsigned long long)found.value, (unsigned long long)expected.value);
    if (expected.entity == EVERY_NONE) {
        cr_assert(quern_entity_is_null(found.handle));
    } else if (every_model_at(expected.entity)->is_alive || !comparison->ignores_dead_handles) {
        cr_assert_eq(found.handle.bits, handles[expected.entity].bits, "the handle in resource %u", r);
    }
}

void every_model_compare(quern_world *world, bool is_own, const every_comparison *comparison)
{
    every_handles in;
    static const every_comparison everything;
    if (comparison == NULL) comparison = &everything;
    assert_valid(world);
    every_register(world, &in);
    find_handles(world, &in, is_own);
    for (int i = 0; i < (int)every_model_count(); i++) {
        if (!every_model_at(i)->is_alive) continue;
        const char *name = quern_entity_name(world, handles[i]);
        compare_values(world, &in, i, comparison);
        cr_assert_str_eq(name != NULL ? name : "", every_model_at(i)->name,
                         "name of the entity with id %llx", (unsigned long long)every_model_at(i)->id);
    }
    compare_relations(world, &in, comparison);
    for (uint32_t r = 0; r < EVERY_RESOURCES && !comparison->ignores_resources; r++)
        compare_resource(world, &in, r, comparison);
}

/* A world with the same types, and nothing else. */
quern_world *every_open_other(void)
{
    every_handles other;
    quern_world *made = setup_world();
    every_register(made, &other);
    return made;
}

quern_component every_leave_out(void)
{
    return every.has_hooks ? every.types.types[EVERY_HOOKED] : (quern_component){0};
}

/* Compares another world with the model. The ids of its entities are those of the program's. */
void every_compare_other(quern_world *other, bool keeps_order)
{
    const every_comparison comparison = {.ignored_types = every.has_hooks ? (uint32_t)1 << EVERY_HOOKED : 0,
                                         .ignores_order = !keeps_order,
                                         .ignores_dead_handles = true};
    every_handles in;
    every_model_compare(other, false, &comparison);
    every_register(other, &in);
    if (!every.has_hooks)
        cr_assert_eq(quern_world_hash_by(other, in.types[EVERY_ID]),
                     quern_world_hash_by(every.world, every.types.types[EVERY_ID]),
                     "seed %llu, frame %llu: the hash by id", (unsigned long long)every.seed,
                     (unsigned long long)every.frame);
}
