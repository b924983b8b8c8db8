/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "tests/flow/every_model.h"
#include "tests/support/setup.h"
#include "tests/support/tracked.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const quern_relation_def every_relations[EVERY_RELATIONS] = {
    {.name = "parent", .levels = true, .ordered = true},
    {.name = "home", .on_target_destroyed = QUERN_TARGET_UNRELATES, .levels = true},
    {.name = "lock", .on_target_destroyed = QUERN_TARGET_REFUSES, .ordered = true},
    {.name = "ring"},
    {.name = "shared", .on_target_destroyed = QUERN_TARGET_UNRELATES},
    {.name = "likes", .on_target_destroyed = QUERN_TARGET_UNRELATES, .many = true},
    {.name = "part", .many = true},
};

const char *const every_feature_names[EVERY_FEATURES] = {
    "set",
    "add",
    "remove",
    "required",
    "default",
    "link",
    "hooks",
    "list",
    "toggle",
    "switch",
    "off tag",
    "create",
    "create many",
    "destroy",
    "spawn",
    "spawn changed",
    "parent",
    "levels",
    "refusal",
    "ring",
    "edges",
    "edge value",
    "name",
    "accumulate",
    "view command",
    "immediate",
    "bulk",
    "world commands",
    "parallel query",
    "event",
    "mark",
    "place",
    "by level",
    "target term",
    "added",
    "setting",
    "old",
    "removed",
    "up",
    "filter",
    "row write",
    "lookup",
    "further query",
    "order",
    "own order",
    "index",
    "shared",
    "shared term",
    "override",
    "clone",
    "clone by command",
    "resource",
    "if changed",
    "looks",
    "converted",
    "clear",
    "destroy many",
    "any",
    "system set",
    "spawn value",
    "getter",
    "history",
    "delta",
    "archive",
    "session",
    "json",
    "copy",
    "replaced system",
    "new system",
    "replaced reaction",
    "new reaction",
    "other system",
    "other reaction",
    "moved system",
    "discard",
    "new version",
    "added field",
    "dropped field",
    "moved field",
    "retyped field",
    "renamed field",
    "migration",
    "new resource",
    "new event",
    "new edges",
    "refused type",
};

state *every_state;
static state *saves[EVERY_SAVES];
every_model_terms every_model_program;
static prefab prefabs[EVERY_PREFABS + 1];  /* the last one is that of a copy */
static every_change recorded[MAX_CHANGES]; /* commands of the systems */
static uint32_t recorded_count;
static uint64_t change_count;
uint64_t every_pairs[EVERY_FEATURES][EVERY_FEATURES];

/* ------------------------------------------------------------------------------------------ entities */

enum { SLOTS = 1 << 16, ID_SLOTS = 1 << 14 };
static int by_slot[SLOTS];  /* number + 1 of the last entity known in a slot */
static int by_id[ID_SLOTS]; /* number + 1, by open addressing */

static void enter_slot(int entity)
{
    const quern_entity handle = every_state->entities[entity].handle;
    if (!quern_entity_is_null(handle) && !quern_entity_is_provisional(handle))
        by_slot[quern_entity_index(handle) % SLOTS] = entity + 1;
}

static void enter_id(int entity)
{
    uint32_t at = (uint32_t)(every_state->entities[entity].id * 0x9E3779B97F4A7C15u >> 40) % ID_SLOTS;
    while (by_id[at] != 0)
        at = (at + 1) % ID_SLOTS;
    by_id[at] = entity + 1;
}

int every_model_find_id(uint64_t id)
{
    uint32_t at = (uint32_t)(id * 0x9E3779B97F4A7C15u >> 40) % ID_SLOTS;
    for (; by_id[at] != 0; at = (at + 1) % ID_SLOTS)
        if (every_state->entities[by_id[at] - 1].id == id) return by_id[at] - 1;
    return EVERY_NONE;
}

int every_model_find(quern_entity handle)
{
    if (quern_entity_is_null(handle)) return EVERY_NONE;
    const int known = by_slot[quern_entity_index(handle) % SLOTS] - 1;
    if (known >= 0 && quern_entity_equal(every_state->entities[known].handle, handle)) return known;
    for (int i = every_state->entity_count; i-- > 0;)
        if (quern_entity_equal(every_state->entities[i].handle, handle) &&
            !quern_entity_is_provisional(handle))
            return i;
    return EVERY_NONE;
}

/* Finds the entity of a handle that a callback has, which may be provisional. */
static int resolve(quern_entity handle, uint32_t stream)
{
    if (!quern_entity_is_provisional(handle)) return every_model_find(handle);
    for (int i = every_state->entity_count; i-- > 0;)
        if (quern_entity_equal(every_state->entities[i].handle, handle) &&
            every_state->entities[i].stream == stream)
            return i;
    cr_assert_fail("no entity has this provisional handle");
    return EVERY_NONE;
}

static const every_change *applied; /* for messages */

static int must_resolve(quern_entity handle, uint32_t stream)
{
    const int found = resolve(handle, stream);
    cr_assert_neq(found, EVERY_NONE, "the model does not know the handle %llx of a change of kind %d",
                  (unsigned long long)handle.bits, (int)applied->kind);
    return found;
}

uint32_t every_model_count(void)
{
    return (uint32_t)every_state->entity_count;
}

every_entity *every_model_at(int entity)
{
    return &every_state->entities[entity];
}

const every_model_edge *every_model_edge_at(uint32_t i)
{
    return &every_state->edges[i];
}

uint32_t every_model_edge_count(void)
{
    return every_state->edge_count;
}

uint64_t every_model_change_count(void)
{
    return change_count;
}

