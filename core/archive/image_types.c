/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "core/archive/archive_internal.h"
#include "core/storage/type_internal.h"

#include <quern/enabled.h>

/* -------------------------------------------------------------------------------------------- types */

/* Parses the components and resources of an archive, and maps them to components and resources of the
 * world with the same names. */

static const quern__conversion_words words = {"when it was saved", "in this world", "saved"};

/* ----------------------------------------------------------------------------------------- parsing */

/* Initialises a type from its section and the schema that follows, with the checks of a registration. */
static quern_result parse_type(quern__byte_reader *payload, const quern__type_section *section,
                               const quern_allocator *allocator, quern__type *out_type)
{
    static const quern_hooks none = {0};
    quern__schema schema;
    quern__read_schema(payload, quern__archive_schema, section->field_count, &schema);
    if (!quern__is_fully_read(payload))
        return quern__image_fail("a TYPE or RESOURCE section has an invalid schema");
    const quern_result result =
        quern__type_init(out_type, allocator, "archived component", schema.name, NULL, section->size_bytes,
                         section->alignment_bytes, &none, schema.fields);
    if (result == QUERN_OK || result == QUERN_ERROR_OUT_OF_MEMORY) return result;
    return quern__image_fail("a TYPE or RESOURCE section is invalid");
}

static void report_missing(const quern__image *image, const char *name)
{
    quern_load_report *report = image->report;
    const uint32_t number = report->missing_count++;
    if (number < QUERN_MAX_MISSING) memcpy(report->missing[number], name, strlen(name) + 1);
}

/* ----------------------------------------------------------------------------------------- values */

/* Returns whether the definition gives the component to every loaded entity. Its archived values are not loaded. */
static bool image_is_extra(const quern__image *image, uint32_t component_index)
{
    for (uint32_t i = 0; i < image->extra_count; i++)
        if (quern__component_index(image->def->extra[i]) == component_index) return true;
    return false;
}

static const quern_migration *find_migration(const quern_load_def *def, const char *name)
{
    for (uint32_t i = 0; i < QUERN_MAX_MIGRATIONS && def->migrations[i].name != NULL; i++)
        if (strcmp(def->migrations[i].name, name) == 0) return &def->migrations[i];
    return NULL;
}

/* Returns the component of the world to which the values are loaded. Null: none. */
static quern_component find_component(const quern__image *image, const quern__archived_type *type)
{
    if (type->migration != NULL) return type->migration->component;
    const quern_component found =
        quern__components_find(&image->world->storage.components, type->type.name);
    if (found.bits == 0) report_missing(image, type->type.name);
    return found;
}

static void report_conversion(const quern__image *image, const quern__conversion *conversion)
{
    image->report->converted_count += conversion->kind != QUERN__CONVERT_BYTES;
    image->report->dropped_field_count += conversion->dropped_field_count;
}

static quern_result choose_conversion(const quern__image *image, quern__archived_type *type,
                                      const quern__type *target)
{
    const quern_migration *migration = type->migration;
    if (migration != NULL && migration->migrate != NULL) {
        if (migration->source_bytes != type->type.size_bytes)
            return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                               "the migration of '%s' has source_bytes %u, but the archive has values of "
                               "%u bytes: correct source_bytes",
                               type->type.name, migration->source_bytes, type->type.size_bytes);
        type->conversion =
            (quern__conversion){.source = &type->type, .target = target, .kind = QUERN__CONVERT_MIGRATION};
        report_conversion(image, &type->conversion);
        return QUERN_OK;
    }
    if (quern__type_owns_unknown(target))
        return quern__fail(
            QUERN_ERROR_LAYOUT_MISMATCH,
            "component '%s' has hooks in this world, so its values cannot be loaded from bytes: "
            "give a migration with a function",
            target->name);
    const quern_result result =
        quern__conversion_init(&type->conversion, &type->type, target, &words, NULL);
    report_conversion(image, &type->conversion);
    return result;
}

