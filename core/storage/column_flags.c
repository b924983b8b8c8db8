/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "core/storage/column_flags.h"

#include <quern/component.h>
#include <quern/reflect.h>

#define FLAG_ROW(flag, member, ...)                             \
    {.name = #member,                                           \
     .def_offset_bytes = offsetof(quern_component_def, member), \
     .info_offset_bytes = offsetof(quern_type_info, member),    \
     .bit = QUERN__FLAG_##flag,                                 \
     __VA_ARGS__},
const quern__column_flag quern__column_flags[QUERN__COLUMN_FLAG_COUNT] = {QUERN__COLUMN_FLAGS(FLAG_ROW)};

/* The flags are the last members of the definition, from can_disable to is_hidden. Insert new flags between these. */
_Static_assert(offsetof(quern_component_def, is_hidden) - offsetof(quern_component_def, can_disable) + 1 ==
                   QUERN__COLUMN_FLAG_COUNT * sizeof(bool),
               "every flag of quern_component_def has a row in QUERN__COLUMN_FLAGS");

uint32_t quern__column_flags_to_archive(uint32_t flags)
{
    uint32_t bits = 0;
    for (uint32_t i = 0; i < QUERN__COLUMN_FLAG_COUNT; i++)
        if ((flags & quern__column_flags[i].bit) != 0) bits |= quern__column_flags[i].archive_bit;
    return bits;
}

uint32_t quern__column_flags_to_replay(uint32_t flags)
{
    uint32_t bits = 0;
    for (uint32_t i = 0; i < QUERN__COLUMN_FLAG_COUNT; i++)
        if ((flags & quern__column_flags[i].bit) != 0) bits |= quern__column_flags[i].replay_bit;
    return bits;
}

uint8_t quern__column_flags_from_archive(uint32_t archive_bits)
{
    uint8_t flags = 0;
    for (uint32_t i = 0; i < QUERN__COLUMN_FLAG_COUNT; i++)
        if ((archive_bits & quern__column_flags[i].archive_bit) != 0) flags |= quern__column_flags[i].bit;
    return flags;
}
