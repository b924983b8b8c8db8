/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_ARCHIVE_ARCHIVE_INTERNAL_H
#define QUERN_CORE_ARCHIVE_ARCHIVE_INTERNAL_H

/* The file format of archives, byte by byte. All numbers are little-endian.
 *
 *   archive:  | head | block | block | ... | last block |
 *   block:    | block head | sections, optionally compressed |        with a checksum
 *   section:  | kind, bytes | payload | 0 to 7 bytes of padding |     never divided between blocks
 *
 * An archive contains these sections, in this order. The second column is their number; n is 0 or more.
 *
 *   WORLD      1     numbers of slots and rows; the first generation; archetype removal state
 *   TYPE       n     a component: name, size, fields and role. Types are numbered from 0
 *   RESOURCE   n     name, size and fields of a resource; its VALUE sections follow
 *   VALUE      n     consecutive bytes of the resource's value
 *   LINKS      n     targets of one relation with their sources, in order, as slots
 *   ARCHETYPE  n     a set of types, the layout and the row count; its ROWS sections follow
 *   ROWS       n     entity handles | column | column | ... | row bits
 *   FREE       n     free slots with their next use count, in the order in which the world reuses them
 *   RETIRED    n     slots that are never reused
 *   OUTSIDE    n     ids that the program gave to entities outside of a list
 *   NAMES      n     slots with their names
 *   RUN        n     consecutive bytes of the state of schedules (archived_run.c)
 *   END        1
 *
 * An archive describes a complete world. Each slot below the slot count is in exactly one row, or free,
 * or retired. Every target is in a row, and levels follow from targets. An archive of selected entities
 * is a small world in which these entities have the slots 0, 1, 2 ... and no slot is free; its handles are
 * converted while saving. An archive of a whole world has the handles of that world, so columns are
 * written without conversion. The WORLD section contains the first generation and the world tag, which a
 * reader needs to interpret the handles.
 *
 * Links precede rows, because a reader compares the targets in rows with the links.
 *
 * A *message* of a session is the archive of a list without the types that earlier messages of the session had.
 * Types are numbered through all messages. The head has the number of the message, and a checksum of all messages
 * before it: a reader finds that a message is missing, was read before, or belongs to another session. The first
 * messages of two sessions may be equal, as long as the sessions describe the same types.
 *
 * A handle of an entity outside of the list refers to its id: the handle has the use count
 * QUERN__OUTSIDE_USE_COUNT, which no entity of a list has, and its index is the position of the id in the OUTSIDE
 * sections. Without a callback for ids, such handles are null. A target outside of the list is in LINKS sections only,
 * as the slot count plus the position of its id; rows and levels are as if the source had no such target. */

#include "core/base/base_internal.h"
#include "core/base/bytes.h"
#include "core/base/containers.h"
#include "core/names/name_internal.h"
#include "core/relations/relation_internal.h"
#include "core/storage/conversion.h"
#include "core/storage/list_values.h"
#include "core/storage/type_internal.h"
#include "core/world/world_internal.h"

#include <quern/archive.h>

#define QUERN__ARCHIVE_MAGIC "QUERNARC"
enum {
    QUERN__ARCHIVE_VERSION = 3,
    QUERN__ARCHIVE_BLOCK_MARK = 0x4B4C4251,  /* "QBLK" */
    QUERN__ARCHIVE_BLOCK_BYTES = 128 * 1024, /* maximum size of all sections of a block */
    QUERN__SECTION_BYTES = 64 * 1024,        /* maximum size of the payload of a section */
    QUERN__SECTION_ALIGNMENT_BYTES = 8
};

#define QUERN__ARCHIVE_IS_NATIVE (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__)

typedef struct quern__archive_head {
    char magic[8];
    uint32_t version;
    uint32_t
        message_number; /* of a message of a session: from 1, and after UINT32_MAX again 1; otherwise 0 */
    uint64_t
        previous_checksum; /* quern__archive_writer.checksum of the message before it; 0 if there is none */
    uint64_t checksum;     /* of the preceding bytes of the head */
} quern__archive_head;

