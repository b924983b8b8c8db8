/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Test labels: threaded */
#include "inspect/inspect_internal.h"
#include "tests/inspect/inspect_client.h"
#include "tests/inspect/inspect_scene.h"
#include "tests/support/failing_allocator.h"
#include "tests/support/setup.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* The server: requests from other threads while frames run, WebSockets, and hostile requests. The main thread runs
 * frames until the client thread has finished. */

#define TOKEN INSPECT_TOKEN

static inspect_scene scene;

static void close_scene(void)
{
    inspect_scene_close(&scene);
}

TestSuite(inspect_server, .fini = close_scene);
static unsigned port;
static atomic_bool is_finished;

/* Sends a request on a connection of its own and returns the status, 0 if the server closed without an answer. */
static unsigned status_of(const char *head, const char *body)
{
    char text[8192];
    unsigned status = 0;
    const int file = inspect_client_connect(port, 0);
    inspect_client_send(file, head, strlen(head));
    if (body != NULL) inspect_client_send(file, body, strlen(body));
    inspect_client_receive(file, text, sizeof text, "}");
    close(file);
    sscanf(text, "HTTP/1.1 %u", &status);
    return status;
}

static unsigned ask(const char *method, const char *path, const char *headers)
{
    char head[1024];
    snprintf(head, sizeof head, "%s %s HTTP/1.1\r\nHost: 127.0.0.1:%u\r\nConnection: close\r\n%s\r\n",
             method, path, port, headers);
    return status_of(head, NULL);
}

static void expect_status(const char *method, const char *path, const char *headers, unsigned expected)
{
    const unsigned status = ask(method, path, headers);
    cr_assert(status == expected, "%s %s %s: %u instead of %u", method, path, headers, status, expected);
}

/* Runs frames while a thread sends requests. allocator: of the inspector; may be NULL. */
static void serve_thread(void *(*client)(void *), const quern_allocator *allocator)
{
    pthread_t thread;
    atomic_store_explicit(&is_finished, false, memory_order_relaxed);
    inspect_scene_open(&scene, 50, allocator);
    must(quern_inspector_serve(scene.inspector, &(quern_inspect_server_def){.token = TOKEN}));
    cr_assert_eq(sscanf(quern_inspector_url(scene.inspector), "http://127.0.0.1:%u/" TOKEN "/", &port), 1);
    cr_assert_eq(pthread_create(&thread, NULL, client, NULL), 0);
    /* Acquire pairs with the release at the end of the client. */
    while (!atomic_load_explicit(&is_finished, memory_order_acquire)) {
        inspect_scene_turn(&scene);
        usleep(500);
    }
    pthread_join(thread, NULL);
    assert_valid(scene.world);
}

/* What a program with spare time between its frames calls instead of sleeping. */
Test(inspect_server, answers_while_the_program_waits)
{
    static const char *const requests[] = {"GET /" TOKEN "/api/types",
                                           "POST /" TOKEN "/api/restore?frame=1",
                                           "POST /" TOKEN "/api/resume", "POST /" TOKEN "/api/pause"};
    char text[8192];
    inspect_scene_open(&scene, 50, NULL);
    uint64_t frame = 7;
    quern_inspector_wait(NULL, &frame, 1000);
    quern_inspector_wait(scene.inspector, &frame, 1000); /* no server */
    cr_assert_eq(frame, 7u);
    must(quern_inspector_serve(scene.inspector, &(quern_inspect_server_def){.token = TOKEN}));
    cr_assert_eq(sscanf(quern_inspector_url(scene.inspector), "http://127.0.0.1:%u/" TOKEN "/", &port), 1);
    for (uint32_t i = 0; i < 4; i++)
        inspect_scene_turn(&scene);
    frame = scene.frame;
    for (size_t i = 0; i < sizeof requests / sizeof requests[0]; i++) {
        const int file = inspect_client_connect(port, 0);
        snprintf(text, sizeof text,
                 "%s HTTP/1.1\r\nHost: 127.0.0.1:%u\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
                 requests[i], port);
        inspect_client_send(file, text, strlen(text));
        /* No update runs: the answer is of the wait alone. Other work of the machine may delay the server. */
        for (uint32_t k = 0; k < 100 && scene.inspector->request_count == i; k++)
            quern_inspector_wait(scene.inspector, &frame, 50000000);
        inspect_client_receive(file, text, sizeof text, NULL);
        cr_assert_eq(strncmp(text, "HTTP/1.1 200", 12), 0, "%s: %.200s", requests[i], text);
        cr_assert_eq(frame, i == 0 ? 4u : 1u, "%s", requests[i]);
        close(file);
    }
    cr_assert_not(quern_inspector_update(scene.inspector, &frame));
    cr_assert_eq(frame, 1u);
    inspect_scene_close(&scene);
}

