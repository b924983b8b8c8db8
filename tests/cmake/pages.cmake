# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The Quern authors

# Tests that the programs in documents compile, and that they print the outputs shown there.

# quern_add_page_test(NAME SCRIPT DOCUMENT ARGUMENT ...): adds a test in which docs/SCRIPT.cmake compares the document
# with the arguments.
function(quern_add_page_test name script document)
  add_test(NAME ${name} COMMAND ${CMAKE_COMMAND} -DDOCUMENT=${PROJECT_SOURCE_DIR}/${document} ${ARGN} -P
                                ${CMAKE_CURRENT_SOURCE_DIR}/docs/${script}.cmake)
endfunction()

# Documents that quote whole programs.
quern_add_page_test(readme_quotes_hello quote README.md -DSOURCE=${PROJECT_SOURCE_DIR}/examples/hello.c)
foreach(example counter fork graph loop submit_loop host_threads window)
  quern_add_page_test(docs_quote_jobs_${example} quote docs/jobs.md
                      -DSOURCE=${PROJECT_SOURCE_DIR}/examples/jobs/${example}.c)
endforeach()

# The program at the top of a page, and its output: docs/PAGE.md quotes examples/pages/PAGE.c.
foreach(page archives commands entities events history lists prefabs queries reactions reflection relations replays shorthand systems
             toggles)
  quern_add_page_test(${page}_page_quotes_program quote docs/${page}.md
                      -DSOURCE=${PROJECT_SOURCE_DIR}/examples/pages/${page}.c)
endforeach()
quern_add_page_test(cpp_page_quotes_program quote docs/cpp.md -DSOURCE=${PROJECT_SOURCE_DIR}/examples/hello.cpp)
quern_add_page_test(readme_quotes_hello_cpp quote README.md -DSOURCE=${PROJECT_SOURCE_DIR}/examples/hello.cpp)
quern_add_page_test(changes_page_quotes_program quote docs/changes.md -DSOURCE=${PROJECT_SOURCE_DIR}/examples/changes.c)
quern_add_page_test(kit_page_quotes_program quote docs/kit.md
                    -DSOURCE=${PROJECT_SOURCE_DIR}/examples/pages/transforms.c)
quern_add_page_test(kit_page_quotes_prefab_json quote docs/kit.md
                    -DSOURCE=${PROJECT_SOURCE_DIR}/examples/pages/prefab_json.c)
quern_add_page_test(machines_page_quotes_program quote docs/machines.md -DSOURCE=${PROJECT_SOURCE_DIR}/examples/ranks/flock_ranks.c)
quern_add_page_test(passes_page_quotes_program quote docs/passes.md -DSOURCE=${PROJECT_SOURCE_DIR}/examples/explain.c)
quern_add_page_test(profiling_page_quotes_program quote docs/profiling.md
                    -DSOURCE=${PROJECT_SOURCE_DIR}/examples/pages/profiling.c)

# quern_add_quotes(TEST PAGE SOURCE ...): tests that each block of C in docs/PAGE.md is in one of the files or folders.
function(quern_add_quotes test page)
  list(TRANSFORM ARGN PREPEND ${PROJECT_SOURCE_DIR}/)
  list(JOIN ARGN "\\;" sources)
  quern_add_page_test(${page}_page_${test} quote_parts docs/${page}.md "-DSOURCE=${sources}")
endfunction()
quern_add_quotes(quotes_example archives examples/pages/archives.c examples/saves.c examples/restart.c examples/migrate.c)
quern_add_page_test(
  cpp_page_quotes_parts quote_parts docs/cpp.md -DLANGUAGE=cpp
  "-DSOURCE=${PROJECT_SOURCE_DIR}/examples/hello.cpp\;${PROJECT_SOURCE_DIR}/tests/cpp/words.cpp")
