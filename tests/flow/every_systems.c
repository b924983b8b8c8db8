/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* The systems and reactions of the random program: what a seed decides of them, and their callbacks, which show the model
 * what they see and do. */

#include "tests/flow/every_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What a seed decides before the first frame. */
every_terms every_system_terms[EVERY_SYSTEMS], every_reaction_terms[EVERY_REACTIONS];
uint32_t every_system_phases[EVERY_SYSTEMS];
enum { EXCLUSIVE_PHASE = 1 };

/* ------------------------------------------------------------------------------------------- systems */

/* The indices of the terms of a system. */
typedef struct column_list {
    uint32_t of_type[EVERY_TYPES];
    uint32_t up, old;
} column_list;

static column_list list_terms(const every_terms *from, quern_term *terms)
{
    column_list found = {0};
    uint32_t count = 0;
    terms[count++] = quern_term_read(every.types.types[EVERY_ID]);
    for (uint32_t t = 1; t < EVERY_TYPES; t++) {
        const quern_access access = every_has(from->writes, t)  ? QUERN_ACCESS_WRITE
                                    : every_has(from->reads, t) ? QUERN_ACCESS_READ
                                                                : QUERN_ACCESS_NONE;
        if (!every_has(from->with | from->without | from->optional | from->any, t)) continue;
        found.of_type[t] = count;
        if (every_has(from->with, t)) {
            terms[count] = quern_term_make(every.types.types[t], QUERN_MATCH_ALL, access);
            terms[count].enabled = from->enabled[t];
            terms[count].changed = from->filter_type == t + 1;
        } else {
            terms[count] = every_has(from->without, t) ? quern_term_without(every.types.types[t])
                           : every_has(from->any, t)   ? quern_term_any(every.types.types[t], access)
                                                       : quern_term_optional(every.types.types[t], access);
        }
        count++;
    }
    if (from->by_target)
        terms[count++] = quern_term_target(every.types.relations[from->tie - 1], from->target);
    else if (from->tie > 0)
        terms[count++] = quern_term_with(quern_relation_component(every.types.relations[from->tie - 1]));
    found.up = count;
    if (from->has_up && from->up_relation == EVERY_SHARED && !from->up_is_optional)
        terms[count++] = quern_term_shared(every.world, every.types.types[from->up_type]);
    else if (from->has_up)
        terms[count++] =
            quern_term_up_make(every.types.types[from->up_type], every.types.relations[from->up_relation],
                               from->up_is_optional ? QUERN_MATCH_OPTIONAL : QUERN_MATCH_ALL,
                               from->up_is_nearest ? QUERN_PATH_NEAREST : QUERN_PATH_TARGET);
    found.old = count;
    if (from->old_type > 0) terms[count++] = quern_term_old(every.types.types[from->old_type - 1]);
    return found;
}

/* The running callback of a system, reaction or parallel query. */
typedef struct run_of {
    const every_terms *terms;
    column_list columns;
    int system, reaction; /* EVERY_NONE: it is no such */
    actor by;
    uint64_t salt;
} run_of;

static run_of begin_run(quern_context *context, const every_terms *terms, uint64_t salt)
{
    quern_term unused[QUERN_MAX_TERMS];
    run_of run = {.terms = terms, .system = EVERY_NONE, .reaction = EVERY_NONE, .salt = salt};
    if (terms != NULL) run.columns = list_terms(terms, unused);
    run.by.context = context;
    run.by.commands = quern_context_commands(context);
    run.by.is_mute = run.by.commands == NULL;
    run.by.stream = every_next_stream();
    if (every.is_harmless)
        every_must_record(quern_commands_set_component_enabled(run.by.commands, every_own.dummy_entity,
                                                               every.types.types[EVERY_MODE], true));
    return run;
}

static void begin_row(run_of *run, uint64_t id)
{
    run->by.random.state = every_mix(every.seed ^ every_mix(every.frame * 1000003 + run->salt) ^ id);
    run->by.id_base = every_mix(id ^ every_mix(every.frame * 77 + run->salt) ^ every.seed);
    run->by.id_count = 0;
}

/* Adds the words of a value to what callbacks have seen. Handles differ between runs and are left out. */
static void observe(uint64_t id, uint32_t type, const uint64_t *words)
{
    for (uint32_t w = type == EVERY_LINK; w < every_types[type].word_count; w++)
        atomic_fetch_add_explicit(&every.observed,
                                  every_mix(id ^ every_mix(words[every_types[type].first_word + w] + w)),
                                  memory_order_relaxed);
}

/* Reads the row's columns, compares them with the model, and writes. */
static void use_columns(run_of *run, const quern_view *view, uint32_t row, uint64_t id, int entity,
                        const void *const *bases)
{
    for (uint32_t t = 1; t < EVERY_TYPES; t++) {
        uint64_t words[EVERY_WORDS];
        if (entity != EVERY_NONE && t != EVERY_ID && every_types[t].word_count > 0 &&
            every_has(run->terms->reads | run->terms->writes, t))
            cr_assert_eq(bases[t] != NULL, every_has(every_model_at(entity)->now.set, t));
        if (bases[t] == NULL) continue;
        const uint32_t bytes = every_value_bytes(t);
        const char *value = (const char *)bases[t] + (size_t)bytes * row;
        every_read(t, value, words);
        observe(id, t, words);
        if (entity != EVERY_NONE)
            for (uint32_t w = t == EVERY_LINK; w < every_types[t].word_count; w++)
                cr_assert_eq(
                    words[every_types[t].first_word + w],
                    every_model_at(entity)->now.words[every_types[t].first_word + w],
                    "seed %llu, frame %llu: system %d, reaction %d, '%s' of the entity with id %llx",
                    (unsigned long long)every.seed, (unsigned long long)every.frame, run->system,
                    run->reaction, every_types[t].name, (unsigned long long)id);
        if (!every_has(run->terms->writes, t) || !random_chance(&run->by.random, 30)) continue;
        const uint32_t first = every_types[t].first_word;
        const uint32_t at =
            t == EVERY_LIST && random_chance(&run->by.random, 50) ? first : every_last_word(t);
        words[at] = every_fit(&every_forms[t], at - first, random_below(&run->by.random, 1000));
        if (t != EVERY_LINK || at > first) every_write(t, (void *)(uintptr_t)value, words);
        if (entity != EVERY_NONE) every_model_write(run->system, entity, t, words);
        if (every_types[t].can_disable && run->reaction == EVERY_NONE &&
            random_chance(&run->by.random, 40)) {
            const bool enabled = random_chance(&run->by.random, 50);
            cr_assert(quern_view_set_enabled(view, run->columns.of_type[t], row, enabled));
            if (entity != EVERY_NONE) every_model_toggle(run->system, entity, t, enabled);
        }
    }
}

