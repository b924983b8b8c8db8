/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Test labels: threaded, stress */
#include "inspect/inspect_internal.h"
#include "tests/inspect/inspect_client.h"
#include "tests/inspect/inspect_scene.h"
#include "tests/support/random.h"
#include "tests/support/setup.h"
#include "tests/support/stress.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Random clients against a running program: right and wrong requests to all end points, on connections that stop
 * reading or writing anywhere, wait past all limits of time, or end in the middle; and WebSockets with right and wrong
 * frames. Meanwhile the program runs frames, pauses, goes back, and sometimes does not update for longer than requests
 * wait. The world must stay valid, the server must answer afterwards, and the inspector must end.
 * QUERN_STRESS_SECONDS: duration, default 20. QUERN_STRESS_SEED: the first seed. */

enum { CLIENTS = 6, TEXT_ROOM = 1 << 16 };

static inspect_scene scene;
static unsigned port;
static atomic_bool is_over;
static atomic_uint running_count;
static atomic_uint answer_count;
static atomic_uint current_frame;

/* ------------------------------------------------------------------------------------------ requests */

static const char *const gets[] = {
    "world",  "hash",   "types",      "resources", "archetypes", "prefabs",      "entities",   "sources",
    "roots",  "entity", "systems",    "schedule",  "trace",      "forecast",     "history",    "delta",
    "events", "watch",  "none",       "",          "table",      "table",        "matches",    "access",
    "probes", "panel",  "statistics", "archive",   "case",       "case_archive", "case_replay"};
static const char *const posts[] = {
    "set",    "set_resource", "add",     "remove",  "merge",      "enable",     "name",
    "relate", "create",       "destroy", "system",  "profiling",  "record",     "capture",
    "pause",  "resume",       "resume",  "resume",  "step",       "restore",    "none",
    "undo",   "probe",        "break",   "unprobe", "system_set", "record_case"};
static const char *const names[] = {
    "entity",   "path",   "value",   "component", "relation", "target", "name", "query",   "limit",
    "offset",   "cursor", "values",  "after",     "parts",    "from",   "to",   "frame",   "frames",
    "count",    "on",     "threads", "rate",      "entities", "where",  "sort", "columns", "descending",
    "anywhere", "copy",   "prefab",  "probe",     "title",    "from"};
static const char *const values[] = {"/arena",
                                     "/arena/gun",
                                     "0:1",
                                     "3:1",
                                     "9:9",
                                     "Body.x",
                                     "Body.speed",
                                     "Rules.step",
                                     "1",
                                     "0",
                                     "7",
                                     "1000",
                                     "Body",
                                     "Marker",
                                     "parent",
                                     "bump",
                                     "Body%2C+!Marker",
                                     "gu",
                                     "%C3%A4",
                                     "%zz",
                                     "%00",
                                     "-1",
                                     "99999999999",
                                     "systems,profile,commands,events,probes",
                                     "Body.x<5",
                                     "Body.level=high, Body.x>=1",
                                     "Body.x,Body.level,,x",
                                     "1:1,2:1,3:1,x,,",
                                     "[1,2]",
                                     ""};

/* Finds the arguments that an end point knows; "" if there is none. */
static const char *arguments_of(const char *path)
{
    const quern__inspect_route *const tables[] = {quern__inspect_world_routes,  quern__inspect_frame_routes,
                                                  quern__inspect_system_routes, quern__inspect_table_routes,
                                                  quern__inspect_probe_routes,  quern__inspect_case_routes,
                                                  quern__inspect_command_routes};
    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++)
        for (const quern__inspect_route *route = tables[i]; route->path != NULL; route++)
            if (strcmp(route->path, path) == 0) return route->arguments;
    return "";
}

/* Draws one of the words of a text, of at most `room` - 1 bytes. */
static void draw_word(random_source *random, const char *words, char *word, size_t room)
{
    uint32_t count = words[0] != '\0';
    for (const char *at = words; *at != '\0'; at++)
        count += *at == ' ';
    word[0] = '\0';
    if (count == 0) return;
    for (uint32_t skip = random_below(random, count); skip > 0; skip--)
        words += strcspn(words, " ") + 1;
    snprintf(word, room, "%.*s", (int)strcspn(words, " "), words);
}

