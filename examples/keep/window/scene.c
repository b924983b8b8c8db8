/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "scene.h"

#include "../game/check.h"
#include "../game/kinds.h"
#include "ground.h"

#include <math.h>

/* The resource represents the screen, on which one system at a time may draw. Its value does not matter
 * for the game. */
typedef struct Screen {
    uint64_t picture_count;
} Screen;

Point scene_to_game(const Scene *scene, SDL_FPoint pixel)
{
    const SDL_FPoint on_field = frame_point(scene->layout.field, pixel);
    return (Point){on_field.x / scene->scale, on_field.y / scene->scale};
}

SDL_FPoint scene_to_field(const Scene *scene, Point point)
{
    return (SDL_FPoint){point.x * scene->scale, point.y * scene->scale};
}

static float blink(const Scene *scene, float speed, float phase)
{
    return 0.5f + 0.5f * sinf(scene->seconds * speed + phase);
}

/* ------------------------------------------------------------------------------------------ fireflies */

enum { FIREFLIES_PER_LIGHT = 32 };

/* Draws one of several fireflies, so that they do not look like noise. They shine from time to time, also while the
 * game is paused; most of them are dark at any time. */
static void draw_fireflies(quern_context *context, const quern_view *view)
{
    Scene *scene = quern_context_user_data(context);
    const Place *places = QUERN_COLUMN(view, 0, const Place);
    const Firefly *fireflies = QUERN_COLUMN(view, 1, const Firefly);
    const float turns = scene->seconds * 0.2f;
    const uint32_t count = view->count;
    canvas_blend(scene->canvas, SDL_BLENDMODE_ADD);
    for (uint32_t i = 0; i < count; i += FIREFLIES_PER_LIGHT) {
        const float turn = fireflies[i].phase * 0.31830989f + turns, wave = 2 * (turn - floorf(turn)) - 1;
        const float light = 1 - wave * wave, cube = light * light * light, glare = cube * cube;
        const float size = 9 + 9 * glare;
        if (glare > 0.2f)
            canvas_sprite(scene->canvas, SPRITE_GLOW, places[i].x * scene->scale,
                          places[i].y * scene->scale, size, size, faded(0xC8E070C0, glare));
    }
}

/* ---------------------------------------------------------------------------------------------- towers */

enum { TOWER_SPOT, TOWER_SHAPE, TOWER_TURRET, TOWER_TOWER };

static const Sprite sprite_of_shape[] = {[SHAPE_BASE] = SPRITE_BASE,
                                         [SHAPE_DISC] = SPRITE_KNOB,
                                         [SHAPE_BAR] = SPRITE_BAR,
                                         [SHAPE_CRYSTAL] = SPRITE_CRYSTAL,
                                         [SHAPE_RING] = SPRITE_RING};

Sprite scene_base_of(TowerKind kind)
{
    static const Sprite bases[TOWER_KINDS] = {[TOWER_GUN] = SPRITE_PLATE,
                                              [TOWER_MORTAR] = SPRITE_DRUM,
                                              [TOWER_PRISM] = SPRITE_WEDGE,
                                              [TOWER_BELL] = SPRITE_CLOVER};
    return bases[kind];
}

/* Dark shades of the colours of the towers. */
uint32_t scene_base_color_of(TowerKind kind)
{
    static const uint32_t colors[TOWER_KINDS] = {[TOWER_GUN] = 0x8C7C50FF,
                                                 [TOWER_MORTAR] = 0x94563AFF,
                                                 [TOWER_PRISM] = 0x2E8898FF,
                                                 [TOWER_BELL] = 0x5A66B0FF};
    return colors[kind];
}

static void draw_shape(Scene *scene, Sprite sprite, const quern_world2 *spot, const Shape *shape,
                       uint32_t color)
{
    const float x = spot->m[0][2] * scene->scale, y = spot->m[1][2] * scene->scale;
    const float size = (shape->layer == 0 ? 1.05f : 1.25f) * scene->scale; /* parts stand out */
    canvas_turned(scene->canvas, sprite, x, y, spot->m[0][0], spot->m[1][0], shape->width * size,
                  shape->height * size, color);
}

