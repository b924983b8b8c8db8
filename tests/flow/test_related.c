/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Test labels: threaded */
/* Random programs that relate, unrelate and destroy by commands. The result must equal that of a model
 * which applies the commands one after another, at every thread count, with passes fused or not, and in
 * every open order. */

#include "core/playback/playback.h"
#include "core/relations/relation_internal.h"
#include "core/world/world_internal.h"
#include "sched/frame/schedule_internal.h"
#include "tests/flow/flow_setup.h"
#include "tests/support/effort.h"
#include "tests/support/random.h"

#include <stdlib.h>
#include <string.h>

enum { SEEDS = effort(8, 8, 3) };
enum {
    FRAMES = 12,
    FIRST_RELATING_FRAME = 9,
    SYSTEMS = 3,
    REASONS = 6,
    START = 250,
    MAX = 6000,
    MAX_EDGES = 20000,
    NONE = -1
};
/* The first RELATIONS relations have one target per source, the others several. */
enum { RELATIONS = 4, ALL_RELATIONS = 7 };

/* The first relation starts with a chain that is deeper than the limit of levels. */
static const quern_relation_def relation_defs[ALL_RELATIONS] = {
    {.name = "holder", .levels = true, .ordered = true},
    {.name = "carrier", .on_target_destroyed = QUERN_TARGET_UNRELATES, .levels = true},
    {.name = "lock", .on_target_destroyed = QUERN_TARGET_REFUSES, .ordered = true},
    {.name = "ring"},
    {.name = "likes", .on_target_destroyed = QUERN_TARGET_UNRELATES, .many = true},
    {.name = "needs", .on_target_destroyed = QUERN_TARGET_REFUSES, .many = true},
    {.name = "part", .many = true},
};

static quern_world *world;
static quern_schedule *schedule;
static quern_query *query;
static quern_component number_type, flag_type, other_type;
static quern_relation relations[ALL_RELATIONS];
static uint64_t frame;

/* The entities that are alive when a frame begins, in the order of their slots. */
static quern_entity known[MAX];
static uint32_t known_count;

/* --------------------------------------------------------------------------------------------- the log */

typedef enum kind { CREATE, CREATE_RELATED, DESTROY, RELATE, UNRELATE, UNRELATE_FROM, FLAG, UNFLAG } kind;

typedef struct entry {
    uint64_t key; /* identifies system and view */
    kind kind;
    uint32_t relation;
    quern_entity entity, target;
    uint64_t number; /* number of the created entity */
} entry;

static entry entries[100000];
static uint32_t entry_count;
static bool logs; /* set while one thread records */

/* ------------------------------------------------------------------------------------------- recording */

typedef struct actor {
    quern_commands *commands;
    uint64_t key;
    random_source random;
} actor;

static void note(const actor *by, entry made)
{
    if (!logs) return;
    cr_assert_lt(entry_count, (uint32_t)COUNT_OF(entries));
    made.key = by->key;
    entries[entry_count++] = made;
}

static void relate(actor *by, quern_entity source, uint32_t relation, quern_entity target)
{
    quern_result result;
    if (relation >= RELATIONS || random_chance(&by->random, 80))
        result = quern_commands_relate(by->commands, source, relations[relation], target);
    else
        result = quern_commands_set(by->commands, source, quern_relation_component(relations[relation]),
                                    &target);
    if (result == QUERN_OK)
        note(by, (entry){.kind = RELATE, .relation = relation, .entity = source, .target = target});
}

static void unrelate(actor *by, quern_entity source, uint32_t relation)
{
    quern_result result;
    if (random_chance(&by->random, 80))
        result = quern_commands_unrelate(by->commands, source, relations[relation]);
    else
        result = quern_commands_remove(by->commands, source, quern_relation_component(relations[relation]));
    if (result == QUERN_OK) note(by, (entry){.kind = UNRELATE, .relation = relation, .entity = source});
}

static void unrelate_from(const actor *by, quern_entity source, uint32_t relation, quern_entity target)
{
    if (quern_commands_unrelate_from(by->commands, source, relations[relation], target) == QUERN_OK)
        note(by, (entry){.kind = UNRELATE_FROM, .relation = relation, .entity = source, .target = target});
}

