#!/usr/bin/env python3
"""Runs the checks of docs/gpu-status.md that are possible on one machine, in order, and writes one report.

    bench/gpu/first_hour.py --dtrain PROGRAM [--tests FOLDER] [--output FILE] [--only NAME ...] [--minutes 60]

`./dev gpu-first-hour` runs this script on a build, and `./gpu-first-hour` runs it in a bundle. Each check is a shell
command with a time limit. Some checks compare the losses of two runs. The report is rewritten after every check, so
that it survives a crash of the machine. A check is skipped, with the reason, if the machine lacks a requirement: two
GPUs, compute-sanitizer, a data set. The exit code is 0 if all checks that ran passed, 1 if a check failed, 2 without a
GPU.

Omit `--tests` in a bundle, which runs test programs with `DTRAIN_PROGRAM=test_ops ./dtrain`.
"""
import argparse
import array
import datetime
import json
import math
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from npy import npy_header

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SHOWN_LINES = 40
ONE = 'strategy={single: {device: "gpu:0"}}'
CPU = 'strategy={single: {device: "cpu:0"}}'


class Check:
    """A shell command and its expected result. `judge` is a function that takes the output of the command (standard
    error is merged into standard output) and returns a description of the error, or "" if there is none. If `judge`
    is None, the output is not checked. `expect` is the exit status. If it is None, every exit status is accepted,
    but not a timeout or a crash. `prepare` is called before the command, for example to write data."""

    def __init__(self, name, shows, command, gpus=1, needs="", seconds=300, judge=None, expect=0, prepare=None):
        self.name, self.shows, self.command, self.gpus, self.needs = name, shows, command, gpus, needs
        self.seconds, self.judge, self.expect, self.prepare = seconds, judge, expect, prepare


def losses(path):
    return [json.loads(line)["loss"] for line in pathlib.Path(path).read_text(encoding="utf-8").splitlines()]


def same_losses(one, other, tolerance, steps=None):
    """Returns a `judge` that compares the losses in the step logs `one` and `other`. Their relative difference must
    be at most `tolerance`. If `tolerance` is 0, the losses must be bitwise equal."""
    def judge(_):
        a, b = losses(one)[:steps], losses(other)[:steps]
        if not a or len(a) != len(b):
            return f"{len(a)} losses against {len(b)}"
        for step, (x, y) in enumerate(zip(a, b), 1):
            if not abs(x - y) <= tolerance * max(abs(x), abs(y)):  # this form also rejects nan
                return f"step {step}: loss {x!r} against {y!r}"
        return ""
    return judge


def must_say(pattern):
    def judge(output):
        return "" if re.search(pattern, output) else f"the output has nothing that matches '{pattern}'"
    return judge


def same_steps(whole, resumed):
    """Returns a `judge` that compares two step logs. Every step in the log of the resumed run must have exactly the
    same loss as in the log of the uninterrupted run."""
    def judge(_):
        rows = [[json.loads(line) for line in pathlib.Path(path).read_text(encoding="utf-8").splitlines()] for path in (whole, resumed)]
        expected = {row["step"]: row["loss"] for row in rows[0]}
        if not rows[1]:
            return "the resumed run logged no step"
        wrong = [row for row in rows[1] if expected.get(row["step"]) != row["loss"]]
        return f"step {wrong[0]['step']}: loss {wrong[0]['loss']!r} against {expected.get(wrong[0]['step'])!r}" if wrong else ""
    return judge


# The workloads of bench/workloads that are trained on the GPU and on the CPU: the number of samples, the shape of a
# sample (if `text` is true, the length of a part of a text), the number of classes, and the number of epochs, which gives
# 20 steps.
WORKLOADS = {
    "mnist-mlp": dict(samples=1280, shape=(784,), classes=10, epochs=1),
    "lenet": dict(samples=1280, shape=(28, 28, 1), classes=10, epochs=1),
    "resnet20": dict(samples=512, shape=(32, 32, 3), classes=10, epochs=5),
    "shared-lstm": dict(samples=128, shape=(140, 256), classes=2, epochs=10, inputs=2),
    "gpt-small": dict(samples=640, shape=(128,), text=True, epochs=1),
}


