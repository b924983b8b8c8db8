/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "party.h"
#include "store.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* The ranks of this process. */
typedef struct Party {
    Link *link;
    const Options *options;
    Rank *ranks;
    quern_jobs *jobs;
    uint32_t agent_count; /* of the beginning */
    uint32_t slot;        /* that the next archive is written to */
    uint64_t first_frame;
    Report reports[RANKS_MAX]; /* of all ranks, after the last frame */
} Party;

/* ------------------------------------------------------------------------------------------- opening */

static bool divide(Stripes *stripes, const Field *field, uint32_t rank_count)
{
    const int32_t width_units = (int32_t)field->width * UNITS_PER_CELL;
    stripes_divide(stripes, rank_count, width_units);
    if (width_units / (int32_t)rank_count >= STRIPE_UNITS_MIN) return true;
    fprintf(stderr,
            "ranks: a field of %" PRIu32 " cells is too narrow for %" PRIu32
            " ranks: use fewer ranks or more "
            "agents\n",
            field->width, rank_count);
    return false;
}

static bool begin(Party *party)
{
    const Options *options = party->options;
    const Field field = field_for(options->seed, options->agent_count);
    Stripes stripes;
    if (!divide(&stripes, &field, party->link->rank_count)) return false;
    party->agent_count = options->agent_count;
    for (uint32_t i = 0; i < party->link->here_count; i++) {
        rank_open(&party->ranks[i], party->link->first_rank + i, &stripes, &field);
        rank_populate(&party->ranks[i], options->agent_count);
    }
    return true;
}

/* Finds the slot of `rank` with that frame. Returns STORE_SLOTS if there is none. */
static uint32_t find_slot(const Stored *slots, const Stored *wanted)
{
    for (uint32_t i = 0; i < STORE_SLOTS; i++)
        if (slots[i].exists && memcmp(&slots[i], wanted, sizeof *wanted) == 0) return i;
    return STORE_SLOTS;
}

/* Returns the newest of the files of the first rank that has a counterpart of every other rank, or NULL. */
static const Stored *find_common(const Stored *all, uint32_t rank_count)
{
    const Stored *newest = NULL;
    for (uint32_t i = 0; i < STORE_SLOTS; i++) {
        bool is_common = all[i].exists && all[i].rank_count == rank_count;
        for (uint32_t rank = 1; rank < rank_count && is_common; rank++)
            is_common = find_slot(&all[(size_t)rank * STORE_SLOTS], &all[i]) < STORE_SLOTS;
        if (is_common && (newest == NULL || all[i].frame > newest->frame)) newest = &all[i];
    }
    return newest;
}

static bool go_on_from(Party *party, const Stored *all, const Stored *common)
{
    const Field field = field_for(common->seed, common->agent_count);
    Stripes stripes = {.count = common->rank_count};
    memcpy(stripes.borders, common->borders, sizeof stripes.borders);
    party->agent_count = common->agent_count;
    for (uint32_t i = 0; i < party->link->here_count; i++) {
        const uint32_t index = party->link->first_rank + i;
        const uint32_t slot = find_slot(&all[(size_t)index * STORE_SLOTS], common);
        rank_open(&party->ranks[i], index, &stripes, &field);
        if (!store_load(&party->ranks[i], party->options->restart_folder, slot)) return false;
        party->slot = !slot;
    }
    party->first_frame = common->frame;
    return true;
}

static bool restart(Party *party)
{
    const Link *link = party->link;
    const char *folder = party->options->restart_folder;
    static Stored own[RANKS_MAX * STORE_SLOTS], all[RANKS_MAX * STORE_SLOTS];
    for (uint32_t i = 0; i < link->here_count; i++)
        for (uint32_t slot = 0; slot < STORE_SLOTS; slot++)
            own[(size_t)i * STORE_SLOTS + slot] = store_look(folder, link->first_rank + i, slot);
    if (!party->link->share(party->link, own, STORE_SLOTS * sizeof own[0], all)) return false;
    const Stored *common = find_common(all, link->rank_count);
    if (common != NULL) return go_on_from(party, all, common);
    if (link->first_rank == 0)
        fprintf(stderr, "ranks: '%s' has no frame that all of %" PRIu32 " ranks have saved\n", folder,
                link->rank_count);
    return false;
}

