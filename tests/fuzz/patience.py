"""Detects hanging programs on a machine that runs other programs as well."""
import os
import subprocess
import threading

_alone = threading.Lock()


def shared(seconds):
    """Returns the given number of seconds, multiplied by a factor that depends on the current load of the machine."""
    return seconds * max(1, os.getloadavg()[0] / os.cpu_count())


def patiently(run, seconds):
    """Calls run(seconds). If the time is not enough, run() raises subprocess.TimeoutExpired, and this function calls
    run() again. The second call has a longer limit, which depends on the load of the machine. Only one thread at a
    time makes a second call."""
    try:
        return run(seconds)
    except subprocess.TimeoutExpired:
        with _alone:
            return run(2 * shared(seconds))
