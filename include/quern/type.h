/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_TYPE_H
#define QUERN_TYPE_H

/** @file
 * Descriptions of C types for the library: sizes, names, fields.
 *
 *     typedef struct Position {
 *         float x, y;
 *     } Position;
 *
 *     quern_component_register(world,
 *         &(quern_component_def){QUERN_TYPE(Position), .fields = QUERN_FIELDS(Position, x, y)}, &position);
 *
 * component.h has shorter forms of this, which also work in C++17. */

#include <quern/base.h>
#include <quern/id.h>
#include <quern/list.h>

#include <limits.h>

#ifdef __cplusplus
#include <quern/type_name.hpp>

#include <initializer_list>
#include <type_traits>
#include <utility>

namespace quern {
class string;
template <typename T> class list;
} // namespace quern

extern "C" {
#endif

#define QUERN_MAX_FIELDS       64  /**< Maximum number of described fields per type. */
#define QUERN_MAX_NAMED_VALUES 256 /**< Maximum number of named values of a field. */

/** Type of a described field. */
typedef enum quern_field_type {
    QUERN_FIELD_BOOL = 1, /**< bool */
    QUERN_FIELD_I8,       /**< int8_t */
    QUERN_FIELD_U8,       /**< uint8_t */
    QUERN_FIELD_I16,      /**< int16_t */
    QUERN_FIELD_U16,      /**< uint16_t */
    QUERN_FIELD_I32,      /**< int32_t */
    QUERN_FIELD_U32,      /**< uint32_t */
    QUERN_FIELD_I64,      /**< int64_t */
    QUERN_FIELD_U64,      /**< uint64_t */
    QUERN_FIELD_F32,      /**< float */
    QUERN_FIELD_F64,      /**< double */
    QUERN_FIELD_ENTITY,   /**< quern_entity */
    QUERN_FIELD_TEXT, /**< char[count]: UTF-8 text, which ends at the first 0 or at the end of the array */
    QUERN_FIELD_STRING, /**< quern_string: UTF-8 text of any length */
    QUERN_FIELD_LIST    /**< quern_list: elements of one type; see quern_field.element */
} quern_field_type;

/** Description of the elements of a list (QUERN_FIELD_LIST). */
typedef struct quern_element {
    /** Type of the elements: a number, QUERN_FIELD_ENTITY or QUERN_FIELD_STRING; 0: structs with the fields below. */
    quern_field_type type;
    uint32_t size_bytes; /**< Size of a struct, 1 to QUERN_MAX_COMPONENT_BYTES. Ignored if type is set. */
    uint32_t
        alignment_bytes; /**< Alignment of a struct, up to QUERN_LIST_ALIGNMENT. Ignored if type is set. */
    /** Described fields of a struct: numbers, entities, arrays of these, and QUERN_FIELD_TEXT. At least one. */
    const struct quern_field *fields;
    uint32_t field_count; /**< Number of these. */
} quern_element;

/** A named value of a field: an enumerator. */
typedef struct quern_named_value {
    /** Name of 1 to QUERN_MAX_NAME_BYTES bytes. It begins with a letter or '_', does not end with a space,
     * and contains no comma, bracket or control character. */
    const char *name;
    int64_t value; /**< The value. It must fit the field; for a U64 field, the same bits. */
} quern_named_value;

/** Description of a field, or of a fixed array, of a component, resource or event.
 *
 * Name, type, offset, count and element are the layout, and are compared when a type is registered again. The other
 * members are for tools and files (<quern/reflect.h>), and are those of the first registration. */
typedef struct quern_field {
    /** Name of 1 to QUERN_MAX_NAME_BYTES bytes. A field of a nested struct is written with dots, `place.x`;
     * an element of an array of structs with brackets, `slots[2].count`. */
    const char *name;
    quern_field_type type; /**< Type of the field or of an array's element. Required. */
    uint32_t offset_bytes; /**< Offset from the start of the value. */
    uint32_t count;        /**< Number of array elements; 0 means 1. */
    /** Named values of an integer field that is an enum. The list ends with an element with the name NULL,
     * after at most QUERN_MAX_NAMED_VALUES elements. NULL: the values have no names. */
    const quern_named_value *values QUERN__ZERO;
    /** Unit, such as "m/s", up to QUERN_MAX_NAME_BYTES bytes; NULL for none. */
    const char *unit QUERN__ZERO;
    /** Least number that may be set from text or JSON; compared as double. If minimum and maximum are both
     * 0, there is no limit. */
    double minimum QUERN__ZERO;
    double maximum QUERN__ZERO; /**< Greatest number that may be set from text or JSON; see minimum. */
    bool is_hidden QUERN__ZERO; /**< Whether tools should hide the field. */
    /** Whether setting the field from text fails. Use it for values that must agree with other fields. */
    bool is_read_only QUERN__ZERO;
    /** Elements of a LIST; NULL for all other types. The structs in all lists of a type together have at most
     * QUERN_MAX_FIELDS fields. */
    const quern_element *element QUERN__ZERO;
} quern_field;

#ifdef __cplusplus
}
#endif

