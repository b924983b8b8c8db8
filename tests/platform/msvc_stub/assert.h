/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Stands in for the header of Microsoft's SDK, for the tests headers_msvc and sources_msvc. */
#pragma once
#define assert(condition) ((void)(condition))
