/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_QUERN_HPP
#include <quern/quern.hpp> /* includes this header before quern::world */
#elif !defined(QUERN_ENTITY_HPP)
#define QUERN_ENTITY_HPP

/** @file
 * Entities as objects: a handle, and the world that it belongs to.
 *
 *     auto ship = app.create(Position{1, 2}, Hull{});
 *     ship.set(Velocity{3, 4});
 *     ship.relate(app.parent(), fleet);
 *     for (auto gun : ship.children())
 *         if (Heat *heat = gun.try_get<Heat>()) heat->degrees = 0; */

/** Compare handles. They are templates, so that a program may have its own. */
template <typename E, std::enable_if_t<std::is_same<E, quern_entity>::value, int> = 0>
constexpr bool operator==(E a, E b)
{
    return a.bits == b.bits;
}
/** Compares handles. */
template <typename E, std::enable_if_t<std::is_same<E, quern_entity>::value, int> = 0>
constexpr bool operator!=(E a, E b)
{
    return a.bits != b.bits;
}
/** Orders handles, for sets and maps; the order depends on the process. */
template <typename E, std::enable_if_t<std::is_same<E, quern_entity>::value, int> = 0>
constexpr bool operator<(E a, E b)
{
    return a.bits < b.bits;
}

namespace quern {

/** The null entity. */
inline constexpr quern_entity null{};

/** @cond internal */
namespace detail {
template <typename T, typename = void> inline constexpr bool is_comparable = false;
template <typename T>
inline constexpr bool
    is_comparable<T, std::void_t<decltype(std::declval<const T &>() == std::declval<const T &>())>> = true;

/* A result that the program must read, or one that it need not. */
#ifdef QUERN_CPP_EXCEPTIONS
using read_result = quern_result;
#else
class [[nodiscard]] read_result {
  public:
    read_result(quern_result result) : result_(result) {}
    operator quern_result() const { return result_; }

