/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* The world as an archive, and test cases: an archive of the world, a recording of the frames that followed, and a C program
 * that loads the one and runs the other.
 *
 * The archive has the state of the schedule, so a world that loads it runs the same frames. All resources without hooks are
 * inputs of the recording. That is right also for those which systems write: the recording sets them to what they are. A
 * change between two frames that the recording does not have would make the case fail, so edits and restores end it. */
#include "inspect/inspect_internal.h"

#include <quern/archive.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { CASE_FRAMES = 60, CASE_FRAMES_MAX = 3600, BYTES_PER_STEP = 1 << 18 };

/* -------------------------------------------------------------------------------------------- archives */

/* Reads names of components that are separated by commas. */
static bool read_left_out(quern__inspect_answer *answer, quern_save_def *def)
{
    const char *at = quern__inspect_argument(&answer->arguments, "leave_out");
    uint32_t count = 0;
    while (at != NULL && *at != '\0') {
        char name[256];
        const size_t bytes = strcspn(at, ",");
        snprintf(name, sizeof name, "%.*s", (int)(bytes < sizeof name ? bytes : sizeof name - 1), at);
        const quern_component component = quern_component_find(answer->inspector->def.world, name);
        if (quern_component_is_null(component)) {
            quern__inspect_fail(answer, 404, "archive: the world has no component '%.80s' to leave out",
                                name);
            return false;
        }
        if (count == QUERN_MAX_LEFT_OUT) {
            quern__inspect_fail(answer, 400, "archive: 'leave_out' has more than %d components",
                                QUERN_MAX_LEFT_OUT);
            return false;
        }
        def->leave_out[count++] = component;
        at += bytes + (at[bytes] == ',');
    }
    return true;
}

/* An archive that lacks components cannot have the state of a schedule. */
static void begin_archive(quern__inspect_answer *answer)
{
    quern_inspector *inspector = answer->inspector;
    quern_save_def def = {0};
    if (!read_left_out(answer, &def)) return;
    if (quern_component_is_null(def.leave_out[0])) def.schedules[0] = inspector->def.schedule;
    answer->text.is_binary = true;
    const quern_result result =
        quern_world_save(inspector->def.world, quern__inspect_put_bytes(&answer->text), &def);
    /* Of a text that is too long, or without memory, check_text tells. */
    if (result != QUERN_OK && !answer->text.is_too_long && !answer->text.is_out_of_memory)
        quern__inspect_fail_result(answer, result);
}

/* ------------------------------------------------------------------------------------------- recording */

/* Returns the error with which the recorder failed to record, or QUERN_OK. */
static quern_result end_recording(quern_inspector *inspector, const char *fault)
{
    quern__inspect_case *kept = &inspector->kept_case;
    if (kept->recorder == NULL) return QUERN_OK;
    const quern_result result = quern_replay_finish(kept->recorder);
    kept->recorder = NULL;
    if (result != QUERN_OK) fault = quern_error_message();
    if (fault != NULL) snprintf(kept->fault, sizeof kept->fault, "%s", fault);
    quern__inspect_note(inspector, "test case %s", fault == NULL ? "recorded" : "ended");
    return result;
}

void quern__inspect_case_release(quern_inspector *inspector)
{
    quern__inspect_case *kept = &inspector->kept_case;
    end_recording(inspector, NULL);
    quern_byte_buffer_release(&kept->archive);
    quern_byte_buffer_release(&kept->replay);
    memset(kept, 0, sizeof *kept);
}

void quern__inspect_case_spoil(quern_inspector *inspector, const char *cause)
{
    quern__inspect_case *kept = &inspector->kept_case;
    char fault[QUERN__INSPECT_FAULT_BYTES];
    if (kept->recorder == NULL) return;
    snprintf(fault, sizeof fault,
             "the recording ended after %u frames: '%s' changed the world between two frames",
             kept->recorded_count, cause);
    end_recording(inspector, fault);
}

quern_result quern__inspect_case_run(quern_inspector *inspector, double delta_seconds)
{
    quern__inspect_case *kept = &inspector->kept_case;
    if (quern_world_restore_count(inspector->def.world) != kept->restore_count) {
        quern__inspect_case_spoil(inspector, "a restore by the program");
        return quern_schedule_run(inspector->def.schedule, inspector->def.jobs, delta_seconds);
    }
    quern_schedule_info before, after;
    quern_schedule_get_info(inspector->def.schedule, &before);
    const quern_result result = quern_replay_record(kept->recorder, inspector->def.jobs, delta_seconds);
    quern_schedule_get_info(inspector->def.schedule, &after);
    /* What the recorder refuses, such as a redefined type, is no failure of the program: the frame runs without it. */
    if (result != QUERN_OK && before.frame_index == after.frame_index) {
        char fault[QUERN__INSPECT_FAULT_BYTES];
        snprintf(fault, sizeof fault, "%s", quern_error_message());
        end_recording(inspector, fault);
        return quern_schedule_run(inspector->def.schedule, inspector->def.jobs, delta_seconds);
    }
    /* Nor is a frame that ran and could not be recorded. The last frame of a recording may be one that failed. */
    if (result != QUERN_OK) {
        if (end_recording(inspector, NULL) != QUERN_OK) return QUERN_OK;
        kept->recorded_count++;
        return result;
    }
    kept->recorded_count++;
    if (kept->replay.size_bytes > QUERN_INSPECT_MAX_ARCHIVE_BYTES)
        end_recording(inspector, "the recording is too long: record fewer frames");
    else if (kept->recorded_count == kept->frame_count)
        end_recording(inspector, NULL);
    return result;
}

