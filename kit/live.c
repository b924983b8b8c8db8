/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* The calls of living code: modules, the files that they come from, and what a program can ask of them. live_batch.c
 * loads and exchanges their versions. */
#include "kit/live_batch.h"

#include <stdio.h>
#include <string.h>

enum { DEFAULT_SETTLE_MS = 100 };

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
    quern__live_init_loader(live);
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
    const quern_result result = quern__live_run_batch(live, &module, 1, false, NULL, call);
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
    result = quern__live_run_batch(live, &module, 1, true, NULL, call);
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
    const quern_result result = quern__live_run_batch(live, chosen, count, false, NULL, call);
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
    const quern_result reverted =
        quern__live_run_batch(live, &module, 1, false, module->before->path, call);
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
        quern__live_end_stuck(live, module);
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
