/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "core/archive/archive_internal.h"

#include "core/base/base_internal.h"
#include "core/reactions/hook.h"
#include "core/storage/change.h"
#include "core/storage/type_internal.h"

typedef void put_function(quern__edges *edges, const quern_allocator *allocator, uint32_t slot,
                          const quern__edge_list *list);

static quern_result fail_memory(void)
{
    return quern__fail(QUERN_ERROR_OUT_OF_MEMORY,
                       "out of memory for the edges of entities; the world is unchanged");
}

/* Gives each slot in the upper halves of the keys the set of slots in the lower halves. slots: memory for the members
 * of the largest set. */
static bool put_sets(const quern__image *image, const quern__archived_links *links, uint32_t *slots,
                     put_function *put)
{
    quern__edges *edges = &links->relation->edges;
    const quern_allocator *allocator = &image->world->storage.allocator;
    for (uint32_t i = 0, count; i < links->edges.count; i += count) {
        const uint32_t slot = (uint32_t)(links->edges.items[i].key >> 32);
        for (count = 0; i + count < links->edges.count && links->edges.items[i + count].key >> 32 == slot;
             count++)
            slots[count] = (uint32_t)links->edges.items[i + count].key;
        quern__edge_list list;
        if (!quern__edges_reserve_page(edges, allocator, slot) ||
            !quern__edge_list_build(edges->pool, allocator, slots, count, &list))
            return false;
        put(edges, allocator, slot, &list);
    }
    return true;
}

/* Gives the loaded entities their sets of targets and sources in the list. */
static quern_result load_sets(const quern__image *image, quern__archived_links *links,
                              const quern_entity *handles)
{
    QUERN__ARRAY(uint32_t) slots = {0};
    if (links->edges.count == 0) return QUERN_OK;
    if (!quern__array_reserve(&image->allocator, &slots, links->edges.count)) return fail_memory();
    /* The keys have slots of the archive, and get those of the world. */
    for (uint32_t i = 0; i < links->edges.count; i++) {
        const uint64_t key = links->edges.items[i].key;
        links->edges.items[i].key = (uint64_t)quern_entity_index(handles[key >> 32]) << 32 |
                                    quern_entity_index(handles[(uint32_t)key]);
    }
    quern__sort(links->edges.items, links->scratch.items, links->edges.count);
    bool is_done = put_sets(image, links, slots.items, quern__edges_put_targets);
    /* Exchanges source and target in all keys, and sorts them. */
    for (uint32_t i = 0; i < links->edges.count; i++) {
        const uint64_t key = links->edges.items[i].key;
        links->edges.items[i].key = key << 32 | key >> 32;
    }
    quern__sort(links->edges.items, links->scratch.items, links->edges.count);
    is_done = is_done && put_sets(image, links, slots.items, quern__edges_put_sources);
    quern__array_release(&image->allocator, &slots);
    return is_done ? QUERN_OK : fail_memory();
}

/* Adds the edges that lead outside of the list. Several ids may belong to one entity of the world. */
static quern_result add_outside(const quern__image *image, quern__archived_links *links,
                                const quern_entity *handles)
{
    quern__edges *edges = &links->relation->edges;
    for (uint32_t i = 0; i < links->outside_edges.count; i++) {
        const uint64_t edge = links->outside_edges.items[i];
        const uint32_t source = quern_entity_index(handles[edge >> 32]);
        const uint32_t target = quern_entity_index(image->outside.items[(uint32_t)edge]);
        if (quern__edges_has(edges, source, target)) continue;
        if (!quern__edges_reserve(edges, &image->world->storage.allocator, source, target))
            return fail_memory();
        quern__edges_add(edges, source, target);
        links->outside_edges.items[links->outside_added_count++] = (uint64_t)source << 32 | target;
    }
    return QUERN_OK;
}

/* Removes the edges that load_sets and add_outside added, and clears the sets of all slots of the loaded entities. */
static void unload_edges(const quern__image *image, const quern__archived_links *links,
                         const quern_entity *handles)
{
    for (uint32_t i = 0; i < links->outside_added_count; i++)
        quern__edges_remove(&links->relation->edges, (uint32_t)(links->outside_edges.items[i] >> 32),
                            (uint32_t)links->outside_edges.items[i]);
    for (uint32_t slot = 0; slot < image->head.slot_count; slot++)
        if (quern__image_is_alive(image, slot))
            quern__edges_clear(&links->relation->edges, &image->world->storage.allocator,
                               quern_entity_index(handles[slot]));
}

/* ------------------------------------------------------------------------------------------- levels */

enum { RAISE_UNKNOWN = UINT8_MAX };

static uint32_t least_level(uint32_t level)
{
    return level < QUERN_MAX_RELATION_LEVEL ? level : QUERN_MAX_RELATION_LEVEL;
}

/* Computes the levels that the entities have in the world. Errors: OUT_OF_MEMORY. */
static quern_result raise_levels(const quern__image *image, const quern__archived_links *links)
{
    const uint32_t slot_count = image->head.slot_count;
    uint8_t *raises = quern__allocate(&image->allocator, slot_count, QUERN__ARRAY_ALIGNMENT_BYTES);
    if (raises == NULL) return quern__image_fail_memory();
    memset(raises, RAISE_UNKNOWN, slot_count);
    for (uint32_t slot = 0; slot < slot_count; slot++) {
        /* Stores by how much the levels of an entity and of all entities above it in the archive
         * rise: by the level of the sources of the topmost entity's target. */
        uint32_t top = slot, target;
        while (raises[top] == RAISE_UNKNOWN && (target = links->targets[top]) < image->head.slot_count)
            top = target;
        uint32_t raise = raises[top];
        if (raise == RAISE_UNKNOWN) {
            const quern_entity outside = quern__image_outside(image, links->targets[top]);
            raise = outside.bits == 0
                        ? 0
                        : least_level(
                              quern__links_level(&links->relation->links, quern_entity_index(outside)) + 1);
        }
        for (uint32_t at = slot; raises[at] == RAISE_UNKNOWN; at = links->targets[at]) {
            raises[at] = (uint8_t)raise;
            if (at == top) break;
        }
    }
    for (uint32_t slot = 0; slot < slot_count; slot++)
        links->levels[slot] = (uint8_t)least_level((uint32_t)links->levels[slot] + raises[slot]);
    quern__release(&image->allocator, raises, slot_count, QUERN__ARRAY_ALIGNMENT_BYTES);
    return QUERN_OK;
}

