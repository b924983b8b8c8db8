/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Views: refused accesses and the scratch memory that they get, columns, and the rows that change filters select. */
#include "core/query/query_internal.h"

/* ----------------------------------------------------------------------------------------- refusals */

/* Counts a refusal. Returns whether it is the accessor's first. Relaxed: the count orders no other access. */
static bool count_refusal(quern__scope *scope)
{
    return atomic_fetch_add_explicit(&scope->accessor->refusal_count, 1, memory_order_relaxed) == 0;
}

/* Relaxed: see quern__scope_refused. */
quern_result quern__scope_refuse(quern__scope *scope, quern_result code)
{
    if (scope == NULL || count_refusal(scope)) quern__report_failure();
    if (scope != NULL) atomic_store_explicit(&scope->refused, code, memory_order_relaxed);
    return code;
}

bool quern__scope_count_repeated(quern__scope *scope)
{
    if (quern__scope_refused(scope) == QUERN_OK) return false;
    (void)count_refusal(scope);
    return true;
}

void quern__scope_describe(const quern__scope *scope, char *text, size_t text_bytes)
{
    static const char *const names[] = {[QUERN__CALLER_PARALLEL] = "a parallel query",
                                        [QUERN__CALLER_FILL] = "a fill callback",
                                        [QUERN__CALLER_ITERATION] = "an iteration"};
    if (scope != NULL && scope->caller == QUERN__CALLER_SYSTEM)
        quern__append(text, text_bytes, "system '%s'", scope->accessor->name);
    else
        quern__append(text, text_bytes, "%s",
                      names[scope != NULL ? scope->caller : QUERN__CALLER_ITERATION]);
}

/* ------------------------------------------------------------------------------------ scratch memory */

enum { SCRATCH_BLOCK_HEAD = 64, SCRATCH_BLOCK_ALIGNMENT = 64 };

/* Head of a block of scratch memory; its values follow at offset SCRATCH_BLOCK_HEAD. find_block lists the members
 * that identify a block. */
typedef struct quern__scratch_block {
    struct quern__scratch_block *next;
    size_t size_bytes;      /* size of the values */
    const quern_view *view; /* view of the iteration; NULL in callbacks, because they may copy their view */
    const void *rows;       /* address of the rows' handles, which identifies the rows; NULL for lookups */
    uint32_t term;
    /* Only for an up-term: the values begin with this number of addresses, all of the one value that follows
     * them. 0 for a column or a lookup. */
    uint32_t address_count;
} quern__scratch_block;

_Static_assert(sizeof(quern__scratch_block) <= SCRATCH_BLOCK_HEAD, "room for the head of a block");
_Static_assert(SCRATCH_BLOCK_ALIGNMENT >= QUERN_MAX_ALIGNMENT_BYTES, "values are aligned");

static void *values_of(quern__scratch_block *block)
{
    return (char *)block + SCRATCH_BLOCK_HEAD;
}

static size_t addresses_bytes(uint32_t address_count)
{
    return quern__align_up(address_count * sizeof(void *), SCRATCH_BLOCK_ALIGNMENT);
}

/* Zeroes the values, and sets the addresses of an up-term again. */
static void clear(quern__scratch_block *block)
{
    const void **addresses = values_of(block);
    memset(values_of(block), 0, block->size_bytes);
    for (uint32_t i = 0; i < block->address_count; i++)
        addresses[i] = (const char *)values_of(block) + addresses_bytes(block->address_count);
}

static void free_block(const quern__scope *scope, quern__scratch_block *block)
{
    quern__release(&scope->storage->allocator, block, SCRATCH_BLOCK_HEAD + block->size_bytes,
                   SCRATCH_BLOCK_ALIGNMENT);
}

/* Relaxed: the callback has returned, so the jobs of its parallel loops have ended. */
void quern__scratch_release(quern__scope *scope)
{
    quern__scratch_block *block = atomic_exchange_explicit(&scope->scratch, NULL, memory_order_relaxed);
    while (block != NULL) {
        quern__scratch_block *next = block->next;
        free_block(scope, block);
        block = next;
    }
}