static void *finish(void)
{
    atomic_store_explicit(&is_finished, true,
                          memory_order_release); /* pairs with the acquire in serve_thread */
    return NULL;
}

static void *send_requests(void *user_data)
{
    cr_assert_eq(ask("GET", "/" TOKEN "/", ""), 200);
    cr_assert_eq(ask("GET", "/" TOKEN "/api/world", ""), 200);
    expect_status("GET", "/" TOKEN "/api/entities?query=Body&limit=50&values=1", "", 200);
    cr_assert_eq(ask("GET", "/" TOKEN "/api/trace", ""), 200);
    cr_assert_eq(ask("POST", "/" TOKEN "/api/name?entity=/arena&name=ring", "Content-Length: 0\r\n"), 200);
    cr_assert_eq(ask("POST", "/" TOKEN "/api/pause", "Content-Length: 0\r\n"), 200);
    cr_assert_eq(ask("POST", "/" TOKEN "/api/step?count=3", "Content-Length: 0\r\n"), 200);
    cr_assert_eq(ask("POST", "/" TOKEN "/api/resume", "Content-Length: 0\r\n"), 200);
    return finish();
}

Test(inspect_server, answers_while_frames_run)
{
    serve_thread(send_requests, NULL);
    cr_assert_str_eq(quern_entity_name(scene.world, scene.root), "ring");
    cr_assert_eq(quern_inspector_serve(scene.inspector, NULL), QUERN_ERROR_INVALID_ARGUMENT);
}

static void send_huge(void)
{
    char head[512];
    snprintf(head, sizeof head,
             "POST /" TOKEN "/api/merge?entity=/arena HTTP/1.1\r\nHost: 127.0.0.1:%u\r\n"
             "Content-Length: 4000000000\r\n\r\n",
             port);
    cr_assert_eq(status_of(head, "{"), 413);
    static char chunk[70100];
    snprintf(head, sizeof head,
             "POST /" TOKEN "/api/merge?entity=/arena HTTP/1.1\r\nHost: 127.0.0.1:%u\r\n"
             "Transfer-Encoding: chunked\r\n\r\n",
             port);
    const int begin = snprintf(chunk, sizeof chunk, "%x\r\n", 70000);
    memset(chunk + begin, 'b', 70000);
    snprintf(chunk + begin + 70000, 16, "\r\n0\r\n\r\n");
    cr_assert_eq(status_of(head, chunk), 411);
    static char endless[40000];
    memset(endless, 'a', sizeof endless - 1);
    snprintf(head, sizeof head, "GET /" TOKEN "/api/world?");
    const unsigned status = status_of(head, endless);
    cr_assert(status == 0 || status >= 400, "%u", status);
}

