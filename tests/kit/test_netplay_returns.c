/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Machines of netplay that join or watch, and have an earlier world (quern_netplay_def.earlier_world). */
#include "tests/kit/netplay_machines.h"
#include "tests/support/effort.h"
#include "tests/support/failing_allocator.h"

#include <string.h>

enum { STILL = 10000, CHUNK = QUERN__NETPLAY_CHUNK };

/* Creates entities that never change. */
static void add_still_entities(const machine *at, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const Rock rock = {{i, i * i, i * 2654435761u, i / 9, 1, 2}};
        const void *values[] = {&rock};
        cr_assert_eq(quern_entity_create_with(at->played.world, &at->played.rock, values, 1, NULL),
                     QUERN_OK);
    }
}

static void save(const machine *saved, quern_byte_buffer *out_world)
{
    *out_world = (quern_byte_buffer){0};
    cr_assert_eq(quern_world_save(saved->played.world, quern_sink_bytes(out_world),
                                  &(quern_save_def){.schedules = {saved->played.schedule}}),
                 QUERN_OK);
}

/* A session of two players, of which the second one is gone from tick 60 to tick 200, and then joins. */
typedef struct session {
    network net;
    machine machines[2];
    quern_netplay_def def;
    quern_byte_buffer earlier; /* the world of player 1 when it went */
} session;

static void open_session(session *it, uint64_t seed, uint32_t lost_percent, bool spectates)
{
    it->def = (quern_netplay_def){
        .player_count = 2, .timeout_seconds = 0.03, .max_rollback = 6, .spectator_count = spectates};
    open_network(&it->net, seed);
    it->net.max_delay = 3;
    open_machines(it->machines, 2, &it->net, &it->def);
    for (uint32_t i = 0; i < 2; i++)
        add_still_entities(&it->machines[i], STILL);
    for (it->net.tick = 0; it->net.tick < 200; it->net.tick++) {
        if (it->net.tick == 60) {
            save(&it->machines[1], &it->earlier);
            close_machine(&it->machines[1]);
        }
        step_machine(&it->machines[0], NULL);
        if (it->net.tick < 60) step_machine(&it->machines[1], NULL);
    }
    it->net.count = 0;
    it->net.lost_percent = lost_percent;
}

static void close_session(session *it)
{
    quern_byte_buffer_release(&it->earlier);
    close_machines(it->machines, 2, &it->net);
}

/* Lets player 1 return, with an earlier world or without one. Returns the bytes that player 0 sends meanwhile. */
static uint64_t play_return(session *it, const void *earlier, size_t earlier_bytes,
                            const quern_allocator *allocator)
{
    quern_netplay_def def = it->def;
    const uint64_t before = status_of(&it->machines[0]).sent_bytes;
    machine *back = &it->machines[1];
    def.joins = true;
    def.earlier_world = earlier;
    def.earlier_world_bytes = earlier_bytes;
    if (allocator != NULL) def.allocator = *allocator;
    open_machine(back, &it->net, 1, &def);
    for (const uint64_t end = it->net.tick + 1500; it->net.tick < end && !back->netplay->is_admitted;
         it->net.tick++)
        for (uint32_t i = 0; i < 2; i++)
            step_machine(&it->machines[i], NULL);
    cr_assert(back->netplay->is_admitted);
    const uint64_t sent = status_of(&it->machines[0]).sent_bytes - before;
    for (const uint64_t end = it->net.tick + 100; it->net.tick < end; it->net.tick++)
        for (uint32_t i = 0; i < 2; i++) {
            step_machine(&it->machines[i], NULL);
            cr_assert_eq(it->machines[i].result, QUERN_OK, "%s", quern_error_message());
        }
    cr_assert_eq(status_of(&it->machines[0]).present, 3);
    cr_assert_gt(status_of(back).confirmed_frame, back->netplay->loaded_frame + 30);
    return sent;
}

