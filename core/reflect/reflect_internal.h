/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_REFLECT_REFLECT_INTERNAL_H
#define QUERN_CORE_REFLECT_REFLECT_INTERNAL_H

/* Conversion between binary floats and decimal digits, in integers and independent of the locale. Both functions give
 * the exact result or none: they fail for the few numbers that their precision does not decide. The caller then uses the
 * C library. */

#include "core/base/base_internal.h"
#include "core/base/text.h"
#include "core/storage/storage.h"

#include <quern/reflect.h>
#include <quern/type.h>
#include <quern/world.h>

/* The number digits * 10^exponent. */
typedef struct quern__decimal {
    uint64_t digits;
    int32_t exponent;
    uint32_t
        digit_count; /* of a printed float: the precision, which counts zeros at the end of the digits */
} quern__decimal;

/* Finds the decimal of the fewest digits, but at least 6 (F32) or 15 (F64), from which reading restores the float. Of the
 * decimals with as many digits, it is the one nearest to the float; of two, the one with an even last digit.
 * type: F32 or F64. bits: those of a finite float that is not 0; the sign is ignored. */
bool quern__decimal_of_float(quern_field_type type, uint64_t bits, quern__decimal *out_decimal);

/* Finds the float nearest to a decimal; of two, the one with an even significand. decimal: digits are not 0. type: F32 or
 * F64. out_bits: those of a positive finite float. */
bool quern__decimal_to_float(quern_field_type type, const quern__decimal *decimal, uint64_t *out_bits);

/* Conversion of numbers to text and back, independent of the locale. Floats that the fast conversion does not decide are converted
 * by the C library: exactly, but with the decimal point of the locale, which is replaced here. Values are passed as bits,
 * so that the payload of a NaN is kept. */

enum { QUERN__NUMBER_BYTES = 48 };

typedef enum quern__number_state {
    QUERN__NUMBER_OK,
    QUERN__NUMBER_MALFORMED,   /* the text is no number */
    QUERN__NUMBER_OUT_OF_RANGE /* the number is outside of the range of the type */
} quern__number_state;

/* Writes a number as text. type: an integer type, F32 or F64. bits: those of the value; smaller integers are extended to
 * 64 bits. Returns the length of the text, which ends with a 0. */
size_t quern__number_write(quern_field_type type, uint64_t bits, char text[QUERN__NUMBER_BYTES]);

/* Parses a number of the type. `text` need not be zero-terminated. */
quern__number_state quern__number_read(quern_field_type type, const char *text, size_t bytes,
                                       uint64_t *out_bits);

/* Parses digits of base 10 or 16, without sign or prefix. The result is out of range if the number exceeds `limit`. */
quern__number_state quern__digits_read(const char *text, size_t bytes, uint32_t base, uint64_t limit,
                                       uint64_t *out_number);

static inline bool quern__is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* Paths of fields: "velocity.x", "points[2]". They name a field of a type, one element of an array or of a list, or a
 * field of a struct in a list: "items[3].count". */

typedef struct quern__path {
    const quern_type_info *type;
    const quern_field *field;
    const char *text; /* the path, for messages */
    uint32_t first;   /* index of the first element */
    uint32_t count;   /* number of elements: 1, or all elements of an array */
    bool is_array;    /* whether the path names a whole array; texts of its value are in brackets */
    /* The list into which the path leads; NULL: into none. Then `field` is of an element. */
    const quern_field *list;
    uint32_t list_index; /* of the element; the list of a value may be shorter */
} quern__path;

/* Finds the field that a path names. Errors: INVALID_ARGUMENT, with a message that names the valid fields or
 * elements. */
quern_result quern__path_find(const quern_type_info *type, const char *text, quern__path *out_path);

/* Conversion of entity handles to text and back. quern/reflect.h describes the text forms. */

/* Prints a handle. by_path: prints the path of names ("/tower/gun") if the entity has one. */
void quern__handle_print(const quern_world *world, quern_entity entity, bool by_path,
                         quern__printer *printer);

/* Finds the slot at a path of names that begins with '/'. Sets *out_slot to QUERN__SLOT_NONE if bytes is 0. Returns false
 * if no entity has the path. `text` need not be zero-terminated. */
bool quern__handle_find_path(const quern__storage *storage, const char *text, size_t bytes,
                             uint32_t *out_slot);

/* Parses a handle. `text` need not be zero-terminated. by_path: also accepts a path of names, which must lead to an
 * entity. Returns false, with *out_entity unchanged, if the text is no handle. */
bool quern__handle_read(const quern_world *world, const char *text, size_t bytes, bool by_path,
                        quern_entity *out_entity);

/* Conversion of fields of values to text and back. */

/* Parses a text for the field or element of the path, and stores the result in the value. An error leaves the value
 * unchanged. value: NULL to only check the text. Errors: INVALID_ARGUMENT, with a message that describes valid texts. */
quern_result quern__value_set_text(const quern_world *world, const quern__path *path, void *value,
                                   const char *text);

/* Prints the field or element of the path to a sink. function: name of the public call, for the message. Errors: IO. */
quern_result quern__value_print(const quern_world *world, const quern__path *path, const void *value,
                                quern_sink sink, const char *function);

#endif
