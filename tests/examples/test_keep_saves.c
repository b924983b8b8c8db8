/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Saved games of examples/keep: a world that the game would not have made is refused, although its archive is whole. */
#include "examples/keep/game/saves.h"

#include <criterion/criterion.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { MESSAGE_BYTES = 512, STEPS = 60 };

static Level level;
static Game game, loaded;
static char path[64], message[MESSAGE_BYTES];

/* Plays until enemies, spawners, particles and a tower exist. */
static void open_game(void)
{
    cr_assert(level_load(&level, KEEP_SMALL_LEVEL, message, sizeof message), "%s", message);
    cr_assert(game_create(&game, &level, message, sizeof message), "%s", message);
    cr_assert_null(game_act(&game, &(Action){.kind = ACTION_WAVE}));
    for (uint32_t i = 0; i < STEPS; i++)
        game_step(&game, NULL);
    snprintf(path, sizeof path, "test_keep_saves_%d.keep", (int)getpid());
}

static void close_game(void)
{
    remove(path);
    game_destroy(&game);
}

TestSuite(keep_saves, .init = open_game, .fini = close_game);

/* Saves the game and loads it into another one. Returns whether that succeeded. */
static bool is_loaded(void)
{
    Save save;
    const Inputs inputs = {.end = STEPS};
    cr_assert(save_write(&game, &inputs, path, message, sizeof message), "%s", message);
    cr_assert(save_read(&save, path, message, sizeof message), "%s", message);
    loaded = (Game){.trace = NULL};
    const bool is_good = game_create_saved(&loaded, &level, &save, message, sizeof message);
    save_free(&save);
    return is_good;
}

/* The game cannot be loaded, for this reason. */
static void expect_refused(const char *reason)
{
    cr_assert_not(is_loaded(), "not refused, for: %s", reason);
    cr_assert(strstr(message, reason) != NULL, "not '%s', but: %s", reason, message);
}

/* Returns the first value of a component, also of a disabled entity. */
static void *first_value(quern_component component)
{
    static quern_entity entities[1 << 16];
    const uint32_t count = quern_world_list_entities(game.world, entities, 1 << 16);
    for (uint32_t i = 0; i < count; i++)
        if (quern_entity_has(game.world, entities[i], component))
            return quern_entity_get(game.world, entities[i], component);
    cr_assert_fail("no entity has %s", quern_component_name(game.world, component));
    return NULL;
}

static Keep *keep_of_game(void)
{
    return quern_resource_get(game.world, game.types.keep);
}

Test(keep_saves, a_saved_game_is_the_same_world)
{
    cr_assert(is_loaded(), "%s", message);
    cr_assert_eq(quern_world_hash(loaded.world), quern_world_hash(game.world));
    game_step(&game, NULL);
    game_step(&loaded, NULL);
    cr_assert_eq(quern_world_hash(loaded.world), quern_world_hash(game.world));
    game_destroy(&loaded);
}

Test(keep_saves, numbers_of_kinds_and_roads_are_checked)
{
    Enemy *enemy = first_value(game.types.enemy);
    Spawner *spawner = first_value(game.types.spawner);
    RoadNumber *road = first_value(game.types.road_number);
    Tower *tower = first_value(game.types.tower);
    Shape *shape = first_value(game.types.shape);
    struct {
        uint32_t *number, bad;
        const char *reason;
    } cases[] = {
        {&enemy->kind, ENEMY_KINDS, "'Enemy'"},    {&enemy->road, level.road_count, "'Enemy'"},
        {&spawner->kind, UINT32_MAX, "'Spawner'"}, {&spawner->road, level.road_count, "'Spawner'"},
        {&spawner->left, 20001, "'Spawner'"},      {&road->number, level.road_count, "'RoadNumber'"},
        {&tower->kind, TOWER_KINDS, "'Tower'"},    {&shape->sprite, SHAPE_RING + 1, "'Shape'"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const uint32_t good = *cases[i].number;
        *cases[i].number = cases[i].bad;
        expect_refused(cases[i].reason);
        *cases[i].number = good;
    }
    cr_assert(is_loaded(), "%s", message);
    game_destroy(&loaded);
}

Test(keep_saves, numbers_must_be_finite)
{
    Health *health = first_value(game.types.health);
    const float bad[] = {NAN, INFINITY, -1e7f};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        health->points = bad[i];
        expect_refused("'Health'");
    }
    health->points = 1;
    Spawner *spawner = first_value(game.types.spawner);
    const float too_often[] = {0, 1e-30f, 0.00099f};
    for (size_t i = 0; i < sizeof too_often / sizeof *too_often; i++) {
        spawner->every_seconds = too_often[i];
        expect_refused("'Spawner'");
    }
    spawner->every_seconds = 0.001f; /* the least interval of a level */
    cr_assert(is_loaded(), "%s", message);
    game_destroy(&loaded);
}