static void *send_hostile(void *user_data)
{
    static const char longer[] = "/" TOKEN "x/", bare[] = "/" TOKEN;
    static const char *const paths[] = {"/",
                                        "/api/world",
                                        "/0123456789abcdefTOKEM/api/world",
                                        "/0123456789abcdef/api/world",
                                        "/x/../../etc/passwd",
                                        longer,
                                        bare};
    int files[200];
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++)
        cr_assert_neq(ask("GET", paths[i], ""), 200, "%s", paths[i]);
    expect_status("GET", "/" TOKEN "/../../../etc/passwd", "", 404);
    expect_status("GET", "/" TOKEN "/api/../api/world/..", "", 404);
    expect_status("GET", "/" TOKEN "/api/..%2f..%2fetc%2fpasswd", "", 404);
    expect_status("GET", "/" TOKEN "/page.html", "", 404);
    expect_status("GET", "/" TOKEN "/api/world", "Origin: http://evil.example\r\n", 403);
    expect_status("POST", "/" TOKEN "/api/destroy?entity=/arena", "Origin: null\r\nContent-Length: 0\r\n",
                  403);
    expect_status("GET", "/" TOKEN "/api/destroy?entity=/arena", "", 405);
    cr_assert_neq(status_of("GET /" TOKEN "/api/world HTTP/1.1\r\nHost: evil.example\r\n\r\n", NULL), 200);
    cr_assert_neq(status_of("GET /" TOKEN "/api/world HTTP/1.1\r\n\r\n", NULL), 200);
    cr_assert_neq(status_of("nonsense\r\n\r\n", NULL), 200);
    send_huge();
    for (int i = 0; i < 200; i++)
        files[i] = inspect_client_connect(port, 0);
    for (int i = 0; i < 200; i++)
        close(files[i]);
    cr_assert_eq(ask("GET", "/" TOKEN "/api/world", ""), 200);
    return finish();
}

/* A world that only runs frames has the same hash after as many frames. */
Test(inspect_server, refuses_hostile_requests, .timeout = 120)
{
    serve_thread(send_hostile, NULL);
    const uint64_t frames = scene.frame, hash = quern_world_hash(scene.world);
    inspect_scene_close(&scene);
    inspect_scene_open(&scene, 50, NULL);
    while (scene.frame < frames)
        inspect_scene_turn(&scene);
    cr_assert_eq(quern_world_hash(scene.world), hash);
}

/* ----------------------------------------------------------------------------------------- WebSockets */

static void *watch(void *user_data)
{
    static char text[200000];
    int others[8];
    const int file = inspect_client_watch(port, 0, text, sizeof text);
    cr_assert_not_null(strstr(text, "101 "));
    static const char *const wrong[][2] = {{"/0123456789abcdefTOKEM/watch", ""},
                                           {"/watch", ""},
                                           {"/" TOKEN "/api/world", ""},
                                           {"/" TOKEN "/watch", "Origin: http://evil.example\r\n"}};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        char answer[512];
        close(inspect_client_shake_hands(inspect_client_connect(port, 0), port, wrong[i][0], wrong[i][1],
                                         answer, sizeof answer));
        cr_assert_null(strstr(answer, "101 "), "%s %s", wrong[i][0], wrong[i][1]);
    }
    inspect_client_send_frame(file, 0x81, "rate=60&parts=events,systems&entities=0:1,1:1",
                              strlen("rate=60&parts=events,systems&entities=0:1,1:1"));
    for (int i = 0; i < 20; i++)
        inspect_client_receive(file, text, sizeof text, "\"samples\"");
    inspect_client_receive(file, text, sizeof text, "\"systems\"");
    cr_assert_not_null(strstr(text, "\"systems\""));
    int refused = 0;
    for (int i = 0; i < 8; i++) {
        others[i] = inspect_client_watch(port, 0, text, sizeof text);
        refused += strstr(text, "101 ") == NULL;
    }
    cr_assert_eq(refused, 5);
    inspect_client_send_frame(others[0], 0x01, "half a message", strlen("half a message"));
    inspect_client_send_frame(others[1], 0x82, "bytes", strlen("bytes"));
    inspect_client_send(others[2], "\x81\xff\x7f\xff\xff\xff\xff\xff\xff\xff",
                        10); /* a frame of 2^63 bytes that never ends */
    for (int i = 0; i < 8; i++)
        close(others[i]);
    cr_assert_eq(ask("GET", "/" TOKEN "/api/world", ""), 200);
    close(file);
    return finish();
}

Test(inspect_server, sends_messages_to_four_clients, .timeout = 120)
{
    serve_thread(watch, NULL);
}

