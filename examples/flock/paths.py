# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The Quern authors
"""A history as a table: planets on orbits, their frames as columns of numpy, a file for a spreadsheet, and a plot in text.

usage: paths.py [FILE.csv]
"""

import sys

import numpy as np

import quern

FRAMES = 120

world = quern.World()
Place = world.component("Place", x="f4", y="f4")
Speed = world.component("Speed", x="f4", y="f4")
schedule = quern.Schedule(world)
history = quern.History(world, [schedule], frames=FRAMES)


@schedule.system(quern.write(Place), quern.write(Speed))
def fall(context, view):
    place, speed, seconds = view[Place], view[Speed], np.float32(context.delta_seconds)
    pull = (place["x"] ** 2 + place["y"] ** 2) ** np.float32(-1.5)
    for axis in "xy":
        speed[axis] -= place[axis] * pull * seconds
        place[axis] += speed[axis] * seconds


for distance in (0.6, 1.0, 1.6):
    world.create(Place(distance, 0), Speed(0, distance**-0.5))
for frame in range(FRAMES):
    schedule.run(0.05)
    history.save(frame)

# A row for each frame and planet; pandas.DataFrame(table) is the same as a frame of pandas.
table = history.table(Place)
for number, planet in enumerate(np.unique(table["entity"])):
    path = table[table["entity"] == planet]
    radius = np.hypot(path["Place.x"], path["Place.y"])
    turns = np.unwrap(np.arctan2(path["Place.y"], path["Place.x"]))[-1] / (2 * np.pi)
    print("planet %d: %d frames, radius %.2f to %.2f, %.2f turns" % (number, len(path), radius.min(), radius.max(), turns))
if len(sys.argv) > 1:
    np.savetxt(sys.argv[1], table, fmt=["%d", "%d", "%g", "%g"], delimiter=",", header=",".join(table.dtype.names), comments="")

counts, *_ = np.histogram2d(table["Place.y"], table["Place.x"], bins=(17, 34), range=((-1.7, 1.7), (-1.7, 1.7)))
print("\n".join("".join(" .oO"[min(int(n), 3)] for n in row).rstrip() for row in counts[::-1]).rstrip())
world.close()
