/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Test labels: threaded */
#include "tests/flow/flow_setup.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

/* Tests what a frame passes to its systems, and the guarantees for each kind of system. */

enum { CROWD = 12000 };

static quern_world *world;
static quern_component index_component, visits, wide;
static quern_resource score;
static quern_jobs *jobs; /* has 4 threads */
static _Atomic uint64_t rows_seen;

/* Creates entities in three archetypes and many chunks. Their index components count from 0. */
static void open_crowd(void)
{
    rows_seen = 0;
    world = setup_world();
    index_component = setup_component(world, "index", 8, 8);
    visits = setup_component(world, "visits", 8, 8);
    wide = setup_component(world, "wide", 256, 64);
    quern_component tag = setup_tag(world, "tag");
    score = setup_counter(world, "score");
    quern_component sets[3][3] = {
        {index_component, visits}, {index_component, visits, wide}, {index_component, visits, tag}};
    for (uint64_t i = 0; i < CROWD; i++) {
        const void *values[] = {&i, NULL, NULL};
        must(quern_entity_create_with(world, sets[i % 3], values, i % 3 == 0 ? 2 : 3, NULL));
    }
    jobs = setup_jobs(4);
}

static void close_crowd(void)
{
    quern_jobs_destroy(jobs);
    quern_world_destroy(world);
}

TestSuite(frame, .init = open_crowd, .fini = close_crowd);

/* Returns the definition of a system that writes the component `visits` of the crowd, as most systems of
 * these tests do. */
static quern_system_def crowd_def(const char *name, quern_view_callback *run)
{
    return (quern_system_def){
        .name = name, .run = run, .terms = {quern_term_write(visits), quern_term_read(index_component)}};
}

/* Creates a schedule with this one system. The caller destroys it. */
static quern_schedule *schedule_of(const quern_system_def *def, quern_system *out_system)
{
    quern_schedule *schedule = setup_schedule(world);
    quern_system system = setup_system(schedule, def);
    if (out_system != NULL) *out_system = system;
    return schedule;
}

static void run_alone(const quern_system_def *def, quern_jobs *pool)
{
    quern_schedule *schedule = schedule_of(def, NULL);
    must_run(schedule, pool);
    quern_schedule_destroy(schedule);
}

static void write_score(quern_system_def *def, quern_access access)
{
    static quern_resource_access resource;
    resource = (quern_resource_access){score, access};
    def->resources[0] = resource;
}

/* ------------------------------------------------------------------------------------------- views */

static void visit(quern_context *context, const quern_view *view)
{
    uint64_t *counts = quern_view_write(view, 0);
    for (uint32_t i = 0; i < view->count; i++)
        counts[i]++;
}

static void assert_visited(uint64_t expected)
{
    quern_term term = quern_term_read(visits);
    quern_query *query = setup_query(world, &term, 1);
    for (quern_query_iterator it = quern_query_iterate(query); quern_query_next(&it);) {
        const uint64_t *counts = quern_view_read(&it.view, 0);
        for (uint32_t i = 0; i < it.view.count; i++)
            cr_assert_eq(counts[i], expected);
    }
    cr_assert_eq(quern_query_count(query), (uint64_t)CROWD);
    quern_query_destroy(query);
}

Test(frame, every_entity_is_in_exactly_one_view_at_any_thread_count)
{
    quern_system_def def = crowd_def("visit", visit);
    for (uint32_t i = 0; i < POOL_COUNT; i++) {
        quern_jobs *pool = setup_jobs(pool_threads[i]);
        run_alone(&def, pool);
        quern_jobs_destroy(pool);
        assert_visited(i + 1);
    }
}

enum { MAX_VIEWS = 4096 };

static _Atomic uint32_t ordinals_seen[MAX_VIEWS];

static void note_view(quern_context *context, const quern_view *view)
{
    cr_assert_lt(view->ordinal, (uint32_t)MAX_VIEWS);
    cr_assert_geq(view->count, 1u);
    ordinals_seen[view->ordinal]++;
    rows_seen += view->count;
}