static void draw_shadow(Scene *scene, const quern_world2 *spot, const Shape *shape)
{
    const float x = (spot->m[0][2] + 0.22f) * scene->scale, y = (spot->m[1][2] + 0.28f) * scene->scale;
    canvas_sprite(scene->canvas, SPRITE_SHADOW, x, y, shape->width * 1.5f * scene->scale,
                  shape->height * 1.5f * scene->scale, 0x000000A0);
}

/* Draws the parts of one layer. Those of the lowest layer have shadows on the ground. */
static void draw_layer(quern_context *context, const quern_view *view, uint32_t layer)
{
    Scene *scene = quern_context_user_data(context);
    const quern_world2 *spots = QUERN_COLUMN(view, TOWER_SPOT, const quern_world2);
    const Shape *shapes = QUERN_COLUMN(view, TOWER_SHAPE, const Shape);
    const Tower *towers =
        quern_view_has(view, TOWER_TOWER) ? QUERN_COLUMN(view, TOWER_TOWER, const Tower) : NULL;
    const uint32_t count = view->count;
    canvas_blend(scene->canvas, SDL_BLENDMODE_BLEND);
    for (uint32_t i = 0; i < count; i++) {
        if (shapes[i].layer != layer) continue;
        const Sprite sprite =
            towers != NULL ? scene_base_of((TowerKind)towers[i].kind) : sprite_of_shape[shapes[i].sprite];
        const bool is_turret = quern_view_has(view, TOWER_TURRET);
        const bool is_stunned = is_turret && !quern_view_is_enabled(view, TOWER_TURRET, i);
        if (layer == 0) draw_shadow(scene, &spots[i], &shapes[i]);
        const uint32_t color =
            towers != NULL ? scene_base_color_of((TowerKind)towers[i].kind) : shapes[i].color;
        draw_shape(scene, sprite, &spots[i], &shapes[i], is_stunned ? 0x6A4A8CFF : color);
        if (is_stunned)
            canvas_sprite(scene->canvas, SPRITE_RING, spots[i].m[0][2] * scene->scale,
                          spots[i].m[1][2] * scene->scale, 1.7f * scene->scale, 1.7f * scene->scale,
                          faded(0xB46BFFFF, blink(scene, 12, spots[i].m[0][2])));
    }
}

static void draw_bases(quern_context *context, const quern_view *view)
{
    draw_layer(context, view, 0);
}

static void draw_lower_parts(quern_context *context, const quern_view *view)
{
    draw_layer(context, view, 1);
}

static void draw_upper_parts(quern_context *context, const quern_view *view)
{
    draw_layer(context, view, 2);
}

/* --------------------------------------------------------------------------------------------- enemies */

enum { ENEMY_ENEMY, ENEMY_PLACE, ENEMY_HEALTH, ENEMY_CHILL };

static void draw_health(Scene *scene, float x, float y, float radius, float part)
{
    const float width = radius * 2.2f * scene->scale, top = y - (radius + 0.28f) * scene->scale;
    canvas_box(scene->canvas, x - width / 2 - 1, top - 1, width + 2, 5, 0x0A0E14C0);
    canvas_box(scene->canvas, x - width / 2, top, width * part, 3, part > 0.4f ? 0x8BE08BFF : 0xF2A05AFF);
}

/* The looks of enemies. They differ in shape, size and brightness, so that one tells them apart without colours. The
 * large ones are drawn above the small ones. */
typedef struct EnemyLook {
    Sprite sprite;
    float size; /* in units of the game */
    uint32_t color;
    bool is_large;
} EnemyLook;

static const EnemyLook enemy_looks[ENEMY_KINDS] = {
    [ENEMY_MITE] = {SPRITE_MITE, 0.62f, 0xFF7848FF, false},
    [ENEMY_RUNNER] = {SPRITE_RUNNER, 1.15f, 0xF7CE46FF, false},
    [ENEMY_BRUTE] = {SPRITE_BRUTE, 1.5f, 0xD777B0FF, true},
    [ENEMY_WITCH] = {SPRITE_WITCH, 1.75f, 0xE6DAFFFF, true},
    [ENEMY_GIANT] = {SPRITE_GIANT, 3.4f, 0xE03C50FF, true},
};

