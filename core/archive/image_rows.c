/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Parses links, archetypes and rows of an archive, and checks that links and rows agree. */

#include "core/archive/image.h"

/* ------------------------------------------------------------------------------------------- links */

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
    const bool is_outside = target >= image->head.slot_count;
    if (links->targets == NULL)
        return is_outside
                   ? quern__image_add_outside_edge(image, links, child, target - image->head.slot_count)
                   : quern__image_add_edge(image, links, child, target);
    if (links->targets[child] != QUERN__SLOT_NONE)
        return quern__image_fail("a LINKS section gives an entity two targets");
    links->targets[child] = target;
    links->link_count += !is_outside;
    return QUERN_OK;
}

/* Fails if links to a target outside of the list would be lost: rows have values of a relation only for targets in the
 * list, so a component to which the relation migrates has nothing to load from. */
static quern_result check_outside_links(const quern__image *image, const quern__archived_type *type)
{
    if (type->relation != NULL || type->component_index == QUERN__NO_COMPONENT) return QUERN_OK;
    return quern__fail(
        QUERN_ERROR_LAYOUT_MISMATCH,
        "relation '%s' is loaded as component '%s', but has targets outside of the list, which only a "
        "relation can "
        "have: give a migration to a relation, or to none, or load without outside_entity",
        type->type.name,
        quern__components_type(&image->world->storage.components, type->component_index)->name);
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
    else if (target >= image->head.slot_count)
        result = check_outside_links(image, type);
    for (uint32_t i = 0; i < count && result == QUERN_OK; i++) {
        const uint32_t child = quern__read_u32(payload);
        if (payload->has_failed || child >= image->head.slot_count || child == target)
            return quern__image_fail(what);
        if (links != NULL) result = add_link(image, links, child, target);
    }
    return result;
}

quern_result quern__image_parse_links(quern__image *image, quern__byte_reader *payload)
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

/* ------------------------------------------------------------------------------------- archetypes */

/* Inserts a component of the world into the ascending list. Returns false if the list contains it
 * already. */
static bool insert_component(quern__archived_archetype *archived, uint32_t component_index)
{
    uint32_t at = archived->component_count;
    while (at > 0 && archived->component_indices[at - 1] >= component_index)
        at--;
    if (at < archived->component_count && archived->component_indices[at] == component_index) return false;
    memmove(&archived->component_indices[at + 1], &archived->component_indices[at],
            (archived->component_count - at) * sizeof archived->component_indices[0]);
    archived->component_indices[at] = (uint16_t)component_index;
    archived->component_count++;
    return true;
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
    if (type->component_index == QUERN__NO_COMPONENT || insert_component(archived, type->component_index))
        return QUERN_OK;
    return quern__fail(
        QUERN_ERROR_LAYOUT_MISMATCH,
        "an entity of the archive would get component '%s' twice: '%s' and another type of the same "
        "archetype are loaded as it; change a migration",
        quern__components_type(&image->world->storage.components, type->component_index)->name,
        type->type.name);
}

/* Whether an archetype at this position can have its layout_index: see
 * quern__archived_least_layout_index. Counts the archetype if it has types. */
static bool accept_layout_index(quern__image *image, const quern__archetype_section *section)
{
    const uint32_t least =
        quern__archived_least_layout_index(section->type_count, image->archetype_count_with_types);
    image->archetype_count_with_types += section->type_count > 0;
    return section->layout_index >= least && section->layout_index < QUERN_MAX_ARCHETYPES;
}

/* Whether all rows of the last archetype were parsed. True if there is no archetype. */
static bool is_last_archetype_complete(const quern__image *image)
{
    if (image->archetypes.count == 0) return true;
    const quern__archived_archetype *archived = &image->archetypes.items[image->archetypes.count - 1];
    return archived->parsed_row_count == archived->row_count;
}

