/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "kit/ranks_internal.h"

#include <errno.h>
#include <inttypes.h>

/* Checkpoints. Each rank writes a file to one of two slots, which take turns; when all have done so, rank 0 replaces the file
 * "checkpoint", which names slot, frame and run. So the older checkpoint stays until the newer one is whole. Files are written
 * under another name, forced to disk, and renamed. A file is a line of text, then the events that wait, the globals, and an
 * archive of the world with the state of its schedule. */

typedef struct ranks_file_head {
    uint64_t frame, run, size_bytes, checksum;
    uint32_t rank, rank_count;
} ranks_file_head;

typedef char ranks_path[RANKS_PATH_BYTES + 64];

static void path_of(const quern_ranks *ranks, uint32_t rank, uint32_t slot, ranks_path out)
{
    snprintf(out, sizeof(ranks_path), "%s/rank-%u-%c.quern", ranks->folder, (unsigned)rank,
             slot == 0 ? 'a' : 'b');
}

static quern_result fail_io(const char *call, const char *what, const char *path)
{
    return quern_error_set(QUERN_ERROR_IO, "%s: '%s' cannot be %s: %s", call, path, what, strerror(errno));
}

/* ------------------------------------------------------------------------------------------- writing */

/* Writes a line and bytes to a file, which then replaces the one at `path`. */
static quern_result write_file(quern_ranks *ranks, const char *call, const char *path, const char *line,
                               const quern_byte_buffer *bytes)
{
    ranks_path unfinished;
    snprintf(unfinished, sizeof unfinished, "%s", path);
    memcpy(unfinished + strlen(unfinished) - 6, ".tmp", 5); /* in the place of ".quern" */
    FILE *file = fopen(unfinished, "wb");
    if (file == NULL) return fail_io(call, "created", unfinished);
    const bool is_written = fputs(line, file) != EOF &&
                            fwrite(bytes->bytes, 1, bytes->size_bytes, file) == bytes->size_bytes &&
                            quern__ranks_force(file);
    quern_result result = is_written ? QUERN_OK : fail_io(call, "written", unfinished);
    if (fclose(file) != 0 && result == QUERN_OK) result = fail_io(call, "written", unfinished);
    if (result == QUERN_OK && !quern__ranks_replace(unfinished, path))
        result = fail_io(call, "replaced", path);
    if (result != QUERN_OK)
        (void)remove(unfinished);
    else
        quern__ranks_force_folder(ranks->folder);
    return result;
}

quern_result quern__ranks_try_folder(quern_ranks *ranks)
{
    ranks_path path;
    const quern_byte_buffer nothing = {.bytes = "", .size_bytes = 0};
    snprintf(path, sizeof path, "%s/try-%u.quern", ranks->folder, (unsigned)ranks->rank);
    const quern_result result = write_file(ranks, "quern_ranks_create", path, "", &nothing);
    if (result != QUERN_OK) return result;
    (void)remove(path);
    return QUERN_OK;
}

static quern_result pack(quern_ranks *ranks, quern_byte_buffer *out)
{
    const uint64_t count = RANKS_COUNT(ranks->pending, ranks_letter);
    const quern_save_def def = {.schedules = {ranks->schedule, ranks->inner}};
    out->size_bytes = 0;
    if (quern__ranks_append(out, &count, sizeof count) == NULL ||
        quern__ranks_append(out, ranks->pending.bytes, ranks->pending.size_bytes) == NULL ||
        quern__ranks_append(out, quern_ranks_get_state(ranks), sizeof(quern_ranks_state)) == NULL)
        return QUERN_ERROR_OUT_OF_MEMORY;
    return quern_world_save(ranks->world, quern_sink_bytes(out), &def);
}

