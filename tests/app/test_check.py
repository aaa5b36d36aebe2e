"""`dtrain check` for runs on several devices: memory per device, a pipeline's schedule, strategies that fit."""
import time

import support
from support import CONFIG, Case

# Eight identical blocks.
WIDE = """\
model:
  inputs: {x: [256]}
  blocks:
    wide: {layers: [{dense: {units: 256, activation: relu}}, {layer_normalization: {}}]}
  layers:
    - wide: {repeat: 8}
    - dense: {units: 10}
dataset:
  train: {synthetic: {samples: 4096, target: {classes: 10}, seed: 2}}
strategy: {pipeline: {devices: [cpu:0, cpu:1], stages: auto, microbatches: 4}}
train:
  epochs: 1
  batch_size: 128
  loss: {sparse_categorical_crossentropy: {from_logits: true}}
  optimizer: {adamw: {learning_rate: 0.001, weight_decay: 0.01}}
"""
FOUR = "[cpu:0, cpu:1, cpu:2, cpu:3]"


def state_of(replica):
    return replica["memory"]["parameters"] + replica["memory"]["slots"]


class Memory(Case):
    def setUp(self):
        super().setUp()
        self.write("wide.yaml", WIDE)

    def plan(self, strategy, *sets):
        arguments = [a for s in (f"strategy={strategy}", *sets) for a in ("--set", s)]
        return self.json("check", "wide.yaml", *arguments)["replicas"]

    def test_each_pipeline_stage_has_a_row(self):
        rows = self.plan(f"{{pipeline: {{devices: {FOUR}, stages: auto, microbatches: 3, replicas: 2}}}}", "train.batch_size=127")
        self.assertEqual([(r["replica"], r["slot"], r["device"]) for r in rows],
                         [(0, 0, "cpu:0"), (0, 1, "cpu:1"), (1, 0, "cpu:2"), (1, 1, "cpu:3")])
        self.assertEqual([r["share"] for r in rows], [64, 64, 63, 63])
        # The last batch has 32 of the 4096 samples.
        self.assertEqual([r["last_share"] for r in rows], [16, 16, 16, 16])
        self.assertEqual(rows[0]["layers"] + rows[1]["layers"], 17)
        self.assertEqual([r["layers"] for r in rows[:2]], [r["layers"] for r in rows[2:]])
        for row in rows:
            self.assertEqual(row["memory"]["total"], sum(v for k, v in row["memory"].items() if k != "total"))
        text = self.dtrain("check", "wide.yaml").out
        self.assertRegex(text, r"replica  stage  device  layers  threads  share  of the last  parameters ")
        self.assertRegex(text, r"\n +0 +1  cpu:1 +\d+ ")
        self.assertRegex(text, r"\nThe 2 devices cpu:N are logical devices of this host\. Together they use [\d.]+ MB of its memory\.\n")

    def test_pipelines_and_sharding_divide_the_state(self):
        single = self.plan("single")
        whole = state_of(single[0])
        pipeline = self.plan(f"{{pipeline: {{devices: {FOUR}, stages: auto, microbatches: 8}}}}")
        self.assertLessEqual(max(map(state_of, pipeline)), 0.35 * whole)
        self.assertGreaterEqual(sum(map(state_of, pipeline)), whole)
        sharded = {level: self.plan(f"{{sharded: {{devices: {FOUR}, level: {level}}}}}")
                   for level in ("optimizer", "gradients", "parameters")}
        self.assertLessEqual(max(map(state_of, sharded["parameters"])), 0.30 * whole)
        for level, rows in sharded.items():
            with self.subTest(level):
                part = lambda name: max(row["memory"][name] for row in rows) / single[0]["memory"][name]
                self.assertLessEqual(part("slots"), 0.26)
                self.assertEqual(part("gradients") <= 0.30, level != "optimizer")
                self.assertEqual(part("parameters") <= 0.26, level == "parameters")

    def test_1f1b_keeps_activations_of_as_many_microbatches_as_stages(self):
        def activations(schedule, microbatches):
            rows = self.plan(f"{{pipeline: {{devices: {FOUR}, stages: auto, microbatches: {microbatches}, schedule: {schedule}}}}}",
                             f"train.batch_size={64 * microbatches}")
            return [row["memory"]["activations"] for row in rows]
        four, many = activations("1f1b", 4), activations("1f1b", 32)
        self.assertEqual(four, many)
        self.assertGreater(four[0], 2 * four[3])  # microbatches kept by the first and the last stage: four and one
        self.assertGreater(min(activations("gpipe", 32)), 4 * max(many))


