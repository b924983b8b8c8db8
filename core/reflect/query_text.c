/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Texts of quern/reflect.h: paths of elements and of entities, then whole queries. */

#include "core/reflect/reflect_internal.h"

#include "core/base/text.h"
#include "core/relations/relation_internal.h"
#include "core/world/world_internal.h"

#include <quern/name.h>
#include <quern/reflect.h>

#include <inttypes.h>
#include <string.h>

enum { LIST_BYTES = 200 };

static bool is_named(const quern_field *field, const char *name, size_t bytes)
{
    return strlen(field->name) == bytes && memcmp(field->name, name, bytes) == 0;
}

static const quern_field *find_field(const quern_type_info *type, const char *name, size_t bytes)
{
    for (uint32_t i = 0; i < type->field_count; i++)
        if (is_named(&type->fields[i], name, bytes)) return &type->fields[i];
    return NULL;
}

/* Returns the first field inside the struct or array of structs that the text names, or NULL if it names none. Such
 * fields are called "struct.field" or "struct[0].field". */
static const quern_field *find_inside(const quern_type_info *type, const char *text)
{
    const size_t bytes = strlen(text);
    for (uint32_t i = 0; i < type->field_count && bytes > 0; i++) {
        const char *name = type->fields[i].name;
        if (strncmp(name, text, bytes) == 0 && (name[bytes] == '.' || name[bytes] == '['))
            return &type->fields[i];
    }
    return NULL;
}

static quern_result fail_unknown(const quern_type_info *type, const char *text)
{
    const quern_field *inside = find_inside(type, text);
    const size_t bytes = strcspn(text, "[");
    char list[LIST_BYTES] = "";
    if (inside != NULL)
        return quern__fail(
            QUERN_ERROR_INVALID_ARGUMENT,
            "'%.63s' of '%s' is a struct, or an array of them: name one of its fields, such as "
            "'%s'",
            text, type->name, inside->name);
    if (type->field_count == 0)
        return quern__fail(
            QUERN_ERROR_INVALID_ARGUMENT,
            "'%s' has no described fields, so it has no field '%.63s': describe its fields when "
            "registering it",
            type->name, text);
    quern_suggestion suggestion = {0};
    for (uint32_t i = 0; i < type->field_count; i++) {
        quern__append(list, sizeof list, "%s%s", i > 0 ? ", " : "", type->fields[i].name);
        quern_suggestion_offer(&suggestion, text, bytes, type->fields[i].name);
    }
    return quern__fail(QUERN_ERROR_INVALID_ARGUMENT, "'%s' has no field '%.63s'; it has %s%s%s", type->name,
                       text, list, strlen(list) == sizeof list - 1 ? "..." : "", suggestion.text);
}

/* Fields that stand for the elements of a list of numbers, handles or strings. */
#define ELEMENT(kind) [kind] = {.name = "", .type = (kind), .count = 1}
static const quern_field element_fields[] = {
    ELEMENT(QUERN_FIELD_BOOL),  ELEMENT(QUERN_FIELD_I8),  ELEMENT(QUERN_FIELD_U8),
    ELEMENT(QUERN_FIELD_I16),   ELEMENT(QUERN_FIELD_U16), ELEMENT(QUERN_FIELD_I32),
    ELEMENT(QUERN_FIELD_U32),   ELEMENT(QUERN_FIELD_I64), ELEMENT(QUERN_FIELD_U64),
    ELEMENT(QUERN_FIELD_F32),   ELEMENT(QUERN_FIELD_F64), ELEMENT(QUERN_FIELD_ENTITY),
    ELEMENT(QUERN_FIELD_STRING)};

/* Returns the list that the text names with an element: "items[3]", "items[3].count". */
static const quern_field *find_list(const quern_type_info *type, const char *text)
{
    for (uint32_t i = 0; i < type->field_count; i++) {
        const quern_field *field = &type->fields[i];
        const size_t bytes = strlen(field->name);
        if (field->type == QUERN_FIELD_LIST && field->count == 1 &&
            strncmp(field->name, text, bytes) == 0 && text[bytes] == '[')
            return field;
    }
    return NULL;
}

