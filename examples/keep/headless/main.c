/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */

/* Keep without a window: replays a recorded game as fast as possible and prints the result, which does not
 * depend on the number of threads. Or plays with others over the network. */

#include "../../options.h"
#include "../game/check.h"
#include "../game/saves.h"
#include "inspected.h"
#include "together.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { MESSAGE_BYTES = 512, FRAMES_MAX = 1000000, HEAVY_ENTITIES = 50000 };

static const char usage[] =
    "Usage: keep_headless [options]\n"
    "Replays a recorded game of keep without a window.\n"
    "\n"
    "  --level FILE    the level (default: levels/ford.json)\n"
    "  --input FILE    the recorded game (default: levels/ford.txt)\n"
    "  --frames N      number of steps to run; 0 = all recorded steps (default 0)\n"
    "  --load FILE     begin with the saved game in FILE, and go on with the recorded actions after it\n"
    "  --save FILE     save the game to FILE at the end\n"
    "  --threads N     number of threads; 0 = one per processor (default 0)\n"
    "  --profile       print the time by system at the end\n"
    "  --rewind        at the end, rewind as far as possible, run the same steps again, and compare\n"
    "  --inspect [P]   show the game in a browser, on port P (default: a free one), at the speed of\n"
    "                  play, until it is interrupted, or until --frames\n"
    "  --json          print the result as one line of JSON at the end\n"
    "  --help          print this text\n"
    "\n";

static const char usage_together[] =
    "  --pace N           steps per second; 0 = as many as possible (default 0; with --inspect 60)\n"
    "  --frames N         host: number of steps to play (default 600)\n";

typedef struct Options {
    const char *level, *input;
    const char *load, *save; /* files of saved games, or NULL */
    uint32_t frame_count, thread_count;
    bool json, profile, rewind, inspect;
    uint16_t inspect_port;
    TogetherOptions together;
} Options;

/* Durations of all steps, and of those with very many entities. */
typedef struct Record {
    uint64_t *frame_ns, *heavy_ns;
    uint32_t frame_count, heavy_count;
    uint64_t entity_count_max;
} Record;

/* --------------------------------------------------------------------------------------------- options */

static uint32_t number_of(const char *option, const char *text, uint32_t most)
{
    return (uint32_t)parse_number("keep", option, text, 0, most);
}

/* Parses an option of games over the network. Returns false if it is another one. */
static bool parse_together(TogetherOptions *together, int option, int argc, char **argv)
{
    net_parse_option(&together->net, option, argc, argv);
    if (option == 'S') together->seed = number_of("seed", optarg, FRAMES_MAX);
    if (option == 'C') together->pace = number_of("pace", optarg, FRAMES_MAX);
    if (option == 'C') together->has_pace = true;
    return option >= 'A' && option <= 'Z';
}

static void parse_option(Options *options, int option)
{
    if (option == 'l') options->level = optarg;
    if (option == 'i') options->input = optarg;
    if (option == 'g') options->load = optarg;
    if (option == 'z') options->save = optarg;
    if (option == 'f') options->frame_count = number_of("frames", optarg, FRAMES_MAX);
    if (option == 't') options->thread_count = number_of("threads", optarg, QUERN_MAX_THREADS);
    if (option == 'j') options->json = true;
    if (option == 'p') options->profile = true;
    if (option == 'r') options->rewind = true;
    if (option == 'h') {
        fputs(usage, stdout);
        fputs(net_usage, stdout);
        fputs(usage_together, stdout);
        exit(EXIT_SUCCESS);
    }
}

static _Noreturn void refuse(const char *message)
{
    fprintf(stderr, "keep: %s\n", message);
    exit(2);
}

