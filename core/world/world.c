/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "core/world/world_internal.h"

#include "core/base/containers.h"
#include "core/storage/change.h"

#include <quern/loader.h>

quern_result quern__world_fail_locked(const char *function)
{
    return quern__fail(QUERN_ERROR_WORLD_LOCKED,
                       "%s: " QUERN__WORLD_LOCKERS " is running on this world; call it afterwards, or in a "
                       "system use views, lookups, resources and commands, or make the system exclusive",
                       function);
}

/* ---------------------------------------------------------------------------- one thread at a time */

QUERN__THREAD_LOCAL(const quern_world *, quern__thread_callback_world);

/* Relaxed: only this thread stores its own id, so the comparison needs no order with other threads. */
bool quern__world_is_claimed(const quern_world *world)
{
    return atomic_load_explicit(&world->owner, memory_order_relaxed) == quern__this_thread();
}

static QUERN__SLOW_PATH void report_claimed(const quern_world *world, const char *function)
{
    /* Relaxed: the name is only used in the message. */
    const char *other = atomic_load_explicit(&world->owner_function, memory_order_relaxed);
    quern__report_violation(QUERN_ERROR_WORLD_LOCKED,
                            "%s: another thread is in a call on the same world (%s, world %u); a world is "
                            "used by one thread at a time",
                            function, other != NULL ? other : "another call", world->resources.world_tag);
}

/* Must not read `locked`: that would be a data race while another thread holds the claim. */
bool quern__world_claim(quern_world *world, const char *function)
{
    const void *no_owner = NULL, *me = quern__this_thread();
    /* Relaxed: only this thread stores its own id, so the comparison needs no order with other threads. */
    if (atomic_load_explicit(&world->owner, memory_order_relaxed) != me) {
        /* Acquire: pairs with the release of the thread that held the claim last. */
        if (!atomic_compare_exchange_strong_explicit(&world->owner, &no_owner, me, memory_order_acquire,
                                                     memory_order_relaxed)) {
            if (quern__world_of_callback == world) return true;
            report_claimed(world, function);
            return false;
        }
        atomic_store_explicit(&world->owner_function, function, memory_order_relaxed);
    }
    world->claim_depth++;
    return true;
}

/* Release: pairs with the acquire of the next thread that claims the world. */
void quern__world_unclaim(quern_world *world)
{
    if (!quern__world_is_claimed(world)) return;
    if (--world->claim_depth == 0) atomic_store_explicit(&world->owner, NULL, memory_order_release);
}

/* Relaxed: only the owner calls this. Release: pairs with the acquire of the next thread that claims the world. */
quern__world_claim_state quern__world_suspend_claim(quern_world *world)
{
    const quern__world_claim_state state = {
        .function = atomic_load_explicit(&world->owner_function, memory_order_relaxed),
        .depth = world->claim_depth};
    world->claim_depth = 0;
    atomic_store_explicit(&world->owner, NULL, memory_order_release);
    return state;
}

bool quern__world_resume_claim(quern_world *world, const quern__world_claim_state *state)
{
    if (!quern__world_claim(world, state->function)) return false;
    world->claim_depth = state->depth;
    return true;
}

/* ------------------------------------------------------------------------------------- components */

quern_result quern_component_register(quern_world *world, const quern_component_def *def,
                                      quern_component *out_component)
{
    QUERN__ENTER_UNLOCKED(world);
    QUERN__NEED(def);
    QUERN__NEED(out_component);
    if (world->loader != NULL)
        return world->loader->register_type(world->loader->user_data, QUERN_TYPE_COMPONENT, def,
                                            &out_component->bits);
    for (uint32_t i = 0; i < QUERN_MAX_REQUIRED; i++)
        if (def->required[i].bits != 0 &&
            quern__component_index(def->required[i]) == world->storage.disabled_index)
            return quern__fail(
                QUERN_ERROR_INVALID_ARGUMENT,
                "quern_component_register: '%.63s' cannot require 'disabled', which is removed "
                "to enable an entity: remove it from the list",
                def->name != NULL ? def->name : "");
    quern_result result = quern__components_register(&world->storage.components, &world->storage.allocator,
                                                     def, out_component);
    return quern__in_call(result, __func__);
}

