/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Commands: structural changes that systems record while other systems run. docs/commands.md explains
 * it. */
#include <quern/quern.h>

#include <stdio.h>
#include <stdlib.h>

typedef struct Fuse {
    int32_t frames_left;
} Fuse;

typedef struct Shard {
    quern_entity next; /* described as a handle, so that it may be provisional */
    float angle;
} Shard;

typedef struct Types {
    quern_component fuse, shard, burning;
} Types;

static void check(quern_result result)
{
    if (result == QUERN_OK) return;
    fprintf(stderr, "%s: %s\n", quern_result_string(result), quern_error_message());
    exit(EXIT_FAILURE);
}

/* Tags entities as burning one frame before their fuses end, and destroys them when the fuses end. */
static void burn(quern_context *context, const quern_view *view)
{
    const Types *types = quern_context_user_data(context);
    quern_commands *commands = quern_context_commands(context);
    Fuse *fuses = QUERN_COLUMN(view, 0, Fuse);
    const uint32_t count = view->count;
    for (uint32_t i = 0; i < count; i++) {
        fuses[i].frames_left--;
        if (fuses[i].frames_left == 1)
            check(quern_commands_add(commands, view->entities[i], types->burning, NULL));
        if (fuses[i].frames_left == 0) check(quern_commands_destroy(commands, view->entities[i]));
    }
}

enum { SHARDS = 3 };

/* Creates three shards for each entity that is being destroyed. Each shard refers to the next one. */
static void scatter(quern_context *context, const quern_view *view)
{
    const Types *types = quern_context_user_data(context);
    quern_commands *commands = quern_context_commands(context);
    const Fuse *fuses = QUERN_COLUMN(view, 0, const Fuse);
    const uint32_t count = view->count;
    for (uint32_t i = 0; i < count; i++) {
        if (fuses[i].frames_left > 0) continue;
        quern_entity created[SHARDS];
        Shard shards[SHARDS] = {{.angle = 0}, {.angle = 120}, {.angle = 240}};
        const void *columns[] = {shards};
        check(quern_commands_create_many(commands, &types->shard, columns, 1, SHARDS, created));
        for (uint32_t k = 0; k < SHARDS; k++) {
            shards[k].next = created[(k + 1) % SHARDS];
            check(quern_commands_set(commands, created[k], types->shard, &shards[k]));
        }
    }
}

/* Removes the tag again, from all entities of a view. Runs after burn: entities that burn destroys at the same
 * sync point no longer exist when these commands are applied, so their commands are dropped. */
static void extinguish(quern_context *context, const quern_view *view)
{
    const Types *types = quern_context_user_data(context);
    check(quern_commands_remove_view(quern_context_commands(context), view, NULL, types->burning));
}

static Types register_types(quern_world *world)
{
    Types types;
    check(QUERN_COMPONENT_REGISTER(world, &types.fuse, Fuse));
    check(QUERN_COMPONENT_REGISTER_FIELDS(world, &types.shard, Shard, next, angle));
    check(quern_component_register(world, &(quern_component_def){.name = "Burning"},
                                   &types.burning)); /* a tag */
    return types;
}

static void add_system(quern_schedule *schedule, const char *name, quern_view_callback *run,
                       quern_term term, Types *types)
{
    const quern_system_def def = {.name = name, .run = run, .terms = {term}, .user_data = types};
    check(quern_schedule_add_system(schedule, &def, NULL));
}

static void report_drops(const quern_schedule *schedule)
{
    for (uint32_t i = 0; i < quern_schedule_dropped_command_count(schedule); i++) {
        quern_dropped_command dropped;
        check(quern_schedule_get_dropped_command(schedule, i, &dropped));
        printf("  %s: %llu dropped, %s\n", dropped.system_name, (unsigned long long)dropped.count,
               quern_drop_reason_string(dropped.reason));
    }
}

/* Runs a frame. If memory runs out while commands are applied, the schedule keeps the commands. */
static void run_frame(quern_schedule *schedule, quern_jobs *jobs)
{
    quern_result result = quern_schedule_run(schedule, jobs, 1.0 / 60);
    if (result == QUERN_OK) return;
    fprintf(stderr, "%s\n", quern_error_message());
    if (quern_schedule_kept_command_count(schedule) > 0)
        check(quern_schedule_discard_commands(schedule)); /* or free memory and run the next frame */
}

static void create_fuses(quern_world *world, const Types *types)
{
    Fuse fuses[100];
    for (int32_t i = 0; i < 100; i++)
        fuses[i].frames_left = 1 + i % 3;
    const void *columns[] = {fuses};
    check(quern_entity_create_many(world, &types->fuse, columns, 1, 100, NULL));
}

/* Prints the first commands of a system in the last frame, in the order in which they were applied. */
static void print_commands(const quern_command_log *log, quern_system system, uint32_t count)
{
    quern_command_log_stats stats;
    check(quern_command_log_get_stats(log, &stats));
    for (uint32_t i = 0; i < stats.count && count > 0; i++) {
        quern_logged_command command;
        check(quern_command_log_get(log, i, &command));
        if (command.system.bits != system.bits) continue;
        count--;
        printf("  %u: %s, entity %u%s%s\n", (unsigned)i, quern_command_kind_string(command.kind),
               (unsigned)quern_entity_index(command.entity), command.is_dropped ? ", dropped: " : "",
               command.is_dropped ? quern_drop_reason_string(command.reason) : "");
    }
}

int main(void)
{
    quern_world *world;
    quern_jobs *jobs;
    quern_schedule *schedule;
    quern_command_log *log;
    check(quern_world_create(NULL, &world));
    check(quern_jobs_create(NULL, &jobs));
    check(quern_schedule_create(world, NULL, &schedule));
    Types types = register_types(world);
    add_system(schedule, "burn", burn, quern_term_write(types.fuse), &types);
    add_system(schedule, "scatter", scatter, quern_term_read(types.fuse), &types);
    add_system(schedule, "extinguish", extinguish, quern_term_with(types.burning), &types);
    create_fuses(world, &types);
    check(quern_command_log_create(NULL, &log));

    for (int frame = 0; frame < 4; frame++) {
        /* Listing costs time, so the log is set for the frame of interest alone. */
        check(quern_schedule_set_command_log(schedule, frame == 2 ? log : NULL));
        run_frame(schedule, jobs);
        quern_frame_stats stats;
        check(quern_schedule_get_frame_stats(schedule, &stats));
        printf("frame %d: %llu created, %llu destroyed\n", frame, (unsigned long long)stats.created_count,
               (unsigned long long)stats.destroyed_count);
        report_drops(schedule);
        if (frame == 2) print_commands(log, quern_schedule_find_system(schedule, "extinguish"), 3);
    }
    quern_command_log_destroy(log);

    quern_schedule_destroy(schedule);
    quern_jobs_destroy(jobs);
    quern_world_destroy(world);
    return EXIT_SUCCESS;
}
