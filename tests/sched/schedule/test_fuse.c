/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "tests/flow/flow_setup.h"
#include "tests/support/fixture.h"

/* Which systems share a pass. flow/test_fused.c tests what fused systems read and write. */

static quern_schedule *schedule;
static quern_component position, velocity, health, tag;
static quern_resource score;

static void open_schedule(void)
{
    world = setup_world();
    position = setup_component(world, "position", 8, 8);
    velocity = setup_component(world, "velocity", 8, 8);
    health = setup_component(world, "health", 8, 8);
    tag = setup_tag(world, "tag");
    score = setup_counter(world, "score");
    quern_component all[] = {position, velocity, health};
    setup_entity_with(world, all, COUNT_OF(all));
    schedule = setup_schedule(world);
}

TestSuite(fuse, .init = open_schedule, .fini = close_world);

/* The declarations of a system, in short; lists end with a zero. */
typedef struct declares {
    quern_term terms[4];
    quern_lookup lookups[2], write_lookup;
    quern_resource_access resource;
    const char *after;
    quern_relation levels;
    uint32_t phase, flags;
    bool has_begin, has_end, has_condition;
} declares;

#define READS(c)  quern_term_read(c)
#define WRITES(c) quern_term_write(c)

static bool always(quern_context *context)
{
    return true;
}

static quern_system add_to(quern_schedule *target, const char *name, const declares *what)
{
    quern_system_def def = system_def(name, idle_run);
    memcpy(def.terms, what->terms, sizeof what->terms);
    def.lookups[0] = what->lookups[0];
    def.write_lookups[0] = what->write_lookup;
    def.resources[0] = what->resource;
    def.after[0] = what->after;
    def.levels = what->levels;
    def.phase = what->phase;
    def.flags = what->flags;
    def.begin = what->has_begin ? idle_callback : NULL;
    def.end = what->has_end ? idle_callback : NULL;
    def.condition = what->has_condition ? always : NULL;
    return setup_system(target, &def);
}

static quern_system add(const char *name, declares what)
{
    return add_to(schedule, name, &what);
}

static bool are_fused(quern_system a, quern_system b)
{
    must(quern_schedule_compile(schedule));
    bool fused = quern_schedule_are_fused(schedule, a, b);
    cr_assert_eq(quern_schedule_are_fused(schedule, b, a), fused);
    return fused;
}

/* Returns whether a schedule fuses these two systems, if it has no others. Asserts that it never does so
 * with disable_fusing. */
static bool fuses(declares a, declares b)
{
    bool fused[2];
    for (uint32_t i = 0; i < 2; i++) {
        quern_schedule_def def = {.disable_fusing = i != 0};
        quern_schedule *pair = setup_schedule_as(world, def, 2);
        quern_system system_a = add_to(pair, "a", &a), system_b = add_to(pair, "b", &b);
        must(quern_schedule_compile(pair));
        fused[i] = quern_schedule_are_fused(pair, system_a, system_b);
        quern_schedule_destroy(pair);
    }
    cr_assert_not(fused[1], "fused although the option is off");
    return fused[0];
}

static bool fuses_either_way(declares a, declares b)
{
    bool fused = fuses(a, b);
    cr_assert_eq(fuses(b, a), fused, "whether two systems are fused depends on their order");
    return fused;
}

#define DECLARES(...) ((declares){__VA_ARGS__})
#define TERMS(...)    ((declares){.terms = {__VA_ARGS__}})

/* ------------------------------------------------------------------------------------------- pairs */

Test(fuse, systems_with_local_conflicts_share_pass)
{
    cr_assert(fuses_either_way(TERMS(WRITES(position)), TERMS(READS(position))));
    cr_assert(fuses_either_way(TERMS(WRITES(position)), TERMS(WRITES(position))));
    cr_assert(fuses_either_way(TERMS(READS(position)), TERMS(READS(position))));
    cr_assert(fuses_either_way(TERMS(WRITES(position)), TERMS(WRITES(velocity))));
    cr_assert(fuses_either_way(TERMS(WRITES(position)),
                               TERMS(quern_term_optional(position, QUERN_ACCESS_WRITE), READS(velocity))));
    cr_assert(fuses_either_way(TERMS(WRITES(position)), TERMS(quern_term_with(tag))),
              "no archetype of both");
}

