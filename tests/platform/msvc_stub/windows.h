/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Stands in for the header of Microsoft's SDK, for the test sources_msvc: what platform_windows.c uses. */
#pragma once
#include <stddef.h>
#include <stdint.h>
#define WINAPI                            __stdcall
#define CALLBACK                          __stdcall
#define NTAPI                             __stdcall
#define INFINITE                          0xFFFFFFFFu
#define TRUE                              1
#define FALSE                             0
#define CP_UTF8                           65001
#define MB_ERR_INVALID_CHARS              8
#define MEM_COMMIT                        0x1000
#define MEM_RESERVE                       0x2000
#define MEM_RELEASE                       0x8000
#define PAGE_NOACCESS                     1
#define PAGE_READWRITE                    4
#define STACK_SIZE_PARAM_IS_A_RESERVATION 0x10000
#define FLS_OUT_OF_INDEXES                ((DWORD)0xFFFFFFFF)
#define INVALID_HANDLE_VALUE              ((HANDLE)(intptr_t)-1)
#define ERROR_FILE_NOT_FOUND              2
#define ERROR_PATH_NOT_FOUND              3
#define MOVEFILE_REPLACE_EXISTING         1
#define MOVEFILE_WRITE_THROUGH            8
#define FILE_SHARE_READ                   1
#define FILE_SHARE_WRITE                  2
#define FILE_SHARE_DELETE                 4
#define OPEN_EXISTING                     3
#define FILE_ATTRIBUTE_NORMAL             128
#define FILE_TYPE_CHAR                    2
#define FILE_TYPE_PIPE                    3
#define FILE_ATTRIBUTE_DIRECTORY          16
#define ERROR_ALREADY_EXISTS              183
#define MAX_PATH                          260
typedef int BOOL;
typedef long LONG, HRESULT;
typedef unsigned long DWORD, ULONG;
typedef unsigned char BYTE;
typedef long long LONGLONG;
typedef unsigned long long DWORD_PTR, ULONG_PTR;
typedef void *HANDLE, *PVOID, *HMODULE, *LPVOID;
typedef const wchar_t *PCWSTR;
typedef long long(WINAPI *FARPROC)(void);
typedef union LARGE_INTEGER {
    LONGLONG QuadPart;
} LARGE_INTEGER;
typedef struct FILETIME {
    DWORD dwLowDateTime, dwHighDateTime;
} FILETIME;
typedef struct INIT_ONCE *PINIT_ONCE;
typedef struct SRWLOCK *PSRWLOCK;
typedef struct CONDITION_VARIABLE *PCONDITION_VARIABLE;
typedef BOOL(CALLBACK *PINIT_ONCE_FN)(PINIT_ONCE once, PVOID parameter, PVOID *context);
typedef void(CALLBACK *PFLS_CALLBACK_FUNCTION)(PVOID value);
typedef enum { RelationCache = 2 } LOGICAL_PROCESSOR_RELATIONSHIP;
typedef enum { CacheUnified, CacheInstruction } PROCESSOR_CACHE_TYPE;
typedef struct SYSTEM_LOGICAL_PROCESSOR_INFORMATION {
    ULONG_PTR ProcessorMask;
    LOGICAL_PROCESSOR_RELATIONSHIP Relationship;
    struct {
        BYTE Level;
        DWORD Size;
        PROCESSOR_CACHE_TYPE Type;
    } Cache;
} SYSTEM_LOGICAL_PROCESSOR_INFORMATION;
HANDLE GetCurrentProcess(void);
HANDLE GetCurrentThread(void);
DWORD GetCurrentProcessorNumber(void);
DWORD GetLastError(void);
DWORD WaitForSingleObject(HANDLE object, DWORD ms);
BOOL CloseHandle(HANDLE handle);
HMODULE GetModuleHandleA(const char *name);
HMODULE GetModuleHandleW(const wchar_t *name);
FARPROC GetProcAddress(HMODULE module, const char *name);
BOOL SwitchToThread(void);
void Sleep(DWORD ms);
BOOL InitOnceExecuteOnce(PINIT_ONCE once, PINIT_ONCE_FN function, PVOID parameter, LPVOID *context);
DWORD FlsAlloc(PFLS_CALLBACK_FUNCTION function);
BOOL FlsFree(DWORD index);
BOOL FlsSetValue(DWORD index, PVOID value);
void InitializeSRWLock(PSRWLOCK lock);
void AcquireSRWLockExclusive(PSRWLOCK lock);
void ReleaseSRWLockExclusive(PSRWLOCK lock);
void InitializeConditionVariable(PCONDITION_VARIABLE condition);
void WakeConditionVariable(PCONDITION_VARIABLE condition);
void WakeAllConditionVariable(PCONDITION_VARIABLE condition);
BOOL SleepConditionVariableSRW(PCONDITION_VARIABLE condition, PSRWLOCK lock, DWORD ms, ULONG flags);
BOOL GetLogicalProcessorInformation(SYSTEM_LOGICAL_PROCESSOR_INFORMATION *list, DWORD *bytes);
BOOL GetProcessAffinityMask(HANDLE process, DWORD_PTR *own, DWORD_PTR *system);
DWORD_PTR SetThreadAffinityMask(HANDLE thread, DWORD_PTR mask);
BOOL QueryPerformanceCounter(LARGE_INTEGER *count);
BOOL QueryPerformanceFrequency(LARGE_INTEGER *rate);
BOOL GetProcessTimes(HANDLE process, FILETIME *start, FILETIME *end, FILETIME *kernel, FILETIME *user);
BOOL GetThreadTimes(HANDLE thread, FILETIME *start, FILETIME *end, FILETIME *kernel, FILETIME *user);
LPVOID VirtualAlloc(LPVOID address, size_t bytes, DWORD type, DWORD protection);
BOOL VirtualFree(LPVOID address, size_t bytes, DWORD type);
int WideCharToMultiByte(unsigned page, DWORD flags, const wchar_t *wide, int count, char *text, int bytes,
                        const char *unknown, BOOL *out_is_unknown);
int MultiByteToWideChar(unsigned page, DWORD flags, const char *text, int bytes, wchar_t *wide, int count);
BOOL MoveFileExA(const char *from, const char *to, DWORD flags);
BOOL MoveFileExW(const wchar_t *from, const wchar_t *to, DWORD flags);
HANDLE CreateFileW(const wchar_t *path, DWORD access, DWORD share, void *security, DWORD disposition,
                   DWORD flags, HANDLE template);
DWORD GetFileType(HANDLE file);
typedef enum { GetFileExInfoStandard } GET_FILEEX_INFO_LEVELS;
typedef struct {
    DWORD dwFileAttributes;
    FILETIME ftCreationTime, ftLastAccessTime, ftLastWriteTime;
    DWORD nFileSizeHigh, nFileSizeLow;
} WIN32_FILE_ATTRIBUTE_DATA;
BOOL GetFileAttributesExW(const wchar_t *path, GET_FILEEX_INFO_LEVELS level, LPVOID data);
DWORD GetTempPathW(DWORD count, wchar_t *path);
DWORD GetCurrentProcessId(void);
BOOL CreateDirectoryW(const wchar_t *path, void *security);
BOOL RemoveDirectoryW(const wchar_t *path);
BOOL DeleteFileW(const wchar_t *path);
HMODULE LoadLibraryW(const wchar_t *path);
BOOL FreeLibrary(HMODULE module);
