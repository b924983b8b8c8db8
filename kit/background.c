/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include <quern/kit/background.h>

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

/* The world has the requests and, in the component "NAME due", the frames that are left. A computation is a cache of what
 * the step function makes of a request. It is found by entity, and used if its request equals that of the entity in this
 * frame. So it does not matter whether the world was restored or loaded in between.
 *
 * Computations are made, found and freed by the systems alone, which declare to write the resource and thus run one at a
 * time. A job has the members request, result, state, step_index and is_complete of its computation from the submitting call
 * until the counter is zero, which publishes them. A computation that is not used any more is cancelled and freed when
 * its counter is zero. */

enum {
    MAX_TITLE_BYTES = 32,
    DEFAULT_KEEP_FRAMES = 16,
    FIRST_BUCKETS = 64,
    SLICE_NS = 200 * 1000, /* A job leaves its worker to other work after so long. */
    PART_ALIGNMENT = QUERN_MAX_ALIGNMENT_BYTES,
    MAX_LISTS = QUERN_MAX_COMPONENT_BYTES / sizeof(quern_list)
};

typedef struct computation {
    struct computation *next_in_bucket;
    struct computation *next;
    struct computation **link; /* the pointer to it in the list of those that may be used */
    struct quern_background *owner;
    quern_entity entity;
    uint64_t seen_frame; /* last frame in which the entity had the request */
    size_t bytes;        /* of this and its parts */
    void *request, *result, *state;
    uint64_t step_index;
    bool is_complete;
    atomic_bool is_urgent; /* relaxed: a hint to a job in progress that a frame waits for it */
    quern_cancel cancel;
    quern_counter counter;
} computation;

/* What values of the request or the result need. Hooks may change with the code of a module, so each frame reads them. The
 * layout may not change. Hooks that the world gave to a type with lists end when the type is redefined, and values in memory
 * may outlive that: their lists are copied and freed one by one. */
typedef struct value_type {
    uint64_t layout; /* hash of what quern_component_redefine keeps if it converts no values */
    uint32_t size_bytes, list_count;
    uint32_t list_offsets_bytes[MAX_LISTS];
    quern_hooks hooks;
} value_type;

struct quern_background {
    quern_background_def def; /* def.name is name */
    char name[MAX_TITLE_BYTES + 1];
    char apply_name[MAX_TITLE_BYTES + 8], begin_name[MAX_TITLE_BYTES + 8];
    quern_world *world;
    quern_world_user user;
    quern_resource resource;
    quern_component due;
    value_type request_type, result_type;
    computation *first, **end; /* those that may be used, in the order in which they began */
    computation *cancelled;    /* those whose job may still run */
    computation **buckets;
    uint32_t bucket_count, count;
    uint64_t frame;
    atomic_ullong spent_ns; /* in this frame; relaxed: only the budget depends on it */
    quern_background_stats stats;
};

static quern_result fail_null(const char *function, const char *argument)
{
    return quern_error_set(QUERN_ERROR_NULL_ARGUMENT, "%s: '%s' is NULL", function, argument);
}

/* ---------------------------------------------------------------------------------------------- values */

static uint64_t hash_number(uint64_t hash, uint64_t number)
{
    return (hash ^ number) * 0x9E3779B97F4A7C15u ^ hash >> 29;
}

static uint64_t hash_field(uint64_t hash, const quern_field *field)
{
    for (const char *letter = field->name; *letter != 0; letter++)
        hash = hash_number(hash, (unsigned char)*letter);
    hash = hash_number(hash, (uint64_t)field->type);
    return hash_number(hash, (uint64_t)field->offset_bytes << 32 | field->count);
}

static uint64_t hash_layout(const quern_type_info *info)
{
    const quern_hooks *hooks = &info->hooks;
    const uint32_t hook_bits = (uint32_t)(hooks->construct != NULL) | (uint32_t)(hooks->copy != NULL) << 1 |
                               (uint32_t)(hooks->move != NULL) << 2 |
                               (uint32_t)(hooks->destroy != NULL) << 3;
    uint64_t hash = hash_number(hook_bits, info->size_bytes);
    for (uint32_t f = 0; f < info->field_count; f++)
        hash = hash_field(hash, &info->fields[f]);
    return hash;
}