static void destroy(const actor *by, quern_entity entity)
{
    if (quern_commands_destroy(by->commands, entity) == QUERN_OK)
        note(by, (entry){.kind = DESTROY, .entity = entity});
}

static void flag(const actor *by, quern_entity entity, bool flags)
{
    const quern_result result = flags ? quern_commands_add(by->commands, entity, flag_type, NULL)
                                      : quern_commands_remove(by->commands, entity, flag_type);
    if (result == QUERN_OK) note(by, (entry){.kind = flags ? FLAG : UNFLAG, .entity = entity});
}

static quern_entity create(actor *by)
{
    const uint64_t number = random_next(&by->random);
    const quern_entity entity =
        record_entity_with(by->commands, &number_type, (const void *[]){&number}, 1);
    note(by, (entry){.kind = CREATE, .entity = entity, .number = number});
    return entity;
}

static quern_entity create_related(actor *by, uint32_t relation, quern_entity target)
{
    const uint64_t number = random_next(&by->random);
    const quern_component types[] = {quern_relation_component(relations[relation]), number_type,
                                     other_type};
    const void *values[] = {&target, &number, &number};
    const uint32_t count = random_chance(&by->random, 50) ? 3 : 2;
    const quern_entity entity = record_entity_with(by->commands, types, values, count);
    if (!quern_entity_is_null(entity))
        note(by, (entry){.kind = CREATE_RELATED,
                         .relation = relation,
                         .entity = entity,
                         .target = target,
                         .number = number});
    return entity;
}

/* --------------------------------------------------------------------------------------- the program */

static quern_entity pick(actor *by)
{
    return known[random_below(&by->random, known_count)];
}

static uint32_t pick_relation(actor *by)
{
    static const uint32_t likely[] = {0, 0, 0, 0, 1, 1, 2, 3};
    return likely[random_below(&by->random, COUNT_OF(likely))];
}

static uint32_t pick_many(actor *by)
{
    static const uint32_t likely[] = {4, 4, 4, 4, 4, 4, 5, 6};
    return likely[random_below(&by->random, COUNT_OF(likely))];
}

/* Adds edges between an entity, new ones and others, and removes some of them in the same callback. */
static void connect(actor *by, quern_entity self)
{
    const uint32_t relation = pick_many(by), count = 1 + random_below(&by->random, 6);
    const quern_entity made = random_chance(&by->random, 30) ? create(by) : pick(by);
    for (uint32_t i = 0; i < count; i++) {
        const quern_entity other = pick(by);
        relate(by, random_chance(&by->random, 20) ? made : self, relation, other);
        if (random_chance(&by->random, 20)) relate(by, other, relation, made);
        if (random_chance(&by->random, 20)) unrelate_from(by, self, relation, other);
    }
    if (random_chance(&by->random, 30)) relate(by, made, relation, self);
    if (random_chance(&by->random, 10))
        unrelate(by, random_chance(&by->random, 50) ? made : self, relation);
    if (random_chance(&by->random, 5)) destroy(by, made);
}

/* Removes targets that the entity had before the frame, and some that it does not have. */
static void disconnect(actor *by, quern_entity self)
{
    quern_entity target = quern_entity_null();
    const uint32_t relation = pick_many(by);
    const quern__relation *chosen = world->storage.relations->list.items[relation];
    const quern__edge_list *targets = quern__edges_targets(&chosen->edges, quern_entity_index(self));
    for (uint32_t slot = quern__edge_list_next(targets, QUERN__SLOT_NONE); slot != QUERN__SLOT_NONE;
         slot = quern__edge_list_next(targets, slot)) {
        target = quern__entity_of_slot(&world->storage, slot);
        if (random_chance(&by->random, 70)) unrelate_from(by, self, relation, target);
    }
    unrelate_from(by, self, relation, pick(by));
    if (!quern_entity_is_null(target) && random_chance(&by->random, 20)) relate(by, self, relation, target);
    unrelate_from(by, self, pick_relation(by), pick(by));
}

