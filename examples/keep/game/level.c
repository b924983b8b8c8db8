/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "level.h"

#include <cjson/cJSON.h>

#include <errno.h>
#include <math.h>
#include <quern/kit/random.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FILE_BYTES_MAX = 1 << 20, WHERE_BYTES = 64 };

/* The state of a reader. It stores the message of the first fault; values read after a fault are not
 * used. */
typedef struct Reader {
    const char *path;
    char *message;
    size_t message_bytes;
    bool failed;
} Reader;

__attribute__((format(printf, 2, 3))) static void set_error(Reader *reader, const char *format, ...)
{
    if (reader->failed) return;
    reader->failed = true;
    const int used = snprintf(reader->message, reader->message_bytes, "%s: ", reader->path);
    if (used < 0 || (size_t)used >= reader->message_bytes) return;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(reader->message + used, reader->message_bytes - (size_t)used, format, arguments);
    va_end(arguments);
}

/* ------------------------------------------------------------------------------------------- values */

static float read_number(Reader *reader, const cJSON *object, const char *where, const char *name,
                         double least, double most)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, name);
    if (!cJSON_IsNumber(item) || !(item->valuedouble >= least && item->valuedouble <= most)) {
        set_error(reader, "%s.%s must be a number from %g to %g", where, name, least, most);
        return (float)least;
    }
    return (float)item->valuedouble;
}

static uint32_t read_count(Reader *reader, const cJSON *object, const char *where, const char *name,
                           uint32_t least, uint32_t most)
{
    const float number = read_number(reader, object, where, name, least, most);
    if (number != floorf(number)) set_error(reader, "%s.%s must be a whole number", where, name);
    return (uint32_t)number;
}

/* Returns whether a text has visible characters, and no control characters: saved games have the title on a line. */
static bool is_line(const char *text)
{
    bool is_visible = false;
    for (; *text != '\0'; text++) {
        if ((unsigned char)*text < ' ' || *text == 0x7F) return false;
        if (*text != ' ') is_visible = true;
    }
    return is_visible;
}

/* Reads a name. The title of a level and the names of roads, enemies and towers follow the same rules. */
static void read_name(Reader *reader, const cJSON *object, const char *where, const char *name,
                      char out[LEVEL_NAME_BYTES])
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, name);
    if (!cJSON_IsString(item) || strlen(item->valuestring) >= LEVEL_NAME_BYTES ||
        strchr(item->valuestring, '/') != NULL || !is_line(item->valuestring)) {
        set_error(reader,
                  "%s.%s must be a string of 1 to %d bytes, not of blanks only, without '/' and "
                  "without control characters such as a line end",
                  where, name, LEVEL_NAME_BYTES - 1);
        return;
    }
    snprintf(out, LEVEL_NAME_BYTES, "%s", item->valuestring);
}

/* Returns the number of elements of a list; 0 if the list is faulty. */
static uint32_t read_list(Reader *reader, const cJSON *object, const char *where, const char *name,
                          int least, int most, const cJSON **out_list)
{
    *out_list = cJSON_GetObjectItemCaseSensitive(object, name);
    const int size = cJSON_IsArray(*out_list) ? cJSON_GetArraySize(*out_list) : -1;
    if (size >= least && size <= most) return (uint32_t)size;
    set_error(reader, "%s.%s must be a list of %d to %d elements", where, name, least, most);
    return 0;
}

/* Reads a point on the field: [x, y]. */
static Point read_point(Reader *reader, const Level *level, const cJSON *item, const char *where)
{
    const cJSON *x = cJSON_GetArrayItem(item, 0), *y = cJSON_GetArrayItem(item, 1);
    if (!cJSON_IsArray(item) || cJSON_GetArraySize(item) != 2 || !cJSON_IsNumber(x) || !cJSON_IsNumber(y)) {
        set_error(reader, "%s must be a place, as [x, y]", where);
        return (Point){0, 0};
    }
    const Point point = {(float)x->valuedouble, (float)y->valuedouble};
    const bool is_inside =
        point.x >= 0 && point.y >= 0 && point.x <= level->width && point.y <= level->height;
    if (!is_inside)
        set_error(reader, "%s is [%g, %g], which is outside of the field of %g by %g", where,
                  x->valuedouble, y->valuedouble, (double)level->width, (double)level->height);
    return point;
}

/* ------------------------------------------------------------------------------------------- parts */

static void read_road(Reader *reader, Level *level, const cJSON *item, uint32_t i)
{
    LevelRoad *road = &level->roads[i];
    const cJSON *points;
    char where[WHERE_BYTES];
    snprintf(where, sizeof where, "roads[%u]", i);
    read_name(reader, item, where, "name", road->name);
    road->width = read_number(reader, item, where, "width", 1, 8);
    road->point_count = read_list(reader, item, where, "points", 2, LEVEL_POINTS_MAX, &points);
    for (uint32_t p = 0; p < road->point_count && !reader->failed; p++) {
        snprintf(where, sizeof where, "roads[%u].points[%u]", i, p);
        road->points[p] = read_point(reader, level, cJSON_GetArrayItem(points, (int)p), where);
    }
    for (uint32_t other = 0; other < i; other++)
        if (strcmp(level->roads[other].name, road->name) == 0)
            set_error(reader, "roads[%u] and roads[%u] have the same name, '%s'", other, i, road->name);
}

