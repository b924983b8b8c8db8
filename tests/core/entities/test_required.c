/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "core/storage/type_internal.h"
#include "core/world/world_internal.h"
#include "tests/support/failing_allocator.h"
#include "tests/support/random.h"
#include "tests/support/setup.h"
#include "tests/support/tracked.h"

/* Required components: body -> {place -> {frame}, label}; car -> {body, engine}. label has a default value and can be
 * disabled, engine has hooks, frame is a tag. */

typedef struct scene {
    quern_component frame, place, label, body, engine, car, plain;
    tracked_counts counts;
} scene;

static quern_world *world;
static scene s;

static quern_component must_register(quern_component_def def)
{
    quern_component component = {0};
    must(quern_component_register(world, &def, &component));
    return component;
}

static quern_component sized(const char *name, uint32_t size_bytes)
{
    return must_register(
        (quern_component_def){.name = name, .size_bytes = size_bytes, .alignment_bytes = 4});
}

static void register_types(void)
{
    static const uint32_t label_value = 7;
    s.frame = setup_tag(world, "frame");
    s.place = must_register((quern_component_def){
        .name = "place", .size_bytes = 12, .alignment_bytes = 4, .required = {s.frame}});
    s.label = must_register((quern_component_def){.name = "label",
                                                  .size_bytes = 4,
                                                  .alignment_bytes = 4,
                                                  .default_value = &label_value,
                                                  .can_disable = true});
    s.body = must_register((quern_component_def){
        .name = "body", .size_bytes = 8, .alignment_bytes = 8, .required = {s.place, s.label}});
    s.engine = tracked_register(world, "engine", &s.counts);
    s.car = must_register((quern_component_def){.name = "car", .required = {s.body, s.engine}});
    s.plain = sized("plain", 4);
}

static void open_world(void)
{
    s = (scene){0};
    world = setup_world();
    register_types();
}

static void close_world(void)
{
    assert_valid(world);
    quern_world_destroy(world);
    cr_assert_eq(s.counts.broken_count, 0);
    cr_assert_eq(tracked_live_count(&s.counts), 0);
}

TestSuite(required, .init = open_world, .fini = close_world);

static bool has(quern_entity entity, quern_component component)
{
    return quern_entity_has(world, entity, component);
}

static uint32_t label_of(quern_entity entity)
{
    const uint32_t *value = quern_entity_get(world, entity, s.label);
    cr_assert_not_null(value, "%s", quern_error_message());
    return *value;
}

/* Asserts that an entity has all that body requires, constructed. */
static void assert_constructed_body(quern_entity entity)
{
    static const vec3 origin = {0};
    cr_assert(has(entity, s.body) && has(entity, s.place) && has(entity, s.frame));
    cr_assert_eq(label_of(entity), 7);
    cr_assert_eq(memcmp(quern_entity_get(world, entity, s.place), &origin, sizeof origin), 0);
}

static void assert_constructed_car(quern_entity entity)
{
    cr_assert(has(entity, s.car) && has(entity, s.engine));
    assert_constructed_body(entity);
    const tracked *engine = quern_entity_get(world, entity, s.engine);
    cr_assert(tracked_is_live(engine));
    cr_assert_eq(engine->payload, TRACKED_DEFAULT);
}

/* ------------------------------------------------------------------------------------- registration */

Test(required, info_lists_what_was_registered)
{
    quern_type_info info;
    must(quern_component_get_info(world, s.body, &info));
    cr_assert_eq(info.required_count, 2);
    cr_assert_eq(info.required[0].bits, s.place.bits);
    cr_assert_eq(info.required[1].bits, s.label.bits);
    cr_assert_null(info.default_value);
    must(quern_component_get_info(world, s.label, &info));
    cr_assert_eq(info.required_count, 0);
    cr_assert_eq(*(const uint32_t *)info.default_value, 7);
}

Test(required, wrong_requirements_are_refused)
{
    quern_component out;
    const quern_component unknown = component_unregistered(s.plain), tag = quern_world_disabled_tag(world);
    const quern_component parent = quern_relation_component(quern_world_parent(world));
    must_refuse(UNKNOWN_COMPONENT, world,
                quern_component_register(
                    world, &(quern_component_def){.name = "x", .required = {s.plain, unknown}}, &out));
    assert_refused(
        world, QUERN_ERROR_INVALID_ARGUMENT,
        quern_component_register(world, &(quern_component_def){.name = "x", .required = {parent}}, &out));
    assert_refused(
        world, QUERN_ERROR_INVALID_ARGUMENT,
        quern_component_register(world, &(quern_component_def){.name = "x", .required = {tag}}, &out));
    must_refuse(INVALID_ARGUMENT, world,
                quern_component_register(
                    world, &(quern_component_def){.name = "x", .required = {s.plain, s.plain}}, &out));
    quern_component_def gap = {.name = "x"};
    gap.required[1] = s.plain;
    must_refuse(INVALID_ARGUMENT, world, quern_component_register(world, &gap, &out));
    cr_assert(quern_component_is_null(quern_component_find(world, "x")));
}

