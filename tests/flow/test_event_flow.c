/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Test labels: threaded, optimised */
#include "tests/flow/flow_setup.h"
#include "tests/support/effort.h"
#include "tests/support/random.h"

#include <stdlib.h>
#include <string.h>

/* Random programs of systems that emit and read events, with phases, fixed steps, exclusive systems, two
 * schedules, and readers that are disabled or run rarely. A model calls the systems one after another
 * and keeps published events in lists. */

enum {
    EVENTS = 3,
    SYSTEMS = 7, /* per schedule */
    SCHEDULES = 2,
    PHASES = 2,
    FRAMES = 6,
    ROWS = 2600, /* rows of two archetypes, alternately */
    PROGRAMS = effort(40, 8, 3)
};

typedef enum system_kind { KIND_ROWS, KIND_ITEMS, KIND_ONCE, KIND_EXCLUSIVE, KIND_COUNT } system_kind;

/* A system of the program. The events that it emits depend on its input, its number and the number of
 * its run. */
typedef struct actor {
    system_kind kind;
    uint32_t number, phase, flags;
    bool emits[EVENTS], reads[EVENTS];
    uint32_t items; /* KIND_ITEMS: the event that it processes item by item */
    uint32_t interval_frames;
    uint32_t disabled_frames; /* frames in which it is disabled, one bit each */
    uint32_t density;         /* it emits events for one of `density` inputs on average */
} actor;

typedef struct program {
    actor actors[SCHEDULES][SYSTEMS];
    uint32_t step_count[SCHEDULES]; /* steps of the first phase per frame; 0: no fixed step */
    uint32_t plain_count[FRAMES];   /* events emitted between frames */
} program;

/* A hash over the events that readers have seen, which depends on their order. */
typedef struct trail {
    uint64_t hash, count;
} trail;

static const uint64_t BASE = 0x9E3779B97F4A7C15u;

static uint64_t power_of_base(uint64_t exponent)
{
    uint64_t result = 1;
    for (uint64_t base = BASE; exponent > 0; exponent /= 2, base *= base)
        if (exponent % 2 == 1) result *= base;
    return result;
}

static void trail_add(trail *it, uint64_t value)
{
    it->hash = it->hash * BASE + value;
    it->count++;
}

/* Appends the events of `next` to the trail. */
static void trail_join(trail *it, const trail *next)
{
    it->hash = it->hash * power_of_base(next->count) + next->hash;
    it->count += next->count;
}

/* answer_count returns the number of events that an actor emits for an input, answer the value of the
 * k-th event. */
static uint32_t answer_count(const actor *by, uint64_t run, uint64_t given)
{
    random_source random = {given * 31 + by->number * 1000003 + run};
    return random_below(&random, by->density) == 0 ? 1 + random_below(&random, 3) : 0;
}

static uint64_t answer(const actor *by, uint64_t run, uint64_t given, uint32_t event, uint32_t k)
{
    return given * 7 + by->number * 131 + run * 17 + event * 5 + k;
}

/* -------------------------------------------------------------------------------------------- programs */

static actor make_actor(random_source *random, uint32_t number)
{
    actor made = {.kind = (system_kind)random_below(random, KIND_COUNT),
                  .number = number,
                  .phase = random_below(random, PHASES),
                  .items = random_below(random, EVENTS),
                  .interval_frames = random_chance(random, 25) ? 3 : 0,
                  .disabled_frames = random_chance(random, 40) ? (uint32_t)random_next(random) : 0};
    for (uint32_t i = 0; i < EVENTS; i++) {
        made.emits[i] = random_chance(random, 60);
        made.reads[i] = random_chance(random, 50) && !(made.kind == KIND_ITEMS && i == made.items);
    }
    made.density = made.kind == KIND_ROWS ? 1 + random_below(random, 40) : 2 + random_below(random, 4);
    if (made.kind == KIND_EXCLUSIVE) made.flags = QUERN_SYSTEM_EXCLUSIVE;
    if (made.kind != KIND_EXCLUSIVE && random_chance(random, 20)) made.flags = QUERN_SYSTEM_SERIAL;
    return made;
}

static program make_program(uint64_t seed)
{
    random_source random = {seed};
    program made = {.step_count = {0}};
    for (uint32_t s = 0; s < SCHEDULES; s++) {
        made.step_count[s] = random_chance(&random, 30) ? 1 + random_below(&random, 2) : 0;
        for (uint32_t i = 0; i < SYSTEMS; i++)
            made.actors[s][i] = make_actor(&random, s * SYSTEMS + i + 1);
    }
    for (uint32_t i = 0; i < FRAMES; i++)
        made.plain_count[i] = random_below(&random, 50);
    return made;
}

