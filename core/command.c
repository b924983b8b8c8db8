/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "core/command.h"

#include "core/bitset.h"

enum { BLOCK_BYTES = 64 * 1024, BLOCK_ALIGNMENT_BYTES = 64, RECORD_ALIGNMENT_BYTES = 8 };

_Static_assert(sizeof(quern__command) == 16, "a record's head is 16 bytes");

/* What a command with a value may need at most: its head, padding, the value, and padding behind it. */
static size_t record_bytes_bound(size_t value_bytes)
{
    return sizeof(quern__command) + QUERN_MAX_ALIGNMENT_BYTES +
           quern__align_up(value_bytes, RECORD_ALIGNMENT_BYTES);
}

/* A create with as many components and bytes as fit a chunk must fit a block, with a jump behind it. */
_Static_assert((QUERN_MAX_ENTITY_COMPONENTS + 2) *
                           (sizeof(quern__command) + QUERN_MAX_ALIGNMENT_BYTES + 8) +
                       QUERN__CHUNK_BYTES <
                   BLOCK_BYTES,
               "blocks are too small");

/* -------------------------------------------------------------------------------------- life cycle */

void quern__commands_init(quern_commands *commands, quern__storage *storage)
{
    *commands = (quern_commands){.storage = storage};
}

void quern__commands_release(quern_commands *commands)
{
    quern__commands_reset(commands);
    const quern_allocator *allocator = &commands->storage->allocator;
    for (uint32_t i = 0; i < commands->blocks.count; i++)
        quern__release(allocator, commands->blocks.items[i].memory, BLOCK_BYTES, BLOCK_ALIGNMENT_BYTES);
    quern__array_release(allocator, &commands->blocks);
    quern__array_release(allocator, &commands->streams);
}

void quern__commands_begin(quern_commands *commands, uint64_t key, uint32_t serial)
{
    commands->key = key;
    commands->serial = serial;
    commands->is_open = false;
}

static void destroy_values(quern_commands *commands, const quern__stream *stream)
{
    quern__stream_cursor cursor = quern__stream_walk(stream);
    for (quern__command *command; (command = quern__stream_take(&cursor)) != NULL;) {
        if (!command->has_value) continue;
        const quern__type *type =
            quern__components_type(&commands->storage->components, command->component_index);
        quern__type_destroy(type, quern__command_value(command, type), 1);
    }
}

void quern__commands_reset(quern_commands *commands)
{
    if (commands->has_hooked_values)
        for (uint32_t i = 0; i < commands->streams.count; i++)
            destroy_values(commands, &commands->streams.items[i]);
    commands->has_hooked_values = false;
    commands->streams.count = 0;
    commands->is_open = false;
    commands->failed = QUERN_OK;
    commands->block_index = 0;
    if (commands->blocks.count > 0) commands->blocks.items[0].used_bytes = 0;
}

/* -------------------------------------------------------------------------------------- the arena */

static bool block_add(quern_commands *commands)
{
    const quern_allocator *allocator = &commands->storage->allocator;
    if (!quern__array_reserve(allocator, &commands->blocks, commands->blocks.count + 1)) return false;
    char *memory = quern__allocate(allocator, BLOCK_BYTES, BLOCK_ALIGNMENT_BYTES);
    if (memory == NULL) return false;
    commands->blocks.items[commands->blocks.count++] = (quern__block){.memory = memory};
    return true;
}

/* Leaves the block in use for the next one, and a jump behind. */
static bool next_block(quern_commands *commands)
{
    uint32_t next = commands->block_index + 1;
    if (next == commands->blocks.count && !block_add(commands)) return false;
    quern__block *full = &commands->blocks.items[commands->block_index];
    quern__block *fresh = &commands->blocks.items[next];
    fresh->used_bytes = 0;
    quern__command *jump = (quern__command *)(void *)(full->memory + full->used_bytes);
    *jump = (quern__command){.kind = QUERN__COMMAND_JUMP, .next = (quern__command *)(void *)fresh->memory};
    commands->block_index = next;
    return true;
}

/* Makes sure that `bytes` lie free in the block in use, besides a jump, and that a stream is open for
 * them. After it, recording that much cannot fail. */
