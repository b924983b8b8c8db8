/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Living code: modules, their versions, and how a batch of versions takes over.
 *
 * A *version* is one loaded copy of a module's file, with the types and systems that its load function has registered. A
 * reload is a *batch* of versions that are loaded beside the running ones:
 *
 *   1. The load functions run. A system takes the place of the one with its name at once; a new definition of a type is
 *      only noted. No frame runs meanwhile, so code and values of different layouts do not meet.
 *   2. The systems that no new version has are removed, and the schedule is compiled.
 *   3. The types are redefined, all of them or none.
 *   4. The old versions are released.
 *
 * A failure takes back what was done. The types come last because the values of a type that is converted there and back may
 * have lost fields.
 *
 * The file is copied before it is loaded: the system returns the library that it has if a path is loaded again, and a
 * linker that overwrites a loaded file changes running code.
 *
 * A library is unloaded when nothing refers to it: neither a running version, nor a type whose hooks are in it. */
#include "kit/live_load.h"

#include <quern/redefine.h>
#include <quern/shorthand.h>

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { DEFAULT_SETTLE_MS = 100 };

/* Puts the name of a call and its subject before the error message. */
static quern_result in_module(quern_result result, const char *call, const char *name)
{
    char detail[LIVE_ERROR_BYTES];
    (void)snprintf(detail, sizeof detail, "%s", quern_error_message());
    return quern_error_set(result, "%s: module '%s': %s", call, name, detail);
}

/* ------------------------------------------------------------------------------------ types of a batch */

/* Completes the changes that the new versions have planned. A type that its module does not register any more gets the
 * definition of another module that does. */
static quern_result complete_changes(quern_live *live)
{
    LIVE_FOR_EACH(live_known *, place, live->known)
    {
        live_known *const known = *place;
        const live_change *change = quern__live_find_change(live, known);
        const bool is_dropped = change == NULL && known->owner != NULL &&
                                quern__live_is_changing(known->owner) &&
                                known->owner != known->owner->module->next;
        if (change == NULL && !is_dropped) continue;
        LIVE_FOR_EACH(live_module *, module, live->modules)
        {
            live_version *const running = (*module)->running;
            if (running == NULL || quern__live_is_changing(running)) continue;
            const live_type *const type = quern__live_find_type(running, known);
            if (type == NULL) continue;
            const bool agrees =
                change != NULL &&
                (type->is_used_only ? quern__live_layout_of(known->kind, change->def).size_bytes ==
                                          quern__live_layout_of(known->kind, type->def).size_bytes
                                    : quern__live_definitions_agree(known->kind, change->def, type->def));
            if (change == NULL && !type->is_used_only) {
                live_change *const added = quern__live_append(live, &live->changes, sizeof *added);
                if (added == NULL) return QUERN_ERROR_OUT_OF_MEMORY;
                *added = (live_change){known, running, type->def};
                change = added;
            } else if (change != NULL && !agrees) {
                return quern__live_refuse_definition(
                    known, running, "change both modules, so that they are reloaded together");
            }
        }
    }
    return QUERN_OK;
}

/* Adds a formatted text to the report of a module, as far as there is room. */
static void report(live_module *module, const char *format, ...) QUERN__FORMAT(2, 3);
static void report(live_module *module, const char *format, ...)
{
    const size_t length = strlen(module->report);
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(module->report + length, sizeof module->report - length, format, arguments);
    va_end(arguments);
}

/* Notes what the redefinition of a type has changed. */
static void note_change(const live_change *change, const quern_redefine_report *changed)
{
    live_module *const module = change->by->module;
    if (module->next == NULL)
        return; /* not reloaded: its definition was needed for a type that others left */
    if (!changed->is_converted) {
        module->pending.renewed_count++;
        return;
    }
    module->pending.converted_count++;
    report(module, "%s '%s': %llu values converted, %u fields added, %u dropped",
           quern__live_kind_names[change->known->kind], change->known->name,
           (unsigned long long)changed->value_count, changed->added_field_count,
           changed->dropped_field_count);
    for (uint32_t i = 0; i < changed->dropped_field_count && i < QUERN_MAX_DROPPED_FIELDS; i++)
        report(module, "%s%s", i == 0 ? ": " : ", ", changed->dropped_fields[i]);
    if (changed->shortened_count > 0)
        report(module, "; %llu texts shortened", (unsigned long long)changed->shortened_count);
    if (changed->dropped_frame_count > 0)
        report(module, "; %u frames of the history dropped", changed->dropped_frame_count);
    report(module, "\n");
}

