/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "kit/ranks_internal.h"

#include "ranks_program.h"

#include "tests/support/effort.h"
#include "tests/support/failing_allocator.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Worlds on several ranks: what is refused, what happens to lost ranks, damaged packets and files, and what ghosts, globals and
 * messages are. test_ranks_random.c compares hashes. */

enum { MOST = 4 };

/* -------------------------------------------------------------------------------- a transport with faults */

typedef struct line {
    quern_ranks_transport inner;
    uint64_t seed, count;
    bool is_cut;  /* sends nothing any more */
    bool damages; /* changes a byte of some packets */
    bool forges;  /* makes the head of changed packets fit */
    bool delays;  /* receives only sometimes */
} line;

static double clock_seconds, tick_seconds;

static double now_of_test(void *user_data)
{
    return clock_seconds;
}

static void wait_in_test(void *user_data)
{
    clock_seconds += tick_seconds;
}

static bool send_on_line(void *user_data, uint32_t to, const void *bytes, size_t size_bytes)
{
    line *l = user_data;
    if (l->is_cut) return true;
    const uint64_t bits = quern_random(l->seed, l->count++);
    if (!l->damages || bits % 40 != 0) return l->inner.send(l->inner.user_data, to, bytes, size_bytes);
    unsigned char *copy = malloc(size_bytes);
    memcpy(copy, bytes, size_bytes);
    copy[(bits >> 8) % size_bytes] ^= (unsigned char)(1 + (bits >> 40) % 255);
    const size_t length = bits >> 50 & 1 ? size_bytes : (size_t)(bits >> 16) % size_bytes;
    if (l->forges && length >= sizeof(ranks_head)) {
        ranks_head head;
        memcpy(&head, bytes, sizeof head);
        head.size_bytes = length - sizeof head;
        head.checksum = quern__ranks_checksum(copy + sizeof head, length - sizeof head);
        memcpy(copy, &head, sizeof head);
    }
    const bool is_sent = l->inner.send(l->inner.user_data, to, copy, length);
    free(copy);
    return is_sent;
}

static bool receive_on_line(void *user_data, quern_byte_buffer *bytes, uint32_t *out_from)
{
    line *l = user_data;
    if (l->delays && quern_random(l->seed, l->count++) % 3 != 0) return false;
    return l->inner.receive(l->inner.user_data, bytes, out_from);
}

/* Several ranks of one program, with lines between them. */
typedef struct party {
    program_draw draw;
    uint32_t count;
    quern_ranks_alone *alone;
    line lines[MOST];
    program_rank ranks[MOST];
    quern_ranks *list[MOST];
} party;

static void open_party(party *p, uint64_t seed, uint32_t count, quern_ranks_def base)
{
    *p = (party){.draw = program_draw_from(seed), .count = count};
    clock_seconds = 0;
    tick_seconds = 0.5;
    must(quern_ranks_alone_create(count, NULL, &p->alone));
    for (uint32_t i = 0; i < count; i++) {
        p->lines[i] = (line){.seed = seed + i};
        must(quern_ranks_alone_transport(p->alone, i, &p->lines[i].inner));
        base.transport = p->lines[i].inner;
        base.transport.send = send_on_line;
        base.transport.receive = receive_on_line;
        base.transport.now = now_of_test;
        base.transport.wait = wait_in_test;
        base.transport.user_data = &p->lines[i];
        program_open(&p->ranks[i], &p->draw, &base, NULL);
        if (!base.restart) program_populate(&p->ranks[i]);
        p->list[i] = p->ranks[i].ranks;
    }
}

static void close_party(party *p)
{
    for (uint32_t i = 0; i < p->count; i++)
        program_close(&p->ranks[i]);
    quern_ranks_alone_destroy(p->alone);
}

static void expect_message(const char *part)
{
    cr_assert_not_null(strstr(quern_error_message(), part), "'%s' is not in '%s'", part,
                       quern_error_message());
}

Test(ranks, packets_may_be_late)
{
    party p;
    const program_draw draw = program_draw_from(12);
    uint64_t hash;
    open_party(&p, 12, 4, (quern_ranks_def){0});
    tick_seconds = 0.01;
    for (uint32_t i = 0; i < 4; i++)
        p.lines[i].delays = true;
    must(quern_ranks_run_all(p.list, 4, draw.frame_count, &hash));
    cr_assert_eq(hash, program_hash(&draw, &(program_run){0}, NULL));
    close_party(&p);
}

/* The latency is a second, beside which nothing else counts. Each frame has a sum over all ranks, up and down a tree, and two
 * exchanges with neighbours, which may overlap with a sum on its way down; one with messages has a sum and an exchange more. */
Test(ranks, a_simulated_network_takes_a_latency_for_each_exchange)
{
    static const uint32_t levels[] = {0, 0, 1, 1,
                                      2, 2, 2, 2}; /* of the tree of sums, by the number of ranks */
    const quern_ranks_network slow = {.latency_seconds = 1, .bytes_per_second = 1e12};
    for (uint64_t seed = 1; seed <= effort(12, 6, 2); seed++) {
        program_draw draw = program_draw_from(seed);
        const uint32_t count = 2 + (uint32_t)(seed % 6);
        draw.balance_every = 1000;
        const uint64_t expected = program_hash(&draw, &(program_run){0}, NULL);
        double few, all;
        program_run run = {.rank_count = count, .network = &slow, .until = 4, .out_seconds = &few};
        program_hash(&draw, &run, NULL);
        run.until = 0;
        run.out_seconds = &all;
        cr_assert_eq(program_hash(&draw, &run, NULL), expected, "seed %u", (unsigned)seed);
        const double frames = (double)draw.frame_count - 4;
        const double exchanges = (all - few) / frames;
        const double least = 2 * levels[count], most = 4 * levels[count] + 3;
        cr_assert(exchanges > least - .2 && exchanges < most + .2, "seed %u: %g exchanges per frame",
                  (unsigned)seed, exchanges);
        if (count == 2) cr_assert(fabs(exchanges - 4) < .2 || fabs(exchanges - 6) < .2, "%g", exchanges);
    }
}

