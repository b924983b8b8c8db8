/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Frames in the model of the random program: which rows systems and reactions must see, and when. */
#include "tests/flow/every_model.h"
#include "tests/support/setup.h"

#include <stdlib.h>
#include <string.h>

/* --------------------------------------------------------------------------------- what reactions see */

static struct {
    bool is_alive;
    every_values values;
    int targets[EVERY_SINGLES];
} before[MAX_ENTITIES];
static int before_count;
static bool had_edges[MAX_ENTITIES][EVERY_RELATIONS - EVERY_SINGLES];

static bool matches_set(const every_terms *terms, uint32_t set)
{
    const uint32_t with = terms->with | BIT(EVERY_ID);
    if ((set & with) != with || (set & terms->without) != 0) return false;
    if (terms->any != 0 && (set & terms->any) == 0) return false;
    const uint32_t named = terms->with | terms->without | terms->optional;
    return every_has(named, EVERY_OFF) || !every_has(set, EVERY_OFF);
}

static bool reacted_before(const every_terms *terms, int i)
{
    if (i >= before_count || !before[i].is_alive || !matches_set(terms, before[i].values.set)) return false;
    if (terms->tie == 0) return true;
    const uint32_t relation = terms->tie - 1;
    return relation < EVERY_SINGLES ? before[i].targets[relation] != EVERY_NONE
                                    : had_edges[i][relation - EVERY_SINGLES];
}

static bool reacts_now(const every_terms *terms, int i)
{
    return every_state->entities[i].is_alive && matches_set(terms, every_state->entities[i].now.set) &&
           (terms->tie == 0 || every_model_has_target(terms->tie - 1, i));
}

static void note_reaction(uint32_t r, int i)
{
    if (every_state->is_reaction_off[r]) return;
    const every_terms *terms = &every_model_program.reactions[r];
    every_entity *entity = &every_state->entities[i];
    const bool did = reacted_before(terms, i), does = reacts_now(terms, i);
    const uint32_t watched =
        BIT(EVERY_ID) | terms->reads | terms->writes | (terms->old_type > 0 ? BIT(terms->old_type - 1) : 0);
    const uint32_t old_set = i < before_count && before[i].is_alive ? before[i].values.set : 0,
                   given = entity->now.set & (entity->now.changed | ~old_set);
    if (!did && does && (terms->triggers & QUERN_REACT_ADDED) != 0) entity->is_added[r] = true;
    if (did && does && (terms->triggers & QUERN_REACT_SET) != 0 && !entity->is_added[r] &&
        !entity->is_set[r] && (given & watched) != 0) {
        entity->is_set[r] = true;
        if (terms->old_type > 0)
            memcpy(entity->olds[r], &before[i].values.words[every_types[terms->old_type - 1].first_word],
                   sizeof entity->olds[r]);
    }
    if (did && !does) {
        if ((terms->triggers & QUERN_REACT_REMOVED) != 0 && !entity->is_added[r]) {
            cr_assert_lt(every_state->copy_count, (uint32_t)MAX_COPIES);
            copy *made = &every_state->copies[every_state->copy_count++];
            *made = (copy){.reaction = r, .entity = i, .set = old_set};
            memcpy(made->words, before[i].values.words, sizeof made->words);
        }
        entity->is_added[r] = entity->is_set[r] = false;
    }
}

/* A change begins: a call or a sync point. */
void every_model_begin(void)
{
    before_count = every_state->entity_count;
    for (int i = 0; i < every_state->entity_count; i++) {
        every_entity *entity = &every_state->entities[i];
        before[i].is_alive = entity->is_alive;
        if (!entity->is_alive) continue;
        entity->now.changed = entity->now.implied = 0;
        entity->kept = entity->now;
        entity->is_destroyed = false;
        before[i].values = entity->now;
        memcpy(before[i].targets, entity->targets, sizeof before[i].targets);
        memset(had_edges[i], 0, sizeof had_edges[i]);
    }
    for (uint32_t i = 0; i < every_state->edge_count; i++)
        had_edges[every_state->edges[i].source][every_state->edges[i].relation - EVERY_SINGLES] = true;
}

