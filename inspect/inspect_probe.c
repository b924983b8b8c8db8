/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Probes: values of fields after each frame, as curves; conditions that pause the program when they become true; and entities
 * that pause it when they change.
 *
 * A probe counts as a reason to attend to each frame, so without probes nothing is spent. Values stand beside the samples of
 * frames. */
#include "inspect/inspect_internal.h"

#include <quern/kit/json.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ------------------------------------------------------------------------------------------- frames */

/* Returns the first entity for which the conditions hold, or null. A query is gone through up to the first one. */
static quern_entity find_hit(const quern_inspector *inspector, quern__inspect_probe *probe)
{
    quern_entity hit = quern_entity_null();
    quern__inspect_conditions_renew(inspector->def.world, &probe->conditions);
    if (probe->query == NULL)
        return quern_entity_is_alive(inspector->def.world, probe->entity) &&
                       quern__inspect_conditions_hold(&probe->conditions, probe->entity)
                   ? probe->entity
                   : hit;
    quern_query_iterator iterator = quern_query_iterate(probe->query);
    while (quern_entity_is_null(hit) && quern_query_next(&iterator))
        for (uint32_t i = 0; i < iterator.view.count && quern_entity_is_null(hit); i++)
            if (quern__inspect_conditions_hold(&probe->conditions, iterator.view.entities[i]))
                hit = iterator.view.entities[i];
    quern_query_iterator_end(&iterator);
    return hit;
}

static uint64_t mix(uint64_t hash, uint64_t value)
{
    return (hash ^ value) * UINT64_C(0x100000001b3); /* FNV-1a (Fowler, Noll, Vo), by words */
}

static bool mix_text(void *user_data, const char *bytes, size_t size)
{
    uint64_t *hash = user_data;
    for (size_t i = 0; i < size; i++)
        *hash = mix(*hash, (unsigned char)bytes[i]);
    return true;
}

/* Returns a hash of the components of an entity, of their values and states, and of its targets; or of one field. A value
 * without description counts as it is written. 0: the entity is dead. */
static uint64_t state_of(const quern_world *world, const quern__inspect_probe *probe)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    const quern_sink sink = {mix_text, &hash};
    if (!quern_entity_is_alive(world, probe->entity)) return 0;
    if (probe->text[0] != '\0') {
        /* An entity that lacks the component has no text. */
        if (quern_entity_get_text(world, probe->entity, probe->text, sink) != QUERN_OK) return 1;
        return hash;
    }
    quern_component components[QUERN_MAX_ENTITY_COMPONENTS];
    const uint32_t count =
        quern_entity_list_components(world, probe->entity, components, QUERN_MAX_ENTITY_COMPONENTS);
    for (uint32_t i = 0; i < count && i < QUERN_MAX_ENTITY_COMPONENTS; i++)
        hash = mix(mix(hash, components[i].bits),
                   quern_entity_is_component_enabled(world, probe->entity, components[i]));
    quern_json_write_entity(world, probe->entity, sink);
    for (uint32_t i = 0; i < quern_type_count(world, QUERN_TYPE_RELATION); i++) {
        quern_type_info type;
        if (quern_type_at(world, QUERN_TYPE_RELATION, i, &type) == QUERN_OK)
            hash = mix(mix(hash, quern_entity_target(world, probe->entity, type.relation).bits),
                       quern_entity_target_count(world, probe->entity, type.relation));
    }
    return hash;
}

static void stop(quern_inspector *inspector, quern__inspect_probe *probe, quern_entity hit, uint64_t frame)
{
    probe->has_hit = true;
    probe->hit = hit;
    probe->hit_frame = frame;
    quern__inspect_note(inspector, "stopped: %.70s%s",
                        probe->is_for_change && probe->text[0] == '\0' ? "the entity" : probe->text,
                        probe->is_for_change ? " changed" : "");
    quern__inspect_set_paused(inspector, true);
    inspector->step_count = 0;
}

void quern__inspect_pass_probes(quern_inspector *inspector, uint64_t frame)
{
    const uint64_t place = (inspector->sample_count - 1) % QUERN__INSPECT_SAMPLES;
    for (uint32_t i = 0; i < QUERN__INSPECT_PROBES; i++) {
        quern__inspect_probe *probe = &inspector->probes[i];
        double number;
        if (probe->id == 0) continue;
        probe->values[place] = NAN;
        if (!probe->is_break) {
            quern__inspect_field_renew(inspector->def.world, &probe->field);
            if (quern__inspect_field_number(&probe->field, probe->entity, &number))
                probe->values[place] = number;
            continue;
        }
        if (probe->is_for_change) {
            const uint64_t state = state_of(inspector->def.world, probe);
            if (state != probe->state) stop(inspector, probe, probe->entity, frame);
            probe->state = state;
            continue;
        }
        const quern_entity hit = find_hit(inspector, probe);
        const bool holds = !quern_entity_is_null(hit);
        if (holds && !probe->held) stop(inspector, probe, hit, frame);
        probe->held = holds;
    }
}

