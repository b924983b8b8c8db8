/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Reads and checks an archive (archive_internal.h): slots and names, links and edges, archetypes and rows, then the consistency of all
 * of them. The bytes may be forged. */

#include "core/archive/archive_internal.h"

#include "core/relations/relation_internal.h"

quern_result quern__image_fail(const char *what)
{
    return quern__fail(QUERN_ERROR_BAD_ARCHIVE,
                       "the archive violates the format: %s; it was damaged or not written by Quern, so "
                       "use an intact copy",
                       what);
}

quern_result quern__image_fail_memory(void)
{
    return quern__fail(QUERN_ERROR_OUT_OF_MEMORY,
                       "out of memory for the contents of an archive; the world is unchanged");
}

/* ------------------------------------------------------------------------------------------- slots */

/* Slot counts determine how much memory is allocated, so they are checked against the size of the
 * archive: each slot needs 8 bytes in a row or in the free list, or 4 bytes in the list of retired
 * slots. */
static quern_result parse_world(quern__image *image, quern__byte_reader *payload)
{
    quern__world_section *head = &image->head;
    quern__read(payload, head, sizeof *head);
    const uint64_t sum = (uint64_t)head->row_count + head->free_count + head->retired_count;
    if (!quern__is_fully_read(payload) || sum != head->slot_count || head->slot_count > QUERN_MAX_ENTITIES)
        return quern__image_fail("the slot counts of the WORLD section do not add up");
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < image->blocks.list.count; i++)
        bytes += image->blocks.list.items[i].bytes;
    if (head->slot_count > bytes / sizeof(uint32_t))
        return quern__image_fail("the WORLD section has more slots than the archive has room for");
    if (head->first_handle_high >> 24 == 0 || (head->first_handle_high & QUERN__MAX_GENERATION) == 0)
        return quern__image_fail("the first generation in the WORLD section is invalid");
    if (!quern__array_reserve(&image->allocator, &image->use_counts, head->slot_count) ||
        !quern__array_reserve(&image->allocator, &image->states, head->slot_count) ||
        !quern__array_reserve(&image->allocator, &image->free_slots, head->free_count))
        return quern__image_fail_memory();
    image->use_counts.count = image->states.count = head->slot_count;
    if (head->slot_count > 0) memset(image->states.items, QUERN__STATE_UNKNOWN, head->slot_count);
    return QUERN_OK;
}

static bool set_slot_state(const quern__image *image, uint32_t slot, uint32_t use_count,
                           quern__archived_slot_state state)
{
    if (slot >= image->head.slot_count || image->states.items[slot] != QUERN__STATE_UNKNOWN ||
        use_count == 0 || use_count > QUERN__MAX_GENERATION)
        return false;
    image->states.items[slot] = (uint8_t)state;
    image->use_counts.items[slot] = use_count;
    return true;
}

static quern_result parse_free(quern__image *image, quern__byte_reader *payload)
{
    while (quern__bytes_left(payload) > 0) {
        quern__free_section entry;
        quern__read(payload, &entry, sizeof entry);
        if (payload->has_failed || image->free_slots.count == image->head.free_count ||
            !set_slot_state(image, entry.slot, entry.use_count, QUERN__STATE_FREE))
            return quern__image_fail("a FREE section is invalid");
        image->free_slots.items[image->free_slots.count++] = entry.slot;
    }
    return QUERN_OK;
}

static quern_result parse_retired(quern__image *image, quern__byte_reader *payload)
{
    while (quern__bytes_left(payload) > 0) {
        const uint32_t slot = quern__read_u32(payload);
        if (payload->has_failed ||
            !set_slot_state(image, slot, QUERN__MAX_GENERATION, QUERN__STATE_RETIRED))
            return quern__image_fail("a RETIRED section is invalid");
        image->retired_count++;
    }
    return QUERN_OK;
}

/* ------------------------------------------------------------------------------------------- names */

/* Returns the slot of the parent in the built-in hierarchy, or QUERN__SLOT_NONE. */
static uint32_t parent_of(const quern__image *image, uint32_t slot)
{
    for (uint32_t i = 0; i < image->types.count; i++) {
        const quern__archived_links *links = image->types.items[i]->links;
        if (links != NULL && links->relation == image->world->storage.relations->parent)
            return links->targets[slot];
    }
    return QUERN__SLOT_NONE;
}

/* Handles an entity without a parent in the archive, of which a sibling of the world, or an earlier one of the archive,
 * already has the name: drops the name or fails. relative: "root" or "child of its parent". */
static quern_result drop_name(const quern__image *image, const char *name, const char *relative,
                              const char *other)
{
    if (!image->def->drop_taken_names)
        return quern__fail(QUERN_ERROR_SIBLING_NAME_TAKEN,
                           "an entity of the archive has the name '%s', which another %s of %s has "
                           "already: rename one of them before, or set drop_taken_names",
                           name, relative, other);
    image->report->dropped_name_count++;
    return QUERN_OK;
}

