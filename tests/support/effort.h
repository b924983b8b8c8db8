/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_TESTS_EFFORT_H
#define QUERN_TESTS_EFFORT_H

/* Scales tests per build: seeds, frames, entities. Sanitizers make programs three to twenty times
 * slower, and the plain builds find faults in results with all seeds. So each sanitizer build runs what
 * its own kind of fault needs: the address sanitizer every path of memory use, the thread sanitizer the
 * parts that use several threads. tests/mutation/mutate.py runs each test often and defines QUERN_LITTLE_EFFORT.
 * effort(plain, address, thread) is a constant expression. */

#if defined(__SANITIZE_THREAD__)
enum { LOOKS_FOR_RACES_ALONE = 1 };
#define effort(plain, address, thread) (thread)
#elif defined(__SANITIZE_ADDRESS__) || defined(QUERN_LITTLE_EFFORT)
enum { LOOKS_FOR_RACES_ALONE = 0 };
#define effort(plain, address, thread) (address)
#else
enum { LOOKS_FOR_RACES_ALONE = 0 };
#define effort(plain, address, thread) (plain)
#endif

/* Begins a long test that runs on one thread, in a program of which the thread sanitizer needs the other
 * tests. Skips the test in that build. */
#define runs_on_one_thread()                                                                          \
    do {                                                                                              \
        if (LOOKS_FOR_RACES_ALONE) cr_skip_test("on one thread, the thread sanitizer finds nothing"); \
    } while (0)

#endif
