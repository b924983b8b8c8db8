/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Recording commands for rows of a view (record.h). Everything that can fail is done before the first row is
 * recorded. A command whose rows need work one by one is recorded as single commands instead: it relates
 * entities, or gives values of a type with hooks. */

#include "core/record/record.h"

_Static_assert((int)QUERN_MAX_VIEW_ROWS == (int)QUERN__BIT_COLUMN_MAX_ROWS,
               "a chunk has at most so many rows");

/* The rows of one command: bits of the rows of the chunk. */
typedef struct selection {
    uint64_t words[QUERN__BIT_COLUMN_ROW_WORDS];
    uint32_t first, last; /* first and last row; valid if count > 0 */
    uint32_t count;
} selection;

/* A command to record. */
typedef struct view_command {
    quern_commands *commands;
    const quern_view *view;
    const quern__operation *operation;
    const char *function;
    const char *values; /* NULL: none */
    bool has_value_per_row;
} view_command;

quern__command_batch *quern__view_batch_append(quern_commands *commands, const quern__operation *operation,
                                               uint32_t row_count, uint32_t view_bytes)
{
    const uint32_t bytes = (uint32_t)sizeof(quern__command_batch) + view_bytes;
    quern__command_batch *batch =
        (quern__command_batch *)(void *)quern__item_space_open_bytes(commands, bytes);
    *batch = (quern__command_batch){.operation = operation,
                                    .item_count = row_count,
                                    .first_item_bytes = sizeof *batch,
                                    .is_view = true};
    quern__stream *stream = commands->open;
    stream->batch_count++;
    stream->traits &= operation->traits;
    stream->item_count += row_count;
    stream->command_count += (uint64_t)row_count * operation->command_count;
    commands->next += bytes;
    return batch;
}

/* ------------------------------------------------------------------------------------------ selecting */

static void select_range(selection *rows, uint32_t first, uint32_t count)
{
    const uint32_t end = first + count;
    for (uint32_t row = first, next; row < end; row = next) {
        next = (row / 64 + 1) * 64;
        uint64_t bits = ~UINT64_C(0) << row % 64;
        if (next > end) bits &= ~UINT64_C(0) >> (next - end);
        rows->words[row / 64] |= bits;
    }
    if (rows->count == 0) rows->first = first;
    rows->last = end - 1;
    rows->count += count;
}

static void select_mask(selection *rows, const quern_view *view, const uint64_t *mask)
{
    const uint32_t shift = view->first_row % 64;
    uint64_t *to = rows->words + view->first_row / 64;
    for (uint32_t row = 0; row < view->count; row += 64) {
        uint64_t bits = *mask++;
        if (view->count - row < 64) bits &= ~(~UINT64_C(0) << (view->count - row));
        *to++ |= bits << shift;
        const uint64_t over = shift > 0 ? bits >> (64 - shift) : 0;
        if (over != 0) *to |= over;
    }
    for (uint32_t i = 0; i < QUERN__COUNT_OF(rows->words); i++) {
        const uint64_t word = rows->words[i];
        if (word == 0) continue;
        const uint32_t high = (uint32_t)(word >> 32);
        if (rows->count == 0) rows->first = i * 64 + quern__lowest_bit_64(word);
        rows->last =
            i * 64 + (high != 0 ? 32 + quern__highest_bit_32(high) : quern__highest_bit_32((uint32_t)word));
        rows->count += quern__count_bits_64(word);
    }
}

static quern_result select_list(selection *rows, const quern_view *view, const uint32_t *list,
                                uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (list[i] >= view->count)
            return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                               "element %u of the list of rows is %u, and the view has %u rows: list "
                               "indices below view.count",
                               i, list[i], view->count);
        if (i > 0 && list[i] <= list[i - 1])
            return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                               "element %u of the list of rows is %u, after %u: list each row once, in "
                               "ascending order",
                               i, list[i], list[i - 1]);
        select_range(rows, view->first_row + list[i], 1);
    }
    return QUERN_OK;
}