void every_model_end(void)
{
    for (int i = 0; i < every_state->entity_count; i++) {
        every_entity *entity = &every_state->entities[i];
        const bool was_alive = i < before_count && before[i].is_alive;
        if (!was_alive && !entity->is_alive) continue;
        const uint32_t old_set = was_alive ? before[i].values.set : 0;
        const uint32_t changed = (entity->now.changed & entity->now.set) | (entity->now.set & ~old_set) |
                                 (was_alive ? entity->now.disabled ^ before[i].values.disabled : 0);
        for (uint32_t s = 0; s < every_model_program.system_count; s++)
            entity->stale[s] |= changed;
        for (uint32_t r = 0; r < every_model_program.reaction_count; r++)
            note_reaction(r, i);
    }
}

/* -------------------------------------------------------------------------------------------- frames */

enum { PROGRAM, SYSTEMS, ROUND };
static int mode;
static uint32_t phase, expected_count;
static bool shows[MAX_ENTITIES][EVERY_REACTIONS]; /* the row is expected in this round */
static bool shows_as_added[MAX_ENTITIES][EVERY_REACTIONS];
static copy shown_copies[MAX_COPIES];
static uint32_t shown_copy_count;
static int round_entity_count;

static int climb(const every_terms *terms, int entity)
{
    const uint32_t relation = terms->up_relation;
    int at = every_state->entities[entity].targets[relation];
    if (!terms->up_is_nearest)
        return at != EVERY_NONE && every_has(every_state->entities[at].now.set, terms->up_type)
                   ? at
                   : EVERY_NONE;
    while (at != EVERY_NONE && !every_has(every_state->entities[at].now.set, terms->up_type))
        at = every_state->entities[at].targets[relation];
    return at;
}

int every_model_nearest(const every_terms *terms, int entity)
{
    return climb(terms, entity);
}

static bool is_source_of(uint32_t relation, int source, quern_entity handle)
{
    const int target = every_model_find(handle);
    if (target == EVERY_NONE || !every_state->entities[target].is_alive) return false;
    return relation < EVERY_SINGLES
               ? every_state->entities[source].targets[relation] == target
               : every_model_find_edge(relation, source, target) < every_state->edge_count;
}

bool every_model_matches(const every_terms *terms, int entity)
{
    const every_entity *at = &every_state->entities[entity];
    if (!at->is_alive || !matches_set(terms, at->now.set)) return false;
    for (uint32_t t = 0; t < EVERY_TYPES; t++) {
        if (!every_types[t].can_disable || !every_has(terms->with, t)) continue;
        if (terms->enabled[t] == QUERN_TERM_ENABLED && every_has(at->now.disabled, t)) return false;
        if (terms->enabled[t] == QUERN_TERM_DISABLED && !every_has(at->now.disabled, t)) return false;
    }
    if (terms->tie > 0 && !every_model_has_target(terms->tie - 1, entity)) return false;
    if (terms->by_target && !is_source_of(terms->tie - 1, entity, terms->target)) return false;
    return !terms->has_up || terms->up_is_optional || climb(terms, entity) != EVERY_NONE;
}

static bool must_visit[MAX_ENTITIES][EVERY_SYSTEMS];
static uint32_t begun;   /* systems of the phase that have begun, one bit each */
static uint32_t running; /* those of them that run */
static uint32_t ended;   /* those of them whose `end` was called */
static bool asked_runs;  /* what the condition of the set EVERY_ASKED says in this phase */

static bool sets_let_run(const every_terms *terms)
{
    return !(every_has(terms->sets, EVERY_SWITCHED) && every_state->is_switched_off) &&
           !(every_has(terms->sets, EVERY_ASKED) && !asked_runs);
}

static void begin_phase(uint32_t number)
{
    mode = SYSTEMS;
    phase = number;
    asked_runs = every_asked_runs(every_resource_at(0).value);
}

