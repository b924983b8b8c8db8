/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "rank.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* -------------------------------------------------------------------------------------------- opening */

/* Ghosts come without number and life, so no system acts on them and no hash has them. */
static void open_sessions(Rank *rank, Neighbour *side)
{
    quern_world *world = rank->flock.world;
    const quern_save_def of_ghosts = {.leave_out = {rank->flock.number, rank->flock.life}};
    const quern_load_def as_ghosts = {.extra = {rank->flock.ghost}};
    QUERN_MUST(quern_save_session_create(world, NULL, &side->agents_out));
    QUERN_MUST(quern_save_session_create(world, &of_ghosts, &side->ghosts_out));
    QUERN_MUST(quern_load_session_create(world, NULL, &side->agents_in));
    QUERN_MUST(quern_load_session_create(world, &as_ghosts, &side->ghosts_in));
}

void rank_open(Rank *rank, uint32_t index, const Stripes *stripes, const Field *field)
{
    *rank = (Rank){.index = index, .stripes = *stripes};
    flock_open(&rank->flock, field);
    QUERN_MUST(quern_archive_create(rank->flock.world, &rank->list));
    for (int side = 0; side < SIDE_COUNT; side++)
        open_sessions(rank, &rank->sides[side]);
}

void rank_close(Rank *rank)
{
    for (int side = 0; side < SIDE_COUNT; side++) {
        quern_save_session_destroy(rank->sides[side].agents_out);
        quern_save_session_destroy(rank->sides[side].ghosts_out);
        quern_load_session_destroy(rank->sides[side].agents_in);
        quern_load_session_destroy(rank->sides[side].ghosts_in);
        quern_byte_buffer_release(&rank->mail.out[side]);
        quern_byte_buffer_release(&rank->mail.in[side]);
        free(rank->leaving[side]);
    }
    quern_archive_destroy(rank->list);
    flock_close(&rank->flock);
}

static int32_t unit_of(float x)
{
    return (int32_t)floorf(x * UNITS_PER_CELL);
}

void rank_populate(Rank *rank, uint32_t agent_count)
{
    for (uint32_t i = 0; i < agent_count; i++)
        if (stripes_find(&rank->stripes, unit_of(flock_first_place(&rank->flock.field, i).x)) ==
            rank->index)
            flock_create_agent(&rank->flock, i);
}

/* ------------------------------------------------------------------------------------- lists of agents */

/* Empties the lists of agents to send, and makes room for all agents in each. */
static void begin_lists(Rank *rank)
{
    const uint32_t count = (uint32_t)quern_query_count(rank->flock.agents);
    const uint32_t capacity = count > rank->leaving_capacity ? 2 * count : rank->leaving_capacity;
    for (int side = 0; side < SIDE_COUNT; side++) {
        rank->leaving_count[side] = 0;
        rank->mail.out[side].size_bytes = 0;
        if (capacity == rank->leaving_capacity) continue;
        free(rank->leaving[side]);
        rank->leaving[side] = malloc(capacity * sizeof *rank->leaving[side]);
        if (rank->leaving[side] != NULL) continue;
        fprintf(stderr, "ranks: out of memory for a list of %" PRIu32 " agents\n", capacity);
        abort();
    }
    rank->leaving_capacity = capacity;
}

static void list_agent(Rank *rank, int side, quern_entity entity)
{
    rank->leaving[side][rank->leaving_count[side]++] = entity;
}

static void write_list(Rank *rank, int side, quern_save_session *session)
{
    if (rank->leaving_count[side] == 0) return;
    quern_archive_clear(rank->list);
    QUERN_MUST(quern_archive_append(rank->list, rank->leaving[side], rank->leaving_count[side]));
    QUERN_MUST(quern_save_session_write(session, rank->list, quern_sink_bytes(&rank->mail.out[side])));
    rank->report.sent_bytes += rank->mail.out[side].size_bytes;
}

