/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "sched/schedule/compile.h"

#include "core/world/world_internal.h"
#include "sched/schedule/access.h"
#include "sched/schedule/schedule_plan.h"

/* Compiling a plan: members of sets, turns of systems that run in every n-th frame, segments, graphs, passes, the
 * compilation as a whole, and the registered systems (compile.h). */

/* ------------------------------------------------------------------------------------ members of sets */

static quern_result join_set(quern__plan *plan, quern__system *system, const char *name)
{
    quern__set *set = quern__plan_find_set(plan, name);
    if (set == NULL)
        return quern__fail(QUERN_ERROR_UNKNOWN_SYSTEM,
                           "system '%s' is in the set '%s', which the schedule does not have: add that set "
                           "(quern_schedule_add_set), or leave it out",
                           system->name, name);
    if (set->asker != NULL && system->reacts_to != 0)
        return quern__fail(QUERN_ERROR_SCHEDULE_CONFLICT,
                           "reaction '%s' is in the set '%s', which has a condition: a reaction runs at "
                           "sync points, and the "
                           "condition is asked before phases; give the reaction a condition of its own",
                           system->name, name);
    if (!quern__array_reserve(quern__plan_allocator(plan), &set->members, set->members.count + 1))
        return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory for the systems of set '%s'", name);
    set->members.items[set->members.count++] = system;
    if (set->asker != NULL) {
        system->gate_sets[system->gate_set_count++] = set;
        plan->asked_phases |= 1u << system->phase;
    }
    return QUERN_OK;
}

/* Lists the systems of each set. Errors: UNKNOWN_SYSTEM, SCHEDULE_CONFLICT, OUT_OF_MEMORY. */
static quern_result sets_resolve(quern__plan *plan)
{
    quern_result result = QUERN_OK;
    plan->asked_phases = 0;
    for (uint32_t i = 0; i < plan->sets.count; i++)
        plan->sets.items[i]->members.count = 0;
    for (uint32_t i = 0; i < plan->systems.count && result == QUERN_OK; i++) {
        quern__system *system = plan->systems.items[i];
        system->gate_set_count = 0;
        for (uint32_t k = 0; k < system->set_names.count && result == QUERN_OK; k++)
            result = join_set(plan, system, system->set_names.items[k].text);
    }
    return result;
}

/* --------------------------------------------------------------------------------------------- turns */

/* Systems that run in every n-th frame are spread over frames. Two of them, of n and m frames, meet if their turns are
 * equal modulo gcd(n, m), and then once in lcm(n, m) frames. In the order of registration, each system without a turn of
 * its own gets the one in which it meets those before it least often; of several, the first. So the turns depend on the
 * list of systems alone. */

