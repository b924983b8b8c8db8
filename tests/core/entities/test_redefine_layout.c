/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "tests/support/fixture.h"
#include "tests/support/random.h"
#include "tests/support/tracked.h"

#include <stdlib.h>
#include <string.h>

/* Redefinition of components, resources and events with another layout. A world whose types are redefined must be the
 * world that an archive from before becomes in a program that always had the new definition. */

typedef struct Old {
    int32_t count;
    float heat;
    quern_entity target;
    char title[8];
    uint16_t parts[3];
} Old;

typedef struct New {
    uint16_t parts[2];
    char name[5]; /* was title */
    double cold;  /* added */
    int64_t count;
    quern_entity target;
    uint8_t payload[40]; /* not described */
} New;

static quern_component_def old_def(void)
{
    return (quern_component_def){.name = "Unit",
                                 .size_bytes = sizeof(Old),
                                 .alignment_bytes = _Alignof(Old),
                                 .type_name = "Old",
                                 .fields = {QUERN_FIELD(Old, count), QUERN_FIELD(Old, heat),
                                            QUERN_FIELD(Old, target), QUERN_TEXT(Old, title),
                                            QUERN_FIELD(Old, parts)}};
}

static quern_component_def new_def(void)
{
    return (quern_component_def){.name = "Unit",
                                 .size_bytes = sizeof(New),
                                 .alignment_bytes = _Alignof(New),
                                 .type_name = "New",
                                 .fields = {QUERN_FIELD(New, parts), QUERN_TEXT(New, name),
                                            QUERN_FIELD(New, cold), QUERN_FIELD(New, count),
                                            QUERN_FIELD(New, target)}};
}

static const quern_redefine_def renamed = {.renames = {{"title", "name"}}};

static failing_allocator *memory;
static quern_component unit, other, toggled, tag;

static void register_types(quern_world *to, const quern_component_def *def)
{
    must(quern_component_register(to, def, &unit));
    other = setup_component(to, "other", 12, 4);
    toggled = make_component(to, .name = "toggled", .size_bytes = 8, .can_disable = true);
    tag = setup_tag(to, "tag");
}

static void open_old_world(void)
{
    const quern_component_def def = old_def();
    memory = open_failing_world();
    register_types(world, &def);
}

TestSuite(redefine_layout, .init = open_old_world, .fini = close_valid_world);

enum { MOST_ENTITIES = 3000 };

static quern_entity entities[MOST_ENTITIES];

/* Creates entities in several archetypes and destroys some, so that rows are out of order. */
static uint32_t create_entities(random_source *random, uint32_t count)
{
    const quern_component sets[4][3] = {{unit}, {unit, other}, {unit, tag, toggled}, {other, toggled}};
    const uint32_t set_counts[4] = {1, 2, 3, 2};
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t set = random_below(random, 4);
        entities[i] = setup_entity_with(world, sets[set], set_counts[set]);
        if (set < 3) {
            Old *value = quern_entity_get(world, entities[i], unit);
            *value = (Old){.count = (int32_t)i - 100,
                           .heat = (float)i,
                           .target = entities[random_below(random, i + 1)],
                           .parts = {(uint16_t)i, 7, 9}};
            memcpy(value->title, "abcdefgh", random_below(random, 9));
        }
        if (set >= 2 && random_below(random, 2) == 0)
            must(quern_entity_set_component_enabled(world, entities[i], toggled, false));
        if (random_below(random, 4) == 0 && i > 0) {
            const quern_entity gone = entities[random_below(random, i)];
            if (quern_entity_is_alive(world, gone)) must(quern_entity_destroy(world, gone));
        }
    }
    return count;
}

/* Returns the hash of a world that always had the new definition and has loaded an archive of the world. */
static uint64_t hash_by_archive(const quern_component_def *def, const quern_load_def *how)
{
    quern_byte_buffer bytes = {0};
    must(quern_world_save(world, quern_sink_bytes(&bytes), NULL));
    quern_world *const present = world;
    quern_world *loaded;
    const quern_component components[] = {unit, other, toggled, tag};
    must(quern_world_create(NULL, &loaded));
    register_types(loaded, def);
    must(quern_world_load(loaded, quern_source_bytes(bytes.bytes, bytes.size_bytes), how, NULL));
    const uint64_t hash = quern_world_hash(loaded);
    quern_world_destroy(loaded);
    quern_byte_buffer_release(&bytes);
    world = present;
    unit = components[0], other = components[1], toggled = components[2], tag = components[3];
    return hash;
}

Test(redefine_layout, worlds_are_converted_as_archives_are)
{
    for (uint64_t seed = 1; seed <= 6; seed++) {
        random_source random = {seed};
        create_entities(&random, 100 + random_below(&random, MOST_ENTITIES - 100));
        quern_component_def def = new_def();
        def.fields[1].name = "title"; /* archives know no other name */
        const uint64_t expected = hash_by_archive(&def, NULL);
        quern_redefine_report report;
        must(quern_component_redefine(world, unit, &def, NULL, &report));
        cr_assert(report.is_converted);
        cr_assert_eq(report.dropped_field_count, 1);
        cr_assert_eq(report.added_field_count, 1);
        cr_assert_str_eq(report.dropped_fields[0], "heat");
        cr_assert_gt(report.shortened_count, 0);
        cr_assert_eq(quern_world_hash(world), expected);
        assert_valid(world);
        close_valid_world();
        open_old_world();
    }
}