static failing_allocator *counting;

/* Returns the bytes of the inspector while nothing is sent. A thread of the server may still release an answer. */
static uint64_t settled_bytes(void)
{
    uint64_t least = UINT64_MAX;
    for (int i = 0; i < 10; i++) {
        const uint64_t bytes = failing_allocator_outstanding_bytes(counting);
        if (bytes < least) least = bytes;
        usleep(2000);
    }
    return least;
}

static void *ask_for_long(void *user_data)
{
    static char text[200000];
    uint64_t before = 0;
    const int file = inspect_client_watch(port, 0, text, sizeof text);
    inspect_client_send_frame(file, 0x81, "rate=60&parts=systems,events&entities=0:1,1:1",
                              strlen("rate=60&parts=systems,events&entities=0:1,1:1"));
    for (int round = 0; round < 10; round++) {
        for (int i = 0; i < 20; i++)
            expect_status("GET", "/" TOKEN "/api/entities?query=Body&limit=50&values=1", "", 200);
        cr_assert_eq(ask("POST", "/" TOKEN "/api/name?entity=/arena&name=arena", "Content-Length: 0\r\n"),
                     200);
        inspect_client_receive(file, text, sizeof text, "\"samples\"");
        if (round == 2) before = settled_bytes();
    }
    const uint64_t after = settled_bytes();
    cr_assert_leq(after, before + 4096, "%llu bytes, then %llu", (unsigned long long)before,
                  (unsigned long long)after);
    close(file);
    return finish();
}

/* Memory does not grow while a page is open: 200 requests and as many frames as run meanwhile. */
Test(inspect_server, does_not_grow, .timeout = 120)
{
    counting = failing_allocator_create();
    const quern_allocator allocator = failing_allocator_interface(counting);
    serve_thread(ask_for_long, &allocator);
    inspect_scene_close(&scene);
    failing_allocator_close(counting);
}

/* ----------------------------------------------------------------------------- answers between threads */

/* Returns the next request that waits. */
static quern__inspect_request *wait_for_request(void)
{
    quern__inspect_request *request;
    while ((request = quern__inspect_request_take(&scene.inspector->exchange)) == NULL)
        usleep(500);
    return request;
}

static void *compare_often(void *user_data)
{
    for (int i = 0; i < 40; i++) {
        char path[96];
        snprintf(path, sizeof path, "/" TOKEN "/api/delta?from=%d&to=%d&limit=200", i + 1, i + 3);
        const unsigned status = ask("GET", path, "");
        cr_assert(status == 200 || status == 400, "%u", status); /* 400: a frame that is not kept */
    }
    return finish();
}

Test(inspect_server, compares_while_frames_run, .timeout = 120)
{
    serve_thread(compare_often, NULL);
}

static void *allocate(void *user_data, size_t bytes, size_t alignment)
{
    const quern_allocator allocator = quern_allocator_default();
    return allocator.allocate(allocator.user_data, bytes, alignment);
}

/* Overwrites what is released, so that a later use shows. */
static void release_overwritten(void *user_data, void *memory, size_t bytes, size_t alignment)
{
    const quern_allocator allocator = quern_allocator_default();
    memset(memory, 0xdd, bytes);
    allocator.release(allocator.user_data, memory, bytes, alignment);
}

static const char merged_body[] = "{\"components\": {\"Body\": {\"x\": 25}}}";

/* The server gives up on the request: the end of the connection shows that its thread has returned. */
static void *merge_in_vain(void *user_data)
{
    const char *body = merged_body;
    char text[1024];
    const int file = inspect_client_connect(port, 0);
    snprintf(text, sizeof text,
             "POST /" TOKEN "/api/merge?entity=/arena/gun HTTP/1.1\r\nHost: 127.0.0.1:%u\r\n"
             "Connection: close\r\nContent-Length: %zu\r\n\r\n%s",
             port, strlen(body), body);
    inspect_client_send(file, text, strlen(text));
    inspect_client_receive(file, text, sizeof text, NULL);
    close(file);
    cr_assert_eq(strncmp(text, "HTTP/1.1 503", 12), 0, "%s", text);
    return NULL;
}