Test(frame, views_are_numbered_without_gaps_and_counted)
{
    quern_system_def def = crowd_def("note", note_view);
    quern_system system;
    quern_schedule *schedule = schedule_of(&def, &system);
    must_run(schedule, jobs);
    quern_system_stats stats;
    must(quern_schedule_get_system_stats(schedule, system, &stats));
    cr_assert_gt(stats.view_count, 30u, "the test needs many views");
    cr_assert_eq(stats.entity_count, (uint64_t)CROWD);
    cr_assert_eq(rows_seen, (uint64_t)CROWD);
    for (uint32_t i = 0; i < MAX_VIEWS; i++)
        cr_assert_eq(ordinals_seen[i], i < stats.view_count, "view %u", i);
    quern_schedule_destroy(schedule);
}

static void note_empty_view(quern_context *context, const quern_view *view)
{
    cr_assert_eq(view->count, 0u);
    cr_assert_eq(view->ordinal, 0u);
    rows_seen++;
}

static void one_more(quern_context *context)
{
    rows_seen++;
}

Test(frame, without_terms_a_system_runs_once_and_without_matches_only_its_hooks)
{
    quern_system_def def = system_def("plain", note_empty_view);
    def.begin = def.end = one_more;
    run_alone(&def, jobs);
    cr_assert_eq(rows_seen, 3u);
    quern_component unused = setup_component(world, "unused", 4, 4);
    def.terms[0] = quern_term_read(unused);
    run_alone(&def, jobs);
    cr_assert_eq(rows_seen, 5u);
}

/* ----------------------------------------------------------------------------------------- context */

static int user_data;
static uint64_t expected_frame;

static void check_context(quern_context *context)
{
    cr_assert_eq(quern_context_user_data(context), &user_data);
    cr_assert_float_eq(quern_context_delta_seconds(context), 0.25, 0);
    cr_assert_eq(quern_context_frame_index(context), expected_frame);
    cr_assert_eq(quern_context_jobs(context), jobs);
    cr_assert_lt(quern_context_worker_index(context), 4u);
    cr_assert_not_null(quern_context_commands(context));
    cr_assert_null(quern_context_partial(context), "begin and end have none");
}

static void check_context_of_view(quern_context *context, const quern_view *view)
{
    cr_assert_eq(quern_context_user_data(context), &user_data);
    cr_assert_eq(quern_context_frame_index(context), expected_frame);
    cr_assert_eq(quern_context_jobs(context), jobs);
    cr_assert_lt(quern_context_worker_index(context), 4u);
    cr_assert_null(quern_context_partial(context), "none was asked for");
    cr_assert_eq(quern_context_partial_count(context), 0u);
    cr_assert_null(quern_context_partial_at(context, 0));
}

Test(frame, context_returns_the_arguments_of_the_frame)
{
    quern_system_def def = crowd_def("curious", check_context_of_view);
    def.begin = def.end = check_context;
    def.user_data = &user_data;
    quern_schedule *schedule = schedule_of(&def, NULL);
    for (; expected_frame < 3; expected_frame++)
        must_run(schedule, jobs);
    quern_jobs_destroy(jobs);
    jobs = NULL;
    must_run(schedule, NULL);
    quern_schedule_destroy(schedule);
}

/* ---------------------------------------------------------------------------------------- partials */

/* A hash over a sequence that depends on its order. The digests of consecutive parts can be combined to
 * that of the whole. */
typedef struct digest {
    uint64_t hash, power; /* 0: empty */
} digest;

static void digest_add(digest *sum, digest part)
{
    uint64_t power = sum->power == 0 ? 1 : sum->power;
    *sum = (digest){sum->hash * part.power + part.hash, power * part.power};
}

