#!/usr/bin/env python3
"""Tests bench/gpu/bounds.py: operations and bytes of the workloads' steps, and the resulting times."""
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "bench" / "gpu"))
import bounds  # noqa: E402
import report  # noqa: E402


def total(passes, *names):
    chosen = [one for one in passes if not names or one.name in names]
    return sum(one.operations for one in chosen), sum(one.bytes for one in chosen)


class Bounds(unittest.TestCase):
    def test_each_pass_takes_the_longer_of_its_times(self):
        passes = [bounds.Pass("a", 100, 10), bounds.Pass("b", 0, 60)]
        self.assertAlmostEqual(bounds.seconds(passes, 50, 20), 100 / 50 + 60 / 20)
        self.assertAlmostEqual(bounds.seconds(passes, 1000, 20), 10 / 20 + 60 / 20)

    def test_a_layers_operations_and_bytes_match_a_count_by_hand(self):
        # The layer has 5 units with tanh and reads 2 rows of 3 numbers, in bfloat16.
        passes = bounds.dense_layers(2, 3, [(5, "tanh")], "bf16")
        self.assertEqual(passes, [
            bounds.Pass("samples", 0, 2 * 3 * (1 + 2)),
            bounds.Pass("product", 2 * 2 * 3 * 5, 2 * (6 + 15 + 10)),
            bounds.Pass("activation", 0, 2 * (10 + 10)),
            bounds.Pass("filter gradient", 2 * 2 * 3 * 5, 2 * (6 + 10) + 4 * 15, 20),
            bounds.Pass("gradients of activation and bias", 0, 2 * (10 + 10 + 10)),
            bounds.Pass("update", 0, 20 * (7 * 4 + 2)),
        ])

    def test_wide_mlp_takes_time_besides_matrix_products(self):
        products = ("product", "filter gradient", "data gradient")
        for precision, expected in {"bf16": 1.897e9, "tf32": 2.411e9}.items():
            passes = bounds.step("wide-mlp", 8192, precision)
            operations, _ = total(passes)
            self.assertAlmostEqual(operations / 1e12, 1.498, places=3)
            others = [one for one in passes if one.name not in products]
            self.assertAlmostEqual(total(others)[1] / 1e9, expected / 1e9, places=3)
        # At an H100's rates, the matrix products alone take less than 0.9 of the step's time. Better kernels cannot
        # make the step as fast as the products alone.
        alone = 1.498e12 / 650e12
        self.assertLess(alone / bounds.seconds(passes := bounds.step("wide-mlp", 8192, "bf16"), 650e12, 3e12), 0.8)
        self.assertEqual(passes[-1].bytes, 41_157_101 * 30)

    def test_resnet50_has_its_parameters_and_operations(self):
        images = bounds.step("resnet50", 1, "float32")
        # Keras's ResNet50 has 25,636,712 parameters. 53,120 of them are moving statistics, which the update does not
        # change. SGD with momentum has one optimizer slot.
        self.assertEqual(images[-1].bytes, (25_636_712 - 53_120) * 20)
        forward = total(images, "convolution", "product")[0]
        self.assertAlmostEqual(forward / 2e9, 3.86, places=2)  # He et al. 2015 count 3.8e9 multiplications

    def test_passes_complete_the_gradients_of_all_parameters(self):
        for workload, parameters in {"wide-mlp": 41_157_101, "resnet50": 25_583_592, "gpt-small": 875_520}.items():
            passes = bounds.step(workload, 8, "float32")
            self.assertEqual(sum(one.parameters for one in passes), parameters)
            self.assertTrue(all("gradient" in one.name for one in passes if one.parameters))

    def test_a_gpt_has_its_operations(self):
        # For each token, a training step takes 6 operations per parameter of a matrix product. An attention also takes
        # 12 operations per position and column.
        operations, _ = total(bounds.step("gpt-small", 2, "float32"))
        parameters = 4 * (4 * 128 * 128 + 2 * 128 * 512) + 128 * 256
        self.assertEqual(operations, 256 * (6 * parameters + 4 * 12 * 128 * 128))

    def test_the_share_of_the_bound_is_a_row(self):
        passes = bounds.step("wide-mlp", 8192, "bf16")
        least = bounds.seconds(passes, 650e12, 3e12)
        row = bounds.row("name", passes, 2 * least, (650e12, 3e12), None, 0.9)
        self.assertAlmostEqual(row["value"], 0.5)
        self.assertFalse(row["met"])
        self.assertEqual(report.goal(row), "at least 0.9")
        self.assertTrue(bounds.row("name", passes, 1.05 * least, (650e12, 3e12), None, 0.9)["met"])
        missing = bounds.row("name", passes, None, (650e12, 3e12), "why", 0.9)
        self.assertIsNone(missing["value"])
        self.assertEqual(missing["reason"], "why")
        self.assertIsNone(bounds.row("name", passes, 1.0, None, "why")["value"])


if __name__ == "__main__":
    unittest.main()
