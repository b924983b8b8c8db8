/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "core/archive/save.h"

#include "core/archive/archive_format.h"
#include "core/archive/image.h"
#include "core/base/base_internal.h"
#include "core/playback/playback.h"
#include "core/relations/relation_internal.h"
#include "core/storage/list_values.h"

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

/* Makes sure that the type of a component is in this archive or in an earlier one of the session:
 * quern__saving_write_types gives it a number. */
static inline void saving_use_type(quern__saving *saving, uint32_t component_index)
{
    if (saving->numbers[component_index] == QUERN__NO_TYPE)
        saving->numbers[component_index] = QUERN__NEW_TYPE;
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
    saving_use_type(saving, relation->component_index);
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

/* -------------------------------------------------------------------------------- opening and closing */

static bool is_list_end(const void *list, uint32_t i)
{
    return ((const quern_component *)list)[i].bits == 0;
}

static quern_result check_leave_out(const quern_world *world, const quern_save_def *def)
{
    const quern__components *components = &world->storage.components;
    uint32_t count;
    quern_result result = quern__list_count(def->leave_out, QUERN_MAX_LEFT_OUT, is_list_end,
                                            "component to leave out", NULL, &count);
    for (uint32_t i = 0; i < count && result == QUERN_OK; i++) {
        result = quern__components_check(components, def->leave_out[i]);
        if (result == QUERN_OK &&
            quern__components_is_managed(components, quern__component_index(def->leave_out[i])))
            result = quern__fail(
                QUERN_ERROR_INVALID_ARGUMENT,
                "'%s' cannot be left out, because the world manages it itself (for a relation, for "
                "example): remove it from leave_out",
                quern__components_type(components, quern__component_index(def->leave_out[i]))->name);
    }
    return result;
}

/* Reserves numbers for all components of the world. */
static quern_result reserve_numbers(quern__saving *saving)
{
    const uint32_t wanted = saving->world->storage.components.list.count;
    if (saving->numbers != NULL && wanted <= saving->number_count) return QUERN_OK;
    const quern_allocator *allocator = &saving->world->storage.allocator;
    uint32_t *numbers =
        quern__allocate(allocator, (wanted + 1) * sizeof *numbers, QUERN__ARRAY_ALIGNMENT_BYTES);
    if (numbers == NULL)
        return quern__fail(QUERN_ERROR_OUT_OF_MEMORY,
                           "out of memory for the list of components; nothing was written");
    memset(numbers, 0xFF, (wanted + 1) * sizeof *numbers); /* every number is QUERN__NO_TYPE */
    if (saving->numbers != NULL) memcpy(numbers, saving->numbers, saving->number_count * sizeof *numbers);
    quern__release(allocator, saving->numbers, (saving->number_count + 1) * sizeof *numbers,
                   QUERN__ARRAY_ALIGNMENT_BYTES);
    saving->numbers = numbers;
    saving->number_count = wanted;
    return QUERN_OK;
}

quern_result quern__saving_init(quern__saving *saving, quern_world *world, const quern_save_def *def)
{
    static const quern_save_def zero;
    *saving = (quern__saving){
        .world = world, .def = def != NULL ? def : &zero, .allocator = world->storage.allocator};
    saving->lists.allocator = &world->storage.allocator;
    const quern_result result = check_leave_out(world, saving->def);
    return result == QUERN_OK ? quern__archive_writer_init(&saving->writer, &world->storage.allocator,
                                                           saving->def->compress)
                              : result;
}

void quern__saving_release(quern__saving *saving)
{
    const quern_allocator *allocator = &saving->world->storage.allocator;
    quern__release(allocator, saving->numbers, (saving->number_count + 1) * sizeof *saving->numbers,
                   QUERN__ARRAY_ALIGNMENT_BYTES);
    quern__archive_writer_release(&saving->writer);
    quern__byte_writer_release(&saving->lists);
}

quern_result quern__saving_start(quern__saving *saving, quern_sink sink)
{
    if (quern__world_has_commands(saving->world))
        return quern__fail(
            QUERN_ERROR_INVALID_ARGUMENT,
            "commands are waiting to be applied, and an archive cannot contain them: apply them by "
            "quern_world_flush, as the next frame would do first, or drop them by "
            "quern_world_discard_commands");
    const quern_result result = reserve_numbers(saving);
    if (result == QUERN_OK)
        quern__archive_writer_start(&saving->writer, sink, saving->is_session ? &saving->position : NULL);
    return result;
}

quern_result quern__saving_finish(quern__saving *saving, quern_result result)
{
    if (result == QUERN_OK && saving->lists.has_failed)
        result = quern__fail(QUERN_ERROR_OUT_OF_MEMORY,
                             "out of memory for the elements of lists; the archive is incomplete");
    saving->lists.has_failed = false;
    saving->lists.count = 0;
    if (result == QUERN_OK) {
        quern__section_begin(&saving->writer, QUERN__SECTION_END, 0);
        quern__section_end(&saving->writer);
        result = quern__archive_writer_finish(&saving->writer);
    }
    if (result == QUERN_OK) {
        saving->known_type_count = saving->type_count;
        saving->position =
            (quern__archive_position){saving->writer.head.message_number, saving->writer.checksum};
        return QUERN_OK;
    }
    for (uint32_t i = 0; i < saving->number_count; i++)
        if (saving->numbers[i] >= saving->known_type_count) saving->numbers[i] = QUERN__NO_TYPE;
    saving->type_count = saving->known_type_count;
    return result;
}

/* ------------------------------------------------------------------------------------------- types */

bool quern__saving_leaves_out(const quern__saving *saving, uint32_t component_index)
{
    const quern_component *left_out = saving->def->leave_out;
    for (uint32_t i = 0; i < QUERN_MAX_LEFT_OUT && left_out[i].bits != 0; i++)
        if (quern__component_index(left_out[i]) == component_index) return true;
    return false;
}

quern_result quern__saving_add_component(quern__saving *saving, quern__saved_components *set,
                                         uint32_t component_index, bool has_rows)
{
    const quern__component *component = saving->world->storage.components.list.items[component_index];
    if (has_rows && quern__type_owns_unknown(&component->type))
        return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                           "component '%s' has hooks, so an archive cannot save what its values own: add "
                           "it to leave_out of quern_save_def",
                           component->type.name);
    saving_use_type(saving, component_index);
    set->component_indices[set->component_count++] = (uint16_t)component_index;
    set->values_bytes += component->type.size_bytes;
    set->has_lists |= component->type.lists != NULL;
    set->bit_column_count += quern__column_flags_bit_column_count(component->type.flags);
    return QUERN_OK;
}

