/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "tests/core/history/many.h"
#include "tests/support/failing_allocator.h"

#include "core/base/containers.h"

#include <stdio.h>
#include <string.h>

/* -------------------------------------------------------------------------------------- a plain model */

/* A model of a world as a list of entities. Deltas can be applied to it. */

enum { ROWS = MANY_MOST + MANY_STEPS, COMPONENTS = 6, NAME_BYTES = 16 };

typedef struct cell {
    bool is_there, is_disabled;
    uint64_t digest; /* hash of the value */
} cell;

typedef struct row {
    quern_entity entity;
    bool is_gone;
    cell cells[COMPONENTS];
    char name[NAME_BYTES];
} row;

typedef struct model {
    row rows[ROWS];
    uint32_t count;
    uint64_t counter;
    quern__map place_of; /* handle -> 1 + index in `rows` */
} model;

static model models[8], replayed;

static quern_component component_at(uint32_t i)
{
    const quern_component list[COMPONENTS] = {many_it.amount,
                                              many_it.tracked,
                                              many_it.tag,
                                              many_it.wide,
                                              quern_relation_component(many_it.parent),
                                              quern_relation_component(many_it.friend)};
    return list[i];
}

static uint32_t number_of(quern_component component)
{
    uint32_t i = 0;
    while (i < COMPONENTS && !quern_component_equal(component_at(i), component))
        i++;
    cr_assert(i < COMPONENTS);
    return i;
}

static uint64_t digest(uint32_t number, const void *value)
{
    static const uint32_t bytes[COMPONENTS] = {sizeof(amount),      0, 0, 200, sizeof(quern_entity),
                                               sizeof(quern_entity)};
    if (number == 1) cr_assert(value != NULL);
    if (number == 1) return ((const tracked *)value)->payload;
    return value != NULL ? quern__hash_bytes(1, value, bytes[number]) : 0;
}

static row *add_row(model *it, quern_entity entity)
{
    const quern_allocator allocator = quern_allocator_default();
    cr_assert(it->count < ROWS && quern__map_reserve(&it->place_of, &allocator, it->count + 1));
    quern__map_put(&it->place_of, entity.bits, it->count);
    row *added = &it->rows[it->count++];
    *added = (row){.entity = entity};
    return added;
}

static row *find_row(model *it, quern_entity entity)
{
    const uint64_t *place = quern__map_find(&it->place_of, entity.bits);
    return place != NULL && !it->rows[*place].is_gone ? &it->rows[*place] : NULL;
}

static void clear_model(model *it)
{
    it->count = 0;
    quern__map_clear(&it->place_of);
}

static void release_models(void)
{
    const quern_allocator allocator = quern_allocator_default();
    for (uint32_t i = 0; i < sizeof models / sizeof models[0]; i++)
        quern__map_release(&models[i].place_of, &allocator);
    quern__map_release(&replayed.place_of, &allocator);
}

/* Fills the model from the world. */
static void look(model *it)
{
    const uint32_t count = many_list_all();
    clear_model(it);
    for (uint32_t i = 0; i < count; i++) {
        row *seen = add_row(it, many_entities[i]);
        for (uint32_t k = 0; k < COMPONENTS; k++) {
            cell *of = &seen->cells[k];
            of->is_there = quern_entity_has(many_it.world, seen->entity, component_at(k));
            if (!of->is_there) continue;
            if (k == 0)
                of->is_disabled =
                    !quern_entity_is_component_enabled(many_it.world, seen->entity, component_at(k));
            if (k != 2)
                of->digest = digest(k, quern_entity_get(many_it.world, seen->entity, component_at(k)));
        }
        const char *name = quern_entity_name(many_it.world, seen->entity);
        if (name != NULL) snprintf(seen->name, sizeof seen->name, "%s", name);
    }
    it->counter = ((const amount *)quern_resource_get(many_it.world, many_it.counter))->value;
}

static void copy_model(model *to, const model *from)
{
    clear_model(to);
    for (uint32_t i = 0; i < from->count; i++)
        *add_row(to, from->rows[i].entity) = from->rows[i];
    to->counter = from->counter;
}

/* ------------------------------------------------------------------------------------------ applying */

static void apply_value(cell *of, uint32_t number, const quern_delta_batch *batch, uint32_t i)
{
    const char *values = batch->values, *old_values = batch->old_values;
    const size_t offset = (size_t)i * batch->value_bytes;
    cr_assert(values == NULL || batch->kind != QUERN_DELTA_REMOVED);
    cr_assert(old_values == NULL || batch->kind != QUERN_DELTA_ADDED);
    cr_assert_eq(of->is_there, batch->kind != QUERN_DELTA_ADDED);
    if (batch->kind != QUERN_DELTA_ADDED)
        cr_assert_eq(of->digest, digest(number, old_values != NULL ? old_values + offset : NULL));
    if (batch->kind == QUERN_DELTA_REMOVED) {
        cr_assert(!of->is_disabled);
        *of = (cell){.is_there = false};
        return;
    }
    const uint64_t is = digest(number, values != NULL ? values + offset : NULL);
    if (batch->kind == QUERN_DELTA_CHANGED) cr_assert_neq(of->digest, is);
    of->is_there = true;
    of->digest = is;
}

