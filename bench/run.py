#!/usr/bin/env python3
"""Compares dtrain to PyTorch and Keras in one run on one machine: prints and stores the ratio of their step times.

The ratio R is the median, over interleaved rounds, of PyTorch's step time divided by dtrain's. A step time is the
median of at least 7 windows of 0.25 s (or of one step if that is longer) after a warm-up. Before timing, the first 20
losses of both programs are compared, from the same weights and data in the same order; they must agree to 1e-3. The
script needs numpy, h5py and torch in the interpreter PEER_PYTHON (default /usr/bin/python3: Debian's python3-torch
python3-h5py, with libopenblas0-openmp and libtcmalloc-minimal4 for a fair comparison). It measures Keras if
KERAS_PYTHON names an interpreter that has Keras 3 and TensorFlow.

    bench/run.py [WORKLOAD ...] [--rounds 5] [--threads 2]
"""
import argparse
import datetime
import json
import os
import pathlib
import platform
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
DTRAIN = HERE.parent / "build" / "release" / "app" / "dtrain"
PYTHON = os.environ.get("PEER_PYTHON", "/usr/bin/python3")
KERAS_PYTHON = os.environ.get("KERAS_PYTHON")

# The values of each workload are: the number of samples in the file, the shape of a sample (the length of a text), the
# number of classes, the batch size, the steps of a timed run, its warm-up steps, and the minimum ratio.
# Optional values: `inputs` is the number of inputs of this shape. `same_rules` disables a rule of the optimizer that
# differs between frameworks: Keras decays weights separately from the gradient, and adds Adam's epsilon before the bias
# correction. `is_text` means that the samples are parts of a text. `keras` is false if Keras lacks a layer of the
# model. `compared` is the number of losses that are compared before timing.
WORKLOADS = {
    "mnist-mlp": dict(samples=60000, shape=(784,), classes=10, batch=64, steps=8000, warmup=500, must=2.0),
    "wide-mlp": dict(samples=16384, shape=(8000,), classes=2, batch=8192, steps=8, warmup=1, must=1.0, compared=3),
    "resnet20": dict(samples=1024, shape=(32, 32, 3), classes=10, batch=128, steps=48, warmup=3, must=1.10,
                     same_rules="train.optimizer.sgd.weight_decay=0"),
    "lenet": dict(samples=4096, shape=(28, 28, 1), classes=10, batch=64, steps=150, warmup=10, must=1.4),
    "shared-lstm": dict(samples=512, shape=(140, 256), classes=2, batch=64, steps=160, warmup=10, must=2.0, inputs=2,
                        same_rules="train.optimizer.rmsprop.epsilon=1e-30"),
    "gpt-small": dict(samples=1024, shape=(128,), classes=256, batch=32, steps=60, warmup=4, must=1.35, is_text=True, keras=False,
                      same_rules="train.optimizer.adamw.epsilon=1e-30"),
}

MAKE_DATA = """
import numpy, sys
directory, samples, classes, shape = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), tuple(map(int, sys.argv[4].split("x")))
random = numpy.random.default_rng(1)
for number in range(int(sys.argv[5])):
    x = random.random((samples,) + shape, dtype=numpy.float32)
    if len(shape) == 3 and shape[2] == 3: x = (x - 0.5) * 3.46
    numpy.save(directory + ("/x.npy" if number == 0 else f"/x{number + 1}.npy"), x)
numpy.save(directory + "/y.npy", random.integers(0, classes, samples, dtype=numpy.int32))
"""

# The text consists of words of a small vocabulary, so that the model learns something.
MAKE_TEXT = """
import numpy, sys
directory, samples, length = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
random = numpy.random.default_rng(1)
words = ["".join(random.choice(list("abcdefghijklmnopqrstuvwxyz"), random.integers(2, 9))) for _ in range(500)]
text = " ".join(random.choice(words, samples * length // 2))[: samples * length + 1]
open(directory + "/text.txt", "w").write(text)
"""


def peer_environment(threads):
    """Returns the environment variables with which PyTorch is fastest: OpenMP BLAS, a faster malloc, bound threads."""
    env = dict(os.environ, OMP_NUM_THREADS=str(threads), OMP_PROC_BIND="true", ATEN_CPU_CAPABILITY="avx512")
    env.pop("OPENBLAS_CORETYPE", None)
    if "avx512" not in open("/proc/cpuinfo").read():
        env["ATEN_CPU_CAPABILITY"] = "avx2"
    libraries = pathlib.Path("/usr/lib/x86_64-linux-gnu")
    if (libraries / "openblas-openmp").is_dir():
        env["LD_LIBRARY_PATH"] = str(libraries / "openblas-openmp")
    if (libraries / "libtcmalloc_minimal.so.4").exists():
        env["LD_PRELOAD"] = str(libraries / "libtcmalloc_minimal.so.4")
    return env


def run(command, env):
    """Runs a command and returns its standard output and peak memory in MiB."""
    process = subprocess.Popen(command, env=env, stdout=subprocess.PIPE)
    output = process.stdout.read().decode()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}: exit code {process.returncode}")
    return output, usage.ru_maxrss / 1024


