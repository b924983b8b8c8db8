/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_TESTS_CPP_MODULES_H
#define QUERN_TESTS_CPP_MODULES_H

/* What both sides of modules_main.cpp know: two source files, of one program or of a program and a shared library. */

#include <quern/quern.hpp>

#include <string>

#if defined(_WIN32)
#define MODULES_EXPORT __declspec(dllexport)
#else
#define MODULES_EXPORT __attribute__((visibility("default")))
#endif

struct Label {
    std::string text = "none";
};

/* Results and messages of registering the other file's types of the names State and Plain. */
struct other_types {
    quern_result component, resource, event, plain;
    std::string message;
};

MODULES_EXPORT quern_component other_component(quern::world &world);
MODULES_EXPORT const void *other_hook();
MODULES_EXPORT std::string other_read(quern::world &world, quern_entity entity);
MODULES_EXPORT other_types other_register(quern::world &world);

#endif