class Schedule(Case):
    def test_a_pipelines_schedule_is_printed(self):
        self.write("wide.yaml", WIDE)
        document = self.json("check", "wide.yaml", "--schedule")["schedule"]
        self.assertEqual((document["schedule"], document["microbatches"], document["samples"], document["measured"]),
                         ("1f1b", 4, 32, False))
        self.assertEqual([stage["device"] for stage in document["stages"]], ["cpu:0", "cpu:1"])
        for stage in document["stages"]:
            self.assertEqual(len(stage["tasks"]), 8)
            for before, task in zip(stage["tasks"], stage["tasks"][1:]):
                self.assertLessEqual(before["end"], task["begin"] + 1e-12)
            self.assertEqual(stage["tasks"][-1]["kind"], "backward")
        end = max(stage["tasks"][-1]["end"] for stage in document["stages"])
        self.assertAlmostEqual(document["seconds"], end)
        busy = sum(task["end"] - task["begin"] for stage in document["stages"] for task in stage["tasks"])
        self.assertAlmostEqual(document["bubble"], 1 - busy / (2 * end), places=6)
        self.assertLess(abs(document["bubble"] - 1 / 5), 0.06)  # two stages, four microbatches
        text = self.dtrain("check", "wide.yaml", "--schedule").out
        self.assertIn("in microbatches of 32 samples, with estimated times:", text)
        self.assertRegex(text, r"\n0 cpu:0 +\d+ % +2 +F")
        self.assertRegex(text, r"\n1 cpu:1 +\d+ % +1 +\.+ ?F")
        self.assertRegex(text, r"\nbubble: the stages are idle for \d+ % of ")
        self.assertNotIn("schedule", self.json("check", "wide.yaml"))
        parts = "--schedule", "--set", "train.accumulate=2"
        self.assertIn("The schedule of each of the 2 parts of a batch in microbatches of 16 samples", self.dtrain("check", "wide.yaml", *parts).out)
        schedule = self.json("check", "wide.yaml", *parts)["schedule"]
        self.assertEqual((schedule["rounds"], schedule["microbatches"]), (2, 4))

    def test_schedules_use_measured_times(self):
        self.write("wide.yaml", WIDE)
        self.dtrain("check", "wide.yaml", "--measure", "--set", "train.groups=[{weights: '*/kernel', trainable: false}]")
        document = self.json("check", "wide.yaml", "--schedule", "--measure")
        self.assertTrue(document["schedule"]["measured"])
        self.assertGreater(document["schedule"]["seconds"], 0)
        self.assertGreater(document["time"]["step_seconds"], 0)

    def test_a_schedule_requires_a_pipeline(self):
        self.write("config.yaml", CONFIG)
        error = self.dtrain("check", "config.yaml", "--schedule", expect=2).err
        self.assertRegex(error, r"config.yaml:\d+:\d+: error: --schedule: the strategy 'mirrored' is not a pipeline; use `strategy: pipeline`")


