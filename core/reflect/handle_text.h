/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_REFLECT_HANDLE_TEXT_H
#define QUERN_CORE_REFLECT_HANDLE_TEXT_H

/* Handles of entities from and to text: see reflect.h. */

#include "core/base/printer.h"

#include <quern/world.h>

/* by_path: where names lead to the entity, that way. */
void quern__handle_print(const quern_world *world, quern_entity entity, bool by_path,
                         quern__printer *printer);

/* text is not ended by a 0. False: it is no handle; a path must lead to an entity. */
bool quern__handle_read(const quern_world *world, const char *text, size_t bytes, bool by_path,
                        quern_entity *out_entity);

#endif
