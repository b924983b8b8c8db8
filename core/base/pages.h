/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_BASE_PAGES_H
#define QUERN_CORE_BASE_PAGES_H

/* Memory straight from the system, to which it goes back the moment it is released: an allocator keeps
 * large aligned blocks for its next user, who may never come. */

#include <stddef.h>

/* The alignment from which on the default allocator takes memory from the system: that of slabs and pages
 * of records, which are as large. */
#define QUERN__PAGES_ALIGNMENT_BYTES ((size_t)2 << 20)

/* Not under the address sanitizer, which finds leaks only in what its own allocator gave. */
#if defined(__SANITIZE_ADDRESS__)
#define QUERN__HAS_PAGES 0
#elif defined(__linux__) || defined(__APPLE__) || defined(__FreeBSD__) || defined(__NetBSD__) || \
    defined(__OpenBSD__) || defined(__DragonFly__)
#define QUERN__HAS_PAGES 1
#else
#define QUERN__HAS_PAGES 0
#endif
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#undef QUERN__HAS_PAGES
#define QUERN__HAS_PAGES 0
#endif
#endif

#if QUERN__HAS_PAGES

/* Zeroed memory, of which nothing is resident until it is touched; NULL when there is none. Alignment, a
 * power of two, and size are multiples of the system's pages. */
void *quern__pages_map(size_t size_bytes, size_t alignment_bytes);

void quern__pages_unmap(void *memory, size_t size_bytes);

#endif

/* Asks for huge pages where the system has them. Only advice: nothing depends on it. */
void quern__advise_huge_pages(void *memory, size_t size_bytes);

/* Makes a huge page of memory that is mostly in use already, where the system can. That takes some
 * hundreds of microseconds. */
void quern__collapse_huge_page(void *memory, size_t size_bytes);

#endif
