/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Birds in a window, by SDL2: each flies with its neighbours, and away from the pointer while a mouse button is down.
 * Space pauses, Escape quits. `boids --frames N` runs N frames without a window and prints the result;
 * `--picture FILE.bmp` also draws the last frame into a file. */
#include <quern/kit/grid.h>
#include <quern/kit/random.h>
#include <quern/quern.h>

#include <SDL2/SDL.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WIDTH = 960, HEIGHT = 600, MAX_NEIGHBOURS = 16 };

static const float sight = 24, fear = 120;      /* pixels */
static const float slowest = 60, fastest = 140; /* pixels per second */

typedef struct Position {
    float x, y; /* pixels */
} Position;

typedef struct Velocity {
    float x, y; /* pixels per second */
} Velocity;

typedef struct Steering {
    float x, y; /* pixels per second per second */
} Steering;

/* The mouse, as a resource: the program writes it between frames, and systems read it. */
typedef struct Pointer {
    float x, y;
    int32_t is_down;
} Pointer;

typedef struct Flock {
    quern_world *world;
    quern_schedule *schedule;
    quern_grid *grid;
    quern_resource grid_resource, pointer;
    quern_query *birds;
} Flock;

typedef struct Options {
    int bird_count, frame_count, thread_count; /* frame_count is 0 for a window */
    const char *picture;                       /* NULL: none */
} Options;

/* ------------------------------------------------------------------------------------------ systems */

/* The three rules of a flock: keep apart, fly as the neighbours do, stay among them. The grid has copies of positions
 * and velocities, so that this system reads no bird that another thread moves. */
static Steering follow_neighbours(const quern_grid *grid, const Position *at, const Velocity *velocity)
{
    Position away = {0, 0}, centre = {0, 0};
    Velocity speed = {0, 0};
    int count = 0;
    quern_grid_iterator it = quern_grid_radius(grid, &at->x, sight);
    while (count < MAX_NEIGHBOURS && quern_grid_next(&it)) {
        if (it.square <= 0) continue; /* the bird itself */
        const float *place = it.item->position;
        const Velocity *other = quern_grid_payload(grid, it.item);
        away = (Position){away.x + (at->x - place[0]) / it.square, away.y + (at->y - place[1]) / it.square};
        centre = (Position){centre.x + place[0], centre.y + place[1]};
        speed = (Velocity){speed.x + other->x, speed.y + other->y};
        count++;
    }
    if (count == 0) return (Steering){0, 0};
    const float share = 1 / (float)count;
    return (Steering){900 * away.x + 3 * (speed.x * share - velocity->x) + 2 * (centre.x * share - at->x),
                      900 * away.y + 3 * (speed.y * share - velocity->y) + 2 * (centre.y * share - at->y)};
}

QUERN_SYSTEM(steer, (Steering, steering), (const Position, position), (const Velocity, velocity))
{
    const Flock *flock = quern_context_user_data(context);
    const quern_grid *grid = quern_context_grid(context, flock->grid_resource);
    const Pointer *pointer = QUERN_RESOURCE(context, const Pointer);
    QUERN_ROWS(i)
    {
        steering[i] = follow_neighbours(grid, &position[i], &velocity[i]);
        const float dx = position[i].x - pointer->x, dy = position[i].y - pointer->y;
        const float square = dx * dx + dy * dy;
        if (pointer->is_down == 0 || square < 1 || square > fear * fear) continue;
        steering[i].x += 60000 * dx / square;
        steering[i].y += 60000 * dy / square;
    }
}

/* What leaves the window at one side comes back at the other. */
static float wrap(float place, float size)
{
    return place < 0 ? place + size : place >= size ? place - size : place;
}

QUERN_SYSTEM(fly, (Position, position), (Velocity, velocity), (const Steering, steering))
{
    const float seconds = (float)quern_context_delta_seconds(context);
    QUERN_ROWS(i)
    {
        const float x = velocity[i].x + steering[i].x * seconds,
                    y = velocity[i].y + steering[i].y * seconds;
        const float speed = sqrtf(x * x + y * y) + 0.001f;
        const float factor = (speed < slowest ? slowest : speed > fastest ? fastest : speed) / speed;
        velocity[i] = (Velocity){x * factor, y * factor};
        position[i].x += velocity[i].x * seconds;
        position[i].y += velocity[i].y * seconds;
        position[i].x = wrap(position[i].x, WIDTH);
        position[i].y = wrap(position[i].y, HEIGHT);
    }
}

/* ------------------------------------------------------------------------------------------- set-up */

static void make_grid(Flock *flock)
{
    const quern_grid_def def = {.name = "birds",
                                .position = QUERN_ID(flock->world, Position),
                                .planar = true,
                                .cell_size = sight,
                                .payload = QUERN_ID(flock->world, Velocity)};
    QUERN_MUST(quern_grid_create(flock->world, &def, &flock->grid));
    flock->grid_resource = quern_grid_resource(flock->grid);
}

