/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Performs the listed transfers, divided among threads in batches of similar size.
 *
 * A store fetches its cache line from memory unless the line is cached. The pages of a save were last
 * used some frames ago and are read some frames later, if ever. So with many pages, each line is fetched
 * only to be overwritten, and evicts a line that the next frame needs. Therefore a large save stores
 * past the caches where the processor can, which about halves the time. A small save uses ordinary
 * stores, because its pages may be cached: the pages freed last are reused first. A restore uses
 * ordinary stores too, because the next frame reads what it writes. docs/history.md has figures. */

#include "core/history/history_internal.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

enum {
    TRANSFER_BATCH_BYTES = 64 * 1024, /* bytes that a thread copies per batch */
    STREAM_BYTES =
        512 * 1024 /* a save of at least so many bytes stores past the caches; the size of an L2 cache */
};

/* Copies past the caches. Precondition: `target` is aligned to a cache line. */
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

/* Orders stores past the caches before later stores. No other operation orders them, not even the
 * release store that reports a batch as done. */
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
