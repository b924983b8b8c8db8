/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "kit/ranks_internal.h"

/* Packets, exchanges, sums over all ranks, and the loss of a rank. A packet of another exchange than the present one is early,
 * since no rank can be behind one that has completed an exchange with it; it waits in a list. */

enum { RANKS_MAGIC = 0x514b4e52 }; /* "RNKQ" */

struct ranks_early {
    ranks_early *next;
    uint32_t from;
    ranks_head head;
    quern_byte_buffer bytes;
};

/* -------------------------------------------------------------------------------------------- bytes */

quern_result quern__ranks_fail_null(const char *call, const char *argument)
{
    return quern_error_set(QUERN_ERROR_NULL_ARGUMENT, "%s: '%s' is NULL", call, argument);
}

void *quern__ranks_append(quern_byte_buffer *buffer, const void *bytes, size_t size_bytes)
{
    static const char zeros[4096];
    static char nothing;
    const size_t begin = buffer->size_bytes, end = begin + size_bytes;
    if (end <= buffer->capacity_bytes) {
        if (bytes != NULL && size_bytes > 0) memcpy((char *)buffer->bytes + begin, bytes, size_bytes);
        buffer->size_bytes = end;
        return buffer->bytes != NULL ? (char *)buffer->bytes + begin : &nothing;
    }
    const quern_sink sink = quern_sink_bytes(buffer); /* which makes the buffer larger */
    while (buffer->size_bytes < end) {
        const size_t rest = end - buffer->size_bytes;
        const size_t piece = bytes == NULL && rest > sizeof zeros ? sizeof zeros : rest;
        if (sink.write(sink.user_data, bytes != NULL ? bytes : zeros, piece)) continue;
        buffer->size_bytes = begin;
        quern_error_set(QUERN_ERROR_OUT_OF_MEMORY, "quern_ranks_run: out of memory for a list of %zu bytes",
                        end);
        return NULL;
    }
    return (char *)buffer->bytes + begin;
}

uint64_t quern__ranks_checksum(const void *bytes, size_t size_bytes)
{
    const char *at = bytes;
    uint64_t sum = 0x9E3779B97F4A7C15u ^ size_bytes;
    for (; size_bytes > 0;) {
        uint64_t word = 0;
        const size_t step = size_bytes < sizeof word ? size_bytes : sizeof word;
        memcpy(&word, at, step);
        sum = (sum ^ word) * 0xBF58476D1CE4E5B9u;
        sum ^= sum >> 29;
        at += step;
        size_bytes -= step;
    }
    return sum;
}

double quern__ranks_now(const quern_ranks *ranks)
{
    const quern_ranks_transport *transport = &ranks->def.transport;
    return transport->now != NULL ? transport->now(transport->user_data) : 1e-9 * (double)quern_clock_ns();
}

/* ------------------------------------------------------------------------------------------ sending */

static quern_result post(quern_ranks *ranks, uint32_t to, ranks_kind kind, const void *bytes,
                         size_t size_bytes)
{
    const ranks_head head = {.magic = RANKS_MAGIC,
                             .kind = (uint32_t)kind,
                             .exchange = ranks->exchange,
                             .frame = ranks->frame,
                             .size_bytes = size_bytes,
                             .checksum = quern__ranks_checksum(bytes, size_bytes)};
    const quern_ranks_transport *transport = &ranks->def.transport;
    ranks->packet.size_bytes = 0;
    if (quern__ranks_append(&ranks->packet, &head, sizeof head) == NULL ||
        quern__ranks_append(&ranks->packet, bytes, size_bytes) == NULL)
        return QUERN_ERROR_OUT_OF_MEMORY;
    ranks->own.sent_bytes += ranks->packet.size_bytes;
    ranks->own.packet_count++;
    if (transport->send(transport->user_data, to, ranks->packet.bytes, ranks->packet.size_bytes))
        return QUERN_OK;
    return quern_error_set(QUERN_ERROR_IO,
                           "quern_ranks_run: %zu bytes could not be sent from rank %u to rank %u: the "
                           "transport refuses them",
                           ranks->packet.size_bytes, (unsigned)ranks->rank, (unsigned)to);
}