Test(fuse, filters_on_changes_are_reads)
{
    declares filters = TERMS(quern_term_changed(READS(position)));
    declares looks = {.terms = {quern_term_changed(READS(velocity))}, .lookups = {{.component = position}}};
    cr_assert(fuses_either_way(filters, TERMS(WRITES(position))));
    cr_assert(fuses_either_way(filters, looks));
    cr_assert_not(fuses_either_way(looks, TERMS(WRITES(position))));
    quern_system before = add("before", TERMS(quern_term_changed(quern_term_with(position))));
    quern_system writer = add("writer", TERMS(WRITES(position)));
    quern_system behind = add("behind", TERMS(quern_term_changed(quern_term_with(position))));
    must(quern_schedule_compile(schedule));
    cr_assert(quern_schedule_has_edge(schedule, before, writer));
    cr_assert(quern_schedule_has_edge(schedule, writer, behind));
    cr_assert_not(quern_schedule_has_edge(schedule, before, behind));
}

Test(fuse, lookup_and_writer_of_component_do_not_share_pass)
{
    declares looks = {.terms = {READS(velocity)}, .lookups = {{.component = position}}};
    cr_assert_not(fuses_either_way(looks, TERMS(WRITES(position))));
    cr_assert_not(fuses_either_way(looks, TERMS(WRITES(position), WRITES(velocity))));
    cr_assert(fuses_either_way(looks, TERMS(READS(position))));
    cr_assert(fuses_either_way(looks, TERMS(WRITES(velocity))), "through views, which is local");
    cr_assert(fuses_either_way(looks, TERMS(WRITES(position), quern_term_with(tag))),
              "no archetype on which it writes");
    cr_assert(fuses_either_way(looks, looks));
}

/* A writer of a component, and a reader of it on targets. */
Test(fuse, levels_of_one_relation_keep_a_writer_before_a_reader_of_targets)
{
    const quern_relation parent = quern_world_parent(world);
    quern_relation second = make_relation(world, .name = "second", .levels = true);
    declares writes = TERMS(WRITES(position)), reads = TERMS(quern_term_up_optional(position, parent));
    cr_assert_not(fuses_either_way(writes, reads));
    reads.levels = parent;
    cr_assert_not(fuses_either_way(writes, reads), "the writer goes in any order");
    writes.levels = second;
    cr_assert_not(fuses_either_way(writes, reads), "the writer goes by other levels");
    writes.levels = parent;
    cr_assert(fuses(writes, reads));
    cr_assert_not(fuses(reads, writes), "targets are to be read as they were before");
    reads.terms[0] = quern_term_up_optional(position, second);
    cr_assert_not(fuses_either_way(writes, reads), "it reads of others than levels keep apart");
    reads.terms[0] = quern_term_up_make(position, parent, QUERN_MATCH_OPTIONAL, QUERN_PATH_NEAREST);
    cr_assert(fuses(writes, reads));
    reads.lookups[0].component = position;
    cr_assert_not(fuses_either_way(writes, reads), "of any entity");
}

Test(fuse, levels_of_two_relations_keep_systems_apart)
{
    const quern_relation parent = quern_world_parent(world);
    quern_relation second = make_relation(world, .name = "second", .levels = true);
    declares one = TERMS(WRITES(position)), other = TERMS(WRITES(velocity)), none = TERMS(WRITES(position));
    one.levels = parent;
    other.levels = second;
    cr_assert_not(fuses_either_way(one, other));
    cr_assert(fuses_either_way(one, none));
    other.levels = parent;
    cr_assert(fuses_either_way(one, other));
}

Test(fuse, resources_keep_systems_apart_unless_both_read)
{
    declares reads = {.terms = {READS(position)}, .resource = {score, QUERN_ACCESS_READ}};
    declares adds = {.terms = {READS(position)}, .resource = {score, QUERN_ACCESS_WRITE_CONCURRENT}};
    declares writes = {.terms = {READS(position)}, .resource = {score, QUERN_ACCESS_WRITE}};
    declares other = TERMS(WRITES(position));
    cr_assert(fuses_either_way(reads, reads));
    cr_assert(fuses_either_way(reads, other));
    cr_assert(fuses_either_way(adds, other));
    cr_assert_not(fuses_either_way(adds, adds));
    cr_assert_not(fuses_either_way(adds, reads));
    cr_assert_not(fuses_either_way(writes, reads));
    cr_assert_not(fuses_either_way(writes, other), "its views run one after another");
}

