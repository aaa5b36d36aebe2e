"""Targets that are images: training on masks and images, evaluation, and predictions as PNG files."""
import random
import re
import resource

import support
from new_case import png_of_rows as png
from support import Case

SEGMENTATION = """\
seed: 3
model:
  inputs: {image: [16, 16, 1]}
  layers:
    - conv2d: {filters: 8, kernel_size: 3, padding: same, activation: relu}
    - conv2d: {name: mask, filters: 3, kernel_size: 3, padding: same}
dataset:
  train: {images: {directory: images, target_images: {directory: masks, classes: [0, 100, 200]}}}
  validation: {split: {of: train, fraction: 0.25}}
  augment: [{random_flip: {}}, {random_translation: {height_factor: 0.2, width_factor: 0.2}}]
  transforms: [{rescale: {scale: 1/255}}]
strategy: {mirrored: {devices: [cpu:0, cpu:1]}}
train:
  epochs: 40
  batch_size: 8
  loss: {sparse_categorical_crossentropy: {from_logits: true}}
  class_weight: balanced
  optimizer: {adam: {learning_rate: 0.02}}
  metrics: [accuracy, mean_iou, {dice: {include_background: false}}]
"""
DENOISING = """\
seed: 3
model:
  inputs: {image: [16, 16, 1]}
  layers: [{conv2d: {name: clean, filters: 1, kernel_size: 3, padding: same}}]
dataset:
  train: {images: {csv: {file: pairs.csv, path: noisy, target_image: clean}}}
  transforms: [{rescale: {scale: 1/255, of: [image, target]}}]
train: {epochs: 30, batch_size: 8, loss: mean_squared_error, optimizer: {adam: {learning_rate: 0.02}}}
"""


