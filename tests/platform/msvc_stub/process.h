/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Stands in for the header of Microsoft's SDK, for the tests headers_msvc and sources_msvc. */
#pragma once
#include <stdint.h>
uintptr_t _beginthreadex(void *security, unsigned stack_bytes, unsigned(__stdcall *entry)(void *argument),
                         void *argument, unsigned flags, unsigned *id);
