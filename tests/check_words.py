#!/usr/bin/env python3
"""Warns about phrases that comments and messages should not use (CONTRIBUTING.md, Style), with a plain replacement.

    check_words.py [FILE...]    checks these files; by default lib, app, tests, bench, docs and the root's *.md
    check_words.py --self-test  checks this script

Findings are warnings: the exit code is 0 even if there are findings.
"""
import io
import pathlib
import re
import sys
import tokenize

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDERS = ("lib", "app", "tests", "bench", "docs")
C_LIKE = {".h", ".cpp", ".cu", ".cuh", ".inc"}
HASH_COMMENTS = {".txt", ".cmake", ".sh", ".yaml"}
# These files quote the phrases and are not checked.
EXEMPT = {"tests/check_words.py", "CONTRIBUTING.md"}

# A regular expression for each phrase, and the plain words to use instead.
PHRASES = [
    (r"anew", "again"),
    (r"so (?:many|much)(?! that)", "the number or fraction itself"),
    (r"where (?:there )?(?:is|are|was|were) none", "if there is no ..., null/empty if ..."),
    (r"of (?:its|their) own", "its own ..., a separate ..."),
    (r"(?:every|any|some|no)body", "no thread, no layer, the user: name who"),
    (r"who(?:m|so)?ever", "the caller, the user: name who"),
    (r"mend(?:s|ed|ing)?", "fix"),
    (r"as (?:it is|they are)[.;]", "unchanged"),
    (r"all there (?:is|was|are|were)", "all ..."),
    (r"all (?:that|else) (?:is|was)", "everything that ..., or name it"),
    (r"what is (?:known|said|told|kept|left) of", "name the thing"),
    (r"(?:is|are|was|were) (?:told of|said of|said to be)", "reads, is passed, is reported as"),
    (r"has to do with", "concerns, depends on"),
    (r"is the affair of|(?:'s|is) affair", "... handles it"),
    (r"go(?:es)? on (?:as|with|from|by|on|in)", "continue"),
    (r"(?:that|what) it is worth", "its scale, its value"),
    (r"of (?:Keras|PyTorch|CUDA|NCCL|ONNX|oneDNN|cuDNN)'s(?= (?:to|as|in|is|and|or|for|that)\b|[,.;:)\"]|$)",
     "a Keras ..., Keras's ..."),
    (r"for want of", "because ... is missing"),
    (r"save for", "except"),
    (r"to be had", "available"),
    (r"reckon(?:s|ed|ing)?", "compute, assume"),
    (r"lies? (?:apart|beside|behind|side by side)", "is strided, is after ..., is contiguous"),
    (r"in the place of", "instead of"),
    (r"spares", "saves, avoids"),
    (r"(?:threads|replicas|devices|members|ranks|they) meet", "synchronize"),
]
PATTERNS = [(re.compile(rf"(?<![\w-]){phrase}(?!\w)"), instead) for phrase, instead in PHRASES]


def texts_of_c(text):
    """Yields (line, text) of each comment and string literal."""
    for found in re.finditer(r"""//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'""", text, re.S):
        if not found[0].startswith("'"):
            yield text.count("\n", 0, found.start()) + 1, found[0]


def texts_of_python(text):
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type in (tokenize.COMMENT, tokenize.STRING):
            yield token.start[0], token.string


def texts_of_lines(text, comments_only):
    for number, line in enumerate(text.splitlines(), 1):
        found = re.search(r"(?:^|\s)#.*", line) if comments_only else re.search(".+", line)
        if found:
            yield number, found[0]


def texts_of(path, text):
    """Yields (line, text) of each piece of prose in a file: a comment line, a string, or a line of documentation."""
    if path.suffix in C_LIKE:
        return texts_of_c(text)
    if path.suffix == ".py":
        return texts_of_python(text)
    if path.suffix == ".md":
        return texts_of_lines(text, comments_only=False)
    return texts_of_lines(text, comments_only=True) if path.suffix in HASH_COMMENTS else ()


def findings_of(path, text):
    """Yields (line, phrase, replacement) of each phrase to avoid."""
    for line, prose in texts_of(path, text):
        for pattern, instead in PATTERNS:
            for found in pattern.finditer(prose):
                yield line + prose.count("\n", 0, found.start()), found[0], instead


def check(paths):
    findings = 0
    for path in paths:
        name = str(path.relative_to(ROOT) if path.is_relative_to(ROOT) else path)
        if name in EXEMPT:
            continue
        for line, phrase, instead in findings_of(path, path.read_text(encoding="utf-8", errors="replace")):
            findings += 1
            print(f"{name}:{line}: warning: \"{phrase}\" (better: {instead})")
    if findings:
        print(f"{findings} phrases to avoid (CONTRIBUTING.md, Style); these are warnings")


def self_test():
    """Checks that every phrase is found in comments and strings, and nothing else."""
    def found(name, text):
        return [(line, phrase) for line, phrase, _ in findings_of(pathlib.Path(name), text)]

    assert found("a.cpp", "int a;  // read anew\n// mended\n") == [(1, "anew"), (2, "mended")]
    assert found("a.h", '/* plain\n   nobody */ f("a state of its own");\n') == [(2, "nobody"), (2, "of its own")]
    assert found("a.cpp", "int anew = whoever;  // a renewed, amended and reckless text\n") == []
    assert found("a.cu", "char c = '\"';  // for want of\n") == [(1, "for want of")]
    assert found("a.h", "// Layouts of Keras's files, whichever they are, read ahead of use.\n") == []
    assert found("a.py", 'def anew():\n    """Whether\n    whoever."""  # to be had\n') == [(3, "whoever"), (3, "to be had")]
    assert found("CMakeLists.txt", "set(anew 1)\n# null where there is none\n") == [(2, "where there is none")]
    assert found("a.md", "It goes on as before.\n") == [(1, "goes on as")]
    assert found("a.png", "anew") == []
    examples = ["anew", "so many of", "where there are none", "of their own", "everybody", "whoever", "mended", "as they are.",
                "all there is", "all that is", "what is known of", "are told of", "has to do with", "is the affair of",
                "go on from", "that it is worth", "a file of Keras's, found", "for want of", "save for", "to be had",
                "reckons", "lie apart", "in the place of", "spares", "threads meet"]
    for (pattern, _), example in zip(PATTERNS, examples, strict=True):
        assert pattern.search(example), example


def all_files():
    for folder in FOLDERS:
        yield from (path for path in sorted((ROOT / folder).rglob("*")) if path.is_file())
    yield from sorted(ROOT.glob("*.md"))


if __name__ == "__main__":
    if "--self-test" in sys.argv:
        self_test()
    else:
        check([pathlib.Path(name).resolve() for name in sys.argv[1:]] or all_files())