static int add_entity(uint64_t id, quern_entity handle, uint32_t stream)
{
    cr_assert_lt(every_state->entity_count, MAX_ENTITIES);
    cr_assert_eq(every_model_find_id(id), EVERY_NONE, "the program gives an id twice");
    every_entity *made = &every_state->entities[every_state->entity_count];
    memset((void *)made, 0, sizeof *made);
    made->id = id;
    made->handle = handle;
    made->stream = stream;
    made->is_alive = true;
    made->now.set = BIT(EVERY_ID);
    made->now.words[0] = id;
    made->kept = made->now;
    for (uint32_t r = 0; r < EVERY_SINGLES; r++)
        made->targets[r] = EVERY_NONE;
    every_state->entity_count++;
    enter_id(every_state->entity_count - 1);
    enter_slot(every_state->entity_count - 1);
    return every_state->entity_count - 1;
}

void every_model_set_handle(int entity, quern_entity handle)
{
    every_state->entities[entity].handle = handle;
    enter_slot(entity);
}

/* -------------------------------------------------------------------------------------------- values */

static uint32_t complete(uint32_t set)
{
    for (uint32_t before = 0; before != set;) {
        before = set;
        for (uint32_t t = 0; t < EVERY_TYPES; t++)
            if (every_has(before, t)) set |= every_types[t].required;
    }
    return set;
}

static void put(every_values *values, uint32_t type, const uint64_t *words)
{
    const every_form *form = &every_forms[type];
    for (uint32_t i = 0; i < every_types[type].word_count; i++) {
        uint64_t fresh = form->has_default ? form->default_words[i] : 0;
        if (type == EVERY_HOOKED) fresh = TRACKED_DEFAULT;
        values->words[every_types[type].first_word + i] =
            every_fit(form, i, words != NULL ? words[every_types[type].first_word + i] : fresh);
    }
}

/* Adds a type, or gives it another value. words: all words, or NULL. */
static void give(every_values *values, uint32_t type, const uint64_t *words)
{
    const uint32_t needed = complete(BIT(type)) & ~BIT(type);
    const uint32_t fresh = (BIT(type) | needed) & ~(values->set | values->implied);
    if (words != NULL && every_types[type].word_count > 0) values->changed |= BIT(type);
    if (words != NULL || !every_has(values->set, type)) put(values, type, words);
    values->set |= BIT(type);
    values->disabled &= ~fresh;
    values->implied |= needed;
}

static void take(every_values *values, uint32_t type)
{
    values->changed |= BIT(type);
    values->set &= ~BIT(type);
    values->disabled &= ~BIT(type);
    values->implied &= ~BIT(type);
}

void every_model_toggle_value(every_values *values, uint32_t type, bool enabled)
{
    const uint32_t bit = (values->set | values->implied) & BIT(type);
    values->disabled &= ~bit;
    if (!enabled) values->disabled |= bit;
}

/* What types require at the end of a sync point stays, or is added: removes of it have no effect. */
static void add_required(every_entity *entity)
{
    const uint32_t all = complete(entity->now.set);
    for (uint32_t t = 0; t < EVERY_TYPES; t++) {
        bool is_required = false;
        for (uint32_t by = 0; by < EVERY_TYPES; by++)
            is_required |= every_has(all, by) && every_has(every_types[by].required, t);
        if (!is_required) continue;
        const bool has_value = every_has(entity->kept.set, t);
        put(&entity->now, t, has_value ? entity->kept.words : NULL);
        entity->now.set |= BIT(t);
        entity->now.disabled = (entity->now.disabled & ~BIT(t)) | (entity->kept.disabled & BIT(t));
        entity->now.changed = (entity->now.changed & ~BIT(t)) | (entity->kept.changed & BIT(t));
    }
    entity->now.disabled &= entity->now.set;
}

/* ----------------------------------------------------------------------------------------- relations */

static bool is_above(uint32_t relation, int above, int below)
{
    while (below != EVERY_NONE && below != above)
        below = every_state->entities[below].targets[relation];
    return below == above;
}

int every_model_next_sibling(uint32_t relation, int target, bool is_first, int64_t rank)
{
    int found = EVERY_NONE;
    for (int i = 0; i < every_state->entity_count; i++) {
        const every_entity *entity = &every_state->entities[i];
        if (!entity->is_alive || entity->targets[relation] != target ||
            (!is_first && entity->ranks[relation] <= rank))
            continue;
        if (found == EVERY_NONE || entity->ranks[relation] < every_state->entities[found].ranks[relation])
            found = i;
    }
    return found;
}

uint32_t every_model_find_edge(uint32_t relation, int source, int target)
{
    uint32_t i = 0;
    while (i < every_state->edge_count &&
           (every_state->edges[i].relation != relation || every_state->edges[i].source != source ||
            every_state->edges[i].target != target))
        i++;
    return i;
}

static bool has_edges(uint32_t relation, int source)
{
    for (uint32_t i = 0; i < every_state->edge_count; i++)
        if (every_state->edges[i].relation == relation && every_state->edges[i].source == source)
            return true;
    return false;
}

bool every_model_has_target(uint32_t relation, int source)
{
    return relation < EVERY_SINGLES ? every_state->entities[source].targets[relation] != EVERY_NONE
                                    : has_edges(relation, source);
}

static bool is_name_taken(int entity, int parent, const char *name)
{
    if (name[0] == 0) return false;
    for (int i = 0; i < every_state->entity_count; i++)
        if (i != entity && every_state->entities[i].is_alive &&
            every_state->entities[i].targets[0] == parent &&
            strcmp(every_state->entities[i].name, name) == 0)
            return true;
    return false;
}

