/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Test labels: threaded */
#include "tests/support/fixture.h"

#include <kit/live_internal.h>
#include <quern/kit/live.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#if defined(_WIN32)
#include <direct.h>
#include <process.h>
#include <windows.h>

#include <psapi.h>
#endif

/* Modules that are loaded, reloaded, refused and removed: tests/kit/live/module.c in its variants, and module.cpp. The
 * variants are files; a test "compiles" one by copying it to the path that is watched. */

static quern_schedule *schedule;
static quern_jobs *jobs;
static quern_live *live;
static char folder[128], game[160], more[160];
static char last_message[1024];
static int error_count;

static void on_message(void *user_data, quern_log_level level, const char *message)
{
    (void)user_data;
    error_count += level == QUERN_LOG_ERROR;
    (void)snprintf(last_message, sizeof last_message, "%s", message);
    if (getenv("SHOW")) fprintf(stderr, "%s\n", message);
}

static void begin_live(const quern_live_def *options)
{
    quern_live_def def = options != NULL ? *options : (quern_live_def){.disable_settling = true};
    def.world = world;
    def.schedule = schedule;
    def.handler = on_message;
    must(quern_live_create(&def, &live));
}

static void make_folder(void)
{
#if defined(_WIN32)
    (void)snprintf(folder, sizeof folder, "quern-test-live-%d", _getpid());
    cr_assert_eq(_mkdir(folder), 0);
#else
    (void)snprintf(folder, sizeof folder, "/tmp/quern-test-live-XXXXXX");
    cr_assert_not_null(mkdtemp(folder));
#endif
}

static void open_live(void)
{
    if (world == NULL) world = setup_world();
    must(quern_schedule_create(world, NULL, &schedule));
    must(quern_jobs_create(&(quern_jobs_def){.thread_count = 3}, &jobs));
    make_folder();
    (void)snprintf(game, sizeof game, "%s/libgame.so", folder);
    (void)snprintf(more, sizeof more, "%s/more.so", folder);
    begin_live(NULL);
}

static void close_live(void)
{
    quern_live_destroy(live);
    quern_schedule_destroy(schedule);
    close_valid_world();
    quern_jobs_destroy(jobs);
    (void)remove(game);
    (void)remove(more);
    assert_at_end(rmdir(folder) == 0);
}

TestSuite(live, .init = open_live, .fini = close_live);

static failing_allocator *memory;

static void open_failing(void)
{
    memory = open_failing_world();
    open_live();
    quern_live_destroy(live);
    begin_live(
        &(quern_live_def){.disable_settling = true, .allocator = failing_allocator_interface(memory)});
}

TestSuite(live_memory, .init = open_failing, .fini = close_live, .timeout = 300);

/* Writes bytes of a file to a path, as a linker does if `in_place`, else by renaming. */
static void put_bytes(const char *path, const char *bytes, size_t count, bool in_place)
{
    char fresh[200];
#if defined(_WIN32)
    in_place = true; /* rename does not replace files there */
#endif
    (void)snprintf(fresh, sizeof fresh, "%s%s", path, in_place ? "" : ".new");
    FILE *file = quern__live_open_file(fresh, "wb");
    cr_assert_not_null(file);
    cr_assert_eq(fwrite(bytes, 1, count, file), count);
    cr_assert_eq(fclose(file), 0);
    if (!in_place) cr_assert_eq(rename(fresh, path), 0);
}

/* Copies `share` of the bytes of a variant to a path. */
static void put_part(const char *path, const char *variant, double share)
{
    enum { MOST_BYTES = 1 << 24 };
    char source[512];
    (void)snprintf(source, sizeof source, "%s/%s.so", LIVE_MODULES, variant);
    FILE *file = fopen(source, "rb");
    cr_assert_not_null(file, "%s", source);
    char *bytes = malloc(MOST_BYTES);
    cr_assert_not_null(bytes);
    const size_t count = fread(bytes, 1, MOST_BYTES, file);
    cr_assert(count > 0 && count < MOST_BYTES);
    (void)fclose(file);
    put_bytes(path, bytes, (size_t)((double)count * share), share < 1);
    free(bytes);
}

static void put(const char *path, const char *variant)
{
    put_part(path, variant, 1);
}

static void frame(void)
{
    must(quern_schedule_run(schedule, jobs, 0.25));
}

/* Reloads what has changed, and expects that number of modules. */
static void update(uint32_t expected_count)
{
    uint32_t count;
    must(quern_live_update(live, &count));
    cr_assert_eq(count, expected_count);
}

/* Expects that an update fails, and that the message contains a text. */
static void update_is_refused(quern_result expected, const char *text)
{
    const uint64_t hash = quern_world_hash(world);
    uint32_t count = 7;
    const int errors = error_count;
    const quern_result result = quern_live_update(live, &count);
    cr_assert_eq(result, expected, "%s: %s", quern_result_string(result), quern_error_message());
    cr_expect_eq(count, 0);
    cr_expect_not_null(strstr(quern_error_message(), text), "%s", quern_error_message());
    cr_expect_not_null(strstr(quern_error_message(), "quern_live_update: module '"), "%s",
                       quern_error_message());
    cr_expect_eq(error_count, errors + 1, "each failure is told once");
    cr_expect_eq(quern_world_hash(world), hash);
    update(0); /* not tried again before the file changes */
}

