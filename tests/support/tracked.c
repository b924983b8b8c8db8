/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "tests/support/tracked.h"

#include <stdlib.h>

static quern_component register_payload_type(quern_world *world, const char *name, size_t size_bytes,
                                             size_t payload_offset_bytes, quern_hooks hooks)
{
    quern_component_def def = {.name = name,
                               .size_bytes = (uint32_t)size_bytes,
                               .alignment_bytes = 8,
                               .fields = {{.name = "payload",
                                           .type = QUERN_FIELD_U64,
                                           .offset_bytes = (uint32_t)payload_offset_bytes,
                                           .count = 1}},
                               .hooks = hooks};
    quern_component component = {0};
    quern_result result = quern_component_register(world, &def, &component);
    return result == QUERN_OK ? component : (quern_component){0};
}

/* ----------------------------------------------------------------------------------------- tracked */

bool tracked_is_live(const tracked *value)
{
    return value->self == value;
}

static void expect_live(const tracked *value, tracked_counts *counts)
{
    if (!tracked_is_live(value)) counts->broken_count++;
}

void tracked_construct(tracked *value, uint64_t payload, tracked_counts *counts)
{
    *value = (tracked){.self = value, .payload = payload};
    counts->constructed_count++;
}

void tracked_destroy(tracked *value, tracked_counts *counts)
{
    expect_live(value, counts);
    *value = (tracked){0};
    counts->destroyed_count++;
}

uint64_t tracked_live_count(tracked_counts *counts)
{
    return counts->constructed_count + counts->copied_count - counts->destroyed_count;
}

static void construct_hook(void *values, uint32_t count, void *user_data)
{
    tracked *value = values;
    for (uint32_t i = 0; i < count; i++)
        tracked_construct(&value[i], TRACKED_DEFAULT, user_data);
}

static void copy_hook(void *targets, const void *sources, uint32_t count, void *user_data)
{
    tracked *target = targets;
    const tracked *source = sources;
    tracked_counts *counts = user_data;
    for (uint32_t i = 0; i < count; i++) {
        expect_live(&source[i], counts);
        target[i] = (tracked){.self = &target[i], .payload = source[i].payload};
        counts->copied_count++;
    }
}

static void move_hook(void *targets, void *sources, uint32_t count, void *user_data)
{
    tracked *target = targets;
    tracked *source = sources;
    tracked_counts *counts = user_data;
    for (uint32_t i = 0; i < count; i++) {
        expect_live(&source[i], counts);
        target[i] = (tracked){.self = &target[i], .payload = source[i].payload};
        source[i] = (tracked){0};
        counts->moved_count++;
    }
}

static void destroy_hook(void *values, uint32_t count, void *user_data)
{
    tracked *value = values;
    for (uint32_t i = 0; i < count; i++)
        tracked_destroy(&value[i], user_data);
}

quern_component tracked_register(quern_world *world, const char *name, tracked_counts *counts)
{
    quern_hooks hooks = {construct_hook, copy_hook, move_hook, destroy_hook, counts};
    return register_payload_type(world, name, sizeof(tracked), offsetof(tracked, payload), hooks);
}

quern_event tracked_event_register(quern_world *world, const char *name, tracked_counts *counts)
{
    quern_event event = {0};
    quern_event_register(
        world,
        &(quern_event_def){.name = name,
                           .size_bytes = sizeof(tracked),
                           .hooks = {construct_hook, copy_hook, move_hook, destroy_hook, counts}},
        &event);
    return event;
}

/* ------------------------------------------------------------------------------------------- owned */

void owned_construct(owned *value, uint64_t payload, atomic_llong *live_count)
{
    value->box = malloc(sizeof *value->box);
    if (value->box == NULL) abort();
    *value->box = payload;
    value->payload = payload;
    (*live_count)++;
}

void owned_destroy(owned *value, atomic_llong *live_count)
{
    if (value->box == NULL) return;
    free(value->box);
    value->box = NULL;
    (*live_count)--;
}

bool owned_is_intact(const owned *value)
{
    return value->box == NULL ? value->payload == 0 : *value->box == value->payload;
}

static void owned_destroy_hook(void *values, uint32_t count, void *user_data)
{
    owned *value = values;
    for (uint32_t i = 0; i < count; i++)
        owned_destroy(&value[i], user_data);
}

quern_component owned_register(quern_world *world, const char *name, atomic_llong *live_count)
{
    quern_hooks hooks = {.destroy = owned_destroy_hook, .user_data = live_count};
    return register_payload_type(world, name, sizeof(owned), offsetof(owned, payload), hooks);
}
