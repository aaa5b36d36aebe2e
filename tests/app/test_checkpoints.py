"""Checkpoints under unusual conditions: names of arbitrary bytes, limited file size, dangling paths."""
import os
import resource

import support


class Bytes(support.Case):
    """File names on Linux are bytes; names that are not UTF-8 appear in JSON and YAML as in Python
    (surrogateescape)."""

    def test_a_run_resumes_in_a_directory_with_a_name_that_is_not_utf8(self):
        self.dir = self.dir / os.fsdecode(b"d\xe9")
        self.dir.mkdir()
        self.fit("--epochs", "1")
        self.dtrain("resume", "run", "--epochs", "2")
        self.assertIn("loss", self.json("evaluate", "run"))
        self.assertEqual(len(self.metrics()), 2)
        config = (self.dir / "run/config.yaml").read_text(encoding="utf-8")
        self.assertIn("\\udce9", config)
        # The resolved configuration is valid input.
        self.write("again.yaml", config)
        self.dtrain("fit", "again.yaml", "-o", "again", "--epochs", "1")

    def test_names_and_variables_need_not_be_utf8(self):
        config = support.CONFIG.replace("strategy:", "  cache: {file: '${CACHE}'}\nstrategy:")
        name, run, cache = (os.fsdecode(bytes) for bytes in (b"c\xe9.yaml", b"r\xe9", b"k\xe9"))
        self.write(name, config)
        raw = {"errors": "surrogateescape"}  # messages contain the raw bytes
        done = self.json("fit", name, "-o", run, "--epochs", "1", env={"CACHE": cache}, **raw)
        self.assertEqual(done["run_directory"], run)
        self.assertTrue((self.dir / (cache + ".train")).exists())
        done = self.json("resume", run, "--epochs", "2", **raw)
        self.assertEqual(done["run_directory"], run)
        self.assertEqual(self.json("inspect", done["checkpoint"], **raw)["path"], done["checkpoint"])


class Refusals(support.Case):
    def test_a_file_size_limit_is_a_failed_write(self):
        limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
        self.write("config.yaml", support.CONFIG)
        done = self.dtrain("fit", "config.yaml", "-o", "run", expect=1, preexec_fn=limit)
        self.assertIn("File too large", done.err)

    def test_invalid_paths_are_errors_with_a_reason(self):
        (self.dir / "loop").symlink_to("loop")
        for path, words in (("loop", "Too many levels"), ("x" * 300, "too long"), ("none", "there is no such file or directory")):
            for command in ("evaluate", "resume"):
                done = self.dtrain(command, path, expect=2)
                self.assertIn(words, done.err)
                self.assertNotIn("filesystem error", done.err)
        self.assertIn("this folder contains no checkpoints", self.dtrain("inspect", ".", expect=2).err)


if __name__ == "__main__":
    support.main()
