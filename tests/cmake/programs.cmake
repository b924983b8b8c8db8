# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The Quern authors

# Tests that run examples and benchmarks as users do.

# quern_add_example(NAME ARGUMENTS REGEX ...): runs the program of target quern_NAME with the list of arguments. Its
# output must match the regular expressions.
function(quern_add_example name arguments)
  quern_add_program_test(${name} quern_${name} ${quern_test_launcher} $<TARGET_FILE:quern_${name}> ${arguments})
  quern_expect(${name} ${ARGN})
endfunction()

quern_add_example(hello "" "is at 1000\n")
quern_add_example(market 30 "^day 30: 2842 people " "with and without a save: hash e392fa27931686b2\n$")
quern_add_example(saves "" "carried 2 entities. 'tower' comes first\n")
quern_add_example(follow "" "^frame 1: [0-9]+ bytes, same\n" "frame 7: [0-9]+ bytes, same\nwhat aims: [0-9]+ bytes\n$")
quern_add_example(migrate "" "^4 guards in [0-9]+ bytes\n3 guards in [0-9]+ bytes\n" "10 guards arrived\n$")
quern_add_example(restart "" "^the restarted run is the same\n$")
quern_add_example(changes_example "" "frame 2\n  tree 2: 7\nframe 3\n  tree 2: 6\n  tree 4: 20\n$")
quern_add_example(events_example ""
                  "^frame 1: 10 hits, 9 left\nframe 2: 10 hits, 8 left\nframe 3: 10 hits, 7 left\n")
quern_add_example(commands_example "" "extinguish: 33 dropped, entity destroyed by an earlier command\n"
                  "[0-9]+: remove, entity [0-9]+, dropped: entity destroyed by an earlier command\n")
quern_add_example(page_profiling "" "^frame [0-9.]+ us on 1 thread, mean of 100; " "\nmove +[0-9.]+ ")
quern_add_example(turret "" "frame 2: 19 enemies destroyed, 620 hits in vain\n$")
quern_add_example(inspect_example "" "cannot hold '11'" "\nguard:\n" "mood = angry\n" "x = 2.5\n"
                  "target = /gate\n" "agents: mut Agent: 1 entities\n$")
quern_add_example(watch ${CMAKE_CURRENT_BINARY_DIR}/watch.json "frame 299: " "\nspawn " "\nfall "
                  "\n[1-9][0-9]* events traced\n")
quern_add_example(
  stream "1;2"
  "piece 5 is left out: cannot be read: "
  "piece 18 is left out: ends after 3000 bytes\n"
  "piece 22 is left out: ends after 0 bytes\n"
  "piece 31 is left out: block 7 is damaged\n"
  "50 pieces streamed, 4 left out. 16384 entities, as they were written\n$")
quern_add_example(how_idioms "" "bob is liked by 1\n" "has got a health\n" "the copy is the same\n$")
quern_add_example(how_beside "" "^the crate is at 0, the barrel at 3.8\nbodies: 1\nsound 7, volume 0.5\n"
                  "room 3: hash 033b6c310360667e\n$")
quern_add_example(how_world "" "^knight: found, 90 points\n2 things, the first is 12\n5 items\n" "x = 12.5\n")
quern_add_example(how_systems "" "all points: 2\n" "two of three ghosts are near: 7 points\n" "explode: passed\n" "shuffled runs: equal\n$")
quern_add_example(how_flow "" "frame 0: menu, 0 miners" "frame 90: playing, 3 miners" "frame 112: menu, 0 miners\n3 ways found\n$")
quern_add_example(how_play "" "second 3: spark is gone" "second 5: [^\n]* guard angry, gun empty\n" "near: 18\n$")
quern_add_example(how_keep "" "^door at 8\nloaded: the same\nloaded by its archive: [0-9]+ components\n" "'move': write 'Place'\n")
quern_add_example(how_trees "" "^the sword is at 0, then behind 'belt'\nlevels below the hero: 3\n1 items, 73.5 kg in all\n"
                  "1 entities, 1 entities, " "rattling below 2 kg\n" "the crate takes 0.375 of the cart\n" "a fan of 1 leaves one, which likes back: yes\n"
                  "the fan likes 1, 'likes' is no hierarchy\n$")
quern_add_example(how_share "" "^loops: 2\nloops: 1, volume 0.2\nloops: 0\npressed list\npressed window\norc 0 at 5\norc 1 at 12\n$")
quern_add_example(how_rows "" "^best two: 705\n50 cells are hot\n8 sparks, the first of 50\nall scores: 4430\n"
                  "the score is 10\n1 sparks to hear\n50 cooled, 100 saved, 1 archetypes gone\n$")