static void save_type(quern__saving *saving, quern__section_kind kind, quern__type_section section,
                      const quern__type *type)
{
    section.size_bytes = type->size_bytes;
    section.alignment_bytes = type->alignment_bytes;
    section.field_count = type->field_count;
    quern__byte_writer *writer = quern__section_begin(
        &saving->writer, kind, sizeof section + quern__schema_max_bytes(quern__archive_schema));
    quern__write(writer, &section, sizeof section);
    quern__write_schema(writer, quern__archive_schema, type->name, type->fields, type->field_count);
    quern__section_end(&saving->writer);
}

static quern__type_section describe_component(const quern__saving *saving, uint32_t index)
{
    const quern__component *component = saving->world->storage.components.list.items[index];
    const quern__relation *relation = component->managed.relation;
    const uint32_t disabled = saving->world->storage.disabled_index;
    quern__type_section section = {.flags = quern__column_flags_to_archive(component->type.flags)};
    if (relation != NULL && component->managed.level > 0) {
        section.role = QUERN__ROLE_LEVEL;
        section.relation = saving->numbers[relation->component_index];
        section.level = component->managed.level;
    } else if (relation != NULL) {
        section.role = QUERN__ROLE_RELATION;
        section.policy = (uint32_t)relation->policy;
        section.flags |= (relation->has_levels ? QUERN__ARCHIVED_HAS_LEVELS : 0u) |
                         (relation->is_ordered ? QUERN__ARCHIVED_IS_ORDERED : 0u) |
                         (relation->is_many ? QUERN__ARCHIVED_IS_MANY : 0u);
    } else if (disabled != QUERN__NO_COMPONENT && (index == disabled || index == disabled + 1)) {
        section.role = index == disabled ? QUERN__ROLE_DISABLED : QUERN__ROLE_DISABLED_BY_PARENT;
    } else if (quern__type_owns_unknown(&component->type)) {
        section.flags |= QUERN__ARCHIVED_HAS_HOOKS;
    }
    return section;
}