static quern_result redefine_type(const quern_live *live, const live_known *known,
                                  const live_definition *def, const quern_redefine_def *how,
                                  quern_redefine_report *out_report)
{
    if (known->kind == QUERN_TYPE_COMPONENT)
        return quern_component_redefine(live->world, (quern_component){known->bits}, &def->component, how,
                                        out_report);
    if (known->kind == QUERN_TYPE_RESOURCE)
        return quern_resource_redefine(live->world, (quern_resource){known->bits}, &def->resource, how,
                                       out_report);
    return quern_event_redefine(live->world, (quern_event){known->bits}, &def->event, how, out_report);
}

/* ---------------------------------------------------------------------------------- systems of a batch */

/* Disables a running system, whose code or whose types are those of a version that was refused. */
static void stop_system(quern_live *live, live_system *system)
{
    if (system->is_stopped || !quern__live_is_present(live, system)) return;
    system->is_stopped = quern_schedule_is_system_enabled(live->schedule, system->handle);
    (void)quern_schedule_set_system_enabled(live->schedule, system->handle, false);
}

/* Takes back the changes of the schedule, and keeps the error message. Returns whether all were taken back. */
static bool undo_systems(quern_live *live, quern_result result_before)
{
    char error[LIVE_ERROR_BYTES];
    bool is_undone = true;
    (void)snprintf(error, sizeof error, "%s", quern_error_message());
    while (live->steps.count > 0) {
        const live_step *const step = &LIVE_ITEM(live->steps, live_step, --live->steps.count);
        quern_result result;
        if (step->replaced == NULL) {
            result = quern_schedule_remove_system(live->schedule, step->system);
        } else if (step->system.bits != 0) {
            result = quern_schedule_replace_system(live->schedule, step->system, step->replaced);
        } else {
            live_system *const system = quern__live_find_running(live, step->replaced->name);
            const quern_system before = system->handle;
            result = quern_schedule_add_system(live->schedule, step->replaced, &system->handle);
            if (result == QUERN_OK)
                result = quern_schedule_move_system(live->schedule, system->handle, step->previous);
            if (result == QUERN_OK && step->was_disabled)
                result = quern_schedule_set_system_enabled(live->schedule, system->handle, false);
            /* steps before this one may name the system by its old handle */
            LIVE_FOR_EACH(live_step, other, live->steps)
            if (other->previous.bits == before.bits) other->previous = system->handle;
        }
        if (result == QUERN_OK) continue;
        is_undone = false;
        quern__live_say(
            live, QUERN_LOG_ERROR,
            "quern_live: the system '%s' could not be brought back, and does not run until its module is "
            "reloaded: %s",
            step->replaced != NULL ? step->replaced->name : "", quern_error_message());
        /* The code of the refused version would find the old layouts. */
        if (step->replaced != NULL && step->system.bits != 0)
            stop_system(live, quern__live_find_running(live, step->replaced->name));
    }
    (void)quern_error_set(result_before, "%s", error);
    return is_undone;
}

/* Removes the systems of the old versions that no new version has. */
static quern_result remove_systems(quern_live *live, live_module *module)
{
    if (module->running == NULL) return QUERN_OK;
    LIVE_FOR_EACH(live_system, system, module->running->systems)
    {
        if (quern__live_was_replaced(live, system) || !quern__live_is_present(live, system)) continue;
        live_step *const step = quern__live_add_step(live);
        if (step == NULL) return QUERN_ERROR_OUT_OF_MEMORY;
        *step =
            (live_step){.replaced = system->def,
                        .was_disabled = !quern_schedule_is_system_enabled(live->schedule, system->handle),
                        .previous = quern_schedule_previous_system(live->schedule, system->handle)};
        const quern_result result = quern_schedule_remove_system(live->schedule, system->handle);
        if (result != QUERN_OK) {
            live->steps.count--;
            return result;
        }
        module->pending.removed_count++;
    }
    return QUERN_OK;
}

/* ---------------------------------------------------------------------------------------------- batches */

/* Notes that a type has the definition of the version that a change names. */
static void adopt_change(quern_live *live, const live_change *change)
{
    live_library *const before = change->known->code;
    change->known->owner = change->by;
    change->known->code =
        quern__live_has_hooks(change->known->kind, change->def) ? change->by->library : NULL;
    if (change->known->code != NULL) change->known->code->user_count++;
    quern__live_leave_library(live, before);
}

/* Gives the types that were redefined first their old definitions again. Only a lack of memory leads here. A type for which
 * this fails, too, keeps its new definition: then the version is not released, and the systems of the old one stop. */
