/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Chapter 5 of the tutorial in C++: keys reach the systems, and the simulation has a fixed step. */
#include "game.hpp"

int main()
{
    Game game;
    game.populate(30);
    game.print();
    for (int frame = 0; frame < 60; frame++) {
        game.keys() = {frame < 10, frame >= 20 && frame < 40, 0, 0, 1}; /* between frames */
        game.app.run(1.0 / 20);
    }
    std::cout << "after three seconds:\n";
    game.print();
}
