/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "inspect/server/inspect_http.h"

#include <string.h>
#include <strings.h>

/* -------------------------------------------------------------------------------------------- heads */

/* Ends the line at `at` with a zero, and returns the begin of the next one. The head ends with "\r\n\r\n". A line that
 * ends otherwise, or contains control characters, has no end: NULL. */
static char *end_line(char *at)
{
    while ((unsigned char)*at >= ' ' || *at == '\t')
        at++;
    if (at[0] != '\r' || at[1] != '\n') return NULL;
    *at = '\0';
    return at + 2;
}

static uint32_t read_first_line(char *line, quern__http_head *head)
{
    char *target = strchr(line, ' '), *version = target != NULL ? strchr(target + 1, ' ') : NULL;
    if (version == NULL || target == line) return 400;
    *target++ = *version++ = '\0';
    if (strcmp(version, "HTTP/1.1") != 0 && strcmp(version, "HTTP/1.0") != 0)
        return strncmp(version, "HTTP/", 5) == 0 ? 505 : 400;
    if (target[0] != '/') return 400;
    char *arguments = strchr(target, '?');
    if (arguments != NULL) *arguments++ = '\0';
    head->method = line;
    head->path = target;
    head->arguments = arguments;
    head->is_kept = version[7] == '1';
    return 0;
}

static uint32_t read_size(const char *text, size_t *size)
{
    if (*text == '\0' || strspn(text, "0123456789") != strlen(text)) return 400;
    if (strlen(text) > 9) return 413;
    for (*size = 0; *text != '\0'; text++)
        *size = *size * 10 + (size_t)(*text - '0');
    return 0;
}

/* Splits a line into the name and the value of a header, without white space around the value. */
static char *split_line(char *line)
{
    static const char signs[] =
        "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    const size_t name_bytes = strspn(line, signs);
    if (name_bytes == 0 || line[name_bytes] != ':') return NULL;
    char *value = line + name_bytes + 1;
    line[name_bytes] = '\0';
    value += strspn(value, " \t");
    size_t value_bytes = strlen(value);
    while (value_bytes > 0 && (value[value_bytes - 1] == ' ' || value[value_bytes - 1] == '\t'))
        value[--value_bytes] = '\0';
    return value;
}

uint32_t quern__http_read_head(char *input, quern__http_head *head)
{
    const char *size = NULL, *encoding = NULL;
    *head = (quern__http_head){.method = NULL};
    const struct {
        const char *name;
        const char **value;
    } headers[] = {{"Host", &head->host},
                   {"Origin", &head->origin},
                   {"Connection", &head->connection},
                   {"Upgrade", &head->upgrade},
                   {"Sec-WebSocket-Key", &head->socket_key},
                   {"Sec-WebSocket-Version", &head->socket_version},
                   {"Expect", &head->expect},
                   {"Content-Length", &size},
                   {"Transfer-Encoding", &encoding}};
    char *line = input, *next = end_line(line);
    if (next == NULL) return 400;
    uint32_t status = read_first_line(line, head);
    for (line = next; status == 0 && *line != '\r'; line = next) {
        next = end_line(line);
        const char *value = next != NULL ? split_line(line) : NULL;
        if (value == NULL) return 400;
        for (size_t i = 0; i < sizeof headers / sizeof headers[0]; i++) {
            if (strcasecmp(line, headers[i].name) != 0) continue;
            if (*headers[i].value != NULL) return 400; /* repeated */
            *headers[i].value = value;
        }
    }
    if (status == 0 && encoding != NULL) status = 411;
    if (status == 0 && size != NULL) status = read_size(size, &head->body_bytes);
    if (quern__http_has_word(head->connection, "close")) head->is_kept = false;
    return status;
}

bool quern__http_has_word(const char *list, const char *word)
{
    const size_t bytes = strlen(word);
    while (list != NULL && *list != '\0') {
        list += strspn(list, " \t,");
        size_t length = strcspn(list, ",");
        const char *end = list + length;
        while (length > 0 && (list[length - 1] == ' ' || list[length - 1] == '\t'))
            length--;
        if (length == bytes && strncasecmp(list, word, bytes) == 0) return true;
        list = end;
    }
    return false;
}

/* --------------------------------------------------------------------------------------- hand-shakes */

static uint32_t rotate(uint32_t value, unsigned bits)
{
    return value << bits | value >> (32 - bits);
}

