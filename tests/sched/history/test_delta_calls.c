/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "tests/support/random.h"
#include "tests/support/setup.h"
#include "tests/support/tracked.h"

#include "core/base/containers.h"

#include <stdio.h>
#include <string.h>

/* A second world follows the first one: it applies deltas batch by batch with public calls alone. No call may fail,
 * and afterwards both worlds have the same content. */

enum { MOST = 160, KEPT = 6, FRAMES = 60, RELATIONS = 4, MANY = 3, TYPES = 10, NAMES = 6 };

typedef struct link {
    quern_entity target;
    uint64_t number;
} link;

/* The types of one world. The first ones are the components of the relations. */
typedef struct side {
    quern_world *world;
    quern_relation relations[RELATIONS];
    quern_relation many[MANY]; /* those with several targets per source */
    quern_component types[TYPES];
    quern_resource counter;
    quern_query *all;
    tracked_counts counts;
} side;

enum { LINK = RELATIONS, TRACKED, TOGGLED, TAG, DISABLED, WIDE };

static side first, second;
static quern_history *history;
static random_source rolls;
static quern_entity entities[MOST];
static uint32_t entity_count;
static quern__map mapped; /* from handles of the first world to those of the second */
static quern__map
    original; /* the reverse map; an entity of the first world that is recreated has several entries */

/* ------------------------------------------------------------------------------------------- opening */

static void open_side(side *it)
{
    static const quern_relation_def relations[RELATIONS - 1] = {
        {.name = "guards", .on_target_destroyed = QUERN_TARGET_REFUSES},
        {.name = "carried by", .on_target_destroyed = QUERN_TARGET_UNRELATES, .levels = true},
        {.name = "made by", .on_target_destroyed = QUERN_TARGET_DESTROYS_SOURCE}};
    static const quern_relation_def many[MANY] = {
        {.name = "likes", .on_target_destroyed = QUERN_TARGET_UNRELATES, .many = true},
        {.name = "needs", .on_target_destroyed = QUERN_TARGET_REFUSES, .many = true},
        {.name = "part of", .many = true}};
    memset(it, 0, sizeof *it);
    must(quern_world_create(NULL, &it->world));
    it->relations[0] = quern_world_parent(it->world);
    for (uint32_t i = 1; i < RELATIONS; i++)
        must(quern_relation_register(it->world, &relations[i - 1], &it->relations[i]));
    for (uint32_t i = 0; i < MANY; i++)
        must(quern_relation_register(it->world, &many[i], &it->many[i]));
    for (uint32_t i = 0; i < RELATIONS; i++)
        it->types[i] = quern_relation_component(it->relations[i]);
    it->types[LINK] =
        make_component(it->world, QUERN_TYPE(link), .fields = QUERN_FIELDS(link, target, number));
    it->types[TRACKED] = tracked_register(it->world, "tracked", &it->counts);
    it->types[TOGGLED] = make_component(it->world, .name = "toggled", .size_bytes = 8, .can_disable = true);
    it->types[TAG] = setup_tag(it->world, "tag");
    it->types[DISABLED] = quern_world_disabled_tag(it->world);
    it->types[WIDE] = setup_component(it->world, "wide", 120, 8);
    it->counter = make_resource(it->world, .name = "counter", .size_bytes = 8);
    it->all = setup_query(it->world,
                          (quern_term[]){quern_term_optional(it->types[DISABLED], QUERN_ACCESS_NONE)}, 1);
}

static void open_worlds(uint64_t seed)
{
    rolls = (random_source){seed};
    quern__map_clear(&mapped);
    quern__map_clear(&original);
    open_side(&first);
    open_side(&second);
}

static void close_side(side *it)
{
    quern_query_destroy(it->all);
    quern_world_destroy(it->world);
    cr_assert_eq(tracked_live_count(&it->counts), 0);
}

static void close_worlds(void)
{
    const quern_allocator allocator = quern_allocator_default();
    quern_history_destroy(history);
    close_side(&first);
    close_side(&second);
    quern__map_release(&mapped, &allocator);
    quern__map_release(&original, &allocator);
}

