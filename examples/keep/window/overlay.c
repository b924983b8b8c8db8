/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "overlay.h"

#include "../game/check.h"
#include "font.h"

static const uint32_t ink = 0xE8E2D0FF, dim = 0x93A0A8FF, busy_color = 0x6EE0A8FF, sync_color = 0xF2A05AFF;

void overlay_switch(Overlay *overlay, Game *game, bool is_on)
{
    *overlay = (Overlay){.is_on = is_on};
    check(quern_schedule_set_profiling(game->schedule, is_on));
}

static uint32_t system_count(const Game *game)
{
    const uint32_t count = quern_schedule_system_count(game->schedule);
    return count < OVERLAY_SYSTEMS_MAX ? count : OVERLAY_SYSTEMS_MAX;
}

static quern_system_stats stats_of(const Game *game, uint32_t i)
{
    quern_system_stats stats;
    check(quern_schedule_get_system_stats(game->schedule, quern_schedule_system_at(game->schedule, i),
                                          &stats));
    return stats;
}

void overlay_add_step(Overlay *overlay, Game *game, quern_jobs *jobs)
{
    quern_frame_profile frame;
    if (!overlay->is_on) return;
    check(quern_schedule_get_frame_profile(game->schedule, &frame));
    OverlayFrame *noted = &overlay->frames[overlay->next];
    overlay->next = (overlay->next + 1) % OVERLAY_FRAMES;
    overlay->thread_count = quern_jobs_thread_count(jobs);
    if (overlay->thread_count > OVERLAY_THREADS_MAX) overlay->thread_count = OVERLAY_THREADS_MAX;
    *noted = (OverlayFrame){.busy = {0}};
    overlay->step_ms += 0.05f * ((float)frame.time_ns / 1e6f - overlay->step_ms);
    for (uint32_t i = 0; i < overlay->thread_count && frame.time_ns > 0; i++) {
        quern_worker_profile worker;
        check(quern_schedule_get_worker_profile(game->schedule, i, &worker));
        noted->busy[i] = (float)worker.busy_ns / (float)frame.time_ns;
        noted->sync[i] = (float)worker.sync_ns / (float)frame.time_ns;
    }
    for (uint32_t i = 0; i < system_count(game); i++)
        overlay->system_ms[i] += 0.05f * ((float)stats_of(game, i).time_ns / 1e6f - overlay->system_ms[i]);
}

void overlay_add_picture(Overlay *overlay, const Canvas *canvas, float picture_ms)
{
    const double ticks_per_ms = (double)SDL_GetPerformanceFrequency() / 1000;
    const float call_ms = (float)((double)canvas->call_ticks / ticks_per_ms);
    const float fill_ms = picture_ms - call_ms;
    overlay->call_ms += 0.1f * (call_ms - overlay->call_ms);
    overlay->fill_ms += 0.1f * (fill_ms - overlay->fill_ms);
    if (overlay->least_fill_ms == 0 || fill_ms < overlay->least_fill_ms) overlay->least_fill_ms = fill_ms;
    if (overlay->least_call_ms == 0 || call_ms < overlay->least_call_ms) overlay->least_call_ms = call_ms;
    overlay->sprite_count = canvas->drawn_count;
    overlay->call_count = canvas->call_count;
}

enum {
    WIDTH = 340,
    MARGIN = 14,
    TABLE = 72, /* position of the list of systems, and height of a line */
    LINE = 15,
    LINES_MOST = 6,
    CHARTS = TABLE + LINE * (LINES_MOST + 1) + 12,
    CHART_HEIGHT = 24,
    CHART_STEP = 30,
    NUMBERS_RIGHT = 218,
    BARS_LEFT = 232
};

static const float shown_ms = 0.0005f; /* shorter durations would be printed as 0.000 */

/* Finds the slowest systems, slowest first, without those of negligible duration. Returns their number. */
static uint32_t find_slowest(const Overlay *overlay, const Game *game, uint32_t slowest[LINES_MOST])
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < system_count(game); i++) {
        if (overlay->system_ms[i] < shown_ms) continue;
        uint32_t place = count < LINES_MOST ? count++ : LINES_MOST;
        for (; place > 0 && overlay->system_ms[slowest[place - 1]] < overlay->system_ms[i]; place--)
            if (place < LINES_MOST) slowest[place] = slowest[place - 1];
        if (place < LINES_MOST) slowest[place] = i;
    }
    return count;
}

/* Draws a line for each of the slowest systems, with a bar relative to the slowest. */
static void draw_systems(const Overlay *overlay, Scene *scene)
{
    uint32_t slowest[LINES_MOST];
    const uint32_t count = find_slowest(overlay, scene->game, slowest);
    Canvas *canvas = scene->canvas;
    font_draw(canvas, MARGIN, TABLE, 9, ALIGN_LEFT, dim, "Slowest systems");
    font_draw(canvas, NUMBERS_RIGHT, TABLE, 9, ALIGN_RIGHT, dim, "ms");
    for (uint32_t i = 0; i < count; i++) {
        const float ms = overlay->system_ms[slowest[i]], y = TABLE + 4 + LINE * (float)(i + 1);
        font_draw(canvas, MARGIN, y, 9, ALIGN_LEFT, ink, stats_of(scene->game, slowest[i]).name);
        font_print(canvas, NUMBERS_RIGHT, y, 9, ALIGN_RIGHT, ink, "%.3f", (double)ms);
        canvas_box(canvas, BARS_LEFT, y, (WIDTH - MARGIN - BARS_LEFT) * ms / overlay->system_ms[slowest[0]],
                   8, busy_color);
    }
}

