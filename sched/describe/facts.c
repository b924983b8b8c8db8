/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "sched/describe/describe.h"

#include "core/base/text.h"
#include "sched/schedule/compile.h"

/* Gathers the facts about a compiled schedule (describe.h). */

/* ------------------------------------------------------------------------------------------ gathering */

static void gather_passes(quern__facts *facts)
{
    const quern_schedule *schedule = facts->schedule;
    for (uint32_t i = 0; i < schedule->plan.segments.count; i++) {
        const quern__segment *segment = &schedule->plan.segments.items[i];
        uint32_t first = facts->passes.count;
        for (uint32_t k = 0; k < segment->passes.count; k++) {
            const quern__pass *pass = segment->passes.items[k];
            facts->passes.items[first + pass->index] = (quern__pass_facts){.pass = pass};
        }
        facts->passes.count += segment->passes.count;
        facts->segments.items[facts->segments.count++] =
            (quern__segment_facts){.first_pass = first, .end_pass = facts->passes.count};
    }
}

static bool waits_for(const quern__facts *facts, uint32_t later, uint32_t earlier)
{
    const quern__pass_facts *pass = &facts->passes.items[later];
    for (uint32_t i = pass->first_wait; i < pass->end_wait; i++)
        if (facts->waits.items[i] == earlier) return true;
    return false;
}

/* Lists the passes that a pass of the segment waits for. The schedule has their places in execution order. */
static void list_waits(quern__facts *facts, const quern__segment *segment, uint32_t first, uint32_t number)
{
    quern__pass_facts *pass_facts = &facts->passes.items[number];
    const quern__pass *pass = pass_facts->pass;
    uint32_t *waits = facts->waits.items;
    pass_facts->first_wait = facts->waits.count;
    for (uint32_t i = 0; i < pass->waits_for.count; i++) {
        const uint32_t before = first + segment->passes.items[pass->waits_for.items[i]]->index;
        uint32_t to = facts->waits.count++;
        for (; to > pass_facts->first_wait && waits[to - 1] > before; to--)
            waits[to] = waits[to - 1];
        waits[to] = before;
    }
    pass_facts->end_wait = facts->waits.count;
}

/* Whether the archetype is on the last level of the relation that orders the system. Its views then follow the
 * depths of the entities, often with a single row each. */
static bool is_called_by_depth(const quern__system *system, const quern__archetype *archetype)
{
    return system->levels != NULL &&
           quern__relation_level(system->levels, archetype) == QUERN_MAX_RELATION_LEVEL;
}

static uint64_t count_matched_rows(const quern__query *query)
{
    uint64_t count = 0;
    for (uint32_t i = 0; i < query->matches.count; i++)
        count += quern__archetype_row_count(query->matches.items[i].archetype);
    return count;
}

static uint64_t calls_of(const quern__system *system)
{
    const quern_event_reader *items = system->events.items;
    if (items != NULL) return quern__channel_end(items->channel) - items->cursor;
    if (system->query.term_count == 0) return 1;
    if (system->query.order != NULL)
        return (count_matched_rows(&system->query) + QUERN_ORDER_PIECE_ROWS - 1) / QUERN_ORDER_PIECE_ROWS;
    if (system->reaction != NULL)
        return system->step_view_count; /* the number of views is known only for the last frame */
    uint64_t count = 0;
    for (uint32_t i = 0; i < system->query.matches.count; i++) {
        const quern__archetype *archetype = system->query.matches.items[i].archetype;
        count += is_called_by_depth(system, archetype) ? quern__archetype_row_count(archetype)
                                                       : archetype->chunk_count;
    }
    return count;
}

/* Returns how many of the calls in calls_of must run one after another in a pass over chunks: one in all; for a
 * level-ordered system one per level, and on the last level one per row. */