Test(fuse, systems_without_parallel_chunks_are_not_fused)
{
    static const uint32_t flags[] = {QUERN_SYSTEM_SERIAL, QUERN_SYSTEM_MAIN_THREAD};
    declares other = TERMS(READS(position));
    for (uint32_t i = 0; i < COUNT_OF(flags); i++)
        cr_assert_not(fuses_either_way(DECLARES(.terms = {READS(position)}, .flags = flags[i]), other));
    cr_assert_not(fuses_either_way(DECLARES(.flags = QUERN_SYSTEM_EXCLUSIVE), other));
    cr_assert_not(fuses_either_way(DECLARES(0), other), "no terms");
    cr_assert_not(fuses_either_way(DECLARES(0), DECLARES(0)));
}

Test(fuse, phases_and_exclusive_systems_separate_passes)
{
    declares writes = TERMS(WRITES(position)), late = {.terms = {WRITES(position)}, .phase = 1};
    cr_assert_not(fuses_either_way(writes, late));
    quern_system first = add("first", writes);
    add("exclusive", DECLARES(.flags = QUERN_SYSTEM_EXCLUSIVE));
    quern_system second = add("second", writes), third = add("third", writes);
    cr_assert_not(are_fused(first, second));
    cr_assert(are_fused(second, third));
}

Test(fuse, declared_order_of_conflicting_terms_is_local)
{
    declares writes = TERMS(WRITES(position));
    declares then = {.terms = {READS(position)}, .after = "a"};
    cr_assert(fuses(writes, then));
    then.has_end = true;
    writes.has_begin = true;
    cr_assert(fuses(writes, then), "neither sees the whole of the other");
    writes.has_end = true;
    cr_assert_not(fuses(writes, then), "the end callback of a precedes all of b");
    writes.has_end = false;
    then.has_begin = true;
    cr_assert_not(fuses(writes, then), "all of a precedes the begin callback of b");
    then.has_begin = false;
    then.has_condition = true;
    cr_assert_not(fuses(writes, then), "all of a precedes the condition of b");
    then.after = NULL;
    cr_assert(fuses(writes, then), "no order was declared");
}

Test(fuse, declared_order_without_common_components_is_not_local)
{
    cr_assert_not(fuses(TERMS(WRITES(position)), DECLARES(.terms = {WRITES(velocity)}, .after = "a")));
    cr_assert_not(fuses(TERMS(READS(position)), DECLARES(.terms = {READS(position)}, .after = "a")),
                  "no term writes, so the order has another purpose");
    declares looks = {.terms = {WRITES(velocity)}, .lookups = {{.component = position}}, .after = "a"};
    cr_assert_not(fuses(TERMS(WRITES(position)), looks));
}

Test(fuse, begin_end_and_condition_do_not_prevent_fusing)
{
    declares writes = {
        .terms = {WRITES(position)}, .has_begin = true, .has_end = true, .has_condition = true};
    cr_assert(fuses_either_way(writes, writes));
}

Test(fuse, declared_order_with_lookup_is_not_local)
{
    quern_component rage = setup_component(world, "rage", 8, 8); /* no entity has the component */
    declares writes = {.terms = {READS(health), quern_term_optional(rage, QUERN_ACCESS_WRITE)}};
    declares looks = {.terms = {WRITES(velocity)}, .lookups = {{.component = rage}}};
    cr_assert(fuses(writes, looks), "nothing to meet on");
    looks.after = "a";
    cr_assert_not(fuses(writes, looks), "their terms share nothing");
}

/* -------------------------------------------------------------------------------- more than two systems */

Test(fuse, a_system_that_waits_for_a_later_pass_does_not_join_an_earlier_one)
{
    quern_system move = add("move", TERMS(WRITES(position)));
    quern_system seek =
        add("seek", DECLARES(.terms = {WRITES(velocity)}, .lookups = {{.component = position}}));
    quern_system push = add("push", TERMS(WRITES(position), READS(velocity)));
    quern_system heal = add("heal", TERMS(WRITES(health)));
    cr_assert_not(are_fused(move, seek));
    cr_assert_not(are_fused(seek, push), "what seek looks up");
    cr_assert_not(are_fused(move, push), "seek is ordered between them");
    cr_assert(are_fused(heal, push), "heal is free, and joins the last pass of equals");
}

Test(fuse, system_with_local_conflict_joins_later_pass)
{
    quern_system move = add("move", TERMS(WRITES(position)));
    quern_system seek =
        add("seek", DECLARES(.terms = {WRITES(velocity)}, .lookups = {{.component = position}}));
    quern_system draw = add("draw", TERMS(READS(position), READS(velocity)));
    cr_assert(are_fused(seek, draw));
    cr_assert_not(are_fused(move, draw));
}

