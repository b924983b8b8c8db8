/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Windows, from version 7 on. */
#include "core/platform/platform.h"

#if QUERN__ON_WINDOWS

#ifndef WIN32_LEAN_AND_MEAN
#define WIN32_LEAN_AND_MEAN
#endif
#include <windows.h>

#include <errno.h>
#include <malloc.h>
#include <process.h>
#include <stdlib.h>

/* -------------------------------------------------------------------------------------------- threads */

static unsigned __stdcall run_thread(void *argument)
{
    const quern__thread *thread = argument;
    thread->entry(thread->argument);
    return 0;
}

bool quern__thread_start(quern__thread *thread, size_t stack_bytes, void *(*entry)(void *argument),
                         void *argument)
{
    if (stack_bytes > UINT32_MAX / 2) return false;
    thread->entry = entry;
    thread->argument = argument;
    const uintptr_t handle = _beginthreadex(NULL, (unsigned)stack_bytes, run_thread, thread,
                                            stack_bytes != 0 ? STACK_SIZE_PARAM_IS_A_RESERVATION : 0, NULL);
    thread->handle = (void *)handle; /* NOLINT(performance-no-int-to-ptr) */
    return handle != 0;
}

void quern__thread_join(quern__thread *thread)
{
    WaitForSingleObject(thread->handle, INFINITE);
    CloseHandle(thread->handle);
}

size_t quern__thread_min_stack_bytes(void)
{
    return 64 * 1024;
}

/* SetThreadDescription exists since Windows 10, so it is looked up. */
void quern__thread_set_name(const char *name)
{
    typedef HRESULT(WINAPI * set_description)(HANDLE thread, PCWSTR text);
    const FARPROC found = GetProcAddress(GetModuleHandleA("kernel32.dll"), "SetThreadDescription");
    wchar_t wide[QUERN__THREAD_NAME_BYTES];
    set_description set;
    if (found == NULL || MultiByteToWideChar(CP_UTF8, 0, name, -1, wide, QUERN__THREAD_NAME_BYTES) == 0)
        return;
    memcpy(&set, &found, sizeof set);
    (void)set(GetCurrentThread(), wide);
}

void quern__thread_yield(void)
{
    if (!SwitchToThread()) Sleep(0);
}

/* Returns whole milliseconds, rounded up, for calls that wait at most so long. */
static DWORD milliseconds_of(uint64_t ns)
{
    const uint64_t ms = (ns + 999999) / 1000000;
    return ms < INFINITE ? (DWORD)ms : INFINITE - 1;
}

void quern__thread_sleep(uint64_t ns)
{
    Sleep(milliseconds_of(ns));
}

void quern__count_forks(void) {}

/* -------------------------------------------------------------------------------------- once, and exits */

static BOOL CALLBACK call_function(PINIT_ONCE once, PVOID function, PVOID *context)
{
    (void)once;
    (void)context;
    (*(void (**)(void))function)();
    return TRUE;
}

void quern__call_once(quern__once *once, void (*function)(void))
{
    InitOnceExecuteOnce((PINIT_ONCE)once, call_function, &function, NULL);
}

/* Fiber-local storage, because the one for threads calls nothing when a thread ends. */
bool quern__exit_key_init(quern__exit_key *key, void (*function)(void *value))
{
    key->index = FlsAlloc((PFLS_CALLBACK_FUNCTION)function);
    return key->index != FLS_OUT_OF_INDEXES;
}

void quern__exit_key_deinit(const quern__exit_key *key)
{
    FlsFree(key->index);
}

bool quern__exit_key_set(const quern__exit_key *key, void *value)
{
    return FlsSetValue(key->index, value);
}

/* ---------------------------------------------------------------------------------- mutex and condition */

bool quern__mutex_init(quern__mutex *mutex)
{
    InitializeSRWLock((PSRWLOCK)mutex);
    return true;
}

void quern__mutex_deinit(quern__mutex *mutex)
{
    (void)mutex;
}

void quern__mutex_lock(quern__mutex *mutex)
{
    AcquireSRWLockExclusive((PSRWLOCK)mutex);
}

void quern__mutex_unlock(quern__mutex *mutex)
{
    ReleaseSRWLockExclusive((PSRWLOCK)mutex);
}

bool quern__condition_init(quern__condition *condition)
{
    InitializeConditionVariable((PCONDITION_VARIABLE)condition);
    return true;
}

void quern__condition_deinit(quern__condition *condition)
{
    (void)condition;
}

void quern__condition_signal(quern__condition *condition)
{
    WakeConditionVariable((PCONDITION_VARIABLE)condition);
}

