/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "saves.h"

#include "check.h"
#include "kinds.h"
#include "systems.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <quern/history.h>
#include <quern/reflect.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { FORMAT = 1, LINE_BYTES = 128, PATH_BYTES = 1024, PARTS_MAX = 100, PIECE_BYTES = 1 << 16 };

static const size_t world_bytes_max = (size_t)1 << 28;
static const float number_max = 1e6f;          /* largest absolute value of a number of a component */
static const float rest_max = 2e6f;            /* more than the longest wave and the pause after it */
static const int32_t gold_max = 100000000;     /* leaves room for what sales and kills add */
static const int32_t count_max = 1000000000;   /* of lives, score and kills */
static const float every_seconds_min = 0.001f; /* as in levels */

/* Describes a failure. Returns false. */
__attribute__((format(printf, 4, 5))) static bool fail(const char *path, char *message, size_t bytes,
                                                       const char *format, ...)
{
    const int used = snprintf(message, bytes, "%s: ", path);
    if (used < 0 || (size_t)used >= bytes) return false;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message + used, bytes - (size_t)used, format, arguments);
    va_end(arguments);
    return false;
}

/* --------------------------------------------------------------------------------------------- writing */

static bool write_parts(FILE *file, const Game *game, const Inputs *inputs, const quern_byte_buffer *world)
{
    fprintf(file, "keep save %d %016" PRIx64 " %s\n", FORMAT, game->level.hash, game->level.title);
    inputs_write(inputs, file);
    fwrite(world->bytes, 1, world->size_bytes, file);
    return fflush(file) == 0 && !ferror(file);
}

/* Returns whether a path has something that must not be replaced: a folder, a link, a pipe or a device. */
static bool is_special(const char *path)
{
    struct stat status;
#ifdef _WIN32
    return stat(path, &status) == 0 && !S_ISREG(status.st_mode);
#else
    return lstat(path, &status) == 0 && !S_ISREG(status.st_mode);
#endif
}

/* Creates a new file beside the one with a path, so that no file of the player or of another process is overwritten. Returns
 * NULL with errno if that fails. */
static FILE *create_part(const char *path, char part[PATH_BYTES])
{
    FILE *file = NULL;
    for (uint32_t i = 0; i < PARTS_MAX && file == NULL; i++) {
        snprintf(part, PATH_BYTES, "%s.part%" PRIu32, path, i);
        file = fopen(part, "wbx");
        if (file == NULL && errno != EEXIST) break;
    }
    return file;
}

bool save_write(Game *game, const Inputs *inputs, const char *path, char *message, size_t message_bytes)
{
    char part[PATH_BYTES];
    if (strlen(path) > PATH_BYTES - sizeof ".part99")
        return fail(path, message, message_bytes, "the name is too long: use one of at most %zu bytes",
                    PATH_BYTES - sizeof ".part99");
    if (is_special(path))
        return fail(
            path, message, message_bytes,
            "cannot be written: it is a folder, a link or a device, and only a plain file is replaced; "
            "nothing was saved: use another name");
    quern_byte_buffer world = {0};
    if (quern_world_save(game->world, quern_sink_bytes(&world), NULL) != QUERN_OK) {
        quern_byte_buffer_release(&world);
        return fail(path, message, message_bytes, "not saved: %s", quern_error_message());
    }
    FILE *file = create_part(path, part);
    bool is_whole = file != NULL && write_parts(file, game, inputs, &world);
    int error = errno;
    if (file != NULL && fclose(file) != 0 && is_whole) {
        is_whole = false;
        error = errno;
    }
    quern_byte_buffer_release(&world);
    if (is_whole && rename(part, path) == 0) return true;
    if (is_whole) error = errno;
    if (file != NULL) remove(part);
    return fail(path, message, message_bytes,
                "cannot be written: %s; nothing was saved, and an older saved game is unchanged",
                strerror(error));
}

/* --------------------------------------------------------------------------------------------- reading */

