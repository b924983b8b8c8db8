# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The Quern authors
"""Conan 2 recipe, which packages the sources in which it lies: conan create cmake/packaging/conan --build=missing"""

import os
import re

from conan import ConanFile
from conan.errors import ConanInvalidConfiguration
from conan.tools.cmake import CMake, CMakeDeps, CMakeToolchain, cmake_layout
from conan.tools.files import copy, load

SOURCES = ("CMakeLists.txt", "LICENSE", "cmake/*", "core/*", "include/*", "kit/*", "sched/*", "scripts/*")
KIT = ("grid", "json", "netplay", "transform")


class QuernConan(ConanFile):
    name = "quern"
    license = "MIT"
    description = "A multithreaded, job-scheduled ECS runtime"
    package_type = "library"
    languages = ["C"]
    settings = "os", "arch", "compiler", "build_type"
    options = {"shared": [True, False], "fPIC": [True, False], "zstd": [True, False], "checks": [True, False],
               "without": ["ANY"]}
    default_options = {"shared": False, "fPIC": True, "zstd": False, "checks": False, "without": ""}

    def _root(self):
        return os.path.join(self.recipe_folder, "..", "..", "..")

    def set_version(self):
        header = load(self, os.path.join(self._root(), "include", "quern", "base.h"))
        self.version = ".".join(re.findall(r"^#define QUERN_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)", header, re.M))

    def export_sources(self):
        for pattern in SOURCES:
            copy(self, pattern, self._root(), self.export_sources_folder)

    def validate(self):
        if self.settings.compiler == "msvc":
            raise ConanInvalidConfiguration("quern needs gcc or clang: see docs/platforms.md")

    def configure(self):
        if self.options.shared:
            self.options.rm_safe("fPIC")

    def requirements(self):
        if self.options.zstd:
            self.requires("zstd/[>=1.5 <2]")

    def layout(self):
        cmake_layout(self)

    def generate(self):
        toolchain = CMakeToolchain(self)
        for part in ("TESTS", "BENCH", "EXAMPLES"):
            toolchain.variables["QUERN_BUILD_" + part] = False
        toolchain.variables["QUERN_LIBRARY_TYPE"] = "SHARED" if self.options.shared else "STATIC"
        toolchain.variables["QUERN_WITH_ZSTD"] = bool(self.options.zstd)
        toolchain.variables["QUERN_CHECKS"] = bool(self.options.checks)
        toolchain.variables["QUERN_WITHOUT"] = str(self.options.without)
        toolchain.generate()
        CMakeDeps(self).generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        copy(self, "LICENSE", self.source_folder, os.path.join(self.package_folder, "licenses"))
        CMake(self).install()

    def package_info(self):
        core = self.cpp_info.components["core"]
        core.libs = ["quern"]
        core.set_property("cmake_target_name", "quern::quern")
        core.set_property("pkg_config_name", "quern")
        if self.options.zstd:
            core.requires = ["zstd::zstd"]
        if self.settings.os in ("Linux", "FreeBSD"):
            core.system_libs = ["pthread", "m"]
        for name in KIT:
            part = self.cpp_info.components[name]
            part.libs = ["quern_" + name]
            part.requires = ["core"]
            part.set_property("cmake_target_name", "quern::quern_" + name)
