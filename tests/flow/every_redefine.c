/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Types of the random program that get other definitions between frames: the same layout with other functions, texts and
 * default values, or other fields. A world that is converted must be the one that an archive from before becomes. */

#include "tests/flow/every_parts.h"

#include <kit/json.h>
#include <quern/redefine.h>

#include <stdio.h>
#include <string.h>

/* ---------------------------------------------------------------------------------------- conversion */

/* How a type gets its next form. */
typedef struct redefinition {
    every_conversion conversion;
    bool is_converted, uses_renames, uses_migration;
    uint32_t added_count, dropped_count; /* fields */
    every_form old;
    quern_redefine_def how;
    char names[2 * EVERY_TYPE_WORDS][16]; /* of the renames */
} redefinition;

static bool is_same_field(const every_field *a, const every_field *b)
{
    return a->word == b->word && a->alias == b->alias && a->type == b->type && a->count == b->count &&
           a->offset_bytes == b->offset_bytes;
}

static bool is_same_layout(const every_form *a, const every_form *b)
{
    bool is_same =
        a->size_bytes == b->size_bytes && a->field_count == b->field_count && a->element == b->element;
    for (uint32_t f = 0; f < a->field_count && is_same; f++)
        is_same = is_same_field(&a->fields[f], &b->fields[f]);
    return is_same;
}

/* Fields of both forms are the same one if they have a name, or if a rename says so. Notes the words that survive. */
static void match_fields(redefinition *it)
{
    const every_form *old = &it->old, *fresh = &it->conversion.form;
    uint32_t rename_count = 0, matched_count = 0;
    for (uint32_t f = 0; f < old->field_count; f++)
        for (uint32_t g = 0; g < fresh->field_count; g++) {
            const every_field *from = &old->fields[f], *to = &fresh->fields[g];
            const bool is_list = from->type >= QUERN_FIELD_STRING || to->type >= QUERN_FIELD_STRING;
            if (from->word != to->word || (is_list && from->type != to->type)) continue;
            if (from->alias != to->alias && !it->uses_renames) continue;
            matched_count++;
            for (uint32_t w = 0; w < from->count && w < to->count; w++)
                it->conversion.survivors |= BIT(from->word + w);
            every.type_features |= from->type != to->type ? every_bit(EVERY_USES_RETYPED_FIELD) : 0;
            every.type_features |= f != g ? every_bit(EVERY_USES_MOVED_FIELD) : 0;
            if (from->alias == to->alias) continue;
            every_field_name(it->names[2 * rename_count], from);
            every_field_name(it->names[2 * rename_count + 1], to);
            it->how.renames[rename_count] =
                (quern_field_rename){it->names[2 * rename_count], it->names[2 * rename_count + 1]};
            rename_count++;
        }
    it->uses_renames = rename_count > 0;
    it->dropped_count = old->field_count - matched_count;
    it->added_count = fresh->field_count - matched_count;
    if (it->dropped_count > 0) every.type_features |= every_bit(EVERY_USES_DROPPED_FIELD);
    if (it->added_count > 0) every.type_features |= every_bit(EVERY_USES_ADDED_FIELD);
    if (rename_count > 0) every.type_features |= every_bit(EVERY_USES_RENAMED_FIELD);
}

/* Keeps all words that both forms have, and gives the others a number. */
static void migrate(void *user_data, void *targets, const void *sources, uint32_t count)
{
    const redefinition *it = user_data;
    const every_conversion *to = &it->conversion;
    for (uint32_t i = 0; i < count; i++) {
        uint64_t words[EVERY_WORDS];
        char *target = (char *)targets + (size_t)to->form.size_bytes * i;
        every_form_read(to->type, &it->old, (const char *)sources + (size_t)it->old.size_bytes * i, words);
        for (uint32_t w = 0; w < every_types[to->type].word_count; w++)
            if (!every_has(to->survivors, w)) words[every_types[to->type].first_word + w] = to->fresh[w];
        memset(target, 0, to->form.size_bytes);
        if (to->type == EVERY_HOOKED)
            tracked_construct(every_hooked(&to->form, target), 0, &every_hook_counts[to->form.version % 2]);
        every_form_write(to->type, &to->form, target, words);
    }
}

