/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "pages.h"

#include "font.h"

#include <math.h>

static const uint32_t ink = 0xE8E2D0FF, dim = 0x93A0A8FF, gold = 0xF2C75AFF, red = 0xF27A6AFF;
static const uint32_t veil = 0x060A10B0, button_off = 0x1A2632E0, button_under = 0x2E4A5CFF;

/* --------------------------------------------------------------------------------------------- choices */

typedef struct Entry {
    Choice choice;
    SDL_Keycode key;
    const char *text, *hint;
} Entry;

enum {
    ENTRIES_MAX = 6,
    ROW_MAX = 4,
    BUTTON_WIDTH = 224,
    BUTTON_HEIGHT = 56,
    BUTTON_GAP = 16,
    TITLE_LEFT = 20
};

/* The entries of each page; the list ends with CHOICE_NONE. */
static const Entry title_entries[ENTRIES_MAX + 1] = {{CHOICE_GO_ON, SDLK_SPACE, "Begin", "Space"},
                                                     {CHOICE_LOAD, SDLK_F9, "Load game", "F9"},
                                                     {CHOICE_LESSON, SDLK_l, "Lesson", "L"},
                                                     {CHOICE_LEAVE, SDLK_ESCAPE, "Leave", "Esc"}};
static const Entry menu_entries[ENTRIES_MAX + 1] = {
    {CHOICE_GO_ON, SDLK_ESCAPE, "Go on", "Esc"}, {CHOICE_NEW_GAME, SDLK_n, "New game", "N"},
    {CHOICE_SAVE, SDLK_F5, "Save game", "F5"},   {CHOICE_LOAD, SDLK_F9, "Load game", "F9"},
    {CHOICE_SOUND, SDLK_m, "Sound", "M"},        {CHOICE_LEAVE, SDLK_q, "Leave", "Q"}};
static const Entry end_entries[ENTRIES_MAX + 1] = {{CHOICE_NEW_GAME, SDLK_n, "New game", "N"},
                                                   {CHOICE_TURN_BACK, SDLK_r, "Turn back", "Hold R"},
                                                   {CHOICE_LOAD, SDLK_F9, "Load game", "F9"},
                                                   {CHOICE_LEAVE, SDLK_q, "Leave", "Q"}};

static const Entry *entries_of(const Hud *hud)
{
    if (hud->page == PAGE_GAME) return end_entries;
    return hud->page == PAGE_TITLE ? title_entries : menu_entries;
}

static uint32_t count_entries(const Entry *entries)
{
    uint32_t count = 0;
    while (entries[count].choice != CHOICE_NONE)
        count++;
    return count;
}

static SDL_FRect entry_box(const Hud *hud, uint32_t i)
{
    const uint32_t count = count_entries(entries_of(hud));
    const uint32_t in_row = count > ROW_MAX ? (count + 1) / 2 : count; /* in one row, or in two */
    const float step = BUTTON_WIDTH + BUTTON_GAP, whole = step * (float)in_row - BUTTON_GAP;
    const bool is_title = hud->page == PAGE_TITLE;
    const float left = is_title ? (float)TITLE_LEFT : (PAGE_WIDTH - whole) / 2;
    const float top = PAGE_HEIGHT - (is_title ? 80.0f : count > ROW_MAX ? 182.0f : 110.0f);
    const uint32_t row = i / in_row;
    return (SDL_FRect){left + step * (float)(i % in_row), top + (BUTTON_HEIGHT + BUTTON_GAP) * (float)row,
                       BUTTON_WIDTH, BUTTON_HEIGHT};
}

bool pages_are_up(const Hud *hud, const Keep *keep)
{
    return hud->page != PAGE_GAME || (keep->state != KEEP_PLAYING && !hud->is_rewinding);
}

Choice pages_choice_at_mouse(const Hud *hud, Scene *scene)
{
    const SDL_FPoint mouse = frame_point(scene->layout.page, hud->mouse);
    const Entry *entries = entries_of(hud);
    for (uint32_t i = 0; entries[i].choice != CHOICE_NONE; i++) {
        const SDL_FRect box = entry_box(hud, i);
        if (!hud->is_mouse_away && SDL_PointInFRect(&mouse, &box)) return entries[i].choice;
    }
    return CHOICE_NONE;
}

Choice pages_choice_of_key(const Hud *hud, const Keep *keep, SDL_Keycode key)
{
    const Entry *entries = entries_of(hud);
    if (!pages_are_up(hud, keep)) return CHOICE_NONE;
    for (uint32_t i = 0; entries[i].choice != CHOICE_NONE; i++)
        if (entries[i].key == key) return entries[i].choice;
    if (key == SDLK_RETURN || key == SDLK_KP_ENTER) return entries[0].choice;
    if (key == SDLK_BACKSPACE && hud->page == PAGE_GAME) return CHOICE_TURN_BACK;
    return hud->page == PAGE_MENU && key == SDLK_SPACE ? CHOICE_GO_ON : CHOICE_NONE;
}

