/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_LIST_HPP
#define QUERN_LIST_HPP

/** @file
 * Lists and strings of any length in C++, as members of components, resources and events:
 *
 *     struct Bag {
 *         quern::list<Item> items;
 *         quern::string label;
 *     };
 *     QUERN_DESCRIBE(Item, kind, count);
 *     QUERN_DESCRIBE(Bag, items, label);
 *
 * <quern/quern.hpp> includes it. The rules are those of <quern/list.h>: a copy is O(1), shares memory until one of both
 * changes, and cannot fail. Calls that change a list return a quern_result, or throw with QUERN_CPP_EXCEPTIONS.
 *
 * Elements are trivially copyable, or quern::string. Reading is const: begin(), operator[] and at most a pointer are for
 * reading alone, also of a list that is not const. write() returns the elements for writing. */

#include <quern/list.h>
#include <quern/quern.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <string_view>
#include <type_traits>
#include <utility>

namespace quern {

/** A text of any length, in UTF-8, which ends with a zero byte. */
class string {
  public:
    /** An empty string. */
    string() noexcept = default;
    /** A string with a text; empty if out of memory, which quern_error_message then says. Use assign to know. */
    explicit string(std::string_view text) { (void)quern::check(set(text)); }
    /** Shares the text until one of both strings changes; cannot fail. */
    string(const string &other) noexcept { quern_string_copy(&raw_, &other.raw_); }
    /** Takes the text; the other string is then empty. */
    string(string &&other) noexcept : raw_(std::exchange(other.raw_, quern_string{})) {}
    /** Shares the text until one of both strings changes; cannot fail. */
    string &operator=(const string &other) noexcept
    {
        quern_string_copy(&raw_, &other.raw_);
        return *this;
    }
    /** Exchanges the texts of both strings. */
    string &operator=(string &&other) noexcept
    {
        std::swap(raw_, other.raw_);
        return *this;
    }
    ~string() { quern_string_free(&raw_); }

    /** Returns the text. Valid until the string changes. */
    const char *c_str() const noexcept { return quern_string_text(&raw_); }
    /** Returns the number of bytes. */
    uint32_t size() const noexcept { return quern_string_bytes(&raw_); }
    /** Returns whether the text is empty. */
    bool empty() const noexcept { return size() == 0; }
    /** Returns the text. Valid until the string changes. */
    std::string_view view() const noexcept { return {c_str(), size()}; }
    /** Converts to the text. Valid until the string changes. */
    operator std::string_view() const noexcept { return view(); }
    /** Begins a loop over the bytes. */
    const char *begin() const noexcept { return c_str(); }
    /** Ends a loop over the bytes. */
    const char *end() const noexcept { return c_str() + size(); }

    /** Sets the text. Errors: as quern_string_set_bytes. */
    QUERN__CPP_NODISCARD quern_result assign(std::string_view text) { return quern::check(set(text)); }
    /** Appends a text. Errors: as quern_string_append_bytes. */
    QUERN__CPP_NODISCARD quern_result append(std::string_view text)
    {
        if (text.empty()) return QUERN_OK;
        return quern::check(quern_string_append_bytes(&raw_, text.data(), count_of(text)));
    }
    /** Makes the string empty and releases its memory. */
    void clear() noexcept { quern_string_free(&raw_); }
    /** Returns the string for the calls of C. */
    quern_string *raw() noexcept { return &raw_; }

    /** Compares texts. */
    friend bool operator==(const string &a, const string &b) noexcept { return a.view() == b.view(); }
    /** Compares texts. */
    friend bool operator!=(const string &a, const string &b) noexcept { return a.view() != b.view(); }
    /** Compares texts. */
    friend bool operator==(const string &a, std::string_view b) noexcept { return a.view() == b; }
    /** Compares texts. */
    friend bool operator!=(const string &a, std::string_view b) noexcept { return a.view() != b; }

  private:
    /* A text that is too long for 32 bits is too long for a string, too, and is refused. */
    static uint32_t count_of(std::string_view text) noexcept
    {
        return text.size() < UINT32_MAX ? static_cast<uint32_t>(text.size()) : UINT32_MAX;
    }
    quern_result set(std::string_view text)
    {
        if (text.empty()) {
            quern_list_clear(&raw_.list);
            return QUERN_OK;
        }
        return quern_string_set_bytes(&raw_, text.data(), count_of(text));
    }