/* The systems of the phase up to `last` begin: what they have to visit is known now. last: EVERY_SYSTEMS for all. */
static void begin_systems(uint32_t last)
{
    bool is_last = false;
    for (uint32_t k = 0; k < every_model_program.system_count && !is_last; k++) {
        const uint32_t s = every_state->order[k];
        is_last = s == last;
        if (every_model_program.phases[s] != phase || every_has(begun, s)) continue;
        begun |= BIT(s);
        if (!every_state->is_system_off[s] && sets_let_run(&every_model_program.systems[s]) &&
            every_resources_let_run(s, &every_model_program.systems[s]))
            running |= BIT(s);
        for (int i = 0; i < every_state->entity_count; i++) {
            if (!every_has(running, s)) {
                must_visit[i][s] = false;
                continue;
            }
            const every_terms *terms = &every_model_program.systems[s];
            uint32_t *stale = &every_state->entities[i].stale[s];
            must_visit[i][s] = every_model_matches(terms, i) &&
                               (terms->filter_type == 0 || every_has(*stale, terms->filter_type - 1));
            *stale = 0;
        }
    }
}

/* Describes terms and an entity, for messages. */
static const char *describe(const every_terms *terms, int entity)
{
    static char text[512];
    const every_entity *at = &every_state->entities[entity];
    snprintf(
        text, sizeof text,
        "with %x, without %x, optional %x, any %x, up %d %u of %u, tie %u, filter %u, old %u, triggers %u; "
        "the entity: alive "
        "%d, set %x, disabled %x, targets %d %d %d %d",
        terms->with, terms->without, terms->optional, terms->any, terms->has_up, terms->up_type,
        terms->up_relation, terms->tie, terms->filter_type, terms->old_type, terms->triggers, at->is_alive,
        at->now.set, at->now.disabled, at->targets[0], at->targets[1], at->targets[2], at->targets[3]);
    return text;
}

static void end_systems(void)
{
    begin_systems(EVERY_SYSTEMS);
    for (uint32_t s = 0; s < every_model_program.system_count; s++)
        if (every_model_program.systems[s].put_resource > 0 && every_model_program.phases[s] == phase)
            cr_assert_eq(every_has(running, s), every_has(ended, s), "the end of system %u", s);
    begun = running = ended = 0;
    for (uint32_t s = 0; s < every_model_program.system_count; s++)
        for (int i = 0; i < every_state->entity_count && every_model_program.phases[s] == phase; i++) {
            every_entity *entity = &every_state->entities[i];
            cr_assert(every_has(entity->visited, s) || !must_visit[i][s],
                      "system %u has not visited the entity with id %llx: %s", s,
                      (unsigned long long)entity->id, describe(&every_model_program.systems[s], i));
            entity->visited &= ~BIT(s);
        }
}

static void begin_round(void)
{
    mode = ROUND;
    expected_count = every_state->copy_count;
    memcpy(shown_copies, every_state->copies, every_state->copy_count * sizeof *shown_copies);
    shown_copy_count = every_state->copy_count;
    every_state->copy_count = 0;
    round_entity_count = every_state->entity_count;
    for (int i = 0; i < every_state->entity_count; i++)
        for (uint32_t r = 0; r < every_model_program.reaction_count; r++) {
            every_entity *entity = &every_state->entities[i];
            shows_as_added[i][r] = entity->is_added[r];
            shows[i][r] = entity->is_alive && (entity->is_added[r] || entity->is_set[r]);
            entity->is_added[r] = entity->is_set[r] = false;
            expected_count += shows[i][r];
        }
}

static void fail_round(void)
{
    for (uint32_t i = 0; i < shown_copy_count; i++)
        cr_assert_fail(
            "seed %llu, frame %llu: reaction %u was not shown that it lost the entity with id %llx",
            (unsigned long long)every.seed, (unsigned long long)every.frame, shown_copies[i].reaction,
            (unsigned long long)every_state->entities[shown_copies[i].entity].id);
    for (int i = 0; i < round_entity_count; i++)
        for (uint32_t r = 0; r < every_model_program.reaction_count; r++)
            cr_assert_not(
                shows[i][r],
                "seed %llu, frame %llu: reaction %u was not shown the entity with id %llx as %s: %s",
                (unsigned long long)every.seed, (unsigned long long)every.frame, r,
                (unsigned long long)every_state->entities[i].id, shows_as_added[i][r] ? "added" : "set",
                describe(&every_model_program.reactions[r], i));
}