static quern_hooks hooks_of(const quern_type_info *info)
{
    return info->has_list_hooks ? (quern_hooks){.copy = NULL} : info->hooks;
}

static quern_result read_type(const quern_world *world, quern_component component, value_type *out_type)
{
    quern_type_info info;
    const quern_result result = quern_component_get_info(world, component, &info);
    if (result != QUERN_OK) return result;
    *out_type =
        (value_type){.layout = hash_layout(&info), .size_bytes = info.size_bytes, .hooks = hooks_of(&info)};
    for (uint32_t f = 0; f < info.field_count; f++) {
        const quern_field *field = &info.fields[f];
        if (field->type != QUERN_FIELD_LIST && field->type != QUERN_FIELD_STRING) continue;
        for (uint32_t i = 0; i < field->count; i++)
            out_type->list_offsets_bytes[out_type->list_count++] =
                field->offset_bytes + i * (uint32_t)sizeof(quern_list);
    }
    return QUERN_OK;
}

static quern_list *list_at(const value_type *type, void *value, uint32_t index)
{
    return (quern_list *)((char *)value + type->list_offsets_bytes[index]);
}

/* The memory is zero. */
static void construct(const value_type *type, void *value)
{
    if (type->hooks.construct != NULL) type->hooks.construct(value, 1, type->hooks.user_data);
}

static void copy(const value_type *type, void *target, const void *source)
{
    if (type->hooks.copy != NULL) {
        type->hooks.copy(target, source, 1, type->hooks.user_data);
        return;
    }
    memcpy(target, source, type->size_bytes);
    for (uint32_t i = 0; i < type->list_count; i++) {
        quern_list *list = list_at(type, target, i);
        const quern_list shared = *list;
        *list = (quern_list){.count = 0};
        quern_list_copy(list, &shared);
    }
}

static void destroy(const value_type *type, void *value)
{
    if (type->hooks.destroy != NULL) {
        type->hooks.destroy(value, 1, type->hooks.user_data);
        return;
    }
    for (uint32_t i = 0; i < type->list_count; i++)
        quern_list_free(list_at(type, value, i));
}

/* -------------------------------------------------------------------------------------- computations */

static size_t round_up(size_t bytes)
{
    return (bytes + PART_ALIGNMENT - 1) / PART_ALIGNMENT * PART_ALIGNMENT;
}

static computation **bucket_of(const quern_background *background, quern_entity entity)
{
    const uint64_t hash = entity.bits * 0x9E3779B97F4A7C15u;
    return &background->buckets[hash >> 32 & (background->bucket_count - 1)];
}

static computation *find(const quern_background *background, quern_entity entity)
{
    computation *found = *bucket_of(background, entity);
    while (found != NULL && found->entity.bits != entity.bits)
        found = found->next_in_bucket;
    return found;
}

/* Doubles the buckets. Without memory they stay as they are: finding gets slower. */
static void grow_buckets(quern_background *background)
{
    const quern_allocator *allocator = &background->def.allocator;
    const uint32_t old_count = background->bucket_count, count = old_count * 2;
    const size_t size = sizeof *background->buckets;
    computation **buckets = allocator->allocate(allocator->user_data, count * size, PART_ALIGNMENT);
    if (buckets == NULL) return;
    memset(buckets, 0, count * size);
    allocator->release(allocator->user_data, background->buckets, old_count * size, PART_ALIGNMENT);
    background->buckets = buckets;
    background->bucket_count = count;
    for (computation *each = background->first; each != NULL; each = each->next) {
        computation **bucket = bucket_of(background, each->entity);
        each->next_in_bucket = *bucket;
        *bucket = each;
    }
}

static void free_computation(quern_background *background, computation *old)
{
    if (background->def.end != NULL && old->state != NULL && old->step_index != 0)
        background->def.end(background->def.user_data, old->state);
    destroy(&background->request_type, old->request);
    destroy(&background->result_type, old->result);
    background->stats.kept_count--;
    background->def.allocator.release(background->def.allocator.user_data, old, old->bytes, PART_ALIGNMENT);
}

