/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* A maze: players eat dots and avoid ghosts, which hunt the nearest player. Each player looks at all ghosts and asks an
 * index where dots are; each ghost looks at all players. The moves are the same on any number of threads, which is the
 * argument of the program. */
#include <quern/kit/random.h>
#include <quern/quern.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const level[] = {
    "#########################", "#...........#...........#", "#.###.#####.#.#####.###.#",
    "#.#.......P...P.......#.#", "#.#.##.#.#######.#.##.#.#", "#......#....#....#......#",
    "###.##.####.#.####.##.###", "#......#...G.G...#......#", "#.####.#.##   ##.#.####.#",
    "#......#.#G   G#.#......#", "###.##.#.#######.#.##.###", "#...##......#......##...#",
    "#.#.##.####.#.####.##.#.#", "#.#.....................#", "#########################",
};
enum { WIDTH = 25, HEIGHT = sizeof level / sizeof *level, CELLS = WIDTH * HEIGHT, TRAIL = 6, FRAMES = 300 };
enum { FEAR = 5 }; /* players flee from ghosts that are nearer than so many steps */

static const int32_t steps[4] = {-WIDTH, -1, 1, WIDTH}; /* from a cell to its neighbours */

typedef struct Mover {
    int32_t cell, start, step; /* `step` is 0 for a mover that stays */
} Mover;

typedef struct Player {
    uint32_t lives, score;
} Player;

typedef struct Trail {
    QUERN_LIST(int32_t) cells; /* the last cells, the oldest first */
} Trail;

/* What all ghosts of a kind have once. */
typedef struct Nature {
    uint32_t wander_percent; /* how often they go anywhere */
} Nature;

typedef struct Dot {
    int32_t cell;
} Dot;

typedef struct Board {
    uint32_t dots_left, frame;
} Board;

typedef struct Game {
    quern_world *world;
    quern_schedule *schedule;
    quern_resource board;
    quern_index *dots;    /* by cell */
    uint32_t sound_count; /* one for each dot that is gone: the hook plays it */
} Game;

static bool is_wall(int32_t cell)
{
    return level[cell / WIDTH][cell % WIDTH] == '#';
}

/* ---------------------------------------------------------------------------------------------- ways */

/* 1 and the distance in steps to the nearest of some cells; 0 where there is no way. */
typedef struct Distances {
    int32_t to[CELLS], queue[CELLS], first, end;
} Distances;

static void reach(Distances *distances, int32_t cell, int32_t distance)
{
    if (is_wall(cell) || distances->to[cell] != 0) return;
    distances->to[cell] = distance;
    distances->queue[distances->end++] = cell;
}

static void measure(Distances *distances)
{
    while (distances->first < distances->end) {
        const int32_t cell = distances->queue[distances->first++];
        for (int k = 0; k < 4; k++)
            reach(distances, cell + steps[k], distances->to[cell] + 1);
    }
}

static void measure_to_movers(quern_context *context, Distances *distances)
{
    QUERN_EACH_VIEW(context, 0, it)
    {
        const Mover *movers = QUERN_COLUMN(&it.view, 0, const Mover);
        const uint32_t mover_count = it.view.count;
        for (uint32_t k = 0; k < mover_count; k++)
            reach(distances, movers[k].cell, 1);
    }
    measure(distances);
}

/* ------------------------------------------------------------------------------------------- systems */

/* A player flees from a near ghost, and otherwise goes to the nearest dot. */
QUERN_SYSTEM(choose, (Player, player), (Mover, mover))
{
    const Game *game = quern_context_user_data(context);
    Distances ghosts = {.end = 0}, dots = {.end = 0};
    measure_to_movers(context, &ghosts);
    for (int32_t cell = 0; cell < CELLS; cell++)
        if (quern_context_find(context, game->dots, (uint64_t)cell, NULL) > 0) reach(&dots, cell, 1);
    measure(&dots);
    QUERN_ROWS(i)
    {
        const int32_t cell = mover[i].cell;
        const bool flees = ghosts.to[cell] != 0 && ghosts.to[cell] <= FEAR;
        int32_t best = flees ? ghosts.to[cell] : CELLS;
        mover[i].step = 0;
        for (int k = 0; k < 4 && player[i].lives > 0; k++) {
            const int32_t next = cell + steps[k];
            if (is_wall(next)) continue;
            const int32_t value = flees ? ghosts.to[next] : dots.to[next];
            if (value == 0 || (flees ? value <= best : value >= best)) continue;
            best = value;
            mover[i].step = steps[k];
        }
    }
}

/* A ghost goes towards the nearest player, or now and then anywhere, and turns round only in a dead end. */
QUERN_SYSTEM(hunt, (Mover, mover))
{
    const Board *board = QUERN_RESOURCE(context, const Board);
    const Nature *const *natures = QUERN_UP(view, 2, Nature);
    Distances players = {.end = 0};
    measure_to_movers(context, &players);
    QUERN_ROWS(i)
    {
        const uint64_t bits = quern_random(view->entities[i].bits & 0xFFFFFFFFu, board->frame);
        const bool wanders = quern_random_below(bits, 100) < natures[i]->wander_percent;
        int32_t best = CELLS, step = -mover[i].step;
        for (int k = 0; k < 4; k++) {
            const int32_t next = mover[i].cell + steps[k];
            if (is_wall(next) || steps[k] == -mover[i].step) continue;
            const int32_t value = wanders ? (int32_t)(bits >> (8 * k) & 255) : players.to[next];
            if (value >= best) continue;
            best = value;
            step = steps[k];
        }
        mover[i].step = step;
    }
}