static bool read_header(Save *save, FILE *file, char *message, size_t bytes)
{
    char line[LINE_BYTES];
    unsigned format;
    if (fgets(line, sizeof line, file) == NULL || sscanf(line, "keep save %u", &format) != 1)
        return fail(save->path, message, bytes, "is not a saved game of Keep");
    if (format != FORMAT)
        return fail(save->path, message, bytes,
                    "was saved by another version of Keep: it has format %u, and this one reads format %d",
                    format, FORMAT);
    if (sscanf(line, "keep save %u %" SCNx64 " %31[^\n]", &format, &save->level, save->title) != 3 ||
        strchr(line, '\n') == NULL)
        return fail(save->path, message, bytes, "line 1 does not name the level");
    for (char *c = save->title; *c != '\0'; c++)
        if ((unsigned char)*c < ' ') *c = '?';
    return true;
}

static bool read_world(Save *save, FILE *file, char *message, size_t bytes)
{
    char *piece = check_memory(malloc(PIECE_BYTES));
    const quern_sink sink = quern_sink_bytes(&save->world);
    bool is_short = true, is_kept = true;
    for (size_t count; is_short && is_kept && (count = fread(piece, 1, PIECE_BYTES, file)) > 0;) {
        is_short = save->world.size_bytes + count <= world_bytes_max;
        is_kept = !is_short || sink.write(sink.user_data, piece, count);
    }
    free(piece);
    if (ferror(file)) return fail(save->path, message, bytes, "cannot be read: %s", strerror(errno));
    if (!is_kept)
        return fail(save->path, message, bytes, "cannot be read: out of memory after %zu KiB of the world",
                    save->world.size_bytes >> 10);
    return is_short || fail(save->path, message, bytes, "is too long for a saved game: more than %zu MiB",
                            world_bytes_max >> 20);
}

bool save_read(Save *save, const char *path, char *message, size_t message_bytes)
{
    *save = (Save){.path = path};
    FILE *file = fopen(path, "rb");
    if (file == NULL)
        return errno == ENOENT
                   ? fail(path, message, message_bytes, "there is no saved game")
                   : fail(path, message, message_bytes, "cannot be opened: %s", strerror(errno));
    uint32_t number = 0;
    const char *wrong = NULL;
    bool is_good = read_header(save, file, message, message_bytes);
    if (is_good) wrong = inputs_read(&save->inputs, file, &number);
    if (wrong != NULL)
        is_good = fail(path, message, message_bytes, "line %" PRIu32 " %s", number + 1, wrong);
    is_good = is_good && read_world(save, file, message, message_bytes);
    fclose(file);
    if (!is_good) save_free(save);
    return is_good;
}

void save_free(Save *save)
{
    inputs_free(&save->inputs);
    quern_byte_buffer_release(&save->world);
    *save = (Save){.path = NULL};
}

/* -------------------------------------------------------------------------------------------- checking */

typedef bool value_check(const Game *game, const quern_type_info *type, const void *value);

/* Checks each value of a component, also of disabled entities and of disabled components. */
static bool all_values(const Game *game, quern_component component, value_check *is_good)
{
    quern_type_info type;
    quern_query *query;
    check(quern_component_get_info(game->world, component, &type));
    const quern_term read = quern_term_read(component);
    const quern_query_def def = {
        .terms = {type.can_disable ? quern_term_either(read) : read,
                  quern_term_optional(quern_world_disabled_tag(game->world), QUERN_ACCESS_NONE)}};
    check(quern_query_create(game->world, &def, &query));
    quern_query_iterator it = quern_query_iterate(query);
    bool all = true;
    while (quern_query_next(&it)) {
        const char *values = quern_view_read(&it.view, 0);
        const uint32_t count = it.view.count;
        for (uint32_t i = 0; i < count && all; i++)
            all = is_good(game, &type, values + (size_t)i * type.size_bytes);
    }
    quern_query_destroy(query);
    return all;
}

