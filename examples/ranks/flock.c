/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "flock.h"

#include <quern/kit/random.h>

#include <math.h>

enum {
    PHASE_SENSE,
    PHASE_ACT,
    AGENTS_PER_CELL = 4, /* at the beginning */
    ENERGY_OF_PARENTS = 400,
    ENERGY_PER_FRAME = 18, /* less one for each agent in sight, the agent itself included */
    LIFE_FRAMES_MIN = 100,
    LIFE_FRAMES_MAX = 500
};

static const float frame_seconds = 1.0f / FLOCK_FRAMES_PER_SECOND;
static const float speed_min = 0.5f, speed_max = 3.0f;

static const float align_gain = 4.0f;
static const float centre_gain = 3.0f;
static const float apart_gain = 1.5f;
static const float wander_gain = 3.0f;

/* ------------------------------------------------------------------------------------------- looking */

/* Sums over the agents in sight, which include the agent itself. Whole numbers have one sum in any order. */
typedef struct Sight {
    int64_t weight, motion_x, motion_y, offset_x, offset_y, apart_x, apart_y;
    int32_t count;
} Sight;

static const float whole_per_one = 65536.0f;

static inline int64_t whole(float value)
{
    return (int64_t)(value * whole_per_one);
}

static inline void see(Sight *sight, Place from, const quern_grid_item *item, Motion motion)
{
    const float dx = item->position[0] - from.x, dy = item->position[1] - from.y;
    const float weight = 1.0f - (dx * dx + dy * dy);
    sight->count++;
    sight->weight += whole(weight);
    sight->motion_x += whole(weight * motion.x);
    sight->motion_y += whole(weight * motion.y);
    sight->offset_x += whole(weight * dx);
    sight->offset_y += whole(weight * dy);
    sight->apart_x -= whole(weight * weight * dx);
    sight->apart_y -= whole(weight * weight * dy);
}

static Sight look_around(const quern_grid *grid, Place from)
{
    const quern_grid_cells *cells = quern_grid_get_cells(grid);
    const Motion *motions = cells->payloads;
    Sight sight = {0};
    quern_grid_iterator near = quern_grid_radius(grid, &from.x, 1.0f);
    while (quern_grid_next(&near))
        see(&sight, from, near.item, motions[near.item - cells->items]);
    return sight;
}

/* Returns the motion along one axis after a frame, before it is limited. */
static float steer(float motion, int64_t weight, int64_t motions, int64_t offsets, int64_t apart,
                   float wander)
{
    const float scale = 1.0f / ((float)weight / whole_per_one + 0.01f);
    const float push = align_gain * (scale * ((float)motions / whole_per_one) - motion) +
                       centre_gain * scale * ((float)offsets / whole_per_one) +
                       apart_gain * ((float)apart / whole_per_one) + wander_gain * wander;
    return motion + frame_seconds * push;
}

static Motion limit(float x, float y)
{
    const float speed = sqrtf(x * x + y * y) + 0.0001f;
    const float allowed = speed < speed_min ? speed_min : speed > speed_max ? speed_max : speed;
    return (Motion){x * (allowed / speed), y * (allowed / speed)};
}

enum { TERM_NUMBER, TERM_PLACE, TERM_MOTION, TERM_LIFE };

static void turn(quern_context *context, const quern_view *view)
{
    const Flock *flock = quern_context_user_data(context);
    const quern_grid *grid = quern_context_grid(context, flock->grid_resource);
    const Number *numbers = QUERN_COLUMN(view, TERM_NUMBER, const Number);
    const Place *places = QUERN_COLUMN(view, TERM_PLACE, const Place);
    Motion *motions = QUERN_COLUMN(view, TERM_MOTION, Motion);
    Life *lives = QUERN_COLUMN(view, TERM_LIFE, Life);
    const uint64_t frame = quern_context_frame_index(context);
    for (uint32_t end = view->count, i = 0; i < end; i++) {
        const Sight sight = look_around(grid, places[i]);
        const uint64_t random = quern_random(numbers[i].value, frame);
        motions[i] = limit(steer(motions[i].x, sight.weight, sight.motion_x, sight.offset_x, sight.apart_x,
                                 quern_random_signed(random)),
                           steer(motions[i].y, sight.weight, sight.motion_y, sight.offset_y, sight.apart_y,
                                 quern_random_signed(random >> 32)));
        lives[i].energy += ENERGY_PER_FRAME - sight.count;
        lives[i].frames++;
    }
}

