#!/usr/bin/env python3
"""Checks README.md and docs/: links are not broken, command lines are accepted, configurations are valid.

    docs_test.py DTRAIN [TEST...]    DTRAIN: the program

Needs only Python's standard library. A comment before a block of code states how to test the block:

    <!-- test: run -->                 the commands of an sh block are run, in the order of the page
    <!-- test: run after COMMAND -->   the same, after a command that the page does not show
    <!-- test: base NAME -->           the yaml block is merged over the configuration BASES[NAME]
    <!-- test: in configs -->          the yaml block is saved in configs/
    <!-- test: save FILE -->           the yaml block is saved as FILE, which later commands of the page use
    <!-- test: files missing -->       files of the configuration may be missing: errors about them are ignored
    <!-- test: wrong -->               `dtrain check` rejects the yaml block with the message in the following text block
    <!-- test: warns -->               `dtrain check` accepts it with the warning in the following text block
    <!-- test: fails -->               the commands fail with the message in the following text block
    <!-- test: fails after COMMAND --> the same, after a command that the page does not show
    <!-- test: keep devices -->        GPUs are not replaced

All command lines of dtrain in sh blocks are parsed by the program, whether or not they are run. GPUs in configurations
are replaced by CPU devices.
"""
import collections
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
import xml.dom.minidom

from docs_pages import (GENERATED, PAGES, ROOT, Block, blocks_of, broken_links, command_lines, commands_in_prose, commands_of,
                        links_of, option)
from docs_samples import BASES, sample_folder

DTRAIN = "dtrain"
MISSING = re.compile(r"there is no such file|No such file or directory|: cannot be read$")  # messages about files


def run(arguments, folder, timeout=600):
    return subprocess.run([DTRAIN, *arguments], cwd=folder, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=timeout)


def has_sanitizers():
    return "sanitizers" in subprocess.run([DTRAIN, "--version"], capture_output=True, text=True, check=True).stdout


def shell(script, folder):
    """Runs shell lines in which `dtrain` is the program."""
    environment = {**os.environ, "PATH": f"{pathlib.Path(DTRAIN).parent}:{os.environ['PATH']}", "NO_COLOR": "1"}
    return subprocess.run(["bash", "-euo", "pipefail", "-c", script], cwd=folder, env=environment, capture_output=True,
                          text=True, stdin=subprocess.DEVNULL, timeout=900)


def not_understood(line):
    """Returns the program's messages about invalid command lines; an empty list if all are valid."""
    messages = []
    for arguments in commands_of(line):
        if "--watch" in arguments and "--count" not in arguments:
            arguments = [*arguments, "--count", "1"]
        with tempfile.TemporaryDirectory() as folder:
            done = run(arguments, folder)
        if done.returncode == 2 and re.search(r"\(see dtrain[^)]*help\)|unknown command", done.stderr):
            messages.append(done.stderr.strip())
    return messages


def check(block, folder):
    """Runs `dtrain check` on a block."""
    text = block.text if "keep devices" in block.directives else re.sub(r"\bgpu:(\d)", r"cpu:\1", block.text)
    base = option(block.directives, "base")
    if base is not None:
        text = f"base: base-{base}.yaml\n{text}"
    name = option(block.directives, "save") or "block.yaml"
    path = folder / "configs" / name if option(block.directives, "in") == "configs" else folder / name
    path.write_text(text, encoding="utf-8")
    return run(["check", str(path.relative_to(folder))], folder)


def mistakes_in_yaml(block, folder, shown=None):
    """Returns the errors in a block that contains a whole configuration or a part of one. Returns "" if there are no
    errors.

    If the block is marked as wrong or as having a warning, returns the lines of the block `shown` that are missing
    in the message of `dtrain check`."""
    base = option(block.directives, "base")
    if base is not None and base not in BASES:
        return f"no base '{base}'"
    if base is None and not re.search(r"(?m)^base:", block.text) and \
            not all(re.search(rf"(?m)^{key}:", block.text) for key in ("model", "dataset", "train")):
        return "neither a whole configuration nor marked: <!-- test: base NAME -->"
    done = check(block, folder)
    if "wrong" in block.directives or "warns" in block.directives:
        return not_shown(done, shown, fails="wrong" in block.directives)
    if done.returncode == 0:
        return ""
    errors = [line for line in done.stderr.splitlines() if "error:" in line]
    if "files missing" in block.directives and errors and all(MISSING.search(line) for line in errors):
        return ""
    return done.stderr.strip() or f"exit code {done.returncode}"