quern_result quern__ranks_send(quern_ranks *ranks, uint32_t to, const quern_byte_buffer *bytes)
{
    return post(ranks, to, RANKS_DATA, bytes->bytes, bytes->size_bytes);
}

/* Sends a packet to all ranks that may still be there; failures do not matter any more. */
static void post_all(quern_ranks *ranks, ranks_kind kind, const char *text)
{
    for (uint32_t i = 0; i < ranks->rank_count; i++)
        if (i != ranks->rank) (void)post(ranks, i, kind, text, strlen(text));
}

/* Ends the rank with the present message. */
static quern_result end(quern_ranks *ranks, quern_result result)
{
    ranks->is_ended = true;
    snprintf(ranks->ending, sizeof ranks->ending, "%s", quern_error_message());
    return result;
}

quern_result quern__ranks_fail(quern_ranks *ranks, quern_result result)
{
    if (ranks->is_ended) return result;
    end(ranks, result);
    if (ranks->rank_count > 1) post_all(ranks, RANKS_FAILED, ranks->ending);
    return quern_error_set(result, "%s", ranks->ending);
}

/* ---------------------------------------------------------------------------------------- exchanges */

static quern_result bad_packet(uint32_t from, const char *what)
{
    return quern_error_set(
        QUERN_ERROR_BAD_ARCHIVE,
        "quern_ranks_run: a packet of rank %u %s: check that all ranks run the same program",
        (unsigned)from, what);
}

void quern__ranks_begin(quern_ranks *ranks)
{
    for (uint32_t i = 0; i < ranks->rank_count; i++)
        ranks->peers[i].is_expected = ranks->peers[i].has_arrived = false;
    ranks->exchange++;
    ranks->missing = 0;
    ranks->is_exchanging = true;
    ranks->deadline = quern__ranks_now(ranks) + ranks->def.timeout_seconds;
    ranks->waiting_since_ns = quern_clock_ns();
    if (ranks->def.trace != NULL)
        ranks->zone = quern_trace_zone_begin(ranks->def.trace, 0, ranks->zone_name);
}

void quern__ranks_expect(quern_ranks *ranks, uint32_t from)
{
    ranks->peers[from].is_expected = true;
    ranks->missing++;
}

/* Makes bytes of the present exchange, which follow a head in `bytes`, those of a rank. */
static quern_result accept(quern_ranks *ranks, uint32_t from, const char *bytes, size_t size_bytes)
{
    ranks_peer *peer = &ranks->peers[from];
    if (!peer->is_expected || peer->has_arrived) return bad_packet(from, "came out of turn");
    peer->in.size_bytes = 0;
    if (quern__ranks_append(&peer->in, bytes, size_bytes) == NULL) return QUERN_ERROR_OUT_OF_MEMORY;
    peer->has_arrived = true;
    ranks->missing--;
    return QUERN_OK;
}

static void release_early(quern_ranks *ranks, ranks_early *early)
{
    quern_byte_buffer_release(&early->bytes);
    ranks->allocator.release(ranks->allocator.user_data, early, sizeof *early, 16);
}

static quern_result keep_early(quern_ranks *ranks, uint32_t from, const ranks_head *head, const char *bytes)
{
    ranks_early *early = ranks->allocator.allocate(ranks->allocator.user_data, sizeof *early, 16);
    if (early == NULL)
        return quern_error_set(QUERN_ERROR_OUT_OF_MEMORY,
                               "quern_ranks_run: out of memory for a packet of %zu bytes of rank %u",
                               (size_t)head->size_bytes, (unsigned)from);
    *early = (ranks_early){.from = from, .head = *head, .bytes = {.allocator = ranks->allocator}};
    if (quern__ranks_append(&early->bytes, bytes, (size_t)head->size_bytes) == NULL) {
        release_early(ranks, early);
        return QUERN_ERROR_OUT_OF_MEMORY;
    }
    early->next = ranks->early;
    ranks->early = early;
    return QUERN_OK;
}

