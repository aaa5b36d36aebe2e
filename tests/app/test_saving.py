"""Saving of runs: signals, time limits, failures, moved or deleted directories; and the records in a run directory."""
import errno
import json
import os
import pathlib
import re
import shutil
import signal
import struct
import time

import support
from support import CONFIG, STEPS_PER_EPOCH, Case

ENDLESS = ("--epochs", 1000000)


class Saving(Case):
    def begin(self, *arguments, config=CONFIG, **options):
        """Starts an endless run and returns once it has trained some epochs."""
        self.write("config.yaml", config)
        process = self.start("fit", "config.yaml", "--output", "run", *(arguments or ENDLESS), **options)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        metrics = self.dir / "run/metrics.jsonl"
        while process.poll() is None and not (metrics.exists() and metrics.stat().st_size):
            time.sleep(0.005)
        return process

    def finish(self, process, code):
        process.out, process.err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, code, process.err)
        return process

    def wait_for(self, condition):
        end = time.monotonic() + 30
        while not condition():
            self.assertLess(time.monotonic(), end, "nothing happened")
            time.sleep(0.005)

    def events(self, run="run"):
        path = self.dir / run / "run.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


class Memory(Case):
    def test_saving_and_reading_do_not_use_freed_memory(self):
        """With these settings, glibc overwrites all memory that is freed, so that using it fails. In builds with
        sanitizers, this test checks nothing: they have their own malloc, and do not see the accesses of libhdf5."""
        overwrite = {"MALLOC_PERTURB_": "165", "GLIBC_TUNABLES": "glibc.malloc.tcache_count=0"}
        self.fit("--epochs", 1, env=overwrite)
        self.dtrain("resume", "run", "--epochs", 2, env=overwrite)
        self.dtrain("evaluate", "run", env=overwrite)
        self.dtrain("export", "run", "--output", "model.keras", env=overwrite)
        self.dtrain("inspect", "run", env=overwrite)