static void find_columns(const run_of *run, const quern_view *view, const void **bases)
{
    const every_terms *terms = run->terms;
    for (uint32_t t = 0; t < EVERY_TYPES; t++) {
        bases[t] = NULL;
        if (t == EVERY_ID || every_types[t].word_count == 0 || !every_has(terms->reads | terms->writes, t))
            continue;
        bases[t] = every_has(terms->writes, t) ? quern_view_write(view, run->columns.of_type[t])
                                               : quern_view_read(view, run->columns.of_type[t]);
    }
}

static void use_up(const run_of *run, const quern_view *view, uint32_t row, uint64_t id, int entity)
{
    uint64_t words[EVERY_WORDS];
    const uint32_t type = run->terms->up_type;
    const void *value = quern_view_up(view, run->columns.up)[row];
    if (value != NULL) {
        every_read(type, value, words);
        observe(id, type, words);
    }
    if (entity == EVERY_NONE) return;
    const int from = every_model_nearest(run->terms, entity);
    cr_assert_eq(value == NULL, from == EVERY_NONE, "up-term of the entity with id %llx",
                 (unsigned long long)id);
    for (uint32_t w = type == EVERY_LINK; value != NULL && w < every_types[type].word_count; w++)
        cr_assert_eq(words[every_types[type].first_word + w],
                     every_model_at(from)->now.words[every_types[type].first_word + w]);
}

/* Records a command for some rows of a view. */
static void command_view(run_of *run, const quern_view *view, const uint64_t *ids)
{
    uint64_t mask[QUERN_MAX_VIEW_ROWS / 64] = {0};
    begin_row(run, 12345); /* the same for all views */
    actor *by = &run->by;
    every_change change = {.is_by_level = by->is_by_level,
                           .ordinal = by->ordinal,
                           .stream = by->stream,
                           .type = every_pick_type(by),
                           .has_value = random_chance(&by->random, 50)};
    const uint32_t kind = random_below(&by->random, 12), percent = 10 + random_below(&by->random, 91);
    value_room room;
    if (kind == 11 && every.known_count < CROWD) return;
    every_draw_words(by, &change);
    change.target = quern_entity_null();
    change.kind = kind < 4 ? EVERY_ADD : kind < 8 ? EVERY_SET : kind < 11 ? EVERY_REMOVE : EVERY_DESTROY;
    const bool gives_each = change.kind == EVERY_SET && change.type == EVERY_NUMBER && percent % 2 == 0;
    static _Thread_local uint64_t each[QUERN_MAX_VIEW_ROWS * (EVERY_TYPE_WORDS + 2)];
    const uint32_t number_bytes = every_value_bytes(EVERY_NUMBER);
    quern_row_range range = {0};
    bool is_any = false;
    while (quern_view_next_range(view, &range))
        for (uint32_t i = range.first; i < range.first + range.count; i++) {
            if (every_mix(ids[i] ^ run->salt) % 100 >= percent) continue;
            mask[i / 64] |= (uint64_t)1 << i % 64;
            is_any = true;
        }
    const uint32_t first = every_types[EVERY_NUMBER].first_word;
    for (uint32_t i = 0; i < view->count && gives_each; i++) {
        change.words[first] = ids[i] % 1000;
        change.words[first + 1] = ids[i] % 777;
        every_write(EVERY_NUMBER, (char *)each + (size_t)number_bytes * i, change.words);
    }
    if (!is_any || by->is_mute) return;
    const quern_view_rows rows = {.mask = mask};
    const quern_component type = every.types.types[change.type];
    const bool has_value = change.has_value || change.kind == EVERY_SET;
    const void *value =
        has_value && change.kind <= EVERY_SET ? every_value_of(change.type, &change, &room) : NULL;
    if (change.kind == EVERY_ADD)
        every_must_record(quern_commands_add_view(by->commands, view, &rows, type, value));
    if (change.kind == EVERY_SET && gives_each)
        every_must_record(quern_commands_set_view_values(by->commands, view, &rows, type, each));
    else if (change.kind == EVERY_SET)
        every_must_record(quern_commands_set_view(by->commands, view, &rows, type, value));
    if (change.kind == EVERY_REMOVE)
        every_must_record(quern_commands_remove_view(by->commands, view, &rows, type));
    if (change.kind == EVERY_DESTROY)
        every_must_record(quern_commands_destroy_view(by->commands, view, &rows));
    if (value != NULL) every_release_value(change.type, &room);
    for (uint32_t i = 0; i < view->count && every.is_modelled; i++) {
        if ((mask[i / 64] >> i % 64 & 1) == 0) continue;
        change.entity = view->entities[i];
        change.features = by->features | every_bit(EVERY_USES_VIEW_COMMAND) | every_feature_of(&change);
        if (gives_each) {
            change.words[first] = ids[i] % 1000;
            change.words[first + 1] = ids[i] % 777;
        }
        every_model_record(&change, false);
    }
}

