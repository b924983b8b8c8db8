/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "tests/flow/flow_reference.h"

#include "tests/flow/flow_setup.h"

#include <string.h>

/* -------------------------------------------------------------------------------------------- order */

static bool is_next(const flow_plan *plan, const bool *placed, uint32_t phase, uint32_t candidate)
{
    if (placed[candidate] || plan->systems[candidate].phase != phase) return false;
    for (uint32_t i = 0; i < plan->system_count; i++)
        if (!placed[i] && flow_plan_must_precede(plan, i, candidate)) return false;
    return true;
}

/* Finds the order of execution, phase by phase: always the first system in order of registration that
 * has no unplaced predecessor. */
static void find_order(flow_reference *reference)
{
    const flow_plan *plan = reference->plan;
    bool placed[FLOW_MAX_SYSTEMS] = {0};
    uint32_t count = 0;
    for (uint32_t phase = 0; phase < FLOW_PHASE_COUNT; phase++)
        for (uint32_t i = 0; i < plan->system_count; i++) {
            if (!is_next(plan, placed, phase, i)) continue;
            placed[i] = true;
            reference->order[count++] = i;
            i = UINT32_MAX; /* continue with the first system */
        }
    cr_assert_eq(count, plan->system_count, "a plan with a cycle");
}

/* ------------------------------------------------------------------------------------------- operations */

/* The state behind a flow_operations table. */
typedef struct operation_state {
    flow_reference *reference;
    naive_recorder *recorder;
} operation_state;

static naive_world *world_of(void *self)
{
    return &((operation_state *)self)->reference->world;
}

static quern_entity record_create(void *self, uint32_t set, const uint64_t *words)
{
    operation_state *it = self;
    quern_entity entity = naive_record_create(it->recorder);
    for (uint32_t type = 0; type < FLOW_TYPE_COUNT; type++)
        if (set >> type & 1)
            naive_record(it->recorder, world_of(self), NAIVE_ADD, entity, type,
                         words + flow_types[type].first_word);
    return entity;
}

static void record_destroy(void *self, quern_entity entity)
{
    naive_record(((operation_state *)self)->recorder, world_of(self), NAIVE_DESTROY, entity, 0, NULL);
}

static void record_set(void *self, quern_entity entity, uint32_t type, const uint64_t *value)
{
    naive_record(((operation_state *)self)->recorder, world_of(self), NAIVE_ADD, entity, type, value);
}

/* A command for a view means the same as the single commands of its rows. */
static void choose_row(void *self, const flow_view_command *command, quern_entity entity,
                       const uint64_t *value)
{
    static const naive_kind kinds[FLOW_VIEW_KIND_COUNT] = {
        [FLOW_VIEW_ADD] = NAIVE_ADD,         [FLOW_VIEW_SET] = NAIVE_ADD,
        [FLOW_VIEW_SET_VALUES] = NAIVE_ADD,  [FLOW_VIEW_REMOVE] = NAIVE_REMOVE,
        [FLOW_VIEW_DESTROY] = NAIVE_DESTROY,
    };
    naive_record(((operation_state *)self)->recorder, world_of(self), kinds[command->kind], entity,
                 command->type, value);
}

static void record_value(void *self, quern_entity entity, uint32_t type, const uint64_t *value,
                         flow_combine combine)
{
    naive_record_value(((operation_state *)self)->recorder, entity, type, value, combine);
}

static void record_remove(void *self, quern_entity entity, uint32_t type)
{
    naive_record(((operation_state *)self)->recorder, world_of(self), NAIVE_REMOVE, entity, type, NULL);
}

static quern_entity create_now(void *self, uint32_t set, const uint64_t *words)
{
    return naive_create(world_of(self), set, words);
}

static void destroy_now(void *self, quern_entity entity)
{
    naive_destroy(world_of(self), entity);
}

static void set_now(void *self, quern_entity entity, uint32_t type, const uint64_t *value)
{
    const naive_entity *found = naive_find(world_of(self), entity);
    if (found == NULL) return;
    naive_entity changed = *found;
    naive_add_type(world_of(self), &changed.set, changed.words, type, value);
    naive_add_missing(world_of(self), &changed.set, changed.words);
    naive_change(world_of(self), entity, changed.set, changed.words);
    if (flow_types[type].word_count > 0)
        naive_note_changed(world_of(self), naive_find(world_of(self), entity), 1u << type);
}