static void apply_name(row *of, const quern_delta_batch *batch)
{
    cr_assert_str_eq(of->name, batch->old_name != NULL ? batch->old_name : "");
    cr_assert(batch->name != NULL || batch->old_name != NULL);
    snprintf(of->name, sizeof of->name, "%s", batch->name != NULL ? batch->name : "");
}

static void apply_to(model *it, const quern_delta_batch *batch, uint32_t i)
{
    if (batch->kind == QUERN_DELTA_CREATED) {
        cr_assert_null(find_row(it, batch->entities[i]));
        add_row(it, batch->entities[i]);
        return;
    }
    row *of = find_row(it, batch->entities[i]);
    cr_assert_not_null(of);
    if (batch->kind == QUERN_DELTA_DESTROYED) {
        for (uint32_t k = 0; k < COMPONENTS; k++)
            cr_assert(!of->cells[k].is_there);
        cr_assert_str_eq(of->name, "");
        of->is_gone = true;
    } else if (batch->kind == QUERN_DELTA_NAMED) {
        apply_name(of, batch);
    } else {
        const uint32_t number = number_of(batch->component);
        const bool disables = batch->kind == QUERN_DELTA_DISABLED;
        cell *place = &of->cells[number];
        if (!disables && batch->kind != QUERN_DELTA_ENABLED) {
            apply_value(place, number, batch, i);
            return;
        }
        cr_assert(place->is_there && place->is_disabled != disables);
        place->is_disabled = disables;
    }
}

static void apply_resource(model *it, const quern_delta_batch *batch)
{
    cr_assert_eq(batch->resource.bits, many_it.counter.bits);
    cr_assert_eq(((const amount *)batch->old_values)->value, it->counter);
    cr_assert_neq(((const amount *)batch->values)->value, it->counter);
    it->counter = ((const amount *)batch->values)->value;
}

static void apply(model *it, const quern_delta *delta)
{
    uint32_t count;
    const quern_delta_batch *batches = quern_delta_batches(delta, &count);
    for (uint32_t i = 0; i < count; i++) {
        if (batches[i].kind == QUERN_DELTA_RESOURCE) apply_resource(it, &batches[i]);
        cr_assert_eq(batches[i].count == 0, batches[i].kind == QUERN_DELTA_RESOURCE);
        for (uint32_t k = 0; k < batches[i].count; k++)
            apply_to(it, &batches[i], k);
    }
}

static void expect_same(model *actual, model *expected)
{
    uint32_t alive_count = 0;
    for (uint32_t i = 0; i < actual->count; i++) {
        const row *is = &actual->rows[i];
        if (is->is_gone) continue;
        const row *wanted = find_row(expected, is->entity);
        cr_assert_not_null(wanted);
        cr_assert_str_eq(is->name, wanted->name);
        for (uint32_t k = 0; k < COMPONENTS; k++)
            cr_assert(is->cells[k].is_there == wanted->cells[k].is_there &&
                          is->cells[k].is_disabled == wanted->cells[k].is_disabled &&
                          is->cells[k].digest == wanted->cells[k].digest,
                      "component %u of entity %u", k, quern_entity_index(is->entity));
        alive_count++;
    }
    cr_assert_eq(alive_count, expected->count);
    cr_assert_eq(actual->counter, expected->counter);
}

static void expect_delta(uint64_t from, uint64_t to, const model *was, model *is)
{
    quern_delta *delta;
    must(quern_delta_create(many_it.history, from, to, &delta));
    copy_model(&replayed, was);
    apply(&replayed, delta);
    expect_same(&replayed, is);
    quern_delta_destroy(delta);
}

/* ------------------------------------------------------------------------------------------------ whole */

