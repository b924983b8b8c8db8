/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Test labels: threaded, optimised */
#include "tests/core/lists/bag.h"
#include "tests/support/effort.h"
#include "tests/support/failing_allocator.h"
#include "tests/support/fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Lists that parallel systems change and copy by commands, against a naive model, at several thread counts. Histories
 * restore frames, and a replica follows by deltas. */

enum { CROWD = 600, FRAMES = effort(24, 24, 10), KEPT = 8, REACH = 7, STEPS = 3 };

typedef struct crowd_model {
    bag_model bags[CROWD];
    uint64_t states[CROWD]; /* of the random numbers of each row */
} crowd_model;

static failing_allocator *memory;
static quern_component bag_id, state_id;
static quern_entity crowd[CROWD];
static crowd_model *model, *kept;
static uint64_t expected[FRAMES + 1];

static void open_crowd(void)
{
    memory = failing_allocator_create();
    const quern_allocator allocator = failing_allocator_interface(memory);
    must(quern_lists_set_allocator(&allocator));
    model = calloc(1, sizeof *model);
    kept = calloc(KEPT, sizeof *kept);
    cr_assert(model != NULL && kept != NULL);
}

static void close_crowd(void)
{
    free(model);
    free(kept);
    failing_allocator_close(memory);
    assert_at_end(quern_lists_set_allocator(NULL) == QUERN_OK);
}

TestSuite(list_frames, .init = open_crowd, .fini = close_crowd, .timeout = 240);

/* Each row changes its own lists. The model of a row is changed by the same job. */
static void change(quern_context *context, const quern_view *view)
{
    bag *bags = quern_view_write(view, 0);
    random_source *states = quern_view_write(view, 1);
    for (uint32_t i = 0; i < view->count; i++) {
        const uint32_t number = bags[i].gold;
        for (uint32_t step = 0; step < STEPS; step++)
            (void)bag_change(&bags[i], &model->bags[number], &states[i], crowd, CROWD);
        model->states[number] = states[i].state;
    }
}

static bool is_sent(uint32_t number, uint64_t state)
{
    return number % REACH == 0 && state % 3 != 0;
}

/* Some rows send their lists to the next row, which has then the same. */
static void send(quern_context *context, const quern_view *view)
{
    const bag *bags = quern_view_read(view, 0);
    const random_source *states = quern_view_read(view, 1);
    for (uint32_t i = 0; i < view->count; i++) {
        if (!is_sent(bags[i].gold, states[i].state)) continue;
        bag sent = {0};
        quern_list_copy(&sent.items.list, &bags[i].items.list);
        quern_list_copy(&sent.scores.list, &bags[i].scores.list);
        quern_list_copy(&sent.names.list, &bags[i].names.list);
        quern_list_copy(&sent.friends.list, &bags[i].friends.list);
        quern_string_copy(&sent.label, &bags[i].label);
        sent.gold = bags[i].gold + 1;
        must(quern_commands_set(quern_context_commands(context), crowd[sent.gold], bag_id, &sent));
        bag_free(&sent);
    }
}

static quern_schedule *open_schedule(void)
{
    quern_schedule *schedule;
    must(quern_schedule_create(world, NULL, &schedule));
    must(quern_schedule_add_system(
        schedule,
        &(quern_system_def){.name = "change",
                            .run = change,
                            .terms = {quern_term_write(bag_id), quern_term_write(state_id)}},
        NULL));
    must(quern_schedule_add_system(
        schedule,
        &(quern_system_def){
            .name = "send", .run = send, .terms = {quern_term_read(bag_id), quern_term_read(state_id)}},
        NULL));
    return schedule;
}

static void open_all(void)
{
    world = setup_world();
    bag_id = bag_register(world);
    state_id = setup_component(world, "state", sizeof(random_source), 8);
    memset(model, 0, sizeof *model);
    for (uint32_t i = 0; i < CROWD; i++) {
        const random_source state = {i};
        crowd[i] = setup_entity(world);
        must(quern_entity_add(world, crowd[i], bag_id, &(bag){.gold = i}));
        must(quern_entity_add(world, crowd[i], state_id, &state));
    }
}

static void run_frame(quern_schedule *schedule, quern_jobs *jobs)
{
    must(quern_schedule_run(schedule, jobs, 0));
    for (uint32_t i = 0; i + 1 < CROWD; i++)
        if (is_sent(i, model->states[i])) model->bags[i + 1] = model->bags[i];
}

static void assert_model(void)
{
    for (uint32_t i = 0; i < CROWD; i++)
        bag_assert(quern_entity_get(world, crowd[i], bag_id), &model->bags[i], NULL);
}