/* The messages of a session that were written or read. */
typedef struct quern__archive_position {
    uint32_t last_number; /* of a message; 0 if there was none */
    uint64_t checksum;    /* of all messages */
} quern__archive_position;

static inline uint32_t quern__archive_next_number(const quern__archive_position *position)
{
    return position->last_number % UINT32_MAX + 1;
}

typedef enum quern__archive_block_flag {
    QUERN__ARCHIVE_BLOCK_IS_LAST = 1,
    QUERN__ARCHIVE_BLOCK_IS_COMPRESSED = 2 /* compressed by zstd */
} quern__archive_block_flag;

typedef struct quern__archive_block_head {
    uint32_t mark;
    uint32_t number;         /* number of the block in the archive, from 0 */
    uint32_t stored_bytes;   /* size of the stored sections in the archive */
    uint32_t sections_bytes; /* differs from stored_bytes only in a compressed block */
    uint32_t flags;
    uint32_t zero;
    uint64_t checksum; /* of the preceding bytes of the block head, then of the stored sections */
} quern__archive_block_head;

typedef enum quern__section_kind {
    QUERN__SECTION_WORLD = 1,
    QUERN__SECTION_TYPE,
    QUERN__SECTION_RESOURCE,
    QUERN__SECTION_VALUE,
    QUERN__SECTION_LINKS,
    QUERN__SECTION_ARCHETYPE,
    QUERN__SECTION_ROWS,
    QUERN__SECTION_FREE,
    QUERN__SECTION_RETIRED,
    QUERN__SECTION_NAMES,
    QUERN__SECTION_RUN,
    QUERN__SECTION_OUTSIDE,
    QUERN__SECTION_END,
    /* Follows a ROWS section, or the last VALUE section of a resource, of a type with lists, whose bytes are zero there. The
     * payloads of consecutive sections together are the elements of all lists, in the form of list_values.h: column by
     * column, and in each row field by field. Readers that do not know the section reject it. */
    QUERN__SECTION_LISTS
} quern__section_kind;

typedef struct quern__section_head {
    uint32_t kind;
    uint32_t bytes; /* size of the payload, without padding */
} quern__section_head;

typedef struct quern__world_section {
    uint32_t first_handle_high;
    uint32_t slot_count;
    uint32_t row_count;
    uint32_t free_count;
    uint32_t retired_count;
    uint32_t
        next_visit; /* next archetype that the world checks for removal: see core/entities/world_life.c */
    uint64_t visit_count;
} quern__world_section;

/* How the world uses a component. */
typedef enum quern__archived_role {
    QUERN__ROLE_VALUE,              /* plain component */
    QUERN__ROLE_RELATION,           /* relation; the types of its levels, if any, follow later */
    QUERN__ROLE_LEVEL,              /* tag of a level of a relation with a smaller number */
    QUERN__ROLE_DISABLED,           /* built-in tag of disabled entities */
    QUERN__ROLE_DISABLED_BY_PARENT, /* hidden tag of entities disabled through their parent */
    QUERN__ROLE_COUNT
} quern__archived_role;

/* Properties of a type that depend on its role. The other bits are column flags: archive_bit of
 * QUERN__COLUMN_FLAGS. */
typedef enum quern__archived_flag {
    QUERN__ARCHIVED_HAS_LEVELS = 2,
    QUERN__ARCHIVED_IS_ORDERED = 4,
    QUERN__ARCHIVED_HAS_HOOKS =
        8, /* role VALUE: the values own resources, so the type occurs only in archetypes without rows */
    /* role RELATION: sources may have several targets. The type is a tag, which a row has if and only if LINKS sections
     * have it as a source. Readers that do not know the flag reject a relation of size 0 */
    QUERN__ARCHIVED_IS_MANY = 16
} quern__archived_flag;

typedef struct quern__type_section {
    uint32_t size_bytes;
    uint32_t alignment_bytes;
    uint32_t role;
    uint32_t flags;
    uint32_t relation; /* type number of the relation; only for role LEVEL */
    uint32_t level;    /* level of the tag; only for role LEVEL */
    uint32_t policy;   /* quern_target_policy; only for role RELATION */
    uint32_t field_count;
    /* the schema follows, in the form quern__archive_schema */
} quern__type_section;