quern_component quern_component_find(const quern_world *world, const char *name)
{
    QUERN__NEED_OR(world, (quern_component){0});
    QUERN__NEED_OR(name, (quern_component){0});
    return quern__components_find(&world->storage.components, name);
}

const char *quern_component_name(const quern_world *world, quern_component component)
{
    QUERN__NEED_OR(world, NULL);
    const quern_result result = quern__components_check(&world->storage.components, component);
    if (quern__in_call(result, __func__) != QUERN_OK) return NULL;
    return quern__components_type(&world->storage.components, quern__component_index(component))->name;
}

quern_result quern_component_get_size(const quern_world *world, quern_component component,
                                      uint32_t *out_size_bytes)
{
    QUERN__NEED(world);
    QUERN__NEED(out_size_bytes);
    const quern_result result = quern__components_check(&world->storage.components, component);
    if (result != QUERN_OK) return quern__in_call(result, __func__);
    *out_size_bytes =
        quern__components_type(&world->storage.components, quern__component_index(component))->size_bytes;
    return QUERN_OK;
}

quern_result quern__world_check_provisional(const quern_world *world, const quern_component *components,
                                            const void *const *values, uint32_t component_count,
                                            uint32_t count, const char *commands)
{
    quern_result result = QUERN_OK;
    for (uint32_t i = 0; i < component_count && values != NULL && result == QUERN_OK; i++) {
        const uint32_t index = quern__component_index(components[i]);
        if (values[i] != NULL && !quern__components_is_managed(&world->storage.components, index))
            result = quern__type_check_provisional(
                quern__components_type(&world->storage.components, index), values[i], count, commands);
    }
    return result;
}

/* ---------------------------------------------------------------------------------- redefinition */

/* Relaxed: see running_frame_count. */
quern_result quern__redefine_check_frames(const quern_world *world, const char *function)
{
    if (atomic_load_explicit(&world->running_frame_count, memory_order_relaxed) == 0) return QUERN_OK;
    return quern__fail(
        QUERN_ERROR_WORLD_LOCKED,
        "%s: an exclusive system of a running frame cannot redefine types, which the rest of the "
        "frame uses: call it between frames",
        function);
}

quern_result quern__redefine_check_name(const quern__type *type, const char **name, const char *what)
{
    if (*name == NULL) *name = type->name;
    if (strcmp(*name, type->name) == 0) return QUERN_OK;
    return quern__fail(
        QUERN_ERROR_INVALID_ARGUMENT,
        "%s '%s' cannot get the name '%.63s': a redefinition keeps the name, so set it to NULL or "
        "'%s'",
        what, type->name, *name, type->name);
}

static const quern__conversion_words words = {"in its old definition", "in its new definition", "present"};

/* Decides how the values of a type with another layout are converted. */
static quern_result choose_conversion(quern__redefinition *it, const quern_redefine_def *how)
{
    const quern__type *old = &it->change.old, *type = it->type;
    if ((old->size_bytes == 0) != (type->size_bytes == 0))
        return quern__fail(
            QUERN_ERROR_LAYOUT_MISMATCH,
            "%s '%s' has %u bytes and would have %u: a type without values cannot get some, nor lose "
            "them; register another type",
            it->what, old->name, old->size_bytes, type->size_bytes);
    if (how != NULL && how->migrate != NULL) {
        it->change.conversion = (quern__conversion){
            .source = old, .target = type, .kind = QUERN__CONVERT_MIGRATION, .words = &words};
        it->change.migrate = how->migrate;
        it->change.user_data = how->user_data;
        return QUERN_OK;
    }
    const quern_result result = quern__conversion_init(&it->change.conversion, old, type, &words,
                                                       how != NULL ? how->renames : NULL);
    if (result != QUERN_OK || it->change.conversion.kind == QUERN__CONVERT_BYTES) return result;
    if (it->change.conversion.changes_elements)
        return quern__fail(QUERN_ERROR_LAYOUT_MISMATCH,
                           "%s '%s' has a list with other elements: give a function (migrate)", it->what,
                           old->name);
    if (!quern__type_owns_unknown(old) && !quern__type_owns_unknown(type)) return QUERN_OK;
    return quern__fail(
        QUERN_ERROR_LAYOUT_MISMATCH,
        "%s '%s' has another layout, and hooks, so fields cannot make new values of old ones: give a "
        "function (migrate)",
        it->what, old->name);
}

