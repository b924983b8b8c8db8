/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "window.h"

#include <stdio.h>
#include <stdlib.h>

#ifdef SWARM_WINDOW

#include "check.h"
#include "record.h"
#include "simulation.h"

#include <SDL.h>
#include <inttypes.h>
#include <math.h>

enum {
    WIDTH = 1280,
    HEIGHT = 720,
    CORNERS = 3,
    SHOWN_AGENTS = 7000, /* about, at first */
    BATCH = 4096         /* agents drawn by one call */
};

static const float nearest = 200.0f, crowd_of_flock = 16.0f;
static const SDL_Color alone = {70, 110, 180, 255}, in_flock = {254, 232, 70, 255},
                       hunter = {255, 110, 64, 255};

/* What is seen: the place in the middle of the window, and its scale. */
typedef struct Camera {
    float x, y;     /* in cells */
    float scale;    /* pixels per cell */
    float whole[2]; /* size of the world in cells */
} Camera;

typedef struct View {
    Simulation simulation;
    quern_jobs *jobs;
    quern_query *agents;
    Camera camera;
    SDL_Vertex corners[BATCH * CORNERS];
    int corner_count;
    uint64_t frame;
    bool is_paused;
} View;

static _Noreturn void fail(const char *what)
{
    (void)fprintf(stderr, "swarm: %s: %s\n", what, SDL_GetError());
    exit(EXIT_FAILURE);
}

/* ------------------------------------------------------------------------------------------- drawing */

static void flush(SDL_Renderer *renderer, View *view)
{
    if (view->corner_count > 0 &&
        SDL_RenderGeometry(renderer, NULL, view->corners, view->corner_count, NULL, 0) != 0)
        fail("drawing");
    view->corner_count = 0;
}

static SDL_Color mix(SDL_Color a, SDL_Color b, float part)
{
    return (SDL_Color){(Uint8)((float)a.r + part * (float)(b.r - a.r)),
                       (Uint8)((float)a.g + part * (float)(b.g - a.g)),
                       (Uint8)((float)a.b + part * (float)(b.b - a.b)), 255};
}

/* Draws an agent as a triangle that points where it moves. */
static void draw_agent(View *view, Position position, Velocity velocity, SDL_Color colour, float size)
{
    const Camera *camera = &view->camera;
    const float x = (position.x - camera->x) * camera->scale + WIDTH / 2.0f,
                y = (position.y - camera->y) * camera->scale + HEIGHT / 2.0f;
    if (x < -size || y < -size || x > WIDTH + size || y > HEIGHT + size) return;
    const float speed = hypotf(velocity.x, velocity.y);
    const float dx = speed > 0 ? velocity.x / speed * size : size,
                dy = speed > 0 ? velocity.y / speed * size : 0;
    const SDL_FPoint points[CORNERS] = {{x + dx, y + dy},
                                        {x - dx * 0.7f - dy * 0.5f, y - dy * 0.7f + dx * 0.5f},
                                        {x - dx * 0.7f + dy * 0.5f, y - dy * 0.7f - dx * 0.5f}};
    for (int i = 0; i < CORNERS; i++)
        view->corners[view->corner_count++] = (SDL_Vertex){.position = points[i], .color = colour};
}

static void draw(SDL_Renderer *renderer, View *view)
{
    const float size = fmaxf(1.6f, fminf(view->camera.scale * 0.16f, 12.0f));
    SDL_SetRenderDrawColor(renderer, 8, 12, 24, 255);
    SDL_RenderClear(renderer);
    quern_query_iterator it = quern_query_iterate(view->agents);
    while (quern_query_next(&it)) {
        const Position *positions = QUERN_COLUMN(&it.view, 0, const Position);
        const Velocity *velocities = QUERN_COLUMN(&it.view, 1, const Velocity);
        const Crowd *crowds = QUERN_COLUMN(&it.view, 2, const Crowd);
        const bool are_hunters = quern_view_has(&it.view, 3);
        const uint32_t count = it.view.count;
        for (uint32_t i = 0; i < count; i++) {
            const float part = fminf(crowds[i].weight / crowd_of_flock, 1.0f);
            draw_agent(view, positions[i], velocities[i], are_hunters ? hunter : mix(alone, in_flock, part),
                       are_hunters ? 1.8f * size : size);
            if (view->corner_count == BATCH * CORNERS) flush(renderer, view);
        }
    }
    check(it.result);
    flush(renderer, view);
    SDL_RenderPresent(renderer);
}

/* ----------------------------------------------------------------------------------------- the view */