enum { QUERN__ARCHIVE_NAME_LENGTH_BYTES = 1 };

static const quern__schema_form quern__archive_schema = {.name_length_bytes =
                                                             QUERN__ARCHIVE_NAME_LENGTH_BYTES};

typedef struct quern__archetype_section {
    uint64_t empty_since;
    uint32_t layout_index; /* at least quern__archived_least_layout_index */
    uint32_t row_count;
    uint32_t type_count;
    uint32_t zero;
    /* type_count type numbers of 32 bits follow */
} quern__archetype_section;

typedef struct quern__rows_section {
    uint32_t row_count;
    uint32_t zero;
    /* The payload continues with the entity handles, then with one column for each type that has a size.
     * Row bits follow, for each column flag with a bit column (QUERN__COLUMN_FLAGS) and each type with
     * that flag: a 64-bit count of the rows with a set bit and, unless the count is 0, one bit for
     * each row in 64-bit words. */
} quern__rows_section;

typedef struct quern__links_section {
    uint32_t relation; /* type number of the relation */
    uint32_t zero;
    /* Repeated up to the end of the payload: slot of the target, number of its sources, their slots. The order of the
     * sources is that of siblings; if sources may have several targets, it has no meaning. A slot of the slot count or
     * more is a target outside of the list. */
} quern__links_section;

typedef struct quern__free_section {
    uint32_t slot;
    uint32_t use_count; /* use count of the next entity in the slot: 1 for the first entity */
} quern__free_section;

enum { QUERN__LIST_USE_COUNT = 1, QUERN__OUTSIDE_USE_COUNT = 2 }; /* in handles of the archive of a list */

/* The payload of a NAMES section repeats up to its end: slot (32 bits), then name with a length of one
 * byte. */

/* Returns the least layout_index that an archetype in an archive can have. count_before is the number of
 * preceding archetypes with components. The archetype without components is the first of every world and
 * has index 0. */
static inline uint32_t quern__archived_least_layout_index(uint32_t type_count, uint32_t count_before)
{
    return type_count > 0 ? count_before + 1 : 0;
}

/* Returns the size in bytes of one bit column in a ROWS section. */
static inline size_t quern__archived_row_bits_bytes(uint32_t row_count)
{
    return ((size_t)row_count + 63) / 64 * sizeof(uint64_t);
}

/* The checksum of archives. It detects accidental damage, but not forgery. It is part of the file
 * format, so it must not change.
 *
 * Eight lanes process the words of the input in turn. Each step of a lane (xor, multiplication by an odd
 * number, rotation) is invertible, and so is the combination of the lanes. Therefore inputs that differ
 * in only one word always have different checksums; other inputs collide with a probability of 2^-64. A
 * lane waits for its last multiplication; eight lanes are enough to keep the multiplier busy during that
 * time. */

uint64_t quern__checksum(uint64_t seed, const void *bytes, size_t count);

/* Writes the sections of an archive to a sink in blocks, and reads the blocks from a source.
 *
 * Code that writes sections need not check for errors of the sink: quern__archive_writer_finish reports
 * the first one. Reading checks all blocks before it returns the first section. It allocates memory only
 * for blocks that exist in the source, so a forged size cannot cause a large allocation. */

/* ----------------------------------------------------------------------------------------- writing */

typedef struct quern__archive_writer {
    quern__sink_writer sink;
    quern_allocator allocator;
    quern__byte_writer block; /* in memory of fixed size: head of the block, then its sections */
    size_t section_at;        /* offset of the open section in the block */
    char *compressed;         /* memory for compressed blocks; NULL: blocks are not compressed */
    uint32_t number;
    bool has_head; /* whether the head of the archive has reached the sink */
    quern__archive_head head;
    uint64_t checksum; /* of the checksums of the head and of all blocks so far */
} quern__archive_writer;

/* Whether the library was built with zstd, so that it can write and read compressed blocks. */
bool quern__archive_can_compress(void);

/* Allocates the memory of a writer. Errors: OUT_OF_MEMORY; UNAVAILABLE (compression without zstd, or a big-endian
 * machine). */