/* Finds the element of a list, or the field of an element, that a path names. */
static quern_result find_in_list(const quern_type_info *type, const quern_field *list, const char *text,
                                 quern__path *out_path)
{
    const char *index = text + strlen(list->name) + 1, *end = strchr(index, ']');
    const bool is_struct = list->element->type == 0;
    uint64_t number = 0;
    if (end == NULL || (end[1] != '\0' && end[1] != '.') ||
        quern__digits_read(index, (size_t)(end - index), 10, UINT32_MAX, &number) != QUERN__NUMBER_OK)
        return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                           "'%.63s': '%s' of '%s' is a list: name an element as %s[0]", text, list->name,
                           type->name, list->name);
    if (is_struct != (end[1] == '.'))
        return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                           is_struct
                               ? "'%.63s': elements of '%s' are structs: name a field of one, such as '%s'"
                               : "'%.63s': elements of '%s' have no fields: leave out what follows ']'%s",
                           text, list->name, is_struct ? list->element->fields[0].name : "");
    quern_result result = QUERN_OK;
    if (is_struct) {
        assert(list->element->fields != NULL); /* structs have at least one */
        const quern_type_info structs = {
            .name = list->name, .fields = list->element->fields, .field_count = list->element->field_count};
        result = quern__path_find(&structs, end + 2, out_path);
    } else {
        *out_path = (quern__path){.field = &element_fields[list->element->type], .count = 1};
    }
    out_path->type = type;
    out_path->text = text;
    out_path->list = list;
    out_path->list_index = (uint32_t)number;
    return result;
}

/* The name of a field may end like an element, as in "points[0]", so the whole text is tried as a name first. */
quern_result quern__path_find(const quern_type_info *type, const char *text, quern__path *out_path)
{
    const size_t bytes = strlen(text);
    const char *bracket = bytes > 0 && text[bytes - 1] == ']' ? strrchr(text, '[') : NULL;
    const quern_field *field = find_field(type, text, bytes);
    if (field != NULL) bracket = NULL;
    if (bracket != NULL) field = find_field(type, text, (size_t)(bracket - text));
    const quern_field *list =
        field == NULL || field->type == QUERN_FIELD_LIST ? find_list(type, text) : NULL;
    if (list != NULL) return find_in_list(type, list, text, out_path);
    if (field == NULL) return fail_unknown(type, text);
    const bool is_array = field->count > 1 && field->type != QUERN_FIELD_TEXT;
    *out_path = (quern__path){.type = type,
                              .field = field,
                              .text = text,
                              .count = is_array ? field->count : 1,
                              .is_array = is_array};
    if (bracket == NULL) return QUERN_OK;
    uint64_t number;
    if (!out_path->is_array)
        return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                           "'%.63s': '%s' of '%s' is no array: leave out the index", out_path->text,
                           out_path->field->name, out_path->type->name);
    if (quern__digits_read(bracket + 1, (size_t)(text + bytes - 1 - (bracket + 1)), 10, UINT32_MAX,
                           &number) != QUERN__NUMBER_OK ||
        number >= out_path->field->count)
        return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                           "'%.63s': '%s' of '%s' has the elements [0] to [%u]", out_path->text,
                           out_path->field->name, out_path->type->name, out_path->field->count - 1);
    out_path->first = (uint32_t)number;
    out_path->count = 1;
    out_path->is_array = false;
    return QUERN_OK;
}

/* ----------------------------------------------------------------------------------------- writing */

/* Returns whether an entity can be printed as a path: it is alive, and it and all its ancestors have names. Printing
 * walks up from the entity once per name, so deep entities are printed as numbers. */
static bool has_path(const quern__storage *storage, quern_entity entity)
{
    enum { MAX_DEPTH = 64 };
    if (storage->names->count == 0 || quern__entities_find(&storage->entities, entity) == NULL)
        return false;
    uint32_t at = quern_entity_index(entity);
    for (uint32_t depth = 0; at != QUERN__SLOT_NONE; at = quern__parent_slot(storage, at))
        if (++depth > MAX_DEPTH || quern__names_of(storage->names, at) == NULL) return false;
    return true;
}

