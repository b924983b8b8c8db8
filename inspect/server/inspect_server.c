/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* The server: one thread that waits for all connections at once, and never for one of them. It hands requests to the
 * main thread through the exchange, which wakes it by a pipe when there is an answer or a message.
 *
 * A request that lacks the token learns nothing but the status 404. With the token, Host and Origin are checked, so
 * that a page of another site cannot reach the server under a name that it controls.
 *
 * What strangers can make the server hold is bounded: connections, and for each the bytes of its request and one
 * answer or message. Each state of a connection has an end: reading a request and waiting for the program after a
 * time, writing when the client has read nothing for a time. If all places are taken, a new connection displaces the
 * one that has been reading or writing for longest. */
#include "inspect/server/inspect_exchange.h"
#include "inspect/server/inspect_http.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#ifndef MSG_NOSIGNAL
#define MSG_NOSIGNAL 0 /* such systems have SO_NOSIGPIPE */
#endif

enum {
    RANDOM_BYTES = 16,
    CONNECTIONS = 64,
    END_POINT_BYTES = 64, /* longest name of an end point */
    INPUT_BYTES = QUERN__HTTP_HEAD_BYTES + QUERN__INSPECT_REQUEST_BYTES_MAX,
    INPUT_ALIGNMENT = 8, /* least that allocators are asked for */
    ANSWER_HEAD_BYTES = 512,
    SEND_BYTES = 1 << 18 /* that the system keeps of what a client has not read yet */
};

#define SECOND_NS 1000000000ull
#define LINGER_NS SECOND_NS        /* for bytes that arrive after the last answer */
#define PAUSE_NS  (SECOND_NS / 10) /* until the next connection, if the system refuses one */

typedef enum connection_state {
    READS_HEAD,
    READS_BODY,
    WAITS,   /* for the main thread */
    WRITES,  /* an answer */
    LINGERS, /* reads and forgets, as closing with unread input would take the answer back */
    WATCHES  /* a WebSocket */
} connection_state;

typedef struct client {
    int file; /* -1: no connection */
    connection_state state;
    uint64_t began_ns;    /* when the state began, or a keep-alive connection its next request */
    uint64_t deadline_ns; /* UINT64_MAX: none */
    bool is_last;         /* the connection ends after this answer */
    bool has_ended;       /* the client sends nothing more */

    char *input;
    size_t input_bytes, head_bytes; /* head_bytes: searched for its end, or its size */
    quern__http_head head;

    quern__inspect_request *request; /* that is being answered, or NULL */
    uint32_t channel;                /* of a WebSocket */
    quern_byte_buffer message;       /* the same */

    char output_head[ANSWER_HEAD_BYTES];
    size_t output_head_bytes;
    const char *output; /* after the head: of the request, the message or the page */
    size_t output_bytes;
    size_t sent_bytes;
    char pong[QUERN__HTTP_CONTROL_BYTES]; /* content of the answer to the last ping */
    size_t pong_bytes;
    bool has_pong;
} client;

struct quern__inspect_server {
    quern__inspect_exchange *exchange;
    pthread_t thread;
    const char *page;
    size_t page_bytes;
    int listener, wake_files[2];
    uint64_t accept_ns; /* not before */
    uint16_t port;
    char token[QUERN__INSPECT_TOKEN_BYTES_MAX + 1];
    char url[128];
    client connections[CONNECTIONS];
};

static uint64_t clock_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * SECOND_NS + (uint64_t)time.tv_nsec;
}

/* ---------------------------------------------------------------------------------------- connections */

static void enter(client *connection, connection_state state, uint64_t limit_ns)
{
    connection->state = state;
    connection->began_ns = clock_ns();
    connection->deadline_ns = limit_ns == UINT64_MAX ? UINT64_MAX : connection->began_ns + limit_ns;
}

static void leave_request(quern__inspect_server *server, client *connection)
{
    if (connection->request != NULL) quern__inspect_request_leave(server->exchange, connection->request);
    connection->request = NULL;
}