/* Like the immediate call and unlike the command, does nothing if the entity has the component. */
static void add_now(void *self, quern_entity entity, uint32_t type, const uint64_t *value)
{
    const naive_entity *found = naive_find(world_of(self), entity);
    if (found != NULL && (found->set >> type & 1) == 0) set_now(self, entity, type, value);
}

static void remove_now(void *self, quern_entity entity, uint32_t type)
{
    const naive_entity *found = naive_find(world_of(self), entity);
    if (found == NULL) return;
    naive_entity changed = *found;
    naive_remove_type(&changed.set, changed.words, type);
    if ((naive_missing(world_of(self), changed.set) >> type & 1) != 0) return; /* refused */
    naive_change(world_of(self), entity, changed.set, changed.words);
}

static naive_entity *find_for_lookup(void *self, quern_entity entity, const flow_system *system,
                                     uint32_t type)
{
    naive_entity *found = naive_find(world_of(self), entity);
    if (found == NULL || (found->set >> type & 1) == 0 || flow_types[type].word_count == 0) return NULL;
    return flow_lookup_matches(&system->lookups[type], found->set) ? found : NULL;
}

static uint64_t *look_up_to_write(void *self, quern_entity entity, const flow_system *system, uint32_t type)
{
    naive_entity *found = find_for_lookup(self, entity, system, type);
    if (found == NULL) return NULL;
    naive_note_changed(world_of(self), found, 1u << type);
    return naive_value(found->words, type);
}

static void record_enable(void *self, quern_entity entity, uint32_t type, bool enabled)
{
    static const uint64_t yes;
    naive_record(((operation_state *)self)->recorder, world_of(self), NAIVE_ENABLE, entity, type,
                 enabled ? &yes : NULL);
}

static void enable_now(void *self, quern_entity entity, uint32_t type, bool enabled)
{
    naive_entity *found = naive_find(world_of(self), entity);
    if (found == NULL) return;
    naive_note_changed(world_of(self), found, 1u << type);
    found->disabled &= ~(1u << type);
    if (!enabled) found->disabled |= found->set & 1u << type;
}

static bool is_enabled(void *self, quern_entity entity, const flow_system *system, uint32_t type)
{
    const naive_entity *found = naive_find(world_of(self), entity);
    return found != NULL && flow_lookup_matches(&system->lookups[type], found->set) &&
           ((found->set & ~found->disabled) >> type & 1) != 0;
}

static const uint64_t *look_up(void *self, quern_entity entity, const flow_system *system, uint32_t type)
{
    naive_entity *found = find_for_lookup(self, entity, system, type);
    return found != NULL ? naive_value(found->words, type) : NULL;
}

static bool is_alive(void *self, quern_entity entity)
{
    return naive_find(world_of(self), entity) != NULL;
}

static uint64_t *use_resource(void *self, uint32_t index, bool writes)
{
    return (uint64_t *)(void *)&((operation_state *)self)->reference->resources[index];
}

static uint64_t first_bits(const flow_reference *reference)
{
    return (uint64_t)reference->world.first_stamp << 32;
}

static void flush(flow_reference *reference, naive_recorder *recorder)
{
    reference->flush_stats = (naive_stats){0};
    naive_apply(&reference->world, recorder, &reference->flush_stats);
}

static void flush_world(void *self)
{
    flow_reference *reference = ((operation_state *)self)->reference;
    flush(reference, &reference->world_recorder);
}

static flow_operations recording_operations(operation_state *it)
{
    return (flow_operations){.self = it,
                             .create = record_create,
                             .destroy = record_destroy,
                             .add = record_set,
                             .set = record_set,
                             .remove = record_remove,
                             .enable = record_enable,
                             .is_enabled = is_enabled,
                             .accumulate = record_value,
                             .choose_row = choose_row,
                             .lookup = look_up,
                             .lookup_write = look_up_to_write,
                             .is_alive = is_alive,
                             .resource = use_resource,
                             .flush = flush_world,
                             .first_bits = first_bits(it->reference)};
}

static flow_operations immediate_operations(operation_state *it)
{
    return (flow_operations){.self = it,
                             .create = create_now,
                             .destroy = destroy_now,
                             .add = add_now,
                             .set = set_now,
                             .remove = remove_now,
                             .enable = enable_now,
                             .is_enabled = is_enabled,
                             .lookup = look_up,
                             .lookup_write = look_up_to_write,
                             .is_alive = is_alive,
                             .resource = use_resource,
                             .first_bits = first_bits(it->reference)};
}

