/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "tests/support/fixture.h"
#include "tests/support/random.h"

#include <string.h>

/* Queries as text: what each form means, that text and terms agree, and that errors point at the text. */

static quern_component position, velocity, shield, hunter, prey, quoted, keyword;
static quern_relation likes, parent;
static quern_entity arena;
static char text[2048];

static quern_component toggled(const char *name, uint32_t size_bytes)
{
    quern_component component =
        make_component(world, .name = name, .size_bytes = size_bytes, .can_disable = true);
    return component;
}

static void open_world(void)
{
    world = setup_world();
    position = setup_component(world, "Position", 8, 4);
    velocity = setup_component(world, "Velocity", 8, 4);
    shield = toggled("Shield", 4);
    hunter = setup_tag(world, "Hunter");
    prey = setup_tag(world, "Prey");
    quoted = setup_component(world, "a \"quoted\\ name, (odd)", 4, 4);
    keyword = setup_component(world, "mut", 4, 4);
    likes = make_relation(world, .name = "likes");
    parent = quern_world_parent(world);
    arena = setup_entity(world);
    must(quern_entity_set_name(world, arena, "arena"));
}

TestSuite(query_text, .init = open_world, .fini = close_world);

static void append(char *source, size_t capacity_bytes, const char *piece)
{
    const size_t used_bytes = strlen(source);
    snprintf(source + used_bytes, capacity_bytes - used_bytes, "%s", piece);
}

static const char *text_of(const quern_query_def *def)
{
    quern_text_buffer buffer = {text, sizeof text, 0};
    must(quern_query_to_text(world, def, quern_sink_text(&buffer)));
    cr_assert_lt(buffer.length_bytes, sizeof text);
    return text;
}

static bool are_same(const quern_term *a, const quern_term *b)
{
    return a->component.bits == b->component.bits && a->match == b->match && a->access == b->access &&
           a->changed == b->changed && a->enabled == b->enabled && a->path == b->path &&
           a->relation.bits == b->relation.bits && a->by_target == b->by_target &&
           a->target.bits == b->target.bits;
}

/* The text means these terms, and is written like this. */
static void assert_means(const char *source, const quern_term *terms, uint32_t count, const char *written)
{
    quern_query_def def;
    memset(&def, 0xAA, sizeof def);
    must(quern_query_parse(world, source, &def));
    for (uint32_t i = 0; i < count; i++)
        cr_assert(are_same(&def.terms[i], &terms[i]), "%s, term %u", source, i);
    cr_assert_eq(def.terms[count].component.bits, 0u, "%s has more than %u terms", source, count);
    cr_assert_not(def.whole_chunks);
    cr_assert_str_eq(text_of(&def), written);
}

#define MEANS(source, written, ...)                         \
    assert_means(source, (const quern_term[]){__VA_ARGS__}, \
                 sizeof((const quern_term[]){__VA_ARGS__}) / sizeof(quern_term), written)

static quern_term with_enabled(quern_term term, quern_term_enabled enabled)
{
    term.enabled = enabled;
    return term;
}

Test(query_text, components_are_read_written_or_only_matched)
{
    MEANS("Position", "Position", quern_term_read(position));
    MEANS(" mut  Position ,Velocity", "mut Position, Velocity", quern_term_write(position),
          quern_term_read(velocity));
    MEANS("with Position, Hunter", "with Position, Hunter", quern_term_with(position),
          quern_term_with(hunter));
    MEANS("\tmut Hunter\n", "mut Hunter", quern_term_write(hunter));
}

Test(query_text, conditions_exclude_or_are_optional)
{
    MEANS("!Hunter, !Position, ?Velocity", "!Hunter, !Position, ?Velocity", quern_term_without(hunter),
          quern_term_without(position), quern_term_optional(velocity, QUERN_ACCESS_READ));
    MEANS("? mut Velocity", "?mut Velocity", quern_term_optional(velocity, QUERN_ACCESS_WRITE));
    MEANS("?with Velocity", "?with Velocity", quern_term_optional(velocity, QUERN_ACCESS_NONE));
}