void quern__condition_broadcast(quern__condition *condition)
{
    WakeAllConditionVariable((PCONDITION_VARIABLE)condition);
}

void quern__condition_wait(quern__condition *condition, quern__mutex *mutex, uint64_t until_ns)
{
    DWORD ms = INFINITE;
    if (until_ns != 0) {
        const uint64_t now_ns = quern__clock_ns();
        ms = milliseconds_of(until_ns > now_ns ? until_ns - now_ns : 0);
    }
    (void)SleepConditionVariableSRW((PCONDITION_VARIABLE)condition, (PSRWLOCK)mutex, ms, 0);
}

/* ------------------------------------------------------------------------------------------ processors */

size_t quern__host_cache_bytes(uint32_t level)
{
    DWORD bytes = 0;
    size_t found = 0;
    GetLogicalProcessorInformation(NULL, &bytes);
    SYSTEM_LOGICAL_PROCESSOR_INFORMATION *list = malloc(bytes != 0 ? bytes : 1);
    if (list != NULL && bytes != 0 && GetLogicalProcessorInformation(list, &bytes))
        for (DWORD i = 0; i < bytes / sizeof *list && found == 0; i++)
            if (list[i].Relationship == RelationCache && list[i].Cache.Level == level &&
                list[i].Cache.Type != CacheInstruction)
                found = list[i].Cache.Size;
    free(list);
    return found;
}

#if QUERN__HAS_AFFINITY

/* A thread's set of processors is one word: those of its group, at most 64. */
static uint64_t list_allowed(void)
{
    DWORD_PTR process = 0, system = 0;
    GetProcessAffinityMask(GetCurrentProcess(), &process, &system);
    return process;
}

uint32_t quern__processor_count(void)
{
    const uint64_t allowed = list_allowed();
    return allowed != 0 ? quern__count_bits_64(allowed) : 1;
}

void quern__thread_pin(uint32_t index)
{
    uint64_t allowed = list_allowed();
    if (allowed == 0) return;
    for (index %= quern__count_bits_64(allowed); index > 0; index--)
        allowed &= allowed - 1;
    SetThreadAffinityMask(GetCurrentThread(), (DWORD_PTR)(allowed & (0 - allowed)));
}

bool quern__thread_set_processors(const quern_processors *processors, uint32_t *out_refused)
{
    const uint64_t allowed = list_allowed();
    for (*out_refused = 0; *out_refused < QUERN_MAX_PROCESSORS; ++*out_refused) {
        const uint32_t word = *out_refused / 64;
        const uint64_t refused = processors->words[word] & ~(word == 0 ? allowed : 0);
        if ((refused >> *out_refused % 64 & 1) != 0) return false;
    }
    *out_refused = 0;
    return SetThreadAffinityMask(GetCurrentThread(), (DWORD_PTR)processors->words[0]) != 0;
}

/* Returns the set of the calling thread. No call reads it; the one that sets it returns the last one. */
static uint64_t list_own(void)
{
    const uint64_t allowed = list_allowed();
    const uint64_t own = SetThreadAffinityMask(GetCurrentThread(), (DWORD_PTR)allowed);
    if (own != 0) SetThreadAffinityMask(GetCurrentThread(), (DWORD_PTR)own);
    return own != 0 ? own : allowed;
}

uint32_t quern__count_processors_with_caller(const quern_processors *processors)
{
    const uint64_t set = processors->words[0];
    if (set == 0) return quern__processor_count();
    const uint32_t own_count = quern__count_bits_64(set);
    return quern__count_bits_64(set | list_own()) > own_count ? own_count + 1 : own_count;
}

uint32_t quern__thread_processor(void)
{
    return (uint32_t)GetCurrentProcessorNumber() + 1;
}

/* The system moves a thread at once if its processor is no longer in its set. */
bool quern__thread_move_off(const uint32_t *processors, uint32_t count)
{
    const uint64_t allowed = list_own();
    uint64_t others = allowed;
    for (uint32_t i = 0; i < count; i++)
        if (processors[i] - 1 < 64) others &= ~((uint64_t)1 << (processors[i] - 1));
    if (others == 0 || SetThreadAffinityMask(GetCurrentThread(), (DWORD_PTR)others) == 0) return false;
    SetThreadAffinityMask(GetCurrentThread(), (DWORD_PTR)allowed);
    return true;
}

#endif

/* ---------------------------------------------------------------------------------------------- clocks */

/* Whole seconds are converted separately, so nothing overflows. */
uint64_t quern__clock_ns(void)
{
    LARGE_INTEGER ticks, rate;
    QueryPerformanceFrequency(&rate);
    QueryPerformanceCounter(&ticks);
    const uint64_t per_second = (uint64_t)rate.QuadPart, now = (uint64_t)ticks.QuadPart;
    return now / per_second * 1000000000u + now % per_second * 1000000000u / per_second;
}

