/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Recording commands: the blocks of a recorder, space for items, streams, checks, and the public calls. */
#include "core/record/record.h"

#include "core/record/accumulator.h"
#include "core/record/spawn.h"
#include "core/relations/relation_internal.h"
#include "core/storage/list_values.h"

#include <quern/world.h>

enum { COMMAND_BLOCK_BYTES = 64 * 1024, COMMAND_BLOCK_ALIGNMENT_BYTES = 64 };

_Static_assert(QUERN__VIEW_BATCH_MAX_BYTES + 2 * sizeof(quern__command_batch) < COMMAND_BLOCK_BYTES,
               "a block has room for a command for a view");

_Static_assert(sizeof(quern__command_batch) == 16, "a run's head is 16 bytes");
_Static_assert(sizeof(quern__item) % 8 == 0, "a batch after items is aligned to 8 bytes");

/* A block must have space for one item of the largest create, with a row that fills a chunk; in addition, the batch
 * header, a jump and padding. */
_Static_assert(2 * sizeof(quern__command_batch) + sizeof(quern__item) +
                       (size_t)(QUERN_MAX_ENTITY_COMPONENTS + 3) * (QUERN_MAX_ALIGNMENT_BYTES + 1) +
                       QUERN__CHUNK_BYTES <
                   COMMAND_BLOCK_BYTES,
               "blocks are too small");

/* -------------------------------------------------------------------------------------------- blocks */

static void use_block(quern_commands *commands, uint32_t index)
{
    commands->block_index = index;
    commands->next = commands->blocks.items[index].memory;
    commands->end = commands->next + COMMAND_BLOCK_BYTES - sizeof(quern__command_batch);
}

/* Releases all blocks except the first keep_count. */
static void blocks_trim(quern_commands *commands, uint32_t keep_count)
{
    while (commands->blocks.count > keep_count)
        quern__release(&commands->storage->allocator,
                       commands->blocks.items[--commands->blocks.count].memory, COMMAND_BLOCK_BYTES,
                       COMMAND_BLOCK_ALIGNMENT_BYTES);
    if (keep_count == 0) commands->next = commands->end = NULL;
}

static bool block_add(quern_commands *commands)
{
    const quern_allocator *allocator = &commands->storage->allocator;
    if (!quern__array_reserve(allocator, &commands->blocks, commands->blocks.count + 1)) return false;
    char *memory = quern__allocate(allocator, COMMAND_BLOCK_BYTES, COMMAND_BLOCK_ALIGNMENT_BYTES);
    if (memory == NULL) return false;
    commands->blocks.items[commands->blocks.count++] = (quern__block){.memory = memory};
    if (commands->blocks.count == 1) use_block(commands, 0);
    return true;
}

/* How many items of one batch fit into this number of bytes. */
static uint32_t items_that_fit(const quern__operation *operation, uint32_t bytes)
{
    if (bytes < quern__batch_max_bytes(operation)) return 0;
    return 1 + (bytes - quern__batch_max_bytes(operation)) / operation->item_bytes;
}

/* Reserves this many unused blocks after the current one. On failure, no new block is kept. */
static bool reserve_more(quern_commands *commands, uint64_t blocks)
{
    uint32_t held = commands->blocks.count;
    uint32_t used = held > 0 ? commands->block_index + 1 : 0;
    while (commands->blocks.count - used < blocks)
        if (!block_add(commands)) {
            blocks_trim(commands, held);
            return false;
        }
    return true;
}

bool quern__blocks_reserve_bytes(quern_commands *commands, uint64_t bytes)
{
    const uint32_t held = commands->blocks.count;
    if (!reserve_more(commands, (bytes + COMMAND_BLOCK_BYTES - 1) / COMMAND_BLOCK_BYTES)) return false;
    for (uint32_t i = held; i < commands->blocks.count; i++)
        quern__touch_pages(commands->blocks.items[i].memory, COMMAND_BLOCK_BYTES);
    return true;
}

static inline uint32_t block_left_bytes(const quern_commands *commands)
{
    return (uint32_t)(commands->end - commands->next);
}

/* Reserves blocks for `count` more items, in addition to the space left in the current block. On failure, no
 * new block is kept. */
static bool reserve_blocks(quern_commands *commands, const quern__operation *operation, uint32_t count)
{
    if (count == 1 && block_left_bytes(commands) >= quern__batch_max_bytes(operation)) return true;
    uint32_t fitting = items_that_fit(operation, block_left_bytes(commands));
    if (fitting >= count) return true;
    uint32_t per_block =
        items_that_fit(operation, COMMAND_BLOCK_BYTES - (uint32_t)sizeof(quern__command_batch));
    assert(per_block > 0);
    return reserve_more(commands, (count - fitting - 1) / per_block + 1);
}

/* ------------------------------------------------------------------------------------------ preparing */

quern_result quern__commands_fail_memory(quern_commands *commands)
{
    commands->failed = QUERN_ERROR_OUT_OF_MEMORY;
    return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory to record a command");
}

quern_result quern__commands_fail_foreign_use(const quern_commands *commands, const char *function)
{
    const char *name = commands->origin.name;
    return quern__report_violation(
        QUERN_ERROR_INVALID_ARGUMENT,
        "%s: a command recorder was used outside of the callback that asked for it, or on another "
        "thread%s%s%s: ask quern_context_commands (or, between frames, quern_world_commands) for it in "
        "each "
        "callback, and use it only there",
        function, name ? " (system '" : "", name ? name : "", name ? "' had it last)" : "");
}