void quern__saving_write_types(quern__saving *saving, const quern__world_section *section)
{
    const quern__components *components = &saving->world->storage.components;
    quern__write(quern__section_begin(&saving->writer, QUERN__SECTION_WORLD, sizeof *section), section,
                 sizeof *section);
    quern__section_end(&saving->writer);
    for (uint32_t i = 0; i < components->list.count; i++) {
        if (saving->numbers[i] != QUERN__NEW_TYPE) continue;
        saving->numbers[i] = saving->type_count++;
        save_type(saving, QUERN__SECTION_TYPE, describe_component(saving, i),
                  quern__components_type(components, i));
    }
}

/* ------------------------------------------------------------------------------------------- lists */

void quern__saving_write_lists(quern__saving *saving)
{
    const size_t bytes = saving->lists.has_failed ? 0 : saving->lists.count;
    for (size_t done = 0, piece; done < bytes; done += piece) {
        piece = bytes - done < QUERN__SECTION_BYTES ? bytes - done : QUERN__SECTION_BYTES;
        quern__write(quern__section_begin(&saving->writer, QUERN__SECTION_LISTS, piece),
                     saving->lists.bytes + done, piece);
        quern__section_end(&saving->writer);
    }
    saving->lists.count = 0;
}

/* --------------------------------------------------------------------------------------- resources */

/* Writes the described fields of a resource. All other bytes are written as zero. */
static quern_result save_value(quern__saving *saving, const quern__resource *resource)
{
    enum { PIECE_BYTES = QUERN__SECTION_BYTES / 2 };
    const quern_allocator *allocator = &saving->world->storage.allocator;
    const uint32_t bytes = resource->type.size_bytes;
    char *value = quern__allocate(allocator, bytes, QUERN_MAX_ALIGNMENT_BYTES);
    if (value == NULL)
        return quern__fail(QUERN_ERROR_OUT_OF_MEMORY,
                           "out of memory for the value of resource '%s'; the archive is incomplete",
                           resource->type.name);
    memset(value, 0, bytes);
    quern__copy_fields(&resource->type, value, resource->value);
    for (uint32_t done = 0, piece; done < bytes; done += piece) {
        piece = bytes - done < PIECE_BYTES ? bytes - done : PIECE_BYTES;
        quern__write(quern__section_begin(&saving->writer, QUERN__SECTION_VALUE, piece), value + done,
                     piece);
        quern__section_end(&saving->writer);
    }
    quern__release(allocator, value, bytes, QUERN_MAX_ALIGNMENT_BYTES);
    if (resource->type.lists != NULL) {
        quern__type_write_lists(&resource->type, resource->value, &saving->lists, NULL, NULL);
        quern__saving_write_lists(saving);
    }
    return QUERN_OK;
}

/* ------------------------------------------------------------------------------------------- links */

/* A LINKS section for one target, as it is filled with sources. */
typedef struct links_writer {
    quern__saving *saving;
    const quern__relation *relation;
    uint32_t target; /* slot in the archive */
    uint32_t count;  /* number of sources in the open section */
    char *room;      /* payload of the open section; NULL: none is open */
} links_writer;

enum { LINKS_HEAD = sizeof(quern__links_section) + 2 * sizeof(uint32_t), LINKS_MOST = 2048 };