def write_npy(path, kind, shape, values):
    path.write_bytes(npy_header(kind, shape) + values.tobytes())


def write_images(path, samples, shape):
    """Writes random images of bytes. The first and the last image are equal."""
    first = os.urandom(math.prod(shape))
    with open(path, "wb") as file:
        file.write(npy_header("|u1", (samples, *shape)) + first)
        for _ in range(samples - 2):
            file.write(os.urandom(len(first)))
        file.write(first)


def write_data(folder, samples, shape, classes=0, inputs=1, text=False, **_):
    """Writes random data in the files that the configuration of a workload reads. Does nothing if `folder` exists."""
    if folder.exists():
        return
    source = random.Random(1)
    folder.mkdir()
    if text:
        words = ["".join(source.choices("abcdefghijklmnopqrstuvwxyz", k=source.randrange(2, 9))) for _ in range(500)]
        length = samples * shape[0] + 1
        (folder / "text.txt").write_text(" ".join(source.choices(words, k=length // 2))[:length], encoding="ascii")
        return
    size = samples * math.prod(shape)
    for number in range(1, inputs + 1):
        values = array.array("f", (source.random() for _ in range(size)))
        write_npy(folder / ("x.npy" if number == 1 else f"x{number}.npy"), "<f4", (samples, *shape), values)
    write_npy(folder / "y.npy", "<i4", (samples,), array.array("i", (source.randrange(classes) for _ in range(samples))))


def fit_command(dtrain, config, folder, name, settings):
    """Returns the command of a training run. `name`: the run's directory and, with the extension .jsonl, its step log."""
    options = " ".join(f"'{setting}'" for setting in settings)
    return f"{dtrain} fit {config} --output {folder}/{name} --overwrite --step-log {folder}/{name}.jsonl --set {options}"


def checks(dtrain, program, folder):
    """Yields all checks, in order. `program(name)` returns the command of a test program."""
    mlp, cnn, big = "configs/digits-mlp.yaml", "configs/digits-cnn.yaml", "configs/resnet50-synthetic.yaml"
    strict, exact = "train.precision=float32", "train.deterministic=true"
    two = '"gpu:0", "gpu:1"'
    same = 1e-4

    def fit(name, *settings, config=mlp):
        return fit_command(dtrain, config, folder, name, ("train.epochs=2", *settings))

    def log(name):
        return f"{folder}/{name}.jsonl"

    def over(devices, more=""):
        return f"strategy={{mirrored: {{devices: [{devices}]{more}}}}}"

    def tests(name):
        return f"DTRAIN_REQUIRE_CUDA=1 {program(name)} -ts=gpu"

    yield Check("devices", "names, versions, memory, peer access, bandwidths", f"{dtrain} gpus --measure")
    yield Check("test_device", "the tests that need a GPU", tests("test_device"))
    slow = "*convolution*,*attention*"  # cuDNN plans thousands of these operations, and compiles kernels for some of them
    yield Check("test_ops", "the tests of operations that need a GPU, except the following", tests("test_ops") + f" -tce='{slow}'", seconds=600)
    yield Check("test_ops-cudnn", "the tests of convolutions and attention", tests("test_ops") + f" -tc='{slow}'", seconds=1800)
    for name in ("test_collective", "test_nn", "test_program", "test_train"):
        yield Check(name, "the tests that need a GPU", tests(name), seconds=600)

    yield Check("cpu", "the reference run", fit("cpu", CPU, strict))
    yield Check("gpu", "the first 20 losses equal the CPU's", fit("gpu", ONE, strict),
                judge=same_losses(log("cpu"), log("gpu"), same, 20))
    yield Check("eager", "without CUDA graphs: bitwise equal losses", "DTRAIN_CUDA_GRAPHS=0 " + fit("eager", ONE, strict),
                judge=same_losses(log("gpu"), log("eager"), 0))
    yield Check("replicas", "three replicas on one GPU", fit("three", over('"gpu:0"', ", replicas: 3"), strict),
                judge=same_losses(log("gpu"), log("three"), same, 20))
    yield Check("gpu-and-cpu", "a GPU and a CPU together", fit("mixed", over('"gpu:0", "cpu:0"'), strict),
                judge=same_losses(log("gpu"), log("mixed"), same, 20))
    yield Check("repeatable", "train.deterministic: two runs are bitwise equal",
                fit("once", ONE, exact) + " && " + fit("twice", ONE, exact),
                judge=same_losses(log("once"), log("twice"), 0))
    long = (ONE, exact, "train.epochs=400", "checkpoint.every=100 steps")
    yield Check("killed", "a killed run resumes with bitwise equal losses",
                f"{fit('whole', *long)} >/dev/null && {{ {fit('killed', *long)} >/dev/null & run=$!; "
                f"until ls {folder}/killed/checkpoints/ckpt-*.h5 >/dev/null 2>&1 || ! kill -0 $run; do sleep 0.01; done; "
                f"kill -KILL $run; wait $run; {dtrain} resume {folder}/killed --step-log {log('resumed')} | tail -3; }}",
                judge=same_steps(log("whole"), log("resumed")))
    for name, *settings in (
            ("class-weights", "train.class_weight=balanced"), ("clip-norm", "train.clip_norm=0.1"),
            ("ema", "train.callbacks=[{ema: {}}]"), ("lion", "train.optimizer={lion: {}}"),
            ("lamb", "train.optimizer={lamb: {}}"), ("adafactor", "train.optimizer={adafactor: {}}")):
        yield Check(name, "the first 20 losses equal the CPU's",
                    f"{fit(name + '-cpu', CPU, strict, *settings)} && {fit(name, ONE, strict, *settings)}",
                    judge=same_losses(log(name + "-cpu"), log(name), same, 20))
    for precision in ("mixed_bfloat16", "mixed_float16", "tf32"):
        yield Check(precision, "the first 20 losses are within 5 % of the CPU's",
                    fit(precision, ONE, f"train.precision={precision}"),
                    judge=same_losses(log("cpu"), log(precision), 0.05, 20))
    yield Check("convolutions", "a convolutional network, with cuDNN", fit("cnn", ONE, config=cnn))
    for workload, spec in WORKLOADS.items():
        yield from workload_checks(dtrain, workload, spec, pathlib.Path(folder))
    yield Check("generate", "the cache of `generate` does not change its text",
                f"for cache in '' --no-cache; do {dtrain} generate {folder}/gpt-small-gpu --prompt 'the ' --max-tokens 100 "
                f"--temperature 0 $cache >{folder}/text$cache.txt || exit; done; cmp {folder}/text.txt {folder}/text--no-cache.txt")
    yield from large_checks(dtrain, pathlib.Path(folder))
    yield Check("libraries", "which CUDA libraries are opened",
                f"LD_DEBUG=libs {fit('libs', ONE, config=cnn)} 2>&1 | grep -E 'calling init.*(cudnn|cublas|nvrtc|nccl)'",
                judge=must_say("cublasLt"))
    yield Check("hidden", "`auto` says why it uses no GPU", "CUDA_VISIBLE_DEVICES=99 " + fit("hidden", "strategy={mirrored: {devices: auto}}"),
                judge=must_say("warning"))
    yield Check("too-large", "a batch that does not fit is rejected at once",
                fit("large", ONE, strict, "train.batch_size=2500", "dataset.train.synthetic.samples=2500", config=big),
                expect=2, judge=must_say("memory"))

    for name, strategy in (("mirrored", over(two)), ("pipeline", f"strategy={{pipeline: {{devices: [{two}]}}}}"),
                           *((f"sharded-{level}", f"strategy={{sharded: {{devices: [{two}], level: {level}}}}}")
                             for level in ("optimizer", "gradients", "parameters"))):
        yield Check(name, "two GPUs: the losses equal those of one", fit(name, strategy, strict), gpus=2,
                    judge=same_losses(log("gpu"), log(name), same, 20))
    yield Check("without-peers", "two GPUs without peer access", "DTRAIN_P2P=0 " + fit("no-peers", over(two), strict),
                gpus=2, judge=same_losses(log("gpu"), log("no-peers"), same, 20))
    yield Check("two-repeatable", "two GPUs, train.deterministic: two runs are bitwise equal",
                fit("two", over(two), exact) + " && " + fit("two-again", over(two), exact),
                gpus=2, judge=same_losses(log("two"), log("two-again"), 0))
    yield Check("replays", "five minutes of replayed steps on two GPUs",
                fit("replays", over(two), "train.epochs=100000000", "train.max_time=5 minutes",
                    "train.step_timeout=1 minutes"), gpus=2, seconds=420)

    for tool in ("memcheck", "racecheck"):
        # The kernels of NVIDIA's libraries are not checked, because that takes hours.
        sanitizer = f"compute-sanitizer --target-processes all --tool {tool} --kernel-regex kns=dtrain --error-exitcode 9"
        for name, cases, seconds in ((tool, f"-tce='{slow}'", 1200), (f"{tool}-cudnn", f"-tc='{slow}'", 3600)):
            yield Check(name, f"compute-sanitizer's {tool} of dtrain's kernels",
                        f"{sanitizer} {program('test_ops')} -ts=gpu {cases}", needs="compute-sanitizer", seconds=seconds)
    yield Check("speed", "timings of single operations", program("gpu_bench"), seconds=600)
    yield Check("profile", "the kernels of a convolutional network",
                f"nsys profile --stats=true -o {folder}/profile {fit('profile', ONE, config=cnn)}", needs="nsys", seconds=600)


# A small convolutional network.
IMAGES = """
seed: 1
model:
  inputs: {{image: [{side}, {side}, {channels}]}}
  layers:
    - conv2d: {{filters: {filters}, kernel_size: 3, padding: same, activation: relu}}
    - global_average_pooling2d: {{}}
    - dense: {{units: 3}}
dataset: {{train: {{synthetic: {{samples: {samples}, target: {{classes: 3}}, seed: 4}}}}, shuffle: false}}
train:
  epochs: 5
  batch_size: {batch}
  loss: {{sparse_categorical_crossentropy: {{from_logits: true}}}}
  optimizer: {{sgd: {{learning_rate: 0.5}}}}
"""


def equal_first_and_last(path, samples):
    """Returns a `judge` that compares the first and the last row of a float32 .npy file."""
    def judge(output):
        if "engine 0" in output:
            return "cuDNN's engine 0 was used"
        values = pathlib.Path(path).read_bytes()[128:]
        size = len(values) // samples
        return "" if size and values[:size] == values[-size:] else "the first and the last prediction differ"
    return judge


def large_checks(dtrain, folder):
    """Yields the checks of convolutions that are computed in pieces of the batch."""
    # cuDNN's engines do not take a batch of 70,000 images at once.
    many_images = IMAGES.format(side=8, channels=4, filters=8, samples=140000, batch=70000)
    (folder / "many.yaml").write_text(many_images, encoding="utf-8")
    # For 200 images, the output of the convolution has more than 2^31 elements.
    large_images = IMAGES.format(side=512, channels=3, filters=64, samples=2, batch=2)
    (folder / "large.yaml").write_text(large_images, encoding="utf-8")

    def many(name, *settings):
        return fit_command(dtrain, f"{folder}/many.yaml", folder, f"many-{name}", settings)

    yield Check("many-images-cpu", "the reference run", many("cpu", CPU))
    for precision, tolerance in (("float32", 1e-4), ("mixed_bfloat16", 0.05)):
        yield Check(f"many-images-{precision}", "a batch of 70,000 images: the losses equal the CPU's",
                    many(precision, ONE, f"train.precision={precision}"),
                    judge=same_losses(f"{folder}/many-cpu.jsonl", f"{folder}/many-{precision}.jsonl", tolerance))
    samples = 200
    yield Check("large-images", "outputs of more than 2^31 elements: equal images have equal predictions",
                fit_command(dtrain, f"{folder}/large.yaml", folder, "large", (ONE, "train.precision=mixed_bfloat16")) +
                f" && {dtrain} predict {folder}/large --input {folder}/large.npy --output {folder}/predicted.npy --batch-size {samples}",
                prepare=lambda: write_images(folder / "large.npy", samples, (512, 512, 3)),
                judge=equal_first_and_last(folder / "predicted.npy", samples))


def workload_checks(dtrain, workload, spec, folder):
    """Yields the checks of one workload. On the GPU, the losses equal those of the CPU, captured steps have the same
    losses as eager steps, and the losses with 16-bit types are close to those with float32."""
    data = folder / f"data-{workload}"

    def check(*arguments, **options):
        return Check(*arguments, prepare=lambda: write_data(data, **spec), **options)

    def fit(name, *settings, environment=""):
        settings = (f"train.epochs={spec['epochs']}", "dataset.shuffle=false", *settings)
        return f"DTRAIN_BENCH={data} {environment} " + fit_command(
            dtrain, f"bench/workloads/{workload}.yaml", folder, f"{workload}-{name}", settings)

    def log(name):
        return f"{folder}/{workload}-{name}.jsonl"

    strict, exact, same = "train.precision=float32", "train.deterministic=true", 1e-4
    yield check(f"{workload}-cpu", "the reference run", fit("cpu", CPU, strict))
    yield check(workload, "the losses equal the CPU's", fit("gpu", ONE, strict), judge=same_losses(log("cpu"), log("gpu"), same))
    for precision in ("float32", "mixed_bfloat16", "mixed_float16"):
        settings = (ONE, exact, f"train.precision={precision}")
        yield check(f"{workload}-eager-{precision}", "train.deterministic: captured and eager steps have bitwise equal losses",
                    f"{fit('captured', *settings)} && {fit('eager', *settings, environment='DTRAIN_CUDA_GRAPHS=0')}",
                    judge=same_losses(log("captured"), log("eager"), 0))
        if precision != "float32":
            yield check(f"{workload}-{precision}", "the losses are within 5 % of the CPU's in float32",
                        fit(precision, ONE, f"train.precision={precision}"), judge=same_losses(log("cpu"), log(precision), 0.05))
            yield check(f"{workload}-eager-{precision}-fastest", "the same with eager steps, except for rounding",
                        fit("fastest", ONE, f"train.precision={precision}", environment="DTRAIN_CUDA_GRAPHS=0"),
                        judge=same_losses(log(precision), log("fastest"), 0.02))


def run(check, seconds):
    """Runs the command. Returns its exit status (None after a timeout) and its output."""
    with tempfile.TemporaryFile(mode="w+", errors="replace") as output:
        process = subprocess.Popen(["bash", "-c", check.command], cwd=ROOT, stdin=subprocess.DEVNULL, stdout=output,
                                   stderr=subprocess.STDOUT, start_new_session=True)
        try:
            status = process.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            status = None
        output.seek(0)
        return status, output.read()


def verdict(check, status, output, seconds):
    """Returns a description of the error; "" if the check passed."""
    if status is None:
        return f"it did not end within {seconds:.0f} seconds"
    if status != check.expect:
        return f"exit status {status}, expected {check.expect}"
    try:
        return check.judge(output) if check.judge else ""
    except (OSError, ValueError, KeyError) as error:
        return str(error)


def report(path, devices, rows):
    count = {kind: sum(row["result"] == kind for row in rows) for kind in ("passed", "FAILED", "skipped")}
    lines = [f"# The first hour on {', '.join(device['name'] for device in devices)}, {datetime.date.today()}", "",
             ", ".join(f"{number} {kind}" for kind, number in count.items()), "", "| check | shows | result | seconds |", "|---|---|---|---|"]
    for row in rows:
        why = f": {row['why']}" if row["why"] else ""
        lines.append(f"| {row['name']} | {row['shows']} | {row['result']}{why} | {row['seconds']:.0f} |")
    for row in rows:
        if row["result"] == "skipped":
            continue
        shown = row["output"].strip().splitlines()[-SHOWN_LINES:]
        lines += ["", f"## {row['name']}", "", "    " + row["command"], "", *("    " + line for line in shown)]
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    part.write_text("\n".join(lines) + "\n", encoding="utf-8")
    part.replace(path)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dtrain", required=True, help="dtrain: the program of a build, or the script of a bundle")
    parser.add_argument("--tests", type=pathlib.Path, help="folder with the test programs of a build")
    parser.add_argument("--output", type=pathlib.Path, default=pathlib.Path("gpu-first-hour.md"),
                        help="file for the report (default: %(default)s)")
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", help="run only these checks")
    parser.add_argument("--minutes", type=float, default=60,
                        help="start no check after this number of minutes (default: %(default)s)")
    arguments = parser.parse_args()
    dtrain = str(pathlib.Path(arguments.dtrain).resolve())

    def program(name):
        if arguments.tests is None:
            return f"env DTRAIN_PROGRAM={name} {dtrain}"
        return str(next((path for path in (arguments.tests / name, arguments.tests.parent / "bench" / name) if path.exists()), name))
    found = subprocess.run([dtrain, "gpus", "--json"], text=True, capture_output=True, check=False)
    gpu = json.loads(found.stdout).get("gpu", {}) if found.returncode == 0 else {"count": 0, "reason": found.stderr.strip()}
    if not gpu.get("count"):
        print(f"first_hour.py: no GPU: {gpu.get('reason')}", file=sys.stderr)
        return 2
    start, rows = time.monotonic(), []
    with tempfile.TemporaryDirectory(prefix="gpu-first-hour-") as folder:
        every = list(checks(dtrain, program, folder))
        if unknown := set(arguments.only) - {check.name for check in every}:
            parser.error(f"--only: unknown check {', '.join(sorted(unknown))}; available: {', '.join(check.name for check in every)}")
        for check in every:
            if arguments.only and check.name not in arguments.only:
                continue
            row = dict(name=check.name, shows=check.shows, command=check.command.replace(folder, "$OUT"), result="skipped", why="", seconds=0, output="")
            if gpu["count"] < check.gpus:
                row["why"] = f"needs {check.gpus} GPUs"
            elif check.needs and not shutil.which(check.needs):
                row["why"] = f"{check.needs} is not on PATH"
            elif time.monotonic() - start > 60 * arguments.minutes:
                row["why"] = "no time is left"
            else:
                if check.prepare:
                    check.prepare()
                began = time.monotonic()
                status, row["output"] = run(check, check.seconds)
                row["seconds"] = time.monotonic() - began
                row["why"] = verdict(check, status, row["output"], check.seconds)
                row["result"] = "FAILED" if row["why"] else "passed"
            rows.append(row)
            print(f"{row['result']:8} {row['name']}{': ' + row['why'] if row['why'] else ''}  {row['seconds']:.0f} s", flush=True)
            report(arguments.output, gpu["devices"], rows)
    print(f"report: {arguments.output}")
    return 1 if any(row["result"] == "FAILED" for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
