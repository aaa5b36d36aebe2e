"""The command line itself: exit codes, help, streams, terminals."""
import os
import re

import support
from support import CONFIG, Case

COMMANDS = ["fit", "resume", "stop", "evaluate", "predict", "generate", "check", "summary", "inspect", "report", "runs", "gpus", "schema"]
CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f]")


class CommandLine(Case):
    def test_help_lists_commands_and_options(self):
        text = self.dtrain("--help").out
        for command in COMMANDS:
            self.assertRegex(text, rf"\n +{command} ")
            help_ = self.dtrain(command, "--help").out
            for option in ("--json", "--quiet"):
                self.assertIn(option, help_)

    def test_version_lists_the_libraries(self):
        text = self.dtrain("--version").out
        self.assertRegex(text, r"^dtrain \d+\.\d+\.\d+\n")
        for made_of in (r"oneDNN +\d+\.\d+", r"HDF5 +\d+\.\d+", r"CUDA +(none|\d+\.\d+)", r"MPI +\S+", r"compiler +(GCC|Clang) \d+.*, \w+"):
            self.assertRegex(text, rf"(?m)^{made_of}")

    def test_help_is_a_command_too(self):
        text = self.dtrain("help").out
        for command in COMMANDS:
            self.assertRegex(text, rf"\n +{command} ")
            self.assertEqual(self.dtrain("help", command).out, self.dtrain(command, "--help").out)
        self.assertEqual(text, self.dtrain("--help").out)
        self.assertIn("did you mean 'fit'?", self.dtrain("help", "fti", expect=2).err)
        # Without a command, the program prints the available commands and fails.
        process = self.dtrain(expect=2)
        for command in COMMANDS:
            self.assertRegex(process.err, rf"\n +{command} ")

    def test_wrong_arguments_are_errors(self):
        for arguments, expected in (
            ([], "expected a command"),
            (["fti"], "unknown command 'fti'; did you mean 'fit'?"),
            (["xyzzy"], "expected one of fit, resume"),
            (["fit"], "CONFIG is required"),
            (["--foo"], "unknown option '--foo'"),
            (["fit", "a.yaml", "--epochs"], "--epochs: expected a value, but none was given"),
            (["fit", "a.yaml", "--epochs", "1", "--epochs", "2"], "--epochs: this option may be given only once, but was given 2 times"),
            (["fit", "a.yaml", "--quiet=abc"], "--quiet = abc: this option is a flag; give it without a value, or with the value true or false"),
            (["fit", "a.yaml", "--epoch", "3"], "unknown option '--epoch'; did you mean '--epochs'?"),
            (["fit", "--foo"], "unknown option '--foo'"),
            (["--foo", "fit", "a.yaml"], "unknown option '--foo'"),
            (["-q", "fit", "a.yaml"], "the option '-q' must follow the command: dtrain fit -q"),
            (["--quiet", "fit"], "the option '--quiet' must follow the command: dtrain fit --quiet"),
            (["fit", "a.yaml", "-q=maybe"], "a flag of one letter has no value; remove '=maybe'"),
            (["fit", "a.yaml", "b.yaml"], "unexpected argument 'b.yaml'"),
            (["fit", "a.yaml", "--epochs", "many"], "many"),
            (["fit", "a.yaml", "--epochs", "-1"], "expected a whole number of at least 0, found '-1'"),
            (["fit", "a.yaml", "--epochs", "99999999999999999999"], "found '99999999999999999999'"),
            (["evaluate", "run", "--split", "half"], "--split: expected one of train, validation, test, found 'half'"),
            (["fit", "missing.yaml"], "missing.yaml"),
            (["fit", "."], "."),
            (["resume"], "PATH is required"),
            (["evaluate", "missing"], "missing"),
            (["predict", "missing", "--input", "x.csv", "--output", "y.csv"], "missing"),
            (["inspect", "missing.h5"], "missing.h5"),
            (["summary", "missing.h5"], "missing.h5"),
            (["gpus", "extra"], "unexpected argument 'extra' (see"),
            (["fit", "a.yaml", "--set", "seed=2", "nokey"],
             "unexpected argument 'nokey'; after --set, expected KEY=VALUE, such as train.epochs=5"),
        ):
            with self.subTest(arguments):
                process = self.dtrain(*arguments, expect=2)
                self.assertIn("error: ", process.err)
                self.assertIn(expected, process.err)
                self.assertEqual(process.out, "")

    def test_empty_values_are_errors(self):
        """A command line has an empty value if the user writes "$NAME" and the shell has no variable of this name."""
        self.write("config.yaml", CONFIG)
        for line, option in ((["fit", "config.yaml", "--output"], "--output"), (["fit", "config.yaml", "--step-log"], "--step-log"),
                             (["new", "config.yaml", "--target"], "--target"), (["report", ".", "--output"], "--output"),
                             (["check", "config.yaml", "--fit", "--memory"], "--memory"), (["summary"], "PATH")):
            with self.subTest(line):
                self.assertIn(f"error: {option}: expected a value, found an empty text", self.dtrain(*line, "", expect=2).err)
        self.assertEqual([path.name for path in self.dir.iterdir()], ["config.yaml"])
        for command in ("predict", "evaluate"):
            for delimiter in ("", ";;", "\\n"):
                self.assertIn(f"error: --delimiter: expected one character or 'whitespace', found '{delimiter}'",
                              self.dtrain(command, "run", "--input", "x.csv", "--delimiter", delimiter, expect=2).err)
        self.assertIn("error: --split: expected one of train, validation, test, found ''", self.dtrain("evaluate", "run", "--split", "", expect=2).err)

    def test_check_prints_the_plan_of_a_step(self):
        self.write("config.yaml", CONFIG)
        plan = self.json("check", "config.yaml", "--plan")["plan"]
        self.assertEqual([slot["device"] for slot in plan["slots"]], ["cpu:0"])
        self.assertEqual([phase for phase in dict.fromkeys(i["phase"] for i in plan["instructions"])],
                         ["forward", "loss", "backward"])
        written = set()
        for number, instruction in enumerate(plan["instructions"]):
            self.assertEqual(instruction["slot"], 0)
            for buffer in instruction["reads"] + instruction["writes"]:
                self.assertLessEqual(plan["buffers"][buffer]["first"], number)
                self.assertGreaterEqual(plan["buffers"][buffer]["last"], number)
            written.update(instruction["writes"])
        self.assertTrue(written)
        for buffer in plan["buffers"]:
            if buffer["first"] is not None:
                self.assertLessEqual(buffer["offset"] + buffer["bytes"], plan["slots"][0]["arena_bytes"])
        text = self.dtrain("check", "config.yaml", "--plan").out
        for instruction in plan["instructions"]:
            self.assertIn(instruction["name"], text)
        self.assertNotIn("plan", self.json("check", "config.yaml"))

    def test_check_prints_the_plan_of_an_update(self):
        self.write("config.yaml", CONFIG)

        def update(*arguments):
            plan = self.json("check", "config.yaml", "--plan", *arguments)["plan"]
            return [(i["name"], i["phase"], i["runs"]) for i in plan["update"]]

        single = ["--set", "strategy=single"]
        self.assertEqual(update(*single), [("parameters update", "update", "device")])
        self.assertEqual(update(*single, "--set", "train.clip_norm=1"),
                         [("gradient squares", "update", "device"), ("gradient scale", "update", "device"),
                          ("parameters update", "update", "device")])
        mirrored = ["--set", "strategy={mirrored: {devices: [cpu:0], replicas: 2}}"]
        self.assertEqual(update(*mirrored),
                         [("gradients reduce-scatter", "reduce", "host"), ("parameters update", "update", "host"),
                          ("device synchronize", "update", "host")])
        self.assertIn("gradients reduce-scatter", self.dtrain("check", "config.yaml", "--plan", *mirrored).out)

    def test_gpus_watches_the_devices(self):
        look = self.json("gpus", "--watch", "--count", 1)
        self.assertTrue(look["cpu"]["busy"])
        for busy in look["cpu"]["busy"].values():
            self.assertTrue(0 <= busy <= 1, busy)
        self.assertTrue(0 < look["cpu"]["memory_used"] <= look["cpu"]["memory_total"])
        lines = self.dtrain("gpus", "--watch", "--count", 2, "--interval", 1).out.splitlines()
        self.assertEqual(len([line for line in lines if line.startswith("cpu ")]), 2)
        self.assertTrue(any(line.startswith("gpu") for line in lines))
        self.assertNotIn("\x1b", "".join(lines))
        # The program exits when its output is closed.
        watch = self.start("gpus", "--watch", "--json")
        self.assertIn("cpu", watch.stdout.readline())
        watch.stdout.close()
        self.assertEqual(watch.wait(timeout=60), 0)
        watch.stderr.close()
        self.dtrain("gpus", "--watch", "--measure", expect=2)
        for option in ("--interval", "--count"):
            self.assertIn("--watch", self.dtrain("gpus", option, 1, expect=2).err)

    def test_watched_gpus_are_identified_by_index_and_pci_address(self):
        environment = self.preloaded("tests/app/fake_nvml.c", "-Wl,-soname,libnvidia-ml.so.1") | {"CUDA_VISIBLE_DEVICES": ""}
        look = self.json("gpus", "--watch", "--count", 1, env=environment)
        self.assertEqual([(gpu["index"], gpu["pci"], gpu["memory_used"] >> 20) for gpu in look["gpus"]],
                         [(None, "0000:41:00.0", 324), (None, "0000:40:00.0", 424), (None, "0000:c1:00.0", 524)])
        # The program makes CUDA number GPUs in PCI order, unless the environment has another order.
        self.assertEqual(look["gpus"][0]["name"], "fake GPU 41, PCI_BUS_ID")
        environment["DTRAIN_P2P"] = "0"
        look = self.json("gpus", "--watch", "--count", 1, env=environment)
        self.assertEqual(look["gpus"][0]["name"], "fake GPU 41, PCI_BUS_ID, NCCL_P2P_DISABLE=1")
        del environment["DTRAIN_P2P"]
        environment["CUDA_DEVICE_ORDER"] = "FASTEST_FIRST"
        text = self.dtrain("gpus", "--watch", "--count", 1, env=environment).out
        self.assertIn("other 0000:41:00.0  utilisation unknown  memory 340 MB of 1.1 GB  fake GPU 41, FASTEST_FIRST", text)

    def test_set_takes_one_value_and_is_repeatable(self):
        self.write("config.yaml", CONFIG)
        plan = self.json("check", "--set", "train.epochs=9", "--set", "strategy={mirrored: {devices: [cpu:0], replicas: 4}}",
                         "config.yaml")
        self.assertEqual((plan["epochs"], len(plan["replicas"])), (9, 4))
        process = self.dtrain("check", "config.yaml", "--set", "train.epoch=9", expect=2)
        self.assertIn("did you mean 'epochs'?", process.err)
        self.dtrain("check", "config.yaml", "--set", "nonsense", expect=2)

    def test_a_path_in_set_is_relative_to_the_working_directory(self):
        self.write("config.yaml", CONFIG)
        (self.dir / "below").mkdir()
        self.dtrain("fit", "config.yaml", "--output", "run", "--epochs", 1, "--set", "dataset.cache={file: below/cache}")
        self.assertTrue(list((self.dir / "below").iterdir()))

    def test_a_full_standard_output_is_a_failure(self):
        with open("/dev/full", "w") as full:
            self.assertIn("standard output", self.dtrain("schema", expect=1, stdout=full).err)

    def test_a_closed_output_pipe_is_no_failure(self):
        read, write = os.pipe()
        os.close(read)
        self.dtrain("schema", stdout=write)
        os.close(write)

    def test_one_of_several_tasks_of_an_unsupported_launcher_is_an_error(self):
        """test_processes.py tests the supported launchers."""
        for variables in ({"WORLD_SIZE": "2", "RANK": "1"}, {"MV2_COMM_WORLD_SIZE": "3"}):
            with self.subTest(variables):
                message = self.fit(env=variables, expect=2).err
                name, tasks = next(iter(variables.items()))
                self.assertIn(f"one of {tasks} tasks ({name}={tasks})", message)
                self.assertFalse((self.dir / "run").exists())
                self.dtrain("fit", "config.yaml", env=variables, expect=2)
                self.assertFalse((self.dir / "runs").exists())
        for variables in ({"OMPI_COMM_WORLD_SIZE": "1", "PMI_SIZE": "1", "WORLD_SIZE": "1"}, {"SLURM_NTASKS": "4"},
                          {"SLURM_NTASKS": "4", "SLURM_STEP_ID": "4294967290", "SLURM_STEP_NUM_TASKS": "1"}):  # a shell of salloc
            with self.subTest(variables):
                self.fit("--epochs", 1, "--overwrite", env=variables)

    def test_an_unwritable_run_directory_is_an_error(self):
        self.write("config.yaml", CONFIG)
        self.write("file", "")
        self.assertIn("file", self.dtrain("fit", "config.yaml", "--output", "file/run", expect=2).err)


