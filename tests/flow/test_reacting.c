/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Test labels: threaded */
#include "sched/frame/schedule_internal.h"
#include "tests/flow/flow_setup.h"
#include "tests/support/effort.h"
#include "tests/support/random.h"
#include "tests/support/stress.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Random programs with reactions, which record commands that cause further reactions, compared with a
 * naive model. The model keeps entities in a list. At each sync point it applies the commands one by one
 * and compares each entity before and after with the terms of every reaction, including disabled
 * components. After each frame the world must equal the model at every thread count, with passes fused
 * or not, and in every open order: the entities, their values, and the rows that each reaction saw. The
 * model has no row order. It needs none, because an entity's actions depend only on its own number and
 * history, and its commands concern only itself or create entities. */

enum {
    KINDS = 4, /* components that are added and removed */
    MAX_REACTIONS = 7,
    MAX_ENTITIES = 60000,
    START = 300,
    FRAMES = 12,
    MAX_OPS = 200000,
    ALL_KINDS = QUERN_REACT_ADDED | QUERN_REACT_SET | QUERN_REACT_REMOVED
};

/* A component of all entities. Reactions write to it in their order. */
typedef struct history {
    uint64_t number, count, sum;
} history;

/* -------------------------------------------------------------------------------------------- the plan */

/* OLD: only the value from before it was set */
typedef enum usage { UNUSED, READ, WRITE, WITH, WITHOUT, OLD, USE_COUNT } usage;

typedef struct reaction_plan {
    char name[16];
    uint32_t kinds, phase, flags;
    usage uses[KINDS];
    bool keeps_history;    /* it writes to the entity's history, unless the entity is removed */
    bool writes_by_lookup; /* it writes the history by quern_context_lookup_write instead of by a term */
    bool has_condition, is_disabled_at_times;
    uint32_t after; /* a reaction of the same phase that precedes it, or MAX_REACTIONS */
    uint64_t salt;
} reaction_plan;

typedef struct plan {
    uint64_t seed;
    uint32_t count;
    reaction_plan reactions[MAX_REACTIONS];
} plan;

static plan it;

static uint64_t mix(uint64_t a, uint64_t b, uint64_t c)
{
    random_source random = {a * 0x9e3779b97f4a7c15ull ^ b * 0xbf58476d1ce4e5b9ull ^ c ^ it.seed << 32};
    return random_next(&random);
}

static void make_reaction(reaction_plan *reaction, uint32_t i, random_source *random)
{
    *reaction = (reaction_plan){.kinds = 1 + (uint32_t)random_below(random, ALL_KINDS),
                                .phase = (uint32_t)random_below(random, 2),
                                .keeps_history = random_below(random, 4) > 0,
                                .has_condition = random_below(random, 5) == 0,
                                .is_disabled_at_times = random_below(random, 6) == 0,
                                .after = MAX_REACTIONS,
                                .salt = random_next(random)};
    reaction->writes_by_lookup = reaction->keeps_history && mix(i, reaction->salt, 7) % 3 == 0;
    snprintf(reaction->name, sizeof reaction->name, "r%u", i);
    if (random_below(random, 4) == 0) reaction->flags = QUERN_SYSTEM_SERIAL;
    if (random_below(random, 8) == 0) reaction->flags = QUERN_SYSTEM_MAIN_THREAD;
    for (uint32_t k = 0; k < KINDS; k++)
        if (random_below(random, 2) == 0) reaction->uses[k] = (usage)random_below(random, USE_COUNT);
    if (reaction->kinds == QUERN_REACT_REMOVED) {
        reaction->keeps_history = false;
        for (uint32_t k = 0; k < KINDS; k++)
            if (reaction->uses[k] == WRITE) reaction->uses[k] = READ;
    }
    for (uint32_t k = 0; k < KINDS; k++)
        if (reaction->uses[k] == OLD && (reaction->kinds & QUERN_REACT_SET) == 0) reaction->uses[k] = READ;
    for (uint32_t k = 0; k < i; k++)
        if (it.reactions[k].phase == reaction->phase && random_below(random, 3) == 0) reaction->after = k;
}

static void make_plan(uint64_t seed)
{
    random_source random = {seed * 1000003};
    it = (plan){.seed = seed, .count = 2 + (uint32_t)random_below(&random, MAX_REACTIONS - 1)};
    for (uint32_t i = 0; i < it.count; i++)
        make_reaction(&it.reactions[i], i, &random);
}

static bool is_disabled(const reaction_plan *reaction, uint64_t frame)
{
    return reaction->is_disabled_at_times && mix(frame, reaction->salt, 1) % 3 == 0;
}