/* Acquire: pairs with the release in add_block, so that the cleared block is visible. */
static quern__scratch_block *find_block(quern__scope *scope, const quern__scratch_block *wanted)
{
    quern__scratch_block *block = atomic_load_explicit(&scope->scratch, memory_order_acquire);
    while (block != NULL &&
           (block->view != wanted->view || block->rows != wanted->rows || block->term != wanted->term ||
            block->address_count != wanted->address_count || block->size_bytes != wanted->size_bytes))
        block = block->next;
    return block;
}

/* Two threads that need the same block at the same time may each add one. The release of the exchange pairs with
 * the acquire in find_block. The first load is relaxed, because the exchange fails if the head is stale. */
static quern__scratch_block *add_block(quern__scope *scope, const quern__scratch_block *wanted)
{
    quern__scratch_block *block = quern__allocate(
        &scope->storage->allocator, SCRATCH_BLOCK_HEAD + wanted->size_bytes, SCRATCH_BLOCK_ALIGNMENT);
    if (block == NULL) return NULL;
    *block = *wanted;
    clear(block);
    block->next = atomic_load_explicit(&scope->scratch, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(&scope->scratch, &block->next, block,
                                                  memory_order_release, memory_order_relaxed)) {
    }
    return block;
}

/* Returns the values of the block that `wanted` identifies, and adds the block if it is missing. Returns NULL if
 * out of memory. */
static void *get_values(quern__scope *scope, quern__scratch_block wanted)
{
    quern__scratch_block *block = find_block(scope, &wanted);
    const bool is_reused = block != NULL && (wanted.rows == NULL || wanted.view != NULL);
    if (is_reused) clear(block); /* blocks of lookups and iterations belong to one thread */
    if (block == NULL) block = add_block(scope, &wanted);
    return block != NULL ? values_of(block) : NULL;
}

static void *get_view_values(const quern_view *view, uint32_t term, uint32_t address_count,
                             size_t size_bytes)
{
    quern__scope *scope = quern__scope_of(view);
    if (scope == NULL) return NULL;
    const bool is_iteration = scope->caller == QUERN__CALLER_ITERATION;
    if (is_iteration) {
        /* Blocks that the view got for other rows are invalid since the iterator moved on. Relaxed: an iteration belongs
         * to one thread. */
        quern__scratch_block *kept = NULL, *next;
        for (quern__scratch_block *block =
                 atomic_exchange_explicit(&scope->scratch, NULL, memory_order_relaxed);
             block != NULL; block = next) {
            next = block->next;
            if (block->view == view && block->rows != view->entities) {
                free_block(scope, block);
                continue;
            }
            block->next = kept;
            kept = block;
        }
        atomic_store_explicit(&scope->scratch, kept, memory_order_relaxed);
    }
    /* a view without handles is identified by its values, or by the scope if it has none */
    const void *rows = view->entities != NULL ? (const void *)view->entities : view->memory;
    return get_values(scope, (quern__scratch_block){.size_bytes = size_bytes,
                                                    .view = is_iteration ? view : NULL,
                                                    .rows = rows != NULL ? rows : scope,
                                                    .term = term,
                                                    .address_count = address_count});
}

static size_t size_or_largest(const quern_view *view, size_t size_bytes)
{
    const quern__scope *scope = quern__scope_of(view);
    if (size_bytes > 0 || scope == NULL) return size_bytes;
    const uint32_t largest_bytes = scope->storage->components.largest_bytes;
    return largest_bytes > 0 ? largest_bytes : 1;
}

/* Returns the number of rows for which memory is needed; 1 for a view without rows. */
static uint32_t row_count(const quern_view *view)
{
    return view->count > 0 ? view->count : 1;
}

void *quern__scratch_column(const quern_view *view, uint32_t term, size_t size_bytes)
{
    return get_view_values(view, term, 0, (size_t)row_count(view) * size_or_largest(view, size_bytes));
}