/* A use outside of the callback, or on another thread, was logged; the recorder may be in use meanwhile. Relaxed:
 * the flag orders no other access. */
quern_result quern__commands_fail(quern_commands *commands, quern_result result, const char *function)
{
    quern__message_add_call(result, function, commands->origin.name);
    if (commands->callback_thread != quern__this_thread() || result == QUERN_ERROR_OUT_OF_MEMORY)
        return result;
    commands->failed_count++;
    const bool is_logged = result != QUERN_ERROR_STALE_ENTITY && result != QUERN_ERROR_PROVISIONAL_ENTITY &&
                           commands->has_logged_failure != NULL;
    if (is_logged && !atomic_exchange_explicit(commands->has_logged_failure, true, memory_order_relaxed))
        quern__log(QUERN_LOG_ERROR, "%s", quern_error_message());
    return result;
}

static bool reserve_stream(quern_commands *commands)
{
    return commands->open != NULL || quern__array_reserve(&commands->storage->allocator, &commands->streams,
                                                          commands->streams.count + 1);
}

quern_result quern__item_space_reserve(quern_commands *commands, const quern__operation *operation,
                                       uint32_t count, const char *function)
{
    if (QUERN__UNLIKELY(commands->callback_thread == NULL))
        return quern__commands_fail_foreign_use(commands, function);
    if (!reserve_blocks(commands, operation, count) || !reserve_stream(commands))
        return quern__commands_fail_memory(commands);
    return QUERN_OK;
}

/* Each block may lose up to largest_bytes at its end, where the next batch does not fit. */
quern_result quern__item_space_reserve_mixed(quern_commands *commands, uint64_t bytes,
                                             uint32_t largest_bytes, const char *function)
{
    if (QUERN__UNLIKELY(commands->callback_thread == NULL))
        return quern__commands_fail_foreign_use(commands, function);
    const uint32_t per_block = COMMAND_BLOCK_BYTES - (uint32_t)sizeof(quern__command_batch) - largest_bytes;
    if ((block_left_bytes(commands) < bytes && !reserve_more(commands, bytes / per_block + 1)) ||
        !reserve_stream(commands))
        return quern__commands_fail_memory(commands);
    return QUERN_OK;
}

char *quern__item_space_open_bytes(quern_commands *commands, uint32_t bytes)
{
    quern__batch_close(commands);
    if (block_left_bytes(commands) < bytes) {
        /* A jump at the end of the current block leads to the next one. Only a stream that continues there reads it. */
        quern__command_batch *jump = (quern__command_batch *)(void *)commands->next;
        assert(jump != NULL); /* quern__item_space_reserve gave the recorder a block */
        use_block(commands, commands->block_index + 1);
        *jump = (quern__command_batch){.next = (quern__command_batch *)(void *)commands->next};
    }
    if (commands->open == NULL) {
        commands->open = &commands->streams.items[commands->streams.count++];
        *commands->open = (quern__stream){.origin = commands->origin,
                                          .first = (quern__command_batch *)(void *)commands->next,
                                          .traits = UINT8_MAX,
                                          .structure_version = commands->storage->structure_version};
    }
    return commands->next;
}

char *quern__item_space_open(quern_commands *commands, const quern__operation *operation)
{
    quern__item_space_open_bytes(commands, quern__batch_max_bytes(operation));
    return quern__item_space_find(commands, operation);
}

/* Defined in this file so that the compiler knows the values of its members when it compiles
 * quern_commands_destroy. */
const quern__operation quern__operation_destroy = {
    .key = QUERN__OPERATION_DESTROY,
    .item_bytes = sizeof(quern__item),
    .alignment_bytes = 8,
    .command_count = 1,
    .kind = QUERN__OPERATION_DESTROY,
    .traits = QUERN__TRAITS_OF_DESTROY | QUERN__TRAIT_NO_HANDLES | QUERN__TRAIT_NO_OWNED};

_Static_assert((QUERN_MAX_ENTITY_NAME_BYTES + 1) % 8 == 0, "a batch after names is aligned to 8 bytes");
const quern__operation quern__operation_name = {
    .key = QUERN__OPERATION_NAME,
    .item_bytes = sizeof(quern__item) + QUERN_MAX_ENTITY_NAME_BYTES + 1,
    .alignment_bytes = 8,
    .command_count = 1,
    .kind = QUERN__OPERATION_NAME,
    .traits = QUERN__TRAITS_OF_NAME | QUERN__TRAIT_NO_HANDLES | QUERN__TRAIT_NO_OWNED};

const quern__operation quern__operation_enable_tree = {
    .key = QUERN__OPERATION_ENABLE_TREE,
    .item_bytes = sizeof(quern__item),
    .alignment_bytes = 8,
    .command_count = 1,
    .kind = QUERN__OPERATION_ENABLE_TREE,
    .traits = QUERN__TRAITS_OF_ENABLE_TREE | QUERN__TRAIT_NO_HANDLES | QUERN__TRAIT_NO_OWNED};