def not_shown(done, shown, fails=True):
    """Returns an error if the command has another result than expected. The command must fail (or succeed, if `fails`
    is false), and its message must contain all lines of the block `shown`.

    In a line of the block, "..." matches any text of the same line."""
    if shown is None or shown.language != "text":
        return "no text block with the message follows"
    missing = [line for line in shown.text.splitlines()
               if not re.search(".*".join(map(re.escape, line.strip().split("..."))), done.stderr)]
    if (done.returncode != 0) != fails or missing:
        return f"exit code {done.returncode}; not in the message: {missing}\n{done.stderr}"
    return ""


class Pages(unittest.TestCase):
    """Checks that do not run the program."""

    def test_links_resolve(self):
        for page in PAGES:
            with self.subTest(page=page.name):
                self.assertEqual(broken_links(page, page.read_text(encoding="utf-8")), [])

    def test_every_page_is_in_both_tables_of_contents(self):
        pages = {page.name for page in (ROOT / "docs").glob("*.md")} - {"README.md"}
        contents = {link.split("#")[0] for link in links_of((ROOT / "docs/README.md").read_text(encoding="utf-8"))}
        self.assertEqual(pages - contents, set())
        site = re.findall(r"docs/([\w-]+\.md)", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
        self.assertEqual(sorted(site), sorted(pages | {"README.md"}))

    def test_readme_is_short(self):
        lines = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
        self.assertLessEqual(len(lines), 150)
        self.assertEqual([line for line in lines if len(line) > 100], [])

    def test_every_command_of_dev_is_documented(self):
        usage = subprocess.run([ROOT / "dev", "help"], capture_output=True, text=True, check=True).stdout
        for page in PAGES:
            for command in set(re.findall(r"\./dev ([a-z][a-z-]+)", page.read_text(encoding="utf-8"))) - {"help"}:
                self.assertRegex(usage, rf"(?m)^  {command} ", page.name)

    def test_the_chart_shows_the_newest_results(self):
        with tempfile.TemporaryDirectory() as folder:
            picture = pathlib.Path(folder) / "speed.svg"
            subprocess.run([sys.executable, ROOT / "bench/chart.py", "--output", picture], check=True, capture_output=True)
            self.assertEqual(picture.read_text(encoding="utf-8"), (ROOT / "docs/images/speed.svg").read_text(encoding="utf-8"),
                             "bench/chart.py draws another docs/images/speed.svg; run it and commit what it draws")


class Commands(unittest.TestCase):
    def test_every_command_line_is_valid(self):
        count = 0
        for page in PAGES:
            for number, line in command_lines(page.read_text(encoding="utf-8")):
                with self.subTest(page=f"{page.relative_to(ROOT)}:{number}"):
                    count += len(commands_of(line))
                    self.assertEqual(not_understood(line), [])
        self.assertGreater(count, 80)

    def test_commands_in_sentences_have_the_named_options(self):
        helps = {}
        for page in PAGES:
            for words in commands_in_prose(page.read_text(encoding="utf-8")):
                with self.subTest(page=page.name, command=" ".join(words)):
                    command = words[0]
                    helps[command] = helps.get(command) or run([command, "--help"], ROOT).stdout
                    self.assertIn("--help", helps[command])
                    for word in words[1:]:
                        if word.startswith("--"):
                            self.assertRegex(helps[command], rf"(?<![\w-]){re.escape(word.split('=')[0])}(?![\w-])")
        self.assertGreater(len(helps), 12)

    def test_marked_commands_run_and_configurations_are_valid(self):
        counts = collections.Counter()
        for page in PAGES:
            blocks = blocks_of(page.read_text(encoding="utf-8"))
            if page == GENERATED or not any(block.directives or block.language == "yaml" for block in blocks):
                continue
            with tempfile.TemporaryDirectory() as name:
                folder = sample_folder(name)
                for block, following in zip(blocks, [*blocks[1:], None]):
                    with self.subTest(page=f"{page.relative_to(ROOT)}:{block.line}"):
                        self.try_block(block, following, folder, counts)
        self.assertGreater(counts["run"], 5)
        self.assertGreater(counts["fails"], 2)
        self.assertGreater(counts["yaml"], 25)

    def try_block(self, block, following, folder, counts):
        if block.language == "yaml":
            counts["yaml"] += 1
            self.assertEqual(mistakes_in_yaml(block, folder, following), "")
        for kind in ("run", "fails"):
            before = option(block.directives, kind)
            if before is None:
                continue
            if "ulimit -v" in block.text and has_sanitizers():  # sanitizers reserve terabytes of address space
                continue
            counts[kind] += 1
            if before:
                self.assertEqual(shell(before.removeprefix("after "), folder).returncode, 0, before)
            done = shell(block.text, folder)
            if kind == "run":
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            else:
                self.assertEqual(not_shown(done, following), "")

    def test_the_terminal_session_can_be_drawn_again(self):
        with tempfile.TemporaryDirectory() as folder:
            picture = pathlib.Path(folder) / "session.svg"
            done = subprocess.run([sys.executable, ROOT / "bench/terminal.py", "--dtrain", DTRAIN, "--output", picture],
                                  capture_output=True, text=True, timeout=600)
            self.assertEqual(done.returncode, 0, done.stderr)
            new, kept = (xml.dom.minidom.parse(str(path)) for path in (picture, ROOT / "docs/images/session.svg"))

        def commands(document):
            words = ["".join(node.data for node in text.childNodes) for text in document.getElementsByTagName("text")]
            return [word for word in words if word.startswith("dtrain ")]

        self.assertGreater(len(commands(new)), 2)
        self.assertEqual(commands(new), commands(kept), "run bench/terminal.py and commit what it draws")


class ThisTest(unittest.TestCase):
    """Tests of this script: it detects errors."""

    def test_broken_links_are_found(self):
        page = ROOT / "docs/README.md"
        text = "# A heading\n[a](gpu.md) [b](no.md) [c](#a-heading) [d](#no) [e](gpu.md#memory) [f](gpu.md#no) `[g](no)`\n" \
               "```\n[h](no)\n```\n[i](https://example.org/x) [j](htp:x) ![k](images/no.svg)\n"
        self.assertEqual(broken_links(page, text), ["no.md", "#no", "gpu.md#no", "htp:x", "images/no.svg"])

    def test_wrong_command_lines_are_found(self):
        for line in ["dtrain fitt a.yaml", "dtrain fit a.yaml --epoch 3", "dtrain fit", "cat a | dtrain predict run --input - --out b",
                     "X=1 ./dev run resume a b", "source <(dtrain completion basch)"]:
            self.assertNotEqual(not_understood(line), [], line)
        for line in ["dtrain fit a.yaml --epochs 3  # --epoch 3", "cat a.csv", "dtrain runs > list", "dtrain schema --markdown"]:
            self.assertEqual(not_understood(line), [], line)

    def test_commands_in_prose_are_found(self):
        text = "a `dtrain fit a.yaml --epochs 3; ls` b `ls` `dtrain summary CONFIG\\|PATH --json`\n```sh\n`dtrain no`\n```\n"
        self.assertEqual(list(commands_in_prose(text)),
                         [["fit", "a.yaml", "--epochs", "3"], ["summary", "CONFIG", "PATH", "--json"]])

    def test_wrong_configurations_are_found(self):
        with tempfile.TemporaryDirectory() as name:
            folder = sample_folder(name)

            def mistakes(text):
                return mistakes_in_yaml(blocks_of(text)[0], folder)

            good = "<!-- test: base digits -->\n```yaml\ntrain: {epochs: 3}\n```\n"
            self.assertEqual(mistakes(good), "")
            self.assertIn("epoch", mistakes(good.replace("epochs", "epoch")))
            self.assertIn("base NAME", mistakes(good.replace("<!-- test: base digits -->", "")))
            self.assertNotEqual(mistakes(good.replace("{epochs: 3}", "{epochs: 3")), "")
            missing = good.replace("base digits", "base digits, files missing").replace(
                "train: {epochs: 3}", "dataset: {train: {csv: {file: no.csv, target: 64}}}")
            self.assertEqual(mistakes(missing), "")
            self.assertNotEqual(mistakes(missing.replace(", files missing", "")), "")
            self.assertNotEqual(mistakes(missing.replace("target", "targt")), "")
            wrong = good.replace("base digits", "base digits, wrong").replace("epochs", "epoch")
            shown = Block("text", "did you mean 'epochs'?", 1, [])
            self.assertEqual(mistakes_in_yaml(blocks_of(wrong)[0], folder, shown), "")
            self.assertNotEqual(mistakes_in_yaml(blocks_of(wrong)[0], folder, shown._replace(text="no such words")), "")
            self.assertNotEqual(mistakes_in_yaml(blocks_of(wrong.replace("epoch", "epochs"))[0], folder, shown), "")


if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    DTRAIN = str(pathlib.Path(sys.argv.pop(1)).resolve())
    unittest.main()
