/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "hud.h"

#include "../game/kinds.h"
#include "font.h"
#include "pages.h"

#include <math.h>
#include <string.h>

static const uint32_t ink = 0xE8E2D0FF, dim = 0x93A0A8FF, gold = 0xF2C75AFF, red = 0xF27A6AFF;
static const uint32_t panel = 0x0C1219F0, button_off = 0x1A2632FF, button_on = 0x2E4A5CFF;

/* --------------------------------------------------------------------------------------------- buttons */

/* Positions in units of the bar. In the small bar, buttons have no names. */
typedef struct BarPlan {
    float key_top, key_height, tower_left, tower_width, order_left;
    float order_widths[4]; /* wave, speed, pause, rewind */
} BarPlan;

static const BarPlan large_plan = {10, 60, 352, 98, 858, {140, 76, 92, 104}};
static const BarPlan small_plan = {6, 46, 212, 56, 500, {96, 54, 68, 76}};

static const BarPlan *plan_of(const Layout *layout)
{
    return layout->is_small ? &small_plan : &large_plan;
}

static SDL_FRect button_box(const BarPlan *plan, HudButton button)
{
    if (button < HUD_WAVE)
        return (SDL_FRect){plan->tower_left + (float)(button - HUD_TOWER) * plan->tower_width,
                           plan->key_top, plan->tower_width - 6, plan->key_height};
    SDL_FRect box = {plan->order_left, plan->key_top, 0, plan->key_height};
    for (int i = 0; i <= (int)(button - HUD_WAVE); i++) {
        box.x += box.w;
        box.w = plan->order_widths[i];
    }
    box.w -= 6;
    return box;
}

HudButton hud_button_at(const Hud *hud, const Layout *layout)
{
    const SDL_FPoint mouse = frame_point(layout->bar, hud->mouse);
    for (int button = HUD_TOWER; button <= HUD_REWIND; button++) {
        const SDL_FRect box = button_box(plan_of(layout), (HudButton)button);
        if (hud->page == PAGE_GAME && !hud->is_mouse_away && SDL_PointInFRect(&mouse, &box))
            return (HudButton)button;
    }
    return HUD_NOTHING;
}

bool hud_is_on_field(const Hud *hud, const Layout *layout)
{
    const SDL_FPoint mouse = frame_point(layout->field, hud->mouse);
    const SDL_FRect field = {0, 0, FIELD_WIDTH, FIELD_HEIGHT};
    return !hud->is_mouse_away && hud->mouse.y < layout->bar.top && SDL_PointInFRect(&mouse, &field);
}

static SDL_FRect draw_button(const Hud *hud, Scene *scene, HudButton button, bool is_on)
{
    Canvas *canvas = scene->canvas;
    const SDL_FRect box = button_box(plan_of(&scene->layout), button);
    const bool is_under = hud_button_at(hud, &scene->layout) == button;
    canvas_box(canvas, box.x, box.y, box.w, box.h, is_on ? button_on : button_off);
    if (is_under) canvas_box(canvas, box.x, box.y, box.w, box.h, 0xFFFFFF14);
    canvas_box(canvas, box.x, box.y, box.w, 2, is_on ? gold : 0xFFFFFF18);
    return box;
}

/* ------------------------------------------------------------------------------------------------ bar */

/* Draws a small icon of a tower. */
static void draw_icon(Canvas *canvas, TowerKind kind, float x, float y, float unit)
{
    const uint32_t color = tower_rules[kind].color;
    canvas_sprite(canvas, scene_base_of(kind), x, y, unit * 2, unit * 2, scene_base_color_of(kind));
    if (kind == TOWER_GUN) {
        for (int side = -1; side <= 1; side += 2)
            canvas_sprite(canvas, SPRITE_BAR, x + unit * 0.62f, y + unit * 0.28f * (float)side, unit * 1.1f,
                          unit * 0.3f, color);
        canvas_sprite(canvas, SPRITE_KNOB, x, y, unit * 1.35f, unit * 1.35f, 0x8A9CADFF);
    } else if (kind == TOWER_MORTAR) {
        canvas_sprite(canvas, SPRITE_KNOB, x, y, unit * 1.6f, unit * 1.6f, 0x8A7068FF);
        canvas_sprite(canvas, SPRITE_BAR, x + unit * 0.37f, y, unit * 1.2f, unit * 0.62f, color);
    } else if (kind == TOWER_PRISM) {
        canvas_sprite(canvas, SPRITE_KNOB, x, y, unit * 1.3f, unit * 1.3f, 0x557C92FF);
        canvas_sprite(canvas, SPRITE_CRYSTAL, x + unit * 0.3f, y, unit * 1.1f, unit * 0.75f, color);
    } else {
        canvas_sprite(canvas, SPRITE_RING, x, y, unit * 1.6f, unit * 1.6f, color);
        canvas_sprite(canvas, SPRITE_KNOB, x, y, unit * 0.8f, unit * 0.8f, color);
    }
}