static void end_connection(quern__inspect_server *server, client *connection, bool is_too_slow)
{
    const quern_allocator *allocator = &server->exchange->allocator;
    if (connection->file < 0) return;
    close(connection->file);
    leave_request(server, connection);
    if (connection->state == WATCHES)
        quern__inspect_channel_close(server->exchange, connection->channel, is_too_slow);
    quern_byte_buffer_release(&connection->message);
    allocator->release(allocator->user_data, connection->input, INPUT_BYTES, INPUT_ALIGNMENT);
    connection->file = -1;
}

static void set_output(client *connection, size_t head_bytes, const void *bytes, size_t size)
{
    connection->output_head_bytes = head_bytes;
    connection->output = bytes;
    connection->output_bytes = size;
    connection->sent_bytes = 0;
}

static bool has_output(const client *connection)
{
    return connection->sent_bytes < connection->output_head_bytes + connection->output_bytes;
}

/* Sends what the client takes now. Returns false if the connection has failed. */
static bool send_output(const quern__inspect_server *server, client *connection)
{
    while (has_output(connection)) {
        const size_t head_bytes = connection->output_head_bytes, sent_bytes = connection->sent_bytes;
        const size_t body_sent = sent_bytes > head_bytes ? sent_bytes - head_bytes : 0;
        struct iovec parts[2] = {
            {.iov_base = connection->output_head + (sent_bytes < head_bytes ? sent_bytes : head_bytes),
             .iov_len = sent_bytes < head_bytes ? head_bytes - sent_bytes : 0},
            {.iov_base = (char *)(uintptr_t)connection->output + body_sent,
             .iov_len = connection->output_bytes - body_sent}};
        const struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
        const ssize_t sent = sendmsg(connection->file, &message, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR) continue;
        if (sent < 0) return errno == EAGAIN || errno == EWOULDBLOCK;
        connection->sent_bytes += (size_t)sent;
        connection->deadline_ns = clock_ns() + server->exchange->write_limit_ns;
    }
    return true;
}

/* Room for input. Frames are taken out one by one, so that of a WebSocket is not larger than the longest one. */
static size_t room_of(const client *connection)
{
    return connection->state == WATCHES ? QUERN__INSPECT_ARGUMENT_BYTES + 8 : INPUT_BYTES;
}

/* Reads what has arrived, as far as there is room. Returns false if the connection has failed. */
static bool receive(client *connection)
{
    while (connection->input_bytes < room_of(connection)) {
        const ssize_t got = recv(connection->file, connection->input + connection->input_bytes,
                                 room_of(connection) - connection->input_bytes, 0);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return errno == EAGAIN || errno == EWOULDBLOCK;
        if (got == 0) {
            connection->has_ended = true;
            return true;
        }
        if (connection->state == LINGERS) return true;
        connection->input_bytes += (size_t)got;
    }
    return true;
}

static void forget_input(client *connection, size_t bytes)
{
    connection->input_bytes -= bytes;
    memmove(connection->input, connection->input + bytes, connection->input_bytes);
}

/* ------------------------------------------------------------------------------------------ answers */

static const char *reason_of(uint32_t status)
{
    static const struct {
        uint32_t status;
        const char *text;
    } reasons[] = {{200, "OK"},
                   {400, "Bad Request"},
                   {403, "Forbidden"},
                   {404, "Not Found"},
                   {405, "Method Not Allowed"},
                   {409, "Conflict"},
                   {411, "Length Required"},
                   {413, "Content Too Large"},
                   {426, "Upgrade Required"},
                   {431, "Request Header Fields Too Large"},
                   {503, "Service Unavailable"},
                   {505, "HTTP Version Not Supported"},
                   {507, "Insufficient Storage"}};
    for (size_t i = 0; i < sizeof reasons / sizeof reasons[0]; i++)
        if (reasons[i].status == status) return reasons[i].text;
    return "Error";
}

