/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* live --check: edits a copy of the module, step by step, and reloads it every hundred frames. Before each reload the world
 * is saved. A second world, whose program has had the new code from the start, loads what was saved and runs the same
 * frames: both must end with one hash. */
#include "host.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FRAMES_PER_STEP = 100, SOURCE_BYTES = 1 << 16, MAX_EDITS = 6 };

static const double step_seconds = 1.0 / 60;

typedef struct Edit {
    const char *find;    /* NULL ends a list */
    const char *replace; /* the first place where `find` stands */
} Edit;

typedef struct Step {
    const char *name;
    Edit edits[2][MAX_EDITS]; /* of the module in C, and of that in C++ */
} Step;

static const Step steps[] = {
    {"another constant",
     {{{"gravity = 9.81F", "gravity = 3.7F"}}, {{"gravity = 9.81F", "gravity = 3.7F"}}}},
    {"a field more",
     {{{"float x, y; /* metres per second */", "float x, spin, y;"},
       {"Velocity, x, y)", "Velocity, x, y, spin)"},
       {"QUERN_VALUE(Velocity, side, up)", "QUERN_VALUE(Velocity, .x = side, .y = up, .spin = side)"},
       {"position[i].x += velocity[i].x * seconds;",
        "position[i].x += (velocity[i].x + velocity[i].spin) * seconds;"}},
      {{"float x, y; // metres per second", "float x, spin, y;"},
       {"QUERN_DESCRIBE(Velocity, x, y)", "QUERN_DESCRIBE(Velocity, x, y, spin)"},
       {"Velocity{side, up}", "Velocity{side, side, up}"},
       {"position.x += velocity.x * seconds;", "position.x += (velocity.x + velocity.spin) * seconds;"}}}},
    {"a system less",
     {{{"    QUERN_TRY(QUERN_ADD_SYSTEM(module->schedule, fall));\n", "    (void)fall;\n"}},
      {{"    module.add(\"fall\", [](Velocity &velocity, quern::seconds seconds) { velocity.y -= gravity * "
        "seconds; });\n",
        "    (void)gravity;\n"}}}},
    {"a system more",
     {{{"QUERN_SYSTEM(move,", "QUERN_SYSTEM(wind, (Velocity, velocity))\n{\n    QUERN_ROWS(i) "
                              "velocity[i].x += 0.125F;\n}\n\nQUERN_SYSTEM(move,"},
       {"    QUERN_TRY(QUERN_ADD_SYSTEM(module->schedule, move));\n",
        "    QUERN_TRY(QUERN_ADD_SYSTEM(module->schedule, wind));\n"
        "    QUERN_TRY(QUERN_ADD_SYSTEM(module->schedule, move));\n"}},
      {{"    module.add(\"move\",", "    module.add(\"wind\", [](Velocity &velocity) { velocity.x += "
                                    "0.125F; });\n    module.add(\"move\","}}}},
    {"a type with text",
     {{{"static void launch(",
        "typedef struct Label {\n    char text[24];\n} Label;\n\nstatic void launch("},
       {"QUERN_VALUE(Spark, 2.5F)",
        "QUERN_VALUE(Spark, 2.5F), QUERN_VALUE(Label, \"a spark of the fountain\")"},
       {"Spark, seconds));\n",
        "Spark, seconds));\n    quern_component label;\n"
        "    QUERN_TRY(quern_component_register(module->world, &(quern_component_def){QUERN_TYPE(Label), "
        ".fields = {QUERN_TEXT(Label, text)}}, &label));\n"}},
      {{"static quern_result load(",
        "struct Label {\n    std::string text;\n    int32_t length;\n};\nQUERN_DESCRIBE(Label, length);\n\n"
        "static quern_result load("},
       {"    module.component<Spark>();\n",
        "    module.component<Spark>();\n    module.component<Label>();\n"},
       {"Spark{2.5F}", "Spark{2.5F}, Label{std::string(40, '*'), 40}"},
       {"#include <quern/kit/random.h>\n", "#include <quern/kit/random.h>\n\n#include <string>\n"}}}},
};

/* Replaces the first place of a text. Ends the program if there is none: the example and this table differ. */
static void edit(char *source, const Edit *change)
{
    char *const place = strstr(source, change->find);
    const size_t found = strlen(change->find), bytes = strlen(change->replace);
    if (place == NULL || strlen(source) + bytes + 1 > SOURCE_BYTES) {
        fprintf(stderr, "live: the source does not contain '%s'\n", change->find);
        exit(1);
    }
    memmove(place + bytes, place + found, strlen(place + found) + 1);
    memcpy(place, change->replace, bytes);
}

