# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The Quern authors

# cpack makes a .tar.gz of everything and two Debian packages: libquernX.Y, which has the shared library, and
# libquern-dev, which has everything else.
set(quern_abi ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
set(CPACK_PACKAGE_NAME quern)
set(CPACK_PACKAGE_VENDOR "The Quern authors")
set(CPACK_PACKAGE_CONTACT "The Quern authors <quern@example.invalid>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
set(CPACK_RESOURCE_FILE_LICENSE "${PROJECT_SOURCE_DIR}/LICENSE")
set(CPACK_GENERATOR TGZ DEB)
set(CPACK_COMPONENTS_ALL runtime dev)
set(CPACK_STRIP_FILES OFF) # stripping would take the archive's symbols
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
find_program(QUERN_SHLIBDEPS dpkg-shlibdeps)
mark_as_advanced(QUERN_SHLIBDEPS)
if(QUERN_SHLIBDEPS)
  set(CPACK_DEBIAN_RUNTIME_PACKAGE_SHLIBDEPS ON)
endif()
set(CPACK_DEBIAN_RUNTIME_PACKAGE_NAME libquern${quern_abi})
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_RUNTIME_DESCRIPTION "${PROJECT_DESCRIPTION}: shared library")
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_DEV_PACKAGE_NAME libquern-dev)
set(CPACK_DEBIAN_DEV_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEV_DESCRIPTION "${PROJECT_DESCRIPTION}: headers, static library and kit")
set(CPACK_DEBIAN_DEV_PACKAGE_DEPENDS "libc6-dev")
if(NOT QUERN_LIBRARY_TYPE STREQUAL "STATIC")
  set(CPACK_DEBIAN_DEV_PACKAGE_DEPENDS "libquern${quern_abi} (= ${PROJECT_VERSION}), libc6-dev")
endif()
foreach(component runtime dev)
  string(TOUPPER ${component} component_upper)
  install(FILES ${PROJECT_SOURCE_DIR}/LICENSE
          DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${CPACK_DEBIAN_${component_upper}_PACKAGE_NAME}
          COMPONENT ${component} RENAME copyright)
endforeach()
include(CPack)