Test(required, registering_again_needs_the_same_requirements)
{
    quern_component out;
    quern_component_def def = {
        .name = "body", .size_bytes = 8, .alignment_bytes = 8, .required = {s.label, s.place}};
    must(quern_component_register(world, &def, &out)); /* another order is the same */
    cr_assert_eq(out.bits, s.body.bits);
    def.required[1] = s.plain;
    must_refuse(LAYOUT_MISMATCH, world, quern_component_register(world, &def, &out));
    def.required[0] = def.required[1] = (quern_component){0};
    must_refuse(LAYOUT_MISMATCH, world, quern_component_register(world, &def, &out));
    const uint32_t other_default = 9;
    out = make_component(world, .name = "label", .size_bytes = 4, .alignment_bytes = 4,
                         .default_value = &other_default, .can_disable = true);
    assert_constructed_body(setup_entity_with(world, &s.body, 1)); /* the first default stays */
}

Test(required, wrong_default_values_are_refused)
{
    quern_component out;
    const quern_entity provisional = entity_provisional(3);
    const quern_component_def link = {.name = "link",
                                      .size_bytes = 8,
                                      .alignment_bytes = 8,
                                      .default_value = &provisional,
                                      .fields = {{.name = "to", .type = QUERN_FIELD_ENTITY}}};
    must_refuse(PROVISIONAL_ENTITY, world, quern_component_register(world, &link, &out));
    must_refuse(INVALID_ARGUMENT, world,
                quern_component_register(
                    world, &(quern_component_def){.name = "tag", .default_value = &provisional}, &out));
    quern_type_info info;
    atomic_llong live_count = 0;
    must(quern_component_get_info(world, owned_register(world, "owned", &live_count), &info));
    quern_component_def own = {.name = "own",
                               .size_bytes = info.size_bytes,
                               .alignment_bytes = info.alignment_bytes,
                               .default_value = &provisional,
                               .hooks = info.hooks};
    must_refuse(INVALID_ARGUMENT, world, quern_component_register(world, &own, &out));
}

Test(required, default_values_with_hooks_are_copied)
{
    tracked value;
    quern_type_info info;
    must(quern_component_get_info(world, s.engine, &info));
    tracked_construct(&value, 31, &s.counts);
    const quern_component motor =
        must_register((quern_component_def){.name = "motor",
                                            .size_bytes = info.size_bytes,
                                            .alignment_bytes = info.alignment_bytes,
                                            .default_value = &value,
                                            .hooks = info.hooks});
    tracked_destroy(&value, &s.counts);
    const quern_component user = must_register((quern_component_def){.name = "user", .required = {motor}});
    quern_entity several[3];
    must(quern_entity_create_many(world, &user, NULL, 1, 3, several));
    for (uint32_t i = 0; i < 3; i++)
        cr_assert_eq(((tracked *)quern_entity_get(world, several[i], motor))->payload, 31);
}

/* ------------------------------------------------------------------------------------ immediate calls */

Test(required, add_adds_what_is_missing)
{
    const quern_entity entity = setup_entity_with(world, &s.plain, 1);
    const vec3 place = {1, 2, 3};
    const uint64_t body = 5;
    must(quern_entity_add(world, entity, s.place, &place));
    cr_assert(has(entity, s.frame));
    must(quern_entity_add(world, entity, s.body, &body));
    cr_assert_eq(memcmp(quern_entity_get(world, entity, s.place), &place, sizeof place), 0);
    cr_assert_eq(*(uint64_t *)quern_entity_get(world, entity, s.body), 5);
    cr_assert_eq(label_of(entity), 7);
    must(quern_entity_add(world, entity, s.car, NULL));
    cr_assert(tracked_is_live(quern_entity_get(world, entity, s.engine)));
    cr_assert(has(entity, s.plain));
}

