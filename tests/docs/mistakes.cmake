# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The Quern authors

# cmake -DROOT=... -DCXX_COMPILER=... -DBUILD=... -P mistakes.cmake: fails unless the compiler rejects common mistakes in
# uses of <quern/quern.hpp> with a sentence that says what to do as its first error, and no long list of others.
cmake_minimum_required(VERSION 3.25)
include(${CMAKE_CURRENT_LIST_DIR}/compile.cmake)

set(program "#include <quern/quern.hpp>\n#include <memory>\nstruct Position { float x; };\nstruct Tag {};\n
struct Event { int x; };\nstruct Free { float x; };\nstruct Option {};\nvoid f(quern::app &app, quern::query<Position> &query,
 std::unique_ptr<int> owned)\n{\n(void)app, (void)query, (void)owned;\n")

set(command ${CXX_COMPILER} -std=c++17 -fsyntax-only -fdiagnostics-color=never)

function(expect_accepted call)
  compile(${BUILD}/mistakes.cpp "${program}${call};\n}" result output ${command})
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "this does not compile:\n${call}\n${output}")
  endif()
endfunction()

function(expect_mistake words call)
  compile(${BUILD}/mistakes.cpp "${program}${call};\n}" result output ${command})
  if(result EQUAL 0)
    message(SEND_ERROR "this compiles, and must not:\n${call}")
  endif()
  string(REGEX MATCH "error: [^\n]*" first "${output}")
  if(NOT first MATCHES "quern: [^\n]*${words}")
    message(SEND_ERROR "the first error of\n${call}\nlacks '${words}':\n${output}")
  endif()
  string(REGEX MATCHALL "\n" lines "${output}")
  list(LENGTH lines count)
  if(count GREATER 15)
    message(SEND_ERROR "the errors of\n${call}\nhave ${count} lines:\n${output}")
  endif()
endfunction()

expect_accepted("app.add(\"a\", [](Position &p, const Free *, quern::seconds dt, quern::context, quern_entity) { p.x += dt; })")
expect_accepted("app.add(\"a\", static_cast<void (*)(Position &)>([](Position &) {}), quern::without<Tag>{})")
expect_accepted("app.add_once(\"a\", [owned = std::move(owned)](quern::context) {})")
expect_mistake("by value" "app.add(\"a\", [](Position p) { p.x = 1; })")
expect_mistake("by value" "(void)query.each([](Position p) { p.x = 1; })")
expect_mistake("quern::seconds" "app.add(\"a\", [](Position &p, float dt) { p.x += dt; })")
expect_mistake("no `auto`" "app.add(\"a\", [](auto &p) { p.x = 1; })")
expect_mistake("no `auto`" "(void)query.each([](auto &p) { p.x = 1; })")
expect_mistake("no `auto`" "app.add_events(\"a\", [](const auto &) {})")
expect_mistake("quern::context" "app.add(\"a\", [](Position &, quern::context &) {})")
expect_mistake("const quern_view" "app.add(\"a\", [](quern_view &) {})")
expect_mistake("options come last" "app.add(\"a\", [](Position &) {}, \"after\")")
expect_mistake("options come last" "app.add(\"a\", [](Position &) {}, Option{})")
expect_mistake("options come last" "app.add_once(\"a\", [](quern::context) {}, 1)")
expect_mistake("no reference" "app.add(\"a\", [](Position &) {}, quern::without<Tag &>{})")
expect_mistake("no reference" "app.add(\"a\", [](Position &) {}, quern::changed<const Position>{})")
expect_mistake("std::move" "auto lambda = [owned = std::move(owned)](Position &) {}; app.add(\"a\", lambda)")
expect_mistake("a quern::context" "app.add_once(\"a\", [](Position &) {})")
expect_mistake("const Event" "app.add_events(\"a\", [](Event &) {})")
expect_mistake("options come last" "quern::query<Position> other(app, quern::phase{0})")
expect_mistake("same type" "app.create(Position{1}, Position{2})")