/* -------------------------------------------------------------------------------------- archetypes */

/* The ascending set of components of a row. */
typedef struct row_set {
    uint16_t indices[QUERN_MAX_COMPONENTS];
    uint32_t count;
} row_set;

/* Completes a set with what its components require, and removes values of edges without their relation: the archive had
 * no target for the row, or the target is not loaded. Returns the number of components. */
static uint32_t complete_set(const quern__storage *storage, uint16_t *set, uint32_t count)
{
    const quern__components *components = &storage->components;
    uint32_t kept = 0;
    if (!components->has_requirements) return count;
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t owner = components->list.items[set[i]]->edge_owner;
        bool is_kept = owner == 0;
        for (uint32_t k = i + 1; k < count && !is_kept; k++) /* the relation was registered later */
            is_kept = set[k] == owner - 1;
        if (is_kept) set[kept++] = set[i];
    }
    return quern__components_complete(components, set, kept);
}

/* Adds what the links of one relation say of the entity in the slot. */
static void add_relation(const quern__image *image, const quern__archived_links *links, uint32_t slot,
                         row_set *set)
{
    const quern__relation *relation = links->relation;
    if (links->targets == NULL) { /* a relation with several targets, which has no levels */
        if ((links->levels[slot] & QUERN__EDGES_LEAD_OUTSIDE) != 0)
            quern__components_insert(set->indices, &set->count, relation->component_index);
        return;
    }
    if (quern__image_outside(image, links->targets[slot]).bits != 0)
        quern__components_insert(set->indices, &set->count, relation->component_index);
    if (relation->has_levels && links->targets[slot] != QUERN__SLOT_NONE) {
        /* the new tag of a level replaces the old one */
        uint32_t kept = 0;
        for (uint32_t i = 0; i < set->count; i++) {
            const uint32_t index = set->indices[i];
            if (index > relation->component_index &&
                index <= quern__relation_tag(relation, QUERN_MAX_RELATION_LEVEL))
                continue;
            set->indices[kept++] = (uint16_t)index;
        }
        set->count = kept;
        quern__components_insert(set->indices, &set->count,
                                 quern__relation_tag(relation, links->levels[slot]));
    }
}

static quern_result reserve_rows_outside(const quern__image *image,
                                         const quern__archived_archetype *archived,
                                         quern__byte_reader *payload, quern__archetype **out_archetypes)
{
    quern__storage *storage = &image->world->storage;
    quern__rows_section section;
    quern__read(payload, &section, sizeof section);
    quern_result result = QUERN_OK;
    for (uint32_t i = 0; i < section.row_count && result == QUERN_OK; i++) {
        const uint32_t slot = quern_entity_index((quern_entity){quern__read_u64(payload)});
        quern__archetype *archetype;
        row_set set = {.count = archived->component_count};
        memcpy(set.indices, archived->component_indices, set.count * sizeof set.indices[0]);
        for (uint32_t k = 0; k < image->types.count; k++) {
            const quern__archived_links *links = image->types.items[k]->links;
            if (links != NULL && links->outside_count > 0) add_relation(image, links, slot, &set);
        }
        set.count = complete_set(storage, set.indices, set.count);
        result = quern__storage_ensure_archetype(storage, set.indices, set.count, &archetype);
        if (result != QUERN_OK) break;
        out_archetypes[slot] = archetype; /* the caller cancels its reservations if the next call fails */
        result = quern__rows_reserve(storage, archetype, 1);
    }
    return result;
}

/* ------------------------------------------------------------------------------------------ loading */

/* Loads an archive into a world. The archive is read and checked completely (image.c). Then memory is
 * reserved for all of it. Then it is loaded, which cannot fail. */

/* State of one call of quern_world_load. */
typedef struct loading {
    quern__image *image;
    quern__storage *storage;
    quern_entity *handles;               /* by slot of the archive: handle in the world; null: not alive */
    char *sources;                       /* aligned copy of a column; NULL: no migration has a function */
    quern__archetype **row_archetypes;   /* by slot of the archive; NULL: rows have those of the image */
    const quern__run_restorer *restorer; /* NULL: the state of schedules is not loaded */
} loading;

/* ----------------------------------------------------------------------------------------- handles */

static quern_entity handle_of_use(const loading *load, uint32_t slot, uint32_t use_count)
{
    const uint32_t first_high = load->storage->entities.first_handle_high;
    const uint32_t first = first_high & QUERN__MAX_GENERATION;
    uint32_t generation = first + use_count - 1;
    if (generation > QUERN__MAX_GENERATION) generation -= QUERN__MAX_GENERATION;
    return quern__entity_make(first_high >> 24, generation, slot);
}

/* Maps a handle of the archive to a handle of the world. If the world keeps the handles of the archive,
 * handles of dead entities keep their identity too; otherwise they become null. */
static quern_entity map_handle(void *argument, quern_entity entity)
{
    const loading *load = argument;
    const quern__image *image = load->image;
    const uint32_t use_count = quern__image_use_count(image, entity), slot = quern_entity_index(entity);
    if (use_count == 0) return (quern_entity){0};
    if (image->outside.count > 0 && use_count == QUERN__OUTSIDE_USE_COUNT)
        return slot < image->outside.count ? image->outside.items[slot] : (quern_entity){0};
    if (image->keeps_handles) return handle_of_use(load, slot, use_count);
    return quern__image_is_alive(image, slot) && image->use_counts.items[slot] == use_count
               ? load->handles[slot]
               : (quern_entity){0};
}

/* Determines the handle in the world for each alive slot: the same slot and use count, or the slots that
 * the world would allocate next. */
static quern_result choose_handles(loading *load)
{
    quern__image *image = load->image;
    const uint32_t slot_count = image->head.slot_count, row_count = image->head.row_count;
    if (slot_count == 0) return QUERN_OK;
    load->handles = quern__allocate(&image->allocator, slot_count * sizeof *load->handles,
                                    QUERN__ARRAY_ALIGNMENT_BYTES);
    if (load->handles == NULL) return quern__image_fail_memory();
    quern_result result = quern__entities_reserve(&load->storage->entities, &load->storage->allocator,
                                                  image->keeps_handles ? slot_count : row_count);
    if (result != QUERN_OK) return result;
    if (!image->keeps_handles) quern__entities_peek(&load->storage->entities, row_count, load->handles);
    /* from the last slot on, so that no handle is overwritten before it is moved */
    uint32_t next = row_count;
    for (uint32_t slot = slot_count; slot-- > 0;) {
        quern_entity handle = {0};
        if (image->states.items[slot] == QUERN__STATE_ALIVE)
            handle = image->keeps_handles ? handle_of_use(load, slot, image->use_counts.items[slot])
                                          : load->handles[--next];
        load->handles[slot] = handle;
    }
    return QUERN_OK;
}

