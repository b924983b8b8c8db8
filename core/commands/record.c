/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "core/commands/record.h"

#include <quern/world.h>

enum { BLOCK_BYTES = 64 * 1024, BLOCK_ALIGNMENT_BYTES = 64 };

_Static_assert(sizeof(quern__run) == 16, "a run's head is 16 bytes");

/* One item of a create with as many components and bytes as fit a chunk must fit a block, with a head
 * before it, a jump after it, and padding. */
_Static_assert(2 * sizeof(quern__run) + sizeof(quern__item) +
                       (size_t)(QUERN_MAX_ENTITY_COMPONENTS + 3) * (QUERN_MAX_ALIGNMENT_BYTES + 1) +
                       QUERN__CHUNK_BYTES <
                   BLOCK_BYTES,
               "blocks are too small");

/* -------------------------------------------------------------------------------------- life cycle */

void quern__commands_init(quern_commands *commands, quern__storage *storage)
{
    *commands = (quern_commands){.storage = storage};
}

static void blocks_trim(quern_commands *commands, uint32_t keep_count)
{
    while (commands->blocks.count > keep_count)
        quern__release(&commands->storage->allocator,
                       commands->blocks.items[--commands->blocks.count].memory, BLOCK_BYTES,
                       BLOCK_ALIGNMENT_BYTES);
    if (keep_count == 0) commands->next = commands->end = NULL;
}

void quern__commands_release(quern_commands *commands)
{
    quern__commands_reset(commands);
    const quern_allocator *allocator = &commands->storage->allocator;
    blocks_trim(commands, 0);
    quern__array_release(allocator, &commands->blocks);
    quern__array_release(allocator, &commands->streams);
    quern__operations_release(&commands->operations, allocator);
}

/* The open run gets no more items: counting now spares every command a counter. */
static void close_run(quern_commands *commands)
{
    if (commands->operation == NULL) return;
    quern__stream *stream = commands->open;
    stream->command_count += (uint64_t)commands->run->item_count * commands->operation->command_count;
    stream->item_count += commands->run->item_count;
    commands->operation = NULL;
}

void quern__commands_close(quern_commands *commands)
{
    close_run(commands);
    commands->open = NULL;
}

void quern__commands_begin(quern_commands *commands, const quern__origin *origin)
{
    quern__commands_close(commands);
    commands->origin = *origin;
    commands->holder = quern__this_thread();
}

void quern__commands_end(quern_commands *commands)
{
    quern__commands_close(commands);
    commands->holder = NULL;
}

static void destroy_item_values(const quern__operation *operation, char *item)
{
    char *living = item + operation->living_offset_bytes;
    for (uint32_t i = 0; i < operation->operand_count; i++) {
        const quern__operand *operand = &operation->operands[i];
        if (!living[i]) continue;
        quern__type_destroy(operand->type, item + operand->offset_bytes, 1);
        living[i] = 0;
    }
}

void quern__stream_destroy_values(const quern__stream *stream)
{
    if ((stream->traits & QUERN__TRAIT_NO_OWNED) != 0) return;
    quern__run *run = stream->first;
    for (uint32_t i = 0; i < stream->run_count; i++) {
        if (i > 0) run = quern__run_next(run);
        if (!run->operation->has_destroy) continue;
        for (uint32_t k = 0; k < run->item_count; k++)
            destroy_item_values(run->operation, (char *)quern__run_item(run, k));
    }
}

static void use_block(quern_commands *commands, uint32_t index)
{
    commands->block_index = index;
    commands->next = commands->blocks.items[index].memory;
    commands->end = commands->next + BLOCK_BYTES - sizeof(quern__run);
}

void quern__commands_reset(quern_commands *commands)
{
    quern__commands_close(commands);
    for (uint32_t i = 0; i < commands->streams.count; i++)
        quern__stream_destroy_values(&commands->streams.items[i]);
    commands->streams.count = 0;
    commands->failed = QUERN_OK;
    if (commands->blocks.count > 0) use_block(commands, 0);
}

