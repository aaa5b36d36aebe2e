#!/usr/bin/env python3
"""CONTRIBUTING.md is up to date: every file that it names exists, and its example layer compiles.

    contributing_test.py [COMPILER]    the C++ compiler (default: c++)
"""
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent
TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
COMPILER = "c++"
LAYER = "lib/nn/layers/activations/softmax.cpp"  # written by the reader of the guide


class Contributing(unittest.TestCase):
    def test_every_named_file_exists(self):
        code = re.sub(r"(?s)```.*?```", "", TEXT)
        named = set(re.findall(r"(?<![\w/])(?:\.?/?)((?:lib|app|tests|docs|bench|configs|\.ci)/[\w./-]*\w)(?![\w*])", code))
        named |= set(re.findall(r"\]\(([\w./-]+)\)", code)) | {".clang-tidy"}
        self.assertIn("lib/nn/layers/table.h", named)
        self.assertIn(LAYER, named)
        self.assertEqual([name for name in sorted(named - {LAYER}) if not (ROOT / name).exists()], [])

    def test_every_command_of_dev_is_documented(self):
        usage = subprocess.run([ROOT / "dev", "help"], capture_output=True, text=True, check=True).stdout
        for command in set(re.findall(r"\./dev ([a-z-]+)", TEXT)):
            self.assertRegex(usage, rf"(?m)^  {command} ")

    def test_the_example_layer_compiles(self):
        layer = re.search(r"(?s)```cpp\n(.*?)```", TEXT)[1]
        declared = re.search(r"`(void add_softmax\(.*?\);)`", TEXT)[1]
        with tempfile.TemporaryDirectory() as folder:
            source = pathlib.Path(folder) / "softmax.cpp"
            # The line that the second step adds to table.h.
            table = '#include "nn/layers/table.h"\n'
            source.write_text(layer.replace(table, f"{table}namespace dtrain {{\n{declared}\n}}\n"))
            done = subprocess.run([COMPILER, "-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", f"-I{ROOT}/lib",
                                   source], capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)
        added = re.search(r"`(add_softmax\(t\);)`", TEXT)[1]
        self.assertIn(added.replace("softmax", "dense"), (ROOT / "lib/nn/layers/registry.cpp").read_text(encoding="utf-8"))


if __name__ == "__main__":
    if len(sys.argv) > 1 and not sys.argv[1].startswith("-"):
        COMPILER = sys.argv.pop(1)
    unittest.main()
