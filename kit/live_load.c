/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Loading versions: their libraries, and what their load functions register (live_load.h). */
#include "kit/live_load.h"

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

void quern__live_leave_library(const quern_live *live, live_library *library)
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

live_layout quern__live_layout_of(quern_type_kind kind, const live_definition *def)
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

bool quern__live_has_hooks(quern_type_kind kind, const live_definition *def)
{
    const quern_hooks *const hooks = quern__live_layout_of(kind, def).hooks;
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

bool quern__live_definitions_agree(quern_type_kind kind, const live_definition *a, const live_definition *b)
{
    const live_layout first = quern__live_layout_of(kind, a), second = quern__live_layout_of(kind, b);
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

live_type *quern__live_find_type(const live_version *version, const live_known *known)
{
    LIVE_FOR_EACH(live_type, type, version->types)
    if (type->known == known) return type;
    return NULL;
}

const live_definition *quern__live_registered(const live_version *version, const live_known *known)
{
    const live_type *const type = quern__live_find_type(version, known);
    return type != NULL && !type->is_used_only ? type->def : NULL;
}

live_change *quern__live_find_change(const quern_live *live, const live_known *known)
{
    LIVE_FOR_EACH(live_change, change, live->changes)
    if (change->known == known) return change;
    return NULL;
}

bool quern__live_is_changing(const live_version *version)
{
    return version->module->next != NULL;
}

quern_result quern__live_refuse_definition(const live_known *known, const live_version *by,
                                           const char *remedy)
{
    return quern_error_set(QUERN_ERROR_LAYOUT_MISMATCH, "%s '%s' has another definition in module '%s': %s",
                           quern__live_kind_names[known->kind], known->name, by->module->name, remedy);
}

/* Plans to give a type the definition that a version registers, unless it has it already. */
static quern_result plan_change(quern_live *live, live_known *known, live_version *version,
                                const live_definition *def)
{
    const live_change *const planned = quern__live_find_change(live, known);
    if (planned != NULL) {
        if (quern__live_definitions_agree(known->kind, planned->def, def)) return QUERN_OK;
        return quern__live_refuse_definition(known, planned->by, "compile both from one definition");
    }
    live_version *const owner = known->owner;
    if (owner != NULL && (!quern__live_is_changing(owner) || owner == owner->module->next)) {
        if (quern__live_definitions_agree(known->kind, quern__live_registered(owner, known), def))
            return QUERN_OK;
        return quern__live_refuse_definition(known, owner,
                                             "change both modules, so that they are reloaded together");
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
    live_type *const type = quern__live_find_type(version, known);
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
    (void)snprintf(known->name, sizeof known->name, "%s", quern__live_layout_of(kind, def).name);
    if (quern__live_has_hooks(kind, def)) {
        known->code = version->library;
        known->code->user_count++;
    }
    *place = known;
    *type = (live_type){.known = known, .def = def};
    return QUERN_OK;
}

quern_result quern__live_on_register(void *user_data, quern_type_kind kind, const void *given,
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
    const char *const name = quern__live_layout_of(kind, def).name;
    const uint32_t bits = name != NULL ? find_bits(live, kind, name) : 0;
    live_known *const known = bits != 0 ? find_known(live, kind, bits) : NULL;
    const live_definition *const before = known != NULL ? quern__live_registered(version, known) : NULL;
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
    } else if (!quern__live_definitions_agree(kind, before, def)) {
        result =
            quern__live_refuse_definition(known, version, "the module registers it twice, in two ways");
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

quern_result quern__live_on_use(void *user_data, quern_type_kind kind, uint32_t bits,
                                const quern_component_def *type, bool has_fields)
{
    quern_live *const live = user_data;
    live_version *const version = live->loading;
    live_known *const known = find_known(live, kind, bits);
    const live_definition *const before = known != NULL ? quern__live_registered(version, known) : NULL;
    if (before != NULL) { /* registered by this load function: only the sizes can differ */
        const live_layout layout = quern__live_layout_of(kind, before);
        if (layout.size_bytes == type->size_bytes &&
            (!has_fields || layout.type_id == 0 || layout.type_id == type->type_id))
            return QUERN_OK;
        return quern__live_refuse_definition(known, version, "the module has two types of this name");
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
    const live_change *const planned = quern__live_find_change(live, known);
    const live_definition *const other = planned != NULL ? planned->def
                                         : known->owner != NULL
                                             ? quern__live_registered(known->owner, known)
                                             : NULL;
    uint32_t size_bytes = 0;
    if (other != NULL)
        size_bytes = quern__live_layout_of(kind, other).size_bytes;
    else
        (void)quern_component_get_size(live->world, (quern_component){bits},
                                       &size_bytes); /* only they are used by size */
    if (!has_fields && size_bytes != type->size_bytes)
        return quern_error_set(
            QUERN_ERROR_LAYOUT_MISMATCH,
            "component '%s' has %u bytes, and the C type has %u: register it in the load function, "
            "with its fields (QUERN_REGISTER)",
            type->name, size_bytes, type->size_bytes);
    if (!has_fields && quern__live_find_type(version, known) != NULL) return QUERN_OK;
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

live_system *quern__live_find_running(const quern_live *live, const char *name)
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

bool quern__live_was_replaced(const quern_live *live, const live_system *system)
{
    LIVE_FOR_EACH(const live_step, step, live->steps)
    if (step->replaced == system->def) return true;
    return false;
}

live_step *quern__live_add_step(quern_live *live)
{
    return quern__live_append(live, &live->steps, sizeof(live_step));
}

quern_result quern__live_on_add_system(void *user_data, quern_schedule *schedule,
                                       const quern_system_def *def, quern_system *out_system)
{
    quern_live *const live = user_data;
    live_version *const version = live->loading;
    if (schedule != live->schedule)
        return quern_error_set(QUERN_ERROR_INVALID_ARGUMENT,
                               "the load function adds a system to another schedule: use module->schedule");
    const char *const name = def->name != NULL ? def->name : "";
    live_system *old = find_system(version, name) == NULL ? quern__live_find_running(live, name) : NULL;
    if (old != NULL && (quern__live_was_replaced(live, old) || !quern__live_is_present(live, old)))
        old = NULL;
    const quern_system previous =
        version->systems.count > 0
            ? LIVE_ITEM(version->systems, live_system, version->systems.count - 1).handle
            : (quern_system){0};
    quern_system_def *const copy = quern__live_allocate(live, sizeof *copy);
    live_system *const system =
        copy != NULL ? quern__live_append(live, &version->systems, sizeof *system) : NULL;
    live_step *const step = system != NULL ? quern__live_add_step(live) : NULL;
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
    quern__live_leave_library(live, version->library);
    quern__live_release(live, version, sizeof *version);
}

quern_result quern__live_load_version(quern_live *live, live_module *module, const char *from)
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