static void choose_way(redefinition *it, random_source *random)
{
    const uint32_t type = it->conversion.type;
    it->is_converted = !is_same_layout(&it->old, &it->conversion.form);
    it->uses_migration =
        it->is_converted && (type == EVERY_HOOKED || it->old.element != it->conversion.form.element ||
                             random_chance(random, 15));
    it->uses_renames = random_chance(random, 60) && !it->uses_migration;
    if (!it->uses_migration) {
        memcpy(it->conversion.fresh, it->conversion.form.default_words, sizeof it->conversion.fresh);
        match_fields(it);
        return;
    }
    for (uint32_t w = 0; w < every_types[type].word_count; w++) {
        it->conversion.fresh[w] = every_fit(&it->conversion.form, w, 5);
        if (every_form_has(&it->old, w) && every_form_has(&it->conversion.form, w))
            it->conversion.survivors |= BIT(w);
    }
    it->how.migrate = migrate;
    it->how.user_data = it;
    every.type_features |= every_bit(EVERY_USES_MIGRATION);
}

static quern_result redefine_in(quern_world *in, redefinition *it, quern_redefine_report *report)
{
    const uint32_t type = it->conversion.type;
    const quern_component component = quern_component_find(in, every_types[type].name);
    every_definition *room;
    every_handles required;
    quern_component_def *def = every_define(type, &it->conversion.form, &room);
    for (uint32_t t = 0; t < type; t++)
        required.types[t] = quern_component_find(in, every_types[t].name);
    every_require(type, def, &required);
    every_give_entity_hooks(def, type, &it->conversion.form);
    const quern_result result = quern_component_redefine(in, component, def, &it->how, report);
    every_forget_definition(room);
    return result;
}

/* A call that fails must have changed nothing. If it lacks memory, it is repeated. */
static quern_result redefine_or_repeat(redefinition *it, quern_redefine_report *report)
{
    const bool compares = every.failing != NULL || every.is_modelled;
    const uint64_t hash = compares ? quern_world_hash(every.world) : 0;
    if (every.failing != NULL) failing_allocator_pause(every.failing, false);
    quern_result result = redefine_in(every.world, it, report);
    if (every.failing != NULL) failing_allocator_pause(every.failing, true);
    if (compares && (result != QUERN_OK || it->how.only_checks)) {
        cr_assert_eq(quern_world_hash(every.world), hash,
                     "seed %llu, frame %llu: '%s' was not redefined: %s", (unsigned long long)every.seed,
                     (unsigned long long)every.frame, every_types[it->conversion.type].name,
                     quern_error_message());
        assert_valid(every.world);
        every_check_outside(every.world);
    }
    if (every.failing == NULL || result != QUERN_ERROR_OUT_OF_MEMORY) return result;
    every.failed_count++;
    return redefine_in(every.world, it, report);
}

/* --------------------------------------------------------------------------------- what is from before */

static quern_byte_buffer archive, json;

static void save_before(const redefinition *it)
{
    random_source random = {every_mix(every.seed ^ every_mix(every.frame * 59 + it->conversion.type))};
    archive.size_bytes = json.size_bytes = 0;
    if (!every.is_modelled || !it->is_converted || it->uses_renames || it->uses_migration) return;
    if (random_chance(&random, 30) &&
        quern_world_save(every.world, quern_sink_bytes(&archive),
                         &(quern_save_def){.leave_out = {every_leave_out()}}) != QUERN_OK)
        archive.size_bytes = 0; /* commands wait */
    if (random_chance(&random, 20)) must(quern_json_write_world(every.world, quern_sink_bytes(&json)));
}

static void compare_with_before(void)
{
    if (archive.size_bytes > 0) {
        quern_world *other = every_open_other();
        must(quern_world_load(other, quern_source_bytes(archive.bytes, archive.size_bytes), NULL, NULL));
        every_compare_other(other, true);
        if (!every.has_hooks) cr_assert_eq(quern_world_hash(other), quern_world_hash(every.world));
        quern_world_destroy(other);
    }
    if (json.size_bytes > 0) {
        quern_world *other = every_open_other();
        const uint64_t hash = quern_world_hash(other);
        if (quern_json_read_world(other, json.bytes, json.size_bytes,
                                  &(quern_json_options){.leaves_out_unknown = true}) == QUERN_OK)
            every_compare_other(other, false);
        else /* an array had another length, which JSON refuses */
            cr_assert_eq(quern_world_hash(other), hash);
        quern_world_destroy(other);
    }
}

/* -------------------------------------------------------------------------------------- redefinition */

/* Prefabs know where the handles of their members are, which a function hides. */
static bool can_migrate(const redefinition *it)
{
    return it->conversion.type != EVERY_LINK || !every_model_has_member_links();
}

