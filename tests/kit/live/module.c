/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* The module of test_live.c. LIVE_VARIANT is what distinguishes its builds:
 *
 *   first     places move by 1, names have hooks
 *   faster    another constant
 *   wider     Place has a field more, before the others; a system that uses it stands between two others
 *   leaner    neither the system "count" nor the type Name
 *   refusing  load registers and adds, and then fails
 *   circular  the systems' order has a circle
 *   twice     load registers a type in two ways
 *   bare      the same, with a list that has elements without fields
 *   other     another module: shares Place, has a system of its own
 *   foreign   shares a Place of another layout
 *   newer     brings the type Fresh
 *   rival     another module, brings Fresh with another layout
 *   thief     another module, adds a system "move", too
 *   user      another module, uses Place and does not register it
 *   pair      another module, with the systems left and right
 *   turned    the same, in the other order
 *   empty     exports nothing */

#include <quern/kit/live.h>
#include <quern/quern.h>

#include <stdlib.h>
#include <string.h>

#define first    1
#define faster   2
#define wider    3
#define leaner   4
#define refusing 5
#define circular 6
#define twice    7
#define other    8
#define foreign  9
#define empty    10
#define newer    11
#define rival    12
#define thief    13
#define user     14
#define pair     15
#define turned   16
#define bare     17

#if LIVE_VARIANT != empty

#if LIVE_VARIANT == wider || LIVE_VARIANT == foreign
typedef struct Place {
    int32_t z, x, y;
} Place;
#define PLACE_FIELDS z, x, y
#else
typedef struct Place {
    int32_t x, y;
} Place;
#define PLACE_FIELDS x, y
#endif

/* Text that the value owns. */
typedef struct Name {
    const char *text;
} Name;

/* What the module tells the test, as a resource that outlives its versions. Its fields are not described, so hashes leave
 * it out. */
typedef struct Told {
    int32_t move_step;    /* of the version that ran last */
    int32_t count_total;  /* runs of the system count */
    int32_t leave_count;  /* calls of leave */
    int32_t owned_count;  /* objects that were released */
    int32_t copied_count; /* calls of the copy hook */
    int32_t set_by;       /* variant whose entity hook was called last */
} Told;

#if LIVE_VARIANT == wider
typedef struct Bump {
    int32_t strength, by;
} Bump;
typedef struct Rules {
    int32_t two, one;
} Rules;
#define BUMP_FIELDS  strength, by
#define RULES_FIELDS two, one
#else
typedef struct Bump {
    int32_t by;
} Bump;
typedef struct Rules {
    int32_t one;
} Rules;
#define BUMP_FIELDS  by
#define RULES_FIELDS one
#endif

typedef struct Fresh {
    int32_t a;
#if LIVE_VARIANT == rival
    int32_t b;
#endif
} Fresh;

/* Modules beside the one called game. */
enum {
    IS_OTHER = LIVE_VARIANT == other || LIVE_VARIANT == foreign || LIVE_VARIANT == rival ||
               LIVE_VARIANT == thief || LIVE_VARIANT == user || LIVE_VARIANT == pair ||
               LIVE_VARIANT == turned
};

static quern_component place, name, fresh;
static quern_resource told, rules;
static quern_event bump;
static Told *told_value; /* starts anew in each version */

#if LIVE_VARIANT == first
enum { STEP = 1 };
#else
enum { STEP = 10 };
#endif

/* ------------------------------------------------------------------------------------------------ hooks */

static void construct_names(void *values, uint32_t count, void *user_data)
{
    (void)user_data;
    memset(values, 0, count * sizeof(Name));
}

static void copy_names(void *targets, const void *sources, uint32_t count, void *user_data)
{
    Name *to = targets;
    const Name *from = sources;
    (void)user_data;
    for (uint32_t i = 0; i < count; i++) {
        to[i].text = NULL;
        if (from[i].text == NULL) continue;
        const size_t bytes = strlen(from[i].text) + 1;
        char *text = malloc(bytes);
        if (text != NULL) memcpy(text, from[i].text, bytes);
        to[i].text = text;
    }
    if (told_value != NULL) told_value->copied_count++;
}

static void move_names(void *targets, void *sources, uint32_t count, void *user_data)
{
    (void)user_data;
    memcpy(targets, sources, count * sizeof(Name));
}

static void destroy_names(void *values, uint32_t count, void *user_data)
{
    Name *names = values;
    (void)user_data;
    for (uint32_t i = 0; i < count; i++)
        free((char *)(uintptr_t)names[i].text);
}

/* ---------------------------------------------------------------------------------------------- systems */

QUERN_SYSTEM(move, (Place, p))
{
    Told *state = quern_context_resource_write(context, told);
    state->move_step = STEP;
    QUERN_ROWS(i)
    {
        p[i].x += STEP;
#if LIVE_VARIANT == wider
        p[i].y = p[i].x + p[i].z;
#endif
    }
}

/* Runs between move and last in the variant wider. */
QUERN_SYSTEM(lift, (Place, p))
{
    (void)context;
    QUERN_ROWS(i) p[i].y = p[i].x;
}

/* Doubles x, which starts over below 2^28, so that tests of many frames do not overflow. */
QUERN_SYSTEM(last, (Place, p))
{
    QUERN_ROWS(i) p[i].x = p[i].x % (1 << 28) * 2;
}

static void count(quern_context *context)
{
    Told *state = quern_context_resource_write(context, told);
    state->count_total++;
    quern_emit(quern_context_emitter(context, bump), &(Bump){.by = STEP});
}

/* Of the variant user. */
QUERN_SYSTEM(watch, (const Place, p))
{
    (void)context;
    (void)p;
    (void)count;
}