quern_result quern__archive_writer_init(quern__archive_writer *writer, const quern_allocator *allocator,
                                        bool compresses);
void quern__archive_writer_release(quern__archive_writer *writer);

/* Starts an archive. Nothing reaches the sink before a block is full, or the archive is finished. A writer can write
 * several archives, one after another; an unfinished one is abandoned. previous: the messages before this one; NULL for
 * an archive that is no message. */
void quern__archive_writer_start(quern__archive_writer *writer, quern_sink sink,
                                 const quern__archive_position *previous);

/* Begins a section with a payload of at most max_bytes bytes (at most QUERN__SECTION_BYTES). Returns the
 * writer for the payload, valid until the section is ended. */
quern__byte_writer *quern__section_begin(quern__archive_writer *writer, quern__section_kind kind,
                                         size_t max_bytes);

void quern__section_end(quern__archive_writer *writer);

/* Returns the current size of the open section's payload in bytes. */
static inline size_t quern__section_bytes(const quern__archive_writer *writer)
{
    return writer->block.count - writer->section_at - sizeof(quern__section_head);
}

/* Writes the last block. Errors: IO (the sink failed). */
quern_result quern__archive_writer_finish(quern__archive_writer *writer);

/* ----------------------------------------------------------------------------------------- reading */

typedef struct quern__archive_block {
    const char *sections;
    char *owned; /* memory of `sections`; NULL: it belongs to the source */
    uint32_t bytes;
} quern__archive_block;

typedef struct quern__archive_blocks {
    quern__archive_head head;
    uint64_t checksum; /* of the checksums of the head and of all blocks */
    QUERN__ARRAY(quern__archive_block) list;
} quern__archive_blocks;

/* Reads and checks all blocks of an archive. Errors: BAD_ARCHIVE, OUT_OF_MEMORY, UNAVAILABLE (compressed
 * archive without zstd, or a big-endian machine); then `blocks` is empty. */
quern_result quern__archive_blocks_read(quern__archive_blocks *blocks, quern_source source,
                                        const quern_allocator *allocator);
void quern__archive_blocks_release(quern__archive_blocks *blocks, const quern_allocator *allocator);

/* Iterates over the sections of all blocks. Initialise it with `blocks` alone. */
typedef struct quern__section_iterator {
    const quern__archive_blocks *blocks;
    uint32_t next_block;
    quern__byte_reader block; /* unread rest of the current block */
} quern__section_iterator;

typedef struct quern__archive_section {
    quern__section_kind kind;
    quern__byte_reader payload;
} quern__archive_section;

/* Stores the next section. Returns false if there is none. */
bool quern__section_next(quern__section_iterator *walk, quern__archive_section *out_section);

/* --------------------------------------------------------------------------------------- images */

/* An *image* is an archive that has been read and checked completely. It contains everything except the
 * values of components, which remain in the blocks.
 *
 * Each section is checked when it is parsed (image.c, image_types.c). Consistency between sections is checked at the end
 * (check_consistency). So code that uses an image needs no
 * further checks. Memory is allocated in proportion to bytes that exist in the archive, never for a
 * count alone. */

/* A component type of the archive and its counterpart in the world. */
typedef struct quern__archived_type {
    quern__type type;
    quern__archived_role role;
    uint32_t flags;
    uint32_t relation_number; /* role LEVEL: type number of the relation */
    uint32_t level;
    quern_target_policy policy;
    uint32_t component_index;  /* in the world; QUERN__NO_COMPONENT: values of the type are not loaded */
    quern__relation *relation; /* relation of the world that the type is loaded as; NULL: none */
    const quern_migration *migration;
    quern__conversion conversion;
    /* Role RELATION; NULL: the archive has no links of it, or they are not loaded. */
    struct quern__archived_links *links;
} quern__archived_type;

