/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "core/archive/save_outside.h"

#include "core/relations/relate.h"

void quern__saved_outside_release(quern__saved_outside *outside, const quern_allocator *allocator)
{
    quern__array_release(allocator, &outside->ids);
    quern__array_release(allocator, &outside->links);
    quern__map_release(&outside->numbers, allocator);
}

uint32_t quern__outside_number(const quern__saving *saving, quern__saved_outside *outside,
                               quern_entity entity)
{
    const quern_allocator *allocator = &saving->allocator;
    const uint64_t *known = quern__map_find(&outside->numbers, entity.bits);
    if (known != NULL) return (uint32_t)*known;
    const uint64_t id = saving->def->outside_id(saving->def->user_data, entity);
    if (id == 0) return QUERN__OUTSIDE_NONE;
    const uint32_t number = outside->ids.count;
    if (!quern__array_reserve(allocator, &outside->ids, number + 1) ||
        !quern__map_reserve(&outside->numbers, allocator, number + 1)) {
        outside->lacks_memory = true;
        return QUERN__OUTSIDE_NONE;
    }
    outside->ids.items[outside->ids.count++] = id;
    quern__map_put(&outside->numbers, entity.bits, number);
    return number;
}

static void add_link(quern__saving *saving, quern__saved_outside *outside, const quern__relation *relation,
                     uint32_t slot, uint32_t target)
{
    const quern__storage *storage = &saving->world->storage;
    if (target == QUERN__SLOT_NONE || quern__saving_find_slot(saving, target) != QUERN__SLOT_NONE) return;
    const uint32_t number = quern__outside_number(saving, outside, quern__entity_of_slot(storage, target));
    if (number == QUERN__OUTSIDE_NONE) return;
    if (!quern__array_reserve(&saving->allocator, &outside->links, outside->links.count + 1)) {
        outside->lacks_memory = true;
        return;
    }
    outside->links.items[outside->links.count++] =
        (quern__outside_link){relation->component_index, quern__saving_find_slot(saving, slot), number};
    quern__saving_use_type(saving, relation->component_index);
}

void quern__outside_add_links(quern__saving *saving, quern__saved_outside *outside,
                              const quern__relation *relation, uint32_t slot)
{
    if (!relation->is_many) {
        add_link(saving, outside, relation, slot, quern__links_target(&relation->links, slot));
        return;
    }
    const quern__edge_list *targets = quern__edges_targets(&relation->edges, slot);
    for (uint32_t i = 0; i < quern__edge_list_ranges(targets); i++) {
        const quern__edge_range range = quern__edge_list_range(targets, i);
        for (uint32_t k = 0; k < range.count; k++)
            add_link(saving, outside, relation, slot, range.slots[k]);
    }
}

/* Writes the links of one relation, each as a target with one source. */
static void write_relation(quern__saving *saving, const quern__saved_outside *outside, uint32_t relation)
{
    enum { ENTRY = 3 * sizeof(uint32_t), MOST_BYTES = QUERN__SECTION_BYTES / 2 / ENTRY * ENTRY };
    const quern__links_section section = {.relation = saving->numbers[relation]};
    quern__byte_writer *writer = NULL;
    uint32_t left = 0;
    for (uint32_t i = 0; i < outside->links.count; i++) {
        const quern__outside_link *link = &outside->links.items[i];
        if (link->relation != relation) continue;
        if (left == 0) {
            if (writer != NULL) quern__section_end(&saving->writer);
            writer =
                quern__section_begin(&saving->writer, QUERN__SECTION_LINKS, sizeof section + MOST_BYTES);
            quern__write(writer, &section, sizeof section);
            left = MOST_BYTES / ENTRY;
        }
        const uint32_t entry[] = {saving->selected_count + link->number, 1, link->source};
        quern__write(writer, entry, sizeof entry);
        left--;
    }
    if (writer != NULL) quern__section_end(&saving->writer);
}

void quern__outside_write_links(quern__saving *saving, const quern__saved_outside *outside)
{
    const quern__relations *relations = saving->world->storage.relations;
    for (uint32_t i = 0; i < relations->list.count && outside->links.count > 0; i++)
        write_relation(saving, outside, relations->list.items[i]->component_index);
}

void quern__outside_write_ids(quern__saving *saving, const quern__saved_outside *outside)
{
    enum { MOST_IDS = QUERN__SECTION_BYTES / 2 / sizeof(uint64_t) };
    for (uint32_t done = 0, count; done < outside->ids.count; done += count) {
        const uint32_t left = outside->ids.count - done;
        count = left < MOST_IDS ? left : MOST_IDS;
        quern__write(
            quern__section_begin(&saving->writer, QUERN__SECTION_OUTSIDE, count * sizeof(uint64_t)),
            outside->ids.items + done, count * sizeof(uint64_t));
        quern__section_end(&saving->writer);
    }
}
