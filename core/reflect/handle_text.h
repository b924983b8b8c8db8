/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_REFLECT_HANDLE_TEXT_H
#define QUERN_CORE_REFLECT_HANDLE_TEXT_H

/* Conversion of entity handles to text and back. quern/reflect.h describes the text forms. */

#include "core/base/printer.h"
#include "core/storage/storage.h"

#include <quern/world.h>

/* Prints a handle. by_path: prints the path of names ("/tower/gun") if the entity has one. */
void quern__handle_print(const quern_world *world, quern_entity entity, bool by_path,
                         quern__printer *printer);

/* Finds the slot at a path of names that begins with '/'. Sets *out_slot to QUERN__SLOT_NONE if bytes is 0. Returns false
 * if no entity has the path. `text` need not be zero-terminated. */
bool quern__handle_find_path(const quern__storage *storage, const char *text, size_t bytes,
                             uint32_t *out_slot);

/* Parses a handle. `text` need not be zero-terminated. by_path: also accepts a path of names, which must lead to an
 * entity. Returns false, with *out_entity unchanged, if the text is no handle. */
bool quern__handle_read(const quern_world *world, const char *text, size_t bytes, bool by_path,
                        quern_entity *out_entity);

#endif
