/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Reactions: their subscriptions to archetypes, the registry, the listener functions that collect changes, and
 * taking the collected changes for a run, or putting them back. reaction_values.c keeps copies of removed rows and
 * old values. */
#include "core/reactions/reaction.h"

#include "core/base/containers.h"
#include "core/reactions/hook.h"
#include "core/storage/storage.h"

enum { REACTION_ALIGNMENT_BYTES = 64 };

static bool requests(const quern__reaction *reaction, quern_reaction_kind kind)
{
    return (reaction->kinds & (uint32_t)kind) != 0;
}

/* Returns whether the reaction is told of changes of this kind: it requests them and is not disabled. */
static bool is_told(const quern__reaction *reaction, quern_reaction_kind kind)
{
    return (reaction->told_kinds & (uint32_t)kind) != 0;
}

static quern__bit_column bit_column_of(const quern__reaction *reaction, quern__bit_column_kind kind)
{
    return (quern__bit_column){.kind = kind, .id = reaction->id};
}

/* Returns whether the term reads or writes a value of the row itself. */
static bool has_access(const quern_term *term)
{
    return term->access != QUERN_ACCESS_NONE && term->path == QUERN_PATH_ROW && !term->by_target;
}

/* Returns whether the reaction asks to see that the term's component was set. */
static bool reacts_to_value(const quern_term *term)
{
    return has_access(term) || term->old;
}

/* ------------------------------------------------------------------------------------------- subscriptions */

/* Offsets of the parts of the one allocation of a subscription. */
typedef struct subscription_parts {
    size_t columns_offset, removed_offset, old_offset, total_bytes;
} subscription_parts;

static subscription_parts parts_of(uint32_t term_count)
{
    subscription_parts parts;
    parts.columns_offset = quern__align_up(sizeof(quern__subscription), _Alignof(quern_view_column));
    parts.removed_offset = quern__align_up(parts.columns_offset + term_count * sizeof(quern_view_column),
                                           _Alignof(quern__removed_column));
    parts.old_offset = quern__align_up(parts.removed_offset + term_count * sizeof(quern__removed_column),
                                       _Alignof(quern__old_column));
    parts.total_bytes = parts.old_offset + term_count * sizeof(quern__old_column);
    return parts;
}

/* Decides which columns are copied for REMOVED, and describes them for views of copies. */
static void lay_out_copies(quern__subscription *subscription)
{
    const quern__archetype *archetype = subscription->archetype;
    const quern__reaction *reaction = subscription->reaction;
    quern__removed *removed = &subscription->removed;
    for (uint32_t i = 0; i < reaction->term_count; i++) {
        const quern_term *term = &reaction->terms[i];
        const uint32_t index = quern__component_index(term->component);
        const uint32_t column = quern__archetype_column(archetype, index);
        subscription->columns[i] = (quern_view_column){
            .access = (uint8_t)(has_access(term) ? QUERN_ACCESS_READ : QUERN_ACCESS_NONE),
            .present = column != QUERN__COLUMN_NONE,
            .is_checked = QUERN_CHECKS};
        if (!has_access(term) || column >= QUERN__COLUMN_TAG) continue;
        const quern__type *type = archetype->columns[column].type;
        removed->columns[removed->column_count++] = (quern__removed_column){
            .type = quern__hooks_exist(&type->hooks) ? type : NULL,
            .source_offset_bytes = archetype->columns[column].offset_bytes,
            .size_bytes = archetype->columns[column].size_bytes,
        };
        removed->calls_hooks |= quern__hooks_exist(&type->hooks);
    }
    quern__removed_lay_out(removed, archetype);
    for (uint32_t i = 0, k = 0; i < reaction->term_count; i++) {
        const quern_term *term = &reaction->terms[i];
        const uint32_t column = quern__archetype_column(archetype, quern__component_index(term->component));
        if (!has_access(term) || column >= QUERN__COLUMN_TAG) continue;
        subscription->columns[i].offset_bytes = removed->columns[k].offset_bytes;
        subscription->columns[i].size_bytes = removed->columns[k++].size_bytes;
    }
}

static quern__subscription *subscription_create(quern__reaction *reaction, quern__archetype *archetype,
                                                const quern_allocator *allocator)
{
    const subscription_parts parts = parts_of(reaction->term_count);
    char *memory = quern__allocate(allocator, parts.total_bytes, REACTION_ALIGNMENT_BYTES);
    if (memory == NULL) return NULL;
    quern__subscription *subscription = (quern__subscription *)(void *)memory;
    *subscription = (quern__subscription){
        .listener = {.events = &quern__subscription_events,
                     .archetype = archetype,
                     .position = reaction->number,
                     .needs_room = requests(reaction, QUERN_REACT_REMOVED),
                     .is_hook = reaction->matches == NULL},
        .reaction = reaction,
        .archetype = archetype,
        .columns = (quern_view_column *)(void *)(memory + parts.columns_offset),
        .removed.columns = (quern__removed_column *)(void *)(memory + parts.removed_offset),
    };
    lay_out_copies(subscription);
    quern__old_values_init(&subscription->old, (quern__old_column *)(void *)(memory + parts.old_offset),
                           archetype, reaction->terms, reaction->term_count);
    subscription->listener.calls_hooks = subscription->removed.calls_hooks;
    subscription->listener.keeps_row_data = subscription->old.column_count > 0;
    return subscription;
}

static void subscription_release(quern__subscription *subscription, const quern_allocator *allocator)
{
    quern__removed_release(&subscription->removed, allocator);
    quern__old_values_release(&subscription->old, allocator);
    quern__release(allocator, subscription, parts_of(subscription->reaction->term_count).total_bytes,
                   REACTION_ALIGNMENT_BYTES);
}

/* Looks up the indices of the bit columns of all subscriptions of an archetype, after its bit columns have changed. */
static void find_bit_columns(const quern__archetype *archetype)
{
    for (quern__subscription *it = quern__first_subscription(archetype); it != NULL;
         it = quern__next_subscription(it)) {
        const uint32_t id = it->reaction->id;
        it->added_column = quern__row_bits_find_column(archetype->row_bits, QUERN__BIT_COLUMN_ADDED, id);
        it->set_column = quern__row_bits_find_column(archetype->row_bits, QUERN__BIT_COLUMN_SET, id);
    }
}