static void try_program(uint64_t seed)
{
    enum { FRAMES = 30 };
    many_open_world(NULL);
    many_change(seed, 500);
    many_open_history(NULL);
    random_source random = {seed};
    uint64_t kept[FRAMES];
    uint32_t kept_count = 0;
    for (uint64_t frame = 0; frame < FRAMES; frame++) {
        look(&models[frame % MANY_KEPT]);
        must(quern_history_save(many_it.history, frame, NULL));
        if (kept_count == MANY_KEPT) memmove(kept, kept + 1, --kept_count * sizeof kept[0]);
        kept[kept_count++] = frame;
        for (uint32_t turn = 0; turn < 4 && kept_count > 1; turn++) {
            const uint64_t from = kept[random_below(&random, kept_count)];
            const uint64_t to = turn == 0 ? frame : kept[random_below(&random, kept_count)];
            if (from != to) expect_delta(from, to, &models[from % MANY_KEPT], &models[to % MANY_KEPT]);
        }
        if (random_below(&random, 3) ==
            0) { /* save a frame of another time line, which drops later frames */
            const uint64_t back = kept[random_below(&random, kept_count)];
            must(quern_history_restore(many_it.history, back, NULL));
        }
        many_change(seed + frame, random_below(&random, 3) * MANY_STEPS / 2);
        if (random_below(&random, 4) == 0) must(quern_world_remove_empty_archetypes(many_it.world, NULL));
        if (random_below(&random, 4) == 0) must(quern_world_trim(many_it.world));
    }
    many_close_world();
    cr_assert_eq(tracked_live_count(&many_it.counts), 0);
    release_models();
}

Test(delta, a_delta_applied_to_one_frame_gives_the_other)
{
    try_program(1);
    try_program(2);
    try_program(3);
}

/* -------------------------------------------------------------------------------------------- order */

static void expect_batch(const quern_delta *delta, uint32_t i, quern_delta_kind kind, quern_entity first,
                         quern_component component)
{
    uint32_t count;
    const quern_delta_batch *batches = quern_delta_batches(delta, &count);
    cr_assert(i < count && batches[i].kind == kind, "batch %u of %u is of kind %d, not %d", i, count,
              i < count ? (int)batches[i].kind : 0, (int)kind);
    cr_assert_eq(batches[i].component.bits, component.bits);
    cr_assert(quern_entity_equal(batches[i].entities[0], first));
}

Test(delta, batches_have_the_documented_order)
{
    const quern_component none = {0};
    const amount one = {1}, two = {2};
    quern_entity list[4], created;
    quern_delta *delta;
    many_open_world(NULL);
    for (uint32_t i = 0; i < 4; i++)
        must(quern_entity_create_with(many_it.world, &many_it.amount, (const void *const[]){&one}, 1,
                                      &list[i]));
    many_open_history(NULL);
    must(quern_history_save(many_it.history, 0, NULL));
    must(quern_history_save(many_it.history, 1, NULL));
    must(quern_delta_create(many_it.history, 0, 1, &delta));
    uint32_t count = 99;
    cr_assert_null(quern_delta_batches(delta, &count));
    cr_assert_eq(count, 0);
    quern_delta_destroy(delta);

    must(quern_entity_set(many_it.world, list[0], many_it.amount, &two));
    must(quern_entity_set_component_enabled(many_it.world, list[1], many_it.amount, false));
    must(quern_entity_add(many_it.world, list[2], many_it.tag, NULL));
    must(quern_entity_set_name(many_it.world, list[0], "first"));
    must(quern_entity_destroy(many_it.world, list[3]));
    must(
        quern_entity_create_with(many_it.world, &many_it.amount, (const void *const[]){&two}, 1, &created));
    ((amount *)quern_resource_get(many_it.world, many_it.counter))->value = 5;
    must(quern_history_save(many_it.history, 2, NULL));
    must(quern_delta_create(many_it.history, 0, 2, &delta));
    const quern_delta_batch *batches = quern_delta_batches(delta, &count);
    cr_assert_eq(count, 9);
    expect_batch(delta, 0, QUERN_DELTA_REMOVED, list[3], many_it.amount);
    expect_batch(delta, 1, QUERN_DELTA_DESTROYED, list[3], none);
    expect_batch(delta, 2, QUERN_DELTA_CREATED, created, none);
    expect_batch(delta, 3, QUERN_DELTA_CHANGED, list[0], many_it.amount);
    cr_assert_eq(((const amount *)batches[3].values)->value, 2);
    cr_assert_eq(((const amount *)batches[3].old_values)->value, 1);
    expect_batch(delta, 4, QUERN_DELTA_DISABLED, list[1], many_it.amount);
    expect_batch(delta, 5, QUERN_DELTA_ADDED, created, many_it.amount);
    expect_batch(delta, 6, QUERN_DELTA_ADDED, list[2], many_it.tag);
    cr_assert(batches[6].values == NULL && batches[6].value_bytes == 0);
    expect_batch(delta, 7, QUERN_DELTA_NAMED, list[0], none);
    cr_assert_str_eq(batches[7].name, "first");
    cr_assert_null(batches[7].old_name);
    cr_assert(batches[8].kind == QUERN_DELTA_RESOURCE && batches[8].resource.bits == many_it.counter.bits);
    cr_assert_eq(((const amount *)batches[8].values)->value, 5);
    quern_delta_destroy(delta);
    many_close_world();
}