static void visit_rows(run_of *run, const quern_view *view, uint32_t act_percent)
{
    const uint64_t *ids = quern_view_read(view, 0);
    const void *bases[EVERY_TYPES];
    quern_row_range range = {0};
    /* The views of a system with an order have few rows each. */
    const uint64_t one_of = run->terms->order > 0 ? ids[0] % 8 : 0,
                   bits = every_mix(every.seed ^ every_mix(every.frame + run->salt * 31));
    const bool has_view_command = one_of == 0 && bits % 100 < 25, is_early = bits / 100 % 2 != 0;
    find_columns(run, view, bases);
    if (has_view_command && is_early) command_view(run, view, ids);
    while (quern_view_next_range(view, &range))
        for (uint32_t i = range.first; i < range.first + range.count; i++) {
            int entity = EVERY_NONE;
            if (every.is_modelled && run->system != EVERY_NONE)
                entity = every_model_visit((uint32_t)run->system, view->entities[i], ids[i]);
            if (every.is_modelled && run->system == EVERY_NONE) {
                every_model_learn(view->entities[i], ids[i]);
                entity = every_model_find_id(ids[i]);
            }
            begin_row(run, ids[i]);
            atomic_fetch_add_explicit(&every.observed, every_mix(ids[i] ^ run->salt), memory_order_relaxed);
            use_columns(run, view, i, ids[i], entity, bases);
            if (run->terms->has_up) use_up(run, view, i, ids[i], entity);
            if (random_chance(&run->by.random, act_percent)) every_act(&run->by, view->entities[i]);
        }
    if (has_view_command && !is_early) command_view(run, view, ids);
}

/* The further query of each plain system; only reads. */
static every_terms further[EVERY_SYSTEMS];

/* Returns the type whose first word sorts the system's further query, or EVERY_TYPES if it has no order. */
static uint32_t order_of(uint32_t system)
{
    const every_terms *terms = &further[system];
    const uint32_t types = terms->with & terms->reads & ~(BIT(EVERY_HOOKED) | BIT(EVERY_LIST));
    uint32_t type = 0;
    if (terms->is_whole || system % 4 == 3) return EVERY_TYPES;
    while (type < EVERY_TYPES && (!every_has(types, type) || every_types[type].word_count == 0))
        type++;
    return type < EVERY_TYPES ? type : EVERY_ID;
}

static bool asks_index(uint32_t system)
{
    return system < PLAIN_SYSTEMS && !every_has(every_system_terms[system].writes, EVERY_NUMBER);
}

/* Compares what the index finds for some values with the model, in a system that does not write them. */
static void ask_index(quern_context *context, uint32_t system)
{
    const every_terms with_number = {.with = BIT(EVERY_NUMBER)};
    const uint32_t word = every_types[EVERY_NUMBER].first_word;
    random_source random = {every.seed * 31 + every.frame * 7 + system};
    for (uint32_t i = 0; i < 6; i++) {
        const quern_entity *found;
        uint64_t value = random_below(&random, 10);
        uint32_t expected = 0;
        if (every.is_modelled) {
            const int entity = (int)random_below(&random, every_model_count());
            if (every_model_matches(&with_number, entity)) value = every_model_at(entity)->now.words[word];
        }
        const uint32_t count = quern_context_find(context, every_own.number_index, value, &found);
        if (!every.is_modelled) continue;
        for (int k = 0; k < (int)every_model_count(); k++)
            expected += every_model_matches(&with_number, k) && every_model_at(k)->now.words[word] == value;
        cr_assert_eq(count, expected, "seed %llu, frame %llu: index in system %u",
                     (unsigned long long)every.seed, (unsigned long long)every.frame, system);
        for (uint32_t k = 0; k < count; k++) {
            const int entity = every_model_find(found[k]);
            if (k > 0) cr_assert_lt(quern_entity_index(found[k - 1]), quern_entity_index(found[k]));
            if (entity == EVERY_NONE) continue; /* no view has shown its handle */
            cr_assert_eq(every_model_at(entity)->now.words[word], value);
            every_model_at(entity)->features |= every_bit(EVERY_USES_INDEX);
        }
    }
}

/* Where a handle stands in an order of entities. */
static uint64_t place_of(quern_entity entity)
{
    const uint64_t use_count =
        quern_entity_is_null(entity) ? 0 : quern_entity_use_count(every.world, entity);
    return use_count == 0 ? 0 : (uint64_t)quern_entity_index(entity) << 32 | use_count;
}

/* Returns the first word of a value, by which rows are sorted. */
static uint64_t read_key(uint32_t type, const uint64_t *ids, const void *base, uint32_t row)
{
    uint64_t words[EVERY_WORDS] = {ids[row]};
    if (type != EVERY_ID)
        every_read(type, (const char *)base + (size_t)every_value_bytes(type) * row, words);
    const uint64_t word = words[every_types[type].first_word];
    return type == EVERY_LINK ? place_of((quern_entity){word}) : word;
}