/** Initialises name, size_bytes, alignment_bytes and type_name in a definition. The name is that of the C
 * type. An empty struct is a tag. In C++ the type must be trivially copyable, and the definition needs
 * C++20. */
#ifdef __cplusplus
#define QUERN_TYPE(...)                                                          \
    .name = #__VA_ARGS__, .size_bytes = quern__type_of<__VA_ARGS__>::size_bytes, \
    .alignment_bytes = quern__type_of<__VA_ARGS__>::alignment_bytes,             \
    .type_name = quern::detail::type_name_of<__VA_ARGS__>()
#else
#define QUERN_TYPE(...)                                                                                \
    .name = #__VA_ARGS__, .size_bytes = sizeof(__VA_ARGS__), .alignment_bytes = _Alignof(__VA_ARGS__), \
    .type_name = #__VA_ARGS__
#endif

/** Initialises an array of quern_field with up to QUERN_MAX_FIELDS fields of a struct, given by their
 * names.
 *
 * A field is a bool, integer, enum, float, double, quern_entity or quern_string, or a fixed array of these; an array
 * of char is an array of small integers. In C++ it may also be a quern::string or a quern::list; in C, describe a list
 * by QUERN_LIST_FIELD in a list of single fields. List the fields of a nested struct one by one (`place.x`), those of each
 * element of an array of structs (`slots[0].count`), and the rows of an array with two dimensions (`grid[0]`). Any
 * other type, such as a pointer, does not compile. */
#define QUERN_FIELDS(type, ...)                                                                 \
    {                                                                                           \
        QUERN__JOIN(QUERN__FIELDS_, QUERN__COUNT(__VA_ARGS__))(QUERN__FIELD, type, __VA_ARGS__) \
    }

/** Initialises one quern_field, for lists in which some fields have more than a name:
 *
 *     .fields = {QUERN_FIELD(Agent, place.x), QUERN_TEXT(Agent, title),
 *                QUERN_FIELD_WITH(Agent, speed, .unit = "m/s", .maximum = 10)} */
#define QUERN_FIELD(type, field) QUERN__FIELD(type, field)

/** Initialises one quern_field, with further members of quern_field as designated initialisers. In C++ it
 * needs C++20. */
#define QUERN_FIELD_WITH(type, field, ...)       \
    {                                            \
        QUERN__MEMBERS(type, field), __VA_ARGS__ \
    }

/** Initialises one quern_field for an array of char that contains text (QUERN_FIELD_TEXT). */
#define QUERN_TEXT(type, field) QUERN__TEXT(type, field)

/** Initialises one quern_field for a list. The last arguments are the type of its elements and, if they are structs, the
 * fields to describe: `QUERN_LIST_FIELD(Bag, items, Item, kind, count)`, `QUERN_LIST_FIELD(Bag, scores, float)`. Only
 * in C: in C++, QUERN_FIELD describes a quern::list of numbers or strings, and of structs with a QUERN_DESCRIBE. In a
 * function, the description of the elements lives as long as the block in which the macro stands: register the type there. */
#ifndef __cplusplus
#define QUERN_LIST_FIELD(owner, field, ...) QUERN__LIST_FIELD(owner, field, __VA_ARGS__)
#endif

/* ---------------------------------------------------------------------------------------- internal */

#ifdef __cplusplus