class Fit(Case):
    def setUp(self):
        super().setUp()
        self.write("wide.yaml", WIDE)

    def candidates(self, *arguments, config="wide.yaml"):
        document = self.json("check", config, "--fit", *arguments)
        return document["machine"], {c["name"]: c for c in document["candidates"]}, document["candidates"]

    def test_candidates_are_ranked_for_another_machine(self):
        machine, by_name, ranked = self.candidates("--memory", "24GB", "--devices", 4)
        self.assertEqual((machine["kind"], machine["devices"]), ("gpu", 4))
        self.assertTrue(0.9 * 24e9 < machine["bytes"] < 24e9)
        self.assertLessEqual({"single", "mirrored", "sharded, optimizer", "sharded, gradients", "sharded, parameters",
                              "pipeline, 8 microbatches", "pipeline, 2 replicas, 8 microbatches"}, set(by_name))
        speeds = [c["samples_per_second"] for c in ranked]
        self.assertEqual(speeds, sorted(speeds, reverse=True))
        for candidate in ranked:
            self.assertTrue(candidate["fits"])
            self.assertEqual(candidate["batch_size"], 128)
            self.assertAlmostEqual(candidate["samples_per_second"] * candidate["step_seconds"], 128)
        order = ["single", "mirrored", "sharded, optimizer", "sharded, gradients", "sharded, parameters"]
        self.assertEqual(sorted(order, key=lambda name: -by_name[name]["bytes"]), order[:1] + order[1:])
        self.assertIn("devices: [gpu:0, gpu:1, gpu:2, gpu:3]", by_name["mirrored"]["yaml"])
        self.assertIn("stages: [", by_name["pipeline, 8 microbatches"]["yaml"])

    def test_the_largest_fitting_batch_is_found(self):
        _, all_, _ = self.candidates("--memory", "200MB", "--devices", 4, "--bandwidth", "300GB")
        _, small, ranked = self.candidates("--memory", "80MB", "--devices", 4, "--bandwidth", "300GB")
        self.assertTrue(any(c["fits"] for c in ranked))
        machine = self.candidates("--memory", "80MB", "--devices", 4)[0]
        for name, candidate in small.items():
            self.assertLessEqual(candidate["bytes"] <= machine["bytes"], candidate["fits"], name)
            if name in all_:  # recomputation is tried if a batch does not fit
                self.assertLessEqual(candidate["batch_size"], all_[name]["batch_size"])
            if candidate["fits"] and candidate["batch_size"] < 128:
                self.assertIn(f"# train.batch_size: {candidate['batch_size']}", candidate["yaml"])
        _, none, ranked = self.candidates("--memory", "1MB", "--devices", 2)
        self.assertFalse(any(c["fits"] for c in ranked))
        text = self.dtrain("check", "wide.yaml", "--fit", "--memory", "1MB").out
        self.assertIn("does not fit", text)
        self.assertRegex(text, r"GPUs? with [\d.]+ MB each, of which a run can use [\d.]+ kB \(CUDA and its libraries use the rest\)")
        self.assertIn("--devices changes it.\n", text)

    def test_the_printed_strategy_is_valid_yaml(self):
        text = self.dtrain("check", "wide.yaml", "--fit", "--devices", 2).out
        self.assertIn("are estimates", text)
        self.assertIn("2 logical devices of this host, which share", text)
        self.assertNotIn("--devices", text)
        start = time.monotonic()
        document = self.json("check", "wide.yaml", "--fit", "--devices", 2)
        self.assertLess(time.monotonic() - start, 60)
        before = WIDE.split("strategy:")[0], WIDE.split("microbatches: 4}}\n")[1]
        for candidate in document["candidates"]:
            with self.subTest(candidate["name"]):
                self.write("pasted.yaml", before[0] + candidate["yaml"] + before[1])
                plan = self.json("check", "pasted.yaml")
                # The memory must equal the memory that training plans on these devices.
                self.assertEqual(sum(r["memory"]["total"] for r in plan["replicas"]), candidate["bytes"])

    def test_candidates_remove_the_devices_of_layers(self):
        self.write("placed.yaml", WIDE.replace("{units: 10}", "{units: 10, device: cpu:1}").replace(
            "strategy: {pipeline: {devices: [cpu:0, cpu:1], stages: auto, microbatches: 4}}", "strategy: placed"))
        _, by_name, ranked = self.candidates("--devices", 2, config="placed.yaml")
        for candidate in ranked:
            self.assertIn("# remove every `device:` from the model", candidate["yaml"], candidate["name"])
        self.assertNotIn("device:", self.candidates("--devices", 2)[1]["mirrored"]["yaml"])

    def test_host_copies_of_checkpoints_count_as_memory(self):
        _, by_name, _ = self.candidates("--devices", 2)
        self.assertEqual(by_name["mirrored"]["copy_bytes"], 0)
        self.assertGreater(by_name["sharded, parameters"]["copy_bytes"], 0)
        self.assertEqual(self.candidates("--devices", 2, "--memory", "24GB")[1]["sharded, parameters"]["copy_bytes"], 0)

    def test_large_models_are_checked_in_seconds(self):
        for config in ("resnet50-synthetic", "wide-mlp"):
            with self.subTest(config):
                start = time.monotonic()
                _, by_name, ranked = self.candidates("--memory", "24GB", "--devices", 4, config=support.PROJECT / f"configs/{config}.yaml")
                self.assertLess(time.monotonic() - start, 60)  # takes seconds on an idle machine
                self.assertTrue(ranked[0]["fits"])
                self.assertLess(by_name["sharded, parameters"]["bytes"], by_name["mirrored"]["bytes"])

    def test_a_configuration_for_missing_devices_can_be_checked(self):
        self.write("there.yaml", WIDE.replace("cpu:", "gpu:").replace("train:\n  epochs", "train:\n  precision: mixed_bfloat16\n  epochs"))
        _, by_name, _ = self.candidates("--memory", "24GB", config="there.yaml")
        _, plain, _ = self.candidates("--memory", "24GB")
        self.assertLess(by_name["single"]["step_seconds"], plain["single"]["step_seconds"])
        self.assertEqual(set(by_name), set(plain))  # the plan has as many devices as the strategy names

    def test_invalid_options_are_errors(self):
        for arguments, message in ((["--memory", "24GB"], "--fit"), (["--fit", "--plan"], "--plan"),
                                   (["--fit", "--memory", "24gigs"], "--memory: expected a positive number of bytes, such as 24GB"),
                                   (["--fit", "--bandwidth", "0"], "expected a positive number of bytes per second, such as"),
                                   (["--fit", "--devices", "65"], "at most 64"), (["--fit", "--devices", "0"], "of at least 1")):
            with self.subTest(arguments):
                self.assertIn(message, self.dtrain("check", "wide.yaml", *arguments, expect=2).err)
        if self.json("gpus")["gpu"]["count"] == 0:
            error = self.dtrain("check", "wide.yaml", "--fit", "--set", "train.precision=mixed_bfloat16", expect=2).err
            self.assertIn("precision mixed_bfloat16 needs GPUs, but this machine has no GPU", error)


if __name__ == "__main__":
    support.main()
