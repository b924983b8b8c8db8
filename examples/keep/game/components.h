/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef KEEP_COMPONENTS_H
#define KEEP_COMPONENTS_H

/* What things are made of. All that matters for how a game goes on is in components and in the resource
 * Keep, so that an earlier state of the world is an earlier state of the game. */

#include <quern/kit/transform.h>
#include <quern/quern.h>

/* ------------------------------------------------------------------------------- whatever moves freely */

typedef struct Place {
    float x, y;
} Place;

typedef struct Velocity {
    float x, y;
} Velocity;

/* --------------------------------------------------------------------------------------------- enemies */

typedef enum EnemyKind {
    ENEMY_MITE,
    ENEMY_RUNNER,
    ENEMY_BRUTE,
    ENEMY_WITCH,
    ENEMY_GIANT,
    ENEMY_KINDS
} EnemyKind;

typedef struct Enemy {
    uint32_t kind, road;
    float along;            /* how far it has come on its road */
    float lane;             /* how far to the side of the middle it keeps, -1 to 1 */
    float pace;             /* units per second */
    float drift_x, drift_y; /* where it goes now, per second */
} Enemy;

typedef struct Health {
    float points;
} Health;

/* It is slow for so long. Disabled: it is not slow. */
typedef struct Chill {
    float seconds;
} Chill;

/* Lets enemies of one kind out, and is gone when all are. */
typedef struct Spawner {
    uint32_t kind, road, left;
    float wait_seconds, every_seconds;
} Spawner;

/* Named as the level names it, below "roads". */
typedef struct RoadNumber {
    uint32_t number;
} RoadNumber;

/* ---------------------------------------------------------------------------------------------- towers */

/* A tower is a prefab: a base, on which a turret turns, on which barrels sit. Places are those of
 * <quern/kit/transform.h>. What a barrel does is the component it has: Gun, Mortar, Prism or Bell. */

typedef enum TowerKind { TOWER_GUN, TOWER_MORTAR, TOWER_PRISM, TOWER_BELL, TOWER_KINDS } TowerKind;

/* The base. */
typedef struct Tower {
    uint32_t kind;
    int32_t cost;
} Tower;

/* Disabled: it is stunned, for as long as Stun says. */
typedef struct Turret {
    quern_entity target;
    float range, least_range;
    float shot_speed;   /* to aim at where the target will be; 0: at where it is */
    float turn_speed;   /* radians per second */
    float aim_x, aim_y; /* what it aims at */
    uint32_t is_locked; /* it has a target and looks at it */
} Turret;

typedef struct Stun {
    float seconds;
} Stun;

typedef struct Barrel {
    float rest;   /* its place on the turret */
    float length; /* from there to the muzzle */
    float recoil; /* how far it is driven back now */
} Barrel;

/* Disabled: it is being loaded, for so many seconds yet. */
typedef struct Loaded {
    float seconds, load_seconds;
} Loaded;

typedef struct Gun {
    float damage, speed, spread, range;
} Gun;

typedef struct Mortar {
    float damage, radius, speed;
} Mortar;

typedef struct Prism {
    float damage_per_second;
} Prism;

typedef struct Bell {
    float damage, radius, chill_seconds;
} Bell;

/* A ray of light of a prism. Disabled: it is dark. */
typedef struct Beam {
    float from_x, from_y, to_x, to_y;
} Beam;

/* How a part of a tower is drawn. */
typedef struct Shape {
    uint32_t sprite; /* ShapeKind */
    uint32_t layer;  /* what has a higher one is drawn later */
    float width, height;
    uint32_t color; /* 0xRRGGBBAA */
} Shape;

typedef enum ShapeKind { SHAPE_BASE, SHAPE_DISC, SHAPE_BAR, SHAPE_CRYSTAL, SHAPE_RING } ShapeKind;

/* --------------------------------------------------------------------------------- bullets, particles */

typedef struct Bullet {
    float damage, seconds;
} Bullet;

/* Flies high, over all that is below, and bursts where it comes down. */
typedef struct Shell {
    float from_x, from_y, to_x, to_y;
    float seconds, span; /* of its flight: so far, and in all */
    float damage, radius;
} Shell;

typedef enum ParticleKind { PARTICLE_SPARK, PARTICLE_SMOKE, PARTICLE_RING, PARTICLE_EMBER } ParticleKind;

typedef struct Particle {
    float seconds, span; /* that it has been there, and will be */
    float size;
    uint32_t color; /* 0xRRGGBBAA */
    uint32_t kind;
} Particle;

/* Drifts about for ever. */
typedef struct Firefly {
    float phase;
} Firefly;

/* -------------------------------------------------------------------------------------------- the game */

typedef enum KeepState { KEEP_PLAYING, KEEP_WON, KEEP_LOST } KeepState;

/* How the game stands: a resource. */
typedef struct Keep {
    uint64_t step;
    int32_t gold, lives, score;
    uint32_t kills;
    uint32_t wave;        /* waves that have begun */
    uint32_t state;       /* KeepState */
    uint32_t enemy_count; /* there are, or are still to come */
    uint32_t is_called;   /* the player wants the next wave now */
    float rest_seconds;   /* until the next wave begins */
} Keep;

/* ---------------------------------------------------------------------------------------------- events */

/* Asks for particles. */
typedef struct Burst {
    float x, y, push_x, push_y; /* where, and their common velocity */
    float speed;                /* of each, in some direction */
    float span, size;
    uint32_t count, color, kind;
} Burst;

typedef struct Kill {
    uint32_t kind;
} Kill;

/* An enemy has come to the end of its road. */
typedef struct Leak {
    uint32_t kind;
} Leak;

/* A witch's curse stuns turrets near by. */
typedef struct Curse {
    float x, y;
} Curse;

typedef enum CueKind {
    CUE_SHOT,
    CUE_MORTAR,
    CUE_BLAST,
    CUE_BELL,
    CUE_DEATH,
    CUE_LEAK,
    CUE_CURSE,
    CUE_WAVE,
    CUE_BUILD,
    CUE_SELL,
    CUE_WON,
    CUE_LOST,
    CUE_KINDS
} CueKind;

/* Something to be heard. */
typedef struct Cue {
    uint32_t kind;
    float x;
} Cue;

/* ------------------------------------------------------------------------------------------ registered */

typedef struct Types {
    quern_component place, velocity;
    quern_component enemy, health, chill, spawner, road_number;
    quern_component tower, turret, stun, barrel, loaded, gun, mortar, prism, bell, beam, shape;
    quern_component local, spot; /* of towers' parts: quern_local2 and quern_world2 */
    quern_component bullet, shell, particle, firefly;
    quern_relation parent;
    quern_resource keep, grid;
    quern_event burst, kill, leak, curse, cue;
} Types;

/* Registers everything but the grid. */
void types_register(Types *types, quern_world *world, quern_transform *transform);

#endif