/* Checks that each renamed field exists. */
static quern_result check_renames(const quern__redefinition *it, const quern_field_rename *renames)
{
    for (uint32_t i = 0; i < QUERN_MAX_FIELDS && renames[i].from != NULL; i++) {
        const char *names[] = {renames[i].from, renames[i].to != NULL ? renames[i].to : ""};
        const quern__type *types[] = {it->type, &it->fresh};
        for (uint32_t k = 0; k < 2; k++) {
            uint32_t f = 0;
            while (f < types[k]->field_count && strcmp(types[k]->fields[f].name, names[k]) != 0)
                f++;
            if (f == types[k]->field_count)
                return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                                   "%s '%s' has no field '%.63s' in its %s definition: correct rename %u",
                                   it->what, it->type->name, names[k], k == 0 ? "old" : "new", i);
        }
    }
    return QUERN_OK;
}

quern_result quern__redefine_begin(quern__redefinition *it, quern_result result, uint32_t component_index,
                                   const quern_redefine_def *how, quern_redefine_report *report)
{
    const quern_allocator *allocator = &it->world->storage.allocator;
    if (report != NULL) *report = (quern_redefine_report){.value_count = 0};
    if (result != QUERN_OK) return result;
    if (how != NULL) result = check_renames(it, how->renames);
    if (result == QUERN_OK)
        result = quern__type_ids_reserve_for(it->ids, allocator, &it->fresh, it->handle_bits, it->what);
    if (result != QUERN_OK) {
        quern__type_release(&it->fresh, allocator);
        return result;
    }
    const bool renames_some = how != NULL && how->renames[0].from != NULL;
    it->only_checks = how != NULL && how->only_checks;
    it->is_converted = renames_some || !quern__type_same_values(it->type, &it->fresh);
    if (it->fresh.type_id == 0 && !it->is_converted) it->fresh.type_id = it->type->type_id;
    it->change =
        (quern__type_change){.old = *it->type, .type = it->type, .component_index = component_index};
    *it->type = it->fresh;
    if (it->is_converted) result = quern__redefine_check_history(it->world, it->only_checks);
    if (it->is_converted && result == QUERN_OK) result = choose_conversion(it, how);
    return result == QUERN_OK ? QUERN_OK : quern__redefine_end(it, result, NULL);
}

/* Lists the fields that only one of the definitions has. */
static void report_fields(const quern__redefinition *it, quern_redefine_report *report)
{
    const quern__conversion *conversion = &it->change.conversion;
    const quern__type *old = &it->change.old;
    if (conversion->kind != QUERN__CONVERT_FIELDS) return;
    report->dropped_field_count = conversion->dropped_field_count;
    report->added_field_count = it->type->field_count - conversion->pair_count;
    for (uint32_t i = 0, p = 0, k = 0; i < old->field_count; i++) {
        if (p < conversion->pair_count && conversion->pairs[p].source == i)
            p++;
        else if (k < QUERN_MAX_DROPPED_FIELDS)
            memcpy(report->dropped_fields[k++], old->fields[i].name, strlen(old->fields[i].name) + 1);
    }
}

quern_result quern__redefine_end(quern__redefinition *it, quern_result result,
                                 quern_redefine_report *report)
{
    const quern_allocator *allocator = &it->world->storage.allocator;
    if (result != QUERN_OK || it->only_checks) {
        quern__type_release(it->type, allocator);
        *it->type = it->change.old;
        if (report != NULL) *report = (quern_redefine_report){.value_count = 0};
        return result == QUERN__CHECKED ? QUERN_OK : result;
    }
    if (it->is_converted) it->world->layout_count++;
    if (report != NULL && it->is_converted) {
        report->is_converted = true;
        report->value_count = it->change.value_count;
        report->shortened_count = it->change.shortened_count;
        report_fields(it, report);
    }
    quern__type_release(&it->change.old, allocator);
    if (it->is_converted) quern__type_ids_forget(it->ids, it->handle_bits);
    quern__type_identify(it->type, it->ids, it->type->type_id, it->handle_bits);
    return QUERN_OK;
}

