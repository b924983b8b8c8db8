/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_INSPECT_HTTP_H
#define QUERN_INSPECT_HTTP_H

/* What the server understands of HTTP/1.1 and of WebSockets (RFC 9112, RFC 6455): heads of requests, and frames. These
 * functions read and write memory only. Bytes come from strangers, so everything that is not plainly correct is
 * refused: folded lines, repeated headers, bodies without a length, frames without a mask or in parts. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    QUERN__HTTP_HEAD_BYTES = 16384,  /* longest head of a request */
    QUERN__HTTP_FRAME_BYTES = 10,    /* longest head of a frame that is written */
    QUERN__HTTP_CONTROL_BYTES = 125, /* longest content of a control frame */
    QUERN__HTTP_ACCEPT_BYTES = 29    /* answer to the key of a hand-shake, with a zero */
};

/* The head of a request. The texts are parts of the input; those of headers are NULL if the header is missing. */
typedef struct quern__http_head {
    const char *method, *path;
    const char *arguments; /* after '?'; NULL: none */
    const char *host, *origin, *connection, *upgrade, *socket_key, *socket_version, *expect;
    size_t body_bytes;
    bool is_kept; /* the client wants to send another request on the connection */
} quern__http_head;

/* Reads a head, which must end with an empty line, and puts zeros into the input. Returns 0, or the status with which
 * the request is refused. */
uint32_t quern__http_read_head(char *input, quern__http_head *head);
/* Whether a header is a list, separated by commas, that contains the word, in any case. */
bool quern__http_has_word(const char *list, const char *word);

/* Answers the key of a hand-shake. Returns false if it is no key. */
bool quern__http_accept(const char *key, char answer[QUERN__HTTP_ACCEPT_BYTES]);

typedef enum quern__http_opcode {
    QUERN__HTTP_TEXT = 1,
    QUERN__HTTP_CLOSE = 8,
    QUERN__HTTP_PING = 9,
    QUERN__HTTP_PONG = 10
} quern__http_opcode;

/* A frame that a client sent. */
typedef struct quern__http_frame {
    quern__http_opcode opcode;
    char *content; /* without its mask */
    size_t content_bytes;
    size_t bytes; /* with the head; 0: the input does not contain all of it yet */
} quern__http_frame;

/* Returns false if the input begins with nothing that may become a frame of at most `most` bytes of content. */
bool quern__http_read_frame(char *input, size_t bytes, size_t most, quern__http_frame *frame);
/* Returns the size of the head. */
size_t quern__http_write_frame(char head[QUERN__HTTP_FRAME_BYTES], quern__http_opcode opcode,
                               size_t content_bytes);

#endif
