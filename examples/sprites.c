/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* 100,000 sprites in a window, by SDL2: all threads write the corners of their sprites into one array, and one call of the
 * main thread draws it. Escape quits. `sprites --frames N [THREADS]` draws N frames into memory, without a window, and prints
 * a hash of the world and of the picture. */
#include <quern/kit/random.h>
#include <quern/quern.h>

#include <SDL2/SDL.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WIDTH = 1280, HEIGHT = 720, SPRITES = 100000, TEXTURE_SIZE = 16, PIXELS = WIDTH * HEIGHT };

typedef struct Position {
    float x, y; /* pixels */
} Position;

typedef struct Velocity {
    float x, y; /* pixels per second */
} Velocity;

typedef struct Sprite {
    float size; /* pixels */
    uint8_t red, green, blue, alpha;
} Sprite;

/* The corners of all sprites, as a resource: four per sprite, by the index of its entity, so that each job writes a part of
 * its own. */
typedef struct Corners {
    SDL_Vertex *vertices;
    int *indices; /* two triangles per sprite; they never change */
} Corners;

/* ------------------------------------------------------------------------------------------ systems */

static void bounce(float *place, float *speed, float size)
{
    if ((*place < 0 && *speed < 0) || (*place > size && *speed > 0)) *speed = -*speed;
}

QUERN_SYSTEM(fly, (Position, position), (Velocity, velocity))
{
    const float seconds = (float)quern_context_delta_seconds(context);
    QUERN_ROWS(i)
    {
        position[i].x += velocity[i].x * seconds;
        position[i].y += velocity[i].y * seconds;
        bounce(&position[i].x, &velocity[i].x, WIDTH);
        bounce(&position[i].y, &velocity[i].y, HEIGHT);
    }
}

/* Concurrent: the jobs of this system write the resource at the same time, each at its own entities. */
QUERN_SYSTEM(shape, (const Position, position), (const Sprite, sprite))
{
    SDL_Vertex *vertices = QUERN_RESOURCE(context, Corners)->vertices;
    QUERN_ROWS(i)
    {
        SDL_Vertex *corner = &vertices[(size_t)4 * quern_entity_index(view->entities[i])];
        const SDL_Color colour = {sprite[i].red, sprite[i].green, sprite[i].blue, sprite[i].alpha};
        for (int k = 0; k < 4; k++) {
            const float x = (float)(k & 1), y = (float)(k >> 1);
            corner[k].position = (SDL_FPoint){position[i].x + sprite[i].size * (x - 0.5f),
                                              position[i].y + sprite[i].size * (y - 0.5f)};
            corner[k].color = colour;
            corner[k].tex_coord = (SDL_FPoint){x, y};
        }
    }
}

/* ------------------------------------------------------------------------------------------- set-up */

static bool make_corners(Corners *corners)
{
    corners->vertices = calloc((size_t)4 * SPRITES, sizeof(SDL_Vertex));
    corners->indices = malloc((size_t)6 * SPRITES * sizeof(int));
    if (corners->vertices == NULL || corners->indices == NULL) return false;
    for (int i = 0; i < 6 * SPRITES; i++)
        corners->indices[i] = 4 * (i / 6) + (int[]){0, 1, 2, 2, 1, 3}[i % 6];
    return true;
}

static void populate(quern_world *world)
{
    for (uint64_t i = 0; i < SPRITES; i++) {
        const uint64_t place = quern_random(1, i), look = quern_random(2, i);
        QUERN_MUST(QUERN_CREATE(
            world, NULL,
            QUERN_VALUE(Position, WIDTH * quern_random_unit(place),
                        HEIGHT * quern_random_unit(quern_random(place, 1))),
            QUERN_VALUE(Velocity, 60 * quern_random_signed(place), 60 * quern_random_signed(look)),
            QUERN_VALUE(Sprite, 2 + 6 * quern_random_unit(look), (uint8_t)(look >> 8),
                        (uint8_t)(look >> 16), 255, 160)));
    }
}

/* A white disc with a soft edge, to which sprites give colours. */
static SDL_Texture *make_texture(SDL_Renderer *renderer)
{
    SDL_Texture *texture = SDL_CreateTexture(renderer, SDL_PIXELFORMAT_ARGB8888, SDL_TEXTUREACCESS_STATIC,
                                             TEXTURE_SIZE, TEXTURE_SIZE);
    Uint32 pixels[TEXTURE_SIZE * TEXTURE_SIZE];
    for (int i = 0; i < TEXTURE_SIZE * TEXTURE_SIZE; i++) {
        const int x = 2 * (i % TEXTURE_SIZE) + 1 - TEXTURE_SIZE,
                  y = 2 * (i / TEXTURE_SIZE) + 1 - TEXTURE_SIZE;
        const int depth = TEXTURE_SIZE * TEXTURE_SIZE - x * x - y * y;
        pixels[i] = 0xFFFFFFu | (Uint32)(depth < 0 ? 0 : depth * 2 > 255 ? 255 : depth * 2) << 24;
    }
    if (texture == NULL || SDL_UpdateTexture(texture, NULL, pixels, TEXTURE_SIZE * 4) != 0) return NULL;
    (void)SDL_SetTextureBlendMode(texture, SDL_BLENDMODE_BLEND);
    return texture;
}

