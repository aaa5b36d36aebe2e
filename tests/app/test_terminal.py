"""Output on a terminal. Skipped if there are no pseudo-terminals."""
import fcntl
import os
import pathlib
import pty
import re
import select
import struct
import subprocess
import sys
import termios

import support
from support import CONFIG, Case

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent))
from terminals import skip_without_terminals


class Terminal(Case):
    def on_a_terminal(self, columns, env, resize=None):
        """Returns the output of a run on a terminal with `columns` columns, which is resized to `resize` columns after
        the first epoch."""
        self.write("config.yaml", CONFIG)
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 25, columns, 0, 0))
        process = self.start("fit", "config.yaml", "--overwrite", stdout=subprocess.DEVNULL, stderr=theirs,
                             env={"TERM": "xterm", **env})
        os.close(theirs)
        seen = b""
        while True:
            if not select.select([ours], [], [], 60)[0]:
                self.fail("no output for a minute")
            try:
                chunk = os.read(ours, 65536)
            except OSError:  # Linux's error if the other side is closed
                break
            if not chunk:
                break
            seen += chunk
            if resize and b"samples/s\r\n" in seen:
                fcntl.ioctl(ours, termios.TIOCSWINSZ, struct.pack("HHHH", 25, resize, 0, 0))
                seen, resize = b"", None
        os.close(ours)
        self.assertEqual(process.wait(timeout=60), 0)
        return seen.decode()

    def test_the_progress_bar_fits_the_terminal(self):
        for columns in (20, 40, 80, 200):
            seen = self.on_a_terminal(columns, {})
            drawn = [re.sub(r"\x1b\[[0-9;]*[mK]", "", part) for line in seen.split("\n") for part in line.split("\r")
                     if "samples/s" not in line or part.startswith("\x1b[K")]
            bars = [bar for bar in drawn if re.match(r"epoch \d/4 ( ?\[| ?\d)", bar)]
            reading = "reading the data ..."[:columns - 1]
            self.assertTrue(seen.startswith(f"\r\x1b[K{reading}\r\x1b[Kconfig: 259 parameters"), seen)
            self.assertTrue(bars, seen)
            for bar in bars:
                self.assertLess(len(bar), columns, bar)
                # A line of progress never has an incomplete part. The parts are: the step, the bar (may be missing),
                # metrics, speed and time.
                self.assertRegex(bar, r"^epoch \d/4 (\[[= ]+\])? \d+/32(  \w+ [\d.]+)*(  [\d,]+ samples/s)?(  cpu \d+ %)?"
                                      r"(  \d+ % waiting for samples)?(  \d+:\d\d left(, \d+:\d\d of the run)?)?$")
            self.assertIn("[====", seen) if columns >= 40 else None
            self.assertIn("\x1b[32m", seen) if columns >= 40 else None

    def epoch_lines(self, seen):
        """Returns the lines that remain visible on the terminal, starting with an epoch's."""
        plain = [re.sub(r"\x1b\[[0-9;]*[mK]", "", line.split("\x1b[K")[-1]).rstrip("\r") for line in seen.split("\n")]
        first = next(i for i, line in enumerate(plain) if re.match(r"epoch \d/4($|  loss)", line))
        return plain[first:]

    def test_epoch_lines_fit_the_terminal(self):
        for columns in (40, 80, 200):
            lines = self.epoch_lines(self.on_a_terminal(columns, {}))
            for line in lines:
                self.assertLessEqual(len(line), columns, line)
            text = " ".join(" ".join(lines).split())
            for epoch in range(1, 5):
                self.assertRegex(text, rf"epoch {epoch}/4 loss [\d.]+ sparse_categorical_accuracy [\d.]+ val_loss [\d.]+ "
                                       r"val_sparse_categorical_accuracy [\d.]+ [\d.]+ s [\d,]+ samples/s( \d+ % waiting for samples)?")
            self.assertEqual(len([line for line in lines if line]), 4 if columns == 200 else 8 if columns == 80 else 20)

    def test_a_narrowed_terminal_keeps_one_line(self):
        for line in self.epoch_lines(self.on_a_terminal(200, {}, resize=40)):
            self.assertLessEqual(len(line), 40, line)

    def test_no_color_is_obeyed(self):
        seen = self.on_a_terminal(80, {"NO_COLOR": "1"})
        self.assertNotIn("\x1b", seen)
        self.assertEqual(len([line for line in seen.splitlines() if line.startswith("epoch ")]), 4)


if __name__ == "__main__":
    skip_without_terminals()
    support.main()