/* Makes a computation that has not begun. Returns NULL without memory. */
static computation *add(quern_background *background, quern_entity entity, const void *request)
{
    const size_t request_bytes = round_up(background->request_type.size_bytes),
                 result_bytes = round_up(background->result_type.size_bytes),
                 state_bytes = round_up(background->def.state_bytes), first = round_up(sizeof(computation));
    const size_t bytes = first + request_bytes + result_bytes + state_bytes;
    const quern_allocator *allocator = &background->def.allocator;
    char *memory = allocator->allocate(allocator->user_data, bytes, PART_ALIGNMENT);
    if (memory == NULL) return NULL;
    memset(memory, 0, bytes);
    computation *added = (computation *)memory;
    added->owner = background;
    added->entity = entity;
    added->bytes = bytes;
    added->request = memory + first;
    added->result = memory + first + request_bytes;
    added->state = state_bytes == 0 ? NULL : memory + first + request_bytes + result_bytes;
    copy(&background->request_type, added->request, request);
    construct(&background->result_type, added->result);
    if (background->count >= background->bucket_count) grow_buckets(background);
    computation **bucket = bucket_of(background, entity);
    added->next_in_bucket = *bucket;
    *bucket = added;
    added->link = background->end;
    *background->end = added;
    background->end = &added->next;
    background->count++;
    background->stats.started_count++;
    background->stats.kept_count++;
    return added;
}

static void cancel(quern_background *background, computation *old)
{
    *old->link = old->next;
    if (old->next != NULL)
        old->next->link = old->link;
    else
        background->end = old->link;
    computation **in_bucket = bucket_of(background, old->entity);
    while (*in_bucket != old)
        in_bucket = &(*in_bucket)->next_in_bucket;
    *in_bucket = old->next_in_bucket;
    background->count--;
    if (!quern_counter_is_done(&old->counter) || !old->is_complete) background->stats.cancelled_count++;
    quern_cancel_request(&old->cancel);
    old->next = background->cancelled;
    background->cancelled = old;
}

/* Cancels computations that no request has used for keep_frames, and frees those whose job has ended. */
static void clean(quern_background *background)
{
    for (computation *each = background->first, *next; each != NULL; each = next) {
        next = each->next;
        if (background->frame - each->seen_frame > background->def.keep_frames) cancel(background, each);
    }
    for (computation **place = &background->cancelled; *place != NULL;) {
        computation *each = *place;
        if (quern_counter_is_done(&each->counter)) {
            *place = each->next;
            free_computation(background, each);
        } else {
            place = &each->next;
        }
    }
}

/* ---------------------------------------------------------------------------------------------- steps */

static bool has_budget(const quern_background *background)
{
    const uint64_t budget_ns = (uint64_t)background->def.budget_us * 1000;
    return budget_ns == 0 || atomic_load_explicit(&background->spent_ns, memory_order_relaxed) < budget_ns;
}

static void do_step(computation *running)
{
    quern_background *background = running->owner;
    quern_background_step step = {.request = running->request,
                                  .result = running->result,
                                  .state = running->state,
                                  .index = running->step_index++};
    running->is_complete = background->def.step(background->def.user_data, &step);
}

/* Does steps until the result is complete, or the time or the budget is used up. */
static void do_steps(computation *running, uint64_t most_ns)
{
    quern_background *background = running->owner;
    const uint64_t start_ns = quern_clock_ns();
    uint64_t now_ns = start_ns;
    while (!running->is_complete && !quern_cancel_is_requested(&running->cancel)) {
        if (!atomic_load_explicit(&running->is_urgent, memory_order_relaxed) &&
            (now_ns - start_ns >= most_ns || !has_budget(background)))
            break;
        do_step(running);
        const uint64_t before_ns = now_ns;
        now_ns = quern_clock_ns();
        atomic_fetch_add_explicit(&background->spent_ns, now_ns - before_ns, memory_order_relaxed);
    }
}

static void run_slice(void *payload, uint32_t worker_index);

static quern_result submit(computation *waiting)
{
    const quern_background *background = waiting->owner;
    return quern_jobs_submit(background->def.jobs, &(quern_job_def){.function = run_slice,
                                                                    .payload = &waiting,
                                                                    .payload_bytes = sizeof waiting,
                                                                    .priority = QUERN_PRIORITY_LOW,
                                                                    .counter = &waiting->counter,
                                                                    .name = background->name});
}

/* A job. If the next slice cannot be submitted, the next frame does it. */
static void run_slice(void *payload, uint32_t worker_index)
{
    (void)worker_index;
    computation *running = *(computation **)payload;
    do_steps(running, SLICE_NS);
    if (!running->is_complete && !quern_cancel_is_requested(&running->cancel) && has_budget(running->owner))
        (void)submit(running);
}