void quern__handle_print(const quern_world *world, quern_entity entity, bool by_path,
                         quern__printer *printer)
{
    const quern__storage *storage = &world->storage;
    if (entity.bits == 0)
        quern__print(printer, "none");
    else if (quern_entity_world_tag(entity) != storage->entities.first_handle_high >> 24 ||
             quern_entity_generation(entity) == 0)
        quern__print(printer, "0x%016" PRIx64, entity.bits);
    else if (by_path && has_path(storage, entity)) {
        /* names from the root down to the slot */
        const uint32_t slot = quern_entity_index(entity);
        uint32_t depth = 0;
        for (uint32_t at = slot; at != QUERN__SLOT_NONE; at = quern__parent_slot(storage, at))
            depth++;
        for (uint32_t level = depth; level-- > 0;) {
            uint32_t at = slot;
            for (uint32_t i = 0; i < level; i++)
                at = quern__parent_slot(storage, at);
            quern__print(printer, "/%s", quern__names_of(storage->names, at)->text);
        }
    } else
        quern__print(printer, "%u:%u", quern_entity_index(entity), quern_entity_generation(entity));
}

/* ----------------------------------------------------------------------------------------- reading */

bool quern__handle_find_path(const quern__storage *storage, const char *text, size_t bytes,
                             uint32_t *out_slot)
{
    uint32_t slot = QUERN__SLOT_NONE;
    while (bytes > 0) {
        const char *name = text + 1; /* text is at a '/' */
        const char *end = memchr(name, '/', bytes - 1);
        const size_t name_bytes = end != NULL ? (size_t)(end - name) : bytes - 1;
        if (name_bytes == 0 || name_bytes > QUERN_MAX_ENTITY_NAME_BYTES) return false;
        slot = quern__names_find(storage->names, slot, name, (uint32_t)name_bytes);
        if (slot == QUERN__SLOT_NONE) return false;
        text = name + name_bytes;
        bytes -= 1 + name_bytes;
    }
    *out_slot = slot;
    return true;
}

static bool read_entity_path(const quern__storage *storage, const char *text, size_t bytes,
                             quern_entity *out_entity)
{
    uint32_t slot;
    if (!quern__handle_find_path(storage, text, bytes, &slot)) return false;
    *out_entity = quern__entity_of_link(storage, slot);
    return true;
}

static bool read_number(const quern__storage *storage, const char *text, size_t bytes,
                        quern_entity *out_entity)
{
    const char *colon = memchr(text, ':', bytes);
    uint64_t index, generation;
    if (colon == NULL ||
        quern__digits_read(text, (size_t)(colon - text), 10, UINT32_MAX, &index) != QUERN__NUMBER_OK ||
        quern__digits_read(colon + 1, (size_t)(text + bytes - colon - 1), 10, QUERN__MAX_GENERATION,
                           &generation) != QUERN__NUMBER_OK ||
        generation == 0)
        return false;
    *out_entity = quern__entity_make(storage->entities.first_handle_high >> 24, (uint32_t)generation,
                                     (uint32_t)index);
    return true;
}

bool quern__handle_read(const quern_world *world, const char *text, size_t bytes, bool by_path,
                        quern_entity *out_entity)
{
    if (bytes == 0) return false;
    if (text[0] == '/') return by_path && read_entity_path(&world->storage, text, bytes, out_entity);
    if (bytes == 4 && memcmp(text, "none", 4) == 0) {
        *out_entity = quern_entity_null();
        return true;
    }
    if (bytes > 2 && text[0] == '0' && text[1] == 'x') {
        uint64_t bits;
        if (quern__digits_read(text + 2, bytes - 2, 16, UINT64_MAX, &bits) != QUERN__NUMBER_OK)
            return false;
        *out_entity = (quern_entity){bits};
        return true;
    }
    return read_number(&world->storage, text, bytes, out_entity);
}

