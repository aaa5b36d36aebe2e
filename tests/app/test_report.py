"""report.html, `dtrain report`, `dtrain runs` and `dtrain completion`."""
import base64
import html.parser
import json
import os
import re
import shutil
import struct
import subprocess
import unittest

import support
from support import CONFIG, STEPS_PER_EPOCH, Case

ALIEN = "</script><script>alert(1)</script>"


class Page(html.parser.HTMLParser):
    """Collects the links and the scripts that a browser would load or run."""

    def __init__(self, text):
        super().__init__()
        self.links, self.scripts, self.inside = [], [], None
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.links += [attributes[key] for key in ("src", "href", "action", "data") if key in attributes]
        self.inside = attributes.get("id", tag) if tag == "script" else None
        if tag == "script":
            self.scripts.append((self.inside, ""))

    def handle_data(self, data):
        if self.inside:
            self.scripts[-1] = (self.inside, self.scripts[-1][1] + data)

    def handle_endtag(self, tag):
        self.inside = None


class Reports(Case):
    def page(self, path):
        page = Page((self.dir / path).read_text(encoding="utf-8"))
        self.assertEqual([name for name, _ in page.scripts], ["data", "script"])
        self.assertEqual(page.links, ["data:,"])  # an empty favicon
        self.assertNotIn("KiB", page.scripts[1][1])  # decimal units, as everywhere in dtrain
        self.assertNotIn("http", re.sub(r"http-equiv|http://www.w3.org/2000/svg", "", page.scripts[1][1]))
        return json.loads(page.scripts[0][1])

    def only_run(self, path="run/report.html"):
        return self.page(path)["runs"][0]

    def test_every_run_has_a_report(self):
        self.fit()
        run = self.only_run()
        lines = self.metrics()
        self.assertEqual((run["name"], run["state"], run["epochs"], run["step"]), ("config", "finished", 4, 4 * STEPS_PER_EPOCH))
        for name in ("loss", "val_loss", "sparse_categorical_accuracy", "learning_rate"):
            self.assertEqual(run["series"][name]["epochs"], [1, 2, 3, 4])
            for shown, line in zip(run["series"][name]["values"], lines):
                self.assertAlmostEqual(shown, line[name], delta=abs(line[name]) * 1e-5)
        self.assertEqual([layer["name"] for layer in run["layers"]], ["x", "dense", "dropout", "dense_1"])
        self.assertEqual(sum(layer["parameters"] for layer in run["layers"]), run["parameters"])
        self.assertEqual([replica["device"] for replica in run["memory"]], ["cpu:0", "cpu:1"])
        self.assertEqual([(replica["replica"], replica["slot"]) for replica in run["memory"]], [(0, 0), (1, 0)])
        self.assertEqual(run["config"], (self.dir / "run/config.yaml").read_text())
        self.assertEqual(run["settings"]["train.batch_size"], "16")
        time = run["time"]
        self.assertGreater(time["computing"], 0)
        self.assertGreater(time["validating"], 0)
        self.assertLessEqual(sum(seconds for kind, seconds in time.items() if kind not in ("total", "reading")), time["total"] * 1.0001)
        self.assertEqual([event["event"] for event in run["events"]], ["fit", "end"])

    def test_the_best_epoch_is_marked(self):
        config = CONFIG.replace("keep: 100}", "keep: 2, best: {monitor: val_loss, mode: min}}").replace("accuracy]", "accuracy, confusion_matrix]")
        self.fit(config=config)
        run = self.only_run()
        best = min(self.metrics(), key=lambda line: line["val_loss"])
        self.assertLess(best["epoch"], 4)  # otherwise the test is vacuous
        self.assertEqual((run["kept_best"]["epoch"], run["kept_best"]["monitor"]), (best["epoch"], "val_loss"))
        for name in ("loss", "val_loss", "val_sparse_categorical_accuracy"):
            self.assertAlmostEqual(run["at_best"][name], best[name], delta=abs(best[name]) * 1e-5)
        self.assertEqual(run["tables_epoch"], best["epoch"])
        tables = [json.loads(line) for line in (self.dir / "run/tables.jsonl").read_text().splitlines()]
        self.assertEqual([line["epoch"] for line in tables], [best["epoch"], 4])
        self.assertEqual(run["tables"]["val_confusion_matrix"], tables[0]["val_confusion_matrix"])
        self.assertNotEqual(tables[0]["confusion_matrix"], tables[1]["confusion_matrix"])
        self.fit(output="plain")
        self.assertIsNone(self.only_run("plain/report.html")["kept_best"])

    def test_keys_given_by_the_user_are_listed(self):
        self.fit("--set", "train.clip_norm=5")
        written = self.only_run()["written"]
        self.assertIn("train.clip_norm", written)
        self.assertIn("train.optimizer.adam.learning_rate.exponential_decay.initial", written)
        self.assertIn("model.layers.1.dropout.rate", written)
        self.assertNotIn("train.optimizer.adam.beta_1", written)
        self.assertIn("train.optimizer.adam.beta_1", self.only_run()["settings"])
        self.dtrain("resume", "run", "--epochs", 5, "--set", "train.accumulate=2")
        self.assertEqual(set(self.only_run()["written"]) - set(written), {"train.accumulate"})

    def test_an_auc_has_a_curve(self):
        config = CONFIG.replace("dense: {units: 3}", "dense: {units: 1}").replace("target: {classes: 3}", "target: {shape: [1]}").replace(
            "{sparse_categorical_crossentropy: {from_logits: true}}", "{binary_crossentropy: {from_logits: true}}").replace(
            "[sparse_categorical_accuracy]", "[auc, {auc: {curve: PR, name: pr}}]")
        self.fit(config=config)
        tables = self.only_run()["tables"]
        self.assertEqual(tables["auc"], tables["pr"])
        hits, misses = tables["val_auc"]["true_positives"], tables["val_auc"]["false_positives"]
        self.assertEqual(len(hits), len(misses))
        self.assertEqual(hits[-1] + misses[-1], 60)
        self.assertEqual((hits, misses), (sorted(hits), sorted(misses)))
        area = sum((x - before_x) * (y + before_y) / 2 for before_x, x, before_y, y in zip([0] + misses, misses, [0] + hits, hits))
        self.assertAlmostEqual(area / hits[-1] / misses[-1], self.metrics()[-1]["val_auc"], delta=0.02)

    def test_sample_images_are_shown(self):
        config = """\
model: {inputs: {image: [6, 200, 1]}, layers: [flatten, {dense: {units: 3}}]}
dataset:
  train: {synthetic: {samples: 40, target: {classes: 3}}}
  validation: {synthetic: {samples: 30, seed: 2, target: {classes: 3}}}
strategy: {mirrored: {devices: [cpu:0, cpu:1]}}
train: {epochs: 2, batch_size: 7, loss: {sparse_categorical_crossentropy: {from_logits: true}}, optimizer: sgd}
"""
        self.fit(config=config)
        shown = self.only_run()["samples"]
        self.assertEqual((shown["split"], shown["of"]), ("validation", 30))
        self.assertEqual([int(sample["id"]) for sample in shown["samples"]], [i * 30 // 12 for i in range(12)])
        worst = self.json("evaluate", "run", "--split", "validation", "--errors", 12)["errors"]
        for sample, error in zip(shown["worst"], worst):
            self.assertEqual(int(sample["id"]), error["row"])
            self.assertEqual(sample["outputs"], [{"target": error["target"], "prediction": error["prediction"]}])
            self.assertAlmostEqual(sample["loss"], error["loss"], places=5)
            (picture,) = sample["pictures"]
            png = base64.b64decode(picture.removeprefix("data:image/png;base64,"), validate=True)
            self.assertEqual(png[:8] + png[12:24], b"\x89PNG\r\n\x1a\nIHDR" + struct.pack(">2I", 100, 3))  # every second pixel
        self.dtrain("report", "run", "-o", "again.html")
        self.assertEqual(self.only_run("again.html")["samples"], shown)

    def test_each_stage_of_a_pipeline_has_a_row(self):
        self.fit(config=CONFIG.replace("{mirrored: {devices: [cpu:0, cpu:1]}}", "{pipeline: {devices: [cpu:0, cpu:1], stages: [dropout]}}"))
        self.assertEqual([(row["replica"], row["slot"], row["device"]) for row in self.only_run()["memory"]], [(0, 0, "cpu:0"), (0, 1, "cpu:1")])

    def test_a_killed_and_resumed_run_is_shown(self):
        self.write("config.yaml", CONFIG.replace("epochs: 4", "epochs: 1000"))
        self.kill_on_the_way("fit", "config.yaml", "--output", "run", after=STEPS_PER_EPOCH * 3)
        self.dtrain("report", "run", "--output", "killed.html")
        killed = self.only_run("killed.html")
        self.assertEqual((killed["state"], killed["how"], killed["time"]), ("stopped", "killed, or the machine stopped", None))
        self.dtrain("resume", "run", "--epochs", 6)
        run = self.only_run()
        self.assertEqual((run["state"], run["series"]["loss"]["epochs"]), ("finished", [1, 2, 3, 4, 5, 6]))
        self.assertEqual([event["event"] for event in run["events"]], ["fit", "resume", "end"])
        self.assertGreater(run["time"]["computing"], 0)
        self.dtrain("resume", "run", "--epochs", 6)  # nothing left to train, so the times do not change
        self.assertEqual(self.only_run()["time"]["computing"], run["time"]["computing"])

    def test_several_runs_are_compared(self):
        for rate in (1, 2):
            self.fit("--set", f"train.batch_size={16 * rate}", output=f"runs/{rate}")
        self.assertIn("wrote both.html", self.dtrain("report", "runs/1", "runs/2/", "-o", "both.html").out)
        data = self.page("both.html")
        self.dtrain("report", "runs", "-o", "all.html")
        self.assertEqual([run["path"] for run in self.page("all.html")["runs"]], ["runs/1", "runs/2"])
        self.assertEqual([run["path"] for run in data["runs"]], ["runs/1", "runs/2"])
        first, second = (run["settings"] for run in data["runs"])
        self.assertEqual({key for key in first if first[key] != second.get(key)}, {"train.batch_size"})
        self.assertIn("val_sparse_categorical_accuracy", data["larger_is_better"])
        self.assertNotIn("val_loss", data["larger_is_better"])
        self.assertEqual(data["runs"], self.json("report", "runs/1", "runs/2")["runs"])

    def test_different_short_values_are_shown(self):
        rate = "train.optimizer.adam.learning_rate"
        runs = {"a": ("model.layers.2.dense=3", f"{rate}=0.01"), "b": ("model.layers.2.dense={units: 3, use_bias: false}", f"{rate}=0.1")}
        for name, sets in runs.items():
            self.fit("--epochs", 1, *[part for one in sets for part in ("--set", one)], output=name)
        differing = self.json("report", "a", "b")["differences"]
        self.assertEqual(differing, [{"key": "model.layers.2.dense.use_bias", "values": ["true", "false"]}, {"key": rate, "values": ["0.01", "0.1"]}])
        self.fit("--epochs", 1, output="c")  # uses exponential_decay as its learning rate
        by_key = {each["key"]: each["values"] for each in self.json("report", "a", "c")["differences"]}
        self.assertEqual(by_key, {rate: ["0.01", "exponential_decay"], f"{rate}.exponential_decay.initial": [None, "0.01"],
                                  f"{rate}.exponential_decay.decay_steps": [None, "50"], f"{rate}.exponential_decay.decay_rate": [None, "0.9"]})
        self.assertEqual(self.json("report", "a")["differences"], [])

    def test_names_are_shown_as_text(self):
        config = CONFIG.replace("seed: 3", f"seed: 3\nname: '{ALIEN.replace('/', '')}'").replace(
            "- dense: {units: 3}", "- dense: {units: 3, name: '<img src=x onerror=alert(1)>'}")
        if self.dtrain("check", self.write("config.yaml", config), expect=None).returncode:
            config = CONFIG  # the program rejects such names
        self.write("config.yaml", config)
        os.mkdir(self.dir / "a<b>")
        self.dtrain("fit", "config.yaml", "--output", "a<b>/<script>alert(2)<b>")
        self.page("a<b>/<script>alert(2)<b>/report.html")

    def test_wrong_arguments_are_errors(self):
        self.fit("--epochs", 1)
        self.write("other/file.txt", "")
        foreign = self.write("other/page.html", "<!doctype html>\n<title>mine</title>\n")
        for arguments, message in ((["report"], "RUN"), (["report", "missing"], "missing: expected a run directory"),
                                   (["report", "other"], "(with config.yaml and run.jsonl), but found another directory"),
                                   (["report", "run", "-o", "run/config.yaml"], "run/config.yaml: expected a report of dtrain"),
                                   (["report", "run", "-o", "other/page.html"], "other/page.html: expected a report of dtrain"),
                                   (["report", "run", "-o", "other"], "other: expected a report of dtrain"),
                                   (["runs", "missing"], "missing: expected a folder"),
                                   (["completion"], "SHELL"), (["completion", "csh"], "csh")):
            with self.subTest(arguments):
                self.assertIn(message, self.dtrain(*arguments, expect=2).err)

        self.assertIn("mine", foreign.read_text())
        for _ in range(2):  # the second report overwrites the first, although its name does not end in .html
            self.dtrain("report", "run", "-o", "page")
        self.page("page")

    def test_a_report_that_cannot_be_written_is_a_warning(self):
        os.makedirs(self.dir / "run/report.html/in-the-way")
        self.write("config.yaml", CONFIG)
        self.assertIn("report.html", self.dtrain("fit", "config.yaml", "--output", "run", expect=None).err)


class Lists(Case):
    def test_runs_lists_runs_in_a_folder(self):
        self.assertIn("runs: expected a folder", self.dtrain("runs", expect=2).err)
        self.fit(output="runs/a")
        self.fit("--epochs", 2, output="runs/deeper/b")
        self.write("config.yaml", CONFIG.replace("epochs: 4", "epochs: 100000"))
        process = self.start("fit", "config.yaml", "--output", "runs/c", "--step-log", "log")
        try:
            while not (self.dir / "runs/c/metrics.jsonl").exists() or not (self.dir / "runs/c/metrics.jsonl").read_text():
                self.assertIsNone(process.poll())
            found = {run["path"]: run for run in self.json("runs")}
            self.assertEqual({path: run["state"] for path, run in found.items()},
                             {"runs/a": "finished", "runs/c": "running", "runs/deeper/b": "finished"})
        finally:
            process.kill()
            process.communicate()
        found = {run["path"]: run for run in self.json("runs", "runs")}
        self.assertEqual(found["runs/c"]["state"], "stopped")
        self.assertEqual(found["runs/a"]["best"]["monitor"], "val_loss")
        lines = self.metrics("runs/a")
        self.assertEqual(found["runs/a"]["best"]["value"], min(line["val_loss"] for line in lines))
        text = self.dtrain("runs").out
        self.assertRegex(text, r"(?m)^runs/a +finished +4/4 +val_loss [\d.]+ +\d +\d{4}-\d\d-\d\d \d\d:\d\d$")
        self.fit("--set", "train.optimizer={sgd: {learning_rate: 1.0e+30}}", output="runs/bad", expect=1)
        self.assertEqual({run["path"]: run["state"] for run in self.json("runs")}["runs/bad"], "failed")
        os.mkdir(self.dir / "none")
        self.assertEqual(self.dtrain("runs", "none").out, "no runs in none\n")


class Completion(Case):
    def complete(self, *words):
        """Returns bash's completions for the last word."""
        script = 'source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _dtrain; printf "%s\\n" "${COMPREPLY[@]}"'
        (self.dir / "completion").write_text(self.dtrain("completion", "bash").out)
        run = subprocess.run(["bash", "-c", script, "bash", "completion", "dtrain", *words], cwd=self.dir, text=True,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertEqual((run.returncode, run.stderr), (0, ""))
        return run.stdout.split()

    def test_bash_completes_commands_and_options(self):
        self.assertEqual(self.complete("f"), ["fit"])
        self.assertIn("completion", self.complete(""))
        self.assertEqual(self.complete("fit", "--res"), ["--resume"])
        self.assertEqual(self.complete("completion", "z"), ["zsh"])
        self.assertEqual(self.complete("evaluate", "run", "--split", "te"), ["test"])
        self.assertEqual(self.complete("fit", "x"), [])  # bash completes files itself

    def test_completion_has_every_command_and_option(self):
        scripts = [self.dtrain("completion", shell).out for shell in ("bash", "zsh", "fish")]
        commands = re.findall(r"(?m)^  ([a-z]+) ", self.dtrain("--help").out.split("SUBCOMMANDS")[-1].split("Subcommands")[-1])
        self.assertIn("fit", commands)
        for command in commands:
            for option in re.findall(r"--([a-z-]+)", self.dtrain("help", command).out):
                for script in scripts:
                    self.assertIn(option, script)

    def test_completion_scripts_of_other_shells_are_valid(self):
        for shell, arguments in (("zsh", ["-n"]), ("fish", ["--no-execute"])):
            if not shutil.which(shell):
                continue
            script = self.write("script", self.dtrain("completion", shell).out)
            self.assertEqual(subprocess.run([shell, *arguments, script], stderr=subprocess.PIPE).stderr, b"")


if __name__ == "__main__":
    support.main()