static bool is_open(const reaction_plan *reaction, uint64_t frame)
{
    return !reaction->has_condition || mix(frame, reaction->salt, 2) % 2 == 0;
}

/* Lists the reactions in the order of execution: by phase, then by registration. A reaction that another
 * one must follow is always registered before it. */
static uint32_t list_in_order(uint32_t places[MAX_REACTIONS])
{
    uint32_t count = 0;
    for (uint32_t phase = 0; phase < 2; phase++)
        for (uint32_t i = 0; i < it.count; i++)
            if (it.reactions[i].phase == phase) places[count++] = i;
    return count;
}

/* -------------------------------------------------------------------------------- changes of one row */

typedef enum op_kind { OP_SET, OP_ADD, OP_REMOVE, OP_DESTROY, OP_TOGGLE, OP_ACCUMULATE, OP_CREATE } op_kind;

typedef struct order {
    op_kind kind;
    uint32_t component;
    /* OP_TOGGLE: odd values enable, even ones disable. OP_CREATE: odd values are also accumulated. */
    uint64_t value;
    uint64_t number; /* number of the entity; OP_CREATE: of the new entity */
} order;

enum { OPS_AT_ONCE = 3 };

/* Chooses the commands of an entity from a number that is mixed of all that it has seen. The numbers of
 * created entities are mixed of it as well. To keep them unique, a reaction that could repeat the same
 * commands does not create entities (`creates` is false). */
static uint32_t list_ops(uint64_t number, uint64_t roll, uint32_t percent, bool creates,
                         order out_ops[OPS_AT_ONCE])
{
    random_source random = {roll};
    if (random_below(&random, 100) >= percent) return 0;
    uint32_t count = 1 + (uint32_t)random_below(&random, OPS_AT_ONCE);
    for (uint32_t i = 0; i < count; i++) {
        const uint64_t what = random_below(&random, creates ? 28 : 26);
        out_ops[i] = (order){.kind = what < 6    ? OP_SET
                                     : what < 10 ? OP_ADD
                                     : what < 17 ? OP_REMOVE
                                     : what < 18 ? OP_DESTROY
                                     : what < 22 ? OP_TOGGLE
                                     : what < 26 ? OP_ACCUMULATE
                                                 : OP_CREATE,
                             .component = (uint32_t)random_below(&random, KINDS),
                             .value = random_next(&random),
                             .number = number};
        /* only types with even indices can be disabled */
        if (out_ops[i].kind == OP_TOGGLE) out_ops[i].component &= ~1u;
        if (out_ops[i].kind == OP_CREATE) out_ops[i].number = random_next(&random);
    }
    return count;
}

/* Returns the types that an entity is created with, one bit each. */
static uint32_t first_set(uint64_t number)
{
    return (uint32_t)mix(number, 3, 3) % (1u << KINDS);
}

static uint64_t first_value(uint64_t number, uint32_t component)
{
    return mix(number, component, 4);
}

/* Mixes what a reaction sees of a row into a number. Values without access are NULL. `disabled`:
 * disabled types, one bit each; 0 for copies of removed rows, which do not record them. */
static uint64_t mix_row(const reaction_plan *reaction, uint32_t kind, uint64_t number,
                        const uint64_t *const values[KINDS], uint32_t disabled)
{
    uint64_t sum = mix(number, reaction->salt, kind | disabled << 8);
    for (uint32_t k = 0; k < KINDS; k++)
        if (values[k] != NULL) sum = mix(sum, *values[k], k);
    return sum;
}

/* Returns the probability of commands. It is below 100 % so that chains of reactions end. A reaction
 * that keeps no history would see the same again and repeat its commands forever. */
static uint32_t percent_of(const reaction_plan *reaction, uint32_t kind)
{
    if (kind == QUERN_REACT_REMOVED) return 20;
    if (!reaction->keeps_history) return 0;
    return kind == QUERN_REACT_SET ? 15 : 30;
}

/* ------------------------------------------------------------------------------------------- the model */

typedef struct model_entity {
    bool is_alive;
    uint32_t set, disabled;
    history history;
    uint64_t values[KINDS];
    bool is_added[MAX_REACTIONS], is_set[MAX_REACTIONS]; /* pending: not yet reported to the reaction */
    uint64_t old[MAX_REACTIONS][KINDS]; /* values before the first change that made it is_set */
} model_entity;

/* A removed entity that has not been reported yet. */
typedef struct removed_entity {
    model_entity was;
    uint32_t reaction;
} removed_entity;

typedef struct reported {
    uint64_t sum, count;
} reported;

static model_entity *entities, *before;
static bool *is_touched;
static uint32_t *written;
static uint32_t entity_count;
static removed_entity *removed_entities;
static uint32_t removed_count;
static order *ops;
static uint32_t op_count;
static reported model_reported[MAX_REACTIONS];
static uint64_t most_rounds;