Test(delta, consecutive_rows_share_a_batch_and_relations_are_values)
{
    enum { COUNT = 20 };
    const amount one = {1};
    quern_entity list[COUNT];
    quern_delta *delta;
    many_open_world(NULL);
    const quern_component parent = quern_relation_component(many_it.parent);
    for (uint32_t i = 0; i < COUNT; i++)
        must(quern_entity_create_with(many_it.world, &many_it.amount, (const void *const[]){&one}, 1,
                                      &list[i]));
    many_open_history(NULL);
    must(quern_history_save(many_it.history, 0, NULL));
    for (uint32_t i = 5; i < 15; i++)
        must(quern_entity_set(many_it.world, list[i], many_it.amount, &(amount){i}));
    must(quern_entity_set(many_it.world, list[2], many_it.amount, &one)); /* writes the value that it has */
    must(quern_history_save(many_it.history, 1, NULL));
    must(quern_delta_create(many_it.history, 0, 1, &delta));
    uint32_t count;
    const quern_delta_batch *batches = quern_delta_batches(delta, &count);
    cr_assert(count == 1 && batches[0].count == 10 && batches[0].value_bytes == sizeof(amount));
    for (uint32_t i = 0; i < 10; i++) {
        cr_assert(quern_entity_equal(batches[0].entities[i], list[5 + i]));
        cr_assert_eq(((const amount *)batches[0].values)[i].value, 5 + i);
        cr_assert_eq(((const amount *)batches[0].old_values)[i].value, 1);
    }
    quern_delta_destroy(delta);
    must(quern_entity_relate(many_it.world, list[19], many_it.parent, list[0]));
    must(quern_history_save(many_it.history, 2, NULL));
    must(quern_entity_relate(many_it.world, list[19], many_it.parent, list[1]));
    must(quern_history_save(many_it.history, 3, NULL));
    must(quern_delta_create(many_it.history, 1, 2, &delta));
    batches = quern_delta_batches(delta, &count);
    cr_assert(count == 1 && batches[0].kind == QUERN_DELTA_ADDED &&
              batches[0].component.bits == parent.bits);
    cr_assert(quern_entity_equal(*(const quern_entity *)batches[0].values, list[0]));
    quern_delta_destroy(delta);
    must(quern_delta_create(many_it.history, 3, 2, &delta));
    batches = quern_delta_batches(delta, &count);
    cr_assert(count == 1 && batches[0].kind == QUERN_DELTA_CHANGED &&
              batches[0].component.bits == parent.bits);
    cr_assert(quern_entity_equal(*(const quern_entity *)batches[0].values, list[0]));
    cr_assert(quern_entity_equal(*(const quern_entity *)batches[0].old_values, list[1]));
    quern_delta_destroy(delta);
    many_close_world();
}

static quern_entity create_named(quern_entity parent, const char *name)
{
    const quern_entity entity = setup_entity(many_it.world);
    if (!quern_entity_is_null(parent))
        must(quern_entity_relate(many_it.world, entity, many_it.parent, parent));
    must(quern_entity_set_name(many_it.world, entity, name));
    return entity;
}

static void expect_name(const quern_delta_batch *batch, quern_entity entity, const char *old_name,
                        const char *name)
{
    cr_assert(batch->kind == QUERN_DELTA_NAMED && quern_entity_equal(batch->entities[0], entity));
    cr_assert((old_name == NULL) == (batch->old_name == NULL) && (name == NULL) == (batch->name == NULL));
    if (old_name != NULL) cr_assert_str_eq(batch->old_name, old_name);
    if (name != NULL) cr_assert_str_eq(batch->name, name);
}

Test(delta, a_name_that_another_entity_gets_is_cleared_first)
{
    quern_delta *delta;
    uint32_t count;
    many_open_world(NULL);
    const quern_entity none = quern_entity_null();
    const quern_entity a = create_named(none, "a"), b = create_named(none, "b");
    const quern_entity of_a = create_named(a, "x"), of_b = create_named(b, "z");
    many_open_history(NULL);
    must(quern_history_save(many_it.history, 0, NULL));
    must(quern_entity_set_name(many_it.world, of_a, "y"));
    must(quern_entity_set_name(many_it.world, of_b, "x")); /* no conflict: another parent */
    must(quern_entity_set_name(many_it.world, a, "c"));
    must(quern_entity_set_name(many_it.world, b, "a"));
    must(quern_history_save(many_it.history, 1, NULL));
    must(quern_delta_create(many_it.history, 0, 1, &delta));
    const quern_delta_batch *batches = quern_delta_batches(delta, &count);
    cr_assert_eq(count, 5);
    expect_name(&batches[0], a, "a", NULL);
    expect_name(&batches[1], a, NULL, "c");
    expect_name(&batches[2], b, "b", "a");
    expect_name(&batches[3], of_a, "x", "y");
    expect_name(&batches[4], of_b, "z", "x");
    quern_delta_destroy(delta);
    many_close_world();
}

