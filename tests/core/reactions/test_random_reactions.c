/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Test labels: threaded */
/* Random programs of calls and sync points. The changes reported to reactions are compared, at every number of threads,
 * with a model that compares the matching entities before and after each change. */

#include "core/storage/change.h"
#include "core/world/world_internal.h"
#include "sched/frame/schedule_internal.h"
#include "tests/flow/flow_setup.h"
#include "tests/support/effort.h"
#include "tests/support/failing_allocator.h"
#include "tests/support/random.h"
#include "tests/support/reacting.h"
#include "tests/support/tracked.h"

#include <stdlib.h>
#include <string.h>

enum { SEEDS = effort(5, 3, 2), STEPS = effort(12, 12, 6) };

enum { SMALL, WIDE, TRACKED, TAG, OTHER, TYPES };
enum { MAX = 60000, START = 2200, COMMANDS = 700, CALLS = 12, REACTIONS = 9, LATE = 7, TERMS = 3 };

static const uint32_t type_bytes[TYPES] = {8, 160, sizeof(tracked), 0, 24};

/* ---------------------------------------------------------------------------------------- the model */

typedef struct subject {
    quern_entity handle; /* provisional until the end of its sync point */
    bool is_alive;
    uint32_t mask; /* bits of types */
    uint64_t values[TYPES];
    uint32_t given;                        /* bits of types whose values were set in this change */
    uint8_t pending[REACTIONS];            /* ADDED, SET or 0 */
    uint64_t before_set[REACTIONS][TYPES]; /* values before the first SET that is pending */
    /* before the change */
    bool was_alive;
    uint32_t old_mask;
    uint64_t old_values[TYPES];
    const quern__archetype *archetype;
    uint64_t rank; /* order among the entities that leave one archetype in one change */
} subject;

typedef struct gone {
    const quern__archetype *archetype;
    uint64_t change, rank;
    quern_entity handle;
    uint32_t mask;
    uint64_t values[TYPES];
} gone;

typedef struct gone_list {
    gone *items;
    uint32_t count, capacity;
} gone_list;

enum { OLD = -1 };

typedef struct described_term {
    uint32_t type;
    quern_match match;
    int access; /* a quern_access, or OLD */
} described_term;

static const struct {
    uint32_t kinds, term_count;
    described_term terms[TERMS];
} specs[REACTIONS] = {
    {QUERN_REACT_ADDED | QUERN_REACT_SET | QUERN_REACT_REMOVED,
     1,
     {{SMALL, QUERN_MATCH_ALL, QUERN_ACCESS_READ}}},
    {QUERN_REACT_REMOVED,
     3,
     {{SMALL, QUERN_MATCH_ALL, QUERN_ACCESS_READ},
      {WIDE, QUERN_MATCH_OPTIONAL, QUERN_ACCESS_READ},
      {TAG, QUERN_MATCH_NONE, QUERN_ACCESS_NONE}}},
    {QUERN_REACT_ADDED | QUERN_REACT_REMOVED,
     2,
     {{TRACKED, QUERN_MATCH_ALL, QUERN_ACCESS_READ}, {SMALL, QUERN_MATCH_ALL, QUERN_ACCESS_NONE}}},
    {QUERN_REACT_SET,
     2,
     {{SMALL, QUERN_MATCH_ANY, QUERN_ACCESS_READ}, {OTHER, QUERN_MATCH_ANY, QUERN_ACCESS_WRITE}}},
    {QUERN_REACT_ADDED | QUERN_REACT_SET | QUERN_REACT_REMOVED,
     3,
     {{OTHER, QUERN_MATCH_ALL, QUERN_ACCESS_NONE},
      {TRACKED, QUERN_MATCH_OPTIONAL, QUERN_ACCESS_READ},
      {WIDE, QUERN_MATCH_NONE, QUERN_ACCESS_NONE}}},
    {QUERN_REACT_SET | QUERN_REACT_REMOVED,
     2,
     {{WIDE, QUERN_MATCH_ALL, QUERN_ACCESS_WRITE}, {WIDE, QUERN_MATCH_ALL, OLD}}},
    {QUERN_REACT_SET,
     2,
     {{SMALL, QUERN_MATCH_ALL, QUERN_ACCESS_READ}, {TAG, QUERN_MATCH_NONE, QUERN_ACCESS_NONE}}},
    {QUERN_REACT_ADDED | QUERN_REACT_SET | QUERN_REACT_REMOVED |
         QUERN_REACT_PRESENT, /* added and removed repeatedly */
     2,
     {{WIDE, QUERN_MATCH_ALL, QUERN_ACCESS_READ},
      {TRACKED, QUERN_MATCH_OPTIONAL, QUERN_ACCESS_NONE},
      {WIDE, QUERN_MATCH_ALL, OLD}}},
    {QUERN_REACT_ADDED | QUERN_REACT_SET,
     3,
     {{OTHER, QUERN_MATCH_ALL, OLD},
      {SMALL, QUERN_MATCH_ALL, OLD},
      {TRACKED, QUERN_MATCH_OPTIONAL, QUERN_ACCESS_READ}}},
};