/* -------------------------------------------------------------------------------- reserving memory */

/* Reserves rows for an image in which an entity has a target outside of the list: one by one, because rows of one archived
 * archetype may belong to several archetypes of the world. */
static quern_result reserve_outside_rows(loading *load)
{
    const quern__image *image = load->image;
    const size_t bytes = image->head.slot_count * sizeof *load->row_archetypes;
    load->row_archetypes = quern__allocate(&image->allocator, bytes, QUERN__ARRAY_ALIGNMENT_BYTES);
    if (load->row_archetypes == NULL) return quern__image_fail_memory();
    memset(load->row_archetypes, 0, bytes);
    quern_result result = QUERN_OK;
    for (uint32_t i = 0; i < image->types.count && result == QUERN_OK; i++) {
        const quern__archived_links *links = image->types.items[i]->links;
        if (links != NULL && links->outside_count > 0 && links->relation->has_levels)
            result = raise_levels(image, links);
    }
    quern__section_iterator walk = {.blocks = &image->blocks};
    quern__archive_section section;
    uint32_t archetype_count = 0;
    while (result == QUERN_OK && quern__section_next(&walk, &section)) {
        archetype_count += section.kind == QUERN__SECTION_ARCHETYPE;
        if (section.kind == QUERN__SECTION_ROWS)
            result = reserve_rows_outside(image, &image->archetypes.items[archetype_count - 1],
                                          &section.payload, load->row_archetypes);
    }
    return result;
}

static quern_result reserve_rows(loading *load)
{
    quern__image *image = load->image;
    quern_result result = QUERN_OK;
    for (uint32_t i = 0; i < image->types.count; i++)
        if (image->types.items[i]->links != NULL && image->types.items[i]->links->outside_count > 0)
            return reserve_outside_rows(load);
    for (uint32_t i = 0; i < image->archetypes.count && result == QUERN_OK; i++) {
        quern__archived_archetype *archived = &image->archetypes.items[i];
        if (archived->row_count == 0 && !image->keeps_handles) continue;
        /* Finds or creates the archetype of archived rows, which also has what the world's components
         * require: it may have had no requirements when the archive was saved. */
        const uint32_t layout_index =
            load->image->keeps_handles ? archived->layout_index : load->storage->archetypes.count;
        uint16_t set[QUERN_MAX_COMPONENTS];
        if (archived->component_count > 0)
            memcpy(set, archived->component_indices, archived->component_count * sizeof *set);
        const uint32_t count = complete_set(load->storage, set, archived->component_count);
        result = quern__storage_ensure_archetype_with_layout(load->storage, set, count, layout_index,
                                                             &archived->archetype);
        if (result == QUERN_OK && archived->row_count > 0)
            result = quern__rows_reserve(load->storage, archived->archetype, archived->row_count);
    }
    return result;
}

/* Returns the entity of a target in a LINKS section; null: it is outside of the list, and not alive in this world. */
static quern_entity target_in_world(const loading *load, uint32_t target)
{
    return target < load->image->head.slot_count ? load->handles[target]
                                                 : quern__image_outside(load->image, target);
}

static quern_result reserve_links(const loading *load, quern__archived_links *links)
{
    const quern__image *image = load->image;
    if (links->targets == NULL) {
        /* The slots are not alive yet, so the world has no edges of them. After an error, unload_edges
         * removes what was added. */
        const quern_result result = load_sets(image, links, load->handles);
        links->relation->links.version++;
        return result == QUERN_OK ? add_outside(image, links, load->handles) : result;
    }
    quern__links *target = &links->relation->links;
    for (uint32_t slot = 0; slot < image->head.slot_count; slot++) {
        if (links->targets[slot] == QUERN__SLOT_NONE) continue;
        const quern_entity to = target_in_world(load, links->targets[slot]);
        if (!quern__links_reserve(target, &load->storage->allocator,
                                  quern_entity_index(load->handles[slot])) ||
            !quern__links_reserve(target, &load->storage->allocator, quern_entity_index(to)))
            return quern__fail(QUERN_ERROR_OUT_OF_MEMORY,
                               "out of memory for the links of entities; the world is unchanged");
    }
    return QUERN_OK;
}

static quern_result reserve_names(const loading *load)
{
    const quern__image *image = load->image;
    quern__names *names = load->storage->names;
    const uint32_t count = image->names.count + image->outside_names.count;
    bool has_room = count == 0 || quern__names_reserve_count(names, &load->storage->allocator, count);
    for (uint32_t slot = 0; has_room && slot < image->head.slot_count && count > 0; slot++)
        if (quern__names_number(&image->names, slot) != QUERN__NAME_NONE ||
            quern__names_number(&image->outside_names, slot) != QUERN__NAME_NONE)
            has_room = quern__names_reserve_page(names, &load->storage->allocator,
                                                 quern_entity_index(load->handles[slot]));
    if (has_room) return QUERN_OK;
    return quern__fail(QUERN_ERROR_OUT_OF_MEMORY,
                       "out of memory for the names of entities; the world is unchanged");
}

/* Lets the restorer check the state of the schedules, whose parts belong to archetypes by their order. */
static quern_result reserve_run(const loading *load)
{
    const quern__image *image = load->image;
    if (load->restorer == NULL) return QUERN_OK;
    for (uint32_t i = 0; i < image->archetypes.count; i++)
        if (image->archetypes.items[i].archetype->index != i)
            return quern__fail(
                QUERN_ERROR_INVALID_ARGUMENT,
                "the world has archetypes that cannot be removed, so its archetypes would be in "
                "another order than those of the archive: load into a new world, before "
                "prefabs are captured, or load without schedules");
    return load->restorer->prepare(load->restorer->argument, image);
}