/* Returns whether all floating-point fields of a value are numbers, and not too large. */
static bool has_numbers(const Game *game, const quern_type_info *type, const void *value)
{
    (void)game;
    for (uint32_t f = 0; f < type->field_count; f++) {
        const quern_field *field = &type->fields[f];
        if (field->type != QUERN_FIELD_F32) continue;
        for (uint32_t i = 0; i < field->count; i++) {
            float number;
            memcpy(&number, (const char *)value + field->offset_bytes + i * sizeof number, sizeof number);
            if (!(fabsf(number) <= number_max)) return false;
        }
    }
    return true;
}

static bool check_enemy(const Game *game, const quern_type_info *type, const void *value)
{
    (void)type;
    const Enemy *enemy = value;
    return enemy->kind < ENEMY_KINDS && enemy->road < game->level.road_count;
}

static bool check_spawner(const Game *game, const quern_type_info *type, const void *value)
{
    (void)type;
    const Spawner *spawner = value;
    return spawner->kind < ENEMY_KINDS && spawner->road < game->level.road_count &&
           spawner->every_seconds >= every_seconds_min;
}

static bool check_road(const Game *game, const quern_type_info *type, const void *value)
{
    (void)type;
    return ((const RoadNumber *)value)->number < game->level.road_count;
}

static bool check_tower(const Game *game, const quern_type_info *type, const void *value)
{
    (void)game;
    (void)type;
    const Tower *tower = value;
    return tower->kind < TOWER_KINDS && tower->cost == tower_rules[tower->kind].cost;
}

/* Weapons hit the target of a locked turret. The system "aim" does not clear is_locked of each turret before they do: it
 * leaves out turrets that are stunned. */
static bool check_turret(const Game *game, const quern_type_info *type, const void *value)
{
    (void)game;
    (void)type;
    const Turret *turret = value;
    return !turret->is_locked || !quern_entity_is_null(turret->target);
}

static bool check_shape(const Game *game, const quern_type_info *type, const void *value)
{
    (void)game;
    (void)type;
    return ((const Shape *)value)->sprite <= SHAPE_RING;
}

static bool check_particle(const Game *game, const quern_type_info *type, const void *value)
{
    (void)game;
    (void)type;
    return ((const Particle *)value)->kind <= PARTICLE_EMBER;
}

static bool check_keep(Game *game, const Inputs *inputs)
{
    const Keep *keep = game_state(game);
    return keep->step == inputs->end && keep->wave <= game->level.wave_count && keep->state <= KEEP_LOST &&
           keep->gold >= 0 && keep->gold <= gold_max && keep->lives >= 0 && keep->lives <= count_max &&
           keep->score >= 0 && keep->score <= count_max && keep->kills <= (uint32_t)count_max &&
           fabsf(keep->rest_seconds) <= rest_max;
}

/* Returns the number of entities with all of the components, also of disabled ones. */
static uint64_t count_with(Game *game, const quern_component *components, uint32_t count)
{
    quern_query_def def = {
        .terms = {quern_term_optional(quern_world_disabled_tag(game->world), QUERN_ACCESS_NONE)}};
    for (uint32_t i = 0; i < count; i++)
        def.terms[1 + i] = quern_term_either(quern_term_with(components[i]));
    quern_query *query;
    check(quern_query_create(game->world, &def, &query));
    uint64_t sum = 0;
    quern_query_iterator it = quern_query_iterate(query);
    while (quern_query_next(&it))
        sum += it.view.count;
    quern_query_destroy(query);
    return sum;
}

/* Returns the number of enemies that spawners still create, also disabled spawners. */
static uint64_t count_left(Game *game)
{
    const quern_query_def def = {
        .terms = {quern_term_read(game->types.spawner),
                  quern_term_optional(quern_world_disabled_tag(game->world), QUERN_ACCESS_NONE)}};
    quern_query *query;
    check(quern_query_create(game->world, &def, &query));
    uint64_t sum = 0;
    quern_query_iterator it = quern_query_iterate(query);
    while (quern_query_next(&it)) {
        const Spawner *spawners = quern_view_read(&it.view, 0);
        const uint32_t count = it.view.count;
        for (uint32_t i = 0; i < count; i++)
            sum += spawners[i].left;
    }
    quern_query_destroy(query);
    return sum;
}