  private:
    quern_result result_;
};
#endif

/* Reports that an entity has no value that a reference could refer to. */
QUERN__NO_RETURN inline void end_without_value(quern_world *world, quern_entity entity, const char *type)
{
    const uint32_t index = quern_entity_index(entity), use_count = quern_entity_use_count(world, entity);
    (void)quern::check(quern_entity_is_alive(world, entity)
                           ? quern_error_set(QUERN_ERROR_COMPONENT_ABSENT,
                                             "quern::entity_ref::get: entity %u:%u does not have component "
                                             "'%s': set it before, or call try_get",
                                             index, use_count, type)
                           : quern_error_set(QUERN_ERROR_STALE_ENTITY,
                                             "quern::entity_ref::get: entity %u:%u is not alive: test kept "
                                             "handles by is_alive",
                                             index, use_count));
    quern__must_end("quern::entity_ref::get", nullptr, 0);
}

enum class link { targets, sources };

/* The entities that a range-based loop over the targets or sources of an entity goes through. */
template <typename Ref, link kind> class linked_range {
  public:
    struct end_type {};
    class iterator {
      public:
        iterator(Ref from, quern_relation relation) : from_(from), relation_(relation)
        {
            current_ = after(quern_entity_null());
            if (current_.bits == 0) return;
            quern_relation_def def{};
            is_many_ = quern_relation_get_def(from.world(), relation, &def) == QUERN_OK && def.many;
            find_next();
        }
        Ref operator*() const { return Ref(from_, current_); }
        iterator &operator++()
        {
            current_ = is_many_ ? after(current_) : next_;
            if (current_.bits != 0)
                find_next();
            else if (is_many_ && !from_.is_alive())
                end_of_changed_list(from_);
            return *this;
        }
        bool operator!=(end_type) const { return current_.bits != 0; }

      private:
        quern_entity after(quern_entity entity) const
        {
            return kind == link::targets
                       ? quern_entity_next_target(from_.world(), from_, relation_, entity)
                       : quern_entity_next_source(from_.world(), from_, relation_, entity);
        }
        /* With `many`, the next entity is found by the index of the current one, which need not be in the list any more.
         * Without, it is found before the body may take the current one from the list. */
        void find_next()
        {
            if (is_many_) return;
            next_ = after(current_);
            if (next_.bits == 0 && !is_listed()) end_of_changed_list(current_);
        }
        bool is_listed() const
        {
            const quern_entity source = kind == link::targets ? from_.handle() : current_;
            const quern_entity target = kind == link::targets ? current_ : from_.handle();
            return quern_entity_is_alive(from_.world(), current_) && from_.is_alive() &&
                   quern_entity_has_target(from_.world(), source, relation_, target);
        }
        void end_of_changed_list(quern_entity entity) const
        {
            (void)quern::check(quern_error_set(
                QUERN_ERROR_STRUCTURE_CHANGED,
                "the body of a loop destroyed or moved entity %u:%u, by which the loop goes "
                "on: change only the current entity, or list the entities before the loop",
                quern_entity_index(entity), quern_entity_use_count(from_.world(), entity)));
            quern__must_end("a loop over targets or sources", nullptr, 0);
        }

        Ref from_;
        quern_relation relation_;
        bool is_many_ = false;
        quern_entity current_ = quern_entity_null(), next_ = quern_entity_null();
    };

    linked_range(Ref from, quern_relation relation) : from_(from), relation_(relation) {}
    iterator begin() const { return iterator(from_, relation_); }
    end_type end() const { return {}; }

  private:
    Ref from_;
    quern_relation relation_;
};

/* Values of edges, of which the C calls do not know the C++ type. */
template <typename T>
quern_result relate_with(quern_world *world, quern_entity source, quern_relation relation,
                         quern_entity target, const T &value)
{
    const quern_result checked = quern__world_check_edge(world, relation, sizeof(T), "relate");
    return checked != QUERN_OK
               ? checked
               : quern_entity_relate_with(world, source, relation, target, std::addressof(value));
}

template <typename T>
quern_result set_edge_value(quern_world *world, quern_entity source, quern_relation relation,
                            quern_entity target, const T &value)
{
    const quern_result checked = quern__world_check_edge(world, relation, sizeof(T), "set_edge_value");
    return checked != QUERN_OK
               ? checked
               : quern_entity_set_edge_value(world, source, relation, target, std::addressof(value));
}

template <typename T>
const T *edge_value(const quern_world *world, quern_entity source, quern_relation relation,
                    quern_entity target)
{
    if (quern__world_check_edge(world, relation, sizeof(T), "edge_value") != QUERN_OK) return nullptr;
    return static_cast<const T *>(quern_entity_edge_value(world, source, relation, target));
}
} // namespace detail
/** @endcond */

/** An entity of a world: its handle, and the world. A copy refers to the same entity. An object converts to its handle, so it
 * is passed wherever a handle is. It neither keeps the entity alive nor outlives the world; components store handles. A call
 * does what the call of quern::world with the same name does, and costs the same.
 *
 * The results of a quern::entity_ref must be read. A quern::app has objects of type quern::app_entity_ref: if a call fails,
 * it ends the program, unless the app was made with quern::returns_failures, and results need not be read. */
template <bool is_of_app> class basic_entity_ref {
  public:
    /** What calls return that change the entity: a quern_result. */
    using result = std::conditional_t<is_of_app, quern_result, detail::read_result>;

    /** Makes an object without a world, for a null handle. Calls that change it fail. */
    basic_entity_ref() = default;
    /** Makes an object for a handle. ends: whether a call that fails ends the program. */
    basic_entity_ref(quern_world *world, quern_entity entity, bool ends = is_of_app)
        : world_(world), entity_(entity), ends_(ends)
    {
    }
    /** Makes an object for another entity of the same world. */
    basic_entity_ref(const basic_entity_ref &other, quern_entity entity)
        : basic_entity_ref(other.world_, entity, other.ends_)
    {
    }
    /** Makes an object whose results must be read of one of an app. */
    template <bool other, std::enable_if_t<other && !is_of_app, int> = 0>
    basic_entity_ref(const basic_entity_ref<other> &from)
        : basic_entity_ref(from.world(), from.handle(), from.ends_on_failure())
    {
    }

    /** Returns the handle. */
    quern_entity handle() const { return entity_; }
    /** Returns the handle. */
    operator quern_entity() const { return entity_; }
    /** Returns the world; nullptr in an object without one. */
    quern_world *world() const { return world_; }
    /** Returns whether a call that fails ends the program. */
    bool ends_on_failure() const { return ends_; }
    /** Returns whether the entity is alive. */
    bool is_alive() const { return world_ != nullptr && quern_entity_is_alive(world_, entity_); }
    /** Returns whether the entity is alive: `if (auto ship = app.find("ship"))`. */
    explicit operator bool() const { return is_alive(); }
    /** Destroys the entity; see quern_entity_destroy. */
    result destroy() const { return check(quern_entity_destroy(world_, entity_)); }

    /** @name Components
     * @{ */
    /** Sets a value, and adds the component if it is missing. */
    template <typename T> result set(T &&value) const { return set_passed(detail::passed<T>(value)); }
    /** Sets a copy of a value, whose type may be named, and adds the component if it is missing. */
    template <typename T> result set(const T &value) const
    {
        return set_passed(detail::passed<const T &>(value));
    }
    /** Adds a component, default constructed. */
    template <typename T> result add() const
    {
        expect_component<T>();
        static_assert(std::is_default_constructible<T>::value,
                      "quern: this type has no default constructor: use set, with a value");
        quern_component component;
        const quern_result found = detail::find_component<T>(world_, &component);
        return check(found == QUERN_OK ? quern_entity_add(world_, entity_, component, nullptr) : found);
    }
    /** Removes a component; see quern_entity_remove. */
    template <typename T> result remove() const
    {
        expect_component<T>();
        return check(quern_entity_remove(world_, entity_, component<T>()));
    }
    /** Returns whether the entity has all the components. */
    template <typename... T> bool has() const
    {
        static_assert(sizeof...(T) > 0, "quern: name the components that the entity shall have");
        (expect_component<T>(), ...);
        return (quern_entity_has(world_, entity_, component<T>()) && ...);
    }
    /** Returns the address of the value; nullptr if the entity lacks the component. Valid until the next structural
     * change. */
    template <typename T> std::remove_reference_t<T> *try_get() const
    {
        expect_component<T>();
        using type = std::remove_reference_t<T>;
        static_assert(!std::is_empty<type>::value, "quern: a tag has no value: call has");
        return static_cast<type *>(
            quern_entity_get(world_, entity_, component<std::remove_const_t<type>>()));
    }
    /** Returns the value. Valid until the next structural change. If the entity lacks the component, the call throws, or
     * ends the program, also without an app. */
    template <typename T> T &get() const
    {
        auto *const value = try_get<T>();
        if (value == nullptr)
            detail::end_without_value(world_, entity_, detail::name_of<detail::bare<T>>());
        return *value;
    }
    /** Returns the value, after adding a default constructed one if the entity lacks the component. Valid until the next
     * structural change. If it cannot be added, the call throws, or ends the program, also without an app. See
     * quern_entity_ensure. */
    template <typename T> T &ensure() const
    {
        expect_component<T>();
        static_assert(!std::is_empty<T>::value, "quern: a tag has no value: call set");
        static_assert(std::is_default_constructible<T>::value,
                      "quern: the component has no default constructor: call set, with a value");
        (void)check(quern_entity_ensure(world_, entity_, component<T>(), nullptr, nullptr));
        return get<T>();
    }
    /** Sets a value if it differs from the present one, or adds it. Returns whether it was set; see
     * quern_entity_set_if_different. Values are compared by ==; those without this operator by their fields or bytes. */
    template <typename T> bool set_if_different(const T &value) const
    {
        expect_component<T>();
        static_assert(std::is_copy_constructible<T>::value,
                      "quern: the component cannot be copied: compare it, and call set with std::move");
        if constexpr (detail::is_comparable<T>) {
            const T *now = try_get<T>();
            return (now == nullptr || !(*now == value)) && set(value) == QUERN_OK;
        } else {
            static_assert(std::is_trivially_copyable<T>::value,
                          "quern: the component has no operator== to compare it by");
            bool is_set = false;
            (void)check(quern_entity_set_if_different(world_, entity_, component<T>(),
                                                      std::addressof(value), &is_set));
            return is_set;
        }
    }
    /** Removes all components and tags, but no relations and no name; see quern_entity_clear. */
    result clear() const { return check(quern_entity_clear(world_, entity_)); }
    /** Copies the entity and its descendants, below the same parent; see quern_entity_clone. */
    basic_entity_ref clone() const
    {
        quern_entity copy = quern_entity_null();
        (void)check(quern_entity_clone(world_, entity_, nullptr, &copy));
        return {*this, copy};
    }
    /** Copies the entity and its descendants, with changes; see quern_entity_clone and quern::instances. */
    basic_entity_ref clone(const quern_spawn_def &def) const
    {
        quern_entity copy = quern_entity_null();
        (void)check(quern_entity_clone(world_, entity_, &def, &copy));
        return {*this, copy};
    }
    /** Tells change filters that a value was changed through its address; see quern_entity_mark_changed. */
    template <typename T> result mark_changed() const
    {
        expect_component<T>();
        return check(quern_entity_mark_changed(world_, entity_, component<T>()));
    }
    /** Enables or disables a component; see quern_entity_set_component_enabled. */
    template <typename T> result set_enabled(bool enabled) const
    {
        expect_component<T>();
        return check(quern_entity_set_component_enabled(world_, entity_, component<T>(), enabled));
    }
    /** Returns whether the entity has the component, and it is enabled. */
    template <typename T> bool is_enabled() const
    {
        expect_component<T>();
        return quern_entity_is_component_enabled(world_, entity_, component<T>());
    }
    /** Enables or disables the entity; see quern_entity_set_enabled. */
    result set_enabled(bool enabled) const
    {
        return check(quern_entity_set_enabled(world_, entity_, enabled));
    }
    /** Returns whether the entity is alive and enabled; see quern_entity_is_enabled. */
    bool is_enabled() const { return quern_entity_is_enabled(world_, entity_); }
    /** @} */

    /** @name Names and numbers
     * @{ */
    /** Sets the name; see quern_entity_set_name. */
    result set_name(const char *name) const { return check(quern_entity_set_name(world_, entity_, name)); }
    /** Returns the name; nullptr if the entity has none. See quern_entity_name. */
    const char *name() const { return quern_entity_name(world_, entity_); }
    /** Writes the path from the root; see quern_entity_get_path. */
    result path(const quern_sink &sink) const
    {
        return check(quern_entity_get_path(world_, entity_, sink));
    }
    /** Returns the entity at a path of names below this one; null if there is none. See quern_entity_find_child. */
    basic_entity_ref find(const char *path) const
    {
        return {*this, quern_entity_find_child(world_, entity_, path)};
    }
    /** Returns how many entities have had the slot; see quern_entity_use_count. */
    uint32_t use_count() const { return quern_entity_use_count(world_, entity_); }
    /** Returns a seed for random numbers of the entity; see quern_entity_seed. */
    uint64_t seed() const { return quern_entity_seed(world_, entity_); }
    /** Returns the key by which deltas refer to the entity; see quern_entity_key. */
    uint64_t key() const { return quern_entity_key(world_, entity_); }
    /** @} */

    /** @name Relations
     * @{ */
    /** Sets the target, or adds one in a relation with `many`; see quern_entity_relate. */
    result relate(quern_relation relation, quern_entity target) const
    {
        return check(quern_entity_relate(world_, entity_, relation, target));
    }
    /** Relates, and sets the value of the edge; see quern_entity_relate_with. Further error: LAYOUT_MISMATCH (values of
     * edges have another size than T). */
    template <typename T> result relate(quern_relation relation, quern_entity target, const T &value) const
    {
        return check(detail::relate_with(world_, entity_, relation, target, value));
    }
    /** Sets the value of an edge; see quern_entity_set_edge_value. Further error: LAYOUT_MISMATCH (values of edges have
     * another size than T). */
    template <typename T>
    result set_edge_value(quern_relation relation, quern_entity target, const T &value) const
    {
        return check(detail::set_edge_value(world_, entity_, relation, target, value));
    }
    /** Returns the value of the edge to a target, or the element in a relation with quern::many; nullptr if there is no such
     * edge, or, with a message, if values of edges have another size than T. See quern_entity_edge_value. */
    template <typename T> const T *edge_value(quern_relation relation, quern_entity target) const
    {
        return detail::edge_value<T>(world_, entity_, relation, target);
    }
    /** Removes all targets; see quern_entity_unrelate. */
    result unrelate(quern_relation relation) const
    {
        return check(quern_entity_unrelate(world_, entity_, relation));
    }
    /** Removes one target; see quern_entity_unrelate_from. */
    result unrelate(quern_relation relation, quern_entity target) const
    {
        return check(quern_entity_unrelate_from(world_, entity_, relation, target));
    }
    /** Returns the target, or the first one; null if there is none. See quern_entity_target. */
    basic_entity_ref target(quern_relation relation) const
    {
        return {*this, quern_entity_target(world_, entity_, relation)};
    }
    /** Returns whether the entity has the target; see quern_entity_has_target. */
    bool has_target(quern_relation relation, quern_entity target) const
    {
        return quern_entity_has_target(world_, entity_, relation, target);
    }
    /** Returns the number of targets; see quern_entity_target_count. */
    uint32_t target_count(quern_relation relation) const
    {
        return quern_entity_target_count(world_, entity_, relation);
    }
    /** Returns the number of entities that have this one as target; see quern_entity_source_count. */
    uint32_t source_count(quern_relation relation) const
    {
        return quern_entity_source_count(world_, entity_, relation);
    }
    /** Returns the targets, for range-based loops, in the order of quern_entity_next_target. The body may destroy the
     * current target, and remove it from the entity. In a relation with `many`, it may add and remove any. A loop that
     * cannot go on, as the body changed the entity or the target by which it does, throws, or ends the program. */
    detail::linked_range<basic_entity_ref, detail::link::targets> targets(quern_relation relation) const
    {
        return {*this, relation};
    }
    /** Returns the entities that have this one as target, for range-based loops, in the order of
     * quern_entity_next_source. The body may destroy the current source, and give it another target. In a relation with
     * `many`, it may add and remove any. Without, the loop knows the next source before the body runs: if the body
     * destroys or moves that one, or the entity itself while there is a next one, the loop throws, or ends the program. */
    detail::linked_range<basic_entity_ref, detail::link::sources> sources(quern_relation relation) const
    {
        return {*this, relation};
    }
    /** Returns the parent; null if there is none. */
    basic_entity_ref parent() const { return target(quern_world_parent(world_)); }
    /** Makes the entity the last child of a parent; null makes it a root. */
    result set_parent(quern_entity parent) const
    {
        const quern_relation hierarchy = quern_world_parent(world_);
        return parent.bits != 0              ? relate(hierarchy, parent)
               : target_count(hierarchy) > 0 ? unrelate(hierarchy)
                                             : result(QUERN_OK);
    }
    /** Returns the children, for range-based loops, in their order. The body may destroy the current child, and give it
     * another parent; see sources(). */
    detail::linked_range<basic_entity_ref, detail::link::sources> children() const
    {
        return sources(quern_world_parent(world_));
    }
    /** Returns the sibling after this entity; null after the last. See quern_entity_next_sibling. */
    basic_entity_ref next_sibling(quern_relation relation) const
    {
        return {*this, quern_entity_next_sibling(world_, entity_, relation)};
    }
    /** Returns the sibling before this entity; null before the first. See quern_entity_previous_sibling. */
    basic_entity_ref previous_sibling(quern_relation relation) const
    {
        return {*this, quern_entity_previous_sibling(world_, entity_, relation)};
    }
    /** Returns the number of siblings before this entity; see quern_entity_sibling_index. */
    uint32_t sibling_index(quern_relation relation) const
    {
        return quern_entity_sibling_index(world_, entity_, relation);
    }
    /** Moves the entity before a sibling, or to the end if that is null; see quern_entity_move_before. */
    result move_before(quern_relation relation, quern_entity before) const
    {
        return check(quern_entity_move_before(world_, entity_, relation, before));
    }
    /** Returns the part in a slot of an instance of a prefab, of which this is the root; null if there is none. See
     * quern_prefab_part. */
    basic_entity_ref part(quern_component slot) const
    {
        return {*this, quern_prefab_part(world_, entity_, slot)};
    }
    /** @} */

  private:
    template <typename T> static void expect_component()
    {
        static_assert(!std::is_reference<T>::value && !std::is_pointer<T>::value && !std::is_void<T>::value,
                      "quern: name the type of the component: no reference or pointer");
    }
    quern_result check(quern_result failed_or_not) const { return detail::check_for(failed_or_not, ends_); }
    template <typename T> quern_component component() const
    {
        quern_component found;
        return check(detail::find_component<T>(world_, &found)) == QUERN_OK ? found : quern_component{};
    }
    template <typename T> result set_passed(detail::passed<T> &&value) const
    {
        using type = typename detail::passed<T>::type;
        quern_component component;
        quern_result set = detail::find_component<type>(world_, &component);
        if (set == QUERN_OK) set = quern_entity_set(world_, entity_, component, value.address());
        value.end(set == QUERN_OK);
        return check(set);
    }

    quern_world *world_ = nullptr;
    quern_entity entity_ = quern_entity_null();
    bool ends_ = is_of_app;
};

/** An entity of a quern::world. */
using entity_ref = basic_entity_ref<false>;
/** An entity of a quern::app. */
using app_entity_ref = basic_entity_ref<true>;

/** @cond internal */
namespace detail {
template <bool is_of_app> inline constexpr bool can_be_kept<basic_entity_ref<is_of_app>> = false;
} // namespace detail
/** @endcond */

/** Compares entities. */
template <bool a, bool b> bool operator==(const basic_entity_ref<a> &x, const basic_entity_ref<b> &y)
{
    return x.handle().bits == y.handle().bits;
}
/** Compares entities. */
template <bool a> bool operator==(const basic_entity_ref<a> &x, quern_entity y)
{
    return x.handle().bits == y.bits;
}
/** Compares entities. */
template <bool a> bool operator==(quern_entity x, const basic_entity_ref<a> &y)
{
    return x.bits == y.handle().bits;
}
/** Compares entities. */
template <bool a, bool b> bool operator!=(const basic_entity_ref<a> &x, const basic_entity_ref<b> &y)
{
    return !(x == y);
}
/** Compares entities. */
template <bool a> bool operator!=(const basic_entity_ref<a> &x, quern_entity y)
{
    return !(x == y);
}
/** Compares entities. */
template <bool a> bool operator!=(quern_entity x, const basic_entity_ref<a> &y)
{
    return !(x == y);
}
/** Orders entities, for sets and maps; the order depends on the process. */
template <bool a, bool b> bool operator<(const basic_entity_ref<a> &x, const basic_entity_ref<b> &y)
{
    return x.handle().bits < y.handle().bits;
}

} // namespace quern

/** Hashes of handles, for unordered sets and maps. */
template <> struct std::hash<quern_entity> {
    /** Returns the hash. */
    std::size_t operator()(quern_entity entity) const noexcept
    {
        return std::hash<uint64_t>()(entity.bits * UINT64_C(0x9E3779B97F4A7C15));
    }
};
/** Hashes of entities, the same as those of their handles. */
template <bool is_of_app> struct std::hash<quern::basic_entity_ref<is_of_app>> {
    /** Returns the hash. */
    std::size_t operator()(const quern::basic_entity_ref<is_of_app> &entity) const noexcept
    {
        return std::hash<quern_entity>()(entity.handle());
    }
};

#endif