static uint64_t sequential_calls(const quern__system *system)
{
    if (system->reaction != NULL) return system->step_view_count > 0;
    uint64_t count = 0;
    bool is_seen[QUERN__LEVEL_COUNT] = {false};
    for (uint32_t i = 0; i < system->query.matches.count; i++) {
        const quern__archetype *archetype = system->query.matches.items[i].archetype;
        const uint32_t level =
            system->levels != NULL ? quern__relation_level(system->levels, archetype) : 0;
        if (archetype->chunk_count == 0) continue;
        if (is_called_by_depth(system, archetype))
            count += quern__archetype_row_count(archetype);
        else if (!is_seen[level])
            count++;
        is_seen[level] = true;
    }
    return count;
}

static quern__load system_load(const quern__facts *facts, const quern__system *system)
{
    if (!system->is_enabled) return (quern__load){0};
    const uint64_t calls = calls_of(system);
    uint64_t work =
        facts->is_timed
            ? facts->schedule->observer->calls->system_time_ns(facts->schedule->observer, system)
            : calls;
    const uint64_t sequential =
        system->pass->kind == QUERN__PASS_CHUNKS ? sequential_calls(system)
        : system->pass->kind == QUERN__PASS_EVENTS || system->pass->kind == QUERN__PASS_ORDERED ? calls > 0
                                                                                                : calls;
    return (quern__load){.work = work, .path = calls > 0 ? (work * sequential + calls - 1) / calls : work};
}

/* Computes the load of a pass. Calls on a chunk are sequential within a lane; lanes may run in parallel. */
static quern__load pass_load(const quern__facts *facts, const quern__pass *pass)
{
    quern__load load = {0};
    for (uint32_t lane = 0; lane < pass->lane_count; lane++) {
        uint64_t path = 0;
        for (uint32_t i = 0; i < pass->systems.count; i++) {
            if (pass->systems.items[i]->lane != lane) continue;
            quern__load system = system_load(facts, pass->systems.items[i]);
            load.work += system.work;
            path += system.path;
        }
        if (path > load.path) load.path = path;
    }
    return load;
}

static void count_rows(quern__pass_facts *pass_facts)
{
    const quern__pass *pass = pass_facts->pass;
    for (uint32_t i = 0; i < pass->tables.count; i++) {
        const quern__pass_table *table = &pass->tables.items[i];
        bool is_used = false;
        for (uint32_t k = table->first_call; k < table->end_call; k++)
            is_used |= pass->calls.items[k].system->is_enabled;
        if (!is_used) continue;
        pass_facts->archetype_count++;
        pass_facts->chunk_count += table->archetype->chunk_count;
        pass_facts->entity_count += quern__archetype_row_count(table->archetype);
    }
}

static void gather_segment(quern__facts *facts, uint32_t index, bool with_loads)
{
    quern__segment_facts *segment = &facts->segments.items[index];
    for (uint32_t i = segment->first_pass; i < segment->end_pass; i++) {
        quern__pass_facts *pass = &facts->passes.items[i];
        list_waits(facts, &facts->schedule->plan.segments.items[index], segment->first_pass, i);
        if (!with_loads) continue;
        count_rows(pass);
        pass->load = pass_load(facts, pass->pass);
        uint64_t path = 0;
        for (uint32_t k = pass->first_wait; k < pass->end_wait; k++) {
            const quern__pass_facts *before = &facts->passes.items[facts->waits.items[k]];
            if (before->load.path > path) path = before->load.path;
        }
        pass->load.path += path;
        segment->load.work += pass->load.work;
        if (pass->load.path > segment->load.path) segment->load.path = pass->load.path;
    }
    facts->load.work += segment->load.work;
    facts->load.path += segment->load.path;
}

static bool reserve(quern__facts *facts)
{
    const quern_schedule *schedule = facts->schedule;
    const quern_allocator *allocator = quern__plan_allocator(&schedule->plan);
    const uint32_t words = QUERN__BITSET_WORDS(schedule->plan.order.count);
    uint32_t pass_count = 0, wait_count = 0;
    for (uint32_t i = 0; i < schedule->plan.segments.count; i++) {
        const quern__segment *segment = &schedule->plan.segments.items[i];
        pass_count += segment->passes.count;
        for (uint32_t k = 0; k < segment->passes.count; k++)
            wait_count += segment->passes.items[k]->waits_for.count;
    }
    return quern__array_reserve(allocator, &facts->segments, schedule->plan.segments.count) &&
           quern__array_reserve(allocator, &facts->passes, pass_count) &&
           quern__array_reserve(allocator, &facts->waits, wait_count) &&
           quern__array_reserve(allocator, &facts->kept_orders, words) &&
           quern__array_reserve(allocator, &facts->declared_before, words);
}