/* Whether the world manages the component itself, so that loading must not add it as a plain component. */
static bool is_world_managed(const quern__image *image, uint32_t index)
{
    return quern__components_is_managed(&image->world->storage.components, index) ||
           index == image->world->storage.disabled_index;
}

/* Maps the type to a plain component of the world, to which its values are loaded. */
static quern_result map_component(const quern__image *image, quern__archived_type *type,
                                  quern_component component)
{
    const uint32_t index = quern__component_index(component);
    const quern__type *target = quern__components_type(&image->world->storage.components, index);
    if (is_world_managed(image, index))
        return quern__fail(
            QUERN_ERROR_LAYOUT_MISMATCH,
            "values of '%s' cannot be loaded as '%s', which this world manages itself (for a relation, for "
            "example): give a migration of '%s' to another component, or to none",
            type->type.name, target->name, type->type.name);
    const quern_result result = choose_conversion(image, type, target);
    if (result == QUERN_OK) type->component_index = index;
    return result;
}

static quern_result map_value(const quern__image *image, quern__archived_type *type)
{
    type->migration = find_migration(image->def, type->type.name);
    if ((type->flags & QUERN__ARCHIVED_HAS_HOOKS) != 0) {
        /* Only archetypes without rows have it: if the world lacks it, the report does not list it as missing. */
        const quern_component found =
            quern__components_find(&image->world->storage.components, type->type.name);
        if (found.bits != 0 && !is_world_managed(image, quern__component_index(found)))
            type->component_index = quern__component_index(found);
        return QUERN_OK;
    }
    const quern_component found = find_component(image, type);
    if (found.bits != 0 && image_is_extra(image, quern__component_index(found))) return QUERN_OK;
    return found.bits != 0 ? map_component(image, type, found) : QUERN_OK;
}

/* ------------------------------------------------------------------------ relations and built-in tags */

static bool has_levels(const quern__archived_type *type)
{
    return (type->flags & QUERN__ARCHIVED_HAS_LEVELS) != 0;
}

static bool is_ordered(const quern__archived_type *type)
{
    return (type->flags & QUERN__ARCHIVED_IS_ORDERED) != 0;
}

static bool is_many(const quern__archived_type *type)
{
    return (type->flags & QUERN__ARCHIVED_IS_MANY) != 0;
}

/* Whether the policy exists, and the values are those that the flags of the relation ask for. */
static bool is_valid_relation(const quern__archived_type *type)
{
    if (type->policy > QUERN_TARGET_REFUSES) return false;
    if (is_many(type)) return type->type.size_bytes == 0 && !has_levels(type) && !is_ordered(type);
    return type->type.size_bytes == sizeof(quern_entity) && type->type.has_entity_fields;
}

/* Maps a relation of the archive to a relation of the world. Each relation of the world can have only
 * one: an entity has one target per relation, and the links of two relations together could form a
 * cycle. */
static quern_result map_to_relation(const quern__image *image, quern__archived_type *type,
                                    quern__relation *relation)
{
    const quern__storage *storage = &image->world->storage;
    for (uint32_t i = 0; i < image->types.count; i++)
        if (image->types.items[i]->relation == relation)
            return quern__fail(QUERN_ERROR_LAYOUT_MISMATCH,
                               "'%s' and '%s' of the archive would both be loaded as relation '%s': give a "
                               "migration of one of them to another relation, or to none",
                               image->types.items[i]->type.name, type->type.name,
                               quern__relation_name(storage, relation));
    type->relation = relation;
    type->component_index = relation->component_index;
    return quern__conversion_init(&type->conversion, &type->type,
                                  quern__components_type(&storage->components, type->component_index),
                                  &words, NULL);
}

/* Maps a relation by its migration. Policy and order are rules for future changes, so they may differ.
 * Levels can be omitted, but cannot be created. */
