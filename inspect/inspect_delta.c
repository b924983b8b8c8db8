/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "inspect/inspect_internal.h"

#include <quern/kit/json.h>

/* End point "delta": what differs between two kept frames. */

enum { DELTA_KIND_COUNT = QUERN_DELTA_UNRELATED + 1, DELTA_ENTRIES_PER_STEP = 16 };

static const char *const kinds[DELTA_KIND_COUNT] = {
    [QUERN_DELTA_CREATED] = "created",    [QUERN_DELTA_ADDED] = "added",
    [QUERN_DELTA_CHANGED] = "changed",    [QUERN_DELTA_REMOVED] = "removed",
    [QUERN_DELTA_ENABLED] = "enabled",    [QUERN_DELTA_DISABLED] = "disabled",
    [QUERN_DELTA_NAMED] = "named",        [QUERN_DELTA_DESTROYED] = "destroyed",
    [QUERN_DELTA_RESOURCE] = "resource",  [QUERN_DELTA_RELATED] = "related",
    [QUERN_DELTA_UNRELATED] = "unrelated"};

static void write_counts(quern__inspect_answer *answer, const quern_delta_batch *batches, uint32_t count)
{
    uint64_t counts[DELTA_KIND_COUNT] = {0};
    for (uint32_t i = 0; i < count; i++)
        counts[batches[i].kind] += batches[i].kind == QUERN_DELTA_RESOURCE ? 1 : batches[i].count;
    quern__inspect_open(&answer->text, "counts", '{');
    for (uint32_t i = 1; i < DELTA_KIND_COUNT; i++)
        quern__inspect_put_count(&answer->text, kinds[i], counts[i]);
    quern__inspect_close(&answer->text, '}');
}

static void begin_delta(quern__inspect_answer *answer)
{
    quern_inspector *inspector = answer->inspector;
    uint64_t from, to, limit;
    uint32_t count;
    if (inspector->def.history == NULL) {
        quern__inspect_fail(answer, 404,
                            "delta: the inspector has no history: the program must set it in the "
                            "definition");
        return;
    }
    if (!quern__inspect_read_count(answer, "from", 0, UINT64_MAX, &from) ||
        !quern__inspect_read_count(answer, "to", inspector->frame, UINT64_MAX, &to) ||
        !quern__inspect_read_count(answer, "limit", 100, 5000, &limit) ||
        !quern__inspect_reserve_page(answer, 1))
        return;
    answer->entities[0] = quern_entity_null();
    if (quern__inspect_argument(&answer->arguments, "entity") != NULL) {
        const char *text = quern__inspect_argument(&answer->arguments, "entity");
        if (quern_entity_from_text(inspector->def.world, text, &answer->entities[0]) != QUERN_OK) {
            quern__inspect_fail_result(answer, QUERN_ERROR_INVALID_ARGUMENT);
            return;
        }
    }
    quern_result result = from == inspector->frame || to == inspector->frame
                              ? quern__inspect_save_present(inspector)
                              : QUERN_OK;
    if (result == QUERN_OK) result = quern_delta_create(inspector->def.history, from, to, &answer->delta);
    if (result != QUERN_OK) {
        quern__inspect_fail_result(answer, result);
        return;
    }
    answer->left = (uint32_t)limit;
    const quern_delta_batch *batches = quern_delta_batches(answer->delta, &count);
    quern__inspect_open(&answer->text, NULL, '{');
    quern__inspect_put_count(&answer->text, "from", from);
    quern__inspect_put_count(&answer->text, "to", to);
    write_counts(answer, batches, count);
    quern__inspect_open(&answer->text, "entries", '[');
}

static void write_value(quern__inspect_answer *answer, const char *key, const quern_type_info *type,
                        const void *value)
{
    quern__inspect_text *text = &answer->text;
    const size_t size_bytes = text->bytes.size_bytes;
    if (value != NULL && quern_json_write_value(answer->inspector->def.world, type, value,
                                                quern__inspect_put_json(text, key)) == QUERN_OK)
        return;
    text->bytes.size_bytes = size_bytes;
    quern__inspect_put_text(text, key, NULL);
}

static const char *value_at(const void *values, const quern_delta_batch *batch, uint32_t i)
{
    return values != NULL ? (const char *)values + (size_t)i * batch->value_bytes : NULL;
}

static void write_entry(quern__inspect_answer *answer, const quern_delta_batch *batch, uint32_t i)
{
    const quern_world *world = answer->inspector->def.world;
    quern__inspect_text *text = &answer->text;
    quern_type_info type;
    quern_result result = QUERN_ERROR_UNAVAILABLE;
    if (batch->kind == QUERN_DELTA_RESOURCE)
        result = quern_resource_get_info(world, batch->resource, &type);
    else if (!quern_component_is_null(batch->component))
        result = quern_component_get_info(world, batch->component, &type);
    quern__inspect_open(text, NULL, '{');
    quern__inspect_put_text(text, "kind", kinds[batch->kind]);
    if (batch->count > 0) quern__inspect_put_entity(text, "entity", batch->entities[i]);
    if (result == QUERN_OK)
        quern__inspect_put_text(text, batch->kind == QUERN_DELTA_RESOURCE ? "resource" : "component",
                                type.name);
    if (batch->kind == QUERN_DELTA_NAMED) {
        quern__inspect_put_text(text, "old", batch->old_name);
        quern__inspect_put_text(text, "new", batch->name);
    } else if (batch->kind == QUERN_DELTA_RELATED) {
        quern__inspect_put_entity(text, "new", ((const quern_entity *)batch->values)[i]);
    } else if (batch->kind == QUERN_DELTA_UNRELATED) {
        quern__inspect_put_entity(text, "old", ((const quern_entity *)batch->old_values)[i]);
    } else if (result == QUERN_OK) {
        if (batch->old_values != NULL)
            write_value(answer, "old", &type, value_at(batch->old_values, batch, i));
        if (batch->values != NULL) write_value(answer, "new", &type, value_at(batch->values, batch, i));
    }
    quern__inspect_close(text, '}');
}

/* Writes up to DELTA_ENTRIES_PER_STEP entries; answer->at is the batch, answer->inner the entity in it. Searching the batches
 * for one entity is part of one step: it compares some hundred million handles per second. */
static bool step_delta(quern__inspect_answer *answer)
{
    uint32_t count, room = DELTA_ENTRIES_PER_STEP;
    const quern_delta_batch *batches = quern_delta_batches(answer->delta, &count);
    const quern_entity only = answer->entities[0];
    while (answer->at < count && answer->left > 0 && room > 0) {
        const quern_delta_batch *batch = &batches[answer->at];
        const uint32_t entries = batch->count > 0 ? batch->count : 1, i = answer->inner++;
        if (i == entries) {
            answer->at++;
            answer->inner = 0;
            continue;
        }
        if (!quern_entity_is_null(only) &&
            (batch->count == 0 || !quern_entity_equal(batch->entities[i], only)))
            continue;
        write_entry(answer, batch, i);
        answer->left--;
        room--;
    }
    if (answer->at < count && answer->left > 0) return false;
    quern__inspect_close(&answer->text, ']');
    quern__inspect_close(&answer->text, '}');
    return true;
}

const quern__inspect_route quern__inspect_delta_routes[] = {
    {"delta", false, false, begin_delta, step_delta},
    {NULL, false, false, NULL, NULL},
};