/* Returns a colour with ice over it. */
static uint32_t iced(uint32_t color)
{
    return (color >> 2 & 0x3F3F3F00u) + 0x4890C000u + 0xFF;
}

static void draw_enemy(Scene *scene, const Enemy *enemy, const EnemyLook *look, float x, float y,
                       bool is_chilled, float health)
{
    const float size = look->size * scene->scale,
                square = enemy->drift_x * enemy->drift_x + enemy->drift_y * enemy->drift_y,
                pace = sqrtf(square);
    const float along_x = pace > 0 ? enemy->drift_x / pace : 1,
                along_y = pace > 0 ? enemy->drift_y / pace : 0;
    if (look->is_large)
        canvas_sprite(scene->canvas, SPRITE_SHADOW, x + size * 0.1f, y + size * 0.15f, size * 1.4f,
                      size * 1.3f, 0x000000B0);
    canvas_turned(scene->canvas, look->sprite, x, y, along_x, along_y, size, size,
                  is_chilled ? iced(look->color) : look->color);
    if (look->is_large && health < 1) draw_health(scene, x, y, look->size / 2, health < 0 ? 0 : health);
}

static void draw_enemies(quern_context *context, const quern_view *view, bool is_large)
{
    Scene *scene = quern_context_user_data(context);
    const Enemy *enemies = QUERN_COLUMN(view, ENEMY_ENEMY, const Enemy);
    const Place *places = QUERN_COLUMN(view, ENEMY_PLACE, const Place);
    const Health *healths = QUERN_COLUMN(view, ENEMY_HEALTH, const Health);
    const uint32_t count = view->count;
    canvas_blend(scene->canvas, SDL_BLENDMODE_BLEND);
    for (uint32_t i = 0; i < count; i++) {
        const EnemyLook *look = &enemy_looks[enemies[i].kind];
        if (look->is_large == is_large)
            draw_enemy(scene, &enemies[i], look, places[i].x * scene->scale, places[i].y * scene->scale,
                       quern_view_is_enabled(view, ENEMY_CHILL, i),
                       healths[i].points / enemy_rules[enemies[i].kind].health);
    }
}

static void draw_small_enemies(quern_context *context, const quern_view *view)
{
    draw_enemies(context, view, false);
}

static void draw_large_enemies(quern_context *context, const quern_view *view)
{
    draw_enemies(context, view, true);
}

/* -------------------------------------------------------------------------------------- what is fired */

static void draw_bullets(quern_context *context, const quern_view *view)
{
    Scene *scene = quern_context_user_data(context);
    const Place *places = QUERN_COLUMN(view, 0, const Place);
    const Velocity *velocities = QUERN_COLUMN(view, 1, const Velocity);
    const uint32_t count = view->count;
    canvas_blend(scene->canvas, SDL_BLENDMODE_ADD);
    for (uint32_t i = 0; i < count; i++) {
        const float x = places[i].x * scene->scale, y = places[i].y * scene->scale;
        const float back_x = velocities[i].x * 0.03f * scene->scale,
                    back_y = velocities[i].y * 0.03f * scene->scale;
        canvas_line(scene->canvas, x - back_x, y - back_y, x, y, 6, 0xFFB040C0);
        canvas_line(scene->canvas, x - back_x, y - back_y, x, y, 3.5f, 0xFFF0C8FF);
        canvas_sprite(scene->canvas, SPRITE_GLOW, x, y, 30, 30, 0xFFA848C0);
    }
}

/* Draws shells. They rise and fall on their way; their shadows stay on the ground. */
static void draw_shells(quern_context *context, const quern_view *view)
{
    Scene *scene = quern_context_user_data(context);
    const Place *places = QUERN_COLUMN(view, 0, const Place);
    const Shell *shells = QUERN_COLUMN(view, 1, const Shell);
    const uint32_t count = view->count;
    canvas_blend(scene->canvas, SDL_BLENDMODE_BLEND);
    for (uint32_t i = 0; i < count; i++) {
        const float part = shells[i].seconds / shells[i].span,
                    high = 8 * part * (1 - part) * shells[i].span;
        const float x = places[i].x * scene->scale, y = places[i].y * scene->scale;
        const float size = (0.34f + 0.05f * high) * scene->scale;
        canvas_sprite(scene->canvas, SPRITE_SHADOW, x, y, size * 1.4f, size, 0x00000090);
        canvas_sprite(scene->canvas, SPRITE_KNOB, x, y - high * scene->scale, size, size, 0xFFB478FF);
        canvas_sprite(scene->canvas, SPRITE_GLOW, x, y - high * scene->scale, size * 3, size * 3,
                      0xFF804060);
    }
}

