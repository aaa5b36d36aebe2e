// Tests the interpreter of ONNX operators, which the exporter uses to check exported models.
#include <doctest/doctest.h>

#include "onnx_models.h"

using namespace dtrain;
using namespace dtrain::test;

TEST_CASE("the reference loops compute the operators as specified") {
  CHECK(answer("activation: {activation: {relu: {max_value: 2, negative_slope: 0.5, threshold: 1}}}", "[4]",
               {-1, 1, 1.5, 3}) == std::vector<float>{-1, 0, 1.5, 2});
  CHECK(answer("zero_padding2d: [[1, 0], [0, 1]]", "[1, 2, 1]", {1, 2}) ==
        std::vector<float>{0, 0, 0, 1, 2, 0});
  CHECK(answer("cropping2d: [[1, 0], [0, 1]]", "[2, 3, 1]", {1, 2, 3, 4, 5, 6}) == std::vector<float>{4, 5});
  CHECK(answer("average_pooling2d: {pool_size: 2, strides: 1, padding: same}", "[2, 2, 1]", {1, 2, 3, 4}) ==
        std::vector<float>{2.5, 3, 3.5, 4});  // the mean does not include padding
  CHECK(answer("max_pooling2d: {pool_size: 2}", "[2, 2, 2]", {1, 8, 2, 7, 3, 6, 4, 5}) ==
        std::vector<float>{4, 8});
  CHECK(answer("global_average_pooling2d", "[1, 2, 2]", {1, 2, 3, 4}) == std::vector<float>{2, 3});
  CHECK(answer("conv3d: {filters: 1, kernel_size: [2, 1, 2], use_bias: false, kernel_initializer: ones}",
               "[2, 1, 3, 1]", {1, 2, 4, 10, 20, 40}) == std::vector<float>{33, 66});
  CHECK(answer("max_pooling3d: {strides: 1, padding: same}", "[2, 1, 2, 1]", {1, 4, 3, 2}) ==
        std::vector<float>{4, 4, 3, 2});
  CHECK(answer("average_pooling3d: {strides: 1, padding: same}", "[2, 1, 2, 1]", {1, 4, 3, 2}) ==
        std::vector<float>{2.5, 3, 2.5, 2});  // the mean does not include padding
  CHECK(answer("zero_padding3d: [[1, 0], 0, [0, 1]]", "[1, 1, 2, 1]", {1, 2}) ==
        std::vector<float>{0, 0, 0, 1, 2, 0});
  CHECK(answer("cropping3d: [[1, 0], 0, [0, 1]]", "[2, 1, 2, 1]", {1, 2, 3, 4}) == std::vector<float>{3});
  CHECK(answer("upsampling3d: [2, 1, 2]", "[1, 1, 2, 1]", {1, 2}) ==
        std::vector<float>{1, 1, 2, 2, 1, 1, 2, 2});
  CHECK(answer("conv2d: {filters: 1, kernel_size: [1, 2], use_bias: false, kernel_initializer: ones}",
               "[1, 3, 1]", {1, 2, 4}) == std::vector<float>{3, 6});
  CHECK(
      answer(
          "conv1d: {filters: 1, kernel_size: 2, padding: causal, use_bias: false, kernel_initializer: ones}",
          "[3, 1]", {1, 2, 4}) == std::vector<float>{1, 3, 6});
  CHECK(answer(
            "conv2d: {filters: 4, kernel_size: [1, 2], groups: 2, use_bias: false, kernel_initializer: ones}",
            "[1, 2, 4]", {1, 2, 4, 8, 10, 20, 40, 80}) == std::vector<float>{33, 33, 132, 132});
  CHECK(answer("conv1d: {filters: 2, kernel_size: 1, groups: 2, use_bias: false, kernel_initializer: ones}",
               "[1, 4]", {1, 2, 4, 8}) == std::vector<float>{3, 12});
  CHECK(answer("conv3d: {filters: 2, kernel_size: 1, groups: 2, use_bias: false, kernel_initializer: ones}",
               "[1, 1, 1, 4]", {1, 2, 4, 8}) == std::vector<float>{3, 12});
  CHECK(answer("average_pooling1d: {pool_size: 2, strides: 1, padding: same}", "[3, 1]", {1, 2, 4}) ==
        std::vector<float>{1.5, 3, 4});
  CHECK(answer("prelu: {alpha_initializer: {constant: 0.5}}", "[2, 2]", {-1, 2, -3, 0}) ==
        std::vector<float>{-0.5, 2, -1.5, 0});
  CHECK(answer("unit_normalization", "[2, 2]", {3, 4, 0, -2}) == std::vector<float>{0.6f, 0.8f, 0, -1});
  CHECK(answer("masking: {mask_value: 2}", "[3, 2]", {2, 2, 2, 1, 0, 3}) ==
        std::vector<float>{0, 0, 2, 1, 0, 3});
  CHECK(answer("rescaling: {scale: [2, 3], offset: [1, 0]}", "[2, 2]", {1, 2, 3, 4}) ==
        std::vector<float>{3, 6, 7, 12});
  const std::vector<float> root_mean_square = answer("rms_normalization", "[2]", {1, 7});
  CHECK(root_mean_square[0] == doctest::Approx(0.2));
  CHECK(root_mean_square[1] == doctest::Approx(1.4));
  const std::vector<float> of_groups =
      answer("group_normalization: {groups: 2}", "[1, 2, 4]", {-1, 1, 10, 20, -1, 1, 10, 20});
  for (size_t i = 0; i < 8; ++i)  // the variances are 1 and 25; the layer adds epsilon to them
    CHECK(of_groups[i] ==
          doctest::Approx(i % 4 < 2 ? (i % 2 ? 0.9995 : -0.9995) : (i % 2 ? 0.99998 : -0.99998)));
  CHECK(answer("upsampling2d: {size: [1, 2], interpolation: bilinear}", "[1, 2, 1]", {1, 5}) ==
        std::vector<float>{1, 2, 4, 5});
  CHECK(answer("resizing: {height: 3, width: 2, interpolation: nearest}", "[2, 3, 1]", {1, 5, 2, 8, 3, 9}) ==
        std::vector<float>{1, 2, 8, 9, 8, 9});
  const std::vector<float> smaller =
      answer("resizing: {height: 1, width: 2}", "[2, 3, 1]", {1, 5, 2, 8, 3, 9});
  REQUIRE(smaller.size() == 2);
  CHECK(smaller[0] == doctest::Approx(4.375));
  CHECK(smaller[1] == doctest::Approx(5.125));
  // The index of the last pixel depends on the scale, 31 / 7. If the scale were not rounded up, the output
  // would have only floor(7 * (31 / 7)) = 30 pixels.
  CHECK(answer("resizing: {height: 1, width: 31}", "[1, 7, 1]", std::vector<float>(7, 2)) ==
        std::vector<float>(31, 2));
  CHECK(answer("conv2d_transpose: {filters: 1, kernel_size: [1, 2], strides: [1, 3], use_bias: false, "
               "kernel_initializer: ones}",
               "[1, 2, 1]", {1, 2})
            .size() == 6);
}

TEST_CASE("the reference loops repeat arrays and pixels") {
  OnnxModel model;
  model.inputs = {{"x", OnnxType::float32, {1, 1, 2}}};
  model.initializers = {{"scales", OnnxType::float32, {4}, {1, 1, 2, 3}, {}},
                        {"times", OnnxType::int64, {4}, {}, {1, 2, 1, 1}}};
  model.nodes = {
      {"Resize",
       "a",
       {"x", "", "scales"},
       {"large"},
       {{"mode", std::string("nearest")}, {"coordinate_transformation_mode", std::string("asymmetric")}}},
      {"Tile", "b", {"x", "times"}, {"twice"}, {}}};
  model.outputs = {{"large", OnnxType::float32, {1, 2, 6}}, {"twice", OnnxType::float32, {2, 1, 2}}};
  const auto found = run_onnx(model, 1, {{1, 2}});
  CHECK(found[0] == std::vector<float>{1, 1, 1, 2, 2, 2, 1, 1, 1, 2, 2, 2});
  CHECK(found[1] == std::vector<float>{1, 2, 1, 2});
}
