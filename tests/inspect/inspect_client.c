/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "tests/inspect/inspect_client.h"
#include "tests/support/setup.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

int inspect_client_connect(unsigned port, int receive_bytes)
{
    const struct sockaddr_in address = {.sin_family = AF_INET,
                                        .sin_port = htons((uint16_t)port),
                                        .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const struct timeval limit = {.tv_sec = 20};
    const int file = socket(AF_INET, SOCK_STREAM, 0);
    setsockopt(file, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    if (receive_bytes > 0) setsockopt(file, SOL_SOCKET, SO_RCVBUF, &receive_bytes, sizeof receive_bytes);
    cr_assert_eq(connect(file, (const struct sockaddr *)&address, sizeof address), 0);
    return file;
}

void inspect_client_send(int file, const void *bytes, size_t size)
{
    const char *at = bytes;
    while (size > 0) {
        const ssize_t sent = send(file, at, size, MSG_NOSIGNAL);
        if (sent <= 0) return; /* the server has closed the connection */
        at += sent;
        size -= (size_t)sent;
    }
}

size_t inspect_client_receive(int file, char *text, size_t room, const char *end)
{
    size_t count = 0;
    while (count + 1 < room) {
        const ssize_t got = recv(file, text + count, room - 1 - count, 0);
        if (got <= 0) break;
        for (const size_t all = count + (size_t)got; count < all; count++)
            if (text[count] == '\0') text[count] = ' '; /* in heads of frames */
        text[count] = '\0';
        if (end != NULL && strstr(text, end) != NULL) break;
    }
    text[count] = '\0';
    return count;
}

int inspect_client_shake_hands(int file, unsigned port, const char *path, const char *headers, char *text,
                               size_t room)
{
    char head[512];
    snprintf(head, sizeof head,
             "GET %s HTTP/1.1\r\nHost: 127.0.0.1:%u\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
             "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n%s\r\n",
             path, port, headers);
    inspect_client_send(file, head, strlen(head));
    inspect_client_receive(file, text, room, "\r\n\r\n");
    return file;
}

int inspect_client_watch(unsigned port, int receive_bytes, char *text, size_t room)
{
    return inspect_client_shake_hands(inspect_client_connect(port, receive_bytes), port,
                                      "/" INSPECT_TOKEN "/watch", "", text, room);
}

void inspect_client_send_frame(int file, unsigned char first, const void *bytes, size_t size)
{
    unsigned char head[8] = {first, (unsigned char)(0x80 | (size < 126 ? size : 126))};
    if (size >= 126) {
        head[2] = (unsigned char)(size >> 8);
        head[3] = (unsigned char)size;
    }
    inspect_client_send(file, head, size < 126 ? 6 : 8);
    inspect_client_send(file, bytes, size);
}