quern_result quern__ranks_save(quern_ranks *ranks)
{
    char line[256];
    ranks_path path;
    const quern_result result = pack(ranks, &ranks->packet);
    if (result != QUERN_OK) return result;
    path_of(ranks, ranks->rank, ranks->slot, path);
    snprintf(line, sizeof line,
             "quern-ranks 1 frame %" PRIu64 " rank %u of %u run %016" PRIx64
             " bytes %zu checksum %016" PRIx64 "\n",
             ranks->frame, (unsigned)ranks->rank, (unsigned)ranks->rank_count, ranks->run_number,
             ranks->packet.size_bytes,
             quern__ranks_checksum(ranks->packet.bytes, ranks->packet.size_bytes));
    return write_file(ranks, "quern_ranks_run", path, line, &ranks->packet);
}

quern_result quern__ranks_commit(quern_ranks *ranks)
{
    char line[256];
    ranks_path path;
    const quern_byte_buffer nothing = {.bytes = "", .size_bytes = 0};
    if (ranks->rank != 0) return QUERN_OK;
    snprintf(path, sizeof path, "%s/checkpoint.quern", ranks->folder);
    snprintf(line, sizeof line,
             "quern-ranks 1 checkpoint of frame %" PRIu64 " ranks %u run %016" PRIx64 " slot %u\n",
             ranks->frame, (unsigned)ranks->rank_count, ranks->run_number, (unsigned)ranks->slot);
    return write_file(ranks, "quern_ranks_run", path, line, &nothing);
}

/* ------------------------------------------------------------------------------------------- reading */

static quern_result bad_file(const char *path, uint64_t frame, const char *what)
{
    return quern_error_set(QUERN_ERROR_BAD_ARCHIVE,
                           "quern_ranks_start: '%s' of the checkpoint of frame %" PRIu64
                           " %s: restore the file, or begin anew",
                           path, frame, what);
}

/* Reads the file of a rank into `packet`, and checks that it belongs to the checkpoint. */
static quern_result read_file(quern_ranks *ranks, const char *path, const ranks_file_head *wanted)
{
    ranks_file_head head;
    size_t size_bytes = 0;
    FILE *file = fopen(path, "rb");
    if (file == NULL) return fail_io("quern_ranks_start", "opened", path);
    const int count =
        fscanf(file,
               "quern-ranks 1 frame %" SCNu64 " rank %" SCNu32 " of %" SCNu32 " run %" SCNx64
               " bytes %" SCNu64 " checksum %" SCNx64,
               &head.frame, &head.rank, &head.rank_count, &head.run, &head.size_bytes, &head.checksum);
    const bool has_head = count == 6 && fgetc(file) == '\n';
    ranks->packet.size_bytes = 0;
    while (has_head && size_bytes < head.size_bytes) {
        char piece[16384];
        const size_t rest = (size_t)(head.size_bytes - size_bytes);
        const size_t got = fread(piece, 1, rest < sizeof piece ? rest : sizeof piece, file);
        if (got == 0) break;
        if (quern__ranks_append(&ranks->packet, piece, got) == NULL) {
            fclose(file);
            return QUERN_ERROR_OUT_OF_MEMORY;
        }
        size_bytes += got;
    }
    fclose(file);
    if (!has_head) return bad_file(path, wanted->frame, "does not begin as one");
    if (head.frame != wanted->frame || head.run != wanted->run || head.rank != wanted->rank ||
        head.rank_count != wanted->rank_count) {
        char what[128];
        snprintf(what, sizeof what, "is of rank %u and frame %" PRIu64 " of another checkpoint",
                 (unsigned)head.rank, head.frame);
        return bad_file(path, wanted->frame, what);
    }
    if (size_bytes != head.size_bytes) return bad_file(path, wanted->frame, "is truncated");
    if (quern__ranks_checksum(ranks->packet.bytes, size_bytes) != head.checksum)
        return bad_file(path, wanted->frame, "is damaged");
    return QUERN_OK;
}

static quern_result destroy_all(quern_ranks *ranks)
{
    const uint32_t count = quern_world_list_entities(ranks->world, NULL, 0);
    ranks->list.size_bytes = 0;
    if (count == 0) return QUERN_OK;
    if (quern__ranks_append(&ranks->list, NULL, count * sizeof(quern_entity)) == NULL)
        return QUERN_ERROR_OUT_OF_MEMORY;
    quern_world_list_entities(ranks->world, ranks->list.bytes, count);
    return quern_entity_destroy_many(ranks->world, ranks->list.bytes, count);
}