/* Checks the delta between frames 0 and 1, in which two sources get another target. */
static void expect_retarget(quern_delta_kind first_kind, uint32_t batch_count)
{
    quern_delta *delta;
    uint32_t count;
    must(quern_delta_create(many_it.history, 0, 1, &delta));
    const quern_delta_batch *batches = quern_delta_batches(delta, &count);
    cr_assert_eq(count, batch_count, "%u batches", count);
    cr_assert_eq(batches[0].kind, first_kind);
    cr_assert_eq(batches[0].component.bits, quern_relation_component(many_it.parent).bits);
    cr_assert_eq(batches[0].count, 2);
    quern_delta_destroy(delta);
}

Test(delta, a_target_changes_in_one_step_if_the_source_has_no_children)
{
    quern_entity list[6];
    many_open_world(NULL);
    for (uint32_t i = 0; i < 6; i++)
        must(quern_entity_create(many_it.world, &list[i]));
    for (uint32_t i = 2; i < 4; i++)
        must(quern_entity_relate(many_it.world, list[i], many_it.parent, list[0]));
    many_open_history(NULL);
    must(quern_history_save(many_it.history, 0, NULL));
    for (uint32_t i = 2; i < 4; i++)
        must(quern_entity_relate(many_it.world, list[i], many_it.parent, list[1]));
    must(quern_history_save(many_it.history, 1, NULL));
    expect_retarget(QUERN_DELTA_CHANGED, 1);
    for (uint32_t i = 2; i < 4; i++)
        must(quern_entity_relate(many_it.world, list[i + 2], many_it.parent, list[i]));
    must(quern_history_save(many_it.history, 1, NULL));
    expect_retarget(QUERN_DELTA_REMOVED, 4); /* then ADDED, and ADDED for each new child */
    must(quern_history_restore(many_it.history, 0, NULL));
    for (uint32_t i = 2; i < 4; i++)
        must(quern_entity_relate(many_it.world, list[i], many_it.parent, list[1]));
    must(quern_entity_destroy(many_it.world, list[0]));
    must(quern_history_save(many_it.history, 1, NULL));
    expect_retarget(QUERN_DELTA_REMOVED, 3); /* then DESTROYED and ADDED */
    many_close_world();
}

/* ------------------------------------------------------------------------------------------- sharing */

/* The slots of the new entities, and their group of slots, do not exist in the older frame. */
Test(delta, names_of_entities_in_new_slots_are_found_in_both_directions)
{
    enum { NEW = 2000 };
    quern_entity entity;
    uint32_t count;
    quern_delta *delta;
    many_open_world(NULL);
    many_open_history(NULL);
    must(quern_history_save(many_it.history, 0, NULL));
    for (uint32_t i = 0; i < NEW; i++)
        must(quern_entity_create_with(many_it.world, &many_it.tag, NULL, 1, &entity));
    must(quern_entity_set_name(many_it.world, entity, "last"));
    must(quern_history_save(many_it.history, 1, NULL));
    for (uint32_t to = 0; to < 2; to++) {
        must(quern_delta_create(many_it.history, 1 - to, to, &delta));
        const quern_delta_batch *batches = quern_delta_batches(delta, &count);
        uint32_t i = 0;
        while (i < count && batches[i].kind != QUERN_DELTA_NAMED)
            i++;
        cr_assert_lt(i, count);
        cr_assert_eq(batches[i].entities[0].bits, entity.bits);
        cr_assert_str_eq(to == 1 ? batches[i].name : batches[i].old_name, "last");
        cr_assert_null(to == 1 ? batches[i].old_name : batches[i].name);
        quern_delta_destroy(delta);
    }
    many_close_world();
}

/* All columns of the chunks are the same pages: only a bit of a row differs. */
Test(delta, a_disabled_tag_is_a_change)
{
    many_open_world(NULL);
    quern_component hidden = make_component(many_it.world, .name = "hidden", .can_disable = true);
    const quern_component both[] = {many_it.amount, hidden};
    const quern_entity entity = setup_entity_with(many_it.world, both, 2);
    setup_entity_with(many_it.world, both, 2);
    many_open_history(NULL);
    for (uint64_t frame = 0; frame < 3; frame++) {
        if (frame > 0) must(quern_entity_set_component_enabled(many_it.world, entity, hidden, frame == 2));
        must(quern_history_save(many_it.history, frame, NULL));
    }
    for (uint64_t frame = 0; frame < 2; frame++) {
        quern_delta *delta;
        uint32_t count;
        must(quern_delta_create(many_it.history, frame, frame + 1, &delta));
        const quern_delta_batch *batches = quern_delta_batches(delta, &count);
        cr_assert_eq(count, 1u, "%u batches", count);
        cr_assert_eq(batches[0].kind, frame == 0 ? QUERN_DELTA_DISABLED : QUERN_DELTA_ENABLED);
        cr_assert_eq(batches[0].component.bits, hidden.bits);
        cr_assert(batches[0].count == 1 && quern_entity_equal(batches[0].entities[0], entity));
        quern_delta_destroy(delta);
    }
    many_close_world();
}

