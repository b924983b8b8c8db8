/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Random schedules against a naive compiler that compares each pair of systems, archetype by archetype, as the
 * documentation describes conflicts, passes and edges. */

#include "sched/frame/schedule_internal.h"

#include "tests/flow/flow_setup.h"
#include "tests/support/fixture.h"
#include "tests/support/random.h"

#include <stdio.h>

enum { TYPES = 9, RESOURCES = 3, MAX_SYSTEMS = 150, MAX_SETS = 64, NOTHING = UINT32_MAX };

typedef struct model_lookup {
    uint32_t type, with, without; /* NOTHING: no limit */
    bool writes;
} model_lookup;

typedef struct model_query {
    quern_match matches[TYPES]; /* 0: no term */
    quern_access accesses[TYPES];
} model_query;

typedef struct model_system {
    char name[8];
    uint32_t phase, flags;
    quern_match matches[TYPES]; /* 0: no term */
    quern_access accesses[TYPES];
    quern_access resources[RESOURCES];
    model_lookup lookups[2];
    model_query queries[2]; /* further queries */
    uint32_t lookup_count, term_count, query_count;
    bool has_begin, has_end, has_condition;
    uint32_t after[2], after_count;
} model_system;

static struct {
    random_source random;
    bool is_plain; /* systems have terms only */
    bool has_rules;
    uint32_t phase_count, system_count, set_count;
    model_system systems[MAX_SYSTEMS];
    uint32_t sets[MAX_SETS]; /* component sets of the archetypes, a bit per type */
    uint32_t order[MAX_SYSTEMS], position[MAX_SYSTEMS];
    bool conflict[MAX_SYSTEMS][MAX_SYSTEMS],
        is_global[MAX_SYSTEMS][MAX_SYSTEMS]; /* [earlier][later], by index */
    uint32_t pass[MAX_SYSTEMS];              /* by index; unique over phases */
    uint32_t pass_count;
    bool waits[MAX_SYSTEMS][MAX_SYSTEMS]; /* [later pass][earlier pass]: must wait */
} model;

static quern_schedule *schedule;
static quern_component types[TYPES];
static quern_resource resources[RESOURCES];

static uint32_t below(uint32_t bound)
{
    return random_below(&model.random, bound);
}

static bool chance(uint32_t percent)
{
    return random_chance(&model.random, percent);
}

/* ------------------------------------------------------------------------------------ drawing systems */

static uint32_t draw_limit(uint32_t type)
{
    const uint32_t limit = below(2 * TYPES);
    return limit < TYPES && limit != type ? limit : NOTHING;
}

static void draw_accesses(model_system *system)
{
    const uint32_t wanted = below(4);
    for (uint32_t i = 0; i < wanted; i++) {
        const uint32_t type = below(TYPES);
        if (system->matches[type] != 0) continue;
        system->matches[type] = model.is_plain ? QUERN_MATCH_ALL : (quern_match)(1 + below(3));
        system->accesses[type] =
            system->matches[type] == QUERN_MATCH_NONE ? QUERN_ACCESS_NONE : (quern_access)below(3);
        system->term_count++;
    }
    if (model.is_plain) return;
    for (uint32_t i = 0; i < RESOURCES; i++)
        if (chance(8)) system->resources[i] = (quern_access)(1 + below(3));
    system->lookup_count = chance(25) ? 1 + below(2) : 0;
    for (uint32_t i = 0; i < system->lookup_count; i++) {
        const uint32_t type = below(TYPES);
        system->lookups[i] = (model_lookup){type, draw_limit(type), NOTHING, chance(40)};
        const uint32_t without = draw_limit(type);
        if (without != system->lookups[i].with) system->lookups[i].without = without;
    }
    if (system->lookup_count == 2 && system->lookups[0].type == system->lookups[1].type)
        system->lookup_count = 1;
    system->query_count = chance(25) ? 1 + below(2) : 0;
    for (uint32_t i = 0; i < system->query_count; i++)
        for (uint32_t count = 0; count == 0 || chance(60); count++) {
            const uint32_t type = below(TYPES);
            model_query *query = &system->queries[i];
            query->matches[type] = (quern_match)(1 + below(3));
            query->accesses[type] = query->matches[type] == QUERN_MATCH_NONE ? QUERN_ACCESS_NONE
                                    : chance(30)                             ? QUERN_ACCESS_WRITE
                                                                             : (quern_access)below(2);
        }
    if (chance(10)) system->flags |= QUERN_SYSTEM_SERIAL;
    system->has_begin = chance(10);
    system->has_end = chance(10);
    system->has_condition = chance(10);
}

