/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "inspect/server/inspect_http.h"
#include "tests/support/setup.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What the server of the inspector reads of heads of requests and of frames of WebSockets. Each input is in memory of
 * its exact size, so that the address sanitizer sees a read behind it. */

static char *copy_of(const char *text, size_t bytes)
{
    char *memory = malloc(bytes > 0 ? bytes : 1);
    cr_assert_not_null(memory);
    memcpy(memory, text, bytes);
    return memory;
}

static void expect_head(const char *text, uint32_t expected)
{
    quern__http_head head;
    char *input = copy_of(text, strlen(text));
    const uint32_t status = quern__http_read_head(input, &head);
    cr_assert(status == expected, "%u instead of %u: %s", status, expected, text);
    free(input);
}

Test(inspect_http, reads_heads)
{
    static const char text[] = "POST /token/api/set?entity=1%3A2&x HTTP/1.1\r\nHOST:\t127.0.0.1:80 \r\n"
                               "Content-Length: 12\r\nconnection: keep-alive, Upgrade\r\nX-Other:\r\n\r\n";
    quern__http_head head;
    char *input = copy_of(text, sizeof text - 1);
    cr_assert_eq(quern__http_read_head(input, &head), 0);
    cr_assert_str_eq(head.method, "POST");
    cr_assert_str_eq(head.path, "/token/api/set");
    cr_assert_str_eq(head.arguments, "entity=1%3A2&x");
    cr_assert_str_eq(head.host, "127.0.0.1:80");
    cr_assert_eq(head.body_bytes, 12);
    cr_assert(head.is_kept);
    cr_assert_null(head.origin);
    cr_assert(quern__http_has_word(head.connection, "upgrade"));
    cr_assert_not(quern__http_has_word(head.connection, "keep"));
    cr_assert_not(quern__http_has_word(NULL, "keep"));
    free(input);
}

Test(inspect_http, keeps_connections_that_want_it)
{
    static const struct {
        const char *text;
        bool is_kept;
    } cases[] = {{"GET / HTTP/1.1\r\n\r\n", true},
                 {"GET / HTTP/1.0\r\n\r\n", false},
                 {"GET / HTTP/1.1\r\nConnection: x,CLOSE\r\n\r\n", false},
                 {"GET / HTTP/1.1\r\nConnection: close2\r\n\r\n", true}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        quern__http_head head;
        char *input = copy_of(cases[i].text, strlen(cases[i].text));
        cr_assert_eq(quern__http_read_head(input, &head), 0);
        cr_assert_eq(head.is_kept, cases[i].is_kept, "%s", cases[i].text);
        free(input);
    }
}

Test(inspect_http, refuses_wrong_heads)
{
    expect_head("GET / HTTP/1.1\r\nHost: a\r\n\r\n", 0);
    expect_head("\r\n\r\n", 400);
    expect_head("GET\r\n\r\n", 400);
    expect_head("GET /\r\n\r\n", 400);
    expect_head(" / HTTP/1.1\r\n\r\n", 400);
    expect_head("GET x HTTP/1.1\r\n\r\n", 400);
    expect_head("GET http://other/ HTTP/1.1\r\n\r\n", 400);
    expect_head("GET  / HTTP/1.1\r\n\r\n", 400);
    expect_head("GET / HTTP/1.1 \r\n\r\n", 505);
    expect_head("GET / HTTP/2.0\r\n\r\n", 505);
    expect_head("GET / HTXP/1.1\r\n\r\n", 400);
    expect_head("GET /\x01 HTTP/1.1\r\n\r\n", 400);
    expect_head("GET /\rx HTTP/1.1\r\n\r\n", 400);
    expect_head("GET / HTTP/1.1\nHost: a\r\n\r\n", 400);
    expect_head("GET / HTTP/1.1\r\nHost: a\r\n folded\r\n\r\n", 400);
    expect_head("GET / HTTP/1.1\r\nHost : a\r\n\r\n", 400);
    expect_head("GET / HTTP/1.1\r\n: a\r\n\r\n", 400);
    expect_head("GET / HTTP/1.1\r\nHost\r\n\r\n", 400);
    expect_head("GET / HTTP/1.1\r\nHost: a\r\nhost: b\r\n\r\n", 400);
    expect_head("GET / HTTP/1.1\r\nOrigin: a\r\nOrigin: a\r\n\r\n", 400);
    expect_head("GET / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n", 400);
    expect_head("GET / HTTP/1.1\r\nContent-Length: -1\r\n\r\n", 400);
    expect_head("GET / HTTP/1.1\r\nContent-Length: 1, 1\r\n\r\n", 400);
    expect_head("GET / HTTP/1.1\r\nContent-Length:\r\n\r\n", 400);
    expect_head("GET / HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\n", 413);
    expect_head("GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n", 411);
    quern__http_head head;
    char *input = copy_of("GET / HTTP/1.1\r\nHost: a\0b\r\n\r\n", 29);
    cr_assert_eq(quern__http_read_head(input, &head), 400);
    free(input);
}

