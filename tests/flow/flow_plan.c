/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "tests/flow/flow_plan.h"

#include <quern/schedule.h>

#include <stdio.h>
#include <string.h>

const flow_type flow_types[FLOW_TYPE_COUNT] = {
    {"mass", 1, 0, 8, 0},   {"wide", 64, 0, 8, 1},      {"link", 2, 1, 8, 65},     {"tag", 0, 0, 1, 67},
    {"state", 4, 0, 8, 67}, {"other_tag", 0, 0, 1, 71}, {"broad", 128, 0, 64, 71}, {"pair", 3, 2, 8, 199},
};

void flow_mix_in(const flow_type *type, uint64_t *words, const uint64_t *others)
{
    for (uint32_t i = 0; i < type->word_count; i++)
        words[i] = i < type->link_count ? others[i] : flow_mix(words[i]) + others[i];
}

/* ------------------------------------------------------------------------------------------- terms */

static quern_match random_match(random_source *random)
{
    uint32_t roll = random_below(random, 100);
    if (roll < 60) return QUERN_MATCH_ALL;
    if (roll < 75) return QUERN_MATCH_OPTIONAL;
    return roll < 90 ? QUERN_MATCH_ANY : QUERN_MATCH_NONE;
}

static quern_access random_access(random_source *random)
{
    uint32_t roll = random_below(random, 100);
    if (roll < 15) return QUERN_ACCESS_NONE;
    return roll < 55 ? QUERN_ACCESS_READ : QUERN_ACCESS_WRITE;
}

static void choose_terms(flow_system *system, random_source *random)
{
    uint32_t count = random_chance(random, 5) ? 0 : 1 + random_below(random, 3);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t type = random_below(random, FLOW_TYPE_COUNT);
        quern_match match = random_match(random);
        bool touches = match != QUERN_MATCH_NONE && flow_types[type].word_count > 0;
        system->terms[type] = (flow_term){
            .used = true, .match = match, .access = touches ? random_access(random) : QUERN_ACCESS_NONE};
    }
}

bool flow_system_has_terms(const flow_system *system)
{
    for (uint32_t type = 0; type < FLOW_TYPE_COUNT; type++)
        if (system->terms[type].used) return true;
    return false;
}

static void choose_resources(flow_system *system, random_source *random)
{
    for (uint32_t i = 0; i < FLOW_RESOURCE_COUNT; i++) {
        uint32_t roll = random_below(random, 100);
        system->resources[i] = roll < 70   ? QUERN_ACCESS_NONE
                               : roll < 84 ? QUERN_ACCESS_READ
                               : roll < 90 ? QUERN_ACCESS_WRITE
                                           : QUERN_ACCESS_WRITE_CONCURRENT;
    }
}

static bool is_serial(const flow_system *system)
{
    bool serial = system->flags != 0;
    for (uint32_t i = 0; i < FLOW_RESOURCE_COUNT; i++)
        serial |= system->resources[i] == QUERN_ACCESS_WRITE;
    for (uint32_t type = 0; type < FLOW_TYPE_COUNT; type++)
        serial |= system->lookups[type].writes;
    return serial;
}

static void choose_restriction(flow_lookup *lookup, uint32_t type, random_source *random)
{
    lookup->with = lookup->without = FLOW_TYPE_COUNT;
    if (random_chance(random, 30)) lookup->with = random_below(random, FLOW_TYPE_COUNT);
    if (random_chance(random, 30)) lookup->without = random_below(random, FLOW_TYPE_COUNT);
    if (lookup->without == type || lookup->without == lookup->with) lookup->without = FLOW_TYPE_COUNT;
}

/* Restricts the lookup to entities that cannot be in views of the system. Returns false if there is no
 * such entity. */
static bool restrict_to_other_entities(const flow_system *system, flow_lookup *lookup)
{
    for (uint32_t type = 0; type < FLOW_TYPE_COUNT; type++) {
        const flow_term *term = &system->terms[type];
        if (!term->used || (term->match != QUERN_MATCH_NONE && term->match != QUERN_MATCH_ALL)) continue;
        lookup->with = term->match == QUERN_MATCH_NONE ? type : FLOW_TYPE_COUNT;
        lookup->without = term->match == QUERN_MATCH_ALL ? type : FLOW_TYPE_COUNT;
        return true;
    }
    return false;
}

