/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "tests/flow/restart_scene.h"

#include "tests/flow/flow_setup.h"

#include <stdio.h>

enum { STEPS, HITS, ITEMS, CHANGED, ROW_CHANGED, REACTIONS, REMOVED, OUTSIDE };
_Static_assert(OUTSIDE + 1 == RESTART_COUNTERS, "each counter has a use");

static void mix(uint64_t *counter, uint64_t value)
{
    *counter = (*counter ^ value) * UINT64_C(0x9E3779B97F4A7C15) + 1;
}

static uint64_t *counter_of(quern_context *context, uint32_t which)
{
    const restart_scene *it = quern_context_user_data(context);
    return quern_context_resource_write(context, it->counters[which]);
}

/* ---------------------------------------------------------------------------------------- systems */

static void step(quern_context *context, const quern_view *view)
{
    restart_unit *units = QUERN_COLUMN(view, 0, restart_unit);
    for (uint32_t i = 0; i < view->count; i++)
        mix(&units[i].sum, units[i].number);
}

static void count_step(quern_context *context)
{
    uint64_t delta;
    const double seconds = quern_context_delta_seconds(context);
    memcpy(&delta, &seconds, sizeof delta);
    mix(counter_of(context, STEPS), delta + quern_context_frame_index(context));
}

static void shoot(quern_context *context, const quern_view *view)
{
    const restart_scene *it = quern_context_user_data(context);
    const restart_unit *units = quern_view_read(view, 0);
    quern_emitter *hits = quern_context_emitter(context, it->hit);
    quern_commands *commands = quern_context_commands(context);
    for (uint32_t i = 0; i < view->count; i++) {
        const uint64_t roll = units[i].sum >> 7;
        if (roll % 3 == 0) quern_emit(hits, &(restart_hit){units[i].friend, units[i].number});
        if (roll % 11 == 0) quern_context_emit(context, it->tick, NULL, 2);
        if (roll % 13 == 0) quern_commands_destroy(commands, view->entities[i]);
        if (roll % 7 == 0) quern_commands_set(commands, view->entities[i], it->heat, &roll);
        if (roll % 17 == 0) quern_commands_add(commands, view->entities[i], it->small, NULL);
        if (roll % 12 == 0) {
            const restart_unit value = {units[i].number + 1000, roll, view->entities[i]};
            const quern_component list[] = {it->unit, it->heat};
            record_entity_with(commands, list, (const void *const[]){&value, &roll}, 1 + roll % 2);
        }
    }
}

static void read_hits(quern_context *context)
{
    const restart_scene *it = quern_context_user_data(context);
    uint64_t *counter = counter_of(context, HITS);
    quern_event_iterator hits;
    quern_context_events(context, it->hit, &hits);
    while (quern_event_next(&hits)) {
        const restart_hit *values = hits.block.values;
        mix(counter, hits.block.count);
        for (uint32_t i = 0; i < hits.block.count; i++) {
            const restart_unit *unit = quern_context_lookup(context, values[i].entity, it->unit);
            mix(counter, values[i].amount + (unit != NULL ? unit->number : 0));
        }
    }
    mix(counter, quern_context_event_count(context, it->tick));
}

static void read_items(quern_context *context, const quern_view *view)
{
    const restart_hit *values = QUERN_EVENTS(view, restart_hit);
    for (uint32_t i = 0; i < view->count; i++)
        mix(counter_of(context, ITEMS), values[i].amount);
}

static void count_changed(quern_context *context, const quern_view *view)
{
    const restart_unit *units = quern_view_read(view, 0);
    for (uint32_t i = 0; i < view->count; i++)
        mix(counter_of(context, CHANGED), units[i].sum);
}

static void count_row_changed(quern_context *context, const quern_view *view)
{
    const uint64_t *heats = quern_view_read(view, 0);
    for (uint32_t i = 0; i < view->count; i++)
        mix(counter_of(context, ROW_CHANGED), heats[i] + quern_entity_index(view->entities[i]));
}

static void react(quern_context *context, const quern_view *view)
{
    const restart_scene *it = quern_context_user_data(context);
    const restart_unit *units = quern_view_read(view, 0);
    for (uint32_t i = 0; i < view->count; i++) {
        mix(counter_of(context, REACTIONS), units[i].number + quern_entity_index(view->entities[i]));
        if (units[i].number % 5 == 0)
            quern_commands_set(quern_context_commands(context), view->entities[i], it->heat, &units[i].sum);
    }
}

/* Records nothing that it would react to. */
static void react_set(quern_context *context, const quern_view *view)
{
    const restart_scene *it = quern_context_user_data(context);
    const restart_unit *units = quern_view_read(view, 0);
    const uint64_t *heats = quern_view_read(view, 1), *old_heats = quern_view_read(view, 2);
    const restart_unit *old_units = quern_view_read(view, 3);
    for (uint32_t i = 0; i < view->count; i++) {
        mix(counter_of(context, REACTIONS), units[i].number + heats[i]);
        if (old_heats != NULL) {
            const restart_unit *friend = quern_context_lookup(context, old_units[i].friend, it->unit);
            mix(counter_of(context, REACTIONS), old_heats[i] + (friend != NULL ? friend->number : 1));
        }
        if (heats[i] % 9 == 0)
            quern_commands_remove(quern_context_commands(context), view->entities[i], it->small);
    }
}