static quern_result reserve(loading *load)
{
    const quern__image *image = load->image;
    quern_result result = choose_handles(load);
    bool needs_copy = false; /* for migrations, and for lists, which are put into the values */
    for (uint32_t i = 0; i < image->types.count; i++)
        needs_copy |= image->types.items[i]->conversion.kind == QUERN__CONVERT_MIGRATION ||
                      image->types.items[i]->type.lists != NULL;
    if (result == QUERN_OK && needs_copy) {
        load->sources = quern__allocate(&image->allocator, QUERN__SECTION_BYTES, QUERN_MAX_ALIGNMENT_BYTES);
        if (load->sources == NULL) result = quern__image_fail_memory();
    }
    if (result == QUERN_OK) result = reserve_rows(load);
    for (uint32_t i = 0; i < image->types.count && result == QUERN_OK; i++)
        if (image->types.items[i]->links != NULL)
            result = reserve_links(load, image->types.items[i]->links);
    if (result == QUERN_OK) result = reserve_names(load);
    return result == QUERN_OK ? reserve_run(load) : result;
}

static void unreserve(const loading *load)
{
    const quern__image *image = load->image;
    for (uint32_t i = 0; i < image->types.count && load->handles != NULL; i++)
        if (image->types.items[i]->links != NULL && image->types.items[i]->links->targets == NULL)
            unload_edges(image, image->types.items[i]->links, load->handles);
    for (uint32_t i = 0; i < load->image->archetypes.count; i++)
        if (load->image->archetypes.items[i].archetype != NULL)
            quern__rows_unreserve(load->storage, load->image->archetypes.items[i].archetype);
    for (uint32_t slot = 0; load->row_archetypes != NULL && slot < image->head.slot_count; slot++)
        if (load->row_archetypes[slot] != NULL)
            quern__rows_unreserve(load->storage, load->row_archetypes[slot]);
    quern__entities_trim(&load->storage->entities, &load->storage->allocator);
}

/* --------------------------------------------------------------------------------------------- rows */

static void load_slots(const loading *load)
{
    const quern__image *image = load->image;
    const quern__world_section *head = &image->head;
    if (!image->keeps_handles) {
        /* allocates the slots that choose_handles peeked at, in the same order */
        quern_entity taken[256];
        for (uint32_t done = 0, count; done < head->row_count; done += count) {
            count = head->row_count - done < 256 ? head->row_count - done : 256;
            quern__slots_allocate(load->storage, count, taken);
        }
        return;
    }
    uint32_t *highs = image->use_counts.items; /* same array: the use counts are not read after this */
    for (uint32_t slot = 0; slot < head->slot_count; slot++)
        highs[slot] = (uint32_t)(handle_of_use(load, slot, highs[slot]).bits >> 32);
    quern__slots_restore(load->storage, highs, head->slot_count, image->free_slots.items, head->free_count,
                         head->retired_count);
}

/* Consecutive rows of one ROWS section that are loaded into one chunk. */
typedef struct row_batch {
    const quern__archived_archetype *archived;
    quern__archetype *archetype; /* of the world */
    const char *handles;         /* handles of all rows of the section */
    uint32_t row_count;          /* number of rows of the section */
    uint32_t first, count;
    uintptr_t first_location; /* location of the first loaded row */
    uint32_t first_list;      /* of the section, among the lists of the image */
} row_batch;

/* Copies the saved values of a batch, and puts their lists into them. first_list: those of the column. */
static char *put_lists(const loading *load, const quern__archived_type *type, const row_batch *batch,
                       const char *sources, uint32_t first_list)
{
    const quern__list_slots *slots = type->type.lists;
    const size_t size_bytes = type->type.size_bytes;
    quern_list *lists = load->image->lists.items + first_list + (size_t)batch->first * slots->count;
    memcpy(load->sources, sources, batch->count * size_bytes);
    for (uint32_t i = 0; i < batch->count; i++)
        for (uint32_t k = 0; k < slots->count; k++, lists++) {
            memcpy(load->sources + i * size_bytes + slots->offsets[k], lists, sizeof *lists);
            *lists = (quern_list){.count = 0};
        }
    return load->sources;
}

static void load_columns(const loading *load, const row_batch *batch, quern__byte_reader *columns)
{
    uint32_t first_list = batch->first_list;
    const quern__archived_archetype *archived = batch->archived;
    for (uint32_t i = 0; i < archived->type_count; i++) {
        const quern__archived_type *type = quern__image_type(load->image, archived, i);
        const size_t size_bytes = type->type.size_bytes;
        const char *column = quern__read_items(columns, batch->row_count, size_bytes);
        void *targets =
            type->component_index != QUERN__NO_COMPONENT
                ? quern__storage_value(batch->archetype, batch->first_location, type->component_index)
                : NULL;
        if (targets != NULL) {
            const char *sources = column + batch->first * size_bytes;
            if (QUERN__UNLIKELY(type->type.lists != NULL))
                sources = put_lists(load, type, batch, sources, first_list);
            if (type->conversion.kind == QUERN__CONVERT_MIGRATION) {
                /* the saved values are copied first, because columns in sections are not aligned */
                if (size_bytes > 0 && sources != load->sources)
                    memcpy(load->sources, sources, batch->count * size_bytes);
                type->migration->migrate(type->migration->user_data, targets, load->sources, batch->count);
            } else {
                quern__convert(&type->conversion, targets, sources, batch->count);
            }
            for (uint32_t k = 0; k < batch->count && type->type.lists != NULL; k++)
                quern__type_free_lists(&type->type, load->sources + k * size_bytes);
            quern__conversion_remap(&type->conversion, targets, batch->count, map_handle, (void *)load);
        }
        first_list += batch->row_count * quern__archived_list_count(type);
    }
}

/* Constructs the values of components that the archived rows lacked. */
static void construct_required(const row_batch *batch, bool has_requirements)
{
    const quern__archived_archetype *archived = batch->archived;
    const quern__archetype *archetype = batch->archetype;
    /* with requirements, a row may lack values of edges that the archive has, and have others instead */
    if (QUERN__LIKELY(archetype->component_count == archived->component_count && !has_requirements)) return;
    for (uint32_t i = 0, k = 0; i < archetype->column_count; i++) {
        const quern__column *column = &archetype->columns[i];
        while (k < archived->component_count && archived->component_indices[k] < column->component_index)
            k++;
        if (k < archived->component_count && archived->component_indices[k] == column->component_index)
            continue;
        quern__type_construct(column->type, quern__column_at(column, batch->first_location), batch->count);
    }
}