Test(query_text, alternatives_form_one_group)
{
    MEANS("Position, Hunter|Prey | mut Velocity, !Shield",
          "Position, Hunter | Prey | mut Velocity, !Shield", quern_term_read(position),
          quern_term_any(hunter, QUERN_ACCESS_NONE), quern_term_any(prey, QUERN_ACCESS_NONE),
          quern_term_any(velocity, QUERN_ACCESS_WRITE), quern_term_without(shield));
}

/* One alternative differs from a plain term: it also matches rows in which its component is disabled. */
Test(query_text, alternatives_may_be_one_or_apart)
{
    MEANS("|Shield", "| Shield", quern_term_any(shield, QUERN_ACCESS_READ));
    MEANS("Position, | with Shield, !Prey", "Position, | with Shield, !Prey", quern_term_read(position),
          quern_term_any(shield, QUERN_ACCESS_NONE), quern_term_without(prey));
    MEANS("Shield | Prey, Position, |Hunter |Velocity", "Shield | Prey, Position, | Hunter | Velocity",
          quern_term_any(shield, QUERN_ACCESS_READ), quern_term_any(prey, QUERN_ACCESS_NONE),
          quern_term_read(position), quern_term_any(hunter, QUERN_ACCESS_NONE),
          quern_term_any(velocity, QUERN_ACCESS_READ));
    MEANS("| Shield, Position, | Hunter", "| Shield, Position, | Hunter",
          quern_term_any(shield, QUERN_ACCESS_READ), quern_term_read(position),
          quern_term_any(hunter, QUERN_ACCESS_NONE));
    quern_query_def def = {.terms = {quern_term_any(shield, QUERN_ACCESS_READ)}}, read;
    quern_query *query, *again;
    const quern_entity entity = setup_entity_with(world, &shield, 1);
    must(quern_entity_set_component_enabled(world, entity, shield, false));
    must(quern_query_parse(world, text_of(&def), &read));
    must(quern_query_create(world, &def, &query));
    must(quern_query_create(world, &read, &again));
    cr_assert_eq(quern_query_count(query), 1u);
    cr_assert_eq(quern_query_count(again), 1u);
}

Test(query_text, filters_combine)
{
    MEANS("changed mut Position", "changed mut Position", quern_term_changed(quern_term_write(position)));
    MEANS("disabled Shield", "disabled Shield", with_enabled(quern_term_read(shield), QUERN_TERM_DISABLED));
    MEANS("with either changed Shield", "changed either with Shield",
          with_enabled(quern_term_changed(quern_term_with(shield)), QUERN_TERM_EITHER));
}

/* Such terms are valid: excluded components, and those of relations, are neither enabled nor disabled. */
Test(query_text, either_is_left_out_where_it_has_no_effect)
{
    const quern_query_def def = {.terms = {quern_term_either(quern_term_without(shield)),
                                           quern_term_either(quern_term_target(likes, arena))}};
    quern_query *query;
    must(quern_query_create(world, &def, &query));
    cr_assert_str_eq(text_of(&def), "!Shield, likes(/arena)");
    quern_query_destroy(query);
}

Test(query_text, paths_lead_to_targets)
{
    MEANS("Position of parent, Velocity of nearest parent",
          "Position of parent, Velocity of nearest parent", quern_term_up(position, parent),
          quern_term_up_nearest(velocity, parent));
    MEANS("?Position of likes", "?Position of likes", quern_term_up_optional(position, likes));
    MEANS("likes, !parent", "likes, !parent", quern_term_read(quern_relation_component(likes)),
          quern_term_without(quern_relation_component(parent)));
}