static void answer(quern__inspect_server *server, client *connection, uint32_t status, const char *type,
                   const void *bytes, size_t size)
{
    if (status != 200 || !connection->head.is_kept) connection->is_last = true;
    const int head_bytes = snprintf(
        connection->output_head, ANSWER_HEAD_BYTES,
        "HTTP/1.1 %u %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\nCache-Control: no-store\r\n"
        "X-Content-Type-Options: nosniff\r\nX-Frame-Options: DENY\r\nReferrer-Policy: no-referrer\r\n"
        "Cross-Origin-Resource-Policy: same-origin\r\nConnection: %s\r\n\r\n",
        status, reason_of(status), type, size, connection->is_last ? "close" : "keep-alive");
    set_output(connection, (size_t)head_bytes, bytes, size);
    enter(connection, WRITES, server->exchange->write_limit_ns);
}

/* text: JSON in static memory. */
static void refuse(quern__inspect_server *server, client *connection, uint32_t status, const char *text)
{
    connection->is_last = true;
    answer(server, connection, status, "application/json", text, strlen(text));
}

/* Answers by what the main thread has written, or by the trace. */
static void answer_request(quern__inspect_server *server, client *connection)
{
    quern__inspect_exchange *exchange = server->exchange;
    quern__inspect_request *request = connection->request;
    quern_byte_buffer *bytes = &request->answer;
    if (request->is_trace && !exchange->write_trace(exchange->trace, bytes)) {
        refuse(server, connection, 507,
               "{\"error\":\"trace: it is longer than an answer may be: record fewer frames\"}");
        return;
    }
    if (bytes->size_bytes == 0)
        refuse(server, connection, 503, "{\"error\":\"no memory for the answer\"}");
    else
        answer(server, connection, request->status,
               request->is_binary ? "application/octet-stream" : "application/json", bytes->bytes,
               bytes->size_bytes);
}

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