static quern_live_info info(uint32_t i)
{
    quern_live_info out;
    must(quern_live_get_info(live, i, &out));
    return out;
}

/* A field of the resource Told, by number. */
enum { MOVE_STEP, COUNT_TOTAL, LEAVE_COUNT, OWNED_COUNT, COPIED_COUNT, SET_BY };
static int32_t *told_values(void)
{
    return quern_resource_get(world, quern_resource_find(world, "Told"));
}
static int32_t told(int field)
{
    return told_values()[field];
}

/* Creates an entity with a Place whose x and y are the last two of its fields. */
static quern_entity create_place(int32_t x, int32_t y)
{
    const quern_component place = quern_component_find(world, "Place");
    uint32_t bytes;
    must(quern_component_get_size(world, place, &bytes));
    const int32_t wide[] = {0, x, y};
    const void *value = bytes == sizeof wide ? wide : wide + 1;
    quern_entity entity;
    must(quern_entity_create_with(world, &place, &value, 1, &entity));
    return entity;
}

static int32_t value_of(quern_entity entity, const char *field)
{
    char text[64];
    quern_text_buffer buffer = {text, sizeof text, 0};
    char path[32];
    (void)snprintf(path, sizeof path, "Place.%s", field);
    must(quern_entity_get_text(world, entity, path, quern_sink_text(&buffer)));
    return (int32_t)strtol(text, NULL, 10);
}

/* Returns the number of copies of modules that the process has mapped. */
static int mapped_count(void)
{
#if defined(_WIN32)
    HMODULE modules[256];
    DWORD bytes = 0;
    char name[1024];
    int loaded_count = 0;
    cr_assert(K32EnumProcessModules(GetCurrentProcess(), modules, sizeof modules, &bytes));
    for (DWORD i = 0; i < bytes / sizeof *modules; i++)
        loaded_count +=
            GetModuleFileNameA(modules[i], name, sizeof name) > 0 && strstr(name, "quern-live-") != NULL;
    return loaded_count;
#else
    char line[1024], seen[16][256];
    int count = 0;
    FILE *file = fopen("/proc/self/maps", "r");
    if (file == NULL) return -1;
    while (fgets(line, sizeof line, file) != NULL) {
        const char *copy = strstr(line, "/quern-live-");
        if (copy == NULL) continue;
        bool is_new = true;
        for (int i = 0; i < count; i++)
            is_new = is_new && strcmp(seen[i], copy) != 0;
        if (is_new && count < 16) (void)snprintf(seen[count++], sizeof seen[0], "%s", copy);
    }
    (void)fclose(file);
    return count;
#endif
}

/* Expects that only so many copies are mapped, where the system tells it. */
static void expect_mapped(int expected)
{
    const int count = mapped_count();
    if (count >= 0) cr_expect_eq(count, expected, "%d copies of modules are mapped", count);
}

/* ------------------------------------------------------------------------------------------- reloading */

Test(live, a_module_runs_and_is_reloaded)
{
    put(game, "first");
    must(quern_live_add(live, game, NULL));
    cr_expect_str_eq(info(0).name, "game");
    cr_expect_eq(info(0).added_count, 3);
    const quern_entity entity = create_place(1, 0);
    frame();
    cr_expect_eq(value_of(entity, "x"), 4); /* (1 + 1) * 2 */
    cr_expect_eq(told(MOVE_STEP), 1);
    update(0);
    put(game, "faster");
    update(1);
    cr_expect_eq(info(0).version, 2);
    cr_expect_eq(info(0).replaced_count, 3);
    cr_expect_eq(info(0).added_count, 0);
    cr_expect_eq(info(0).removed_count, 0);
    cr_expect_eq(told(LEAVE_COUNT), 1);
    cr_expect_eq(told(OWNED_COUNT), 1);
    expect_mapped(1);
    frame();
    cr_expect_eq(value_of(entity, "x"), 28); /* (4 + 10) * 2 */
    cr_expect_eq(told(MOVE_STEP), 10);
    cr_expect_eq(told(COUNT_TOTAL), 2);
}