/* Adds the name of an entity with a parent outside of the list. parent: slot in the world. */
static quern_result add_outside_name(quern__image *image, uint32_t slot, uint32_t parent, const char *name)
{
    static const char relative[] = "child of its parent";
    const uint32_t bytes = (uint32_t)strlen(name);
    if (quern__names_number(&image->outside_names, slot) != QUERN__NAME_NONE)
        return quern__image_fail("a NAMES section names an entity twice");
    if (quern__names_find(&image->outside_names, parent, name, bytes) != QUERN__SLOT_NONE)
        return drop_name(image, name, relative, "the archive");
    if (quern__names_find(image->world->storage.names, parent, name, bytes) != QUERN__SLOT_NONE)
        return drop_name(image, name, relative, "the world");
    if (!quern__names_reserve(&image->outside_names, &image->allocator, slot))
        return quern__image_fail_memory();
    quern__names_put(&image->outside_names, slot, parent, name, bytes);
    return QUERN_OK;
}

/* Equal names of roots are not damage: in an archive of selected entities, an entity becomes a root
 * if its parent was not selected. */
static quern_result add_name(quern__image *image, uint32_t slot, const char *name)
{
    if (quern__entity_check_name(name) != QUERN_OK)
        return quern__image_fail("a NAMES section contains an invalid name");
    if (!quern__image_is_alive(image, slot) || quern__names_number(&image->names, slot) != QUERN__NAME_NONE)
        return quern__image_fail("a NAMES section names a dead entity, or an entity twice");
    const uint32_t bytes = (uint32_t)strlen(name), target = parent_of(image, slot);
    const quern_entity outside = quern__image_outside(image, target);
    if (outside.bits != 0) return add_outside_name(image, slot, quern_entity_index(outside), name);
    const uint32_t parent = target < image->head.slot_count ? target : QUERN__SLOT_NONE;
    if (quern__names_find(&image->names, parent, name, bytes) != QUERN__SLOT_NONE)
        return parent == QUERN__SLOT_NONE ? drop_name(image, name, "root", "the archive")
                                          : quern__image_fail("two siblings have the same name");
    if (parent == QUERN__SLOT_NONE && !image->keeps_handles &&
        quern__names_find(image->world->storage.names, parent, name, bytes) != QUERN__SLOT_NONE)
        return drop_name(image, name, "root", "the world");
    if (!quern__names_reserve(&image->names, &image->allocator, slot)) return quern__image_fail_memory();
    quern__names_put(&image->names, slot, parent, name, bytes);
    return QUERN_OK;
}

static quern_result parse_names(quern__image *image, quern__byte_reader *payload)
{
    quern_result result = QUERN_OK;
    while (result == QUERN_OK && quern__bytes_left(payload) > 0) {
        char name[QUERN_MAX_ENTITY_NAME_BYTES + 1];
        const uint32_t slot = quern__read_u32(payload);
        quern__read_text(payload, QUERN__ARCHIVE_NAME_LENGTH_BYTES, QUERN_MAX_ENTITY_NAME_BYTES, name);
        result = payload->has_failed ? quern__image_fail("a NAMES section is invalid")
                                     : add_name(image, slot, name);
    }
    return result;
}

/* ----------------------------------------------------------------------------------------- reading */

/* Whether a section may follow another one. Sections of one kind are consecutive, except that rows
 * follow their archetype and values follow their resource. */
static bool may_follow(quern__section_kind last, quern__section_kind kind)
{
    switch (kind) {
    case QUERN__SECTION_WORLD:
        return last == 0;
    case QUERN__SECTION_RESOURCE:
        return last >= QUERN__SECTION_WORLD && last <= QUERN__SECTION_VALUE;
    case QUERN__SECTION_VALUE:
        return last == QUERN__SECTION_RESOURCE || last == QUERN__SECTION_VALUE;
    case QUERN__SECTION_ARCHETYPE:
        return last >= QUERN__SECTION_WORLD && last <= QUERN__SECTION_ROWS;
    case QUERN__SECTION_ROWS:
        return last == QUERN__SECTION_ARCHETYPE || last == QUERN__SECTION_ROWS;
    case QUERN__SECTION_OUTSIDE:
        return last >= QUERN__SECTION_WORLD && (last < QUERN__SECTION_NAMES || last == kind);
    case QUERN__SECTION_NAMES:
    case QUERN__SECTION_RUN:
        return last >= QUERN__SECTION_WORLD && (last <= kind || last == QUERN__SECTION_OUTSIDE);
    case QUERN__SECTION_END:
        return last >= QUERN__SECTION_WORLD && last < QUERN__SECTION_END;
    default:
        return last >= QUERN__SECTION_WORLD && last <= kind;
    }
}

