#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The Quern authors
"""Packs a binding as its language's package manager installs it, without network:

    scripts/package_bindings.py python --from build/release/bindings --output FOLDER    # a wheel, for pip
    scripts/package_bindings.py lua --from build/release/bindings --output FOLDER       # a rock, for LuaRocks
    scripts/package_bindings.py npm --from build/web/bindings --output FOLDER           # a tarball, for npm

Prints the path of the package. The wheel and the rock contain the library of this machine, so they are for its system and
processor only. The same build gives the same bytes.
"""

import argparse
import base64
import gzip
import hashlib
import io
import json
import os
import platform
import re
import sys
import sysconfig
import tarfile
import zipfile

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
SUMMARY = "Quern, a deterministic, multithreaded entity component system"


def read(*parts):
    path = os.path.join(*parts)
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        sys.exit("package_bindings: %s: %s: build the binding by ./run bindings" % (path, error.strerror))


def version():
    return b".".join(re.findall(rb"define QUERN_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)", read(ROOT, "include", "quern", "base.h"))).decode()


def library(folder):
    """Returns the name of the shared library in a folder."""
    names = [name for name in ("libquern_bindings.so", "libquern_bindings.dylib", "quern_bindings.dll") if os.path.exists(os.path.join(folder, name))]
    if not names:
        sys.exit("package_bindings: %s has no library: build the binding by ./run bindings" % folder)
    return names[0]


def write_zip(path, files):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            entry.external_attr, entry.compress_type = 0o644 << 16, zipfile.ZIP_DEFLATED
            archive.writestr(entry, data)


def write_tar(path, files):
    with open(path, "wb") as file, gzip.GzipFile("", "wb", 9, file, 0) as packed, tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, data in files.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(data), 0o644
            archive.addfile(entry, io.BytesIO(data))


def pack_python(source, output):
    """Returns the path of a wheel (PEP 427)."""
    tag = "py3-none-" + re.sub("[-.]", "_", sysconfig.get_platform())
    info, name = "quern-%s.dist-info" % version(), library(source)
    files = {"quern/%s" % file: read(source, "python", "quern", file) for file in ("__init__.py", "_api.py")}
    files["quern/" + name] = read(source, name)
    files[info + "/METADATA"] = ("Metadata-Version: 2.1\nName: quern\nVersion: %s\nSummary: %s\nLicense: MIT\nRequires-Python: >=3.8\n"
                                 "Requires-Dist: cffi\nRequires-Dist: numpy\n" % (version(), SUMMARY)).encode()
    files[info + "/LICENSE"] = read(ROOT, "LICENSE")
    files[info + "/WHEEL"] = ("Wheel-Version: 1.0\nGenerator: package_bindings\nRoot-Is-Purelib: false\nTag: %s\n" % tag).encode()
    record = "".join("%s,sha256=%s,%d\n" % (file, base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode(), len(data))
                     for file, data in files.items())
    files[info + "/RECORD"] = (record + info + "/RECORD,,\n").encode()
    path = os.path.join(output, "quern-%s-%s.whl" % (version(), tag))
    write_zip(path, files)
    return path


def pack_lua(source, output):
    """Returns the path of a binary rock: its rockspec, a manifest with sums, and the files by the folders that they go to."""
    if platform.system() != "Linux":
        sys.exit("package_bindings: rocks are made on Linux only, and this is %s: set LUA_PATH to the folder lua of the bindings" % platform.system())
    name, release = library(source), version() + "-1"
    rockspec = ('rockspec_format = "3.0"\npackage = "quern"\nversion = "%s"\nsource = {url = "file://quern"}\n'
                'description = {summary = "%s", license = "MIT"}\ndependencies = {"lua >= 5.1, < 5.2"}\nbuild = {type = "none"}\n' % (release, SUMMARY)).encode()
    folders = {"lua": {file: read(source, "lua", file) for file in ("quern.lua", "quern_api.lua")}, "lib": {name: read(source, name)},
               "doc": {"LICENSE": read(ROOT, "LICENSE")}}
    entries = "".join("  %s = {\n%s  },\n" % (folder, "".join('    ["%s"] = "%s",\n' % (file, hashlib.md5(data).hexdigest()) for file, data in files.items()))
                      for folder, files in folders.items())
    spec = "quern-%s.rockspec" % release
    files = {spec: rockspec, "rock_manifest": ('rock_manifest = {\n  ["%s"] = "%s",\n%s}\n' % (spec, hashlib.md5(rockspec).hexdigest(), entries)).encode()}
    for folder, members in folders.items():
        files.update({"%s/%s" % (folder, file): data for file, data in members.items()})
    path = os.path.join(output, "quern-%s.linux-%s.rock" % (release, re.sub("i[3-6]86", "x86", platform.machine())))
    write_zip(path, files)
    return path


def pack_npm(source, output):
    """Returns the path of a tarball as `npm pack` makes it."""
    folder = os.path.join(source, "node_modules", "quern")
    package = json.loads(read(folder, "package.json"))
    if package["version"] != version():
        sys.exit("package_bindings: package.json has the version %s, and the library %s: make them the same" % (package["version"], version()))
    files = {"package/" + file: read(folder, file) for file in ["package.json", *package["files"]]}
    files["package/LICENSE"] = read(ROOT, "LICENSE")
    path = os.path.join(output, "quern-%s.tgz" % version())
    write_tar(path, files)
    return path


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("language", choices=["python", "lua", "npm"])
    parser.add_argument("--from", dest="source", required=True, metavar="FOLDER", help="the folder bindings of a build")
    parser.add_argument("--output", required=True, metavar="FOLDER", help="the folder for the package")
    options = parser.parse_args()
    os.makedirs(options.output, exist_ok=True)
    print({"python": pack_python, "lua": pack_lua, "npm": pack_npm}[options.language](options.source, options.output))


main()