/* The third entity finds edges between archetypes that the first two left. */
Test(required, repeated_adds_and_sets_take_the_same_way)
{
    for (uint32_t i = 0; i < 4; i++) {
        const uint64_t body = i;
        quern_entity entity = setup_entity(world), other = setup_entity_with(world, &s.frame, 1);
        must(quern_entity_set(world, entity, s.body, &body));
        assert_constructed_body(entity);
        cr_assert_eq(*(uint64_t *)quern_entity_get(world, entity, s.body), i);
        must(quern_entity_add(world, other, s.car, NULL));
        assert_constructed_car(other);
        must(quern_entity_remove(world, other, s.car));
        must(quern_entity_remove(world, other, s.engine));
        must(quern_entity_add(world, other, s.car, NULL));
        assert_constructed_car(other);
    }
}

Test(required, a_required_component_cannot_be_removed)
{
    const quern_entity entity = setup_entity_with(world, &s.car, 1);
    must_refuse(COMPONENT_REQUIRED, world, quern_entity_remove(world, entity, s.body));
    must_refuse(COMPONENT_REQUIRED, world, quern_entity_remove(world, entity, s.frame));
    must_refuse(COMPONENT_REQUIRED, world, quern_entity_remove_by_name(world, entity, "engine"));
    cr_assert_not_null(strstr(quern_error_message(), "'car'"));
    must(quern_entity_remove(world, entity, s.car));
    must(quern_entity_remove(world, entity, s.body));
    must(quern_entity_remove(world, entity, s.engine));
    must(quern_entity_remove(world, entity, s.place));
    must(quern_entity_remove(world, entity, s.frame));
    cr_assert(has(entity, s.label));
}

Test(required, creates_fill_what_the_list_lacks)
{
    const vec3 place = {4, 5, 6};
    const void *const values[] = {&place, NULL, NULL};
    const quern_component list[] = {s.place, s.car, s.plain};
    quern_entity entity;
    for (uint32_t i = 0; i < 3; i++) {
        must(quern_entity_create_with(world, list, values, 3, &entity));
        cr_assert_eq(memcmp(quern_entity_get(world, entity, s.place), &place, sizeof place), 0);
        cr_assert_eq(label_of(entity), 7);
        cr_assert(tracked_is_live(quern_entity_get(world, entity, s.engine)));
        must(quern_entity_create_with(world, &s.car, NULL, 1, &entity));
        assert_constructed_car(entity);
    }
}

/* A list with two relations is not cached. */
Test(required, creates_with_relations_fill_what_the_list_lacks)
{
    quern_relation owner = make_relation(world, .name = "owner");
    const quern_entity target = setup_entity(world);
    const quern_component list[] = {quern_relation_component(owner), s.car,
                                    quern_relation_component(quern_world_parent(world))};
    const void *const values[] = {&target, NULL, &target};
    for (uint32_t i = 1; i < 3; i++) {
        quern_entity entity;
        must(quern_entity_create_with(world, list, values, 1 + i, &entity));
        assert_constructed_car(entity);
        cr_assert_eq(quern_entity_target(world, entity, owner).bits, target.bits);
    }
}

typedef struct filled {
    uint32_t rows;
} filled;

static void fill(quern_context *context, const quern_view *view)
{
    filled *it = quern_context_user_data(context);
    uint64_t *bodies = quern_view_write(view, 0);
    for (uint32_t i = 0; i < view->count; i++)
        bodies[i] = view->fill_index + i;
    it->rows += view->count;
}

Test(required, bulk_calls_add_what_is_missing)
{
    enum { COUNT = 3000 };
    static quern_entity entities[COUNT];
    static uint64_t bodies[COUNT];
    filled it = {0};
    for (uint32_t i = 0; i < COUNT; i++)
        bodies[i] = i;
    const void *const columns[] = {bodies};
    must(quern_entity_create_many(world, &s.body, columns, 1, COUNT, entities));
    for (uint32_t i = 0; i < COUNT; i += 17) {
        assert_constructed_body(entities[i]);
        cr_assert_eq(*(uint64_t *)quern_entity_get(world, entities[i], s.body), i);
    }
    must(quern_entity_create_filled(world, &s.body, 1, COUNT, fill, &it, entities));
    cr_assert_eq(it.rows, COUNT);
    assert_constructed_body(entities[COUNT - 1]);
    const quern_term bodies_only = quern_term_with(s.body);
    quern_query *query = setup_query(world, &bodies_only, 1);
    uint64_t count;
    must_refuse(COMPONENT_REQUIRED, world, quern_entity_remove_matching(query, s.place, &count));
    must(quern_entity_add_matching(query, s.car, NULL, &count));
    cr_assert_eq(count, 2 * COUNT);
    assert_constructed_car(entities[0]);
    assert_constructed_car(entities[COUNT - 1]);
    must(quern_entity_remove_matching(query, s.car, &count));
    cr_assert_eq(count, 2 * COUNT);
    quern_query_destroy(query);
}

