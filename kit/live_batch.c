/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* The versions of modules: how they are loaded, what they register, and how a batch of them takes over.
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
#include "kit/live_batch.h"

#include <quern/redefine.h>
#include <quern/shorthand.h>

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

enum { LIVE_LEAST_CAPACITY = 8, LIVE_MESSAGE_BYTES = 1536 };

/* ------------------------------------------------------------------------------------ memory and messages */

void *quern__live_allocate(const quern_live *live, size_t bytes)
{
    void *const memory = live->allocator.allocate(live->allocator.user_data, bytes, _Alignof(max_align_t));
    if (memory != NULL) memset(memory, 0, bytes);
    return memory;
}

void quern__live_release(const quern_live *live, void *memory, size_t bytes)
{
    if (memory != NULL)
        live->allocator.release(live->allocator.user_data, memory, bytes, _Alignof(max_align_t));
}

void *quern__live_append(const quern_live *live, live_array *array, size_t item_bytes)
{
    if (array->count == array->capacity) {
        const uint32_t capacity = array->capacity > 0 ? 2 * array->capacity : LIVE_LEAST_CAPACITY;
        void *const items = quern__live_allocate(live, capacity * item_bytes);
        if (items == NULL) {
            (void)quern_error_set(QUERN_ERROR_OUT_OF_MEMORY, "quern_live: no memory for a list of %u items",
                                  capacity);
            return NULL;
        }
        if (array->count > 0) memcpy(items, array->items, array->count * item_bytes);
        quern__live_release(live, array->items, array->capacity * item_bytes);
        *array = (live_array){items, array->count, capacity};
    }
    return (char *)array->items + array->count++ * item_bytes;
}

void quern__live_release_array(const quern_live *live, live_array *array, size_t item_bytes)
{
    quern__live_release(live, array->items, array->capacity * item_bytes);
    *array = (live_array){0};
}

void quern__live_say(const quern_live *live, quern_log_level level, const char *format, ...)
{
    char text[LIVE_MESSAGE_BYTES];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (live->def.handler != NULL)
        live->def.handler(live->def.user_data, level, text);
    else
        fprintf(stderr, "%s\n", text);
}

/* ------------------------------------------------------------------------------------------ libraries */

void quern__live_free_library(const quern_live *live, live_library *library)
{
    quern__live_remove_file(library->path);
    quern__live_release(live, library, sizeof *library);
}

/* Ends one use of a library, and unloads it after the last one. */
static void leave_library(const quern_live *live, live_library *library)
{
    if (library == NULL || --library->user_count > 0) return;
    if (library->handle != NULL && !quern__live_close_library(library->handle, library->path))
        quern__live_say(
            live, QUERN_LOG_WARNING,
            "quern_live: the system keeps '%s' loaded, although nothing of Quern refers to it: let it "
            "export nothing but "
            "quern_live_module_entry, as quern_add_live_module does, and let leave() end threads with "
            "thread-local "
            "objects of the module",
            library->path);
    library->handle = NULL;
    if (!library->is_kept) quern__live_free_library(live, library);
}

void quern__live_forget_library(const quern_live *live, live_library *library)
{
    if (library == NULL) return;
    library->is_kept = false;
    if (library->user_count == 0) quern__live_free_library(live, library);
}

/* Returns whether a DLL has all sections, and the symbols behind them. */
static bool dll_is_whole(const unsigned char *header, size_t header_bytes, uint64_t file_bytes)
{
    uint32_t start, symbols, symbol_count;
    uint16_t section_count, optional_bytes;
    if (header_bytes < 64) return false;
    memcpy(&start, header + 60, sizeof start);
    if ((uint64_t)start + 24 > header_bytes) return (uint64_t)start + 24 <= file_bytes;
    memcpy(&section_count, header + start + 6, sizeof section_count);
    memcpy(&symbols, header + start + 12, sizeof symbols);
    memcpy(&symbol_count, header + start + 16, sizeof symbol_count);
    memcpy(&optional_bytes, header + start + 20, sizeof optional_bytes);
    bool is_whole = symbols == 0 || (uint64_t)symbols + (uint64_t)symbol_count * 18 <= file_bytes;
    for (size_t i = 0, at = start + 24 + optional_bytes; i < section_count && is_whole; i++, at += 40) {
        uint32_t bytes, offset;
        if (at + 40 > header_bytes) return at + 40 <= file_bytes;
        memcpy(&bytes, header + at + 16, sizeof bytes);
        memcpy(&offset, header + at + 20, sizeof offset);
        is_whole = (uint64_t)offset + bytes <= file_bytes;
    }
    return is_whole;
}