/* -------------------------------------------------------------------------------------- the arena */

static bool block_add(quern_commands *commands)
{
    const quern_allocator *allocator = &commands->storage->allocator;
    if (!quern__array_reserve(allocator, &commands->blocks, commands->blocks.count + 1)) return false;
    char *memory = quern__allocate(allocator, BLOCK_BYTES, BLOCK_ALIGNMENT_BYTES);
    if (memory == NULL) return false;
    commands->blocks.items[commands->blocks.count++] = (quern__block){.memory = memory};
    if (commands->blocks.count == 1) use_block(commands, 0);
    return true;
}

static uint32_t left_bytes(const quern_commands *commands)
{
    return (uint32_t)(commands->end - commands->next);
}

/* A run of one item takes at most so many bytes, at an address with an alignment of 8. */
static uint32_t run_bytes(const quern__operation *operation)
{
    return (uint32_t)sizeof(quern__run) + operation->alignment_bytes - 8 + operation->item_bytes;
}

/* How many items of one run fit into so many bytes. */
static uint32_t items_that_fit(const quern__operation *operation, uint32_t bytes)
{
    if (bytes < run_bytes(operation)) return 0;
    return 1 + (bytes - run_bytes(operation)) / operation->item_bytes;
}

/* Blocks for `count` more items, beside what is left of the one in use. On failure none is held that
 * was not before. */
static bool reserve_blocks(quern_commands *commands, const quern__operation *operation, uint32_t count)
{
    if (count == 1 && left_bytes(commands) >= run_bytes(operation)) return true;
    uint32_t fitting = items_that_fit(operation, left_bytes(commands));
    if (fitting >= count) return true;
    uint32_t per_block = items_that_fit(operation, BLOCK_BYTES - (uint32_t)sizeof(quern__run));
    assert(per_block > 0);
    uint32_t blocks = (count - fitting - 1) / per_block + 1;
    uint32_t held = commands->blocks.count;
    uint32_t used = held > 0 ? commands->block_index + 1 : 0;
    while (commands->blocks.count - used < blocks)
        if (!block_add(commands)) {
            blocks_trim(commands, held);
            return false;
        }
    return true;
}

static quern_result fail_memory(quern_commands *commands)
{
    commands->failed = QUERN_ERROR_OUT_OF_MEMORY;
    return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory to record a command");
}

static QUERN__SLOW_PATH quern_result fail_foreign(const quern_commands *commands, const char *function)
{
    const char *name = commands->origin.name;
    return quern__violation(
        QUERN_ERROR_INVALID_ARGUMENT,
        "%s: a recorder of commands was used outside the callback that it was got from, or on another "
        "thread%s%s%s: ask quern_context_commands (or, between frames, quern_world_commands) for it again, "
        "and use it there alone",
        function, name ? " (system '" : "", name ? name : "", name ? "' had it last)" : "");
}

/* Makes sure that `count` more items can be recorded without failing. */
static quern_result prepare(quern_commands *commands, const quern__operation *operation, uint32_t count,
                            const char *function)
{
    if (QUERN__UNLIKELY(commands->holder == NULL)) return fail_foreign(commands, function);
    if (!reserve_blocks(commands, operation, count) ||
        (commands->open == NULL && !quern__array_reserve(&commands->storage->allocator, &commands->streams,
                                                         commands->streams.count + 1)))
        return fail_memory(commands);
    return QUERN_OK;
}

/* Leaves the block in use for the next one; a stream that goes on there gets a jump. */
static void next_block(quern_commands *commands)
{
    quern__run *jump = (quern__run *)(void *)commands->next;
    use_block(commands, commands->block_index + 1);
    *jump = (quern__run){.next = (quern__run *)(void *)commands->next};
}

static void begin_stream(quern_commands *commands, quern__run *first)
{
    commands->open = &commands->streams.items[commands->streams.count++];
    *commands->open = (quern__stream){.origin = commands->origin,
                                      .first = first,
                                      .traits = UINT8_MAX,
                                      .structure_version = commands->storage->structure_version};
}

