-- SPDX-License-Identifier: MIT
-- Copyright (c) 2026 The Quern authors

-- The flock of flock.c in Lua, with the same hash: numbers of Lua are doubles, and columns are arrays of C.

local quern = require "quern"

local BIRDS, FRAMES, SIZE, SLOWEST, FASTEST = 500, 100, 16, 0.5, 2

local world = quern.world()
local schedule = quern.schedule(world)
local Position = world:component("Position", "float x, y;")
local Velocity = world:component("Velocity", "float x, y;")
local Steering = world:component("Steering", "float x, y;")

-- Keep apart, fly as the neighbours do, stay among them.
schedule:system("flock", {quern.write(Steering), Position, Velocity}, function(context, view)
  local steering, position, velocity = view:column(Steering), view:column(Position), view:column(Velocity)
  for i = 0, view.count - 1 do
    local x, y = position[i].x, position[i].y
    local weight, vx, vy, cx, cy, ax, ay = 0.01, 0, 0, 0, 0, 0, 0
    for others in context:query() do
      local place, speed = others:column(Position), others:column(Velocity)
      for k = 0, others.count - 1 do
        local dx, dy = place[k].x - x, place[k].y - y
        local near = math.max(1 - (dx * dx + dy * dy), 0)
        weight = weight + near
        vx, vy = vx + near * speed[k].x, vy + near * speed[k].y
        cx, cy = cx + near * dx, cy + near * dy
        ax, ay = ax - near * near * dx, ay - near * near * dy
      end
    end
    steering[i].x = 1.5 * ax + 4 * (vx / weight - velocity[i].x) + 3 * (cx / weight)
    steering[i].y = 1.5 * ay + 4 * (vy / weight - velocity[i].y) + 3 * (cy / weight)
  end
end, {queries = {{Position, Velocity}}})

-- Moves along one axis, and back at the edges.
local function move_along(position, velocity, seconds)
  local moved = position + seconds * velocity
  return math.min(math.max(moved, 0), SIZE), (moved < 0 or moved > SIZE) and -velocity or velocity
end

schedule:system("move", {quern.write(Position), quern.write(Velocity), Steering}, function(context, view)
  local position, velocity, steering = view:column(Position), view:column(Velocity), view:column(Steering)
  local seconds = context:delta_seconds()
  for i = 0, view.count - 1 do
    local p, v = position[i], velocity[i]
    local x, y = v.x + seconds * steering[i].x, v.y + seconds * steering[i].y
    local speed = math.sqrt(x * x + y * y) + 0.0001
    local factor = math.min(math.max(speed, SLOWEST), FASTEST) / speed
    v.x, v.y = x * factor, y * factor
    p.x, v.x = move_along(p.x, v.x, seconds)
    p.y, v.y = move_along(p.y, v.y, seconds)
  end
end)

local lib = quern.lib
for i = 0, BIRDS - 1 do
  local place, speed = lib.quern_random(1, i), lib.quern_random(2, i)
  world:create(Position(16 * lib.quern_random_unit(place), 16 * lib.quern_random_unit(lib.quern_random(place, 1))),
    Velocity(lib.quern_random_signed(speed), lib.quern_random_signed(place)), Steering)
end
for _ = 1, FRAMES do schedule:run(1 / 64) end
print(("%d birds, %d frames, hash 0x%s"):format(BIRDS, FRAMES, bit.tohex(world:hash(), 16)))
world:close()