static void end_links(links_writer *it)
{
    if (it->room == NULL) return;
    const uint32_t head[] = {it->saving->numbers[it->relation->component_index], 0, it->target, it->count};
    memcpy(it->room, head, LINKS_HEAD);
    it->saving->writer.block.count -= (LINKS_MOST - it->count) * sizeof it->count;
    quern__section_end(&it->saving->writer);
    it->room = NULL;
    it->count = 0;
}

/* Adds a source, unless it is not saved. Divides long lists between sections: the reader appends the sources of a
 * later section. */
static void write_source(links_writer *it, uint32_t source)
{
    const uint32_t slot = quern__saving_find_slot(it->saving, source);
    const size_t most_bytes = LINKS_HEAD + LINKS_MOST * sizeof slot;
    if (slot == QUERN__SLOT_NONE) return;
    if (it->count == LINKS_MOST) end_links(it);
    if (it->room == NULL)
        it->room = quern__write_room(
            quern__section_begin(&it->saving->writer, QUERN__SECTION_LINKS, most_bytes), most_bytes);
    memcpy(it->room + LINKS_HEAD + it->count++ * sizeof slot, &slot, sizeof slot);
}

void quern__saving_write_children(quern__saving *saving, const quern__relation *relation, uint32_t target)
{
    const quern__edge_list *sources = quern__edges_sources(&relation->edges, target);
    uint32_t child = quern__links_first(&relation->links, target);
    if (child == QUERN__SLOT_NONE && sources->count == 0) return;
    links_writer it = {
        .saving = saving, .relation = relation, .target = quern__saving_find_slot(saving, target)};
    if (it.target == QUERN__SLOT_NONE) return;
    for (; child != QUERN__SLOT_NONE; child = quern__links_at(&relation->links, child)->next)
        write_source(&it, child);
    for (uint32_t i = 0; i < quern__edge_list_ranges(sources); i++) {
        const quern__edge_range range = quern__edge_list_range(sources, i);
        for (uint32_t k = 0; k < range.count; k++)
            write_source(&it, range.slots[k]);
    }
    end_links(&it);
}

static void save_links(quern__saving *saving)
{
    const quern__relations *relations = saving->world->storage.relations;
    for (uint32_t r = 0; r < relations->list.count; r++) {
        const quern__relation *relation = relations->list.items[r];
        const quern__links *links = &relation->links;
        for (uint32_t page = 0; page < links->pages.count; page++)
            for (uint32_t i = 0; links->pages.items[page] != NULL && i < QUERN__LINK_PAGE_SLOTS; i++)
                if (links->pages.items[page][i].count > 0)
                    quern__saving_write_children(saving, relation, page * QUERN__LINK_PAGE_SLOTS + i);
        const quern__edges *edges = &relation->edges;
        for (uint32_t page = 0; page < edges->pages.count; page++)
            for (uint32_t i = 0; edges->pages.items[page] != NULL && i < QUERN__EDGE_PAGE_SLOTS; i++)
                if (edges->pages.items[page][i].sources.count > 0)
                    quern__saving_write_children(saving, relation, page * QUERN__EDGE_PAGE_SLOTS + i);
    }
}

/* ------------------------------------------------------------------------------------------- rows */

void quern__saving_write_archetype(quern__saving *saving, const quern__saved_components *set,
                                   quern__archetype_section section)
{
    section.type_count = set->component_count;
    quern__byte_writer *writer =
        quern__section_begin(&saving->writer, QUERN__SECTION_ARCHETYPE,
                             sizeof section + set->component_count * sizeof(uint32_t));
    quern__write(writer, &section, sizeof section);
    for (uint32_t i = 0; i < set->component_count; i++)
        quern__write_u32(writer, saving->numbers[set->component_indices[i]]);
    quern__section_end(&saving->writer);
}

static size_t rows_bytes(const quern__saved_components *set, uint32_t row_count)
{
    return sizeof(quern__rows_section) + (size_t)row_count * set->values_bytes +
           set->bit_column_count * (sizeof(uint64_t) + quern__archived_row_bits_bytes(row_count));
}

