/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "tests/flow/flow_naive.h"

#include <stdlib.h>
#include <string.h>

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

/* marks the row of an entity that has left */
#define NAIVE_GAP UINT32_MAX

void naive_open(naive_world *world, const flow_plan *plan, uint32_t first_stamp)
{
    memset((void *)world, 0, sizeof *world);
    world->can_disable = plan->can_disable;
    world->required = plan->required;
    world->defaults = plan->defaults;
    world->first_stamp = first_stamp;
    world->archetype_count = 1; /* the archetype without components exists from the start */
    world->now = 1;
}

void naive_close(naive_world *world)
{
    for (uint32_t i = 0; i < world->archetype_count; i++)
        free(world->archetypes[i].slots);
    free(world->entities);
    free(world->free_slots);
}

/* Returns `items`, reallocated if needed, with capacity for one more. */
static void *with_room(void *items, uint32_t count, uint32_t *capacity, size_t item_bytes)
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

void naive_add_type(const naive_world *world, uint32_t *set, uint64_t *words, uint32_t type,
                    const uint64_t *value)
{
    bool has = (*set >> type & 1) != 0;
    if (value != NULL || !has)
        copy_value(words, type, value != NULL ? value : world->defaults + flow_types[type].first_word);
    *set |= 1u << type;
}

uint32_t naive_missing(const naive_world *world, uint32_t set)
{
    return flow_complete(world->required, set) & ~set;
}

void naive_add_missing(const naive_world *world, uint32_t *set, uint64_t *words)
{
    const uint32_t missing = naive_missing(world, *set);
    for (uint32_t type = 0; type < FLOW_TYPE_COUNT; type++)
        if ((missing >> type & 1) != 0) naive_add_type(world, set, words, type, NULL);
}

void naive_remove_type(uint32_t *set, uint64_t *words, uint32_t type)
{
    copy_value(words, type, NULL);
    *set &= ~(1u << type);
}

/* ------------------------------------------------------------------------------------------- entities */

quern_entity naive_handle(const naive_world *world, uint32_t slot)
{
    return (quern_entity){(uint64_t)world->entities[slot].stamp << 32 | slot};
}

naive_entity *naive_find(const naive_world *world, quern_entity entity)
{
    uint32_t slot = quern_entity_index(entity);
    if (slot >= world->slot_count || !world->entities[slot].is_alive) return NULL;
    return quern_entity_equal(naive_handle(world, slot), entity) ? &world->entities[slot] : NULL;
}

static uint32_t allocate_slot(naive_world *world)
{
    world->alive_count++;
    if (world->free_count > 0) {
        const uint32_t slot = world->free_slots[--world->free_count];
        world->entities[slot].disabled = 0;
        return slot;
    }
    world->entities =
        with_room(world->entities, world->slot_count, &world->slot_capacity, sizeof *world->entities);
    memset((void *)&world->entities[world->slot_count], 0, sizeof *world->entities);
    world->entities[world->slot_count].stamp = world->first_stamp;
    return world->slot_count++;
}

static void release_slot(naive_world *world, uint32_t slot)
{
    world->alive_count--;
    world->entities[slot].is_alive = false;
    world->entities[slot].stamp++;
    world->free_slots =
        with_room(world->free_slots, world->free_count, &world->free_capacity, sizeof *world->free_slots);
    world->free_slots[world->free_count++] = slot;
}

/* Returns the index of the archetype with this set of types; adds the archetype if there is none. */
static uint32_t find_archetype(naive_world *world, uint32_t set)
{
    uint32_t index = 0;
    while (index < world->archetype_count && world->archetypes[index].set != set)
        index++;
    if (index == world->archetype_count) world->archetypes[world->archetype_count++].set = set;
    return index;
}

static void put_row(naive_world *world, uint32_t slot, uint32_t index, uint32_t row)
{
    world->archetypes[index].slots[row] = slot;
    world->entities[slot].archetype = index;
    world->entities[slot].row = row;
    world->entities[slot].set = world->archetypes[index].set;
}

static void put_last(naive_world *world, uint32_t slot, uint32_t index)
{
    naive_archetype *archetype = &world->archetypes[index];
    archetype->slots =
        with_room(archetype->slots, archetype->count, &archetype->capacity, sizeof *archetype->slots);
    put_row(world, slot, index, archetype->count++);
}

