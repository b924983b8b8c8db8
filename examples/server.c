/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* A server without a window: 20 ticks a second, commands from standard input, and saves from which it goes on.
 *
 * Commands are lines: "join NAME", "leave NAME", "list", "save", "stop". A line may begin with the tick before which it
 * counts, as "@100 join ann". `server --save FILE` reads FILE if there is one, and writes it every 10 seconds and at
 * the end, also by Ctrl-C. `--ticks N` runs N ticks without waiting for the clock. */
#include <quern/kit/random.h>
#include <quern/quern.h>

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { TICKS_PER_SECOND = 20, SAVE_INTERVAL_TICKS = 200, LATE_TICKS = 10, GOBLIN_COUNT = 1000 };

static const int64_t tick_nanoseconds = 1000000000 / TICKS_PER_SECOND;

typedef struct Place {
    float x, y;
} Place;

typedef struct Purse {
    int64_t gold;
} Purse;

typedef struct Options {
    const char *save;    /* path of the save; NULL: none */
    uint64_t tick_count; /* 0: until "stop" or a signal, in real time */
    int thread_count;    /* 0: one per processor */
} Options;

typedef struct Server {
    Options options;
    quern_world *world;
    quern_schedule *schedule;
    quern_jobs *jobs;
    quern_query *purses;
    uint64_t tick; /* number of the next tick */
    bool is_stopped;
    bool has_input; /* false after the end of standard input */
    char input[1024];
    size_t input_bytes;
} Server;

static volatile sig_atomic_t is_interrupted;

/* ------------------------------------------------------------------------------------------- systems */

QUERN_SYSTEM(wander, (Place, place))
{
    const uint64_t tick = quern_context_frame_index(context);
    QUERN_ROWS(i)
    {
        const uint64_t bits = quern_random(view->entities[i].bits & 0xFFFFFFFFu, tick); /* key: the slot */
        place[i].x += quern_random_signed(bits);
        place[i].y += 2 * quern_random_unit(bits) - 1;
    }
}

/* Each player finds up to 6 pieces of gold. Runs once a second. */
QUERN_SYSTEM(dig, (Purse, purse))
{
    const uint64_t tick = quern_context_frame_index(context);
    QUERN_ROWS(i)
    purse[i].gold += quern_random_below(quern_random(view->entities[i].bits & 0xFFFFFFFFu, tick), 7);
}

/* ---------------------------------------------------------------------------------------------- world */

/* Types and systems belong to the program, so they exist before a save is loaded. */
static void open_world(Server *server)
{
    QUERN_MUST(quern_world_create(NULL, &server->world));
    QUERN_MUST(quern_schedule_create(server->world, NULL, &server->schedule));
    QUERN_MUST(quern_jobs_create(&(quern_jobs_def){.thread_count = (uint32_t)server->options.thread_count},
                                 &server->jobs));
    QUERN_MUST(QUERN_REGISTER(server->world, Place, x, y));
    QUERN_MUST(QUERN_REGISTER(server->world, Purse, gold));
    QUERN_MUST(QUERN_ADD_SYSTEM(server->schedule, wander));
    QUERN_MUST(QUERN_ADD_SYSTEM(server->schedule, dig, .interval_seconds = 1));
    const quern_query_def purses = {.terms = {quern_term_read(QUERN_ID(server->world, Purse))}};
    QUERN_MUST(quern_query_create(server->world, &purses, &server->purses));
}

static void close_world(Server *server)
{
    quern_query_destroy(server->purses);
    quern_schedule_destroy(server->schedule);
    quern_world_destroy(server->world);
    quern_jobs_destroy(server->jobs);
}

static void populate(quern_world *world)
{
    for (int i = 0; i < GOBLIN_COUNT; i++)
        QUERN_MUST(QUERN_CREATE(world, NULL, QUERN_VALUE(Place, (float)(i % 32), (float)(i / 32.0))));
}

/* ---------------------------------------------------------------------------------------------- saves */

static bool complain(const char *what, const char *path, const char *why)
{
    (void)fprintf(stderr, "server: cannot %s '%s': %s\n", what, path, why);
    return false;
}

/* Writes all bytes to the disk, not only to the cache of the system. */
static bool write_save(const Server *server, FILE *file, const char *path)
{
    const quern_save_def def = {.schedules = {server->schedule}};
    if (quern_world_save(server->world, quern_sink_file(file), &def) != QUERN_OK)
        return complain("save to", path, quern_error_message());
    if (fflush(file) != 0 || fsync(fileno(file)) != 0) return complain("write", path, strerror(errno));
    return true;
}

