/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_TESTS_BAG_H
#define QUERN_TESTS_BAG_H

/* A component with lists of every kind, and a naive model of it with arrays of fixed size. */

#include "tests/support/failing_allocator.h"
#include "tests/support/random.h"
#include "tests/support/setup.h"

enum { BAG_MOST = 80, BAG_TEXT_BYTES = 400 };

typedef struct bag_item {
    uint32_t kind;
    uint16_t count;
    quern_entity owner;
    char mark[4];
} bag_item;

typedef struct bag {
    uint32_t gold;
    QUERN_LIST(bag_item) items;
    quern_string label;
    QUERN_LIST(float) scores;
    QUERN_LIST(quern_string) names;
    QUERN_LIST(quern_entity) friends;
} bag;

typedef struct bag_model {
    uint32_t item_count, score_count, name_count, friend_count;
    bag_item items[BAG_MOST];
    float scores[BAG_MOST];
    char names[BAG_MOST][24];
    quern_entity friends[BAG_MOST];
    char label[BAG_TEXT_BYTES];
} bag_model;

extern const quern_component_def bag_def;

quern_component bag_register(quern_world *in_world);

/* Creates the world of the fixture, with the bag. The allocator of lists fails on request; close_bag_world closes it. */
failing_allocator *open_bag_world(quern_component *out_bag);
void close_bag_world(failing_allocator *memory);

/* Creates an entity with a bag of one or two elements in each list. */
quern_entity bag_create_filled(quern_component bag_id);

/* Changes a bag and its model at random. Handles in lists are of `entities`. A call that fails for lack of memory changes
 * neither; returns the number of such calls. */
uint32_t bag_change(bag *it, bag_model *model, random_source *random, const quern_entity *entities,
                    uint32_t entity_count);

void bag_free(bag *it);

/* Asserts that a bag has what the model says. map: returns the handle that the bag has for one of the model; NULL: the
 * same. */
void bag_assert(const bag *it, const bag_model *model, quern_entity (*map)(quern_entity entity));

#endif
