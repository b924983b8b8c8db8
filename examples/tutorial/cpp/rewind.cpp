/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Chapter 8 of the tutorial in C++: a game that is saved, loaded, and rewound. */
#include "game.hpp"

#include <quern/saves.hpp>

void play(Game &game, quern::history &history, uint64_t from, uint64_t to)
{
    for (uint64_t frame = from; frame < to; frame++) {
        quern::must(history.save(frame));
        game.keys() = {0, frame < 8, 0, 0, 1};
        game.app.run(1.0 / 16);
    }
}

int main()
{
    Game game, loaded; /* loaded has types and systems, and no entities */
    game.populate(30);
    quern_history_def def{};
    def.schedules[0] = game.app.schedule();
    def.frame_count = 64;
    quern::history history(game.app, def);

    play(game, history, 0, 48);
    const uint64_t hash = game.app.hash();
    std::cout << "after 48 frames: score " << game.score() << "\n";
    quern::must(history.restore(16));
    std::cout << "before frame 16: score " << game.score() << "\n";
    play(game, history, 16, 48);
    std::cout << "played again: " << (game.app.hash() == hash ? "the same" : "another world") << "\n";

    quern::byte_buffer archive;
    game.app.save(archive.sink());
    loaded.app.load(archive.source());
    std::cout << "loaded: score " << loaded.score() << ", " << loaded.rock_count() << " rocks\n";
}
