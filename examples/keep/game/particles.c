/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */

/* Tens of thousands of particles: bursts are events that become entities (phase "events"), which drift and
 * fade (phase "move"). Fireflies drift without end. */

#include "check.h"
#include "random.h"
#include "systems.h"

#include <math.h>
#include <quern/kit/angle.h>

static const float step_seconds = 1.0f / STEPS_PER_SECOND;
static const float circle = 6.2831853f;

/* ----------------------------------------------------------------------------------------------- burst */

enum { BURST_MAX = 256 }; /* maximum number of particles of one event */

typedef struct Cloud {
    Place places[BURST_MAX];
    Velocity velocities[BURST_MAX];
    Particle particles[BURST_MAX];
} Cloud;

void emit_burst(quern_context *context, const Game *game, Burst burst)
{
    quern_emit(quern_context_emitter(context, game->types.burst), &burst);
}

void emit_cue(quern_context *context, const Game *game, CueKind kind, float x)
{
    quern_emit(quern_context_emitter(context, game->types.cue), &(Cue){kind, x});
}

static void scatter(Cloud *cloud, uint32_t i, const Burst *burst, uint64_t bits)
{
    const float angle = circle * quern_random_unit(bits),
                speed = burst->speed * sqrtf(quern_random_unit(bits << 20));
    const float late = 0.4f + 0.6f * quern_random_unit(random_hash(bits, 1));
    cloud->places[i] = (Place){burst->x, burst->y};
    cloud->velocities[i] = (Velocity){burst->push_x + quern_angle_cos(angle) * speed,
                                      burst->push_y + quern_angle_sin(angle) * speed};
    cloud->particles[i] = (Particle){.span = burst->count > 1 ? burst->span * late : burst->span,
                                     .size = burst->count > 1 ? burst->size * late : burst->size,
                                     .color = burst->color,
                                     .kind = burst->kind};
}

/* Creates the particles of each burst. The views of this system are blocks of events. */
static void burst(quern_context *context, const quern_view *view)
{
    const Game *game = quern_context_user_data(context);
    const Types *types = &game->types;
    const Burst *bursts = QUERN_EVENTS(view, Burst);
    const Keep *keep = quern_context_resource(context, types->keep);
    const uint64_t seed = random_hash(keep->step, view->ordinal);
    const quern_component components[] = {types->place, types->velocity, types->particle};
    const uint32_t count = view->count;
    Cloud cloud;
    const void *const columns[] = {cloud.places, cloud.velocities, cloud.particles};
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t many = bursts[i].count < BURST_MAX ? bursts[i].count : BURST_MAX;
        for (uint32_t k = 0; k < many; k++)
            scatter(&cloud, k, &bursts[i], random_hash(seed + i, k));
        check(quern_commands_create_many(quern_context_commands(context), components, columns, 3, many,
                                         NULL));
    }
}

static void add_burst(Game *game)
{
    const quern_system_def def = {.name = "burst",
                                  .phase = PHASE_EVENTS,
                                  .run = burst,
                                  .items = game->types.burst,
                                  .resources = {{game->types.keep, QUERN_ACCESS_READ}}};
    check(quern_schedule_add_system(game->schedule, &def, NULL));
}

/* ----------------------------------------------------------------------------------------------- drift */

/* Factor of the velocity per step. */
static const float drag[] = {
    [PARTICLE_SPARK] = 0.965f, [PARTICLE_SMOKE] = 0.96f, [PARTICLE_RING] = 0, [PARTICLE_EMBER] = 0.97f};

/* Moves particles, and destroys all expired ones of a view by one command. */
QUERN_SYSTEM(drift, (Place, places), (Velocity, velocities), (Particle, particles))
{
    uint64_t expired[QUERN_MAX_VIEW_ROWS / 64] = {0}, any = 0;
    QUERN_ROWS(i)
    {
        places[i].x += velocities[i].x * step_seconds;
        places[i].y += velocities[i].y * step_seconds;
        velocities[i].x *= drag[particles[i].kind];
        velocities[i].y *= drag[particles[i].kind];
        particles[i].seconds += step_seconds;
        const uint64_t bit = (uint64_t)(particles[i].seconds >= particles[i].span) << i % 64;
        expired[i / 64] |= bit;
        any |= bit;
    }
    if (any == 0) return;
    check(quern_commands_destroy_view(quern_context_commands(context), view,
                                      &(quern_view_rows){.mask = expired}));
}

/* -------------------------------------------------------------------------------------------- fireflies */

static float wrapped(float x, float size)
{
    return x < 0 ? x + size : x >= size ? x - size : x;
}

QUERN_SYSTEM(flicker, (Place, places), (Firefly, fireflies))
{
    const Game *game = quern_context_user_data(context);
    QUERN_ROWS(i)
    {
        fireflies[i].phase = wrapped(fireflies[i].phase + step_seconds * 0.5f, circle);
        /* A flow without divergence, so fireflies do not gather anywhere. */
        const float x =
            places[i].x + 0.5f * quern_angle_cos(0.41f * places[i].y + fireflies[i].phase) * step_seconds;
        const float y =
            places[i].y + 0.5f * quern_angle_sin(0.37f * places[i].x + fireflies[i].phase) * step_seconds;
        places[i].x = wrapped(x, game->level.width);
        places[i].y = wrapped(y, game->level.height);
    }
}

void fireflies_make(Game *game)
{
    const Types *types = &game->types;
    const quern_component components[] = {types->place, types->firefly};
    for (uint32_t i = 0; i < game->level.firefly_count; i++) {
        const uint64_t bits = random_hash(7, i);
        const Place place = {quern_random_unit(bits) * game->level.width,
                             quern_random_unit(bits << 20) * game->level.height};
        const Firefly firefly = {quern_random_unit(random_hash(8, i)) * circle};
        const void *values[] = {&place, &firefly};
        check(quern_entity_create_with(game->world, components, values, 2, NULL));
    }
}

void particles_add(Game *game)
{
    add_burst(game);
    check(QUERN_ADD_SYSTEM(game->schedule, drift, .phase = PHASE_MOVE));
    check(QUERN_ADD_SYSTEM(game->schedule, flicker, .phase = PHASE_MOVE));
}