static void populate(quern_world *world, int bird_count)
{
    for (int i = 0; i < bird_count; i++) {
        const uint64_t place = quern_random(1, (uint64_t)i), speed = quern_random(2, (uint64_t)i);
        QUERN_MUST(QUERN_CREATE(world, NULL,
                                QUERN_VALUE(Position, WIDTH * quern_random_unit(place),
                                            HEIGHT * quern_random_unit(quern_random(place, 1))),
                                QUERN_VALUE(Velocity, fastest * quern_random_signed(speed),
                                            fastest * quern_random_signed(place)),
                                QUERN_VALUE(Steering, 0)));
    }
}

static void open_flock(Flock *flock, int bird_count)
{
    QUERN_MUST(quern_world_create(NULL, &flock->world));
    QUERN_MUST(quern_schedule_create(flock->world, NULL, &flock->schedule));
    QUERN_MUST(QUERN_REGISTER(flock->world, Position, x, y));
    QUERN_MUST(QUERN_REGISTER(flock->world, Velocity, x, y));
    QUERN_MUST(QUERN_REGISTER(flock->world, Steering, x, y));
    QUERN_MUST(QUERN_RESOURCE_REGISTER_FIELDS(flock->world, &flock->pointer, Pointer, x, y, is_down));
    make_grid(flock);
    QUERN_MUST(quern_grid_add_systems(flock->grid, flock->schedule, 0));
    QUERN_MUST(QUERN_ADD_SYSTEM(
        flock->schedule, steer, .user_data = flock,
        .resources = {{flock->grid_resource, QUERN_ACCESS_READ}, {flock->pointer, QUERN_ACCESS_READ}}));
    QUERN_MUST(QUERN_ADD_SYSTEM(flock->schedule, fly));
    QUERN_MUST(quern_schedule_set_fixed_step(flock->schedule, 0, 1.0 / 60, 4));
    const quern_query_def birds = {.terms = {quern_term_read(QUERN_ID(flock->world, Position)),
                                             quern_term_read(QUERN_ID(flock->world, Velocity))}};
    QUERN_MUST(quern_query_create(flock->world, &birds, &flock->birds));
    populate(flock->world, bird_count);
}

static void close_flock(Flock *flock)
{
    quern_query_destroy(flock->birds);
    quern_schedule_destroy(flock->schedule);
    quern_grid_destroy(flock->grid);
    quern_world_destroy(flock->world);
}

/* ------------------------------------------------------------------------------------------ drawing */

/* A bird is a triangle that points where it flies. Its colour is its direction. */
static void draw_bird(SDL_Renderer *renderer, const Position *at, const Velocity *velocity)
{
    const float speed = sqrtf(velocity->x * velocity->x + velocity->y * velocity->y);
    const float x = velocity->x / speed, y = velocity->y / speed;
    const SDL_Color colour = {(Uint8)(170 + 80 * x), (Uint8)(190 + 60 * y), 230, 255};
    const SDL_Vertex corners[3] = {{{at->x + 6 * x, at->y + 6 * y}, colour, {0, 0}},
                                   {{at->x - 4 * x + 3 * y, at->y - 4 * y - 3 * x}, colour, {0, 0}},
                                   {{at->x - 4 * x - 3 * y, at->y - 4 * y + 3 * x}, colour, {0, 0}}};
    (void)SDL_RenderGeometry(renderer, NULL, corners, 3, NULL, 0);
}

static void draw(SDL_Renderer *renderer, const Flock *flock)
{
    (void)SDL_SetRenderDrawColor(renderer, 18, 24, 38, 255);
    (void)SDL_RenderClear(renderer);
    quern_query_iterator it = quern_query_iterate(flock->birds);
    while (quern_query_next(&it)) {
        const Position *positions = QUERN_COLUMN(&it.view, 0, const Position);
        const Velocity *velocities = QUERN_COLUMN(&it.view, 1, const Velocity);
        const uint32_t count = it.view.count;
        for (uint32_t i = 0; i < count; i++)
            draw_bird(renderer, &positions[i], &velocities[i]);
    }
    SDL_RenderPresent(renderer);
}

static int fail(const char *what)
{
    (void)fprintf(stderr, "boids: %s: %s\n", what, SDL_GetError());
    return EXIT_FAILURE;
}

/* Draws into memory, which needs no screen, and writes the file. */
static int save_picture(const Flock *flock, const char *path)
{
    SDL_Surface *surface = SDL_CreateRGBSurfaceWithFormat(0, WIDTH, HEIGHT, 24, SDL_PIXELFORMAT_BGR24);
    SDL_Renderer *renderer = surface == NULL ? NULL : SDL_CreateSoftwareRenderer(surface);
    if (renderer == NULL) return fail("no renderer");
    draw(renderer, flock);
    const int result = SDL_SaveBMP(surface, path) == 0 ? EXIT_SUCCESS : fail(path);
    SDL_DestroyRenderer(renderer);
    SDL_FreeSurface(surface);
    return result;
}

/* ------------------------------------------------------------------------------------------- window */

