/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "tests/core/history/many.h"

#include <stdio.h>
#include <string.h>

many many_it;
quern_entity many_entities[MANY_MOST + MANY_STEPS];

void many_open_world(const quern_world_def *def)
{
    memset(&many_it, 0, sizeof many_it);
    many_it.random = (random_source){1};
    must(quern_world_create(def, &many_it.world));
    many_it.amount = make_component(many_it.world, QUERN_TYPE(amount),
                                    .fields = QUERN_FIELDS(amount, value), .can_disable = true);
    many_it.tracked = tracked_register(many_it.world, "tracked", &many_it.counts);
    many_it.tag = setup_tag(many_it.world, "tag");
    many_it.wide = setup_component(many_it.world, "wide", 200, 8);
    many_it.parent = quern_world_parent(many_it.world);
    many_it.friend = make_relation(many_it.world, .name = "friend");
    many_it.counter =
        make_resource(many_it.world, QUERN_TYPE(amount), .fields = QUERN_FIELDS(amount, value));
    many_it.all =
        setup_query(many_it.world, (quern_term[]){quern_term_either(quern_term_read(many_it.amount))}, 1);
}

void many_close_world(void)
{
    quern_history_destroy(many_it.history);
    quern_query_destroy(many_it.all);
    quern_world_destroy(many_it.world);
}

void many_open_history(const quern_allocator *allocator)
{
    quern_history_def def = {.frame_count = MANY_KEPT};
    if (allocator != NULL) def.allocator = *allocator;
    must(quern_history_create(many_it.world, &def, &many_it.history));
}

uint32_t many_list_all(void)
{
    uint32_t count = 0;
    quern_query_iterator walk = quern_query_iterate(many_it.all);
    while (quern_query_next(&walk))
        for (uint32_t i = 0; i < walk.view.count && count < MANY_MOST; i++)
            many_entities[count++] = walk.view.entities[i];
    must(walk.result);
    return count;
}

static quern_entity pick(uint32_t count)
{
    return many_entities[random_below(&many_it.random, count)];
}

/* Writes through a pointer and marks the component as changed. */
static void write_values(quern_entity entity)
{
    tracked *value = NULL;
    char *bytes = NULL;
    if (quern_entity_has(many_it.world, entity, many_it.tracked))
        value = quern_entity_get(many_it.world, entity, many_it.tracked);
    if (quern_entity_has(many_it.world, entity, many_it.wide))
        bytes = quern_entity_get(many_it.world, entity, many_it.wide);
    if (value != NULL) {
        value->payload = random_below(&many_it.random, 3);
        must(quern_entity_mark_changed(many_it.world, entity, many_it.tracked));
    }
    if (bytes != NULL) {
        bytes[random_below(&many_it.random, 200)] ^= 1;
        must(quern_entity_mark_changed(many_it.world, entity, many_it.wide));
    }
}

/* Relates several entities at once. The call fails as a whole if it would form a cycle. */
static void relate_some(uint32_t count)
{
    enum { PAIRS = 3 };
    quern_entity sources[PAIRS], targets[PAIRS];
    for (uint32_t i = 0; i < PAIRS; i++) {
        sources[i] = pick(count);
        targets[i] = pick(count);
    }
    quern_entity_relate_many(many_it.world, sources, many_it.parent, targets, PAIRS);
}

/* Makes one random change. Some changes fail, for example for a used name or a cycle; the program
 * includes these failures. */
static void change_one(uint32_t count)
{
    const quern_entity entity = pick(count), other = pick(count);
    amount value = {random_next(&many_it.random)};
    char name[16];
    snprintf(name, sizeof name, "n%u", random_below(&many_it.random, 50));
    switch (random_below(&many_it.random, 19)) {
    case 0:
        quern_entity_destroy(many_it.world, entity);
        break;
    case 1:
        quern_entity_relate(many_it.world, entity, many_it.parent, other);
        break;
    case 2:
        quern_entity_unrelate(many_it.world, entity, many_it.parent);
        break;
    case 3:
        quern_entity_relate(many_it.world, entity, many_it.friend, other);
        break;
    case 4:
        quern_entity_set_name(many_it.world, entity, name);
        break;
    case 5:
        quern_entity_add(many_it.world, entity, many_it.tag, NULL);
        break;
    case 6:
        quern_entity_remove(many_it.world, entity, many_it.tag);
        break;
    case 7:
        quern_entity_add(many_it.world, entity, many_it.tracked, NULL);
        break;
    case 8:
        quern_entity_remove(many_it.world, entity, many_it.tracked);
        break;
    case 9:
        quern_entity_set_component_enabled(many_it.world, entity, many_it.amount, false);
        break;
    case 10:
        quern_entity_set_component_enabled(many_it.world, entity, many_it.amount, true);
        break;
    case 11:
        quern_entity_add(many_it.world, entity, many_it.wide, NULL);
        break;
    case 12:
    case 13:
        write_values(entity);
        break;
    case 14:
        relate_some(count);
        break;
    default:
        quern_entity_set(many_it.world, entity, many_it.amount, &value);
        break;
    }
}

void many_change(uint64_t seed, uint32_t step_count)
{
    many_it.random = (random_source){seed};
    for (uint32_t i = 0; i < step_count; i++) {
        const uint32_t count = many_list_all();
        const amount value = {random_next(&many_it.random)};
        if (count < 60 || (count < MANY_MOST && random_below(&many_it.random, 4) == 0))
            must(quern_entity_create_with(many_it.world, &many_it.amount, (const void *const[]){&value}, 1,
                                          NULL));
        else
            change_one(count);
    }
    amount *counter = quern_resource_get(many_it.world, many_it.counter);
    counter->value = random_next(&many_it.random);
}

uint64_t many_hash(void)
{
    must(quern_world_validate(many_it.world));
    cr_assert_eq(many_it.counts.broken_count, 0);
    return quern_world_hash(many_it.world);
}