static void play_sound(quern_world *world, quern_entity entity, void *value, void *user_data)
{
    (void)world, (void)entity, (void)value;
    ((Game *)user_data)->sound_count++;
}

QUERN_SYSTEM(walk, (Mover, mover))
{
    QUERN_ROWS(i) mover[i].cell += mover[i].step;
}

QUERN_SYSTEM(leave_trail, (const Mover, mover), (Trail, trail))
{
    QUERN_ROWS(i)
    {
        quern_list *cells = &trail[i].cells.list;
        QUERN_MUST(quern_list_push(cells, sizeof(int32_t), &mover[i].cell));
        if (cells->count > TRAIL) QUERN_MUST(quern_list_remove(cells, sizeof(int32_t), 0, 1));
    }
}

QUERN_SYSTEM(eat, (const Mover, mover), (Player, player))
{
    const Game *game = quern_context_user_data(context);
    QUERN_ROWS(i)
    {
        const quern_entity *dots;
        if (quern_context_find(context, game->dots, (uint64_t)mover[i].cell, &dots) == 0) continue;
        player[i].score += 10;
        QUERN_MUST(quern_commands_destroy(quern_context_commands(context), dots[0]));
    }
}

/* A player that meets a ghost starts again. */
QUERN_SYSTEM(meet, (Player, player), (Mover, mover))
{
    QUERN_ROWS(i)
    {
        bool is_caught = false;
        QUERN_EACH_VIEW(context, 0, it)
        {
            const Mover *ghosts = QUERN_COLUMN(&it.view, 0, const Mover);
            const uint32_t ghost_count = it.view.count;
            for (uint32_t k = 0; k < ghost_count; k++)
                is_caught = is_caught || ghosts[k].cell == mover[i].cell ||
                            (ghosts[k].cell == mover[i].cell - mover[i].step &&
                             mover[i].cell == ghosts[k].cell - ghosts[k].step);
        }
        if (!is_caught || player[i].lives == 0) continue;
        player[i].lives--;
        mover[i].cell = mover[i].start;
    }
}

/* Runs after the commands of `eat`, so that the dots of this frame are gone. */
static void count_dots(quern_context *context, const quern_view *view)
{
    Board *board = QUERN_RESOURCE(context, Board);
    (void)view;
    board->frame++;
    board->dots_left = 0;
    QUERN_EACH_VIEW(context, 0, it) board->dots_left += it.view.count;
}

/* ---------------------------------------------------------------------------------------------- world */

static void add_systems(Game *game)
{
    quern_world *world = game->world;
    quern_schedule *schedule = game->schedule;
    const quern_term is_ghost = quern_term_with(quern_component_find(world, "Ghost")),
                     is_player = quern_term_with(QUERN_ID(world, Player)),
                     no_ghost = quern_term_without(quern_component_find(world, "Ghost")),
                     no_player = quern_term_without(QUERN_ID(world, Player)),
                     mover = quern_term_read(QUERN_ID(world, Mover)),
                     dot = quern_term_with(QUERN_ID(world, Dot));
    QUERN_MUST(QUERN_ADD_SYSTEM(schedule, choose, .terms = {no_ghost}, .indexes = {game->dots},
                                .queries = {{.terms = {mover, is_ghost}}}));
    QUERN_MUST(QUERN_ADD_SYSTEM(
        schedule, hunt, .terms = {no_player, quern_term_shared(world, QUERN_ID(world, Nature))},
        .resources = {{game->board, QUERN_ACCESS_READ}}, .queries = {{.terms = {mover, is_player}}}));
    QUERN_MUST(QUERN_ADD_SYSTEM(schedule, walk));
    QUERN_MUST(QUERN_ADD_SYSTEM(schedule, leave_trail));
    QUERN_MUST(QUERN_ADD_SYSTEM(schedule, eat, .indexes = {game->dots}));
    QUERN_MUST(
        QUERN_ADD_SYSTEM(schedule, meet, .terms = {no_ghost}, .queries = {{.terms = {mover, is_ghost}}}));
    QUERN_MUST(
        quern_schedule_add_system(schedule,
                                  &(quern_system_def){.name = "count_dots",
                                                      .run = count_dots,
                                                      .resources = {{game->board, QUERN_ACCESS_WRITE}},
                                                      .queries = {{.terms = {dot}}},
                                                      .after_commands_of = {"eat"}},
                                  NULL));
}