Test(live, a_system_keeps_its_handle_and_state_and_a_new_one_its_place)
{
    put(game, "faster");
    must(quern_live_add(live, game, NULL));
    const quern_system move = quern_schedule_find_system(schedule, "move");
    const quern_entity entity = create_place(1, 0);
    must(quern_schedule_set_system_enabled(schedule, move, false));
    put(game, "wider");
    update(1);
    cr_expect_eq(quern_schedule_find_system(schedule, "move").bits, move.bits);
    cr_expect_not(quern_schedule_is_system_enabled(schedule, move));
    must(quern_schedule_set_system_enabled(schedule, move, true));
    cr_expect_eq(info(0).added_count, 1);
    cr_expect_eq(info(0).converted_count, 3);
    cr_expect_not_null(strstr(info(0).report, "component 'Place': 1 values converted, 1 fields added"),
                       "%s", info(0).report);
    frame();
    /* lift stands behind move and before last, as load adds them, and not at the end */
    cr_expect_eq(value_of(entity, "y"), 11);
    cr_expect_eq(value_of(entity, "x"), 22);
    cr_expect_eq(value_of(entity, "z"), 0);
    cr_expect_str_eq(quern_live_system_name(live, 0, 1), "lift");
}

Test(live, a_program_that_always_had_the_code_has_the_same_hash)
{
    static const char *const variants[] = {"first", "faster", "wider", "faster", "leaner", "wider"};
    put(game, "first");
    must(quern_live_add(live, game, NULL));
    for (int32_t i = 0; i < 700; i++)
        (void)create_place(i, -i);
    for (size_t step = 0; step < sizeof variants / sizeof variants[0]; step++) {
        quern_byte_buffer saved = {0};
        must(quern_world_save(world, quern_sink_bytes(&saved), NULL));
        if (step > 0) {
            put(game, variants[step]);
            update(1);
        }
        frame();
        frame();
        quern_world *apart = setup_world();
        quern_schedule *other_schedule;
        quern_live *other_live;
        must(quern_schedule_create(apart, NULL, &other_schedule));
        must(quern_live_create(
            &(quern_live_def){.world = apart, .schedule = other_schedule, .handler = on_message},
            &other_live));
        must(quern_live_add(other_live, game, NULL));
        must(quern_world_load(
            apart, (quern_source){.memory = saved.bytes, .memory_bytes = saved.size_bytes}, NULL, NULL));
        must(quern_schedule_run(other_schedule, NULL, 0.25));
        must(quern_schedule_run(other_schedule, NULL, 0.25));
        cr_expect_eq(quern_world_hash(apart), quern_world_hash(world), "step %zu", step);
        quern_live_destroy(other_live);
        quern_schedule_destroy(other_schedule);
        quern_world_destroy(apart);
        quern_byte_buffer_release(&saved);
    }
}

Test(live, commands_that_wait_are_applied_before_values_are_converted)
{
    put(game, "first");
    must(quern_live_add(live, game, NULL));
    const quern_entity entity = create_place(1, 2);
    must(quern_commands_set(quern_world_commands(world), entity, quern_component_find(world, "Place"),
                            &(int32_t[]){5, 6}));
    put(game, "wider");
    update(1);
    cr_expect_eq(value_of(entity, "x"), 5);
    cr_expect_eq(value_of(entity, "y"), 6);
    cr_expect_eq(value_of(entity, "z"), 0);
}

Test(live, values_with_hooks_outlive_the_code_that_made_them)
{
    put(game, "first");
    must(quern_live_add(live, game, NULL));
    const quern_component components[] = {quern_component_find(world, "Place"),
                                          quern_component_find(world, "Name")};
    quern_entity entity =
        setup_entity_with(world, components, 2); /* the default value: copied by the hook */
    cr_expect_gt(told(COPIED_COUNT), 0);
    for (int i = 0; i < 20; i++) {
        put(game, i % 2 == 0 ? "faster" : "first");
        update(1);
        frame();
        const quern_entity clone = setup_entity_with(world, components, 2);
        if (i % 3 == 0) must(quern_entity_destroy(world, entity));
        entity = clone;
    }
    cr_expect_eq(told(LEAVE_COUNT), 20);
    expect_mapped(1);
}

Test(live, entity_hooks_are_those_of_the_version_that_runs)
{
    put(game, "first");
    must(quern_live_add(live, game, NULL));
    const quern_entity entity =
        setup_entity_with(world, (const quern_component[]){quern_component_find(world, "Name")}, 1);
    cr_expect_eq(told(SET_BY), 1);
    for (int i = 0; i < 4; i++) {
        put(game, i % 2 == 0 ? "faster" : "first");
        update(1);
        cr_expect_eq(told(SET_BY), i % 2 == 0 ? 1 : 2, "a reload calls no hook");
        must(quern_entity_mark_changed(world, entity, quern_component_find(world, "Name")));
        cr_expect_eq(told(SET_BY), i % 2 == 0 ? 2 : 1);
    }
    expect_mapped(1);
}

Test(live, a_library_stays_while_a_type_has_hooks_in_it)
{
    put(game, "first");
    must(quern_live_add(live, game, NULL));
    const quern_entity entity =
        setup_entity_with(world, (const quern_component[]){quern_component_find(world, "Name")}, 1);
    put(game, "leaner"); /* does not register Name */
    update(1);
    cr_expect_eq(info(0).removed_count, 1);
    cr_expect_eq(quern_schedule_find_system(schedule, "count").bits, 0);
    expect_mapped(2);
    must(quern_entity_destroy(world, entity)); /* by the hook of the first version */
    put(game, "faster");                       /* registers Name again */
    update(1);
    expect_mapped(1);
}