static void draw_system(uint32_t index)
{
    model_system *system = &model.systems[index];
    *system = (model_system){.phase = below(model.phase_count)};
    snprintf(system->name, sizeof system->name, "s%u", index);
    draw_accesses(system);
    for (uint32_t i = 0; i < 2 && model.has_rules && index > 0; i++) {
        const uint32_t other = below(index);
        if (model.systems[other].phase == system->phase && chance(40))
            system->after[system->after_count++] = other;
    }
}

static bool always(quern_context *context)
{
    return true;
}

static quern_component type_or_none(uint32_t type)
{
    return type != NOTHING ? types[type] : (quern_component){0};
}

static void add_lookups(quern_system_def *def, const model_system *system)
{
    uint32_t read_count = 0, write_count = 0;
    for (uint32_t i = 0; i < system->lookup_count; i++) {
        const model_lookup *lookup = &system->lookups[i];
        quern_lookup *declared =
            lookup->writes ? &def->write_lookups[write_count++] : &def->lookups[read_count++];
        *declared = (quern_lookup){.component = types[lookup->type],
                                   .with = type_or_none(lookup->with),
                                   .without = type_or_none(lookup->without)};
    }
}

static void add_terms(quern_term *terms, const quern_match *matches, const quern_access *accesses)
{
    for (uint32_t i = 0; i < TYPES; i++)
        if (matches[i] != 0)
            *terms++ = (quern_term){.component = types[i], .match = matches[i], .access = accesses[i]};
}

/* Adds a system to the schedule. Returns false if the library refuses a system that conflicts with itself. */
static bool add_system(const model_system *system)
{
    quern_system_def def = system_def(system->name, idle_run);
    uint32_t count = 0;
    def.phase = system->phase;
    def.flags = system->flags;
    add_terms(def.terms, system->matches, system->accesses);
    for (uint32_t i = 0; i < system->query_count; i++)
        add_terms(def.queries[i].terms, system->queries[i].matches, system->queries[i].accesses);
    add_lookups(&def, system);
    for (uint32_t i = 0; i < RESOURCES; i++)
        if (system->resources[i] != QUERN_ACCESS_NONE)
            def.resources[count++] = (quern_resource_access){resources[i], system->resources[i]};
    for (uint32_t i = 0; i < system->after_count; i++)
        def.after[i] = model.systems[system->after[i]].name;
    if (system->has_begin) def.begin = idle_callback;
    if (system->has_end) def.end = idle_callback;
    if (system->has_condition) def.condition = always;
    const quern_result result = quern_schedule_add_system(schedule, &def, NULL);
    cr_assert(result == QUERN_OK || result == QUERN_ERROR_SCHEDULE_CONFLICT, "%s", quern_error_message());
    return result == QUERN_OK;
}

static void add_systems(uint32_t count)
{
    while (count > 0 && model.system_count < MAX_SYSTEMS) {
        draw_system(model.system_count);
        if (!add_system(&model.systems[model.system_count])) continue;
        model.system_count++;
        count--;
    }
}

/* --------------------------------------------------------------------------------- drawing archetypes */

static void add_sets(uint32_t count)
{
    for (; count > 0; count--) {
        const uint32_t set = below(1u << TYPES) & below(1u << TYPES);
        quern_component components[TYPES];
        uint32_t component_count = 0, known = 0;
        for (uint32_t i = 0; i < TYPES; i++)
            if (set >> i & 1) components[component_count++] = types[i];
        setup_entity_with(world, components, component_count);
        while (known < model.set_count && model.sets[known] != set)
            known++;
        if (known == model.set_count) model.sets[model.set_count++] = set;
    }
}

