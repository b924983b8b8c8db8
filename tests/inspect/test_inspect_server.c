/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Test labels: threaded */
#include "inspect/inspect_internal.h"
#include "tests/inspect/inspect_scene.h"
#include "tests/support/failing_allocator.h"
#include "tests/support/setup.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

/* The server: requests from other threads while frames run, WebSockets, and hostile requests. The main thread runs
 * frames until the client thread has finished. */

#define TOKEN "0123456789abcdefTOKEN"

static inspect_scene scene;
static unsigned port;
static atomic_bool is_finished;

static int connect_socket(void)
{
    const struct sockaddr_in address = {.sin_family = AF_INET,
                                        .sin_port = htons((uint16_t)port),
                                        .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const struct timeval limit = {.tv_sec = 20};
    const int file = socket(AF_INET, SOCK_STREAM, 0);
    setsockopt(file, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    cr_assert_eq(connect(file, (const struct sockaddr *)&address, sizeof address), 0);
    return file;
}

static void send_all(int file, const char *text, size_t bytes)
{
    while (bytes > 0) {
        const ssize_t sent = send(file, text, bytes, MSG_NOSIGNAL);
        if (sent <= 0) return; /* the server has closed the connection */
        text += sent;
        bytes -= (size_t)sent;
    }
}

/* Reads until the connection ends, or `end` was read. Returns the number of bytes. */
static size_t receive(int file, char *text, size_t room, const char *end)
{
    size_t count = 0;
    while (count + 1 < room) {
        const ssize_t got = recv(file, text + count, room - 1 - count, 0);
        if (got <= 0) break;
        count += (size_t)got;
        text[count] = '\0';
        if (end != NULL && strstr(text, end) != NULL) break;
    }
    text[count] = '\0';
    return count;
}

/* Sends a request on a connection of its own and returns the status, 0 if the server closed without an answer. */
static unsigned status_of(const char *head, const char *body)
{
    char text[8192];
    unsigned status = 0;
    const int file = connect_socket();
    send_all(file, head, strlen(head));
    if (body != NULL) send_all(file, body, strlen(body));
    receive(file, text, sizeof text, "}");
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
    inspect_scene_close(&scene);
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
    cr_assert_eq(status_of(head, chunk), 413);
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
        files[i] = connect_socket();
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
    inspect_scene_close(&scene);
}

/* ----------------------------------------------------------------------------------------- WebSockets */

static int shake_hands(char *text, size_t room, const char *path, const char *headers)
{
    char head[512];
    const int file = connect_socket();
    snprintf(head, sizeof head,
             "GET %s HTTP/1.1\r\nHost: 127.0.0.1:%u\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
             "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n%s\r\n",
             path, port, headers);
    send_all(file, head, strlen(head));
    receive(file, text, room, "\r\n\r\n");
    return file;
}

static int open_watch(char *text, size_t room)
{
    return shake_hands(text, room, "/" TOKEN "/watch", "");
}

/* A frame of text below 126 bytes with a mask of zero. */
static void send_frame(int file, unsigned char first, const char *text)
{
    const size_t bytes = strlen(text);
    char frame[160] = {(char)first, (char)(0x80 | bytes)};
    for (size_t i = 0; i < bytes; i++)
        frame[6 + i] = text[i];
    send_all(file, frame, bytes + 6);
}

static void *watch(void *user_data)
{
    static char text[200000];
    int others[8];
    const int file = open_watch(text, sizeof text);
    cr_assert_not_null(strstr(text, "101 "));
    static const char *const wrong[][2] = {{"/0123456789abcdefTOKEM/watch", ""},
                                           {"/watch", ""},
                                           {"/" TOKEN "/api/world", ""},
                                           {"/" TOKEN "/watch", "Origin: http://evil.example\r\n"}};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        char answer[512];
        close(shake_hands(answer, sizeof answer, wrong[i][0], wrong[i][1]));
        cr_assert_null(strstr(answer, "101 "), "%s %s", wrong[i][0], wrong[i][1]);
    }
    send_frame(file, 0x81, "rate=60&parts=events,systems&entities=0:1,1:1");
    for (int i = 0; i < 20; i++)
        receive(file, text, sizeof text, "\"samples\"");
    receive(file, text, sizeof text, "\"systems\"");
    cr_assert_not_null(strstr(text, "\"systems\""));
    int refused = 0;
    for (int i = 0; i < 8; i++) {
        others[i] = open_watch(text, sizeof text);
        refused += strstr(text, "101 ") == NULL;
    }
    cr_assert(refused >
              0); /* some hand-shakes at the same time succeed, but only four clients get messages */
    send_frame(others[0], 0x01, "half a message");
    send_frame(others[1], 0x82, "bytes");
    send_all(others[2], "\x81\xff\x7f\xff\xff\xff\xff\xff\xff\xff",
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
    inspect_scene_close(&scene);
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
    const int file = open_watch(text, sizeof text);
    send_frame(file, 0x81, "rate=60&parts=systems,events&entities=0:1,1:1");
    for (int round = 0; round < 10; round++) {
        for (int i = 0; i < 20; i++)
            expect_status("GET", "/" TOKEN "/api/entities?query=Body&limit=50&values=1", "", 200);
        cr_assert_eq(ask("POST", "/" TOKEN "/api/name?entity=/arena&name=arena", "Content-Length: 0\r\n"),
                     200);
        receive(file, text, sizeof text, "\"samples\"");
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

/* Returns the next answer that waits. */
static quern__inspect_answer *wait_for_request(void)
{
    quern__inspect_answer *answer;
    while ((answer = quern__inspect_take(scene.inspector)) == NULL)
        usleep(500);
    return answer;
}

static void complete(quern__inspect_answer *answer)
{
    quern__inspect_answer_begin(answer);
    while (!answer->is_done)
        quern__inspect_answer_step(answer);
}

/* What a thread of the server does with a request. */
static void *ask_for_difference(void *user_data)
{
    quern__inspect_answer *answer = quern__inspect_answer_create(scene.inspector);
    quern__inspect_answer_open(answer, "GET", "delta", "from=1&to=3&limit=10");
    cr_assert(quern__inspect_ask(scene.inspector, answer, 20000));
    cr_assert_eq(answer->status, 200);
    cr_assert_null(answer->delta, "only the thread of the world may destroy it");
    quern__inspect_answer_destroy(answer);
    return NULL;
}

Test(inspect_server, gives_back_answers_without_a_delta)
{
    pthread_t thread;
    inspect_scene_open(&scene, 5, NULL);
    for (int i = 0; i < 5; i++)
        inspect_scene_turn(&scene);
    cr_assert_eq(pthread_create(&thread, NULL, ask_for_difference, NULL), 0);
    quern__inspect_answer *answer = wait_for_request();
    complete(answer);
    cr_assert_not_null(answer->delta);
    quern__inspect_give_back(scene.inspector, answer);
    pthread_join(thread, NULL);
    inspect_scene_close(&scene);
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
    inspect_scene_close(&scene);
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

/* The server gives up on the request: the end of the connection shows that its thread has returned. */
static void *merge_in_vain(void *user_data)
{
    static const char body[] = "{\"components\": {\"Body\": {\"x\": 25}}}";
    char text[1024];
    const int file = connect_socket();
    snprintf(text, sizeof text,
             "POST /" TOKEN "/api/merge?entity=/arena/gun HTTP/1.1\r\nHost: 127.0.0.1:%u\r\n"
             "Connection: close\r\nContent-Length: %zu\r\n\r\n%s",
             port, strlen(body), body);
    send_all(file, text, strlen(text));
    receive(file, text, sizeof text, NULL);
    close(file);
    cr_assert_eq(strncmp(text, "HTTP/1.1 503", 12), 0, "%s", text);
    return NULL;
}

Test(inspect_server, keeps_the_body_of_a_request_that_it_gives_up)
{
    pthread_t thread;
    const quern_allocator allocator = {.allocate = allocate, .release = release_overwritten};
    inspect_scene_open(&scene, 0, &allocator);
    scene.inspector->answer_limit_ms = 200;
    must(quern_inspector_serve(scene.inspector, &(quern_inspect_server_def){.token = TOKEN}));
    cr_assert_eq(sscanf(quern_inspector_url(scene.inspector), "http://127.0.0.1:%u/", &port), 1);
    cr_assert_eq(pthread_create(&thread, NULL, merge_in_vain, NULL), 0);
    quern__inspect_answer *answer = wait_for_request();
    pthread_join(thread, NULL);
    complete(answer);
    cr_assert_eq(answer->status, 200, "%.*s", (int)answer->text.bytes.size_bytes,
                 (const char *)answer->text.bytes.bytes);
    quern__inspect_give_back(scene.inspector, answer);
    cr_assert_eq(((Body *)quern_entity_get(scene.world, scene.child, scene.body))->x, 25);
    inspect_scene_close(&scene);
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
    inspect_scene_close(&scene);
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
    inspect_scene_close(&scene);
}