/* Reads the rows of the system's further query, and compares them with those that the model selects. */
static void visit_further(quern_context *context, uint32_t system)
{
    quern_term unused[QUERN_MAX_TERMS];
    run_of run = {.terms = &further[system], .system = EVERY_NONE, .reaction = EVERY_NONE};
    uint32_t seen = 0, expected = 0;
    const uint32_t order = order_of(system);
    uint64_t last = system % 2 == 0 ? 0 : UINT64_MAX;
    run.columns = list_terms(run.terms, unused);
    quern_query_iterator it = quern_context_query(context, 0);
    while (quern_query_next(&it)) {
        const uint64_t *ids = quern_view_read(&it.view, 0);
        const void *bases[EVERY_TYPES];
        quern_row_range range = {0};
        find_columns(&run, &it.view, bases);
        while (quern_view_next_range(&it.view, &range))
            for (uint32_t i = range.first; i < range.first + range.count; i++, seen++) {
                int entity = EVERY_NONE;
                if (order != EVERY_TYPES) {
                    const uint64_t key = read_key(order, ids, bases[order], i);
                    cr_assert(system % 2 == 0 ? key >= last : key <= last);
                    last = key;
                }
                if (every.is_modelled) {
                    every_model_learn(it.view.entities[i], ids[i]);
                    entity = every_model_find_id(ids[i]);
                    cr_assert(every_model_matches(run.terms, entity));
                    if (order != EVERY_TYPES)
                        every_model_at(entity)->features |= every_bit(EVERY_USES_ORDER);
                    every_model_at(entity)->features |= every_bit(EVERY_USES_FURTHER_QUERY);
                }
                use_columns(&run, &it.view, i, ids[i], entity, bases);
                if (run.terms->has_up) use_up(&run, &it.view, i, ids[i], entity);
            }
    }
    cr_assert_eq(it.result, QUERN_OK);
    for (int i = 0; every.is_modelled && i < (int)every_model_count(); i++)
        expected += every_model_matches(run.terms, i);
    if (every.is_modelled)
        cr_assert_eq(seen, expected, "seed %llu, frame %llu: further query of system %u",
                     (unsigned long long)every.seed, (unsigned long long)every.frame, system);
}

/* What a system with an order has visited in the frame. Only the views with ordinal 0 write it, and in runs on one thread
 * all. */
static struct {
    bool has_begun, has_key;
    uint64_t key; /* of the last row */
} ordered[PLAIN_SYSTEMS];

static void begin_ordered(quern_context *context)
{
    const uint32_t system = (uint32_t)(uintptr_t)quern_context_user_data(context);
    ordered[system].has_begun = ordered[system].has_key = false;
}

static void check_order(const run_of *run, const quern_view *view, uint32_t system)
{
    const uint32_t type = run->terms->order - 1;
    const uint64_t *ids = quern_view_read(view, 0);
    const void *bases[EVERY_TYPES];
    quern_row_range range = {0};
    find_columns(run, view, bases);
    while (quern_view_next_range(view, &range))
        for (uint32_t i = range.first; i < range.first + range.count; i++) {
            const uint64_t key = read_key(type, ids, bases[type], i);
            const uint64_t last = ordered[system].key;
            cr_assert(!ordered[system].has_key || (system % 2 == 0 ? key >= last : key <= last),
                      "seed %llu, frame %llu: system %u visits %llu after %llu",
                      (unsigned long long)every.seed, (unsigned long long)every.frame, system,
                      (unsigned long long)key, (unsigned long long)last);
            ordered[system].has_key = true;
            ordered[system].key = key;
        }
}

static void run_plain(quern_context *context, const quern_view *view)
{
    const uint32_t system = (uint32_t)(uintptr_t)quern_context_user_data(context);
    /* The views of a piece of an order share an ordinal. */
    const bool is_ordered = every_system_terms[system].order > 0,
               is_first = view->ordinal == 0 && !(is_ordered && ordered[system].has_begun);
    if (is_ordered && is_first) ordered[system].has_begun = true;
    if (every.is_modelled) every_model_enter_system(system);
    if (is_first) visit_further(context, system);
    if (is_first && asks_index(system)) ask_index(context, system);
    every_resources_check(context, &every_system_terms[system]);
    run_of run = begin_run(context, &every_system_terms[system], 100 + system);
    run.system = (int)system;
    run.by.is_by_level = every_system_terms[system].is_by_level;
    run.by.ordinal = view->ordinal;
    if (every.is_modelled && run.terms->order > 0) check_order(&run, view, system);
    visit_rows(&run, view, 7);
}

static void put_resource(quern_context *context, uint32_t system, uint32_t resource)
{
    random_source random = {every_mix(every.seed ^ every_mix(every.frame * 41 + system))};
    every_resource_write((int)system, resource,
                         quern_context_resource_write(context, every.types.resources[resource]), &random);
}

static void end_plain(quern_context *context)
{
    const uint32_t system = (uint32_t)(uintptr_t)quern_context_user_data(context);
    if (every.is_modelled) every_model_end_system(system);
    put_resource(context, system, every_system_terms[system].put_resource - 1);
}

/* Climbs from an entity over those with a number, and compares the way with the model. */
static void climb(quern_context *context, quern_entity from)
{
    int at_model = every.is_modelled ? every_model_find(from) : EVERY_NONE;
    QUERN_CLIMB(context, at, from, every.types.relations[EVERY_PARENT], every.types.types[EVERY_NUMBER])
    {
        if (!every.is_modelled) continue;
        while (at_model != EVERY_NONE && !every_has(every_model_at(at_model)->now.set, EVERY_NUMBER))
            at_model = every_model_at(at_model)->targets[EVERY_PARENT];
        cr_assert_neq(at_model, EVERY_NONE);
        if (!quern_entity_is_null(every_model_at(at_model)->handle))
            cr_assert_eq(every_model_at(at_model)->handle.bits, at.bits);
        at_model = every_model_at(at_model)->targets[EVERY_PARENT];
    }
    while (at_model != EVERY_NONE && !every_has(every_model_at(at_model)->now.set, EVERY_NUMBER))
        at_model = every_model_at(at_model)->targets[EVERY_PARENT];
    cr_assert_eq(at_model, EVERY_NONE);
}

