/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "tests/flow/flow_naive.h"

#include <stdlib.h>
#include <string.h>

void naive_open(naive_world *world, uint32_t tag)
{
    memset((void *)world, 0, sizeof *world);
    world->tag = tag;
    world->archetype_count = 1; /* the empty set is there from the start */
}

void naive_close(naive_world *world)
{
    for (uint32_t i = 0; i < world->archetype_count; i++)
        free(world->archetypes[i].slots);
    free(world->entities);
    free(world->free_slots);
    free(world->commands);
}

/* Room for one more. */
static void *grown(void *items, uint32_t count, uint32_t *capacity, size_t item_bytes)
{
    if (count < *capacity) return items;
    *capacity = *capacity * 2 + 16;
    void *bigger = realloc(items, *capacity * item_bytes);
    if (bigger == NULL) abort();
    return bigger;
}

/* ------------------------------------------------------------------------------------------- values */

static void copy_value(uint64_t *words, uint32_t type, const uint64_t *value)
{
    uint64_t *target = naive_value(words, type);
    for (uint32_t i = 0; i < flow_types[type].word_count; i++)
        target[i] = value != NULL ? value[i] : 0;
}

void naive_put(uint32_t *set, uint64_t *words, uint32_t type, const uint64_t *value)
{
    bool has = (*set >> type & 1) != 0;
    if (value != NULL || !has) copy_value(words, type, value);
    *set |= 1u << type;
}

void naive_take(uint32_t *set, uint64_t *words, uint32_t type)
{
    copy_value(words, type, NULL);
    *set &= ~(1u << type);
}

/* ------------------------------------------------------------------------------------------- entities */

quern_entity naive_handle(const naive_world *world, uint32_t slot)
{
    return (quern_entity){(uint64_t)world->tag << 56 | (uint64_t)world->entities[slot].generation << 32 |
                          slot};
}

naive_entity *naive_find(const naive_world *world, quern_entity entity)
{
    uint32_t slot = quern_entity_index(entity);
    if (slot >= world->slot_count || !world->entities[slot].is_alive) return NULL;
    return quern_entity_equal(naive_handle(world, slot), entity) ? &world->entities[slot] : NULL;
}

static uint32_t take_slot(naive_world *world)
{
    world->alive_count++;
    if (world->free_count > 0) return world->free_slots[--world->free_count];
    world->entities =
        grown(world->entities, world->slot_count, &world->slot_capacity, sizeof *world->entities);
    memset((void *)&world->entities[world->slot_count], 0, sizeof *world->entities);
    world->entities[world->slot_count].generation = 1;
    return world->slot_count++;
}

static void give_slot(naive_world *world, uint32_t slot)
{
    world->alive_count--;
    world->entities[slot].is_alive = false;
    world->entities[slot].generation++;
    world->free_slots =
        grown(world->free_slots, world->free_count, &world->free_capacity, sizeof *world->free_slots);
    world->free_slots[world->free_count++] = slot;
}

static void append_row(naive_world *world, uint32_t slot, uint32_t set, const uint64_t *words)
{
    naive_entity *entity = &world->entities[slot];
    uint32_t index = 0;
    while (index < world->archetype_count && world->archetypes[index].set != set)
        index++;
    naive_archetype *archetype = &world->archetypes[index];
    if (index == world->archetype_count) {
        world->archetype_count++;
        archetype->set = set;
    }
    archetype->slots =
        grown(archetype->slots, archetype->count, &archetype->capacity, sizeof *archetype->slots);
    entity->is_alive = true;
    entity->archetype = index;
    entity->row = archetype->count;
    entity->set = set;
    archetype->slots[archetype->count++] = slot;
    for (uint32_t type = 0; type < FLOW_TYPE_COUNT; type++)
        copy_value(entity->words, type, set >> type & 1 ? words + flow_types[type].first_word : NULL);
}

static void erase_row(naive_world *world, uint32_t slot)
{
    const naive_entity *entity = &world->entities[slot];
    naive_archetype *archetype = &world->archetypes[entity->archetype];
    uint32_t last = archetype->slots[--archetype->count];
    archetype->slots[entity->row] = last;
    world->entities[last].row = entity->row;
}

quern_entity naive_create(naive_world *world, uint32_t set, const uint64_t *words)
{
    uint32_t slot = take_slot(world);
    append_row(world, slot, set, words);
    return naive_handle(world, slot);
}

void naive_destroy(naive_world *world, quern_entity entity)
{
    if (naive_find(world, entity) == NULL) return;
    erase_row(world, quern_entity_index(entity));
    give_slot(world, quern_entity_index(entity));
}

static void change_row(naive_world *world, uint32_t slot, uint32_t set, const uint64_t *words)
{
    naive_entity *entity = &world->entities[slot];
    if (entity->set != set) {
        erase_row(world, slot);
        append_row(world, slot, set, words);
    }
    memcpy(entity->words, words, sizeof entity->words);
}

void naive_change(naive_world *world, quern_entity entity, uint32_t set, const uint64_t *words)
{
    change_row(world, quern_entity_index(entity), set, words);
}