Test(netplay_returns, a_player_that_returns_gets_what_has_changed)
{
    for (uint32_t lost_percent = 0; lost_percent <= 20; lost_percent += 20) {
        session it;
        open_session(&it, 1, lost_percent, false);
        const uint64_t whole = play_return(&it, NULL, 0, NULL);
        const quern_netplay_status without = status_of(&it.machines[1]);
        close_session(&it);
        open_session(&it, 1, lost_percent, false);
        const uint64_t part = play_return(&it, it.earlier.bytes, it.earlier.size_bytes, NULL);
        const quern_netplay_status with = status_of(&it.machines[1]);
        close_session(&it);
        cr_assert_eq(without.reused_bytes, 0);
        cr_assert_gt(without.loaded_bytes, 32 * STILL);
        /* Handles, 8 of 32 bytes, differ between the worlds of one process; so do the chunks at their ends. */
        cr_assert_gt(with.reused_bytes, with.loaded_bytes * 55 / 100);
        cr_assert_leq(with.reused_bytes, with.loaded_bytes);
        cr_assert_lt(part, whole * 6 / 10, "%u of %u bytes", (unsigned)part, (unsigned)whole);
    }
}

/* An earlier world may be a part of one, damaged, or no world at all. */
Test(netplay_returns, any_earlier_world_gives_the_same_world)
{
    for (uint32_t round = 0; round < effort(6, 3, 1); round++) {
        session it;
        random_source random = {round};
        open_session(&it, round, 0, false);
        unsigned char *bytes = it.earlier.bytes;
        size_t size = it.earlier.size_bytes;
        if (round == 1) size = size / 2 + 3;
        if (round == 2) size = 100;
        for (uint32_t i = 0; i < 400 && round == 3; i++)
            bytes[random_below(&random, (uint32_t)size)] ^= 255;
        if (round == 4) memset(bytes, 0, size);
        if (round == 5) bytes++, size--; /* not aligned */
        (void)play_return(&it, bytes, size, NULL);
        cr_assert_eq(status_of(&it.machines[1]).reused_bytes > 0, round < 2 || round == 3);
        close_session(&it);
    }
}

Test(netplay_returns, a_player_returns_after_failed_allocations)
{
    failing_allocator *memory = failing_allocator_create();
    const quern_allocator allocator = failing_allocator_interface(memory);
    for (uint32_t call = 1; call < effort(12, 6, 2); call++) {
        session it;
        quern_byte_buffer earlier;
        open_session(&it, call, 0, false);
        earlier = it.earlier;
        quern_netplay_def def = it.def;
        def.joins = true;
        def.earlier_world = earlier.bytes;
        def.earlier_world_bytes = earlier.size_bytes;
        def.allocator = allocator;
        failing_allocator_heal(memory);
        open_machine(&it.machines[1], &it.net, 1, &def);
        failing_allocator_fail_at(memory, call);
        for (const uint64_t end = it.net.tick + 800; it.net.tick < end; it.net.tick++)
            for (uint32_t i = 0; i < 2; i++) {
                step_machine(&it.machines[i], NULL);
                cr_assert(it.machines[i].result == QUERN_OK ||
                          it.machines[i].result == QUERN_ERROR_OUT_OF_MEMORY);
            }
        cr_assert_eq(status_of(&it.machines[0]).present, 3);
        close_session(&it);
        cr_assert_eq(failing_allocator_outstanding_bytes(memory), 0);
    }
    failing_allocator_close(memory);
}

Test(netplay_returns, a_spectator_that_returns_gets_what_has_changed)
{
    session it;
    machine spectator;
    open_session(&it, 5, 0, true);
    quern_netplay_def def = it.def;
    def.joins = true;
    open_machine(&it.machines[1], &it.net, 1, &def);
    def = (quern_netplay_def){.player_count = 2,
                              .spectates = true,
                              .max_rollback = 6,
                              .earlier_world = it.earlier.bytes,
                              .earlier_world_bytes = it.earlier.size_bytes};
    open_machine(&spectator, &it.net, 0, &def);
    for (const uint64_t end = it.net.tick + 400; it.net.tick < end; it.net.tick++) {
        for (uint32_t i = 0; i < 2; i++)
            step_machine(&it.machines[i], NULL);
        cr_assert_eq(quern_netplay_advance(spectator.netplay, NULL, NULL, NULL), QUERN_OK, "%s",
                     quern_error_message());
    }
    const quern_netplay_status status = status_of(&spectator);
    cr_assert_not(status.is_joining);
    cr_assert_gt(status.reused_bytes, status.loaded_bytes * 55 / 100);
    cr_assert_gt(status.frame, 100);
    close_machine(&spectator);
    close_session(&it);
}

