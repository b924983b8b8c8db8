/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "sched/schedule/schedule_plan.h"

#include "core/query/query_internal.h"
#include "core/world/world_internal.h"

#include <float.h>
#include <stdio.h>

/* Systems: the checks of a definition, creation, memory for partial results, and sets of systems (schedule_plan.h). */

enum {
    PARTIAL_ALIGNMENT_BYTES = 64,
    KNOWN_FLAGS =
        QUERN_SYSTEM_SERIAL | QUERN_SYSTEM_MAIN_THREAD | QUERN_SYSTEM_EXCLUSIVE | QUERN_SYSTEM_WHOLE_CHUNKS
};

/* ------------------------------------------------------------------------------------------ checks */

static bool is_end_of_queries(const void *list, uint32_t i)
{
    const quern_query_def *query = &((const quern_query_def *)list)[i];
    uint32_t term = 0;
    while (term < QUERN_MAX_TERMS && quern__term_is_empty(query->terms, term))
        term++;
    return query->name == NULL && !query->whole_chunks && term == QUERN_MAX_TERMS &&
           quern__order_is_empty(&query->order_by);
}

static quern_result check_shape(const quern_system_def *def, uint32_t phase_count, uint32_t *out_term_count)
{
    quern_result result = quern__terms_count(def->terms, out_term_count);
    if (result != QUERN_OK) return result;
    if (def->run == NULL && def->begin == NULL && def->end == NULL)
        return quern__fail(QUERN_ERROR_NULL_ARGUMENT,
                           "system '%s' has no callback: run, begin and end are NULL; set one", def->name);
    if (def->run == NULL && *out_term_count > 0)
        return quern__fail(QUERN_ERROR_NULL_ARGUMENT, "system '%s' has terms, but run is NULL; set it",
                           def->name);
    if (!(def->interval_seconds >= 0 && def->interval_seconds <= DBL_MAX)) /* also rejects NaN */
        return quern__fail(
            QUERN_ERROR_INVALID_ARGUMENT,
            "system '%s' has an interval of %g seconds; give a finite number, 0 (every frame) or more",
            def->name, def->interval_seconds);
    if (def->every > QUERN_MAX_EVERY || def->offset > def->every)
        return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                           "system '%s' runs in frame %u of every %u: give at most %d (QUERN_MAX_EVERY), "
                           "and an offset from 1 "
                           "to that, or 0",
                           def->name, def->offset, def->every, QUERN_MAX_EVERY);
    if (def->every > 1 && def->interval_seconds > 0)
        return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                           "system '%s' has `every` and interval_seconds: give one of them", def->name);
    if (def->phase >= phase_count)
        return quern__fail(
            QUERN_ERROR_INVALID_ARGUMENT,
            "system '%s' is in phase %u, and the schedule has %u: give a number from 0 to %u", def->name,
            def->phase, phase_count, phase_count - 1);
    if ((def->flags & ~(uint32_t)KNOWN_FLAGS) != 0)
        return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                           "system '%s' has unknown flags %#x: use values of quern_system_flags", def->name,
                           def->flags);
    if ((def->flags & QUERN_SYSTEM_EXCLUSIVE) == 0) return QUERN_OK;
    if ((*out_term_count == 0 || def->reacts_to != 0) && def->partial_bytes == 0 &&
        is_end_of_queries(def->queries, 0) && def->indexes[0] == NULL)
        return QUERN_OK;
    return quern__fail(
        QUERN_ERROR_INVALID_ARGUMENT,
        "system '%s' is exclusive and has terms, further queries, indexes or partial results: remove them, "
        "and iterate queries and ask indexes of its world instead",
        def->name);
}