static failing_allocator *memory;
static quern_world *world;
static quern_schedule *schedule;
static quern_component types[TYPES], id_type;
static quern_query *of_type[TYPES];
static tracked_counts counts;
static reacting reactions[REACTIONS];
static gone_list gone_of[REACTIONS];
static subject subjects[MAX];
static uint32_t subject_count;
static uint64_t change;
static random_source dice;

static bool matches(uint32_t reaction, uint32_t mask)
{
    bool wants_any = false, has_any = false;
    for (uint32_t i = 0; i < specs[reaction].term_count; i++) {
        const described_term *term = &specs[reaction].terms[i];
        const bool has = (mask >> term->type & 1) != 0;
        if (term->match == QUERN_MATCH_ALL && !has) return false;
        if (term->match == QUERN_MATCH_NONE && has) return false;
        wants_any |= term->match == QUERN_MATCH_ANY;
        has_any |= term->match == QUERN_MATCH_ANY && has;
    }
    return !wants_any || has_any;
}

/* Returns the types whose values the reaction accesses. */
static uint32_t looked_at(uint32_t reaction)
{
    uint32_t mask = 0;
    for (uint32_t i = 0; i < specs[reaction].term_count; i++)
        if (specs[reaction].terms[i].access > QUERN_ACCESS_NONE)
            mask |= 1u << specs[reaction].terms[i].type;
    return mask & ~(1u << TAG);
}

/* Returns the types whose setting is reported to the reaction. */
static uint32_t reacted_to(uint32_t reaction)
{
    uint32_t mask = looked_at(reaction);
    for (uint32_t i = 0; i < specs[reaction].term_count; i++)
        if (specs[reaction].terms[i].access == OLD) mask |= 1u << specs[reaction].terms[i].type;
    return mask;
}

static bool asks_for(uint32_t reaction, quern_reaction_kind kind)
{
    return reactions[reaction].reaction != NULL && (specs[reaction].kinds & (uint32_t)kind) != 0;
}

static void note_gone(uint32_t reaction, const subject *it)
{
    gone_list *list = &gone_of[reaction];
    if (list->count == list->capacity) {
        list->capacity = list->capacity ? 2 * list->capacity : 64;
        list->items = realloc(list->items, list->capacity * sizeof *list->items);
        if (list->items == NULL) abort();
    }
    gone *entry = &list->items[list->count++];
    *entry = (gone){.archetype = it->archetype,
                    .change = change,
                    .rank = it->rank,
                    .handle = it->handle,
                    .mask = it->old_mask};
    memcpy(entry->values, it->old_values, sizeof entry->values);
}

static void settle(uint32_t reaction, subject *it)
{
    const bool before = it->was_alive && matches(reaction, it->old_mask);
    const bool now = it->is_alive && matches(reaction, it->mask);
    uint8_t *pending = &it->pending[reaction];
    if (before && !now) {
        if (asks_for(reaction, QUERN_REACT_REMOVED) && *pending != QUERN_REACT_ADDED)
            note_gone(reaction, it);
        *pending = 0;
    }
    if (!before && now && asks_for(reaction, QUERN_REACT_ADDED)) *pending = QUERN_REACT_ADDED;
    if (before && now && asks_for(reaction, QUERN_REACT_SET) && *pending != QUERN_REACT_ADDED &&
        (it->given & reacted_to(reaction)) != 0) {
        if (*pending != QUERN_REACT_SET)
            memcpy(it->before_set[reaction], it->old_values, sizeof it->old_values);
        *pending = QUERN_REACT_SET;
    }
}

