/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "core/query/query_internal.h"
#include "core/world/world_internal.h"

#include "tests/support/fixture.h"

quern_world *world;
static failing_allocator *world_memory; /* NULL: the world has the default allocator */

failing_allocator *open_failing_world_as(quern_world_def def)
{
    world_memory = failing_allocator_create();
    def.allocator = failing_allocator_interface(world_memory);
    must(quern_world_create(&def, &world));
    return world_memory;
}

failing_allocator *open_failing_world(void)
{
    return open_failing_world_as((quern_world_def){0});
}

void close_world(void)
{
    quern_log_set_handler(NULL, NULL);
    quern_assert_set_handler(NULL, NULL);
    while (world != NULL && world->first_schedule != NULL)
        quern_schedule_destroy(world->first_schedule);
    while (world != NULL && world->storage.first_query != NULL)
        quern_query_destroy(world->storage.first_query);
    quern_world_destroy(world);
    world = NULL;
    if (world_memory != NULL) failing_allocator_close(world_memory);
    world_memory = NULL;
}

void close_valid_world(void)
{
    assert_at_end(world == NULL || quern_world_validate(world) == QUERN_OK);
    close_world();
}