/* A system with parallel views must not look up a component that it writes in its views. */
static void choose_lookups(flow_system *system, random_source *random)
{
    for (uint32_t i = random_below(random, 3); i > 0; i--) {
        uint32_t type = random_below(random, FLOW_TYPE_COUNT);
        flow_lookup lookup = {.used = true};
        bool writes = system->terms[type].used && system->terms[type].access == QUERN_ACCESS_WRITE;
        lookup.writes = flow_types[type].word_count > 0 && random_chance(random, 15);
        choose_restriction(&lookup, type, random);
        const bool is_allowed = !writes || lookup.writes || is_serial(system) ||
                                (restrict_to_other_entities(system, &lookup) && lookup.without != type);
        if (is_allowed && !system->lookups[type].used) system->lookups[type] = lookup;
    }
}

/* ------------------------------------------------------------------------------------------ systems */

/* Makes the system exclusive: without terms, and with write access to resource 0, in which it stores an
 * entity. */
static void make_exclusive(flow_system *system)
{
    memset(system->terms, 0, sizeof system->terms);
    system->flags = QUERN_SYSTEM_EXCLUSIVE;
    system->has_partial = false;
    system->resources[0] = QUERN_ACCESS_WRITE;
}

/* Adds flags, resources and lookups, which keep systems from sharing a pass. */
static void choose_more_access(flow_system *system, random_source *random)
{
    if (random_chance(random, 12)) system->flags = QUERN_SYSTEM_SERIAL;
    if (random_chance(random, 10)) system->flags = QUERN_SYSTEM_MAIN_THREAD;
    choose_resources(system, random);
    if (random_chance(random, 10)) make_exclusive(system);
    choose_lookups(system, random);
}

/* Half of the systems get no condition and no interval and are never disabled: they run whenever their
 * phase does. */
static void choose_times(flow_system *system, random_source *random)
{
    if (random_chance(random, 50)) return;
    if (random_chance(random, 50)) system->condition_percent = 20 + random_below(random, 70);
    if (random_chance(random, 40)) system->interval_ticks = 1 + random_below(random, 40);
    if (random_chance(random, 40)) system->disabled_percent = 10 + random_below(random, 60);
}

static void choose_system(const flow_plan *plan, flow_system *system, uint32_t index, random_source *random)
{
    memset((void *)system, 0, sizeof *system);
    snprintf(system->name, sizeof system->name, "s%u", index);
    system->phase = random_below(random, FLOW_PHASE_COUNT);
    system->salt = random_next(random);
    system->change_permille = random_below(random, random_chance(random, 25) ? 400 : 50);
    for (uint32_t i = 0; i < FLOW_SPAWN_COUNT; i++)
        system->spawn_sets[i] = plan->sets[random_below(random, FLOW_SET_COUNT)];
    system->has_begin = random_chance(random, 30);
    system->has_end = random_chance(random, 50);
    system->has_partial = system->has_end && random_chance(random, 80);
    choose_terms(system, random);
    if (!random_chance(random, plan->plain_percent)) choose_more_access(system, random);
    choose_times(system, random);
}

static void choose_phases(flow_plan *plan, random_source *random)
{
    for (uint32_t i = 0; i < FLOW_PHASE_COUNT; i++)
        if (random_chance(random, 30))
            plan->phases[i] = (flow_phase){4 + random_below(random, 16), 1 + random_below(random, 3)};
}

/* Adds rules without cycles: all of them agree with one random order of the systems, in which ranks[i]
 * is the rank of system i. */