/* Completes a result that is due. */
static quern_result finish(quern_background *background, computation *waiting)
{
    if (quern_counter_is_done(&waiting->counter) && waiting->is_complete) return QUERN_OK;
    const uint64_t start_ns = quern_clock_ns();
    atomic_store_explicit(&waiting->is_urgent, true, memory_order_relaxed);
    const quern_result result =
        background->def.jobs == NULL ? QUERN_OK : quern_jobs_wait(background->def.jobs, &waiting->counter);
    if (result != QUERN_OK) return result;
    while (!waiting->is_complete)
        do_step(waiting);
    const uint64_t waited_ns = quern_clock_ns() - start_ns;
    background->stats.waited_count++;
    background->stats.waited_ns += waited_ns;
    if (waited_ns > background->stats.longest_wait_ns) background->stats.longest_wait_ns = waited_ns;
    return QUERN_OK;
}

/* ---------------------------------------------------------------------------------------------- systems */

static bool is_same_request(const quern_background *background, const void *first, const void *second)
{
    const quern_background_def *def = &background->def;
    return def->is_equal != NULL ? def->is_equal(def->user_data, first, second)
                                 : memcmp(first, second, background->request_type.size_bytes) == 0;
}

/* Returns the computation for the request that the entity has in this frame; a new one if there is none, or NULL without
 * memory. */
static computation *use(quern_background *background, quern_entity entity, const void *request)
{
    computation *used = find(background, entity);
    if (used != NULL && !is_same_request(background, used->request, request)) {
        cancel(background, used);
        used = NULL;
    }
    if (used == NULL) used = add(background, entity, request);
    if (used != NULL) used->seen_frame = background->frame;
    return used;
}

/* Reads the hooks. Returns false if a type has another layout than the computations in memory. */
static bool renew_types(quern_background *background)
{
    quern_type_info request, result;
    if (quern_component_get_info(background->world, background->def.request, &request) != QUERN_OK ||
        quern_component_get_info(background->world, background->def.result, &result) != QUERN_OK ||
        hash_layout(&request) != background->request_type.layout ||
        hash_layout(&result) != background->result_type.layout)
        return false;
    background->request_type.hooks = hooks_of(&request);
    background->result_type.hooks = hooks_of(&result);
    return true;
}

static void begin_apply(quern_context *context)
{
    quern_background *background = quern_context_user_data(context);
    background->frame++;
    background->stats.pending_count = 0;
    background->stats.last_result = renew_types(background) ? QUERN_OK : QUERN_ERROR_LAYOUT_MISMATCH;
    atomic_store_explicit(&background->spent_ns, 0, memory_order_relaxed);
}

static bool is_listed(const quern_background_ready *ready, quern_entity entity)
{
    for (uint32_t i = 0; i < ready->count && i < QUERN_BACKGROUND_MAX_READY; i++)
        if (ready->entities[i].bits == entity.bits) return true;
    return false;
}

static void apply(quern_context *context, const quern_view *view)
{
    quern_background *background = quern_context_user_data(context);
    quern_commands *commands = quern_context_commands(context);
    const quern_background_ready *ready = quern_context_resource(context, background->resource);
    uint32_t *frames_left = quern_view_write(view, 0);
    const char *requests = quern_view_has(view, 1) ? quern_view_read(view, 1) : NULL;
    if (background->stats.last_result == QUERN_ERROR_LAYOUT_MISMATCH || ready == NULL ||
        frames_left == NULL)
        return;
    for (uint32_t row = 0; row < view->count; row++) {
        const quern_entity entity = view->entities[row];
        if (requests == NULL) {
            quern_commands_remove(commands, entity, background->due);
            continue;
        }
        if (frames_left[row] > 0) frames_left[row]--;
        const bool is_due = background->def.frames == 0 ? is_listed(ready, entity) : frames_left[row] == 0;
        computation *used =
            use(background, entity, requests + (size_t)row * background->request_type.size_bytes);
        quern_result result = used == NULL ? QUERN_ERROR_OUT_OF_MEMORY : QUERN_OK;
        if (used != NULL && is_due) result = finish(background, used);
        if (result != QUERN_OK) background->stats.last_result = result;
        if (!is_due || result != QUERN_OK) {
            background->stats.pending_count++;
            continue;
        }
        background->stats.applied_count++;
        quern_commands_set(commands, entity, background->def.result, used->result);
        quern_commands_remove(commands, entity, background->def.request);
        quern_commands_remove(commands, entity, background->due);
    }
}

