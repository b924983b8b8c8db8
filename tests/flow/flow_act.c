/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "tests/flow/flow_act.h"

#include <string.h>

enum { READ_WORDS = 4 }; /* words of each column that read_value reads */

/* Makes handles comparable between worlds: the same entity has handles in two worlds that differ in the
 * world tag and in the generation base. */
static uint64_t relative(const flow_operations *operations, uint64_t bits)
{
    return bits == 0 ? 0 : bits - operations->first_bits + 1;
}

static uint64_t read_value(uint64_t hash, const flow_operations *operations, uint32_t type,
                           const uint64_t *words)
{
    for (uint32_t i = 0; i < flow_types[type].word_count && i < READ_WORDS; i++)
        hash =
            flow_mix(hash ^ (i < flow_types[type].link_count ? relative(operations, words[i]) : words[i]));
    return hash;
}

void flow_digest_add(flow_digest *sum, flow_digest part)
{
    if (part.power == 0) return;
    uint64_t power = sum->power == 0 ? 1 : sum->power;
    *sum = (flow_digest){sum->hash * part.power + part.hash, power * part.power};
}

/* --------------------------------------------------------------------------------------- commands */

/* The state with which a system or call chooses and issues its commands. */
typedef struct actor {
    const flow_system *system;
    const flow_operations *operations;
    uint64_t hash;
    quern_entity self, target; /* each may be null */
} actor;

static uint64_t roll(actor *it, uint32_t bound)
{
    it->hash = flow_mix(it->hash);
    return (it->hash >> 20) % bound;
}

/* Fills in words for all types. The first link of a type becomes `link`, its other links the actor's own
 * entity. */
static void make_words(actor *it, quern_entity link, uint64_t words[FLOW_WORD_COUNT])
{
    for (uint32_t i = 0; i < FLOW_WORD_COUNT; i++)
        words[i] = it->hash + i;
    for (uint32_t type = 0; type < FLOW_TYPE_COUNT; type++)
        for (uint32_t i = 0; i < flow_types[type].link_count; i++)
            words[flow_types[type].first_word + i] = (i == 0 ? link : it->self).bits;
}

static uint32_t roll_set(actor *it)
{
    return it->system->spawn_sets[roll(it, FLOW_SPAWN_COUNT)];
}

/* Chooses one of a few small types in 3 of 4 cases. With fewer distinct types in use, entities gather in
 * few archetypes. */
static uint32_t roll_type(actor *it)
{
    static const uint32_t small_types[] = {0, 2, 3, 5};
    uint64_t chosen = roll(it, 16);
    return chosen < 12 ? small_types[chosen % 4] : (uint32_t)roll(it, FLOW_TYPE_COUNT);
}

static void accumulate(actor *it, quern_entity entity, quern_entity link)
{
    uint64_t words[FLOW_WORD_COUNT];
    const flow_operations *operations = it->operations;
    const uint32_t type = roll_type(it);
    if (flow_types[type].word_count == 0) return;
    make_words(it, link, words);
    const flow_combine combine =
        flow_types[type].link_count > 0 ? FLOW_MIX : (flow_combine)roll(it, FLOW_COMBINE_COUNT);
    operations->accumulate(operations->self, entity, type, &words[flow_types[type].first_word], combine);
}

static void create_couple(actor *it)
{
    uint64_t words[FLOW_WORD_COUNT];
    const flow_operations *operations = it->operations;
    quern_entity a = operations->create(operations->self, 0, NULL);
    make_words(it, a, words);
    quern_entity b = operations->create(operations->self, roll_set(it), words);
    if (it->system->destroys_and_creates) return;
    make_words(it, b, words);
    operations->set(operations->self, a, 2, &words[flow_types[2].first_word]);
    if (roll(it, 2) == 0) operations->add(operations->self, a, 7, &words[flow_types[7].first_word]);
    if (roll(it, 2) == 0) accumulate(it, roll(it, 2) == 0 ? a : b, a);
    if (roll(it, 4) == 0) operations->destroy(operations->self, roll(it, 2) == 0 ? a : b);
}

/* Issues only creates and destroys, except for a few cases. In these an entity may be destroyed twice,
 * or created and changed or destroyed at the same sync point. */
