/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "sched/frame/schedule_internal.h"

#include "core/record/spawn.h"

/* Command logs: lists of the single commands of the last frame, made by the sync points while they run
 * (quern__command_listener). All memory of a log is allocated when it is created.
 *
 * Invariant: the commands of one sync point, without its events, are in ascending order of key and number, so that a drop
 * finds its command by a binary search. Streams are gathered in the order of their keys, and accumulated values have
 * greater keys than all commands. */

enum {
    DEFAULT_COMMANDS = 16384,
    COMPONENTS_PER_COMMAND =
        2 /* room for lists of components: consecutive commands of one operation share a list */
};

typedef struct logged {
    uint64_t key; /* of the stream */
    uint64_t number;
    quern_logged_command command;
} logged;

struct quern_command_log {
    quern__command_listener listener; /* first member: the schedule has its address */
    quern_schedule *schedule;         /* NULL: not set */
    quern_allocator allocator;
    size_t bytes; /* of the allocation, which holds the lists, too */
    uint32_t capacity, component_capacity;
    uint32_t count, component_count, sync_count;
    uint32_t first_component; /* number of components before the sync point that runs */
    uint64_t left_out_count;
    uint32_t left_out_sync_count;
    bool has_frame;
    bool is_in_sync; /* the sync point that runs is listed, as the last one */
    bool has_listed; /* the commands of the last sync point are listed */
    uint64_t frame_index;
    char phase_names[QUERN_MAX_PHASES][QUERN_MAX_NAME_BYTES + 1]; /* the log may outlive the schedule */
    quern_logged_sync syncs[QUERN_MAX_LOGGED_SYNCS];
    quern_component *components;
    logged commands[];
};

static quern_command_log *log_of(const quern__command_listener *listener)
{
    return (quern_command_log *)(void *)(uintptr_t)listener;
}

const char *quern_command_kind_string(quern_command_kind kind)
{
    static const char *const names[QUERN_COMMAND_KIND_COUNT] = {[QUERN_COMMAND_CREATE] = "create",
                                                                [QUERN_COMMAND_SPAWN] = "spawn",
                                                                [QUERN_COMMAND_CLONE] = "clone",
                                                                [QUERN_COMMAND_DESTROY] = "destroy",
                                                                [QUERN_COMMAND_ADD] = "add",
                                                                [QUERN_COMMAND_SET] = "set",
                                                                [QUERN_COMMAND_REMOVE] = "remove",
                                                                [QUERN_COMMAND_ACCUMULATE] = "accumulate",
                                                                [QUERN_COMMAND_RELATE] = "relate",
                                                                [QUERN_COMMAND_UNRELATE] = "unrelate",
                                                                [QUERN_COMMAND_SET_EDGE_VALUE] =
                                                                    "set edge value",
                                                                [QUERN_COMMAND_SET_NAME] = "set name",
                                                                [QUERN_COMMAND_ENABLE] = "enable",
                                                                [QUERN_COMMAND_DISABLE] = "disable",
                                                                [QUERN_COMMAND_EMIT] = "emit"};
    return (unsigned)kind < QUERN_COMMAND_KIND_COUNT ? names[kind] : "unknown kind";
}

/* ----------------------------------------------------------------------------------------- sync points */

static void begin_frame(quern__command_listener *listener)
{
    quern_command_log *log = log_of(listener);
    log->count = log->component_count = log->sync_count = log->left_out_sync_count = 0;
    log->left_out_count = 0;
    log->has_frame = true;
    log->frame_index = log->schedule->frame_index;
    const quern__plan *plan = &log->schedule->plan;
    for (uint32_t i = 0; i < plan->phase_count; i++)
        snprintf(log->phase_names[i], sizeof log->phase_names[i], "%s", plan->phases[i].name);
}