/* Saves into a new file, and gives it the name of the old one when it is complete. A crash leaves one of the two. */
static bool save(const Server *server)
{
    const char *path = server->options.save;
    char unfinished[4096];
    if (path == NULL) return true;
    if (snprintf(unfinished, sizeof unfinished, "%s.new", path) >= (int)sizeof unfinished)
        return complain("save to", path, "the path is too long");
    FILE *file = fopen(unfinished, "wb");
    if (file == NULL) return complain("create", unfinished, strerror(errno));
    const bool is_written = write_save(server, file, unfinished);
    if (fclose(file) != 0 || !is_written) return false;
    return rename(unfinished, path) == 0 || complain("replace", path, strerror(errno));
}

/* Loads the save, or creates a new world if there is none. The numbers of ticks go on. */
static bool load(Server *server)
{
    const quern_load_def def = {.schedules = {server->schedule}};
    const char *path = server->options.save;
    quern_schedule_info info;
    FILE *file = path == NULL ? NULL : fopen(path, "rb");
    if (file == NULL) {
        if (path != NULL && errno != ENOENT) return complain("open", path, strerror(errno));
        populate(server->world);
        return true;
    }
    const quern_result result = quern_world_load(server->world, quern_source_file(file), &def, NULL);
    (void)fclose(file);
    if (result != QUERN_OK) return complain("load", path, quern_error_message());
    QUERN_MUST(quern_schedule_get_info(server->schedule, &info));
    server->tick = info.frame_index;
    printf("continues at tick %llu\n", (unsigned long long)server->tick);
    return true;
}

/* ------------------------------------------------------------------------------------------- commands */

static void join(const Server *server, const char *name)
{
    quern_entity player;
    if (!quern_entity_is_null(quern_entity_find(server->world, name))) {
        printf("%s is here already\n", name);
        return;
    }
    QUERN_MUST(QUERN_CREATE(server->world, &player, QUERN_VALUE(Place, 0), QUERN_VALUE(Purse, 0)));
    if (quern_entity_set_name(server->world, player, name) != QUERN_OK) {
        printf("'%s' cannot join: %s\n", name, quern_error_message());
        QUERN_MUST(quern_entity_destroy(server->world, player));
        return;
    }
    printf("tick %llu: %s joins\n", (unsigned long long)server->tick, name);
}

static void leave(const Server *server, const char *name)
{
    const quern_entity player = quern_entity_find(server->world, name);
    if (quern_entity_is_null(player)) {
        printf("there is no %s\n", name);
        return;
    }
    printf("tick %llu: %s leaves with %lld gold\n", (unsigned long long)server->tick, name,
           (long long)QUERN_GET(server->world, player, Purse)->gold);
    QUERN_MUST(quern_entity_destroy(server->world, player));
}

static void list(const Server *server)
{
    quern_query_iterator it = quern_query_iterate(server->purses);
    while (quern_query_next(&it)) {
        const Purse *purses = QUERN_COLUMN(&it.view, 0, const Purse);
        const uint32_t count = it.view.count;
        for (uint32_t i = 0; i < count; i++)
            printf("%s: %lld gold\n", quern_entity_name(server->world, it.view.entities[i]),
                   (long long)purses[i].gold);
    }
}

static void execute(Server *server, const char *line)
{
    if (strncmp(line, "join ", 5) == 0 && line[5] != '\0')
        join(server, line + 5);
    else if (strncmp(line, "leave ", 6) == 0)
        leave(server, line + 6);
    else if (strcmp(line, "list") == 0)
        list(server);
    else if (strcmp(line, "save") == 0)
        (void)save(server);
    else if (strcmp(line, "stop") == 0)
        server->is_stopped = true;
    else
        printf("unknown command '%s'; there are join NAME, leave NAME, list, save, stop\n", line);
}

/* Returns where the first line of the input ends, or NULL if the input has no whole line. */
static char *find_line_end(Server *server)
{
    return memchr(server->input, '\n', server->input_bytes);
}

/* Executes the first line of the input, and removes it. Returns false if there is none, or if its tick is not due.
 * A line of an earlier tick than the next was executed before the save: it is left out. */
