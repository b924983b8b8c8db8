/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "link.h"

#include <string.h>

/* What a rank has sent becomes what its neighbour receives; the buffers change places. */
static void swap(quern_byte_buffer *out, quern_byte_buffer *in)
{
    const quern_byte_buffer received = *out;
    *out = *in;
    *in = received;
}

static bool exchange(Link *link, Rank *ranks)
{
    ranks[0].mail.in[SIDE_LEFT].size_bytes = 0;
    ranks[link->rank_count - 1].mail.in[SIDE_RIGHT].size_bytes = 0;
    for (uint32_t i = 0; i + 1 < link->rank_count; i++) {
        swap(&ranks[i].mail.out[SIDE_RIGHT], &ranks[i + 1].mail.in[SIDE_LEFT]);
        swap(&ranks[i + 1].mail.out[SIDE_LEFT], &ranks[i].mail.in[SIDE_RIGHT]);
    }
    return true;
}

static bool share(Link *link, const void *own, size_t size_bytes, void *all)
{
    memcpy(all, own, size_bytes * link->rank_count);
    return true;
}

Link link_open_alone(uint32_t rank_count)
{
    return (Link){.here_count = rank_count, .rank_count = rank_count, .exchange = exchange, .share = share};
}