static void draw_tower_button(const Hud *hud, Scene *scene, TowerKind kind, bool is_too_expensive)
{
    Canvas *canvas = scene->canvas;
    const bool is_small = scene->layout.is_small;
    const TowerRules *rules = &tower_rules[kind];
    const SDL_FRect box =
        draw_button(hud, scene, (HudButton)(HUD_TOWER + (int)kind), hud->chosen == (int)kind);
    const float right = box.x + box.w - (is_small ? 5.0f : 8.0f);
    draw_icon(canvas, kind, box.x + (is_small ? 17.0f : 22.0f), box.y + (is_small ? 19.0f : 31.0f),
              is_small ? 13 : 16);
    font_print(canvas, right, box.y + 9, 10, ALIGN_RIGHT, dim, "%d", (int)kind + 1);
    if (!is_small) font_draw(canvas, right, box.y + 26, 9, ALIGN_RIGHT, ink, rules->name);
    font_print(canvas, right, box.y + box.h - 15, 10, ALIGN_RIGHT, is_too_expensive ? red : gold, "%d",
               (int)rules->cost);
}

/* Draws a button with two words, the second in the colour of hints. */
static void draw_words(const Hud *hud, Scene *scene, HudButton button, bool is_on, uint32_t color,
                       const char *text, const char *hint)
{
    const SDL_FRect box = draw_button(hud, scene, button, is_on);
    const float size = scene->layout.is_small ? 10 : 14, middle = box.x + box.w / 2;
    font_draw(scene->canvas, middle, box.y + box.h * 0.27f, size, ALIGN_CENTER, color, text);
    font_draw(scene->canvas, middle, box.y + box.h * 0.68f, size * 0.75f, ALIGN_CENTER, dim, hint);
}

static void draw_tower_buttons(const Hud *hud, Scene *scene, const Keep *keep)
{
    for (uint32_t kind = 0; kind < TOWER_KINDS; kind++)
        draw_tower_button(hud, scene, (TowerKind)kind, keep->gold < tower_rules[kind].cost);
    draw_words(hud, scene, (HudButton)(HUD_TOWER + TOWER_KINDS), hud->chosen == TOWER_KINDS, red, "Sell",
               "X");
}

static void draw_orders(const Hud *hud, Scene *scene, const Keep *keep, const Level *level)
{
    static const char *const speeds[] = {"", "1 x", "2 x", "3 x", "4 x"};
    const bool is_more = keep->wave < level->wave_count;
    char wave[32] = "Last wave";
    if (is_more) SDL_snprintf(wave, sizeof wave, "Next: %d s", (int)ceilf(fmaxf(keep->rest_seconds, 0)));
    draw_words(hud, scene, HUD_WAVE, is_more && keep->rest_seconds < 5, is_more ? ink : dim, wave, "Space");
    draw_words(hud, scene, HUD_SPEED, hud->speed > 1, ink, speeds[hud->speed], "F");
    draw_words(hud, scene, HUD_PAUSE, hud->is_paused, ink, hud->is_paused ? "Go on" : "Pause", "P");
    draw_words(hud, scene, HUD_REWIND, hud->is_rewinding, ink, "Rewind", "R");
}

