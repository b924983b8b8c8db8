// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The Quern authors

// The flock of flock.c in JavaScript, with the same hash: numbers are doubles, and columns are arrays of floats.

import {lib, Schedule, World, write} from "quern";

const BIRDS = 500, FRAMES = 100, SIZE = 16, SLOWEST = 0.5, FASTEST = 2;

const world = new World();
const schedule = new Schedule(world);
const Position = world.component("Position", {x: "f32", y: "f32"});
const Velocity = world.component("Velocity", {x: "f32", y: "f32"});
const Steering = world.component("Steering", {x: "f32", y: "f32"});

// Keep apart, fly as the neighbours do, stay among them. A value of row i is at i * 2: a row has two floats.
schedule.add("flock", [write(Steering), Position, Velocity], (context, view) => {
  const steering = view.columns(Steering), position = view.columns(Position), velocity = view.columns(Velocity);
  for (let i = 0; i < 2 * view.count; i += 2) {
    const x = position.x[i], y = position.y[i];
    let weight = 0.01, vx = 0, vy = 0, cx = 0, cy = 0, ax = 0, ay = 0;
    for (const others of context.query()) {
      const place = others.columns(Position), speed = others.columns(Velocity);
      for (let k = 0; k < 2 * others.count; k += 2) {
        const dx = place.x[k] - x, dy = place.y[k] - y;
        const near = Math.max(1 - (dx * dx + dy * dy), 0);
        weight += near;
        vx += near * speed.x[k], vy += near * speed.y[k];
        cx += near * dx, cy += near * dy;
        ax -= near * near * dx, ay -= near * near * dy;
      }
    }
    steering.x[i] = 1.5 * ax + 4 * (vx / weight - velocity.x[i]) + 3 * (cx / weight);
    steering.y[i] = 1.5 * ay + 4 * (vy / weight - velocity.y[i]) + 3 * (cy / weight);
  }
}, {queries: [[Position, Velocity]]});

// Moves along one axis, and back at the edges.
function moveAlong(position, velocity, i, seconds) {
  const moved = position[i] + seconds * velocity[i];
  if (moved < 0 || moved > SIZE) velocity[i] = -velocity[i];
  position[i] = Math.min(Math.max(moved, 0), SIZE);
}

schedule.add("move", [write(Position), write(Velocity), Steering], (context, view) => {
  const position = view.columns(Position), velocity = view.columns(Velocity), steering = view.columns(Steering);
  const seconds = context.deltaSeconds;
  for (let i = 0; i < 2 * view.count; i += 2) {
    const x = velocity.x[i] + seconds * steering.x[i], y = velocity.y[i] + seconds * steering.y[i];
    const speed = Math.sqrt(x * x + y * y) + 0.0001;
    const factor = Math.min(Math.max(speed, SLOWEST), FASTEST) / speed;
    velocity.x[i] = x * factor, velocity.y[i] = y * factor;
    moveAlong(position.x, velocity.x, i, seconds);
    moveAlong(position.y, velocity.y, i, seconds);
  }
});

for (let i = 0n; i < BIRDS; i++) {
  const place = lib._quern_random(1n, i), speed = lib._quern_random(2n, i);
  world.create(Position.with({x: 16 * lib._quern_random_unit(place), y: 16 * lib._quern_random_unit(lib._quern_random(place, 1n))}),
               Velocity.with({x: lib._quern_random_signed(speed), y: lib._quern_random_signed(place)}), Steering);
}
for (let frame = 0; frame < FRAMES; frame++) schedule.run(1 / 64);
console.log(`${BIRDS} birds, ${FRAMES} frames, hash 0x${world.hash().toString(16).padStart(16, "0")}`);
world.close();