Test(fuse, a_free_system_joins_the_pass_it_shares_most_components_with)
{
    quern_system move = add("move", TERMS(WRITES(position), READS(health)));
    quern_system seek =
        add("seek", DECLARES(.terms = {WRITES(velocity)}, .lookups = {{.component = position}}));
    quern_system draw = add("draw", TERMS(READS(position), READS(health)));
    cr_assert_not(are_fused(move, seek));
    cr_assert(are_fused(move, draw));
}

Test(fuse, many_systems_share_one_pass)
{
    enum { COUNT = 40 };
    quern_system systems[COUNT];
    for (uint32_t i = 0; i < COUNT; i++) {
        char name[] = {(char)('a' + i % 26), (char)('a' + i / 26), '\0'};
        systems[i] = add(name, i % 2 ? TERMS(WRITES(position)) : TERMS(READS(position), WRITES(velocity)));
    }
    for (uint32_t i = 1; i < COUNT; i++)
        cr_assert(are_fused(systems[0], systems[i]));
}

/* -------------------------------------------------------------------------------------- new archetypes */

Test(fuse, archetype_with_new_lookup_conflict_splits_pass)
{
    quern_system writer = add("writer", TERMS(WRITES(position), quern_term_with(tag)));
    quern_system looker =
        add("looker", DECLARES(.terms = {READS(velocity)}, .lookups = {{.component = position}}));
    quern_system other = add("other", TERMS(READS(velocity)));
    cr_assert(are_fused(writer, looker));
    quern_component both[] = {position, tag};
    quern_entity entity = setup_entity_with(world, both, 2);
    cr_assert_not(are_fused(writer, looker));
    cr_assert(are_fused(looker, other));
    must(quern_entity_destroy(world, entity));
    must(quern_world_remove_empty_archetypes(world, NULL));
    cr_assert_not(are_fused(writer, looker), "a conflict once found stays");
}

Test(fuse, an_archetype_without_such_a_conflict_leaves_passes_as_they_are)
{
    quern_system writer = add("writer", TERMS(WRITES(position)));
    quern_system reader = add("reader", TERMS(READS(position)));
    quern_component both[] = {position, tag};
    cr_assert(are_fused(writer, reader));
    setup_entity_with(world, both, 2);
    cr_assert(are_fused(writer, reader));
}

/* ------------------------------------------------------------------------------- queries about fusing */

Test(fuse, asking_needs_a_compiled_schedule_and_known_systems)
{
    quern_system a = add("a", TERMS(WRITES(position))), b = add("b", TERMS(READS(position)));
    quern_system unknown = {9};
    cr_assert_not(quern_schedule_are_fused(schedule, a, b), "not compiled yet");
    cr_assert(are_fused(a, b));
    assert_refused_value(world, quern_schedule_are_fused(schedule, a, unknown));
    assert_refused_value(world, quern_schedule_are_fused(schedule, (quern_system){0}, b));
    assert_refused_value(world, quern_schedule_are_fused(NULL, a, b));
    add("c", TERMS(READS(position)));
    cr_assert_not(quern_schedule_are_fused(schedule, a, b), "compiled no more");
}

Test(fuse, shuffled_passes_respect_conflicts)
{
    for (uint32_t style = 0; style < STYLE_COUNT; style++) {
        quern_schedule *shuffled = setup_schedule_as(world, schedule_style(style), 1);
        declares writes = TERMS(WRITES(position)), serial = {.flags = QUERN_SYSTEM_SERIAL};
        declares looks = {.terms = {WRITES(velocity)}, .lookups = {{.component = position}}};
        serial.terms[0] = READS(position);
        quern_system writer = add_to(shuffled, "writer", &writes),
                     looker = add_to(shuffled, "looker", &looks);
        quern_system alone = add_to(shuffled, "serial", &serial), last = add_to(shuffled, "last", &writes);
        must(quern_schedule_compile(shuffled));
        cr_assert_not(quern_schedule_are_fused(shuffled, writer, looker));
        cr_assert_not(quern_schedule_are_fused(shuffled, looker, last));
        cr_assert_not(quern_schedule_are_fused(shuffled, writer, last));
        cr_assert_not(quern_schedule_are_fused(shuffled, alone, writer));
        cr_assert_not(quern_schedule_are_fused(shuffled, alone, last));
        quern_schedule_destroy(shuffled);
    }
}