const quern__operation quern__operation_disable_tree = {
    .key = QUERN__OPERATION_DISABLE_TREE,
    .item_bytes = sizeof(quern__item),
    .alignment_bytes = 8,
    .command_count = 1,
    .kind = QUERN__OPERATION_DISABLE_TREE,
    .traits = QUERN__TRAITS_OF_DISABLE_TREE | QUERN__TRAIT_NO_HANDLES | QUERN__TRAIT_NO_OWNED};

const quern__operation quern__operation_clone = {.key = QUERN__OPERATION_CLONE,
                                                 .item_bytes = sizeof(quern__clone_item),
                                                 .alignment_bytes = 8,
                                                 .command_count = 1,
                                                 .kind = QUERN__OPERATION_CLONE,
                                                 .traits = QUERN__TRAITS_OF_CLONE |
                                                           QUERN__TRAIT_NO_HANDLES | QUERN__TRAIT_NO_OWNED};

/* -------------------------------------------------------------------------------------- life cycle */

void quern__commands_init(quern_commands *commands, quern__storage *storage)
{
    *commands = (quern_commands){.storage = storage};
}

void quern__commands_list(quern_commands *commands)
{
    quern_commands **first = &commands->storage->first_recorder;
    commands->next_recorder = *first;
    commands->place_recorder = first;
    if (*first != NULL) (*first)->place_recorder = &commands->next_recorder;
    *first = commands;
}

void quern__commands_release(quern_commands *commands)
{
    quern__commands_reset(commands);
    if (commands->place_recorder != NULL) *commands->place_recorder = commands->next_recorder;
    if (commands->next_recorder != NULL) commands->next_recorder->place_recorder = commands->place_recorder;
    const quern_allocator *allocator = &commands->storage->allocator;
    blocks_trim(commands, 0);
    quern__spawns_release(commands);
    quern__accumulator_release(commands);
    quern__array_release(allocator, &commands->blocks);
    quern__array_release(allocator, &commands->streams);
    quern__operations_release(&commands->operations, allocator);
}

void quern__commands_close_stream(quern_commands *commands)
{
    const quern__stream *open = commands->open;
    if (open != NULL) {
        quern__batch_close(commands);
        /* Leaves space for a jump after a stream that creates entities and relates or names some, or that spawns
         * prefabs, which it may destroy, or that may be clones with links. The sync point may append follow-up commands to such a stream and needs a
         * jump to them (core/playback/relating.c). If the block has no space left, the jump goes to the space
         * reserved for the recorder's own jump: no stream continues across the end of the block then. */
        if (QUERN__UNLIKELY(open->create_count > 0) &&
            (QUERN__MAY(open->traits, RELATES) || QUERN__MAY(open->traits, SPAWNS))) {
            const bool fits = block_left_bytes(commands) >= sizeof(quern__command_batch);
            commands->next = fits ? commands->next + sizeof(quern__command_batch) : commands->end;
        }
        commands->open = NULL;
    }
    if (QUERN__UNLIKELY(commands->accumulator != NULL))
        quern__commands_close(&commands->accumulator->recorder);
}

void quern__commands_begin(quern_commands *commands, const quern__origin *origin)
{
    quern__commands_close(commands);
    commands->origin = *origin;
    commands->callback_thread = quern__this_thread();
    commands->has_logged_failure = NULL;
}

void quern__commands_end(quern_commands *commands)
{
    quern__commands_close(commands);
    commands->callback_thread = NULL;
}

static void destroy_item_values(const quern__operation *operation, char *item)
{
    char *owned = item + operation->owned_offset_bytes;
    for (uint32_t i = 0; i < operation->operand_count; i++) {
        const quern__operand *operand = &operation->operands[i];
        if (!owned[i]) continue;
        quern__type_destroy(operand->type, item + operand->offset_bytes, 1);
        owned[i] = 0;
    }
}

void quern__stream_destroy_owned(const quern__stream *stream)
{
    quern__command_batch *batch = stream->first;
    for (uint32_t i = 0; i < stream->batch_count; i++) {
        if (i > 0) batch = quern__batch_next(batch);
        if (!batch->operation->has_destroy) continue;
        for (uint32_t k = 0; k < batch->item_count; k++)
            destroy_item_values(batch->operation, (char *)quern__batch_item(batch, k));
    }
}

void quern__commands_reset(quern_commands *commands)
{
    quern__commands_close(commands);
    for (uint32_t i = 0; i < commands->streams.count; i++)
        quern__stream_destroy_values(&commands->streams.items[i]);
    commands->streams.count = 0;
    commands->failed = QUERN_OK;
    if (QUERN__UNLIKELY(commands->retains_prefabs)) quern__spawns_release_prefabs(commands);
    if (commands->blocks.count > 0) use_block(commands, 0);
    if (commands->accumulator != NULL) quern__commands_reset(&commands->accumulator->recorder);
}

/* ----------------------------------------------------------------------------------------- checks */

static inline quern_result check_callback(const quern_commands *commands, const char *function)
{
    return quern__commands_can_record(commands) ? QUERN_OK
                                                : quern__commands_fail_foreign_use(commands, function);
}

bool quern__commands_have_created(const quern_commands *commands, quern_entity entity)
{
    /* the upper half of a provisional handle, whose world tag is 0 */
    return commands->open != NULL && entity.bits >> 32 == commands->origin.serial &&
           quern_entity_index(entity) < commands->open->create_count;
}

