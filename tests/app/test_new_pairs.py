"""`dtrain new` for two parallel folders of images: one has the inputs, the other has the targets. The targets are masks
of classes, or images."""
import random

import support
from new_case import NewCase, png, png_of_rows


class NewPairs(NewCase):
    def pairs(self, images, targets, levels, size=16, factor=1, count=12, channels=1):
        """Writes noisy images of squares, and targets with the gray level or the color of each square."""
        draw = random.Random(4)
        for folder in (images, targets):
            (self.dir / folder).mkdir(parents=True)
        for i in range(count):
            classes = [[0] * size for _ in range(size)]
            for number in range(1, len(levels)):
                top, left = draw.randrange(size - 6), draw.randrange(size - 6)
                for y in range(top, top + 6):
                    classes[y][left:left + 6] = [number] * 6
            noisy = [[min(255, 90 * c + draw.randrange(70)) for c in row] for row in classes]
            large = [[c for c in row for _ in range(factor)] for row in classes for _ in range(factor)]
            target = [[v for c in row for v in (levels[c] if channels == 3 else [levels[c]])] for row in large]
            (self.dir / images / f"{i}.png").write_bytes(png_of_rows(noisy))
            (self.dir / targets / f"{i}.png").write_bytes(png_of_rows(target, channels))

    def test_masks_of_classes_give_a_u_net(self):
        self.pairs("data/images", "data/masks", [0, 100, 200])
        text = self.new("data")
        for expected in ("image: [16, 16, 1]", "target_images: {directory: data/masks, classes: [0, 100, 200]}",
                         "conv2d: {name: mask, filters: 3,", "sparse_categorical_crossentropy: {from_logits: true}",
                         "concatenate: {inputs: [up_1, down_1]}", "mean_iou", "random_flip",
                         "12 images of 16 x 16 pixels (median) in data/images; their targets in data/masks are masks of 3 "
                         "classes: gray levels [0, 100, 200]."):
            self.assertIn(expected, text)
        self.dtrain("fit", "data.yaml", "--epochs", "1")
        scores = self.json("evaluate", "runs/data", "--input", "data")
        self.assertEqual(scores["samples"], 12)
        self.assertIn("mean_iou", scores)

    def test_masks_of_two_classes_give_a_binary_model(self):
        self.pairs("data/images", "data/labels", [0, 255])
        text = self.new("data")
        for expected in ("classes: [0, 255]", "conv2d: {name: mask, filters: 1,", "binary_crossentropy: {from_logits: true}",
                         "binary_accuracy"):
            self.assertIn(expected, text)
        self.fits()

    def test_class_numbers_and_colors_are_recognized(self):
        self.pairs("data/images", "data/masks", [0, 1, 3, 2])
        self.assertIn("target_images: {directory: data/masks, classes: numbers}", self.new("data"))
        self.fits()
        self.pairs("colors/images", "colors/masks", [[0, 0, 0], [255, 0, 0], [0, 0, 128]], channels=3)
        self.dtrain("new", "colors")
        text = (self.dir / "colors.yaml").read_text()
        self.assertIn('classes: [0, "#000080", "#ff0000"]}', text)
        self.dtrain("check", "colors.yaml")

    def test_folders_of_splits_are_recognized(self):
        for split, count in (("train", 8), ("val", 4)):
            self.pairs(f"data/{split}/images", f"data/{split}/masks", [0, 1], count=count)
            self.pairs(f"other/images/{split}", f"other/masks/{split}", [0, 1], count=count)
        for name, train, validation in (("data", "data/train/images", "data/val/masks"), ("other", "other/images/train", "other/masks/val")):
            self.dtrain("new", name)
            text = (self.dir / f"{name}.yaml").read_text()
            for expected in (f"directory: {train}\n", f"target_images: {{directory: {validation}, classes: numbers}}", "test: {split:"):
                self.assertIn(expected, text)
            self.dtrain("check", f"{name}.yaml")

    def test_other_names_are_recognized_by_masks(self):
        self.pairs("data/regions", "data/photos", [0, 90])  # noisy images in `regions`
        self.assertIn("directory: data/regions\n      target_images: {directory: data/photos, classes: [0, 90]}", self.new("data"))
        # The folders `cat` and `dog` contain files of the same names. They are still two classes, not images and their
        # targets.
        for name in ("cat", "dog"):
            for i in range(3):
                path = self.dir / "classes" / name / f"{i}.png"
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(png(20, 20, (10 * i, 50, 60)))
        self.dtrain("new", "classes")
        self.assertIn("cat (3), dog (3)", (self.dir / "classes.yaml").read_text())
        # Each image of `ones` has only few gray levels, as a mask has. But all images of `ones` together have many gray
        # levels, so the folders are classes.
        for i in range(8):
            for name, levels in (("ones", 40), ("zeros", 100)):
                path = self.dir / "digits" / name / f"{i}.png"
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(png_of_rows([[30 * i % 150 + (16 * y + x) % levels for x in range(16)] for y in range(16)]))
        self.dtrain("new", "digits")
        self.assertIn("ones (8), zeros (8)", (self.dir / "digits.yaml").read_text())

    def test_images_as_targets_give_a_regression(self):
        self.pairs("data/noisy", "data/clean", [0, 100, 200])
        text = self.new("data")
        for expected in ("target_images: {directory: data/clean}", "loss: mean_squared_error", "add: {name: restored, inputs: [difference, image]}",
                         "rescale: {scale: 1/255, of: [image, target]}"):
            self.assertIn(expected, text)
        self.assertNotIn("random_zoom", text)
        self.fits()
        self.pairs("large/low", "large/high", [0, 100, 200], factor=2)
        self.dtrain("new", "large")
        text = (self.dir / "large.yaml").read_text()
        self.assertIn("upsampling2d: {name: enlarged, inputs: image, size: 2, interpolation: bilinear}", text)
        self.dtrain("fit", "large.yaml", "--epochs", "1")

    def test_masks_of_one_value_are_taken_for_images(self):
        self.pairs("data/images", "data/masks", [7, 7])
        output = self.json("new", "data")
        self.assertEqual(output["warnings"], ["the files in data/masks cannot be masks, because a mask has at most 64 different pixel values, "
                                              "and all masks together have 2 to 256; therefore, the files are used as images that the model "
                                              "should compute"])
        self.assertIn("loss: mean_squared_error", (self.dir / "data.yaml").read_text())

    def test_masks_of_16_bits_are_taken_for_images(self):
        self.pairs("data/images", "data/masks", [0, 1, 2])
        for path in (self.dir / "data/masks").iterdir():
            path.write_bytes(png_of_rows([[0, i // 6] * 16 for i in range(16)], bits=16))
        self.assertEqual(self.json("new", "data")["warnings"][0],
                         "the files in data/masks cannot be masks, because their values have 16 bits (convert masks to 8 bits); "
                         "therefore, the files are used as images that the model should compute")

    def test_files_without_a_partner_are_an_error(self):
        self.pairs("data/images", "data/masks", [0, 100, 200])
        (self.dir / "data/masks/7.png").unlink()
        self.assertIn("data/images: each file must have a target of the same name in data/masks, but there is none for '7.png'",
                      self.dtrain("new", "data", expect=2).err)

    def test_folders_that_could_be_classes_are_pairs_if_most_names_match(self):
        self.pairs("data/noisy", "data/clean", [0, 100, 200])
        (self.dir / "data/noisy/7.png").rename(self.dir / "data/noisy/20.png")
        self.assertIn("error: data/noisy: each file must have a target of the same name in data/clean, but there is none for '20.png'; "
                      "data/clean: each file must have an image of the same name in data/noisy, but there is none for '7.png'; "
                      "add the missing files, or remove the files that have no counterpart. If data/noisy and data/clean are two classes, "
                      "give the folders other names", self.dtrain("new", "data", expect=2).err)
        self.assertFalse((self.dir / "data.yaml").exists())
        (self.dir / "data/noisy").rename(self.dir / "data/static")
        self.assertEqual(self.json("new", "data")["warnings"], [])
        self.assertIn("clean (12), static (12)", (self.dir / "data.yaml").read_text())
        # Only half of the file names are in both folders. Therefore the folders are two classes, not images and their
        # targets.
        (self.dir / "data.yaml").unlink()
        (self.dir / "data/static").rename(self.dir / "data/noisy")
        for i in range(4, 7):
            (self.dir / f"data/noisy/{i}.png").rename(self.dir / f"data/noisy/{20 + i}.png")
        self.assertEqual(self.json("new", "data")["warnings"],
                         ["'noisy' and 'clean' are treated as two classes, because only 8 of 16 file names occur in both folders; if the folders contain "
                          "images and their targets, give each image and its target the same name, apart from the extension"])
        self.assertIn("clean (12), noisy (12)", (self.dir / "data.yaml").read_text())

    def test_masks_as_jpeg_are_an_error(self):
        for images in ("images", "photos"):
            with self.subTest(images):
                self.pairs(f"{images}/{images}", f"{images}/masks", [0, 1], count=2)
                (self.dir / images / "masks/1.png").unlink()
                # The JPEG has 16 x 16 gray pixels; only its header is read.
                (self.dir / images / "masks/1.jpg").write_bytes(
                    bytes.fromhex("FFD8FFC0000B080010001001011100FFDA00080101003F00" + "00" * 8 + "FFD9"))
                self.assertIn(f"{images}/masks/1.jpg: masks must be PNG or BMP files, found a JPEG",
                              self.dtrain("new", images, expect=2).err)


if __name__ == "__main__":
    support.main()