static uint32_t read_list(Rank *rank, int side, quern_load_session *session)
{
    const quern_byte_buffer *in = &rank->mail.in[side];
    quern_load_report report = {0};
    if (in->size_bytes == 0) return 0;
    QUERN_MUST(
        quern_load_session_read(session, quern_source_bytes(in->bytes, in->size_bytes), NULL, 0, &report));
    return report.entity_count;
}

/* ----------------------------------------------------------------------------------- steps of a frame */

/* Lists the agents that are no longer in the stripe. The distance that agents and borders move in a frame is limited, so
 * they are in an adjacent one. */
static void list_leaving(Rank *rank)
{
    quern_query_iterator it = quern_query_iterate(rank->flock.agents);
    while (quern_query_next(&it)) {
        const Place *places = QUERN_COLUMN(&it.view, 1, const Place);
        for (uint32_t end = it.view.count, i = 0; i < end; i++) {
            const uint32_t stripe = stripes_find(&rank->stripes, unit_of(places[i].x));
            if (stripe == rank->index) continue;
            if (stripe + 1 != rank->index && stripe != rank->index + 1) {
                fprintf(stderr, "ranks: rank %" PRIu32 " has an agent in stripe %" PRIu32 "\n", rank->index,
                        stripe);
                abort();
            }
            list_agent(rank, stripe < rank->index ? SIDE_LEFT : SIDE_RIGHT, it.view.entities[i]);
        }
    }
}

void rank_send_agents(Rank *rank)
{
    begin_lists(rank);
    list_leaving(rank);
    for (int side = 0; side < SIDE_COUNT; side++) {
        write_list(rank, side, rank->sides[side].agents_out);
        QUERN_MUST(
            quern_entity_destroy_many(rank->flock.world, rank->leaving[side], rank->leaving_count[side]));
        rank->report.crossed_count += rank->leaving_count[side];
    }
}

void rank_receive_agents(Rank *rank)
{
    for (int side = 0; side < SIDE_COUNT; side++)
        read_list(rank, side, rank->sides[side].agents_in);
}

void rank_send_ghosts(Rank *rank)
{
    const bool has_left = rank->index > 0, has_right = rank->index + 1 < rank->stripes.count;
    const int32_t left_end = rank->stripes.borders[rank->index] + GHOST_UNITS;
    const int32_t right_begin = rank->stripes.borders[rank->index + 1] - GHOST_UNITS;
    begin_lists(rank);
    quern_query_iterator it = quern_query_iterate(rank->flock.agents);
    while (quern_query_next(&it)) {
        const Place *places = QUERN_COLUMN(&it.view, 1, const Place);
        for (uint32_t end = it.view.count, i = 0; i < end; i++) {
            const int32_t unit = unit_of(places[i].x);
            if (has_left && unit < left_end) list_agent(rank, SIDE_LEFT, it.view.entities[i]);
            if (has_right && unit >= right_begin) list_agent(rank, SIDE_RIGHT, it.view.entities[i]);
        }
    }
    for (int side = 0; side < SIDE_COUNT; side++)
        write_list(rank, side, rank->sides[side].ghosts_out);
}

void rank_receive_ghosts(Rank *rank)
{
    for (int side = 0; side < SIDE_COUNT; side++)
        rank->report.ghost_count += read_list(rank, side, rank->sides[side].ghosts_in);
}

/* Processor time, so that other programs on the machine do not count. */
static uint64_t processor_ns(void)
{
    return (uint64_t)((double)clock() * (1e9 / CLOCKS_PER_SEC));
}

void rank_step(Rank *rank, quern_jobs *jobs)
{
    Report *report = &rank->report;
    const uint64_t begin_ns = processor_ns();
    flock_step(&rank->flock, jobs);
    QUERN_MUST(quern_entity_destroy_matching(rank->flock.ghosts, NULL));
    report->step_ns = processor_ns() - begin_ns;
    report->total_step_ns += report->step_ns;
    report->frame++;
    report->agent_count = quern_query_count(rank->flock.agents);
    report->birth_count = atomic_load(&rank->flock.birth_count);
    report->death_count = atomic_load(&rank->flock.death_count);
}