Test(inspect_server, keeps_the_body_of_a_request_that_it_gives_up)
{
    pthread_t thread;
    const quern_allocator allocator = {.allocate = allocate, .release = release_overwritten};
    inspect_scene_open(&scene, 0, &allocator);
    scene.inspector->exchange.answer_limit_ns = 200000000;
    must(quern_inspector_serve(scene.inspector, &(quern_inspect_server_def){.token = TOKEN}));
    cr_assert_eq(sscanf(quern_inspector_url(scene.inspector), "http://127.0.0.1:%u/", &port), 1);
    cr_assert_eq(pthread_create(&thread, NULL, merge_in_vain, NULL), 0);
    quern__inspect_request *request = wait_for_request();
    pthread_join(thread, NULL);
    cr_assert_str_eq(request->body, merged_body);
    cr_assert_str_eq(request->path, "merge");
    quern__inspect_request_finish(&scene.inspector->exchange, request);
}

/* ----------------------------------------------------------------------------------------- slow clients */

enum { HOUR_MS = 3600000 };

static void open_served(uint32_t count, uint64_t limit_ns)
{
    inspect_scene_open(&scene, count, NULL);
    quern__inspect_exchange *exchange = &scene.inspector->exchange;
    exchange->answer_limit_ns = exchange->read_limit_ns = exchange->write_limit_ns = limit_ns;
    must(quern_inspector_serve(scene.inspector, &(quern_inspect_server_def){.token = TOKEN}));
    cr_assert_eq(sscanf(quern_inspector_url(scene.inspector), "http://127.0.0.1:%u/", &port), 1);
}

/* Opens a WebSocket that wants large messages and reads none of them. */
static int open_silent_watch(void)
{
    char text[512], arguments[4000];
    const int file = inspect_client_watch(port, 2048, text, sizeof text);
    size_t bytes = (size_t)snprintf(arguments, sizeof arguments, "rate=60&parts=systems&entities=");
    cr_assert_not_null(strstr(text, "101 "), "%s", text);
    for (int i = 0; i < 250; i++)
        bytes += (size_t)snprintf(arguments + bytes, sizeof arguments - bytes, "%d:1,", i % 50 + 1);
    inspect_client_send_frame(file, 0x81, arguments, bytes);
    return file;
}

static uint64_t dropped_count(void)
{
    quern__inspect_exchange *exchange = &scene.inspector->exchange;
    pthread_mutex_lock(&exchange->mutex);
    const uint64_t count = exchange->dropped_client_count;
    pthread_mutex_unlock(&exchange->mutex);
    return count;
}

static uint32_t waiting_count(void)
{
    quern__inspect_exchange *exchange = &scene.inspector->exchange;
    pthread_mutex_lock(&exchange->mutex);
    const uint32_t count = exchange->waiting_count;
    pthread_mutex_unlock(&exchange->mutex);
    return count;
}

static int silent;

static void *watch_beside_a_silent_client(void *user_data)
{
    static char text[200000];
    const int file = inspect_client_watch(port, 0, text, sizeof text);
    inspect_client_send_frame(file, 0x81, "rate=60&parts=systems", 21);
    for (int i = 0; i < 100; i++) {
        inspect_client_receive(file, text, sizeof text, "\"systems\"");
        cr_assert_not_null(strstr(text, "\"systems\""));
    }
    close(file);
    return finish();
}