/* Asks the program for the entities with the ids, of which those that are not alive count as null. */
static quern_result parse_outside(quern__image *image, quern__byte_reader *payload)
{
    const quern_load_def *def = image->def;
    const uint32_t count = (uint32_t)(quern__bytes_left(payload) / sizeof(uint64_t));
    if (quern__bytes_left(payload) % sizeof(uint64_t) != 0)
        return quern__image_fail("an OUTSIDE section has an incomplete id");
    if (def->outside_entity == NULL) return QUERN_OK;
    if (!quern__array_reserve(&image->allocator, &image->outside, image->outside.count + count))
        return quern__image_fail_memory();
    quern__world_set_locked(image->world, true);
    for (uint32_t i = 0; i < count; i++) {
        const quern_entity entity = def->outside_entity(def->user_data, quern__read_u64(payload));
        const bool is_alive = quern__entities_find(&image->world->storage.entities, entity) != NULL;
        image->outside.items[image->outside.count++] = is_alive ? entity : (quern_entity){0};
    }
    quern__world_set_locked(image->world, false);
    return QUERN_OK;
}

static quern_result allocate_links(quern__image *image, quern__archived_type *type)
{
    const quern_allocator *allocator = &image->allocator;
    const size_t count = image->head.slot_count;
    if (count == 0) return quern__image_fail("a LINKS section exists, but no entities");
    quern__archived_links *links =
        quern__allocate(allocator, sizeof *links, _Alignof(quern__archived_links));
    if (links == NULL) return quern__image_fail_memory();
    *links =
        (quern__archived_links){.relation = type->relation,
                                .levels = quern__allocate(allocator, count, QUERN__ARRAY_ALIGNMENT_BYTES)};
    type->links = links;
    if (links->levels == NULL) return quern__image_fail_memory();
    memset(links->levels, 0, count);
    if (type->relation->is_many) return QUERN_OK;
    links->targets =
        quern__allocate(allocator, count * sizeof *links->targets, QUERN__ARRAY_ALIGNMENT_BYTES);
    if (links->targets == NULL) return quern__image_fail_memory();
    memset(links->targets, 0xFF, count * sizeof *links->targets); /* every target is QUERN__SLOT_NONE */
    return QUERN_OK;
}

/* Adds the link from a source to a target of the list, or outside of it. */
static quern_result add_link(const quern__image *image, quern__archived_links *links, uint32_t child,
                             uint32_t target)
{
    const quern_allocator *allocator = &image->allocator;
    const bool is_outside = target >= image->head.slot_count;
    if (links->targets == NULL) {
        const uint64_t source = (uint64_t)child << 32;
        if (is_outside
                ? !quern__array_reserve(allocator, &links->outside_edges, links->outside_edges.count + 1)
                : !quern__array_reserve(allocator, &links->edges, links->edges.count + 1))
            return quern__image_fail_memory();
        if (is_outside)
            links->outside_edges.items[links->outside_edges.count++] =
                source | (target - image->head.slot_count);
        else
            links->edges.items[links->edges.count++] = (quern__sort_item){.key = source | target};
        return QUERN_OK;
    }
    if (links->targets[child] != QUERN__SLOT_NONE)
        return quern__image_fail("a LINKS section gives an entity two targets");
    links->targets[child] = target;
    links->link_count += !is_outside;
    return QUERN_OK;
}

/* The links are not loaded if the type has none. */
static quern_result parse_children(const quern__image *image, const quern__archived_type *type,
                                   quern__byte_reader *payload)
{
    static const char what[] = "a LINKS section is invalid";
    quern__archived_links *links = type->links;
    const uint32_t target = quern__read_u32(payload), count = quern__read_u32(payload);
    quern_result result = QUERN_OK;
    if (payload->has_failed || target == QUERN__SLOT_NONE || count == 0) return quern__image_fail(what);
    if (target >= image->head.slot_count && image->def->outside_entity == NULL)
        links = NULL;
    else if (target >= image->head.slot_count && type->relation == NULL &&
             type->component_index != QUERN__NO_COMPONENT)
        /* the links would be lost: rows have values of a relation only for targets in the list, so the component has
         * nothing to load from */
        return quern__fail(
            QUERN_ERROR_LAYOUT_MISMATCH,
            "relation '%s' is loaded as component '%s', but has targets outside of the list, which only a "
            "relation can "
            "have: give a migration to a relation, or to none, or load without outside_entity",
            type->type.name,
            quern__components_type(&image->world->storage.components, type->component_index)->name);
    for (uint32_t i = 0; i < count && result == QUERN_OK; i++) {
        const uint32_t child = quern__read_u32(payload);
        if (payload->has_failed || child >= image->head.slot_count || child == target)
            return quern__image_fail(what);
        if (links != NULL) result = add_link(image, links, child, target);
    }
    return result;
}

static quern_result parse_links(quern__image *image, quern__byte_reader *payload)
{
    quern__links_section section;
    quern__read(payload, &section, sizeof section);
    quern__archived_type *type =
        section.relation < image->types.count ? image->types.items[section.relation] : NULL;
    if (type == NULL || type->role != QUERN__ROLE_RELATION || section.zero != 0)
        return quern__image_fail("a LINKS section belongs to no relation");
    quern_result result = QUERN_OK;
    if (type->links == NULL && type->relation != NULL) result = allocate_links(image, type);
    while (result == QUERN_OK && quern__bytes_left(payload) > 0)
        result = parse_children(image, type, payload);
    return result;
}

