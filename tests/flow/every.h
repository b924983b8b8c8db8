/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_TESTS_FLOW_EVERY_H
#define QUERN_TESTS_FLOW_EVERY_H

/* A random program that draws all features of a world together, and a serial model of it.
 *
 * The model (every_model.c, and every_model_frames.c for frames) is written from the documents and applies one change
 * after another. It knows neither chunks nor rows: an entity is known by its id, a component that each entity has.
 * While a frame runs on one thread, the callbacks of the program (every_program.c) show the model each row, write and
 * command as it happens, and the model compares what a callback sees with what it expects. So the model learns the
 * order of rows from the views, and checks that each view has the rows, and each row the values, that a serial
 * execution would have. */

#include "tests/support/failing_allocator.h"
#include "tests/support/random.h"

#include <quern/archive.h>
#include <quern/commands.h>
#include <quern/getter.h>
#include <quern/query.h>
#include <quern/relation.h>
#include <quern/schedule.h>

#include <stdatomic.h>

enum {
    EVERY_ID,     /* the entity's id; never removed */
    EVERY_NUMBER, /* two numbers, which may be accumulated */
    EVERY_LINK,   /* a described handle and a number */
    EVERY_HOOKED, /* a value with copy, move and destroy hooks */
    EVERY_TAG,
    EVERY_FLAG,  /* a tag that can be disabled */
    EVERY_MODE,  /* can be disabled, changes by row */
    EVERY_NEED,  /* requires EVERY_NUMBER and EVERY_TAG */
    EVERY_DEEP,  /* requires EVERY_NEED and EVERY_MODE */
    EVERY_GIVEN, /* has a default value */
    EVERY_WIDE,  /* the widest value */
    EVERY_ROWS,  /* changes by row */
    EVERY_LIST,  /* a list and a string, which follow from a word */
    EVERY_OFF,   /* the tag of disabled entities */
    EVERY_TYPES
};

/* The first relations have one target. */
enum {
    EVERY_PARENT,
    EVERY_HOME,
    EVERY_LOCK,
    EVERY_RING,
    EVERY_SHARED, /* that of shared values */
    EVERY_SINGLES,
    EVERY_LIKES = EVERY_SINGLES,
    EVERY_PART,
    EVERY_RELATIONS
};

enum {
    EVERY_WORDS = 30,
    EVERY_TYPE_WORDS = 8, /* the most of one type */
    EVERY_MEMBERS = 4,
    EVERY_RESOURCES = 3,
    EVERY_PREFABS = 5,
    EVERY_SYSTEMS = 12,
    EVERY_REACTIONS = 6,
    EVERY_PHASES = 3,
    EVERY_NONE = -1
};

typedef struct every_type {
    const char *name;
    uint32_t first_word, word_count; /* also words that only some definitions of the type have */
    bool can_disable, row_changes;
    uint32_t required; /* listed types, one bit each */
} every_type;

extern const every_type every_types[EVERY_TYPES];
extern const quern_relation_def every_relations[EVERY_RELATIONS];

/* A field of a form: words of the type, one after another. */
typedef struct every_field {
    uint32_t word, count, offset_bytes;
    uint32_t alias; /* which of its names the field has */
    quern_field_type type;
} every_field;

/* A definition of a type, which changes while the world lives (every_types.c): the words that values have, and where. The
 * others are 0. */
typedef struct every_form {
    uint32_t size_bytes, field_count;
    every_field fields[EVERY_TYPE_WORDS];
    quern_field_type element; /* of the list in EVERY_LIST */
    uint32_t version;         /* of functions and texts */
    bool has_default;
    uint64_t default_words[EVERY_TYPE_WORDS];
} every_form;

extern every_form every_forms[EVERY_TYPES];

/* A value of EVERY_LIST in its first form. */
typedef struct every_list {
    QUERN_LIST(uint64_t) numbers;
    quern_string text;
} every_list;

/* An element of the values of edges in a relation with many targets. */
typedef struct every_edge {
    quern_entity target;
    uint64_t value;
} every_edge;

typedef struct every_edges {
    QUERN_LIST(every_edge) list;
} every_edges;

/* Whether edges of a relation have values. */
static inline bool every_has_values(uint32_t relation)
{
    return relation == EVERY_HOME || relation == EVERY_LIKES;
}

/* Changes a value in its first form to the one that follows from a word: 0 gives empty lists. */
void every_list_write(every_list *value, uint64_t word);
uint64_t every_list_read(const every_list *value); /* the word */