static void destroy_and_create(actor *it)
{
    uint64_t words[FLOW_WORD_COUNT];
    const flow_operations *operations = it->operations;
    const uint64_t chosen = roll(it, 128) | (it->system->only_creates ? 64 : 0);
    if (chosen < 56) operations->destroy(operations->self, it->self);
    if (chosen == 56 && roll(it, 4) == 0) operations->destroy(operations->self, it->target);
    if (chosen < 24) return;
    make_words(it, it->self, words);
    const quern_entity fresh = operations->create(operations->self, roll_set(it), words);
    if (chosen == 57) operations->destroy(operations->self, fresh);
    if (chosen >= 56 && chosen < 64) accumulate(it, fresh, it->self);
    if (chosen >= 120) create_couple(it);
}

static void change_component(actor *it, quern_entity entity)
{
    uint64_t words[FLOW_WORD_COUNT];
    const flow_operations *operations = it->operations;
    uint32_t type = roll_type(it);
    make_words(it, it->target, words);
    const uint64_t *value = &words[flow_types[type].first_word];
    if ((it->system->can_disable >> type & 1) != 0 && roll(it, 2) == 0) {
        operations->enable(operations->self, entity, type, roll(it, 3) == 0);
        return;
    }
    switch (roll(it, 5)) {
    case 0:
        operations->add(operations->self, entity, type, roll(it, 2) == 0 ? value : NULL);
        break;
    case 1:
        operations->set(operations->self, entity, type, value);
        break;
    case 2:
    case 3:
        operations->remove(operations->self, entity, type);
        break;
    default:
        operations->remove(operations->self, entity, type);
        operations->add(operations->self, entity, type, NULL);
        break;
    }
}

static void change_something(actor *it)
{
    uint64_t words[FLOW_WORD_COUNT];
    const flow_operations *operations = it->operations;
    if (it->system->destroys_and_creates) {
        destroy_and_create(it);
        return;
    }
    switch (roll(it, 16)) {
    case 12:
        accumulate(it, it->self, it->target);
        break;
    case 13:
    case 14:
        accumulate(it, it->target, it->self);
        break;
    case 15:
        accumulate(it, it->target, it->target);
        change_component(it, it->target);
        accumulate(it, it->target, it->self);
        break;
    case 0:
        make_words(it, it->self, words);
        operations->create(operations->self, roll_set(it), words);
        break;
    case 1:
        create_couple(it);
        break;
    case 2:
    case 3:
        operations->destroy(operations->self, it->self);
        break;
    case 4:
        operations->destroy(operations->self, it->target);
        break;
    case 5:
    case 6:
        change_component(it, it->target);
        break;
    case 7:
        change_component(it, it->self);
        change_component(it, it->self);
        change_component(it, it->self);
        break;
    default:
        change_component(it, it->self);
        break;
    }
}

/* Rolls a command for views from the system and the moment alone. */
static flow_view_command roll_view_command(const flow_system *system, uint64_t moment, uint32_t index)
{
    actor it = {.system = system, .hash = flow_mix(system->salt ^ flow_mix(moment + index))};
    flow_view_command command = {.kind = (flow_view_kind)roll(&it, FLOW_VIEW_KIND_COUNT), .index = index};
    if (command.kind == FLOW_VIEW_DESTROY && roll(&it, 3) != 0) command.kind = FLOW_VIEW_REMOVE;
    command.type = roll_type(&it);
    if (command.kind == FLOW_VIEW_SET_VALUES && flow_types[command.type].word_count > FLOW_MAX_VIEW_WORDS)
        command.kind = FLOW_VIEW_SET;
    command.has_value = command.kind == FLOW_VIEW_SET || command.kind == FLOW_VIEW_SET_VALUES ||
                        (command.kind == FLOW_VIEW_ADD && roll(&it, 2) == 0);
    if (system->destroys_and_creates) command.kind = FLOW_VIEW_DESTROY;
    return command;
}

/* Chooses the row for some of the system's commands for views. One value for all rows is a function of the moment. */
static void choose_for_view(actor *it, uint64_t moment)
{
    uint64_t words[FLOW_WORD_COUNT];
    for (uint32_t i = 0; i < FLOW_VIEW_COMMAND_COUNT; i++) {
        const flow_view_command command = roll_view_command(it->system, moment, i);
        if (it->system->only_creates || roll(it, 100) >= it->system->view_percent) continue;
        actor common = {.hash = moment, .self = quern_entity_null()};
        make_words(command.kind == FLOW_VIEW_SET_VALUES ? it : &common,
                   command.kind == FLOW_VIEW_SET_VALUES ? it->self : common.self, words);
        it->operations->choose_row(it->operations->self, &command, it->self,
                                   command.has_value ? &words[flow_types[command.type].first_word] : NULL);
    }
}

