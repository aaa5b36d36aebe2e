"""`dtrain new` for folders of images, and for tables that list image files."""
import support
from new_case import NewCase, png


class NewPictures(NewCase):
    def test_a_folder_of_images_gives_a_classifier(self):
        for name, count in (("cat", 3), ("dog", 30)):
            for i in range(count):
                path = self.dir / "data" / name / f"{i}.PNG"
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(png(40, 60))
        text = self.new("data")
        for expected in ("image: [64, 64, 3]", "directory: data,", "size: [64, 64]", "channels: 3", "dense: {units: auto}",
                         "cat (3), dog (30)", "class_weight: balanced", "random_flip"):
            self.assertIn(expected, text)
        (self.dir / "data.yaml").write_text(text.replace("  class_weight: balanced", "#"))
        self.assertEqual(self.widths()[1], 2)

    def test_a_table_of_image_paths_gives_an_image_model(self):
        for i in range(24):
            path = self.dir / "shots" / f"{i:02}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(png(30, 40, (i * 10, 0, 250 - i * 10)))
        rows = [f"{i:02},{'cat' if i < 10 else 'dog'},{i / 3:.2f}\n" for i in range(24)]
        self.write("data.csv", "id,animal,age\n" + "".join(rows))
        text = self.new("data.csv", "--target", "animal")
        for expected in ("csv: {file: data.csv, path: id, target: animal, extension: .png}", "directory: shots,",
                         "image: [32, 32, 3]", "24 images: cat (10), dog (14).", "stratify"):
            self.assertIn(expected, text)
        self.dtrain("fit", "data.yaml", "--epochs", "1")
        (self.dir / "data.yaml").unlink()
        text = self.new("data.csv")  # the last column
        for expected in ("target: age", "mean_squared_error", "'age' is a number from 0 to 7.67"):
            self.assertIn(expected, text)
        self.assertNotIn("stratify", text)
        self.dtrain("fit", "data.yaml", "--epochs", "1", "--overwrite")
        # Classes with too few images are reported, in JSON too, and the splits are not stratified.
        (self.dir / "data.yaml").unlink()
        output = self.json("new", "data.csv", "--target", "animal")
        self.assertEqual((output["notes"], output["warnings"]), (["24 images: cat (10), dog (14)"], []))
        self.write("few.csv", "id,animal\n" + "".join(f"{i:02},{'cat' if i < 2 else 'dog'}\n" for i in range(24)))
        output = self.json("new", "few.csv")
        self.assertEqual(len(output["warnings"]), 1)
        self.assertIn("the class 'cat' has only 2 rows, too few", output["warnings"][0])
        self.assertNotIn("stratify", (self.dir / "few.yaml").read_text())
        # Full paths, numeric classes and file names with blanks; no header.
        (self.dir / "data.yaml").unlink()
        (self.dir / "shots/00.png").rename(self.dir / "shots/a b.png")
        self.write("data.csv", "shots/a b.png;3\n" + "".join(f"shots/{i:02}.png;{3 + i % 2}\n" for i in range(1, 24)))
        text = self.new("data.csv")
        for expected in ('path: 0, target: 1, delimiter: ";"', 'class_names: ["3", "4"]'):
            self.assertIn(expected, text)
        self.assertNotIn("directory", text)
        self.dtrain("fit", "data.yaml", "--epochs", "1", "--overwrite")

    def test_folders_of_splits_and_grayscale_images_are_recognized(self):
        for split in ("train", "val"):
            for name in ("a", "b"):
                path = self.dir / "data" / split / name / "1.png"
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(png(20, 28, 77))
        text = self.new("data")
        for expected in ("image: [28, 28, 1]", "directory: data/train,", "validation: {images: {directory: data/val,",
                         "test: {split:"):
            self.assertIn(expected, text)

    def test_a_class_may_have_the_name_of_a_split(self):
        for name in ("train", "bus", "car"):
            for i in range(4):
                self.picture(f"data/{name}/{i}.png")
        text = self.new("data")
        for expected in ("directory: data,", "bus (4), car (4), train (4)"):
            self.assertIn(expected, text)
        # A folder of classes next to a flat folder of unsorted images.
        for name in ("bus", "car"):
            self.picture(f"other/train/{name}/1.png")
        self.picture("other/test/1.png")
        self.dtrain("new", "other")
        text = (self.dir / "other.yaml").read_text()
        self.assertIn("directory: other/train,", text)
        self.assertIn("test: {split:", text)


if __name__ == "__main__":
    support.main()