/* -------------------------------------------------------------------------------------------- refusals */

Test(live, a_module_that_refuses_itself_changes_nothing)
{
    put(game, "first");
    must(quern_live_add(live, game, NULL));
    const quern_entity entity = create_place(1, 0);
    put(game, "refusing");
    update_is_refused(QUERN_ERROR_UNAVAILABLE, "the module needs another planet");
    cr_expect_eq(info(0).version, 1);
    cr_expect_not_null(strstr(info(0).error, "another planet"));
    expect_mapped(1);
    frame();
    cr_expect_eq(value_of(entity, "x"), 4); /* the step is still that of the first version */
    put(game, "wider");
    update(1);
    cr_expect_str_eq(info(0).error, "");
}

/* For the inspector, modules are a JSON list. */
Test(live, modules_are_written_as_json)
{
    char text[2048];
    quern_text_buffer buffer = {text, sizeof text, 0};
    must(quern_live_write_json(live, quern_sink_text(&buffer)));
    cr_expect_str_eq(text, "[]");
    put(game, "first");
    must(quern_live_add(live, game, "a \"game\""));
    put(game, "faster");
    update(1);
    put(game, "refusing");
    update_is_refused(QUERN_ERROR_UNAVAILABLE, "the module needs another planet");
    buffer.length_bytes = 0;
    must(quern_live_write_json(live, quern_sink_text(&buffer)));
    static const char *const parts[] = {
        "[{\"module\":\"a \\u0022game\\u0022\",\"version\":2,\"state\":\"refused\",\"systems\":[\"",
        "\"last reload\":\"3 systems replaced, 0 added, 0 removed; ", "\"error\":\"", "another planet",
        ".so\"}]"};
    const char *at = text;
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        at = strstr(at, parts[i]);
        cr_assert_not_null(at, "%s is not in %s", parts[i], text);
    }
    quern_text_buffer none = {NULL, 0, 0};
    cr_expect_eq(quern_live_write_json(NULL, quern_sink_text(&none)), QUERN_ERROR_NULL_ARGUMENT);
    cr_expect_eq(quern_live_write_json(live, (quern_sink){0}), QUERN_ERROR_NULL_ARGUMENT);
    cr_expect_eq(quern_live_write_json(live, quern_sink_file(fopen("/dev/full", "wb"))), QUERN_ERROR_IO);
}

Test(live, a_circle_of_systems_changes_nothing)
{
    put(game, "first");
    must(quern_live_add(live, game, NULL));
    const quern_entity entity = create_place(1, 0);
    put(game, "circular");
    update_is_refused(QUERN_ERROR_SCHEDULE_CONFLICT, "last");
    frame();
    cr_expect_eq(value_of(entity, "x"), 4);
    cr_expect_eq(told(LEAVE_COUNT), 0);
    cr_expect_eq(told(OWNED_COUNT), 1); /* that of the refused version */
}

static void run_nothing(quern_context *context)
{
    (void)context;
}

Test(live, a_system_that_the_program_names_is_not_removed)
{
    put(game, "first");
    must(quern_live_add(live, game, NULL));
    must(quern_schedule_add_system(
        schedule, &(quern_system_def){.name = "own", .begin = run_nothing, .after = {"count"}}, NULL));
    const quern_system count = quern_schedule_find_system(schedule, "count");
    const quern_system before = quern_schedule_previous_system(schedule, count);
    put(game, "leaner");
    update_is_refused(QUERN_ERROR_UNKNOWN_SYSTEM, "'count'");
    cr_expect_eq(
        quern_schedule_previous_system(schedule, quern_schedule_find_system(schedule, "count")).bits,
        before.bits);
    frame();
    cr_expect_eq(told(COUNT_TOTAL), 1);
    cr_expect_eq(quern_live_remove(live, "game"), QUERN_ERROR_UNKNOWN_SYSTEM);
    must(quern_schedule_remove_system(schedule, quern_schedule_find_system(schedule, "own")));
    must(quern_live_reload(live, "game"));
}

Test(live, removed_systems_come_back_in_their_order)
{
    put(more, "pair");
    must(quern_live_add(live, more, NULL));
    put(more, "turned"); /* lists them in the other order; those that stay keep their places */
    update(1);
    must(quern_schedule_add_system(
        schedule, &(quern_system_def){.name = "own", .begin = run_nothing, .after = {"left"}}, NULL));
    must(quern_schedule_set_system_enabled(schedule, quern_schedule_find_system(schedule, "right"), false));
    put(more, "other"); /* has neither */
    update_is_refused(QUERN_ERROR_UNKNOWN_SYSTEM, "'left'");
    const quern_system left = quern_schedule_find_system(schedule, "left"),
                       right = quern_schedule_find_system(schedule, "right");
    cr_expect_eq(quern_schedule_previous_system(schedule, left).bits, 0);
    cr_expect_eq(quern_schedule_previous_system(schedule, right).bits, left.bits);
    cr_expect(quern_schedule_is_system_enabled(schedule, left));
    cr_expect_not(quern_schedule_is_system_enabled(schedule, right));
}

