/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_TYPE_NAME_HPP
#define QUERN_TYPE_NAME_HPP

/** @file
 * Names and identities of C++ types, computed when a program is compiled.
 *
 * A name is made from what the compiler calls the type, and is the same for all compilers and standard libraries, so
 * that archives and hashes do not depend on them:
 *
 *     game::Position, game::Stat<int64_t>, game::Grid<3>, std::vector<std::string>
 *
 *   - "struct", "class", "enum", "union", spaces around signs, and suffixes of numbers are left out.
 *   - `long` and `long long` are named by their size, int64_t or int; enumerators without a name and characters by
 *     their number.
 *   - Left out are namespaces with reserved names (`std::__1`), unnamed namespaces, namespaces named `v` and a number,
 *     and the function around a local type. Compilers disagree about other inline namespaces: give such a type a name.
 *   - Of a name of more than QUERN_MAX_NAME_BYTES bytes, the middle is left out, and a hash of the whole is added.
 *
 * quern::name gives a type a name of its own. */

#include <quern/base.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace quern {

/** Name of a type. Specialise it, outside of all namespaces and before the type is used, so that the name stays the
 * same when the type is renamed or moved, or if the type has no name:
 *
 *     template <> inline constexpr auto quern::name<game::Position> = "Position"; */
template <typename T> inline constexpr auto name = nullptr;