/* ------------------------------------------------------------------------------------ public functions */

quern_result quern_entity_to_text(const quern_world *world, quern_entity entity, quern_sink sink)
{
    static const char function[] = "quern_entity_to_text";
    if (world == NULL) return quern__fail_null(function, "world");
    const quern_result result = quern__check_sink(sink, function);
    if (result != QUERN_OK) return result;
    quern__printer printer;
    quern__printer_open(&printer, sink);
    quern__handle_print(world, entity, true, &printer);
    return quern__printer_close(&printer, function);
}

quern_result quern_entity_from_text(const quern_world *world, const char *text, quern_entity *out_entity)
{
    static const char function[] = "quern_entity_from_text";
    if (world == NULL) return quern__fail_null(function, "world");
    if (text == NULL) return quern__fail_null(function, "text");
    if (out_entity == NULL) return quern__fail_null(function, "out_entity");
    if (quern__handle_read(world, text, strlen(text), true, out_entity)) return QUERN_OK;
    if (text[0] == '/')
        return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                           "%s: no entity has the path '%.255s': check the names, from the root down",
                           function, text);
    return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                       "%s: '%.127s' is not an entity: write a path such as '/arena/gun', "
                       "'index:generation', 'none', or '0x' and the bits of a handle",
                       function, text);
}

/* ------------------------------------------------------------------------------------------ queries */

/* Queries as text: quern_query_parse and quern_query_to_text. quern/reflect.h has the grammar. */

/* ----------------------------------------------------------------------------------------- reading */

typedef struct parser {
    const quern_world *world;
    const char *text;
    const char *next; /* first character that was not read yet; never a space between tokens */
    quern_query_def def;
    uint32_t count; /* terms in def */
    bool has_group; /* whether a group of alternatives was read */
} parser;

typedef struct word {
    char name[QUERN_MAX_NAME_BYTES + 1];
    const char *begin; /* its first character in the text, a quote if it is quoted */
    bool is_quoted;
} word;

static quern_result fail_at(const parser *p, const char *at, quern_result code, const char *expected)
{
    return quern__fail(code, "quern_query_parse: column %zu of '%.200s': %s", (size_t)(at - p->text) + 1,
                       p->text, expected);
}

static void skip_spaces(parser *p)
{
    while (quern__is_space(*p->next))
        p->next++;
}

static bool is_plain(char c)
{
    return c != '\0' && !quern__is_space(c) && strchr(",|()!?\"", c) == NULL;
}

/* Reads the character if it is next. */
static bool accept(parser *p, char c)
{
    if (*p->next != c) return false;
    p->next++;
    skip_spaces(p);
    return true;
}

static bool has_word(const parser *p)
{
    return is_plain(*p->next) || *p->next == '"';
}

static quern_result read_word(parser *p, word *out)
{
    out->begin = p->next;
    out->is_quoted = *p->next == '"';
    if (out->is_quoted) {
        size_t length = 0;
        for (p->next++; *p->next != '"'; p->next++) {
            if (*p->next == '\\' && (p->next[1] == '"' || p->next[1] == '\\')) p->next++;
            if (*p->next == '\0')
                return fail_at(p, out->begin, QUERN_ERROR_INVALID_ARGUMENT,
                               "the quote is not closed: close it");
            if (length == QUERN_MAX_NAME_BYTES)
                return fail_at(p, out->begin, QUERN_ERROR_UNKNOWN_COMPONENT,
                               "no name is that long: check the name");
            out->name[length++] = *p->next;
        }
        p->next++;
        out->name[length] = '\0';
    } else {
        size_t length = 0;
        for (; is_plain(*p->next); p->next++) {
            if (length == QUERN_MAX_NAME_BYTES)
                return fail_at(p, out->begin, QUERN_ERROR_UNKNOWN_COMPONENT,
                               "no name is that long: check the name");
            out->name[length++] = *p->next;
        }
        if (length == 0)
            return fail_at(p, out->begin, QUERN_ERROR_INVALID_ARGUMENT,
                           "a component is expected here: give its name");
        out->name[length] = '\0';
    }
    skip_spaces(p);
    return QUERN_OK;
}