/* Removes all archetypes with a type. */
static void remove_sets(void)
{
    const uint32_t type = below(TYPES);
    const quern_term term = {.component = types[type]};
    quern_query *query = setup_query(world, &term, 1);
    must(quern_entity_destroy_matching(query, NULL));
    quern_query_destroy(query);
    must(quern_world_remove_empty_archetypes(world, NULL));
    uint32_t kept_count = 0;
    for (uint32_t i = 0; i < model.set_count; i++)
        if ((model.sets[i] >> type & 1) == 0) model.sets[kept_count++] = model.sets[i];
    model.set_count = kept_count;
}

/* ------------------------------------------------------------------------------------- naive conflicts */

static bool matches(const model_system *system, uint32_t set)
{
    for (uint32_t i = 0; i < TYPES; i++) {
        if (system->matches[i] == QUERN_MATCH_ALL && (set >> i & 1) == 0) return false;
        if (system->matches[i] == QUERN_MATCH_NONE && (set >> i & 1) != 0) return false;
    }
    return system->term_count > 0;
}

static bool clash(quern_access a, quern_access b)
{
    return a != QUERN_ACCESS_NONE && b != QUERN_ACCESS_NONE &&
           (a != QUERN_ACCESS_READ || b != QUERN_ACCESS_READ);
}

static bool terms_clash(const model_system *a, const model_system *b, uint32_t set)
{
    for (uint32_t i = 0; i < TYPES; i++)
        if ((set >> i & 1) && clash(a->accesses[i], b->accesses[i])) return true;
    return false;
}

/* Whether a lookup of b reaches the set, and its access clashes with the terms of a there. */
static bool lookup_clashes(const model_system *a, const model_system *b, uint32_t set)
{
    for (uint32_t i = 0; i < b->lookup_count; i++) {
        const model_lookup *lookup = &b->lookups[i];
        if ((set >> lookup->type & 1) == 0) continue;
        if (lookup->with != NOTHING && (set >> lookup->with & 1) == 0) continue;
        if (lookup->without != NOTHING && (set >> lookup->without & 1) != 0) continue;
        if (clash(a->accesses[lookup->type], lookup->writes ? QUERN_ACCESS_WRITE : QUERN_ACCESS_READ))
            return true;
    }
    return false;
}

/* Whether lookups of both could meet on an entity, whatever archetypes exist. */
static bool lookups_clash(const model_system *a, const model_system *b)
{
    for (uint32_t i = 0; i < a->lookup_count; i++)
        for (uint32_t k = 0; k < b->lookup_count; k++) {
            const model_lookup *one = &a->lookups[i], *other = &b->lookups[k];
            const bool exclude = (one->with != NOTHING && one->with == other->without) ||
                                 (other->with != NOTHING && other->with == one->without);
            if (one->type == other->type && (one->writes || other->writes) && !exclude) return true;
        }
    return false;
}

static bool query_matches(const model_query *query, uint32_t set)
{
    for (uint32_t i = 0; i < TYPES; i++) {
        if (query->matches[i] == QUERN_MATCH_ALL && (set >> i & 1) == 0) return false;
        if (query->matches[i] == QUERN_MATCH_NONE && (set >> i & 1) != 0) return false;
    }
    return true;
}

/* Whether a further query of b matches the set, and its access clashes with the terms of a there. */
static bool query_clashes(const model_system *a, const model_system *b, uint32_t set)
{
    for (uint32_t i = 0; i < b->query_count; i++)
        for (uint32_t type = 0; type < TYPES && query_matches(&b->queries[i], set); type++)
            if ((set >> type & 1) && clash(a->accesses[type], b->queries[i].accesses[type])) return true;
    return false;
}

/* Whether no set matches both. */
static bool exclude(const model_query *a, const model_query *b)
{
    for (uint32_t i = 0; i < TYPES; i++)
        if ((a->matches[i] == QUERN_MATCH_ALL && b->matches[i] == QUERN_MATCH_NONE) ||
            (a->matches[i] == QUERN_MATCH_NONE && b->matches[i] == QUERN_MATCH_ALL))
            return true;
    return false;
}