/* The i-th of the added entities has the components of the bits of i % SETS. */
enum { SETS = 16, ADDED = 40 * SETS };

static quern_entity added[ADDED];

static void make_sets(void)
{
    const quern_component choices[] = {s.frame, s.place, s.label, s.engine};
    for (uint32_t i = 0; i < ADDED; i++) {
        quern_component list[5] = {s.plain};
        uint32_t count = 1;
        for (uint32_t k = 0; k < 4; k++)
            if (i % SETS >> k & 1) list[count++] = choices[k];
        added[i] = setup_entity_with(world, list, count);
        must(quern_entity_set(world, added[i], s.plain, &i));
        if (has(added[i], s.label)) {
            must(quern_entity_set(world, added[i], s.label, &i));
            must(quern_entity_set_component_enabled(world, added[i], s.label, i % 3 != 0));
        }
        if (has(added[i], s.engine)) ((tracked *)quern_entity_get(world, added[i], s.engine))->payload = i;
    }
}

/* Asserts that each entity is where its handle says, and kept what it had before `car` was added. */
static void assert_added(void)
{
    assert_valid(world);
    for (uint32_t i = 0; i < ADDED; i++) {
        const uint32_t *plain = quern_entity_get(world, added[i], s.plain);
        const tracked *engine = quern_entity_get(world, added[i], s.engine);
        const bool had_label = (i >> 2 & 1) != 0, had_engine = (i >> 3 & 1) != 0;
        cr_assert_eq(*plain, i);
        cr_assert(has(added[i], s.car) && has(added[i], s.frame) && has(added[i], s.place));
        cr_assert_eq(label_of(added[i]), had_label ? i : 7u, "entity %u", i);
        cr_assert_eq(quern_entity_is_component_enabled(world, added[i], s.label), !had_label || i % 3 != 0);
        cr_assert(tracked_is_live(engine));
        cr_assert_eq(engine->payload, had_engine ? i : (uint64_t)TRACKED_DEFAULT);
    }
}

/* All sources have the same target, since each has a part of what the component requires. */
Test(required, add_matching_moves_many_sources_to_one_target)
{
    quern_history *history;
    uint64_t count;
    make_sets();
    must(quern_history_create(world, &(quern_history_def){.frame_count = 4}, &history));
    must(quern_history_save(history, 1, NULL));
    const uint64_t before = quern_world_hash(world);
    const quern_term all = quern_term_with(s.plain);
    quern_query *query = setup_query(world, &all, 1);
    must(quern_entity_add_matching(query, s.car, NULL, &count));
    cr_assert_eq(count, ADDED);
    cr_assert_eq(quern_query_count(query), ADDED);
    assert_added();
    const uint64_t after = quern_world_hash(world);
    must(quern_history_save(history, 2, NULL));
    must(quern_history_restore(history, 1, NULL));
    cr_assert_eq(quern_world_hash(world), before);
    must(quern_history_restore(history, 2, NULL));
    cr_assert_eq(quern_world_hash(world), after);
    assert_added();
    quern_query_destroy(query);
    quern_history_destroy(history);
}

/* The value is a part of an engine, which moves, with the row, before those of other sources. */
Test(required, add_matching_copies_a_value_of_the_world)
{
    const quern_component spare = must_register(
        (quern_component_def){.name = "spare", .size_bytes = 8, .alignment_bytes = 8, .required = {s.car}});
    make_sets();
    const quern_term all = quern_term_with(s.plain);
    quern_query *query = setup_query(world, &all, 1);
    const tracked *engine = quern_entity_get(world, added[8], s.engine);
    must(quern_entity_add_matching(query, spare, &engine->payload, NULL));
    for (uint32_t i = 0; i < ADDED; i++)
        cr_assert_eq(*(uint64_t *)quern_entity_get(world, added[i], spare), 8);
    assert_added();
    quern_query_destroy(query);
}

Test(required, too_many_required_components_are_refused)
{
    quern_component previous = s.plain;
    for (uint32_t i = 0; i < QUERN_MAX_ENTITY_COMPONENTS; i++) {
        char name[16];
        snprintf(name, sizeof name, "t%u", i);
        previous = must_register((quern_component_def){.name = name, .required = {previous}});
    }
    const quern_entity entity = setup_entity(world);
    quern_entity created;
    must_refuse(TOO_MANY_COMPONENTS, world, quern_entity_add(world, entity, previous, NULL));
    must_refuse(TOO_MANY_COMPONENTS, world, quern_entity_create_with(world, &previous, NULL, 1, &created));
    quern_commands *commands = quern_world_commands(world);
    must(quern_commands_add(commands, entity, previous, NULL));
    must(quern_commands_add(commands, entity, s.body, NULL));
    cr_assert_eq(quern_world_flush(world), QUERN_ERROR_TOO_MANY_COMPONENTS);
    cr_assert_not(has(entity, s.body)); /* all commands on the entity are refused */
}

