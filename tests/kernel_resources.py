#!/usr/bin/env python3
"""Compares the registers, shared memory and stack of compiled CUDA kernels with the tables of docs/gpu-kernels.md: a
multiprocessor must hold as many blocks of each listed kernel as the table says, and only the listed exceptions may have
a stack (spilled registers, arrays with dynamic indices). Needs no GPU.

    kernel_resources.py PROGRAM...          programs, objects or libraries, read by $CUOBJDUMP or cuobjdump
    kernel_resources.py --ptxas REPORT...   the output of nvcc -Xptxas -v
    kernel_resources.py --table ...         prints the measured table instead, in Markdown
    kernel_resources.py --self-test         checks this script

Exits with 77 (skipped) if there is no cuobjdump.
"""
import dataclasses
import os
import pathlib
import re
import shutil
import subprocess
import sys

SKIPPED = 77
DOCUMENT = pathlib.Path(__file__).parents[1] / "docs/gpu-kernels.md"

REGISTERS = 65536  # per multiprocessor, for all architectures from 7.0 on
WARPS = {86: 48, 89: 48, 120: 48}  # maximum per multiprocessor; 64 on other architectures
SHARED_KIB = {80: 164, 86: 100, 87: 164, 89: 100, 120: 100}  # 228 on other architectures
RESERVED_SHARED = 1024  # per block
DESIGNED_FOR = (80, 90)  # architectures covered by docs/gpu-kernels.md
OTHER_STACK = 256  # maximum bytes on other architectures


