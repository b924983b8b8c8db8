/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_COMMANDS_APPLY_H
#define QUERN_CORE_COMMANDS_APPLY_H

/* Applying, the last stage of a sync point, which changes the world and cannot fail. */

#include "core/commands/resolve.h"

/* executor NULL: on the caller. */
void quern__commands_apply(quern__resolved *resolved, quern__merged *merged,
                           const quern__gathered *gathered, quern__storage *storage,
                           const quern__executor *executor);

/* For builds with QUERN_CHECKS: reports provisional handles that nobody will replace, in values that have
 * not been moved yet. */
void quern__gathered_look_for_provisional(const quern__gathered *gathered);

#endif