static uint32_t count_enemies_of_level(void)
{
    uint32_t sum = 0;
    for (uint32_t wave = 0; wave < level.wave_count; wave++)
        for (uint32_t i = 0; i < level.waves[wave].group_count; i++)
            sum += level.waves[wave].groups[i].count;
    return sum;
}

/* Otherwise a small file could make millions of enemies in one step. */
Test(keep_saves, enemies_and_spawners_have_no_more_enemies_than_the_level)
{
    Spawner spawner = {.every_seconds = 1};
    quern_entity entity;
    cr_assert_eq(quern_entity_create_with(game.world, &game.types.spawner, (const void *const[]){&spawner},
                                          1, &entity),
                 QUERN_OK);
    Spawner *added = quern_entity_get(game.world, entity, game.types.spawner);
    added->left = count_enemies_of_level() - keep_of_game()->enemy_count;
    cr_assert(is_loaded(), "%s", message);
    game_destroy(&loaded);
    added->left++;
    expect_refused("'Spawner'");
    cr_assert_eq(quern_entity_set_enabled(game.world, entity, false), QUERN_OK);
    expect_refused("'Spawner'");
}

Test(keep_saves, the_state_of_the_game_is_checked)
{
    Keep *keep = keep_of_game();
    const Keep good = *keep;
    keep->wave = level.wave_count + 1;
    expect_refused("'Keep'");
    *keep = good;
    keep->state = KEEP_LOST + 1;
    expect_refused("'Keep'");
    *keep = good;
    keep->gold = INT32_MAX;
    expect_refused("'Keep'");
    *keep = good;
    keep->step++; /* another one than that of the inputs */
    expect_refused("'Keep'");
    *keep = good;
    keep->rest_seconds = NAN;
    expect_refused("'Keep'");
    keep->rest_seconds =
        600 + 20000 * 60.0f + 600; /* the longest wave that a level may have, and the pause */
    cr_assert(is_loaded(), "%s", message);
    game_destroy(&loaded);
}

/* Weapons hit the target of a locked turret, also of a stunned one. */
Test(keep_saves, a_locked_turret_must_have_a_target)
{
    Turret *turret = first_value(game.types.turret);
    turret->is_locked = 1;
    turret->target = quern_entity_null();
    expect_refused("'Turret'");
    turret->is_locked = 0;
    cr_assert(is_loaded(), "%s", message);
    game_destroy(&loaded);
}

/* Otherwise the price of a sold tower could exceed the range of the gold. */
Test(keep_saves, gold_and_the_cost_of_towers_are_checked)
{
    Tower *tower = first_value(game.types.tower);
    const int32_t cost = tower->cost, bad[] = {-1, 0, 1000000000, INT32_MAX};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        tower->cost = bad[i];
        expect_refused("'Tower'");
    }
    tower->cost = cost;
    keep_of_game()->gold = 1000000000;
    expect_refused("'Keep'");
}

Test(keep_saves, an_enemy_must_have_all_its_components)
{
    quern_entity entity;
    cr_assert_eq(quern_entity_create_with(game.world, &game.types.enemy, NULL, 1, &entity), QUERN_OK);
    expect_refused("'Enemy'");
}