/* Returns the level of the archetype in the relation; 0: none, UINT32_MAX: more than one. */
static uint32_t level_of(const quern__image *image, const quern__archived_archetype *archived,
                         uint32_t relation)
{
    uint32_t level = 0;
    for (uint32_t i = 0; i < archived->type_count; i++) {
        const quern__archived_type *type = quern__image_type(image, archived, i);
        if (type->role != QUERN__ROLE_LEVEL || type->relation_number != relation) continue;
        if (level != 0) return UINT32_MAX;
        level = type->level;
    }
    return level;
}

/* Whether each relation with levels has exactly one level, and no level lacks its relation. */
static bool has_valid_levels(const quern__image *image, const quern__archived_archetype *archived)
{
    uint32_t level_count = 0;
    for (uint32_t i = 0; i < archived->type_count; i++) {
        const uint32_t number = image->type_numbers.items[archived->first_type + i];
        const quern__archived_type *type = image->types.items[number];
        level_count += type->role == QUERN__ROLE_LEVEL;
        if (type->role != QUERN__ROLE_RELATION) continue;
        const uint32_t level = level_of(image, archived, number);
        const bool has_levels = (type->flags & QUERN__ARCHIVED_HAS_LEVELS) != 0;
        if (has_levels ? level == 0 || level == UINT32_MAX : level != 0) return false;
        level_count -= has_levels;
    }
    return level_count == 0;
}

static quern_result add_type(quern__image *image, quern__archived_archetype *archived, uint32_t number)
{
    if (number >= image->types.count) return quern__image_fail("an ARCHETYPE section has an unknown type");
    const quern__archived_type *type = image->types.items[number];
    image->type_numbers.items[image->type_numbers.count++] = number;
    archived->type_count++;
    archived->values_bytes += type->type.size_bytes;
    archived->bit_column_count += quern__column_flags_bit_column_count(type->type.flags);
    if ((type->flags & QUERN__ARCHIVED_HAS_HOOKS) != 0 && archived->row_count > 0)
        return quern__image_fail("an ARCHETYPE section has rows with a component that has hooks");
    if (type->component_index == QUERN__NO_COMPONENT ||
        quern__components_insert(archived->component_indices, &archived->component_count,
                                 type->component_index))
        return QUERN_OK;
    return quern__fail(
        QUERN_ERROR_LAYOUT_MISMATCH,
        "an entity of the archive would get component '%s' twice: '%s' and another type of the same "
        "archetype are loaded as it; change a migration",
        quern__components_type(&image->world->storage.components, type->component_index)->name,
        type->type.name);
}

/* Whether all rows of the last archetype were parsed. True if there is no archetype. */
static bool is_last_archetype_complete(const quern__image *image)
{
    if (image->archetypes.count == 0) return true;
    const quern__archived_archetype *archived = &image->archetypes.items[image->archetypes.count - 1];
    return archived->parsed_row_count == archived->row_count;
}

static quern_result parse_archetype(quern__image *image, quern__byte_reader *payload)
{
    quern__archetype_section section;
    quern__read(payload, &section, sizeof section);
    if (payload->has_failed || section.zero != 0 || section.type_count > QUERN_MAX_ENTITY_COMPONENTS ||
        !is_last_archetype_complete(image))
        return quern__image_fail("an ARCHETYPE section is invalid");
    const uint32_t least =
        quern__archived_least_layout_index(section.type_count, image->archetype_count_with_types);
    image->archetype_count_with_types += section.type_count > 0;
    if (section.layout_index < least || section.layout_index >= QUERN_MAX_ARCHETYPES)
        return quern__image_fail("an ARCHETYPE section has an impossible layout index");
    if (!quern__array_reserve(&image->allocator, &image->archetypes, image->archetypes.count + 1) ||
        !quern__array_reserve(&image->allocator, &image->type_numbers,
                              image->type_numbers.count + section.type_count))
        return quern__image_fail_memory();
    quern__archived_archetype *archived = &image->archetypes.items[image->archetypes.count++];
    *archived = (quern__archived_archetype){.first_type = image->type_numbers.count,
                                            .row_count = section.row_count,
                                            .empty_since = section.empty_since,
                                            .layout_index = section.layout_index,
                                            .values_bytes = sizeof(quern_entity)};
    for (uint32_t i = 0; i < image->extra_count; i++)
        quern__components_insert(archived->component_indices, &archived->component_count,
                                 quern__component_index(image->def->extra[i]));
    quern_result result = QUERN_OK;
    for (uint32_t i = 0; i < section.type_count && result == QUERN_OK; i++)
        result = add_type(image, archived, quern__read_u32(payload));
    if (result == QUERN_OK && (!quern__is_fully_read(payload) || !has_valid_levels(image, archived)))
        result = quern__image_fail("an ARCHETYPE section is invalid");
    return result;
}

/* Checks the values of a type. Of a relation, it compares them with the links, and notes the level of each source, or that
 * it has the tag. */