static inline bool every_has(uint32_t set, uint32_t type)
{
    return (set >> type & 1) != 0;
}

/* ------------------------------------------------------------------------------------------ features */

/* Features of which the test counts how often two were used together on one entity in one frame, or, for those after
 * EVERY_FRAME_FEATURES, in one frame. */
typedef enum every_feature {
    EVERY_USES_SET,
    EVERY_USES_ADD,
    EVERY_USES_REMOVE,
    EVERY_USES_REQUIRED,
    EVERY_USES_DEFAULT,
    EVERY_USES_LINK,
    EVERY_USES_HOOKS,
    EVERY_USES_LIST,
    EVERY_USES_TOGGLE,
    EVERY_USES_TREE_SWITCH,
    EVERY_USES_OFF_TAG,
    EVERY_USES_CREATE,
    EVERY_USES_CREATE_MANY,
    EVERY_USES_DESTROY,
    EVERY_USES_SPAWN,
    EVERY_USES_SPAWN_CHANGED, /* an instance with a parent, or that later commands change */
    EVERY_USES_PARENT,
    EVERY_USES_LEVELS, /* the other relation with levels */
    EVERY_USES_REFUSAL,
    EVERY_USES_RING,
    EVERY_USES_EDGES,
    EVERY_USES_EDGE_VALUE,
    EVERY_USES_NAME,
    EVERY_USES_ACCUMULATE,
    EVERY_USES_VIEW_COMMAND,
    EVERY_USES_IMMEDIATE,
    EVERY_USES_BULK,
    EVERY_USES_WORLD_COMMANDS,
    EVERY_USES_PARALLEL_QUERY,
    EVERY_USES_EVENT,
    EVERY_USES_MARK,
    EVERY_USES_PLACE,
    EVERY_USES_BY_LEVEL,
    EVERY_USES_TARGET_TERM,
    EVERY_USES_ADDED,
    EVERY_USES_SETTING,
    EVERY_USES_OLD,
    EVERY_USES_REMOVED,
    EVERY_USES_UP,
    EVERY_USES_FILTER,
    EVERY_USES_ROW_WRITE,
    EVERY_USES_LOOKUP,
    EVERY_USES_FURTHER_QUERY,
    EVERY_USES_ORDER,
    EVERY_USES_OWN_ORDER, /* of the rows of a system */
    EVERY_USES_INDEX,
    EVERY_USES_SHARED, /* a target whose values the entity reads */
    EVERY_USES_SHARED_TERM,
    EVERY_USES_OVERRIDE, /* an own value instead of a shared one */
    EVERY_USES_CLONE,
    EVERY_USES_CLONE_COMMAND,
    EVERY_USES_RESOURCE,
    EVERY_USES_IF_CHANGED,
    EVERY_USES_LOOKS,     /* calls that change nothing if there is nothing to change */
    EVERY_USES_CONVERTED, /* a value that got another layout */
    EVERY_USES_CLEAR,
    EVERY_USES_DESTROY_MANY, /* a list, or the matches of a query */
    EVERY_USES_ANY,          /* terms of which one must be met */
    EVERY_USES_SYSTEM_SET,
    EVERY_USES_SPAWN_VALUE, /* other than that of the prefab */
    EVERY_USES_GETTER,      /* a value that was found by a getter or a ref, and written */
    EVERY_FRAME_FEATURES,
    EVERY_USES_HISTORY = EVERY_FRAME_FEATURES,
    EVERY_USES_DELTA,
    EVERY_USES_ARCHIVE,
    EVERY_USES_SESSION,
    EVERY_USES_JSON,
    EVERY_USES_COPY,            /* of the world */
    EVERY_USES_REPLACED_SYSTEM, /* by the same definition */
    EVERY_USES_NEW_SYSTEM,      /* one that was removed and added again */
    EVERY_USES_REPLACED_REACTION,
    EVERY_USES_NEW_REACTION,
    EVERY_USES_OTHER_SYSTEM,   /* one that was replaced by another definition */
    EVERY_USES_OTHER_REACTION, /* the same */
    EVERY_USES_MOVED_SYSTEM,   /* in the order of registration */
    EVERY_USES_DISCARD,        /* of commands of the world */
    EVERY_USES_NEW_VERSION,    /* of a type with the same layout */
    EVERY_USES_ADDED_FIELD,
    EVERY_USES_DROPPED_FIELD,
    EVERY_USES_MOVED_FIELD,
    EVERY_USES_RETYPED_FIELD,
    EVERY_USES_RENAMED_FIELD,
    EVERY_USES_MIGRATION,
    EVERY_USES_NEW_RESOURCE,
    EVERY_USES_NEW_EVENT,
    EVERY_USES_NEW_EDGES,    /* values of edges with another layout */
    EVERY_USES_REFUSED_TYPE, /* a layout that values or waiting commands do not allow */
    EVERY_FEATURES
} every_feature;