/* The silent client has an hour to read, and the other one gets its messages all the same. */
Test(inspect_server, sends_messages_beside_a_client_that_does_not_read, .timeout = 120)
{
    pthread_t thread;
    open_served(50, HOUR_MS * UINT64_C(1000000));
    silent = open_silent_watch();
    while (scene.inspector->skipped_count < 5) {
        inspect_scene_turn(&scene);
        usleep(500);
    }
    /* Relaxed: the thread is created afterwards. */
    atomic_store_explicit(&is_finished, false, memory_order_relaxed);
    cr_assert_eq(pthread_create(&thread, NULL, watch_beside_a_silent_client, NULL), 0);
    /* Acquire pairs with the release at the end of the client. */
    while (!atomic_load_explicit(&is_finished, memory_order_acquire)) {
        inspect_scene_turn(&scene);
        usleep(500);
    }
    pthread_join(thread, NULL);
    cr_assert_eq(dropped_count(), 0);
    inspect_scene_close(&scene);
    close(silent);
}

Test(inspect_server, drops_a_client_that_does_not_read, .timeout = 120)
{
    open_served(50, 100000000);
    silent = open_silent_watch();
    while (dropped_count() == 0) {
        inspect_scene_turn(&scene);
        usleep(500);
    }
    /* Its channel is free again. */
    char text[512];
    for (int i = 0; i < QUERN_INSPECT_MAX_CLIENTS; i++) {
        inspect_client_watch(port, 0, text, sizeof text);
        cr_assert_not_null(strstr(text, "101 "));
    }
    inspect_scene_close(&scene);
    close(silent);
}

/* Connections in every state, each with an hour left: the inspector ends at once, and they end with it. */
Test(inspect_server, ends_while_clients_do_not_go_on, .timeout = 60)
{
    enum { STUCK = 6 };
    static const char *const requests[STUCK] = {
        "",
        "GET /" TOKEN "/api/wor",
        "POST /" TOKEN
        "/api/merge?entity=/arena HTTP/1.1\r\nHost: localhost:%u\r\nContent-Length: 20\r\n\r\n{",
        "GET /" TOKEN "/api/world HTTP/1.1\r\nHost: localhost:%u\r\n\r\n",
        "GET /" TOKEN "/ HTTP/1.1\r\nHost: localhost:%u\r\n\r\n",
        "GET /nowhere HTTP/1.1\r\n\r\n",
    };
    int files[STUCK];
    char text[512];
    open_served(50, HOUR_MS * UINT64_C(1000000));
    silent = open_silent_watch();
    while (scene.inspector->skipped_count == 0) {
        inspect_scene_turn(&scene);
        usleep(500);
    }
    for (int i = 0; i < STUCK; i++) {
        files[i] = inspect_client_connect(port, 2048);
        snprintf(text, sizeof text, requests[i], port);
        inspect_client_send(files[i], text, strlen(text));
    }
    while (waiting_count() == 0) /* then all connections have been accepted */
        usleep(500);
    quern_inspector_destroy(scene.inspector);
    scene.inspector = NULL;
    for (int i = 0; i < STUCK; i++)
        close(files[i]);
    close(silent);
}

/* A connection without a whole request ends at the limit, and so does one that keeps sending bytes of a head. */
Test(inspect_server, closes_connections_that_send_no_request, .timeout = 120)
{
    char text[512];
    open_served(0, 100000000);
    const int quiet = inspect_client_connect(port, 0), slow = inspect_client_connect(port, 0);
    cr_assert_eq(inspect_client_receive(quiet, text, sizeof text, NULL), 0);
    for (size_t sent = 0; sent < 10000; sent++) {
        char byte;
        inspect_client_send(slow, sent == 0 ? "GET /" : "x", sent == 0 ? 5 : 1);
        if (recv(slow, &byte, 1, MSG_DONTWAIT) == 0 || (errno != EAGAIN && errno != EWOULDBLOCK)) break;
        cr_assert_lt(sent, 9999, "the connection stays open");
        usleep(5000);
    }
    close(quiet);
    close(slow);
}

/* More connections than the server has places, none of which goes on: each request displaces one of them. */
static void *ask_beside_idle_connections(void *user_data)
{
    int files[100];
    for (int i = 0; i < 100; i++) {
        files[i] = inspect_client_connect(port, 0);
        inspect_client_send(files[i], "G", 1);
        if (i % 10 == 0) expect_status("GET", "/" TOKEN "/api/world", "", 200);
    }
    for (int i = 0; i < 100; i++)
        close(files[i]);
    return finish();
}