/* ------------------------------------------------------------------------------------- without a network */

/* A joining machine that gets chunks one by one. */
typedef struct receiver {
    network net;
    machine at;
    failing_allocator *memory;
} receiver;

static void open_receiver(receiver *it, const void *earlier, size_t earlier_bytes)
{
    it->memory = failing_allocator_create();
    open_network(&it->net, 1);
    open_machine(&it->at, &it->net, 1,
                 &(quern_netplay_def){.player_count = 2,
                                      .joins = true,
                                      .earlier_world = earlier,
                                      .earlier_world_bytes = earlier_bytes,
                                      .allocator = failing_allocator_interface(it->memory)});
}

static void close_receiver(receiver *it)
{
    close_machines(&it->at, 1, &it->net);
    cr_assert_eq(failing_allocator_outstanding_bytes(it->memory), 0);
    failing_allocator_close(it->memory);
}

/* Gives the receiver all chunks of list and archive that it lacks. Returns how many these are. */
static uint32_t receive_all(receiver *it, const quern_byte_buffer *list, const quern_byte_buffer *archive,
                            random_source *random)
{
    const uint64_t total = list->size_bytes + archive->size_bytes;
    const quern__netplay_transfer *transfer = &it->at.netplay->transfer;
    uint32_t count = 0;
    for (bool is_whole = false; !is_whole;) {
        const uint32_t window = random_below(random, 3);
        const uint64_t offset = ((uint64_t)transfer->first_missing + window) * CHUNK;
        if (offset >= total || (transfer->arrived[0] >> window & 1) != 0) continue;
        const size_t left = (size_t)(total - offset);
        const char *bytes = offset < list->size_bytes
                                ? (const char *)list->bytes + offset
                                : (const char *)archive->bytes + (offset - list->size_bytes);
        const quern__netplay_chunk chunk = {.id = 9,
                                            .total_bytes = (uint32_t)total,
                                            .has_list = list->size_bytes > 0,
                                            .offset = (uint32_t)offset,
                                            .size_bytes = left < CHUNK ? (uint32_t)left : CHUNK,
                                            .bytes = (const unsigned char *)bytes};
        cr_assert_eq(quern__netplay_store_chunk(it->at.netplay, &chunk, &is_whole), QUERN_OK);
        count++;
    }
    return count;
}

/* Adds bytes of which an eighth is zero. */
static void add_bytes(quern_byte_buffer *to, random_source *random, size_t count)
{
    const quern_sink sink = quern_sink_bytes(to);
    for (size_t i = 0; i < count; i += 4) {
        uint32_t word = random_below(random, 8) == 0 ? 0 : (uint32_t)random_next(random);
        if ((i / CHUNK & 7) == 3) word = 0; /* whole chunks of zeros */
        cr_assert(sink.write(sink.user_data, (const char *)&word, count - i < 4 ? count - i : 4));
    }
}

static void append(quern_byte_buffer *to, const quern_byte_buffer *from, size_t first, size_t count)
{
    const quern_sink sink = quern_sink_bytes(to);
    cr_assert(sink.write(sink.user_data, (const char *)from->bytes + first, count));
}