static void load_row_bits(const loading *load, const row_batch *batch, quern__byte_reader *reader)
{
    const quern__archived_archetype *archived = batch->archived;
    for (uint32_t flag = 0; flag < QUERN__ROW_FLAG_COUNT; flag++)
        for (uint32_t i = 0; i < archived->type_count; i++) {
            const quern__archived_type *type = quern__image_type(load->image, archived, i);
            if ((type->type.flags & 1u << flag) == 0 || quern__read_u64(reader) == 0) continue;
            const char *words =
                quern__read_in_place(reader, quern__archived_row_bits_bytes(batch->row_count));
            if (type->component_index == QUERN__NO_COMPONENT) continue;
            const uint32_t bit_column =
                quern__row_bits_find_column(batch->archetype->row_bits, flag, type->component_index);
            for (uint32_t k = 0; k < batch->count; k++)
                if ((quern__load_u64(words, (batch->first + k) / 64) >> (batch->first + k) % 64 & 1) != 0)
                    quern__row_enable(batch->archetype, batch->first_location + k, bit_column, false);
        }
}

static quern__archetype *row_archetype(const loading *load, const row_batch *batch, uint32_t row)
{
    const quern_entity entity = {quern__load_u64(batch->handles, row)};
    return load->row_archetypes[quern_entity_index(entity)];
}

/* Finds the archetype of the batch's first row. Returns the number of rows from there on that have the same one. */
static uint32_t choose_archetype(const loading *load, row_batch *batch)
{
    const uint32_t left = batch->row_count - batch->first;
    batch->archetype = batch->archived->archetype;
    if (QUERN__LIKELY(load->row_archetypes == NULL)) return left;
    batch->archetype = row_archetype(load, batch, batch->first);
    uint32_t count = 1;
    while (count < left && row_archetype(load, batch, batch->first + count) == batch->archetype)
        count++;
    return count;
}

/* first_list: of the section, among the lists of the image; becomes that of the next section. */
static void load_rows(const loading *load, const quern__archived_archetype *archived,
                      quern__byte_reader *payload, uint32_t *first_list)
{
    quern__rows_section section;
    quern__read(payload, &section, sizeof section);
    row_batch batch = {.archived = archived,
                       .handles = quern__read_items(payload, section.row_count, sizeof(quern_entity)),
                       .row_count = section.row_count,
                       .first_list = *first_list};
    for (uint32_t i = 0; i < archived->type_count; i++)
        *first_list +=
            section.row_count * quern__archived_list_count(quern__image_type(load->image, archived, i));
    if (batch.handles == NULL) return; /* only without rows: the section has been checked */
    for (; batch.first < section.row_count; batch.first += batch.count) {
        const uint32_t wanted = choose_archetype(load, &batch);
        batch.first_location = quern__rows_append(load->storage, batch.archetype, wanted, &batch.count);
        quern__byte_reader rest = *payload;
        load_columns(load, &batch, &rest);
        construct_required(&batch, load->storage->components.has_requirements);
        /* Writes the values of the extra components. A component without a value is constructed, or
         * zero. */
        const quern_load_def *def = load->image->def;
        for (uint32_t i = 0; i < load->image->extra_count; i++) {
            const uint32_t index = quern__component_index(def->extra[i]);
            const quern__type *type = quern__components_type(&load->storage->components, index);
            char *targets = quern__storage_value(batch.archetype, batch.first_location, index);
            if (targets == NULL) continue;
            if (def->extra_values[i] == NULL) quern__type_construct(type, targets, batch.count);
            for (uint32_t k = 0; k < batch.count && def->extra_values[i] != NULL; k++)
                quern__type_copy(type, targets + (size_t)k * type->size_bytes, def->extra_values[i], 1);
        }
        quern_entity handles[QUERN__BIT_COLUMN_MAX_ROWS];
        uint32_t i = 0;
        do { /* a batch has at least one row */
            const quern_entity entity = {quern__load_u64(batch.handles, batch.first + i)};
            handles[i] = load->handles[quern_entity_index(entity)];
        } while (++i < batch.count);
        quern__rows_arrive(load->storage, batch.archetype, batch.first_location, handles, batch.count);
        if (archived->bit_column_count > 0) load_row_bits(load, &batch, &rest);
    }
}

/* ------------------------------------------------------------------------- links, names, resources */

static void load_links(const loading *load, quern__byte_reader *payload)
{
    quern__links_section section;
    quern__read(payload, &section, sizeof section);
    const quern__archived_links *links = load->image->types.items[section.relation]->links;
    if (links != NULL && links->targets == NULL) return; /* reserve_links has done it */
    while (links != NULL && quern__bytes_left(payload) > 0) {
        const quern_entity target = target_in_world(load, quern__read_u32(payload));
        const uint32_t count = quern__read_u32(payload);
        for (uint32_t i = 0; i < count; i++) {
            const uint32_t child = quern__read_u32(payload);
            if (target.bits != 0) {
                quern_entity to = target;
                quern__relation *relation = links->relation;
                const uint32_t slot = quern_entity_index(load->handles[child]);
                quern__links_link(&relation->links, slot, quern_entity_index(to), QUERN__SLOT_NONE);
                quern__links_at(&relation->links, slot)->level = links->levels[child];
                /* overwrites the value loaded for the row, which differs only if the archive was forged */
                const quern__record *record = quern__entities_record(&load->storage->entities, slot);
                quern_entity *value =
                    quern__storage_value(quern__storage_archetype_of(load->storage, record),
                                         record->location, relation->component_index);
                memcpy(value, &to, sizeof to);
            }
        }
    }
}

static uint32_t slot_in_world(const loading *load, uint32_t slot)
{
    return slot != QUERN__SLOT_NONE ? quern_entity_index(load->handles[slot]) : QUERN__SLOT_NONE;
}

/* are_outside: parents are slots of the world instead of the archive. */
static void load_names(const loading *load, const quern__names *names, bool are_outside)
{
    for (uint32_t slot = 0; slot < load->image->head.slot_count && names->count > 0; slot++) {
        const quern__name *name = quern__names_of(names, slot);
        if (name == NULL) continue;
        quern__names_put(load->storage->names, slot_in_world(load, slot),
                         are_outside ? name->parent : slot_in_world(load, name->parent), name->text,
                         (uint32_t)strlen(name->text));
        load->storage->has_attachments = true;
    }
}