static quern_result prepare(quern_commands *commands, size_t bytes)
{
    bool ready = commands->blocks.count > 0 || block_add(commands);
    if (ready) {
        const quern__block *block = &commands->blocks.items[commands->block_index];
        if (block->used_bytes + bytes + sizeof(quern__command) > BLOCK_BYTES) ready = next_block(commands);
    }
    if (ready && !commands->is_open)
        ready = quern__array_reserve(&commands->storage->allocator, &commands->streams,
                                     commands->streams.count + 1);
    if (!ready) {
        commands->failed = QUERN_ERROR_OUT_OF_MEMORY;
        return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory to record a command of %zu bytes", bytes);
    }
    if (commands->is_open) return QUERN_OK;
    const quern__block *block = &commands->blocks.items[commands->block_index];
    commands->streams.items[commands->streams.count++] =
        (quern__stream){.key = commands->key,
                        .serial = commands->serial,
                        .first = (quern__command *)(void *)(block->memory + block->used_bytes)};
    commands->is_open = true;
    return QUERN_OK;
}

static quern__stream *open_stream(const quern_commands *commands)
{
    return &commands->streams.items[commands->streams.count - 1];
}

/* Records a command in room that has been prepared. value may be NULL, and does not count for tags. */
static void record(quern_commands *commands, quern__command_kind kind, quern_entity entity,
                   uint32_t component_index, const void *value)
{
    quern__block *block = &commands->blocks.items[commands->block_index];
    quern__command *command = (quern__command *)(void *)(block->memory + block->used_bytes);
    *command = (quern__command){
        .kind = (uint8_t)kind, .entity = entity, .component_index = (uint16_t)component_index};
    char *end = (char *)(command + 1);
    const quern__type *type =
        value ? quern__components_type(&commands->storage->components, component_index) : NULL;
    if (type != NULL && type->size_bytes > 0) {
        char *copy = quern__command_value(command, type);
        quern__type_copy(type, copy, value, 1);
        command->has_value = true;
        commands->has_hooked_values |= type->hooks.destroy != NULL;
        end = copy + quern__align_up(type->size_bytes, RECORD_ALIGNMENT_BYTES);
    }
    command->size_bytes = (uint32_t)(end - (char *)command);
    block->used_bytes += command->size_bytes;
    open_stream(commands)->command_count++;
}

void *quern__command_value(quern__command *command, const quern__type *type)
{
    char *behind = (char *)(command + 1);
    return behind + (quern__align_up((uintptr_t)behind, type->alignment_bytes) - (uintptr_t)behind);
}

quern__command *quern__stream_take(quern__stream_cursor *cursor)
{
    if (cursor->left_count == 0) return NULL;
    quern__command *command = cursor->next;
    if (command->kind == QUERN__COMMAND_JUMP) command = command->next;
    cursor->next = (quern__command *)(void *)((char *)command + command->size_bytes);
    cursor->left_count--;
    return command;
}

/* ----------------------------------------------------------------------------------------- checks */

static bool is_ours(const quern_commands *commands, quern_entity entity)
{
    return commands->is_open && quern_entity_generation(entity) == commands->serial &&
           quern_entity_index(entity) < open_stream(commands)->create_count;
}

static quern_result check_entity(const quern_commands *commands, quern_entity entity)
{
    if (quern_entity_is_provisional(entity) && is_ours(commands, entity)) return QUERN_OK;
    return quern__entities_check(&commands->storage->entities, entity);
}

typedef struct handle_check {
    const quern_commands *commands;
    quern_result result;
} handle_check;

static quern_entity check_handle(void *argument, quern_entity entity)
{
    handle_check *check = argument;
    if (quern_entity_is_provisional(entity) && !is_ours(check->commands, entity))
        check->result = check_entity(check->commands, entity);
    return entity;
}

/* A value must not smuggle provisional handles of other streams into the world. */
static quern_result check_value(const quern_commands *commands, const quern__type *type, const void *value)
{
    if (value == NULL || !type->has_entity_fields) return QUERN_OK;
    handle_check check = {.commands = commands};
    quern__type_visit_entities(type, value, check_handle, &check);
    return check.result;
}

static quern_result check_component(const quern_commands *commands, quern_component component,
                                    const void *value)
{
    quern_result result = quern__components_check(&commands->storage->components, component);
    if (result != QUERN_OK) return result;
    return check_value(
        commands, quern__components_type(&commands->storage->components, quern__component_index(component)),
        value);
}

/* ------------------------------------------------------------------------------------ public calls */

static quern_entity record_create(quern_commands *commands)
{
    uint32_t number = open_stream(commands)->create_count++;
    quern_entity entity = quern__entity_make(0, commands->serial, number);
    record(commands, QUERN__COMMAND_CREATE, entity, 0, NULL);
    return entity;
}

quern_entity quern_commands_create(quern_commands *commands)
{
    return quern_commands_create_with(commands, NULL, NULL, 0);
}