/* Returns the first declaration that a reaction cannot have, for a message, or NULL. */
static const char *unfit_for_reaction(const quern_system_def *def, uint32_t term_count)
{
    if (term_count == 0) return "no terms: they select the components to which it reacts";
    if (def->interval_seconds > 0) return "an interval: it runs when changes are pending";
    if (def->every > 1) return "`every`: it runs when changes are pending";
    if (def->levels.bits != 0) return "levels: its views are not ordered by level";
    for (uint32_t i = 0; i < term_count; i++) {
        const quern_term *term = &def->terms[i];
        if (term->changed) return "a change filter: react to QUERN_REACT_SET instead";
        if (term->by_target) return "a target term: test the targets of the rows in its views";
        if (term->path != QUERN_PATH_ROW && term->match != QUERN_MATCH_OPTIONAL)
            return "a required up-term, but is not told when a target gets or loses the component: make it "
                   "optional (quern_term_up_optional, QUERN_MATCH_OPTIONAL), and test for NULL";
        if ((def->reacts_to & QUERN_REACT_REMOVED) == 0) continue;
        if (term->path != QUERN_PATH_ROW)
            return "an up-term, and reacts to QUERN_REACT_REMOVED: removed rows have no target";
        if (term->access == QUERN_ACCESS_WRITE && def->reacts_to == QUERN_REACT_REMOVED)
            return "a term to write, and reacts to QUERN_REACT_REMOVED alone: its views are read-only";
    }
    return NULL;
}

/* Checks that only a reaction to SET has old terms, and only with columns. */
static quern_result check_old_terms(const quern_system_def *def, uint32_t term_count)
{
    const bool is_exclusive = (def->flags & QUERN_SYSTEM_EXCLUSIVE) != 0;
    uint32_t i = 0;
    while (i < term_count && !def->terms[i].old)
        i++;
    if (i == term_count) return QUERN_OK;
    if ((def->reacts_to & QUERN_REACT_SET) == 0)
        return quern__fail(
            QUERN_ERROR_INVALID_ARGUMENT,
            "term %u of system '%s' reads old values, which only rows that were set have: add "
            "QUERN_REACT_SET to reacts_to, or use quern_term_read",
            i, def->name);
    if (!is_exclusive) return QUERN_OK;
    return quern__fail(
        QUERN_ERROR_INVALID_ARGUMENT,
        "term %u of system '%s' reads old values, but the views of exclusive systems have no "
        "columns: use quern_term_with",
        i, def->name);
}

static quern_result check_reaction(const quern_system_def *def, uint32_t term_count)
{
    const uint32_t known = QUERN_REACT_ADDED | QUERN_REACT_SET | QUERN_REACT_REMOVED | QUERN_REACT_PRESENT;
    if (def->reacts_to == 0) return QUERN_OK;
    if ((def->reacts_to & ~known) != 0)
        return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                           "system '%s' reacts to unknown kinds %#x: use values of quern_reaction_kind",
                           def->name, def->reacts_to);
    if ((def->reacts_to & QUERN_REACT_PRESENT) != 0 && (def->reacts_to & QUERN_REACT_ADDED) == 0)
        return quern__fail(
            QUERN_ERROR_INVALID_ARGUMENT,
            "system '%s' reacts to QUERN_REACT_PRESENT without QUERN_REACT_ADDED: add it, because present "
            "rows are shown as added",
            def->name);
    const char *unfit = unfit_for_reaction(def, term_count);
    if (unfit == NULL) return QUERN_OK;
    return quern__fail(QUERN_ERROR_INVALID_ARGUMENT, "system '%s' is a reaction and has %s: leave that out",
                       def->name, unfit);
}

static quern_result check_levels(const quern_world *world, const quern_system_def *def, uint32_t term_count,
                                 quern__relation **out_relation)
{
    if (def->levels.bits == 0) return QUERN_OK;
    quern_result result = quern__relation_check(&world->storage, def->levels, out_relation);
    if (result != QUERN_OK) return result;
    if (!(*out_relation)->has_levels)
        return quern__fail(
            QUERN_ERROR_INVALID_ARGUMENT,
            "system '%s' is ordered by the levels of relation '%s', which has none: register it with "
            "levels",
            def->name, quern__relation_name(&world->storage, *out_relation));
    if (term_count > 0) return QUERN_OK;
    return quern__fail(
        QUERN_ERROR_INVALID_ARGUMENT,
        "system '%s' is to be ordered by levels and has no terms: give it terms, because its "
        "views are ordered",
        def->name);
}

typedef struct query_name {
    char text[QUERN_MAX_NAME_BYTES + 8];
} query_name;