void quern__inspect_judge_probes(quern_inspector *inspector)
{
    for (uint32_t i = 0; i < QUERN__INSPECT_PROBES; i++) {
        quern__inspect_probe *probe = &inspector->probes[i];
        if (probe->id == 0 || !probe->is_break) continue;
        if (probe->is_for_change)
            probe->state = state_of(inspector->def.world, probe);
        else
            probe->held = !quern_entity_is_null(find_hit(inspector, probe));
    }
}

static void release(quern_inspector *inspector, quern__inspect_probe *probe)
{
    quern__inspect_field_close(&probe->field);
    quern__inspect_conditions_close(&probe->conditions);
    quern_query_destroy(probe->query);
    probe->id = 0;
    if (--inspector->probe_count == 0) quern__inspect_count_reason(&inspector->exchange, false);
}

void quern__inspect_release_probes(quern_inspector *inspector)
{
    for (uint32_t i = 0; i < QUERN__INSPECT_PROBES; i++)
        if (inspector->probes[i].id != 0) release(inspector, &inspector->probes[i]);
}

/* ------------------------------------------------------------------------------------------ end points */

static void write_probe(const quern_inspector *inspector, quern__inspect_text *text,
                        const quern__inspect_probe *probe, uint64_t first)
{
    quern__inspect_open(text, NULL, '{');
    quern__inspect_put_count(text, "probe", probe->id);
    quern__inspect_put_entity(text, "entity", probe->entity);
    quern__inspect_put_text(text, "query", probe->query != NULL ? probe->query_text : NULL);
    quern__inspect_put_text(text, "text", probe->text);
    quern__inspect_put_flag(text, "break", probe->is_break);
    quern__inspect_put_flag(text, "change", probe->is_for_change);
    quern__inspect_put_flag(text, "held", probe->held);
    if (probe->has_hit) {
        quern__inspect_put_count(text, "hit_frame", probe->hit_frame);
        quern__inspect_put_entity(text, "hit", probe->hit);
    }
    quern__inspect_open(text, "values", '[');
    for (uint64_t i = first; !probe->is_break && i < inspector->sample_count; i++)
        quern__inspect_put_real(text, NULL, probe->values[i % QUERN__INSPECT_SAMPLES]);
    quern__inspect_close(text, ']');
    quern__inspect_close(text, '}');
}

void quern__inspect_write_probes(const quern_inspector *inspector, quern__inspect_text *text,
                                 uint64_t first)
{
    quern__inspect_open(text, "probes", '[');
    for (uint32_t i = 0; i < QUERN__INSPECT_PROBES; i++)
        if (inspector->probes[i].id != 0) write_probe(inspector, text, &inspector->probes[i], first);
    quern__inspect_close(text, ']');
}

/* All values that are kept, with the numbers of their frames. */
static void begin_probes(quern__inspect_answer *answer)
{
    const quern_inspector *inspector = answer->inspector;
    quern__inspect_text *text = &answer->text;
    const uint64_t count = inspector->sample_count,
                   first = count > QUERN__INSPECT_SAMPLES ? count - QUERN__INSPECT_SAMPLES : 0;
    quern__inspect_open(text, NULL, '{');
    quern__inspect_open(text, "frames", '[');
    for (uint64_t i = first; i < count; i++)
        quern__inspect_put_count(text, NULL, inspector->samples[i % QUERN__INSPECT_SAMPLES].frame);
    quern__inspect_close(text, ']');
    quern__inspect_write_probes(inspector, text, first);
    quern__inspect_close(text, '}');
}

/* Returns a probe without its subject, or NULL. */
static quern__inspect_probe *open_probe(quern__inspect_answer *answer, const char *argument)
{
    quern_inspector *inspector = answer->inspector;
    const char *text;
    uint32_t i = 0;
    if (!quern__inspect_read_text(answer, argument, &text) || !quern__inspect_has_schedule(answer))
        return NULL;
    if (strlen(text) >= QUERN__INSPECT_PROBE_TEXT) {
        quern__inspect_fail(answer, 400, "%s: the argument '%s' is longer than %d bytes",
                            answer->route->path, argument, QUERN__INSPECT_PROBE_TEXT - 1);
        return NULL;
    }
    while (i < QUERN__INSPECT_PROBES && inspector->probes[i].id != 0)
        i++;
    if (i == QUERN__INSPECT_PROBES) {
        quern__inspect_fail(answer, 409, "%s: there are %d probes already: remove one first",
                            answer->route->path, QUERN__INSPECT_PROBES);
        return NULL;
    }
    quern__inspect_probe *probe = &inspector->probes[i];
    memset(probe, 0, sizeof *probe);
    memcpy(probe->text, text, strlen(text) + 1);
    for (uint32_t k = 0; k < QUERN__INSPECT_SAMPLES; k++)
        probe->values[k] = NAN;
    return probe;
}