/* Removes the bit columns for these kinds from the archetype. */
static void remove_bit_columns(const quern__subscription *subscription, uint32_t kinds,
                               const quern_allocator *allocator)
{
    if ((kinds & QUERN_REACT_ADDED) != 0)
        quern__archetype_remove_bit_column(subscription->archetype, allocator,
                                           bit_column_of(subscription->reaction, QUERN__BIT_COLUMN_ADDED));
    if ((kinds & QUERN_REACT_SET) != 0)
        quern__archetype_remove_bit_column(subscription->archetype, allocator,
                                           bit_column_of(subscription->reaction, QUERN__BIT_COLUMN_SET));
}

static quern_result add_bit_columns(const quern__subscription *subscription,
                                    const quern_allocator *allocator)
{
    const quern__reaction *reaction = subscription->reaction;
    quern_result result = QUERN_OK;
    if (requests(reaction, QUERN_REACT_ADDED))
        result = quern__archetype_add_bit_column(subscription->archetype, allocator,
                                                 bit_column_of(reaction, QUERN__BIT_COLUMN_ADDED));
    if (result != QUERN_OK || !requests(reaction, QUERN_REACT_SET)) return result;
    result = quern__archetype_add_bit_column(subscription->archetype, allocator,
                                             bit_column_of(reaction, QUERN__BIT_COLUMN_SET));
    if (result != QUERN_OK)
        remove_bit_columns(subscription, reaction->kinds & QUERN_REACT_ADDED, allocator);
    return result;
}

static bool hold_rows(quern__row_listener *listener, const quern_allocator *allocator, uint32_t chunk_count)
{
    quern__subscription *subscription = (quern__subscription *)listener;
    const quern__reaction *reaction = subscription->reaction;
    return quern__old_values_hold(&subscription->old, allocator, reaction->terms, reaction->term_count,
                                  chunk_count);
}

static quern_result fail_subscription(void)
{
    return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory to subscribe a reaction to an archetype");
}

/* Subscribes the reaction to an archetype. Precondition: the archetype is later in the order than all others with a
 * subscription of the reaction. */
static quern_result begin_subscription(quern__reaction *reaction, quern__archetype *archetype,
                                       const quern_allocator *allocator)
{
    if (!quern__array_reserve(allocator, &reaction->subscriptions, reaction->subscriptions.count + 1))
        return fail_subscription();
    quern__subscription *subscription = subscription_create(reaction, archetype, allocator);
    if (subscription == NULL) return fail_subscription();
    const bool has_memory = hold_rows(&subscription->listener, allocator, archetype->held_count);
    const quern_result result = has_memory ? add_bit_columns(subscription, allocator) : fail_subscription();
    if (result != QUERN_OK) {
        subscription_release(subscription, allocator);
        return result;
    }
    quern__row_listener_add(&subscription->listener);
    find_bit_columns(archetype);
    reaction->subscriptions.items[reaction->subscriptions.count++] = subscription;
    return QUERN_OK;
}

bool quern__archetype_has_removed_copies(const quern__archetype *archetype)
{
    for (const quern__subscription *subscription = quern__first_subscription(archetype);
         subscription != NULL; subscription = quern__next_subscription(subscription))
        if (subscription->removed.count > 0 || subscription->taken_block_count > 0) return true;
    return false;
}

/* --------------------------------------------------------------------------------------- the registry */

static size_t reaction_bytes(uint32_t term_count)
{
    return sizeof(quern__reaction) + term_count * sizeof(quern_term);
}

/* A reaction reads values of removed rows after the rows have left, so a type with a destroy hook also needs a copy
 * hook. */
static quern_result check_copies(const quern__storage *storage, const quern__reaction_def *def)
{
    if ((def->kinds & QUERN_REACT_REMOVED) == 0) return QUERN_OK;
    for (uint32_t i = 0; i < def->term_count; i++) {
        if (!has_access(&def->terms[i])) continue;
        const quern__type *type =
            quern__components_type(&storage->components, quern__component_index(def->terms[i].component));
        if (type->hooks.destroy != NULL && type->hooks.copy == NULL)
            return quern__fail(
                QUERN_ERROR_INVALID_ARGUMENT,
                "term %u reads '%s' of removed entities from copies, and '%s' has a destroy hook but no "
                "copy hook: add a copy hook, or use a term without access",
                i, type->name, type->name);
    }
    return QUERN_OK;
}

/* Adds a reaction without subscriptions to the registry. Returns NULL if out of memory. */
static quern__reaction *reaction_create(quern__reactions *registry, const quern_allocator *allocator,
                                        const quern__reaction_def *def)
{
    uint32_t number = 0;
    while (number < registry->list.count && registry->list.items[number] != NULL)
        number++;
    if (!quern__array_reserve(allocator, &registry->list, number + 1)) return NULL;
    quern__reaction *reaction =
        quern__allocate(allocator, reaction_bytes(def->term_count), REACTION_ALIGNMENT_BYTES);
    if (reaction == NULL) return NULL;
    *reaction = (quern__reaction){.registry = registry,
                                  .number = number,
                                  .id = ++registry->last_id,
                                  .kinds = def->kinds,
                                  .told_kinds = def->kinds,
                                  .term_count = def->term_count,
                                  .matches = def->matches,
                                  .query = def->query};
    memcpy(reaction->terms, def->terms, def->term_count * sizeof *def->terms);
    if (number == registry->list.count) registry->list.count++;
    registry->list.items[number] = reaction;
    registry->count++;
    registry->removed_count += requests(reaction, QUERN_REACT_REMOVED);
    return reaction;
}

/* Several threads may raise a flag at a time. Relaxed: the thread that lowers a flag has waited for these threads. */
static bool is_raised(const bool *flag)
{
    return __atomic_load_n(flag, __ATOMIC_RELAXED);
}

/* Relaxed: see is_raised. */
static void raise(bool *flag)
{
    if (!is_raised(flag)) __atomic_store_n(flag, true, __ATOMIC_RELAXED);
}

