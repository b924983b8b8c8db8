/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_TESTS_EFFORT_H
#define QUERN_TESTS_EFFORT_H

/* How much of a test each build plays: seeds, frames, entities. The sanitizers make programs three to twenty
 * times slower; and what a build with fewer seeds could still find in the results, the plain builds find. So
 * each gets what its own faults need: the address sanitizer every path of memory, the thread sanitizer what
 * runs on several threads. Written as effort(plain, address, thread), which is a constant. */

#if defined(__SANITIZE_THREAD__)
enum { LOOKS_FOR_RACES_ALONE = 1 };
#define effort(plain, address, thread) (thread)
#elif defined(__SANITIZE_ADDRESS__)
enum { LOOKS_FOR_RACES_ALONE = 0 };
#define effort(plain, address, thread) (address)
#else
enum { LOOKS_FOR_RACES_ALONE = 0 };
#define effort(plain, address, thread) (plain)
#endif

/* At the start of a long test that runs on one thread, in a program that the thread sanitizer looks at for
 * others. */
#define runs_on_one_thread()                                                                          \
    do {                                                                                              \
        if (LOOKS_FOR_RACES_ALONE) cr_skip_test("on one thread, the thread sanitizer finds nothing"); \
    } while (0)

#endif