extern const char *const every_feature_names[EVERY_FEATURES];

/* The bit of a feature: among those of an entity, or among those of a frame. */
static inline uint64_t every_bit(uint32_t feature)
{
    return (uint64_t)1 << feature % EVERY_FRAME_FEATURES;
}

/* -------------------------------------------------------------------------------------------- changes */

typedef enum every_kind {
    EVERY_CREATE,
    EVERY_DESTROY,
    EVERY_ADD, /* with value or without */
    EVERY_SET,
    EVERY_REMOVE,
    EVERY_TOGGLE, /* a component */
    EVERY_SWITCH, /* a tree */
    EVERY_RELATE,
    EVERY_UNRELATE,
    EVERY_SET_EDGE, /* the value of an edge */
    EVERY_UNRELATE_FROM,
    EVERY_RENAME,
    EVERY_ACCUMULATE,
    EVERY_SPAWN,
    EVERY_CLONE,
    EVERY_OVERRIDE, /* a shared value */
    EVERY_EMIT,
    EVERY_MARK,  /* as changed */
    EVERY_PLACE, /* among siblings */
    EVERY_CLEAR
} every_kind;

/* A change, by command or by a call. */
typedef struct every_change {
    every_kind kind;
    bool is_by_level; /* recorded by a system that runs level by level, in the view with this ordinal */
    uint32_t ordinal;
    uint32_t stream;         /* identifies the callback that has recorded the command */
    quern_entity entity;     /* the root, for EVERY_SPAWN */
    quern_entity target;     /* target, parent, or the handle in a value of EVERY_LINK; may be null */
    uint32_t type, relation; /* relation of EVERY_CREATE: number + 1, or 0 */
    uint32_t set;            /* types of EVERY_CREATE */
    uint32_t combine;        /* 0: sum, 1: least, 2: greatest */
    uint32_t prefab;         /* of EVERY_SPAWN */
    uint32_t value_type;     /* of EVERY_SPAWN: type of a value that replaces that of the prefab, or 0 */
    uint32_t value_member;   /* which has it */
    bool has_value;          /* of EVERY_ADD */
    bool
        looks; /* of EVERY_SET: only a value that differs is set; of EVERY_ADD: only what is missing is added */
    bool is_recorded; /* of EVERY_CLONE: by command */
    bool is_shared;   /* of EVERY_CREATE: an entity with shared values */
    uint32_t
        member_count; /* of EVERY_CLONE, and of EVERY_OVERRIDE if it makes a copy of the shared entity */
    bool enabled;     /* of EVERY_TOGGLE and EVERY_SWITCH */
    char name[4];     /* of EVERY_RENAME */
    uint64_t id;      /* of EVERY_CREATE and EVERY_EMIT */
    uint64_t ids[EVERY_MEMBERS];         /* of the members of EVERY_SPAWN and of copies */
    quern_entity members[EVERY_MEMBERS]; /* their handles */
    uint64_t words[EVERY_WORDS];
    uint64_t edge_value; /* of EVERY_SET_EDGE; of EVERY_RELATE: 0 for none */
    uint64_t features;
} every_change;

/* ---------------------------------------------------------------------------------- systems, reactions */

/* The rows that a system or reaction has, and what it does with them. */
typedef struct every_terms {
    uint32_t with, without, optional, any; /* types, one bit each; EVERY_ID is a term of its own */
    uint32_t reads, writes;                /* of `with`, `optional` and `any`; writes only of `with` */
    quern_term_enabled enabled[EVERY_TYPES];
    bool has_up, up_is_nearest, up_is_optional;
    uint32_t up_type, up_relation;
    bool by_target; /* `tie` is a target term */
    quern_entity target;
    bool is_by_level;     /* the system runs level by level in the relation of its up-term */
    uint32_t tie;         /* relation in which rows have a target, + 1; 0: none */
    uint32_t filter_type; /* type of the change filter, + 1; 0: none */
    uint32_t old_type;    /* type of the old term, + 1; 0: none */
    uint32_t triggers;    /* of a reaction */
    bool is_whole;        /* views are whole chunks */
    uint32_t order;       /* type whose first word sorts the rows of the system, + 1; 0: none */
    uint32_t uses_resources,
        watched;           /* resources that the system reads, and those in if_changed; one bit each */
    uint32_t put_resource; /* the resource that `end` writes, + 1; 0: none */
    uint32_t sets;         /* that the system is in, one bit each */
} every_terms;