/* Writes to other entities, one after another. */
static void run_looking(quern_context *context, const quern_view *view)
{
    const uint64_t *ids = quern_view_read(view, 0);
    if (every.is_modelled) every_model_enter_system(LOOKING);
    run_of run = begin_run(context, &every_system_terms[LOOKING], 100 + LOOKING);
    if (view->ordinal == 0) put_resource(context, LOOKING, 0);
    for (uint32_t i = 0; i < view->count; i++) {
        if (every.is_modelled) every_model_visit(LOOKING, view->entities[i], ids[i]);
        begin_row(&run, ids[i]);
        if (!random_chance(&run.by.random, 20)) continue;
        const quern_entity other = every_pick(&run.by);
        const int entity = every.is_modelled ? every_model_find(other) : EVERY_NONE;
        const bool is_alive = quern_context_is_alive(context, other);
        if (every.is_modelled) cr_assert_eq(is_alive, every_model_at(entity)->is_alive);
        if (!is_alive) continue;
        uint64_t words[EVERY_WORDS];
        void *value = quern_context_lookup_write(context, other, every.types.types[EVERY_NUMBER]);
        const quern_entity parent = quern_context_target(context, other, every.types.relations[0]);
        climb(context, other);
        if (entity != EVERY_NONE) {
            const every_entity *at = every_model_at(entity);
            cr_assert_eq(value != NULL, every_has(at->now.set, EVERY_NUMBER));
            cr_assert_eq(quern_entity_is_null(parent), at->targets[0] == EVERY_NONE);
            every_model_at(entity)->features |= every_bit(EVERY_USES_LOOKUP);
        }
        if (value == NULL) continue;
        every_read(EVERY_NUMBER, value, words);
        observe(ids[i], EVERY_NUMBER, words);
        const uint32_t first = every_types[EVERY_NUMBER].first_word;
        if (entity != EVERY_NONE) cr_assert_eq(words[first], every_model_at(entity)->now.words[first]);
        words[first] += ids[i] % 10;
        every_write(EVERY_NUMBER, value, words);
        if (entity != EVERY_NONE) every_model_write(LOOKING, entity, EVERY_NUMBER, words);
    }
}

static void run_exclusive(quern_context *context, const quern_view *view)
{
    if (every.is_modelled) every_model_enter_system(EXCLUSIVE);
    run_of run = begin_run(context, NULL, 100 + EXCLUSIVE);
    run.by.is_interrupted = true;
    random_source random = {every_mix(every.seed ^ every_mix(every.frame * 43))};
    every_resource_write(EXCLUSIVE, 1, quern_resource_get(every.world, every.types.resources[1]), &random);
    cr_assert_eq(
        quern_event_redefine(every.world, every_own.event, &(quern_event_def){.size_bytes = 4}, NULL, NULL),
        QUERN_ERROR_WORLD_LOCKED);
    every_learn_known(); /* calls for many entities have new ones among them */
    for (uint32_t i = 0; i < 4; i++) {
        actor now = run.by;
        begin_row(&run, i);
        every_act(&run.by, quern_entity_null());
        now.commands = NULL;
        now.context = NULL;
        now.features = every_bit(EVERY_USES_IMMEDIATE);
        now.random.state = run.by.random.state + 1;
        now.id_base = run.by.id_base + 1000;
        every_act(&now, quern_entity_null());
        if (i % 2 == 0) every_act_on_many(&now, random_below(&random, EVERY_MANY_KINDS));
    }
}

/* Processes the events of the frame. */
static void run_reading(quern_context *context, const quern_view *view)
{
    const void *pings = quern_view_events(view);
    if (every.is_modelled) every_model_enter_system(READING);
    for (uint32_t i = 0; i < view->count; i++) {
        const ping seen = every_ping_read(pings, i);
        atomic_fetch_add_explicit(&every.observed, every_mix(seen.id), memory_order_relaxed);
        if (every.is_modelled) every_model_read_event(0, seen.id, seen.entity);
    }
}

static void end_reading(quern_context *context)
{
    if (every.is_modelled) every_model_enter_system(READING);
    if (every.is_modelled) every_model_end_events(0);
}

static void listen_to(ping seen)
{
    atomic_fetch_add_explicit(&every.observed, every_mix(seen.id + 1), memory_order_relaxed);
    if (every.is_modelled) every_model_read_event(1, seen.id, seen.entity);
}

/* Iterates over the events in one callback. */
static void run_listening(quern_context *context, const quern_view *view)
{
    if (every.is_modelled) every_model_enter_system(LISTENING);
    if (every_event_form == 0) {
        QUERN_EACH_EVENT(context, every_own.event, seen, ping) listen_to(*seen);
    } else {
        quern_event_iterator it;
        cr_assert(quern_context_events(context, every_own.event, &it));
        while (quern_event_next(&it))
            for (uint32_t i = 0; i < it.block.count; i++)
                listen_to(every_ping_read(it.block.values, i));
    }
    if (every.is_modelled) every_model_end_events(1);
}

/* How often each reaction has run in this frame. Reactions that act on each other must come to an end. */
uint32_t every_reaction_runs[EVERY_REACTIONS];
enum { MOST_ACTING_RUNS = 4 };

static void begin_reaction(quern_context *context)
{
    every_reaction_runs[(uintptr_t)quern_context_user_data(context)]++;
}

