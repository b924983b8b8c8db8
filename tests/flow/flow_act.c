/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "tests/flow/flow_act.h"

#include <string.h>

enum { READ_WORDS = 4 }; /* words of each column that read_value reads */

/* Makes handles comparable between worlds: the same entity has handles in two worlds that differ in the
 * world tag and in the generation base. */
static uint64_t relative(const flow_hands *hands, uint64_t bits)
{
    return bits == 0 ? 0 : bits - hands->first_bits + 1;
}

static uint64_t read_value(uint64_t hash, const flow_hands *hands, uint32_t type, const uint64_t *words)
{
    for (uint32_t i = 0; i < flow_types[type].word_count && i < READ_WORDS; i++)
        hash = flow_mix(hash ^ (i < flow_types[type].link_count ? relative(hands, words[i]) : words[i]));
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
    const flow_hands *hands;
    uint64_t hash;
    quern_entity self, target; /* each may be null */
} actor;

static uint64_t roll(actor *who, uint32_t bound)
{
    who->hash = flow_mix(who->hash);
    return (who->hash >> 20) % bound;
}

/* Fills in words for all types. The first link of a type becomes `link`, its other links the actor's own
 * entity. */
static void make_words(actor *who, quern_entity link, uint64_t words[FLOW_WORD_COUNT])
{
    for (uint32_t i = 0; i < FLOW_WORD_COUNT; i++)
        words[i] = who->hash + i;
    for (uint32_t type = 0; type < FLOW_TYPE_COUNT; type++)
        for (uint32_t i = 0; i < flow_types[type].link_count; i++)
            words[flow_types[type].first_word + i] = (i == 0 ? link : who->self).bits;
}

static uint32_t roll_set(actor *who)
{
    return who->system->spawn_sets[roll(who, FLOW_SPAWN_COUNT)];
}

/* Chooses one of a few small types in 3 of 4 cases. With fewer distinct types in use, entities gather in
 * few archetypes. */
static uint32_t roll_type(actor *who)
{
    static const uint32_t small_types[] = {0, 2, 3, 5};
    uint64_t chosen = roll(who, 16);
    return chosen < 12 ? small_types[chosen % 4] : (uint32_t)roll(who, FLOW_TYPE_COUNT);
}

static void accumulate(actor *who, quern_entity entity, quern_entity link)
{
    uint64_t words[FLOW_WORD_COUNT];
    const flow_hands *hands = who->hands;
    const uint32_t type = roll_type(who);
    if (flow_types[type].word_count == 0) return;
    make_words(who, link, words);
    const flow_way way = flow_types[type].link_count > 0 ? FLOW_MIX : (flow_way)roll(who, FLOW_WAY_COUNT);
    hands->accumulate(hands->self, entity, type, &words[flow_types[type].first_word], way);
}

static void create_couple(actor *who)
{
    uint64_t words[FLOW_WORD_COUNT];
    const flow_hands *hands = who->hands;
    quern_entity a = hands->create(hands->self, 0, NULL);
    make_words(who, a, words);
    quern_entity b = hands->create(hands->self, roll_set(who), words);
    if (who->system->turns_over) return;
    make_words(who, b, words);
    hands->set(hands->self, a, 2, &words[flow_types[2].first_word]);
    if (roll(who, 2) == 0) hands->add(hands->self, a, 7, &words[flow_types[7].first_word]);
    if (roll(who, 2) == 0) accumulate(who, roll(who, 2) == 0 ? a : b, a);
    if (roll(who, 4) == 0) hands->destroy(hands->self, roll(who, 2) == 0 ? a : b);
}

/* Issues only creates and destroys, except for a few cases. In these an entity may be destroyed twice,
 * or created and changed or destroyed at the same sync point. */
static void turn_over(actor *who)
{
    uint64_t words[FLOW_WORD_COUNT];
    const flow_hands *hands = who->hands;
    const uint64_t chosen = roll(who, 128) | (who->system->only_creates ? 64 : 0);
    if (chosen < 56) hands->destroy(hands->self, who->self);
    if (chosen == 56 && roll(who, 4) == 0) hands->destroy(hands->self, who->target);
    if (chosen < 24) return;
    make_words(who, who->self, words);
    const quern_entity fresh = hands->create(hands->self, roll_set(who), words);
    if (chosen == 57) hands->destroy(hands->self, fresh);
    if (chosen >= 56 && chosen < 64) accumulate(who, fresh, who->self);
    if (chosen >= 120) create_couple(who);
}