static void check_options(const Options *options)
{
    const NetOptions *net = &options->together.net;
    const bool is_shared = net->hosts || net->join != NULL;
    if (net->player_count < 2 || net->start_count < 1 || net->start_count > net->player_count ||
        (net->hosts && net->join != NULL))
        refuse("give --host or --join, 2 to 4 --players, and --begin with at most as many");
    if (is_shared && (options->load != NULL || options->save != NULL))
        refuse("--load and --save are for games on this machine: leave out --host and --join");
    if (options->inspect && (is_shared || options->rewind))
        refuse("--inspect needs the history of the game for itself: leave out --host, --join and --rewind");
}

static Options parse_options(int argc, char **argv)
{
    static const struct option list[] = {{"level", required_argument, NULL, 'l'},
                                         {"input", required_argument, NULL, 'i'},
                                         {"frames", required_argument, NULL, 'f'},
                                         {"load", required_argument, NULL, 'g'},
                                         {"save", required_argument, NULL, 'z'},
                                         {"threads", required_argument, NULL, 't'},
                                         {"headless", no_argument, NULL, 'w'},
                                         {"json", no_argument, NULL, 'j'},
                                         {"profile", no_argument, NULL, 'p'},
                                         {"rewind", no_argument, NULL, 'r'},
                                         {"inspect", optional_argument, NULL, 'k'},
                                         {"host", optional_argument, NULL, 'H'},
                                         {"join", required_argument, NULL, 'J'},
                                         {"players", required_argument, NULL, 'P'},
                                         {"transport", required_argument, NULL, 'N'},
                                         {"begin", required_argument, NULL, 'B'},
                                         {"timeout-ms", required_argument, NULL, 'T'},
                                         {"delay-ms", required_argument, NULL, 'D'},
                                         {"loss", required_argument, NULL, 'L'},
                                         {"key", required_argument, NULL, 'K'},
                                         {"seed", required_argument, NULL, 'S'},
                                         {"pace", required_argument, NULL, 'C'},
                                         {"help", no_argument, NULL, 'h'},
                                         {NULL, 0, NULL, 0}};
    Options options = {
        .level = KEEP_LEVELS "/ford.json",
        .input = KEEP_LEVELS "/ford.txt",
        .together = {.seed = 1, .net = {.port = WIRE_PORT, .player_count = 2, .timeout_ms = 5000}}};
    for (int option; (option = getopt_long(argc, argv, "", list, NULL)) != -1;)
        if (option == '?') {
            refuse_option("keep", list, argv);
        } else if (option == 'k') {
            options.inspect = true;
            options.inspect_port =
                (uint16_t)parse_optional_number("keep", "inspect", argc, argv, UINT16_MAX, 0);
        } else if (!parse_together(&options.together, option, argc, argv)) {
            parse_option(&options, option);
        }
    NetOptions *net = &options.together.net;
    if (net->start_count == 0) net->start_count = net->player_count;
    net->frame_count = options.frame_count != 0 ? options.frame_count : 600;
    options.together.thread_count = options.thread_count;
    options.together.json = options.json;
    if (!options.together.has_pace && options.inspect) options.together.pace = STEPS_PER_SECOND;
    check_options(&options);
    if (optind == argc) return options;
    fprintf(stderr, "keep: unexpected argument '%s'; --help lists the options\n", argv[optind]);
    exit(2);
}

/* ------------------------------------------------------------------------------------------------ run */

static uint64_t clock_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static _Noreturn void fail(const char *message)
{
    fprintf(stderr, "keep: %s\n", message);
    exit(EXIT_FAILURE);
}

static void add_frame(Record *record, const Game *game, uint64_t start_ns)
{
    quern_world_stats stats;
    const uint64_t frame_ns = clock_ns() - start_ns;
    record->frame_ns[record->frame_count++] = frame_ns;
    check(quern_world_get_stats(game->world, &stats));
    if (stats.entity_count >= HEAVY_ENTITIES) record->heavy_ns[record->heavy_count++] = frame_ns;
    if (stats.entity_count > record->entity_count_max) record->entity_count_max = stats.entity_count;
}

/* A replayed game, optionally with a history. */
typedef struct Replay {
    Game game;
    Inputs inputs;
    Rewind rewind;
    Inspection inspection;
    quern_jobs *jobs;
    bool has_history;
} Replay;

