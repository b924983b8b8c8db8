/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */

/* The simulation of examples/swarm in a web page: page.html calls these functions and copies the picture to a canvas.
 * The page runs the frames in the browser's main thread, without workers, so it opens from a file and on any server. */

#include "../swarm/check.h"
#include "../swarm/simulation.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { HASHED_FRAME = 60, PREY_GLOW = 90 };

/* Pixels of four bytes: red, green, blue, opacity. */
typedef struct Picture {
    uint32_t width, height;
    uint8_t *pixels;
} Picture;

static Simulation simulation;
static Picture picture;
static uint32_t frame_count;
static char hash_text[32];

/* Starts another world; the first call starts the first one. */
void flock_start(uint32_t agent_count, uint32_t seed)
{
    if (simulation.world != NULL) simulation_destroy(&simulation);
    simulation_create(&simulation, seed, agent_count, NULL);
    frame_count = 0;
    hash_text[0] = '\0';
}

void flock_step(void)
{
    simulation_step(&simulation, NULL);
    frame_count++;
    if (frame_count == HASHED_FRAME)
        snprintf(hash_text, sizeof hash_text, "0x%016" PRIx64, quern_world_hash(simulation.world));
}

uint32_t flock_frame_count(void)
{
    return frame_count;
}

uint32_t flock_prey_count(void)
{
    return (uint32_t)simulation_census(&simulation)->prey_count;
}

uint32_t flock_hunter_count(void)
{
    return (uint32_t)simulation_census(&simulation)->hunter_count;
}

/* Returns the hash of the world after 60 frames; empty before. */
const char *flock_hash(void)
{
    return hash_text;
}

/* Width by height of the world. */
double flock_aspect(void)
{
    const quern_grid_cells *cells = quern_grid_get_cells(simulation.grid);
    return (double)cells->counts[0] / cells->counts[1];
}

static void resize(uint32_t width, uint32_t height)
{
    if (picture.width == width && picture.height == height) return;
    free(picture.pixels);
    picture = (Picture){.width = width, .height = height};
    picture.pixels = check_memory(calloc((size_t)width * height, 4));
}

/* Darkens the last picture, so that agents leave trails. */
static void fade(void)
{
    const size_t size_bytes = (size_t)picture.width * picture.height * 4;
    for (size_t i = 0; i < size_bytes; i++)
        picture.pixels[i] = (uint8_t)(i % 4 == 3 ? 255 : picture.pixels[i] * 13 / 16);
}

static void brighten(float x, float y, const int glow[3])
{
    if (!(x >= 0 && y >= 0 && x < (float)picture.width && y < (float)picture.height)) return;
    uint8_t *pixel = picture.pixels + ((size_t)y * picture.width + (size_t)x) * 4;
    for (int i = 0; i < 3; i++) {
        const int sum = pixel[i] + glow[i];
        pixel[i] = (uint8_t)(sum < 255 ? sum : 255);
    }
}

/* Draws a line of pixels from the agent backwards, which is brighter in front. */
static void draw_line(const float at[2], Vector ahead, float length, const int glow[3])
{
    const int count = (int)length + 2;
    for (int i = 0; i < count; i++) {
        const int dimmed[3] = {glow[0] * (count - i) / count, glow[1] * (count - i) / count,
                               glow[2] * (count - i) / count};
        brighten(at[0] - ahead.x * (float)i, at[1] - ahead.y * (float)i, dimmed);
    }
}

/* Prey that swim in one direction have one colour, so flocks show. Hunters are red, and wider. */
static void draw_agent(const quern_grid_item *item, Velocity velocity, float scale)
{
    const float speed = sqrtf(velocity.x * velocity.x + velocity.y * velocity.y) + 0.0001f;
    const Vector ahead = {velocity.x / speed, velocity.y / speed};
    const float at[2] = {item->position[0] * scale, item->position[1] * scale};
    if ((item->marks & NEIGHBOUR_HUNTER) == 0) {
        const int glow[3] = {(int)(PREY_GLOW * (1.1f - ahead.x)), (int)(PREY_GLOW * 1.5f),
                             (int)(PREY_GLOW * (1.1f + ahead.y))};
        draw_line(at, ahead, scale * 0.25f, glow);
        return;
    }
    static const int glow[3] = {230, 70, 30};
    for (int side = -1; side <= 1; side++) {
        const float beside[2] = {at[0] - ahead.y * (float)side, at[1] + ahead.x * (float)side};
        draw_line(beside, ahead, scale * 0.35f, glow);
    }
}

/* Draws the agents at their places of the last frame. Returns the pixels, which stay valid until the next call. */
const uint8_t *flock_draw(uint32_t width, uint32_t height)
{
    const quern_grid_cells *cells = quern_grid_get_cells(simulation.grid);
    const Velocity *velocities = (const Velocity *)cells->payloads;
    const float scale = (float)width / (float)cells->counts[0];
    resize(width, height);
    fade();
    for (uint32_t i = 0; i < cells->starts[cells->cell_count]; i++)
        draw_agent(&cells->items[i], velocities[i], scale);
    return picture.pixels;
}
