/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* The end point of single commands. A request lets the schedule list the commands of the next frames in a log, until no
 * request has come for some frames. While an answer reads the log, the schedule does not list, so that the frames between two
 * parts of an answer leave the log as it is. */
#include "inspect/inspect_internal.h"

#include <string.h>

enum { COMMANDS_VISITED_PER_STEP = 1024, COMMANDS_WRITTEN_PER_STEP = 32, COMMANDS_PAGE = 100 };

static quern_result list_frames(quern_inspector *inspector)
{
    return quern_schedule_set_command_log(inspector->def.schedule, inspector->command_log);
}

static void stop(quern_inspector *inspector)
{
    quern_command_log_destroy(inspector->command_log);
    inspector->command_log = NULL;
    quern__inspect_count_reason(&inspector->exchange, false);
}

void quern__inspect_pass_commands(quern_inspector *inspector, uint64_t frame)
{
    if (inspector->command_log == NULL) return;
    if (inspector->command_reader_count == 0) inspector->command_frame = frame;
    if (inspector->command_frames_left > 0) inspector->command_frames_left--;
    if (inspector->command_frames_left == 0 && inspector->command_reader_count == 0) stop(inspector);
}

void quern__inspect_release_commands(quern_inspector *inspector)
{
    if (inspector->command_log != NULL) stop(inspector);
}

void quern__inspect_leave_commands(quern__inspect_answer *answer)
{
    quern_inspector *inspector = answer->inspector;
    if (!answer->commands.is_reading) return;
    answer->commands.is_reading = false;
    if (--inspector->command_reader_count == 0) (void)list_frames(inspector);
}

/* Makes the log, and lets it be until quern__inspect_leave_commands. Returns false if the answer has failed. */
static bool open_log(quern__inspect_answer *answer)
{
    quern_inspector *inspector = answer->inspector;
    if (inspector->command_log == NULL) {
        const quern_command_log_def def = {.allocator = inspector->def.allocator};
        quern_result result = quern_command_log_create(&def, &inspector->command_log);
        if (result == QUERN_OK) {
            quern__inspect_count_reason(&inspector->exchange, true);
            result = list_frames(inspector);
            if (result != QUERN_OK) stop(inspector);
        }
        if (result != QUERN_OK) {
            quern__inspect_fail_result(answer, result);
            return false;
        }
    }
    inspector->command_frames_left = QUERN__INSPECT_COMMAND_FRAMES;
    if (inspector->command_reader_count++ == 0)
        (void)quern_schedule_set_command_log(inspector->def.schedule, NULL);
    answer->commands.is_reading = true;
    return true;
}

static const char *system_name(const quern_inspector *inspector, quern_system system)
{
    quern_system_stats stats;
    if (system.bits == 0 ||
        quern_schedule_get_system_stats(inspector->def.schedule, system, &stats) != QUERN_OK)
        return NULL;
    return stats.name;
}

/* Writes the sync points, in one step: there are at most QUERN_MAX_LOGGED_SYNCS. */
static void write_syncs(const quern_inspector *inspector, quern__inspect_text *text, uint32_t sync_count)
{
    static const char *const places[] = {[QUERN_SYNC_FRAME_START] = "frame start",
                                         [QUERN_SYNC_PHASE] = "phase",
                                         [QUERN_SYNC_REACTIONS] = "reactions"};
    quern__inspect_open(text, "syncs", '[');
    for (uint32_t i = 0; i < sync_count; i++) {
        quern_logged_sync sync;
        if (quern_command_log_get_sync(inspector->command_log, i, &sync) != QUERN_OK) continue;
        quern__inspect_open(text, NULL, '{');
        quern__inspect_put_text(text, "place", places[sync.place]);
        quern__inspect_put_text(text, "phase", sync.phase_name);
        quern__inspect_put_text(text, "before", system_name(inspector, sync.before));
        quern__inspect_put_count(text, "count", sync.count);
        quern__inspect_put_count(text, "left_out_count", sync.left_out_count);
        quern__inspect_close(text, '}');
    }
    quern__inspect_close(text, ']');
}

/* Reads what the commands are to be of. */
static bool read_choice(quern__inspect_answer *answer)
{
    const quern_inspector *inspector = answer->inspector;
    quern__inspect_commands *choice = &answer->commands;
    const char *name = quern__inspect_argument(&answer->arguments, "system");
    uint64_t offset, limit, sync;
    if (!quern__inspect_read_count(answer, "offset", 0, UINT32_MAX, &offset) ||
        !quern__inspect_read_count(answer, "limit", COMMANDS_PAGE, QUERN_INSPECT_MAX_LIST, &limit) ||
        !quern__inspect_read_count(answer, "sync", UINT32_MAX, UINT32_MAX, &sync))
        return false;
    if (quern__inspect_argument(&answer->arguments, "dropped") != NULL &&
        !quern__inspect_read_flag(answer, "dropped", &choice->is_dropped_only))
        return false;
    if (name != NULL) choice->system = quern_schedule_find_system(inspector->def.schedule, name);
    if (name != NULL && choice->system.bits == 0) {
        quern__inspect_fail(answer, 404, "commands: the schedule has no system '%.80s'", name);
        return false;
    }
    const char *entity =
        quern__inspect_argument(&answer->arguments, "entity"); /* which may have been destroyed */
    if (entity != NULL &&
        (quern_entity_from_text(inspector->def.world, entity, &choice->entity) != QUERN_OK ||
         quern_entity_is_null(choice->entity))) {
        quern__inspect_fail(answer, 404,
                            "commands: '%.80s' is no entity: use a handle such as 12:1, or a path", entity);
        return false;
    }
    choice->has_entity = entity != NULL;
    choice->offset = (uint32_t)offset;
    choice->sync = (uint32_t)sync;
    answer->left = (uint32_t)limit;
    return true;
}