class ControlCharacters(Case):
    """Control characters in data, names and files are escaped wherever a terminal may show them."""
    CONFIG = """\
model: {inputs: {x: [2]}, layers: [{dense: {units: 2}}]}
dataset: {train: {csv: {file: a.csv, target: -1}}}
strategy: single
train:
  epochs: 1
  batch_size: 2
  loss: {sparse_categorical_crossentropy: {from_logits: true}}
  optimizer: sgd
  metrics: [confusion_matrix]
"""

    def shown(self, *arguments, **options):
        process = self.dtrain(*arguments, **options)
        self.assertIsNone(CONTROL.search(process.out + process.err), process.out + process.err)
        return process.out + process.err

    def test_control_characters_of_a_cell_are_escaped_in_messages(self):
        self.write("config.yaml", self.CONFIG)
        for cell, shown in (("\x1b]0;title\x07\x1b[2J", r"'\x1b]0;title\x07\x1b[2J'"), ("1\0\0", r"'1\x00\x00'")):
            self.write("a.csv", f"1,2,0\n{cell},3,1\n")
            message = self.shown("check", "config.yaml", expect=2)
            self.assertIn(shown, message)
            self.assertGreater(len(message), message.index(shown) + len(shown) + 10)  # the text after it is also shown

    def test_control_characters_of_names_are_escaped_in_tables(self):
        self.write("config.yaml", self.CONFIG)
        self.write("a.csv", "1,2,a\n2,1,\x1b[31mb\n3,4,a\n")
        self.dtrain("fit", "config.yaml", "--output", "x\n\x1b[31my")
        self.assertIn(r"x\n\x1b[31my ", self.shown("runs", "."))
        for option in ("--per-class", "--errors=3"):
            self.assertIn(r"\x1b[31mb", self.shown("evaluate", "x\n\x1b[31my", "--split", "train", option))
        self.assertEqual(self.json("runs", ".")[0]["path"], "./x\n\x1b[31my")