static quern_result parse_column(const quern__image *image, const quern__archived_archetype *archived,
                                 uint32_t i, const char *handles, const char *values, uint32_t count)
{
    const quern__archived_type *type = quern__image_type(image, archived, i);
    if (!quern__type_has_no_lists(&type->type, values, count))
        return quern__image_fail("the bytes of a list in a row are not zero");
    if (type->component_index == QUERN__NO_COMPONENT) return QUERN_OK;
    if (type->relation == NULL) return quern__conversion_check(&type->conversion, values, count);
    const bool is_many = type->relation->is_many;
    quern__archived_links *links = type->links;
    uint32_t level = is_many ? QUERN__EDGES_HAVE_TAG : 0;
    bool is_valid = links != NULL;
    if (type->relation->has_levels)
        level = level_of(image, archived, image->type_numbers.items[archived->first_type + i]);
    if (is_valid) links->source_count += count;
    for (uint32_t row = 0; is_valid && row < count; row++) {
        const uint32_t slot = quern_entity_index((quern_entity){quern__load_u64(handles, row)});
        if (!is_many)
            is_valid =
                links->targets[slot] != QUERN__SLOT_NONE &&
                links->targets[slot] == quern_entity_index((quern_entity){quern__load_u64(values, row)});
        links->levels[slot] = (uint8_t)level;
    }
    if (is_valid) return QUERN_OK;
    return quern__image_fail(is_many ? "rows have the tag of a relation without edges"
                                     : "the targets in rows differ from the links");
}

/* Parses the bits of a component for the rows of one section, and checks that the world can store them. */
static quern_result parse_row_bits(const quern__image *image, const quern__archived_type *type,
                                   const quern__column_flag *flag, quern__byte_reader *payload,
                                   uint32_t row_count)
{
    uint64_t words[QUERN__BIT_COLUMN_ROW_WORDS] = {0};
    uint32_t found = 0;
    const uint64_t count = quern__read_u64(payload);
    if (payload->has_failed || count == 0) return QUERN_OK;
    quern__read(payload, words, quern__archived_row_bits_bytes(row_count));
    for (uint32_t i = 0; i < QUERN__BIT_COLUMN_ROW_WORDS; i++)
        found += quern__count_bits_64(words[i]);
    if (found != count || (row_count % 64 != 0 && words[row_count / 64] >> row_count % 64 != 0))
        return quern__image_fail("the row bits of a ROWS section do not match its rows");
    const uint32_t index = type->component_index;
    if (index == QUERN__NO_COMPONENT ||
        quern__components_has_flag(&image->world->storage.components, index, flag->bit))
        return QUERN_OK;
    return quern__fail(QUERN_ERROR_LAYOUT_MISMATCH,
                       "entities of the archive have '%s' %s, but this world registered it without %s: set "
                       "the flag when registering, or use a migration to another component",
                       type->type.name, flag->list_name, flag->name);
}

static quern_result parse_rows(quern__image *image, quern__byte_reader *payload)
{
    quern__archived_archetype *archived = &image->archetypes.items[image->archetypes.count - 1];
    quern__rows_section section;
    quern__read(payload, &section, sizeof section);
    const uint32_t count = section.row_count;
    if (payload->has_failed || section.zero != 0 || count == 0 || count > QUERN__BIT_COLUMN_MAX_ROWS ||
        count > archived->row_count - archived->parsed_row_count)
        return quern__image_fail("a ROWS section has an impossible row count");
    archived->parsed_row_count += count;
    const char *handles = quern__read_items(payload, count, sizeof(quern_entity));
    for (uint32_t i = 0; i < count; i++) {
        const quern_entity entity = {handles != NULL ? quern__load_u64(handles, i) : 0};
        if (!set_slot_state(image, quern_entity_index(entity), quern__image_use_count(image, entity),
                            QUERN__STATE_ALIVE))
            return quern__image_fail("a ROWS section has invalid handles");
    }
    quern_result result = QUERN_OK;
    for (uint32_t i = 0; i < archived->type_count && result == QUERN_OK; i++) {
        const uint32_t size_bytes = quern__image_type(image, archived, i)->type.size_bytes;
        const char *values = quern__read_items(payload, count, size_bytes);
        if (values == NULL) return quern__image_fail("a ROWS section is too short");
        result = parse_column(image, archived, i, handles, values, count);
    }
    for (uint32_t flag = 0; flag < QUERN__ROW_FLAG_COUNT; flag++)
        for (uint32_t i = 0; i < archived->type_count && result == QUERN_OK; i++)
            if ((quern__image_type(image, archived, i)->type.flags & 1u << flag) != 0)
                result = parse_row_bits(image, quern__image_type(image, archived, i),
                                        &quern__column_flags[flag], payload, count);
    if (result == QUERN_OK && !quern__is_fully_read(payload))
        result = quern__image_fail("a ROWS section has more bytes than its types need");
    for (uint32_t i = 0; i < archived->type_count; i++)
        if (quern__archived_list_count(quern__image_type(image, archived, i)) > 0)
            image->lists_row_count = count;
    return result;
}

/* ------------------------------------------------------------------------------------------- lists */