static void work(double seconds)
{
    const uint64_t begin_ns = quern__ranks_processor_ns();
    while (1e-9 * (double)(quern__ranks_processor_ns() - begin_ns) < seconds) {
    }
}

static void work_longer_than_the_timeout(quern_context *context, const quern_view *view)
{
    work(.06);
}

/* Neither time before a run nor the time of frames, which all ranks need, is silence. */
Test(ranks, simulated_time_of_work_is_no_silence)
{
    party p;
    const quern_ranks_network network = {.latency_seconds = 1e-5, .bytes_per_second = 1e9};
    const program_draw draw = program_draw_from(3);
    quern_ranks *list[2];
    program_rank ranks[2];
    must(quern_ranks_alone_create(2, NULL, &p.alone));
    must(quern_ranks_alone_set_network(p.alone, &network));
    for (uint32_t i = 0; i < 2; i++) {
        quern_ranks_def base = {.timeout_seconds = .04};
        must(quern_ranks_alone_transport(p.alone, i, &base.transport));
        program_open(&ranks[i], &draw, &base, NULL);
        must(quern_schedule_add_system(
            ranks[i].schedule,
            &(quern_system_def){.name = "work", .run = work_longer_than_the_timeout, .phase = 4}, NULL));
        program_populate(&ranks[i]);
        list[i] = ranks[i].ranks;
    }
    work(.06);
    must(quern_ranks_run_all(list, 2, 2, NULL));
    work(.06);
    must(quern_ranks_run_all(list, 2, 1, NULL));
    cr_assert(quern_ranks_alone_seconds(p.alone) < 3 * .12);
    for (uint32_t i = 0; i < 2; i++)
        program_close(&ranks[i]);
    quern_ranks_alone_destroy(p.alone);
}

/* Each byte takes a second, one after another. */
Test(ranks, a_simulated_network_sends_bytes_one_after_another)
{
    const quern_ranks_network narrow = {.latency_seconds = 0, .bytes_per_second = 1};
    const program_draw draw = program_draw_from(3);
    double seconds;
    const program_run run = {.rank_count = 2, .network = &narrow, .out_seconds = &seconds};
    quern_ranks_stats all;
    cr_assert_eq(program_hash(&draw, &run, &all), program_hash(&draw, &(program_run){0}, NULL));
    cr_assert(seconds < (double)all.sent_bytes + 1);
    cr_assert(seconds > (double)all.sent_bytes / 8);
}

static quern_ranks *overlapping;
static uint32_t inner_count, waiting_count;

static void look_at_exchange(quern_context *context, const quern_view *view)
{
    inner_count++;
    waiting_count += overlapping->is_exchanging;
}

/* Writes what ghosts of other ranks have. */
static void move_by_command(quern_context *context, const quern_view *view)
{
    const quern_component *place = quern_context_user_data(context);
    for (uint32_t i = 0; i < view->count; i++)
        must(quern_commands_set(quern_context_commands(context), view->entities[i], *place,
                                &(program_place){1, 2, 0}));
}

static void add_inner_system(party *p, uint32_t rank, quern_system_def def, quern_result expected)
{
    program_rank *of = &p->ranks[rank];
    quern_ranks *ranks = p->list[rank];
    must(quern_schedule_create(of->world, NULL, &of->inner));
    must(quern_schedule_add_system(of->inner, &def, NULL));
    ranks->was_started = false; /* as before quern_ranks_start */
    cr_assert_eq(quern_ranks_overlap(ranks, of->inner), expected, "%s", quern_error_message());
    ranks->was_started = true;
}

/* Opens ranks of a program that has no inner schedule of its own. */
static void open_without_inner(party *p, uint32_t count)
{
    uint64_t seed = 1;
    while (program_draw_from(seed).has_inner || program_draw_from(seed).balance_every < 4)
        seed++;
    open_party(p, seed, count, (quern_ranks_def){.check_ghosts = true});
}

/* The inner schedule of a frame runs before its ghosts have arrived, except in the first frame of a call. */
Test(ranks, an_inner_schedule_runs_while_ghosts_are_on_their_way)
{
    party p;
    open_without_inner(&p, 2);
    overlapping = p.list[1];
    for (uint32_t i = 0; i < 2; i++)
        add_inner_system(
            &p, i,
            (quern_system_def){
                .name = "look", .run = look_at_exchange, .condition = NULL, .flags = QUERN_SYSTEM_SERIAL},
            QUERN_OK);
    for (uint32_t call = 0; call < 2; call++) {
        inner_count = waiting_count = 0;
        must(quern_ranks_run_all(p.list, 2, 5, NULL));
        cr_assert_eq(inner_count, 2 * 5);
        cr_assert_geq(waiting_count, call == 0 ? 5 : 4);
    }
    close_party(&p);
}

