/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_KIT_GRID_HPP
#define QUERN_KIT_GRID_HPP

/** @file
 * Spatial search in C++17; see <quern/kit/grid.h>. Link quern::quern_grid, and after it quern::quern.
 *
 *     quern::grid<&Position::x, &Position::y> rocks{app, quern::cell_size{2}, quern::with<Rock>{}};
 *     rocks.add_systems(app);
 *     app.add("hit", [&rocks](const Position &at, quern::commands commands, quern::context context) {
 *         for (auto rock : rocks.in(context).radius(at, 1))
 *             commands.accumulate(rock.entity, Health{-1});
 *     }, quern::searches{rocks});
 *
 * Threads: main, between frames, unless a comment says otherwise. Any number of threads may search while no thread builds
 * the grid. */

#include <quern/kit/grid.h>
#include <quern/quern.hpp>

#include <cstdio>

namespace quern {

/* ------------------------------------------------------------------------------------------- options */

/** Name of a grid: an option. It is the name of its resource, and part of the names of its systems. */
struct grid_name {
    const char *name; /**< The name. */
};
/** Width of the cells of a grid: an option. Without it, each build chooses one. */
struct cell_size {
    float value; /**< The width along each axis. */
};
/** The box that a grid divides into cells: an option. Without it, each build takes the bounding box of all positions. */
struct grid_box {
    float min[3]; /**< Lower corner; the third number is 0 in two dimensions. */
    float max[3]; /**< Upper corner. */
};
/** The largest number of cells of a grid: an option. */
struct max_cell_count {
    uint32_t value; /**< The number. */
};
/** Components whose presence a grid notes for each entity, as bits: an option. See quern::found_item. */
template <typename... T> struct marks {
};
/** The component that a grid copies with each position: an option. See quern::grid_searches::payload. */
template <typename T> struct payload {
};

/** @cond internal */
namespace detail {

/* The members of a component that are the coordinates of a grid. */
template <auto first, auto... others> struct coordinates {
    using owner = typename member_types<decltype(first)>::owner;
    using coordinate = typename member_types<decltype(first)>::type;
    static constexpr bool is_array = std::is_array<coordinate>::value;
    static constexpr std::size_t dimension_count =
        is_array ? std::extent<coordinate>::value : 1 + sizeof...(others);

    static_assert(std::is_same<std::remove_extent_t<coordinate>, float>::value &&
                      (std::is_same<typename member_types<decltype(others)>::type, float>::value && ...),
                  "quern: the coordinates of a grid are members of type float, or one array of floats");
    static_assert((std::is_same<typename member_types<decltype(others)>::owner, owner>::value && ...),
                  "quern: the coordinates of a grid are members of one component");
    static_assert((dimension_count == 2 || dimension_count == 3) && (!is_array || sizeof...(others) == 0),
                  "quern: a grid has two or three coordinates");

    static void define(quern_grid_def &def)
    {
        const uint32_t offsets[] = {offset_of<first>(), offset_of<others>()...};
        for (std::size_t i = 0; i < dimension_count; i++)
            def.offsets_bytes[i] = is_array ? offsets[0] + static_cast<uint32_t>(i * sizeof(float))
                                            : offsets[is_array ? 0 : i];
        def.planar = dimension_count == 2;
    }
    static void read(const owner &value, float *out)
    {
        if constexpr (is_array) {
            for (std::size_t i = 0; i < dimension_count; i++)
                out[i] = (value.*first)[i];
        } else {
            const float all[] = {value.*first, value.*others...};
            for (std::size_t i = 0; i < dimension_count; i++)
                out[i] = all[i];
        }
    }
};

inline quern_result apply_grid(const grid_name &option, quern_world *, quern_grid_def &def)
{
    def.name = option.name;
    return QUERN_OK;
}
inline quern_result apply_grid(const cell_size &option, quern_world *, quern_grid_def &def)
{
    def.cell_size = option.value;
    return QUERN_OK;
}
inline quern_result apply_grid(const grid_box &option, quern_world *, quern_grid_def &def)
{
    for (int axis = 0; axis < 3; axis++) {
        def.min[axis] = option.min[axis];
        def.max[axis] = option.max[axis];
    }
    return QUERN_OK;
}
inline quern_result apply_grid(const max_cell_count &option, quern_world *, quern_grid_def &def)
{
    def.max_cell_count = option.value;
    return QUERN_OK;
}
/* Appends the components of types to a list. */
template <std::size_t capacity, typename... T>
quern_result append_components(quern_world *world, quern_component (&list)[capacity], const char *option)
{
    return detail::each_component<T...>(world, [&list, option](quern_component component) {
        return detail::append(list, component, option);
    });
}
template <typename... T>
quern_result apply_grid(const with<T...> &, quern_world *world, quern_grid_def &def)
{
    return detail::append_components<QUERN_GRID_MAX_FILTERS, T...>(world, def.with, "with");
}
template <typename... T>
quern_result apply_grid(const without<T...> &, quern_world *world, quern_grid_def &def)
{
    return detail::append_components<QUERN_GRID_MAX_FILTERS, T...>(world, def.without, "without");
}
template <typename... T>
quern_result apply_grid(const marks<T...> &, quern_world *world, quern_grid_def &def)
{
    return detail::append_components<QUERN_GRID_MAX_MARKS, T...>(world, def.marks, "marks");
}
template <typename T> quern_result apply_grid(const payload<T> &, quern_world *world, quern_grid_def &def)
{
    static_assert(
        std::is_trivially_copyable<T>::value && !std::is_empty<T>::value,
        "quern: a grid copies its payload as bytes: this type is a tag, or not trivially copyable");
    return detail::find_component<T>(world, &def.payload);
}

template <typename... T> inline constexpr bool has_plain_types<marks<T...>> = has_plain_types<with<T...>>;
template <typename T> inline constexpr bool has_plain_types<payload<T>> = is_plain<T>;

template <typename O, typename = void> inline constexpr bool is_grid_option = false;
template <typename O>
inline constexpr bool is_grid_option<O, std::void_t<decltype(detail::apply_grid(
                                            std::declval<const O &>(), static_cast<quern_world *>(nullptr),
                                            std::declval<quern_grid_def &>()))>> = true;

} // namespace detail
/** @endcond */

/* ------------------------------------------------------------------------------------------ searches */

/** A point of a search: made of a component that has the coordinates, or of the coordinates themselves. */
template <auto... members> class grid_point {
  public:
    using coordinates = detail::coordinates<members...>; /**< Internal. */

    /** The position that a component has. */
    grid_point(const typename coordinates::owner &value) { coordinates::read(value, at_); }
    /** The point with these coordinates, as many as the grid has dimensions. */
    template <typename... Number, std::enable_if_t<sizeof...(Number) == coordinates::dimension_count &&
                                                       (std::is_arithmetic<Number>::value && ...),
                                                   int> = 0>
    grid_point(Number... numbers) : at_{static_cast<float>(numbers)...}
    {
    }
    /** The coordinates. */
    const float *data() const { return at_; }

  private:
    float at_[3] = {};
};

/** What a search has found. Valid until the next build. */
struct found_item {
    quern_entity entity; /**< The entity; null if nothing was found. */
    const quern_grid_item
        *item; /**< The copy: position, and marks (bit i: the i-th type of quern::marks). */
    /** Of `radius` and `nearest`: squared distance from the point. Of `ray`: distance along the ray. Of `box`: 0. */
    float key;
    /** Whether something was found. */
    explicit operator bool() const { return item != nullptr; }
};

/** The items in a radius or a box: a range of quern::found_item, in the order of cells. */
class grid_range {
  public:
    /** Position in the range. */
    class iterator {
      public:
        /** Internal: begins with the next item of a search. */
        explicit iterator(const quern_grid_iterator &search) : search_(search)
        {
            is_at_item_ = quern_grid_next(&search_);
        }
        /** The item. */
        found_item operator*() const
        {
            return {search_.item->entity, search_.item, search_.is_box ? 0 : search_.square};
        }
        /** Goes on to the next item. */
        iterator &operator++()
        {
            is_at_item_ = quern_grid_next(&search_);
            return *this;
        }
        /** Whether there is an item. */
        bool operator!=(detail::loop_end) const { return is_at_item_; }

