#!/usr/bin/env python3
"""Predicts the efficiency of training on several machines, from step times, bucket sizes and the speed of links.

    bench/scaling.py [WORKLOAD ...] [--machines 2 8 64 512] [--json]
    bench/scaling.py measure DTRAIN WORKLOAD [--processes 1 2 4]   # compares the formula with processes on this machine
    bench/scaling.py --self-test
"""
import argparse
import json
import math
import pathlib
import sys
from collections import namedtuple

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "gpu"))
import bounds  # noqa: E402

FORMULA = """\
The formula

  efficiency(N) = step(1) / step(N). Every device keeps its number of samples, so that N machines train with N times the batch size.
  step(N)       = end(N) + U + control(N)

  F, B, U   seconds of the forward pass, the backward pass and the update in a step. Their sum is the step time of one device. It is
            divided among the passes of the step (bench/gpu/bounds.py). The share of a pass is proportional to the longer of two times:
            its operations divided by the device's operations per second, and its bytes divided by the device's bytes per second.
  G         bytes of gradients: 4 times the trained parameters, in buckets of S bytes (strategy option bucket_megabytes, 25 MiB)
  ready(i)  time at which the backward pass has computed the gradients of bucket i. All gradients of a layer are ready at the same time.
  start(i)  = max(ready(i), finish(i-1));  finish(i) = start(i) + t(S_i)
  end(N)    = the later of F + B and the last finish
  c         share of the computing cores that an exchange takes. During an exchange, the backward pass runs at 1 - c of its speed.

  Seconds of an exchange of S bytes, for links with B bytes per second, latency L and m seconds for each message:

  CPUs, N machines    t = 2 (N-1)/N S/B + 2 (L + (N-1) m) + (N-1)/N S/A
                      Each machine receives its part of the bucket from all others, adds it at A bytes per second, and sends the
                      sum to all others. It sends 2 (N-1)/N S bytes. Arrays of at most 4096 bytes are sent whole:
                      t = L + (N-1) (m + S/B).
  GPUs, ring          t = 2 (R-1)/R S/min(B, V) + b + 2 (N-1) h + 2 (R-N) v, for R = N k GPUs, k in each machine
  GPUs, tree          t = 2 S/(0.9 min(B, V)) + b' + 2 (ceil(log2(N)) h' + (k-1) v')
  GPUs, hierarchical  t = 2 (k-1)/k S/V + 2 (N-1)/N S/min(B, V) + 2 b + 2 (k-1) v + 2 (N-1) h
                      V: bytes per second between the GPUs of a machine; v, h: latency of a hop within a machine and between
                      machines; b: time to start. NCCL chooses the ring or the tree for each size; so does this script.
  control(N)          seconds of the short exchanges of each step. These are sums of losses (CPUs only) and requests to stop. Each takes
                      L + (N-1) m seconds.

  The formula does not consider differences between machines, the reading of data, other traffic on the network, and contention in
  the switches of the network.
"""

# `seconds` is the duration of a step on one device. `batch` is the number of samples in a step on one device. `source`
# says where the seconds come from.
Step = namedtuple("Step", "seconds batch source")
# `reached` is the share of the nominal bandwidth that the link reaches. `latency` and `message` are seconds.
Link = namedtuple("Link", "name gigabits reached latency message")
# `gpus` is the number of GPUs; it is 0 for a machine that computes on CPUs.
# `rates` has the operations per second and the bytes per second of a device. They determine which share of a step's
# seconds each pass takes.
# `core_share` is c in the formula.
Machine = namedtuple("Machine", "name gpus rates precision core_share steps speedup")
Exchange = namedtuple("Exchange", "seconds sent")

LINKS = [Link("100 Gb Ethernet", 100, 0.85, 30e-6, 4e-6), Link("400 Gb InfiniBand", 400, 0.92, 2e-6, 1e-6)]

ADDED = 8e9       # bytes per second that one thread adds to another array
NVLINK = 235e9    # NCCL's limit for A100 (maximum bus bandwidth in its tuning.cc)
# Latencies from NCCL's tuning.cc: the ring uses the protocol Simple, and the tree uses LL128. For a hop between
# machines, the latency of the link is added.
RING = dict(begin=8.4e-6, inside=3.4e-6, between=7.6e-6)
TREE = dict(begin=4.4e-6, inside=1.2e-6, between=6.5e-6)
SHORT = 4096      # bytes of an array that CPUs send whole (lib/collective/process_exchanges.h)

