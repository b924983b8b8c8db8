/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_QUERY_INDEX_INTERNAL_H
#define QUERN_CORE_QUERY_INDEX_INTERNAL_H

/* Indexes as schedules use them. */

#include <quern/index.h>

/* Checks an index that a system of the world declares. Errors: INVALID_ARGUMENT. */
quern_result quern__index_check_world(const quern_index *index, const quern_world *world);

/* Count the systems that declare the index. An index that the program has destroyed goes with the last one. */
void quern__index_add_user(quern_index *index);
void quern__index_remove_user(quern_index *index);

quern_component quern__index_component(const quern_index *index);

/* Brings the index up to date in a frame. Thread-safe: no system writes the component meanwhile, so of several systems that
 * declare the index and begin at the same time, one changes it, and before any of them reads it. Errors: those of
 * quern_index_find. */
quern_result quern__index_refresh_inside(quern_index *index);

/* Finds the entities of a value, as of the last refresh. Returns their number. */
uint32_t quern__index_find(const quern_index *index, uint64_t value, const quern_entity **out_entities);

#endif