static void undo_changes(quern_live *live, uint32_t count)
{
    char error[LIVE_ERROR_BYTES];
    (void)snprintf(error, sizeof error, "%s", quern_error_message());
    for (uint32_t i = count; i-- > 0;) {
        const live_change *const change = &LIVE_ITEM(live->changes, live_change, i);
        const live_version *const owner = change->known->owner;
        const live_definition *const before =
            owner != NULL ? quern__live_registered(owner, change->known) : NULL;
        quern_redefine_report changed;
        if (before == NULL || redefine_type(live, change->known, before, NULL, &changed) != QUERN_OK) {
            quern__live_say(
                live, QUERN_LOG_ERROR,
                "quern_live: the %s '%s' could not get its old definition again: the systems of the "
                "modules do not run "
                "until they are reloaded",
                quern__live_kind_names[change->known->kind], change->known->name);
            adopt_change(live, change);
            live->has_stuck_types = true;
        } else if (changed.added_field_count > 0) {
            quern__live_say(
                live, QUERN_LOG_ERROR,
                "quern_live: the values of the %s '%s' were converted there and back: %u fields are zero "
                "now",
                quern__live_kind_names[change->known->kind], change->known->name,
                changed.added_field_count);
        }
    }
    (void)quern_error_set(QUERN_ERROR_OUT_OF_MEMORY, "%s", error);
}

/* Redefines the types as planned, all or none: all of them are checked before the first one is changed. */
static quern_result redefine(quern_live *live)
{
    static const quern_redefine_def checks = {.only_checks = true};
    quern_redefine_report changed;
    /* Values of waiting commands cannot be converted. The next frame would apply them first, with the same result. */
    const quern_result flushed = live->changes.count > 0 ? quern_world_flush(live->world) : QUERN_OK;
    if (flushed != QUERN_OK) return flushed;
    LIVE_FOR_EACH(const live_change, change, live->changes)
    {
        const quern_result result = redefine_type(live, change->known, change->def, &checks, &changed);
        if (result != QUERN_OK) return result;
    }
    LIVE_FOR_EACH(live_module *, module, live->modules)
    if ((*module)->next != NULL) *(*module)->report = 0;
    for (uint32_t i = 0; i < live->changes.count; i++) {
        const live_change *const change = &LIVE_ITEM(live->changes, live_change, i);
        const quern_result result = redefine_type(live, change->known, change->def, NULL, &changed);
        if (result != QUERN_OK) {
            undo_changes(live, i);
            return result;
        }
        note_change(change, &changed);
    }
    return QUERN_OK;
}

/* Makes the loaded versions run. *subject: name of the module that a message is about. */
static quern_result change_over(quern_live *live, bool was_compiled, const char **subject)
{
    quern_result result = complete_changes(live);
    bool has_new = false;
    LIVE_FOR_EACH(live_module *, module, live->modules)
    {
        if (result != QUERN_OK || (*module)->next == NULL) continue;
        *subject = (*module)->name;
        has_new = has_new || (*module)->running == NULL;
        result = remove_systems(live, *module);
    }
    /* A module that is new may wait for systems of others. */
    if (result == QUERN_OK && was_compiled && !has_new) result = quern_schedule_compile(live->schedule);
    return result == QUERN_OK ? redefine(live) : result;
}

static void end_stuck(quern_live *live, live_module *module)
{
    while (module->stuck != NULL) {
        live_version *const stuck = module->stuck;
        module->stuck = stuck->next_stuck;
        quern__live_release_version(live, stuck);
    }
}

/* Ends a batch that has changed over: the old versions leave. */
static void finish_batch(quern_live *live)
{
    LIVE_FOR_EACH(const live_change, change, live->changes) adopt_change(live, change);
    live->changes.count = live->steps.count = 0;
    LIVE_FOR_EACH(live_module *, place, live->modules)
    {
        live_module *const module = *place;
        if (module->next == NULL) continue;
        live_version *const old = module->running;
        module->running = module->next;
        module->next = NULL;
        module->version_count++;
        module->info = module->pending;
        *module->error = 0;
        end_stuck(live, module);
        if (old == NULL) continue;
        if (old->entry->leave != NULL) old->entry->leave(&old->face);
        quern__live_forget_library(live, module->before);
        module->before = old->library;
        module->before->is_kept = true;
        quern__live_release_version(live, old);
    }
}

/* Discards the versions of a batch that failed. */
static void discard_batch(quern_live *live, quern_result result)
{
    const bool is_undone = undo_systems(live, result) && !live->has_stuck_types;
    live->changes.count = 0;
    LIVE_FOR_EACH(live_module *, module, live->modules)
    {
        live_version *const version = (*module)->next;
        if (version != NULL && (*module)->running != NULL && live->has_stuck_types)
            LIVE_FOR_EACH(live_system, system, (*module)->running->systems) stop_system(live, system);
        (*module)->next = NULL;
        if (is_undone || version == NULL) {
            quern__live_release_version(live, version);
        } else {
            version->next_stuck = (*module)->stuck;
            (*module)->stuck = version;
        }
    }
    live->has_stuck_types = false;
}