class Signals(Saving):
    def test_closing_the_terminal_saves_the_run(self):
        process = self.begin()
        for _ in range(3):  # the shell and the kernel each send a SIGHUP
            process.send_signal(signal.SIGHUP)
        process = self.finish(process, 129)
        self.assertIn(f"saved run/checkpoints/{self.checkpoints()[-1].name}", process.err)

    def test_sigusr1_saves_and_the_run_continues(self):
        process = self.begin(config=CONFIG.replace("every: 10 steps", "every: 1000000 epochs"))
        for count in (1, 2):
            process.send_signal(signal.SIGUSR1)
            self.wait_for(lambda: len(self.checkpoints()) >= count)
        self.assertIsNone(process.poll())
        process.send_signal(signal.SIGTERM)
        self.assertEqual(self.finish(process, 143).err.count("; training continues"), 2)

    def test_stop_ends_a_run_as_sigterm_does(self):
        process = self.begin()
        self.assertIn("asked the run in run to save a checkpoint and end", self.dtrain("stop", "run").out)
        process = self.finish(process, 143)
        self.assertIn(f"saved run/checkpoints/{self.checkpoints()[-1].name}", process.err)
        self.assertEqual(process.err.count("`dtrain stop` was called: the run saves a checkpoint and ends"), 1)
        self.assertFalse((self.dir / "run/stop-request").exists())
        self.assertIn("run: expected a run that is still in progress, but this run has ended: stopped at step", self.dtrain("stop", "run", expect=2).err)
        self.assertIn("but this run has ended", self.dtrain("stop", "run/checkpoints", expect=2).err)
        self.assertIn("missing: expected a run directory", self.dtrain("stop", "missing", expect=2).err)
        self.assertIn("config.yaml: expected a run, but found a configuration", self.dtrain("stop", "config.yaml", expect=2).err)
        # These files have the names of a run's files, but another program has written them.
        self.write("other/config.yaml", "a: 1\n")
        self.write("other/metrics.jsonl", "{}\n")
        self.assertIn("other: expected a run directory of dtrain", self.dtrain("stop", "other", expect=2).err)
        self.assertFalse((self.dir / "other/stop-request").exists())
        # If an old stop request exists when a job starts, the request does not stop the job.
        (self.dir / "run/stop-request").write_text("")
        self.dtrain("resume", "run", "--epochs", len(self.metrics()) + 2)
        self.assertFalse((self.dir / "run/stop-request").exists())

    def test_stop_asks_a_job_that_may_be_on_another_machine(self):
        """The record of the run says that the run has not ended, but no process on this machine holds the run's lock."""
        self.write("config.yaml", CONFIG)
        self.kill_on_the_way("fit", "config.yaml", "--output", "run")
        self.assertIn("no process on this machine is training this run", self.dtrain("stop", "run").err)
        self.assertTrue((self.dir / "run/stop-request").exists())

    def test_two_simultaneous_signals_count_as_one(self):
        """`timeout` sends SIGTERM to the process and to its process group."""
        for pause in (0, 0.3):
            shutil.rmtree(self.dir / "run", ignore_errors=True)
            process = self.begin()
            process.send_signal(signal.SIGTERM)
            time.sleep(pause)
            process.send_signal(signal.SIGTERM)
            self.finish(process, 143)
            self.assertEqual(process.err.count("SIGTERM: stopping"), 1)
            self.assertIn(f"saved run/checkpoints/{self.checkpoints()[-1].name}", process.err)

    def test_compute_threads_block_signals(self):
        """oneDNN keeps data below the stack pointer of compute threads. A signal handler on such a thread would overwrite
        these data."""
        process = self.begin()
        taken = sum(1 << (number - 1) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1))
        blocked = [int(re.search(r"SigBlk:\s*(\w+)", task.read_text())[1], 16)
                   for task in pathlib.Path(f"/proc/{process.pid}/task").glob("*/status")]
        self.assertGreater(len(blocked), 2)
        self.assertEqual([mask & taken for mask in blocked if mask & taken != taken], [0])  # the thread that waits for signals
        process.send_signal(signal.SIGTERM)
        self.finish(process, 143)

    def test_many_signals_change_no_bit(self):
        config = CONFIG.replace("[12]", "[256]").replace("units: 16", "units: 512").replace("every: 10 steps, keep: 100", "keep: 2")
        strategies = ("single", "{mirrored: {devices: [cpu:0, cpu:1]}}", "{pipeline: {devices: [cpu:0, cpu:1], microbatches: 2}}",
                      "{sharded: {devices: [cpu:0, cpu:1], level: parameters}}")
        for number, strategy in enumerate(strategies):
            with self.subTest(strategy):
                whole, run = f"whole{number}", f"run{number}"
                self.fit(config=config.replace("{mirrored: {devices: [cpu:0, cpu:1]}}", strategy), output=whole)
                process = self.start("fit", "config.yaml", "--output", run)
                self.wait_for(lambda: process.poll() is not None or (self.dir / run / "run.jsonl").exists())
                while process.poll() is None:
                    process.send_signal(signal.SIGUSR1)
                    time.sleep(0.0005)
                self.finish(process, 0)
                self.assert_same_run(run, whole)

    def test_a_signal_ends_a_command_without_a_run(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1):
            process = self.start("gpus", "--watch", "--json")
            process.stdout.readline()
            process.send_signal(number)
            self.finish(process, -number)

    def test_ignored_signals_stay_ignored(self):
        def ignore():
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            signal.signal(signal.SIGHUP, signal.SIG_IGN)
        process = self.begin(preexec_fn=ignore)
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGHUP)
        lines = len((self.dir / "run/metrics.jsonl").read_text().splitlines())
        self.wait_for(lambda: len((self.dir / "run/metrics.jsonl").read_text().splitlines()) > lines + 3)
        process.send_signal(signal.SIGTERM)
        self.finish(process, 143)

    def test_max_time_stops_a_run(self):
        self.fit(output="whole")
        limited = self.fit("--set", "train.max_time=0.001 minutes", "--epochs", 1000000)
        self.assertIn("to save within max_time (0.001 minutes)", limited.err)
        self.assertLess(len(self.metrics()), 1000000)
        shutil.rmtree(self.dir / "run")
        for _ in range(100):
            self.fit("--resume", "--set", "train.max_time=0.01 seconds")  # shorter than the whole run
            if self.checkpoints()[-1].name == self.checkpoints("whole")[-1].name:
                break
        else:
            self.fit("--resume")  # each start used up its time limit
        self.assert_same_run("run", "whole")