static void migrate_nothing(void *user_data, void *targets, const void *sources, uint32_t count)
{
    memset(targets, 0, (size_t)count * 240);
}

Test(delta, shared_pages_are_not_compared)
{
    const amount value = {3}, other = {4};
    quern_delta *delta;
    quern_delta_stats stats;
    uint32_t count;
    many_open_world(NULL);
    for (uint32_t i = 0; i < MANY_MOST; i++)
        must(quern_entity_create_with(many_it.world, (quern_component[]){many_it.amount, many_it.wide},
                                      (const void *const[]){&value, NULL}, 2, &many_entities[i]));
    many_open_history(NULL);
    must(quern_history_save(many_it.history, 0, NULL));
    must(quern_history_save(many_it.history, 1, NULL));
    must(quern_delta_create(many_it.history, 0, 1, &delta));
    must(quern_delta_get_stats(delta, &stats));
    cr_assert(stats.compared_count == 0 && stats.compared_bytes == 0);
    quern_delta_destroy(delta);

    must(quern_entity_set(many_it.world, many_entities[MANY_MOST / 2], many_it.amount, &other));
    must(quern_history_save(many_it.history, 2, NULL));
    must(quern_delta_create(many_it.history, 1, 2, &delta));
    must(quern_delta_get_stats(delta, &stats));
    cr_assert_eq(stats.compared_count, 1);
    cr_assert(stats.compared_bytes >= sizeof value && stats.compared_bytes < 1000);
    const quern_delta_batch *batches = quern_delta_batches(delta, &count);
    cr_assert(count == 1 && batches[0].count == 1);
    cr_assert(quern_entity_equal(batches[0].entities[0], many_entities[MANY_MOST / 2]));
    quern_delta_destroy(delta);

    must(quern_entity_destroy(many_it.world,
                              many_entities[MANY_MOST - 1])); /* the last row, so that no other row moves */
    must(quern_history_save(many_it.history, 3, NULL));
    must(quern_delta_create(many_it.history, 2, 3, &delta));
    must(quern_delta_get_stats(delta, &stats));
    cr_assert_leq(stats.compared_count, 3);
    (void)quern_delta_batches(delta, &count);
    cr_assert_eq(count, 3); /* two of them are REMOVED */
    quern_delta_destroy(delta);
    many_close_world();
}

Test(delta, archetypes_behind_a_redefined_one_are_not_compared)
{
    const quern_component_def wider = {.size_bytes = 240, .alignment_bytes = 8};
    const quern_redefine_def how = {.migrate = migrate_nothing};
    const amount value = {3};
    quern_delta *delta;
    quern_delta_stats stats;
    many_open_world(NULL);
    const quern_entity redefined = setup_entity_with(many_it.world, &many_it.wide, 1);
    for (uint32_t i = 0; i < MANY_MOST; i++)
        many_entities[i] = setup_entity_with(many_it.world, &many_it.amount, 1);
    many_open_history(NULL);
    must(quern_component_redefine(many_it.world, many_it.wide, &wider, &how, NULL));
    must(quern_history_save(many_it.history, 0, NULL));
    must(quern_entity_set(many_it.world, many_entities[0], many_it.amount, &value));
    must(quern_entity_mark_changed(many_it.world, redefined, many_it.wide));
    must(quern_history_save(many_it.history, 1, NULL));
    must(quern_delta_create(many_it.history, 0, 1, &delta));
    must(quern_delta_get_stats(delta, &stats));
    cr_assert_eq(stats.compared_count, 2u); /* the columns of both chunks, and no handles */
    quern_delta_destroy(delta);
    many_close_world();
}

/* ------------------------------------------------------------------------------------------ lifetimes */