/* Tells that a module runs in a new version. */
static void announce(const quern_live *live, const live_module *module)
{
    const quern_live_info *const info = &module->info;
    quern__live_say(
        live, QUERN_LOG_INFO,
        "quern_live: module '%s' runs in version %u: %u systems added, %u replaced, %u removed; %u types "
        "renewed, %u "
        "converted; loaded in %.1f ms, changed over in %.1f ms",
        module->name, module->version_count, info->added_count, info->replaced_count, info->removed_count,
        info->renewed_count, info->converted_count, (double)info->load_ns * 1e-6,
        (double)info->change_ns * 1e-6);
    for (const char *line = module->report; *line != 0;) {
        const size_t bytes = strcspn(line, "\n"); /* the last line may be cut */
        quern__live_say(live, QUERN_LOG_INFO, "quern_live: module '%s': %.*s", module->name, (int)bytes,
                        line);
        line += bytes + (line[bytes] != 0);
    }
}

/* Makes chosen modules change: loads their files, or `from`, or removes them. On failure nothing has changed; the message
 * names the module. */
static quern_result run_batch(quern_live *live, live_module *const *chosen, uint32_t chosen_count,
                              bool removes, const char *from, const char *call)
{
    const uint64_t begin_ns = quern_clock_ns();
    const char *name = chosen[0]->name;
    /* Also finds out whether a frame is running. A schedule that lacks systems now may lack them afterwards. */
    quern_result result = quern_schedule_compile(live->schedule);
    if (result == QUERN_ERROR_WORLD_LOCKED) return in_module(result, call, name);
    if (quern_world_loader(live->world) != NULL)
        return in_module(quern_error_set(QUERN_ERROR_WORLD_LOCKED,
                                         "a load function is running on the world: call it afterwards"),
                         call, name);
    const bool was_compiled = result == QUERN_OK;
    result = QUERN_OK;
    /* A version must know which modules change with it, so all of them get a `next` before the first one is loaded. A
     * module that is removed gets an empty version. */
    for (uint32_t i = 0; i < chosen_count && result == QUERN_OK; i++) {
        chosen[i]->pending = (quern_live_info){0};
        chosen[i]->next = quern__live_allocate(live, sizeof *chosen[i]->next);
        if (chosen[i]->next == NULL)
            result = quern_error_set(QUERN_ERROR_OUT_OF_MEMORY, "no memory for a version");
        else
            chosen[i]->next->module = chosen[i];
    }
    for (uint32_t i = 0; i < chosen_count && result == QUERN_OK && !removes; i++) {
        result = quern__live_load_version(live, chosen[i], from != NULL ? from : chosen[i]->path);
        name = chosen[i]->name;
    }
    if (result == QUERN_OK) result = change_over(live, was_compiled, &name);
    if (result != QUERN_OK) {
        result = in_module(result, call, name);
        discard_batch(live, result);
        return result;
    }
    uint64_t change_ns = quern_clock_ns() - begin_ns;
    for (uint32_t i = 0; i < chosen_count; i++)
        change_ns -= chosen[i]->pending.load_ns;
    for (uint32_t i = 0; i < chosen_count; i++)
        chosen[i]->pending.change_ns = change_ns;
    finish_batch(live);
    for (uint32_t i = 0; i < chosen_count && !removes; i++)
        announce(live, chosen[i]);
    return QUERN_OK;
}

/* ------------------------------------------------------------------------------------------ public calls */

