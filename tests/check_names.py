#!/usr/bin/env python3
"""Fails if two files of one program define classes of the same name in the same namespace. The linker would treat these
as one class, and keep the functions that it finds first. The compiler cannot report this, because it sees only one of
the classes.

    check_names.py [ROOT]       checks ROOT/lib and ROOT/app (the project that this file is in by default)
    check_names.py --self-test  checks this script
"""
import collections
import pathlib
import re
import sys
import tempfile

CLASS = re.compile(r"(?:template <.*> )?(?:class|struct) ([A-Z]\w*)(?: final)?(?: : .*)?(?: \{.*)?$")


def classes_of(text):
    """Returns the qualified names of the classes that a formatted file defines with external linkage."""
    spaces = []
    for line in text.splitlines():
        if opened := re.match(r"namespace ?([\w:]*) \{", line):
            spaces.append(opened.group(1))
        elif line.startswith("}  // namespace"):
            spaces.pop()
        elif (found := CLASS.match(line)) and "" not in spaces and not line.endswith(";"):
            yield "::".join([*spaces, found.group(1)])


def check(root):
    files = collections.defaultdict(set)
    for folder in ("lib", "app"):
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in (".h", ".cpp", ".cu"):
                for name in classes_of(path.read_text()):
                    files[name].add(str(path.relative_to(root)))
    twice = {name: paths for name, paths in files.items() if len(paths) > 1}
    for name, paths in sorted(twice.items()):
        print(f"{name} is defined in {' and '.join(sorted(paths))}")
    if not twice:
        print(f"{len(files)} classes, each defined once")
    return not twice


def self_test():
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for name, text in {
            "lib/a/one.h": "namespace dtrain {\nclass Session {\n};\nstruct Open;\n}  // namespace dtrain\n",
            "lib/b/two.cpp": "namespace dtrain {\nnamespace {\nstruct Local {\n};\n}  // namespace\n}  // namespace dtrain\n",
            "app/three.cpp": "namespace dtrain {\nnamespace {\nstruct Local {\n};\n}  // namespace\nstruct Open {\n};\n}  // namespace dtrain\n",
        }.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)
        alone = check(root)
        (root / "lib/b/two.h").write_text("namespace dtrain {\nclass Session final : public Base {\n};\n}  // namespace dtrain\n")
        return alone and not check(root)


if __name__ == "__main__":
    if "--self-test" in sys.argv:
        sys.exit(0 if self_test() else 1)
    default = pathlib.Path(__file__).resolve().parent.parent
    sys.exit(0 if check(pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else default) else 1)