/* Returns whether a library has all segments and sections that its header promises: a linker may still be writing it, and
 * using a segment beyond the end of a file ends the program. Formats other than ELF and DLL are left to the system. */
static bool library_is_whole(const unsigned char *header, size_t header_bytes, uint64_t file_bytes)
{
    if (header_bytes >= 2 && memcmp(header, "MZ", 2) == 0)
        return dll_is_whole(header, header_bytes, file_bytes);
    if (header_bytes < 4 || memcmp(header, "\177ELF", 4) != 0) return true;
    if (header_bytes < 64 || header[4] != 2) return header_bytes >= 52 && header[4] == 1;
    uint64_t sections;
    uint16_t section_bytes, section_count;
    memcpy(&sections, header + 40, sizeof sections);
    memcpy(&section_bytes, header + 58, sizeof section_bytes);
    memcpy(&section_count, header + 60, sizeof section_count);
    const uint64_t table_bytes = (uint64_t)section_bytes * section_count;
    return sections <= file_bytes && table_bytes <= file_bytes - sections;
}

static quern_result copy_file(const char *from, const char *to)
{
    enum { BLOCK_BYTES = 1 << 16 };
    unsigned char block[BLOCK_BYTES];
    FILE *const source = quern__live_open_file(from, "rb");
    if (source == NULL)
        return quern_error_set(QUERN_ERROR_IO, "the file '%s' cannot be opened: check the path", from);
    FILE *const target = quern__live_open_file(to, "wb");
    uint64_t file_bytes = 0;
    size_t header_bytes = 0, bytes;
    unsigned char header[4096];
    bool is_written = target != NULL;
    while (is_written && (bytes = fread(block, 1, sizeof block, source)) > 0) {
        if (file_bytes == 0)
            memcpy(header, block, header_bytes = bytes < sizeof header ? bytes : sizeof header);
        file_bytes += bytes;
        is_written = fwrite(block, 1, bytes, target) == bytes;
    }
    const bool is_read = ferror(source) == 0;
    (void)fclose(source);
    if (target != NULL) is_written = fclose(target) == 0 && is_written;
    if (!is_read)
        return quern_error_set(QUERN_ERROR_IO,
                               "the file '%s' cannot be read: check its permissions and its disk", from);
    if (!is_written)
        return quern_error_set(
            QUERN_ERROR_IO,
            "the copy '%s' cannot be written: is the disk full? set `folder` to another one", to);
    if (!library_is_whole(header, header_bytes, file_bytes))
        return quern_error_set(
            QUERN_ERROR_IO,
            "the file '%s' is not whole (%llu bytes): was it still being written? Write it under "
            "another name and rename it, or increase settle_ms",
            from, (unsigned long long)file_bytes);
    return QUERN_OK;
}

/* Copies a file and loads the copy. *out_library has one user. */
static quern_result load_library(quern_live *live, const live_module *module, const char *from,
                                 live_library **out_library)
{
    live_library *const library = quern__live_allocate(live, sizeof *library);
    if (library == NULL) return quern_error_set(QUERN_ERROR_OUT_OF_MEMORY, "no memory to load a library");
    library->user_count = 1;
    const char *suffix = strrchr(module->path, '.');
    if (suffix != NULL && strpbrk(suffix, "/\\") != NULL) suffix = NULL; /* the dot is in a folder's name */
    char name[QUERN_MAX_NAME_BYTES + 1];
    (void)snprintf(name, sizeof name, "%s", module->name);
    for (char *at = name; *at != 0; at++)
        if (strchr("\"<>|:*?", *at) != NULL || (*at > 0 && *at < ' '))
            *at = '_'; /* Windows refuses these */
    const int length = snprintf(library->path, sizeof library->path, "%s/%s-%u%s", live->folder, name,
                                ++live->copy_count, suffix != NULL ? suffix : "");
    quern_result result;
    if (length < 0 || (size_t)length >= sizeof library->path)
        result =
            quern_error_set(QUERN_ERROR_INVALID_ARGUMENT,
                            "the path of the copy is longer than %d bytes: set `folder` to a shorter one",
                            QUERN__LIVE_PATH_BYTES - 1);
    else
        result = copy_file(from, library->path);
    if (result == QUERN_OK) result = quern__live_open_library(library->path, &library->handle);
    if (result == QUERN_OK) {
        *out_library = library;
        return QUERN_OK;
    }
    quern__live_free_library(live, library);
    return result;
}