static void digest_view(quern_context *context, const quern_view *view)
{
    const uint64_t *indices = quern_view_read(view, 1);
    digest *partial = quern_context_partial(context);
    cr_assert_eq((uintptr_t)partial % 64, 0u);
    cr_assert_eq(partial->power, 0u, "partials are zeroed before each frame");
    for (uint32_t i = 0; i < view->count; i++)
        digest_add(partial, (digest){indices[i] + 1, 1000003});
}

static digest total;

static void digest_end(quern_context *context)
{
    uint32_t count = quern_context_partial_count(context);
    total = (digest){0};
    for (uint32_t i = 0; i < count; i++)
        digest_add(&total, *(const digest *)quern_context_partial_at(context, i));
    cr_assert_null(quern_context_partial_at(context, count));
    cr_assert_null(quern_context_partial(context));
}

static uint64_t expected_digest(void)
{
    digest sum = {0};
    quern_term term = quern_term_read(index_component);
    quern_query *query = setup_query(world, &term, 1);
    for (quern_query_iterator it = quern_query_iterate(query); quern_query_next(&it);) {
        const uint64_t *indices = quern_view_read(&it.view, 0);
        for (uint32_t i = 0; i < it.view.count; i++)
            digest_add(&sum, (digest){indices[i] + 1, 1000003});
    }
    quern_query_destroy(query);
    return sum.hash;
}

Test(frame, partial_results_are_in_view_order_at_any_thread_count)
{
    quern_system_def def = crowd_def("digest", digest_view);
    def.end = digest_end;
    def.partial_bytes = sizeof(digest);
    quern_schedule *schedule = schedule_of(&def, NULL);
    for (uint32_t i = 0; i < 2 * POOL_COUNT; i++) {
        quern_jobs *pool = setup_jobs(pool_threads[i % POOL_COUNT]);
        must_run(schedule, pool);
        cr_assert_eq(total.hash, expected_digest());
        quern_jobs_destroy(pool);
    }
    quern_schedule_destroy(schedule);
}

/* ------------------------------------------------------------------------------- serial and main thread */

static _Atomic uint32_t inside_count, overlap_count;
static uint32_t next_ordinal; /* not atomic: a serial system needs no synchronisation */
static pthread_t caller;
static _Atomic uint32_t elsewhere_count;

static void run_one_at_a_time(quern_context *context, const quern_view *view)
{
    if (atomic_fetch_add(&inside_count, 1) != 0) overlap_count++;
    cr_assert_eq(view->ordinal, next_ordinal);
    next_ordinal++;
    if (!pthread_equal(pthread_self(), caller)) elsewhere_count++;
    atomic_fetch_sub(&inside_count, 1);
}

static void note_thread(quern_context *context)
{
    if (!pthread_equal(pthread_self(), caller)) elsewhere_count++;
    cr_assert_eq(quern_context_worker_index(context), 0u);
}

static void assert_serial(const quern_system_def *def)
{
    next_ordinal = 0;
    overlap_count = elsewhere_count = 0;
    caller = pthread_self();
    quern_system_def idle = crowd_def("idle", visit); /* gives other workers something to do */
    quern_schedule *schedule = schedule_of(&idle, NULL);
    quern_system system = setup_system(schedule, def);
    must_run(schedule, jobs);
    quern_system_stats stats;
    must(quern_schedule_get_system_stats(schedule, system, &stats));
    cr_assert_eq(next_ordinal, stats.view_count);
    cr_assert_eq(overlap_count, 0u);
    quern_schedule_destroy(schedule);
}

Test(frame, serial_system_visits_views_in_order)
{
    quern_system_def def = system_def("serial", run_one_at_a_time);
    def.terms[0] = quern_term_read(index_component);
    def.flags = QUERN_SYSTEM_SERIAL;
    assert_serial(&def);
}

Test(frame, writing_a_resource_makes_a_system_serial)
{
    quern_system_def def = crowd_def("writer", run_one_at_a_time);
    write_score(&def, QUERN_ACCESS_WRITE);
    assert_serial(&def);
}

