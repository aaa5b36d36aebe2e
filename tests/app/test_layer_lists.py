"""The fuzzers and the comparisons with Keras use models that contain every layer and every optimizer. This test does not
need Keras."""
import json
import re
import sys

import support
from support import PROJECT, Case

sys.path[:0] = [str(PROJECT / "tests/keras"), str(PROJECT / "tests/fuzz")]
import fuzz_config  # noqa: E402
import models  # noqa: E402
import read_from_keras  # noqa: E402
import train_as_keras  # noqa: E402


class AnyKeras:
    """Replaces the module `keras` in tests/keras. Every attribute of this object exists and can be called."""
    __version__ = "3.0.0"

    def __getattr__(self, name):
        return self

    def __call__(self, *arguments, **options):
        return self


def kinds_in(text):
    """Returns the kinds of the layers that a configuration has on separate lines, as in `- dense: {units: 1}`."""
    return set(re.findall(r"(?m)^ *- (\w+)", text))


class LayerLists(Case):
    def setUp(self):
        super().setUp()
        self.maker = fuzz_config.Maker(json.loads(self.dtrain("schema").out), None)
        self.kinds = set(fuzz_config.kind_names(self.maker, "layer"))
        self.assertIn("dense", self.kinds)
        self.assertGreater(len(self.kinds), 40)

    def assert_all(self, kinds, found, where):
        """Fails if some of `kinds` are missing in `found`. The message lists the missing kinds."""
        missing = sorted(kinds - found)
        self.assertFalse(missing, f"{where} lacks {', '.join(missing)}")

    def test_the_model_with_every_layer(self):
        used = {kind for layer in models.every_layer()["model"]["layers"] for kind in layer}
        self.assert_all(self.kinds, used, "every_layer() in tests/keras/models.py")

    def test_weights_that_keras_saved(self):
        with_parameters = {kind for kind in self.kinds if self.has_parameters(kind)}
        self.assertTrue({"dense", "embedding", "prelu", "rms_normalization"} <= with_parameters)
        self.assert_all(with_parameters, kinds_in(read_from_keras.CONFIG), "CONFIG in tests/keras/read_from_keras.py")

    def has_parameters(self, kind):
        """Returns whether a layer has parameters. All layers with parameters have an option for an initializer, except
        rms_normalization."""
        return kind == "rms_normalization" or \
            '_initializer"' in json.dumps(self.maker.resolve(self.maker.kind("layer", kind)))

    def test_optimizers_that_are_compared_with_keras(self):
        optimizers = set(fuzz_config.kind_names(self.maker, "optimizer"))
        self.assertIn("adam", optimizers)
        trained = {re.search(r"optimizer: \{(\w+)", train)[1] for train, _ in train_as_keras.cases(AnyKeras()).values()}
        lacking = train_as_keras.NOT_IN_KERAS
        self.assert_all(optimizers, trained | lacking, "cases() in tests/keras/train_as_keras.py")
        self.assertEqual(trained & lacking, set())
        self.assertEqual(lacking - optimizers, set())
        chosen = [run["train"]["optimizer"] for run in models.small_ones().values()]
        opened = {next(iter(one)) if isinstance(one, dict) else one for one in chosen}
        self.assert_all(optimizers, opened, "small_ones() in tests/keras/models.py")

    def test_configurations_that_the_fuzzer_mutates(self):
        self.assert_all(self.kinds, kinds_in("\n".join(fuzz_config.EVERYTHING)), "EVERYTHING in tests/fuzz/fuzz_config.py")

    def test_these_configurations_are_valid(self):
        self.write("base.yaml", fuzz_config.BASE)
        for number, text in enumerate(fuzz_config.EVERYTHING):
            with self.subTest(number=number):
                self.dtrain("check", self.write("run.yaml", text))

    def test_configurations_that_the_fuzzer_generates(self):
        generated, left_out = fuzz_config.GENERATED_LAYERS, set(fuzz_config.NOT_GENERATED)
        self.assert_all(self.kinds, generated | left_out, "GENERATED_LAYERS in tests/fuzz/fuzz_config.py")
        self.assertEqual(generated & left_out, set())
        self.assertEqual((generated | left_out) - self.kinds, set())


if __name__ == "__main__":
    support.main()