/* Returns the name of a further query for a message that has its index: " ('ghosts')", or "" if it has none. */
static query_name quote_query(const quern__query *query)
{
    query_name quoted = {""};
    if (query->name != NULL) snprintf(quoted.text, sizeof quoted.text, " ('%s')", query->name);
    return quoted;
}

static quern_result check_query(const quern__system *system, const quern_query_def *def)
{
    uint32_t term_count = 0;
    quern_result result = quern__terms_count(def->terms, &term_count);
    if (result == QUERN_OK && def->name != NULL) result = quern__check_name(def->name, "query");
    if (result != QUERN_OK) return result;
    if (term_count == 0)
        return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                           "it has no terms: give it one, or leave the query out");
    bool has_target = system->query.target != NULL;
    for (uint32_t i = 0; i < system->query_count; i++)
        has_target |= system->queries[i].target != NULL;
    for (uint32_t i = 0; i < term_count; i++) {
        if (def->terms[i].old)
            return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                               "term %u reads old values, which only the terms of a reaction can: use "
                               "quern_term_read",
                               i);
        if (def->terms[i].by_target && has_target)
            return quern__fail(
                QUERN_ERROR_INVALID_ARGUMENT,
                "term %u is a target term, and the system has another one: quern_schedule_set_target "
                "sets one target per system; list the sources by quern_context_list_sources instead",
                i);
    }
    return QUERN_OK;
}

/* Creates the further queries. On failure, those that were created are released with the system. */
static quern_result add_queries(quern__system *system, quern__storage *storage, const quern_system_def *def)
{
    uint32_t count = 0;
    quern_result result =
        quern__list_count(def->queries, QUERN_MAX_SYSTEM_QUERIES, is_end_of_queries, "query", NULL, &count);
    if (result != QUERN_OK || count == 0) return result;
    system->queries_bytes = count * (sizeof(quern__query) + QUERN_MAX_NAME_BYTES + 1);
    system->queries = quern__allocate(&storage->allocator, system->queries_bytes, _Alignof(quern__query));
    if (system->queries == NULL)
        return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory for the queries of system '%s'",
                           def->name);
    char *names = (char *)(system->queries + count);
    for (uint32_t i = 0; i < count; i++) {
        const quern_query_def *from = &def->queries[i];
        quern__query *query = &system->queries[i];
        uint32_t term_count = 0;
        result = check_query(system, from);
        if (result == QUERN_OK) result = quern__terms_count(from->terms, &term_count);
        if (result == QUERN_OK) result = quern__query_init(query, storage, from->terms, term_count);
        if (result != QUERN_OK) return quern__message_add_element(result, "query", i);
        system->query_count++;
        result = quern__order_create(query, from);
        if (result != QUERN_OK) return quern__message_add_element(result, "query", i);
        query->whole_chunks = from->whole_chunks;
        query->further_number = i + 1;
        system->has_refreshes |= query->order != NULL;
        system->has_filters |= query->filter_count > 0;
        if (from->name != NULL)
            query->name =
                memcpy(names + (size_t)i * (QUERN_MAX_NAME_BYTES + 1), from->name, strlen(from->name) + 1);
    }
    return QUERN_OK;
}

/* Gives the rows of the system an order, if it declares one. */
static quern_result add_order(quern__system *system, const quern_system_def *def)
{
    const quern_query_def ordered = {.order_by = def->order_by,
                                     .whole_chunks = (def->flags & QUERN_SYSTEM_WHOLE_CHUNKS) != 0};
    if (quern__order_is_empty(&def->order_by)) return QUERN_OK;
    if (def->reacts_to != 0 || system->levels != NULL || system->query.term_count == 0)
        return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                           "system '%s' has order_by and %s: remove one of them, or sort a further query",
                           def->name,
                           def->reacts_to != 0      ? "is a reaction, whose rows are those that changed"
                           : system->levels != NULL ? "levels, which are an order themselves"
                                                    : "no terms that could select rows");
    const quern_result result = quern__order_create(&system->query, &ordered);
    system->has_refreshes |= system->query.order != NULL;
    return result;
}

static bool is_end_of_indexes(const void *list, uint32_t i)
{
    return ((quern_index *const *)list)[i] == NULL;
}