CPU_STEPS = {
    "resnet50": Step(0.84, 8, "estimated: 185e9 operations at the rate measured on resnet20 (bench/results/2026-11-21-cpu.md)"),
    "wide-mlp": Step(4.729, 8192, "measured: bench/results/2026-11-21-cpu.md"),
    "gpt-small": Step(0.12, 32, "estimated: 26e9 operations at the rate measured on resnet20 (bench/results/2026-11-21-cpu.md)"),
}
A100_RATES = (0.7 * 312e12, 0.85 * 2.0e12)
GPU_STEPS = {
    "resnet50": Step(256 / 2470, 256, "public: 2470 images/s on one A100 80GB, mixed precision, of 8 in a DGX A100; NVIDIA's "
                                      "DeepLearningExamples, ResNet50 v1.5 for PyTorch, container 21.03"),
    "wide-mlp": Step(bounds.seconds(bounds.step("wide-mlp", 8192, "bf16"), *A100_RATES), 8192,
                     "assumed: the bound of bench/gpu/bounds.py at 0.7 of an A100's 312e12 operations and 0.85 of its 2.0e12 bytes per second"),
    "gpt-small": Step(1e-3, 32, "assumed: about 200 kernels of 5 us; its operations alone would take less than 0.2 ms"),
}
MACHINES = [Machine("CPU, 2 cores", 0, (300e9, 15e9), "float32", 1 / 2, CPU_STEPS, 1),
            Machine("CPU, 64 cores", 0, (300e9, 15e9), "float32", 1 / 64, CPU_STEPS, 32),
            Machine("A100 GPUs", 8, A100_RATES, "bf16", 0, GPU_STEPS, 1)]
WORKLOADS = tuple(CPU_STEPS)


