/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Reflection: a tiny inspector prints the fields of an entity and sets them from text, without knowing
 * their types. docs/reflection.md explains it. */
#include <quern/quern.h>

#include <stdio.h>
#include <stdlib.h>

typedef enum Mood { MOOD_CALM, MOOD_ANGRY } Mood;

typedef struct Agent {
    char title[16];
    Mood mood;
    float speed;
    struct {
        float x, y;
    } place;
    quern_entity target;
} Agent;

static void check(quern_result result)
{
    if (result == QUERN_OK) return;
    fprintf(stderr, "%s: %s\n", quern_result_string(result), quern_error_message());
    exit(EXIT_FAILURE);
}

static void register_agent(quern_world *world)
{
    static const quern_named_value moods[] = {{"calm", MOOD_CALM}, {"angry", MOOD_ANGRY}, {NULL, 0}};
    quern_component agent;
    check(quern_component_register(
        world,
        &(quern_component_def){QUERN_TYPE(Agent),
                               .fields = {QUERN_TEXT(Agent, title),
                                          QUERN_FIELD_WITH(Agent, mood, .values = moods),
                                          QUERN_FIELD_WITH(Agent, speed, .unit = "m/s", .maximum = 10),
                                          QUERN_FIELD(Agent, place.x), QUERN_FIELD(Agent, place.y),
                                          QUERN_FIELD(Agent, target)}},
        &agent));
}

static void print_fields(const quern_world *world, quern_entity entity, const quern_type_info *type)
{
    for (uint32_t i = 0; i < type->field_count; i++) {
        const quern_field *field = &type->fields[i];
        char path[2 * QUERN_MAX_NAME_BYTES + 2];
        if (field->is_hidden) continue;
        snprintf(path, sizeof path, "%s.%s", type->name, field->name);
        printf("  %s = ", path);
        check(quern_entity_get_text(world, entity, path, quern_sink_file(stdout)));
        printf("%s%s\n", field->unit != NULL ? " " : "", field->unit != NULL ? field->unit : "");
    }
}

static void print_entity(const quern_world *world, quern_entity entity)
{
    quern_component components[QUERN_MAX_ENTITY_COMPONENTS];
    const uint32_t count =
        quern_entity_list_components(world, entity, components, QUERN_MAX_ENTITY_COMPONENTS);
    check(quern_entity_get_path(world, entity, quern_sink_file(stdout)));
    printf(":\n");
    for (uint32_t i = 0; i < count; i++) {
        quern_type_info type;
        check(quern_component_get_info(world, components[i], &type));
        if (!type.is_hidden) print_fields(world, entity, &type);
    }
}

/* Prints all entities, one page after another, as a window of a tool shows them. */
static void print_entities(const quern_world *world)
{
    quern_entity page[64];
    uint32_t cursor = 0;
    while (cursor != QUERN_LIST_END) {
        const uint32_t count = quern_world_list_entities_from(world, &cursor, page, 64);
        for (uint32_t i = 0; i < count; i++)
            print_entity(world, page[i]);
    }
}

/* Prints the queries of the program, with their terms and how many entities match. */
static void print_queries(const quern_world *world)
{
    quern_query *page[16];
    uint32_t cursor = 0;
    while (cursor != QUERN_LIST_END) {
        const uint32_t count = quern_world_list_queries_from(world, &cursor, page, 16);
        for (uint32_t i = 0; i < count; i++) {
            quern_query_def def;
            check(quern_query_get_def(page[i], &def));
            printf("%s: ", def.name != NULL ? def.name : "a query");
            check(quern_query_to_text(world, &def, quern_sink_file(stdout)));
            printf(": %llu entities\n", (unsigned long long)quern_query_count(page[i]));
        }
    }
}

/* Sets a field to a text, such as the input of a console. Prints the error message if the text is not
 * valid. */
static void set_field(quern_world *world, quern_entity entity, const char *path, const char *text)
{
    if (quern_entity_set_text(world, entity, path, text) != QUERN_OK) printf("%s\n", quern_error_message());
}

int main(void)
{
    quern_world *world;
    quern_entity guard, gate;
    check(quern_world_create(NULL, &world));
    register_agent(world);
    check(quern_entity_create(world, &gate));
    check(quern_entity_set_name(world, gate, "gate"));
    check(quern_entity_create(world, &guard));
    check(quern_entity_set_name(world, guard, "guard"));
    check(quern_entity_add_by_name(world, guard, "Agent"));
    set_field(world, guard, "Agent.title", "Sergeant");
    set_field(world, guard, "Agent.mood", "angry");
    set_field(world, guard, "Agent.target", "/gate");
    set_field(world, guard, "Agent.place.x", "2.5");
    set_field(world, guard, "Agent.speed", "11");
    print_entities(world);

    quern_query_def def;
    quern_query *agents;
    check(quern_query_parse(world, "mut Agent", &def));
    def.name = "agents";
    check(quern_query_create(world, &def, &agents));
    print_queries(world);
    quern_query_destroy(agents);
    quern_world_destroy(world);
    return EXIT_SUCCESS;
}
