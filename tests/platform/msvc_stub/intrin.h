/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Stands in for the header of Microsoft's SDK, for the tests headers_msvc and sources_msvc. */
#pragma once
unsigned char _BitScanForward64(unsigned long *index, unsigned long long bits);
unsigned char _BitScanReverse(unsigned long *index, unsigned long bits);
void _mm_pause(void);