class Timeline:
    """The seconds of a step on one device, and the times at which the gradients of each parameter are ready."""

    def __init__(self, passes, rates, seconds):
        scale = seconds / bounds.seconds(passes, *rates)
        self.before_update, self.update, self.parameters = 0.0, 0.0, 0
        self.completed = []  # (seconds since the step began, parameters completed until then), in the order of time
        forward = [one for one in passes if one.name != "update" and "gradient" not in one.name]
        backward = [one for one in reversed(passes) if "gradient" in one.name]
        for one in forward + backward:
            self.before_update += scale * bounds.seconds([one], *rates)
            if one.parameters:
                self.parameters += one.parameters
                self.completed.append((self.before_update, self.parameters))
        self.update = seconds - self.before_update

    def buckets(self, most_bytes):
        """Divides the gradients into buckets of at most `most_bytes`. Returns (time at which the bucket is full,
        bytes) for each bucket, in the order in which the buckets are filled."""
        floats, found = max(int(most_bytes) // 4, 1), []
        completed = iter(self.completed)
        ready, until = next(completed)
        for begin in range(0, self.parameters, floats):
            end = min(begin + floats, self.parameters)
            while until < end:
                ready, until = next(completed)
            found.append((ready, 4 * (end - begin)))
        return found


def step_seconds(timeline, buckets, seconds_of, core_share, control):
    """Returns the seconds of a step that exchanges its buckets one after the other. `seconds_of(bytes)` returns the
    seconds of one exchange."""
    now = computed = 0.0  # `computed`: seconds of the forward and backward pass that have been computed
    for ready, size in buckets:
        if computed < ready:  # the link is idle until the bucket is full
            now += ready - computed
            computed = ready
        exchange = seconds_of(size)
        now += exchange
        computed = min(computed + exchange * (1 - core_share), timeline.before_update)
    return now + timeline.before_update - computed + timeline.update + control


def bytes_per_second(link):
    return link.gigabits * 1e9 / 8 * link.reached


def cpu_exchange(machines, size, link):
    """Returns the cost of an exchange of `size` bytes between CPUs, with one process on each machine: the seconds,
    and the bytes that each process sends."""
    others = machines - 1
    if others == 0:
        return Exchange(0.0, 0.0)
    messages = link.latency + others * link.message
    if size <= SHORT:
        return Exchange(messages + others * size / bytes_per_second(link), others * size)
    sent = 2 * others / machines * size
    return Exchange(sent / bytes_per_second(link) + 2 * messages + sent / 2 / ADDED, sent)


def ring(machines, gpus, size, link):
    ranks = machines * gpus
    if ranks == 1:
        return Exchange(0.0, 0.0)
    speed = min(bytes_per_second(link), NVLINK) if machines > 1 else NVLINK
    sent = 2 * (ranks - 1) / ranks * size
    latency = RING["begin"] + 2 * (machines - 1) * (RING["between"] + link.latency) + 2 * (ranks - machines) * RING["inside"]
    return Exchange(sent / speed + latency, sent if machines > 1 else 0.0)


def tree(machines, gpus, size, link):
    if machines * gpus == 1:
        return Exchange(0.0, 0.0)
    speed = min(bytes_per_second(link), NVLINK) if machines > 1 else NVLINK
    hops = math.ceil(math.log2(machines)) * (TREE["between"] + link.latency) + (gpus - 1) * TREE["inside"]
    return Exchange(2 * size / (0.9 * speed) + TREE["begin"] + 2 * hops, 2 * size if machines > 1 else 0.0)


def hierarchical(machines, gpus, size, link):
    inside, outside = ring(1, gpus, size, link), ring(machines, 1, size, link)
    return Exchange(inside.seconds + (RING["begin"] if gpus > 1 else 0) + outside.seconds, outside.sent)


def fastest(machines, gpus, size, link):
    return min(ring(machines, gpus, size, link), tree(machines, gpus, size, link))


ALGORITHMS = {"nccl": fastest, "ring": ring, "tree": tree, "hierarchical": hierarchical}


def predict(timeline, machine, machines, link, bucket_bytes, algorithm="nccl"):
    """Returns the seconds of a step of `machines` machines, and the bytes of gradients that each of them sends."""
    buckets = timeline.buckets(bucket_bytes)
    if machine.gpus:
        def exchange(size):
            return ALGORITHMS[algorithm](machines, machine.gpus, size, link)
    else:
        def exchange(size):
            return cpu_exchange(machines, size, link)
    control = (1 if machine.gpus else 2) * cpu_exchange(machines, 64, link).seconds
    seconds = step_seconds(timeline, buckets, lambda size: exchange(size).seconds, machine.core_share, control)
    return seconds, sum(exchange(size).sent for _, size in buckets)


def timeline_of(workload, machine, step):
    passes = bounds.step(workload, step.batch, machine.precision)
    return Timeline(passes, machine.rates, step.seconds / machine.speedup)


def results(options):
    rows = []
    for workload in options.workloads or WORKLOADS:
        for machine in MACHINES:
            if machine.gpus:
                machine = machine._replace(gpus=options.gpus, name=f"{options.gpus} {machine.name}")
            kind = "gpu" if machine.gpus else "cpu"
            if options.device not in (kind, "both"):
                continue
            step = machine.steps[workload]
            if (kind, workload) in options.step:
                step = step._replace(seconds=options.step[kind, workload], source="--step")
            timeline = timeline_of(workload, machine, step)
            for link in options.links:
                bucket_bytes = options.bucket_megabytes * 2**20
                one, *several = (predict(timeline, machine, n, link, bucket_bytes, options.algorithm) for n in (1, *options.machines))
                source = step.source + (f", divided by {machine.speedup}" if machine.speedup > 1 else "")
                rows.append({"workload": workload, "machine": machine.name, "link": link.name, "batch": step.batch, "source": source,
                             "step_ms": 1e3 * step.seconds / machine.speedup, "one_machine_ms": 1e3 * one[0],
                             "gradient_bytes": 4 * timeline.parameters, "buckets": len(timeline.buckets(bucket_bytes)),
                             "machines": {n: {"step_ms": 1e3 * seconds, "sent_bytes": sent, "efficiency": one[0] / seconds}
                                          for n, (seconds, sent) in zip(options.machines, several)}})
    return rows


def print_table(rows, machines):
    print("Efficiency of N machines, by the formula (--help). No number of this table was measured on several machines.\n")
    print("| workload | machine | samples per device | one machine ms | gradients MB | link | " + " | ".join(map(str, machines)) + " |")
    print("|---|---|---|---|---|---|" + "---|" * len(machines))
    for row in rows:
        shares = " | ".join(f"{row['machines'][n]['efficiency']:.2f}" for n in machines)
        print(f"| {row['workload']} | {row['machine']} | {row['batch']} | {row['one_machine_ms']:.2f} | {row['gradient_bytes'] / 1e6:.1f} | "
              f"{row['link']} | {shares} |")
    print("\nStep times of one device:\n")
    for workload, machine, ms, source in dict.fromkeys((row["workload"], row["machine"], row["step_ms"], row["source"]) for row in rows):
        print(f"- {workload}, {machine}: {ms:.2f} ms; {source}")
    print("\nEverything else is assumed: links, latencies, c, and how a step divides into passes.")


def link_of(text):
    """Parses NAME=GIGABITS,LATENCY_US,MESSAGE_US."""
    name, separator, numbers = text.partition("=")
    try:
        gigabits, latency, message = map(float, numbers.split(","))
    except ValueError:
        separator = ""
    if not separator or gigabits <= 0 or latency < 0 or message < 0:
        raise argparse.ArgumentTypeError(f"'{text}' is not NAME=GIGABITS,LATENCY_US,MESSAGE_US; for example: rdma=200,3,1")
    return Link(name, gigabits, 1.0, latency / 1e6, message / 1e6)


def step_of(text):
    """Parses DEVICE:WORKLOAD=MS."""
    name, _, number = text.partition("=")
    key = tuple(name.split(":"))
    try:
        if len(key) == 2 and key[0] in ("cpu", "gpu") and key[1] in WORKLOADS and float(number) > 0:
            return key, float(number) / 1e3
    except ValueError:
        pass
    raise argparse.ArgumentTypeError(f"'{text}' is not DEVICE:WORKLOAD=MS; for example: cpu:resnet50=840")


def positive(text):
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} is not a positive number")
    return number