static void begin_change(void)
{
    change++;
    for (uint32_t i = 0; i < subject_count; i++) {
        subject *it = &subjects[i];
        it->was_alive = it->is_alive;
        it->given = 0;
        if (!it->is_alive) continue;
        it->old_mask = it->mask;
        memcpy(it->old_values, it->values, sizeof it->values);
        const quern__record *record = quern__entities_find(&world->storage.entities, it->handle);
        cr_assert_not_null(record);
        it->archetype = quern__storage_archetype_of(&world->storage, record);
        it->rank = (uint64_t)quern__chunk_index_at(&it->archetype->shape, record->location) *
                       it->archetype->shape.row_capacity +
                   quern__location_row(&it->archetype->shape, record->location);
    }
}

static void end_change(void)
{
    for (uint32_t i = 0; i < subject_count; i++)
        for (uint32_t k = 0; k < REACTIONS; k++)
            settle(k, &subjects[i]);
}

/* -------------------------------------------------------------------------- what is done to subjects */

static subject *pick(void)
{
    for (uint32_t i = 0; i < 30; i++) {
        subject *it = &subjects[random_below(&dice, subject_count)];
        if (it->is_alive) return it;
    }
    return NULL;
}

static uint64_t constructed_value(uint32_t type)
{
    return type == TRACKED ? TRACKED_DEFAULT : 0;
}

static void give(subject *it, uint32_t type, uint64_t value)
{
    it->mask |= 1u << type;
    it->values[type] = value;
    it->given |= 1u << type;
}

static void take(subject *it, uint32_t type)
{
    it->mask &= ~(1u << type);
    it->given &= ~(1u << type);
}

static subject *add_subject(quern_entity handle, uint32_t mask)
{
    cr_assert_lt(subject_count, (uint32_t)MAX);
    subject *it = &subjects[subject_count++];
    *it = (subject){.handle = handle, .is_alive = true};
    for (uint32_t i = 0; i < TYPES; i++)
        if ((mask >> i & 1) != 0) give(it, i, constructed_value(i));
    return it;
}

/* A value of any of the types. */
typedef struct carrier {
    _Alignas(64) unsigned char bytes[256];
    uint32_t type;
} carrier;

static const void *make_value(carrier *it, uint32_t type, uint64_t value)
{
    it->type = type;
    memset(it->bytes, (int)(value & 0xFF), sizeof it->bytes);
    if (type == TRACKED)
        tracked_construct((tracked *)(void *)it->bytes, value, &counts);
    else
        memcpy(it->bytes, &value, sizeof value);
    return type == TAG ? NULL : it->bytes;
}

static void drop_value(carrier *it)
{
    if (it->type == TRACKED) tracked_destroy((tracked *)(void *)it->bytes, &counts);
}

static uint64_t payload_of(uint32_t type, const void *value)
{
    if (type == TRACKED) {
        cr_assert(tracked_is_live(value));
        return ((const tracked *)value)->payload;
    }
    uint64_t payload;
    memcpy(&payload, value, sizeof payload);
    return payload;
}

static uint32_t random_mask(void)
{
    return random_below(&dice, 1u << TYPES);
}

static uint32_t list_of(uint32_t mask, quern_component *out_list)
{
    uint32_t count = 0;
    out_list[count++] = id_type;
    for (uint32_t i = 0; i < TYPES; i++)
        if ((mask >> i & 1) != 0) out_list[count++] = types[i];
    return count;
}

/* ------------------------------------------------------------------------------------------ commands */

static void command_create(quern_commands *commands)
{
    const uint64_t id = subject_count;
    const uint32_t mask = random_mask();
    quern_component list[TYPES + 1];
    const void *values[TYPES + 1] = {&id};
    const uint32_t count = list_of(mask, list);
    const quern_entity created = record_entity_with(commands, list, values, count);
    cr_assert_not(quern_entity_is_null(created));
    add_subject(created, mask);
}

static void command_give(quern_commands *commands, subject *it, uint32_t type)
{
    const uint64_t value = random_next(&dice);
    const uint32_t how = random_below(&dice, 3);
    carrier carried;
    if (how == 0) {
        must(quern_commands_add(commands, it->handle, types[type], NULL));
        if (it->is_alive && (it->mask >> type & 1) == 0) give(it, type, constructed_value(type));
        return;
    }
    const void *given = make_value(&carried, type, value);
    must(how == 1 ? quern_commands_add(commands, it->handle, types[type], given)
                  : quern_commands_set(commands, it->handle, types[type], given));
    drop_value(&carried);
    if (it->is_alive) give(it, type, value);
}