static bool can_relate(int source, uint32_t relation, int target)
{
    if (target == EVERY_NONE || !every_state->entities[target].is_alive || source == target) return false;
    if (relation >= EVERY_SINGLES) return true;
    if (every_state->entities[source].targets[relation] == target) return true;
    if (every_relations[relation].levels && is_above(relation, source, target)) return false;
    return relation != 0 || !is_name_taken(source, target, every_state->entities[source].name);
}

static void relate(int source, uint32_t relation, int target)
{
    every_entity *entity = &every_state->entities[source];
    if (relation >= EVERY_SINGLES) {
        if (every_model_find_edge(relation, source, target) < every_state->edge_count) return;
        cr_assert_lt(every_state->edge_count, (uint32_t)MAX_EDGES);
        every_state->edges[every_state->edge_count++] = (edge){relation, source, target, 0};
    } else if (entity->targets[relation] != target) {
        entity->targets[relation] = target;
        entity->edge_values[relation] = 0;
        entity->ranks[relation] =
            every_relations[relation].ordered ? ++every_state->highest_rank : --every_state->lowest_rank;
    }
}

static bool has_edge(uint32_t relation, int source, int target)
{
    if (target == EVERY_NONE || !every_state->entities[target].is_alive) return false;
    return relation < EVERY_SINGLES
               ? every_state->entities[source].targets[relation] == target
               : every_model_find_edge(relation, source, target) < every_state->edge_count;
}

/* Sets the value of an edge, if it exists and edges of the relation have values. */
static void set_edge_value(uint32_t relation, int source, int target, uint64_t value)
{
    if (!every_has_values(relation) || !has_edge(relation, source, target)) return;
    if (relation < EVERY_SINGLES)
        every_state->entities[source].edge_values[relation] = value;
    else
        every_state->edges[every_model_find_edge(relation, source, target)].value = value;
}

static void remove_edges(uint32_t relation, int source, int target)
{
    for (uint32_t i = every_state->edge_count; i-- > 0;)
        if (every_state->edges[i].relation == relation && every_state->edges[i].source == source &&
            (target == EVERY_NONE || every_state->edges[i].target == target))
            every_state->edges[i] = every_state->edges[--every_state->edge_count];
}

static bool can_unrelate(int source, uint32_t relation)
{
    return relation != 0 || every_state->entities[source].targets[0] == EVERY_NONE ||
           !is_name_taken(source, EVERY_NONE, every_state->entities[source].name);
}

static void unrelate(int source, uint32_t relation, int target)
{
    if (relation >= EVERY_SINGLES)
        remove_edges(relation, source, target);
    else if (target == EVERY_NONE || every_state->entities[source].targets[relation] == target)
        every_state->entities[source].targets[relation] = EVERY_NONE;
}

/* Places a source before a sibling, or at the end. */
static void place(int source, uint32_t relation, int before_sibling)
{
    every_entity *entity = &every_state->entities[source];
    if (before_sibling == source) return;
    if (before_sibling == EVERY_NONE) {
        entity->ranks[relation] = ++every_state->highest_rank;
        return;
    }
    const int64_t rank = every_state->entities[before_sibling].ranks[relation];
    for (int i = 0; i < every_state->entity_count; i++)
        if (every_state->entities[i].is_alive &&
            every_state->entities[i].targets[relation] == entity->targets[relation] &&
            every_state->entities[i].ranks[relation] >= rank)
            every_state->entities[i].ranks[relation]++;
    entity->ranks[relation] = rank;
    every_state->highest_rank++;
}

static bool ends[MAX_ENTITIES];

/* Marks what is destroyed with the marked entities. Returns whether no relation refuses that. */
static bool spread_ends(void)
{
    for (bool grows = true; grows;) {
        grows = false;
        for (int i = 0; i < every_state->entity_count; i++)
            for (uint32_t r = 0; r < EVERY_SINGLES && every_state->entities[i].is_alive && !ends[i]; r++)
                if (every_relations[r].on_target_destroyed == QUERN_TARGET_DESTROYS_SOURCE &&
                    every_state->entities[i].targets[r] != EVERY_NONE &&
                    ends[every_state->entities[i].targets[r]])
                    grows = ends[i] = true;
        for (uint32_t i = 0; i < every_state->edge_count; i++)
            if (every_relations[every_state->edges[i].relation].on_target_destroyed ==
                    QUERN_TARGET_DESTROYS_SOURCE &&
                ends[every_state->edges[i].target] && !ends[every_state->edges[i].source])
                grows = ends[every_state->edges[i].source] = true;
    }
    for (int i = 0; i < every_state->entity_count; i++)
        for (uint32_t r = 0; r < EVERY_SINGLES; r++)
            if (every_relations[r].on_target_destroyed == QUERN_TARGET_REFUSES &&
                every_state->entities[i].is_alive && !ends[i] &&
                every_state->entities[i].targets[r] != EVERY_NONE &&
                ends[every_state->entities[i].targets[r]])
                return false;
    return true;
}

static bool find_ends(int first)
{
    memset(ends, 0, sizeof ends);
    ends[first] = true;
    return spread_ends();
}

static void destroy_ends(void)
{
    for (uint32_t i = every_state->edge_count; i-- > 0;)
        if (ends[every_state->edges[i].source] || ends[every_state->edges[i].target])
            every_state->edges[i] = every_state->edges[--every_state->edge_count];
    for (int i = 0; i < every_state->entity_count; i++) {
        every_entity *entity = &every_state->entities[i];
        if (!entity->is_alive) continue;
        for (uint32_t r = 0; r < EVERY_SINGLES; r++)
            if (ends[i] || (entity->targets[r] != EVERY_NONE && ends[entity->targets[r]]))
                entity->targets[r] = EVERY_NONE;
        if (ends[i]) entity->is_alive = false;
        if (ends[i]) entity->features |= every_bit(EVERY_USES_DESTROY);
    }
}