static uint64_t ns_of(FILETIME time)
{
    return (((uint64_t)time.dwHighDateTime << 32) + time.dwLowDateTime) * 100;
}

uint64_t quern__thread_time_ns(void)
{
    FILETIME start, end, kernel, user;
    if (!GetThreadTimes(GetCurrentThread(), &start, &end, &kernel, &user)) return 0;
    return ns_of(kernel) + ns_of(user);
}

/* ---------------------------------------------------------------------------------------------- memory */

void *quern__heap_allocate(size_t size_bytes, size_t alignment_bytes)
{
    return _aligned_malloc(size_bytes, alignment_bytes);
}

void quern__heap_release(void *memory)
{
    _aligned_free(memory);
}

#if QUERN__HAS_PAGES

/* Windows cannot return a part of a reservation. So the address of an aligned part of a larger one is noted, the large
 * one is returned, and that part is reserved. Another thread may take the address in between; then it is done again. */
void *quern__pages_map(size_t size_bytes, size_t alignment_bytes)
{
    enum { MOST_TRIES = 64 };
    char *memory = VirtualAlloc(NULL, size_bytes, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE);
    for (int i = 0; i < MOST_TRIES && memory != NULL; i++) {
        if (((uintptr_t)memory & (alignment_bytes - 1)) == 0) return memory;
        VirtualFree(memory, 0, MEM_RELEASE);
        char *larger = VirtualAlloc(NULL, size_bytes + alignment_bytes, MEM_RESERVE, PAGE_NOACCESS);
        if (larger == NULL) return NULL;
        const size_t before = (size_t)(-(uintptr_t)larger & (alignment_bytes - 1));
        VirtualFree(larger, 0, MEM_RELEASE);
        memory = VirtualAlloc(larger + before, size_bytes, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE);
        if (memory == NULL)
            memory = VirtualAlloc(NULL, size_bytes, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE);
    }
    if (memory != NULL) VirtualFree(memory, 0, MEM_RELEASE);
    return NULL;
}

void quern__pages_unmap(void *memory, size_t size_bytes)
{
    (void)size_bytes;
    VirtualFree(memory, 0, MEM_RELEASE);
}

#endif

/* ----------------------------------------------------------------------------------------------- files */

/* Returns the path as Windows wants it, for free(). NULL if it is not UTF-8 or there is no memory; errno says so. */
static wchar_t *widen(const char *path)
{
    const int count = MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, path, -1, NULL, 0);
    wchar_t *wide = count > 0 ? malloc((size_t)count * sizeof *wide) : NULL;
    if (wide != NULL) MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, path, -1, wide, count);
    if (wide == NULL) errno = count > 0 ? ENOMEM : EILSEQ;
    return wide;
}

FILE *quern__file_open(const char *path, const char *mode)
{
    wchar_t wide_mode[8] = {0};
    for (size_t i = 0; mode[i] != '\0' && i + 1 < sizeof wide_mode / sizeof *wide_mode; i++)
        wide_mode[i] = (wchar_t)mode[i];
    wchar_t *wide = widen(path);
    FILE *file = wide != NULL ? _wfopen(wide, wide_mode) : NULL;
    free(wide);
    return file;
}

/* rename() fails if the path exists. */
int quern__file_replace(const char *from_path, const char *to_path)
{
    wchar_t *from = widen(from_path), *to = widen(to_path);
    const bool is_moved = from != NULL && to != NULL &&
                          MoveFileExW(from, to, MOVEFILE_REPLACE_EXISTING | MOVEFILE_WRITE_THROUGH);
    const DWORD error = GetLastError();
    free(from);
    free(to);
    if (is_moved) return 0;
    return error == ERROR_FILE_NOT_FOUND || error == ERROR_PATH_NOT_FOUND ? ENOENT : EACCES;
}

void quern__file_remove(const char *path)
{
    wchar_t *wide = widen(path);
    if (wide != NULL) _wremove(wide);
    free(wide);
}

bool quern__file_is_device_or_pipe(const char *path)
{
    wchar_t *wide = widen(path);
    if (wide == NULL) return false;
    const HANDLE file = CreateFileW(wide, 0, FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, NULL,
                                    OPEN_EXISTING, FILE_ATTRIBUTE_NORMAL, NULL);
    free(wide);
    if (file == INVALID_HANDLE_VALUE) return false;
    const DWORD type = GetFileType(file);
    CloseHandle(file);
    return type == FILE_TYPE_CHAR || type == FILE_TYPE_PIPE;
}

#endif
