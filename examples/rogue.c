/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* A turn-based rogue-like: one frame is one turn. usage: rogue [MOVES]
 * MOVES are the letters h, j, k, l (left, down, up, right) and . (wait); "-" reads them from the terminal,
 * a line at a time. Without MOVES the program plays a short game by itself. */
#include <quern/quern.h>

#include <stdio.h>
#include <string.h>

enum { WIDTH = 24, HEIGHT = 7 };

static const char level[HEIGHT][WIDTH + 1] = {
    "########################", "#@....#......#......$..#", "#.....#..g...#...g.....#",
    "#......................#", "#..$..#......#.....g...#", "#.....#......#.........#",
    "########################",
};

typedef struct Cell {
    int32_t x, y;
} Cell;

typedef struct Glyph {
    int32_t symbol;
} Glyph;

typedef struct Health {
    int32_t points;
} Health;

/* What the player wants to do in this turn. */
typedef struct Input {
    int32_t dx, dy;
} Input;

/* Who is in which cell. Systems that write this resource run one after another, row by row, so two entities
 * never enter one cell in the same turn. */
typedef struct Map {
    quern_entity mobs[HEIGHT][WIDTH];
    quern_entity gold[HEIGHT][WIDTH];
    quern_entity hero;
    Cell hero_cell;
    int32_t gold_count;
} Map;

/* An event: a line for the player. */
typedef struct Message {
    char text[40];
} Message;

typedef struct Game {
    quern_world *world;
    quern_schedule *schedule;
    quern_query *glyphs;
    quern_component health;
    quern_resource input, map;
    quern_event message;
} Game;

static bool is_wall(int x, int y)
{
    return level[y][x] == '#';
}

static void say(quern_context *context, const char *text)
{
    const Game *game = quern_context_user_data(context);
    Message message = {{0}};
    (void)snprintf(message.text, sizeof message.text, "%s", text);
    quern_emit(quern_context_emitter(context, game->message), &message);
}

/* Moves into a free cell, or strikes the entity that is in it. Returns whether the cell changed. */
static bool step(quern_context *context, Map *map, quern_entity mover, Cell *cell, int dx, int dy)
{
    const Game *game = quern_context_user_data(context);
    const int x = cell->x + dx, y = cell->y + dy;
    if (is_wall(x, y)) return false;
    const quern_entity other = map->mobs[y][x];
    if (quern_entity_is_null(other)) {
        map->mobs[cell->y][cell->x] = quern_entity_null();
        map->mobs[y][x] = mover;
        *cell = (Cell){x, y};
        return true;
    }
    const bool is_hero = quern_entity_equal(mover, map->hero);
    if (is_hero == quern_entity_equal(other, map->hero)) return false; /* itself, or a friend */
    QUERN_MUST(quern_commands_accumulate(quern_context_commands(context), other, game->health,
                                         &(Health){-1}, QUERN_SUM));
    say(context, is_hero ? "you hit the goblin" : "the goblin hits you");
    return false;
}

QUERN_SYSTEM(move_hero, (Cell, cell))
{
    const Input *input = QUERN_RESOURCE(context, const Input);
    Map *map = QUERN_RESOURCE(context, Map);
    QUERN_ROWS(i)
    {
        if (!step(context, map, view->entities[i], &cell[i], input->dx, input->dy)) continue;
        quern_entity *gold = &map->gold[cell[i].y][cell[i].x];
        map->hero_cell = cell[i];
        if (quern_entity_is_null(*gold)) continue;
        QUERN_MUST(quern_commands_destroy(quern_context_commands(context), *gold));
        *gold = quern_entity_null();
        map->gold_count++;
        say(context, "you find gold");
    }
}

static int sign(int number)
{
    return (number > 0) - (number < 0);
}