/* -------------------------------------------------------------------------------------------- frames */

static void for_each(Party *party, void (*act)(Rank *rank))
{
    for (uint32_t i = 0; i < party->link->here_count; i++)
        act(&party->ranks[i]);
}

/* Ends this process as a machine that fails would: without a word to the others. */
static void die_if_told(const Party *party, uint64_t frame)
{
    const Link *link = party->link;
    if (frame == party->options->dying_frame && party->options->dying_rank == link->first_rank &&
        link->here_count < link->rank_count)
        _Exit(EXIT_FAILURE);
}

static void balance(Party *party)
{
    uint64_t costs[RANKS_MAX];
    for (uint32_t i = 0; i < party->link->rank_count; i++)
        costs[i] = party->reports[i].step_ns;
    for (uint32_t i = 0; i < party->link->here_count; i++)
        stripes_balance(&party->ranks[i].stripes, costs);
}

static bool save(Party *party)
{
    for (uint32_t i = 0; i < party->link->here_count; i++)
        if (!store_save(&party->ranks[i], party->options->archive_folder, party->slot, party->agent_count))
            return false;
    party->slot = !party->slot;
    return true;
}

static bool share_reports(Party *party)
{
    Report own[RANKS_MAX];
    for (uint32_t i = 0; i < party->link->here_count; i++)
        own[i] = party->ranks[i].report;
    return party->link->share(party->link, own, sizeof own[0], party->reports);
}

/* Runs frame `frame`, from 0. Returns false if a rank does not answer. */
static bool advance(Party *party, uint64_t frame)
{
    Link *link = party->link;
    const Options *options = party->options;
    for_each(party, rank_send_agents);
    if (!link->exchange(link, party->ranks)) return false;
    for_each(party, rank_receive_agents);
    die_if_told(party, frame);
    for_each(party, rank_send_ghosts);
    if (!link->exchange(link, party->ranks)) return false;
    for_each(party, rank_receive_ghosts);
    for (uint32_t i = 0; i < link->here_count; i++) {
        rank_step(&party->ranks[i], party->jobs);
        if (frame + 1 == options->frame_count)
            party->ranks[i].report.hash = flock_hash(&party->ranks[i].flock);
    }
    if (!share_reports(party)) return false;
    if (options->balance_interval > 0 && (frame + 1) % options->balance_interval == 0) balance(party);
    return true;
}

/* -------------------------------------------------------------------------------------------- results */

/* Totals over all ranks. */
static Report sum_up(const Party *party)
{
    Report sum = {.frame = party->reports[0].frame};
    for (uint32_t i = 0; i < party->link->rank_count; i++) {
        const Report *report = &party->reports[i];
        sum.agent_count += report->agent_count;
        sum.ghost_count += report->ghost_count;
        sum.crossed_count += report->crossed_count;
        sum.sent_bytes += report->sent_bytes;
        sum.birth_count += report->birth_count;
        sum.death_count += report->death_count;
        sum.hash += report->hash;
        if (report->total_step_ns > sum.total_step_ns) sum.total_step_ns = report->total_step_ns;
    }
    return sum;
}

static void print_text(const Party *party, const Report *sum, uint64_t frame_count, double seconds)
{
    const double frames = frame_count > 0 ? (double)frame_count : 1;
    printf("%" PRIu32 " ranks, %" PRIu64 " frames: %.3f ms per frame, of it %.3f ms on the slowest rank\n",
           party->link->rank_count, frame_count, 1e3 * seconds / frames,
           (double)sum->total_step_ns / frames / 1e6);
    printf("%" PRIu64 " agents, %" PRIu64 " born, %" PRIu64 " died, %" PRIu64
           " crossed a border; per frame %.0f "
           "ghosts and %.0f bytes\n",
           sum->agent_count, sum->birth_count, sum->death_count, sum->crossed_count,
           (double)sum->ghost_count / frames, (double)sum->sent_bytes / frames);
    printf("hash by id: 0x%016" PRIx64 "\n", sum->hash);
}

