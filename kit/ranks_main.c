/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include <quern/kit/ranks_main.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The main function of programs on several ranks. All ranks parse the same options; rank 0 prints. */

#define NO_RANK UINT32_MAX

enum { USUAL_COUNT = 9, PING_BYTES = 1 << 22, PING_REPEATS = 200 };

/* What the command line says. */
typedef struct ranks_options {
    /* the numbers of `usual` */
    uint64_t ranks, threads, frames, balance, every, timeout, progress, latency_us, megabytes;
    const char *archives, *restart, *trace;
    uint32_t dying_rank, hanging_rank; /* NO_RANK: none */
    uint64_t dying_frame, hanging_frame;
    bool json, ping, map;
    bool has_every, has_megabytes; /* whether the options are given */
    bool speaks;                   /* whether this rank prints */
} ranks_options;

typedef struct ranks_run {
    const quern_ranks_program *program;
    ranks_options options;
    quern_ranks_setup *setups; /* of the ranks in this process */
    quern_ranks **list;
    uint32_t count;
    quern_jobs *jobs;
    quern_ranks_alone *alone; /* NULL over MPI */
} ranks_run;

/* ------------------------------------------------------------------------------------------ options */

static int complain(const ranks_run *run, const char *format, const char *what, const char *more)
{
    if (!run->options.speaks) return 2;
    fprintf(stderr, "%s: ", run->program->name);
    fprintf(stderr, format, what, more);
    fputc('\n', stderr);
    return 2;
}

static void list_usual(ranks_options *options, quern_ranks_option out[USUAL_COUNT])
{
    const quern_ranks_option usual[USUAL_COUNT] = {
        {"ranks", &options->ranks, 1, QUERN_RANKS_MAX,
         "number of ranks in one process; mpirun -n N decides it over MPI"},
        {"threads", &options->threads, 0, QUERN_MAX_THREADS, "threads of each rank; 0: one per processor"},
        {"frames", &options->frames, 1, 1000000000, "number of frames, those before a restart included"},
        {"balance", &options->balance, 0, 1000000, "frames after which the division may change; 0: never"},
        {"archive-every", &options->every, 1, 1000000000, "frames from one checkpoint to the next"},
        {"timeout", &options->timeout, 1, 86400, "seconds after which a rank that is silent is lost"},
        {"progress", &options->progress, 0, 1000000000, "frames after which progress is printed; 0: never"},
        {"latency-us", &options->latency_us, 0, 1000000000,
         "simulates a network between ranks of one process, with this latency; 0: none"},
        {"megabytes", &options->megabytes, 1, 1000000000, "that a rank sends in a second of that network"}};
    memcpy(out, usual, sizeof usual);
}

static void print_help(const quern_ranks_program *program, const quern_ranks_option *usual)
{
    printf("Usage: %s [options]\n%s\nOptions, with defaults:\n\n", program->name,
           program->about != NULL ? program->about : "");
    for (uint32_t i = 0; i < QUERN_RANKS_MAX_OPTIONS && program->options[i].name != NULL; i++)
        printf("  --%-16s %s (%" PRIu64 ")\n", program->options[i].name, program->options[i].help,
               *program->options[i].value);
    for (uint32_t i = 0; i < USUAL_COUNT; i++)
        printf("  --%-16s %s (%" PRIu64 ")\n", usual[i].name, usual[i].help, *usual[i].value);
    printf("  --%-16s save a checkpoint to this folder, which exists\n"
           "  --%-16s go on from the last checkpoint in this folder, on any number of ranks\n"
           "  --%-16s end a rank without a word in a frame, to see what the others do: RANK@FRAME\n"
           "  --%-16s let a rank hang in a frame: RANK@FRAME\n"
           "  --%-16s write a trace of each rank to this folder; scripts/merge_traces.py merges them\n"
           "  --%-16s only measure latency and bandwidth between two ranks\n"
           "  --%-16s print a map of the ranks at the end, and what each does\n"
           "  --%-16s print the result as one line of JSON\n",
           "archives FOLDER", "restart FOLDER", "die", "hang", "trace FOLDER", "ping", "map", "json");
}

