/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Test labels: threaded */
#include "tests/flow/flow_setup.h"
#include "tests/support/fixture.h"
#include "tests/support/random.h"

#include <stdio.h>
#include <string.h>

/* Commands that name entities, in the order of all commands. */

static quern_relation parent;
static quern_component number;

static void open_world(void)
{
    world = setup_world();
    parent = quern_world_parent(world);
    number = setup_component(world, "number", sizeof(uint64_t), 8);
}

TestSuite(name_commands, .init = open_world, .fini = close_world);

static quern_commands *commands(void)
{
    return quern_world_commands(world);
}

static uint64_t flush(void)
{
    must(quern_world_flush(world));
    assert_valid(world);
    quern_flush_stats stats;
    must(quern_world_get_flush_stats(world, &stats));
    return stats.dropped_count;
}

static void assert_found(const char *path, quern_entity expected)
{
    cr_assert(quern_entity_equal(quern_entity_find(world, path), expected), "%s", path);
}

Test(name_commands, name_is_set_and_removed_at_the_sync_point)
{
    const quern_entity a = setup_entity(world);
    char text[] = "a";
    must(quern_commands_set_name(commands(), a, text));
    text[0] = 'x';
    cr_assert_null(quern_entity_name(world, a));
    cr_assert_eq(flush(), 0u);
    assert_found("a", a);
    must(quern_commands_set_name(commands(), a, NULL));
    cr_assert_eq(flush(), 0u);
    assert_found("a", quern_entity_null());
}

Test(name_commands, name_in_a_world_without_relations_is_removed_with_its_entity)
{
    quern_world *const own = world;
    world = setup_world();
    const quern_entity a = setup_entity(world);
    must(quern_commands_set_name(commands(), a, "a"));
    cr_assert_eq(flush(), 0u);
    assert_found("a", a);
    must(quern_entity_destroy(world, a));
    assert_valid(world);
    cr_assert_null(quern_entity_name(world, setup_entity(world)), "it has the slot, and not the name");
    assert_found("a", quern_entity_null());
    quern_world_destroy(world);
    world = own;
}

Test(name_commands, created_entities_are_named_below_created_parents)
{
    const quern_entity top = record_entity(commands()), gun = record_entity(commands());
    must(quern_commands_set_name(commands(), gun, "gun"));
    must(quern_commands_relate(commands(), gun, parent, top));
    must(quern_commands_set_name(commands(), top, "tower"));
    cr_assert_eq(flush(), 0u);
    const quern_entity found = quern_entity_find(world, "tower/gun");
    cr_assert(quern_entity_is_alive(world, found));
    cr_assert(
        quern_entity_equal(quern_entity_target(world, found, parent), quern_entity_find(world, "tower")));
    assert_found("gun", quern_entity_null());
}

Test(name_commands, second_sibling_does_not_get_the_name)
{
    const quern_entity a = setup_entity(world), b = setup_entity(world);
    must(quern_commands_set_name(commands(), b, "x"));
    must(quern_commands_set_name(commands(), a, "x"));
    cr_assert_eq(flush(), 1u);
    assert_found("x", b);
    must(quern_commands_set_name(commands(), b, "y"));
    must(quern_commands_set_name(commands(), a, "x")); /* the name is free at this point */
    cr_assert_eq(flush(), 0u);
    assert_found("x", a);
    assert_found("y", b);
}

Test(name_commands, relating_is_dropped_if_the_name_is_taken_below_the_target)
{
    const quern_entity a = setup_entity(world), b = setup_entity(world), top = setup_entity(world);
    must(quern_entity_set_name(world, a, "x"));
    must(quern_entity_relate(world, b, parent, top));
    must(quern_entity_set_name(world, b, "x"));
    must(quern_commands_relate(commands(), a, parent, top));
    must(quern_commands_unrelate(commands(), b, parent));
    cr_assert_eq(flush(), 2u);
    cr_assert(quern_entity_is_null(quern_entity_target(world, a, parent)));
    cr_assert(quern_entity_equal(quern_entity_target(world, b, parent), top));
    must(quern_commands_destroy(commands(), b)); /* later commands may use its name */
    must(quern_commands_relate(commands(), a, parent, top));
    must(quern_commands_set_name(commands(), top, "top"));
    cr_assert_eq(flush(), 0u);
    assert_found("top/x", a);
}

