/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* The answers of docs/how.md on many rows at once, as one program. */
#include <quern/quern.h>

#include <stdio.h>
#include <stdlib.h>

typedef struct Cell {
    float heat;
    quern_entity neighbour;
} Cell;

typedef struct Score {
    int32_t points;
} Score;

typedef struct Spark {
    float x, heat;
} Spark;

/* What the systems of this program need to know of the world. */
typedef struct Grid {
    quern_component cell, score, hot;
    quern_event spark;
    quern_combine best_two;
} Grid;

/* Writes the cells where they will stay; `fill_index` is the number of the view's first entity. */
static void fill_cells(quern_context *context, const quern_view *view)
{
    Cell *cells = QUERN_COLUMN(view, 0, Cell);
    (void)context;
    for (uint32_t end = view->count, i = 0; i < end; i++)
        cells[i] = (Cell){.heat = (float)(view->fill_index + i)};
}

static void create_cells(quern_world *world, const Grid *grid, uint32_t count)
{
    const quern_reserve_def room = {.components = {grid->cell}, .row_count = count};
    QUERN_MUST(quern_world_reserve(world, &room)); /* while a loading screen is shown */
    QUERN_MUST(quern_entity_create_filled(world, &grid->cell, 1, count, fill_cells, NULL, NULL));
}

/* Each cell takes heat from its neighbour. With all handles of a view at once, their cache misses overlap. */
static void conduct(quern_context *context, const quern_view *view)
{
    enum { BATCH = 64 };
    const Grid *grid = quern_context_user_data(context);
    Cell *cells = quern_view_write_rows(view, 0); /* no row counts as changed yet */
    for (uint32_t first = 0; first < view->count; first += BATCH) {
        const uint32_t count = view->count - first < BATCH ? view->count - first : BATCH;
        quern_entity neighbours[BATCH];
        const void *found[BATCH];
        for (uint32_t i = 0; i < count; i++)
            neighbours[i] = cells[first + i].neighbour;
        quern_context_lookup_many(context, neighbours, count, grid->score, found);
        for (uint32_t i = 0; i < count; i++) {
            if (found[i] == NULL) continue;
            cells[first + i].heat += (float)((const Score *)found[i])->points;
            quern_view_mark_row(view, 0, first + i); /* now it does */
        }
    }
}

/* Gives all hot rows of a view the tag, and sets the scores of all: one command each instead of one per row. */
static void mark_hot(quern_context *context, const quern_view *view)
{
    const Grid *grid = quern_context_user_data(context);
    const Cell *cells = QUERN_COLUMN(view, 0, const Cell);
    quern_commands *commands = quern_context_commands(context);
    uint64_t mask[QUERN_MAX_VIEW_ROWS / 64] = {0};
    Score scores[QUERN_MAX_VIEW_ROWS];
    const quern_view_rows hot = {.mask = mask};
    for (uint32_t end = view->count, i = 0; i < end; i++) {
        if (cells[i].heat >= 50) mask[i / 64] |= 1ull << i % 64;
        scores[i].points = (int32_t)cells[i].heat;
    }
    QUERN_MUST(quern_commands_set_view_values(commands, view, NULL, grid->score, scores));
    QUERN_MUST(quern_commands_set_view(commands, view, &hot, grid->score, &(Score){50})); /* at most 50 */
    QUERN_MUST(quern_commands_add_view(commands, view, &hot, grid->hot, NULL));
}

static void add_cell_systems(quern_schedule *schedule, Grid *grid)
{
    const quern_system_def systems[] = {
        {.name = "conduct",
         .run = conduct,
         .terms = {quern_term_write(grid->cell)},
         .lookups = {{.component = grid->score}},
         .user_data = grid},
        {.name = "mark hot", .run = mark_hot, .terms = {quern_term_read(grid->cell)}, .user_data = grid}};
    for (int i = 0; i < 2; i++)
        QUERN_MUST(quern_schedule_add_system(schedule, &systems[i], NULL));
}

static void sum_scores(quern_context *context, const quern_view *view)
{
    int64_t *sums = quern_context_user_data(context);
    const Score *scores = QUERN_COLUMN(view, 0, const Score);
    for (uint32_t end = view->count, i = 0; i < end; i++)
        sums[view->ordinal] += scores[i].points;
}