static bool is_keyword(const word *w, const char *keyword)
{
    return !w->is_quoted && strcmp(w->name, keyword) == 0;
}

/* Whether the next word is "of", which is no name there. */
static bool is_of_next(const parser *p)
{
    return p->next[0] == 'o' && p->next[1] == 'f' && !is_plain(p->next[2]);
}

/* The words before a component. A word counts as one of them only if another word follows it. */
typedef struct modifiers {
    bool is_mut, is_with, is_changed, is_disabled, is_either;
} modifiers;

static bool *find_modifier(modifiers *m, const word *w)
{
    if (is_keyword(w, "mut")) return &m->is_mut;
    if (is_keyword(w, "with")) return &m->is_with;
    if (is_keyword(w, "changed")) return &m->is_changed;
    if (is_keyword(w, "disabled")) return &m->is_disabled;
    if (is_keyword(w, "either")) return &m->is_either;
    return NULL;
}

static quern_result read_modifiers(parser *p, modifiers *out, word *name)
{
    *out = (modifiers){.is_mut = false};
    for (;;) {
        const quern_result result = read_word(p, name);
        if (result != QUERN_OK) return result;
        bool *modifier = find_modifier(out, name);
        if (modifier == NULL || !has_word(p) || is_of_next(p)) return QUERN_OK;
        if (*modifier)
            return fail_at(p, name->begin, QUERN_ERROR_INVALID_ARGUMENT,
                           "the word is there twice: remove one");
        *modifier = true;
    }
}

/* Fails for a name that no component, or no relation, of the world has. kind: QUERN_TYPE_COMPONENT or _RELATION. */
static quern_result fail_unknown_name(const parser *p, const word *name, quern_type_kind kind)
{
    const char *what = kind == QUERN_TYPE_RELATION ? "relation" : "component";
    char text[192];
    quern_suggestion suggestion = {0};
    quern_type_info type;
    for (uint32_t i = 0; i < quern_type_count(p->world, kind); i++)
        if (quern_type_at(p->world, kind, i, &type) == QUERN_OK)
            quern_suggestion_offer(&suggestion, name->name, strlen(name->name), type.name);
    snprintf(text, sizeof text, "the world has no %s with this name: check the name, or register the %s%s",
             what, what, suggestion.text);
    return fail_at(p, name->begin, QUERN_ERROR_UNKNOWN_COMPONENT, text);
}

static quern_result read_relation(parser *p, const word *name, quern_relation *out_relation)
{
    *out_relation = quern_relation_find(p->world, name->name);
    return quern_relation_is_null(*out_relation) ? fail_unknown_name(p, name, QUERN_TYPE_RELATION)
                                                 : QUERN_OK;
}

/* Reads the rest of `relation(entity)`, after the parenthesis. */
static quern_result read_target(parser *p, const word *name, quern_term *out_term)
{
    quern_relation relation;
    quern_entity target;
    const quern_result result = read_relation(p, name, &relation);
    if (result != QUERN_OK) return result;
    const char *begin = p->next, *end = strchr(begin, ')');
    if (end == NULL)
        return fail_at(p, begin, QUERN_ERROR_INVALID_ARGUMENT,
                       "the parenthesis is not closed: close it by ')'");
    p->next = end + 1;
    skip_spaces(p);
    while (*begin != '/' && end > begin && quern__is_space(end[-1])) /* a name may end in white space */
        end--;
    if (!quern__handle_read(p->world, begin, (size_t)(end - begin), true, &target))
        return fail_at(p, begin, QUERN_ERROR_INVALID_ARGUMENT,
                       "this is no entity of the world: give a path such as /arena, or index:generation");
    *out_term = quern_term_target(relation, target);
    return QUERN_OK;
}