static void draw_entries(const Hud *hud, Scene *scene)
{
    const Entry *entries = entries_of(hud);
    const Choice under = pages_choice_at_mouse(hud, scene);
    for (uint32_t i = 0; entries[i].choice != CHOICE_NONE; i++) {
        const SDL_FRect box = entry_box(hud, i);
        const bool is_under = under == entries[i].choice;
        const char *text = entries[i].text;
        if (entries[i].choice == CHOICE_SOUND) text = hud->is_mute ? "Sound is off" : "Sound is on";
        canvas_box(scene->canvas, box.x, box.y, box.w, box.h, is_under ? button_under : button_off);
        canvas_box(scene->canvas, box.x, box.y, box.w, 2, is_under || i == 0 ? gold : 0xFFFFFF18);
        font_draw(scene->canvas, box.x + box.w / 2, box.y + 13, 15, ALIGN_CENTER, ink, text);
        font_draw(scene->canvas, box.x + box.w / 2, box.y + 37, 10.5f, ALIGN_CENTER, dim, entries[i].hint);
    }
}

/* ----------------------------------------------------------------------------------------------- pages */

/* Draws large letters with light around them. */
static void draw_heading(Canvas *canvas, float y, float size, uint32_t color, const char *text)
{
    canvas_blend(canvas, SDL_BLENDMODE_ADD);
    canvas_sprite(canvas, SPRITE_GLOW, PAGE_WIDTH / 2.0f, y + size / 2, PAGE_WIDTH * 0.9f, size * 4.5f,
                  faded(color, 0.3f));
    canvas_blend(canvas, SDL_BLENDMODE_BLEND);
    font_draw(canvas, PAGE_WIDTH / 2.0f + size * 0.03f, y + size * 0.04f, size, ALIGN_CENTER, 0x000000A0,
              text);
    font_draw(canvas, PAGE_WIDTH / 2.0f, y, size, ALIGN_CENTER, color, text);
}

/* Draws the title on the left; the field with the keep is on the right. */
static void draw_title(Canvas *canvas)
{
    static const char *const keys[][2] = {{"Click", "build a tower"},
                                          {"1 - 4", "choose which"},
                                          {"Right click", "sell a tower"},
                                          {"Space", "call the next wave"},
                                          {"F", "faster"},
                                          {"P", "pause, with S one step"},
                                          {"Hold R", "turn back time"},
                                          {"F1", "see where time goes"},
                                          {"F11", "full screen"},
                                          {"M", "sound off and on"}};
    font_draw(canvas, TITLE_LEFT, 34, 118, ALIGN_LEFT, gold, "KEEP");
    font_draw(canvas, TITLE_LEFT, 190, 16, ALIGN_LEFT, ink, "Enemies come along the roads.");
    font_draw(canvas, TITLE_LEFT, 217, 16, ALIGN_LEFT, ink, "Build towers beside them.");
    for (uint32_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const float y = 268 + 23 * (float)i;
        font_draw(canvas, TITLE_LEFT, y, 12, ALIGN_LEFT, gold, keys[i][0]);
        font_draw(canvas, TITLE_LEFT + 116, y, 12, ALIGN_LEFT, ink, keys[i][1]);
    }
}

/* Darkens the window: evenly, or for the title from the left to the middle. */
static void draw_veil(Canvas *canvas, const Layout *layout, bool is_title)
{
    enum { STRIPES = 96 };
    canvas->frame = (Frame){0, 0, 1};
    if (!is_title) canvas_box(canvas, 0, 0, layout->width, layout->height, veil);
    for (int i = 0; i < STRIPES && is_title; i++) {
        const float left = roundf(layout->width * (float)i / STRIPES),
                    right = roundf(layout->width * (float)(i + 1) / STRIPES);
        canvas_box(canvas, left, 0, right - left, layout->height,
                   faded(0x060A10F0, 2.1f - 2.8f * (float)i / STRIPES));
    }
}

/* Draws the menu as large as the page allows. */
static void draw_menu(Canvas *canvas, const char *title)
{
    const float size = 84 * fminf(1, 0.9f * PAGE_WIDTH / font_width(canvas, 84, title));
    draw_heading(canvas, 210, size, ink, title);
}

static void draw_end(Canvas *canvas, const Keep *keep, const Level *level)
{
    const bool has_won = keep->state == KEEP_WON;
    const float left = 360, right = 640;
    draw_heading(canvas, 110, 50, has_won ? gold : red,
                 has_won ? "The keep stands" : "The keep has fallen");
    static const char *const names[] = {"Score", "Killed", "Waves", "Lives left"};
    for (uint32_t i = 0; i < 4; i++)
        font_draw(canvas, left, i == 0 ? 230 : 248 + 40 * (float)i, i == 0 ? 20 : 15, ALIGN_LEFT, dim,
                  names[i]);
    font_print(canvas, right, 230, 20, ALIGN_RIGHT, gold, "%d", (int)keep->score);
    font_print(canvas, right, 288, 15, ALIGN_RIGHT, ink, "%u", keep->kills);
    font_print(canvas, right, 328, 15, ALIGN_RIGHT, ink, "%u / %u", keep->wave, level->wave_count);
    font_print(canvas, right, 368, 15, ALIGN_RIGHT, ink, "%d", (int)keep->lives);
}

void pages_draw(const Hud *hud, Scene *scene)
{
    const Layout *layout = &scene->layout;
    const Keep *keep = game_state(scene->game);
    Canvas *canvas = scene->canvas;
    canvas_blend(canvas, SDL_BLENDMODE_BLEND);
    draw_veil(canvas, layout, hud->page == PAGE_TITLE);
    canvas->frame = layout->page;
    if (hud->page == PAGE_TITLE)
        draw_title(canvas);
    else if (hud->page == PAGE_MENU)
        draw_menu(canvas, scene->game->level.title);
    else
        draw_end(canvas, keep, &scene->game->level);
    draw_entries(hud, scene);
    hud_draw_notice(hud, scene);
}