static void run_at(uint32_t thread_count)
{
    quern_jobs *jobs = NULL;
    quern_history *history;
    quern_delta_applier *applier;
    quern_byte_buffer bytes = {0};
    random_source random = {thread_count};
    if (thread_count > 0) must(quern_jobs_create(&(quern_jobs_def){.thread_count = thread_count}, &jobs));
    open_all();
    quern_schedule *schedule = open_schedule();
    quern_world *const first = world;
    must(quern_world_save(first, quern_sink_bytes(&bytes), NULL));
    quern_world *replica = setup_world();
    (void)bag_register(replica);
    (void)setup_component(replica, "state", sizeof(random_source), 8);
    must(quern_world_load(replica, quern_source_bytes(bytes.bytes, bytes.size_bytes), NULL, NULL));
    must(quern_delta_applier_create(replica, &applier));
    must(quern_history_create(world, &(quern_history_def){.schedules = {schedule}, .frame_count = KEPT},
                              &history));
    uint64_t newest = 0, shown = 0; /* newest kept frame, and frame of the replica */
    must(quern_history_save(history, 0, jobs));
    kept[0] = *model;
    for (uint64_t frame = 0; frame < FRAMES;) {
        run_frame(schedule, jobs);
        frame++;
        const uint64_t hash = quern_world_hash(world);
        if (expected[frame] == 0) expected[frame] = hash;
        cr_assert_eq(hash, expected[frame], "%u threads, frame %u", thread_count, (unsigned)frame);
        must(quern_history_save(history, frame, jobs));
        kept[frame % KEPT] = *model;
        newest = frame;
        if (frame % 4 == 0) assert_model();
        if (frame % 2 == 0 && frame > shown) {
            quern_delta *delta;
            must(quern_delta_create(history, shown, frame, &delta));
            bytes.size_bytes = 0;
            must(quern_delta_write(delta, NULL, quern_sink_bytes(&bytes)));
            quern_delta_destroy(delta);
            must(quern_delta_apply(applier, quern_source_bytes(bytes.bytes, bytes.size_bytes)));
            shown = frame;
            cr_assert_eq(quern_world_hash(replica), hash);
        }
        if (random_below(&random, 3) == 0 && newest >= 3) {
            frame = newest - random_below(&random, 3);
            if (frame < shown) frame = shown;
            must(quern_history_restore(history, frame, jobs));
            *model = kept[frame % KEPT];
            cr_assert_eq(quern_world_hash(world), expected[frame]);
            assert_model();
        }
    }
    quern_delta_applier_destroy(applier);
    quern_history_destroy(history);
    quern_schedule_destroy(schedule);
    quern_world_destroy(replica);
    quern_world_destroy(first);
    quern_byte_buffer_release(&bytes);
    quern_jobs_destroy(jobs);
    cr_assert_eq(failing_allocator_outstanding_bytes(memory), 0u);
}

Test(list_frames, frames_are_those_of_the_model_at_each_thread_count)
{
    static const uint32_t thread_counts[] = {0, 1, 2, 3, 8};
    for (uint32_t i = LOOKS_FOR_RACES_ALONE ? 2 : 0; i < sizeof thread_counts / sizeof *thread_counts; i++)
        run_at(thread_counts[i]);
}

/* ------------------------------------------------------------------------------------- places of events */

enum { FOUND_EVENTS = 40 };

static quern_event found_event;
static quern_event_reader *found_reader;

/* Sets lists in the places of the events, which are empty also if the memory had other events before. */
static void find(quern_context *context, const quern_view *view)
{
    quern_emitter *emitter = quern_context_emitter(context, found_event);
    for (uint32_t i = 0; i < FOUND_EVENTS; i++) {
        uint32_t some = 1;
        bag *it = i % 2 == 0 ? QUERN_EMIT(emitter, bag) : QUERN_EMIT_SOME(emitter, 1, &some, bag);
        cr_assert_not_null(it);
        cr_assert_eq(it->items.list.count + it->label.list.count + it->names.list.count, 0u);
        must(quern_string_print(&it->label, "found %u", i));
        must(QUERN_LIST_PUSH(&it->items, bag_item, {.kind = i}));
    }
    (void)view;
}

static void read_found(void)
{
    quern_event_block block;
    uint32_t count = 0;
    while (quern_event_reader_next(found_reader, &block))
        for (uint32_t i = 0; i < block.count; i++, count++) {
            const bag *it = (const bag *)block.values + i;
            char label[16];
            snprintf(label, sizeof label, "found %u", count);
            cr_assert_str_eq(quern_string_text(&it->label), label);
            cr_assert_eq(it->items.items[0].kind, count);
        }
    cr_assert_eq(count, (uint32_t)FOUND_EVENTS);
}

/* ------------------------------------------------------------------------------------- appending by command */

