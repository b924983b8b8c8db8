/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */

#include "tests/core/history/many.h"
#include "tests/support/failing_allocator.h"

#include <stdio.h>
#include <string.h>

/* Commands that are waiting when a frame is saved are waiting again after it is restored. */

/* ------------------------------------------------------------------------------------- of the world */

static quern_entity created[MANY_MOST], known[MANY_MOST];
static uint32_t created_count, known_count;

static void set_tracked(quern_commands *commands, quern_entity entity, uint64_t payload)
{
    tracked value;
    tracked_construct(&value, payload, &many_it.counts);
    must(quern_commands_set(commands, entity, many_it.tracked, &value));
    tracked_destroy(&value, &many_it.counts);
}

static void create_one(quern_commands *commands)
{
    char bytes[200];
    const amount value = {random_next(&many_it.random)};
    memset(bytes, (int)value.value & 0x7F, sizeof bytes);
    created[created_count] = record_entity_with(commands, (quern_component[]){many_it.amount, many_it.wide},
                                                (const void *[]){&value, bytes}, 2);
    cr_assert(!quern_entity_is_null(created[created_count]));
    created_count++;
}

static void record_one(quern_commands *commands, quern_entity entity, quern_entity other)
{
    const amount value = {random_next(&many_it.random)};
    char name[16];
    snprintf(name, sizeof name, "k%u", random_below(&many_it.random, 30));
    switch (random_below(&many_it.random, 11)) {
    case 0:
        must(quern_commands_destroy(commands, entity));
        break;
    case 1:
        must(quern_commands_set(commands, entity, many_it.amount, &value));
        break;
    case 2:
        set_tracked(commands, entity, value.value);
        break;
    case 3:
        must(quern_commands_remove(commands, entity, many_it.tracked));
        break;
    case 4:
        must(quern_commands_add(commands, entity, many_it.tag, NULL));
        break;
    case 5:
        if (!quern_entity_equal(entity, other))
            must(quern_commands_relate(commands, entity, many_it.parent, other));
        break;
    case 6:
        must(quern_commands_unrelate(commands, entity, many_it.friend));
        break;
    case 7:
        must(quern_commands_set_name(commands, entity, name));
        break;
    case 8:
        must(quern_commands_set_component_enabled(commands, entity, many_it.amount, value.value % 2 != 0));
        break;
    case 9:
        must(quern_commands_accumulate(commands, entity, many_it.amount, &value, QUERN_SUM));
        break;
    default:
        create_one(commands);
        break;
    }
}

/* Returns a random entity, which may be one that earlier commands of the stream create. */
static quern_entity pick(uint32_t count)
{
    const uint32_t number = random_below(&many_it.random, count + created_count);
    return number < count ? many_entities[number] : created[number - count];
}

static void record(uint64_t seed, uint32_t step_count)
{
    const uint32_t count = many_list_all();
    quern_commands *commands = quern_world_commands(many_it.world);
    many_it.random = (random_source){seed};
    for (uint32_t i = 0; i < step_count; i++)
        record_one(commands, pick(count), pick(count));
}

static void open_world(const quern_world_def *def)
{
    many_open_world(def);
    created_count = 0;
    many_change(3, 400);
}

/* Copies the state that the test program itself keeps. */
static void keep_created(void)
{
    memcpy(known, created, created_count * sizeof created[0]);
    known_count = created_count;
}

static void restore(uint64_t frame)
{
    must(quern_history_restore(many_it.history, frame, NULL));
    memcpy(created, known, known_count * sizeof created[0]);
    created_count = known_count;
}

/* Records more commands and applies all. Returns the hash of the world. Commands recorded after the
 * frame continue the last stream. */
static uint64_t finish(uint64_t seed)
{
    record(seed, 60);
    must(quern_world_flush(many_it.world));
    created_count = 0;
    const uint64_t flushed = many_hash();
    many_change(seed, 50);
    return flushed * 31 + many_hash();
}

static void try_recording(uint64_t seed, uint32_t step_count)
{
    open_world(NULL);
    record(seed, step_count);
    const uint64_t expected = finish(seed + 1);
    many_close_world();

    open_world(NULL);
    many_open_history(NULL);
    record(seed, step_count);
    keep_created();
    must(quern_history_save(many_it.history, 0, NULL));
    for (uint32_t turn = 0; turn < 3; turn++) {
        cr_assert_eq(finish(seed + 1), expected, "turn %u", turn);
        record(seed + 2, 10 * turn); /* these commands are discarded */
        restore(0);
    }
    must(quern_history_save(many_it.history, 1, NULL)); /* saves the restored commands once more */
    must(quern_world_discard_commands(many_it.world));
    restore(1);
    cr_assert_eq(finish(seed + 1), expected);
    must(quern_history_restore(many_it.history, 0,
                               NULL)); /* the waiting commands are discarded with the world */
    many_close_world();
    cr_assert_eq(tracked_live_count(&many_it.counts), 0);
}

