"""Saved runs: their best checkpoint, moved data, dangling paths."""
import os

import support
from support import CONFIG, Case

BEST = CONFIG.replace("keep: 100}", "keep: 1, best: {monitor: val_loss, mode: min}}").replace("10 steps", "1 epoch")


class Best(Case):
    def setUp(self):
        super().setUp()
        self.fit(config=BEST)
        losses = [line["val_loss"] for line in self.metrics()]
        self.best = losses.index(min(losses)) + 1
        self.assertLess(self.best, 4)  # otherwise the test is vacuous

    def test_evaluate_uses_the_best_checkpoint(self):
        named, best, newest = (self.json("evaluate", "run", "--split", "validation", *more)
                               for more in ([], ["--best"], ["--newest"]))
        self.assertEqual(named, best)
        self.assertAlmostEqual(newest["loss"], self.metrics()[-1]["val_loss"], places=5)
        self.assertAlmostEqual(best["loss"], self.metrics()[self.best - 1]["val_loss"], places=5)
        path = f"run/checkpoints/ckpt-{self.best * 32:08}.h5"
        self.assertEqual(best["checkpoint"], {"path": path, "step": self.best * 32, "epoch": self.best, "chosen": "best"})
        self.assertEqual((newest["checkpoint"]["step"], newest["checkpoint"]["chosen"]), (128, "newest"))
        self.assertEqual(newest["split"], "validation")
        self.assertIn(f"checkpoint: {path}, step {self.best * 32}, the best by val_loss (", self.dtrain("evaluate", "run").out)
        self.assertIn("step 128, the newest\n", self.dtrain("evaluate", "run", "--newest").out)
        self.assertEqual(self.json("evaluate", path)["checkpoint"]["chosen"], "given")
        self.dtrain("evaluate", "run", "--best", "--newest", expect=2)

    def test_predict_uses_the_best_checkpoint(self):
        self.write("in.csv", "0.5," * 11 + "0.5\n")
        path = self.dir / f"run/checkpoints/ckpt-{self.best * 32:08}.h5"
        chosen = {}
        for arguments, output in ((["run"], "run.csv"), (["run", "--newest"], "newest.csv"),
                                  (["run", "--best"], "best.csv"), ([path], "file.csv")):
            document = self.json("predict", *arguments, "--input", "in.csv", "--output", output)
            chosen[output] = document["checkpoint"]["chosen"]
        self.assertEqual(list(chosen.values()), ["best", "newest", "best", "given"])
        run, newest, best, file = ((self.dir / name).read_text() for name in chosen)
        self.assertEqual((run, best), (best, file))
        self.assertNotEqual(best, newest)
        self.assertIn("the best by val_loss (", self.dtrain("predict", "run", "--input", "in.csv", "--output", "o.csv").out)

    def test_without_a_best_checkpoint_the_newest_is_used(self):
        self.fit(output="plain")
        self.assertEqual(self.json("evaluate", "plain")["checkpoint"]["chosen"], "newest")
        (self.dir / f"run/checkpoints/ckpt-{self.best * 32:08}.h5").unlink()
        process = self.dtrain("evaluate", "run", "--json")
        self.assertRegex(process.err, "this is the best checkpoint so far.*; using the newest checkpoint")
        self.assertNotIn("--best", process.err)
        self.assertIn('"chosen": "newest"', process.out)

    def test_resume_may_start_from_the_best_checkpoint(self):
        self.dtrain("resume", "run", "--best", "--epochs", self.best + 1, "--output", "other")
        self.assertEqual([line["epoch"] for line in self.metrics("other")], list(range(1, self.best + 2)))
        self.assertEqual(self.metrics("other"), self.metrics()[:self.best + 1])

    def test_a_missing_best_checkpoint_is_an_error(self):
        self.assertIn("this is a single file", self.dtrain("evaluate", self.checkpoints()[-1], "--best", expect=2).err)
        path = self.dir / f"run/checkpoints/ckpt-{self.best * 32:08}.h5"
        path.unlink()
        self.assertRegex(self.dtrain("evaluate", "run", "--best", expect=2).err,
                         rf"{path.name}: this is the best checkpoint so far.*omit --best to use the newest")
        self.fit(output="plain")
        process = self.dtrain("evaluate", "plain", "--best", expect=2)
        self.assertIn("plain: the run has no best checkpoint", process.err)
        self.assertIn("checkpoint: {best: {monitor: val_loss}}", process.err)


class Moved(Case):
    def test_moved_data_can_be_given_again(self):
        (self.dir / "old").mkdir()
        rows = "".join(f"{i % 7 / 7},{i % 5 / 5},{i % 2}\n" for i in range(20))
        (self.dir / "old/data.csv").write_text(rows)
        config = CONFIG.replace("[12]", "[2]").replace("synthetic: {samples: 500, target: {classes: 3}, seed: 1}",
                                                        "csv: {file: data.csv, target: -1}")
        self.write("old/config.yaml", config)
        self.dtrain("fit", "old/config.yaml", "--output", "old/run", "--epochs", 1, "--set", "dataset.validation={csv: {file: data.csv, target: -1}}")
        (self.dir / "old").rename(self.dir / "new")
        for command in (["evaluate", "new/run"], ["resume", "new/run", "--epochs", 2]):
            process = self.dtrain(*command, expect=2)
            self.assertIn(f"{self.dir}/old/data.csv: there is no such file or folder, and there is no folder {self.dir}/old; "
                          "set the folder of the data with --set dataset.root=DIR", process.err)
            self.dtrain(*command, "--set", "dataset.root=new")
        (self.dir / "new/data.csv").rename(self.dir / "new/other.csv")
        process = self.dtrain("check", "new/config.yaml", expect=2)
        self.assertIn(f"{self.dir}/new/data.csv: there is no such file or folder; set the folder of the data with --set dataset.root=DIR", process.err)


class Paths(Case):
    def test_invalid_paths_are_errors(self):
        (self.dir / "loop").symlink_to("loop")
        long = "x" * 300
        for command in (["evaluate"], ["resume"], ["summary"]):
            for path, word in (("loop", "symbolic links"), (long, "too long")):
                process = self.dtrain(*command, path, expect=2)
                self.assertIn(word, process.err)
                self.assertNotIn("filesystem error", process.err)

    def test_an_unreadable_folder_is_an_error(self):
        if os.geteuid() == 0:
            self.skipTest("root can read every folder")
        self.fit("--epochs", 1)
        (self.dir / "run").chmod(0)
        self.addCleanup((self.dir / "run").chmod, 0o755)
        for path in ("run", "run/checkpoints"):
            process = self.dtrain("evaluate", path, expect=2)
            self.assertIn("Permission denied", process.err)

    def test_a_deleted_working_directory_is_an_error(self):
        gone = self.dir / "gone"
        gone.mkdir()
        self.write("config.yaml", CONFIG)
        process = support.subprocess.run(
            ["bash", "-c", f"cd {gone}; rmdir {gone}; exec {support.BINARY} fit {self.dir}/config.yaml --output run"],
            capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(process.returncode, 2, process.stderr)
        self.assertNotIn("filesystem error", process.stderr)


if __name__ == "__main__":
    support.main()