Test(frame, main_thread_system_runs_on_the_thread_that_called_run)
{
    quern_system_def def = crowd_def("main", run_one_at_a_time);
    def.flags = QUERN_SYSTEM_MAIN_THREAD;
    def.begin = def.end = note_thread;
    for (uint32_t i = 0; i < 20; i++) {
        assert_serial(&def);
        cr_assert_eq(elsewhere_count, 0u);
    }
}

static void add_to_score(quern_context *context, const quern_view *view)
{
    _Atomic uint64_t *value = quern_context_resource_write(context, score);
    atomic_fetch_add_explicit(value, view->count, memory_order_relaxed);
}

Test(frame, views_may_write_a_concurrent_resource_at_the_same_time)
{
    quern_system_def def = crowd_def("adder", add_to_score);
    write_score(&def, QUERN_ACCESS_WRITE_CONCURRENT);
    quern_schedule *schedule = schedule_of(&def, NULL);
    cr_assert_null(strstr(described(schedule), "serial"));
    for (uint32_t i = 0; i < POOL_COUNT; i++) {
        quern_jobs *pool = setup_jobs(pool_threads[i]);
        must_run(schedule, pool);
        quern_jobs_destroy(pool);
        cr_assert_eq(counter_value(world, score), (uint64_t)CROWD * (i + 1));
    }
    quern_schedule_destroy(schedule);
}

/* --------------------------------------------------------------------------------------- exclusive */

static void spawn_later(quern_context *context)
{
    cr_assert(record_entity_with(quern_context_commands(context), &wide, NULL, 1).bits);
}

static uint64_t count_of(quern_component component)
{
    quern_term term = quern_term_read(component);
    quern_query *query = setup_query(world, &term, 1);
    uint64_t count = quern_query_count(query);
    quern_query_destroy(query);
    return count;
}

static uint64_t wide_count;

static void change_at_once(quern_context *context)
{
    cr_assert_eq(quern_context_world(context), world);
    cr_assert_eq(count_of(wide), wide_count + 1, "what was recorded before has been applied");
    setup_entity_with(world, &wide, 1);
    spawn_later(context); /* recorded for the end of the phase */
    cr_assert_eq(count_of(wide), wide_count + 2);
}

static void count_rows(quern_context *context, const quern_view *view)
{
    rows_seen += view->count;
}

static void hash_inside(quern_context *context)
{
    quern_world *inside = quern_context_world(context);
    uint64_t *hash = quern_context_user_data(context);
    *hash = quern_world_hash(inside);
    must(quern_world_validate(inside));
}

Test(frame, an_exclusive_system_may_hash_and_validate_the_world)
{
    uint64_t hash = 0;
    quern_system_def def = system_def("judge", NULL);
    def.begin = hash_inside;
    def.flags = QUERN_SYSTEM_EXCLUSIVE;
    def.user_data = &hash;
    quern_schedule *schedule = schedule_of(&def, NULL);
    must_run(schedule, jobs);
    cr_assert_neq(hash, 0u);
    cr_assert_eq(hash, quern_world_hash(world));
    quern_schedule_destroy(schedule);
}

Test(frame, exclusive_system_changes_the_world_immediately)
{
    wide_count = count_of(wide);
    quern_schedule *schedule = setup_schedule(world);
    quern_system_def early = system_def("early", NULL), alone = system_def("alone", NULL),
                     late = system_def("late", count_rows);
    early.begin = spawn_later;
    alone.begin = change_at_once;
    alone.flags = QUERN_SYSTEM_EXCLUSIVE;
    late.terms[0] = quern_term_read(wide);
    quern_system_def *defs[] = {&early, &alone, &late};
    for (uint32_t i = 0; i < COUNT_OF(defs); i++)
        setup_system(schedule, defs[i]);
    must_run(schedule, jobs);
    cr_assert_eq(rows_seen, wide_count + 2, "later systems see it, but not what it recorded");
    cr_assert_eq(count_of(wide), wide_count + 3);
    assert_valid(world);
    quern_schedule_destroy(schedule);
}

static quern_schedule *running;

