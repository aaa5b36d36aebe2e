// mix_up and cut_mix in a training split: how they change inputs and targets, and configurations that are
// rejected.
#include <cmath>
#include <numeric>

#include <doctest/doctest.h>

#include "data/support.h"

namespace dtrain::test {

namespace {

using Values = std::vector<double>;
constexpr int kSamples = 6;
const TensorSpec kClasses{"", {kSamples}};

/// A folder with files of samples. Sample i has an image whose values are i, a larger image whose values are
/// 10 i, a vector whose values are i, and the class i.
struct Blended {
  Blended() {
    std::string pictures, larger, labels;
    std::vector<float> vectors;
    for (int i = 0; i < kSamples; ++i) {
      pictures += std::string(8 * 8, static_cast<char>(i));
      larger += std::string(12 * 10, static_cast<char>(10 * i));
      labels += static_cast<char>(i);
      vectors.insert(vectors.end(), 3, static_cast<float>(i));
    }
    write_file(folder / "x.npy", npy_bytes("|u1", "(6, 8, 8)", pictures));
    write_file(folder / "larger.npy", npy_bytes("|u1", "(6, 12, 10)", larger));
    write_file(folder / "v.npy", npy_bytes("<f4", "(6, 3)", raw(vectors)));
    write_file(folder / "y.npy", npy_bytes("|u1", "(6,)", labels));
  }

  std::shared_ptr<const Dataset> open(const std::string& reader, const std::string& transforms,
                                      const std::string& augment, const std::vector<TensorSpec>& inputs,
                                      const std::vector<TensorSpec>& targets = {kClasses},
                                      bool is_training = true) {
    const DatasetSpec spec = parse(folder, "train: {npy: {" + reader + "}}\ntransforms: [" + transforms +
                                               "]\naugment: [" + augment + "]");
    return open_split(spec, *spec.train, inputs, targets, is_training);
  }
  std::string error(const std::string& reader, const std::string& transforms, const std::string& augment,
                    const std::vector<TensorSpec>& inputs,
                    const std::vector<TensorSpec>& targets = {kClasses}) {
    return error_of([&] { open(reader, transforms, augment, inputs, targets); });
  }