/* Checks a list of components and says how many bytes recording it takes at most. */
static quern_result check_list(const quern_commands *commands, const quern_component *components,
                               const void *const *values, uint32_t count, size_t *out_bytes)
{
    uint64_t seen[QUERN__BITSET_WORDS(QUERN_MAX_COMPONENTS)] = {0};
    size_t columns_bytes = 0;
    for (uint32_t i = 0; i < count; i++) {
        quern_result result = check_component(commands, components[i], values ? values[i] : NULL);
        if (result != QUERN_OK) return result;
        uint32_t index = quern__component_index(components[i]);
        const quern__type *type = quern__components_type(&commands->storage->components, index);
        if (quern__bitset_has(seen, index))
            return quern__fail(QUERN_ERROR_DUPLICATE_COMPONENT,
                               "'%s' stands twice in the list of components", type->name);
        quern__bitset_add(seen, index);
        columns_bytes += quern__column_bytes(type->size_bytes, 1);
        *out_bytes += record_bytes_bound(type->size_bytes);
    }
    size_t row_bytes = quern__layout_bytes(columns_bytes, 1);
    if (row_bytes <= QUERN__CHUNK_BYTES) return QUERN_OK;
    return quern__fail(QUERN_ERROR_COMPONENT_TOO_LARGE,
                       "the %u components of the entity need %zu bytes of chunk together; a chunk has %d",
                       count, row_bytes, QUERN__CHUNK_BYTES);
}

quern_entity quern_commands_create_with(quern_commands *commands, const quern_component *components,
                                        const void *const *values, uint32_t count)
{
    quern_entity null = quern_entity_null();
    const char *missing = commands == NULL                  ? "commands"
                          : count > 0 && components == NULL ? "components"
                                                            : NULL;
    if (missing != NULL) {
        quern__fail_null("quern_commands_create_with", missing);
        return null;
    }
    if (count > QUERN_MAX_ENTITY_COMPONENTS) {
        quern__fail(
            QUERN_ERROR_TOO_MANY_COMPONENTS,
            "quern_commands_create_with: %u components; the limit is %d (QUERN_MAX_ENTITY_COMPONENTS)",
            count, QUERN_MAX_ENTITY_COMPONENTS);
        return null;
    }
    size_t bytes = sizeof(quern__command);
    if (check_list(commands, components, values, count, &bytes) != QUERN_OK) return null;
    if (prepare(commands, bytes) != QUERN_OK) return null;
    quern_entity entity = record_create(commands);
    for (uint32_t i = 0; i < count; i++)
        record(commands, QUERN__COMMAND_ADD, entity, quern__component_index(components[i]),
               values ? values[i] : NULL);
    return entity;
}

quern_result quern_commands_destroy(quern_commands *commands, quern_entity entity)
{
    if (commands == NULL) return quern__fail_null("quern_commands_destroy", "commands");
    quern_result result = check_entity(commands, entity);
    if (result == QUERN_OK) result = prepare(commands, sizeof(quern__command));
    if (result == QUERN_OK) record(commands, QUERN__COMMAND_DESTROY, entity, 0, NULL);
    return result;
}

static quern_result record_component(quern_commands *commands, quern__command_kind kind,
                                     quern_entity entity, quern_component component, const void *value)
{
    quern_result result = check_entity(commands, entity);
    if (result == QUERN_OK) result = check_component(commands, component, value);
    if (result != QUERN_OK) return result;
    uint32_t index = quern__component_index(component);
    uint32_t value_bytes = quern__components_type(&commands->storage->components, index)->size_bytes;
    result = prepare(commands, record_bytes_bound(value_bytes));
    if (result == QUERN_OK) record(commands, kind, entity, index, value);
    return result;
}

quern_result quern_commands_add(quern_commands *commands, quern_entity entity, quern_component component,
                                const void *value)
{
    if (commands == NULL) return quern__fail_null("quern_commands_add", "commands");
    return record_component(commands, QUERN__COMMAND_ADD, entity, component, value);
}

quern_result quern_commands_remove(quern_commands *commands, quern_entity entity, quern_component component)
{
    if (commands == NULL) return quern__fail_null("quern_commands_remove", "commands");
    return record_component(commands, QUERN__COMMAND_REMOVE, entity, component, NULL);
}

quern_result quern_commands_set(quern_commands *commands, quern_entity entity, quern_component component,
                                const void *value)
{
    if (commands == NULL) return quern__fail_null("quern_commands_set", "commands");
    quern_result result = check_component(commands, component, NULL);
    if (result != QUERN_OK) return result;
    uint32_t index = quern__component_index(component);
    if (value == NULL && quern__components_type(&commands->storage->components, index)->size_bytes > 0)
        return quern__fail_null("quern_commands_set", "value");
    return record_component(commands, QUERN__COMMAND_ADD, entity, component, value);
}