/* --------------------------------------------------------------------------------------- commands */

static quern_commands *commands(void)
{
    quern_commands *recorder = quern_world_commands(world);
    cr_assert_not_null(recorder, "%s", quern_error_message());
    return recorder;
}

Test(required, commands_add_what_is_missing)
{
    const quern_entity existing = setup_entity_with(world, &s.plain, 1);
    const uint32_t label = 99;
    must(quern_commands_set(commands(), existing, s.label, &label));
    must(quern_commands_add(commands(), existing, s.car, NULL));
    const quern_entity created = record_entity_with(commands(), &s.car, NULL, 1);
    must(quern_commands_set(commands(), created, s.label, &label));
    must(quern_commands_create_many(commands(), &s.body, NULL, 1, 50, NULL));
    must(quern_world_flush(world));
    cr_assert_eq(label_of(existing), 99); /* an explicit value wins, in either order */
    const quern_term cars_only = quern_term_with(s.car);
    quern_query *query = setup_query(world, &cars_only, 1);
    cr_assert_eq(quern_query_count(query), 2);
    quern_query_destroy(query);
    cr_assert(has(existing, s.plain) && has(existing, s.engine) && has(existing, s.frame));
}

/* All commands create or destroy, which is a fast path unless required components have hooks. */
Test(required, creates_and_destroys_fill_what_is_missing)
{
    for (uint32_t round = 0; round < 2; round++) {
        quern_entity doomed[20];
        const quern_component created = round == 0 ? s.body : s.car;
        must(quern_entity_create_many(world, &s.plain, NULL, 1, 20, doomed));
        for (uint32_t i = 0; i < 20; i++)
            must(quern_commands_destroy(commands(), doomed[i]));
        must(quern_commands_create_many(commands(), &created, NULL, 1, 30, NULL));
        must(quern_world_flush(world));
        const quern_term only = quern_term_with(created);
        quern_query *query = setup_query(world, &only, 1);
        quern_query_iterator iterator = quern_query_iterate(query);
        uint32_t count = 0;
        for (; quern_query_next(&iterator); count += iterator.view.count)
            for (uint32_t i = 0; i < iterator.view.count; i++)
                if (round == 0)
                    assert_constructed_body(iterator.view.entities[i]);
                else
                    assert_constructed_car(iterator.view.entities[i]);
        cr_assert_eq(count, 30);
        quern_query_destroy(query);
    }
}

Test(required, a_remove_of_a_required_component_has_no_effect)
{
    const uint32_t label = 12;
    const quern_entity kept = setup_entity_with(world, &s.body, 1),
                       freed = setup_entity_with(world, &s.body, 1),
                       reset = setup_entity_with(world, &s.body, 1);
    must(quern_entity_set(world, kept, s.label, &label));
    must(quern_entity_set(world, reset, s.label, &label));
    must(quern_commands_remove(commands(), kept, s.label));
    must(quern_commands_remove(commands(), kept, s.frame));
    must(quern_commands_remove(commands(), freed, s.label));
    must(quern_commands_remove(commands(), freed, s.body)); /* the order has no effect */
    must(quern_commands_remove(commands(), reset, s.label));
    must(quern_commands_add(commands(), reset, s.label, NULL));
    must(quern_world_flush(world));
    cr_assert(has(kept, s.frame));
    cr_assert_eq(label_of(kept), 12);
    cr_assert_not(has(freed, s.label));
    cr_assert_not(has(freed, s.body));
    cr_assert(has(freed, s.place));
    cr_assert_eq(label_of(reset), 12); /* the add finds it present */
}

Test(required, a_removed_value_returns_if_another_command_requires_it)
{
    const uint32_t label = 12;
    const quern_entity old = setup_entity(world), fresh = setup_entity(world);
    must(quern_entity_set(world, old, s.label, &label));
    must(quern_commands_remove(commands(), old, s.label));
    must(quern_commands_add(commands(), old, s.body, NULL));
    must(quern_commands_set(commands(), fresh, s.label, &label));
    must(quern_commands_remove(commands(), fresh, s.label));
    must(quern_commands_add(commands(), fresh, s.body, NULL));
    must(quern_world_flush(world));
    cr_assert_eq(label_of(old), 12);
    cr_assert_eq(label_of(fresh), 12);
}

