/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_INSPECT_EXCHANGE_H
#define QUERN_INSPECT_EXCHANGE_H

/* What the thread of the server and the main thread share: requests with their answers, and channels of WebSockets.
 *
 * Everything in it is bytes. A request owns the bytes that came from a connection, until nothing refers to it: the
 * connection holds one reference, the queue and then the main thread another. So a connection may end at any time
 * while the main thread reads the body, and the main thread may finish at any time after the connection has ended. The
 * thread of the server knows no other type of the inspector and no call of a world: this room includes no header of
 * inspect/, and tests/layering refuses symbols of other rooms.
 *
 * One mutex guards all members of which the comments say nothing else. */

#include <quern/sink.h>

#include <pthread.h>
#include <stdatomic.h>

enum {
    QUERN__INSPECT_WAITING_MAX = 32, /* requests in the queue */
    QUERN__INSPECT_TOKEN_BYTES_MAX = 64,
    QUERN__INSPECT_CHANNELS = 4,             /* WebSockets */
    QUERN__INSPECT_ARGUMENT_BYTES = 8192,    /* arguments, with a zero at the end */
    QUERN__INSPECT_REQUEST_BYTES_MAX = 65536 /* body */
};

/* The parts of a request, for quern__inspect_request_create, which copies them. */
typedef struct quern__inspect_parts {
    const char *method, *path;
    const char *arguments; /* NULL: none */
    const char *body;
    size_t body_bytes;
} quern__inspect_parts;

typedef struct quern__inspect_request {
    /* Unchanged from its creation on, so both threads read it without the mutex. */
    size_t size_bytes; /* of this allocation */
    const char *method, *path, *arguments;
    const char *body; /* a zero follows, which is not counted */
    size_t body_bytes;
    /* Written by the main thread before it sets is_answered, then owned by the thread of the server. */
    uint32_t status;
    bool is_binary; /* `answer` is no JSON */
    bool is_trace;  /* the thread of the server adds the trace, instead of `answer` */
    quern_byte_buffer answer;

    uint32_t reference_count;
    bool is_waiting; /* linked in the queue */
    bool is_answered;
    struct quern__inspect_request *next;
    char bytes[]; /* the texts and the body */
} quern__inspect_request;

/* The way of messages to one WebSocket. It holds one message at most: while that one waits for the client, the main
 * thread builds no other, so a client that reads slowly skips states. */
typedef struct quern__inspect_channel {
    bool is_open;
    bool is_new;        /* opened since the main thread looked */
    bool has_arguments; /* the arguments are new */
    bool is_ready;      /* `message` waits for the thread of the server */
    char arguments[QUERN__INSPECT_ARGUMENT_BYTES];
    quern_byte_buffer message;
} quern__inspect_channel;

typedef struct quern__inspect_exchange {
    quern_allocator allocator; /* thread-safe */
    /* Writes the trace of the program. Called by the thread of the server, since it may take long: any thread may write
     * a trace at any time, and it belongs to no world. Both NULL: none. */
    bool (*write_trace)(void *trace, quern_byte_buffer *bytes);
    void *trace;
    /* Set before the server starts. */
    uint64_t answer_limit_ns; /* until the server gives up on a program that does not update */
    uint64_t read_limit_ns;   /* until it closes a connection without a whole head or body of a request */
    uint64_t write_limit_ns;  /* until it closes a connection whose client reads nothing */
    /* What the main thread has to do: requests, open channels, and its own reasons to attend to each frame. Changed
     * and read without the mutex and relaxed: the count only makes the main thread look, and the mutex orders
     * everything else. */
    atomic_uint attention;
    pthread_mutex_t mutex;
    pthread_cond_t arrived;
    quern__inspect_request *first, *last;
    uint32_t waiting_count;
    bool is_closing;
    int wake_file;                 /* end of a pipe that wakes the thread of the server; -1: no server */
    uint64_t dropped_client_count; /* WebSockets that did not read for too long */
    quern__inspect_channel channels[QUERN__INSPECT_CHANNELS];
} quern__inspect_exchange;

void quern__inspect_exchange_open(quern__inspect_exchange *exchange, const quern_allocator *allocator);
/* Precondition: no request refers to the exchange, and no server uses it. */
void quern__inspect_exchange_release(quern__inspect_exchange *exchange);

/* Counts a reason to attend to each frame, or takes it back. */
void quern__inspect_count_reason(quern__inspect_exchange *exchange, bool is_new);

/* -------------------------------------------------------------------------- the server's side */

/* Returns a request with one reference, or NULL without memory. */
quern__inspect_request *quern__inspect_request_create(quern__inspect_exchange *exchange,
                                                      const quern__inspect_parts *parts);
/* Adds a request to the queue, which holds a reference then. Returns false if too many wait, or the exchange closes. */
bool quern__inspect_request_queue(quern__inspect_exchange *exchange, quern__inspect_request *request);
bool quern__inspect_request_is_answered(quern__inspect_exchange *exchange, quern__inspect_request *request);
/* Gives up the reference of the server, and takes a request that still waits out of the queue. */
void quern__inspect_request_leave(quern__inspect_exchange *exchange, quern__inspect_request *request);

/* Returns the number of a channel, or QUERN__INSPECT_CHANNELS if all are open. */
uint32_t quern__inspect_channel_open(quern__inspect_exchange *exchange);
void quern__inspect_channel_close(quern__inspect_exchange *exchange, uint32_t channel, bool is_too_slow);
/* Replaces the arguments by a text with less than QUERN__INSPECT_ARGUMENT_BYTES bytes. */
void quern__inspect_channel_set(quern__inspect_exchange *exchange, uint32_t channel, const char *text,
                                size_t text_bytes);
/* Exchanges *message, the last one, for the message that waits. Returns false if none waits. */
bool quern__inspect_channel_take(quern__inspect_exchange *exchange, uint32_t channel,
                                 quern_byte_buffer *message);

/* -------------------------------------------------------------------------- the main thread's side */

/* Returns the next request, with the reference of the queue, or NULL. */
quern__inspect_request *quern__inspect_request_take(quern__inspect_exchange *exchange);
/* Marks a request as answered, and gives up the reference of the main thread. */
void quern__inspect_request_finish(quern__inspect_exchange *exchange, quern__inspect_request *request);
/* Waits until a request arrives, or for the time. */
void quern__inspect_request_wait(quern__inspect_exchange *exchange, uint64_t ns);
/* Exchanges *message for the last one, and wakes the server. */
void quern__inspect_channel_send(quern__inspect_exchange *exchange, uint32_t channel,
                                 quern_byte_buffer *message);
/* Makes the server end, and refuses all further requests. */
void quern__inspect_exchange_close(quern__inspect_exchange *exchange);

/* -------------------------------------------------------------------------------------- server */

typedef struct quern__inspect_server quern__inspect_server;

typedef struct quern__inspect_server_settings {
    uint16_t port;     /* 0: a free one */
    const char *token; /* letters and digits. NULL: a random one */
    const void *page;  /* must outlive the server */
    size_t page_bytes;
} quern__inspect_server_settings;

/* Returns OK, OUT_OF_MEMORY or UNAVAILABLE, without an error text. */
quern_result quern__inspect_server_start(quern__inspect_exchange *exchange,
                                         const quern__inspect_server_settings *settings,
                                         quern__inspect_server **out_server);
/* Closes the exchange, ends the thread and all connections. NULL is allowed. */
void quern__inspect_server_stop(quern__inspect_server *server);
const char *quern__inspect_server_url(const quern__inspect_server *server);

#endif