Test(redefine_layout, rows_keep_their_order_and_entities_their_handles)
{
    random_source random = {3};
    const uint32_t count = create_entities(&random, 2000);
    static quern_entity before[MOST_ENTITIES];
    static int32_t counts[MOST_ENTITIES];
    uint32_t row_count = 0, row = 0;
    quern_query *query = setup_query(world, (quern_term[]){quern_term_read(unit)}, 1);
    quern_query_iterator iterator = quern_query_iterate(query);
    while (quern_query_next(&iterator))
        for (uint32_t i = 0; i < iterator.view.count; i++) {
            counts[row_count] = ((const Old *)quern_view_read(&iterator.view, 0))[i].count;
            before[row_count++] = iterator.view.entities[i];
        }
    quern_getter *getter;
    must(quern_getter_create(world, &(quern_getter_def){.component = unit}, &getter));
    const quern_component_def def = new_def();
    must(quern_component_redefine(world, unit, &def, &renamed, NULL));
    iterator = quern_query_iterate(query);
    while (quern_query_next(&iterator))
        for (uint32_t i = 0; i < iterator.view.count; i++, row++) {
            const New *value = (const New *)quern_view_read(&iterator.view, 0) + i;
            cr_assert_eq(iterator.view.entities[i].bits, before[row].bits);
            cr_assert_eq(value->count, counts[row]);
            cr_assert_eq(value->parts[1], 7);
            cr_assert_eq(value->cold, 0);
            cr_assert_eq(quern_getter_get(getter, before[row]), value);
        }
    cr_assert_eq(row, row_count);
    (void)count;
    quern_getter_destroy(getter);
}

Test(redefine_layout, structure_changes_and_commands_work_afterwards)
{
    random_source random = {5};
    const quern_entity early = setup_entity_with(world, &unit, 1);
    must(quern_entity_add(world, early, other, NULL)); /* compiles plans and operations of the old layout */
    must(quern_entity_remove(world, early, other));
    quern_commands *commands = quern_world_commands(world);
    must(quern_commands_set(commands, early, unit, &(Old){.count = 4}));
    must(quern_world_flush(world));
    create_entities(&random, 500);
    const quern_component_def def = new_def();
    must(quern_component_redefine(world, unit, &def, &renamed, NULL));
    cr_assert_eq(((New *)quern_entity_get(world, early, unit))->count, 4);
    must(quern_entity_add(world, early, other, NULL));
    cr_assert_eq(((New *)quern_entity_get(world, early, unit))->count, 4);
    commands = quern_world_commands(world);
    must(quern_commands_set(commands, early, unit, &(New){.count = 5, .payload = {[39] = 6}}));
    const void *values[] = {&(New){.count = 8, .payload = {[39] = 9}}};
    const quern_entity made = record_entity_with(commands, &unit, values, 1);
    must(quern_commands_add(commands, made, tag, NULL));
    must(quern_world_flush(world));
    cr_assert_eq(((New *)quern_entity_get(world, early, unit))->count, 5);
    cr_assert_eq(((New *)quern_entity_get(world, early, unit))->payload[39], 6);
    for (uint32_t i = 0; i < 500; i++)
        if (quern_entity_is_alive(world, entities[i]) && quern_entity_has(world, entities[i], unit))
            must(quern_entity_remove(world, entities[i], unit));
}

Test(redefine_layout, waiting_values_refuse_it)
{
    const quern_entity entity = setup_entity(world);
    must(quern_commands_set(quern_world_commands(world), entity, unit, &(Old){.count = 4}));
    const quern_component_def def = new_def();
    must_refuse(INVALID_ARGUMENT, world, quern_component_redefine(world, unit, &def, &renamed, NULL));
    must(quern_world_flush(world));
    must(quern_component_redefine(world, unit, &def, &renamed, NULL));
    cr_assert_eq(((New *)quern_entity_get(world, entity, unit))->count, 4);
}

Test(redefine_layout, prefabs_are_converted_with_the_handles_of_their_members)
{
    const quern_entity root = setup_entity_with(world, (quern_component[]){unit, other}, 2);
    const quern_entity child = setup_entity_with(world, &unit, 1);
    must(quern_entity_relate(world, child, quern_world_parent(world), root));
    *(Old *)quern_entity_get(world, root, unit) = (Old){.count = 1, .target = child, .title = "root"};
    *(Old *)quern_entity_get(world, child, unit) = (Old){.count = 2, .target = root};
    quern_prefab prefab;
    must(quern_prefab_capture(world, root, &prefab));
    quern_entity first, second;
    must(quern_prefab_spawn(world, prefab, NULL, &first));
    const quern_component_def def = new_def();
    must(quern_component_redefine(world, unit, &def, &renamed, NULL));
    must(quern_prefab_spawn(world, prefab, NULL, &second));
    const New *value = quern_entity_get(world, second, unit);
    cr_assert_eq(value->count, 1);
    cr_assert_str_eq(value->name, "root");
    const New *target = quern_entity_get(world, value->target, unit);
    cr_assert_eq(target->count, 2);
    cr_assert_eq(target->target.bits, second.bits);
    cr_assert_neq(value->target.bits, child.bits);
}

typedef struct Slow {
    float speed;
} Slow;

typedef struct Fast {
    double course, speed;
} Fast;

