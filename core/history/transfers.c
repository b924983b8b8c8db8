/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Makes the transfers that were noted, shared out over threads in parts of about equal size.
 *
 * Stores fetch a line into the cache before they change some of it. A page that is written was last
 * touched some frames ago, and will be read some frames from now, if ever: where pages are many, it comes
 * from memory only to be overwritten, and puts something out of the cache that the next frame needs. So a
 * save that copies much writes its pages past the caches, where the processor can, which takes about half
 * the time. One that copies little may find its pages in the cache, as those that were let go last are
 * taken first, and stores as usual; so does restoring, for what it writes is what the next frame reads.
 * docs/history.md has figures. */

#include "core/history/history_internal.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

enum {
    TRANSFER_BATCH_BYTES = 64 * 1024, /* what a thread takes at once */
    STREAM_BYTES = 512 * 1024 /* that a save copies at least to go past the caches: as large as an L2 */
};

/* The target is at the beginning of a line. */
static void stream(char *target, const char *source, size_t bytes)
{
#if defined(__SSE2__)
    const size_t line_bytes = QUERN__CACHE_LINE_BYTES;
    for (; bytes >= line_bytes; bytes -= line_bytes, target += line_bytes, source += line_bytes) {
        const __m128i *from = (const void *)source;
        __m128i *to = (void *)target;
        const __m128i a = _mm_loadu_si128(from), b = _mm_loadu_si128(from + 1);
        const __m128i c = _mm_loadu_si128(from + 2), d = _mm_loadu_si128(from + 3);
        _mm_stream_si128(to, a);
        _mm_stream_si128(to + 1, b);
        _mm_stream_si128(to + 2, c);
        _mm_stream_si128(to + 3, d);
    }
#endif
    memcpy(target, source, bytes);
}

/* Stores past the caches are ordered by nothing else, not even by what tells another thread that a part is
 * done. */
static void end_stream(void)
{
#if defined(__SSE2__)
    _mm_sfence();
#endif
}

static void stream_some(void *argument, uint32_t begin, uint32_t end, uint32_t worker_index)
{
    (void)worker_index;
    const quern__transfer *transfers = argument;
    for (uint32_t i = begin; i < end; i++)
        stream(transfers[i].target, transfers[i].source, transfers[i].bytes);
    end_stream();
}

static void copy_some(void *argument, uint32_t begin, uint32_t end, uint32_t worker_index)
{
    (void)worker_index;
    const quern__transfer *transfers = argument;
    for (uint32_t i = begin; i < end; i++)
        memcpy(transfers[i].target, transfers[i].source, transfers[i].bytes);
}

void quern__history_run_transfers(quern__history *history, bool into_pages)
{
    const uint32_t count = history->transfers.count;
    const uint64_t bytes = history->copied_bytes;
    const uint64_t batches = bytes / TRANSFER_BATCH_BYTES + 1;
    const uint32_t at_once = (uint32_t)((count + batches - 1) / batches);
    quern__executor_run(history->executor, count, at_once,
                        into_pages && bytes >= STREAM_BYTES ? stream_some : copy_some,
                        history->transfers.items);
    history->transfers.count = 0;
}
