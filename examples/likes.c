/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* A relation with several targets per source: creatures like fruits. docs/relations.md explains it. */
#include <quern/quern.h>

#include <stdio.h>
#include <stdlib.h>

static void check(quern_result result)
{
    if (result == QUERN_OK) return;
    fprintf(stderr, "%s: %s\n", quern_result_string(result), quern_error_message());
    exit(EXIT_FAILURE);
}

static quern_entity create(quern_world *world, const char *name)
{
    quern_entity entity;
    check(quern_entity_create(world, &entity));
    check(quern_entity_set_name(world, entity, name));
    return entity;
}

static void print_targets(const quern_world *world, quern_entity source, quern_relation likes)
{
    printf("%s likes %u:", quern_entity_name(world, source),
           quern_entity_target_count(world, source, likes));
    quern_entity fruit = quern_entity_null();
    while (fruit = quern_entity_next_target(world, source, likes, fruit), !quern_entity_is_null(fruit))
        printf(" %s", quern_entity_name(world, fruit));
    printf("\n");
}

/* Prints all rows of a query with a target term. */
static void print_fans(const quern_world *world, quern_query *fans)
{
    quern_query_iterator it = quern_query_iterate(fans);
    while (quern_query_next(&it))
        for (uint32_t end = it.view.count, i = 0; i < end; i++)
            printf("a fan: %s\n", quern_entity_name(world, it.view.entities[i]));
}

int main(void)
{
    quern_world *world;
    quern_relation likes;
    quern_query *fans;
    check(quern_world_create(NULL, &world));
    check(quern_relation_register(
        world,
        &(quern_relation_def){.name = "likes", .on_target_destroyed = QUERN_TARGET_UNRELATES, .many = true},
        &likes));
    const quern_entity plum = create(world, "plum"), pear = create(world, "pear");
    const quern_entity ant = create(world, "ant"), bee = create(world, "bee");
    check(quern_entity_relate(world, ant, likes, plum));
    check(quern_entity_relate(world, bee, likes, pear));
    check(quern_entity_relate(world, bee, likes, plum));
    check(quern_entity_relate(world, bee, likes, plum)); /* the bee likes it already */
    print_targets(world, ant, likes);
    print_targets(world, bee, likes);

    const quern_query_def def = {.terms = {quern_term_target(likes, plum)}};
    check(quern_query_create(world, &def, &fans));
    print_fans(world, fans);
    check(quern_entity_unrelate_from(world, ant, likes, plum));
    check(quern_entity_destroy(world, pear)); /* the bee likes one fruit less */
    print_fans(world, fans);
    print_targets(world, bee, likes);
    quern_query_destroy(fans);
    quern_world_destroy(world);
    return EXIT_SUCCESS;
}