/* Spawns an instance by the only command, and returns it. */
static quern_entity spawn_alone(quern_prefab prefab, quern_component component, const void *value)
{
    const quern_entity parent = setup_entity(world);
    const quern_relation relation = quern_world_parent(world);
    const quern_spawn_def def = {.parent = parent,
                                 .overrides = {{.component = component, .column = value}}};
    must(quern_commands_spawn(quern_world_commands(world), prefab, &def, NULL));
    must(quern_world_flush(world));
    const quern_entity made = quern_entity_first_source(world, parent, relation);
    cr_assert_neq(made.bits, 0u);
    assert_valid(world);
    return made;
}

Test(redefine_layout, instances_spawned_by_command_have_values_and_parents)
{
    quern_component speed;
    quern_component_def def = {.name = "Speed",
                               .size_bytes = sizeof(Slow),
                               .alignment_bytes = 4,
                               .fields = {QUERN_FIELD(Slow, speed)}};
    must(quern_component_register(world, &def, &speed));
    const quern_entity root = setup_entity_with(world, &speed, 1);
    quern_prefab prefab;
    must(quern_prefab_capture(world, root, &prefab));
    const quern_entity slow = spawn_alone(prefab, speed, &(Slow){3});
    def = (quern_component_def){.name = "Speed",
                                .size_bytes = sizeof(Fast),
                                .alignment_bytes = 8,
                                .fields = {QUERN_FIELD(Fast, course), QUERN_FIELD(Fast, speed)}};
    must(quern_component_redefine(world, speed, &def, NULL, NULL));
    const quern_entity fast = spawn_alone(prefab, speed, &(Fast){4, 5});
    cr_assert_eq(((Fast *)quern_entity_get(world, slow, speed))->speed, 3);
    cr_assert_eq(((Fast *)quern_entity_get(world, fast, speed))->course, 4);
    cr_assert_eq(((Fast *)quern_entity_get(world, fast, speed))->speed, 5);
}

static uint32_t removed_sum, set_sum, old_sum;

static void see_removed(quern_context *context, const quern_view *view)
{
    const New *values = quern_view_read(view, 0);
    for (uint32_t i = 0; i < view->count; i++)
        if (quern_context_reaction(context) == QUERN_REACT_REMOVED)
            removed_sum += (uint32_t)values[i].count;
        else
            set_sum += (uint32_t)values[i].count;
}

static void see_old(quern_context *context, const quern_view *view)
{
    (void)context;
    const New *values = quern_view_read(view, 0);
    for (uint32_t i = 0; i < view->count; i++)
        old_sum += (uint32_t)values[i].count;
}

Test(redefine_layout, pending_changes_and_old_values_of_reactions_are_converted)
{
    quern_schedule *schedule;
    must(quern_schedule_create(world, NULL, &schedule));
    must(quern_schedule_add_system(schedule,
                                   &(quern_system_def){.name = "removed",
                                                       .run = see_removed,
                                                       .terms = {quern_term_read(unit)},
                                                       .reacts_to = QUERN_REACT_REMOVED | QUERN_REACT_SET},
                                   NULL));
    must(quern_schedule_add_system(
        schedule,
        &(quern_system_def){
            .name = "old", .run = see_old, .terms = {quern_term_old(unit)}, .reacts_to = QUERN_REACT_SET},
        NULL));
    static quern_entity list[900];
    for (uint32_t i = 0; i < 900; i++) {
        list[i] = setup_entity_with(world, &unit, 1);
        ((Old *)quern_entity_get(world, list[i], unit))->count = 10;
    }
    must(quern_schedule_run(schedule, NULL, 0));
    removed_sum = set_sum = old_sum = 0;
    for (uint32_t i = 0; i < 900; i += 3)
        must(quern_entity_destroy(world, list[i]));
    for (uint32_t i = 1; i < 900; i += 3)
        must(quern_entity_set(world, list[i], unit, &(Old){.count = 1}));
    const quern_component_def def = new_def();
    must(quern_component_redefine(world, unit, &def, &renamed, NULL));
    must(quern_schedule_run(schedule, NULL, 0));
    cr_assert_eq(removed_sum, 3000);
    cr_assert_eq(set_sum, 300);
    cr_assert_eq(old_sum, 3000);
}

static void see_nothing(quern_context *context, const quern_view *view) {}

Test(redefine_layout, values_with_hooks_that_wait_beside_others_are_moved)
{
    tracked_counts counts = {0};
    const quern_component types[] = {unit, tracked_register(world, "tracked", &counts)};
    quern_schedule *schedule;
    must(quern_schedule_create(world, NULL, &schedule));
    must(quern_schedule_add_system(
        schedule,
        &(quern_system_def){.name = "removed",
                            .run = see_nothing,
                            .terms = {quern_term_read(types[0]), quern_term_read(types[1])},
                            .reacts_to = QUERN_REACT_REMOVED},
        NULL));
    for (uint32_t i = 0; i < 40; i++)
        must(quern_entity_destroy(world, setup_entity_with(world, types, 2)));
    cr_assert_eq(tracked_live_count(&counts), 40);
    const quern_component_def def = new_def();
    must(quern_component_redefine(world, unit, &def, &renamed, NULL));
    cr_assert_eq(tracked_live_count(&counts), 40);
    must(quern_schedule_run(schedule, NULL, 0));
    cr_assert_eq(tracked_live_count(&counts), 0);
    cr_assert_eq(counts.broken_count, 0u);
}