/* One block of 64 bytes of SHA-1 (RFC 3174), which the hand-shake asks for; it protects nothing. */
static void hash_block(uint32_t state[5], const unsigned char block[64])
{
    uint32_t words[80];
    for (size_t i = 0; i < 16; i++)
        words[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 |
                   (uint32_t)block[4 * i + 2] << 8 | block[4 * i + 3];
    for (size_t i = 16; i < 80; i++)
        words[i] = rotate(words[i - 3] ^ words[i - 8] ^ words[i - 14] ^ words[i - 16], 1);
    uint32_t a = state[0], b = state[1], c = state[2], d = state[3], e = state[4];
    for (size_t i = 0; i < 80; i++) {
        static const uint32_t constants[4] = {0x5a827999, 0x6ed9eba1, 0x8f1bbcdc, 0xca62c1d6};
        const uint32_t mixed = i < 20              ? (b & c) | (~b & d)
                               : i >= 40 && i < 60 ? (b & c) | (b & d) | (c & d)
                                                   : b ^ c ^ d;
        const uint32_t sum = rotate(a, 5) + mixed + e + constants[i / 20] + words[i];
        e = d;
        d = c;
        c = rotate(b, 30);
        b = a;
        a = sum;
    }
    state[0] += a;
    state[1] += b;
    state[2] += c;
    state[3] += d;
    state[4] += e;
}

bool quern__http_accept(const char *key, char answer[QUERN__HTTP_ACCEPT_BYTES])
{
    static const char signs[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/",
                      constant[] = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
    enum { KEY_BYTES = 24, HASHED_BYTES = KEY_BYTES + sizeof constant - 1 };
    uint32_t state[5] = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0};
    unsigned char text[128] = {0}, digest[21] = {0};
    if (key == NULL || strlen(key) != KEY_BYTES || strspn(key, signs) != KEY_BYTES - 2 ||
        strcmp(key + KEY_BYTES - 2, "==") != 0)
        return false;
    memcpy(text, key, KEY_BYTES);
    memcpy(text + KEY_BYTES, constant, sizeof constant - 1);
    text[HASHED_BYTES] = 0x80;
    text[126] = HASHED_BYTES * 8 >> 8;
    text[127] = HASHED_BYTES * 8 & 0xff;
    hash_block(state, text);
    hash_block(state, text + 64);
    for (size_t i = 0; i < 20; i++)
        digest[i] = (unsigned char)(state[i / 4] >> (24 - 8 * (i % 4)));
    for (size_t i = 0; i < 7; i++) {
        const unsigned char *three = digest + 3 * i;
        const uint32_t value = (uint32_t)three[0] << 16 | (uint32_t)three[1] << 8 | three[2];
        for (size_t k = 0; k < 4; k++)
            answer[4 * i + k] = signs[value >> (18 - 6 * k) & 63];
    }
    answer[QUERN__HTTP_ACCEPT_BYTES - 2] = '='; /* 20 bytes are 27 signs */
    answer[QUERN__HTTP_ACCEPT_BYTES - 1] = '\0';
    return true;
}

/* -------------------------------------------------------------------------------------------- frames */

bool quern__http_read_frame(char *input, size_t bytes, size_t most, quern__http_frame *frame)
{
    const unsigned char *head = (const unsigned char *)input;
    *frame = (quern__http_frame){.bytes = 0};
    if (bytes < 2) return true;
    const unsigned opcode = head[0] & 0xf;
    const bool is_control = opcode >= QUERN__HTTP_CLOSE;
    if ((head[0] & 0xf0) != 0x80 || (head[1] & 0x80) == 0) return false; /* in parts, or without mask */
    if (opcode != QUERN__HTTP_TEXT && (opcode < QUERN__HTTP_CLOSE || opcode > QUERN__HTTP_PONG))
        return false;
    size_t content_bytes = head[1] & 0x7f, head_bytes = 6;
    if (content_bytes == 127 || (is_control && content_bytes > QUERN__HTTP_CONTROL_BYTES)) return false;
    if (content_bytes == 126) {
        head_bytes = 8;
        if (bytes < 4) return true;
        content_bytes = (size_t)head[2] << 8 | head[3];
    }
    if (content_bytes > most) return false;
    if (bytes < head_bytes + content_bytes) return true;
    frame->opcode = (quern__http_opcode)opcode;
    frame->content = input + head_bytes;
    frame->content_bytes = content_bytes;
    frame->bytes = head_bytes + content_bytes;
    for (size_t i = 0; i < content_bytes; i++)
        frame->content[i] = (char)(frame->content[i] ^ input[head_bytes - 4 + i % 4]);
    return true;
}

size_t quern__http_write_frame(char head[QUERN__HTTP_FRAME_BYTES], quern__http_opcode opcode,
                               size_t content_bytes)
{
    head[0] = (char)(0x80 | opcode);
    if (content_bytes < 126) {
        head[1] = (char)content_bytes;
        return 2;
    }
    const size_t size_bytes = content_bytes < 65536 ? 2 : 8;
    head[1] = size_bytes == 2 ? 126 : 127;
    for (size_t i = 0; i < size_bytes; i++)
        head[2 + i] = (char)((uint64_t)content_bytes >> (8 * (size_bytes - 1 - i)));
    return 2 + size_bytes;
}