static void open_view(View *view, const Options *options)
{
    Simulation *simulation = &view->simulation;
    const Types *types = &simulation->types;
    simulation_create(simulation, options->seed, options->entity_count, NULL);
    check(quern_jobs_create(&(quern_jobs_def){.thread_count = options->thread_count}, &view->jobs));
    const quern_query_def def = {.name = "window",
                                 .terms = {quern_term_read(types->position),
                                           quern_term_read(types->velocity), quern_term_read(types->crowd),
                                           quern_term_optional(types->hunter, QUERN_ACCESS_NONE)}};
    check(quern_query_create(simulation->world, &def, &view->agents));
    simulation_step(simulation, view->jobs); /* builds the grid, which knows the size of the world */
    view->frame = 1;
    const quern_grid_cells *cells = quern_grid_get_cells(simulation->grid);
    Camera *camera = &view->camera;
    for (int i = 0; i < 2; i++)
        camera->whole[i] = (float)cells->counts[i];
    camera->x = camera->whole[0] / 2;
    camera->y = camera->whole[1] / 2;
    const float shown = camera->whole[0] * camera->whole[1] * SHOWN_AGENTS / (float)options->entity_count;
    camera->scale = fmaxf(sqrtf((float)WIDTH * HEIGHT / shown), WIDTH / camera->whole[0]);
}

static void close_view(View *view)
{
    printf("  world hash: 0x%016" PRIx64 " after %" PRIu64 " frames\n",
           quern_world_hash(view->simulation.world), view->frame);
    quern_query_destroy(view->agents);
    quern_jobs_destroy(view->jobs);
    simulation_destroy(&view->simulation);
}

/* Draws into memory, which needs no screen. */
static void save_picture(View *view, const char *path)
{
    SDL_Surface *surface = SDL_CreateRGBSurfaceWithFormat(0, WIDTH, HEIGHT, 24, SDL_PIXELFORMAT_BGR24);
    SDL_Renderer *renderer = surface == NULL ? NULL : SDL_CreateSoftwareRenderer(surface);
    if (renderer == NULL) fail("no renderer");
    draw(renderer, view);
    if (SDL_SaveBMP(surface, path) != 0) fail(path);
    SDL_DestroyRenderer(renderer);
    SDL_FreeSurface(surface);
}

/* Zooms with the wheel, moves with the mouse. Returns false when the user quits. */
static bool read_input(View *view)
{
    Camera *camera = &view->camera;
    for (SDL_Event event; SDL_PollEvent(&event);) {
        if (event.type == SDL_QUIT || (event.type == SDL_KEYDOWN && event.key.keysym.sym == SDLK_ESCAPE))
            return false;
        if (event.type == SDL_KEYDOWN && event.key.keysym.sym == SDLK_SPACE)
            view->is_paused = !view->is_paused;
        if (event.type == SDL_MOUSEWHEEL)
            camera->scale = fmaxf(WIDTH / camera->whole[0],
                                  fminf(camera->scale * powf(1.15f, (float)event.wheel.y), nearest));
        if (event.type == SDL_MOUSEMOTION && event.motion.state != 0) {
            camera->x -= (float)event.motion.xrel / camera->scale;
            camera->y -= (float)event.motion.yrel / camera->scale;
        }
    }
    return true;
}

static void show_title(SDL_Window *window, View *view, uint64_t frame_ns)
{
    char text[160];
    const Census *census = simulation_census(&view->simulation);
    snprintf(text, sizeof text,
             "swarm: %" PRIu64 " prey (yellow in flocks), %" PRIu64
             " hunters, %.1f ms per frame; wheel zooms, mouse "
             "moves, space pauses",
             census->prey_count, census->hunter_count, (double)frame_ns / 1e6);
    SDL_SetWindowTitle(window, text);
}

static void run_window(View *view, const volatile sig_atomic_t *is_interrupted)
{
    SDL_Window *window;
    SDL_Renderer *renderer;
    if (SDL_Init(SDL_INIT_VIDEO) != 0 ||
        SDL_CreateWindowAndRenderer(WIDTH, HEIGHT, 0, &window, &renderer) != 0)
        fail("no window: try the picture on the terminal, without --window");
    const bool is_synchronised = SDL_RenderSetVSync(renderer, 1) == 0;
    while (!*is_interrupted && read_input(view)) {
        const uint64_t begin_ns = clock_ns();
        if (!view->is_paused) {
            simulation_step(&view->simulation, view->jobs);
            if (view->frame++ % 30 == 0) show_title(window, view, clock_ns() - begin_ns);
        }
        draw(renderer, view);
        if (!is_synchronised) SDL_Delay(10);
    }
    SDL_Quit();
}

void window_run(const Options *options, const volatile sig_atomic_t *is_interrupted)
{
    static View view;
    open_view(&view, options);
    if (options->picture == NULL) {
        run_window(&view, is_interrupted);
    } else {
        for (; view.frame < options->frame_count && !*is_interrupted; view.frame++)
            simulation_step(&view.simulation, view.jobs);
        save_picture(&view, options->picture);
    }
    close_view(&view);
}

#else

void window_run(const Options *options, const volatile sig_atomic_t *is_interrupted)
{
    (void)options;
    (void)is_interrupted;
    fputs("swarm: --window and --picture need SDL 2, and this program was built without it: "
          "'./run demo --window' installs it\n",
          stderr);
    exit(2);
}

#endif