/* Whether further queries of a could meet further queries or lookups of b on an entity, whatever archetypes exist. A lookup
 * is like a query for the component and its limits. */
static bool queries_clash(const model_system *a, const model_system *b)
{
    for (uint32_t i = 0; i < a->query_count; i++) {
        const model_query *query = &a->queries[i];
        for (uint32_t k = 0; k < b->query_count; k++)
            for (uint32_t type = 0; type < TYPES && !exclude(query, &b->queries[k]); type++)
                if (clash(query->accesses[type], b->queries[k].accesses[type])) return true;
        for (uint32_t k = 0; k < b->lookup_count; k++) {
            const model_lookup *lookup = &b->lookups[k];
            model_query limit = {.matches = {(quern_match)0}};
            if (lookup->with != NOTHING) limit.matches[lookup->with] = QUERN_MATCH_ALL;
            if (lookup->without != NOTHING) limit.matches[lookup->without] = QUERN_MATCH_NONE;
            if (!exclude(query, &limit) && clash(query->accesses[lookup->type],
                                                 lookup->writes ? QUERN_ACCESS_WRITE : QUERN_ACCESS_READ))
                return true;
        }
    }
    return false;
}

static bool has_rule(uint32_t first, uint32_t second)
{
    const model_system *system = &model.systems[second];
    for (uint32_t i = 0; i < system->after_count; i++)
        if (system->after[i] == first) return true;
    return false;
}

static void find_conflict(uint32_t first, uint32_t second)
{
    const model_system *a = &model.systems[first], *b = &model.systems[second];
    bool local = false, global = lookups_clash(a, b) || queries_clash(a, b) || queries_clash(b, a);
    for (uint32_t i = 0; i < RESOURCES; i++)
        global |= clash(a->resources[i], b->resources[i]);
    if (has_rule(first, second)) {
        const bool is_order =
            terms_clash(a, b, UINT32_MAX) && !a->has_end && !b->has_begin && !b->has_condition;
        local |= is_order;
        global |= !is_order;
    }
    for (uint32_t i = 0; i < model.set_count; i++) {
        const uint32_t set = model.sets[i];
        const bool a_matches = matches(a, set), b_matches = matches(b, set);
        local |= a_matches && b_matches && terms_clash(a, b, set);
        global |= a_matches && (lookup_clashes(a, b, set) || query_clashes(a, b, set));
        global |= b_matches && (lookup_clashes(b, a, set) || query_clashes(b, a, set));
    }
    model.conflict[first][second] |= local || global;
    model.is_global[first][second] |= global;
}

static void find_order(void)
{
    bool placed[MAX_SYSTEMS] = {false};
    uint32_t count = 0;
    for (uint32_t phase = 0; phase < model.phase_count; phase++)
        for (uint32_t i = 0; i < model.system_count; i++) {
            const model_system *system = &model.systems[i];
            bool is_ready = system->phase == phase && !placed[i];
            for (uint32_t k = 0; k < system->after_count; k++)
                is_ready &= placed[system->after[k]];
            if (!is_ready) continue;
            placed[i] = true;
            model.position[i] = count;
            model.order[count++] = i;
            i = UINT32_MAX; /* begin anew */
        }
    cr_assert_eq(count, model.system_count);
}

/* --------------------------------------------------------------------------------------- naive passes */

static bool is_alone(const model_system *system)
{
    bool alone = system->term_count == 0 || (system->flags & QUERN_SYSTEM_SERIAL) != 0;
    for (uint32_t i = 0; i < RESOURCES; i++)
        alone |= system->resources[i] == QUERN_ACCESS_WRITE;
    for (uint32_t i = 0; i < system->lookup_count; i++)
        alone |= system->lookups[i].writes;
    for (uint32_t i = 0; i < system->query_count * TYPES; i++)
        alone |= system->queries[i / TYPES].accesses[i % TYPES] == QUERN_ACCESS_WRITE;
    return alone;
}