static void command(quern_commands *commands, uint32_t likely_kind)
{
    const uint32_t kind = random_chance(&dice, 30) ? likely_kind : random_below(&dice, 8);
    subject *it = pick();
    const uint32_t type = random_below(&dice, TYPES);
    if (kind < 2 || it == NULL) {
        command_create(commands);
    } else if (kind == 2) {
        must(quern_commands_destroy(commands, it->handle));
        it->is_alive = false;
        if (random_chance(&dice, 10)) command_give(commands, it, type); /* no effect, as the entity dies */
    } else if (kind < 5) {
        must(quern_commands_remove(commands, it->handle, types[type]));
        take(it, type);
    } else {
        command_give(commands, it, type);
    }
}

/* Destroys entities in row order, which uses the destroy_and_create fast path if no type has hooks. */
static void command_destroy_and_create(quern_commands *commands)
{
    const quern__storage *storage = &world->storage;
    for (uint32_t i = 0; i < storage->archetypes.count; i++) {
        const quern__archetype *archetype = storage->archetypes.items[i];
        if (archetype->has_destroy) continue;
        for (uint32_t k = 0; k < quern__archetype_row_count(archetype); k++) {
            if (!random_chance(&dice, 40)) continue;
            const uintptr_t location = quern__archetype_location(archetype, k);
            const uint64_t *id = quern__storage_value(archetype, location, quern__component_index(id_type));
            must(quern_commands_destroy(commands, subjects[*id].handle));
            subjects[*id].is_alive = false;
        }
    }
}

static void record(quern_context *context)
{
    quern_commands *commands = quern_context_commands(context);
    if (random_chance(&dice, 20)) {
        command_destroy_and_create(commands);
        return;
    }
    const uint32_t likely_kind = random_below(&dice, 8);
    for (uint32_t i = 0; i < COMMANDS; i++)
        command(commands, likely_kind);
}

/* Finds the handles of the entities that the sync point created. */
static void find_created(void)
{
    const quern__storage *storage = &world->storage;
    for (uint32_t i = 1; i < storage->archetypes.count; i++) {
        const quern__archetype *archetype = storage->archetypes.items[i];
        for (uint32_t k = 0; k < quern__archetype_row_count(archetype); k++) {
            const uintptr_t location = quern__archetype_location(archetype, k);
            const uint64_t *id = quern__storage_value(archetype, location, quern__component_index(id_type));
            cr_assert(subjects[*id].is_alive);
            subjects[*id].handle = *quern__row_handle(archetype, quern__archetype_row(archetype, location));
        }
    }
}

static void play_frame(quern_jobs *jobs)
{
    schedule->playback.disable_fast_paths = random_chance(&dice, 30);
    begin_change();
    must_run(schedule, jobs);
    find_created();
    end_change();
}

/* --------------------------------------------------------------------------------------------- calls */

static void call_create(void)
{
    const uint64_t id = subject_count;
    const uint32_t mask = random_mask();
    quern_component list[TYPES + 1];
    const void *values[TYPES + 1] = {&id};
    quern_entity created;
    must(quern_entity_create_with(world, list, values, list_of(mask, list), &created));
    add_subject(created, mask);
}

static void call_create_many(void)
{
    enum { COUNT = 300 };
    uint64_t ids[COUNT];
    quern_entity created[COUNT];
    for (uint32_t i = 0; i < COUNT; i++)
        ids[i] = subject_count + i;
    const uint32_t mask = random_mask();
    quern_component list[TYPES + 1];
    const void *columns[TYPES + 1] = {ids};
    must(quern_entity_create_many(world, list, columns, list_of(mask, list), COUNT, created));
    for (uint32_t i = 0; i < COUNT; i++)
        add_subject(created[i], mask);
}

static void call_destroy_many(void)
{
    enum { COUNT = 60 };
    quern_entity list[COUNT];
    uint32_t count = 0;
    for (uint32_t i = 0; i < COUNT; i++) {
        subject *it = pick();
        if (it == NULL) continue;
        it->rank = count;
        list[count++] = it->handle;
        it->is_alive = false;
    }
    must(quern_entity_destroy_many(world, list, count));
}

static void call_give(subject *it, uint32_t type)
{
    carrier carried;
    const uint64_t value = random_next(&dice);
    const void *given = make_value(&carried, type, value);
    const bool has = (it->mask >> type & 1) != 0;
    must(has || random_chance(&dice, 50) ? quern_entity_set(world, it->handle, types[type], given)
                                         : quern_entity_add(world, it->handle, types[type], given));
    drop_value(&carried);
    give(it, type, value);
}