/* ------------------------------------------------------------------------------------------- moving */

/* Agents bounce off the edges. */
static void move_along(float *place, float *motion, float size)
{
    const float moved = *place + frame_seconds * *motion;
    const float inside = moved < 0.0f ? 0.0f : moved > size ? size : moved;
    *motion = inside == moved ? *motion : -*motion;
    *place = inside;
}

static void move(quern_context *context, const quern_view *view)
{
    const Flock *flock = quern_context_user_data(context);
    Place *places = QUERN_COLUMN(view, TERM_PLACE, Place);
    Motion *motions = QUERN_COLUMN(view, TERM_MOTION, Motion);
    for (uint32_t end = view->count, i = 0; i < end; i++) {
        move_along(&places[i].x, &motions[i].x, (float)flock->field.width);
        move_along(&places[i].y, &motions[i].y, (float)flock->field.height);
    }
}

/* --------------------------------------------------------------------------------- births and deaths */

static const quern_component *components_of(const Flock *flock, quern_component *out)
{
    out[TERM_NUMBER] = flock->number;
    out[TERM_PLACE] = flock->place;
    out[TERM_MOTION] = flock->motion;
    out[TERM_LIFE] = flock->life;
    return out;
}

static void give_birth(quern_context *context, uint64_t parent, Place place, Motion motion, Life *life)
{
    const Flock *flock = quern_context_user_data(context);
    const Number number = {quern_ranks_child_id(parent, quern_context_frame_index(context), 0)};
    const Motion away = {-motion.y, motion.x};
    life->energy /= 2;
    const Life of_child = {life->energy, 0};
    const void *const values[] = {&number, &place, &away, &of_child};
    quern_component list[4];
    (void)quern_commands_create_with(quern_context_commands(context), components_of(flock, list), values, 4,
                                     NULL);
}

static bool is_dead(uint64_t number, Life life)
{
    const uint32_t frames =
        LIFE_FRAMES_MIN + quern_random_below(quern_random_mix(number), LIFE_FRAMES_MAX - LIFE_FRAMES_MIN);
    return life.energy < 0 || life.frames > frames;
}

static void live(quern_context *context, const quern_view *view)
{
    const Number *numbers = QUERN_COLUMN(view, TERM_NUMBER, const Number);
    const Place *places = QUERN_COLUMN(view, TERM_PLACE, const Place);
    const Motion *motions = QUERN_COLUMN(view, TERM_MOTION, const Motion);
    Life *lives = QUERN_COLUMN(view, TERM_LIFE, Life);
    for (uint32_t end = view->count, i = 0; i < end; i++) {
        if (is_dead(numbers[i].value, lives[i])) {
            QUERN_MUST(quern_commands_destroy(quern_context_commands(context), view->entities[i]));
        } else if (lives[i].energy >= ENERGY_OF_PARENTS) {
            give_birth(context, numbers[i].value, places[i], motions[i], &lives[i]);
        }
    }
}

/* -------------------------------------------------------------------------------------------- world */

Field field_for(uint64_t seed, uint32_t agent_count)
{
    const uint32_t height = 1 + (uint32_t)sqrt((double)agent_count / AGENTS_PER_CELL / 4);
    return (Field){.seed = seed, .width = 4 * height, .height = height};
}

