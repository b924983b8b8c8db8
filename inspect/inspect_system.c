/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* End points about what systems declare: terms, access, turns and sets; which systems an entity matches, and which term
 * fails where it does not. */
#include "inspect/inspect_internal.h"

#include <quern/enabled.h>

#include <string.h>

enum { SYSTEMS_PER_STEP = 4, MATCHES_PER_STEP = 16 };

/* ------------------------------------------------------------------------------------------- access */

static void begin_access(quern__inspect_answer *answer)
{
    quern_schedule *schedule = answer->inspector->def.schedule;
    if (!quern__inspect_has_schedule(answer)) return;
    const quern_result result = quern_schedule_compile(schedule);
    if (result != QUERN_OK) {
        quern__inspect_fail_result(answer, result);
        return;
    }
    quern__inspect_open(&answer->text, NULL, '{');
    quern__inspect_open(&answer->text, "systems", '[');
}

/* Writes the sets, in one step: a schedule has QUERN_MAX_SCHEDULE_SETS of them at most, and few of them. */
static void write_sets(const quern_schedule *schedule, quern__inspect_text *text)
{
    const char *names[QUERN_MAX_SCHEDULE_SETS];
    const uint32_t count = quern_schedule_list_sets(schedule, names, QUERN_MAX_SCHEDULE_SETS);
    quern__inspect_open(text, "sets", '[');
    for (uint32_t i = 0; i < count; i++) {
        quern__inspect_open(text, NULL, '{');
        quern__inspect_put_text(text, "name", names[i]);
        quern__inspect_put_flag(text, "enabled", quern_schedule_is_set_enabled(schedule, names[i]));
        quern__inspect_close(text, '}');
    }
    quern__inspect_close(text, ']');
}

static bool step_access(quern__inspect_answer *answer)
{
    quern_schedule *schedule = answer->inspector->def.schedule;
    quern__inspect_text *text = &answer->text;
    for (uint32_t i = 0; i < SYSTEMS_PER_STEP; i++) {
        const quern_system system = quern_schedule_system_at(schedule, answer->at);
        if (system.bits == 0) {
            quern__inspect_close(text, ']');
            write_sets(schedule, text);
            quern__inspect_close(text, '}');
            return true;
        }
        answer->at++;
        const quern_result result =
            quern_schedule_describe_system(schedule, system, quern__inspect_put_json(text, NULL));
        if (result == QUERN_OK || result == QUERN_ERROR_IO) continue;
        quern__inspect_fail_result(answer, result);
        return true;
    }
    return false;
}

static void begin_set_enabled(quern__inspect_answer *answer)
{
    quern_schedule *schedule = answer->inspector->def.schedule;
    const char *name;
    bool is_on;
    if (!quern__inspect_has_schedule(answer) || !quern__inspect_read_text(answer, "name", &name) ||
        !quern__inspect_read_flag(answer, "on", &is_on))
        return;
    const quern_result result = quern_schedule_enable_set(schedule, name, is_on);
    if (result == QUERN_OK)
        quern__inspect_note(answer->inspector, "set %.60s %s", name, is_on ? "on" : "off");
    quern__inspect_finish_change(answer, result);
}

/* ------------------------------------------------------------------------------------------ matches */

/* Whether the target in the relation, or the nearest ancestor, has the component. A relation without levels allows cycles,
 * which need not contain the entity: an ancestor is noted after 1, 2, 4, ... steps, and the search ends when it meets the
 * noted one again (Brent 1980). */
static bool has_upward(const quern_world *world, quern_entity entity, const quern_term *term)
{
    quern_entity at = quern_entity_target(world, entity, term->relation), noted = at;
    for (uint64_t steps = 1, limit = 1; !quern_entity_is_null(at); steps++) {
        if (quern_entity_has(world, at, term->component)) return true;
        if (term->path == QUERN_PATH_TARGET) return false;
        at = quern_entity_target(world, at, term->relation);
        if (quern_entity_equal(at, noted)) return false;
        if (steps < limit) continue;
        noted = at;
        limit *= 2;
        steps = 0;
    }
    return false;
}

/* Returns why a term leaves an entity out, or NULL. Alternatives (QUERN_MATCH_ANY) are judged together elsewhere. */
static const char *failure_of(const quern_world *world, quern_entity entity, const quern_term *term)
{
    if (term->match == QUERN_MATCH_OPTIONAL || term->match == QUERN_MATCH_ANY) return NULL;
    if (term->path != QUERN_PATH_ROW)
        return has_upward(world, entity, term)   ? NULL
               : term->path == QUERN_PATH_TARGET ? "its target lacks it"
                                                 : "no ancestor has it";
    if (term->by_target)
        return !quern_entity_is_null(term->target) &&
                       quern_entity_has_target(world, entity,
                                               (quern_relation){.bits = term->component.bits}, term->target)
                   ? NULL
                   : "it has another target, or none";
    const bool has = quern_entity_has(world, entity, term->component);
    if (term->match == QUERN_MATCH_NONE) return has ? "it has this" : NULL;
    if (!has) return "it lacks this";
    if (term->enabled == QUERN_TERM_EITHER) return NULL;
    const bool is_enabled = quern_entity_is_component_enabled(world, entity, term->component);
    if (is_enabled == (term->enabled == QUERN_TERM_ENABLED)) return NULL;
    return is_enabled ? "it is enabled" : "it is disabled";
}