quern_result quern__redefine_check_since(const quern_world *world, uint64_t layout_count, const char *what)
{
    if (QUERN__LIKELY(world->layout_count == layout_count)) return QUERN_OK;
    return quern__fail(
        QUERN_ERROR_INVALID_ARGUMENT,
        "a type of the world was redefined with another layout since %s was created: create another one",
        what);
}

quern_result quern__redefine_check_history(const quern_world *world, bool only_checks)
{
    if (world->history == NULL || world->history_frames(world->history, false) != UINT32_MAX)
        return QUERN_OK;
    for (quern_world_user *user = world->first_user; user != NULL; user = user->next) {
        if (user->release_deltas == NULL) continue;
        if (only_checks) return QUERN_OK; /* the tool would release them */
        user->release_deltas(user);
    }
    if (world->history_frames(world->history, false) != UINT32_MAX) return QUERN_OK;
    return quern__fail(
        QUERN_ERROR_INVALID_ARGUMENT,
        "deltas hold frames of the world's history, which have the old layout: destroy the deltas first "
        "(quern_delta_destroy)");
}

/* The values of frames are destroyed by the hooks of their definition, so the type of the world is the old one meanwhile.
 */
uint32_t quern__redefine_drop_frames(quern__redefinition *it)
{
    if (it->world->history == NULL) return 0;
    const quern__type fresh = *it->type;
    *it->type = it->change.old;
    const uint32_t count = it->world->history_frames(it->world->history, true);
    *it->type = fresh;
    if (count > 0)
        quern__log(
            QUERN_LOG_WARNING,
            "%s '%s' has another layout: %u frames of the history, which have the old one, were dropped",
            it->what, it->type->name, count);
    return count;
}

/* -------------------------------------------------------------------------------------- resources */

static quern_resource handle_of(const quern__resources *resources, uint32_t index)
{
    return (quern_resource){.bits = quern__handle_bits(resources->world_tag, index)};
}

static const quern__registry registry = QUERN__REGISTRY_OF_ITEMS(
    "resource", "world", QUERN_MAX_RESOURCES, QUERN_ERROR_UNKNOWN_RESOURCE, quern__resource, type.name);

enum { DEFAULT_ALIGNMENT_BYTES = 16 };

static quern_result define_type(quern__type *type, const quern_allocator *allocator,
                                const quern_resource_def *def)
{
    if (def->size_bytes == 0)
        return quern__fail(QUERN_ERROR_INVALID_ARGUMENT, "resource '%s' has 0 bytes: set size_bytes",
                           def->name);
    const uint32_t alignment_bytes = def->alignment_bytes ? def->alignment_bytes : DEFAULT_ALIGNMENT_BYTES;
    const quern_result result =
        quern__type_init(type, allocator, "resource", def->name, def->type_name, def->size_bytes,
                         alignment_bytes, &def->hooks, def->fields);
    if (result != QUERN_OK) return result;
    type->flags = def->is_hidden ? QUERN__FLAG_IS_HIDDEN : 0;
    type->type_id = def->type_id;
    return QUERN_OK;
}

static size_t value_bytes(const quern__type *type)
{
    return quern__align_up(type->size_bytes, QUERN_MAX_ALIGNMENT_BYTES);
}

static void resource_release(quern__resource *resource, const quern_allocator *allocator)
{
    quern__release(allocator, resource->value, value_bytes(&resource->type), QUERN_MAX_ALIGNMENT_BYTES);
    quern__type_release(&resource->type, allocator);
}

