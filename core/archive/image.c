/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "core/archive/image.h"

#include "core/relations/naming.h"

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

quern_result quern__image_parse_free(quern__image *image, quern__byte_reader *payload)
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

quern_result quern__image_parse_retired(quern__image *image, quern__byte_reader *payload)
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

quern_result quern__image_parse_names(quern__image *image, quern__byte_reader *payload)
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

/* Collects the bytes, which the caller of quern__world_load checks. */
static quern_result parse_run(quern__image *image, const quern__byte_reader *payload)
{
    if (!image->reads_run) return QUERN_OK;
    image->run.allocator = &image->allocator;
    quern__write(&image->run, payload->at, quern__bytes_left(payload));
    return image->run.has_failed ? quern__image_fail_memory() : QUERN_OK;
}

static quern_result parse_section(quern__image *image, quern__archive_section *section)
{
    if (!may_follow(image->last_kind, section->kind))
        return quern__image_fail("the sections are out of order");
    image->last_kind = section->kind;
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
        return quern__image_parse_links(image, &section->payload);
    case QUERN__SECTION_ARCHETYPE:
        return quern__image_parse_archetype(image, &section->payload);
    case QUERN__SECTION_ROWS:
        return quern__image_parse_rows(image, &section->payload);
    case QUERN__SECTION_FREE:
        return quern__image_parse_free(image, &section->payload);
    case QUERN__SECTION_RETIRED:
        return quern__image_parse_retired(image, &section->payload);
    case QUERN__SECTION_NAMES:
        return quern__image_parse_names(image, &section->payload);
    case QUERN__SECTION_RUN:
        return parse_run(image, &section->payload);
    case QUERN__SECTION_OUTSIDE:
        return parse_outside(image, &section->payload);
    case QUERN__SECTION_END:
        image->has_end_section = quern__is_fully_read(&section->payload);
        break;
    }
    return QUERN_OK;
}

/* Fails if the world lacks components, relations or resources of the archive. Called after the last
 * TYPE and RESOURCE section, so that the report lists all that are missing. */
static quern_result check_missing(const quern__image *image)
{
    const quern_load_report *report = image->report;
    if (report->missing_count == 0 || image->def->leave_out_missing) return QUERN_OK;
    return quern__fail(
        QUERN_ERROR_UNKNOWN_COMPONENT,
        "the world lacks '%s', which the archive contains (%u missing components, relations and resources "
        "in all): register it, give a migration for it, or set leave_out_missing",
        report->missing[0], report->missing_count);
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

static quern_result parse_sections(quern__image *image)
{
    quern__section_iterator iterator = {.blocks = &image->blocks};
    quern__archive_section section;
    quern_result result = QUERN_OK;
    while (result == QUERN_OK && quern__section_next(&iterator, &section)) {
        if (image->last_kind < QUERN__SECTION_LINKS && section.kind >= QUERN__SECTION_LINKS) {
            /* all types and resources are parsed */
            choose_disabled_by_parent(image);
            result = check_missing(image);
        }
        if (result == QUERN_OK) result = parse_section(image, &section);
    }
    return result;
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

quern_result quern__image_read(quern__image *image, quern_source source)
{
    quern__world_set_locked(image->world, true); /* the source may call a function of the program */
    quern_result result = quern__archive_blocks_read(&image->blocks, source, &image->allocator);
    quern__world_set_locked(image->world, false);
    if (result == QUERN_OK) result = check_session(image);
    if (result == QUERN_OK) result = parse_sections(image);
    return result == QUERN_OK ? quern__image_check_consistency(image) : result;
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

quern_result quern__image_check_exact(const quern__image *image)
{
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

static void links_release(const quern__image *image, quern__archived_type *type)
{
    if (type->links == NULL) return;
    const size_t count = image->head.slot_count;
    quern__array_release(&image->allocator, &type->links->outside_edges);
    quern__array_release(&image->allocator, &type->links->edges);
    quern__array_release(&image->allocator, &type->links->scratch);
    quern__release(&image->allocator, type->links->targets, count * sizeof *type->links->targets,
                   QUERN__ARRAY_ALIGNMENT_BYTES);
    quern__release(&image->allocator, type->links->levels, count, QUERN__ARRAY_ALIGNMENT_BYTES);
    quern__release(&image->allocator, type->links, sizeof *type->links, _Alignof(quern__archived_links));
    type->links = NULL;
}

void quern__archived_types_release(quern__archived_types *types, uint32_t kept_count,
                                   const quern_allocator *allocator)
{
    while (types->count > kept_count) {
        quern__archived_type *type = types->items[--types->count];
        quern__type_release(&type->type, allocator);
        quern__release(allocator, type, sizeof *type, _Alignof(quern__archived_type));
    }
}

static void resource_release(quern__archived_resource *resource, const quern_allocator *allocator)
{
    quern__release(allocator, resource->value, resource->type.size_bytes, QUERN_MAX_ALIGNMENT_BYTES);
    quern__type_release(&resource->type, allocator);
    quern__release(allocator, resource, sizeof *resource, _Alignof(quern__archived_resource));
}

void quern__image_release(quern__image *image)
{
    const quern_allocator *allocator = &image->allocator;
    for (uint32_t i = 0; i < image->types.count; i++)
        links_release(image, image->types.items[i]);
    for (uint32_t i = 0; i < image->resources.count; i++)
        resource_release(image->resources.items[i], allocator);
    quern__array_release(allocator, &image->resources);
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
