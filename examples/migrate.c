/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Two worlds share a town: guards that walk into the other half move to the other world, as messages of a session.
 * Here both worlds are in one program; on two machines, the bytes would go over a network. docs/archives.md
 * explains it. */
#include <quern/quern.h>

#include <stdio.h>
#include <stdlib.h>

enum { GUARDS = 10 };

typedef struct Guard {
    uint64_t number;
} Guard;

typedef struct Place {
    float x, y;
} Place;

typedef struct Half {
    quern_world *world;
    quern_component guard, place;
    quern_query *guards;
    quern_archive *leaving;
    quern_save_session *out; /* to the other half */
    quern_load_session *in;  /* from the other half */
} Half;

static void check(quern_result result)
{
    if (result == QUERN_OK) return;
    fprintf(stderr, "%s: %s\n", quern_result_string(result), quern_error_message());
    exit(EXIT_FAILURE);
}

static void open_half(Half *half)
{
    check(quern_world_create(NULL, &half->world));
    check(QUERN_COMPONENT_REGISTER_FIELDS(half->world, &half->guard, Guard, number));
    check(QUERN_COMPONENT_REGISTER_FIELDS(half->world, &half->place, Place, x, y));
    const quern_query_def def = {.terms = {quern_term_with(half->guard), quern_term_write(half->place)}};
    check(quern_query_create(half->world, &def, &half->guards));
    check(quern_archive_create(half->world, &half->leaving));
    check(quern_save_session_create(half->world, NULL, &half->out));
    check(quern_load_session_create(half->world, NULL, &half->in));
}

static void close_half(const Half *half)
{
    quern_load_session_destroy(half->in);
    quern_save_session_destroy(half->out);
    quern_archive_destroy(half->leaving);
    quern_query_destroy(half->guards);
    quern_world_destroy(half->world);
}

/* Moves all guards to the right, and lists those that have left the half. */
static uint32_t walk(const Half *half, float end, quern_entity *out_leaving)
{
    uint32_t count = 0;
    quern_query_iterator it = quern_query_iterate(half->guards);
    while (quern_query_next(&it)) {
        Place *places = QUERN_COLUMN(&it.view, 1, Place);
        for (uint32_t row_end = it.view.count, i = 0; i < row_end; i++) {
            places[i].x += 1;
            if (places[i].x >= end) out_leaving[count++] = it.view.entities[i];
        }
    }
    return count;
}

static void send(const Half *from, const Half *to, const quern_entity *leaving, uint32_t count)
{
    quern_byte_buffer message = {0};
    quern_archive_clear(from->leaving);
    check(quern_archive_append(from->leaving, leaving, count));
    check(quern_save_session_write(from->out, from->leaving, quern_sink_bytes(&message)));
    check(quern_entity_destroy_many(from->world, leaving, count));
    check(quern_load_session_read(to->in, quern_source_bytes(message.bytes, message.size_bytes), NULL, 0,
                                  NULL));
    printf("%u guards in %u bytes\n", count, (unsigned)message.size_bytes);
    quern_byte_buffer_release(&message);
}

int main(void)
{
    Half left, right;
    quern_entity leaving[GUARDS];
    open_half(&left);
    open_half(&right);
    for (uint64_t i = 0; i < GUARDS; i++) {
        const quern_component list[] = {left.guard, left.place};
        const void *values[] = {&(Guard){i}, &(Place){(float)(10 - i % 3), 0}};
        check(quern_entity_create_with(left.world, list, values, 2, NULL));
    }
    for (uint32_t frame = 0; frame < 4; frame++) {
        const uint32_t count = walk(&left, 12, leaving);
        if (count > 0) send(&left, &right, leaving, count);
    }
    printf("%u guards arrived\n", (unsigned)quern_query_count(right.guards));
    close_half(&left);
    close_half(&right);
    return EXIT_SUCCESS;
}
