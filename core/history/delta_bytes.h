/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_HISTORY_DELTA_BYTES_H
#define QUERN_CORE_HISTORY_DELTA_BYTES_H

/* A delta as bytes. All numbers are little-endian.
 *
 *   | head | components | resources | batches |
 *
 *   component, resource   name with a length of one byte, size, hash of the layout. Numbered from 0
 *   batch                 head; keys of the entities; values in `to`, if the kind has any and the type a size; of
 *                         RELATED and UNRELATED batches the keys of the targets; of a NAMED batch the length of the
 *                         name (0: none) and the name
 *
 * The *key* of an entity is its handle as quern__entity_to_relative gives it: use count and slot in the world of the
 * history. It is the same in all processes. Handles in described fields are keys, too. 0 is the null handle.
 *
 * Only values in `to` are written, so bytes cannot be applied backwards. */

#include "core/base/hash.h"
#include "core/base/sink_internal.h"
#include "core/base/source_internal.h"
#include "core/bytes/schema.h"
#include "core/storage/type_internal.h"

#include <quern/history.h>

#define QUERN__DELTA_MAGIC "QUERNDLT"
enum { QUERN__DELTA_VERSION = 1, QUERN__DELTA_NAME_LENGTH_BYTES = 1 };

#define QUERN__DELTA_IS_NATIVE (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__)

typedef struct quern__delta_head {
    char magic[8];
    uint32_t version;
    uint32_t component_count, resource_count, batch_count;
    uint64_t bytes;    /* bytes after the head */
    uint64_t checksum; /* of the preceding bytes of the head, then of the bytes after it */
} quern__delta_head;

typedef struct quern__delta_batch_head {
    uint32_t kind;   /* quern_delta_kind */
    uint32_t number; /* of the component or resource; 0 for other kinds */
    uint32_t count;  /* entities */
} quern__delta_batch_head;

static inline uint64_t quern__delta_checksum(const quern__delta_head *head, const void *bytes)
{
    const uint64_t hash = quern__hash_bytes(0, head, offsetof(quern__delta_head, checksum));
    return quern__hash_bytes(hash, bytes, (size_t)head->bytes);
}

/* Returns a hash of everything that both sides must agree on about a type. */
static inline uint64_t quern__delta_layout_hash(const quern__type *type)
{
    uint64_t hash = quern__hash_word(type->size_bytes, type->field_count);
    for (uint32_t i = 0; i < type->field_count; i++) {
        const quern_field *field = &type->fields[i];
        hash = quern__hash_word(hash, quern__hash_string(field->name));
        hash = quern__hash_word(hash, (uint64_t)field->type << 32 | field->offset_bytes);
        hash = quern__hash_word(hash, field->count);
    }
    return hash;
}

/* Whether a batch of the kind has a target for each entity. */
static inline bool quern__delta_has_targets(quern_delta_kind kind)
{
    return kind == QUERN_DELTA_RELATED || kind == QUERN_DELTA_UNRELATED;
}

/* Whether a batch of the kind is about one component. */
static inline bool quern__delta_has_component(quern_delta_kind kind)
{
    return (kind >= QUERN_DELTA_ADDED && kind <= QUERN_DELTA_DISABLED) || quern__delta_has_targets(kind);
}

/* Whether a batch of the kind has values in `to`. */
static inline bool quern__delta_has_values(quern_delta_kind kind)
{
    return kind == QUERN_DELTA_ADDED || kind == QUERN_DELTA_CHANGED;
}

#endif
