/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "kinds.h"

#include <string.h>

const EnemyRules enemy_rules[ENEMY_KINDS] = {
    [ENEMY_MITE] = {"mite", 9, 3.0f, 0.16f, 2, 1, 0xF2727AFF},
    [ENEMY_RUNNER] = {"runner", 20, 5.2f, 0.22f, 3, 1, 0xF2A65AFF},
    [ENEMY_BRUTE] = {"brute", 220, 1.9f, 0.48f, 12, 4, 0xC2528BFF},
    [ENEMY_WITCH] = {"witch", 140, 2.2f, 0.38f, 15, 3, 0xA46BF2FF},
    [ENEMY_GIANT] = {"giant", 12000, 1.7f, 1.1f, 300, 20, 0xD93A5EFF},
};

const TowerRules tower_rules[TOWER_KINDS] = {
    [TOWER_GUN] = {"gun", 60, 7.0f, 0xF2D48AFF, "fast bullets"},
    [TOWER_MORTAR] = {"mortar", 120, 11.0f, 0xF2925AFF, "shells that burst"},
    [TOWER_PRISM] = {"prism", 150, 6.5f, 0x6EE0F2FF, "a ray of light"},
    [TOWER_BELL] = {"bell", 90, 5.0f, 0x9FB4FFFF, "chills all around"},
};

TowerKind tower_kind_named(const char *name)
{
    uint32_t kind = 0;
    while (kind < TOWER_KINDS && strcmp(tower_rules[kind].name, name) != 0)
        kind++;
    return (TowerKind)kind;
}