static void note_pending(quern__reaction *reaction)
{
    raise(&reaction->is_pending);
    raise(&reaction->registry->is_pending);
}

/* Returns whether one thread makes the current change. It needs no atomic operations. */
static inline bool is_alone(const quern__subscription *subscription)
{
    const quern__reactions *registry = subscription->reaction->registry;
    return !registry->orders_by_row && !registry->combines_values;
}

/* Sets the bits of rows in one of the subscription's bit columns. */
static void set_bits(quern__subscription *subscription, uint32_t column, uintptr_t first, uint32_t count)
{
    const quern__row_bits *row_bits = subscription->archetype->row_bits;
    if (count == 1 && is_alone(subscription))
        quern__bit_column_set_row(row_bits, column, first);
    else
        quern__bit_column_set_rows(row_bits, column, first, count);
    raise(&subscription->is_pending);
    note_pending(subscription->reaction);
}

static void set_added(quern__subscription *subscription, uintptr_t first, uint32_t count)
{
    set_bits(subscription, subscription->added_column, first, count);
}

/* Sets the bits of one kind that are set for the other subscription, of the same archetype. */
static void inherit_bits(quern__subscription *subscription, uint32_t column, uint32_t other_column)
{
    const quern__row_bits *row_bits = subscription->archetype->row_bits;
    if (column == QUERN__NO_BIT_COLUMN || other_column == QUERN__NO_BIT_COLUMN) return;
    for (uint32_t slot = 0; slot < subscription->archetype->chunk_count; slot++) {
        if (quern__bit_column_count(row_bits, other_column, slot) == 0) continue;
        memcpy(quern__bit_column_words(row_bits, column, slot) - 1,
               quern__bit_column_words(row_bits, other_column, slot) - 1,
               row_bits->bit_column_words * sizeof(uint64_t));
        raise(&subscription->is_pending);
        note_pending(subscription->reaction);
    }
}

static void inherit(const quern__reaction *reaction, const quern__reaction *replaced)
{
    for (uint32_t i = 0; i < reaction->subscriptions.count; i++) {
        quern__subscription *subscription = reaction->subscriptions.items[i];
        const quern__subscription *other = quern__find_subscription(subscription->archetype, replaced);
        if (other == NULL) continue;
        inherit_bits(subscription, subscription->added_column, other->added_column);
        if (subscription->old.column_count == 0)
            inherit_bits(subscription, subscription->set_column, other->set_column);
    }
}

void quern__reaction_add_present(quern__reaction *reaction, const quern__reaction *replaced)
{
    const bool has_present =
        requests(reaction, QUERN_REACT_PRESENT) && is_told(reaction, QUERN_REACT_ADDED);
    for (uint32_t i = 0; i < reaction->subscriptions.count && has_present; i++) {
        quern__subscription *subscription = reaction->subscriptions.items[i];
        if (replaced != NULL && quern__find_subscription(subscription->archetype, replaced) != NULL)
            continue;
        for (uint32_t k = 0; k < subscription->archetype->chunk_count; k++) {
            const quern__chunk_slot *slot = &subscription->archetype->slots[k];
            set_added(subscription, quern__location_make(quern__slot_chunk(slot), 0), slot->row_count);
        }
    }
}

quern_result quern__reaction_add(quern__storage *storage, const quern__reaction_def *def,
                                 quern__reaction **out_reaction)
{
    quern_result result = check_copies(storage, def);
    if (result != QUERN_OK) return result;
    quern__reaction *reaction = reaction_create(storage->reactions, &storage->allocator, def);
    if (reaction == NULL) return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory for a reaction");
    for (uint32_t i = 0; i < storage->archetypes.count && result == QUERN_OK; i++)
        if (quern__reaction_matches(reaction, storage->archetypes.items[i]))
            result = begin_subscription(reaction, storage->archetypes.items[i], &storage->allocator);
    if (result != QUERN_OK) {
        quern__reaction_remove(storage, reaction);
        return result;
    }
    if (def->replaced != NULL) inherit(reaction, def->replaced);
    quern__reaction_add_present(reaction, def->replaced);
    *out_reaction = reaction;
    return QUERN_OK;
}

void quern__reaction_remove(quern__storage *storage, quern__reaction *reaction)
{
    if (reaction == NULL) return;
    quern__reactions *registry = storage->reactions;
    const quern_allocator *allocator = &storage->allocator;
    quern__reaction_finish(storage, reaction);
    quern__reaction_drop(storage, reaction);
    while (reaction->subscriptions.count > 0) {
        quern__subscription *subscription = reaction->subscriptions.items[--reaction->subscriptions.count];
        quern__row_listener_remove(&subscription->listener);
        remove_bit_columns(subscription, reaction->kinds, allocator);
        find_bit_columns(subscription->archetype);
        subscription_release(subscription, allocator);
    }
    quern__array_release(allocator, &reaction->subscriptions);
    quern__array_release(allocator, &reaction->taken.removed);
    quern__array_release(allocator, &reaction->taken.rows);
    quern__array_release(allocator, &reaction->taken.words);
    registry->removed_count -= requests(reaction, QUERN_REACT_REMOVED);
    registry->list.items[reaction->number] = NULL;
    quern__release(allocator, reaction, reaction_bytes(reaction->term_count), REACTION_ALIGNMENT_BYTES);
    if (--registry->count == 0) {
        quern__array_release(allocator, &registry->list);
        registry->list.items = NULL;
        registry->list.count = registry->list.capacity = 0;
    }
}

/* Subscribes reactions to a new archetype. On failure storage releases the subscriptions made so far by
 * release_subscription. */
static quern_result subscribe_all(quern__storage *storage, quern__archetype *archetype)
{
    const quern__reactions *registry = storage->reactions;
    quern_result result = quern__hooks_ensure(storage, archetype);
    for (uint32_t i = 0; i < registry->list.count && result == QUERN_OK; i++) {
        quern__reaction *reaction = registry->list.items[i];
        if (reaction != NULL && quern__reaction_matches(reaction, archetype))
            result = begin_subscription(reaction, archetype, &storage->allocator);
    }
    return result;
}