static void set_off(every_entity *entity, bool is_off, bool is_through)
{
    entity->now.set = is_off ? entity->now.set | BIT(EVERY_OFF) : entity->now.set & ~BIT(EVERY_OFF);
    entity->kept.set = is_off ? entity->kept.set | BIT(EVERY_OFF) : entity->kept.set & ~BIT(EVERY_OFF);
    entity->is_through = is_through;
}

static bool is_off(int entity)
{
    return entity != EVERY_NONE && every_has(every_state->entities[entity].now.set, EVERY_OFF);
}

/* Disables or enables a tree, parents first. */
static void switch_tree(int root, bool enabled)
{
    const bool parent_is_off = is_off(every_state->entities[root].targets[0]);
    set_off(&every_state->entities[root], !enabled || parent_is_off, enabled && parent_is_off);
    memset(ends, 0, sizeof ends);
    ends[root] = true;
    for (bool grows = true; grows;) {
        grows = false;
        for (int i = 0; i < every_state->entity_count; i++) {
            every_entity *entity = &every_state->entities[i];
            const int parent = entity->targets[0];
            if (!entity->is_alive || ends[i] || parent == EVERY_NONE || !ends[parent]) continue;
            if (!is_off(i) || entity->is_through) set_off(entity, is_off(parent), is_off(parent));
            entity->features |= every_bit(EVERY_USES_TREE_SWITCH);
            grows = ends[i] = true;
        }
    }
}

/* ------------------------------------------------------------------------------------ making changes */

/* Copies the words of a change with the handle in EVERY_LINK replaced by the entity's number + 1. */
static const uint64_t *words_of(const every_change *change)
{
    static uint64_t words[EVERY_WORDS];
    memcpy(words, change->words, sizeof words);
    words[every_types[EVERY_LINK].first_word] =
        quern_entity_is_null(change->target) ? 0
                                             : (uint64_t)must_resolve(change->target, change->stream) + 1;
    return words;
}

/* Creates the entities of a command or call. */
static void create(const every_change *change)
{
    if (change->kind == EVERY_CREATE) {
        add_entity(change->id, change->entity, change->stream);
    } else if (change->kind == EVERY_SPAWN) {
        for (uint32_t m = 0; m < prefabs[change->prefab].member_count; m++)
            add_entity(change->ids[m], change->members[m], change->stream);
    } else if (change->kind == EVERY_CLONE || change->kind == EVERY_OVERRIDE) {
        for (uint32_t m = 0; m < change->member_count; m++)
            add_entity(change->ids[m], change->members[m], change->stream);
    }
}

static int member_or(int number, const int *members)
{
    return number >= MEMBER ? members[number - MEMBER] : number;
}

static void fill_members(const prefab *from, const every_change *change, const int *members)
{
    const uint32_t link = every_types[EVERY_LINK].first_word;
    for (uint32_t m = 0; m < from->member_count; m++) {
        every_entity *entity = &every_state->entities[members[m]];
        entity->now = from->values[m];
        entity->now.words[0] = change->ids[m];
        if (from->values[m].words[link] >= MEMBER)
            entity->now.words[link] = (uint64_t)members[from->values[m].words[link] - MEMBER] + 1;
        if (change->value_type > 0 && change->value_member == m)
            put(&entity->now, change->value_type, words_of(change));
        entity->kept = entity->now;
        entity->is_through = from->is_through[m];
        memcpy(entity->name, from->names[m], sizeof entity->name);
    }
}

/* Of some members, returns the one that is related first: those with targets outside of the tree, then the others in the
 * captured order of siblings. */
static uint32_t first_of(const prefab *from, uint32_t relation, uint32_t members)
{
    uint32_t first = EVERY_MEMBERS;
    for (uint32_t m = 0; m < from->member_count; m++) {
        if ((members >> m & 1) == 0) continue;
        if (from->targets[m][relation] < MEMBER) return m;
        if (first == EVERY_MEMBERS || from->ranks[m][relation] < from->ranks[first][relation]) first = m;
    }
    return first;
}

/* Makes an instance of a prefab. Returns its root. */
static int spawn(const prefab *from, const every_change *change, int parent)
{
    int members[EVERY_MEMBERS] = {0};
    for (uint32_t m = 0; m < from->member_count; m++)
        members[m] = every_model_find_id(change->ids[m]);
    fill_members(from, change, members);
    for (uint32_t r = 0; r < EVERY_SINGLES; r++) {
        uint32_t left = (1u << from->member_count) - 1;
        while (left != 0) {
            const uint32_t m = first_of(from, r, left);
            const int target = member_or(from->targets[m][r], members);
            left &= ~(1u << m);
            if (target == EVERY_NONE || !every_state->entities[target].is_alive) continue;
            relate(members[m], r, target);
            set_edge_value(r, members[m], target, from->edge_values[m][r]);
        }
    }
    for (uint32_t i = 0; i < from->edge_count; i++) {
        const int target = member_or(from->edges[i].target, members);
        if (!every_state->entities[target].is_alive) continue;
        relate(members[from->edges[i].source], from->edges[i].relation, target);
        set_edge_value(from->edges[i].relation, members[from->edges[i].source], target,
                       from->edges[i].value);
    }
    if (parent != EVERY_NONE && can_relate(members[0], 0, parent)) relate(members[0], 0, parent);
    for (uint32_t m = 0; m < from->member_count; m++)
        every_state->entities[members[m]].features |= change->features;
    return members[0];
}

