/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */

/* The wire in a build without ENet: it cannot be opened. */

#include "wire.h"

#include <stdio.h>

static Wire *refuse(char *message, size_t message_bytes)
{
    snprintf(message, message_bytes,
             "this build has no network: install ENet (the package libenet-dev), and build again");
    return NULL;
}

Wire *wire_host(uint16_t port, const WireFaults *faults, char *message, size_t message_bytes)
{
    (void)port;
    (void)faults;
    return refuse(message, message_bytes);
}

Wire *wire_join(const char *address, const WireFaults *faults, char *message, size_t message_bytes)
{
    (void)address;
    (void)faults;
    return refuse(message, message_bytes);
}

void wire_close(Wire *wire)
{
    (void)wire;
}

void wire_poll(Wire *wire, uint32_t wait_ms, const WireStart *start, uint32_t seats)
{
    (void)wire;
    (void)wait_ms;
    (void)start;
    (void)seats;
}

uint32_t wire_waiting(const Wire *wire)
{
    (void)wire;
    return 0;
}

bool wire_started(const Wire *wire, WireStart *out_start)
{
    (void)wire;
    (void)out_start;
    return false;
}

bool wire_is_lost(const Wire *wire)
{
    (void)wire;
    return true;
}

void wire_done(Wire *wire)
{
    (void)wire;
}

bool wire_all_done(const Wire *wire, uint32_t players)
{
    (void)wire;
    (void)players;
    return true;
}

void wire_send(void *user_data, uint32_t player, const void *bytes, uint32_t size_bytes)
{
    (void)user_data;
    (void)player;
    (void)bytes;
    (void)size_bytes;
}

uint32_t wire_receive(void *user_data, uint32_t *out_player, void *bytes, uint32_t capacity_bytes)
{
    (void)user_data;
    (void)out_player;
    (void)bytes;
    (void)capacity_bytes;
    return 0;
}

uint64_t wire_now(void *user_data)
{
    (void)user_data;
    return 0;
}