static void fill(Game *game)
{
    quern_world *world = game->world;
    for (int32_t cell = 0; cell < CELLS; cell++) {
        const char letter = level[cell / WIDTH][cell % WIDTH];
        if (letter == '.') QUERN_MUST(QUERN_CREATE(world, NULL, QUERN_VALUE(Dot, cell)));
        if (letter == 'P')
            QUERN_MUST(QUERN_CREATE(world, NULL, QUERN_VALUE(Player, .lives = 3),
                                    QUERN_VALUE(Trail, .cells.list.count = 0),
                                    QUERN_VALUE(Mover, cell, cell, 0)));
        if (letter == 'G') {
            const quern_prefab_value value = {.component = QUERN_ID(world, Nature),
                                              .value = &(Nature){(uint32_t)cell % 5 * 20}};
            quern_entity ghost, nature;
            QUERN_MUST(quern_shared_create(world, &value, 1, &nature));
            QUERN_MUST(QUERN_CREATE(world, &ghost, QUERN_TAG(Ghost), QUERN_VALUE(Mover, cell, cell, 0)));
            QUERN_MUST(quern_entity_relate(world, ghost, quern_world_shared(world), nature));
        }
    }
}

static void open_game(Game *game)
{
    QUERN_MUST(quern_world_create(NULL, &game->world));
    QUERN_MUST(QUERN_REGISTER(game->world, Mover, cell, start, step));
    QUERN_MUST(QUERN_REGISTER(game->world, Player, lives, score));
    QUERN_MUST(QUERN_REGISTER(game->world, Nature, wander_percent));
    QUERN_MUST(QUERN_REGISTER_TAGS(game->world, Ghost));
    quern_component trail, dot;
    QUERN_MUST(quern_component_register(
        game->world,
        &(quern_component_def){QUERN_TYPE(Dot), .fields = QUERN_FIELDS(Dot, cell),
                               .entity_hooks = {.on_remove = play_sound, .user_data = game}},
        &dot));
    QUERN_MUST(quern_component_register(
        game->world,
        &(quern_component_def){QUERN_TYPE(Trail), .fields = {QUERN_LIST_FIELD(Trail, cells, int32_t)}},
        &trail));
    QUERN_MUST(QUERN_RESOURCE_REGISTER_FIELDS(game->world, &game->board, Board, dots_left, frame));
    QUERN_MUST(quern_index_create(
        game->world,
        &(quern_index_def){.name = "dots by cell", .component = dot, .field = "cell", .is_unique = true},
        &game->dots));
    QUERN_MUST(
        quern_schedule_create(game->world, &(quern_schedule_def){.user_data = game}, &game->schedule));
    fill(game);
    add_systems(game);
}

/* -------------------------------------------------------------------------------------------- picture */

static void draw(const Game *game)
{
    char picture[CELLS];
    quern_query *query;
    for (int32_t cell = 0; cell < CELLS; cell++)
        picture[cell] = is_wall(cell) ? '#' : ' ';
    QUERN_MUST(quern_query_create(
        game->world,
        &(quern_query_def){.terms = {quern_term_optional(QUERN_ID(game->world, Dot), QUERN_ACCESS_READ),
                                     quern_term_optional(QUERN_ID(game->world, Mover), QUERN_ACCESS_READ),
                                     quern_term_optional(QUERN_ID(game->world, Trail), QUERN_ACCESS_READ)}},
        &query));
    for (quern_query_iterator it = quern_query_iterate(query); quern_query_next(&it);) {
        const Dot *dots = QUERN_COLUMN(&it.view, 0, const Dot);
        const Mover *movers = QUERN_COLUMN(&it.view, 1, const Mover);
        const Trail *trails = QUERN_COLUMN(&it.view, 2, const Trail);
        for (uint32_t count = it.view.count, i = 0; i < count; i++) {
            if (dots != NULL) picture[dots[i].cell] = '.';
            for (uint32_t k = 0; trails != NULL && k < trails[i].cells.list.count; k++)
                picture[trails[i].cells.items[k]] = ',';
            if (movers != NULL) picture[movers[i].cell] = trails != NULL ? 'P' : 'G';
        }
    }
    quern_query_destroy(query);
    for (const char *row = picture; row < picture + CELLS; row += WIDTH)
        printf("%.*s\n", WIDTH, row);
}

int main(int argc, char **argv)
{
    static Game game;
    quern_jobs *jobs;
    open_game(&game);
    const Board *board = quern_resource_get(game.world, game.board);
    QUERN_MUST(quern_jobs_create(
        &(quern_jobs_def){.thread_count = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 0}, &jobs));
    do
        QUERN_MUST(quern_schedule_run(game.schedule, jobs, 1.0 / 10));
    while (board->dots_left > 0 && board->frame < FRAMES);
    draw(&game);
    printf("frame %u: %u dots left, %u sounds\n", (unsigned)board->frame, (unsigned)board->dots_left,
           (unsigned)game.sound_count);
    printf("hash 0x%016llx\n", (unsigned long long)quern_world_hash(game.world));
    quern_schedule_destroy(game.schedule);
    quern_index_destroy(game.dots);
    quern_jobs_destroy(jobs);
    quern_world_destroy(game.world);
    return EXIT_SUCCESS;
}
