/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* The calls of quern/reflect.h that describe the flags of component types. */

#include "core/calls/calls_internal.h"

#include <quern/reflect.h>

typedef struct flag_functions {
    bool (*is_listed)(const quern_world *world, quern_entity entity, quern_component component);
    quern_result (*list)(quern_commands *commands, quern_entity entity, quern_component component);
} flag_functions;

#define FUNCTIONS(flag, member, ...) {quern__##member##_is_listed, quern__##member##_list},
static const flag_functions functions_of[QUERN__ROW_FLAG_COUNT] = {QUERN__ROW_FLAGS(FUNCTIONS)};

uint32_t quern_component_flag_count(void)
{
    return QUERN__COLUMN_FLAG_COUNT;
}

quern_result quern_component_flag_get_info(uint32_t index, quern_flag_info *out_info)
{
    static const char function[] = "quern_component_flag_get_info";
    if (out_info == NULL) return quern__fail_null(function, "out_info");
    if (index >= QUERN__COLUMN_FLAG_COUNT)
        return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                           "%s: index %u is out of range: component types have %d flags", function, index,
                           QUERN__COLUMN_FLAG_COUNT);
    const quern__column_flag *flag = &quern__column_flags[index];
    *out_info = (quern_flag_info){.name = flag->name,
                                  .with = flag->with,
                                  .without = flag->without,
                                  .info_offset_bytes = flag->info_offset_bytes,
                                  .list_name = flag->list_name};
    if (index >= QUERN__ROW_FLAG_COUNT) return QUERN_OK;
    out_info->is_listed = functions_of[index].is_listed;
    out_info->list = functions_of[index].list;
    return QUERN_OK;
}