Test(ranks, an_inner_schedule_cannot_change_what_others_see)
{
    party p;
    open_without_inner(&p, 2);
    program_rank *rank = &p.ranks[0];
    const quern_term number = quern_term_read(rank->number), place = quern_term_read(rank->place);
    const struct {
        quern_system_def def;
        const char *message;
    } wrong[] = {
        {{.name = "see", .run = look_at_exchange, .terms = {place}}, "system 'see' matches ghosts"},
        {{.name = "move", .run = look_at_exchange, .terms = {number, quern_term_write(rank->place)}},
         "system 'move' writes a component of ghosts"}};
    for (uint32_t i = 0; i < 2; i++) {
        add_inner_system(&p, 0, wrong[i].def, QUERN_ERROR_INVALID_ARGUMENT);
        expect_message(wrong[i].message);
        quern_schedule_destroy(p.ranks[0].inner);
    }
    add_inner_system(&p, 0,
                     (quern_system_def){.name = "not ghosts",
                                        .run = look_at_exchange,
                                        .terms = {place, quern_term_without(quern_ranks_ghost(p.list[0]))}},
                     QUERN_OK);
    must(quern_schedule_add_system(p.ranks[0].inner, &wrong[1].def, NULL));
    p.list[0]->was_started = false;
    cr_assert_eq(quern_ranks_start(p.list[0], rank->schedule, NULL, 1), QUERN_ERROR_INVALID_ARGUMENT);
    expect_message(wrong[1].message);
    close_party(&p);
    open_without_inner(&p, 2);
    rank = &p.ranks[0];
    cr_assert_eq(quern_ranks_overlap(NULL, rank->schedule), QUERN_ERROR_NULL_ARGUMENT);
    cr_assert_eq(quern_ranks_overlap(p.list[0], NULL), QUERN_ERROR_NULL_ARGUMENT);
    cr_assert_eq(quern_ranks_overlap(p.list[0], rank->schedule), QUERN_ERROR_INVALID_ARGUMENT);
    expect_message("quern_ranks_start was called: call it before that");
    for (uint32_t i = 0; i < 2; i++) {
        const program_rank *each = &p.ranks[i];
        add_inner_system(&p, i,
                         (quern_system_def){.name = "push",
                                            .run = move_by_command,
                                            .terms = {quern_term_read(each->number)},
                                            .user_data = (void *)&each->place},
                         QUERN_OK);
    }
    cr_assert_eq(quern_ranks_run_all(p.list, 2, 3, NULL), QUERN_ERROR_INVALID_ARGUMENT);
    expect_message("the schedule of quern_ranks_overlap has changed positions");
    close_party(&p);
}

static bool count_marks(void *user_data, const char *bytes, size_t size_bytes)
{
    uint32_t *counts = user_data;
    for (size_t i = 0; i < size_bytes; i++)
        counts[(unsigned char)bytes[i]]++;
    return true;
}

/* The numbers of a rank are its own, the boxes of all fill space, and the map has a place of each. */
Test(ranks, all_ranks_know_the_list_of_all)
{
    party p;
    open_party(&p, 3, 4, (quern_ranks_def){.list_ranks = true});
    quern_ranks_place places[MOST + 1];
    cr_assert_eq(quern_ranks_list(p.list[0], places, MOST), 0);
    must(quern_ranks_run_all(p.list, 4, 6, NULL));
    quern_ranks_stats all;
    must(quern_ranks_get_stats(p.list[2], NULL, &all));
    for (uint32_t viewer = 0; viewer < 4; viewer++) {
        uint64_t owned = 0;
        cr_assert_eq(quern_ranks_list(p.list[viewer], places, MOST), 4);
        for (uint32_t i = 0; i < 4; i++) {
            quern_ranks_stats own;
            must(quern_ranks_get_stats(p.list[i], &own, NULL));
            owned += places[i].owned_count;
            cr_assert(places[i].run_ns <= own.run_ns && places[i].sent_bytes <= own.sent_bytes);
            cr_assert(places[i].packet_count > 0 && places[i].packet_count <= own.packet_count);
            for (uint32_t k = 0; k < 2; k++)
                cr_assert(places[i].least[k] < places[i].most[k]);
            uint64_t seen = 0;
            for (quern_query_iterator it = quern_query_iterate(p.list[i]->roots); quern_query_next(&it);) {
                const program_place *at = quern_view_read(&it.view, 1);
                for (uint32_t r = 0; r < it.view.count; r++, seen++)
                    cr_assert(at[r].x >= places[i].least[0] && at[r].x <= places[i].most[0] &&
                              at[r].y >= places[i].least[1] && at[r].y <= places[i].most[1]);
            }
            cr_assert_leq(seen, places[i].owned_count);
        }
        cr_assert_geq(owned, all.owned_count);
        uint32_t counts[256] = {0};
        must(quern_ranks_draw(p.list[viewer], 40, 20, (quern_sink){count_marks, counts}));
        cr_assert_eq(counts['0'] + counts['1'] + counts['2'] + counts['3'], 40 * 20);
        cr_assert(counts['0'] > 0 && counts['1'] > 0 && counts['2'] > 0 && counts['3'] > 0);
        cr_assert_eq(counts['\n'], 20);
    }
    uint32_t counts[256] = {0};
    must(quern_ranks_write_json(p.list[1], (quern_sink){count_marks, counts}));
    cr_assert(counts['['] == 1 && counts['{'] == 4 && counts['}'] == 4 && counts[']'] == 1);
    cr_assert_eq(quern_ranks_draw(p.list[1], 0, 1, (quern_sink){count_marks, counts}),
                 QUERN_ERROR_INVALID_ARGUMENT);
    cr_assert_eq(quern_ranks_draw(p.list[1], 1, 1, (quern_sink){NULL, NULL}), QUERN_ERROR_NULL_ARGUMENT);
    cr_assert_eq(quern_ranks_write_json(NULL, (quern_sink){count_marks, counts}),
                 QUERN_ERROR_NULL_ARGUMENT);
    close_party(&p);
}