/* Begins a run, and the stream where it is the first, in room that has been prepared. */
static void begin_run(quern_commands *commands, const quern__operation *operation)
{
    close_run(commands);
    if (QUERN__UNLIKELY(left_bytes(commands) < run_bytes(operation))) next_block(commands);
    quern__run *run = (quern__run *)(void *)commands->next;
    uintptr_t head_end = (uintptr_t)(run + 1);
    size_t padding = quern__align_up(head_end, operation->alignment_bytes) - head_end;
    *run = (quern__run){.operation = operation, .first_item_bytes = (uint32_t)(sizeof *run + padding)};
    if (QUERN__UNLIKELY(commands->open == NULL)) begin_stream(commands, run);
    commands->open->run_count++;
    commands->open->traits &= operation->traits;
    commands->run = run;
    commands->operation = operation;
    commands->next += run->first_item_bytes;
}

static inline bool has_room(const quern_commands *commands, const quern__operation *operation)
{
    return commands->operation == operation &&
           (size_t)(commands->end - commands->next) >= operation->item_bytes;
}

/* Whether one more item needs no preparation: the open run has room for it, or another run can begin in
 * this block. A stream that is open is that of the callback that runs. */
static inline bool is_ready(const quern_commands *commands, const quern__operation *operation)
{
    return has_room(commands, operation) ||
           (commands->open != NULL && left_bytes(commands) >= run_bytes(operation));
}

/* One more item, in room that has been prepared or that is there; its values are for the caller to give. */
static inline char *append_item(quern_commands *commands, const quern__operation *operation,
                                const quern__item *head)
{
    if (QUERN__UNLIKELY(!has_room(commands, operation))) begin_run(commands, operation);
    char *item = commands->next;
    commands->next += operation->item_bytes;
    commands->run->item_count++;
    memcpy(item, head, sizeof *head);
    return item;
}

/* Copies the i-th value into an item. */
static inline void give_value(const quern__operation *operation, char *item, uint32_t i, const void *value)
{
    const quern__operand *operand = &operation->operands[i];
    char *target = item + operand->offset_bytes;
    if (operand->is_plain) {
        quern__copy_value(target, value, operand->size_bytes);
        return;
    }
    quern__type_copy(operand->type, target, value, 1);
    if (operation->has_destroy)
        item[operation->living_offset_bytes + i] = operand->type->hooks.destroy != NULL ? '\1' : '\0';
}

static void forget_living(const quern__operation *operation, char *item)
{
    if (operation->has_destroy) memset(item + operation->living_offset_bytes, 0, operation->operand_count);
}

/* ----------------------------------------------------------------------------------------- checks */

/* Whether it is the callback of the recorder that records, as far as can be told: while it runs, on its
 * thread. Without checks prepare sees whether it runs, on the way that leads there. */
static inline bool is_held(const quern_commands *commands)
{
    return !QUERN_CHECKS || commands->holder == quern__this_thread();
}

static inline quern_result check_holder(const quern_commands *commands, const char *function)
{
    return is_held(commands) ? QUERN_OK : fail_foreign(commands, function);
}

/* For the end of a command that failed. */
static QUERN__SLOW_PATH quern_result fail_named(const quern_commands *commands, quern_result result,
                                                const char *function)
{
    return quern__name_failure(result, function, commands->origin.name);
}

static bool is_ours(const quern_commands *commands, quern_entity entity)
{
    return commands->open != NULL && quern_entity_generation(entity) == commands->origin.serial &&
           quern_entity_index(entity) < commands->open->create_count;
}

static quern_result fail_provisional(const quern_commands *commands, quern_entity entity,
                                     const char *function)
{
    const char *name = commands->origin.name;
    const char *reason = quern_entity_generation(entity) == commands->origin.serial
                             ? "this callback has not created so many entities"
                             : "it was made by another callback, or its sync point has passed";
    return quern__violation(QUERN_ERROR_PROVISIONAL_ENTITY,
                            "%s: %s%s%s used the provisional handle of a deferred create (number %u): %s",
                            function, name ? "system '" : "", name ? name : "a command", name ? "'" : "",
                            quern_entity_index(entity), reason);
}