static void draw_beams(quern_context *context, const quern_view *view)
{
    Scene *scene = quern_context_user_data(context);
    const Beam *beams = QUERN_COLUMN(view, 0, const Beam);
    const uint32_t count = view->count;
    canvas_blend(scene->canvas, SDL_BLENDMODE_ADD);
    for (uint32_t i = 0; i < count; i++) {
        const float x0 = beams[i].from_x * scene->scale, y0 = beams[i].from_y * scene->scale;
        const float x1 = beams[i].to_x * scene->scale, y1 = beams[i].to_y * scene->scale;
        const float glare = 0.75f + 0.25f * blink(scene, 40, x0 + y0);
        canvas_line(scene->canvas, x0, y0, x1, y1, 16 * glare, 0x30A0E050);
        canvas_line(scene->canvas, x0, y0, x1, y1, 7 * glare, 0x60D8FFB0);
        canvas_line(scene->canvas, x0, y0, x1, y1, 2.5f, 0xF0FFFFFF);
        canvas_sprite(scene->canvas, SPRITE_GLOW, x1, y1, 46 * glare, 46 * glare, 0x70E0FFC0);
        canvas_sprite(scene->canvas, SPRITE_GLOW, x0, y0, 34 * glare, 34 * glare, 0x70E0FFA0);
    }
}

/* ------------------------------------------------------------------------------------------- particles */

static void draw_particle(Scene *scene, const Particle *particle, float x, float y)
{
    const float part = particle->seconds / particle->span, left = 1 - part;
    const float size = particle->size * scene->scale;
    switch (particle->kind) {
    case PARTICLE_RING:
        canvas_sprite(scene->canvas, SPRITE_RING, x, y, size * sqrtf(part), size * sqrtf(part),
                      faded(particle->color, left * 0.7f));
        break;
    case PARTICLE_SMOKE:
        canvas_sprite(scene->canvas, SPRITE_SHADOW, x, y, size * (1 + part), size * (1 + part),
                      faded(particle->color, left * left * 0.5f));
        break;
    default:
        canvas_sprite(scene->canvas, SPRITE_GLOW, x, y, size * (0.9f + 1.4f * left),
                      size * (0.9f + 1.4f * left), faded(particle->color, left * left * 0.2f));
    }
}

/* Draws particles. Smoke covers what is behind it; all others are light. */
static void draw_particles(quern_context *context, const quern_view *view, bool is_smoke)
{
    Scene *scene = quern_context_user_data(context);
    const Place *places = QUERN_COLUMN(view, 0, const Place);
    const Particle *particles = QUERN_COLUMN(view, 1, const Particle);
    const uint32_t count = view->count;
    canvas_blend(scene->canvas, is_smoke ? SDL_BLENDMODE_BLEND : SDL_BLENDMODE_ADD);
    for (uint32_t i = 0; i < count; i++)
        if ((particles[i].kind == PARTICLE_SMOKE) == is_smoke)
            draw_particle(scene, &particles[i], places[i].x * scene->scale, places[i].y * scene->scale);
}

static void draw_smoke(quern_context *context, const quern_view *view)
{
    draw_particles(context, view, true);
}

static void draw_sparks(quern_context *context, const quern_view *view)
{
    draw_particles(context, view, false);
}

/* --------------------------------------------------------------------------------- ground and the keep */

static void draw_ground(quern_context *context, const quern_view *view)
{
    (void)view;
    Scene *scene = quern_context_user_data(context);
    canvas_picture(scene->canvas, scene->ground, FIELD_WIDTH, FIELD_HEIGHT);
    ((Screen *)quern_context_resource_write(context, scene->screen))->picture_count++;
}

