# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The Quern authors

# Modules in C++ that are loaded again into a living world, and whose memory becomes inaccessible, also with sanitizers.
include(CheckLanguage)
check_language(CXX)
if(NOT CMAKE_CXX_COMPILER OR NOT CMAKE_SYSTEM_NAME MATCHES "^(Linux|Windows)$")
  return()
endif()
enable_language(CXX)
add_executable(unload_main platform/unload_main.cpp)
set(unload_modules)
foreach(version 1 2 3)
  add_library(unload_module${version} MODULE platform/unload_module.cpp)
  target_compile_definitions(unload_module${version} PRIVATE VERSION=${version})
  list(APPEND unload_modules unload_module${version})
endforeach()
foreach(target unload_main ${unload_modules})
  quern_configure_target(${target})
  set_target_properties(${target} PROPERTIES CXX_STANDARD 17 CXX_EXTENSIONS OFF CXX_VISIBILITY_PRESET hidden
                                             VISIBILITY_INLINES_HIDDEN ON)
  target_compile_options(${target} PRIVATE ${quern_cxx_warnings})
  target_link_libraries(${target} PRIVATE quern_shared ${CMAKE_DL_LIBS})
endforeach()
add_dependencies(unload_main ${unload_modules})
if(WIN32)
  foreach(target unload_main ${unload_modules})
    target_link_options(${target} PRIVATE -static-libgcc -static-libstdc++)
    # A DLL is found in the folder of the program.
    set_target_properties(${target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR})
  endforeach()
  add_dependencies(quern_platform_tests unload_main)
endif()
add_test(NAME modules_are_unloaded
         COMMAND unload_main $<TARGET_FILE:unload_module1> $<TARGET_FILE:unload_module2>
                 $<TARGET_FILE:unload_module3>)
if(WIN32)
  set_property(TEST modules_are_unloaded APPEND PROPERTY LABELS platform)
endif()
set_tests_properties(modules_are_unloaded PROPERTIES PASS_REGULAR_EXPRESSION "all modules were unloaded\n$"
                                                     ENVIRONMENT "${quern_test_environment}")
