/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_ARCHIVE_LOAD_EDGES_H
#define QUERN_CORE_ARCHIVE_LOAD_EDGES_H

/* Loading the edges of relations with several targets per source. */

#include "core/archive/image.h"

/* Gives the slots of the loaded entities their sets of targets and sources, and adds their edges to entities outside of
 * the list. The slots are not alive yet, so the world has no edges of them. handles: by slot of the archive. Errors:
 * OUT_OF_MEMORY; the caller then calls quern__unload_edges. */
quern_result quern__load_edges(const quern__image *image, quern__archived_links *links,
                               const quern_entity *handles);

/* Removes the edges that quern__load_edges added, and clears the sets of all slots of the loaded entities. */
void quern__unload_edges(const quern__image *image, const quern__archived_links *links,
                         const quern_entity *handles);

#endif