Test(saved_commands, waiting_commands_of_the_world_are_restored)
{
    for (uint64_t seed = 1; seed < 8; seed++)
        try_recording(seed * 10, (uint32_t)seed * 30);
    try_recording(5, 2500); /* more than one block of a recorder */
}

Test(saved_commands, a_frame_without_commands_discards_waiting_ones)
{
    open_world(NULL);
    many_open_history(NULL);
    must(quern_history_save(many_it.history, 0, NULL));
    const uint64_t before = many_hash();
    record(4, 100);
    must(quern_history_save(many_it.history, 1, NULL));
    must(quern_history_restore(many_it.history, 0, NULL));
    must(quern_world_flush(many_it.world));
    cr_assert_eq(many_hash(), before);
    must(quern_history_restore(many_it.history, 1, NULL));
    must(quern_world_flush(many_it.world));
    cr_assert_neq(many_hash(), before);
    must(quern_history_save(many_it.history, 0, NULL)); /* drops both frames */
    many_close_world();
    cr_assert_eq(tracked_live_count(&many_it.counts), 0);
}

/* Rows move after the commands were recorded, but not between saving and restoring. */
static uint64_t flush_after_moves(bool goes_back)
{
    open_world(NULL);
    many_open_history(NULL);
    record(6, 300);
    many_change(7, 100);
    must(quern_history_save(many_it.history, 0, NULL));
    if (goes_back) must(quern_history_restore(many_it.history, 0, NULL));
    must(quern_world_flush(many_it.world));
    const uint64_t hash = many_hash();
    many_close_world();
    return hash;
}

Test(saved_commands, restored_commands_find_moved_entities)
{
    const uint64_t expected = flush_after_moves(false);
    cr_assert_eq(flush_after_moves(true), expected);
}

/* ------------------------------------------------------------------------------------ of schedules */

static void create_some(quern_context *context, const quern_view *view)
{
    const amount *values = quern_view_read(view, 0);
    quern_commands *commands = quern_context_commands(context);
    const uint32_t count = view->count;
    for (uint32_t i = 0; i < count; i++) {
        if (values[i].value % 5 == 0)
            record_entity_with(commands, (quern_component[]){many_it.amount, many_it.wide},
                               (const void *[]){&values[i], NULL}, 2);
        if (values[i].value % 5 == 1) quern_commands_destroy(commands, view->entities[i]);
        if (values[i].value % 5 == 2)
            quern_commands_add(commands, view->entities[i], many_it.tracked, NULL);
        if (values[i].value % 5 == 3)
            quern_commands_accumulate(commands, view->entities[i], many_it.amount, &values[i], QUERN_SUM);
    }
}

Test(saved_commands, commands_of_a_failed_frame_are_restored)
{
    failing_allocator *allocator = failing_allocator_create();
    const quern_allocator interface = failing_allocator_interface(allocator);
    uint32_t kept_frames = 0;
    for (uint64_t n = 1; n < 150; n++) {
        open_world(&(quern_world_def){.allocator = interface});
        quern_schedule *schedule;
        quern_system system;
        quern_system_def def = {.name = "create", .run = create_some};
        def.terms[0] = quern_term_read(many_it.amount);
        must(quern_schedule_create(many_it.world, NULL, &schedule));
        must(quern_schedule_add_system(schedule, &def, &system));
        must(quern_history_create(many_it.world, &(quern_history_def){.schedules = {schedule}},
                                  &many_it.history));
        failing_allocator_fail_at(allocator, n);
        (void)quern_schedule_run(schedule, NULL, 0.1);
        failing_allocator_heal(allocator);
        const uint64_t kept = quern_schedule_kept_command_count(schedule);
        must(quern_history_save(many_it.history, 0, NULL));
        must(quern_schedule_run(schedule, NULL, 0.1));
        const uint64_t expected = many_hash();
        for (uint32_t turn = 0; turn < 2; turn++) {
            must(quern_history_restore(many_it.history, 0, NULL));
            cr_assert_eq(quern_schedule_kept_command_count(schedule), kept);
            must(quern_schedule_run(schedule, NULL, 0.1));
            cr_assert_eq(many_hash(), expected);
        }
        must(quern_history_restore(many_it.history, 0, NULL));
        kept_frames += kept > 0;
        quern_history_destroy(many_it.history);
        many_it.history = NULL;
        quern_schedule_destroy(schedule);
        many_close_world();
        cr_assert_eq(tracked_live_count(&many_it.counts), 0);
    }
    cr_assert(kept_frames > 2, "%u", kept_frames);
    failing_allocator_close(allocator);
}