static void finish_probe(quern__inspect_answer *answer, quern__inspect_probe *probe)
{
    quern_inspector *inspector = answer->inspector;
    probe->id = ++inspector->last_probe;
    if (inspector->probe_count++ == 0) quern__inspect_count_reason(&inspector->exchange, true);
    quern__inspect_open(&answer->text, NULL, '{');
    quern__inspect_put_count(&answer->text, "probe", probe->id);
    quern__inspect_close(&answer->text, '}');
}

static void begin_probe(quern__inspect_answer *answer)
{
    quern__inspect_probe *probe = open_probe(answer, "path");
    if (probe != NULL && quern__inspect_read_entity(answer, "entity", &probe->entity) &&
        quern__inspect_field_open(answer, probe->text, strlen(probe->text), &probe->field))
        finish_probe(answer, probe);
}

/* Opens the query of a break for any of its entities. */
static bool open_query(quern__inspect_answer *answer, quern__inspect_probe *probe, const char *text)
{
    if (strlen(text) >= sizeof probe->query_text) {
        quern__inspect_fail(answer, 400, "break: the query is longer than %d bytes",
                            QUERN__INSPECT_PROBE_TEXT - 1);
        return false;
    }
    memcpy(probe->query_text, text, strlen(text) + 1);
    const quern_result result =
        quern__inspect_query_create(answer->inspector->def.world, text, &probe->query);
    if (result != QUERN_OK) quern__inspect_fail_result(answer, result);
    return result == QUERN_OK;
}

/* Whether the path is "", or leads to a field. The entity may lack the component. */
static bool is_path(quern__inspect_answer *answer, const char *path)
{
    quern__inspect_field field;
    if (path[0] == '\0') return true;
    if (!quern__inspect_field_open(answer, path, strlen(path), &field)) return false;
    quern__inspect_field_close(&field);
    return true;
}

/* Stops the program when an entity, or one field of it, changes. */
static void begin_break_at_change(quern__inspect_answer *answer)
{
    quern__inspect_probe *probe = open_probe(answer, "change");
    if (probe == NULL || !quern__inspect_read_entity(answer, "entity", &probe->entity) ||
        !is_path(answer, probe->text))
        return;
    probe->is_break = probe->is_for_change = true;
    probe->state = state_of(answer->inspector->def.world, probe);
    finish_probe(answer, probe);
}

static void begin_break(quern__inspect_answer *answer)
{
    const char *query = quern__inspect_argument(&answer->arguments, "query");
    const bool has_change = quern__inspect_argument(&answer->arguments, "change") != NULL;
    if (has_change && (query != NULL || quern__inspect_argument(&answer->arguments, "where") != NULL)) {
        quern__inspect_fail(
            answer, 400,
            "break: 'change' is set beside 'where' or 'query': use 'change' with 'entity' alone");
        return;
    }
    if (has_change) {
        begin_break_at_change(answer);
        return;
    }
    quern__inspect_probe *probe = open_probe(answer, "where");
    if (probe == NULL) return;
    probe->is_break = true;
    if (!quern__inspect_conditions_open(answer, probe->text, &probe->conditions)) return;
    if (probe->conditions.count == 0)
        quern__inspect_fail(answer, 400, "break: 'where' has no condition");
    else if (query != NULL ? open_query(answer, probe, query)
                           : quern__inspect_read_entity(answer, "entity", &probe->entity)) {
        probe->held = !quern_entity_is_null(find_hit(answer->inspector, probe));
        finish_probe(answer, probe);
        return;
    }
    quern__inspect_conditions_close(&probe->conditions);
}

static void begin_unprobe(quern__inspect_answer *answer)
{
    quern_inspector *inspector = answer->inspector;
    const char *text;
    uint64_t id;
    if (!quern__inspect_read_text(answer, "probe", &text) ||
        !quern__inspect_read_count(answer, "probe", 0, UINT32_MAX, &id))
        return;
    for (uint32_t i = 0; i < QUERN__INSPECT_PROBES; i++) {
        if (id == 0 || inspector->probes[i].id != id) continue;
        release(inspector, &inspector->probes[i]);
        quern__inspect_finish_change(answer, QUERN_OK);
        return;
    }
    quern__inspect_fail(answer, 404, "unprobe: there is no probe %u", (uint32_t)id);
}

/* ------------------------------------------------------------------------------------------- routes */

const quern__inspect_route quern__inspect_probe_routes[] = {
    {"probes", false, false, begin_probes, NULL, ""},
    {"probe", true, false, begin_probe, NULL, "entity path"},
    {"break", true, false, begin_break, NULL, "where entity query change"},
    {"unprobe", true, false, begin_unprobe, NULL, "probe"},
    {NULL, false, false, NULL, NULL, NULL},
};