/* ------------------------------------------------------------------------------------ what load functions register */

const char *const quern__live_kind_names[] = {"component", "resource", "event"};

static uint32_t find_bits(const quern_live *live, quern_type_kind kind, const char *name)
{
    if (kind == QUERN_TYPE_COMPONENT) return quern_component_find(live->world, name).bits;
    if (kind == QUERN_TYPE_RESOURCE) return quern_resource_find(live->world, name).bits;
    return quern_event_find(live->world, name).bits;
}

static quern_result register_type(const quern_live *live, quern_type_kind kind, const live_definition *def,
                                  uint32_t *out_bits)
{
    quern_component component = {0};
    quern_resource resource = {0};
    quern_event event = {0};
    quern_result result;
    if (kind == QUERN_TYPE_COMPONENT)
        result = quern_component_register(live->world, &def->component, &component);
    else if (kind == QUERN_TYPE_RESOURCE)
        result = quern_resource_register(live->world, &def->resource, &resource);
    else
        result = quern_event_register(live->world, &def->event, &event);
    *out_bits = component.bits | resource.bits | event.bits; /* two of them are 0 */
    return result;
}

/* The members that all definitions have, as pointers. */
typedef struct live_layout {
    const char *name;
    uint32_t size_bytes, alignment_bytes;
    const quern_field *fields;
    const quern_hooks *hooks;
    uint64_t type_id;
} live_layout;

static live_layout layout_of(quern_type_kind kind, const live_definition *def)
{
#define LAYOUT(member)                                                                             \
    (live_layout)                                                                                  \
    {                                                                                              \
        def->member.name, def->member.size_bytes, def->member.alignment_bytes, def->member.fields, \
            &def->member.hooks, def->member.type_id                                                \
    }
    if (kind == QUERN_TYPE_COMPONENT) return LAYOUT(component);
    return kind == QUERN_TYPE_RESOURCE ? LAYOUT(resource) : LAYOUT(event);
#undef LAYOUT
}

static bool has_hooks(quern_type_kind kind, const live_definition *def)
{
    const quern_hooks *const hooks = layout_of(kind, def).hooks;
    if (hooks->construct != NULL || hooks->copy != NULL || hooks->move != NULL || hooks->destroy != NULL)
        return true;
    const quern_entity_hooks *const calls = &def->component.entity_hooks;
    return kind == QUERN_TYPE_COMPONENT &&
           (calls->on_add != NULL || calls->on_set != NULL || calls->on_remove != NULL);
}

static quern_field *fields_of(quern_type_kind kind, live_definition *def)
{
    return kind == QUERN_TYPE_COMPONENT  ? def->component.fields
           : kind == QUERN_TYPE_RESOURCE ? def->resource.fields
                                         : def->event.fields;
}

/* Copies the descriptions of elements into the definition. Descriptions that no registration accepts are left out, which it
 * then reports. */
static void own_elements(quern_type_kind kind, live_definition *def)
{
    quern_field *const fields = fields_of(kind, def);
    uint32_t field_count = 0;
    for (uint32_t i = 0; i < QUERN_MAX_FIELDS && fields[i].name != NULL; i++) {
        if (fields[i].element == NULL) continue;
        quern_element *const element = &def->elements[i];
        *element = *fields[i].element;
        fields[i].element = element;
        if (element->type != 0 || element->fields == NULL) continue;
        if (element->field_count > QUERN_MAX_FIELDS - field_count) element->field_count = 0;
        memcpy(&def->element_fields[field_count], element->fields,
               element->field_count * sizeof *element->fields);
        element->fields = &def->element_fields[field_count];
        field_count += element->field_count;
    }
}

static bool fields_agree(const quern_field *left, const quern_field *right)
{
    return strcmp(left->name, right->name) == 0 && left->type == right->type &&
           left->offset_bytes == right->offset_bytes && (left->count > 1) == (right->count > 1) &&
           (left->count <= 1 || left->count == right->count);
}

