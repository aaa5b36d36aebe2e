// Augmentations, compared with results of Keras and numpy.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <set>
#include <string>

#include <doctest/doctest.h>

#include "base/error.h"
#include "config/node.h"
#include "config/yaml/yaml.h"
#include "data/augment/augmentation.h"
#include "data/augment/color_ops.h"
#include "data/augment/mixing.h"
#include "data/augment/picture_stage.h"
#include "data/augment/warp.h"
#include "data/columns/column_plan.h"
#include "support.h"

namespace dtrain::test {

namespace {

/// Returns 5x4 values with one channel: 11, 48, 85, 21, ...
std::vector<float> numbers() {
  std::vector<float> all;
  for (int i = 0; i < 20; ++i) all.push_back(static_cast<float>((i * 37 + 11) % 101));
  return all;
}

const PictureShape kShape(Shape{5, 4, 1});

void check_warp(const AffineMap& map, FillMode mode, const std::vector<double>& expected) {
  CAPTURE(static_cast<int>(mode));
  const std::vector<float> src = numbers();
  std::vector<float> dst(20);
  warp(src.data(), kShape, map, {mode, Interpolation::bilinear, 9}, dst.data());
  for (size_t i = 0; i < 20; ++i) {
    CAPTURE(i);
    CHECK(static_cast<double>(dst[i]) == doctest::Approx(expected[i]).epsilon(1e-5));
  }
}

Configured<Augmentation> parse_augmentation(const std::string& name, std::vector<ConfigNode::Entry> options) {
  Diagnostics diagnostics;
  auto one = registry<Augmentation>().parse(
      ConfigNode::mapping({ConfigNode::entry(name, ConfigNode::mapping(std::move(options)))}), diagnostics);
  diagnostics.throw_if_errors();
  return one;
}

ConfigNode number(double value) {
  return Codec<double>::write(value);
}

constexpr uint64_t kSeed = 3;

/// Returns the augmented image for sample `index` of epoch `epoch`.
template <class T>
std::vector<T> seen(const Augmentation& augmentation, const TensorSpec& spec, const std::vector<T>& picture,
                    int64_t index, int64_t epoch = 0) {
  ColumnPlan plan(spec);
  augmentation.apply(plan, 1);
  std::vector<T> out(static_cast<size_t>(plan.spec().shape.elements()));
  REQUIRE(bytes_of(plan.spec().dtype) == sizeof(T));
  const std::vector<int64_t> places{0}, rows{index};
  plan.run({picture.data(), places, {rows, kSeed, epoch}}, out.data());
  return out;
}

/// Returns the random draws of sample `index` of epoch `epoch`.
Draws draws_of(int64_t index, int64_t epoch = 0) {
  return {SampleKey{kSeed, epoch, index}, 1};
}

const TensorSpec kBytes{"picture", {3, 4, 1}, DType::uint8}, kFloats{"picture", {5, 4, 1}, DType::float32};

}  // namespace

TEST_CASE("rotation, translation and zoom give the same numbers as Keras") {
  const AffineMap turned = rotation(kShape, 0.6), moved = translation(kShape, 0.3, -0.4);
  const AffineMap zoomed = zoom(kShape, 0.25, -0.3);
  check_warp(turned, FillMode::reflect,
             {62.4774, 68.9841, 50.6876, 57.4002, 56.9876, 55.3029, 48.1083, 15.0165, 59.4299, 56.9864,
              62.0136, 48.1630, 5.1679,  48.8612, 63.6971, 50.2408, 41.7743, 68.3124, 50.0159, 56.5226});
  check_warp(turned, FillMode::wrap,
             {55.5105, 68.9841, 50.2680, 48.7273, 56.9876, 55.3029, 48.1083, 11.9901, 59.4299, 56.9864,
              62.0136, 48.1630, 8.1944,  48.8612, 63.6971, 50.2408, 50.4471, 67.1712, 50.0159, 63.4895});
  check_warp(turned, FillMode::constant,
             {35.8652, 68.9841, 48.9386, 15.4233, 56.9876, 55.3029, 48.1083, 13.1956, 59.4299, 56.9864,
              62.0136, 48.1630, 6.3277,  48.8612, 63.6971, 50.2408, 13.3495, 65.8241, 50.0159, 32.8737});
  check_warp(moved, FillMode::reflect, {63.4, 49.9, 44.5, 52.6, 70.2, 46.6, 21.0, 59.4, 63.4, 49.9,
                                        44.5, 52.6, 59.9, 46.4, 41.0, 49.1, 56.4, 42.9, 37.5, 45.6});
  check_warp(moved, FillMode::constant, {9.0,  9.0, 9.0,  9.0,  39.6, 27.8, 11.4, 9.0,  63.4, 49.9,
                                         23.2, 9.0, 59.9, 46.4, 21.8, 9.0,  56.4, 42.9, 20.4, 9.0});
  check_warp(moved, FillMode::nearest, {70.2, 46.6, 21.0, 21.0, 70.2, 46.6, 21.0, 21.0, 63.4, 49.9,
                                        44.5, 44.5, 59.9, 46.4, 41.0, 41.0, 56.4, 42.9, 37.5, 37.5});
  check_warp(zoomed, FillMode::reflect,
             {27.65, 53.55, 79.45,   49.8,    62.9,    77.4375, 50.3125, 50.9625, 20.65, 46.55,
              72.45, 42.8,  68.0375, 68.6875, 41.5625, 42.2125, 69.2,    39.55,   65.45, 35.8});
}

TEST_CASE("nearest interpolation gives the same pixels as Keras") {
  const std::vector<float> src = numbers();
  std::vector<float> dst(20);
  warp(src.data(), kShape, rotation(kShape, 0.6), {FillMode::reflect, Interpolation::nearest, 0}, dst.data());
  CHECK(dst ==
        std::vector<float>{48, 85, 68, 68, 48, 31, 31, 14, 58, 41, 78, 61, 4, 88, 88, 71, 51, 51, 34, 71});
}

TEST_CASE("random rotation draws its angle from the sample's key") {
  const auto one = parse_augmentation("random_rotation", {ConfigNode::entry("factor", number(0.2))});
  const std::vector<float> src = numbers();
  std::set<float> angles;
  for (int64_t index = 0; index < 20; ++index) {
    Draws draws = draws_of(index, 4);
    const double angle = 2 * std::acos(-1.0) * (-0.2 + 0.4 * static_cast<double>(draws.uniform()));
    std::vector<float> expected(20);
    warp(src.data(), kShape, rotation(kShape, angle), {}, expected.data());
    CHECK(seen(*one, kFloats, src, index, 4) == expected);
    angles.insert(static_cast<float>(angle));
  }
  CHECK(angles.size() == 20);
}

TEST_CASE("random zoom draws factors for height and width, or one factor for both, within its ranges") {
  const std::vector<float> src = numbers();
  const auto check = [&](const Configured<Augmentation>& one, double lower, double upper, bool is_one) {
    std::set<std::vector<float>> pictures;
    for (int64_t index = 0; index < 20; ++index) {
      Draws draws = draws_of(index);
      const double height = draws.uniform(lower, upper), width = is_one ? height : draws.uniform(-0.5, 0.5);
      std::vector<float> expected(20);
      warp(src.data(), kShape, zoom(kShape, height, width), {}, expected.data());
      CHECK(seen(*one, kFloats, src, index) == expected);
      pictures.insert(expected);
    }
    CHECK(pictures.size() > 15);
  };
  const auto range = ConfigNode::entry("height_factor", Codec<std::vector<double>>::write({-0.3, 0.1}));
  check(parse_augmentation("random_zoom", {range}), -0.3, 0.1, true);
  check(parse_augmentation("random_zoom", {range, ConfigNode::entry("width_factor", number(0.5))}), -0.3, 0.1,
        false);
  CHECK(contains(error_of([&] {
                   parse_augmentation("random_zoom", {range, ConfigNode::entry("width_factor", number(50))});
                 }),
                 "width_factor: expected numbers from -1 to 1"));
}

TEST_CASE("random flip mirrors the axes of its mode") {
  const std::vector<uint8_t> picture{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
  const std::vector<uint8_t> mirrored{4, 3, 2, 1, 8, 7, 6, 5, 12, 11, 10, 9};
  const std::vector<uint8_t> overturned{9, 10, 11, 12, 5, 6, 7, 8, 1, 2, 3, 4};
  const std::vector<uint8_t> both{12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1};
  using All = std::set<std::string>;
  const auto text = [](const std::vector<uint8_t>& bytes) { return std::string(bytes.begin(), bytes.end()); };
  const std::pair<const char*, All> cases[] = {
      {"horizontal", {text(picture), text(mirrored)}},
      {"vertical", {text(picture), text(overturned)}},
      {"horizontal_and_vertical", {text(picture), text(mirrored), text(overturned), text(both)}}};
  for (const auto& [written, expected] : cases) {
    const std::string mode = written;
    CAPTURE(mode);
    const auto flip =
        parse_augmentation("random_flip", {ConfigNode::entry("mode", ConfigNode::scalar(mode))});
    All found;
    int changed = 0;
    for (int64_t index = 0; index < 200; ++index) {
      found.insert(text(seen(*flip, kBytes, picture, index)));
      changed += seen(*flip, kBytes, picture, index) != picture;
    }
    CHECK(found == expected);
    CHECK(changed > 60);
    CHECK(changed < 180);
  }
}

TEST_CASE("random crop with padding starts at the drawn offset and is black outside the image") {
  const std::vector<uint8_t> picture{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
  const auto crop = parse_augmentation(
      "random_crop", {ConfigNode::entry("height", number(3)), ConfigNode::entry("width", number(2)),
                      ConfigNode::entry("padding", number(2))});
  std::set<std::pair<int64_t, int64_t>> places;
  for (int64_t index = 0; index < 300; ++index) {
    Draws draws = draws_of(index);
    const int64_t top = draws.below(5) - 2, left = draws.below(7) - 2;
    places.insert({top, left});
    std::vector<uint8_t> expected;
    for (int64_t y = top; y < top + 3; ++y)
      for (int64_t x = left; x < left + 2; ++x)
        expected.push_back(y >= 0 && y < 3 && x >= 0 && x < 4 ? picture[static_cast<size_t>(y * 4 + x)] : 0);
    CHECK(seen(*crop, kBytes, picture, index) == expected);
  }
  CHECK(places.size() == 35);
}

TEST_CASE("random crop takes the center outside training") {
  const std::vector<uint8_t> picture{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
  const auto crop = parse_augmentation(
      "random_crop", {ConfigNode::entry("height", number(1)), ConfigNode::entry("width", number(2))});
  ColumnPlan plan(kBytes);
  crop->apply_in_evaluation(plan);
  CHECK_FALSE(plan.is_random());
  std::vector<uint8_t> out(2);
  const std::vector<int64_t> places{0};
  plan.run({picture.data(), places, {places, 1, 0}}, out.data());
  CHECK(out == std::vector<uint8_t>{6, 7});
}

TEST_CASE("random brightness and contrast change pixels within their ranges") {
  const std::vector<float> src{10, 20, 30, 40, 50, 250, 0, 100, 7, 9, 11, 13};
  const TensorSpec spec{"picture", {2, 2, 3}, DType::float32};
  const auto brightness = parse_augmentation("random_brightness", {ConfigNode::entry("factor", number(0.5))});
  for (int64_t index = 0; index < 10; ++index) {
    Draws draws = draws_of(index);
    const float more = static_cast<float>(-0.5 + static_cast<double>(draws.uniform())) * 255;
    const std::vector<float> found = seen(*brightness, spec, src, index);
    for (size_t i = 0; i < src.size(); ++i) CHECK(found[i] == std::clamp(src[i] + more, 0.0f, 255.0f));
  }
  const auto contrast = parse_augmentation(
      "random_contrast", {ConfigNode::entry("factor", Codec<std::vector<double>>::write({0.25, 0.5}))});
  for (int64_t index = 0; index < 10; ++index) {
    Draws draws = draws_of(index);
    std::vector<float> expected(src.size());
    change_contrast(src.data(), PictureShape(spec.shape), static_cast<float>(draws.uniform(0.75, 1.5)), 0,
                    255, expected.data());
    CHECK(seen(*contrast, spec, src, index) == expected);
  }
}

TEST_CASE("color augmentations give the same numbers as Keras") {
  const PictureShape shape(Shape{3, 3, 3});
  std::vector<float> src;
  for (int i = 0; i < 27; ++i) src.push_back(static_cast<float>((i * 53 + 17) % 256));
  const auto check = [&](const char* name, const std::vector<double>& expected, const auto& change) {
    CAPTURE(name);
    std::vector<float> dst(27);
    change(dst.data());
    for (size_t i = 0; i < 27; ++i) {
      CAPTURE(i);
      CHECK(std::abs(static_cast<double>(dst[i]) - expected[i]) < 2e-3);
    }
  };
  check("color_degeneration", {34.277,  66.077, 97.877, 181.597, 213.397, 91.597,  96.275, 128.075, 159.875,
                               183.486, 61.686, 93.486, 158.272, 190.072, 221.872, 61.276, 93.076,  124.876,
                               148.487, 26.687, 58.487, 123.274, 155.074, 186.874, 26.278, 58.078,  89.878},
        [&](float* dst) { degenerate_color(src.data(), shape, 0.4f, dst); });
  check("sharpness below", {36.338,  65.292, 94.246, 134.969, 168.815, 53,      66.492, 107.262, 136.215,
                            179.8,   52.169, 86.015, 129.185, 158.554, 199.738, 51.338, 97,      130.846,
                            150.431, 17.908, 58.677, 96.169,  118.2,   163.862, 19.108, 59.877,  100.646},
        [&](float* dst) { sharpen(src.data(), shape, 0.2f, dst); });
  check("sharpness above", {0,   76.277, 161.338, 230.708, 255,     0,   95.677, 164.985, 250.046,
                            255, 12.108, 90.646,  156.754, 241.262, 255, 34.215, 97,      175.538,
                            255, 0,      45.431,  119.108, 213.4,   255, 0,      64.831,  134.138},
        [&](float* dst) { sharpen(src.data(), shape, 0.9f, dst); });
  check("posterization", {0,   64, 96, 160, 224, 0, 64, 128, 160, 224, 32, 64, 128, 192,
                          224, 32, 96, 128, 192, 0, 32, 96,  128, 192, 0,  32, 96},
        [&](float* dst) { posterize(src.data(), shape, 3, dst); });
  check("solarization", {37, 90, 112, 59, 6,  46, 99, 103, 50, 0,  55, 147, 94, 41,
                         0,  64, 138, 85, 32, 20, 73, 129, 76, 23, 29, 82,  120},
        [&](float* dst) { solarize(src.data(), shape, 20, 100, dst); });
  check("auto_contrast", {8.908,   77.948, 111.923, 185.961, 255,     0,       77.948, 146.987, 183.462,
                          255,     38.974, 71.538,  146.987, 216.026, 255,     38.974, 108.013, 143.077,
                          216.026, 0,      31.154,  108.013, 177.052, 214.615, 0,      69.039,  102.692},
        [&](float* dst) { stretch_contrast(src.data(), shape, dst); });
  check("equalization", {32,  96, 128, 191, 255, 0, 96, 159, 191, 255, 32, 64, 159, 223,
                         255, 64, 128, 159, 223, 0, 32, 128, 191, 223, 0,  64, 96},
        [&](float* dst) { equalize(src.data(), shape, dst); });
  check("contrast", {0,       50.667, 117.889, 207.722, 255,     0,       62.222, 143.667, 210.889,
                     255,     0,      65.389,  155.222, 236.667, 255,     9.722,  91.167,  158.389,
                     248.222, 0,      12.889,  102.722, 184.167, 251.389, 0,      38.667,  105.889},
        [&](float* dst) { change_contrast(src.data(), shape, 1.5f, 0, 255, dst); });
}

TEST_CASE("rand_augment applies each of its operations and stays within the range of values") {
  const TensorSpec spec{"picture", {6, 5, 3}, DType::float32};
  std::vector<float> src;
  for (int i = 0; i < 90; ++i) src.push_back(static_cast<float>((i * 53 + 17) % 256) / 255);
  const auto one = parse_augmentation(
      "rand_augment", {ConfigNode::entry("num_ops", number(1)),
                       ConfigNode::entry("value_range", Codec<std::vector<double>>::write({0, 1}))});
  std::set<int64_t> operations;
  int unchanged = 0;
  for (int64_t index = 0; index < 200; ++index) {
    operations.insert(draws_of(index).below(11));
    const std::vector<float> found = seen(*one, spec, src, index);
    unchanged += found == src;
    for (const float value : found) {
      CHECK(value >= -1e-5f);
      CHECK(value <= 1.00001f);
    }
  }
  CHECK(operations.size() == 11);
  CHECK(unchanged < 10);
}

TEST_CASE("random erasing replaces the pixels of one rectangle") {
  const TensorSpec spec{"picture", {20, 30, 3}, DType::float32};
  const std::vector<float> src(20 * 30 * 3, 500.0f);
  const auto erasing = parse_augmentation("random_erasing", {ConfigNode::entry("fill_value", number(7))});
  int erased = 0;
  for (int64_t index = 0; index < 100; ++index) {
    const std::vector<float> found = seen(*erasing, spec, src, index);
    int64_t top = 20, bottom = -1, left = 30, right = -1, count = 0;
    for (int64_t y = 0; y < 20; ++y)
      for (int64_t x = 0; x < 30; ++x) {
        const float* pixel = found.data() + (y * 30 + x) * 3;
        CHECK((pixel[0] == 7 || pixel[0] == 500));
        CHECK((pixel[1] == pixel[0] && pixel[2] == pixel[0]));
        if (pixel[0] == 500) continue;
        top = std::min(top, y);
        bottom = std::max(bottom, y);
        left = std::min(left, x);
        right = std::max(right, x);
        ++count;
      }
    if (count == 0) continue;
    ++erased;
    CHECK(count == (bottom - top + 1) * (right - left + 1));
    CHECK(count >= 600 / 100);
    CHECK(count <= 600 * 45 / 100);
  }
  // The probability is itself a random number from 0 to 1 for each sample, so about half of the samples are
  // erased.
  CHECK(erased > 25);
  CHECK(erased < 75);
}

TEST_CASE("the beta distribution has its mean and variance") {
  for (const double a : {0.2, 1.0, 4.0}) {
    CAPTURE(a);
    double sum = 0, squares = 0;
    constexpr int kCount = 20000;
    for (int64_t i = 0; i < kCount; ++i) {
      Draws draws = draws_of(i);
      const double x = draw_beta(a, draws);
      REQUIRE((x >= 0 && x <= 1));
      sum += x;
      squares += x * x;
    }
    const double mean = sum / kCount;
    CHECK(mean == doctest::Approx(0.5).epsilon(0.02));
    CHECK(squares / kCount - mean * mean == doctest::Approx(1 / (4 * (2 * a + 1))).epsilon(0.03));
  }
}

TEST_CASE("the rectangle of cut_mix has the same share of the image as the partner has of the target") {
  const auto cut = parse_augmentation("cut_mix", {});
  const PictureShape shape(Shape{12, 10, 3});
  std::vector<float> whole(360, 1.0f);
  bool some = false;
  for (int64_t index = 0; index < 200; ++index) {
    Draws draws = draws_of(index);
    const Mixing::Blend blend = cut->mixing()->draw(shape, draws);
    std::vector<float> picture(360, 0.0f), target{1, 0}, partner{0, 1};
    blend_pictures(blend, shape, whole.data(), picture.data());
    const double share = std::accumulate(picture.begin(), picture.end(), 0.0) / 360;
    blend_targets(blend, partner.data(), 2, target.data());
    CHECK(static_cast<double>(target[1]) == doctest::Approx(share).epsilon(1e-5));
    CHECK(static_cast<double>(target[0]) == doctest::Approx(1 - share).epsilon(1e-5));
    some = some || (share > 0.2 && share < 0.8);
  }
  CHECK(some);
}

TEST_CASE("random numbers depend on epoch, sample and position in the list, not on the batch") {
  const auto noise = parse_augmentation("random_brightness", {ConfigNode::entry("factor", number(0.3))});
  const std::vector<float> src(20, 100.0f);
  CHECK(seen(*noise, kFloats, src, 5, 1) == seen(*noise, kFloats, src, 5, 1));
  CHECK(seen(*noise, kFloats, src, 5, 1) != seen(*noise, kFloats, src, 5, 2));
  CHECK(seen(*noise, kFloats, src, 5, 1) != seen(*noise, kFloats, src, 6, 1));
  ColumnPlan plan(kFloats);
  noise->apply(plan, 2);
  std::vector<float> out(20);
  const std::vector<int64_t> places{0}, rows{5};
  plan.run({src.data(), places, {rows, kSeed, 1}}, out.data());
  CHECK(out != seen(*noise, kFloats, src, 5, 1));
}

TEST_CASE("a rotation in degrees is an error that names the expected unit") {
  const auto error = [](const std::string& rotation) {
    return error_of([&] {
      Diagnostics diagnostics;
      registry<Augmentation>().parse(parse_yaml("random_rotation: " + rotation, "a.yaml", diagnostics),
                                     diagnostics);
      diagnostics.throw_if_errors();
    });
  };
  for (const char* rotation : {"{factor: [-15, 15]}", "{factor: 15}", "15", "[-15, 15]"}) {
    CAPTURE(rotation);
    CHECK(contains(error(rotation),
                   "random_rotation's factor: expected fractions of a full turn from -1 to 1, as in Keras "
                   "(15 degrees are 0.042), found "));
  }
  CHECK(error("0.042") == "");
}

TEST_CASE("an image smaller than the crop is an error") {
  const auto crop = parse_augmentation(
      "random_crop", {ConfigNode::entry("height", number(9)), ConfigNode::entry("width", number(9))});
  ColumnPlan plan(kBytes);
  CHECK(contains(error_of([&] { crop->apply(plan, 1); }), "images must have at least 9x9 pixels"));
}

}  // namespace dtrain::test