Test(live, two_definitions_of_one_type_are_refused)
{
    put(game, "first");
    must(quern_live_add(live, game, NULL));
    put(game, "twice");
    update_is_refused(QUERN_ERROR_LAYOUT_MISMATCH,
                      "component 'Place' has another definition in module 'game'");
}

Test(live, elements_without_fields_are_another_definition)
{
    put(game, "first");
    must(quern_live_add(live, game, NULL));
    put(game, "bare");
    update_is_refused(QUERN_ERROR_LAYOUT_MISMATCH,
                      "component 'Pack' has another definition in module 'game'");
}

Test(live, files_that_are_no_modules_are_refused)
{
    cr_expect_eq(quern_live_add(live, game, NULL), QUERN_ERROR_IO); /* there is no file */
    put(game, "empty");
    cr_expect_eq(quern_live_add(live, game, NULL), QUERN_ERROR_UNAVAILABLE);
    cr_expect_not_null(strstr(quern_error_message(), "exports no function quern_live_module_entry"), "%s",
                       quern_error_message());
    put_bytes(game, "#!/bin/sh\n", 10, false);
    cr_expect_eq(quern_live_add(live, game, NULL), QUERN_ERROR_UNAVAILABLE);
    cr_expect_eq(quern_live_count(live), 0);
    expect_mapped(0);
    put(game, "first");
    must(quern_live_add(live, game, NULL));
    put_bytes(game, "no library", 10, false);
    update_is_refused(QUERN_ERROR_UNAVAILABLE, "game");
    (void)remove(game); /* a linker removes the file before it writes it */
    update(0);
    put(game, "faster");
    update(1);
}

Test(live, paths_are_utf8)
{
    char path[200];
    (void)snprintf(path, sizeof path, "%s/sp\xc3\xa4t.so", folder);
    put(path, "first");
    must(quern_live_add(live, path, NULL));
    put(path, "faster");
    update(1);
    cr_expect_str_eq(info(0).name, "sp\xc3\xa4t");
    must(quern_live_remove(live, info(0).name));
    quern__live_remove_file(path);
}

Test(live, a_file_that_is_still_written_is_not_loaded)
{
    put(game, "first");
    must(quern_live_add(live, game, NULL));
    for (int percent = 0; percent < 100; percent += 15) {
        put_part(game, "faster", percent / 100.0);
        if (percent > 0)
            update_is_refused(QUERN_ERROR_IO, "not whole");
        else
            update(0); /* an empty file */
    }
    put(game, "faster");
    update(1);
}

Test(live, a_file_is_loaded_when_it_has_settled)
{
    quern_live_destroy(live);
    begin_live(&(quern_live_def){.settle_ms = 40});
    put(game, "first");
    must(quern_live_add(live, game, NULL));
    put(game, "faster");
    update(0); /* has just changed */
    uint32_t count = 0;
    for (int i = 0; count == 0; i++) {
        cr_assert_lt(i, 3000, "the change was not noticed");
        must(quern_live_update(live, &count));
        (void)usleep(10000);
    }
}

Test(live, wrong_calls_are_refused)
{
    quern_live *none;
    cr_expect_eq(quern_live_create(NULL, &none), QUERN_ERROR_NULL_ARGUMENT);
    cr_expect_eq(quern_live_create(&(quern_live_def){.world = world}, &none), QUERN_ERROR_NULL_ARGUMENT);
    const quern_live_def lost = {.world = world, .schedule = schedule, .folder = "/nowhere/at/all"};
    cr_expect_eq(quern_live_create(&lost, &none), QUERN_ERROR_IO);
    cr_expect_eq(quern_live_add(live, NULL, NULL), QUERN_ERROR_NULL_ARGUMENT);
    cr_expect_eq(quern_live_add(live, game, "a/b"), QUERN_ERROR_INVALID_ARGUMENT);
    cr_expect_eq(quern_live_add(live, game, ""), QUERN_ERROR_INVALID_ARGUMENT);
    cr_expect_eq(quern_live_remove(live, "game"), QUERN_ERROR_INVALID_ARGUMENT);
    cr_expect_eq(quern_live_reload(live, "game"), QUERN_ERROR_INVALID_ARGUMENT);
    cr_expect_eq(quern_live_update(NULL, NULL), QUERN_ERROR_NULL_ARGUMENT);
    cr_expect_eq(quern_live_count(NULL), 0);
    cr_expect_null(quern_live_system_name(live, 0, 0));
    put(game, "first");
    must(quern_live_add(live, game, "one"));
    cr_expect_eq(quern_live_add(live, game, "one"), QUERN_ERROR_DUPLICATE_NAME);
    cr_expect_eq(quern_live_revert(live, "one"), QUERN_ERROR_UNAVAILABLE);
    cr_expect_eq(quern_live_get_info(live, 1, &(quern_live_info){0}), QUERN_ERROR_INVALID_ARGUMENT);
}

