/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "tests/flow/flow_setup.h"
#include "tests/support/fixture.h"

#include <string.h>

/* Limited lookups and lookups for writing: what they find, what they refuse, and which systems wait for
 * each other because of them. */

static quern_component health, place, enemy, turret;
static quern_entity foe, gun, both, wall; /* components: enemy; turret; enemy and turret; neither */
static quern_schedule *schedule;
static captured_reports reports;

static quern_entity make(quern_component first, quern_component second, uint64_t value)
{
    const quern_component all[] = {health, place, first, second};
    const void *values[] = {&value, &value, NULL, NULL};
    const uint32_t count = quern_component_is_null(first) ? 2 : (quern_component_is_null(second) ? 3 : 4);
    quern_entity entity;
    must(quern_entity_create_with(world, all, values, count, &entity));
    return entity;
}

static void open_world(void)
{
    const quern_component none = {0};
    world = setup_world();
    health = setup_component(world, "health", 8, 8);
    place = setup_component(world, "place", 8, 8);
    enemy = setup_tag(world, "enemy");
    turret = setup_tag(world, "turret");
    foe = make(enemy, none, 1);
    gun = make(turret, none, 2);
    both = make(enemy, turret, 3);
    wall = make(none, none, 4);
    schedule = setup_schedule(world);
    capture_reports(&reports);
}

TestSuite(lookup, .init = open_world, .fini = close_world);

static quern_system add(const char *name, const quern_term *terms, uint32_t term_count, quern_lookup reads,
                        quern_lookup writes)
{
    quern_system_def def = system_def(name, idle_run);
    if (term_count > 0) memcpy(def.terms, terms, term_count * sizeof *terms);
    def.lookups[0] = reads;
    def.write_lookups[0] = writes;
    return setup_system(schedule, &def);
}

#define TERMS(...) \
    (const quern_term[]){__VA_ARGS__}, sizeof((const quern_term[]){__VA_ARGS__}) / sizeof(quern_term)
#define NO_TERMS    NULL, 0
#define LOOKUP(...) ((quern_lookup){__VA_ARGS__})
#define NOTHING     ((quern_lookup){.component = {0}})
#define READS(c)    quern_term_read(c)
#define WRITES(c)   quern_term_write(c)
#define WITH(c)     quern_term_with(c)
#define WITHOUT(c)  quern_term_without(c)

/* ----------------------------------------------------------------------------------------- found values */

static quern_lookup asked; /* lookup of the system that asks */
static uint64_t found[4];  /* results for foe, gun, both, wall; 0: not found */

static void ask(quern_context *context)
{
    const quern_entity all[] = {foe, gun, both, wall};
    const void *values[4];
    uint32_t count = 0;
    const uint32_t many_count = quern_context_lookup_many(context, all, 4, asked.component, values);
    for (uint32_t i = 0; i < 4; i++) {
        const uint64_t *value = quern_context_lookup(context, all[i], asked.component);
        cr_assert_eq(quern_context_has(context, all[i], asked.component), value != NULL);
        cr_assert_eq(values[i], value);
        found[i] = value != NULL ? *value : 0;
        count += value != NULL;
    }
    cr_assert_eq(many_count, count);
}

static void assert_finds(quern_lookup lookup, uint64_t first, uint64_t second, uint64_t third,
                         uint64_t fourth)
{
    quern_system_def def = system_def("asker", NULL);
    def.begin = ask;
    for (uint32_t writes = 0; writes < 2; writes++) {
        quern_schedule *own = setup_schedule(world);
        (writes ? def.write_lookups : def.lookups)[0] = asked = lookup;
        (writes ? def.lookups : def.write_lookups)[0] = NOTHING;
        setup_system(own, &def);
        must_run(own, NULL);
        quern_schedule_destroy(own);
        cr_assert_eq(found[0], first);
        cr_assert_eq(found[1], second);
        cr_assert_eq(found[2], third);
        cr_assert_eq(found[3], fourth);
    }
}

