/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Stands in for the header of Microsoft's SDK, for the test headers_msvc. */
#pragma once
#include <stddef.h>
typedef struct _iobuf FILE;
