/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* The answers of docs/how.md on entities in an order, and on entities with a value, as one program. */
#include <quern/quern.h>
#include <quern/shorthand.h>

#include <stdio.h>

typedef struct Sprite {
    float depth;
    char letter;
} Sprite;

typedef struct Member {
    int32_t team;
} Member;

typedef struct Game {
    quern_component sprite, member;
    quern_index *teams;
} Game;

/* ------------------------------------------------------------------------------------------ in order */

static void draw(quern_context *context, const quern_view *view)
{
    (void)view; /* the system has no rows of its own */
    quern_query_iterator it = quern_context_query(context, 0);
    /* a view has rows that follow each other in the order and in memory: mostly one */
    while (quern_query_next(&it)) {
        const Sprite *sprites = QUERN_COLUMN(&it.view, 0, const Sprite);
        const uint32_t count = it.view.count;
        for (uint32_t i = 0; i < count; i++)
            printf("%c", sprites[i].letter);
    }
    printf("\n");
}

static void add_drawing(quern_schedule *schedule, const Game *game)
{
    const quern_system_def def = {
        .name = "draw",
        .run = draw,
        .queries = {{.terms = {quern_term_read(game->sprite)},
                     .order_by = {.component = game->sprite, .field = "depth", .descending = true}}}};
    QUERN_MUST(quern_schedule_add_system(schedule, &def, NULL));
}

static int by_letter(const void *a, const void *b, void *user_data)
{
    const Sprite *left = a, *right = b;
    (void)user_data;
    return (left->letter > right->letter) - (left->letter < right->letter);
}

static void print_by_letter(quern_world *world, const Game *game)
{
    quern_query *query;
    const quern_query_def def = {.terms = {quern_term_read(game->sprite)},
                                 .order_by = {.component = game->sprite, .compare = by_letter}};
    QUERN_MUST(quern_query_create(world, &def, &query));
    quern_query_iterator it = quern_query_iterate(query);
    while (quern_query_next(&it)) {
        const Sprite *sprites = QUERN_COLUMN(&it.view, 0, const Sprite);
        const uint32_t count = it.view.count;
        for (uint32_t i = 0; i < count; i++)
            printf("%c", sprites[i].letter);
    }
    printf("\n");
    quern_query_destroy(query);
}

/* ----------------------------------------------------------------------------------------- by value */

static void open_teams(quern_world *world, Game *game)
{
    const quern_index_def def = {.name = "teams", .component = game->member, .field = "team"};
    QUERN_MUST(quern_index_create(world, &def, &game->teams));
}

static void count_team(const Game *game, int32_t team)
{
    const quern_entity *members;
    uint32_t count;
    QUERN_MUST(quern_index_find(game->teams, (uint64_t)team, &members, &count));
    printf("team %d has %u members\n", team, count);
}

static void greet(quern_context *context, const quern_view *view)
{
    const Game *game = quern_context_user_data(context);
    const Member *own = QUERN_COLUMN(view, 0, const Member);
    for (uint32_t count = view->count, i = 0; i < count; i++) {
        const quern_entity *mates;
        const uint32_t mate_count = quern_context_find(context, game->teams, (uint64_t)own[i].team, &mates);
        if (quern_entity_equal(mates[0], view->entities[i]))
            printf("the first of team %d greets %u others\n", own[i].team, mate_count - 1);
    }
}

static void add_greeting(quern_schedule *schedule, Game *game)
{
    const quern_system_def def = {.name = "greet",
                                  .run = greet,
                                  .terms = {quern_term_read(game->member)},
                                  .indexes = {game->teams},
                                  .user_data = game};
    QUERN_MUST(quern_schedule_add_system(schedule, &def, NULL));
}

static void open_ids(quern_world *world, const Game *game)
{
    quern_index *ids;
    const quern_index_def def = {
        .name = "ids", .component = game->member, .field = "team", .is_unique = true};
    if (quern_index_create(world, &def, &ids) != QUERN_OK) printf("%s\n", quern_error_message());
}

int main(void)
{
    quern_world *world;
    quern_schedule *schedule;
    Game game;
    QUERN_MUST(quern_world_create(NULL, &world));
    QUERN_MUST(quern_component_register(
        world, &(quern_component_def){QUERN_TYPE(Sprite), .fields = QUERN_FIELDS(Sprite, depth)},
        &game.sprite));
    QUERN_MUST(quern_component_register(
        world, &(quern_component_def){QUERN_TYPE(Member), .fields = QUERN_FIELDS(Member, team)},
        &game.member));
    open_teams(world, &game);
    QUERN_MUST(quern_schedule_create(world, NULL, &schedule));
    add_drawing(schedule, &game);
    add_greeting(schedule, &game);
    for (int i = 0; i < 5; i++) {
        const Sprite sprite = {.depth = (float)(i * 3 % 5), .letter = "quern"[i]};
        const Member member = {.team = i % 2 - 1};
        quern_entity entity;
        QUERN_MUST(quern_entity_create_with(world, (quern_component[]){game.sprite, game.member},
                                            (const void *[]){&sprite, &member}, 2, &entity));
    }
    QUERN_MUST(quern_schedule_run(schedule, NULL, 0));
    print_by_letter(world, &game);
    count_team(&game, -1);
    open_ids(world, &game);
    quern_schedule_destroy(schedule);
    quern_index_destroy(game.teams);
    quern_world_destroy(world);
    return 0;
}