quern_result quern_live_create(const quern_live_def *def, quern_live **out_live)
{
    static const char call[] = "quern_live_create";
    if (def == NULL || out_live == NULL || def->world == NULL || def->schedule == NULL)
        return quern_error_set(QUERN_ERROR_NULL_ARGUMENT, "%s: %s is NULL", call,
                               def == NULL          ? "def"
                               : out_live == NULL   ? "out_live"
                               : def->world == NULL ? "the world"
                                                    : "the schedule");
    if ((def->allocator.allocate == NULL) != (def->allocator.release == NULL))
        return quern_error_set(
            QUERN_ERROR_INVALID_ARGUMENT,
            "%s: the allocator has only one of allocate and release: set both, or neither", call);
    const quern_allocator allocator =
        def->allocator.allocate != NULL ? def->allocator : quern_allocator_default();
    quern_live *const live = allocator.allocate(allocator.user_data, sizeof *live, _Alignof(max_align_t));
    if (live == NULL)
        return quern_error_set(QUERN_ERROR_OUT_OF_MEMORY, "%s: no memory for the object", call);
    *live = (quern_live){.world = def->world,
                         .schedule = def->schedule,
                         .allocator = allocator,
                         .def = *def,
                         .user = {.name = "living code", .schedule = def->schedule}};
    live->def.folder = NULL; /* is needed here only */
    live->loader =
        (quern_loader){quern__live_on_register, quern__live_on_use, quern__live_on_add_system, live};
    quern_result result = quern__live_create_folder(def->folder, live->folder);
    if (result == QUERN_OK) {
        result = quern_world_add_user(def->world, &live->user);
        if (result != QUERN_OK) quern__live_remove_folder(live->folder);
    }
    if (result != QUERN_OK) {
        quern__live_release(live, live, sizeof *live);
        char detail[LIVE_ERROR_BYTES];
        (void)snprintf(detail, sizeof detail, "%s", quern_error_message());
        return quern_error_set(result, "%s: %s", call, detail);
    }
    *out_live = live;
    return QUERN_OK;
}

static live_module *find_module(const quern_live *live, const char *name)
{
    LIVE_FOR_EACH(live_module *, module, live->modules)
    if (strcmp((*module)->name, name) == 0) return *module;
    return NULL;
}

static quern_result find_for(const quern_live *live, const char *name, const char *call,
                             live_module **out_module)
{
    *out_module = NULL;
    if (live == NULL || name == NULL)
        return quern_error_set(QUERN_ERROR_NULL_ARGUMENT, "%s: %s is NULL", call,
                               live == NULL ? "live" : "name");
    *out_module = find_module(live, name);
    if (*out_module != NULL) return QUERN_OK;
    return quern_error_set(QUERN_ERROR_INVALID_ARGUMENT,
                           "%s: there is no module '%s': quern_live_get_info lists them", call, name);
}

/* Copies the name that a file gives its module: without folder, "lib" and what follows the first dot. */
static void name_of_file(const char *path, char out_name[QUERN_MAX_NAME_BYTES + 2])
{
    const char *start = path;
    for (const char *at = path; *at != 0; at++)
        if (*at == '/' || *at == '\\') start = at + 1;
    if (strncmp(start, "lib", 3) == 0 && start[3] != 0 && start[3] != '.') start += 3;
    size_t length = strcspn(start, ".");
    if (length > QUERN_MAX_NAME_BYTES + 1)
        length = QUERN_MAX_NAME_BYTES + 1; /* too long, which is refused */
    memcpy(out_name, start, length);
    out_name[length] = 0;
}

quern_result quern_live_add(quern_live *live, const char *path, const char *name)
{
    static const char call[] = "quern_live_add";
    char own_name[QUERN_MAX_NAME_BYTES + 2];
    if (live == NULL || path == NULL)
        return quern_error_set(QUERN_ERROR_NULL_ARGUMENT, "%s: %s is NULL", call,
                               live == NULL ? "live" : "path");
    if (name == NULL) {
        name_of_file(path, own_name);
        name = own_name;
    }
    if (*name == 0 || strlen(name) > QUERN_MAX_NAME_BYTES || strpbrk(name, "/\\") != NULL)
        return quern_error_set(QUERN_ERROR_INVALID_ARGUMENT,
                               "%s: '%.80s' is no name of a module: give 1 to %d bytes without slashes",
                               call, name, QUERN_MAX_NAME_BYTES);
    if (strlen(path) >= QUERN__LIVE_PATH_BYTES)
        return quern_error_set(QUERN_ERROR_INVALID_ARGUMENT,
                               "%s: the path of module '%s' is longer than %d bytes: use a shorter one",
                               call, name, QUERN__LIVE_PATH_BYTES - 1);
    if (find_module(live, name) != NULL)
        return quern_error_set(QUERN_ERROR_DUPLICATE_NAME,
                               "%s: there is a module '%s' already: remove it first, or give another name",
                               call, name);
    live_module *const module = quern__live_allocate(live, sizeof *module);
    live_module **const place =
        module != NULL ? quern__live_append(live, &live->modules, sizeof *place) : NULL;
    if (place == NULL) {
        quern__live_release(live, module, sizeof *module);
        return quern_error_set(QUERN_ERROR_OUT_OF_MEMORY, "%s: no memory for module '%s'", call, name);
    }
    module->live = live;
    memcpy(module->name, name, strlen(name) + 1);
    memcpy(module->path, path, strlen(path) + 1);
    *place = module;
    (void)quern__live_read_stamp(path, &module->loaded);
    module->seen = module->loaded;
    const quern_result result = run_batch(live, &module, 1, false, NULL, call);
    if (result != QUERN_OK) {
        live->modules.count--;
        quern__live_release(live, module, sizeof *module);
    }
    return result;
}