static quern_result find_other_entity(const quern_commands *commands, quern_entity entity,
                                      const char *function, quern__item *out_head)
{
    if (!quern_entity_is_provisional(entity))
        return quern__entities_check(&commands->storage->entities, entity);
    *out_head = (quern__item){.entity = entity};
    return is_ours(commands, entity) ? QUERN_OK : fail_provisional(commands, entity, function);
}

/* What an item for the entity begins with. */
static inline quern_result find_entity(const quern_commands *commands, quern_entity entity,
                                       const char *function, quern__item *out_head)
{
    const quern__record *record = quern__entities_find(&commands->storage->entities, entity);
    if (QUERN__UNLIKELY(record == NULL)) return find_other_entity(commands, entity, function, out_head);
    *out_head = (quern__item){.entity = entity, .location = record->location};
    return QUERN_OK;
}

typedef struct handle_check {
    const quern_commands *commands;
    const char *function;
    quern_result result;
} handle_check;

static quern_entity check_handle(void *argument, quern_entity entity)
{
    handle_check *check = argument;
    if (quern_entity_is_provisional(entity) && !is_ours(check->commands, entity))
        check->result = fail_provisional(check->commands, entity, check->function);
    return entity;
}

/* A value must not smuggle provisional handles of other streams into the world. */
static quern_result check_value(const quern_commands *commands, const quern__type *type, const void *value,
                                const char *function)
{
    if (value == NULL || !type->has_entity_fields) return QUERN_OK;
    handle_check check = {.commands = commands, .function = function};
    quern__type_visit_entities(type, value, check_handle, &check);
    return check.result;
}

/* ------------------------------------------------------------------------------------ public calls */

/* The i-th value that is given for the k-th component. */
static inline const void *given_value(const quern__operation *operation, const void *const *columns,
                                      uint32_t k, uint32_t i)
{
    assert(columns != NULL && operation->operands[k].offset_bytes != 0);
    return (const char *)columns[k] + (size_t)i * operation->operands[k].size_bytes;
}

/* A create, in room that has been prepared or that is there, with the i-th values. */
static inline quern_entity append_create(quern_commands *commands, const quern__operation *operation,
                                         const void *const *values, uint32_t i)
{
    char *item = append_item(commands, operation, &(quern__item){0});
    assert(commands->open != NULL);
    const uint32_t number = commands->open->create_count++;
    const quern_entity entity = quern__entity_make(0, commands->origin.serial, number);
    ((quern__item *)(void *)item)->entity = entity;
    forget_living(operation, item);
    for (uint32_t k = 0; k < operation->operand_count; k++)
        if (operation->operands[k].offset_bytes != 0)
            give_value(operation, item, k, given_value(operation, values, k, i));
    return entity;
}

/* count creates; values[i] are the values of the i-th component, one after the other. */
static quern_result record_creates(quern_commands *commands, const quern__operation *operation,
                                   const void *const *values, uint32_t count, quern_entity *out_entities,
                                   const char *function)
{
    quern_result result = prepare(commands, operation, count, function);
    if (result != QUERN_OK) return result;
    for (uint32_t i = 0; i < count; i++) {
        const quern_entity entity = append_create(commands, operation, values, i);
        if (out_entities != NULL) out_entities[i] = entity;
    }
    return QUERN_OK;
}

static quern_result check_columns(const quern_commands *commands, const quern__operation *operation,
                                  const void *const *values, uint32_t count, const char *function)
{
    quern_result result = QUERN_OK;
    if (!operation->has_entity_fields) return QUERN_OK;
    for (uint32_t k = 0; k < operation->operand_count; k++) {
        if (operation->operands[k].offset_bytes == 0) continue;
        for (uint32_t i = 0; i < count && result == QUERN_OK; i++)
            result = check_value(commands, operation->operands[k].type,
                                 given_value(operation, values, k, i), function);
    }
    return result;
}