/* Compares the outcome with that of the model. Returns whether the type has its new form. */
static bool is_done(const redefinition *it, quern_result result, every_answer waits)
{
    const bool must_convert = it->is_converted && every.is_modelled;
    const bool fits =
        !must_convert || (it->uses_migration ? can_migrate(it) : every_model_fits(&it->conversion));
    const char *name = every_types[it->conversion.type].name;
    cr_assert(result == QUERN_OK || result == QUERN_ERROR_INVALID_ARGUMENT,
              "seed %llu, frame %llu, '%s': %s", (unsigned long long)every.seed,
              (unsigned long long)every.frame, name, quern_error_message());
    if (!every.is_modelled) return result == QUERN_OK;
    if (result == QUERN_OK)
        cr_assert(fits && (waits != EVERY_YES || !it->is_converted),
                  "seed %llu, frame %llu: '%s' was redefined, although %s", (unsigned long long)every.seed,
                  (unsigned long long)every.frame, name, fits ? "commands wait" : "a value does not fit");
    else
        cr_assert(!fits || (waits != EVERY_NO && it->is_converted),
                  "seed %llu, frame %llu: '%s' was not redefined: %s", (unsigned long long)every.seed,
                  (unsigned long long)every.frame, name, quern_error_message());
    return result == QUERN_OK;
}

static void check_report(const redefinition *it, const quern_redefine_report *report)
{
    cr_assert_eq(report->is_converted, it->is_converted || it->uses_renames);
    if (!it->is_converted || it->uses_migration) return;
    cr_assert_eq(report->added_field_count, it->added_count);
    cr_assert_eq(report->dropped_field_count, it->dropped_count);
}

static void flush(void)
{
    must(quern_world_flush(every.world));
    if (every.is_modelled) every_model_flush(true);
    every_learn_known();
}

static void redefine_type(uint32_t type, bool changes_layout, random_source *random)
{
    static redefinition it;
    quern_redefine_report report;
    memset((void *)&it, 0, sizeof it);
    it.old = it.conversion.form = every_forms[type];
    it.conversion.type = type;
    if (changes_layout) every_form_draw(type, &it.conversion.form, random);
    every_form_draw_default(type, &it.conversion.form, random);
    it.conversion.form.version = (uint32_t)every.frame + 1;
    choose_way(&it, random);
    for (uint32_t attempt = 0; attempt < 2; attempt++) {
        const every_answer waits = every.is_modelled ? every_model_waits(type) : EVERY_MAY;
        it.how.only_checks = random_chance(random, 20);
        if (it.how.only_checks) (void)is_done(&it, redefine_or_repeat(&it, &report), waits);
        it.how.only_checks = false;
        save_before(&it);
        if (!is_done(&it, redefine_or_repeat(&it, &report), waits)) {
            every.type_features |= every_bit(EVERY_USES_REFUSED_TYPE);
            flush();
            continue;
        }
        check_report(&it, &report);
        every_forms[type] = it.conversion.form;
        every.converted_count += it.is_converted;
        if (!it.is_converted) every.type_features |= every_bit(EVERY_USES_NEW_VERSION);
        if (it.is_converted && every.is_modelled) every_model_convert(&it.conversion);
        if (every.replica != NULL) must(redefine_in(every.replica, &it, NULL));
        compare_with_before();
        return;
    }
}

/* Gives the event another layout, which waiting events get as well. */
static void redefine_event(uint32_t form)
{
    const quern_event_def def = every_event_def(form);
    quern_redefine_report report;
    if (every.failing != NULL) failing_allocator_pause(every.failing, false);
    quern_result result = quern_event_redefine(every.world, every_own.event, &def, NULL, &report);
    if (every.failing != NULL) failing_allocator_pause(every.failing, true);
    if (every.failing != NULL && result == QUERN_ERROR_OUT_OF_MEMORY) {
        every.failed_count++;
        result = quern_event_redefine(every.world, every_own.event, &def, NULL, &report);
    }
    must(result);
    cr_assert_eq(report.is_converted, form != every_event_form);
    if (form == every_event_form) return;
    every_event_form = form;
    every.converted_count++;
    every.type_features |= every_bit(EVERY_USES_NEW_EVENT);
}