Test(redefine_layout, a_history_drops_its_frames_and_goes_on)
{
    quern_history *history;
    random_source random = {8};
    create_entities(&random, 300);
    must(quern_history_create(world, NULL, &history));
    must(quern_history_save(history, 1, NULL));
    must(quern_history_save(history, 2, NULL));
    captured_reports reports;
    capture_reports(&reports);
    const quern_component_def def = new_def();
    quern_redefine_report report;
    must(quern_component_redefine(world, unit, &def, &renamed, &report));
    cr_assert_eq(report.dropped_frame_count, 2);
    cr_assert_eq(reports.log_count, 1);
    cr_assert_neq(quern_history_restore(history, 2, NULL), QUERN_OK);
    const uint64_t hash = quern_world_hash(world);
    must(quern_history_save(history, 3, NULL));
    create_entities(&random, 1);
    for (uint32_t i = 0; i < 300; i++)
        if (quern_entity_is_alive(world, entities[i])) must(quern_entity_destroy(world, entities[i]));
    must(quern_history_restore(history, 3, NULL));
    cr_assert_eq(quern_world_hash(world), hash);
    quern_history_destroy(history);
}

Test(redefine_layout, a_number_that_does_not_fit_changes_nothing)
{
    const quern_entity entity = setup_entity_with(world, (quern_component[]){unit, other}, 2);
    ((Old *)quern_entity_get(world, entity, unit))->count = 70000;
    quern_component_def def = {.name = "Unit", .size_bytes = 2, .alignment_bytes = 2};
    def.fields[0] = (quern_field){.name = "count", .type = QUERN_FIELD_I16, .offset_bytes = 0};
    must_refuse(INVALID_ARGUMENT, world, quern_component_redefine(world, unit, &def, NULL, NULL));
    def.size_bytes = 16384;
    must_refuse(COMPONENT_TOO_LARGE, world, quern_component_redefine(world, unit, &def, NULL, NULL));
    def.size_bytes = 16256;
    must_refuse(INVALID_ARGUMENT, world, quern_component_redefine(world, unit, &def, NULL, NULL));
    ((Old *)quern_entity_get(world, entity, unit))->count = 7;
    must_refuse(COMPONENT_TOO_LARGE, world, quern_component_redefine(world, unit, &def, NULL, NULL));
    def.size_bytes = 2;
    must_refuse(INVALID_ARGUMENT, world,
                quern_component_redefine(world, unit, &def,
                                         &(quern_redefine_def){.renames = {{"coun", "count"}}}, NULL));
    def = (quern_component_def){.name = "Unit"};
    must_refuse(LAYOUT_MISMATCH, world, quern_component_redefine(world, unit, &def, NULL, NULL));
    def = new_def();
    def.hooks.destroy = (void (*)(void *, uint32_t, void *))abort;
    must_refuse(LAYOUT_MISMATCH, world, quern_component_redefine(world, unit, &def, &renamed, NULL));
}

/* The values that do not fit are no longer in the world: one is the copy of a removed row, one an old value. */
Test(redefine_layout, a_number_that_waits_for_a_reaction_must_fit)
{
    static const uint32_t kinds[] = {QUERN_REACT_REMOVED, QUERN_REACT_SET};
    const quern_term terms[] = {quern_term_read(unit), quern_term_old(unit)};
    quern_component_def def = {.name = "Unit", .size_bytes = 2, .alignment_bytes = 2};
    def.fields[0] = (quern_field){.name = "count", .type = QUERN_FIELD_I16, .offset_bytes = 0};
    for (uint32_t i = 0; i < 2; i++) {
        quern_schedule *schedule;
        must(quern_schedule_create(world, NULL, &schedule));
        must(quern_schedule_add_system(
            schedule,
            &(quern_system_def){
                .name = "reaction", .run = see_nothing, .terms = {terms[i]}, .reacts_to = kinds[i]},
            NULL));
        const quern_entity entity = setup_entity_with(world, &unit, 1);
        must(quern_entity_set(world, entity, unit, &(Old){.count = 70000}));
        must(quern_schedule_run(schedule, NULL, 0));
        if (kinds[i] == QUERN_REACT_REMOVED)
            must(quern_entity_destroy(world, entity));
        else
            must(quern_entity_set(world, entity, unit, &(Old){.count = 7}));
        must_refuse(INVALID_ARGUMENT, world, quern_component_redefine(world, unit, &def, NULL, NULL));
        cr_assert_not_null(strstr(quern_error_message(), "70000"), "%s", quern_error_message());
        quern_schedule_destroy(schedule);
    }
}

Test(redefine_layout, fields_may_exchange_their_names)
{
    const quern_component_def def = {
        .name = "pair",
        .size_bytes = 8,
        .alignment_bytes = 4,
        .fields = {{"a", QUERN_FIELD_I32, 0, .count = 1}, {"b", QUERN_FIELD_I32, 4, .count = 1}}};
    quern_component pair;
    must(quern_component_register(world, &def, &pair));
    const quern_entity entity = setup_entity_with(world, &pair, 1);
    must(quern_entity_set(world, entity, pair, (const int32_t[]){1, 2}));
    must(quern_component_redefine(world, pair, &def,
                                  &(quern_redefine_def){.renames = {{"a", "b"}, {"b", "a"}}}, NULL));
    const int32_t *values = quern_entity_get(world, entity, pair);
    cr_assert(values[0] == 2 && values[1] == 1, "%d and %d", values[0], values[1]);
}

static void migrate(void *user_data, void *targets, const void *sources, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        ((New *)targets)[i] =
            (New){.count = ((const Old *)sources)[i].count * 2, .cold = *(const double *)user_data};
}