/* Whether a resource can be recorded: its value owns nothing. */
static bool is_plain(const quern_type_info *type)
{
    return type->hooks.copy == NULL && type->hooks.move == NULL && type->hooks.destroy == NULL;
}

static quern_result begin_recording(quern_inspector *inspector)
{
    quern__inspect_case *kept = &inspector->kept_case;
    quern_world *world = inspector->def.world;
    quern_replay_recorder_def def = {.detail = QUERN_REPLAY_PARTS};
    uint32_t input_count = 0;
    for (uint32_t i = 0; i < quern_type_count(world, QUERN_TYPE_RESOURCE); i++) {
        quern_type_info type;
        if (input_count < QUERN_MAX_REPLAY_INPUTS &&
            quern_type_at(world, QUERN_TYPE_RESOURCE, i, &type) == QUERN_OK && is_plain(&type))
            def.inputs[input_count++] = type.resource;
    }
    const quern_save_def save_def = {.schedules = {inspector->def.schedule}};
    const quern_result result = quern_world_save(world, quern_sink_bytes(&kept->archive), &save_def);
    if (result != QUERN_OK) return result;
    return quern_replay_recorder_create(inspector->def.schedule, quern_sink_bytes(&kept->replay), &def,
                                        &kept->recorder);
}

/* Saves the world, and records the next frames. A case that was kept before is dropped. */
static void begin_record_case(quern__inspect_answer *answer)
{
    quern_inspector *inspector = answer->inspector;
    quern__inspect_case *kept = &inspector->kept_case;
    uint64_t count;
    if (!quern__inspect_read_count(answer, "frames", CASE_FRAMES, CASE_FRAMES_MAX, &count)) return;
    if (count == 0) {
        quern__inspect_fail(answer, 400, "record_case: 'frames' is 0: it must be 1 to %d", CASE_FRAMES_MAX);
        return;
    }
    if (!quern__inspect_has_schedule(answer)) return;
    quern__inspect_case_release(inspector);
    inspector->case_count++;
    kept->archive.allocator = kept->replay.allocator = inspector->def.allocator;
    const quern_result result = begin_recording(inspector);
    if (result != QUERN_OK) {
        quern__inspect_fail_result(answer, result);
        quern__inspect_case_release(inspector);
        return;
    }
    kept->first_frame = inspector->frame;
    kept->frame_count = (uint32_t)count;
    kept->restore_count = quern_world_restore_count(inspector->def.world);
    quern__inspect_note(inspector, "test case of %u frames begins", kept->frame_count);
    quern__inspect_finish_change(answer, QUERN_OK);
}

/* --------------------------------------------------------------------------------------------- a case */

static bool has_case(quern__inspect_answer *answer)
{
    if (answer->inspector->kept_case.archive.size_bytes > 0) return true;
    quern__inspect_fail(answer, 404, "%s: no test case was recorded: send record_case",
                        answer->route->path);
    return false;
}

/* The C program of a case, with its first frame, its last one, the title of the program, and the first frame twice. */
static const char program_head[] =
    "/* Runs the frames %" PRIu64 " to %" PRIu64 " of the program \"%s\" again, and fails at the first one "
    "that differs.\n"
    " *\n"
    " * set_up is yours: it registers the types and creates the schedule as the program does, in the same "
    "order, and\n"
    " * creates no entity. Build this file with it and with Quern, and run it where the two files are. */\n"
    "#include <quern/archive.h>\n"
    "#include <quern/quern.h>\n"
    "#include <quern/replay.h>\n"
    "\n"
    "#include <stdio.h>\n"
    "\n"
    "#define ARCHIVE \"frame_%" PRIu64 ".archive\"\n"
    "#define REPLAY  \"frame_%" PRIu64 ".replay\"\n";