static quern_result select_rows(selection *rows, const quern_view *view, const quern_view_rows *chosen)
{
    memset(rows, 0, sizeof *rows);
    if (chosen != NULL && chosen->mask != NULL && chosen->list != NULL)
        return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                           "a mask and a list of rows were given: set one of the two");
    if (chosen != NULL && chosen->list != NULL)
        return select_list(rows, view, chosen->list, chosen->list_count);
    if (chosen != NULL && chosen->mask != NULL) {
        select_mask(rows, view, chosen->mask);
        return QUERN_OK;
    }
    quern_row_range range = {0};
    while (quern_view_next_range(view, &range))
        select_range(rows, view->first_row + range.first, range.count);
    return QUERN_OK;
}

/* Advances `part` to the next rows of `all`, at most max_count. Returns false if there are no more. part is
 * zeroed before the first call. */
static bool next_part(const selection *all, uint32_t max_count, selection *part)
{
    quern__bit_range range = {.first = part->count > 0 ? part->last + 1 : 0};
    memset(part, 0, sizeof *part);
    while (part->count < max_count &&
           quern__bitset_next_range(all->words, QUERN__COUNT_OF(all->words), &range)) {
        const uint32_t left = max_count - part->count;
        select_range(part, range.first, range.count < left ? range.count : left);
    }
    return part->count > 0;
}

/* --------------------------------------------------------------------------------------------- checks */

/* Checks that the rows of the view are rows of the world: its first entity is at its first row. A view of a plain iteration
 * may be older than the memory that it points to, so the structure must be the one that it shows. */
static quern_result check_view(const quern_commands *commands, const quern_view *view)
{
    const quern__record *record = NULL;
    if (view->count > 0 && view->structure == (uint32_t)commands->storage->structure_version)
        record = quern__entities_find(&commands->storage->entities, view->entities[0]);
    if (record != NULL && record->location == quern__location_make(view->chunk, view->first_row))
        return QUERN_OK;
    return quern__fail(
        QUERN_ERROR_INVALID_ARGUMENT,
        "the view has no rows of this world: it is empty, of another world, or older than the last "
        "structural change, or it shows copies of removed rows; use the command for one entity instead");
}

/* Returns the value of a row of the chunk; NULL: none. */
static const char *value_of(const view_command *it, uint32_t row)
{
    if (it->values == NULL || !it->has_value_per_row) return it->values;
    return it->values + (size_t)(row - it->view->first_row) * it->operation->operands[0].size_bytes;
}

static quern_entity entity_of(const view_command *it, uint32_t row)
{
    return it->view->entities[row - it->view->first_row];
}

/* Checks the handles inside of values. */
static quern_result check_values(const view_command *it, const selection *rows)
{
    if (it->values == NULL || !it->operation->has_entity_fields) return QUERN_OK;
    const quern__operand *operand = &it->operation->operands[0];
    quern_result result = QUERN_OK;
    quern__bit_range range = {0};
    while (result == QUERN_OK &&
           quern__bitset_next_range(rows->words, QUERN__COUNT_OF(rows->words), &range))
        for (uint32_t row = range.first; row < range.first + range.count && result == QUERN_OK; row++)
            result = quern__commands_check_value(it->commands, operand, entity_of(it, row),
                                                 value_of(it, row), it->function);
    return result;
}

/* ------------------------------------------------------------------------------------------ recording */

/* Records single commands. */
static quern_result record_items(const view_command *it, const selection *rows)
{
    const quern__operation *operation = it->operation;
    const quern_result result =
        quern__item_space_reserve(it->commands, operation, rows->count, it->function);
    if (result != QUERN_OK) return result;
    quern__bit_range range = {0};
    while (quern__bitset_next_range(rows->words, QUERN__COUNT_OF(rows->words), &range))
        for (uint32_t row = range.first; row < range.first + range.count; row++) {
            char *space = quern__item_space_find(it->commands, operation);
            if (space == NULL) space = quern__item_space_open(it->commands, operation);
            *quern__item_append(it->commands, operation, space) = (quern__item){
                .entity = entity_of(it, row), .location = quern__location_make(it->view->chunk, row)};
            if (it->values != NULL) quern__item_write_value(operation, space, 0, value_of(it, row));
        }
    return QUERN_OK;
}

static uint32_t mask_words_of(const selection *rows)
{
    return rows->last - rows->first + 1 == rows->count ? 0 : rows->last / 64 + 1;
}