Test(redefine_layout, a_function_converts_values)
{
    double cold = 0.5;
    quern_redefine_report report;
    static quern_entity list[300];
    for (uint32_t i = 0; i < 300; i++) {
        list[i] = setup_entity_with(world, &unit, 1);
        ((Old *)quern_entity_get(world, list[i], unit))->count = (int32_t)i;
    }
    const quern_component_def def = new_def();
    must(quern_component_redefine(world, unit, &def,
                                  &(quern_redefine_def){.migrate = migrate, .user_data = &cold}, &report));
    cr_assert_eq(report.added_field_count + report.dropped_field_count, 0u,
                 "the function compares no fields");
    for (uint32_t i = 0; i < 300; i++) {
        const New *value = quern_entity_get(world, list[i], unit);
        cr_assert_eq(value->count, 2 * i);
        cr_assert_eq(value->cold, 0.5);
    }
}

/* A value that points into itself, as short strings of C++ do. */
typedef struct Inside {
    const char *text;
    char bytes[8];
} Inside;

static void construct_inside(void *values, uint32_t count, void *user_data)
{
    Inside *made = values;
    (void)user_data;
    for (uint32_t i = 0; i < count; i++) {
        memcpy(made[i].bytes, "within", 7);
        made[i].text = made[i].bytes;
    }
}

static void copy_inside(void *targets, const void *sources, uint32_t count, void *user_data)
{
    Inside *to = targets;
    (void)user_data;
    memcpy(to, sources, count * sizeof *to);
    for (uint32_t i = 0; i < count; i++)
        to[i].text = to[i].bytes;
}

static void move_inside(void *targets, void *sources, uint32_t count, void *user_data)
{
    copy_inside(targets, sources, count, user_data);
}

/* Values of the same size, whose fields were not described before, move to other rows. */
Test(redefine_layout, values_that_point_into_themselves_are_moved_by_their_hook)
{
    quern_component_def def = {.name = "Inside",
                               .size_bytes = sizeof(Inside),
                               .alignment_bytes = _Alignof(Inside),
                               .hooks = {construct_inside, copy_inside, move_inside, NULL, NULL}};
    quern_component inside;
    must(quern_component_register(world, &def, &inside));
    quern_entity owners[300];
    must(quern_entity_create_many(world, &inside, NULL, 1, 300, owners));
    quern_resource_def resource_def = {.name = "Inside",
                                       .size_bytes = sizeof(Inside),
                                       .alignment_bytes = _Alignof(Inside),
                                       .hooks = def.hooks};
    quern_resource resource;
    must(quern_resource_register(world, &resource_def, &resource));
    def.fields[0] = (quern_field)QUERN_TEXT(Inside, bytes);
    resource_def.fields[0] = def.fields[0];
    quern_redefine_report report;
    must(quern_component_redefine(world, inside, &def, NULL, &report));
    cr_assert(report.is_converted);
    must(quern_resource_redefine(world, resource, &resource_def, NULL, &report));
    cr_assert(report.is_converted);
    for (uint32_t i = 0; i < 300; i++) {
        const Inside *value = quern_entity_get(world, owners[i], inside);
        cr_assert_eq(value->text, value->bytes);
        cr_assert_str_eq(value->text, "within");
    }
    const Inside *value = quern_resource_get(world, resource);
    cr_assert_eq(value->text, value->bytes);
}

static void register_in_migration(void *user_data, void *targets, const void *sources, uint32_t count)
{
    const Old *from = sources;
    New *to = targets;
    quern_resource ignored;
    *(quern_result *)user_data =
        quern_resource_register(world, &(quern_resource_def){.name = "late", .size_bytes = 4}, &ignored);
    memset(to, 0, count * sizeof *to);
    for (uint32_t i = 0; i < count; i++)
        to[i].count = from[i].count;
}

Test(redefine_layout, migrations_find_the_world_locked)
{
    const quern_component_def old = old_def(), fresh = new_def();
    quern_resource_def resource_def = {
        .name = "Unit", .size_bytes = old.size_bytes, .alignment_bytes = old.alignment_bytes};
    quern_event_def event_def = {
        .name = "Unit", .size_bytes = old.size_bytes, .alignment_bytes = old.alignment_bytes};
    memcpy(resource_def.fields, old.fields, sizeof old.fields);
    memcpy(event_def.fields, old.fields, sizeof old.fields);
    quern_resource resource;
    quern_event event;
    quern_event_reader *reader;
    must(quern_resource_register(world, &resource_def, &resource));
    must(quern_event_register(world, &event_def, &event));
    must(quern_event_reader_create(world, &(quern_event_reader_def){.event = event}, &reader));
    must(quern_world_emit(world, event, &(Old){.count = 4}, 1));
    resource_def.size_bytes = event_def.size_bytes = fresh.size_bytes;
    resource_def.alignment_bytes = event_def.alignment_bytes = fresh.alignment_bytes;
    memcpy(resource_def.fields, fresh.fields, sizeof fresh.fields);
    memcpy(event_def.fields, fresh.fields, sizeof fresh.fields);
    quern_result inside = QUERN_OK;
    const quern_redefine_def how = {.migrate = register_in_migration, .user_data = &inside};
    must(quern_resource_redefine(world, resource, &resource_def, &how, NULL));
    cr_assert_eq(inside, QUERN_ERROR_WORLD_LOCKED);
    inside = QUERN_OK;
    must(quern_event_redefine(world, event, &event_def, &how, NULL));
    cr_assert_eq(inside, QUERN_ERROR_WORLD_LOCKED);
    quern_event_reader_destroy(reader);
}

