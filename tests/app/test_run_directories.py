"""Files of the user's own stay, also under --overwrite."""
import shutil

import support
from support import CONFIG, Case

TEXT = "mine, months of work\n"


class ForeignFiles(Case):
    def assert_refused(self, command, *names):
        """Refused, with these names in the message; nothing in proj/ changes."""
        before = {path: path.read_bytes() for path in (self.dir / "proj").rglob("*") if path.is_file()}
        error = self.dtrain(*command, expect=2).err
        for name in names:
            self.assertIn(f"'{name}'", error)
        self.assertIn("--output", error)
        after = {path: path.read_bytes() for path in (self.dir / "proj").rglob("*") if path.is_file()}
        self.assertEqual(after, before)

    def test_names_of_a_run_in_a_foreign_directory_are_refused(self):
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

    def test_foreign_json_lines_are_no_run(self):
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

    def test_runs_of_earlier_versions_and_copies_are_recognised(self):
        self.fit("--epochs", 1)
        (self.dir / "run/run.jsonl").unlink()  # the first versions wrote none
        self.fit("--epochs", 1, "--overwrite")
        for path in self.checkpoints():
            path.unlink()
        self.fit("--epochs", 1)


if __name__ == "__main__":
    support.main()
