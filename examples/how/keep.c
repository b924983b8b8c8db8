/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* The answers of docs/how.md on saving, loading, going back and looking inside, as one program. */
#include <quern/kit/json.h>
#include <quern/quern.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct Place {
    float x, y;
} Place;

QUERN_SYSTEM(move, (Place, place))
{
    QUERN_ROWS(i) place[i].x += (float)quern_context_delta_seconds(context);
}

static quern_world *create_world(void)
{
    quern_world *world;
    QUERN_MUST(quern_world_create(NULL, &world));
    QUERN_MUST(QUERN_REGISTER(world, Place, x, y));
    return world;
}

static void save(quern_world *world, const char *path)
{
    FILE *file = fopen(path, "wb");
    if (file == NULL) return;
    QUERN_MUST(quern_world_save(world, quern_sink_file(file), NULL));
    (void)fclose(file);
}

static quern_world *load(const char *path)
{
    quern_world *world = create_world(); /* the same components, and no entities */
    FILE *file = fopen(path, "rb");
    if (file == NULL) return world;
    QUERN_MUST(quern_world_load(world, quern_source_file(file), NULL, NULL));
    (void)fclose(file);
    return world;
}

static quern_world *load_unknown(const char *path)
{
    quern_world *world;
    QUERN_MUST(quern_world_create(NULL, &world)); /* without any types */
    FILE *file = fopen(path, "rb");
    if (file == NULL) return world;
    QUERN_MUST(quern_world_register_archived(world, quern_source_file(file), NULL));
    rewind(file);
    QUERN_MUST(quern_world_load(world, quern_source_file(file), NULL, NULL));
    (void)fclose(file);
    return world;
}

static const char level[] = "{\"quern\": 1, \"entities\": [{\"id\": 1, \"name\": \"door\",\n"
                            "  \"components\": {\"Place\": {\"x\": 4, \"y\": 2}}}]}";

static void load_level(quern_world *world)
{
    QUERN_MUST(quern_json_read_world(world, level, strlen(level), NULL)); /* or the text of a file */
}

static const char lamp[] =
    "{\"quern\": 1, \"prefab\": {\"components\": {\"Place\": {\"x\": 1, \"y\": 2}},\n"
    "  \"children\": [{\"name\": \"bulb\", \"components\": {\"Place\": {\"y\": 3}}}]}}";

static quern_prefab load_prefab(quern_world *world)
{
    quern_prefab prefab;
    QUERN_MUST(quern_json_read_prefab(world, lamp, strlen(lamp), NULL, &prefab));
    return prefab;
}

static void save_prefab(const quern_world *world, quern_entity tree, const char *path)
{
    FILE *file = fopen(path, "wb");
    if (file == NULL) return;
    QUERN_MUST(quern_json_write_prefab(world, tree, quern_sink_file(file)));
    (void)fclose(file);
}

static void print_world(const quern_world *world)
{
    quern_byte_buffer text = {0};
    QUERN_MUST(quern_json_write_world(world, quern_sink_bytes(&text)));
    printf("%d characters of JSON\n", (int)text.size_bytes);
    quern_byte_buffer_release(&text);
}

static void rewind_world(quern_world *world, quern_schedule *schedule)
{
    quern_history *history;
    const quern_history_def def = {.schedules = {schedule},
                                   .frame_count = 60}; /* keeps the last 60 frames */
    QUERN_MUST(quern_history_create(world, &def, &history));
    for (uint64_t frame = 0; frame < 10; frame++) {
        QUERN_MUST(quern_history_save(history, frame, NULL));
        QUERN_MUST(quern_schedule_run(schedule, NULL, 1));
    }
    QUERN_MUST(quern_history_restore(history, 3, NULL)); /* the world before frame 3 */
    quern_history_destroy(history);
}

static void look_inside(quern_world *world, quern_schedule *schedule, quern_jobs *jobs)
{
    quern_frame_stats stats;
    QUERN_MUST(quern_schedule_run(schedule, jobs, 1));
    QUERN_MUST(quern_schedule_get_frame_stats(schedule, &stats)); /* time, commands, created, destroyed */
    QUERN_MUST(quern_schedule_describe(schedule, QUERN_DESCRIBE_TEXT, quern_sink_file(stdout)));
    printf("hash %016llx\n", (unsigned long long)quern_world_hash(world));
    QUERN_MUST(quern_world_validate(world)); /* checks every invariant; for tests */
}

int main(void)
{
    quern_world *world = create_world();
    quern_schedule *schedule;
    quern_jobs *jobs;
    load_level(world);
    QUERN_MUST(quern_schedule_create(world, NULL, &schedule));
    QUERN_MUST(QUERN_ADD_SYSTEM(schedule, move));
    QUERN_MUST(
        quern_jobs_create(&(quern_jobs_def){.thread_count = 2}, &jobs)); /* NULL: one per processor */
    QUERN_MUST(quern_schedule_run(schedule, jobs, 1));
    rewind_world(world, schedule);
    printf("door at %g\n", (double)QUERN_GET(world, quern_entity_find(world, "door"), Place)->x);
    save(world, "how_keep.world");
    quern_world *copy = load("how_keep.world");
    printf("loaded: %s\n", quern_world_hash(copy) == quern_world_hash(world) ? "the same" : "another");
    quern_world *unknown = load_unknown("how_keep.world");
    printf("loaded by its archive: %u components\n", quern_type_count(unknown, QUERN_TYPE_COMPONENT));
    (void)remove("how_keep.world");
    print_world(copy);
    look_inside(world, schedule, jobs);
    quern_entity tree;
    QUERN_MUST(quern_prefab_spawn(world, load_prefab(world), NULL, &tree));
    save_prefab(world, tree, "how_keep.prefab");
    (void)remove("how_keep.prefab");
    quern_schedule_destroy(schedule);
    quern_jobs_destroy(jobs);
    quern_world_destroy(world);
    quern_world_destroy(copy);
    quern_world_destroy(unknown);
}
