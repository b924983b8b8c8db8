# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The Quern authors

# Installs the libraries, the headers, the scripts, a CMake package and a pkg-config file. bench/ adds the harness.

include(CMakePackageConfigHelpers)

install(
  TARGETS ${quern_libraries}
  EXPORT quern
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
  RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR}
          COMPONENT runtime
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
          COMPONENT runtime
          NAMELINK_COMPONENT dev)
install(FILES ${quern_public_headers} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/quern)
install(PROGRAMS ${PROJECT_SOURCE_DIR}/scripts/schedule_dot.py ${PROJECT_SOURCE_DIR}/scripts/merge_traces.py ${PROJECT_SOURCE_DIR}/scripts/quern_inspect.py
        DESTINATION ${CMAKE_INSTALL_DATADIR}/quern)

# Scripts for debuggers. GDB loads the one beside the path of the shared library by itself.
install(FILES ${PROJECT_SOURCE_DIR}/scripts/quern_gdb.py ${PROJECT_SOURCE_DIR}/scripts/quern_lldb.py
              ${PROJECT_SOURCE_DIR}/scripts/quern.natvis DESTINATION ${CMAKE_INSTALL_DATADIR}/quern)
if(NOT QUERN_LIBRARY_TYPE STREQUAL "STATIC" AND NOT WIN32 AND NOT APPLE)
  install(FILES ${PROJECT_SOURCE_DIR}/scripts/quern_gdb.py
          DESTINATION ${CMAKE_INSTALL_DATADIR}/gdb/auto-load/${CMAKE_INSTALL_FULL_LIBDIR}
          RENAME libquern.so.${PROJECT_VERSION}-gdb.py)
endif()

set(quern_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/quern)
install(
  EXPORT quern
  FILE quernTargets.cmake
  NAMESPACE quern::
  DESTINATION ${quern_package_dir})
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/quernConfig.cmake.in quernConfig.cmake
                              INSTALL_DESTINATION ${quern_package_dir})
write_basic_package_version_file(quernConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/quernConfig.cmake ${CMAKE_CURRENT_BINARY_DIR}/quernConfigVersion.cmake
        DESTINATION ${quern_package_dir})

# quern.pc computes the prefix from its own location, so an installed tree can be moved.
file(RELATIVE_PATH quern_pc_prefix "/prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/prefix")
string(REGEX REPLACE "/$" "" quern_pc_prefix "${quern_pc_prefix}")
# Programs that link the static library need what it needs; if there is no other, without --static as well.
set(quern_pc_needs "-pthread")
if(QUERN_WITH_ZSTD)
  string(APPEND quern_pc_needs " -lzstd")
endif()
set(quern_pc_libs "")
if(QUERN_LIBRARY_TYPE STREQUAL "STATIC")
  set(quern_pc_libs " ${quern_pc_needs}")
endif()
configure_file(${CMAKE_CURRENT_LIST_DIR}/quern.pc.in quern.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/quern.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