static bool parse_number(const char *text, char end_mark, uint64_t *out, const char **out_end)
{
    char *end;
    const bool is_digit = text[0] >= '0' && text[0] <= '9';
    *out = strtoull(text, &end, 0);
    *out_end = end;
    return is_digit && *end == end_mark;
}

static int set_number(ranks_run *run, const quern_ranks_option *option, const char *text)
{
    const char *end;
    uint64_t number;
    char limits[128];
    if (parse_number(text, '\0', &number, &end) && number >= option->least && number <= option->most) {
        *option->value = number;
        run->options.has_every |= option->value == &run->options.every;
        run->options.has_megabytes |= option->value == &run->options.megabytes;
        return 0;
    }
    snprintf(limits, sizeof limits, "%s takes a whole number from %" PRIu64 " to %" PRIu64, option->name,
             option->least, option->most);
    return complain(run, "--%s, not '%s'", limits, text);
}

static int set_accident(const ranks_run *run, const char *text, uint32_t *out_rank, uint64_t *out_frame)
{
    const char *end;
    uint64_t rank;
    if (!parse_number(text, '@', &rank, &end) || rank >= QUERN_RANKS_MAX ||
        !parse_number(end + 1, '\0', out_frame, &end))
        return complain(run, "an accident is RANK@FRAME, not '%s'%s", text, "");
    *out_rank = (uint32_t)rank;
    return 0;
}

static bool set_flag(ranks_options *options, const char *name)
{
    bool *flag = strcmp(name, "json") == 0   ? &options->json
                 : strcmp(name, "ping") == 0 ? &options->ping
                 : strcmp(name, "map") == 0  ? &options->map
                                             : NULL;
    if (flag != NULL) *flag = true;
    return flag != NULL;
}

static int set_option(ranks_run *run, const quern_ranks_option *usual, const char *name, const char *value)
{
    ranks_options *options = &run->options;
    for (uint32_t i = 0; i < USUAL_COUNT; i++)
        if (strcmp(usual[i].name, name) == 0) return set_number(run, &usual[i], value);
    for (uint32_t i = 0; i < QUERN_RANKS_MAX_OPTIONS && run->program->options[i].name != NULL; i++)
        if (strcmp(run->program->options[i].name, name) == 0)
            return set_number(run, &run->program->options[i], value);
    if (strcmp(name, "archives") == 0)
        options->archives = value;
    else if (strcmp(name, "restart") == 0)
        options->restart = value;
    else if (strcmp(name, "trace") == 0)
        options->trace = value;
    else if (strcmp(name, "die") == 0)
        return set_accident(run, value, &options->dying_rank, &options->dying_frame);
    else if (strcmp(name, "hang") == 0)
        return set_accident(run, value, &options->hanging_rank, &options->hanging_frame);
    else
        return complain(run, "there is no option --%s%s; --help lists them", name, "");
    return 0;
}

/* Returns 0, or the exit status; 1 after --help. */
static int parse(ranks_run *run, int argc, char **argv)
{
    quern_ranks_option usual[USUAL_COUNT];
    list_usual(&run->options, usual);
    for (int i = 1; i < argc; i++) {
        char name[64];
        if (strncmp(argv[i], "--", 2) != 0 || argv[i][2] == '\0' || strlen(argv[i]) >= sizeof name)
            return complain(run, "unexpected argument '%s'%s; --help lists the options", argv[i], "");
        if (strcmp(argv[i], "--help") == 0) {
            if (run->options.speaks) print_help(run->program, usual);
            return 1;
        }
        snprintf(name, sizeof name, "%s", argv[i] + 2);
        char *equals = strchr(name, '=');
        if (equals != NULL) *equals = '\0';
        if (set_flag(&run->options, name)) continue;
        if (equals == NULL && i + 1 == argc) return complain(run, "--%s needs a value%s", name, "");
        const char *value = equals != NULL ? strchr(argv[i], '=') + 1 : argv[++i];
        const int status = set_option(run, usual, name, value);
        if (status != 0) return status;
    }
    if (run->options.archives != NULL && run->options.restart != NULL &&
        strcmp(run->options.archives, run->options.restart) != 0)
        return complain(run, "--archives '%s' is not the folder of --restart '%s': use one folder",
                        run->options.archives, run->options.restart);
    if (run->options.has_every && run->options.archives == NULL)
        return complain(run, "--archive-every needs a folder for checkpoints: add --archives FOLDER%s%s",
                        "", "");
    return 0;
}