/* Begins to list a sync point, in the place that the frame has reached. */
static void begin_sync(quern_command_log *log)
{
    const quern__plan *plan = &log->schedule->plan;
    const quern__segment *segment = log->schedule->sync_segment;
    quern_logged_sync sync = {.place = QUERN_SYNC_FRAME_START, .first = log->count};
    log->first_component = log->component_count;
    log->is_in_sync = log->sync_count < QUERN_MAX_LOGGED_SYNCS;
    log->has_listed = false;
    if (!log->is_in_sync) {
        log->left_out_sync_count++;
        return;
    }
    if (segment != NULL && segment->runs_reactions)
        sync.place = QUERN_SYNC_REACTIONS;
    else if (segment != NULL) {
        const uint32_t next = (uint32_t)(segment - plan->segments.items) + 1;
        sync.place = QUERN_SYNC_PHASE;
        sync.phase = segment->phase;
        sync.phase_name = log->phase_names[segment->phase];
        if (next < plan->phases[segment->phase].end_segment)
            sync.before.bits = plan->order.items[segment->first]->handle_bits;
    }
    log->syncs[log->sync_count++] = sync;
}

/* Returns space for one more command of the sync point, or NULL if there is no room for it or for one before it, and counts
 * it. */
static logged *append(quern_command_log *log)
{
    if (!log->is_in_sync || log->left_out_count > 0 || log->count == log->capacity) return NULL;
    log->syncs[log->sync_count - 1].count++;
    return &log->commands[log->count++];
}

static void leave_out(quern_command_log *log, uint64_t count)
{
    log->left_out_count += count;
    if (log->is_in_sync) log->syncs[log->sync_count - 1].left_out_count += count;
}

static quern_command_kind kind_of(const quern__operation *operation)
{
    static const uint8_t kinds[QUERN__OPERATION_COUNT] = {
        [QUERN__OPERATION_ADD] = QUERN_COMMAND_ADD,
        [QUERN__OPERATION_SET] = QUERN_COMMAND_SET,
        [QUERN__OPERATION_REMOVE] = QUERN_COMMAND_REMOVE,
        [QUERN__OPERATION_ADD_EDGE] = QUERN_COMMAND_RELATE,
        [QUERN__OPERATION_UNRELATE_FROM] = QUERN_COMMAND_UNRELATE,
        [QUERN__OPERATION_RELATE_WITH] = QUERN_COMMAND_RELATE,
        [QUERN__OPERATION_SET_EDGE_VALUE] = QUERN_COMMAND_SET_EDGE_VALUE,
        [QUERN__OPERATION_ENABLE] = QUERN_COMMAND_ENABLE,
        [QUERN__OPERATION_DISABLE] = QUERN_COMMAND_DISABLE,
        [QUERN__OPERATION_DESTROY] = QUERN_COMMAND_DESTROY,
        [QUERN__OPERATION_CREATE] = QUERN_COMMAND_CREATE,
        [QUERN__OPERATION_RELATE] = QUERN_COMMAND_RELATE,
        [QUERN__OPERATION_UNRELATE] = QUERN_COMMAND_UNRELATE,
        [QUERN__OPERATION_NAME] = QUERN_COMMAND_SET_NAME,
        [QUERN__OPERATION_ENABLE_TREE] = QUERN_COMMAND_ENABLE,
        [QUERN__OPERATION_DISABLE_TREE] = QUERN_COMMAND_DISABLE,
        [QUERN__OPERATION_SPAWN] = QUERN_COMMAND_SPAWN,
        [QUERN__OPERATION_CLONE] = QUERN_COMMAND_CLONE};
    _Static_assert(QUERN__OPERATION_COUNT == 18, "the list has all kinds");
    return (quern_command_kind)kinds[operation->kind];
}

/* Appends the components of an operation. Returns false if there is no room. */
static bool list_components(quern_command_log *log, const quern__operation *operation,
                            quern_logged_command *command)
{
    const uint32_t count = operation->operand_count;
    if (count > log->component_capacity - log->component_count) return false;
    quern_component *list = log->components + log->component_count;
    for (uint32_t i = 0; i < count; i++)
        list[i] = operation->operands[i].component;
    command->components = count > 0 ? list : NULL;
    command->component_count = count;
    log->component_count += count;
    return true;
}

/* Returns the target of a command whose first operand is the component of a relation, or null. item: address to which the
 * offsets of operands are added. */
static quern_entity target_of(const quern__operation *operation, const char *item)
{
    quern_entity target = {0};
    if (operation->operand_count == 0 || operation->kind == QUERN__OPERATION_CREATE ||
        operation->kind == QUERN__OPERATION_SPAWN)
        return target;
    const quern__operand *operand = &operation->operands[0];
    if (operand->is_relation && operand->offset_bytes > 0)
        memcpy(&target, item + operand->offset_bytes, sizeof target);
    return target;
}