Test(query_text, targets_are_entities)
{
    MEANS("parent(/arena), Position", "parent(/arena), Position", quern_term_target(parent, arena),
          quern_term_read(position));
    MEANS("likes( 0:1 )", "likes(/arena)", quern_term_target(likes, arena));
    const quern_entity plain = setup_entity(world);
    char source[64], written[64];
    snprintf(source, sizeof source, "likes(%u:%u)", quern_entity_index(plain),
             quern_entity_use_count(world, plain));
    memcpy(written, source, sizeof written);
    MEANS(source, written, quern_term_target(likes, plain));
    must(quern_entity_set_name(world, plain, "odd (name)"));
    MEANS(source, written, quern_term_target(likes, plain));
}

/* A path of 512 bytes, of which all but the last one, a parenthesis, fit the text in which parentheses are sought. */
Test(query_text, targets_with_long_paths_are_numbers)
{
    enum { LEVELS = 9, NAME_BYTES = 56 };
    quern_entity above = quern_entity_null();
    char source[64], written[64], name[NAME_BYTES + 1] = "";
    memset(name, 'x', NAME_BYTES);
    for (uint32_t level = 0; level < LEVELS; level++) {
        const quern_entity entity = setup_entity(world);
        if (level + 1 == LEVELS) name[NAME_BYTES - 1] = ')';
        if (level > 0) must(quern_entity_relate(world, entity, parent, above));
        must(quern_entity_set_name(world, entity, name));
        above = entity;
    }
    snprintf(source, sizeof source, "likes(%u:%u)", quern_entity_index(above),
             quern_entity_use_count(world, above));
    memcpy(written, source, sizeof written);
    MEANS(source, written, quern_term_target(likes, above));
}

Test(query_text, names_are_quoted_where_they_must_be)
{
    MEANS("\"a \\\"quoted\\\\ name, (odd)\"", "\"a \\\"quoted\\\\ name, (odd)\"", quern_term_read(quoted));
    MEANS("mut", "\"mut\"", quern_term_read(keyword));
    MEANS("mut mut, \"Position\"", "mut \"mut\", Position", quern_term_write(keyword),
          quern_term_read(position));
    MEANS("\"mut\" of likes, mut of likes", "\"mut\" of likes, \"mut\" of likes",
          quern_term_up(keyword, likes), quern_term_up(keyword, likes));
}

Test(query_text, a_parsed_query_finds_what_its_terms_say)
{
    quern_query_def def;
    quern_query *query;
    setup_entity_with(world, (quern_component[]){position, hunter}, 2);
    setup_entity_with(world, (quern_component[]){position, prey}, 2);
    setup_entity_with(world, (quern_component[]){position, velocity, prey}, 3);
    must(quern_query_parse(world, "mut Position, Hunter | Prey, !Velocity", &def));
    must(quern_query_create(world, &def, &query));
    cr_assert_eq(quern_query_count(query), 2u);
}

/* ------------------------------------------------------------------------------------------- errors */

static void assert_fails(const char *source, quern_result code, uint32_t column, const char *expected)
{
    quern_query_def def, before;
    char place[32];
    memset(&def, 0xAA, sizeof def);
    memcpy(&before, &def, sizeof def);
    snprintf(place, sizeof place, "column %u of", column);
    assert_refused(world, code, quern_query_parse(world, source, &def));
    cr_assert_not_null(strstr(quern_error_message(), place), "%s: %s", source, quern_error_message());
    cr_assert_not_null(strstr(quern_error_message(), expected), "%s: %s", source, quern_error_message());
    cr_assert_arr_eq(&def, &before, sizeof def);
}