static const char program_body[] =
    "\n"
    "quern_result set_up(quern_world *world, quern_schedule **out_schedule);\n"
    "\n"
    "static int fail(const char *what)\n"
    "{\n"
    "    fprintf(stderr, \"%s: %s\\n\", what, quern_error_message());\n"
    "    return 1;\n"
    "}\n"
    "\n"
    "int main(void)\n"
    "{\n"
    "    quern_world *world = NULL;\n"
    "    quern_schedule *schedule = NULL;\n"
    "    quern_replay_report report = {0};\n"
    "    FILE *archive = fopen(ARCHIVE, \"rb\"), *replay = fopen(REPLAY, \"rb\");\n"
    "    if (archive == NULL || replay == NULL) {\n"
    "        fputs(\"the files \" ARCHIVE \" and \" REPLAY \" must be here\\n\", stderr);\n"
    "        return 1;\n"
    "    }\n"
    "    if (quern_world_create(NULL, &world) != QUERN_OK || set_up(world, &schedule) != QUERN_OK)\n"
    "        return fail(\"set_up\");\n"
    "    if (quern_world_load(world, quern_source_file(archive), &(quern_load_def){.schedules = "
    "{schedule}}, NULL) !=\n"
    "        QUERN_OK)\n"
    "        return fail(ARCHIVE);\n"
    "    const quern_result result = quern_replay_run(schedule, NULL, quern_source_file(replay), NULL, "
    "&report);\n"
    "    if (result == QUERN_ERROR_DIVERGED) fprintf(stderr, \"%s\\n\", report.text);\n"
    "    if (result != QUERN_OK) return fail(REPLAY);\n"
    "    printf(\"%llu frames ran and agreed\\n\", (unsigned long long)report.frame_count);\n"
    "    fclose(archive);\n"
    "    fclose(replay);\n"
    "    quern_schedule_destroy(schedule);\n"
    "    quern_world_destroy(world);\n"
    "    return 0;\n"
    "}\n";

/* Writes the title of the program as it may stand in a comment. */
static void write_program(const quern_inspector *inspector, quern__inspect_text *text)
{
    const quern__inspect_case *kept = &inspector->kept_case;
    char title[64], source[sizeof program_head + sizeof program_body + sizeof title + 80];
    snprintf(title, sizeof title, "%s", inspector->def.title);
    for (char *at = title; *at != '\0'; at++)
        if (*at < ' ' || *at > '~' || *at == '*' || *at == '/' || *at == '"' || *at == '\\') *at = '_';
    const uint64_t first = kept->first_frame,
                   last = first + (kept->recorded_count > 0 ? kept->recorded_count - 1 : 0);
    const int bytes = snprintf(source, sizeof source, program_head, first, last, title, first, first);
    memcpy(source + bytes, program_body, sizeof program_body);
    quern__inspect_put_text(text, "source", source);
}

static void begin_case(quern__inspect_answer *answer)
{
    const quern_inspector *inspector = answer->inspector;
    const quern__inspect_case *kept = &inspector->kept_case;
    quern__inspect_text *text = &answer->text;
    char name[40];
    if (!has_case(answer)) return;
    snprintf(name, sizeof name, "frame_%" PRIu64, kept->first_frame);
    quern__inspect_open(text, NULL, '{');
    quern__inspect_put_text(text, "name", name);
    quern__inspect_put_count(text, "frame", kept->first_frame);
    quern__inspect_put_count(text, "frame_count", kept->frame_count);
    quern__inspect_put_count(text, "recorded_count", kept->recorded_count);
    quern__inspect_put_flag(text, "recording", kept->recorder != NULL);
    quern__inspect_put_text(text, "fault", kept->fault[0] != '\0' ? kept->fault : NULL);
    quern__inspect_put_count(text, "archive_bytes", kept->archive.size_bytes);
    quern__inspect_put_count(text, "replay_bytes", kept->replay.size_bytes);
    write_program(inspector, text);
    quern__inspect_close(text, '}');
}

/* A case that is replaced between two steps ends the answer: its bytes would be of two cases. */
static bool step_bytes(quern__inspect_answer *answer, const quern_byte_buffer *bytes)
{
    const size_t at = answer->text.bytes.size_bytes;
    if (answer->inspector->case_count != answer->inner) {
        quern__inspect_fail(answer, 409, "%s: the test case was replaced meanwhile: ask again",
                            answer->route->path);
        return true;
    }
    const size_t rest = bytes->size_bytes - at, part = rest < BYTES_PER_STEP ? rest : BYTES_PER_STEP;
    const quern_sink sink = quern__inspect_put_bytes(&answer->text);
    return !sink.write(sink.user_data, (const char *)bytes->bytes + at, part) || part == rest;
}

static void begin_case_bytes(quern__inspect_answer *answer)
{
    const quern__inspect_case *kept = &answer->inspector->kept_case;
    if (!has_case(answer)) return;
    if (kept->recorder != NULL) {
        quern__inspect_fail(answer, 409, "%s: %u of %u frames are recorded: ask again", answer->route->path,
                            kept->recorded_count, kept->frame_count);
        return;
    }
    answer->text.is_binary = true;
    answer->inner = answer->inspector->case_count;
}

static bool step_case_archive(quern__inspect_answer *answer)
{
    return step_bytes(answer, &answer->inspector->kept_case.archive);
}

static bool step_case_replay(quern__inspect_answer *answer)
{
    return step_bytes(answer, &answer->inspector->kept_case.replay);
}

/* ------------------------------------------------------------------------------------------- routes */

const quern__inspect_route quern__inspect_case_routes[] = {
    {"archive", false, false, begin_archive, NULL, "leave_out"},
    {"record_case", true, false, begin_record_case, NULL, "frames"},
    {"case", false, false, begin_case, NULL, ""},
    {"case_archive", false, false, begin_case_bytes, step_case_archive, ""},
    {"case_replay", false, false, begin_case_bytes, step_case_replay, ""},
    {NULL, false, false, NULL, NULL, NULL},
};
