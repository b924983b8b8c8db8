/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Archives of selected entities. In the archive, the entities have the slots 0, 1, 2 ... in the order of
 * the list, so the archive is a complete small world. Links and handles to entities outside of the list
 * are removed while saving, unless the program has ids for these entities (save.h). Entities that
 * have the same components in the archive are saved together. */

#include "core/archive/save.h"
#include "core/base/text.h"
#include "core/query/query_internal.h"
#include "core/storage/list_values.h"

/* Entities of the list that have the same components in the archive, by their indices in the list. */
typedef struct entity_group {
    quern__saved_components set;
    uint64_t next; /* 1 + index of the next group with the same hash; 0: none */
    QUERN__ARRAY(uint32_t) list_indices;
} entity_group;

typedef struct selecting {
    const quern_archive *archive;
    quern__saving *saving;
    QUERN__ARRAY(entity_group) groups;
    quern__map group_of_hash; /* hash of the components -> 1 + index of the first group */
    /* By index of the archetype: 1 + index of the group of all its entities; 0: none so far, or its entities may
     * have different components in the archive. */
    QUERN__ARRAY(uint32_t) group_of_archetype;
    quern__saved_outside outside;
} selecting;

/* ---------------------------------------------------------------------------------- list of entities */

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
    *archive = (quern_archive){.world = world};
    *out_archive = archive;
    return QUERN_OK;
}

