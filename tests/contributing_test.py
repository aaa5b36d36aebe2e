#!/usr/bin/env python3
"""Checks that CONTRIBUTING.md is up to date: every file that it names exists, its example layer equals the layer of the
program, and its example operation compiles. Also checks that docs/architecture.md lists the passes of the compiler.

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
LAYER = "lib/nn/layers/activations/softmax.cpp"
# A version of the class CpuOps that does not need oneDNN and that contains the method of the example operation.
CPU_OPS = """\
#include "ops/cpu/kernels/all.h"
#include "ops/ops.h"

namespace dtrain::cpu {

class CpuOps : public Ops {
 public:
#define DTRAIN_OP(result, name, arguments) result name arguments override;
#include "ops/ops.inc"

 private:
  template <class Body>
  void each(int64_t n, Body&& body) {
    body(int64_t{0}, n);
  }
  const Kernels kernels_ = kernels_named("any");
};

EXAMPLE
}  // namespace dtrain::cpu
"""


class Contributing(unittest.TestCase):
    def test_every_named_file_exists(self):
        code = re.sub(r"(?s)```.*?```", "", TEXT)
        named = set(re.findall(r"(?<![\w/])(?:\.?/?)((?:lib|app|tests|docs|bench|configs|\.ci)/[\w./-]*\w)(?![\w*])", code))
        named |= set(re.findall(r"\]\(([\w./-]+)\)", code)) | {".clang-tidy"}
        self.assertIn("lib/nn/layers/table.h", named)
        self.assertIn(LAYER, named)
        self.assertEqual([name for name in sorted(named) if not (ROOT / name).exists()], [])

    def test_every_command_of_dev_is_documented(self):
        usage = subprocess.run([ROOT / "dev", "help"], capture_output=True, text=True, check=True).stdout
        for command in set(re.findall(r"\./dev ([a-z-]+)", TEXT)):
            self.assertRegex(usage, rf"(?m)^  {command} ")

    def test_the_example_layer_is_that_of_the_program(self):
        def source(name):
            return (ROOT / name).read_text(encoding="utf-8")

        layer, formats = re.findall(r"(?s)```cpp\n(.*?)```", TEXT)[:2]
        self.assertEqual(layer, source(LAYER))
        self.assertIn(formats, source("lib/interop/layers/activation.cpp"))
        self.assertIn(re.search(r"`(void add_softmax\(.*?\);)`", TEXT)[1], source("lib/nn/layers/table.h"))
        self.assertIn(re.search(r"`(add_softmax\(t\);)`", TEXT)[1], source("lib/nn/layers/registry.cpp"))

    def test_the_operation_compiles_for_the_cpu(self):
        blocks = dict(re.findall(r"(?s)```cpp\n// ([\w/.]+)\n(.*?)```", TEXT))
        with tempfile.TemporaryDirectory() as folder:
            # Writes copies of the sources with the parts of the example inserted. The compiler finds the copies before
            # the original files.
            for name, before in (("lib/ops/ops.inc", "#undef DTRAIN_OP"), ("lib/ops/cpu/kernels/kernels.inc", "#undef DTRAIN_KERNEL"),
                                 ("lib/ops/math/functions.h", "}  // namespace dtrain::math"),
                                 ("lib/ops/cpu/kernels/elementwise.h", "}  // namespace\n")):
                head, found, tail = (ROOT / name).read_text(encoding="utf-8").rpartition(before)
                self.assertEqual(found, before)
                copy = pathlib.Path(folder) / name
                copy.parent.mkdir(parents=True, exist_ok=True)
                copy.write_text(head + blocks[name] + found + tail, encoding="utf-8")
            source = pathlib.Path(folder) / "example.cpp"
            source.write_text(CPU_OPS.replace("EXAMPLE", blocks["lib/ops/cpu/elementwise.cpp"]))
            done = subprocess.run([COMPILER, "-std=c++20", "-fsyntax-only", "-fopenmp-simd", "-Wall", "-Wextra", "-Werror",
                                   f"-I{folder}/lib", f"-I{ROOT}/lib", source], capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)
        for name in ("lib/ops/cuda/elementwise.cu", "tests/ops/elementwise_test.cpp"):
            self.assertIn("clamp(", blocks[name])
            self.assertTrue((ROOT / name).exists())


class Passes(unittest.TestCase):
    """Compares the lists of the passes that compile a step."""

    def setUp(self):
        def found(file, before, after, pattern):
            """Returns what `pattern` matches in the part of a file between two texts."""
            text = (ROOT / file).read_text(encoding="utf-8")
            return re.findall(pattern, text[text.index(before):text.index(after)])

        # Calls that are commented out do not count.
        self.called = found("lib/program/compile.cpp", "compile(", "return layers", r"(?m)^(?:(?!//).)*?\b(\w+)\(step")
        self.declared = found("lib/program/passes/passes.h", "// Passes that annotate", "/// Runs all passes",
                              r"(?m)^\w+ (\w+)\(CompileState& step")
        # Names of passes are at the beginning of a list item, or begin with `lower_`.
        self.documented = found("docs/architecture.md", "`compile()` calls the passes", "The parser rejects layers",
                                r"`((?<=- `)\w+|lower_\w+)`")

    def test_passes_are_declared_in_the_order_of_the_calls(self):
        self.assertIn("find_gradients", self.called)
        self.assertEqual(self.declared, self.called)

    def test_each_pass_has_a_file(self):
        self.assertEqual([name for name in self.called if not (ROOT / f"lib/program/passes/{name}.cpp").exists()], [])

    def test_passes_are_documented_in_the_order_of_the_calls(self):
        self.assertEqual(self.documented, self.called)


if __name__ == "__main__":
    if len(sys.argv) > 1 and not sys.argv[1].startswith("-"):
        COMPILER = sys.argv.pop(1)
    unittest.main()
