// The images of docs/augmentations.md, which show the effect of each augmentation. If
// DTRAIN_DRAW_AUGMENTATIONS=1 is set, the tests draw the images again.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <functional>

#include <doctest/doctest.h>

#include "data/augment/augmentation.h"
#include "image/decode.h"
#include "support.h"
#include "support/image_files.h"
#include "support/source_dir.h"

namespace dtrain::test {

namespace {

// The size of an image in pixels, and the number of images per strip: the original and seven augmented
// samples.
constexpr int64_t kSide = 72, kShown = 8;

void fill(Pixels& pixels, const Bytes& colour, const std::function<bool(double x, double y)>& is_inside) {
  for (int64_t y = 0; y < pixels.height; ++y)
    for (int64_t x = 0; x < pixels.width; ++x)
      if (is_inside(static_cast<double>(x), static_cast<double>(y)))
        for (int c = 0; c < 3; ++c) pixels.at(y, x, c) = colour[static_cast<size_t>(c)];
}

bool in_circle(double x, double y, double center_x, double center_y, double radius) {
  return std::hypot(x - center_x, y - center_y) < radius;
}

Pixels house() {
  Pixels all{kSide, kSide, 3, Bytes(static_cast<size_t>(kSide * kSide * 3))};
  fill(all, {150, 200, 240}, [](double, double) { return true; });
  fill(all, {250, 220, 80}, [](double x, double y) { return in_circle(x, y, 57, 15, 9); });
  fill(all, {110, 170, 90}, [](double x, double y) { return in_circle(x, y, 40, 130, 80); });
  fill(all, {225, 205, 170}, [](double x, double y) { return x > 12 && x < 42 && y > 34 && y < 60; });
  fill(all, {190, 70, 60}, [](double x, double y) { return y > 18 && y < 35 && std::abs(x - 27) < y - 16; });
  fill(all, {120, 80, 50}, [](double x, double y) { return x > 17 && x < 25 && y > 44 && y < 60; });
  fill(all, {90, 130, 170}, [](double x, double y) { return x > 29 && x < 38 && y > 41 && y < 50; });
  return all;
}

Pixels boat() {
  Pixels all{kSide, kSide, 3, Bytes(static_cast<size_t>(kSide * kSide * 3))};
  fill(all, {240, 190, 150}, [](double, double) { return true; });
  fill(all, {50, 100, 150}, [](double, double y) { return y > 50; });
  fill(all, {110, 60, 40},
       [](double x, double y) { return y > 44 && y < 56 && std::abs(x - 36) < 80 - y - y / 10; });
  fill(all, {250, 250, 245},
       [](double x, double y) { return x > 37 && y > 8 && y < 42 && x - 37 < (y - 8) * 0.7; });
  fill(all, {80, 50, 40}, [](double x, double y) { return x > 33 && x < 37 && y > 6 && y < 46; });
  return all;
}

/// Returns the original image and samples 1, 2, ... of an epoch, side by side.
Pixels strip(const TempDir& folder, const std::string& augmentation) {
  const auto write = [&](const std::string& name, const Bytes& png) {
    std::filesystem::create_directories(std::filesystem::path(folder / name).parent_path());
    write_file(folder / name, {png.begin(), png.end()});
  };
  for (int64_t i = 0; i < kShown; ++i) write("all/a/" + std::to_string(i) + ".png", png_of(house()));
  for (int64_t i = 0; i < kShown; ++i) write("all/b/" + std::to_string(i) + ".png", png_of(boat()));
  const DatasetSpec spec =
      parse(folder, "train: {images: {directory: all}}\ntransforms: [{one_hot: {classes: 2}}]\naugment: [" +
                        augmentation + "]\n");
  const auto data = open_split(spec, *spec.train, {{"image", {kSide, kSide, 3}, DType::float32}},
                               {{"", {2}, DType::float32}}, true);
  const Pixels first = house();
  Pixels all{kSide, kSide * kShown, 3, Bytes(static_cast<size_t>(kSide * kSide * kShown * 3))};
  for (int64_t i = 0; i < kShown; ++i) {
    std::vector<double> seen = read_rows(*data, {i}, 0);
    if (i == 0) seen.assign(first.bytes.begin(), first.bytes.end());
    for (int64_t y = 0; y < kSide; ++y)
      for (int64_t x = 0; x < kSide * 3; ++x)
        all.bytes[static_cast<size_t>((y * kShown + i) * kSide * 3 + x)] = static_cast<uint8_t>(
            std::clamp(std::round(seen[static_cast<size_t>(y * kSide * 3 + x)]), 0.0, 255.0));
  }
  return all;
}

/// The options in the examples of docs/augmentations.md.
const std::vector<std::string> kAll{
    "random_flip: {mode: horizontal}",
    "random_crop: {height: 72, width: 72, padding: 12}",
    "random_rotation: {factor: 0.1}",
    "random_translation: {height_factor: 0.2, width_factor: 0.2}",
    "random_zoom: {height_factor: 0.3}",
    "random_brightness: {factor: 0.4}",
    "random_contrast: {factor: 0.6}",
    "random_erasing: {factor: 1.0, scale: [0.02, 0.2]}",
    "rand_augment: {num_ops: 2, factor: 0.5}",
    "mix_up: {alpha: 1.0}",
    "cut_mix: {factor: 1.0}",
};

}  // namespace

TEST_CASE("the images of augmentations in the documentation are up to date") {
  const std::string docs = source_dir() + "/docs/";
  const std::string page = read_file(docs + "augmentations.md");
  for (const std::string& name : registry<Augmentation>().names()) {
    CAPTURE(name);
    const auto shown = std::find_if(kAll.begin(), kAll.end(),
                                    [&](const std::string& one) { return one.starts_with(name + ":"); });
    REQUIRE(shown != kAll.end());
    const TempDir folder;
    const Pixels expected = strip(folder, "{" + *shown + "}");
    const std::string path = docs + "augmentations/" + name + ".png";
    if (std::getenv("DTRAIN_DRAW_AUGMENTATIONS")) {
      const Bytes png = png_of(expected);
      write_file(path, {png.begin(), png.end()});
    }
    CHECK(contains(page, "`" + *shown + "`"));
    CHECK(contains(page, "(augmentations/" + name + ".png)"));
    const std::string file = read_file(path);
    Bytes found(expected.bytes.size());
    decode_picture({reinterpret_cast<const uint8_t*>(file.data()), file.size()},
                   {kSide, kSide * kShown, 3, Resize::stretch}, found.data());
    // Different compilers round differently. Therefore single pixels may differ by one.
    int64_t different = 0;
    for (size_t i = 0; i < found.size(); ++i) different += std::abs(found[i] - expected.bytes[i]) > 1;
    CHECK(different < static_cast<int64_t>(found.size()) / 500);
  }
}

}  // namespace dtrain::test