static void change_component(actor *who, quern_entity entity)
{
    uint64_t words[FLOW_WORD_COUNT];
    const flow_hands *hands = who->hands;
    uint32_t type = roll_type(who);
    make_words(who, who->target, words);
    const uint64_t *value = &words[flow_types[type].first_word];
    if ((who->system->can_disable >> type & 1) != 0 && roll(who, 2) == 0) {
        hands->enable(hands->self, entity, type, roll(who, 3) == 0);
        return;
    }
    switch (roll(who, 5)) {
    case 0:
        hands->add(hands->self, entity, type, roll(who, 2) == 0 ? value : NULL);
        break;
    case 1:
        hands->set(hands->self, entity, type, value);
        break;
    case 2:
    case 3:
        hands->remove(hands->self, entity, type);
        break;
    default:
        hands->remove(hands->self, entity, type);
        hands->add(hands->self, entity, type, NULL);
        break;
    }
}

static void change_something(actor *who)
{
    uint64_t words[FLOW_WORD_COUNT];
    const flow_hands *hands = who->hands;
    if (who->system->turns_over) {
        turn_over(who);
        return;
    }
    switch (roll(who, 16)) {
    case 12:
        accumulate(who, who->self, who->target);
        break;
    case 13:
    case 14:
        accumulate(who, who->target, who->self);
        break;
    case 15:
        accumulate(who, who->target, who->target);
        change_component(who, who->target);
        accumulate(who, who->target, who->self);
        break;
    case 0:
        make_words(who, who->self, words);
        hands->create(hands->self, roll_set(who), words);
        break;
    case 1:
        create_couple(who);
        break;
    case 2:
    case 3:
        hands->destroy(hands->self, who->self);
        break;
    case 4:
        hands->destroy(hands->self, who->target);
        break;
    case 5:
    case 6:
        change_component(who, who->target);
        break;
    case 7:
        change_component(who, who->self);
        change_component(who, who->self);
        change_component(who, who->self);
        break;
    default:
        change_component(who, who->self);
        break;
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

static uint64_t read_row(const flow_system *system, uint64_t hash, const flow_hands *hands,
                         const flow_row *row, quern_entity *out_target)
{
    hash = flow_mix(hash ^ relative(hands, row->entity.bits));
    for (uint32_t type = 0; type < FLOW_TYPE_COUNT; type++) {
        if (!system->terms[type].used) continue;
        hash = flow_mix(hash + row->has[type] + 2u * row->is_disabled[type]);
        if (!reads(system, type) || row->columns[type] == NULL) continue;
        hash = read_value(hash, hands, type, row->columns[type]);
        if (flow_types[type].link_count > 0) out_target->bits = row->columns[type][0];
    }
    return hash;
}

static uint64_t read_target(const flow_system *system, uint64_t hash, const flow_hands *hands,
                            quern_entity target)
{
    hash = flow_mix(hash + hands->is_alive(hands->self, target));
    for (uint32_t type = 0; type < FLOW_TYPE_COUNT; type++) {
        if (!system->lookups[type].used) continue;
        if ((system->can_disable >> type & 1) != 0)
            hash = flow_mix(hash + hands->is_enabled(hands->self, target, system, type));
        const uint64_t *words = hands->lookup(hands->self, target, system, type);
        if (words != NULL) hash = read_value(hash, hands, type, words);
    }
    return hash;
}

/* Writes to the target by lookup. The target may be in a view of the system or in none. */
static void write_target(const flow_system *system, uint64_t hash, const flow_hands *hands,
                         quern_entity target)
{
    for (uint32_t type = 0; type < FLOW_TYPE_COUNT; type++) {
        if (!system->lookups[type].writes) continue;
        uint64_t *words = hands->lookup_write(hands->self, target, system, type);
        for (uint32_t i = flow_types[type].link_count; words != NULL && i < flow_types[type].word_count;
             i++)
            words[i] += hash ^ i;
    }
}

/* A concurrent resource is only added to, because the order of its writers is open. */
static uint64_t use_resources(const flow_system *system, uint64_t hash, const flow_hands *hands,
                              quern_entity entity)
{
    for (uint32_t i = 0; i < FLOW_RESOURCE_COUNT; i++) {
        quern_access access = system->resources[i];
        if (access == QUERN_ACCESS_NONE) continue;
        uint64_t *words = hands->resource(hands->self, i, access != QUERN_ACCESS_READ);
        if (access == QUERN_ACCESS_WRITE_CONCURRENT) {
            __atomic_fetch_add(&words[1], hash, __ATOMIC_RELAXED);
            continue;
        }
        hash = flow_mix(hash ^ relative(hands, words[0]) ^ words[1]);
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

flow_digest flow_act_row(const flow_system *system, uint64_t moment, const flow_hands *hands, flow_row *row)
{
    quern_entity target = quern_entity_null();
    uint64_t hash = read_row(system, flow_mix(system->salt + moment), hands, row, &target);
    hash = read_target(system, hash, hands, target);
    hash = use_resources(system, hash, hands, row->entity);
    write_target(system, hash, hands, target);
    write_row(system, hash, row, target);
    actor who = {system, hands, hash, row->entity, target};
    if (roll(&who, 1000) < system->change_permille) change_something(&who);
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
static uint64_t look_around(const flow_system *system, uint64_t hash, const flow_hands *hands)
{
    for (uint32_t i = 0; i < FLOW_RESOURCE_COUNT; i++) {
        if (system->resources[i] == QUERN_ACCESS_NONE) continue;
        const uint64_t *words = hands->resource(hands->self, i, false);
        hash = flow_mix(hash ^ relative(hands, words[0]) ^ words[1]);
        hash = read_target(system, hash, hands, (quern_entity){words[0]});
        write_target(system, hash, hands, (quern_entity){words[0]});
    }
    return hash;
}

bool flow_act_condition(const flow_system *system, uint64_t moment, const flow_hands *hands)
{
    return look_around(system, flow_mix(system->salt ^ moment ^ 2), hands) % 100 <
           system->condition_percent;
}

void flow_act_begin(const flow_system *system, uint64_t moment, const flow_hands *hands)
{
    uint64_t hash = look_around(system, flow_mix(system->salt ^ moment), hands);
    hash = use_resources(system, hash, hands, quern_entity_null());
    actor who = {.system = system, .hands = hands, .hash = hash};
    if (roll(&who, 4) == 0) create_couple(&who);
}

void flow_act_end(const flow_system *system, uint64_t moment, const flow_hands *hands, flow_digest sum)
{
    uint64_t hash = look_around(system, flow_mix(system->salt ^ moment ^ sum.hash ^ 1), hands);
    hash = use_resources(system, hash, hands, quern_entity_null());
    actor who = {.system = system, .hands = hands, .hash = hash};
    if (roll(&who, 4) == 0) create_couple(&who);
}

void flow_act_exclusive(const flow_system *system, uint64_t moment, const flow_hands *hands,
                        const flow_hands *now, const flow_hands *later)
{
    uint64_t *words = now->resource(now->self, 0, true);
    actor who = {
        .system = system, .hands = now, .hash = flow_mix(system->salt + 3 * moment), .self = {words[0]}};
    if (now->is_alive(now->self, who.self)) {
        change_component(&who, who.self);
        if (roll(&who, 3) == 0) now->destroy(now->self, who.self);
    }
    uint64_t values[FLOW_WORD_COUNT];
    make_words(&who, who.self, values);
    quern_entity fresh = now->create(now->self, roll_set(&who), values);
    words[0] = fresh.bits;
    words[1] += who.hash;
    who.hands = hands;
    who.target = fresh;
    change_something(&who);
    if (roll(&who, 2) == 0) {
        who.hands = later;
        create_couple(&who);
        change_something(&who);
        if (roll(&who, 2) == 0) later->flush(later->self);
        who.hands = hands;
    }
    change_something(&who);
}

quern_entity flow_act_on_recent(const flow_system *system, uint64_t moment, const flow_hands *hands,
                                quern_entity recent)
{
    uint64_t words[FLOW_WORD_COUNT];
    actor who = {
        .system = system, .hands = hands, .hash = flow_mix(system->salt + 5 * moment), .self = recent};
    make_words(&who, recent, words);
    who.target = hands->create(hands->self, roll_set(&who), words);
    if (!system->turns_over) change_component(&who, who.target);
    if (!quern_entity_is_null(recent)) change_something(&who);
    return who.target;
}
