/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "hud.h"

#include "../game/kinds.h"
#include "font.h"

#include <math.h>

static const uint32_t ink = 0xE8E2D0FF, dim = 0x93A0A8FF, gold = 0xF2C75AFF, red = 0xF27A6AFF;
static const uint32_t panel = 0x0C1219F0, key_off = 0x1A2632FF, key_on = 0x2E4A5CFF;

/* --------------------------------------------------------------------------------------------- buttons */

enum { KEY_TOP = FIELD_HEIGHT + 10, KEY_HEIGHT = 60, TOWER_LEFT = 372, TOWER_WIDTH = 98, ORDER_LEFT = 876 };

static const float order_widths[] = {128, 84, 84, 84}; /* wave, speed, pause, rewind */

static SDL_FRect button_box(HudButton button)
{
    if (button < HUD_WAVE)
        return (SDL_FRect){TOWER_LEFT + (float)(button - HUD_TOWER) * TOWER_WIDTH, KEY_TOP, TOWER_WIDTH - 6,
                           KEY_HEIGHT};
    SDL_FRect box = {ORDER_LEFT, KEY_TOP, 0, KEY_HEIGHT};
    for (int i = 0; i <= (int)(button - HUD_WAVE); i++) {
        box.x += box.w;
        box.w = order_widths[i];
    }
    box.w -= 6;
    return box;
}

HudButton hud_button_at(float x, float y)
{
    for (int button = HUD_TOWER; button <= HUD_REWIND; button++) {
        const SDL_FRect box = button_box((HudButton)button);
        if (x >= box.x && x < box.x + box.w && y >= box.y && y < box.y + box.h) return (HudButton)button;
    }
    return HUD_NOTHING;
}

static SDL_FRect draw_key(const Hud *hud, Canvas *canvas, HudButton button, bool is_on)
{
    const SDL_FRect box = button_box(button);
    const bool is_under = hud_button_at(hud->mouse_x, hud->mouse_y) == button;
    canvas_box(canvas, box.x, box.y, box.w, box.h, is_on ? key_on : key_off);
    if (is_under) canvas_box(canvas, box.x, box.y, box.w, box.h, 0xFFFFFF14);
    canvas_box(canvas, box.x, box.y, box.w, 2, is_on ? gold : 0xFFFFFF18);
    return box;
}

/* ------------------------------------------------------------------------------------------------ bar */

/* A tower as its prefab looks, in small. */
static void draw_icon(Canvas *canvas, TowerKind kind, float x, float y, float unit)
{
    const uint32_t color = tower_rules[kind].color;
    canvas_sprite(canvas, SPRITE_BASE, x, y, unit * 1.8f, unit * 1.8f, 0x3C5064FF);
    if (kind == TOWER_GUN) {
        canvas_sprite(canvas, SPRITE_BAR, x + unit * 0.5f, y - unit * 0.22f, unit * 0.9f, unit * 0.24f,
                      color);
        canvas_sprite(canvas, SPRITE_BAR, x + unit * 0.5f, y + unit * 0.22f, unit * 0.9f, unit * 0.24f,
                      color);
        canvas_sprite(canvas, SPRITE_KNOB, x, y, unit, unit, 0x7B8B9AFF);
    } else if (kind == TOWER_MORTAR) {
        canvas_sprite(canvas, SPRITE_KNOB, x, y, unit * 1.25f, unit * 1.25f, 0x7A6A65FF);
        canvas_sprite(canvas, SPRITE_BAR, x + unit * 0.3f, y, unit * 0.95f, unit * 0.5f, color);
    } else if (kind == TOWER_PRISM) {
        canvas_sprite(canvas, SPRITE_KNOB, x, y, unit, unit, 0x4F6B7BFF);
        canvas_sprite(canvas, SPRITE_CRYSTAL, x + unit * 0.2f, y, unit * 0.9f, unit * 0.6f, color);
    } else {
        canvas_sprite(canvas, SPRITE_RING, x, y, unit * 1.3f, unit * 1.3f, color);
        canvas_sprite(canvas, SPRITE_KNOB, x, y, unit * 0.62f, unit * 0.62f, color);
    }
}

static void draw_tower_keys(const Hud *hud, Canvas *canvas, const Keep *keep)
{
    for (uint32_t kind = 0; kind < TOWER_KINDS; kind++) {
        const SDL_FRect box =
            draw_key(hud, canvas, (HudButton)(HUD_TOWER + kind), hud->chosen == (int)kind);
        const bool is_dear = keep->gold < tower_rules[kind].cost;
        draw_icon(canvas, (TowerKind)kind, box.x + 21, box.y + 31, 18);
        font_print(canvas, box.x + box.w - 8, box.y + 9, 10, ALIGN_RIGHT, dim, "%u", kind + 1);
        font_draw(canvas, box.x + box.w - 8, box.y + 27, 7.5f, ALIGN_RIGHT, ink, tower_rules[kind].name);
        font_print(canvas, box.x + box.w - 8, box.y + 44, 10, ALIGN_RIGHT, is_dear ? red : gold, "%d",
                   (int)tower_rules[kind].cost);
    }
    const SDL_FRect box =
        draw_key(hud, canvas, (HudButton)(HUD_TOWER + TOWER_KINDS), hud->chosen == TOWER_KINDS);
    font_draw(canvas, box.x + box.w / 2, box.y + 18, 13, ALIGN_CENTER, red, "SELL");
    font_draw(canvas, box.x + box.w / 2, box.y + 40, 9, ALIGN_CENTER, dim, "X");
}