void quern__reactions_init(quern__reactions *reactions, quern__storage *storage)
{
    *reactions = (quern__reactions){.listener = {.created = subscribe_all}};
    storage->reactions = reactions;
    quern__storage_listen(storage, &reactions->listener);
}

void quern__reactions_release(quern__storage *storage)
{
    quern__array_release(&storage->allocator, &storage->reactions->hooks);
    for (uint32_t i = 0; i < storage->reactions->list.count; i++)
        quern__reaction_remove(storage, storage->reactions->list.items[i]);
    quern__array_release(&storage->allocator, &storage->reactions->list); /* of a reaction without memory */
}

/* Insertion sort: nearly all subscriptions are in order already. */
void quern__reactions_sort_subscriptions(quern__storage *storage)
{
    for (uint32_t k = 0; k < storage->reactions->list.count; k++) {
        const quern__reaction *reaction = storage->reactions->list.items[k];
        if (reaction == NULL) continue;
        quern__subscription **list = reaction->subscriptions.items;
        for (uint32_t i = 1; i < reaction->subscriptions.count; i++) {
            quern__subscription *subscription = list[i];
            uint32_t at = i;
            for (; at > 0 && subscription->archetype->index < list[at - 1]->archetype->index; at--)
                list[at] = list[at - 1];
            list[at] = subscription;
        }
    }
}

void quern__reactions_forget_removed(quern__storage *storage)
{
    const quern__reactions *registry = storage->reactions;
    for (uint32_t i = 0; i < registry->list.count; i++) {
        quern__reaction *reaction = registry->list.items[i];
        uint32_t kept_count = 0;
        for (uint32_t k = 0; reaction != NULL && k < reaction->subscriptions.count; k++)
            if (!reaction->subscriptions.items[k]->archetype->is_removed)
                reaction->subscriptions.items[kept_count++] = reaction->subscriptions.items[k];
        if (reaction != NULL) reaction->subscriptions.count = kept_count;
    }
}

void quern__reactions_trim(quern__storage *storage)
{
    const quern__reactions *registry = storage->reactions;
    for (uint32_t i = 0; i < registry->list.count; i++) {
        const quern__reaction *reaction = registry->list.items[i];
        for (uint32_t k = 0; reaction != NULL && k < reaction->subscriptions.count; k++) {
            quern__subscription *subscription = reaction->subscriptions.items[k];
            quern__removed_trim(&subscription->removed, &storage->allocator, 0);
            quern__old_values_trim(&subscription->old, &storage->allocator,
                                   subscription->archetype->held_count);
        }
    }
}

/* ------------------------------------------------------------------------------------------ conversion */

quern_result quern__reactions_check_hooks(const quern__storage *storage, uint32_t component_index,
                                          const quern__type *type)
{
    const bool is_copied_once = type->hooks.destroy != NULL && type->hooks.copy == NULL;
    for (uint32_t i = 0; i < storage->reactions->list.count; i++) {
        const quern__reaction *reaction = storage->reactions->list.items[i];
        for (uint32_t k = 0; reaction != NULL && k < reaction->term_count; k++) {
            const quern_term *term = &reaction->terms[k];
            if (quern__component_index(term->component) != component_index) continue;
            if (!(term->old && quern__hooks_own_resources(&type->hooks)) &&
                !(is_copied_once && has_access(term) && requests(reaction, QUERN_REACT_REMOVED)))
                continue;
            return quern__fail(
                QUERN_ERROR_INVALID_ARGUMENT,
                "a reaction reads old values of '%s', or values of removed entities, which the hooks of "
                "its new definition do not allow: add a copy hook, or end the reaction first",
                type->name);
        }
    }
    return QUERN_OK;
}

/* Returns the index, among the columns of copies, of the column of a component; column_count if there is none. */
static uint32_t copied_column(const quern__subscription *subscription, uint32_t component_index)
{
    const quern__reaction *reaction = subscription->reaction;
    uint32_t k = 0;
    for (uint32_t i = 0; i < reaction->term_count; i++) {
        const uint32_t index = quern__component_index(reaction->terms[i].component);
        if (!has_access(&reaction->terms[i]) ||
            quern__archetype_column(subscription->archetype, index) >= QUERN__COLUMN_TAG)
            continue;
        if (index == component_index) return k;
        k++;
    }
    return subscription->removed.column_count;
}

/* A visit of old values: checks those of one component. */
typedef struct old_check {
    quern__type_change *change;
    quern_result result;
} old_check;

static void check_old_value(void *argument, const quern__old_column *column, char *value)
{
    old_check *it = argument;
    if (column->type == it->change->type && it->result == QUERN_OK)
        it->result = quern__type_change_check(it->change, value, 1);
}

static quern_result prepare_conversion(const quern__storage *storage, quern__subscription *from,
                                       quern__subscription *to, quern__type_change *change)
{
    const quern__removed *removed = &from->removed;
    if (from->taken_block_count > 0)
        return quern__fail(
            QUERN_ERROR_INVALID_ARGUMENT,
            "a reaction to removed rows has failed and reads them again in the next frame: run a "
            "frame first");
    quern_result result = QUERN_OK;
    const uint32_t column = copied_column(from, change->component_index);
    for (uint32_t i = 0; column < removed->column_count && i < quern__removed_used_blocks(removed); i++) {
        if (result == QUERN_OK)
            result = quern__type_change_check(
                change, removed->blocks.items[i] + removed->columns[column].offset_bytes,
                quern__removed_rows_in(removed, i));
    }
    old_check check = {change, result};
    if (from->old.column_count > 0)
        quern__old_values_visit(&from->old, from->archetype, from->set_column, check_old_value, &check);
    if (check.result != QUERN_OK) return check.result;
    if (quern__removed_reserve_total(&to->removed, &storage->allocator, removed->count)) return QUERN_OK;
    return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory for %u copies of removed rows",
                       removed->count);
}