/* ------------------------------------------------------------------------------------------- events */

enum { EMITTED = 9000 }; /* events of 16 bytes: more than two blocks */

static void emit_tracked(quern_event event, uint64_t first, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        tracked value;
        tracked_construct(&value, first + i, &many_it.counts);
        must(quern_world_emit(many_it.world, event, &value, 1));
        tracked_destroy(&value, &many_it.counts);
    }
}

/* Checks that the events of a reader are numbered consecutively, up to some blocks. Returns the number
 * after the last one. */
static uint64_t read_tracked(quern_event_reader *reader, uint64_t first, uint32_t block_count)
{
    quern_event_block block;
    for (uint32_t i = 0; i < block_count && quern_event_reader_next(reader, &block); i++)
        for (uint32_t k = 0; k < block.count; k++) {
            const tracked *value = &((const tracked *)block.values)[k];
            cr_assert(tracked_is_live(value) && value->payload == first);
            first++;
        }
    return first;
}

Test(saved_commands, waiting_events_with_hooks_are_restored)
{
    failing_allocator *allocator = failing_allocator_create();
    const quern_allocator interface = failing_allocator_interface(allocator);
    open_world(NULL);
    const quern_event event = tracked_event_register(many_it.world, "happened", &many_it.counts);
    quern_event_reader *reader;
    must(quern_event_reader_create(many_it.world, &(quern_event_reader_def){event, "slow"}, &reader));
    many_open_history(&interface);
    emit_tracked(event, 0, EMITTED);
    const uint64_t seen = read_tracked(reader, 0, 1);
    cr_assert(seen > 0 && seen < EMITTED);
    for (uint64_t n = 1;; n++) {
        const uint64_t live_count = tracked_live_count(&many_it.counts);
        if (!runs_out_of_memory(allocator, n, quern_history_save(many_it.history, 0, NULL))) break;
        cr_assert_eq(tracked_live_count(&many_it.counts), live_count);
    }
    for (uint32_t turn = 0; turn < 3; turn++) {
        emit_tracked(event, EMITTED, 100 * turn);
        cr_assert(read_tracked(reader, seen, turn == 1 ? 1 : UINT32_MAX) > seen);
        must(quern_history_restore(many_it.history, 0, NULL));
        (void)many_hash();
    }
    must(quern_history_save(many_it.history, 0, NULL));
    cr_assert_eq(read_tracked(reader, seen, UINT32_MAX), EMITTED);
    quern_event_reader_destroy(reader);
    many_close_world();
    cr_assert_eq(tracked_live_count(&many_it.counts), 0);
    failing_allocator_close(allocator);
}

static void destroy_nothing(void *values, uint32_t count, void *user_data) {}

static uint64_t count_events(quern_event_reader *reader)
{
    uint64_t count = 0;
    quern_event_block block;
    while (quern_event_reader_next(reader, &block))
        count += block.count;
    return count;
}

