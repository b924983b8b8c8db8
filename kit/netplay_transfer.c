/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Worlds on their way to a machine that joins or watches, in chunks that may arrive in any order within a window.
 *
 * A machine that has an earlier world asks for a list: hashes of all chunks, which are sent before them. It looks for each
 * hash at all places of its archive that are a multiple of 4 bytes, and takes the chunks that it finds from there. So a
 * part of the world that is the same as before is not sent, also if it has moved within the archive. Whatever the earlier
 * world is, the archive that results is right: its checksums tell if two different chunks had the same hash, and then all
 * of it is sent. The hash of a chunk is a polynomial of its words modulo 2^64, which is moved on by one word in two
 * multiplications (Karp and Rabin, 1987). Its variable depends on the transfer. */
#include "kit/netplay_internal.h"

#include "kit/random.h"

#include <string.h>

enum {
    WORD_BYTES = 4,
    WORDS = QUERN__NETPLAY_CHUNK / WORD_BYTES,
    HASHES_PER_CHUNK = QUERN__NETPLAY_CHUNK / sizeof(uint64_t),
    MOST_PROBES =
        64 /* of a hash; hashes that a sender has made to collide have more, and are not looked for */
};

void quern__netplay_end_transfer(quern_netplay *netplay)
{
    quern__netplay_transfer *transfer = &netplay->transfer;
    const quern_allocator *allocator = &netplay->allocator;
    if (transfer->places != NULL)
        allocator->release(allocator->user_data, transfer->places,
                           transfer->place_count * sizeof *transfer->places, _Alignof(uint64_t));
    quern_byte_buffer_release(&transfer->bytes);
    quern_byte_buffer_release(&transfer->list);
    *transfer = (quern__netplay_transfer){.player = QUERN__NETPLAY_NEVER};
}

/* ------------------------------------------------------------------------------------------- the list */

static uint32_t count_chunks(uint64_t bytes)
{
    return (uint32_t)((bytes + QUERN__NETPLAY_CHUNK - 1) / QUERN__NETPLAY_CHUNK);
}

/* One chunk of the list has the hashes of HASHES_PER_CHUNK chunks, of which the last ones may be missing. */
uint32_t quern__netplay_list_bytes(const quern__netplay_transfer *transfer)
{
    const uint32_t chunk_count = count_chunks(transfer->total_bytes);
    return transfer->has_list
               ? (chunk_count + HASHES_PER_CHUNK) / (HASHES_PER_CHUNK + 1) * QUERN__NETPLAY_CHUNK
               : 0;
}

static uint64_t variable_of(uint32_t id)
{
    return (quern_random_mix(id) & ~(uint64_t)7) | 5;
}

static uint32_t word_at(const void *bytes, uint64_t index)
{
    uint32_t word;
    memcpy(&word, (const char *)bytes + index * WORD_BYTES, sizeof word);
    return word;
}

static uint64_t hash_chunk(const void *bytes, uint64_t variable)
{
    uint64_t hash = 0;
    for (uint32_t i = 0; i < WORDS; i++)
        hash = hash * variable + word_at(bytes, i);
    return hash;
}

void quern__netplay_list_chunks(const quern_netplay *netplay, const quern_byte_buffer *archive, uint32_t id,
                                quern_byte_buffer *out_list)
{
    static const char none[QUERN__NETPLAY_CHUNK] = {0};
    const uint32_t count = count_chunks(archive->size_bytes);
    const uint64_t variable = variable_of(id);
    bool is_whole = archive->size_bytes < UINT32_MAX / 2;
    out_list->allocator = netplay->allocator;
    const quern_sink sink = quern_sink_bytes(out_list);
    for (uint32_t i = 0; i < count && is_whole; i++) {
        const size_t offset = (size_t)i * QUERN__NETPLAY_CHUNK;
        const bool is_full = archive->size_bytes - offset >= QUERN__NETPLAY_CHUNK;
        const uint64_t hash = is_full ? hash_chunk((const char *)archive->bytes + offset, variable) : 0;
        is_whole = sink.write(sink.user_data, (const char *)&hash, sizeof hash);
    }
    const size_t rest = count % HASHES_PER_CHUNK;
    if (is_whole && rest > 0)
        is_whole = sink.write(sink.user_data, none, (HASHES_PER_CHUNK - rest) * sizeof(uint64_t));
    if (!is_whole) quern_byte_buffer_release(out_list); /* without memory for the list, all is sent */
}

