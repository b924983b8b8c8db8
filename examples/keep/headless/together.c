/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "together.h"

#include "../game/check.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { WAIT_MS = 1 };

static _Noreturn void fail(const char *message)
{
    fprintf(stderr, "keep: %s\n", message);
    exit(EXIT_FAILURE);
}

static void sleep_ns(uint64_t ns)
{
    const struct timespec time = {.tv_sec = (time_t)(ns / 1000000000u),
                                  .tv_nsec = (long)(ns % 1000000000u)};
    nanosleep(&time, NULL);
}

/* Waits until the next step is due, or for packets. */
static void wait_for_step(const Net *net, const TogetherOptions *options, uint64_t *due_ns, bool has_run)
{
    const uint64_t now = wire_now(net->wire);
    if (options->pace == 0 && has_run) return;
    if (options->pace == 0) {
        sleep_ns(WAIT_MS * (uint64_t)1000000);
        return;
    }
    *due_ns += 1000000000u / options->pace;
    if (*due_ns > now)
        sleep_ns(*due_ns - now);
    else
        *due_ns = now;
}

static void report(const Net *net, const TogetherOptions *options)
{
    const quern_netplay_status *status = &net->status;
    const Keep *keep = game_state(net->game);
    const uint64_t hash = quern_world_hash(net->game->world);
    printf("player %" PRIu32 " of %" PRIu32 ": %" PRIu64 " steps, %" PRIu64 " times back, %" PRIu64
           " steps run again, %" PRIu64 " waits, %" PRIu64 " bytes sent and %" PRIu64 " received\n",
           net->start.player, net->start.player_count, status->frame, status->rollback_count,
           status->rerun_count, status->wait_count, status->sent_bytes, status->received_bytes);
    if (!options->json) return;
    printf("{\"hash\": \"0x%016" PRIx64 "\", \"player\": %" PRIu32 ", \"frames\": %" PRIu64
           ", \"present\": %" PRIu32 ", \"rollbacks\": %" PRIu64 ", \"rerun\": %" PRIu64
           ", \"sent_bytes\": %" PRIu64 ", \"score\": %" PRId32 ", \"gold\": %" PRId32 "}\n",
           hash, net->start.player, status->frame, status->present, status->rollback_count,
           status->rerun_count, status->sent_bytes, keep->score, keep->gold);
}

void play_together(const TogetherOptions *options, const Level *level)
{
    Game *game = check_memory(calloc(1, sizeof *game));
    Net *net = check_memory(calloc(1, sizeof *net));
    quern_jobs *jobs;
    uint32_t count;
    if (!net_open(net, &options->net, level)) fail(net->message);
    while (!net_begin(net, game, level))
        if (net->message[0] != '\0') fail(net->message);
    check(quern_jobs_create(&(quern_jobs_def){.thread_count = options->thread_count}, &jobs));
    printf("player %" PRIu32 " of %" PRIu32 " begins\n", net->start.player, net->start.player_count);
    fflush(stdout);
    uint64_t due_ns = wire_now(net->wire);
    while (net_step(net, jobs, &count)) {
        if (!net->status.is_joining && count > 0) net_act_at_random(net, options->seed);
        wait_for_step(net, options, &due_ns, count > 0);
    }
    if (net->message[0] != '\0') fail(net->message);
    report(net, options);
    net_end(net);
    quern_jobs_destroy(jobs);
    game_destroy(game);
    net_close(net);
    free(net);
    free(game);
}