uint32_t quern__saving_max_rows(const quern__saved_components *set)
{
    uint32_t most = QUERN__BIT_COLUMN_MAX_ROWS;
    while (most > 1 && rows_bytes(set, most) > QUERN__SECTION_BYTES)
        most /= 2;
    return most;
}

quern__byte_writer *quern__saving_begin_rows(quern__saving *saving, const quern__saved_components *set,
                                             uint32_t row_count)
{
    const quern__rows_section section = {.row_count = row_count};
    quern__byte_writer *writer =
        quern__section_begin(&saving->writer, QUERN__SECTION_ROWS, rows_bytes(set, row_count));
    quern__write(writer, &section, sizeof section);
    return writer;
}

void quern__saving_write_row_bits(quern__byte_writer *writer, const uint64_t *words, uint32_t row_count)
{
    const size_t bytes = quern__archived_row_bits_bytes(row_count);
    uint64_t count = 0;
    for (size_t i = 0; i < bytes / sizeof *words; i++)
        count += (uint64_t)quern__count_bits_64(words[i]);
    quern__write_u64(writer, count);
    if (count > 0) quern__write(writer, words, bytes);
}

/* Writes `count` rows of a bit column from row `first` on; bit 0 of the written words is row `first`. */
static void save_row_bits(quern__byte_writer *writer, const quern__archetype *archetype,
                          quern__bit_column which, uint32_t slot, uint32_t first, uint32_t count)
{
    const quern__row_bits *row_bits = archetype->row_bits;
    const uint32_t bit_column = quern__row_bits_find_column(row_bits, which.kind, which.id);
    const uint64_t *source = quern__bit_column_words(row_bits, bit_column, slot);
    uint64_t words[QUERN__BIT_COLUMN_ROW_WORDS] = {0};
    for (uint32_t i = 0; i < count && quern__bit_column_count(row_bits, bit_column, slot) > 0; i++)
        words[i / 64] |= (source[(first + i) / 64] >> (first + i) % 64 & 1) << i % 64;
    quern__saving_write_row_bits(writer, words, count);
}

/* Writes the lists in values as zero bytes, and collects their elements. */
static void save_lists(quern__saving *saving, const quern__type *type, char *written, const char *values,
                       uint32_t count)
{
    for (uint32_t i = 0; i < count; i++, values += type->size_bytes) {
        quern__type_clear_lists(type, written + (size_t)i * type->size_bytes);
        quern__type_write_lists(type, values, &saving->lists, NULL, NULL);
    }
}

/* Writes consecutive rows of one chunk. */
static void save_rows(quern__saving *saving, const quern__saved_components *set,
                      const quern__archetype *archetype, uint32_t slot, uint32_t first, uint32_t count)
{
    const quern__components *components = &saving->world->storage.components;
    const quern__chunk *chunk = quern__slot_chunk(&archetype->slots[slot]);
    const uintptr_t location = quern__location_make(chunk, first);
    quern__byte_writer *writer = quern__saving_begin_rows(saving, set, count);
    quern__write(writer, quern__archetype_entities(archetype, chunk) + first, count * sizeof(quern_entity));
    for (uint32_t i = 0; i < set->component_count; i++) {
        const quern__column_position position =
            quern__archetype_column_position(archetype, set->component_indices[i]);
        if (position.offset_lines == 0) continue;
        const char *values = quern__position_value(position, location);
        char *written = quern__write_room(writer, (size_t)count * position.size_bytes);
        memcpy(written, values, (size_t)count * position.size_bytes);
        if (set->has_lists)
            save_lists(saving, quern__components_type(components, set->component_indices[i]), written,
                       values, count);
    }
    for (uint32_t flag = 0; flag < QUERN__ROW_FLAG_COUNT; flag++)
        for (uint32_t i = 0; i < set->component_count; i++)
            if (quern__components_has_flag(components, set->component_indices[i], 1u << flag))
                save_row_bits(writer, archetype, (quern__bit_column){flag, set->component_indices[i]}, slot,
                              first, count);
    quern__section_end(&saving->writer);
    if (set->has_lists) quern__saving_write_lists(saving);
}