/* Returns the part of the path after "/TOKEN/", or NULL. */
static const char *path_of(const quern__inspect_server *server, const quern__http_head *head)
{
    const char *end = strchr(head->path + 1, '/');
    if (end == NULL || !is_token(server, head->path + 1, (size_t)(end - head->path - 1))) return NULL;
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

static void ask(quern__inspect_server *server, client *connection, const char *path)
{
    quern__inspect_exchange *exchange = server->exchange;
    const quern__http_head *head = &connection->head;
    const quern__inspect_parts parts = {.method = head->method,
                                        .path = path,
                                        .arguments = head->arguments,
                                        .body = connection->input + connection->head_bytes,
                                        .body_bytes = head->body_bytes};
    connection->request = quern__inspect_request_create(exchange, &parts);
    if (connection->request == NULL) {
        refuse(server, connection, 503, "{\"error\":\"no memory for the request\"}");
    } else if (!quern__inspect_request_queue(exchange, connection->request)) {
        leave_request(server, connection);
        refuse(server, connection, 503,
               "{\"error\":\"the program does not answer: too many requests wait\"}");
    } else {
        enter(connection, WAITS, exchange->answer_limit_ns);
    }
}

static void shake_hands(quern__inspect_server *server, client *connection)
{
    const quern__http_head *head = &connection->head;
    char accept[QUERN__HTTP_ACCEPT_BYTES];
    if (strcmp(head->method, "GET") != 0 || head->body_bytes > 0 ||
        !quern__http_has_word(head->upgrade, "websocket") ||
        !quern__http_has_word(head->connection, "Upgrade") || head->socket_version == NULL ||
        strcmp(head->socket_version, "13") != 0 || !quern__http_accept(head->socket_key, accept)) {
        refuse(server, connection, 426, "{\"error\":\"watch: this address is for WebSockets only\"}");
        return;
    }
    connection->channel = quern__inspect_channel_open(server->exchange);
    if (connection->channel == QUERN__INSPECT_CHANNELS) {
        refuse(server, connection, 503, "{\"error\":\"watch: too many WebSockets are open\"}");
        return;
    }
    const int head_bytes = snprintf(connection->output_head, ANSWER_HEAD_BYTES,
                                    "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n"
                                    "Connection: Upgrade\r\nSec-WebSocket-Accept: %s\r\n\r\n",
                                    accept);
    set_output(connection, (size_t)head_bytes, "", 0);
    forget_input(connection, connection->head_bytes);
    enter(connection, WATCHES, server->exchange->write_limit_ns);
}

/* Answers a request that has arrived as a whole. */
static void serve(quern__inspect_server *server, client *connection)
{
    const quern__http_head *head = &connection->head;
    const char *path = path_of(server, head);
    if (strcmp(path, "watch") == 0)
        shake_hands(server, connection);
    else if (strncmp(path, "api/", 4) == 0 && strlen(path) < END_POINT_BYTES)
        ask(server, connection, path + 4);
    else if (path[0] == '\0' && strcmp(head->method, "GET") == 0)
        answer(server, connection, 200, "text/html; charset=utf-8", server->page, server->page_bytes);
    else
        refuse(server, connection, 404, "{\"error\":\"there is nothing at this address\"}");
}

/* Returns whether the state has changed. */
static bool read_head(quern__inspect_server *server, client *connection)
{
    quern__http_head *head = &connection->head;
    size_t at = connection->head_bytes < 3 ? 0 : connection->head_bytes - 3; /* where the search goes on */
    while (at + 4 <= connection->input_bytes && memcmp(connection->input + at, "\r\n\r\n", 4) != 0)
        at++;
    const bool is_whole = at + 4 <= connection->input_bytes;
    connection->head_bytes = is_whole ? at + 4 : connection->input_bytes;
    head->is_kept = false;
    if (connection->head_bytes > QUERN__HTTP_HEAD_BYTES) {
        refuse(server, connection, 431, "{\"error\":\"the head of the request exceeds 16384 bytes\"}");
        return true;
    }
    if (!is_whole) return false;
    const uint32_t status = quern__http_read_head(connection->input, head);
    if (status != 0 && status != 411 && status != 413) {
        refuse(server, connection, status, "{\"error\":\"the head of the request is wrong\"}");
    } else if (path_of(server, head) == NULL) {
        refuse(server, connection, 404, "{\"error\":\"there is nothing at this address\"}");
    } else if (head->host == NULL || !is_own(server, "", head->host) ||
               (head->origin != NULL && !is_own(server, "http://", head->origin))) {
        refuse(server, connection, 403, "{\"error\":\"foreign Host or Origin\"}");
    } else if (status == 411) {
        refuse(server, connection, status, "{\"error\":\"the body needs a Content-Length\"}");
    } else if (status == 413 || head->body_bytes > QUERN__INSPECT_REQUEST_BYTES_MAX) {
        refuse(server, connection, 413, "{\"error\":\"the body exceeds 65536 bytes\"}");
    } else {
        enter(connection, READS_BODY, server->exchange->read_limit_ns);
        if (connection->input_bytes - connection->head_bytes < head->body_bytes &&
            quern__http_has_word(head->expect, "100-continue"))
            (void)send(connection->file, "HTTP/1.1 100 Continue\r\n\r\n", 25, MSG_NOSIGNAL);
    }
    return true;
}

static bool read_body(quern__inspect_server *server, client *connection)
{
    if (connection->input_bytes - connection->head_bytes < connection->head.body_bytes) return false;
    serve(server, connection);
    return true;
}

static bool wait_for_answer(quern__inspect_server *server, client *connection)
{
    if (!quern__inspect_request_is_answered(server->exchange, connection->request)) return false;
    answer_request(server, connection);
    return true;
}

static bool write_answer(quern__inspect_server *server, client *connection)
{
    if (!send_output(server, connection)) {
        end_connection(server, connection, false);
        return true;
    }
    if (has_output(connection)) return false;
    leave_request(server, connection);
    if (connection->is_last) {
        shutdown(connection->file, SHUT_WR);
        connection->input_bytes = 0;
        enter(connection, LINGERS, LINGER_NS);
    } else {
        forget_input(connection, connection->head_bytes + connection->head.body_bytes);
        connection->head_bytes = 0;
        enter(connection, READS_HEAD, server->exchange->read_limit_ns);
    }
    return true;
}

/* ----------------------------------------------------------------------------------------- WebSockets */

/* Reads one frame: arguments, a ping, or a pong. Anything else ends the connection. Returns whether there was one. */
static bool read_frame(quern__inspect_server *server, client *connection)
{
    quern__http_frame frame;
    bool is_wrong = !quern__http_read_frame(connection->input, connection->input_bytes,
                                            QUERN__INSPECT_ARGUMENT_BYTES - 1, &frame);
    if (!is_wrong && frame.bytes == 0) return false;
    if (!is_wrong && frame.opcode == QUERN__HTTP_TEXT) {
        is_wrong = memchr(frame.content, '\0', frame.content_bytes) != NULL;
        if (!is_wrong)
            quern__inspect_channel_set(server->exchange, connection->channel, frame.content,
                                       frame.content_bytes);
    } else if (!is_wrong && frame.opcode == QUERN__HTTP_PING) {
        memcpy(connection->pong, frame.content, frame.content_bytes);
        connection->pong_bytes = frame.content_bytes;
        connection->has_pong = true;
    }
    if (is_wrong || frame.opcode == QUERN__HTTP_CLOSE) {
        end_connection(server, connection, false);
        return true;
    }
    forget_input(connection, frame.bytes);
    return true;
}

/* Begins the next frame for the client, if there is one. */
static bool begin_frame(quern__inspect_server *server, client *connection)
{
    quern_byte_buffer *message = &connection->message;
    if (connection->has_pong) {
        const size_t head_bytes =
            quern__http_write_frame(connection->output_head, QUERN__HTTP_PONG, connection->pong_bytes);
        memcpy(connection->output_head + head_bytes, connection->pong, connection->pong_bytes);
        set_output(connection, head_bytes + connection->pong_bytes, "", 0);
        connection->has_pong = false;
        return true;
    }
    if (!quern__inspect_channel_take(server->exchange, connection->channel, message)) return false;
    set_output(connection,
               quern__http_write_frame(connection->output_head, QUERN__HTTP_TEXT, message->size_bytes),
               message->bytes, message->size_bytes);
    return true;
}

static bool watch(quern__inspect_server *server, client *connection)
{
    if (read_frame(server, connection)) return true;
    const bool had_output = has_output(connection);
    if (!had_output && !begin_frame(server, connection)) {
        connection->deadline_ns = UINT64_MAX;
        if (connection->has_ended) end_connection(server, connection, false);
        return false;
    }
    if (!had_output) connection->deadline_ns = clock_ns() + server->exchange->write_limit_ns;
    if (connection->has_ended || !send_output(server, connection))
        end_connection(server, connection, false);
    return connection->file >= 0 && !has_output(connection);
}

/* ------------------------------------------------------------------------------------------- the thread */

/* Goes on with a connection until it has to wait. events: of poll. */
static void advance(quern__inspect_server *server, client *connection, short events)
{
    static bool (*const steps[])(quern__inspect_server *, client *) = {
        [READS_HEAD] = read_head, [READS_BODY] = read_body, [WAITS] = wait_for_answer,
        [WRITES] = write_answer,  [WATCHES] = watch,        [LINGERS] = NULL};
    bool has_failed = (events & (POLLERR | POLLHUP | POLLNVAL)) != 0;
    if (!has_failed && (events & POLLIN) != 0) has_failed = !receive(connection);
    while (!has_failed && connection->file >= 0 && steps[connection->state] != NULL &&
           steps[connection->state](server, connection))
        ;
    /* If a step has ended the connection, it is not in the state WAITS, and ending it again does nothing. */
    const bool is_reading = connection->state != WAITS && connection->state != WRITES;
    if (has_failed || (is_reading && connection->has_ended))
        end_connection(server, connection, false);
    else if (clock_ns() >= connection->deadline_ns) {
        if (connection->state == WAITS) {
            leave_request(server, connection);
            refuse(server, connection, 503, "{\"error\":\"the program does not answer: it is busy\"}");
        } else {
            end_connection(server, connection, true);
        }
    }
}

/* Returns a place for a connection: a free one, or that of the connection that has been reading or writing for
 * longest. Returns NULL if all wait for the program or watch. */
static client *make_place(quern__inspect_server *server)
{
    client *oldest = NULL;
    for (client *at = server->connections; at < server->connections + CONNECTIONS; at++) {
        if (at->file < 0) return at;
        if (at->state == WAITS || at->state == WATCHES) continue;
        if (oldest == NULL || at->began_ns < oldest->began_ns) oldest = at;
    }
    if (oldest != NULL) end_connection(server, oldest, false);
    return oldest;
}

static bool set_flags(int file)
{
    return fcntl(file, F_SETFD, FD_CLOEXEC) == 0 && fcntl(file, F_SETFL, O_NONBLOCK) == 0;
}

/* Accepts what waits. If the system or the allocator refuses, waits for a while, as poll would return at once. */
static void accept_connections(quern__inspect_server *server)
{
    const quern_allocator *allocator = &server->exchange->allocator;
    for (int i = 0; i < CONNECTIONS; i++) {
        const int file = accept(server->listener, NULL, NULL);
        if (file < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
        if (file < 0 && (errno == EINTR || errno == ECONNABORTED)) continue;
        client *place = file >= 0 ? make_place(server) : NULL;
        char *input =
            place != NULL ? allocator->allocate(allocator->user_data, INPUT_BYTES, INPUT_ALIGNMENT) : NULL;
        if (input == NULL || !set_flags(file)) {
            if (input != NULL)
                allocator->release(allocator->user_data, input, INPUT_BYTES, INPUT_ALIGNMENT);
            if (file >= 0) close(file);
            server->accept_ns = clock_ns() + PAUSE_NS;
            return;
        }
#ifdef SO_NOSIGPIPE
        setsockopt(file, SOL_SOCKET, SO_NOSIGPIPE, &(int){1}, sizeof(int));
#endif
        memset(place, 0, sizeof *place);
        place->file = file;
        place->input = input;
        place->message.allocator = *allocator;
        enter(place, READS_HEAD, server->exchange->read_limit_ns);
    }
}

static short events_of(const client *connection)
{
    short events = 0;
    if (connection->state != WRITES && !connection->has_ended &&
        connection->input_bytes < room_of(connection))
        events |= POLLIN;
    if ((connection->state == WRITES || connection->state == WATCHES) && has_output(connection))
        events |= POLLOUT;
    return events;
}

/* Returns the time until `ns` in milliseconds, rounded up, or `least` if that is less. */
static int sooner(int least, uint64_t ns, uint64_t now_ns)
{
    const uint64_t left_ms = ns <= now_ns ? 0 : (ns - now_ns + 999999) / 1000000;
    return left_ms < (uint64_t)least ? (int)left_ms : least;
}

/* Waits for the pipe, new connections and all connections, and goes on with each. */
static void turn(quern__inspect_server *server)
{
    enum { WAKE, LISTEN, FIRST };
    struct pollfd files[FIRST + CONNECTIONS];
    const uint64_t now_ns = clock_ns();
    int wait_ms = 60000;
    const bool is_accepting = now_ns >= server->accept_ns;
    files[WAKE] = (struct pollfd){.fd = server->wake_files[0], .events = POLLIN};
    files[LISTEN] = (struct pollfd){.fd = is_accepting ? server->listener : -1, .events = POLLIN};
    if (!is_accepting) wait_ms = sooner(wait_ms, server->accept_ns, now_ns);
    for (int i = 0; i < CONNECTIONS; i++) {
        const client *connection = &server->connections[i];
        files[FIRST + i] = (struct pollfd){.fd = connection->file};
        if (connection->file < 0) continue;
        files[FIRST + i].events = events_of(connection);
        wait_ms = sooner(wait_ms, connection->deadline_ns, now_ns);
    }
    if (poll(files, FIRST + CONNECTIONS, wait_ms) < 0) return;
    char bytes[64];
    while ((files[WAKE].revents & POLLIN) != 0 && read(server->wake_files[0], bytes, sizeof bytes) > 0)
        ;
    for (int i = 0; i < CONNECTIONS; i++)
        if (server->connections[i].file >= 0)
            advance(server, &server->connections[i], files[FIRST + i].revents);
    if ((files[LISTEN].revents & POLLIN) != 0) accept_connections(server);
}

static bool is_closing(quern__inspect_exchange *exchange)
{
    pthread_mutex_lock(&exchange->mutex);
    const bool is_closing = exchange->is_closing;
    pthread_mutex_unlock(&exchange->mutex);
    return is_closing;
}

/* A wake that arrives between the look at the exchange and poll is a byte in the pipe, so poll returns at once. */
static void *run(void *user_data)
{
    quern__inspect_server *server = user_data;
    while (!is_closing(server->exchange))
        turn(server);
    for (int i = 0; i < CONNECTIONS; i++)
        end_connection(server, &server->connections[i], false);
    return NULL;
}

/* --------------------------------------------------------------------------------------------- server */

static bool make_token(char *token)
{
    unsigned char bytes[RANDOM_BYTES];
    if (getentropy(bytes, sizeof bytes) != 0) return false;
    for (size_t i = 0; i < sizeof bytes; i++)
        snprintf(token + 2 * i, 3, "%02x", bytes[i]);
    return true;
}

static bool listen_on(quern__inspect_server *server, uint16_t port)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t bytes = sizeof address;
    server->listener = socket(AF_INET, SOCK_STREAM, 0);
    if (server->listener < 0 || !set_flags(server->listener)) return false;
    /* So that a program that is started again gets its port although old connections of it still end. */
    setsockopt(server->listener, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int));
    /* So that a client that reads slowly gets states of now, and not those that the system has kept. */
    setsockopt(server->listener, SOL_SOCKET, SO_SNDBUF, &(int){SEND_BYTES}, sizeof(int));
    if (bind(server->listener, (const struct sockaddr *)&address, sizeof address) != 0 ||
        listen(server->listener, CONNECTIONS) != 0 ||
        getsockname(server->listener, (struct sockaddr *)&address, &bytes) != 0)
        return false;
    server->port = ntohs(address.sin_port);
    return true;
}

