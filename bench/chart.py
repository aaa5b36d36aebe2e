#!/usr/bin/env python3
"""Draws an SVG of the step time and the peak memory of dtrain and other frameworks, relative to PyTorch's.

    bench/chart.py [RESULTS.json] [--output docs/images/speed.svg]

RESULTS.json is a file that bench/run.py wrote; by default the newest bench/results/*-cpu.json. The script needs only
Python's standard library.
"""
import argparse
import json
import pathlib
import sys
from xml.sax.saxutils import escape

ROOT = pathlib.Path(__file__).resolve().parent.parent

WIDTH, LEFT, GAP = 880, 128, 56       # widths of the image and of the names, and the gap between the two panels
PANEL = (WIDTH - LEFT - GAP - 88) / 2  # a panel's width; its longest bar leaves room for a number
STARTS = (LEFT, LEFT + PANEL + GAP + 44)
TOP, BAR, BETWEEN, BOTTOM = 84, 16, 20, 42

STYLE = """
  text { font: 13px system-ui, -apple-system, 'Segoe UI', sans-serif; fill: #1f2328 }
  .title { font-weight: 600; font-size: 15px } .small { font-size: 11px; fill: #59636e } .end { text-anchor: end }
  .dtrain { fill: #2563eb } .PyTorch { fill: #a3acb9 } .Keras { fill: #d9a13b } .own { font-weight: 600 }
  @media (prefers-color-scheme: dark) { text { fill: #e6edf3 } .small { fill: #9198a1 } .dtrain { fill: #4c8dff }
    .PyTorch { fill: #6b7480 } }
"""

def frameworks(row):
    """Returns (name, step time in ms, peak memory in MiB) of each framework in a row of results."""
    found = [("dtrain", row["dtrain_ms"], row["dtrain_peak_mib"]), ("PyTorch", row["torch_ms"], row["torch_peak_mib"])]
    if "keras_ms" in row:
        found.append(("Keras", row["keras_ms"], row["keras_peak_mib"]))
    return found


def text(x, y, words, style=""):
    style = f' class="{style}"' if style else ""
    return f'  <text x="{x:.1f}" y="{y:.1f}"{style}>{escape(words)}</text>'


def number(value, unit):
    return f"{value:.3g} {unit}" if value < 1000 else f"{value:,.0f} {unit}"


def draw(rows, caption):
    """Returns the SVG of rows of results."""
    names = [name for name, _, _ in frameworks(max(rows, key=lambda row: len(frameworks(row))))]
    lines, y = [], TOP
    longest = [max(values[1 + k] / frameworks(row)[1][1 + k] for row in rows for values in frameworks(row)) for k in (0, 1)]
    for start, title in zip(STARTS, ("Time of a training step", "Peak memory")):
        lines.append(text(start, 24, title, "title"))
        lines.append(text(start, 42, "PyTorch = 1, shorter is better", "small"))
    x = LEFT
    for name in names:
        lines.append(f'  <rect class="{name}" x="{x}" y="54" width="12" height="12" rx="2"/>')
        lines.append(text(x + 18, 64.5, name, "small"))
        x += 32 + 7.5 * len(name)
    for row in rows:
        measured = frameworks(row)
        middle = y + len(measured) * BAR / 2
        lines.append(text(LEFT - 12, middle, row["workload"], "end own"))
        lines.append(text(LEFT - 12, middle + 14, f"batch {row['batch']:,}", "small end"))
        for i, (name, *values) in enumerate(measured):
            for k, unit in enumerate(("ms", "MiB")):
                ratio = values[k] / measured[1][1 + k]
                length, above = ratio / longest[k] * (PANEL - 60), y + i * BAR
                lines.append(f'  <rect class="{name}" x="{STARTS[k]:.1f}" y="{above + 1}" width="{length:.1f}" '
                             f'height="{BAR - 2}" rx="2"/>')
                label = number(values[k], unit) if name == "PyTorch" else f"{ratio:.2f} ({number(values[k], unit)})"
                lines.append(text(STARTS[k] + length + 6, above + BAR - 4, label, "small own" if name == "dtrain" else "small"))
        y += len(measured) * BAR + BETWEEN
    height = y + BOTTOM - BETWEEN
    lines.append(text(LEFT, height - 12, caption, "small"))
    label = escape(f"Bar chart: time of a training step and peak memory of {', '.join(names)}")
    return "\n".join([f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height:.0f}" '
                      f'viewBox="0 0 {WIDTH} {height:.0f}" role="img" aria-label="{label}">',
                      f"  <style>{STYLE}  </style>", *lines, "</svg>", ""])


def caption_of(results):
    """Returns the caption of the image. It states the machine and the frameworks, which are read from the table
    (.md) next to the results, and the date of the results."""
    date = results.stem.removesuffix("-cpu")
    table = results.with_suffix(".md")
    machine = table.read_text(encoding="utf-8").splitlines()[2].split(". `")[0] if table.exists() else ""
    threads = json.loads(results.read_text(encoding="utf-8"))[0]["threads"]
    return f"{machine}, {threads} threads, float32, {date}. Reproduce: ./dev bench"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", nargs="?", type=pathlib.Path)
    parser.add_argument("--output", type=pathlib.Path, default=ROOT / "docs/images/speed.svg")
    arguments = parser.parse_args()
    results = arguments.results or max((ROOT / "bench/results").glob("*-cpu.json"), default=None)
    if results is None:
        sys.exit("bench/results holds no *-cpu.json; bench/run.py writes one")
    rows = json.loads(results.read_text(encoding="utf-8"))
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    arguments.output.write_text(draw(rows, caption_of(results)), encoding="utf-8")
    print(f"wrote {arguments.output} from {results}")


if __name__ == "__main__":
    main()