static quern_result migrate_relation(const quern__image *image, quern__archived_type *type)
{
    const quern__storage *storage = &image->world->storage;
    const quern_migration *migration = type->migration;
    if (migration->component.bits == 0) return QUERN_OK;
    quern__relation *relation = quern__relation_of(storage, (quern_relation){migration->component.bits});
    if (relation == NULL) return map_component(image, type, migration->component);
    const char *to = quern__relation_name(storage, relation);
    if (migration->migrate != NULL)
        return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                           "the migration of relation '%s' to relation '%s' has a function, but targets "
                           "are loaded without one: set migrate to NULL",
                           type->type.name, to);
    if (relation->has_levels && !has_levels(type))
        return quern__fail(
            QUERN_ERROR_LAYOUT_MISMATCH,
            "relation '%s' had no levels when it was saved, but '%s' has levels: give a migration to a "
            "component with an entity field 'target', and relate the entities after loading",
            type->type.name, to);
    if (relation->is_many != is_many(type))
        return quern__fail(QUERN_ERROR_LAYOUT_MISMATCH,
                           "relation '%s' had %s when it was saved, but '%s' has %s: give a migration to a "
                           "relation of the "
                           "same kind, or to none",
                           type->type.name,
                           is_many(type) ? "several targets per source" : "one target per source", to,
                           relation->is_many ? "several" : "one");
    return map_to_relation(image, type, relation);
}

/* Whether the relation is the hierarchy of every world. */
static bool is_parent(const quern__archived_type *type)
{
    return strcmp(type->type.name, quern__parent_def.name) == 0 && has_levels(type) && is_ordered(type) &&
           type->policy == quern__parent_def.on_target_destroyed;
}

static quern_result fail_relation(const quern__archived_type *type, const quern__relation *relation)
{
    return quern__fail(
        QUERN_ERROR_LAYOUT_MISMATCH,
        "'%s' was a relation when it was saved, but in this world it %s: give a migration to a relation "
        "(quern_relation_component), to a component with an entity field 'target', or to none",
        type->type.name,
        relation == NULL ? "is a component"
                         : "has another policy, levels, order "
                           "or number of targets");
}

static quern_result map_relation(const quern__image *image, quern__archived_type *type)
{
    const quern__storage *storage = &image->world->storage;
    const char *name = type->type.name;
    if (!is_valid_relation(type)) return quern__image_fail("a TYPE section of a relation is invalid");
    type->migration = find_migration(image->def, name);
    if (type->migration != NULL) return migrate_relation(image, type);
    if (is_parent(type) && quern__components_find(&storage->components, name).bits == 0 &&
        quern_world_parent(image->world).bits == 0)
        return quern__image_fail_memory();
    const quern_component known = quern__components_find(&storage->components, name);
    if (known.bits == 0) {
        report_missing(image, name);
        return QUERN_OK;
    }
    quern__relation *relation = quern__relation_of(storage, (quern_relation){known.bits});
    if (relation == NULL || relation->policy != type->policy || relation->has_levels != has_levels(type) ||
        relation->is_ordered != is_ordered(type) || relation->is_many != is_many(type))
        return fail_relation(type, relation);
    return map_to_relation(image, type, relation);
}

static quern_result map_level(const quern__image *image, quern__archived_type *type)
{
    const quern__archived_type *owner =
        type->relation_number < image->types.count ? image->types.items[type->relation_number] : NULL;
    if (owner == NULL || owner->role != QUERN__ROLE_RELATION || !has_levels(owner) ||
        type->type.size_bytes != 0 || type->level == 0 || type->level > QUERN_MAX_RELATION_LEVEL)
        return quern__image_fail("a TYPE section of a level is invalid");
    if (owner->relation != NULL && owner->relation->has_levels)
        type->component_index = quern__relation_tag(owner->relation, type->level);
    return QUERN_OK;
}

static quern_result map_disabled(const quern__image *image, quern__archived_type *type)
{
    if (type->type.size_bytes != 0) return quern__image_fail("a TYPE section of a tag has values");
    const quern_component disabled = quern_world_disabled_tag(image->world);
    if (disabled.bits == 0) return QUERN_ERROR_LAYOUT_MISMATCH; /* that call has set the message */
    type->component_index =
        quern__component_index(disabled) + (type->role == QUERN__ROLE_DISABLED_BY_PARENT ? 1 : 0);
    return QUERN_OK;
}