/* -------------------------------------------------------------------------------------------- ping */

/* Sends bytes to the other rank, and back. */
static void bounce(const quern_ranks_transport *transport, void *bytes, size_t size_bytes,
                   quern_byte_buffer *in)
{
    uint32_t from;
    if (transport->rank == 0) transport->send(transport->user_data, 1, bytes, size_bytes);
    while (!transport->receive(transport->user_data, in, &from))
        if (transport->wait != NULL) transport->wait(transport->user_data);
    if (transport->rank == 1) transport->send(transport->user_data, 0, bytes, size_bytes);
}

/* Returns the least seconds of a message in one direction, of several series. */
static double one_way_seconds(const quern_ranks_transport *transport, void *bytes, size_t size_bytes,
                              uint32_t count, quern_byte_buffer *in)
{
    double least = 1e9;
    for (uint32_t series = 0; series < 5; series++) {
        const uint64_t begin = quern_clock_ns();
        for (uint32_t i = 0; i < count; i++)
            bounce(transport, bytes, size_bytes, in);
        const double seconds = 1e-9 * (double)(quern_clock_ns() - begin) / count / 2;
        if (seconds < least) least = seconds;
    }
    return least;
}

static int ping(const ranks_run *run, const quern_ranks_transport *transport)
{
    quern_byte_buffer in = {0};
    if (transport == NULL || transport->rank_count < 2)
        return complain(run, "--ping needs two ranks in two processes: start it by mpirun%s%s", "", "");
    if (transport->rank > 1) return EXIT_SUCCESS;
    char *bytes = calloc(PING_BYTES, 1);
    if (bytes == NULL) return EXIT_FAILURE;
    const double latency = one_way_seconds(transport, bytes, 64, 10 * PING_REPEATS, &in);
    const double largest = one_way_seconds(transport, bytes, PING_BYTES, PING_REPEATS / 10, &in);
    const double bandwidth = PING_BYTES / (largest - latency);
    if (run->options.speaks)
        printf(run->options.json ? "{\"latency_seconds\": %.9f, \"bytes_per_second\": %.0f}\n"
                                 : "latency: %.9f s; bandwidth: %.0f bytes per second\n",
               latency, bandwidth);
    free(bytes);
    quern_byte_buffer_release(&in);
    return EXIT_SUCCESS;
}

/* ------------------------------------------------------------------------------------------- frames */

static quern_result open_network(ranks_run *run)
{
    const ranks_options *options = &run->options;
    const quern_ranks_network network = {1e-6 * (double)options->latency_us,
                                         1e6 * (double)options->megabytes};
    QUERN_TRY(quern_ranks_alone_create(run->count, NULL, &run->alone));
    return options->latency_us > 0 ? quern_ranks_alone_set_network(run->alone, &network) : QUERN_OK;
}

static quern_result open_ranks(ranks_run *run, const quern_ranks_transport *transport)
{
    const ranks_options *options = &run->options;
    const quern_jobs_def jobs = {.thread_count = (uint32_t)options->threads};
    QUERN_TRY(quern_jobs_create(&jobs, &run->jobs));
    if (transport == NULL) QUERN_TRY(open_network(run));
    for (uint32_t i = 0; i < run->count; i++) {
        quern_ranks_setup *setup = &run->setups[i];
        setup->jobs = run->jobs;
        setup->def =
            (quern_ranks_def){.folder = options->archives != NULL ? options->archives : options->restart,
                              .checkpoint_every = options->archives != NULL ? (uint32_t)options->every : 0,
                              .restart = options->restart != NULL,
                              .timeout_seconds = (double)options->timeout,
                              .balance_every = (uint32_t)options->balance,
                              .list_ranks = options->map,
                              .disable_balance = options->balance == 0};
        if (transport != NULL)
            setup->def.transport = *transport;
        else
            QUERN_TRY(quern_ranks_alone_transport(run->alone, i, &setup->def.transport));
        if (options->trace != NULL) {
            const quern_trace_def trace = {.track_count = 1 + (uint32_t)quern_jobs_thread_count(run->jobs)};
            QUERN_TRY(quern_trace_create(&trace, &setup->trace));
            setup->def.trace = setup->trace;
        }
        QUERN_TRY(run->program->open(setup));
        run->list[i] = setup->ranks;
        QUERN_TRY(quern_ranks_start(setup->ranks, setup->schedule, run->jobs, setup->delta_seconds));
        if (options->restart == NULL) QUERN_TRY(run->program->populate(setup));
    }
    return QUERN_OK;
}