static quern_result append(quern__resources *resources, const quern_allocator *allocator,
                           const quern_resource_def *def)
{
    quern__resource resource = {0};
    quern_result result = quern__registry_reserve(&registry, allocator, &resources->list, def->name);
    if (result == QUERN_OK) result = define_type(&resource.type, allocator, def);
    if (result != QUERN_OK) return result;
    resource.value = quern__allocate(allocator, value_bytes(&resource.type), QUERN_MAX_ALIGNMENT_BYTES);
    if (resource.value == NULL) {
        resource_release(&resource, allocator);
        return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "resource '%s': no memory for its %u bytes",
                           def->name, def->size_bytes);
    }
    quern__fill_values(&resource.type, resource.value, def->value, 1);
    resources->list.items[resources->list.count++] = resource;
    return QUERN_OK;
}

quern_result quern_resource_register(quern_world *world, const quern_resource_def *def,
                                     quern_resource *out_resource)
{
    QUERN__ENTER_UNLOCKED(world);
    QUERN__NEED(def);
    QUERN__NEED(out_resource);
    if (world->loader != NULL)
        return world->loader->register_type(world->loader->user_data, QUERN_TYPE_RESOURCE, def,
                                            &out_resource->bits);
    quern__resources *resources = &world->resources;
    const quern_allocator *allocator = &world->storage.allocator;
    quern_result result = quern__check_name(def->name, "resource");
    if (result == QUERN_OK && def->type_id != 0 &&
        !quern__type_ids_reserve(&resources->type_ids, allocator))
        result = quern__registry_fail_memory(&registry, def->name);
    if (result != QUERN_OK) return quern__in_call(result, __func__);
    const quern_resource known = quern__resources_find(resources, def->name);
    if (known.bits == 0) {
        result = append(resources, allocator, def);
        if (result != QUERN_OK) return quern__in_call(result, __func__);
        *out_resource = handle_of(resources, resources->list.count - 1);
        quern__type_identify(&resources->list.items[resources->list.count - 1].type, &resources->type_ids,
                             def->type_id, out_resource->bits);
        return QUERN_OK;
    }
    /* the registered resource must have the same layout */
    quern__type type;
    result = define_type(&type, allocator, def);
    if (result != QUERN_OK) return quern__in_call(result, __func__);
    quern__type *known_type = &resources->list.items[quern__resource_index(known)].type;
    result = quern__type_check_same_layout(known_type, &type, registry.what);
    quern__type_release(&type, allocator);
    if (result != QUERN_OK) return quern__in_call(result, __func__);
    quern__type_identify(known_type, &resources->type_ids, def->type_id, known.bits);
    *out_resource = known;
    return QUERN_OK;
}

quern_result quern_resource_redefine(quern_world *world, quern_resource resource,
                                     const quern_resource_def *def, const quern_redefine_def *how,
                                     quern_redefine_report *out_report)
{
    QUERN__ENTER_UNLOCKED(world);
    QUERN__NEED(def);
    quern_result result = quern__redefine_check_frames(world, __func__);
    if (result != QUERN_OK) return result;
    result = quern__resources_check(&world->resources, resource);
    if (result != QUERN_OK) return quern__in_call(result, __func__);
    quern__resource *known = &world->resources.list.items[quern__resource_index(resource)];
    quern__redefinition it = {.world = world,
                              .what = "resource",
                              .type = &known->type,
                              .ids = &world->resources.type_ids,
                              .handle_bits = resource.bits};
    quern_resource_def named = *def;
    result = quern__redefine_check_name(it.type, &named.name, it.what);
    if (result == QUERN_OK) result = define_type(&it.fresh, &world->storage.allocator, &named);
    result = quern__redefine_begin(&it, result, QUERN__NO_COMPONENT, how, out_report);
    if (result != QUERN_OK) return quern__in_call(result, __func__);
    uint32_t frame_count = 0;
    if (it.is_converted) {
        const quern_allocator *allocator = &world->storage.allocator;
        void *value = NULL;
        result = quern__type_change_check(&it.change, known->value, 1);
        if (result == QUERN_OK) {
            value = quern__allocate(allocator, value_bytes(it.type), QUERN_MAX_ALIGNMENT_BYTES);
            if (value == NULL)
                result = quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "resource '%s': no memory for its %u bytes",
                                     it.type->name, it.type->size_bytes);
        }
        if (result == QUERN_OK && it.only_checks) {
            quern__release(allocator, value, value_bytes(it.type), QUERN_MAX_ALIGNMENT_BYTES);
            result = QUERN__CHECKED;
        }
        if (result == QUERN_OK) {
            frame_count = quern__redefine_drop_frames(&it);
            quern__world_set_locked(world, true); /* a migration must not call functions of the world */
            quern__type_change_values(&it.change, value, known->value, 1);
            quern__world_set_locked(world, false);
            quern__release(allocator, known->value, value_bytes(&it.change.old), QUERN_MAX_ALIGNMENT_BYTES);
            known->value = value;
        }
    }
    result = quern__redefine_end(&it, result, out_report);
    if (result == QUERN_OK && out_report != NULL) out_report->dropped_frame_count = frame_count;
    return quern__in_call(result, __func__);
}