static void advance(void)
{
    if (mode == ROUND) {
        if (expected_count > 0) fail_round();
    } else {
        end_systems();
    }
    every_model_flush(false);
    begin_round();
    if (expected_count > 0) return;
    begin_phase(phase + 1);
}

void every_model_begin_frame(void)
{
    phase = UINT32_MAX; /* the first rounds precede phase 0 */
    every_model_flush(true);
    begin_round();
    if (expected_count > 0) return;
    begin_phase(0);
}

static void forget_seen(uint32_t system)
{
    for (int i = 0; i < every_state->entity_count; i++)
        every_state->entities[i].stale[system] = UINT32_MAX;
}

void every_model_renew_system(uint32_t system)
{
    uint32_t count = 0;
    for (uint32_t k = 0; k < every_model_program.system_count; k++)
        if (every_state->order[k] != system) every_state->order[count++] = every_state->order[k];
    every_state->order[count] = system;
    every_state->is_system_off[system] = false;
    every_resources_forget(system);
    forget_seen(system);
}

void every_model_order_systems(const uint32_t *order)
{
    memcpy(every_state->order, order, sizeof every_state->order);
}

/* Only a system with a change filter knows what it has seen. */
void every_model_replace_system(uint32_t system, const every_terms *replaced)
{
    if (replaced->filter_type == 0) forget_seen(system);
    if (replaced->watched != every_model_program.systems[system].watched) every_resources_forget(system);
}

static void discard_copies(uint32_t reaction)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < every_state->copy_count; i++)
        if (every_state->copies[i].reaction != reaction)
            every_state->copies[count++] = every_state->copies[i];
    every_state->copy_count = count;
}

/* Drops the changes that the reaction has not seen. */
static void discard_pending(uint32_t reaction)
{
    discard_copies(reaction);
    for (int i = 0; i < every_state->entity_count; i++)
        every_state->entities[i].is_added[reaction] = every_state->entities[i].is_set[reaction] = false;
}

/* With PRESENT, the entities that a new reaction matches count as added, but those that the replaced one matches. A
 * disabled reaction misses them. */
static void add_present(uint32_t reaction, const every_terms *replaced)
{
    const every_terms *terms = &every_model_program.reactions[reaction];
    if ((terms->triggers & QUERN_REACT_PRESENT) == 0 || every_state->is_reaction_off[reaction]) return;
    for (int i = 0; i < every_state->entity_count; i++)
        if (reacts_now(terms, i) && (replaced == NULL || !reacts_now(replaced, i)))
            every_state->entities[i].is_added[reaction] = true;
}

void every_model_renew_reaction(uint32_t reaction)
{
    discard_pending(reaction);
    every_state->is_reaction_off[reaction] = false;
    add_present(reaction, NULL);
}

void every_model_replace_reaction(uint32_t reaction, const every_terms *replaced)
{
    const every_terms *terms = &every_model_program.reactions[reaction];
    every_terms same = *replaced;
    same.uses_resources = terms->uses_resources;
    if (memcmp(&same, terms, sizeof same) == 0) return; /* same kinds and terms: it keeps all that waits */
    discard_copies(reaction);
    for (int i = 0; i < every_state->entity_count; i++) {
        every_entity *entity = &every_state->entities[i];
        const bool matches = reacts_now(terms, i) && reacts_now(replaced, i);
        entity->is_added[reaction] &= matches && (terms->triggers & QUERN_REACT_ADDED) != 0;
        entity->is_set[reaction] &=
            matches && (terms->triggers & QUERN_REACT_SET) != 0 && terms->old_type == 0;
    }
    add_present(reaction, replaced);
}

void every_model_skip_events(uint32_t reader)
{
    every_state->positions[reader] = every_state->event_count;
}

void every_model_enable_system(uint32_t system, bool is_enabled)
{
    every_state->is_system_off[system] = !is_enabled;
}

void every_model_enable_switched(bool is_enabled)
{
    every_state->is_switched_off = !is_enabled;
}