static void run_reaction(quern_context *context, const quern_view *view)
{
    const uint32_t reaction = (uint32_t)(uintptr_t)quern_context_user_data(context);
    const every_terms *terms = &every_reaction_terms[reaction];
    const uint32_t kind = quern_context_reaction(context);
    const uint64_t *ids = quern_view_read(view, 0);
    const void *bases[EVERY_TYPES];
    quern_term unused[QUERN_MAX_TERMS];
    if (every.is_modelled) every_model_enter_reaction(reaction);
    every_resources_check(context, terms);
    run_of run = begin_run(context, terms, 200 + reaction + 1000 * every_reaction_runs[reaction]);
    run.columns = list_terms(terms, unused);
    run.reaction = (int)reaction;
    every_terms seen = *terms;
    if (kind == QUERN_REACT_REMOVED) { /* copies are to read */
        seen.reads |= seen.writes;
        seen.writes = 0;
    }
    run.terms = &seen;
    find_columns(&run, view, bases);
    const void *olds =
        terms->old_type > 0 && kind == QUERN_REACT_SET ? quern_view_read(view, run.columns.old) : NULL;
    for (uint32_t i = 0; i < view->count; i++) {
        uint64_t words[EVERY_WORDS] = {ids[i]}, old[EVERY_WORDS] = {0};
        uint32_t set = 0;
        int entity = EVERY_NONE;
        for (uint32_t t = 1; t < EVERY_TYPES; t++)
            if (bases[t] != NULL && kind == QUERN_REACT_REMOVED) {
                set |= BIT(t);
                const uint32_t bytes = every_value_bytes(t);
                every_read(t, (const char *)bases[t] + (size_t)bytes * i, words);
            }
        if (olds != NULL) {
            const uint32_t type = terms->old_type - 1;
            uint64_t all[EVERY_WORDS];
            every_read(type, (const char *)olds + (size_t)every_value_bytes(type) * i, all);
            memcpy(old, &all[every_types[type].first_word], 2 * sizeof *old);
        }
        atomic_fetch_add_explicit(&every.observed, every_mix(ids[i] ^ kind ^ every_mix(reaction)),
                                  memory_order_relaxed);
        if (every.is_modelled)
            entity = every_model_visit_reaction(reaction, kind, view->entities[i], ids[i], set, words,
                                                olds != NULL ? old : NULL);
        begin_row(&run, ids[i] + kind);
        if (kind != QUERN_REACT_REMOVED) use_columns(&run, view, i, ids[i], entity, bases);
        if (terms->has_up) use_up(&run, view, i, ids[i], entity);
        if (random_chance(&run.by.random, 6) && every_reaction_runs[reaction] <= MOST_ACTING_RUNS)
            every_act(&run.by, kind == QUERN_REACT_REMOVED ? quern_entity_null() : view->entities[i]);
    }
}

/* ------------------------------------------------------------------------------------ drawing systems */

static uint32_t draw_type(random_source *random)
{
    uint32_t type = 1 + random_below(random, EVERY_TYPES - 2);
    while (type == EVERY_HOOKED && !every.has_hooks)
        type = 1 + random_below(random, EVERY_TYPES - 2);
    return type;
}

static uint32_t draw_up_relation(random_source *random)
{
    static const uint32_t likely[] = {EVERY_PARENT, EVERY_HOME, EVERY_LOCK, EVERY_SHARED, EVERY_SHARED};
    return likely[random_below(random, COUNT_OF(likely))];
}

static void draw_terms(every_terms *terms, random_source *random, bool is_reaction)
{
    memset(terms, 0, sizeof *terms);
    for (uint32_t i = random_below(random, 3) + is_reaction; i > 0; i--)
        terms->with |= BIT(draw_type(random));
    if (random_chance(random, 25)) terms->without = BIT(draw_type(random)) & ~terms->with;
    if (random_chance(random, 30))
        terms->optional = BIT(draw_type(random)) & ~terms->with & ~terms->without;
    if (random_chance(random, 25)) {
        terms->any = BIT(draw_type(random)) | BIT(draw_type(random)) | BIT(draw_type(random));
        terms->any &= ~(terms->with | terms->without | terms->optional);
    }
    if (random_chance(random, 15))
        terms->with |= BIT(EVERY_OFF);
    else if (random_chance(random, 20))
        terms->optional |= BIT(EVERY_OFF);
    for (uint32_t t = 1; t < EVERY_TYPES; t++) {
        if (every_types[t].can_disable && every_has(terms->with, t) && !is_reaction)
            terms->enabled[t] = (quern_term_enabled)random_below(random, 3);
        if (every_types[t].word_count == 0) continue;
        if (every_has(terms->with | terms->optional | terms->any, t) && random_chance(random, 75))
            terms->reads |= BIT(t);
        if (every_has(terms->with, t) && random_chance(random, 35)) terms->writes |= BIT(t);
    }
    if (random_chance(random, 20)) terms->tie = 1 + random_below(random, EVERY_RELATIONS);
    if (is_reaction) {
        terms->triggers = 1 + random_below(random, 7);
        if (terms->triggers == QUERN_REACT_REMOVED) terms->writes = 0;
        for (uint32_t t = 1; t < EVERY_TYPES && (terms->triggers & QUERN_REACT_SET) != 0; t++)
            if (every_has(terms->with, t) && every_types[t].word_count > 0 && t != EVERY_HOOKED &&
                t != EVERY_LIST && random_chance(random, 60))
                terms->old_type = t + 1;
        if ((terms->triggers & QUERN_REACT_REMOVED) == 0 && random_chance(random, 40)) {
            terms->has_up = terms->up_is_optional = true;
            terms->up_type = EVERY_NUMBER;
            terms->up_relation = draw_up_relation(random);
            terms->up_is_nearest = terms->up_relation < 2 && random_chance(random, 50);
            terms->writes &= ~BIT(terms->up_type);
        }
        return;
    }
    if (random_chance(random, 35)) {
        terms->has_up = true;
        terms->up_relation = draw_up_relation(random);
        terms->up_is_nearest = terms->up_relation < 2 && random_chance(random, 50);
        terms->up_is_optional = random_chance(random, 50);
        static const uint32_t valued[] = {EVERY_NUMBER, EVERY_LINK, EVERY_MODE, EVERY_NEED, EVERY_GIVEN};
        terms->up_type = valued[random_below(random, COUNT_OF(valued))];
        terms->writes &= ~BIT(terms->up_type);
    }
    for (uint32_t t = 1; t < EVERY_TYPES && random_chance(random, 40); t++)
        if (every_has(terms->with, t) && every_types[t].word_count > 0) terms->filter_type = t + 1;
    terms->is_whole = random_chance(random, 30);
}