Test(inspect_server, answers_beside_idle_connections, .timeout = 120)
{
    serve_thread(ask_beside_idle_connections, NULL);
}

static int saved_input; /* standard input, while a connection has its number */

/* In a program that has closed its standard input, a connection may have the number 0. */
static void *ask_without_input(void *user_data)
{
    static char text[70000];
    char request[256];
    const struct sockaddr_in address = {.sin_family = AF_INET,
                                        .sin_port = htons((uint16_t)port),
                                        .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const int file = socket(AF_INET, SOCK_STREAM, 0);
    saved_input = dup(STDIN_FILENO);
    close(STDIN_FILENO);
    cr_assert_eq(connect(file, (const struct sockaddr *)&address, sizeof address), 0);
    while (fcntl(STDIN_FILENO, F_GETFD) < 0) /* until the server has accepted the connection */
        usleep(100);
    usleep(20000); /* the server goes on with the connection before there is a request */
    snprintf(request, sizeof request,
             "GET /" TOKEN "/api/world HTTP/1.1\r\nHost: 127.0.0.1:%u\r\nConnection: close\r\n\r\n", port);
    inspect_client_send(file, request, strlen(request));
    inspect_client_receive(file, text, sizeof text, NULL);
    cr_expect_eq(strncmp(text, "HTTP/1.1 200", 12), 0, "%s", text);
    close(file);
    return finish();
}

Test(inspect_server, answers_on_a_connection_with_the_number_0, .timeout = 60)
{
    serve_thread(ask_without_input, NULL);
    inspect_scene_close(&scene);
    if (saved_input >= 0)
        dup2(saved_input, STDIN_FILENO); /* not before the server has closed the connection */
}

/* Several requests at once on one connection, a body in parts, and a client that has closed its sending side. */
static void *send_oddly(void *user_data)
{
    static char text[20000];
    char requests[1024];
    int file = inspect_client_connect(port, 0);
    const int bytes =
        snprintf(requests, sizeof requests,
                 "GET /" TOKEN "/api/hash HTTP/1.1\r\nHost: localhost:%u\r\n\r\n"
                 "POST /" TOKEN
                 "/api/merge?entity=/arena/gun HTTP/1.1\r\nHost: localhost:%u\r\nContent-Length: 32\r\n"
                 "\r\n{\"components\":{\"Body\":{\"x\":25}}}"
                 "GET /" TOKEN "/api/prefabs HTTP/1.1\r\nHost: localhost:%u\r\n\r\n",
                 port, port, port);
    for (int i = 0; i < bytes; i += 97) {
        inspect_client_send(file, requests + i, (size_t)(bytes - i < 97 ? bytes - i : 97));
        usleep(1000);
    }
    shutdown(file, SHUT_WR);
    inspect_client_receive(file, text, sizeof text, NULL);
    const char *first = strstr(text, "\"hash\""), *second = strstr(text, "\"done\""),
               *third = strstr(text, "\"prefabs\"");
    cr_assert(first != NULL && second > first && third > second, "%s", text);
    close(file);
    file = inspect_client_connect(port, 0);
    snprintf(requests, sizeof requests,
             "POST /" TOKEN
             "/api/merge?entity=/arena/gun HTTP/1.1\r\nHost: localhost:%u\r\nContent-Length: 32\r\n"
             "Expect: 100-continue\r\n\r\n",
             port);
    inspect_client_send(file, requests, strlen(requests));
    inspect_client_receive(file, text, sizeof text, "\r\n\r\n");
    cr_assert_str_eq(text, "HTTP/1.1 100 Continue\r\n\r\n");
    close(file);
    return finish();
}

Test(inspect_server, answers_requests_one_after_the_other, .timeout = 120)
{
    serve_thread(send_oddly, NULL);
}

/* A ping is answered with its content, and so is the closing of a WebSocket: its place is free. */
static void *ping(void *user_data)
{
    char text[512];
    for (int i = 0; i < 20; i++) {
        const int file = inspect_client_watch(port, 0, text, sizeof text);
        cr_assert_not_null(strstr(text, "101 "), "round %d: %s", i, text);
        inspect_client_send_frame(file, 0x81, "rate=1", 6);
        inspect_client_send_frame(file, 0x89, "are you there?", 14);
        inspect_client_receive(file, text, sizeof text,
                               "\x8a\x0e"
                               "are you there?");
        cr_assert_not_null(strstr(text, "are you there?"));
        inspect_client_send_frame(file, 0x88, "\x03\xe8", 2);
        while (recv(file, text, sizeof text, 0) > 0)
            ;
        close(file);
    }
    return finish();
}

Test(inspect_server, answers_pings_and_closes, .timeout = 120)
{
    serve_thread(ping, NULL);
}

/* A request that nothing has begun when the server gives up on it is never answered: a change that the client believes
 * to have failed does not happen. */
Test(inspect_server, withdraws_a_request_that_it_gives_up)
{
    pthread_t thread;
    open_served(0, 200000000);
    cr_assert_eq(pthread_create(&thread, NULL, merge_in_vain, NULL), 0);
    pthread_join(thread, NULL);
    cr_assert_null(quern__inspect_request_take(&scene.inspector->exchange));
    /* Relaxed: the mutex in quern__inspect_request_take orders it. */
    cr_assert_eq(atomic_load_explicit(&scene.inspector->exchange.attention, memory_order_relaxed), 0u);
}

/* A client that sends more than its request gets the answer all the same: the server reads the rest. */
static void *send_too_much(void *user_data)
{
    static char rest[200000];
    char text[1024];
    memset(rest, 'x', sizeof rest);
    for (int i = 0; i < 20; i++) {
        const int file = inspect_client_connect(port, 0);
        snprintf(text, sizeof text, "GET /nowhere HTTP/1.1\r\nHost: localhost:%u\r\n\r\n", port);
        inspect_client_send(file, text, strlen(text));
        inspect_client_send(file, rest, sizeof rest);
        inspect_client_receive(file, text, sizeof text, NULL);
        cr_assert_eq(strncmp(text, "HTTP/1.1 404", 12), 0, "round %d: '%s'", i, text);
        close(file);
    }
    return finish();
}

Test(inspect_server, answers_a_client_that_sends_too_much, .timeout = 120)
{
    serve_thread(send_too_much, NULL);
}

/* A port that another server has. */
Test(inspect_server, refuses_a_port_in_use)
{
    inspect_scene_open(&scene, 0, NULL);
    must(quern_inspector_serve(scene.inspector, NULL));
    cr_assert_eq(sscanf(quern_inspector_url(scene.inspector), "http://127.0.0.1:%u/", &port), 1);
    quern_inspector *other;
    must(quern_inspector_create(&(quern_inspector_def){.world = scene.world}, &other));
    must_refuse(UNAVAILABLE, NULL,
                quern_inspector_serve(other, &(quern_inspect_server_def){.port = (uint16_t)port}));
    cr_assert_null(quern_inspector_url(other));
    must(quern_inspector_serve(other, NULL)); /* nothing of the failed call remains */
    quern_inspector_destroy(other);
}

Test(inspect_server, refuses_wrong_definitions)
{
    inspect_scene_open(&scene, 0, NULL);
    must_refuse(NULL_ARGUMENT, NULL, quern_inspector_serve(NULL, NULL));
    must_refuse(INVALID_ARGUMENT, NULL,
                quern_inspector_serve(scene.inspector, &(quern_inspect_server_def){.token = "short"}));
    assert_refused(
        NULL, QUERN_ERROR_INVALID_ARGUMENT,
        quern_inspector_serve(scene.inspector, &(quern_inspect_server_def){.token = "0123456789/abcdefg"}));
    cr_assert_null(quern_inspector_url(scene.inspector));
    must(quern_inspector_serve(scene.inspector, NULL));
    cr_assert_eq(strlen(strrchr(quern_inspector_url(scene.inspector), ':') + 1), strlen("12345/") + 33);
}