static void create_family(actor *by)
{
    const quern_entity a = create(by), b = create_related(by, pick_relation(by), a);
    const quern_entity c = create_related(by, pick_relation(by), b);
    relate(by, a, pick_relation(by), random_chance(&by->random, 70) ? pick(by) : c);
    if (random_chance(&by->random, 30)) relate(by, pick(by), pick_relation(by), b);
    if (random_chance(&by->random, 30)) flag(by, b, true);
    if (random_chance(&by->random, 30)) unrelate(by, c, pick_relation(by));
    if (random_chance(&by->random, 15)) destroy(by, random_chance(&by->random, 50) ? a : b);
}

/* Relates and unrelates in one relation. With nothing else in a sync point, it takes its fast path
 * (core/playback/stages.h). */
static void act_in_one_relation(actor *by, quern_entity self, uint32_t relation)
{
    const quern_entity other = pick(by);
    if (random_chance(&by->random, 30))
        unrelate(by, random_chance(&by->random, 50) ? self : other, relation);
    else
        relate(by, random_chance(&by->random, 70) ? self : other, relation, pick(by));
    if (random_chance(&by->random, 20)) relate(by, self, relation, other);
}

static void act(actor *by, quern_entity self)
{
    if (frame >= FIRST_RELATING_FRAME) {
        act_in_one_relation(by, self, (uint32_t)(frame - FIRST_RELATING_FRAME) % RELATIONS);
        return;
    }
    const uint32_t relation = pick_relation(by);
    const quern_entity other = pick(by);
    switch (random_below(&by->random, 16)) {
    case 0:
    case 1:
    case 2:
        relate(by, self, relation, other);
        break;
    case 3:
        relate(by, other, relation, self);
        break;
    case 4:
        unrelate(by, self, relation);
        flag(by, other, false);
        break;
    case 5:
        unrelate(by, other, relation);
        relate(by, other, relation, pick(by));
        break;
    case 6:
        if (random_chance(&by->random, 50)) destroy(by, self);
        break;
    case 7:
        if (random_chance(&by->random, 30)) destroy(by, other);
        flag(by, other, true);
        break;
    case 8:
        create_related(by, relation, random_chance(&by->random, 50) ? self : other);
        break;
    case 9:
        create_family(by);
        break;
    case 10:
        relate(by, self, relation, other);
        relate(by, other, relation, self);
        break;
    case 11:
    case 12:
    case 13:
        connect(by, self);
        break;
    case 14:
        disconnect(by, self);
        break;
    default:
        flag(by, self, random_chance(&by->random, 50));
        break;
    }
}

static void act_on_rows(quern_commands *commands, uint64_t key, const quern_view *view)
{
    const uint64_t *numbers = quern_view_read(view, 0);
    for (uint32_t i = 0; i < view->count; i++) {
        actor by = {commands, key, {numbers[i] ^ (frame << 32) ^ (key >> 32 << 40)}};
        if (random_chance(&by.random, 12)) act(&by, view->entities[i]);
    }
}

static void run(quern_context *context, const quern_view *view)
{
    const uint64_t system = (uintptr_t)quern_context_user_data(context);
    act_on_rows(quern_context_commands(context), system << 32 | view->ordinal, view);
}

/* ----------------------------------------------------------------------------------------- the model */

typedef struct model_entity {
    uint64_t number;
    quern_entity handle; /* provisional until the sync point has ended */
    uint64_t stream;     /* stream that creates the entity, while the handle is provisional */
    bool is_alive;
    bool is_destroyed; /* destroyed by a command of its own, not by a cascade */
    bool is_flagged;
    int targets[RELATIONS];
    int64_t ranks[RELATIONS]; /* ranks among siblings */
} model_entity;

static model_entity model_entities[MAX];
static int model_entity_count;
static int64_t highest_rank, lowest_rank;
static uint64_t drops[REASONS], dropped_count, ended_count;

typedef struct model_edge {
    uint32_t relation;
    int source, target;
} model_edge;

