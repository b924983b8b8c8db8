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

void overlay_note(Overlay *overlay, Game *game, quern_jobs *jobs)
{
    quern_frame_profile frame;
    if (!overlay->is_on) return;
    check(quern_schedule_get_frame_profile(game->schedule, &frame));
    OverlayFrame *noted = &overlay->frames[overlay->next];
    overlay->next = (overlay->next + 1) % OVERLAY_FRAMES;
    overlay->thread_count = quern_jobs_thread_count(jobs);
    if (overlay->thread_count > OVERLAY_THREADS_MAX) overlay->thread_count = OVERLAY_THREADS_MAX;
    *noted = (OverlayFrame){.frame_ms = (float)frame.time_ns / 1e6f};
    for (uint32_t i = 0; i < overlay->thread_count && frame.time_ns > 0; i++) {
        quern_worker_profile worker;
        check(quern_schedule_get_worker_profile(game->schedule, i, &worker));
        noted->busy[i] = (float)worker.busy_ns / (float)frame.time_ns;
        noted->sync[i] = (float)worker.sync_ns / (float)frame.time_ns;
    }
    for (uint32_t i = 0; i < system_count(game); i++)
        overlay->system_ms[i] += 0.05f * ((float)stats_of(game, i).time_ns / 1e6f - overlay->system_ms[i]);
}

void overlay_note_picture(Overlay *overlay, const Canvas *canvas, float picture_ms)
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

enum { WIDTH = 400, HEAD = 94, LINE = 15, LINES_MOST = 6, THREAD_HEIGHT = 34, THREAD_STEP = 40 };

/* How many systems took longer. */
static uint32_t rank_of(const Overlay *overlay, const Game *game, uint32_t system)
{
    uint32_t rank = 0;
    for (uint32_t i = 0; i < system_count(game); i++) {
        const float longer = overlay->system_ms[i] - overlay->system_ms[system];
        rank += longer > 0 || (longer == 0 && i < system);
    }
    return rank;
}

/* A line for each of the slowest systems, with a bar as long as its time. */
static void draw_systems(const Overlay *overlay, Scene *scene, uint32_t line_count, float x, float y)
{
    for (uint32_t i = 0; i < system_count(scene->game); i++) {
        if (rank_of(overlay, scene->game, i) >= line_count) continue;
        const quern_system_stats stats = stats_of(scene->game, i);
        const float length = overlay->system_ms[i] * 100;
        canvas_box(scene->canvas, x + 250, y, length < 116 ? length : 116, 9, busy_color);
        font_draw(scene->canvas, x, y, 8, ALIGN_LEFT, ink, stats.name);
        font_print(scene->canvas, x + 240, y, 8, ALIGN_RIGHT, dim, "%.3f MS",
                   (double)overlay->system_ms[i]);
        y += LINE;
    }
}

/* A row for each thread: a column for each frame, filled as far as the thread was busy. */
static void draw_threads(const Overlay *overlay, Canvas *canvas, float x, float y)
{
    const float left = x + 78, column = (WIDTH - 28 - 78) / (float)OVERLAY_FRAMES;
    for (uint32_t thread = 0; thread < overlay->thread_count; thread++, y += THREAD_STEP) {
        font_print(canvas, x, y + THREAD_HEIGHT / 2.0f - 4, 8, ALIGN_LEFT, ink, "THREAD %u", thread);
        canvas_box(canvas, left, y, OVERLAY_FRAMES * column, THREAD_HEIGHT, 0xFFFFFF10);
        for (uint32_t i = 0; i < OVERLAY_FRAMES; i++) {
            const OverlayFrame *frame = &overlay->frames[(overlay->next + i) % OVERLAY_FRAMES];
            const float busy = frame->busy[thread] * THREAD_HEIGHT,
                        sync = frame->sync[thread] * THREAD_HEIGHT;
            const float at = left + (float)i * column, bottom = y + THREAD_HEIGHT;
            canvas_box(canvas, at, bottom - busy, column, busy, busy_color);
            canvas_box(canvas, at, bottom - busy - sync, column, sync, sync_color);
        }
    }
}

static void draw_head(const Overlay *overlay, Scene *scene, float x)
{
    quern_world_stats stats;
    const OverlayFrame *last = &overlay->frames[(overlay->next + OVERLAY_FRAMES - 1) % OVERLAY_FRAMES];
    check(quern_world_get_stats(scene->game->world, &stats));
    font_print(scene->canvas, x, 16, 10, ALIGN_LEFT, ink, "STEP %.2f MS, %u ENTITIES",
               (double)last->frame_ms, (uint32_t)stats.entity_count);
    font_print(scene->canvas, x, 34, 10, ALIGN_LEFT, ink, "PICTURE %.2f MS, AND SDL %.2f MS",
               (double)overlay->fill_ms, (double)overlay->call_ms);
    font_print(scene->canvas, x, 52, 10, ALIGN_LEFT, ink, "%u SPRITES IN %u CALLS", overlay->sprite_count,
               overlay->call_count);
    canvas_box(scene->canvas, x, 72, 9, 9, busy_color);
    font_draw(scene->canvas, x + 14, 72, 8, ALIGN_LEFT, dim, "SYSTEMS");
    canvas_box(scene->canvas, x + 100, 72, 9, 9, sync_color);
    font_draw(scene->canvas, x + 114, 72, 8, ALIGN_LEFT, dim, "SYNC POINT, OF EACH STEP");
}

/* At the top right: enemies enter on the left. */
void overlay_draw(const Overlay *overlay, Scene *scene)
{
    if (!overlay->is_on) return;
    Canvas *canvas = scene->canvas;
    const Layout *layout = &scene->layout;
    const float rest = HEAD + 12 + THREAD_STEP * (float)overlay->thread_count;
    const uint32_t count = system_count(scene->game);
    const uint32_t line_count = count < LINES_MOST ? count : LINES_MOST;
    const float systems = LINE * (float)line_count;
    const float scale = SDL_min(layout->unit, layout->bar.top / (rest + systems + 24));
    canvas_blend(canvas, SDL_BLENDMODE_BLEND);
    canvas->frame = (Frame){layout->width - (WIDTH + 12) * scale, 12 * scale, scale};
    canvas_box(canvas, 0, 0, WIDTH, rest + systems, 0x060A10D8);
    draw_head(overlay, scene, 14);
    draw_systems(overlay, scene, line_count, 14, HEAD);
    draw_threads(overlay, canvas, 14, HEAD + systems + 6);
}
