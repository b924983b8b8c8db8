/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_QUERN_HPP
#include <quern/quern.hpp> /* includes this header before quern::query */
#elif !defined(QUERN_ROWS_HPP)
#define QUERN_ROWS_HPP

/** @file
 * Loops over the rows and chunks of a quern::query:
 *
 *     for (auto [entity, position, velocity] : query)
 *         position.x += velocity.x;
 *     for (auto [entities, positions] : query.chunks())
 *         for (Position &position : positions) ... */

namespace quern {

/** @cond internal */
namespace detail {

template <typename T> struct is_up : std::false_type {
};
template <typename T> struct is_up<up<T>> : std::true_type {
};
template <typename T> struct is_up<up_nearest<T>> : std::true_type {
};

/* The parameter of a lambda for an element of a query's list of types. */
template <typename T>
using query_item = std::conditional_t<std::is_pointer<T>::value || is_up<T>::value, T, T &>;

/* The end of a loop. */
struct loop_end {};

/* The views of a loop, and what happens if it fails: it stores the result if it has a place for it. Otherwise it throws,
 * or ends the program, because a loop has no result that the program could read. */
class loop {
  public:
    loop(quern_query *query, quern_result *out_result)
        : it_(quern_query_iterate(query)), out_result_(out_result)
    {
        if (out_result_ != nullptr) *out_result_ = it_.result;
    }
    loop(const loop &) = delete;
    loop &operator=(const loop &) = delete;
    /* Ends a loop that was left early. */
    ~loop() { quern_query_iterator_end(&it_); }

    bool next() { return quern_query_next(&it_) || (finish(), false); }
    const quern_view *view() const { return &it_.view; }

  private:
    void finish()
    {
        if (out_result_ != nullptr)
            *out_result_ = it_.result;
        else if (quern::check(it_.result) != QUERN_OK)
            quern__must_end("a loop over a quern::query", nullptr, 0);
    }

    quern_query_iterator it_;
    quern_result *out_result_;
};

/* The values of one view that a loop passes: of a row, or of all rows. T: element of the query's list of types. */
template <typename T> struct loop_item {
    using argument = parameter<query_item<T>>;
    using column_type = column<std::remove_pointer_t<T>>;
    static column_type all(typename argument::state values, uint32_t count)
    {
        return {values, values != nullptr ? count : 0};
    }
};
template <typename T> struct loop_item_up {
    using argument = parameter<T>;
    using column_type = column<const typename T::type *const>;
    static column_type all(typename argument::state values, uint32_t count) { return {values, count}; }
};
template <typename T> struct loop_item<up<T>> : loop_item_up<up<T>> {
};
template <typename T> struct loop_item<up_nearest<T>> : loop_item_up<up_nearest<T>> {
};

template <typename Types, typename Indices> class row_iterator;

/* Steps through rows. */
template <typename... T, std::size_t... i> class row_iterator<std::tuple<T...>, std::index_sequence<i...>> {
  public:
    row_iterator(quern_query *query, quern_result *out_result) : loop_(query, out_result) { next_view(); }

    std::tuple<quern_entity, query_item<T>...> operator*() const
    {
        return {entities_[row_], loop_item<T>::argument::at(std::get<i>(states_), row_)...};
    }
    row_iterator &operator++()
    {
        if (++row_ == count_) next_view();
        return *this;
    }
    bool operator!=(loop_end) const { return count_ > 0; }

  private:
    using items = lambda<std::tuple<query_item<T>...>>;

    void next_view()
    {
        row_ = 0;
        count_ = 0;
        while (count_ == 0 && loop_.next()) {
            const quern_view *const view = loop_.view();
            count_ = view->count;
            entities_ = view->entities;
            ((std::get<i>(states_) =
                  loop_item<T>::argument::fetch(nullptr, view, items::template term_of<i>())),
             ...);
        }
    }

    uint32_t row_, count_;
    const quern_entity *entities_ = nullptr;
    std::tuple<typename loop_item<T>::argument::state...> states_;
    loop loop_;
};

template <typename Types, typename Indices> class chunk_iterator;

/* Steps through views. */
template <typename... T, std::size_t... i>
class chunk_iterator<std::tuple<T...>, std::index_sequence<i...>> {
  public:
    chunk_iterator(quern_query *query, quern_result *out_result)
        : loop_(query, out_result), has_view_(loop_.next())
    {
    }

    std::tuple<column<const quern_entity>, typename loop_item<T>::column_type...> operator*() const
    {
        const quern_view *const view = loop_.view();
        const uint32_t count = view->count;
        return {column<const quern_entity>(view->entities, count),
                loop_item<T>::all(
                    loop_item<T>::argument::fetch(nullptr, view, items::template term_of<i>()), count)...};
    }
    chunk_iterator &operator++()
    {
        has_view_ = loop_.next();
        return *this;
    }
    bool operator!=(loop_end) const { return has_view_; }

  private:
    using items = lambda<std::tuple<query_item<T>...>>;

    loop loop_;
    bool has_view_;
};

/* What a range-based loop goes through. */
template <typename Iterator> class loop_range {
  public:
    loop_range(quern_query *query, quern_result *out_result) : query_(query), out_result_(out_result) {}
    Iterator begin() const { return Iterator(query_, out_result_); }
    loop_end end() const { return {}; }

  private:
    quern_query *query_;
    quern_result *out_result_;
};

} // namespace detail
/** @endcond */

} // namespace quern

#endif
