/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Compares the parts of two states and reports the first difference. The order is from causes to consequences: which
 * entities are alive and with which components, then values, relations, names, resources and handles. An additional
 * entity also changes the hashes of values, so the first difference found is the most informative one. */

#include "sched/replay/compare.h"

#include <inttypes.h>

typedef quern__state_archetype archetype_of_state;

/* ------------------------------------------------------------------------------------- report text */

static const char *component_name(const quern_world *world, uint32_t index)
{
    return quern__components_type(&world->storage.components, index)->name;
}

static void list_components(const quern_world *world, const archetype_of_state *archetype,
                            quern_replay_report *report)
{
    report->archetype[0] = '\0';
    for (uint32_t i = 0; i < archetype->component_count; i++)
        quern__append(
            report->archetype, sizeof report->archetype, "%s%s", i > 0 ? ", " : "",
            component_name(world, quern__load_u32(archetype->components, i) & ~QUERN__REPLAY_TAG_BIT));
}

/* Appends to the report's text, which begins with "frame 12: ". */
#define APPEND(report, ...) quern__append((report)->text, sizeof(report)->text, __VA_ARGS__)

static void begin_text(quern_replay_report *report)
{
    report->text[0] = '\0';
    if (report->is_before_first)
        APPEND(report, "before the first frame: ");
    else
        APPEND(report, "frame %" PRIu64 ": ", report->frame);
}

static void end_text(quern_replay_report *report)
{
    if (report->archetype[0] != '\0') APPEND(report, "; archetype: %s", report->archetype);
}

static void set_entity(const quern_world *world, uint64_t relative, quern_replay_report *report)
{
    const quern__entities *entities = &world->storage.entities;
    const quern_entity entity = quern__entity_from_relative(relative, entities->first_handle_high);
    report->entity_index = (uint32_t)relative;
    report->entity_use_count = (uint32_t)(relative >> 32);
    if (quern__entities_find(entities, entity) != NULL) report->entity = entity;
}

/* -------------------------------------------------------------------------------------- archetypes */

static bool have_same_components(const archetype_of_state *a, const archetype_of_state *b)
{
    return a->component_count == b->component_count &&
           memcmp(a->components, b->components, a->component_count * sizeof(uint32_t)) == 0;
}

static bool find_same(const quern__state *state, const archetype_of_state *wanted,
                      archetype_of_state *out_found)
{
    quern__byte_reader reader = state->archetypes;
    for (uint32_t i = 0; i < state->archetype_count; i++) {
        quern__state_next(&reader, state->flags, out_found);
        if (have_same_components(out_found, wanted)) return true;
    }
    return false;
}

static bool has_handle(const archetype_of_state *archetype, uint64_t handle)
{
    for (uint64_t row = 0; row < archetype->rows; row++)
        if (quern__load_u64(archetype->handles, row) == handle) return true;
    return false;
}

static bool state_has_handle(const quern__state *state, uint64_t handle)
{
    quern__byte_reader reader = state->archetypes;
    archetype_of_state archetype;
    for (uint32_t i = 0; i < state->archetype_count; i++) {
        quern__state_next(&reader, state->flags, &archetype);
        if (has_handle(&archetype, handle)) return true;
    }
    return false;
}

/* Finds the first entity in one state's archetype that the other state does not have in the same archetype. */
static bool find_lacking(const archetype_of_state *side, const archetype_of_state *other,
                         uint64_t *out_handle)
{
    for (uint64_t row = 0; row < side->rows; row++) {
        *out_handle = quern__load_u64(side->handles, row);
        const bool is_there = row < other->rows && quern__load_u64(other->handles, row) == *out_handle;
        if (!is_there && !has_handle(other, *out_handle)) return true;
    }
    return false;
}