/* Gives an entity an own value instead of one that it shares: with its own copy of the shared entity, a child. */
static void override(const every_change *change, int entity)
{
    int shared = every_state->entities[entity].targets[EVERY_SHARED];
    cr_assert_eq(every_state->entities[shared].targets[EVERY_PARENT] == entity, change->member_count == 0);
    if (change->member_count > 0) {
        cr_assert_eq(every_model_capture(EVERY_PREFABS, every_state->entities[shared].handle),
                     change->member_count);
        shared = spawn(&prefabs[EVERY_PREFABS], change, entity);
        relate(entity, EVERY_SHARED, shared);
    }
    give(&every_state->entities[shared].now, change->type, words_of(change));
    give(&every_state->entities[shared].kept, change->type, words_of(change));
    every_state->entities[shared].features |= change->features;
}

static void fill_created(const every_change *change, int entity)
{
    every_entity *made = &every_state->entities[entity];
    for (uint32_t t = 1; t < EVERY_TYPES; t++) {
        if (!every_has(change->set, t)) continue;
        give(&made->now, t, words_of(change));
        give(&made->kept, t, words_of(change));
    }
    if (change->relation == 0) return;
    const int target = must_resolve(change->target, change->stream);
    if (can_relate(entity, change->relation - 1, target)) relate(entity, change->relation - 1, target);
}

/* Applies a change to an entity that is alive. */
static void apply_to(const every_change *change, int entity)
{
    every_entity *at = &every_state->entities[entity];
    const int target =
        quern_entity_is_null(change->target) ? EVERY_NONE : must_resolve(change->target, change->stream);
    const uint64_t *words = change->has_value || change->kind == EVERY_SET ? words_of(change) : NULL;
    switch (change->kind) {
    case EVERY_ADD:
    case EVERY_SET:
        give(&at->now, change->type, words);
        give(&at->kept, change->type, words);
        break;
    case EVERY_REMOVE:
        take(&at->now, change->type);
        break;
    case EVERY_TOGGLE:
        every_model_toggle_value(&at->now, change->type, change->enabled);
        every_model_toggle_value(&at->kept, change->type, change->enabled);
        break;
    case EVERY_SWITCH:
        switch_tree(entity, change->enabled);
        break;
    case EVERY_RELATE:
        if (!can_relate(entity, change->relation, target)) break;
        relate(entity, change->relation, target);
        if (change->edge_value != 0) set_edge_value(change->relation, entity, target, change->edge_value);
        break;
    case EVERY_SET_EDGE:
        set_edge_value(change->relation, entity, target, change->edge_value);
        break;
    case EVERY_UNRELATE:
        if (can_unrelate(entity, change->relation)) unrelate(entity, change->relation, EVERY_NONE);
        break;
    case EVERY_UNRELATE_FROM:
        if (change->relation != 0 || at->targets[0] != target || can_unrelate(entity, 0))
            unrelate(entity, change->relation, target);
        break;
    case EVERY_RENAME:
        if (!is_name_taken(entity, at->targets[0], change->name))
            memcpy(at->name, change->name, sizeof at->name);
        break;
    case EVERY_MARK:
        at->now.changed |= BIT(change->type);
        at->kept.changed |= BIT(change->type);
        break;
    case EVERY_PLACE:
        place(entity, change->relation, target);
        break;
    case EVERY_OVERRIDE:
        override(change, entity);
        break;
    case EVERY_CLEAR:
        for (uint32_t t = 0; t < EVERY_TYPES; t++)
            if (t != EVERY_OFF && every_has(at->now.set, t)) take(&at->now, t);
        break;
    case EVERY_DESTROY:
        at->is_destroyed = true;
        if (find_ends(entity)) destroy_ends();
        break;
    default:
        break;
    }
}

/* What the clones among some changes copy, in their order: the state before all of them. */
static prefab clones[MAX_CLONES];
static int clone_parents[MAX_CLONES]; /* of the entities */
static uint32_t clone_count, cloned_count;

static void capture_clones(const every_change *changes, uint32_t count)
{
    clone_count = cloned_count = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (changes[i].kind != EVERY_CLONE) continue;
        cr_assert_lt(clone_count, (uint32_t)MAX_CLONES);
        const uint32_t captured = every_model_capture(EVERY_PREFABS, changes[i].entity);
        cr_assert_eq(captured, changes[i].member_count,
                     "seed %llu, frame %llu: %u members, %u in the world, recorded %d",
                     (unsigned long long)every.seed, (unsigned long long)every.frame, captured,
                     changes[i].member_count, changes[i].is_recorded);
        clone_parents[clone_count] =
            every_state->entities[must_resolve(changes[i].entity, changes[i].stream)].targets[EVERY_PARENT];
        clones[clone_count++] = prefabs[EVERY_PREFABS];
    }
}

/* Applies a command, apart from creating its entities, accumulating and emitting. */
static void apply(const every_change *change)
{
    applied = change;
    if (change->kind == EVERY_ACCUMULATE || change->kind == EVERY_EMIT) return;
    if (change->kind == EVERY_SPAWN || change->kind == EVERY_CLONE) {
        int parent = EVERY_NONE;
        if (!quern_entity_is_null(change->target))
            parent = must_resolve(change->target, change->stream);
        else if (change->is_recorded && !change->has_value)
            parent = clone_parents[cloned_count];
        if (change->kind == EVERY_CLONE)
            every_state->entities[must_resolve(change->entity, change->stream)].features |=
                change->features;
        (void)spawn(change->kind == EVERY_SPAWN ? &prefabs[change->prefab] : &clones[cloned_count++],
                    change, parent);
        return;
    }
    const int entity = must_resolve(change->entity, change->stream);
    every_state->entities[entity].features |= change->features;
    if (change->kind == EVERY_CREATE)
        fill_created(change, entity);
    else if (every_state->entities[entity].is_alive)
        apply_to(change, entity);
}