static void update_inside(quern_context *context)
{
    (void)context;
    cr_assert_eq(quern_live_update(live, NULL), QUERN_ERROR_WORLD_LOCKED, "%s", quern_error_message());
    cr_assert_eq(quern_live_remove(live, "game"), QUERN_ERROR_WORLD_LOCKED);
}

Test(live, a_frame_is_not_interrupted)
{
    put(game, "first");
    must(quern_live_add(live, game, NULL));
    must(quern_schedule_add_system(
        schedule,
        &(quern_system_def){.name = "inside", .begin = update_inside, .flags = QUERN_SYSTEM_EXCLUSIVE},
        NULL));
    put(game, "faster");
    frame();
    cr_expect_eq(info(0).version, 1);
    must(quern_schedule_remove_system(schedule, quern_schedule_find_system(schedule, "inside")));
    must(quern_live_reload(live, "game"));
    cr_expect_eq(info(0).version, 2);
}

/* Reloads the module, from the first variant to one with another layout and a system more, with failing allocations, until
 * it succeeds. If `all_fail`, all allocations from one on fail, also those that take the reload back. */
static void reload_without_memory(bool all_fail)
{
    put(game, "first");
    must(quern_live_add(live, game, NULL));
    const quern_entity entity = create_place(1, 0);
    uint64_t attempt_count = 0, undone_count = 0;
    for (bool has_failed = true; has_failed;) {
        const uint64_t hash = quern_world_hash(world),
                       failed_before = failing_allocator_failed_count(memory);
        attempt_count++;
        put(game, "wider");
        if (all_fail)
            failing_allocator_fail_from(memory, attempt_count);
        else
            failing_allocator_fail_at(memory, attempt_count);
        error_count = 0;
        const quern_result result = quern_live_reload(live, "game");
        failing_allocator_heal(memory);
        has_failed = failing_allocator_failed_count(memory) > failed_before;
        if (result == QUERN_OK && !has_failed) break;
        if (result != QUERN_OK) {
            cr_assert_eq(result, QUERN_ERROR_OUT_OF_MEMORY, "call %llu: %s",
                         (unsigned long long)attempt_count, quern_error_message());
            if (error_count == 0) cr_assert_eq(quern_world_hash(world), hash);
            if (!all_fail && error_count > 0) undone_count++;
            told_values()[MOVE_STEP] = 0;
            frame();
            if (error_count == 0) cr_assert_eq(told(MOVE_STEP), 1, "the old code runs");
        }
        put(game, "first");
        must(quern_live_reload(live, "game"));
        told_values()[MOVE_STEP] = 0;
        frame();
        cr_assert_eq(told(MOVE_STEP), 1);
        expect_mapped(1);
    }
    cr_expect_leq(undone_count, 3, "one failed allocation seldom makes two failures");
    cr_expect_gt(attempt_count, 10, "%llu attempts", (unsigned long long)attempt_count);
    cr_expect_eq(value_of(entity, "z"), 0);
    frame();
    cr_expect_eq(told(MOVE_STEP), 10);
}

Test(live_memory, a_failed_allocation_leaves_the_old_code_running)
{
    reload_without_memory(false);
}

Test(live_memory, the_program_goes_on_if_a_reload_cannot_be_taken_back)
{
    reload_without_memory(true);
}

Test(live, a_system_that_the_program_removed_is_added_again)
{
    put(game, "first");
    must(quern_live_add(live, game, NULL));
    must(quern_schedule_remove_system(schedule, quern_schedule_find_system(schedule, "last")));
    put(game, "faster");
    update(1);
    cr_expect_eq(info(0).added_count, 1);
    cr_expect_eq(info(0).replaced_count, 2);
    must(quern_schedule_remove_system(schedule, quern_schedule_find_system(schedule, "last")));
    must(quern_live_remove(live, "game"));
    cr_expect_eq(quern_schedule_system_count(schedule), 0);
}

/* --------------------------------------------------------------------------------------- several modules */

Test(live, modules_share_a_type)
{
    put(game, "first");
    put(more, "other");
    must(quern_live_add(live, game, NULL));
    must(quern_live_add(live, more, NULL));
    const quern_entity entity = create_place(3, 4);
    frame();
    cr_expect_eq(told(COUNT_TOTAL), 1001);
    put(game, "wider"); /* more has the old layout */
    update_is_refused(QUERN_ERROR_LAYOUT_MISMATCH,
                      "component 'Place' has another definition in module 'more'");
    put(more, "foreign"); /* the file of game, which was refused, counts again */
    update(2);
    cr_expect_eq(value_of(entity, "z"), 0);
    cr_expect_eq(info(0).version, 2);
    cr_expect_eq(info(1).version, 2);
    frame();
    must(quern_live_remove(live, "game"));
    cr_expect_eq(quern_schedule_find_system(schedule, "move").bits, 0);
    cr_expect_str_eq(info(0).name, "more");
    frame();
    put(more, "other"); /* alone it may change the layout now */
    update(1);
    frame();
    cr_expect_eq(told(COUNT_TOTAL), 1001 + 1001 + 1000 + 1000);
}