Test(ranks, a_silent_rank_is_named_within_twice_the_timeout)
{
    party p;
    open_party(&p, 4, 4, (quern_ranks_def){.timeout_seconds = 5});
    must(quern_ranks_run_all(p.list, 4, 3, NULL));
    p.lines[2].is_cut = true;
    const double begin = clock_seconds;
    quern_ranks *rest[] = {p.list[0], p.list[1], p.list[3]};
    cr_assert_eq(quern_ranks_run_all(rest, 3, 9, NULL), QUERN_ERROR_UNAVAILABLE);
    expect_message("rank 0 stops in frame 3: rank 2 did not answer for 5 s");
    cr_assert(clock_seconds - begin <= 11);
    for (uint32_t i = 0; i < 3; i++) {
        cr_assert_eq(quern_ranks_run(rest[i], 1, NULL), QUERN_ERROR_UNAVAILABLE);
        expect_message("rank 2 did not answer");
    }
    close_party(&p);
}

/* Runs with damaged packets of one rank. Returns how many runs have ended with an error. */
static uint32_t run_damaged(bool forges, uint64_t seed_count)
{
    uint32_t refused = 0;
    for (uint64_t seed = 1; seed <= seed_count; seed++) {
        party p;
        uint64_t hash;
        open_party(&p, seed, 3, (quern_ranks_def){.timeout_seconds = 5});
        p.lines[1].damages = true;
        p.lines[1].forges = forges;
        const quern_result result = quern_ranks_run_all(p.list, 3, p.draw.frame_count, &hash);
        if (result == QUERN_OK && !forges)
            cr_assert_eq(hash, program_hash(&p.draw, &(program_run){0}, NULL));
        refused += result != QUERN_OK;
        for (uint32_t i = 0; i < 3; i++)
            assert_valid(p.ranks[i].world);
        close_party(&p);
    }
    return refused;
}

Test(ranks, damaged_packets_end_all_ranks_with_an_error)
{
    cr_assert(run_damaged(false, effort(60, 30, 4)) > 0);
}

Test(ranks, forged_packets_leave_worlds_whole)
{
    cr_assert(run_damaged(true, effort(120, 40, 4)) > 0);
}

Test(ranks, other_programs_and_other_frames_are_refused)
{
    party p;
    open_party(&p, 4, 2, (quern_ranks_def){0});
    p.ranks[1].draw = &p.draw;
    setup_tag(p.ranks[1].world, "one more");
    cr_assert_eq(quern_ranks_run_all(p.list, 2, 3, NULL), QUERN_ERROR_BAD_ARCHIVE);
    expect_message("do not have the same types or definitions");
    close_party(&p);
}

/* --------------------------------------------------------------------------------------- a small world */

typedef struct small {
    quern_world *world;
    quern_component number, place, colour;
    quern_relation owner;
    quern_ranks_alone *alone;
} small;

static small open_small(uint32_t count)
{
    small s = {0};
    must(quern_world_create(NULL, &s.world));
    must(QUERN_COMPONENT_REGISTER_FIELDS(s.world, &s.number, program_number, value));
    must(QUERN_COMPONENT_REGISTER_FIELDS(s.world, &s.place, program_place, x, y, z));
    must(QUERN_COMPONENT_REGISTER_FIELDS(s.world, &s.colour, program_mark, value));
    must(quern_relation_register(s.world, &(quern_relation_def){.name = "owner"}, &s.owner));
    must(quern_ranks_alone_create(count, NULL, &s.alone));
    return s;
}

static quern_ranks_def def_of(const small *s)
{
    return (quern_ranks_def){
        .world = s->world, .id = s->number, .position = s->place, .radius = 1, .ghost = {s->colour}};
}

static void close_small(small *s)
{
    quern_ranks_alone_destroy(s->alone);
    quern_world_destroy(s->world);
}

static quern_entity add_entity(const small *s, uint64_t id, float x)
{
    const program_number number = {id};
    const program_place place = {x, 0, 0};
    const program_mark colour = {(uint32_t)id};
    quern_entity entity;
    must(quern_entity_create_with(s->world, (quern_component[]){s->number, s->place, s->colour},
                                  (const void *[]){&number, &place, &colour}, 3, &entity));
    return entity;
}

