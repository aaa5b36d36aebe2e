#!/usr/bin/env python3
"""README.md and docs/ are true: links lead somewhere, command lines are understood, configurations are valid.

    docs_test.py DTRAIN [TEST...]    the program; Python's standard library only

A comment before a block of code says what the block needs:

    <!-- test: run -->                 the commands of an sh block are run, in the order of the page
    <!-- test: run after COMMAND -->   the same, after a command that the page does not show
    <!-- test: base NAME -->           a yaml block is a part of a configuration, which starts from BASES[NAME]
    <!-- test: in configs -->          a yaml block is a file in configs/
    <!-- test: save FILE -->           a yaml block is a file that later commands of the page name
    <!-- test: files missing -->       its files need not be there: messages about them alone are fine
    <!-- test: wrong -->               `dtrain check` rejects the yaml block, with the words of the text block after it
    <!-- test: warns -->               the same of a block that it accepts with a warning
    <!-- test: fails -->               the commands fail, with the words of the text block after them; `fails after COMMAND`
    <!-- test: keep devices -->        GPUs are not replaced

All command lines of dtrain in sh blocks are parsed by the program, whether or not they are run. GPUs in configurations
are replaced by CPU devices.
"""
import collections
import csv
import gzip
import os
import pathlib
import random
import re
import shlex
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest
import xml.dom.minidom
import zlib

ROOT = pathlib.Path(__file__).resolve().parent.parent
DTRAIN = "dtrain"

PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", ROOT / "bench/README.md",
                ROOT / "datasets/README.md", ROOT / "configs/smoke/README.md",
                *(ROOT / "docs").glob("*.md"), *(ROOT / "bench/results").glob("*.md")])
GENERATED = ROOT / "docs/reference.md"  # tests/app/test_reference.py tries its examples

Block = collections.namedtuple("Block", "language text line directives")


# Pages


def blocks_of(text):
    """The fenced blocks of a page, each with the directives of the comment before it."""
    blocks, directives, language, body, start = [], [], None, [], 0
    for number, line in enumerate(text.splitlines(), 1):
        fence = re.match(r"\s*```+\s*(\w*)", line)
        if language is None and fence:
            language, body, start = fence[1], [], number
        elif language is not None and fence:
            blocks.append(Block(language, "\n".join(body) + "\n", start, directives))
            language, directives = None, []
        elif language is not None:
            body.append(line)
        elif comment := re.match(r"\s*<!-- test: (.*) -->", line):
            directives = [part.strip() for part in comment[1].split(",")]
        elif line.strip():
            directives = []
    return blocks


def prose_of(text):
    """A page without its blocks of code, comments and code within lines."""
    text = re.sub(r"(?ms)^\s*```.*?^\s*```\s*$", "", text)
    text = re.sub(r"(?s)<!--.*?-->", "", text)
    return re.sub(r"`[^`\n]*`", "`code`", text)


def anchors_of(text):
    """The anchors of a page's headings: those of GitHub that mkdocs makes, too."""
    text = re.sub(r"(?ms)^\s*```.*?^\s*```\s*$", "", text)
    anchors, counts = set(), collections.Counter()
    for heading in re.findall(r"(?m)^#{1,6} (.+?)\s*#*$", text):
        heading = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").strip().lower()
        github = re.sub(r"[^\w\- ]", "", heading).replace(" ", "-")
        if github == re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", heading).strip()):
            anchors.add(github + (f"-{counts[github]}" if counts[github] else ""))
        counts[github] += 1
    return anchors


def links_of(text):
    prose = prose_of(text)
    return re.findall(r"\]\(([^)\s]+)[^)]*\)", prose) + re.findall(r'(?:src|href|srcset)="([^"]+)"', prose)


def broken_links(page, text):
    """Links of a page that lead nowhere."""
    broken = []
    for link in links_of(text):
        path, _, anchor = link.partition("#")
        if re.match(r"\w+:", link):
            if not re.match(r"https?://[\w.-]+\.\w+", link):
                broken.append(link)
            continue
        target = (page.parent / path).resolve() if path else page
        is_page = target.suffix == ".md" and target.is_file()
        there = text if target == page else target.read_text(encoding="utf-8") if is_page else ""
        if not target.exists() or (anchor and anchor not in anchors_of(there)):
            broken.append(link)
    return broken


# Command lines