/* Runs until the game has made step_count steps. */
static void replay_until(Replay *replay, uint32_t step_count, Record *record)
{
    char message[MESSAGE_BYTES];
    Game *game = &replay->game;
    uint32_t next = inputs_before(&replay->inputs, game_state(game)->step);
    while (game_state(game)->step < step_count) {
        if (!inputs_replay(&replay->inputs, &next, game, message, sizeof message)) fail(message);
        const uint64_t start_ns = clock_ns();
        game_step(game, replay->jobs);
        if (record != NULL) add_frame(record, game, start_ns);
        if (replay->has_history) rewind_save(&replay->rewind, game, replay->jobs);
    }
}

static void replay_inspected(Replay *replay, const Options *options)
{
    const InspectedOptions inspected = {.step_count = options->frame_count, .pace = options->together.pace};
    play_inspected(&replay->inspection, &inspected, &replay->game, &replay->rewind, &replay->inputs,
                   replay->jobs);
}

/* Rewinds as far as possible and runs the same steps again. Ends the program with a message if the result
 * differs. */
static void check_rewind(Replay *replay, uint32_t step_count)
{
    const uint64_t hash = quern_world_hash(replay->game.world);
    while (rewind_restore(&replay->rewind, &replay->game, replay->jobs))
        continue;
    const uint64_t step = game_state(&replay->game)->step;
    replay_until(replay, step_count, NULL);
    if (quern_world_hash(replay->game.world) != hash)
        fail("rewind: the repeated steps have another result than the first time");
    printf("rewound to step %" PRIu64 " and ran again: the same result\n", step);
}

/* ---------------------------------------------------------------------------------------------- report */

static int compare_times(const void *left, const void *right)
{
    const uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return (a > b) - (a < b);
}

/* Sorts the durations. Median and maximum are 0 if there are none. */
static void summarise(uint64_t *times, uint32_t count, uint64_t *out_median, uint64_t *out_worst)
{
    qsort(times, count, sizeof *times, compare_times);
    *out_median = count > 0 ? times[count / 2] : 0;
    *out_worst = count > 0 ? times[count - 1] : 0;
}

/* Prints the durations of steps, and of steps with very many entities. */
static void report_times(Record *record, uint64_t median, uint64_t worst)
{
    uint64_t heavy_median, heavy_worst;
    summarise(record->heavy_ns, record->heavy_count, &heavy_median, &heavy_worst);
    printf("at most %" PRIu64 " entities; a step takes %.2f ms (median), %.2f ms at most\n",
           record->entity_count_max, (double)median / 1e6, (double)worst / 1e6);
    printf("%" PRIu32 " steps with %d entities and more: %.2f ms (median), %.2f ms at most\n",
           record->heavy_count, HEAVY_ENTITIES, (double)heavy_median / 1e6, (double)heavy_worst / 1e6);
}

static void report(const Options *options, Game *game, quern_jobs *jobs, Record *record)
{
    static const char *const states[] = {
        [KEEP_PLAYING] = "playing", [KEEP_WON] = "won", [KEEP_LOST] = "lost"};
    const Keep *keep = game_state(game);
    const uint32_t count = options->inspect ? (uint32_t)keep->step : record->frame_count;
    uint64_t median, worst, heavy_median, heavy_worst;
    summarise(record->frame_ns, record->frame_count, &median, &worst);
    summarise(record->heavy_ns, record->heavy_count, &heavy_median, &heavy_worst);
    printf("%s, %s after %" PRIu32 " of %" PRIu32 " waves and %" PRIu32 " steps: score %" PRId32
           ", %" PRIu32 " killed, %" PRId32 " lives and %" PRId32 " gold left\n",
           game->level.title, states[keep->state], keep->wave, game->level.wave_count, count, keep->score,
           keep->kills, keep->lives, keep->gold);
    if (!options->inspect) report_times(record, median, worst);
    if (!options->json) return;
    printf("{\"hash\": \"0x%016" PRIx64 "\", \"frames\": %" PRIu32 ", \"threads\": %" PRIu32
           ", \"entities\": %" PRIu64 ", \"frame_ns_median\": %" PRIu64 ", \"frame_ns_worst\": %" PRIu64
           ", \"heavy_frames\": %" PRIu32 ", \"heavy_ns_median\": %" PRIu64 ", \"heavy_ns_worst\": %" PRIu64
           ", \"state\": \"%s\", \"score\": %" PRId32 "}\n",
           quern_world_hash(game->world), count, quern_jobs_thread_count(jobs), record->entity_count_max,
           median, worst, record->heavy_count, heavy_median, heavy_worst, states[keep->state], keep->score);
}