/* Draws a row for each thread: a column per frame, filled up to the busy fraction. */
static void draw_threads(const Overlay *overlay, Canvas *canvas)
{
    const float left = MARGIN + 78, column = (WIDTH - MARGIN - left) / (float)OVERLAY_FRAMES;
    float y = CHARTS + LINE;
    for (uint32_t thread = 0; thread < overlay->thread_count; thread++, y += CHART_STEP) {
        font_print(canvas, MARGIN, y + CHART_HEIGHT / 2.0f - 4, 9, ALIGN_LEFT, ink, "Thread %u", thread);
        canvas_box(canvas, left, y, OVERLAY_FRAMES * column, CHART_HEIGHT, 0xFFFFFF10);
        for (uint32_t i = 0; i < OVERLAY_FRAMES; i++) {
            const OverlayFrame *frame = &overlay->frames[(overlay->next + i) % OVERLAY_FRAMES];
            const float busy = frame->busy[thread] * CHART_HEIGHT,
                        sync = frame->sync[thread] * CHART_HEIGHT;
            const float at = left + (float)i * column, bottom = y + CHART_HEIGHT;
            canvas_box(canvas, at, bottom - busy, column, busy, busy_color);
            canvas_box(canvas, at, bottom - busy - sync, column, sync, sync_color);
        }
    }
}

static void draw_legend(Canvas *canvas)
{
    font_print(canvas, MARGIN, CHARTS, 9, ALIGN_LEFT, dim, "Last %d steps", OVERLAY_FRAMES);
    canvas_box(canvas, 146, CHARTS, 8, 8, busy_color);
    font_draw(canvas, 160, CHARTS, 9, ALIGN_LEFT, dim, "Systems");
    canvas_box(canvas, 232, CHARTS, 8, 8, sync_color);
    font_draw(canvas, 246, CHARTS, 9, ALIGN_LEFT, dim, "Sync point");
}

static void draw_head(const Overlay *overlay, Scene *scene)
{
    quern_world_stats stats;
    const float second = 180;
    Canvas *canvas = scene->canvas;
    check(quern_world_get_stats(scene->game->world, &stats));
    font_print(canvas, MARGIN, 14, 10, ALIGN_LEFT, ink, "Step %.2f ms", (double)overlay->step_ms);
    font_print(canvas, second, 14, 10, ALIGN_LEFT, ink, "%u entities", (uint32_t)stats.entity_count);
    font_print(canvas, MARGIN, 31, 10, ALIGN_LEFT, ink, "Picture %.2f ms", (double)overlay->fill_ms);
    font_print(canvas, second, 31, 10, ALIGN_LEFT, ink, "%u sprites", overlay->sprite_count);
    font_print(canvas, MARGIN, 48, 10, ALIGN_LEFT, ink, "SDL %.2f ms", (double)overlay->call_ms);
    font_print(canvas, second, 48, 10, ALIGN_LEFT, ink, "%u calls", overlay->call_count);
}

/* Returns how many steps of a road a rectangle of the window hides. Steps of the first quarter count
 * more, because enemies enter there. */
static uint32_t count_hidden_steps(const Scene *scene, const Road *road, const SDL_FRect *box)
{
    enum { ENTRANCE_WEIGHT = 10 };
    const Frame field = scene->layout.field;
    uint32_t hidden = 0;
    for (uint32_t i = 0; i < road->step_count; i++) {
        const SDL_FPoint at = scene_to_field(scene, road->steps[i].at);
        const SDL_FPoint pixel = {field.left + at.x * field.scale, field.top + at.y * field.scale};
        if (SDL_PointInFRect(&pixel, box)) hidden += i < road->step_count / 4 ? ENTRANCE_WEIGHT : 1;
    }
    return hidden;
}

/* Returns the corner of the field in which the panel hides the smallest part of the roads. */
static Frame find_corner(const Scene *scene, float height)
{
    const Layout *layout = &scene->layout;
    const float scale = SDL_min(layout->unit, layout->bar.top / (height + 24)), gap = 12 * scale;
    SDL_FRect box = {0, 0, WIDTH * scale, height * scale};
    Frame best = {.scale = scale};
    uint32_t least = UINT32_MAX;
    for (int corner = 0; corner < 4; corner++) {
        box.x = corner & 1 ? gap : layout->width - box.w - gap;
        box.y = corner & 2 ? layout->bar.top - box.h - gap : gap;
        uint32_t hidden = 0;
        for (uint32_t i = 0; i < scene->game->level.road_count; i++)
            hidden += count_hidden_steps(scene, &scene->game->roads[i], &box);
        if (hidden >= least) continue;
        least = hidden;
        best = (Frame){box.x, box.y, scale};
    }
    return best;
}

/* Draws the overlay. In a small window the charts of the threads are left out. */
void overlay_draw(const Overlay *overlay, Scene *scene)
{
    if (!overlay->is_on) return;
    const bool has_charts = !scene->layout.is_small;
    const float charts = LINE + CHART_STEP * (float)overlay->thread_count + 8;
    const float height = CHARTS + (has_charts ? charts : 0);
    canvas_blend(scene->canvas, SDL_BLENDMODE_BLEND);
    scene->canvas->frame = find_corner(scene, height);
    canvas_box(scene->canvas, 0, 0, WIDTH, height, 0x060A10D8);
    draw_head(overlay, scene);
    draw_systems(overlay, scene);
    if (!has_charts) return;
    draw_legend(scene->canvas);
    draw_threads(overlay, scene->canvas);
}