/* Number of components that the system and some system of the pass read or write by terms. */
static uint32_t count_shared(uint32_t pass, uint32_t until, const model_system *system)
{
    uint32_t count = 0;
    for (uint32_t type = 0; type < TYPES; type++) {
        bool is_touched = false;
        for (uint32_t i = 0; i < until; i++)
            is_touched |= model.pass[model.order[i]] == pass &&
                          model.systems[model.order[i]].accesses[type] != QUERN_ACCESS_NONE;
        count += is_touched && system->accesses[type] != QUERN_ACCESS_NONE;
    }
    return count;
}

static uint32_t choose_pass(uint32_t position, uint32_t first_position, uint32_t first_pass)
{
    const uint32_t index = model.order[position];
    const model_system *system = &model.systems[index];
    uint32_t allowed = first_pass, best = NOTHING, best_count = 0;
    if (is_alone(system)) return NOTHING;
    for (uint32_t i = first_position; i < position; i++) {
        const uint32_t other = model.order[i];
        const uint32_t bound = model.pass[other] + model.is_global[other][index];
        if (model.conflict[other][index] && bound > allowed) allowed = bound;
    }
    for (uint32_t pass = allowed; pass < model.pass_count; pass++) {
        bool is_joinable = true;
        for (uint32_t i = first_position; i < position; i++)
            if (model.pass[model.order[i]] == pass)
                is_joinable &= !is_alone(&model.systems[model.order[i]]);
        const uint32_t count = count_shared(pass, position, system);
        if (!is_joinable || (best != NOTHING && count < best_count)) continue;
        best = pass;
        best_count = count;
    }
    return best;
}

static void find_passes(void)
{
    uint32_t first_position = 0, first_pass = 0;
    model.pass_count = 0;
    for (uint32_t i = 0; i < model.system_count; i++) {
        if (i > 0 && model.systems[model.order[i]].phase != model.systems[model.order[i - 1]].phase) {
            first_position = i;
            first_pass = model.pass_count;
        }
        const uint32_t chosen = choose_pass(i, first_position, first_pass);
        model.pass[model.order[i]] = chosen != NOTHING ? chosen : model.pass_count++;
    }
    memset(model.waits, 0, sizeof model.waits);
    for (uint32_t i = 0; i < model.system_count; i++)
        for (uint32_t k = 0; k < model.system_count; k++)
            if (model.conflict[i][k] && model.pass[i] != model.pass[k])
                model.waits[model.pass[k]][model.pass[i]] = true;
}

/* Whether the pass must wait for the other one, directly or through others. */
static bool reaches(uint32_t later, uint32_t earlier)
{
    if (model.waits[later][earlier]) return true;
    for (uint32_t i = earlier + 1; i < later; i++)
        if (model.waits[later][i] && reaches(i, earlier)) return true;
    return false;
}

/* Whether the edge is not implied by others. */
static bool is_needed(uint32_t later, uint32_t earlier)
{
    if (!model.waits[later][earlier]) return false;
    for (uint32_t i = earlier + 1; i < later; i++)
        if (model.waits[later][i] && reaches(i, earlier)) return false;
    return true;
}

/* Lanes: whether a chain of conflicts within the pass connects two systems. Marks all systems that are connected. */
static void mark_lane(uint32_t index, bool *marks)
{
    marks[index] = true;
    for (uint32_t i = 0; i < model.system_count; i++)
        if (!marks[i] && model.pass[i] == model.pass[index] &&
            (model.conflict[i][index] || model.conflict[index][i]))
            mark_lane(i, marks);
}

/* ------------------------------------------------------------------------------------------ comparison */