static void call_matching(uint32_t type)
{
    quern_query *query = of_type[random_below(&dice, TYPES)];
    carrier carried;
    const uint64_t value = random_next(&dice);
    const uint32_t kind = random_below(&dice, 10);
    uint32_t needed = 0;
    while (of_type[needed] != query)
        needed++;
    if (kind < 5)
        must(quern_entity_add_matching(query, types[type], make_value(&carried, type, value), NULL));
    else if (kind < 9)
        must(quern_entity_remove_matching(query, types[type], NULL));
    else
        must(quern_entity_destroy_matching(query, NULL));
    if (kind < 5) drop_value(&carried);
    for (uint32_t i = 0; i < subject_count; i++) {
        subject *it = &subjects[i];
        if (!it->is_alive || (it->mask >> needed & 1) == 0) continue;
        if (kind < 5 && (it->mask >> type & 1) == 0)
            give(it, type, value);
        else if (kind >= 5 && kind < 9)
            take(it, type);
        else if (kind == 9)
            it->is_alive = false;
    }
}

static void call(void)
{
    const uint32_t kind = random_below(&dice, 42), type = random_below(&dice, TYPES);
    subject *it = pick();
    begin_change();
    if (kind < 8 || it == NULL) {
        call_create();
    } else if (kind < 15) {
        must(quern_entity_destroy(world, it->handle));
        it->is_alive = false;
    } else if (kind < 25) {
        call_give(it, type);
    } else if (kind < 33) {
        if ((it->mask >> type & 1) != 0) must(quern_entity_remove(world, it->handle, types[type]));
        take(it, type);
    } else if (kind < 35) {
        if ((it->mask >> type & 1) != 0) must(quern_entity_mark_changed(world, it->handle, types[type]));
        it->given |= it->mask & 1u << type;
    } else if (kind < 37) {
        call_destroy_many();
    } else if (kind < 38) {
        call_create_many();
    } else if (kind < 39) {
        call_matching(type);
    } else if (kind < 41) {
        must(quern_entity_clear(world, it->handle));
        for (uint32_t t = 0; t < TYPES; t++)
            take(it, t);
    } else {
        must(quern_world_remove_empty_archetypes(world, NULL));
    }
    end_change();
}

/* ------------------------------------------------------------------------------------------- looking */

static int compare_gone(const void *a, const void *b)
{
    const gone *left = a, *right = b;
    if (left->archetype != right->archetype)
        return left->archetype->index < right->archetype->index ? -1 : 1;
    if (left->change != right->change) return left->change < right->change ? -1 : 1;
    return left->rank < right->rank ? -1 : left->rank > right->rank;
}

static void assert_gone(uint32_t reaction, const reacting_row *row, const gone *expected)
{
    cr_assert_eq(row->kind, QUERN_REACT_REMOVED);
    cr_assert_eq(row->archetype, expected->archetype);
    cr_assert(quern_entity_equal(row->entity, expected->handle));
    for (uint32_t i = 0; i < specs[reaction].term_count; i++) {
        const described_term *term = &specs[reaction].terms[i];
        const bool has = (expected->mask & looked_at(reaction) & 1u << term->type) != 0;
        cr_assert_eq(row->values[i] != NULL, has && term->access > QUERN_ACCESS_NONE);
        if (row->values[i] != NULL)
            cr_assert_eq(payload_of(term->type, row->values[i]), expected->values[term->type]);
    }
}

static void assert_old(uint32_t reaction, const reacting_row *row, const subject *it)
{
    for (uint32_t i = 0; i < specs[reaction].term_count; i++) {
        const described_term *term = &specs[reaction].terms[i];
        cr_assert_eq(row->old[i] != NULL, term->access == OLD && row->kind == QUERN_REACT_SET);
        if (row->old[i] != NULL)
            cr_assert_eq(payload_of(term->type, row->old[i]), it->before_set[reaction][term->type]);
    }
}

static void look(uint32_t reaction)
{
    reacting *it = &reactions[reaction];
    gone_list *list = &gone_of[reaction];
    if (it->reaction == NULL) return;
    reacting_look(it);
    cr_assert_geq(it->count, list->count);
    if (list->count > 0) qsort(list->items, list->count, sizeof *list->items, compare_gone);
    for (uint32_t i = 0; i < list->count; i++)
        assert_gone(reaction, &it->rows[i], &list->items[i]);
    for (uint32_t i = list->count; i < it->count; i++) {
        const uint64_t *id = quern_entity_get(world, it->rows[i].entity, id_type);
        cr_assert_not_null(id);
        cr_assert_eq(it->rows[i].kind, subjects[*id].pending[reaction]);
        assert_old(reaction, &it->rows[i], &subjects[*id]);
        subjects[*id].pending[reaction] = 0;
    }
    for (uint32_t i = 0; i < subject_count; i++)
        cr_assert_eq(subjects[i].pending[reaction], 0, "subject %u was not told of", i);
    list->count = 0;
    if (random_chance(&dice, 50)) reacting_done(it);
}