/* Collects the bytes. Memory is in proportion to the archive. */
static quern_result parse_lists(quern__image *image, const quern__byte_reader *payload)
{
    const bool follow_value = image->last_kind == QUERN__SECTION_VALUE;
    if (!follow_value && !(image->last_kind == QUERN__SECTION_ROWS && image->lists_row_count > 0))
        return quern__image_fail("a LISTS section is out of order");
    image->last_was_lists = true;
    image->lists_bytes.allocator = &image->allocator;
    quern__write(&image->lists_bytes, payload->at, quern__bytes_left(payload));
    return image->lists_bytes.has_failed ? quern__image_fail_memory() : QUERN_OK;
}

/* Reads the lists of one value, into `value`, and converts them to lists of the world. */
static quern_result read_lists(const quern__type *type, const quern__conversion *conversion, char *value,
                               quern__byte_reader *bytes)
{
    if (!quern__type_read_lists(type, value, bytes)) return quern__image_fail_memory();
    if (bytes->has_failed) return quern__image_fail("a LISTS section has too few bytes, or no lists");
    return quern__conversion_convert_lists(conversion, value);
}

/* Reads the lists of a column, and appends them to those of the image. */
static quern_result read_column_lists(quern__image *image, const quern__archived_type *type,
                                      quern__byte_reader *bytes)
{
    const uint32_t list_count = quern__archived_list_count(type), size_bytes = type->type.size_bytes;
    char *value = quern__allocate(&image->allocator, size_bytes, QUERN_MAX_ALIGNMENT_BYTES);
    quern_result result = value != NULL ? QUERN_OK : quern__image_fail_memory();
    for (uint32_t row = 0; row < image->lists_row_count && result == QUERN_OK; row++) {
        memset(value, 0, size_bytes);
        if (!quern__array_reserve(&image->allocator, &image->lists, image->lists.count + list_count)) {
            result = quern__image_fail_memory();
            break;
        }
        result = read_lists(&type->type, &type->conversion, value, bytes);
        for (uint32_t k = 0; k < list_count; k++)
            memcpy(&image->lists.items[image->lists.count++], value + type->type.lists->offsets[k],
                   sizeof(quern_list));
    }
    quern__release(&image->allocator, value, size_bytes, QUERN_MAX_ALIGNMENT_BYTES);
    return result;
}

/* Reads the lists of the section before, once all their bytes were collected. */
static quern_result finish_lists(quern__image *image)
{
    quern__byte_reader bytes = quern__byte_reader_open(image->lists_bytes.bytes, image->lists_bytes.count);
    quern_result result = QUERN_OK;
    if (image->last_kind == QUERN__SECTION_VALUE) {
        quern__archived_resource *resource = image->resources.items[image->resources.count - 1];
        const bool is_complete = resource->value_bytes == resource->type.size_bytes;
        if (image->last_was_lists && (resource->type.lists == NULL || !is_complete))
            return quern__image_fail("a LISTS section does not follow the value of a resource with lists");
        image->lists_bytes.count = 0; /* the reader still has them */
        if (resource->type.lists == NULL || !is_complete || resource->resource == NULL) return QUERN_OK;
        if (!quern__type_has_no_lists(&resource->type, resource->value, 1))
            return quern__image_fail("the bytes of a list in a resource are not zero");
        resource->has_lists = true;
        result = read_lists(&resource->type, &resource->conversion, resource->value, &bytes);
    } else if (image->lists_row_count > 0) {
        const quern__archived_archetype *archived = &image->archetypes.items[image->archetypes.count - 1];
        for (uint32_t i = 0; i < archived->type_count && result == QUERN_OK; i++)
            if (quern__archived_list_count(quern__image_type(image, archived, i)) > 0)
                result = read_column_lists(image, quern__image_type(image, archived, i), &bytes);
    }
    if (result == QUERN_OK && quern__bytes_left(&bytes) > 0)
        result = quern__image_fail("LISTS sections have more bytes than the lists need");
    image->lists_bytes.count = 0;
    image->lists_row_count = 0;
    return result;
}

static quern_result parse_section(quern__image *image, quern__archive_section *section)
{
    if (section->kind == QUERN__SECTION_LISTS) return parse_lists(image, &section->payload);
    const quern_result result = finish_lists(image);
    if (result != QUERN_OK) return result;
    if (!may_follow(image->last_kind, section->kind) ||
        (image->last_was_lists && section->kind == QUERN__SECTION_VALUE))
        return quern__image_fail("the sections are out of order");
    image->last_kind = section->kind;
    image->last_was_lists = false;
    switch (section->kind) {
    case QUERN__SECTION_WORLD:
        return parse_world(image, &section->payload);
    case QUERN__SECTION_TYPE:
        return quern__image_parse_type(image, &section->payload);
    case QUERN__SECTION_RESOURCE:
        return quern__image_parse_resource(image, &section->payload);
    case QUERN__SECTION_VALUE:
        return quern__image_parse_value(image, &section->payload);
    case QUERN__SECTION_LINKS:
        return parse_links(image, &section->payload);
    case QUERN__SECTION_ARCHETYPE:
        return parse_archetype(image, &section->payload);
    case QUERN__SECTION_ROWS:
        return parse_rows(image, &section->payload);
    case QUERN__SECTION_FREE:
        return parse_free(image, &section->payload);
    case QUERN__SECTION_RETIRED:
        return parse_retired(image, &section->payload);
    case QUERN__SECTION_NAMES:
        return parse_names(image, &section->payload);
    case QUERN__SECTION_RUN:
        /* the caller of quern__world_load checks the bytes */
        if (!image->reads_run) return QUERN_OK;
        image->run.allocator = &image->allocator;
        quern__write(&image->run, section->payload.at, quern__bytes_left(&section->payload));
        return image->run.has_failed ? quern__image_fail_memory() : QUERN_OK;
    case QUERN__SECTION_OUTSIDE:
        return parse_outside(image, &section->payload);
    case QUERN__SECTION_END:
        image->has_end_section = quern__is_fully_read(&section->payload);
        break;
    case QUERN__SECTION_LISTS:
        break;
    }
    return QUERN_OK;
}

