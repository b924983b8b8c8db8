/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Deltas: a server sends to a client the changes since the last frame that the client has. Here a packet
 * is printed as lines of text. docs/history.md explains it. */
#include <quern/quern.h>

#include <stdio.h>
#include <stdlib.h>

typedef struct Position {
    float x, y;
} Position;

static void check(quern_result result)
{
    if (result == QUERN_OK) return;
    fprintf(stderr, "%s: %s\n", quern_result_string(result), quern_error_message());
    exit(EXIT_FAILURE);
}

static const char *const kinds[] = {
    [QUERN_DELTA_CREATED] = "created",     [QUERN_DELTA_ADDED] = "added",
    [QUERN_DELTA_CHANGED] = "changed",     [QUERN_DELTA_REMOVED] = "removed",
    [QUERN_DELTA_ENABLED] = "enabled",     [QUERN_DELTA_DISABLED] = "disabled",
    [QUERN_DELTA_NAMED] = "named",         [QUERN_DELTA_DESTROYED] = "destroyed",
    [QUERN_DELTA_RESOURCE] = "a resource", [QUERN_DELTA_RELATED] = "related",
    [QUERN_DELTA_UNRELATED] = "unrelated",
};

/* Prints the head of a batch. In a packet, the batch->count values would follow. */
static void send_batch(const quern_world *world, const quern_delta_batch *batch, uint32_t *sent_bytes)
{
    const bool has_component = !quern_component_is_null(batch->component);
    printf("  %s: %u from entity %u%s%s\n", kinds[batch->kind], batch->count,
           batch->count > 0 ? quern_entity_index(batch->entities[0]) : 0, has_component ? ", " : "",
           has_component ? quern_component_name(world, batch->component) : "");
    if (batch->values != NULL) *sent_bytes += batch->count * batch->value_bytes;
}

static void send_delta(const quern_world *world, quern_history *history, uint64_t acknowledged,
                       uint64_t frame)
{
    quern_delta *delta;
    uint32_t count, sent_bytes = 0;
    check(quern_delta_create(history, acknowledged, frame, &delta));
    const quern_delta_batch *batches = quern_delta_batches(delta, &count);
    printf("changes from frame %u to %u:\n", (unsigned)acknowledged, (unsigned)frame);
    for (uint32_t i = 0; i < count; i++)
        send_batch(world, &batches[i], &sent_bytes);
    printf("  %u bytes of values\n", sent_bytes);
    quern_delta_destroy(delta);
}

int main(void)
{
    enum { ENTITIES = 1000 };
    static quern_entity entities[ENTITIES];
    quern_world *world;
    quern_history *history;
    quern_component position, burning;
    check(quern_world_create(NULL, &world));
    check(quern_component_register(
        world, &(quern_component_def){QUERN_TYPE(Position), .fields = QUERN_FIELDS(Position, x, y)},
        &position));
    check(quern_component_register(world, &(quern_component_def){.name = "Burning"}, &burning));
    for (uint32_t i = 0; i < ENTITIES; i++)
        check(quern_entity_create_with(world, &position, (const void *[]){&(Position){(float)i, 0}}, 1,
                                       &entities[i]));
    check(quern_history_create(world, NULL, &history));
    check(quern_history_save(history, 0, NULL));

    for (uint32_t i = 400; i < 410; i++)
        check(quern_entity_set(world, entities[i], position, &(Position){(float)i, 1}));
    check(quern_history_save(history, 1, NULL));
    send_delta(world, history, 0, 1);

    check(quern_entity_add(world, entities[999], burning, NULL));
    check(quern_entity_destroy(world, entities[998]));
    check(quern_history_save(history, 2, NULL));
    send_delta(world, history, 1, 2);
    send_delta(world, history, 0, 2); /* all changes of both frames, for a client that lost a packet */

    quern_history_destroy(history);
    quern_world_destroy(world);
    return 0;
}