template <typename T> struct quern__type_of {
    static_assert(
        std::is_trivially_copyable<T>::value,
        "Quern moves values as bytes: this type is not trivially copyable, so register it by "
        "quern_component_register with hooks, or keep it elsewhere and an index in the component");
    static constexpr uint32_t size_bytes = std::is_empty<T>::value ? 0 : static_cast<uint32_t>(sizeof(T));
    static constexpr uint32_t alignment_bytes = static_cast<uint32_t>(alignof(T));
};

/* The type that a macro asks for, as text: the type may have a name that is an alias. */
#define QUERN__SPELLED(...)                                                                         \
    ([]() -> const char * {                                                                         \
        static constexpr auto quern__joined = quern::detail::join_names<__VA_ARGS__>(#__VA_ARGS__); \
        return quern__joined.data();                                                                \
    }())

/* The elements of a quern::list. */
template <typename T> struct quern__list_of {
    static constexpr bool is_list = false;
};
template <typename T> struct quern__list_of<quern::list<T>> {
    static constexpr bool is_list = true;
    using element = T;
};

template <typename T>
inline constexpr bool quern__is_string =
    std::is_same<T, quern::string>::value || std::is_same<T, quern_string>::value;

/* The description of the structs in a list. quern.hpp defines it by their QUERN_DESCRIBE. A variable, because its address is
 * a constant. */
template <typename T> struct quern__element_of {
    static const quern_element value;
};

template <typename T> constexpr bool quern__is_field()
{
    return std::is_integral<T>::value || std::is_enum<T>::value || std::is_same<T, float>::value ||
           std::is_same<T, double>::value || std::is_same<T, quern_entity>::value || quern__is_string<T> ||
           quern__list_of<T>::is_list;
}

template <typename T> constexpr quern_field_type quern__field_type()
{
    static_assert(!std::is_pointer<T>::value,
                  "QUERN_FIELDS: a pointer is no field: what it points to is not part of the value");
    static_assert(
        quern__is_field<T>(),
        "QUERN_FIELDS: a field is a bool, integer, enum, float, double, quern_entity, quern::string or "
        "quern::list, or a fixed array of these");
    if constexpr (quern__list_of<T>::is_list) return QUERN_FIELD_LIST;
    if constexpr (quern__is_string<T>) return QUERN_FIELD_STRING;
    if constexpr (std::is_enum<T>::value) return quern__field_type<std::underlying_type_t<T>>();
    if (std::is_same<T, bool>::value) return QUERN_FIELD_BOOL;
    if (std::is_same<T, quern_entity>::value) return QUERN_FIELD_ENTITY;
    if (std::is_floating_point<T>::value) return sizeof(T) == 4 ? QUERN_FIELD_F32 : QUERN_FIELD_F64;
    const bool is_signed = std::is_signed<T>::value;
    if (sizeof(T) == 1) return is_signed ? QUERN_FIELD_I8 : QUERN_FIELD_U8;
    if (sizeof(T) == 2) return is_signed ? QUERN_FIELD_I16 : QUERN_FIELD_U16;
    if (sizeof(T) == 4) return is_signed ? QUERN_FIELD_I32 : QUERN_FIELD_U32;
    return is_signed ? QUERN_FIELD_I64 : QUERN_FIELD_U64;
}

template <typename T> struct quern__field_of {
    using element = std::remove_cv_t<std::remove_extent_t<T>>;
    static constexpr quern_field_type type = quern__field_type<element>();
    static constexpr uint32_t count = static_cast<uint32_t>(sizeof(T) / sizeof(element));
    /* Returns the description of a list's elements; NULL for other fields. */
    static constexpr const quern_element *elements()
    {
        if constexpr (quern__list_of<element>::is_list)
            return &quern__element_of<typename quern__list_of<element>::element>::value;
        else
            return nullptr;
    }
};

/* Mistakes in a description of fields. They are counted in a whole list, and not asserted for each field, because compilers
 * repeat all nested macros of an expression with each error. A field with a mistake has no type, and the mistake as its
 * offset. */
enum class quern__field_mistake : uint32_t { none, missing, pointer, type };

/* A field of this type, at this offset: what QUERN__FIND returns. */
template <typename T> struct quern__found_field {
    using type = T;
    uint32_t offset_bytes;
};

template <typename Owner, typename F> constexpr quern__field_mistake quern__mistake_of()
{
    if constexpr (!std::is_invocable<F, Owner *>::value) {
        return quern__field_mistake::missing;
    } else {
        using element =
            std::remove_cv_t<std::remove_extent_t<typename std::invoke_result_t<F, Owner *>::type>>;
        if (std::is_pointer<element>::value) return quern__field_mistake::pointer;
        return quern__is_field<element>() ? quern__field_mistake::none : quern__field_mistake::type;
    }
}

template <typename Owner, typename F> constexpr quern_field quern__marked_field(const char *name, F find)
{
    constexpr auto mistake = quern__mistake_of<Owner, F>();
    if constexpr (mistake == quern__field_mistake::none) {
        using field = quern__field_of<typename std::invoke_result_t<F, Owner *>::type>;
        quern_field found = {name, field::type, find(static_cast<Owner *>(nullptr)).offset_bytes,
                             field::count};
        found.element = field::elements();
        return found;
    } else {
        return {name, quern_field_type{}, static_cast<uint32_t>(mistake), 0};
    }
}

#define QUERN__HAS_NO_FIELD \
    "quern: the type lacks a field that its description lists, or the field is private"
#define QUERN__IS_POINTER "quern: a pointer is no field: what it points to is not part of the value"
#define QUERN__IS_NO_FIELD                                                                        \
    "quern: a field is a bool, integer, enum, float, double or quern_entity, a quern::string or " \
    "quern::list, or a fixed array of these: "                                                    \
    "list the elements of other arrays, and the members of structs, one by one"

/* An element of QUERN_FIELDS, which has no list in which it could be checked. */
template <typename Owner, typename F> constexpr quern_field quern__good_field(const char *name, F find)
{
    constexpr auto mistake = quern__mistake_of<Owner, F>();
    static_assert(mistake != quern__field_mistake::missing, QUERN__HAS_NO_FIELD);
    static_assert(mistake != quern__field_mistake::pointer, QUERN__IS_POINTER);
    static_assert(mistake != quern__field_mistake::type, QUERN__IS_NO_FIELD);
    return quern__marked_field<Owner>(name, find);
}

/* Fields with static storage duration. */
struct quern__field_list {
    const quern_field *first;
    uint32_t count;
};

template <std::size_t count>
constexpr bool quern__has_mistake(const quern_field (&fields)[count], quern__field_mistake mistake)
{
    for (const quern_field &field : fields)
        if (field.type == quern_field_type{} && field.offset_bytes == static_cast<uint32_t>(mistake))
            return true;
    return false;
}

/* A quern__field_list of the fields of a type. */
#define QUERN__FIELD_LIST(owner, ...)                                                             \
    ([]() -> quern__field_list {                                                                  \
        static constexpr quern_field quern__list[] = {QUERN__JOIN(                                \
            QUERN__FIELDS_, QUERN__COUNT(__VA_ARGS__))(QUERN__MARKED_FIELD, owner, __VA_ARGS__)}; \
        constexpr bool quern__has_fields =                                                        \
                           !quern__has_mistake(quern__list, quern__field_mistake::missing),       \
                       quern__has_no_pointers =                                                   \
                           !quern__has_mistake(quern__list, quern__field_mistake::pointer),       \
                       quern__has_field_types =                                                   \
                           !quern__has_mistake(quern__list, quern__field_mistake::type);          \
        static_assert(quern__has_fields, QUERN__HAS_NO_FIELD);                                    \
        static_assert(quern__has_no_pointers, QUERN__IS_POINTER);                                 \
        static_assert(quern__has_field_types, QUERN__IS_NO_FIELD);                                \
        return {quern__list, static_cast<uint32_t>(sizeof quern__list / sizeof *quern__list)};    \
    }())

template <typename T> constexpr uint32_t quern__text_bytes()
{
    using text = std::remove_reference_t<T>;
    static_assert(std::is_same<std::remove_cv_t<std::remove_extent_t<text>>, char>::value,
                  "QUERN_TEXT: a text is an array of char");
    return static_cast<uint32_t>(sizeof(text));
}

/* decltype of an array element is a reference. */
/* clang-format off */
#define QUERN__FIELD_OF(owner, field) \
    quern__field_of<std::remove_reference_t<decltype(std::declval<owner &>().field)>>
/* A lambda that returns the offset and the type of a field. It cannot be called if there is none. */
#define QUERN__FIND(field) \
    [](auto *quern__owner) -> quern__found_field<std::remove_reference_t<decltype(quern__owner->field)>> { \
        return {static_cast<uint32_t>(offsetof(std::remove_pointer_t<decltype(quern__owner)>, field))}; \
    }
#define QUERN__FIELD(owner, field)        quern__good_field<owner>(#field, QUERN__FIND(field))
#define QUERN__MARKED_FIELD(owner, field) quern__marked_field<owner>(#field, QUERN__FIND(field))
#define QUERN__MEMBERS(owner, field) \
    .name = #field, .type = QUERN__FIELD_OF(owner, field)::type, \
    .offset_bytes = static_cast<uint32_t>(offsetof(owner, field)), \
    .count = QUERN__FIELD_OF(owner, field)::count
#define QUERN__TEXT(owner, field) \
    { \
        #field, QUERN_FIELD_TEXT, static_cast<uint32_t>(offsetof(owner, field)), \
            quern__text_bytes<decltype(std::declval<owner &>().field)>() \
    }
/* clang-format on */

#else

/* Compilers name these types in the errors for fields: they do not convert to an enumerator. */
struct quern__a_pointer_is_no_field {
    char nothing;
};
struct quern__a_field_is_a_number_an_entity_or_an_array_with_one_dimension_of_these {
    char nothing;
};

#if CHAR_MIN < 0
#define QUERN__FIELD_CHAR QUERN_FIELD_I8
#else
#define QUERN__FIELD_CHAR QUERN_FIELD_U8
#endif
#if LONG_MAX > 0x7FFFFFFF
#define QUERN__FIELD_LONG  QUERN_FIELD_I64
#define QUERN__FIELD_ULONG QUERN_FIELD_U64
#else
#define QUERN__FIELD_LONG  QUERN_FIELD_I32
#define QUERN__FIELD_ULONG QUERN_FIELD_U32
#endif

/* NOLINTBEGIN(bugprone-macro-parentheses): the arguments are types and declarator parts */
/* clang-format off */
#define QUERN__FIELD_TYPES(pointer) \
    bool pointer: QUERN_FIELD_BOOL, char pointer: QUERN__FIELD_CHAR, \
    signed char pointer: QUERN_FIELD_I8, unsigned char pointer: QUERN_FIELD_U8, \
    short pointer: QUERN_FIELD_I16, unsigned short pointer: QUERN_FIELD_U16, \
    int pointer: QUERN_FIELD_I32, unsigned pointer: QUERN_FIELD_U32, \
    long pointer: QUERN__FIELD_LONG, unsigned long pointer: QUERN__FIELD_ULONG, \
    long long pointer: QUERN_FIELD_I64, unsigned long long pointer: QUERN_FIELD_U64, \
    float pointer: QUERN_FIELD_F32, double pointer: QUERN_FIELD_F64, \
    quern_entity pointer: QUERN_FIELD_ENTITY, quern_string pointer: QUERN_FIELD_STRING
#define QUERN__FIELD_BYTES(pointer) \
    bool pointer: sizeof(bool), char pointer: sizeof(char), \
    signed char pointer: sizeof(signed char), unsigned char pointer: sizeof(unsigned char), \
    short pointer: sizeof(short), unsigned short pointer: sizeof(unsigned short), \
    int pointer: sizeof(int), unsigned pointer: sizeof(unsigned), long pointer: sizeof(long), \
    unsigned long pointer: sizeof(unsigned long), long long pointer: sizeof(long long), \
    unsigned long long pointer: sizeof(unsigned long long), float pointer: sizeof(float), \
    double pointer: sizeof(double), quern_entity pointer: sizeof(quern_entity), \
    quern_string pointer: sizeof(quern_string)
#define QUERN__FIELD_POINTERS(what) \
    bool **: what, char **: what, signed char **: what, unsigned char **: what, short **: what, \
    unsigned short **: what, int **: what, unsigned **: what, long **: what, \
    unsigned long **: what, long long **: what, unsigned long long **: what, float **: what, \
    double **: what, quern_entity **: what, quern_string **: what

/* _Generic converts an array to a pointer, so a pointer field is distinguished by the type of its address.
 */
#define QUERN__MEMBERS(owner, field) \
    .name = #field, \
    .type = _Generic(&((owner *)0)->field, \
                     QUERN__FIELD_POINTERS(((struct quern__a_pointer_is_no_field){0})), \
                     default: _Generic(((owner *)0)->field, QUERN__FIELD_TYPES(), QUERN__FIELD_TYPES(*), \
                         default: ((struct \
                             quern__a_field_is_a_number_an_entity_or_an_array_with_one_dimension_of_these){0}))), \
    .offset_bytes = (uint32_t)offsetof(owner, field), \
    .count = (uint32_t)(sizeof(((owner *)0)->field) / \
                        (_Generic(((owner *)0)->field, QUERN__FIELD_BYTES(), QUERN__FIELD_BYTES(*), default: 1)))
#define QUERN__FIELD(owner, field) \
    { \
        QUERN__MEMBERS(owner, field) \
    }
/* Only an array of char has an address of this type. */
#define QUERN__TEXT(owner, field) \
    { \
        .name = #field, .type = QUERN_FIELD_TEXT, .offset_bytes = (uint32_t)offsetof(owner, field), \
        .count = (uint32_t)_Generic(&((owner *)0)->field, \
                                    char(*)[sizeof(((owner *)0)->field)]: sizeof(((owner *)0)->field)) \
    }

/* Picks by the number of arguments: an element type alone, or a struct and its fields. */
#define QUERN__LIST_FIELD(owner, field, ...) \
    { \
        .name = #field, .type = QUERN_FIELD_LIST, .count = 1, \
        .offset_bytes = (uint32_t)(offsetof(owner, field) + \
            0 * sizeof(1 ? (const QUERN__FIRST(__VA_ARGS__, 0) *)NULL : ((owner *)0)->field.items)), \
        .element = QUERN__JOIN(QUERN__ELEMENT_, QUERN__IS_ALONE(__VA_ARGS__))(__VA_ARGS__) \
    }
#define QUERN__FIRST(first, ...) first
#define QUERN__IS_ALONE(...) \
    QUERN__PICK(__VA_ARGS__, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, \
        0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, \
        0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0)
#define QUERN__ELEMENT_1(element_type) \
    (&(const quern_element){.type = _Generic((element_type *)0, QUERN__FIELD_TYPES(*))})
#define QUERN__ELEMENT_0(element_type, ...) \
    (&(const quern_element){ \
        .size_bytes = sizeof(element_type), .alignment_bytes = _Alignof(element_type), \
        .fields = (const quern_field[])QUERN_FIELDS(element_type, __VA_ARGS__), \
        .field_count = QUERN__COUNT(__VA_ARGS__)})
/* clang-format on */
/* NOLINTEND(bugprone-macro-parentheses) */

#endif

#define QUERN__JOIN(a, b)       QUERN__JOIN_AGAIN(a, b)
#define QUERN__JOIN_AGAIN(a, b) a##b

/* clang-format off */
#define QUERN__COUNT(...) \
    QUERN__PICK(__VA_ARGS__, 64, 63, 62, 61, 60, 59, 58, 57, 56, 55, 54, 53, 52, 51, 50, 49, \
        48, 47, 46, 45, 44, 43, 42, 41, 40, 39, 38, 37, 36, 35, 34, 33, 32, 31, 30, 29, 28, 27, \
        26, 25, 24, 23, 22, 21, 20, 19, 18, 17, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, \
        3, 2, 1, 0)
#define QUERN__PICK( \
        a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16, a17, a18, a19, \
        a20, a21, a22, a23, a24, a25, a26, a27, a28, a29, a30, a31, a32, a33, a34, a35, a36, \
        a37, a38, a39, a40, a41, a42, a43, a44, a45, a46, a47, a48, a49, a50, a51, a52, a53, \
        a54, a55, a56, a57, a58, a59, a60, a61, a62, a63, a64, count, ...) \
    count