#define PICK(random, list) (list)[random_below((random), sizeof(list) / sizeof((list)[0]))]

/* Most arguments are some that the end point knows. */
static size_t draw_arguments(random_source *random, const char *path, char *text, size_t room)
{
    size_t size = 0;
    char known[32];
    text[0] = '\0';
    for (uint32_t i = random_below(random, 5); i > 0 && size + 128 < room; i--) {
        draw_word(random, arguments_of(path), known, sizeof known);
        size += (size_t)snprintf(text + size, room - size, "%s%s=%s", size > 0 ? "&" : "",
                                 known[0] == '\0' || random_chance(random, 5) ? PICK(random, names) : known,
                                 PICK(random, values));
    }
    return size;
}

/* A delta and a restore need frames that are kept. Some of these are too old. */
static void draw_frames(random_source *random, const char *path, char *text, size_t room)
{
    /* Relaxed: it may be an older number. */
    const unsigned newest = atomic_load_explicit(&current_frame, memory_order_relaxed);
    const unsigned frame = newest - random_below(random, newest < 36 ? newest + 1 : 36);
    if (strcmp(path, "restore") == 0)
        snprintf(text, room, "frame=%u", frame);
    else
        snprintf(text, room, "from=%u&to=%u&limit=500", frame, frame + random_below(random, 8));
}

/* Arguments that some of the end points understand as a whole. */
static const char *const wholes[] = {
    "query=Body&where=Body.x<5&sort=Body.x&columns=Body.x,Body.level&limit=50",
    "query=Body&sort=Body.speed&descending=1&offset=20&columns=Body.speed",
    "entity=/arena/gun&path=Body.x",
    "entity=0:1&path=Body.level",
    "query=Body&where=Body.x>30",
    "entity=/arena/gun&where=Body.level=high",
    "copy=/arena",
    "probe=1",
    "probe=7",
};

static size_t draw_request(random_source *random, char *text, size_t room)
{
    char arguments[512];
    const bool is_post = random_chance(random, 40);
    const char *path = is_post ? PICK(random, posts) : PICK(random, gets);
    draw_arguments(random, path, arguments, sizeof arguments);
    if (strcmp(path, "delta") == 0 || strcmp(path, "restore") == 0)
        draw_frames(random, path, arguments, sizeof arguments);
    if (random_chance(random, 10)) snprintf(arguments, sizeof arguments, "%s", PICK(random, wholes));
    uint32_t body_bytes = is_post && random_chance(random, 30) ? random_below(random, 3000) : 0;
    if (random_chance(random, 1)) body_bytes = 60000 + random_below(random, 8000);
    size_t size = (size_t)snprintf(
        text, room, "%s /%s/%s%s%s%s HTTP/1.1\r\nHost: %s:%u\r\n%s%s",
        random_chance(random, 3) ? "PUT"
        : is_post                ? "POST"
                                 : "GET",
        random_chance(random, 3) ? "none" : INSPECT_TOKEN, random_chance(random, 5) ? "" : "api/", path,
        arguments[0] != '\0' ? "?" : "", arguments, random_chance(random, 2) ? "evil.example" : "localhost",
        port, random_chance(random, 2) ? "Transfer-Encoding: chunked\r\n" : "",
        random_chance(random, 20) ? "Connection: close\r\n" : "");
    if (body_bytes > 0 || random_chance(random, 10))
        size += (size_t)snprintf(text + size, room - size, "Content-Length: %u\r\n", body_bytes);
    size += (size_t)snprintf(text + size, room - size, "\r\n");
    static const char body[] = "{\"components\":{\"Body\":{\"x\":1,\"speed\":[2]}},\"parent\":\"/arena\"}";
    for (uint32_t i = 0; i < body_bytes && size + 1 < room; i++)
        text[size++] = body[i % (sizeof body - 1)];
    if (random_chance(random, 5)) /* a wrong byte */
        text[random_below(random, (uint32_t)size)] = (char)random_next(random);
    return size;
}