/* Lists a batch, whose first item has the number. Returns the number of its items that found room. */
static uint32_t list_batch(quern_command_log *log, const quern__stream *stream, quern__command_batch *batch,
                           uint64_t number, uint64_t key_bits)
{
    const quern__operation *operation = batch->operation;
    quern_logged_command command = {.kind = key_bits != 0 ? QUERN_COMMAND_ACCUMULATE : kind_of(operation),
                                    .system.bits = stream->origin.system_number,
                                    .callback = (uint32_t)stream->origin.key,
                                    .is_of_view = batch->is_view,
                                    .command_count = operation->command_count};
    const quern__system *system = quern__schedule_system(log->schedule, command.system);
    command.is_end = system != NULL && command.callback == QUERN__CALL_FIRST_VIEW + system->view_count;
    if (!list_components(log, operation, &command)) return 0;
    if (operation->kind == QUERN__OPERATION_SPAWN) command.prefab = operation->variant->cache->handle;
    for (uint32_t i = 0; i < batch->item_count; i++) {
        logged *added = append(log);
        if (added == NULL) return i;
        const char *item;
        if (batch->is_view) {
            item = quern__view_item(quern__view_items_of(batch), i);
            command.entity = quern__view_entities(batch)[i];
        } else {
            item = (const char *)quern__batch_item(batch, i);
            memcpy(&command.entity, item, sizeof command.entity);
        }
        command.is_new = quern_entity_is_provisional(command.entity);
        command.other = operation->kind == QUERN__OPERATION_CLONE
                            ? ((const quern__clone_item *)(const void *)item)->entity
                            : target_of(operation, item);
        *added = (logged){.key = stream->origin.key | key_bits, .number = number + i, .command = command};
    }
    return batch->item_count;
}

static void list(quern__command_listener *listener, const quern__gathered *gathered, uint64_t key_bits)
{
    quern_command_log *log = log_of(listener);
    if (key_bits == 0) begin_sync(log);
    for (uint32_t i = 0; i < gathered->streams.count; i++) {
        const quern__stream *stream = gathered->streams.items[i].stream;
        quern__command_batch *batch = stream->first;
        uint64_t number = 0;
        bool has_room = true;
        for (uint32_t k = 0; k < stream->batch_count && has_room; k++) {
            if (k > 0) batch = quern__batch_next(batch);
            const uint32_t listed_count = list_batch(log, stream, batch, number, key_bits);
            has_room = listed_count == batch->item_count;
            number += listed_count;
        }
        leave_out(log, stream->item_count - number);
    }
}

/* Returns the index of the first command of the last sync point that is not before this item. */
static uint32_t find_item(const quern_command_log *log, uint64_t key, uint64_t number)
{
    uint32_t first = log->syncs[log->sync_count - 1].first, end = log->count;
    while (first < end) {
        const uint32_t middle = first + (end - first) / 2;
        const logged *at = &log->commands[middle];
        if (at->key < key || (at->key == key && at->number < number))
            first = middle + 1;
        else
            end = middle;
    }
    return first;
}

/* Several threads write at the same time, each to commands of its own, and read keys and numbers, which do not change. */
static void drop(const quern__command_listener *listener, const quern__dropped_items *items)
{
    quern_command_log *log = log_of(listener);
    if (!log->is_in_sync) return;
    const uint64_t end = items->first_number + items->count;
    for (uint32_t i = find_item(log, items->key, items->first_number); i < log->count; i++) {
        logged *at = &log->commands[i];
        if (at->key != items->key || at->number >= end) return;
        if (!at->command.is_dropped) at->command.reason = items->reason;
        at->command.is_dropped = true;
        at->command.dropped_count += items->command_count;
    }
}

static void forget_drops(const quern__command_listener *listener)
{
    quern_command_log *log = log_of(listener);
    if (!log->is_in_sync) return;
    for (uint32_t i = log->syncs[log->sync_count - 1].first; i < log->count; i++) {
        log->commands[i].command.is_dropped = false;
        log->commands[i].command.dropped_count = 0;
    }
}

