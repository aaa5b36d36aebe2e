#!/usr/bin/env python3
"""Fails if an #include violates the architecture (docs/architecture.md): it names a folder that is not on a lower
level, or it names a header of an outside library that the folder may not use. Also fails on include cycles and on
headers without #pragma once.

    check_includes.py [ROOT]       checks ROOT/lib and ROOT/app (the project that this file is in by default)
    check_includes.py --self-test  checks this script
"""
import collections
import pathlib
import re
import sys
import tempfile

# The levels, from the lowest to the highest. A folder may include its own headers and the headers of all
# lower levels, but not the headers of another folder on the same level.
LEVELS = [
    {"base"},
    {"config", "hdf5", "image", "processes"},
    {"device"},
    {"ops", "collective"},
    {"data", "checkpoint"},
    {"nn", "optim"},
    {"program", "interop", "distribute", "profile"},
    {"run"},
    {"engine"},
    {"train"},
    {"estimate", "generate", "report"},
    {"app"},
]

# Outside libraries: the prefixes of their headers, and the folders that may include them.
LIBRARY_FOLDERS = [
    ("fmt", r"fmt/", set().union(*LEVELS)),
    ("yaml-cpp", r"yaml-cpp/", {"config"}),
    ("HDF5", r"(hdf5|H5)", {"hdf5", "checkpoint", "data", "interop"}),
    ("ISA-L", r"isa-l/", {"hdf5", "data", "interop"}),
    ("libjpeg-turbo", r"(jpeglib|jerror|jconfig|jmorecfg)\.h", {"image"}),
    ("libpng", r"png\.h", {"image"}),
    ("oneDNN", r"(dnnl|oneapi/)", {"device", "ops"}),
    ("OpenMP", r"omp\.h", {"device", "ops"}),
    ("CUDA", r"cuda", {"device", "ops", "collective"}),
    ("cuBLASLt", r"cublas", {"device", "ops"}),
    ("cuDNN", r"cudnn", {"device", "ops"}),
    ("NCCL", r"nccl", {"collective"}),
    ("MPI", r"mpi(_abi)?\.h", {"processes"}),
    ("CLI11", r"CLI/", {"app"}),
    ("doctest", r"doctest", set()),
]
SYSTEM = re.compile(r"[a-z0-9_]+(\.h)?$|(sys|linux|arpa|net|netinet)/")  # the standard library's headers and the system's

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^">]+)[">]', re.MULTILINE)
SOURCES = {".h", ".cuh", ".cpp", ".cu", ".inc"}


def level_of(folder):
    return next((number for number, level in enumerate(LEVELS) if folder in level), None)


def mistake_in_quoted(root, folder, header):
    """Returns a message if a file of `folder` must not have `#include "header"`; otherwise None."""
    if folder == "app" and (root / "app" / header).is_file():
        return None
    target = header.split("/")[0]
    if "/" not in header or level_of(target) is None or not (root / "lib" / header).is_file():
        return f'"{header}" is no file under lib/ (includes are relative to lib/; outside libraries stand in <>)'
    if target != folder and level_of(target) >= level_of(folder):
        return f'{folder} must not include {target} ("{header}"): it is not on a level below'
    return None


def mistake_in_angled(folder, header):
    for library, names, folders in LIBRARY_FOLDERS:
        if re.match(names, header):
            if folder in folders:
                return None
            where = " and ".join(sorted(folders)) or "tests"
            return f"{folder} must not include <{header}>: {library} stays in {where}"
    if SYSTEM.match(header):
        return None
    return f"<{header}> belongs to no library of LIBRARY_FOLDERS (tests/check_includes.py)"


def mistakes_of(root, path, folder):
    text = path.read_text(encoding="utf-8")
    if path.suffix in {".h", ".cuh"} and not re.search(r"^#pragma once$", text, re.MULTILINE):
        yield 1, "the header has no #pragma once"
    for number, line in enumerate(text.splitlines(), 1):
        if found := INCLUDE.match(line):
            angled, header = found[1] == "<", found[2]
            if mistake := mistake_in_angled(folder, header) if angled else mistake_in_quoted(root, folder, header):
                yield number, mistake


def unit_of(path):
    """Returns the path without its extension. A header and its source file are one unit and have the same path."""
    return path.with_suffix("").as_posix()


def units_included(root, path):
    """Returns the units that a file includes, except its own."""
    for angled, header in INCLUDE.findall(path.read_text(encoding="utf-8")):
        if angled == "<":
            continue
        beside = root / "app" / header
        target = beside if path.is_relative_to(root / "app") and beside.is_file() else root / "lib" / header
        if target.is_file() and unit_of(target) != unit_of(path):
            yield unit_of(target.relative_to(root))


def circle_from(start, includes):
    """Returns the shortest include cycle through a unit, or None."""
    ways, seen = collections.deque([[start]]), set()
    while ways:
        way = ways.popleft()
        for unit in sorted(includes.get(way[-1], ())):
            if unit == start:
                return way
            if unit not in seen:
                seen.add(unit)
                ways.append([*way, unit])
    return None


def circles(root, paths):
    """Returns the shortest cycle through every unit, without duplicates."""
    includes = {}
    for path in paths:
        includes.setdefault(unit_of(path.relative_to(root)), set()).update(units_included(root, path))
    found = {}
    for unit in sorted(includes):
        if (circle := circle_from(unit, includes)):
            found.setdefault(frozenset(circle), circle)
    return list(found.values())