/* Lists the entities of a world and returns their number. */
static uint32_t list_entities(const side *it, quern_entity *list)
{
    uint32_t count = 0;
    quern_query_iterator walk = quern_query_iterate(it->all);
    while (quern_query_next(&walk))
        for (uint32_t i = 0; i < walk.view.count; i++) {
            cr_assert_lt(count, (uint32_t)MOST);
            list[count++] = walk.view.entities[i];
        }
    must(walk.result);
    return count;
}

/* ------------------------------------------------------------------------------------- random changes */

static quern_entity pick(void)
{
    return entities[random_below(&rolls, entity_count)];
}

static void create_one(void)
{
    if (entity_count == MOST) return;
    const quern_entity entity = setup_entity(first.world);
    entities[entity_count++] = entity;
}

static void put_value(quern_entity entity, uint32_t type)
{
    uint64_t words[15] = {random_below(&rolls, 3)};
    const link value = {pick(), random_below(&rolls, 3)};
    tracked hooked;
    switch (type) {
    case LINK:
        must(quern_entity_set(first.world, entity, first.types[type], &value));
        break;
    case TRACKED:
        tracked_construct(&hooked, random_below(&rolls, 3), &first.counts);
        must(quern_entity_set(first.world, entity, first.types[type], &hooked));
        tracked_destroy(&hooked, &first.counts);
        break;
    default:
        must(quern_entity_set(first.world, entity, first.types[type], words));
        break;
    }
}

static void toggle_type(quern_entity entity)
{
    const uint32_t type = LINK + random_below(&rolls, TYPES - LINK);
    const bool has = quern_entity_has(first.world, entity, first.types[type]);
    if (has && random_below(&rolls, 2) == 0)
        must(quern_entity_remove(first.world, entity, first.types[type]));
    else if (has && type == TOGGLED && random_below(&rolls, 2) == 0)
        must(quern_entity_set_component_enabled(first.world, entity, first.types[type],
                                                random_below(&rolls, 2) == 0));
    else
        put_value(entity, type);
}

static void set_random_name(quern_entity entity)
{
    char name[8];
    snprintf(name, sizeof name, "n%u", random_below(&rolls, NAMES));
    (void)quern_entity_set_name(first.world, entity, random_below(&rolls, 3) == 0 ? NULL : name);
}

/* Adds or removes edges between an entity and others, in few relations often enough for changes of one edge only. */
static void change_edges(quern_entity entity)
{
    const quern_relation relation =
        first.many[random_below(&rolls, 8) < 6 ? 0 : 1 + random_below(&rolls, 2)];
    const uint32_t count = 1 + random_below(&rolls, 6);
    quern_entity targets[4];
    const uint32_t known = quern_entity_list_targets(first.world, entity, relation, targets, 4);
    switch (random_below(&rolls, 4)) {
    case 0:
        (void)quern_entity_unrelate(first.world, entity, relation);
        break;
    case 1:
        for (uint32_t i = 0; i < known && i < 4; i++)
            if (random_below(&rolls, 2) == 0)
                must(quern_entity_unrelate_from(first.world, entity, relation, targets[i]));
        break;
    default:
        for (uint32_t i = 0; i < count; i++)
            (void)quern_entity_relate(first.world, entity, relation, pick());
        break;
    }
}

/* Calls that may fail, for example because of a cycle or a used name, are part of the program. */
static void change_one(void)
{
    const quern_entity entity = pick();
    const quern_relation relation = first.relations[random_below(&rolls, RELATIONS)];
    switch (random_below(&rolls, 13)) {
    case 10:
    case 11:
    case 12:
        change_edges(entity);
        break;
    case 0:
        create_one();
        break;
    case 1:
        (void)quern_entity_destroy(first.world, entity);
        break;
    case 2:
    case 3:
    case 4:
        (void)quern_entity_relate(first.world, entity, relation, pick());
        break;
    case 5:
        (void)quern_entity_unrelate(first.world, entity, relation);
        break;
    case 6:
        set_random_name(entity);
        break;
    case 7:
        must(quern_entity_set_enabled(first.world, entity, random_below(&rolls, 2) == 0));
        break;
    default:
        toggle_type(entity);
        break;
    }
}