static quern_result fail_provisional(const quern_commands *commands, quern_entity entity,
                                     const char *function)
{
    const char *name = commands->origin.name;
    const char *reason = quern_entity_generation(entity) == commands->origin.serial
                             ? "this callback has created fewer entities"
                             : "another callback created the entity, or its sync point has passed";
    return quern__report_violation(
        QUERN_ERROR_PROVISIONAL_ENTITY,
        "%s: %s%s%s used the provisional handle of a deferred create (number %u): %s; use it only in "
        "commands of the "
        "callback that made it, and keep it in a described field, which then gets the real handle",
        function, name ? "system '" : "", name ? name : "a command", name ? "'" : "",
        quern_entity_index(entity), reason);
}

quern_result quern__commands_check_entity(const quern_commands *commands, quern_entity entity,
                                          const char *function)
{
    if (!quern_entity_is_provisional(entity))
        return quern__entities_check(&commands->storage->entities, entity);
    return quern__commands_have_created(commands, entity) ? QUERN_OK
                                                          : fail_provisional(commands, entity, function);
}

/* Checks the entity and returns the head of an item for it. */
static inline quern_result find_entity(quern_commands *commands, quern_entity entity, const char *function,
                                       quern__item *out_head)
{
    const quern__record *record = quern__entities_find(&commands->storage->entities, entity);
    *out_head = (quern__item){.entity = entity, .location = record != NULL ? record->location : 0};
    if (QUERN__LIKELY(record != NULL) || quern__commands_have_created(commands, entity)) return QUERN_OK;
    return quern__commands_check_entity(commands, entity, function);
}

typedef struct handle_check {
    const quern_commands *commands;
    const char *function;
    quern_result result;
} handle_check;

static quern_entity check_handle(void *argument, quern_entity entity)
{
    handle_check *check = argument;
    if (quern_entity_is_provisional(entity) && !quern__commands_have_created(check->commands, entity))
        check->result = fail_provisional(check->commands, entity, check->function);
    return entity;
}

quern_result quern__commands_check_value(quern_commands *commands, const quern__operand *operand,
                                         quern_entity entity, const void *value, const char *function)
{
    const quern__type *type = operand->type;
    if (value == NULL || !type->has_entity_fields) return QUERN_OK;
    if (operand->is_relation) {
        /* `entity` is the source, which has been checked */
        quern__item ignored;
        quern_entity target;
        memcpy(&target, value, sizeof target);
        const quern_result result = find_entity(commands, target, function, &ignored);
        if (result != QUERN_OK) return quern__message_add_call(result, "the target", NULL);
        if (!quern_entity_equal(entity, target)) return QUERN_OK;
        return quern__fail(QUERN_ERROR_INVALID_ARGUMENT, "entity %u:%u cannot be its own target",
                           quern_entity_index(entity), quern_entity_generation(entity));
    }
    handle_check check = {.commands = commands, .function = function};
    quern__type_visit_entities(type, value, check_handle, &check);
    return check.result;
}

/* ------------------------------------------------------------------------------------ public calls */

/* Returns the address of the value of the k-th component for the i-th create. */
static inline const void *given_value(const quern__operation *operation, const void *const *columns,
                                      uint32_t k, uint32_t i)
{
    assert(columns != NULL && operation->operands[k].offset_bytes != 0);
    return (const char *)columns[k] + (size_t)i * operation->operands[k].size_bytes;
}

/* Appends a create to the given space; its values are written before or after this call. Returns the
 * provisional handle. */
static inline quern_entity append_create(quern_commands *commands, const quern__operation *operation,
                                         char *space)
{
    quern__item *item = quern__item_append(commands, operation, space);
    assert(commands->open != NULL);
    const uint32_t number = commands->open->create_count++;
    const quern_entity entity = quern__entity_make(0, commands->origin.serial, number);
    *item = (quern__item){.entity = entity};
    return entity;
}

/* Records `count` creates. values[k] is the array of values of the k-th component. */
static quern_result record_creates(quern_commands *commands, const quern__operation *operation,
                                   const void *const *values, uint32_t count, quern_entity *out_entities,
                                   const char *function)
{
    quern_result result = quern__item_space_reserve(commands, operation, count, function);
    if (result != QUERN_OK) return result;
    for (uint32_t i = 0; i < count; i++) {
        char *space = quern__item_space_find(commands, operation);
        if (space == NULL) space = quern__item_space_open(commands, operation);
        const quern_entity entity = append_create(commands, operation, space);
        quern__item_clear_owned(operation, space);
        for (uint32_t k = 0; k < operation->operand_count; k++)
            if (operation->operands[k].offset_bytes != 0)
                quern__item_write_value(operation, space, k, given_value(operation, values, k, i));
        if (out_entities != NULL) out_entities[i] = entity;
    }
    return QUERN_OK;
}

static quern_result check_columns(quern_commands *commands, const quern__operation *operation,
                                  const void *const *values, uint32_t count, const char *function)
{
    quern_result result = QUERN_OK;
    if (!operation->has_entity_fields) return QUERN_OK;
    for (uint32_t k = 0; k < operation->operand_count; k++) {
        if (operation->operands[k].offset_bytes == 0) continue;
        for (uint32_t i = 0; i < count && result == QUERN_OK; i++)
            result = quern__commands_check_value(commands, &operation->operands[k], quern_entity_null(),
                                                 given_value(operation, values, k, i), function);
    }
    return result;
}