/* ------------------------------------------------------------------------- chunks of an earlier world */

/* Chunks of the world by hash, in a table with open addresses. */
typedef struct chunk_table {
    const void *hashes;  /* the list */
    uint32_t *slots;     /* number of a chunk, plus 1; 0: empty */
    uint32_t shift_bits; /* 64 - shift_bits bits of a mixed hash are its first slot */
} chunk_table;

static uint64_t hash_at(const chunk_table *table, uint32_t chunk)
{
    uint64_t hash;
    memcpy(&hash, (const char *)table->hashes + (size_t)chunk * sizeof hash, sizeof hash);
    return hash;
}

/* Returns the slot of the hash, or the empty one for it; NULL after MOST_PROBES others. */
static uint32_t *find_slot(const chunk_table *table, uint64_t hash)
{
    const uint64_t mask = ((uint64_t)1 << (64 - table->shift_bits)) - 1;
    uint64_t at = hash * 0x9E3779B97F4A7C15u >> table->shift_bits;
    for (uint32_t i = 0; i < MOST_PROBES; i++, at = (at + 1) & mask)
        if (table->slots[at] == 0 || hash_at(table, table->slots[at] - 1) == hash) return &table->slots[at];
    return NULL;
}

/* Stores where the earlier world has the chunks of the table. */
static void look_for_chunks(quern_netplay *netplay, const chunk_table *table)
{
    const quern__netplay_transfer *transfer = &netplay->transfer;
    const char *earlier = netplay->def.earlier_world;
    const uint64_t variable = variable_of(transfer->id);
    const uint64_t word_count = netplay->def.earlier_world_bytes / WORD_BYTES;
    uint64_t power = 1, hash = hash_chunk(earlier, variable);
    for (uint32_t i = 0; i < WORDS; i++)
        power *= variable;
    for (uint64_t at = 0;; at++) {
        const uint32_t *slot = find_slot(table, hash), chunk = slot != NULL ? *slot : 0;
        if (chunk != 0 && transfer->places[chunk - 1] == 0) transfer->places[chunk - 1] = (uint32_t)at + 1;
        if (at + WORDS == word_count) break;
        hash = hash * variable + word_at(earlier, at + WORDS) - power * word_at(earlier, at);
    }
    /* Chunks with equal hashes have the place of the first one. */
    for (uint32_t i = 0; i < transfer->place_count; i++) {
        const uint32_t *slot = find_slot(table, hash_at(table, i));
        transfer->places[i] = slot != NULL ? transfer->places[*slot - 1] : 0;
    }
}