static quern_result create_many(quern_commands *commands, const quern_component *components,
                                const void *const *columns, uint32_t component_count, uint32_t count,
                                quern_entity *out_entities, const char *function)
{
    if (commands == NULL) return quern__fail_null(function, "commands");
    if (component_count > 0 && components == NULL) return quern__fail_null(function, "components");
    const quern__operation *operation;
    quern_result result = check_holder(commands, function);
    if (result == QUERN_OK)
        result = quern__operations_create(&commands->operations, &commands->storage->components,
                                          &commands->storage->allocator, components, columns,
                                          component_count, &operation);
    if (result == QUERN_ERROR_OUT_OF_MEMORY) commands->failed = result;
    uint32_t created = commands->open != NULL ? commands->open->create_count : 0;
    if (result == QUERN_OK && count > QUERN_MAX_ENTITIES - created)
        result = quern__fail(QUERN_ERROR_LIMIT, "%s: a callback creates at most %u entities", function,
                             QUERN_MAX_ENTITIES);
    if (result == QUERN_OK) result = check_columns(commands, operation, columns, count, function);
    if (result == QUERN_OK && count > 0)
        result = record_creates(commands, operation, columns, count, out_entities, function);
    return QUERN__UNLIKELY(result != QUERN_OK) ? fail_named(commands, result, function) : QUERN_OK;
}

quern_result quern_commands_create_many(quern_commands *commands, const quern_component *components,
                                        const void *const *columns, uint32_t component_count,
                                        uint32_t count, quern_entity *out_entities)
{
    return create_many(commands, components, columns, component_count, count, out_entities,
                       "quern_commands_create_many");
}

/* Whether a create is like the last one, without handles in its values, and needs no preparation. */
static inline bool is_create_ready(const quern_commands *commands, const quern_component *components,
                                   const void *const *values, uint32_t count)
{
    if (commands == NULL || !is_held(commands) || components == NULL || values == NULL) return false;
    const quern__operation *operation = commands->operations.last_create;
    return operation != NULL && !operation->has_entity_fields && is_ready(commands, operation) &&
           quern__operation_has_list(operation, components, values, count) &&
           commands->open->create_count < QUERN_MAX_ENTITIES;
}

quern_entity quern_commands_create_with(quern_commands *commands, const quern_component *components,
                                        const void *const *values, uint32_t count)
{
    static const char function[] = "quern_commands_create_with";
    quern_entity entity = quern_entity_null();
    if (QUERN__LIKELY(is_create_ready(commands, components, values, count)))
        return append_create(commands, commands->operations.last_create, values, 0);
    create_many(commands, components, values, count, 1, &entity, function);
    return entity;
}

const char *quern_drop_reason_string(quern_drop_reason reason)
{
    static const char *const texts[] = {
        [QUERN_DROP_DESTROYED] = "entity destroyed by an earlier command",
        [QUERN_DROP_DEAD] = "entity gone before the sync point",
        [QUERN_DROP_REFUSED] = "more than an entity, or the world, can have",
    };
    return (size_t)reason < QUERN__COUNT_OF(texts) ? texts[reason] : "unknown reason";
}

quern_entity quern_commands_create(quern_commands *commands)
{
    quern_entity entity = quern_entity_null();
    create_many(commands, NULL, NULL, 0, 1, &entity, "quern_commands_create");
    return entity;
}

quern_result quern_commands_destroy(quern_commands *commands, quern_entity entity)
{
    static const char function[] = "quern_commands_destroy";
    if (commands == NULL) return quern__fail_null(function, "commands");
    const quern__operation *operation = &quern__operation_destroy;
    quern__item head;
    quern_result result = check_holder(commands, function);
    if (result == QUERN_OK) result = find_entity(commands, entity, function, &head);
    if (result == QUERN_OK && !is_ready(commands, operation))
        result = prepare(commands, operation, 1, function);
    if (QUERN__UNLIKELY(result != QUERN_OK)) return fail_named(commands, result, function);
    append_item(commands, operation, &head);
    return QUERN_OK;
}

