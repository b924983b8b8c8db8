/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "tests/support/setup.h"

#include <quern/kit/json.h>

#include <stdio.h>
#include <string.h>

/* Names that look like other text: each text form of the entity leads back to it, in this world and in another. */

typedef struct Aim {
    quern_entity at, others[2];
} Aim;

typedef struct place {
    quern_world *world;
    quern_component aim;
    quern_relation likes;
} place;

static const char *const names[] = {
    " ",
    "  door",
    "door ",
    "door  ",
    " door ",
    "\tdoor",
    "door\t",
    "door\n",
    "\ndoor",
    "door\r",
    "\r",
    "a b",
    "\"door",
    "door\"",
    "\"\"",
    "do\\or",
    "\\",
    "'",
    "#",
    "#0",
    "#1 ",
    ":",
    "0:1",
    "1:1 ",
    " 2:1",
    "none",
    "none ",
    "0x1",
    "null",
    "true",
    "[",
    "]",
    "[0]",
    "a,b",
    "a|b",
    "!a",
    "?a",
    "(a",
    "a)",
    ") ",
    "of",
    "nearest ",
    "\x01",
    "door\x1f",
    "\x7f",
    "\v",
    "door\f",
    "door.x",
    "{}",
    "%s",
    "\xC2\xA0",
    "door\xC2\xA0",
    "door\xE2\x80\x83",
    /* in two parts: the d would belong to the escape before it */
    ("\xE3\x80\x80"
     "door"),
    ("\xEF\xBB\xBF"
     "door"),
    "door\xE2\x80\xA8",
    "-1",
    "door",
    "\xF0\x9F\x9A\xAA",
};
enum { NAMES = sizeof names / sizeof names[0] };

static place open_place(void)
{
    place it;
    must(quern_world_create(NULL, &it.world));
    must(QUERN_COMPONENT_REGISTER_FIELDS(it.world, &it.aim, Aim, at, others));
    must(quern_relation_register(
        it.world, &(quern_relation_def){.name = "likes", .on_target_destroyed = QUERN_TARGET_UNRELATES},
        &it.likes));
    (void)quern_world_parent(it.world);
    return it;
}

static char text[8192];

static quern_sink into_text(void)
{
    static quern_text_buffer buffer;
    buffer = (quern_text_buffer){text, sizeof text, 0};
    return quern_sink_text(&buffer);
}

#define SAME(actual, expected, form) \
    cr_assert_eq((actual).bits, (expected).bits, "%s of '%s', by the text '%s'", form, names[i], text)

/* Reads each text form of the entity and compares what it leads to. */
static void check_forms(const place *it, quern_entity entity, quern_entity holder, uint32_t i)
{
    quern_entity found;
    quern_query_def def = {.terms = {quern_term_target(it->likes, entity)}}, read;
    quern_type_info type;
    Aim value = {entity, {entity, quern_entity_null()}}, copy = {{0}, {{0}}};
    must(quern_entity_to_text(it->world, entity, into_text()));
    must(quern_entity_from_text(it->world, text, &found));
    SAME(found, entity, "text");
    must(quern_entity_get_path(it->world, entity, into_text()));
    SAME(quern_entity_find(it->world, text), entity, "path");

    must(quern_entity_set(it->world, holder, it->aim, &value));
    must(quern_entity_get_text(it->world, holder, "Aim.at", into_text()));
    must(quern_entity_set(it->world, holder, it->aim, &copy));
    must(quern_entity_set_text(it->world, holder, "Aim.at", text));
    SAME(((const Aim *)quern_entity_get(it->world, holder, it->aim))->at, entity, "field");
    must(quern_component_get_info(it->world, it->aim, &type));
    must(quern_value_get_text(it->world, &type, &value, "others", into_text()));
    must(quern_value_set_text(it->world, &type, &copy, "others", text));
    SAME(copy.others[0], entity, "array");

    must(quern_query_to_text(it->world, &def, into_text()));
    must(quern_query_parse(it->world, text, &read));
    SAME(read.terms[0].target, entity, "query");

    must(quern_json_write_value(it->world, &type, &value, into_text()));
    must(quern_json_read_value(it->world, &type, &copy, text, strlen(text), NULL));
    SAME(copy.at, entity, "value in JSON");
    SAME(copy.others[0], entity, "array in JSON");
    must(quern_entity_set(it->world, holder, it->aim, &value));
    must(quern_json_write_entity(it->world, holder, into_text()));
    must(quern_entity_set(it->world, holder, it->aim, &(Aim){{0}, {{0}}}));
    must(quern_json_read_entity(it->world, holder, text, strlen(text), NULL));
    SAME(((const Aim *)quern_entity_get(it->world, holder, it->aim))->at, entity, "entity in JSON");
    must(quern_json_write_prefab(it->world, holder, into_text()));
    quern_prefab prefab;
    quern_entity instance;
    must(quern_json_read_prefab(it->world, text, strlen(text), NULL, &prefab));
    must(quern_prefab_spawn(it->world, prefab, NULL, &instance));
    SAME(((const Aim *)quern_entity_get(it->world, instance, it->aim))->at, entity, "prefab in JSON");
    must(quern_entity_destroy(it->world, instance));
    must(quern_prefab_destroy(it->world, prefab));
}