/* Frees a module that does not run. */
static void free_module(quern_live *live, live_module *module)
{
    quern__live_forget_library(live, module->before);
    quern__live_release(live, module, sizeof *module);
    uint32_t count = 0;
    LIVE_FOR_EACH(live_module *, other, live->modules)
    if (*other != module) LIVE_ITEM(live->modules, live_module *, count++) = *other;
    live->modules.count = count;
}

quern_result quern_live_remove(quern_live *live, const char *name)
{
    static const char call[] = "quern_live_remove";
    live_module *module;
    quern_result result = find_for(live, name, call, &module);
    if (module == NULL) return result;
    result = run_batch(live, &module, 1, true, NULL, call);
    if (result != QUERN_OK) return result;
    live_version *const empty = module->running;
    module->running = NULL;
    quern__live_release_version(live, empty);
    quern__live_say(live, QUERN_LOG_INFO, "quern_live: module '%s' was removed", module->name);
    free_module(live, module);
    return QUERN_OK;
}

static bool stamps_equal(const quern__live_stamp *a, const quern__live_stamp *b)
{
    return a->size_bytes == b->size_bytes && a->time_ns == b->time_ns && a->id == b->id;
}

/* Returns whether the file of a module has changed since it was loaded, and is complete as far as one can see. A file that
 * was refused counts only if `again`: it may fit a module that has changed since. */
static bool has_changed(const quern_live *live, live_module *module, bool again)
{
    quern__live_stamp now;
    if (!quern__live_read_stamp(module->path, &now) || now.size_bytes == 0)
        return false; /* is being written */
    if (stamps_equal(&now, &module->loaded)) return false;
    if (stamps_equal(&now, &module->refused)) return again;
    if (live->def.disable_settling) return true;
    const uint64_t now_ns = quern_clock_ns();
    if (!stamps_equal(&now, &module->seen)) {
        module->seen = now;
        module->seen_ns = now_ns;
        return false;
    }
    const uint64_t settle_ms = live->def.settle_ms > 0 ? live->def.settle_ms : DEFAULT_SETTLE_MS;
    return now_ns - module->seen_ns >= settle_ms * 1000000u;
}

/* Runs a batch of changed files, and notes their stamps. */
static quern_result reload_changed(quern_live *live, live_module *const *chosen, uint32_t count,
                                   const char *call)
{
    for (uint32_t i = 0; i < count; i++)
        (void)quern__live_read_stamp(chosen[i]->path, &chosen[i]->seen);
    const quern_result result = run_batch(live, chosen, count, false, NULL, call);
    for (uint32_t i = 0; i < count; i++) {
        if (result == QUERN_OK)
            chosen[i]->loaded = chosen[i]->seen;
        else if (result != QUERN_ERROR_OUT_OF_MEMORY && result != QUERN_ERROR_WORLD_LOCKED)
            chosen[i]->refused = chosen[i]->seen; /* those may pass: the file is tried again */
        if (result != QUERN_OK)
            (void)snprintf(chosen[i]->error, sizeof chosen[i]->error, "%s", quern_error_message());
    }
    return result;
}

quern_result quern_live_update(quern_live *live, uint32_t *out_count)
{
    static const char call[] = "quern_live_update";
    if (live == NULL) return quern_error_set(QUERN_ERROR_NULL_ARGUMENT, "%s: %s is NULL", call, "live");
    if (out_count != NULL) *out_count = 0;
    bool any_changed = false;
    LIVE_FOR_EACH(live_module *, module, live->modules)
    if (has_changed(live, *module, false)) any_changed = true;
    if (!any_changed) return QUERN_OK;

    live_array chosen = {0};
    LIVE_FOR_EACH(live_module *, module, live->modules)
    {
        if (!has_changed(live, *module, true)) continue;
        live_module **const place = quern__live_append(live, &chosen, sizeof *place);
        if (place == NULL) {
            quern__live_release_array(live, &chosen, sizeof(live_module *));
            return quern_error_set(QUERN_ERROR_OUT_OF_MEMORY, "%s: no memory to list the changed modules",
                                   call);
        }
        *place = *module;
    }
    live_module *const *const modules = chosen.items;
    uint32_t count = chosen.count;
    if (modules == NULL) return QUERN_OK;
    quern_result result = reload_changed(live, modules, count, call);
    if (result != QUERN_OK && chosen.count > 1) {
        /* Those that do not need the others run in their new versions nevertheless. */
        quern__live_say(live, QUERN_LOG_ERROR, "%s; the %u changed modules are tried one by one",
                        quern_error_message(), count);
        count = 0;
        result = QUERN_OK;
        char error[LIVE_ERROR_BYTES] = "";
        for (uint32_t i = 0; i < chosen.count; i++) {
            const quern_result one = reload_changed(live, &modules[i], 1, call);
            count += one == QUERN_OK;
            if (one != QUERN_OK) {
                quern__live_say(live, QUERN_LOG_ERROR, "%s", quern_error_message());
                result = one;
                (void)snprintf(error, sizeof error, "%s", quern_error_message());
            }
        }
        if (result != QUERN_OK) (void)quern_error_set(result, "%s", error);
    } else if (result != QUERN_OK) {
        count = 0;
        quern__live_say(live, QUERN_LOG_ERROR, "%s", quern_error_message());
    }
    quern__live_release_array(live, &chosen, sizeof(live_module *));
    if (out_count != NULL) *out_count = count;
    return result;
}