static void run_again(quern_context *context)
{
    quern_result code = QUERN_ERROR_WORLD_LOCKED;
    quern_system_def def = system_def("new", idle_run);
    assert_refused(world, code, quern_schedule_run(running, NULL, 0));
    assert_refused(world, code, quern_schedule_run(running, jobs, 0));
    assert_refused(world, code, quern_schedule_add_system(running, &def, NULL));
    assert_refused(world, code, quern_schedule_set_system_enabled(running, (quern_system){1}, false));
    assert_refused(world, code, quern_schedule_compile(running));
    assert_message_has("quern_schedule_compile: ");
    assert_refused(world, code,
                   quern_schedule_describe(running, QUERN_DESCRIBE_TEXT, quern_sink_file(stderr)));
    assert_message_has("quern_schedule_describe: ");
    static captured_reports reports;
    capture_reports(&reports);
    quern_schedule_destroy(running);
    cr_assert_eq(reports.log_count, 1u, "it would be gone before its frame");
    quern_log_set_handler(NULL, NULL);
    quern_assert_set_handler(NULL, NULL);
}

Test(frame, a_schedule_cannot_be_run_or_changed_while_it_runs)
{
    quern_system_def def = system_def("alone", NULL);
    def.begin = run_again;
    def.flags = QUERN_SYSTEM_EXCLUSIVE;
    running = schedule_of(&def, NULL);
    must_run(running, jobs);
    must_run(running, NULL);
    quern_schedule_destroy(running);
}

static void run_other(quern_context *context)
{
    must_run(running, quern_context_jobs(context));
}

Test(frame, an_exclusive_system_may_run_a_frame_of_another_schedule)
{
    quern_system_def inner = crowd_def("visit", visit), outer = system_def("alone", NULL);
    running = schedule_of(&inner, NULL);
    outer.begin = run_other;
    outer.flags = QUERN_SYSTEM_EXCLUSIVE;
    quern_schedule *schedule = schedule_of(&outer, NULL);
    setup_system(schedule, &inner);
    must_run(schedule, jobs);
    assert_visited(2);
    quern_schedule_destroy(schedule);
    quern_schedule_destroy(running);
}

/* ------------------------------------------------------------------------------------- the locked world */

static quern_query *open_query;

static void call_world_for_entities(quern_entity entity)
{
    quern_entity created;
    quern_result code = QUERN_ERROR_WORLD_LOCKED;
    assert_refused(NULL, code, quern_entity_create(world, &created));
    assert_refused(NULL, code, quern_entity_create_with(world, &visits, NULL, 1, NULL));
    assert_refused(NULL, code, quern_entity_destroy(world, entity));
    assert_refused(NULL, code, quern_entity_add(world, entity, wide, NULL));
    assert_refused(NULL, code, quern_entity_remove(world, entity, visits));
    assert_refused(NULL, code, quern_entity_set(world, entity, visits, &(uint64_t){1}));
    assert_refused_value(NULL, quern_entity_get(world, entity, visits));
    assert_refused_value(NULL, quern_entity_has(world, entity, visits));
}

static void call_world_for_the_rest(void)
{
    quern_component_def type = {0};
    quern_resource_def resource_def = {0};
    quern_query_def query_def = {0};
    quern_component component;
    quern_resource resource;
    quern_query *query;
    type.name = resource_def.name = "new";
    type.size_bytes = resource_def.size_bytes = 4;
    query_def.terms[0] = quern_term_read(visits);
    quern_result code = QUERN_ERROR_WORLD_LOCKED;
    assert_refused(NULL, code, quern_component_register(world, &type, &component));
    assert_refused(NULL, code, quern_resource_register(world, &resource_def, &resource));
    assert_refused(NULL, code, quern_query_create(world, &query_def, &query));
    assert_refused(NULL, code, quern_query_iterate(open_query).result);
    assert_refused(NULL, code, quern_schedule_run(running, NULL, 0));
    assert_refused(NULL, code, quern_schedule_compile(running));
    assert_refused_value(NULL, quern_query_count(open_query));
    assert_refused_value(NULL, quern_resource_get(world, score));
    assert_refused_value(NULL, quern_world_hash(world));
    assert_message_has("quern_world_hash");
    assert_refused(NULL, code, quern_world_validate(world));
    assert_message_has("quern_world_validate");
}

