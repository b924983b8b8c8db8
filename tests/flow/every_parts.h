/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_TESTS_FLOW_EVERY_PARTS_H
#define QUERN_TESTS_FLOW_EVERY_PARTS_H

/* What the parts of the random program have in common: changes (every_change.c), systems and reactions (every_systems.c), and
 * the world with the calls between frames (every_program.c). */

#include "tests/flow/every.h"
#include "tests/flow/flow_setup.h"
#include "tests/support/tracked.h"

#define BIT(type) ((uint32_t)1 << (type))

enum { CROWD = 220 };

/* An event, in any of its forms. */
typedef struct ping {
    uint64_t id;
    quern_entity entity;
} ping;

/* The values of edges in the relation EVERY_HOME. */
enum { EVERY_HOME_FORMS = 3 };
extern uint32_t every_home_form;
quern_component_def every_home_def(uint32_t form);
void every_home_write(uint64_t value, uint64_t room[2]);
uint64_t every_home_read(const void *value);

enum { EVERY_EVENT_FORMS = 3 };
extern uint32_t every_event_form;
quern_event_def every_event_def(uint32_t form);
const void *every_ping_write(ping value, uint64_t room[4]);
ping every_ping_read(const void *values, uint32_t i);

enum {
    LEVEL_SYSTEM = 3,
    TARGET_SYSTEM = 7,
    PLAIN_SYSTEMS = 8,
    LOOKING = PLAIN_SYSTEMS,
    EXCLUSIVE,
    READING,
    LISTENING
};

/* The prefab whose instances share values, and the one that is captured again while the program runs. */
enum { SHARING_PREFAB = 3, LATER_PREFAB };

enum { KEPT_REFS = 24 };

/* Objects outside of the world of the program, one for each entity with a type that has entity hooks. */
enum { OUTSIDE_TYPES = 2, OUTSIDE_SLOTS = 1 << 16 };

typedef struct outside_objects {
    quern_entity entities[OUTSIDE_TYPES][OUTSIDE_SLOTS]; /* by slot */
    uint32_t counts[OUTSIDE_TYPES];
} outside_objects;

/* What the program has in its world, and in the schedule. */
typedef struct opened {
    quern_system systems[EVERY_SYSTEMS], reactions[EVERY_REACTIONS];
    /* In the order of registration: systems, and EVERY_SYSTEMS + reaction. */
    uint32_t order[EVERY_SYSTEMS + EVERY_REACTIONS];
    uint32_t order_count;
    bool is_off[PLAIN_SYSTEMS + EVERY_REACTIONS]; /* systems, then reactions */
    quern_event event;
    quern_event_reader *reader;
    quern_prefab prefabs[EVERY_PREFABS];
    quern_query *everyone, *few, *rare;
    quern_getter *number_getter, *rows_getter; /* the first one has refs */
    quern_ref refs[KEPT_REFS];                 /* to EVERY_NUMBER of entities of earlier frames */
    quern_index *number_index;                 /* on the first number of EVERY_NUMBER */
    quern_entity dummy_entity;
    outside_objects outside;
} opened;

extern opened every_own;
extern every_terms every_system_terms[EVERY_SYSTEMS], every_reaction_terms[EVERY_REACTIONS];
extern uint32_t every_system_phases[EVERY_SYSTEMS];
extern uint32_t every_member_counts[EVERY_PREFABS];
extern uint32_t every_member_sets[EVERY_PREFABS][EVERY_MEMBERS]; /* their types */
extern tracked_counts every_hook_counts[2];
extern uint32_t every_reaction_runs[EVERY_REACTIONS]; /* in this frame */

/* Something that changes the world: a callback that records, or code that calls. */
typedef struct actor {
    quern_commands *commands; /* NULL: immediate calls */
    quern_context *context;   /* NULL outside of systems */
    uint32_t stream, ordinal;
    bool is_by_level;
    bool waits;          /* the commands are those of the world */
    bool is_interrupted; /* calls may change the world before its commands are applied */
    bool is_mute;        /* there is no memory for commands */
    uint64_t features;
    random_source random;
    uint64_t id_base;
    uint32_t id_count;
} actor;

/* The value of a type from the words of a change, until every_release_value. */
typedef union value_room {
    quern_list list;
    uint64_t words[EVERY_WORDS];
} value_room;

/* The memory of a definition, which ends with the call that gets it. */
typedef struct every_definition every_definition;

quern_component_def *every_define(uint32_t type, const every_form *form, every_definition **out_room);
void every_require(uint32_t type, quern_component_def *def, const every_handles *handles);
void every_forget_definition(every_definition *room);
void every_field_name(char name[16], const every_field *field);
void every_forms_open(void); /* those with which a world begins */
void every_form_draw(uint32_t type, every_form *form, random_source *random);
void every_form_draw_default(uint32_t type, every_form *form, random_source *random);
void every_form_read(uint32_t type, const every_form *form, const void *value, uint64_t *words);
void every_form_write(uint32_t type, const every_form *form, void *value, const uint64_t *words);
tracked *every_hooked(const every_form *form, const void *value);
void every_give_entity_hooks(quern_component_def *def, uint32_t type, const every_form *form);
actor every_program_actor(uint64_t salt, quern_commands *commands);

void every_must_record(quern_result result);
uint64_t every_fresh_id(actor *by);

/* A call that is repeated with memory if it fails for lack of it, having changed nothing. */
typedef struct every_attempt {
    uint64_t hash;
    bool has_failed;
} every_attempt;

every_attempt every_begin_attempt(void);
bool every_must_repeat(every_attempt *attempt, quern_result result);
uint32_t every_next_stream(void);
uint32_t every_list_tree(quern_entity root, quern_entity members[EVERY_MEMBERS]);
const void *every_value_of(uint32_t type, const every_change *change, value_room *room);
void every_release_value(uint32_t type, value_room *room);
uint64_t every_feature_of(const every_change *change);
quern_entity every_make(actor *by, every_change change);
quern_entity every_pick(actor *by);
uint32_t every_pick_type(actor *by);
uint32_t every_pick_relation(actor *by);
void every_draw_words(actor *by, every_change *change);
quern_entity every_draw_spawn(actor *by, bool is_plain);
quern_entity every_draw_shared(actor *by);
void every_create_some(actor *by);

/* One of EVERY_MANY_KINDS calls for many entities. */
enum { EVERY_MANY_KINDS = 8 };
void every_act_on_many(actor *by, uint32_t kind);
void every_draw_some(actor *by, quern_entity entity);
void every_act(actor *by, quern_entity self);
quern_system_def every_def_of_system(uint32_t s);
quern_set_def every_def_of_set(uint32_t set);
void every_replace_system(quern_system system, const quern_system_def *def);
quern_system_def every_def_of_reaction(uint32_t r);
bool every_redraw_system(uint32_t s, random_source *random);
void every_redraw_reaction(uint32_t r, random_source *random);
void every_add_system(uint32_t number);
void every_run_parallel(quern_context *context, const quern_view *view);

#endif