/* Returns 0 (no interval) for systems of a phase with a fixed step. The model does not implement
 * intervals within steps. */
static uint32_t interval_of(const program *of, uint32_t s, const actor *it)
{
    return it->phase == 0 && of->step_count[s] > 0 ? 0 : it->interval_frames;
}

/* --------------------------------------------------------------------------------------------- the
 * model */

typedef struct list {
    uint64_t *values;
    size_t count, capacity;
} list;

static void list_add(list *to, uint64_t value)
{
    if (to->count == to->capacity) {
        to->capacity = to->capacity * 2 + 64;
        to->values = realloc(to->values, to->capacity * sizeof *to->values);
    }
    to->values[to->count++] = value;
}

typedef struct model {
    const program *of;
    list published[EVENTS];
    list pending[SCHEDULES][EVENTS];
    size_t cursors[SCHEDULES][SYSTEMS][EVENTS];
    uint32_t waited[SCHEDULES][SYSTEMS]; /* frames since the system last ran */
    uint64_t runs[SCHEDULES][SYSTEMS];
    trail seen[SCHEDULES][SYSTEMS];
    trail plain;
    size_t plain_cursor;
} model;

static void publish(model *it, uint32_t s)
{
    for (uint32_t e = 0; e < EVENTS; e++) {
        for (size_t i = 0; i < it->pending[s][e].count; i++)
            list_add(&it->published[e], it->pending[s][e].values[i]);
        it->pending[s][e].count = 0;
    }
}

static void answer_all(model *it, uint32_t s, const actor *by, uint64_t run, uint64_t given)
{
    const uint32_t count = answer_count(by, run, given);
    for (uint32_t e = 0; e < EVENTS; e++)
        for (uint32_t k = 0; k < count && by->emits[e]; k++)
            list_add(&it->pending[s][e], answer(by, run, given, e, k));
}

/* Returns the number of the entity in a row. Entities with even numbers precede those with odd ones. */
static uint64_t number_at(uint32_t row)
{
    return row < ROWS / 2 ? 2 * row : 2 * (row - ROWS / 2) + 1;
}

static void model_run(model *it, uint32_t s, uint32_t i)
{
    const actor *by = &it->of->actors[s][i];
    const uint64_t run = it->runs[s][i]++;
    trail *seen = &it->seen[s][i];
    for (uint32_t e = 0; e < EVENTS; e++) {
        if (!by->reads[e]) continue;
        for (size_t *at = &it->cursors[s][i][e]; *at < it->published[e].count; ++*at)
            trail_add(seen, it->published[e].values[*at]);
    }
    if (by->kind == KIND_ONCE || by->kind == KIND_EXCLUSIVE)
        for (uint64_t k = 0; k < 9; k++)
            answer_all(it, s, by, run, k);
    if (by->kind == KIND_ROWS)
        for (uint32_t row = 0; row < ROWS; row++)
            answer_all(it, s, by, run, number_at(row));
    if (by->kind != KIND_ITEMS) return;
    for (size_t *at = &it->cursors[s][i][by->items]; *at < it->published[by->items].count; ++*at) {
        const uint64_t value = it->published[by->items].values[*at];
        trail_add(seen, value);
        answer_all(it, s, by, run, value);
    }
}

static void model_phase(model *it, uint32_t s, uint32_t phase, uint32_t frame)
{
    for (uint32_t i = 0; i < SYSTEMS; i++) {
        const actor *by = &it->of->actors[s][i];
        if (by->phase != phase) continue;
        if (by->kind == KIND_EXCLUSIVE) publish(it, s);
        if ((by->disabled_frames >> frame & 1) != 0) continue;
        if (++it->waited[s][i] < interval_of(it->of, s, by)) continue;
        it->waited[s][i] = 0;
        model_run(it, s, i);
    }
    publish(it, s);
}

static void model_frame(model *it, uint32_t s, uint32_t frame)
{
    const uint32_t steps = it->of->step_count[s] > 0 ? it->of->step_count[s] : 1;
    for (uint32_t i = 0; i < steps; i++)
        model_phase(it, s, 0, frame);
    model_phase(it, s, 1, frame);
}

static void model_play(model *it)
{
    for (uint32_t frame = 0; frame < FRAMES; frame++) {
        for (uint64_t i = 0; i < it->of->plain_count[frame]; i++)
            list_add(&it->published[0], frame * 100 + i);
        for (uint32_t s = 0; s < SCHEDULES; s++)
            model_frame(it, s, frame);
        for (; it->plain_cursor < it->published[0].count; it->plain_cursor++)
            trail_add(&it->plain, it->published[0].values[it->plain_cursor]);
    }
}