quern_add_example(how_sorted "" "^runeq\nthe first of team -1 greets 2 others\n" "\nenqru\nteam -1 has 3 members\n" "both have the value -1")
quern_add_example(how_tools "" "^goblin. .1.\n0 is the wind; a Hit has 4 bytes\n"
                  "alive; of another world; made by a command that is not applied yet\n0 1\n"
                  "one pass: yes, one waits for the other: yes\n" "the avatar is at 3; 8 bytes were compared\n$")
if(TARGET quern_how_look)
  quern_add_example(how_look "" "^{\"done\":true}{\"probe\":1}" "\"seconds\":..[0-9]+," "fall: [0-9.]+ ms\n$")
endif()
quern_add_example(how_pool "" "^pieces: 60\n1000 items: all\n0 items: cancelled\nitems of graphs: 120\nsearched\n"
                  "worker 2: ")
quern_add_example(maze 3 "\n#   ##      #      ## ..#\n" "frame 300: 16 dots left, 158 sounds\n" "hash 0xbbb41cb8b5c78173\n$")
quern_add_example(towers 3 "\n[.]+s[^\n]*c[^\n]*s[^\n]*a[^\n]*c[.]+\n" "60 killed, 0 escaped, 69 sprites\n" "0 sprites at the end\n$")
quern_add_example(rogue "" "turn 5: you find gold\n" "turn 13: the goblin dies\n" "gold 1, health 2\n$")
# Other versions of the libraries may compute and draw other bits, so only the numbers of bodies are known.
quern_add_program_test(physics quern_physics ${CMAKE_CURRENT_SOURCE_DIR}/examples/test_same.sh
                       "900 bodies made, 900 freed" $<TARGET_FILE:quern_physics> 300)
quern_add_program_test(sprites quern_sprites ${CMAKE_CURRENT_SOURCE_DIR}/examples/test_same.sh
                       "^100000 sprites, 2 frames, hash " $<TARGET_FILE:quern_sprites> --frames 2)
foreach(threads 1 3)
  quern_add_program_test(
    boids_${threads} quern_boids ${quern_test_launcher} $<TARGET_FILE:quern_boids> --frames 100 --birds 500
    --threads ${threads} --picture ${CMAKE_CURRENT_BINARY_DIR}/boids_${threads}.bmp)
  quern_expect(boids_${threads} "^100 frames, 500 birds, order 0.18, hash 85c7e7f6ded600a6\n$")
endforeach()
quern_add_example(tutorial_profile "" "'move': write 'Position', read 'Velocity'" "\nfollow +[0-9]" "Health.points = 9\n$")
quern_add_example(drift_inspect 3 "^open http://127.0.0.1:[0-9]+/")
quern_add_example(jobs_counter "" "size 828, on worker 0\n")
quern_add_example(jobs_fork "" "^0 out of order\n")
quern_add_example(jobs_graph "" "^at rest after 48 steps\n")
quern_add_example(jobs_loop "" "^249999750000\n")
quern_add_example(jobs_submit_loop "" "^found enough\n")
quern_add_example(jobs_host_threads "" "^1000 items\n")
quern_add_example(jobs_window "" "^100 pictures\n")
foreach(threads 1 2 3 8)
  quern_add_program_test(rollback_${threads} quern_rollback ${quern_test_launcher}
                         $<TARGET_FILE:quern_rollback> ${threads})
endforeach()

quern_add_program_test(swarm swarm ${CMAKE_CURRENT_SOURCE_DIR}/examples/test_swarm.sh ${quern_test_launcher}
                       $<TARGET_FILE:swarm>)
quern_add_program_test(keep keep_headless ${CMAKE_CURRENT_SOURCE_DIR}/examples/test_keep.sh
                       ${PROJECT_SOURCE_DIR}/examples/keep/levels $<IF:$<CONFIG:Release>,6000,1500> ${quern_test_launcher}
                       $<TARGET_FILE:keep_headless>)
if(NOT QUERN_SANITIZE STREQUAL "thread")
  quern_add_program_test(keep_files keep_headless ${CMAKE_CURRENT_SOURCE_DIR}/examples/test_keep_files.sh
                         $<TARGET_FILE:keep_headless>)