static quern_result add_indexes(quern__system *system, const quern_world *world,
                                const quern_system_def *def)
{
    uint32_t count = 0;
    quern_result result =
        quern__list_count(def->indexes, QUERN_MAX_SYSTEM_INDEXES, is_end_of_indexes, "index", NULL, &count);
    for (uint32_t i = 0; i < count && result == QUERN_OK; i++) {
        result = quern__index_check_world(def->indexes[i], world);
        for (uint32_t k = 0; k < i && result == QUERN_OK; k++)
            if (def->indexes[k] == def->indexes[i])
                result = quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                                     "system '%s' lists one index twice: once is enough", def->name);
        if (result != QUERN_OK) return quern__message_add_element(result, "index", i);
        system->indexes[system->index_count++] = def->indexes[i];
        quern__index_add_user(def->indexes[i]);
    }
    system->has_refreshes |= count > 0;
    return result;
}

static quern_result check_conflicts(const quern__system *system, const quern_world *world,
                                    quern_relation levels)
{
    if (system->query.target != NULL && system->levels != NULL)
        return quern__fail(
            QUERN_ERROR_INVALID_ARGUMENT,
            "system '%s' has a target term and is to be ordered by levels: remove one of them, because "
            "rows with the same target are on one level",
            system->name);
    if (quern__system_has_flag(system, QUERN_SYSTEM_SERIAL)) return QUERN_OK;
    const quern__components *components = &world->storage.components;
    uint32_t number;
    uint32_t component = quern__access_query_conflict(&system->access, &system->query, &number);
    if (component != QUERN_MAX_COMPONENTS)
        return quern__fail(
            QUERN_ERROR_SCHEDULE_CONFLICT,
            "system '%s' reads '%s' by its query %u%s, and its own views write it at the same time: let "
            "the terms exclude each other (a component in one of them, and quern_term_without it in the "
            "other), read a copy that another system writes, or make it QUERN_SYSTEM_SERIAL",
            system->name, quern__components_type(components, component)->name, number,
            quote_query(&system->queries[number]).text);
    component = quern__access_self_conflict(&system->access, system->query.terms, system->query.term_count);
    if (component != QUERN_MAX_COMPONENTS)
        return quern__fail(QUERN_ERROR_SCHEDULE_CONFLICT,
                           "system '%s' looks up '%s', which its own views write at the same time (an "
                           "index on it is a lookup, "
                           "too): limit the lookup to entities that the terms exclude (.with and "
                           "quern_term_without), write to "
                           "another component, or make it QUERN_SYSTEM_SERIAL",
                           system->name, quern__components_type(components, component)->name);
    if (system->query.up_count == 0) return QUERN_OK;
    const uint32_t term = quern__query_up_conflict(&system->query, levels);
    if (term == system->query.term_count) return QUERN_OK;
    const quern_term *up = &system->query.terms[term];
    return quern__fail(
        QUERN_ERROR_SCHEDULE_CONFLICT,
        "system '%s' reads '%s' upward by '%s', and its own views write it at the same time: set "
        ".levels to the relation, which calls it for targets before their sources, or make it "
        "QUERN_SYSTEM_SERIAL",
        system->name, quern__components_type(components, quern__component_index(up->component))->name,
        quern__components_type(components, quern__term_index(up))->name);
}

/* ------------------------------------------------------------------------------------------ create */

/* Adds a list of names of a definition. Errors: INVALID_ARGUMENT, OUT_OF_MEMORY. */
static quern_result rules_add(quern__order_rules *rules, const quern_allocator *allocator,
                              const char *const *names, quern__rule_kind kind)
{
    static const char *const lists[] = {"before", "after", "after_commands_of"};
    uint32_t count = 0;
    const quern_result listed =
        quern__list_count(names, QUERN_MAX_ORDER, quern__is_end_of_names, lists[kind], NULL, &count);
    if (listed != QUERN_OK) return listed;
    if (!quern__array_reserve(allocator, rules, rules->count + count))
        return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory for before and after");
    for (uint32_t i = 0; i < count; i++) {
        quern_result result = quern__check_name(names[i], "system");
        if (result != QUERN_OK) return quern__message_add_element(result, lists[kind], i);
        quern__order_rule *rule = &rules->items[rules->count++];
        *rule = (quern__order_rule){.is_before = kind == QUERN__BEFORE,
                                    .sees_commands = kind == QUERN__AFTER_COMMANDS_OF};
        memcpy(rule->name, names[i], strlen(names[i]) + 1);
    }
    return QUERN_OK;
}

