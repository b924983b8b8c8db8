# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The Quern authors
"""The flock of flock.c in Python, with the same hash. The systems work on whole columns, by numpy."""

import numpy as np

import quern

BIRDS, FRAMES, SIZE, SLOWEST, FASTEST = 500, 100, 16.0, 0.5, 2.0

world = quern.World()
schedule = quern.Schedule(world)
Position = world.component("Position", x="f4", y="f4")
Velocity = world.component("Velocity", x="f4", y="f4")
Steering = world.component("Steering", x="f4", y="f4")


def doubles(column):
    """Returns copies of both fields in double precision."""
    return column["x"].astype("f8"), column["y"].astype("f8")


@schedule.system(quern.write(Steering), Position, Velocity, queries=[(Position, Velocity)])
def flock(context, view):
    """Keep apart, fly as the neighbours do, stay among them: all birds of the view look at one neighbour after another."""
    x, y = doubles(view[Position])
    weight = np.full(view.count, 0.01)
    vx, vy, cx, cy, ax, ay = np.zeros((6, view.count))
    for others in context.query(0):
        place, speed = doubles(others[Position]), doubles(others[Velocity])
        for px, py, sx, sy in zip(*place, *speed):
            dx, dy = px - x, py - y
            near = np.maximum(1 - (dx * dx + dy * dy), 0)
            weight += near
            vx += near * sx
            vy += near * sy
            cx += near * dx
            cy += near * dy
            ax -= near * near * dx
            ay -= near * near * dy
    x, y = doubles(view[Velocity])
    view[Steering]["x"] = 1.5 * ax + 4 * (vx / weight - x) + 3 * (cx / weight)
    view[Steering]["y"] = 1.5 * ay + 4 * (vy / weight - y) + 3 * (cy / weight)


@schedule.system(quern.write(Position), quern.write(Velocity), Steering)
def move(context, view):
    seconds, position, velocity, steering = context.delta_seconds, view[Position], view[Velocity], doubles(view[Steering])
    x, y = (speed + seconds * push for speed, push in zip(doubles(velocity), steering))
    speed = np.sqrt(x * x + y * y) + 0.0001
    factor = np.clip(speed, SLOWEST, FASTEST) / speed
    velocity["x"], velocity["y"] = x * factor, y * factor
    for axis, place, step in zip("xy", doubles(position), doubles(velocity)):
        moved = place + seconds * step
        velocity[axis] = np.where((moved < 0) | (moved > SIZE), -step, step)  # back at the edges
        position[axis] = np.clip(moved, 0, SIZE)


lib = quern.lib
for i in range(BIRDS):
    place, speed = lib.quern_random(1, i), lib.quern_random(2, i)
    world.create(Position(16 * lib.quern_random_unit(place), 16 * lib.quern_random_unit(lib.quern_random(place, 1))),
                 Velocity(lib.quern_random_signed(speed), lib.quern_random_signed(place)), Steering)
for frame in range(FRAMES):
    schedule.run(1 / 64)
print("%d birds, %d frames, hash 0x%016x" % (BIRDS, FRAMES, world.hash()))
world.close()