/* Loads all ROWS sections, or all LINKS sections. Links need rows, so they are loaded second, although
 * they are first in the archive. */
static void load_sections(const loading *load, bool loads_links)
{
    quern__section_iterator walk = {.blocks = &load->image->blocks};
    quern__archive_section section;
    uint32_t archetype_count = 0, first_list = 0;
    while (quern__section_next(&walk, &section)) {
        if (section.kind == QUERN__SECTION_ARCHETYPE) archetype_count++;
        if (section.kind == QUERN__SECTION_ROWS && !loads_links)
            load_rows(load, &load->image->archetypes.items[archetype_count - 1], &section.payload,
                      &first_list);
        if (section.kind == QUERN__SECTION_LINKS && loads_links) load_links(load, &section.payload);
    }
}

/* Makes lists of values of edges agree with the edges that were loaded. */
static void settle_edge_values(const loading *load)
{
    const quern__image *image = load->image;
    for (uint32_t i = 0; i < load->storage->relations->list.count; i++) {
        const quern__relation *relation = load->storage->relations->list.items[i];
        for (uint32_t slot = 0;
             relation->is_many && quern__relation_has_values(relation) && slot < image->head.slot_count;
             slot++)
            if (quern__image_is_alive(image, slot))
                quern__edge_values_settle(load->storage, relation, quern_entity_index(load->handles[slot]));
    }
}

static void load_all(const loading *load)
{
    quern_world *world = load->image->world;
    quern__world_set_locked(world, true); /* migrations and hooks must not call functions of the world */
    const quern__image *image = load->image;
    for (uint32_t i = 0; i < image->resources.count; i++) {
        const quern__archived_resource *resource = image->resources.items[i];
        if (resource->resource == NULL) continue;
        if (resource->conversion.kind == QUERN__CONVERT_BYTES)
            quern__type_remap(&resource->type, resource->value, map_handle, (void *)load);
        else
            quern__type_remap_fields(&resource->type, resource->value, map_handle, (void *)load);
        quern__convert_fields(&resource->conversion, resource->resource->value, resource->value);
        for (uint32_t p = 0; p < resource->conversion.pair_count;
             p++) /* lists have elements of the target */
            quern__conversion_visit_lists(&resource->conversion, &resource->conversion.pairs[p],
                                          resource->resource->value, map_handle, (void *)load);
    }
    load_slots(load);
    load_sections(load, false);
    load_sections(load, true);
    settle_edge_values(load);
    load_names(load, &load->image->names, false);
    load_names(load, &load->image->outside_names, true);
    if (image->keeps_handles) { /* the state of the removal of empty archetypes */
        world->next_visit = image->head.next_visit;
        world->visit_count = image->head.visit_count;
        for (uint32_t i = 0; i < image->archetypes.count; i++)
            image->archetypes.items[i].archetype->empty_since = image->archetypes.items[i].empty_since;
    }
    const quern_load_def *def = load->image->def;
    uint32_t count = 0;
    for (uint32_t slot = 0; slot < load->image->head.slot_count && count < def->entity_capacity; slot++)
        if (load->image->states.items[slot] == QUERN__STATE_ALIVE)
            def->entities[count++] = load->handles[slot];
    quern__structure_changed(load->storage);
    if (load->restorer != NULL)
        load->restorer->restore(load->restorer->argument, load->image, map_handle, (void *)load);
    quern__world_set_locked(world, false);
    quern__hooks_after(load->storage);
}

/* ---------------------------------------------------------------------------------------- interface */

static bool is_migration_end(const void *list, uint32_t i)
{
    const quern_migration *migration = &((const quern_migration *)list)[i];
    return migration->name == NULL && migration->component.bits == 0 && migration->migrate == NULL;
}

static quern_result check_migrations(const quern_world *world, const quern_load_def *def)
{
    uint32_t count;
    quern_result result = quern__list_count(def->migrations, QUERN_MAX_MIGRATIONS, is_migration_end,
                                            "migration", NULL, &count);
    for (uint32_t i = 0; i < count && result == QUERN_OK; i++) {
        const quern_migration *migration = &def->migrations[i];
        result = quern__check_name(migration->name, "component of an archive");
        if (result == QUERN_OK && migration->component.bits != 0)
            result = quern__components_check(&world->storage.components, migration->component);
        if (result == QUERN_OK && migration->component.bits == 0 && migration->migrate != NULL)
            result = quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                                 "the migration of '%s' has a function but no component: set its "
                                 "component, or remove its function",
                                 migration->name);
        for (uint32_t k = 0; k < i && result == QUERN_OK; k++)
            if (strcmp(def->migrations[k].name, migration->name) == 0)
                result =
                    quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                                "two migrations have the name '%s': remove one of them", migration->name);
        if (result != QUERN_OK) quern__message_add_element(result, "migration", i);
    }
    return result;
}

static quern_result check_extra(const quern_world *world, const quern_load_def *def, uint32_t *out_count)
{
    quern_result result = quern__list_count(def->extra, QUERN_MAX_EXTRA_COMPONENTS,
                                            quern__is_end_of_handles, "extra component", NULL, out_count);
    for (uint32_t i = 0; i < *out_count && result == QUERN_OK; i++) {
        const quern__components *components = &world->storage.components;
        const uint32_t index = quern__component_index(def->extra[i]);
        result = quern__components_check(components, def->extra[i]);
        if (result == QUERN_OK &&
            (quern__components_is_managed(components, index) || index == world->storage.disabled_index))
            result = quern__fail(
                QUERN_ERROR_INVALID_ARGUMENT,
                "'%s' is managed by the world itself (for a relation, for example), so loaded entities "
                "cannot get it: remove it from the extra components",
                quern__components_type(components, index)->name);
        if (result == QUERN_OK && quern__components_is_edge_value(components, index))
            result = quern__components_fail_edge_value(components, index);
        if (result == QUERN_OK && def->extra_values[i] != NULL)
            result = quern__type_check_provisional(quern__components_type(components, index),
                                                   def->extra_values[i], 1, "quern_commands_add");
        for (uint32_t k = 0; k < i && result == QUERN_OK; k++)
            if (def->extra[k].bits == def->extra[i].bits)
                result = quern__fail(QUERN_ERROR_DUPLICATE_COMPONENT,
                                     "extra components %u and %u are the same: remove one of them", k, i);
        if (result != QUERN_OK) quern__message_add_element(result, "extra component", i);
    }
    return result;
}

