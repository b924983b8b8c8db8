/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* The bytes are what a client sends to the server of the inspector: a head of a request up to an empty line, and, from
 * the beginning again, frames of a WebSocket. Accepted texts must lie within the head, arguments must be UTF-8 within
 * their memory, and frames within what was sent. */

#include "inspect/inspect_internal.h"
#include "inspect/server/inspect_http.h"
#include "tests/fuzz/fuzz.h"

enum { FRAME_BYTES_MAX = 1000 };

static void require_within(const char *text, const char *begin, size_t size)
{
    require(text == NULL || (text >= begin && text + strlen(text) < begin + size));
}

static void read_head(const uint8_t *bytes, size_t size)
{
    static quern__inspect_arguments arguments;
    size_t end = 0;
    while (end + 4 <= size && memcmp(bytes + end, "\r\n\r\n", 4) != 0)
        end++;
    if (end + 4 > size) return;
    char *copy = fuzz_copy(bytes, end + 4);
    quern__http_head head;
    if (quern__http_read_head(copy, &head) == 0) {
        require(head.path[0] == '/' && head.body_bytes < 1000000000);
        require_within(head.method, copy, end + 4);
        require_within(head.path, copy, end + 4);
        require_within(head.arguments, copy, end + 4);
        require_within(head.host, copy, end + 4);
        require_within(head.connection, copy, end + 4);
        (void)quern__http_has_word(head.connection, "upgrade");
        char answer[QUERN__HTTP_ACCEPT_BYTES];
        if (quern__http_accept(head.socket_key, answer)) require(strlen(answer) + 1 == sizeof answer);
        if (quern__inspect_arguments_read(&arguments, head.arguments))
            for (uint32_t i = 0; i < arguments.count; i++)
                require_within(arguments.values[i], arguments.text, sizeof arguments.text);
    }
    free(copy);
}

static void read_frames(const uint8_t *bytes, size_t size)
{
    char *copy = fuzz_copy(bytes, size);
    quern__http_frame frame;
    for (size_t at = 0;
         quern__http_read_frame(copy + at, size - at, FRAME_BYTES_MAX, &frame) && frame.bytes > 0;
         at += frame.bytes) {
        require(frame.bytes <= size - at && frame.content_bytes <= FRAME_BYTES_MAX);
        require(frame.content + frame.content_bytes == copy + at + frame.bytes);
    }
    free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    read_head(bytes, size);
    read_frames(bytes, size);
    return 0;
}
