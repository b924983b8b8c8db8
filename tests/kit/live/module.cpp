// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The Quern authors
// A module in C++ of test_live.c, with types that own memory and lambdas that own what they capture. LIVE_VARIANT is 1,
// or 2, in which Label has two members more and the constant is another one.

#include <quern/kit/live.hpp>

#include <memory>
#include <string>

namespace game {

struct Label {
    std::string text;
    int32_t length;
#if LIVE_VARIANT == 2
    int64_t vowels;
    std::string second;
#endif
};

struct Score {
    std::string best;
    int32_t points;
};

struct Place {
    int32_t x, y;
};

} // namespace game

QUERN_DESCRIBE(game::Place, x, y);
QUERN_DESCRIBE(game::Score, points);

// A variable that the compilers of GNU make unique in the process, unless they are told otherwise.
template <typename T> struct holder {
    static inline T value{};
};

static quern_result load(quern_live_module *raw)
{
    quern::live_module module(raw);
    holder<std::string>::value += "loaded";
    module.component<game::Label>();
    module.resource<game::Score>();
    auto captured = std::make_shared<std::string>("captured by a lambda, longer than a small string");
    module.add("label", [captured](game::Label &label, const game::Place &place) {
        label.text = *captured;
        label.length = LIVE_VARIANT * 100 + place.x;
    });
    module.add_once(
        "score",
        [](quern::context context) {
            auto &score = context.resource<game::Score>();
            score.best += "*";
            score.points = static_cast<int32_t>(score.best.size()) * LIVE_VARIANT +
                           (holder<std::string>::value == "loaded" ? 0 : 1000);
        },
        quern::writes_resource<game::Score>{});
    return module.result();
}

QUERN_LIVE_MODULE(load, nullptr)