/* Reads `of relation` or `of nearest relation` if it is next. */
static quern_result read_term_path(parser *p, quern_term *term)
{
    word name;
    if (!is_of_next(p)) return QUERN_OK;
    p->next += 2;
    skip_spaces(p);
    quern_result result = read_word(p, &name);
    term->path = QUERN_PATH_TARGET;
    if (result == QUERN_OK && is_keyword(&name, "nearest") && has_word(p)) {
        term->path = QUERN_PATH_NEAREST;
        result = read_word(p, &name);
    }
    return result == QUERN_OK ? read_relation(p, &name, &term->relation) : result;
}

static quern_result read_component(parser *p, const word *name, const modifiers *m, quern_term *out_term)
{
    uint32_t size_bytes = 0;
    const quern_component component = quern_component_find(p->world, name->name);
    if (quern_component_is_null(component)) return fail_unknown_name(p, name, QUERN_TYPE_COMPONENT);
    if (m->is_mut && m->is_with)
        return fail_at(p, name->begin, QUERN_ERROR_INVALID_ARGUMENT,
                       "mut and with exclude each other: remove one");
    if (m->is_disabled && m->is_either)
        return fail_at(p, name->begin, QUERN_ERROR_INVALID_ARGUMENT,
                       "disabled and either exclude each other: remove one");
    const quern_result result = quern_component_get_size(p->world, component, &size_bytes);
    if (result != QUERN_OK) return result;
    const quern_access access = m->is_mut                       ? QUERN_ACCESS_WRITE
                                : m->is_with || size_bytes == 0 ? QUERN_ACCESS_NONE
                                                                : QUERN_ACCESS_READ;
    *out_term = quern_term_make(component, QUERN_MATCH_ALL, access);
    out_term->changed = m->is_changed;
    if (m->is_disabled) out_term->enabled = QUERN_TERM_DISABLED;
    if (m->is_either) out_term->enabled = QUERN_TERM_EITHER;
    return read_term_path(p, out_term);
}

/* Reads one component with its modifiers, without '!', '?' and '|'. */
static quern_result read_item(parser *p, bool is_alone, quern_term *out_term)
{
    static const modifiers none = {.is_mut = false};
    modifiers m;
    word name;
    quern_result result = read_modifiers(p, &m, &name);
    if (result != QUERN_OK) return result;
    const char *parenthesis = p->next;
    if (!accept(p, '(')) return read_component(p, &name, &m, out_term);
    if (!is_alone || memcmp(&m, &none, sizeof m) != 0)
        return fail_at(p, parenthesis, QUERN_ERROR_INVALID_ARGUMENT,
                       "a target combines with nothing else in its term: write it as a term of its own");
    return read_target(p, &name, out_term);
}

static quern_result add_term(parser *p, const char *begin, const quern_term *term)
{
    if (p->count == QUERN_MAX_TERMS)
        return fail_at(p, begin, QUERN_ERROR_LIMIT, "a query has at most 32 terms (QUERN_MAX_TERMS)");
    p->def.terms[p->count++] = *term;
    return QUERN_OK;
}

/* Reads alternatives, each after a '|'. */
static quern_result read_alternatives(parser *p)
{
    p->has_group = true;
    while (accept(p, '|')) {
        const char *begin = p->next;
        quern_term term;
        quern_result result = read_item(p, false, &term);
        term.match = QUERN_MATCH_ANY;
        if (result == QUERN_OK) result = add_term(p, begin, &term);
        if (result != QUERN_OK) return result;
    }
    return QUERN_OK;
}

/* Reads the alternatives after the first one, which is the last term so far. */
static quern_result read_group(parser *p)
{
    const char *begin = p->next;
    if (*begin != '|') return QUERN_OK;
    if (p->has_group)
        return fail_at(
            p, begin, QUERN_ERROR_INVALID_ARGUMENT,
            "a query has one group of alternatives: begin further ones with '|', after the comma");
    if (p->def.terms[p->count - 1].match != QUERN_MATCH_ALL || p->def.terms[p->count - 1].by_target)
        return fail_at(p, begin, QUERN_ERROR_INVALID_ARGUMENT,
                       "an alternative is a component without '!', '?' and target: remove those");
    p->def.terms[p->count - 1].match = QUERN_MATCH_ANY;
    return read_alternatives(p);
}