/* More than one block of plain values, for several readers; one reader has lost events. */
Test(saved_commands, events_of_several_blocks_are_restored_for_each_reader)
{
    enum { READERS = 3, PARTS = 12, PART = 800 };
    static uint64_t values[PART][2];
    failing_allocator *allocator = failing_allocator_create();
    quern_event_reader *readers[READERS];
    open_world(&(quern_world_def){.allocator = failing_allocator_interface(allocator)});
    quern_event event = make_event(many_it.world, .name = "pair", .size_bytes = sizeof values[0],
                                   .limit_bytes = (PARTS - 2) * sizeof values);
    for (uint32_t i = 0; i < READERS; i++)
        must(quern_event_reader_create(many_it.world, &(quern_event_reader_def){event, "reader"},
                                       &readers[i]));
    for (uint32_t i = 0; i < PARTS; i++) {
        quern_event_block block;
        const quern_result result = quern_world_emit(many_it.world, event, values, PART);
        cr_assert(result == QUERN_OK || result == QUERN_ERROR_LIMIT);
        for (uint32_t k = 1; k < READERS; k++)
            while (quern_event_reader_next(readers[k], &block)) {
            }
    }
    many_open_history(NULL);
    must(quern_history_save(many_it.history, 0, NULL));
    const uint64_t lost = quern_event_reader_lost_count(readers[0]);
    cr_assert(lost > 0 && lost < PARTS * PART);
    for (uint32_t turn = 0; turn < 3; turn++) {
        for (uint32_t i = 0; i < turn * PARTS; i++)
            (void)quern_world_emit(many_it.world, event, values, PART);
        for (uint32_t i = 0; i < READERS; i++) {
            must(quern_history_restore(many_it.history, 0, NULL));
            cr_assert_eq(quern_event_reader_lost_count(readers[0]), lost);
            cr_assert_eq(count_events(readers[i]), i == 0 ? PARTS * PART - lost : 0);
        }
    }
    for (uint32_t i = 0; i < READERS; i++)
        quern_event_reader_destroy(readers[i]);
    many_close_world();
    failing_allocator_close(allocator);
}

Test(saved_commands, events_that_cannot_be_copied_are_rejected_by_name)
{
    const uint64_t value = 3;
    quern_event event;
    quern_event_reader *reader;
    quern_event_block block;
    open_world(NULL);
    event = make_event(many_it.world, .name = "owning", .size_bytes = sizeof value,
                       .hooks = {.destroy = destroy_nothing});
    must(quern_event_reader_create(many_it.world, &(quern_event_reader_def){event, "slow"}, &reader));
    many_open_history(NULL);
    must(quern_history_save(many_it.history, 0, NULL));
    must(quern_world_emit(many_it.world, event, &value, 1));
    must_refuse(INVALID_ARGUMENT, many_it.world, quern_history_save(many_it.history, 1, NULL));
    cr_assert(strstr(quern_error_message(), "'owning'") != NULL);
    while (quern_event_reader_next(reader, &block)) {
    }
    must(quern_history_restore(many_it.history, 0, NULL));
    must(quern_history_save(many_it.history, 1, NULL));
    quern_event_reader_destroy(reader);
    many_close_world();
}

static void construct_amount(void *values, uint32_t count, void *user_data)
{
    memset(values, 7, count * sizeof(amount));
}

/* Values whose types have only a construct hook are copied as bytes. */
Test(saved_commands, values_with_only_a_construct_hook_are_restored)
{
    quern_component made;
    const amount value = {5};
    open_world(NULL);
    made = make_component(many_it.world, .name = "made", .size_bytes = sizeof(amount), .alignment_bytes = 8,
                          .hooks = {.construct = construct_amount});
    many_open_history(NULL);
    const quern_entity entity = many_entities[0];
    must(quern_commands_set(quern_world_commands(many_it.world), entity, made, &value));
    must(quern_history_save(many_it.history, 0, NULL));
    must(quern_world_discard_commands(many_it.world));
    must(quern_history_restore(many_it.history, 0, NULL));
    must(quern_world_flush(many_it.world));
    cr_assert_eq(((const amount *)quern_entity_get(many_it.world, entity, made))->value, 5);
    many_close_world();
}

/* --------------------------------------------------------------------------- commands of failed frames */

enum { SCHEDULES = 2 }; /* the history saves the first of them */

static quern_event noted;
static failing_allocator *refusing; /* allocator that the callback makes fail; NULL: none */

/* Emits and records, then makes the allocator fail. So the sync point fails, and events and commands
 * keep waiting. */
static void emit_and_create(quern_context *context)
{
    quern_context_emit(context, noted, (const uint64_t[]){0, 1, 2}, 3);
    record_entity_with(quern_context_commands(context), &many_it.amount, NULL, 1);
    if (refusing != NULL) failing_allocator_fail_from(refusing, 1);
}

static void open_failing_schedules(quern_schedule *schedules[SCHEDULES])
{
    noted = make_event(many_it.world, .name = "noted", .size_bytes = sizeof(uint64_t));
    for (uint32_t i = 0; i < SCHEDULES; i++) {
        const quern_system_def def = {.name = "emit", .begin = emit_and_create, .emits = {noted}};
        quern_system system;
        must(quern_schedule_create(many_it.world, NULL, &schedules[i]));
        must(quern_schedule_add_system(schedules[i], &def, &system));
    }
    must(quern_history_create(many_it.world, &(quern_history_def){.schedules = {schedules[0]}},
                              &many_it.history));
}

