/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_REFLECT_VALUE_H
#define QUERN_CORE_REFLECT_VALUE_H

/* Fields of values from and to text. */

#include "core/reflect/path.h"

/* Whether a text is what the place may hold. Errors: INVALID_ARGUMENT, saying what is expected. */
quern_result quern__value_check_text(const quern_world *world, const quern__path *path, const char *text);

/* Writes a text that has been checked. */
void quern__value_put_text(const quern_world *world, const quern__path *path, void *value,
                           const char *text);

/* Errors: FILE, naming the function. */
quern_result quern__value_print(const quern_world *world, const quern__path *path, const void *value,
                                quern_sink sink, const char *function);

#endif
