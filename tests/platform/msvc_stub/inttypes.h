/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Stands in for the header of Microsoft's SDK, for the tests headers_msvc and sources_msvc. */
#pragma once
#include <stdint.h>
#define PRIu8   "u"
#define PRIu16  "u"
#define PRIu32  "u"
#define PRIu64  "llu"
#define PRIi32  "d"
#define PRId32  "d"
#define PRId64  "lld"
#define PRIi64  "lld"
#define PRIx16  "x"
#define PRIx32  "x"
#define PRIx64  "llx"
#define PRIX64  "llX"
#define PRIuPTR "llu"
#define SCNu32  "u"
#define SCNu64  "llu"
#define SCNx64  "llx"
