/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_REFLECT_HANDLE_TEXT_H
#define QUERN_CORE_REFLECT_HANDLE_TEXT_H

/* Conversion of entity handles to text and back. quern/reflect.h describes the text forms. */

#include "core/base/printer.h"

#include <quern/world.h>

/* Prints a handle. by_path: prints the path of names ("/tower/gun") if the entity has one. */
void quern__handle_print(const quern_world *world, quern_entity entity, bool by_path,
                         quern__printer *printer);

/* Parses a handle. `text` need not be zero-terminated. by_path: also accepts a path of names, which must lead to an
 * entity. Returns false if the text is no handle. */
bool quern__handle_read(const quern_world *world, const char *text, size_t bytes, bool by_path,
                        quern_entity *out_entity);

#endif