static model_edge model_edges[MAX_EDGES];
static uint32_t model_edge_count;

static uint32_t find_model_edge(uint32_t relation, int source, int target)
{
    uint32_t i = 0;
    while (i < model_edge_count && (model_edges[i].relation != relation ||
                                    model_edges[i].source != source || model_edges[i].target != target))
        i++;
    return i;
}

static void model_connect(uint32_t relation, int source, int target)
{
    if (find_model_edge(relation, source, target) < model_edge_count) return;
    cr_assert_lt(model_edge_count, (uint32_t)MAX_EDGES);
    model_edges[model_edge_count++] = (model_edge){relation, source, target};
}

static void model_disconnect(uint32_t relation, int source, int target)
{
    const uint32_t at = find_model_edge(relation, source, target);
    if (at < model_edge_count) model_edges[at] = model_edges[--model_edge_count];
}

static int find_model_entity(quern_entity handle, uint64_t stream)
{
    for (int i = model_entity_count; i-- > 0;)
        if (quern_entity_equal(model_entities[i].handle, handle) &&
            (!quern_entity_is_provisional(handle) || model_entities[i].stream == stream))
            return i;
    cr_assert_fail("no entity has this handle");
    return NONE;
}

static int add_model_entity(uint64_t number, quern_entity handle, uint64_t stream)
{
    cr_assert_lt(model_entity_count, MAX);
    model_entities[model_entity_count] = (model_entity){.number = number,
                                                        .handle = handle,
                                                        .stream = stream,
                                                        .is_alive = true,
                                                        .targets = {NONE, NONE, NONE, NONE}};
    return model_entity_count++;
}

static void drop(quern_drop_reason reason)
{
    drops[reason]++;
    dropped_count++;
}

static bool is_above(uint32_t relation, int above, int below)
{
    while (below != NONE && below != above)
        below = model_entities[below].targets[relation];
    return below == above;
}

static void model_relate(int source, uint32_t relation, int target)
{
    if (!model_entities[source].is_alive) {
        drop(QUERN_DROP_DESTROYED);
    } else if (!model_entities[target].is_alive) {
        drop(QUERN_DROP_TARGET_DEAD);
    } else if (relation >= RELATIONS) {
        model_connect(relation, source, target);
    } else if (relation_defs[relation].levels && is_above(relation, source, target)) {
        drop(QUERN_DROP_CYCLE);
    } else if (model_entities[source].targets[relation] != target) {
        model_entities[source].targets[relation] = target;
        model_entities[source].ranks[relation] =
            relation_defs[relation].ordered ? ++highest_rank : --lowest_rank;
    }
}

static bool ends[MAX];

static void find_ends(int first)
{
    bool grows = true;
    memset(ends, 0, sizeof ends);
    ends[first] = true;
    while (grows) {
        grows = false;
        for (int i = 0; i < model_entity_count; i++)
            for (uint32_t k = 0; k < RELATIONS && model_entities[i].is_alive && !ends[i]; k++)
                if (relation_defs[k].on_target_destroyed == QUERN_TARGET_DESTROYS_SOURCE &&
                    model_entities[i].targets[k] != NONE && ends[model_entities[i].targets[k]])
                    grows = ends[i] = true;
        for (uint32_t i = 0; i < model_edge_count; i++)
            if (relation_defs[model_edges[i].relation].on_target_destroyed ==
                    QUERN_TARGET_DESTROYS_SOURCE &&
                ends[model_edges[i].target] && !ends[model_edges[i].source])
                grows = ends[model_edges[i].source] = true;
    }
}

/* Returns whether an edge keeps one of the ending entities from being destroyed. */
static bool model_edge_refuses(void)
{
    for (uint32_t i = 0; i < model_edge_count; i++)
        if (relation_defs[model_edges[i].relation].on_target_destroyed == QUERN_TARGET_REFUSES &&
            ends[model_edges[i].target] && !ends[model_edges[i].source])
            return true;
    return false;
}