static quern_result list_components(quern__saving *saving, const quern__archetype *archetype,
                                    quern__saved_components *out_set)
{
    quern_result result = QUERN_OK;
    *out_set = (quern__saved_components){.values_bytes = sizeof(quern_entity)};
    for (uint32_t i = 0; i < archetype->component_count && result == QUERN_OK; i++)
        if (!quern__saving_leaves_out(saving, archetype->component_indices[i]))
            result = quern__saving_add_component(saving, out_set, archetype->component_indices[i],
                                                 archetype->chunk_count > 0);
    return result;
}

/* Writes all archetypes, also those without rows: the layout of an archetype depends on how many
 * archetypes were created before it. */
static void save_archetypes(quern__saving *saving)
{
    const quern__storage *storage = &saving->world->storage;
    for (uint32_t i = 0; i < storage->archetypes.count; i++) {
        const quern__archetype *archetype = storage->archetypes.items[i];
        quern__saved_components set;
        const quern_result result = list_components(saving, archetype, &set);
        assert(result ==
               QUERN_OK); /* the first pass over the archetypes has succeeded with the same arguments */
        (void)result;
        quern__saving_write_archetype(
            saving, &set,
            (quern__archetype_section){.empty_since = archetype->empty_since,
                                       .layout_index = archetype->layout_index,
                                       .row_count = (uint32_t)quern__archetype_row_count(archetype)});
        const uint32_t most = quern__saving_max_rows(&set);
        for (uint32_t slot = 0; slot < archetype->chunk_count; slot++)
            for (uint32_t first = 0, count; first < archetype->slots[slot].row_count; first += count) {
                const uint32_t left = archetype->slots[slot].row_count - first;
                count = left < most ? left : most;
                save_rows(saving, &set, archetype, slot, first, count);
            }
    }
}

/* ------------------------------------------------------------------------------------------- slots */

/* Sections of one kind that are filled entry by entry. A full section is followed by another one. */
typedef struct open_section {
    quern__archive_writer *writer;
    quern__section_kind kind;
    bool is_open;
} open_section;

static void write_piece(open_section *section, const void *piece, size_t bytes)
{
    enum { PIECES_BYTES = QUERN__SECTION_BYTES / 2 };
    quern__archive_writer *writer = section->writer;
    if (section->is_open && quern__section_bytes(writer) + bytes > PIECES_BYTES) {
        quern__section_end(writer);
        section->is_open = false;
    }
    if (!section->is_open) quern__section_begin(writer, section->kind, PIECES_BYTES);
    section->is_open = true;
    quern__write(&writer->block, piece, bytes);
}

static void end_pieces(const open_section *section)
{
    if (section->is_open) quern__section_end(section->writer);
}

static void save_free_slot(open_section *section, const quern__entities *entities, uint32_t slot,
                           uint32_t handle_high)
{
    const quern__free_section entry = {
        .slot = slot,
        .use_count =
            quern__generation_use_count(entities->first_handle_high, handle_high & QUERN__MAX_GENERATION)};
    write_piece(section, &entry, sizeof entry);
}

/* Writes free slots in the order of reuse: the free list, then the slots of absent pages in ascending
 * order. */
static void save_free_slots(quern__saving *saving)
{
    const quern__entities *entities = &saving->world->storage.entities;
    open_section section = {&saving->writer, QUERN__SECTION_FREE, false};
    for (uint32_t i = entities->first_free; i != QUERN__SLOT_NONE;) {
        const quern__record *slot = quern__entities_record(entities, i);
        save_free_slot(&section, entities, i, slot->handle_high);
        i = slot->archetype_number;
    }
    for (uint32_t page = 0; page < entities->pages.count; page++)
        for (uint32_t i = 0;
             quern__entities_is_absent(entities, page) && i < quern__entities_page_slots(entities, page);
             i++)
            save_free_slot(&section, entities, page * QUERN__PAGE_RECORDS + i,
                           entities->absent_highs.items[page]);
    end_pieces(&section);
}