static quern_result map_type(const quern__image *image, quern__archived_type *type)
{
    switch (type->role) {
    case QUERN__ROLE_VALUE:
        return map_value(image, type);
    case QUERN__ROLE_RELATION:
        return map_relation(image, type);
    case QUERN__ROLE_LEVEL:
        return map_level(image, type);
    case QUERN__ROLE_DISABLED:
    case QUERN__ROLE_DISABLED_BY_PARENT:
        return map_disabled(image, type);
    default:
        return quern__image_fail("a TYPE section has an unknown role");
    }
}

static quern_result parse_archived_type(quern__byte_reader *payload, const quern__type_section *section,
                                        const quern_allocator *allocator, quern__archived_type *out_type)
{
    *out_type = (quern__archived_type){.role = (quern__archived_role)section->role,
                                       .flags = section->flags,
                                       .relation_number = section->relation,
                                       .level = section->level,
                                       .policy = (quern_target_policy)section->policy,
                                       .component_index = QUERN__NO_COMPONENT};
    const quern_result result = parse_type(payload, section, allocator, &out_type->type);
    out_type->type.flags = quern__column_flags_from_archive(section->flags);
    return result;
}

quern_result quern__image_parse_type(quern__image *image, quern__byte_reader *payload)
{
    const quern_allocator *allocator = &image->world->storage.allocator; /* sessions keep types */
    quern__type_section section;
    quern__read(payload, &section, sizeof section);
    if (section.size_bytes > QUERN_MAX_COMPONENT_BYTES)
        return quern__image_fail("a TYPE section has values that are too large");
    if (!quern__array_reserve(allocator, &image->types, image->types.count + 1))
        return quern__image_fail_memory();
    quern__archived_type *type = quern__allocate(allocator, sizeof *type, _Alignof(quern__archived_type));
    if (type == NULL) return quern__image_fail_memory();
    quern_result result = parse_archived_type(payload, &section, allocator, type);
    if (result == QUERN_OK) result = map_type(image, type);
    image->types.items[image->types.count++] = type;
    return result;
}

/* --------------------------------------------------------------------------------------- resources */

static quern_result map_resource(const quern__image *image, quern__archived_resource *resource)
{
    quern__resources *resources = &image->world->resources;
    const quern_resource found = quern__resources_find(resources, resource->type.name);
    if (image->def->skip_resources) return QUERN_OK;
    if (found.bits == 0) {
        report_missing(image, resource->type.name);
        return QUERN_OK;
    }
    quern__resource *known = &resources->list.items[quern__resource_index(found)];
    if (known->type.field_count == 0 && quern__type_owns_unknown(&known->type))
        return quern__fail(QUERN_ERROR_LAYOUT_MISMATCH,
                           "resource '%s' has hooks but no described fields in this world, so its saved "
                           "fields cannot be loaded: describe its fields, or set skip_resources",
                           known->type.name);
    const quern_result result =
        quern__conversion_init(&resource->conversion, &resource->type, &known->type, &words, NULL);
    if (result == QUERN_OK) resource->resource = known;
    report_conversion(image, &resource->conversion);
    return result;
}

/* The value is not larger than all blocks of the archive can be, so that neither it nor the places of its lists need more
 * memory than the archive has. */