static void set_words(naive_entity *entity, const uint64_t *words)
{
    entity->is_alive = true;
    for (uint32_t type = 0; type < FLOW_TYPE_COUNT; type++)
        copy_value(entity->words, type,
                   entity->set >> type & 1 ? words + flow_types[type].first_word : NULL);
}

static void append_row(naive_world *world, uint32_t slot, uint32_t set, const uint64_t *words)
{
    put_last(world, slot, find_archetype(world, set));
    set_words(&world->entities[slot], words);
}

static void erase_row(naive_world *world, uint32_t slot)
{
    const naive_entity *entity = &world->entities[slot];
    naive_archetype *archetype = &world->archetypes[entity->archetype];
    uint32_t last = archetype->slots[--archetype->count];
    archetype->slots[entity->row] = last;
    world->entities[last].row = entity->row;
}

void naive_note_changed(const naive_world *world, naive_entity *entity, uint32_t types)
{
    for (uint32_t type = 0; type < FLOW_TYPE_COUNT; type++)
        if ((types & entity->set) >> type & 1) entity->changed[type] = world->now;
}

quern_entity naive_create(naive_world *world, uint32_t set, const uint64_t *words)
{
    uint32_t slot = allocate_slot(world);
    uint64_t all_words[FLOW_WORD_COUNT] = {0};
    if (words != NULL) memcpy(all_words, words, sizeof all_words);
    naive_add_missing(world, &set, all_words);
    append_row(world, slot, set, all_words);
    naive_note_changed(world, &world->entities[slot], set);
    return naive_handle(world, slot);
}

void naive_destroy(naive_world *world, quern_entity entity)
{
    if (naive_find(world, entity) == NULL) return;
    erase_row(world, quern_entity_index(entity));
    release_slot(world, quern_entity_index(entity));
}

static void change_row(naive_world *world, uint32_t slot, uint32_t set, const uint64_t *words)
{
    naive_entity *entity = &world->entities[slot];
    const uint32_t added = set & ~entity->set;
    if (entity->set != set) {
        erase_row(world, slot);
        append_row(world, slot, set, words);
    }
    naive_note_changed(world, entity, added);
    memcpy(entity->words, words, sizeof entity->words);
    entity->disabled &= set;
}

void naive_change(naive_world *world, quern_entity entity, uint32_t set, const uint64_t *words)
{
    change_row(world, quern_entity_index(entity), set, words);
}

/* ------------------------------------------------------------------------------------------- commands */

static naive_command *command_add(naive_recorder *recorder, naive_kind kind, quern_entity entity)
{
    recorder->commands = with_room(recorder->commands, recorder->command_count, &recorder->command_capacity,
                                   sizeof *recorder->commands);
    naive_command *command = &recorder->commands[recorder->command_count++];
    memset((void *)command, 0, sizeof *command);
    command->kind = kind;
    command->source = recorder->source;
    command->entity = entity;
    return command;
}

quern_entity naive_record_create(naive_recorder *recorder)
{
    quern_entity entity = {(uint64_t)1 << 32 | recorder->create_count++};
    command_add(recorder, NAIVE_CREATE, entity);
    return entity;
}

void naive_record(naive_recorder *recorder, const naive_world *world, naive_kind kind, quern_entity entity,
                  uint32_t type, const uint64_t *value)
{
    if (!quern_entity_is_provisional(entity) && naive_find(world, entity) == NULL) return;
    naive_command *command = command_add(recorder, kind, entity);
    command->type = type;
    command->has_value = value != NULL;
    if (value != NULL && kind != NAIVE_ENABLE)
        memcpy(command->value, value, flow_types[type].word_count * sizeof *value);
}

void naive_record_value(naive_recorder *recorder, quern_entity entity, uint32_t type, const uint64_t *value,
                        flow_combine combine)
{
    if (quern_entity_is_null(entity)) return; /* a dead entity is detected when the commands are applied */
    naive_command *command = command_add(recorder, NAIVE_ACCUMULATE, entity);
    command->type = type;
    command->combine = combine;
    memcpy(command->value, value, flow_types[type].word_count * sizeof *value);
}