/* The components that new entities get, and an array of values for each. */
typedef struct create_columns {
    const quern_component *components;
    const void *const *columns;
    uint32_t component_count;
} create_columns;

static quern_result create_many(quern_commands *commands, const create_columns *list, uint32_t count,
                                quern_entity *out_entities, const char *function)
{
    if (commands == NULL) return quern__fail_null(function, "commands");
    const quern__operation *operation;
    quern_result result = check_callback(commands, function);
    if (result == QUERN_OK && list->component_count > 0 && list->components == NULL)
        result = quern__fail_null(function, "components");
    if (result == QUERN_OK)
        result = quern__operations_find_create(&commands->operations, commands->storage, list->components,
                                               list->columns, list->component_count, &operation);
    if (result == QUERN_ERROR_OUT_OF_MEMORY) commands->failed = result;
    uint32_t created = commands->open != NULL ? commands->open->create_count : 0;
    if (result == QUERN_OK && count > QUERN_MAX_ENTITIES - created)
        result =
            quern__fail(QUERN_ERROR_LIMIT, "one callback cannot create more than %u entities: create fewer",
                        QUERN_MAX_ENTITIES);
    if (result == QUERN_OK) result = check_columns(commands, operation, list->columns, count, function);
    if (result == QUERN_OK && count > 0)
        result = record_creates(commands, operation, list->columns, count, out_entities, function);
    return QUERN__UNLIKELY(result != QUERN_OK) ? quern__commands_fail(commands, result, function)
                                               : QUERN_OK;
}

quern_result quern_commands_create_many(quern_commands *commands, const quern_component *components,
                                        const void *const *columns, uint32_t component_count,
                                        uint32_t count, quern_entity *out_entities)
{
    const create_columns list = {components, columns, component_count};
    return create_many(commands, &list, count, out_entities, __func__);
}

/* Fast path for a create with the same components as the last one and values copied as bytes. Writes the
 * values and returns their space; the create cannot fail any more. Returns NULL if the create differs or space
 * must be reserved first. */
static inline char *write_known_values(const quern_commands *commands, const quern__operation *operation,
                                       const quern_component *components, const void *const *values,
                                       uint32_t count)
{
    if (operation == NULL || !operation->is_copied || operation->operand_count != count) return NULL;
    char *space = quern__item_space_find(commands, operation);
    if (space == NULL || commands->open->create_count >= QUERN_MAX_ENTITIES) return NULL;
    for (uint32_t i = 0; i < count; i++) {
        const quern__operand *operand = &operation->operands[i];
        const char *value = values[i];
        if (operand->component.bits != components[i].bits) return NULL;
        if (operand->offset_bytes == 0) {
            if (value != NULL && operand->size_bytes > 0) return NULL;
            continue;
        }
        if (value == NULL) return NULL;
        quern__copy_new_value(space + operand->offset_bytes, value, operand->size_bytes);
    }
    return space;
}

quern_result quern_commands_create_with(quern_commands *commands, const quern_component *components,
                                        const void *const *values, uint32_t count, quern_entity *out_entity)
{
    char *space = NULL;
    quern_entity entity = quern_entity_null();
    quern_result result = QUERN_OK;
    if (QUERN__LIKELY(commands != NULL && components != NULL && values != NULL &&
                      quern__commands_can_record(commands)))
        space = write_known_values(commands, commands->operations.last_create, components, values, count);
    if (QUERN__LIKELY(space != NULL))
        entity = append_create(commands, commands->operations.last_create, space);
    else
        result = create_many(commands, &(create_columns){components, values, count}, 1, &entity, __func__);
    if (out_entity != NULL) *out_entity = entity;
    return result;
}

const char *quern_drop_reason_string(quern_drop_reason reason)
{
    static const char *const texts[] = {
        [QUERN_DROP_DESTROYED] = "entity destroyed by an earlier command",
        [QUERN_DROP_DEAD] = "entity dead before the sync point",
        [QUERN_DROP_REFUSED] = "limit of an entity or of the world exceeded",
        [QUERN_DROP_TARGET_DEAD] = "target dead before the command was applied",
        [QUERN_DROP_CYCLE] = "target is the source or below it",
        [QUERN_DROP_TARGET_IN_USE] = "a source refuses the destruction of its target",
        [QUERN_DROP_SIBLING_NAME_TAKEN] = "a sibling already has the name",
        [QUERN_DROP_NO_COMPONENT] = "the entity lacks the component",
        [QUERN_DROP_NO_EDGE] = "the source does not have the target",
        [QUERN_DROP_NOT_COPIED] = "the entity could not be copied",
    };
    return (size_t)reason < QUERN__COUNT_OF(texts) ? texts[reason] : "unknown reason";
}

quern_result quern_commands_create(quern_commands *commands, quern_entity *out_entity)
{
    if (out_entity != NULL) *out_entity = quern_entity_null();
    return create_many(commands, &(create_columns){.component_count = 0}, 1, out_entity, __func__);
}