void quern_archive_destroy(quern_archive *archive)
{
    if (archive == NULL) return;
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

/* Returns the next slot of the tree below `root`, parents before children, or QUERN__SLOT_NONE at the
 * end. */
static uint32_t next_below(const quern__links *links, uint32_t root, uint32_t slot)
{
    const uint32_t first = quern__links_first(links, slot);
    if (first != QUERN__SLOT_NONE) return first;
    while (slot != root && quern__links_at(links, slot)->next == QUERN__SLOT_NONE)
        slot = quern__links_at(links, slot)->target;
    return slot != root ? quern__links_at(links, slot)->next : QUERN__SLOT_NONE;
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
    for (uint32_t slot = top; slot != QUERN__SLOT_NONE; slot = next_below(links, top, slot))
        count++;
    result = reserve(archive, count);
    for (uint32_t slot = top; slot != QUERN__SLOT_NONE && result == QUERN_OK;
         slot = next_below(links, top, slot))
        add_entity(
            archive,
            (quern_entity){(uint64_t)quern__entities_record(&storage->entities, slot)->handle_high << 32 |
                           slot});
    return quern__in_call(result, __func__);
}

/* ------------------------------------------------------------------------------------------ groups */

/* Whether the list contains one of the entity's targets in a relation with several. */
static bool has_edge_in_list(const selecting *it, const quern__relation *relation, uint32_t slot)
{
    const quern__edge_list *targets = quern__edges_targets(&relation->edges, slot);
    for (uint32_t i = 0; i < quern__edge_list_ranges(targets); i++) {
        const quern__edge_range range = quern__edge_list_range(targets, i);
        for (uint32_t k = 0; k < range.count; k++)
            if (quern__saving_find_slot(it->saving, range.slots[k]) != QUERN__SLOT_NONE) return true;
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
        if (slot == QUERN__SLOT_NONE || quern__saving_find_slot(it->saving, slot) == QUERN__SLOT_NONE)
            break;
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
    for (; parent != NULL && quern__saving_find_slot(it->saving, slot) != QUERN__SLOT_NONE;) {
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

/* Adds a component as it is in the archive: relations may have another level, or be omitted. Notes targets outside of
 * the list. */
static quern_result add_component(selecting *it, quern__saved_components *set, uint32_t index,
                                  uint32_t slot)
{
    const quern__storage *storage = &it->saving->world->storage;
    const quern__managed *managed = &storage->components.list.items[index]->managed;
    if (managed->relation != NULL) {
        const uint32_t level = level_in_list(it, managed->relation, slot);
        if (managed->level == 0 && it->saving->def->outside_id != NULL)
            quern__outside_add_links(it->saving, &it->outside, managed->relation, slot);
        if (level == 0) return QUERN_OK;
        if (managed->level > 0) index = quern__relation_tag(managed->relation, level);
    } else if (quern__saving_leaves_out(it->saving, index) ||
               ((is_disabled_tag(storage, index, 0) || is_disabled_tag(storage, index, 1)) &&
                is_disabled_from_outside(it, slot))) {
        return QUERN_OK;
    }
    return quern__saving_add_component(it->saving, set, index, true);
}

static quern_result list_components(selecting *it, const quern__archetype *archetype, uint32_t slot,
                                    quern__saved_components *out_set)
{
    *out_set = (quern__saved_components){.values_bytes = sizeof(quern_entity)};
    quern_result result = QUERN_OK;
    for (uint32_t i = 0; i < archetype->component_count && result == QUERN_OK; i++)
        result = add_component(it, out_set, archetype->component_indices[i], slot);
    return result;
}

static size_t indices_bytes(const quern__saved_components *set)
{
    return set->component_count * sizeof set->component_indices[0];
}

static quern_result fail_group_memory(const selecting *it)
{
    return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "out of memory to group %u entities; nothing was written",
                       it->archive->entities.count);
}

static entity_group *find_group(const selecting *it, const quern__saved_components *set, uint64_t hash)
{
    const uint64_t *first = quern__map_find(&it->group_of_hash, hash);
    for (uint64_t number = first != NULL ? *first : 0; number != 0;) {
        entity_group *group = &it->groups.items[number - 1];
        if (group->set.component_count == set->component_count &&
            memcmp(group->set.component_indices, set->component_indices, indices_bytes(set)) == 0)
            return group;
        number = group->next;
    }
    return NULL;
}

static entity_group *add_group(selecting *it, const quern__saved_components *set, uint64_t hash)
{
    const quern_allocator *allocator = &it->saving->allocator;
    if (!quern__array_reserve(allocator, &it->groups, it->groups.count + 1) ||
        !quern__map_reserve(&it->group_of_hash, allocator, it->group_of_hash.count + 1))
        return NULL;
    entity_group *group = &it->groups.items[it->groups.count++];
    *group = (entity_group){.set = *set};
    uint64_t *first = quern__map_find(&it->group_of_hash, hash);
    if (first != NULL) {
        group->next = *first;
        *first = it->groups.count;
    } else {
        quern__map_put(&it->group_of_hash, hash, it->groups.count);
    }
    return group;
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
    quern__saved_components set;
    const quern_result result = list_components(it, archetype, slot, &set);
    if (result != QUERN_OK) return result;
    const uint64_t hash =
        quern__hash_bytes(set.component_count, set.component_indices, indices_bytes(&set)) | 1;
    const entity_group *group = find_group(it, &set, hash);
    if (group == NULL) group = add_group(it, &set, hash);
    if (group == NULL) return fail_group_memory(it);
    *out_index = (uint32_t)(group - it->groups.items);
    if (has_fixed_components(it, archetype))
        it->group_of_archetype.items[archetype->index] = *out_index + 1;
    return QUERN_OK;
}

static quern_result group_one(selecting *it, uint32_t list_index)
{
    const quern__storage *storage = &it->saving->world->storage;
    const quern_entity entity = it->archive->entities.items[list_index];
    const quern__record *record = quern__entities_find(&storage->entities, entity);
    if (record == NULL)
        return quern__message_add_element(quern__entities_check(&storage->entities, entity), "entity",
                                          list_index);
    const quern__archetype *archetype = quern__storage_archetype_of(storage, record);
    uint32_t index = it->group_of_archetype.items[archetype->index];
    if (index == 0) {
        const quern_result result = find_or_add_group(it, archetype, quern_entity_index(entity), &index);
        if (result != QUERN_OK) return result;
    } else {
        index--;
    }
    entity_group *group = &it->groups.items[index];
    if (!quern__array_reserve(&it->saving->allocator, &group->list_indices, group->list_indices.count + 1))
        return fail_group_memory(it);
    group->list_indices.items[group->list_indices.count++] = list_index;
    return QUERN_OK;
}

static quern_result group_all(selecting *it)
{
    const quern__storage *storage = &it->saving->world->storage;
    const uint32_t archetype_count = storage->archetypes.count;
    if (!quern__array_reserve(&it->saving->allocator, &it->group_of_archetype, archetype_count))
        return fail_group_memory(it);
    if (archetype_count > 0) memset(it->group_of_archetype.items, 0, archetype_count * sizeof(uint32_t));
    quern_result result = QUERN_OK;
    for (uint32_t i = 0; i < it->archive->entities.count && result == QUERN_OK; i++)
        result = group_one(it, i);
    return result;
}

/* --------------------------------------------------------------------------------------------- rows */

static quern_entity handle_in_list(uint32_t list_index)
{
    return quern__entity_make(1, QUERN__LIST_USE_COUNT, list_index);
}

static quern_entity map_handle(void *argument, quern_entity entity)
{
    selecting *it = argument;
    if (quern__entities_find(&it->saving->world->storage.entities, entity) == NULL)
        return (quern_entity){0};
    const uint32_t list_index = quern__saving_find_slot(it->saving, quern_entity_index(entity));
    if (list_index != QUERN__SLOT_NONE) return handle_in_list(list_index);
    if (it->saving->def->outside_id == NULL) return (quern_entity){0};
    const uint32_t number = quern__outside_number(it->saving, &it->outside, entity);
    return number != QUERN__OUTSIDE_NONE ? quern__entity_make(1, QUERN__OUTSIDE_USE_COUNT, number)
                                         : (quern_entity){0};
}

/* Where an entity is. */
typedef struct row_source {
    const quern__archetype *archetype;
    uintptr_t location;
} row_source;

/* Entities of one group whose rows are saved in one section. */
typedef struct row_sources {
    const uint32_t *list_indices;
    uint32_t count;
    row_source rows[QUERN__BIT_COLUMN_MAX_ROWS];
} row_sources;

/* Returns how many rows from row i on are consecutive in one run. */
static uint32_t count_consecutive(const row_sources *sources, uint32_t i)
{
    const row_source *first = &sources->rows[i];
    uint32_t count = 1;
    while (i + count < sources->count && sources->rows[i + count].location == first->location + count)
        count++;
    return count;
}

static void save_column(selecting *it, quern__byte_writer *writer, uint32_t index,
                        const row_sources *sources)
{
    enum { PREFETCHED_ROWS = 8 };
    const quern__type *type = quern__components_type(&it->saving->world->storage.components, index);
    const size_t size_bytes = type->size_bytes;
    if (size_bytes == 0) return;
    char *const values = quern__write_room(writer, sources->count * size_bytes);
    const quern__archetype *archetype = NULL;
    quern__column_position position = {0};
    for (uint32_t i = 0, count; i < sources->count; i += count) {
        const row_source *row = &sources->rows[i];
        if (row->archetype != archetype)
            position = quern__archetype_column_position(archetype = row->archetype, index);
        if (i + PREFETCHED_ROWS < sources->count)
            QUERN__PREFETCH(quern__position_value(position, row[PREFETCHED_ROWS].location));
        count = count_consecutive(sources, i);
        if (count == 1)
            quern__copy_value(values + i * size_bytes, quern__position_value(position, row->location),
                              size_bytes);
        else
            memcpy(values + i * size_bytes, quern__position_value(position, row->location),
                   count * size_bytes);
    }
    for (uint32_t i = 0; i < sources->count && type->lists != NULL; i++) {
        quern__type_write_lists(type, values + i * size_bytes, &it->saving->lists, map_handle, it);
        quern__type_clear_lists(type, values + i * size_bytes);
    }
    for (uint32_t i = 0; i < sources->count && type->has_entity_fields; i++)
        quern__type_remap(type, values + i * size_bytes, map_handle, it);
}

static void save_bit_column(quern__byte_writer *writer, quern__bit_column which, const row_sources *sources)
{
    uint64_t words[QUERN__BIT_COLUMN_ROW_WORDS] = {0};
    for (uint32_t i = 0; i < sources->count; i++) {
        const row_source *row = &sources->rows[i];
        const quern__row_bits *row_bits = row->archetype->row_bits;
        const uint32_t bit_column = quern__row_bits_find_column(row_bits, which.kind, which.id);
        if (quern__bit_column_test(row_bits, bit_column, row->location))
            words[i / 64] |= UINT64_C(1) << i % 64;
    }
    quern__saving_write_row_bits(writer, words, sources->count);
}

static void save_rows(selecting *it, const quern__saved_components *set, const uint32_t *list_indices,
                      uint32_t count)
{
    const quern__components *components = &it->saving->world->storage.components;
    row_sources sources;
    sources.list_indices = list_indices;
    sources.count = count;
    const quern__storage *storage = &it->saving->world->storage;
    for (uint32_t k = 0; k < sources.count; k++) {
        const quern_entity entity = it->archive->entities.items[sources.list_indices[k]];
        const quern__record *record =
            quern__entities_record(&storage->entities, quern_entity_index(entity));
        sources.rows[k] = (row_source){quern__storage_archetype_of(storage, record), record->location};
    }
    quern__byte_writer *writer = quern__saving_begin_rows(it->saving, set, count);
    char *handles = quern__write_room(writer, count * sizeof(quern_entity));
    for (uint32_t i = 0; i < count; i++) {
        const quern_entity handle = handle_in_list(list_indices[i]);
        memcpy(handles + i * sizeof handle, &handle, sizeof handle);
    }
    for (uint32_t i = 0; i < set->component_count; i++)
        save_column(it, writer, set->component_indices[i], &sources);
    for (uint32_t flag = 0; flag < QUERN__ROW_FLAG_COUNT && set->bit_column_count > 0; flag++)
        for (uint32_t i = 0; i < set->component_count; i++)
            if (quern__components_has_flag(components, set->component_indices[i], 1u << flag))
                save_bit_column(writer, (quern__bit_column){flag, set->component_indices[i]}, &sources);
    quern__section_end(&it->saving->writer);
    if (set->has_lists) quern__saving_write_lists(it->saving);
}

/* Writes all groups, with the layouts that they would have in a world without other archetypes. */
static void save_groups(selecting *it)
{
    uint32_t count_before = 0;
    for (uint32_t i = 0; i < it->groups.count; i++) {
        const uint32_t type_count = it->groups.items[i].set.component_count;
        const entity_group *group = &it->groups.items[i];
        const uint32_t layout_index = quern__archived_least_layout_index(type_count, count_before);
        const uint32_t most = quern__saving_max_rows(&group->set);
        quern__saving_write_archetype(it->saving, &group->set,
                                      (quern__archetype_section){.layout_index = layout_index,
                                                                 .row_count = group->list_indices.count});
        for (uint32_t first = 0, count; first < group->list_indices.count; first += count) {
            const uint32_t left = group->list_indices.count - first;
            count = left < most ? left : most;
            save_rows(it, &group->set, group->list_indices.items + first, count);
        }
        count_before += type_count > 0;
    }
}

/* -------------------------------------------------------------------------------------------- saving */

static quern_result save_selected(selecting *it)
{
    const quern_result result = group_all(it);
    if (result != QUERN_OK) return result;
    const uint32_t count = it->archive->entities.count;
    const quern__world_section head = {.first_handle_high = (uint32_t)(handle_in_list(0).bits >> 32),
                                       .slot_count = count,
                                       .row_count = count};
    quern__saving_write_types(it->saving, &head);
    const quern__relations *relations = it->saving->world->storage.relations;
    for (uint32_t r = 0; r < relations->list.count; r++) {
        const quern__relation *relation = relations->list.items[r];
        const bool has_links = relation->links.pages.count > 0 || relation->edges.count > 0;
        for (uint32_t i = 0; i < it->archive->entities.count && has_links; i++)
            quern__saving_write_children(it->saving, relation,
                                         quern_entity_index(it->archive->entities.items[i]));
    }
    quern__outside_write_links(it->saving, &it->outside);
    save_groups(it);
    quern__outside_write_ids(it->saving, &it->outside);
    const quern__names *names = it->saving->world->storage.names;
    for (uint32_t i = 0; i < it->archive->entities.count && names->count > 0; i++)
        quern__saving_write_name(it->saving, quern_entity_index(it->archive->entities.items[i]));
    if (it->outside.lacks_memory)
        return quern__fail(
            QUERN_ERROR_OUT_OF_MEMORY,
            "out of memory for the ids of entities outside of the list; the archive is incomplete");
    return QUERN_OK;
}

quern_result quern__archive_write(const quern_archive *archive, quern__saving *saving, quern_sink sink)
{
    const quern_allocator *allocator = &saving->allocator;
    selecting it = {.archive = archive, .saving = saving};
    quern_result result = quern__saving_start(saving, sink);
    if (result != QUERN_OK) return result;
    saving->selected = &archive->slots;
    saving->selected_count = archive->entities.count;
    result = quern__saving_finish(saving, save_selected(&it));
    for (uint32_t i = 0; i < it.groups.count; i++)
        quern__array_release(allocator, &it.groups.items[i].list_indices);
    quern__array_release(allocator, &it.groups);
    quern__array_release(allocator, &it.group_of_archetype);
    quern__map_release(&it.group_of_hash, allocator);
    quern__saved_outside_release(&it.outside, allocator);
    return result;
}

quern_result quern__archive_refuse_schedules(const quern_save_def *def)
{
    if (def == NULL || def->schedules[0] == NULL) return QUERN_OK;
    return quern__fail(
        QUERN_ERROR_INVALID_ARGUMENT,
        "schedules is set, but a list of entities has no state of schedules: save the whole world "
        "(quern_world_save)");
}

static quern_result save(const quern_archive *archive, quern_sink sink, const quern_save_def *def)
{
    quern__saving saving;
    quern_result result = quern__archive_refuse_schedules(def);
    if (result == QUERN_OK) result = quern__saving_init(&saving, archive->world, def);
    if (result != QUERN_OK) return result;
    quern__world_set_locked(archive->world, true); /* the sink may call a function of the program */
    result = quern__archive_write(archive, &saving, sink);
    quern__world_set_locked(archive->world, false);
    quern__saving_release(&saving);
    return result;
}

quern_result quern_archive_save(const quern_archive *archive, quern_sink sink, const quern_save_def *def)
{
    quern_result result = check_call(archive, "", "", __func__);
    if (result == QUERN_OK) result = quern__check_sink(sink, __func__);
    if (result != QUERN_OK) return result;
    return quern__in_call(save(archive, sink, def), __func__);
}
