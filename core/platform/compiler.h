/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_PLATFORM_COMPILER_H
#define QUERN_CORE_PLATFORM_COMPILER_H

/* Everything that C11 lacks and the library asks of compilers: attributes, operations on bits, prefetches, types of one
 * register, and thread-local storage. No other file of core/ and sched/ names an extension of a compiler
 * (tests/layering/check_systems.sh). GCC and Clang have all of it. Other compilers get C11, or what MSVC has. */

/* Strict C hides calls of the system; files with such calls include this header first. */
#if defined(__linux__) && !defined(_GNU_SOURCE)
#define _GNU_SOURCE
#endif

#include <stdint.h>
#include <string.h>

#if defined(__GNUC__) || defined(__clang__)
#define QUERN__IS_GNU 1
#else
#define QUERN__IS_GNU 0
#endif

/* ------------------------------------------------------------------------------------------ sanitizers */

#if defined(__SANITIZE_ADDRESS__)
#define QUERN__IS_ADDRESS_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define QUERN__IS_ADDRESS_SANITIZED 1
#endif
#endif
#ifndef QUERN__IS_ADDRESS_SANITIZED
#define QUERN__IS_ADDRESS_SANITIZED 0
#endif

#if defined(__SANITIZE_THREAD__)
#define QUERN__IS_THREAD_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define QUERN__IS_THREAD_SANITIZED 1
#endif
#endif
#ifndef QUERN__IS_THREAD_SANITIZED
#define QUERN__IS_THREAD_SANITIZED 0
#endif

/* ------------------------------------------------------------------------------------------ attributes */

/* Prefetches, on GNU compilers. To gcc 12, an inline function that only loads and prefetches has no effect, so it
 * removes the calls of that function, and with them the prefetches. The empty statement counts as an effect. Models of
 * the job system define the macro themselves, because the model checker knows neither. */
#ifndef QUERN__PREFETCH_AS
#define QUERN__PREFETCH_AS(address, writes, locality)        \
    do {                                                     \
        __builtin_prefetch((address), (writes), (locality)); \
        __asm__ volatile("");                                \
    } while (0)
#endif

/* A rarely called function (SLOW_PATH) is not inlined, and the compiler moves calls of it out of the common path. */
#if QUERN__IS_GNU
#define QUERN__LIKELY(condition)       __builtin_expect(!!(condition), 1)
#define QUERN__UNLIKELY(condition)     __builtin_expect(!!(condition), 0)
#define QUERN__NO_INLINE               __attribute__((noinline))
#define QUERN__SLOW_PATH               __attribute__((noinline, cold))
#define QUERN__ALWAYS_INLINE           static inline __attribute__((always_inline))
#define QUERN__PREFETCH(address)       QUERN__PREFETCH_AS((address), 0, 3)
#define QUERN__PREFETCH_WRITE(address) QUERN__PREFETCH_AS((address), 1, 3)
#define QUERN__PREFETCH_LATER(address) QUERN__PREFETCH_AS((address), 0, 2) /* not into the first level */
#elif defined(_MSC_VER)
#define QUERN__LIKELY(condition)       (condition)
#define QUERN__UNLIKELY(condition)     (condition)
#define QUERN__NO_INLINE               __declspec(noinline)
#define QUERN__SLOW_PATH               __declspec(noinline)
#define QUERN__ALWAYS_INLINE           static __forceinline
#define QUERN__PREFETCH(address)       ((void)(address))
#define QUERN__PREFETCH_WRITE(address) ((void)(address))
#define QUERN__PREFETCH_LATER(address) ((void)(address))
#else
#define QUERN__LIKELY(condition)   (condition)
#define QUERN__UNLIKELY(condition) (condition)
#define QUERN__NO_INLINE
#define QUERN__SLOW_PATH
#define QUERN__ALWAYS_INLINE           static inline
#define QUERN__PREFETCH(address)       ((void)(address))
#define QUERN__PREFETCH_WRITE(address) ((void)(address))
#define QUERN__PREFETCH_LATER(address) ((void)(address))
#endif

/* Calls the function with the address of the local variable that is declared so, where its scope ends. Without
 * QUERN__HAS_CLEANUP nothing calls it. */
#if QUERN__IS_GNU
#define QUERN__HAS_CLEANUP       1
#define QUERN__CLEANUP(function) __attribute__((cleanup(function), unused))
#else
#define QUERN__HAS_CLEANUP 0
#define QUERN__CLEANUP(function)
#endif