void quern__facts_release(quern__facts *facts)
{
    const quern_allocator *allocator = quern__plan_allocator(&facts->schedule->plan);
    quern__array_release(allocator, &facts->segments);
    quern__array_release(allocator, &facts->passes);
    quern__array_release(allocator, &facts->waits);
    quern__array_release(allocator, &facts->kept_orders);
    quern__array_release(allocator, &facts->declared_before);
}

quern_result quern__facts_gather(quern__facts *facts, const quern_schedule *schedule, const char *function,
                                 bool with_loads)
{
    *facts = (quern__facts){.schedule = schedule,
                            .is_timed = schedule->measures_times && schedule->frame_index > 0};
    if (!reserve(facts)) {
        quern__facts_release(facts);
        return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "%s: no memory to describe %u systems", function,
                           schedule->plan.order.count);
    }
    gather_passes(facts);
    for (uint32_t i = 0; i < facts->segments.count; i++)
        gather_segment(facts, i, with_loads);
    if (facts->is_timed) {
        facts->load.work += schedule->stats.sync_ns;
        facts->load.path += schedule->stats.sync_ns;
    }
    return QUERN_OK;
}

static bool is_exclusive(const quern__system *system)
{
    return quern__system_has_flag(system, QUERN_SYSTEM_EXCLUSIVE);
}

/* ------------------------------------------------------------------------------------------ order */

void quern__facts_load_orders(const quern__facts *facts, const quern__system *later)
{
    const quern__plan *plan = &facts->schedule->plan;
    const uint32_t words = later->position / 64 + 1;
    uint64_t *kept = facts->kept_orders.items;
    memset(kept, 0, words * sizeof *kept);
    memset(facts->declared_before.items, 0, words * sizeof *kept);
    quern__pair_set_get(&plan->conflicts.all, later->position, kept);
    for (uint32_t i = later->group_first; i < later->position; i++)
        if (is_exclusive(later) || is_exclusive(plan->order.items[i])) quern__bitset_add(kept, i);
    /* Adds all systems that must run before the system by declared order. Rules lead to earlier
     * positions, so the rules of a system are followed after those of all systems behind it. */
    uint32_t rule = plan->rules.count;
    quern__bitset_add(facts->declared_before.items, later->position);
    for (uint32_t position = later->position + 1; position-- > later->group_first;) {
        if (!quern__bitset_has(facts->declared_before.items, position)) continue;
        while (rule > 0 && plan->rules.items[rule - 1].second > position)
            rule--;
        for (; rule > 0 && plan->rules.items[rule - 1].second == position; rule--)
            quern__bitset_add(facts->declared_before.items, plan->rules.items[rule - 1].first);
    }
}

bool quern__facts_has_accidental_order(const quern__facts *facts, const quern__system *earlier,
                                       const quern__system *later)
{
    return earlier->phase == later->phase &&
           quern__bitset_has(facts->kept_orders.items, earlier->position) &&
           !quern__bitset_has(facts->declared_before.items, earlier->position);
}

/* ------------------------------------------------------------------------------------------ causes */

/* Components over which two systems conflict. */
typedef struct conflict_sets {
    uint64_t terms[QUERN__COMPONENT_WORDS];
    uint64_t levels[QUERN__COMPONENT_WORDS];
    uint64_t lookups[QUERN__COMPONENT_WORDS];
} conflict_sets;