/* ------------------------------------------------------------------------------------------ drawing */

static void draw(SDL_Renderer *renderer, SDL_Texture *texture, const Corners *corners)
{
    (void)SDL_SetRenderDrawColor(renderer, 12, 16, 28, 255);
    (void)SDL_RenderClear(renderer);
    if (SDL_RenderGeometry(renderer, texture, corners->vertices, 4 * SPRITES, corners->indices,
                           6 * SPRITES) != 0)
        (void)fprintf(stderr, "sprites: %s\n", SDL_GetError());
    SDL_RenderPresent(renderer);
}

static int fail(const char *what)
{
    (void)fprintf(stderr, "sprites: %s: %s\n", what, SDL_GetError());
    return EXIT_FAILURE;
}

static int run_window(quern_schedule *schedule, quern_jobs *jobs, const Corners *corners)
{
    SDL_Window *window;
    SDL_Renderer *renderer;
    if (SDL_Init(SDL_INIT_VIDEO) != 0 ||
        SDL_CreateWindowAndRenderer(WIDTH, HEIGHT, 0, &window, &renderer) != 0)
        return fail("no window");
    SDL_Texture *texture = make_texture(renderer);
    if (texture == NULL) return fail("no texture");
    Uint64 before = SDL_GetPerformanceCounter();
    for (bool runs = true; runs;) {
        SDL_Event event;
        while (SDL_PollEvent(&event))
            runs = runs && event.type != SDL_QUIT &&
                   (event.type != SDL_KEYDOWN || event.key.keysym.sym != SDLK_ESCAPE);
        const Uint64 now = SDL_GetPerformanceCounter();
        const double seconds = (double)(now - before) / (double)SDL_GetPerformanceFrequency();
        before = now;
        QUERN_MUST(quern_schedule_run(schedule, jobs, seconds));
        draw(renderer, texture, corners);
    }
    SDL_Quit();
    return EXIT_SUCCESS;
}

/* Draws into memory, which needs no screen. */
static int run_headless(quern_world *world, quern_schedule *schedule, quern_jobs *jobs,
                        const Corners *corners, int frames)
{
    SDL_Surface *surface = SDL_CreateRGBSurfaceWithFormat(0, WIDTH, HEIGHT, 32, SDL_PIXELFORMAT_ARGB8888);
    SDL_Renderer *renderer = surface == NULL ? NULL : SDL_CreateSoftwareRenderer(surface);
    SDL_Texture *texture = renderer == NULL ? NULL : make_texture(renderer);
    if (texture == NULL) return fail("no renderer");
    for (int frame = 0; frame < frames; frame++) {
        QUERN_MUST(quern_schedule_run(schedule, jobs, 1.0 / 60));
        draw(renderer, texture, corners);
    }
    uint64_t picture = 0, lit = 0;
    for (int i = 0; i < PIXELS; i++) {
        const Uint32 pixel = ((const Uint32 *)surface->pixels)[i] & 0xFFFFFFu;
        picture = quern_random_mix(picture ^ pixel);
        lit += pixel != 0x0C101Cu;
    }
    printf("%d sprites, %d frames, hash %016llx, %llu %% of the picture %016llx\n", SPRITES, frames,
           (unsigned long long)quern_world_hash(world), (unsigned long long)(100 * lit / PIXELS),
           (unsigned long long)picture);
    SDL_DestroyTexture(texture);
    SDL_DestroyRenderer(renderer);
    SDL_FreeSurface(surface);
    return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
    const int frames = argc > 2 && strcmp(argv[1], "--frames") == 0 ? atoi(argv[2]) : 0;
    quern_world *world;
    quern_schedule *schedule;
    quern_jobs *jobs;
    quern_resource corners;
    QUERN_MUST(quern_jobs_create(&(quern_jobs_def){.thread_count = argc > 3 ? (uint32_t)atoi(argv[3]) : 0},
                                 &jobs));
    QUERN_MUST(quern_world_create(NULL, &world));
    QUERN_MUST(quern_schedule_create(world, NULL, &schedule));
    QUERN_MUST(QUERN_REGISTER(world, Position, x, y));
    QUERN_MUST(QUERN_REGISTER(world, Velocity, x, y));
    QUERN_MUST(QUERN_REGISTER(world, Sprite, size, red, green, blue, alpha));
    QUERN_MUST(QUERN_RESOURCE_REGISTER(world, &corners, Corners));
    Corners *made = quern_resource_get(world, corners);
    if (!make_corners(made)) return fail("no memory");
    populate(world);
    QUERN_MUST(QUERN_ADD_SYSTEM(schedule, fly));
    QUERN_MUST(QUERN_ADD_SYSTEM(schedule, shape, .resources = {{corners, QUERN_ACCESS_WRITE_CONCURRENT}}));
    const int result =
        frames > 0 ? run_headless(world, schedule, jobs, made, frames) : run_window(schedule, jobs, made);
    free(made->vertices);
    free(made->indices);
    quern_schedule_destroy(schedule);
    quern_world_destroy(world);
    quern_jobs_destroy(jobs);
    return result;
}