static void report_rows(const quern_world *world, const quern__state *expected, const quern__state *actual,
                        const archetype_of_state *recorded, const archetype_of_state *current,
                        quern_replay_report *report)
{
    const bool has_entities = (expected->flags & QUERN__STATE_HAS_ENTITIES) != 0;
    uint64_t handle = 0;
    list_components(world, recorded, report);
    begin_text(report);
    report->difference = QUERN_REPLAY_ENTITIES_OTHER;
    if (has_entities && find_lacking(recorded, current, &handle)) {
        report->difference =
            state_has_handle(actual, handle) ? QUERN_REPLAY_ENTITY_MOVED : QUERN_REPLAY_ENTITY_MISSING;
    } else if (has_entities && find_lacking(current, recorded, &handle)) {
        report->difference =
            state_has_handle(expected, handle) ? QUERN_REPLAY_ENTITY_MOVED : QUERN_REPLAY_ENTITY_EXTRA;
    }
    if (report->difference == QUERN_REPLAY_ENTITIES_OTHER) {
        APPEND(report, "%s: %" PRIu64 " in the recording, %" PRIu64 " here",
               recorded->rows == current->rows ? "other entities, or in another order" : "other entities",
               recorded->rows, current->rows);
    } else {
        set_entity(world, handle, report);
        APPEND(report, "entity %" PRIu32 " (use count %" PRIu32 ") %s", report->entity_index,
               report->entity_use_count,
               report->difference == QUERN_REPLAY_ENTITY_MOVED ? "has other components"
               : report->difference == QUERN_REPLAY_ENTITY_MISSING
                   ? "is alive in the recording, and not here"
                   : "is alive here, and not in the recording");
    }
    end_text(report);
}

/* Compares which entities are in each archetype: first the archetypes of the recording, then those that only the
 * world has. */
static bool compare_rows(const quern_world *world, const quern__state *expected, const quern__state *actual,
                         quern_replay_report *report)
{
    for (uint32_t side_index = 0; side_index < 2; side_index++) {
        const quern__state *side = side_index == 0 ? expected : actual,
                           *other = side_index == 0 ? actual : expected;
        quern__byte_reader reader = side->archetypes;
        for (uint32_t i = 0; i < side->archetype_count; i++) {
            archetype_of_state own, found;
            quern__state_next(&reader, side->flags, &own);
            if (!find_same(other, &own, &found)) {
                found = own;
                found.rows = found.handles_hash = 0;
            }
            if (own.rows == found.rows && own.handles_hash == found.handles_hash) continue;
            report_rows(world, expected, actual, side_index == 0 ? &own : &found,
                        side_index == 0 ? &found : &own, report);
            return true;
        }
    }
    return false;
}

/* Counts the entities with different values and reports the first one. The archetypes must have the same rows.
 * first_hash: index of the component's first row hash. */
static void find_entities(const quern_world *world, const archetype_of_state *recorded,
                          const archetype_of_state *current, uint64_t first_hash,
                          quern_replay_report *report)
{
    for (uint64_t row = 0; row < recorded->rows; row++) {
        if (quern__load_u32(recorded->row_hashes, first_hash + row) ==
            quern__load_u32(current->row_hashes, first_hash + row))
            continue;
        if (report->entity_count++ == 0) set_entity(world, quern__load_u64(recorded->handles, row), report);
    }
}

static void report_value(const quern_world *world, const archetype_of_state *recorded, uint32_t index,
                         quern_replay_difference difference, quern_replay_report *report)
{
    const char *name = component_name(world, index);
    report->difference = difference;
    report->component = quern__component_handle(&world->storage.components, index);
    list_components(world, recorded, report);
    begin_text(report);
    if (difference == QUERN_REPLAY_DISABLED)
        APPEND(report, "component '%s' is disabled for other entities", name);
    else if (report->entity_count == 0)
        APPEND(report, "values of component '%s' differ", name);
    else
        APPEND(report,
               "component '%s' of entity %" PRIu32 " (use count %" PRIu32 ") differs, and of %" PRIu64
               " others",
               name, report->entity_index, report->entity_use_count, report->entity_count - 1);
    end_text(report);
}

static bool compare_archetype(const quern_world *world, uint32_t flags, const archetype_of_state *recorded,
                              const archetype_of_state *current, quern_replay_report *report)
{
    uint64_t first_hash = 0;
    for (uint32_t i = 0; i < recorded->component_count; i++) {
        const uint32_t component = quern__load_u32(recorded->components, i);
        const uint32_t index = component & ~QUERN__REPLAY_TAG_BIT;
        if (quern__load_u64(recorded->values, i) != quern__load_u64(current->values, i)) {
            if ((flags & QUERN__STATE_HAS_ENTITIES) != 0 && index == component)
                find_entities(world, recorded, current, first_hash, report);
            report_value(world, recorded, index, QUERN_REPLAY_VALUE, report);
            return true;
        }
        if (index == component) first_hash += recorded->rows;
        const uint64_t was_disabled =
            recorded->disabled != NULL ? quern__load_u64(recorded->disabled, i) : 0;
        const uint64_t is_disabled = current->disabled != NULL ? quern__load_u64(current->disabled, i) : 0;
        if (was_disabled == is_disabled) continue;
        report_value(world, recorded, index, QUERN_REPLAY_DISABLED, report);
        return true;
    }
    return false;
}