static void model_close(model *it)
{
    for (uint32_t e = 0; e < EVENTS; e++) {
        free(it->published[e].values);
        for (uint32_t s = 0; s < SCHEDULES; s++)
            free(it->pending[s][e].values);
    }
}

/* ------------------------------------------------------------------------------------------ the subject */

/* The user data of a system's callbacks. */
typedef struct part {
    const actor *by;
    const quern_event *events;
    trail seen;
    uint64_t run_count;
} part;

/* Emits the answers to an input in one call or one by one, depending on the input. */
static void emit_answers(quern_context *context, const part *it, uint64_t given)
{
    const uint64_t run = it->run_count;
    const uint32_t count = answer_count(it->by, run, given);
    for (uint32_t e = 0; e < EVENTS && count > 0; e++) {
        if (!it->by->emits[e]) continue;
        uint64_t values[4];
        for (uint32_t k = 0; k < count; k++)
            values[k] = answer(it->by, run, given, e, k);
        if (given % 3 == 0) {
            cr_assert(quern_context_emit(context, it->events[e], values, count));
            continue;
        }
        quern_emitter *emitter = quern_context_emitter(context, it->events[e]);
        for (uint32_t k = 0; k < count; k++)
            cr_assert(quern_emit(emitter, &values[k]));
    }
}

static void begin_part(quern_context *context)
{
    part *it = quern_context_user_data(context);
    for (uint32_t e = 0; e < EVENTS; e++) {
        if (!it->by->reads[e]) continue;
        quern_event_iterator events;
        cr_assert(quern_context_events(context, it->events[e], &events));
        while (quern_event_next(&events))
            for (uint32_t i = 0; i < events.block.count; i++)
                trail_add(&it->seen, ((const uint64_t *)events.block.values)[i]);
    }
    for (uint64_t k = 0; k < 9 && (it->by->kind == KIND_ONCE || it->by->kind == KIND_EXCLUSIVE); k++)
        emit_answers(context, it, k);
}

static void run_rows(quern_context *context, const quern_view *view)
{
    const part *it = quern_context_user_data(context);
    const uint64_t *numbers = quern_view_read(view, 0);
    for (uint32_t i = 0; i < view->count; i++)
        emit_answers(context, it, numbers[i]);
}

static void run_items(quern_context *context, const quern_view *view)
{
    const part *it = quern_context_user_data(context);
    const uint64_t *values = QUERN_EVENTS(view, uint64_t);
    trail *partial = quern_context_partial(context);
    for (uint32_t i = 0; i < view->count; i++) {
        trail_add(partial, values[i]);
        emit_answers(context, it, values[i]);
    }
}

static void end_part(quern_context *context)
{
    part *it = quern_context_user_data(context);
    for (uint32_t i = 0; i < quern_context_partial_count(context); i++)
        trail_join(&it->seen, quern_context_partial_at(context, i));
    it->run_count++;
}

static quern_system add_actor(quern_schedule *schedule, const program *of, uint32_t s, part *it,
                              quern_component number)
{
    char name[16];
    snprintf(name, sizeof name, "s%u", it->by->number);
    quern_system_def def = system_def(name, NULL);
    uint32_t emit_count = 0, read_count = 0;
    def.phase = it->by->phase;
    def.flags = it->by->flags;
    def.begin = begin_part;
    def.end = end_part;
    def.user_data = it;
    def.interval_seconds = interval_of(of, s, it->by);
    if (it->by->kind == KIND_ROWS) {
        def.run = run_rows;
        def.terms[0] = quern_term_read(number);
    }
    if (it->by->kind == KIND_ITEMS) {
        def.run = run_items;
        def.items = it->events[it->by->items];
        def.partial_bytes = sizeof(trail);
    }
    for (uint32_t e = 0; e < EVENTS; e++) {
        if (it->by->emits[e]) def.emits[emit_count++] = it->events[e];
        if (it->by->reads[e]) def.reads_events[read_count++] = it->events[e];
    }
    return setup_system(schedule, &def);
}

static void add_rows(quern_world *world, quern_component number, quern_component tag)
{
    for (uint64_t i = 0; i < ROWS; i++)
        must(quern_entity_create_with(world, (const quern_component[]){number, tag},
                                      (const void *const[]){&i, NULL}, 1 + (uint32_t)(i % 2), NULL));
}

