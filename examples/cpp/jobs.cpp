/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include <atomic>
#include <iostream>
#include <memory>
#include <numeric>
#include <quern/tasks.hpp>
#include <vector>

int main()
{
    quern::jobs jobs;
    std::vector<int> squares(1000);
    quern::must(jobs.parallel_for(1000, 0, [&](uint32_t begin, uint32_t end) {
        for (uint32_t i = begin; i < end; i++)
            squares[i] = int(i * i);
    }));

    std::atomic<int> sum{0};
    quern::tasks loading(jobs), counting(jobs);
    auto file = std::make_unique<int>(40);
    quern::must(loading.submit([&sum, file = std::move(file)] { sum += *file; }));
    quern::must(counting.submit([&] { sum += 2; }, quern::after_tasks(loading)));
    quern::must(counting.wait());

    int total = 0;
    quern::graph graph;
    const uint32_t halve = graph.add(
        [&](uint32_t begin, uint32_t end) {
            for (uint32_t i = begin; i < end; i++)
                squares[i] /= 2;
        },
        1000);
    const uint32_t add = graph.add([&] { total = std::accumulate(squares.begin(), squares.end(), 0); });
    quern::must(graph.edge(halve, add));
    quern::must(graph.run(jobs));
    std::cout << sum << ", " << total << "\n";
}