static void change_some(uint32_t count)
{
    uint64_t *counter = quern_resource_get(first.world, first.counter);
    *counter = random_below(&rolls, 2);
    for (; count > 0; count--) {
        entity_count = list_entities(&first, entities);
        if (entity_count < 20)
            create_one();
        else
            change_one();
    }
}

/* ------------------------------------------------------------------------------------------ following */

/* Returns the entity of the second world that represents an entity of the first; null for one that was destroyed before
 * any saved frame contained it. */
static quern_entity map(quern_entity entity)
{
    const uint64_t *bits = entity.bits != 0 ? quern__map_find(&mapped, entity.bits) : NULL;
    return bits != NULL ? (quern_entity){*bits} : quern_entity_null();
}

static void create_mapped(quern_entity entity)
{
    const quern_allocator allocator = quern_allocator_default();
    const quern_entity made = setup_entity(second.world);
    cr_assert(quern__map_reserve(&mapped, &allocator, mapped.count + 1) &&
              quern__map_reserve(&original, &allocator, original.count + 1));
    quern__map_put(&original, made.bits, entity.bits);
    uint64_t *known = quern__map_find(&mapped, entity.bits); /* known from before it was destroyed */
    if (known != NULL)
        *known = made.bits;
    else
        quern__map_put(&mapped, entity.bits, made.bits);
}

static uint32_t type_of(quern_component component)
{
    uint32_t type = 0;
    while (type < TYPES && !quern_component_equal(first.types[type], component))
        type++;
    cr_assert(type < TYPES, "the delta tells of '%s'", quern_component_name(first.world, component));
    return type;
}

static void put_mapped(quern_delta_kind kind, quern_entity entity, uint32_t type, const void *value)
{
    quern_entity target;
    link mapped_link;
    cr_assert(value != NULL || type == TAG || type == DISABLED);
    if (type < RELATIONS) {
        memcpy(&target, value, sizeof target);
        target = map(target);
        value = &target;
    } else if (type == LINK) {
        memcpy(&mapped_link, value, sizeof mapped_link);
        mapped_link.target = map(mapped_link.target);
        value = &mapped_link;
    }
    if (kind == QUERN_DELTA_ADDED)
        must(quern_entity_add(second.world, entity, second.types[type], value));
    else
        must(quern_entity_set(second.world, entity, second.types[type], value));
}

/* Adds or removes the k-th edge of a batch. */
static void apply_edge(const quern_delta_batch *batch, quern_entity entity, uint32_t k)
{
    uint32_t i = 0;
    while (i < MANY && quern_relation_component(first.many[i]).bits != batch->component.bits)
        i++;
    cr_assert_lt(i, (uint32_t)MANY);
    const bool adds = batch->kind == QUERN_DELTA_RELATED;
    const quern_entity target = map(((const quern_entity *)(adds ? batch->values : batch->old_values))[k]);
    cr_assert_eq(batch->value_bytes, sizeof target);
    cr_assert_null(adds ? batch->old_values : batch->values);
    cr_assert_eq(quern_entity_has_target(second.world, entity, second.many[i], target), !adds);
    must(adds ? quern_entity_relate(second.world, entity, second.many[i], target)
              : quern_entity_unrelate_from(second.world, entity, second.many[i], target));
}

static void apply_component(const quern_delta_batch *batch, quern_entity entity, uint32_t k)
{
    const uint32_t type = type_of(batch->component);
    const quern_component component = second.types[type];
    const char *values = batch->values;
    if (batch->kind == QUERN_DELTA_REMOVED)
        must(quern_entity_remove(second.world, entity, component));
    else if (batch->kind == QUERN_DELTA_ENABLED || batch->kind == QUERN_DELTA_DISABLED)
        must(quern_entity_set_component_enabled(second.world, entity, component,
                                                batch->kind == QUERN_DELTA_ENABLED));
    else
        put_mapped(batch->kind, entity, type,
                   values != NULL ? values + (size_t)k * batch->value_bytes : NULL);
}