/* Replaces the provisional handles of the sync point. */
static void resolve_handles(quern_command_log *log, const quern__gathered *gathered,
                            const quern_entity *created)
{
    uint32_t stream = 0, first_created = 0;
    uint64_t last_key = 0;
    for (uint32_t i = log->syncs[log->sync_count - 1].first; i < log->count; i++) {
        const uint64_t key = log->commands[i].key & ~QUERN__KEY_AFTER_COMMANDS;
        if (key < last_key) stream = first_created = 0; /* accumulated values begin */
        last_key = key;
        while (stream < gathered->streams.count && gathered->streams.items[stream].stream->origin.key < key)
            first_created += gathered->streams.items[stream++].stream->create_count;
        if (stream == gathered->streams.count) continue;
        const quern__stream *own = gathered->streams.items[stream].stream;
        quern_entity *handles[] = {&log->commands[i].command.entity, &log->commands[i].command.other};
        for (uint32_t k = 0; k < 2; k++)
            if (quern_entity_is_provisional(*handles[k]) && own->origin.key == key &&
                quern_entity_index(*handles[k]) < own->create_count)
                *handles[k] = created[first_created + quern_entity_index(*handles[k])];
    }
}

static void end(quern__command_listener *listener, const quern__gathered *gathered,
                const quern_entity *created, bool has_succeeded)
{
    quern_command_log *log = log_of(listener);
    if (!log->is_in_sync) {
        if (!has_succeeded && log->left_out_sync_count > 0) log->left_out_sync_count--;
        return;
    }
    log->is_in_sync = false;
    const quern_logged_sync *sync = &log->syncs[log->sync_count - 1];
    log->has_listed = has_succeeded && sync->count + sync->left_out_count > 0;
    if (log->has_listed) {
        if (created != NULL) resolve_handles(log, gathered, created);
        return;
    }
    log->count = sync->first;
    log->component_count = log->first_component;
    log->left_out_count -= sync->left_out_count;
    log->sync_count--;
}

/* Lists the events of one type. */
static void list_channel(quern_command_log *log, const quern__channel *channel)
{
    const quern__plan *plan = &log->schedule->plan;
    const uint32_t first_bits = plan->world->storage.components.first_bits;
    logged *last = NULL;
    uint64_t left_out_key = 0; /* of the last batch that found no room */
    for (uint32_t i = 0; i < channel->order.count; i++) {
        const quern__keyed_batch *batch = channel->order.items[i].pointer;
        if (last != NULL && last->key == batch->key) {
            last->command.command_count += batch->batch.count;
            continue;
        }
        logged *added = append(log);
        if (added == NULL) {
            if (i == 0 || left_out_key != batch->key) leave_out(log, 1);
            left_out_key = batch->key;
            continue;
        }
        const uint32_t position = (uint32_t)(batch->key >> 32), callback = (uint32_t)batch->key;
        const quern__system *system = position < plan->order.count ? plan->order.items[position] : NULL;
        quern_logged_command command = {.kind = QUERN_COMMAND_EMIT,
                                        .callback = callback,
                                        .event.bits = first_bits + channel->index,
                                        .command_count = batch->batch.count};
        if (system != NULL) {
            command.system.bits = system->handle_bits;
            command.is_end = callback == QUERN__CALL_FIRST_VIEW + system->view_count;
        }
        *added = (logged){.key = batch->key, .command = command};
        last = added;
    }
}

static void list_events(quern__command_listener *listener, bool has_commands)
{
    quern_command_log *log = log_of(listener);
    const quern_schedule *schedule = log->schedule;
    bool has_events = false;
    for (uint32_t i = 0; i < schedule->emitter_channel_count; i++)
        has_events |= schedule->plan.world->events->channels.items[i]->order.count > 0;
    if (!has_events) return;
    log->is_in_sync = has_commands && log->has_listed;
    if (!log->is_in_sync && !(has_commands && log->left_out_sync_count > 0)) begin_sync(log);
    for (uint32_t i = 0; i < schedule->emitter_channel_count; i++)
        list_channel(log, schedule->plan.world->events->channels.items[i]);
    log->is_in_sync = false;
}

/* ----------------------------------------------------------------------------------------- public calls */

static void detach(quern__command_listener *listener)
{
    quern_command_log *log = log_of(listener);
    if (log->schedule == NULL) return;
    log->schedule->command_listener = NULL;
    log->schedule = NULL;
}