void every_model_enable_reaction(uint32_t reaction, bool is_enabled)
{
    every_state->is_reaction_off[reaction] = !is_enabled;
    if (!is_enabled) discard_pending(reaction);
}

void every_model_enter_system(uint32_t system)
{
    cr_assert_not(every_state->is_system_off[system], "system %u is disabled", system);
    while (mode != SYSTEMS || phase != every_model_program.phases[system]) {
        cr_assert(mode == ROUND || phase < EVERY_PHASES, "system %u runs too late", system);
        advance();
    }
    begin_systems(system);
    cr_assert(every_has(running, system), "system %u runs, though nothing has changed", system);
}

void every_model_end_system(uint32_t system)
{
    every_model_enter_system(system);
    cr_assert_not(every_has(ended, system), "system %u ends twice", system);
    ended |= BIT(system);
}

void every_model_enter_reaction(uint32_t reaction)
{
    cr_assert_not(every_state->is_reaction_off[reaction], "reaction %u is disabled", reaction);
    while (mode != ROUND || expected_count == 0) {
        cr_assert(mode == ROUND || phase < EVERY_PHASES, "reaction %u has rows without a reason", reaction);
        advance();
    }
}

void every_model_end_frame(void)
{
    while (mode != SYSTEMS || phase != EVERY_PHASES)
        advance();
    mode = PROGRAM;
}

static int find_row(quern_entity handle, uint64_t id)
{
    const int entity = every_model_find_id(id);
    cr_assert_neq(entity, EVERY_NONE, "no entity has the id %llx", (unsigned long long)id);
    if (quern_entity_is_null(every_state->entities[entity].handle)) every_model_set_handle(entity, handle);
    cr_assert_eq(every_state->entities[entity].handle.bits, handle.bits,
                 "the entity with id %llx has another handle", (unsigned long long)id);
    return entity;
}

void every_model_learn(quern_entity handle, uint64_t id)
{
    find_row(handle, id);
}

int every_model_visit(uint32_t system, quern_entity handle, uint64_t id)
{
    const int entity = find_row(handle, id);
    every_entity *at = &every_state->entities[entity];
    cr_assert(every_model_matches(&every_model_program.systems[system], entity),
              "system %u visits the entity with id %llx: %s", system, (unsigned long long)id,
              describe(&every_model_program.systems[system], entity));
    cr_assert_not(every_has(at->visited, system), "system %u visits the entity with id %llx twice", system,
                  (unsigned long long)id);
    at->visited |= BIT(system);
    if (every_model_program.systems[system].has_up)
        at->features |= every_bit(every_model_program.systems[system].up_relation == EVERY_SHARED
                                      ? EVERY_USES_SHARED_TERM
                                      : EVERY_USES_UP);
    if (every_model_program.systems[system].uses_resources != 0)
        at->features |= every_bit(EVERY_USES_RESOURCE);
    if (every_model_program.systems[system].watched != 0) at->features |= every_bit(EVERY_USES_IF_CHANGED);
    if (every_model_program.systems[system].is_by_level) at->features |= every_bit(EVERY_USES_BY_LEVEL);
    if (every_model_program.systems[system].order > 0) at->features |= every_bit(EVERY_USES_OWN_ORDER);
    if (every_model_program.systems[system].any != 0) at->features |= every_bit(EVERY_USES_ANY);
    if (every_model_program.systems[system].sets != 0) at->features |= every_bit(EVERY_USES_SYSTEM_SET);
    if (every_model_program.systems[system].by_target) at->features |= every_bit(EVERY_USES_TARGET_TERM);
    if (every_model_program.systems[system].filter_type > 0) at->features |= every_bit(EVERY_USES_FILTER);
    return entity;
}