static void model_destroy(int first)
{
    find_ends(first);
    for (int i = 0; i < model_entity_count; i++)
        for (uint32_t k = 0; k < RELATIONS; k++)
            if (relation_defs[k].on_target_destroyed == QUERN_TARGET_REFUSES &&
                model_entities[i].is_alive && !ends[i] && model_entities[i].targets[k] != NONE &&
                ends[model_entities[i].targets[k]]) {
                drop(QUERN_DROP_TARGET_IN_USE);
                return;
            }
    if (model_edge_refuses()) {
        drop(QUERN_DROP_TARGET_IN_USE);
        return;
    }
    for (uint32_t i = model_edge_count; i-- > 0;)
        if (ends[model_edges[i].source] || ends[model_edges[i].target])
            model_edges[i] = model_edges[--model_edge_count];
    model_entities[first].is_destroyed = true;
    for (int i = 0; i < model_entity_count; i++) {
        if (!model_entities[i].is_alive) continue;
        for (uint32_t k = 0; k < RELATIONS; k++)
            if (ends[i] || (model_entities[i].targets[k] != NONE && ends[model_entities[i].targets[k]]))
                model_entities[i].targets[k] = NONE;
        if (ends[i]) model_entities[i].is_alive = false;
        ended_count += ends[i];
    }
}

/* Removes one target of a living source, or all. */
static void model_unrelate(int source, const entry *it)
{
    const uint32_t relation = it->relation;
    const bool is_from = it->kind == UNRELATE_FROM;
    const int target = is_from ? find_model_entity(it->target, it->key) : NONE;
    if (relation < RELATIONS) {
        if (!is_from || model_entities[source].targets[relation] == target)
            model_entities[source].targets[relation] = NONE;
        return;
    }
    if (is_from) model_disconnect(relation, source, target);
    for (uint32_t i = model_edge_count; i-- > 0 && !is_from;)
        if (model_edges[i].relation == relation && model_edges[i].source == source)
            model_edges[i] = model_edges[--model_edge_count];
}

static void model_do(const entry *it)
{
    if (it->kind == CREATE) return;
    const int index = find_model_entity(it->entity, it->key);
    model_entity *entity = &model_entities[index];
    if (it->kind == RELATE || it->kind == CREATE_RELATED) {
        model_relate(index, it->relation, find_model_entity(it->target, it->key));
    } else if (it->kind == UNRELATE || it->kind == UNRELATE_FROM) {
        if (!entity->is_alive)
            drop(QUERN_DROP_DESTROYED);
        else
            model_unrelate(index, it);
    } else if (entity->is_destroyed) {
        drop(QUERN_DROP_DESTROYED);
    } else if (it->kind == DESTROY) {
        if (entity->is_alive)
            model_destroy(index);
        else
            entity->is_destroyed = true;
    } else {
        entity->is_flagged = it->kind == FLAG;
    }
}

/* Insertion sort, which keeps the order of entries with equal keys. */
static void sort_entries(void)
{
    for (uint32_t i = 1; i < entry_count; i++) {
        const entry it = entries[i];
        uint32_t at = i;
        for (; at > 0 && entries[at - 1].key > it.key; at--)
            entries[at] = entries[at - 1];
        entries[at] = it;
    }
}

/* Applies all commands of a sync point. */
static void model_sync(void)
{
    memset(drops, 0, sizeof drops);
    dropped_count = ended_count = 0;
    sort_entries();
    for (uint32_t i = 0; i < entry_count; i++)
        if (entries[i].kind == CREATE || entries[i].kind == CREATE_RELATED)
            add_model_entity(entries[i].number, entries[i].entity, entries[i].key);
    for (uint32_t i = 0; i < entry_count; i++)
        model_do(&entries[i]);
    entry_count = 0;
}

/* ---------------------------------------------------------------------------------------- comparison */

typedef struct child {
    int source, target;
    int64_t rank;
} child;

static int compare_children(const void *a, const void *b)
{
    const child *x = a, *y = b;
    if (x->target != y->target) return x->target < y->target ? -1 : 1;
    return x->rank < y->rank ? -1 : x->rank > y->rank;
}

