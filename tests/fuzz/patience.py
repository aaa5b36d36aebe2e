"""When a program hangs, on a machine that has other things to do as well."""
import os
import subprocess
import threading

_alone = threading.Lock()


def shared(seconds):
    """For as much longer as others use the machine now."""
    return seconds * max(1, os.getloadavg()[0] / os.cpu_count())


def patiently(run, seconds):
    """run(seconds), which raises subprocess.TimeoutExpired where that is not enough. What seems to hang is run once more, with
    no other of these beside it, and for as much longer as others use the machine."""
    try:
        return run(seconds)
    except subprocess.TimeoutExpired:
        with _alone:
            return run(2 * shared(seconds))