static void visit_copy(uint32_t reaction, quern_entity handle, uint64_t id, uint32_t set,
                       const uint64_t *words)
{
    const uint32_t reads = every_model_program.reactions[reaction].reads;
    for (uint32_t i = 0; i < shown_copy_count; i++) {
        const copy *made = &shown_copies[i];
        bool is_same = made->reaction == reaction && every_state->entities[made->entity].id == id &&
                       (made->set & reads) == (set & reads);
        for (uint32_t t = 0; t < EVERY_TYPES && is_same; t++)
            for (uint32_t w = 0; w < every_types[t].word_count && every_has(reads & set, t); w++) {
                const uint32_t at = every_types[t].first_word + w;
                if (t == EVERY_LINK && w == 0) continue;
                is_same &= words[at] == made->words[at];
            }
        if (!is_same) continue;
        if (quern_entity_is_null(every_state->entities[made->entity].handle))
            every_model_set_handle(made->entity, handle);
        every_state->entities[made->entity].features |= every_bit(EVERY_USES_REMOVED);
        shown_copies[i] = shown_copies[--shown_copy_count];
        expected_count--;
        return;
    }
    cr_assert_fail(
        "reaction %u is shown that it lost the entity with id %llx, which it did not, or with other values",
        reaction, (unsigned long long)id);
}

int every_model_visit_reaction(uint32_t reaction, uint32_t kind, quern_entity handle, uint64_t id,
                               uint32_t set, const uint64_t *words, const uint64_t *olds)
{
    if (kind == QUERN_REACT_REMOVED) {
        visit_copy(reaction, handle, id, set, words);
        return EVERY_NONE;
    }
    const int entity = find_row(handle, id);
    every_entity *at = &every_state->entities[entity];
    cr_assert(entity < round_entity_count && shows[entity][reaction],
              "reaction %u is shown the entity with id %llx as %s without a reason: %s", reaction,
              (unsigned long long)id, kind == QUERN_REACT_ADDED ? "added" : "set",
              describe(&every_model_program.reactions[reaction], entity));
    cr_assert_eq(kind == QUERN_REACT_ADDED, shows_as_added[entity][reaction],
                 "reaction %u is shown the entity with id %llx as %s", reaction, (unsigned long long)id,
                 kind == QUERN_REACT_ADDED ? "added" : "set");
    at->features |= every_bit(kind == QUERN_REACT_ADDED ? EVERY_USES_ADDED : EVERY_USES_SETTING);
    if (every_model_program.reactions[reaction].any != 0) at->features |= every_bit(EVERY_USES_ANY);
    if (olds != NULL) {
        const uint32_t type = every_model_program.reactions[reaction].old_type - 1;
        at->features |= every_bit(EVERY_USES_OLD);
        for (uint32_t w = type == EVERY_LINK; w < every_types[type].word_count && w < 2; w++)
            cr_assert_eq(olds[w], at->olds[reaction][w],
                         "reaction %u is shown another old value of '%s' of the entity with id %llx",
                         reaction, every_types[type].name, (unsigned long long)id);
    }
    shows[entity][reaction] = false;
    expected_count--;
    return entity;
}

static void note_write(int system, int entity, uint32_t type)
{
    every_entity *at = &every_state->entities[entity];
    for (uint32_t s = 0; s < every_model_program.system_count; s++)
        if ((int)s != system) at->stale[s] |= BIT(type);
    at->features |= every_bit(EVERY_USES_ROW_WRITE);
}

void every_model_write(int system, int entity, uint32_t type, const uint64_t *words)
{
    const uint32_t first = every_types[type].first_word;
    for (uint32_t w = type == EVERY_LINK; w < every_types[type].word_count; w++)
        every_state->entities[entity].now.words[first + w] = words[first + w];
    note_write(system, entity, type);
}

void every_model_toggle(int system, int entity, uint32_t type, bool enabled)
{
    every_model_toggle_value(&every_state->entities[entity].now, type, enabled);
    note_write(system, entity, type);
}

void every_model_read_event(uint32_t reader, uint64_t id, quern_entity entity)
{
    cr_assert_lt(every_state->positions[reader], every_state->event_count,
                 "reader %u sees an event too many", reader);
    const event *expected = &every_state->events[every_state->positions[reader]++];
    cr_assert_eq(expected->id, id, "reader %u sees another event", reader);
    cr_assert_eq(expected->entity == EVERY_NONE, quern_entity_is_null(entity));
    if (expected->entity == EVERY_NONE) return;
    if (quern_entity_is_null(every_state->entities[expected->entity].handle))
        every_model_set_handle(expected->entity, entity);
    cr_assert_eq(every_state->entities[expected->entity].handle.bits, entity.bits,
                 "an event has another entity");
}