def dtrain_steps(name, work, directory, steps, shuffle, extra=()):
    """Trains for `steps` steps, repeating the data as needed. Returns the end times, the losses and the peak memory."""
    spec = WORKLOADS[name]
    per_epoch = -(-spec["samples"] // spec["batch"])
    log = pathlib.Path(work) / "steps.jsonl"
    log.unlink(missing_ok=True)
    command = [DTRAIN, "fit", HERE / "workloads" / f"{name}.yaml", "--overwrite", "--quiet", "--output", directory]
    command += ["--step-log", log, "--set", f"dataset.shuffle={'true' if shuffle else 'false'}"]
    command += ["--epochs", str(-(-steps // per_epoch)), *extra]
    _, memory = run([str(c) for c in command], dict(os.environ, DTRAIN_BENCH=work))
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    return [line["seconds"] for line in lines][:steps], [line["loss"] for line in lines][:steps], memory


class Peer:
    """A framework that is compared with dtrain: the command of its training loop, and its measurements."""

    def __init__(self, key, title, python, script, environment):
        self.key, self.title, self.python, self.script, self.environment = key, title, python, script, environment
        self.framework, self.ms, self.starts, self.memory, self.ratios, self.difference = "", [], [], [], [], None

    def steps(self, name, work, checkpoint, threads, steps, *options):
        """Trains once and returns the end times of the steps, the losses and the peak memory."""
        command = [self.python, HERE / self.script, name, work, checkpoint, threads, WORKLOADS[name]["batch"], steps, *options]
        output, memory = run([str(c) for c in command], self.environment(threads))
        result = json.loads(output.splitlines()[-1])
        self.framework = result["framework"]
        return result["ends"], result["losses"], memory

    def add_round(self, ends, warmup, memory, dtrain_step):
        self.ms.append(median_step(ends, min(warmup, len(ends) // 4)) * 1e3)
        self.starts.append(ends[0])
        self.memory.append(memory)
        self.ratios.append(self.ms[-1] / dtrain_step / 1e3)

    def results(self):
        return {f"{self.key}_framework": self.framework, f"{self.key}_ms": statistics.median(self.ms),
                f"{self.key}_first_step_s": min(self.starts), f"{self.key}_peak_mib": max(self.memory),
                f"{self.key}_R": statistics.median(self.ratios), f"{self.key}_R_spread": [min(self.ratios), max(self.ratios)],
                f"{self.key}_loss_difference": self.difference}


def peers(name):
    found = [Peer("torch", "PyTorch", PYTHON, "torch_peer.py", peer_environment)]
    if KERAS_PYTHON and WORKLOADS[name].get("keras", True):
        found.append(Peer("keras", "Keras", KERAS_PYTHON, "keras_peer.py", lambda threads: dict(os.environ)))
    return found


def median_step(ends, warmup):
    """Divides the steps into windows of at least 0.25 s, and returns the median of the mean step times of the
    windows."""
    windows, start, steps = [], ends[warmup], 0
    for end in ends[warmup + 1 :]:
        steps += 1
        if end - start >= 0.25:
            windows.append((end - start) / steps)
            start, steps = end, 0
    if len(windows) < 7:
        print(f"  only {len(windows)} windows of 0.25 s", file=sys.stderr)
    return statistics.median(windows or [(ends[-1] - ends[warmup]) / (len(ends) - 1 - warmup)])


def compare_losses(name, work, checkpoint, threads, beside):
    """Compares dtrain's first losses with the losses of each peer, and returns the number of compared steps."""
    steps = WORKLOADS[name].get("compared", 20)
    extra = ["--set", WORKLOADS[name].get("same_rules", "train.optimizer.adam.epsilon=1e-30")]
    # dtrain uses one replica, because the batch normalization of the other framework covers the whole batch.
    _, ours, _ = dtrain_steps(name, work, work + "/losses", steps, False, ["--set", "strategy=single", *extra])
    for peer in beside:
        _, theirs, _ = peer.steps(name, work, checkpoint, threads, steps, "--in-order", "--same-rules")
        peer.difference = max(abs(a - b) / abs(b) for a, b in zip(ours, theirs))
    return steps


def make_data(name, work):
    """Writes the data of a workload to the folder `work`."""
    spec = WORKLOADS[name]
    shape = "x".join(map(str, spec["shape"]))
    if spec.get("is_text"):
        arguments = [MAKE_TEXT, work, spec["samples"], shape]
    else:
        arguments = [MAKE_DATA, work, spec["samples"], spec["classes"], shape, spec.get("inputs", 1)]
    subprocess.run([PYTHON, "-c", *map(str, arguments)], check=True)


def measure(name, rounds, threads):
    spec, beside = WORKLOADS[name], peers(name)
    with tempfile.TemporaryDirectory(prefix="dtrain-bench-") as work:
        make_data(name, work)
        dtrain_steps(name, work, work + "/first", 0, False)
        checkpoint = work + "/first/checkpoints/ckpt-00000000.h5"
        compared = compare_losses(name, work, checkpoint, threads, beside)
        ours, starts, memories = [], [], []
        for _ in range(rounds):
            ends, _, memory = dtrain_steps(name, work, work + "/run", spec["steps"], True)
            ours.append(median_step(ends, spec["warmup"]))
            starts.append(ends[0])
            memories.append(memory)
            for peer in beside:
                ends, _, memory = peer.steps(name, work, checkpoint, threads, max(spec["steps"] // 2, 8))
                peer.add_round(ends, spec["warmup"], memory, ours[-1])
            others = ", ".join(f"{peer.title} {peer.ms[-1]:.3f} ms, ratio {peer.ratios[-1]:.2f}" for peer in beside)
            print(f"  {name}: dtrain {ours[-1] * 1e3:.3f} ms, {others}", file=sys.stderr)
    torch = beside[0]
    row = dict(workload=name, rounds=rounds, batch=spec["batch"], threads=threads, framework=torch.framework,
               R=statistics.median(torch.ratios), R_spread=[min(torch.ratios), max(torch.ratios)], must=spec["must"],
               dtrain_ms=statistics.median(ours) * 1e3, dtrain_samples_s=spec["batch"] / statistics.median(ours),
               dtrain_first_step_s=min(starts), dtrain_peak_mib=max(memories), losses_compared=compared,
               memory_ratio=max(memories) / max(torch.memory), loss_difference=torch.difference)
    for peer in beside:
        row |= peer.results()
    return row


def processor():
    for line in open("/proc/cpuinfo"):
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.processor()


def check_packages(python, packages):
    """Exits with a message if the interpreter lacks a package."""
    command = [python, "-c", "import " + ", ".join(packages)]
    check = subprocess.run(command, capture_output=True, text=True)
    if check.returncode != 0:
        sys.exit(f"{python} cannot import {', '.join(packages)}: {check.stderr.strip().splitlines()[-1]}")


def table(results, date):
    """Returns the results as a page in Markdown."""
    beside = "PyTorch and Keras" if any("keras_ms" in row for row in results) else "PyTorch"
    frameworks = ", ".join(dict.fromkeys(row[key] for key in ("framework", "keras_framework") for row in results if key in row))
    lines = [f"# dtrain beside {beside}, {date}", "", f"{processor()}, {frameworks}. `./dev bench` repeats it.", "",
             "| workload | batch | threads | rounds | dtrain ms | PyTorch ms | R (lowest to highest) | must | memory MiB | of PyTorch's "
             "| first step s | PyTorch's | losses differ by |", "|" + "---|" * 13]
    for r in results:
        lines.append(f"| {r['workload']} | {r['batch']} | {r['threads']} | {r.get('rounds', 5)} | {r['dtrain_ms']:.3f} | "
                     f"{r['torch_ms']:.3f} | {r['R']:.2f} ({r['R_spread'][0]:.2f} to {r['R_spread'][1]:.2f}) | {r['must']} | "
                     f"{r['dtrain_peak_mib']:.0f} | {r['memory_ratio']:.2f} | {r['dtrain_first_step_s']:.3f} | "
                     f"{r['torch_first_step_s']:.2f} | {r['loss_difference']:.1e} ({r['losses_compared']} steps) |")
    if "Keras" in beside:
        lines += ["", "Beside Keras:", "",
                  "| workload | Keras ms | R (lowest to highest) | Keras's memory MiB | dtrain's of it | first step s | losses differ by |",
                  "|" + "---|" * 7]
        lines += [f"| {r['workload']} | {r['keras_ms']:.3f} | {r['keras_R']:.2f} ({r['keras_R_spread'][0]:.2f} to "
                  f"{r['keras_R_spread'][1]:.2f}) | {r['keras_peak_mib']:.0f} | {r['dtrain_peak_mib'] / r['keras_peak_mib']:.2f} | "
                  f"{r['keras_first_step_s']:.2f} | {r['keras_loss_difference']:.1e} ({r['losses_compared']} steps) |"
                  for r in results if "keras_ms" in r]
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("workloads", nargs="*", metavar="WORKLOAD", help=", ".join(WORKLOADS))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    unknown = set(arguments.workloads) - set(WORKLOADS)
    if unknown:
        parser.error(f"unknown workload {', '.join(unknown)}; available: {', '.join(WORKLOADS)}")
    check_packages(PYTHON, ["numpy", "h5py", "torch"])
    if KERAS_PYTHON:
        check_packages(KERAS_PYTHON, ["keras", "tensorflow"])
    today = datetime.date.today().isoformat()
    stem = HERE / "results" / f"{today}-cpu"
    data = stem.with_suffix(".json")
    # The table also keeps the results of workloads that were measured earlier on the same day.
    kept = {row["workload"]: row for row in json.loads(data.read_text())} if data.exists() else {}
    for name in arguments.workloads or WORKLOADS:
        kept[name] = measure(name, arguments.rounds, arguments.threads)
        # Results are stored after each workload, because all workloads together take about an hour.
        results = [kept[name] for name in WORKLOADS if name in kept]
        data.write_text(json.dumps(results, indent=1) + "\n")
        stem.with_suffix(".md").write_text(table(results, today))
    print(table(results, today))


if __name__ == "__main__":
    main()