/* Omits the tag of entities disabled through their parent, if the archive or the world has no built-in
 * hierarchy. In a session, the hierarchy may appear in a later message than the tag. */
static void choose_disabled_by_parent(const quern__image *image)
{
    const quern__storage *storage = &image->world->storage;
    bool has_parent = false;
    for (uint32_t i = 0; i < image->types.count && storage->relations->parent != NULL; i++)
        has_parent |= image->types.items[i]->relation == storage->relations->parent;
    for (uint32_t i = 0; i < image->types.count; i++)
        if (image->types.items[i]->role == QUERN__ROLE_DISABLED_BY_PARENT)
            image->types.items[i]->component_index =
                has_parent ? storage->disabled_index + 1 : QUERN__NO_COMPONENT;
}

/* Checks that the head is that of the next message if the call reads a session. */
static quern_result check_session(const quern__image *image)
{
    const quern__archive_head *head = &image->blocks.head;
    const quern__archive_position *session = image->session;
    if ((head->message_number != 0) != (session != NULL))
        return quern__fail(
            QUERN_ERROR_BAD_ARCHIVE, "%s",
            session != NULL ? "the archive is not a message of a session: load it by quern_world_load"
                            : "the archive is a message of a session: read it by quern_load_session_read");
    if (session == NULL) return QUERN_OK;
    const uint32_t expected = quern__archive_next_number(session);
    if (head->message_number != expected)
        return quern__fail(
            QUERN_ERROR_BAD_ARCHIVE,
            "message %u of a session came, but the session expects message %u: read all messages of a "
            "session, each once, in the order in which they were written",
            head->message_number, expected);
    if (head->previous_checksum != session->checksum)
        return quern__fail(
            QUERN_ERROR_BAD_ARCHIVE,
            "message %u of another session came, or this session has read other messages before it than "
            "those that were written: create one load session for each save session",
            head->message_number);
    return QUERN_OK;
}

/* Drops edges to entities that are not alive, and marks the sources of the others. Returns false if an edge is invalid. */
static bool keep_edges_outside(const quern__image *image, quern__archived_links *links)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < links->outside_edges.count; i++) {
        const uint64_t edge = links->outside_edges.items[i];
        const uint32_t source = (uint32_t)(edge >> 32), number = (uint32_t)edge;
        if (number >= image->outside.count || !quern__image_is_alive(image, source)) return false;
        if (image->outside.items[number].bits == 0) continue;
        links->outside_edges.items[kept++] = edge;
        links->outside_count += (links->levels[source] & QUERN__EDGES_LEAD_OUTSIDE) == 0;
        links->levels[source] |= QUERN__EDGES_LEAD_OUTSIDE;
    }
    links->outside_edges.count = kept;
    return true;
}

/* Whether each edge occurs once and connects living entities, and its source has the tag. Counts the sources. */
static bool are_valid(const quern__image *image, quern__archived_links *links)
{
    uint32_t last_source = QUERN__SLOT_NONE;
    for (uint32_t i = 0; i < links->edges.count; i++) {
        const uint64_t key = links->edges.items[i].key;
        const uint32_t source = (uint32_t)(key >> 32), target = (uint32_t)key;
        if (!quern__image_is_alive(image, source) || !quern__image_is_alive(image, target) ||
            links->levels[source] == 0 || (i > 0 && links->edges.items[i - 1].key == key))
            return false;
        links->link_count += source != last_source;
        last_source = source;
    }
    return links->link_count == links->source_count;
}

enum { IN_PROGRESS = 0x40, IS_CHECKED = 0x80, MARKS = IN_PROGRESS | IS_CHECKED };
_Static_assert(QUERN_MAX_RELATION_LEVEL < IN_PROGRESS, "marks and levels share a byte");

/* Whether the path from the slot to its target, to the target's target and so on ends at a root. Levels
 * below the highest decrease with each step to the target, which is checked elsewhere. So only sources
 * at the highest level can form a cycle. */
static bool reaches_root(const quern__archived_links *links, uint32_t slot)
{
    uint32_t at = slot;
    for (; links->levels[at] == QUERN_MAX_RELATION_LEVEL; at = links->targets[at])
        links->levels[at] |= IN_PROGRESS;
    if ((links->levels[at] & IN_PROGRESS) != 0) return false;
    for (at = slot; (links->levels[at] & IN_PROGRESS) != 0; at = links->targets[at])
        links->levels[at] = QUERN_MAX_RELATION_LEVEL | IS_CHECKED;
    return true;
}