Test(query_text, errors_name_the_column)
{
    const quern_result invalid = QUERN_ERROR_INVALID_ARGUMENT, unknown = QUERN_ERROR_UNKNOWN_COMPONENT;
    assert_fails("", invalid, 1, "a component is expected");
    assert_fails("  ", invalid, 3, "a component is expected");
    assert_fails("Position,", invalid, 10, "a component is expected");
    assert_fails("Position, ,", invalid, 11, "a component is expected");
    assert_fails("Position Velocity", invalid, 10, "a comma or the end");
    assert_fails("!!Hunter", invalid, 2, "a component is expected");
    assert_fails("Position, Unknown", unknown, 11, "no component");
    assert_fails("Position of Hunter", unknown, 13, "no relation");
    assert_fails("Position of", invalid, 12, "a component is expected");
    assert_fails("likes(", invalid, 7, "close it");
    assert_fails("likes(/nowhere)", invalid, 7, "no entity");
    assert_fails("Hunter(/arena)", unknown, 1, "no relation");
    assert_fails("?likes(/arena)", invalid, 7, "of its own");
    assert_fails("mut likes(/arena)", invalid, 10, "of its own");
    assert_fails("\"Position", invalid, 1, "not closed");
    assert_fails("mut mut Position", invalid, 5, "twice");
    assert_fails("mut with Position", invalid, 10, "exclude each other");
    assert_fails("either disabled Shield", invalid, 17, "exclude each other");
    assert_fails("!mut Position", invalid, 1, "no other conditions");
    assert_fails("!changed Position", invalid, 1, "no other conditions");
    assert_fails("!disabled Shield", invalid, 1, "no other conditions");
    assert_fails("Hunter | Prey, Position | Velocity", invalid, 25, "one group");
    assert_fails("| Hunter, Position | Velocity", invalid, 20, "one group");
    assert_fails("| !Hunter", invalid, 3, "a component is expected");
    assert_fails("Position, |", invalid, 12, "a component is expected");
    assert_fails("| likes(/arena)", invalid, 8, "of its own");
    assert_fails("!Hunter | Prey", invalid, 9, "is a component without");
    assert_fails("Hunter | !Prey", invalid, 10, "a component is expected");
    assert_fails("likes(/arena) | Prey", invalid, 15, "is a component without");
}

Test(query_text, misspelt_names_are_corrected)
{
    const quern_result unknown = QUERN_ERROR_UNKNOWN_COMPONENT;
    assert_fails("Position, Huntre", unknown, 11, "or register the component; did you mean 'Hunter'?");
    assert_fails("Position of likse", unknown, 13, "or register the relation; did you mean 'likes'?");
    assert_fails("Nothing", unknown, 1, "or register the component");
    cr_assert_null(strstr(quern_error_message(), "did you mean"), "%s", quern_error_message());
}

Test(query_text, too_many_terms_and_too_long_names_are_refused)
{
    char source[2048] = "Position";
    for (int i = 0; i < QUERN_MAX_TERMS; i++)
        append(source, sizeof source, ",Position");
    assert_fails(source, QUERN_ERROR_LIMIT, 9 * QUERN_MAX_TERMS + 1, "QUERN_MAX_TERMS");
    memset(source, 'a', 500);
    source[500] = '\0';
    assert_fails(source, QUERN_ERROR_UNKNOWN_COMPONENT, 1, "no name is that long");
    source[0] = source[499] = '"';
    assert_fails(source, QUERN_ERROR_UNKNOWN_COMPONENT, 1, "no name is that long");
}

Test(query_text, wrong_arguments_are_refused)
{
    quern_query_def def = {.terms = {quern_term_read(position)}};
    quern_text_buffer buffer = {text, sizeof text, 0};
    const quern_sink sink = quern_sink_text(&buffer);
    must_refuse(NULL_ARGUMENT, world, quern_query_parse(NULL, "Position", &def));
    must_refuse(NULL_ARGUMENT, world, quern_query_parse(world, NULL, &def));
    must_refuse(NULL_ARGUMENT, world, quern_query_parse(world, "Position", NULL));
    must_refuse(NULL_ARGUMENT, world, quern_query_to_text(NULL, &def, sink));
    must_refuse(NULL_ARGUMENT, world, quern_query_to_text(world, NULL, sink));
    must_refuse(NULL_ARGUMENT, world, quern_query_to_text(world, &def, (quern_sink){0}));
    def.terms[0].component = component_unregistered(position);
    must_refuse(UNKNOWN_COMPONENT, world, quern_query_to_text(world, &def, sink));
    def.terms[0] = quern_term_changed(quern_term_without(position));
    must_refuse(INVALID_ARGUMENT, world, quern_query_to_text(world, &def, sink));
    def.terms[0] = quern_term_old(position);
    must_refuse(INVALID_ARGUMENT, world, quern_query_to_text(world, &def, sink));
    cr_assert_not_null(strstr(quern_error_message(), "old values"), "%s", quern_error_message());
    def.terms[0] = quern_term_target(likes, arena);
    def.terms[0].match = QUERN_MATCH_OPTIONAL;
    must_refuse(INVALID_ARGUMENT, world, quern_query_to_text(world, &def, sink));
}