static void choose_rules(flow_plan *plan, random_source *random)
{
    uint64_t ranks[FLOW_MAX_SYSTEMS];
    for (uint32_t i = 0; i < plan->system_count; i++)
        ranks[i] = random_next(random);
    for (uint32_t i = 0; i < plan->system_count; i++) {
        uint32_t other = random_below(random, plan->system_count);
        flow_system *system = &plan->systems[i];
        if (other == i || plan->systems[other].phase != system->phase) continue;
        if (ranks[i] < ranks[other])
            system->before[system->before_count++] = other;
        else
            system->after[system->after_count++] = other;
    }
}

/* -------------------------------------------------------------------------------------------- calls */

static void choose_call(const flow_plan *plan, flow_call *call, random_source *random)
{
    flow_system *system = &call->system;
    call->kind = random_below(random, FLOW_CALL_KIND_COUNT);
    call->run_percent = 40 + random_below(random, 60);
    call->flush_percent = random_below(random, 50);
    system->salt = random_next(random);
    system->change_permille = random_below(random, 300);
    for (uint32_t i = 0; i < FLOW_SPAWN_COUNT; i++)
        system->spawn_sets[i] = plan->sets[random_below(random, FLOW_SET_COUNT)];
    while (!flow_system_has_terms(system))
        choose_terms(system, random);
}

/* ------------------------------------------------------------------------------------------ the plan */

/* In every third plan a type is the library's disabled tag. */
static void choose_disabled(flow_plan *plan)
{
    plan->has_disabled = plan->seed % 3 == 1;
    for (uint32_t i = 0; i < plan->system_count; i++)
        plan->systems[i].excludes_disabled =
            plan->has_disabled && !plan->systems[i].terms[FLOW_DISABLED_TYPE].used;
    for (uint32_t i = 0; i < plan->call_count; i++)
        plan->calls[i].system.excludes_disabled =
            plan->has_disabled && !plan->calls[i].system.terms[FLOW_DISABLED_TYPE].used;
}

/* In every third plan some small types can be disabled, one with links and a tag among them. */
static void choose_toggles(flow_plan *plan)
{
    random_source random = {plan->seed ^ 0xB175};
    if (plan->seed % 3 != 2) return;
    plan->can_disable = 1u << 0 | 1u << 2 | 1u << 3 | 1u << 4;
    for (uint32_t i = 0; i < plan->system_count + plan->call_count; i++) {
        flow_system *system =
            i < plan->system_count ? &plan->systems[i] : &plan->calls[i - plan->system_count].system;
        system->can_disable = plan->can_disable;
        system->whole_chunks = random_chance(&random, 40);
        for (uint32_t type = 0; type < FLOW_TYPE_COUNT; type++) {
            flow_term *term = &system->terms[type];
            if (!term->used || (plan->can_disable >> type & 1) == 0) continue;
            const uint32_t roll = random_below(&random, 100);
            if (roll < 20) term->enabled = QUERN_TERM_EITHER;
            if (roll >= 80 && term->match == QUERN_MATCH_ALL) term->enabled = QUERN_TERM_DISABLED;
        }
    }
}

/* In every second plan, types require earlier types and some have default values. The library's disabled tag takes no
 * part. */
static void choose_required(flow_plan *plan)
{
    random_source random = {plan->seed ^ 0x4EED};
    if (plan->seed % 2 == 0) return;
    const uint32_t excluded = plan->has_disabled ? 1u << FLOW_DISABLED_TYPE : 0;
    for (uint32_t type = 0; type < FLOW_TYPE_COUNT; type++) {
        if ((excluded >> type & 1) != 0) continue;
        if (random_chance(&random, 50))
            plan->listed_required[type] =
                random_below(&random, 1u << type) & random_below(&random, 1u << type) & ~excluded;
        plan->required[type] = plan->listed_required[type];
        for (uint32_t other = 0; other < type; other++)
            if ((plan->listed_required[type] >> other & 1) != 0)
                plan->required[type] |= plan->required[other];
        if (flow_types[type].word_count == 0 || random_chance(&random, 50)) continue;
        plan->has_default |= 1u << type;
        for (uint32_t i = flow_types[type].link_count; i < flow_types[type].word_count; i++)
            plan->defaults[flow_types[type].first_word + i] = random_next(&random);
    }
}

