/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_KIT_TRANSFORM_HPP
#define QUERN_KIT_TRANSFORM_HPP

/** @file
 * Positions of entities in the space of their parents, in C++17; see <quern/kit/transform.h>. Link quern::quern_transform,
 * and after it quern::quern.
 *
 *     quern::transforms transforms{app};
 *     transforms.add_systems(app);
 *     auto ship = app.create(quern_local3_at(10, 0, 0), quern_world3{});
 *     auto mast = app.create(quern_local3_at(1, 0, 0), quern_world3{});
 *     mast.set_parent(ship);
 *     app.add("draw", [](const quern_world3 &placed) { ... });
 *
 * The components are the C types quern_local3 and quern_world3, or quern_local2 and quern_world2. Threads: main, between
 * frames. */

#include <quern/kit/transform.h>
#include <quern/quern.hpp>

namespace quern {

/** The transforms of a world. Declare it after its world. If a quern::schedule has its systems, declare the schedule after
 * the transforms; transforms whose systems are in an app take them out of the app when they end. The object stays where it
 * is. */
class transforms {
  public:
    /** Registers the components and the hierarchy; see quern_transform_register. */
    explicit transforms(quern::world &world, const quern_transform_def &def = {})
        : ends_(world.ends_on_failure()), is_planar_(def.planar)
    {
        quern_transform *registered = nullptr;
        const quern_result result = quern_transform_register(world, &def, &registered);
        raw_.reset(registered);
        (void)check(result);
    }
    transforms(const transforms &) = delete;
    transforms &operator=(const transforms &) = delete;
    /** The transforms of the C interface; nullptr if the constructor failed. */
    operator quern_transform *() const { return raw_.get(); }

    /** Adds the systems that compute the worlds of entities to a phase of an app; see quern_transform_add_systems. */
    quern_result add_systems(quern::app &app, uint32_t phase = 0)
    {
        const quern_result result = quern_transform_add_systems(raw_.get(), app.schedule(), phase);
        in_app_.note(app.schedule(), is_planar_ ? "walk_transforms2" : "walk_transforms3");
        in_app_.note(app.schedule(), is_planar_ ? "sweep_transforms2" : "sweep_transforms3");
        return check(result);
    }
    /** Adds them to a phase of a schedule, which must be destroyed before the transforms. */
    QUERN__CPP_NODISCARD quern_result add_systems(quern::schedule &schedule, uint32_t phase = 0)
    {
        return check(quern_transform_add_systems(raw_.get(), schedule, phase));
    }
    /** Marks the local of an entity as written through its address; see quern_transform_mark. */
    QUERN__CPP_NODISCARD quern_result mark(quern_entity entity)
    {
        return check(quern_transform_mark(raw_.get(), entity));
    }
    /** Makes the next frame compute all worlds; see quern_transform_mark_all. */
    void mark_all() { quern_transform_mark_all(raw_.get()); }
    /** Computes the current world of an entity, a quern_world3 or quern_world2; see quern_transform_compute. */
    template <typename World>
    QUERN__CPP_NODISCARD quern_result compute(quern_entity entity, World &out_world) const
    {
        expect_world<World>();
        return check(quern_transform_compute(raw_.get(), entity, &out_world));
    }
    /** Changes the parent of an entity, which may keep its place in the world; see quern_transform_set_parent. */
    QUERN__CPP_NODISCARD quern_result set_parent(quern_entity entity, quern_entity parent,
                                                 bool keeps_place = false)
    {
        return check(quern_transform_set_parent(raw_.get(), entity, parent, keeps_place));
    }
    /** Records a change of parent, in which the local stays; see quern_transform_record_parent. */
    QUERN__CPP_NODISCARD quern_result record_parent(quern_commands *commands, quern_entity entity,
                                                    quern_entity parent) const
    {
        return check(quern_transform_record_parent(raw_.get(), commands, entity, parent, nullptr, nullptr));
    }
    /** Records a change of parent, in which the entity keeps its place. `world` is that of the entity, and parent_world that of
     * its new parent, or nullptr. */
    template <typename World>
    QUERN__CPP_NODISCARD quern_result record_parent(quern_commands *commands, quern_entity entity,
                                                    quern_entity parent, const World &world,
                                                    const World *parent_world) const
    {
        expect_world<World>();
        return check(
            quern_transform_record_parent(raw_.get(), commands, entity, parent, &world, parent_world));
    }
    /** The local component; see quern_transform_local. */
    quern_component local() const { return quern_transform_local(raw_.get()); }
    /** The world component; see quern_transform_world. */
    quern_component world() const { return quern_transform_world(raw_.get()); }
    /** Returns the statistics of the last frame; see quern_transform_get_stats. */
    quern_transform_stats stats() const
    {
        quern_transform_stats numbers{};
        (void)check(quern_transform_get_stats(raw_.get(), &numbers));
        return numbers;
    }

  private:
    template <typename World> static void expect_world()
    {
        static_assert(
            std::is_same<World, quern_world3>::value || std::is_same<World, quern_world2>::value,
            "quern: the world of an entity is a quern_world3, or a quern_world2 in two dimensions");
    }
    quern_result check(quern_result result) const { return detail::check_for(result, ends_); }

    struct release {
        void operator()(quern_transform *raw) const { quern_transform_release(raw); }
    };

    std::unique_ptr<quern_transform, release> raw_;
    bool ends_;
    bool is_planar_;
    detail::app_systems in_app_; /* destroyed first */
};

} // namespace quern

#endif
