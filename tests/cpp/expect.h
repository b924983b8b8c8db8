/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_TESTS_CPP_EXPECT_H
#define QUERN_TESTS_CPP_EXPECT_H

/* What the tests of the C++ headers share. */

#include <quern/quern.hpp>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

static inline void expect_at(bool is_right, const char *what, int line)
{
    if (is_right) return;
    std::fprintf(stderr, "line %d: %s: %s\n", line, what, quern_error_message());
    std::exit(EXIT_FAILURE);
}

#define EXPECT(...) expect_at((__VA_ARGS__), #__VA_ARGS__, __LINE__)

/* Returns the result of a call, also if the call throws. */
template <typename F> quern_result result_of(F &&call)
{
#ifdef QUERN_CPP_EXCEPTIONS
    try {
        return call();
    } catch (const quern::error &error) {
        return error.code();
    }
#else
    return call();
#endif
}

/* Makes SIGABRT, which a test cannot expect on all systems, an end that it can. */
static inline void end_on_abort()
{
    std::signal(SIGABRT, [](int) {
        std::puts("ended");
        std::fflush(stdout);
        std::_Exit(0);
    });
}

/* An allocator that fails after a number of allocations. */
struct failing_allocator {
    static inline uint64_t left = UINT64_MAX;

    static void *allocate(void *, size_t size_bytes, size_t alignment_bytes)
    {
        const quern_allocator real = quern_allocator_default();
        if (left == 0) return nullptr;
        left--;
        return real.allocate(real.user_data, size_bytes, alignment_bytes);
    }
    static void release(void *, void *pointer, size_t size_bytes, size_t alignment_bytes)
    {
        const quern_allocator real = quern_allocator_default();
        real.release(real.user_data, pointer, size_bytes, alignment_bytes);
    }
    static quern_world_def world()
    {
        quern_world_def def{};
        def.allocator.allocate = allocate;
        def.allocator.release = release;
        return def;
    }
};

#endif
