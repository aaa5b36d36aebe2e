#!/usr/bin/env python3
"""Tests ./dev on a terminal. The tests are skipped on systems without pseudo-terminals."""
import os
import pty
import subprocess
import sys
import unittest

import scripts_test
from terminals import skip_without_terminals


class Terminal(scripts_test.ScriptCase):
    def test_a_terminal_shows_ninjas_progress_lines(self):
        dev = self.checkout()
        ours, theirs = pty.openpty()
        with subprocess.Popen([dev, "run"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=theirs,
                              env=self.environment, text=True) as process:
            os.close(theirs)
            shown = b""
            try:
                while piece := os.read(ours, 65536):
                    shown += piece
            except OSError:  # the other end is closed
                pass
            self.assertEqual(process.stdout.read(), "trained\n")
        os.close(ours)
        self.assertEqual(process.returncode, 0, shown)
        self.assertIn(b"[3/40] Building", shown)


if __name__ == "__main__":
    skip_without_terminals()
    unittest.main(argv=sys.argv)