quern_resource quern_resource_find(const quern_world *world, const char *name)
{
    QUERN__NEED_OR(world, (quern_resource){0});
    QUERN__NEED_OR(name, (quern_resource){0});
    return quern__resources_find(&world->resources, name);
}

quern_result quern_resource_get_size(const quern_world *world, quern_resource resource,
                                     uint32_t *out_size_bytes)
{
    QUERN__NEED(world);
    QUERN__NEED(out_size_bytes);
    const quern_result result = quern__resources_check(&world->resources, resource);
    if (result != QUERN_OK) return quern__in_call(result, __func__);
    *out_size_bytes = world->resources.list.items[quern__resource_index(resource)].type.size_bytes;
    return QUERN_OK;
}

void *quern_resource_get(quern_world *world, quern_resource resource)
{
    QUERN__NEED_OR(world, NULL);
    if (quern__world_check_unlocked(world, __func__) != QUERN_OK) return NULL;
    const quern_result result = quern__resources_check(&world->resources, resource);
    if (quern__in_call(result, __func__) != QUERN_OK) return NULL;
    return world->resources.list.items[quern__resource_index(resource)].value;
}

quern_result quern__resources_check(const quern__resources *resources, quern_resource resource)
{
    if (quern__handle_is_valid(resource.bits, resources->world_tag, resources->list.count)) return QUERN_OK;
    return quern__registry_fail_unknown(&registry, resource.bits, resources->world_tag);
}

quern_resource quern__resources_find(const quern__resources *resources, const char *name)
{
    const uint32_t count = resources->list.count;
    const uint32_t i = quern__registry_find(&registry, resources->list.items, 0, count, name);
    return i < count ? handle_of(resources, i) : (quern_resource){0};
}

quern_suggestion quern__resources_suggest(const quern__resources *resources, const char *name, size_t bytes)
{
    quern_suggestion suggestion = {0};
    for (uint32_t i = 0; i < resources->list.count; i++)
        quern_suggestion_offer(&suggestion, name, bytes, resources->list.items[i].type.name);
    return suggestion;
}

void quern__resources_release(quern__resources *resources, const quern_allocator *allocator)
{
    for (uint32_t i = 0; i < resources->list.count; i++) {
        quern__resource *resource = &resources->list.items[i];
        quern__type_destroy(&resource->type, resource->value, 1);
        resource_release(resource, allocator);
    }
    quern__array_release(allocator, &resources->list);
    quern__type_ids_release(&resources->type_ids, allocator);
}

/* ------------------------------------------------------------------------------------------- loaders */

quern_result quern_world_set_loader(quern_world *world, const quern_loader *loader)
{
    QUERN__ENTER_UNLOCKED(world);
    if (loader != NULL &&
        (loader->register_type == NULL || loader->use_type == NULL || loader->add_system == NULL))
        return quern__fail(QUERN_ERROR_NULL_ARGUMENT, "%s: a function of the loader is NULL: set all three",
                           __func__);
    world->loader = loader;
    return QUERN_OK;
}

const quern_loader *quern_world_loader(const quern_world *world)
{
    QUERN__NEED_OR(world, NULL);
    return world->loader;
}
