"""Implements `scaling.py --self-test`: tests the limits of the formula, and the parts of the measurement that start no
programs."""
import math
import pathlib
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

import bounds
import scaling
import scaling_measure

BUCKET = 25 * 2**20
PERFECT = scaling.Link("perfect", math.inf, 1.0, 0.0, 0.0)
NO_LATENCY = dict(begin=0.0, inside=0.0, between=0.0)
COUNTS = (1, 2, 3, 8, 64, 512)


def cases():
    """Yields (name, machine, timeline) of all predictions."""
    for workload in scaling.WORKLOADS:
        for machine in scaling.MACHINES:
            yield f"{workload}, {machine.name}", machine, scaling.timeline_of(workload, machine, machine.steps[workload])


def computing(timeline):
    return timeline.before_update + timeline.update


class Scaling(unittest.TestCase):
    def test_perfect_links_give_an_efficiency_of_1(self):
        with mock.patch.multiple(scaling, ADDED=math.inf, NVLINK=math.inf, RING=NO_LATENCY, TREE=NO_LATENCY):
            for name, machine, timeline in cases():
                for algorithm in scaling.ALGORITHMS:
                    for machines in COUNTS:
                        seconds, _ = scaling.predict(timeline, machine, machines, PERFECT, BUCKET, algorithm)
                        self.assertAlmostEqual(seconds / computing(timeline), 1, places=12, msg=name)

    def test_one_machine_uses_no_link(self):
        slow = scaling.Link("slow", 1e-6, 1.0, 1.0, 1.0)
        for name, machine, timeline in cases():
            one, sent = scaling.predict(timeline, machine, 1, slow, BUCKET)
            self.assertEqual(sent, 0, name)
            self.assertEqual(one, scaling.predict(timeline, machine, 1, PERFECT, BUCKET)[0], name)
            alone = scaling.predict(timeline, machine._replace(gpus=min(machine.gpus, 1)), 1, slow, BUCKET)[0]
            self.assertAlmostEqual(alone, machine.steps[name.split(",")[0]].seconds / machine.speedup, places=12, msg=name)

    def test_a_step_is_between_full_overlap_and_none(self):
        for name, machine, timeline in cases():
            buckets = timeline.buckets(BUCKET)
            for seconds in (1e-6, 1e-3, 1.0):
                steps = [scaling.step_seconds(timeline, buckets, lambda size: seconds, share, 0.0) for share in (0, 0.25, 1)]
                none = computing(timeline) + len(buckets) * seconds
                least = max(timeline.before_update + seconds, buckets[0][0] + len(buckets) * seconds) + timeline.update
                self.assertGreaterEqual(steps[0], least * (1 - 1e-12), name)
                self.assertLessEqual(steps[0], steps[1] * (1 + 1e-12), name)
                self.assertLessEqual(steps[1], steps[2] * (1 + 1e-12), name)
                # If an exchange takes all cores, it does not overlap with the backward pass.
                self.assertAlmostEqual(steps[2] / none, 1, places=12, msg=name)

    def test_a_step_counted_by_hand(self):
        # The forward pass takes 2 s. The gradient of 3 floats takes 4 s, the gradient of 1 float takes 1 s, and the
        # update takes 3 s. A bucket has 8 bytes.
        passes = [bounds.Pass("product", 2, 0), bounds.Pass("filter gradient", 1, 0, 1), bounds.Pass("filter gradient", 4, 0, 3),
                  bounds.Pass("update", 3, 0)]
        timeline = scaling.Timeline(passes, (1, 1), 10)
        self.assertEqual(timeline.completed, [(6, 3), (7, 4)])
        self.assertEqual(timeline.buckets(8), [(6, 8), (7, 8)])
        for share, expected in ((0, 6 + 5 + 5 + 3), (1, 6 + 5 + 1 + 5 + 3), (0.9, 6 + 5 + 0.5 + 5 + 3)):
            self.assertAlmostEqual(scaling.step_seconds(timeline, timeline.buckets(8), lambda size: 5, share, 0), expected)
        self.assertEqual(scaling.step_seconds(timeline, timeline.buckets(8), lambda size: 0.5, 0, 0.25), 7 + 0.5 + 3 + 0.25)

    def test_all_gradients_are_sent(self):
        for name, machine, timeline in cases():
            for bucket_bytes in (BUCKET, 2**20 + 4, 1e12):
                buckets = timeline.buckets(bucket_bytes)
                self.assertEqual(sum(size for _, size in buckets), 4 * timeline.parameters, name)
                self.assertEqual(sorted(ready for ready, _ in buckets), [ready for ready, _ in buckets], name)
                self.assertAlmostEqual(buckets[-1][0], timeline.completed[-1][0], msg=name)
        self.assertEqual(scaling.timeline_of("wide-mlp", scaling.MACHINES[0], scaling.CPU_STEPS["wide-mlp"]).parameters, 41_157_101)

    def test_each_machine_sends_its_share(self):
        for name, machine, timeline in cases():
            for machines in COUNTS[1:]:
                _, sent = scaling.predict(timeline, machine, machines, scaling.LINKS[0], BUCKET, "ring")
                ranks = machines * max(machine.gpus, 1)
                self.assertAlmostEqual(sent / (2 * (ranks - 1) / ranks * 4 * timeline.parameters), 1, places=12, msg=name)
        # Counts the messages one by one. Each process adds up one part of the array: it receives the numbers of this
        # part from all other processes, and sends the sum to all of them.
        for machines in COUNTS[1:]:
            parts = [scaling.SHORT * (process + 1) for process in range(machines)]
            messages = [part for process in range(machines) for other, part in enumerate(parts) if other != process]
            messages += [parts[process] for process in range(machines) for _ in range(machines - 1)]
            size = sum(parts)
            self.assertAlmostEqual(machines * scaling.cpu_exchange(machines, size, PERFECT).sent / sum(messages), 1, places=12)
            self.assertEqual(len(messages), 2 * machines * (machines - 1))
            latency = scaling.cpu_exchange(machines, size, PERFECT._replace(message=1.0)).seconds - size * (machines - 1) / machines / scaling.ADDED
            self.assertAlmostEqual(machines * latency, len(messages), places=6)

    def test_slower_links_and_more_machines_are_not_faster(self):
        for name, machine, timeline in cases():
            seconds = [[scaling.predict(timeline, machine, machines, link, BUCKET)[0] for machines in COUNTS] for link in scaling.LINKS]
            for ethernet, infiniband in zip(*seconds):
                self.assertGreaterEqual(ethernet, infiniband, name)
            for one in seconds:
                self.assertEqual(one, sorted(one), name)

    def test_algorithms_agree_where_they_are_the_same(self):
        link = scaling.LINKS[1]
        for size in (64, 2**20, BUCKET):
            for machines in COUNTS[1:]:
                self.assertEqual(scaling.hierarchical(machines, 1, size, link), scaling.ring(machines, 1, size, link))
            self.assertEqual(scaling.hierarchical(1, 8, size, link).sent, 0)
            self.assertEqual(scaling.fastest(512, 8, size, link),
                             min(scaling.ring(512, 8, size, link), scaling.tree(512, 8, size, link)))
        self.assertLess(scaling.tree(512, 8, 64, link).seconds, scaling.ring(512, 8, 64, link).seconds)

    def test_the_measured_link_gives_back_its_numbers(self):
        short, speed = 20e-6, 3e9
        for processes in (2, 4):
            size = scaling_measure.layer_bytes("large")
            buckets = -(-size // BUCKET)
            large = 2 * (processes - 1) / processes * size / speed + 2 * short * (buckets + 1)
            found = scaling_measure.fit_link(processes, 3 * short, large)
            self.assertAlmostEqual(found[0] / short, 1)
            self.assertAlmostEqual(found[1] / speed, 1)
        self.assertEqual(scaling_measure.fit_link(2, 1.0, 0.5)[1], math.inf)
        self.assertLessEqual(scaling_measure.layer_bytes("small"), scaling.SHORT)

    def test_processes_share_the_cores(self):
        self.assertEqual([scaling_measure.cores_of(rank, 2, [0, 1, 4]) for rank in range(2)], [[0], [1, 4]])
        self.assertEqual([scaling_measure.cores_of(rank, 4, [3, 5]) for rank in range(4)], [[3], [5], [3], [5]])
        self.assertEqual([scaling_measure.core_share(2, cores) for cores in (1, 2, 3, 4, 8)], [1, 1, 0.5, 0, 0])

    def test_the_step_of_a_log_is_the_median_after_the_first_epoch(self):
        with tempfile.TemporaryDirectory() as work:
            log = pathlib.Path(work, "log.jsonl")
            ends = [9, 9.5, 10, 11, 11.25, 11.5, 11.75, 14]
            log.write_text("".join(f'{{"step": {step}, "loss": 1, "seconds": {end}}}\n' for step, end in enumerate(ends)), encoding="utf-8")
            self.assertEqual(scaling_measure.median_step(log), 0.25)

    def test_wrong_arguments_are_explained(self):
        for arguments, expected in ((["--link", "x=1"], "is not NAME=GIGABITS,LATENCY_US,MESSAGE_US"), (["lenet"], "unknown workload lenet"),
                                    (["--step", "cpu:lenet=3"], "is not DEVICE:WORKLOAD=MS"), (["--machines", "0"], "not a positive number"),
                                    (["--bucket-megabytes", "0"], "must be greater than 0"), (["measure", "nowhere", "resnet50"], "is not a program")):
            done = subprocess.run([sys.executable, scaling.HERE / "scaling.py", *arguments], capture_output=True, text=True)
            self.assertEqual(done.returncode, 2, arguments)
            self.assertIn(expected, done.stderr)


def main():
    unittest.main(module=__name__, argv=["scaling.py"])
