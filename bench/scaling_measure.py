"""Implements `scaling.py measure DTRAIN WORKLOAD`: compares the formula of scaling.py with 1, 2 and 4 processes on this
machine.

Each process has one replica and an equal share of the cores. Three times are measured for each number of processes n:

  alone     n processes run at the same time and do not communicate. This is the time of computing, with the contention
            for cores and memory.
  link      Two models are trained, which have one small layer and one large layer. n processes train alone, and n
            processes train together. The difference is the time of the exchanges, because the gradients of a single
            layer are ready only at the end of the backward pass.
  together  n processes, which mpirun starts, train the workload together.

The prediction uses `alone`, the link, and the order in which the backward pass fills the buckets. It is compared with
`together`.
"""
import argparse
import json
import os
import pathlib
import random
import shutil
import statistics
import subprocess
import sys
import tempfile

import scaling

# The values of each workload are: the samples per process and step, and the data set. The script writes "text.txt" to
# the folder in DTRAIN_BENCH.
WORKLOADS = {
    "resnet50": (2, "{synthetic: {samples: %d, target: {classes: 1000}}}"),
    "wide-mlp": (256, "{synthetic: {samples: %d, target: {classes: 2}}}"),
    "gpt-small": (8, None),
}
POSITIONS = 128  # number of positions in a sample of gpt-small
STEPS_OF_EPOCH = 4
MOST_SECONDS = 3600  # time limit of a run

# A model of a single layer. Its input needs no gradient. The gradient of the kernel has 4 * inputs * units bytes; the
# gradient of the bias comes in addition.
LAYER = """\
seed: 1
model: {inputs: {x: [%d]}, layers: [{dense: {units: %d}}]}
dataset: {train: {synthetic: {samples: %d, target: {shape: [%d]}}}, cache: memory}
train: {epochs: 1, batch_size: 1, loss: mean_squared_error, optimizer: {sgd: {learning_rate: 0.0001}}}
checkpoint: {every: 1000000 steps}
"""
LAYERS = {"small": (16, 16), "large": (2048, 4096)}

# Without these variables, Open MPI would not start as root or with more processes than cores, and it would bind each
# process to a core.
ENVIRONMENT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_rmaps_base_oversubscribe": "1",
               "OMPI_MCA_hwloc_base_binding_policy": "none", "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
               "PRTE_MCA_hwloc_default_binding_policy": "none"}
LAUNCHERS = ("OMPI_", "PMI", "PRTE_", "SLURM_", "MPI_LOCAL", "HYDI_")


def environment(**more):
    own = {key: value for key, value in os.environ.items() if not key.startswith(LAUNCHERS)}
    return {**own, **ENVIRONMENT, **more}


