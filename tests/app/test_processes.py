"""Several processes, started by the mpirun of each MPI that is installed: Debian's mpirun.openmpi and mpirun.mpich, or
the launchers that DTRAIN_MPIRUN names (paths, separated by colons). Without a launcher, these tests are skipped.

The program tests/process_messages sends messages and fails on demand. DTRAIN_LARGE_MESSAGES=1 also sends 2.2 GiB.
"""
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time
import unittest

import support
from new_case import png
from support import Case

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "fuzz"))
from patience import shared  # noqa: E402

# Open MPI refuses to run as root, and to start more processes than cores, unless these variables are set.
ENVIRONMENT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_rmaps_base_oversubscribe": "1",
               "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
               # MPI libraries are not instrumented, and do not free all memory at the end.
               "ASAN_OPTIONS": "detect_leaks=0", "TSAN_OPTIONS": "report_bugs=0"}
NO_LAUNCHER = ("OMPI_", "PMI", "PRTE_", "SLURM_", "MPI_LOCAL", "HYDI_")


def launchers():
    """Maps the name of each MPI to its mpirun."""
    paths = list(filter(None, os.environ.get("DTRAIN_MPIRUN", "").split(":")))
    paths = paths or list(filter(None, map(shutil.which, ("mpirun.openmpi", "mpirun.mpich"))))
    found = {}
    for path in paths:
        text = subprocess.run([path, "--version"], env={**os.environ, **ENVIRONMENT}, capture_output=True, text=True).stdout
        found["Open MPI" if "Open MPI" in text or "OpenRTE" in text else "MPICH"] = path
    return found


LAUNCHERS = launchers()

FLOWERS = """\
seed: 5
model:
  inputs: {x: [3]}
  layers:
    - dense: {units: 8, activation: relu}
    - dense: {units: 3}
dataset:
  train: {csv: {file: flowers.csv, header: true, target: species, id: name, categories: [colour]}}
  test: {split: {of: train, fraction: 0.3}}
  transforms: [standardize]
strategy: single
train:
  epochs: 3
  batch_size: 16
  loss: {sparse_categorical_crossentropy: {from_logits: true}}
  optimizer: {adam: {learning_rate: 0.03}}
  metrics: [accuracy, f1_score]
"""
FLOWERS_CSV = "name,colour,length,species\n" + "".join(
    f"f{i},{('red', 'blue')[i * i % 5 % 2]},{(i * 37 % 100) / 10 + i % 3},{('iris', 'rose', 'tulip')[i % 3]}\n" for i in range(150))


PICTURES = """\
seed: 5
model: {inputs: {image: [8, 8, 1]}, layers: [flatten, {dense: {units: 2}}]}
dataset: {train: {images: {directory: images}}}
strategy: {mirrored: {devices: [cpu:0]}}
train: {epochs: 2, batch_size: 4, loss: {sparse_categorical_crossentropy: {from_logits: true}}, optimizer: sgd}
"""


# A shell that starts a process of a run, and records the PID and the exit code of the process. The shell does not end
# when the process ends.
PARENT = """\
rank=${OMPI_COMM_WORLD_RANK:-$PMI_RANK}
env LD_PRELOAD="$LIBRARY" "$@" &
echo $! > process$rank.new && mv process$rank.new process$rank
wait $!
echo $? > code$rank.new && mv code$rank.new code$rank
exec sleep 60
"""


def environment(**more):
    own = {key: value for key, value in os.environ.items() if not key.startswith(NO_LAUNCHER)}
    return {**own, **ENVIRONMENT, **more}


