/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Saving a world, or a list of its entities, and sessions of lists.
 *
 * In the archive of a list, the entities have the slots 0, 1, 2 ... in the order of the list, so the archive is a complete
 * small world. Links and handles to entities outside of the list are removed while saving, unless the program has ids for
 * these entities. Entities that have the same components in the archive are saved together. */

#include "core/archive/archive_internal.h"
#include "core/base/text.h"
#include "core/playback/playback.h"
#include "core/query/query_internal.h"
#include "core/storage/list_values.h"

#define NO_TYPE  UINT32_MAX       /* no archive of the session has used the component */
#define NEW_TYPE (UINT32_MAX - 1) /* the present archive is the first that uses it; it has no number yet */

typedef struct saving_state {
    quern_world *world;
    const quern_save_def *def;
    quern_allocator allocator; /* of memory that is needed until the archive is finished */
    quern__archive_writer writer;
    uint32_t *numbers; /* type number, by component index; or one of the values above */
    uint32_t number_count;
    bool is_session; /* several archives are written as messages, which number types together */
    quern__archive_position position; /* of a session: the finished messages */
    uint32_t type_count;              /* types with a number */
    uint32_t known_type_count;        /* those of finished archives */
    const quern__map *selected; /* slot + 1 -> slot in the archive; NULL: all slots are saved unchanged */
    uint32_t selected_count;    /* number of slots in the archive, if `selected` is set */
    quern__byte_writer lists;   /* elements of the lists in the rows of a section */
} saving_state;

/* The components of one archetype in the archive. */
typedef struct saved_components {
    uint32_t component_count;
    uint32_t values_bytes; /* bytes of one row: handle and values */
    uint32_t bit_column_count;
    bool has_lists;
    uint16_t component_indices[QUERN_MAX_ENTITY_COMPONENTS];
} saved_components;

/* Returns the slot in the archive of a slot of the world, or QUERN__SLOT_NONE if it is not saved. */
static uint32_t find_slot(const saving_state *saving, uint32_t slot)
{
    if (saving->selected == NULL) return slot;
    const uint64_t *found = quern__map_find(saving->selected, (uint64_t)slot + 1);
    return found != NULL ? (uint32_t)*found : QUERN__SLOT_NONE;
}

#define OUTSIDE_NONE UINT32_MAX /* number of an entity without id */

/* A target outside of the list. */
typedef struct outside_link {
    uint32_t relation; /* component index of the relation */
    uint32_t source;   /* slot of the source in the archive */
    uint32_t number;   /* index of the target in `ids` */
} outside_link;

typedef struct saved_outside {
    QUERN__ARRAY(uint64_t) ids;
    quern__map numbers;               /* handle of an entity -> index in ids */
    QUERN__ARRAY(outside_link) links; /* by source, then by relation */
    bool lacks_memory;                /* whether an id or a link could not be added */
} saved_outside;

/* ---------------------------------------------------------------------------------- opening and closing */

static quern_result check_leave_out(const quern_world *world, const quern_save_def *def)
{
    const quern__components *components = &world->storage.components;
    uint32_t count;
    quern_result result = quern__list_count(def->leave_out, QUERN_MAX_LEFT_OUT, quern__is_end_of_handles,
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
static quern_result reserve_numbers(saving_state *saving)
{
    const uint32_t wanted = saving->world->storage.components.list.count;
    if (saving->numbers != NULL && wanted <= saving->number_count) return QUERN_OK;
    const quern_allocator *allocator = &saving->world->storage.allocator;
    uint32_t *numbers =
        quern__allocate(allocator, (wanted + 1) * sizeof *numbers, QUERN__ARRAY_ALIGNMENT_BYTES);
    if (numbers == NULL)
        return quern__fail(QUERN_ERROR_OUT_OF_MEMORY,
                           "out of memory for the list of components; nothing was written");
    memset(numbers, 0xFF, (wanted + 1) * sizeof *numbers); /* every number is NO_TYPE */
    if (saving->numbers != NULL) memcpy(numbers, saving->numbers, saving->number_count * sizeof *numbers);
    quern__release(allocator, saving->numbers, (saving->number_count + 1) * sizeof *numbers,
                   QUERN__ARRAY_ALIGNMENT_BYTES);
    saving->numbers = numbers;
    saving->number_count = wanted;
    return QUERN_OK;
}

static quern_result saving_init(saving_state *saving, quern_world *world, const quern_save_def *def)
{
    static const quern_save_def zero;
    *saving = (saving_state){
        .world = world, .def = def != NULL ? def : &zero, .allocator = world->storage.allocator};
    saving->lists.allocator = &world->storage.allocator;
    const quern_result result = check_leave_out(world, saving->def);
    return result == QUERN_OK ? quern__archive_writer_init(&saving->writer, &world->storage.allocator,
                                                           saving->def->compress)
                              : result;
}

static void saving_release(saving_state *saving)
{
    const quern_allocator *allocator = &saving->world->storage.allocator;
    quern__release(allocator, saving->numbers, (saving->number_count + 1) * sizeof *saving->numbers,
                   QUERN__ARRAY_ALIGNMENT_BYTES);
    quern__archive_writer_release(&saving->writer);
    quern__byte_writer_release(&saving->lists);
}

static quern_result saving_start(saving_state *saving, quern_sink sink)
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

static quern_result saving_finish(saving_state *saving, quern_result result)
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
        if (saving->numbers[i] >= saving->known_type_count) saving->numbers[i] = NO_TYPE;
    saving->type_count = saving->known_type_count;
    return result;
}

/* ---------------------------------------------------------------------------------- types and resources */

/* Makes sure that the type of a component is in this archive or in an earlier one of the session: write_types gives it a
 * number. */
static void use_type(saving_state *saving, uint32_t component_index)
{
    if (saving->numbers[component_index] == NO_TYPE) saving->numbers[component_index] = NEW_TYPE;
}

static bool leaves_out(const saving_state *saving, uint32_t component_index)
{
    const quern_component *left_out = saving->def->leave_out;
    for (uint32_t i = 0; i < QUERN_MAX_LEFT_OUT && left_out[i].bits != 0; i++)
        if (quern__component_index(left_out[i]) == component_index) return true;
    return false;
}

static quern_result add_saved_component(saving_state *saving, saved_components *set,
                                        uint32_t component_index, bool has_rows)
{
    const quern__component *component = saving->world->storage.components.list.items[component_index];
    if (has_rows && quern__type_owns_unknown(&component->type))
        return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                           "component '%s' has hooks, so an archive cannot save what its values own: add "
                           "it to leave_out of quern_save_def",
                           component->type.name);
    use_type(saving, component_index);
    set->component_indices[set->component_count++] = (uint16_t)component_index;
    set->values_bytes += component->type.size_bytes;
    set->has_lists |= component->type.lists != NULL;
    set->bit_column_count += quern__column_flags_bit_column_count(component->type.flags);
    return QUERN_OK;
}