/* Checks migrations and extra components, and counts the latter. Errors: INVALID_ARGUMENT, UNKNOWN_COMPONENT,
 * DUPLICATE_COMPONENT, PROVISIONAL_ENTITY. */
static quern_result load_check_def(const quern_world *world, const quern_load_def *def,
                                   uint32_t *out_extra_count)
{
    const quern_result result = check_migrations(world, def);
    return result == QUERN_OK ? check_extra(world, def, out_extra_count) : result;
}

static quern_result check_exact_type(const quern__image *image, const quern__archived_type *type)
{
    if (type->migration != NULL || type->component_index == QUERN__NO_COMPONENT ||
        type->conversion.kind != QUERN__CONVERT_BYTES)
        return quern__fail(QUERN_ERROR_LAYOUT_MISMATCH,
                           "component '%s' differs between the archive and the world, so frames would "
                           "differ too: register "
                           "it as in the saved world, or load without schedules",
                           type->type.name);
    const uint32_t flags =
        quern__components_type(&image->world->storage.components, type->component_index)->flags;
    if (quern__column_flags_to_archive((uint8_t)flags) == quern__column_flags_to_archive(type->type.flags))
        return QUERN_OK;
    return quern__fail(
        QUERN_ERROR_LAYOUT_MISMATCH,
        "component '%s' has other flags in the world than in the archive: register it with the "
        "same ones, or load without schedules",
        type->type.name);
}

/* Checks that the archive has the state of schedules, and that loading gives exactly the saved world, as restoring that
 * state requires: the world never had an entity, and has all types in the same order and with the same layouts. */
static quern_result check_run(const quern__image *image)
{
    if (image->run.count == 0)
        return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                           "the archive was saved without the state of schedules: set schedules of "
                           "quern_save_def when saving, or load without schedules");
    if (!image->keeps_handles)
        return quern__fail(
            QUERN_ERROR_INVALID_ARGUMENT,
            "the state of schedules can be loaded only into a world that never had an entity: "
            "create a new world, or load without schedules");
    if (image->extra_count > 0)
        return quern__fail(
            QUERN_ERROR_INVALID_ARGUMENT,
            "extra and schedules are both set, but with another set of components frames would not be "
            "the same: set only one of them");
    uint32_t least_index = 0;
    quern_result result = QUERN_OK;
    for (uint32_t i = 0; i < image->types.count && result == QUERN_OK; i++) {
        const quern__archived_type *type = image->types.items[i];
        result = check_exact_type(image, type);
        if (result == QUERN_OK && type->component_index < least_index)
            result = quern__fail(
                QUERN_ERROR_LAYOUT_MISMATCH,
                "component '%s' was registered in another order in the saved world: use the same order "
                "(quern_world_parent and quern_world_disabled_tag register components, too), or load "
                "without "
                "schedules",
                type->type.name);
        least_index = type->component_index + 1;
    }
    return result;
}

/* Releases the types except the first kept_count. */
static void release_types(quern__archived_types *types, uint32_t kept_count,
                          const quern_allocator *allocator)
{
    while (types->count > kept_count) {
        quern__archived_type *type = types->items[--types->count];
        quern__type_release(&type->type, allocator);
        quern__release(allocator, type, sizeof *type, _Alignof(quern__archived_type));
    }
}

/* Releases everything except the types. */
static void release_image(quern__image *image)
{
    const quern_allocator *allocator = &image->allocator;
    const size_t count = image->head.slot_count;
    for (uint32_t i = 0; i < image->types.count; i++) {
        quern__archived_links *links = image->types.items[i]->links;
        if (links == NULL) continue;
        quern__array_release(allocator, &links->outside_edges);
        quern__array_release(allocator, &links->edges);
        quern__array_release(allocator, &links->scratch);
        quern__release(allocator, links->targets, count * sizeof *links->targets,
                       QUERN__ARRAY_ALIGNMENT_BYTES);
        quern__release(allocator, links->levels, count, QUERN__ARRAY_ALIGNMENT_BYTES);
        quern__release(allocator, links, sizeof *links, _Alignof(quern__archived_links));
        image->types.items[i]->links = NULL;
    }
    for (uint32_t i = 0; i < image->resources.count; i++) {
        quern__archived_resource *resource = image->resources.items[i];
        if (resource->has_lists) quern__type_free_lists(&resource->type, resource->value);
        quern__release(allocator, resource->value, resource->type.size_bytes, QUERN_MAX_ALIGNMENT_BYTES);
        quern__type_release(&resource->type, allocator);
        quern__release(allocator, resource, sizeof *resource, _Alignof(quern__archived_resource));
    }
    quern__array_release(allocator, &image->resources);
    for (uint32_t i = 0; i < image->lists.count; i++)
        quern_list_free(&image->lists.items[i]);
    quern__array_release(allocator, &image->lists);
    if (image->lists_bytes.allocator != NULL) quern__byte_writer_release(&image->lists_bytes);
    quern__array_release(allocator, &image->archetypes);
    quern__array_release(allocator, &image->type_numbers);
    quern__array_release(allocator, &image->free_slots);
    quern__array_release(allocator, &image->use_counts);
    quern__array_release(allocator, &image->states);
    quern__names_release(&image->names, allocator);
    quern__names_release(&image->outside_names, allocator);
    quern__array_release(allocator, &image->outside);
    quern__byte_writer_release(&image->run);
    quern__archive_blocks_release(&image->blocks, allocator);
}

/* Reads an archive into an image and loads it. The caller has set the definition, report, world, allocator and flags of
 * the image, and owns its types, also afterwards; all other members are released. Errors: as quern__world_load. */
