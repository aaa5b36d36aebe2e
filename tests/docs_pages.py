"""Parses README.md and docs/: blocks of code, links and command lines (for docs_test.py)."""
import collections
import pathlib
import re
import shlex

ROOT = pathlib.Path(__file__).resolve().parent.parent

PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", ROOT / "bench/README.md",
                ROOT / "datasets/README.md", ROOT / "configs/smoke/README.md",
                *(ROOT / "docs").glob("*.md"), *(ROOT / "bench/results").glob("*.md")])
GENERATED = ROOT / "docs/reference.md"  # tests/app/test_reference.py tries its examples

Block = collections.namedtuple("Block", "language text line directives")


def blocks_of(text):
    """Returns the fenced blocks of a page, each with the directives of the comment before it."""
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
    """Returns a page without code blocks, comments and inline code."""
    text = re.sub(r"(?ms)^\s*```.*?^\s*```\s*$", "", text)
    text = re.sub(r"(?s)<!--.*?-->", "", text)
    return re.sub(r"`[^`\n]*`", "`code`", text)


def anchors_of(text):
    """Returns the anchors of a page's headings, as far as GitHub and mkdocs generate the same."""
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
    """Returns the broken links of a page."""
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


def commands_of(line):
    """Returns the arguments of each dtrain command on a shell line."""
    words = shlex.split(re.sub(r"<\((.*?)\)", r" | \1", line), comments=True)
    commands, segment = [], []
    for word in [*words, "|"]:
        if word not in ("|", "&&", "||", ";", "&", ">", "2>&1") and not re.match(r"\d?>", word):
            segment.append(word)
            continue
        while segment and (re.match(r"\w+=", segment[0]) or segment[0] in ("timeout", "time") or segment[0].isdigit()):
            segment = segment[1:]
        if segment and segment[0] in ("mpirun", "mpiexec", "srun") and "dtrain" in segment:
            segment = segment[segment.index("dtrain"):]
        if segment[:2] == ["./dev", "run"]:
            commands.append(segment[2:])
        elif segment and segment[0].rsplit("/", 1)[-1] == "dtrain":
            commands.append(segment[1:])
        segment = []
    return commands


def command_lines(text):
    """Returns (number, line) of each shell command line in a page's blocks."""
    fenced = [(block.line + 1 + i, line) for block in blocks_of(text) if block.language in ("sh", "bash", "console", "")
              for i, line in enumerate(block.text.splitlines())]
    outside = re.sub(r"(?ms)^\s*```.*?^\s*```\s*$", lambda found: "\n" * found[0].count("\n"), text)
    indented = [(number, line.strip()) for number, line in enumerate(outside.splitlines(), 1) if line.startswith("    ")]
    return [(number, line) for number, line in fenced + indented if re.search(r"(^|[\s/(])dtrain |\./dev run ", line)]


def commands_in_prose(text):
    """Yields the words after `dtrain` of each command in inline code, up to the end of the command."""
    prose = re.sub(r"(?ms)^\s*```.*?^\s*```\s*$", "", text)
    for code in re.findall(r"`(?:\./)?dtrain ([a-z][^`\n]*)`", prose):
        yield re.split(r"[;&|]", code.replace("\\|", " "))[0].split()


def option(directives, name):
    """Returns the text after `name` in a block's directives; None if there is no such directive."""
    return next((d[len(name):].strip() for d in directives if d == name or d.startswith(name + " ")), None)