class Processes(Case):
    def setUp(self):
        super().setUp()
        self.messages = pathlib.Path(support.BINARY).parent.parent / "tests/process_messages"
        self.libraries = self.dtrain("--version").out

    def launch(self, launcher, count, *command, **variables):
        return subprocess.run([launcher, "-n", str(count), *map(str, command)], cwd=self.dir, env=environment(**variables),
                              capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=120)

    def usable(self):
        """Returns the launchers, by name, of each MPI for which there is a launcher, a library and a shim."""
        usable = {name: path for name, path in LAUNCHERS.items() if f"{name} " in self.libraries and "without the headers" not in
                  re.search(rf"{name} [^,\n]*", self.libraries)[0]}
        if not usable or not self.messages.exists():
            self.skipTest("no mpirun with a library and a shim, or no tests/process_messages")
        return usable

    def each(self):
        """Yields the name and the launcher of each usable MPI, in a subtest."""
        for name, path in self.usable().items():
            with self.subTest(name):
                yield name, path

    def test_messages_go_around_a_ring(self):
        for name, launcher in self.each():
            for count in (2, 5):
                done = self.launch(launcher, count, self.messages, "ring")
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertRegex(done.stdout, rf"^{count} processes, {count} on this machine, {name} \d")

    def test_a_single_process_needs_no_mpi(self):
        self.assertEqual(subprocess.run([self.messages], env=environment(), capture_output=True, text=True).stdout, "a single process\n")
        for _, launcher in self.each():
            self.assertEqual(self.launch(launcher, 1, self.messages).stdout, "a single process\n")

    def test_differences_are_reported_once(self):
        for _, launcher in self.each():
            done = self.launch(launcher, 2, self.messages, "facts")
            self.assertNotEqual(done.returncode, 0)
            self.assertEqual(done.stderr.count("the processes of this run differ:\nbuild: 0 on "), 1, done.stderr)
            self.assertNotIn("oneDNN:", done.stderr)

    def test_failures_end_all_processes_with_one_message(self):
        for _, launcher in self.each():
            for how, expected, seconds in (("error", "the disk is on fire (this happened in step 12, reading data)", 10),
                                           ("exit", "the process ended without a message", 10),
                                           ("stop", "no heartbeat for 3 seconds", 20)):
                with self.subTest(how):
                    start = time.monotonic()
                    done = self.launch(launcher, 3, self.messages, how)
                    self.assertLess(time.monotonic() - start, seconds)
                    # When a process dies, mpirun ends the other processes at once, possibly before process 0 can print.
                    if how != "exit" or "error:" in done.stderr:
                        self.assertEqual(len(re.findall(rf"error: \S+ \(process 1 of 3\): {re.escape(expected)}", done.stderr)), 1, done.stderr)
                        self.assertIn("step 12, reading data", done.stderr)
                    self.assertNotEqual(done.returncode, 0)
                    left = subprocess.run(["pgrep", "-f", f"{self.messages} {how}"], capture_output=True, text=True).stdout
                    self.assertEqual(left, "")

    def kill_process_1(self, launcher, is_time, *words):
        """Starts training, kills process 1 when is_time() returns true, and waits until process 0 has ended. After
        is_time() has returned true, calls of MPI_Test never return. Each process has a shell as its parent. The shell
        keeps running when the process ends, so the launcher does not notice the end of the process."""
        for name in ("stuck", "process0", "process1", "code0", "code1", "steps.log"):
            (self.dir / name).unlink(missing_ok=True)
        shutil.rmtree(self.dir / "run", ignore_errors=True)
        library = self.messages.parent / "libstuck_mpi.so"
        variables = environment(STUCK_MPI=str(self.dir / "stuck"), LIBRARY=str(library),
                                ASAN_OPTIONS="detect_leaks=0:verify_asan_link_order=0", UCX_TLS="tcp,self")
        process = subprocess.Popen([launcher, "-n", "2", "sh", "parent.sh", support.BINARY, "fit", "config.yaml", "--output", "run", "--step-log",
                                    "steps.log", "--quiet", *words], cwd=self.dir, env=variables, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.kill)

        def wait(condition, seconds):
            end = time.monotonic() + shared(seconds)
            while not condition() and process.poll() is None and time.monotonic() < end:
                time.sleep(0.002)
            self.assertTrue(condition())

        wait(lambda: (self.dir / "process1").exists() and is_time(), 60)
        (self.dir / "stuck").touch()
        time.sleep(0.05)
        os.kill(int((self.dir / "process1").read_text()), signal.SIGKILL)
        try:
            wait((self.dir / "code0").exists, 5)
        finally:
            if not (self.dir / "code0").exists():
                os.kill(int((self.dir / "process0").read_text()), signal.SIGKILL)
            process.terminate()
            error = process.communicate(timeout=60)[1]
        self.assertEqual((self.dir / "code0").read_text().strip(), "1", error)
        self.assertEqual(len(re.findall("error:", error)), 1, error)
        self.assertRegex(error, r"error: \S+ \(process 1 of 2\): the process ended without a message")

    def test_process_0_ends_although_mpi_never_returns(self):
        """The transport of process 0 never returns, like Open MPI's TCP transport after a process was killed."""
        self.write("config.yaml", support.CONFIG)
        self.write("parent.sh", PARENT)
        run, log = self.dir / "run", self.dir / "steps.log"

        def steps():
            return len(log.read_bytes().splitlines()) if log.exists() else 0

        for _, launcher in self.each():
            with self.subTest("at the start"):
                self.kill_process_1(launcher, run.exists, "--epochs", "1000000", "--set", "strategy={mirrored: {devices: [cpu:0]}}")
            for strategy in ("mirrored: {devices: [cpu:0]}", "sharded: {devices: [cpu:0], level: parameters}"):
                with self.subTest(strategy):
                    self.kill_process_1(launcher, lambda: steps() >= 20, "--epochs", "1000000", "--set", f"strategy={{{strategy}}}",
                                        "--set", "checkpoint.every=2 steps")
                    end = json.loads((run / "run.jsonl").read_text().splitlines()[-1])
                    self.assertEqual((end["event"], end["outcome"]), ("end", "failed"))
                    if "mirrored" in strategy:
                        self.assertTrue((run / f"checkpoints/ckpt-{end['step']:08}.h5").exists())

    def test_processes_that_are_not_connected_end(self):
        """MPI_Test never returns. Therefore the processes cannot be connected at the beginning of the run."""
        self.write("config.yaml", support.CONFIG)
        stuck = self.write("stuck", "")
        launcher = next(iter(self.usable().values()))  # one launcher is enough: the test takes long, and the MPI does not matter
        done = self.launch(launcher, 2, "env", f"LD_PRELOAD={self.messages.parent / 'libstuck_mpi.so'}", support.BINARY, "fit", "config.yaml",
                           "--output", "run", STUCK_MPI=str(stuck), ASAN_OPTIONS="detect_leaks=0:verify_asan_link_order=0")
        self.assertNotEqual(done.returncode, 0)
        self.assertEqual(len(re.findall("error:", done.stderr)), 1, done.stderr)
        self.assertRegex(done.stderr, r"error: \S+ \(process 0 of 2\): the processes were not connected within 33 seconds")
        self.assertFalse((self.dir / "run").exists())

    def test_commands_that_do_not_train_run_once(self):
        for _, launcher in self.each():
            done = self.launch(launcher, 2, support.BINARY, "schema")
            self.assertEqual(done.returncode, 0, done.stderr)
            json.loads(done.stdout)  # one document

    def test_gpus_shows_the_devices_of_all_processes_and_the_links(self):
        for name, launcher in self.each():
            done = self.launch(launcher, 3, support.BINARY, "gpus")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(re.findall(r"^\S+ \(process (\d) of 3\)\ncpu ", done.stdout, re.MULTILINE), ["0", "1", "2"], done.stdout)
            self.assertNotIn("link between", done.stdout)
            done = self.launch(launcher, 3, support.BINARY, "gpus", "--measure", "--json")
            self.assertEqual(done.returncode, 0, done.stderr)
            found = json.loads(done.stdout)
            self.assertEqual([one["process"] for one in found["processes"]], [0, 1, 2])
            for one in found["processes"]:
                self.assertGreater(one["cpu"]["cores"], 0)
                self.assertTrue(one["mpi"].startswith(name), one["mpi"])
            link, = found["communication"]["links"]  # all processes are on this machine
            self.assertEqual([end["process"] for end in link["between"]], [0, 1])
            self.assertEqual({end["machine"] for end in link["between"]}, {one["machine"] for one in found["processes"]})
            self.assertGreater(link["bytes_per_second"], 0)
            self.assertLess(link["latency_seconds"], 1)
            self.assertEqual(found["communication"]["sum_over_processes"]["bytes"], 25 << 20)
            self.assertGreater(found["communication"]["sum_over_processes"]["seconds"], 0)
            done = self.launch(launcher, 2, support.BINARY, "gpus", "--measure")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertRegex(done.stdout, r"\(process 0 of 2\) +\S+ \(process 1 of 2\) +[\d.]+ us +[\d.]+ .?B/s\n")
            self.assertIn("of gradients over all processes in ", done.stdout)

    def test_all_processes_use_the_vocabulary_of_another_run(self):
        config = (
            "seed: 5\nmodel: {inputs: {tokens: {shape: [8], dtype: int32}}, layers: [{embedding: {input_dim: 20, output_dim: 4}}, {dense: {units: 20}}]}\n"
            "dataset: {train: {text: {file: a.txt, sequence_length: 8, tokens: words, vocabulary: 20}}}\n"
            "strategy: {mirrored: {devices: [cpu:0]}}\n"
            "train: {epochs: 1, batch_size: 8, loss: {sparse_categorical_crossentropy: {from_logits: true}}, optimizer: adam}\n")
        self.write("a.txt", "one two three four five six seven eight. " * 40)
        self.write("b.txt", "eight seven six five four three two one one one. " * 40)
        self.fit(config=config, output="first")
        self.write("b.yaml", config.replace("a.txt", "b.txt").replace("{train: {text", "{vocabulary_from: first, train: {text"))
        self.dtrain("fit", "b.yaml", "--output", "alone")
        for name, launcher in self.each():
            run = self.launch(launcher, 2, support.BINARY, "fit", "b.yaml", "--output", name)
            self.assertEqual(run.returncode, 0, run.stderr)
            for alone, together in zip(self.metrics("alone"), self.metrics(name), strict=True):
                self.assertAlmostEqual(alone["loss"], together["loss"], places=6)

    def test_two_processes_give_the_bits_of_one(self):
        """Each device of each replica has one core, because results may depend on the number of cores."""
        cores = os.sched_getaffinity(0)
        self.addCleanup(os.sched_setaffinity, 0, cores)
        os.sched_setaffinity(0, sorted(cores)[:2])
        self.write("config.yaml", support.CONFIG)

        def strategies(replicas):
            devices = ", ".join(f"cpu:{i}" for i in range(replicas))
            yield f"{{mirrored: {{devices: [cpu:0], replicas: {replicas}}}}}"
            for level in ("optimizer", "gradients", "parameters"):
                yield f"{{sharded: {{devices: [{devices}], level: {level}}}}}"
            stages = ", ".join(f"cpu:{i}" for i in range(2 * replicas))
            yield f"{{pipeline: {{devices: [{stages}], stages: [dense_1], microbatches: 2, replicas: {replicas}}}}}"
            # Each of the two processes has one stage of both pipelines.
            yield "{pipeline: {devices: [cpu:0, cpu:1, cpu:2, cpu:3], stages: [dense_1], microbatches: 2, replicas: 2, across: processes}}"

        for _, launcher in self.each():
            for whole, divided in zip(strategies(2), strategies(1)):
                with self.subTest(whole):
                    self.dtrain("fit", "config.yaml", "--output", "one", "--overwrite", "--set", f"strategy={whole}")
                    done = self.launch(launcher, 2, "--bind-to", "none", support.BINARY, "fit", "config.yaml", "--output", "two", "--overwrite",
                                       "--set", f"strategy={divided}")
                    self.assertEqual(done.returncode, 0, done.stderr)
                    self.assert_same_run("one", "two")

    def test_evaluate_gives_the_numbers_of_one_process(self):
        self.fit("--epochs", 1)
        self.write("inputs.csv", FLOWERS_CSV)
        self.write("flowers.csv", FLOWERS_CSV)
        self.fit(config=FLOWERS, output="flowers")
        two = ("--set", "strategy={mirrored: {devices: [cpu:0], replicas: 2}}")
        one = ("--set", "strategy={mirrored: {devices: [cpu:0]}}")
        for _, launcher in self.each():
            for words in (("run", "--split", "train", "--per-class"), ("flowers",), ("flowers", "--input", "inputs.csv"),
                          ("flowers", "--errors", 4)):
                with self.subTest(words):
                    done = self.launch(launcher, 2, "--bind-to", "none", support.BINARY, "evaluate", *words, "--json", *one)
                    self.assertEqual(done.returncode, 0, done.stderr)
                    expected, found = self.json("evaluate", *words, *two), json.loads(done.stdout)
                    # Process 0 alone computes the list of the samples with the largest losses. It may round their
                    # losses differently than two processes do, so only the ids are compared.
                    worst, expected_worst = found.pop("errors", []), expected.pop("errors", [])
                    self.assertEqual([sample["id"] for sample in worst], [sample["id"] for sample in expected_worst])
                    self.assertEqual(found, expected)
                    self.assertEqual(done.stderr.count("the model was trained on samples of this file"), int("--input" in words), done.stderr)
            # Only process 0 has standard input.
            done = subprocess.run([launcher, "-n", "2", support.BINARY, "evaluate", "flowers", "--input", "-", "--json"], cwd=self.dir,
                                  env=environment(), input=FLOWERS_CSV, capture_output=True, text=True, timeout=120)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(json.loads(done.stdout)["samples"], FLOWERS_CSV.count("\n") - 1)

    def test_evaluate_needs_the_same_data_on_all_machines(self):
        self.write("flowers.csv", FLOWERS_CSV)
        self.fit(config=FLOWERS, output="flowers")
        (self.dir / "flowers.csv").unlink()
        self.write("data0/flowers.csv", FLOWERS_CSV)
        self.write("data1/flowers.csv", FLOWERS_CSV.replace("f3,red", "f3,blue"))
        # The script gives each process its own data folder, as if each process ran on a different machine.
        script = self.write("on_machine.sh", 'export DTRAIN_DATA="$PWD/data${OMPI_COMM_WORLD_RANK:-$PMI_RANK}"\nexec "$@"\n')
        for _, launcher in self.each():
            done = self.launch(launcher, 2, "sh", script, support.BINARY, "evaluate", "flowers")
            self.assertNotEqual(done.returncode, 0)
            self.assertRegex(done.stderr, r"the data of some processes differ from the data of process 0.*\nprocess 1: 'test': ")
            self.assertEqual(done.stderr.count("error: "), 1, done.stderr)

    def test_a_damaged_image_ends_all_processes_with_exit_code_2(self):
        """Only one process reads the damaged image. All processes must end with the same error."""
        for kind in ("a", "b"):
            (self.dir / "images" / kind).mkdir(parents=True)
            for i in range(16):
                (self.dir / f"images/{kind}/{i}.png").write_bytes(png(8, 8, 10 * i))
        damaged = self.dir / "images/b/7.png"
        damaged.write_bytes(damaged.read_bytes()[:-20])
        self.write("config.yaml", PICTURES)
        # When one process ends, Open MPI 5 sends SIGTERM to the other processes: the shell must still record the exit code.
        script = self.write("record.sh", 'trap : TERM; "$@"; echo $? > code${OMPI_COMM_WORLD_RANK:-$PMI_RANK}\n')
        for _, launcher in self.each():
            for prefetch in (0, 4):  # the step itself reads images, or other threads do
                done = self.launch(launcher, 2, "sh", script, support.BINARY, "fit", "config.yaml", "--output", "run", "--overwrite",
                                   "--set", f"dataset.prefetch={prefetch}")
                self.assertEqual([(self.dir / f"code{rank}").read_text() for rank in (0, 1)], ["2\n", "2\n"], done.stderr)
                self.assertEqual(len(re.findall(r"\berror: ", done.stderr)), 1, done.stderr)
                self.assertIn("images/b/7.png: expected an intact PNG, but this PNG is damaged", done.stderr)

    def test_the_network_interface_is_chosen(self):
        self.write("config.yaml", support.CONFIG)
        for words, variables, option in ((["--interface", "eth99"], {}, "--interface"), (["--interface=10.99.99.0/24"], {}, "--interface"),
                                         ([], {"DTRAIN_INTERFACE": "eth99"}, "the environment variable DTRAIN_INTERFACE")):
            done = self.dtrain("fit", "config.yaml", "--output", "run", *words, env=variables, expect=2)
            self.assertRegex(done.err, rf"^error: {option}: .*; its interfaces: .*\blo \(127\.0\.0\.1")
            self.assertFalse((self.dir / "run").exists())
        self.dtrain("fit", "config.yaml", "--output", "one", "--epochs", 1, "--set", "strategy={mirrored: {devices: [cpu:0], replicas: 2}}")
        for _, launcher in self.each():
            for words, variables in ((["--interface", "127.0.0.0/8"], {}), ([], {"DTRAIN_INTERFACE": "lo"})):
                done = self.launch(launcher, 2, "--bind-to", "none", support.BINARY, "fit", "config.yaml", "--output", "two", "--overwrite",
                                   "--epochs", 1, "--set", "strategy={mirrored: {devices: [cpu:0]}}", *words, **variables)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assert_same_run("one", "two")
            done = self.launch(launcher, 2, support.BINARY, "gpus", "--interface", "eth99")
            self.assertNotEqual(done.returncode, 0)
            self.assertEqual(done.stderr.count("--interface: this machine has no network interface 'eth99'"), 1, done.stderr)

    def test_processes_have_different_numbers_of_replicas(self):
        self.write("config.yaml", support.CONFIG)
        self.dtrain("fit", "config.yaml", "--output", "one", "--set", "strategy={mirrored: {devices: [cpu:0], replicas: 4}}")
        divided = ("--set", "strategy={mirrored: {devices: [cpu:0], replicas: [3, 1]}}")
        done = self.dtrain("check", "config.yaml", *divided, expect=2)
        self.assertIn("error: replicas: the list has numbers for 2 processes, but 1 was started", done.err)
        for _, launcher in self.each():
            # Each replica has one core, like the replicas of the first run, if this machine has at most four
            # cores.
            done = self.launch(launcher, 2, "--bind-to", "none", support.BINARY, "fit", "config.yaml", "--output", "two", "--overwrite", *divided)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("in process 0 of 2, 4 replicas in total (3 + 1)", done.stderr)
            if os.cpu_count() <= 4:
                self.assert_same_run("one", "two")
            done = self.launch(launcher, 3, "--bind-to", "none", support.BINARY, "fit", "config.yaml", "--output", "three", *divided)
            self.assertNotEqual(done.returncode, 0)
            self.assertEqual(done.stderr.count("the list has numbers for 2 processes, but 3 were started"), 1, done.stderr)
        # The trained model does not need two processes.
        self.assertGreater(self.json("evaluate", "two", "--split", "train")["samples"], 0)

    def test_stop_ends_all_processes(self):
        self.write("config.yaml", support.CONFIG)
        for _, launcher in self.each():
            shutil.rmtree(self.dir / "run", ignore_errors=True)
            process = subprocess.Popen([launcher, "-n", "2", "--bind-to", "none", support.BINARY, "fit", "config.yaml", "--output", "run", "--epochs",
                                        "1000000"], cwd=self.dir, env=environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                       stderr=subprocess.PIPE, text=True)
            self.addCleanup(process.kill)
            metrics = self.dir / "run/metrics.jsonl"
            while process.poll() is None and not (metrics.exists() and metrics.stat().st_size):
                time.sleep(0.01)
            self.dtrain("stop", "run")
            err = process.communicate(timeout=60)[1]
            self.assertNotEqual(process.returncode, 0)
            self.assertIn("`dtrain stop` was called: the run saves a checkpoint and ends", err)
            self.assertRegex(err, r"stopped at step \d+; saved run/checkpoints/ckpt-")

    def test_check_shows_the_plan_of_all_processes(self):
        self.write("config.yaml", support.CONFIG)
        for _, launcher in self.each():
            command = (support.BINARY, "check", "config.yaml", "--set", "strategy={mirrored: {devices: [cpu:0], replicas: 2}}")
            done = self.launch(launcher, 2, *command)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(done.stdout.count("strategy  mirrored, 4 replicas (2 processes); gradients are summed over the processes"), 1,
                             done.stdout)
            for process in range(2):
                self.assertEqual(len(re.findall(rf"^\S+ \(process {process} of 2\)$", done.stdout, re.MULTILINE)), 1, done.stdout)
            done = self.launch(launcher, 2, *command, "--json", "--measure")
            self.assertEqual(done.returncode, 0, done.stderr)
            plan = json.loads(done.stdout)
            self.assertEqual([(one["replica"], one["process"]) for one in plan["replicas"]], [(0, 0), (1, 0), (2, 1), (3, 1)])
            self.assertEqual(sum(one["share"] for one in plan["replicas"]), plan["batch_size"])
            self.assertGreater(plan["time"]["step_seconds"], 0)
            done = self.launch(launcher, 2, support.BINARY, "check", "config.yaml", "--schedule", "--set",
                               "strategy={pipeline: {devices: [cpu:0, cpu:1], stages: [dense_1], microbatches: 2}}")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("strategy  pipeline, 2 replicas of 2 stages, 2 microbatches (2 processes); gradients are summed over the processes",
                          done.stdout)
            self.assertIn("The schedule of a batch in microbatches of 4 samples", done.stdout)

    def test_processes_that_do_not_see_each_other_are_an_error(self):
        """The causes are srun without --mpi, an invalid variable of a launcher, and an MPI library that does not
        exist."""
        self.write("config.yaml", support.CONFIG)
        for variables, expected in (
                ({"SLURM_STEP_ID": "0", "SLURM_PROCID": "0", "SLURM_STEP_NUM_TASKS": "2"}, "srun started "),
                ({"PMI_SIZE": "two"}, "the environment variable PMI_SIZE is 'two'"),
                ({"PMI_SIZE": "2", "PMI_RANK": "0", "DTRAIN_MPI_LIBRARY": "/nowhere/libmpi.so.12"}, "DTRAIN_MPI_LIBRARY is '/nowhere/")):
            with self.subTest(expected):
                done = subprocess.run([support.BINARY, "fit", "config.yaml", "--output", "run"], cwd=self.dir, env=environment(**variables),
                                      capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=120)
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertIn(expected, done.stderr)
                self.assertFalse((self.dir / "run").exists())

    def test_an_error_before_the_processes_are_connected_is_printed_once_on_each_machine(self):
        self.write("config.yaml", support.CONFIG)
        launch = {"PMI_SIZE": "2", "PMI_RANK": "1", "DTRAIN_MPI_LIBRARY": "/nowhere/libmpi.so.12"}
        for local_rank, expected in ("0", r"error: \S+ \(process 1 of 2\): .*/nowhere/"), ("1", r"\Z"):
            start = time.monotonic()
            done = subprocess.run([support.BINARY, "fit", "config.yaml"], cwd=self.dir,
                                  env=environment(**launch, MPI_LOCALRANKID=local_rank), capture_output=True, text=True,
                                  stdin=subprocess.DEVNULL, timeout=120)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertRegex(done.stderr, r"\A" + expected)
            # Process 1 waits for more than a second before it exits. When a process exits with an error, the launcher
            # ends the other processes, and process 0 may still have to print its message.
            self.assertGreater(time.monotonic() - start, 1)

    def test_a_launcher_of_one_mpi_with_the_library_of_another_is_an_error(self):
        paths = {name: re.search(rf"{name} \S+ \((\S+?)[;)]", self.libraries) for name in ("Open MPI", "MPICH")}
        self.write("config.yaml", support.CONFIG)
        pairs = [(LAUNCHERS[name], name, other) for name, other in (("Open MPI", "MPICH"), ("MPICH", "Open MPI"))
                 if name in LAUNCHERS and paths[other]]
        if not pairs:
            self.skipTest("needs two MPIs")
        for launcher, name, other in pairs:
            with self.subTest(name):
                done = self.launch(launcher, 2, support.BINARY, "fit", "config.yaml", "--output", "run", DTRAIN_MPI_LIBRARY=paths[other][1])
                self.assertNotEqual(done.returncode, 0)
                self.assertEqual(len(re.findall(rf"of {name} started this process, but no {name} library was found, only {other} ", done.stderr)), 1,
                                 done.stderr)
                self.assertFalse((self.dir / "run").exists())


if __name__ == "__main__":
    if not LAUNCHERS:
        print("no mpirun.openmpi and no mpirun.mpich: most of these tests are skipped")
    support.main()