static quern_result image_load(quern__image *image, quern_source source,
                               const quern__run_restorer *restorer)
{
    quern_result result = quern__image_read(image, source);
    if (result == QUERN_OK && restorer != NULL) result = check_run(image);
    if (result == QUERN_OK) {
        loading load = {.image = image, .storage = &image->world->storage, .restorer = restorer};
        /* the archetypes of the archive must be the first of the world, in the same order */
        if (image->keeps_handles && image->world->storage.archetypes.count > 1)
            result = quern_world_remove_empty_archetypes(image->world, NULL);
        if (result == QUERN_OK) result = reserve(&load);
        if (result == QUERN_OK) {
            load_all(&load);
            quern__rows_gather_if_large(load.storage);
        } else {
            unreserve(&load);
        }
        quern__release(&image->allocator, load.handles, image->head.slot_count * sizeof *load.handles,
                       QUERN__ARRAY_ALIGNMENT_BYTES);
        quern__release(&image->allocator, load.sources, QUERN__SECTION_BYTES, QUERN_MAX_ALIGNMENT_BYTES);
        quern__release(&image->allocator, load.row_archetypes,
                       image->head.slot_count * sizeof *load.row_archetypes, QUERN__ARRAY_ALIGNMENT_BYTES);
    }
    if (result == QUERN_OK) {
        image->report->entity_count = image->head.row_count;
        image->report->keeps_handles = image->keeps_handles;
        if (image->session != NULL)
            *image->session =
                (quern__archive_position){image->blocks.head.message_number, image->blocks.checksum};
    }
    release_image(image);
    return result;
}

quern_result quern__world_load(quern_world *world, quern_source source, const quern_load_def *def,
                               const quern__run_restorer *restorer, quern_load_report *report)
{
    static const quern_load_def zero;
    if (def == NULL) def = &zero;
    quern__image image = {.def = def,
                          .report = report,
                          .world = world,
                          .allocator = world->storage.allocator,
                          .keeps_handles = world->storage.entities.slot_count == 0,
                          .reads_run = restorer != NULL};
    quern_result result = load_check_def(world, def, &image.extra_count);
    if (result == QUERN_OK && def->entity_capacity > 0 && def->entities == NULL)
        return quern__fail_null("quern_world_load", "def->entities");
    if (result != QUERN_OK) return result;
    result = image_load(&image, source, restorer);
    release_types(&image.types, 0, &world->storage.allocator);
    quern__array_release(&world->storage.allocator, &image.types);
    return result;
}

/* ----------------------------------------------------------------------------------------- sessions */

/* Load sessions: the messages of a save session, whose types are kept from one message to the next. */

struct quern_load_session {
    quern_world *world;
    quern_world_user user;
    quern_load_def def;
    uint32_t extra_count;
    quern__archive_position position; /* the messages that were read */
    quern__archived_types types;      /* of all messages so far */
    quern__call_memory memory;        /* memory of one message */
    uint64_t layout_count;            /* that of the world when the session was created */
};

static quern_result create(quern_world *world, const quern_load_def *def, quern_load_session **out_session)
{
    static const quern_load_def zero;
    if (def == NULL) def = &zero;
    uint32_t extra_count;
    quern_result result = quern__world_check_unlocked(world, "quern_load_session_create");
    if (result == QUERN_OK) result = load_check_def(world, def, &extra_count);
    if (result == QUERN_OK &&
        (def->schedules[0] != NULL || def->entities != NULL || def->entity_capacity > 0))
        result = quern__fail(
            QUERN_ERROR_INVALID_ARGUMENT,
            "schedules, entities and entity_capacity have no meaning for a session: leave them zero, "
            "and pass entities to quern_load_session_read");
    if (result != QUERN_OK) return result;
    quern_load_session *session =
        quern__allocate(&world->storage.allocator, sizeof *session, _Alignof(quern_load_session));
    if (session != NULL) {
        *session = (quern_load_session){.world = world,
                                        .user = {.name = "a session that loads (quern_load_session)"},
                                        .def = *def,
                                        .extra_count = extra_count,
                                        .layout_count = world->layout_count};
        if (!quern__call_memory_init(&session->memory, &world->storage.allocator)) {
            quern__release(&world->storage.allocator, session, sizeof *session,
                           _Alignof(quern_load_session));
            session = NULL;
        }
    }
    if (session == NULL)
        return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "out of memory for a session; nothing has changed");
    *out_session = session;
    return quern_world_add_user(world, &session->user);
}

quern_result quern_load_session_create(quern_world *world, const quern_load_def *def,
                                       quern_load_session **out_session)
{
    QUERN__NEED(world);
    QUERN__NEED(out_session);
    return quern__in_call(create(world, def, out_session), __func__);
}

void quern_load_session_destroy(quern_load_session *session)
{
    if (session == NULL) return;
    quern_world_remove_user(session->world, &session->user);
    const quern_allocator allocator = session->world->storage.allocator;
    release_types(&session->types, 0, &allocator);
    quern__array_release(&allocator, &session->types);
    quern__call_memory_release(&session->memory);
    quern__release(&allocator, session, sizeof *session, _Alignof(quern_load_session));
}

static quern_result read_message(quern_load_session *session, quern_source source,
                                 quern_load_report *report)
{
    quern_world *world = session->world;
    const uint32_t known_count = session->types.count;
    quern_result result = quern__world_check_unlocked(world, "quern_load_session_read");
    if (result == QUERN_OK)
        result = quern__redefine_check_since(world, session->layout_count, "the session");
    if (result != QUERN_OK) return result;
    quern__image image = {.def = &session->def,
                          .report = report,
                          .world = world,
                          .allocator = quern__call_memory_allocator(&session->memory),
                          .keeps_handles = world->storage.entities.slot_count == 0,
                          .session = &session->position,
                          .extra_count = session->extra_count,
                          .types = session->types};
    result = image_load(&image, source, NULL);
    /* the types of a message that failed are read again, if the program passes it again */
    if (result != QUERN_OK) release_types(&image.types, known_count, &world->storage.allocator);
    session->types = image.types;
    return result;
}

quern_result quern_load_session_read(quern_load_session *session, quern_source source,
                                     quern_entity *entities, uint32_t capacity,
                                     quern_load_report *out_report)
{
    quern_load_report ignored, *report = out_report != NULL ? out_report : &ignored;
    *report = (quern_load_report){0};
    QUERN__NEED(session);
    QUERN__NEED_LIST(entities, capacity);
    const quern_result result = quern__check_source(source, __func__);
    if (result != QUERN_OK) return result;
    QUERN__ENTER(session->world);
    session->def.entities = entities;
    session->def.entity_capacity = capacity;
    return quern__in_call(read_message(session, source, report), __func__);
}
