/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include <quern/quern.h>

#include <stdio.h>
#include <stdlib.h>

typedef struct Agent {
    char title[16];
    float speed;
} Agent;

static void check(quern_result result)
{
    if (result == QUERN_OK) return;
    fprintf(stderr, "%s\n", quern_error_message());
    exit(EXIT_FAILURE);
}

int main(void)
{
    quern_world *world;
    quern_component agent;
    quern_entity guard;
    check(quern_world_create(NULL, &world));
    const quern_component_def def = {
        QUERN_TYPE(Agent),
        .fields = {QUERN_TEXT(Agent, title), QUERN_FIELD_WITH(Agent, speed, .unit = "m/s", .maximum = 10)}};
    check(quern_component_register(world, &def, &agent));
    check(quern_entity_create(world, &guard));

    /* From here on, a console or a tool that does not know the type Agent. */
    check(quern_entity_add_by_name(world, guard, "Agent"));
    check(quern_entity_set_text(world, guard, "Agent.title", "Sergeant"));
    check(quern_entity_get_text(world, guard, "Agent.title", quern_sink_file(stdout)));
    printf("\n");
    if (quern_entity_set_text(world, guard, "Agent.speed", "11") != QUERN_OK)
        printf("%s\n", quern_error_message());
    quern_world_destroy(world);
    return EXIT_SUCCESS;
}