static void assert_waits(void)
{
    const quern__plan *plan = &schedule->plan;
    uint32_t first = 0; /* number of the first pass of the segment */
    for (uint32_t s = 0; s < plan->segments.count; s++) {
        const quern__segment *segment = &plan->segments.items[s];
        for (uint32_t i = 0; i < segment->passes.count; i++) {
            const quern__pass *pass = segment->passes.items[i];
            uint32_t next = 0;
            for (uint32_t before = i; before-- > 0;) {
                if (!is_needed(first + i, first + before)) continue;
                cr_assert_lt(next, pass->waits_for.count);
                cr_assert_eq(pass->waits_for.items[next++], before);
            }
            cr_assert_eq(next, pass->waits_for.count, "pass %u has too many edges", first + i);
        }
        first += segment->passes.count;
    }
    cr_assert_eq(first, model.pass_count);
}

static void assert_lanes(void)
{
    for (uint32_t i = 0; i < model.system_count; i++) {
        bool marks[MAX_SYSTEMS] = {false};
        mark_lane(i, marks);
        for (uint32_t k = 0; k < model.system_count; k++)
            if (model.pass[k] == model.pass[i])
                cr_assert_eq(schedule->plan.systems.items[i]->lane == schedule->plan.systems.items[k]->lane,
                             marks[k]);
    }
}

static void assert_like_model(void)
{
    for (uint32_t i = 0; i < model.system_count; i++)
        cr_assert_eq(quern_schedule_system_at(schedule, i).bits, model.order[i] + 1);
    for (uint32_t i = 0; i < model.system_count; i++)
        for (uint32_t k = 0; k < model.system_count; k++) {
            const quern_system a = {i + 1}, b = {k + 1};
            cr_assert_eq(quern_schedule_has_edge(schedule, a, b), model.conflict[i][k], "%s before %s",
                         model.systems[i].name, model.systems[k].name);
            cr_assert_eq(quern_schedule_are_fused(schedule, a, b), model.pass[i] == model.pass[k], "%s, %s",
                         model.systems[i].name, model.systems[k].name);
        }
    assert_waits();
    assert_lanes();
}

static void compile_model(bool is_new)
{
    if (is_new) {
        memset(model.conflict, 0, sizeof model.conflict);
        memset(model.is_global, 0, sizeof model.is_global);
        find_order();
    }
    for (uint32_t i = 0; i < model.system_count; i++)
        for (uint32_t k = i + 1; k < model.system_count; k++)
            if (model.systems[model.order[i]].phase == model.systems[model.order[k]].phase)
                find_conflict(model.order[i], model.order[k]);
    find_passes();
}

static void open_world(uint64_t seed, const quern_world_def *def)
{
    char name[8];
    memset(&model, 0, sizeof model);
    model.random.state = seed;
    model.is_plain = chance(40);
    model.has_rules = chance(60);
    model.phase_count = 1 + below(2);
    must(quern_world_create(def, &world));
    for (uint32_t i = 0; i < TYPES; i++) {
        snprintf(name, sizeof name, "t%u", i);
        types[i] = setup_component(world, name, 4, 4);
    }
    for (uint32_t i = 0; i < RESOURCES; i++) {
        snprintf(name, sizeof name, "r%u", i);
        resources[i] = setup_counter(world, name);
    }
    schedule = setup_phases(world, model.phase_count);
}

static void play(uint64_t seed, uint32_t most_systems)
{
    open_world(seed, NULL);
    for (uint32_t round = 0; round < 4; round++) {
        const bool is_new = round == 0 || chance(30);
        if (is_new) add_systems(1 + below(most_systems));
        if (chance(70)) add_sets(below(10));
        if (chance(20)) remove_sets();
        must(quern_schedule_compile(schedule));
        compile_model(is_new);
        assert_like_model();
        must_run(schedule, NULL);
    }
    close_world();
}

Test(conflict_random, few_systems_compile_like_a_naive_model, .timeout = 300)
{
    for (uint64_t seed = 1; seed <= 150; seed++)
        play(seed, 12);
}

/* Rows of conflicts have several words. */
Test(conflict_random, many_systems_compile_like_a_naive_model, .timeout = 300)
{
    for (uint64_t seed = 1; seed <= 12; seed++)
        play(seed, 70);
}

