/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Stands in for the header of Microsoft's SDK, for the test sources_msvc. */
#pragma once
#include <windows.h>
#define AF_INET          2
#define AF_INET6         23
#define SOCK_DGRAM       2
#define FIONBIO          0x8004667e
#define MAKEWORD(a, b)   ((WORD)((a) | (b) << 8))
#define WSAEINTR         10004
#define WSAEACCES        10013
#define WSAEWOULDBLOCK   10035
#define WSAEMSGSIZE      10040
#define WSAEADDRINUSE    10048
#define WSAEADDRNOTAVAIL 10049
#define WSAENETRESET     10052
#define WSAECONNRESET    10054
#define WSAENOBUFS       10055
typedef unsigned short WORD, u_short;
typedef unsigned long u_long;
typedef unsigned long long SOCKET;
typedef struct WSADATA {
    WORD wVersion;
} WSADATA;
struct sockaddr {
    u_short sa_family;
    char sa_data[14];
};
struct sockaddr_storage {
    short ss_family;
    long long align[15];
};
struct in_addr {
    unsigned char bytes[4];
};
struct sockaddr_in {
    short sin_family;
    u_short sin_port;
    struct in_addr sin_addr;
    char sin_zero[8];
};
int WSAStartup(WORD version, WSADATA *data);
int WSACleanup(void);
int WSAGetLastError(void);
SOCKET socket(int family, int type, int protocol);
int closesocket(SOCKET socket);
int ioctlsocket(SOCKET socket, long command, u_long *argument);
int setsockopt(SOCKET socket, int level, int option, const char *value, int bytes);
int bind(SOCKET socket, const struct sockaddr *address, int bytes);
int getsockname(SOCKET socket, struct sockaddr *address, int *bytes);
int sendto(SOCKET socket, const char *data, int size, int flags, const struct sockaddr *to, int bytes);
int recvfrom(SOCKET socket, char *data, int size, int flags, struct sockaddr *from, int *bytes);
u_short htons(u_short number);
u_short ntohs(u_short number);
