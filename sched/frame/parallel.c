/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include <quern/parallel.h>

#include "core/world/query.h"
#include "core/world/world.h"
#include "sched/jobs/jobs.h"

typedef struct parallel_run {
    const quern__query *query;
    quern_view_function *function;
    void *argument;
    uint64_t seen_version, version; /* see core/storage/version.h */
} parallel_run;

static void run_views(void *argument, uint32_t begin, uint32_t end, uint32_t worker_index)
{
    const parallel_run *run = argument;
    quern_view view = {.query = run->query, .term_count = run->query->term_count, .version = run->version};
    for (uint32_t i = begin; i < end; i++) {
        const quern__chunk_entry *entry = &run->query->entries.items[i];
        view.versions = entry->versions != NULL ? quern__versions_of(entry->versions, entry->slot) : NULL;
        if (!quern__query_passes(run->query, entry->columns, view.versions, run->seen_version)) continue;
        view.ordinal = i;
        view.count = entry->count;
        view.chunk = entry->chunk;
        view.columns = entry->columns;
        view.entities = (const quern_entity *)(const void *)(entry->chunk + entry->entities_offset_bytes);
        run->function(run->argument, &view, worker_index);
    }
}

static quern_result prepare(quern_query *query, const char *function)
{
    if (query == NULL) return quern__fail_null(function, "query");
    quern_result result = quern__world_check_unlocked(query->world, function);
    if (result == QUERN_OK) result = quern__query_refresh(query);
    if (result == QUERN_OK) result = quern__query_list(query);
    return quern__in_call(result, function);
}

/* What is written in a run with filters is not new to the query's next look. */
static void take_look(quern_query *query, parallel_run *run)
{
    run->seen_version = query->seen_version;
    run->version = query->storage->clock;
    if (query->filter_count > 0) query->seen_version = query->storage->clock++;
}

static void note_set(const quern__query *query)
{
    for (uint32_t i = 0; i < query->term_count; i++)
        if (query->terms[i].access == QUERN_WRITE)
            quern__storage_note_set(query->storage, quern__component_index(query->terms[i].component));
}

quern_result quern_query_parallel_for(quern_query *query, quern_jobs *jobs, quern_view_function *function,
                                      void *argument)
{
    if (function == NULL) return quern__fail_null("quern_query_parallel_for", "function");
    quern_result result = prepare(query, "quern_query_parallel_for");
    if (result != QUERN_OK) return result;
    const uint64_t seen_version = query->seen_version;
    parallel_run run = {.query = query, .function = function, .argument = argument};
    take_look(query, &run);
    if (QUERN_CHECKS) note_set(query);
    query->world->locked = true;
    if (jobs == NULL)
        run_views(&run, 0, query->entries.count, 0);
    else
        result = quern_jobs_parallel_for(jobs, query->entries.count, 0, run_views, &run);
    query->world->locked = false;
    if (result != QUERN_OK) query->seen_version = seen_version; /* nobody has looked */
    return result;
}

uint32_t quern_query_view_count(quern_query *query)
{
    return prepare(query, "quern_query_view_count") == QUERN_OK ? query->entries.count : 0;
}
