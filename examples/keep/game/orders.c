/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */

/* Games of several players: the first system of a step carries out the orders of all players, which are in a
 * resource. */

#include "check.h"
#include "systems.h"

#include <string.h>

static const float plot_size = 2;

Order game_order(const Action *action, Order last)
{
    return (Order){.number = (uint8_t)(last.number + 1),
                   .kind = (uint8_t)action->kind,
                   .tower = (uint8_t)action->tower,
                   .column = (uint8_t)(action->at.x / plot_size),
                   .row = (uint8_t)(action->at.y / plot_size)};
}

/* Another player's machine can send any bytes. */
static bool is_valid(const Order *order)
{
    return order->kind <= ACTION_SELL && order->tower < TOWER_KINDS;
}

/* Orders that cannot be carried out, for example because another player has built there, have no effect. */
static void carry_out(quern_context *context, const quern_view *view)
{
    Game *game = quern_context_user_data(context);
    quern_world *world = quern_context_world(context);
    Order orders[PLAYERS_MAX];
    OrdersDone *done = quern_resource_get(world, game->types.orders_done);
    (void)view;
    memcpy(orders, quern_resource_get(world, game->types.orders), game->player_count * sizeof *orders);
    for (uint32_t i = 0; i < game->player_count; i++) {
        const Order *order = &orders[i];
        /* The input of a player that does not take part is zero. */
        if (order->number == 0 || order->number == done->number[i]) continue;
        done->number[i] = order->number;
        const Action action = {
            .kind = (ActionKind)order->kind,
            .tower = (TowerKind)order->tower,
            .at = {((float)order->column + 0.5f) * plot_size, ((float)order->row + 0.5f) * plot_size}};
        if (is_valid(order)) (void)game_act(game, &action);
    }
}

void orders_add(Game *game)
{
    if (game->player_count == 0) return;
    const quern_resource_def orders = {
        .name = "orders", .size_bytes = game->player_count * (uint32_t)sizeof(Order), .alignment_bytes = 1};
    const quern_system_def def = {.name = "carry out orders",
                                  .phase = PHASE_WAVES,
                                  .run = carry_out,
                                  .flags = QUERN_SYSTEM_EXCLUSIVE};
    check(quern_resource_register(game->world, &orders, &game->types.orders));
    check(QUERN_RESOURCE_REGISTER_FIELDS(game->world, &game->types.orders_done, OrdersDone, number));
    check(quern_schedule_add_system(game->schedule, &def, NULL));
}
