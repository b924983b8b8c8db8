/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */

/* The inline functions of the public headers, as functions that a library exports. Languages call a C library by the names
 * of its symbols, and an inline function has none. Without `static` and `inline`, each definition in the headers is that of
 * an external function with the same name. The headers of the C library are included first, so that they are read as usual. */

#include <limits.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* NOLINTBEGIN(bugprone-reserved-identifier, clang-diagnostic-keyword-macro) */
#define static
#define inline
/* NOLINTEND(bugprone-reserved-identifier, clang-diagnostic-keyword-macro) */

#include <quern/kit/angle.h>
#include <quern/kit/background.h>
#include <quern/kit/grid.h>
#include <quern/kit/json.h>
#include <quern/kit/netplay.h>
#include <quern/kit/random.h>
#include <quern/kit/states.h>
#include <quern/kit/transform.h>
#include <quern/quern.h>