static void draw_order(const Hud *hud, Canvas *canvas, HudButton button, bool is_on, const char *text,
                       const char *key)
{
    const SDL_FRect box = draw_key(hud, canvas, button, is_on);
    font_draw(canvas, box.x + box.w / 2, box.y + 18, 12, ALIGN_CENTER, ink, text);
    font_draw(canvas, box.x + box.w / 2, box.y + 40, 9, ALIGN_CENTER, dim, key);
}

static void draw_stock(Canvas *canvas, const Keep *keep, const Level *level)
{
    const float top = FIELD_HEIGHT + 16, bottom = FIELD_HEIGHT + 46;
    canvas_sprite(canvas, SPRITE_KNOB, 28, top + 8, 20, 20, gold);
    font_print(canvas, 46, top, 16, ALIGN_LEFT, gold, "%d", (int)keep->gold);
    canvas_sprite(canvas, SPRITE_CRYSTAL, 28, bottom + 8, 22, 22, red);
    font_print(canvas, 46, bottom, 16, ALIGN_LEFT, keep->lives * 4 > (int32_t)level->lives ? ink : red,
               "%d", (int)keep->lives);
    font_draw(canvas, 150, top + 2, 10, ALIGN_LEFT, dim, "SCORE");
    font_print(canvas, 220, top, 14, ALIGN_LEFT, ink, "%d", (int)keep->score);
    font_draw(canvas, 150, bottom + 2, 10, ALIGN_LEFT, dim, "WAVE");
    font_print(canvas, 220, bottom, 14, ALIGN_LEFT, ink, "%u / %u", keep->wave, level->wave_count);
}

static void draw_bar(const Hud *hud, Canvas *canvas, const Keep *keep, const Level *level)
{
    static const char *const speeds[] = {"", "1 X", "2 X", "3 X", "4 X"};
    char wave[32] = "LAST WAVE";
    canvas_box(canvas, 0, FIELD_HEIGHT, CANVAS_WIDTH, CANVAS_HEIGHT - FIELD_HEIGHT, panel);
    canvas_box(canvas, 0, FIELD_HEIGHT, CANVAS_WIDTH, 2, 0x3A5468FF);
    draw_stock(canvas, keep, level);
    draw_tower_keys(hud, canvas, keep);
    if (keep->wave < level->wave_count)
        SDL_snprintf(wave, sizeof wave, "NEXT %d S", (int)ceilf(fmaxf(keep->rest_seconds, 0)));
    draw_order(hud, canvas, HUD_WAVE, keep->rest_seconds < 5 && keep->wave < level->wave_count, wave,
               "SPACE");
    draw_order(hud, canvas, HUD_SPEED, hud->speed > 1, speeds[hud->speed], "F");
    draw_order(hud, canvas, HUD_PAUSE, hud->is_paused, hud->is_paused ? "GO ON" : "PAUSE", "P");
    draw_order(hud, canvas, HUD_REWIND, hud->is_rewinding, "REWIND", "R");
}

/* ------------------------------------------------------------------------------------- under the mouse */

enum { SEGMENTS = 72 };

static const float circle = 6.2831853f;

static void draw_reach(Canvas *canvas, SDL_FPoint at, float radius, uint32_t color)
{
    canvas_sprite(canvas, SPRITE_DISC, at.x, at.y, radius * 2, radius * 2, faded(color, 0.10f));
    for (int i = 0; i < SEGMENTS; i++) {
        const float from = circle * (float)i / SEGMENTS, to = circle * (float)(i + 1) / SEGMENTS;
        canvas_line(canvas, at.x + cosf(from) * radius, at.y + sinf(from) * radius,
                    at.x + cosf(to) * radius, at.y + sinf(to) * radius, 2.5f, faded(color, 0.6f));
    }
}

static void draw_plot(const Hud *hud, Scene *scene)
{
    const Point plot = game_plot(scene_to_field(scene, hud->mouse_x, hud->mouse_y));
    const SDL_FPoint at = scene_to_canvas(scene, plot);
    const quern_entity there = game_tower_at(scene->game, plot);
    Game *game = scene->game;
    if (!quern_entity_is_null(there)) {
        const Tower *tower = quern_entity_get(game->world, there, game->types.tower);
        draw_reach(scene->canvas, at, tower_rules[tower->kind].range * scene->scale,
                   hud->chosen == TOWER_KINDS ? red : tower_rules[tower->kind].color);
    } else if (hud->chosen < TOWER_KINDS) {
        const TowerKind kind = (TowerKind)hud->chosen;
        const bool is_good = game_why_not(game, kind, plot) == NULL;
        canvas_box(scene->canvas, at.x - scene->scale, at.y - scene->scale, scene->scale * 2,
                   scene->scale * 2, is_good ? 0x8BE08B30 : 0xF2503C40);
        if (!is_good) return;
        draw_reach(scene->canvas, at, tower_rules[kind].range * scene->scale, tower_rules[kind].color);
        draw_icon(scene->canvas, kind, at.x, at.y, scene->scale);
    }
}

