# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The Quern authors

# quern_add_live_module(TARGET SOURCE ...): adds a shared library that quern::quern_live loads (<quern/kit/live.h>), named
# TARGET.so, TARGET.dll or TARGET.dylib. The module uses the program's copy of Quern, quern::quern_shared, and exports
# nothing but what QUERN_LIVE_MODULE defines.
set(quern_live_module_map ${CMAKE_CURRENT_LIST_DIR}/quern_live_module.map)

function(quern_add_live_module target)
  add_library(${target} MODULE ${ARGN})
  set_target_properties(${target} PROPERTIES PREFIX "" C_VISIBILITY_PRESET hidden CXX_VISIBILITY_PRESET hidden
                                             VISIBILITY_INLINES_HIDDEN ON LINK_DEPENDS ${quern_live_module_map})
  if(APPLE)
    target_link_options(${target} PRIVATE LINKER:-exported_symbol,_quern_live_module_entry)
  elseif(UNIX)
    target_link_options(${target} PRIVATE LINKER:--version-script=${quern_live_module_map})
  endif()
  target_link_libraries(${target} PRIVATE quern::quern_shared)
endfunction()