/* Adds the conflicts that exist because `a` matches the archetype. */
static void add_conflicts(conflict_sets *found, const quern__access *a, const quern__access *b,
                          bool a_is_first, const quern__archetype *archetype, bool b_matches)
{
    for (uint32_t i = 0; i < archetype->component_count; i++) {
        uint16_t index = archetype->component_indices[i];
        bool a_writes = quern__bitset_has(a->writes, index), b_writes = quern__bitset_has(b->writes, index);
        bool both_touch = quern__bitset_has(a->reads, index) && quern__bitset_has(b->reads, index);
        const quern__conflict_kind kind = quern__access_lookup_conflict(a, b, index, a_is_first, archetype);
        if (kind == QUERN__CONFLICT_LOOKUP) quern__bitset_add(found->lookups, index);
        if (kind == QUERN__CONFLICT_LEVEL) quern__bitset_add(found->levels, index);
        if (b_matches && both_touch && (a_writes || b_writes)) quern__bitset_add(found->terms, index);
    }
}

/* Adds the conflicts on all archetypes that `a` matches. The matches of both systems are sorted by archetype. */
static void add_conflicts_on_matches(conflict_sets *found, const quern__system *a, const quern__system *b)
{
    uint32_t other = 0;
    for (uint32_t i = 0; i < a->query.matches.count; i++) {
        const quern__archetype *archetype = a->query.matches.items[i].archetype;
        while (other < b->query.matches.count &&
               b->query.matches.items[other].archetype->index < archetype->index)
            other++;
        bool b_matches =
            other < b->query.matches.count && b->query.matches.items[other].archetype == archetype;
        add_conflicts(found, &a->access, &b->access, a->position < b->position, archetype, b_matches);
    }
}

/* Adds a cause unless it is the first one, which is the schedule's own conflict and is listed already. */
static void add_cause(quern__causes *causes, quern__conflict_kind kind, uint32_t index)
{
    if (causes->items[0].kind == kind && causes->items[0].index == index) return;
    causes->items[causes->count++] = (quern__conflict){.kind = (uint8_t)kind, .index = (uint16_t)index};
}

static void add_components(quern__causes *causes, quern__conflict_kind kind, const uint64_t *words)
{
    for (uint32_t word = 0; word < QUERN__COMPONENT_WORDS; word++)
        for (uint64_t bits = words[word]; bits != 0; bits &= bits - 1)
            add_cause(causes, kind, word * 64 + quern__lowest_bit_64(bits));
}

void quern__facts_causes(const quern__system *earlier, const quern__system *later,
                         quern__causes *out_causes)
{
    out_causes->count = 0;
    out_causes->items[0] = quern__conflict_between(earlier, later);
    if (out_causes->items[0].kind == QUERN__NO_CONFLICT) return;
    out_causes->count = 1;
    for (uint32_t i = 0; i < earlier->access.resource_count; i++) {
        const quern__resource_use *use = &earlier->access.resources[i];
        quern_access other = quern__access_to_resource(&later->access, use->index);
        if (other > QUERN_ACCESS_READ || (other == QUERN_ACCESS_READ && use->access > QUERN_ACCESS_READ))
            add_cause(out_causes, QUERN__CONFLICT_RESOURCE, use->index);
    }
    conflict_sets found = {0};
    add_conflicts_on_matches(&found, earlier, later);
    add_conflicts_on_matches(&found, later, earlier);
    uint32_t index = quern__access_find_common_lookup(&earlier->access, &later->access, 0);
    for (; index < QUERN_MAX_COMPONENTS;
         index = quern__access_find_common_lookup(&earlier->access, &later->access, index + 1))
        quern__bitset_add(found.lookups, index);
    add_components(out_causes, QUERN__CONFLICT_LOOKUP, found.lookups);
    add_components(out_causes, QUERN__CONFLICT_LEVEL, found.levels);
    add_components(out_causes, QUERN__CONFLICT_COMPONENT, found.terms);
}

/* ------------------------------------------------------------------------------------------ passes */

quern__route quern__facts_route(const quern__facts *facts, const quern__segment_facts *segment,
                                const quern__system *earlier, const quern__system *later)
{
    if (earlier->pass == later->pass) return QUERN__ROUTE_PASS;
    bool is_edge = waits_for(facts, quern__facts_number(segment, later->pass),
                             quern__facts_number(segment, earlier->pass));
    return is_edge ? QUERN__ROUTE_GRAPH : QUERN__ROUTE_IMPLIED;
}

/* ------------------------------------------------------------------------------------------- fusing */