quern_result quern__image_parse_archetype(quern__image *image, quern__byte_reader *payload)
{
    quern__archetype_section section;
    quern__read(payload, &section, sizeof section);
    if (payload->has_failed || section.zero != 0 || section.type_count > QUERN_MAX_ENTITY_COMPONENTS ||
        !is_last_archetype_complete(image))
        return quern__image_fail("an ARCHETYPE section is invalid");
    if (!accept_layout_index(image, &section))
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
        insert_component(archived, quern__component_index(image->def->extra[i]));
    quern_result result = QUERN_OK;
    for (uint32_t i = 0; i < section.type_count && result == QUERN_OK; i++)
        result = add_type(image, archived, quern__read_u32(payload));
    if (result == QUERN_OK && (!quern__is_fully_read(payload) || !has_valid_levels(image, archived)))
        result = quern__image_fail("an ARCHETYPE section is invalid");
    return result;
}

/* ------------------------------------------------------------------------------------------- rows */

static bool parse_handles(const quern__image *image, const char *handles, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const quern_entity entity = {quern__load_u64(handles, i)};
        const uint32_t use_count = quern__image_use_count(image, entity), slot = quern_entity_index(entity);
        if (slot >= image->head.slot_count || use_count == 0 ||
            image->states.items[slot] != QUERN__STATE_UNKNOWN)
            return false;
        image->states.items[slot] = QUERN__STATE_ALIVE;
        image->use_counts.items[slot] = use_count;
    }
    return true;
}

/* Whether the rows have the targets that the links say. Stores the level of each source. */
static bool parse_targets(const quern__archived_type *type, uint32_t level, const char *handles,
                          const char *values, uint32_t count)
{
    quern__archived_links *links = type->links;
    if (links == NULL) return false;
    links->source_count += count;
    for (uint32_t i = 0; i < count; i++) {
        const quern_entity source = {quern__load_u64(handles, i)}, target = {quern__load_u64(values, i)};
        const uint32_t slot = quern_entity_index(source);
        if (links->targets[slot] == QUERN__SLOT_NONE || links->targets[slot] != quern_entity_index(target))
            return false;
        links->levels[slot] = (uint8_t)level;
    }
    return true;
}

/* Notes the tag of rows that have several targets. */
static bool parse_tags(const quern__archived_type *type, const char *handles, uint32_t count)
{
    quern__archived_links *links = type->links;
    if (links == NULL) return false;
    links->source_count += count;
    for (uint32_t i = 0; i < count; i++)
        links->levels[quern_entity_index((quern_entity){quern__load_u64(handles, i)})] =
            QUERN__EDGES_HAVE_TAG;
    return true;
}

static quern_result parse_column(const quern__image *image, const quern__archived_archetype *archived,
                                 uint32_t i, const char *handles, const char *values, uint32_t count)
{
    const quern__archived_type *type = quern__image_type(image, archived, i);
    if (type->component_index == QUERN__NO_COMPONENT) return QUERN_OK;
    if (type->relation != NULL && type->relation->is_many)
        return parse_tags(type, handles, count)
                   ? QUERN_OK
                   : quern__image_fail("rows have the tag of a relation without edges");
    if (type->relation != NULL) {
        const uint32_t number = image->type_numbers.items[archived->first_type + i];
        const uint32_t level = type->relation->has_levels ? level_of(image, archived, number) : 0;
        return parse_targets(type, level, handles, values, count)
                   ? QUERN_OK
                   : quern__image_fail("the targets in rows differ from the links");
    }
    return quern__conversion_check(&type->conversion, values, count);
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

quern_result quern__image_parse_rows(quern__image *image, quern__byte_reader *payload)
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
    if (handles == NULL || !parse_handles(image, handles, count))
        return quern__image_fail("a ROWS section has invalid handles");
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
    return result;
}

/* ------------------------------------------------------------------------------------- consistency */

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

/* Removes links to entities that are not alive in this world. Counts the other links that lead outside of the list. */
static void keep_outside(const quern__image *image, quern__archived_links *links)
{
    const uint32_t slot_count = image->head.slot_count;
    for (uint32_t slot = 0; slot < slot_count; slot++) {
        const uint32_t target = links->targets[slot];
        if (target == QUERN__SLOT_NONE || target < slot_count) continue;
        if (target - slot_count < image->outside.count && quern__image_outside(image, target).bits == 0)
            links->targets[slot] = QUERN__SLOT_NONE;
        else
            links->outside_count++;
    }
}

static quern_result check_links(const quern__image *image, quern__archived_links *links)
{
    if (links->targets == NULL) return quern__image_check_edges(image, links);
    keep_outside(image, links);
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

quern_result quern__image_check_consistency(const quern__image *image)
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