static bool matches(const reaction_plan *reaction, const model_entity *entity)
{
    if (!entity->is_alive) return false;
    for (uint32_t k = 0; k < KINDS; k++) {
        const bool has = (entity->set >> k & 1) != 0;
        if (reaction->uses[k] == UNUSED) continue;
        if (has != (reaction->uses[k] != WITHOUT)) return false;
    }
    return true;
}

static uint32_t accessed(const reaction_plan *reaction)
{
    uint32_t set = 0;
    for (uint32_t k = 0; k < KINDS; k++)
        if (reaction->uses[k] == READ || reaction->uses[k] == WRITE) set |= 1u << k;
    return set;
}

static uint32_t read_as_old(const reaction_plan *reaction)
{
    uint32_t set = 0;
    for (uint32_t k = 0; k < KINDS; k++)
        if (reaction->uses[k] == OLD) set |= 1u << k;
    return set;
}

static uint32_t find_entity(uint64_t number)
{
    for (uint32_t i = 0; i < entity_count; i++)
        if (entities[i].history.number == number) return i;
    return UINT32_MAX;
}

static void add_entity(uint64_t number)
{
    cr_assert_lt(entity_count, (uint32_t)MAX_ENTITIES);
    model_entity *fresh = &entities[entity_count++];
    *fresh = (model_entity){.is_alive = true, .set = first_set(number), .history.number = number};
    for (uint32_t k = 0; k < KINDS; k++)
        fresh->values[k] = first_value(number, k);
}

static void apply_op(model_entity *entity, const order *op, uint32_t *written_set)
{
    if (!entity->is_alive) return;
    switch (op->kind) {
    case OP_SET:
    case OP_ADD:
        entity->set |= 1u << op->component;
        entity->values[op->component] = op->value;
        *written_set |= 1u << op->component;
        break;
    case OP_REMOVE:
        entity->set &= ~(1u << op->component);
        entity->disabled &= ~(1u << op->component);
        *written_set &= ~(1u << op->component);
        break;
    case OP_DESTROY:
        entity->is_alive = false;
        break;
    case OP_TOGGLE:
        entity->disabled &= ~(1u << op->component);
        if (op->value % 2 == 0) entity->disabled |= entity->set & 1u << op->component;
        break;
    case OP_ACCUMULATE: /* after all other commands */
    case OP_CREATE:
        break;
    }
}

static void apply_value(model_entity *entity, const order *op, uint32_t *written_set)
{
    if (!entity->is_alive || (entity->set >> op->component & 1) == 0) return;
    entity->values[op->component] += op->value;
    *written_set |= 1u << op->component;
}

/* Determines for each reaction what a change of an entity means to it: added, set or removed. */
static void classify_change(const model_entity *was, model_entity *is, uint32_t written_set)
{
    for (uint32_t i = 0; i < it.count; i++) {
        const reaction_plan *reaction = &it.reactions[i];
        const bool did = matches(reaction, was), does = matches(reaction, is);
        if (does && !did) {
            is->is_added[i] = (reaction->kinds & QUERN_REACT_ADDED) != 0;
            is->is_set[i] = false;
        } else if (did && !does) {
            if ((reaction->kinds & QUERN_REACT_REMOVED) != 0 && !is->is_added[i])
                removed_entities[removed_count++] = (removed_entity){.was = *was, .reaction = i};
            is->is_added[i] = is->is_set[i] = false;
        } else if (does && (written_set & (accessed(reaction) | read_as_old(reaction))) != 0) {
            if ((reaction->kinds & QUERN_REACT_SET) == 0 || is->is_added[i]) continue;
            if (!is->is_set[i]) memcpy(is->old[i], was->values, sizeof was->values);
            is->is_set[i] = true;
        }
    }
}

/* Applies all commands in order, then accumulated values. Entities are created last. */
static void model_sync(void)
{
    memset(is_touched, 0, entity_count);
    for (uint32_t i = 0; i < op_count; i++) {
        if (ops[i].kind == OP_CREATE) continue;
        const uint32_t index = find_entity(ops[i].number);
        cr_assert_neq(index, UINT32_MAX);
        if (!is_touched[index]) {
            before[index] = entities[index];
            written[index] = 0;
            is_touched[index] = true;
        }
        apply_op(&entities[index], &ops[i], &written[index]);
    }
    for (uint32_t i = 0; i < op_count; i++) {
        if (ops[i].kind != OP_ACCUMULATE) continue;
        const uint32_t index = find_entity(ops[i].number);
        apply_value(&entities[index], &ops[i], &written[index]);
    }
    for (uint32_t i = 0; i < entity_count; i++)
        if (is_touched[i]) classify_change(&before[i], &entities[i], written[i]);
    for (uint32_t i = 0; i < op_count; i++) {
        if (ops[i].kind != OP_CREATE) continue;
        add_entity(ops[i].number);
        const model_entity nothing = {.is_alive = false};
        uint32_t ignored = 0;
        if (ops[i].value % 2 == 1) apply_value(&entities[entity_count - 1], &ops[i], &ignored);
        classify_change(&nothing, &entities[entity_count - 1], 0);
    }
    op_count = 0;
}