static void draw_stock(Scene *scene, const Keep *keep, const Level *level)
{
    Canvas *canvas = scene->canvas;
    const bool is_small = scene->layout.is_small;
    const float size = is_small ? 12 : 16, top = is_small ? 9 : 16, bottom = is_small ? 35 : 46;
    const float left = is_small ? 17 : 28, words = is_small ? 98 : 154, numbers = is_small ? 144 : 220;
    const bool is_well = keep->lives * 4 > (int32_t)level->lives;
    canvas_sprite(canvas, SPRITE_KNOB, left, top + size / 2, size * 1.25f, size * 1.25f, gold);
    font_print(canvas, left + size, top, size, ALIGN_LEFT, gold, "%d", (int)keep->gold);
    canvas_sprite(canvas, SPRITE_CRYSTAL, left, bottom + size / 2, size * 1.35f, size * 1.35f, red);
    font_print(canvas, left + size, bottom, size, ALIGN_LEFT, is_well ? ink : red, "%d", (int)keep->lives);
    font_draw(canvas, words, top + 2, size * 0.75f, ALIGN_LEFT, dim, "Score");
    font_print(canvas, numbers, top, size * 0.85f, ALIGN_LEFT, ink, "%d", (int)keep->score);
    font_draw(canvas, words, bottom + 2, size * 0.75f, ALIGN_LEFT, dim, "Wave");
    font_print(canvas, numbers, bottom, size * 0.85f, ALIGN_LEFT, ink, "%u / %u", keep->wave,
               level->wave_count);
}

void hud_draw_bar(const Hud *hud, Scene *scene)
{
    const Layout *layout = &scene->layout;
    const Keep *keep = game_state(scene->game);
    const Level *level = &scene->game->level;
    canvas_blend(scene->canvas, SDL_BLENDMODE_BLEND);
    scene->canvas->frame = (Frame){0, layout->bar.top, layout->bar.scale};
    const float width = layout->width / layout->bar.scale;
    canvas_box(scene->canvas, 0, 0, width, layout->bar_height, panel);
    canvas_box(scene->canvas, 0, 0, width, 2, 0x3A5468FF);
    scene->canvas->frame = layout->bar;
    draw_stock(scene, keep, level);
    draw_tower_buttons(hud, scene, keep);
    draw_orders(hud, scene, keep, level);
}

/* ------------------------------------------------------------------------------------- under the mouse */

enum { SEGMENTS = 72 };

static const float circle = 6.2831853f;

static void draw_range(Canvas *canvas, SDL_FPoint at, float radius, uint32_t color)
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
    const Point plot = game_plot(scene_to_game(scene, hud->mouse));
    const SDL_FPoint at = scene_to_field(scene, plot);
    const quern_entity there = game_tower_at(scene->game, plot);
    Game *game = scene->game;
    if (!quern_entity_is_null(there)) {
        const Tower *tower = quern_entity_get(game->world, there, game->types.tower);
        draw_range(scene->canvas, at, tower_rules[tower->kind].range * scene->scale,
                   hud->chosen == TOWER_KINDS ? red : tower_rules[tower->kind].color);
    } else if (hud->chosen < TOWER_KINDS) {
        const TowerKind kind = (TowerKind)hud->chosen;
        const bool is_good = game_build_error(game, kind, plot) == NULL;
        canvas_box(scene->canvas, at.x - scene->scale, at.y - scene->scale, scene->scale * 2,
                   scene->scale * 2, is_good ? 0x8BE08B30 : 0xF2503C40);
        if (!is_good) return;
        draw_range(scene->canvas, at, tower_rules[kind].range * scene->scale, tower_rules[kind].color);
        draw_icon(scene->canvas, kind, at.x, at.y, scene->scale);
    }
}

/* --------------------------------------------------------------------------------------------- notices */

/* Draws the description of the tower under the mouse, above the bar. */
static void draw_hint(const Hud *hud, Scene *scene)
{
    const HudButton button = hud_button_at(hud, &scene->layout);
    if (button < HUD_TOWER || button >= (HudButton)(HUD_TOWER + TOWER_KINDS)) return;
    const TowerRules *rules = &tower_rules[button - HUD_TOWER];
    const SDL_FRect box = button_box(plan_of(&scene->layout), button);
    scene->canvas->frame = scene->layout.bar;
    const float half = font_width(scene->canvas, 13, rules->name) / 2 +
                       font_width(scene->canvas, 13, rules->about) / 2 + 20;
    const float middle = fmaxf(box.x + box.w / 2, half + 6);
    canvas_box(scene->canvas, middle - half, -38, half * 2, 30, panel);
    font_print(scene->canvas, middle, -30, 13, ALIGN_CENTER, ink, "%s: %s", rules->name, rules->about);
}

