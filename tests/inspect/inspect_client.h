/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_TESTS_INSPECT_CLIENT_H
#define QUERN_TESTS_INSPECT_CLIENT_H

/* A client of the inspector's server, over sockets. All calls are safe on any thread. */

#include <stddef.h>

#define INSPECT_TOKEN "0123456789abcdefTOKEN"

/* Connects to the port of 127.0.0.1. receive_bytes: what the system may keep unread; 0: its default. */
int inspect_client_connect(unsigned port, int receive_bytes);
/* Sends all bytes, unless the server closes the connection. */
void inspect_client_send(int file, const void *bytes, size_t size);
/* Reads until the connection ends or `end` was read, replaces zeros by spaces, and ends the text with a zero. Returns the number of bytes. */
size_t inspect_client_receive(int file, char *text, size_t room, const char *end);
/* Opens a WebSocket at /TOKEN/watch with the hand-shake; headers: more of them, each with "\r\n". Reads the answer. */
int inspect_client_watch(unsigned port, int receive_bytes, char *text, size_t room);
int inspect_client_shake_hands(int file, unsigned port, const char *path, const char *headers, char *text,
                               size_t room);
/* Sends a frame with a mask of zero. first: its first byte. size: less than 65,536. */
void inspect_client_send_frame(int file, unsigned char first, const void *bytes, size_t size);

#endif