/* Compares values. Precondition: both states have the same archetypes with the same rows. */
static bool compare_values(const quern_world *world, const quern__state *expected,
                           const quern__state *actual, quern_replay_report *report)
{
    quern__byte_reader reader = expected->archetypes;
    for (uint32_t i = 0; i < expected->archetype_count; i++) {
        archetype_of_state recorded, current;
        quern__state_next(&reader, expected->flags, &recorded);
        if (find_same(actual, &recorded, &current) &&
            compare_archetype(world, expected->flags, &recorded, &current, report))
            return true;
    }
    return false;
}

/* ------------------------------------------------------------------------- relations and resources */

/* Finds the index of the first differing pair. Precondition: the types of both states were compared and agree; one
 * state may have more pairs. */
static bool find_pair(const char *recorded, uint32_t was_count, const char *current, uint32_t is_count,
                      uint32_t *out_index)
{
    for (uint32_t i = 0; i < was_count || i < is_count; i++) {
        const char *a = recorded + (size_t)i * QUERN__PAIR_BYTES,
                   *b = current + (size_t)i * QUERN__PAIR_BYTES;
        if (i < was_count && i < is_count && memcmp(a, b, QUERN__PAIR_BYTES) == 0) continue;
        *out_index = (uint32_t)quern__load_u64(i < was_count ? a : b, 0);
        return true;
    }
    return false;
}

static bool compare_relations(const quern_world *world, const quern__state *expected,
                              const quern__state *actual, quern_replay_report *report)
{
    uint32_t index = 0;
    if (!find_pair(expected->relations, expected->relation_count, actual->relations, actual->relation_count,
                   &index))
        return false;
    report->difference = QUERN_REPLAY_RELATION;
    report->component = quern__component_handle(&world->storage.components, index);
    begin_text(report);
    APPEND(report, "targets of relation '%s' differ, or the order of siblings",
           component_name(world, index));
    return true;
}

static bool compare_resources(const quern_world *world, const quern__state *expected,
                              const quern__state *actual, quern_replay_report *report)
{
    uint32_t index = 0;
    if (!find_pair(expected->resources, expected->resource_count, actual->resources, actual->resource_count,
                   &index))
        return false;
    const char *name = world->resources.list.items[index].type.name;
    report->difference = QUERN_REPLAY_RESOURCE_VALUE;
    report->resource = quern__resources_find(&world->resources, name);
    begin_text(report);
    APPEND(report, "the value of resource '%s' differs", name);
    return true;
}

static void report_text(quern_replay_report *report, quern_replay_difference difference, const char *words)
{
    report->difference = difference;
    begin_text(report);
    APPEND(report, "%s", words);
}

void quern__replay_compare(const quern_world *world, const quern__state *expected,
                           const quern__state *actual, quern_replay_report *report)
{
    if (expected->result != actual->result) {
        report->difference = QUERN_REPLAY_RESULT;
        begin_text(report);
        APPEND(report, "it ended with %s in the recording, and with %s here",
               quern_result_string((quern_result)expected->result),
               quern_result_string((quern_result)actual->result));
    } else if (expected->flags == 0) {
        report_text(report, QUERN_REPLAY_WORLD, "the worlds differ, and the recording does not say where");
    } else if (!compare_rows(world, expected, actual, report) &&
               !compare_values(world, expected, actual, report) &&
               !compare_relations(world, expected, actual, report)) {
        if (expected->names_hash != actual->names_hash)
            report_text(report, QUERN_REPLAY_NAMES, "names of entities differ");
        else if (!compare_resources(world, expected, actual, report))
            report_text(report, QUERN_REPLAY_HANDLES,
                        "the next handles differ, or the order of archetypes");
    }
}