/* The operation on one component, made when it is asked for the first time. Errors: UNKNOWN_COMPONENT,
 * OUT_OF_MEMORY. */
static quern_result make_operation(quern_commands *commands, quern_component component,
                                   quern__operation_variant variant, const quern__operation **out_operation)
{
    const quern__storage *storage = commands->storage;
    quern_result result = quern__components_check(&storage->components, component);
    if (result != QUERN_OK) return result;
    *out_operation =
        quern__operations_single(&commands->operations, &storage->components, &storage->allocator,
                                 quern__component_index(component), variant);
    return *out_operation != NULL ? QUERN_OK : fail_memory(commands);
}

static inline quern_result find_operation(quern_commands *commands, quern_component component,
                                          quern__operation_variant variant,
                                          const quern__operation **out_operation)
{
    uint32_t place = quern__component_index(component) * QUERN__VARIANT_COUNT + (uint32_t)variant;
    if (place < commands->operations.singles.count) {
        *out_operation = commands->operations.singles.items[place];
        if (*out_operation != NULL && (*out_operation)->operands[0].component.bits == component.bits)
            return QUERN_OK;
    }
    return make_operation(commands, component, variant, out_operation);
}

static inline quern_result record(quern_commands *commands, quern__operation_variant variant,
                                  quern_entity entity, quern_component component, const void *value,
                                  const char *function)
{
    const quern__operation *operation;
    quern__item head;
    quern_result result = check_holder(commands, function);
    if (result == QUERN_OK) result = find_entity(commands, entity, function, &head);
    if (result == QUERN_OK) result = find_operation(commands, component, variant, &operation);
    if (result == QUERN_OK && operation->has_entity_fields)
        result = check_value(commands, operation->operands[0].type, value, function);
    if (result == QUERN_OK && !is_ready(commands, operation))
        result = prepare(commands, operation, 1, function);
    if (QUERN__UNLIKELY(result != QUERN_OK)) return fail_named(commands, result, function);
    char *item = append_item(commands, operation, &head);
    if (value != NULL && operation->operands[0].offset_bytes != 0) give_value(operation, item, 0, value);
    return QUERN_OK;
}

quern_result quern_commands_add(quern_commands *commands, quern_entity entity, quern_component component,
                                const void *value)
{
    if (commands == NULL) return quern__fail_null("quern_commands_add", "commands");
    return record(commands, value != NULL ? QUERN__VARIANT_SET : QUERN__VARIANT_ADD, entity, component,
                  value, "quern_commands_add");
}

quern_result quern_commands_remove(quern_commands *commands, quern_entity entity, quern_component component)
{
    if (commands == NULL) return quern__fail_null("quern_commands_remove", "commands");
    return record(commands, QUERN__VARIANT_REMOVE, entity, component, NULL, "quern_commands_remove");
}

/* What quern_commands_set is given NULL for: fine for a tag. */
static quern_result set_nothing(quern_commands *commands, quern_entity entity, quern_component component)
{
    const quern__components *components = &commands->storage->components;
    quern_result result = quern__components_check(components, component);
    if (result == QUERN_OK &&
        quern__components_type(components, quern__component_index(component))->size_bytes > 0)
        result = quern__fail_null("quern_commands_set", "value");
    if (result != QUERN_OK) return fail_named(commands, result, "quern_commands_set");
    return record(commands, QUERN__VARIANT_ADD, entity, component, NULL, "quern_commands_set");
}

quern_result quern_commands_set(quern_commands *commands, quern_entity entity, quern_component component,
                                const void *value)
{
    if (commands == NULL) return quern__fail_null("quern_commands_set", "commands");
    if (value == NULL) return set_nothing(commands, entity, component);
    return record(commands, QUERN__VARIANT_SET, entity, component, value, "quern_commands_set");
}