quern_add_quotes(quotes_example commands examples/pages/commands.c examples/commands.c examples/turret.c)
quern_add_quotes(quotes_example entities examples/pages/entities.c examples/pages/required.c)
quern_add_quotes(quotes_example events examples/pages/events.c examples/events.c)
quern_add_quotes(quotes_example history examples/pages/history.c examples/delta.c examples/follow.c)
quern_add_quotes(quotes_examples how examples/how examples/boids.c examples/jobs examples/ranks examples/rogue.c examples/server.c examples/stream)
foreach(peer bevy entt flecs unity)
  quern_add_quotes(quotes_idioms coming-from-${peer} examples/how/idioms.c)
endforeach()
foreach(peer entt flecs)
  quern_add_page_test(coming-from-${peer}_page_quotes_cpp quote_parts docs/coming-from-${peer}.md -DLANGUAGE=cpp
                      -DSOURCE=${PROJECT_SOURCE_DIR}/examples/cpp/idioms.cpp)
endforeach()
quern_add_quotes(quotes_commands internals core/record core/playback)
quern_add_quotes(quotes_examples jobs examples/jobs examples/stream)
quern_add_quotes(quotes_example kit examples/pages/prefab_json.c examples/pages/transforms.c examples/crane.c examples/near.c examples/netplay.c)
quern_add_quotes(quotes_example living-code examples/live/sparks.c examples/live/host.c)
quern_add_page_test(living-code_page_quotes_cpp quote_parts docs/living-code.md -DLANGUAGE=cpp
                    -DSOURCE=${PROJECT_SOURCE_DIR}/examples/live/sparks.cpp)
quern_add_quotes(quotes_example machines examples/ranks)
quern_add_quotes(quotes_example prefabs examples/pages/prefabs.c examples/pages/slots.c examples/how/trees.c
                examples/keep/game/waves.c)
quern_add_quotes(quotes_example profiling examples/pages/profiling.c examples/watch.c)
quern_add_quotes(quotes_game queries examples/pages/queries.c examples/keep/game examples/how/sorted.c)
quern_add_quotes(quotes_example reactions examples/pages/reactions.c examples/reactions.c)
quern_add_quotes(quotes_example reflection examples/pages/reflection.c examples/inspect.c)
quern_add_quotes(quotes_example replays examples/pages/replays.c examples/rollback.c)
quern_add_quotes(quotes_kit relations examples/pages/relations.c examples/pages/edge_values.c examples/likes.c kit)

# quern_add_output(EXAMPLE PAGE): tests that docs/PAGE.md shows the whole output of the example.
function(quern_add_output example page)
  if(TARGET quern_${example})
    quern_add_page_test(docs_quote_${example} output docs/${page}.md -DPROGRAM=$<TARGET_FILE:quern_${example}>)
    quern_guard_test(docs_quote_${example})
  endif()
endfunction()
foreach(page archives commands entities events history lists prefabs queries reactions reflection relations replays shorthand systems
             toggles)
  quern_add_output(page_${page} ${page})
endforeach()
quern_add_output(page_edge_values relations)
quern_add_output(page_prefab_json kit)
quern_add_output(page_transforms kit)
quern_add_output(changes_example changes)
quern_add_output(crane kit)
quern_add_output(delta history)
quern_add_output(explain passes)
quern_add_output(inspect_example reflection)
quern_add_output(likes relations)
quern_add_output(near kit)
quern_add_output(netplay_example netplay)
quern_add_output(rollback replays)

# The tutorial: each chapter quotes its program, and all but the chapter with times its output.
foreach(chapter components commands prefabs events input threads profile rewind)
  set(page tutorial/${chapter})
  quern_add_page_test(tutorial_${chapter}_quotes_program quote_parts docs/${page}.md
                      -DSOURCE=${PROJECT_SOURCE_DIR}/examples/tutorial)
  if(NOT chapter STREQUAL "profile")
    quern_add_output(tutorial_${chapter} ${page})
  endif()
endforeach()

# Tests that each public function is named in a page.
add_test(NAME pages_name_functions COMMAND ${CMAKE_COMMAND} -DROOT=${PROJECT_SOURCE_DIR} -P
                                           ${CMAKE_CURRENT_SOURCE_DIR}/docs/named.cmake)

quern_add_page_test(internals_page_names_functions functions docs/internals.md -DROOT=${PROJECT_SOURCE_DIR})