/* ------------------------------------------------------------------------------------------- clients */

static void count_answers(const char *text, size_t size)
{
    if (size >= 8 && memcmp(text, "HTTP/1.1", 8) == 0)
        atomic_fetch_add_explicit(&answer_count, 1, memory_order_relaxed); /* relaxed: only counted */
}

/* Waits below or above the limits of the server. */
static void wait_somehow(random_source *random)
{
    if (random_chance(random, 20)) usleep(random_below(random, 120000));
}

static void talk_http(random_source *random, int file, char *text)
{
    for (uint32_t rounds = 1 + random_below(random, 4); rounds > 0; rounds--) {
        size_t size = draw_request(random, text, TEXT_ROOM), sent = 0;
        if (random_chance(random, 20)) size = random_below(random, (uint32_t)size + 1);
        while (sent < size) {
            const size_t rest = size - sent,
                         part = random_chance(random, 90) ? rest : 1 + random_below(random, (uint32_t)rest);
            inspect_client_send(file, text + sent, part);
            sent += part;
            wait_somehow(random);
        }
        if (random_chance(random, 10)) shutdown(file, SHUT_WR);
        if (random_chance(random, 30)) continue; /* reads nothing, or several answers at once */
        const ssize_t got = recv(file, text, random_chance(random, 50) ? 64 : TEXT_ROOM, 0);
        if (got <= 0) return;
        count_answers(text, (size_t)got);
        wait_somehow(random);
    }
}

static void talk_frames(random_source *random, int file, char *text)
{
    static const unsigned char firsts[] = {0x81, 0x81, 0x81, 0x81, 0x89, 0x89,
                                           0x8a, 0x88, 0x01, 0x82, 0xc1};
    inspect_client_shake_hands(file, port, "/" INSPECT_TOKEN "/watch", "", text, TEXT_ROOM);
    count_answers(text, 8);
    for (uint32_t rounds = 1 + random_below(random, 12); rounds > 0; rounds--) {
        const unsigned char first = PICK(random, firsts);
        size_t size = draw_arguments(random, "watch", text, 512);
        if (first != 0x81 && size > 125) size = 125;
        if (random_chance(random, 5)) size = random_below(random, 9000);
        inspect_client_send_frame(file, first, text, size);
        wait_somehow(random);
        if (random_chance(random, 60) &&
            recv(file, text, TEXT_ROOM, random_chance(random, 50) ? MSG_DONTWAIT : 0) == 0)
            return;
    }
}

static void talk_nonsense(random_source *random, int file, char *text)
{
    const size_t size = random_below(random, 30000);
    for (size_t i = 0; i < size; i++) {
        text[i] = (char)random_next(random);
        if (random_chance(random, 10)) text[i] = "\r\n"[random_below(random, 2)];
    }
    inspect_client_send(file, text, size);
    wait_somehow(random);
}

typedef struct talker {
    pthread_t thread;
    uint64_t seed;
    char text[TEXT_ROOM + 1];
} talker;

static void *talk(void *user_data)
{
    talker *self = user_data;
    random_source random = {self->seed};
    int kept[8]; /* connections that stay open while the next ones are used */
    uint32_t kept_count = 0;
    /* Relaxed: the thread is joined. */
    while (!atomic_load_explicit(&is_over, memory_order_relaxed)) {
        const int file = inspect_client_connect(port, random_chance(&random, 30) ? 2048 : 0);
        const uint32_t kind = random_below(&random, 100);
        if (kind < 70)
            talk_http(&random, file, self->text);
        else if (kind < 92)
            talk_frames(&random, file, self->text);
        else
            talk_nonsense(&random, file, self->text);
        if (random_chance(&random, 10) && kept_count < 8)
            kept[kept_count++] = file;
        else
            close(file);
        if (kept_count == 8 || (kept_count > 0 && random_chance(&random, 5))) close(kept[--kept_count]);
    }
    while (kept_count > 0)
        close(kept[--kept_count]);
    atomic_fetch_sub_explicit(&running_count, 1, memory_order_relaxed); /* relaxed: the thread is joined */
    return NULL;
}

