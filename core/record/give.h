/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_RECORD_GIVE_H
#define QUERN_CORE_RECORD_GIVE_H

/* What recorded items are filled with, in places that place.h has found. */

#include "core/record/place.h"

/* Whether it is the callback of the recorder that records, as far as can be told: while it runs, on its
 * thread. Without checks preparing sees whether it runs, on the way that leads there. */
static inline bool quern__record_is_held(const quern_commands *commands)
{
    return !QUERN_CHECKS || commands->holder == quern__this_thread();
}

/* A create whose values stand, or will stand, in this place. */
static inline quern_entity quern__record_append_create(quern_commands *commands,
                                                       const quern__operation *operation, char *place)
{
    quern__item *item = quern__place_take(commands, operation, place);
    assert(commands->open != NULL);
    const uint32_t number = commands->open->create_count++;
    const quern_entity entity = quern__entity_make(0, commands->origin.serial, number);
    *item = (quern__item){.entity = entity};
    return entity;
}

/* Copies the i-th value into an item. */
static inline void quern__record_give_value(const quern__operation *operation, char *item, uint32_t i,
                                            const void *value)
{
    const quern__operand *operand = &operation->operands[i];
    char *target = item + operand->offset_bytes;
    if (operand->is_plain) {
        quern__copy_new_value(target, value, operand->size_bytes);
        return;
    }
    quern__type_copy(operand->type, target, value, 1);
    if (operation->has_destroy)
        item[operation->living_offset_bytes + i] = operand->type->hooks.destroy != NULL ? '\1' : '\0';
}

static inline void quern__record_forget_living(const quern__operation *operation, char *item)
{
    if (operation->has_destroy) memset(item + operation->living_offset_bytes, 0, operation->operand_count);
}

/* A value must not smuggle provisional handles of other streams into the world, and that of a relation's
 * component is a target. entity: null where it is about to be created. value may be NULL. */
quern_result quern__record_check_value(quern_commands *commands, const quern__operand *operand,
                                       quern_entity entity, const void *value, const char *function);

/* Whether the entity, which is none that lives, may be recorded for all that: a provisional one of this
 * callback. */
quern_result quern__record_check_entity(const quern_commands *commands, quern_entity entity,
                                        const char *function);

/* Whether the handle is provisional, and of a create that this callback has recorded. */
bool quern__record_is_ours(const quern_commands *commands, quern_entity entity);

#endif