/** @cond internal */
namespace detail {

template <typename T> constexpr auto signature()
{
#if defined(_MSC_VER) && !defined(__clang__)
    return std::array<const char *, 3>{__FUNCSIG__, "signature<", ">(void)"};
#else
    return std::array<const char *, 3>{__PRETTY_FUNCTION__, "T = ", "]"};
#endif
}

constexpr std::size_t length_of(const char *text)
{
    std::size_t length = 0;
    while (text[length] != '\0')
        length++;
    return length;
}

constexpr bool begins(const char *text, const char *beginning)
{
    for (std::size_t i = 0; beginning[i] != '\0'; i++)
        if (text[i] != beginning[i]) return false;
    return true;
}

constexpr bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

constexpr bool is_word(char c)
{
    const char lower = static_cast<char>(c | 0x20);
    return (lower >= 'a' && lower <= 'z') || is_digit(c) || c == '_' ||
           static_cast<unsigned char>(c) >= 0x80;
}

/* The name of a type while it is made from what the compiler prints. */
template <std::size_t capacity> struct type_text {
    char text[capacity]{};
    std::size_t length = 0;
    bool is_internal =
        false; /* the type is local, or in an unnamed namespace: others may have the same name */
    bool is_nameless =
        false; /* compilers give the type, or an argument of it, no name, or different ones */

    constexpr bool ends(const char *ending, std::size_t at) const
    {
        const std::size_t bytes = detail::length_of(ending);
        if (bytes > at) return false;
        for (std::size_t i = 0; i < bytes; i++)
            if (text[at - bytes + i] != ending[i]) return false;
        return true;
    }
    constexpr void put(char c) { text[length++] = c; }
    /* Appends a word. Words are separated by one space. */
    constexpr void put_word(const char *word, std::size_t bytes)
    {
        if (length > 0 && detail::is_word(text[length - 1]) && bytes > 0) put(' ');
        for (std::size_t i = 0; i < bytes; i++)
            put(word[i]);
    }
    constexpr void put_word(const char *word) { put_word(word, detail::length_of(word)); }
    constexpr void put_number(int64_t number)
    {
        char digits[20]{};
        std::size_t count = 0;
        if (number < 0) put('-');
        for (uint64_t rest = number < 0 ? 0 - static_cast<uint64_t>(number) : static_cast<uint64_t>(number);
             rest > 0 || count == 0; rest /= 10)
            digits[count++] = static_cast<char>('0' + rest % 10);
        while (count > 0)
            put(digits[--count]);
    }

    /* Returns the position of the bracket that the one before `end` closes, or 0. */
    constexpr std::size_t find_opening(std::size_t end) const
    {
        int depth = 0;
        while (end > 0) {
            const char c = text[--end];
            depth += c == ')' || c == '>' ? 1 : c == '(' || c == '<' ? -1 : 0;
            if (depth == 0) return end;
        }
        return 0;
    }
    /* Removes the type before an enumerator without a name: (Kind)7, (Kind)-7. Others print the number alone. */
    constexpr void drop_cast()
    {
        const bool is_negative = ends("-", length);
        const std::size_t end = length - is_negative;
        if (!ends(")", end)) return;
        length = find_opening(end);
        if (is_negative) put('-');
    }
    /* Removes the function in front of a local type, which only some compilers print: "f(int) const". Returns false if
     * the text does not end with one. */
    constexpr bool drop_function()
    {
        std::size_t at = length;
        for (const char *ending : {"const", "volatile", "noexcept", "&", "&"})
            if (ends(ending, at)) at -= detail::length_of(ending);
        if (!ends(")", at)) return false;
        at = find_opening(at);
        while (at > 0 && text[at - 1] != ' ') {
            std::size_t sign = at;
            while (sign > 0 && !detail::is_word(text[sign - 1]) && text[sign - 1] != ' ' &&
                   text[sign - 1] != ':')
                sign--;
            if (ends("operator", sign))
                at = sign - detail::length_of("operator");
            else if (text[at - 1] == ')' || text[at - 1] == '>')
                at = find_opening(at);
            else if (text[at - 1] == '<' || text[at - 1] == ',' || text[at - 1] == '(')
                break;
            else
                at--;
        }
        length = at;
        is_internal = true;
        return true;
    }
    /* Returns whether the argument of a template that begins after the comma at `at` is one of a template in std. */
    constexpr bool is_argument_of_std(std::size_t at) const
    {
        for (int depth = 0; depth >= 0 && at > 0;) {
            const char c = text[--at];
            depth += c == ')' || c == '>' ? 1 : c == '(' || c == '<' ? -1 : 0;
        }
        while (at > 0 && (detail::is_word(text[at - 1]) || text[at - 1] == ':'))
            at--;
        return detail::begins(text + at, "std::");
    }
    /* Removes default arguments of templates in std, which gcc prints within lists of arguments. */
    constexpr void drop_defaults()
    {
        for (std::size_t i = 0; i < length; i++)
            for (const char *word : {",std::allocator<", ",std::default_delete<", ",std::char_traits<",
                                     ",std::less<", ",std::hash<", ",std::equal_to<"}) {
                if (!detail::begins(text + i, word) || !is_argument_of_std(i)) continue;
                std::size_t last = i + detail::length_of(word);
                for (int depth = 1; depth > 0; last++)
                    depth += text[last] == '<' ? 1 : text[last] == '>' ? -1 : 0;
                const std::size_t end = length;
                for (length = i; last < end;)
                    put(text[last++]);
                for (std::size_t k = length; k < end; k++)
                    text[k] = '\0';
                i--;
                break;
            }
    }
    constexpr void replace(const char *from, const char *to)
    {
        type_text result;
        for (std::size_t i = 0; i < length;) {
            if (detail::begins(text + i, from)) {
                for (std::size_t k = 0; to[k] != '\0'; k++)
                    result.put(to[k]);
                i += detail::length_of(from);
            } else {
                result.put(text[i++]);
            }
        }
        for (std::size_t i = 0; i < capacity; i++)
            text[i] = i < result.length ? result.text[i] : '\0';
        length = result.length;
    }
};

/* Reads a run of words of the language that name one arithmetic type, in any order, and writes the type. Returns the
 * position after them, or `at` if there is none. */
template <std::size_t capacity>
constexpr std::size_t read_arithmetic(const char *text, std::size_t at, type_text<capacity> *out)
{
    constexpr const char *words[] = {"unsigned", "signed", "short",    "long",   "int",
                                     "char",     "double", "__int128", "__int64"};
    int counts[9]{};
    std::size_t end = at;
    for (std::size_t next = at, word = 0; word < 9;) {
        const std::size_t bytes = detail::length_of(words[word]);
        if (detail::begins(text + next, words[word]) && !detail::is_word(text[next + bytes])) {
            counts[word]++;
            end = next + bytes;
            next = end + (text[end] == ' ');
            word = 0;
        } else {
            word++;
        }
    }
    if (end == at) return at;
    const bool is_unsigned = counts[0] > 0;
    if (counts[6] > 0) {
        out->put_word(counts[3] > 0 ? "long double" : "double");
    } else if (counts[5] > 0) {
        out->put_word(is_unsigned ? "unsigned char" : counts[1] > 0 ? "signed char" : "char");
    } else if (counts[7] > 0) {
        out->put_word(is_unsigned ? "unsigned __int128" : "__int128");
    } else if (counts[2] > 0) {
        out->put_word(is_unsigned ? "unsigned short" : "short");
    } else if (counts[3] > 1 || counts[8] > 0 || (counts[3] == 1 && sizeof(long) == 8)) {
        out->put_word(is_unsigned ? "uint64_t" : "int64_t");
    } else {
        out->put_word(is_unsigned ? "unsigned int" : "int");
    }
    return end;
}

/* Reads a character, 'a' or '\x61', and writes its number. Returns the position after it. */
template <std::size_t capacity>
constexpr std::size_t read_character(const char *text, std::size_t at, bool is_wide,
                                     type_text<capacity> *out)
{
    uint32_t value = 0;
    at++;
    if (text[at] != '\\') {
        for (; text[at] != '\''; at++)
            value = value << 8 | static_cast<unsigned char>(text[at]);
    } else if (detail::is_digit(text[++at])) {
        for (; text[at] != '\''; at++)
            value = value * 8 + static_cast<uint32_t>(text[at] - '0');
    } else if (text[at] == 'x') {
        for (at++; text[at] != '\''; at++)
            value = value * 16 + static_cast<uint32_t>(detail::is_digit(text[at])
                                                           ? text[at] - '0'
                                                           : (text[at] | 0x20) - 'a' + 10);
    } else {
        constexpr const char *names = "abtnvfr"; /* 7 to 13 */
        value = static_cast<unsigned char>(text[at++]);
        for (uint32_t i = 0; names[i] != '\0'; i++)
            if (value == static_cast<unsigned char>(names[i])) {
                value = 7 + i;
                break;
            }
    }
    out->put_number(is_wide ? static_cast<int64_t>(value)
                            : static_cast<int64_t>(static_cast<signed char>(value)));
    return at + 1;
}

/* Returns whether a namespace of this name is left out. */
constexpr bool is_left_out(const char *word, std::size_t bytes)
{
    if (word[0] == '_' && bytes > 1) return word[1] == '_' || (word[1] >= 'A' && word[1] <= 'Z');
    for (std::size_t i = 1; i < bytes; i++)
        if (!detail::is_digit(word[i])) return false;
    return word[0] == 'v' && bytes > 1;
}

/* Skips a bracketed word in the place of a name, and the "::" after it. */
constexpr std::size_t skip_unnamed(const char *text, std::size_t at, char closing)
{
    while (text[at] != closing)
        at++;
    return at + (text[at + 1] == ':' ? 3 : 1);
}

template <typename T> constexpr auto make_type_text()
{
    constexpr auto parts = detail::signature<T>();
    constexpr std::size_t capacity = 2 * detail::length_of(parts[0]);
    type_text<capacity> out;
    const char *const s = parts[0];
    std::size_t i = 0, skipped = 0;
    while (!detail::begins(s + i, parts[1]))
        i++;
    i += detail::length_of(parts[1]);
    const std::size_t end = detail::length_of(s) - detail::length_of(parts[2]);
    while (i < end && s[i] != ';') { /* after ';', gcc lists aliases */
        const char c = s[i];
        if (c == ' ' || (i == skipped && i > 0)) {
            i++;
        } else if (detail::is_digit(c)) {
            std::size_t last = i;
            while (detail::is_digit(s[last]))
                last++;
            out.drop_cast();
            out.put_word(s + i, last - i);
            while (detail::is_word(s[last])) /* the suffix of an integer */
                last++;
            out.is_nameless = out.is_nameless || s[last] == '.';
            i = last;
        } else if (detail::is_word(c)) {
            std::size_t last = i;
            const std::size_t after = detail::read_arithmetic(s, i, &out);
            while (detail::is_word(s[last]))
                last++;
            if (after > i) {
                i = after;
            } else if (s[last] == '\'') {
                i = detail::read_character(s, last, true, &out);
            } else if (s[last] == ' ' &&
                       (detail::begins(s + i, "struct ") || detail::begins(s + i, "class ") ||
                        detail::begins(s + i, "enum ") || detail::begins(s + i, "union "))) {
                i = last;
            } else if (s[last] == ':' && detail::is_left_out(s + i, last - i)) {
                i = last + 2;
            } else {
                out.put_word(s + i, last - i);
                i = last;
            }
        } else if (c == '\'') {
            i = detail::read_character(s, i, false, &out);
        } else if (detail::begins(s + i, "{anonymous}") || c == '`') {
            out.is_internal = true;
            i = detail::skip_unnamed(s, i, c == '`' ? '\'' : '}');
        } else if (detail::begins(s + i, "(anonymous namespace)") || detail::begins(s + i, "<unnamed>")) {
            out.is_internal = true;
            i = detail::skip_unnamed(s, i, c == '(' ? ')' : '>');
        } else if (detail::begins(s + i, "(& ")) { /* gcc: the address of an object */
            int depth = 1;
            for (skipped = i + 1; depth > 0; skipped++)
                depth += s[skipped] == '(' ? 1 : s[skipped] == ')' ? -1 : 0;
            skipped--;
            i++;
        } else if (c == ':' && out.drop_function()) {
            i += 2;
        } else {
            for (const char *nameless :
                 {"(unnamed", "(anonymous", "(lambda", "<unnamed", "<lambda", "{", "\""})
                out.is_nameless = out.is_nameless || detail::begins(s + i, nameless);
            out.put(c);
            i++;
        }
    }
    out.drop_defaults();
    out.replace("std::basic_string<char>", "std::string"); /* the name that libc++ prefers */
    out.replace("std::basic_string_view<char>", "std::string_view");
    return out;
}

template <typename T> inline constexpr auto type_text_of = make_type_text<T>();

/* FNV-1a (Fowler, Noll, Vo). */
constexpr uint64_t hash_text(const char *text, std::size_t bytes)
{
    uint64_t hash = 0xCBF29CE484222325u;
    for (std::size_t i = 0; i < bytes; i++)
        hash = (hash ^ static_cast<unsigned char>(text[i])) * 0x100000001B3u;
    return hash;
}

constexpr bool is_continuation(char c)
{
    return (static_cast<unsigned char>(c) & 0xC0) == 0x80;
}

/* The name of a type among types, with at most QUERN_MAX_NAME_BYTES bytes: of a longer name the beginning, the end, and
 * its hash. */
template <typename T> constexpr auto make_type_name()
{
    constexpr auto &whole = type_text_of<T>;
    constexpr std::size_t first = 20, last = 25, digits = 16;
    static_assert(first + last + digits + 2 == QUERN_MAX_NAME_BYTES);
    if constexpr (whole.length <= QUERN_MAX_NAME_BYTES) {
        std::array<char, whole.length + 1> name{};
        for (std::size_t i = 0; i < whole.length; i++)
            name[i] = whole.text[i];
        return name;
    } else {
        std::array<char, QUERN_MAX_NAME_BYTES + 1> name{};
        std::size_t count = first, from = whole.length - last;
        while (detail::is_continuation(whole.text[count]))
            count--;
        while (detail::is_continuation(whole.text[from]))
            from++;
        for (std::size_t i = 0; i < count; i++)
            name[i] = whole.text[i];
        name[count++] = '~';
        while (from < whole.length)
            name[count++] = whole.text[from++];
        name[count++] = '#';
        const uint64_t hash = detail::hash_text(whole.text, whole.length);
        for (std::size_t i = 0; i < digits; i++)
            name[count++] = "0123456789abcdef"[hash >> (60 - 4 * i) & 15];
        return name;
    }
}

template <typename T> inline constexpr auto made_type_name = make_type_name<T>();

template <typename T>
inline constexpr bool has_own_name = !std::is_same<std::decay_t<decltype(name<T>)>, std::nullptr_t>::value;

/* Name of the C++ type, which messages and checks of types use. */
template <typename T> constexpr const char *type_name_of()
{
    return made_type_name<T>.data();
}

/* Name under which a type is registered. */
template <typename T> constexpr const char *name_of()
{
    if constexpr (has_own_name<T>) {
        static_assert(detail::length_of(name<T>) > 0 && detail::length_of(name<T>) <= QUERN_MAX_NAME_BYTES,
                      "quern: quern::name of this type must have 1 to 63 bytes (QUERN_MAX_NAME_BYTES)");
        return name<T>;
    } else {
        static_assert(
            !type_text_of<T>.is_nameless,
            "quern: this type has no name that all compilers agree on: specialise quern::name for it");
        return detail::type_name_of<T>();
    }
}

/* An object per type, and per source file for types that only one file can name. */
template <typename T> struct type_mark {
    static inline char at = 0;
};

/* Identity of a type within a process; never 0. It is the same in all modules of a program. Types that only one source
 * file can name differ from those of the same name in other files. */
template <typename T> uint64_t type_id()
{
    constexpr auto &whole = type_text_of<T>;
    constexpr uint64_t traits = (std::is_empty<T>::value ? 1u : 0u) |
                                (std::is_trivially_copyable<T>::value ? 2u : 0u) |
                                (std::is_default_constructible<T>::value ? 4u : 0u) |
                                (std::is_copy_constructible<T>::value ? 8u : 0u) |
                                (std::is_move_constructible<T>::value ? 16u : 0u);
    /* Another layout is another type: code that is loaded later may have changed the struct. */
    constexpr uint64_t layout = (uint64_t{sizeof(T)} << 8 | alignof(T)) * 0x9E3779B97F4A7C15u;
    constexpr uint64_t id = (detail::hash_text(whole.text, whole.length) ^ traits ^ layout) | 1;
    if constexpr (whole.is_internal)
        return (id ^ reinterpret_cast<std::uintptr_t>(&type_mark<T>::at) * 0x9E3779B97F4A7C15u) | 1;
    else
        return id;
}

/* What QUERN_COLUMN(view, term, T) asks for: the name in the program and the type, which differ if the name is an alias;
 * "Alias = game::Position". A name of more bytes is left out, since no type is registered with it. */
template <typename T> constexpr auto join_names(const char *spelled)
{
    using type = std::remove_cv_t<T>;
    std::array<char, 2 * QUERN_MAX_NAME_BYTES + 16> joined{};
    std::size_t count = 0;
    if (detail::length_of(spelled) <= QUERN_MAX_NAME_BYTES + detail::length_of("const "))
        for (; spelled[count] != '\0'; count++)
            joined[count] = spelled[count];
    for (const char *part : {count > 0 ? " = " : "", detail::type_name_of<type>()})
        for (; *part != '\0'; part++)
            joined[count++] = *part;
    return joined;
}

/* What views compare with the type of a component: the type, and its own name, if it has one. */
template <typename T> inline constexpr auto either_name = join_names<T>(name<T>);
template <typename T> constexpr const char *either_name_of()
{
    if constexpr (has_own_name<T>)
        return either_name<T>.data();
    else
        return detail::type_name_of<T>();
}

} // namespace detail
/** @endcond */

} // namespace quern

#endif
