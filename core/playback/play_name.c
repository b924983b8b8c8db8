/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "core/playback/play.h"

static void name_item(const quern__play_walk *it, quern__item *item, uint32_t i)
{
    const uint32_t slot = quern__play_find_slot(it, item->entity);
    if (slot == QUERN__NOTE_NONE) {
        quern__play_drop(it, item, i, QUERN_DROP_DEAD, 1);
        return;
    }
    const quern__note *entity = quern__relating_find(it->relating, slot);
    bool is_taken;
    if (entity != NULL && (entity->has_ended || entity->is_refused))
        quern__play_drop(it, item, i, entity->is_refused ? QUERN_DROP_REFUSED : QUERN_DROP_DESTROYED, 1);
    else if (quern__relating_set_name(it->relating, slot, (const char *)(item + 1), &is_taken) && is_taken)
        quern__play_drop(it, item, i, QUERN_DROP_SIBLING_NAME_TAKEN, 1);
}

void quern__play_names(const quern__play_walk *walk)
{
    quern__play_each(walk, name_item);
}