static quern_result add_set_names(quern__system *system, const char *const *names)
{
    const quern_allocator *allocator = &system->query.storage->allocator;
    uint32_t count = 0;
    quern_result result =
        quern__list_count(names, QUERN_MAX_SETS, quern__is_end_of_names, "set", NULL, &count);
    if (result == QUERN_OK && !quern__array_reserve(allocator, &system->set_names, count))
        result =
            quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory for the sets of system '%s'", system->name);
    for (uint32_t i = 0; i < count && result == QUERN_OK; i++) {
        result = quern__check_name(names[i], "set");
        for (uint32_t k = 0; k < i && result == QUERN_OK; k++)
            if (strcmp(names[k], names[i]) == 0)
                result = quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                                     "system '%s' names the set '%s' twice: once is enough", system->name,
                                     names[i]);
        if (result != QUERN_OK) return quern__message_add_element(result, "set", i);
        memcpy(system->set_names.items[system->set_names.count++].text, names[i], strlen(names[i]) + 1);
    }
    return result;
}

/* Returns the flags, including those that other declarations imply. A system runs one view after another if
 * it writes a resource exclusively, writes by lookups or further queries, runs on the main thread, iterates the
 * sources of one target, or writes rows in an order. */
static uint32_t implied_flags(const quern__query *query, const quern__access *access, uint32_t flags)
{
    if (query->target != NULL) flags |= QUERN_SYSTEM_SERIAL;
    /* pieces of an order share chunks, whose versions each writer would set */
    if (query->order != NULL && quern__order_writes(query)) flags |= QUERN_SYSTEM_SERIAL;
    if ((flags & QUERN_SYSTEM_EXCLUSIVE) != 0) flags |= QUERN_SYSTEM_MAIN_THREAD;
    if ((flags & QUERN_SYSTEM_MAIN_THREAD) != 0) flags |= QUERN_SYSTEM_SERIAL;
    for (uint32_t i = 0; i < access->resource_count; i++)
        if (access->resources[i].access == QUERN_ACCESS_WRITE) flags |= QUERN_SYSTEM_SERIAL;
    for (uint32_t i = 0; i < access->lookups.count; i++)
        if (access->lookups.list[i].writes) flags |= QUERN_SYSTEM_SERIAL;
    for (uint32_t i = 0; i < QUERN__COMPONENT_WORDS; i++)
        if (access->query_writes[i] != 0) flags |= QUERN_SYSTEM_SERIAL;
    return flags;
}

static bool terms_equal(const quern_term *a, const quern_term *b)
{
    return a->component.bits == b->component.bits && a->match == b->match && a->access == b->access &&
           a->relation.bits == b->relation.bits && a->path == b->path && a->changed == b->changed &&
           a->by_target == b->by_target && a->enabled == b->enabled && a->old == b->old;
}

/* Returns whether the systems react to the same changes of the same rows, so that all that is pending for one of them can
 * be shown to the other. */
static bool react_alike(const quern__system *system, const quern__system *other)
{
    if (system->reacts_to != other->reacts_to || system->query.term_count != other->query.term_count)
        return false;
    for (uint32_t i = 0; i < system->query.term_count; i++)
        if (!terms_equal(&system->query.terms[i], &other->query.terms[i])) return false;
    return true;
}