/* Roots and children of one parent with all names, one of them below the other. */
static void fill(const place *it, quern_entity roots[NAMES], quern_entity children[NAMES])
{
    for (uint32_t i = 0; i < NAMES; i++) {
        roots[i] = setup_entity(it->world);
        children[i] = setup_entity(it->world);
        must(quern_entity_set_name(it->world, roots[i], names[i]));
        must(quern_entity_relate(it->world, children[i], quern_world_parent(it->world), roots[i]));
        must(quern_entity_set_name(it->world, children[i], names[NAMES - 1 - i]));
    }
}

Test(names_as_text, each_text_leads_back_to_its_entity)
{
    place it = open_place();
    quern_entity roots[NAMES], children[NAMES];
    fill(&it, roots, children);
    const quern_entity holder = setup_entity_with(it.world, &it.aim, 1);
    for (uint32_t i = 0; i < NAMES; i++) {
        check_forms(&it, roots[i], holder, i);
        check_forms(&it, children[i], holder, i);
    }
    quern_world_destroy(it.world);
}

/* Checks that a world has the names of `fill`, at the same places. */
static void check_names(const quern_world *world, const char *way)
{
    char path[2 * QUERN_MAX_ENTITY_NAME_BYTES + 2];
    for (uint32_t i = 0; i < NAMES; i++) {
        (void)snprintf(path, sizeof path, "%s/%s", names[i], names[NAMES - 1 - i]);
        const quern_entity found = quern_entity_find(world, path);
        cr_assert(quern_entity_is_alive(world, found), "%s: '%s'", way, path);
        cr_assert_str_eq(quern_entity_name(world, found), names[NAMES - 1 - i]);
    }
}

/* Archives, JSON and commands have no rules of their own: what quern_entity_set_name accepts arrives. */
Test(names_as_text, names_arrive_in_other_worlds)
{
    place from = open_place(), by_archive = open_place(), by_json = open_place(), by_command = open_place();
    quern_entity roots[NAMES], children[NAMES];
    quern_byte_buffer bytes = {0};
    fill(&from, roots, children);
    must(quern_world_save(from.world, quern_sink_bytes(&bytes), NULL));
    must(quern_world_load(by_archive.world, quern_source_bytes(bytes.bytes, bytes.size_bytes), NULL, NULL));
    check_names(by_archive.world, "archive");
    bytes.size_bytes = 0;
    must(quern_json_write_world(from.world, quern_sink_bytes(&bytes)));
    must(quern_json_read_world(by_json.world, bytes.bytes, bytes.size_bytes, NULL));
    check_names(by_json.world, "JSON");
    quern_commands *commands = quern_world_commands(by_command.world);
    for (uint32_t i = 0; i < NAMES; i++) {
        const quern_entity root = record_entity(commands), child = record_entity(commands);
        must(quern_commands_set_name(commands, root, names[i]));
        must(quern_commands_relate(commands, child, quern_world_parent(by_command.world), root));
        must(quern_commands_set_name(commands, child, names[NAMES - 1 - i]));
    }
    must(quern_world_flush(by_command.world));
    check_names(by_command.world, "commands");
    quern_byte_buffer_release(&bytes);
    quern_world_destroy(from.world);
    quern_world_destroy(by_archive.world);
    quern_world_destroy(by_json.world);
    quern_world_destroy(by_command.world);
}

/* If the entity that a written path leads to is gone, the path leads to none, and not to one with a similar name. */
Test(names_as_text, white_space_after_a_path_belongs_to_its_name)
{
    place it = open_place();
    const quern_entity door = setup_entity(it.world), holder = setup_entity_with(it.world, &it.aim, 1);
    quern_query_def def;
    must(quern_entity_set_name(it.world, door, "door"));
    must_refuse(INVALID_ARGUMENT, it.world, quern_entity_set_text(it.world, holder, "Aim.at", "/door "));
    must_refuse(INVALID_ARGUMENT, it.world, quern_query_parse(it.world, "likes(/door )", &def));
    must(quern_entity_set_text(it.world, holder, "Aim.at", " /door"));
    cr_assert_eq(((const Aim *)quern_entity_get(it.world, holder, it.aim))->at.bits, door.bits);
    must(quern_entity_set_text(it.world, holder, "Aim.at", " none\n"));
    must(quern_query_parse(it.world, "likes( /door)", &def));
    cr_assert_eq(def.terms[0].target.bits, door.bits);
    must(quern_query_parse(it.world, "likes( none )", &def));
    quern_world_destroy(it.world);
}