/* The last request goes to a server that has closed all other connections, or does so before it answers. */
static void *ask_at_the_end(void *user_data)
{
    talker *self = user_data;
    static const char request[] = "GET /" INSPECT_TOKEN "/api/world HTTP/1.1\r\nHost: localhost:%u\r\n\r\n";
    for (int i = 0; i < 100; i++) {
        const int file = inspect_client_connect(port, 0);
        snprintf(self->text, TEXT_ROOM, request, port);
        inspect_client_send(file, self->text, strlen(self->text));
        inspect_client_receive(file, self->text, TEXT_ROOM, "has_trace");
        close(file);
        if (strncmp(self->text, "HTTP/1.1 200", 12) == 0) break;
    }
    atomic_fetch_sub_explicit(&running_count, 1, memory_order_relaxed); /* relaxed: the thread is joined */
    return NULL;
}

static void storm(uint64_t seed, double seconds)
{
    static talker talkers[CLIENTS];
    random_source random = {seed};
    inspect_scene_open(&scene, 60, NULL);
    quern__inspect_exchange *exchange = &scene.inspector->exchange;
    exchange->answer_limit_ns = 15000000;
    exchange->read_limit_ns = exchange->write_limit_ns = 40000000;
    scene.inspector->paused_budget_ns = 2000000;
    must(quern_inspector_serve(scene.inspector, &(quern_inspect_server_def){.token = INSPECT_TOKEN}));
    cr_assert_eq(sscanf(quern_inspector_url(scene.inspector), "http://127.0.0.1:%u/", &port), 1);
    /* Relaxed: the threads are created afterwards. */
    atomic_store_explicit(&is_over, false, memory_order_relaxed);
    atomic_store_explicit(&answer_count, 0, memory_order_relaxed);
    atomic_store_explicit(&running_count, CLIENTS, memory_order_relaxed);
    for (uint32_t i = 0; i < CLIENTS; i++) {
        talkers[i].seed = seed * CLIENTS + i;
        cr_assert_eq(pthread_create(&talkers[i].thread, NULL, talk, &talkers[i]), 0);
    }
    const double end = stress_seconds_now() + seconds;
    /* Relaxed: the threads are joined below. */
    while (atomic_load_explicit(&running_count, memory_order_relaxed) > 0) {
        inspect_scene_turn(&scene);
        atomic_store_explicit(&current_frame, (unsigned)scene.frame, memory_order_relaxed);
        usleep(random_chance(&random, 2) ? 30000 : 300);
        if (stress_seconds_now() > end)
            atomic_store_explicit(&is_over, true, memory_order_relaxed); /* relaxed: as above */
    }
    for (uint32_t i = 0; i < CLIENTS; i++)
        pthread_join(talkers[i].thread, NULL);
    atomic_store_explicit(&running_count, 1, memory_order_relaxed); /* relaxed: as above */
    cr_assert_eq(pthread_create(&talkers[0].thread, NULL, ask_at_the_end, &talkers[0]), 0);
    while (atomic_load_explicit(&running_count, memory_order_relaxed) > 0) { /* relaxed: as above */
        inspect_scene_turn(&scene);
        usleep(300);
    }
    pthread_join(talkers[0].thread, NULL);
    cr_assert_eq(strncmp(talkers[0].text, "HTTP/1.1 200", 12), 0, "seed %llu: %.200s",
                 (unsigned long long)seed, talkers[0].text);
    cr_assert_gt(atomic_load_explicit(&answer_count, memory_order_relaxed), 0u);
    assert_valid(scene.world);
    inspect_scene_close(&scene);
}

/* Each round has its own seed and server, so that a server also ends often. */
Test(inspect_storm, stays_whole, .timeout = 580)
{
    const double end = stress_deadline(20, 1);
    for (uint64_t seed = stress_seed(1); stress_seconds_now() < end; seed++)
        storm(seed, 1 < end - stress_seconds_now() ? 1 : end - stress_seconds_now());
}