@dataclasses.dataclass
class Kernel:
    name: str  # with template arguments, without the project's namespaces
    arch: int
    registers: int
    stack: int = 0
    shared: int = 0

    def plain_name(self):
        return re.sub(r"<.*", "", self.name)

    def blocks(self, threads):
        """Returns the number of blocks of `threads` threads that a multiprocessor holds."""
        warps = -(-threads // 32)
        registers_of_warp = -(-self.registers * 32 // 256) * 256
        shared = self.shared + RESERVED_SHARED
        return min(REGISTERS // registers_of_warp // warps, WARPS.get(self.arch, 64) // warps,
                   SHARED_KIB.get(self.arch, 228) * 1024 // shared, 32)


def short_name(symbol):
    """Returns 'f<8, true>' for 'void dtrain::cuda::(anonymous namespace)::f<8, true>(int)'."""
    name = re.sub(r"^void |\(anonymous namespace\)::|dtrain::cuda::", "", symbol)
    depth = 0
    for i, letter in enumerate(name):
        depth += (letter == "<") - (letter == ">")
        if letter == "(" and depth == 0:
            return name[:i]
    return name


def demangled(text):
    if not (mangled := sorted(set(re.findall(r"\b_Z\w+", text)))):
        return text
    plain = subprocess.run(["c++filt"], input="\n".join(mangled), capture_output=True, text=True, check=True).stdout
    names = dict(zip(mangled, plain.splitlines()))
    return re.sub(r"\b_Z\w+", lambda found: names[found.group()], text)


def kernels_of_dump(text):
    """Parses the output of cuobjdump --dump-resource-usage."""
    arch, name = 0, ""
    for line in demangled(text).splitlines():
        if found := re.match(r"arch = sm_(\d+)", line):
            arch = int(found.group(1))
        elif found := re.match(r"\s*Function (.*):$", line):
            name = short_name(found.group(1))
        elif found := re.match(r"\s*REG:(\d+) STACK:(\d+) SHARED:(\d+)", line):
            registers, stack, shared = map(int, found.groups())
            yield Kernel(name, arch, registers, stack, shared)


def kernels_of_report(text):
    """Parses the output of nvcc -Xptxas -v."""
    kernel = None
    for line in demangled(text).splitlines():
        if found := re.search(r"Compiling entry function '(.*)' for 'sm_(\d+)\w*'", line):
            kernel = Kernel(short_name(found.group(1)), int(found.group(2)), 0)
        elif kernel and (found := re.search(r"(\d+) bytes stack frame", line)):
            kernel.stack = int(found.group(1))
        elif kernel and (found := re.search(r"Used (\d+) registers", line)):
            kernel.registers = int(found.group(1))
            shared = re.search(r"(\d+) bytes smem", line)
            kernel.shared = int(shared.group(1)) if shared else 0
            yield kernel
            kernel = None


def table_under(title, text):
    """Returns the rows of the first table in a section of a Markdown document, as lists of cells."""
    section = re.search(rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    if not section:
        raise SystemExit(f"no section '{title}'")
    rows = [line for line in section.group(1).splitlines() if line.startswith("|")]
    return [[cell.strip().strip("`") for cell in row.strip("|").split(" | ")] for row in rows[2:]]


@dataclasses.dataclass
class Rules:
    occupancy: dict  # kernel name, or its prefix including some template arguments: (threads, blocks)
    stacks: list  # (name pattern, bytes)

    @staticmethod
    def of(document):
        return Rules({row[0]: (int(row[1]), int(row[2])) for row in table_under("Designed occupancy", document)},
                     [(row[0], int(row[1])) for row in table_under("Kernels with a stack", document)])

    def rule_of(self, kernel):
        """Returns the name of the most specific occupancy rule for a kernel, or None."""
        names = [name for name in self.occupancy
                 if kernel.plain_name() == name or ("<" in name and kernel.name.startswith(name))]
        return max(names, key=len, default=None)

    def mistakes(self, kernels):
        """Yields a line for each difference from the tables."""
        for kernel in kernels:
            where = f"{kernel.name} (sm_{kernel.arch})"
            if kernel.arch not in DESIGNED_FOR:
                if kernel.stack > OTHER_STACK:
                    yield f"{where} has a stack of {kernel.stack} bytes; allowed are {OTHER_STACK}"
                continue
            allowed = max((most for pattern, most in self.stacks if kernel.name.startswith(pattern)), default=0)
            if kernel.stack > allowed:
                yield f"{where} has a stack of {kernel.stack} bytes; allowed are {allowed}"
            if rule := self.rule_of(kernel):
                threads, wanted = self.occupancy[rule]
                if (blocks := kernel.blocks(threads)) < wanted:
                    yield (f"{where}: a multiprocessor holds {blocks} blocks of {threads} threads with "
                           f"{kernel.registers} registers a thread and {kernel.shared} bytes of shared memory a block; "
                           f"{wanted} are wanted")
        found = {self.rule_of(kernel) for kernel in kernels}
        for name in sorted(self.occupancy.keys() - found):
            yield f"no compiled kernel is called {name}"
        for pattern, _ in self.stacks:
            if not any(kernel.name.startswith(pattern) for kernel in kernels):
                yield f"no compiled kernel has a name that starts with {pattern} (kernels with a stack)"


def span(values):
    least, most = min(values), max(values)
    return str(least) if least == most else f"{least}-{most}"


def print_table(kernels, rules):
    print("| kernel | threads | registers | shared memory, bytes | blocks a multiprocessor | occupancy |\n|---|---|---|---|---|---|")
    for name, (threads, _) in rules.occupancy.items():
        if of := [kernel for kernel in kernels if rules.rule_of(kernel) == name]:
            blocks = [kernel.blocks(threads) for kernel in of]
            percent = [100 * b * (threads // 32) // WARPS.get(kernel.arch, 64) for b, kernel in zip(blocks, of)]
            print(f"| `{name}` | {threads} | {span([kernel.registers for kernel in of])} | "
                  f"{span([kernel.shared for kernel in of])} | {span(blocks)} | {span(percent)} % |")


def find_cuobjdump():
    """Returns the path of $CUOBJDUMP, of cuobjdump in $PATH, or of cuobjdump in the default folder of the CUDA toolkit;
    None if there is none of them."""
    names = [os.environ.get("CUOBJDUMP", ""), "cuobjdump", "/usr/local/cuda/bin/cuobjdump"]
    return next((path for path in map(shutil.which, names) if path), None)


def dump_of(program):
    tool = find_cuobjdump()
    if not tool or not shutil.which("c++filt"):
        print("skipped: there is no cuobjdump, or no c++filt")
        raise SystemExit(SKIPPED)
    return subprocess.run([tool, "--dump-resource-usage", program], capture_output=True, text=True, check=True).stdout


def self_test():
    dump = """
Fatbin elf code:
================
arch = sm_90
code version = [1,8]
host = linux
compile_size = 64bit

Resource usage:
 Common:
  GLOBAL:0
 Function _ZN6dtrain4cuda12_GLOBAL__N_110sum_kernelILi8E13__nv_bfloat16EEvPKT0_:
  REG:80 STACK:0 SHARED:32768 LOCAL:0 CONSTANT[0]:552 TEXTURE:0 SURFACE:0 SAMPLER:0
 Function _ZN6dtrain4cuda12_GLOBAL__N_110sum_kernelILi1EfEEvPKT0_:
  REG:%d STACK:%d SHARED:0 LOCAL:0 CONSTANT[0]:552 TEXTURE:0 SURFACE:0 SAMPLER:0
"""
    report = """
ptxas info    : Compiling entry function '_ZN6dtrain4cuda12_GLOBAL__N_110sum_kernelILi8E13__nv_bfloat16EEvPKT0_' for 'sm_90'
ptxas info    : Function properties for _ZN6dtrain4cuda12_GLOBAL__N_110sum_kernelILi8E13__nv_bfloat16EEvPKT0_
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 80 registers, used 1 barriers, 32768 bytes smem, 552 bytes cmem[0]
"""
    document = """
## Designed occupancy

| kernel | threads | blocks |
|---|---|---|
| `sum_kernel` | 256 | 3 |

## Kernels with a stack

| kernel | bytes | why |
|---|---|---|
| `sum_kernel<1, float>` | 8 | a reason |
"""
    rules = Rules.of(document)
    wide, small = kernels_of_dump(dump % (40, 0))
    assert wide == Kernel("sum_kernel<8, __nv_bfloat16>", 90, 80, 0, 32768), wide
    assert small == Kernel("sum_kernel<1, float>", 90, 40), small
    assert list(kernels_of_report(report)) == [wide], list(kernels_of_report(report))
    assert wide.blocks(256) == 3 and small.blocks(256) == 6
    assert Kernel("", 90, 32).blocks(1024) == 2 and Kernel("", 86, 32).blocks(1024) == 1
    assert Kernel("", 90, 16, shared=49152).blocks(32) == 4
    assert short_name("void dtrain::cuda::f<(dtrain::K)1>(int, void (*)(int))") == "f<(dtrain::K)1>"

    def mistakes(registers, stack):
        return list(rules.mistakes(list(kernels_of_dump(dump % (registers, stack)))))

    assert mistakes(40, 8) == [], "a stack that is allowed"
    assert len(mistakes(40, 16)) == 1, "a stack that is not"
    assert len(mistakes(88, 0)) == 1, "too many registers"
    exact = Rules({"sum_kernel": (256, 3), "sum_kernel<1": (256, 6)}, [])
    assert exact.rule_of(wide) == "sum_kernel" and exact.rule_of(small) == "sum_kernel<1"
    assert exact.rule_of(Kernel("other_kernel<1>", 90, 40)) is None
    blackwell = [Kernel("sum_kernel<1, float>", 100, 255, stack) for stack in (OTHER_STACK, OTHER_STACK + 1)]
    assert len(list(rules.mistakes(blackwell[:1] + [wide]))) == 0, "an architecture that is not designed for"
    assert len(list(rules.mistakes(blackwell[1:] + [wide]))) == 1, "a large stack there"
    wide.stack = 8
    assert len(list(rules.mistakes([wide, small]))) == 1, "a stack that is allowed to another kernel"
    assert len(list(rules.mistakes([]))) == 2, "kernels of both tables that are not there"
    assert Rules.of(DOCUMENT.read_text()).occupancy, "the document has its table"


def main(arguments):
    if arguments == ["--self-test"]:
        return self_test()
    rules = Rules.of(DOCUMENT.read_text())
    files = [argument for argument in arguments if not argument.startswith("--")]
    if "--ptxas" in arguments:
        kernels = [kernel for file in files for kernel in kernels_of_report(pathlib.Path(file).read_text())]
    else:
        kernels = [kernel for file in files for kernel in kernels_of_dump(dump_of(file))]
    if not kernels:
        raise SystemExit(f"no kernels in {', '.join(files) or 'no files'}")
    if "--table" in arguments:
        return print_table(kernels, rules)
    mistakes = list(rules.mistakes(kernels))
    print("\n".join(mistakes) or f"{len(kernels)} kernels, within docs/gpu-kernels.md")
    raise SystemExit(bool(mistakes))


if __name__ == "__main__":
    main(sys.argv[1:])