static uint64_t greatest_divisor(uint64_t a, uint64_t b)
{
    while (b != 0) {
        const uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* Adds how often a system of `every` frames would meet the other one, for each of its turns. */
static void add_meetings(uint64_t *meetings, uint32_t every, const quern__system *other)
{
    const uint64_t whole = UINT64_C(1) << 48; /* once in each frame; far more than rounding loses */
    const uint64_t step = greatest_divisor(every, other->every);
    const uint64_t frames = every / step * other->every;
    for (uint64_t turn = other->turn % step; turn < every; turn += step)
        meetings[turn] += whole / frames;
}

/* Chooses the turns of systems that run in every n-th frame. Errors: OUT_OF_MEMORY. */
static quern_result spread_systems(quern__plan *plan)
{
    const quern_allocator *allocator = quern__plan_allocator(plan);
    uint32_t most = 0;
    for (uint32_t i = 0; i < plan->systems.count; i++)
        if (plan->systems.items[i]->every > most) most = plan->systems.items[i]->every;
    if (most < 2) return QUERN_OK;
    const size_t bytes = most * sizeof(uint64_t);
    uint64_t *meetings = quern__allocate(allocator, bytes, _Alignof(uint64_t));
    if (meetings == NULL)
        return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory to spread systems over %u frames", most);
    for (uint32_t i = 0; i < plan->systems.count; i++) {
        quern__system *system = plan->systems.items[i];
        if (system->every < 2) continue;
        if (system->offset > 0) {
            system->turn = system->offset - 1;
            continue;
        }
        memset(meetings, 0, system->every * sizeof *meetings);
        for (uint32_t k = 0; k < i; k++)
            if (plan->systems.items[k]->every > 1)
                add_meetings(meetings, system->every, plan->systems.items[k]);
        system->turn = 0;
        for (uint32_t turn = 1; turn < system->every; turn++)
            if (meetings[turn] < meetings[system->turn]) system->turn = turn;
    }
    quern__release(allocator, meetings, bytes, _Alignof(uint64_t));
    return QUERN_OK;
}

/* ---------------------------------------------------------------------------------------- segments */

static void release_segments(quern__plan *plan)
{
    for (uint32_t i = 0; i < plan->segments.count; i++) {
        quern__segment *segment = &plan->segments.items[i];
        for (uint32_t k = 0; k < segment->passes.count; k++)
            quern__pass_destroy(segment->passes.items[k]);
        quern__array_release(quern__plan_allocator(plan), &segment->passes);
        quern_graph_destroy(segment->graph);
    }
    plan->segments.count = 0;
}

/* Passed instead of a phase to mark the segments of a round of reactions. */
enum { REACTIONS = QUERN_MAX_PHASES };

static void add_segment(quern__plan *plan, quern__segment_kind kind, uint32_t phase, uint32_t first,
                        uint32_t end)
{
    const bool runs_reactions = phase == REACTIONS;
    plan->segments.items[plan->segments.count++] = (quern__segment){.kind = kind,
                                                                    .phase = runs_reactions ? 0 : phase,
                                                                    .runs_reactions = runs_reactions,
                                                                    .first = first,
                                                                    .end = end,
                                                                    .sync_before = UINT32_MAX};
}

/* Adds the segments of a phase: the systems [first, end) in execution order, split at exclusive systems, and where a system
 * must see the commands of an earlier one.
 *
 * Each such pair is an interval of places between systems, of which one must have a sync point; places before exclusive
 * systems have one. The systems are visited in order, and a sync point is made before a system only if none is between it
 * and the last system whose commands it must see. So each is made at the end of the first interval that has none, the place
 * that as many later intervals as possible contain: no choice needs fewer (interval stabbing by earliest end). */
static void split_phase(quern__plan *plan, uint32_t phase, uint32_t first, uint32_t end)
{
    uint32_t last_sync = first; /* position of the system that follows the last sync point */
    for (uint32_t i = first; i < end; i++) {
        const quern__system *system = plan->order.items[i];
        const bool is_exclusive = quern__system_has_flag(system, QUERN_SYSTEM_EXCLUSIVE);
        if (!is_exclusive && system->sync_after <= last_sync) continue;
        if (first < i) add_segment(plan, QUERN__SEGMENT_RUN, phase, first, i);
        add_segment(plan, QUERN__SEGMENT_SYNC, phase, i, i);
        if (!is_exclusive) plan->segments.items[plan->segments.count - 1].sync_before = i;
        if (is_exclusive) add_segment(plan, QUERN__SEGMENT_EXCLUSIVE, phase, i, i + 1);
        last_sync = i;
        first = is_exclusive ? i + 1 : i;
    }
    if (first < end) add_segment(plan, QUERN__SEGMENT_RUN, phase, first, end);
    add_segment(plan, QUERN__SEGMENT_SYNC, phase, end, end);
}

static quern_result compile_segments(quern__plan *plan)
{
    uint32_t most = 3 * plan->order.count + 2 * plan->phase_count + 2;
    if (!quern__array_reserve(quern__plan_allocator(plan), &plan->segments, most))
        return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory for the segments of a schedule");
    uint32_t first = 0;
    for (uint32_t i = 0; i < plan->phase_count; i++) {
        quern__phase *phase = &plan->phases[i];
        uint32_t end = first;
        while (end < plan->order.count && plan->order.items[end]->phase == i &&
               plan->order.items[end]->reaction == NULL)
            end++;
        phase->first_segment = plan->segments.count;
        split_phase(plan, i, first, end);
        phase->end_segment = plan->segments.count;
        first = end;
    }
    plan->first_reaction_segment = plan->segments.count;
    if (first < plan->order.count) split_phase(plan, REACTIONS, first, plan->order.count);
    quern_result result = QUERN_OK;
    for (uint32_t i = 0; i < plan->segments.count && result == QUERN_OK; i++)
        if (plan->segments.items[i].kind == QUERN__SEGMENT_RUN)
            result = quern_graph_create(quern__plan_allocator(plan), &plan->segments.items[i].graph);
    return result;
}

/* ------------------------------------------------------------------------------------------- graphs */

static quern_result add_node(quern_graph *graph, const quern__pass *pass, quern_range_function *function,
                             void *argument, uint32_t *out_node)
{
    quern_graph_node_def def = {
        .function = function,
        .user_data = argument,
        .on_worker =
            quern__system_has_flag(pass->systems.items[0], QUERN_SYSTEM_MAIN_THREAD) ? QUERN_ON_CALLER : 0};
    return quern_graph_add_node(graph, &def, out_node);
}

/* Adds the nodes begin -> run -> end. A missing begin or end shares the number of the adjacent run node. */
static quern_result add_pass_nodes(quern_graph *graph, quern__pass *pass)
{
    quern_result result = QUERN_OK;
    uint32_t last_run = 0;
    if (pass->has_begin)
        result = add_node(graph, pass, pass->plan->functions->begin, pass, &pass->begin_node);
    /* One run node per stage, in a chain. */
    for (uint32_t i = 0; i < pass->run_node_count && result == QUERN_OK; i++) {
        const uint32_t before = last_run;
        result = add_node(graph, pass, pass->plan->functions->run, &pass->stages[i], &last_run);
        if (i == 0) pass->run_node = last_run;
        if (result == QUERN_OK && i > 0) result = quern_graph_add_edge(graph, before, last_run);
    }
    if (result != QUERN_OK) return result;
    if (!pass->has_begin) pass->begin_node = pass->run_node;
    if (pass->has_begin) result = quern_graph_add_edge(graph, pass->begin_node, pass->run_node);
    pass->end_node = last_run;
    if (result != QUERN_OK || !pass->has_end) return result;
    result = add_node(graph, pass, pass->plan->functions->end, pass, &pass->end_node);
    return result == QUERN_OK ? quern_graph_add_edge(graph, last_run, pass->end_node) : result;
}

/* Builds the graph of a RUN segment. */
static quern_result build_graph(const quern__segment *segment)
{
    quern_graph_clear(segment->graph);
    quern_result result = QUERN_OK;
    for (uint32_t i = 0; i < segment->passes.count && result == QUERN_OK; i++) {
        quern__pass *pass = segment->passes.items[i];
        result = add_pass_nodes(segment->graph, pass);
        for (uint32_t k = 0; k < pass->waits_for.count && result == QUERN_OK; k++)
            result = quern_graph_add_edge(segment->graph,
                                          segment->passes.items[pass->waits_for.items[k]]->end_node,
                                          pass->begin_node);
    }
    return result;
}

/* Rebuilds the graph with one node for each stage. Needed when a pass has more stages than ever before,
 * because the trees of its relation have become deeper. */
static quern_result add_nodes(const quern__segment *segment)
{
    for (uint32_t i = 0; i < segment->passes.count; i++) {
        quern__pass *pass = segment->passes.items[i];
        if (pass->stage_count > pass->run_node_count) pass->run_node_count = pass->stage_count;
    }
    quern_result result = build_graph(segment);
    for (uint32_t i = 0; i < segment->passes.count && result != QUERN_OK; i++)
        /* The graph is incomplete: the next call rebuilds it. */
        segment->passes.items[i]->run_node_count = 0;
    return result;
}

quern_result quern__compile_prepare(const quern__segment *segment)
{
    bool has_nodes = true;
    for (uint32_t i = 0; i < segment->passes.count; i++)
        has_nodes &= segment->passes.items[i]->stage_count <= segment->passes.items[i]->run_node_count;
    quern_result result = has_nodes ? QUERN_OK : add_nodes(segment);
    for (uint32_t i = 0; i < segment->passes.count && result == QUERN_OK; i++) {
        const quern__pass *pass = segment->passes.items[i];
        for (uint32_t k = 0; k < pass->run_node_count && result == QUERN_OK; k++)
            result = quern_graph_set_count(segment->graph, pass->run_node + k,
                                           k < pass->stage_count ? pass->stages[k].item_count : 0);
    }
    return result;
}

/* ------------------------------------------------------------------------------------------- passes */

static quern_result compile_passes(quern__plan *plan)
{
    quern_result result = QUERN_OK;
    plan->pass_count = 0;
    plan->passes_version++;
    if (!quern__array_reserve(quern__plan_allocator(plan), &plan->pass_indices, 2 * plan->order.count))
        return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory for the passes of %u systems",
                           plan->order.count);
    for (uint32_t i = 0; i < plan->segments.count && result == QUERN_OK; i++) {
        quern__segment *segment = &plan->segments.items[i];
        if (segment->kind == QUERN__SEGMENT_SYNC) continue;
        result = quern__fuse(plan, segment);
        if (result == QUERN_OK && segment->kind == QUERN__SEGMENT_RUN) result = build_graph(segment);
        for (uint32_t k = 0; k < segment->passes.count; k++)
            segment->passes.items[k]->number = plan->pass_count++;
    }
    return result;
}

/* ------------------------------------------------------------------------------------- compilation */

quern_result quern__compile(quern__plan *plan)
{
    uint64_t version = plan->world->storage.archetypes_version;
    bool was_compiled = plan->is_compiled;
    if (was_compiled && version == plan->compiled_version) return QUERN_OK;
    plan->is_compiled = false; /* until everything below has succeeded */
    quern__plan_invalidate_segments(plan);
    quern_result result = QUERN_OK;
    if (!was_compiled) {
        release_segments(plan);
        result = sets_resolve(plan);
        if (result == QUERN_OK) result = spread_systems(plan);
        if (result == QUERN_OK && plan->systems.count > 0) result = quern__order_systems(plan);
        if (result == QUERN_OK) result = compile_segments(plan);
        if (result == QUERN_OK) result = quern__conflicts_start(plan);
    }
    for (uint32_t i = 0; i < plan->order.count && result == QUERN_OK; i++) {
        quern__system *system = plan->order.items[i];
        if (system->query.term_count > 0) result = quern__query_refresh(&system->query);
        for (uint32_t k = 0; k < system->query_count && result == QUERN_OK; k++)
            result = quern__query_refresh(&system->queries[k]);
    }
    if (result != QUERN_OK) return result;
    bool found;
    result = quern__conflicts_extend(plan, &found);
    if (result == QUERN_OK && (found || !was_compiled)) result = compile_passes(plan);
    for (uint32_t i = 0; i < plan->segments.count && result == QUERN_OK; i++) {
        quern__segment *segment = &plan->segments.items[i];
        for (uint32_t k = 0; k < segment->passes.count && result == QUERN_OK; k++)
            result = quern__pass_extend(segment->passes.items[k]);
    }
    plan->is_compiled = result == QUERN_OK;
    plan->compiled_version = version;
    return result;
}

void quern__compile_forget(quern__plan *plan, const quern__system *system)
{
    uint32_t count = 0;
    release_segments(plan);
    for (uint32_t i = 0; i < plan->phase_count; i++)
        plan->phases[i].first_segment = plan->phases[i].end_segment = 0;
    plan->first_reaction_segment = 0;
    for (uint32_t i = 0; i < plan->order.count; i++) {
        plan->order.items[count] = plan->order.items[i];
        plan->order.items[count]->pass = NULL;
        count += plan->order.items[i] != system;
    }
    plan->order.count = count;
    plan->rules.count = 0;
    for (uint32_t i = 0; i < plan->sets.count; i++)
        plan->sets.items[i]->members.count = 0;
    plan->asked_phases = 0;
    plan->pass_count = 0;
    plan->is_compiled = false;
}

void quern__compile_release(quern__plan *plan)
{
    const quern_allocator *allocator = quern__plan_allocator(plan);
    release_segments(plan);
    quern__array_release(allocator, &plan->segments);
    quern__conflicts_release(plan);
    quern__array_release(allocator, &plan->pass_indices);
    quern__array_release(allocator, &plan->rules);
    quern__array_release(allocator, &plan->order);
}

/* ------------------------------------------------------------------------------------ registered systems */

/* Keys of maps are not 0. */
static uint64_t key_of(const char *name)
{
    const uint64_t hash = quern__hash_string(name);
    return hash != 0 ? hash : 1;
}

/* Returns 1 + the index of the first slot of the chain, from the number on, with the name, or 0. */
static uint32_t find_slot(const quern__plan *plan, uint32_t number, const char *name)
{
    while (number != 0 && strcmp(plan->slots.items[number - 1]->name, name) != 0)
        number = plan->slots.items[number - 1]->next_same_hash;
    return number;
}

static uint32_t first_slot(const quern__plan *plan, const char *name)
{
    const uint64_t *number = quern__map_find(&plan->names, key_of(name));
    return number != NULL ? find_slot(plan, (uint32_t)*number, name) : 0;
}

quern__system *quern__plan_find_system(const quern__plan *plan, const char *name)
{
    for (uint32_t number = first_slot(plan, name); number != 0;) {
        const quern__system_slot *slot = plan->slots.items[number - 1];
        if (slot->system != NULL) return slot->system;
        number = find_slot(plan, slot->next_same_hash, name);
    }
    return NULL;
}

/* Returns 1 + the index of the slot that a new system with the name gets again, or 0. */
static uint32_t find_free_slot(const quern__plan *plan, const char *name)
{
    for (uint32_t number = first_slot(plan, name); number != 0;) {
        const quern__system_slot *slot = plan->slots.items[number - 1];
        if (slot->system == NULL && slot->generation <= QUERN__MAX_SYSTEM_GENERATION) return number;
        number = find_slot(plan, slot->next_same_hash, name);
    }
    return 0;
}

static void fill_slot(quern__plan *plan, uint32_t number, quern__system *system)
{
    quern__system_slot *slot = plan->slots.items[number];
    slot->system = system;
    system->plan = plan;
    system->name = system->accessor.name = slot->name;
    system->number = number;
    system->handle_bits = slot->generation << QUERN__SYSTEM_INDEX_BITS | (number + 1);
}

quern_result quern__plan_reserve_system(quern__plan *plan, const char *name)
{
    const quern_allocator *allocator = quern__plan_allocator(plan);
    const uint32_t count = plan->slots.count;
    bool has_memory = quern__array_reserve(allocator, &plan->systems, plan->systems.count + 1) &&
                      quern__map_reserve(&plan->names, allocator, plan->names.count + 1);
    const bool has_slot =
        find_free_slot(plan, name) != 0 || (count > 0 && plan->slots.items[count - 1]->name[0] == '\0');
    if (has_memory && !has_slot) {
        if (count == QUERN_MAX_SYSTEMS)
            return quern__fail(
                QUERN_ERROR_LIMIT,
                "system '%s': the schedule knows %d names of systems, with those of removed ones, "
                "which is the maximum (QUERN_MAX_SYSTEMS): use names again, or create a new schedule",
                name, QUERN_MAX_SYSTEMS);
        quern__system_slot *slot = NULL;
        if (quern__array_reserve(allocator, &plan->slots, count + 1))
            slot = quern__allocate(allocator, sizeof *slot, _Alignof(quern__system_slot));
        has_memory = slot != NULL;
        if (has_memory) {
            *slot = (quern__system_slot){.system = NULL};
            plan->slots.items[plan->slots.count++] = slot;
        }
    }
    return has_memory ? QUERN_OK
                      : quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory for system '%s'", name);
}

void quern__plan_add_system(quern__plan *plan, quern__system *system)
{
    uint32_t number = find_free_slot(plan, system->name);
    if (number == 0) {
        const uint64_t key = key_of(system->name);
        uint64_t *last = quern__map_find(&plan->names, key);
        number = plan->slots.count;
        quern__system_slot *slot = plan->slots.items[number - 1];
        memcpy(slot->name, system->name, strlen(system->name) + 1);
        slot->next_same_hash = last != NULL ? (uint32_t)*last : 0;
        if (last != NULL)
            *last = number;
        else
            quern__map_put(&plan->names, key, number);
    }
    system->index = plan->systems.count;
    plan->systems.items[plan->systems.count++] = system;
    fill_slot(plan, number - 1, system);
}

void quern__plan_replace_system(quern__plan *plan, quern__system *system, quern__system *successor)
{
    quern__system_slot *slot = plan->slots.items[system->number];
    quern__compile_forget(plan, system);
    plan->reaction_count -= system->reacts_to != 0;
    if (successor != NULL) {
        fill_slot(plan, system->number, successor);
        successor->index = system->index;
        plan->systems.items[system->index] = successor;
        plan->reaction_count += successor->reacts_to != 0;
    } else {
        slot->system = NULL;
        slot->generation++;
        plan->systems.count--;
        for (uint32_t i = system->index; i < plan->systems.count; i++) {
            plan->systems.items[i] = plan->systems.items[i + 1];
            plan->systems.items[i]->index = i;
        }
    }
    quern__system_destroy(system);
}

void quern__plan_move_system(quern__plan *plan, quern__system *system, const quern__system *previous)
{
    quern__compile_forget(plan, NULL);
    uint32_t place = system->index;
    const uint32_t target = previous == NULL          ? 0
                            : previous->index < place ? previous->index + 1
                                                      : previous->index;
    for (; place != target; place = system->index) {
        quern__system *other = plan->systems.items[place < target ? place + 1 : place - 1];
        system->index = other->index;
        other->index = place;
        plan->systems.items[system->index] = system;
        plan->systems.items[place] = other;
    }
}

void quern__plan_release_systems(quern__plan *plan)
{
    const quern_allocator *allocator = quern__plan_allocator(plan);
    for (uint32_t i = 0; i < plan->systems.count; i++)
        quern__system_destroy(plan->systems.items[i]);
    for (uint32_t i = 0; i < plan->slots.count; i++)
        quern__release(allocator, plan->slots.items[i], sizeof(quern__system_slot),
                       _Alignof(quern__system_slot));
    for (uint32_t i = 0; i < plan->sets.count; i++)
        quern__set_destroy(plan->sets.items[i], allocator);
    quern__array_release(allocator, &plan->sets);
    quern__array_release(allocator, &plan->systems);
    quern__array_release(allocator, &plan->slots);
    quern__map_release(&plan->names, allocator);
}