static void compare_siblings(uint32_t relation)
{
    static child children[MAX];
    uint32_t count = 0;
    for (int i = 0; i < model_entity_count; i++)
        if (model_entities[i].is_alive && model_entities[i].targets[relation] != NONE)
            children[count++] =
                (child){i, model_entities[i].targets[relation], model_entities[i].ranks[relation]};
    qsort(children, count, sizeof *children, compare_children);
    for (uint32_t i = 0; i < count; i++) {
        const quern_entity target = model_entities[children[i].target].handle;
        const quern_entity source = model_entities[children[i].source].handle;
        const bool is_first = i == 0 || children[i - 1].target != children[i].target;
        const bool is_last = i + 1 == count || children[i + 1].target != children[i].target;
        if (is_first)
            cr_assert_eq(quern_entity_first_source(world, target, relations[relation]).bits, source.bits);
        cr_assert_eq(quern_entity_next_sibling(world, source, relations[relation]).bits,
                     is_last ? 0 : model_entities[children[i + 1].source].handle.bits);
    }
}

static void compare_model_entity(const model_entity *by, const quern_view *view)
{
    for (uint32_t k = 0; k < RELATIONS; k++) {
        const int target = by->targets[k];
        const quern__relation *relation = world->storage.relations->list.items[k];
        const quern_entity *value =
            quern_entity_get(world, by->handle, quern_relation_component(relations[k]));
        uint32_t depth = 0;
        cr_assert_eq(value != NULL, target != NONE, "%s", relation_defs[k].name);
        cr_assert_eq(quern_entity_target(world, by->handle, relations[k]).bits,
                     target != NONE ? model_entities[target].handle.bits : 0);
        if (value != NULL) cr_assert_eq(value->bits, model_entities[target].handle.bits);
        for (int at = target; relation_defs[k].levels && at != NONE; at = model_entities[at].targets[k])
            depth++;
        if (depth > QUERN_MAX_RELATION_LEVEL) depth = QUERN_MAX_RELATION_LEVEL;
        const quern__record *record = quern__entities_find(&world->storage.entities, by->handle);
        cr_assert_eq(quern__relation_level(relation, quern__storage_archetype_of(&world->storage, record)),
                     depth);
        cr_assert_eq(quern__links_level(&relation->links, quern_entity_index(by->handle)), depth);
    }
    cr_assert_eq(quern_view_has(view, 1), by->is_flagged);
}

/* Replaces provisional handles by those in the world. Entities are identified by their numbers. */
static void learn_handles(void)
{
    uint64_t alive_count = 0;
    quern_query_iterator walk = quern_query_iterate(query);
    for (int i = 0; i < model_entity_count; i++) {
        alive_count += model_entities[i].is_alive;
        if (!model_entities[i].is_alive) model_entities[i].handle = quern_entity_null();
    }
    cr_assert_eq(quern_query_count(query), alive_count);
    while (quern_query_next(&walk)) {
        const uint64_t *numbers = quern_view_read(&walk.view, 0);
        for (uint32_t i = 0; i < walk.view.count; i++) {
            int at = 0;
            while (at < model_entity_count && model_entities[at].number != numbers[i])
                at++;
            cr_assert(at < model_entity_count && model_entities[at].is_alive,
                      "an entity lives that is dead in the model");
            model_entities[at].handle = walk.view.entities[i];
        }
    }
}

/* Checks that each edge of the model is in the world, and that the numbers of edges and the tags agree. */
static void compare_edges(void)
{
    uint64_t count = 0;
    for (uint32_t k = RELATIONS; k < ALL_RELATIONS; k++)
        for (int i = 0; i < model_entity_count; i++) {
            if (!model_entities[i].is_alive) continue;
            const quern_entity source = model_entities[i].handle;
            const uint32_t target_count = quern_entity_target_count(world, source, relations[k]);
            count += target_count;
            cr_assert_eq(quern_entity_has(world, source, quern_relation_component(relations[k])),
                         target_count > 0);
        }
    for (uint32_t i = 0; i < model_edge_count; i++)
        cr_assert(quern_entity_has_target(world, model_entities[model_edges[i].source].handle,
                                          relations[model_edges[i].relation],
                                          model_entities[model_edges[i].target].handle));
    cr_assert_eq(count, model_edge_count);
}