/* Draws the keep at the end of a road: four towers around a hall with light in it. */
static void draw_keep_at(Scene *scene, float x, float y)
{
    const float unit = scene->scale;
    Canvas *canvas = scene->canvas;
    canvas_sprite(canvas, SPRITE_SHADOW, x + unit * 0.5f, y + unit * 0.6f, unit * 7.4f, unit * 7.4f,
                  0x000000C0);
    canvas_sprite(canvas, SPRITE_BASE, x, y, unit * 4.6f, unit * 4.6f, 0x4C5668FF);
    canvas_sprite(canvas, SPRITE_BASE, x, y, unit * 3.1f, unit * 3.1f, 0x7A8496FF);
    for (int i = 0; i < 4; i++) {
        const float dx = (i & 1 ? 1.55f : -1.55f) * unit, dy = (i & 2 ? 1.55f : -1.55f) * unit;
        canvas_sprite(canvas, SPRITE_SHADOW, x + dx + unit * 0.15f, y + dy + unit * 0.2f, unit * 1.9f,
                      unit * 1.9f, 0x000000A0);
        canvas_sprite(canvas, SPRITE_KNOB, x + dx, y + dy, unit * 1.4f, unit * 1.4f, 0x8C96A8FF);
        canvas_sprite(canvas, SPRITE_KNOB, x + dx, y + dy, unit * 0.75f, unit * 0.75f, 0xC87A4AFF);
    }
    canvas_sprite(canvas, SPRITE_KNOB, x, y, unit * 1.5f, unit * 1.5f, 0xE8B45AFF);
}

static void draw_keep(quern_context *context, const quern_view *view)
{
    (void)view;
    Scene *scene = quern_context_user_data(context);
    const Road *road = &scene->game->roads[0];
    const SDL_FPoint at = scene_to_field(scene, road->steps[road->step_count - 1].at);
    const Keep *keep = quern_context_resource(context, scene->game->types.keep);
    const float glare = 0.8f + 0.2f * blink(scene, 2.4f, 0);
    const uint32_t light = keep->lives * 4 > (int32_t)scene->game->level.lives ? 0xFFC46090 : 0xFF4838B0;
    canvas_blend(scene->canvas, SDL_BLENDMODE_BLEND);
    draw_keep_at(scene, at.x, at.y);
    canvas_blend(scene->canvas, SDL_BLENDMODE_ADD);
    canvas_sprite(scene->canvas, SPRITE_GLOW, at.x, at.y, scene->scale * 11 * glare,
                  scene->scale * 11 * glare, light);
}

/* Draws the light of each tower on the ground around it. */
static void draw_lights(quern_context *context, const quern_view *view)
{
    Scene *scene = quern_context_user_data(context);
    const quern_world2 *spots = QUERN_COLUMN(view, 0, const quern_world2);
    const Tower *towers = QUERN_COLUMN(view, 1, const Tower);
    const uint32_t count = view->count;
    canvas_blend(scene->canvas, SDL_BLENDMODE_ADD);
    for (uint32_t i = 0; i < count; i++)
        canvas_sprite(scene->canvas, SPRITE_GLOW, spots[i].m[0][2] * scene->scale,
                      spots[i].m[1][2] * scene->scale, 5.5f * scene->scale, 5.5f * scene->scale,
                      faded(tower_rules[towers[i].kind].color, 0.22f));
}

/* -------------------------------------------------------------------------------------------- schedule */

static void add_system(Scene *scene, quern_system_def def)
{
    def.user_data = scene;
    def.flags = QUERN_SYSTEM_MAIN_THREAD;
    def.resources[0] = (quern_resource_access){scene->screen, QUERN_ACCESS_WRITE};
    def.resources[1] = (quern_resource_access){scene->game->types.keep, QUERN_ACCESS_READ};
    check(quern_schedule_add_system(scene->schedule, &def, NULL));
}

