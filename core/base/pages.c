/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "core/base/pages.h"

#include <stdint.h>

#if QUERN__HAS_PAGES || defined(__linux__)
#include <sys/mman.h>
#endif

#if QUERN__HAS_PAGES

static char *map(size_t size_bytes)
{
    void *memory = mmap(NULL, size_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANON, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

static size_t bytes_to_alignment(const char *memory, size_t alignment_bytes)
{
    return (size_t)(-(uintptr_t)memory & (alignment_bytes - 1));
}

/* Operating systems place a new mapping next to the previous one. After one aligned mapping, most others of the
 * same size are aligned by themselves, so a mapping without padding is tried first. */
void *quern__pages_map(size_t size_bytes, size_t alignment_bytes)
{
    char *memory = map(size_bytes);
    if (memory == NULL || bytes_to_alignment(memory, alignment_bytes) == 0) return memory;
    munmap(memory, size_bytes);
    memory = map(size_bytes + alignment_bytes);
    if (memory == NULL) return NULL;
    const size_t before = bytes_to_alignment(memory, alignment_bytes);
    if (before > 0) munmap(memory, before);
    munmap(memory + before + size_bytes, alignment_bytes - before);
    return memory + before;
}

void quern__pages_unmap(void *memory, size_t size_bytes)
{
    munmap(memory, size_bytes);
}

#endif

void quern__advise_huge_pages(void *memory, size_t size_bytes)
{
#if defined(__linux__) && defined(MADV_HUGEPAGE)
    madvise(memory, size_bytes, MADV_HUGEPAGE);
#else
    (void)memory;
    (void)size_bytes;
#endif
}

void quern__collapse_huge_page(void *memory, size_t size_bytes)
{
    quern__advise_huge_pages(memory, size_bytes);
#if defined(__linux__) && defined(MADV_HUGEPAGE)
    enum { COLLAPSE = 25 }; /* MADV_COLLAPSE of Linux 6.1; headers of older C libraries lack it */
    madvise(memory, size_bytes, COLLAPSE);
#endif
}
