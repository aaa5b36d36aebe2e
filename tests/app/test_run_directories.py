"""The directory of a run: the user's files are kept, and runs without --output are numbered."""
import shutil

import support
from support import CONFIG, STEPS_PER_EPOCH, Case

TEXT = "mine, months of work\n"


class ForeignFiles(Case):
    def assert_refused(self, command, *names):
        """Asserts that the command is rejected with these names in its message, and that nothing in proj/ changes."""
        before = {path: path.read_bytes() for path in (self.dir / "proj").rglob("*") if path.is_file()}
        error = self.dtrain(*command, expect=2).err
        for name in names:
            self.assertIn(f"'{name}'", error)
        self.assertIn("--output", error)
        after = {path: path.read_bytes() for path in (self.dir / "proj").rglob("*") if path.is_file()}
        self.assertEqual(after, before)

    def test_a_foreign_directory_with_names_of_a_run_is_an_error(self):
        self.write("config.yaml", CONFIG)
        self.fit("--epochs", 1, output="other")
        run_files = ["config.yaml", "metrics.csv", "metrics.jsonl", "report.html", "run.jsonl"]
        for names in [[name] for name in run_files] + [run_files, ["checkpoints/ckpt-00000004.h5"]]:
            for checkpoints in (False, True):
                shutil.rmtree(self.dir / "proj", ignore_errors=True)
                for name in names:
                    self.write(f"proj/{name}", TEXT)
                if checkpoints:
                    self.write("proj/checkpoints/model.pt", TEXT)
                for option in ([], ["--overwrite"], ["--resume"]):
                    with self.subTest(names=names, checkpoints=checkpoints, option=option):
                        self.assert_refused(["fit", "config.yaml", "--output", "proj", *option], *names)
                self.assert_refused(["resume", "other", "--output", "proj", "--epochs", 2],
                                    *([] if "ckpt" in names[0] else names))

    def test_foreign_json_lines_are_not_a_run(self):
        self.write("config.yaml", CONFIG)
        self.write("proj/run.jsonl", '{"event": "fit of a curve"}\n')
        self.assert_refused(["fit", "config.yaml", "--output", "proj", "--overwrite"], "run.jsonl")

    def test_unrelated_files_stay(self):
        self.write("proj/notes.txt", TEXT)
        self.write("proj/checkpoints/model.pt", TEXT)
        self.write("proj/tensorboard/mine.txt", TEXT)
        self.fit("--epochs", 1, output="proj")
        self.fit("--epochs", 1, "--overwrite", output="proj")
        for name in ("notes.txt", "checkpoints/model.pt", "tensorboard/mine.txt"):
            self.assertEqual((self.dir / "proj" / name).read_text(), TEXT)
        (self.dir / "empty").mkdir()
        self.fit("--epochs", 1, output="empty")

    def test_an_empty_run_jsonl_beside_checkpoints_belongs_to_a_run(self):
        self.fit("--epochs", 1)
        for path in self.checkpoints():
            path.unlink()
        self.write("run/run.jsonl", "")  # the machine lost power before the first line was on the disk
        self.assertIn("has not saved a checkpoint yet", self.dtrain("resume", "run", expect=2).err)
        self.assertEqual(len(self.json("runs", ".")), 1)
        self.fit("--epochs", 1)
        self.assertTrue(self.checkpoints())
        self.write("proj/run.jsonl", "")
        self.write("proj/config.yaml", TEXT)
        self.assert_refused(["fit", "config.yaml", "--output", "proj"], "run.jsonl", "config.yaml")

    def test_runs_of_earlier_versions_and_copies_are_recognized(self):
        self.fit("--epochs", 1)
        (self.dir / "run/run.jsonl").unlink()  # the first versions did not write this file
        self.fit("--epochs", 1, "--overwrite")
        for path in self.checkpoints():
            path.unlink()
        self.fit("--epochs", 1)


class Numbers(Case):
    def fit_here(self, *arguments, name="titanic", epochs=1):
        self.write(f"{name}.yaml", CONFIG)
        return self.dtrain("fit", f"{name}.yaml", "--epochs", epochs, *arguments)

    def runs(self):
        return sorted(path.name for path in (self.dir / "runs").iterdir())

    def test_a_taken_directory_gets_a_number(self):
        self.assertNotIn("already contains", self.fit_here().err)
        self.assertIn("runs/titanic already contains a run, so this run is saved in runs/titanic-2", self.fit_here("--set", "seed=4").err)
        self.assertEqual(self.fit_here("--quiet").err, "")
        self.assertEqual(self.runs(), ["titanic", "titanic-2", "titanic-3"])
        self.assertIn("seed: 4", (self.dir / "runs/titanic-2/config.yaml").read_text())
        self.fit_here("--overwrite", "--set", "seed=5")
        self.assertEqual(self.runs(), ["titanic", "titanic-2", "titanic-3"])
        self.assertIn("seed: 5", (self.dir / "runs/titanic/config.yaml").read_text())
        shutil.rmtree(self.dir / "runs/titanic")
        self.fit_here()
        self.assertEqual(self.runs(), ["titanic", "titanic-2", "titanic-3"])

    def test_resume_continues_the_newest(self):
        self.fit_here("--resume")
        self.assertEqual(self.runs(), ["titanic"])
        self.fit_here()
        self.fit_here("--resume", epochs=2)
        self.assertEqual(len(self.metrics("runs/titanic")), 1)
        self.assertEqual(len(self.metrics("runs/titanic-2")), 2)
        self.dtrain("resume", "runs/titanic", "--epochs", 3)
        self.fit_here("--resume", epochs=4)
        self.assertEqual(len(self.metrics("runs/titanic")), 4)
        self.assertEqual(self.runs(), ["titanic", "titanic-2"])

    def test_resume_ignores_runs_of_another_configuration(self):
        self.fit_here()
        self.fit_here(name="titanic-2")
        self.fit_here("--resume", epochs=2)
        self.assertEqual(len(self.metrics("runs/titanic")), 2)
        self.assertEqual(len(self.metrics("runs/titanic-2")), 1)
        self.fit_here()
        self.assertEqual(self.runs(), ["titanic", "titanic-2", "titanic-3"])

    def test_resume_of_a_name_with_a_number_ignores_another_run(self):
        self.fit_here()
        self.fit_here()
        err = self.fit_here("--resume", name="titanic-2").err
        self.assertIn("runs/titanic-2 already contains a run with another name, so this run is saved in runs/titanic-2-2", err)
        self.assertEqual(self.runs(), ["titanic", "titanic-2", "titanic-2-2"])
        self.assertEqual(len(self.metrics("runs/titanic-2")), 1)

    def test_simultaneous_fits_have_separate_directories(self):
        self.write("titanic.yaml", CONFIG)
        for process in [self.start("fit", "titanic.yaml", "--epochs", 2) for _ in range(4)]:
            _, error = process.communicate(timeout=100)
            self.assertEqual(process.returncode, 0, error)
        self.assertEqual(self.runs(), ["titanic", "titanic-2", "titanic-3", "titanic-4"])
        for run in self.runs():
            self.assertEqual([path.name for path in self.checkpoints(f"runs/{run}")][-1],
                             f"ckpt-{2 * STEPS_PER_EPOCH:08}.h5")
            self.assertEqual(len(self.metrics(f"runs/{run}")), 2)


if __name__ == "__main__":
    support.main()