static void combine(const every_change *change)
{
    const int found = resolve(change->entity, change->stream);
    if (found == EVERY_NONE || !every_state->entities[found].is_alive) return;
    every_entity *entity = &every_state->entities[found];
    const uint32_t first = every_types[change->type].first_word;
    if (!every_has(entity->now.set, change->type)) return;
    for (uint32_t i = 0; i < every_types[change->type].word_count; i++) {
        uint64_t *word = &entity->now.words[first + i];
        const int64_t given = (int64_t)every_fit(&every_forms[change->type], i, change->words[first + i]);
        if (change->combine == 0) *word += (uint64_t)given;
        if (change->combine == 1 && given < (int64_t)*word) *word = (uint64_t)given;
        if (change->combine == 2 && given > (int64_t)*word) *word = (uint64_t)given;
    }
    entity->now.changed |= BIT(change->type);
    entity->features |= change->features;
}

static void publish(const every_change *change)
{
    applied = change;
    const int entity =
        quern_entity_is_null(change->entity) ? EVERY_NONE : must_resolve(change->entity, change->stream);
    cr_assert_lt(every_state->event_count, (uint32_t)MAX_EVENTS);
    every_state->events[every_state->event_count++] = (event){change->id, entity};
    if (entity != EVERY_NONE) every_state->entities[entity].features |= change->features;
}

/* The combined effect of commands is one change. */
static void apply_all(const every_change *changes, uint32_t count)
{
    change_count += count;
    every_model_begin();
    capture_clones(changes, count);
    for (uint32_t i = 0; i < count; i++)
        create(&changes[i]);
    for (uint32_t i = 0; i < count; i++)
        apply(&changes[i]);
    for (int i = 0; i < every_state->entity_count; i++)
        if (every_state->entities[i].is_alive) add_required(&every_state->entities[i]);
    for (uint32_t i = 0; i < count; i++)
        if (changes[i].kind == EVERY_ACCUMULATE) combine(&changes[i]);
    every_model_end();
    for (uint32_t i = 0; i < count; i++)
        if (changes[i].kind == EVERY_EMIT) publish(&changes[i]);
    for (int i = 0; i < every_state->entity_count; i++)
        if (quern_entity_is_provisional(every_state->entities[i].handle))
            every_state->entities[i].handle = quern_entity_null();
}

void every_model_record(const every_change *change, bool is_waiting)
{
    every_change *list = is_waiting ? every_state->waiting : recorded;
    uint32_t *count = is_waiting ? &every_state->waiting_count : &recorded_count;
    cr_assert_lt(*count, (uint32_t)(is_waiting ? MAX_WAITING : MAX_CHANGES));
    list[(*count)++] = *change;
}

/* A system that runs level by level shows its rows in another order than that of its views, in which commands count. */
static void sort_recorded(void)
{
    for (uint32_t i = 1; i < recorded_count; i++) {
        if (!recorded[i].is_by_level) continue;
        const every_change moved = recorded[i];
        uint32_t to = i;
        for (; to > 0 && recorded[to - 1].is_by_level && recorded[to - 1].ordinal > moved.ordinal; to--)
            recorded[to] = recorded[to - 1];
        recorded[to] = moved;
    }
}

void every_model_flush(bool is_waiting)
{
    if (!is_waiting) sort_recorded();
    apply_all(is_waiting ? every_state->waiting : recorded,
              is_waiting ? every_state->waiting_count : recorded_count);
    *(is_waiting ? &every_state->waiting_count : &recorded_count) = 0;
}

/* Whether the targets outside of the tree of a prefab are alive. */
static bool has_living_targets(const prefab *of)
{
    bool all = true;
    for (uint32_t m = 0; m < of->member_count; m++)
        for (uint32_t r = 0; r < EVERY_SINGLES; r++) {
            const int target = of->targets[m][r];
            if (target != EVERY_NONE && target < MEMBER) all &= every_state->entities[target].is_alive;
        }
    for (uint32_t i = 0; i < of->edge_count; i++)
        if (of->edges[i].target < MEMBER) all &= every_state->entities[of->edges[i].target].is_alive;
    return all;
}

/* Whether a call can make the change. */
static bool can_make(const every_change *change)
{
    const int entity =
        change->kind == EVERY_CREATE || change->kind == EVERY_SPAWN || change->kind == EVERY_EMIT
            ? EVERY_NONE
            : every_model_find(change->entity);
    const int target = every_model_find(change->target);
    const every_entity *at = entity == EVERY_NONE ? NULL : &every_state->entities[entity];
    switch (change->kind) {
    case EVERY_CREATE:
        return change->relation == 0 || (target != EVERY_NONE && every_state->entities[target].is_alive);
    case EVERY_SPAWN:
        if (!has_living_targets(&prefabs[change->prefab])) return false;
        return quern_entity_is_null(change->target) ||
               (target != EVERY_NONE && every_state->entities[target].is_alive);
    case EVERY_EMIT:
        return true;
    default:
        break;
    }
    if (at == NULL || !at->is_alive) return false;
    switch (change->kind) {
    case EVERY_ADD:
        return !every_has(at->now.set, change->type);
    case EVERY_REMOVE:
        return every_has(at->now.set, change->type) &&
               !every_has(complete(at->now.set & ~BIT(change->type)), change->type);
    case EVERY_TOGGLE:
        return every_has(at->now.set, change->type);
    case EVERY_RELATE:
        return can_relate(entity, change->relation, target);
    case EVERY_SET_EDGE:
        return has_edge(change->relation, entity, target);
    case EVERY_UNRELATE:
        return every_model_has_target(change->relation, entity) && can_unrelate(entity, change->relation);
    case EVERY_UNRELATE_FROM:
        if (target == EVERY_NONE || !every_state->entities[target].is_alive) return false;
        return change->relation < EVERY_SINGLES
                   ? at->targets[change->relation] == target && can_unrelate(entity, change->relation)
                   : every_model_find_edge(change->relation, entity, target) < every_state->edge_count;
    case EVERY_RENAME:
        return !is_name_taken(entity, at->targets[0], change->name);
    case EVERY_MARK:
        return every_has(at->now.set, change->type);
    case EVERY_PLACE:
        return at->targets[change->relation] != EVERY_NONE &&
               (quern_entity_is_null(change->target) ||
                (target != EVERY_NONE && every_state->entities[target].is_alive &&
                 every_state->entities[target].targets[change->relation] == at->targets[change->relation]));
    case EVERY_CLONE:
        return quern_entity_is_null(change->target) ||
               (target != EVERY_NONE && every_state->entities[target].is_alive);
    case EVERY_OVERRIDE: {
        const int shared = at->targets[EVERY_SHARED];
        return shared != EVERY_NONE && every_types[change->type].word_count > 0 &&
               every_has(every_state->entities[shared].now.set, change->type);
    }
    case EVERY_DESTROY:
        return find_ends(entity);
    default:
        return true;
    }
}

