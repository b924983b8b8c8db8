/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */

/* Blueprints: one tower and one enemy of each kind, disabled and named, from which prefabs are captured.
 * A tower is a base with a turret, and the turret has barrels. */

#include "check.h"
#include "kinds.h"
#include "systems.h"

#include <stdio.h>

static quern_entity make_folder(quern_world *world, const char *name)
{
    quern_entity folder;
    check(quern_entity_create(world, &folder));
    check(quern_entity_set_name(world, folder, name));
    return folder;
}

/* Creates a part of a tower: an entity with a shape, at a position on its parent. */
static quern_entity make_part(Game *game, quern_entity parent, const char *name, float x, float y,
                              Shape shape)
{
    const Types *types = &game->types;
    quern_local2 local = quern_local2_identity();
    local.position[0] = x;
    local.position[1] = y;
    const quern_component components[] = {types->local, types->spot, types->shape};
    const void *values[] = {&local, NULL, &shape};
    quern_entity part;
    check(quern_entity_create_with(game->world, components, values, 3, &part));
    check(quern_entity_relate(game->world, part, types->parent, parent));
    check(quern_entity_set_name(game->world, part, name));
    return part;
}

static quern_entity make_base(Game *game, quern_entity folder, TowerKind kind)
{
    const TowerRules *rules = &tower_rules[kind];
    const Tower tower = {kind, rules->cost};
    const Shape shape = {SHAPE_BASE, 0, 1.95f, 1.95f, 0x4A6076FF};
    const quern_entity base = make_part(game, folder, rules->name, 0, 0, shape);
    check(quern_entity_add(game->world, base, game->types.tower, &tower));
    return base;
}

static quern_entity make_turret(Game *game, quern_entity base, Turret turret, Shape shape)
{
    const quern_entity part = make_part(game, base, "turret", 0, 0, shape);
    check(quern_entity_add(game->world, part, game->types.turret, &turret));
    check(quern_entity_add(game->world, part, game->types.stun, NULL));
    return part;
}

/* Creates a barrel that is loaded every load_seconds. The caller adds the component of its weapon. */
static quern_entity make_barrel(Game *game, quern_entity turret, const char *name, float x, float y,
                                Shape shape, float load_seconds)
{
    const Barrel barrel = {.rest = x, .length = shape.width / 2};
    const Loaded loaded = {.load_seconds = load_seconds};
    const quern_entity part = make_part(game, turret, name, x, y, shape);
    check(quern_entity_add(game->world, part, game->types.barrel, &barrel));
    check(quern_entity_add(game->world, part, game->types.loaded, &loaded));
    return part;
}

/* ------------------------------------------------------------------------------------------ four towers */

static quern_entity make_gun(Game *game, quern_entity folder)
{
    const TowerRules *rules = &tower_rules[TOWER_GUN];
    const quern_entity base = make_base(game, folder, TOWER_GUN);
    const Turret turret = {.range = rules->range, .shot_speed = 22, .turn_speed = 9};
    const quern_entity top =
        make_turret(game, base, turret, (Shape){SHAPE_DISC, 2, 1.15f, 1.15f, 0x8A9CADFF});
    const Gun gun = {.damage = 5, .speed = 22, .spread = 0.06f, .range = rules->range + 1};
    const Shape shape = {SHAPE_BAR, 1, 0.9f, 0.24f, rules->color};
    for (int side = 0; side < 2; side++) {
        const quern_entity barrel =
            make_barrel(game, top, side == 0 ? "left" : "right", 0.5f, side == 0 ? -0.22f : 0.22f, shape,
                        side == 0 ? 0.11f : 0.13f);
        check(quern_entity_add(game->world, barrel, game->types.gun, &gun));
    }
    return base;
}

static quern_entity make_mortar(Game *game, quern_entity folder)
{
    const TowerRules *rules = &tower_rules[TOWER_MORTAR];
    const quern_entity base = make_base(game, folder, TOWER_MORTAR);
    const Turret turret = {.range = rules->range, .least_range = 2.5f, .shot_speed = 9, .turn_speed = 3};
    const quern_entity top =
        make_turret(game, base, turret, (Shape){SHAPE_DISC, 1, 1.35f, 1.35f, 0x8A7068FF});
    const Mortar mortar = {.damage = 26, .radius = 1.7f, .speed = 9};
    const quern_entity barrel =
        make_barrel(game, top, "barrel", 0.3f, 0, (Shape){SHAPE_BAR, 2, 0.95f, 0.5f, rules->color}, 1.1f);
    check(quern_entity_add(game->world, barrel, game->types.mortar, &mortar));
    return base;
}