class Streams(Case):
    def test_output_has_plain_lines_without_a_terminal(self):
        process = self.fit()
        lines = process.err.splitlines()
        self.assertEqual(len(lines), 3 + 4)  # three lines about the run, then one per epoch
        self.assertRegex(lines[3], r"^epoch 1/4  loss \d")
        self.assertIsNone(CONTROL.search(process.err + process.out))
        self.assertRegex(process.out, r"(?m)^saved run/checkpoints/ckpt-\d{8}\.h5$")

    def test_a_run_prints_its_model_data_and_directory(self):
        what, data, where = self.fit().err.splitlines()[:3]
        self.assertRegex(what, r"^config: 259 parameters; mirrored, 2 replicas on cpu:0, cpu:1 \(.+, \d+ cores?\)$")
        self.assertEqual(data, "500 samples, 60 to validate; batches of 16, 32 steps per epoch, 4 epochs")
        self.assertEqual(where, "saved in run")
        resumed = self.dtrain("resume", "run", "--epochs", 5).err
        self.assertIn("5 epochs; continues after epoch 4, step 128\n", resumed)
        self.assertEqual(self.dtrain("resume", "run", "--epochs", 6, "--quiet").err, "")

    def test_a_long_epoch_prints_its_progress_every_minute(self):
        process = self.fit("--epochs", 1, env=self.preloaded("tests/app/fast_clock.c"))  # by the fast clock, every step takes minutes
        lines = [line for line in process.err.splitlines() if line.startswith("epoch 1/1  ")]
        steps = [re.match(r"epoch 1/1  step (\d+)/32  loss [\d.]+  sparse_categorical_accuracy [\d.]+  \S+ samples/s  .* left$", line)
                 for line in lines]
        self.assertEqual([int(step[1]) for step in steps if step], list(range(1, 32)))
        self.assertEqual(lines[31:35], [f"epoch 1/1  validating {batch}/4" for batch in range(4)])
        self.assertRegex(lines[35], r"^epoch 1/1  loss ")


if __name__ == "__main__":
    support.main()
