/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */

/* Tasks, forks and graphs from lambdas. */

#include "expect.h"

#include <quern/tasks.hpp>

#include <array>
#include <atomic>
#include <memory>
#include <string>
#include <vector>

namespace {

/* Counts its objects: a lambda that is not destroyed shows. */
struct counted {
    static inline std::atomic<int> living{0};
    counted() { living++; }
    counted(const counted &) { living++; }
    counted(counted &&) noexcept { living++; }
    counted &operator=(const counted &) = default;
    ~counted() { living--; }
};

void tasks_own_what_they_capture(uint32_t thread_count)
{
    quern::jobs jobs(thread_count);
    std::atomic<int> sum{0};
    {
        quern::tasks tasks(jobs);
        auto owned = std::make_unique<int>(3);
        quern::must(tasks.submit([&sum, owned = std::move(owned)] { sum += *owned; }));
        quern::must(tasks.submit([&sum](uint32_t worker_index) { sum += worker_index < 64 ? 10 : 0; }));
        std::array<char, 100> large{};
        large[99] = 5;
        quern::must(tasks.submit([&sum, large] { sum += large[99]; }, quern::task_name{"large"},
                                 quern::priority{QUERN_PRIORITY_HIGH}));
        const auto shared = [&sum, text = std::string("a text that is too long for the object itself")] {
            sum += static_cast<int>(text.size());
        };
        quern::must(tasks.submit(shared));
        quern::must(tasks.wait());
        EXPECT(tasks.is_done() && sum == 18 + 45);
        /* Tasks submit to their group. */
        quern::must(tasks.submit([&] {
            for (int i = 0; i < 200; i++)
                quern::must(tasks.submit([&sum, one = counted()] { sum += one.living > 0; }));
        }));
    } /* waits */
    EXPECT(sum == 263 && counted::living == 0);
}

void tasks_begin_after_others(uint32_t thread_count)
{
    quern::jobs jobs(thread_count);
    std::vector<int> order;
    quern::tasks first(jobs), second(jobs), third(jobs);
    first.hold();
    quern::must(second.submit([&] { order.push_back(2); }, quern::after_tasks(first)));
    quern::must(third.submit([&] { order.push_back(3); }, quern::after_tasks(first, second)));
    order.push_back(1);
    quern::must(first.release());
    quern::must(third.wait());
    EXPECT(order == (std::vector<int>{1, 2, 3}));
    uint32_t index = 9;
    quern::must(quern::tasks::wait_any(UINT64_MAX, &index, first, second));
    EXPECT(index == 0);
    bool is_done = false;
    quern::must(first.wait_for(1000, &is_done));
    EXPECT(is_done);
    int on_caller = 0;
    quern::must(first.submit([&] { on_caller++; }, quern::on_caller));
    quern::must(first.wait());
    EXPECT(on_caller == 1);
}

/* A function serves as a lambda. */
std::atomic<uint32_t> counted_items;
void count_items(uint32_t begin, uint32_t end)
{
    counted_items += end - begin;
}

void loops_are_submitted(uint32_t thread_count)
{
    quern::jobs jobs(thread_count);
    std::vector<int> squares(5000);
    {
        quern::tasks tasks(jobs);
        quern::must(tasks.submit_for(5000, 0, [&squares, owner = counted()](uint32_t begin, uint32_t end) {
            for (uint32_t i = begin; i < end; i++)
                squares[i] = static_cast<int>(i * i) * (owner.living > 0);
        }));
        quern::must(tasks.wait());
        EXPECT(counted::living == 0 && squares[70] == 4900 && squares[4999] == 4999 * 4999);
        std::atomic<uint32_t> largest{0};
        quern::must(tasks.run_for(100, 10, [&](uint32_t begin, uint32_t end, uint32_t) {
            if (end - begin > 10) largest = end - begin;
            for (uint32_t i = begin; i < end; i++)
                squares[i] = -1;
        }));
        EXPECT(squares[0] == -1 && squares[99] == -1 && squares[100] == 10000 && largest == 0);
        counted_items = 0;
        quern::must(tasks.run_for(100, 10, count_items));
        EXPECT(counted_items == 100);
        tasks.cancel();
        EXPECT(tasks.is_cancelled());
        EXPECT(result_of([&] { return tasks.run_for(100, 1, [](uint32_t, uint32_t) {}); }) ==
               QUERN_ERROR_CANCELLED);
        /* A lambda that does not run is destroyed with the group, or when the group has finished. */
        quern::must(tasks.submit([&squares, owner = counted()] { squares[0] = owner.living; }));
        quern::must(tasks.wait());
        EXPECT(squares[0] == -1 && counted::living == 0);
        tasks.reset();
        EXPECT(!tasks.is_cancelled());
    }
}

int sum_of(quern_jobs *jobs, const int *values, int count)
{
    if (count < 100) {
        int sum = 0;
        for (int i = 0; i < count; i++)
            sum += values[i];
        return sum;
    }
    int left = 0;
    quern::fork half(jobs, [&] { left = sum_of(jobs, values, count / 2); });
    const int right = sum_of(jobs, values + count / 2, count - count / 2);
    half.join();
    return left + right;
}

void forks_are_joined(uint32_t thread_count)
{
    quern::jobs jobs(thread_count);
    std::vector<int> values(10000, 3);
    int sum = 0;
    quern::must(jobs.run([&] { sum = sum_of(jobs, values.data(), 10000); }));
    EXPECT(sum == 30000);
    EXPECT(sum_of(jobs, values.data(), 1000) == 3000); /* outside of a job, the call is made at once */
}

void graphs_own_their_lambdas(uint32_t thread_count)
{
    quern::jobs jobs(thread_count);
    std::vector<int> values(1000);
    std::atomic<int> sum{0};
    uint32_t rounds = 0;
    {
        quern::graph graph;
        const uint32_t fill = graph.add(
            [&values, owner = counted()](uint32_t begin, uint32_t end) {
                for (uint32_t i = begin; i < end; i++)
                    values[i] = owner.living > 0 ? 2 : 0;
            },
            1000, 10, quern::task_name{"fill"});
        const uint32_t add = graph.add(
            [&](uint32_t begin, uint32_t end, uint32_t) {
                for (uint32_t i = begin; i < end; i++)
                    sum += values[i];
            },
            1000);
        const uint32_t join = graph.add_join(),
                       again = graph.add_choice([&] { return ++rounds < 3 ? 0u : 9u; });
        EXPECT(fill == 0 && again == 3);
        quern::must(graph.edge(fill, add));
        quern::must(graph.edge(add, join));
        quern::must(graph.edge(join, again));
        quern::must(graph.edge(again, add));
        quern::must(graph.run(jobs));
        EXPECT(sum == 6000 && rounds == 3);
        graph.clear();
        EXPECT(counted::living == 0);
        const uint32_t first = graph.add([&values] { values[0] = 7; }),
                       second = graph.add([&](uint32_t, uint32_t) { sum = values[0]; });
        quern::must(graph.edge(first, second));
        quern::must(graph.run(jobs));
        EXPECT(sum == 7 && graph.result() == QUERN_OK);
        EXPECT(result_of([&] { return graph.edge(second, first); }) == QUERN_ERROR_INVALID_ARGUMENT);
        quern::must(graph.set_count(first, 0));
        values[0] = 8;
        quern::graph outer;
        const uint32_t inner = outer.add_graph(graph), last = outer.add([&] { sum += 100; });
        quern::must(outer.edge(inner, last));
        quern::tasks before(jobs), tasks(jobs);
        quern::must(before.submit([&] { values[0] = 9; }));
        quern::must(outer.submit(tasks, quern::after_tasks(before)));
        quern::must(tasks.wait());
        EXPECT(sum == 109);
        const uint32_t kept = graph.add([owner = counted()] { (void)owner; });
        EXPECT(kept == 2 && counted::living == 1);
    }
    EXPECT(counted::living == 0);
}

void pools_have_words()
{
    quern::app app;
    quern::jobs &jobs = app.jobs();
    quern::must(jobs.resize(2));
    EXPECT(jobs.thread_count() == 2 && jobs.worker_count() >= 2);
    jobs.wake();
    uint32_t count = 9;
    quern::must(jobs.run_caller_jobs(&count));
    EXPECT(count == 0);
    char text[4096];
    quern_text_buffer buffer{text, sizeof text, 0};
    quern::must(jobs.describe(quern_sink_text(&buffer)));
    EXPECT(buffer.length_bytes > 0);
    uint32_t worker = 9;
    quern::must(jobs.register_thread(&worker));
    quern::must(jobs.unregister_thread());
    EXPECT(worker < jobs.worker_count());
}

/* Random groups of tasks give the sum that a loop gives. */
void sums_do_not_depend_on_threads(uint32_t thread_count)
{
    quern::jobs jobs(thread_count);
    uint32_t seed = 5;
    const auto draw = [&seed](uint32_t below) {
        seed = seed * 1664525u + 1013904223u;
        return (seed >> 8) % below;
    };
    for (int round = 0; round < 50; round++) {
        std::atomic<uint32_t> sum{0};
        uint32_t expected = 0;
        quern::tasks early(jobs), late(jobs);
        for (uint32_t i = draw(30); i > 0; i--) {
            const uint32_t value = draw(100), count = draw(200);
            expected += value + 2 * count;
            quern::must(early.submit([&sum, value] { sum += value; }));
            quern::must(late.submit_for(
                count, draw(20), [&sum](uint32_t begin, uint32_t end) { sum += 2 * (end - begin); },
                quern::after_tasks(early)));
        }
        quern::must(late.wait());
        quern::must(early.wait());
        EXPECT(sum == expected);
    }
}

void lambdas_are_kept_while_they_can_be_called(uint32_t thread_count)
{
    quern::jobs jobs(thread_count);
    quern::tasks group(jobs), other(jobs);
    std::atomic<int> calls{0};
    const auto submit_loop = [&] {
        quern::must(group.submit_for(10, 0, [&calls, kept = counted()](uint32_t begin, uint32_t end) {
            (void)kept;
            calls += int(end - begin);
        }));
    };
    bool is_done = false;
    submit_loop();
    while (!is_done)
        quern::must(group.wait_for(1000000, &is_done));
    EXPECT(counted::living == 0 && calls == 10);
    other.hold();
    quern::must(group.submit([kept = counted()] { (void)kept; }, quern::after_tasks(other)));
    quern::must(group.wait_for(1000, &is_done));
    EXPECT(!is_done && counted::living == 1);
    quern::must(other.release());
    quern::must(group.wait());
    EXPECT(counted::living == 0);
    EXPECT(result_of([&] {
               return group.submit([kept = counted()] { (void)kept; }, quern::on_worker{1000});
           }) == QUERN_ERROR_INVALID_ARGUMENT);
    EXPECT(counted::living == 0);
    submit_loop();
    other.hold();
    uint32_t index = 0;
    quern::must(quern::tasks::wait_any(UINT64_MAX, &index, other, group));
    EXPECT(index == 1 && counted::living == 0 && calls == 20);
    quern::must(other.release());
    {
        quern::graph graph, moved;
        EXPECT(graph.add([&calls, kept = counted()] { (void)kept, calls++; }) == 0);
        group.hold();
        quern::must(graph.submit(other, quern::after_tasks(group)));
        quern_assert_set_handler([](void *, const char *) {}, nullptr);
        graph.clear(); /* refused: it is running */
        quern_assert_set_handler(nullptr, nullptr);
        EXPECT(counted::living == 1);
        quern::must(group.release());
        quern::must(other.wait());
        EXPECT(calls == 21 && graph.result() == QUERN_OK);
        moved = std::move(graph);
        EXPECT(counted::living == 1 && moved.run(nullptr) == QUERN_OK && calls == 22);
        moved.clear();
        EXPECT(counted::living == 0);
    }
}

} // namespace

int main()
{
    for (uint32_t thread_count : {1u, 2u, 3u, 8u}) {
        tasks_own_what_they_capture(thread_count);
        tasks_begin_after_others(thread_count);
        loops_are_submitted(thread_count);
        forks_are_joined(thread_count);
        graphs_own_their_lambdas(thread_count);
        lambdas_are_kept_while_they_can_be_called(thread_count);
        sums_do_not_depend_on_threads(thread_count);
    }
    pools_have_words();
    std::puts("all tasks work");
}
