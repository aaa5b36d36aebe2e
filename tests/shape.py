#!/usr/bin/env python3
"""Prints the shape of the sources: the largest files, functions, classes and folders, and the files with most includes.

    shape.py [ROOT]         of ROOT/lib and ROOT/app (by default the project that this file is in); exits with 1 if a
                            function, class or folder is larger than LIMITS allows
    shape.py --self-test    checks this script

Relies on clang-format: a function or class begins with a line that ends in "{", and ends at a "}" of the same
indentation.
"""
import collections
import pathlib
import re
import sys
import tempfile

LIMITS = {"functions": 60, "methods": 40, "members": 20, "folders": 40}  # lines, methods, members, files
SOURCES = {".h", ".cuh", ".cpp", ".cu", ".inc"}

CLASS = re.compile(r"^( *)(?:template <.*> )?(?:class|struct) (\w+)(?: final)?(?: : [^;]*)? *\{$")
FUNCTION = re.compile(r"^( {0,2})(?! |namespace|class|struct|enum|union|else|if|for|while|switch|do\b|try|catch)[\w~:<>,&*\[\] ]*\b([\w~:]+)\(.*\{$")
MEMBER = re.compile(r"^(?!using|friend|static|return|typedef)[\w:<>,&*\[\] ()]+ \**&?(\w+_)(?: = .*|\{.*\}|\[.*\])?;")
METHOD = re.compile(r"^(?!using|friend|return|throw|assert)(?:[\w:<>,&*~\[\] ]+ )?[*&]?~?\w+\(")


def join_statements(lines):
    """Joins the lines of each statement that clang-format has broken. Yields the number of the first line and the
    joined text."""
    text, first = "", 0
    for number, line in enumerate(lines, 1):
        code = re.sub(r'"(?:\\.|[^"\\])*"', '""', line).split("//")[0].rstrip()
        if not text:
            first = number
        text = f"{text} {code.strip()}" if text else code
        if not text.strip():
            text = ""
        elif code.endswith((";", "{", "}", ":")) or code.lstrip().startswith("#"):
            yield first, number, text
            text = ""


def blocks(lines, pattern):
    """Yields the name, first line and last line of each block whose first line matches the pattern."""
    opened = []
    for first, number, text in join_statements(lines):
        if found := pattern.match(text):
            opened.append((len(found[1]), found[2], first))
        indentation = len(text) - len(text.lstrip())
        if opened and text.lstrip().startswith("}") and indentation == opened[-1][0]:
            _, name, begin = opened.pop()
            yield name, begin, number


def members_and_methods(lines, first, last):
    """Returns the numbers of members and methods of a class, without nested classes and function bodies."""
    indentation = len(lines[first - 1]) - len(lines[first - 1].lstrip()) + 2
    members = methods = 0
    for _, _, text in join_statements(lines[first:last - 1]):
        if len(text) - len(text.lstrip()) != indentation:
            continue
        code = text.strip()
        if METHOD.match(code):
            methods += 1
        elif MEMBER.match(code):
            members += len(re.findall(r"\b\w+_(?=\s*[=,;{\[])", code))
    return members, methods


def measure(root):
    shape = collections.defaultdict(list)
    for folder in ("lib", "app"):
        for path in sorted((root / folder).rglob("*")):
            if path.is_dir():
                shape["folders"].append((sum(1 for one in path.iterdir() if one.suffix in SOURCES), str(path.relative_to(root))))
            elif path.suffix in SOURCES:
                name, lines = str(path.relative_to(root)), path.read_text(encoding="utf-8").splitlines()
                shape["files"].append((len(lines), name))
                shape["includes"].append((sum(line.startswith('#include "') for line in lines), name))
                shape["functions"] += [(end - begin + 1, f"{function} ({name}:{begin})") for function, begin, end in blocks(lines, FUNCTION)]
                for type_name, begin, end in blocks(lines, CLASS):
                    members, methods = members_and_methods(lines, begin, end)
                    shape["methods"].append((methods, f"{type_name} ({name}:{begin})"))
                    shape["members"].append((members, f"{type_name} ({name}:{begin})"))
    return {what: sorted(values, reverse=True) for what, values in shape.items()}


def self_test():
    text = "struct A {\n  int first_ = 0, second_ = 0;\n  void f(int a,\n         int b) const;\n  int g() { return 1; }\n};\n\nint h(int a) {\n  if (a) {\n    return 2;\n  }\n  return 1;\n}\n"
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        (root / "lib/base").mkdir(parents=True)
        (root / "app").mkdir()
        (root / "lib/base/a.h").write_text(text)
        shape = measure(root)
    expected = {"files": 13, "functions": 6, "methods": 2, "members": 2, "folders": 1, "includes": 0}
    found = {what: shape[what][0][0] for what in expected}
    if found != expected:
        sys.exit(f"self-test: expected {expected}, found {found}")
    print("self-test: counts as expected")


def main():
    arguments = [word for word in sys.argv[1:] if not word.startswith("--")]
    if "--self-test" in sys.argv:
        return self_test()
    root = pathlib.Path(arguments[0]) if arguments else pathlib.Path(__file__).resolve().parent.parent
    shape = measure(root)
    for what in ("files", "functions", "methods", "members", "folders", "includes"):
        print(f"{what}:", *(f"  {count:5}  {name}" for count, name in shape[what][:10]), sep="\n")
    too_large = [f"{name}: {count} {what}, expected at most {LIMITS[what]}"
                 for what in LIMITS for count, name in shape[what] if count > LIMITS[what]]
    if too_large:
        sys.exit("\n".join(["too large; divide:", *too_large]))


if __name__ == "__main__":
    main()