/* Finds the chunks that the earlier world has, when the list has arrived. Without memory for that, all is sent. */
static void use_list(quern_netplay *netplay)
{
    quern__netplay_transfer *transfer = &netplay->transfer;
    const quern_allocator *allocator = &netplay->allocator;
    const uint32_t count =
        (transfer->total_bytes - quern__netplay_list_bytes(transfer)) / QUERN__NETPLAY_CHUNK;
    uint32_t bits = 1;
    if (netplay->def.earlier_world == NULL || count == 0 ||
        netplay->def.earlier_world_bytes < QUERN__NETPLAY_CHUNK ||
        netplay->def.earlier_world_bytes >= UINT32_MAX)
        return;
    while (1u << bits < 2 * count)
        bits++;
    const size_t places_bytes = count * sizeof(uint32_t),
                 slots_bytes = ((size_t)1 << bits) * sizeof(uint32_t);
    uint32_t *places = allocator->allocate(allocator->user_data, places_bytes, _Alignof(uint64_t));
    uint32_t *slots =
        places == NULL ? NULL : allocator->allocate(allocator->user_data, slots_bytes, _Alignof(uint64_t));
    if (slots == NULL) {
        if (places != NULL)
            allocator->release(allocator->user_data, places, places_bytes, _Alignof(uint64_t));
        return;
    }
    memset(places, 0, places_bytes);
    memset(slots, 0, slots_bytes);
    transfer->places = places;
    transfer->place_count = count;
    const chunk_table table = {transfer->bytes.bytes, slots, 64 - bits};
    for (uint32_t i = 0; i < count; i++) {
        uint32_t *slot = find_slot(&table, hash_at(&table, i));
        if (slot != NULL && *slot == 0) *slot = i + 1;
    }
    look_for_chunks(netplay, &table);
    allocator->release(allocator->user_data, slots, slots_bytes, _Alignof(uint64_t));
}

/* ------------------------------------------------------------------------------------------- receiving */

static bool has_arrived(const quern__netplay_transfer *transfer, uint32_t at)
{
    return (transfer->arrived[at / 8] >> at % 8 & 1) != 0;
}

/* Makes room for the chunks up to one of the window. Memory grows with what has arrived: the announced size is not to
 * be trusted. */
static quern_result reserve_chunks(quern_netplay *netplay, uint32_t number)
{
    static const char zeros[QUERN__NETPLAY_CHUNK] = {0};
    quern__netplay_transfer *transfer = &netplay->transfer;
    const quern_sink sink = quern_sink_bytes(&transfer->bytes);
    const uint64_t end = ((uint64_t)number + 1) * QUERN__NETPLAY_CHUNK;
    transfer->bytes.allocator = netplay->allocator;
    while (transfer->bytes.size_bytes < end && transfer->bytes.size_bytes < transfer->total_bytes)
        if (!sink.write(sink.user_data, zeros, sizeof zeros))
            return quern_error_set(
                QUERN_ERROR_OUT_OF_MEMORY,
                "quern_netplay_advance: no memory for the next part of a world, of which "
                "%u of %u chunks have arrived: free memory, and call again",
                transfer->first_missing, count_chunks(transfer->total_bytes));
    return QUERN_OK;
}

static quern_result put_chunk(quern_netplay *netplay, uint32_t number, const void *bytes,
                              uint32_t size_bytes)
{
    quern__netplay_transfer *transfer = &netplay->transfer;
    const uint32_t at = number - transfer->first_missing;
    const quern_result result = reserve_chunks(netplay, number);
    if (result != QUERN_OK) return result;
    memcpy((char *)transfer->bytes.bytes + (size_t)number * QUERN__NETPLAY_CHUNK, bytes, size_bytes);
    transfer->arrived[at / 8] |= (uint8_t)(1u << at % 8);
    return QUERN_OK;
}

/* Moves the window on to the first chunk that is missing. Returns whether it has moved. */
static bool move_window(quern__netplay_transfer *transfer)
{
    uint32_t done = 0;
    while (done < QUERN__NETPLAY_CHUNK_WINDOW && has_arrived(transfer, done))
        done++;
    transfer->first_missing += done;
    for (uint32_t i = 0; i < QUERN__NETPLAY_CHUNK_WINDOW && done > 0; i++) {
        const bool is_set = i + done < QUERN__NETPLAY_CHUNK_WINDOW && has_arrived(transfer, i + done);
        transfer->arrived[i / 8] &= (uint8_t) ~(1u << i % 8);
        transfer->arrived[i / 8] |= (uint8_t)(is_set << i % 8);
    }
    return done > 0;
}

/* Takes chunks of the window from the earlier world. However often a list has one hash, no more than twice as much is
 * taken as there is. */
