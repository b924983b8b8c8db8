/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_RECORD_SPAWN_H
#define QUERN_CORE_RECORD_SPAWN_H

/* Spawning by command is creating by command: members are numbered among the creates of their stream, and
 * whatever else is recorded of them has its place among these.
 *
 * An instance that nothing else concerns is one item, with the values of its overrides: it is *folded*. At
 * the sync point all that follow one another are put into the world together (spawned.h). As long as the
 * prefab has commands that wait it stays in memory, whether it is destroyed or not.
 *
 * An instance is *open* when it is recorded as one create per member, with the values that they are to
 * have, and commands that relate and name them. So it is from the beginning where its root gets a parent,
 * where members have targets outside of the tree, or where overrides have hooks or handles in them. A
 * folded one is opened by the first command that names a member: commands on it can only come from the same
 * callback, and none before this one knew a member, so it makes no difference that the creates stand here.
 *
 * What a recorder needs for a prefab it makes once. */

#include "core/prefabs/prefab_internal.h"
#include "core/record/record.h"

struct quern__spawn_form;

typedef struct quern__spawn_kind {
    quern_prefab handle;
    quern__prefab *prefab;
    struct quern__spawn_form *forms; /* that have been asked for, the last one first */
    struct quern__spawn_kind *next_old;
    bool is_held;           /* by folded instances */
    uint32_t command_count; /* commands that a folded instance counts as */
    uint32_t group_count;
    uint32_t largest_bytes; /* of a run of one item, and of the items of an open instance together */
    uint64_t bytes;
    const quern__operation *operations[]; /* by group; and the root's with a parent */
} quern__spawn_kind;

/* Folded instances with the same overrides. */
typedef struct quern__spawn_form {
    quern__spawn_kind *kind;
    quern__operation *operation; /* with an operand for each */
    struct quern__spawn_form *next;
    uint32_t override_count;
    quern__prefab_override overrides[QUERN_MAX_SPAWN_OVERRIDES];
} quern__spawn_form;

/* One instance, as it is recorded. */
typedef struct quern__spawning {
    quern_commands *commands;
    const quern__prefab *prefab;
    quern__spawn_kind *kind;
    quern_entity parent; /* null: the root gets none */
    quern__prefab_override overrides[QUERN_MAX_SPAWN_OVERRIDES];
    uint32_t override_count;
    uint32_t first_number; /* of the root, among the creates of the stream */
} quern__spawning;

/* The members of an instance that the operation spawns. */
static inline uint32_t quern__spawn_member_count(const quern__operation *operation)
{
    return operation->form->kind->prefab->members.count;
}

void quern__spawns_release(quern_commands *commands);

/* NULL is allowed. */
void quern__spawn_kind_release(const quern_commands *commands, quern__spawn_kind *kind);

/* What was recorded is forgotten: prefabs need not stay. */
void quern__spawns_let_go(quern_commands *commands);

/* Records an open instance. Its members have numbers. Errors: OUT_OF_MEMORY. */
quern_result quern__spawn_record_open(const quern__spawning *it, const char *function);

/* Records a folded instance, or says that this one has to be open. Errors: OUT_OF_MEMORY. */
bool quern__spawn_can_fold(const quern__spawning *it);
quern_result quern__spawn_record_folded(const quern__spawning *it, const char *function);

/* A command is about to name an entity that the open stream creates: if it is a member of a folded
 * instance, that is opened. Errors: OUT_OF_MEMORY. */
quern_result quern__spawn_open(quern_commands *commands, quern_entity entity, const char *function);

#endif
