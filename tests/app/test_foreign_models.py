"""Model files of other programs: named for what they are, by content; .h5 files of Keras's are listed."""
import json
import struct
import zipfile

import support
from support import CONFIG, Case


class Named(Case):
    def archive(self, name, *members):
        with zipfile.ZipFile(self.dir / name, "w") as file:
            for member in members:
                file.writestr(member, "{}")

    def test_what_is_not_read_is_named_with_the_way_around(self):
        self.archive("b.pt", "archive/data.pkl", "archive/data/0")
        (self.dir / "old.pt").write_bytes(b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19.\x80\x02M\xe9\x03.")
        header = json.dumps({"w": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}).encode()
        (self.dir / "c.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + bytes(4))
        expected = {"b.pt": ("a file of PyTorch's", "model.save('model.h5')"),
                    "old.pt": ("a file of PyTorch's", "model.save('model.h5')"),
                    "c.safetensors": ("a safetensors file", "model.save('model.h5')")}
        for name, words in expected.items():
            self.write("config.yaml", CONFIG.replace("model:\n", f"model:\n  weights: {{from: {name}}}\n"))
            for command in (["inspect", name], ["summary", name], ["evaluate", name], ["resume", name, "--output", "other"],
                            ["fit", "config.yaml"], ["check", "config.yaml"]):
                with self.subTest(command):
                    error = self.dtrain(*command, expect=2).err
                    for word in words:
                        self.assertIn(word, error)

    def test_an_archive_of_keras_is_read_or_sent_to_import(self):
        self.archive("a.h5", "metadata.json", "config.json", "model.weights.h5")  # the content counts, not the name
        self.write("config.yaml", CONFIG.replace("model:\n", "model:\n  weights: {from: a.h5}\n"))
        for command in (["evaluate", "a.h5"], ["resume", "a.h5", "--output", "other"]):
            self.assertIn("a model that Keras saved as .keras: `dtrain import FILE`", self.dtrain(*command, expect=2).err)
        for command in (["inspect", "a.h5"], ["summary", "a.h5"], ["import", "a.h5", "--output", "new"],
                        ["fit", "config.yaml"], ["check", "config.yaml"]):
            self.assertIn("expected an HDF5 file in model.weights.h5", self.dtrain(*command, expect=2).err)


class Listed(Case):
    def test_an_h5_that_keras_wrote_is_listed(self):
        self.fit("--epochs", 1)
        # Without its header a checkpoint is a file as Keras writes them.
        (self.dir / "model.h5").write_bytes(self.checkpoints()[-1].read_bytes()[512:])
        found = self.json("inspect", "model.h5")
        self.assertEqual([(array["layer"], array["name"], array["shape"]) for array in found["weights"]],
                         [("dense", "dense/kernel:0", [12, 16]), ("dense", "dense/bias:0", [16]),
                          ("dense_1", "dense_1/kernel:0", [16, 3]), ("dense_1", "dense_1/bias:0", [3])])
        self.assertTrue(found["compiled"])
        summary = self.json("summary", "model.h5")
        self.assertEqual([(layer["kind"], layer["parameters"]) for layer in summary["layers"]],
                         [("InputLayer", 0), ("Dense", 208), ("Dropout", 0), ("Dense", 51)])
        self.assertEqual(summary["parameters"]["total"], 259)
        self.assertRegex(self.dtrain("summary", "model.h5").out, r"dense_1 +Dense +16x3, 3 +51\n")
        self.assertRegex(self.dtrain("inspect", "model.h5").out, r"dense +dense/kernel:0 +12x16 +float32 +192\n")
        self.assertIn("a new run may start with its weights", self.dtrain("evaluate", "model.h5", expect=2).err)


if __name__ == "__main__":
    support.main()
