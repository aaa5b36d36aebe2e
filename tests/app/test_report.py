"""report.html, `dtrain report`, `dtrain runs` and `dtrain completion`."""
import html.parser
import json
import os
import re
import shutil
import subprocess
import unittest

import support
from support import CONFIG, STEPS_PER_EPOCH, Case

ALIEN = "</script><script>alert(1)</script>"


class Page(html.parser.HTMLParser):
    """What a browser would load or run."""

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
        self.assertEqual(page.links, ["data:,"])  # the icon that there is none
        self.assertNotIn("http", re.sub(r"http-equiv|http://www.w3.org/2000/svg", "", page.scripts[1][1]))
        return json.loads(page.scripts[0][1])

    def only_run(self, path="run/report.html"):
        return self.page(path)["runs"][0]

    def test_every_run_has_one(self):
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

    def test_the_stages_of_a_pipeline_have_a_row_each(self):
        self.fit(config=CONFIG.replace("{mirrored: {devices: [cpu:0, cpu:1]}}", "{pipeline: {devices: [cpu:0, cpu:1], stages: [dropout]}}"))
        self.assertEqual([(row["replica"], row["slot"], row["device"]) for row in self.only_run()["memory"]], [(0, 0, "cpu:0"), (0, 1, "cpu:1")])

    def test_a_run_that_was_killed_and_went_on(self):
        self.write("config.yaml", CONFIG.replace("epochs: 4", "epochs: 1000"))
        self.kill_on_the_way("fit", "config.yaml", "--output", "run", after=STEPS_PER_EPOCH * 3)
        self.dtrain("report", "run", "--output", "killed.html")
        killed = self.only_run("killed.html")
        self.assertEqual((killed["state"], killed["how"], killed["time"]), ("stopped", "killed, or its machine went down", None))
        self.dtrain("resume", "run", "--epochs", 6)
        run = self.only_run()
        self.assertEqual((run["state"], run["series"]["loss"]["epochs"]), ("finished", [1, 2, 3, 4, 5, 6]))
        self.assertEqual([event["event"] for event in run["events"]], ["fit", "resume", "end"])
        self.assertGreater(run["time"]["computing"], 0)
        self.dtrain("resume", "run", "--epochs", 6)  # has nothing to do, and tells nothing new of the time
        self.assertEqual(self.only_run()["time"]["computing"], run["time"]["computing"])

    def test_several_runs(self):
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

    def test_what_people_name_is_text(self):
        config = CONFIG.replace("seed: 3", f"seed: 3\nname: '{ALIEN.replace('/', '')}'").replace(
            "- dense: {units: 3}", "- dense: {units: 3, name: '<img src=x onerror=alert(1)>'}")
        if self.dtrain("check", self.write("config.yaml", config), expect=None).returncode:
            config = CONFIG  # such names are refused
        self.write("config.yaml", config)
        os.mkdir(self.dir / "a<b>")
        self.dtrain("fit", "config.yaml", "--output", "a<b>/<script>alert(2)<b>")
        self.page("a<b>/<script>alert(2)<b>/report.html")

    def test_mistakes(self):
        self.fit("--epochs", 1)
        self.write("other/file.txt", "")
        foreign = self.write("other/page.html", "<!doctype html>\n<title>mine</title>\n")
        for arguments, message in ((["report"], "RUN"), (["report", "missing"], "missing: expected a run directory"),
                                   (["report", "other"], "found something else"),
                                   (["report", "run", "-o", "run/config.yaml"], "run/config.yaml: expected a report by dtrain"),
                                   (["report", "run", "-o", "other/page.html"], "other/page.html: expected a report by dtrain"),
                                   (["report", "run", "-o", "other"], "other: expected a report by dtrain"),
                                   (["runs", "missing"], "missing: expected a folder"),
                                   (["completion"], "SHELL"), (["completion", "csh"], "csh")):
            with self.subTest(arguments):
                self.assertIn(message, self.dtrain(*arguments, expect=2).err)

        self.assertIn("mine", foreign.read_text())
        for _ in range(2):  # the second is written over the first, whatever its name
            self.dtrain("report", "run", "-o", "page")
        self.page("page")

    def test_a_report_that_cannot_be_written_is_a_warning(self):
        os.makedirs(self.dir / "run/report.html/in-the-way")
        self.write("config.yaml", CONFIG)
        self.assertIn("report.html", self.dtrain("fit", "config.yaml", "--output", "run", expect=None).err)


class Lists(Case):
    def test_runs(self):
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
        """What bash offers for the last of these words."""
        script = 'source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _dtrain; printf "%s\\n" "${COMPREPLY[@]}"'
        (self.dir / "completion").write_text(self.dtrain("completion", "bash").out)
        run = subprocess.run(["bash", "-c", script, "bash", "completion", "dtrain", *words], cwd=self.dir, text=True,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertEqual((run.returncode, run.stderr), (0, ""))
        return run.stdout.split()

    def test_bash(self):
        self.assertEqual(self.complete("f"), ["fit"])
        self.assertIn("completion", self.complete(""))
        self.assertEqual(self.complete("fit", "--res"), ["--resume"])
        self.assertEqual(self.complete("completion", "z"), ["zsh"])
        self.assertEqual(self.complete("evaluate", "run", "--split", "te"), ["test"])
        self.assertEqual(self.complete("fit", "x"), [])  # files, which bash itself completes

    def test_every_command_and_option_is_there(self):
        scripts = [self.dtrain("completion", shell).out for shell in ("bash", "zsh", "fish")]
        commands = re.findall(r"(?m)^  ([a-z]+) ", self.dtrain("--help").out.split("SUBCOMMANDS")[-1].split("Subcommands")[-1])
        self.assertIn("fit", commands)
        for command in commands:
            for option in re.findall(r"--([a-z-]+)", self.dtrain("help", command).out):
                for script in scripts:
                    self.assertIn(option, script)

    def test_other_shells_take_theirs(self):
        for shell, arguments in (("zsh", ["-n"]), ("fish", ["--no-execute"])):
            if not shutil.which(shell):
                continue
            script = self.write("script", self.dtrain("completion", shell).out)
            self.assertEqual(subprocess.run([shell, *arguments, script], stderr=subprocess.PIPE).stderr, b"")


if __name__ == "__main__":
    support.main()
