/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Stands in for the header of Microsoft's SDK, for the test sources_msvc. */
#pragma once
#include <winsock2.h>
#define IPPROTO_IPV6 41
#define IPV6_V6ONLY  27
#define AI_PASSIVE   1
#define AI_ALL       0x100
#define AI_V4MAPPED  0x800
typedef int socklen_t;
struct in6_addr {
    unsigned char bytes[16];
};
struct sockaddr_in6 {
    short sin6_family;
    u_short sin6_port;
    ULONG sin6_flowinfo;
    struct in6_addr sin6_addr;
    ULONG sin6_scope_id;
};
struct addrinfo {
    int ai_flags, ai_family, ai_socktype, ai_protocol;
    size_t ai_addrlen;
    char *ai_canonname;
    struct sockaddr *ai_addr;
    struct addrinfo *ai_next;
};
int getaddrinfo(const char *name, const char *service, const struct addrinfo *hints, struct addrinfo **out);
void freeaddrinfo(struct addrinfo *list);
const char *gai_strerrorA(int error);
#define gai_strerror gai_strerrorA