/* ---------------------------------------------------------------------------------------- large pages */

/* Large letters with light around them. */
static void draw_title(Canvas *canvas, float y, float size, uint32_t color, const char *text)
{
    canvas_blend(canvas, SDL_BLENDMODE_ADD);
    canvas_sprite(canvas, SPRITE_GLOW, CANVAS_WIDTH / 2.0f, y + size / 2, size * 9, size * 5,
                  faded(color, 0.35f));
    canvas_blend(canvas, SDL_BLENDMODE_BLEND);
    font_draw(canvas, CANVAS_WIDTH / 2.0f, y, size, ALIGN_CENTER, color, text);
}

static void draw_lines(Canvas *canvas, float y, const char *const *lines)
{
    for (; *lines != NULL; lines++, y += 30)
        font_draw(canvas, CANVAS_WIDTH / 2.0f, y, 13, ALIGN_CENTER, ink, *lines);
}

static void draw_page(const Hud *hud, Scene *scene)
{
    static const char *const title[] = {"ENEMIES COME ALONG THE ROADS. BUILD TOWERS BESIDE THEM.",
                                        "CLICK: BUILD    1 - 4: WHICH TOWER    RIGHT CLICK: SELL",
                                        "SPACE: NEXT WAVE    F: FASTER    P: PAUSE    S: ONE STEP",
                                        "HOLD R: TURN BACK TIME    F1: WHERE TIME GOES",
                                        "",
                                        "CLICK OR PRESS SPACE TO BEGIN",
                                        NULL};
    static const char *const menu[] = {"ESC: GO ON", "N: NEW GAME", "Q: LEAVE THE KEEP", NULL};
    canvas_box(scene->canvas, 0, 0, CANVAS_WIDTH, CANVAS_HEIGHT,
               hud->page == PAGE_TITLE ? 0x060A10A0 : 0x060A10B8);
    if (hud->page == PAGE_TITLE) {
        draw_title(scene->canvas, 190, 120, gold, "KEEP");
        draw_lines(scene->canvas, 410, title);
    } else {
        draw_title(scene->canvas, 220, 64, ink, scene->game->level.title);
        draw_lines(scene->canvas, 370, menu);
    }
}

static void draw_end(Scene *scene, const Keep *keep)
{
    const bool has_won = keep->state == KEEP_WON;
    canvas_box(scene->canvas, 0, 0, CANVAS_WIDTH, CANVAS_HEIGHT, 0x060A1098);
    draw_title(scene->canvas, 210, 84, has_won ? gold : red,
               has_won ? "THE KEEP STANDS" : "THE KEEP HAS FALLEN");
    font_print(scene->canvas, CANVAS_WIDTH / 2.0f, 360, 22, ALIGN_CENTER, ink, "SCORE %d",
               (int)keep->score);
    font_print(scene->canvas, CANVAS_WIDTH / 2.0f, 408, 13, ALIGN_CENTER, dim, "%u KILLED, %d LIVES LEFT",
               keep->kills, (int)keep->lives);
    font_draw(scene->canvas, CANVAS_WIDTH / 2.0f, 470, 13, ALIGN_CENTER, ink,
              "N: NEW GAME    HOLD R: TURN BACK TIME    Q: LEAVE");
}

static void draw_notice(const Hud *hud, Canvas *canvas)
{
    if (hud->is_rewinding)
        font_draw(canvas, CANVAS_WIDTH / 2.0f, 24, 22, ALIGN_CENTER, gold, "TIME RUNS BACK");
    if (hud->is_paused && !hud->is_rewinding)
        font_draw(canvas, CANVAS_WIDTH / 2.0f, 24, 22, ALIGN_CENTER, ink, "PAUSED");
    if (hud->notice == NULL || hud->notice_seconds <= 0) return;
    font_draw(canvas, CANVAS_WIDTH / 2.0f, FIELD_HEIGHT - 40, 15, ALIGN_CENTER,
              faded(red, hud->notice_seconds), hud->notice);
}

void hud_draw(const Hud *hud, Scene *scene)
{
    const Keep *keep = game_state(scene->game);
    Canvas *canvas = scene->canvas;
    canvas_blend(canvas, SDL_BLENDMODE_BLEND);
    if (hud->page == PAGE_GAME && hud->mouse_y < FIELD_HEIGHT && keep->state == KEEP_PLAYING)
        draw_plot(hud, scene);
    draw_bar(hud, canvas, keep, &scene->game->level);
    draw_notice(hud, canvas);
    if (hud->page != PAGE_GAME)
        draw_page(hud, scene);
    else if (keep->state != KEEP_PLAYING && !hud->is_rewinding)
        draw_end(scene, keep);
}