endif()
if(TARGET keep AND NOT QUERN_SANITIZE)
  quern_add_program_test(keep_window keep ${CMAKE_CURRENT_SOURCE_DIR}/examples/test_keep_window.sh
                         $<TARGET_FILE:keep_headless> $<TARGET_FILE:keep>)
endif()
if(TARGET keep_game AND TARGET quern_test_support AND UNIX)
  set(quern_test_libraries_examples keep_game)
  quern_add_test(test_keep_saves examples/test_keep_saves.c)
  if(TARGET test_keep_saves)
    target_compile_definitions(
      test_keep_saves PRIVATE KEEP_SMALL_LEVEL="${CMAKE_CURRENT_SOURCE_DIR}/examples/keep/small.json")
  endif()
endif()
foreach(transport enet udp)
  if((transport STREQUAL "enet" AND KEEP_ENET_INCLUDE AND KEEP_ENET_LIBRARY) OR (transport STREQUAL "udp" AND UNIX))
    if(NOT QUERN_SANITIZE STREQUAL "thread")
      quern_add_program_test(keep_together_${transport} keep_headless ${CMAKE_CURRENT_SOURCE_DIR}/examples/test_keep_together.sh
                             ${transport} ${quern_test_launcher} $<TARGET_FILE:keep_headless>)
    endif()
  endif()
endforeach()

# Reloads what the compiler makes, step by step.
quern_add_program_test(live quern_live_example $<TARGET_FILE:quern_live_example> --check)
quern_expect(live "\"reloads\": 5")
quern_add_program_test(live_cpp quern_live_example $<TARGET_FILE:quern_live_example> --check --c++ --threads 3)
quern_expect(live_cpp "\"reloads\": 5")
if(NOT QUERN_SANITIZE)
  quern_add_program_test(live_measure quern_live_example $<TARGET_FILE:quern_live_example> --measure)
  quern_expect(live_measure "\"entities\": 100000, \"systems\": 50, " "\"reload with a component converted\": ")
endif()
foreach(name live live_cpp live_measure)
  if(TEST ${name} AND CMAKE_CROSSCOMPILING)
    set_tests_properties(${name} PROPERTIES DISABLED ON) # modules would need the compiler there
  endif()
endforeach()

quern_add_program_test(lan quern_lan ${CMAKE_CURRENT_SOURCE_DIR}/examples/test_lan.sh ${quern_test_launcher}
                       $<TARGET_FILE:quern_lan>)
if(WIN32 AND TARGET quern_lan)
  add_dependencies(quern_platform_tests quern_lan) # the sockets of Windows
  set_property(TEST lan APPEND PROPERTY LABELS platform)
endif()
quern_add_program_test(server quern_server ${CMAKE_CURRENT_SOURCE_DIR}/examples/test_server.sh ${quern_test_launcher}
                       $<TARGET_FILE:quern_server>)

foreach(ranks 1 3)
  quern_add_program_test(epidemic_${ranks} epidemic_alone epidemic_alone --households 500 --frames 60 --threads 2 --ranks ${ranks})
  quern_expect(epidemic_${ranks} "1621 messages" "hash by id: 0x3014a0d628233392")
endforeach()

# The thread sanitizer knows no MPI.
quern_add_program_test(ranks_alone ranks_alone ${CMAKE_CURRENT_SOURCE_DIR}/examples/test_ranks.sh $<TARGET_FILE:ranks_alone>)
if(TARGET ranks AND NOT QUERN_SANITIZE AND NOT CMAKE_CROSSCOMPILING)
  add_test(NAME ranks COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/examples/test_ranks.sh $<TARGET_FILE:ranks_alone>
                              $<TARGET_FILE:ranks> $<TARGET_FILE:epidemic>)
  set_tests_properties(ranks PROPERTIES PROCESSORS 2)
  quern_label_optimised(ranks ranks ranks_alone epidemic)
  quern_guard_test(ranks)
endif()