static quern_result reuse_chunks(quern_netplay *netplay)
{
    quern__netplay_transfer *transfer = &netplay->transfer;
    const uint32_t list_count = quern__netplay_list_bytes(transfer) / QUERN__NETPLAY_CHUNK;
    const uint64_t most = 2 * netplay->def.earlier_world_bytes / QUERN__NETPLAY_CHUNK;
    for (uint32_t i = 0; i < QUERN__NETPLAY_CHUNK_WINDOW; i++) {
        const uint32_t number = transfer->first_missing + i;
        if (number < list_count || number - list_count >= transfer->place_count ||
            has_arrived(transfer, i) || transfer->places[number - list_count] == 0 ||
            transfer->reused_count >= most)
            continue;
        const size_t place = transfer->places[number - list_count] - 1;
        const quern_result result =
            put_chunk(netplay, number, (const char *)netplay->def.earlier_world + place * WORD_BYTES,
                      QUERN__NETPLAY_CHUNK);
        if (result != QUERN_OK) return result;
        transfer->reused_count++;
    }
    return QUERN_OK;
}

quern_result quern__netplay_store_chunk(quern_netplay *netplay, const quern__netplay_chunk *chunk,
                                        bool *out_whole)
{
    quern__netplay_transfer *transfer = &netplay->transfer;
    const uint32_t number = chunk->offset / QUERN__NETPLAY_CHUNK;
    quern_result result = QUERN_OK;
    *out_whole = false;
    /* with a list, there is an archive after it */
    if (chunk->total_bytes <= (chunk->has_list ? QUERN__NETPLAY_CHUNK : 0)) return QUERN_OK;
    /* The sender has started again. Its transfers may have smaller numbers than those of its machine before. */
    const uint32_t life = netplay->players[chunk->sender].life;
    if (transfer->player != QUERN__NETPLAY_NEVER && chunk->sender == transfer->sender &&
        life != transfer->life)
        quern__netplay_end_transfer(netplay);
    if (transfer->player != QUERN__NETPLAY_NEVER) {
        /* Another player does not end the transfer, and its sender does so only with a newer one. */
        if (chunk->sender != transfer->sender || chunk->id < transfer->id ||
            (chunk->id == transfer->id &&
             (chunk->total_bytes != transfer->total_bytes || chunk->frame != transfer->frame ||
              chunk->has_list != transfer->has_list)))
            return QUERN_OK;
        if (chunk->id > transfer->id) quern__netplay_end_transfer(netplay);
    }
    if (transfer->player == QUERN__NETPLAY_NEVER)
        *transfer = (quern__netplay_transfer){.player = netplay->def.player,
                                              .sender = chunk->sender,
                                              .life = life,
                                              .id = chunk->id,
                                              .frame = chunk->frame,
                                              .total_bytes = chunk->total_bytes,
                                              .has_list = chunk->has_list};
    transfer->heard_ns = netplay->progressed_ns = netplay->now_ns;
    const uint32_t left = chunk->offset < chunk->total_bytes ? chunk->total_bytes - chunk->offset : 0;
    const uint32_t expected = left < QUERN__NETPLAY_CHUNK ? left : QUERN__NETPLAY_CHUNK;
    if (chunk->offset % QUERN__NETPLAY_CHUNK == 0 && expected > 0 && chunk->size_bytes == expected &&
        number >= transfer->first_missing && number - transfer->first_missing < QUERN__NETPLAY_CHUNK_WINDOW)
        result = put_chunk(netplay, number, chunk->bytes, chunk->size_bytes);
    const uint32_t list_count = quern__netplay_list_bytes(transfer) / QUERN__NETPLAY_CHUNK;
    while (result == QUERN_OK && move_window(transfer)) {
        if (transfer->has_list && !transfer->has_used_list && transfer->first_missing >= list_count) {
            transfer->has_used_list = true;
            use_list(netplay);
        }
        if (transfer->places != NULL) result = reuse_chunks(netplay);
    }
    *out_whole = (uint64_t)transfer->first_missing * QUERN__NETPLAY_CHUNK >= transfer->total_bytes;
    return result;
}
