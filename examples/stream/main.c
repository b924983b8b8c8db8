/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Streams a level from files while frames run, without a worker that waits for a file. docs/jobs.md,
 * "Waiting for files", explains it. Some of the files are missing, truncated or damaged: the program
 * reports them and continues with the next piece. */
#include "level.h"

#include <quern/quern.h>

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    LEVEL_PIECES = 48, /* pieces of the level, which is a circle */
    AHEAD = 4,         /* maximum number of pieces that are being loaded */
    DEFAULT_WINDOW = 32,
    ROWS_PER_FRAME = 1024, /* rows that a frame creates, and rows that it destroys */
    FRAME_NS = 3000000,
    DEFAULT_ROUNDS = 5,
    MISSING_PIECE = 5,
    CUT_PIECE = 18,
    EMPTY_PIECE = 22,
    DAMAGED_PIECE = 31
};

typedef struct Times {
    uint64_t *ns;
    uint32_t count, capacity;
} Times;

/* Pieces are numbered along the way around the level, and numbers continue after a round. The pieces from
 * `first` to `created_end` are in the world, those from there to `requested_end` are being loaded. piece_at
 * returns the slot of a number. */
typedef struct Game {
    quern_world *world;
    quern_jobs *jobs;
    quern_schedule *schedule;
    quern_query *placed;
    quern_component placement, sway;
    Level level;
    uint32_t window; /* number of pieces in the world */
    Piece *slots;
    quern_entity (*entities)[PIECE_ROWS]; /* entities of each slot */
    uint32_t first, created_end, requested_end;
    uint32_t rows_destroyed; /* destroyed rows of piece `first` */
    uint32_t rows_created;   /* created rows of piece `created_end` */
    uint32_t left_out_count;
    bool is_reported[LEVEL_PIECES];
    uint64_t next_frame_ns;
} Game;

static char folder[256];

static void check(quern_result result)
{
    if (result == QUERN_OK) return;
    fprintf(stderr, "%s: %s\n", quern_result_string(result), quern_error_message());
    exit(EXIT_FAILURE);
}

static _Noreturn void fail(const char *what)
{
    perror(what);
    exit(EXIT_FAILURE);
}

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* --------------------------------------------------------------------------------------------- files */

static void remove_files(void)
{
    char path[512];
    for (uint32_t number = 0; number < LEVEL_PIECES; number++) {
        level_piece_path(folder, number, path, sizeof path);
        unlink(path);
    }
    rmdir(folder);
}

static bool is_made_faulty(uint32_t number)
{
    return number == MISSING_PIECE || number == CUT_PIECE || number == EMPTY_PIECE ||
           number == DAMAGED_PIECE;
}

static void write_files(void)
{
    const char *temporary = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%s/quern-stream-XXXXXX", temporary != NULL ? temporary : "/tmp");
    if (mkdtemp(folder) == NULL) fail(folder);
    atexit(remove_files);
    for (uint32_t number = 0; number < LEVEL_PIECES; number++) {
        const uint32_t kept = number == CUT_PIECE ? 3000 : number == EMPTY_PIECE ? 0 : UINT32_MAX;
        if (number != MISSING_PIECE && !level_write_piece(folder, number, kept, number == DAMAGED_PIECE))
            fail("writing the level");
    }
}

/* ----------------------------------------------------------------------------------------- the world */

/* Sways grass and trees with a wind that blows in waves. */
static void blow(quern_context *context, const quern_view *view)
{
    const float phase = (float)(quern_context_frame_index(context) % 100) * 0.01f;
    const Placement *placements = QUERN_COLUMN(view, 0, const Placement);
    Sway *sways = QUERN_COLUMN(view, 1, Sway);
    const uint32_t count = view->count;
    for (uint32_t i = 0; i < count; i++) {
        const float wave = phase + (float)((placements[i].x + placements[i].y) & 0x3FF) * (1.0f / 1024);
        const float gust = wave - (float)(int32_t)wave;
        sways[i].speed += gust * (1 - gust) * 0.1f;
    }
}

