/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef KEEP_KINDS_H
#define KEEP_KINDS_H

/* The kinds of enemies and towers, and all numbers of the game in one place. */

#include "components.h"

typedef struct EnemyRules {
    const char *name;
    float health, speed, radius;
    int32_t bounty; /* gold and score for a kill */
    int32_t harm;   /* lives lost when the enemy reaches the end of its road */
    uint32_t color; /* 0xRRGGBBAA */
} EnemyRules;

typedef struct TowerRules {
    const char *name;
    int32_t cost;
    float range;
    uint32_t color;
    const char *about; /* description for the player, one line */
} TowerRules;

extern const EnemyRules enemy_rules[ENEMY_KINDS];
extern const TowerRules tower_rules[TOWER_KINDS];

/* Returns the kind of that name; TOWER_KINDS if there is none. */
TowerKind tower_kind_named(const char *name);

#endif