static void close_failing_schedules(quern_schedule *schedules[SCHEDULES])
{
    quern_history_destroy(many_it.history);
    many_it.history = NULL;
    for (uint32_t i = 0; i < SCHEDULES; i++)
        quern_schedule_destroy(schedules[i]);
}

static void fail_frame(quern_schedule *schedule, failing_allocator *allocator)
{
    refusing = allocator;
    cr_assert_eq(quern_schedule_run(schedule, NULL, 0.1), QUERN_ERROR_OUT_OF_MEMORY);
    failing_allocator_heal(allocator);
    refusing = NULL;
    cr_assert_gt(quern_schedule_kept_command_count(schedule), 0);
    must_refuse(INVALID_ARGUMENT, many_it.world, quern_history_save(many_it.history, 1, NULL));
}

Test(saved_commands, a_restore_discards_commands_of_failed_frames_in_all_schedules)
{
    failing_allocator *allocator = failing_allocator_create();
    open_world(&(quern_world_def){.allocator = failing_allocator_interface(allocator)});
    quern_schedule *schedules[SCHEDULES];
    quern_event_reader *reader;
    open_failing_schedules(schedules);
    must(quern_event_reader_create(many_it.world, &(quern_event_reader_def){noted, "test"}, &reader));
    must(quern_history_save(many_it.history, 0, NULL));
    const uint64_t before = many_hash();
    for (uint32_t i = 0; i < SCHEDULES; i++)
        fail_frame(schedules[i], allocator);
    must(quern_history_restore(many_it.history, 0, NULL));
    cr_assert_eq(many_hash(), before);
    for (uint32_t i = 0; i < SCHEDULES; i++)
        cr_assert_eq(quern_schedule_kept_command_count(schedules[i]), 0);
    must(quern_history_save(many_it.history, 1, NULL));
    for (uint32_t i = 0; i < SCHEDULES; i++) {
        const uint64_t entity_count = stats_of_world(many_it.world).entity_count;
        must(quern_schedule_run(schedules[i], NULL, 0.1));
        cr_assert_eq(stats_of_world(many_it.world).entity_count, entity_count + 1);
        cr_assert_eq(count_events(reader), 3);
    }
    quern_event_reader_destroy(reader);
    close_failing_schedules(schedules);
    many_close_world();
    failing_allocator_close(allocator);
}

/* ------------------------------------------------------------------------------------------ failure */

Test(saved_commands, commands_that_cannot_be_copied_are_rejected_by_name)
{
    open_world(NULL);
    atomic_llong live_count = 0;
    const quern_component owned_type = owned_register(many_it.world, "owned", &live_count);
    many_open_history(NULL);
    const quern_entity entity = many_entities[0];
    owned value;
    owned_construct(&value, 5, &live_count);
    must(quern_commands_set(quern_world_commands(many_it.world), entity, owned_type, &value));
    must_refuse(INVALID_ARGUMENT, many_it.world, quern_history_save(many_it.history, 0, NULL));
    cr_assert(strstr(quern_error_message(), "'owned'") != NULL);
    must(quern_world_flush(many_it.world));
    must(quern_entity_remove(many_it.world, entity, owned_type));
    must(quern_history_save(many_it.history, 0, NULL));
    cr_assert_eq(live_count, 0);

    quern_prefab prefab;
    must(quern_prefab_capture(many_it.world, entity, &prefab));
    must(quern_commands_spawn(quern_world_commands(many_it.world), prefab, NULL, NULL));
    must_refuse(INVALID_ARGUMENT, many_it.world, quern_history_save(many_it.history, 1, NULL));
    cr_assert(strstr(quern_error_message(), "spawn") != NULL);
    must(quern_world_flush(many_it.world));
    must(quern_history_save(many_it.history, 1, NULL));
    many_close_world();
}

Test(saved_commands, without_memory_commands_are_unchanged)
{
    failing_allocator *allocator = failing_allocator_create();
    const quern_allocator interface = failing_allocator_interface(allocator);
    uint64_t failed_count = 0;
    open_world(&(quern_world_def){.allocator = interface});
    many_open_history(&interface);
    record(7, 1200);
    keep_created();
    for (uint64_t n = 1; runs_out_of_memory(allocator, n, quern_history_save(many_it.history, 0, NULL));
         n++) {
        failed_count++;
    }
    cr_assert(failed_count > 1);
    const uint64_t expected = finish(8);
    for (uint64_t n = 1;; n++) {
        record(9, 100);
        if (!runs_out_of_memory(allocator, n, quern_history_restore(many_it.history, 0, NULL))) break;
        must(quern_world_flush(many_it.world)); /* the waiting commands still exist */
        created_count = 0;
        (void)many_hash();
        failed_count++;
    }
    cr_assert(failed_count > 10);
    memcpy(created, known, known_count * sizeof created[0]);
    created_count = known_count;
    cr_assert_eq(finish(8), expected);
    many_close_world();
    cr_assert_eq(tracked_live_count(&many_it.counts), 0);
    failing_allocator_close(allocator);
}

