/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include <quern/quern.h>

#include <stdio.h>
#include <stdlib.h>

typedef struct Position {
    float x;
} Position;

static void check(quern_result result)
{
    if (result == QUERN_OK) return;
    fprintf(stderr, "%s\n", quern_error_message());
    exit(EXIT_FAILURE);
}

int main(void)
{
    quern_world *world;
    quern_component position, hidden;
    quern_query *query;
    check(quern_world_create(NULL, &world));
    check(QUERN_COMPONENT_REGISTER(world, &position, Position));
    check(quern_component_register(world, &(quern_component_def){.name = "hidden"}, &hidden));
    const quern_query_def def = {.terms = {quern_term_write(position), quern_term_without(hidden)}};
    check(quern_query_create(world, &def, &query));

    const Position start[4] = {{10}, {20}, {30}, {40}};
    quern_entity entities[4];
    check(quern_entity_create_many(world, &position, (const void *[]){start}, 1, 4, entities));
    check(quern_entity_add(world, entities[1], hidden, NULL));

    float sum = 0;
    quern_query_iterator it = quern_query_iterate(query);
    while (quern_query_next(&it)) {
        Position *positions = QUERN_COLUMN(&it.view, 0, Position);
        const uint32_t count = it.view.count;
        for (uint32_t i = 0; i < count; i++)
            sum += positions[i].x += 1;
    }
    check(it.result);
    printf("%u entities, sum %g\n", (unsigned)quern_query_count(query), (double)sum);

    quern_query_destroy(query);
    quern_world_destroy(world);
    return EXIT_SUCCESS;
}