static void record(uint64_t number, uint64_t roll, uint32_t percent, bool creates)
{
    order fresh[OPS_AT_ONCE];
    const uint32_t count = list_ops(number, roll, percent, creates, fresh);
    cr_assert_leq(op_count + count, (uint32_t)MAX_OPS);
    memcpy(ops + op_count, fresh, count * sizeof *fresh);
    op_count += count;
}

static uint64_t mix_entity(const reaction_plan *reaction, uint32_t kind, const model_entity *entity)
{
    const uint64_t *values[KINDS] = {NULL};
    const uint32_t old = kind == QUERN_REACT_SET ? read_as_old(reaction) : 0;
    for (uint32_t k = 0; k < KINDS; k++)
        if ((accessed(reaction) >> k & 1) != 0)
            values[k] = &entity->values[k];
        else if ((old >> k & 1) != 0)
            values[k] = &entity->old[reaction - it.reactions][k];
    const uint32_t disabled =
        kind != QUERN_REACT_REMOVED ? entity->disabled & (accessed(reaction) | old) : 0;
    return mix_row(reaction, kind, entity->history.number, values, disabled);
}

static void show_removed(uint32_t i, uint32_t first_count)
{
    const reaction_plan *reaction = &it.reactions[i];
    for (uint32_t k = 0; k < first_count; k++) {
        if (removed_entities[k].reaction != i) continue;
        const model_entity *was = &removed_entities[k].was;
        const uint64_t seen = mix_entity(reaction, QUERN_REACT_REMOVED, was);
        model_reported[i].sum += seen;
        model_reported[i].count++;
        const uint32_t index = find_entity(was->history.number);
        if (entities[index].is_alive)
            record(was->history.number, seen ^ was->history.count,
                   percent_of(reaction, QUERN_REACT_REMOVED), false);
    }
}

static void show_row(uint32_t i, model_entity *entity, uint32_t kind)
{
    const reaction_plan *reaction = &it.reactions[i];
    const uint64_t seen = mix_entity(reaction, kind, entity);
    model_reported[i].sum += seen;
    model_reported[i].count++;
    for (uint32_t k = 0; k < KINDS; k++)
        if (reaction->uses[k] == WRITE) entity->values[k] += seen;
    if (reaction->keeps_history) {
        entity->history.count++;
        entity->history.sum = mix(entity->history.sum, seen, entity->history.count);
    }
    record(entity->history.number, seen ^ entity->history.count, percent_of(reaction, kind),
           reaction->keeps_history);
}

static void show_rows(uint32_t i, const bool (*added)[MAX_REACTIONS], const bool (*set)[MAX_REACTIONS],
                      uint32_t count)
{
    for (uint32_t k = 0; k < count; k++)
        if (added[k][i])
            show_row(i, &entities[k], QUERN_REACT_ADDED);
        else if (set[k][i])
            show_row(i, &entities[k], QUERN_REACT_SET);
}

static bool model_is_due(void)
{
    if (removed_count > 0) return true;
    for (uint32_t k = 0; k < entity_count; k++)
        for (uint32_t i = 0; i < it.count; i++)
            if (entities[k].is_added[i] || entities[k].is_set[i]) return true;
    return false;
}

static void model_round(uint64_t frame)
{
    static bool added[MAX_ENTITIES][MAX_REACTIONS], set[MAX_ENTITIES][MAX_REACTIONS];
    uint32_t places[MAX_REACTIONS];
    for (uint32_t k = 0; k < entity_count; k++) {
        memcpy(added[k], entities[k].is_added, sizeof added[k]);
        memcpy(set[k], entities[k].is_set, sizeof set[k]);
        memset(entities[k].is_added, 0, sizeof added[k]);
        memset(entities[k].is_set, 0, sizeof set[k]);
    }
    const uint32_t count = list_in_order(places), first_gone = removed_count;
    for (uint32_t i = 0; i < count; i++) {
        const reaction_plan *reaction = &it.reactions[places[i]];
        if (is_disabled(reaction, frame) || !is_open(reaction, frame)) continue;
        show_removed(places[i], first_gone);
        show_rows(places[i], (const bool(*)[MAX_REACTIONS])added, (const bool(*)[MAX_REACTIONS])set,
                  entity_count);
    }
    removed_count = 0;
    model_sync();
}