static quern_result take_early(quern_ranks *ranks)
{
    for (ranks_early **link = &ranks->early; *link != NULL;) {
        ranks_early *early = *link;
        if (early->head.exchange != ranks->exchange) {
            link = &early->next;
            continue;
        }
        *link = early->next;
        const quern_result result = accept(ranks, early->from, early->bytes.bytes, early->bytes.size_bytes);
        release_early(ranks, early);
        if (result != QUERN_OK) return result;
    }
    return QUERN_OK;
}

static void begin_parting(quern_ranks *ranks)
{
    if (ranks->is_parting) return;
    ranks->is_parting = true;
    ranks->deadline = quern__ranks_now(ranks) + ranks->def.timeout_seconds;
    post_all(ranks, RANKS_PARTING, "");
}

static quern_result take_packet(quern_ranks *ranks, uint32_t from)
{
    ranks_head head;
    const char *bytes = (const char *)ranks->arrived.bytes + sizeof head;
    if (from >= ranks->rank_count || from == ranks->rank || ranks->arrived.size_bytes < sizeof head)
        return bad_packet(from, "is too short");
    memcpy(&head, ranks->arrived.bytes, sizeof head);
    if (head.magic != RANKS_MAGIC || head.size_bytes != ranks->arrived.size_bytes - sizeof head ||
        head.checksum != quern__ranks_checksum(bytes, ranks->arrived.size_bytes - sizeof head))
        return bad_packet(from, "is damaged");
    if (head.kind == RANKS_FAILED) {
        quern_error_set(QUERN_ERROR_CANCELLED, "quern_ranks_run: rank %u has failed in frame %llu: %.*s",
                        (unsigned)from, (unsigned long long)head.frame,
                        head.size_bytes < sizeof ranks->ending ? (int)head.size_bytes
                                                               : (int)sizeof ranks->ending,
                        bytes);
        return end(ranks, QUERN_ERROR_CANCELLED);
    }
    if (head.kind == RANKS_PARTING) {
        ranks->peers[from].is_parting = true;
        begin_parting(ranks);
        return QUERN_OK;
    }
    if (head.kind != RANKS_DATA || head.exchange < ranks->exchange)
        return bad_packet(from, "is out of date");
    if (head.exchange > ranks->exchange) return keep_early(ranks, from, &head, bytes);
    return accept(ranks, from, bytes, (size_t)head.size_bytes);
}

/* Names the ranks that have not answered, once the others had time to. */
static quern_result part(quern_ranks *ranks)
{
    char lost[160] = "", advice[RANKS_PATH_BYTES + 96] = "";
    size_t length = 0;
    uint32_t count = 0;
    for (uint32_t i = 0; i < ranks->rank_count; i++) {
        if (i == ranks->rank || ranks->peers[i].is_parting) continue;
        count++;
        if (count <= 10)
            length += (size_t)snprintf(lost + length, sizeof lost - length, " rank %u", (unsigned)i);
    }
    if (count > 0 && quern__ranks_now(ranks) < ranks->deadline) return QUERN_OK;
    if (ranks->own.checkpoint_frame != UINT64_MAX)
        snprintf(advice, sizeof advice, "; go on from the checkpoint of frame %llu in '%s'",
                 (unsigned long long)ranks->own.checkpoint_frame, ranks->folder);
    quern_error_set(QUERN_ERROR_UNAVAILABLE,
                    "quern_ranks_run: rank %u stops in frame %llu:%s%s did not answer for %g s%s",
                    (unsigned)ranks->rank, (unsigned long long)ranks->frame, count > 0 ? lost : " a rank",
                    count > 10 ? " and others" : "", ranks->def.timeout_seconds, advice);
    return end(ranks, QUERN_ERROR_UNAVAILABLE);
}