/* Whether the slot is never reused: it has had its last entity. A slot in the free list is not retired,
 * even if its next entity is the last one. */
static bool is_retired(const quern__entities *entities, uint32_t slot)
{
    const quern__record *record = quern__entities_record(entities, slot);
    if (quern__entities_is_absent(entities, slot >> QUERN__PAGE_RECORDS_LOG2) || record->location != 0 ||
        quern__generation_use_count(entities->first_handle_high, quern__record_generation(record)) !=
            QUERN__MAX_GENERATION)
        return false;
    uint32_t free = entities->first_free;
    while (free != QUERN__SLOT_NONE && free != slot)
        free = quern__entities_record(entities, free)->archetype_number;
    return free == QUERN__SLOT_NONE;
}

static void save_retired_slots(quern__saving *saving)
{
    const quern__entities *entities = &saving->world->storage.entities;
    open_section section = {&saving->writer, QUERN__SECTION_RETIRED, false};
    for (uint32_t i = 0; i < entities->slot_count && entities->retired_count > 0; i++)
        if (is_retired(entities, i)) write_piece(&section, &i, sizeof i);
    end_pieces(&section);
}

void quern__saving_write_name(quern__saving *saving, uint32_t slot)
{
    const quern__name *name = quern__names_of(saving->world->storage.names, slot);
    if (name == NULL) return;
    quern__byte_writer *writer = quern__section_begin(&saving->writer, QUERN__SECTION_NAMES,
                                                      sizeof(uint32_t) + QUERN__ARCHIVE_NAME_LENGTH_BYTES +
                                                          QUERN_MAX_ENTITY_NAME_BYTES);
    quern__write_u32(writer, quern__saving_find_slot(saving, slot));
    quern__write_text(writer, QUERN__ARCHIVE_NAME_LENGTH_BYTES, name->text);
    quern__section_end(&saving->writer);
}

/* ------------------------------------------------------------------------------------------- worlds */

static quern_result save_world(quern__saving *saving, const quern__byte_writer *run)
{
    const quern_world *world = saving->world;
    const quern__storage *storage = &world->storage;
    quern_result result = QUERN_OK;
    for (uint32_t i = 0; i < storage->archetypes.count && result == QUERN_OK; i++) {
        quern__saved_components set;
        result = list_components(saving, storage->archetypes.items[i], &set);
    }
    if (result != QUERN_OK) return result;
    const quern__entities *entities = &world->storage.entities;
    const quern__world_section section = {.first_handle_high = entities->first_handle_high,
                                          .slot_count = entities->slot_count,
                                          .row_count = quern__entities_alive_count(entities),
                                          .free_count = entities->free_count + entities->absent_count,
                                          .retired_count = entities->retired_count,
                                          .next_visit = world->next_visit,
                                          .visit_count = world->visit_count};
    quern__saving_write_types(saving, &section);
    if (!saving->def->skip_resources) {
        const quern__resources *resources = &saving->world->resources;
        result = QUERN_OK;
        for (uint32_t i = 0; i < resources->list.count && result == QUERN_OK; i++) {
            const quern__resource *resource = &resources->list.items[i];
            if (resource->type.field_count == 0) continue;
            save_type(saving, QUERN__SECTION_RESOURCE, (quern__type_section){0}, &resource->type);
            result = save_value(saving, resource);
        }
    }
    if (result != QUERN_OK) return result;
    save_links(saving);
    save_archetypes(saving);
    save_free_slots(saving);
    save_retired_slots(saving);
    for (uint32_t slot = 0; slot < storage->entities.slot_count && storage->names->count > 0; slot++)
        quern__saving_write_name(saving, slot);
    /* the state of schedules */
    enum { RUN_PIECE_BYTES = QUERN__SECTION_BYTES / 2 };
    for (size_t done = 0, piece; done < run->count; done += piece) {
        piece = run->count - done < RUN_PIECE_BYTES ? run->count - done : RUN_PIECE_BYTES;
        quern__write(quern__section_begin(&saving->writer, QUERN__SECTION_RUN, piece), run->bytes + done,
                     piece);
        quern__section_end(&saving->writer);
    }
    return QUERN_OK;
}