static void end_apply(quern_context *context)
{
    quern_background *background = quern_context_user_data(context);
    quern_background_ready *ready = quern_context_resource_write(context, background->resource);
    if (ready != NULL && ready->count != 0) *ready = (quern_background_ready){.count = 0};
    if (background->stats.last_result != QUERN_ERROR_LAYOUT_MISMATCH) clean(background);
}

/* Without memory for a computation, the next frame begins it. */
static void begin(quern_context *context, const quern_view *view)
{
    quern_background *background = quern_context_user_data(context);
    quern_commands *commands = quern_context_commands(context);
    const char *requests = quern_view_read(view, 0);
    if (background->stats.last_result == QUERN_ERROR_LAYOUT_MISMATCH || requests == NULL) return;
    for (uint32_t row = 0; row < view->count; row++) {
        const quern_entity entity = view->entities[row];
        if (use(background, entity, requests + (size_t)row * background->request_type.size_bytes) == NULL)
            background->stats.last_result = QUERN_ERROR_OUT_OF_MEMORY;
        background->stats.pending_count++;
        quern_commands_set(commands, entity, background->due, &background->def.frames);
    }
}

/* Continues all computations whose results are still wanted, those that began first at first. */
static void compute(quern_context *context)
{
    quern_background *background = quern_context_user_data(context);
    const bool submits = background->def.jobs != NULL && quern_jobs_thread_count(background->def.jobs) > 1;
    if (!submits && background->def.budget_us == 0) return;
    for (computation *each = background->first; each != NULL && has_budget(background); each = each->next) {
        if (each->seen_frame != background->frame || !quern_counter_is_done(&each->counter) ||
            each->is_complete)
            continue;
        if (!submits)
            do_steps(each, UINT64_MAX);
        else if (submit(each) != QUERN_OK)
            return;
    }
}

/* ---------------------------------------------------------------------------------------------- calls */

static quern_result check_def(const quern_world *world, const quern_background_def *def,
                              const char *function)
{
    if (def->name == NULL) return fail_null(function, "def->name");
    if (def->step == NULL) return fail_null(function, "def->step");
    const size_t length = strlen(def->name);
    if (length == 0 || length > MAX_TITLE_BYTES)
        return quern_error_set(QUERN_ERROR_INVALID_ARGUMENT,
                               "%s: the name '%.40s' has %zu bytes; it must have 1 to %d", function,
                               def->name, length, MAX_TITLE_BYTES);
    if (def->frames > QUERN_BACKGROUND_MAX_FRAMES || def->state_bytes > QUERN_BACKGROUND_MAX_STATE_BYTES)
        return quern_error_set(QUERN_ERROR_INVALID_ARGUMENT,
                               "%s: '%s' has frames %u and state_bytes %u; at most %d and %d are possible",
                               function, def->name, (unsigned)def->frames, (unsigned)def->state_bytes,
                               QUERN_BACKGROUND_MAX_FRAMES, QUERN_BACKGROUND_MAX_STATE_BYTES);
    if ((def->allocator.allocate == NULL) != (def->allocator.release == NULL))
        return quern_error_set(QUERN_ERROR_INVALID_ARGUMENT,
                               "%s: the allocator of '%s' has only one of its functions; set both or none",
                               function, def->name);
    if (def->request.bits == def->result.bits)
        return quern_error_set(QUERN_ERROR_INVALID_ARGUMENT,
                               "%s: request and result of '%s' are the same component; use two", function,
                               def->name);
    quern_type_info types[2];
    for (uint32_t i = 0; i < 2; i++) {
        const char *role = i == 0 ? "request" : "result";
        const quern_result result =
            quern_component_get_info(world, i == 0 ? def->request : def->result, &types[i]);
        if (result != QUERN_OK) return result;
        const quern_hooks *hooks = &types[i].hooks;
        if (types[i].size_bytes == 0 || types[i].is_managed)
            return quern_error_set(QUERN_ERROR_INVALID_ARGUMENT,
                                   "%s: the %s of '%s', component '%s', has no value or is maintained by "
                                   "the world; use another component",
                                   function, role, def->name, types[i].name);
        if (hooks->copy == NULL && (hooks->move != NULL || hooks->destroy != NULL))
            return quern_error_set(
                QUERN_ERROR_INVALID_ARGUMENT,
                "%s: the %s of '%s', component '%s', cannot be copied; give it a copy hook", function, role,
                def->name, types[i].name);
    }
    if (types[0].hooks.copy != NULL && def->is_equal == NULL)
        return quern_error_set(QUERN_ERROR_INVALID_ARGUMENT,
                               "%s: the request of '%s', component '%s', has a copy hook, so its bytes "
                               "cannot be compared; set is_equal",
                               function, def->name, types[0].name);
    return QUERN_OK;
}