static uint32_t values_bytes_of(const view_command *it, uint32_t row_count)
{
    if (it->values == NULL) return 0;
    return it->operation->operands[0].size_bytes * (it->has_value_per_row ? row_count : 1);
}

static uint32_t view_bytes_of(const view_command *it, const selection *rows)
{
    const size_t bytes = sizeof(quern__view_batch) + rows->count * sizeof(quern_entity) +
                         mask_words_of(rows) * sizeof(uint64_t) + values_bytes_of(it, rows->count);
    return (uint32_t)quern__align_up(bytes, sizeof(quern__command_batch));
}

/* Copies the elements of the selected rows from an array with one per row of the chunk. size_bytes is a constant
 * where the elements are handles. */
static inline void gather(const selection *rows, char *to, const char *from, size_t size_bytes)
{
    if (mask_words_of(rows) == 0) {
        memcpy(to, from + rows->first * size_bytes, rows->count * size_bytes);
        return;
    }
    for (uint32_t word = rows->first / 64; word <= rows->last / 64; word++)
        for (uint64_t bits = rows->words[word]; bits != 0; to += size_bytes)
            quern__copy_value(to, from + (word * 64 + quern__bitset_pop_lowest(&bits)) * size_bytes,
                              size_bytes);
}

/* Records the rows as one batch, in reserved memory. */
static void record_batch(const view_command *it, const selection *rows)
{
    const quern__operation *operation = it->operation;
    const uint32_t view_bytes = view_bytes_of(it, rows), mask_words = mask_words_of(rows);
    const size_t first_row = it->view->first_row;
    quern__command_batch *batch =
        quern__view_batch_append(it->commands, operation, rows->count, view_bytes);
    quern__view_batch *view = quern__view_of(batch);
    *view = (quern__view_batch){.location = quern__location_make(it->view->chunk, rows->first),
                                .first_row = rows->first,
                                .last_row = rows->last,
                                .bytes = view_bytes,
                                .mask_word_count = mask_words};
    gather(rows, view->entities, (const char *)it->view->entities - first_row * sizeof(quern_entity),
           sizeof(quern_entity));
    memcpy(quern__view_mask(batch), rows->words, mask_words * sizeof(uint64_t));
    if (it->values == NULL) return;
    const size_t size_bytes = operation->operands[0].size_bytes;
    if (it->has_value_per_row) {
        view->value_bytes = (uint32_t)size_bytes;
        gather(rows, quern__view_values(batch), it->values - first_row * size_bytes, size_bytes);
    } else {
        memcpy(quern__view_values(batch), it->values, size_bytes);
    }
}

/* Records as few batches as possible: a block limits the size of a batch. */
static quern_result record_batches(const view_command *it, const selection *rows)
{
    selection part;
    part.count = 0; /* next_part sets the rest */
    const size_t row_bytes = sizeof(quern_entity) + values_bytes_of(it, 1);
    const uint32_t max_count =
        (uint32_t)((QUERN__VIEW_BATCH_MAX_BYTES - sizeof(selection) - 2 * sizeof(quern__view_batch)) /
                   row_bytes);
    uint64_t bytes = 0;
    if (rows->count <= max_count)
        bytes = sizeof(quern__command_batch) + view_bytes_of(it, rows);
    else
        while (next_part(rows, max_count, &part))
            bytes += sizeof(quern__command_batch) + view_bytes_of(it, &part);
    const quern_result result =
        quern__item_space_reserve_mixed(it->commands, bytes, QUERN__VIEW_BATCH_MAX_BYTES, it->function);
    if (result != QUERN_OK) return result;
    if (rows->count <= max_count) {
        record_batch(it, rows);
        return QUERN_OK;
    }
    part.count = 0;
    while (next_part(rows, max_count, &part))
        record_batch(it, &part);
    return QUERN_OK;
}