/* ------------------------------------------------------------------------------------------ systems */

static flow_row row_of(flow_reference *reference, const flow_system *system, uint32_t slot)
{
    naive_entity *entity = &reference->world.entities[slot];
    flow_row row = {.entity = naive_handle(&reference->world, slot)};
    for (uint32_t type = 0; type < FLOW_TYPE_COUNT; type++) {
        const flow_term *term = &system->terms[type];
        row.has[type] = term->used && (entity->set >> type & 1) != 0;
        row.is_disabled[type] = row.has[type] && (entity->disabled >> type & 1) != 0;
        if (row.has[type] && term->access != QUERN_ACCESS_NONE)
            row.columns[type] = naive_value(entity->words, type);
    }
    return row;
}

/* Whether the entity passes one of the system's filters on changes, or the system has none. */
static bool is_new(const flow_system *system, const naive_entity *entity, uint64_t last_time)
{
    bool is_filtered = false, is_new = false;
    for (uint32_t type = 0; type < FLOW_TYPE_COUNT; type++) {
        if (!system->terms[type].changed) continue;
        is_filtered = true;
        is_new |= (entity->set >> type & 1) != 0 && entity->changed[type] > last_time;
    }
    return is_new || !is_filtered;
}

/* Applies to the entity what acting on its row changed besides its words: times of changes and disabled
 * types. */
static void apply_row_changes(const naive_world *world, const flow_system *system, const flow_row *row,
                              naive_entity *entity)
{
    for (uint32_t type = 0; type < FLOW_TYPE_COUNT; type++) {
        const flow_term *term = &system->terms[type];
        if (!row->has[type]) continue;
        const uint32_t disabled = (uint32_t)row->is_disabled[type] << type;
        if (term->access == QUERN_ACCESS_WRITE && row->is_written)
            naive_note_changed(world, entity, 1u << type);
        if ((entity->disabled & 1u << type) == disabled) continue;
        entity->disabled ^= 1u << type;
        naive_note_changed(world, entity, 1u << type);
    }
}

/* Acts on all rows that the system sees and returns the digest over them. *last_time is the time at which
 * this system or call last did so. */
static flow_digest run_rows(flow_reference *reference, const flow_system *system, uint64_t moment,
                            const flow_operations *operations, uint64_t *last_time, uint64_t *entity_count)
{
    naive_world *world = &reference->world;
    flow_digest sum = {0};
    for (uint32_t i = 0; i < world->archetype_count; i++) {
        const naive_archetype *archetype = &world->archetypes[i];
        if (!flow_system_matches(system, archetype->set)) continue;
        for (uint32_t k = 0; k < archetype->count; k++) {
            naive_entity *entity = &world->entities[archetype->slots[k]];
            if (!flow_system_matches_disabled(system, entity->disabled) ||
                !is_new(system, entity, *last_time))
                continue;
            flow_row row = row_of(reference, system, archetype->slots[k]);
            flow_digest_add(&sum, flow_act_row(system, moment, operations, &row));
            apply_row_changes(world, system, &row, entity);
        }
        *entity_count += archetype->count;
    }
    *last_time = world->now;
    return sum;
}

static flow_digest run_middle(flow_reference *reference, uint32_t index, uint64_t moment,
                              const flow_operations *operations)
{
    const flow_system *system = &reference->plan->systems[index];
    if ((system->flags & QUERN_SYSTEM_EXCLUSIVE) != 0) {
        operation_state it = {reference, &reference->world_recorder};
        flow_operations now = immediate_operations(&it), later = recording_operations(&it);
        flow_act_exclusive(system, moment, operations, &now, &later);
        return (flow_digest){0};
    }
    if (flow_system_has_terms(system))
        return run_rows(reference, system, moment, operations, &reference->system_times[index],
                        &reference->entity_counts[index]);
    flow_row none = {0};
    return flow_act_row(system, moment, operations, &none);
}

/* Whether the system is enabled and its interval has elapsed. For a system with an interval, replaces
 * *ticks by the ticks since it last ran. */
static bool is_due(flow_reference *reference, uint32_t index, uint64_t *ticks)
{
    const flow_system *system = &reference->plan->systems[index];
    if (!flow_plan_enables(reference->plan, index, reference->frame_index)) return false;
    if (system->interval_ticks == 0) return true;
    reference->due_ticks[index] += *ticks;
    reference->elapsed_ticks[index] += *ticks;
    *ticks = reference->elapsed_ticks[index];
    return reference->due_ticks[index] >= system->interval_ticks;
}

