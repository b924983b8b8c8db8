# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The Quern authors

# Compile and link options of this project's own targets. Targets of a user's project do not inherit them.

if(NOT QUERN_SANITIZE MATCHES "^(address|thread)?$")
  message(FATAL_ERROR "QUERN_SANITIZE is '${QUERN_SANITIZE}'; it must be empty, 'address' or 'thread'")
endif()

set(quern_sanitize_flags_address -fsanitize=address,undefined -fno-sanitize-recover=all
                                 -fno-omit-frame-pointer)
set(quern_sanitize_flags_thread -fsanitize=thread -fno-omit-frame-pointer)

# Sets strict C11 and the options for developers. Strict mode hides POSIX and Linux calls; _GNU_SOURCE declares them.
function(quern_configure_target target)
  set_target_properties(${target} PROPERTIES C_STANDARD 11 C_STANDARD_REQUIRED ON C_EXTENSIONS OFF)
  target_compile_definitions(${target} PRIVATE _GNU_SOURCE $<$<BOOL:${QUERN_CHECKS}>:QUERN_CHECKS=1>)
  if(WIN32)
    target_compile_definitions(${target} PRIVATE __USE_MINGW_ANSI_STDIO=1) # the formats of C in printf
  endif()
  if(QUERN_DEVELOPER)
    target_compile_options(${target} PRIVATE -Wall -Wextra -Wundef -Wshadow -Wconversion -Werror)
    # Enumerators are the integer constants of this project, also where they meet floats; clang 19 warns of that in C.
    target_compile_options(${target} PRIVATE $<$<C_COMPILER_ID:Clang,AppleClang>:-Wno-enum-float-conversion>)
    if(WIN32)
      target_compile_options(${target} PRIVATE -Wno-float-conversion) # isfinite() of MinGW
    endif()
  endif()
  if(QUERN_SANITIZE)
    target_compile_options(${target} PRIVATE ${quern_sanitize_flags_${QUERN_SANITIZE}})
  endif()
  if(QUERN_FUZZ)
    target_compile_options(${target} PRIVATE -fsanitize=fuzzer-no-link)
  endif()
  quern_link_sanitizers(${target})
endfunction()

# PUBLIC, because a program that links a sanitized static library also needs the runtime of the sanitizer.
function(quern_link_sanitizers target)
  if(QUERN_SANITIZE)
    target_link_options(${target} PUBLIC ${quern_sanitize_flags_${QUERN_SANITIZE}})
  endif()
endfunction()

# Makes floating-point results the same bits with every compiler and optimisation level. For programs that compare
# such results or document them.
function(quern_fix_floats target)
  target_compile_options(${target} PRIVATE -ffp-contract=off -fno-math-errno)
endfunction()

# quern_add_program(TARGET SOURCE ...): adds an example or benchmark, which uses the library as a user's program does.
function(quern_add_program target)
  add_executable(${target} ${ARGN})
  quern_configure_target(${target})
  quern_fix_floats(${target})
  target_link_libraries(${target} PRIVATE quern::quern m)
  if(QUERN_MARCH)
    target_compile_options(${target} PRIVATE -march=${QUERN_MARCH})
  endif()
endfunction()