quern_result quern__reactions_prepare_conversion(const quern__storage *storage,
                                                 const quern__archetype *source,
                                                 const quern__archetype *target, quern__type_change *change)
{
    quern_result result = QUERN_OK;
    for (quern__subscription *from = quern__first_subscription(source); from != NULL && result == QUERN_OK;
         from = quern__next_subscription(from))
        result =
            prepare_conversion(storage, from, quern__find_subscription(target, from->reaction), change);
    return result;
}

static void convert_old_values(const quern__subscription *from, quern__subscription *to,
                               const quern__type_change *change)
{
    const quern__archetype *source = from->archetype, *target = to->archetype;
    const uint32_t row_count = (uint32_t)quern__archetype_row_count(source);
    if (from->old.column_count == 0 || !from->is_pending) return;
    for (uint32_t row = 0; row < row_count; row++) {
        const uintptr_t at = quern__archetype_location(source, row);
        if (!quern__bit_column_test(source->row_bits, from->set_column, at)) continue;
        const uintptr_t place = quern__archetype_location(target, row);
        for (uint32_t i = 0; i < from->old.column_count; i++) {
            char *value = quern__old_value_at(&from->old, i, at),
                 *fresh = quern__old_value_at(&to->old, i, place);
            if (from->old.columns[i].type == change->type)
                quern__type_change_values(change, fresh, value, 1);
            else
                memcpy(fresh, value, from->old.columns[i].size_bytes);
        }
    }
}

void quern__reactions_convert(const quern__archetype *source, const quern__archetype *target,
                              const quern__type_change *change)
{
    for (quern__subscription *from = quern__first_subscription(source); from != NULL;
         from = quern__next_subscription(from)) {
        quern__subscription *to = quern__find_subscription(target, from->reaction);
        quern__removed_convert(&to->removed, &from->removed, copied_column(from, change->component_index),
                               change);
        convert_old_values(from, to, change);
        to->is_pending = from->is_pending;
    }
}

/* ------------------------------------------------------------------------------------------- listeners */

/* Finds the next range of rows with a clear ADDED bit, among the `*count` rows from *first on. The reaction has
 * processed the arrival of these rows, or does not request ADDED. Advances *first and *count past the rows before
 * the range. Returns false if there is no such row. added: index of the bit column ADDED, or QUERN__NO_BIT_COLUMN,
 * which means that all bits are clear. */
static bool find_seen_rows(const quern__row_bits *row_bits, uint32_t added, uintptr_t *first,
                           uint32_t *count, uint32_t *out_count)
{
    *out_count = *count;
    if (*count == 0 || added == QUERN__NO_BIT_COLUMN ||
        quern__bit_column_count(row_bits, added, quern__chunk_index_at(row_bits->shape, *first)) == 0)
        return *count > 0;
    while (*count > 0 && quern__bit_column_test(row_bits, added, *first)) {
        ++*first;
        --*count;
    }
    *out_count = 0;
    while (*out_count < *count && !quern__bit_column_test(row_bits, added, *first + *out_count))
        ++*out_count;
    return *out_count > 0;
}

/* Returns whether the reaction has processed the arrival of a row: find_seen_rows for a single row. */
static inline bool is_seen(const quern__subscription *subscription, uintptr_t row)
{
    const quern__row_bits *row_bits = subscription->archetype->row_bits;
    return subscription->added_column == QUERN__NO_BIT_COLUMN ||
           !quern__bit_column_test(row_bits, subscription->added_column, row);
}

static void copy_seen_rows(quern__subscription *subscription, uintptr_t first, uint32_t count)
{
    if (count == 1 && is_alone(subscription)) {
        if (!is_seen(subscription, first)) return;
        quern__removed_copy_row(&subscription->removed, first);
        note_pending(subscription->reaction);
        return;
    }

    const uint32_t added = subscription->added_column;
    for (uint32_t range; find_seen_rows(subscription->archetype->row_bits, added, &first, &count, &range);
         first += range, count -= range) {
        quern__removed_copy(&subscription->removed, first, range,
                            subscription->reaction->registry->orders_by_row);
        note_pending(subscription->reaction);
    }
}

/* Returns the number of rows from `first` on, at least 1 and at most `count`, with the same bit as the first. */
static uint32_t count_same_bits(const quern__row_bits *row_bits, uint32_t column, uintptr_t first,
                                uint32_t count)
{
    const bool bit = quern__bit_column_test(row_bits, column, first);
    uint32_t same = 1;
    while (same < count && quern__bit_column_test(row_bits, column, first + same) == bit)
        same++;
    return same;
}

/* Copies values of rows in which SET is about to become set. `source`: the subscription of the archetype in which the
 * values are, from row `from` on. set: index of the bit column SET. */
static void save_old_values(const quern__subscription *subscription, uint32_t set, uintptr_t first,
                            const quern__subscription *source, uintptr_t from, uint32_t count)
{
    const quern__row_bits *row_bits = subscription->archetype->row_bits;
    for (uint32_t same; count > 0; first += same, from += same, count -= same) {
        same = count_same_bits(row_bits, set, first, count);
        if (!quern__bit_column_test(row_bits, set, first))
            quern__old_values_save(&subscription->old, first, &source->old, from, same);
    }
}

/* Moves the old values of rows with SET, after their bits were moved. `source`: the subscription of the archetype in
 * which the rows were, from row `from` on. */
static void move_old_values(const quern__subscription *subscription, uintptr_t to,
                            const quern__subscription *source, uintptr_t from, uint32_t count)
{
    const quern__row_bits *row_bits = subscription->archetype->row_bits;
    const uint32_t set = subscription->set_column;
    if (quern__bit_column_count(row_bits, set, quern__chunk_index_at(row_bits->shape, to)) == 0) return;
    for (uint32_t same; count > 0; to += same, from += same, count -= same) {
        same = count_same_bits(row_bits, set, to, count);
        if (quern__bit_column_test(row_bits, set, to))
            quern__old_values_move(&subscription->old, to, &source->old, from, same);
    }
}