static void expect_bare(quern_entity entity)
{
    cr_assert_null(quern_entity_name(second.world, entity));
    for (uint32_t type = 0; type < TYPES; type++)
        cr_assert(!quern_entity_has(second.world, entity, second.types[type]));
    for (uint32_t i = 0; i < RELATIONS; i++)
        cr_assert_eq(quern_entity_source_count(second.world, entity, second.relations[i]), 0);
    for (uint32_t i = 0; i < MANY; i++)
        cr_assert(quern_entity_source_count(second.world, entity, second.many[i]) == 0 &&
                  quern_entity_target_count(second.world, entity, second.many[i]) == 0);
}

static void apply_to(const quern_delta_batch *batch, uint32_t k)
{
    if (batch->kind == QUERN_DELTA_CREATED) {
        create_mapped(batch->entities[k]);
        return;
    }
    const quern_entity entity = map(batch->entities[k]);
    const char *name = quern_entity_name(second.world, entity);
    switch (batch->kind) {
    case QUERN_DELTA_NAMED:
        cr_assert_str_eq(name != NULL ? name : "", batch->old_name != NULL ? batch->old_name : "");
        must(quern_entity_set_name(second.world, entity, batch->name));
        break;
    case QUERN_DELTA_DESTROYED:
        expect_bare(entity);
        must(quern_entity_destroy(second.world, entity));
        break;
    case QUERN_DELTA_RELATED:
    case QUERN_DELTA_UNRELATED:
        apply_edge(batch, entity, k);
        break;
    default:
        apply_component(batch, entity, k);
        break;
    }
}

static void apply_all(const quern_delta *delta)
{
    uint32_t count;
    const quern_delta_batch *batches = quern_delta_batches(delta, &count);
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t k = 0; k < batches[i].count; k++)
            apply_to(&batches[i], k);
        if (batches[i].kind == QUERN_DELTA_RESOURCE)
            memcpy(quern_resource_get(second.world, second.counter), batches[i].values,
                   batches[i].value_bytes);
    }
}

/* ------------------------------------------------------------------------------------------ comparing */

static void expect_link(const link *value, const link *other)
{
    cr_assert_eq(value->number, other->number);
    if (other->target.bits == 0)
        cr_assert(!quern_entity_is_alive(first.world, value->target));
    else
        cr_assert_eq(value->target.bits, *quern__map_find(&original, other->target.bits));
}

static void expect_value(quern_entity entity, quern_entity twin, uint32_t type)
{
    const void *value = quern_entity_get(first.world, entity, first.types[type]);
    const void *other = quern_entity_get(second.world, twin, second.types[type]);
    if (type < RELATIONS) {
        cr_assert_eq(map(*(const quern_entity *)value).bits, ((const quern_entity *)other)->bits);
    } else if (type == LINK) {
        expect_link(value, other);
    } else if (type == TRACKED) {
        cr_assert_eq(((const tracked *)value)->payload, ((const tracked *)other)->payload);
    } else {
        cr_assert_eq(memcmp(value, other, type == WIDE ? 120 : 8), 0);
    }
}

static void expect_edges(quern_entity entity, quern_entity twin)
{
    for (uint32_t i = 0; i < MANY; i++) {
        quern_entity targets[MOST];
        const uint32_t count = quern_entity_list_targets(first.world, entity, first.many[i], targets, MOST);
        cr_assert_eq(quern_entity_target_count(second.world, twin, second.many[i]), count);
        cr_assert_eq(quern_entity_source_count(second.world, twin, second.many[i]),
                     quern_entity_source_count(first.world, entity, first.many[i]));
        for (uint32_t k = 0; k < count; k++)
            cr_assert(quern_entity_has_target(second.world, twin, second.many[i], map(targets[k])));
    }
}