static quern_entity make_prism(Game *game, quern_entity folder)
{
    const TowerRules *rules = &tower_rules[TOWER_PRISM];
    const quern_entity base = make_base(game, folder, TOWER_PRISM);
    const Turret turret = {.range = rules->range, .turn_speed = 7};
    const quern_entity top =
        make_turret(game, base, turret, (Shape){SHAPE_DISC, 1, 1.1f, 1.1f, 0x557C92FF});
    const Prism prism = {.damage_per_second = 75};
    const Beam beam = {.from_x = 0};
    const quern_entity barrel =
        make_barrel(game, top, "crystal", 0.25f, 0, (Shape){SHAPE_CRYSTAL, 2, 0.9f, 0.6f, rules->color}, 0);
    check(quern_entity_add(game->world, barrel, game->types.prism, &prism));
    check(quern_entity_add(game->world, barrel, game->types.beam, &beam));
    check(quern_entity_set_component_enabled(game->world, barrel, game->types.beam, false));
    return base;
}

static quern_entity make_bell(Game *game, quern_entity folder)
{
    const TowerRules *rules = &tower_rules[TOWER_BELL];
    const quern_entity base = make_base(game, folder, TOWER_BELL);
    const Turret turret = {.range = rules->range, .turn_speed = 1.5f};
    const quern_entity top =
        make_turret(game, base, turret, (Shape){SHAPE_RING, 1, 1.3f, 1.3f, 0xA8BAFFFF});
    const Bell bell = {.damage = 2, .radius = rules->range, .chill_seconds = 1.6f};
    const quern_entity barrel =
        make_barrel(game, top, "bell", 0, 0, (Shape){SHAPE_DISC, 2, 0.62f, 0.62f, rules->color}, 1.25f);
    check(quern_entity_add(game->world, barrel, game->types.bell, &bell));
    return base;
}

static void make_towers(Game *game)
{
    const quern_entity folder = make_folder(game->world, "towers");
    const quern_entity bases[TOWER_KINDS] = {[TOWER_GUN] = make_gun(game, folder),
                                             [TOWER_MORTAR] = make_mortar(game, folder),
                                             [TOWER_PRISM] = make_prism(game, folder),
                                             [TOWER_BELL] = make_bell(game, folder)};
    for (uint32_t kind = 0; kind < TOWER_KINDS; kind++)
        check(quern_prefab_capture(game->world, bases[kind], &game->towers[kind]));
    check(quern_entity_set_enabled(game->world, folder, false));
}

/* --------------------------------------------------------------------------------------------- enemies */

static void make_enemies(Game *game)
{
    const Types *types = &game->types;
    const quern_entity folder = make_folder(game->world, "enemies");
    for (uint32_t kind = 0; kind < ENEMY_KINDS; kind++) {
        const Enemy enemy = {.kind = kind, .pace = enemy_rules[kind].speed};
        const Health health = {enemy_rules[kind].health};
        const quern_component components[] = {types->enemy, types->health, types->place, types->chill};
        const void *values[] = {&enemy, &health, NULL, NULL};
        quern_entity blueprint;
        check(quern_entity_create_with(game->world, components, values, 4, &blueprint));
        check(quern_entity_set_component_enabled(game->world, blueprint, types->chill, false));
        check(quern_entity_relate(game->world, blueprint, types->parent, folder));
        check(quern_entity_set_name(game->world, blueprint, enemy_rules[kind].name));
        check(quern_prefab_capture(game->world, blueprint, &game->enemies[kind]));
    }
    check(quern_entity_set_enabled(game->world, folder, false));
}

/* Captures the tree with a name in a folder, which must have a component. */
static bool capture(Game *game, const char *folder, const char *name, quern_component needed,
                    quern_prefab *out_prefab, char *message, size_t bytes)
{
    const quern_entity parent = quern_entity_find(game->world, folder);
    const quern_entity tree =
        quern_entity_is_null(parent) ? parent : quern_entity_find_child(game->world, parent, name);
    if (quern_entity_is_null(tree) || !quern_entity_has(game->world, tree, needed))
        snprintf(message, bytes, "the world has no blueprint '%s/%s'", folder, name);
    else if (quern_entity_set_enabled(game->world, parent, true) != QUERN_OK ||
             quern_prefab_capture(game->world, tree, out_prefab) != QUERN_OK)
        snprintf(message, bytes, "the blueprint '%s/%s' cannot be used: %s", folder, name,
                 quern_error_message());
    else
        return true;
    return false;
}

bool blueprints_capture(Game *game, char *message, size_t message_bytes)
{
    for (uint32_t kind = 0; kind < TOWER_KINDS; kind++)
        if (!capture(game, "towers", tower_rules[kind].name, game->types.local, &game->towers[kind],
                     message, message_bytes))
            return false;
    for (uint32_t kind = 0; kind < ENEMY_KINDS; kind++)
        if (!capture(game, "enemies", enemy_rules[kind].name, game->types.enemy, &game->enemies[kind],
                     message, message_bytes))
            return false;
    return true;
}

void blueprints_make(Game *game)
{
    make_towers(game);
    make_enemies(game);
}
