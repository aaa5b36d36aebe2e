#!/usr/bin/env python3
"""Draws a terminal session as an SVG: runs the program in a pseudo-terminal and draws its output.

    bench/terminal.py [--dtrain build/release/app/dtrain] [--output docs/images/session.svg]

The session trains on a small table that this script makes from a fixed seed. Times and speeds differ from run to run.
The script needs only Python's standard library, and a system with pseudo-terminals.
"""
import argparse
import csv
import fcntl
import os
import pathlib
import pty
import random
import re
import struct
import subprocess
import sys
import tempfile
import termios
from xml.sax.saxutils import escape

ROOT = pathlib.Path(__file__).resolve().parent.parent
COLUMNS = 100

# A configuration with four mistakes. The session shows the messages about them.
OOPS = """\
model:
  inputs: {image: [8, 8, 1]}
  layers:
    - conv2d: {filters: 32, kernel_size: 3, activation: rellu}
    - max_pooling2d: {pool_size: 7}
    - flatten
    - dense: {units: ten}
dataset: {train: {synthetic: {samples: 100, target: {classes: 10}}}}
train: {loss: sparse_categorical_crossentropy, optimizer: adam, epoch: 3}
"""

# The command lines, each with the number of lines that are shown from the beginning and from the end of its output.
SESSION = [
    ("dtrain check oops.yaml", 9, 0),
    ("dtrain new flowers.csv", 12, 0),
    ("dtrain fit flowers.yaml", 4, 4),
    ("dtrain predict runs/flowers --input new.csv --output -", 4, 0),
]

SPECIES = {  # for each species, the mean length and width of petals, and the usual colour
    "iris": (4.4, 1.4, "blue"),
    "lily": (6.1, 2.3, "white"),
    "rose": (3.1, 2.6, "red"),
}


def write_table(path, rows, seed, labeled=True):
    """Writes a table of flowers: numbers, of which some are missing, a category, an id and the species."""
    draw = random.Random(seed)
    with open(path, "w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(["id", "length", "width", "colour"] + ["species"] * labeled)
        for row in range(rows):
            species = draw.choice(list(SPECIES))
            length, width, colour = SPECIES[species]
            values = [f"F{seed}{row:03}", f"{draw.gauss(length, 0.4):.1f}", f"{draw.gauss(width, 0.3):.1f}",
                      colour if draw.random() < 0.8 else draw.choice(["blue", "red", "white"])]
            if draw.random() < 0.05:
                values[1] = ""
            table.writerow(values + [species] * labeled)


def in_terminal(command, folder, dtrain):
    """Runs a command line in a terminal of COLUMNS columns. Returns the text that it prints, and its exit code."""
    parent, child = pty.openpty()
    fcntl.ioctl(child, termios.TIOCSWINSZ, struct.pack("HHHH", 40, COLUMNS, 0, 0))
    environment = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
    environment |= {"TERM": "xterm-256color", "PATH": f"{pathlib.Path(dtrain).resolve().parent}:{os.environ['PATH']}"}
    process = subprocess.Popen(command, shell=True, cwd=folder, env=environment, stdin=child, stdout=child, stderr=child)
    os.close(child)
    output = b""
    while True:
        try:
            output += (piece := os.read(parent, 65536))
        except OSError:  # the terminal's other end is closed
            break
        if not piece:
            break
    os.close(parent)
    return output.decode("utf-8", "replace"), process.wait()


def screen_lines(output):
    """Returns the final screen of the terminal: lines of (character, style). `style`: a tuple of active SGR numbers."""
    lines, line, column, style = [], [], 0, ()
    for escape_code, argument, final, character in re.findall(r"(\x1b\[)([\d;]*)([A-Za-z])|([^\x1b])", output):
        if final == "m":
            style = () if argument in ("", "0") else (*style, *argument.split(";"))
        elif final == "K":
            del line[column:]
        elif character == "\n":
            lines.append(line)
            line, column = [], 0
        elif character == "\r":
            column = 0
        elif character:
            if column == COLUMNS:  # wraps the line, as terminals do
                lines.append(line)
                line, column = [], 0
            line[column:column + 1] = [(character, style)]
            column += 1
    return lines + [line] * bool(line)


def shown(lines, first, last):
    """Returns the lines that the image shows: the first `first` lines and the last `last` lines. A line of dots
    replaces the lines between them."""
    if len(lines) <= first + last + 1:
        return lines
    dots = [("...", ("2",))]
    return [*lines[:first], dots, *lines[len(lines) - last:]] if last else [*lines[:first], dots]


# Width of a character, height of a line, margin around the text, height of the window's bar.
CHARACTER, LINE, MARGIN, BAR = 7.83, 18, 18, 34
STYLE = """
  text { font: 13px ui-monospace, 'SF Mono', Menlo, Consolas, 'DejaVu Sans Mono', monospace; fill: #d6deeb; white-space: pre }
  .s1 { font-weight: 700 } .s2 { fill: #7d8b99 } .s31 { fill: #ff7b72 } .s32 { fill: #7ee787 } .s33 { fill: #e3b341 }
"""


def draw(lines):
    """Returns the SVG of lines of (characters, style)."""
    width = COLUMNS * CHARACTER + 2 * MARGIN
    height = BAR + len(lines) * LINE + 2 * MARGIN
    picture = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height}" viewBox="0 0 {width:.0f} {height}" '
               'role="img" aria-label="A terminal session with dtrain">', f"  <style>{STYLE}  </style>",
               f'  <rect width="{width:.0f}" height="{height}" rx="9" fill="#0f1720"/>']
    picture += [f'  <circle cx="{20 + 20 * i}" cy="18" r="6" fill="{colour}"/>'
                for i, colour in enumerate(("#ff5f57", "#febc2e", "#28c840"))]
    for number, line in enumerate(lines):
        y, column, at = BAR + MARGIN + number * LINE + 4, 0, 0
        while at < len(line):
            end = at
            while end < len(line) and line[end][1] == line[at][1]:
                end += 1
            words = "".join(characters for characters, _ in line[at:end])
            if words.strip():
                styles = " ".join(f"s{code}" for code in line[at][1])
                picture.append(f'  <text x="{MARGIN + column * CHARACTER:.1f}" y="{y}" xml:space="preserve" '
                               f'textLength="{len(words) * CHARACTER:.1f}"{f" class={chr(34)}{styles}{chr(34)}" if styles else ""}>'
                               f"{escape(words)}</text>")
            column, at = column + len(words), end
    return "\n".join([*picture, "</svg>", ""])


def record(dtrain):
    """Runs the session in a temporary folder and returns its lines."""
    lines = []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "oops.yaml").write_text(OOPS, encoding="utf-8")
        write_table(folder / "flowers.csv", 300, 1)
        write_table(folder / "new.csv", 3, 2, labeled=False)
        for command, first, last in SESSION:
            output, code = in_terminal(command, folder, dtrain)
            if code not in (0, 2) or (code == 2) != ("oops" in command):
                sys.exit(f"{command}: exit code {code}\n{output}")
            lines += [[("$ ", ("32",)), (command, ("1",))], *shown(screen_lines(output), first, last), []]
    return lines[:-1]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dtrain", default=ROOT / "build/release/app/dtrain", type=pathlib.Path)
    parser.add_argument("--output", default=ROOT / "docs/images/session.svg", type=pathlib.Path)
    arguments = parser.parse_args()
    picture = draw(record(arguments.dtrain))
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    arguments.output.write_text(picture, encoding="utf-8")
    print(f"wrote {arguments.output}")


if __name__ == "__main__":
    main()