/* Archives that consist of parts of earlier ones in another order and of new bytes: what arrives is what was sent. */
Test(netplay_returns, chunks_are_found_wherever_they_are)
{
    for (uint64_t seed = 1; seed <= effort(60, 10, 3); seed++) {
        random_source random = {seed};
        quern_byte_buffer earlier = {0}, archive = {0}, list = {0};
        receiver it;
        add_bytes(&earlier, &random, 1 + random_below(&random, 300000));
        size_t same = 0;
        while (archive.size_bytes < 150000) {
            const size_t new_bytes = 4 + 4 * (size_t)random_below(&random, 600);
            const uint32_t size = (uint32_t)earlier.size_bytes;
            const size_t first = random_below(&random, size) / 4 * 4;
            size_t count = random_below(&random, 40000) / 4 * 4;
            if (count > size - first) count = (size - first) / 4 * 4;
            append(&archive, &earlier, first, count);
            add_bytes(&archive, &random, new_bytes);
            if (count >= 2 * CHUNK) same += count / CHUNK - 1; /* whole chunks that lie in this part */
        }
        add_bytes(&archive, &random, random_below(&random, 5000)); /* any size */
        open_receiver(&it, earlier.bytes, earlier.size_bytes);
        quern__netplay_list_chunks(it.at.netplay, &archive, 9, &list);
        cr_assert_eq(list.size_bytes % CHUNK, 0);
        const uint32_t got = receive_all(&it, &list, &archive, &random);
        const quern__netplay_transfer *transfer = &it.at.netplay->transfer;
        const uint32_t all = (uint32_t)((list.size_bytes + archive.size_bytes + CHUNK - 1) / CHUNK);
        cr_assert_eq(got + transfer->reused_count, all);
        const size_t most = 2 * earlier.size_bytes / CHUNK;
        /* the first two may have arrived before the list */
        cr_assert_geq(transfer->reused_count + 2, same < most ? same : most);
        cr_assert_eq(quern__netplay_list_bytes(transfer), list.size_bytes);
        cr_assert_eq(memcmp(transfer->bytes.bytes, list.bytes, list.size_bytes), 0);
        cr_assert_eq(memcmp((const char *)transfer->bytes.bytes + list.size_bytes, archive.bytes,
                            archive.size_bytes),
                     0);
        quern_byte_buffer_release(&list);
        close_receiver(&it);
        quern_byte_buffer_release(&earlier);
        quern_byte_buffer_release(&archive);
    }
}

/* A sender that announces a world of 4 GiB in which each chunk is one that the receiver has. */
Test(netplay_returns, a_list_cannot_take_all_memory)
{
    static const unsigned char earlier[8 * CHUNK] = {0}, zeros[CHUNK] = {0};
    receiver it;
    bool is_whole = false;
    open_receiver(&it, earlier, sizeof earlier);
    const uint64_t before = failing_allocator_outstanding_bytes(it.memory);
    for (uint32_t i = 0; i < 300; i++) { /* a list of zeros has the hash of chunks of zeros */
        const quern__netplay_chunk chunk = {.id = 9,
                                            .total_bytes = 300 * 129 * CHUNK,
                                            .has_list = true,
                                            .offset = i * CHUNK,
                                            .size_bytes = CHUNK,
                                            .bytes = zeros};
        cr_assert_eq(quern__netplay_store_chunk(it.at.netplay, &chunk, &is_whole), QUERN_OK);
    }
    cr_assert_not(is_whole);
    cr_assert_eq(it.at.netplay->transfer.reused_count, 16);
    /* the list, the places, and the bytes that have arrived */
    cr_assert_leq(failing_allocator_outstanding_bytes(it.memory),
                  before + 2 * (300 + 300 / 2 + 16) * CHUNK);
    close_receiver(&it);
}

/* A sender that knows the table of the receiver lists hashes that all fall into one place. A search there ends soon, at the
 * price of chunks that are sent though the receiver has them. */
Test(netplay_returns, hashes_that_collide_are_not_searched_without_end)
{
    enum { LIST = 5, COUNT = LIST * CHUNK / (uint32_t)sizeof(uint64_t), COLLIDING = 200 };
    static const unsigned char earlier[8 * CHUNK] = {0};
    static uint64_t hashes[COUNT]; /* the last ones are those of chunks of zeros, in the same place */
    const uint64_t factor = 0x9E3779B97F4A7C15u;
    uint64_t inverse = factor;
    receiver it;
    bool is_whole;
    for (uint32_t i = 0; i < 6; i++) /* Newton's method, modulo 2^64 */
        inverse *= 2 - factor * inverse;
    for (uint32_t i = 0; i < COLLIDING; i++)
        hashes[i] = (i + 1) * inverse;
    open_receiver(&it, earlier, sizeof earlier);
    for (uint32_t i = 0; i < LIST; i++) {
        const quern__netplay_chunk chunk = {.id = 9,
                                            .total_bytes = (LIST + COUNT) * CHUNK,
                                            .has_list = true,
                                            .offset = i * CHUNK,
                                            .size_bytes = CHUNK,
                                            .bytes = (const unsigned char *)hashes + i * CHUNK};
        cr_assert_eq(quern__netplay_store_chunk(it.at.netplay, &chunk, &is_whole), QUERN_OK);
    }
    cr_assert_eq(it.at.netplay->transfer.place_count, COUNT);
    for (uint32_t i = 0; i < COUNT; i++)
        cr_assert_eq(it.at.netplay->transfer.places[i], 0);
    close_receiver(&it);
}

