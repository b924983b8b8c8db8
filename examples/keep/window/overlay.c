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

/* A line for each system, with a bar as long as its time. */
static void draw_systems(const Overlay *overlay, Scene *scene, float x, float y)
{
    for (uint32_t i = 0; i < system_count(scene->game); i++, y += 15) {
        const quern_system_stats stats = stats_of(scene->game, i);
        const float length = overlay->system_ms[i] * 100;
        canvas_box(scene->canvas, x + 250, y, length < 100 ? length : 100, 9, busy_color);
        font_draw(scene->canvas, x, y, 8, ALIGN_LEFT, ink, stats.name);
        font_print(scene->canvas, x + 240, y, 8, ALIGN_RIGHT, dim, "%.3f", (double)overlay->system_ms[i]);
    }
}

/* A row for each thread: a column for each frame, filled as far as the thread was busy. */
static void draw_threads(const Overlay *overlay, Canvas *canvas, float x, float y)
{
    enum { HEIGHT = 34, COLUMN = 3 };
    for (uint32_t thread = 0; thread < overlay->thread_count; thread++, y += HEIGHT + 8) {
        canvas_box(canvas, x, y, OVERLAY_FRAMES * COLUMN, HEIGHT, 0xFFFFFF10);
        for (uint32_t i = 0; i < OVERLAY_FRAMES; i++) {
            const OverlayFrame *frame = &overlay->frames[(overlay->next + i) % OVERLAY_FRAMES];
            const float busy = frame->busy[thread] * HEIGHT, sync = frame->sync[thread] * HEIGHT;
            const float left = x + (float)(i * COLUMN), bottom = y + HEIGHT;
            canvas_box(canvas, left, bottom - busy, COLUMN, busy, busy_color);
            canvas_box(canvas, left, bottom - busy - sync, COLUMN, sync, sync_color);
        }
        font_print(canvas, x + 4, y + 4, 8, ALIGN_LEFT, ink, "THREAD %u", thread);
    }
}

void overlay_draw(const Overlay *overlay, Scene *scene, float picture_ms)
{
    quern_world_stats stats;
    if (!overlay->is_on) return;
    Canvas *canvas = scene->canvas;
    const OverlayFrame *last = &overlay->frames[(overlay->next + OVERLAY_FRAMES - 1) % OVERLAY_FRAMES];
    check(quern_world_get_stats(scene->game->world, &stats));
    canvas_blend(canvas, SDL_BLENDMODE_BLEND);
    canvas_box(canvas, 12, 12, 400, FIELD_HEIGHT - 24, 0x060A10D0);
    font_print(canvas, 26, 26, 10, ALIGN_LEFT, ink, "STEP %.2f MS, PICTURE %.2f MS", (double)last->frame_ms,
               (double)picture_ms);
    font_print(canvas, 26, 44, 10, ALIGN_LEFT, ink, "%u ENTITIES, %u SPRITES", (uint32_t)stats.entity_count,
               canvas->drawn_count);
    draw_systems(overlay, scene, 26, 72);
    draw_threads(overlay, canvas, 30, 82 + 15 * (float)system_count(scene->game));
}