Test(redefine_layout, resources_and_waiting_events_are_converted)
{
    const quern_field count = QUERN_FIELD(Old, count), new_count = QUERN_FIELD(New, count);
    quern_resource_def resource_def = {.name = "R", .size_bytes = sizeof(Old)};
    quern_event_def event_def = {.name = "E", .size_bytes = sizeof(Old), .alignment_bytes = 8};
    resource_def.fields[0] = event_def.fields[0] = count;
    quern_resource resource;
    quern_event event;
    quern_event_reader *readers[2];
    quern_event_block block;
    must(quern_resource_register(world, &resource_def, &resource));
    must(quern_event_register(world, &event_def, &event));
    ((Old *)quern_resource_get(world, resource))->count = 77;
    static Old values[1000];
    for (uint32_t i = 0; i < 1000; i++)
        values[i].count = (int32_t)i;
    must(quern_event_reader_create(world, &(quern_event_reader_def){.event = event}, &readers[0]));
    must(quern_world_emit(world, event, values, 1000));
    must(quern_event_reader_create(world, &(quern_event_reader_def){.event = event}, &readers[1]));
    must(quern_world_emit(world, event, values, 10));
    cr_assert(quern_event_reader_next(readers[0], &block));
    const uint32_t seen = block.count;
    resource_def.size_bytes = event_def.size_bytes = 4096; /* few fit a batch */
    resource_def.fields[0] = event_def.fields[0] = new_count;
    must(quern_resource_redefine(world, resource, &resource_def, NULL, NULL));
    quern_redefine_report report;
    must(quern_event_redefine(world, event, &event_def, NULL, &report));
    cr_assert_eq(report.value_count, 1010);
    cr_assert_eq(((New *)quern_resource_get(world, resource))->count, 77);
    must(quern_world_emit(world, event, (char[4096]){0}, 1));
    uint32_t next = seen;
    while (quern_event_reader_next(readers[0], &block))
        for (uint32_t i = 0; i < block.count; i++, next++) {
            const New *value = (const New *)(const void *)((const char *)block.values + i * 4096);
            cr_assert_eq(value->count, next < 1000 ? next : next < 1010 ? next - 1000 : 0);
        }
    cr_assert_eq(next, 1011);
    next = 0;
    while (quern_event_reader_next(readers[1], &block))
        next += block.count;
    cr_assert_eq(next, 11);
    quern_event_stats stats;
    must(quern_event_get_stats(world, event, &stats));
    cr_assert_eq(stats.lost_count, 0);
    quern_event_reader_destroy(readers[0]);
    quern_event_reader_destroy(readers[1]);
}

Test(redefine_layout, without_memory_nothing_changes)
{
    random_source random = {9};
    create_entities(&random, 400);
    quern_prefab prefab;
    const quern_entity captured = setup_entity_with(world, &unit, 1);
    must(quern_prefab_capture(world, captured, &prefab));
    quern_schedule *schedule;
    must(quern_schedule_create(world, NULL, &schedule));
    must(quern_schedule_add_system(schedule,
                                   &(quern_system_def){.name = "old",
                                                       .run = see_old,
                                                       .terms = {quern_term_old(unit)},
                                                       .reacts_to = QUERN_REACT_SET | QUERN_REACT_REMOVED},
                                   NULL));
    must(quern_schedule_run(schedule, NULL, 0));
    const quern_component_def def = new_def();
    const uint64_t hash = quern_world_hash(world);
    uint64_t n = 0;
    for (quern_result result = QUERN_ERROR_OUT_OF_MEMORY; result != QUERN_OK;) {
        failing_allocator_fail_at(memory, ++n);
        result = quern_component_redefine(world, unit, &def, &renamed, NULL);
        failing_allocator_heal(memory);
        assert_valid(world);
        if (result == QUERN_OK) break;
        cr_assert_eq(result, QUERN_ERROR_OUT_OF_MEMORY, "%s", quern_error_message());
        cr_assert_eq(quern_world_hash(world), hash);
    }
    cr_assert_gt(n, 10);
    must(quern_schedule_run(schedule, NULL, 0));
}

Test(redefine_layout, objects_that_know_the_old_layout_refuse_to_go_on)
{
    quern_byte_buffer bytes = {0}, recorded = {0};
    quern_save_session *saving;
    quern_load_session *loading;
    quern_archive *list;
    quern_schedule *schedule;
    quern_replay_recorder *recorder;
    const quern_entity entity = setup_entity_with(world, &unit, 1);
    must(quern_archive_create(world, &list));
    must(quern_archive_append(list, &entity, 1));
    must(quern_save_session_create(world, NULL, &saving));
    must(quern_load_session_create(world, NULL, &loading));
    must(quern_schedule_create(world, NULL, &schedule));
    must(quern_replay_recorder_create(schedule, quern_sink_bytes(&recorded),
                                      &(quern_replay_recorder_def){.entity_interval = 1}, &recorder));
    must(quern_save_session_write(saving, list, quern_sink_bytes(&bytes)));
    must(
        quern_load_session_read(loading, quern_source_bytes(bytes.bytes, bytes.size_bytes), NULL, 0, NULL));
    must(quern_replay_record(recorder, NULL, 0));
    quern_component_def def = old_def();
    def.fields[0].unit = "m"; /* the layout stays */
    must(quern_component_redefine(world, unit, &def, NULL, NULL));
    must(quern_save_session_write(saving, list, quern_sink_bytes(&bytes)));
    must(quern_replay_record(recorder, NULL, 0));
    def = new_def();
    must(quern_component_redefine(world, unit, &def, &renamed, NULL));
    must_refuse(INVALID_ARGUMENT, world, quern_save_session_write(saving, list, quern_sink_bytes(&bytes)));
    must_refuse(
        INVALID_ARGUMENT, world,
        quern_load_session_read(loading, quern_source_bytes(bytes.bytes, bytes.size_bytes), NULL, 0, NULL));
    must_refuse(INVALID_ARGUMENT, world, quern_replay_record(recorder, NULL, 0));
    must(quern_replay_finish(recorder));
    quern_schedule_destroy(schedule);
    quern_save_session_destroy(saving);
    quern_load_session_destroy(loading);
    quern_archive_destroy(list);
    quern_byte_buffer_release(&bytes);
    quern_byte_buffer_release(&recorded);
}

