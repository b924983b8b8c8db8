/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_PLAYBACK_APPLY_H
#define QUERN_CORE_PLAYBACK_APPLY_H

/* Applying, the last stage of a sync point, which changes the world and cannot fail. */

#include "core/playback/resolve.h"

/* executor NULL: on the caller. */
void quern__commands_apply(quern__resolved *resolved, quern__merged *merged,
                           const quern__gathered *gathered, quern__storage *storage,
                           const quern__executor *executor);

#endif