Test(delta, a_delta_keeps_its_pages_after_its_frames_are_dropped)
{
    quern_delta *delta;
    many_open_world(NULL);
    many_change(1, 600);
    many_open_history(NULL);
    look(&models[0]);
    must(quern_history_save(many_it.history, 0, NULL));
    many_change(2, 300);
    look(&models[1]);
    must(quern_history_save(many_it.history, 1, NULL));
    must(quern_delta_create(many_it.history, 0, 1, &delta));
    for (uint64_t frame = 2; frame < 20; frame++) {
        many_change(frame + 1, 100);
        must(quern_history_save(many_it.history, frame, NULL));
        if (frame % 4 == 0) must(quern_history_restore(many_it.history, frame - 1, NULL));
    }
    must_refuse(INVALID_ARGUMENT, many_it.world, quern_history_restore(many_it.history, 1, NULL));
    copy_model(&replayed, &models[0]);
    apply(&replayed, delta);
    expect_same(&replayed, &models[1]);
    quern_delta_destroy(delta);
    many_close_world();
    cr_assert_eq(tracked_live_count(&many_it.counts), 0);
    release_models();
}

Test(delta, a_history_with_deltas_is_not_destroyed)
{
    captured_reports reports;
    quern_delta *delta;
    many_open_world(NULL);
    many_open_history(NULL);
    must(quern_history_save(many_it.history, 0, NULL));
    must(quern_history_save(many_it.history, 1, NULL));
    must(quern_delta_create(many_it.history, 0, 1, &delta));
    capture_reports(&reports);
    quern_history_destroy(many_it.history);
    quern_log_set_handler(NULL, NULL);
    quern_assert_set_handler(NULL, NULL);
    cr_assert(strstr(quern_error_message(), "quern_delta_destroy") != NULL);
    must(quern_history_save(many_it.history, 2, NULL));
    quern_delta_destroy(delta);
    quern_delta_destroy(NULL);
    many_close_world();
}

/* ------------------------------------------------------------------------------------------- hooks */

static void copy_bare(void *targets, const void *sources, uint32_t count, void *user_data)
{
    memcpy(targets, sources, count * sizeof(amount));
}

Test(delta, values_with_opaque_hooks_count_as_changed_where_written)
{
    enum { COUNT = 3 };
    quern_delta *delta;
    quern_component bare;
    quern_entity list[COUNT];
    uint32_t count;
    many_open_world(NULL);
    bare = make_component(many_it.world, .name = "bare", .size_bytes = sizeof(amount),
                          .hooks = {.copy = copy_bare});
    for (uint32_t i = 0; i < COUNT; i++)
        must(quern_entity_create_with(many_it.world, (quern_component[]){bare, many_it.tracked}, NULL, 2,
                                      &list[i]));
    many_open_history(NULL);
    must(quern_history_save(many_it.history, 0, NULL));
    must(quern_entity_mark_changed(many_it.world, list[0], bare));
    must(quern_entity_mark_changed(
        many_it.world, list[0],
        many_it.tracked)); /* a field is described, so that the values can be compared */
    must(quern_history_save(many_it.history, 1, NULL));
    must(quern_delta_create(many_it.history, 0, 1, &delta));
    const quern_delta_batch *batches = quern_delta_batches(delta, &count);
    cr_assert(count == 1 && batches[0].kind == QUERN_DELTA_CHANGED && batches[0].count == COUNT);
    cr_assert_eq(batches[0].component.bits, bare.bits);
    quern_delta_destroy(delta);
    many_close_world();
}

/* ------------------------------------------------------------------------------------------- refusals */

static quern_result results_in_frame[3];

static void ask_in_frame(quern_context *context)
{
    quern_delta *delta = NULL;
    results_in_frame[0] = quern_delta_create(many_it.history, 0, 1, &delta);
    results_in_frame[1] = quern_history_save(many_it.history, 2, NULL);
    results_in_frame[2] = quern_history_restore(many_it.history, 0, NULL);
}

/* Asserts that a delta cannot be limited by a query with this term. */
static void refuse_limit(quern_term term)
{
    quern_delta *delta = NULL;
    quern_query *query = setup_query(many_it.world, &term, 1);
    must_refuse(
        INVALID_ARGUMENT, many_it.world,
        quern_delta_create_limited(many_it.history, 0, 1, &(quern_delta_def){.query = query}, &delta));
    cr_assert_not_null(strstr(quern_error_message(), "mark the entities by a tag"), "%s",
                       quern_error_message());
    cr_assert_null(delta);
    quern_query_destroy(query);
}