static void play(const program *of, const model *expected, quern_jobs *jobs, uint32_t style, uint64_t seed)
{
    quern_world *world = setup_world();
    quern_component number = setup_component(world, "number", 8, 8), tag = setup_tag(world, "tag");
    quern_event events[EVENTS];
    static const char *const names[] = {"a", "b", "c"};
    for (uint32_t e = 0; e < EVENTS; e++)
        events[e] = make_event(world, .name = names[e], .size_bytes = 8, .alignment_bytes = 8,
                               .type_name = "uint64_t");
    add_rows(world, number, tag);
    quern_schedule *schedules[SCHEDULES];
    quern_system systems[SCHEDULES][SYSTEMS];
    static part parts[SCHEDULES][SYSTEMS];
    quern_event_reader *plain;
    trail seen = {0};
    must(quern_event_reader_create(world, &(quern_event_reader_def){.event = events[0]}, &plain));
    for (uint32_t s = 0; s < SCHEDULES; s++) {
        schedules[s] = setup_schedule_as(world, schedule_style(style), PHASES);
        if (of->step_count[s] > 0)
            must(quern_schedule_set_fixed_step(schedules[s], 0, 1.0 / of->step_count[s], 10));
        for (uint32_t i = 0; i < SYSTEMS; i++) {
            parts[s][i] = (part){.by = &of->actors[s][i], .events = events};
            systems[s][i] = add_actor(schedules[s], of, s, &parts[s][i], number);
        }
    }
    for (uint32_t frame = 0; frame < FRAMES; frame++) {
        for (uint64_t i = 0; i < of->plain_count[frame]; i++) {
            const uint64_t value = frame * 100 + i;
            must(quern_world_emit(world, events[0], &value, 1));
        }
        for (uint32_t s = 0; s < SCHEDULES; s++) {
            for (uint32_t i = 0; i < SYSTEMS; i++)
                must(quern_schedule_set_system_enabled(
                    schedules[s], systems[s][i], (of->actors[s][i].disabled_frames >> frame & 1) == 0));
            must(quern_schedule_run(schedules[s], jobs, 1));
        }
        quern_event_block block;
        while (quern_event_reader_next(plain, &block))
            for (uint32_t i = 0; i < block.count; i++)
                trail_add(&seen, ((const uint64_t *)block.values)[i]);
    }
    cr_assert_eq(seen.count, expected->plain.count, "program %llu", (unsigned long long)seed);
    cr_assert_eq(seen.hash, expected->plain.hash, "program %llu", (unsigned long long)seed);
    for (uint32_t s = 0; s < SCHEDULES; s++)
        for (uint32_t i = 0; i < SYSTEMS; i++) {
            const trail *right = &expected->seen[s][i], *wrong = &parts[s][i].seen;
            cr_assert_eq(parts[s][i].run_count, expected->runs[s][i], "program %llu, system %u",
                         (unsigned long long)seed, parts[s][i].by->number);
            cr_assert_eq(wrong->count, right->count, "program %llu, system %u: %llu events, not %llu",
                         (unsigned long long)seed, parts[s][i].by->number, (unsigned long long)wrong->count,
                         (unsigned long long)right->count);
            cr_assert_eq(wrong->hash, right->hash, "program %llu, system %u: another order",
                         (unsigned long long)seed, parts[s][i].by->number);
        }
    quern_event_reader_destroy(plain);
    assert_valid(world);
    for (uint32_t s = 0; s < SCHEDULES; s++)
        quern_schedule_destroy(schedules[s]);
    must(quern_world_trim(world));
    cr_assert_eq(stats_of_world(world).event_bytes, 0u);
    quern_world_destroy(world);
}

/* Runs each program in a few combinations of thread count and style. Over all programs every combination
 * is covered. */
Test(event_flow, random_programs_read_what_a_serial_model_reads)
{
    quern_jobs *pools[POOL_COUNT];
    for (uint32_t i = 0; i < POOL_COUNT; i++)
        pools[i] = setup_jobs(pool_threads[i]);
    uint64_t event_count = 0;
    for (uint64_t seed = 1; seed <= PROGRAMS; seed++) {
        const program of = make_program(seed);
        model *expected = calloc(1, sizeof *expected);
        expected->of = &of;
        model_play(expected);
        for (uint32_t i = 0; i < POOL_COUNT; i++)
            play(&of, expected, pools[i], (uint32_t)(seed + i) % STYLE_COUNT, seed);
        event_count += expected->plain.count;
        model_close(expected);
        free(expected);
    }
    cr_assert_gt(event_count, (uint64_t)PROGRAMS * 100);
    for (uint32_t i = 0; i < POOL_COUNT; i++)
        quern_jobs_destroy(pools[i]);
}