# The shared library exports what the public headers declare, and runs a program.
if(NOT QUERN_SANITIZE AND NOT EMSCRIPTEN)
  set(quern_soname "")
  if(CMAKE_SYSTEM_NAME STREQUAL "Linux")
    set(quern_soname libquern.so.${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
  endif()
  add_test(NAME exported_symbols COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/platform/test_symbols.sh
                                         ${PROJECT_BINARY_DIR}/quern.symbols $<TARGET_FILE:quern_shared> ${CMAKE_NM}
                                         ${CMAKE_OBJDUMP} ${quern_soname})
  quern_label_optimised(exported_symbols quern_shared)
endif()
if(WIN32)
  add_executable(load_dll ${PROJECT_SOURCE_DIR}/examples/hello.c)
  quern_configure_target(load_dll)
  target_link_libraries(load_dll PRIVATE quern_shared)
  set_target_properties(load_dll PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR})
  add_test(NAME load_dll COMMAND ${quern_test_launcher} $<TARGET_FILE:load_dll>)
  set_tests_properties(load_dll PROPERTIES PASS_REGULAR_EXPRESSION "is at 1000")
  add_dependencies(quern_platform_tests load_dll)
endif()

# The same results on every platform.
if(TARGET swarm)
  add_test(NAME hashes COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/platform/test_hashes.sh ${PROJECT_SOURCE_DIR}
                               $<TARGET_FILE_DIR:swarm> "${CMAKE_EXECUTABLE_SUFFIX}" ${quern_test_launcher})
  set_tests_properties(hashes PROPERTIES LABELS threaded)
  quern_label_optimised(hashes ${quern_hash_programs})
  quern_guard_test(hashes)
  if(EMSCRIPTEN AND NOT QUERN_WASM_THREADS)
    set_property(TEST hashes APPEND PROPERTY ENVIRONMENT QUERN_HASH_THREADS=1) # there are no threads
  elseif(CMAKE_C_BYTE_ORDER STREQUAL "BIG_ENDIAN")
    # Agents cross the borders of ranks in archives, which big-endian machines refuse.
    set_property(TEST hashes APPEND PROPERTY ENVIRONMENT QUERN_HASH_WITHOUT=ranks)
  endif()
endif()

# The page shows the flock, and ends with the hash of the table. Without a browser, the test is reported as skipped.
if(TARGET quern_web)
  add_test(NAME web_page COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/platform/test_web_page.sh $<TARGET_FILE:quern_web>)
  set_tests_properties(web_page PROPERTIES SKIP_RETURN_CODE 77)
  quern_guard_test(web_page)
  add_dependencies(quern_platform_tests quern_web)
endif()

# What ./run test PLATFORM runs, besides the tests of the core.
foreach(name hashes exported_symbols load_dll web_page)
  if(TEST ${name})
    set_property(TEST ${name} APPEND PROPERTY LABELS platform)
  endif()
endforeach()

# One placement of the data in memory is enough here. The thread sanitizer finds nothing on one thread. A profile is
# gathered in one of 16 frames, so 20 passes are enough for one. Sanitizers need fewer: passes are alike.
set(quern_bench_choice --placements 1 --warm-up 1 --threads 1,2)
set(quern_few_passes --repeat 1 --passes 20)
set(quern_fewest_passes ${quern_few_passes})
set(quern_profiled_entities 20000)
if(QUERN_SANITIZE STREQUAL "thread")
  set(quern_bench_choice --placements 1 --warm-up 0 --threads 2)
endif()
if(QUERN_SANITIZE)
  set(quern_fewest_passes --repeat 1 --passes 4)
  set(quern_profiled_entities 2000)
endif()
quern_add_program_test(
  bench quern_bench ${quern_test_launcher} $<TARGET_FILE:quern_bench> --entities 1000
  ${quern_fewest_passes} ${quern_bench_choice})

quern_add_program_test(
  bench_forecast quern_bench ${quern_test_launcher} $<TARGET_FILE:quern_bench> --workload frame7 --entities 1000
  ${quern_few_passes} --threads 1,2 --forecast 4,8 --trace ${CMAKE_CURRENT_BINARY_DIR}/bench_trace.json)
quern_expect(bench_forecast "limited by\n +1 " "\n +2 " "\n +4 " "\n +8 ")

quern_add_program_test(
  bench_profile quern_bench ${quern_test_launcher} $<TARGET_FILE:quern_bench> --workload frame7 --entities ${quern_profiled_entities}
  ${quern_few_passes} --threads 2 --profile --counters)
quern_expect(bench_profile "Profile of frame7, ${quern_profiled_entities} entities, 2 threads, quern\nframe " "\nsum_bits " "\n1  ")

quern_add_program_test(
  grid quern_bench_grid ${quern_test_launcher} $<TARGET_FILE:quern_bench_grid> --workload *_3x16_33 --entities 1000
  ${quern_fewest_passes} --warm-up 0 --threads 1,2)

quern_add_program_test(own_bench quern_own_bench ${quern_test_launcher} $<TARGET_FILE:quern_own_bench> --entities
                       1000 --repeat 2 --threads 1,2 --frames)
quern_add_program_test(
  own_bench_watched quern_own_bench ${quern_test_launcher} $<TARGET_FILE:quern_own_bench> --entities 1000
  --repeat 1 --threads 1,2 --forecast 4 --trace ${CMAKE_CURRENT_BINARY_DIR}/own_bench_trace.json)
quern_expect(own_bench_watched "limited by\n +1 " "\n +2 " "\n +4 ")
if(TEST own_bench_watched)
  set_property(TEST own_bench_watched APPEND PROPERTY FAIL_REGULAR_EXPRESSION "has no events")
endif()

# Opens the report of the benchmark in a browser. Without a browser, the test is reported as skipped.
if(NOT QUERN_SANITIZE STREQUAL "thread")
  quern_add_program_test(bench_report quern_bench ${CMAKE_CURRENT_SOURCE_DIR}/bench/test_report.sh
                         ${CMAKE_CURRENT_SOURCE_DIR}/bench/results.jsonl $<TARGET_FILE:quern_bench>)
  if(TEST bench_report)
    set_tests_properties(bench_report PROPERTIES SKIP_RETURN_CODE 77 PROCESSORS 2)
  endif()
endif()

# The inspector of the demo: every answer by the schema of the documentation, and the page in a browser. The game ends
# in the same world when it is inspected and taken back. They run in the optimised build alone: what they try of the
# library is also in tests/inspect.
if(TARGET quern_inspect AND TARGET swarm AND NOT QUERN_SANITIZE AND NOT QUERN_CHECKS)
  add_executable(quern_inspect_large inspect/large/large_program.c)
  quern_configure_target(quern_inspect_large)
  target_include_directories(quern_inspect_large PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(quern_inspect_large PRIVATE quern_inspect quern_static)
  find_program(QUERN_NODE node)
  find_program(QUERN_CHROMIUM NAMES chromium chromium-browser google-chrome)
  mark_as_advanced(QUERN_NODE QUERN_CHROMIUM)
  add_test(NAME inspect_answers COMMAND python3 ${CMAKE_CURRENT_SOURCE_DIR}/inspect/check_answers.py
                                        $<TARGET_FILE:swarm> ${PROJECT_SOURCE_DIR}
                                        $<TARGET_FILE:quern_inspect_large> ${CMAKE_C_COMPILER}
                                        $<TARGET_FILE:quern_static> ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/include
                                        ${PROJECT_BINARY_DIR}/inspect/include ${PROJECT_BINARY_DIR}/kit/include)
  set(inspect_tests inspect_answers)
  if(QUERN_NODE AND QUERN_CHROMIUM)
    add_test(NAME inspect_page COMMAND ${QUERN_NODE} ${CMAKE_CURRENT_SOURCE_DIR}/inspect/look.mjs $<TARGET_FILE:swarm>
                                       ${PROJECT_SOURCE_DIR} ${QUERN_CHROMIUM})
    add_test(NAME inspect_large_page
             COMMAND ${QUERN_NODE} ${CMAKE_CURRENT_SOURCE_DIR}/inspect/look_large.mjs
                     $<TARGET_FILE:quern_inspect_large> ${PROJECT_SOURCE_DIR} ${QUERN_CHROMIUM})
    list(APPEND inspect_tests inspect_page inspect_large_page)
  else()
    message(STATUS "The test of the inspector's page is left out: it needs node and Chromium.")
  endif()
  if(TARGET keep_headless)
    add_test(NAME keep_inspect COMMAND python3 ${CMAKE_CURRENT_SOURCE_DIR}/examples/test_keep_inspect.py
                                       $<TARGET_FILE:keep_headless> ${PROJECT_SOURCE_DIR})
    list(APPEND inspect_tests keep_inspect)
    add_dependencies(quern_optimised_tests keep_headless)
  endif()
  add_dependencies(quern_optimised_tests quern_inspect_large)
  foreach(name IN LISTS inspect_tests)
    set_tests_properties(${name} PROPERTIES SKIP_RETURN_CODE 77 PROCESSORS 2)
    quern_label_optimised(${name} swarm)
    quern_guard_test(${name})
  endforeach()
endif()

# Whole games of netplay in virtual time; ./run netplay --simulate runs more seeds.
add_executable(quern_netplay_simulate netplay/simulate.c kit/netplay_simulation.c)
quern_configure_target(quern_netplay_simulate)
target_include_directories(quern_netplay_simulate PRIVATE ${PROJECT_SOURCE_DIR})
target_link_libraries(quern_netplay_simulate PRIVATE quern_netplay quern_static)