static bool elements_agree(const quern_element *left, const quern_element *right)
{
    if (left == NULL || right == NULL) return left == right;
    if (left->type != right->type) return false;
    if (left->type != 0) return true;
    /* a registration refuses elements without fields, but they are compared before it sees them */
    bool agree = left->size_bytes == right->size_bytes && left->field_count == right->field_count &&
                 left->fields != NULL && right->fields != NULL;
    for (uint32_t i = 0; i < left->field_count && agree; i++)
        agree = fields_agree(&left->fields[i], &right->fields[i]);
    return agree;
}

/* Returns whether two modules can use values by both definitions. */
static bool definitions_agree(quern_type_kind kind, const live_definition *a, const live_definition *b)
{
    const live_layout first = layout_of(kind, a), second = layout_of(kind, b);
    if (first.size_bytes != second.size_bytes || first.alignment_bytes != second.alignment_bytes ||
        first.type_id != second.type_id)
        return false;
    for (uint32_t i = 0; i < QUERN_MAX_FIELDS; i++) {
        const quern_field *const left = &first.fields[i], *const right = &second.fields[i];
        if ((left->name == NULL) != (right->name == NULL)) return false;
        if (left->name == NULL) break;
        if (!fields_agree(left, right) || !elements_agree(left->element, right->element)) return false;
    }
    if (kind != QUERN_TYPE_COMPONENT) return true;
    return a->component.can_disable == b->component.can_disable &&
           a->component.row_changes == b->component.row_changes &&
           memcmp(a->component.required, b->component.required, sizeof a->component.required) == 0;
}

static live_known *find_known(const quern_live *live, quern_type_kind kind, uint32_t bits)
{
    LIVE_FOR_EACH(live_known *, known, live->known)
    if ((*known)->kind == kind && (*known)->bits == bits) return *known;
    return NULL;
}

static live_type *find_type(const live_version *version, const live_known *known)
{
    LIVE_FOR_EACH(live_type, type, version->types)
    if (type->known == known) return type;
    return NULL;
}

/* Returns the definition by which a version has registered a type, or NULL. */
static const live_definition *registered(const live_version *version, const live_known *known)
{
    const live_type *const type = find_type(version, known);
    return type != NULL && !type->is_used_only ? type->def : NULL;
}

static live_change *find_change(const quern_live *live, const live_known *known)
{
    LIVE_FOR_EACH(live_change, change, live->changes)
    if (change->known == known) return change;
    return NULL;
}

/* Returns whether the module of a version is being reloaded. */
static bool is_changing(const live_version *version)
{
    return version->module->next != NULL;
}

static quern_result refuse_definition(const live_known *known, const live_version *by, const char *remedy)
{
    return quern_error_set(QUERN_ERROR_LAYOUT_MISMATCH, "%s '%s' has another definition in module '%s': %s",
                           quern__live_kind_names[known->kind], known->name, by->module->name, remedy);
}

/* Plans to give a type the definition that a version registers, unless it has it already. */
static quern_result plan_change(quern_live *live, live_known *known, live_version *version,
                                const live_definition *def)
{
    const live_change *const planned = find_change(live, known);
    if (planned != NULL) {
        if (definitions_agree(known->kind, planned->def, def)) return QUERN_OK;
        return refuse_definition(known, planned->by, "compile both from one definition");
    }
    live_version *const owner = known->owner;
    if (owner != NULL && (!is_changing(owner) || owner == owner->module->next)) {
        if (definitions_agree(known->kind, registered(owner, known), def)) return QUERN_OK;
        return refuse_definition(known, owner, "change both modules, so that they are reloaded together");
    }
    live_change *const change = quern__live_append(live, &live->changes, sizeof *change);
    if (change == NULL) return QUERN_ERROR_OUT_OF_MEMORY;
    *change = (live_change){known, version, def};
    return QUERN_OK;
}

/* Adds a type to those of a version. Takes over `def` on success. */
static quern_result note_type(quern_live *live, live_version *version, live_known *known,
                              live_definition *def)
{
    live_type *const type = quern__live_append(live, &version->types, sizeof *type);
    if (type == NULL) return QUERN_ERROR_OUT_OF_MEMORY;
    *type = (live_type){.known = known, .def = def};
    const quern_result result = plan_change(live, known, version, def);
    if (result != QUERN_OK) version->types.count--;
    return result;
}

/* Removes the entry of a type that a version has only used so far. */
static void forget_use(const quern_live *live, live_version *version, const live_known *known)
{
    live_type *const type = find_type(version, known);
    if (type == NULL) return;
    quern__live_release(live, type->def, sizeof *type->def);
    *type = LIVE_ITEM(version->types, live_type, --version->types.count);
}