/* Returns an address for each row of a view; all addresses are those of one scratch value. */
static const void *const *scratch_up(const quern_view *view, uint32_t term, size_t size_bytes)
{
    const uint32_t count = row_count(view);
    return get_view_values(view, term, count, addresses_bytes(count) + size_or_largest(view, size_bytes));
}

void *quern__scratch_value(quern__scope *scope, size_t size_bytes)
{
    return get_values(scope, (quern__scratch_block){.size_bytes = size_bytes});
}

/* Uncommon cases of the functions on views: refused accesses and their messages, checks of types, and access to
 * rows that is slower than one store. */

static const char *const access_verbs[] = {"match", "read", "write"};

void quern__query_describe(const quern__query *query, char *text, size_t text_bytes)
{
    text[0] = '\0';
    for (uint32_t i = 0; i < query->term_count; i++) {
        const quern_term *term = &query->terms[i];
        const quern__type *type =
            quern__components_type(&query->storage->components, quern__component_index(term->component));
        quern__append(text, text_bytes, "%s%s %s%s", i > 0 ? ", " : "",
                      term->match == QUERN_MATCH_NONE ? "exclude"
                      : term->old                     ? "read old"
                                                      : access_verbs[term->access],
                      type->name, term->path != QUERN_PATH_ROW ? " upward" : "");
    }
}

/* Describes the caller of a view in `text`, for messages. Returns text. */
static const char *describe_caller(const quern_view *view, char *text, size_t text_bytes)
{
    text[0] = '\0';
    quern__scope_describe(quern__scope_of(view), text, text_bytes);
    if (view->query != NULL && view->query->further_number > 0)
        quern__append(text, text_bytes, ", query %u,", view->query->further_number - 1);
    return text;
}

static const quern__type *type_of(const quern_view *view, uint32_t term)
{
    return quern__components_type(&view->query->storage->components,
                                  quern__component_index(view->query->terms[term].component));
}

static bool has_term(const quern_view *view, uint32_t term)
{
    return term < view->term_count && view->query != NULL;
}

static bool is_old(const quern_view *view, uint32_t term)
{
    return has_term(view, term) && view->query->terms[term].old;
}

/* Returns the remedy for a refused access, as the end of a message. */
static const char *remedy_for(const quern_view *view, uint32_t term, quern_access access)
{
    if (quern__view_is_up(view, term))
        return "; it is an up-term: QUERN_UP has the addresses of its values";
    if (is_old(view, term))
        return "; old values are to read (const in QUERN_COLUMN): add a term that writes the component";
    if (access == QUERN_ACCESS_WRITE && view->columns[term].access == QUERN_ACCESS_READ)
        return "; declare the write, or ask for it to read (quern_view_read, const in QUERN_COLUMN)";
    return "; declare the access in the term";
}

static void report_access(const quern_view *view, uint32_t term, quern_access access, const char *function)
{
    char declared[256] = "nothing", owner[QUERN_MAX_NAME_BYTES + 32];
    quern__scope *scope = quern__scope_of(view);
    if (view->query != NULL && view->query->term_count > 0)
        quern__query_describe(view->query, declared, sizeof declared);
    describe_caller(view, owner, sizeof owner);
    if (!has_term(view, term))
        quern__refuse(
            scope, QUERN_ERROR_UNDECLARED_ACCESS,
            "%s: %s asked for term %u; there are %u, from 0 (declared: %s); declare a term for it",
            function, owner, term, view->term_count, declared);
    else
        quern__refuse(scope, QUERN_ERROR_UNDECLARED_ACCESS,
                      "%s: %s asked to %s '%s', term %u (declared: %s)%s", function, owner,
                      access_verbs[access], type_of(view, term)->name, term, declared,
                      remedy_for(view, term, access));
}

void *quern__view_refuse(const quern_view *view, uint32_t term, quern_access access, size_t size_bytes,
                         const char *function)
{
    if (access == QUERN_ACCESS_READ && is_old(view, term)) {
        if (view->old == NULL) return NULL; /* the rows were not set */
        const size_t offset_bytes = (size_t)view->first_row * type_of(view, term)->size_bytes;
        return (char *)(uintptr_t)view->old[term] + offset_bytes;
    }
    report_access(view, term, access, function);
    return quern__scratch_column(view, term, size_bytes);
}