Test(live, one_of_several_changed_modules_may_fail)
{
    put(game, "first");
    put(more, "other");
    must(quern_live_add(live, game, NULL));
    must(quern_live_add(live, more, NULL));
    put(game, "refusing");
    put(more, "other");
    uint32_t count;
    cr_expect_eq(quern_live_update(live, &count), QUERN_ERROR_UNAVAILABLE);
    cr_expect_eq(count, 1);
    cr_expect_eq(info(0).version, 1);
    cr_expect_eq(info(1).version, 2);
}

Test(live, modules_cannot_bring_one_type_in_two_layouts)
{
    put(game, "first");
    put(more, "other");
    must(quern_live_add(live, game, NULL));
    must(quern_live_add(live, more, NULL));
    put(game, "newer");
    put(more, "rival");
    uint32_t count;
    cr_expect_eq(quern_live_update(live, &count), QUERN_ERROR_LAYOUT_MISMATCH);
    cr_expect_not_null(strstr(quern_error_message(), "'Fresh'"), "%s", quern_error_message());
    cr_expect_eq(count, 1, "the first one does not need the other");
    cr_expect_eq(info(1).version, 1);
}

Test(live, modules_cannot_share_a_system)
{
    put(game, "first");
    put(more, "other");
    must(quern_live_add(live, game, NULL));
    must(quern_live_add(live, more, NULL));
    (void)create_place(1, 2);
    put(game, "faster");
    put(more, "thief");
    uint32_t count;
    cr_expect_eq(quern_live_update(live, &count), QUERN_ERROR_DUPLICATE_NAME);
    cr_expect_eq(count, 1);
    frame();
    cr_expect_eq(told(MOVE_STEP), 10);
}

Test(live, a_module_that_only_uses_a_type_must_fit_its_size)
{
    put(game, "first");
    put(more, "user");
    must(quern_live_add(live, game, NULL));
    must(quern_live_add(live, more, NULL));
    (void)create_place(1, 2);
    frame();
    put(more, "user");
    update(1);
    put(game, "wider");
    update_is_refused(QUERN_ERROR_LAYOUT_MISMATCH,
                      "component 'Place' has another definition in module 'more'");
    frame();
}

Test(live, waiting_events_and_resources_are_converted)
{
    put(game, "first");
    must(quern_live_add(live, game, NULL));
    (void)create_place(1, 2);
    quern_event_reader *reader;
    must(quern_event_reader_create(
        world, &(quern_event_reader_def){.event = quern_event_find(world, "Bump")}, &reader));
    *(int32_t *)quern_resource_get(world, quern_resource_find(world, "Rules")) = 7;
    frame();
    put(game, "wider");
    update(1);
    cr_expect_eq(info(0).converted_count, 3);
    cr_expect_eq(((int32_t *)quern_resource_get(world, quern_resource_find(world, "Rules")))[1], 7);
    uint32_t event_count = 0;
    quern_event_block block;
    while (quern_event_reader_next(reader, &block)) {
        event_count += block.count;
        cr_expect_eq(((const int32_t *)block.values)[0], 0);
        cr_expect_eq(((const int32_t *)block.values)[1], 1);
    }
    cr_expect_eq(event_count, 1);
    quern_event_reader_destroy(reader);
}

Test(live, the_end_does_not_ask_for_the_order_of_systems)
{
    put(game, "first");
    must(quern_live_add(live, game, NULL));
    must(quern_schedule_add_system(
        schedule, &(quern_system_def){.name = "own", .begin = run_nothing, .after = {"move"}}, NULL));
    quern_live_destroy(live);
    live = NULL;
    cr_expect_eq(quern_schedule_system_count(schedule), 1);
}

Test(live, the_program_keeps_its_own_types)
{
    typedef struct Place {
        int32_t x, y;
    } Place;
    quern_component place;
    must(QUERN_COMPONENT_REGISTER_FIELDS(world, &place, Place, x, y));
    put(game, "first");
    must(quern_live_add(live, game, NULL));
    put(game, "wider");
    update_is_refused(QUERN_ERROR_LAYOUT_MISMATCH, "Place");
    put(game, "faster");
    update(1);
}

/* -------------------------------------------------------------------------------------------- going back */

Test(live, a_reload_can_be_taken_back)
{
    put(game, "first");
    must(quern_live_add(live, game, NULL));
    const quern_entity entity = create_place(1, 0);
    put(game, "faster");
    update(1);
    must(quern_live_revert(live, "game"));
    cr_expect_eq(info(0).version, 3);
    update(0); /* the file is that of the version which was taken back */
    frame();
    cr_expect_eq(value_of(entity, "x"), 4);
    must(quern_live_revert(live, "game"));
    frame();
    cr_expect_eq(value_of(entity, "x"), 28);
    expect_mapped(1);
}

