/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* The flags of component types, for tools: rows of QUERN__COLUMN_FLAGS, and the calls by which an entity's state of a
 * flag is read and changed. */

#include "core/base/base_internal.h"
#include "core/storage/column_flags.h"

#include <quern/reflect.h>

static bool is_disabled(const quern_world *world, quern_entity entity, quern_component component)
{
    return !quern_entity_is_enabled(world, entity, component);
}

static quern_result disable(quern_commands *commands, quern_entity entity, quern_component component)
{
    return quern_commands_enable(commands, entity, component, false);
}

typedef struct entity_state {
    bool (*is_listed)(const quern_world *world, quern_entity entity, quern_component component);
    quern_result (*list)(quern_commands *commands, quern_entity entity, quern_component component);
} entity_state;

/* For each flag with a plane. */
static const entity_state entity_states[QUERN__COLUMN_FLAG_COUNT] = {
    [QUERN__FLAG_NUMBER_CAN_DISABLE] = {is_disabled, disable},
};

uint32_t quern_component_flag_count(void)
{
    return QUERN__COLUMN_FLAG_COUNT;
}

quern_result quern_component_flag_get_info(uint32_t index, quern_flag_info *out_info)
{
    static const char function[] = "quern_component_flag_get_info";
    if (out_info == NULL) return quern__fail_null(function, "out_info");
    if (index >= QUERN__COLUMN_FLAG_COUNT)
        return quern__fail(QUERN_ERROR_INVALID_ARGUMENT, "%s: number %u; component types have %d flags",
                           function, index, QUERN__COLUMN_FLAG_COUNT);
    const quern__column_flag *flag = &quern__column_flags[index];
    *out_info = (quern_flag_info){.name = flag->name,
                                  .with = flag->with,
                                  .without = flag->without,
                                  .info_offset_bytes = flag->info_offset_bytes,
                                  .list_name = flag->list_name,
                                  .is_listed = entity_states[index].is_listed,
                                  .list = entity_states[index].list};
    return QUERN_OK;
}