static bool is_valid_link(const quern__image *image, const quern__archived_links *links, uint32_t slot)
{
    const uint32_t target = links->targets[slot];
    if (target == QUERN__SLOT_NONE) return true;
    if (!quern__image_is_alive(image, slot)) return false;
    if (target >= image->head.slot_count)
        return links->levels[slot] == 0 && quern__image_outside(image, target).bits != 0;
    if (!quern__image_is_alive(image, target)) return false;
    if (!links->relation->has_levels) return true;
    const uint32_t above = links->levels[target] & ~(uint32_t)MARKS;
    const uint32_t level = above < QUERN_MAX_RELATION_LEVEL ? above + 1 : QUERN_MAX_RELATION_LEVEL;
    return (links->levels[slot] & ~(uint32_t)MARKS) == level && reaches_root(links, slot);
}

static quern_result check_links(const quern__image *image, quern__archived_links *links)
{
    if (links->targets == NULL) {
        /* Sorts the edges and compares them with the rows. Errors: BAD_ARCHIVE, OUT_OF_MEMORY. */
        if (!quern__array_reserve(&image->allocator, &links->scratch, links->edges.count))
            return quern__image_fail_memory();
        quern__sort(links->edges.items, links->scratch.items, links->edges.count);
        return are_valid(image, links) && keep_edges_outside(image, links)
                   ? QUERN_OK
                   : quern__image_fail("an edge is there twice, has a dead end, or differs from the rows");
    }
    /* Links to entities that are not alive in this world are removed. The others that lead outside are counted. */
    const uint32_t slot_count = image->head.slot_count;
    for (uint32_t slot = 0; slot < slot_count; slot++) {
        const uint32_t target = links->targets[slot];
        if (target == QUERN__SLOT_NONE || target < slot_count) continue;
        if (target - slot_count < image->outside.count && quern__image_outside(image, target).bits == 0)
            links->targets[slot] = QUERN__SLOT_NONE;
        else
            links->outside_count++;
    }
    if (links->link_count != links->source_count)
        return quern__image_fail("links and rows have different sources");
    for (uint32_t slot = 0; slot < image->head.slot_count; slot++)
        if (!is_valid_link(image, links, slot))
            return quern__image_fail(
                "a link has a dead or unknown target, a wrong level, or is part of a cycle");
    for (uint32_t slot = 0; slot < image->head.slot_count; slot++)
        links->levels[slot] &= (uint8_t)~MARKS;
    return QUERN_OK;
}

static quern_result check_consistency(const quern__image *image)
{
    if (!image->has_end_section || !is_last_archetype_complete(image))
        return quern__image_fail("the END section or some rows are missing");
    uint64_t row_count = 0;
    for (uint32_t i = 0; i < image->archetypes.count; i++)
        row_count += image->archetypes.items[i].row_count;
    if (row_count != image->head.row_count || image->free_slots.count != image->head.free_count ||
        image->retired_count != image->head.retired_count)
        return quern__image_fail("the sections contain other numbers of slots than the WORLD section says");
    quern_result result = QUERN_OK;
    for (uint32_t i = 0; i < image->types.count && result == QUERN_OK; i++)
        if (image->types.items[i]->links != NULL) result = check_links(image, image->types.items[i]->links);
    for (uint32_t i = 0; i < image->resources.count && result == QUERN_OK; i++)
        if (image->resources.items[i]->value_bytes != image->resources.items[i]->type.size_bytes)
            result = quern__image_fail("VALUE sections have fewer bytes than the resource");
    return result;
}

quern_result quern__image_read(quern__image *image, quern_source source)
{
    quern__world_set_locked(image->world, true); /* the source may call a function of the program */
    quern_result result = quern__archive_blocks_read(&image->blocks, source, &image->allocator);
    quern__world_set_locked(image->world, false);
    if (result == QUERN_OK) result = check_session(image);
    if (result == QUERN_OK) {
        quern__section_iterator iterator = {.blocks = &image->blocks};
        quern__archive_section section;
        while (result == QUERN_OK && quern__section_next(&iterator, &section)) {
            if (image->last_kind < QUERN__SECTION_LINKS && section.kind >= QUERN__SECTION_LINKS) {
                /* all types and resources are parsed, so the report lists all that are missing */
                const quern_load_report *report = image->report;
                choose_disabled_by_parent(image);
                if (report->missing_count > 0 && !image->def->leave_out_missing)
                    result = quern__fail(
                        QUERN_ERROR_UNKNOWN_COMPONENT,
                        "the world lacks '%s', which the archive contains (%u missing components, "
                        "relations and resources "
                        "in all): register it, give a migration for it, or set leave_out_missing",
                        report->missing[0], report->missing_count);
            }
            if (result == QUERN_OK) result = parse_section(image, &section);
        }
    }
    return result == QUERN_OK ? check_consistency(image) : result;
}