def commands_of(line):
    """The arguments of each dtrain on a line of a shell."""
    words = shlex.split(re.sub(r"<\((.*?)\)", r" | \1", line), comments=True)
    commands, segment = [], []
    for word in [*words, "|"]:
        if word not in ("|", "&&", "||", ";", "&", ">", "2>&1") and not re.match(r"\d?>", word):
            segment.append(word)
            continue
        while segment and (re.match(r"\w+=", segment[0]) or segment[0] in ("timeout", "time") or segment[0].isdigit()):
            segment = segment[1:]
        if segment[:2] == ["./dev", "run"]:
            commands.append(segment[2:])
        elif segment and segment[0].rsplit("/", 1)[-1] == "dtrain":
            commands.append(segment[1:])
        segment = []
    return commands


def command_lines(text):
    """(number, line) of the lines of a page's blocks that a shell is meant to run."""
    fenced = [(block.line + 1 + i, line) for block in blocks_of(text) if block.language in ("sh", "bash", "console", "")
              for i, line in enumerate(block.text.splitlines())]
    outside = re.sub(r"(?ms)^\s*```.*?^\s*```\s*$", lambda found: "\n" * found[0].count("\n"), text)
    indented = [(number, line.strip()) for number, line in enumerate(outside.splitlines(), 1) if line.startswith("    ")]
    return [(number, line) for number, line in fenced + indented if re.search(r"(^|[\s/(])dtrain |\./dev run ", line)]


def commands_in_prose(text):
    """The words after `dtrain` of commands in code within lines, each up to the end of its command."""
    prose = re.sub(r"(?ms)^\s*```.*?^\s*```\s*$", "", text)
    for code in re.findall(r"`(?:\./)?dtrain ([a-z][^`\n]*)`", prose):
        yield re.split(r"[;&|]", code.replace("\\|", " "))[0].split()


def run(arguments, folder, timeout=600):
    return subprocess.run([DTRAIN, *arguments], cwd=folder, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=timeout)


def shell(script, folder):
    """Runs lines of a shell, in which `dtrain` is the program."""
    environment = {**os.environ, "PATH": f"{pathlib.Path(DTRAIN).parent}:{os.environ['PATH']}", "NO_COLOR": "1"}
    return subprocess.run(["bash", "-euo", "pipefail", "-c", script], cwd=folder, env=environment, capture_output=True,
                          text=True, stdin=subprocess.DEVNULL, timeout=900)


def not_understood(line):
    """What the program says of a command line that it does not understand; nothing of others."""
    messages = []
    for arguments in commands_of(line):
        if "--watch" in arguments and "--count" not in arguments:
            arguments = [*arguments, "--count", "1"]
        with tempfile.TemporaryDirectory() as folder:
            done = run(arguments, folder)
        if done.returncode == 2 and re.search(r"\(see dtrain[^)]*help\)|unknown command", done.stderr):
            messages.append(done.stderr.strip())
    return messages


# Files that the pages' commands and configurations name