      private:
        quern_grid_iterator search_;
        bool is_at_item_;
    };

    /** Internal: the range of a search that has not begun. */
    explicit grid_range(const quern_grid_iterator &search) : search_(search) {}
    /** The first item. */
    iterator begin() const { return iterator(search_); }
    /** The end. */
    detail::loop_end end() const { return {}; }

  private:
    quern_grid_iterator search_;
};

/** The searches of a grid. Points are components with the coordinates, or numbers in braces: `radius({3, 4}, 1)`. Of a
 * grid, or of what quern::grid::in returns in a system. */
template <auto... members> class grid_searches {
  public:
    using point = grid_point<members...>; /**< A point. */

    /** Makes the object for a grid of the C interface. */
    explicit grid_searches(const quern_grid *found) : searched_(found) {}

    /** Finds the items within a radius, its border included; see quern_grid_radius. */
    grid_range radius(const point &center, float radius) const
    {
        return grid_range(quern_grid_radius(searched_, center.data(), radius));
    }
    /** Finds the items in a box, its sides included; see quern_grid_box. */
    grid_range box(const point &min, const point &max) const
    {
        return grid_range(quern_grid_box(searched_, min.data(), max.data()));
    }
    /** Finds the nearest item within a radius (INFINITY: all); see quern_grid_nearest. */
    found_item nearest(const point &center, float radius) const
    {
        quern_grid_hit hit{};
        return quern_grid_nearest(searched_, center.data(), radius, &hit, 1) != 0 ? found_of(hit)
                                                                                  : found_item{};
    }
    /** Stores up to count nearest items, nearest first, and returns their number; see quern_grid_nearest. */
    uint32_t nearest(const point &center, float radius, quern_grid_hit *out_hits, uint32_t count) const
    {
        return quern_grid_nearest(searched_, center.data(), radius, out_hits, count);
    }
    /** Finds the first item that a ball touches along a ray; see quern_grid_ray. */
    found_item ray(const point &origin, const point &direction, float length, float radius) const
    {
        quern_grid_hit hit{};
        return quern_grid_ray(searched_, origin.data(), direction.data(), length, radius, &hit, 1) != 0
                   ? found_of(hit)
                   : found_item{};
    }
    /** Stores up to count items that a ball touches along a ray, the first ones first, and returns their number. */
    uint32_t ray(const point &origin, const point &direction, float length, float radius,
                 quern_grid_hit *out_hits, uint32_t count) const
    {
        return quern_grid_ray(searched_, origin.data(), direction.data(), length, radius, out_hits, count);
    }
    /** Calls the lambda `f(const quern_grid_pair &)`, or `f(uint32_t part, const quern_grid_pair &)`, with each pair of items
     * that are at most a radius apart, on several threads: of one part, in order; of different parts, at the same time. The
     * lambda must not change what it captures, except at the index of its part. jobs may be nullptr. Errors: as
     * quern_grid_pairs. */
    template <typename F>
    QUERN__CPP_NODISCARD quern_result pairs(quern_jobs *jobs, float radius, F &&f) const
    {
        auto &&call = detail::callable(f);
        using type = std::remove_reference_t<decltype(call)>;
        return quern::check(quern_grid_pairs(
            searched_, jobs, radius,
            [](void *user_data, [[maybe_unused]] uint32_t part, const quern_grid_pair *pairs,
               uint32_t count) noexcept {
                for (uint32_t i = 0; i < count; i++)
                    if constexpr (std::is_invocable<type &, uint32_t, const quern_grid_pair &>::value)
                        (*static_cast<type *>(user_data))(part, pairs[i]);
                    else
                        (*static_cast<type *>(user_data))(pairs[i]);
            },
            detail::address_of_call(call)));
    }
    /** Number of parts of `pairs`; see quern_grid_part_count. */
    uint32_t part_count() const { return quern_grid_part_count(searched_); }
    /** The payload of an item, which the option quern::payload of the same type has copied. Precondition: the item was found
     * since the last build. */
    template <typename T> const T &payload(const found_item &found) const
    {
        return *static_cast<const T *>(quern_grid_payload(searched_, found.item));
    }
    /** The items by cell, for searches of your own; see quern_grid_get_cells and quern_grid_cell_along. */
    const quern_grid_cells &cells() const { return *quern_grid_get_cells(searched_); }

  private:
    static found_item found_of(const quern_grid_hit &hit) { return {hit.item->entity, hit.item, hit.key}; }

    const quern_grid *searched_;
};

/* ---------------------------------------------------------------------------------------------- grid */

/** The entities of a component by their positions, in two or three dimensions. The arguments are the members of the
 * component that are the coordinates: `&Position::x, &Position::y`, or `&Body::place` for an array of two or three floats.
 *
 * Declare it after its world. If a quern::schedule has its systems, declare the schedule after the grid; a grid whose systems
 * are in an app takes them out of the app when it ends. It stays where it is: its systems refer to it. */
template <auto... members> class grid : public grid_searches<members...> {
  public:
    using typename grid_searches<members...>::point;

    /** Creates an empty grid. Options: quern::grid_name, cell_size, grid_box, max_cell_count, with, without, marks, payload.
     * See quern_grid_create. */
    template <typename... Options>
    explicit grid(quern::world &world, const Options &...options)
        : grid(world.ends_on_failure(), create(world, options...))
    {
    }
    grid(const grid &) = delete;
    grid &operator=(const grid &) = delete;
    /** The grid of the C interface; nullptr if the constructor failed. */
    operator quern_grid *() const { return raw_.get(); }

    /** Adds the systems that keep the grid up to date to a phase of an app; see quern_grid_add_systems. Once per grid. */
    quern_result add_systems(quern::app &app, uint32_t phase = 0)
    {
        const quern_result result = quern_grid_add_systems(raw_.get(), app.schedule(), phase);
        quern_type_info info{};
        if (quern_resource_get_info(app, resource(), &info) == QUERN_OK)
            for (const char *word : {"watch", "build"}) {
                char name[QUERN_MAX_NAME_BYTES + 1];
                (void)std::snprintf(name, sizeof name, "%s %s", word, info.name);
                in_app_.note(app.schedule(), name);
            }
        return check(result);
    }
    /** Adds them to a phase of a schedule, which must be destroyed before the grid. */
    QUERN__CPP_NODISCARD quern_result add_systems(quern::schedule &schedule, uint32_t phase = 0)
    {
        return check(quern_grid_add_systems(raw_.get(), schedule, phase));
    }
    /** Builds the grid from the current entities; see quern_grid_build. jobs may be nullptr. */
    quern_result build(quern_jobs *jobs = nullptr) { return check(quern_grid_build(raw_.get(), jobs)); }
    /** Makes the next frame build the grid; see quern_grid_mark. */
    void mark() { quern_grid_mark(raw_.get()); }
    /** The resource that systems declare to search the grid; the option quern::searches does so. */
    quern_resource resource() const { return quern_grid_resource(raw_.get()); }
    /** Returns the statistics; see quern_grid_get_stats. */
    quern_grid_stats stats() const
    {
        quern_grid_stats numbers{};
        (void)check(quern_grid_get_stats(raw_.get(), &numbers));
        return numbers;
    }
    /** The grid in a system that has declared quern::searches. Ends the program with the message if it has not. */
    grid_searches<members...> in(const quern::context &context) const
    {
        const quern_grid *const found = quern_context_grid(context, resource());
        if (found == nullptr) quern__must_end("quern::grid::in", nullptr, 0);
        return grid_searches<members...>(found);
    }

  private:
    struct made {
        quern_grid *raw;
        quern_result result;
    };

    grid(bool ends, made created) : grid_searches<members...>(created.raw), raw_(created.raw), ends_(ends)
    {
        (void)check(created.result);
    }
    template <typename... Options> static made create(quern_world *world, const Options &...options)
    {
        using coordinates = detail::coordinates<members...>;
        constexpr bool has_options = (detail::is_grid_option<Options> && ... && true),
                       has_plain_types = (detail::has_plain_types<Options> && ... && true);
        static_assert(has_options, "quern: the options of grids are quern::grid_name, cell_size, grid_box, "
                                   "max_cell_count, with, without, marks and payload");
        static_assert(has_plain_types,
                      "quern: with, without, marks and payload take types of components: no reference, "
                      "pointer or const");
        made created{nullptr, QUERN_OK};
        if constexpr (has_options && has_plain_types) {
            quern_grid_def def{};
            coordinates::define(def);
            quern_result &result = created.result;
            result = detail::find_component<typename coordinates::owner>(world, &def.position);
            if (result == QUERN_OK)
                (void)((result = detail::apply_grid(options, world, def), result == QUERN_OK) && ...);
            if (result == QUERN_OK) result = quern_grid_create(world, &def, &created.raw);
        }
        return created;
    }
    quern_result check(quern_result result) const { return detail::check_for(result, ends_); }

    struct destroy {
        void operator()(quern_grid *raw) const { quern_grid_destroy(raw); }
    };

    std::unique_ptr<quern_grid, destroy> raw_;
    bool ends_;
    detail::app_systems in_app_; /* destroyed first */
};

/** Declares that a system searches a grid: an option. */
struct searches : uses_resource {
    /** The grid. */
    template <auto... members>
    explicit searches(const grid<members...> &searched)
        : uses_resource{searched.resource(), QUERN_ACCESS_READ}
    {
    }
};

} // namespace quern

#endif
