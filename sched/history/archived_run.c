/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "sched/history/archived_run.h"

#include "core/bytes/schema.h"
#include "core/query/target.h"
#include "sched/frame/event_frame.h"
#include "sched/history/saved_schedule.h"

#include <stdio.h>

/* Greater clocks do not occur: a world would need centuries to reach it. The limit keeps later versions from
 * overflowing. */
#define MAX_CLOCK (UINT64_MAX / 4)

typedef struct run_head {
    uint64_t clock;
    uint32_t schedule_count;
    uint32_t archetype_count;
} run_head;

typedef struct run_schedule {
    uint32_t phase_count, system_count;
} run_schedule;

typedef struct run_versions {
    uint32_t stride;     /* versions of each chunk; 0: none are kept */
    uint32_t lane_count; /* components with row versions */
} run_versions;

quern_result quern__run_fail(const char *part)
{
    char text[96];
    snprintf(text, sizeof text, "the %s in the state of its schedules cannot be read", part);
    return quern__image_fail(text);
}

/* --------------------------------------------------------------------------------------- schedules */

static void write_schedule(const quern_schedule *schedule, quern__byte_writer *writer)
{
    const quern__plan *plan = &schedule->plan;
    const run_schedule head = {plan->phase_count, plan->systems.count};
    quern__write(writer, &head, sizeof head);
    for (uint32_t i = 0; i < plan->phase_count; i++)
        quern__write_text(writer, QUERN__RUN_NAME_LENGTH_BYTES, plan->phases[i].name);
    for (uint32_t i = 0; i < plan->systems.count; i++)
        quern__write_text(writer, QUERN__RUN_NAME_LENGTH_BYTES, plan->systems.items[i]->name);
    quern__schedule_save(schedule, writer);
}

static quern_result check_name(quern__byte_reader *bytes, const char *what, const char *name)
{
    char saved[QUERN_MAX_NAME_BYTES + 1];
    quern__read_text(bytes, QUERN__RUN_NAME_LENGTH_BYTES, QUERN_MAX_NAME_BYTES, saved);
    if (bytes->has_failed) return quern__run_fail("names");
    if (strcmp(saved, name) == 0) return QUERN_OK;
    return quern__fail(QUERN_ERROR_LAYOUT_MISMATCH,
                       "%s '%s' of a schedule was '%s' when the archive was saved: add the same phases and "
                       "systems in the same order, or load without schedules",
                       what, name, saved);
}

static quern_result prepare_schedule(const quern_schedule *schedule, quern__byte_reader *bytes,
                                     uint64_t clock)
{
    const quern__plan *plan = &schedule->plan;
    run_schedule head;
    quern__read(bytes, &head, sizeof head);
    if (bytes->has_failed) return quern__run_fail("schedules");
    if (head.phase_count != plan->phase_count || head.system_count != plan->systems.count)
        return quern__fail(
            QUERN_ERROR_LAYOUT_MISMATCH,
            "a schedule has %u phases and %u systems, but %u and %u when the archive was saved: "
            "list the same schedules in the same order, with the same systems, or load without "
            "schedules",
            plan->phase_count, plan->systems.count, head.phase_count, head.system_count);
    quern_result result = QUERN_OK;
    for (uint32_t i = 0; i < head.phase_count && result == QUERN_OK; i++)
        result = check_name(bytes, "phase", plan->phases[i].name);
    for (uint32_t i = 0; i < head.system_count && result == QUERN_OK; i++)
        result = check_name(bytes, "system", plan->systems.items[i]->name);
    if (result != QUERN_OK) return result;
    return quern__schedule_check_bytes(schedule, bytes, clock) ? QUERN_OK : quern__run_fail("schedules");
}

static void restore_schedule(quern_schedule *schedule, quern__run_reader *reader)
{
    const quern__plan *plan = &schedule->plan;
    char name[QUERN_MAX_NAME_BYTES + 1];
    quern__read_in_place(&reader->bytes, sizeof(run_schedule));
    for (uint32_t i = 0; i < plan->phase_count + plan->systems.count; i++)
        quern__read_text(&reader->bytes, QUERN__RUN_NAME_LENGTH_BYTES, QUERN_MAX_NAME_BYTES, name);
    quern__schedule_restore(schedule, &reader->bytes);
    for (uint32_t i = 0; i < plan->systems.count; i++) {
        quern__target *target = plan->systems.items[i]->query.target;
        if (target != NULL) target->entity = reader->remap(reader->remap_argument, target->entity);
    }
    if (QUERN_CHECKS) quern__guards_invalidate(schedule);
}

/* ---------------------------------------------------------------------------------------- versions */

