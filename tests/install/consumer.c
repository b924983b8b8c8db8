/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include <quern/quern.h>

#include <stdio.h>

/* Touches the world and the threads, so that both halves of the library are linked. */
int main(void)
{
    quern_world *world = NULL;
    quern_jobs *jobs = NULL;
    quern_entity entity;
    bool passed = quern_world_create(NULL, &world) == QUERN_OK &&
                  quern_entity_create(world, &entity) == QUERN_OK && quern_entity_is_alive(world, entity) &&
                  quern_jobs_create(NULL, &jobs) == QUERN_OK && quern_jobs_thread_count(jobs) > 0;
    if (!passed) fprintf(stderr, "consumer: %s\n", quern_error_message());
    quern_jobs_destroy(jobs);
    quern_world_destroy(world);
    return passed ? 0 : 1;
}