/* Sets of systems: one is switched between frames, one has a condition, which reads the first resource. */
enum { EVERY_SWITCHED, EVERY_ASKED, EVERY_SETS };

static inline bool every_asked_runs(uint64_t value)
{
    return value % 3 != 0;
}

/* ----------------------------------------------------------------------------------------- the model */

typedef struct every_values {
    uint32_t set, disabled;
    uint32_t implied;            /* types that types required when they were added */
    uint32_t changed;            /* types with values that were set */
    uint64_t words[EVERY_WORDS]; /* the handle of EVERY_LINK is the number of the entity + 1 */
} every_values;

typedef struct every_entity {
    uint64_t id;
    quern_entity handle; /* provisional, or null, until a view has shown it */
    uint32_t stream;     /* that has created it, while the handle is provisional */
    bool is_alive;
    bool is_destroyed; /* by a command of its own at this sync point */
    bool is_through;   /* if it is disabled, it is disabled through its parent */
    every_values now;
    every_values kept; /* the effect of all commands but removes */
    int targets[EVERY_SINGLES];
    int64_t ranks[EVERY_SINGLES];        /* among siblings, ascending */
    uint64_t edge_values[EVERY_SINGLES]; /* of the edge to the target */
    char name[4];
    bool is_added[EVERY_REACTIONS], is_set[EVERY_REACTIONS]; /* what a reaction has not seen */
    uint64_t olds[EVERY_REACTIONS][2];                       /* the first words of the old value */
    uint32_t
        stale[EVERY_SYSTEMS]; /* types whose values have changed since the system has run, one bit each */
    uint32_t visited;         /* systems that have visited the entity in this phase, one bit each */
    uint64_t features;
} every_entity;

/* Begins with a world without entities. `reactions` and `systems` describe the schedule. */
void every_model_open(const every_terms *system_terms, const uint32_t *system_phases,
                      uint32_t systems_count, const every_terms *reaction_terms, uint32_t reactions_count);
void every_model_close(void);

/* Saves and restores the whole model, for histories. Up to EVERY_SAVES numbers. */
enum { EVERY_SAVES = 3 };
void every_model_save(uint32_t number);
void every_model_restore(uint32_t number);

/* An edge of a relation with many targets. */
typedef struct every_model_edge {
    uint32_t relation;
    int source, target;
    uint64_t value;
} every_model_edge;

enum { EVERY_MODEL_ENTITIES = 4000 };

const every_model_edge *every_model_edge_at(uint32_t i);
uint32_t every_model_edge_count(void);
bool every_model_has_target(uint32_t relation, int source);

/* Returns the first source of a target, or the next one after a rank; EVERY_NONE at the end. */
int every_model_next_sibling(uint32_t relation, int target, bool is_first, int64_t rank);
uint32_t every_model_count(void); /* entities, including dead ones */
every_entity *every_model_at(int entity);
int every_model_find(quern_entity handle);                /* EVERY_NONE: unknown */
int every_model_find_id(uint64_t id);                     /* EVERY_NONE: unknown */
void every_model_learn(quern_entity handle, uint64_t id); /* the world has the entity */
uint64_t every_model_change_count(void);                  /* commands and calls so far */

/* Changes that a call makes at once. Returns whether the call must succeed; if so, the change is made. */
bool every_model_now(const every_change *change);

/* Destroys a list of entities in one call. Returns how many are destroyed with those of their trees, or EVERY_NONE if the
 * call must fail. */
int every_model_destroy_all(const quern_entity *list, uint32_t count, uint64_t features);

/* Begins and ends a call that makes several changes at once, of which each must be possible. */
void every_model_begin(void);
void every_model_end(void);

/* Records a command of the running callback; for the world's own commands if is_waiting. */
void every_model_record(const every_change *change, bool is_waiting);
void every_model_flush(bool is_waiting); /* applies the recorded commands */

/* Captures the tree of an entity as a prefab. Returns the number of its members. */
uint32_t every_model_capture(uint32_t number, quern_entity root);

/* The reactions of the schedule begin to watch. Everything before counts as seen. */
void every_model_begin_schedule(void);

