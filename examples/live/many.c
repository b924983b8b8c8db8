/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* The module of live --measure: 20 components and 50 systems. With WIDER, the first component has another field, before the
 * others. */
#include <quern/kit/live.h>
#include <quern/quern.h>

#include <stdio.h>

enum { TYPES = 20, SYSTEMS = 50 };

typedef struct Plain {
    float x, y, z;
    int32_t count;
} Plain;

#ifdef WIDER
typedef struct First {
    float weight, x, y, z;
    int32_t count;
} First;
#else
typedef Plain First;
#endif

static char type_names[TYPES][16], system_names[SYSTEMS][16];

static void work(quern_context *context, const quern_view *view)
{
    Plain *values = quern_view_write(view, 0);
    const uint32_t count = view->count;
    (void)context;
    for (uint32_t i = 0; i < count; i++)
        values[i].count++;
}

static quern_result load(quern_live_module *module)
{
    quern_component types[TYPES];
    for (int i = 0; i < TYPES; i++) {
        (void)snprintf(type_names[i], sizeof type_names[i], "Type %d", i);
        quern_component_def def = {QUERN_TYPE(Plain), .fields = QUERN_FIELDS(Plain, x, y, z, count)};
#ifdef WIDER
        if (i == 0)
            def = (quern_component_def){QUERN_TYPE(First),
                                        .fields = QUERN_FIELDS(First, weight, x, y, z, count)};
#endif
        def.name = def.type_name = type_names[i];
        QUERN_TRY(quern_component_register(module->world, &def, &types[i]));
    }
    for (int i = 0; i < SYSTEMS; i++) {
        (void)snprintf(system_names[i], sizeof system_names[i], "system %d", i);
        const quern_system_def def = {
            .name = system_names[i],
            .run = work,
            .terms = {quern_term_write(types[1 + i % (TYPES - 1)]), quern_term_read(types[0])}};
        QUERN_TRY(quern_schedule_add_system(module->schedule, &def, NULL));
    }
    return QUERN_OK;
}

QUERN_LIVE_MODULE(load, NULL)