/* An accident that the command line asks for. The others can only notice it by the silence of the rank. */
static void have_accident(const ranks_run *run, uint64_t frame)
{
    const ranks_options *options = &run->options;
    const uint32_t rank = quern_ranks_index(run->list[0]);
    if (quern_ranks_count(run->list[0]) == run->count) return;
    if (rank == options->dying_rank && frame == options->dying_frame) _Exit(EXIT_FAILURE);
    if (rank == options->hanging_rank && frame == options->hanging_frame) {
        const uint64_t begin_ns = quern_clock_ns();
        while (1e-9 * (double)(quern_clock_ns() - begin_ns) < 4 * (double)options->timeout) {
        }
        _Exit(EXIT_FAILURE);
    }
}

static void print_progress(const ranks_run *run, uint64_t frames, uint64_t since_ns)
{
    quern_ranks_stats all;
    if (!run->options.speaks || quern_ranks_get_stats(run->list[0], NULL, &all) != QUERN_OK) return;
    const uint32_t count = quern_ranks_count(run->list[0]);
    const double seconds = 1e-9 * (double)(quern_clock_ns() - since_ns);
    fprintf(
        stderr,
        "%s: frame %" PRIu64 ": %.1f frames per second, imbalance %.2f, %.0f bytes per rank and frame\n",
        run->program->name, quern_ranks_frame(run->list[0]), (double)frames / (seconds > 0 ? seconds : 1),
        all.run_ns > 0 ? (double)all.slowest_ns * count / (double)all.run_ns : 1.0,
        (double)all.sent_bytes / count / (double)(quern_ranks_frame(run->list[0]) + 1));
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Starts the traces at the same time: when all ranks have met, and have the entities of their parts. */
static quern_result start_clocks(const ranks_run *run, double *out_seconds)
{
    *out_seconds = 0;
    if (run->options.trace == NULL && run->options.latency_us == 0) return QUERN_OK;
    QUERN_TRY(quern_ranks_run_all(run->list, run->count, 0, NULL));
    *out_seconds = quern_ranks_alone_seconds(run->alone);
    if (run->options.trace == NULL) return QUERN_OK;
    for (uint32_t i = 0; i < run->count; i++)
        quern_trace_start(run->setups[i].trace);
    return QUERN_OK;
}

static quern_result save_traces(const ranks_run *run)
{
    for (uint32_t i = 0; i < run->count && run->options.trace != NULL; i++) {
        char path[1024];
        quern_trace_stop(run->setups[i].trace);
        snprintf(path, sizeof path, "%s/rank-%u.json", run->options.trace,
                 (unsigned)quern_ranks_index(run->list[i]));
        QUERN_TRY(quern_trace_save(run->setups[i].trace, path));
    }
    return QUERN_OK;
}

/* Runs up to the next frame in which something is to be done between frames. */
static quern_result run_frames(const ranks_run *run, uint64_t *out_hash)
{
    const ranks_options *options = &run->options;
    for (uint64_t frame = quern_ranks_frame(run->list[0]); frame < options->frames;) {
        const uint64_t begin_ns = quern_clock_ns(), first = frame;
        uint64_t end = options->frames;
        have_accident(run, frame);
        if (options->progress > 0) end = least(end, frame + options->progress);
        if (options->dying_rank != NO_RANK && frame < options->dying_frame)
            end = least(end, options->dying_frame);
        if (options->hanging_rank != NO_RANK && frame < options->hanging_frame)
            end = least(end, options->hanging_frame);
        QUERN_TRY(quern_ranks_run_all(run->list, run->count, end - frame,
                                      end == options->frames ? out_hash : NULL));
        frame = end;
        if (options->progress > 0) print_progress(run, frame - first, begin_ns);
    }
    return QUERN_OK;
}

static void print_result(const ranks_run *run, uint64_t frame_count, double seconds, double simulated,
                         uint64_t hash)
{
    quern_ranks_stats all;
    const double frames = frame_count > 0 ? (double)frame_count : 1;
    const uint32_t count = quern_ranks_count(run->list[0]);
    if (!run->options.speaks || quern_ranks_get_stats(run->list[0], NULL, &all) != QUERN_OK) return;
    char network[96] = "";
    if (run->options.latency_us > 0)
        snprintf(network, sizeof network,
                 run->options.json ? ", \"simulated_seconds_per_frame\": %.9f"
                                   : "over the simulated network: %.9f s per frame\n",
                 simulated / frames);
    printf(run->options.json
               ? "{\"ranks\": %" PRIu32 ", \"frames\": %" PRIu64 ", \"seconds_per_frame\": %.9f, "
                 "\"step_seconds_per_frame\": %.9f, \"own_seconds_per_frame\": %.9f%s, "
                 "\"entities_at_end\": %" PRIu64 ", \"crossed\": %" PRIu64
                 ", \"ghosts_per_frame\": %.1f, \"bytes_per_frame\": %.1f, \"packets_per_frame\": %.1f, "
                 "\"messages\": %" PRIu64 ", \"divisions\": %" PRIu64 ", \"hash\": \"0x%016" PRIx64 "\"}\n"
               : "%" PRIu32 " ranks, %" PRIu64
                 " frames: %.9f s per frame, of it %.9f s on the slowest rank; "
                 "%.9f s for all exchanges\n"
                 "%s%" PRIu64 " entities, %" PRIu64
                 " crossed a border; per frame %.0f ghosts, %.0f bytes, %.1f "
                 "packets; %" PRIu64 " messages; %" PRIu64 " divisions\n"
                 "hash by id: 0x%016" PRIx64 "\n",
           count, frame_count, seconds / frames, 1e-9 * (double)all.slowest_ns / frames,
           1e-9 * (double)all.own_ns / frames / count, network, all.owned_count, all.moved_count,
           (double)all.ghost_count / frames, (double)all.sent_bytes / frames,
           (double)all.packet_count / frames, all.message_count, all.bisection_count, hash);
}

/* The map of all ranks, and what each did in the last call of quern_ranks_run. */
static void print_map(const ranks_run *run)
{
    const quern_ranks *ranks = run->list[0];
    quern_ranks_place *places = calloc(quern_ranks_count(ranks), sizeof *places);
    if (places == NULL || !run->options.map || !run->options.speaks) {
        free(places);
        return;
    }
    const uint32_t count = quern_ranks_list(ranks, places, quern_ranks_count(ranks));
    (void)quern_ranks_draw(ranks, 64, 24, quern_sink_file(stdout));
    for (uint32_t i = 0; i < count; i++)
        printf("rank %u: %" PRIu64 " entities, %" PRIu64
               " ghosts, %.3f ms in frames, %.3f ms in exchanges, "
               "%.3f ms waiting, %" PRIu64 " bytes in %" PRIu64 " packets\n",
               (unsigned)i, places[i].owned_count, places[i].ghost_count, 1e-6 * (double)places[i].run_ns,
               1e-6 * (double)places[i].own_ns, 1e-6 * (double)places[i].wait_ns, places[i].sent_bytes,
               places[i].packet_count);
    free(places);
}

static int report(const ranks_run *run, quern_result result)
{
    /* One call writes the message, so that those of several ranks do not mix. What all ranks say, rank 0 says. */
    const bool is_lost = result == QUERN_ERROR_UNAVAILABLE || result == QUERN_ERROR_CANCELLED;
    if (is_lost || run->options.speaks || result != QUERN_ERROR_IO)
        fprintf(stderr, "%s: %s\n", run->program->name, quern_error_message());
    fflush(NULL);
    return is_lost ? QUERN_RANKS_EXIT_LOST : EXIT_FAILURE;
}

static int run_all(ranks_run *run)
{
    const uint64_t first = quern_ranks_frame(run->list[0]);
    uint64_t hash = 0;
    if (first >= run->options.frames) {
        char frame[32];
        snprintf(frame, sizeof frame, "%" PRIu64, first);
        return complain(run, "the checkpoint is of frame %s, so --frames must be more%s", frame, "");
    }
    double first_seconds;
    quern_result result = start_clocks(run, &first_seconds);
    const uint64_t begin_ns = quern_clock_ns();
    if (result == QUERN_OK) result = run_frames(run, &hash);
    if (result == QUERN_OK) result = save_traces(run);
    if (result != QUERN_OK) return report(run, result);
    print_map(run);
    const double simulated = quern_ranks_alone_seconds(run->alone) - first_seconds;
    print_result(run, run->options.frames - first, 1e-9 * (double)(quern_clock_ns() - begin_ns), simulated,
                 hash);
    return EXIT_SUCCESS;
}

/* Returns 0, or the exit status if the options do not fit the transport. */
static int check_ranks(const ranks_run *run, const quern_ranks_transport *transport)
{
    const ranks_options *options = &run->options;
    char counts[64];
    if (options->map && options->json)
        return complain(run, "--map prints text, and --json one line of JSON: leave out one of them%s%s",
                        "", "");
    if (options->has_megabytes && options->latency_us == 0)
        return complain(run, "--megabytes belongs to a simulated network: add --latency-us N%s%s", "", "");
    if (options->latency_us > 0 && (transport != NULL || options->threads != 1))
        return complain(
            run, "--latency-us simulates a network between ranks of one process with one thread: %s%s",
            "leave out mpirun and --threads", "");
    if (transport == NULL && options->ranks > QUERN_MAX_WORLDS)
        return complain(run, "one process has at most 255 ranks, each of which has a world: %s%s",
                        "start more by mpirun", "");
    if (transport == NULL || options->ranks == 0 || options->ranks == transport->rank_count) return 0;
    snprintf(counts, sizeof counts, "%u ranks, not the %" PRIu64 " of --ranks",
             (unsigned)transport->rank_count, options->ranks);
    return complain(run, "mpirun has started %s: start mpirun with -n%s", counts, "");
}

int quern_ranks_main(int argc, char **argv, const quern_ranks_program *program,
                     const quern_ranks_transport *transport)
{
    ranks_run run = {.program = program,
                     .options = {.threads = 1,
                                 .frames = program->frame_count > 0 ? program->frame_count : 300,
                                 .balance = 16,
                                 .every = 100,
                                 .timeout = 10,
                                 .megabytes = 10000,
                                 .dying_rank = NO_RANK,
                                 .hanging_rank = NO_RANK,
                                 .speaks = transport == NULL || transport->rank == 0}};
    int status = parse(&run, argc, argv);
    if (status != 0) return status == 1 ? EXIT_SUCCESS : status;
    if (run.options.ping) return ping(&run, transport);
    status = check_ranks(&run, transport);
    if (status != 0) return status;
    run.count = transport != NULL ? 1 : run.options.ranks > 0 ? (uint32_t)run.options.ranks : 1;
    run.setups = calloc(run.count, sizeof *run.setups);
    run.list = calloc(run.count, sizeof(quern_ranks *));
    quern_result result = run.setups == NULL || run.list == NULL ? QUERN_ERROR_OUT_OF_MEMORY : QUERN_OK;
    if (result == QUERN_OK) result = open_ranks(&run, transport);
    status = result == QUERN_OK ? run_all(&run) : report(&run, result);
    for (uint32_t i = 0; i < run.count && run.setups != NULL; i++)
        program->close(&run.setups[i]);
    for (uint32_t i = 0; i < run.count && run.setups != NULL; i++)
        quern_trace_destroy(run.setups[i].trace);
    quern_jobs_destroy(run.jobs);
    quern_ranks_alone_destroy(run.alone);
    free(run.setups);
    free(run.list);
    return status;
}