static void read_wave(Reader *reader, Level *level, const cJSON *item, uint32_t i)
{
    LevelWave *wave = &level->waves[i];
    const cJSON *groups;
    char where[WHERE_BYTES];
    snprintf(where, sizeof where, "waves[%u]", i);
    wave->group_count = read_list(reader, item, where, "groups", 1, LEVEL_GROUPS_MAX, &groups);
    for (uint32_t g = 0; g < wave->group_count && !reader->failed; g++) {
        const cJSON *group = cJSON_GetArrayItem(groups, (int)g);
        snprintf(where, sizeof where, "waves[%u].groups[%u]", i, g);
        read_name(reader, group, where, "enemy", wave->groups[g].enemy);
        read_name(reader, group, where, "road", wave->groups[g].road);
        wave->groups[g].count = read_count(reader, group, where, "count", 1, 20000);
        wave->groups[g].after_seconds = read_number(reader, group, where, "after", 0, 600);
        wave->groups[g].every_seconds = read_number(reader, group, where, "every", 0.001, 60);
    }
}

static void read_tower(Reader *reader, Level *level, const cJSON *item, uint32_t i)
{
    char where[WHERE_BYTES];
    snprintf(where, sizeof where, "towers[%u]", i);
    read_name(reader, item, where, "tower", level->towers[i].tower);
    snprintf(where, sizeof where, "towers[%u].at", i);
    level->towers[i].at = read_point(reader, level, cJSON_GetObjectItemCaseSensitive(item, "at"), where);
}

static void read_hint(Reader *reader, Level *level, const cJSON *item, uint32_t i)
{
    if (cJSON_IsString(item) && strlen(item->valuestring) < LEVEL_HINT_BYTES)
        snprintf(level->hints[i], LEVEL_HINT_BYTES, "%s", item->valuestring);
    else
        set_error(reader, "hints[%u] must be a string of at most %d bytes", i, LEVEL_HINT_BYTES - 1);
}

static void read_level(Reader *reader, Level *level, const cJSON *root)
{
    const cJSON *roads, *waves, *towers, *hints;
    read_name(reader, root, "level", "title", level->title);
    level->width = read_number(reader, root, "level", "width", 16, 256);
    level->height = read_number(reader, root, "level", "height", 16, 256);
    level->gold = read_count(reader, root, "level", "gold", 0, 100000);
    level->lives = read_count(reader, root, "level", "lives", 1, 10000);
    level->firefly_count = read_count(reader, root, "level", "fireflies", 0, 100000);
    level->rest_seconds = read_number(reader, root, "level", "rest", 0, 600);
    level->road_count = read_list(reader, root, "level", "roads", 1, LEVEL_ROADS_MAX, &roads);
    for (uint32_t i = 0; i < level->road_count && !reader->failed; i++)
        read_road(reader, level, cJSON_GetArrayItem(roads, (int)i), i);
    level->wave_count = read_list(reader, root, "level", "waves", 1, LEVEL_WAVES_MAX, &waves);
    for (uint32_t i = 0; i < level->wave_count && !reader->failed; i++)
        read_wave(reader, level, cJSON_GetArrayItem(waves, (int)i), i);
    level->tower_count = read_list(reader, root, "level", "towers", 0, LEVEL_TOWERS_MAX, &towers);
    for (uint32_t i = 0; i < level->tower_count && !reader->failed; i++)
        read_tower(reader, level, cJSON_GetArrayItem(towers, (int)i), i);
    if (!cJSON_HasObjectItem(root, "hints")) return;
    level->hint_count = read_list(reader, root, "level", "hints", 1, LEVEL_WAVES_MAX + 1, &hints);
    for (uint32_t i = 0; i < level->hint_count && !reader->failed; i++)
        read_hint(reader, level, cJSON_GetArrayItem(hints, (int)i), i);
}

static uint64_t hash_level(const Level *level)
{
    const unsigned char *bytes = (const unsigned char *)level;
    uint64_t hash = 0;
    for (size_t i = 0; i < sizeof *level; i++)
        hash = (hash ^ bytes[i]) * 0x100000001B3u;
    return quern_random_mix(hash);
}

/* -------------------------------------------------------------------------------------------- file */

/* Returns the contents of the file with a final 0; NULL if it cannot be read. The caller frees them. */
static char *read_text(Reader *reader)
{
    FILE *file = fopen(reader->path, "rb");
    if (file == NULL) {
        set_error(reader, "cannot be opened: %s", strerror(errno));
        return NULL;
    }
    char *text = calloc(1, FILE_BYTES_MAX + 1);
    const size_t bytes = text != NULL ? fread(text, 1, FILE_BYTES_MAX, file) : 0;
    if (text == NULL)
        set_error(reader, "cannot be read: out of memory");
    else if (ferror(file))
        set_error(reader, "cannot be read");
    else if (bytes == FILE_BYTES_MAX)
        set_error(reader, "is too long for a level: 1 MiB or more");
    fclose(file);
    return text;
}

static uint32_t line_of(const char *text, const char *place)
{
    uint32_t line = 1;
    for (; text < place; text++)
        line += *text == '\n';
    return line;
}

bool level_load(Level *level, const char *path, char *message, size_t message_bytes)
{
    Reader reader = {.path = path, .message = message, .message_bytes = message_bytes};
    *level = (Level){.width = 0};
    char *text = read_text(&reader);
    if (!reader.failed) {
        const char *end = NULL;
        cJSON *root = cJSON_ParseWithOpts(text, &end, true);
        if (root == NULL)
            set_error(&reader, "line %u is no JSON", line_of(text, end));
        else
            read_level(&reader, level, root);
        cJSON_Delete(root);
    }
    free(text);
    level->hash = hash_level(level);
    return !reader.failed;
}