static void call_world(quern_context *context, const quern_view *view)
{
    call_world_for_entities(view->entities[0]);
    if (view->ordinal == 0) call_world_for_the_rest();
}

Test(frame, calls_on_the_world_are_refused_inside_systems)
{
    quern_term term = quern_term_read(visits);
    open_query = setup_query(world, &term, 1);
    quern_system_def def = crowd_def("meddler", call_world);
    running = schedule_of(&def, NULL);
    uint64_t hash = quern_world_hash(world);
    must_run(running, jobs);
    must_run(running, NULL);
    cr_assert_eq(quern_world_hash(world), hash);
    assert_valid(world);
    quern_schedule_destroy(running);
    quern_query_destroy(open_query);
}

/* -------------------------------------------------------------------------------------- nested loops */

static void sum_range(void *argument, uint32_t begin, uint32_t end, uint32_t worker_index)
{
    for (uint32_t i = begin; i < end; i++)
        atomic_fetch_add_explicit((_Atomic uint64_t *)argument, i, memory_order_relaxed);
}

static void loop_inside(quern_context *context, const quern_view *view)
{
    _Atomic uint64_t sum = 0;
    uint32_t worker_index = quern_context_worker_index(context);
    must(quern_jobs_parallel_for(quern_context_jobs(context), 1000, 0, sum_range, (void *)&sum));
    cr_assert_eq(sum, 499500u);
    cr_assert_eq(quern_context_user_data(context), &user_data, "the context is still this system's");
    cr_assert_eq(quern_context_worker_index(context), worker_index);
    uint64_t *counts = quern_view_write(view, 0);
    for (uint32_t i = 0; i < view->count; i++)
        counts[i]++;
    spawn_later(context);
}

Test(frame, a_system_may_run_a_parallel_loop)
{
    quern_system_def def = crowd_def("looper", loop_inside), other = system_def("other", loop_inside);
    /* runs in parallel with the tested system, on its own component */
    quern_term term = quern_term_write(wide);
    other.terms[0] = term;
    def.user_data = other.user_data = &user_data;
    quern_system system;
    quern_schedule *schedule = schedule_of(&def, &system);
    setup_system(schedule, &other);
    must_run(schedule, jobs);
    assert_visited(1);
    quern_system_stats stats;
    must(quern_schedule_get_system_stats(schedule, system, &stats));
    cr_assert_eq(stats.command_count, stats.view_count * 2u, "each recorded into its own stream");
    quern_schedule_destroy(schedule);
}

/* -------------------------------------------------------------------------------------- statistics */

Test(frame, statistics_count_the_events_of_the_frame)
{
    quern_schedule_def def = {.timing = true};
    quern_schedule *schedule;
    must(quern_schedule_create(world, &def, &schedule));
    quern_system_def visitor = crowd_def("visitor", visit);
    visitor.begin = spawn_later;
    quern_system system = setup_system(schedule, &visitor);
    for (uint64_t frame = 0; frame < 3; frame++) {
        must_run(schedule, jobs);
        quern_frame_stats all = stats_of_frame(schedule);
        cr_assert_eq(all.frame_index, frame);
        cr_assert_gt(all.time_ns, 0u);
        cr_assert_leq(all.sync_ns, all.time_ns);
        cr_assert_eq(all.command_count, 2u);
        cr_assert_eq(all.created_count, 1u);
        quern_system_stats stats;
        must(quern_schedule_get_system_stats(schedule, system, &stats));
        cr_assert_str_eq(stats.name, "visitor");
        cr_assert_eq(stats.phase, 0u);
        cr_assert_gt(stats.time_ns, 0u);
        cr_assert_eq(stats.command_count, 2u);
        cr_assert_eq(stats.entity_count, (uint64_t)CROWD);
    }
    quern_schedule_destroy(schedule);
}