/* Address of a function's first instruction: a multiple of this, where compilers can do that. */
#if QUERN__IS_GNU
#define QUERN__CODE_ALIGNED(bytes) __attribute__((aligned(bytes)))
#else
#define QUERN__CODE_ALIGNED(bytes)
#endif

/* Lets the compiler check the arguments against the format. printf of MinGW means Microsoft's formats, so gcc gets
 * another name for those of C. */
#if defined(__MINGW32__) && !defined(__clang__)
#define QUERN__PRINTF(format_index, first_index) \
    __attribute__((format(gnu_printf, format_index, first_index)))
#elif QUERN__IS_GNU
#define QUERN__PRINTF(format_index, first_index) __attribute__((format(printf, format_index, first_index)))
#else
#define QUERN__PRINTF(format_index, first_index)
#endif

/* Whether two expressions have different types, as a constant. Compilers that cannot tell say yes. */
#if QUERN__IS_GNU
#define QUERN__TYPES_DIFFER(a, type) (!__builtin_types_compatible_p(__typeof__(a), type))
#else
#define QUERN__TYPES_DIFFER(a, type) 1
#endif

/* ------------------------------------------------------------------------------------- floating point */

#if defined(_MSC_VER) && !QUERN__IS_GNU && (defined(_M_X64) || defined(_M_IX86))
#include <xmmintrin.h>
#endif

/* The calling thread's mode of floating-point arithmetic: rounding, and whether subnormal numbers are flushed to
 * zero. Each thread has its own. Compilers and processors without a known way have one mode, 0. */
#define QUERN__SSE_STATUS_BITS \
    0x3Fu /* in MXCSR: exceptions that have happened, which are no part of the mode */

static inline uint32_t quern__float_mode(void)
{
#if QUERN__IS_GNU && defined(__SSE__)
    return __builtin_ia32_stmxcsr() & ~QUERN__SSE_STATUS_BITS;
#elif defined(_MSC_VER) && (defined(_M_X64) || defined(_M_IX86))
    return _mm_getcsr() & ~QUERN__SSE_STATUS_BITS;
#elif QUERN__IS_GNU && defined(__aarch64__)
    uint64_t mode;
    __asm__ volatile("mrs %0, fpcr" : "=r"(mode));
    return (uint32_t)mode;
#else
    return 0;
#endif
}

static inline void quern__float_set_mode(uint32_t mode)
{
#if QUERN__IS_GNU && defined(__SSE__)
    __builtin_ia32_ldmxcsr((__builtin_ia32_stmxcsr() & QUERN__SSE_STATUS_BITS) | mode);
#elif defined(_MSC_VER) && (defined(_M_X64) || defined(_M_IX86))
    _mm_setcsr((_mm_getcsr() & QUERN__SSE_STATUS_BITS) | mode);
#elif QUERN__IS_GNU && defined(__aarch64__)
    __asm__ volatile("msr fpcr, %0" : : "r"((uint64_t)mode));
#else
    (void)mode;
#endif
}

/* Sets the mode, and returns the one before it, for quern__float_mode_leave. */
static inline uint32_t quern__float_mode_enter(uint32_t mode)
{
    const uint32_t own_mode = quern__float_mode();
    if (QUERN__UNLIKELY(own_mode != mode)) quern__float_set_mode(mode);
    return own_mode;
}

static inline void quern__float_mode_leave(uint32_t mode, uint32_t own_mode)
{
    if (QUERN__UNLIKELY(own_mode != mode)) quern__float_set_mode(own_mode);
}

/* ------------------------------------------------------------------------------------------------ bits */

#if defined(_MSC_VER) && !QUERN__IS_GNU
#include <intrin.h>
#endif

/* Returns the index of the lowest set bit. Precondition: bits != 0. */
static inline uint32_t quern__lowest_bit_64(uint64_t bits)
{
#if QUERN__IS_GNU
    return (uint32_t)__builtin_ctzll(bits);
#elif defined(_MSC_VER)
    unsigned long index;
    _BitScanForward64(&index, bits);
    return (uint32_t)index;
#else
    uint32_t index = 0;
    for (; (bits & 1) == 0; bits >>= 1)
        index++;
    return index;
#endif
}

static inline uint32_t quern__lowest_bit_32(uint32_t bits)
{
#if QUERN__IS_GNU
    return (uint32_t)__builtin_ctz(bits);
#else
    return quern__lowest_bit_64(bits);
#endif
}

