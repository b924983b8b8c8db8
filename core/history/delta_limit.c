/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "core/history/delta_limit.h"

static uint64_t name_count(quern__history *history, const quern__snapshot *snapshot)
{
    quern__byte_reader reader = quern__page_reader(&history->store, snapshot->names);
    return quern__read_u64(&reader);
}

static void add_members(const quern__delta_limit *limit, const quern__history *history,
                        const quern__snapshot *snapshot, uint64_t *members)
{
    for (uint32_t i = 0; i < snapshot->archetype_count; i++) {
        const quern__saved_archetype *saved = quern__saved_archetype_at(history, snapshot, i);
        if (!quern__limit_matches(limit, saved)) continue;
        for (uint32_t slot = 0; slot < saved->chunk_count; slot++) {
            const quern__page page = quern__saved_pages(saved, slot)[saved->column_count];
            const quern_entity *handles =
                (const quern_entity *)(const void *)quern__page_memory(&history->store, page);
            for (uint32_t row = 0; row < quern__saved_row_count(saved, slot); row++)
                quern__bitset_add(members, quern_entity_index(handles[row]));
        }
    }
}

/* Whether one of these members of a snapshot is alive in the other one, of which it is no member. */
static bool is_any_alive(const quern__history *history, const quern__snapshot *snapshot,
                         const quern__snapshot *other, uint32_t first_slot, uint64_t members)
{
    while (members != 0) {
        const uint32_t slot = first_slot + quern__bitset_pop_lowest(&members);
        if (quern__saved_is_alive(history, other, quern__saved_entity(history, snapshot, slot)))
            return true;
    }
    return false;
}

static bool any_crosses(const quern__history *history, const quern__snapshot *from,
                        const quern__snapshot *to, const uint64_t *from_members, const uint64_t *to_members,
                        size_t word_count)
{
    for (size_t i = 0; i < word_count; i++)
        if (is_any_alive(history, from, to, (uint32_t)i * 64, from_members[i] & ~to_members[i]) ||
            is_any_alive(history, to, from, (uint32_t)i * 64, to_members[i] & ~from_members[i]))
            return true;
    return false;
}

bool quern__delta_limit_init(quern__delta_limit *limit, quern__history *history, const quern_delta_def *def,
                             const quern__snapshot *from, const quern__snapshot *to)
{
    const quern__relations *relations = history->world->storage.relations;
    *limit = (quern__delta_limit){.def = def, .relations = relations};
    const bool has_names =
        !def->skip_names && (name_count(history, from) > 0 || name_count(history, to) > 0);
    if (def->query == NULL || (relations->list.count == 0 && !has_names)) return true;
    const uint32_t slot_count =
        from->slots.slot_count > to->slots.slot_count ? from->slots.slot_count : to->slots.slot_count;
    const size_t word_count = QUERN__BITSET_WORDS((size_t)slot_count);
    limit->members_page = quern__page_allocate(&history->store, 2 * word_count * sizeof(uint64_t));
    if (limit->members_page == 0) return false;
    uint64_t *members = (uint64_t *)(void *)quern__page_memory(&history->store, limit->members_page);
    memset(members, 0, 2 * word_count * sizeof *members);
    add_members(limit, history, from, members);
    add_members(limit, history, to, members + word_count);
    limit->from_members = members;
    limit->to_members = members + word_count;
    limit->crosses = any_crosses(history, from, to, members, members + word_count, word_count);
    return true;
}

void quern__delta_limit_release(const quern__delta_limit *limit, quern__history *history)
{
    quern__page_release(&history->store, limit->members_page);
}
