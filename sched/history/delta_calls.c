/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Public calls on deltas (quern/history.h). */

#include "core/history/delta.h"
#include "core/query/matching.h"

#include "sched/history/history_calls.h"

static bool is_component_end(const void *list, uint32_t i)
{
    return ((const quern_component *)list)[i].bits == 0;
}

static quern_result check_components(const quern_world *world, const quern_component *list)
{
    uint32_t count;
    quern_result result =
        quern__list_count(list, QUERN_MAX_DELTA_COMPONENTS, is_component_end, "component", NULL, &count);
    for (uint32_t i = 0; result == QUERN_OK && i < count; i++) {
        result = quern__components_check(&world->storage.components, list[i]);
        if (result != QUERN_OK) quern__message_add_element(result, "component", i);
    }
    return result;
}

/* Checks that the query depends on the components of an entity alone, so that it can be asked about earlier frames. */
static quern_result check_query(const quern_world *world, quern_query *query, const char *function)
{
    if (query->world != world)
        return quern__fail(
            QUERN_ERROR_INVALID_ARGUMENT,
            "%s: the query belongs to another world than the history: create it in the world of "
            "the history",
            function);
    if (query->filter_count > 0)
        return quern__fail(
            QUERN_ERROR_INVALID_ARGUMENT,
            "%s: the query has change filters, but a delta finds by itself what has changed: use a "
            "query without them",
            function);
    if (query->up_count > 0 || query->target != NULL)
        return quern__fail(
            QUERN_ERROR_INVALID_ARGUMENT,
            "%s: the query has a target term or up-terms, which select single rows: use a query "
            "without them, or mark the entities by a tag",
            function);
    return quern__query_prepare(query, function);
}

static quern_result create(quern_history *history, uint64_t from, uint64_t to, const quern_delta_def *def,
                           quern_delta **out_delta)
{
    const quern__snapshot *older = quern__history_find(&history->core, from);
    const quern__snapshot *newer = quern__history_find(&history->core, to);
    if (older == NULL) return quern__history_fail_frame(history, from);
    if (newer == NULL) return quern__history_fail_frame(history, to);
    if (older == newer)
        return quern__fail(
            QUERN_ERROR_INVALID_ARGUMENT,
            "from and to are both frame %llu: nothing differs from itself; save the world under "
            "another number to compare it as it is now",
            (unsigned long long)from);
    return quern__delta_make(&history->core, older, newer, def, out_delta);
}

quern_result quern_delta_create(quern_history *history, uint64_t from, uint64_t to, quern_delta **out_delta)
{
    static const char function[] = "quern_delta_create";
    static const quern_delta_def zero;
    if (history == NULL) return quern__fail_null(function, "history");
    if (out_delta == NULL) return quern__fail_null(function, "out_delta");
    quern_result result = quern__world_check_unlocked(history->core.world, function);
    if (result == QUERN_OK) result = create(history, from, to, &zero, out_delta);
    return quern__in_call(result, function);
}

quern_result quern_delta_create_limited(quern_history *history, uint64_t from, uint64_t to,
                                        const quern_delta_def *def, quern_delta **out_delta)
{
    static const char function[] = "quern_delta_create_limited";
    if (history == NULL) return quern__fail_null(function, "history");
    if (def == NULL) return quern__fail_null(function, "def");
    if (out_delta == NULL) return quern__fail_null(function, "out_delta");
    const quern_world *world = history->core.world;
    quern_result result = quern__world_check_unlocked(world, function);
    if (result == QUERN_OK) result = check_components(world, def->components);
    if (result == QUERN_OK && def->query != NULL) {
        result = check_query(world, def->query, function);
        if (result != QUERN_OK) return result;
    }
    if (result == QUERN_OK) result = create(history, from, to, def, out_delta);
    return quern__in_call(result, function);
}

void quern_delta_destroy(quern_delta *delta)
{
    if (delta == NULL) return;
    if (delta->history->world->locked) {
        quern__report_violation(QUERN_ERROR_WORLD_LOCKED,
                                "quern_delta_destroy: " QUERN__WORLD_LOCKERS
                                " is running on the world of the delta; destroy the delta afterwards");
        return;
    }
    quern__delta_release(delta);
}

const quern_delta_batch *quern_delta_batches(const quern_delta *delta, uint32_t *out_count)
{
    if (out_count != NULL) *out_count = delta != NULL ? delta->count : 0;
    if (delta == NULL) quern__fail_null("quern_delta_batches", "delta");
    if (out_count == NULL) quern__fail_null("quern_delta_batches", "out_count");
    return delta != NULL && out_count != NULL ? delta->batches : NULL;
}

quern_result quern_delta_get_stats(const quern_delta *delta, quern_delta_stats *out_stats)
{
    if (delta == NULL) return quern__fail_null("quern_delta_get_stats", "delta");
    if (out_stats == NULL) return quern__fail_null("quern_delta_get_stats", "out_stats");
    *out_stats = delta->stats;
    return QUERN_OK;
}