/* A recorder that the program holds may have no open stream: after a failed flush, or if its first command found no
 * memory. */
static void try_held(bool has_stream)
{
    failing_allocator *allocator = failing_allocator_create();
    const quern_allocator interface = failing_allocator_interface(allocator);
    const amount ten = {10}, three = {3};
    quern_entity first = {0}, second = {0};
    many_open_world(&(quern_world_def){.allocator = interface});
    many_open_history(NULL);
    quern_commands *commands = quern_world_commands(many_it.world);
    if (has_stream) {
        must(quern_commands_create(commands, &first));
        must(quern_commands_set(commands, first, many_it.amount, &ten));
    }
    failing_allocator_fail_from(allocator, 1);
    cr_assert_eq(has_stream ? quern_world_flush(many_it.world) : quern_commands_create(commands, &first),
                 QUERN_ERROR_OUT_OF_MEMORY);
    failing_allocator_heal(allocator);
    cr_assert(quern_world_commands(many_it.world) == commands);
    must(quern_history_save(many_it.history, 0, NULL));
    must(quern_history_restore(many_it.history, 0, NULL));
    commands = quern_world_commands(many_it.world);
    must(quern_commands_create(commands, &second));
    cr_assert(!quern_entity_is_null(second) && !quern_entity_equal(first, second));
    must(quern_commands_set(commands, second, many_it.amount, &three));
    must(quern_commands_accumulate(commands, second, many_it.amount, &three, QUERN_SUM));
    cr_assert_eq(quern_world_flush(many_it.world), has_stream ? QUERN_OK : QUERN_ERROR_OUT_OF_MEMORY);
    cr_assert_eq(many_list_all(), has_stream ? 2 : 1);
    const amount *last = quern_entity_get(many_it.world, many_entities[has_stream ? 1 : 0], many_it.amount);
    cr_assert_eq(last->value, 6);
    many_close_world();
    failing_allocator_close(allocator);
}

Test(saved_commands, a_held_recorder_goes_on_under_its_own_serial)
{
    try_held(true);
    try_held(false);
}

/* ------------------------------------------------------------------------------------------- reactions */

/* Changes between frames that are pending for reactions are part of a frame. */

enum { ROWS = 1500, MAX_TOLD = 4 * ROWS };

/* The rows that a reaction received, in order. */
typedef struct told_row {
    quern_entity entity;
    uint64_t value, old; /* old: 0 unless the row was set */
} told_row;

typedef struct told_list {
    told_row rows[MAX_TOLD];
    uint32_t count;
} told_list;

static told_list told, expected;
static quern_schedule *first_schedule, *schedule;
static quern_system watching;
static quern_entity rows[ROWS];

static void be_told(quern_context *context, const quern_view *view)
{
    const amount *values = quern_view_read(view, 0), *old = quern_view_read(view, 2);
    for (uint32_t i = 0; i < view->count && told.count < MAX_TOLD; i++)
        told.rows[told.count++] =
            (told_row){view->entities[i], values[i].value, old != NULL ? old[i].value : 0};
}

static void add_watching(quern_schedule *to, const char *name, quern_term term, quern_system *out_system)
{
    const quern_system_def def = {
        .name = name,
        .run = be_told,
        .terms = {quern_term_read(many_it.amount), term, quern_term_old(many_it.amount)},
        .reacts_to = QUERN_REACT_ADDED | QUERN_REACT_SET | QUERN_REACT_REMOVED,
        .flags = QUERN_SYSTEM_SERIAL};
    must(quern_schedule_add_system(to, &def, out_system));
}

