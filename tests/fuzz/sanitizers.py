"""Detects programs that were built with sanitizers, which have their own malloc and use more memory."""
import subprocess


def has_sanitizers(program):
    """Returns whether the given dtrain program was built with sanitizers."""
    version = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout
    return "sanitizers" in version