Test(live, a_history_goes_back_over_a_reload)
{
    quern_history *history;
    put(game, "first");
    must(quern_live_add(live, game, NULL));
    const quern_entity entity = create_place(1, 0);
    must(quern_history_create(world, &(quern_history_def){.schedules = {schedule}}, &history));
    frame();
    must(quern_history_save(history, 1, jobs));
    const uint64_t hash = quern_world_hash(world);
    put(game, "faster");
    update(1);
    frame();
    must(quern_history_restore(history, 1, jobs));
    cr_expect_eq(quern_world_hash(world), hash);
    frame();
    cr_expect_eq(value_of(entity, "x"), 28); /* (4 + 10) * 2: the code is still the new one */
    quern_history_destroy(history);
}

/* Runs a frame with the code before, and again after a reload to a variant was found to be wrong and was taken back: the
 * frame before the reload is restored with the code before. Both give one world. */
static void go_back(const char *variant, bool restores_first)
{
    quern_history *history;
    put(game, "first");
    must(quern_live_add(live, game, NULL));
    const quern_entity entity = create_place(3, 4);
    must(quern_history_create(world, &(quern_history_def){.schedules = {schedule}}, &history));
    frame();
    must(quern_history_save(history, 1, jobs));
    const uint64_t before = quern_world_hash(world);
    frame();
    const uint64_t expected = quern_world_hash(world);
    const int32_t expected_x = value_of(entity, "x");
    must(quern_history_restore(history, 1, jobs));

    put(game, variant);
    update(1);
    frame();
    cr_expect_neq(value_of(entity, "x"), expected_x, "the new code is wrong");
    if (restores_first) must(quern_history_restore(history, 1, jobs));
    must(quern_live_revert(live, "game"));
    if (!restores_first) must(quern_history_restore(history, 1, jobs));
    cr_expect_eq(quern_world_hash(world), before);
    frame();
    cr_expect_eq(quern_world_hash(world), expected);
    cr_expect_eq(value_of(entity, "x"), expected_x);
    cr_expect_eq(told(MOVE_STEP), 1);
    quern_history_destroy(history);
}

Test(live, the_frame_before_a_wrong_reload_comes_back_with_the_code_before)
{
    go_back("faster", false);
}

Test(live, the_frame_is_restored_before_the_code)
{
    go_back("faster", true);
}

/* A history drops frames of another layout, with a warning. An archive from before the reload is converted. */
Test(live, an_archive_comes_back_over_another_layout)
{
    quern_history *history;
    quern_byte_buffer saved = {0};
    put(game, "first");
    must(quern_live_add(live, game, NULL));
    const quern_entity entity = create_place(3, 4);
    must(quern_history_create(world, &(quern_history_def){.schedules = {schedule}}, &history));
    frame();
    must(quern_history_save(history, 1, jobs));
    must(quern_world_save(world, quern_sink_bytes(&saved), NULL));
    const int32_t x = value_of(entity, "x");
    put(game, "wider");
    update(1);
    cr_expect_eq(quern_history_restore(history, 1, jobs), QUERN_ERROR_INVALID_ARGUMENT);
    cr_expect_not_null(strstr(quern_error_message(), "frame 1 is not kept"), "%s", quern_error_message());
    frame();
    must(quern_live_revert(live, "game"));
    must(quern_entity_destroy(world, entity));
    must(quern_world_load(world, (quern_source){.memory = saved.bytes, .memory_bytes = saved.size_bytes},
                          NULL, NULL));
    quern_entity loaded;
    cr_assert_eq(quern_world_list_entities(world, &loaded, 1), 1);
    cr_expect_eq(value_of(loaded, "x"), x);
    frame();
    cr_expect_eq(value_of(loaded, "x"), (x + 1) * 2);
    quern_history_destroy(history);
    quern_byte_buffer_release(&saved);
}

/* ------------------------------------------------------------------------------------------------- C++ */

Test(live, types_of_cpp_outlive_their_code)
{
    put(game, "cpp_1");
    must(quern_live_add(live, game, NULL));
    const quern_component components[] = {quern_component_find(world, "game::Place"),
                                          quern_component_find(world, "game::Label")};
    const quern_entity entity = setup_entity_with(world, components, 2);
    frame();
    for (int i = 0; i < 6; i++) {
        put(game, "cpp_1");
        update(1);
        frame();
        char text[16];
        quern_text_buffer buffer = {text, sizeof text, 0};
        must(quern_resource_get_text(world, "game::Score.points", quern_sink_text(&buffer)));
        cr_expect_eq(strtol(text, NULL, 10), i + 2,
                     "one star for each frame, and variables of each version");
        expect_mapped(1);
    }
    cr_expect_eq(info(0).version, 7);
    setup_entity_with(world, components, 2);
    must(quern_entity_destroy(world, entity));
    put(game, "cpp_2"); /* Label has no described fields: its values cannot be converted */
    update_is_refused(QUERN_ERROR_LAYOUT_MISMATCH, "game::Label");
    frame();
}