Test(ranks, wrong_definitions_are_refused)
{
    small s = open_small(2);
    quern_ranks *ranks;
    const quern_component with_handle = quern_relation_component(s.owner);
    struct {
        quern_ranks_def def;
        quern_result result;
        const char *message;
    } cases[] = {{def_of(&s), QUERN_ERROR_NULL_ARGUMENT, "'def->world' is NULL"},
                 {def_of(&s), QUERN_ERROR_UNKNOWN_COMPONENT, ""},
                 {def_of(&s), QUERN_ERROR_INVALID_ARGUMENT, "'id' is not a component of 8 plain bytes"},
                 {def_of(&s), QUERN_ERROR_INVALID_ARGUMENT, "'position' is too small"},
                 {def_of(&s), QUERN_ERROR_INVALID_ARGUMENT, "'radius' is not above 0"},
                 {def_of(&s), QUERN_ERROR_INVALID_ARGUMENT, "ghosts cannot have 'owner'"},
                 {def_of(&s), QUERN_ERROR_INVALID_ARGUMENT, "checkpoints need a 'folder'"},
                 {def_of(&s), QUERN_ERROR_INVALID_ARGUMENT, "'transport' has a wrong rank"},
                 {def_of(&s), QUERN_ERROR_IO, "/no-such-folder/try-0.tmp' cannot be created"},
                 {def_of(&s), QUERN_ERROR_INVALID_ARGUMENT, "or one of them is no number"},
                 {def_of(&s), QUERN_ERROR_INVALID_ARGUMENT, "or one of them is no number"},
                 {def_of(&s), QUERN_ERROR_INVALID_ARGUMENT, "or one of them is no number"}};
    cases[0].def.world = NULL;
    cases[1].def.id = (quern_component){0};
    cases[2].def.id = s.place;
    cases[3].def.position = s.colour;
    cases[4].def.radius = 0;
    cases[5].def.ghost[0] = with_handle;
    cases[6].def.checkpoint_every = 3;
    cases[7].def.transport.rank_count = 2;
    cases[8].def.folder = "/no-such-folder";
    cases[8].def.checkpoint_every = 3;
    cases[9].def.radius = INFINITY;
    cases[10].def.reach = NAN;
    cases[11].def.reach = INFINITY;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        cr_assert_eq(quern_ranks_create(&cases[i].def, &ranks), cases[i].result, "%zu: %s", i,
                     quern_error_message());
        cr_assert_null(ranks);
        expect_message(cases[i].message);
    }
    cr_assert_eq(quern_ranks_create(NULL, &ranks), QUERN_ERROR_NULL_ARGUMENT);
    cr_assert_eq(quern_ranks_run(NULL, 1, NULL), QUERN_ERROR_NULL_ARGUMENT);
    cr_assert_eq(quern_ranks_start(NULL, NULL, NULL, 0), QUERN_ERROR_NULL_ARGUMENT);
    cr_assert_eq(quern_ranks_get_stats(NULL, NULL, NULL), QUERN_ERROR_NULL_ARGUMENT);
    cr_assert_not(quern_ranks_creates(NULL, 0));
    quern_ranks_alone *alone;
    quern_ranks_transport transport;
    cr_assert_eq(quern_ranks_alone_create(0, NULL, &alone), QUERN_ERROR_INVALID_ARGUMENT);
    const quern_ranks_network possible = {0, 1}, wrong[] = {{-1, 1}, {1, 0}, {NAN, 1}, {1, INFINITY}};
    for (uint32_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        cr_assert_eq(quern_ranks_alone_set_network(s.alone, &wrong[i]), QUERN_ERROR_INVALID_ARGUMENT);
    cr_assert_eq(quern_ranks_alone_set_network(NULL, wrong), QUERN_ERROR_NULL_ARGUMENT);
    cr_assert_eq(quern_ranks_alone_set_network(s.alone, NULL), QUERN_ERROR_NULL_ARGUMENT);
    cr_assert_eq(quern_ranks_alone_seconds(NULL), 0);
    must(quern_ranks_alone_set_network(s.alone, &possible));
    must(quern_ranks_alone_transport(s.alone, 0, &transport));
    cr_assert_eq(quern_ranks_alone_set_network(s.alone, &possible), QUERN_ERROR_INVALID_ARGUMENT);
    expect_message("call it before quern_ranks_alone_transport");
    cr_assert_eq(quern_ranks_alone_transport(s.alone, 2, &transport), QUERN_ERROR_INVALID_ARGUMENT);
    cr_assert_eq(quern_ranks_alone_transport(NULL, 0, &transport), QUERN_ERROR_NULL_ARGUMENT);
    close_small(&s);
}

static void write_colour(quern_context *context, const quern_view *view)
{
    program_mark *colours = QUERN_COLUMN(view, 0, program_mark);
    for (uint32_t end = view->count, i = 0; i < end; i++)
        colours[i].value++;
}

Test(ranks, a_system_that_writes_ghosts_is_refused_by_name)
{
    small s = open_small(1);
    quern_ranks *ranks;
    quern_schedule *schedule;
    const quern_ranks_def def = def_of(&s);
    quern_system_def system = {.name = "paint", .run = write_colour, .terms = {quern_term_write(s.colour)}};
    must(quern_ranks_create(&def, &ranks));
    must(quern_schedule_create(s.world, NULL, &schedule));
    must(quern_schedule_add_system(schedule, &system, NULL));
    cr_assert_eq(quern_ranks_run(ranks, 1, NULL), QUERN_ERROR_INVALID_ARGUMENT);
    expect_message("quern_ranks_start was not called");
    cr_assert_eq(quern_ranks_start(ranks, schedule, NULL, 0), QUERN_ERROR_INVALID_ARGUMENT);
    expect_message(
        "system 'paint' writes 'program_mark' of ghosts: add quern_term_with of 'program_number'");
    quern_ranks_destroy(ranks);
    quern_schedule_destroy(schedule);
    close_small(&s);
}

/* Ranks of a small world without systems: two of them, or more. */
typedef struct pair {
    uint32_t count;
    small worlds[MOST];
    quern_ranks_alone *alone;
    quern_ranks *list[MOST];
    quern_schedule *schedules[MOST];
} pair;

static pair open_several(uint32_t count, bool checks, float reach)
{
    pair p = {.count = count};
    must(quern_ranks_alone_create(count, NULL, &p.alone));
    for (uint32_t i = 0; i < count; i++) {
        p.worlds[i] = open_small(1);
        quern_ranks_def def = def_of(&p.worlds[i]);
        must(quern_ranks_alone_transport(p.alone, i, &def.transport));
        def.check_ghosts = checks;
        def.reach = reach;
        def.globals[0] = (quern_ranks_global){.kind = QUERN_RANKS_SUM, .component = p.worlds[i].number};
        must(quern_ranks_create(&def, &p.list[i]));
        must(quern_schedule_create(p.worlds[i].world, NULL, &p.schedules[i]));
        must(quern_ranks_start(p.list[i], p.schedules[i], NULL, 0));
    }
    return p;
}

static pair open_pair(bool checks)
{
    return open_several(2, checks, 0);
}

static void close_pair(pair *p)
{
    for (uint32_t i = 0; i < p->count; i++) {
        quern_ranks_destroy(p->list[i]);
        quern_schedule_destroy(p->schedules[i]);
        close_small(&p->worlds[i]);
    }
    quern_ranks_alone_destroy(p->alone);
}