Test(lookup, limited_lookup_finds_nothing_beyond_its_limits)
{
    assert_finds(LOOKUP(.component = health), 1, 2, 3, 4);
    assert_finds(LOOKUP(.component = health, .with = enemy), 1, 0, 3, 0);
    assert_finds(LOOKUP(.component = health, .without = enemy), 0, 2, 0, 4);
    assert_finds(LOOKUP(.component = health, .with = enemy, .without = turret), 1, 0, 0, 0);
    assert_finds(LOOKUP(.component = health, .with = health), 1, 2, 3, 4);
}

static void hit(quern_context *context)
{
    const quern_entity all[] = {foe, gun, both, wall};
    for (uint32_t i = 0; i < 4; i++) {
        uint64_t *value = quern_context_lookup_write(context, all[i], health);
        cr_assert_eq((const void *)value, quern_context_lookup(context, all[i], health));
        if (value != NULL) *value += 10;
    }
    cr_assert_null(quern_context_lookup_write(context, quern_entity_null(), health));
    cr_assert_null(quern_context_lookup_write(context, entity_provisional(0), health));
}

static uint64_t health_of(quern_entity entity)
{
    return *(const uint64_t *)quern_entity_get(world, entity, health);
}

Test(lookup, write_lookup_changes_entities_outside_of_views)
{
    make_system(schedule, "hitter", NULL, .begin = hit,
                .write_lookups = {LOOKUP(.component = health, .with = enemy)});
    for (uint32_t i = 0; i < 3; i++)
        must_run(schedule, NULL);
    cr_assert_eq(health_of(foe), 31u);
    cr_assert_eq(health_of(gun), 2u, "beyond the limit");
    cr_assert_eq(health_of(both), 33u);
    cr_assert_eq(reports.log_count, 0u, "%s", reports.last);
}

static void run_and_hit(quern_context *context, const quern_view *view)
{
    hit(context);
}

static uint32_t changed_rows;

static void count_rows(quern_context *context, const quern_view *view)
{
    changed_rows += view->count;
}

Test(lookup, change_filter_passes_only_rows_written_by_lookup)
{
    const quern_system hits =
        make_system(schedule, "hitter", NULL, .begin = hit,
                    .write_lookups = {LOOKUP(.component = health, .with = enemy, .without = turret)});
    make_system(schedule, "counter", count_rows, .terms = {quern_term_changed(READS(health))});
    must_run(schedule, NULL);
    changed_rows = 0;
    must_run(schedule, NULL);
    cr_assert_eq(changed_rows, 1u, "the foe alone");
    must(quern_schedule_set_system_enabled(schedule, hits, false));
    changed_rows = 0;
    must_run(schedule, NULL);
    cr_assert_eq(changed_rows, 0u);
}

/* The lookup also reaches rows of the system's own view, which only reads there: the system runs
 * serially. */
Test(lookup, write_lookup_may_reach_rows_of_own_views)
{
    make_system(schedule, "hitter", run_and_hit, .terms = {READS(health), WITH(turret), WITHOUT(enemy)},
                .write_lookups = {LOOKUP(.component = health)});
    setup_writer(schedule, "later", health);
    must_run(schedule, NULL);
    must_run(schedule, NULL);
    cr_assert_eq(health_of(gun), 22u);
    cr_assert_eq(reports.log_count, 0u, "%s", reports.last);
}

static void hit_exclusively(quern_context *context)
{
    must(quern_entity_add(quern_context_world(context), wall, turret, NULL));
    hit(context);
}

Test(lookup, exclusive_system_may_write_by_lookup)
{
    quern_system_def def = system_def("hitter", NULL);
    def.begin = hit_exclusively;
    def.flags = QUERN_SYSTEM_EXCLUSIVE;
    def.write_lookups[0] = LOOKUP(.component = health);
    setup_writer(schedule, "before", health);
    setup_system(schedule, &def);
    setup_writer(schedule, "after", health);
    must_run(schedule, NULL);
    cr_assert_eq(health_of(wall), 14u);
    cr_assert_eq(reports.log_count, 0u, "%s", reports.last);
}