/* Loads the file of a rank: the first one as the world, with the state of its schedule, others as further entities. */
static quern_result load_file(quern_ranks *ranks, const ranks_file_head *wanted, uint32_t slot,
                              bool is_first)
{
    ranks_path path;
    uint64_t count = 0;
    const quern_load_def further = {.skip_resources = true},
                         with_schedule = {.schedules = {ranks->schedule, ranks->inner}};
    path_of(ranks, wanted->rank, slot, path);
    quern_result result = read_file(ranks, path, wanted);
    if (result != QUERN_OK) return result;
    const char *bytes = ranks->packet.bytes;
    if (ranks->packet.size_bytes >= sizeof count) memcpy(&count, bytes, sizeof count);
    const size_t rest = ranks->packet.size_bytes - sizeof count,
                 letter_bytes = (size_t)count * sizeof(ranks_letter);
    if (ranks->packet.size_bytes < sizeof count || rest < sizeof(quern_ranks_state) ||
        count > (rest - sizeof(quern_ranks_state)) / sizeof(ranks_letter) ||
        !quern__ranks_letters_are_good(ranks, bytes + sizeof count, letter_bytes))
        return bad_file(path, wanted->frame, "is damaged");
    if (quern__ranks_append(&ranks->pending, bytes + sizeof count, letter_bytes) == NULL)
        return QUERN_ERROR_OUT_OF_MEMORY;
    const char *state = bytes + sizeof count + letter_bytes, *archive = state + sizeof(quern_ranks_state);
    result = quern_world_load(ranks->world,
                              quern_source_bytes(archive, rest - letter_bytes - sizeof(quern_ranks_state)),
                              is_first ? &with_schedule : &further, NULL);
    if (result != QUERN_OK) return result;
    memcpy(quern_resource_get(ranks->world, ranks->state_resource), state, sizeof(quern_ranks_state));
    return QUERN_OK;
}

/* Reads which checkpoint is the last. */
static quern_result read_checkpoint(const quern_ranks *ranks, ranks_file_head *head, uint32_t *out_slot)
{
    ranks_path path;
    snprintf(path, sizeof path, "%s/checkpoint.quern", ranks->folder);
    FILE *file = fopen(path, "rb");
    if (file == NULL) return fail_io("quern_ranks_start", "opened", path);
    const int count = fscanf(file,
                             "quern-ranks 1 checkpoint of frame %" SCNu64 " ranks %" SCNu32 " run %" SCNx64
                             " slot %" SCNu32,
                             &head->frame, &head->rank_count, &head->run, out_slot);
    fclose(file);
    return count == 4 && *out_slot <= 1 && head->rank_count > 0 && head->rank_count <= QUERN_RANKS_MAX
               ? QUERN_OK
               : bad_file(path, 0, "does not say which checkpoint is the last");
}

void quern__ranks_spare_checkpoint(quern_ranks *ranks)
{
    ranks_file_head head = {0};
    uint32_t slot = 0;
    if (read_checkpoint(ranks, &head, &slot) == QUERN_OK) ranks->slot = !slot;
}

quern_result quern__ranks_load(quern_ranks *ranks)
{
    ranks_file_head head = {0};
    uint32_t slot = 0;
    quern_result result = read_checkpoint(ranks, &head, &slot);
    if (result != QUERN_OK) return result;
    const bool has_own = ranks->rank < head.rank_count;
    for (uint32_t i = ranks->rank; i < head.rank_count && result == QUERN_OK; i += ranks->rank_count) {
        head.rank = i;
        result = load_file(ranks, &head, slot, i == ranks->rank);
    }
    if (!has_own) { /* the state of the schedule alone */
        head.rank = 0;
        result = load_file(ranks, &head, slot, true);
        ranks->pending.size_bytes = 0;
        if (result == QUERN_OK) result = destroy_all(ranks);
    }
    if (result != QUERN_OK) return result;
    ranks->frame = head.frame;
    ranks->slot = !slot;
    ranks->own.checkpoint_frame = head.frame;
    return QUERN_OK;
}