/* A list of m(t, f) for each field f. */
#define QUERN__FIELDS_1(m, t, f) m(t, f)
#define QUERN__FIELDS_2(m, t, f, ...) m(t, f), QUERN__FIELDS_1(m, t, __VA_ARGS__)
#define QUERN__FIELDS_3(m, t, f, ...) m(t, f), QUERN__FIELDS_2(m, t, __VA_ARGS__)
#define QUERN__FIELDS_4(m, t, f, ...) m(t, f), QUERN__FIELDS_3(m, t, __VA_ARGS__)
#define QUERN__FIELDS_5(m, t, f, ...) m(t, f), QUERN__FIELDS_4(m, t, __VA_ARGS__)
#define QUERN__FIELDS_6(m, t, f, ...) m(t, f), QUERN__FIELDS_5(m, t, __VA_ARGS__)
#define QUERN__FIELDS_7(m, t, f, ...) m(t, f), QUERN__FIELDS_6(m, t, __VA_ARGS__)
#define QUERN__FIELDS_8(m, t, f, ...) m(t, f), QUERN__FIELDS_7(m, t, __VA_ARGS__)
#define QUERN__FIELDS_9(m, t, f, ...) m(t, f), QUERN__FIELDS_8(m, t, __VA_ARGS__)
#define QUERN__FIELDS_10(m, t, f, ...) m(t, f), QUERN__FIELDS_9(m, t, __VA_ARGS__)
#define QUERN__FIELDS_11(m, t, f, ...) m(t, f), QUERN__FIELDS_10(m, t, __VA_ARGS__)
#define QUERN__FIELDS_12(m, t, f, ...) m(t, f), QUERN__FIELDS_11(m, t, __VA_ARGS__)
#define QUERN__FIELDS_13(m, t, f, ...) m(t, f), QUERN__FIELDS_12(m, t, __VA_ARGS__)
#define QUERN__FIELDS_14(m, t, f, ...) m(t, f), QUERN__FIELDS_13(m, t, __VA_ARGS__)
#define QUERN__FIELDS_15(m, t, f, ...) m(t, f), QUERN__FIELDS_14(m, t, __VA_ARGS__)
#define QUERN__FIELDS_16(m, t, f, ...) m(t, f), QUERN__FIELDS_15(m, t, __VA_ARGS__)
#define QUERN__FIELDS_17(m, t, f, ...) m(t, f), QUERN__FIELDS_16(m, t, __VA_ARGS__)
#define QUERN__FIELDS_18(m, t, f, ...) m(t, f), QUERN__FIELDS_17(m, t, __VA_ARGS__)
#define QUERN__FIELDS_19(m, t, f, ...) m(t, f), QUERN__FIELDS_18(m, t, __VA_ARGS__)
#define QUERN__FIELDS_20(m, t, f, ...) m(t, f), QUERN__FIELDS_19(m, t, __VA_ARGS__)
#define QUERN__FIELDS_21(m, t, f, ...) m(t, f), QUERN__FIELDS_20(m, t, __VA_ARGS__)
#define QUERN__FIELDS_22(m, t, f, ...) m(t, f), QUERN__FIELDS_21(m, t, __VA_ARGS__)
#define QUERN__FIELDS_23(m, t, f, ...) m(t, f), QUERN__FIELDS_22(m, t, __VA_ARGS__)
#define QUERN__FIELDS_24(m, t, f, ...) m(t, f), QUERN__FIELDS_23(m, t, __VA_ARGS__)
#define QUERN__FIELDS_25(m, t, f, ...) m(t, f), QUERN__FIELDS_24(m, t, __VA_ARGS__)
#define QUERN__FIELDS_26(m, t, f, ...) m(t, f), QUERN__FIELDS_25(m, t, __VA_ARGS__)
#define QUERN__FIELDS_27(m, t, f, ...) m(t, f), QUERN__FIELDS_26(m, t, __VA_ARGS__)
#define QUERN__FIELDS_28(m, t, f, ...) m(t, f), QUERN__FIELDS_27(m, t, __VA_ARGS__)
#define QUERN__FIELDS_29(m, t, f, ...) m(t, f), QUERN__FIELDS_28(m, t, __VA_ARGS__)
#define QUERN__FIELDS_30(m, t, f, ...) m(t, f), QUERN__FIELDS_29(m, t, __VA_ARGS__)
#define QUERN__FIELDS_31(m, t, f, ...) m(t, f), QUERN__FIELDS_30(m, t, __VA_ARGS__)
#define QUERN__FIELDS_32(m, t, f, ...) m(t, f), QUERN__FIELDS_31(m, t, __VA_ARGS__)
#define QUERN__FIELDS_33(m, t, f, ...) m(t, f), QUERN__FIELDS_32(m, t, __VA_ARGS__)
#define QUERN__FIELDS_34(m, t, f, ...) m(t, f), QUERN__FIELDS_33(m, t, __VA_ARGS__)
#define QUERN__FIELDS_35(m, t, f, ...) m(t, f), QUERN__FIELDS_34(m, t, __VA_ARGS__)
#define QUERN__FIELDS_36(m, t, f, ...) m(t, f), QUERN__FIELDS_35(m, t, __VA_ARGS__)
#define QUERN__FIELDS_37(m, t, f, ...) m(t, f), QUERN__FIELDS_36(m, t, __VA_ARGS__)
#define QUERN__FIELDS_38(m, t, f, ...) m(t, f), QUERN__FIELDS_37(m, t, __VA_ARGS__)
#define QUERN__FIELDS_39(m, t, f, ...) m(t, f), QUERN__FIELDS_38(m, t, __VA_ARGS__)
#define QUERN__FIELDS_40(m, t, f, ...) m(t, f), QUERN__FIELDS_39(m, t, __VA_ARGS__)
#define QUERN__FIELDS_41(m, t, f, ...) m(t, f), QUERN__FIELDS_40(m, t, __VA_ARGS__)
#define QUERN__FIELDS_42(m, t, f, ...) m(t, f), QUERN__FIELDS_41(m, t, __VA_ARGS__)
#define QUERN__FIELDS_43(m, t, f, ...) m(t, f), QUERN__FIELDS_42(m, t, __VA_ARGS__)
#define QUERN__FIELDS_44(m, t, f, ...) m(t, f), QUERN__FIELDS_43(m, t, __VA_ARGS__)
#define QUERN__FIELDS_45(m, t, f, ...) m(t, f), QUERN__FIELDS_44(m, t, __VA_ARGS__)
#define QUERN__FIELDS_46(m, t, f, ...) m(t, f), QUERN__FIELDS_45(m, t, __VA_ARGS__)
#define QUERN__FIELDS_47(m, t, f, ...) m(t, f), QUERN__FIELDS_46(m, t, __VA_ARGS__)
#define QUERN__FIELDS_48(m, t, f, ...) m(t, f), QUERN__FIELDS_47(m, t, __VA_ARGS__)
#define QUERN__FIELDS_49(m, t, f, ...) m(t, f), QUERN__FIELDS_48(m, t, __VA_ARGS__)
#define QUERN__FIELDS_50(m, t, f, ...) m(t, f), QUERN__FIELDS_49(m, t, __VA_ARGS__)
#define QUERN__FIELDS_51(m, t, f, ...) m(t, f), QUERN__FIELDS_50(m, t, __VA_ARGS__)
#define QUERN__FIELDS_52(m, t, f, ...) m(t, f), QUERN__FIELDS_51(m, t, __VA_ARGS__)
#define QUERN__FIELDS_53(m, t, f, ...) m(t, f), QUERN__FIELDS_52(m, t, __VA_ARGS__)
#define QUERN__FIELDS_54(m, t, f, ...) m(t, f), QUERN__FIELDS_53(m, t, __VA_ARGS__)
#define QUERN__FIELDS_55(m, t, f, ...) m(t, f), QUERN__FIELDS_54(m, t, __VA_ARGS__)
#define QUERN__FIELDS_56(m, t, f, ...) m(t, f), QUERN__FIELDS_55(m, t, __VA_ARGS__)
#define QUERN__FIELDS_57(m, t, f, ...) m(t, f), QUERN__FIELDS_56(m, t, __VA_ARGS__)
#define QUERN__FIELDS_58(m, t, f, ...) m(t, f), QUERN__FIELDS_57(m, t, __VA_ARGS__)
#define QUERN__FIELDS_59(m, t, f, ...) m(t, f), QUERN__FIELDS_58(m, t, __VA_ARGS__)
#define QUERN__FIELDS_60(m, t, f, ...) m(t, f), QUERN__FIELDS_59(m, t, __VA_ARGS__)
#define QUERN__FIELDS_61(m, t, f, ...) m(t, f), QUERN__FIELDS_60(m, t, __VA_ARGS__)
#define QUERN__FIELDS_62(m, t, f, ...) m(t, f), QUERN__FIELDS_61(m, t, __VA_ARGS__)
#define QUERN__FIELDS_63(m, t, f, ...) m(t, f), QUERN__FIELDS_62(m, t, __VA_ARGS__)
#define QUERN__FIELDS_64(m, t, f, ...) m(t, f), QUERN__FIELDS_63(m, t, __VA_ARGS__)
/* clang-format on */

#endif