static uint64_t *kept;

static void keep(quern_context *context)
{
    kept = quern_context_lookup_write(context, foe, health);
}

static void use_kept(quern_context *context, const quern_view *view)
{
    if (quern_context_frame_index(context) == 1) *kept += 1;
}

Test(lookup, kept_lookup_pointer_is_reported_with_checks)
{
    if (!quern_has_checks()) cr_skip_test("needs a build with QUERN_CHECKS");
    const quern_system keeper = make_system(schedule, "keeper", NULL, .begin = keep,
                                            .write_lookups = {LOOKUP(.component = health)});
    make_system(schedule, "user", use_kept, .terms = {READS(place)});
    must_run(schedule, NULL);
    must(quern_schedule_set_system_enabled(schedule, keeper, false));
    must_not_run(schedule, NULL, QUERN_ERROR_UNDECLARED_ACCESS);
    cr_assert_not_null(strstr(reports.last, "The last writable view was that of system 'keeper'"), "%s",
                       reports.last);
}

/* -------------------------------------------------------------------------------------- refused lookups */

static void write_what_is_read(quern_context *context)
{
    cr_assert(is_scratch(quern_context_lookup_write(context, foe, health), sizeof(uint64_t)));
}

static void write_by_nobody(quern_context *context)
{
    cr_assert(is_scratch(quern_context_lookup_write(context, foe, (quern_component){0}),
                         QUERN_MAX_COMPONENT_BYTES));
}

static void assert_refused_in_frame(quern_system_callback *callback, const char *words)
{
    quern_schedule *own = setup_schedule(world);
    quern_system_def def = system_def("offender", NULL);
    def.begin = callback;
    def.lookups[0].component = health;
    def.write_lookups[0].component = place;
    setup_system(own, &def);
    must_not_run(own, NULL, QUERN_ERROR_UNDECLARED_ACCESS);
    cr_assert_not_null(strstr(reports.last, words), "no \"%s\" in: %s", words, reports.last);
    quern_schedule_destroy(own);
}

Test(lookup, write_through_read_lookup_is_refused)
{
    assert_refused_in_frame(write_what_is_read,
                            "quern_context_lookup_write: system 'offender' looked up 'health' without "
                            "declaring it (its write lookups: 'place')");
    assert_refused_in_frame(write_by_nobody, "quern_context_lookup_write: system 'offender' asked for a "
                                             "component with an invalid handle");
}

static void assert_bad(quern_result expected, quern_lookup reads, quern_lookup writes, const char *words)
{
    quern_system_def def = system_def("bad", idle_run);
    def.lookups[0] = reads;
    def.write_lookups[0] = writes;
    assert_refused(world, expected, quern_schedule_add_system(schedule, &def, NULL));
    assert_message_has("'bad'");
    assert_message_has(words);
}

Test(lookup, bad_definitions_are_refused)
{
    quern_relation parent = make_relation(world, .name = "parent");
    const quern_component unknown = component_unregistered(health);
    assert_bad(QUERN_ERROR_UNKNOWN_COMPONENT, LOOKUP(.component = unknown), NOTHING, "lookup 0");
    assert_bad(QUERN_ERROR_UNKNOWN_COMPONENT, LOOKUP(.component = health, .with = unknown), NOTHING,
               "lookup 0");
    assert_bad(QUERN_ERROR_UNKNOWN_COMPONENT, NOTHING, LOOKUP(.component = health, .without = unknown),
               "write lookup 0");
    assert_bad(QUERN_ERROR_UNKNOWN_COMPONENT, LOOKUP(.with = enemy), NOTHING, "null");
    assert_bad(QUERN_ERROR_DUPLICATE_COMPONENT, LOOKUP(.component = health),
               LOOKUP(.component = health, .with = enemy), "'health' is declared twice");
    assert_bad(QUERN_ERROR_INVALID_ARGUMENT, LOOKUP(.component = health, .without = health), NOTHING,
               "finds nothing");
    assert_bad(QUERN_ERROR_INVALID_ARGUMENT, LOOKUP(.component = health, .with = enemy, .without = enemy),
               NOTHING, "with and without 'enemy'");
    assert_bad(QUERN_ERROR_INVALID_ARGUMENT, NOTHING, LOOKUP(.component = enemy), "'enemy' is a tag");
    assert_bad(QUERN_ERROR_INVALID_ARGUMENT, NOTHING, LOOKUP(.component = quern_relation_component(parent)),
               "'parent' is the component of a relation");
}