/* Records a command without operands. */
static quern_result record_bare(quern_commands *commands, const quern__operation *operation,
                                quern_entity entity, const char *function)
{
    char *space = NULL;
    quern__item head;
    quern_result result = check_callback(commands, function);
    if (result == QUERN_OK) result = find_entity(commands, entity, function, &head);
    if (result == QUERN_OK) result = quern__item_space_get(commands, operation, function, &space);
    if (QUERN__UNLIKELY(result != QUERN_OK)) return quern__commands_fail(commands, result, function);
    *quern__item_append(commands, operation, space) = head;
    return QUERN_OK;
}

/* Slow path: the entity is not alive, or no space is available without reserving. */
static QUERN__NO_INLINE quern_result destroy_checked(quern_commands *commands, quern_entity entity)
{
    static const char function[] = "quern_commands_destroy";
    if (commands == NULL) return quern__fail_null(function, "commands");
    return record_bare(commands, &quern__operation_destroy, entity, function);
}

quern_result quern_commands_destroy(quern_commands *commands, quern_entity entity)
{
    const quern__operation *operation = &quern__operation_destroy;
    if (QUERN__UNLIKELY(commands == NULL || !quern__commands_can_record(commands)))
        return destroy_checked(commands, entity);
    const quern__record *record = quern__entities_find(&commands->storage->entities, entity);
    char *space = quern__item_space_find(commands, operation);
    if (record == NULL || space == NULL) return destroy_checked(commands, entity);
    *quern__item_append(commands, operation, space) =
        (quern__item){.entity = entity, .location = record->location};
    return QUERN_OK;
}

/* Finds or creates the operation on one component. Errors: UNKNOWN_COMPONENT, INVALID_ARGUMENT, OUT_OF_MEMORY. */
static quern_result find_or_create_operation(quern_commands *commands, quern_component component,
                                             quern__operation_kind kind,
                                             const quern__operation **out_operation)
{
    const quern__storage *storage = commands->storage;
    quern_result result = quern__components_check(&storage->components, component);
    if (result != QUERN_OK) return result;
    result = quern__operations_find_single(&commands->operations, &storage->components, &storage->allocator,
                                           quern__component_index(component), kind, out_operation);
    return result != QUERN_ERROR_OUT_OF_MEMORY ? result : quern__commands_fail_memory(commands);
}

static inline quern_result find_operation(quern_commands *commands, quern_component component,
                                          quern__operation_kind kind,
                                          const quern__operation **out_operation)
{
    uint32_t space = quern__component_index(component) * QUERN__SINGLE_KIND_COUNT + (uint32_t)kind;
    if (space < commands->operations.singles.count) {
        *out_operation = commands->operations.singles.items[space];
        if (*out_operation != NULL && (*out_operation)->operands[0].component.bits == component.bits)
            return QUERN_OK;
    }
    return find_or_create_operation(commands, component, kind, out_operation);
}

/* Second half of `record` for values that may contain handles, which are checked first. */
static QUERN__NO_INLINE quern_result record_handles(quern_commands *commands,
                                                    const quern__operation *operation, quern__item head,
                                                    const void *value, const char *function)
{
    char *space = NULL;
    quern_result result =
        quern__commands_check_value(commands, &operation->operands[0], head.entity, value, function);
    if (result == QUERN_OK) result = quern__item_space_get(commands, operation, function, &space);
    if (result != QUERN_OK) return quern__commands_fail(commands, result, function);
    const quern__operand *operand = &operation->operands[0];
    quern__item_write_value(operation, space, 0, value);
    if (QUERN__UNLIKELY(!quern__type_own_provisional(operand->type, space + operand->offset_bytes))) {
        quern__type_destroy(operand->type, space + operand->offset_bytes, 1);
        return quern__commands_fail(commands, quern__commands_fail_memory(commands), function);
    }
    *quern__item_append(commands, operation, space) = head;
    return QUERN_OK;
}

/* Not inlined, so that the callers save no registers for it on their fast path. */
static QUERN__NO_INLINE quern_result record(quern_commands *commands, quern__operation_kind kind,
                                            quern_entity entity, quern_component component,
                                            const void *value, const char *function)
{
    const quern__operation *operation;
    quern__item head;
    char *space = NULL;
    quern_result result = check_callback(commands, function);
    if (result == QUERN_OK) result = find_entity(commands, entity, function, &head);
    if (result == QUERN_OK) result = find_operation(commands, component, kind, &operation);
    if (result == QUERN_OK && operation->has_entity_fields && value != NULL)
        return record_handles(commands, operation, head, value, function);
    if (result == QUERN_OK) result = quern__item_space_get(commands, operation, function, &space);
    if (QUERN__UNLIKELY(result != QUERN_OK)) return quern__commands_fail(commands, result, function);
    *quern__item_append(commands, operation, space) = head;
    if (value != NULL && operation->operands[0].offset_bytes != 0)
        quern__item_write_value(operation, space, 0, value);
    return QUERN_OK;
}

/* Fast path for a command that joins the open batch: it is of the same kind on the same component, its value is
 * copied as bytes, and its entity is alive. Records the command and returns true; it cannot fail any more. Returns
 * false if `record` must be called. value: NULL if the kind has none. */
