/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Drift in the terminal, in C++: WASD or arrows steer, space fires, R rewinds a second, Q quits.
 *
 * drift --watch N: a pilot plays N frames, rewinds once, and the program prints the field and the hash of the world on 1, 2
 * and 3 threads. */
#include "game.hpp"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <quern/saves.hpp>
#include <string_view>
#include <termios.h>
#include <thread>
#include <unistd.h>

namespace {

constexpr uint64_t rewind_frames = 30;
constexpr double frame_seconds = 1.0 / 30;

/* A game whose last five seconds are kept. */
class Tape {
  public:
    explicit Tape(Game &game) : game_(game), history_(game.app, def(game)) {}

    void play(const Keys &keys)
    {
        quern::must(history_.save(frame_, game_.app.jobs()));
        game_.keys() = keys;
        game_.app.run(frame_seconds);
        frame_++;
    }
    void rewind()
    {
        uint64_t oldest = 0, newest = 0;
        if (!history_.frames(oldest, newest)) return;
        frame_ = std::max(oldest, frame_ > rewind_frames ? frame_ - rewind_frames : 0);
        quern::must(history_.restore(frame_, game_.app.jobs()));
    }

  private:
    static quern_history_def def(Game &game)
    {
        quern_history_def def{};
        def.schedules[0] = game.app.schedule();
        def.frame_count = 150;
        return def;
    }

    Game &game_;
    quern::history history_;
    uint64_t frame_ = 0;
};

/* ------------------------------------------------------------------------------------------ a pilot */

/* Flies below the lowest rock, and fires. */
Keys steer(Game &game)
{
    Keys keys;
    keys.fire = 1;
    const auto ship = game.app.find("ship");
    if (!ship.is_alive()) return keys;
    const Position &own = ship.get<Position>();
    Position lowest{own.x, -1};
    for (auto [entity, position] : game.rocks())
        if (position.y > lowest.y && position.y < own.y - 1) lowest = position;
    keys.left = lowest.x < own.x - 0.5f;
    keys.right = lowest.x > own.x + 0.5f;
    return keys;
}

uint64_t watch(uint32_t thread_count, int frame_count, bool prints)
{
    Game game(thread_count);
    game.populate(30);
    Tape tape(game);
    for (int frame = 0; frame < frame_count; frame++) {
        if (frame == frame_count / 2) tape.rewind();
        tape.play(steer(game));
    }
    if (prints) game.print();
    return game.app.hash();
}

int watch_all(int frame_count)
{
    const uint64_t hash = watch(1, frame_count, true);
    for (uint32_t thread_count = 2; thread_count <= 3; thread_count++)
        if (watch(thread_count, frame_count, false) != hash) {
            std::cout << thread_count << " threads: another world\n";
            return EXIT_FAILURE;
        }
    std::cout << "1, 2 and 3 threads: hash " << std::hex << hash << "\n";
    return EXIT_SUCCESS;
}

/* ---------------------------------------------------------------------------------------- a terminal */

/* Keys arrive one by one, without waiting for a line, and are not shown. */
class Terminal {
  public:
    Terminal()
    {
        if (!isatty(STDIN_FILENO) || tcgetattr(STDIN_FILENO, &saved_) != 0) return;
        termios raw = saved_;
        raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
        raw.c_cc[VMIN] = 0;
        raw.c_cc[VTIME] = 0;
        is_open_ = tcsetattr(STDIN_FILENO, TCSANOW, &raw) == 0;
        if (is_open_) std::cout << "\033[2J\033[?25l";
    }
    Terminal(const Terminal &) = delete;
    Terminal &operator=(const Terminal &) = delete;
    ~Terminal()
    {
        if (!is_open_) return;
        (void)tcsetattr(STDIN_FILENO, TCSANOW, &saved_);
        std::cout << "\033[?25h\n";
    }
    bool is_open() const { return is_open_; }
    /* The keys that were typed since the last call. */
    std::string typed() const
    {
        char text[32];
        const ssize_t count = read(STDIN_FILENO, text, sizeof text);
        return {text, static_cast<size_t>(count > 0 ? count : 0)};
    }

  private:
    termios saved_{};
    bool is_open_ = false;
};

bool is_one_of(std::string_view keys, char key)
{
    return keys.find(key) != std::string_view::npos;
}

/* What a key presses. An arrow is ESC [ and a capital letter. */
Keys keys_of(char key)
{
    Keys keys;
    keys.left = is_one_of("aD", key);
    keys.right = is_one_of("dC", key);
    keys.up = is_one_of("wA", key);
    keys.down = is_one_of("sB", key);
    keys.fire = key == ' ';
    return keys;
}

int play()
{
    const Terminal terminal;
    if (!terminal.is_open()) {
        std::cerr << "drift: this game needs a terminal; drift --watch 300 shows a pilot\n";
        return EXIT_FAILURE;
    }
    Game game;
    game.populate(30);
    Tape tape(game);
    Keys held;
    int held_frames = 0; /* a terminal reports no release of keys: a press counts for some frames */
    while (game.rock_count() > 0) {
        for (const char key : terminal.typed()) {
            if (key == 'q') return EXIT_SUCCESS;
            if (key == 'r') tape.rewind();
            held = keys_of(key);
            held_frames = 6;
        }
        if (held_frames-- <= 0) held = {};
        tape.play(held);
        std::cout << "\033[H";
        game.print();
        std::cout << (game.is_on() ? "WASD: steer, space: fire, R: rewind, Q: quit "
                                   : "the ship has crashed: R rewinds, Q quits       ")
                  << std::endl;
        std::this_thread::sleep_for(std::chrono::duration<double>(frame_seconds));
    }
    return EXIT_SUCCESS;
}

} // namespace

int main(int argument_count, char **arguments)
{
    if (argument_count == 3 && std::strcmp(arguments[1], "--watch") == 0)
        return watch_all(std::atoi(arguments[2]));
    if (argument_count == 1) return play();
    std::cerr << "usage: drift [--watch FRAMES]\n";
    return 2;
}
