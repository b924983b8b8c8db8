# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The Quern authors

# The bindings for other languages: the tests of each, and the flock, which has one hash in all of them. A test is skipped
# if its language is not installed.

set(quern_flock_hash "^500 birds, 100 frames, hash 0x9fd0d8b04c14a6eb\n$")
set(quern_bindings_folder ${PROJECT_BINARY_DIR}/bindings)
quern_add_example(flock "" ${quern_flock_hash})

# quern_add_skipped(NAME REASON): adds a test that is counted as skipped.
function(quern_add_skipped name reason)
  add_test(NAME ${name} COMMAND ${CMAKE_COMMAND} -E echo "skipped: ${name}: ${reason}")
  set_tests_properties(${name} PROPERTIES SKIP_REGULAR_EXPRESSION "^skipped: " LABELS optimised)
endfunction()

# quern_add_binding_tests(LANGUAGE TARGET PROGRAM TEST FLOCK ENVIRONMENT): runs the two scripts by the program, and the flock
# once more from an installed package.
function(quern_add_binding_tests language target program test flock environment)
  if(TARGET ${target} AND program)
    add_test(NAME bindings_${language} COMMAND ${program} ${test})
    add_test(NAME flock_${language} COMMAND ${program} ${flock})
    set_tests_properties(bindings_${language} flock_${language} PROPERTIES ENVIRONMENT "${environment}" TIMEOUT 600)
    set_tests_properties(flock_${language} PROPERTIES PASS_REGULAR_EXPRESSION ${quern_flock_hash})
    quern_label_optimised(bindings_${language} ${target})
    quern_label_optimised(flock_${language} ${target})
    if(language STREQUAL "lua" AND NOT CMAKE_SYSTEM_NAME STREQUAL "Linux")
      quern_add_skipped(package_${language} "rocks are made on Linux only")
    else()
      add_test(NAME package_${language} COMMAND ${quern_binding_tests}/test_package.sh ${language} ${QUERN_PYTHON}
                                                ${quern_bindings_folder} ${flock} ${program})
      set_tests_properties(package_${language} PROPERTIES PASS_REGULAR_EXPRESSION ${quern_flock_hash} TIMEOUT 600)
      quern_label_optimised(package_${language} ${target})
    endif()
    add_custom_target(quern_tested_${language} ALL)
    add_dependencies(quern_tested_${language} ${target})
  else()
    quern_add_skipped(bindings_${language} "the language is not installed")
    quern_add_skipped(flock_${language} "the language is not installed")
    quern_add_skipped(package_${language} "the language is not installed")
  endif()
endfunction()

set(quern_binding_tests ${CMAKE_CURRENT_SOURCE_DIR}/bindings)
set(quern_flock ${PROJECT_SOURCE_DIR}/examples/flock)
if(EMSCRIPTEN)
  # Node looks for packages in the folders above a script, so the scripts are copied to where the package is. A file that
  # uses the types is only parsed: there is no compiler of TypeScript in Debian 12.
  if(TARGET quern_npm AND NOT QUERN_WASM_THREADS)
    foreach(script ${quern_binding_tests}/test_npm.mjs ${quern_flock}/flock.mjs)
      cmake_path(GET script FILENAME name)
      configure_file(${script} ${quern_bindings_folder}/${name} COPYONLY)
    endforeach()
    quern_add_binding_tests(npm quern_npm "${QUERN_NODE}" ${quern_bindings_folder}/test_npm.mjs
                            ${quern_bindings_folder}/flock.mjs "")
    find_program(QUERN_TSC tsc)
    mark_as_advanced(QUERN_TSC)
    if(QUERN_TSC)
      configure_file(${quern_binding_tests}/types.mts ${quern_bindings_folder}/types.mts COPYONLY)
      add_test(NAME types_npm COMMAND ${QUERN_TSC} --noEmit --strict --target es2022 --module nodenext --moduleResolution
                                      nodenext --lib es2022,dom ${quern_bindings_folder}/types.mts)
    else()
      quern_add_skipped(types_npm "there is no compiler of TypeScript")
    endif()
    add_dependencies(quern_platform_tests quern_npm)
    set_property(TEST bindings_npm flock_npm package_npm types_npm APPEND PROPERTY LABELS platform)
  endif()
elseif(NOT QUERN_SANITIZE AND NOT WIN32 AND NOT CMAKE_CROSSCOMPILING)
  # Without sanitizers: their runtimes must be the first library of a process, which is that of the language.
  quern_add_binding_tests(python quern_python "${QUERN_NUMPY_PYTHON}" ${quern_binding_tests}/test_python.py
                          ${quern_flock}/flock.py "PYTHONPATH=${quern_bindings_folder}/python;PYTHONDONTWRITEBYTECODE=1")
  quern_add_binding_tests(lua quern_lua "${QUERN_LUAJIT}" ${quern_binding_tests}/test_lua.lua ${quern_flock}/flock.lua
                          "LUA_PATH=${quern_bindings_folder}/lua/?.lua")
endif()