/* Finds the access that makes a system serial; ALONE_SERIAL if it was declared serial. */
static quern__alone_reason alone_by_access(const quern__access *access, uint32_t *out_index)
{
    for (uint32_t i = 0; i < access->resource_count; i++) {
        if (access->resources[i].access != QUERN_ACCESS_WRITE) continue;
        *out_index = access->resources[i].index;
        return QUERN__ALONE_RESOURCE;
    }
    for (uint32_t i = 0; i < access->lookups.count; i++) {
        if (!access->lookups.list[i].writes) continue;
        *out_index = access->lookups.list[i].index;
        return QUERN__ALONE_LOOKUP;
    }
    for (uint32_t i = 0; i < QUERN__COMPONENT_WORDS; i++) {
        if (access->query_writes[i] == 0) continue;
        *out_index = 64 * i + quern__lowest_bit_64(access->query_writes[i]);
        return QUERN__ALONE_QUERY;
    }
    return QUERN__ALONE_SERIAL;
}

quern__alone_reason quern__facts_alone_reason(const quern__pass *pass, uint32_t *out_index)
{
    const quern__system *system = pass->systems.items[0];
    if (is_exclusive(system)) return QUERN__ALONE_EXCLUSIVE;
    if (quern__system_has_flag(system, QUERN_SYSTEM_MAIN_THREAD)) return QUERN__ALONE_MAIN_THREAD;
    if (quern__system_has_flag(system, QUERN_SYSTEM_SERIAL))
        return alone_by_access(&system->access, out_index);
    if (system->events.items != NULL) return QUERN__ALONE_EVENTS;
    if (system->query.order != NULL) return QUERN__ALONE_ORDER;
    if (system->query.term_count == 0) return QUERN__ALONE_NO_TERMS;
    return pass->plan->fuses_systems ? QUERN__NOT_ALONE : QUERN__ALONE_FUSING_OFF;
}

/* Finds why a system is not in a pass. The first conflict with a system of the pass (APART_CONFLICT) takes precedence
 * over the last one with an earlier system of a later pass (APART_ORDER). */
static quern__apart_reason find_apart(const quern__segment *segment, const quern__system *system,
                                      const quern__pass *pass)
{
    const quern__plan *plan = system->plan;
    const quern__system *conflicting = NULL, *ordering = NULL;
    quern__pair_walk walk = quern__pair_set_walk(&plan->conflicts.all, system->position);
    for (uint32_t i; quern__pair_walk_next(&walk, &i) && i >= segment->first;) {
        const quern__system *other = plan->order.items[i];
        if (other->pass == pass && quern__conflicts_have_global(plan, i, system->position))
            conflicting = other;
        else if (other->pass->index > pass->index && ordering == NULL)
            ordering = other;
    }
    if (conflicting != NULL)
        return (quern__apart_reason){QUERN__APART_CONFLICT, conflicting,
                                     quern__conflict_between(conflicting, system)};
    if (ordering != NULL)
        return (quern__apart_reason){QUERN__APART_ORDER, ordering,
                                     quern__conflict_between(ordering, system)};
    return (quern__apart_reason){.kind = quern__fuse_levels_agree(pass, system) ? QUERN__APART_CHOICE
                                                                                : QUERN__APART_LEVELS};
}

bool quern__facts_find_apart_reason(const quern__segment *segment, const quern__system *system,
                                    const quern__pass *pass, quern__apart_reason *out_apart)
{
    uint32_t index;
    if (pass == system->pass || pass->systems.items[0]->position > system->position) return false;
    if (quern__facts_alone_reason(pass, &index) != QUERN__NOT_ALONE ||
        quern__facts_alone_reason(system->pass, &index) != QUERN__NOT_ALONE)
        return false;
    bool is_first = system == system->pass->systems.items[0];
    if (!is_first && system->plan->order.items[system->position - 1]->pass != pass) return false;
    *out_apart = find_apart(segment, system, pass);
    return true;
}

/* -------------------------------------------------------------------------------------------- loads */

uint32_t quern__facts_chunk_count(const quern__system *system)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < system->query.matches.count; i++)
        count += system->query.matches.items[i].archetype->chunk_count;
    return count;
}