Test(required, components_without_the_one_that_required_them_are_not_added)
{
    const quern_entity entity = setup_entity(world);
    must(quern_commands_add(commands(), entity, s.car, NULL));
    must(quern_commands_remove(commands(), entity, s.car));
    must(quern_world_flush(world));
    cr_assert_eq(quern_entity_list_components(world, entity, NULL, 0), 0);
}

Test(required, an_added_component_can_be_disabled_by_a_later_command)
{
    const quern_entity late = setup_entity(world), early = setup_entity(world), kept = setup_entity(world);
    must(quern_entity_add(world, kept, s.body, NULL));
    must(quern_commands_add(commands(), late, s.body, NULL));
    must(quern_commands_set_component_enabled(commands(), late, s.label, false));
    must(quern_commands_set_component_enabled(commands(), early, s.label, false)); /* it is absent */
    must(quern_commands_add(commands(), early, s.body, NULL));
    must(quern_commands_set_component_enabled(commands(), kept, s.label, false));
    must(quern_commands_remove(commands(), kept, s.label));
    must(quern_world_flush(world));
    cr_assert_not(quern_entity_is_component_enabled(world, late, s.label));
    cr_assert(quern_entity_is_component_enabled(world, early, s.label));
    cr_assert_not(quern_entity_is_component_enabled(world, kept, s.label));
}

/* The rule, in the words of the documentation: commands are applied one after the other to sets without requirements,
 * except removes of what the resulting set requires; then what is missing is constructed. Dropping such removes adds
 * components, which may require what further removes leave out, so the rule is applied until nothing changes. */
enum { MODEL_TYPES = 6, MAX_COMMANDS = 8 };

typedef enum model_kind { MODEL_ADD, MODEL_SET, MODEL_REMOVE, MODEL_TOGGLE, MODEL_KINDS } model_kind;

typedef struct model_command {
    model_kind kind;
    uint32_t type;
    uint32_t value; /* MODEL_TOGGLE: odd values enable */
} model_command;

typedef struct modelled {
    bool has[MODEL_TYPES], is_disabled[MODEL_TYPES];
    uint32_t values[MODEL_TYPES];
} modelled;

static const uint32_t model_required[MODEL_TYPES] = {0, 1, 0, 2 | 1 | 4, 0, 16 | 4};
static quern_component model_types_of[MODEL_TYPES];

static uint32_t model_default(uint32_t type)
{
    return 1000 + type;
}

static uint32_t set_of(const modelled *entity)
{
    uint32_t set = 0;
    for (uint32_t i = 0; i < MODEL_TYPES; i++)
        if (entity->has[i]) set |= 1u << i;
    return set;
}

static uint32_t required_by(uint32_t set)
{
    uint32_t required = 0;
    for (uint32_t i = 0; i < MODEL_TYPES; i++)
        if (set >> i & 1) required |= model_required[i];
    return required;
}

static void model_give(modelled *entity, uint32_t type, uint32_t value)
{
    entity->has[type] = true;
    entity->values[type] = value;
}

/* last: the resulting set, as far as it is known */
static modelled model_apply(const modelled *before, const model_command *list, uint32_t count,
                            uint32_t last)
{
    const uint32_t kept = required_by(last);
    modelled after = *before;
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t type = list[i].type;
        const bool has = after.has[type];
        if (list[i].kind == MODEL_SET || (list[i].kind == MODEL_ADD && !has))
            model_give(&after, type, list[i].kind == MODEL_SET ? list[i].value : model_default(type));
        if (list[i].kind == MODEL_REMOVE && (kept >> type & 1) == 0)
            after.has[type] = after.is_disabled[type] = false;
        /* what a component of the resulting set requires is present as soon as that component, and can be disabled */
        const uint32_t required = required_by(set_of(&after) & last);
        for (uint32_t k = 0; k < MODEL_TYPES; k++)
            if (required >> k & 1 && !after.has[k]) model_give(&after, k, model_default(k));
        if (list[i].kind == MODEL_TOGGLE && after.has[type])
            after.is_disabled[type] = list[i].value % 2 == 0;
    }
    return after;
}

static modelled model_run(const modelled *before, const model_command *list, uint32_t count)
{
    uint32_t last = 0;
    modelled after = model_apply(before, list, count, last);
    while (set_of(&after) != last) {
        last = set_of(&after);
        after = model_apply(before, list, count, last);
    }
    return after;
}

static void register_model_types(void)
{
    for (uint32_t i = 0; i < MODEL_TYPES; i++) {
        char name[16];
        const uint32_t value = model_default(i);
        quern_component_def def = {
            .name = name, .size_bytes = 4, .default_value = &value, .can_disable = i % 2 == 0};
        (void)snprintf(name, sizeof name, "model %u", i);
        for (uint32_t k = 0, count = 0; k < i; k++)
            if (model_required[i] >> k & 1) def.required[count++] = model_types_of[k];
        model_types_of[i] = must_register(def);
    }
}