static quern_result system_init(quern__system *system, quern_world *world, const quern_system_def *def,
                                uint32_t term_count, const quern__system *replaced)
{
    *system = (quern__system){
        .name = def->name,
        .phase = def->phase,
        .is_enabled = true,
        .wants_enabled = true,
        .run = def->run,
        .begin = def->begin,
        .end = def->end,
        .condition = def->condition,
        .interval_seconds = def->interval_seconds,
        .every = def->every,
        .offset = def->offset,
        .reacts_to = def->reacts_to,
        .user_data = def->user_data,
        .partial_bytes = def->partial_bytes,
        .partial_stride_bytes = quern__align_up(def->partial_bytes, PARTIAL_ALIGNMENT_BYTES),
        .query = {.storage = &world->storage},
    };
    quern_result result = check_levels(world, def, term_count, &system->levels);
    if (result == QUERN_OK)
        result = quern__query_init(&system->query, &world->storage, def->terms, term_count);
    if (result == QUERN_OK) result = add_order(system, def);
    if (result == QUERN_OK) result = add_queries(system, &world->storage, def);
    if (result == QUERN_OK) result = add_indexes(system, world, def);
    if (result == QUERN_OK)
        result = quern__access_init(&system->access, world, def, system->query.term_count, system->queries,
                                    system->query_count);
    if (result == QUERN_OK)
        result = quern__event_use_init(&system->events, world, def, system->query.term_count);
    if (result != QUERN_OK) return result;
    system->has_filters |= system->query.filter_count > 0;
    system->query.whole_chunks = (def->flags & QUERN_SYSTEM_WHOLE_CHUNKS) != 0;
    if (def->reacts_to != 0) {
        /* Reactions select enabled and disabled rows: what happens to an entity is reported whether or not
         * its components are enabled. */
        system->query.row_term_count = 0;
        system->query.selects_rows = system->query.up_count > 0 || system->query.row_filters != 0;
    }
    system->flags = implied_flags(&system->query, &system->access, def->flags);
    result = check_conflicts(system, world, def->levels);
    const quern_allocator *allocator = &world->storage.allocator;
    if (result == QUERN_OK) result = rules_add(&system->rules, allocator, def->before, QUERN__BEFORE);
    if (result == QUERN_OK) result = rules_add(&system->rules, allocator, def->after, QUERN__AFTER);
    if (result == QUERN_OK)
        result = rules_add(&system->rules, allocator, def->after_commands_of, QUERN__AFTER_COMMANDS_OF);
    if (result == QUERN_OK) result = add_set_names(system, def->sets);
    if (result != QUERN_OK || def->reacts_to == 0) return result;
    if (replaced != NULL && react_alike(system, replaced)) return QUERN_OK; /* takes its reaction over */
    const quern__reaction_def reaction = {.kinds = def->reacts_to,
                                          .terms = system->query.terms,
                                          .term_count = system->query.term_count,
                                          .matches = quern__query_matches,
                                          .query = &system->query,
                                          .replaced = replaced != NULL ? replaced->reaction : NULL};
    return quern__reaction_add(&world->storage, &reaction, &system->reaction);
}

quern_result quern__system_create(quern_world *world, const quern_system_def *def, uint32_t phase_count,
                                  const quern__system *replaced, quern__system **out_system)
{
    uint32_t term_count = 0;
    quern_result result = check_shape(def, phase_count, &term_count);

    if (result == QUERN_OK) result = check_reaction(def, term_count);
    if (result == QUERN_OK) result = check_old_terms(def, term_count);
    if (result != QUERN_OK) return result;
    quern__system *system =
        quern__allocate(&world->storage.allocator, sizeof *system, _Alignof(quern__system));
    if (system == NULL)
        return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory for system '%s'", def->name);
    result = system_init(system, world, def, term_count, replaced);
    if (result != QUERN_OK)
        quern__system_destroy(system);
    else
        *out_system = system;
    return result;
}

void quern__system_destroy(quern__system *system)
{
    const quern_allocator *allocator = &system->query.storage->allocator;
    quern__reaction_remove(system->query.storage, system->reaction);
    quern__array_release(allocator, &system->rules);
    quern__array_release(allocator, &system->set_names);
    quern__access_release(&system->access, allocator);
    quern__event_use_release(&system->events, allocator);
    quern__release(allocator, system->partials, system->partials_capacity_bytes, PARTIAL_ALIGNMENT_BYTES);
    quern__query_release(&system->query);
    for (uint32_t i = 0; i < system->index_count; i++)
        quern__index_remove_user(system->indexes[i]);
    for (uint32_t i = 0; i < system->query_count; i++)
        quern__query_release(&system->queries[i]);
    quern__release(allocator, system->queries, system->queries_bytes, _Alignof(quern__query));
    quern__release(allocator, system, sizeof *system, _Alignof(quern__system));
}

