# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The Quern authors

# cmake -DROOT=... -DCXX_COMPILER=... -DBUILD=... -P mistakes.cmake: fails unless the compiler rejects common mistakes in
# uses of <quern/quern.hpp>, and of the macros of C in both languages, with a sentence that says what to do as its first
# error, and no long list of others.
cmake_minimum_required(VERSION 3.25)
include(${CMAKE_CURRENT_LIST_DIR}/compile.cmake)

set(program "struct Position { float x; };\nstruct Tag {};\n
struct Event { int x; };\nstruct Free { float x; };\nstruct Option {};\n
struct Given { explicit Given(int); int x; };\nstruct Owned { std::unique_ptr<int> x; };\nvoid f(quern::app &app, quern::query<Position> &query,
 std::unique_ptr<int> owned)\n{\n(void)app, (void)query, (void)owned;\n")

set(plain ${CXX_COMPILER} -std=c++17 -fsyntax-only -fdiagnostics-color=never)

# All headers are compiled once, which saves nine tenths of the time. The folder of the kit's headers is named as it is
# installed.
file(MAKE_DIRECTORY ${BUILD}/kit/quern)
file(CREATE_LINK ${ROOT}/kit ${BUILD}/kit/quern/kit SYMBOLIC)
set(headers ${BUILD}/headers.hpp)
file(WRITE ${headers} "#include <quern/quern.hpp>\n#include <quern/tasks.hpp>\n#include <quern/prefabs.hpp>\n
#include <quern/getters.hpp>\n#include <quern/saves.hpp>\n#include <quern/kit/grid.hpp>\n
#include <quern/kit/transform.hpp>\n#include <memory>\n")
execute_process(COMMAND ${CXX_COMPILER} --version OUTPUT_VARIABLE version)
set(suffix gch)
if(version MATCHES "clang")
  set(suffix pch)
endif()
set(options -std=c++17 -I${ROOT}/include -I${BUILD}/kit)
execute_process(COMMAND ${CXX_COMPILER} ${options} -x c++-header ${headers} -o ${headers}.${suffix}
  COMMAND_ERROR_IS_FATAL ANY)
set(command ${plain} -I${BUILD}/kit -Winvalid-pch -include ${headers})

# expect_error(CODE WORDS LIMIT COMMAND...): the first error has the words, and there are at most LIMIT lines, without
# those that say where a header is included.
function(expect_error code words limit)
  compile(${BUILD}/mistakes.cpp "${code}" result output ${ARGN})
  if(result EQUAL 0)
    message(SEND_ERROR "this compiles, and must not:\n${code}")
  endif()
  string(REGEX MATCH "error: [^\n]*" first "${output}")
  if(NOT first MATCHES "${words}")
    message(SEND_ERROR "the first error of\n${code}\nlacks '${words}':\n${output}")
  endif()
  string(REGEX REPLACE "In file included from [^\n]*\n" "" output "${output}")
  string(REGEX MATCHALL "\n" lines "${output}")
  list(LENGTH lines count)
  if(count GREATER limit)
    message(SEND_ERROR "the errors of\n${code}\nhave ${count} lines:\n${output}")
  endif()
endfunction()

function(expect_code_accepted code)
  compile(${BUILD}/mistakes.cpp "${code}" result output ${ARGN})
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "this does not compile:\n${code}\n${output}")
  endif()
endfunction()

function(expect_accepted call)
  expect_code_accepted("${program}${call};\n}" ${command})
endfunction()

function(expect_mistake words call)
  expect_error("${program}${call};\n}" "quern: [^\n]*${words}" 15 ${command})
endfunction()

# A type that is refused where it is registered: one error, and a line for each call that leads there.
function(expect_type_mistake words call)
  expect_error("${program}${call};\n}" "quern: [^\n]*${words}" 25 ${command})
endfunction()

# A type that is refused as a parameter of a lambda: one error, and a line for each template that leads there.
function(expect_parameter_mistake words call)
  expect_error("${program}${call};\n}" "quern: [^\n]*${words}" 45 ${command})
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
expect_mistake("parameters of systems" "(void)query.each([](Position &, quern::emitter<Event>) {})")
expect_mistake("parameters of systems" "(void)query.each(app.jobs(), [](Position &, quern::reduce<Event>) {})")
expect_mistake("parameters of systems" "(void)query.each([](Position &, quern::others<const Free>) {})")
expect_mistake("quern::others and quern::column by value" "app.add(\"x\", [](Position &, quern::others<const Free> &) {})")
expect_mistake("those of its list, in the same order" "app.add(\"x\", [](Position &, quern::others<const Free> others) {
  others.each([](Free &) {}); })")
foreach(item "const Free *" "quern::up<Free>" "quern::up<Free *>")
  expect_mistake("a pointer if they are pointers there, and quern::up as there"
                 "app.add(\"x\", [](Position &, quern::others<${item}> others) { others.each([](const Free &) {}); })")
  expect_mistake("a pointer if they are pointers there, and quern::up as there"
                 "quern::query<${item}> other(app); (void)other.each([](const Free &) {})")
endforeach()
expect_mistake("const if they are const there" "quern::query<const Free> other(app); (void)other.each([](Free &) {})")
expect_mistake("in the same order" "(void)query.each(app.jobs(), [](const Free &) {})")
expect_accepted("quern::query<quern::up<Free *>, const Free *, Position> other(app);
  (void)other.each([](quern::up<Free *>, const Free *, const Position &) {});
  (void)other.each([](const quern_view &) {})")
expect_mistake("the options with, without, any, disabled, changed"
               "app.add(\"x\", [](Position &, quern::others<const Free, quern::along>) {})")
expect_mistake("by value" "(void)query.each(app.jobs(), [](Position) {})")
expect_mistake("no reference" "app.add(\"a\", [](Position &) {}, quern::any<Tag &>{})")
expect_mistake("capture nothing"
               "int x = 0; app.add(\"a\", [](Position &) {}, quern::run_if{[x](quern::context) { return x > 0; }})")

expect_accepted("for (auto [entity, position] : query) { (void)entity; position.x = 1; }")
expect_accepted("for (auto [entities, positions] : query.chunks()) { (void)entities; positions[0].x = 1; }")
expect_accepted("app.create().set<Position>({1}); app.create().get<const Position>()")
expect_mistake("no reference or pointer" "app.create().get<Position &>()")
expect_mistake("no reference or pointer" "app.create().has<Position, Tag *>()")
expect_mistake("a tag has no value" "app.create().get<Tag>()")
expect_mistake("keep its quern_entity" "app.create().set(app.create())")
expect_mistake("keep its quern_entity" "app.create(Position{1}, app.create())")
expect_mistake("pass it by std::move" "app.create().set(owned)")
foreach(call "component<quern::app_entity_ref>()" "event<quern::entity_ref>()" "resource(app.create())")
  expect_type_mistake("keep its quern_entity" "app.${call}")
endforeach()
foreach(call "app.create().has<const Position>()" "app.create().add<const Position>()" "app.component<const Position>()"
             "app.has<const Position>(quern::null)" "app.create().remove<const Position>()"
             "app.create().is_enabled<const Position>()" "(void)query.remove_from_all<const Position>()"
             "(void)query.add_to_all<const Position>()" "app.commands().entity(quern::null).add<const Position>()"
             "app.commands().remove<const Position>(quern::null)")
  expect_type_mistake("no const" "${call}")
endforeach()

# Types that lack what a call needs.
expect_type_mistake("for one entity at a time" "Owned value; quern_view view; app.commands().set(view, value)")
expect_mistake("no copy constructor" "const Owned value; quern_view view; app.commands().set_each(view, &value)")
expect_mistake("is a tag" "const Tag tag; quern_view view; app.commands().set_each(view, &tag)")
expect_mistake("has a copy constructor and is no tag" "Owned value; (void)query.add_to_all(value)")
expect_mistake("two arrays have the same type"
               "const Position p[1] = {{1}}; app.commands().create_many(1, nullptr, p, p)")
expect_parameter_mistake("this event has hooks" "app.add(\"a\", [](Position &, quern::emitter<Owned>) {})")
expect_parameter_mistake("begins as zero bytes" "app.add(\"a\", [](Position &, quern::reduce<Owned>) {})")
expect_mistake("a resource has a value" "app.resource<Tag>()")
expect_parameter_mistake("a tag has no old values" "app.add(\"a\", [](Position &, quern::old<Tag>) {})")
expect_parameter_mistake("query for an optional tag" "app.add(\"a\", [](Position &, const Tag *) {})")
expect_mistake("need default constructors" "(void)app.create_many(1, [](Given &) {})")
foreach(call "redefine_resource<Given>()" "resource<Given>()" "commands().add<Given>(quern::null)" "create().add<Given>()")
  expect_mistake("no default constructor" "app.${call}")
endforeach()
expect_mistake("no default constructor" "(void)query.add_to_all<Given>()")

# The other headers.
set(program "${program}quern::tasks tasks(app.jobs());\n")
expect_accepted("(void)tasks.submit([owned = std::move(owned)] {}, quern::task_name{\"a\"}, quern::on_caller)")
expect_mistake("without parameters" "(void)tasks.submit([](int *) {})")
expect_mistake("the options of tasks" "(void)tasks.submit([] {}, quern::after{\"a\"})")
expect_mistake("by std::move" "auto lambda = [owned = std::move(owned)] {}; (void)tasks.submit(lambda)")
expect_mistake("by std::move" "auto lambda = [owned = std::move(owned)] {}; (void)tasks.submit_for(1, 1, lambda)")
expect_mistake("by std::move" "auto lambda = [owned = std::move(owned)] {}; quern::graph graph; graph.add(lambda)")
expect_mistake("runs of graphs only" "quern::graph graph; (void)graph.submit(tasks, quern::task_name{\"a\"})")
expect_mistake("runs of graphs only" "quern::graph graph; (void)graph.submit(tasks, quern::priority{QUERN_PRIORITY_HIGH})")
expect_mistake("uint32_t begin" "(void)tasks.submit_for(1, 1, [](int *) {})")
expect_mistake("returns the number" "quern::graph graph; graph.add_choice([] {})")
expect_mistake("no parameters" "quern::fork fork(app.jobs(), [](int) {})")
expect_mistake("the options of relations" "app.relation(\"a\", quern::with<Tag>{})")
expect_mistake("copies its values" "quern::blueprint(app).root().set(std::move(owned))")
expect_type_mistake("no const" "quern::blueprint(app).root().add<const Position>()")
expect_type_mistake("no const" "quern::blueprint(app).root().disable<const Position>()")
expect_type_mistake("keep its quern_entity" "quern::blueprint(app).root().set(app.create())")
expect_mistake("by value" "quern::instances(app).fill([](Position) {})")
expect_mistake("with a value" "quern::getter<Tag> getter(app)")
expect_mistake("captures nothing" "app.combine<Position>(\"a\", [&](Position &, const Position &) { (void)app; })")
expect_mistake("is no tag" "(void)query.add_to_all(Tag{})")
foreach(loop "rows(result)" "chunks()" "chunks(result)")
  expect_mistake("give it a name" "quern_result result = QUERN_OK; (void)result;
  for (auto [entities, position] : quern::query<Position>(app).${loop}) (void)position")
endforeach()
expect_accepted("quern_result result; for (auto row : query.rows(result)) (void)row;
  for (auto chunk : query.chunks(result)) (void)chunk")
expect_mistake("no copy constructor" "app.commands().create_many(1, nullptr, &owned)")
expect_mistake("no copy constructor" "app.commands().accumulate(quern::null, owned, quern_combine{})")
expect_mistake("is a tag" "app.commands().accumulate(quern::null, Tag{})")

# Those of the kit.
set(place "struct Place { float x, y; double z; }; struct Box { float at[4]; };")
expect_accepted("${place} quern::grid<&Place::x, &Place::y> grid(app, quern::cell_size{2}, quern::without<Tag>{});
  for (auto found : grid.radius({1, 2}, 3)) (void)found; app.add(\"a\", [](Position &) {}, quern::searches{grid})")
expect_type_mistake("members of type float" "${place} quern::grid<&Place::x, &Place::z> grid(app)")
expect_type_mistake("members of one component" "${place} quern::grid<&Place::x, &Position::x> grid(app)")
expect_type_mistake("two or three coordinates" "${place} quern::grid<&Place::x> grid(app)")
expect_type_mistake("two or three coordinates" "${place} quern::grid<&Box::at> grid(app)")
expect_mistake("the options of grids" "${place} quern::grid<&Place::x, &Place::y> grid(app, quern::changed<Tag>{})")
expect_mistake("no reference" "${place} quern::grid<&Place::x, &Place::y> grid(app, quern::marks<Tag &>{})")
expect_type_mistake("copies its payload as bytes"
                    "${place} quern::grid<&Place::x, &Place::y> grid(app, quern::payload<Owned>{})")
expect_mistake("a quern_world3" "quern::transforms transforms(app); Position p; (void)transforms.compute(quern::null, p)")

# Descriptions of fields.
set(types "struct Position { float x; int *owner; float grid[2][3]; };\n#include <quern/quern.hpp>\n")
set(registers "quern_result f(quern_world *world) { return QUERN_REGISTER(world, Position, ")
expect_code_accepted("${types}QUERN_DESCRIBE(Position, x);\n${registers}x, grid[0], grid[1]); }" ${plain})
foreach(fields "x, z" "z")
  expect_error("${types}QUERN_DESCRIBE(Position, ${fields});" "quern: the type lacks a field" 15 ${plain})
  expect_error("${types}${registers}${fields}); }" "quern: the type lacks a field" 15 ${plain})
endforeach()
expect_error("${types}QUERN_DESCRIBE(Position, x, owner);" "quern: a pointer is no field" 15 ${command})
expect_error("${types}${registers}grid); }" "quern: a field is a bool[^\n]*list the elements" 15 ${command})

# Macros that C and C++ share.
set(types "#include <quern/quern.h>\ntypedef struct Position { float x, grid[2][3]; } Position;\n")
set(body "{ QUERN_ROWS(row) a[row].x = b[row].x; }")
foreach(language c c++)
  set(shared ${command})
  if(language STREQUAL "c")
    set(shared ${CXX_COMPILER} -x c -std=c11 -fsyntax-only -fdiagnostics-color=never)
  endif()
  set(eight "(Position, a), (const Position, b), (Position, c), (Position, d), (Position, e), (Position, f), (Position, g),
(Position, h)")
  expect_code_accepted("${types}QUERN_SYSTEM(move, ${eight}) ${body}" ${shared})
  expect_error("${types}QUERN_SYSTEM(move, ${eight}, (Position, i)) ${body}" "at most 8 columns" 15 ${shared})
  expect_error("${types}QUERN_SYSTEM(move, Position, a) { a[0].x = 1; }" "each column in parentheses" 15 ${shared})
  expect_error("${types}QUERN_SYSTEM(move, (Position, a), const Position *b) ${body}" "each column in parentheses" 15
               ${shared})
  expect_error("${types}QUERN_SYSTEM(move, (Position a)) { a[0].x = 1; }" "each column in parentheses" 15 ${shared})
  expect_error("${types}QUERN_SYSTEM(move, ) {}" "each column in parentheses" 15 ${shared})
  expect_error("${types}void set(quern_world *w, quern_entity e, quern_component c);
void set(quern_world *w, quern_entity e, quern_component c) { QUERN_MUST(quern_entity_set(w, e, c)); }"
               "too few arguments|no matching function for call to 'quern_entity_set'" 15 ${shared})
endforeach()
# C cannot assert in a list, so the name of a type is the sentence, and compilers list all macros in which it is nested.
set(words quern__a_field_is_a_number_an_entity_or_an_array_with_one_dimension_of_these)
expect_error("${types}quern_result f(quern_world *world);
quern_result f(quern_world *world) { return QUERN_REGISTER(world, Position, x, grid); }" ${words} 40 ${CXX_COMPILER} -x c
             -std=c11 -fsyntax-only -fdiagnostics-color=never)