/* Returns the type that sorts the rows of a system, + 1, or 0. */
static uint32_t draw_order(const every_terms *terms, uint32_t system)
{
    const uint32_t types = terms->with & terms->reads & ~(BIT(EVERY_HOOKED) | BIT(EVERY_LIST));
    if (terms->is_whole || terms->filter_type > 0 || terms->by_target || terms->is_by_level ||
        every_mix(every.seed * 31 + system) % 100 < 60)
        return 0;
    for (uint32_t t = 1; t < EVERY_TYPES; t++)
        if (every_has(types, t) && every_types[t].word_count > 0) return t + 1;
    return EVERY_ID + 1;
}

/* A system cannot read by its further query what its own rows write. */
static void separate_queries(uint32_t s)
{
    const uint32_t written = every_system_terms[s].writes;
    every_terms *terms = &further[s];
    terms->writes = terms->filter_type = 0;
    terms->with &= ~written;
    terms->without &= ~written;
    terms->optional &= ~written;
    terms->any &= ~written;
    terms->reads &= ~written;
    terms->has_up = terms->has_up && !every_has(written, terms->up_type);
}

static void draw_sets(uint32_t s, random_source *random)
{
    every_system_terms[s].sets = 0;
    for (uint32_t set = 0; set < EVERY_SETS; set++)
        if (random_chance(random, 25)) every_system_terms[s].sets |= BIT(set);
}

static void draw_resources(uint32_t s, random_source *random)
{
    every_terms *terms = &every_system_terms[s];
    terms->uses_resources = random_below(random, 1 << EVERY_RESOURCES);
    terms->watched = s % 4 == 1 ? 1 + random_below(random, (1 << EVERY_RESOURCES) - 1) : 0;
    terms->put_resource = random_chance(random, 25) ? 1 + random_below(random, EVERY_RESOURCES) : 0;
}

void every_draw_program(void)
{
    random_source random = {every.seed * 7919};
    every.has_hooks = every.seed % 3 == 0;
    for (uint32_t s = 0; s < PLAIN_SYSTEMS; s++) {
        draw_terms(&every_system_terms[s], &random, false);
        every_system_phases[s] = s < PLAIN_SYSTEMS / 2 ? 0 : 2;
        draw_terms(&further[s], &random, false);
    }
    /* one that carries values from parents to children, and one with the sources of a target */
    every_system_terms[LEVEL_SYSTEM] = (every_terms){.with = BIT(EVERY_NUMBER),
                                                     .reads = BIT(EVERY_NUMBER),
                                                     .writes = BIT(EVERY_NUMBER),
                                                     .has_up = true,
                                                     .up_type = EVERY_NUMBER,
                                                     .up_is_optional = true,
                                                     .is_by_level = true};
    static const uint32_t target_relations[] = {EVERY_PARENT, EVERY_HOME, EVERY_LIKES, EVERY_RING,
                                                EVERY_SHARED};
    every_system_terms[TARGET_SYSTEM] = (every_terms){.optional = BIT(EVERY_NUMBER),
                                                      .reads = BIT(EVERY_NUMBER),
                                                      .tie = 1 + target_relations[every.seed % 5],
                                                      .by_target = true};
    for (uint32_t s = 0; s < PLAIN_SYSTEMS; s++)
        every_system_terms[s].order = draw_order(&every_system_terms[s], s);
    for (uint32_t s = 0; s < PLAIN_SYSTEMS; s++)
        separate_queries(s);
    memset(&every_system_terms[LOOKING], 0, sizeof every_system_terms[LOOKING]);
    every_system_phases[LOOKING] = every.seed % 2 == 0 ? 0 : 2;
    every_system_phases[TARGET_SYSTEM] = every.seed / 2 % 2 == 0 ? 0 : 2;
    for (uint32_t s = EXCLUSIVE; s < EVERY_SYSTEMS; s++) { /* these have no rows */
        every_system_terms[s] = (every_terms){.with = BIT(EVERY_ID), .without = BIT(EVERY_ID)};
        every_system_phases[s] = s == EXCLUSIVE ? EXCLUSIVE_PHASE : 2;
    }
    for (uint32_t s = 0; s < PLAIN_SYSTEMS; s++)
        draw_resources(s, &random);
    every_system_terms[LISTENING].watched = 1; /* skips frames; events wait for it */
    for (uint32_t s = 0; s < EVERY_SYSTEMS; s++)
        draw_sets(s, &random);
    for (uint32_t r = 0; r < EVERY_REACTIONS; r++) {
        draw_terms(&every_reaction_terms[r], &random, true);
        every_reaction_terms[r].uses_resources = random_below(&random, 1 << EVERY_RESOURCES);
    }
}

/* Draws other terms of a system. Returns false, with nothing drawn, for the two systems with fixed terms. */
bool every_redraw_system(uint32_t s, random_source *random)
{
    if (s == LEVEL_SYSTEM || s == TARGET_SYSTEM) return false;
    draw_terms(&every_system_terms[s], random, false);
    draw_terms(&further[s], random, false);
    every_system_terms[s].order = draw_order(&every_system_terms[s], s);
    separate_queries(s);
    draw_resources(s, random);
    draw_sets(s, random);
    return true;
}

