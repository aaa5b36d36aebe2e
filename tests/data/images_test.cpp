// The images reader: which images it reads, their classes and their order. The results do not depend on the
// number of threads.
#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sys/stat.h>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "data/augment/mixing.h"
#include "data/files/folder_listing.h"
#include "data/loader/loader.h"
#include "support.h"
#include "support/image_files.h"

namespace dtrain::test {

namespace {

namespace fs = std::filesystem;

const std::vector<TensorSpec> kInput{{"image", {12, 10, 3}, DType::float32}};
const std::vector<TensorSpec> kTarget{{"", {}, DType::int32}};

void write_picture(const std::string& path, const Bytes& bytes) {
  fs::create_directories(fs::path(path).parent_path());
  write_file(path, {bytes.begin(), bytes.end()});
}

/// Writes three classes with 5, 3 and 4 images, in all formats and several sizes.
void write_classes(const std::string& folder) {
  int number = 0;
  for (const auto& [name, count] : {std::pair{"cat", 5}, {"dog", 3}, {"emu", 4}})
    for (int i = 0; i < count; ++i, ++number) {
      const Pixels pixels = gradient(12 + 9 * (number % 4), 10 + 7 * (number % 5), 3, number);
      const std::string path = folder + "/" + name + "/" + std::to_string(i);
      if (number % 3 == 0)
        write_picture(path + ".jpg", jpeg_of(pixels));
      else if (number % 3 == 1)
        write_picture(path + ".png", png_of(pixels));
      else
        write_picture(path + ".bmp", bmp_of(pixels));
    }
}

std::shared_ptr<const Dataset> open(const TempDir& folder, const std::string& yaml,
                                    bool is_training = false) {
  const DatasetSpec spec = parse(folder, yaml);
  return open_split(spec, *spec.train, kInput, kTarget, is_training);
}

std::string open_error(const TempDir& folder, const std::string& yaml) {
  return error_of([&] { open(folder, yaml); });
}

/// Returns every batch of two epochs, as the concatenated bytes of all columns.
std::string batches_of(std::shared_ptr<const Dataset> dataset, int threads) {
  Loader loader(std::move(dataset),
                {.batch_size = 5, .shuffle = true, .seed = 4, .prefetch = 2, .threads = threads});
  std::string all;
  for (int64_t epoch = 0; epoch < 2; ++epoch) {
    loader.begin(epoch, 0);
    while (const auto batch = loader.next()) {
      std::vector<std::string> memory;
      std::vector<View> views;
      for (const TensorSpec& spec : loader.dataset().columns()) {
        View view{nullptr, spec.shape.prepended(batch->size()), spec.dtype};
        memory.emplace_back(view.bytes(), '\0');
        views.push_back(view);
      }
      for (size_t i = 0; i < views.size(); ++i) views[i].data = memory[i].data();
      batch->read(0, batch->size(), views);
      for (const std::string& one : memory) all += one;
    }
  }
  return all;
}

}  // namespace

TEST_CASE("folders are classes in sorted order, and samples are named by their paths") {
  const TempDir folder;
  write_classes(folder / "all");
  write_file(folder / "all/.DS_Store", "hidden");
  write_file(folder / "all/cat/.hidden.jpg", "hidden");
  write_file(folder / "all/README.txt", "beside the folders");
  const auto data = open(folder, "train: {images: {directory: all}}");
  REQUIRE(data->size() == 12);
  CHECK(read_all(*data, 1) == std::vector<double>{0, 0, 0, 0, 0, 1, 1, 1, 2, 2, 2, 2});
  CHECK(data->facts().source.class_names.at("target") == std::vector<std::string>{"cat", "dog", "emu"});
  CHECK(data->id_title() == "path");
  CHECK(data->sample_id(6) == folder / "all/dog/1.jpg");
  CHECK_FALSE(data->in_memory());

  // The first image has the requested size, so it is not resized. Its pixels differ only because JPEG
  // compression is lossy.
  const Pixels first = gradient(12, 10, 3, 0);
  const std::vector<double> found = read_rows(*data, {0}, 0);
  for (size_t i = 0; i < found.size(); ++i) CHECK(std::abs(found[i] - first.bytes[i]) <= 8);
}

TEST_CASE("batches have the same bits with any number of threads and any cache") {
  const TempDir folder;
  write_classes(folder / "all");
  const std::string augment =
      "\naugment: [{random_flip: {}}, {random_crop: {height: 12, width: 10, padding: 2}}, "
      "{random_rotation: {factor: 0.1}}, {random_contrast: {factor: 0.3}}, random_erasing]\n";
  const std::string yaml = "train: {images: {directory: all, resize: pad}}" + augment;
  const std::string one = batches_of(open(folder, yaml, true), 1);
  CHECK(one == batches_of(open(folder, yaml, true), 2));
  CHECK(one == batches_of(open(folder, yaml, true), 7));
  CHECK(one == batches_of(open(folder, yaml + "cache: memory\n", true), 2));
  CHECK(one == batches_of(open(folder, yaml + "cache: {file: kept}\n", true), 2));
  CHECK(one == batches_of(open(folder, yaml + "cache: {file: kept}\n", true), 3));
  CHECK(one != batches_of(open(folder, yaml), 2));  // evaluation data are not augmented
}

TEST_CASE("mix_up blends images and targets in the same way for any number of reading threads") {
  const TempDir folder;
  write_classes(folder / "all");
  const std::vector<TensorSpec> classes{{"", {3}, DType::float32}};
  const auto open_mixed = [&](const std::string& mixing, const std::string& more) {
    const DatasetSpec spec = parse(
        folder, "train: {images: {directory: all}}\ntransforms: [{one_hot: {classes: 3}}]\n" + mixing + more);
    return open_split(spec, *spec.train, kInput, classes, true);
  };
  const std::string mix = "augment: [{random_flip: {}}, {mix_up: {alpha: 1.0}}]\n";
  const auto plain = open_mixed("augment: [{random_flip: {}}]\n", ""), mixed = open_mixed(mix, "");
  CHECK(batches_of(mixed, 1) == batches_of(open_mixed(mix, "cache: memory\n"), 7));
  const std::vector<double> pictures = read_all(*plain, 0), blended = read_all(*mixed, 0);
  const std::vector<double> targets = read_all(*plain, 1), soft = read_all(*mixed, 1);
  int softened = 0;
  for (int64_t i = 0; i < 12; ++i) {
    // Computes the partner of a sample and its weight. From the random numbers of the sample, the partner is
    // drawn first, and then the weight.
    const SampleKey key{0, 0, i};
    Draws draws(key, 0x41554701);
    const int64_t partner = draws.below(12);
    const double weight = draw_beta(1, draws);
    for (int64_t k = 0; k < 3; ++k)
      CHECK(soft[static_cast<size_t>(3 * i + k)] ==
            doctest::Approx(weight * targets[static_cast<size_t>(3 * i + k)] +
                            (1 - weight) * targets[static_cast<size_t>(3 * partner + k)])
                .epsilon(1e-5));
    for (int64_t k = 0; k < 360; ++k)
      CHECK(blended[static_cast<size_t>(360 * i + k)] ==
            doctest::Approx(weight * pictures[static_cast<size_t>(360 * i + k)] +
                            (1 - weight) * pictures[static_cast<size_t>(360 * partner + k)])
                .epsilon(1e-5));
    softened += soft[static_cast<size_t>(3 * i)] > 0 && soft[static_cast<size_t>(3 * i)] < 1;
  }
  CHECK(softened > 0);
  CHECK(contains(error_of([&] { open(folder, "train: {images: {directory: all}}\n" + mix, true); }),
                 "mix_up: only float32 targets can be blended"));
}

TEST_CASE("other splits have the training split's classes") {
  const TempDir folder;
  write_classes(folder / "all");
  write_picture(folder / "some/emu/a.png", png_of(gradient(5, 5, 3)));
  DatasetSpec spec = parse(folder,
                           "train: {images: {directory: all}}\n"
                           "validation: {images: {directory: some}}\n");
  spec.facts = open_split(spec, *spec.train, kInput, kTarget)->facts();
  CHECK(read_all(*open_split(spec, *spec.validation, kInput, kTarget), 1) == std::vector<double>{2});
  write_picture(folder / "some/fox/a.png", png_of(gradient(5, 5, 3)));
  CHECK(contains(error_of([&] { open_split(spec, *spec.validation, kInput, kTarget); }),
                 "expected only folders named after the classes 'cat', 'dog', 'emu', but the folder 'fox' is "
                 "not named after any of them"));
}

TEST_CASE("class_names determine the order of classes") {
  const TempDir folder;
  write_picture(folder / "all/no/a.png", png_of(gradient(5, 5, 3)));
  write_picture(folder / "all/yes/a.png", png_of(gradient(5, 5, 3)));
  const auto data = open(folder, "train: {images: {directory: all, class_names: [yes, no]}}");
  CHECK(read_all(*data, 1) == std::vector<double>{1, 0});
  for (const char* names : {"[yes, no, yes]", "[yes, no, '']"})
    CHECK(contains(
        open_error(folder, fmt::format("train: {{images: {{directory: all, class_names: {}}}}}", names)),
        "class_names: expected names that differ from each other"));
}

TEST_CASE("a broken image is an error with its path, or is skipped and counted") {
  const TempDir folder;
  write_classes(folder / "all");
  const Bytes whole = jpeg_of(gradient(50, 50, 3));
  write_picture(folder / "all/cat/broken.jpg", Bytes(whole.begin(), whole.begin() + 700));
  const auto broken = open(folder, "train: {images: {directory: all}}");
  CHECK(broken->size() == 13);
  const std::string damage = error_of([&] { read_all(*broken, 0); });
  CHECK(contains(damage, "all/cat/broken.jpg: expected a JPEG that can be decoded"));
  CHECK(contains(damage, "; set 'on_error: skip' to leave out images that cannot be read"));

  write_file(folder / "all/dog/notes.txt", "no picture");
  CHECK(contains(open_error(folder, "train: {images: {directory: all}}"),
                 "all/dog/notes.txt: expected a JPEG, PNG or BMP, found a file that is not an image"));
  fs::create_directory_symlink(folder / "all/emu", folder / "all/emu/again");
  fs::create_symlink("nowhere", folder / "all/emu/nothing.png");
  const auto kept = open(folder, "train: {images: {directory: all, on_error: skip}}");
  CHECK(kept->size() == 12);
  REQUIRE(kept->warnings().size() == 1);
  CHECK(contains(kept->warnings()[0], "4 of 16 files were left out"));
  CHECK(contains(kept->warnings()[0], "all/cat/broken.jpg"));
  CHECK(read_all(*kept, 0).size() == 12 * 360);
}

TEST_CASE("the error for broken images gives their number, the first path and the option to skip them") {
  const TempDir folder;
  write_classes(folder / "all");
  const auto error = [&] { return open_error(folder, "train: {images: {directory: all}}"); };
  write_file(folder / "all/dog/notes.txt", "no picture");
  CHECK(contains(error(),
                 "all/dog/notes.txt: expected a JPEG, PNG or BMP, found a file that is not an image; set "
                 "'on_error: skip' to leave out images that cannot be read"));
  write_file(folder / "all/cat/a.gif", "GIF89a");
  fs::create_symlink("nowhere", folder / "all/emu/nothing.png");
  for (int i = 0; i < 5; ++i)
    CHECK(contains(error(),
                   "all/cat/a.gif: expected a JPEG, PNG or BMP, found a GIF; 2 more cannot be read; set "
                   "'on_error: skip' to leave out images that cannot be read"));
  // The message suggests on_error: skip only if the reader has this option, and if some images would remain.
  const DatasetSpec spec = parse(folder, "train: {images: {directory: all}}");
  const std::string predicted = error_of([&] { open_inputs(given(folder / "all"), spec, kInput, {}); });
  CHECK(contains(predicted, "found a GIF; 2 more cannot be read"));
  CHECK_FALSE(contains(predicted, "on_error"));
  fs::create_directories(folder / "none/cat");
  write_file(folder / "none/cat/a.gif", "GIF89a");
  const std::string none = open_error(folder, "train: {images: {directory: none}}");
  CHECK(contains(none, "found a GIF"));
  CHECK_FALSE(contains(none, "on_error"));
}

TEST_CASE("class folders with the names of splits cause a warning") {
  const TempDir folder;
  for (const char* name : {"Train/cat", "Train/dog", "val/cat", "odd/train", "odd/bus"})
    write_picture(folder / (std::string("all/") + name + "/a.png"), png_of(gradient(5, 5, 3)));
  const auto warnings = [&](const std::string& options) {
    return open(folder, "train: {images: {" + options + "}}")->warnings();
  };
  fs::rename(folder / "all/odd", folder / "odd");
  REQUIRE(warnings("directory: all").size() == 1);
  CHECK(contains(warnings("directory: all")[0],
                 "all: the folders 'Train' and 'val' are used as classes, but have the names of splits; if "
                 "they are splits, train on the folder "));
  CHECK(warnings("directory: odd").empty());  // no warning, because only one class has the name of a split
  // No warning, because this is the folder that the warning recommends.
  CHECK(warnings("directory: all/Train").empty());
  CHECK(warnings("directory: all, class_names: [val, Train]").empty());
}

TEST_CASE("a directory without one folder of images per class is an error") {
  const TempDir folder;
  fs::create_directory(folder / "none");
  CHECK(contains(open_error(folder, "train: {images: {directory: none}}"), "found no folders"));
  fs::create_directory(folder / "none/cat");
  CHECK(contains(open_error(folder, "train: {images: {directory: none}}"),
                 "none/cat: expected images, but this folder contains no files"));
  write_picture(folder / "flat/a.png", png_of(gradient(5, 5, 3)));
  CHECK(contains(open_error(folder, "train: {images: {directory: flat}}"), "found no folders"));
  write_picture(folder / "flat/cat/b.png", png_of(gradient(5, 5, 3)));
  CHECK(contains(open_error(folder, "train: {images: {directory: flat}}"),
                 "flat/a.png: images must be in one folder per class"));
  fs::create_directory_symlink(folder / "flat", folder / "flat/cat/loop");
  fs::remove(folder / "flat/a.png");
  CHECK(contains(open_error(folder, "train: {images: {directory: flat}}"),
                 "found a link to a folder that contains the link"));
}

TEST_CASE("names that are not UTF-8 are kept") {
  const TempDir folder;
  write_picture(folder / "all/caf\xe9/\xe9t\xe9.png", png_of(gradient(5, 5, 3)));
  const auto data = open(folder, "train: {images: {directory: all}}");
  CHECK(data->facts().source.class_names.at("target") == std::vector<std::string>{"caf\xe9"});
  CHECK(data->sample_id(0) == folder / "all/caf\xe9/\xe9t\xe9.png");
}

TEST_CASE("an image that is changed while it is in use is an error") {
  const TempDir folder;
  write_classes(folder / "all");
  const auto data = open(folder, "train: {images: {directory: all}}");
  write_picture(folder / "all/cat/0.jpg", jpeg_of(gradient(90, 90, 3)));
  CHECK_THROWS_WITH_AS(read_all(*data, 0), doctest::Contains("all/cat/0.jpg: the file was changed"), Error);
}

TEST_CASE("predict reads images from a folder or from one file") {
  const TempDir folder;
  write_classes(folder / "all");
  const DatasetSpec spec = parse(folder, "train: {images: {directory: all, resize: crop}}");
  const auto data = open_inputs(given(folder / "all"), spec, kInput, {});
  CHECK(data->size() == 12);
  CHECK(data->sample_id(5) == folder / "all/dog/0.bmp");
  const auto train = open_split(spec, *spec.train, kInput, kTarget);
  CHECK(read_all(*data, 0) == read_all(*train, 0));
  CHECK(open_inputs(given(folder / "all/dog/0.bmp"), spec, kInput, {})->size() == 1);
  for (const auto& [start, name] :
       {std::pair<std::string, std::string>{"RIFF" + std::string(4, '\0') + "WEBPVP8 ", "a WebP image"},
        {std::string("MM\0*", 4), "a TIFF"}}) {
    write_file(folder / "other.picture", start + std::string(50, '\0'));
    CHECK(contains(error_of([&] { open_inputs(given(folder / "other.picture"), spec, kInput, {}); }),
                   "other.picture: expected a JPEG, PNG or BMP, found " + name));
  }
  // Other files next to the class folders are ignored. Other files next to the images of a class are an
  // error.
  write_file(folder / "all/README.txt", "beside the folders");
  CHECK(open_inputs(given(folder / "all"), spec, kInput, {})->size() == 12);
  write_file(folder / "all/cat/README.txt", "among pictures");
  CHECK(contains(error_of([&] { open_inputs(given(folder / "all"), spec, kInput, {}); }),
                 "all/cat/README.txt: expected a JPEG"));
}

TEST_CASE("reading images takes additional memory of the size of the largest file") {
  const TempDir folder;
  write_classes(folder / "all");
  size_t largest = 0;
  for (const auto& entry : fs::recursive_directory_iterator(folder / "all"))
    if (entry.is_regular_file()) largest = std::max<size_t>(largest, entry.file_size());
  const auto data = open(folder, "train: {images: {directory: all}}");
  CHECK(data->working_bytes(0) == largest);
  CHECK(data->working_bytes(2) > largest);
}

TEST_CASE("the identity of a folder changes with its files") {
  const TempDir folder;
  write_classes(folder / "all");
  const auto identity = [&] { return open(folder, "train: {images: {directory: all}}")->identity(); };
  const DataIdentity before = identity();
  const auto fingerprint = [&] { return fingerprint_of({folder / "all", list_folder(folder / "all")}); };
  const std::string first = fingerprint();
  CHECK(describe_change(before, identity()) == "");
  write_picture(folder / "all/cat/0.jpg", jpeg_of(gradient(90, 90, 3)));
  CHECK(contains(describe_change(before, identity()), "all has"));
  CHECK(first != fingerprint());
  // An option that is not set is equal to an option that did not exist in an earlier version.
  DataIdentity earlier = identity(), later = earlier;
  earlier.reader = "images:\n  directory: file 0\n  size: null\n";
  later.reader = "images:\n  directory: file 0\n  csv: null\n  size: null\n  class_names: []\n";
  CHECK(describe_change(earlier, later) == "");
  later.reader += "  resize: pad\n";
  CHECK(contains(describe_change(earlier, later), "its reader is"));
}

}  // namespace dtrain::test