/* Sets SET in one row of a change by one thread, if the reaction has seen the row. */
static void mark_seen_row(quern__subscription *subscription, uintptr_t row,
                          const quern__subscription *source, uintptr_t from)
{
    const quern__row_bits *row_bits = subscription->archetype->row_bits;
    if (!is_seen(subscription, row) || quern__bit_column_test(row_bits, subscription->set_column, row))
        return;
    if (subscription->old.column_count > 0)
        quern__old_values_save(&subscription->old, row, &source->old, from, 1);
    quern__bit_column_set_row(row_bits, subscription->set_column, row);
    raise(&subscription->is_pending);
    note_pending(subscription->reaction);
}

/* Sets SET in the rows that the reaction has seen. `source` and `from`: as in save_old_values. */
static void mark_seen_rows(quern__subscription *subscription, uintptr_t first,
                           const quern__subscription *source, uintptr_t from, uint32_t count)
{
    if (count == 1 && is_alone(subscription)) {
        mark_seen_row(subscription, first, source, from);
        return;
    }
    const quern__row_bits *row_bits = subscription->archetype->row_bits;
    const uint32_t added = subscription->added_column;
    const uint32_t set = subscription->set_column;
    const uintptr_t offset = from - first; /* between the values of a row and its bits */
    for (uint32_t range; find_seen_rows(row_bits, added, &first, &count, &range);
         first += range, count -= range) {
        if (QUERN__UNLIKELY(subscription->old.column_count > 0))
            save_old_values(subscription, set, first, source, first + offset, range);
        set_bits(subscription, set, first, range);
    }
}

static void on_arrive(quern__row_listener *listener, uintptr_t first, uint32_t count)
{
    quern__subscription *subscription = (quern__subscription *)listener;
    if (is_told(subscription->reaction, QUERN_REACT_ADDED)) set_added(subscription, first, count);
}

static void on_leave(quern__row_listener *listener, uintptr_t first, uint32_t count)
{
    quern__subscription *subscription = (quern__subscription *)listener;
    if (is_told(subscription->reaction, QUERN_REACT_REMOVED)) copy_seen_rows(subscription, first, count);
}

static void on_move_out(quern__row_listener *listener, uintptr_t from, const quern__archetype *target,
                        uint32_t count)
{
    quern__subscription *subscription = (quern__subscription *)listener;
    if (is_told(subscription->reaction, QUERN_REACT_REMOVED) &&
        quern__find_subscription(target, subscription->reaction) == NULL)
        copy_seen_rows(subscription, from, count);
}

/* Returns whether the target archetype has a value that the reaction accesses and that the source archetype lacks. */
static bool gains_value(const quern__reaction *reaction, const quern__archetype *target,
                        const quern__archetype *source)
{
    for (uint32_t i = 0; i < reaction->term_count; i++) {
        const uint32_t index = quern__component_index(reaction->terms[i].component);
        if (reacts_to_value(&reaction->terms[i]) &&
            quern__archetype_column_position(target, index).offset_lines != 0 &&
            !quern__archetype_has(source, index))
            return true;
    }
    return false;
}

static void on_move_in(quern__row_listener *listener, uintptr_t to, const quern__archetype *source,
                       uintptr_t from, uint32_t count)
{
    quern__subscription *subscription = (quern__subscription *)listener;
    const quern__reaction *reaction = subscription->reaction;
    const quern__subscription *other = quern__find_subscription(source, reaction);
    if (other == NULL) {
        if (is_told(reaction, QUERN_REACT_ADDED)) set_added(subscription, to, count);
        return;
    }
    if (is_raised(&other->is_pending)) {
        raise(&subscription->is_pending); /* the rows may have brought set bits with them */
        if (subscription->listener.keeps_row_data) move_old_values(subscription, to, other, from, count);
    }
    if (is_told(reaction, QUERN_REACT_SET) && gains_value(reaction, subscription->archetype, source))
        mark_seen_rows(subscription, to, other, from, count);
}

static bool reacts_to_component(const quern__reaction *reaction, uint32_t component_index)
{
    for (uint32_t i = 0; i < reaction->term_count; i++)
        if (reacts_to_value(&reaction->terms[i]) &&
            quern__component_index(reaction->terms[i].component) == component_index)
            return true;
    return false;
}

bool quern__reactions_miss(const quern__reactions *reactions, uint32_t component_index,
                           const quern__archetype *archetype)
{
    for (uint32_t i = 0; i < reactions->list.count; i++) {
        const quern__reaction *reaction = reactions->list.items[i];
        if (reaction != NULL && is_told(reaction, QUERN_REACT_SET) &&
            !is_told(reaction, QUERN_REACT_ADDED) && reacts_to_component(reaction, component_index) &&
            (archetype == NULL || quern__find_subscription(archetype, reaction) == NULL))
            return true;
    }
    return false;
}

/* Sets SET in rows for a write of a component, if the reaction reacts to it. source: archetype of the rows before the
 * change; NULL: the entities are new. */
static void mark_written(quern__row_listener *listener, const quern__archetype *source, uintptr_t first,
                         uint32_t count, uint32_t component_index)
{
    quern__subscription *subscription = (quern__subscription *)listener;
    const quern__reaction *reaction = subscription->reaction;
    if (!is_told(reaction, QUERN_REACT_SET)) return;
    if (source != subscription->archetype &&
        (source == NULL || quern__find_subscription(source, reaction) == NULL))
        return; /* the rows are ADDED */
    if (reacts_to_component(reaction, component_index))
        mark_seen_rows(subscription, first, subscription, first, count);
}

static void on_before_write(quern__row_listener *listener, const quern__archetype *source, uintptr_t first,
                            uint32_t count, uint32_t component_index)
{
    mark_written(listener, source, first, count, component_index);
}

static void on_written(quern__row_listener *listener, const quern__archetype *source, uintptr_t first,
                       uint32_t count, uint32_t component_index)
{
    if (listener->keeps_row_data) return; /* marked before the write */
    mark_written(listener, source, first, count, component_index);
}

static void on_relocate(quern__row_listener *listener, uintptr_t to, uintptr_t from, uint32_t count)
{
    const quern__subscription *subscription = (const quern__subscription *)listener;
    move_old_values(subscription, to, subscription, from, count);
}