Test(delta, invalid_arguments_are_rejected)
{
    quern_delta *delta = NULL;
    uint32_t count = 7;
    many_open_world(NULL);
    many_open_history(NULL);
    must_refuse(INVALID_ARGUMENT, many_it.world, quern_delta_create(many_it.history, 0, 1, &delta));
    cr_assert(strstr(quern_error_message(), "no frame was saved") != NULL);
    must(quern_history_save(many_it.history, 0, NULL));
    must(quern_history_save(many_it.history, 1, NULL));
    must_refuse(INVALID_ARGUMENT, many_it.world, quern_delta_create(many_it.history, 0, 2, &delta));
    cr_assert(strstr(quern_error_message(), "frame 2 is not kept") != NULL);
    must_refuse(INVALID_ARGUMENT, many_it.world, quern_delta_create(many_it.history, 3, 0, &delta));
    cr_assert(strstr(quern_error_message(), "frame 3 is not kept") != NULL);
    must_refuse(INVALID_ARGUMENT, many_it.world, quern_delta_create(many_it.history, 1, 1, &delta));
    cr_assert(strstr(quern_error_message(), "both frame 1") != NULL);
    must_refuse(NULL_ARGUMENT, many_it.world, quern_delta_create(NULL, 0, 1, &delta));
    must_refuse(NULL_ARGUMENT, many_it.world, quern_delta_create(many_it.history, 0, 1, NULL));
    must_refuse(NULL_ARGUMENT, many_it.world, quern_delta_get_stats(NULL, NULL));
    cr_assert_null(quern_delta_batches(NULL, &count));
    cr_assert_eq(count, 0);
    cr_assert(strstr(quern_error_message(), "quern_delta_batches: 'delta' is NULL") != NULL);
    quern_world *other = setup_world();
    quern_query *query = setup_query(other, (quern_term[]){quern_term_with(setup_tag(other, "tag"))}, 1);
    must_refuse(
        INVALID_ARGUMENT, many_it.world,
        quern_delta_create_limited(many_it.history, 0, 1, &(quern_delta_def){.query = query}, &delta));
    quern_query_destroy(query);
    quern_world_destroy(other);
    cr_assert_null(delta);
    refuse_limit(quern_term_target(many_it.parent, quern_entity_null()));
    refuse_limit(quern_term_up(many_it.amount, many_it.parent));

    quern_schedule *schedule;
    quern_system_def def = {.name = "ask", .begin = ask_in_frame, .flags = QUERN_SYSTEM_SERIAL};
    must(quern_schedule_create(many_it.world, NULL, &schedule));
    quern_system system;
    must(quern_schedule_add_system(schedule, &def, &system));
    must(quern_schedule_run(schedule, NULL, 0.1));
    for (uint32_t i = 0; i < sizeof results_in_frame / sizeof *results_in_frame; i++)
        cr_assert_eq(results_in_frame[i], QUERN_ERROR_WORLD_LOCKED, "call %u", i);
    uint64_t oldest, newest;
    cr_assert(quern_history_get_frames(many_it.history, &oldest, &newest));
    cr_assert_eq(newest, 1u);
    quern_schedule_destroy(schedule);
    many_close_world();
}

/* ------------------------------------------------------------------------------------------- memory */

/* Fails the n-th allocation of a delta between new frames. Returns whether there were n allocations. */
static bool fail_once(failing_allocator *allocator, uint64_t n, const quern_delta_def *limit)
{
    const quern_allocator interface = failing_allocator_interface(allocator);
    quern_history_stats before, after;
    quern_delta *delta = NULL;
    many_open_history(&interface);
    must(quern_history_save(many_it.history, 0, NULL));
    many_change(n, 400);
    must(quern_history_save(many_it.history, 1, NULL));
    must(quern_history_get_stats(many_it.history, &before));
    const bool has_failed =
        runs_out_of_memory(allocator, n, quern_delta_create_limited(many_it.history, 0, 1, limit, &delta));
    if (has_failed) cr_assert_null(delta);
    quern_delta_destroy(delta);
    must(quern_history_get_stats(many_it.history, &after));
    cr_assert(after.page_count == before.page_count && after.used_bytes == before.used_bytes);

    must(quern_delta_create_limited(many_it.history, 0, 1, limit, &delta));
    quern_delta_destroy(delta);
    const uint64_t warm_calls = failing_allocator_call_count(allocator);
    must(quern_delta_create_limited(many_it.history, 0, 1, limit, &delta));
    quern_delta_destroy(delta);
    cr_assert_eq(failing_allocator_call_count(allocator), warm_calls);
    quern_history_destroy(many_it.history);
    many_it.history = NULL;
    return has_failed;
}

Test(delta, a_failed_delta_leaves_nothing_and_a_repeated_one_allocates_nothing)
{
    failing_allocator *allocator = failing_allocator_create();
    many_open_world(NULL);
    many_change(1, 600);
    quern_delta_def limit = {.query = NULL};
    for (uint32_t i = 0; i < 2; i++) {
        uint64_t n = 1;
        while (fail_once(allocator, n, &limit))
            n++;
        cr_assert(n > 4, "%llu", (unsigned long long)n);
        if (i > 0) break;
        limit.query = setup_query(many_it.world, (quern_term[]){quern_term_without(many_it.tag)}, 1);
    }
    quern_query_destroy(limit.query);
    many_close_world();
    cr_assert_eq(tracked_live_count(&many_it.counts), 0);
    failing_allocator_close(allocator);
}