const void *const *quern__view_refuse_up(const quern_view *view, uint32_t term, size_t size_bytes,
                                         const char *function)
{
    char owner[QUERN_MAX_NAME_BYTES + 32];
    if (has_term(view, term))
        quern__refuse(
            quern__scope_of(view), QUERN_ERROR_UNDECLARED_ACCESS,
            "%s: %s asked for '%s', term %u, which is no up-term (quern_term_up): QUERN_COLUMN has "
            "its values",
            function, describe_caller(view, owner, sizeof owner), type_of(view, term)->name, term);
    else
        report_access(view, term, QUERN_ACCESS_READ, function);
    return scratch_up(view, term, size_bytes);
}

/* Returns whether the values of a term have the requested type. Otherwise refuses the access. */
static bool check_type(const quern_view *view, uint32_t term, size_t size_bytes, const char *type_name,
                       const char *function)
{
    static const quern__type unknown = {.name = "component"};
    const quern__type *type = view->query != NULL ? type_of(view, term) : &unknown;
    const uint32_t value_bytes = view->query != NULL ? type->size_bytes : view->columns[term].size_bytes;
    const bool is_named = !QUERN_CHECKS || quern__type_has_c_name(type, type_name);
    if (size_bytes == value_bytes && is_named) return true;
    char owner[QUERN_MAX_NAME_BYTES + 32];
    describe_caller(view, owner, sizeof owner);
    if (size_bytes != value_bytes)
        quern__refuse(
            quern__scope_of(view), QUERN_ERROR_UNDECLARED_ACCESS,
            "%s: %s asked for '%s', term %u, as %s of %zu bytes; its values have %u: name the type "
            "of the component, or another term",
            function, owner, type->name, term, type_name, size_bytes, value_bytes);
    else
        quern__refuse(quern__scope_of(view), QUERN_ERROR_UNDECLARED_ACCESS,
                      "%s: %s asked for '%s', term %u, as %s; it was registered as %s", function, owner,
                      type->name, term, type_name, type->type_name);
    return false;
}

/* Returns whether the view has the row, and the term is on the row itself. Otherwise refuses the call. */
static bool check_row(const quern_view *view, uint32_t term, uint32_t row, const char *function)
{
    if (!has_term(view, term)) {
        report_access(view, term, QUERN_ACCESS_READ, function);
        return false;
    }
    if (row < view->count && !quern__view_is_up(view, term)) return true;
    char owner[QUERN_MAX_NAME_BYTES + 32];
    describe_caller(view, owner, sizeof owner);
    if (row >= view->count)
        quern__refuse(quern__scope_of(view), QUERN_ERROR_INVALID_ARGUMENT,
                      "%s: %s named row %u, but the view has %u rows: use an index below view.count",
                      function, owner, row, view->count);
    else
        quern__refuse(
            quern__scope_of(view), QUERN_ERROR_INVALID_ARGUMENT,
            "%s: %s named term %u, an up-term, which reads another entity: name a term on the row itself",
            function, owner, term);
    return false;
}

static const quern__archetype *archetype_of(const quern_view *view)
{
    return quern__chunk_archetype(view->chunk);
}

static const char lacking[] = "which the entities of the view lack (quern_view_has)";

/* Refuses an operation on the component of a term. `verb` and `why` complete the message. Returns false. */
static bool refuse_component(const quern_view *view, uint32_t term, const char *function, const char *verb,
                             const char *why)
{
    char owner[QUERN_MAX_NAME_BYTES + 32];
    quern__refuse(quern__scope_of(view), QUERN_ERROR_INVALID_ARGUMENT,
                  "%s: %s asked to %s '%s', term %u, %s", function,
                  describe_caller(view, owner, sizeof owner), verb, type_of(view, term)->name, term, why);
    return false;
}