/* Whether a call that looks before it changes finds nothing to change. */
static bool finds_nothing(const every_change *change)
{
    const int entity = every_model_find(change->entity);
    if (!change->looks || entity == EVERY_NONE || !every_state->entities[entity].is_alive) return false;
    const every_values *now = &every_state->entities[entity].now;
    const every_type *type = &every_types[change->type];
    bool is_same = every_has(now->set, change->type);
    for (uint32_t w = 0; w < type->word_count && change->kind != EVERY_ADD; w++)
        is_same &= now->words[type->first_word + w] ==
                   every_fit(&every_forms[change->type], w, words_of(change)[type->first_word + w]);
    return is_same;
}

bool every_model_now(const every_change *change)
{
    if (finds_nothing(change)) return true;
    if (!can_make(change)) return false;
    apply_all(change, 1);
    return true;
}

int every_model_destroy_all(const quern_entity *list, uint32_t count, uint64_t features)
{
    int destroyed_count = 0;
    memset(ends, 0, sizeof ends);
    for (uint32_t i = 0; i < count; i++) {
        const int entity = every_model_find(list[i]);
        if (entity == EVERY_NONE || !every_state->entities[entity].is_alive) return EVERY_NONE;
        ends[entity] = true;
    }
    if (!spread_ends()) return EVERY_NONE;
    change_count += count;
    every_model_begin();
    for (int i = 0; i < every_state->entity_count; i++) {
        if (!ends[i]) continue;
        every_state->entities[i].features |= features;
        destroyed_count++;
    }
    destroy_ends();
    every_model_end();
    return destroyed_count;
}

void every_model_discard(void)
{
    every_state->waiting_count = 0;
}

/* ------------------------------------------------------------------------------------------- prefabs */

static int member_of(const int *members, uint32_t count, int entity)
{
    for (uint32_t i = 0; i < count; i++)
        if (members[i] == entity) return MEMBER + (int)i;
    return entity;
}

/* The members of a prefab: the root, then breadth first, the children of each in their order. */
uint32_t every_model_capture(uint32_t number, quern_entity root)
{
    prefab *to = &prefabs[number];
    int members[EVERY_MEMBERS] = {every_model_find(root)};
    uint32_t count = 1;
    const uint32_t link = every_types[EVERY_LINK].first_word;
    memset(to, 0, sizeof *to);
    for (uint32_t m = 0; m < count; m++)
        for (int child = every_model_next_sibling(EVERY_PARENT, members[m], true, 0); child != EVERY_NONE;
             child = every_model_next_sibling(EVERY_PARENT, members[m], false,
                                              every_state->entities[child].ranks[EVERY_PARENT])) {
            cr_assert_lt(count, (uint32_t)EVERY_MEMBERS);
            members[count++] = child;
        }
    to->member_count = count;
    for (uint32_t m = 0; m < count; m++) {
        const every_entity *entity = &every_state->entities[members[m]];
        to->values[m] = entity->now;
        to->values[m].changed = to->values[m].implied = 0;
        if (entity->now.words[link] != 0) {
            const int linked = member_of(members, count, (int)entity->now.words[link] - 1);
            to->values[m].words[link] = linked >= MEMBER ? (uint64_t)linked : entity->now.words[link];
        }
        to->is_through[m] = entity->is_through;
        if (m > 0) memcpy(to->names[m], entity->name, sizeof to->names[m]);
        for (uint32_t r = 0; r < EVERY_SINGLES; r++) {
            to->targets[m][r] = entity->targets[r] == EVERY_NONE || (m == 0 && r == 0)
                                    ? EVERY_NONE
                                    : member_of(members, count, entity->targets[r]);
            to->edge_values[m][r] = entity->edge_values[r];
            to->ranks[m][r] = entity->ranks[r];
        }
        for (uint32_t i = 0; i < every_state->edge_count; i++)
            if (every_state->edges[i].source == members[m]) {
                cr_assert_lt(to->edge_count, (uint32_t)MAX_PREFAB_EDGES);
                to->edges[to->edge_count++] = (edge){
                    every_state->edges[i].relation, (int)m,
                    member_of(members, count, every_state->edges[i].target), every_state->edges[i].value};
            }
    }
    return count;
}

/* ----------------------------------------------------------------------------------------- conversion */

