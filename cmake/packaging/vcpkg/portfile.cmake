# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The Quern authors

# An overlay port that builds the sources in which it lies: vcpkg install quern --overlay-ports=cmake/packaging/vcpkg. In a
# registry, vcpkg_from_github takes the place of the next line.
get_filename_component(SOURCE_PATH "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)

vcpkg_check_features(OUT_FEATURE_OPTIONS features FEATURES zstd QUERN_WITH_ZSTD)
string(TOUPPER "${VCPKG_LIBRARY_LINKAGE}" type)
if(type STREQUAL "DYNAMIC")
  set(type SHARED)
endif()
vcpkg_cmake_configure(
  SOURCE_PATH "${SOURCE_PATH}"
  OPTIONS ${features} -DQUERN_LIBRARY_TYPE=${type} -DQUERN_BUILD_TESTS=OFF -DQUERN_BUILD_BENCH=OFF
          -DQUERN_BUILD_EXAMPLES=OFF)
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(CONFIG_PATH lib/cmake/quern)
vcpkg_fixup_pkgconfig()
file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/debug/include" "${CURRENT_PACKAGES_DIR}/debug/share"
                    "${CURRENT_PACKAGES_DIR}/share/doc")
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE")