static run_versions describe_versions(const quern__archetype *archetype)
{
    if (archetype->versions.items == NULL) return (run_versions){0};
    return (run_versions){archetype->versions.stride,
                          archetype->row_versions != NULL ? archetype->row_versions->lane_count : 0};
}

static void write_versions(const quern__archetype *archetype, quern__byte_writer *writer)
{
    const run_versions head = describe_versions(archetype);
    quern__write(writer, &head, sizeof head);
    quern__write(writer, archetype->versions.items,
                 (size_t)archetype->chunk_count * head.stride * sizeof(uint64_t));
    for (uint32_t lane = 0; lane < head.lane_count; lane++) {
        quern__write_u32(writer, archetype->row_versions->lanes[lane].version_index);
        for (uint32_t slot = 0; slot < archetype->chunk_count; slot++)
            quern__write(writer, quern__row_versions_lane(archetype->row_versions, lane, slot),
                         archetype->slots[slot].row_count * sizeof(uint64_t));
    }
}

/* Whether all versions are times up to `latest`, which begin at 1. */
static bool are_versions(const char *versions, uint64_t count, uint64_t latest)
{
    bool are_valid = true;
    for (uint64_t i = 0; i < count; i++)
        are_valid &= quern__load_u64(versions, i) - 1 < latest; /* 0 becomes the largest number */
    return are_valid;
}

/* Checks the row versions of one component. A row may not be newer than both its chunk and the component in it: filters
 * skip chunks by the versions of chunks. */
static bool check_lane(const quern__archived_archetype *archived, uint32_t stride, const char *versions,
                       quern__byte_reader *bytes)
{
    const uint32_t version_index = quern__read_u32(bytes);
    if (bytes->has_failed || version_index == 0 || version_index >= stride) return false;
    for (uint32_t slot = 0; slot < quern__run_slot_count(archived); slot++) {
        const uint32_t rows = quern__run_rows_in(archived, slot);
        const char *lane = quern__read_items(bytes, rows, sizeof(uint64_t));
        const uint64_t of_rows = quern__load_u64(versions, (uint64_t)slot * stride);
        const uint64_t of_component = quern__load_u64(versions, (uint64_t)slot * stride + version_index);
        if (lane == NULL || !are_versions(lane, rows, of_rows > of_component ? of_rows : of_component))
            return false;
    }
    return true;
}

static bool check_versions(const quern__archived_archetype *archived, quern__byte_reader *bytes,
                           uint64_t clock)
{
    run_versions head;
    quern__read(bytes, &head, sizeof head);
    if (head.stride != 0 && head.stride != archived->archetype->component_count + 1) return false;
    const uint64_t count = (uint64_t)quern__run_slot_count(archived) * head.stride;
    const char *versions = quern__read_items(bytes, count, sizeof(uint64_t));
    if (versions == NULL || !are_versions(versions, count, clock) || head.lane_count > head.stride)
        return false;
    for (uint32_t lane = 0; lane < head.lane_count; lane++)
        if (!check_lane(archived, head.stride, versions, bytes)) return false;
    return !bytes->has_failed;
}

/* Restores the row versions of the next component, unless the archetype keeps none of it. */
static void restore_lane(const quern__archived_archetype *archived, quern__byte_reader *bytes)
{
    const quern__row_versions *row_versions = archived->archetype->row_versions;
    const uint32_t version_index = quern__read_u32(bytes);
    uint32_t lane = 0;
    while (row_versions != NULL && lane < row_versions->lane_count &&
           row_versions->lanes[lane].version_index != version_index)
        lane++;
    for (uint32_t slot = 0; slot < quern__run_slot_count(archived); slot++) {
        const size_t lane_bytes = quern__run_rows_in(archived, slot) * sizeof(uint64_t);
        const char *versions = quern__read_in_place(bytes, lane_bytes);
        if (row_versions == NULL || lane >= row_versions->lane_count) continue;
        uint64_t *rows = quern__row_versions_lane(row_versions, lane, slot);
        memcpy(rows, versions, lane_bytes);
        quern__row_groups_raise_to(rows, rows, quern__run_rows_in(archived, slot));
    }
}

/* Restores the versions that the archetype keeps. Those that only the saved world kept are skipped. */
static void restore_versions(const quern__archived_archetype *archived, quern__byte_reader *bytes)
{
    run_versions head;
    quern__read(bytes, &head, sizeof head);
    const size_t count = (size_t)quern__run_slot_count(archived) * head.stride;
    const char *versions = quern__read_items(bytes, count, sizeof(uint64_t));
    if (archived->archetype->versions.items != NULL && count > 0)
        memcpy(archived->archetype->versions.items, versions, count * sizeof(uint64_t));
    for (uint32_t lane = 0; lane < head.lane_count; lane++)
        restore_lane(archived, bytes);
}

/* ----------------------------------------------------------------------------------------- writing */

