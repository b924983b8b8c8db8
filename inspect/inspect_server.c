/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* The server: threads of civetweb that check requests and hand them to the main thread, and a thread that sends the
 * messages of WebSockets. None of them touches the world.
 *
 * A request that lacks the token learns nothing but the status 404. With the token, Host and Origin are checked, so
 * that a page of another site cannot reach the server under a name that it controls. Sizes and counts are bounded
 * before anything is handed on: the line and headers of a request by civetweb (16 KiB), its body and the number of
 * waiting requests by the limits in inspect.h, connections by the number of threads. */
#include "inspect/inspect_internal.h"

#include <civetweb.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
    TOKEN_BYTES_MIN = 16,
    TOKEN_BYTES_MAX = 64,
    RANDOM_BYTES = 16,
    ADDRESS_BYTES = 64,
    WAKE_NS = 2000000
};

struct quern__inspect_server {
    quern_inspector *inspector;
    struct mg_context *context;
    pthread_t sender;
    /* Guarded by the mutex of the queue. */
    struct mg_connection *connections[QUERN_INSPECT_MAX_CLIENTS];
    struct mg_connection *sending; /* connection that the sender is writing to */
    atomic_bool has_stopped;       /* for wake_listener */
    uint16_t port;
    char token[TOKEN_BYTES_MAX + 1];
    char url[128];
};

/* ------------------------------------------------------------------------------------------- requests */

/* Takes the same time for every wrong token of a length. */
static bool is_token(const quern__inspect_server *server, const char *text, size_t bytes)
{
    unsigned difference = 0;
    if (bytes != strlen(server->token)) return false;
    for (size_t i = 0; i < bytes; i++)
        difference |= (unsigned)(text[i] ^ server->token[i]);
    return difference == 0;
}

/* Returns the part of the address after "/TOKEN/", or NULL. */
static const char *path_of(const quern__inspect_server *server, const struct mg_request_info *info)
{
    const char *uri = info->local_uri;
    if (uri == NULL || uri[0] != '/') return NULL;
    const char *end = strchr(uri + 1, '/');
    if (end == NULL || !is_token(server, uri + 1, (size_t)(end - uri - 1))) return NULL;
    return end + 1;
}

/* Whether the text is one of the server's addresses. */
static bool is_own(const quern__inspect_server *server, const char *prefix, const char *text)
{
    static const char *const hosts[] = {"127.0.0.1", "localhost"};
    char own[64];
    for (size_t i = 0; i < sizeof hosts / sizeof hosts[0]; i++) {
        snprintf(own, sizeof own, "%s%s:%u", prefix, hosts[i], server->port);
        if (strcmp(own, text) == 0) return true;
    }
    return false;
}

static bool is_from_here(const quern__inspect_server *server, const struct mg_connection *connection)
{
    const char *host = mg_get_header(connection, "Host"), *origin = mg_get_header(connection, "Origin");
    return host != NULL && is_own(server, "", host) &&
           (origin == NULL || is_own(server, "http://", origin));
}

static void send_head(struct mg_connection *connection, uint32_t status, const char *type, size_t bytes)
{
    mg_printf(connection,
              "HTTP/1.1 %u %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\nCache-Control: no-store\r\n"
              "X-Content-Type-Options: nosniff\r\nX-Frame-Options: DENY\r\nReferrer-Policy: no-referrer\r\n"
              "Cross-Origin-Resource-Policy: same-origin\r\nConnection: %s\r\n\r\n",
              status, mg_get_response_code_text(connection, (int)status), type, bytes,
              status == 200 ? "keep-alive" : "close");
}

static int refuse(struct mg_connection *connection, uint32_t status, const char *reason)
{
    char text[256];
    const int bytes = snprintf(text, sizeof text, "{\"error\":\"%s\"}", reason);
    send_head(connection, status, "application/json", (size_t)bytes);
    mg_write(connection, text, (size_t)bytes);
    return (int)status;
}

/* Reads the body. Returns its size, or -1 if it is longer than the limit or incomplete. */
static int read_body(struct mg_connection *connection, char *body)
{
    const long long announced = mg_get_request_info(connection)->content_length;
    int count = 0;
    if (announced > QUERN_INSPECT_MAX_BODY_BYTES) return -1;
    while (count <= QUERN_INSPECT_MAX_BODY_BYTES) {
        const int got =
            mg_read(connection, body + count, (size_t)(QUERN_INSPECT_MAX_BODY_BYTES + 1 - count));
        if (got <= 0) break;
        count += got;
    }
    if (count > QUERN_INSPECT_MAX_BODY_BYTES || (announced >= 0 && count != announced)) return -1;
    return count;
}