/* Goblins see as far as five cells, and walk towards the hero. */
QUERN_SYSTEM(move_goblins, (Cell, cell))
{
    Map *map = QUERN_RESOURCE(context, Map);
    QUERN_ROWS(i)
    {
        const int dx = map->hero_cell.x - cell[i].x, dy = map->hero_cell.y - cell[i].y;
        if (dx * dx + dy * dy > 25) continue;
        if (dx == 0 || !step(context, map, view->entities[i], &cell[i], sign(dx), 0))
            if (dy != 0 && dx * dx <= dy * dy)
                (void)step(context, map, view->entities[i], &cell[i], 0, sign(dy));
    }
}

/* A reaction to health that was set. */
QUERN_SYSTEM(die, (const Health, health), (const Cell, cell))
{
    Map *map = QUERN_RESOURCE(context, Map);
    QUERN_ROWS(i)
    {
        if (health[i].points > 0) continue;
        say(context, quern_entity_equal(view->entities[i], map->hero) ? "you die" : "the goblin dies");
        map->mobs[cell[i].y][cell[i].x] = quern_entity_null();
        QUERN_MUST(quern_commands_destroy(quern_context_commands(context), view->entities[i]));
    }
}

static void show_messages(quern_context *context, const quern_view *view)
{
    const Message *messages = QUERN_EVENTS(view, Message);
    const uint32_t count = view->count;
    for (uint32_t i = 0; i < count; i++)
        printf("turn %d: %s\n", (int)quern_context_frame_index(context) + 1, messages[i].text);
}

static void add_systems(Game *game)
{
    quern_schedule *schedule = game->schedule;
    const quern_term hero = quern_term_with(quern_component_find(game->world, "Hero"));
    const quern_term goblin = quern_term_with(quern_component_find(game->world, "Goblin"));
    QUERN_MUST(
        QUERN_ADD_SYSTEM(schedule, move_hero, .terms = {hero}, .user_data = game, .emits = {game->message},
                         .resources = {{game->input, QUERN_ACCESS_READ}, {game->map, QUERN_ACCESS_WRITE}}));
    QUERN_MUST(QUERN_ADD_SYSTEM(schedule, move_goblins, .terms = {goblin}, .user_data = game,
                                .after = {"move_hero"}, .emits = {game->message},
                                .resources = {{game->map, QUERN_ACCESS_WRITE}}));
    QUERN_MUST(QUERN_ADD_SYSTEM(schedule, die, .user_data = game, .reacts_to = QUERN_REACT_SET,
                                .emits = {game->message}, .resources = {{game->map, QUERN_ACCESS_WRITE}}));
    const quern_system_def show = {.name = "show_messages",
                                   .phase = 1, /* after the sync point and the reactions of the turn */
                                   .run = show_messages,
                                   .items = game->message,
                                   .flags = QUERN_SYSTEM_SERIAL | QUERN_SYSTEM_MAIN_THREAD};
    QUERN_MUST(quern_schedule_add_system(schedule, &show, NULL));
}

static void open_game(Game *game)
{
    QUERN_MUST(quern_world_create(NULL, &game->world));
    QUERN_MUST(QUERN_REGISTER(game->world, Cell, x, y));
    QUERN_MUST(QUERN_REGISTER(game->world, Glyph, symbol));
    QUERN_MUST(QUERN_REGISTER(game->world, Health, points));
    QUERN_MUST(QUERN_REGISTER_TAGS(game->world, Hero, Goblin));
    QUERN_MUST(QUERN_RESOURCE_REGISTER(game->world, &game->input, Input));
    QUERN_MUST(QUERN_RESOURCE_REGISTER(game->world, &game->map, Map));
    QUERN_MUST(QUERN_EVENT_REGISTER(game->world, &game->message, Message));
    game->health = QUERN_ID(game->world, Health);
    const quern_schedule_def def = {.phases = {"turn", "messages"}};
    QUERN_MUST(quern_schedule_create(game->world, &def, &game->schedule));
    add_systems(game);
    const quern_query_def shown = {.terms = {quern_term_read(QUERN_ID(game->world, Cell)),
                                             quern_term_read(QUERN_ID(game->world, Glyph))}};
    QUERN_MUST(quern_query_create(game->world, &shown, &game->glyphs));
}

