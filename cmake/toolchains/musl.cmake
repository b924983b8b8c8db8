# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The Quern authors

# Linux with musl's C library, by its compiler driver.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR ${CMAKE_HOST_SYSTEM_PROCESSOR})
set(CMAKE_C_COMPILER musl-gcc)