static quern_result reserve_copies(quern__row_listener *listener, const quern_allocator *allocator,
                                   uint64_t change, const quern__archetype *target, uint32_t count)
{
    quern__subscription *subscription = (quern__subscription *)listener;
    if (!is_told(subscription->reaction, QUERN_REACT_REMOVED)) return QUERN_OK;
    if (target != NULL && quern__find_subscription(target, subscription->reaction) != NULL) return QUERN_OK;
    if (quern__removed_reserve(&subscription->removed, allocator, change, count)) return QUERN_OK;
    return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory to copy %u removed rows for a reaction",
                       count);
}

/* If the creation of an archetype fails, the archetype is the last one in the reaction's list. If an existing archetype
 * is removed, quern__reactions_forget_removed has already removed it from the list. */
static void release_subscription(quern__row_listener *listener, const quern_allocator *allocator)
{
    quern__subscription *subscription = (quern__subscription *)listener;
    quern__reaction *reaction = subscription->reaction;
    if (reaction->subscriptions.count > 0 &&
        reaction->subscriptions.items[reaction->subscriptions.count - 1] == subscription)
        reaction->subscriptions.count--;
    subscription_release(subscription, allocator);
}

const quern__row_events quern__subscription_events = {.arrive = on_arrive,
                                                      .leave = on_leave,
                                                      .move_out = on_move_out,
                                                      .move_in = on_move_in,
                                                      .before_write = on_before_write,
                                                      .written = on_written,
                                                      .relocate = on_relocate,
                                                      .hold = hold_rows,
                                                      .reserve = reserve_copies,
                                                      .release = release_subscription};

/* Passes pending changes to reactions: bits become lists of rows, and copies become blocks for views. */

static const quern_reaction_kind kinds[] = {QUERN_REACT_ADDED, QUERN_REACT_SET};
enum { KIND_COUNT = QUERN__COUNT_OF(kinds) };

/* Lists the indices of the bit columns of a subscription by kind; QUERN__NO_BIT_COLUMN for a kind without a bit
 * column. */
static void list_bit_columns(const quern__subscription *subscription, uint32_t *out_indices)
{
    out_indices[0] = subscription->added_column;
    out_indices[1] = subscription->set_column;
}

static uint32_t count_rows(const quern__subscription *subscription, uint32_t bit_column, uint32_t slot)
{
    return bit_column != QUERN__NO_BIT_COLUMN
               ? quern__bit_column_count(subscription->archetype->row_bits, bit_column, slot)
               : 0;
}

static uint32_t row_words(const quern__subscription *subscription)
{
    return (subscription->archetype->shape.row_capacity + 63) / 64;
}

/* ---------------------------------------------------------------------------------------------- room */

/* Adds the numbers of rows, words and blocks that a subscription will list to `counts`, and reserves memory in the
 * lists for `counts`. Returns false if out of memory. */
static bool reserve_subscription(quern__taken *taken, const quern__subscription *subscription,
                                 const quern_allocator *allocator, quern__taken *counts)
{
    if (subscription->is_pending) {
        uint32_t bit_columns[KIND_COUNT];
        list_bit_columns(subscription, bit_columns);
        for (uint32_t slot = 0; slot < subscription->archetype->chunk_count; slot++)
            for (uint32_t i = 0; i < KIND_COUNT; i++)
                if (count_rows(subscription, bit_columns[i], slot) > 0) {
                    counts->rows.count++;
                    counts->words.count += row_words(subscription);
                }
    }
    counts->removed.count += quern__removed_used_blocks(&subscription->removed);
    return quern__array_reserve(allocator, &taken->rows, counts->rows.count) &&
           quern__array_reserve(allocator, &taken->words, counts->words.count) &&
           quern__array_reserve(allocator, &taken->removed, counts->removed.count);
}

/* Reserves memory for everything that will be taken, and sorts the copies, which does not change what is pending.
 * Returns false if out of memory. */
static bool prepare(quern__reaction *reaction, const quern_allocator *allocator)
{
    quern__taken counts = {0};
    for (uint32_t i = 0; i < reaction->subscriptions.count; i++) {
        quern__subscription *subscription = reaction->subscriptions.items[i];
        if (!reserve_subscription(&reaction->taken, subscription, allocator, &counts) ||
            !quern__removed_sort(&subscription->removed, allocator))
            return false;
    }
    return true;
}

/* -------------------------------------------------------------------------------------------- taking */

/* Lists the rows of a chunk with a set bit, and clears the bits. */
static void take_bits(quern__taken *taken, const quern__subscription *subscription, uint32_t slot,
                      uint32_t bit_column, quern_reaction_kind kind)
{
    const quern__row_bits *row_bits = subscription->archetype->row_bits;
    const quern__old_values *old = &subscription->old;
    const void *const *old_values = NULL; /* column addresses of the chunk, one per term */
    if (kind == QUERN_REACT_SET && old->column_count > 0)
        old_values = (const void *const *)(const void *)old->blocks.items[slot];
    taken->rows.items[taken->rows.count++] =
        (quern__taken_rows){.archetype = subscription->archetype,
                            .slot = slot,
                            .first_word = taken->words.count,
                            .count = quern__bit_column_count(row_bits, bit_column, slot),
                            .kind = kind,
                            .old = old_values};
    memcpy(taken->words.items + taken->words.count, quern__bit_column_words(row_bits, bit_column, slot),
           row_words(subscription) * sizeof *taken->words.items);
    taken->words.count += row_words(subscription);
    quern__bit_column_clear_slot(row_bits, bit_column, slot);
}

static void take_rows(quern__taken *taken, quern__subscription *subscription)
{
    if (!subscription->is_pending) return;
    uint32_t bit_columns[KIND_COUNT];
    list_bit_columns(subscription, bit_columns);
    for (uint32_t slot = 0; slot < subscription->archetype->chunk_count; slot++)
        for (uint32_t i = 0; i < KIND_COUNT; i++)
            if (count_rows(subscription, bit_columns[i], slot) > 0)
                take_bits(taken, subscription, slot, bit_columns[i], kinds[i]);
    subscription->is_pending = false;
}

