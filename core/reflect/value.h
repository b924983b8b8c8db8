/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_REFLECT_VALUE_H
#define QUERN_CORE_REFLECT_VALUE_H

/* Conversion of fields of values to text and back. */

#include "core/reflect/path.h"

/* Parses a text for the field or element of the path, and stores the result in the value. An error leaves the value
 * unchanged. value: NULL to only check the text. Errors: INVALID_ARGUMENT, with a message that describes valid texts. */
quern_result quern__value_set_text(const quern_world *world, const quern__path *path, void *value,
                                   const char *text);

/* Prints the field or element of the path to a sink. function: name of the public call, for the message. Errors: IO. */
quern_result quern__value_print(const quern_world *world, const quern__path *path, const void *value,
                                quern_sink sink, const char *function);

#endif