/* The example of RFC 6455. */
Test(inspect_http, answers_keys)
{
    char answer[QUERN__HTTP_ACCEPT_BYTES];
    cr_assert(quern__http_accept("dGhlIHNhbXBsZSBub25jZQ==", answer));
    cr_assert_str_eq(answer, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    cr_assert_not(quern__http_accept(NULL, answer));
    cr_assert_not(quern__http_accept("", answer));
    cr_assert_not(quern__http_accept("dGhlIHNhbXBsZSBub25jZQ=", answer));
    cr_assert_not(quern__http_accept("dGhlIHNhbXBsZSBub25jZ\n==", answer));
    cr_assert_not(quern__http_accept("dGhlIHNhbXBsZSBub25jZQQ=", answer));
    cr_assert_not(quern__http_accept("dGhlIHNhbXBsZSBub25jZQ===", answer));
}

/* Every beginning of a frame is incomplete, and the frame is what was sent. */
static void expect_frame(const char *text, size_t bytes, const char *content, size_t content_bytes)
{
    quern__http_frame frame;
    for (size_t n = 0; n <= bytes; n++) {
        char *input = copy_of(text, n);
        cr_assert(quern__http_read_frame(input, n, 1000, &frame), "%zu bytes", n);
        cr_assert_eq(frame.bytes, n < bytes ? 0 : bytes, "%zu bytes", n);
        if (n == bytes) {
            cr_assert_eq(frame.content_bytes, content_bytes);
            cr_assert_eq(memcmp(frame.content, content, content_bytes), 0);
        }
        free(input);
    }
}

Test(inspect_http, reads_frames)
{
    static char longer[8 + 300] = "\x81\xfe\x01\x2c\0\0\0\0";
    expect_frame("\x81\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58", 11, "Hello", 5); /* of RFC 6455 */
    expect_frame("\x89\x80\x37\xfa\x21\x3d", 6, "", 0);
    memset(longer + 8, 'a', 300);
    expect_frame(longer, sizeof longer, longer + 8, 300);
}

Test(inspect_http, refuses_wrong_frames)
{
    static const char *const wrong[] = {
        "\x81\x05Hello",                            /* no mask */
        "\x01\x85xxxxHello",                        /* a part */
        "\x80\x85xxxxHello",                        /* goes on with nothing */
        "\xc1\x85xxxxHello",                        /* a bit of an extension */
        "\x82\x85xxxxHello",                        /* bytes */
        "\x83\x85xxxxHello",                        /* unknown */
        "\x8b\x85xxxxHello",                        /* unknown */
        "\x89\xfe\x01\x01xxxxHello",                /* a long ping */
        "\x88\xfe\x01\x01xxxxHello",                /* a long close */
        "\x81\xff\x7f\xff\xff\xff\xff\xff\xff\xff", /* 2^63 bytes */
        "\x81\xfe\x03\xe9xxxx",                     /* 1001 bytes */
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        quern__http_frame frame;
        char *input = copy_of(wrong[i], 10 < strlen(wrong[i]) ? 10 : strlen(wrong[i]));
        cr_assert_not(
            quern__http_read_frame(input, strlen(wrong[i]) < 10 ? strlen(wrong[i]) : 10, 1000, &frame),
            "case %zu", i);
        free(input);
    }
}

Test(inspect_http, writes_heads_of_frames)
{
    char head[QUERN__HTTP_FRAME_BYTES];
    cr_assert_eq(quern__http_write_frame(head, QUERN__HTTP_TEXT, 125), 2);
    cr_assert_eq(memcmp(head, "\x81\x7d", 2), 0);
    cr_assert_eq(quern__http_write_frame(head, QUERN__HTTP_TEXT, 126), 4);
    cr_assert_eq(memcmp(head, "\x81\x7e\x00\x7e", 4), 0);
    cr_assert_eq(quern__http_write_frame(head, QUERN__HTTP_PONG, 65535), 4);
    cr_assert_eq(memcmp(head, "\x8a\x7e\xff\xff", 4), 0);
    cr_assert_eq(quern__http_write_frame(head, QUERN__HTTP_TEXT, 65536), 10);
    cr_assert_eq(memcmp(head, "\x81\x7f\0\0\0\0\0\x01\0\0", 10), 0);
}