void naive_recorder_close(naive_recorder *recorder)
{
    free(recorder->commands);
}

/* The combined effect of the commands of a sync point on one entity. */
typedef struct edit {
    uint32_t slot;
    bool is_new, is_destroyed;
    uint32_t source_set; /* set before the sync point */
    uint32_t last_set;   /* set after all commands */
    uint32_t set, disabled;
    uint32_t changed; /* types that the commands changed */
    uint64_t words[FLOW_WORD_COUNT];
} edit;

typedef struct edit_list {
    edit *items;
    uint32_t count, capacity;
    quern_entity *created;  /* indexed by number of the create */
    uint32_t *edit_of_slot; /* index in items; UINT32_MAX: none */
} edit_list;

static quern_entity resolve(const edit_list *edits, quern_entity entity)
{
    return quern_entity_is_provisional(entity) ? edits->created[quern_entity_index(entity)] : entity;
}

/* Gives entities of creates their slots and handles, in order, before any command is applied. They count
 * as alive from then on. */
static edit_list start_edits(naive_world *world, uint32_t create_count)
{
    edit_list edits = {.created = malloc((create_count + 1) * sizeof *edits.created)};
    if (edits.created == NULL) abort();
    for (uint32_t i = 0; i < create_count; i++) {
        uint32_t slot = allocate_slot(world);
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
    edits->items = with_room(edits->items, edits->count, &edits->capacity, sizeof *edits->items);
    edits->edit_of_slot[slot] = edits->count;
    edit *fresh = &edits->items[edits->count++];
    memset((void *)fresh, 0, sizeof *fresh);
    fresh->slot = slot;
    fresh->is_new = is_new;
    if (is_new) return fresh;
    fresh->source_set = world->entities[slot].set;
    fresh->last_set = fresh->set = fresh->source_set;
    fresh->disabled = world->entities[slot].disabled;
    memcpy(fresh->words, world->entities[slot].words, sizeof fresh->words);
    return fresh;
}

static void note_drop(naive_stats *stats, const naive_command *command, naive_drop *drops)
{
    naive_drop *drop = &drops[command->source];
    if (drop->count++ == 0) drop->first = command->entity;
    stats->dropped_count++;
}

static void resolve_links(const edit_list *edits, naive_command *command)
{
    for (uint32_t i = 0; i < flow_types[command->type].link_count; i++)
        command->value[i] = resolve(edits, (quern_entity){command->value[i]}).bits;
}

/* Also adds what types of the resulting set require, so that it can be disabled from now on. */
static void apply_add(const naive_world *world, edit *it, const naive_command *command)
{
    const uint32_t type = command->type, bit = 1u << type, before = it->set;
    if (command->has_value && flow_types[type].word_count > 0) it->changed |= bit;
    naive_add_type(world, &it->set, it->words, type, command->has_value ? command->value : NULL);
    const uint32_t missing = naive_missing(world, it->set & it->last_set) & ~it->set;
    for (uint32_t i = 0; i < FLOW_TYPE_COUNT; i++)
        if ((missing >> i & 1) != 0) naive_add_type(world, &it->set, it->words, i, NULL);
    it->disabled &= before;
}

/* A remove of a type that the resulting set requires has no effect. */
static void apply_remove(const naive_world *world, edit *it, uint32_t type)
{
    if ((naive_missing(world, it->last_set & ~(1u << type)) >> type & 1) != 0) return;
    /* adding the type again gives it a new value or enables it, which is a change */
    if (flow_types[type].word_count > 0 || (world->can_disable >> type & 1) != 0) it->changed |= 1u << type;
    naive_remove_type(&it->set, it->words, type);
    it->disabled &= ~(1u << type);
}

static void apply_enable(edit *it, uint32_t type, bool enabled)
{
    const uint32_t bit = it->set & 1u << type;
    it->changed |= bit;
    it->disabled &= ~bit;
    if (!enabled) it->disabled |= bit;
}

/* Finds the edit of the command's entity, and decides about destroys and the resulting set, without requirements. */
static void decide_command(const naive_world *world, edit_list *edits, naive_command *command,
                           naive_stats *stats)
{
    quern_entity entity = resolve(edits, command->entity);
    bool alive = naive_find(world, entity) != NULL;
    if (command->kind == NAIVE_ACCUMULATE) {
        command->was_alive = alive;
        return;
    }
    edit *it =
        alive ? edit_of(world, edits, quern_entity_index(entity), command->kind == NAIVE_CREATE) : NULL;
    if (it == NULL || it->is_destroyed)
        note_drop(stats, command, it == NULL ? stats->dead_drops : stats->destroyed_drops);
    else if (command->kind == NAIVE_DESTROY)
        it->is_destroyed = true;
    else if (command->kind == NAIVE_REMOVE)
        it->last_set &= ~(1u << command->type);
    else if (command->kind == NAIVE_ADD)
        it->last_set |= 1u << command->type;
}

/* Applies a command, now that the resulting set is known. */
static void apply_command(const naive_world *world, edit_list *edits, naive_command *command)
{
    quern_entity entity = resolve(edits, command->entity);
    if (command->kind == NAIVE_ACCUMULATE || naive_find(world, entity) == NULL) return;
    edit *it = &edits->items[edits->edit_of_slot[quern_entity_index(entity)]];
    if (it->is_destroyed) return;
    if (command->kind == NAIVE_REMOVE) {
        apply_remove(world, it, command->type);
    } else if (command->kind == NAIVE_ENABLE) {
        apply_enable(it, command->type, command->has_value);
    } else if (command->kind == NAIVE_ADD) {
        resolve_links(edits, command);
        apply_add(world, it, command);
    }
}

/* Returns the edit of the entity in a row, or NULL if no command names the entity. */
static const edit *edit_in_row(const edit_list *edits, const naive_archetype *archetype, uint32_t row)
{
    uint32_t index = edits->edit_of_slot[archetype->slots[row]];
    return index != UINT32_MAX ? &edits->items[index] : NULL;
}

/* Step 1 of applying edits, row by row: appends entities with a new set to their new archetypes. Rows of
 * entities that leave become gaps. */
static void move_or_remove_rows(naive_world *world, const edit_list *edits, uint32_t index,
                                uint32_t row_count)
{
    for (uint32_t row = 0; row < row_count; row++) {
        uint32_t slot = world->archetypes[index].slots[row];
        const edit *it = edit_in_row(edits, &world->archetypes[index], row);
        if (it == NULL) continue;
        if (!it->is_destroyed && it->set == world->entities[slot].set) {
            memcpy(world->entities[slot].words, it->words, sizeof it->words);
            world->entities[slot].disabled = it->disabled;
            continue;
        }
        if (!it->is_destroyed) append_row(world, slot, it->set, it->words);
        world->entities[slot].disabled = it->disabled;
        world->archetypes[index].slots[row] = NAIVE_GAP;
    }
}

/* Step 2: puts a created entity into the first gap of its archetype, or appends it. */
static void place_created(naive_world *world, const edit *it)
{
    uint32_t index = find_archetype(world, it->set), row = 0;
    while (row < world->archetypes[index].count && world->archetypes[index].slots[row] != NAIVE_GAP)
        row++;
    if (row < world->archetypes[index].count)
        put_row(world, it->slot, index, row);
    else
        put_last(world, it->slot, index);
    set_words(&world->entities[it->slot], it->words);
    world->entities[it->slot].disabled = it->disabled;
}

/* Step 3: moves the last rows into the remaining gaps. */
static void close_gaps(naive_world *world, uint32_t index)
{
    naive_archetype *archetype = &world->archetypes[index];
    uint32_t end = 0;
    for (uint32_t row = 0; row < archetype->count; row++)
        end += archetype->slots[row] != NAIVE_GAP;
    uint32_t gap = 0;
    for (uint32_t row = end; row < archetype->count; row++) {
        if (archetype->slots[row] == NAIVE_GAP) continue;
        while (archetype->slots[gap] != NAIVE_GAP)
            gap++;
        put_row(world, archetype->slots[row], index, gap);
    }
    archetype->count = end;
}

/* Step 4: frees the slots of destroyed entities, in the order of their rows, then those of created ones
 * in the order of their creates. */
static void free_slots(naive_world *world, const edit_list *edits, const uint32_t *leaving,
                       uint32_t leaving_count, uint32_t create_count, naive_stats *stats)
{
    for (uint32_t i = 0; i < leaving_count + create_count; i++) {
        uint32_t slot =
            i < leaving_count ? leaving[i] : quern_entity_index(edits->created[i - leaving_count]);
        const edit *it = &edits->items[edits->edit_of_slot[slot]];
        if (!it->is_destroyed) continue;
        stats->destroyed_count++;
        release_slot(world, slot);
    }
}

static void finish_edits(naive_world *world, const edit_list *edits, uint32_t create_count,
                         naive_stats *stats)
{
    uint32_t archetype_count = world->archetype_count, row_counts[COUNT_OF(world->archetypes)];
    uint32_t *leaving = malloc((world->slot_count + 1) * sizeof *leaving), leaving_count = 0;
    if (leaving == NULL) abort();
    for (uint32_t i = 0; i < archetype_count; i++) {
        row_counts[i] = world->archetypes[i].count;
        for (uint32_t row = 0; row < row_counts[i]; row++)
            if (edit_in_row(edits, &world->archetypes[i], row) != NULL)
                leaving[leaving_count++] = world->archetypes[i].slots[row];
    }
    for (uint32_t i = 0; i < archetype_count; i++)
        move_or_remove_rows(world, edits, i, row_counts[i]);
    for (uint32_t i = 0; i < create_count; i++) {
        const edit *it = &edits->items[edits->edit_of_slot[quern_entity_index(edits->created[i])]];
        if (!it->is_destroyed) place_created(world, it);
    }
    for (uint32_t i = 0; i < world->archetype_count; i++)
        close_gaps(world, i);
    for (uint32_t i = 0; i < edits->count; i++)
        if (!edits->items[i].is_destroyed)
            naive_note_changed(world, &world->entities[edits->items[i].slot],
                               edits->items[i].changed |
                                   (edits->items[i].set & ~edits->items[i].source_set));
    free_slots(world, edits, leaving, leaving_count, create_count, stats);
    free(leaving);
}

static void combine_words(uint32_t type, uint64_t *words, const uint64_t *others, flow_combine combine)
{
    if (combine == FLOW_MIX) {
        flow_mix_in(&flow_types[type], words, others);
        return;
    }
    for (uint32_t i = 0; i < flow_types[type].word_count; i++) {
        if (combine == FLOW_SUM) words[i] += others[i];
        if (combine == FLOW_MIN && others[i] < words[i]) words[i] = others[i];
        if (combine == FLOW_MAX && others[i] > words[i]) words[i] = others[i];
    }
}

/* Combines an accumulated value with the entity's. Called after all other commands have been applied. */
static void accumulate(const naive_world *world, const edit_list *edits, naive_command *command,
                       naive_stats *stats)
{
    naive_entity *entity = naive_find(world, resolve(edits, command->entity));
    if (entity == NULL)
        note_drop(stats, command, command->was_alive ? stats->destroyed_drops : stats->dead_drops);
    else if ((entity->set >> command->type & 1) == 0)
        note_drop(stats, command, stats->no_component_drops);
    else {
        resolve_links(edits, command);
        naive_note_changed(world, entity, 1u << command->type);
        combine_words(command->type, naive_value(entity->words, command->type), command->value,
                      command->combine);
    }
}

void naive_apply(naive_world *world, naive_recorder *recorder, naive_stats *stats)
{
    edit_list edits = start_edits(world, recorder->create_count);
    world->now++;
    stats->command_count += recorder->command_count;
    stats->created_count += recorder->create_count;
    for (uint32_t i = 0; i < recorder->command_count; i++)
        decide_command(world, &edits, &recorder->commands[i], stats);
    for (uint32_t i = 0; i < edits.count; i++)
        edits.items[i].last_set |= naive_missing(world, edits.items[i].last_set);
    for (uint32_t i = 0; i < recorder->command_count; i++)
        apply_command(world, &edits, &recorder->commands[i]);
    finish_edits(world, &edits, recorder->create_count, stats);
    for (uint32_t i = 0; i < recorder->command_count; i++)
        if (recorder->commands[i].kind == NAIVE_ACCUMULATE)
            accumulate(world, &edits, &recorder->commands[i], stats);
    free(edits.items);
    free(edits.created);
    free(edits.edit_of_slot);
    recorder->command_count = 0;
    recorder->create_count = 0;
}