static void expect_twin(quern_entity entity)
{
    const quern_entity twin = map(entity);
    cr_assert(quern_entity_is_alive(second.world, twin));
    const char *name = quern_entity_name(first.world, entity);
    const char *other = quern_entity_name(second.world, twin);
    cr_assert_str_eq(name != NULL ? name : "", other != NULL ? other : "");
    expect_edges(entity, twin);
    for (uint32_t type = 0; type < TYPES; type++) {
        const bool has = quern_entity_has(first.world, entity, first.types[type]);
        cr_assert_eq(quern_entity_has(second.world, twin, second.types[type]), has);
        if (has && type != TAG && type != DISABLED) expect_value(entity, twin, type);
    }
    if (quern_entity_has(first.world, entity, first.types[TOGGLED]))
        cr_assert_eq(quern_entity_is_component_enabled(first.world, entity, first.types[TOGGLED]),
                     quern_entity_is_component_enabled(second.world, twin, second.types[TOGGLED]));
}

/* Asserts that the first world is at the frame that the second one has reached. */
static void expect_same(void)
{
    quern_entity others[MOST];
    must(quern_world_validate(first.world));
    must(quern_world_validate(second.world));
    entity_count = list_entities(&first, entities);
    cr_assert_eq(list_entities(&second, others), entity_count);
    for (uint32_t i = 0; i < entity_count; i++)
        expect_twin(entities[i]);
    cr_assert_eq(*(uint64_t *)quern_resource_get(first.world, first.counter),
                 *(uint64_t *)quern_resource_get(second.world, second.counter));
}

/* Moves the second world from one frame to another. */
static void follow(uint64_t from, uint64_t to)
{
    quern_delta *delta;
    if (from == to) return;
    must(quern_delta_create(history, from, to, &delta));
    apply_all(delta);
    quern_delta_destroy(delta);
    must(quern_history_restore(history, to, NULL));
    expect_same();
}

/* ---------------------------------------------------------------------------------------------- whole */

static void open_history(void)
{
    must(quern_history_create(first.world, &(quern_history_def){.frame_count = KEPT}, &history));
    must(quern_history_save(history, 0, NULL));
}

/* The first frame is empty, so that both worlds start the same. */
static void try_program(uint64_t seed)
{
    open_worlds(seed);
    open_history();
    uint64_t at = 0;
    for (uint64_t frame = 1; frame < FRAMES; frame++) {
        change_some(random_below(&rolls, 80));
        if (random_below(&rolls, 5) == 0) must(quern_world_remove_empty_archetypes(first.world, NULL));
        must(quern_history_save(history, frame, NULL));
        uint64_t oldest;
        for (uint32_t turn = random_below(&rolls, 3) + 1; turn > 0; turn--) {
            cr_assert(quern_history_get_frames(history, &oldest, NULL));
            const uint64_t to =
                turn == 1 ? frame : oldest + random_below(&rolls, (uint32_t)(frame - oldest + 1));
            follow(at, to);
            at = to;
        }
        must(quern_history_restore(history, frame, NULL));
    }
    close_worlds();
}

Test(delta_calls, random_deltas_are_applied_by_plain_calls)
{
    for (uint64_t seed = 1; seed < 13; seed++)
        try_program(seed);
}

/* ----------------------------------------------------------------------------------------- single changes */

/* A world of a few entities before and after a change; the second world follows the change forwards and backwards. */
typedef void act(quern_entity *list);

enum { FEW = 5 };

static void try_change(act *before, act *change)
{
    quern_entity list[FEW];
    open_worlds(1);
    open_history();
    for (uint32_t i = 0; i < FEW; i++)
        must(quern_entity_create(first.world, &list[i]));
    before(list);
    must(quern_history_save(history, 1, NULL));
    change(list);
    must(quern_history_save(history, 2, NULL));
    static const uint64_t path[] = {0, 1, 2, 1, 2, 0, 2, 0};
    for (uint32_t i = 1; i < sizeof path / sizeof path[0]; i++)
        follow(path[i - 1], path[i]);
    close_worlds();
}

static void set_parent(quern_entity child, quern_entity parent)
{
    must(quern_entity_relate(first.world, child, first.relations[0], parent));
}