/* -------------------------------------------------------------------------------------------- rows */

static bool reads(const flow_system *system, uint32_t type)
{
    return system->terms[type].used && system->terms[type].access != QUERN_ACCESS_NONE;
}

static bool writes(const flow_system *system, uint32_t type)
{
    return system->terms[type].used && system->terms[type].access == QUERN_ACCESS_WRITE;
}

static uint64_t read_row(const flow_system *system, uint64_t hash, const flow_operations *operations,
                         const flow_row *row, quern_entity *out_target)
{
    hash = flow_mix(hash ^ relative(operations, row->entity.bits));
    for (uint32_t type = 0; type < FLOW_TYPE_COUNT; type++) {
        if (!system->terms[type].used) continue;
        hash = flow_mix(hash + row->has[type] + 2u * row->is_disabled[type]);
        if (!reads(system, type) || row->columns[type] == NULL) continue;
        hash = read_value(hash, operations, type, row->columns[type]);
        if (flow_types[type].link_count > 0) out_target->bits = row->columns[type][0];
    }
    return hash;
}

static uint64_t read_target(const flow_system *system, uint64_t hash, const flow_operations *operations,
                            quern_entity target)
{
    hash = flow_mix(hash + operations->is_alive(operations->self, target));
    for (uint32_t type = 0; type < FLOW_TYPE_COUNT; type++) {
        if (!system->lookups[type].used) continue;
        if ((system->can_disable >> type & 1) != 0)
            hash = flow_mix(hash + operations->is_enabled(operations->self, target, system, type));
        const uint64_t *words = operations->lookup(operations->self, target, system, type);
        if (words != NULL) hash = read_value(hash, operations, type, words);
    }
    return hash;
}

/* Writes to the target by lookup. The target may be in a view of the system or in none. */
static void write_target(const flow_system *system, uint64_t hash, const flow_operations *operations,
                         quern_entity target)
{
    for (uint32_t type = 0; type < FLOW_TYPE_COUNT; type++) {
        if (!system->lookups[type].writes) continue;
        uint64_t *words = operations->lookup_write(operations->self, target, system, type);
        for (uint32_t i = flow_types[type].link_count; words != NULL && i < flow_types[type].word_count;
             i++)
            words[i] += hash ^ i;
    }
}

/* A concurrent resource is only added to, because the order of its writers is open. */
static uint64_t use_resources(const flow_system *system, uint64_t hash, const flow_operations *operations,
                              quern_entity entity)
{
    for (uint32_t i = 0; i < FLOW_RESOURCE_COUNT; i++) {
        quern_access access = system->resources[i];
        if (access == QUERN_ACCESS_NONE) continue;
        uint64_t *words = operations->resource(operations->self, i, access != QUERN_ACCESS_READ);
        if (access == QUERN_ACCESS_WRITE_CONCURRENT) {
            __atomic_fetch_add(&words[1], hash, __ATOMIC_RELAXED);
            continue;
        }
        hash = flow_mix(hash ^ relative(operations, words[0]) ^ words[1]);
        if (access == QUERN_ACCESS_READ) continue;
        words[1] = hash;
        if (hash % 16 == 0) words[0] = entity.bits;
    }
    return hash;
}

static void write_row(const flow_system *system, uint64_t hash, flow_row *row, quern_entity target)
{
    row->is_written = !system->marks_rows || (hash >> 40) % 4 == 0;
    if (!row->is_written) return;
    for (uint32_t type = 0; type < FLOW_TYPE_COUNT; type++) {
        uint64_t *words = row->columns[type];
        if (writes(system, type) && row->has[type] && (system->can_disable >> type & 1) != 0 &&
            (hash >> 30) % 8 == 0)
            row->is_disabled[type] = !row->is_disabled[type];
        if (!writes(system, type) || words == NULL) continue;
        for (uint32_t i = flow_types[type].link_count; i < flow_types[type].word_count; i++)
            words[i] += hash + i;
        for (uint32_t i = 0; i < flow_types[type].link_count; i++) {
            uint64_t choice = (hash >> (8 + 4 * i)) % 8;
            if (choice == 0) words[i] = row->entity.bits;
            if (choice == 1) words[i] = target.bits;
        }
    }
}