quern_result quern_live_reload(quern_live *live, const char *name)
{
    live_module *module;
    const quern_result result = find_for(live, name, "quern_live_reload", &module);
    return module == NULL ? result : reload_changed(live, &module, 1, "quern_live_reload");
}

quern_result quern_live_revert(quern_live *live, const char *name)
{
    static const char call[] = "quern_live_revert";
    live_module *module;
    const quern_result result = find_for(live, name, call, &module);
    if (module == NULL) return result;
    if (module->before == NULL)
        return quern_error_set(QUERN_ERROR_UNAVAILABLE,
                               "%s: module '%s' runs in its first version: there is none before", call,
                               name);
    quern__live_stamp stamp = module->loaded;
    (void)quern__live_read_stamp(module->path, &stamp);
    const quern_result reverted = run_batch(live, &module, 1, false, module->before->path, call);
    if (reverted == QUERN_OK) module->loaded = stamp;
    return reverted;
}

void quern_live_destroy(quern_live *live)
{
    if (live == NULL) return;
    if (quern_schedule_compile(live->schedule) == QUERN_ERROR_WORLD_LOCKED) {
        quern__live_say(live, QUERN_LOG_ERROR, "quern_live_destroy: %s; the object remains",
                        quern_error_message());
        return;
    }
    /* Needs no memory, and asks no order: what the program's systems name may be missing from now on. */
    while (live->modules.count > 0) {
        live_module *const module = LIVE_ITEM(live->modules, live_module *, live->modules.count - 1);
        live_version *const running = module->running;
        LIVE_FOR_EACH(const live_system, system, running->systems)
        if (quern__live_is_present(live, system))
            (void)quern_schedule_remove_system(live->schedule, system->handle);
        if (running->entry->leave != NULL) running->entry->leave(&running->face);
        end_stuck(live, module);
        quern__live_release_version(live, running);
        free_module(live, module);
    }
    quern_world_remove_user(live->world, &live->user);
    LIVE_FOR_EACH(live_known *, place, live->known)
    {
        live_known *const known = *place;
        live_library *const library = known->code;
        if (library != NULL && --library->user_count == 0) {
            quern__live_say(
                live, QUERN_LOG_INFO,
                "quern_live_destroy: '%s' stays loaded: the world still calls the hooks of types such as "
                "the %s '%s'",
                library->path, quern__live_kind_names[known->kind], known->name);
            quern__live_free_library(live, library);
        }
        quern__live_release(live, known, sizeof *known);
    }
    quern__live_release_array(live, &live->known, sizeof(live_known *));
    quern__live_release_array(live, &live->changes, sizeof(live_change));
    quern__live_release_array(live, &live->steps, sizeof(live_step));
    quern__live_release_array(live, &live->modules, sizeof(live_module *));
    quern__live_remove_folder(live->folder);
    quern__live_release(live, live, sizeof *live);
}

uint32_t quern_live_count(const quern_live *live)
{
    if (live != NULL) return live->modules.count;
    (void)quern_error_set(QUERN_ERROR_NULL_ARGUMENT, "%s: %s is NULL", "quern_live_count", "live");
    return 0;
}

quern_result quern_live_get_info(const quern_live *live, uint32_t i, quern_live_info *out_info)
{
    static const char call[] = "quern_live_get_info";
    if (live == NULL || out_info == NULL)
        return quern_error_set(QUERN_ERROR_NULL_ARGUMENT, "%s: %s is NULL", call,
                               live == NULL ? "live" : "out_info");
    if (i >= live->modules.count)
        return quern_error_set(QUERN_ERROR_INVALID_ARGUMENT,
                               "%s: there is no module %u: there are %u, from 0", call, i,
                               live->modules.count);
    const live_module *const module = LIVE_ITEM(live->modules, live_module *, i);
    *out_info = module->info;
    out_info->name = module->name;
    out_info->path = module->path;
    out_info->version = module->version_count;
    out_info->system_count = module->running != NULL ? module->running->systems.count : 0;
    out_info->type_count = module->running != NULL ? module->running->types.count : 0;
    out_info->report = module->report;
    out_info->error = module->error;
    return QUERN_OK;
}