/* Registers a type that the world lacks. */
static quern_result register_new(quern_live *live, live_version *version, quern_type_kind kind,
                                 live_definition *def, uint32_t *out_bits)
{
    live_known **const place = quern__live_append(live, &live->known, sizeof *place);
    live_known *const known = place != NULL ? quern__live_allocate(live, sizeof *known) : NULL;
    live_type *const type = known != NULL ? quern__live_append(live, &version->types, sizeof *type) : NULL;
    quern_result result = QUERN_ERROR_OUT_OF_MEMORY;
    if (type != NULL) result = register_type(live, kind, def, out_bits);
    if (result != QUERN_OK) {
        quern__live_release(live, known, sizeof *known);
        if (place != NULL) live->known.count--;
        if (type != NULL) version->types.count--;
        return type != NULL
                   ? result
                   : quern_error_set(result, "no memory to note a %s", quern__live_kind_names[kind]);
    }
    *known = (live_known){.kind = kind, .bits = *out_bits, .owner = version};
    (void)snprintf(known->name, sizeof known->name, "%s", layout_of(kind, def).name);
    if (has_hooks(kind, def)) {
        known->code = version->library;
        known->code->user_count++;
    }
    *place = known;
    *type = (live_type){.known = known, .def = def};
    return QUERN_OK;
}

/* quern_loader: registers a type, or plans its new definition. */
static quern_result on_register(void *user_data, quern_type_kind kind, const void *given,
                                uint32_t *out_bits)
{
    static const size_t def_bytes[] = {sizeof(quern_component_def), sizeof(quern_resource_def),
                                       sizeof(quern_event_def)};
    quern_live *const live = user_data;
    live_version *const version = live->loading;
    live_definition *const def = quern__live_allocate(live, sizeof *def);
    if (def == NULL)
        return quern_error_set(QUERN_ERROR_OUT_OF_MEMORY, "no memory to note a %s",
                               quern__live_kind_names[kind]);
    *def = (live_definition){.component = {.name = NULL}};
    memcpy(def, given, def_bytes[kind]);
    own_elements(kind, def);
    const char *const name = layout_of(kind, def).name;
    const uint32_t bits = name != NULL ? find_bits(live, kind, name) : 0;
    live_known *const known = bits != 0 ? find_known(live, kind, bits) : NULL;
    const live_definition *const before = known != NULL ? registered(version, known) : NULL;
    bool is_kept = false;
    quern_result result = QUERN_OK;
    *out_bits = bits;
    quern_world_set_loader(live->world, NULL);
    if (bits == 0) {
        result = register_new(live, version, kind, def, out_bits);
        is_kept = result == QUERN_OK;
    } else if (known == NULL) {
        /* the world may outlive the module, so the program's type gets no functions of the module */
        if (kind == QUERN_TYPE_COMPONENT)
            def->component.entity_hooks = (quern_entity_hooks){.on_add = NULL};
        result =
            register_type(live, kind, def, out_bits); /* the program's type: compares the definitions */
    } else if (before == NULL) {
        forget_use(live, version, known);
        result = note_type(live, version, known, def);
        is_kept = result == QUERN_OK;
    } else if (!definitions_agree(kind, before, def)) {
        result = refuse_definition(known, version, "the module registers it twice, in two ways");
    }
    quern_world_set_loader(live->world, &live->loader);
    if (!is_kept) quern__live_release(live, def, sizeof *def);
    return result;
}

/* Makes the definition of a resource or an event of that of a C or C++ type, which is given like a component's. What only
 * the world's definition has is that of the definition before. */
static void complete_definition(quern_type_kind kind, const quern_component_def *type,
                                const live_definition *before, live_definition *out_def)
{
#define COPY(member)                                                       \
    do {                                                                   \
        if (before != NULL) *out_def = *before;                            \
        out_def->member.name = type->name;                                 \
        out_def->member.size_bytes = type->size_bytes;                     \
        out_def->member.alignment_bytes = type->alignment_bytes;           \
        out_def->member.type_name = type->type_name;                       \
        memcpy(out_def->member.fields, type->fields, sizeof type->fields); \
        out_def->member.hooks = type->hooks;                               \
        out_def->member.type_id = type->type_id;                           \
    } while (0)
    if (kind == QUERN_TYPE_COMPONENT) {
        COPY(component);
        out_def->component.entity_hooks = type->entity_hooks;
    } else if (kind == QUERN_TYPE_RESOURCE) {
        COPY(resource);
    } else {
        COPY(event);
    }
#undef COPY
}