enum { SENDERS = 500, BOXES = 3 };

typedef struct box {
    QUERN_LIST(uint32_t) numbers;
} box;

typedef struct sender {
    uint32_t number;
} sender;

typedef struct appending {
    quern_component box;
    quern_combine append;
    quern_entity boxes[BOXES];
} appending;

static void append_numbers(void *value, const void *accumulated, void *user_data)
{
    box *to = value;
    const box *from = accumulated;
    for (uint32_t i = 0; i < from->numbers.list.count; i++)
        must(QUERN_LIST_PUSH(&to->numbers, uint32_t, from->numbers.items[i]));
}

static void send_numbers(quern_context *context, const quern_view *view)
{
    const appending *to = quern_context_user_data(context);
    const sender *senders = quern_view_read(view, 0);
    for (uint32_t i = 0; i < view->count; i++) {
        box sent = {.numbers.list.count = 0};
        for (uint32_t k = 0; k <= senders[i].number % 3; k++)
            must(QUERN_LIST_PUSH(&sent.numbers, uint32_t, 10 * senders[i].number + k));
        must(quern_commands_accumulate(quern_context_commands(context),
                                       to->boxes[senders[i].number % BOXES], to->box, &sent, to->append));
        quern_list_free(&sent.numbers.list);
    }
}

Test(list_frames, accumulated_lists_are_appended_in_the_order_of_commands)
{
    static const uint32_t thread_counts[] = {0, 1, 2, 3, 8};
    for (uint32_t t = 0; t < sizeof thread_counts / sizeof *thread_counts; t++) {
        quern_jobs *jobs = NULL;
        quern_schedule *schedule;
        appending to;
        quern_component sender_id;
        if (thread_counts[t] > 0)
            must(quern_jobs_create(&(quern_jobs_def){.thread_count = thread_counts[t]}, &jobs));
        world = setup_world();
        to.box =
            make_component(world, QUERN_TYPE(box), .fields = {QUERN_LIST_FIELD(box, numbers, uint32_t)});
        must(QUERN_COMPONENT_REGISTER_FIELDS(world, &sender_id, sender, number));
        must(quern_combine_register(
            world, &(quern_combine_def){.name = "append", .function = append_numbers}, &to.append));
        for (uint32_t i = 0; i < BOXES; i++)
            must(quern_entity_create_with(world, &to.box, NULL, 1, &to.boxes[i]));
        for (uint32_t i = 0; i < SENDERS; i++)
            must(quern_entity_create_with(world, &sender_id, (const void *const[]){&(sender){i}}, 1, NULL));
        must(quern_schedule_create(world, NULL, &schedule));
        must(quern_schedule_add_system(schedule,
                                       &(quern_system_def){.name = "send",
                                                           .run = send_numbers,
                                                           .terms = {quern_term_read(sender_id)},
                                                           .user_data = &to},
                                       NULL));
        for (uint32_t frame = 1; frame <= 2; frame++) {
            must(quern_schedule_run(schedule, jobs, 1));
            for (uint32_t b = 0; b < BOXES; b++) {
                const box *own = quern_entity_get(world, to.boxes[b], to.box);
                uint32_t at = 0;
                for (uint32_t round = 0; round < frame; round++)
                    for (uint32_t i = b; i < SENDERS; i += BOXES)
                        for (uint32_t k = 0; k <= i % 3; k++, at++) {
                            cr_assert_lt(at, own->numbers.list.count);
                            cr_assert_eq(own->numbers.items[at], 10 * i + k);
                        }
                cr_assert_eq(own->numbers.list.count, at);
            }
        }
        quern_schedule_destroy(schedule);
        close_world();
        quern_jobs_destroy(jobs);
    }
}

Test(list_frames, places_of_events_have_empty_lists)
{
    quern_event_def def = {
        .name = "found", .type_name = "bag", .size_bytes = sizeof(bag), .alignment_bytes = 8};
    quern_schedule *schedule;
    memcpy(def.fields, bag_def.fields, sizeof def.fields);
    world = setup_world();
    must(quern_event_register(world, &def, &found_event));
    must(quern_event_reader_create(world, &(quern_event_reader_def){.event = found_event, .name = "reader"},
                                   &found_reader));
    must(quern_schedule_create(world, NULL, &schedule));
    must(quern_schedule_add_system(
        schedule, &(quern_system_def){.name = "find", .run = find, .emits = {found_event}}, NULL));
    for (uint32_t frame = 0; frame < 5; frame++) {
        must(quern_schedule_run(schedule, NULL, 0));
        read_found();
    }
    quern_schedule_destroy(schedule);
    quern_event_reader_destroy(found_reader);
    close_valid_world();
}