static quern_entity make_modelled(random_source *random, modelled *out_model)
{
    const quern_entity entity = setup_entity(world);
    *out_model = (modelled){.has = {false}};
    const uint32_t set = random_below(random, 1u << MODEL_TYPES);
    for (uint32_t i = 0; i < MODEL_TYPES; i++)
        if (set >> i & 1) must(quern_entity_add(world, entity, model_types_of[i], NULL));
    for (uint32_t i = 0; i < MODEL_TYPES; i++) {
        const uint32_t value = random_below(random, 100);
        if (!has(entity, model_types_of[i])) continue;
        must(quern_entity_set(world, entity, model_types_of[i], &value));
        model_give(out_model, i, value);
        out_model->is_disabled[i] = i % 2 == 0 && random_chance(random, 50);
        if (out_model->is_disabled[i])
            must(quern_entity_set_component_enabled(world, entity, model_types_of[i], false));
    }
    return entity;
}

static model_command record_modelled(random_source *random, quern_entity entity)
{
    const model_command drawn = {.kind = (model_kind)random_below(random, MODEL_KINDS),
                                 .type = random_below(random, MODEL_TYPES),
                                 .value = random_below(random, 100)};
    const quern_component type = model_types_of[drawn.type];
    switch (drawn.kind) {
    case MODEL_ADD:
        must(quern_commands_add(commands(), entity, type, NULL));
        break;
    case MODEL_SET:
        must(quern_commands_set(commands(), entity, type, &drawn.value));
        break;
    case MODEL_REMOVE:
        must(quern_commands_remove(commands(), entity, type));
        break;
    default:
        if (drawn.type % 2 != 0) return (model_command){.kind = MODEL_KINDS};
        must(quern_commands_set_component_enabled(commands(), entity, type, drawn.value % 2 == 1));
    }
    return drawn;
}

static void assert_modelled(quern_entity entity, const modelled *expected, uint32_t program)
{
    for (uint32_t i = 0; i < MODEL_TYPES; i++) {
        const uint32_t *value = quern_entity_get(world, entity, model_types_of[i]);
        cr_assert_eq(value != NULL, expected->has[i], "program %u, type %u", program, i);
        if (value == NULL) continue;
        cr_assert_eq(*value, expected->values[i], "program %u, type %u: %u, expected %u", program, i,
                     *value, expected->values[i]);
        cr_assert_eq(i % 2 == 0 && !quern_entity_is_component_enabled(world, entity, model_types_of[i]),
                     expected->is_disabled[i], "program %u, type %u", program, i);
    }
}

/* Sync points of one entity, and of several, take different paths. */
Test(required, commands_follow_the_rule_of_removes)
{
    enum { PROGRAMS = 20000, TOGETHER = 3 };
    random_source random = {43};
    register_model_types();
    for (uint32_t program = 0; program < PROGRAMS; program++) {
        const uint32_t entity_count = 1 + program % TOGETHER;
        quern_entity entities[TOGETHER];
        modelled expected[TOGETHER];
        for (uint32_t k = 0; k < entity_count; k++) {
            model_command list[MAX_COMMANDS];
            const uint32_t count = 1 + random_below(&random, MAX_COMMANDS);
            modelled before;
            entities[k] = make_modelled(&random, &before);
            for (uint32_t i = 0; i < count; i++)
                list[i] = record_modelled(&random, entities[k]);
            expected[k] = model_run(&before, list, count);
        }
        must(quern_world_flush(world));
        for (uint32_t k = 0; k < entity_count; k++) {
            assert_modelled(entities[k], &expected[k], program);
            must(quern_entity_destroy(world, entities[k]));
        }
    }
}

/* ---------------------------------------------------------------------- prefabs, archives, histories */

Test(required, prefabs_have_what_their_members_require)
{
    quern_prefab prefab;
    quern_entity root;
    must(quern_prefab_capture(world, setup_entity_with(world, &s.car, 1), &prefab));
    must(quern_prefab_spawn(world, prefab, NULL, &root));
    assert_constructed_car(root);
    must(quern_commands_spawn(commands(), prefab, NULL, &root));
    must(quern_commands_remove(commands(), root, s.engine));
    must(quern_world_flush(world));
    const quern_term cars_only = quern_term_with(s.car);
    quern_query *query = setup_query(world, &cars_only, 1);
    cr_assert_eq(quern_query_count(query), 3);
    quern_query_destroy(query);
}

