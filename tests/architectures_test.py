#!/usr/bin/env python3
"""Fails unless a program has machine code and PTX for exactly the configured GPU architectures.

    architectures_test.py PROGRAM ARCHITECTURES     ARCHITECTURES: "80-real,90-real,90-virtual"
    architectures_test.py --self-test
Uses $CUOBJDUMP or cuobjdump. Exits with 77 (skipped, for CTest) if there is neither.
"""
import re
import subprocess
import sys

from kernel_resources import find_cuobjdump


def wanted(architectures):
    """Returns two sets of architectures: those with machine code and those with PTX. An architecture is a number
    with its letter, if it has one, such as "80" or "90a"."""
    code, ptx = set(), set()
    for item in architectures.split(","):
        number = re.match(r"\d+[a-z]?", item).group()
        if not item.endswith("-virtual"):
            code.add(number)
        if not item.endswith("-real"):
            ptx.add(number)
    return code, ptx


def found(listing):
    """Returns the same two sets, as found in the output of cuobjdump --list-elf and --list-ptx. The output has lines
    such as "ELF file 1: dtrain.1.sm_80.cubin"."""
    return (set(re.findall(r"\.sm_(\d+[a-z]?)\.cubin", listing)), set(re.findall(r"\.sm_(\d+[a-z]?)\.ptx", listing)))


def self_test():
    assert wanted("80-real,90-real,90-virtual") == ({"80", "90"}, {"90"})
    assert wanted("86,90a-real") == ({"86", "90a"}, {"86"})
    listing = "ELF file    1: dtrain.1.sm_80.cubin\nELF file    2: dtrain.2.sm_90.cubin\nPTX file    1: dtrain.1.sm_90.ptx\n"
    assert found(listing) == ({"80", "90"}, {"90"})


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    program, architectures = sys.argv[1:]
    if not (cuobjdump := find_cuobjdump()):
        print("skipped: there is no cuobjdump")
        sys.exit(77)
    if not re.fullmatch(r"\d+[a-z]?(-real|-virtual)?(,\d+[a-z]?(-real|-virtual)?)*", architectures):
        print(f"skipped: DTRAIN_CUDA_ARCHITECTURES is not a list of numbers ({architectures})")
        sys.exit(77)
    listing = "".join(subprocess.run([cuobjdump, option, program], capture_output=True, text=True, check=True).stdout
                      for option in ("--list-elf", "--list-ptx"))
    assert found(listing) == wanted(architectures), f"found {found(listing)}, expected {wanted(architectures)}"


main()