static bool is_wanted(flow_reference *reference, uint32_t index, uint64_t moment,
                      const flow_operations *operations)
{
    const flow_system *system = &reference->plan->systems[index];
    if (system->condition_percent == 0) return true;
    reference->condition_counts[index]++;
    return flow_act_condition(system, moment, operations);
}

static void consume_interval(flow_reference *reference, uint32_t index)
{
    uint64_t interval_ticks = reference->plan->systems[index].interval_ticks;
    reference->due_ticks[index] %= interval_ticks;
    reference->elapsed_ticks[index] = 0;
}

static void run_system(flow_reference *reference, uint32_t index, uint64_t ticks)
{
    const flow_system *system = &reference->plan->systems[index];
    naive_recorder *recorder = &reference->frame_recorder;
    operation_state it = {reference, recorder};
    flow_operations operations = recording_operations(&it);
    if ((system->flags & QUERN_SYSTEM_EXCLUSIVE) != 0)
        naive_apply(&reference->world, recorder, &reference->stats);
    reference->world.now++;
    if (!is_due(reference, index, &ticks)) return;
    uint64_t moment = flow_moment(reference->frame_index, flow_seconds(ticks));
    if (!is_wanted(reference, index, moment, &operations)) return;
    if (system->interval_ticks > 0) consume_interval(reference, index);
    uint32_t command_count = recorder->command_count;
    recorder->source = index;
    if (system->has_begin) flow_act_begin(system, moment, &operations);
    flow_digest sum = run_middle(reference, index, moment, &operations);
    if (!system->has_partial) sum = (flow_digest){0};
    if (system->has_end) flow_act_end(system, moment, &operations, sum);
    reference->command_counts[index] += recorder->command_count - command_count;
}

/* Returns the number of times that the phase runs in this frame. */
static uint32_t count_runs(flow_reference *reference, uint32_t phase, uint32_t frame_ticks)
{
    const flow_phase *it = &reference->plan->phases[phase];
    if (it->step_ticks == 0) return 1;
    reference->phase_ticks[phase] += frame_ticks;
    uint64_t whole_count = reference->phase_ticks[phase] / it->step_ticks;
    bool is_late = whole_count > it->max_step_count;
    reference->phase_ticks[phase] %= it->step_ticks;
    return is_late ? it->max_step_count : (uint32_t)whole_count;
}

static void run_phase(flow_reference *reference, uint32_t phase, uint32_t frame_ticks)
{
    const flow_plan *plan = reference->plan;
    uint32_t step_ticks = plan->phases[phase].step_ticks;
    for (uint32_t left = count_runs(reference, phase, frame_ticks); left > 0; left--) {
        for (uint32_t i = 0; i < plan->system_count; i++)
            if (plan->systems[reference->order[i]].phase == phase)
                run_system(reference, reference->order[i], step_ticks > 0 ? step_ticks : frame_ticks);
        naive_apply(&reference->world, &reference->frame_recorder, &reference->stats);
    }
}

/* ----------------------------------------------------------------------------------- between frames */

static uint64_t call_once(flow_reference *reference, uint32_t index, quern_entity *recent)
{
    const flow_call *call = &reference->plan->calls[index];
    reference->world.now++;
    const bool is_parallel = call->kind == FLOW_CALL_PARALLEL;
    uint64_t moment = flow_moment_between(reference->frame_index, reference->seen), entity_count = 0;
    operation_state it = {reference, is_parallel ? &reference->frame_recorder : &reference->world_recorder};
    flow_operations operations = recording_operations(&it), now = immediate_operations(&it);
    if (call->kind == FLOW_CALL_IMMEDIATE) {
        flow_act_exclusive(&call->system, moment, &operations, &now, &operations);
        /* the actions may have flushed, which makes the provisional handle invalid */
        *recent = quern_entity_null();
        return 0;
    }
    if (!is_parallel) *recent = flow_act_on_recent(&call->system, moment, &operations, *recent);
    uint64_t seen = run_rows(reference, &call->system, moment, &operations, &reference->call_times[index],
                             &entity_count)
                        .hash;
    if (is_parallel) flush(reference, it.recorder);
    return seen;
}