/* Sizes that no list has: nothing, no archive after it, and fewer hashes than chunks of a list have room for. */
Test(netplay_returns, lists_of_any_size_do_no_harm)
{
    static const unsigned char earlier[8 * CHUNK] = {0}, zeros[CHUNK] = {0};
    for (uint32_t total = 1; total < 400 * CHUNK; total += total < 3 * CHUNK ? 511 : 7 * CHUNK - 3) {
        receiver it;
        bool is_whole = false;
        open_receiver(&it, earlier, sizeof earlier);
        for (uint32_t offset = 0; offset < total; offset += CHUNK) {
            const quern__netplay_chunk chunk = {.id = 9,
                                                .total_bytes = total,
                                                .has_list = true,
                                                .offset = offset,
                                                .size_bytes =
                                                    total - offset < CHUNK ? total - offset : CHUNK,
                                                .bytes = zeros};
            cr_assert_eq(quern__netplay_store_chunk(it.at.netplay, &chunk, &is_whole), QUERN_OK);
        }
        cr_assert_eq(is_whole, total > CHUNK, "%u", total);
        close_receiver(&it);
    }
}

/* Two different chunks with one hash give an archive whose checksum is wrong: the machine asks for all of it. */
Test(netplay_returns, a_wrong_hash_is_noticed)
{
    session it;
    open_session(&it, 6, 0, false);
    quern_byte_buffer list = {0};
    receiver in;
    open_receiver(&in, it.earlier.bytes, it.earlier.size_bytes);
    quern_byte_buffer world;
    save(&it.machines[0], &world);
    quern__netplay_list_chunks(in.at.netplay, &world, 9, &list);
    uint64_t *hashes = list.bytes;
    hashes[20] = hashes[21]; /* chunk 20 is said to be like chunk 21 */
    quern__netplay_chunk chunk = {.id = 9,
                                  .total_bytes = (uint32_t)(list.size_bytes + world.size_bytes),
                                  .has_list = true,
                                  .size_bytes = CHUNK};
    const uint64_t left = chunk.total_bytes / CHUNK;
    for (uint32_t round = 0; round < 2; round++)
        for (uint32_t i = 0; i <= left && in.at.netplay->counts.is_joining; i++) {
            const uint64_t offset = (uint64_t)i * CHUNK;
            chunk.offset = (uint32_t)offset;
            chunk.size_bytes =
                chunk.total_bytes - offset < CHUNK ? (uint32_t)(chunk.total_bytes - offset) : CHUNK;
            chunk.bytes = offset < list.size_bytes
                              ? (const unsigned char *)list.bytes + offset
                              : (const unsigned char *)world.bytes + (offset - list.size_bytes);
            cr_assert_eq(quern__netplay_take_chunk(in.at.netplay, NULL, &chunk), QUERN_OK);
        }
    cr_assert_not(in.at.netplay->counts.is_joining);
    cr_assert_eq(in.at.netplay->end, QUERN__NETPLAY_GOES_ON);
    cr_assert_eq(in.at.netplay->counts.reused_bytes, 0);
    cr_assert_eq(quern_world_hash(in.at.played.world), quern_world_hash(it.machines[0].played.world));
    quern_byte_buffer_release(&list);
    quern_byte_buffer_release(&world);
    close_receiver(&in);
    play_return(&it, NULL, 0, NULL);
    close_session(&it);
}