quern_result quern__image_parse_resource(quern__image *image, quern__byte_reader *payload)
{
    const quern_allocator *allocator = &image->allocator;
    quern__type_section section;
    quern__read(payload, &section, sizeof section);
    if (section.size_bytes > (uint64_t)image->blocks.list.count * QUERN__ARCHIVE_BLOCK_BYTES)
        return quern__image_fail("a RESOURCE section has a value larger than the archive");
    if (!quern__array_reserve(allocator, &image->resources, image->resources.count + 1))
        return quern__image_fail_memory();
    quern__archived_resource *resource =
        quern__allocate(allocator, sizeof *resource, _Alignof(quern__archived_resource));
    if (resource == NULL) return quern__image_fail_memory();
    *resource = (quern__archived_resource){0};
    quern_result result = parse_type(payload, &section, allocator, &resource->type);
    image->resources.items[image->resources.count++] = resource;
    if (result == QUERN_OK && resource->type.field_count == 0)
        result = quern__image_fail("a RESOURCE section has no fields");
    return result == QUERN_OK ? map_resource(image, resource) : result;
}

/* Copies bytes of a resource's value. The first call allocates memory for the whole value. */
static quern_result append_value_bytes(quern__image *image, quern__archived_resource *resource,
                                       const quern__byte_reader *payload)
{
    const size_t bytes = quern__bytes_left(payload);
    if (resource->value == NULL) {
        resource->value =
            quern__allocate(&image->allocator, resource->type.size_bytes, QUERN_MAX_ALIGNMENT_BYTES);
        if (resource->value == NULL) return quern__image_fail_memory();
    }
    if (bytes > 0) memcpy(resource->value + resource->value_bytes, payload->at, bytes);
    return QUERN_OK;
}

quern_result quern__image_parse_value(quern__image *image, quern__byte_reader *payload)
{
    quern__archived_resource *resource = image->resources.items[image->resources.count - 1];
    const size_t bytes = quern__bytes_left(payload);
    if (bytes > resource->type.size_bytes - resource->value_bytes)
        return quern__image_fail("VALUE sections have more bytes than the resource");
    quern_result result =
        resource->resource != NULL ? append_value_bytes(image, resource, payload) : QUERN_OK;
    resource->value_bytes += (uint32_t)bytes;
    if (result == QUERN_OK && resource->resource != NULL &&
        resource->value_bytes == resource->type.size_bytes)
        result = quern__conversion_check(&resource->conversion, resource->value, 1);
    return result;
}

/* ------------------------------------------------------------------------------------ registering */

static void copy_fields(const quern__type *type, quern_field *fields)
{
    for (uint32_t i = 0; i < type->field_count; i++)
        fields[i] = type->fields[i];
}

static quern_result register_value(quern_world *world, const quern__type *type)
{
    quern_component_def def = {
        .name = type->name, .size_bytes = type->size_bytes, .alignment_bytes = type->alignment_bytes};
    quern_component component;
    copy_fields(type, def.fields);
    for (uint32_t i = 0; i < QUERN__COLUMN_FLAG_COUNT; i++) {
        const quern__column_flag *flag = &quern__column_flags[i];
        bool *member = (bool *)(void *)((char *)&def + flag->def_offset_bytes);
        *member = (type->flags & flag->bit) != 0;
    }
    return quern_component_register(world, &def, &component);
}

static quern_result register_relation(quern_world *world, const quern__archived_type *type)
{
    const quern_relation_def def = {.name = type->type.name,
                                    .on_target_destroyed = type->policy,
                                    .levels = has_levels(type),
                                    .ordered = is_ordered(type),
                                    .many = is_many(type)};
    quern_relation relation;
    if (!is_parent(type)) return quern_relation_register(world, &def, &relation);
    return quern_world_parent(world).bits != 0 ? QUERN_OK : QUERN_ERROR_OUT_OF_MEMORY;
}

static quern_result register_resource(quern_world *world, const quern__type *type)
{
    quern_resource_def def = {
        .name = type->name, .size_bytes = type->size_bytes, .alignment_bytes = type->alignment_bytes};
    quern_resource resource;
    copy_fields(type, def.fields);
    return quern_resource_register(world, &def, &resource);
}