static int send_answer(struct mg_connection *connection, const quern__inspect_answer *answer)
{
    const size_t bytes = answer->text.bytes.size_bytes;
    if (bytes == 0) return refuse(connection, 503, "no memory for the answer");
    send_head(connection, answer->status, "application/json", bytes);
    mg_write(connection, answer->text.bytes.bytes, bytes);
    return (int)answer->status;
}

/* Reads the body into memory of the answer: the main thread may still parse it when the server has given up. */
static int answer_call(quern__inspect_server *server, struct mg_connection *connection, const char *path)
{
    const struct mg_request_info *info = mg_get_request_info(connection);
    quern__inspect_answer *answer = quern__inspect_answer_create(server->inspector);
    const bool has_memory = answer != NULL && quern__inspect_answer_reserve_body(answer);
    const int body_bytes = has_memory ? read_body(connection, answer->own_body) : 0;
    if (!has_memory || body_bytes < 0) {
        quern__inspect_answer_destroy(answer);
        return has_memory ? refuse(connection, 413, "the body is incomplete or exceeds 65536 bytes")
                          : refuse(connection, 503, "no memory for the answer");
    }
    answer->own_body[body_bytes] = '\0';
    answer->body_bytes = (size_t)body_bytes;
    quern__inspect_answer_open(answer, info->request_method, path, info->query_string);
    if (!answer->is_done && answer->route->is_for_any_thread)
        quern__inspect_answer_begin(answer);
    else if (!answer->is_done &&
             !quern__inspect_ask(server->inspector, answer, server->inspector->answer_limit_ms))
        return refuse(connection, 503,
                      "the program does not answer: it is busy, or too many requests wait");
    const int status = send_answer(connection, answer);
    quern__inspect_answer_destroy(answer);
    return status;
}

static int serve(struct mg_connection *connection, void *user_data)
{
    quern__inspect_server *server = user_data;
    const struct mg_request_info *info = mg_get_request_info(connection);
    const char *path = path_of(server, info);
    if (path == NULL) return refuse(connection, 404, "there is nothing at this address");
    if (!is_from_here(server, connection)) return refuse(connection, 403, "foreign Host or Origin");
    if (strncmp(path, "api/", 4) == 0 && strlen(path) < ADDRESS_BYTES)
        return answer_call(server, connection, path + 4);
    if (path[0] != '\0' || strcmp(info->request_method, "GET") != 0)
        return refuse(connection, 404, "there is nothing at this address");
    send_head(connection, 200, "text/html; charset=utf-8", quern__inspect_page_bytes);
    mg_write(connection, quern__inspect_page, quern__inspect_page_bytes);
    return 200;
}

/* ----------------------------------------------------------------------------------------- WebSockets */

static quern__inspect_queue *queue_of(quern__inspect_server *server)
{
    return &server->inspector->queue;
}

/* Whether there is room is checked again when the connection is ready. */
static int ask_socket(const struct mg_connection *connection, void *user_data)
{
    quern__inspect_server *server = user_data;
    const char *path = path_of(server, mg_get_request_info(connection));
    uint32_t open_count = 0;
    if (path == NULL || strcmp(path, "watch") != 0 || !is_from_here(server, connection)) return 1;
    pthread_mutex_lock(&queue_of(server)->mutex);
    for (uint32_t i = 0; i < QUERN_INSPECT_MAX_CLIENTS; i++)
        open_count += server->connections[i] != NULL;
    pthread_mutex_unlock(&queue_of(server)->mutex);
    return open_count == QUERN_INSPECT_MAX_CLIENTS;
}

static void open_socket(struct mg_connection *connection, void *user_data)
{
    quern__inspect_server *server = user_data;
    quern__inspect_queue *queue = queue_of(server);
    pthread_mutex_lock(&queue->mutex);
    for (uint32_t i = 0; i < QUERN_INSPECT_MAX_CLIENTS; i++) {
        if (server->connections[i] != NULL) continue;
        server->connections[i] = connection;
        queue->clients[i].is_open = queue->clients[i].is_new = true;
        queue->clients[i].has_arguments = true;
        queue->clients[i].is_ready = false;
        queue->clients[i].arguments.count = 0;
        quern__inspect_count_reason(server->inspector, true);
        break;
    }
    pthread_mutex_unlock(&queue->mutex);
}