static inline bool join_batch(quern_commands *commands, quern__operation_kind kind, quern_entity entity,
                              quern_component component, const void *value)
{
    if (QUERN__UNLIKELY(commands == NULL || !quern__commands_can_record(commands)) ||
        commands->join_key != quern__join_key(kind, component))
        return false;
    const quern__operation *operation = commands->operation;
    char *space = commands->next;
    const quern__record *found = quern__entities_find(&commands->storage->entities, entity);
    if (found == NULL || (size_t)(commands->end - space) < operation->item_bytes) return false;
    commands->next = space + operation->item_bytes;
    commands->batch->item_count++;
    *(quern__item *)(void *)space = (quern__item){.entity = entity, .location = found->location};
    if (value != NULL)
        quern__copy_new_value(space + operation->operands[0].offset_bytes, value,
                              operation->operands[0].size_bytes);
    return true;
}

quern_result quern_commands_add(quern_commands *commands, quern_entity entity, quern_component component,
                                const void *value)
{
    if (QUERN__LIKELY(value != NULL ? join_batch(commands, QUERN__OPERATION_SET, entity, component, value)
                                    : join_batch(commands, QUERN__OPERATION_ADD, entity, component, NULL)))
        return QUERN_OK;
    QUERN__NEED(commands);
    return record(commands, value != NULL ? QUERN__OPERATION_SET : QUERN__OPERATION_ADD, entity, component,
                  value, __func__);
}

quern_result quern_commands_remove(quern_commands *commands, quern_entity entity, quern_component component)
{
    if (QUERN__LIKELY(join_batch(commands, QUERN__OPERATION_REMOVE, entity, component, NULL)))
        return QUERN_OK;
    QUERN__NEED(commands);
    return record(commands, QUERN__OPERATION_REMOVE, entity, component, NULL, __func__);
}

/* Handles quern_commands_set with a NULL value, which is valid for tags only. */
static quern_result set_null(quern_commands *commands, quern_entity entity, quern_component component)
{
    const quern__components *components = &commands->storage->components;
    quern_result result = quern__components_check(components, component);
    if (result == QUERN_OK &&
        quern__components_type(components, quern__component_index(component))->size_bytes > 0)
        result = quern__fail_null("quern_commands_set", "value");
    if (result != QUERN_OK) return quern__commands_fail(commands, result, "quern_commands_set");
    return record(commands, QUERN__OPERATION_ADD, entity, component, NULL, "quern_commands_set");
}

quern_result quern_commands_set_component_enabled(quern_commands *commands, quern_entity entity,
                                                  quern_component component, bool enabled)
{
    QUERN__NEED(commands);
    return record(commands, enabled ? QUERN__OPERATION_ENABLE : QUERN__OPERATION_DISABLE, entity, component,
                  NULL, __func__);
}

quern_result quern_commands_set(quern_commands *commands, quern_entity entity, quern_component component,
                                const void *value)
{
    if (QUERN__LIKELY(value != NULL &&
                      join_batch(commands, QUERN__OPERATION_SET, entity, component, value)))
        return QUERN_OK;
    QUERN__NEED(commands);
    if (value == NULL) return set_null(commands, entity, component);
    return record(commands, QUERN__OPERATION_SET, entity, component, value, __func__);
}

/* Records a command that relates or unrelates. value: the target, or NULL. SET becomes ADD_EDGE if the relation has
 * several targets per source. Not inlined: these commands are rare compared with those on components. */
static QUERN__NO_INLINE quern_result record_relation(quern_commands *commands, quern__operation_kind kind,
                                                     quern_entity source, quern_relation relation,
                                                     const quern_entity *value, const char *function)
{
    quern__relation *known;
    if (commands == NULL) return quern__fail_null(function, "commands");
    const quern_result result = quern__relation_check(commands->storage, relation, &known);
    if (QUERN__UNLIKELY(result != QUERN_OK)) return quern__commands_fail(commands, result, function);
    if (known->is_many && kind == QUERN__OPERATION_SET) kind = QUERN__OPERATION_ADD_EDGE;
    return record(commands, kind, source, quern_relation_component(relation), value, function);
}

/* Fast path for a relate command that joins the open batch, like join_batch: both entities are alive. */
static inline bool join_relates(quern_commands *commands, quern_entity source, quern_relation relation,
                                quern_entity target)
{
    if (QUERN__UNLIKELY(commands == NULL || !quern__commands_can_record(commands))) return false;
    const quern__operation *operation = commands->operation;
    if (operation == NULL ||
        (operation->kind != QUERN__OPERATION_RELATE && operation->kind != QUERN__OPERATION_ADD_EDGE) ||
        operation->operands[0].component.bits != relation.bits)
        return false;
    char *space = commands->next;
    const quern__entities *entities = &commands->storage->entities;
    const quern__record *found = quern__entities_find(entities, source);
    if (found == NULL || (size_t)(commands->end - space) < operation->item_bytes ||
        quern__entities_find(entities, target) == NULL || quern_entity_equal(source, target))
        return false;
    commands->next = space + operation->item_bytes;
    commands->batch->item_count++;
    *(quern__item *)(void *)space = (quern__item){.entity = source, .location = found->location};
    memcpy(space + operation->operands[0].offset_bytes, &target, sizeof target);
    return true;
}

quern_result quern_commands_relate(quern_commands *commands, quern_entity source, quern_relation relation,
                                   quern_entity target)
{
    if (QUERN__LIKELY(join_relates(commands, source, relation, target))) return QUERN_OK;
    return record_relation(commands, QUERN__OPERATION_SET, source, relation, &target, __func__);
}