Test(lookup, lookup_of_component_that_own_views_write_needs_disjoint_limit)
{
    quern_system_def def = system_def("own", idle_run);
    def.terms[0] = WRITES(health);
    def.lookups[0] = LOOKUP(.component = health);
    must_refuse(SCHEDULE_CONFLICT, world, quern_schedule_add_system(schedule, &def, NULL));
    assert_message_has("looks up 'health', which its own views write");
    def.lookups[0] = LOOKUP(.component = health, .with = enemy);
    must_refuse(SCHEDULE_CONFLICT, world, quern_schedule_add_system(schedule, &def, NULL));
    def.terms[1] = WITHOUT(enemy);
    setup_system(schedule, &def);
    def.name = "other way round";
    def.terms[1] = WITH(turret);
    must_refuse(SCHEDULE_CONFLICT, world, quern_schedule_add_system(schedule, &def, NULL));
    def.lookups[0] = LOOKUP(.component = health, .without = turret);
    setup_system(schedule, &def);
    def.name = "serial";
    def.lookups[0] = LOOKUP(.component = health);
    def.flags = QUERN_SYSTEM_SERIAL;
    setup_system(schedule, &def);
}

/* ------------------------------------------------------------------------------------------- conflicts */

static bool waits(quern_system first, quern_system second)
{
    must(quern_schedule_compile(schedule));
    cr_assert_not(quern_schedule_has_edge(schedule, second, first), "edges follow the order");
    return quern_schedule_has_edge(schedule, first, second);
}

Test(lookup, limited_lookup_waits_only_for_writers_within_its_limits)
{
    const quern_system looks = add("looks", TERMS(WRITES(place)),
                                   LOOKUP(.component = health, .with = enemy, .without = turret), NOTHING);
    const quern_system guns = add("guns", TERMS(WRITES(health), WITH(turret)), NOTHING, NOTHING);
    const quern_system foes = add("foes", TERMS(WRITES(health), WITH(enemy)), NOTHING, NOTHING);
    const quern_system reader = add("reader", TERMS(READS(health), WITH(enemy)), NOTHING, NOTHING);
    cr_assert(waits(looks, foes));
    cr_assert_not(waits(looks, guns));
    cr_assert_not(waits(looks, reader));
    cr_assert(quern_schedule_are_fused(schedule, looks, guns), "nothing keeps them apart");
    cr_assert_not(quern_schedule_are_fused(schedule, looks, foes));
}

Test(lookup, new_archetype_causes_lookup_conflict)
{
    const quern_component rage = setup_component(world, "rage", 8, 8), mark = setup_tag(world, "mark");
    const quern_system writes = add("writes", TERMS(WRITES(rage)), NOTHING, NOTHING);
    const quern_system looks =
        add("looks", TERMS(WRITES(place)), LOOKUP(.component = rage, .with = mark), NOTHING);
    setup_entity_with(world, &rage, 1);
    cr_assert_not(waits(writes, looks));
    setup_entity_with(world, (quern_component[]){rage, mark}, 2);
    cr_assert(waits(writes, looks));
}