def cores_of(rank, processes, cores):
    """Returns the cores of one process. All cores are divided evenly among the processes. If there are fewer cores
    than processes, several processes share a core."""
    share = cores[rank * len(cores) // processes:(rank + 1) * len(cores) // processes]
    return share if len(cores) >= processes else [cores[rank % len(cores)]]


def run_bound(words):
    """Implements `scaling.py bound CORES COMMAND ...`: binds this process to its share of the cores, and executes
    the command in this process. CORES is a list such as "0,1"."""
    rank = next((int(os.environ[name]) for name in ("OMPI_COMM_WORLD_RANK", "PMI_RANK") if name in os.environ), 0)
    processes = next((int(os.environ[name]) for name in ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE") if name in os.environ), 1)
    os.sched_setaffinity(0, cores_of(rank, processes, list(map(int, words[0].split(",")))))
    os.execvp(words[1], words[1:])


def median_step(log):
    """Returns the median seconds of a step of a step log, without the first epoch."""
    ends = [json.loads(line)["seconds"] for line in log.read_text(encoding="utf-8").splitlines()][STEPS_OF_EPOCH:]
    if len(ends) < 2:
        sys.exit(f"{log} has too few steps; at least {STEPS_OF_EPOCH + 2} were expected: raise --steps")
    return statistics.median(end - begin for begin, end in zip(ends, ends[1:]))


class Bench:
    def __init__(self, options, work):
        self.options, self.work = options, pathlib.Path(work)
        self.cores = sorted(os.sched_getaffinity(0))
        self.env = environment(DTRAIN_BENCH=work)

    def command(self, config, batch, log, name):
        epochs = -(-self.options.steps // STEPS_OF_EPOCH) + 1
        sets = ["strategy={mirrored: {devices: [cpu:0]}}", f"train.batch_size={batch}"]
        if config in WORKLOADS:
            data = WORKLOADS[config][1]
            if data:
                sets.append("dataset.train=" + data % (batch * STEPS_OF_EPOCH))
            else:
                write_text(self.work / "text.txt", batch * STEPS_OF_EPOCH)
            path = scaling.HERE / "workloads" / f"{config}.yaml"
        else:
            inputs, units = LAYERS[config]
            path = self.work / f"{config}.yaml"
            path.write_text(LAYER % (inputs, units, batch * STEPS_OF_EPOCH, units), encoding="utf-8")
        log.unlink(missing_ok=True)
        words = [self.options.program, "fit", path, "--quiet", "--overwrite", "--output", self.work / name, "--step-log", log,
                 "--epochs", epochs]
        for one in sets:
            words += ["--set", one]
        return [str(word) for word in words]

    def alone(self, config, processes, batch):
        """Returns the step time of processes that run at the same time and do not communicate."""
        logs = [self.work / f"alone-{rank}.jsonl" for rank in range(processes)]
        commands = [self.command(config, batch, log, f"run-{rank}") for rank, log in enumerate(logs)]
        running = []
        try:
            for rank, command in enumerate(commands):
                own = ",".join(map(str, cores_of(rank, processes, self.cores)))
                running.append(subprocess.Popen([sys.executable, str(scaling.HERE / "scaling.py"), "bound", own, *command], env=self.env,
                                                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True))
            for process in running:
                errors = process.communicate(timeout=MOST_SECONDS)[1]
                if process.returncode != 0:
                    sys.exit(f"{' '.join(process.args[4:])}: exit code {process.returncode}\n{errors}")
        finally:
            for process in running:
                process.kill()
                process.wait()
        return statistics.median(map(median_step, logs))

    def together(self, config, processes, batch):
        """Returns the step time of processes that train together."""
        log = self.work / "together.jsonl"
        command = [self.options.mpirun, "-n", str(processes), sys.executable, str(scaling.HERE / "scaling.py"), "bound",
                   ",".join(map(str, self.cores)), *self.command(config, batch * processes, log, "run-together")]
        try:
            done = subprocess.run(command, env=self.env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=MOST_SECONDS)
        except OSError as error:
            sys.exit(f"{self.options.mpirun}: {error.strerror}; install openmpi-bin or mpich, or name a launcher with --mpirun")
        if done.returncode != 0 or not log.exists():
            sys.exit(f"{' '.join(command)}: exit code {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
        return median_step(log)

    def exchanges(self, processes):
        """Returns the seconds that exchanges add to a step of the small and of the large layer."""
        return [max(self.together(layer, processes, 1) - self.alone(layer, processes, 1), 0.0) for layer in ("small", "large")]


def write_text(path, samples):
    """Writes words of a small vocabulary, so that the model learns something."""
    draw = random.Random(1)
    words = ["".join(draw.choices("abcdefghijklmnopqrstuvwxyz", k=draw.randint(2, 8))) for _ in range(500)]
    text = " ".join(draw.choices(words, k=samples * POSITIONS // 2))
    path.write_text(text[:samples * POSITIONS + 1], encoding="utf-8")


def layer_bytes(layer):
    inputs, units = LAYERS[layer]
    return 4 * (inputs + 1) * units


def fit_link(processes, small, large):
    """Returns (seconds of a short exchange, bytes per second). These are computed from the seconds that exchanges add
    to a step of each layer.

    A step of the small layer has three short exchanges: of its gradients, of the losses, and of the requests to
    stop. In a step of the large layer, each bucket is exchanged in two phases."""
    short = small / 3
    buckets = -(-layer_bytes("large") // (25 * 2**20))
    sent = 2 * (processes - 1) / processes * layer_bytes("large")
    seconds = large - 2 * short - 2 * short * buckets
    return short, sent / seconds if seconds > 0 else float("inf")


def core_share(processes, cores):
    """Returns the value c of the formula. Each process has one thread that computes and one thread that exchanges.
    If there are no cores for the threads that exchange, c is 1."""
    return min(max((2 * processes - cores) / processes, 0.0), 1.0)


def predict(timeline, processes, short, speed, share):
    def seconds_of(size):
        if size <= scaling.SHORT:
            return short
        return 2 * (processes - 1) / processes * size / speed + 2 * short
    return scaling.step_seconds(timeline, timeline.buckets(25 * 2**20), seconds_of, share, 2 * short)


def compare(bench, workload, processes, batch):
    """Measures the step time for one number of processes, and predicts it. The measured times are medians over the
    rounds."""
    rounds = []
    for _ in range(bench.options.rounds):
        alone = bench.alone(workload, processes, batch)
        if processes == 1:
            rounds.append((alone, 0.0, float("inf"), alone))
            continue
        short, speed = fit_link(processes, *bench.exchanges(processes))
        rounds.append((alone, short, speed, bench.together(workload, processes, batch)))
    alone, short, speed, together = map(statistics.median, zip(*rounds))
    timeline = scaling.Timeline(scaling.bounds.step(workload, batch, "float32"), (300e9, 15e9), alone)
    share = core_share(processes, len(bench.cores))
    row = {"processes": processes, "alone_ms": 1e3 * alone, "short_exchange_us": 1e6 * short,
           "link_gigabytes_per_second": None if speed == float("inf") else speed / 1e9, "core_share": share,
           "predicted_ms": 1e3 * (alone if processes == 1 else predict(timeline, processes, short, speed, share)),
           "overlapped_ms": 1e3 * (alone if processes == 1 else predict(timeline, processes, short, speed, 0)),
           "measured_ms": 1e3 * together, "spread": [1e3 * min(one[3] for one in rounds), 1e3 * max(one[3] for one in rounds)]}
    return {**row, "efficiency": row["alone_ms"] / row["measured_ms"], "predicted_efficiency": row["alone_ms"] / row["predicted_ms"]}


def print_table(workload, batch, rows, cores):
    print(f"{workload}, {batch} samples per process, {cores} cores\n")
    print("| processes | alone ms | link GB/s | short exchange us | c | predicted ms | with c = 0 | measured ms (lowest to highest) | "
          "predicted efficiency | measured |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for row in rows:
        link = row["link_gigabytes_per_second"]
        print(f"| {row['processes']} | {row['alone_ms']:.2f} | {'' if link is None else f'{link:.2f}'} | {row['short_exchange_us']:.0f} | "
              f"{row['core_share']:.2f} | {row['predicted_ms']:.2f} | {row['overlapped_ms']:.2f} | {row['measured_ms']:.2f} "
              f"({row['spread'][0]:.2f} to {row['spread'][1]:.2f}) | {row['predicted_efficiency']:.2f} | {row['efficiency']:.2f} |")


def main(mode, words):
    if mode == "bound":
        return run_bound(words)
    parser = argparse.ArgumentParser(prog="scaling.py measure", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", metavar="DTRAIN", help="the program, built with MPI")
    parser.add_argument("workload", choices=WORKLOADS, metavar="WORKLOAD", help=", ".join(WORKLOADS))
    parser.add_argument("--processes", type=scaling.positive, nargs="+", default=[1, 2, 4], metavar="N")
    parser.add_argument("--mpirun", default="mpirun", help="the launcher: mpirun.openmpi, mpirun.mpich (default: %(default)s)")
    parser.add_argument("--batch", type=scaling.positive, help="samples per process and step (default: resnet50 2, wide-mlp 256, gpt-small 8)")
    parser.add_argument("--steps", type=scaling.positive, default=24, help="steps of a run (default: %(default)s)")
    parser.add_argument("--rounds", type=scaling.positive, default=3)
    parser.add_argument("--json", action="store_true", help="print the results as one JSON document")
    options = parser.parse_args(words)
    options.program = shutil.which(options.program) or parser.error(f"{options.program} is not a program")
    options.program = str(pathlib.Path(options.program).resolve())
    batch = options.batch or WORKLOADS[options.workload][0]
    if os.getloadavg()[0] > 0.5:
        print(f"warning: other programs use {os.getloadavg()[0]:.1f} cores of this machine, so the times are too long", file=sys.stderr)
    with tempfile.TemporaryDirectory(prefix="dtrain-scaling-") as work:
        bench = Bench(options, work)
        rows = [compare(bench, options.workload, processes, batch) for processes in options.processes]
    if options.json:
        print(json.dumps({"workload": options.workload, "batch": batch, "cores": len(bench.cores), "rows": rows}, indent=2))
    else:
        print_table(options.workload, batch, rows, len(bench.cores))