static void print_json(const Party *party, const Report *sum, uint64_t frame_count, double seconds)
{
    const double frames = frame_count > 0 ? (double)frame_count : 1;
    const Stripes *stripes = &party->ranks[0].stripes;
    printf("{\"ranks\": %" PRIu32 ", \"threads\": %" PRIu32 ", \"agents\": %" PRIu32
           ", \"frames\": %" PRIu64
           ", \"seconds_per_frame\": %.9f, \"step_seconds_per_frame\": %.9f, \"agents_at_end\": %" PRIu64
           ", \"born\": %" PRIu64 ", \"died\": %" PRIu64 ", \"crossed\": %" PRIu64 ", \"ghosts\": %" PRIu64
           ", \"bytes\": %" PRIu64 ", \"borders\": [",
           stripes->count, party->options->thread_count, party->agent_count, frame_count, seconds / frames,
           (double)sum->total_step_ns / frames / 1e9, sum->agent_count, sum->birth_count, sum->death_count,
           sum->crossed_count, sum->ghost_count, sum->sent_bytes);
    for (uint32_t i = 0; i <= stripes->count; i++)
        printf("%s%g", i > 0 ? ", " : "", (double)stripes->borders[i] / UNITS_PER_CELL);
    printf("], \"hash\": \"0x%016" PRIx64 "\"}\n", sum->hash);
}

static void print_result(const Party *party, double seconds)
{
    const Report sum = sum_up(party);
    const uint64_t frame_count = sum.frame - party->first_frame;
    if (party->link->first_rank != 0) return;
    if (party->options->json)
        print_json(party, &sum, frame_count, seconds);
    else
        print_text(party, &sum, frame_count, seconds);
}

/* The message is written by one call, so that those of several ranks do not mix. */
static int report_loss(const Party *party)
{
    const Link *link = party->link;
    const Loss loss = party->link->agree_on_loss(party->link, party->ranks[0].report.frame);
    char lost[RANKS_MAX * sizeof " rank 63"] = "";
    size_t length = 0;
    for (uint32_t i = 0; i < link->rank_count; i++)
        if (loss.lost >> i & 1)
            length += (size_t)snprintf(lost + length, sizeof lost - length, " rank %" PRIu32, i);
    fprintf(stderr,
            "ranks: rank %" PRIu32 " stops after frame %" PRIu64 ":%s did not answer for %g s%s%s\n",
            link->first_rank, loss.frame, length > 0 ? lost : " a rank", link->timeout_seconds,
            party->options->archive_folder != NULL ? "; go on with --restart " : "",
            party->options->archive_folder != NULL ? party->options->archive_folder : "");
    fflush(NULL);
    return EXIT_LOST;
}

static double now_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static int run_frames(Party *party)
{
    const Options *options = party->options;
    const double begin_seconds = now_seconds();
    if (party->first_frame >= options->frame_count) {
        fprintf(stderr, "ranks: the archives are of frame %" PRIu64 ", so --frames must be more\n",
                party->first_frame);
        return EXIT_FAILURE;
    }
    for (uint64_t frame = party->first_frame; frame < options->frame_count; frame++) {
        if (!advance(party, frame)) return report_loss(party);
        if (options->archive_folder != NULL && (frame + 1) % options->archive_interval == 0 && !save(party))
            return EXIT_FAILURE;
    }
    print_result(party, now_seconds() - begin_seconds);
    return EXIT_SUCCESS;
}

int party_run(Link *link, const Options *options)
{
    static Party party;
    party = (Party){.link = link, .options = options};
    link->timeout_seconds = options->timeout_seconds;
    party.ranks = calloc(link->here_count, sizeof *party.ranks);
    if (party.ranks == NULL) {
        fprintf(stderr, "ranks: out of memory for %" PRIu32 " ranks\n", link->here_count);
        return EXIT_FAILURE;
    }
    QUERN_MUST(quern_jobs_create(&(quern_jobs_def){.thread_count = options->thread_count}, &party.jobs));
    int status = EXIT_FAILURE;
    if (options->restart_folder != NULL ? restart(&party) : begin(&party)) status = run_frames(&party);
    for (uint32_t i = 0; i < link->here_count; i++)
        if (party.ranks[i].flock.world != NULL) rank_close(&party.ranks[i]);
    quern_jobs_destroy(party.jobs);
    free(party.ranks);
    return status;
}