static void react_removed(quern_context *context, const quern_view *view)
{
    const restart_scene *it = quern_context_user_data(context);
    const restart_unit *units = quern_view_read(view, 0);
    for (uint32_t i = 0; i < view->count; i++) {
        const restart_unit *friend = quern_context_lookup(context, units[i].friend, it->unit);
        mix(counter_of(context, REMOVED), units[i].number * 2 + (friend != NULL ? friend->number : 1));
    }
}

static void push(quern_context *context, const quern_view *view)
{
    restart_unit *units = QUERN_COLUMN(view, 0, restart_unit);
    for (uint32_t i = 0; i < view->count; i++)
        units[i].sum += 1;
}

static quern_system add(restart_scene *it, quern_system_def def, uint32_t counter)
{
    def.user_data = it;
    if (counter < RESTART_COUNTERS) {
        def.resources[0] = (quern_resource_access){it->counters[counter], QUERN_ACCESS_WRITE};
        def.flags |= QUERN_SYSTEM_SERIAL;
    }
    return setup_system(it->schedule, &def);
}

static void add_reactions(restart_scene *it)
{
    add(it,
        (quern_system_def){.name = "added",
                           .run = react,
                           .terms = {quern_term_read(it->unit)},
                           .phase = 1,
                           .reacts_to = QUERN_REACT_ADDED},
        REACTIONS);
    add(it,
        (quern_system_def){.name = "set",
                           .run = react_set,
                           .terms = {quern_term_read(it->unit), quern_term_read(it->heat),
                                     quern_term_old(it->heat), quern_term_old(it->unit)},
                           .lookups = {{.component = it->unit}},
                           .phase = 1,
                           .reacts_to = QUERN_REACT_SET | QUERN_REACT_ADDED},
        REACTIONS);
    add(it,
        (quern_system_def){.name = "removed",
                           .run = react_removed,
                           .terms = {quern_term_read(it->unit), quern_term_without(it->small)},
                           .lookups = {{.component = it->unit}},
                           .phase = 1,
                           .reacts_to = QUERN_REACT_REMOVED},
        REMOVED);
}

static void add_systems(restart_scene *it)
{
    const quern_term unit = quern_term_read(it->unit);
    add(it, (quern_system_def){.name = "step", .run = step, .terms = {quern_term_write(it->unit)}},
        RESTART_COUNTERS);
    add(it, (quern_system_def){.name = "count step", .begin = count_step}, STEPS);
    it->shoot = add(it,
                    (quern_system_def){.name = "shoot",
                                       .run = shoot,
                                       .terms = {unit},
                                       .phase = 1,
                                       .interval_seconds = 0.05,
                                       .emits = {it->hit, it->tick}},
                    RESTART_COUNTERS);
    it->slow = add(it,
                   (quern_system_def){.name = "read hits",
                                      .begin = read_hits,
                                      .phase = 1,
                                      .interval_seconds = 0.11,
                                      .reads_events = {it->hit, it->tick},
                                      .lookups = {{.component = it->unit}}},
                   HITS);
    add(it, (quern_system_def){.name = "read items", .run = read_items, .phase = 1, .items = it->hit},
        ITEMS);
    add(it,
        (quern_system_def){.name = "changed",
                           .run = count_changed,
                           .terms = {quern_term_changed(unit)},
                           .phase = 1,
                           .interval_seconds = 0.07},
        CHANGED);
    add(it,
        (quern_system_def){.name = "row changed",
                           .run = count_row_changed,
                           .terms = {quern_term_changed(quern_term_read(it->heat))},
                           .phase = 1},
        ROW_CHANGED);
    it->at_target = add(it,
                        (quern_system_def){.name = "at target",
                                           .run = push,
                                           .terms = {quern_term_write(it->unit),
                                                     quern_term_target(it->owner, (quern_entity){0})},
                                           .phase = 1},
                        RESTART_COUNTERS);
    add_reactions(it);
}

/* -------------------------------------------------------------------------------------- the scene */

void restart_open(restart_scene *it, const quern_allocator *allocator)
{
    const quern_world_def def = {.allocator = allocator != NULL ? *allocator : (quern_allocator){0}};
    *it = (restart_scene){0};
    must(quern_world_create(&def, &it->world));
    must(QUERN_COMPONENT_REGISTER_FIELDS(it->world, &it->unit, restart_unit, number, sum, friend));
    it->heat =
        make_component(it->world, .name = "heat", .size_bytes = sizeof(uint64_t),
                       .alignment_bytes = _Alignof(uint64_t), .row_changes = true, .can_disable = true);
    it->small = setup_tag(it->world, "small");
    it->owner = make_relation(it->world, .name = "owner");
    must(QUERN_EVENT_REGISTER_FIELDS(it->world, &it->hit, restart_hit, entity, amount));
    it->tick = make_event(it->world, .name = "tick");
    for (uint32_t i = 0; i < RESTART_COUNTERS; i++) {
        char name[16];
        snprintf(name, sizeof name, "counter %u", i);
        it->counters[i] = setup_counter(it->world, name);
    }
    it->schedule = setup_phases(it->world, 2);
    must(quern_schedule_set_fixed_step(it->schedule, 0, 1.0 / 30, 8));
    add_systems(it);
    must(quern_event_reader_create(it->world, &(quern_event_reader_def){.event = it->hit}, &it->outside));
    it->all = setup_query(it->world, (quern_term[]){quern_term_read(it->unit)}, 1);
}