static quern_result read_term(parser *p)
{
    const char *begin = p->next;
    if (*begin == '|') return read_alternatives(p);
    const bool is_none = accept(p, '!'), is_optional = !is_none && accept(p, '?');
    quern_term term;
    quern_result result = read_item(p, !is_none && !is_optional, &term);
    if (result != QUERN_OK) return result;
    if (is_optional) term.match = QUERN_MATCH_OPTIONAL;
    if (is_none) {
        term.match = QUERN_MATCH_NONE;
        if (term.access == QUERN_ACCESS_READ) term.access = QUERN_ACCESS_NONE;
    }
    if (is_none && (term.access != QUERN_ACCESS_NONE || term.changed || term.enabled != QUERN_TERM_ENABLED))
        return fail_at(
            p, begin, QUERN_ERROR_INVALID_ARGUMENT,
            "a component that entities lack has no other conditions: remove '!' or the words after it");
    result = add_term(p, begin, &term);
    return result == QUERN_OK ? read_group(p) : result;
}

quern_result quern_query_parse(const quern_world *world, const char *text, quern_query_def *out_def)
{
    if (world == NULL) return quern__fail_null("quern_query_parse", "world");
    if (text == NULL) return quern__fail_null("quern_query_parse", "text");
    if (out_def == NULL) return quern__fail_null("quern_query_parse", "out_def");
    parser p = {.world = world, .text = text, .next = text};
    skip_spaces(&p);
    do {
        const quern_result result = read_term(&p);
        if (result != QUERN_OK) return result;
    } while (accept(&p, ','));
    if (*p.next != '\0')
        return fail_at(
            &p, p.next, QUERN_ERROR_INVALID_ARGUMENT,
            "a comma or the end is expected here: separate terms by commas, quote names with spaces");
    *out_def = p.def;
    return QUERN_OK;
}

/* ----------------------------------------------------------------------------------------- writing */

/* Whether a name is read back as a name without quotes, wherever it is in a term. */
static bool is_bare(const char *name)
{
    static const char *const keywords[] = {"mut", "with", "changed", "disabled", "either", "of", "nearest"};
    for (size_t i = 0; i < sizeof keywords / sizeof keywords[0]; i++)
        if (strcmp(name, keywords[i]) == 0) return false;
    while (is_plain(*name))
        name++;
    return *name == '\0';
}

static void print_name(quern__printer *printer, const char *name)
{
    if (is_bare(name)) {
        quern__print_bytes(printer, name, strlen(name));
        return;
    }
    quern__print_bytes(printer, "\"", 1);
    for (; *name != '\0'; name++) {
        if (*name == '"' || *name == '\\') quern__print_bytes(printer, "\\", 1);
        quern__print_bytes(printer, name, 1);
    }
    quern__print_bytes(printer, "\"", 1);
}

static quern_match match_of(const quern_term *term)
{
    return term->match == 0 ? QUERN_MATCH_ALL : term->match;
}

static bool is_alternative(const quern_query_def *def, uint32_t i)
{
    return i < QUERN_MAX_TERMS && !quern_component_is_null(def->terms[i].component) &&
           match_of(&def->terms[i]) == QUERN_MATCH_ANY;
}

/* Whether quern_query_parse can return the term, but for QUERN_TERM_EITHER where that has no effect. */
static bool has_text(const quern_term *term)
{
    const bool is_filter =
        term->changed || (term->enabled != QUERN_TERM_ENABLED && term->enabled != QUERN_TERM_EITHER);
    if (term->by_target)
        return match_of(term) == QUERN_MATCH_ALL && term->access == QUERN_ACCESS_NONE && !is_filter &&
               term->path == QUERN_PATH_ROW;
    if (match_of(term) == QUERN_MATCH_NONE) return term->access == QUERN_ACCESS_NONE && !is_filter;
    return (unsigned)match_of(term) <= QUERN_MATCH_ANY && (unsigned)term->access <= QUERN_ACCESS_WRITE &&
           (unsigned)term->enabled <= QUERN_TERM_EITHER && (unsigned)term->path <= QUERN_PATH_NEAREST;
}