/* Returns the ghost with an id that a rank has; null if there is none. */
static quern_entity ghost_of(const pair *p, uint32_t rank, uint64_t id)
{
    const quern_component ghost = quern_ranks_ghost(p->list[rank]);
    quern_query *query = setup_query(p->worlds[rank].world, (quern_term[]){quern_term_read(ghost)}, 1);
    quern_entity found = quern_entity_null();
    quern_query_iterator it = quern_query_iterate(query);
    while (quern_query_next(&it))
        for (uint32_t i = 0; i < it.view.count; i++)
            if (QUERN_COLUMN(&it.view, 0, const quern_ranks_ghost_info)[i].id == id)
                found = it.view.entities[i];
    quern_query_destroy(query);
    return found;
}

static uint32_t owned_count(const pair *p, uint32_t rank)
{
    quern_ranks_stats own;
    must(quern_ranks_get_stats(p->list[rank], &own, NULL));
    return (uint32_t)own.owned_count;
}

Test(ranks, what_is_within_the_radius_of_the_other_rank_is_its_ghost)
{
    for (uint32_t step = 0; step < 200; step++) {
        pair p = open_pair(false);
        const float x = (float)step / 64;
        for (uint32_t i = 0; i < 8; i++) /* four on each side */
            add_entity(&p.worlds[0], 10 + i, i < 4 ? 0 : 3);
        add_entity(&p.worlds[1], 1, x);
        add_entity(&p.worlds[1], 2, x + 1); /* exactly at the radius */
        must(quern_ranks_run_all(p.list, 2, 1, NULL));
        cr_assert_eq(owned_count(&p, 0) + owned_count(&p, 1), 10);
        cr_assert_eq(quern_ranks_get_state(p.list[0])->globals[0], 10);
        cr_assert_eq(quern_ranks_get_state(p.list[1])->globals[0], 10);
        /* Either one rank has both, or each has the other one as ghost. */
        const bool first =
            !quern_entity_is_null(ghost_of(&p, 0, 1)) || !quern_entity_is_null(ghost_of(&p, 0, 2));
        const bool second =
            !quern_entity_is_null(ghost_of(&p, 1, 1)) || !quern_entity_is_null(ghost_of(&p, 1, 2));
        const uint64_t *one = NULL;
        quern_query *query =
            setup_query(p.worlds[0].world, (quern_term[]){quern_term_read(p.worlds[0].number)}, 1);
        uint32_t here = 0;
        quern_query_iterator it = quern_query_iterate(query);
        while (quern_query_next(&it)) {
            one = quern_view_read(&it.view, 0);
            for (uint32_t i = 0; i < it.view.count; i++)
                here += one[i] < 10;
        }
        quern_query_destroy(query);
        if (here == 1) cr_assert(first && second, "at %g", (double)x);
        close_pair(&p);
    }
}

Test(ranks, ghosts_have_the_components_of_their_entities)
{
    pair p = open_pair(false);
    for (uint32_t i = 0; i < 8; i++)
        add_entity(&p.worlds[0], 10 + i, i < 4 ? 0 : 3);
    add_entity(&p.worlds[0], 1, 1.4f);
    const quern_entity plain = add_entity(&p.worlds[0], 2, 1.6f);
    must(quern_entity_remove(p.worlds[0].world, plain, p.worlds[0].colour));
    must(quern_ranks_run_all(p.list, 2, 1, NULL));
    uint32_t ghost_count = 0;
    for (uint32_t rank = 0; rank < 2; rank++)
        for (uint64_t id = 1; id <= 2; id++) {
            const quern_entity ghost = ghost_of(&p, rank, id);
            if (quern_entity_is_null(ghost)) continue;
            ghost_count++;
            cr_assert_eq(quern_entity_has(p.worlds[rank].world, ghost, p.worlds[rank].colour), id == 1);
        }
    cr_assert_eq(ghost_count, 2u);
    close_pair(&p);
}

/* Adds entities along a line, half of them on each rank. */
static void add_line(const pair *p, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        add_entity(&p->worlds[i % 2], 10 + i, (float)i / 4);
}

Test(ranks, entities_that_see_farther_than_space_see_all)
{
    static const float sizes[] = {1e7f, 1e8f, 1e30f};
    for (uint32_t i = 0; i < 3; i++) {
        pair p = open_several(2, false, 3 * sizes[i]);
        add_line(&p, 8);
        add_entity(&p.worlds[0], 1, -sizes[i]);
        add_entity(&p.worlds[1], 2, sizes[i]);
        must(quern_ranks_run_all(p.list, 2, 1, NULL));
        for (uint32_t rank = 0; rank < 2; rank++)
            cr_assert_eq(quern_world_list_entities(p.worlds[rank].world, NULL, 0), 10);
        close_pair(&p);
    }
}

Test(ranks, few_entities_are_divided_evenly)
{
    pair p = open_several(4, false, 0);
    for (uint32_t i = 0; i < 3; i++)
        add_entity(&p.worlds[0], 1 + i, 100 * (float)i);
    must(quern_ranks_run_all(p.list, 4, 1, NULL));
    for (uint32_t i = 0; i < 4; i++)
        cr_assert_leq(owned_count(&p, i), 1);
    close_pair(&p);
}

Test(ranks, two_entities_near_a_border_with_one_id_are_refused)
{
    pair p = open_pair(false);
    add_line(&p, 8);
    for (uint32_t i = 0; i < 8; i++)
        add_entity(&p.worlds[i % 2], 77, (float)i / 4);
    cr_assert_eq(quern_ranks_run_all(p.list, 2, 1, NULL), QUERN_ERROR_INVALID_ARGUMENT);
    expect_message("two entities of rank");
    expect_message("have the id 77");
    close_pair(&p);
}