/* The links of one relation, by slots of the archive, or its edges if sources may have several targets. */
typedef struct quern__archived_links {
    quern__relation *relation; /* relation of the world */
    /* By slot; QUERN__SLOT_NONE: no target; from the slot count on: slot count + index in `outside` of the image. NULL:
     * the relation has edges. */
    uint32_t *targets;
    uint8_t *levels; /* by slot: level that the archetype of the row says; of edges: QUERN__EDGES_... */
    uint32_t link_count, source_count; /* number of sources in LINKS sections, and of rows with a target */
    uint32_t outside_count;            /* number of sources that have targets outside of the list */
    /* The edges: source << 32 | target as keys; ascending once the image is checked. */
    QUERN__ARRAY(quern__sort_item) edges, scratch;
    /* Edges to entities outside of the list: source << 32 | index in `outside` of the image. Loading replaces those that
     * it adds, from the first one on, by slots of the world. */
    QUERN__ARRAY(uint64_t) outside_edges;
    uint32_t outside_added_count;
} quern__archived_links;

/* What `levels` says of the source of edges. */
enum {
    QUERN__EDGES_HAVE_TAG = 1,    /* the row has the tag of the relation */
    QUERN__EDGES_LEAD_OUTSIDE = 2 /* the source has a target outside of the list */
};

typedef struct quern__archived_archetype {
    uint32_t first_type, type_count; /* range in type_numbers */
    uint32_t row_count;
    uint32_t parsed_row_count; /* rows of the ROWS sections parsed so far */
    uint64_t empty_since;
    uint32_t layout_index;
    uint32_t values_bytes;     /* bytes of one row: handle and values */
    uint32_t bit_column_count; /* number of bit columns in its ROWS sections */
    /* In the world, ascending; including extra components of the load. */
    uint16_t component_indices[QUERN_MAX_ENTITY_COMPONENTS + QUERN_MAX_EXTRA_COMPONENTS + 1];
    uint32_t component_count;
    quern__archetype *archetype; /* archetype of the world, set when rows are reserved */
} quern__archived_archetype;

/* A resource of the archive and its counterpart in the world. */
typedef struct quern__archived_resource {
    quern__type type;
    quern__resource *resource; /* resource of the world; NULL: the value is not loaded */
    quern__conversion conversion;
    char *value;          /* memory of type.size_bytes bytes; NULL unless `resource` is set */
    uint32_t value_bytes; /* bytes of the VALUE sections parsed so far */
    bool has_lists;       /* the lists in the value were read, and belong to it */
} quern__archived_resource;

typedef QUERN__ARRAY(quern__archived_type *) quern__archived_types;

typedef struct quern__image {
    const quern_load_def *def;
    quern_load_report *report;
    quern_world *world;
    quern_allocator allocator; /* of everything of the image */
    quern__archive_blocks blocks;
    quern__world_section head;
    bool has_end_section; /* whether the END section was parsed */
    bool keeps_handles;
    /* The messages of a session that were read; `types` has their types at first. A loaded message is added. NULL: an
     * archive is loaded that is no message. */
    quern__archive_position *session;
    uint32_t extra_count; /* number of extra components in the definition */
    quern__section_kind last_kind;
    quern__archived_types types;
    QUERN__ARRAY(quern__archived_resource *) resources;
    QUERN__ARRAY(quern__archived_archetype) archetypes;
    uint32_t archetype_count_with_types; /* number of archetypes parsed so far that have types */
    QUERN__ARRAY(uint32_t) type_numbers;
    QUERN__ARRAY(uint32_t) free_slots; /* in the order in which the world reuses them */
    /* By slot: use count of the current or next entity; undefined while the state is UNKNOWN. */
    QUERN__ARRAY(uint32_t) use_counts;
    QUERN__ARRAY(uint8_t) states; /* by slot: quern__archived_slot_state */
    uint32_t retired_count;
    quern__names names; /* by slot of the archive */
    /* Names of entities with a parent outside of the list, by slot of the archive, and by slot of the parent in the
     * world. */
    quern__names outside_names;
    /* Entities of the world with the ids of the archive; null if not alive. Empty if the definition has no callback. */
    QUERN__ARRAY(quern_entity) outside;
    /* The lists of the archive's rows, in the order in which LISTS sections have them; empty where they were loaded. */
    QUERN__ARRAY(quern_list) lists;
    uint32_t
        lists_row_count; /* rows of the last ROWS section, of which the lists were not read yet; 0: none */
    bool last_was_lists; /* the last section was LISTS, which last_kind leaves out */
    quern__byte_writer
        lists_bytes; /* payloads of the LISTS sections since the last section of another kind */
    bool reads_run;  /* whether the bytes of RUN sections are collected in `run` */
    quern__byte_writer run;
} quern__image;

