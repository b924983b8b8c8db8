# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The Quern authors

# WebAssembly by Emscripten. Programs run in node. Each is one file (SINGLE_FILE): Emscripten 3.1.6 reads a second file by
# fetch(), which node has since version 18, but not for files. QUERN_WASM_THREADS chooses threads, which are workers
# of JavaScript that share one memory.
set(CMAKE_SYSTEM_NAME Emscripten)
set(CMAKE_SYSTEM_PROCESSOR wasm32)
set(EMSCRIPTEN TRUE)
set(UNIX TRUE)
set(CMAKE_C_COMPILER emcc)
set(CMAKE_AR emar CACHE FILEPATH "")
set(CMAKE_RANLIB emranlib CACHE FILEPATH "")
set(CMAKE_EXECUTABLE_SUFFIX .js)
set(CMAKE_CROSSCOMPILING_EMULATOR node)
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES QUERN_WASM_THREADS)
set(CMAKE_EXE_LINKER_FLAGS_INIT "-sALLOW_MEMORY_GROWTH=1 -sINITIAL_MEMORY=256MB -sEXIT_RUNTIME=1 -sTOTAL_STACK=1MB -sNODERAWFS=1 -sSINGLE_FILE=1")
if(QUERN_WASM_THREADS)
  set(CMAKE_C_FLAGS_INIT "-pthread")
  string(APPEND CMAKE_EXE_LINKER_FLAGS_INIT " -pthread -sPTHREAD_POOL_SIZE=8 -sPROXY_TO_PTHREAD=1")
endif()
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE NEVER)