/* quern_loader: plans the new definition of a type that the load function uses by its C or C++ type. */
static quern_result on_use(void *user_data, quern_type_kind kind, uint32_t bits,
                           const quern_component_def *type, bool has_fields)
{
    quern_live *const live = user_data;
    live_version *const version = live->loading;
    live_known *const known = find_known(live, kind, bits);
    const live_definition *const before = known != NULL ? registered(version, known) : NULL;
    if (before != NULL) { /* registered by this load function: only the sizes can differ */
        const live_layout layout = layout_of(kind, before);
        if (layout.size_bytes == type->size_bytes &&
            (!has_fields || layout.type_id == 0 || layout.type_id == type->type_id))
            return QUERN_OK;
        return refuse_definition(known, version, "the module has two types of this name");
    }
    if (known == NULL) { /* the program's type */
        quern_world_set_loader(live->world, NULL);
        quern_result result;
        if (has_fields) {
            result = quern__world_use_type(live->world, kind, bits, type);
        } else {
            uint32_t size_bytes = 0;
            result = quern_component_get_size(live->world, (quern_component){bits}, &size_bytes);
            if (result == QUERN_OK && size_bytes != type->size_bytes)
                result = quern_error_set(
                    QUERN_ERROR_LAYOUT_MISMATCH,
                    "component '%s' of the program has %u bytes, and the C type has %u: compile "
                    "program and module from one definition",
                    type->name, size_bytes, type->size_bytes);
        }
        quern_world_set_loader(live->world, &live->loader);
        return result;
    }
    const live_change *const planned = find_change(live, known);
    const live_definition *const other = planned != NULL        ? planned->def
                                         : known->owner != NULL ? registered(known->owner, known)
                                                                : NULL;
    uint32_t size_bytes = 0;
    if (other != NULL)
        size_bytes = layout_of(kind, other).size_bytes;
    else
        (void)quern_component_get_size(live->world, (quern_component){bits},
                                       &size_bytes); /* only they are used by size */
    if (!has_fields && size_bytes != type->size_bytes)
        return quern_error_set(
            QUERN_ERROR_LAYOUT_MISMATCH,
            "component '%s' has %u bytes, and the C type has %u: register it in the load function, "
            "with its fields (QUERN_REGISTER)",
            type->name, size_bytes, type->size_bytes);
    if (!has_fields && find_type(version, known) != NULL) return QUERN_OK;
    live_definition *const def = quern__live_allocate(live, sizeof *def);
    live_type *const used =
        def != NULL && !has_fields ? quern__live_append(live, &version->types, sizeof *used) : NULL;
    if (def == NULL || (!has_fields && used == NULL)) {
        quern__live_release(live, def, sizeof *def);
        return quern_error_set(QUERN_ERROR_OUT_OF_MEMORY, "no memory to note a %s",
                               quern__live_kind_names[kind]);
    }
    complete_definition(kind, type, has_fields ? other : NULL, def);
    own_elements(kind, def);
    if (used != NULL) {
        *used = (live_type){.known = known, .def = def, .is_used_only = true};
        return QUERN_OK;
    }
    forget_use(live, version, known);
    const quern_result result = note_type(live, version, known, def);
    if (result != QUERN_OK) quern__live_release(live, def, sizeof *def);
    return result;
}

/* Returns the system of a name in a version, or NULL. */
static live_system *find_system(const live_version *version, const char *name)
{
    if (version == NULL) return NULL;
    LIVE_FOR_EACH(live_system, system, version->systems)
    if (strcmp(system->def->name, name) == 0) return system;
    return NULL;
}

/* Returns the system of a name in a running module that is being reloaded, or NULL. */
static live_system *find_running(const quern_live *live, const char *name)
{
    live_system *found = NULL;
    LIVE_FOR_EACH(live_module *, module, live->modules)
    if (found == NULL && (*module)->next != NULL) found = find_system((*module)->running, name);
    return found;
}

bool quern__live_is_present(const quern_live *live, const live_system *system)
{
    return quern_schedule_find_system(live->schedule, system->def->name).bits == system->handle.bits;
}