static void model_react(uint64_t frame)
{
    uint64_t rounds = 0;
    for (; model_is_due(); rounds++)
        model_round(frame);
    if (rounds > most_rounds) most_rounds = rounds;
}

static uint64_t perturb_roll(uint64_t number, uint64_t frame, uint32_t phase)
{
    return mix(number, frame * 2 + phase, 5);
}

static uint64_t call_roll(uint64_t number, uint64_t frame)
{
    return mix(number, frame, 6);
}

enum { PERTURB_PERCENT = 10, CALL_PERCENT = 10 };

/* Applies calls between frames. Each call is reported as a change of its own. */
static void model_call(uint64_t frame)
{
    const uint32_t count = entity_count;
    for (uint32_t i = 0; i < count; i++) {
        if (!entities[i].is_alive) continue;
        const uint64_t number = entities[i].history.number;
        record(number, call_roll(number, frame), CALL_PERCENT, true);
        const uint32_t recorded = op_count;
        order calls[OPS_AT_ONCE];
        memcpy(calls, ops, recorded * sizeof *ops);
        op_count = 0;
        for (uint32_t k = 0; k < recorded; k++) {
            ops[op_count++] = calls[k];
            model_sync();
        }
    }
}

static void model_frame(uint64_t frame)
{
    model_react(frame);
    for (uint32_t phase = 0; phase < 2; phase++) {
        for (uint32_t i = 0; i < entity_count; i++)
            if (entities[i].is_alive)
                record(entities[i].history.number, perturb_roll(entities[i].history.number, frame, phase),
                       PERTURB_PERCENT, true);
        model_sync();
        model_react(frame);
    }
}

static void open_model(void)
{
    entities = calloc(MAX_ENTITIES, sizeof *entities);
    before = calloc(MAX_ENTITIES, sizeof *before);
    is_touched = calloc(MAX_ENTITIES, sizeof *is_touched);
    written = calloc(MAX_ENTITIES, sizeof *written);
    removed_entities = calloc(MAX_OPS, sizeof *removed_entities);
    ops = calloc(MAX_OPS, sizeof *ops);
    entity_count = removed_count = op_count = 0;
    most_rounds = 0;
    memset(model_reported, 0, sizeof model_reported);
}

static void close_model(void)
{
    free(entities);
    free(before);
    free(is_touched);
    free(written);
    free(removed_entities);
    free(ops);
}

/* ----------------------------------------------------------------------------------------- a real frame */

static quern_world *world;
static quern_schedule *schedule;
static quern_component history_type, types[KINDS];
static quern_system handles[MAX_REACTIONS];
static struct {
    _Atomic uint64_t sum, count;
} actual_reported[MAX_REACTIONS];

static uint32_t list_first(uint64_t number, quern_component *components, const void **values,
                           history *first, uint64_t *numbers)
{
    uint32_t count = 0;
    *first = (history){.number = number};
    components[count] = history_type;
    values[count++] = first;
    for (uint32_t k = 0; k < KINDS; k++) {
        if ((first_set(number) >> k & 1) == 0) continue;
        numbers[k] = first_value(number, k);
        components[count] = types[k];
        values[count++] = &numbers[k];
    }
    return count;
}

static void command(quern_commands *commands, quern_entity entity, const order *op)
{
    quern_component components[KINDS + 1];
    const void *values[KINDS + 1];
    history first;
    uint64_t numbers[KINDS];
    switch (op->kind) {
    case OP_SET:
        must(quern_commands_set(commands, entity, types[op->component], &op->value));
        break;
    case OP_ADD:
        must(quern_commands_add(commands, entity, types[op->component], &op->value));
        break;
    case OP_REMOVE:
        must(quern_commands_remove(commands, entity, types[op->component]));
        break;
    case OP_DESTROY:
        must(quern_commands_destroy(commands, entity));
        break;
    case OP_TOGGLE:
        must(quern_commands_set_component_enabled(commands, entity, types[op->component],
                                                  op->value % 2 == 1));
        break;
    case OP_ACCUMULATE:
        must(quern_commands_accumulate(commands, entity, types[op->component], &op->value, QUERN_SUM));
        break;
    case OP_CREATE: {
        const uint32_t count = list_first(op->number, components, values, &first, numbers);
        const quern_entity created = record_entity_with(commands, components, values, count);
        if (op->value % 2 == 1)
            must(quern_commands_accumulate(commands, created, types[op->component], &op->value, QUERN_SUM));
        break;
    }
    }
}