static void begin_reaction(uint32_t reaction)
{
    quern_term terms[TERMS];
    for (uint32_t i = 0; i < specs[reaction].term_count; i++) {
        const described_term *term = &specs[reaction].terms[i];
        terms[i] = term->access == OLD
                       ? quern_term_old(types[term->type])
                       : quern_term_make(types[term->type], term->match, (quern_access)term->access);
    }
    reactions[reaction] = reacting_begin(world, specs[reaction].kinds, terms, specs[reaction].term_count);
    for (uint32_t i = 0; i < subject_count; i++) {
        subject *it = &subjects[i];
        const bool is_present = it->is_alive && matches(reaction, it->mask);
        const bool asks = (specs[reaction].kinds & QUERN_REACT_PRESENT) != 0;
        it->pending[reaction] = is_present && asks ? QUERN_REACT_ADDED : 0;
    }
}

static void toggle_late_reaction(void)
{
    if (reactions[LATE].reaction == NULL) {
        begin_reaction(LATE);
        return;
    }
    reacting_end(&reactions[LATE]);
    gone_of[LATE].count = 0;
    for (uint32_t i = 0; i < subject_count; i++)
        subjects[i].pending[LATE] = 0;
}

/* -------------------------------------------------------------------------------------- the programs */

static void open_world(void)
{
    static const char *const names[TYPES] = {"small", "wide", "tracked", "tag", "other"};
    memory = failing_allocator_create();
    world =
        make_world(.allocator = failing_allocator_interface(memory), .empty_archetype_checks_per_sync = 3);
    memset((void *)&counts, 0, sizeof counts);
    id_type = setup_component(world, "id", 8, 8);
    for (uint32_t i = 0; i < TYPES; i++) {
        types[i] = i == TRACKED ? tracked_register(world, names[i], &counts)
                   : i == TAG   ? setup_tag(world, names[i])
                                : setup_component(world, names[i], type_bytes[i], 8);
        of_type[i] = setup_query(world, (const quern_term[]){quern_term_with(types[i])}, 1);
    }
    schedule = setup_schedule(world);
    make_system(schedule, "records", NULL, .begin = record);
    schedule->playback.parallel_command_count = 1;
    subject_count = 0;
}

static void close_world(void)
{
    for (uint32_t i = 0; i < REACTIONS; i++) {
        if (reactions[i].reaction != NULL) reacting_end(&reactions[i]);
        free(gone_of[i].items);
        gone_of[i] = (gone_list){0};
    }
    for (uint32_t i = 0; i < TYPES; i++)
        quern_query_destroy(of_type[i]);
    quern_schedule_destroy(schedule);
    quern_world_destroy(world);
    cr_assert_eq(tracked_live_count(&counts), 0u);
    cr_assert_eq(counts.broken_count, 0u);
    failing_allocator_close(memory);
}

static void play(uint64_t seed, uint32_t thread_count)
{
    dice = (random_source){seed};
    open_world();
    quern_jobs *jobs = setup_jobs(thread_count);
    for (uint32_t i = 0; i < REACTIONS; i++)
        if (i != LATE) begin_reaction(i);
    begin_change();
    for (uint32_t i = 0; i < START; i++)
        call_create();
    end_change();
    for (uint32_t step = 0; step < STEPS; step++) {
        play_frame(jobs);
        for (uint32_t i = 0; i < CALLS; i++)
            call();
        if (random_chance(&dice, 30)) toggle_late_reaction();
        for (uint32_t i = 0; i < REACTIONS; i++)
            if (random_chance(&dice, 40)) look(i);
        if (random_chance(&dice, 20)) must(quern_world_trim(world));
        assert_valid(world);
    }
    for (uint32_t i = 0; i < REACTIONS; i++)
        look(i);
    close_world();
    quern_jobs_destroy(jobs);
}

Test(random_reactions, reactions_process_the_net_effect_of_each_change)
{
    for (uint64_t seed = 1; seed <= SEEDS; seed++)
        for (uint32_t i = 0; i < POOL_COUNT; i++)
            play(seed, pool_threads[i]);
}