static int64_t total_score(quern_query *query, quern_jobs *jobs)
{
    const uint32_t count = quern_query_view_count(query); /* the ordinals of views are below */
    int64_t *sums = calloc(count + 1, sizeof *sums), total = 0;
    if (sums == NULL) return 0;
    QUERN_MUST(quern_query_parallel_for(query, jobs, sum_scores, sums));
    for (uint32_t i = 0; i < count;
         i++) /* in this order, the result is the same at every number of threads */
        total += sums[i];
    free(sums);
    return total;
}

static void follow(quern_world *world, const Grid *grid, quern_entity cell)
{
    quern_getter *scores;
    const quern_getter_def def = {.component = grid->score, .refs = true};
    QUERN_MUST(quern_getter_create(world, &def, &scores));
    Score *score = quern_getter_get_write(scores, cell); /* by handle: a lookup, in constant time */
    score->points = 7;
    quern_ref ref = {.entity = cell}; /* remembers the address, and whether a row has moved since */
    for (int i = 0; i < 3; i++) {
        Score *same = quern_ref_get_write(scores, &ref);
        same->points++;
    }
    printf("the score is %d\n", score->points);
    quern_getter_destroy(scores);
}

/* Keeps the two best results of a game in one number: the best one, times 100, plus the second best. */
static void keep_best_two(void *value, const void *accumulated, void *user_data)
{
    Score *kept = value;
    const int32_t points = ((const Score *)accumulated)->points;
    const int32_t best = kept->points / 100, second = kept->points % 100;
    (void)user_data;
    if (points > best)
        kept->points = points * 100 + best;
    else if (points > second)
        kept->points = best * 100 + points;
}

static void combine(quern_world *world, Grid *grid, quern_entity game)
{
    const quern_combine_def def = {.name = "best two", .function = keep_best_two};
    QUERN_MUST(quern_combine_register(world, &def, &grid->best_two));
    quern_commands *commands = quern_world_commands(world); /* or that of a callback */
    for (int32_t points = 3; points < 9; points += 2)
        QUERN_MUST(
            quern_commands_accumulate(commands, game, grid->score, &(Score){points}, grid->best_two));
    QUERN_MUST(quern_world_flush(world));
    printf("best two: %d\n", ((const Score *)quern_entity_get(world, game, grid->score))->points);
}

/* Emits all sparks of a view by one call, and without an emitter. */
static void emit_sparks(quern_context *context, const quern_view *view)
{
    const Grid *grid = quern_context_user_data(context);
    const Cell *cells = QUERN_COLUMN(view, 0, const Cell);
    Spark sparks[8];
    uint32_t count = 0;
    for (uint32_t end = view->count, i = 0; i < end && count < 8; i++)
        sparks[count++] = (Spark){(float)i, cells[i].heat};
    (void)quern_context_emit(context, grid->spark, sparks, count); /* all of them, or none */
}

static void count_sparks(quern_context *context, const quern_view *view)
{
    const Spark *sparks = quern_view_events(view); /* QUERN_EVENTS also checks the type */
    (void)context;
    printf("%u sparks, the first of %g\n", view->count, (double)sparks[0].heat);
}

static void watch_cells(quern_context *context, const quern_view *view)
{
    const char *what = quern_context_reaction(context) == QUERN_REACT_ADDED ? "hot" : "cold again";
    printf("%u cells are %s\n", view->count, what);
}

static void add_events(quern_world *world, quern_schedule *schedule, Grid *grid)
{
    QUERN_MUST(QUERN_EVENT_REGISTER_FIELDS(world, &grid->spark, Spark, x, heat));
    const quern_system_def systems[] = {
        {.name = "emit sparks",
         .run = emit_sparks,
         .terms = {quern_term_read(grid->cell), quern_term_with(grid->hot)},
         .emits = {grid->spark},
         .user_data = grid},
        {.name = "count sparks", .phase = 1, .run = count_sparks, .items = grid->spark},
        {.name = "watch cells",
         .run = watch_cells, /* one function for both; the views of a call have one reason */
         .terms = {quern_term_with(grid->hot)},
         .reacts_to = QUERN_REACT_ADDED | QUERN_REACT_REMOVED,
         .flags = QUERN_SYSTEM_SERIAL}};
    for (int i = 0; i < 3; i++)
        QUERN_MUST(quern_schedule_add_system(schedule, &systems[i], NULL));
}

