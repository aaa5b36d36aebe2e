"""Runs that need more memory than is available."""
import json
import os
import re
import resource
import shlex
import struct
import subprocess

import support
from support import CONFIG, Case

# The 300 layers of 64 units have 300 times 64 activations of 4 bytes per sample. No test computes these activations.
DEEP = CONFIG.replace("    - dense: {units: 16, activation: relu}\n", "    - deep: {repeat: 300}\n").replace(
    "model:\n", "model:\n  blocks: {deep: {layers: [{dense: {units: 64}}]}}\n").replace(
    "samples: 500", "samples: 2000000000")


class Memory(Case):
    def setUp(self):
        super().setUp()
        self.assertNotEqual(resource.getrlimit(resource.RLIMIT_AS)[0], 0)

    def limit(self):
        return self.json("gpus")["cpu"]["memory_limit"]

    def test_gpus_names_the_memory_limit(self):
        cpu = self.json("gpus")["cpu"]
        self.assertGreater(cpu["memory_limit"], 0)
        self.assertTrue(cpu["memory_limit_from"])
        self.assertIn(f"for a run: {cpu['memory_limit_from']}\n", self.dtrain("gpus").out)

    def test_a_model_too_large_for_any_machine_is_an_error(self):
        self.write("config.yaml", DEEP.replace("units: 64", "units: 30000"))
        for command in (["check"], ["fit", "--output", "run"]):
            process = self.dtrain(*command, "config.yaml", expect=2)
            self.assertRegex(process.err, r"error: cpu: batches of 16 need [\d.]+ TB \([\d.]+ TB of parameters, .*"
                                          r"but .+ is available \(.+\); not even one sample fits")
            self.assertEqual(process.out, "")
        self.assertEqual(self.checkpoints(), [])

    def test_stages_too_large_for_any_machine_are_an_error(self):
        """Regardless of the stage boundaries, the message names the device that needs the most memory, and the command
        that shows other strategies."""
        self.write("config.yaml", DEEP.replace("units: 64", "units: 30000"))
        for stages in ("auto", "[deep_200]"):
            process = self.dtrain("check", "config.yaml", "--set", f"strategy={{pipeline: {{devices: [cpu:0, cpu:1], stages: {stages}}}}}", expect=2)
            self.assertRegex(process.err, r"but .+ is available \(.+\); cpu:\d needs the most memory \([\d.]+ TB\), for 'deep\S*/dense' and \d+ more layers; "
                                          r"not even one sample fits; `dtrain check --fit` shows strategies that may fit")

    def test_the_largest_fitting_batch_is_named(self):
        self.write("config.yaml", DEEP)
        for strategy in ("single", "{mirrored: {devices: [cpu:0, cpu:1]}}"):
            sets = ["--set", "train.batch_size=30000000", "--set", f"strategy={strategy}"]
            process = self.dtrain("check", "config.yaml", *sets, expect=2)
            most = int(re.search(r"the largest batch that fits is (\d+)$", process.err.strip()).group(1))
            self.assertGreater(most, 100)
            # The memory of the process itself varies a little.
            process = self.dtrain("check", "config.yaml", *sets, "--set", f"train.batch_size={most * 99 // 100}", "--json")
            needed = sum(r["memory"]["total"] for r in json.loads(process.out)["replicas"])
            self.assertLess(needed, self.limit())
            if needed > 1.01 * self.json("gpus")["cpu"]["memory_available"]:
                self.assertIn("warning: cpu: ", process.err)
                self.assertIn("are free now. The run may be slow", process.err)
            # Sanitizers keep freed memory for a while. The amount varies by more than 1 %.
            more = 110 if "sanitizers" in self.dtrain("--version").out else 101
            self.dtrain("check", "config.yaml", *sets, "--set", f"train.batch_size={most * more // 100}", expect=2)

    def test_wide_rows_are_standardized_with_little_memory(self):
        rows, width = 100, 1 << 18
        (self.dir / "x").write_bytes(b"\0\0\x08\x02" + struct.pack(">2I", rows, width) + bytes(range(256)) * (rows * width // 256))
        self.write("config.yaml", f"""\
model: {{inputs: {{x: [{width}]}}, layers: [{{dense: {{units: 1}}}}]}}
dataset: {{train: {{idx: {{input: x, target: y}}}}, transforms: [standardize]}}
strategy: {{single: {{device: cpu:0}}}}
train: {{epochs: 1, batch_size: 1, loss: mean_squared_error, optimizer: sgd}}
""")
        (self.dir / "y").write_bytes(b"\0\0\x08\x02" + struct.pack(">2I", rows, 1) + bytes(rows))
        process = self.start("check", "config.yaml", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        self.assertEqual(process.returncode, 0)
        if "sanitizers" in self.dtrain("--version").out:
            self.skipTest("sanitizers keep freed memory")
        threads = len(os.sched_getaffinity(0))
        # The limit includes memory for the data that each thread processes at a time. A list of the results of all
        # blocks would need 24 bytes per element, that is 600 MB in total, and would exceed the limit.
        self.assertLess(usage.ru_maxrss, (200 + 30 * min(threads, 8)) * 1024)

    def test_a_batch_larger_than_the_data_takes_no_more_memory(self):
        self.write("config.yaml", CONFIG)
        self.dtrain("fit", "config.yaml", "--epochs", 1, "--set", "train.batch_size=100000000", "--output", "run")
        self.dtrain("evaluate", "run")

    def test_samples_too_large_for_memory_are_an_error(self):
        self.write("config.yaml", CONFIG.replace("samples: 500", "samples: 4294967296").replace("[12]", "[2000]"))
        sets = ["--set", "dataset.cache=memory"]
        self.assertRegex(self.dtrain("check", "config.yaml", *sets, expect=2).err, r"[\d.]+ TB of samples.*is available \(")
        self.assertRegex(self.dtrain("fit", "config.yaml", *sets, expect=2).err, r"the samples need [\d.]+ TB of memory, but only .* is available")

    def test_the_memory_of_read_ahead_is_counted(self):
        """Prefetching from a file needs buffers for each waiting batch and for the two in use."""
        header = "{'descr': '%s', 'fortran_order': False, 'shape': (%s), }"
        for name, descr, shape, values in (("x.npy", "<f4", "40, 12", 480), ("y.npy", "<i4", "40,", 40)):
            text = (header % (descr, shape)).ljust(117) + "\n"
            (self.dir / name).write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode() + bytes(4 * values))
        reader = "{npy: {input: x.npy, target: y.npy}, rows: [0, 40]}"
        self.write("config.yaml", re.sub(r"\{synthetic: .*", reader, CONFIG))
        read_ahead = lambda *sets: self.json("check", "config.yaml", *(a for s in sets for a in ("--set", s)))["read_ahead"]
        sample = 12 * 4 + 4
        splits = 2
        self.assertEqual(read_ahead("dataset.prefetch=0"), 0)
        self.assertEqual(read_ahead("dataset.cache=memory"), 0)
        one, three = (read_ahead(f"dataset.prefetch={depth}") for depth in (1, 3))
        self.assertEqual(three - one, 2 * splits * 16 * sample)
        self.assertGreaterEqual(one, 3 * splits * 16 * sample)
        process = self.dtrain("check", "config.yaml", "--set", "dataset.prefetch=1")
        self.assertIn("Prefetching batches needs another ", process.out)

    def test_a_limit_of_ulimit_is_an_error_that_names_it(self):
        if "sanitizers" in self.dtrain("--version").out:
            self.skipTest("sanitizers map more than they use")
        self.write("config.yaml", DEEP)
        command = f"ulimit -v 4000000; exec {shlex.quote(support.BINARY)}"
        run = lambda *a: subprocess.run(["bash", "-c", f"{command} {shlex.join(a)}"], cwd=self.dir, capture_output=True,
                                        text=True, timeout=60, check=False)
        limited = run("gpus")
        self.assertIn("at most 4.1 GB for a run: ulimit -v", limited.stdout, limited.stderr)
        refused = run("check", "config.yaml", "--set", "train.batch_size=1000000", "--set", "strategy=single")
        self.assertEqual(refused.returncode, 2, refused.stderr)
        self.assertRegex(refused.stderr, r"is available \(ulimit -v\); the largest batch that fits is \d+")

    def test_a_failure_to_create_threads_is_an_error(self):
        """The message names a line of the configuration if there are too many replicas for any machine, but no line
        if only this machine's limit is reached."""
        devices = ", ".join(f"cpu:{i % 1024}" for i in range(2000))
        process = self.fit("--set", f"strategy={{mirrored: {{devices: [{devices}]}}}}", expect=2)
        self.assertIn("at most 1024 devices", process.err)
        if "sanitizers" in self.dtrain("--version").out:
            self.skipTest("sanitizers map more than they use")
        command = f"ulimit -v 1500000; exec {shlex.quote(support.BINARY)}"
        many = "strategy={mirrored: {devices: [cpu:0], replicas: 1024}}"
        process = subprocess.run(["bash", "-c", f"{command} check config.yaml --set {shlex.quote(many)}"], cwd=self.dir,
                                 capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(process.returncode, 1, process.stderr)
        self.assertRegex(process.stderr, r"^error: (replica \d+ of 1024: the system cannot start another thread for this process|out of memory)")

    def test_reaching_the_limit_of_mappings_is_an_error_that_names_it(self):
        """When the limit of mappings is reached, memory may still be free; the message says this."""
        if "sanitizers" in self.dtrain("--version").out:
            self.skipTest("sanitizers have their own malloc and mmap")
        process = self.fit(env=self.preloaded("tests/app/no_mappings.c"), expect=1)
        self.assertRegex(process.err, r"(?m)^error: out of memory: .*sysctl vm\.max_map_count")


if __name__ == "__main__":
    support.main()