Test(conflict_random, missing_memory_is_reported_and_the_next_compilation_is_complete, .timeout = 300)
{
    failing_allocator *memory = failing_allocator_create();
    const quern_world_def def = {.allocator = failing_allocator_interface(memory)};
    open_world(11, &def);
    uint32_t failed_count = 0;
    for (uint32_t round = 0; round < 3; round++) {
        if (round < 2) add_systems(20);
        add_sets(6);
        for (uint32_t call = 1; runs_out_of_memory(memory, call, quern_schedule_compile(schedule));
             call++, failed_count++) {
            assert_message_has("memory");
        }
        compile_model(true);
        assert_like_model();
    }
    cr_assert_gt(failed_count, 40u);
    close_world();
    failing_allocator_close(memory);
}

/* ------------------------------------------------------------------------------------------ many passes */

enum { MANY = 4700, RULES = 3 }; /* more passes than a block of compile.c has */

static uint16_t rules[MANY][RULES];
static uint64_t reached[MANY][QUERN__BITSET_WORDS(MANY)];

/* The edges of systems without terms are those of their rules that others do not imply. */
static void assert_edges_of_rules(const quern__segment *segment)
{
    cr_assert_eq(segment->passes.count, (uint32_t)MANY);
    for (uint32_t i = 0; i < MANY; i++) {
        const quern__pass *pass = segment->passes.items[i];
        uint32_t edge_count = 0;
        for (uint32_t before = i; before-- > 0;) {
            bool is_rule = false;
            for (uint32_t k = 0; k < RULES; k++)
                is_rule |= i > 0 && rules[i][k] == before;
            if (!is_rule || quern__bitset_has(reached[i], before)) continue;
            cr_assert_lt(edge_count, pass->waits_for.count);
            cr_assert_eq(pass->waits_for.items[edge_count++], before);
            quern__bitset_add(reached[i], before);
            for (uint32_t word = 0; word < QUERN__BITSET_WORDS(MANY); word++)
                reached[i][word] |= reached[before][word];
        }
        cr_assert_eq(pass->waits_for.count, edge_count);
    }
}

Test(conflict_random, edges_between_many_passes_omit_what_others_imply, .timeout = 300)
{
    random_source random = {5};
    char names[RULES + 1][8];
    world = setup_world();
    schedule = setup_schedule(world);
    for (uint32_t i = 0; i < MANY; i++) {
        quern_system_def def = system_def(names[RULES], idle_run);
        snprintf(names[RULES], sizeof names[RULES], "s%u", i);
        for (uint32_t k = 0; k < RULES && i > 0; k++) {
            const uint32_t near = i < 9 ? i : 9;
            rules[i][k] =
                (uint16_t)(k < 2 ? i - 1 - random_below(&random, near) : random_below(&random, i));
            if (k > 0 && i % 3 == 0) rules[i][k] = rules[i][0];
            snprintf(names[k], sizeof names[k], "s%u", rules[i][k]);
            def.after[k] = names[k];
        }
        setup_system(schedule, &def);
    }
    must(quern_schedule_compile(schedule));
    assert_edges_of_rules(&schedule->plan.segments.items[0]);
    close_world();
}

/* All systems write one resource: each waits only for the one before. */
Test(conflict_random, a_chain_of_many_systems_has_one_edge_each, .timeout = 300)
{
    char name[8];
    world = setup_world();
    schedule = setup_schedule(world);
    const quern_resource log = setup_counter(world, "log");
    for (uint32_t i = 0; i < MANY; i++) {
        snprintf(name, sizeof name, "s%u", i);
        make_system(schedule, name, idle_run, .resources = {{log, QUERN_ACCESS_WRITE}});
    }
    must(quern_schedule_compile(schedule));
    const quern__segment *segment = &schedule->plan.segments.items[0];
    cr_assert_eq(segment->passes.count, (uint32_t)MANY);
    for (uint32_t i = 0; i < MANY; i++) {
        cr_assert_eq(segment->passes.items[i]->waits_for.count, i > 0);
        if (i > 0) cr_assert_eq(segment->passes.items[i]->waits_for.items[0], i - 1);
    }
    cr_assert(quern_schedule_has_edge(schedule, (quern_system){1}, (quern_system){MANY}));
    close_world();
}
