/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef RANKS_EPIDEMIC_H
#define RANKS_EPIDEMIC_H

/* An epidemic in households. A household has a home and moves away now and then; its persons are its children, stay near
 * it, and go with it to another rank. The infection goes to persons nearby, and at home. A person that falls ill warns a friend
 * anywhere by a message. Lengths are in the distance over which a person infects others. */

#include <quern/kit/grid.h>
#include <quern/kit/ranks.h>
#include <quern/quern.h>

enum { PERSONS_PER_HOUSEHOLD = 4, HEALTHY = 0, ILL = 1, IMMUNE = 2 };

typedef struct Id {
    uint64_t value;
} Id;

typedef struct Spot {
    float x, y;
} Spot;

/* Component "Health": what others see of a person. */
typedef struct Health {
    uint32_t state;
    uint32_t days; /* in the state */
} Health;

/* Component "Person": what only its rank needs. */
typedef struct Person {
    uint64_t friend; /* id of a person anywhere */
    float dx, dy;    /* from the home */
    uint32_t warned; /* days that the person still stays at home */
    uint32_t reserved;
} Person;

typedef struct Warning {
    quern_entity person;
} Warning;

typedef struct Epidemic {
    quern_world *world;
    quern_schedule *schedule;
    quern_grid *grid;
    quern_ranks *ranks;
    quern_component id, spot, health, person;
    quern_relation household; /* "parent" */
    quern_event warning;
    uint64_t seed;
    uint32_t household_count;
    float size; /* of the country */
} Epidemic;

/* Largest distance of a person from home. */
#define EPIDEMIC_REACH 0.5f

/* Values of the global "ill" and "immune". */
int64_t epidemic_is_ill(const void *health);
int64_t epidemic_is_immune(const void *health);

/* Creates world, types and grid. */
void epidemic_open(Epidemic *epidemic, uint64_t seed, uint32_t household_count);
/* Creates the systems, after the ranks. */
void epidemic_add_systems(Epidemic *epidemic);
void epidemic_create_household(const Epidemic *epidemic, uint32_t index);
void epidemic_close(Epidemic *epidemic);

#endif