static quern_result print_term(const quern_world *world, quern__printer *printer, const quern_term *term)
{
    uint32_t size_bytes = 0;
    quern_result result = quern_component_get_size(world, term->component, &size_bytes);
    if (result != QUERN_OK) return result;
    if (term->old)
        return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                           "the term of '%s' is for old values, which a text cannot have: leave it out",
                           quern_component_name(world, term->component));
    if (!has_text(term))
        return quern__fail(
            QUERN_ERROR_INVALID_ARGUMENT,
            "the term of '%s' combines members that no query may combine: make terms by quern_term_read "
            "and the like",
            quern_component_name(world, term->component));
    if (!term->by_target) {
        if (match_of(term) == QUERN_MATCH_NONE) quern__print(printer, "!");
        if (match_of(term) == QUERN_MATCH_OPTIONAL) quern__print(printer, "?");
        if (term->changed) quern__print(printer, "changed ");
        if (term->enabled == QUERN_TERM_DISABLED) quern__print(printer, "disabled ");
        if (term->enabled == QUERN_TERM_EITHER && match_of(term) != QUERN_MATCH_NONE)
            quern__print(printer, "either ");
        if (term->access == QUERN_ACCESS_WRITE) quern__print(printer, "mut ");
        if (term->access == QUERN_ACCESS_NONE && size_bytes > 0 && match_of(term) != QUERN_MATCH_NONE)
            quern__print(printer, "with ");
    }
    print_name(printer, quern_component_name(world, term->component));
    if (term->by_target) {
        quern__print(printer, "(");
        /* Prints the path of names only if it can be read back: a parenthesis ends the entity. */
        const quern_entity entity = term->target;
        char text[512];
        quern_text_buffer path = {text, sizeof text, 0};
        const bool has_path = quern_entity_is_alive(world, entity) &&
                              quern_entity_name(world, entity) != NULL &&
                              quern_entity_get_path(world, entity, quern_sink_text(&path)) == QUERN_OK;
        quern__handle_print(world, entity,
                            has_path && path.length_bytes < sizeof text && strchr(text, ')') == NULL,
                            printer);
        quern__print(printer, ")");
    } else if (term->path != QUERN_PATH_ROW) {
        const char *relation = quern_component_name(world, quern_relation_component(term->relation));
        if (relation == NULL) return QUERN_ERROR_UNKNOWN_COMPONENT;
        quern__print(printer, term->path == QUERN_PATH_NEAREST ? " of nearest " : " of ");
        print_name(printer, relation);
    }
    return QUERN_OK;
}

quern_result quern_query_to_text(const quern_world *world, const quern_query_def *def, quern_sink sink)
{
    static const char function[] = "quern_query_to_text";
    if (world == NULL) return quern__fail_null(function, "world");
    if (def == NULL) return quern__fail_null(function, "def");
    quern_result result = quern__check_sink(sink, function);
    if (result != QUERN_OK) return result;
    quern__printer printer;
    quern__printer_open(&printer, sink);
    bool has_group = false;
    for (uint32_t i = 0; i < QUERN_MAX_TERMS && !quern_component_is_null(def->terms[i].component); i++) {
        const bool is_any = is_alternative(def, i), is_next = is_any && i > 0 && is_alternative(def, i - 1);
        if (i > 0) quern__print(&printer, is_next ? " | " : ", ");
        if (is_any && !is_next && (has_group || !is_alternative(def, i + 1))) quern__print(&printer, "| ");
        has_group = has_group || is_any;
        result = print_term(world, &printer, &def->terms[i]);
        if (result != QUERN_OK) return quern__message_add_call(result, function, NULL);
    }
    return quern__printer_close(&printer, function);
}