void flow_reference_call(flow_reference *reference)
{
    quern_entity recent = quern_entity_null();
    for (uint32_t i = 0; i < reference->plan->call_count; i++) {
        const flow_call *call = &reference->plan->calls[i];
        if (!flow_call_runs(call, reference->frame_index)) continue;
        reference->seen ^= call_once(reference, i, &recent);
        if (!flow_call_flushes(call, reference->frame_index)) continue;
        flush(reference, &reference->world_recorder);
        recent = quern_entity_null();
    }
}

/* -------------------------------------------------------------------------------------------- frames */

void flow_reference_frame(flow_reference *reference)
{
    uint32_t frame_ticks = flow_plan_delta_ticks(reference->plan, reference->frame_index);
    reference->stats = (naive_stats){0};
    memset(reference->entity_counts, 0, sizeof reference->entity_counts);
    memset(reference->command_counts, 0, sizeof reference->command_counts);
    if (reference->world_recorder.command_count > 0) flush(reference, &reference->world_recorder);
    for (uint32_t phase = 0; phase < FLOW_PHASE_COUNT; phase++)
        run_phase(reference, phase, frame_ticks);
    reference->frame_index++;
}

void flow_reference_open(flow_reference *reference, const flow_plan *plan, quern_entity probe)
{
    memset((void *)reference, 0, sizeof *reference);
    reference->plan = plan;
    naive_open(&reference->world, plan, (uint32_t)(probe.bits >> 32));
    find_order(reference);
    quern_entity first = {probe.bits & ~(uint64_t)UINT32_MAX};
    for (uint32_t i = 0; i < plan->entity_count; i++) {
        uint64_t words[FLOW_WORD_COUNT];
        uint32_t set = flow_plan_entity(plan, i, first, words);
        naive_create(&reference->world, set, words);
    }
}

void flow_reference_close(flow_reference *reference)
{
    naive_close(&reference->world);
    naive_recorder_close(&reference->frame_recorder);
    naive_recorder_close(&reference->world_recorder);
}

/* ---------------------------------------------------------------------------------------- comparison */

static void compare_stats(const flow_reference *reference, const flow_subject *subject)
{
    quern_frame_stats actual = stats_of_frame(subject->schedule);
    unsigned long long seed = reference->plan->seed;
    cr_assert_eq(actual.command_count, reference->stats.command_count, "seed %llu", seed);
    cr_assert_eq(actual.dropped_count, reference->stats.dropped_count, "seed %llu", seed);
    cr_assert_eq(actual.created_count, reference->stats.created_count, "seed %llu", seed);
    cr_assert_eq(actual.destroyed_count, reference->stats.destroyed_count, "seed %llu", seed);
    for (uint32_t i = 0; i < reference->plan->system_count; i++) {
        quern_system_stats stats;
        uint32_t index = reference->order[i];
        quern_system handle = quern_schedule_system_at(subject->schedule, i);
        cr_assert_eq(handle.bits, subject->systems[index].bits, "seed %llu: order, place %u", seed, i);
        must(quern_schedule_get_system_stats(subject->schedule, handle, &stats));
        cr_assert_eq(subject->players[index].condition_count, reference->condition_counts[index],
                     "seed %llu: %s", seed, stats.name);
        cr_assert_eq(stats.entity_count, reference->entity_counts[index], "seed %llu: %s", seed,
                     stats.name);
        cr_assert_eq(stats.command_count, reference->command_counts[index], "seed %llu: %s", seed,
                     stats.name);
    }
}

static void compare_calls(const flow_reference *reference, const flow_subject *subject)
{
    quern_flush_stats actual;
    unsigned long long seed = reference->plan->seed;
    const naive_stats *wanted = &reference->flush_stats;
    must(quern_world_get_flush_stats(subject->world, &actual));
    cr_assert_eq(actual.command_count, wanted->command_count, "seed %llu: calls", seed);
    cr_assert_eq(actual.dropped_count, wanted->dropped_count, "seed %llu: calls", seed);
    cr_assert_eq(actual.created_count, wanted->created_count, "seed %llu: calls", seed);
    cr_assert_eq(actual.destroyed_count, wanted->destroyed_count, "seed %llu: calls", seed);
    cr_assert_eq(subject->seen, reference->seen, "seed %llu: calls", seed);
}

/* The library numbers provisional handles per stream, the model per sync point. So their numbers are not
 * compared. */
static bool is_same_first(quern_entity actual, quern_entity expected)
{
    return quern_entity_is_provisional(actual) ? quern_entity_is_provisional(expected)
                                               : quern_entity_equal(actual, expected);
}

