"""Detects hanging programs on a machine that runs other programs as well."""
import os
import subprocess
import threading

_alone = threading.Lock()


def shared(seconds):
    """Returns the seconds scaled by the machine's current load."""
    return seconds * max(1, os.getloadavg()[0] / os.cpu_count())


def patiently(run, seconds):
    """Calls run(seconds), which raises subprocess.TimeoutExpired if the time is not enough. In this case, calls it
    again, without other such reruns at the same time, with a limit that is scaled by the machine's load."""
    try:
        return run(seconds)
    except subprocess.TimeoutExpired:
        with _alone:
            return run(2 * shared(seconds))