static void release(quern__inspect_server *server)
{
    const quern_allocator *allocator = &server->exchange->allocator;
    pthread_mutex_lock(&server->exchange->mutex);
    server->exchange->wake_file = -1;
    pthread_mutex_unlock(&server->exchange->mutex);
    if (server->listener >= 0) close(server->listener);
    if (server->wake_files[0] >= 0) close(server->wake_files[0]);
    if (server->wake_files[1] >= 0) close(server->wake_files[1]);
    allocator->release(allocator->user_data, server, sizeof *server, _Alignof(quern__inspect_server));
}

quern_result quern__inspect_server_start(quern__inspect_exchange *exchange,
                                         const quern__inspect_server_settings *settings,
                                         quern__inspect_server **out_server)
{
    const quern_allocator *allocator = &exchange->allocator;
    quern__inspect_server *server =
        allocator->allocate(allocator->user_data, sizeof *server, _Alignof(quern__inspect_server));
    if (server == NULL) return QUERN_ERROR_OUT_OF_MEMORY;
    memset(server, 0, sizeof *server);
    server->exchange = exchange;
    server->page = settings->page;
    server->page_bytes = settings->page_bytes;
    server->listener = server->wake_files[0] = server->wake_files[1] = -1;
    for (int i = 0; i < CONNECTIONS; i++)
        server->connections[i].file = -1;
    bool is_ready = true;
    if (settings->token != NULL)
        snprintf(server->token, sizeof server->token, "%s", settings->token);
    else
        is_ready = make_token(server->token);
    if (!is_ready || pipe(server->wake_files) != 0 || !set_flags(server->wake_files[0]) ||
        !set_flags(server->wake_files[1]) || !listen_on(server, settings->port)) {
        release(server);
        return QUERN_ERROR_UNAVAILABLE;
    }
    snprintf(server->url, sizeof server->url, "http://127.0.0.1:%u/%s/", server->port, server->token);
    exchange->wake_file = server->wake_files[1];
    if (pthread_create(&server->thread, NULL, run, server) != 0) {
        release(server);
        return QUERN_ERROR_UNAVAILABLE;
    }
    *out_server = server;
    return QUERN_OK;
}

void quern__inspect_server_stop(quern__inspect_server *server)
{
    if (server == NULL) return;
    quern__inspect_exchange_close(server->exchange);
    pthread_join(server->thread, NULL);
    release(server);
}

const char *quern__inspect_server_url(const quern__inspect_server *server)
{
    return server != NULL ? server->url : NULL;
}