static void begin_commands(quern__inspect_answer *answer)
{
    const quern_inspector *inspector = answer->inspector;
    quern__inspect_text *text = &answer->text;
    if (!quern__inspect_has_schedule(answer) || !read_choice(answer) || !open_log(answer)) return;
    quern_command_log_stats stats;
    quern_command_log_get_stats(inspector->command_log, &stats);
    quern__inspect_open(text, NULL, '{');
    if (stats.has_frame)
        quern__inspect_put_count(text, "frame", inspector->command_frame);
    else
        quern__inspect_put_text(text, "frame", NULL);
    quern__inspect_put_count(text, "count", stats.count);
    quern__inspect_put_count(text, "left_out_count", stats.left_out_count);
    quern__inspect_put_count(text, "left_out_sync_count", stats.left_out_sync_count);
    write_syncs(inspector, text, stats.sync_count);
    answer->commands.end = stats.count;
    quern_logged_sync sync;
    if (answer->commands.sync != UINT32_MAX) {
        const bool is_listed = answer->commands.sync < stats.sync_count;
        answer->commands.end = 0;
        if (is_listed &&
            quern_command_log_get_sync(inspector->command_log, answer->commands.sync, &sync) == QUERN_OK) {
            answer->at = sync.first;
            answer->commands.end = sync.first + sync.count;
        }
    }
    quern__inspect_put_count(text, "offset", answer->commands.offset);
    quern__inspect_open(text, "commands", '[');
}

static bool is_chosen(const quern__inspect_commands *choice, const quern_logged_command *command)
{
    if (choice->is_dropped_only && !command->is_dropped) return false;
    if (choice->system.bits != 0 && choice->system.bits != command->system.bits) return false;
    return !choice->has_entity || quern_entity_equal(choice->entity, command->entity) ||
           quern_entity_equal(choice->entity, command->other);
}

/* Returns the number of the sync point of a command. */
static uint32_t sync_of(const quern_command_log *log, uint32_t at, uint32_t first)
{
    quern_logged_sync sync;
    while (quern_command_log_get_sync(log, first, &sync) == QUERN_OK && at >= sync.first + sync.count)
        first++;
    return first;
}

static void write_command(quern__inspect_answer *answer, const quern_logged_command *command)
{
    const quern_inspector *inspector = answer->inspector;
    const quern_world *world = inspector->def.world;
    quern__inspect_text *text = &answer->text;
    quern__inspect_open(text, NULL, '{');
    quern__inspect_put_count(text, "number", answer->at);
    quern__inspect_put_count(text, "sync", answer->inner);
    quern__inspect_put_text(text, "kind", quern_command_kind_string(command->kind));
    quern__inspect_put_text(text, "system", system_name(inspector, command->system));
    quern__inspect_put_count(text, "callback", command->callback);
    quern__inspect_put_flag(text, "is_end", command->is_end);
    quern__inspect_put_flag(text, "of_view", command->is_of_view);
    quern__inspect_put_entity(text, "entity", command->entity);
    quern__inspect_put_flag(text, "new", command->is_new);
    quern__inspect_put_entity(text, "other", command->other);
    if (command->prefab.bits != 0) quern__inspect_put_count(text, "prefab", (uint32_t)command->prefab.bits);
    if (command->event.bits != 0)
        quern__inspect_put_text(text, "event", quern_event_name(world, command->event));
    quern__inspect_open(text, "components", '[');
    for (uint32_t i = 0; i < command->component_count; i++)
        quern__inspect_put_text(text, NULL, quern_component_name(world, command->components[i]));
    quern__inspect_close(text, ']');
    quern__inspect_put_count(text, "count", command->command_count);
    quern__inspect_put_count(text, "dropped_count", command->dropped_count);
    quern__inspect_put_text(text, "dropped",
                            command->is_dropped ? quern_drop_reason_string(command->reason) : NULL);
    quern__inspect_close(text, '}');
}

static bool step_commands(quern__inspect_answer *answer)
{
    quern__inspect_commands *choice = &answer->commands;
    const quern_command_log *log = answer->inspector->command_log;
    uint32_t written_count = 0;
    for (uint32_t i = 0; i < COMMANDS_VISITED_PER_STEP && written_count < COMMANDS_WRITTEN_PER_STEP &&
                         answer->at < choice->end;
         i++, answer->at++) {
        quern_logged_command command;
        if (quern_command_log_get(log, answer->at, &command) != QUERN_OK) break;
        if (!is_chosen(choice, &command)) continue;
        if (choice->found_count++ < choice->offset || answer->left == 0) continue;
        answer->inner = sync_of(log, answer->at, answer->inner);
        write_command(answer, &command);
        answer->left--;
        written_count++;
    }
    if (answer->at < choice->end) return false;
    quern__inspect_close(&answer->text, ']');
    quern__inspect_put_count(&answer->text, "found_count", choice->found_count);
    quern__inspect_close(&answer->text, '}');
    quern__inspect_leave_commands(answer);
    return true;
}

const quern__inspect_route quern__inspect_command_routes[] = {
    {"commands", false, false, begin_commands, step_commands, "sync system entity dropped offset limit"},
    {NULL, false, false, NULL, NULL, NULL},
};