/* Exchanges the readers of events that both systems read: the successor goes on where the other one has stopped. */
static void exchange_readers(quern__event_use *use, const quern__event_use *replaced)
{
    for (uint32_t i = 0; i < use->readers.count; i++)
        for (uint32_t k = 0; k < replaced->readers.count; k++) {
            quern_event_reader *reader = use->readers.items[i], *other = replaced->readers.items[k];
            if (reader->channel != other->channel) continue;
            use->readers.items[i] = other;
            replaced->readers.items[k] = reader;
            if (use->items == reader) use->items = other;
        }
}

void quern__system_take_over(quern__system *successor, quern__system *replaced)
{
    successor->plan = replaced->plan;
    exchange_readers(&successor->events, &replaced->events);
    if (successor->reacts_to != 0 && successor->reaction == NULL) {
        successor->reaction = replaced->reaction;
        successor->reaction->query = &successor->query;
        replaced->reaction = NULL;
    }
    successor->wants_enabled = replaced->wants_enabled;
    quern__system_set_enabled(successor, replaced->is_enabled);
    if (quern__system_hash_resources(successor) == quern__system_hash_resources(replaced))
        successor->seen_resources = replaced->seen_resources; /* both list the same */
    if (replaced->has_filters) successor->query.seen_version = replaced->query.seen_version;
    const quern__query *aimed = quern__system_target_query(successor),
                       *former = quern__system_target_query(replaced);
    if (aimed != NULL && former != NULL && quern_entity_is_null(aimed->target->entity))
        aimed->target->entity = former->target->entity;
    successor->due_seconds = replaced->due_seconds;
    successor->elapsed_seconds = replaced->elapsed_seconds;
    successor->delta_seconds = replaced->delta_seconds;
    /* the statistics of the last frame */
    successor->is_active = replaced->is_active;
    successor->view_count = replaced->view_count;
    successor->entity_count = replaced->entity_count;
    successor->command_count = replaced->command_count;
    successor->step_view_count = replaced->step_view_count;
    successor->step_entity_count = replaced->step_entity_count;
}

void quern__system_set_enabled(quern__system *system, bool enabled)
{
    system->is_enabled = enabled;
    /* What is pending stays. */
    if (system->reaction != NULL) system->reaction->told_kinds = enabled ? system->reaction->kinds : 0;
}

/* ------------------------------------------------------------------------------------------- frame */

quern_result quern__system_reserve_partials(quern__system *system)
{
    size_t bytes = system->view_count * system->partial_stride_bytes;
    if (bytes <= system->partials_capacity_bytes) return QUERN_OK;
    const quern_allocator *allocator = &system->query.storage->allocator;
    char *partials = quern__allocate(allocator, 2 * bytes, PARTIAL_ALIGNMENT_BYTES);
    if (partials == NULL)
        return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "system '%s': no memory for %u partial results",
                           system->name, system->view_count);
    quern__release(allocator, system->partials, system->partials_capacity_bytes, PARTIAL_ALIGNMENT_BYTES);
    system->partials = partials;
    system->partials_capacity_bytes = 2 * bytes;
    return QUERN_OK;
}

/* A sum, with names, so that a replacement that watches other resources finds another hash, and one that lists them in
 * another order the same. A program that loads an archive may have registered its resources in another order. */
uint64_t quern__system_hash_resources(const quern__system *system)
{
    const quern__resources *resources = &system->plan->world->resources;
    uint64_t hash = 0;
    for (uint32_t i = 0; i < system->access.resource_count; i++) {
        const quern__resource_use *use = &system->access.resources[i];
        if (!use->is_watched) continue;
        const quern__resource *resource = &resources->list.items[use->index];
        hash += quern__type_hash(&resource->type, quern__hash_string(resource->type.name), resource->value,
                                 system->plan->world->storage.entities.first_handle_high);
    }
    hash >>= 1;
    return hash == 0 ? 1 : hash;
}