/* Returns whether the batch has put another system in the place of this one. */
static bool was_replaced(const quern_live *live, const live_system *system)
{
    LIVE_FOR_EACH(const live_step, step, live->steps)
    if (step->replaced == system->def) return true;
    return false;
}

static live_step *add_step(quern_live *live)
{
    return quern__live_append(live, &live->steps, sizeof(live_step));
}

/* quern_loader: adds a system, or replaces the one of that name. A new system stands behind the one that the load function
 * has added before. */
static quern_result on_add_system(void *user_data, quern_schedule *schedule, const quern_system_def *def,
                                  quern_system *out_system)
{
    quern_live *const live = user_data;
    live_version *const version = live->loading;
    if (schedule != live->schedule)
        return quern_error_set(QUERN_ERROR_INVALID_ARGUMENT,
                               "the load function adds a system to another schedule: use module->schedule");
    const char *const name = def->name != NULL ? def->name : "";
    live_system *old = find_system(version, name) == NULL ? find_running(live, name) : NULL;
    if (old != NULL && (was_replaced(live, old) || !quern__live_is_present(live, old))) old = NULL;
    const quern_system previous =
        version->systems.count > 0
            ? LIVE_ITEM(version->systems, live_system, version->systems.count - 1).handle
            : (quern_system){0};
    quern_system_def *const copy = quern__live_allocate(live, sizeof *copy);
    live_system *const system =
        copy != NULL ? quern__live_append(live, &version->systems, sizeof *system) : NULL;
    live_step *const step = system != NULL ? add_step(live) : NULL;
    if (step == NULL) {
        if (system != NULL) version->systems.count--;
        quern__live_release(live, copy, sizeof *copy);
        return quern_error_set(QUERN_ERROR_OUT_OF_MEMORY, "no memory to note the system '%s'", name);
    }
    *copy = *def;
    *system = (live_system){.def = copy};
    quern_world_set_loader(live->world, NULL);
    quern_result result;
    if (old != NULL) {
        result = quern_schedule_replace_system(live->schedule, old->handle, def);
        system->handle = old->handle;
        if (result == QUERN_OK && old->is_stopped) {
            old->is_stopped = false;
            (void)quern_schedule_set_system_enabled(live->schedule, old->handle, true);
        }
    } else {
        result = quern_schedule_add_system(live->schedule, def, &system->handle);
    }
    if (result == QUERN_OK && old == NULL && previous.bits != 0) {
        result = quern_schedule_move_system(live->schedule, system->handle, previous);
        if (result != QUERN_OK) (void)quern_schedule_remove_system(live->schedule, system->handle);
    }
    quern_world_set_loader(live->world, &live->loader);
    if (result != QUERN_OK) {
        live->steps.count--;
        version->systems.count--;
        quern__live_release(live, copy, sizeof *copy);
        return result;
    }
    *step = (live_step){.replaced = old != NULL ? old->def : NULL, .system = system->handle};
    if (old != NULL)
        version->module->pending.replaced_count++;
    else
        version->module->pending.added_count++;
    *out_system = system->handle;
    return QUERN_OK;
}

static quern_result own_object(quern_live_module *module, void *object,
                               void (*release_object)(void *object))
{
    if (module == NULL || object == NULL || release_object == NULL)
        return quern_error_set(QUERN_ERROR_NULL_ARGUMENT, "quern_live_own: %s is NULL",
                               module == NULL   ? "module"
                               : object == NULL ? "object"
                                                : "release");
    live_version *const version = module->internal;
    live_object *const owned = quern__live_append(version->module->live, &version->objects, sizeof *owned);
    if (owned == NULL) {
        release_object(object);
        return QUERN_ERROR_OUT_OF_MEMORY;
    }
    *owned = (live_object){object, release_object};
    return QUERN_OK;
}

static const quern__live_calls calls = {own_object};

void quern__live_init_loader(quern_live *live)
{
    live->loader = (quern_loader){on_register, on_use, on_add_system, live};
}

/* ------------------------------------------------------------------------------------------- versions */