every_answer every_model_waits(uint32_t type)
{
    every_answer answer = EVERY_NO;
    for (uint32_t i = 0; i < every_state->waiting_count; i++) {
        const every_change *change = &every_state->waiting[i];
        const bool has_value = change->kind == EVERY_SET || change->kind == EVERY_ACCUMULATE ||
                               (change->kind == EVERY_ADD && change->has_value);
        if (has_value && change->type == type) return EVERY_YES;
        if (change->kind == EVERY_CREATE && every_has(change->set, type)) return EVERY_YES;
        if (change->kind == EVERY_SPAWN || change->kind == EVERY_CREATE) answer = EVERY_MAY;
    }
    return answer;
}

static void convert_words(const every_conversion *conversion, uint64_t *words, uint32_t count)
{
    for (uint32_t w = 0; w < count && w < every_types[conversion->type].word_count; w++)
        words[w] = every_has(conversion->survivors, w) ? every_fit(&conversion->form, w, words[w])
                                                       : conversion->fresh[w];
}

static bool fits(const every_conversion *conversion, const uint64_t *words, uint32_t count)
{
    bool all = true;
    for (uint32_t w = 0; w < count && w < every_types[conversion->type].word_count; w++)
        all &=
            !every_has(conversion->survivors, w) || every_fit(&conversion->form, w, words[w]) == words[w];
    return all;
}

/* Reactions to removed rows keep the values that they read. */
static bool keeps(const copy *row, uint32_t type)
{
    const every_terms *terms = &every_model_program.reactions[row->reaction];
    return every_has((terms->reads | terms->writes) & row->set, type);
}

bool every_model_fits(const every_conversion *conversion)
{
    const uint32_t type = conversion->type, first = every_types[type].first_word;
    bool all = true;
    for (int i = 0; i < every_state->entity_count; i++) {
        const every_entity *entity = &every_state->entities[i];
        if (entity->is_alive && every_has(entity->now.set, type))
            all &= fits(conversion, &entity->now.words[first], EVERY_TYPE_WORDS);
        for (uint32_t r = 0; r < every_model_program.reaction_count; r++)
            if (every_model_program.reactions[r].old_type == type + 1 && entity->is_alive &&
                entity->is_set[r])
                all &= fits(conversion, entity->olds[r], 2);
    }
    for (uint32_t i = 0; i < every_state->copy_count; i++)
        if (keeps(&every_state->copies[i], type))
            all &= fits(conversion, &every_state->copies[i].words[first], EVERY_TYPE_WORDS);
    for (uint32_t p = 0; p < EVERY_PREFABS; p++)
        for (uint32_t m = 0; m < prefabs[p].member_count; m++)
            if (every_has(prefabs[p].values[m].set, type))
                all &= fits(conversion, &prefabs[p].values[m].words[first], EVERY_TYPE_WORDS);
    return all;
}

bool every_model_has_member_links(void)
{
    bool has_some = false;
    for (uint32_t p = 0; p < EVERY_PREFABS; p++)
        for (uint32_t m = 0; m < prefabs[p].member_count; m++)
            has_some |= every_has(prefabs[p].values[m].set, EVERY_LINK) &&
                        prefabs[p].values[m].words[every_types[EVERY_LINK].first_word] >= MEMBER;
    return has_some;
}

void every_model_convert(const every_conversion *conversion)
{
    const uint32_t type = conversion->type, first = every_types[type].first_word;
    for (int i = 0; i < every_state->entity_count; i++) {
        every_entity *entity = &every_state->entities[i];
        convert_words(conversion, &entity->now.words[first], EVERY_TYPE_WORDS);
        for (uint32_t r = 0; r < every_model_program.reaction_count; r++)
            if (every_model_program.reactions[r].old_type == type + 1)
                convert_words(conversion, entity->olds[r], 2);
        if (!entity->is_alive || !every_has(entity->now.set, type)) continue;
        entity->features |= every_bit(EVERY_USES_CONVERTED);
        for (uint32_t s = 0; s < every_model_program.system_count; s++)
            entity->stale[s] |= BIT(type);
    }
    for (uint32_t i = 0; i < every_state->copy_count; i++)
        convert_words(conversion, &every_state->copies[i].words[first], EVERY_TYPE_WORDS);
    for (uint32_t p = 0; p < EVERY_PREFABS; p++)
        for (uint32_t m = 0; m < prefabs[p].member_count; m++)
            convert_words(conversion, &prefabs[p].values[m].words[first], EVERY_TYPE_WORDS);
}

/* ------------------------------------------------------------------------------------ opening, saving */

static void enter_all(void)
{
    memset(by_slot, 0, sizeof by_slot);
    memset(by_id, 0, sizeof by_id);
    for (int i = 0; i < every_state->entity_count; i++) {
        enter_id(i);
        if (!every_state->entities[i].is_alive) enter_slot(i);
    }
    for (int i = 0; i < every_state->entity_count; i++)
        if (every_state->entities[i].is_alive) enter_slot(i);
}

void every_model_restart(void)
{
    recorded_count = 0;
    change_count = 0;
    enter_all();
}

void every_model_close(void)
{
    free(every_state);
    for (uint32_t i = 0; i < EVERY_SAVES; i++) {
        free(saves[i]);
        saves[i] = NULL;
    }
}

void every_model_save(uint32_t number)
{
    if (saves[number] == NULL) saves[number] = malloc(sizeof *every_state);
    cr_assert_not_null(saves[number]);
    memcpy(saves[number], every_state, sizeof *every_state);
    every_resources_save(number);
}

void every_model_restore(uint32_t number)
{
    memcpy(every_state, saves[number], sizeof *every_state);
    every_resources_restore(number);
    enter_all();
}
