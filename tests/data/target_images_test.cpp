// Targets that are images: which target belongs to which image, the classes of masks, sizes, and
// augmentations that change the image and its target together.
#include "data/readers/images/target_images.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "data/columns/sample_forms.h"
#include "support.h"
#include "support/image_files.h"

namespace dtrain::test {

namespace {

namespace fs = std::filesystem;

constexpr int64_t kHeight = 12, kWidth = 10;
const std::vector<TensorSpec> kGray{{"image", {kHeight, kWidth, 1}, DType::float32}};
const std::vector<TensorSpec> kMask{{"", {kHeight, kWidth}, DType::int32}};
const std::vector<TensorSpec> kPixels{{"", {kHeight, kWidth, 1}, DType::float32}};

void write_bytes(const std::string& path, const Bytes& bytes) {
  fs::create_directories(fs::path(path).parent_path());
  write_file(path, {bytes.begin(), bytes.end()});
}

/// Returns a mask in which a rectangle has class 1, a disc has class 2, and all other pixels have class 0.
/// `number` determines the positions of the shapes.
Pixels shapes(int number, int64_t height = kHeight, int64_t width = kWidth) {
  Pixels mask{height, width, 1, Bytes(static_cast<size_t>(height * width))};
  for (int64_t y = 0; y < height; ++y)
    for (int64_t x = 0; x < width; ++x) {
      if (y >= number % 3 && y < 5 && x >= 1 && x < 4 + number % 4) mask.at(y, x, 0) = 1;
      if (std::hypot(static_cast<double>(y - 8 + number % 2), static_cast<double>(x - 6)) < 2.6)
        mask.at(y, x, 0) = 2;
    }
  return mask;
}

/// Multiplies every value.
Pixels times(Pixels pixels, int factor) {
  for (uint8_t& value : pixels.bytes) value = static_cast<uint8_t>(value * factor);
  return pixels;
}

/// Eight images and their masks. The gray level of each pixel of an image is 100 times the class of this
/// pixel in the mask.
struct Shapes {
  TempDir folder;
  Shapes() {
    for (int i = 0; i < 8; ++i) {
      write_bytes(folder / fmt::format("images/{}.png", i), png_of(times(shapes(i), 100)));
      write_bytes(folder / fmt::format("masks/{}.png", i), png_of(shapes(i)));
    }
  }
  std::shared_ptr<const Dataset> open(const std::string& reader,
                                      const std::vector<TensorSpec>& targets = kMask,
                                      const std::string& more = "", bool is_training = true,
                                      const std::vector<TensorSpec>& inputs = kGray) const {
    const DatasetSpec spec = parse(folder, "train: {images: {" + reader + "}}\n" + more);
    return open_split(spec, *spec.train, inputs, targets, is_training);
  }
  std::string error(const std::string& reader, const std::vector<TensorSpec>& targets = kMask,
                    const std::string& more = "") const {
    return error_of([&] { open(reader, targets, more); });
  }
};

const std::string kPairs = "directory: images, target_images: {directory: masks, classes: numbers}";
const std::string kPairsOfImages = "directory: images, target_images: masks";

/// Returns the number of pixels at which the image (the first column) is not 100 times the mask (the second
/// column).
int64_t mismatches(const Dataset& data) {
  const std::vector<double> image = read_all(data, 0), mask = read_all(data, 1);
  REQUIRE(image.size() == mask.size());
  int64_t count = 0;
  for (size_t i = 0; i < mask.size(); ++i) count += image[i] != 100 * mask[i];
  return count;
}

}  // namespace

TEST_CASE_FIXTURE(Shapes, "masks in a parallel folder are matched by name") {
  const auto data = open(kPairs, kMask, "", false);
  REQUIRE(data->size() == 8);
  CHECK(mismatches(*data) == 0);
  CHECK(read_rows(*data, {3}, 1)[1 * kWidth + 2] == 1);
  CHECK(data->sample_id(3) == folder / "images/3.png");
  CHECK_FALSE(data->in_memory());
  // If the output has a channel axis, the target may still have none.
  CHECK(read_all(*open(kPairs, kPixels, "", false), 1) == read_all(*data, 1));
  // The same files, read as images instead of masks, have the gray levels as values (0 to 255).
  CHECK(read_all(*open(kPairsOfImages, kPixels, "", false), 1) == read_all(*data, 1));
  // If there are no targets, as for predictions, only the images are read.
  CHECK(open(kPairs, {}, "", false)->columns().size() == 1);
  const auto cached = open(kPairs, kMask, "cache: {file: kept}", false);
  CHECK(read_all(*cached, 1) == read_all(*data, 1));
  CHECK(read_all(*open(kPairs, kMask, "cache: {file: kept}", false), 1) == read_all(*data, 1));
}

TEST_CASE_FIXTURE(Shapes, "another folder's parallel folders are found by the names in the configuration") {
  write_bytes(folder / "other/images/a.png", png_of(shapes(0)));
  write_bytes(folder / "other/masks/a.png", png_of(shapes(0)));
  write_bytes(folder / "split/images/val/a.png", png_of(shapes(0)));
  write_bytes(folder / "split/masks/val/a.png", png_of(shapes(0)));
  const auto found = [&](const std::string& below, const std::string& images, const std::string& masks) {
    const PictureSet set = list_pairs_below(folder / below, images, masks);
    CHECK(set.pictures->size() == set.targets->pictures->size());
    return std::pair{set.where.substr(folder.path().size() + 1),
                     set.targets->where.substr(folder.path().size() + 1)};
  };
  const std::pair<std::string, std::string> other{"other/images", "other/masks"};
  CHECK(found("other", "images", "masks") == other);
  CHECK(found("other", "data/train/images/", "data/train/masks") == other);
  CHECK(found("other", "data/images/train", "data/masks/train") == other);
  CHECK(found("other", "/data/images", "elsewhere/masks") == other);
  CHECK(found("split", "data/images/val", "data/masks/val") ==
        std::pair<std::string, std::string>{"split/images/val", "split/masks/val"});
  CHECK(error_of([&] { list_pairs_below(folder / "other", "a/images", "a/labels"); }) ==
        folder /
            "other: expected the folders 'images' (images) and 'labels' (target images), which are named as "
            "in the "
            "run's data set, but the folder 'labels' does not exist");
}

TEST_CASE_FIXTURE(Shapes, "up to ten files without a partner are named") {
  write_bytes(folder / "images/lonely.jpg", jpeg_of(gradient(12, 10, 3)));
  CHECK(contains(error(kPairs), "each file must have a target of the same name in "));
  CHECK(contains(error(kPairs), "but there is none for 'lonely.jpg'"));
  fs::remove(folder / "images/lonely.jpg");
  for (int i = 10; i < 25; ++i) write_bytes(folder / fmt::format("masks/{}.png", i), png_of(shapes(i)));
  CHECK(contains(error(kPairs), "each file must have an image of the same name in "));
  CHECK(contains(error(kPairs), "'19.png' and 5 more"));
  write_bytes(folder / "masks/0.bmp", bmp_of(gradient(12, 10, 3)));
  CHECK(contains(error(kPairs), "expected one image called '0', found 0.bmp and 0.png"));
}

TEST_CASE_FIXTURE(Shapes, "a table names images and their targets") {
  write_file(folder / "pairs.csv", "image,mask\nimages/4.png,masks/4.png\nimages/1.png,masks/1.png\n");
  const std::string table = "csv: {file: pairs.csv, path: image, target_image: mask}";
  const auto data = open(table + ", target_images: {classes: numbers}", kMask, "", false);
  REQUIRE(data->size() == 2);
  CHECK(mismatches(*data) == 0);
  CHECK(read_rows(*data, {0}, 1) == read_rows(*open(kPairs, kMask, "", false), {4}, 1));
  CHECK(read_all(*open(table, kPixels, "", false), 1) == read_all(*data, 1));
  write_file(folder / "pairs.csv", "image,mask\nimages/4.png,masks/4.png\nimages/1.png,masks/none.png\n");
  const std::string message = error(table, kPixels);
  CHECK(contains(message, "pairs.csv:3:14: "));
  CHECK(contains(message, "masks/none.png"));
}

TEST_CASE_FIXTURE(Shapes, "classes are numbers, palette indices, gray levels or colors") {
  const std::vector<double> expected = read_all(*open(kPairs, kMask, "", false), 1);
  const Bytes palette{0, 0, 0, 200, 30, 40, 10, 250, 20};
  for (int i = 0; i < 8; ++i) {
    const std::string name = fmt::format("/{}.png", i);
    const Pixels mask = shapes(i);
    write_bytes(folder / ("palette" + name), png_of(mask, {.palette = palette}));
    write_bytes(folder / ("levels" + name), png_of(times(mask, 120)));
    Pixels colours{kHeight, kWidth, 3, {}};
    for (const uint8_t value : mask.bytes)
      colours.bytes.insert(colours.bytes.end(), palette.begin() + 3 * value, palette.begin() + 3 * value + 3);
    write_bytes(folder / ("colors" + name), png_of(colours));
    write_bytes(folder / ("bitmaps" + name), bmp_of(colours));
  }
  const auto read = [&](const std::string& masks, const std::string& classes) {
    return read_all(
        *open("directory: images, target_images: {directory: " + masks + ", classes: " + classes + "}", kMask,
              "", false),
        1);
  };
  const std::string colours = "[\"#000000\", \"#c81e28\", \"#0AFA14\"]";
  CHECK(read("palette", "numbers") == expected);
  CHECK(read("palette", colours) == expected);
  CHECK(read("levels", "[0, 120, 240]") == expected);
  CHECK(read("colors", colours) == expected);
  CHECK(read("bitmaps", colours) == expected);
  std::vector<double> swapped = expected;
  for (double& value : swapped) value = value == 2 ? 0 : value == 0 ? 2 : 1;
  CHECK(read("levels", "[240, 120, 0]") == swapped);

  const auto failure = [&](const std::string& masks, const std::string& classes) {
    return error_of([&] { read(masks, classes); });
  };
  CHECK(contains(failure("levels", "[0, 120]"), "levels/"));
  CHECK(contains(failure("levels", "[0, 120]"),
                 "each pixel must have the color of one of the 2 classes, but found the gray level 240"));
  CHECK(contains(failure("levels", "[0, 120]"),
                 "of the resized mask; 'classes' must list the gray level or the color of each class"));
  CHECK(contains(failure("colors", "[0, \"#0AFA14\"]"), "found #c81e28 in row "));
  // If a mask has as many values as there are classes, the message proposes these values. It does not propose
  // to skip the mask.
  const std::string proposed = failure("levels", "[0, 1, 2]");
  CHECK(contains(proposed,
                 "; the mask has only the values 0, 120, 240: if they are the classes, set "
                 "'classes: [0, 120, 240]'"));
  CHECK_FALSE(contains(proposed, "on_error"));
  CHECK(contains(failure("colors", "[0, 1, 2]"), "set 'classes: [0, \"#0afa14\", \"#c81e28\"]'"));
  CHECK(contains(failure("colors", "numbers"),
                 "expected one value per pixel (a palette or gray levels), but found "
                 "colors; set 'classes' to a list with the color of each class"));
  CHECK(contains(failure("bitmaps", "numbers"), "expected a PNG with one value per pixel"));
}

TEST_CASE_FIXTURE(
    Shapes, "the number of classes is that of the list of classes, or of the masks if there is no list") {
  const auto count = [&](const std::string& classes) {
    const DatasetSpec spec =
        parse(folder, "train: {images: {directory: images, size: [12, 10], channels: 1, " +
                          ("target_images: {directory: masks, classes: " + classes + "}}}"));
    return training_forms(spec, {{"image", std::nullopt}}, {{"", std::nullopt, DType::int32}}, {}).classes;
  };
  // No mask contains class 3, but it is in the list of classes.
  CHECK(count("[0, 1, 2, 3]") == std::vector<int64_t>{4});
  CHECK(count("numbers") == std::vector<int64_t>{3});
}

TEST_CASE_FIXTURE(Shapes, "masks with values of 16 bits are rejected") {
  for (int i = 0; i < 8; ++i)
    write_bytes(folder / fmt::format("deep/{}.png", i), png_of(shapes(i), {.bits = 16}));
  for (const std::string classes : {"numbers", "[0, 1, 2]"}) {
    CAPTURE(classes);
    const auto data = open("directory: images, target_images: {directory: deep, classes: " + classes + "}");
    CHECK(contains(error_of([&] { read_all(*data, 1); }),
                   "expected a mask with values of at most 8 bits, but found 16 bits"));
  }
}

TEST_CASE_FIXTURE(Shapes, "a mask must have the size of its image and keep its values") {
  write_bytes(folder / "masks/2.png", png_of(shapes(2, 9, 10)));
  write_bytes(folder / "masks/5.png", png_of(shapes(5, 12, 11)));
  const std::string message = error(kPairs);
  CHECK(contains(message, "masks/2.png: the mask must have 10 x 12 pixels like its image"));
  CHECK(contains(message, "but has 10 x 9 pixels; 1 more cannot be used as masks"));
  write_bytes(folder / "masks/2.png", jpeg_of(times(shapes(2), 100)));
  write_bytes(folder / "masks/5.png", png_of(shapes(5)));
  CHECK(contains(error(kPairs), "masks/2.png: expected a mask as a PNG file, but found a JPEG file"));
}

TEST_CASE_FIXTURE(Shapes,
                  "with on_error: skip, an image and its mask are left out if one of the files is damaged") {
  write_file(folder / "images/1.png", "no image");
  write_file(folder / "masks/6.png", "no image");
  const auto data = open(kPairs + ", on_error: skip", kMask, "", false);
  CHECK(data->size() == 6);
  CHECK(mismatches(*data) == 0);
  CHECK(data->sample_id(1) == folder / "images/2.png");
  REQUIRE(data->warnings().size() == 1);
  CHECK(contains(data->warnings()[0], "2 of 8 files were left out"));
}

TEST_CASE_FIXTURE(Shapes, "masks are resized by nearest neighbor, whatever the aspect ratio") {
  const std::vector<TensorSpec> large{{"image", {24, 20, 1}, DType::float32}};
  const std::vector<TensorSpec> large_mask{{"", {24, 20}, DType::int32}};
  const std::vector<double> small = read_all(*open(kPairs, kMask, "", false), 1);
  const std::vector<double> doubled = read_all(*open(kPairs, large_mask, "", false, large), 1);
  for (size_t i = 0; i < doubled.size(); ++i) {
    const size_t sample = i / 480, y = i % 480 / 20, x = i % 20;
    CHECK(doubled[i] == small[sample * 120 + y / 2 * 10 + x / 2]);
  }
  for (const std::string resize : {"stretch", "crop", "pad"}) {
    const std::vector<TensorSpec> square{{"image", {7, 7, 1}, DType::float32}};
    const std::vector<TensorSpec> square_mask{{"", {7, 7}, DType::int32}};
    for (const double value :
         read_all(*open(kPairs + ", resize: " + resize, square_mask, "", false, square), 1))
      CHECK((value == 0 || value == 1 || value == 2));
  }
}

TEST_CASE_FIXTURE(Shapes, "a target image may be larger than the input") {
  const std::vector<TensorSpec> half{{"image", {6, 5, 1}, DType::float32}};
  CHECK(open(kPairsOfImages, kPixels, "", false, half)->columns()[1].shape == Shape{12, 10, 1});
  // The images have 12 x 10 pixels and their targets 24 x 20. If an image is cropped to 6 x 5 pixels, its
  // target is cropped to 12 x 10.
  for (int i = 0; i < 8; ++i) {
    const Pixels small = shapes(i);
    Pixels large{24, 20, 1, {}};
    for (size_t k = 0; k < 480; ++k) large.bytes.push_back(small.bytes[k / 40 * 10 + k % 20 / 2]);
    write_bytes(folder / fmt::format("large/{}.png", i), png_of(large));
  }
  const auto data = open("directory: images, size: [12, 10], target_images: large", kPixels,
                         "augment: [{random_crop: {height: 6, width: 5}}, {random_flip: {}}]", true, half);
  const std::vector<double> image = read_all(*data, 0), target = read_all(*data, 1);
  for (size_t i = 0; i < target.size(); ++i)
    CHECK(100 * target[i] == image[i / 120 * 30 + i % 120 / 20 * 5 + i % 10 / 2]);
  CHECK(contains(error(kPairsOfImages + ", size: [15, 15]", {{"", {7, 7, 1}, DType::float32}}),
                 "target_images: give `size: [height, width]`"));
}

TEST_CASE_FIXTURE(Shapes,
                  "every augmentation that moves pixels moves the image and its mask in the same way") {
  const std::string fill = "interpolation: nearest, fill_mode: constant, fill_value: 200, fill_class: 2";
  for (const std::string one :
       {"{random_flip: {}}", "{random_flip: {mode: vertical}}",
        "{random_crop: {height: 12, width: 10, padding: 3}}",
        "{random_rotation: {factor: 0.3, interpolation: nearest}}",
        "{random_rotation: {factor: 0.3, interpolation: nearest, fill_mode: wrap}}",
        "{random_translation: {height_factor: 0.3, width_factor: 0.4, interpolation: nearest}}",
        "{random_zoom: {height_factor: 0.4, interpolation: nearest, fill_mode: nearest}}",
        "{random_zoom: {height_factor: 0.4, width_factor: 0.2, interpolation: nearest}}"}) {
    CAPTURE(one);
    const auto data = open(kPairs, kMask, "augment: [" + one + "]");
    CHECK(mismatches(*data) == 0);
    CHECK(read_all(*data, 1) != read_all(*open(kPairs), 1));
  }
  for (const std::string& one :
       {"{random_rotation: {factor: 0.3, " + fill + "}}",
        "{random_translation: {height_factor: 0.5, width_factor: 0.5, " + fill + "}}",
        "{random_zoom: {height_factor: 0.5, " + fill + "}}"}) {
    CAPTURE(one);
    CHECK(mismatches(*open(kPairs, kMask, "augment: [" + one + "]")) == 0);
  }
  const std::string all = "augment: [{random_rotation: {factor: 0.2, " + fill +
                          "}}, {random_crop: {height: 12, width: 10, padding: 2}}, "
                          "{random_flip: {}}, {random_zoom: {height_factor: 0.3, " +
                          fill + "}}]";
  CHECK(mismatches(*open(kPairs, kMask, all)) == 0);
  // In evaluation, the image and the target are cropped to their centers.
  CHECK(mismatches(*open(kPairs + ", size: [12, 10]", {{"", {8, 6}, DType::int32}},
                         "augment: [{random_crop: {height: 8, width: 6}}]", false,
                         {{"image", {8, 6, 1}, DType::float32}})) == 0);
}

TEST_CASE_FIXTURE(Shapes, "a crop fills masks with the class of its option fill_class") {
  const auto data = open(kPairs, kMask,
                         "augment: [{random_rotation: {factor: 0.1}}, "
                         "{random_crop: {height: 12, width: 10, padding: 12, fill_class: 7}}]");
  const std::vector<double> mask = read_all(*data, 1);
  CHECK(std::count(mask.begin(), mask.end(), 7.0) > 0);
  CHECK(std::all_of(mask.begin(), mask.end(), [](double v) { return v == 0 || v == 1 || v == 2 || v == 7; }));
}

TEST_CASE_FIXTURE(
    Shapes,
    "augmentations of colors do not change targets, and rand_augment only moves the pixels of targets") {
  const std::vector<double> plain = read_all(*open(kPairs), 1);
  for (const std::string one : {"{random_brightness: {factor: 0.5}}", "{random_contrast: {factor: 0.5}}",
                                "{random_erasing: {factor: 1.0}}"}) {
    CAPTURE(one);
    const auto data = open(kPairs, kMask, "augment: [" + one + "]");
    CHECK(read_all(*data, 1) == plain);
    CHECK(mismatches(*data) > 0);
  }
  const std::string random = "augment: [{rand_augment: {num_ops: 3, factor: 0.6, interpolation: nearest}}]";
  const std::vector<double> moved = read_all(*open(kPairs, kMask, random), 1);
  CHECK(moved != plain);
  CHECK(moved == read_all(*open(kPairsOfImages, kPixels, random), 1));
}

TEST_CASE_FIXTURE(Shapes, "cut_mix replaces the same rectangle in image and mask") {
  const auto data = open(kPairs, {{"", {kHeight, kWidth, 3}, DType::float32}},
                         "transforms: [{one_hot: {classes: 3}}]\naugment: [{cut_mix: {}}]");
  const std::vector<double> image = read_all(*data, 0), target = read_all(*data, 1);
  for (size_t i = 0; i < image.size(); ++i)
    for (size_t c = 0; c < 3; ++c)
      CHECK(target[3 * i + c] == (image[i] == 100 * static_cast<double>(c) ? 1.0 : 0.0));
  CHECK(contains(error(kPairs, kMask, "augment: [{mix_up: {}}]"),
                 "mix_up: only float32 targets can be blended"));
}

TEST_CASE_FIXTURE(Shapes, "wrong options of target images are reported with their locations") {
  const auto at = [&](const std::string& reader) { return error(reader); };
  CHECK(contains(at("directory: images, target_images: {classes: numbers}"),
                 "dataset.yaml:1:52: error: target_images: give 'directory'"));
  CHECK(contains(at("csv: {file: a.csv, path: p}, target_images: {classes: numbers}"),
                 "target_images: give 'target_image' in 'csv'"));
  CHECK(contains(at("csv: {file: a.csv, path: p, target_image: m}, target_images: masks"),
                 "'csv' lists the paths of the target images in its column 'target_image'"));
  CHECK(contains(at("hdf5: {file: a.h5, input: x}, target_images: masks"), "use the reader `hdf5`"));
  CHECK(contains(at("csv: {file: a.csv, path: p, target_image: m, target: n}"), "not both"));
  const auto classes = [&](const std::string& text) {
    return at("directory: images, target_images: {directory: masks, classes: " + text + "}");
  };
  CHECK(contains(classes("[0, 256]"), "expected a gray level from 0 to 255 or a color such as"));
  CHECK(contains(classes("[0, 1, \"#010101\"]"), "is listed for two classes"));
  CHECK(contains(classes("names"),
                 "expected numbers (the values of the pixels are the class numbers) or a list of 1 to 256"));
  CHECK(contains(at("directory: images, class_names: [a, b], "
                    "target_images: {directory: masks, classes: [0, 1, 2]}"),
                 "expected as many 'classes' as 'class_names', found 3 classes and 2 names"));
  CHECK(contains(at("directory: images, class_names: [a, b], target_images: masks"),
                 "'class_names' applies only to masks; remove it"));
  CHECK(contains(at("directory: images, target_images: {directory: masks, classes: numbers, channels: 3}"),
                 "masks ('classes') have no channels"));
  CHECK(contains(error(kPairsOfImages, {{"", {kHeight, kWidth, 21}, DType::float32}}),
                 "expected a target with 1, 3 or 4 channels, but the model's target"));
}

}  // namespace dtrain::test