/* Systems with has_refreshes run only if all is up to date, so that no callback finds what is out of date. */
bool quern__system_refresh(quern__system *system)
{
    quern_result result = QUERN_OK;
    for (uint32_t i = 0; i < system->index_count && result == QUERN_OK; i++)
        result = quern__index_refresh_inside(system->indexes[i]);
    if (system->query.order != NULL && result == QUERN_OK)
        result = quern__order_refresh(&system->query, false);
    for (uint32_t i = 0; i < system->query_count && result == QUERN_OK; i++)
        if (system->queries[i].order != NULL) result = quern__order_refresh(&system->queries[i], false);
    system->refresh_result = result;
    return result == QUERN_OK;
}

quern_result quern__system_prepare_queries(quern__system *system, uint32_t worker_count)
{
    quern_result result = QUERN_OK;
    for (uint32_t i = 0; i < system->query_count && result == QUERN_OK; i++)
        result = quern__query_prepare_inside(&system->queries[i], worker_count);
    return result != QUERN_OK ? quern__message_add_call(result, system->name, NULL) : QUERN_OK;
}

/* ---------------------------------------------------------------------------------------- sets of systems */

static void never_called(quern_context *context)
{
    (void)context;
}

/* A callback needs a system that declares what it accesses: the condition of a set belongs to one that is in no phase. */
static quern_result create_asker(quern_world *world, const quern_set_def *def, quern__set *set)
{
    quern_system_def asker = {
        .name = set->name, .begin = never_called, .condition = def->condition, .user_data = def->user_data};
    if (def->condition == NULL) return QUERN_OK;
    memcpy(asker.resources, def->resources, sizeof asker.resources);
    for (uint32_t i = 0; i < QUERN_MAX_ACCESS; i++)
        if (asker.resources[i].resource.bits != 0 && asker.resources[i].access != QUERN_ACCESS_READ)
            return quern__fail(
                QUERN_ERROR_INVALID_ARGUMENT,
                "resource %u of the set's condition has another access than QUERN_ACCESS_READ: a "
                "condition only reads",
                i);
    return quern__system_create(world, &asker, 1, NULL, &set->asker);
}

quern_result quern__set_create(quern_world *world, const quern_set_def *def, quern__set **out_set)
{
    const quern_allocator *allocator = &world->storage.allocator;
    quern__set *set = quern__allocate(allocator, sizeof *set, _Alignof(quern__set));
    if (set == NULL) return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory for set '%s'", def->name);
    *set = (quern__set){.is_enabled = true, .is_open = true};
    memcpy(set->name, def->name, strlen(def->name) + 1);
    quern_result result = create_asker(world, def, set);
    if (result == QUERN_OK) result = rules_add(&set->rules, allocator, def->before, QUERN__BEFORE);
    if (result == QUERN_OK) result = rules_add(&set->rules, allocator, def->after, QUERN__AFTER);
    if (result == QUERN_OK)
        result = rules_add(&set->rules, allocator, def->after_commands_of, QUERN__AFTER_COMMANDS_OF);
    if (result == QUERN_OK)
        *out_set = set;
    else
        quern__set_destroy(set, allocator);
    return result;
}

void quern__set_destroy(quern__set *set, const quern_allocator *allocator)
{
    if (set->asker != NULL) quern__system_destroy(set->asker);
    quern__array_release(allocator, &set->rules);
    quern__array_release(allocator, &set->members);
    quern__release(allocator, set, sizeof *set, _Alignof(quern__set));
}

quern__set *quern__plan_find_set(const quern__plan *plan, const char *name)
{
    for (uint32_t i = 0; i < plan->sets.count; i++)
        if (strcmp(plan->sets.items[i]->name, name) == 0) return plan->sets.items[i];
    return NULL;
}

bool quern__plan_allows(const quern__plan *plan, const quern__system *system)
{
    for (uint32_t i = 0; i < system->set_names.count; i++) {
        const quern__set *set = quern__plan_find_set(plan, system->set_names.items[i].text);
        if (set != NULL && !set->is_enabled) return false;
    }
    return system->wants_enabled;
}

bool quern__set_is_in_phase(const quern__set *set, uint32_t phase)
{
    for (uint32_t i = 0; i < set->members.count; i++)
        if (set->members.items[i]->phase == phase) return true;
    return false;
}