static quern_result find_operation(view_command *it, quern_component component, quern__operation_kind kind)
{
    quern_commands *commands = it->commands;
    const quern__storage *storage = commands->storage;
    if (kind == QUERN__OPERATION_DESTROY) {
        it->operation = &quern__operation_destroy;
        return QUERN_OK;
    }
    quern_result result = quern__components_check(&storage->components, component);
    if (result != QUERN_OK) return result;
    const uint32_t index = quern__component_index(component);
    if (kind == QUERN__OPERATION_SET && it->values == NULL) {
        if (quern__components_type(&storage->components, index)->size_bytes > 0)
            return quern__fail_null(it->function, "value");
        kind = QUERN__OPERATION_ADD;
    }
    result = quern__operations_find_single(&commands->operations, &storage->components, &storage->allocator,
                                           index, kind, &it->operation);
    if (result == QUERN_OK && it->operation->operands[0].offset_bytes == 0) it->values = NULL;
    const quern__type *type = quern__components_type(&storage->components, index);
    if (result == QUERN_OK && it->values != NULL && !it->has_value_per_row && type->hooks.copy == NULL &&
        quern__hooks_own_resources(&type->hooks))
        return quern__fail(
            QUERN_ERROR_INVALID_ARGUMENT,
            "'%s' has a move or destroy hook and no copy hook, so one value cannot be copied to "
            "the entities of a view; give the type a copy hook",
            type->name);
    return result != QUERN_ERROR_OUT_OF_MEMORY ? result : quern__commands_fail_memory(commands);
}

/* Records a command with everything but its operation. chosen: the rows, NULL: those that the view shows. */
static quern_result record_view(view_command it, const quern_view_rows *chosen, quern_component component,
                                quern__operation_kind kind)
{
    quern_commands *commands = it.commands;
    selection rows;
    if (commands == NULL) return quern__fail_null(it.function, "commands");
    if (it.view == NULL)
        return quern__commands_fail(commands, quern__fail_null(it.function, "view"), it.function);
    quern_result result = quern__commands_can_record(commands)
                              ? QUERN_OK
                              : quern__commands_fail_foreign_use(commands, it.function);
    if (result == QUERN_OK) result = check_view(commands, it.view);
    if (result == QUERN_OK) result = find_operation(&it, component, kind);
    if (result == QUERN_OK) result = select_rows(&rows, it.view, chosen);
    if (result == QUERN_OK) result = check_values(&it, &rows);
    if (result == QUERN_OK && rows.count > 0) {
        const quern__operation *operation = it.operation;
        const bool needs_items = quern__command_kinds[operation->kind].merge_kind != QUERN__MERGE_ROW ||
                                 (it.values != NULL && !operation->operands[0].is_plain);
        result = needs_items ? record_items(&it, &rows) : record_batches(&it, &rows);
    }
    return QUERN__LIKELY(result == QUERN_OK) ? QUERN_OK
                                             : quern__commands_fail(commands, result, it.function);
}

/* ---------------------------------------------------------------------------------------------- calls */

quern_result quern_commands_add_view(quern_commands *commands, const quern_view *view,
                                     const quern_view_rows *rows, quern_component component,
                                     const void *value)
{
    const view_command it = {.commands = commands, .view = view, .function = __func__, .values = value};
    return record_view(it, rows, component, value != NULL ? QUERN__OPERATION_SET : QUERN__OPERATION_ADD);
}

quern_result quern_commands_set_view(quern_commands *commands, const quern_view *view,
                                     const quern_view_rows *rows, quern_component component,
                                     const void *value)
{
    const view_command it = {.commands = commands, .view = view, .function = __func__, .values = value};
    return record_view(it, rows, component, QUERN__OPERATION_SET);
}

quern_result quern_commands_set_view_values(quern_commands *commands, const quern_view *view,
                                            const quern_view_rows *rows, quern_component component,
                                            const void *values)
{
    const view_command it = {.commands = commands,
                             .view = view,
                             .function = __func__,
                             .values = values,
                             .has_value_per_row = true};
    return record_view(it, rows, component, QUERN__OPERATION_SET);
}

quern_result quern_commands_remove_view(quern_commands *commands, const quern_view *view,
                                        const quern_view_rows *rows, quern_component component)
{
    const view_command it = {.commands = commands, .view = view, .function = __func__};
    return record_view(it, rows, component, QUERN__OPERATION_REMOVE);
}

quern_result quern_commands_destroy_view(quern_commands *commands, const quern_view *view,
                                         const quern_view_rows *rows)
{
    const view_command it = {.commands = commands, .view = view, .function = __func__};
    return record_view(it, rows, (quern_component){0}, QUERN__OPERATION_DESTROY);
}