static void compare_drops(const flow_reference *reference, const flow_subject *subject)
{
    uint64_t count = 0;
    for (uint32_t i = 0; i < quern_schedule_dropped_command_count(subject->schedule); i++) {
        quern_dropped_command actual;
        must(quern_schedule_get_dropped_command(subject->schedule, i, &actual));
        uint32_t index = actual.system.bits - 1;
        const naive_drop *expected = actual.reason == QUERN_DROP_DEAD ? &reference->stats.dead_drops[index]
                                     : actual.reason == QUERN_DROP_NO_COMPONENT
                                         ? &reference->stats.no_component_drops[index]
                                         : &reference->stats.destroyed_drops[index];
        cr_assert_str_eq(actual.system_name, reference->plan->systems[index].name);
        cr_assert_eq(actual.count, expected->count, "%s", actual.system_name);
        /* the reference records commands for views row by row, so another drop may be its first */
        if (reference->plan->systems[index].view_percent == 0)
            cr_assert(is_same_first(actual.first, expected->first), "%s", actual.system_name);
        count += actual.count;
    }
    cr_assert_eq(count, reference->stats.dropped_count);
}

static void compare_entity(const flow_reference *reference, const flow_subject *subject,
                           const naive_entity *expected, quern_entity entity)
{
    unsigned long long seed = reference->plan->seed;
    for (uint32_t type = 0; type < FLOW_TYPE_COUNT; type++) {
        bool has = (expected->set >> type & 1) != 0;
        cr_assert_eq(quern_entity_has(subject->world, entity, subject->components[type]), has,
                     "seed %llu: entity %u, %s", seed, quern_entity_index(entity), flow_types[type].name);
        cr_assert_eq(quern_entity_is_component_enabled(subject->world, entity, subject->components[type]),
                     has && (expected->disabled >> type & 1) == 0, "seed %llu: entity %u, %s", seed,
                     quern_entity_index(entity), flow_types[type].name);
        if (!has || flow_types[type].word_count == 0) continue;
        const uint64_t *words = quern_entity_get(subject->world, entity, subject->components[type]);
        cr_assert_arr_eq(words, expected->words + flow_types[type].first_word,
                         flow_types[type].word_count * sizeof *words, "seed %llu: entity %u, %s", seed,
                         quern_entity_index(entity), flow_types[type].name);
    }
}

/* Iterates over the rows of the model, archetype by archetype. */
typedef struct row_cursor {
    uint32_t archetype, row;
} row_cursor;

static uint32_t next_slot(const naive_world *world, row_cursor *cursor)
{
    while (cursor->archetype < world->archetype_count &&
           cursor->row == world->archetypes[cursor->archetype].count) {
        cursor->archetype++;
        cursor->row = 0;
    }
    cr_assert_lt(cursor->archetype, world->archetype_count, "more rows than the reference has");
    return world->archetypes[cursor->archetype].slots[cursor->row++];
}

static void compare_rows(const flow_reference *reference, const flow_subject *subject)
{
    quern_query *query = flow_subject_query_all(subject);
    quern_query_iterator it = quern_query_iterate(query);
    row_cursor cursor = {0};
    while (quern_query_next(&it))
        for (uint32_t i = 0; i < it.view.count; i++) {
            uint32_t slot = next_slot(&reference->world, &cursor);
            cr_assert_eq(it.view.entities[i].bits, naive_handle(&reference->world, slot).bits,
                         "seed %llu: row order", (unsigned long long)reference->plan->seed);
            compare_entity(reference, subject, &reference->world.entities[slot], it.view.entities[i]);
        }
    cr_assert_eq(it.result, QUERN_OK);
    cr_assert_eq(quern_query_count(query), (uint64_t)reference->world.alive_count);
    quern_query_destroy(query);
}

void flow_reference_compare(const flow_reference *reference, const flow_subject *subject)
{
    assert_valid(subject->world);
    compare_calls(reference, subject);
    compare_stats(reference, subject);
    compare_drops(reference, subject);
    compare_rows(reference, subject);
    for (uint32_t i = 0; i < FLOW_RESOURCE_COUNT; i++) {
        const flow_resource *actual = quern_resource_get(subject->world, subject->resources[i]);
        cr_assert_eq(actual->entity.bits, reference->resources[i].entity.bits, "resource %u", i);
        cr_assert_eq(actual->number, reference->resources[i].number, "resource %u", i);
    }
}