  TempDir folder;
};

/// Returns the sum of each row of a column.
Values sums(const Dataset& data, size_t column) {
  const Values all = read_all(data, column);
  const auto elements = static_cast<size_t>(data.columns()[column].shape.elements());
  Values sums;
  for (auto row = all.begin(); row != all.end(); row += static_cast<ptrdiff_t>(elements))
    sums.push_back(std::accumulate(row, row + static_cast<ptrdiff_t>(elements), 0.0));
  return sums;
}

/// Returns the mean class number of each sample, weighted with its class probabilities.
Values expected_numbers(const Dataset& data, size_t target) {
  const Values all = read_all(data, target);
  Values numbers(kSamples, 0.0);
  for (size_t i = 0; i < all.size(); ++i) numbers[i / kSamples] += all[i] * static_cast<double>(i % kSamples);
  return numbers;
}

/// Checks that the mean of each row equals `factor` times the mean class number of the row's target.
void check_means(const Dataset& data, size_t column, size_t target, double factor = 1) {
  const Values found = sums(data, column), expected = expected_numbers(data, target);
  const auto elements = static_cast<double>(data.columns()[column].shape.elements());
  for (size_t i = 0; i < found.size(); ++i)
    CHECK(found[i] / elements == doctest::Approx(factor * expected[i]).epsilon(1e-5));
}

}  // namespace

TEST_CASE_FIXTURE(Blended, "cut_mix: the partner has the same share of the image as of the target") {
  const auto data = open("input: x.npy, target: y.npy", "one_hot: 6", "cut_mix", {{"x", {8, 8, 1}}});
  check_means(*data, 0, 1);
  const Values pixels = read_all(*data, 0);
  bool some = false;
  for (size_t i = 0; i < pixels.size(); ++i) {
    CHECK(pixels[i] == std::floor(pixels[i]));  // the pixels are copied, not interpolated
    const size_t picture = i / 64;
    some = some || pixels[i] != static_cast<double>(picture);
  }
  CHECK(some);
}

TEST_CASE_FIXTURE(Blended, "mix_up accepts flattened images and vectors") {
  for (const std::string file : {"x.npy", "v.npy"}) {
    CAPTURE(file);
    const int64_t elements = file[0] == 'x' ? 64 : 3;
    const auto data = open("input: " + file + ", target: y.npy",
                           "{reshape: [" + std::to_string(elements) + "]}, one_hot: 6", "mix_up: {alpha: 1}",
                           {{"x", {elements}}});
    check_means(*data, 0, 1);
    CHECK(expected_numbers(*data, 1) != Values{0, 1, 2, 3, 4, 5});
    CHECK(contains(
        error("input: " + file + ", target: y.npy",
              "{reshape: [" + std::to_string(elements) + "]}, one_hot: 6", "cut_mix", {{"x", {elements}}}),
        file[0] == 'x' ? "dataset.yaml:3:11: error: cut_mix: the inputs must contain an image [height, "
                         "width, channels] after the transforms, but found 64 for 'x'"
                       : "augment: expected images of shape [height, width, channels], but found the shape 3 "
                         "for the input 'x'"));
  }
}

TEST_CASE_FIXTURE(Blended, "several inputs are blended as one sample") {
  const std::string files = "inputs: {a: larger.npy, b: x.npy, v: v.npy}, target: y.npy";
  const TensorSpec large{"a", {12, 10, 1}}, small{"b", {8, 8, 1}}, vector{"v", {3}};
  const auto data = open(files, "one_hot: 6", "mix_up: {alpha: 1}", {large, small, vector});
  check_means(*data, 0, 3, 10);
  check_means(*data, 1, 3);
  check_means(*data, 2, 3);
  CHECK(contains(error(files, "one_hot: 6", "cut_mix", {large, small, vector}),
                 "cut_mix: all images must have the same height and width after the transforms, but found "
                 "12x10x1 for 'a' and 8x8x1 for 'b'"));
  const auto cut =
      open("inputs: {b: x.npy, v: v.npy}, target: y.npy", "one_hot: 6", "cut_mix", {small, vector});
  check_means(*cut, 0, 2);
  check_means(*cut, 1, 2);
  CHECK(contains(error("inputs: {b: x.npy, v: y.npy}, target: y.npy", "one_hot: 6", "mix_up",
                       {small, {"v", {}, DType::int32}}),
                 "mix_up: only float32 inputs can be blended, but found int32 for 'v'"));
  CHECK(contains(
      error("input: x.npy, target: y.npy", "", "mix_up", {{"x", {8, 8, 1}}}, {{"", {}, DType::int32}}),
      "mix_up: only float32 targets can be blended, but found int32; if the targets are classes, use the "
      "transform one_hot"));
}

TEST_CASE_FIXTURE(Blended, "if a target is an input, it is blended like the input") {
  for (const std::string augment : {"cut_mix", "mix_up: {alpha: 1}"}) {
    CAPTURE(augment);
    const TensorSpec picture{"x", {8, 8, 1}};
    const auto data = open("input: x.npy, targets: {same: {input: x}, label: y.npy}",
                           "{one_hot: {classes: 6, of: [label]}}", augment, {picture},
                           {{"label", {kSamples}}, {"same", {8, 8, 1}}});
    CHECK(read_all(*data, 2) == read_all(*data, 0));
    check_means(*data, 2, 1);
    CHECK(read_all(*data, 0) !=
          read_all(*open("input: x.npy, target: y.npy", "one_hot: 6", "", {picture}), 0));
  }
  CHECK(contains(error("input: x.npy, target: {input: x}", "{reshape: {shape: [64], of: [target]}}",
                       "cut_mix", {{"x", {8, 8, 1}}}, {{"", {64}}}),
                 "the target that belongs to the input 'x' must be an image of the same height and width as "
                 "the input, but has the shape 64"));
}

TEST_CASE_FIXTURE(
    Blended, "if a target is an input, transforms of the target are fitted to samples without augmentation") {
  const TensorSpec picture{"x", {8, 8, 1}}, target{"", {8, 8, 1}};
  const auto fitted = [&](const std::string& augment) {
    const auto data = open("input: x.npy, target: {input: x}", "{standardize: {of: [target]}}", augment,
                           {picture}, {target});
    return data->facts().to_json().dump();
  };
  CHECK(contains(fitted(""), "2.5"));  // the mean of the images without augmentation
  CHECK(fitted("{random_brightness: {factor: [0.1, 0.1]}}") == fitted(""));
}

TEST_CASE_FIXTURE(Blended, "inputs that are not images are not augmented") {
  const std::string flip = "random_flip, {random_crop: {height: 8, width: 6}}";
  const std::string files = "inputs: {b: x.npy, v: v.npy}, target: y.npy";
  const std::vector<TensorSpec> inputs{{"b", {8, 6, 1}}, {"v", {3}}};
  for (const bool is_training : {true, false}) {
    const auto data = open(files, "one_hot: 6", flip, inputs, {kClasses}, is_training);
    CHECK(sums(*data, 0) == Values{0, 48, 96, 144, 192, 240});
    CHECK(sums(*data, 1) == Values{0, 3, 6, 9, 12, 15});
  }
  CHECK(contains(
      error("inputs: {a: v.npy, v: v.npy}, target: y.npy", "one_hot: 6", flip, {{"a", {3}}, {"v", {3}}}),
      "augment: expected images of shape [height, width, channels], but found the shape 3 for the input 'a', "
      "3 for the input 'v'"));
}

}  // namespace dtrain::test