void every_model_end_events(uint32_t reader)
{
    cr_assert_eq(every_state->positions[reader], every_state->event_count,
                 "reader %u did not see all events", reader);
}

void every_model_cut(const quern_entity *roots, uint32_t count)
{
    static bool is_first[MAX_ENTITIES];
    const uint32_t link = every_types[EVERY_LINK].first_word;
    memset(is_first, 0, sizeof is_first);
    for (uint32_t i = 0; i < count; i++)
        is_first[every_model_find(roots[i])] = true;
    for (int i = 0; i < every_state->entity_count; i++) {
        int root = i;
        while (every_state->entities[root].targets[0] != EVERY_NONE)
            root = every_state->entities[root].targets[0];
        is_first[i] = is_first[root];
    }
    for (int i = 0; i < every_state->entity_count; i++) {
        every_entity *entity = &every_state->entities[i];
        if (!entity->is_alive || !is_first[i]) continue;
        for (uint32_t r = 1; r < EVERY_SINGLES; r++)
            if (entity->targets[r] != EVERY_NONE && !is_first[entity->targets[r]])
                entity->targets[r] = EVERY_NONE;
        const int linked = (int)entity->now.words[link] - 1;
        if (every_has(entity->now.set, EVERY_LINK) && linked >= 0 && !is_first[linked])
            entity->now.words[link] = 0;
    }
    for (uint32_t i = every_state->edge_count; i-- > 0;)
        if (is_first[every_state->edges[i].source] && !is_first[every_state->edges[i].target])
            every_state->edges[i] = every_state->edges[--every_state->edge_count];
}

/* Whether a feature is among those of entities, or of the frame. */
static bool is_used(uint32_t feature, uint64_t of_entities, uint64_t of_frame)
{
    return ((feature < EVERY_FRAME_FEATURES ? of_entities : of_frame) & every_bit(feature)) != 0;
}

void every_model_count_pairs(uint64_t frame_features)
{
    uint64_t all = 0;
    for (int i = 0; i < every_state->entity_count; i++) {
        const uint64_t features = every_state->entities[i].features;
        all |= features;
        every_state->entities[i].features = 0;
        for (uint32_t a = 0; a < EVERY_FRAME_FEATURES && features != 0; a++)
            for (uint32_t b = 0; b < EVERY_FRAME_FEATURES && (features >> a & 1) != 0; b++)
                every_pairs[a][b] += features >> b & 1;
    }
    for (uint32_t a = 0; a < EVERY_FEATURES; a++)
        for (uint32_t b = EVERY_FRAME_FEATURES; b < EVERY_FEATURES; b++) {
            const bool both = is_used(a, all, frame_features) && is_used(b, all, frame_features);
            every_pairs[a][b] += both;
            if (a < EVERY_FRAME_FEATURES) every_pairs[b][a] += both;
        }
}

/* -------------------------------------------------------------------------------------------- opening */

void every_model_open(const every_terms *system_terms, const uint32_t *system_phases,
                      uint32_t systems_count, const every_terms *reaction_terms, uint32_t reactions_count)
{
    every_model_program.systems = system_terms;
    every_model_program.phases = system_phases;
    every_model_program.system_count = systems_count;
    every_model_program.reactions = reaction_terms;
    every_model_program.reaction_count = reactions_count;
    every_state = calloc(1, sizeof *every_state);
    cr_assert_not_null(every_state);
    every_resources_open();
    for (uint32_t s = 0; s < systems_count; s++)
        every_state->order[s] = s;
    mode = PROGRAM;
    every_model_restart();
}

void every_model_begin_schedule(void)
{
    every_state->copy_count = 0;
    for (int i = 0; i < every_state->entity_count; i++) {
        every_entity *entity = &every_state->entities[i];
        memset(entity->is_added, 0, sizeof entity->is_added);
        memset(entity->is_set, 0, sizeof entity->is_set);
        memset(entity->stale, 0xff, sizeof entity->stale);
    }
}
