/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_GETTERS_HPP
#define QUERN_GETTERS_HPP

/** @file
 * Getters find values of one component fast, and refs remember where they were (<quern/getter.h>):
 *
 *     quern::getter<Position> positions(world, quern::with_refs);
 *     quern::ref<Position> ref(entity);
 *     if (const Position *position = positions.get(ref)) ... */

#include <quern/quern.hpp>

namespace quern {

/** Makes a quern::getter that can be used with refs. */
struct with_refs_option {};
inline constexpr with_refs_option with_refs{}; /**< The option. */

/** A handle, and the address at which a getter found its value; see quern_ref. */
template <typename T> class ref {
  public:
    /** Makes a ref for an entity. */
    explicit ref(quern_entity entity = quern_entity_null()) { raw_.entity = entity; }
    /** Returns the handle. */
    quern_entity handle() const { return raw_.entity; }
    /** Returns the ref of the C interface. */
    quern_ref *raw() { return &raw_; }

  private:
    quern_ref raw_{};
};

/** Finds the values of one component; destroyed with the object. Declare it after its world. */
template <typename T> class getter : public detail::owner<quern_getter, quern_getter_destroy> {
    static_assert(!std::is_empty<T>::value && detail::is_plain<T>,
                  "quern: a getter finds values: name the type of a component with a value");

  public:
    /** Creates a getter; see quern_getter_create. */
    explicit getter(quern::world &world) : getter(world, false) {}
    /** Creates a getter for refs. */
    getter(quern::world &world, with_refs_option) : getter(world, true) {}
    /** Returns the address of the value, to read; nullptr as for quern_getter_get. */
    const T *get(quern_entity entity) const
    {
        return static_cast<const T *>(quern_getter_get(raw_, entity));
    }
    /** Returns the address of the value, to read and to write. */
    T *get_write(quern_entity entity) const
    {
        return static_cast<T *>(quern_getter_get_write(raw_, entity));
    }
    /** Returns the address of the value of a ref's entity, to read; see quern_ref_get. */
    const T *get(ref<T> &of) const { return static_cast<const T *>(quern_ref_get(raw_, of.raw())); }
    /** Returns the address of the value of a ref's entity, to read and to write. */
    T *get_write(ref<T> &of) const { return static_cast<T *>(quern_ref_get_write(raw_, of.raw())); }
    /** Calls the lambda `f(index, const T &)` for each of count entities that has the component, in order. The search for
     * all of them costs less than one by one; see quern_getter_get_many. */
    template <typename F> void each(const quern_entity *entities, uint32_t count, F &&f) const
    {
        const void *values[block];
        for (uint32_t first = 0; first < count; first += block) {
            const uint32_t in_block = count - first < block ? count - first : block;
            (void)quern_getter_get_many(raw_, entities + first, in_block, values);
            for (uint32_t i = 0; i < in_block; i++)
                if (values[i] != nullptr) f(first + i, *static_cast<const T *>(values[i]));
        }
    }
    /** The same with `f(index, T &)`, to write. */
    template <typename F> void each_write(const quern_entity *entities, uint32_t count, F &&f) const
    {
        void *values[block];
        for (uint32_t first = 0; first < count; first += block) {
            const uint32_t in_block = count - first < block ? count - first : block;
            (void)quern_getter_get_many_write(raw_, entities + first, in_block, values);
            for (uint32_t i = 0; i < in_block; i++)
                if (values[i] != nullptr) f(first + i, *static_cast<T *>(values[i]));
        }
    }

  private:
    static constexpr uint32_t block = 128; /* entities that one search finds */

    getter(quern::world &world, bool has_refs) : getter::owner(world.ends_on_failure())
    {
        quern_getter_def def{};
        quern_result result = detail::find_component<T>(world, &def.component);
        def.refs = has_refs;
        if (result == QUERN_OK) result = quern_getter_create(world, &def, &this->raw_);
        (void)this->check(result);
    }

    using detail::owner<quern_getter, quern_getter_destroy>::raw_;
};

} // namespace quern

#endif