Test(lookup, write_lookup_conflicts_with_reachable_readers_and_writers)
{
    const quern_system first = add("first", TERMS(READS(health), WITH(enemy)), NOTHING, NOTHING);
    const quern_system gun_reader =
        add("gun reader", TERMS(READS(health), WITH(turret), WITHOUT(enemy)), NOTHING, NOTHING);
    const quern_system filters =
        add("filters", TERMS(quern_term_changed(WITH(health)), READS(place)), NOTHING, NOTHING);
    const quern_system hits =
        add("hits", TERMS(READS(place)), NOTHING, LOOKUP(.component = health, .with = enemy));
    const quern_system only_asks = add("only asks", TERMS(WITH(health), READS(place)), NOTHING, NOTHING);
    const quern_system foes = add("foes", TERMS(WRITES(health), WITH(enemy)), NOTHING, NOTHING);
    const quern_system guns =
        add("guns", TERMS(WRITES(health), WITH(turret), WITHOUT(enemy)), NOTHING, NOTHING);
    cr_assert(waits(first, hits));
    cr_assert_not(waits(gun_reader, hits));
    cr_assert(waits(filters, hits), "its filter looks at health");
    cr_assert_not(waits(hits, only_asks), "it does not look at health");
    cr_assert(waits(hits, foes));
    cr_assert_not(waits(hits, guns));
}

Test(lookup, write_lookup_conflicts_with_lookups_unless_limits_exclude_each_other)
{
    const quern_system hits = add("hits", NO_TERMS, NOTHING, LOOKUP(.component = health, .with = enemy));
    const quern_system hits_more = add("hits more", NO_TERMS, NOTHING, LOOKUP(.component = health));
    const quern_system hits_others =
        add("hits others", NO_TERMS, NOTHING, LOOKUP(.component = health, .without = enemy));
    const quern_system looks = add("looks", NO_TERMS, LOOKUP(.component = health, .with = turret), NOTHING);
    const quern_system looks_beyond =
        add("looks beyond", NO_TERMS, LOOKUP(.component = health, .without = enemy), NOTHING);
    const quern_system elsewhere = add("elsewhere", NO_TERMS, LOOKUP(.component = place), NOTHING);
    cr_assert(waits(hits, hits_more));
    cr_assert_not(waits(hits, hits_others));
    cr_assert(waits(hits, looks));
    cr_assert_not(waits(hits, looks_beyond));
    cr_assert_not(waits(hits, elsewhere));
    cr_assert_not(waits(looks, looks_beyond), "both only read");
}

Test(lookup, write_lookup_conflicts_with_up_terms)
{
    quern_relation parent = make_relation(world, .name = "parent", .levels = true);
    const quern_system hits = add("hits", NO_TERMS, NOTHING, LOOKUP(.component = health, .with = enemy));
    const quern_system above =
        add("above", TERMS(READS(place), quern_term_up(health, parent)), NOTHING, NOTHING);
    const quern_system by_levels =
        make_system(schedule, "by levels", idle_run, .terms = {READS(place), quern_term_up(health, parent)},
                    .levels = parent);
    cr_assert(waits(hits, above));
    cr_assert(waits(hits, by_levels));
    cr_assert_not(waits(above, by_levels));
}

/* ---------------------------------------------------------------------------------------- descriptions */

Test(lookup, descriptions_name_lookups)
{
    add("a", TERMS(READS(place), WITH(enemy)), LOOKUP(.component = enemy, .without = turret),
        LOOKUP(.component = health, .with = enemy, .without = turret));
    add("b", TERMS(READS(health)), NOTHING, NOTHING);
    add("c", NO_TERMS, LOOKUP(.component = health), NOTHING);
    add("d", TERMS(WRITES(health)), NOTHING, NOTHING);
    const char *text = described(schedule);
    static const char *const wanted[] = {
        "alone, serial: looks up and writes 'health'",
        "'a': read 'place', with 'enemy', look up 'enemy' without 'turret', look up and write 'health' "
        "with "
        "'enemy' without 'turret'",
        "after 'a' of pass 1: write lookup of 'health' by 'a' (whole)",
        "lookup of 'health' written by 'd'",
    };
    for (uint32_t i = 0; i < COUNT_OF(wanted); i++)
        cr_assert_not_null(strstr(text, wanted[i]), "no \"%s\" in:\n%s", wanted[i], text);
}