/* Moves the blocks with copies from the subscription to taken->removed. */
static void take_blocks(quern__taken *taken, quern__subscription *subscription)
{
    quern__removed *removed = &subscription->removed;
    const uint32_t used = quern__removed_used_blocks(removed);
    if (used == 0) return;
    for (uint32_t i = 0; i < used; i++) {
        char *memory = removed->blocks.items[i];
        taken->removed.items[taken->removed.count++] =
            (quern__taken_block){.subscription = subscription,
                                 .memory = memory,
                                 .entities = (const quern_entity *)(const void *)memory,
                                 .columns = subscription->columns,
                                 .count = quern__removed_rows_in(removed, i)};
    }
    memmove(removed->blocks.items, removed->blocks.items + used,
            (removed->blocks.count - used) * sizeof *removed->blocks.items);
    removed->blocks.count -= used;
    removed->count = 0;
    subscription->taken_block_count = used;
}

static void note_nothing_pending(quern__reactions *registry, quern__reaction *reaction)
{
    reaction->is_pending = false;
    registry->is_pending = false;
    for (uint32_t i = 0; i < registry->list.count; i++)
        if (registry->list.items[i] != NULL && registry->list.items[i]->is_pending)
            registry->is_pending = true;
}

quern_result quern__reaction_take(quern__storage *storage, quern__reaction *reaction)
{
    quern__reaction_finish(storage, reaction);
    if (!reaction->is_pending) return QUERN_OK;
    if (!prepare(reaction, &storage->allocator))
        return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory to list the changes for a reaction");
    for (uint32_t i = 0; i < reaction->subscriptions.count; i++) {
        take_rows(&reaction->taken, reaction->subscriptions.items[i]);
        take_blocks(&reaction->taken, reaction->subscriptions.items[i]);
    }
    note_nothing_pending(storage->reactions, reaction);
    return QUERN_OK;
}

void quern__reaction_finish(quern__storage *storage, quern__reaction *reaction)
{
    quern__taken *taken = &reaction->taken;
    for (uint32_t i = 0, first = 0; i < taken->removed.count; i++) {
        const quern__taken_block *block = &taken->removed.items[i];
        if (block->subscription != taken->removed.items[first].subscription) first = i;
        quern__subscription *subscription = block->subscription;
        quern__removed *removed = &subscription->removed;
        quern__removed_destroy_values(removed, block->memory, block->count);
        if (removed->blocks.count < removed->blocks.capacity)
            removed->blocks.items[removed->blocks.count++] = block->memory;
        else
            quern__release(&storage->allocator, block->memory, removed->block_bytes,
                           QUERN__PART_ALIGNMENT_BYTES);
        subscription->taken_block_count--;
        if (block->subscription->taken_block_count == 0)
            quern__removed_trim(&block->subscription->removed, &storage->allocator, i + 1 - first);
    }
    taken->removed.count = 0;
    taken->rows.count = 0;
    taken->words.count = 0;
}

/* ------------------------------------------------------------------------------------------ put back */

/* Returns blocks with their copies to their subscription. Its list still has the capacity for them. */
static void put_back_blocks(const quern__taken_block *blocks, uint32_t count)
{
    quern__subscription *subscription = blocks[0].subscription;
    quern__removed *removed = &subscription->removed;
    assert(removed->count == 0 && removed->blocks.count + count <= removed->blocks.capacity);
    memmove(removed->blocks.items + count, removed->blocks.items,
            removed->blocks.count * sizeof *removed->blocks.items);
    for (uint32_t i = 0; i < count; i++) {
        removed->blocks.items[i] = blocks[i].memory;
        removed->count += blocks[i].count;
    }
    removed->blocks.count += count;
    subscription->taken_block_count -= count;
}

void quern__reaction_put_back(quern__storage *storage, quern__reaction *reaction)
{
    quern__taken *taken = &reaction->taken;
    for (uint32_t i = 0; i < taken->rows.count; i++) {
        const quern__taken_rows *rows = &taken->rows.items[i];
        quern__subscription *subscription = quern__find_subscription(rows->archetype, reaction);
        uint32_t bit_columns[KIND_COUNT];
        list_bit_columns(subscription, bit_columns);
        const uint32_t bit_column = bit_columns[rows->kind == QUERN_REACT_ADDED ? 0 : 1];
        const quern__chunk *chunk = quern__slot_chunk(&rows->archetype->slots[rows->slot]);
        const uint64_t *words = taken->words.items + rows->first_word;
        quern__bit_range run = {0};
        while (quern__bitset_next_range(words, row_words(subscription), &run))
            quern__bit_column_set_rows(rows->archetype->row_bits, bit_column,
                                       quern__location_make(chunk, run.first), run.count);
        subscription->is_pending = true;
    }
    for (uint32_t first = 0, end; first < taken->removed.count; first = end) {
        for (end = first + 1; end < taken->removed.count; end++)
            if (taken->removed.items[end].subscription != taken->removed.items[first].subscription) break;
        put_back_blocks(&taken->removed.items[first], end - first);
    }
    if (taken->rows.count + taken->removed.count > 0)
        reaction->is_pending = storage->reactions->is_pending = true;
    taken->rows.count = taken->words.count = taken->removed.count = 0;
}

void quern__reaction_drop(quern__storage *storage, quern__reaction *reaction)
{
    if (!reaction->is_pending) return;
    for (uint32_t i = 0; i < reaction->subscriptions.count; i++) {
        quern__subscription *subscription = reaction->subscriptions.items[i];
        uint32_t bit_columns[KIND_COUNT];
        list_bit_columns(subscription, bit_columns);
        for (uint32_t slot = 0; subscription->is_pending && slot < subscription->archetype->chunk_count;
             slot++)
            for (uint32_t k = 0; k < KIND_COUNT; k++)
                if (count_rows(subscription, bit_columns[k], slot) > 0)
                    quern__bit_column_clear_slot(subscription->archetype->row_bits, bit_columns[k], slot);
        subscription->is_pending = false;
        const uint32_t used = quern__removed_used_blocks(&subscription->removed);
        quern__removed_clear(&subscription->removed);
        quern__removed_trim(&subscription->removed, &storage->allocator, used);
    }
    note_nothing_pending(storage->reactions, reaction);
}