typedef enum quern__archived_slot_state {
    QUERN__STATE_UNKNOWN,
    QUERN__STATE_ALIVE,
    QUERN__STATE_FREE,
    QUERN__STATE_RETIRED
} quern__archived_slot_state;

/* Reads and checks an archive. The world does not change, except that built-in components may be
 * registered. Errors: as quern_world_load; the caller releases the image in any case. */
quern_result quern__image_read(quern__image *image, quern_source source);
/* quern__image_parse_* parses and checks one section. check_consistency compares all sections with each
 * other. */
quern_result quern__image_parse_type(quern__image *image, quern__byte_reader *payload);
quern_result quern__image_parse_resource(quern__image *image, quern__byte_reader *payload);
quern_result quern__image_parse_value(quern__image *image, quern__byte_reader *payload);

/* Fails with BAD_ARCHIVE. `what` says which rule of the format the archive violates. */
quern_result quern__image_fail(const char *what);

quern_result quern__image_fail_memory(void);

static inline const quern__archived_type *
quern__image_type(const quern__image *image, const quern__archived_archetype *archived, uint32_t i)
{
    return image->types.items[image->type_numbers.items[archived->first_type + i]];
}

/* Returns the number of lists in a value. */
static inline uint32_t quern__archived_list_count(const quern__archived_type *type)
{
    return type->type.lists != NULL ? type->type.lists->count : 0;
}

/* Returns the use count of a handle in the archive (1 for the first entity in its slot), or 0 if the
 * handle is not from the saved world. */
static inline uint32_t quern__image_use_count(const quern__image *image, quern_entity entity)
{
    if (quern_entity_world_tag(entity) != image->head.first_handle_high >> 24) return 0;
    return quern__generation_use_count(image->head.first_handle_high, quern_entity_generation(entity));
}

/* Returns the entity of the world for a target outside of the list; null: there is none. target: slot count + index. */
static inline quern_entity quern__image_outside(const quern__image *image, uint32_t target)
{
    const uint32_t number = target - image->head.slot_count;
    return number < image->outside.count ? image->outside.items[number] : (quern_entity){0};
}

static inline bool quern__image_is_alive(const quern__image *image, uint32_t slot)
{
    return slot < image->head.slot_count && image->states.items[slot] == QUERN__STATE_ALIVE;
}

/* Saving and loading a world with the state of its schedules: everything that the next frame depends on, apart
 * from the world's contents. To this room the state is a sequence of bytes in RUN sections. The caller writes
 * them, and restores them by functions that it passes. */

/* Saves a world. run: state of its schedules; empty if none is saved. Errors: as quern_world_save, except
 * NULL_ARGUMENT and WORLD_LOCKED. Precondition: the world is not locked. */
quern_result quern__world_save(quern_world *world, quern_sink sink, const quern_save_def *def,
                               const quern__byte_writer *run);

/* Restores the state of schedules. All functions get `argument` and the image, of which image->run holds the
 * bytes. They are called only if the archive has a state, and its types and their order are those of the world. */
typedef struct quern__run_restorer {
    void *argument;
    /* Checks the bytes and reserves memory, as the last step that may fail. Then nothing is reserved. */
    quern_result (*prepare)(void *argument, const quern__image *image);
    /* Restores the state, after everything else was loaded. Cannot fail. `remap` maps handles of the archive. */
    void (*restore)(void *argument, const quern__image *image, quern__remap_function *remap,
                    void *remap_argument);
} quern__run_restorer;

/* Loads an archive. restorer: NULL to load without the state of schedules. Errors: as quern_world_load, except
 * NULL_ARGUMENT and WORLD_LOCKED, and the errors of the restorer. Precondition: the world is not locked. */
quern_result quern__world_load(quern_world *world, quern_source source, const quern_load_def *def,
                               const quern__run_restorer *restorer, quern_load_report *report);

#endif