/* Registers the type of a TYPE or RESOURCE section unless the world has it. */
static quern_result register_archived(quern_world *world, bool is_resource,
                                      const quern__archived_type *type, uint32_t *count)
{
    quern_result result;
    if (is_resource) {
        if (quern__resources_find(&world->resources, type->type.name).bits != 0) return QUERN_OK;
        result = register_resource(world, &type->type);
    } else if (type->role == QUERN__ROLE_LEVEL) { /* its relation has registered it */
        return QUERN_OK;
    } else if (type->role == QUERN__ROLE_DISABLED || type->role == QUERN__ROLE_DISABLED_BY_PARENT) {
        return quern_world_disabled_tag(world).bits != 0 ? QUERN_OK : QUERN_ERROR_OUT_OF_MEMORY;
    } else {
        if ((type->flags & QUERN__ARCHIVED_HAS_HOOKS) != 0) return QUERN_OK; /* no entity has it */
        if (quern__components_find(&world->storage.components, type->type.name).bits != 0) return QUERN_OK;
        result = type->role == QUERN__ROLE_RELATION ? register_relation(world, type)
                                                    : register_value(world, &type->type);
    }
    *count += result == QUERN_OK;
    return result;
}

/* Parses one TYPE or RESOURCE section and registers its type; with a count of NULL, only checks the section. Values of
 * resources are allocated, so together they are not larger than the archive, which has them: left_bytes is what is left. */
static quern_result register_section(quern_world *world, quern__archive_section *section,
                                     uint64_t *left_bytes, uint32_t *count)
{
    const quern_allocator *allocator = &world->storage.allocator;
    const bool is_resource = section->kind == QUERN__SECTION_RESOURCE;
    quern__archived_type type;
    quern__type_section head;
    quern__read(&section->payload, &head, sizeof head);
    if (head.size_bytes > (is_resource ? *left_bytes : QUERN_MAX_COMPONENT_BYTES) ||
        (!is_resource && head.role >= QUERN__ROLE_COUNT))
        return quern__image_fail(
            "a TYPE or RESOURCE section has values that are too large, or an unknown role");
    if (is_resource) *left_bytes -= head.size_bytes;
    quern_result result = parse_archived_type(&section->payload, &head, allocator, &type);
    if (result != QUERN_OK) return result;
    if (is_resource ? head.size_bytes == 0 || type.type.field_count == 0
                    : (head.size_bytes & (type.type.alignment_bytes - 1)) != 0 ||
                          (type.role == QUERN__ROLE_RELATION && !is_valid_relation(&type)))
        result = quern__image_fail("a TYPE or RESOURCE section is invalid");
    else if (count != NULL)
        result = register_archived(world, is_resource, &type, count);
    quern__type_release(&type.type, allocator);
    return result;
}

static quern_result register_sections(quern_world *world, const quern__archive_blocks *blocks,
                                      uint32_t *count)
{
    quern_result result = QUERN_OK;
    quern__section_iterator iterator = {.blocks = blocks};
    quern__archive_section section;
    uint64_t left_bytes = (uint64_t)blocks->list.count * QUERN__ARCHIVE_BLOCK_BYTES;
    while (result == QUERN_OK && quern__section_next(&iterator, &section))
        if (section.kind == QUERN__SECTION_TYPE || section.kind == QUERN__SECTION_RESOURCE)
            result = register_section(world, &section, &left_bytes, count);
    return result;
}

quern_result quern_world_register_archived(quern_world *world, quern_source source, uint32_t *out_count)
{
    uint32_t ignored, *count = out_count != NULL ? out_count : &ignored;
    *count = 0;
    QUERN__ENTER_UNLOCKED(world);
    quern__archive_blocks blocks = {0};
    quern_result result = quern__check_source(source, __func__);
    if (result != QUERN_OK) return result;
    quern__world_set_locked(world, true); /* the source may call a function of the program */
    result = quern__archive_blocks_read(&blocks, source, &world->storage.allocator);
    quern__world_set_locked(world, false);
    if (result == QUERN_OK) result = register_sections(world, &blocks, NULL);
    if (result == QUERN_OK) result = register_sections(world, &blocks, count);
    quern__archive_blocks_release(&blocks, &world->storage.allocator);
    return quern__in_call(result, __func__);
}