/* Every third system or call with views records commands for its views, often for all rows. */
static void choose_view_commands(flow_plan *plan)
{
    random_source random = {plan->seed ^ 0xF1E1D};
    for (uint32_t i = 0; i < plan->system_count + plan->call_count; i++) {
        flow_system *system =
            i < plan->system_count ? &plan->systems[i] : &plan->calls[i - plan->system_count].system;
        const uint32_t percent = random_chance(&random, 30) ? 100 : random_below(&random, 60);
        if (random_chance(&random, 35) && flow_system_has_terms(system)) system->view_percent = percent;
    }
}

void flow_plan_make(flow_plan *plan, uint64_t seed, uint32_t entity_count)
{
    random_source random = {seed};
    memset((void *)plan, 0, sizeof *plan);
    plan->seed = seed;
    plan->entity_count = entity_count;
    plan->system_count = 8 + random_below(&random, FLOW_MAX_SYSTEMS - 8);
    for (uint32_t i = 0; i < FLOW_SET_COUNT; i++)
        plan->sets[i] = random_below(&random, 1u << FLOW_TYPE_COUNT);
    plan->plain_percent = random_chance(&random, 60) ? 80 : 0;
    for (uint32_t i = 0; i < plan->system_count; i++)
        choose_system(plan, &plan->systems[i], i, &random);
    choose_rules(plan, &random);
    choose_phases(plan, &random);
    plan->call_count = 1 + random_below(&random, FLOW_MAX_CALLS);
    for (uint32_t i = 0; i < plan->call_count; i++)
        choose_call(plan, &plan->calls[i], &random);
    choose_disabled(plan);
    choose_toggles(plan);
    choose_required(plan);
    choose_view_commands(plan);
}

/* Adds filters to terms of the given types (one bit each). With by_row, types that the system writes by
 * lookup get none: whether such a write is new to the system's next views depends on chunks, which the
 * reference does not model. */
static void add_filters(flow_system *system, random_source *random, uint32_t types, bool by_row)
{
    system->marks_rows = random_chance(random, 40);
    for (uint32_t type = 0; type < FLOW_TYPE_COUNT; type++) {
        flow_term *term = &system->terms[type];
        const bool is_fit = (types >> type & 1) != 0 && !(by_row && system->lookups[type].writes);
        term->changed = term->used && term->match != QUERN_MATCH_NONE && is_fit &&
                        random_chance(random, by_row ? 60 : 30);
    }
}

static void add_all_filters(flow_plan *plan, random_source *random, bool by_row)
{
    const uint32_t all = (1u << FLOW_TYPE_COUNT) - 1;
    plan->row_changes = random_below(random, 1u << FLOW_TYPE_COUNT) | 1u << 0 | 1u << 4;
    if (plan->has_disabled) plan->row_changes &= ~(1u << FLOW_DISABLED_TYPE);
    const uint32_t types = by_row ? plan->row_changes : all;
    for (uint32_t i = 0; i < plan->system_count; i++)
        add_filters(&plan->systems[i], random, types, by_row);
    for (uint32_t i = 0; i < plan->call_count; i++)
        add_filters(&plan->calls[i].system, random, types, by_row);
}

void flow_plan_add_filters(flow_plan *plan)
{
    random_source random = {plan->seed ^ 0x5EED};
    add_all_filters(plan, &random, false);
}

void flow_plan_add_row_filters(flow_plan *plan)
{
    random_source random = {plan->seed ^ 0xB0A7};
    add_all_filters(plan, &random, true);
}

void flow_plan_destroy_and_create(flow_plan *plan)
{
    bool has_destroyer[FLOW_PHASE_COUNT] = {false};
    for (uint32_t i = 0; i < plan->system_count; i++) {
        flow_system *system = &plan->systems[i];
        system->destroys_and_creates = true;
        system->only_creates = has_destroyer[system->phase] && system->salt % 16 != 0;
        has_destroyer[system->phase] = true;
    }
    for (uint32_t i = 0; i < plan->call_count; i++)
        plan->calls[i].system.destroys_and_creates = true;
}