static void add_tower_systems(Scene *scene, const char *name, quern_view_callback *run)
{
    const Types *types = &scene->game->types;
    add_system(scene, (quern_system_def){
                          .name = name,
                          .run = run,
                          .terms = {[TOWER_SPOT] = quern_term_read(types->spot),
                                    [TOWER_SHAPE] = quern_term_read(types->shape),
                                    [TOWER_TURRET] = quern_term_optional(types->turret, QUERN_ACCESS_READ),
                                    [TOWER_TOWER] = quern_term_optional(types->tower, QUERN_ACCESS_READ)}});
}

static void add_enemy_system(Scene *scene, const char *name, quern_view_callback *run)
{
    const Types *types = &scene->game->types;
    add_system(scene, (quern_system_def){
                          .name = name,
                          .run = run,
                          .terms = {[ENEMY_ENEMY] = quern_term_read(types->enemy),
                                    [ENEMY_PLACE] = quern_term_read(types->place),
                                    [ENEMY_HEALTH] = quern_term_read(types->health),
                                    [ENEMY_CHILL] = quern_term_either(quern_term_read(types->chill))}});
}

/* Adds the systems from the ground up: systems that write the same resource run in the order of
 * registration. */
static void add_systems(Scene *scene)
{
    const Types *types = &scene->game->types;
    add_system(scene, (quern_system_def){.name = "draw ground", .run = draw_ground});
    add_system(scene,
               (quern_system_def){.name = "draw lights",
                                  .run = draw_lights,
                                  .terms = {quern_term_read(types->spot), quern_term_read(types->tower)}});
    add_tower_systems(scene, "draw bases", draw_bases);
    add_enemy_system(scene, "draw small enemies", draw_small_enemies);
    add_enemy_system(scene, "draw large enemies", draw_large_enemies);
    add_system(scene, (quern_system_def){.name = "draw keep", .run = draw_keep});
    add_tower_systems(scene, "draw lower parts", draw_lower_parts);
    add_tower_systems(scene, "draw upper parts", draw_upper_parts);
    add_system(scene, (quern_system_def){
                          .name = "draw smoke",
                          .run = draw_smoke,
                          .terms = {quern_term_read(types->place), quern_term_read(types->particle)}});
    add_system(scene,
               (quern_system_def){.name = "draw shells",
                                  .run = draw_shells,
                                  .terms = {quern_term_read(types->place), quern_term_read(types->shell)}});
    add_system(scene, (quern_system_def){
                          .name = "draw fireflies",
                          .run = draw_fireflies,
                          .terms = {quern_term_read(types->place), quern_term_read(types->firefly)}});
    add_system(scene,
               (quern_system_def){.name = "draw bullets",
                                  .run = draw_bullets,
                                  .terms = {quern_term_read(types->place), quern_term_read(types->velocity),
                                            quern_term_with(types->bullet)}});
    add_system(scene, (quern_system_def){
                          .name = "draw sparks",
                          .run = draw_sparks,
                          .terms = {quern_term_read(types->place), quern_term_read(types->particle)}});
    add_system(scene, (quern_system_def){.name = "draw beams",
                                         .run = draw_beams,
                                         .terms = {quern_term_read(types->beam)}});
}

bool scene_create(Scene *scene, Game *game, Canvas *canvas)
{
    *scene = (Scene){.game = game, .canvas = canvas};
    scene->scale = fminf(FIELD_WIDTH / game->level.width, FIELD_HEIGHT / game->level.height);
    scene->ground = ground_paint(canvas->renderer, game);
    if (scene->ground == NULL) return false;
    check(QUERN_RESOURCE_REGISTER(game->world, &scene->screen, Screen));
    check(quern_schedule_create(game->world, NULL, &scene->schedule));
    add_systems(scene);
    return true;
}

void scene_destroy(Scene *scene)
{
    quern_schedule_destroy(scene->schedule);
    SDL_DestroyTexture(scene->ground);
}

void scene_draw(Scene *scene, Layout layout, float seconds)
{
    scene->layout = layout;
    scene->seconds += seconds;
    scene->canvas->frame = layout.field;
    canvas_clip(scene->canvas, &(SDL_FRect){0, 0, FIELD_WIDTH, FIELD_HEIGHT});
    check(quern_schedule_run(scene->schedule, NULL, (double)seconds));
    canvas_clip(scene->canvas, NULL);
}