/* Creates the game: a new one, or the saved one. The actions of the saved game precede those of the recorded one, so that the
 * game can be saved again with all its actions. */
static void create_game(Replay *replay, const Level *level, const Options *options)
{
    char message[MESSAGE_BYTES];
    Save save;
    Game *game = &replay->game;
    if (options->load == NULL) {
        if (!game_create(game, level, message, sizeof message)) fail(message);
        return;
    }
    if (!save_read(&save, options->load, message, sizeof message) ||
        !game_create_saved(game, level, &save, message, sizeof message))
        fail(message);
    inputs_continue(&replay->inputs, &save.inputs, game_state(game)->step);
    save_free(&save);
}

/* Saves the game with all actions since its first step. */
static void save_game(Replay *replay, const char *path)
{
    char message[MESSAGE_BYTES];
    Inputs done = replay->inputs;
    done.end = game_state(&replay->game)->step;
    done.count = inputs_before(&replay->inputs, done.end);
    if (!save_write(&replay->game, &done, path, message, sizeof message)) fail(message);
}

int main(int argc, char **argv)
{
    const Options options = parse_options(argc, argv);
    char message[MESSAGE_BYTES];
    Level level;
    Replay *replay = check_memory(calloc(1, sizeof *replay));
    Game *game = &replay->game;
    if (!level_load(&level, options.level, message, sizeof message)) fail(message);
    if (options.together.net.hosts || options.together.net.join != NULL) {
        play_together(&options.together, &level);
        free(replay);
        return EXIT_SUCCESS;
    }
    if (!inputs_load(&replay->inputs, options.input, message, sizeof message)) fail(message);
    if (options.inspect) inspection_create(&replay->inspection, options.inspect_port, options.thread_count);
    game->trace = replay->inspection.trace;
    create_game(replay, &level, &options);
    check(quern_jobs_create(&(quern_jobs_def){.thread_count = options.thread_count, .trace = game->trace},
                            &replay->jobs));
    check(quern_schedule_set_profiling(game->schedule, options.profile));
    const uint32_t count = options.frame_count > 0 ? options.frame_count : (uint32_t)replay->inputs.end;
    Record record = {.frame_ns = check_memory(calloc(count + 1, sizeof *record.frame_ns)),
                     .heavy_ns = check_memory(calloc(count + 1, sizeof *record.heavy_ns))};
    replay->has_history = options.rewind || options.inspect;
    if (replay->has_history) inspection_create_history(&replay->inspection, &replay->rewind, game);
    if (options.inspect)
        replay_inspected(replay, &options);
    else
        replay_until(replay, count, &record);
    if (options.rewind) check_rewind(replay, count);
    if (options.profile) check(quern_schedule_write_profile(game->schedule, quern_sink_file(stdout)));
    if (options.save != NULL) save_game(replay, options.save);
    report(&options, game, replay->jobs, &record);
    free(record.frame_ns);
    free(record.heavy_ns);
    rewind_destroy(&replay->rewind);
    inputs_free(&replay->inputs);
    quern_jobs_destroy(replay->jobs);
    game_destroy(game);
    inspection_destroy(&replay->inspection);
    free(replay);
    return EXIT_SUCCESS;
}