Test(ranks, the_next_part_in_a_world_destroys_the_ghosts_of_the_one_before)
{
    pair p = open_pair(false);
    add_line(&p, 8);
    must(quern_ranks_run_all(p.list, 2, 1, NULL));
    cr_assert_gt(quern_world_list_entities(p.worlds[0].world, NULL, 0), owned_count(&p, 0));
    quern_ranks_destroy(p.list[0]);
    quern_ranks_def def = def_of(&p.worlds[0]); /* one rank */
    must(quern_ranks_create(&def, &p.list[0]));
    must(quern_ranks_start(p.list[0], p.schedules[0], NULL, 0));
    cr_assert_eq(quern_world_list_entities(p.worlds[0].world, NULL, 0), owned_count(&p, 0));
    must(quern_ranks_run(p.list[0], 3, NULL));
    close_pair(&p);
}

Test(ranks, writing_a_ghost_ends_the_run_where_ghosts_are_checked)
{
    pair p = open_pair(true);
    for (uint32_t i = 0; i < 8; i++)
        add_entity(&p.worlds[0], 10 + i, (float)i / 4);
    must(quern_ranks_run_all(p.list, 2, 1, NULL));
    quern_entity ghost = quern_entity_null();
    uint64_t id = 10;
    for (; quern_entity_is_null(ghost); id++)
        ghost = ghost_of(&p, 0, id);
    ((program_mark *)quern_entity_get(p.worlds[0].world, ghost, p.worlds[0].colour))->value = 77;
    cr_assert_eq(quern_ranks_run_all(p.list, 2, 1, NULL), QUERN_ERROR_INVALID_ARGUMENT);
    expect_message("changed the ghost of entity");
    expect_message("program_mark");
    close_pair(&p);
}

Test(ranks, references_out_of_a_tree_that_moves_are_refused)
{
    pair p = open_pair(false);
    quern_entity first = quern_entity_null();
    for (uint32_t i = 0; i < 8; i++) {
        const quern_entity entity = add_entity(&p.worlds[0], 10 + i, (float)i);
        if (i == 0) first = entity;
        if (i == 7) must(quern_entity_relate(p.worlds[0].world, entity, p.worlds[0].owner, first));
    }
    cr_assert_eq(quern_ranks_run_all(p.list, 2, 1, NULL), QUERN_ERROR_INVALID_ARGUMENT);
    expect_message("refers to the entity with the id 10, which does not move with it");
    close_pair(&p);

    /* Such as one with shared values. */
    p = open_pair(false);
    quern_entity shared;
    must(quern_entity_create(p.worlds[0].world, &shared));
    for (uint32_t i = 0; i < 8; i++)
        must(quern_entity_relate(p.worlds[0].world, add_entity(&p.worlds[0], 10 + i, (float)i),
                                 p.worlds[0].owner, shared));
    cr_assert_eq(quern_ranks_run_all(p.list, 2, 1, NULL), QUERN_ERROR_INVALID_ARGUMENT);
    expect_message("refers to an entity without id, which does not move with it");
    close_pair(&p);
}

Test(ranks, an_entity_with_a_position_needs_an_id)
{
    pair p = open_pair(false);
    must(quern_entity_create_with(p.worlds[1].world, &p.worlds[1].place, NULL, 1, NULL));
    cr_assert_eq(quern_ranks_run_all(p.list, 2, 1, NULL), QUERN_ERROR_INVALID_ARGUMENT);
    quern_ranks *other = p.list[0];
    cr_assert_eq(quern_ranks_run(other, 1, NULL),
                 QUERN_ERROR_UNAVAILABLE); /* it has heard of the failure */
    expect_message("rank 1 has failed in frame 0: quern_ranks_run: an entity has a position and no id");
    close_pair(&p);
}

/* -------------------------------------------------------------------------------------------- memory */

Test(ranks, without_memory_all_ranks_end_with_an_error)
{
    uint32_t failed = 0;
    for (uint64_t call = 1;; call += 1 + call / 8) {
        failing_allocator *failing = failing_allocator_create();
        party p = {.draw = program_draw_from(12), .count = 2};
        quern_result result = QUERN_OK;
        must(quern_ranks_alone_create(2, NULL, &p.alone));
        for (uint32_t i = 0; i < 2; i++) {
            quern_ranks_def base = {.allocator = failing_allocator_interface(failing)};
            must(quern_ranks_alone_transport(p.alone, i, &base.transport));
            program_open(&p.ranks[i], &p.draw, &base, NULL);
            program_populate(&p.ranks[i]);
            p.list[i] = p.ranks[i].ranks;
        }
        failing_allocator_fail_at(failing, call);
        uint64_t hash;
        result = quern_ranks_run_all(p.list, 2, p.draw.frame_count, &hash);
        failing_allocator_heal(failing);
        cr_assert(result == QUERN_OK || result == QUERN_ERROR_OUT_OF_MEMORY, "call %u: %s", (unsigned)call,
                  quern_error_message());
        const bool is_end = result == QUERN_OK && failing_allocator_call_count(failing) < call;
        if (result == QUERN_OK) cr_assert_eq(hash, program_hash(&p.draw, &(program_run){0}, NULL));
        failed += result != QUERN_OK;
        close_party(&p);
        failing_allocator_close(failing);
        if (is_end) break;
    }
    cr_assert(failed > 10);
}

/* -------------------------------------------------------------------------------------------- files */

static char folder[64];

static void make_folder(void)
{
    snprintf(folder, sizeof folder, "/tmp/quern-ranks-XXXXXX");
    cr_assert_not_null(mkdtemp(folder));
}