static void swing(quern_context *context, const quern_view *view)
{
    const float dt = (float)quern_context_delta_seconds(context);
    Sway *sways = QUERN_COLUMN(view, 0, Sway);
    const uint32_t count = view->count;
    for (uint32_t i = 0; i < count; i++) {
        sways[i].speed -= (sways[i].lean * sways[i].stiffness + sways[i].speed * 0.2f) * dt;
        sways[i].lean += sways[i].speed * dt;
    }
}

/* Creates the game. Jobs of low priority need a thread of the pool, because the caller does not run them
 * between frames. */
static void open_game(Game *game)
{
    const quern_jobs_def jobs_def = {.thread_count = quern_processor_count() < 2 ? 2 : 0};
    check(quern_jobs_create(&jobs_def, &game->jobs));
    check(quern_world_create(NULL, &game->world));
    check(QUERN_COMPONENT_REGISTER(game->world, &game->placement, Placement));
    check(QUERN_COMPONENT_REGISTER(game->world, &game->sway, Sway));
    const quern_query_def placed = {.terms = {quern_term_read(game->placement)}};
    check(quern_query_create(game->world, &placed, &game->placed));
    check(quern_schedule_create(game->world, NULL, &game->schedule));
    const quern_system_def systems[] = {
        {.name = "blow",
         .run = blow,
         .terms = {quern_term_read(game->placement), quern_term_write(game->sway)}},
        {.name = "swing", .run = swing, .terms = {quern_term_write(game->sway)}},
    };
    for (uint32_t i = 0; i < sizeof systems / sizeof systems[0]; i++)
        check(quern_schedule_add_system(game->schedule, &systems[i], NULL));

    game->level = (Level){.folder = folder, .jobs = game->jobs, .files = reader_start(game->jobs)};
    game->slots = calloc(game->window + AHEAD, sizeof *game->slots);
    game->entities = calloc(game->window + AHEAD, sizeof *game->entities);
    if (game->level.files == NULL || game->slots == NULL || game->entities == NULL)
        fail("opening the game");
}

static void close_game(Game *game)
{
    reader_stop(game->level.files);
    quern_schedule_destroy(game->schedule);
    quern_jobs_destroy(game->jobs);
    quern_query_destroy(game->placed);
    quern_world_destroy(game->world);
    free(game->entities);
    free(game->slots);
}

/* ------------------------------------------------------------------------------------- between frames */

static Piece *piece_at(const Game *game, uint32_t number)
{
    return &game->slots[number % (game->window + AHEAD)];
}

static quern_entity *entities_at(const Game *game, uint32_t number)
{
    return game->entities[number % (game->window + AHEAD)];
}

static void skip_piece(Game *game, const Piece *failed)
{
    game->left_out_count++;
    if (!game->is_reported[failed->number]) level_report(failed, stdout);
    game->is_reported[failed->number] = true;
}

/* Creates the next rows of a loaded piece. Skips a piece that could not be loaded. */
static void create_rows(Game *game, uint32_t row_count)
{
    Piece *next = piece_at(game, game->created_end);
    if (next->failure == PIECE_IS_SOUND) {
        const quern_component components[] = {game->placement, game->sway};
        const void *columns[] = {&next->placements[game->rows_created], &next->sways[game->rows_created]};
        check(quern_entity_create_many(game->world, components, columns, 2, row_count,
                                       &entities_at(game, game->created_end)[game->rows_created]));
        game->rows_created += row_count;
        if (game->rows_created < PIECE_ROWS) return;
    } else {
        skip_piece(game, next);
    }
    game->rows_created = 0;
    game->created_end++;
}