/* Returns the index of the highest set bit. Precondition: bits != 0. */
static inline uint32_t quern__highest_bit_32(uint32_t bits)
{
#if QUERN__IS_GNU
    return 31 - (uint32_t)__builtin_clz(bits);
#elif defined(_MSC_VER)
    unsigned long index;
    _BitScanReverse(&index, bits);
    return (uint32_t)index;
#else
    uint32_t index = 0;
    while ((bits >>= 1) != 0)
        index++;
    return index;
#endif
}

static inline uint32_t quern__highest_bit_64(uint64_t bits)
{
#if QUERN__IS_GNU
    return 63 - (uint32_t)__builtin_clzll(bits);
#else
    return bits >> 32 != 0 ? 32 + quern__highest_bit_32((uint32_t)(bits >> 32))
                           : quern__highest_bit_32((uint32_t)bits);
#endif
}

static inline uint32_t quern__count_bits_64(uint64_t bits)
{
#if QUERN__IS_GNU
    return (uint32_t)__builtin_popcountll(bits);
#else
    uint32_t count = 0;
    for (; bits != 0; bits &= bits - 1)
        count++;
    return count;
#endif
}

static inline uint32_t quern__count_bits_32(uint32_t bits)
{
#if QUERN__IS_GNU
    return (uint32_t)__builtin_popcount(bits);
#else
    return quern__count_bits_64(bits);
#endif
}

/* -------------------------------------------------------------------------------------------- registers */

/* 16 bytes that compilers move in one register. */
#if QUERN__IS_GNU
typedef uint64_t quern__vector_of_two __attribute__((vector_size(16)));
#define QUERN__SIXTEEN_BYTES quern__vector_of_two
#else
struct quern__two_words {
    uint64_t words[2];
};
#define QUERN__SIXTEEN_BYTES struct quern__two_words
#endif

/* Pause instruction for spinning loops: leaves execution units to the core's other hardware thread. */
static inline void quern__relax(void)
{
#if QUERN__IS_GNU && (defined(__x86_64__) || defined(__i386__))
    __builtin_ia32_pause();
#elif QUERN__IS_GNU && defined(__aarch64__)
    __asm__ volatile("yield");
#elif defined(_MSC_VER) && (defined(_M_X64) || defined(_M_IX86))
    _mm_pause();
#endif
}

/* ------------------------------------------------------------------------------- thread-local variables */

/* QUERN__THREAD_LOCAL(TYPE, NAME) defines a thread-local variable, and after `extern` declares it. It is not static:
 * for Windows, only assembly names it. QUERN__OF_THREAD(NAME) is the variable of the calling thread.
 *
 * The fastest model that works is used. An access to an initial-exec variable is one load, but its memory is reserved
 * when the program starts. glibc reserves some more for libraries that are opened by dlopen; other C libraries cannot
 * open such a library. When the library is linked statically, the linker replaces this model by the program's own.
 *
 * For Windows, gcc emulates thread-local variables: each access is a call that takes about 25 instructions. Windows has
 * native ones, as compilers of Microsoft use them: a section .tls$ that the system copies for each thread. The thread's
 * block at gs:0x58 lists the copies of all modules, and _tls_index is the number of this module. */
#if defined(__MINGW32__) && !defined(__clang__) && defined(__x86_64__) && !defined(QUERN__EMULATED_TLS)

extern unsigned long _tls_index; /* of the C runtime; NOLINT(bugprone-reserved-identifier) */

#define QUERN__THREAD_LOCAL(type, name) __typeof__(type) name __attribute__((section(".tls$")))
#define QUERN__OF_THREAD(name)                                          \
    (*(__typeof__(name) *)__extension__({                               \
        uint64_t quern__offset;                                         \
        __asm__("movl $" #name "@SECREL32, %k0" : "=r"(quern__offset)); \
        quern__thread_block() + quern__offset;                          \
    }))

static inline char *quern__thread_block(void)
{
    char **blocks;
    __asm__("movq %%gs:0x58, %0" : "=r"(blocks));
    return blocks[_tls_index];
}

#else

#if defined(QUERN__TLS_MODEL)
#define QUERN__THREAD_LOCAL(type, name) _Thread_local type name __attribute__((tls_model(QUERN__TLS_MODEL)))
#elif defined(__linux__) && defined(__GLIBC__)
#define QUERN__THREAD_LOCAL(type, name) _Thread_local type name __attribute__((tls_model("initial-exec")))
#elif defined(_MSC_VER) && !QUERN__IS_GNU
#define QUERN__THREAD_LOCAL(type, name) __declspec(thread) type name
#else
#define QUERN__THREAD_LOCAL(type, name) _Thread_local type name
#endif
#define QUERN__OF_THREAD(name) name

#endif

#endif