static void clear_parent(quern_entity child)
{
    must(quern_entity_unrelate(first.world, child, first.relations[0]));
}

static void set_name(quern_entity entity, const char *name)
{
    must(quern_entity_set_name(first.world, entity, name));
}

static void relate_chain(quern_entity *list)
{
    set_parent(list[1], list[0]);
    set_parent(list[2], list[1]);
    set_parent(list[3], list[2]);
    must(quern_entity_add(first.world, list[0], first.types[TAG], NULL));
}

static void turn_chain(quern_entity *list)
{
    for (uint32_t i = 1; i < 4; i++)
        clear_parent(list[i]);
    set_parent(list[0], list[3]);
    set_parent(list[2], list[0]);
    set_parent(list[1], list[2]);
}

/* The archetype that the tagged entity moves to precedes that of the last entity. */
static void relate_chain_and_make_room(quern_entity *list)
{
    relate_chain(list);
    clear_parent(list[1]);
    set_parent(list[4], list[1]);
    set_parent(list[0], list[4]);
    clear_parent(list[0]);
    clear_parent(list[4]);
    set_parent(list[1], list[0]);
}

/* The leaf at the end of the chain gets another parent and a child, and its old parent moves below that child. */
static void put_chain_below_its_leaf(quern_entity *list)
{
    must(quern_entity_add(first.world, list[3], first.types[TOGGLED], NULL));
    set_parent(list[3], list[4]);
    set_parent(list[0], list[3]);
    set_parent(list[2], list[0]);
}

static void destroy_top(quern_entity *list)
{
    must(quern_entity_destroy(first.world, list[0]));
}

static void destroy_above_leaf(quern_entity *list)
{
    set_parent(list[3], list[4]);
    must(quern_entity_destroy(first.world, list[0]));
}

Test(delta_calls, deltas_invert_and_destroy_trees)
{
    try_change(relate_chain, turn_chain);
    try_change(relate_chain_and_make_room, put_chain_below_its_leaf);
    try_change(relate_chain, destroy_top);
    try_change(relate_chain, destroy_above_leaf);
}

static void guard_in_a_ring(quern_entity *list)
{
    for (uint32_t i = 0; i < 3; i++)
        must(quern_entity_relate(first.world, list[i], first.relations[1], list[(i + 1) % 3]));
    must(quern_entity_relate(first.world, list[3], first.relations[1], list[0]));
}

static void destroy_guarded(quern_entity *list)
{
    must(quern_entity_relate(first.world, list[3], first.relations[1], list[4]));
    for (uint32_t i = 0; i < 3; i++)
        must(quern_entity_unrelate(first.world, list[i], first.relations[1]));
    for (uint32_t i = 0; i < 3; i++)
        must(quern_entity_destroy(first.world, list[i]));
}

Test(delta_calls, deltas_respect_targets_that_refuse_destruction)
{
    try_change(guard_in_a_ring, destroy_guarded);
}

static void name_families(quern_entity *list)
{
    set_parent(list[2], list[0]);
    set_parent(list[3], list[1]);
    set_name(list[0], "a");
    set_name(list[1], "b");
    set_name(list[2], "child");
    set_name(list[3], "child");
}

static void swap_parents(quern_entity *list)
{
    set_name(list[2], NULL);
    set_parent(list[2], list[1]);
    set_parent(list[3], list[0]);
    set_name(list[2], "child");
}

static void swap_names(quern_entity *list)
{
    set_name(list[0], NULL);
    set_name(list[1], "a");
    set_name(list[0], "b");
}

static void take_over_name(quern_entity *list)
{
    must(quern_entity_destroy(first.world, list[0]));
    set_name(list[4], "a");
}

static void pass_names_on(quern_entity *list)
{
    set_name(list[4], "b2");
    set_name(list[1], "b3");
    set_name(list[0], "b");
}

Test(delta_calls, deltas_swap_names_of_entities)
{
    try_change(name_families, swap_parents);
    try_change(name_families, swap_names);
    try_change(name_families, take_over_name);
    try_change(name_families, pass_names_on);
}