static void register_types(Flock *flock)
{
    QUERN_MUST(QUERN_COMPONENT_REGISTER_FIELDS(flock->world, &flock->number, Number, value));
    QUERN_MUST(QUERN_COMPONENT_REGISTER_FIELDS(flock->world, &flock->place, Place, x, y));
    QUERN_MUST(QUERN_COMPONENT_REGISTER_FIELDS(flock->world, &flock->motion, Motion, x, y));
    QUERN_MUST(QUERN_COMPONENT_REGISTER_FIELDS(flock->world, &flock->life, Life, energy, frames));
}

/* Without a box, the grid covers the entities of the rank and its ghosts, and its cells remain small. */
static void create_grid(Flock *flock)
{
    const quern_grid_def def = {
        .position = flock->place, .planar = true, .cell_size = 1, .payload = flock->motion};
    QUERN_MUST(quern_grid_create(flock->world, &def, &flock->grid));
    flock->grid_resource = quern_grid_resource(flock->grid);
}

/* Ghosts have no number, so the systems leave them out. */
static void create_schedule(Flock *flock)
{
    const quern_schedule_def def = {.phases = {[PHASE_SENSE] = "sense", [PHASE_ACT] = "act"},
                                    .trace = flock->trace};
    const quern_term number = quern_term_read(flock->number), place = quern_term_write(flock->place),
                     motion = quern_term_write(flock->motion), life = quern_term_write(flock->life);
    const quern_system_def systems[] = {
        {.name = "turn",
         .run = turn,
         .terms = {number, quern_term_read(flock->place), motion, life},
         .resources = {{flock->grid_resource, QUERN_ACCESS_READ}}},
        {.name = "move", .run = move, .terms = {number, place, motion}},
        {.name = "live",
         .run = live,
         .terms = {number, quern_term_read(flock->place), quern_term_read(flock->motion), life}}};
    QUERN_MUST(quern_schedule_create(flock->world, &def, &flock->schedule));
    QUERN_MUST(quern_grid_add_systems(flock->grid, flock->schedule, PHASE_SENSE));
    for (uint32_t i = 0; i < sizeof systems / sizeof systems[0]; i++) {
        quern_system_def system = systems[i];
        system.phase = PHASE_ACT;
        system.user_data = flock;
        QUERN_MUST(quern_schedule_add_system(flock->schedule, &system, NULL));
    }
    QUERN_MUST(quern_schedule_compile(flock->schedule));
}

void flock_open(Flock *flock, const Field *field, quern_trace *trace)
{
    flock->field = *field;
    flock->trace = trace;
    QUERN_MUST(quern_world_create(NULL, &flock->world));
    register_types(flock);
    create_grid(flock);
    create_schedule(flock);
}

void flock_close(Flock *flock)
{
    quern_schedule_destroy(flock->schedule);
    quern_grid_destroy(flock->grid);
    quern_world_destroy(flock->world);
}

static uint64_t first_number(const Field *field, uint32_t index)
{
    return quern_random(field->seed, index);
}

/* More agents are in the middle than at the edges, so equal stripes are not equal in cost. */
static Place first_place(const Field *field, uint32_t index)
{
    const uint64_t bits = quern_random(first_number(field, index), 1ull << 62);
    const uint64_t more = quern_random_mix(bits);
    const float middle = 0.5f * (quern_random_unit(bits) + quern_random_unit(more));
    return (Place){middle * (float)field->width, quern_random_unit(bits << 32) * (float)field->height};
}

void flock_create_agent(const Flock *flock, uint32_t index)
{
    const Number number = {first_number(&flock->field, index)};
    const Place place = first_place(&flock->field, index);
    const uint64_t bits = quern_random(number.value, 1ull << 61);
    const Motion motion = limit(quern_random_signed(bits), quern_random_signed(bits >> 32));
    const Life life = {(int32_t)quern_random_below(bits, ENERGY_OF_PARENTS),
                       quern_random_below(quern_random_mix(bits), LIFE_FRAMES_MIN)};
    const void *const values[] = {&number, &place, &motion, &life};
    quern_component list[4];
    QUERN_MUST(quern_entity_create_with(flock->world, components_of(flock, list), values, 4, NULL));
}