Test(redefine_layout, deltas_of_a_history_refuse_it)
{
    quern_history *history;
    quern_delta *delta;
    setup_entity_with(world, &unit, 1);
    must(quern_history_create(world, NULL, &history));
    must(quern_history_save(history, 1, NULL));
    must(quern_history_save(history, 2, NULL));
    must(quern_delta_create(history, 1, 2, &delta));
    const quern_component_def def = new_def();
    must_refuse(INVALID_ARGUMENT, world, quern_component_redefine(world, unit, &def, &renamed, NULL));
    quern_delta_destroy(delta);
    captured_reports reports;
    capture_reports(&reports);
    must(quern_component_redefine(world, unit, &def, &renamed, NULL));
    quern_history_destroy(history);
}

typedef struct comparing_tool {
    quern_world_user user;
    quern_delta *delta;
} comparing_tool;

static void release_delta(quern_world_user *user)
{
    comparing_tool *tool = (comparing_tool *)user; /* its first member */
    quern_delta_destroy(tool->delta);
    tool->delta = NULL;
}

Test(redefine_layout, tools_that_release_their_deltas_do_not_refuse_it)
{
    quern_history *history;
    quern_delta *foreign;
    comparing_tool tool = {.user = {.name = "the tool", .release_deltas = release_delta}};
    setup_entity_with(world, &unit, 1);
    must(quern_history_create(world, NULL, &history));
    must(quern_history_save(history, 1, NULL));
    must(quern_history_save(history, 2, NULL));
    must(quern_world_add_user(world, &tool.user));
    must(quern_delta_create(history, 1, 2, &tool.delta));
    must(quern_delta_create(history, 1, 2, &foreign));
    quern_component_def def = old_def();
    def.fields[0].unit = "m"; /* the layout stays, and so does the delta */
    must(quern_component_redefine(world, unit, &def, NULL, NULL));
    cr_assert(tool.delta != NULL);
    def = new_def();
    quern_redefine_def checks = renamed;
    checks.only_checks = true;
    must(quern_component_redefine(world, unit, &def, &checks, NULL));
    cr_assert(tool.delta != NULL);
    must_refuse(INVALID_ARGUMENT, world, quern_component_redefine(world, unit, &def, &renamed, NULL));
    cr_assert(tool.delta == NULL);
    quern_delta_destroy(foreign);
    must(quern_delta_create(history, 1, 2, &tool.delta));
    captured_reports reports;
    capture_reports(&reports);
    must(quern_component_redefine(world, unit, &def, &renamed, NULL));
    cr_assert(tool.delta == NULL);
    quern_world_remove_user(world, &tool.user);
    quern_history_destroy(history);
}

static void count_changed(quern_query *query, uint32_t *out_count)
{
    quern_query_iterator iterator = quern_query_iterate(query);
    *out_count = 0;
    while (quern_query_next(&iterator))
        *out_count += iterator.view.count;
}

Test(redefine_layout, change_filters_see_the_component_as_changed_and_others_as_before)
{
    const quern_component list[] = {unit, other};
    for (uint32_t i = 0; i < 1000; i++)
        setup_entity_with(world, list, 2);
    quern_query *of_unit = setup_query(world, (quern_term[]){quern_term_changed(quern_term_read(unit))}, 1),
                *of_other =
                    setup_query(world, (quern_term[]){quern_term_changed(quern_term_read(other))}, 1);
    uint32_t unit_count, other_count;
    count_changed(of_unit, &unit_count);
    count_changed(of_other, &other_count);
    cr_assert_eq(unit_count, 1000);
    count_changed(of_unit, &unit_count);
    cr_assert_eq(unit_count, 0);
    const quern_component_def def = new_def();
    must(quern_component_redefine(world, unit, &def, &renamed, NULL));
    count_changed(of_unit, &unit_count);
    count_changed(of_other, &other_count);
    cr_assert_eq(unit_count, 1000);
    cr_assert_eq(other_count, 0);
}

static void release_nothing(void *values, uint32_t count, void *user_data)
{
    (void)values, (void)count, (void)user_data;
}

static void ignore_view(quern_context *context, const quern_view *view)
{
    (void)context, (void)view;
}

Test(redefine_layout, hooks_that_prefabs_and_reactions_do_not_allow_refuse_it)
{
    quern_component_def def = old_def();
    def.hooks.destroy = release_nothing;
    quern_prefab prefab;
    const quern_entity captured = setup_entity_with(world, &unit, 1);
    must(quern_prefab_capture(world, captured, &prefab));
    must_refuse(INVALID_ARGUMENT, world, quern_component_redefine(world, unit, &def, NULL, NULL));
    must(quern_prefab_destroy(world, prefab));
    for (uint32_t i = 0; i < 2; i++) {
        quern_schedule *schedule;
        must(quern_schedule_create(world, NULL, &schedule));
        must(quern_schedule_add_system(
            schedule,
            &(quern_system_def){.name = "reaction",
                                .run = ignore_view,
                                .terms = {i == 0 ? quern_term_old(unit) : quern_term_read(unit)},
                                .reacts_to = i == 0 ? QUERN_REACT_SET : QUERN_REACT_REMOVED},
            NULL));
        must_refuse(INVALID_ARGUMENT, world, quern_component_redefine(world, unit, &def, NULL, NULL));
        quern_schedule_destroy(schedule);
    }
    must(quern_component_redefine(world, unit, &def, NULL, NULL)); /* the values stay, and get a hook */
    must(quern_entity_destroy(world, captured));
}