/* Gives the values of edges another layout. */
static void redefine_edges(uint32_t form)
{
    const quern_component_def def = every_home_def(form);
    const quern_component component = every.types.edge_values[EVERY_HOME];
    if (every.failing != NULL) failing_allocator_pause(every.failing, false);
    quern_result result = quern_component_redefine(every.world, component, &def, NULL, NULL);
    if (every.failing != NULL) failing_allocator_pause(every.failing, true);
    if (every.failing != NULL && result == QUERN_ERROR_OUT_OF_MEMORY) {
        every.failed_count++;
        assert_valid(every.world);
        result = quern_component_redefine(every.world, component, &def, NULL, NULL);
    }
    if (result == QUERN_ERROR_INVALID_ARGUMENT) { /* commands with values wait */
        flush();
        result = quern_component_redefine(every.world, component, &def, NULL, NULL);
    }
    must(result);
    if (every.replica != NULL)
        must(quern_component_redefine(every.replica, quern_component_find(every.replica, def.name), &def,
                                      NULL, NULL));
    if (form == every_home_form) return;
    every_home_form = form;
    every.converted_count++;
    every.type_features |= every_bit(EVERY_USES_NEW_EDGES);
}

bool every_changes_layouts(void)
{
    return every.frame % 3 == 2;
}

/* Changes that reactions have not seen and, if the seed has no replica, commands that wait. */
void every_change_before(void)
{
    if (!every_changes_layouts()) return;
    if (every.failing != NULL) failing_allocator_pause(every.failing, true);
    every_learn_known();
    actor now = every_program_actor(3, NULL);
    actor later = every_program_actor(4, quern_world_commands(every.world));
    for (uint32_t i = 0; i < 6; i++)
        every_act(&now, quern_entity_null());
    if (every.known_count < CROWD && random_chance(&now.random, 30)) every_create_some(&now);
    for (uint32_t i = 0; i < 3; i++)
        every_act(&later, quern_entity_null());
    if (every.seed % 2 == 0) flush();
    every_learn_known();
    if (every.failing != NULL) failing_allocator_pause(every.failing, false);
}

static void replace_system(quern_system system, const quern_system_def *def)
{
    if (every.failing != NULL) failing_allocator_pause(every.failing, false);
    every_replace_system(system, def);
    if (every.failing != NULL) failing_allocator_pause(every.failing, true);
}

/* Replaces systems and reactions by other definitions. */
static void redefine_systems(random_source *random)
{
    for (uint32_t s = 0; s < PLAIN_SYSTEMS; s++) {
        const every_terms before = every_system_terms[s];
        if (!random_chance(random, 25) || !every_redraw_system(s, random)) continue;
        const quern_system_def def = every_def_of_system(s);
        replace_system(every_own.systems[s], &def);
        if (every.is_modelled) every_model_replace_system(s, &before);
        every.type_features |= every_bit(EVERY_USES_OTHER_SYSTEM);
    }
    for (uint32_t r = 0; r < EVERY_REACTIONS; r++) {
        const every_terms before = every_reaction_terms[r];
        if (!random_chance(random, 25)) continue;
        every_redraw_reaction(r, random);
        const quern_system_def def = every_def_of_reaction(r);
        replace_system(every_own.reactions[r], &def);
        if (every.is_modelled) every_model_replace_reaction(r, &before);
        every.type_features |= every_bit(EVERY_USES_OTHER_REACTION);
    }
}

void every_change_types(void)
{
    random_source random = {every_mix(every.seed ^ every_mix(every.frame * 47 + 3))};
    every.type_features = 0;
    every.converted_count = 0;
    if (every.frame % 3 == 1) return;
    if (every.failing != NULL) failing_allocator_pause(every.failing, true);
    every_learn_known();
    if (every_changes_layouts()) redefine_systems(&random);
    for (uint32_t t = 0; t < EVERY_OFF; t++) {
        const bool changes_layout = random_chance(&random, 60);
        if (random_chance(&random, 40) && (t != EVERY_HOOKED || every.has_hooks))
            redefine_type(t, changes_layout && every_changes_layouts(), &random);
    }
    for (uint32_t r = 0; r < EVERY_RESOURCES && every_changes_layouts(); r++)
        if (random_chance(&random, 30)) every_resource_redefine(r, random_below(&random, 3));
    if (every_changes_layouts() && random_chance(&random, 50))
        redefine_edges(random_below(&random, EVERY_HOME_FORMS));
    if (every_changes_layouts() && random_chance(&random, 50))
        redefine_event(random_below(&random, EVERY_EVENT_FORMS));
    every_check_outside(every.world);
    if (every.is_modelled && every.converted_count > 0) every_model_compare(every.world, true, NULL);
    if (every.failing != NULL) failing_allocator_pause(every.failing, false);
}