/* ------------------------------------------------------------------------------------------- random */

static quern_term random_term(random_source *rolls, bool is_any)
{
    const quern_component components[] = {position, velocity, shield,  hunter,
                                          prey,     quoted,   keyword, quern_relation_component(likes)};
    const quern_component component = components[random_below(rolls, 8)];
    const bool is_tag = component.bits == hunter.bits || component.bits == prey.bits;
    if (!is_any && random_below(rolls, 8) == 0) return quern_term_target(likes, arena);
    if (!is_any && random_below(rolls, 6) == 0) return quern_term_without(component);
    const quern_access access = is_tag ? (random_below(rolls, 2) ? QUERN_ACCESS_NONE : QUERN_ACCESS_WRITE)
                                       : (quern_access)random_below(rolls, 3);
    quern_term term = quern_term_make(component, QUERN_MATCH_ALL, access);
    if (is_any)
        term.match = QUERN_MATCH_ANY;
    else if (random_below(rolls, 4) == 0)
        term.match = QUERN_MATCH_OPTIONAL;
    term.changed = random_below(rolls, 4) == 0;
    term.enabled = (quern_term_enabled)random_below(rolls, 3);
    term.path = (quern_term_path)random_below(rolls, 3);
    if (term.path != QUERN_PATH_ROW) term.relation = random_below(rolls, 2) ? likes : parent;
    return term;
}

Test(query_text, written_terms_are_read_as_the_same_terms)
{
    random_source rolls = {7};
    for (int round = 0; round < 3000; round++) {
        quern_query_def def = {.whole_chunks = false}, read;
        const uint32_t count = 1 + random_below(&rolls, 6);
        for (uint32_t i = 0; i < count; i++)
            def.terms[i] = random_term(&rolls, random_below(&rolls, 3) == 0);
        must(quern_query_parse(world, text_of(&def), &read));
        for (uint32_t i = 0; i <= count; i++)
            cr_assert(i == count ? read.terms[i].component.bits == 0
                                 : are_same(&def.terms[i], &read.terms[i]),
                      "%s, term %u", text, i);
    }
}

/* Garbage is refused or read, but never crashes; what is read is written and read as the same terms again. */
Test(query_text, random_characters_are_read_or_refused)
{
    static const char *const pieces[] = {"Position", " ",      ",",     "|",      "!",  "?",
                                         "mut ",     "with ",  "\"",    "(",      ")",  "of ",
                                         "nearest ", "parent", "likes", "/arena", "\\", "changed "};
    random_source rolls = {11};
    uint32_t read_count = 0;
    for (int round = 0; round < 20000; round++) {
        char source[256] = "";
        quern_query_def def, again;
        for (uint32_t i = random_below(&rolls, 8); i < 8; i++)
            append(source, sizeof source, pieces[random_below(&rolls, sizeof pieces / sizeof pieces[0])]);
        if (quern_query_parse(world, source, &def) != QUERN_OK) continue;
        read_count++;
        must(quern_query_parse(world, text_of(&def), &again));
        for (uint32_t i = 0; i < QUERN_MAX_TERMS; i++)
            cr_assert(are_same(&def.terms[i], &again.terms[i]) || def.terms[i].component.bits == 0, "%s",
                      source);
    }
    cr_assert_gt(read_count, 100u);
}