/* The first reaction of the world is destroyed, so its number is free. */
static void open_watched(void)
{
    many_open_world(NULL);
    must(quern_schedule_create(many_it.world, NULL, &first_schedule));
    must(quern_schedule_create(many_it.world, NULL, &schedule));
    add_watching(first_schedule, "gone", quern_term_with(many_it.tag), NULL);
    add_watching(schedule, "watching", quern_term_without(many_it.tag), &watching);
    quern_schedule_destroy(first_schedule);
    for (uint64_t i = 0; i < ROWS; i++)
        must(quern_entity_create_with(many_it.world, (quern_component[]){many_it.amount, many_it.wide},
                                      (const void *const[]){&i, NULL}, 1 + i % 2, &rows[i]));
    must(quern_history_create(many_it.world, &(quern_history_def){.schedules = {schedule}},
                              &many_it.history));
    told.count = 0;
    must(quern_world_react(many_it.world, NULL));
    cr_assert_eq(told.count, (uint32_t)ROWS);
}

static void close_watched(void)
{
    quern_history_destroy(many_it.history);
    many_it.history = NULL;
    quern_schedule_destroy(schedule);
    many_close_world();
}

/* Destroys some entities, writes some, makes some stop matching, and creates some. */
static void change_rows(void)
{
    const amount value = {ROWS * 2};
    for (uint32_t i = 0; i < ROWS; i++)
        switch (i % 7) {
        case 0:
        case 1:
        case 2:
            must(quern_entity_destroy(many_it.world, rows[i]));
            break;
        case 3:
            must(quern_entity_set(many_it.world, rows[i], many_it.amount, &value));
            break;
        case 4:
            must(quern_entity_add(many_it.world, rows[i], many_it.tag, NULL));
            break;
        default:
            must(quern_entity_create_with(many_it.world, &many_it.amount,
                                          (const void *const[]){&(amount){i}}, 1, NULL));
            break;
        }
}

/* Restores the frame and checks that the reactions receive the expected rows. */
static void expect_told(uint64_t frame)
{
    must(quern_history_restore(many_it.history, frame, NULL));
    must(quern_world_validate(many_it.world));
    told.count = 0;
    must(quern_world_react(many_it.world, NULL));
    cr_assert_eq(told.count, expected.count, "%u rows, not %u", told.count, expected.count);
    for (uint32_t i = 0; i < told.count; i++)
        cr_assert(quern_entity_equal(told.rows[i].entity, expected.rows[i].entity) &&
                  told.rows[i].value == expected.rows[i].value && told.rows[i].old == expected.rows[i].old);
}

static void expect_nothing_told(uint64_t frame)
{
    must(quern_history_restore(many_it.history, frame, NULL));
    told.count = 0;
    must(quern_world_react(many_it.world, NULL));
    cr_assert_eq(told.count, 0u);
}

/* Frame 0: no change is pending. Frame 1: all changes are pending. */
static void save_both(void)
{
    must(quern_history_save(many_it.history, 0, NULL));
    change_rows();
    must(quern_history_save(many_it.history, 1, NULL));
    told.count = 0;
    must(quern_world_react(many_it.world, NULL));
    expected = told;
    cr_assert_gt(expected.count, ROWS / 2u);
    uint32_t old_count = 0;
    for (uint32_t i = 0; i < told.count; i++) {
        if (told.rows[i].value != ROWS * 2) continue;
        cr_assert(quern_entity_equal(rows[told.rows[i].old], told.rows[i].entity));
        old_count++;
    }
    cr_assert_eq(old_count, (ROWS + 3u) / 7u);
}

TestSuite(history_reactions, .init = open_watched, .fini = close_watched);

Test(history_reactions, pending_changes_are_reported_after_each_restore)
{
    save_both();
    expect_told(1);
    expect_nothing_told(0);
    expect_told(1);
    must(quern_history_restore(many_it.history, 0, NULL));
    change_rows(); /* all changes are pending when the frame is restored */
    expect_told(1);
    must(quern_history_restore(many_it.history, 0, NULL));
    change_rows();
    expect_nothing_told(0);
    must(quern_history_restore(many_it.history, 1, NULL));
    must(quern_history_save(many_it.history, 2, NULL));
    must(quern_world_react(many_it.world, NULL));
    expect_told(2);
}

static void destroy_all(void)
{
    for (uint32_t count = many_list_all(); count > 0; count = many_list_all())
        for (uint32_t i = 0; i < count; i++)
            must(quern_entity_destroy(many_it.world, many_entities[i]));
    must(quern_world_react(many_it.world, NULL));
    uint32_t removed_count;
    must(quern_world_remove_empty_archetypes(many_it.world, &removed_count));
    cr_assert_gt(removed_count, 2u);
}