    quern_string raw_{};
};

/** A list of any length. T: a trivially copyable type aligned to at most QUERN_LIST_ALIGNMENT, or quern::string. */
template <typename T> class list {
    static_assert(std::is_trivially_copyable<T>::value || std::is_same<T, string>::value,
                  "quern::list: elements are trivially copyable types or quern::string");
    static_assert(alignof(T) <= QUERN_LIST_ALIGNMENT,
                  "quern::list: elements are aligned to at most QUERN_LIST_ALIGNMENT");

  public:
    /** Type of the elements. */
    using value_type = T;
    /** Iterators read. */
    using const_iterator = const T *;
    /** `element` of the calls of quern/list.h. */
    static constexpr uint32_t element =
        std::is_same<T, string>::value ? QUERN_LIST_STRINGS : static_cast<uint32_t>(sizeof(T));

    /** An empty list. */
    list() noexcept = default;
    /** Shares the elements until one of both lists changes; cannot fail. */
    list(const list &other) noexcept { quern_list_copy(&raw_, &other.raw_); }
    /** Takes the elements; the other list is then empty. */
    list(list &&other) noexcept : raw_(std::exchange(other.raw_, quern_list{})) {}
    /** Shares the elements until one of both lists changes; cannot fail. */
    list &operator=(const list &other) noexcept
    {
        quern_list_copy(&raw_, &other.raw_);
        return *this;
    }
    /** Exchanges the elements of both lists. */
    list &operator=(list &&other) noexcept
    {
        std::swap(raw_, other.raw_);
        return *this;
    }
    ~list() { quern_list_free(&raw_); }

    /** Returns the number of elements. */
    uint32_t size() const noexcept { return raw_.count; }
    /** Returns whether the list is empty. */
    bool empty() const noexcept { return raw_.count == 0; }
    /** Returns the elements, for reading. */
    const T *data() const noexcept { return static_cast<const T *>(raw_.items); }
    /** Returns an element, for reading. i < size(). */
    const T &operator[](uint32_t i) const noexcept { return data()[i]; }
    /** Begins a loop over the elements, for reading. */
    const T *begin() const noexcept { return data(); }
    /** Ends a loop over the elements. */
    const T *end() const noexcept { return raw_.count > 0 ? data() + raw_.count : data(); }
    /** Returns the first element, for reading. The list must not be empty. */
    const T &front() const noexcept { return data()[0]; }
    /** Returns the last element, for reading. The list must not be empty. */
    const T &back() const noexcept { return data()[raw_.count - 1]; }

    /** Elements for writing; see list::write. */
    struct span {
        T *first;       /**< The first element. */
        uint32_t count; /**< Number of elements. */
        /** Begins a loop over the elements. */
        T *begin() const noexcept { return first; }
        /** Ends a loop over the elements. */
        T *end() const noexcept { return count > 0 ? first + count : first; }
        /** Returns an element. i < size(). */
        T &operator[](uint32_t i) const noexcept { return first[i]; }
        /** Returns the number of elements. */
        uint32_t size() const noexcept { return count; }
    };

    /** Returns the elements for writing. Empty if the list is, and, with a message, if out of memory. Valid until the
     * list is changed or copied, which also happens at each sync point. See quern_list_write. */
    span write()
    {
        T *const first = static_cast<T *>(quern_list_write(&raw_, element));
        if (first == nullptr && raw_.count > 0) (void)quern::check(QUERN_ERROR_OUT_OF_MEMORY);
        return {first, first != nullptr ? raw_.count : 0};
    }
    /** Replaces an element. The new one may be an element of the list itself. Errors: INVALID_ARGUMENT (index),
     * OUT_OF_MEMORY. */
    QUERN__CPP_NODISCARD quern_result set(uint32_t i, const T &item)
    {
        T copy(item); /* a share that another thread gives up may be the last one */
        T *const first = i < raw_.count ? static_cast<T *>(quern_list_write(&raw_, element)) : nullptr;
        if (first == nullptr)
            return quern::check(i < raw_.count ? QUERN_ERROR_OUT_OF_MEMORY
                                               : quern_list_remove(&raw_, element, i, 1));
        first[i] = std::move(copy);
        return QUERN_OK;
    }
    /** Appends an element. Errors: as quern_list_push. */
    QUERN__CPP_NODISCARD quern_result push_back(const T &item)
    {
        return quern::check(quern_list_push(&raw_, element, &item));
    }
    /** Appends elements. Errors: as quern_list_insert. */
    QUERN__CPP_NODISCARD quern_result append(std::initializer_list<T> items)
    {
        return insert(size(), items.begin(), static_cast<uint32_t>(items.size()));
    }
    /** Inserts elements before the one at `index`. Errors: as quern_list_insert. */
    QUERN__CPP_NODISCARD quern_result insert(uint32_t index, const T *items, uint32_t count)
    {
        return quern::check(quern_list_insert(&raw_, element, index, items, count));
    }
    /** Inserts an element before the one at `index`. Errors: as quern_list_insert. */
    QUERN__CPP_NODISCARD quern_result insert(uint32_t index, const T &item)
    {
        return insert(index, &item, 1);
    }
    /** Removes elements and keeps the order of the others. Errors: as quern_list_remove. */
    QUERN__CPP_NODISCARD quern_result remove(uint32_t index, uint32_t count = 1)
    {
        return quern::check(quern_list_remove(&raw_, element, index, count));
    }
    /** Removes an element and puts the last one in its place. Errors: as quern_list_remove. */
    QUERN__CPP_NODISCARD quern_result remove_swap(uint32_t index)
    {
        return quern::check(quern_list_remove_swap(&raw_, element, index));
    }
    /** Removes the last element. Errors: as quern_list_pop. */
    QUERN__CPP_NODISCARD quern_result pop_back()
    {
        return quern::check(quern_list_pop(&raw_, element, nullptr));
    }
    /** Sets the number of elements; new ones are zero bytes. Errors: as quern_list_resize. */
    QUERN__CPP_NODISCARD quern_result resize(uint32_t count)
    {
        return quern::check(quern_list_resize(&raw_, element, count));
    }
    /** Makes room for a total of `count` elements. Errors: as quern_list_reserve. */
    QUERN__CPP_NODISCARD quern_result reserve(uint32_t count)
    {
        return quern::check(quern_list_reserve(&raw_, element, count));
    }
    /** Removes all elements and keeps the memory, unless it is shared. */
    void clear() noexcept { quern_list_clear(&raw_); }
    /** Returns the list for the calls of C. */
    quern_list *raw() noexcept { return &raw_; }

  private:
    quern_list raw_{};
};

} // namespace quern

#endif