/* Commands that failed frames have kept, and events that they could not publish, cannot be saved. */
static quern_result check_unsaved(const quern__archived_run *run)
{
    quern_result result = QUERN_OK;
    for (uint32_t i = 0; i < run->schedule_count && result == QUERN_OK; i++)
        result = quern__schedule_check_unsaved(run->schedules[i]);
    return result;
}

quern_result quern__run_write(const quern__archived_run *run, quern__byte_writer *writer)
{
    const quern__storage *storage = &run->world->storage;
    quern_result result = check_unsaved(run);
    if (result != QUERN_OK) return result;
    const run_head head = {storage->clock, run->schedule_count, storage->archetypes.count};
    quern__write(writer, &head, sizeof head);
    for (uint32_t i = 0; i < run->schedule_count; i++)
        write_schedule(run->schedules[i], writer);
    for (uint32_t i = 0; i < storage->archetypes.count; i++)
        write_versions(storage->archetypes.items[i], writer);
    result = quern__run_write_reactions(run, writer);
    if (result == QUERN_OK) result = quern__run_write_events(run->world, writer);
    if (result == QUERN_OK && writer->has_failed)
        result = quern__fail(QUERN_ERROR_OUT_OF_MEMORY,
                             "out of memory for the state of %u schedules; nothing was written",
                             run->schedule_count);
    return result;
}

/* ----------------------------------------------------------------------------------------- loading */

static quern__run_reader open_reader(const quern__image *image, run_head *out_head)
{
    quern__run_reader reader = {.image = image,
                                .bytes = quern__byte_reader_open(image->run.bytes, image->run.count)};
    quern__read(&reader.bytes, out_head, sizeof *out_head);
    return reader;
}

static quern_result check_head(const quern__archived_run *run, const quern__run_reader *reader,
                               const run_head *head)
{
    if (reader->bytes.has_failed || head->clock > MAX_CLOCK ||
        head->archetype_count != reader->image->archetypes.count)
        return quern__run_fail("head");
    if (head->schedule_count == run->schedule_count) return QUERN_OK;
    return quern__fail(
        QUERN_ERROR_LAYOUT_MISMATCH,
        "%u schedules are listed, but the archive was saved with %u: list the same schedules in "
        "the same order, or load without schedules",
        run->schedule_count, head->schedule_count);
}

static quern_result prepare(quern__archived_run *run, const quern__image *image)
{
    run_head head;
    quern__run_reader reader = open_reader(image, &head);
    quern_result result = check_head(run, &reader, &head);
    if (result == QUERN_OK) result = check_unsaved(run);
    for (uint32_t i = 0; i < run->schedule_count && result == QUERN_OK; i++)
        result = prepare_schedule(run->schedules[i], &reader.bytes, head.clock);
    for (uint32_t i = 0; i < head.archetype_count && result == QUERN_OK; i++)
        if (!check_versions(&image->archetypes.items[i], &reader.bytes, head.clock))
            result = quern__run_fail("change versions");
    if (result == QUERN_OK) result = quern__run_prepare_reactions(run, &reader);
    if (result == QUERN_OK) result = quern__run_prepare_events(run, &reader);
    if (result == QUERN_OK && !quern__is_fully_read(&reader.bytes)) result = quern__run_fail("end");
    return result;
}

quern_result quern__run_prepare(void *argument, const quern__image *image)
{
    quern__archived_run *run = argument;
    const quern_result result = prepare(run, image);
    if (result != QUERN_OK) quern__packing_undo(run->world, &run->event_blocks);
    return result;
}

/* Versions in chunks are set back, so a filter that has seen the present clock would miss changes. All filters see
 * everything as changed once, except those of the schedules, which are restored afterwards. */
static void forget_seen_versions(quern__storage *storage)
{
    for (quern__query *query = storage->first_query; query != NULL; query = query->next)
        query->seen_version = 0;
}

void quern__run_restore(void *argument, const quern__image *image, quern__remap_function *remap,
                        void *remap_argument)
{
    quern__archived_run *run = argument;
    quern__storage *storage = &run->world->storage;
    run_head head;
    quern__run_reader reader = open_reader(image, &head);
    reader.remap = remap;
    reader.remap_argument = remap_argument;
    if (head.clock > storage->clock) storage->clock = head.clock;
    forget_seen_versions(storage);
    for (uint32_t i = 0; i < run->schedule_count; i++)
        restore_schedule(run->schedules[i], &reader);
    for (uint32_t i = 0; i < head.archetype_count; i++)
        restore_versions(&image->archetypes.items[i], &reader.bytes);
    quern__run_restore_reactions(run, &reader);
    quern__run_restore_events(run, &reader);
    assert(quern__is_fully_read(&reader.bytes));
}