/* A message is the text of arguments, complete in one frame. Anything else closes the connection. */
static int read_socket(struct mg_connection *connection, int bits, char *data, size_t bytes,
                       void *user_data)
{
    quern__inspect_server *server = user_data;
    quern__inspect_queue *queue = queue_of(server);
    quern__inspect_arguments arguments;
    char text[QUERN__INSPECT_ARGUMENT_BYTES];
    const int opcode = bits & 0xf;
    bool is_known = false;
    if (opcode == MG_WEBSOCKET_OPCODE_PING || opcode == MG_WEBSOCKET_OPCODE_PONG) return 1;
    if (opcode != MG_WEBSOCKET_OPCODE_TEXT || (bits & 0x80) == 0 || bytes >= sizeof text) return 0;
    if (memchr(data, '\0', bytes) != NULL) return 0;
    memcpy(text, data, bytes);
    text[bytes] = '\0';
    if (!quern__inspect_arguments_read(&arguments, text)) return 0;
    pthread_mutex_lock(&queue->mutex);
    for (uint32_t i = 0; i < QUERN_INSPECT_MAX_CLIENTS; i++) {
        if (server->connections[i] != connection) continue;
        quern__inspect_arguments_read(&queue->clients[i].arguments, text);
        queue->clients[i].has_arguments = is_known = true;
    }
    pthread_mutex_unlock(&queue->mutex);
    return is_known;
}

/* The sender signals `ready` when it has finished with a connection, so this wait ends. */
static void close_socket(const struct mg_connection *connection, void *user_data)
{
    quern__inspect_server *server = user_data;
    quern__inspect_queue *queue = queue_of(server);
    pthread_mutex_lock(&queue->mutex);
    for (uint32_t i = 0; i < QUERN_INSPECT_MAX_CLIENTS; i++) {
        if (server->connections[i] != connection) continue;
        while (server->sending == connection)
            pthread_cond_wait(&queue->ready, &queue->mutex);
        server->connections[i] = NULL;
        queue->clients[i].is_open = false;
        queue->clients[i].is_ready = false;
        quern__inspect_count_reason(server->inspector, false);
    }
    pthread_mutex_unlock(&queue->mutex);
}

/* Sends the message of one client. Called with the mutex, which is released while sending; the text belongs to this
 * thread as long as is_ready is set, and close_socket waits while `sending` is set. */
static void send_message(quern__inspect_server *server, uint32_t i)
{
    quern__inspect_queue *queue = queue_of(server);
    quern__inspect_client *client = &queue->clients[i];
    server->sending = server->connections[i];
    pthread_mutex_unlock(&queue->mutex);
    mg_websocket_write(server->sending, MG_WEBSOCKET_OPCODE_TEXT, client->ready.bytes.bytes,
                       client->ready.bytes.size_bytes);
    pthread_mutex_lock(&queue->mutex);
    server->sending = NULL;
    client->is_ready = false;
    pthread_cond_broadcast(&queue->ready);
}

/* `ready` is signalled under the mutex for each message and when the queue closes, so no wake is lost. */
static void *send_messages(void *user_data)
{
    quern__inspect_server *server = user_data;
    quern__inspect_queue *queue = queue_of(server);
    pthread_mutex_lock(&queue->mutex);
    while (!queue->is_closing) {
        bool has_sent = false;
        for (uint32_t i = 0; i < QUERN_INSPECT_MAX_CLIENTS && !queue->is_closing; i++) {
            if (!queue->clients[i].is_ready || server->connections[i] == NULL) continue;
            send_message(server, i);
            has_sent = true;
        }
        if (!has_sent && !queue->is_closing) pthread_cond_wait(&queue->ready, &queue->mutex);
    }
    pthread_mutex_unlock(&queue->mutex);
    return NULL;
}

/* --------------------------------------------------------------------------------------------- server */

static bool is_valid_token(const char *token)
{
    const size_t bytes = strlen(token);
    return bytes >= TOKEN_BYTES_MIN && bytes <= TOKEN_BYTES_MAX &&
           strspn(token, "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") == bytes;
}

static bool make_token(char *token)
{
    unsigned char bytes[RANDOM_BYTES];
    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes) return false;
    for (size_t i = 0; i < sizeof bytes; i++)
        snprintf(token + 2 * i, 3, "%02x", bytes[i]);
    return true;
}

static int be_silent(const struct mg_connection *connection, const char *message)
{
    (void)connection;
    (void)message;
    return 1;
}