def check(root):
    """Returns all mistakes as "file:line: message", and the number of files read."""
    mistakes, files = [], 0
    paths = [path for folder in ("lib", "app") for path in sorted((root / folder).rglob("*")) if path.suffix in SOURCES]
    for path in sorted(paths):
        files += 1
        relative = path.relative_to(root)
        folder = relative.parts[1] if relative.parts[0] == "lib" else "app"
        if level_of(folder) is None:
            mistakes.append(f"{relative}:1: lib/{folder} has no level in LEVELS (tests/check_includes.py)")
            continue
        mistakes += [f"{relative}:{line}: {mistake}" for line, mistake in mistakes_of(root, path, folder)]
    mistakes += ["circle of includes: " + " -> ".join([*circle, circle[0]]) for circle in circles(root, paths)]
    return mistakes, files


def self_test():
    tree = {
        "lib/base/good.h": "#pragma once\n#include <vector>\n#include <sys/mman.h>\n\n#include <fmt/format.h>\n",
        "lib/ops/good.h": '#pragma once\n#include <dnnl.hpp>\n\n#include "base/good.h"\n#include "ops/good.h"\n',
        "lib/ops/cuda/good.cu": "#include <cuda_bf16.h>\n#include <cudnn.h>\n",
        "lib/collective/good.h": "#pragma once\n#include <cuda_runtime.h>\n#include <nccl.h>\n",
        "lib/data/good.cpp": '#include <hdf5.h>\n#include <isa-l/crc.h>\n// #include "train/up.h"\n',
        "app/local.h": "#pragma once\n",
        "app/good.cpp": '#include <CLI/CLI.hpp>\n\n#include "local.h"\n#include "ops/good.h"\n',
        # Files with mistakes.
        "lib/base/up.h": '#pragma once\n#include <vector>\n#  include "ops/good.h"\n',
        "lib/ops/neighbor.cpp": '#include "collective/good.h"\n',
        "lib/ops/cage.cpp": "#include <vector>\n#include <yaml-cpp/yaml.h>\n",
        "lib/collective/cage.cpp": "#include <cublasLt.h>\n",
        "lib/nn/cage.cu": "#include <cuda_runtime.h>\n",
        "lib/ops/tests.cpp": "#include <doctest/doctest.h>\n",
        "lib/ops/unknown.cpp": "#include <boost/any.hpp>\n",
        "lib/ops/relative.cpp": '#include "good.h"\n',
        "lib/data/app.cpp": '#include "app/local.h"\n',
        "lib/nn/once.h": "#include <vector>\n",
        "lib/cellar/level.cpp": "",
        # Two kinds of cycles: a cycle between headers, and a cycle through a source file, because a source file and its
        # header count as one unit. A source file that includes its own header is not a cycle.
        "lib/train/one.h": '#pragma once\n#include "train/two.h"\n',
        "lib/train/two.h": '#pragma once\n#include "train/three.h"\n',
        "lib/train/three.h": '#pragma once\n#include "train/one.h"\n',
        "lib/optim/part.h": "#pragma once\n",
        "lib/optim/part.cpp": '#include "optim/part.h"\n#include "optim/whole.h"\n',
        "lib/optim/whole.h": '#pragma once\n#include "optim/part.h"\n',
    }
    expected = [
        "lib/base/up.h:3: base must not include ops",
        "lib/cellar/level.cpp:1: lib/cellar has no level",
        "lib/collective/cage.cpp:1: collective must not include <cublasLt.h>: cuBLASLt stays in device and ops",
        'lib/data/app.cpp:1: "app/local.h" is no file under lib/',
        "lib/nn/cage.cu:1: nn must not include <cuda_runtime.h>: CUDA stays in collective and device and ops",
        "lib/nn/once.h:1: the header has no #pragma once",
        "lib/ops/cage.cpp:2: ops must not include <yaml-cpp/yaml.h>: yaml-cpp stays in config",
        "lib/ops/neighbor.cpp:1: ops must not include collective",
        'lib/ops/relative.cpp:1: "good.h" is no file under lib/',
        "lib/ops/tests.cpp:1: ops must not include <doctest/doctest.h>: doctest stays in tests",
        "lib/ops/unknown.cpp:1: <boost/any.hpp> belongs to no library",
        "circle of includes: lib/optim/part -> lib/optim/whole -> lib/optim/part",
        "circle of includes: lib/train/one -> lib/train/two -> lib/train/three -> lib/train/one",
    ]
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for name, text in tree.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text, encoding="utf-8")
        found, files = check(root)
    same = len(found) == len(expected) and all(a.startswith(b) for a, b in zip(found, expected))
    if not same or files != len(tree):
        sys.exit("\n".join(["self-test: expected", *expected, "found", *found]))
    print(f"self-test: found {len(found)} of {len(expected)} mistakes")


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    root = pathlib.Path(sys.argv[1]) if sys.argv[1:] else pathlib.Path(__file__).resolve().parent.parent
    mistakes, files = check(root)
    if mistakes or not files:
        sys.exit("\n".join(mistakes) or f"{root}: no source files under lib/ and app/")
    print(f"{files} files, all includes follow the architecture")


if __name__ == "__main__":
    main()