static void command_all(quern_context *context, quern_entity entity, uint64_t number, uint64_t roll,
                        uint32_t percent, bool creates)
{
    order fresh[OPS_AT_ONCE];
    const uint32_t count = list_ops(number, roll, percent, creates, fresh);
    for (uint32_t i = 0; i < count; i++)
        command(quern_context_commands(context), entity, &fresh[i]);
}

static void perturb(quern_context *context, const quern_view *view)
{
    const uint32_t phase = (uint32_t)(uintptr_t)quern_context_user_data(context);
    const uint64_t frame = quern_context_frame_index(context);
    const history *histories = QUERN_COLUMN(view, 0, const history);
    for (uint32_t row = 0; row < view->count; row++)
        command_all(context, view->entities[row], histories[row].number,
                    perturb_roll(histories[row].number, frame, phase), PERTURB_PERCENT, true);
}

/* Returns the history of a row with write access. */
static history *own_history(quern_context *context, const quern_view *view, uint32_t row)
{
    const reaction_plan *reaction = quern_context_user_data(context);
    if (!reaction->writes_by_lookup) return QUERN_COLUMN(view, 0, history) + row;
    return quern_context_lookup_write(context, view->entities[row], history_type);
}

/* Terms: the history, then one term per used component. */
static void react(quern_context *context, const quern_view *view)
{
    const reaction_plan *reaction = quern_context_user_data(context);
    const uint32_t i = (uint32_t)(reaction - it.reactions), kind = quern_context_reaction(context);
    const bool is_gone = kind == QUERN_REACT_REMOVED;
    const history *histories = QUERN_COLUMN(view, 0, const history);
    cr_assert_not_null(histories);
    cr_assert(kind != 0 && (kind & (kind - 1)) == 0 && (kind & reaction->kinds) != 0);
    const uint64_t *columns[KINDS] = {NULL};
    uint32_t terms[KINDS] = {0};
    for (uint32_t k = 0, term = 1; k < KINDS; k++) {
        if (reaction->uses[k] == UNUSED) continue;
        terms[k] = term;
        if (reaction->uses[k] == READ || reaction->uses[k] == WRITE || reaction->uses[k] == OLD)
            columns[k] = QUERN_COLUMN(view, term, const uint64_t);
        term++;
    }
    uint64_t sum = 0;
    for (uint32_t row = 0; row < view->count; row++) {
        const uint64_t *values[KINDS] = {NULL};
        const history seen_history = histories[row];
        uint32_t disabled = 0;
        for (uint32_t k = 0; k < KINDS; k++) {
            if (columns[k] == NULL) continue;
            values[k] = columns[k] + row;
            if (!is_gone && !quern_view_is_enabled(view, terms[k], row)) disabled |= 1u << k;
        }
        const uint64_t seen = mix_row(reaction, kind, seen_history.number, values, disabled);
        uint64_t count = seen_history.count;
        sum += seen;
        for (uint32_t k = 0; k < KINDS && !is_gone; k++)
            if (reaction->uses[k] == WRITE) QUERN_COLUMN(view, terms[k], uint64_t)[row] += seen;
        if (reaction->keeps_history && !is_gone) {
            history *mine = own_history(context, view, row);
            count = ++mine->count;
            mine->sum = mix(mine->sum, seen, mine->count);
        }
        if (is_gone && !quern_context_is_alive(context, view->entities[row])) continue;
        command_all(context, view->entities[row], seen_history.number, seen ^ count,
                    percent_of(reaction, kind), !is_gone && reaction->keeps_history);
    }
    atomic_fetch_add_explicit(&actual_reported[i].sum, sum, memory_order_relaxed);
    atomic_fetch_add_explicit(&actual_reported[i].count, view->count, memory_order_relaxed);
}

static bool condition(quern_context *context)
{
    const reaction_plan *reaction = quern_context_user_data(context);
    return is_open(reaction, quern_context_frame_index(context));
}

static quern_term term_of(usage use, quern_component component)
{
    return use == READ    ? quern_term_read(component)
           : use == WRITE ? quern_term_write(component)
           : use == WITH  ? quern_term_with(component)
           : use == OLD   ? quern_term_old(component)
                          : quern_term_without(component);
}

static void add_reaction(uint32_t i)
{
    reaction_plan *reaction = &it.reactions[i];
    quern_system_def def = system_def(reaction->name, react);
    uint32_t count = 0;
    const bool writes_column = reaction->keeps_history && !reaction->writes_by_lookup;
    def.terms[count++] = writes_column ? quern_term_write(history_type) : quern_term_read(history_type);
    if (reaction->writes_by_lookup) def.write_lookups[0].component = history_type;
    for (uint32_t k = 0; k < KINDS; k++)
        if (reaction->uses[k] != UNUSED) def.terms[count++] = term_of(reaction->uses[k], types[k]);
    def.reacts_to = reaction->kinds;
    def.phase = reaction->phase;
    def.flags = reaction->flags;
    def.user_data = reaction;
    if (reaction->has_condition) def.condition = condition;
    if (reaction->after < MAX_REACTIONS) def.after[0] = it.reactions[reaction->after].name;
    handles[i] = setup_system(schedule, &def);
}