static quern_resource_def ready_def(const quern_background *background)
{
    return (quern_resource_def){.name = background->name,
                                .size_bytes = sizeof(quern_background_ready),
                                .alignment_bytes = _Alignof(quern_background_ready),
                                .fields = QUERN_FIELDS(quern_background_ready, count, entities)};
}

static quern_result register_types(quern_background *background)
{
    char due_name[MAX_TITLE_BYTES + 8];
    snprintf(due_name, sizeof due_name, "%s due", background->name);
    const quern_resource_def ready = ready_def(background);
    const quern_component_def due = {.name = due_name,
                                     .size_bytes = sizeof(uint32_t),
                                     .alignment_bytes = _Alignof(uint32_t),
                                     .fields = {{.name = "frames_left", .type = QUERN_FIELD_U32}}};
    quern_result result = quern_component_register(background->world, &due, &background->due);
    if (result == QUERN_OK)
        result = quern_resource_register(background->world, &ready, &background->resource);
    if (result != QUERN_ERROR_LAYOUT_MISMATCH) return result;
    return quern_error_set(
        QUERN_ERROR_DUPLICATE_NAME,
        "quern_background_create: the world has another component '%s' or resource '%s'; choose "
        "another name",
        due_name, background->name);
}

quern_result quern_background_create(quern_world *world, const quern_background_def *def,
                                     quern_background **out_background)
{
    static const char function[] = "quern_background_create";
    if (world == NULL) return fail_null(function, "world");
    if (def == NULL) return fail_null(function, "def");
    if (out_background == NULL) return fail_null(function, "out_background");
    *out_background = NULL;
    quern_result result = check_def(world, def, function);
    if (result != QUERN_OK) return result;
    const quern_allocator allocator =
        def->allocator.allocate == NULL ? quern_allocator_default() : def->allocator;
    const size_t bucket_bytes = FIRST_BUCKETS * sizeof(computation *);
    quern_background *background =
        allocator.allocate(allocator.user_data, sizeof *background, PART_ALIGNMENT);
    computation **buckets = allocator.allocate(allocator.user_data, bucket_bytes, PART_ALIGNMENT);
    if (background != NULL && buckets != NULL) {
        memset(background, 0, sizeof *background);
        memset(buckets, 0, bucket_bytes);
        background->def = *def;
        background->def.allocator = allocator;
        if (def->keep_frames == 0) background->def.keep_frames = DEFAULT_KEEP_FRAMES;
        snprintf(background->name, sizeof background->name, "%s", def->name);
        snprintf(background->apply_name, sizeof background->apply_name, "%s apply", def->name);
        snprintf(background->begin_name, sizeof background->begin_name, "%s begin", def->name);
        background->def.name = background->name;
        background->world = world;
        background->end = &background->first;
        background->buckets = buckets;
        background->bucket_count = FIRST_BUCKETS;
        background->user.name = background->name;
        atomic_init(&background->spent_ns, 0);
        (void)read_type(world, def->request, &background->request_type);
        (void)read_type(world, def->result, &background->result_type);
        result = register_types(background);
        if (result == QUERN_OK) result = quern_world_add_user(world, &background->user);
    } else {
        result = quern_error_set(QUERN_ERROR_OUT_OF_MEMORY,
                                 "%s: out of memory for '%s'; nothing was created", function, def->name);
    }
    if (result == QUERN_OK) {
        *out_background = background;
        return QUERN_OK;
    }
    if (background != NULL)
        allocator.release(allocator.user_data, background, sizeof *background, PART_ALIGNMENT);
    if (buckets != NULL) allocator.release(allocator.user_data, buckets, bucket_bytes, PART_ALIGNMENT);
    return result;
}