static bool start(quern__inspect_server *server, uint16_t port)
{
    char address[32];
    snprintf(address, sizeof address, "127.0.0.1:%u", port);
    const char *options[] = {"listening_ports",
                             address,
                             "num_threads",
                             "12",
                             "enable_keep_alive",
                             "yes",
                             "keep_alive_timeout_ms",
                             "2000",
                             "request_timeout_ms",
                             "5000",
                             "websocket_timeout_ms",
                             "3600000",
                             NULL};
    /* Without a callback for accesses and without a file, civetweb does not log them. With one, all its threads would
     * share the buffer of localtime. */
    const struct mg_callbacks callbacks = {.log_message = be_silent};
    struct mg_server_port ports[1];
    mg_init_library(MG_FEATURES_DEFAULT);
    server->context = mg_start(&callbacks, server, options);
    if (server->context == NULL) return false;
    if (mg_get_server_ports(server->context, 1, ports) != 1) return false;
    server->port = (uint16_t)ports[0].port;
    snprintf(server->url, sizeof server->url, "http://127.0.0.1:%u/%s/", server->port, server->token);
    mg_set_request_handler(server->context, "/", serve, server);
    mg_set_websocket_handler(server->context, "/", ask_socket, open_socket, read_socket, close_socket,
                             server);
    return pthread_create(&server->sender, NULL, send_messages, server) == 0;
}

/* Opens connections until the server has stopped. */
static void *wake_listener(void *user_data)
{
    quern__inspect_server *server = user_data;
    const struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(server->port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    /* Relaxed: the flag orders nothing. */
    while (!atomic_load_explicit(&server->has_stopped, memory_order_relaxed)) {
        const int file = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (file >= 0) {
            (void)connect(file, (const struct sockaddr *)&address, sizeof address);
            close(file);
        }
        nanosleep(&(struct timespec){.tv_nsec = WAKE_NS}, NULL);
    }
    return NULL;
}

/* The thread of civetweb that accepts connections looks every two seconds whether it should end, and whenever a
 * connection arrives. Without memory for a thread, stopping takes these two seconds. */
static void stop(quern__inspect_server *server)
{
    pthread_t waker;
    const bool is_waking = pthread_create(&waker, NULL, wake_listener, server) == 0;
    mg_stop(server->context);
    atomic_store_explicit(&server->has_stopped, true, memory_order_relaxed); /* relaxed: as above */
    if (is_waking) pthread_join(waker, NULL);
}

static void release(quern__inspect_server *server)
{
    const quern_allocator *allocator = &server->inspector->def.allocator;
    if (server->context != NULL) stop(server);
    mg_exit_library();
    allocator->release(allocator->user_data, server, sizeof *server, _Alignof(quern__inspect_server));
}

quern_result quern_inspector_serve(quern_inspector *inspector, const quern_inspect_server_def *def)
{
    const quern_inspect_server_def defaults = {0};
    if (def == NULL) def = &defaults;
    if (inspector == NULL)
        return quern_error_set(QUERN_ERROR_NULL_ARGUMENT,
                               "quern_inspector_serve: 'inspector' is NULL: create one first");
    if (inspector->server != NULL)
        return quern_error_set(
            QUERN_ERROR_INVALID_ARGUMENT,
            "quern_inspector_serve: the inspector is served already, at %s; create another one",
            inspector->server->url);
    if (def->token != NULL && !is_valid_token(def->token))
        return quern_error_set(
            QUERN_ERROR_INVALID_ARGUMENT,
            "quern_inspector_serve: 'token' is not valid: use %d to %d letters and digits", TOKEN_BYTES_MIN,
            TOKEN_BYTES_MAX);
    const quern_allocator *allocator = &inspector->def.allocator;
    quern__inspect_server *server =
        allocator->allocate(allocator->user_data, sizeof *server, _Alignof(quern__inspect_server));
    if (server == NULL)
        return quern_error_set(
            QUERN_ERROR_OUT_OF_MEMORY,
            "quern_inspector_serve: out of memory: %zu bytes for the server; nothing was started",
            sizeof *server);
    memset(server, 0, sizeof *server);
    server->inspector = inspector;
    bool is_ready = true;
    if (def->token != NULL)
        snprintf(server->token, sizeof server->token, "%s", def->token);
    else
        is_ready = make_token(server->token);
    if (!is_ready || !start(server, def->port)) {
        release(server);
        return quern_error_set(
            QUERN_ERROR_UNAVAILABLE,
            "quern_inspector_serve: port %u of 127.0.0.1 cannot be served: it may be in use; choose "
            "another one, or 0 for a free one",
            def->port);
    }
    inspector->server = server;
    return QUERN_OK;
}

void quern__inspect_server_stop(quern__inspect_server *server)
{
    if (server == NULL) return;
    pthread_join(server->sender, NULL); /* the queue is closed */
    release(server);
}

const char *quern__inspect_server_url(const quern__inspect_server *server)
{
    return server != NULL ? server->url : NULL;
}
