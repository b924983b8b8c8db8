/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef KEEP_COMPONENTS_H
#define KEEP_COMPONENTS_H

/* The components of the game. All game state is in components and in the resource Keep, so an earlier
 * state of the world is an earlier state of the game. */

#include <quern/kit/transform.h>
#include <quern/quern.h>

/* -------------------------------------------------------------------------------------------- movement */

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
    float along;            /* distance walked along its road */
    float lane;             /* distance to the middle of the road, -1 to 1 */
    float pace;             /* units per second */
    float drift_x, drift_y; /* current velocity, units per second */
} Enemy;

typedef struct Health {
    float points;
} Health;

/* Slows an enemy for `seconds`. Disabled: the enemy walks at its normal pace. */
typedef struct Chill {
    float seconds;
} Chill;

/* Creates enemies of one kind one by one, and is destroyed after the last one. */
typedef struct Spawner {
    uint32_t kind, road, left;
    float wait_seconds, every_seconds;
} Spawner;

/* The component of road entities. They have the names of the level, below "roads". */
typedef struct RoadNumber {
    uint32_t number;
} RoadNumber;

/* ---------------------------------------------------------------------------------------------- towers */

/* A tower is a prefab: a base with a turret that turns, and barrels on the turret. Places are those of
 * <quern/kit/transform.h>. The component of a barrel decides what it does: Gun, Mortar, Prism or Bell. */

typedef enum TowerKind { TOWER_GUN, TOWER_MORTAR, TOWER_PRISM, TOWER_BELL, TOWER_KINDS } TowerKind;

/* The base of a tower. */
typedef struct Tower {
    uint32_t kind;
    int32_t cost;
} Tower;

/* Aims at a target. Disabled: the turret is stunned, for the duration in Stun. */
typedef struct Turret {
    quern_entity target;
    float range, least_range;
    float shot_speed;   /* speed of a shot, to aim ahead of the target; 0: aim at the target itself */
    float turn_speed;   /* radians per second */
    float aim_x, aim_y; /* point at which it aims */
    uint32_t is_locked; /* whether it has a target and points at it */
    uint32_t unused;    /* in place of padding, whose bytes would be whatever was in memory; 0 */
} Turret;

typedef struct Stun {
    float seconds;
} Stun;

typedef struct Barrel {
    float rest;   /* position on the turret */
    float length; /* distance to the muzzle */
    float recoil; /* current recoil */
} Barrel;

/* Lets a barrel fire. Disabled: the barrel is being loaded, for another `seconds`. */
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

/* A ray of light of a prism. Disabled: dark. */
typedef struct Beam {
    float from_x, from_y, to_x, to_y;
} Beam;

/* The look of a part of a tower. */
typedef struct Shape {
    uint32_t sprite; /* ShapeKind */
    uint32_t layer;  /* parts with a higher layer are drawn later */
    float width, height;
    uint32_t color; /* 0xRRGGBBAA */
} Shape;

typedef enum ShapeKind { SHAPE_BASE, SHAPE_DISC, SHAPE_BAR, SHAPE_CRYSTAL, SHAPE_RING } ShapeKind;

/* --------------------------------------------------------------------------------- bullets, particles */

typedef struct Bullet {
    float damage, seconds;
} Bullet;

/* A shell flies over everything and bursts where it lands. */
typedef struct Shell {
    float from_x, from_y, to_x, to_y;
    float seconds, span; /* elapsed and total duration of the flight */
    float damage, radius;
} Shell;

typedef enum ParticleKind { PARTICLE_SPARK, PARTICLE_SMOKE, PARTICLE_RING, PARTICLE_EMBER } ParticleKind;

typedef struct Particle {
    float seconds, span; /* age and lifetime */
    float size;
    uint32_t color; /* 0xRRGGBBAA */
    uint32_t kind;
} Particle;

/* Drifts about and never disappears. */
typedef struct Firefly {
    float phase;
} Firefly;

/* -------------------------------------------------------------------------------------------- the game */

typedef enum KeepState { KEEP_PLAYING, KEEP_WON, KEEP_LOST } KeepState;

/* The state of the game: a resource. */
typedef struct Keep {
    uint64_t step;
    int32_t gold, lives, score;
    uint32_t kills;
    uint32_t wave;        /* number of waves that have begun */
    uint32_t state;       /* KeepState */
    uint32_t enemy_count; /* living enemies, and those that spawners still create */
    uint32_t is_called;   /* whether the player has called the next wave */
    float rest_seconds;   /* seconds until the next wave */
} Keep;

/* ------------------------------------------------------------------------------------------- players */

enum { PLAYERS_MAX = 4 };

/* The last action of a player in a game of several, as it is sent to the others. Each action has another number, so
 * that an order that is repeated has no effect. */
typedef struct Order {
    uint8_t number;
    uint8_t kind; /* ActionKind */
    uint8_t tower;
    uint8_t column, row; /* building plot */
} Order;

/* The numbers of the orders that were carried out: a resource. */
typedef struct OrdersDone {
    uint8_t number[PLAYERS_MAX];
} OrdersDone;

/* ---------------------------------------------------------------------------------------------- events */

/* Requests particles. */
typedef struct Burst {
    float x, y, push_x, push_y; /* position and common velocity */
    float speed;                /* own speed of each particle, in a random direction */
    float span, size;
    uint32_t count, color, kind;
} Burst;

typedef struct Kill {
    uint32_t kind;
} Kill;

/* An enemy has reached the end of its road. */
typedef struct Leak {
    uint32_t kind;
} Leak;

/* A witch's curse: stuns nearby turrets. */
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

/* Requests a sound. */
typedef struct Cue {
    uint32_t kind;
    float x;
} Cue;

/* --------------------------------------------------------------------------------------------- handles */

typedef struct Types {
    quern_component place, velocity;
    quern_component enemy, health, chill, spawner, road_number;
    quern_component tower, turret, stun, barrel, loaded, gun, mortar, prism, bell, beam, shape;
    quern_component local, spot; /* components of towers' parts: quern_local2 and quern_world2 */
    quern_component bullet, shell, particle, firefly;
    quern_relation parent;
    quern_resource keep, grid;
    quern_resource orders, orders_done; /* only in games of several players */
    quern_event burst, kill, leak, curse, cue;
} Types;

/* Registers all types except the grid. */
void types_register(Types *types, quern_world *world, quern_transform *transform);

#endif
