/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_BASE_PAGES_H
#define QUERN_CORE_BASE_PAGES_H

/* Memory mapped from the operating system. Releasing it returns it to the system at once, while an allocator would keep
 * large aligned blocks for reuse. */

#include <stddef.h>

/* The default allocator maps memory of at least this alignment. Slabs and pages of records have it; it is also their
 * size. */
#define QUERN__PAGES_ALIGNMENT_BYTES ((size_t)2 << 20)

/* Off under the address sanitizer, which detects leaks only in memory of its own allocator. */
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

/* Returns zeroed memory, or NULL if out of memory. A page becomes resident when it is first accessed. The size and the
 * alignment, a power of two, are multiples of the system's page size. */
void *quern__pages_map(size_t size_bytes, size_t alignment_bytes);

void quern__pages_unmap(void *memory, size_t size_bytes);

#endif

/* Advises the system to use huge pages. No effect on systems without such advice. */
void quern__advise_huge_pages(void *memory, size_t size_bytes);

/* Turns memory that is already in use into a huge page, if the system can. Costs some hundreds of microseconds. */
void quern__collapse_huge_page(void *memory, size_t size_bytes);

#endif