uint32_t flow_plan_delta_ticks(const flow_plan *plan, uint64_t frame)
{
    return (uint32_t)(flow_mix(plan->seed ^ flow_mix(frame)) % 25);
}

bool flow_plan_enables(const flow_plan *plan, uint32_t system, uint64_t frame)
{
    const flow_system *it = &plan->systems[system];
    return flow_mix(it->salt + frame) % 100 >= it->disabled_percent;
}

bool flow_call_runs(const flow_call *call, uint64_t frame)
{
    return flow_mix(call->system.salt + 2 * frame) % 100 < call->run_percent;
}

bool flow_call_flushes(const flow_call *call, uint64_t frame)
{
    return flow_mix(call->system.salt + 2 * frame + 1) % 100 < call->flush_percent;
}

uint32_t flow_plan_entity(const flow_plan *plan, uint32_t i, quern_entity first,
                          uint64_t words[FLOW_WORD_COUNT])
{
    uint64_t hash = flow_mix(plan->seed ^ i);
    for (uint32_t word = 0; word < FLOW_WORD_COUNT; word++)
        words[word] = flow_mix(hash + word);
    for (uint32_t type = 0; type < FLOW_TYPE_COUNT; type++)
        for (uint32_t link = 0; link < flow_types[type].link_count; link++)
            words[flow_types[type].first_word + link] =
                i == 0 ? 0 : first.bits + words[flow_types[type].first_word + link] % FLOW_HUB_COUNT % i;
    return plan->sets[hash % FLOW_SET_COUNT];
}

/* ----------------------------------------------------------------------------------------- matching */

bool flow_system_matches(const flow_system *system, uint32_t set)
{
    if (system->excludes_disabled && (set >> FLOW_DISABLED_TYPE & 1) != 0) return false;
    bool wants_any = false, has_any = false;
    for (uint32_t type = 0; type < FLOW_TYPE_COUNT; type++) {
        const flow_term *term = &system->terms[type];
        bool has = (set >> type & 1) != 0;
        if (!term->used) continue;
        if (term->match == QUERN_MATCH_ALL && !has) return false;
        if (term->match == QUERN_MATCH_NONE && has) return false;
        wants_any |= term->match == QUERN_MATCH_ANY;
        has_any |= term->match == QUERN_MATCH_ANY && has;
    }
    return has_any || !wants_any;
}

uint32_t flow_complete(const uint32_t required[FLOW_TYPE_COUNT], uint32_t set)
{
    uint32_t complete = set;
    for (uint32_t type = 0; type < FLOW_TYPE_COUNT; type++)
        if ((set >> type & 1) != 0) complete |= required[type];
    return complete;
}

bool flow_lookup_matches(const flow_lookup *lookup, uint32_t set)
{
    return (lookup->with == FLOW_TYPE_COUNT || (set >> lookup->with & 1) != 0) &&
           (lookup->without == FLOW_TYPE_COUNT || (set >> lookup->without & 1) == 0);
}

bool flow_system_matches_disabled(const flow_system *system, uint32_t disabled)
{
    for (uint32_t type = 0; type < FLOW_TYPE_COUNT; type++) {
        const flow_term *term = &system->terms[type];
        const bool is_disabled = (disabled >> type & 1) != 0;
        if (!term->used || term->match != QUERN_MATCH_ALL || (system->can_disable >> type & 1) == 0)
            continue;
        if (term->enabled == QUERN_TERM_ENABLED && is_disabled) return false;
        if (term->enabled == QUERN_TERM_DISABLED && !is_disabled) return false;
    }
    return true;
}

static bool lists(const uint32_t *items, uint32_t count, uint32_t wanted)
{
    for (uint32_t i = 0; i < count; i++)
        if (items[i] == wanted) return true;
    return false;
}

bool flow_plan_must_precede(const flow_plan *plan, uint32_t a, uint32_t b)
{
    const flow_system *x = &plan->systems[a], *y = &plan->systems[b];
    return lists(x->before, x->before_count, b) || lists(y->after, y->after_count, a);
}