def main():
    if sys.argv[1:2] in (["measure"], ["bound"]):
        import scaling_measure  # this module starts programs; the prediction does not need it
        return scaling_measure.main(sys.argv[1], sys.argv[2:])
    parser = argparse.ArgumentParser(description=__doc__, epilog=FORMULA, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("workloads", nargs="*", metavar="WORKLOAD", help=", ".join(WORKLOADS))
    parser.add_argument("--machines", type=positive, nargs="+", default=[2, 8, 64, 512], metavar="N")
    parser.add_argument("--device", choices=("cpu", "gpu", "both"), default="both")
    parser.add_argument("--gpus", type=positive, default=8, metavar="K", help="GPUs in each machine (default: %(default)s)")
    parser.add_argument("--step", type=step_of, action="append", default=[], metavar="DEVICE:WORKLOAD=MS",
                        help="sets the step time of one device in milliseconds, for example cpu:resnet50=840 (2 cores) "
                             "or gpu:gpt-small=1.2; can be repeated")
    parser.add_argument("--link", type=link_of, action="append", dest="links", metavar="NAME=GIGABITS,LATENCY_US,MESSAGE_US",
                        help="predicts for this link instead of 100 Gb Ethernet and 400 Gb InfiniBand; GIGABITS is the bandwidth "
                             "that the link reaches; can be repeated")
    parser.add_argument("--bucket-megabytes", type=float, default=25, metavar="MIB")
    parser.add_argument("--algorithm", choices=ALGORITHMS, default="nccl",
                        help="algorithm of the GPUs (default: nccl, which uses the ring or the tree, as NCCL chooses)")
    parser.add_argument("--json", action="store_true", help="print the results as one JSON document")
    parser.add_argument("--self-test", action="store_true", help="check the limits of the formula")
    options = parser.parse_args()
    if options.self_test:
        import scaling_self_test
        return scaling_self_test.main()
    if unknown := set(options.workloads) - set(WORKLOADS):
        parser.error(f"unknown workload {', '.join(sorted(unknown))}; available: {', '.join(WORKLOADS)}")
    if options.bucket_megabytes <= 0:
        parser.error(f"--bucket-megabytes must be greater than 0, but is {options.bucket_megabytes}")
    options.step, options.links = dict(options.step), options.links or LINKS
    rows = results(options)
    if options.json:
        print(json.dumps(rows, indent=2))
    else:
        print_table(rows, options.machines)


if __name__ == "__main__":
    main()
