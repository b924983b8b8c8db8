/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Chapter 1 of the tutorial in C++: rocks drift across a field. */
#include <array>
#include <iostream>
#include <quern/quern.hpp>
#include <string>

constexpr int width = 40, height = 5;

struct Position {
    float x, y;
};
struct Velocity {
    float x, y; /* cells per second */
};
struct Glyph {
    char symbol;
};

void draw(const quern::query<const Position, const Glyph> &glyphs)
{
    std::array<std::string, height> field;
    field.fill(std::string(width, '.'));
    for (auto [entity, position, glyph] : glyphs)
        field[static_cast<size_t>(position.y)][static_cast<size_t>(position.x)] = glyph.symbol;
    for (const std::string &line : field)
        std::cout << line << "\n";
}

int main()
{
    quern::app app;
    for (int i = 0; i < 5; i++) {
        const float number = static_cast<float>(i);
        app.create(Position{8 * number, number}, Velocity{number - 1.5f, 0}, Glyph{'O'});
    }
    app.add("move", [](Position &position, const Velocity &velocity, quern::seconds seconds) {
        position.x += velocity.x * seconds;
        position.y += velocity.y * seconds;
    });
    /* An entity that leaves the field at one side enters at the other. */
    app.add(
        "wrap",
        [](Position &position) {
            if (position.x < 0) position.x += width;
            if (position.x >= width) position.x -= width;
            if (position.y < 0) position.y += height;
            if (position.y >= height) position.y -= height;
        },
        quern::after{"move"});
    const quern::query<const Position, const Glyph> glyphs(app);
    draw(glyphs);
    app.run(1.0 / 16, 64);
    std::cout << "after four seconds:\n";
    draw(glyphs);
}