static void remove_folder(void)
{
    char command[96];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    assert_at_end(system(command) == 0);
}

TestSuite(ranks_files, .init = make_folder, .fini = remove_folder);

static void path_in_folder(char out[96], const char *name)
{
    snprintf(out, 96, "%s/%s", folder, name);
}

/* A checkpoint cannot be written if a folder is in the place of one of its files. */
static void expect_checkpoint_lost(const char *name)
{
    party p;
    char path[96];
    uint64_t hash;
    open_party(&p, 4, 2, (quern_ranks_def){.folder = folder, .checkpoint_every = 5});
    must(quern_ranks_run_all(p.list, 2, 5, NULL));
    path_in_folder(path, name);
    cr_assert_eq(mkdir(path, 0700), 0); /* in the place of the file */
    cr_assert_eq(quern_ranks_run_all(p.list, 2, 10, NULL), QUERN_ERROR_IO);
    cr_assert_eq(quern_ranks_frame(p.list[0]), 10);
    cr_assert_eq(quern_ranks_frame(p.list[1]), 10);
    quern_ranks_stats stats;
    must(quern_ranks_get_stats(p.list[1], &stats, NULL));
    cr_assert_eq(stats.checkpoint_frame, 5);
    cr_assert_eq(rmdir(path), 0);
    must(quern_ranks_run_all(p.list, 2, p.draw.frame_count - 10, &hash)); /* it goes on */
    cr_assert_eq(hash, program_hash(&p.draw, &(program_run){0}, NULL));
    close_party(&p);
}

Test(ranks_files, a_checkpoint_that_cannot_be_written_leaves_the_older_one)
{
    expect_checkpoint_lost("rank-1-b.tmp");
}

Test(ranks_files, a_checkpoint_that_cannot_be_named_leaves_the_older_one)
{
    expect_checkpoint_lost("checkpoint.tmp");
}

/* Runs to frame 10, and returns the draw. */
static program_draw leave_checkpoint(uint64_t seed, uint32_t rank_count)
{
    const program_draw draw = program_draw_from(seed);
    program_hash(&draw, &(program_run){.rank_count = rank_count, .folder = folder, .until = 11}, NULL);
    return draw;
}

/* Restarts on one rank, and returns the result of quern_ranks_start. */
static quern_result restart(const program_draw *draw)
{
    program_rank rank;
    const quern_ranks_def none = {0};
    program_open(&rank, draw, &none, NULL);
    quern_ranks_destroy(rank.ranks);
    quern_ranks_def def = {.world = rank.world,
                           .id = rank.number,
                           .position = rank.place,
                           .planar = draw->planar,
                           .radius = 1,
                           .folder = folder,
                           .restart = true};
    must(quern_ranks_create(&def, &rank.ranks));
    const quern_result result = quern_ranks_start(rank.ranks, rank.schedule, NULL, 0.1);
    program_close(&rank);
    return result;
}

Test(ranks_files, a_further_run_in_the_folder_leaves_the_checkpoint_until_it_has_its_own)
{
    char path[96];
    const program_draw draw = program_draw_from(4);
    for (uint32_t until = 6; until <= 11;
         until += 5) { /* the checkpoint is in the one slot, then in the other */
        party p;
        program_hash(&draw, &(program_run){.rank_count = 3, .folder = folder, .until = until}, NULL);
        open_party(&p, 4, 2, (quern_ranks_def){.folder = folder, .checkpoint_every = 5});
        path_in_folder(path, "checkpoint.tmp");
        cr_assert_eq(mkdir(path, 0700), 0); /* in the place of the file */
        cr_assert_eq(quern_ranks_run_all(p.list, 2, 5, NULL), QUERN_ERROR_IO);
        cr_assert_eq(rmdir(path), 0);
        close_party(&p);
        cr_assert_eq(restart(&draw), QUERN_OK, "%s", quern_error_message());
    }
}

Test(ranks_files, damaged_checkpoints_are_refused_with_file_and_frame)
{
    char path[96], other[96];
    const program_draw draw = leave_checkpoint(4, 3);
    path_in_folder(path, "rank-2-b.quern");
    path_in_folder(other, "rank-2-a.quern");
    FILE *file = fopen(path, "r+b");
    cr_assert_eq(fseek(file, 500, SEEK_SET), 0);
    cr_assert_eq(fputs("damage", file) == EOF, false);
    fclose(file);
    cr_assert_eq(restart(&draw), QUERN_ERROR_BAD_ARCHIVE);
    expect_message("rank-2-b.quern' of the checkpoint of frame 10 is damaged");
    cr_assert_eq(truncate(path, 400), 0);
    cr_assert_eq(restart(&draw), QUERN_ERROR_BAD_ARCHIVE);
    expect_message("rank-2-b.quern' of the checkpoint of frame 10 is truncated");
    cr_assert_eq(rename(other, path), 0);
    cr_assert_eq(restart(&draw), QUERN_ERROR_BAD_ARCHIVE);
    expect_message(
        "rank-2-b.quern' of the checkpoint of frame 10 is of rank 2 and frame 5 of another checkpoint");
    cr_assert_eq(remove(path), 0);
    cr_assert_eq(restart(&draw), QUERN_ERROR_IO);
    expect_message("rank-2-b.quern' cannot be opened");
    path_in_folder(path, "checkpoint.quern");
    cr_assert_eq(truncate(path, 20), 0);
    cr_assert_eq(restart(&draw), QUERN_ERROR_BAD_ARCHIVE);
    expect_message("does not say which checkpoint is the last");
    cr_assert_eq(remove(path), 0);
    cr_assert_eq(restart(&draw), QUERN_ERROR_IO);
}
