"""The command line itself: exit codes, help, streams, terminals."""
import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios

import support
from support import CONFIG, Case

COMMANDS = ["fit", "resume", "evaluate", "predict", "check", "summary", "inspect", "gpus", "schema"]
CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f]")


class CommandLine(Case):
    def test_help(self):
        text = self.dtrain("--help").out
        for command in COMMANDS:
            self.assertRegex(text, rf"\n +{command} ")
            help_ = self.dtrain(command, "--help").out
            for option in ("--json", "--quiet"):
                self.assertIn(option, help_)

    def test_version(self):
        self.assertRegex(self.dtrain("--version").out, r"^dtrain \d+\.\d+\.\d+\n$")

    def test_mistakes(self):
        for arguments, expected in (
            ([], "expected a command"),
            (["fti"], "unknown command 'fti'; did you mean 'fit'?"),
            (["xyzzy"], "expected one of fit, resume"),
            (["fit"], "CONFIG is required"),
            (["fit", "a.yaml", "--epoch", "3"], "unknown option '--epoch'; did you mean '--epochs'?"),
            (["fit", "a.yaml", "b.yaml"], "unexpected argument 'b.yaml'"),
            (["fit", "a.yaml", "--epochs", "many"], "many"),
            (["fit", "a.yaml", "--epochs", "-1"], "expected a whole number from 0 up, found '-1'"),
            (["fit", "a.yaml", "--epochs", "99999999999999999999"], "found '99999999999999999999'"),
            (["fit", "missing.yaml"], "missing.yaml"),
            (["fit", "."], "."),
            (["resume"], "PATH is required"),
            (["evaluate", "missing"], "missing"),
            (["predict", "missing", "--input", "x.csv", "--output", "y.csv"], "missing"),
            (["inspect", "missing.h5"], "missing.h5"),
            (["summary", "missing.h5"], "missing.h5"),
            (["gpus", "extra"], "unexpected argument 'extra'"),
        ):
            with self.subTest(arguments):
                process = self.dtrain(*arguments, expect=2)
                self.assertIn("error: ", process.err)
                self.assertIn(expected, process.err)
                self.assertEqual(process.out, "")

    def test_set_takes_one_value_and_is_repeatable(self):
        self.write("config.yaml", CONFIG)
        plan = self.json("check", "--set", "train.epochs=9", "--set", "strategy={mirrored: {devices: [cpu:0], replicas: 4}}",
                         "config.yaml")
        self.assertEqual((plan["epochs"], len(plan["replicas"])), (9, 4))
        process = self.dtrain("check", "config.yaml", "--set", "train.epoch=9", expect=2)
        self.assertIn("did you mean 'epochs'?", process.err)
        self.dtrain("check", "config.yaml", "--set", "nonsense", expect=2)

    def test_a_path_in_set_is_seen_from_the_working_directory(self):
        self.write("config.yaml", CONFIG)
        (self.dir / "below").mkdir()
        self.dtrain("fit", "config.yaml", "--output", "run", "--epochs", 1, "--set", "dataset.cache={file: below/cache}")
        self.assertTrue(list((self.dir / "below").iterdir()))

    def test_a_full_standard_output_is_a_failure(self):
        with open("/dev/full", "w") as full:
            self.assertIn("standard output", self.dtrain("schema", expect=1, stdout=full).err)

    def test_a_reader_that_goes_away_is_none(self):
        read, write = os.pipe()
        os.close(read)
        self.dtrain("schema", stdout=write)
        os.close(write)

    def test_an_unwritable_run_directory(self):
        self.write("config.yaml", CONFIG)
        self.write("file", "")
        self.assertIn("file", self.dtrain("fit", "config.yaml", "--output", "file/run", expect=2).err)


class Streams(Case):
    def test_plain_lines_where_there_is_no_terminal(self):
        process = self.fit()
        self.assertEqual(len(process.err.splitlines()), 4)  # one an epoch
        self.assertRegex(process.err.splitlines()[0], r"^epoch 1/4  loss \d")
        self.assertIsNone(CONTROL.search(process.err + process.out))
        self.assertRegex(process.out, r"(?m)^saved run/checkpoints/ckpt-\d{8}\.h5$")

    def on_a_terminal(self, columns, env):
        """What a run prints on a terminal of so many columns, and its exit code."""
        self.write("config.yaml", CONFIG)
        try:
            ours, theirs = pty.openpty()
        except OSError as error:  # a bare chroot has none
            self.skipTest(f"no terminals here: {error}")
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 25, columns, 0, 0))
        process = self.start("fit", "config.yaml", "--overwrite", stdout=subprocess.DEVNULL, stderr=theirs,
                             env={"TERM": "xterm", **env})
        os.close(theirs)
        seen = b""
        while True:
            if not select.select([ours], [], [], 60)[0]:
                self.fail("nothing to see for a minute")
            try:
                chunk = os.read(ours, 65536)
            except OSError:  # how Linux says that the other side is closed
                break
            if not chunk:
                break
            seen += chunk
        os.close(ours)
        self.assertEqual(process.wait(timeout=60), 0)
        return seen.decode()

    def test_a_bar_that_fits_the_terminal(self):
        for columns in (20, 40, 80, 200):
            seen = self.on_a_terminal(columns, {})
            drawn = [re.sub(r"\x1b\[[0-9;]*[mK]", "", part) for line in seen.split("\n") for part in line.split("\r")
                     if "samples/s" not in line or part.startswith("\x1b[K")]
            bars = [bar for bar in drawn if re.match(r"epoch \d/4 ( ?\[| ?\d)", bar)]
            self.assertTrue(bars, seen)
            for bar in bars:
                self.assertLess(len(bar), columns, bar)
            self.assertIn("[====", seen) if columns >= 80 else None
            self.assertIn("\x1b[32m", seen) if columns >= 80 else None

    def test_no_color_is_obeyed(self):
        seen = self.on_a_terminal(80, {"NO_COLOR": "1"})
        self.assertNotIn("\x1b", seen)
        self.assertEqual(len(seen.splitlines()), 4)


if __name__ == "__main__":
    support.main()