/* -------------------------------------------------------------------------- waiting inside a system */

enum { WAITERS = 2, OTHERS = 6 };

static quern_counter outside; /* held until the other views have run */
static _Atomic uint32_t others_count, waiting_count, lost_count;
static _Atomic uint32_t waiting_on[WAITERS], nested_count; /* indexed by worker */

static void record_create(quern_context *context)
{
    cr_assert_neq(record_entity(quern_context_commands(context)).bits, 0u);
}

static bool waits_in_loop; /* waits inside a loop, with the loop's offers in the worker's deque */

static void wait_at_first(void *argument, uint32_t begin, uint32_t end, uint32_t worker_index)
{
    if (begin == 0) quern_jobs_wait(argument, &outside);
}

/* Waits for `outside`, alone or within a loop. Its worker must not run another system meanwhile. */
static void wait_for_others(quern_context *context, const quern_view *view)
{
    const void *own = quern_context_user_data(context);
    uint32_t worker_index = quern_context_worker_index(context);
    record_create(context);
    waiting_count++;
    nested_count += waiting_on[worker_index]++;
    quern_jobs *pool = quern_context_jobs(context);
    if (waits_in_loop)
        quern_jobs_parallel_for(pool, 2, 1, wait_at_first, pool);
    else
        quern_jobs_wait(pool, &outside);
    waiting_on[worker_index]--;
    if (quern_context_user_data(context) != own) lost_count++;
    record_create(context);
}

static void run_beside(quern_context *context, const quern_view *view)
{
    record_create(context);
    nested_count += waiting_on[quern_context_worker_index(context)];
    others_count++;
}

/* Releases the counter once all waiters wait and all other systems have run. After a time limit it
 * releases the counter anyway: if all workers wait, the other systems run only afterwards. */
static void *release_outside(void *argument)
{
    struct timespec pause = {.tv_nsec = 1000000};
    for (uint32_t i = 0; i < 300 && (others_count < OTHERS || waiting_count < WAITERS); i++)
        nanosleep(&pause, NULL);
    must(quern_counter_release(jobs, &outside));
    return NULL;
}

static void run_waiting_frame(quern_schedule *schedule)
{
    pthread_t thread;
    others_count = waiting_count = 0;
    quern_counter_hold(&outside);
    cr_assert_eq(pthread_create(&thread, NULL, release_outside, NULL), 0);
    must_run(schedule, jobs);
    pthread_join(thread, NULL);
}

Test(frame, waiting_system_keeps_its_context, .timeout = 120)
{
    static const char *const system_names[WAITERS + OTHERS] = {"w0", "w1", "o0", "o1",
                                                               "o2", "o3", "o4", "o5"};
    quern_jobs_destroy(jobs);
    jobs = setup_jobs(WAITERS);
    quern_schedule *schedule = setup_schedule(world);
    quern_system systems[WAITERS + OTHERS];
    for (uint32_t i = 0; i < WAITERS + OTHERS; i++) {
        systems[i] = make_system(schedule, system_names[i], i < WAITERS ? wait_for_others : run_beside,
                                 .user_data = (void *)(uintptr_t)system_names[i]);
    }
    for (uint32_t frame = 0; frame < 10; frame++) {
        waits_in_loop = frame >= 5;
        run_waiting_frame(schedule);
        cr_assert_eq(lost_count, 0u);
        cr_assert_eq(nested_count, 0u, "a system began on a worker in the middle of another");
        for (uint32_t i = 0; i < WAITERS + OTHERS; i++) {
            quern_system_stats stats;
            must(quern_schedule_get_system_stats(schedule, systems[i], &stats));
            cr_assert_eq(stats.command_count, i < WAITERS ? 2u : 1u, "%s", stats.name);
        }
    }
    quern_schedule_destroy(schedule);
}