Test(name_commands, names_are_removed_with_entities_and_trees)
{
    const quern_entity a = setup_entity(world), b = setup_entity(world), c = setup_entity(world);
    must(quern_entity_set_name(world, a, "a"));
    must(quern_entity_relate(world, b, parent, a));
    must(quern_entity_set_name(world, b, "b"));
    must(quern_commands_destroy(commands(), a));
    must(quern_commands_set_name(commands(), b, "late"));
    must(quern_commands_set_name(commands(), c, "a"));
    cr_assert_eq(flush(), 1u);
    assert_found("a", c);
    cr_assert_eq(stats_of_world(world).name_count, 1u);
    const quern_entity d = record_entity(commands());
    must(quern_commands_set_name(commands(), d, "d"));
    must(quern_commands_destroy(commands(), d));
    must(quern_commands_destroy(commands(), c));
    flush();
    cr_assert_eq(stats_of_world(world).name_count, 0u);
}

Test(name_commands, invalid_names_and_handles_are_refused_when_recorded)
{
    const quern_entity a = setup_entity(world), dead = setup_entity(world);
    must(quern_entity_destroy(world, dead));
    char text[QUERN_MAX_ENTITY_NAME_BYTES + 2];
    memset(text, 'n', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    must_refuse(INVALID_ARGUMENT, world, quern_commands_set_name(commands(), a, text));
    must_refuse(INVALID_ARGUMENT, world, quern_commands_set_name(commands(), a, "a/b"));
    must_refuse(INVALID_ARGUMENT, world, quern_commands_set_name(commands(), a, "\xFF"));
    must_refuse(STALE_ENTITY, world, quern_commands_set_name(commands(), dead, "b"));
    must_refuse(NULL_ARGUMENT, world, quern_commands_set_name(NULL, a, "b"));
    text[QUERN_MAX_ENTITY_NAME_BYTES] = '\0';
    must(quern_commands_set_name(commands(), a, text));
    cr_assert_eq(flush(), 0u);
    assert_found(text, a);
}

Test(name_commands, sync_point_without_memory_changes_no_name)
{
    failing_allocator *allocator = failing_allocator_create();
    const quern_world_def def = {.allocator = failing_allocator_interface(allocator)};
    quern_world *kept = world;
    must(quern_world_create(&def, &world));
    parent = quern_world_parent(world);
    quern_entity list[100];
    for (uint32_t i = 0; i < 100; i++) {
        char text[16];
        snprintf(text, sizeof text, "e%u", i);
        list[i] = setup_entity(world);
        if (i > 0) must(quern_entity_relate(world, list[i], parent, list[(i - 1) / 3]));
        if (i % 2 == 0) must(quern_entity_set_name(world, list[i], text));
    }
    for (uint32_t i = 1; i < 100; i++) {
        char text[16];
        snprintf(text, sizeof text, "c%u", i);
        must(quern_commands_set_name(commands(), list[i], i % 3 == 0 ? NULL : text));
        must(quern_commands_relate(commands(), list[i], parent, list[(i * 7) % i]));
        if (i % 10 == 9) must(quern_commands_destroy(commands(), list[i]));
        must(quern_commands_set_name(commands(), record_entity(commands()), text));
    }
    const uint64_t hash = quern_world_hash(world);
    uint32_t refused_count = 0;
    for (uint32_t call = 1; runs_out_of_memory(allocator, call, quern_world_flush(world));
         call++, refused_count++) {
        assert_valid(world);
        cr_assert_eq(quern_world_hash(world), hash);
    }
    assert_valid(world);
    cr_assert_gt(refused_count, 8u, "%u", refused_count);
    quern_world_destroy(world);
    world = kept;
    failing_allocator_close(allocator);
}

/* ----------------------------------------------------------------------------------- random programs */

enum { START = 300, MOST = 4000, NAMES = 40, SYSTEMS = 3, FRAMES = 6, NOBODY = MOST };

/* A model of the world. Entities are numbered from 1; 0: none. */
typedef struct naive {
    bool is_alive;
    uint32_t parent; /* 0: none */
    uint64_t key;    /* of an entity created in this frame */
    char name[8];
} naive;

static naive all[MOST];
static quern_entity handles[MOST]; /* of the current frame; systems read them too */
static uint32_t alive_list[MOST], alive_count, next_number;
static uint64_t taken_count;

typedef struct chance {
    uint64_t frame, system;
} chance;

/* Identifies an entity created on a row until it has a number. */
static uint64_t key_of(chance when, uint64_t self)
{
    return 1ull << 63 | when.frame << 48 | when.system << 32 | self;
}

/* The action of a system on a row, for the library and for the model. */
typedef struct act {
    uint32_t kind, other, created;
    char name[8];
} act;

static act choose(uint64_t seed, chance when, uint32_t self)
{
    random_source random = {seed * 1000003 + when.frame * 10007 + when.system * 101 + self * 7919};
    act chosen = {.kind = random_below(&random, 100)};
    chosen.other = alive_list[random_below(&random, alive_count)];
    snprintf(chosen.name, sizeof chosen.name, "n%u", random_below(&random, NAMES));
    return chosen;
}

static uint32_t naive_sibling(uint32_t target, const char *name)
{
    for (uint32_t i = 1; i < next_number; i++)
        if (all[i].is_alive && all[i].parent == target && strcmp(all[i].name, name) == 0) return i;
    return 0;
}

static void naive_set_name(uint32_t i, const char *name)
{
    if (!all[i].is_alive) return;
    const uint32_t owner = name[0] != '\0' ? naive_sibling(all[i].parent, name) : 0;
    if (owner != 0 && owner != i)
        taken_count++;
    else
        snprintf(all[i].name, sizeof all[i].name, "%s", name);
}

static bool naive_is_below(uint32_t i, uint32_t top)
{
    for (; i != 0; i = all[i].parent)
        if (i == top) return true;
    return false;
}

static void naive_relate(uint32_t i, uint32_t target)
{
    if (!all[i].is_alive || all[i].parent == target) return;
    if (target != 0 && (!all[target].is_alive || naive_is_below(target, i))) return;
    if (all[i].name[0] != '\0' && naive_sibling(target, all[i].name) != 0)
        taken_count++;
    else
        all[i].parent = target;
}

static void naive_destroy(uint32_t i)
{
    if (!all[i].is_alive) return;
    all[i].is_alive = false;
    for (uint32_t k = 1; k < next_number; k++)
        if (all[k].is_alive && all[k].parent == i) naive_destroy(k);
}

static void naive_act(uint64_t seed, chance when, uint32_t self)
{
    const act chosen = choose(seed, when, self);
    if (chosen.kind < 25) {
        naive_set_name(self, chosen.name);
    } else if (chosen.kind < 40) {
        naive_set_name(chosen.other, chosen.kind < 30 ? "" : chosen.name);
    } else if (chosen.kind < 65) {
        if (self != chosen.other) naive_relate(self, chosen.other);
    } else if (chosen.kind < 72) {
        naive_relate(chosen.other, 0);
    } else if (chosen.kind < 76) {
        naive_destroy(chosen.other);
    } else if (chosen.kind < 90 && next_number < MOST) {
        const uint32_t fresh = next_number++;
        all[fresh] = (naive){.is_alive = true, .key = key_of(when, self)};
        naive_set_name(fresh, chosen.name);
        naive_relate(fresh, chosen.other);
        if (chosen.kind < 80) naive_relate(chosen.other, fresh);
    }
}

typedef struct player {
    uint64_t seed;
    chance when;
} player;

static void subject_act(quern_context *context, const quern_view *view)
{
    const player *it = quern_context_user_data(context);
    const uint64_t *numbers = QUERN_COLUMN(view, 0, const uint64_t);
    quern_commands *recorder = quern_context_commands(context);
    for (uint32_t row = 0; row < view->count; row++) {
        const quern_entity self = view->entities[row];
        const act chosen = choose(it->seed, it->when, (uint32_t)numbers[row]);
        const quern_entity other = handles[chosen.other];
        if (chosen.kind < 25) {
            quern_commands_set_name(recorder, self, chosen.name);
        } else if (chosen.kind < 40) {
            quern_commands_set_name(recorder, other, chosen.kind < 30 ? NULL : chosen.name);
        } else if (chosen.kind < 65) {
            if (!quern_entity_equal(self, other)) quern_commands_relate(recorder, self, parent, other);
        } else if (chosen.kind < 72) {
            quern_commands_unrelate(recorder, other, parent);
        } else if (chosen.kind < 76) {
            quern_commands_destroy(recorder, other);
        } else if (chosen.kind < 90) {
            const uint64_t key = key_of(it->when, numbers[row]);
            const quern_entity fresh = record_entity_with(recorder, &number, (const void *[]){&key}, 1);
            quern_commands_set_name(recorder, fresh, chosen.name);
            quern_commands_relate(recorder, fresh, parent, other);
            if (chosen.kind < 80) quern_commands_relate(recorder, other, parent, fresh);
        }
    }
}

/* Lists all entities in the order in which systems visit them. */
static void list_alive(void)
{
    quern_query *query = setup_query(world, (quern_term[]){quern_term_write(number)}, 1);
    quern_query_iterator it = quern_query_iterate(query);
    alive_count = 0;
    while (quern_query_next(&it)) {
        uint64_t *numbers = QUERN_COLUMN(&it.view, 0, uint64_t);
        for (uint32_t row = 0; row < it.view.count; row++) {
            for (uint32_t i = 1; i < next_number && numbers[row] >> 63 != 0; i++)
                if (all[i].key == numbers[row]) numbers[row] = i;
            cr_assert_lt(numbers[row], (uint64_t)MOST, "nobody was created so");
            handles[numbers[row]] = it.view.entities[row];
            alive_list[alive_count++] = (uint32_t)numbers[row];
        }
    }
    quern_query_destroy(query);
}

static void compare(void)
{
    uint32_t count = 0;
    for (uint32_t i = 1; i < next_number; i++) {
        count += all[i].is_alive;
        if (!all[i].is_alive) continue;
        const char *name = quern_entity_name(world, handles[i]);
        cr_assert_str_eq(name != NULL ? name : "", all[i].name, "entity %u", i);
        const quern_entity target = quern_entity_target(world, handles[i], parent);
        cr_assert(
            quern_entity_equal(target, all[i].parent != 0 ? handles[all[i].parent] : quern_entity_null()));
    }
    cr_assert_eq(alive_count, count);
}

static uint64_t count_taken(const quern_schedule *schedule)
{
    uint64_t count = 0;
    for (uint32_t i = 0; i < quern_schedule_dropped_command_count(schedule); i++) {
        quern_dropped_command dropped;
        must(quern_schedule_get_dropped_command(schedule, i, &dropped));
        if (dropped.reason == QUERN_DROP_SIBLING_NAME_TAKEN) count += dropped.count;
    }
    return count;
}

static void run_frame(quern_schedule *schedule, quern_jobs *jobs, player *players, uint64_t frame)
{
    list_alive();
    for (uint32_t s = 0; s < SYSTEMS; s++)
        players[s].when = (chance){frame, s};
    must_run(schedule, jobs);
    taken_count = 0;
    for (uint32_t s = 0; s < SYSTEMS; s++)
        for (uint32_t i = 0; i < alive_count; i++)
            naive_act(players[s].seed, players[s].when, alive_list[i]);
    cr_assert_eq(count_taken(schedule), taken_count, "seed %llu, frame %llu",
                 (unsigned long long)players[0].seed, (unsigned long long)frame);
    assert_valid(world);
    list_alive();
    compare();
}

static uint64_t run_program(uint64_t seed, uint32_t thread_count, quern_schedule_def style)
{
    static const char *const names[SYSTEMS] = {"s0", "s1", "s2"};
    player players[SYSTEMS];
    quern_schedule *schedule = setup_schedule_as(world, style, 1);
    for (uint32_t s = 0; s < SYSTEMS; s++) {
        players[s].seed = seed;
        make_system(schedule, names[s], subject_act, .terms = {quern_term_read(number)},
                    .user_data = &players[s]);
    }
    memset(all, 0, sizeof all);
    for (next_number = 1; next_number <= START; next_number++) {
        const uint64_t value = next_number;
        must(quern_entity_create_with(world, &number, (const void *[]){&value}, 1, &handles[next_number]));
        all[next_number].is_alive = true;
    }
    quern_jobs *jobs = setup_jobs(thread_count);
    for (uint64_t frame = 0; frame < FRAMES; frame++)
        run_frame(schedule, jobs, players, frame);
    const uint64_t hash = quern_world_hash(world);
    quern_schedule_destroy(schedule);
    quern_jobs_destroy(jobs);
    return hash;
}

Test(name_commands, random_programs_agree_with_a_model_at_every_thread_count)
{
    for (uint64_t seed = 1; seed < 4; seed++) {
        uint64_t first = 0;
        for (uint32_t i = 0; i < POOL_COUNT; i++) {
            close_world();
            open_world();
            const uint64_t hash =
                run_program(seed, pool_threads[i], schedule_style((i + (uint32_t)seed) % STYLE_COUNT));
            if (i == 0) first = hash;
            cr_assert_eq(hash, first, "seed %llu with %u threads", (unsigned long long)seed,
                         pool_threads[i]);
        }
    }
}