quern_result quern__ranks_receive(quern_ranks *ranks, bool *out_complete)
{
    const quern_ranks_transport *transport = &ranks->def.transport;
    quern_result result = take_early(ranks);
    uint32_t from;
    *out_complete = false;
    while (result == QUERN_OK && (ranks->missing > 0 || ranks->is_parting) && transport->receive != NULL &&
           transport->receive(transport->user_data, &ranks->arrived, &from))
        result = take_packet(ranks, from);
    if (result != QUERN_OK) return result;
    if (ranks->is_parting) return part(ranks);
    if (ranks->missing > 0) {
        if (quern__ranks_now(ranks) > ranks->deadline) begin_parting(ranks);
        return QUERN_OK;
    }
    ranks->own.wait_ns += quern_clock_ns() - ranks->waiting_since_ns;
    if (ranks->def.trace != NULL) quern_trace_zone_end(&ranks->zone);
    ranks->is_exchanging = false;
    *out_complete = true;
    return QUERN_OK;
}

void quern__ranks_close_wire(quern_ranks *ranks)
{
    while (ranks->early != NULL) {
        ranks_early *early = ranks->early;
        ranks->early = early->next;
        release_early(ranks, early);
    }
}

/* ------------------------------------------------------------------------------ numbers of all ranks */

static void combine(quern_ranks *ranks, const int64_t *other)
{
    int64_t *own = ranks->numbers.bytes;
    const uint32_t count = RANKS_COUNT(ranks->numbers, int64_t);
    for (uint32_t i = 0; i < count; i++) {
        if (i < ranks->sum_count)
            own[i] = (int64_t)((uint64_t)own[i] + (uint64_t)other[i]);
        else if (i < ranks->sum_count + ranks->minimum_count ? other[i] < own[i] : other[i] > own[i])
            own[i] = other[i];
    }
}

quern_result quern__ranks_begin_reduce(quern_ranks *ranks, uint32_t sum_count, uint32_t minimum_count)
{
    ranks->sum_count = sum_count;
    ranks->minimum_count = minimum_count;
    ranks->reduce_state = 1;
    quern__ranks_begin(ranks);
    for (uint32_t child = 2 * ranks->rank + 1; child <= 2 * ranks->rank + 2; child++)
        if (child < ranks->rank_count) quern__ranks_expect(ranks, child);
    return QUERN_OK;
}

quern_result quern__ranks_reduce(quern_ranks *ranks, bool *out_complete)
{
    const uint32_t parent = (ranks->rank - 1) / 2;
    quern_result result = QUERN_OK;
    *out_complete = false;
    for (uint32_t i = 0; i < ranks->rank_count; i++)
        if (ranks->peers[i].is_expected && ranks->peers[i].in.size_bytes != ranks->numbers.size_bytes)
            return bad_packet(i, "has another length");
    if (ranks->reduce_state == 1) {
        for (uint32_t child = 2 * ranks->rank + 1; child <= 2 * ranks->rank + 2; child++)
            if (child < ranks->rank_count) combine(ranks, ranks->peers[child].in.bytes);
        if (ranks->rank > 0) result = quern__ranks_send(ranks, parent, &ranks->numbers);
        ranks->reduce_state = 2;
        quern__ranks_begin(ranks);
        if (ranks->rank > 0) quern__ranks_expect(ranks, parent);
        return result;
    }
    if (ranks->rank > 0)
        memcpy(ranks->numbers.bytes, ranks->peers[parent].in.bytes, ranks->numbers.size_bytes);
    for (uint32_t child = 2 * ranks->rank + 1; child <= 2 * ranks->rank + 2 && result == QUERN_OK; child++)
        if (child < ranks->rank_count) result = quern__ranks_send(ranks, child, &ranks->numbers);
    ranks->reduce_state = 0;
    *out_complete = true;
    return result;
}
