/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Chapter 6 of the tutorial in C++: the same game on several threads, and in random orders of work. */
#include "game.hpp"

/* Plays twelve frames, and returns the hash of the world. */
uint64_t play(uint32_t thread_count, uint64_t shuffle_seed)
{
    Game game(thread_count, shuffle_seed);
    game.populate(600);
    for (int frame = 0; frame < 12; frame++) {
        game.keys() = {frame % 2, 0, 0, 0, 1};
        game.app.run(1.0 / 20);
    }
    return game.app.hash();
}

int main()
{
    const uint64_t hash = play(1, 0);
    for (uint32_t threads = 2; threads <= 3; threads++)
        std::cout << threads
                  << " threads: " << (play(threads, 0) == hash ? "the same world" : "another world")
                  << "\n";
    for (uint64_t seed = 1; seed <= 2; seed++)
        std::cout << "shuffled, seed " << seed << ": "
                  << (play(2, seed) == hash ? "the same world" : "another world") << "\n";
}