class ImageTargets(Case):
    def setUp(self):
        super().setUp()
        draw = random.Random(4)
        for folder in ("images", "masks"):
            (self.dir / folder).mkdir()
        for i in range(24):
            mask = [[0] * 16 for _ in range(16)]
            for level in (100, 200):
                top, left = draw.randrange(10), draw.randrange(10)
                for y in range(top, top + 6):
                    mask[y][left:left + 6] = [level] * 6
            noisy = [[min(255, max(0, v + draw.randrange(-25, 26))) for v in row] for row in mask]
            (self.dir / f"masks/{i}.png").write_bytes(png(mask))
            (self.dir / f"images/{i}.png").write_bytes(png(noisy))
        self.write("pairs.csv", "noisy,clean\n" + "".join(f"images/{i}.png,masks/{i}.png\n" for i in range(24)))

    def evaluate(self, reader):
        return self.json("evaluate", "run", "--set", f"dataset.test={{images: {reader}}}", "--split", "test")

    def test_masks_are_learned_evaluated_and_written(self):
        self.fit(config=SEGMENTATION)
        self.assertGreater(self.metrics()[-1]["val_mean_iou"], 0.5)
        told = self.json("predict", "run", "--input", "images", "--output", "predicted/")
        self.assertEqual((told["outputs"], told["samples"]), ("images", 24))
        self.assertEqual(sorted(p.name for p in (self.dir / "predicted").iterdir()), sorted(f"{i}.png" for i in range(24)))
        # With the predicted masks as targets, all predictions are right.
        reader = "{directory: images, target_images: {directory: %s, classes: [0, 100, 200]}}"
        same = self.evaluate(reader % "predicted")
        self.assertEqual((same["mean_iou"], same["dice"]), (1, 1))
        scores = self.evaluate(reader % "masks")
        self.assertTrue(0.5 < scores["dice"] < 1, scores)
        found = scores["mean_iou"]
        self.assertGreater(found, 0.5)
        # evaluate --input accepts a folder that has subfolders with the names of the image and target folders.
        other = self.dir / "other"
        other.mkdir()
        for name in ("images", "masks"):
            (self.dir / name).rename(other / name)
        self.assertEqual(self.json("evaluate", "run", "--input", "other")["mean_iou"], found)
        (other / "masks").rename(other / "labels")
        self.assertIn("other: expected the folders 'images' (images) and 'masks' (target images)",
                      self.dtrain("evaluate", "run", "--input", "other", expect=2).err)

    def test_losses_of_whole_samples_do_not_depend_on_devices(self):
        config = (SEGMENTATION.replace("class_weight: balanced", "clip_norm: 10").replace("epochs: 40", "epochs: 2")
                  .replace("padding: same}\n", "padding: same, activation: softmax}\n").replace("1/255}}]", "1/255}}, {one_hot: 3}]"))
        for loss in ("{dice: {axis: [1, 2]}}", "{tversky: {alpha: 0.7, beta: 0.3}}"):
            losses = []
            for strategy in ("single", "{mirrored: {devices: [cpu:0, cpu:1]}}", "{mirrored: {devices: [cpu:0, cpu:1, cpu:2]}}"):
                self.fit("--set", f"train.loss={loss}", f"strategy={strategy}", "train.optimizer={sgd: {learning_rate: 0.5}}",
                         "--overwrite", config=config)
                losses.append([line[key] for line in self.metrics() for key in ("loss", "val_loss")])
            for other in losses[1:]:
                for a, b in zip(losses[0], other):
                    self.assertAlmostEqual(a, b, delta=2e-5)
            self.assertLess(losses[0][-1], 1)
        error = self.fit("--set", "train.loss=dice", "train.class_weight=balanced", config=config, output="other", expect=2).err
        self.assertIn("class_weight: class weights can only be used with losses that have one value per prediction", error)

    def test_images_are_learned_and_written(self):
        self.fit(config=DENOISING)
        leftover = self.dir / "predicted/.1.png.dtrain-tmp-999999999-0123abcd"  # left by a writer that was killed
        leftover.parent.mkdir()
        leftover.write_bytes(b"x")
        self.dtrain("predict", "run", "--input", "images", "--output", "predicted/")
        self.assertFalse(leftover.exists())
        found = self.evaluate("{directory: images, target_images: predicted}")
        # The loss is small: the predictions differ from the targets only because pixels are rounded to bytes and
        # clipped to the range of a byte.
        self.assertLess(found["loss"], 5e-3)

    def test_an_image_that_cannot_be_written_ends_with_what_is_complete(self):
        """The test limits the size of files, so that writing fails as on a full disk."""
        self.fit(config=DENOISING)
        draw = random.Random(1)
        (self.dir / "new").mkdir()
        for name, noise in (("a", 0), ("b", 0), ("c", 100), ("d", 0)):  # noise makes a large PNG
            (self.dir / f"new/{name}.png").write_bytes(png([[100 + draw.randrange(noise + 1) for _ in range(16)] for _ in range(16)]))
        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (220, 220))
        for batch_size in (1, 4):
            error = self.dtrain("predict", "run", "--input", "new", "--output", "out/", "--overwrite", "--batch-size", batch_size, expect=1, preexec_fn=limit).err
            self.assertIn("out/c.png: could not be written: File too large; the images of 2 of 4 samples were written completely, "
                          "the last one to 'b.png'; use --overwrite in the next call to replace them", error)
            self.assertEqual(sorted(path.name for path in (self.dir / "out").iterdir()), ["a.png", "b.png"])
        intact = (self.dir / "new/c.png").read_bytes()
        (self.dir / "new/c.png").write_bytes(intact[:-20])
        error = self.dtrain("predict", "run", "--input", "new", "--output", "out/", "--overwrite", "--batch-size", 2, expect=2).err
        self.assertRegex(error, r"new/c\.png: expected an intact PNG.*; the images of 2 of 4 samples were written completely, the last one to 'b\.png'")
        (self.dir / "new/c.png").write_bytes(intact)
        self.dtrain("predict", "run", "--input", "new", "--output", "out/", "--overwrite")
        self.assertEqual(sorted(path.name for path in (self.dir / "out").iterdir()), ["a.png", "b.png", "c.png", "d.png"])

    def test_wrong_folders_are_errors(self):
        self.fit("--set", "train.epochs=1", config=SEGMENTATION)
        def failure(*arguments):
            return self.dtrain("predict", "run", *arguments, expect=2).err
        self.assertIn("images/: this file is an input; give another --output", failure("--input", "images", "--output", "images/"))
        self.assertIn("--layer is only for files of numbers",
                      failure("--input", "images", "--output", "p/", "--layer", "mask"))
        self.assertIn("masks/: this is a file of the run's data set", failure("--input", "images", "--output", "masks/"))
        (self.dir / "other").mkdir()
        kept = self.write("other/5.png", "a file that is not dtrain's")
        self.assertIn("other/5.png: this file already exists; give another --output, or use --overwrite",
                      failure("--input", "images", "--output", "other/"))
        self.assertEqual(([p.name for p in (self.dir / "other").iterdir()], kept.read_text()),
                         (["5.png"], "a file that is not dtrain's"))
        self.dtrain("predict", "run", "--input", "images", "--output", "other/", "--overwrite")
        self.assertEqual(len(list((self.dir / "other").iterdir())), 24)
        (self.dir / "full/7.png").mkdir(parents=True)
        self.assertIn("full/7.png: expected a file, found a directory; give another --output",
                      failure("--input", "images", "--output", "full/", "--overwrite"))
        self.assertEqual([p.name for p in (self.dir / "full").iterdir()], ["7.png"])
        (self.dir / "masks/7.png").unlink()
        self.assertIn("but there is none for '7.png'", self.dtrain("fit", "config.yaml", "--output", "again", expect=2).err)

    def test_a_damaged_image_or_mask_is_an_error(self):
        """The file's header is intact, so the damage is found only when a step reads the pixels. The last step is
        saved."""
        tables = "{csv: {file: pairs.csv, path: noisy, target_image: clean}, target_images: {classes: [0, 100, 200]}}"
        folders = "{directory: images, target_images: {directory: masks, classes: [0, 100, 200]}}"
        self.fit("--epochs", 1, config=SEGMENTATION)
        for damaged in ("images/7.png", "masks/7.png"):
            path = self.dir / damaged
            intact = path.read_bytes()
            path.write_bytes(intact[:-20])
            for reader in (tables, folders):
                with self.subTest(damaged=damaged, reader=reader):
                    sets = [f"dataset.train={{images: {reader}}}", "dataset.validation=null", "train.class_weight=null", "train.batch_size=1"]
                    fitted = self.fit("--overwrite", "--set", *sets, config=SEGMENTATION, output="other", expect=2)
                    test = ("--set", f"dataset.test={{images: {reader}}}", "--split", "test")
                    for error in (fitted.err, self.dtrain("evaluate", "run", *test, expect=2).err):
                        self.assertEqual(len(re.findall(r"\berror: ", error)), 1, error)
                        self.assertIn(f"{damaged}: expected an intact PNG, but this PNG is damaged: the file is truncated", error)
                    saved = [int(path.stem.split("-")[1]) for path in self.checkpoints("other")]
                    self.assertEqual(saved, [int(step) for step in re.findall(r"the run fails at step (\d+)", fitted.err)])
            path.write_bytes(intact)

    def test_more_classes_than_outputs_are_an_error(self):
        error = self.fit(config=SEGMENTATION.replace("[0, 100, 200]", "[0, 100, 200, 255]"), expect=2).err
        self.assertIn("config.yaml:8:10: error: target_images: the option 'classes' lists 4 classes, but the output 'mask' has only 3", error)

    def test_an_output_of_another_size_than_the_image_is_a_warning(self):
        message = ("config.yaml:8:10: warning: target_images: the masks are resized, because the input 'image' has 16 x 16 pixels, "
                   "but the output 'mask' has 14 x 14 pixels; with `padding: same`, a convolution keeps the size")
        valid = SEGMENTATION.replace("filters: 3, kernel_size: 3, padding: same", "filters: 3, kernel_size: 3")
        self.write("config.yaml", valid)
        self.assertIn(message, self.dtrain("check", "config.yaml").err)
        self.assertEqual(self.dtrain("fit", "config.yaml", "--epochs", 1).err.count(message), 1)
        for config in (SEGMENTATION, valid.replace("classes: [0", "size: [14, 14], classes: [0")):
            self.write("config.yaml", config)
            self.assertNotIn("resized", self.dtrain("check", "config.yaml").err)

    def test_a_filled_class_beyond_the_outputs_is_an_error(self):
        for options, is_wrong in (("random_rotation: {factor: 0.5, fill_mode: constant, fill_class: 3}", True),
                                  ("random_crop: {height: 16, width: 16, padding: 2, fill_class: 200}", True),
                                  ("random_rotation: {factor: 0.5, fill_mode: constant, fill_class: 2}", False),
                                  ("random_rotation: {factor: 0.5, fill_class: 3}", False)):
            self.write("config.yaml", SEGMENTATION.replace("{random_flip: {}}", "{%s}" % options))
            err = self.dtrain("check", "config.yaml", expect=2 if is_wrong else 0).err
            name, fill = options.split(":")[0], options.rsplit(" ", 1)[1].strip("}")
            message = f"config.yaml:10:14: error: {name}: fill_class is {fill}, but the output 'mask' has only 3 classes, numbered from 0"
            self.assertEqual(message in err, is_wrong, err)

    def test_a_class_beyond_the_outputs_is_named(self):
        (self.dir / "masks/5.png").write_bytes(png([[7] * 16] * 16))
        config = SEGMENTATION.replace("classes: [0, 100, 200]", "classes: numbers")
        error = self.fit(config=config, expect=2).err
        self.assertIn("takes values from 0 to 2", error)
        self.assertIn("needs an output of at least 101 units", error)


if __name__ == "__main__":
    support.main()