static void destroy_rows(Game *game, uint32_t row_count)
{
    if (piece_at(game, game->first)->failure == PIECE_IS_SOUND) {
        check(quern_entity_destroy_many(game->world, &entities_at(game, game->first)[game->rows_destroyed],
                                        row_count));
        game->rows_destroyed += row_count;
        if (game->rows_destroyed < PIECE_ROWS) return;
    }
    game->rows_destroyed = 0;
    game->first++;
}

/* Creates and destroys rows without waiting: a piece that is not loaded yet is checked again in the next
 * frame. */
static void exchange_rows(Game *game)
{
    if (game->created_end < game->requested_end &&
        quern_counter_is_done(&piece_at(game, game->created_end)->ready))
        create_rows(game, ROWS_PER_FRAME);
    if (game->created_end - game->first > game->window) destroy_rows(game, ROWS_PER_FRAME);
}

/* Requests the next pieces. Called after the frame, because it wakes the reader's thread. */
static void request_ahead(Game *game, uint32_t goal)
{
    while (game->requested_end < goal && game->requested_end - game->first < game->window + AHEAD) {
        check(level_request(&game->level, game->requested_end % LEVEL_PIECES,
                            piece_at(game, game->requested_end)));
        game->requested_end++;
    }
}

/* Loads the first pieces. A game would show a loading screen: here the caller may wait, and runs jobs
 * meanwhile. */
static void load_window(Game *game)
{
    request_ahead(game, game->window);
    while (game->created_end < game->window) {
        check(quern_jobs_wait(game->jobs, &piece_at(game, game->created_end)->ready));
        create_rows(game, PIECE_ROWS);
    }
}

/* -------------------------------------------------------------------------------------------- frames */

static void add_time(Times *times, uint64_t ns)
{
    if (times->count == times->capacity) {
        times->capacity = times->capacity == 0 ? 1024 : 2 * times->capacity;
        times->ns = realloc(times->ns, times->capacity * sizeof times->ns[0]);
        if (times->ns == NULL) fail("noting times");
    }
    times->ns[times->count++] = ns;
}

static void run_frame(Game *game, uint32_t goal, Times *times)
{
    uint64_t begin_ns = now_ns();
    if (begin_ns < game->next_frame_ns) {
        const uint64_t pause_ns = game->next_frame_ns - begin_ns;
        nanosleep(&(struct timespec){.tv_nsec = (long)pause_ns}, NULL);
        begin_ns = now_ns();
    }
    game->next_frame_ns = begin_ns + FRAME_NS;
    exchange_rows(game);
    check(quern_schedule_run(game->schedule, game->jobs, (double)FRAME_NS / 1e9));
    request_ahead(game, goal);
    add_time(times, now_ns() - begin_ns);
}

/* Runs frames for one round of the level. */
static void run_streaming(Game *game, Times *times)
{
    const uint32_t goal = game->created_end + LEVEL_PIECES;
    times->count = 0;
    while (game->created_end < goal || game->created_end - game->first > game->window)
        run_frame(game, goal, times);
}

static void run_still(Game *game, Times *times, uint32_t frame_count)
{
    times->count = 0;
    while (times->count < frame_count)
        run_frame(game, game->requested_end, times);
}

static int compare_times(const void *left, const void *right)
{
    const uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return (a > b) - (a < b);
}

static double percentile_ms(Times *times, uint32_t percent)
{
    const uint64_t nearest = (uint64_t)(times->count - 1) * percent / 100;
    qsort(times->ns, times->count, sizeof times->ns[0], compare_times);
    return (double)times->ns[nearest] / 1e6;
}

/* Measures rounds without and with streaming alternately, so that other load of the machine affects
 * both. */