/* Between frames: removes and adds again. What a change filter, a reaction or a reader has not seen goes. */
void every_model_renew_system(uint32_t system);
void every_model_renew_reaction(uint32_t reaction);
void every_model_skip_events(uint32_t reader);

/* Between frames: the system, or reaction, has other terms than before. */
void every_model_replace_system(uint32_t system, const every_terms *replaced);
void every_model_replace_reaction(uint32_t reaction, const every_terms *replaced);

/* Between frames: the systems are registered in this order. */
void every_model_order_systems(const uint32_t *order);

/* Drops the waiting commands of the world. */
void every_model_discard(void);

/* Between frames: enables or disables. */
void every_model_enable_system(uint32_t system, bool is_enabled);
void every_model_enable_reaction(uint32_t reaction, bool is_enabled);
void every_model_enable_switched(bool is_enabled); /* the set */

/* A frame. Callbacks announce themselves before they show rows or record commands. */
void every_model_begin_frame(void);
void every_model_enter_system(uint32_t system);
void every_model_end_system(uint32_t system); /* the system's `end` is called */
void every_model_enter_reaction(uint32_t reaction);
void every_model_end_frame(void);

/* Whether the entity's row is one of the system's. */
bool every_model_matches(const every_terms *terms, int entity);

/* A row of the running system, with the handle and the id that the view shows. Returns the entity. */
int every_model_visit(uint32_t system, quern_entity handle, uint64_t id);

/* A row of the running reaction, of one kind. olds: the old value, or NULL; values: those of a copy of a removed row,
 * in the order of words of the types that the reaction reads, of which the row has those in `set`. Returns the entity, or
 * EVERY_NONE for removed rows. */
int every_model_visit_reaction(uint32_t reaction, uint32_t kind, quern_entity handle, uint64_t id,
                               uint32_t set, const uint64_t *words, const uint64_t *olds);

/* The system has written a value, or switched a component, of its row. */
void every_model_write(int system, int entity, uint32_t type, const uint64_t *words);
void every_model_toggle(int system, int entity, uint32_t type, bool enabled);

/* The next event that a reader sees; readers have numbers below 4. */
void every_model_read_event(uint32_t reader, uint64_t id, quern_entity entity);
void every_model_end_events(uint32_t reader); /* the reader has seen all */

int every_model_nearest(const every_terms *terms,
                        int entity); /* whose value the up-term reads; EVERY_NONE */

/* Forgets what is lost if the trees of the first list are saved without the others: targets in other trees, and handles
 * of their entities. roots: those of the first list. */
void every_model_cut(const quern_entity *roots, uint32_t count);

/* A type gets another form. survivors: the words that values keep, one bit each; the others become those in `fresh`. */
typedef struct every_conversion {
    uint32_t type, survivors;
    uint64_t fresh[EVERY_TYPE_WORDS];
    every_form form;
} every_conversion;

/* Whether waiting commands have values of the type; EVERY_MAY: they have some that depend on more. */
typedef enum every_answer { EVERY_NO, EVERY_MAY, EVERY_YES } every_answer;
every_answer every_model_waits(uint32_t type);
bool every_model_fits(const every_conversion *conversion); /* whether all values fit the new form */
bool every_model_has_member_links(void); /* whether a prefab has handles of its members in EVERY_LINK */
void every_model_convert(const every_conversion *conversion);

/* What a comparison of the model with a world leaves out. */
typedef struct every_comparison {
    uint32_t ignored_types; /* one bit each */
    bool ignores_order;     /* of siblings */
    bool ignores_resources;
    bool ignores_dead_handles; /* handles of dead entities may be null */
} every_comparison;

/* Compares the world with the model. The world may be another one than that of the program, for which the entities are
 * found by their ids. Learns the handles if it is the world of the program (is_own). */
void every_model_compare(quern_world *world, bool is_own, const every_comparison *comparison);

quern_world *every_open_other(void);
quern_component every_leave_out(void); /* what archives cannot have */
void every_compare_other(quern_world *other, bool keeps_order);

extern uint64_t every_pairs[EVERY_FEATURES][EVERY_FEATURES];

/* Counts the pairs of features of this frame. frame_features: of the frame itself. */
void every_model_count_pairs(uint64_t frame_features);

/* -------------------------------------------------------------------------------------- types in a world */

typedef struct every_handles {
    quern_component types[EVERY_TYPES];
    quern_relation relations[EVERY_RELATIONS];
    quern_component edge_values[EVERY_RELATIONS]; /* null: edges have no values */
    quern_resource resources[EVERY_RESOURCES];
} every_handles;