static void open_world(quern_schedule_def style)
{
    world = setup_world();
    history_type = setup_component(world, "history", sizeof(history), 8);
    for (uint32_t k = 0; k < KINDS; k++) {
        char name[8];
        snprintf(name, sizeof name, "c%u", k);
        types[k] = make_component(world, .name = name, .size_bytes = 8, .alignment_bytes = 8,
                                  .fields = {{.name = "value", .type = QUERN_FIELD_U64}},
                                  .can_disable = k % 2 == 0);
    }
    style.max_reaction_rounds = 64;
    schedule = setup_schedule_as(world, style, 2);
    schedule->playback.parallel_command_count = 1; /* threads share even a few accumulated values */
    for (uint32_t phase = 0; phase < 2; phase++) {
        make_system(schedule, phase == 0 ? "stir" : "stir again", perturb,
                    .terms = {quern_term_read(history_type)}, .phase = phase,
                    .user_data = (void *)(uintptr_t)phase);
    }
    for (uint32_t i = 0; i < it.count; i++)
        add_reaction(i);
    for (uint32_t i = 0; i < MAX_REACTIONS; i++)
        actual_reported[i].sum = actual_reported[i].count = 0;
}

static void create_now(uint64_t number)
{
    quern_component components[KINDS + 1];
    const void *values[KINDS + 1];
    history first;
    uint64_t numbers[KINDS];
    const uint32_t count = list_first(number, components, values, &first, numbers);
    must(quern_entity_create_with(world, components, values, count, NULL));
}

/* Accumulating is a command, also between frames. */
static void call(quern_entity entity, const order *op)
{
    if (op->kind != OP_CREATE && !quern_entity_is_alive(world, entity)) return;
    const bool has = op->kind != OP_CREATE && quern_entity_has(world, entity, types[op->component]);
    switch (op->kind) {
    case OP_ADD:
        if (!has) {
            must(quern_entity_add(world, entity, types[op->component], &op->value));
            break;
        }
        /* fall through */
    case OP_SET:
        must(quern_entity_set(world, entity, types[op->component], &op->value));
        break;
    case OP_REMOVE:
        if (has) must(quern_entity_remove(world, entity, types[op->component]));
        break;
    case OP_DESTROY:
        must(quern_entity_destroy(world, entity));
        break;
    case OP_TOGGLE:
        if (has)
            must(quern_entity_set_component_enabled(world, entity, types[op->component],
                                                    op->value % 2 == 1));
        break;
    case OP_ACCUMULATE:
        command(quern_world_commands(world), entity, op);
        must(quern_world_flush(world));
        break;
    case OP_CREATE:
        if (op->value % 2 == 1) {
            command(quern_world_commands(world), entity, op);
            must(quern_world_flush(world));
        } else {
            create_now(op->number);
        }
        break;
    }
}

typedef struct row {
    history history;
    quern_entity entity;
    uint32_t set, disabled;
    uint64_t values[KINDS];
} row;

static int compare_rows(const void *a, const void *b)
{
    const uint64_t one = ((const row *)a)->history.number, other = ((const row *)b)->history.number;
    return one < other ? -1 : one > other;
}

/* Lists all entities of the world, sorted by number. */
static row *list_rows(uint32_t *out_count)
{
    const quern_term term = quern_term_read(history_type);
    quern_query *query = setup_query(world, &term, 1);
    row *rows = calloc((size_t)quern_query_count(query) + 1, sizeof *rows);
    quern_query_iterator iterator = quern_query_iterate(query);
    *out_count = 0;
    while (quern_query_next(&iterator)) {
        const history *histories = QUERN_COLUMN(&iterator.view, 0, const history);
        for (uint32_t i = 0; i < iterator.view.count; i++) {
            row *fresh = &rows[(*out_count)++];
            *fresh = (row){.history = histories[i], .entity = iterator.view.entities[i]};
            for (uint32_t k = 0; k < KINDS; k++) {
                const uint64_t *value = quern_entity_get(world, fresh->entity, types[k]);
                if (value == NULL) continue;
                fresh->set |= 1u << k;
                fresh->values[k] = *value;
                if (!quern_entity_is_component_enabled(world, fresh->entity, types[k]))
                    fresh->disabled |= 1u << k;
            }
        }
    }
    quern_query_destroy(query);
    qsort(rows, *out_count, sizeof *rows, compare_rows);
    return rows;
}