/* Returns the number of enemies in all waves of a level. */
static uint64_t count_of_level(const Level *level)
{
    uint64_t sum = 0;
    for (uint32_t wave = 0; wave < level->wave_count; wave++)
        for (uint32_t i = 0; i < level->waves[wave].group_count; i++)
            sum += level->waves[wave].groups[i].count;
    return sum;
}

/* Returns the name of the first type with a value that systems cannot work with, such as the number of a road that the
 * level does not have; NULL if there is none. */
static const char *find_bad_type(Game *game, const Inputs *inputs)
{
    const Types *types = &game->types;
    const struct {
        quern_component component;
        value_check *is_good;
    } rules[] = {{types->enemy, check_enemy},      {types->spawner, check_spawner},
                 {types->tower, check_tower},      {types->turret, check_turret},
                 {types->shape, check_shape},      {types->road_number, check_road},
                 {types->particle, check_particle}};
    if (!check_keep(game, inputs)) return "Keep";
    const uint32_t count = quern_type_count(game->world, QUERN_TYPE_COMPONENT);
    for (uint32_t i = 0; i < count; i++) {
        quern_type_info type;
        check(quern_type_at(game->world, QUERN_TYPE_COMPONENT, i, &type));
        if (type.field_count > 0 && !type.is_managed && !all_values(game, type.component, has_numbers))
            return quern_component_name(game->world, type.component);
    }
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (!all_values(game, rules[i].component, rules[i].is_good))
            return quern_component_name(game->world, rules[i].component);
    /* whatever hits an enemy expects all of these */
    const quern_component of_enemy[] = {types->enemy, types->health, types->place, types->chill};
    const uint64_t enemy_count = count_with(game, of_enemy, 1);
    if (count_with(game, of_enemy, 4) != enemy_count) return "Enemy";
    /* A small file could otherwise create millions of enemies in one step. The blueprints are enemies too. */
    return enemy_count + count_left(game) <= count_of_level(&game->level) + ENEMY_KINDS ? NULL : "Spawner";
}

/* --------------------------------------------------------------------------------------------- loading */

/* Makes the prefabs from the loaded trees. That changes handles of later entities, so the world is restored afterwards. */
static bool capture_blueprints(Game *game, char *message, size_t bytes)
{
    quern_history *history;
    const quern_history_def def = {.schedules = {game->schedule}, .frame_count = 1};
    check(quern_history_create(game->world, &def, &history));
    check(quern_history_save(history, 0, NULL));
    const bool is_good = game_finish_loading(game, message, bytes);
    check(quern_history_restore(history, 0, NULL));
    quern_history_destroy(history);
    return is_good;
}

static bool load(Game *game, const Save *save, char *message, size_t bytes)
{
    const quern_source source = quern_source_bytes(save->world.bytes, save->world.size_bytes);
    if (save->level != game->level.hash)
        return fail(save->path, message, bytes,
                    "was saved in the level '%s', which is another one than '%s' or has changed since: "
                    "give its file by --level",
                    save->title, game->level.title);
    if (save->world.size_bytes == 0) return fail(save->path, message, bytes, "ends before the world");
    if (quern_world_load(game->world, source, NULL, NULL) != QUERN_OK)
        return fail(save->path, message, bytes, "%s", quern_error_message());
    const char *bad = find_bad_type(game, &save->inputs);
    if (bad != NULL)
        return fail(save->path, message, bytes,
                    "the game cannot go on with a value of '%s': the file was not written by this game",
                    bad);
    char wrong[LINE_BYTES];
    return capture_blueprints(game, wrong, sizeof wrong) || fail(save->path, message, bytes, "%s", wrong);
}

bool game_create_saved(Game *game, const Level *level, const Save *save, char *message,
                       size_t message_bytes)
{
    game_create_to_load(game, level, 0);
    if (load(game, save, message, message_bytes)) return true;
    game_destroy(game);
    return false;
}