void every_register(quern_world *into, every_handles *handles);

/* ----------------------------------------------------------------------------------------- resources */

/* The value of a resource. */
typedef struct every_resource {
    uint64_t value;
    quern_entity handle; /* null: none */
    int entity;          /* that of the handle, in the model */
} every_resource;

void every_resources_register(quern_world *into, quern_resource handles[EVERY_RESOURCES]);
void every_resources_first_forms(void);
void every_resource_redefine(uint32_t resource, uint32_t form); /* with one of three forms */
void every_resources_play(void);                                /* writes some between frames */

/* In a system: reads those that it uses, which must have the values of the model. */
void every_resources_check(quern_context *context, const every_terms *terms);

/* Writes a value at the address of a resource, in a system or, with EVERY_NONE, in other code. */
void every_resource_write(int system, uint32_t resource, void *value, random_source *random);

/* Reads a value, without the entity of the handle. */
every_resource every_resource_read(uint32_t resource, const void *value);

/* The model's part. */
void every_resources_open(void);
void every_resources_save(uint32_t number);
void every_resources_restore(uint32_t number);
every_resource every_resource_at(uint32_t resource);
void every_resources_forget(uint32_t system); /* the system is a new one, or watches others */

/* Whether a system runs now, by its if_changed. If so, it has seen the values. */
bool every_resources_let_run(uint32_t system, const every_terms *terms);

/* ----------------------------------------------------------------------------------------- the program */

enum { EVERY_MOST_KNOWN = 4000 };

/* The run of the program. */
typedef struct every_scene {
    uint64_t seed, frame;
    bool has_hooks;             /* the seed has EVERY_HOOKED, which deltas cannot write */
    bool is_modelled;           /* the model follows this run, which is on one thread */
    bool has_no_prefabs;        /* nothing is spawned, as in a copy of the world, which has no prefabs */
    bool is_harmless;           /* callbacks record commands without effect, which rule out fast paths */
    failing_allocator *failing; /* of the world, in runs in which allocations fail; otherwise NULL */
    uint64_t failed_count;      /* calls and frames that failed for lack of memory, and were repeated */
    quern_world *world;
    quern_world *replica; /* a world that follows by deltas, or NULL */
    quern_schedule *schedule;
    every_handles types;
    /* the entities that are alive when a frame begins, in the order of their ids */
    quern_entity known[EVERY_MOST_KNOWN];
    uint32_t known_count;
    uint64_t schedule_features; /* how the schedule was changed before the frame */
    uint64_t type_features;     /* how types were redefined */
    uint32_t converted_count;   /* types with another layout than before */
    atomic_ullong observed;     /* a sum over all that callbacks have seen */
} every_scene;

extern every_scene every;

uint64_t every_mix(uint64_t x); /* a hash */

void every_draw_program(void); /* draws the systems and reactions of a seed */
void every_open(quern_schedule_def style, const quern_allocator *allocator);
void every_close(void);

/* Makes a world with the same schedule, copies the world and the state of the schedule into it, and lets the program go on
 * in the copy, until every_close_copy. */
quern_world *every_open_copy(quern_schedule_def style);
void every_close_copy(void);

/* Checks that exactly the entities with a type that has entity hooks have an object outside of the world. */
void every_check_outside(quern_world *in);

/* Checks that refs which were made in earlier frames find values where calls find them. */
void every_check_refs(void);

/* Whether the seed has types with entity hooks. */
static inline bool every_has_entity_hooks(void)
{
    return every.seed % 3 != 0;
}
void every_learn_known(void);

/* Before frames that no restored frame precedes, gives types other definitions. Between them come changes, of which some
 * wait. */
bool every_changes_layouts(void); /* in this frame, also layouts */
void every_change_before(void);
void every_change_types(void);
void every_play_between(quern_jobs *jobs); /* plays the calls before the next frame */

/* Returns the size of a value. */
uint32_t every_value_bytes(uint32_t type);

/* Reads the words of a value, and writes those that the type's form has. Words are numbered among those of all types. */
void every_read(uint32_t type, const void *value, uint64_t *words);
void every_write(uint32_t type, void *value, const uint64_t *words);
uint32_t every_last_word(uint32_t type); /* of those that the form has */

/* The same in any form, with words numbered from 0. every_fit returns what a stored word is when it is read. */
bool every_form_has(const every_form *form, uint32_t word);
uint64_t every_fit(const every_form *form, uint32_t word, uint64_t value);

#endif