static void call_between(uint64_t frame)
{
    uint32_t count;
    row *rows = list_rows(&count);
    for (uint32_t i = 0; i < count; i++) {
        order fresh[OPS_AT_ONCE];
        const uint64_t number = rows[i].history.number;
        const uint32_t op_number = list_ops(number, call_roll(number, frame), CALL_PERCENT, true, fresh);
        for (uint32_t k = 0; k < op_number; k++)
            call(rows[i].entity, &fresh[k]);
    }
    free(rows);
}

/* --------------------------------------------------------------------------------------------- together */

static int compare_entities(const void *a, const void *b)
{
    const model_entity *one = *(model_entity *const *)a, *other = *(model_entity *const *)b;
    return one->history.number < other->history.number ? -1 : one->history.number > other->history.number;
}

static void compare(uint64_t frame)
{
    uint32_t count, alive_count = 0;
    row *rows = list_rows(&count);
    model_entity **alive = calloc(entity_count + 1, sizeof *alive);
    for (uint32_t i = 0; i < entity_count; i++)
        if (entities[i].is_alive) alive[alive_count++] = &entities[i];
    qsort(alive, alive_count, sizeof *alive, compare_entities);
    for (uint32_t i = 0; i < it.count; i++) {
        cr_assert_eq(actual_reported[i].count, model_reported[i].count,
                     "plan %llu, frame %llu, %s (%u): shown %llu rows, expected %llu",
                     (unsigned long long)it.seed, (unsigned long long)frame, it.reactions[i].name,
                     it.reactions[i].kinds, (unsigned long long)actual_reported[i].count,
                     (unsigned long long)model_reported[i].count);
        cr_assert_eq(actual_reported[i].sum, model_reported[i].sum,
                     "plan %llu, frame %llu, %s (%u): other rows", (unsigned long long)it.seed,
                     (unsigned long long)frame, it.reactions[i].name, it.reactions[i].kinds);
    }
    cr_assert_eq(count, alive_count, "plan %llu, frame %llu", (unsigned long long)it.seed,
                 (unsigned long long)frame);
    for (uint32_t i = 0; i < count; i++) {
        cr_assert_eq(rows[i].history.number, alive[i]->history.number);
        cr_assert_eq(rows[i].history.count, alive[i]->history.count);
        cr_assert_eq(rows[i].history.sum, alive[i]->history.sum);
        cr_assert_eq(rows[i].set, alive[i]->set, "plan %llu, frame %llu: entity %llx has %x, expected %x",
                     (unsigned long long)it.seed, (unsigned long long)frame,
                     (unsigned long long)rows[i].history.number, rows[i].set, alive[i]->set);
        cr_assert_eq(rows[i].disabled, alive[i]->disabled);
        for (uint32_t k = 0; k < KINDS; k++)
            if ((rows[i].set >> k & 1) != 0) cr_assert_eq(rows[i].values[k], alive[i]->values[k]);
    }
    free(alive);
    free(rows);
}

static void play(uint32_t thread_count, quern_schedule_def style)
{
    quern_jobs *jobs = setup_jobs(thread_count);
    open_model();
    open_world(style);
    for (uint64_t i = 1; i <= START; i++) {
        create_now(i);
        ops[op_count++] = (order){.kind = OP_CREATE, .number = i};
        model_sync();
    }
    for (uint64_t frame = 0; frame < FRAMES; frame++) {
        for (uint32_t i = 0; i < it.count; i++)
            must(quern_schedule_set_system_enabled(schedule, handles[i],
                                                   !is_disabled(&it.reactions[i], frame)));
        call_between(frame);
        model_call(frame);
        must_run(schedule, jobs);
        model_frame(frame);
        assert_valid(world);
        compare(frame);
    }
    quern_schedule_destroy(schedule);
    quern_world_destroy(world);
    quern_jobs_destroy(jobs);
    close_model();
}

Test(reacting, worlds_match_the_model_at_any_thread_count, .timeout = 600)
{
    const uint64_t first = stress_seed(1);
    for (uint64_t seed = first; seed < first + effort(12, 8, 4); seed++) {
        make_plan(seed);
        for (uint32_t i = 0; i < POOL_COUNT; i++)
            play(pool_threads[i], schedule_style((uint32_t)(seed + i) % STYLE_COUNT));
    }
}

Test(reacting, worlds_match_the_model_in_every_style, .timeout = 600)
{
    for (uint64_t seed = 101; seed <= effort(108, 108, 103); seed++) {
        make_plan(seed);
        for (uint32_t i = 0; i < STYLE_COUNT; i++)
            play(i % 2 == 0 ? 2 : 0, schedule_style(i));
    }
}