/* Reads the mouse into its resource. Returns false when the user quits. */
static bool read_input(Pointer *pointer, bool *is_paused)
{
    SDL_Event event;
    int x, y;
    while (SDL_PollEvent(&event)) {
        if (event.type == SDL_QUIT) return false;
        if (event.type == SDL_KEYDOWN && event.key.keysym.sym == SDLK_ESCAPE) return false;
        if (event.type == SDL_KEYDOWN && event.key.keysym.sym == SDLK_SPACE) *is_paused = !*is_paused;
    }
    const Uint32 buttons = SDL_GetMouseState(&x, &y);
    *pointer = (Pointer){(float)x, (float)y, buttons != 0};
    return true;
}

static int run_window(Flock *flock, quern_jobs *jobs)
{
    SDL_Window *window;
    SDL_Renderer *renderer;
    if (SDL_Init(SDL_INIT_VIDEO) != 0 ||
        SDL_CreateWindowAndRenderer(WIDTH, HEIGHT, 0, &window, &renderer) != 0)
        return fail("no window");
    SDL_SetWindowTitle(window, "Boids");
    if (strcmp(SDL_GetCurrentVideoDriver(), "offscreen") == 0)
        (void)fputs("boids: there is no screen, so nothing is seen; Ctrl-C ends it, or try --frames 100\n",
                    stderr);
    const bool is_synchronised = SDL_RenderSetVSync(renderer, 1) == 0;
    bool is_paused = false;
    Uint64 before = SDL_GetPerformanceCounter();
    while (read_input(quern_resource_get(flock->world, flock->pointer), &is_paused)) {
        const Uint64 now = SDL_GetPerformanceCounter();
        const double seconds = (double)(now - before) / (double)SDL_GetPerformanceFrequency();
        before = now;
        if (!is_paused) QUERN_MUST(quern_schedule_run(flock->schedule, jobs, seconds));
        draw(renderer, flock);
        if (!is_synchronised) SDL_Delay(10);
    }
    SDL_Quit();
    return EXIT_SUCCESS;
}

/* ----------------------------------------------------------------------------------------- headless */

/* Returns how much the birds fly in one direction: 0 in all directions, 1 in one. */
static double measure_order(const Flock *flock)
{
    double x = 0, y = 0, speed = 0;
    quern_query_iterator it = quern_query_iterate(flock->birds);
    while (quern_query_next(&it)) {
        const Velocity *velocities = QUERN_COLUMN(&it.view, 1, const Velocity);
        const uint32_t count = it.view.count;
        for (uint32_t i = 0; i < count; i++) {
            x += (double)velocities[i].x;
            y += (double)velocities[i].y;
            speed += (double)sqrtf(velocities[i].x * velocities[i].x + velocities[i].y * velocities[i].y);
        }
    }
    return speed > 0 ? sqrt(x * x + y * y) / speed : 0;
}

static int run_headless(const Flock *flock, quern_jobs *jobs, const Options *options)
{
    for (int frame = 0; frame < options->frame_count; frame++)
        QUERN_MUST(quern_schedule_run(flock->schedule, jobs, 1.0 / 60));
    const double order = measure_order(flock);
    const unsigned long long hash = quern_world_hash(flock->world);
    printf("%d frames, %d birds, order %.2f, hash %016llx\n", options->frame_count, options->bird_count,
           order, hash);
    return options->picture == NULL ? EXIT_SUCCESS : save_picture(flock, options->picture);
}

/* Reads a number from 1 to the limit. Returns 0 if the text is none. */
static int read_number(const char *text, int limit)
{
    char *end;
    const long number = strtol(text, &end, 10);
    return *end == '\0' && number >= 1 && number <= limit ? (int)number : 0;
}

static bool read_options(Options *options, int argc, char **argv)
{
    bool is_valid = true;
    for (int i = 1; i < argc && is_valid; i += 2) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";
        if (strcmp(argv[i], "--frames") == 0)
            is_valid = (options->frame_count = read_number(value, 1000000)) > 0;
        else if (strcmp(argv[i], "--birds") == 0)
            is_valid = (options->bird_count = read_number(value, 100000)) > 0;
        else if (strcmp(argv[i], "--threads") == 0)
            is_valid = (options->thread_count = read_number(value, QUERN_MAX_THREADS)) > 0;
        else if (strcmp(argv[i], "--picture") == 0)
            is_valid = *(options->picture = value) != '\0';
        else
            is_valid = false;
    }
    return is_valid && (options->frame_count > 0 || options->picture == NULL);
}

int main(int argc, char **argv)
{
    Flock flock;
    quern_jobs *jobs;
    Options options = {.bird_count = 1500};
    if (!read_options(&options, argc, argv)) {
        (void)fputs("usage: boids [--birds N] [--threads N] [--frames N [--picture FILE.bmp]]\n", stderr);
        return 2;
    }
    QUERN_MUST(quern_jobs_create(&(quern_jobs_def){.thread_count = (uint32_t)options.thread_count}, &jobs));
    open_flock(&flock, options.bird_count);
    const int result =
        options.frame_count > 0 ? run_headless(&flock, jobs, &options) : run_window(&flock, jobs);
    close_flock(&flock);
    quern_jobs_destroy(jobs);
    return result;
}