void restart_fill(const restart_scene *it, uint32_t count)
{
    quern_entity last = {0};
    for (uint64_t i = 0; i < count; i++) {
        const restart_unit value = {i, i * i, last};
        const quern_component list[] = {it->unit, it->heat};
        const quern_entity owner = last;
        must(
            quern_entity_create_with(it->world, list, (const void *const[]){&value, &i}, 1 + i % 2, &last));
        if (i % 4 == 3) must(quern_entity_relate(it->world, last, it->owner, owner));
    }
}

void restart_close(restart_scene *it)
{
    quern_query_destroy(it->all);
    quern_event_reader_destroy(it->outside);
    quern_schedule_destroy(it->schedule);
    quern_world_destroy(it->world);
}

/* ---------------------------------------------------------------------------- code between frames */

static uint64_t *outside_counter(const restart_scene *it)
{
    return quern_resource_get(it->world, it->counters[OUTSIDE]);
}

/* Lists some entities in the order of rows. */
static uint32_t list_some(const restart_scene *it, quern_entity *out_entities, uint32_t capacity)
{
    uint32_t count = 0;
    for (quern_query_iterator walk = quern_query_iterate(it->all); quern_query_next(&walk);)
        for (uint32_t i = 0; i < walk.view.count && count < capacity; i += 5)
            out_entities[count++] = walk.view.entities[i];
    return count;
}

/* Returns an entity in the middle that others have as their owner. */
static quern_entity find_owner(const restart_scene *it)
{
    quern_entity owner = {0};
    uint32_t visited_count = 0;
    for (quern_query_iterator walk = quern_query_iterate(it->all); quern_query_next(&walk);)
        for (uint32_t i = 0; i < walk.view.count; i++)
            if (visited_count++ < 300 &&
                quern_entity_source_count(it->world, walk.view.entities[i], it->owner) > 0)
                owner = walk.view.entities[i];
    return owner;
}

static void change_entity(const restart_scene *it, quern_entity entity, uint64_t roll)
{
    const restart_unit value = {roll, roll * 3, entity};
    if (!quern_entity_is_alive(it->world, entity)) return; /* destroyed with its owner */
    switch (roll % 6) {
    case 0:
        must(quern_entity_destroy(it->world, entity));
        break;
    case 1:
        must(quern_entity_set(it->world, entity, it->unit, &value));
        break;
    case 2:
        if (quern_entity_has(it->world, entity, it->heat))
            must(quern_entity_set(it->world, entity, it->heat, &roll));
        else
            must(quern_entity_add(it->world, entity, it->heat, &roll));
        break;
    case 3:
        if (!quern_entity_has(it->world, entity, it->small))
            must(quern_entity_add(it->world, entity, it->small, NULL));
        break;
    case 4:
        must(quern_entity_create_with(it->world, &it->unit, (const void *const[]){&value}, 1, NULL));
        break;
    default:
        must(quern_world_emit(it->world, it->hit, &(restart_hit){entity, roll}, 1));
        break;
    }
}

void restart_disturb(restart_scene *it, uint64_t frame)
{
    quern_entity entities[64];
    const uint32_t count = list_some(it, entities, COUNT_OF(entities));
    must(quern_schedule_set_system_enabled(it->schedule, it->slow, frame % 3 > 0));
    for (uint32_t i = 0; i < count; i++)
        change_entity(it, entities[i], frame * 7 + i);
    if (frame % 3 == 1) must(quern_schedule_set_target(it->schedule, it->at_target, find_owner(it)));
    quern_event_block block;
    for (uint32_t i = 0; i < 2 && frame % 2 == 0 && quern_event_reader_next(it->outside, &block); i++)
        for (uint32_t k = 0; k < block.count; k++)
            mix(outside_counter(it), ((const restart_hit *)block.values)[k].amount);
    mix(outside_counter(it), quern_event_reader_lost_count(it->outside));
}

quern_result restart_run(restart_scene *it, quern_jobs *jobs)
{
    return quern_schedule_run(it->schedule, jobs, 0.02);
}

quern_byte_buffer restart_save(const restart_scene *it)
{
    quern_byte_buffer memory = {0};
    must(quern_world_save(it->world, quern_sink_bytes(&memory),
                          &(quern_save_def){.schedules = {it->schedule}}));
    return memory;
}

quern_result restart_load(const restart_scene *it, const void *bytes, size_t size_bytes)
{
    return quern_world_load(it->world, quern_source_bytes(bytes, size_bytes),
                            &(quern_load_def){.schedules = {it->schedule}}, NULL);
}