bool quern__view_set_enabled(const quern_view *view, uint32_t term, uint32_t row, bool enabled)
{
    static const char function[] = "quern_view_set_enabled";
    if (!check_row(view, term, row, function)) return false;
    const quern_view_column *column = &view->columns[term];
    if (column->access != QUERN_ACCESS_WRITE) {
        report_access(view, term, QUERN_ACCESS_WRITE, function);
        return false;
    }
    if (column->present >= 2 && view->row_bits != NULL) {
        const uintptr_t location = quern__location_make(view->chunk, view->first_row + row);
        if (enabled)
            quern__bit_column_clear_rows(archetype_of(view)->row_bits, column->present - 2u, location, 1);
        else
            quern__bit_column_set_rows(archetype_of(view)->row_bits, column->present - 2u, location, 1);
        if (view->versions != NULL) quern__view_note_row(view, column, row);
        return true;
    }
    return refuse_component(view, term, function, "enable or disable",
                            column->present == 0 ? lacking
                                                 : "which cannot be: register it with can_disable");
}

bool quern__view_is_enabled(const quern_view *view, uint32_t term, uint32_t row)
{
    if (!check_row(view, term, row, "quern_view_is_enabled")) return false;
    const uint32_t present = view->columns[term].present;
    if (present < 2 || view->row_bits == NULL) return present != 0;
    return !quern__bit_column_test(archetype_of(view)->row_bits, present - 2,
                                   quern__location_make(view->chunk, view->first_row + row));
}

void *quern__view_typed_refused(const quern_view *view, uint32_t term, size_t size_bytes,
                                const char *type_name, bool reads)
{
    if (reads && is_old(view, term) && !check_type(view, term, size_bytes, type_name, "QUERN_COLUMN"))
        return quern__scratch_column(view, term, size_bytes);
    return quern__view_refuse(view, term, reads ? QUERN_ACCESS_READ : QUERN_ACCESS_WRITE, size_bytes,
                              "QUERN_COLUMN");
}

void *quern__view_typed_checked(const quern_view *view, uint32_t term, size_t size_bytes,
                                const char *type_name, bool reads)
{
    if (!check_type(view, term, size_bytes, type_name, "QUERN_COLUMN"))
        return quern__scratch_column(view, term, size_bytes);
    return reads ? (void *)(uintptr_t)quern_view_read(view, term) : quern_view_write(view, term);
}

const void *const *quern__view_up_checked(const quern_view *view, uint32_t term, size_t size_bytes,
                                          const char *type_name)
{
    if (!check_type(view, term, size_bytes, type_name, "QUERN_UP"))
        return scratch_up(view, term, size_bytes);
    return quern_view_up(view, term);
}

/* -------------------------------------------------------------------------------- rows that change */

/* Gives `version` to the chunk and to the selected rows of the view, which a loop writes. The version of the
 * chunk never decreases, because rows of the chunk may already have later versions. */
void quern__view_note_rows(const quern_view *view, const quern_view_column *column, uint64_t version)
{
    quern__version_raise(&view->versions[column->version_index], version);
    const uint32_t offset = view->row_offsets[column->version_index];
    if (offset == QUERN__NO_LANE) return;
    uint64_t *lane = view->row_versions + offset, *versions = lane + view->first_row;
    quern_row_range run = {0};
    while (quern_view_next_range(view, &run)) {
        for (uint32_t i = run.first; i < run.first + run.count; i++)
            versions[i] = version;
        quern__row_groups_raise(lane, view->first_row + run.first, run.count, version);
    }
}

void *quern__view_rows_checked(const quern_view *view, uint32_t term, size_t size_bytes,
                               const char *type_name)
{
    if (!check_type(view, term, size_bytes, type_name, "QUERN_COLUMN_ROWS"))
        return quern__scratch_column(view, term, size_bytes);
    return quern_view_write_rows(view, term);
}

bool quern__view_mark_row(const quern_view *view, uint32_t term, uint32_t row)
{
    static const char function[] = "quern_view_mark_row";
    if (!check_row(view, term, row, function)) return false;
    if (view->columns[term].access != QUERN_ACCESS_WRITE) {
        report_access(view, term, QUERN_ACCESS_WRITE, function);
        return false;
    }
    return refuse_component(view, term, function, "mark a row as changed in", lacking);
}