static void wave(quern_context *context)
{
    Told *state = quern_context_resource_write(context, told);
    state->count_total += 1000;
}

static void release_owned(void *object)
{
    Told *state = object;
    state->owned_count++;
}

/* ------------------------------------------------------------------------------------------------- load */

static void note_set(quern_world *world, quern_entity entity, void *value, void *user_data)
{
    (void)world, (void)entity, (void)value, (void)user_data;
    if (told_value != NULL) told_value->set_by = LIVE_VARIANT;
}

static quern_result register_types(quern_live_module *module)
{
    static const Name unnamed = {"unnamed"};
    const quern_component_def def = {
        QUERN_TYPE(Name), .hooks = {construct_names, copy_names, move_names, destroy_names, NULL},
        .default_value = &unnamed, .entity_hooks = {.on_set = note_set}};
    if (LIVE_VARIANT != user)
        QUERN_TRY(QUERN_COMPONENT_REGISTER_FIELDS(module->world, &place, Place, PLACE_FIELDS));
    if (LIVE_VARIANT == newer) QUERN_TRY(QUERN_COMPONENT_REGISTER_FIELDS(module->world, &fresh, Fresh, a));
#if LIVE_VARIANT == rival
    QUERN_TRY(QUERN_COMPONENT_REGISTER_FIELDS(module->world, &fresh, Fresh, a, b));
#endif
    if (!IS_OTHER) QUERN_TRY(QUERN_RESOURCE_REGISTER_FIELDS(module->world, &rules, Rules, RULES_FIELDS));
    if (LIVE_VARIANT != leaner && !IS_OTHER)
        QUERN_TRY(quern_component_register(module->world, &def, &name));
    if (!IS_OTHER) QUERN_TRY(QUERN_EVENT_REGISTER_FIELDS(module->world, &bump, Bump, BUMP_FIELDS));
    return QUERN_RESOURCE_REGISTER(module->world, &told, Told);
}

static quern_result add_systems(quern_schedule *schedule)
{
    const quern_resource_access writes = {told, QUERN_ACCESS_WRITE};
    const quern_system_def counted = {
        .name = "count", .begin = count, .resources = {writes}, .emits = {bump}};
    const quern_system_def waved = {.name = "wave", .begin = wave, .resources = {writes}};
    const quern_system_def lifted = {.name = "lift", .run = lift, .terms = {quern_term_write(place)}};
    if (LIVE_VARIANT == thief) QUERN_TRY(QUERN_ADD_SYSTEM(schedule, move, .resources = {writes}));
    if (LIVE_VARIANT == user) QUERN_TRY(QUERN_ADD_SYSTEM(schedule, watch));
    if (LIVE_VARIANT == pair || LIVE_VARIANT == turned) {
        const quern_system_def sides[] = {{.name = "left", .begin = wave, .resources = {writes}},
                                          {.name = "right", .begin = wave, .resources = {writes}}};
        for (int i = 0; i < 2; i++)
            QUERN_TRY(quern_schedule_add_system(schedule, &sides[LIVE_VARIANT == pair ? i : 1 - i], NULL));
    }
    if (IS_OTHER) return quern_schedule_add_system(schedule, &waved, NULL);
    if (LIVE_VARIANT == circular)
        QUERN_TRY(QUERN_ADD_SYSTEM(schedule, move, .resources = {writes}, .after = {"last"}));
    else
        QUERN_TRY(QUERN_ADD_SYSTEM(schedule, move, .resources = {writes}));
    if (LIVE_VARIANT == wider) {
        quern_system system;
        QUERN_TRY(quern_schedule_add_system(schedule, &lifted, &system));
        if (quern_schedule_find_system(schedule, "lift").bits != system.bits)
            return quern_error_set(QUERN_ERROR_CORRUPT, "the handle that load got is wrong");
    }
    QUERN_TRY(QUERN_ADD_SYSTEM(schedule, last, .after = {"move"}));
    return LIVE_VARIANT != leaner ? quern_schedule_add_system(schedule, &counted, NULL) : QUERN_OK;
}

#if LIVE_VARIANT == bare
typedef struct Ware {
    int32_t kind, count;
} Ware;

typedef struct Pack {
    QUERN_LIST(Ware) wares;
} Pack;

/* Registers a type with the description of its elements, and without. */
static quern_result register_twice(quern_world *world)
{
    quern_component_def def = {QUERN_TYPE(Pack),
                               .fields = {QUERN_LIST_FIELD(Pack, wares, Ware, kind, count)}};
    quern_component pack;
    QUERN_TRY(quern_component_register(world, &def, &pack));
    quern_element element = *def.fields[0].element;
    element.fields = NULL;
    def.fields[0].element = &element;
    return quern_component_register(world, &def, &pack);
}
#endif

static quern_result load(quern_live_module *module)
{
    QUERN_TRY(register_types(module));
    told_value = quern_resource_get(module->world, told);
    QUERN_TRY(quern_live_own(module, told_value, release_owned));
    QUERN_TRY(add_systems(module->schedule));
    if (LIVE_VARIANT == refusing)
        return quern_error_set(QUERN_ERROR_UNAVAILABLE, "the module needs another planet");
#if LIVE_VARIANT == bare
    QUERN_TRY(register_twice(module->world));
#endif
    return LIVE_VARIANT == twice ? QUERN_COMPONENT_REGISTER_FIELDS(module->world, &place, Place, x)
                                 : QUERN_OK;
}

static void leave(quern_live_module *module)
{
    if (told_value != NULL && module->version > 0) told_value->leave_count++;
}

QUERN_LIVE_MODULE(load, leave)

#endif