static void run_rounds(Game *game, uint32_t round_count)
{
    Times times = {0}, worst_still = {0}, worst_streaming = {0};
    uint32_t frame_count = LEVEL_PIECES * PIECE_ROWS / ROWS_PER_FRAME;
    puts("milliseconds of a frame   median  99 of 100 below");
    for (uint32_t round = 0; round < round_count; round++) {
        run_still(game, &times, frame_count);
        add_time(&worst_still, (uint64_t)(percentile_ms(&times, 99) * 1e6));
        printf("without streaming         %6.3f           %6.3f\n", percentile_ms(&times, 50),
               percentile_ms(&times, 99));
        run_streaming(game, &times);
        frame_count = times.count;
        add_time(&worst_streaming, (uint64_t)(percentile_ms(&times, 99) * 1e6));
        printf("with streaming            %6.3f           %6.3f\n", percentile_ms(&times, 50),
               percentile_ms(&times, 99));
    }
    printf("99 of 100 below, medians of the rounds: %.3f and %.3f, that is %.2f times as long\n",
           percentile_ms(&worst_still, 50), percentile_ms(&worst_streaming, 50),
           percentile_ms(&worst_streaming, 50) / percentile_ms(&worst_still, 50));
    free(times.ns);
    free(worst_still.ns);
    free(worst_streaming.ns);
}

/* -------------------------------------------------------------------------------------------- checks */

static uint64_t sum_of_world(const Game *game, uint64_t *out_count)
{
    uint64_t sum = 0;
    *out_count = 0;
    quern_query_iterator iterator = quern_query_iterate(game->placed);
    while (quern_query_next(&iterator)) {
        sum += placement_sum(QUERN_COLUMN(&iterator.view, 0, const Placement), iterator.view.count);
        *out_count += iterator.view.count;
    }
    check(iterator.result);
    return sum;
}

/* Returns the expected checksum of the world: computed from the rule that defines the level, not from
 * files. */
static uint64_t sum_of_window(const Game *game, uint64_t *out_count)
{
    Placement rows[BLOCK_ROWS];
    uint64_t sum = 0;
    *out_count = 0;
    for (uint32_t number = game->first; number < game->created_end; number++) {
        if (is_made_faulty(number % LEVEL_PIECES)) continue;
        for (uint32_t block = 0; block < PIECE_BLOCKS; block++) {
            piece_make_block(number % LEVEL_PIECES, block, rows);
            sum += placement_sum(rows, BLOCK_ROWS);
        }
        *out_count += PIECE_ROWS;
    }
    return sum;
}

static uint32_t count_made_faulty(uint32_t end)
{
    uint32_t count = 0;
    for (uint32_t number = 0; number < end; number++)
        count += is_made_faulty(number % LEVEL_PIECES);
    return count;
}

static bool is_as_written(const Game *game)
{
    uint64_t count, expected_count;
    const uint64_t sum = sum_of_world(game, &count), expected = sum_of_window(game, &expected_count);
    printf("%u pieces streamed, %u left out; %llu entities, ", game->created_end, game->left_out_count,
           (unsigned long long)count);
    const bool is_right = sum == expected && count == expected_count &&
                          game->left_out_count == count_made_faulty(game->created_end);
    puts(is_right ? "as they were written" : "NOT as they were written");
    return is_right;
}

/* usage: stream [ROUNDS [PIECES]], with the number of rounds and the number of pieces in the world */
int main(int argc, char **argv)
{
    const int rounds = argc > 1 ? atoi(argv[1]) : DEFAULT_ROUNDS;
    const int window = argc > 2 ? atoi(argv[2]) : DEFAULT_WINDOW;
    if (rounds < 1 || rounds > 1000 || window < 1 || window > 1000) {
        fprintf(stderr, "usage: stream [ROUNDS [PIECES]], each 1 to 1000\n");
        return 2;
    }
    Game game = {.window = (uint32_t)window};
    write_files();
    open_game(&game);
    load_window(&game);
    run_rounds(&game, (uint32_t)rounds);
    const bool is_right = is_as_written(&game);
    close_game(&game);
    return is_right ? EXIT_SUCCESS : EXIT_FAILURE;
}
