#!/usr/bin/env python3
"""Tests the messages and output streams of ./dev and third_party/install.sh. Fakes replace apt, cmake and dtrain."""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent

CMAKE = """#!/bin/sh
if [ "$1" != --build ]; then
  mkdir -p build/release
  cuda=AUTO
  for word; do case $word in -DDTRAIN_CUDA=*) cuda=${word#*=};; esac; done
  echo "DTRAIN_CUDA:STRING=$cuda" > build/release/CMakeCache.txt
  touch build/release/build.ninja
  echo "-- Configuring done"
  exit 0
fi
for step in $(seq 40); do echo "[$step/40] Building CXX object $step.o"; done
test -e "$BROKEN" && { echo "a.cpp:1:1: error: broken"; exit 1; }
mkdir -p build/release/app
printf '#!/bin/sh\\necho trained\\n' > build/release/app/dtrain
chmod +x build/release/app/dtrain
"""


def executable(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


class ScriptCase(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)
        self.stubs = self.folder / "stubs"
        self.asked = self.folder / "asked"
        self.environment = {
            **os.environ, "PATH": f"{self.stubs}:{os.environ['PATH']}", "ASKED": str(self.asked),
            "BROKEN": str(self.folder / "broken"), "INSTALLED": str(self.folder / "installed")}
        self.environment.pop("DTRAIN_WERROR", None)
        # The fake dpkg-query reports every package as installed, except the packages in $MISSING.
        executable(self.stubs / "dpkg-query",
                   '#!/bin/sh\nfor word; do case $word in -*|$MISSING) ;; *) printf "%s:installed " $word;; esac; done\n')
        executable(self.stubs / "apt-get", '#!/bin/sh\necho "$*" >>"$ASKED"\n')
        executable(self.stubs / "sudo", '#!/bin/sh\n[ "$1" = -v ] || exec "$@"\n')

    def run_script(self, *command, **environment):
        return subprocess.run([str(word) for word in command], capture_output=True, text=True, stdin=subprocess.DEVNULL,
                              env={**self.environment, **environment}, timeout=60)

    def checkout(self):
        """Creates a checkout in which cmake and install.sh are replaced by fakes that take no time."""
        for part in ["lib", "app", "third_party"]:
            (self.folder / part).mkdir()
        shutil.copy(ROOT / "dev", self.folder)
        (self.folder / "CMakePresets.json").touch()
        executable(self.folder / "third_party/install.sh", '#!/bin/sh\n[ -z "$1" ] || touch "$INSTALLED"\n')
        executable(self.stubs / "cmake", CMAKE)
        executable(self.stubs / "ctest", "#!/bin/sh\necho tests run\n")
        return self.folder / "dev"


class Scripts(ScriptCase):
    # install.sh

    def install(self, system, *packages, **environment):
        release = self.folder / "os-release"
        release.write_text(system)
        return self.run_script(ROOT / "third_party/install.sh", *packages, DTRAIN_OS_RELEASE=str(release), **environment)

    def test_supported_systems_get_no_message(self):
        for system in ["ID=debian\nVERSION_ID=12", "ID=debian\nVERSION_ID=13", 'ID=ubuntu\nVERSION_ID="24.04"']:
            done = self.install(system)
            self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""), system)
        self.assertFalse(self.asked.exists())

    def test_older_systems_are_an_error(self):
        for system in ['ID=ubuntu\nVERSION_ID="22.04"', 'ID=ubuntu\nVERSION_ID="23.10"', "ID=debian\nVERSION_ID=11"]:
            done = self.install(system, MISSING="g++")
            self.assertEqual(done.returncode, 1)
            self.assertIn("is not supported", done.stderr)
            self.assertIn("Debian 12 and 13, Ubuntu 24.04", done.stderr)
        self.assertFalse(self.asked.exists())

    def test_later_systems_are_tried(self):
        for system in ["ID=debian\nVERSION_ID=14", "ID=debian", 'ID=ubuntu\nVERSION_ID="26.04"', "ID=linuxmint", ""]:
            self.assertEqual(self.install(system).returncode, 0)
            done = self.install(system, MISSING="g++")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("has not been tested", done.stderr)

    def test_missing_packages_are_installed(self):
        done = self.install("ID=debian\nVERSION_ID=13", "clang-format-14", MISSING="clang-format-14")
        self.assertEqual((done.returncode, done.stderr), (0, "installing clang-format-14 ...\n"))
        self.assertTrue(self.asked.read_text().splitlines()[-1].endswith(" clang-format-14"))

    # dev

    def test_a_build_prints_its_progress_to_standard_error(self):
        dev = self.checkout()
        done = self.run_script(dev, "run")
        self.assertEqual((done.returncode, done.stdout), (0, "trained\n"), done.stderr)
        self.assertEqual(done.stderr.splitlines()[1:], [f"  {n} of 40" for n in range(4, 41, 4)])
        done = self.run_script(dev, "run")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "trained\n", ""))

    def test_run_omits_cuda_without_a_driver_and_tests_include_it(self):
        dev = self.checkout()
        cuda = lambda: (self.folder / "build/release/CMakeCache.txt").read_text().strip().rpartition("=")[2]
        has_driver = any(map(os.path.exists, ("/proc/driver/nvidia/version", "/dev/nvidiactl", "/dev/dxg")))
        self.run_script(dev, "run")
        self.assertEqual(cuda(), "AUTO" if has_driver else "OFF")
        self.run_script(dev, "build")
        self.assertEqual(cuda(), "AUTO")
        self.run_script(dev, "run")  # keeps the setting of the existing build
        self.assertEqual(cuda(), "AUTO")
        self.run_script(dev, "run", DTRAIN_CUDA="ON")
        self.assertEqual(cuda(), "ON")

    def test_a_failed_build_prints_the_errors(self):
        dev = self.checkout()
        (self.folder / "broken").touch()
        for _ in range(2):
            done = self.run_script(dev, "run")
            self.assertEqual((done.returncode, done.stdout), (1, ""))
            self.assertIn("error: broken", done.stderr)

    def clang_format(self, name, version):
        executable(self.stubs / name, f'#!/bin/sh\n[ "$1" != --version ] || echo "clang-format version {version}.0.6"\n')

    def test_a_missing_clang_format_is_reported_and_installed(self):
        dev = self.checkout()
        self.clang_format("clang-format", 19)
        self.clang_format("clang-format-14", 13)  # regardless of the tools on this machine
        executable(self.stubs / "apt-cache", "#!/bin/sh\nexit 0\n")
        executable(self.folder / "third_party/install.sh",
                   f'#!/bin/sh\n[ -z "$1" ] || sed -i s/13/14/ {self.stubs / "clang-format-14"}\n')
        done = self.run_script(dev, "test")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("clang-format 14 is missing", done.stderr)
        self.assertNotIn("NOT CHECKED", done.stderr)
        self.assertNotIn("clang-format", self.run_script(dev, "test").stderr)

    def test_the_tests_run_without_a_clang_format_package(self):
        dev = self.checkout()
        self.clang_format("clang-format", 19)
        self.clang_format("clang-format-14", 13)
        executable(self.stubs / "apt-cache", "#!/bin/sh\nexit 100\n")
        done = self.run_script(dev, "test")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("tests run", done.stdout)
        self.assertIn("this distribution has no clang-format-14", done.stderr)
        self.assertIn("NOT CHECKED", done.stderr)
        self.assertEqual(self.run_script(dev, "check-format").returncode, 1)

    def test_lint_fails_if_clang_tidy_warns(self):
        dev = self.checkout()
        commands = self.folder / "build/dev/compile_commands.json"
        commands.parent.mkdir(parents=True)
        commands.write_text("".join(f'  "file": "{self.folder}/lib/{name}.cpp",\n' for name in ("good", "bad")))
        executable(self.stubs / "clang-tidy-14", """#!/bin/sh
[ "$1" = --version ] && echo "  LLVM version 14.0.6" && exit
for file; do :; done
echo "2 warnings generated." >&2
case $file in */bad.cpp) echo "$file:1:1: error: dubious"; exit 1 ;; esac
""")
        done = self.run_script(dev, "lint")
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stdout, f"{self.folder}/lib/bad.cpp:1:1: error: dubious\n")
        self.assertNotIn("generated", done.stderr)
        self.assertIn("clang-tidy found problems", done.stderr)
        done = self.run_script(dev, "lint", self.folder / "lib/good.cpp")
        self.assertEqual((done.returncode, done.stdout), (0, ""), done.stderr)

    def test_lint_warns_about_phrases_to_avoid(self):
        dev = self.checkout()
        (self.folder / "tests").mkdir()
        shutil.copy(ROOT / "tests/check_words.py", self.folder / "tests")
        executable(self.stubs / "clang-tidy-14", '#!/bin/sh\n[ "$1" != --version ] || echo "LLVM version 14.0.6"\n')
        for name, comment in [("plain", "Fixed again."), ("odd", "Mended anew.")]:
            (self.folder / f"lib/{name}.cpp").write_text(f"// {comment}\n")
        done = self.run_script(dev, "lint", self.folder / "lib/plain.cpp")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))
        done = self.run_script(dev, "lint", self.folder / "lib/odd.cpp")
        self.assertEqual((done.returncode, done.stdout), (0, ""), done.stderr)
        self.assertIn('lib/odd.cpp:1: warning: "anew"', done.stderr)

    def test_ci_runs_the_tests_of_presets_with_warnings_as_errors(self):
        (self.folder / ".ci").mkdir()
        shutil.copy(ROOT / ".ci/run", self.folder / ".ci/run")
        executable(self.folder / "dev", '#!/bin/sh\necho "$DTRAIN_WERROR $@"\n[ "$2" != dev ] || [ -z "$FAIL" ]\n')
        for presets in ([], ["release", "dev", "tsan"]):
            lines = self.run_script(self.folder / ".ci/run", *presets).stdout.splitlines()
            self.assertEqual([line for line in lines if line[:2] != "=="],
                             [f"ON test {preset}" for preset in presets or ["release"]])
        self.assertEqual(self.run_script(self.folder / ".ci/run", "release", "dev", "tsan", FAIL="1").returncode, 1)

    def test_docs_builds_the_site_or_names_missing_packages(self):
        dev = self.checkout()
        for name in ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "LICENSE", "NOTICE", "docs/gpu.md", "configs/a.yaml",
                     "bench/README.md", "bench/results/a.md", "datasets/README.md", "datasets/a.yaml"]:
            (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
            (self.folder / name).touch()
        tools = self.folder / "tools"  # a system without mkdocs
        tools.mkdir()
        for name in ["bash", "readlink", "dirname", "rm", "mkdir", "cp", "env"]:
            (tools / name).symlink_to(shutil.which(name))
        done = self.run_script(dev, "docs", PATH=str(tools))
        self.assertEqual(done.returncode, 1)
        self.assertIn("apt-get install mkdocs", done.stderr)
        executable(tools / "mkdocs", '#!/bin/bash\n[ -z "$FAIL" ] && echo "$@" >asked && [ -e build/docs/docs/gpu.md ]\n')
        done = self.run_script(dev, "docs", PATH=str(tools))
        self.assertEqual((done.returncode, done.stdout), (0, "build/site/index.html\n"), done.stderr)
        self.assertIn("build --strict", (self.folder / "asked").read_text())
        self.assertNotEqual(self.run_script(dev, "docs", PATH=str(tools), FAIL="1").returncode, 0)

    def test_fuzz_runs_every_fuzzer(self):
        dev = self.checkout()
        for name, code in [("a", 1), ("b", 0)]:
            executable(self.folder / f"tests/fuzz/fuzz_{name}.py", f"import sys\nprint(*sys.argv[3:])\nsys.exit({code})\n")
        done = self.run_script(dev, "fuzz", "--seed", "7")
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stdout.count("--long --seed 7"), 2)
        self.assertIn("fuzz_a: FOUND A PROBLEM", done.stdout)
        self.assertIn("fuzz_b: found no problem", done.stdout)


if __name__ == "__main__":
    unittest.main(argv=sys.argv)