static bool execute_line(Server *server)
{
    char *line = server->input, *end = find_line_end(server);
    uint64_t tick = server->tick;
    if (end == NULL) return false;
    *end = '\0';
    if (*line == '@') {
        tick = strtoull(line + 1, &line, 10);
        line += *line == ' ';
    }
    if (tick > server->tick) {
        *end = '\n';
        return false;
    }
    if (tick == server->tick && *line != '\0') execute(server, line);
    server->input_bytes -= (size_t)(end + 1 - server->input);
    memmove(server->input, end + 1, server->input_bytes);
    return true;
}

/* Waits for input at most as long, or for ever if the time is -1, and reads it. A signal ends the waiting. The time
 * passes without input if a line waits for its tick. */
static void read_input(Server *server, int milliseconds)
{
    const bool reads = server->has_input && find_line_end(server) == NULL;
    struct pollfd input = {.fd = reads ? STDIN_FILENO : -1, .events = POLLIN};
    if (poll(&input, 1, milliseconds) <= 0) return;
    char *free_bytes = server->input + server->input_bytes;
    const ssize_t count = read(STDIN_FILENO, free_bytes, sizeof server->input - 1 - server->input_bytes);
    if (count > 0) server->input_bytes += (size_t)count;
    if (count == 0) {
        server->has_input = false;
        server->input[server->input_bytes++] = '\n'; /* the last line may lack it */
    } else if (server->input_bytes == sizeof server->input - 1 && find_line_end(server) == NULL) {
        printf("a line is too long, and is left out\n");
        server->input_bytes = 0;
    }
}

/* ----------------------------------------------------------------------------------------------- ticks */

static int64_t nanoseconds(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Executes the commands that are due before the next tick, and waits for it. Without a clock, the end of the input or a
 * line for a later tick ends the waiting. */
static void wait_for_tick(Server *server, int64_t due)
{
    const bool is_live = server->options.tick_count == 0;
    bool waits;
    do {
        const int64_t left = due - nanoseconds();
        waits = is_live ? left > 0 : server->has_input && find_line_end(server) == NULL;
        read_input(server, !waits ? 0 : is_live ? (int)((left + 999999) / 1000000) : -1);
        while (!server->is_stopped && execute_line(server)) {
        }
    } while (waits && !server->is_stopped && !is_interrupted);
}

/* A tick is one frame, always of the same length, so that the world depends on the commands alone. */
static void run(Server *server)
{
    const uint64_t end = server->tick + server->options.tick_count;
    int64_t due = nanoseconds();
    while (server->options.tick_count == 0 || server->tick < end) {
        wait_for_tick(server, due);
        if (server->is_stopped || is_interrupted) break;
        QUERN_MUST(quern_schedule_run(server->schedule, server->jobs, 1.0 / TICKS_PER_SECOND));
        server->tick++;
        due += tick_nanoseconds;
        if (nanoseconds() - due > LATE_TICKS * tick_nanoseconds)
            due = nanoseconds(); /* too late to catch up */
        if (server->tick % SAVE_INTERVAL_TICKS == 0) (void)save(server);
    }
}

static void interrupt(int number)
{
    (void)number;
    is_interrupted = 1;
}

static bool read_options(Options *options, int argc, char **argv)
{
    for (int i = 1; i < argc; i += 2) {
        char *end = "";
        if (i + 1 == argc) return false;
        if (strcmp(argv[i], "--save") == 0)
            options->save = argv[i + 1];
        else if (strcmp(argv[i], "--ticks") == 0)
            options->tick_count = strtoull(argv[i + 1], &end, 10);
        else if (strcmp(argv[i], "--threads") == 0)
            options->thread_count = (int)strtol(argv[i + 1], &end, 10);
        else
            return false;
        if (*end != '\0') return false;
    }
    return options->thread_count >= 0 && options->thread_count <= QUERN_MAX_THREADS;
}

int main(int argc, char **argv)
{
    Server server = {.has_input = true};
    if (!read_options(&server.options, argc, argv)) {
        (void)fputs("usage: server [--save FILE] [--ticks N] [--threads N] < COMMANDS\n", stderr);
        return 2;
    }
    const struct sigaction action = {.sa_handler = interrupt};
    (void)sigaction(SIGINT, &action, NULL);
    (void)sigaction(SIGTERM, &action, NULL);
    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    open_world(&server);
    bool succeeds = load(&server);
    if (succeeds) {
        run(&server);
        succeeds = save(&server);
        printf("ends at tick %llu, hash %016llx\n", (unsigned long long)server.tick,
               (unsigned long long)quern_world_hash(server.world));
    }
    close_world(&server);
    return succeeds ? EXIT_SUCCESS : EXIT_FAILURE;
}