Test(history_reactions, recreated_archetypes_have_their_subscriptions)
{
    save_both();
    destroy_all();
    expect_told(1);
    destroy_all();
    expect_nothing_told(0);
    change_rows();
    told.count = 0;
    must(quern_world_react(many_it.world, NULL));
    cr_assert_eq(told.count, expected.count);
    destroy_all();
    must(quern_history_save(many_it.history, 2, NULL));
    expect_told(1);
    expect_nothing_told(2);
}

static void set_all(void)
{
    for (uint32_t i = 0; i < ROWS; i++)
        must(quern_entity_set(many_it.world, rows[i], many_it.amount, &(amount){ROWS + i}));
}

/* The archetype that the restore brings back is older than the one that the reaction has kept. */
Test(history_reactions, rows_are_told_in_the_order_of_archetypes_after_a_restore)
{
    must(quern_history_save(many_it.history, 0, NULL));
    set_all();
    told.count = 0;
    must(quern_world_react(many_it.world, NULL));
    expected = told;
    cr_assert_eq(expected.count, (uint32_t)ROWS);
    for (uint32_t i = 0; i < ROWS; i += 2)
        must(quern_entity_destroy(many_it.world, rows[i]));
    must(quern_world_react(many_it.world, NULL));
    uint32_t removed_count;
    must(quern_world_remove_empty_archetypes(many_it.world, &removed_count));
    cr_assert_geq(removed_count, 1u);
    must(quern_history_restore(many_it.history, 0, NULL));
    set_all();
    must(quern_history_save(many_it.history, 1, NULL));
    expect_told(1);
}

/* It gets the number that the destroyed reaction had. */
Test(history_reactions, a_reaction_that_the_frame_does_not_know_is_told_nothing)
{
    save_both();
    quern_schedule *other;
    must(quern_schedule_create(many_it.world, NULL, &other));
    add_watching(other, "new", quern_term_without(many_it.tag), NULL);
    setup_entity_with(many_it.world, &many_it.amount, 1);
    must(quern_entity_destroy(many_it.world, rows[5]));
    must(quern_history_restore(many_it.history, 1, NULL));
    told.count = 0;
    must(quern_schedule_run(other, NULL, 0));
    cr_assert_eq(told.count, 0u);
    expect_told(1);
    quern_schedule_destroy(other);
    expect_told(1);
}

/* ------------------------------------------------------------------------------------ state of systems */

Test(history_reactions, restoring_enables_and_disables_systems_as_saved)
{
    must(quern_history_save(many_it.history, 0, NULL));
    must(quern_schedule_set_system_enabled(schedule, watching, false));
    must(quern_history_save(many_it.history, 1, NULL));
    change_rows();
    told.count = 0;
    must(quern_schedule_run(schedule, NULL, 0.1));
    cr_assert_eq(told.count, 0u);
    must(quern_history_restore(many_it.history, 0, NULL));
    change_rows();
    must(quern_schedule_run(schedule, NULL, 0.1));
    cr_assert_gt(told.count, 0u);
    told.count = 0;
    must(quern_history_restore(many_it.history, 1, NULL));
    change_rows();
    must(quern_schedule_run(schedule, NULL, 0.1));
    cr_assert_eq(told.count, 0u);
}

static void count_rows(quern_context *context, const quern_view *view)
{
    told.count += view->count;
}

Test(history_reactions, the_target_of_a_system_is_restored)
{
    quern_system system;
    const quern_system_def def = {.name = "children",
                                  .run = count_rows,
                                  .terms = {quern_term_target(many_it.friend, rows[0])},
                                  .flags = QUERN_SYSTEM_SERIAL};
    must(quern_schedule_add_system(schedule, &def, &system));
    must(quern_entity_relate(many_it.world, rows[2], many_it.friend, rows[0]));
    must(quern_history_save(many_it.history, 0, NULL));
    must(quern_schedule_set_target(schedule, system, rows[1]));
    must(quern_history_restore(many_it.history, 0, NULL));
    told.count = 0;
    must(quern_schedule_set_system_enabled(schedule, watching, false));
    must(quern_schedule_run(schedule, NULL, 0.1));
    cr_assert_eq(told.count, 1u);
    quern_history *twice;
    quern_history_destroy(many_it.history);
    must_refuse(INVALID_ARGUMENT, many_it.world,
                quern_history_create(many_it.world, &(quern_history_def){.schedules = {schedule, schedule}},
                                     &twice));
    cr_assert(strstr(quern_error_message(), "twice") != NULL);
    must(quern_history_create(many_it.world, &(quern_history_def){.schedules = {schedule}},
                              &many_it.history));
}