static void write_failure(quern__inspect_text *text, uint32_t term, const char *component,
                          const char *reason)
{
    quern__inspect_open(text, NULL, '{');
    quern__inspect_put_count(text, "term", term);
    quern__inspect_put_text(text, "component", component);
    quern__inspect_put_text(text, "reason", reason);
    quern__inspect_close(text, '}');
}

/* Writes the terms that leave the entity out, and returns how many. Change filters are left aside: they say when the
 * system sees a row, not which rows. */
static uint32_t write_failures(quern__inspect_text *text, const quern_world *world, quern_entity entity,
                               const quern_query_def *def)
{
    const quern_component disabled = quern_component_find(world, "disabled");
    uint32_t failed_count = 0, first_any = QUERN_MAX_TERMS;
    bool is_named = quern_component_is_null(disabled), has_any = false;
    for (uint32_t i = 0; i < QUERN_MAX_TERMS && def->terms[i].match != 0; i++) {
        const quern_term *term = &def->terms[i];
        is_named =
            is_named || (term->path == QUERN_PATH_ROW && quern_component_equal(term->component, disabled));
        if (term->match == QUERN_MATCH_ANY) {
            if (first_any == QUERN_MAX_TERMS) first_any = i;
            has_any = has_any || quern_entity_has(world, entity, term->component);
        }
        const char *reason = failure_of(world, entity, term);
        if (reason == NULL) continue;
        write_failure(text, i, quern_component_name(world, term->component), reason);
        failed_count++;
    }
    if (first_any < QUERN_MAX_TERMS && !has_any) {
        write_failure(text, first_any, quern_component_name(world, def->terms[first_any].component),
                      "it has none of the alternatives");
        failed_count++;
    }
    if (!is_named && quern_entity_has(world, entity, disabled)) {
        write_failure(text, QUERN_MAX_TERMS, "disabled", "the entity is disabled");
        failed_count++;
    }
    return failed_count;
}

static void begin_matches(quern__inspect_answer *answer)
{
    quern_entity entity;
    quern_schedule *schedule = answer->inspector->def.schedule;
    if (!quern__inspect_has_schedule(answer) || !quern__inspect_read_entity(answer, "entity", &entity) ||
        !quern__inspect_reserve_page(answer, 1))
        return;
    const quern_result result = quern_schedule_compile(schedule);
    if (result != QUERN_OK) {
        quern__inspect_fail_result(answer, result);
        return;
    }
    answer->entities[0] = entity;
    quern__inspect_open(&answer->text, NULL, '{');
    quern__inspect_put_entity(&answer->text, "entity", entity);
    quern__inspect_open(&answer->text, "systems", '[');
}

/* Systems without terms match no entity, and are left out. */
static bool step_matches(quern__inspect_answer *answer)
{
    const quern_world *world = answer->inspector->def.world;
    const quern_schedule *schedule = answer->inspector->def.schedule;
    quern__inspect_text *text = &answer->text;
    const quern_entity entity = answer->entities[0];
    for (uint32_t i = 0; i < MATCHES_PER_STEP; i++) {
        quern_query_def def;
        const quern_system system = quern_schedule_system_at(schedule, answer->at);
        if (system.bits == 0 || !quern_entity_is_alive(world, entity)) {
            quern__inspect_close(text, ']');
            quern__inspect_close(text, '}');
            return true;
        }
        answer->at++;
        if (quern_schedule_get_system_query(schedule, system, &def) != QUERN_OK || def.terms[0].match == 0)
            continue;
        quern__inspect_open(text, NULL, '{');
        quern__inspect_put_text(text, "system", def.name);
        quern__inspect_open(text, "failed", '[');
        const uint32_t failed_count = write_failures(text, world, entity, &def);
        quern__inspect_close(text, ']');
        quern__inspect_put_flag(text, "matches", failed_count == 0);
        quern__inspect_close(text, '}');
    }
    return false;
}

/* ------------------------------------------------------------------------------------------- routes */

const quern__inspect_route quern__inspect_system_routes[] = {
    {"access", false, false, begin_access, step_access, ""},
    {"matches", false, false, begin_matches, step_matches, "entity"},
    {"system_set", true, true, begin_set_enabled, NULL, "name on"},
    {NULL, false, false, NULL, NULL, NULL},
};