/* ------------------------------------------------------------------------------------------- commands */

static naive_command *command_add(naive_world *world, naive_kind kind, quern_entity entity)
{
    world->commands =
        grown(world->commands, world->command_count, &world->command_capacity, sizeof *world->commands);
    naive_command *command = &world->commands[world->command_count++];
    memset((void *)command, 0, sizeof *command);
    command->kind = kind;
    command->entity = entity;
    return command;
}

quern_entity naive_record_create(naive_world *world)
{
    quern_entity entity = {(uint64_t)1 << 32 | world->create_count++};
    command_add(world, NAIVE_CREATE, entity);
    return entity;
}

void naive_record(naive_world *world, naive_kind kind, quern_entity entity, uint32_t type,
                  const uint64_t *value)
{
    if (!quern_entity_is_provisional(entity) && naive_find(world, entity) == NULL) return;
    naive_command *command = command_add(world, kind, entity);
    command->type = type;
    command->has_value = value != NULL;
    if (value != NULL) memcpy(command->value, value, flow_types[type].word_count * sizeof *value);
}

/* What the commands make of one entity. */
typedef struct edit {
    uint32_t slot;
    bool is_new, is_destroyed;
    uint32_t set;
    uint64_t words[FLOW_WORD_COUNT];
} edit;

typedef struct edit_list {
    edit *items;
    uint32_t count, capacity;
    quern_entity *created;  /* by number of the create */
    uint32_t *edit_of_slot; /* UINT32_MAX: none */
} edit_list;

static quern_entity resolve(const edit_list *edits, quern_entity entity)
{
    return quern_entity_is_provisional(entity) ? edits->created[quern_entity_index(entity)] : entity;
}

/* Creates get their handles first, in order. Their entities count as alive from here on. */
static edit_list start_edits(naive_world *world)
{
    edit_list edits = {.created = malloc((world->create_count + 1) * sizeof *edits.created)};
    if (edits.created == NULL) abort();
    for (uint32_t i = 0; i < world->create_count; i++) {
        uint32_t slot = take_slot(world);
        world->entities[slot].is_alive = true;
        edits.created[i] = naive_handle(world, slot);
    }
    edits.edit_of_slot = malloc((world->slot_count + 1) * sizeof *edits.edit_of_slot);
    if (edits.edit_of_slot == NULL) abort();
    memset(edits.edit_of_slot, 0xFF, (world->slot_count + 1) * sizeof *edits.edit_of_slot);
    return edits;
}

static edit *edit_of(const naive_world *world, edit_list *edits, uint32_t slot, bool is_new)
{
    if (edits->edit_of_slot[slot] != UINT32_MAX) return &edits->items[edits->edit_of_slot[slot]];
    edits->items = grown(edits->items, edits->count, &edits->capacity, sizeof *edits->items);
    edits->edit_of_slot[slot] = edits->count;
    edit *fresh = &edits->items[edits->count++];
    memset((void *)fresh, 0, sizeof *fresh);
    fresh->slot = slot;
    fresh->is_new = is_new;
    if (is_new) return fresh;
    fresh->set = world->entities[slot].set;
    memcpy(fresh->words, world->entities[slot].words, sizeof fresh->words);
    return fresh;
}

static void apply_command(const naive_world *world, edit_list *edits, naive_command *command,
                          naive_stats *stats)
{
    quern_entity entity = resolve(edits, command->entity);
    bool alive = naive_find(world, entity) != NULL;
    edit *it =
        alive ? edit_of(world, edits, quern_entity_index(entity), command->kind == NAIVE_CREATE) : NULL;
    if (it == NULL || it->is_destroyed) {
        stats->dropped_count++;
    } else if (command->kind == NAIVE_DESTROY) {
        it->is_destroyed = true;
    } else if (command->kind == NAIVE_REMOVE) {
        naive_take(&it->set, it->words, command->type);
    } else if (command->kind == NAIVE_ADD) {
        for (uint32_t i = 0; i < flow_types[command->type].link_count; i++)
            command->value[i] = resolve(edits, (quern_entity){command->value[i]}).bits;
        naive_put(&it->set, it->words, command->type, command->has_value ? command->value : NULL);
    }
}

static void finish_edit(naive_world *world, const edit *it, naive_stats *stats)
{
    if (it->is_destroyed) {
        stats->destroyed_count++;
        if (!it->is_new) erase_row(world, it->slot);
        give_slot(world, it->slot);
    } else if (it->is_new) {
        append_row(world, it->slot, it->set, it->words);
    } else {
        change_row(world, it->slot, it->set, it->words);
    }
}

void naive_apply(naive_world *world, naive_stats *stats)
{
    edit_list edits = start_edits(world);
    stats->command_count += world->command_count;
    stats->created_count += world->create_count;
    for (uint32_t i = 0; i < world->command_count; i++)
        apply_command(world, &edits, &world->commands[i], stats);
    for (uint32_t i = 0; i < edits.count; i++)
        finish_edit(world, &edits.items[i], stats);
    free(edits.items);
    free(edits.created);
    free(edits.edit_of_slot);
    world->command_count = 0;
    world->create_count = 0;
}