Test(keep_saves, blueprints_and_roads_must_have_their_names)
{
    const quern_entity gun = quern_entity_find(game.world, "towers/gun");
    cr_assert_eq(quern_entity_set_name(game.world, gun, "gnu"), QUERN_OK);
    expect_refused("no blueprint 'towers/gun'");
    cr_assert_eq(quern_entity_set_name(game.world, gun, "gun"), QUERN_OK);
    const quern_entity roads = quern_entity_find(game.world, "roads");
    cr_assert_eq(quern_entity_destroy(game.world, roads), QUERN_OK);
    expect_refused("there is no road 'lane'");
}

Test(keep_saves, a_blueprint_must_have_its_place)
{
    const quern_entity gun = quern_entity_find(game.world, "towers/gun");
    cr_assert_eq(quern_entity_remove(game.world, gun, game.types.local), QUERN_OK);
    expect_refused("no blueprint 'towers/gun'");
}

Test(keep_saves, a_newer_type_is_converted_or_refused_by_name)
{
    quern_component extra;
    quern_entity entity;
    const quern_component_def def = {.name = "Of another version", .size_bytes = 4, .alignment_bytes = 4};
    cr_assert_eq(quern_component_register(game.world, &def, &extra), QUERN_OK);
    cr_assert_eq(quern_entity_create_with(game.world, &extra, NULL, 1, &entity), QUERN_OK);
    expect_refused("Of another version");
}

Test(keep_saves, no_truncated_or_changed_file_is_loaded)
{
    Save save;
    cr_assert(is_loaded(), "%s", message);
    game_destroy(&loaded);
    FILE *file = fopen(path, "rb");
    cr_assert_not_null(file);
    static unsigned char bytes[1 << 20];
    const size_t size = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    cr_assert(size > 1000 && size < sizeof bytes);
    for (size_t i = 0; i < 400; i++) {
        const size_t place = i < 60 ? i : i * 7919 % size, kept = i % 2 == 0 ? size : place;
        file = fopen(path, "wb");
        cr_assert_not_null(file);
        bytes[place] ^= 0x15;
        cr_assert_eq(fwrite(bytes, 1, kept, file), kept);
        bytes[place] ^= 0x15;
        fclose(file);
        if (!save_read(&save, path, message, sizeof message)) continue;
        loaded = (Game){.trace = NULL};
        const bool is_good = game_create_saved(&loaded, &level, &save, message, sizeof message);
        save_free(&save);
        if (!is_good) continue;
        game_destroy(&loaded);
        cr_assert(place < 64, "a file with another byte %zu was loaded", place); /* the title, or a blank */
    }
}

/* Writes a file whose world has so many bytes, all of them 0. */
static void write_long_file(off_t world_bytes)
{
    FILE *file = fopen(path, "wb");
    cr_assert_not_null(file);
    fprintf(file, "keep save 1 0123456789abcdef A long one\n7 end\n");
    cr_assert_eq(fflush(file), 0);
    cr_assert_eq(ftruncate(fileno(file), ftell(file) + world_bytes), 0);
    fclose(file);
}

Test(keep_saves, a_file_that_is_too_long_is_refused)
{
    Save save;
    write_long_file(((off_t)256 << 20) + 1);
    cr_assert_not(save_read(&save, path, message, sizeof message));
    cr_assert(strstr(message, "is too long for a saved game: more than 256 MiB") != NULL, "%s", message);
}

Test(keep_saves, lack_of_memory_is_reported_as_such)
{
#if defined(__linux__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    Save save;
    struct rlimit limit, low;
    unsigned long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    cr_assert_not_null(file);
    cr_assert_eq(fscanf(file, "%lu", &pages), 1);
    fclose(file);
    write_long_file((off_t)128 << 20);
    cr_assert_eq(getrlimit(RLIMIT_AS, &limit), 0);
    low = limit;
    low.rlim_cur = (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE) + ((rlim_t)32 << 20);
    cr_assert_eq(setrlimit(RLIMIT_AS, &low), 0);
    const bool is_read = save_read(&save, path, message, sizeof message);
    cr_assert_eq(setrlimit(RLIMIT_AS, &limit), 0);
    cr_assert_not(is_read);
    cr_assert(strstr(message, "cannot be read: out of memory") != NULL, "%s", message);
#else
    cr_skip_test("memory can be limited on Linux without sanitizers only");
#endif
}
