/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_RECORD_ITEM_WRITE_H
#define QUERN_CORE_RECORD_ITEM_WRITE_H

/* Filling recorded items, in the space found by item_space.h, and the checks before it. */

#include "core/record/item_space.h"

/* Whether the calling thread runs the callback that owns the recorder. Always true without QUERN_CHECKS; then
 * quern__item_space_reserve detects that no callback is running. */
static inline bool quern__commands_can_record(const quern_commands *commands)
{
    return !QUERN_CHECKS || commands->callback_thread == quern__this_thread();
}

/* Appends a create to the given space; its values are written before or after this call. Returns the
 * provisional handle. */
static inline quern_entity quern__item_append_create(quern_commands *commands,
                                                     const quern__operation *operation, char *space)
{
    quern__item *item = quern__item_append(commands, operation, space);
    assert(commands->open != NULL);
    const uint32_t number = commands->open->create_count++;
    const quern_entity entity = quern__entity_make(0, commands->origin.serial, number);
    *item = (quern__item){.entity = entity};
    return entity;
}

/* Stores a value of the caller in the item, for the i-th operand. */
static inline void quern__item_write_value(const quern__operation *operation, char *item, uint32_t i,
                                           const void *value)
{
    const quern__operand *operand = &operation->operands[i];
    char *target = item + operand->offset_bytes;
    if (operand->is_plain) {
        quern__copy_new_value(target, value, operand->size_bytes);
        return;
    }
    quern__type_accept(operand->type, target, value, 1);
    if (operation->has_destroy)
        item[operation->owned_offset_bytes + i] = operand->type->hooks.destroy != NULL ? '\1' : '\0';
}

static inline void quern__item_clear_owned(const quern__operation *operation, char *item)
{
    if (operation->has_destroy) memset(item + operation->owned_offset_bytes, 0, operation->operand_count);
}

/* Checks a value before it is recorded. Fails if it contains provisional handles of other streams, or if it is
 * the value of a relation's component and no valid target for the entity. entity: null for a create. value may
 * be NULL. */
quern_result quern__commands_check_value(quern_commands *commands, const quern__operand *operand,
                                         quern_entity entity, const void *value, const char *function);

/* Checks an entity that is not alive. Succeeds only for a provisional handle from the running callback. */
quern_result quern__commands_check_entity(const quern_commands *commands, quern_entity entity,
                                          const char *function);

/* Whether the handle is provisional and from a create that the running callback has recorded. */
bool quern__commands_have_created(const quern_commands *commands, quern_entity entity);

#endif