/* Draws other terms and kinds of a reaction. */
void every_redraw_reaction(uint32_t r, random_source *random)
{
    every_terms *terms = &every_reaction_terms[r];
    draw_terms(terms, random, true);
    terms->uses_resources = random_below(random, 1 << EVERY_RESOURCES);
    if ((terms->triggers & QUERN_REACT_ADDED) != 0 && random_chance(random, 30))
        terms->triggers |= QUERN_REACT_PRESENT;
}

static void declare_resources(const every_terms *terms, quern_system_def *def)
{
    uint32_t count = 0, watched_count = 0;
    for (uint32_t r = 0; r < EVERY_RESOURCES; r++) {
        const quern_resource resource = every.types.resources[r];
        if (terms->put_resource == r + 1)
            def->resources[count++] = (quern_resource_access){resource, QUERN_ACCESS_WRITE};
        else if (every_has(terms->uses_resources, r))
            def->resources[count++] = (quern_resource_access){resource, QUERN_ACCESS_READ};
        if (every_has(terms->watched, r)) def->if_changed[watched_count++] = resource;
    }
}

static const char *const set_names[EVERY_SETS] = {"switched", "asked"};

static bool ask(quern_context *context)
{
    const void *value = quern_context_resource(context, every.types.resources[0]);
    const uint64_t read = every_resource_read(0, value).value;
    atomic_fetch_add_explicit(&every.observed, every_mix(read), memory_order_relaxed);
    return every_asked_runs(read);
}

quern_set_def every_def_of_set(uint32_t set)
{
    quern_set_def def = {.name = set_names[set]};
    if (set == EVERY_ASKED) {
        def.condition = ask;
        def.resources[0] = (quern_resource_access){every.types.resources[0], QUERN_ACCESS_READ};
    }
    return def;
}

quern_system_def every_def_of_system(uint32_t s)
{
    static char name[16];
    snprintf(name, sizeof name, "system %u", (unsigned)s);
    quern_system_def def = system_def(name, run_plain);
    def.phase = every_system_phases[s];
    def.user_data = (void *)(uintptr_t)s;
    def.emits[0] = every_own.event;
    if (s == LOOKING) {
        def.run = run_looking;
        def.terms[0] = quern_term_read(every.types.types[EVERY_ID]);
        def.write_lookups[0].component = every.types.types[EVERY_NUMBER];
        def.relations[0] = every.types.relations[0];
        def.resources[0] = (quern_resource_access){every.types.resources[0], QUERN_ACCESS_WRITE};
    } else if (s == EXCLUSIVE) {
        def.run = run_exclusive;
        def.flags = QUERN_SYSTEM_EXCLUSIVE;
    } else if (s == READING) {
        def.run = run_reading;
        def.end = end_reading;
        def.items = every_own.event;
    } else if (s == LISTENING) {
        def.run = run_listening;
        def.reads_events[0] = every_own.event;
    } else {
        every_terms terms = every_system_terms[s];
        terms.target = quern_entity_null(); /* chosen later, by choose_target */
        list_terms(&terms, def.terms);
        if (terms.order > 0) {
            def.begin = begin_ordered;
            def.order_by = (quern_order){.component = every.types.types[terms.order - 1],
                                         .field = "word0",
                                         .descending = s % 2 != 0};
        }
        if (every_system_terms[s].is_whole) def.flags |= QUERN_SYSTEM_WHOLE_CHUNKS;
        if (every_system_terms[s].is_by_level) def.levels = every.types.relations[0];
        list_terms(&further[s], def.queries[0].terms);
        def.queries[0].whole_chunks = further[s].is_whole;
        if (order_of(s) != EVERY_TYPES)
            def.queries[0].order_by = (quern_order){
                .component = every.types.types[order_of(s)], .field = "word0", .descending = s % 2 != 0};
        if (asks_index(s)) def.indexes[0] = every_own.number_index;
        if (every_system_terms[s].put_resource > 0) def.end = end_plain;
    }
    if (s != LOOKING) declare_resources(&every_system_terms[s], &def);
    for (uint32_t set = 0, count = 0; set < EVERY_SETS; set++)
        if (every_has(every_system_terms[s].sets, set)) def.sets[count++] = set_names[set];
    return def;
}

quern_system_def every_def_of_reaction(uint32_t r)
{
    static char name[16];
    snprintf(name, sizeof name, "reaction %u", (unsigned)r);
    quern_system_def def = system_def(name, run_reaction);
    def.begin = begin_reaction;
    def.user_data = (void *)(uintptr_t)r;
    def.emits[0] = every_own.event;
    def.reacts_to = every_reaction_terms[r].triggers;
    list_terms(&every_reaction_terms[r], def.terms);
    declare_resources(&every_reaction_terms[r], &def);
    return def;
}

/* Adds a system, or reaction, as the last one. */
void every_add_system(uint32_t number)
{
    const bool is_reaction = number >= EVERY_SYSTEMS;
    const quern_system_def def =
        is_reaction ? every_def_of_reaction(number - EVERY_SYSTEMS) : every_def_of_system(number);
    const quern_system added = setup_system(every.schedule, &def);
    uint32_t count = 0;
    if (is_reaction)
        every_own.reactions[number - EVERY_SYSTEMS] = added;
    else
        every_own.systems[number] = added;
    for (uint32_t i = 0; i < every_own.order_count; i++)
        if (every_own.order[i] != number) every_own.order[count++] = every_own.order[i];
    every_own.order[count++] = number;
    every_own.order_count = count;
}

void every_run_parallel(quern_context *context, const quern_view *view)
{
    static const every_terms no_terms;
    run_of run = begin_run(context, &no_terms, 300);
    run.by.features = every_bit(EVERY_USES_PARALLEL_QUERY);
    run.by.context = NULL; /* parallel queries have no events */
    visit_rows(&run, view, 4);
}