def png(width, height, seed):
    """A PNG of noise around one colour."""
    draw = random.Random(seed)
    colour = [draw.randrange(40, 216) for _ in range(3)]
    rows = b"".join(b"\0" + bytes(c + draw.randrange(-40, 40) for _ in range(width) for c in colour) for _ in range(height))

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def write_csv(path, header, rows):
    with open(path, "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([header, *rows])


def write_tables(folder):
    draw = random.Random(1)
    flowers = [[f"F{i}", *(f"{draw.gauss(3, 1):.1f}" for _ in range(4)), draw.choice(["blue", "red", "white"]), f"note {i}",
                draw.choice(["iris", "lily", "rose"])] for i in range(120)]
    header = ["name", "length", "width", "stem", "age", "colour", "notes", "species"]
    for name in ("flowers.csv", "all.csv", "labelled.csv"):
        write_csv(folder / name, header, flowers)
    for name in ("more.csv", "a.csv", "b.csv"):
        write_csv(folder / name, header[:-1], [row[:-1] for row in flowers[:5]])
    (folder / "more.csv.gz").write_bytes(gzip.compress((folder / "more.csv").read_bytes()))
    write_csv(folder / "bookings.csv", ["booked", "price", "discount", "nights"],
              [[f"2026-{1 + i % 12:02}-{1 + i % 28:02} 12:00", f'${draw.randrange(1, 90)},{draw.randrange(100, 999)}' if i % 9 else "",
                f"{draw.random():.1f}%", draw.choice([1, 2, "unknown", -999])] for i in range(80)])
    for name in ("train.csv", "validation.csv"):
        (folder / name).write_text("".join(",".join(str(draw.randrange(17)) for _ in range(64)) + f",{i % 10}\n" for i in range(100)))


def write_images(folder):
    for k, species in enumerate(["daisy", "rose"]):
        for part in ("birds/train", "birds/validation"):
            (folder / part / species).mkdir(parents=True)
            for i in range(12):
                (folder / part / species / f"{i}.png").write_bytes(png(40, 32, k))
    for part, ending in (("pictures", "png"), ("new", "jpg"), ("pics", "jpg")):  # formats are recognized by content
        (folder / part).mkdir()
        for i in range(12):
            (folder / part / f"{i}.{ending}").write_bytes(png(40, 32, i % 2))
    shutil.copytree(folder / "birds/train", folder / "photos")
    write_csv(folder / "labels.csv", ["filename", "species"], [[f"{i}.png", ["daisy", "rose"][i % 2]] for i in range(12)])


def sample_folder(name):
    """A folder with the shipped configurations and data, and the files that the pages name."""
    folder = pathlib.Path(name)
    shutil.copytree(ROOT / "configs", folder / "configs")
    (folder / "datasets").symlink_to(ROOT / "datasets")
    write_tables(folder)
    write_images(folder)
    for base, text in BASES.items():
        (folder / f"base-{base}.yaml").write_text(text, encoding="utf-8")
    return folder


# Whole configurations from which the pages' parts of configurations start

BASES = {
    "digits": "base: configs/digits-mlp.yaml\n",
    "table": """
model: {inputs: {x: auto}, layers: [{dense: {units: auto}}]}
dataset:
  train: {csv: {file: all.csv, header: true, target: species, id: name, drop: [notes], categories: [colour]}}
  transforms: [standardize]
train: {loss: {sparse_categorical_crossentropy: {from_logits: true}}, optimizer: adam}
""",
    "regression": """
model: {inputs: {x: auto}, layers: [{dense: {units: auto}}]}
train: {loss: mean_squared_error, optimizer: adam}
""",
    "pixels": """
model: {inputs: {pixels: [64]}, layers: [{dense: 10}]}
train: {loss: {sparse_categorical_crossentropy: {from_logits: true}}, optimizer: adam}
""",
    "images": """
model:
  inputs: {image: auto}
  layers: [{conv2d: {filters: 4, kernel_size: 3, strides: 2}}, global_average_pooling2d, {dense: {units: auto}}]
train: {loss: {sparse_categorical_crossentropy: {from_logits: true}}, optimizer: adam, batch_size: 8}
""",
    "photos": "base: base-images.yaml\ndataset: {train: {images: {directory: photos, size: [32, 32]}}}\n",
    "two-outputs": """
model:
  inputs: {image: [8, 8, 1], hint: [4]}
  layers:
    - flatten: {name: seen, inputs: image}
    - concatenate: {name: both, inputs: [seen, hint]}
    - dense: {name: digit, units: 10}
    - dense: {name: size, units: 1, inputs: both}
  outputs: [digit, size]
dataset: {train: {synthetic: {samples: 100, targets: {digit: {classes: 10}, size: {shape: [1]}}}}}
train:
  loss: {digit: {sparse_categorical_crossentropy: {from_logits: true}}, size: mean_squared_error}
  optimizer: adam
""",
    "branches": """
model:
  inputs: {image: [8]}
  blocks: {branch: {layers: [{dense: {name: stem, units: 8}}, {dense: {name: body, units: 8}}]}}
  layers:
    - branch: {name: left, inputs: image}
    - branch: {name: right, inputs: image}
    - concatenate: {name: merged, inputs: [left, right]}
    - dense: {name: head, units: 2}
dataset: {train: {synthetic: {samples: 100, target: {classes: 2}}}}
train: {loss: {sparse_categorical_crossentropy: {from_logits: true}}, optimizer: adam}
""",
    "deep": """
model:
  inputs: {x: [8]}
  layers: [{dense: 8}, {dense: 8}, {dense: 8}, {dense: 8}, {dense: 8}, {dense: 8}, {dense: 2}]
dataset: {train: {synthetic: {samples: 100, target: {classes: 2}}}}
train: {loss: {sparse_categorical_crossentropy: {from_logits: true}}, optimizer: adam}
""",
    "two-towers": """
dataset: {train: {synthetic: {samples: 100, target: {classes: 2}}}}
train: {loss: {sparse_categorical_crossentropy: {from_logits: true}}, optimizer: adam}
""",
}


def option(directives, name):
    """What follows `name` in a block's directives; None where it is not among them."""
    return next((d[len(name):].strip() for d in directives if d == name or d.startswith(name + " ")), None)


def check(block, folder):
    """What `dtrain check` does with a block."""
    text = block.text if "keep devices" in block.directives else re.sub(r"\bgpu:(\d)", r"cpu:\1", block.text)
    base = option(block.directives, "base")
    if base is not None:
        text = f"base: base-{base}.yaml\n{text}"
    name = option(block.directives, "save") or "block.yaml"
    path = folder / "configs" / name if option(block.directives, "in") == "configs" else folder / name
    path.write_text(text, encoding="utf-8")
    return run(["check", str(path.relative_to(folder))], folder)


def mistakes_in_yaml(block, folder, shown=None):
    """What is wrong with a block, which is a configuration or a part of one; "" if nothing is.

    Of one that is marked as wrong: what is missing of `shown` among the words of `dtrain check`.
    """
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
    """What is wrong where a command should fail (or not), with the lines of the block `shown` in its message."""
    if shown is None or shown.language != "text":
        return "no text block with the message follows"
    missing = [line for line in shown.text.splitlines() if line.strip() not in done.stderr]
    if (done.returncode != 0) != fails or missing:
        return f"exit code {done.returncode}; not in the message: {missing}\n{done.stderr}"
    return ""


MISSING = re.compile(r"there is no such file|No such file or directory|: cannot be read$")


class Pages(unittest.TestCase):
    """Checks of text alone."""

    def test_links_lead_somewhere(self):
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

    def test_every_command_of_dev_is_there(self):
        usage = subprocess.run([ROOT / "dev", "help"], capture_output=True, text=True, check=True).stdout
        for page in PAGES:
            for command in set(re.findall(r"\./dev ([a-z][a-z-]+)", page.read_text(encoding="utf-8"))) - {"help"}:
                self.assertRegex(usage, rf"(?m)^  {command} ", page.name)

    def test_the_chart_is_that_of_the_newest_results(self):
        with tempfile.TemporaryDirectory() as folder:
            picture = pathlib.Path(folder) / "speed.svg"
            subprocess.run([sys.executable, ROOT / "bench/chart.py", "--output", picture], check=True, capture_output=True)
            self.assertEqual(picture.read_text(encoding="utf-8"), (ROOT / "docs/images/speed.svg").read_text(encoding="utf-8"),
                             "bench/chart.py draws another docs/images/speed.svg; run it and commit what it draws")


class Commands(unittest.TestCase):
    def test_every_command_line_is_understood(self):
        count = 0
        for page in PAGES:
            for number, line in command_lines(page.read_text(encoding="utf-8")):
                with self.subTest(page=f"{page.relative_to(ROOT)}:{number}"):
                    count += len(commands_of(line))
                    self.assertEqual(not_understood(line), [])
        self.assertGreater(count, 80)

    def test_commands_within_sentences_have_the_options_that_are_named(self):
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
    """It finds what is wrong."""

    def test_broken_links(self):
        page = ROOT / "docs/README.md"
        text = "# A heading\n[a](gpu.md) [b](no.md) [c](#a-heading) [d](#no) [e](gpu.md#memory) [f](gpu.md#no) `[g](no)`\n" \
               "```\n[h](no)\n```\n[i](https://example.org/x) [j](htp:x) ![k](images/no.svg)\n"
        self.assertEqual(broken_links(page, text), ["no.md", "#no", "gpu.md#no", "htp:x", "images/no.svg"])

    def test_command_lines_that_are_wrong(self):
        for line in ["dtrain fitt a.yaml", "dtrain fit a.yaml --epoch 3", "dtrain fit", "cat a | dtrain predict run --input - --out b",
                     "X=1 ./dev run resume a b", "source <(dtrain completion basch)"]:
            self.assertNotEqual(not_understood(line), [], line)
        for line in ["dtrain fit a.yaml --epochs 3  # --epoch 3", "cat a.csv", "dtrain runs > list", "dtrain schema --markdown"]:
            self.assertEqual(not_understood(line), [], line)

    def test_commands_in_prose_are_found(self):
        text = "a `dtrain fit a.yaml --epochs 3; ls` b `ls` `dtrain summary CONFIG\\|PATH --json`\n```sh\n`dtrain no`\n```\n"
        self.assertEqual(list(commands_in_prose(text)),
                         [["fit", "a.yaml", "--epochs", "3"], ["summary", "CONFIG", "PATH", "--json"]])

    def test_configurations_that_are_wrong(self):
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