static void read_file(const char *path, char text[SOURCE_BYTES])
{
    FILE *const file = fopen(path, "rb");
    const size_t bytes = file != NULL ? fread(text, 1, SOURCE_BYTES - 1, file) : 0;
    if (file == NULL || fclose(file) != 0 || bytes == 0) {
        fprintf(stderr, "live: the module's source '%s' cannot be read\n", path);
        exit(1);
    }
    text[bytes] = 0;
}

/* Writes a source file and compiles it. */
static void compile(const Host *host, const char *text)
{
    char command[COMMAND_BYTES];
    FILE *const file = fopen(host->source, "wb");
    if (file == NULL || fputs(text, file) < 0 || fclose(file) != 0) {
        fprintf(stderr, "live: '%s' cannot be written\n", host->source);
        exit(1);
    }
    host_compile_command(host, command);
    if (system(command) != 0) { /* NOLINT(cert-env33-c): the command is that of the build */
        fprintf(stderr, "live: the compiler failed: %s\n", command);
        exit(1);
    }
}

static void run(const Host *host)
{
    for (int i = 0; i < FRAMES_PER_STEP; i++)
        QUERN_MUST(quern_schedule_run(host->schedule, host->jobs, step_seconds));
}

/* Runs the frames of a step in a world whose program has had the module's code from the start, from a saved world. */
static uint64_t run_apart(const Host *host, const quern_byte_buffer *saved, uint32_t thread_count)
{
    Host other = *host;
    host_open(&other, thread_count);
    QUERN_MUST(quern_live_add(other.live, other.library, "sparks"));
    if (saved->size_bytes > 0) {
        const quern_source source = {.memory = saved->bytes, .memory_bytes = saved->size_bytes};
        QUERN_MUST(quern_world_load(other.world, source, NULL, NULL));
    }
    run(&other);
    const uint64_t hash = quern_world_hash(other.world);
    host_close(&other);
    return hash;
}

int host_check(const char *source, bool is_cpp, uint32_t thread_count)
{
    enum { STEP_COUNT = sizeof steps / sizeof steps[0] };
    static char text[SOURCE_BYTES];
    Host host = {.is_cpp = is_cpp};
    int status = 0;
    read_file(source, text);
    host_choose_paths(&host, NULL);
    compile(&host, text);
    host_open(&host, thread_count);
    QUERN_MUST(quern_live_add(host.live, host.library, "sparks"));
    printf("{\"language\": \"%s\", \"threads\": %u, \"steps\": [", is_cpp ? "C++" : "C", thread_count);
    uint32_t reload_count = 0;
    uint64_t hash = 0;
    for (int i = 0; i <= STEP_COUNT; i++) {
        quern_byte_buffer saved = {0};
        if (i > 0) {
            QUERN_MUST(quern_world_save(host.world, quern_sink_bytes(&saved), NULL));
            for (const Edit *change = steps[i - 1].edits[is_cpp]; change->find != NULL; change++)
                edit(text, change);
            compile(&host, text);
            uint32_t count;
            QUERN_MUST(quern_live_update(host.live, &count));
            reload_count += count;
        }
        run(&host);
        hash = quern_world_hash(host.world);
        const uint64_t apart = run_apart(&host, &saved, thread_count);
        quern_byte_buffer_release(&saved);
        quern_live_info info;
        QUERN_MUST(quern_live_get_info(host.live, 0, &info));
        printf(
            "%s\n  {\"step\": \"%s\", \"added\": %u, \"replaced\": %u, \"removed\": %u, \"converted\": %u, "
            "\"hash\": \"0x%016llx\", \"apart\": \"0x%016llx\"}",
            i > 0 ? "," : "", i > 0 ? steps[i - 1].name : "as it is", info.added_count, info.replaced_count,
            info.removed_count, info.converted_count, (unsigned long long)hash, (unsigned long long)apart);
        if (apart != hash) status = 1;
    }
    printf("\n], \"reloads\": %u, \"hash\": \"0x%016llx\"}\n", reload_count, (unsigned long long)hash);
    if (status != 0)
        fprintf(stderr, "live: a reloaded world differs from one that always had the new code\n");
    host_close(&host);
    host_remove_paths(&host);
    return status;
}