static void save_type(saving_state *saving, quern__section_kind kind, quern__type_section section,
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

static quern__type_section describe_component(const saving_state *saving, uint32_t index)
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

static void write_types(saving_state *saving, const quern__world_section *section)
{
    const quern__components *components = &saving->world->storage.components;
    quern__write(quern__section_begin(&saving->writer, QUERN__SECTION_WORLD, sizeof *section), section,
                 sizeof *section);
    quern__section_end(&saving->writer);
    for (uint32_t i = 0; i < components->list.count; i++) {
        if (saving->numbers[i] != NEW_TYPE) continue;
        saving->numbers[i] = saving->type_count++;
        save_type(saving, QUERN__SECTION_TYPE, describe_component(saving, i),
                  quern__components_type(components, i));
    }
}

/* Writes bytes in sections of one kind. */
static void write_pieces(saving_state *saving, quern__section_kind kind, const void *bytes, size_t count)
{
    enum { PIECE_BYTES = QUERN__SECTION_BYTES / 2 };
    for (size_t done = 0, piece; done < count; done += piece) {
        piece = count - done < PIECE_BYTES ? count - done : PIECE_BYTES;
        quern__write(quern__section_begin(&saving->writer, kind, piece), (const char *)bytes + done, piece);
        quern__section_end(&saving->writer);
    }
}

/* Writes the collected elements of lists, after the section of their rows or resource. */
static void write_lists(saving_state *saving)
{
    if (!saving->lists.has_failed)
        write_pieces(saving, QUERN__SECTION_LISTS, saving->lists.bytes, saving->lists.count);
    saving->lists.count = 0;
}

/* Writes the described fields of a resource. All other bytes are written as zero. */
static quern_result save_value(saving_state *saving, const quern__resource *resource)
{
    const quern_allocator *allocator = &saving->world->storage.allocator;
    const uint32_t bytes = resource->type.size_bytes;
    char *value = quern__allocate(allocator, bytes, QUERN_MAX_ALIGNMENT_BYTES);
    if (value == NULL)
        return quern__fail(QUERN_ERROR_OUT_OF_MEMORY,
                           "out of memory for the value of resource '%s'; the archive is incomplete",
                           resource->type.name);
    memset(value, 0, bytes);
    quern__copy_fields(&resource->type, value, resource->value);
    write_pieces(saving, QUERN__SECTION_VALUE, value, bytes);
    quern__release(allocator, value, bytes, QUERN_MAX_ALIGNMENT_BYTES);
    if (resource->type.lists != NULL) {
        quern__type_write_lists(&resource->type, resource->value, &saving->lists, NULL, NULL);
        write_lists(saving);
    }
    return QUERN_OK;
}

/* ------------------------------------------------------------------------------------------------ links */

/* A LINKS section for one target, as it is filled with sources. */
typedef struct links_writer {
    saving_state *saving;
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
    const uint32_t slot = find_slot(it->saving, source);
    const size_t most_bytes = LINKS_HEAD + LINKS_MOST * sizeof slot;
    if (slot == QUERN__SLOT_NONE) return;
    if (it->count == LINKS_MOST) end_links(it);
    if (it->room == NULL)
        it->room = quern__write_room(
            quern__section_begin(&it->saving->writer, QUERN__SECTION_LINKS, most_bytes), most_bytes);
    memcpy(it->room + LINKS_HEAD + it->count++ * sizeof slot, &slot, sizeof slot);
}

static void write_children(saving_state *saving, const quern__relation *relation, uint32_t target)
{
    const quern__edge_list *sources = quern__edges_sources(&relation->edges, target);
    uint32_t child = quern__links_first(&relation->links, target);
    if (child == QUERN__SLOT_NONE && sources->count == 0) return;
    links_writer it = {.saving = saving, .relation = relation, .target = find_slot(saving, target)};
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

/* ------------------------------------------------------------------ links to entities outside of a list */

static uint32_t outside_number(const saving_state *saving, saved_outside *outside, quern_entity entity)
{
    const quern_allocator *allocator = &saving->allocator;
    const uint64_t *known = quern__map_find(&outside->numbers, entity.bits);
    if (known != NULL) return (uint32_t)*known;
    const uint64_t id = saving->def->outside_id(saving->def->user_data, entity);
    if (id == 0) return OUTSIDE_NONE;
    const uint32_t number = outside->ids.count;
    if (!quern__array_reserve(allocator, &outside->ids, number + 1) ||
        !quern__map_reserve(&outside->numbers, allocator, number + 1)) {
        outside->lacks_memory = true;
        return OUTSIDE_NONE;
    }
    outside->ids.items[outside->ids.count++] = id;
    quern__map_put(&outside->numbers, entity.bits, number);
    return number;
}

static void add_link(saving_state *saving, saved_outside *outside, const quern__relation *relation,
                     uint32_t slot, uint32_t target)
{
    const quern__storage *storage = &saving->world->storage;
    if (target == QUERN__SLOT_NONE || find_slot(saving, target) != QUERN__SLOT_NONE) return;
    const uint32_t number = outside_number(saving, outside, quern__entity_of_slot(storage, target));
    if (number == OUTSIDE_NONE) return;
    if (!quern__array_reserve(&saving->allocator, &outside->links, outside->links.count + 1)) {
        outside->lacks_memory = true;
        return;
    }
    outside->links.items[outside->links.count++] =
        (outside_link){relation->component_index, find_slot(saving, slot), number};
    use_type(saving, relation->component_index);
}

static void add_links_outside(saving_state *saving, saved_outside *outside, const quern__relation *relation,
                              uint32_t slot)
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

/* Writes the links by relation, each as a target with one source. */
static void write_links_outside(saving_state *saving, const saved_outside *outside)
{
    enum { ENTRY = 3 * sizeof(uint32_t), MOST_BYTES = QUERN__SECTION_BYTES / 2 / ENTRY * ENTRY };
    const quern__relations *relations = saving->world->storage.relations;
    for (uint32_t r = 0; r < relations->list.count && outside->links.count > 0; r++) {
        const uint32_t relation = relations->list.items[r]->component_index;
        const quern__links_section section = {.relation = saving->numbers[relation]};
        quern__byte_writer *writer = NULL;
        uint32_t left = 0;
        for (uint32_t i = 0; i < outside->links.count; i++) {
            const outside_link *link = &outside->links.items[i];
            if (link->relation != relation) continue;
            if (left == 0) {
                if (writer != NULL) quern__section_end(&saving->writer);
                writer = quern__section_begin(&saving->writer, QUERN__SECTION_LINKS,
                                              sizeof section + MOST_BYTES);
                quern__write(writer, &section, sizeof section);
                left = MOST_BYTES / ENTRY;
            }
            const uint32_t entry[] = {saving->selected_count + link->number, 1, link->source};
            quern__write(writer, entry, sizeof entry);
            left--;
        }
        if (writer != NULL) quern__section_end(&saving->writer);
    }
}

/* ------------------------------------------------------------------------------------------------- rows */

static void write_archetype(saving_state *saving, const saved_components *set,
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

static size_t rows_bytes(const saved_components *set, uint32_t row_count)
{
    return sizeof(quern__rows_section) + (size_t)row_count * set->values_bytes +
           set->bit_column_count * (sizeof(uint64_t) + quern__archived_row_bits_bytes(row_count));
}

static uint32_t max_rows(const saved_components *set)
{
    uint32_t most = QUERN__BIT_COLUMN_MAX_ROWS;
    while (most > 1 && rows_bytes(set, most) > QUERN__SECTION_BYTES)
        most /= 2;
    return most;
}

/* Consecutive rows of one run of chunks. */
typedef struct row_run {
    const quern__archetype *archetype;
    uintptr_t location;
    uint32_t count;
} row_run;

/* The rows of a section. The rows of a world are one run. */
typedef struct saved_rows {
    const uint32_t
        *list_indices; /* by row: index of its entity in the list; NULL: the rows of a world are saved */
    uint32_t row_count, run_count;
    const row_run *runs;
    struct selecting *selecting; /* how handles in values of a list are mapped */
} saved_rows;

static quern_entity handle_in_list(uint32_t list_index)
{
    return quern__entity_make(1, QUERN__LIST_USE_COUNT, list_index);
}

static quern_entity map_list_handle(void *argument, quern_entity entity);

static void save_column(saving_state *saving, quern__byte_writer *writer, uint32_t index,
                        const saved_rows *rows)
{
    enum { PREFETCHED_RUNS = 8 };
    const quern__type *type = quern__components_type(&saving->world->storage.components, index);
    const size_t size_bytes = type->size_bytes;
    if (size_bytes == 0) return;
    char *const values = quern__write_room(writer, rows->row_count * size_bytes);
    assert(values != NULL); /* the section has room for all columns */
    char *target = values;
    const quern__archetype *archetype = NULL;
    quern__column_position position = {0};
    for (uint32_t i = 0; i < rows->run_count; i++) {
        const row_run *run = &rows->runs[i];
        if (run->archetype != archetype)
            position = quern__archetype_column_position(archetype = run->archetype, index);
        if (i + PREFETCHED_RUNS < rows->run_count)
            QUERN__PREFETCH(quern__position_value(position, run[PREFETCHED_RUNS].location));
        if (run->count == 1)
            quern__copy_value(target, quern__position_value(position, run->location), size_bytes);
        else
            memcpy(target, quern__position_value(position, run->location), run->count * size_bytes);
        target += run->count * size_bytes;
    }
    for (uint32_t i = 0; type->lists != NULL && i < rows->row_count; i++) {
        quern__type_write_lists(type, values + i * size_bytes, &saving->lists,
                                rows->selecting != NULL ? map_list_handle : NULL, rows->selecting);
        quern__type_clear_lists(type, values + i * size_bytes);
    }
    for (uint32_t i = 0; rows->selecting != NULL && type->has_entity_fields && i < rows->row_count; i++)
        quern__type_remap(type, values + i * size_bytes, map_list_handle, rows->selecting);
}

/* Writes the number of set bits of a bit column and, unless it is 0, the words. */
static void save_bit_column(quern__byte_writer *writer, quern__bit_column which, const saved_rows *rows)
{
    const size_t bytes = quern__archived_row_bits_bytes(rows->row_count);
    uint64_t words[QUERN__BIT_COLUMN_ROW_WORDS] = {0}, count = 0;
    for (uint32_t i = 0, row = 0; i < rows->run_count; row += rows->runs[i++].count) {
        const row_run *run = &rows->runs[i];
        const quern__row_bits *row_bits = run->archetype->row_bits;
        const uint32_t bit_column = quern__row_bits_find_column(row_bits, which.kind, which.id);
        const uint32_t slot = quern__chunk_index_at(row_bits->shape, run->location);
        if (slot == quern__chunk_index_at(row_bits->shape, run->location + run->count - 1) &&
            quern__bit_column_count(row_bits, bit_column, slot) == 0)
            continue;
        for (uint32_t k = 0; k < run->count; k++)
            if (quern__bit_column_test(row_bits, bit_column, run->location + k)) {
                words[(row + k) / 64] |= UINT64_C(1) << (row + k) % 64;
                count++;
            }
    }
    quern__write_u64(writer, count);
    if (count > 0) quern__write(writer, words, bytes);
}

static void save_rows(saving_state *saving, const saved_components *set, const saved_rows *rows)
{
    const quern__components *components = &saving->world->storage.components;
    const quern__rows_section section = {.row_count = rows->row_count};
    quern__byte_writer *writer =
        quern__section_begin(&saving->writer, QUERN__SECTION_ROWS, rows_bytes(set, rows->row_count));
    quern__write(writer, &section, sizeof section);
    if (rows->list_indices == NULL) {
        const quern__archetype *archetype = rows->runs->archetype;
        const uintptr_t location = rows->runs->location;
        quern__write(writer,
                     quern__archetype_entities(archetype, quern__chunk_of(&archetype->shape, location)) +
                         quern__location_row(&archetype->shape, location),
                     rows->row_count * sizeof(quern_entity));
    }
    for (uint32_t i = 0; rows->list_indices != NULL && i < rows->row_count; i++)
        quern__write_u64(writer, handle_in_list(rows->list_indices[i]).bits);
    for (uint32_t i = 0; i < set->component_count; i++)
        save_column(saving, writer, set->component_indices[i], rows);
    for (uint32_t flag = 0; flag < QUERN__ROW_FLAG_COUNT && set->bit_column_count > 0; flag++)
        for (uint32_t i = 0; i < set->component_count; i++)
            if (quern__components_has_flag(components, set->component_indices[i], 1u << flag))
                save_bit_column(writer, (quern__bit_column){flag, set->component_indices[i]}, rows);
    quern__section_end(&saving->writer);
    if (set->has_lists) write_lists(saving);
}

/* ----------------------------------------------------------------------------------------------- worlds */

static void save_links(saving_state *saving)
{
    const quern__relations *relations = saving->world->storage.relations;
    for (uint32_t r = 0; r < relations->list.count; r++) {
        const quern__relation *relation = relations->list.items[r];
        const quern__links *links = &relation->links;
        for (uint32_t page = 0; page < links->pages.count; page++)
            for (uint32_t i = 0; links->pages.items[page] != NULL && i < QUERN__LINK_PAGE_SLOTS; i++)
                if (links->pages.items[page][i].count > 0)
                    write_children(saving, relation, page * QUERN__LINK_PAGE_SLOTS + i);
        const quern__edges *edges = &relation->edges;
        for (uint32_t page = 0; page < edges->pages.count; page++)
            for (uint32_t i = 0; edges->pages.items[page] != NULL && i < QUERN__EDGE_PAGE_SLOTS; i++)
                if (edges->pages.items[page][i].sources.count > 0)
                    write_children(saving, relation, page * QUERN__EDGE_PAGE_SLOTS + i);
    }
}

static quern_result list_world_components(saving_state *saving, const quern__archetype *archetype,
                                          saved_components *out_set)
{
    quern_result result = QUERN_OK;
    *out_set = (saved_components){.values_bytes = sizeof(quern_entity)};
    for (uint32_t i = 0; i < archetype->component_count && result == QUERN_OK; i++)
        if (!leaves_out(saving, archetype->component_indices[i]))
            result = add_saved_component(saving, out_set, archetype->component_indices[i],
                                         archetype->chunk_count > 0);
    return result;
}

/* Writes all archetypes, also those without rows: the layout of an archetype depends on how many
 * archetypes were created before it. */
static void save_archetypes(saving_state *saving)
{
    const quern__storage *storage = &saving->world->storage;
    for (uint32_t i = 0; i < storage->archetypes.count; i++) {
        const quern__archetype *archetype = storage->archetypes.items[i];
        saved_components set;
        const quern_result result = list_world_components(saving, archetype, &set);
        assert(result ==
               QUERN_OK); /* the first pass over the archetypes has succeeded with the same arguments */
        (void)result;
        write_archetype(
            saving, &set,
            (quern__archetype_section){.empty_since = archetype->empty_since,
                                       .layout_index = archetype->layout_index,
                                       .row_count = (uint32_t)quern__archetype_row_count(archetype)});
        const uint32_t most = max_rows(&set);
        for (uint32_t slot = 0; slot < archetype->chunk_count; slot++)
            for (uint32_t first = 0, count; first < archetype->slots[slot].row_count; first += count) {
                const uint32_t left = archetype->slots[slot].row_count - first;
                count = left < most ? left : most;
                const row_run run = {
                    archetype, quern__location_make(quern__slot_chunk(&archetype->slots[slot]), first),
                    count};
                save_rows(saving, &set, &(saved_rows){.row_count = count, .run_count = 1, .runs = &run});
            }
    }
}

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
static void save_free_slots(saving_state *saving)
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

static void save_retired_slots(saving_state *saving)
{
    const quern__entities *entities = &saving->world->storage.entities;
    open_section section = {&saving->writer, QUERN__SECTION_RETIRED, false};
    for (uint32_t i = 0; i < entities->slot_count && entities->retired_count > 0; i++)
        if (is_retired(entities, i)) write_piece(&section, &i, sizeof i);
    end_pieces(&section);
}

static void write_name(saving_state *saving, uint32_t slot)
{
    const quern__name *name = quern__names_of(saving->world->storage.names, slot);
    if (name == NULL) return;
    quern__byte_writer *writer = quern__section_begin(&saving->writer, QUERN__SECTION_NAMES,
                                                      sizeof(uint32_t) + QUERN__ARCHIVE_NAME_LENGTH_BYTES +
                                                          QUERN_MAX_ENTITY_NAME_BYTES);
    quern__write_u32(writer, find_slot(saving, slot));
    quern__write_text(writer, QUERN__ARCHIVE_NAME_LENGTH_BYTES, name->text);
    quern__section_end(&saving->writer);
}

static quern_result save_world(saving_state *saving, const quern__byte_writer *run)
{
    const quern_world *world = saving->world;
    const quern__storage *storage = &world->storage;
    quern_result result = QUERN_OK;
    for (uint32_t i = 0; i < storage->archetypes.count && result == QUERN_OK; i++) {
        saved_components set;
        result = list_world_components(saving, storage->archetypes.items[i], &set);
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
    write_types(saving, &section);
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
        write_name(saving, slot);
    write_pieces(saving, QUERN__SECTION_RUN, run->bytes, run->count);
    return QUERN_OK;
}

quern_result quern__world_save(quern_world *world, quern_sink sink, const quern_save_def *def,
                               const quern__byte_writer *run)
{
    saving_state saving;
    quern__world_set_locked(world, true); /* the sink may call a function of the program */
    quern_result result = saving_init(&saving, world, def);
    if (result == QUERN_OK) {
        result = saving_start(&saving, sink);
        if (result == QUERN_OK) result = saving_finish(&saving, save_world(&saving, run));
        saving_release(&saving);
    }
    quern__world_set_locked(world, false);
    return result;
}

/* ------------------------------------------------------------------------------------ lists of entities */

struct quern_archive {
    quern_world *world;
    quern_world_user user;
    QUERN__ARRAY(quern_entity) entities;
    quern__map slots; /* slot + 1 -> index in `entities` */
};

quern_result quern_archive_create(quern_world *world, quern_archive **out_archive)
{
    QUERN__NEED(world);
    QUERN__NEED(out_archive);
    const quern_result result = quern__world_check_unlocked(world, __func__);
    if (result != QUERN_OK) return result;
    quern_archive *archive =
        quern__allocate(&world->storage.allocator, sizeof *archive, _Alignof(quern_archive));
    if (archive == NULL)
        return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "%s: out of memory for a list of entities", __func__);
    *archive = (quern_archive){.world = world, .user = {.name = "a list of entities (quern_archive)"}};
    *out_archive = archive;
    return quern_world_add_user(world, &archive->user);
}

void quern_archive_destroy(quern_archive *archive)
{
    if (archive == NULL) return;
    quern_world_remove_user(archive->world, &archive->user);
    const quern_allocator *allocator = &archive->world->storage.allocator;
    quern__array_release(allocator, &archive->entities);
    quern__map_release(&archive->slots, allocator);
    quern__release(allocator, archive, sizeof *archive, _Alignof(quern_archive));
}

void quern_archive_clear(quern_archive *archive)
{
    if (archive == NULL) {
        quern__fail_null(__func__, "archive");
        return;
    }
    for (uint32_t i = 0; i < archive->entities.count; i++)
        quern__map_clear_key(&archive->slots, (uint64_t)quern_entity_index(archive->entities.items[i]) + 1);
    archive->entities.count = 0;
}

uint32_t quern_archive_count(const quern_archive *archive)
{
    return archive != NULL ? archive->entities.count : 0;
}

static quern_result reserve(quern_archive *archive, uint64_t more)
{
    const quern_allocator *allocator = &archive->world->storage.allocator;
    const uint64_t count = archive->entities.count + more;
    if (count < UINT32_MAX / 4 && quern__array_reserve(allocator, &archive->entities, (uint32_t)count) &&
        quern__map_reserve(&archive->slots, allocator, (uint32_t)count))
        return QUERN_OK;
    return quern__fail(QUERN_ERROR_OUT_OF_MEMORY,
                       "out of memory for a list of %llu entities; the list is unchanged",
                       (unsigned long long)count);
}

/* Adds an entity to the list. If the list contains its slot, the entity is the same, or replaces a dead
 * one. Precondition: memory is reserved. */
static void add_entity(quern_archive *archive, quern_entity entity)
{
    const uint64_t key = (uint64_t)quern_entity_index(entity) + 1;
    const uint64_t *list_index = quern__map_find(&archive->slots, key);
    if (list_index != NULL) {
        archive->entities.items[*list_index] = entity;
        return;
    }
    quern__map_put(&archive->slots, key, archive->entities.count);
    archive->entities.items[archive->entities.count++] = entity;
}

static quern_result check_call(const quern_archive *archive, const void *what, const char *name,
                               const char *function)
{
    if (archive == NULL) return quern__fail_null(function, "archive");
    if (what == NULL) return quern__fail_null(function, name);
    return quern__world_check_unlocked(archive->world, function);
}

quern_result quern_archive_append(quern_archive *archive, const quern_entity *entities, uint32_t count)
{
    quern_result result =
        check_call(archive, count > 0 ? entities : (const void *)"", "entities", __func__);
    if (result != QUERN_OK) return result;
    for (uint32_t i = 0; i < count && result == QUERN_OK; i++) {
        result = quern__entities_check(&archive->world->storage.entities, entities[i]);
        if (result != QUERN_OK) quern__message_add_element(result, "entity", i);
    }
    if (result == QUERN_OK) result = reserve(archive, count);
    for (uint32_t i = 0; i < count && result == QUERN_OK; i++)
        add_entity(archive, entities[i]);
    return quern__in_call(result, __func__);
}

quern_result quern_archive_append_query(quern_archive *archive, quern_query *query)
{
    quern_result result = check_call(archive, query, "query", __func__);
    if (result != QUERN_OK) return result;
    if (query->world != archive->world)
        return quern__fail(
            QUERN_ERROR_INVALID_ARGUMENT,
            "%s: the query belongs to another world than the list: create it for the world of the list",
            __func__);
    /* an upper bound: iterating twice would change what a query with change filters finds */
    result = reserve(archive, quern__entities_alive_count(&archive->world->storage.entities));
    if (result != QUERN_OK) return quern__in_call(result, __func__);
    quern_query_iterator it = quern_query_iterate(query);
    const uint32_t count = archive->entities.count;
    while (quern_query_next(&it))
        for (uint32_t i = 0; i < it.view.count; i++)
            add_entity(archive, it.view.entities[i]);
    if (it.result != QUERN_OK)
        while (archive->entities.count > count)
            quern__map_remove(
                &archive->slots,
                (uint64_t)quern_entity_index(archive->entities.items[--archive->entities.count]) + 1);
    return quern__in_call(it.result, __func__);
}

quern_result quern_archive_append_tree(quern_archive *archive, quern_entity root)
{
    quern_result result = check_call(archive, "", "", __func__);
    if (result != QUERN_OK) return result;
    const quern__storage *storage = &archive->world->storage;
    result = quern__entities_check(&storage->entities, root);
    if (result != QUERN_OK) return quern__in_call(result, __func__);
    if (storage->relations->parent == NULL) return quern_archive_append(archive, &root, 1);
    const quern__links *links = &storage->relations->parent->links;
    const uint32_t top = quern_entity_index(root);
    uint64_t count = 0;
    for (uint32_t slot = top; slot != QUERN__SLOT_NONE; slot = quern__links_next_below(links, top, slot))
        count++;
    result = reserve(archive, count);
    for (uint32_t slot = top; slot != QUERN__SLOT_NONE && result == QUERN_OK;
         slot = quern__links_next_below(links, top, slot))
        add_entity(
            archive,
            (quern_entity){(uint64_t)quern__entities_record(&storage->entities, slot)->handle_high << 32 |
                           slot});
    return quern__in_call(result, __func__);
}

/* ---------------------------------------------------------------------------------------- saving a list */

/* Entities of the list that have the same components in the archive, by their indices in the list. */
typedef struct entity_group {
    saved_components set;
    uint64_t next; /* 1 + index of the next group with the same hash; 0: none */
    QUERN__ARRAY(uint32_t) list_indices;
} entity_group;

typedef struct selecting {
    const quern_archive *archive;
    saving_state *saving;
    QUERN__ARRAY(entity_group) groups;
    quern__map group_of_hash; /* hash of the components -> 1 + index of the first group */
    /* By index of the archetype: 1 + index of the group of all its entities; 0: none so far, or its entities may
     * have different components in the archive. */
    QUERN__ARRAY(uint32_t) group_of_archetype;
    saved_outside outside;
} selecting;

static quern_entity map_list_handle(void *argument, quern_entity entity)
{
    selecting *it = argument;
    if (quern__entities_find(&it->saving->world->storage.entities, entity) == NULL)
        return (quern_entity){0};
    const uint32_t list_index = find_slot(it->saving, quern_entity_index(entity));
    if (list_index != QUERN__SLOT_NONE) return handle_in_list(list_index);
    if (it->saving->def->outside_id == NULL) return (quern_entity){0};
    const uint32_t number = outside_number(it->saving, &it->outside, entity);
    return number != OUTSIDE_NONE ? quern__entity_make(1, QUERN__OUTSIDE_USE_COUNT, number)
                                  : (quern_entity){0};
}

/* Whether the list contains one of the entity's targets in a relation with several. */
static bool has_edge_in_list(const selecting *it, const quern__relation *relation, uint32_t slot)
{
    const quern__edge_list *targets = quern__edges_targets(&relation->edges, slot);
    for (uint32_t i = 0; i < quern__edge_list_ranges(targets); i++) {
        const quern__edge_range range = quern__edge_list_range(targets, i);
        for (uint32_t k = 0; k < range.count; k++)
            if (find_slot(it->saving, range.slots[k]) != QUERN__SLOT_NONE) return true;
    }
    return false;
}

/* Returns the entity's level if only the entities of the list existed; 0: its target is not in the list. Returns 1 for
 * an entity with several targets, at least one of them in the list. */
static uint32_t level_in_list(const selecting *it, const quern__relation *relation, uint32_t slot)
{
    uint32_t level = 0;
    if (relation->is_many) return has_edge_in_list(it, relation, slot);
    while (level < QUERN_MAX_RELATION_LEVEL) {
        slot = quern__links_target(&relation->links, slot);
        if (slot == QUERN__SLOT_NONE || find_slot(it->saving, slot) == QUERN__SLOT_NONE) break;
        level++;
    }
    return level;
}

static bool is_disabled_tag(const quern__storage *storage, uint32_t index, uint32_t which)
{
    return storage->disabled_index != QUERN__NO_COMPONENT && index == storage->disabled_index + which;
}

/* Whether the entity is disabled through a parent outside of the list, itself or with entities of the list above it.
 * It is saved as enabled then. */
static bool is_disabled_from_outside(const selecting *it, uint32_t slot)
{
    const quern__storage *storage = &it->saving->world->storage;
    const quern__relation *parent = storage->relations->parent;
    for (; parent != NULL && find_slot(it->saving, slot) != QUERN__SLOT_NONE;) {
        const quern__archetype *archetype =
            quern__storage_archetype_of(storage, quern__entities_record(&storage->entities, slot));
        if (!quern__archetype_has(archetype, storage->disabled_index) ||
            !quern__archetype_has(archetype, storage->disabled_index + 1))
            return false;
        slot = quern__links_target(&parent->links, slot);
        if (slot == QUERN__SLOT_NONE) return false;
    }
    return parent != NULL;
}

/* Whether the component has the value of an edge that is not saved: with one target per source, the target is outside of
 * the list, and targets outside have no ids. */
static bool is_value_of_lost_edge(const selecting *it, uint32_t index, uint32_t slot)
{
    const quern__components *components = &it->saving->world->storage.components;
    const uint32_t owner = components->list.items[index]->edge_owner;
    return owner != 0 && it->saving->def->outside_id == NULL &&
           level_in_list(it, components->list.items[owner - 1]->managed.relation, slot) == 0;
}

/* Adds a component as it is in the archive: relations may have another level, or be omitted. Notes targets outside of
 * the list. */
static quern_result add_component(selecting *it, saved_components *set, uint32_t index, uint32_t slot)
{
    const quern__storage *storage = &it->saving->world->storage;
    const quern__managed *managed = &storage->components.list.items[index]->managed;
    if (managed->relation != NULL) {
        const uint32_t level = level_in_list(it, managed->relation, slot);
        if (managed->level == 0 && it->saving->def->outside_id != NULL)
            add_links_outside(it->saving, &it->outside, managed->relation, slot);
        if (level == 0) return QUERN_OK;
        if (managed->level > 0) index = quern__relation_tag(managed->relation, level);
    } else if (is_value_of_lost_edge(it, index, slot) || leaves_out(it->saving, index) ||
               ((is_disabled_tag(storage, index, 0) || is_disabled_tag(storage, index, 1)) &&
                is_disabled_from_outside(it, slot))) {
        return QUERN_OK;
    }
    return add_saved_component(it->saving, set, index, true);
}

static size_t indices_bytes(const saved_components *set)
{
    return set->component_count * sizeof set->component_indices[0];
}

static quern_result fail_group_memory(const selecting *it)
{
    return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "out of memory to group %u entities; nothing was written",
                       it->archive->entities.count);
}

/* Whether all entities of the archetype have the same components in the archive: no component depends on the list. */
static bool has_fixed_components(const selecting *it, const quern__archetype *archetype)
{
    const quern__storage *storage = &it->saving->world->storage;
    for (uint32_t i = 0; i < archetype->component_count; i++) {
        const uint32_t index = archetype->component_indices[i];
        if (storage->components.list.items[index]->managed.relation != NULL ||
            is_disabled_tag(storage, index, 1))
            return false;
    }
    return true;
}

/* Finds or adds the group of an entity that is the first of its archetype, or whose components depend on the
 * list. Stores its index. */
static quern_result find_or_add_group(selecting *it, const quern__archetype *archetype, uint32_t slot,
                                      uint32_t *out_index)
{
    saved_components set = {.values_bytes = sizeof(quern_entity)};
    quern_result result = QUERN_OK;
    for (uint32_t i = 0; i < archetype->component_count && result == QUERN_OK; i++)
        result = add_component(it, &set, archetype->component_indices[i], slot);
    if (result != QUERN_OK) return result;
    const uint64_t hash =
        quern__hash_bytes(set.component_count, set.component_indices, indices_bytes(&set)) | 1;
    const uint64_t *known = quern__map_find(&it->group_of_hash, hash);
    uint64_t number = known != NULL ? *known : 0; /* of the group, plus 1 */
    while (number != 0) {
        const entity_group *group = &it->groups.items[number - 1];
        if (group->set.component_count == set.component_count &&
            memcmp(group->set.component_indices, set.component_indices, indices_bytes(&set)) == 0)
            break;
        number = group->next;
    }
    if (number == 0) {
        const quern_allocator *allocator = &it->saving->allocator;
        if (!quern__array_reserve(allocator, &it->groups, it->groups.count + 1) ||
            !quern__map_reserve(&it->group_of_hash, allocator, it->group_of_hash.count + 1))
            return fail_group_memory(it);
        uint64_t *first = quern__map_find(&it->group_of_hash, hash);
        it->groups.items[it->groups.count++] =
            (entity_group){.set = set, .next = first != NULL ? *first : 0};
        number = it->groups.count;
        if (first != NULL)
            *first = number;
        else
            quern__map_put(&it->group_of_hash, hash, number);
    }
    *out_index = (uint32_t)number - 1;
    if (has_fixed_components(it, archetype))
        it->group_of_archetype.items[archetype->index] = *out_index + 1;
    return QUERN_OK;
}

static quern_result group_all(selecting *it)
{
    const quern__storage *storage = &it->saving->world->storage;
    const uint32_t archetype_count = storage->archetypes.count;
    if (!quern__array_reserve(&it->saving->allocator, &it->group_of_archetype, archetype_count))
        return fail_group_memory(it);
    if (archetype_count > 0) memset(it->group_of_archetype.items, 0, archetype_count * sizeof(uint32_t));
    for (uint32_t i = 0; i < it->archive->entities.count; i++) {
        const quern_entity entity = it->archive->entities.items[i];
        const quern__record *record = quern__entities_find(&storage->entities, entity);
        if (record == NULL)
            return quern__message_add_element(quern__entities_check(&storage->entities, entity), "entity",
                                              i);
        const quern__archetype *archetype = quern__storage_archetype_of(storage, record);
        /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): the world has archetypes */
        uint32_t index = it->group_of_archetype.items[archetype->index];
        if (index > 0) {
            index--;
        } else {
            const quern_result result =
                find_or_add_group(it, archetype, quern_entity_index(entity), &index);
            if (result != QUERN_OK) return result;
        }
        entity_group *group = &it->groups.items[index];
        if (!quern__array_reserve(&it->saving->allocator, &group->list_indices,
                                  group->list_indices.count + 1))
            return fail_group_memory(it);
        group->list_indices.items[group->list_indices.count++] = i;
    }
    return QUERN_OK;
}

/* Writes all groups, with the layouts that they would have in a world without other archetypes. */
static void save_groups(selecting *it)
{
    const quern__storage *storage = &it->saving->world->storage;
    row_run runs[QUERN__BIT_COLUMN_MAX_ROWS];
    uint32_t count_before = 0;
    for (uint32_t i = 0; i < it->groups.count; i++) {
        const uint32_t type_count = it->groups.items[i].set.component_count;
        const entity_group *group = &it->groups.items[i];
        const uint32_t layout_index = quern__archived_least_layout_index(type_count, count_before);
        const uint32_t most = max_rows(&group->set);
        write_archetype(it->saving, &group->set,
                        (quern__archetype_section){.layout_index = layout_index,
                                                   .row_count = group->list_indices.count});
        for (uint32_t first = 0, count; first < group->list_indices.count; first += count) {
            const uint32_t left = group->list_indices.count - first;
            count = left < most ? left : most;
            const uint32_t *list_indices = group->list_indices.items + first;
            uint32_t run_count = 0;
            for (uint32_t k = 0; k < count; k++) {
                const quern_entity entity = it->archive->entities.items[list_indices[k]];
                const quern__record *record =
                    quern__entities_record(&storage->entities, quern_entity_index(entity));
                const quern__archetype *archetype = quern__storage_archetype_of(storage, record);
                row_run *last = run_count > 0 ? &runs[run_count - 1] : NULL;
                if (last != NULL && last->location + last->count == record->location)
                    last->count++;
                else
                    runs[run_count++] = (row_run){archetype, record->location, 1};
            }
            save_rows(it->saving, &group->set, &(saved_rows){list_indices, count, run_count, runs, it});
        }
        count_before += type_count > 0;
    }
}

static quern_result save_selected(selecting *it)
{
    const quern_result result = group_all(it);
    if (result != QUERN_OK) return result;
    const uint32_t count = it->archive->entities.count;
    const quern__world_section head = {.first_handle_high = (uint32_t)(handle_in_list(0).bits >> 32),
                                       .slot_count = count,
                                       .row_count = count};
    write_types(it->saving, &head);
    const quern__relations *relations = it->saving->world->storage.relations;
    for (uint32_t r = 0; r < relations->list.count; r++) {
        const quern__relation *relation = relations->list.items[r];
        const bool has_links = relation->links.pages.count > 0 || relation->edges.count > 0;
        for (uint32_t i = 0; i < it->archive->entities.count && has_links; i++)
            write_children(it->saving, relation, quern_entity_index(it->archive->entities.items[i]));
    }
    write_links_outside(it->saving, &it->outside);
    save_groups(it);
    write_pieces(it->saving, QUERN__SECTION_OUTSIDE, it->outside.ids.items,
                 it->outside.ids.count * sizeof *it->outside.ids.items);
    const quern__names *names = it->saving->world->storage.names;
    for (uint32_t i = 0; i < it->archive->entities.count && names->count > 0; i++)
        write_name(it->saving, quern_entity_index(it->archive->entities.items[i]));
    if (it->outside.lacks_memory)
        return quern__fail(
            QUERN_ERROR_OUT_OF_MEMORY,
            "out of memory for the ids of entities outside of the list; the archive is incomplete");
    return QUERN_OK;
}

static quern_result write_archive(const quern_archive *archive, saving_state *saving, quern_sink sink)
{
    const quern_allocator *allocator = &saving->allocator;
    selecting it = {.archive = archive, .saving = saving};
    quern_result result = saving_start(saving, sink);
    if (result != QUERN_OK) return result;
    saving->selected = &archive->slots;
    saving->selected_count = archive->entities.count;
    result = saving_finish(saving, save_selected(&it));
    for (uint32_t i = 0; i < it.groups.count; i++)
        quern__array_release(allocator, &it.groups.items[i].list_indices);
    quern__array_release(allocator, &it.groups);
    quern__array_release(allocator, &it.group_of_archetype);
    quern__map_release(&it.group_of_hash, allocator);
    quern__array_release(allocator, &it.outside.ids);
    quern__array_release(allocator, &it.outside.links);
    quern__map_release(&it.outside.numbers, allocator);
    return result;
}

static quern_result refuse_schedules(const quern_save_def *def)
{
    if (def == NULL || def->schedules[0] == NULL) return QUERN_OK;
    return quern__fail(
        QUERN_ERROR_INVALID_ARGUMENT,
        "schedules is set, but a list of entities has no state of schedules: save the whole world "
        "(quern_world_save)");
}

quern_result quern_archive_save(const quern_archive *archive, quern_sink sink, const quern_save_def *def)
{
    quern_result result = check_call(archive, "", "", __func__);
    if (result == QUERN_OK) result = quern__check_sink(sink, __func__);
    if (result != QUERN_OK) return result;
    saving_state saving;
    result = refuse_schedules(def);
    if (result == QUERN_OK) result = saving_init(&saving, archive->world, def);
    if (result != QUERN_OK) return quern__in_call(result, __func__);
    quern__world_set_locked(archive->world, true); /* the sink may call a function of the program */
    result = write_archive(archive, &saving, sink);
    quern__world_set_locked(archive->world, false);
    saving_release(&saving);
    return quern__in_call(result, __func__);
}
/* --------------------------------------------------------------------------------------------- sessions */

/* Save sessions: many lists of entities, of which only the first archives have the types. */

struct quern_save_session {
    saving_state saving;
    quern_world_user user;
    quern_save_def def;
    quern__call_memory memory; /* memory of one message */
    uint64_t layout_count;     /* that of the world when the session was created */
};

static quern_result create(quern_world *world, const quern_save_def *def, quern_save_session **out_session)
{
    quern_result result = quern__world_check_unlocked(world, "quern_save_session_create");
    if (result == QUERN_OK) result = refuse_schedules(def);
    if (result != QUERN_OK) return result;
    const quern_allocator *allocator = &world->storage.allocator;
    quern_save_session *session = quern__allocate(allocator, sizeof *session, _Alignof(quern_save_session));
    if (session != NULL) {
        session->def = def != NULL ? *def : (quern_save_def){0};
        result = saving_init(&session->saving, world, &session->def);
    }
    if (session != NULL && result == QUERN_OK && !quern__call_memory_init(&session->memory, allocator)) {
        saving_release(&session->saving);
        quern__release(allocator, session, sizeof *session, _Alignof(quern_save_session));
        session = NULL;
    }
    if (session == NULL)
        return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "out of memory for a session; nothing has changed");
    session->saving.is_session = true;
    session->layout_count = world->layout_count;
    session->saving.allocator = quern__call_memory_allocator(&session->memory);
    session->user = (quern_world_user){.name = "a session that saves (quern_save_session)"};
    if (result == QUERN_OK) result = quern_world_add_user(world, &session->user);
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
    quern_world_remove_user(session->saving.world, &session->user);
    const quern_allocator allocator = session->saving.world->storage.allocator;
    saving_release(&session->saving);
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
    result = write_archive(archive, &session->saving, sink);
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