quern_result quern__world_save(quern_world *world, quern_sink sink, const quern_save_def *def,
                               const quern__byte_writer *run)
{
    quern__saving saving;
    quern__world_set_locked(world, true); /* the sink may call a function of the program */
    quern_result result = quern__saving_init(&saving, world, def);
    if (result == QUERN_OK) {
        result = quern__saving_start(&saving, sink);
        if (result == QUERN_OK) result = quern__saving_finish(&saving, save_world(&saving, run));
        quern__saving_release(&saving);
    }
    quern__world_set_locked(world, false);
    return result;
}

/* ----------------------------------------------------------------------------------------- sessions */

/* Save sessions: many lists of entities, of which only the first archives have the types. */

struct quern_save_session {
    quern__saving saving;
    quern_save_def def;
    quern__call_memory memory; /* memory of one message */
    uint64_t layout_count;     /* that of the world when the session was created */
};

static quern_result fail_memory(void)
{
    return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "out of memory for a session; nothing has changed");
}

static quern_result create(quern_world *world, const quern_save_def *def, quern_save_session **out_session)
{
    quern_result result = quern__world_check_unlocked(world, "quern_save_session_create");
    if (result == QUERN_OK) result = quern__archive_refuse_schedules(def);
    if (result != QUERN_OK) return result;
    const quern_allocator *allocator = &world->storage.allocator;
    quern_save_session *session = quern__allocate(allocator, sizeof *session, _Alignof(quern_save_session));
    if (session == NULL) return fail_memory();
    session->def = def != NULL ? *def : (quern_save_def){0};
    result = quern__saving_init(&session->saving, world, &session->def);
    session->saving.is_session = true;
    session->layout_count = world->layout_count;
    if (result == QUERN_OK && !quern__call_memory_init(&session->memory, allocator)) {
        quern__saving_release(&session->saving);
        result = fail_memory();
    }
    session->saving.allocator = quern__call_memory_allocator(&session->memory);
    if (result == QUERN_OK)
        *out_session = session;
    else
        quern__release(allocator, session, sizeof *session, _Alignof(quern_save_session));
    return result;
}

quern_result quern_save_session_create(quern_world *world, const quern_save_def *def,
                                       quern_save_session **out_session)
{
    QUERN__NEED(world);
    QUERN__NEED(out_session);
    return quern__in_call(create(world, def, out_session), __func__);
}

void quern_save_session_destroy(quern_save_session *session)
{
    if (session == NULL) return;
    const quern_allocator allocator = session->saving.world->storage.allocator;
    quern__saving_release(&session->saving);
    quern__call_memory_release(&session->memory);
    quern__release(&allocator, session, sizeof *session, _Alignof(quern_save_session));
}

static quern_result write_list(quern_save_session *session, const quern_archive *archive, quern_sink sink)
{
    quern_world *world = session->saving.world;
    quern_result result = quern__world_check_unlocked(world, "quern_save_session_write");
    if (result == QUERN_OK && archive->world != world)
        result = quern__fail(
            QUERN_ERROR_INVALID_ARGUMENT,
            "the list belongs to another world than the session: create a session for its world");
    if (result == QUERN_OK)
        result = quern__redefine_check_since(world, session->layout_count, "the session");
    if (result != QUERN_OK) return result;
    quern__world_set_locked(world, true); /* the sink may call a function of the program */
    result = quern__archive_write(archive, &session->saving, sink);
    quern__world_set_locked(world, false);
    return result;
}

quern_result quern_save_session_write(quern_save_session *session, const quern_archive *archive,
                                      quern_sink sink)
{
    QUERN__NEED(session);
    QUERN__NEED(archive);
    const quern_result result = quern__check_sink(sink, __func__);
    if (result != QUERN_OK) return result;
    return quern__in_call(write_list(session, archive, sink), __func__);
}