/* Saves a world in which body requires nothing. */
static void save_old_world(quern_byte_buffer *out)
{
    quern_world *old = setup_world();
    const quern_component label = setup_component(old, "label", 4, 4),
                          body = setup_component(old, "body", 8, 8);
    quern_component list[] = {body, label};
    const uint32_t value = 4;
    for (uint32_t i = 0; i < 3; i++) {
        const quern_entity entity = setup_entity_with(old, list, 1 + i % 2);
        if (i == 1) must(quern_entity_set(old, entity, label, &value));
    }
    must(quern_world_save(old, quern_sink_bytes(out), &(quern_save_def){0}));
    quern_world_destroy(old);
}

Test(required, older_archives_load_with_what_is_required)
{
    quern_byte_buffer archive = {0};
    const uint16_t one = 1;
    if (*(const unsigned char *)&one == 0) cr_skip_test("big-endian machines have no archives");
    save_old_world(&archive);
    for (uint32_t round = 0; round < 2; round++) { /* into an empty world, and into one with entities */
        must(quern_world_load(world, quern_source_bytes(archive.bytes, archive.size_bytes),
                              &(quern_load_def){0}, NULL));
        assert_valid(world);
    }
    const quern_term bodies_only = quern_term_with(s.body);
    quern_query *query = setup_query(world, &bodies_only, 1);
    uint32_t with_default = 0, with_saved = 0;
    for (quern_query_iterator it = quern_query_iterate(query); quern_query_next(&it);)
        for (uint32_t i = 0; i < it.view.count; i++) {
            const quern_entity entity = it.view.entities[i];
            cr_assert(has(entity, s.frame) && has(entity, s.place));
            with_default += label_of(entity) == 7;
            with_saved += label_of(entity) == 4;
        }
    cr_assert_eq(with_default, 4);
    cr_assert_eq(with_saved, 2);
    quern_byte_buffer_release(&archive);
    quern_query_destroy(query);
}

Test(required, histories_restore_waiting_commands)
{
    quern_history *history;
    uint64_t before;
    const quern_entity entity = setup_entity(world);
    must(quern_commands_add(commands(), entity, s.body, NULL));
    must(quern_history_create(world, &(quern_history_def){.frame_count = 4}, &history));
    must(quern_history_save(history, 1, NULL));
    must(quern_world_flush(world));
    before = quern_world_hash(world);
    must(quern_history_restore(history, 1, NULL));
    cr_assert_not(has(entity, s.body));
    must(quern_world_flush(world));
    cr_assert_eq(quern_world_hash(world), before);
    quern_history_destroy(history);
}

/* ------------------------------------------------------------------------------------------- memory */

/* Registers types and changes entities, all with memory that may be refused. Returns the first error. */
static quern_result run_all(quern_world *in)
{
    static const uint32_t value = 3;
    quern_component label = {0}, body = {0}, tag = {0};
    quern_entity entity = {0}, other = {0};
    quern_result result = quern_component_register(
        in, &(quern_component_def){.name = "l", .size_bytes = 4, .default_value = &value}, &label);
    if (result == QUERN_OK)
        result = quern_component_register(
            in, &(quern_component_def){.name = "b", .size_bytes = 4, .required = {label}}, &body);
    if (result == QUERN_OK)
        result =
            quern_component_register(in, &(quern_component_def){.name = "t", .required = {body}}, &tag);
    if (result == QUERN_OK) result = quern_entity_create(in, &entity);
    if (result == QUERN_OK) result = quern_entity_add(in, entity, tag, NULL);
    if (result == QUERN_OK) result = quern_entity_create_with(in, &tag, NULL, 1, &other);
    if (result == QUERN_OK && *(uint32_t *)quern_entity_get(in, other, label) != 3)
        return QUERN_ERROR_CORRUPT;
    return result;
}

Test(required, memory_failures_leave_nothing_half_done)
{
    quern_result result = QUERN_ERROR_OUT_OF_MEMORY;
    for (uint64_t call = 0; result != QUERN_OK; call++) {
        failing_allocator *allocator = failing_allocator_create();
        quern_world *small = make_world(.allocator = failing_allocator_interface(allocator));
        failing_allocator_fail_at(allocator, 1 + call);
        result = run_all(small);
        cr_assert(result == QUERN_OK || result == QUERN_ERROR_OUT_OF_MEMORY, "%s", quern_error_message());
        failing_allocator_heal(allocator);
        assert_valid(small);
        if (result != QUERN_OK) must(run_all(small));
        quern_world_destroy(small);
        failing_allocator_close(allocator);
    }
}