/* Returns how many bytes of a text fit into a line, up to a space; at least one word. */
static size_t line_bytes(Canvas *canvas, float size, float most, const char *text)
{
    char line[NOTICE_BYTES];
    size_t fitting = 0;
    for (size_t end = 0; text[end] != '\0' && end < sizeof line - 1;) {
        end += strspn(text + end, " ");
        end += strcspn(text + end, " ");
        if (end >= sizeof line) end = sizeof line - 1;
        memcpy(line, text, end);
        line[end] = '\0';
        if (fitting != 0 && font_width(canvas, size, line) > most) break;
        fitting = end;
    }
    return fitting;
}

void hud_draw_notice(const Hud *hud, Scene *scene)
{
    enum { LINES = 4 };
    if (hud->notice == NULL || hud->notice_seconds <= 0) return;
    const Layout *layout = &scene->layout;
    scene->canvas->frame = (Frame){layout->width / 2, 0, layout->unit};
    const float size = 15, step = size + 6, part = fminf(hud->notice_seconds, 1);
    const float most = 0.9f * layout->width / layout->unit;
    char lines[LINES][NOTICE_BYTES];
    uint32_t count = 0;
    float half = 0;
    for (const char *rest = hud->notice; *rest != '\0' && count < LINES; count++) {
        const size_t bytes = line_bytes(scene->canvas, size, most, rest);
        memcpy(lines[count], rest, bytes);
        lines[count][bytes] = '\0';
        rest += bytes;
        rest += strspn(rest, " ");
        half = fmaxf(half, font_width(scene->canvas, size, lines[count]) / 2 + 14);
    }
    const bool is_page = pages_are_up(hud, game_state(scene->game)); /* with buttons at the bottom */
    const float top = is_page ? 10 : layout->bar.top / layout->unit - 34 - step * (float)count;
    canvas_box(scene->canvas, -half, top, half * 2, step * (float)count + 18, faded(panel, 0.92f * part));
    for (uint32_t i = 0; i < count; i++)
        font_draw(scene->canvas, 0, top + 12 + step * (float)i, size, ALIGN_CENTER,
                  faded(hud->is_good_news ? ink : red, part), lines[i]);
}

/* Draws what the level tells the player now, if it does. */
static void draw_lesson(Scene *scene)
{
    const Level *level = &scene->game->level;
    const uint32_t wave = game_state(scene->game)->wave;
    if (wave >= level->hint_count) return;
    const float most = 0.92f * scene->layout.width / scene->layout.unit;
    const float size = 15 * fminf(1, most / font_width(scene->canvas, 15, level->hints[wave]));
    const float half = font_width(scene->canvas, size, level->hints[wave]) / 2 + 18;
    canvas_box(scene->canvas, -half, 16, half * 2, size + 26, panel);
    canvas_box(scene->canvas, -half, 16, half * 2, 2, gold);
    font_draw(scene->canvas, 0, 29, size, ALIGN_CENTER, ink, level->hints[wave]);
}

static void draw_state(const Hud *hud, Scene *scene)
{
    const Layout *layout = &scene->layout;
    scene->canvas->frame = (Frame){layout->width / 2, 0, layout->unit};
    if (hud->is_rewinding)
        font_draw(scene->canvas, 0, 24, 22, ALIGN_CENTER, gold, "Time runs back");
    else if (hud->is_paused)
        font_draw(scene->canvas, 0, 24, 22, ALIGN_CENTER, ink, "Paused");
    else
        draw_lesson(scene);
}

void hud_draw(const Hud *hud, Scene *scene)
{
    const Keep *keep = game_state(scene->game);
    canvas_blend(scene->canvas, SDL_BLENDMODE_BLEND);
    if (hud_is_on_field(hud, &scene->layout) && keep->state == KEEP_PLAYING) {
        scene->canvas->frame = scene->layout.field;
        canvas_clip(scene->canvas, &(SDL_FRect){0, 0, FIELD_WIDTH, FIELD_HEIGHT});
        draw_plot(hud, scene);
        canvas_clip(scene->canvas, NULL);
    }
    hud_draw_bar(hud, scene);
    draw_hint(hud, scene);
    draw_state(hud, scene);
    hud_draw_notice(hud, scene);
}