class Directories(Saving):
    def test_a_run_directory_may_be_renamed(self):
        process = self.begin()
        (self.dir / "run").rename(self.dir / "elsewhere")
        time.sleep(0.2)
        process.send_signal(signal.SIGTERM)
        process = self.finish(process, 143)
        self.assertNotIn("warning", process.err)
        self.assertFalse((self.dir / "run").exists())
        self.assertIn(f"elsewhere/checkpoints/{self.checkpoints('elsewhere')[-1].name}", process.err)
        self.assertEqual(self.events("elsewhere")[-1]["event"], "end")
        self.dtrain("resume", "elsewhere", "--epochs", 1)

    def test_a_removed_run_directory_is_saved_elsewhere(self):
        process = self.begin()
        while (self.dir / "run").exists():  # retries whenever something is written meanwhile
            shutil.rmtree(self.dir / "run", ignore_errors=True)
        self.wait_for(lambda: self.checkpoints("run-recovered"))
        process.send_signal(signal.SIGTERM)
        process = self.finish(process, 143)
        self.assertIn("run: the directory was removed during the run, which now saves in", process.err)
        self.assertIn(f"run-recovered/checkpoints/{self.checkpoints('run-recovered')[-1].name}", process.err)
        epochs = [line["epoch"] for line in self.metrics("run-recovered")]
        self.assertEqual(epochs, list(range(1, len(epochs) + 1)))
        self.dtrain("resume", "run-recovered", "--epochs", 1)

    def test_a_rejected_run_leaves_no_folder(self):
        self.write("data.csv", "1,2,7\n" * 20)
        wrong = CONFIG.replace("{x: [12]}", "{x: [2]}").replace(
            "{synthetic: {samples: 500, target: {classes: 3}, seed: 1}}", "{csv: {file: data.csv, target: -1}}")
        wrong = "\n".join(line for line in wrong.splitlines() if "validation" not in line)
        for config, message in ((wrong, "has the value 7 for"), (wrong.replace("data.csv", "missing.csv"), "missing.csv")):
            with self.subTest(message):
                self.assertIn(message, self.fit(config=config, output="runs/run", expect=2).err)
                self.assertFalse((self.dir / "runs").exists())
                (self.dir / "mine").mkdir(exist_ok=True)
                self.write("mine/notes.txt", "mine")
                self.fit(config=config, output="mine", expect=2)
                self.assertFalse((self.dir / "mine/checkpoints").exists())
                self.assertTrue((self.dir / "mine/notes.txt").exists())
        self.dtrain("resume", "mine", expect=2)
        self.assertEqual(os.listdir(self.dir / "mine"), ["notes.txt"])

    def test_temporary_files_of_killed_runs_are_removed(self):
        self.fit("--epochs", 1)
        left = [self.write(f"run/{name}.dtrain-tmp-999999999-0123abcd", "") for name in (".config.yaml", "checkpoints/.ckpt-00000001.h5")]
        self.dtrain("resume", "run", "--epochs", 1)
        self.assertFalse(any(path.exists() for path in left))

    def test_only_one_of_several_simultaneous_resumes_runs(self):
        self.fit("--epochs", 1)
        started = [self.start("resume", "run", "--epochs", 200) for _ in range(4)]
        codes = []
        for process in started:
            process.out, process.err = process.communicate(timeout=100)
            codes.append(process.returncode)
            self.assertNotIn("set aside", process.err)
        self.assertEqual(sorted(codes), [0, 2, 2, 2])
        self.assertEqual(len(self.metrics()), 200)

    def test_run_jsonl_records_command_time_and_machine(self):
        self.fit("--epochs", 1)
        self.dtrain("resume", "run", "--epochs", 2)
        begin, end, resume, _ = self.events()
        self.assertEqual([event["event"] for event in self.events()], ["fit", "end", "resume", "end"])
        self.assertEqual(begin["command"][1:], ["fit", "config.yaml", "--output", "run", "--epochs", "1"])
        self.assertRegex(begin["time"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[+-]\d{4}$")
        self.assertIn(begin["version"], self.dtrain("--version").out)
        self.assertEqual(begin["devices"], ["cpu:0", "cpu:1"])
        self.assertEqual(os.path.realpath(begin["working_directory"]), os.path.realpath(self.dir))
        self.assertGreaterEqual(begin["machine"]["cores"], 1)
        self.assertEqual((end["how"], end["step"]), ("done", STEPS_PER_EPOCH))
        self.assertEqual(resume["step"], STEPS_PER_EPOCH)
        process = self.begin("--overwrite", *ENDLESS)
        self.wait_for(lambda: [event["event"] for event in self.events()] == ["fit"] and self.checkpoints())
        process.send_signal(signal.SIGTERM)
        self.finish(process, 143)
        self.assertEqual([event["event"] for event in self.events()], ["fit", "end"])
        self.assertIn("stopped at step", self.events()[-1]["how"])

    def test_run_jsonl_records_bytes_that_are_not_utf8(self):
        self.write("config.yaml", CONFIG)
        self.dtrain("fit", "config.yaml", "--output", os.fsdecode(b"run\xe9"), "--epochs", 1, "--quiet")
        event = json.loads((self.dir / os.fsdecode(b"run\xe9/run.jsonl")).read_text().splitlines()[0])
        self.assertIn(os.fsdecode(b"run\xe9"), event["command"])

    def test_run_jsonl_explains_an_early_end(self):
        self.fit("--set", "train.callbacks=[{early_stopping: {patience: 1, min_delta: 100}}]", "--epochs", 30)
        words = self.dtrain("resume", "run").err
        self.assertIn("nothing left to train: a callback ended the run after 2 epochs (early stopping: val_loss has", words)
        self.assertIn("--epochs N", words)
        self.dtrain("resume", "run", "--set", "train.callbacks=[terminate_on_nan]")
        self.assertEqual(len(self.metrics()), 30)


class Killed(Saving):
    def test_the_step_log_has_every_step(self):
        config = CONFIG.replace("samples: 500", "samples: 1000000").replace("batch_size: 16", "batch_size: 50000")
        self.write("config.yaml", config.replace("every: 10 steps", "every: 2 steps"))
        process = self.start("fit", "config.yaml", "--output", "run", "--step-log", "steps")
        self.wait_for(self.checkpoints)  # saved long before the log would fill a buffer
        process.kill()
        process.communicate()
        steps = [json.loads(line)["step"] for line in (self.dir / "steps").read_text().splitlines()]
        self.assertEqual(steps, list(range(1, len(steps) + 1)))
        self.assertGreaterEqual(len(steps), int(self.checkpoints()[-1].stem.split("-")[1]))


class Failures(Saving):
    def faults(self, *arguments, **fault):
        """Runs with the fuzzers' shim and returns the calls made."""
        log = self.dir / "log"
        log.unlink(missing_ok=True)
        environment = {**self.preloaded("tests/fuzz/faults.c"), "FAULT_UNDER": os.path.realpath(self.dir / "run"), "FAULT_LOG": str(log),
                       **{key: str(value) for key, value in fault.items()}}
        process = self.start(*arguments, env=environment)
        process.out, process.err = process.communicate(timeout=100)
        return process, log.read_text().splitlines()

    def test_a_full_disk_removes_old_checkpoints_to_save_the_last(self):
        for keep, code in ((3, 0), (100, 0), (1, 1)):
            with self.subTest(keep):
                self.write("config.yaml", CONFIG.replace("every: 10 steps, keep: 100", f"every: 1 epoch, keep: {keep}"))
                fresh, calls = self.faults("fit", "config.yaml", "--output", "run")
                self.assertEqual(fresh.returncode, 0, fresh.err)
                last = max(i for i, call in enumerate(calls) if call.startswith("pwrite ") and "/.ckpt-" in call)
                shutil.rmtree(self.dir / "run")
                full, _ = self.faults("fit", "config.yaml", "--output", "run", FAULT_AT=last + 1, FAULT_DO=errno.ENOSPC)
                self.assertEqual(full.returncode, code, full.err)
                steps = [f"ckpt-{STEPS_PER_EPOCH * n:08}.h5" for n in (1, 2, 3, 4)]
                self.assertEqual([path.name for path in self.checkpoints()], steps[1:] if keep > 1 else [steps[2]])
                if code:
                    self.assertIn("No space left on device", full.err)
                shutil.rmtree(self.dir / "run")

    def test_unreadable_data_ends_the_run_with_the_last_step_saved(self):
        header = "{'descr': '<f4', 'fortran_order': False, 'shape': (20000, 12), }".ljust(117) + "\n"
        npy = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + b"\0\0\x80\x3f" * 240000
        (self.dir / "x.npy").write_bytes(npy)
        config = CONFIG.replace("{synthetic: {samples: 500, target: {classes: 3}, seed: 1}}",
                                "{npy: {input: x.npy, target: x.npy}}").replace("units: 3", "units: 12")
        config = config.replace("{sparse_categorical_crossentropy: {from_logits: true}}", "mean_squared_error")
        config = config.replace("[sparse_categorical_accuracy]", "[]").replace("every: 10 steps", "every: 1000 epochs")
        config = "\n".join(line for line in config.splitlines() if "validation" not in line) + "\n"
        self.write("config.yaml", config)
        process = self.start("fit", "config.yaml", "--output", "run", "--step-log", "log")
        self.wait_for(lambda: process.poll() is not None or (self.dir / "run/metrics.jsonl").exists())
        time.sleep(0.2)
        os.truncate(self.dir / "x.npy", 5000)
        self.finish(process, 1)
        self.assertRegex(process.err, r"error: .*x\.npy")
        self.assertIn(f"saved run/checkpoints/{self.checkpoints()[-1].name}", process.err)
        (self.dir / "x.npy").write_bytes(npy)
        self.dtrain("resume", "run", "--epochs", 1)

    def test_short_epochs_are_not_all_saved(self):
        config = CONFIG.replace("every: 10 steps, keep: 100", "best: {monitor: loss}").replace("samples: 500", "samples: 16")
        process = self.fit("--epochs", 400, config=config)
        self.assertEqual(len(self.metrics()), 400)
        self.assertLessEqual(len(self.checkpoints()), 4)  # the newest three checkpoints and the best one
        self.assertIn("best ", process.out)
        self.assertIn("every: auto", (self.dir / "run/config.yaml").read_text())


if __name__ == "__main__":
    support.main()
