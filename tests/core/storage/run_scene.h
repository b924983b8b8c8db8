/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_TESTS_CORE_STORAGE_RUN_SCENE_H
#define QUERN_TESTS_CORE_STORAGE_RUN_SCENE_H

/* Chunks without an archetype, for tests of data that are kept by chunk and row. */

#include "core/storage/chunk.h"

#include <criterion/criterion.h>

/* Allocates the first `count` chunks of an archetype with runs of this shape; at most QUERN__RUN_CHUNKS. */
static inline void allocate_chunks(quern__slabs *slabs, const quern_allocator *allocator,
                                   const quern__run_shape *shape, uint32_t count, quern__chunk **out_chunks)
{
    const uint32_t run_chunks = 1u << shape->shift;
    char *run = NULL;
    for (uint32_t i = 0; i < count; i++) {
        if (i % run_chunks == 0) {
            run = quern__run_allocate(slabs, allocator, shape->shift);
            cr_assert_not_null(run);
            quern__run_assign(run, shape->shift, NULL, i);
        }
        out_chunks[i] =
            (quern__chunk *)((uintptr_t)run + (uintptr_t)(i % run_chunks) * shape->row_capacity);
    }
}

#endif