void quern_background_destroy(quern_background *background)
{
    if (background == NULL) return;
    while (background->first != NULL)
        cancel(background, background->first);
    for (computation *each = background->cancelled; each != NULL; each = each->next)
        if (background->def.jobs != NULL) (void)quern_jobs_wait(background->def.jobs, &each->counter);
    (void)renew_types(background);
    clean(background);
    quern_world_remove_user(background->world, &background->user);
    const quern_allocator allocator = background->def.allocator;
    allocator.release(allocator.user_data, background->buckets,
                      background->bucket_count * sizeof *background->buckets, PART_ALIGNMENT);
    allocator.release(allocator.user_data, background, sizeof *background, PART_ALIGNMENT);
}

quern_result quern_background_add_systems(quern_background *background, quern_schedule *schedule,
                                          uint32_t phase)
{
    static const char function[] = "quern_background_add_systems";
    if (background == NULL) return fail_null(function, "background");
    if (schedule == NULL) return fail_null(function, "schedule");
    const quern_system_def applying = {
        .name = background->apply_name,
        .phase = phase,
        .begin = begin_apply,
        .run = apply,
        .end = end_apply,
        .terms = {quern_term_write(background->due),
                  quern_term_optional(background->def.request, QUERN_ACCESS_READ)},
        .resources = {{background->resource, QUERN_ACCESS_WRITE}},
        .user_data = background};
    const quern_system_def beginning = {
        .name = background->begin_name,
        .phase = phase,
        .run = begin,
        .end = compute,
        .terms = {quern_term_read(background->def.request), quern_term_without(background->due)},
        .resources = {{background->resource, QUERN_ACCESS_WRITE}},
        .user_data = background};
    quern_system apply_system;
    quern_result result = quern_schedule_add_system(schedule, &applying, &apply_system);
    if (result != QUERN_OK) return result;
    result = quern_schedule_add_system(schedule, &beginning, NULL);
    if (result != QUERN_OK) (void)quern_schedule_remove_system(schedule, apply_system);
    return result;
}

/* Whether a frame runs, also if an exclusive system of it asks, which may write resources: a redefinition is refused then. */
static bool is_in_frame(const quern_background *background)
{
    const quern_resource_def def = ready_def(background);
    const quern_redefine_def how = {.only_checks = true};
    return quern_resource_redefine(background->world, background->resource, &def, &how, NULL) ==
           QUERN_ERROR_WORLD_LOCKED;
}

quern_result quern_background_poll(quern_background *background)
{
    static const char function[] = "quern_background_poll";
    if (background == NULL) return fail_null(function, "background");
    if (background->def.frames != 0)
        return quern_error_set(
            QUERN_ERROR_INVALID_ARGUMENT,
            "%s: results of '%s' are set %u frames after their requests; set 'frames' to 0 to poll",
            function, background->name, (unsigned)background->def.frames);
    if (is_in_frame(background))
        return quern_error_set(
            QUERN_ERROR_WORLD_LOCKED,
            "%s: what is ready of '%s' depends on the speed of the machine, so it cannot be listed "
            "while a frame runs: call it between frames",
            function, background->name);
    quern_background_ready *ready = quern_resource_get(background->world, background->resource);
    *ready = (quern_background_ready){.count = 0};
    for (computation *each = background->first; each != NULL && ready->count < QUERN_BACKGROUND_MAX_READY;
         each = each->next)
        if (each->seen_frame == background->frame && quern_counter_is_done(&each->counter) &&
            each->is_complete)
            ready->entities[ready->count++] = each->entity;
    return QUERN_OK;
}

quern_resource quern_background_resource(const quern_background *background)
{
    return background == NULL ? (quern_resource){0} : background->resource;
}

quern_component quern_background_due(const quern_background *background)
{
    return background == NULL ? (quern_component){0} : background->due;
}

quern_result quern_background_get_stats(const quern_background *background,
                                        quern_background_stats *out_stats)
{
    static const char function[] = "quern_background_get_stats";
    if (background == NULL) return fail_null(function, "background");
    if (out_stats == NULL) return fail_null(function, "out_stats");
    *out_stats = background->stats;
    return QUERN_OK;
}