void quern__live_release_version(quern_live *live, live_version *version)
{
    if (version == NULL) return;
    for (uint32_t i = version->objects.count; i-- > 0;) {
        const live_object *const owned = &LIVE_ITEM(version->objects, live_object, i);
        owned->release(owned->object);
    }
    LIVE_FOR_EACH(live_known *, known, live->known)
    if ((*known)->owner == version) (*known)->owner = NULL;
    LIVE_FOR_EACH(live_type, type, version->types) quern__live_release(live, type->def, sizeof *type->def);
    LIVE_FOR_EACH(live_system, system, version->systems)
    quern__live_release(live, system->def, sizeof *system->def);
    quern__live_release_array(live, &version->objects, sizeof(live_object));
    quern__live_release_array(live, &version->types, sizeof(live_type));
    quern__live_release_array(live, &version->systems, sizeof(live_system));
    leave_library(live, version->library);
    quern__live_release(live, version, sizeof *version);
}

/* Loads the next version of a module from a file, and lets it list its types and systems. */
static quern_result load_version(quern_live *live, live_module *module, const char *from)
{
    const uint64_t begin_ns = quern_clock_ns();
    live_version *const version = module->next;
    quern_result result = load_library(live, module, from, &version->library);
    if (result != QUERN_OK) return result;
    void (*const function)(void) =
        quern__live_function(version->library->handle, "quern_live_module_entry");
    if (function == NULL)
        return quern_error_set(
            QUERN_ERROR_UNAVAILABLE,
            "'%s' exports no function quern_live_module_entry: use QUERN_LIVE_MODULE in one of its "
            "sources",
            from);
    version->entry = ((const quern_live_entry *(*)(void))function)();
    if (version->entry->abi != QUERN__LIVE_ABI ||
        version->entry->system_bytes != sizeof(quern_system_def) ||
        version->entry->component_bytes != sizeof(quern_component_def))
        return quern_error_set(
            QUERN_ERROR_UNAVAILABLE,
            "'%s' was compiled with the headers of another version of Quern: compile it again", from);
    if (version->entry->load == NULL)
        return quern_error_set(QUERN_ERROR_NULL_ARGUMENT,
                               "the load function is NULL: give one to QUERN_LIVE_MODULE");
    module->pending.load_ns = quern_clock_ns() - begin_ns;
    version->face = (quern_live_module){
        live->world, live->schedule, module->name, module->version_count + 1, &calls, version};
    quern_error_clear();
    live->loading = version;
    result = quern_world_set_loader(live->world, &live->loader);
    if (result == QUERN_OK) result = version->entry->load(&version->face);
    (void)quern_world_set_loader(live->world, NULL);
    live->loading = NULL;
    if (result != QUERN_OK && *quern_error_message() == 0)
        return quern_error_set(result, "its load function returned %s: it set no message",
                               quern_result_string(result));
    return result;
}

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
        const live_change *change = find_change(live, known);
        const bool is_dropped = change == NULL && known->owner != NULL && is_changing(known->owner) &&
                                known->owner != known->owner->module->next;
        if (change == NULL && !is_dropped) continue;
        LIVE_FOR_EACH(live_module *, module, live->modules)
        {
            live_version *const running = (*module)->running;
            if (running == NULL || is_changing(running)) continue;
            const live_type *const type = find_type(running, known);
            if (type == NULL) continue;
            const bool agrees =
                change != NULL &&
                (type->is_used_only ? layout_of(known->kind, change->def).size_bytes ==
                                          layout_of(known->kind, type->def).size_bytes
                                    : definitions_agree(known->kind, change->def, type->def));
            if (change == NULL && !type->is_used_only) {
                live_change *const added = quern__live_append(live, &live->changes, sizeof *added);
                if (added == NULL) return QUERN_ERROR_OUT_OF_MEMORY;
                *added = (live_change){known, running, type->def};
                change = added;
            } else if (change != NULL && !agrees) {
                return refuse_definition(known, running,
                                         "change both modules, so that they are reloaded together");
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
            live_system *const system = find_running(live, step->replaced->name);
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
            stop_system(live, find_running(live, step->replaced->name));
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
        if (was_replaced(live, system) || !quern__live_is_present(live, system)) continue;
        live_step *const step = add_step(live);
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
    change->known->code = has_hooks(change->known->kind, change->def) ? change->by->library : NULL;
    if (change->known->code != NULL) change->known->code->user_count++;
    leave_library(live, before);
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
        const live_definition *const before = owner != NULL ? registered(owner, change->known) : NULL;
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

void quern__live_end_stuck(quern_live *live, live_module *module)
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
        quern__live_end_stuck(live, module);
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

quern_result quern__live_run_batch(quern_live *live, live_module *const *chosen, uint32_t chosen_count,
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
        result = load_version(live, chosen[i], from != NULL ? from : chosen[i]->path);
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