typedef struct Since {
    uint32_t year;
} Since;

typedef struct SinceLong {
    double weight;
    uint64_t year;
} SinceLong;

typedef struct Friend {
    quern_entity target;
    uint32_t year;
} Friend;

typedef struct Friends {
    QUERN_LIST(Friend) list;
} Friends;

/* A relation with a value for the edge to the one target of a source, and one with an element for each target. */
static quern_relation setup_valued(const char *name, const quern_component_def *def, bool many,
                                   quern_component *out_value)
{
    must(quern_component_register(world, def, out_value));
    quern_relation relation = make_relation(world, .name = name, .many = many, .value = *out_value);
    return relation;
}

Test(redefine_layout, values_of_edges_are_converted)
{
    const quern_component_def old = {QUERN_TYPE(Since), .fields = {QUERN_FIELD(Since, year)}};
    quern_component_def fresh = {.name = "Since",
                                 .size_bytes = sizeof(SinceLong),
                                 .alignment_bytes = 8,
                                 .fields = {QUERN_FIELD(SinceLong, weight), QUERN_FIELD(SinceLong, year)}};
    quern_component value;
    const quern_relation relation = setup_valued("home", &old, false, &value);
    static quern_entity sources[300];
    const quern_entity target = setup_entity(world), other_target = setup_entity(world);
    for (uint32_t i = 0; i < 300; i++) {
        sources[i] = setup_entity(world);
        must(quern_entity_relate_with(world, sources[i], relation, target, &(Since){i}));
    }
    quern_prefab prefab;
    must(quern_prefab_capture(world, sources[7], &prefab));
    must(quern_commands_relate_with(quern_world_commands(world), sources[1], relation, other_target,
                                    &(Since){99}));
    must_refuse(INVALID_ARGUMENT, world, quern_component_redefine(world, value, &fresh, NULL, NULL));
    must(quern_world_flush(world));
    const uint64_t hash = quern_world_hash(world);
    uint64_t n = 1;
    for (; runs_out_of_memory(memory, n, quern_component_redefine(world, value, &fresh, NULL, NULL)); n++)
        cr_assert_eq(quern_world_hash(world), hash);
    cr_assert_gt(n, 3u);
    assert_valid(world);
    for (uint32_t i = 0; i < 300; i++) {
        const SinceLong *at =
            quern_entity_edge_value(world, sources[i], relation, i == 1 ? other_target : target);
        cr_assert_eq(at->year, i == 1 ? 99 : i);
        cr_assert_eq(at->weight, 0);
    }
    quern_entity instance;
    must(quern_prefab_spawn(world, prefab, NULL, &instance));
    cr_assert_eq(((const SinceLong *)quern_entity_edge_value(world, instance, relation, target))->year, 7u);
    must(quern_commands_set_edge_value(quern_world_commands(world), sources[2], relation, target,
                                       &(SinceLong){1.5, 12}));
    must(quern_world_flush(world));
    cr_assert_eq(((const SinceLong *)quern_entity_edge_value(world, sources[2], relation, target))->year,
                 12u);
    fresh.hooks.destroy = release_nothing;
    must_refuse(INVALID_ARGUMENT, world, quern_component_redefine(world, value, &fresh, NULL, NULL));
}

Test(redefine_layout, lists_of_edge_values_keep_their_layout)
{
    quern_component_def def = {QUERN_TYPE(Friends),
                               .fields = {QUERN_LIST_FIELD(Friends, list, Friend, target, year)}};
    quern_component value;
    const quern_relation relation = setup_valued("friend", &def, true, &value);
    const quern_entity a = setup_entity(world), b = setup_entity(world);
    must(quern_entity_relate_with(world, a, relation, b, &(Friend){.year = 5}));
    const quern_component_def wider = {QUERN_TYPE(Friends),
                                       .fields = {QUERN_LIST_FIELD(Friends, list, Friend, target)}};
    must_refuse(LAYOUT_MISMATCH, world, quern_component_redefine(world, value, &wider, NULL, NULL));
    def.default_value = &(Friends){.list = {.list = {.count = 0}}};
    must_refuse(INVALID_ARGUMENT, world, quern_component_redefine(world, value, &def, NULL, NULL));
    def.default_value = NULL;
    uint64_t n = 1;
    while (runs_out_of_memory(memory, n, quern_component_redefine(world, value, &def, NULL, NULL)))
        n++;
    cr_assert_gt(n, 1u);
    must(quern_component_redefine(world, value, &def, &(quern_redefine_def){.only_checks = true}, NULL));
    cr_assert_eq(((const Friend *)quern_entity_edge_value(world, a, relation, b))->year, 5u);
    must(quern_entity_set_edge_value(world, a, relation, b, &(Friend){.year = 6}));
    cr_assert_eq(((const Friend *)quern_entity_edge_value(world, a, relation, b))->year, 6u);
}