/* Records a command with the value of an edge. The target in an element is replaced by the one of the command. target:
 * NULL for whatever target the source has, or that of the element; the item then has the null handle. */
static quern_result record_edge_value(quern_commands *commands, quern__operation_kind kind,
                                      quern_entity source, quern_relation relation,
                                      const quern_entity *target, const void *value, const char *function)
{
    const quern__operation *operation = NULL;
    quern__item head;
    quern__relation *known;
    char *space = NULL, element[QUERN__EDGE_ELEMENT_BYTES];
    const quern_entity of_item = target != NULL ? *target : (quern_entity){0};
    if (commands == NULL) return quern__fail_null(function, "commands");
    quern_result result = check_callback(commands, function);
    if (result == QUERN_OK) result = quern__relation_check(commands->storage, relation, &known);
    if (result == QUERN_OK && value == NULL) result = quern__fail_null(function, "value");
    if (result == QUERN_OK) result = quern__edge_value_check(commands->storage, known);
    if (result == QUERN_OK) result = find_entity(commands, source, function, &head);
    if (result == QUERN_OK)
        result = find_operation(commands, quern_relation_component(relation), kind, &operation);
    if (result != QUERN_OK) return quern__commands_fail(commands, result, function);
    if (known->is_many) {
        memcpy(element, value, known->element.size_bytes);
        if (target != NULL) memcpy(element, &of_item, sizeof of_item);
        value = element;
    }
    if (target != NULL)
        result = quern__commands_check_value(commands, &operation->operands[0], source, target, function);
    if (result == QUERN_OK)
        result = quern__commands_check_value(commands, &operation->operands[1], source, value, function);
    if (result == QUERN_OK) result = quern__item_space_get(commands, operation, function, &space);
    if (result != QUERN_OK) return quern__commands_fail(commands, result, function);
    const quern__operand *operand = &operation->operands[1];
    quern__item_clear_owned(operation, space);
    memcpy(space + operation->operands[0].offset_bytes, &of_item, sizeof of_item);
    quern__item_write_value(operation, space, 1, value);
    if (QUERN__UNLIKELY(!quern__type_own_provisional(operand->type, space + operand->offset_bytes))) {
        quern__type_destroy(operand->type, space + operand->offset_bytes, 1);
        return quern__commands_fail(commands, quern__commands_fail_memory(commands), function);
    }
    *quern__item_append(commands, operation, space) = head;
    return QUERN_OK;
}

quern_result quern__commands_set_target_value(quern_commands *commands, quern_entity source,
                                              quern_relation relation, const void *value,
                                              const char *function)
{
    return record_edge_value(commands, QUERN__OPERATION_SET_EDGE_VALUE, source, relation, NULL, value,
                             function);
}

quern_result quern_commands_relate_with(quern_commands *commands, quern_entity source,
                                        quern_relation relation, quern_entity target, const void *value)
{
    return record_edge_value(commands, QUERN__OPERATION_RELATE_WITH, source, relation, &target, value,
                             __func__);
}

quern_result quern_commands_set_edge_value(quern_commands *commands, quern_entity source,
                                           quern_relation relation, quern_entity target, const void *value)
{
    return record_edge_value(commands, QUERN__OPERATION_SET_EDGE_VALUE, source, relation, &target, value,
                             __func__);
}

quern_result quern_commands_unrelate(quern_commands *commands, quern_entity source, quern_relation relation)
{
    return record_relation(commands, QUERN__OPERATION_REMOVE, source, relation, NULL, __func__);
}

quern_result quern_commands_unrelate_from(quern_commands *commands, quern_entity source,
                                          quern_relation relation, quern_entity target)
{
    return record_relation(commands, QUERN__OPERATION_UNRELATE_FROM, source, relation, &target, __func__);
}

quern_result quern_commands_set_name(quern_commands *commands, quern_entity entity, const char *name)
{
    QUERN__NEED(commands);
    const quern__operation *operation = &quern__operation_name;
    char *space = NULL;
    quern__item head;
    if (name == NULL) name = "";
    quern_result result = check_callback(commands, __func__);
    if (result == QUERN_OK) result = find_entity(commands, entity, __func__, &head);
    if (result == QUERN_OK) result = quern__entity_check_name(name);
    if (result == QUERN_OK) result = quern__item_space_get(commands, operation, __func__, &space);
    if (QUERN__UNLIKELY(result != QUERN_OK)) return quern__commands_fail(commands, result, __func__);
    quern__item *item = quern__item_append(commands, operation, space);
    *item = head;
    memcpy(item + 1, name, strlen(name) + 1);
    return QUERN_OK;
}

quern_result quern_commands_set_enabled(quern_commands *commands, quern_entity entity, bool enabled)
{
    QUERN__NEED(commands);
    if (commands->storage->disabled_index == QUERN__NO_COMPONENT)
        return quern__commands_fail(commands,
                                    quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                                                "the tag of disabled entities is not registered: call "
                                                "quern_world_disabled_tag once before the first frame"),
                                    __func__);
    return record_bare(commands, enabled ? &quern__operation_enable_tree : &quern__operation_disable_tree,
                       entity, __func__);
}