static void compare_model(void)
{
    assert_valid(world);
    learn_handles();
    compare_edges();
    for (quern_query_iterator walk = quern_query_iterate(query); quern_query_next(&walk);)
        for (uint32_t i = 0; i < walk.view.count; i++)
            compare_model_entity(&model_entities[find_model_entity(walk.view.entities[i], 0)], &walk.view);
    for (uint32_t k = 0; k < RELATIONS; k++)
        compare_siblings(k);
}

static void compare_drops(const uint64_t *expected)
{
    uint64_t actual[REASONS] = {0};
    for (uint32_t i = 0; i < quern_schedule_dropped_command_count(schedule); i++) {
        quern_dropped_command dropped;
        must(quern_schedule_get_dropped_command(schedule, i, &dropped));
        actual[dropped.reason] += dropped.count;
    }
    cr_assert_arr_eq(actual, expected, sizeof actual);
}

/* ------------------------------------------------------------------------------------------- playing */

typedef struct outcome {
    uint64_t hash, command_count, dropped_count, created_count, destroyed_count;
} outcome;

static uint32_t most_edges;
static outcome expected[FRAMES];
static uint64_t expected_drops[FRAMES][REASONS];

static quern_entity make(uint64_t number)
{
    quern_entity entity;
    must(quern_entity_create_with(world, &number_type, (const void *[]){&number}, 1, &entity));
    if (logs) add_model_entity(number, entity, 0);
    return entity;
}

static void fill_world(uint64_t seed)
{
    random_source random = {seed};
    quern_entity before = make(seed << 8);
    for (uint32_t i = 1; i < START; i++) {
        const quern_entity entity = make(random_next(&random));
        if (i < 25) {
            must(quern_entity_relate(world, entity, relations[0], before));
            if (logs) model_entities[model_entity_count - 1].targets[0] = model_entity_count - 2;
        }
        before = entity;
    }
}

static void open_world(uint64_t seed, quern_schedule_def style)
{
    static const char *const names[SYSTEMS] = {"first", "second", "third"};
    world = setup_world();
    number_type = setup_component(world, "number", 8, 8);
    flag_type = setup_tag(world, "flag");
    other_type = setup_component(world, "other", 8, 8);
    for (uint32_t k = 0; k < ALL_RELATIONS; k++)
        must(quern_relation_register(world, &relation_defs[k], &relations[k]));
    const quern_term terms[] = {quern_term_read(number_type),
                                quern_term_optional(flag_type, QUERN_ACCESS_NONE)};
    query = setup_query(world, terms, 2);
    model_entity_count = 0;
    model_edge_count = 0;
    fill_world(seed);
    schedule = setup_schedule_as(world, style, 1);
    for (uintptr_t i = 0; i < SYSTEMS; i++) {
        make_system(schedule, names[i], run, .terms = {quern_term_read(number_type)},
                    .user_data = (void *)i);
    }
}

static uint32_t only_relates_count; /* sync points that took the fast path of relate commands */

static void close_world(void)
{
    only_relates_count += schedule->playback.only_relates_count;
    if (world->commands != NULL) only_relates_count += world->commands->playback.only_relates_count;
    quern_query_destroy(query);
    quern_schedule_destroy(schedule);
    quern_world_destroy(world);
}

static int compare_slots(const void *a, const void *b)
{
    const uint32_t x = quern_entity_index(*(const quern_entity *)a);
    const uint32_t y = quern_entity_index(*(const quern_entity *)b);
    return x < y ? -1 : x > y;
}

static void learn_known(void)
{
    quern_query_iterator walk = quern_query_iterate(query);
    known_count = 0;
    while (quern_query_next(&walk))
        for (uint32_t i = 0; i < walk.view.count; i++)
            known[known_count++] = walk.view.entities[i];
    qsort(known, known_count, sizeof *known, compare_slots);
}

