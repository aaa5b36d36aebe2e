"""Support for tests with pseudo-terminals, which some systems lack (a bare chroot)."""
import os
import pty
import sys

SKIPPED = 77  # SKIP_RETURN_CODE in CMake


def skip_without_terminals():
    """Exits the test as skipped if the system has no pseudo-terminals."""
    try:
        for end in pty.openpty():
            os.close(end)
    except OSError as error:
        print(f"skipped: the system gives no pseudo-terminal: {error}")
        sys.exit(SKIPPED)