flow_digest flow_act_row(const flow_system *system, uint64_t moment, const flow_operations *operations,
                         flow_row *row)
{
    quern_entity target = quern_entity_null();
    uint64_t hash = read_row(system, flow_mix(system->salt + moment), operations, row, &target);
    hash = read_target(system, hash, operations, target);
    hash = use_resources(system, hash, operations, row->entity);
    write_target(system, hash, operations, target);
    write_row(system, hash, row, target);
    actor it = {system, operations, hash, row->entity, system->view_percent > 0 ? row->entity : target};
    if (roll(&it, 1000) < system->change_permille) change_something(&it);
    if (system->view_percent > 0) choose_for_view(&it, moment);
    return (flow_digest){hash, 1000003};
}

/* ------------------------------------------------------------------------------------ other callbacks */

uint64_t flow_moment(uint64_t frame, double delta_seconds)
{
    uint64_t bits;
    memcpy(&bits, &delta_seconds, sizeof bits);
    return flow_mix(frame ^ flow_mix(bits));
}

uint64_t flow_moment_between(uint64_t frame, uint64_t seen)
{
    return flow_mix(frame ^ flow_mix(seen));
}

/* Reads and writes what a callback without a view has access to: resources, and by lookup the entities
 * that are stored in them. */
static uint64_t use_resources_and_targets(const flow_system *system, uint64_t hash,
                                          const flow_operations *operations)
{
    for (uint32_t i = 0; i < FLOW_RESOURCE_COUNT; i++) {
        if (system->resources[i] == QUERN_ACCESS_NONE) continue;
        const uint64_t *words = operations->resource(operations->self, i, false);
        hash = flow_mix(hash ^ relative(operations, words[0]) ^ words[1]);
        hash = read_target(system, hash, operations, (quern_entity){words[0]});
        write_target(system, hash, operations, (quern_entity){words[0]});
    }
    return hash;
}

bool flow_act_condition(const flow_system *system, uint64_t moment, const flow_operations *operations)
{
    return use_resources_and_targets(system, flow_mix(system->salt ^ moment ^ 2), operations) % 100 <
           system->condition_percent;
}

void flow_act_begin(const flow_system *system, uint64_t moment, const flow_operations *operations)
{
    uint64_t hash = use_resources_and_targets(system, flow_mix(system->salt ^ moment), operations);
    hash = use_resources(system, hash, operations, quern_entity_null());
    actor it = {.system = system, .operations = operations, .hash = hash};
    if (roll(&it, 4) == 0) create_couple(&it);
}

void flow_act_end(const flow_system *system, uint64_t moment, const flow_operations *operations,
                  flow_digest sum)
{
    uint64_t hash =
        use_resources_and_targets(system, flow_mix(system->salt ^ moment ^ sum.hash ^ 1), operations);
    hash = use_resources(system, hash, operations, quern_entity_null());
    actor it = {.system = system, .operations = operations, .hash = hash};
    if (roll(&it, 4) == 0) create_couple(&it);
}

void flow_act_exclusive(const flow_system *system, uint64_t moment, const flow_operations *operations,
                        const flow_operations *now, const flow_operations *later)
{
    uint64_t *words = now->resource(now->self, 0, true);
    actor it = {.system = system,
                .operations = now,
                .hash = flow_mix(system->salt + 3 * moment),
                .self = {words[0]}};
    if (now->is_alive(now->self, it.self)) {
        change_component(&it, it.self);
        if (roll(&it, 3) == 0) now->destroy(now->self, it.self);
    }
    uint64_t values[FLOW_WORD_COUNT];
    make_words(&it, it.self, values);
    quern_entity fresh = now->create(now->self, roll_set(&it), values);
    words[0] = fresh.bits;
    words[1] += it.hash;
    it.operations = operations;
    it.target = fresh;
    change_something(&it);
    if (roll(&it, 2) == 0) {
        it.operations = later;
        create_couple(&it);
        change_something(&it);
        if (roll(&it, 2) == 0) later->flush(later->self);
        it.operations = operations;
    }
    change_something(&it);
}

quern_entity flow_act_on_recent(const flow_system *system, uint64_t moment,
                                const flow_operations *operations, quern_entity recent)
{
    uint64_t words[FLOW_WORD_COUNT];
    actor it = {.system = system,
                .operations = operations,
                .hash = flow_mix(system->salt + 5 * moment),
                .self = recent};
    make_words(&it, recent, words);
    it.target = operations->create(operations->self, roll_set(&it), words);
    if (!system->destroys_and_creates) change_component(&it, it.target);
    if (!quern_entity_is_null(recent)) change_something(&it);
    return it.target;
}
