/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "tests/support/setup.h"

#include <quern/kit/json.h>

#include <string.h>

/* Each call with a sink or a source refuses an empty one, as quern_sink_file(NULL) returns it, before it does anything.
 * quern_inspect_request is tested with the inspector. */

typedef struct place {
    quern_world *world;
    quern_component component;
    quern_type_info type;
    quern_entity entity;
    quern_schedule *schedule;
    quern_jobs *jobs;
    quern_trace *trace;
    quern_archive *archive;
    quern_save_session *saving;
    quern_load_session *loading;
    quern_history *history;
    quern_delta *delta;
    quern_delta_applier *applier;
} place;

static const quern_sink sink;     /* empty */
static const quern_source source; /* empty */

static quern_result save_world(place *it)
{
    return quern_world_save(it->world, sink, NULL);
}
static quern_result save_archive(place *it)
{
    return quern_archive_save(it->archive, sink, NULL);
}
static quern_result write_session(place *it)
{
    return quern_save_session_write(it->saving, it->archive, sink);
}
static quern_result load_world(place *it)
{
    return quern_world_load(it->world, source, NULL, NULL);
}
static quern_result read_session(place *it)
{
    return quern_load_session_read(it->loading, source, NULL, 0, NULL);
}
static quern_result write_delta(place *it)
{
    return quern_delta_write(it->delta, NULL, sink);
}
static quern_result apply_delta(place *it)
{
    return quern_delta_apply(it->applier, source);
}
static quern_result describe_jobs(place *it)
{
    return quern_jobs_describe(it->jobs, sink);
}
static quern_result get_path(place *it)
{
    return quern_entity_get_path(it->world, it->entity, sink);
}
static quern_result write_profile(place *it)
{
    return quern_schedule_write_profile(it->schedule, sink);
}
static quern_result write_trace(place *it)
{
    return quern_trace_write(it->trace, sink);
}
static quern_result print_entity(place *it)
{
    return quern_entity_to_text(it->world, it->entity, sink);
}
static quern_result get_value(place *it)
{
    return quern_value_get_text(it->world, &it->type,
                                quern_entity_get(it->world, it->entity, it->component), "at", sink);
}
static quern_result get_field(place *it)
{
    return quern_entity_get_text(it->world, it->entity, "Seen.at", sink);
}
static quern_result get_resource(place *it)
{
    return quern_resource_get_text(it->world, "Seen.at", sink);
}
static quern_result print_query(place *it)
{
    return quern_query_to_text(it->world, &(quern_query_def){.terms = {quern_term_read(it->component)}},
                               sink);
}
static quern_result print_no_query(place *it)
{
    return quern_query_to_text(it->world, &(quern_query_def){.whole_chunks = false}, sink);
}
static quern_result create_recorder(place *it)
{
    quern_replay_recorder *recorder;
    return quern_replay_recorder_create(it->schedule, sink, NULL, &recorder);
}
static quern_result run_replay(place *it)
{
    return quern_replay_run(it->schedule, NULL, source, NULL, NULL);
}
static quern_result describe_schedule(place *it)
{
    return quern_schedule_describe(it->schedule, QUERN_DESCRIBE_TEXT, sink);
}
static quern_result write_value(place *it)
{
    return quern_json_write_value(it->world, &it->type,
                                  quern_entity_get(it->world, it->entity, it->component), sink);
}
static quern_result write_entity(place *it)
{
    return quern_json_write_entity(it->world, it->entity, sink);
}
static quern_result write_world(place *it)
{
    return quern_json_write_world(it->world, sink);
}
static quern_result write_prefab(place *it)
{
    return quern_json_write_prefab(it->world, it->entity, sink);
}

typedef struct Seen {
    quern_entity at;
} Seen;

Test(empty_sinks, are_refused_by_each_call)
{
    static const struct {
        const char *function;
        quern_result (*call)(place *it);
    } calls[] = {
        {"quern_world_save", save_world},
        {"quern_archive_save", save_archive},
        {"quern_save_session_write", write_session},
        {"quern_world_load", load_world},
        {"quern_load_session_read", read_session},
        {"quern_delta_write", write_delta},
        {"quern_delta_apply", apply_delta},
        {"quern_jobs_describe", describe_jobs},
        {"quern_entity_get_path", get_path},
        {"quern_schedule_write_profile", write_profile},
        {"quern_trace_write", write_trace},
        {"quern_entity_to_text", print_entity},
        {"quern_value_get_text", get_value},
        {"quern_entity_get_text", get_field},
        {"quern_resource_get_text", get_resource},
        {"quern_query_to_text", print_query},
        {"quern_query_to_text", print_no_query},
        {"quern_replay_recorder_create", create_recorder},
        {"quern_replay_run", run_replay},
        {"quern_schedule_describe", describe_schedule},
        {"quern_json_write_value", write_value},
        {"quern_json_write_entity", write_entity},
        {"quern_json_write_world", write_world},
        {"quern_json_write_prefab", write_prefab},
    };
    place it;
    quern_resource resource;
    must(quern_world_create(NULL, &it.world));
    must(QUERN_COMPONENT_REGISTER_FIELDS(it.world, &it.component, Seen, at));
    must(QUERN_RESOURCE_REGISTER_FIELDS(it.world, &resource, Seen, at));
    must(quern_component_get_info(it.world, it.component, &it.type));
    it.entity = setup_entity_with(it.world, &it.component, 1);
    must(quern_schedule_create(it.world, NULL, &it.schedule));
    must(quern_jobs_create(&(quern_jobs_def){.thread_count = 1}, &it.jobs));
    must(quern_trace_create(NULL, &it.trace));
    must(quern_archive_create(it.world, &it.archive));
    must(quern_save_session_create(it.world, NULL, &it.saving));
    must(quern_load_session_create(it.world, NULL, &it.loading));
    must(quern_history_create(it.world, NULL, &it.history));
    must(quern_history_save(it.history, 1, NULL));
    must(quern_entity_add(it.world, setup_entity(it.world), it.component, NULL));
    must(quern_history_save(it.history, 2, NULL));
    must(quern_delta_create(it.history, 1, 2, &it.delta));
    must(quern_delta_applier_create(it.world, &it.applier));
    for (uint32_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        must_refuse(NULL_ARGUMENT, it.world, calls[i].call(&it));
        const char *message = quern_error_message();
        cr_assert_eq(strncmp(message, calls[i].function, strlen(calls[i].function)), 0, "%s: %s",
                     calls[i].function, message);
        cr_assert(strstr(message, "the sink has no") != NULL ||
                      strstr(message, "the source has no") != NULL,
                  "%s", message);
    }
    quern_delta_applier_destroy(it.applier);
    quern_delta_destroy(it.delta);
    quern_history_destroy(it.history);
    quern_load_session_destroy(it.loading);
    quern_save_session_destroy(it.saving);
    quern_archive_destroy(it.archive);
    quern_trace_destroy(it.trace);
    quern_jobs_destroy(it.jobs);
    quern_schedule_destroy(it.schedule);
    quern_world_destroy(it.world);
}