static void populate(Game *game)
{
    Map *map = quern_resource_get(game->world, game->map);
    for (int y = 0; y < HEIGHT; y++)
        for (int x = 0; x < WIDTH; x++) {
            const char symbol = level[y][x];
            quern_entity entity = quern_entity_null();
            if (symbol == '@' || symbol == 'g') {
                QUERN_MUST(QUERN_CREATE(game->world, &entity, QUERN_VALUE(Cell, x, y),
                                        QUERN_VALUE(Glyph, symbol),
                                        QUERN_VALUE(Health, symbol == '@' ? 5 : 2)));
                map->mobs[y][x] = entity;
            } else if (symbol == '$') {
                QUERN_MUST(QUERN_CREATE(game->world, &map->gold[y][x], QUERN_VALUE(Cell, x, y),
                                        QUERN_VALUE(Glyph, symbol)));
            }
            if (symbol == 'g') QUERN_MUST(QUERN_ADD(game->world, entity, Goblin));
            if (symbol != '@') continue;
            QUERN_MUST(QUERN_ADD(game->world, entity, Hero));
            map->hero = entity;
            map->hero_cell = (Cell){x, y};
        }
}

static void draw(const Game *game)
{
    char rows[HEIGHT][WIDTH + 1];
    const Map *map = quern_resource_get(game->world, game->map);
    for (int y = 0; y < HEIGHT; y++) {
        for (int x = 0; x < WIDTH; x++)
            rows[y][x] = is_wall(x, y) ? '#' : '.';
        rows[y][WIDTH] = '\0';
    }
    quern_query_iterator it = quern_query_iterate(game->glyphs);
    while (quern_query_next(&it)) {
        const Cell *cells = QUERN_COLUMN(&it.view, 0, const Cell);
        const Glyph *glyphs = QUERN_COLUMN(&it.view, 1, const Glyph);
        const uint32_t count = it.view.count;
        for (uint32_t i = 0; i < count; i++)
            rows[cells[i].y][cells[i].x] = (char)glyphs[i].symbol;
    }
    for (int y = 0; y < HEIGHT; y++)
        puts(rows[y]);
    const bool is_alive = quern_entity_is_alive(game->world, map->hero);
    printf("gold %d, health %d\n", map->gold_count,
           is_alive ? QUERN_GET(game->world, map->hero, Health)->points : 0);
}

/* One turn: the input goes into its resource, and a frame without time runs. */
static void take_turn(Game *game, char key)
{
    static const char keys[] = "hjkl";
    static const Input inputs[] = {{-1, 0}, {0, 1}, {0, -1}, {1, 0}};
    const char *found = key == '\0' ? NULL : strchr(keys, key);
    *(Input *)quern_resource_get(game->world, game->input) =
        found == NULL ? (Input){0} : inputs[found - keys];
    QUERN_MUST(quern_schedule_run(game->schedule, NULL, 0));
}

static void play(Game *game, const char *moves)
{
    for (; *moves != '\0'; moves++)
        if (strchr("hjkl.", *moves) != NULL) take_turn(game, *moves);
    draw(game);
}

int main(int argc, char **argv)
{
    Game game;
    char line[128];
    open_game(&game);
    populate(&game);
    draw(&game);
    if (argc < 2)
        play(&game, "jjlljklllllkk");
    else if (strcmp(argv[1], "-") != 0)
        play(&game, argv[1]);
    else
        while (fgets(line, sizeof line, stdin) != NULL)
            play(&game, line);
    quern_query_destroy(game.glyphs);
    quern_schedule_destroy(game.schedule);
    quern_world_destroy(game.world);
}
