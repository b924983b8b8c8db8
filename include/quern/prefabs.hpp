/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_PREFABS_HPP
#define QUERN_PREFABS_HPP

/** @file
 * Prefabs (<quern/prefab.h>) that a program describes, and the values in which instances differ:
 *
 *     quern::blueprint tower(app);
 *     tower.root().set(Position{0, 0}).set(Health{100});
 *     tower.root().child("gun").set(Gun{10});
 *     const quern_prefab prefab = tower.create();
 *     app.spawn(prefab, quern::instances(app).under(arena).override(&place)); */

#include <quern/quern.hpp>

namespace quern {

/** @cond internal */
namespace detail {

class kept_value {
  public:
    kept_value() = default;
    kept_value(const kept_value &) = delete;
    kept_value &operator=(const kept_value &) = delete;
    virtual ~kept_value() = default;
};
template <typename T> class kept_value_of : public kept_value {
  public:
    explicit kept_value_of(const T &from) : value(from) {}
    T value;
};

} // namespace detail
/** @endcond */

/** Describes a prefab, member by member, and creates it; see quern_prefab_create. The description may be used again, and
 * must not outlive its world. It is the template of quern::blueprint, so that only programs that use it compile it. */
template <typename = void> class basic_blueprint {
  public:
    /** A member of a description; valid as long as the description. */
    class member {
      public:
        /** Returns the handle that stands for the member in values and targets of the description. */
        quern_entity handle() const { return quern_prefab_member_handle(index_); }
        /** Returns the index of the member: in overrides, and in handles of instances. */
        uint32_t index() const { return index_; }
        /** Gives the member a copy of a value. */
        template <typename T> member set(const T &value) const
        {
            static_assert(std::is_copy_constructible<T>::value,
                          "quern: a prefab copies its values: this type has no copy constructor");
            if constexpr (std::is_empty<T>::value) {
                owner_->add_value(index_, owner_->template component<T>(), nullptr);
            } else if constexpr (std::is_copy_constructible<T>::value) {
                auto kept = std::make_unique<detail::kept_value_of<T>>(value);
                const void *const address = std::addressof(kept->value);
                owner_->kept_.push_back(std::move(kept));
                owner_->add_value(index_, owner_->template component<T>(), address);
            }
            return *this;
        }
        /** Gives the member a component, default constructed, or a tag. */
        template <typename T> member add() const
        {
            static_assert(std::is_default_constructible<T>::value,
                          "quern: this type has no default constructor: use set, with a value");
            owner_->add_value(index_, owner_->template component<T>(), nullptr);
            return *this;
        }
        /** Disables a component that the member has. If set or add did not give it one before, the prefab is not created. */
        template <typename T> member disable() const
        {
            const quern_component component = owner_->template component<T>();
            for (quern_prefab_value &value : owner_->parts_[index_].values)
                if (quern_component_equal(value.component, component)) {
                    value.is_disabled = true;
                    return *this;
                }
            if (owner_->result_ == QUERN_OK)
                owner_->result_ = quern_error_set(QUERN_ERROR_COMPONENT_ABSENT,
                                                  "quern::blueprint: member %u does not have component "
                                                  "'%s', which it disables: set it before",
                                                  index_, detail::name_of<T>());
            return *this;
        }
        /** Relates the member to a target: an entity, or handle() of a member. */
        member relate(quern_relation relation, quern_entity target) const
        {
            owner_->parts_[index_].targets.push_back({relation, target});
            return *this;
        }
        /** Makes instances of the member share the values of an entity; see quern::world::create_shared. */
        member share(quern_entity shared) const
        {
            owner_->parts_[index_].shared = shared;
            return *this;
        }
        /** Makes the member the part of instances in a slot; see quern::world::prefab_slot. */
        member slot(quern_component component) const
        {
            owner_->parts_[index_].slot = component;
            return *this;
        }
        /** Adds a child, behind the others. name, which is copied, may be nullptr. */
        member child(const char *name = nullptr) const { return owner_->add(index_, name); }

      private:
        friend class basic_blueprint;
        member(basic_blueprint *owner, uint32_t index) : owner_(owner), index_(index) {}

        basic_blueprint *owner_;
        uint32_t index_;
    };

    /** Begins a description with a root. */
    explicit basic_blueprint(quern::world &world) : world_(world), ends_(world.ends_on_failure())
    {
        add(0, nullptr);
    }
    basic_blueprint(const basic_blueprint &) = delete;
    basic_blueprint &operator=(const basic_blueprint &) = delete;
    /** Returns the root, member 0. */
    member root() { return member(this, 0); }
    /** Returns the number of members. */
    uint32_t member_count() const { return static_cast<uint32_t>(parts_.size()); }
    /** Creates the prefab; null on failure. Errors: as quern_prefab_create. */
    quern_prefab create()
    {
        std::vector<quern_prefab_member_def> members;
        quern_prefab prefab{};
        for (const part &each : parts_) {
            quern_prefab_member_def def{};
            def.parent = each.parent;
            def.name = each.name.empty() ? nullptr : each.name.data();
            def.slot = each.slot;
            def.shared = each.shared;
            def.values = each.values.data();
            def.value_count = static_cast<uint32_t>(each.values.size());
            def.targets = each.targets.data();
            def.target_count = static_cast<uint32_t>(each.targets.size());
            members.push_back(def);
        }
        quern_result result = result_;
        if (result == QUERN_OK)
            result =
                quern_prefab_create(world_, members.data(), static_cast<uint32_t>(members.size()), &prefab);
        return detail::check_for(result, ends_) == QUERN_OK ? prefab : quern_prefab{};
    }

  private:
    struct part {
        uint32_t parent = 0;
        std::vector<char> name; /* with its zero; empty: none */
        quern_component slot{};
        quern_entity shared{};
        std::vector<quern_prefab_value> values;
        std::vector<quern_prefab_target> targets;
    };

    member add(uint32_t parent, const char *name)
    {
        part added;
        added.parent = parent;
        if (name != nullptr) added.name.assign(name, name + std::strlen(name) + 1);
        parts_.push_back(std::move(added));
        return member(this, member_count() - 1);
    }
    template <typename T> quern_component component()
    {
        quern_component found{};
        const quern_result result = detail::find_component<T>(world_, &found);
        if (result_ == QUERN_OK) result_ = result;
        return found;
    }
    void add_value(uint32_t index, quern_component component, const void *value)
    {
        quern_prefab_value added{};
        added.component = component;
        added.value = value;
        parts_[index].values.push_back(added);
    }

    quern_world *world_;
    bool ends_;
    quern_result result_ = QUERN_OK; /* the first failure, which create() returns */
    std::vector<part> parts_;
    std::vector<std::unique_ptr<detail::kept_value>> kept_;
};

/** Describes a prefab. */
using blueprint = basic_blueprint<>;

/** How instances differ from their prefab: the last argument of `spawn` and `spawn_many`. What it points to must remain valid
 * until then. See quern_spawn_def. */
class instances {
  public:
    /** Begins without differences. */
    explicit instances(quern::world &world) : world_(world), ends_(world.ends_on_failure()) {}
    /** Returns the definition of the C interface. */
    operator const quern_spawn_def &() const { return def_; }
    /** Returns the first failure of the calls below, which `spawn` and `spawn_many` return, too; QUERN_OK if there is none. */
    quern_result result() const { return result_; }
    /** Makes the roots children of a parent. */
    instances &under(quern_entity parent)
    {
        def_.parent = parent;
        return *this;
    }
    /** Gives a member of each instance its own value: an array with one for each instance, which is copied. */
    template <typename T> instances & override(const T *values, uint32_t member = 0)
    {
        static_assert(!std::is_empty<T>::value, "quern: a tag has no value: it cannot be replaced");
        quern_spawn_override added{};
        if (check(detail::find_component<T>(world_, &added.component)) != QUERN_OK) return *this;
        added.member = member;
        added.column = values;
        (void)check(detail::append(def_.overrides, added, "override"));
        return *this;
    }
    /** Calls a lambda with `T &` of components of a member, in each instance, after everything else. Not for commands. The
     * lambda is not copied. There is one lambda, for one member. */
    template <typename F> instances &fill(F &&f, uint32_t member = 0)
    {
        using type = std::decay_t<F>;
        constexpr auto mistake = detail::mistake_of_loop<F>();
        constexpr bool has_address = !std::is_function<std::remove_reference_t<F>>::value;
        static_assert(has_address, "quern: a fill is not copied: pass a lambda, which calls the function");
        detail::expect_no<mistake>();
        if constexpr (mistake == detail::mistake::none && has_address) {
            static_assert(detail::lambda_of<type>::term_count <= QUERN_MAX_SPAWN_OVERRIDES,
                          "quern: too many components for one fill");
            if (def_.fill != nullptr) {
                (void)check(quern_error_set(
                    QUERN_ERROR_LIMIT,
                    "quern::instances::fill: these instances have a lambda for member %u: it "
                    "is called for one member; give values of others by override",
                    def_.fill_member));
                return *this;
            }
            quern_term terms[QUERN_MAX_TERMS] = {};
            if (check(detail::lambda_of<type>::list_terms(world_, terms)) != QUERN_OK) return *this;
            for (uint32_t i = 0; i < detail::lambda_of<type>::term_count; i++)
                def_.fill_components[i] = terms[i].component;
            def_.fill = detail::callback<type>::view;
            def_.fill_member = member;
            def_.user_data = const_cast<void *>(static_cast<const void *>(&f));
        }
        return *this;
    }

  private:
    quern_result check(quern_result result)
    {
        if (result_ == QUERN_OK) result_ = result;
        return detail::check_for(result, ends_);
    }

    quern_world *world_;
    bool ends_;
    quern_result result_ = QUERN_OK;
    quern_spawn_def def_{};
};

} // namespace quern

#endif
