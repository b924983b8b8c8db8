# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The Quern authors

# cmake -DROOT=... -DC_COMPILER=... -DCXX_COMPILER=... -DBUILD=... -P refused.cmake: fails unless compilers reject
# types and fields that the macros cannot describe, with a message that names the reason. CXX_COMPILER may be empty.
cmake_minimum_required(VERSION 3.25)
include(${CMAKE_CURRENT_LIST_DIR}/compile.cmake)

set(thing "typedef struct Thing { float x, *pointer; const char *name; float table[2][2]; void *any; } Thing;")
set(owner "struct Owner { Owner(const Owner &) {} int x; };")

set(command_c ${C_COMPILER} -std=c11 -fsyntax-only)
set(command_cpp ${CXX_COMPILER} -std=c++17 -fsyntax-only)

function(expect_accepted suffix code)
  compile(${BUILD}/refused.${suffix} "#include <quern/quern.h>\n${code}" result output ${command_${suffix}})
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "this does not compile as ${suffix}:\n${code}\n${output}")
  endif()
endfunction()

function(expect_refused suffix code words)
  compile(${BUILD}/refused.${suffix} "#include <quern/quern.h>\n${code}" result output ${command_${suffix}})
  if(result EQUAL 0)
    message(FATAL_ERROR "this compiles as ${suffix}, and must not:\n${code}")
  elseif(NOT output MATCHES "${words}")
    message(FATAL_ERROR "the compiler's message lacks '${words}':\n${code}\n${output}")
  endif()
endfunction()

function(expect_fields_refused suffix field words)
  expect_refused(${suffix} "${thing}\nconst quern_field fields[] = QUERN_FIELDS(Thing, x, ${field});" "${words}")
endfunction()

expect_accepted(c "${thing}\nconst quern_field fields[] = QUERN_FIELDS(Thing, x);")
expect_fields_refused(c pointer "quern__a_pointer_is_no_field")
expect_fields_refused(c name "quern__a_field_is_a_number")
expect_fields_refused(c any "quern__a_field_is_a_number")
expect_fields_refused(c table "quern__a_field_is_a_number")
expect_fields_refused(c missing "missing")
expect_refused(c "${thing}\nvoid f(const quern_view *v);\nvoid f(const quern_view *v)\n{\n  Thing *t = \
QUERN_COLUMN(v, 0, Thing);\n  int *wrong;\n  _Static_assert(_Generic(QUERN_COLUMN(v, 0, const Thing), \
Thing *: 1, default: 0), \"not const\");\n  (void)t, (void)wrong;\n}" "not const")

if(NOT CXX_COMPILER)
  message("skipped: no C++ compiler")
  return()
endif()
set(registered "quern_result f(quern_world *w, quern_component *c) { return QUERN_COMPONENT_REGISTER(w, c, ")
expect_accepted(cpp "${thing}\nconst quern_field fields[] = QUERN_FIELDS(Thing, x);\n${registered}Thing); }")
expect_fields_refused(cpp pointer "a pointer is no field")
expect_fields_refused(cpp name "a pointer is no field")
expect_fields_refused(cpp table "fixed array")
expect_fields_refused(cpp missing "lacks a field")
expect_refused(cpp "${owner}\n${registered}Owner); }" "not trivially copyable")
expect_refused(cpp "${owner}\nvoid f(const quern_view *v) { QUERN_COLUMN(v, 0, Owner)->x = 1; }"
               "not trivially copyable")

# <quern/quern.hpp> moves what cannot be copied, and refuses what it can neither copy nor move.
set(single "#include <quern/quern.hpp>\n#include <memory>\nstruct Single { std::unique_ptr<int> value; };
struct Thing { int x; };
struct Pinned { Pinned() {} Pinned(const Pinned &) = delete; int x; };
struct Made { explicit Made(int) {} Made(Made &&) {} ~Made() {} int x; };
struct Set { explicit Set(int) {} int x; };
struct Needs { int x; }; QUERN_REQUIRE(Needs, Set);\nvoid f(quern::world &world, \
quern::commands commands, quern::context context, const quern_view &view, quern_entity e)\n{\n  Single single;\n  \
(void)world, (void)commands, (void)context, (void)view, (void)e;\n  ")
function(expect_call_accepted call)
  expect_accepted(cpp "${single}${call};\n}")
endfunction()
function(expect_call_refused call words)
  expect_refused(cpp "${single}${call};\n}" "error: (static assertion|static_assert) failed[^\n]*quern: [^\n]*${words}")
endfunction()
foreach(call "world.createTYPE(VALUE)" "world.setTYPE(e, VALUE)" "world.emitTYPE(VALUE)" "commands.createTYPE(VALUE)"
             "commands.setTYPE(e, VALUE)" "context.emitTYPE(VALUE)")
  foreach(named "" "<Single>")
    string(REPLACE TYPE "${named}" call_as_named "${call}")
    string(REPLACE VALUE "std::move(single)" moved "${call_as_named}")
    expect_call_accepted("${moved}")
    string(REPLACE VALUE "single" wrong "${call_as_named}")
    expect_call_refused("${wrong}" "std::move")
  endforeach()
  string(REPLACE TYPE "<Thing>" copied "${call}")
  string(REPLACE VALUE "thing" copied "${copied}")
  expect_call_accepted("Thing thing{}; ${copied}")
endforeach()
foreach(value "static_cast<const Single &>(single)" "static_cast<const Single &&>(single)" "Pinned()")
  expect_call_refused("world.set(e, ${value})" "std::move")
endforeach()
expect_call_refused("commands.set(view, single)" "one entity at a time")
expect_call_refused("world.add<Made>(e)" "no default constructor")
foreach(call "world.add<Set>(e)" "commands.add<Set>(e)" "commands.add<Set>(view)" "(void)world.resource<Set>()")
  expect_call_refused("${call}" "no default constructor")
endforeach()
expect_call_accepted("(void)world.set(e, Set(1)), (void)world.resource(Set(1)), (void)world.resource(Made(1))")
expect_call_refused("world.create(Needs{1})" "a required type")
expect_call_refused("(void)world.create_many(2, [](Set &) {})" "create_many")
expect_call_refused("world.create(Thing{1}, Thing{2})" "same type")
expect_call_refused("struct { float x; } nameless{1}; world.create(nameless)" "quern::name")
expect_call_refused("commands.create(Thing{1}, Thing{2})" "same type")
expect_call_refused("commands.add<Made>(e)" "no default constructor")
expect_call_refused("commands.add<Made>(view)" "no default constructor")