static void read_sparks(quern_world *world)
{
    quern_event_reader *reader;
    quern_event_block block;
    const quern_event_reader_def def = {.event = quern_event_find(world, "Spark"), .name = "sound"};
    QUERN_MUST(quern_event_reader_create(world, &def, &reader));
    QUERN_MUST(quern_world_emit(world, def.event, &(Spark){1, 2}, 1));
    while (quern_event_reader_next(reader, &block))
        printf("%u sparks to hear\n", block.count);
    if (quern_event_reader_lost_count(reader) > 0) /* it read too rarely for the limit of the event */
        printf("sounds are missing\n");
    quern_event_reader_destroy(reader);
}

/* Saves the entities of a query, destroys them, and returns the memory: the level has ended. */
static void end_level(quern_world *world, quern_query *query, const Grid *grid)
{
    quern_archive *archive;
    quern_byte_buffer bytes = {0};
    uint64_t changed_count;
    uint32_t removed_count;
    QUERN_MUST(quern_entity_remove_matching(query, grid->hot, &changed_count));
    QUERN_MUST(quern_archive_create(world, &archive));
    QUERN_MUST(quern_archive_append_query(archive, query));
    QUERN_MUST(quern_archive_save(archive, quern_sink_bytes(&bytes), NULL));
    QUERN_MUST(quern_entity_destroy_matching(query, NULL));
    QUERN_MUST(quern_world_remove_empty_archetypes(world, &removed_count)); /* queries visit fewer */
    QUERN_MUST(quern_world_trim(world)); /* memory for the next level, or for other programs */
    printf("%d cooled, %u saved, %d archetypes gone\n", (int)changed_count, quern_archive_count(archive),
           removed_count > 0);
    quern_archive_destroy(archive);
    quern_byte_buffer_release(&bytes);
}

int main(void)
{
    quern_world *world;
    quern_schedule *schedule;
    quern_jobs *jobs;
    quern_query *cells, *scores;
    Grid grid;
    quern_entity game;
    QUERN_MUST(quern_world_create(NULL, &world));
    QUERN_MUST(
        quern_schedule_create(world, &(quern_schedule_def){.phases = {"work", "display"}}, &schedule));
    QUERN_MUST(quern_jobs_create(&(quern_jobs_def){.thread_count = 2}, &jobs));
    QUERN_MUST(quern_component_register(
        world,
        &(quern_component_def){QUERN_TYPE(Cell), .fields = QUERN_FIELDS(Cell, heat, neighbour),
                               .row_changes = true},
        &grid.cell));
    QUERN_MUST(QUERN_REGISTER(world, Score, points));
    QUERN_MUST(QUERN_REGISTER_TAGS(world, Hot));
    grid.score = QUERN_ID(world, Score);
    grid.hot = quern_component_find(world, "Hot");
    create_cells(world, &grid, 100);
    QUERN_MUST(QUERN_CREATE(world, &game, QUERN_VALUE(Score, 0)));
    combine(world, &grid, game);
    const quern_query_def with_cell = {.terms = {quern_term_read(grid.cell)}};
    const quern_query_def with_score = {.terms = {quern_term_read(grid.score)}};
    QUERN_MUST(quern_query_create(world, &with_cell, &cells));
    QUERN_MUST(quern_query_create(world, &with_score, &scores));
    QUERN_MUST(quern_entity_add_matching(cells, grid.score, NULL, NULL));
    add_cell_systems(schedule, &grid);
    add_events(world, schedule, &grid);
    for (int frame = 0; frame < 2; frame++)
        QUERN_MUST(quern_schedule_run(schedule, jobs, 1));
    printf("all scores: %d\n", (int)total_score(scores, jobs));
    follow(world, &grid, game);
    read_sparks(world);
    end_level(world, cells, &grid);
    quern_query_destroy(cells);
    quern_query_destroy(scores);
    quern_schedule_destroy(schedule);
    quern_jobs_destroy(jobs);
    quern_world_destroy(world);
}