static outcome outcome_of_flush(void)
{
    quern_flush_stats stats;
    must(quern_world_get_flush_stats(world, &stats));
    return (outcome){quern_world_hash(world), stats.command_count, stats.dropped_count, stats.created_count,
                     stats.destroyed_count};
}

/* Plays a frame: by systems, by a loop between frames, or by a parallel query, in turn. */
static outcome play_frame(quern_jobs *jobs)
{
    learn_known();
    if (frame % 3 == 1) {
        for (quern_query_iterator walk = quern_query_iterate(query); quern_query_next(&walk);)
            act_on_rows(quern_world_commands(world), 0, &walk.view);
        must(quern_world_flush(world));
        return outcome_of_flush();
    }
    if (frame % 3 == 2) {
        must(quern_query_parallel_for(query, jobs, run, NULL));
        return outcome_of_flush();
    }
    must_run(schedule, jobs);
    const quern_frame_stats stats = stats_of_frame(schedule);
    return (outcome){quern_world_hash(world), stats.command_count, stats.dropped_count, stats.created_count,
                     stats.destroyed_count};
}

/* Plays frames on one thread and compares them with the model. */
static void play_with_model(uint64_t seed)
{
    logs = true;
    open_world(seed, (quern_schedule_def){.disable_fusing = true});
    compare_model();
    for (frame = 0; frame < FRAMES; frame++) {
        expected[frame] = play_frame(NULL);
        model_sync();
        compare_model();
        cr_assert_eq(expected[frame].dropped_count, dropped_count);
        cr_assert_eq(expected[frame].destroyed_count, ended_count);
        memcpy(expected_drops[frame], drops, sizeof drops);
        if (model_edge_count > most_edges) most_edges = model_edge_count;
        if (frame % 3 == 0) compare_drops(drops);
    }
    close_world();
    logs = false;
}

static void play_as_expected(uint64_t seed, quern_schedule_def style, uint32_t thread_count,
                             bool disable_fast_paths)
{
    quern_jobs *jobs = setup_jobs(thread_count);
    open_world(seed, style);
    schedule->playback.parallel_command_count = 1;
    must(quern__world_reserve_commands(world, 1));
    world->commands->playback.parallel_command_count = 1;
    schedule->playback.disable_fast_paths = disable_fast_paths;
    world->commands->playback.disable_fast_paths = disable_fast_paths;
    for (frame = 0; frame < FRAMES; frame++) {
        const outcome actual = play_frame(jobs);
        assert_valid(world);
        cr_assert_eq(memcmp(&actual, &expected[frame], sizeof actual), 0,
                     "seed %llu, frame %llu, %u threads", (unsigned long long)seed,
                     (unsigned long long)frame, thread_count);
        if (frame % 3 == 0) compare_drops(expected_drops[frame]);
    }
    close_world();
    quern_jobs_destroy(jobs);
}

Test(related, frames_match_the_model_in_every_style, .timeout = 600)
{
    uint64_t seen[REASONS] = {0};
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        play_with_model(seed);
        for (uint32_t i = 0; i < FRAMES; i++)
            for (uint32_t k = 0; k < REASONS; k++)
                seen[k] += expected_drops[i][k];
        for (uint32_t i = 0; i < POOL_COUNT; i++) {
            play_as_expected(seed, schedule_style(i), pool_threads[i], i % 3 == 1);
            play_as_expected(seed, schedule_style((uint32_t)(seed + i) % STYLE_COUNT), pool_threads[i],
                             false);
        }
    }
    cr_assert_gt(seen[QUERN_DROP_TARGET_DEAD], (uint64_t)SEEDS);
    cr_assert_gt(seen[QUERN_DROP_CYCLE], (uint64_t)SEEDS);
    cr_assert_gt(seen[QUERN_DROP_TARGET_IN_USE], (uint64_t)SEEDS);
    cr_assert_gt(seen[QUERN_DROP_DESTROYED], (uint64_t)SEEDS);
    cr_assert_gt(most_edges, 300u);
    cr_assert_gt(only_relates_count, 20u * SEEDS, "%u sync points", only_relates_count);
}