quern_result quern_command_log_create(const quern_command_log_def *def, quern_command_log **out_log)
{
    QUERN__NEED(out_log);
    const quern_command_log_def defaults = {0};
    if (def == NULL) def = &defaults;
    const uint32_t capacity = def->max_command_count != 0 ? def->max_command_count : DEFAULT_COMMANDS;
    if (capacity > QUERN_MAX_LOGGED_COMMANDS)
        return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                           "%s: def->max_command_count is %u; the maximum is %u "
                           "(QUERN_MAX_LOGGED_COMMANDS)",
                           __func__, capacity, QUERN_MAX_LOGGED_COMMANDS);
    quern_allocator allocator;
    const quern_result result = quern__choose_allocator(&def->allocator, __func__, &allocator);
    if (result != QUERN_OK) return result;
    const uint32_t component_capacity = capacity * COMPONENTS_PER_COMMAND;
    const size_t bytes = sizeof(quern_command_log) + capacity * sizeof(logged) +
                         component_capacity * sizeof(quern_component);
    quern_command_log *log = quern__allocate(&allocator, bytes, _Alignof(quern_command_log));
    if (log == NULL)
        return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "%s: out of memory: %zu bytes for %u commands",
                           __func__, bytes, capacity);
    *log = (quern_command_log){.listener = {.begin_frame = begin_frame,
                                            .list = list,
                                            .drop = drop,
                                            .forget_drops = forget_drops,
                                            .end = end,
                                            .list_events = list_events,
                                            .detach = detach},
                               .allocator = allocator,
                               .bytes = bytes,
                               .capacity = capacity,
                               .component_capacity = component_capacity};
    log->components = (quern_component *)(void *)(log->commands + capacity);
    *out_log = log;
    return QUERN_OK;
}

void quern_command_log_destroy(quern_command_log *log)
{
    if (log == NULL) return;
    if (log->schedule != NULL && log->schedule->is_running) {
        quern__report_violation(QUERN_ERROR_WORLD_LOCKED,
                                "quern_command_log_destroy: a frame that lists its commands in the log is "
                                "running; destroy the log after the frame");
        return;
    }
    detach(&log->listener);
    const quern_allocator allocator = log->allocator;
    quern__release(&allocator, log, log->bytes, _Alignof(quern_command_log));
}

quern_result quern_schedule_set_command_log(quern_schedule *schedule, quern_command_log *log)
{
    QUERN__NEED(schedule);
    const quern_result result = quern__schedule_check_idle(schedule, __func__);
    if (result != QUERN_OK) return result;
    if (log != NULL && log->schedule != NULL && log->schedule != schedule)
        return quern__fail(
            QUERN_ERROR_INVALID_ARGUMENT,
            "%s: the log belongs to another schedule: create one for each, or set NULL there "
            "first",
            __func__);
    if (log != NULL && log->schedule == schedule) return QUERN_OK;
    if (schedule->command_listener != NULL) detach(schedule->command_listener);
    if (log == NULL) return QUERN_OK;
    log->schedule = schedule;
    schedule->command_listener = &log->listener;
    return QUERN_OK;
}

quern_result quern_command_log_get_stats(const quern_command_log *log, quern_command_log_stats *out_stats)
{
    QUERN__NEED(log);
    QUERN__NEED(out_stats);
    *out_stats = (quern_command_log_stats){.frame_index = log->frame_index,
                                           .has_frame = log->has_frame,
                                           .sync_count = log->sync_count,
                                           .count = log->count,
                                           .left_out_count = log->left_out_count,
                                           .left_out_sync_count = log->left_out_sync_count};
    return QUERN_OK;
}

quern_result quern_command_log_get_sync(const quern_command_log *log, uint32_t i,
                                        quern_logged_sync *out_sync)
{
    QUERN__NEED(log);
    QUERN__NEED(out_sync);
    if (i >= log->sync_count)
        return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                           "%s: i is %u, and the log has %u sync points: pass a smaller number", __func__,
                           i, log->sync_count);
    *out_sync = log->syncs[i];
    return QUERN_OK;
}

quern_result quern_command_log_get(const quern_command_log *log, uint32_t i,
                                   quern_logged_command *out_command)
{
    QUERN__NEED(log);
    QUERN__NEED(out_command);
    if (i >= log->count)
        return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                           "%s: i is %u, and the log has %u commands: pass a smaller number", __func__, i,
                           log->count);
    *out_command = log->commands[i].command;
    return QUERN_OK;
}
