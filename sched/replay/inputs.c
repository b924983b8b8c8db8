/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "sched/replay/inputs.h"

_Static_assert(sizeof(quern_entity) == sizeof(uint64_t), "a handle has the size of index and use count");

static const quern__resource *resource_of(const quern__inputs *inputs, uint32_t i)
{
    return &inputs->world->resources.list.items[inputs->indices[i]];
}

static size_t field_bytes(const quern_field *field)
{
    return (size_t)quern__field_bytes(field->type) * field->count;
}

static size_t value_bytes(const quern__type *type)
{
    size_t bytes = type->field_count == 0 ? type->size_bytes : 0;
    for (uint32_t i = 0; i < type->field_count; i++)
        bytes += field_bytes(&type->fields[i]);
    return bytes;
}

quern_result quern__inputs_add(quern__inputs *inputs, uint32_t index)
{
    const quern__type *type = &inputs->world->resources.list.items[index].type;
    if (type->hooks.copy != NULL || type->hooks.move != NULL || type->hooks.destroy != NULL)
        return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                           "resource '%s' cannot be an input: it has hooks, so its bytes may hold pointers",
                           type->name);
    for (uint32_t i = 0; i < inputs->count; i++)
        if (inputs->indices[i] == index)
            return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                               "resource '%s' is an input twice: list it once", type->name);
    inputs->indices[inputs->count++] = index;
    inputs->bytes += value_bytes(type);
    return QUERN_OK;
}

static void write_field(const quern_field *field, const char *value, uint32_t first_handle_high,
                        quern__byte_writer *bytes)
{
    const char *at = value + field->offset_bytes;
    if (field->type != QUERN_FIELD_ENTITY) {
        quern__write(bytes, at, field_bytes(field));
        return;
    }
    for (uint32_t i = 0; i < field->count; i++) {
        quern_entity entity;
        memcpy(&entity, at + i * sizeof entity, sizeof entity);
        quern__write_u64(bytes, quern__entity_to_relative(entity, first_handle_high));
    }
}

void quern__inputs_write(const quern__inputs *inputs, quern__byte_writer *bytes)
{
    const uint32_t first_handle_high = inputs->world->storage.entities.first_handle_high;
    for (uint32_t i = 0; i < inputs->count; i++) {
        const quern__resource *resource = resource_of(inputs, i);
        const quern__type *type = &resource->type;
        if (type->field_count == 0) quern__write(bytes, resource->value, type->size_bytes);
        for (uint32_t f = 0; f < type->field_count; f++)
            write_field(&type->fields[f], resource->value, first_handle_high, bytes);
    }
}

static void set_field(const quern_field *field, char *value, uint32_t first_handle_high, const char *at)
{
    char *to = value + field->offset_bytes;
    if (field->type != QUERN_FIELD_ENTITY) {
        memcpy(to, at, field_bytes(field));
        return;
    }
    for (uint32_t i = 0; i < field->count; i++) {
        const quern_entity entity = quern__entity_from_relative(quern__load_u64(at, i), first_handle_high);
        memcpy(to + i * sizeof entity, &entity, sizeof entity);
    }
}

void quern__inputs_set(const quern__inputs *inputs, const char *at)
{
    const uint32_t first_handle_high = inputs->world->storage.entities.first_handle_high;
    for (uint32_t i = 0; i < inputs->count; i++) {
        const quern__resource *resource = resource_of(inputs, i);
        const quern__type *type = &resource->type;
        if (type->field_count == 0) memcpy(resource->value, at, type->size_bytes);
        for (uint32_t f = 0, offset = 0; f < type->field_count; f++) {
            set_field(&type->fields[f], resource->value, first_handle_high, at + offset);
            offset += (uint32_t)field_bytes(&type->fields[f]);
        }
        at += value_bytes(type);
    }
}