const char *quern_live_system_name(const quern_live *live, uint32_t module, uint32_t i)
{
    if (live != NULL && module < live->modules.count) {
        const live_version *const version = LIVE_ITEM(live->modules, live_module *, module)->running;
        if (version != NULL && i < version->systems.count)
            return LIVE_ITEM(version->systems, live_system, i).def->name;
    }
    (void)quern_error_set(QUERN_ERROR_INVALID_ARGUMENT,
                          "quern_live_system_name: there is no system %u of module %u: %s", i, module,
                          live == NULL ? "live is NULL" : "quern_live_get_info has their number");
    return NULL;
}

/* ------------------------------------------------------------------------------------------- JSON */

/* JSON on its way to a sink. */
typedef struct json_text {
    quern_sink sink;
    bool has_failed;
} json_text;

static void put_bytes(json_text *json, const char *bytes, size_t size)
{
    if (!json->has_failed) json->has_failed = !json->sink.write(json->sink.user_data, bytes, size);
}

static void put_plain(json_text *json, const char *text)
{
    put_bytes(json, text, strlen(text));
}

static void put_string(json_text *json, const char *text)
{
    put_plain(json, "\"");
    while (*text != '\0') {
        char escape[8];
        size_t plain = 0;
        while ((unsigned char)text[plain] >= ' ' && text[plain] != '"' && text[plain] != '\\')
            plain++;
        put_bytes(json, text, plain);
        text += plain;
        if (*text == '\0') break;
        (void)snprintf(escape, sizeof escape, "\\u%04x", (unsigned char)*text++);
        put_plain(json, escape);
    }
    put_plain(json, "\"");
}

static void put_member(json_text *json, const char *key, const char *value)
{
    put_plain(json, ",");
    put_string(json, key);
    put_plain(json, ":");
    put_string(json, value);
}

/* Writes what the last reload did. The first version of a module is no reload. */
static void put_reload(json_text *json, const quern_live_info *info)
{
    char text[256] = "none";
    if (info->version > 1)
        (void)snprintf(text, sizeof text,
                       "%u systems replaced, %u added, %u removed; %u types renewed, %u converted; %.2f ms",
                       info->replaced_count, info->added_count, info->removed_count, info->renewed_count,
                       info->converted_count, (double)(info->load_ns + info->change_ns) / 1e6);
    put_member(json, "last reload", text);
}

static void put_module(json_text *json, const quern_live *live, uint32_t i)
{
    quern_live_info info;
    char numbers[80];
    if (quern_live_get_info(live, i, &info) != QUERN_OK) return;
    put_plain(json, i > 0 ? ",{\"module\":" : "{\"module\":");
    put_string(json, info.name);
    (void)snprintf(numbers, sizeof numbers, ",\"version\":%u", info.version);
    put_plain(json, numbers);
    put_member(json, "state", info.error[0] != '\0' ? "refused" : "runs");
    put_plain(json, ",\"systems\":[");
    for (uint32_t k = 0; k < info.system_count; k++) {
        if (k > 0) put_plain(json, ",");
        put_string(json, quern_live_system_name(live, i, k));
    }
    (void)snprintf(numbers, sizeof numbers, "],\"types\":%u", info.type_count);
    put_plain(json, numbers);
    put_reload(json, &info);
    put_member(json, "report", info.report);
    put_member(json, "error", info.error);
    put_member(json, "path", info.path);
    put_plain(json, "}");
}

quern_result quern_live_write_json(const quern_live *live, quern_sink sink)
{
    static const char call[] = "quern_live_write_json";
    if (live == NULL || sink.write == NULL)
        return quern_error_set(QUERN_ERROR_NULL_ARGUMENT, "%s: %s is NULL: pass one", call,
                               live == NULL ? "live" : "the function of the sink");
    json_text json = {.sink = sink};
    put_plain(&json, "[");
    for (uint32_t i = 0; i < live->modules.count; i++)
        put_module(&json, live, i);
    put_plain(&json, "]");
    put_bytes(&json, "", 0); /* a file's sink fails here if it could not be flushed */
    if (!json.has_failed) return QUERN_OK;
    return quern_error_set(QUERN_ERROR_IO,
                           "%s: the sink could not write the list of modules: a part may be written", call);
}
